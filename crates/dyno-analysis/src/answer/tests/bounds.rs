//! The sentence on what was at its limit.

use dyno_record::{Run, StepSummary};

use crate::fixtures::{run, wobble};
use crate::{Options, analyse};

fn set(step: &mut StepSummary, reading: &str, value: f64) {
    let n = step.intervals.start_s.len();
    step.readings.insert(reading.to_owned(), vec![Some(value); n]);
}

/// At 4 and 16 clients, three trials each.
fn made(variants: &[&str]) -> Run {
    run(variants, &[4, 16], 3, |v, s, r| 1_000.0 * wobble(v, s, r))
}

/// Of a variant and a repetition.
type Reading<'a> = &'a dyn Fn(usize, u32) -> Option<(&'static str, f64)>;

/// The sentence of a study in which each trial has this reading at the second load level.
fn said(mut run: Run, reading: Reading<'_>) -> Vec<String> {
    for trial in &mut run.trials {
        if let Some((name, value)) = reading(trial.variant, trial.repetition) {
            set(&mut trial.steps[1], name, value);
        }
    }
    let lines = analyse(&[run], &Options::default()).answer.lines;
    lines.into_iter().filter(|line| line.contains("limit")).collect()
}

const VOLUME: (&str, f64) = ("data_disk.limit_used_pct", 99.0);
const CPUS: (&str, f64) = ("cpu.busy_pct", 97.0);

#[test]
fn variants_at_their_limits_are_named_with_them() {
    let check = |variants: &[&str], reading: Reading<'_>, expected: &[&str]| {
        assert_eq!(said(made(variants), reading), expected);
    };
    let both = "At 16 clients, both are at the volume's limit (n = 3).";
    check(&["a", "b"], &|_, _| Some(VOLUME), &[both]);
    let alone = "At 16 clients, a is at the limit of the host's CPUs (n = 3).";
    check(&["a"], &|_, _| Some(CPUS), &[alone]);
    let three = "At 16 clients, all 3 are at the volume's limit (n = 3).";
    check(&["a", "b", "c"], &|_, _| Some(VOLUME), &[three]);
    let unlike = "At 16 clients, a is at the volume's limit (n = 3); b is at the limit of the host's \
                  CPUs (n = 3).";
    check(&["a", "b"], &|v, _| Some([VOLUME, CPUS][v]), &[unlike]);
    // Trials that disagree are counted, and what is not known is not a limit.
    let counted = "At 16 clients, a is at the volume's limit in 2 of 3 trials; b is not known to be at a \
                   limit.";
    let two = |v: usize, r: u32| (v == 0 && r > 1).then_some(VOLUME);
    check(&["a", "b"], &two, &[counted]);
    check(&["a", "b"], &|v, r| (v == 0 && r > 2).then_some(VOLUME), &[]);
    check(&["a", "b"], &|_, _| None, &[]);
}

#[test]
fn the_heaviest_load_is_not_the_last_in_the_file() {
    let mut run = run(&["a", "b"], &[16, 4], 3, |v, s, r| 1_000.0 * wobble(v, s, r));
    for trial in &mut run.trials {
        set(&mut trial.steps[0], VOLUME.0, VOLUME.1);
        set(&mut trial.steps[1], CPUS.0, CPUS.1);
    }
    let lines = analyse(&[run], &Options::default()).answer.lines;
    let both = "At 16 clients, both are at the volume's limit (n = 3).";
    assert!(lines.iter().any(|line| line == both), "{lines:?}");
}

#[test]
fn the_cheapest_and_the_next_each_have_the_limit_at_their_own_load() {
    let throughput = |v: usize, s: usize, r: u32| {
        [[1_000.0, 3_000.0], [2_000.0, 1_000.0]][v][s] * wobble(v, s, r)
    };
    let mut run = run(&["a", "b"], &[4, 16], 3, throughput);
    run.manifest.questions = vec![dyno_units::Question::Cost];
    for variant in &mut run.manifest.variants {
        let currency = "USD".to_owned();
        variant.price_per_hour = Some(dyno_record::Price { amount: 1.0, currency });
    }
    for trial in &mut run.trials {
        for step in &mut trial.steps {
            set(step, VOLUME.0, VOLUME.1);
        }
    }
    let answer = analyse(&[run], &Options::default()).answer;
    let both = "A at 16 clients and b at 4 clients are at the volume's limit (n = 3).";
    assert!(
        answer.lines.iter().any(|line| line.to_lowercase() == both.to_lowercase()),
        "{answer:?}"
    );
    assert!(answer.headline.contains("best of 2 loads"), "{answer:?}");
    assert!(answer.claims.iter().all(|claim| claim.best_of == Some(2)), "{answer:?}");
}
