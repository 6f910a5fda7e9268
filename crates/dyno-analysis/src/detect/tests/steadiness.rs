//! Unsteadiness, one way at a time.

use crate::fixtures::run;
use crate::{Caveat, CaveatKind, Options, analyse};

/// `second` gives throughput by trial and second.
fn found(kind: CaveatKind, second: impl Fn(u32, usize) -> f64) -> Vec<Caveat> {
    let mut run = run(&["a"], &[4], 3, |_, _, _| 1000.0);
    for trial in &mut run.trials {
        let step = &mut trial.steps[0];
        step.measured_s = 60.0;
        step.intervals.start_s = (0..62).map(|i| f64::from(i) - 2.0).collect();
        let measured = (0..60).map(|i| second(trial.number, i));
        // The warm-up does not count.
        step.intervals.throughput = [10.0, 10.0].into_iter().chain(measured).collect();
    }
    let caveats = analyse(&[run], &Options::default()).caveats;
    caveats.into_iter().filter(|caveat| caveat.kind == kind).collect()
}

fn wobble(i: usize) -> f64 {
    [3.0, -4.0, 9.0, 0.0, -7.0, 5.0, -6.0][i % 7] * 2.0
}

#[test]
fn a_warm_up_that_goes_on() {
    let slow = |_: u32, i: usize| if i < 12 { 700.0 } else { 1000.0 + wobble(i) };
    let caveats = found(CaveatKind::WarmUpTooShort, slow);
    assert!(
        caveats[0].message.contains("a at 4 clients (up to 12 s in 3 of 3 trials)"),
        "{caveats:?}"
    );
    assert!(caveats[0].advice.contains("by 12 s"), "{caveats:?}");
    // One trial of three may be chance.
    let once = |trial: u32, i: usize| slow(trial, if trial == 2 { i } else { i + 12 });
    assert_eq!(found(CaveatKind::WarmUpTooShort, once), []);
}

#[test]
fn throughput_that_falls_all_the_time() {
    let falls = |_: u32, i: usize| 1000.0 - 5.0 * i as f64 + wobble(i);
    let caveats = found(CaveatKind::NeverSteady, falls);
    assert!(caveats[0].message.contains("from beginning to end in 3 of 3"), "{caveats:?}");
    assert_eq!(found(CaveatKind::NeverSteady, |_, i| 1000.0 + wobble(i)), []);
    assert_eq!(found(CaveatKind::NotSteady, falls), []);
}

#[test]
fn a_level_that_changes_to_the_end_was_never_steady() {
    let steps = |_: u32, i: usize| if i < 50 { 1000.0 } else { 800.0 } + wobble(i);
    let caveats = found(CaveatKind::NeverSteady, steps);
    assert!(caveats[0].message.contains("1 level change in 3 of 3"), "{caveats:?}");
}

#[test]
fn a_level_that_changes() {
    let steps = |_: u32, i: usize| if i < 40 { 1000.0 } else { 800.0 } + wobble(i);
    let caveats = found(CaveatKind::NotSteady, steps);
    assert!(caveats[0].message.contains("1 level change in 3 of 3"), "{caveats:?}");
}

#[test]
fn a_stall_of_one_kind_is_told_as_that() {
    let of = |kinds: &[(&str, u64)], stalled: &[&str]| {
        let cell = crate::Cell {
            kinds: kinds.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect(),
            ..crate::Cell::default()
        };
        let kinds = stalled.iter().map(|kind| (*kind).to_owned()).collect();
        let stall = crate::StallFacts { kinds, ..crate::StallFacts::default() };
        crate::detect::steadiness::of_kinds("insert-benchmark", &cell, &[&stall])
    };
    let kinds = [("insert", 40), ("market", 31_000), ("delete", 0)];
    assert_eq!(of(&kinds, &["insert"]), ", only insert");
    assert_eq!(of(&kinds, &["market"]), ", only market query");
    assert_eq!(of(&kinds, &["insert", "market"]), "");
    assert_eq!(of(&kinds[..1], &["insert"]), "");
}

#[test]
fn stalls_are_told_even_of_one_trial() {
    let stall = |trial: u32, i: usize| {
        if trial == 1 && (30..32).contains(&i) { 0.0 } else { 1000.0 + wobble(i) }
    };
    let caveats = found(CaveatKind::Stalls, stall);
    assert!(caveats[0].message.contains("1 stall, 2 s; about 2,000 "), "{caveats:?}");
}
