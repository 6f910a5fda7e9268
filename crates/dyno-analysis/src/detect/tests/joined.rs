//! Workloads and steps that differ between runs.

use std::path::PathBuf;

use dyno_record::Run;

use crate::fixtures::run;
use crate::{CaveatKind, Findings, Options, analyse};

/// A second run, changed: is there such a caveat, with this message?
fn check(kind: CaveatKind, change: impl Fn(&mut Run), expected: Option<&str>) -> Findings {
    let first = run(&["a", "b"], &[1, 4], 3, |_, _, r| 1000.0 + f64::from(r));
    let mut second = first.clone();
    second.folder = PathBuf::from("runs/second");
    change(&mut second);
    let found = analyse(&[first, second], &Options::default());
    let caveat = found.caveats.iter().find(|caveat| caveat.kind == kind);
    let message = caveat.map(|caveat| caveat.message.as_str());
    match (message, expected) {
        (Some(message), Some(part)) => assert!(message.contains(part), "{message}"),
        (message, expected) => assert_eq!(message, expected),
    }
    found
}

#[test]
fn unlike_workloads_are_told_and_not_compared() {
    let kind = CaveatKind::DifferentWorkload;
    check(kind, |_| (), None);
    let other = |run: &mut Run| {
        run.manifest.variants.iter_mut().for_each(|v| v.workload = "tpcb".to_owned());
    };
    let found = check(kind, other, Some("a and a (tpcb): workload sysbench and tpcb"));
    let baselines: Vec<Option<usize>> = found.variants.iter().map(|v| v.baseline).collect();
    assert_eq!(baselines, [None, Some(0), None, Some(2)]);
    assert!(!found.answer.headline.contains("is fastest"), "{}", found.answer.headline);
}

#[test]
fn unlike_workloads_are_told_without_namesakes_too() {
    let other = |run: &mut Run| {
        for variant in &mut run.manifest.variants {
            variant.workload = "tpcb".to_owned();
            variant.name += "2";
        }
    };
    let found = check(CaveatKind::DifferentWorkload, other, Some("workload sysbench and tpcb"));
    assert!(!found.answer.headline.contains("is fastest"), "{}", found.answer.headline);
}

#[test]
fn unlike_steps_are_told_where_a_variant_lacks_some() {
    let kind = CaveatKind::DifferentSteps;
    let shorter = |run: &mut Run| run.manifest.steps[1].clients = 8;
    check(kind, shorter, None);
    let other = |run: &mut Run| {
        run.manifest.steps[1].clients = 8;
        run.manifest.steps[1].name = "8 clients".to_owned();
        run.manifest.variants[1].name = "c".to_owned();
    };
    check(kind, other, Some("b has no 8 clients; c has no 4 clients"));
}
