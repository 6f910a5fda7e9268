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
    let both = "At 16 clients, both are at the volume's limit.";
    check(&["a", "b"], &|_, _| Some(VOLUME), &[both]);
    check(&["a"], &|_, _| Some(CPUS), &["At 16 clients, a is at the limit of the host's CPUs."]);
    let three = "At 16 clients, all 3 are at the volume's limit.";
    check(&["a", "b", "c"], &|_, _| Some(VOLUME), &[three]);
    let unlike = "At 16 clients, a is at the volume's limit; b is at the limit of the host's CPUs.";
    check(&["a", "b"], &|v, _| Some([VOLUME, CPUS][v]), &[unlike]);
    // Trials that disagree are counted, and what is not known is not a limit.
    let counted = "At 16 clients, a is at the volume's limit in 2 of 3 trials; b is not known to be at a \
                   limit.";
    let two = |v: usize, r: u32| (v == 0 && r > 1).then_some(VOLUME);
    check(&["a", "b"], &two, &[counted]);
    check(&["a", "b"], &|v, r| (v == 0 && r > 2).then_some(VOLUME), &[]);
    check(&["a", "b"], &|_, _| None, &[]);
}
