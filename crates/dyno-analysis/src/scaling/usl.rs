//! The Universal Scalability Law (Gunther 1993, 2007), fitted by least squares: throughput with N
//! clients is X(N) = γ N / (1 + α (N − 1) + β N (N − 1)), α, β ≥ 0; in a = 1/γ, b = α/γ, c = β/γ it
//! is N / (a + b (N − 1) + c N (N − 1)), whose reciprocal is linear.

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usl {
    /// γ: transactions per second of one client.
    pub one_client: f64,
    /// α: the share of work that waits for its turn.
    pub contention: f64,
    /// β: the cost of keeping every pair of clients consistent.
    pub coherency: f64,
}

impl Usl {
    pub fn throughput(&self, clients: f64) -> f64 {
        let waiting = 1.0 + self.contention * (clients - 1.0);
        self.one_client * clients / (waiting + self.coherency * clients * (clients - 1.0))
    }

    /// Clients with the highest throughput, √((1 − α) / β); `None` if it always rises.
    pub fn peak_clients(&self) -> Option<f64> {
        let is_peaked = self.coherency > 0.0 && self.contention < 1.0;
        is_peaked.then(|| ((1.0 - self.contention) / self.coherency).sqrt().max(1.0))
    }

    /// By least squares; `None` with fewer than four loads, or unless all values are above zero.
    pub fn fit(points: &[(f64, f64)]) -> Option<Usl> {
        let is_usable = |&(n, x): &(f64, f64)| n >= 1.0 && x > 0.0 && x.is_finite();
        if points.len() < 4 || !points.iter().all(is_usable) {
            return None;
        }
        // If a parameter is negative, the best allowed fit has one at zero.
        let candidates = [[true, true], [true, false], [false, true], [false, false]];
        let fits = candidates.into_iter().filter_map(|free| refine(points, free));
        let allowed = fits.filter(|p| p[0] > 0.0 && p[1] >= 0.0 && p[2] >= 0.0);
        let best = allowed.min_by(|p, q| squares(points, p).total_cmp(&squares(points, q)))?;
        Some(Usl {
            one_client: 1.0 / best[0],
            contention: best[1] / best[0],
            coherency: best[2] / best[0],
        })
    }
}

type Parameters = [f64; 3];

/// Factors of the parameters: 1, N − 1, N (N − 1).
fn terms(n: f64) -> [f64; 3] {
    [1.0, n - 1.0, n * (n - 1.0)]
}

fn model(n: f64, p: &Parameters) -> f64 {
    let t = terms(n);
    n / (p[0] * t[0] + p[1] * t[1] + p[2] * t[2])
}

fn squares(points: &[(f64, f64)], p: &Parameters) -> f64 {
    points.iter().map(|&(n, x)| (x - model(n, p)).powi(2)).sum()
}

/// Gauss-Newton from the solution of the linear form, with steps halved until they help.
fn refine(points: &[(f64, f64)], free: [bool; 2]) -> Option<Parameters> {
    let is_free = [true, free[0], free[1]];
    // The reciprocal's residual is the throughput's times N / X².
    let start = points.iter().map(|&(n, x)| (terms(n), n / x, x * x / n));
    let mut p = weighted(start, is_free)?;
    for _ in 0..100 {
        let linear = points.iter().map(|&(n, x)| {
            let fitted = model(n, &p);
            // dX/dp = −(X² / N) · term.
            (terms(n), -(x - fitted) * n / (fitted * fitted), fitted * fitted / n)
        });
        let step = weighted(linear, is_free)?;
        let before = squares(points, &p);
        let at = |length: f64| [0, 1, 2].map(|i| p[i] + length * step[i]);
        let is_good = |q: &Parameters| {
            points.iter().all(|&(n, _)| model(n, q) > 0.0) && squares(points, q) < before
        };
        let better = (0..30).map(|i| at(0.5_f64.powi(i))).find(is_good);
        let Some(better) = better else { break };
        let gain = before - squares(points, &better);
        p = better;
        if gain <= 1e-14 * before {
            break;
        }
    }
    Some(p)
}

/// Of y on three terms, some of which may be fixed at zero.
fn weighted(
    rows: impl Iterator<Item = ([f64; 3], f64, f64)>,
    is_free: [bool; 3],
) -> Option<Parameters> {
    let mut m = [[0.0; 4]; 3];
    for (terms, y, weight) in rows {
        let w = weight * weight;
        for i in 0..3 {
            for j in 0..3 {
                m[i][j] += w * terms[i] * terms[j];
            }
            m[i][3] += w * terms[i] * y;
        }
    }
    for i in (0..3).filter(|i| !is_free[*i]) {
        m.iter_mut().for_each(|row| row[i] = 0.0);
        m[i] = [0.0; 4];
        m[i][i] = 1.0;
    }
    solve(m)
}

/// By elimination with scaled pivots.
fn solve(mut m: [[f64; 4]; 3]) -> Option<Parameters> {
    for row in &mut m {
        let scale = row[..3].iter().fold(0.0_f64, |most, v| most.max(v.abs()));
        if scale <= 0.0 || !scale.is_finite() {
            return None;
        }
        row.iter_mut().for_each(|v| *v /= scale);
    }
    for column in 0..3 {
        let pivot =
            (column..3).max_by(|a, b| m[*a][column].abs().total_cmp(&m[*b][column].abs()))?;
        m.swap(column, pivot);
        if m[column][column].abs() < 1e-300 {
            return None;
        }
        for row in (0..3).filter(|row| *row != column) {
            let factor = m[row][column] / m[column][column];
            let above = m[column];
            m[row].iter_mut().zip(above).for_each(|(v, of_pivot)| *v -= factor * of_pivot);
        }
    }
    Some([0, 1, 2].map(|i| m[i][3] / m[i][i]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// SPEC SDM91 on a Sun SPARCcenter 2000 (Gunther, "Guerrilla Capacity Planning", 2007); also
    /// the data set `specsdm91` of the R package usl.
    const SPEC_SDM91: [(f64, f64); 7] = [
        (1.0, 64.9),
        (18.0, 995.9),
        (36.0, 1652.4),
        (72.0, 1853.2),
        (108.0, 1828.9),
        (144.0, 1775.0),
        (216.0, 1702.2),
    ];

    #[test]
    fn published_coefficients_are_found() {
        let law = Usl::fit(&SPEC_SDM91).expect("seven loads");
        assert!((law.contention - 0.027_73).abs() < 0.000_02, "{law:?}");
        assert!((law.coherency - 0.000_104_4).abs() < 0.000_000_1, "{law:?}");
        assert!((law.one_client - 90.0).abs() < 0.1, "{law:?}");
        assert!((law.peak_clients().expect("it falls") - 96.5).abs() < 0.1, "{law:?}");
    }

    #[test]
    fn what_scales_without_a_limit_has_no_peak() {
        let points = [1.0, 2.0, 4.0, 8.0].map(|n| (n, 500.0 * n));
        let law = Usl::fit(&points).expect("four loads");
        assert!(law.contention < 1e-9 && law.peak_clients().is_none(), "{law:?}");
        // The best fit to superlinear growth is linear.
        let points = [(1.0, 245.0), (2.0, 682.0), (3.0, 1659.0), (4.0, 2748.0)];
        let law = Usl::fit(&points).expect("four loads");
        assert_eq!((law.contention, law.coherency), (0.0, 0.0));
    }

    #[test]
    fn too_few_loads_and_zeros_are_not_fitted() {
        assert_eq!(Usl::fit(&SPEC_SDM91[..3]), None);
        assert_eq!(Usl::fit(&[(1.0, 5.0), (2.0, 0.0), (4.0, 9.0), (8.0, 9.0)]), None);
    }

    proptest! {
        #[test]
        fn a_law_is_found_again(
            one_client in 1.0..1e5_f64,
            contention in 0.0..0.3_f64,
            coherency in 0.0..0.01_f64,
        ) {
            let law = Usl { one_client, contention, coherency };
            let points: Vec<(f64, f64)> =
                [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0].map(|n| (n, law.throughput(n))).to_vec();
            let found = Usl::fit(&points).expect("seven loads");
            for (n, x) in points {
                prop_assert!((found.throughput(n) / x - 1.0).abs() < 1e-6, "{found:?}");
            }
        }
    }
}
