//! A limit of CPU time.

use dyno_record::ProductFacts;

use crate::fixtures::run;
use crate::{CaveatKind, Options, analyse};

#[test]
fn a_server_that_its_limit_stops_has_a_caveat() {
    let check = |(group, in_process): (&str, bool), per_s: f64, expected: Option<&str>| {
        let mut run = run(&["free", "limited"], &[4], 3, |_, _, _| 1_000.0);
        for trial in run.trials.iter_mut().filter(|trial| trial.variant == 1) {
            let product = ProductFacts { in_process, ..ProductFacts::default() };
            trial.server.of_product = Some(product);
            for step in &mut trial.steps {
                let n = step.intervals.start_s.len();
                let mut add = |name: &str, value: f64| {
                    let name = format!("cgroup.{group}.{name}");
                    step.readings.insert(name, vec![Some(value); n]);
                };
                add("throttled_periods_per_s", per_s);
                add("cpu_limit", 0.2);
            }
        }
        let findings = analyse(&[run], &Options::default());
        let found = findings.caveats.iter().find(|one| one.kind == CaveatKind::Throttled);
        assert_eq!(found.map(|one| one.message.as_str()), expected, "{group} {per_s}");
        assert!(found.is_none_or(|one| one.variants == [1]));
    };
    let message = "A limit of CPU time stopped the server again and again: limited at 4 clients \
                   (9.5 times a second, limit 0.2 CPUs).";
    check(("server", false), 9.5, Some(message));
    check(("generator", true), 9.5, Some(message));
    // It only concerns the generator.
    check(("generator", false), 9.5, None);
    check(("server", false), 0.4, None);
    check(("server", false), 0.0, None);
}
