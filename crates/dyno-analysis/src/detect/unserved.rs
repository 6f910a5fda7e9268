//! Clients that waited in a pooler for most of a step.

use super::{caveat_at, place_name, places};
use crate::join::Joined;
use crate::words::list;
use crate::{Caveat, CaveatKind, Findings};

/// Of the first client in the pooler's queue, in seconds.
const LONGEST: &str = "pgbouncer.wait_longest_s";
const WAITING: &str = "pgbouncer.clients_waiting";
/// Of the measured time; a longer wait counts as not served.
const SHARE: f64 = 0.5;

pub(super) fn caveat(joined: &Joined<'_>, findings: &Findings) -> Option<Caveat> {
    let mut found: Vec<(usize, usize, f64)> = Vec::new();
    for place in places(joined) {
        let values = |name: &str| -> Vec<f64> {
            let column = place.summary.readings.get(name).map_or(&[][..], Vec::as_slice);
            column.iter().flatten().copied().collect()
        };
        let longest = values(LONGEST).into_iter().fold(0.0, f64::max);
        let waiting = values(WAITING);
        let is_known =
            found.iter().any(|(variant, step, _)| (*variant, *step) == (place.variant, place.step));
        let is_long = place.summary.measured_s > 0.0 && longest >= SHARE * place.summary.measured_s;
        if is_long && !waiting.is_empty() && !is_known {
            let mean = waiting.iter().sum::<f64>() / waiting.len() as f64;
            found.push((place.variant, place.step, mean));
        }
    }
    found.first()?;
    found.sort_by_key(|(variant, step, _)| (*variant, *step));
    let name = |(variant, step, mean): &(usize, usize, f64)| {
        format!("{} ({mean:.0} waiting)", place_name(findings, *variant, *step))
    };
    let names: Vec<String> = found.iter().map(name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let message = format!(
        "Clients waited in the pooler for at least half of the measured time: {}.",
        list(&names)
    );
    let advice = "Throughput and response times there are those of the clients that were served. A pool in \
                  mode `session` serves as many clients as it has connections: raise `pool_size`, or choose \
                  mode `transaction`.";
    let places = found.iter().map(|(variant, step, _)| (*variant, *step));
    Some(caveat_at(CaveatKind::Unserved, (message, advice), places))
}

#[cfg(test)]
mod tests {
    use crate::fixtures::run;
    use crate::{CaveatKind, Options, analyse};

    #[test]
    fn clients_that_never_have_a_turn_are_named() {
        let check = |longest: &[f64], expected: Option<&str>| {
            let mut run = run(&["direct", "session"], &[60], 3, |_, _, _| 1_000.0);
            for trial in run.trials.iter_mut().filter(|trial| trial.variant == 1) {
                for step in &mut trial.steps {
                    let share = |part: &f64| Some(part * step.measured_s);
                    let longest = longest.iter().map(share).collect();
                    step.readings.insert("pgbouncer.wait_longest_s".to_owned(), longest);
                    let waiting = vec![Some(56.0), None, Some(56.0)];
                    step.readings.insert("pgbouncer.clients_waiting".to_owned(), waiting);
                }
            }
            let findings = analyse(&[run], &Options::default());
            let found = findings.caveats.iter().find(|one| one.kind == CaveatKind::Unserved);
            assert_eq!(found.map(|one| one.message.as_str()), expected, "{longest:?}");
            assert!(found.is_none_or(|one| one.variants == [1]));
        };
        let message = "Clients waited in the pooler for at least half of the measured time: session \
                       at 60 clients (56 waiting).";
        check(&[0.2, 0.5, 0.9], Some(message));
        check(&[0.01, 0.49, 0.02], None);
        check(&[], None);
    }
}
