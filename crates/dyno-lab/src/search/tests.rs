//! Searches on systems of known capacity: without noise, with noise, with contradictions.

use dyno_units::{RandomStream, Seed};
use proptest::prelude::*;

use super::*;

const RATES: Space =
    Space { start: 10.0, least: 0.1, most: 1e7, growth: 4.0, precision: 0.05, is_whole: false };

const CLIENTS: Space =
    Space { start: 1.0, least: 1.0, most: 1024.0, growth: 2.0, precision: 0.05, is_whole: true };

/// Searches to the end; returns the probed levels with it.
fn search(space: Space, mut holds: impl FnMut(f64) -> bool) -> (Vec<f64>, Found) {
    let mut search = Search::new(space);
    let mut probed = Vec::new();
    while let Some(level) = search.next_level() {
        probed.push(level);
        search.tell(level, holds(level));
    }
    (probed, search.found())
}

/// Searches a system that breaks above `truth`.
fn search_step(space: Space, truth: f64) -> (Vec<f64>, Found) {
    search(space, |level| level <= truth)
}

/// Erlang's C formula: the probability that a customer of M/M/c waits, for `load` = rate × mean
/// service time < c.
fn erlang_c(c: u32, load: f64) -> f64 {
    let mut term = 1.0;
    let mut sum = 1.0;
    for k in 1..c {
        term *= load / f64::from(k);
        sum += term;
    }
    let last = term * load / f64::from(c) * f64::from(c) / (f64::from(c) - load);
    last / (sum + last)
}

/// P(response time > t) of M/M/c with mean service time 1/μ; waiting and service time are
/// independent (Gross and Harris, 2.3).
fn response_above(c: u32, mu: f64, rate: f64, t: f64) -> f64 {
    let load = rate / mu;
    let wait = erlang_c(c, load);
    let theta = f64::from(c) * mu - rate;
    if (theta - mu).abs() < 1e-9 * mu {
        return (1.0 + wait * mu * t) * (-mu * t).exp();
    }
    let served = (-mu * t).exp();
    served + wait * mu / (theta - mu) * (served - (-theta * t).exp())
}

/// The quantile of the response time; infinite from saturation on.
fn response_quantile(c: u32, mu: f64, rate: f64, quantile: f64) -> f64 {
    if rate >= f64::from(c) * mu {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while response_above(c, mu, rate, high) > 1.0 - quantile {
        high *= 2.0;
    }
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if response_above(c, mu, rate, middle) > 1.0 - quantile {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The rate at which the quantile meets the limit.
fn true_rate(c: u32, mu: f64, quantile: f64, limit: f64) -> f64 {
    let (mut low, mut high) = (0.0, f64::from(c) * mu);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if response_quantile(c, mu, middle, quantile) <= limit {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[test]
fn the_formulas_of_the_test_agree_where_both_are_known() {
    // M/M/1: the response time is exponential with rate μ − λ.
    let expected = 100_f64.ln() / (1000.0 - 700.0);
    assert!((response_quantile(1, 1000.0, 700.0, 0.99) / expected - 1.0).abs() < 1e-9);
    let rate = true_rate(1, 1000.0, 0.99, 0.02);
    assert!((rate - (1000.0 - 100_f64.ln() / 0.02)).abs() < 1e-6);
    // Erlang's C with two servers is 2ρ² / (1 + ρ).
    let rho: f64 = 0.6;
    assert!((erlang_c(2, 2.0 * rho) - 2.0 * rho * rho / (1.0 + rho)).abs() < 1e-12);
}

#[test]
fn queues_without_noise_are_found_to_the_precision() {
    for (c, quantile, limit) in [(1, 0.99, 0.02), (1, 0.5, 0.002), (4, 0.95, 0.01), (16, 0.99, 0.1)]
    {
        let truth = true_rate(c, 1000.0, quantile, limit);
        let (probed, found) =
            search(RATES, |rate| response_quantile(c, 1000.0, rate, quantile) <= limit);
        let (held, broken) = (found.held.expect("it held"), found.broken.expect("it broke"));
        assert!(held <= truth && truth < broken, "{held} … {broken} around {truth}");
        assert!(broken / held <= 1.0511 && found.is_settled);
        assert!(probed.len() <= 16, "{} probes", probed.len());
    }
}

#[test]
fn queues_with_noise_are_found_within_ten_percent() {
    for (c, deviation) in [(1, 0.05), (1, 0.15), (8, 0.1)] {
        let truth = true_rate(c, 1000.0, 0.99, 0.02);
        let mut errors = Vec::new();
        for seed in 0..200 {
            let mut random = Seed(seed).stream();
            let (probed, found) = search(RATES, |rate| {
                let noise = (deviation * random.normal()).exp();
                response_quantile(c, 1000.0, rate, 0.99) * noise <= 0.02
            });
            assert!(probed.len() <= PROBES_MOST);
            errors.push(found.held.expect("it held") / truth - 1.0);
        }
        errors.sort_by(f64::total_cmp);
        let (low, middle, high) = (errors[5], errors[100], errors[195]);
        assert!(low > -0.12 && high < 0.08, "{c}: {low} … {middle} … {high}");
        // The level that is found lies below the truth by about half a precision.
        assert!((-0.07..0.01).contains(&middle), "{c}: {middle}");
    }
}

#[test]
fn one_false_break_far_below_the_truth_does_not_end_the_search_there() {
    for false_break in 0..12 {
        let mut n = 0;
        let (_, found) = search(RATES, |rate| {
            n += 1;
            rate <= 5_000.0 && n != false_break + 1
        });
        let held = found.held.expect("it held");
        assert!((4_500.0..=5_000.0).contains(&held), "break of probe {false_break}: {held}");
    }
}

#[test]
fn one_lucky_probe_above_the_truth_is_not_believed() {
    for lucky in 0..12 {
        let mut n = 0;
        let (_, found) = search(RATES, |rate| {
            n += 1;
            rate <= 5_000.0 || n == lucky + 1
        });
        let held = found.held.expect("it held");
        assert!((4_500.0..=5_000.0).contains(&held), "luck of probe {lucky}: {held}");
    }
}

#[test]
fn ends_of_the_space_are_findings() {
    let all = |held, broken| Found { held, broken, is_settled: true };
    assert_eq!(search_step(CLIENTS, 1e9).1, all(Some(1024.0), None));
    assert_eq!(search_step(CLIENTS, 0.0).1, all(None, Some(1.0)));
    assert_eq!(search_step(RATES, 0.0).1, all(None, Some(0.1)));
    assert_eq!(search_step(RATES, 1e9).1, all(Some(1e7), None));
    let one = Space { most: 1.0, ..CLIENTS };
    assert_eq!(search_step(one, 5.0).1, all(Some(1.0), None));
}

#[test]
fn whole_numbers_are_found_exactly_while_they_are_small() {
    for truth in 1..20_u32 {
        let (probed, found) = search_step(CLIENTS, f64::from(truth));
        assert_eq!(found.held, Some(f64::from(truth)), "{probed:?}");
        assert_eq!(found.broken, Some(f64::from(truth) + 1.0));
        assert!(probed.iter().all(|level| level.fract() == 0.0));
    }
}

#[test]
fn the_order_of_probes_is_raise_halve_confirm() {
    let (probed, _) = search_step(CLIENTS, 11.0);
    assert_eq!(probed, [1.0, 2.0, 4.0, 8.0, 16.0, 11.0, 13.0, 12.0, 11.0, 12.0]);
}

fn spaces() -> impl Strategy<Value = Space> {
    (1.0..1e4_f64, 1.0..1e3_f64, 1.0..1e4_f64, 1.5..8.0_f64, 0.005..0.5_f64, any::<bool>())
        .prop_map(|(least, above, further, growth, precision, is_whole)| {
            let round = |value: f64| if is_whole { value.round() } else { value };
            let (least, start) = (round(least), round(least * above));
            Space { start, least, most: round(start * further), growth, precision, is_whole }
        })
}

proptest! {
    #[test]
    fn any_monotone_system_is_bracketed(space in spaces(), share in -0.1..1.1_f64) {
        let truth = space.least * (space.most / space.least).powf(share);
        let (probed, found) = search_step(space, truth);
        prop_assert!(found.is_settled, "{} probes", probed.len());
        prop_assert!(probed.iter().all(|level| (space.least..=space.most).contains(level)));
        match (found.held, found.broken) {
            (Some(held), Some(broken)) => {
                prop_assert!(held <= truth && truth < broken);
                prop_assert!(space.is_close(held, broken));
            }
            (Some(held), None) => prop_assert!(held == space.most && truth >= held),
            (None, Some(broken)) => prop_assert!(broken == space.least && truth < broken),
            (None, None) => prop_assert!(false, "nothing was probed"),
        }
        // Both ends were seen twice, all else once.
        let times = |level: f64| probed.iter().filter(|other| **other == level).count();
        for level in [found.held, found.broken].into_iter().flatten() {
            prop_assert_eq!(times(level), 2);
        }
    }

    #[test]
    fn any_answers_at_all_end_the_search(space in spaces(), seed: u64, share in 0.0..1.0_f64) {
        let mut random: RandomStream = Seed(seed).stream();
        let mut told: Vec<(f64, bool)> = Vec::new();
        let (probed, found) = search(space, |level| {
            let held = random.unit() < share;
            told.push((level, held));
            held
        });
        prop_assert!(!probed.is_empty() && probed.len() <= PROBES_MOST);
        prop_assert!(probed.iter().all(|level| (space.least..=space.most).contains(level)));
        if let Some(held) = found.held {
            let n = told.iter().filter(|(level, is_held)| *level == held && *is_held).count();
            prop_assert!(n >= 2);
            prop_assert!(found.broken.is_none_or(|broken| broken > held));
        }
    }
}
