//! Steps at whose end nothing was done any more.

use super::{Place, caveat_at, place_name, places};
use crate::join::Joined;
use crate::words::{count, seconds};
use crate::{Caveat, CaveatKind, Findings};

const LEAST_S: f64 = 1.0;
/// Multiple of the step's p99 that it must last.
const TIMES_P99: f64 = 10.0;

/// Seconds without work at the end; `None` if work went on, or ended as expected.
fn dead_s(place: &Place<'_>) -> Option<f64> {
    let step = place.summary;
    // A server with a fault is away on purpose.
    let is_meant = step.search.is_some() || !step.faults.is_empty();
    if is_meant || step.ended_by.as_deref() == Some("quota") {
        return None;
    }
    let rates = step.intervals.start_s.iter().zip(&step.intervals.throughput);
    let last = rates.rev().find(|(_, throughput)| **throughput > 0.0).map(|(start, _)| *start)?;
    // Its commits may have been at its very end.
    let dead_s = step.measured_s - (last + 1.0).max(0.0);
    let p99_us = step.intervals.p99_us.iter().copied().fold(0.0, f64::max);
    (dead_s >= LEAST_S && dead_s >= TIMES_P99 * p99_us / 1e6).then_some(dead_s)
}

/// A hanging server is not idle: waiting transactions have no response time yet.
pub(super) fn caveat(joined: &Joined<'_>, findings: &Findings) -> Option<Caveat> {
    let all = places(joined);
    let dead: Vec<(f64, &Place<'_>)> =
        all.iter().filter_map(|place| Some((dead_s(place)?, place))).collect();
    let (longest, worst) = dead.iter().max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    let waiting = match worst.summary.in_flight_at_end {
        Some(n) if n > 0 => format!(", with {} waiting for an answer", count(n, "attempt")),
        _ => String::new(),
    };
    let message = format!(
        "Nothing committed at the end of {}; longest in trial {} ({}): the last {} of {}{waiting}.",
        count(dead.len() as u64, "measurement phase"),
        worst.trial.number,
        place_name(findings, worst.variant, worst.step),
        seconds(*longest),
        seconds(worst.summary.measured_s),
    );
    let advice = "Transactions that were still waiting have no response time, and average \
                  throughput includes the time in which nothing committed. Find out why the server \
                  stopped answering before you use these numbers.";
    let places = dead.iter().map(|(_, place)| (place.variant, place.step));
    Some(caveat_at(CaveatKind::DeadEnd, (message, advice), places))
}

#[cfg(test)]
mod tests {
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
}
