//! Clients that waited in a pooler.

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
