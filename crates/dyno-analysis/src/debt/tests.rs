//! Debt that grows as planted, and run-offs that end or do not.

use std::collections::BTreeMap;

use dyno_record::{Run, RunOff};
use dyno_units::reading::prelude::*;

use super::DebtTrend;
use crate::fixtures::run;
use crate::{Findings, Options, analyse};

fn found(change: impl Fn(&mut Run)) -> Findings {
    let mut run = run(&["a", "b"], &[4], 3, |_, _, _| 1_000.0);
    change(&mut run);
    analyse(&[run], &Options::default())
}

#[test]
fn a_history_list_that_grows() {
    let findings = found(|run| {
        for trial in &mut run.trials {
            let (id, unit) = ("debt.history_list_length", Unit::other("undo logs"));
            let registered = reading(id, unit, "history list length", "undo logs not yet purged");
            trial.meanings.insert(id.to_owned(), registered.topic(Topic::Debt));
            let slope = if trial.variant == 0 { 120.0 } else { -3.0 };
            let repetition = f64::from(trial.repetition);
            let step = &mut trial.steps[0];
            let value = |start: f64| {
                let wobble = 5.0 * (start * 3.1 + repetition).sin();
                Some(500.0 + slope * (start + 0.5) + wobble)
            };
            let column = step.intervals.start_s.iter().map(|s| value(*s)).collect();
            step.readings.insert("debt.history_list_length".to_owned(), column);
        }
    });
    let [grew, shrank] = findings.debt.as_slice() else { panic!("{:?}", findings.debt) };
    assert_eq!((grew.trend, shrank.trend), (DebtTrend::Grew, DebtTrend::Shrank));
    assert!((grew.slope_per_s.value - 120.0).abs() < 2.0, "{grew:?}");
    assert_eq!(grew.slope_per_s.unit, "undo logs/s");
    assert!(grew.slope_per_s.low.unwrap() > 115.0 && grew.slope_per_s.high.unwrap() < 125.0);
    assert!((grew.at_start.value - 560.0).abs() < 8.0, "{grew:?}");
    assert!((grew.at_end.value - 1_640.0).abs() < 8.0, "{grew:?}");
    assert_eq!(grew.meaning, "undo logs not yet purged");
    assert!(shrank.slope_per_s.value < 0.0);
}

fn run_off(paid_after_s: Option<f64>, unseen: Option<&str>) -> RunOff {
    RunOff {
        limit_s: 60.0,
        paid_after_s,
        unseen: unseen.map(str::to_owned),
        start_s: Vec::new(),
        readings: BTreeMap::new(),
    }
}

#[test]
fn debt_is_paid_after_a_while() {
    let findings = found(|run| {
        for trial in run.trials.iter_mut().filter(|trial| trial.variant == 0) {
            trial.run_off = Some(run_off(Some(20.0 + f64::from(trial.repetition)), None));
        }
    });
    let [facts] = findings.run_off.as_slice() else { panic!("{:?}", findings.run_off) };
    assert!((facts.paid_after_s.as_ref().unwrap().value - 22.0).abs() < 0.1);
    assert!(facts.summary.starts_with("a had caught up 22 s after the load ended (95 % CI "));
    assert!(facts.unpaid.is_empty());
}

#[test]
fn debt_that_is_never_paid_or_seen_is_said() {
    let findings = found(|run| {
        for trial in &mut run.trials {
            trial.run_off = Some(match (trial.variant, trial.repetition) {
                (0, _) => run_off(None, None),
                (_, 1) => run_off(Some(10.0), None),
                (_, 2) => run_off(None, None),
                _ => run_off(None, Some("the server does not tell.")),
            });
        }
    });
    assert_eq!(findings.run_off[0].paid_after_s, None);
    assert_eq!(findings.run_off[0].summary, "a had not caught up within 60 s in 3 trials.");
    let mixed = &findings.run_off[1];
    assert_eq!((mixed.unpaid.as_slice(), mixed.unseen.as_slice()), (&[4][..], &[6][..]));
    assert_eq!(
        mixed.summary,
        "b had caught up 10 s after the load ended (n = 1, no CI), had not caught up within 60 s in \
         1 trial and could not be observed in 1 trial (the server does not tell)."
    );
}
