//! One problem of a run at a time.

use std::collections::BTreeMap;

use dyno_record::{Canary, OwnStepRecord, Run, RunOff, Settled, StepSummary};
use dyno_units::reading::prelude::*;

use super::super::tests::{caveats_of, contains, only, sound};
use super::slope_and_p;
use crate::fixtures::{register, run, wobble};
use crate::{Caveat, CaveatKind};

fn set(step: &mut StepSummary, name: &str, value: impl Fn(f64) -> f64) {
    let column = step.intervals.start_s.iter().map(|start| Some(value(*start))).collect();
    step.readings.insert(name.to_owned(), column);
}

#[test]
fn sequential_order() {
    let caveat = only(CaveatKind::SequentialOrder, |run| {
        run.manifest.order = "sequential".to_owned();
    });
    contains(&caveat.advice, "interleaved");
    let mut alone = run(&["a"], &[4], 3, |_, _, _| 5_000.0);
    alone.manifest.order = "sequential".to_owned();
    assert_eq!(caveats_of(alone), []);
}

/// Eight blocks, each slower than the last by this factor.
fn drifting(factor: f64) -> Vec<Caveat> {
    let rate = |variant: usize, step: usize, repetition: u32| {
        5_000.0 * wobble(variant, step, repetition) * factor.powi(repetition as i32)
    };
    let caveats = caveats_of(run(&["a", "b"], &[4], 8, rate));
    caveats.into_iter().filter(|caveat| caveat.kind == CaveatKind::Drift).collect()
}

#[test]
fn blocks_that_become_slower() {
    let caveats = drifting(0.98);
    contains(&caveats[0].message, "from the first to the last of 8 blocks");
    contains(&caveats[0].message, "−1");
    assert_eq!(drifting(1.0), []);
    // Certain, but too small to matter.
    assert_eq!(drifting(0.9995), []);
}

#[test]
fn a_slope_and_its_p_value() {
    let line: Vec<(f64, f64)> = [0.1, -0.1, 0.1, -0.1, 0.1]
        .iter()
        .zip(0..)
        .map(|(e, i)| (f64::from(i), e + 2.0 * f64::from(i)))
        .collect();
    let (slope, p) = slope_and_p(&line).expect("five points");
    assert!((slope - 2.0).abs() < 0.05 && p < 0.001, "{slope} {p}");
    assert_eq!(slope_and_p(&line[..4]), None);
}

#[test]
fn a_canary_that_was_slow() {
    let caveat = only(CaveatKind::NoisyHost, |run| {
        for trial in &mut run.trials {
            trial.canary = Some(Canary { before_s: 0.05, after_s: 0.052 });
        }
        run.trials[3].canary = Some(Canary { before_s: 0.05, after_s: 0.11 });
    });
    contains(
        &caveat.message,
        "took 110 ms after trial 4 (b; median over all trials that were kept: 51 ms)",
    );
    assert_eq!(caveat.variants, [1]);
}

#[test]
fn stolen_time_and_other_processes() {
    let caveat = only(CaveatKind::NoisyHost, |run| {
        set(&mut run.trials[0].steps[0], "cpu.steal_pct", |_| 7.0);
        set(&mut run.trials[1].steps[0], "rest.cpu_s_per_s", |_| 1.5);
        // Under a tenth of four CPUs is ordinary.
        set(&mut run.trials[2].steps[0], "rest.cpu_s_per_s", |_| 0.3);
        // The load's own interrupts.
        set(&mut run.trials[3].steps[0], "rest.cpu_s_per_s", |_| 0.9);
        set(&mut run.trials[3].steps[0], "cpu.unsampled_s_per_s", |_| 0.6);
    });
    contains(&caveat.message, "CPU steal reached 7 % (a at 4 clients)");
    contains(
        &caveat.message,
        "other processes and the kernel's own threads used up to 1.50 of 4 CPUs (b at 4 clients)",
    );
    assert_eq!(caveat.variants, [0, 1]);
}

#[test]
fn a_server_that_was_started_anew() {
    let spoil = |run: &mut Run| {
        set(&mut run.trials[1].steps[0], "mysql.uptime_s", |s| {
            if s < 5.0 { 100.0 + s } else { s - 5.0 }
        });
        set(&mut run.trials[0].steps[0], "mysql.uptime_s", |s| 100.0 + s);
        register(run, &[reading("*.uptime_s", Seconds, "x", "x").role(Role::Uptime)]);
    };
    let caveat = only(CaveatKind::ServerRestarted, spoil);
    contains(&caveat.message, "during 1 measurement phase, first in trial 2 (b at 4 clients)");
    let caveat = only(CaveatKind::ServerRestarted, |run| {
        set(&mut run.trials[0].steps[0], "server.processes", |s| if s == 3.0 { 0.0 } else { 1.0 });
    });
    contains(&caveat.message, "first in trial 1 (a at 4 clients)");
}

fn own(run: &mut Run, ends_by_quota: bool) {
    let own = OwnStepRecord { roles: Vec::new(), ends_by_quota, settle_s: 10.0 };
    run.manifest.steps[0].own = Some(own);
    for trial in &mut run.trials {
        trial.steps[0].ended_by = Some(if ends_by_quota { "quota" } else { "time" }.to_owned());
    }
}

#[test]
fn a_quota_that_was_not_done() {
    let caveat = only(CaveatKind::UnfinishedQuota, |run| {
        own(run, true);
        run.trials[1].steps[0].ended_by = Some("limit".to_owned());
    });
    contains(&caveat.message, "b at 4 clients (1 of 3)");
}

#[test]
fn a_step_that_did_not_become_steady() {
    let caveat = only(CaveatKind::UnfinishedQuota, |run| {
        for trial in &mut run.trials {
            trial.steps[0].ended_by = Some("steady".to_owned());
        }
        run.trials[1].steps[0].ended_by = Some("unsteady".to_owned());
    });
    contains(&caveat.message, "b at 4 clients (1 of 3)");
    contains(&caveat.advice, "until_steady");
}

#[test]
fn debt_that_was_left_before_a_step_or_after_the_load() {
    let settled = |paid| Settled { limit_s: 10.0, took_s: 10.0, paid, notes: Vec::new() };
    let caveat = only(CaveatKind::NotCaughtUp, |run| {
        own(run, false);
        for trial in &mut run.trials {
            trial.steps[0].settled = Some(settled(trial.variant == 0));
        }
        run.trials[0].run_off = Some(RunOff {
            limit_s: 30.0,
            paid_after_s: None,
            unseen: None,
            start_s: Vec::new(),
            readings: BTreeMap::new(),
        });
    });
    contains(&caveat.message, "b at 4 clients began with a backlog in 3 of 3");
    contains(&caveat.message, "a had not caught up within 30 s in 1 trial");
    assert_eq!(caveat.variants, [0, 1]);
}

#[test]
fn a_sound_run_has_no_course() {
    assert_eq!(caveats_of(sound()), []);
}
