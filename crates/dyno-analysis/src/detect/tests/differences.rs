//! Drifting differences, copied data sets, runs not interleaved.

use std::path::PathBuf;

use dyno_record::Run;
use dyno_units::Seed;

use crate::fixtures::run;
use crate::{CaveatKind, Findings, Options, analyse, analyse_against};

fn has(findings: &Findings, kind: CaveatKind) -> bool {
    findings.caveats.iter().any(|caveat| caveat.kind == kind)
}

/// Eight blocks, every second reversed; b drifts from a by `per_block`, all by `per_trial`.
fn drifting(per_block: f64, per_trial: f64, seed: u64) -> Run {
    let mut random = Seed(seed).stream();
    let noise: Vec<f64> = (0..16).map(|_| 0.002 * random.normal()).collect();
    let place = |variant: usize, block: u32| {
        if block.is_multiple_of(2) { variant } else { 1 - variant }
    };
    let mut run = run(&["a", "b"], &[4], 8, |variant, _, block| {
        let later = f64::from(block) * 2.0 + place(variant, block) as f64;
        let log = per_block * f64::from(block) * variant as f64
            + per_trial * later
            + noise[block as usize * 2 + variant];
        1_000.0 * log.exp()
    });
    for (plan, trial) in run.manifest.trials.iter_mut().zip(&mut run.trials) {
        let block = plan.block - 1;
        plan.number = block * 2 + place(plan.variant, block) as u32 + 1;
        trial.number = plan.number;
    }
    run
}

#[track_caller]
fn check(per_block: f64, per_trial: f64, expected: bool) {
    let findings = analyse(&[drifting(per_block, per_trial, 5)], &Options::default());
    assert_eq!(has(&findings, CaveatKind::DriftingDifferences), expected);
}

#[test]
fn differences_that_drift_are_a_caveat() {
    check(0.0, 0.0, false);
    check(0.01, 0.0, true);
    check(0.0, 0.01, true);
    // Pairing removes drift of whole blocks, which has its own caveat.
    let mut whole = drifting(0.0, 0.0, 5);
    for trial in &mut whole.trials {
        let factor = 1.02_f64.powi(trial.block as i32);
        trial.steps[0] = crate::fixtures::step_summary(0, 1_000.0 * factor, 0.004 / factor);
    }
    let findings = analyse(&[whole], &Options::default());
    assert!(has(&findings, CaveatKind::Drift));
    assert!(!has(&findings, CaveatKind::DriftingDifferences));
}

#[test]
fn noise_alone_is_rarely_called_a_drift_of_differences() {
    let is_called = |seed: &u64| {
        let findings = analyse(&[drifting(0.0, 0.0, *seed)], &Options::default());
        has(&findings, CaveatKind::DriftingDifferences)
    };
    assert!((100..200).filter(is_called).count() <= 4);
}

#[test]
fn one_data_set_for_each_variant_is_a_caveat() {
    let with = |key: &dyn Fn(usize, u32) -> Option<String>| {
        let mut run = run(&["a", "b"], &[4], 3, |_, _, r| 1_000.0 + f64::from(r));
        for trial in &mut run.trials {
            trial.data.key = key(trial.variant, trial.repetition);
        }
        has(&analyse(&[run], &Options::default()), CaveatKind::OneDataSet)
    };
    assert!(with(&|variant, _| Some(format!("set{variant}"))));
    assert!(!with(&|_, _| Some("shared".to_owned())));
    assert!(!with(&|variant, r| Some(format!("set{variant}-{r}"))));
    // Populated for each trial, or an older record.
    assert!(!with(&|_, _| None));
}

#[test]
fn two_runs_were_not_interleaved() {
    let first = run(&["a"], &[4], 3, |_, _, r| 1_000.0 + f64::from(r));
    let mut second = first.clone();
    second.folder = PathBuf::from("runs/second");
    let found = analyse_against(&first, &second, &Options::default());
    assert!(has(&found, CaveatKind::SeparateRuns));
    assert!(!has(&analyse(&[first], &Options::default()), CaveatKind::SeparateRuns));
}
