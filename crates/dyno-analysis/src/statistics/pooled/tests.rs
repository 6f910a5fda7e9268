//! Tables with a known truth.

use dyno_units::{RandomStream, Seed};

use super::super::{Call, Effect, Rule, calls_at};
use super::*;

const RULE: Rule = Rule { threshold: 0.03, confidence: 0.95 };

/// Three variants and a baseline at four steps; half of the noise is the trial's.
fn table(
    blocks: usize,
    spread: impl Fn(usize, usize) -> f64,
    random: &mut RandomStream,
) -> Vec<Vec<Vec<f64>>> {
    let half = std::f64::consts::FRAC_1_SQRT_2;
    let drift: Vec<f64> = (0..blocks).map(|_| 0.05 * random.normal()).collect();
    let mut variant = |variant: usize| {
        let trials: Vec<f64> = (0..blocks).map(|_| random.normal()).collect();
        let mut step = |step: usize| {
            let mut value = |block: usize| {
                drift[block] + spread(variant, step) * half * (trials[block] + random.normal())
            };
            (0..blocks).map(&mut value).collect()
        };
        (0..4).map(&mut step).collect()
    };
    (0..4).map(&mut variant).collect()
}

fn calls(table: &[Vec<Vec<f64>>], effect: f64, is_pooled: bool) -> Vec<Call> {
    let errors = pooled_errors(table).expect("there are enough values");
    let mut effects = Vec::new();
    for variant in 1..table.len() {
        for step in 0..table[0].len() {
            let pairs = table[variant][step].iter().zip(&table[0][step]);
            let added = if variant == 1 { effect } else { 0.0 };
            let differences: Vec<f64> = pairs.map(|(our, their)| our - their + added).collect();
            let own = Effect::paired(&differences, 0.0).expect("there are enough pairs");
            let error = errors[variant - 1][step];
            effects.push(Some(if is_pooled { own.with_error(error) } else { own }));
        }
    }
    let effects: Vec<(Option<Effect>, f64)> =
        effects.into_iter().map(|effect| (effect, 0.05)).collect();
    calls_at(&effects, &RULE).into_iter().map(|(call, _)| call).collect()
}

fn is_difference(call: &Call) -> bool {
    matches!(call, Call::Higher | Call::Lower)
}

#[test]
fn three_repetitions_find_what_they_could_not_alone() {
    let mut random = Seed(71).stream();
    let (mut pooled, mut alone) = (0, 0);
    for _ in 0..300 {
        let table = table(3, |_, _| 0.02, &mut random);
        let found = |is_pooled: bool| {
            calls(&table, 1.1_f64.ln(), is_pooled)[..4].iter().filter(|c| is_difference(c)).count()
        };
        pooled += found(true);
        alone += found(false);
    }
    // 92 % against 14 % in the long run: example `error_rates`, table `pooling`.
    assert!(pooled > 1_040 && alone < 260, "{pooled} and {alone} of 1200");
}

/// Of 600 studies with such spreads.
#[track_caller]
fn check_alarms(spread: impl Fn(usize, usize) -> f64 + Copy, most: u32) {
    let mut random = Seed(72).stream();
    let mut alarms = 0;
    for _ in 0..600 {
        let table = table(3, spread, &mut random);
        alarms += u32::from(calls(&table, 0.0, true).iter().any(is_difference));
    }
    assert!(alarms <= most, "{alarms} of 600");
}

#[test]
fn spreads_that_differ_make_few_false_alarms() {
    // 5 % would be 30; three standard errors above it are 46.
    check_alarms(|_, _| 0.02, 30);
    check_alarms(|variant, _| if variant == 1 { 0.08 } else { 0.02 }, 46);
    check_alarms(|variant, _| if variant == 0 { 0.08 } else { 0.02 }, 46);
    check_alarms(|_, step| if step == 1 { 0.08 } else { 0.02 }, 46);
}

#[test]
fn steps_that_share_all_their_noise_count_once() {
    let mut random = Seed(73).stream();
    let mut freedom = Vec::new();
    for _ in 0..50 {
        let mut table = table(3, |_, _| 0.02, &mut random);
        for variant in &mut table {
            let first = variant[0].clone();
            variant.iter_mut().for_each(|step| step.clone_from(&first));
        }
        freedom.push(pooled_errors(&table).expect("it is pooled")[0][0].freedom);
    }
    assert!(freedom.iter().all(|freedom| (freedom - 6.0).abs() < 1e-6), "{freedom:?}");
}

#[test]
fn too_few_values_have_no_common_error() {
    let mut random = Seed(74).stream();
    let all = table(3, |_, _| 0.02, &mut random);
    assert!(pooled_errors(&all).is_some());
    // Two variants in three blocks have two degrees of freedom.
    assert_eq!(pooled_errors(&all[..2]), None);
    let of_two: Vec<Vec<Vec<f64>>> =
        all.iter().map(|variant| variant.iter().map(|step| step[..2].to_vec()).collect()).collect();
    assert_eq!(pooled_errors(&of_two), None);
    assert_eq!(pooled_errors(&[]), None);
}
