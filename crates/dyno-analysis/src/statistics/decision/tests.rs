//! Effects with a known truth.

use dyno_units::{RandomStream, Seed};

use super::*;

const RULE: Rule = Rule { threshold: 0.03, confidence: 0.95 };

fn effect(value: f64, spread: f64, n: u32) -> Effect {
    let standard_error = spread / f64::from(n).sqrt();
    Effect { value, standard_error, freedom: f64::from(n - 1), n, rounding: 0.0 }
}

#[track_caller]
fn check(effects: &[Effect], expected: &[Call]) {
    let effects: Vec<Option<Effect>> = effects.iter().copied().map(Some).collect();
    let calls: Vec<Call> = decide(&effects, &RULE).iter().map(|d| d.call).collect();
    assert_eq!(calls, expected);
}

#[test]
fn one_effect_alone() {
    check(&[effect(0.10, 0.01, 3)], &[Call::Higher]);
    check(&[effect(-0.10, 0.01, 3)], &[Call::Lower]);
    check(&[effect(0.001, 0.005, 3)], &[Call::Inside]);
    // Surely above zero, but too small to matter.
    check(&[effect(0.01, 0.001, 3)], &[Call::Inside]);
    // Surely above zero; it may matter.
    check(&[effect(0.03, 0.005, 3)], &[Call::Higher]);
    check(&[effect(0.10, 0.10, 3)], &[Call::Undecided]);
    check(&[effect(0.0, 0.0, 2)], &[Call::Inside]);
}

#[test]
fn a_family_asks_for_more() {
    // t = 8.7 with two degrees of freedom: p = 0.013, enough alone, not among five.
    let lone = effect(0.05, 0.01, 3);
    check(&[lone], &[Call::Higher]);
    let wide = effect(0.0, 0.2, 3);
    let undecided = [Call::Undecided; 5];
    check(&[lone, wide, wide, wide, wide], &undecided);
}

#[test]
fn the_band_is_symmetric_for_exchanged_variants() {
    for value in [0.0285, 0.0295, 0.0300] {
        let (plus, minus) = (effect(value, 0.0001, 5), effect(-value, 0.0001, 5));
        let calls = decide(&[Some(plus), Some(minus)], &RULE);
        assert_eq!(calls[0].call == Call::Inside, calls[1].call == Call::Inside, "{value}");
    }
}

#[test]
fn without_bounds_nobody_knows_how_many_would_decide() {
    let decision = decide(&[None], &RULE)[0];
    assert_eq!(
        decision,
        Decision { call: Call::Undecided, p_value: None, repetitions_needed: None }
    );
}

/// Share of new runs of `n` repetitions that decide.
fn decided(value: f64, spread: f64, n: u32) -> f64 {
    let mut random = Seed(46).stream();
    let mut hits = 0;
    for _ in 0..1_500 {
        let pairs: Vec<f64> = (0..n).map(|_| value + spread * random.normal()).collect();
        let (call, _) = calls_at(&[(Effect::paired(&pairs, 0.0), 0.05)], &RULE)[0];
        hits += u32::from(call != Call::Undecided);
    }
    f64::from(hits) / 1_500.0
}

#[test]
fn the_repetitions_asked_for_decide_four_times_of_five() {
    for (value, spread) in [(0.05_f64, 0.03_f64), (0.02, 0.04), (0.0, 0.03)] {
        let undecided = effect(value, spread.max(3.0 * value / 4.3), 3);
        let needed = decide(&[Some(undecided)], &RULE)[0].repetitions_needed.expect("undecided");
        let share = decided(value, spread.max(3.0 * value / 4.3), needed);
        assert!((0.76..0.90).contains(&share), "{value}: {share} with {needed}");
    }
}

#[test]
fn repetitions_are_capped() {
    let hopeless = effect(0.0, 10.0, 3);
    let decision = decide(&[Some(hopeless)], &RULE)[0];
    assert_eq!(decision.repetitions_needed, Some(REPETITIONS_CAP));
    let no_band = Rule { threshold: 0.0, confidence: 0.95 };
    let decision = decide(&[Some(effect(0.0, 0.01, 3))], &no_band)[0];
    assert_eq!(decision.repetitions_needed, Some(REPETITIONS_CAP));
}

/// Whose true mean is `effect`.
fn ratios(effect: f64, n: usize, noise: &mut dyn FnMut() -> f64) -> Vec<f64> {
    (0..n).map(|_| effect + noise() - noise()).collect()
}

/// With a family of `family` comparisons in which any is a hit.
fn share_of_studies(
    family: usize,
    studies: u32,
    draw: &mut dyn FnMut() -> Option<Effect>,
    is_hit: fn(Call) -> bool,
) -> f64 {
    let mut hits = 0;
    for _ in 0..studies {
        let effects: Vec<Option<Effect>> = (0..family).map(|_| draw()).collect();
        let effects: Vec<(Option<Effect>, f64)> =
            effects.into_iter().map(|effect| (effect, 0.05)).collect();
        hits += u32::from(calls_at(&effects, &RULE).iter().any(|(call, _)| is_hit(*call)));
    }
    f64::from(hits) / f64::from(studies)
}

fn is_difference(call: Call) -> bool {
    matches!(call, Call::Higher | Call::Lower)
}

fn normal(random: &mut RandomStream) -> f64 {
    0.03 * random.normal()
}

/// Noise with a long tail to one side.
fn skewed(random: &mut RandomStream) -> f64 {
    -0.03 * random.exponential(1.0)
}

#[test]
fn studies_without_an_effect_rarely_see_one() {
    for noise in [normal, skewed] {
        for n in [3, 5, 10] {
            let mut random = Seed(42).derive("false", n as u64).stream();
            let mut paired = || Effect::paired(&ratios(0.0, n, &mut || noise(&mut random)), 0.0);
            let rate = share_of_studies(8, 800, &mut paired, is_difference);
            // 0.075 is three standard errors above the stated 0.05.
            assert!(rate <= 0.075, "paired, n = {n}: {rate}");
            let mut random = Seed(43).derive("false", n as u64).stream();
            let mut sample = || (0..n).map(|_| noise(&mut random)).collect::<Vec<f64>>();
            let mut welch = || Effect::welch(&sample(), &sample(), 0.0);
            let rate = share_of_studies(8, 800, &mut welch, is_difference);
            assert!(rate <= 0.075, "Welch, n = {n}: {rate}");
        }
    }
}

#[test]
fn an_injected_effect_is_found() {
    for noise in [normal, skewed] {
        let mut random = Seed(44).stream();
        let mut draw = || Effect::paired(&ratios(-0.25, 10, &mut || noise(&mut random)), 0.0);
        assert!(share_of_studies(1, 200, &mut draw, |call| call == Call::Lower) > 0.98);
    }
}

#[test]
fn an_effect_as_large_as_the_threshold_is_rarely_called_none() {
    let mut random = Seed(45).stream();
    let mut noise = || 0.01 * random.normal();
    let mut draw = || Effect::paired(&ratios(RULE.band(), 5, &mut noise), 0.0);
    // The stated rate is 0.025.
    assert!(share_of_studies(1, 800, &mut draw, |call| call == Call::Inside) <= 0.042);
}
