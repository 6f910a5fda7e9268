//! Steps at whose end nothing was done any more.

use crate::fixtures::run;
use crate::{CaveatKind, Options, analyse};

#[test]
fn an_end_without_a_commit_is_told() {
    let check = |n_dead: usize, ended_by: &str, expected: Option<&str>| {
        let mut run = run(&["x"], &[4], 3, |_, _, _| 1_000.0);
        let step = &mut run.trials[1].steps[0];
        let n = step.intervals.throughput.len();
        step.intervals.throughput[n - n_dead..].fill(0.0);
        step.ended_by = Some(ended_by.to_owned());
        step.in_flight_at_end = Some(4);
        let findings = analyse(&[run], &Options::default());
        let found = findings.caveats.iter().find(|c| c.kind == CaveatKind::DeadEnd);
        assert_eq!(found.is_some(), expected.is_some(), "{n_dead}: {found:?}");
        if let (Some(found), Some(expected)) = (found, expected) {
            assert!(found.message.contains(expected), "{found:?}");
            assert!(found.message.contains("4 attempts waiting"), "{found:?}");
        }
    };
    check(0, "time", None);
    check(3, "time", Some("the last 3 s of"));
    check(3, "quota", None);
}
