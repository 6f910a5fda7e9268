//! Student's t distribution.

use super::special::incomplete_beta;

/// That |T| is at least |`t`|: I_x(ν/2, 1/2) with x = ν / (ν + t²) (Abramowitz and Stegun 26.7.1).
pub fn t_two_sided_p(t: f64, freedom: f64) -> f64 {
    if t.is_infinite() {
        return 0.0;
    }
    incomplete_beta(0.5 * freedom, 0.5, freedom / (freedom + t * t))
}

/// For `q` in (0, 1) and `freedom` > 0, by bisection of the monotone [`t_two_sided_p`]: slow and
/// sure. Tails are cut at 1e-15.
pub fn t_quantile(q: f64, freedom: f64) -> f64 {
    if q < 0.5 {
        return -t_quantile(1.0 - q, freedom);
    }
    let tail = (2.0 * (1.0 - q)).max(1e-15);
    let (mut low, mut high) = (0.0, 1.0);
    while t_two_sided_p(high, freedom) > tail {
        low = high;
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if t_two_sided_p(middle, freedom) > tail {
            low = middle;
        } else {
            high = middle;
        }
        if high - low <= 1e-13 * high {
            break;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(q: f64, freedom: f64, expected: f64) {
        let actual = t_quantile(q, freedom);
        assert!(
            (actual - expected).abs() < 0.000_6,
            "t({q}, {freedom}) = {actual}, not {expected}"
        );
    }

    #[test]
    fn quantiles_as_printed_in_tables() {
        check(0.5, 3.0, 0.0);
        check(0.975, 1.0, 12.706);
        check(0.975, 2.0, 4.303);
        check(0.975, 4.0, 2.776);
        check(0.975, 9.0, 2.262);
        check(0.995, 2.0, 9.925);
        check(0.9995, 5.0, 6.869);
        check(0.95, 30.0, 1.697);
        check(0.975, 120.0, 1.980);
        check(0.025, 4.0, -2.776);
        // Far out it is the normal distribution.
        check(0.975, 1e6, 1.960);
    }

    #[test]
    fn quantiles_by_closed_form() {
        // One degree of freedom is Cauchy's distribution; two have t = (2q − 1)·√(2 / (4q(1 − q))).
        for q in [0.6, 0.9, 0.999] {
            let cauchy = (std::f64::consts::PI * (q - 0.5)).tan();
            assert!((t_quantile(q, 1.0) / cauchy - 1.0).abs() < 1e-9);
            let two = (2.0 * q - 1.0) * (2.0 / (4.0 * q * (1.0 - q))).sqrt();
            assert!((t_quantile(q, 2.0) / two - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn probability_and_quantile_are_inverse() {
        for freedom in [1.0, 2.0, 3.7, 12.0, 200.0] {
            for p in [0.5, 0.05, 0.001] {
                let back = t_two_sided_p(t_quantile(1.0 - p / 2.0, freedom), freedom);
                assert!((back / p - 1.0).abs() < 1e-9, "{freedom} {p} {back}");
            }
        }
        assert_eq!(t_two_sided_p(f64::INFINITY, 2.0), 0.0);
        assert_eq!(t_two_sided_p(0.0, 2.0), 1.0);
    }
}
