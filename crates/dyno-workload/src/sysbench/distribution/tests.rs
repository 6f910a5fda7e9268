//! Known answers: deciles of published generators, and exact laws where there are any.

use dyno_units::Seed;
use proptest::prelude::*;

use super::*;

const SPECIAL: DistributionSpec =
    DistributionSpec::Special { iterations: 12, band_pct: 1.0, hot_pct: 75.0 };

fn deciles(spec: DistributionSpec, n: u64) -> [f64; 10] {
    let distribution = spec.over(n);
    let mut random = Seed(11).stream();
    let n_draws = 400_000;
    let mut shares = [0.0; 10];
    for _ in 0..n_draws {
        shares[(distribution.draw(&mut random) * 10 / n) as usize] += 1.0 / f64::from(n_draws);
    }
    shares
}

#[track_caller]
fn check_deciles(spec: DistributionSpec, expected: [f64; 10]) {
    let found = deciles(spec, 1000);
    for (idx, (found_share, expected_share)) in found.iter().zip(expected).enumerate() {
        assert!((found_share - expected_share).abs() < 0.004, "decile {idx} of {found:?}");
    }
}

#[test]
fn uniform_deciles() {
    check_deciles(DistributionSpec::Uniform, [0.1; 10]);
}

#[test]
fn special_deciles_as_sysbench_has_them() {
    check_deciles(SPECIAL, [0.0, 0.0, 0.002, 0.026, 0.351, 0.593, 0.026, 0.002, 0.0, 0.0]);
}

#[test]
fn special_leaves_the_lowest_quarter_of_its_band_cold() {
    // The central 1 % of 100 000 is 49 500 to 50 500; its upper three quarters begin at 49 750.
    let distribution = SPECIAL.over(100_000);
    let mut random = Seed(5).stream();
    let (mut cold, mut hot) = (0, 0);
    for _ in 0..100_000 {
        match distribution.draw(&mut random) {
            49_505..49_745 => cold += 1,
            49_755..50_495 => hot += 1,
            _ => {}
        }
    }
    assert!(cold < 1000, "{cold}");
    assert!(hot > 73_000, "{hot}");
}

#[test]
fn pareto_follows_its_own_rule() {
    let found = deciles(DistributionSpec::Pareto { h: 0.2 }, 1000);
    // P(item < n·x) = x^(1/p), p = ln h / ln(1 - h) = 7.2126.
    assert!((found[0] - 0.1_f64.powf(1.0 / 7.2126)).abs() < 0.003, "{found:?}");
    assert!((found[0] - 0.72).abs() < 0.01, "{found:?}");
    assert!((found[0] + found[1] - 0.8).abs() < 0.003, "80 % to 20 %: {found:?}");
}

#[test]
fn gaussian_is_a_bell_of_the_right_width() {
    let n = 1_000_000_u64;
    let distribution = DistributionSpec::Gaussian { iterations: 12 }.over(n);
    let mut random = Seed(4).stream();
    let draws: Vec<f64> =
        (0..100_000).map(|_| distribution.draw(&mut random) as f64 / n as f64).collect();
    let mean = draws.iter().sum::<f64>() / draws.len() as f64;
    let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64;
    assert!((mean - 0.5).abs() < 0.001, "{mean}");
    // Var(mean of 12 uniforms) = 1/144.
    assert!((variance * 144.0 - 1.0).abs() < 0.02, "{variance}");
}

/// Pearson's chi-square of draws against Zipf's exact law.
fn chi_square(exponent: f64, n: u64, n_draws: u32) -> f64 {
    let distribution = DistributionSpec::Zipfian { exponent }.over(n);
    let mut random = Seed(21).stream();
    let mut counts = vec![0.0; n as usize];
    for _ in 0..n_draws {
        counts[distribution.draw(&mut random) as usize] += 1.0;
    }
    let weights: Vec<f64> = (1..=n).map(|rank| (rank as f64).powf(-exponent)).collect();
    let total: f64 = weights.iter().sum();
    let expected = weights.iter().map(|weight| weight / total * f64::from(n_draws));
    expected.zip(counts).map(|(expected, count)| (count - expected).powi(2) / expected).sum()
}

#[test]
fn zipfian_follows_its_exact_law() {
    // 99 degrees of freedom: mean 99, 99.99 % quantile 161.
    for exponent in [0.0, 0.5, 0.8, 1.0, 1.0 + 1e-12, 1.3, 2.0] {
        let found = chi_square(exponent, 100, 300_000);
        assert!((50.0..161.0).contains(&found), "exponent {exponent}: chi-square {found}");
    }
    // 1 degree of freedom, 99.99 % quantile 15.1.
    assert!(chi_square(0.8, 2, 100_000) < 15.1);
}

#[test]
fn out_of_range_parameters_are_refused() {
    let check = |name: &str, value: &str| {
        let given = [(name.to_owned(), value.to_owned())].into();
        let options = Options::resolve(OPTIONS, &given).unwrap();
        let error = DistributionSpec::from_options(&options).unwrap_err();
        assert_eq!(error.name, name);
    };
    check("special_res", "100");
    check("special_pct", "0");
    check("pareto_h", "1");
    check("zipfian_exponent", "-0.1");
    check("gaussian_iterations", "0");
}

proptest! {
    #[test]
    fn every_draw_is_an_item(
        seed: u64,
        n in prop_oneof![1_u64..50, Just(u64::MAX), 1_u64..1 << 40],
    ) {
        let mut random = Seed(seed).stream();
        for spec in [
            DistributionSpec::Uniform,
            DistributionSpec::Gaussian { iterations: 3 },
            DistributionSpec::Special { iterations: 12, band_pct: 100.0, hot_pct: 99.9 },
            DistributionSpec::Pareto { h: 0.01 },
            DistributionSpec::Zipfian { exponent: 0.8 },
            DistributionSpec::Zipfian { exponent: 5.0 },
        ] {
            let distribution = spec.over(n);
            for _ in 0..20 {
                prop_assert!(distribution.draw(&mut random) < n);
            }
        }
    }
}
