//! A limit of CPU time that held the server back, such as a pod's.

use super::{Place, caveat_at, mean_rate, place_name, places};
use crate::join::Joined;
use crate::words::list;
use crate::{Caveat, CaveatKind, Findings};

/// More is no accident; there are usually ten periods a second.
const PERIODS_MOST: f64 = 0.5;

/// In readings. A product in Dyno's process is in the generator's group.
fn group(place: &Place<'_>) -> &'static str {
    if place.trial.server.product_facts().in_process { "generator" } else { "server" }
}

pub(super) fn caveat(joined: &Joined<'_>, findings: &Findings) -> Option<Caveat> {
    let mut found: Vec<(usize, usize, f64, String)> = Vec::new();
    for place in places(joined) {
        let reading = |name: &str| {
            let name = format!("cgroup.{}.{name}", group(&place));
            mean_rate(place.summary, &name).ok()
        };
        let rate = reading("throttled_periods_per_s").filter(|rate| *rate > PERIODS_MOST);
        let Some(rate) = rate else { continue };
        // A mean of equal numbers is not exact.
        let limit = reading("cpu_limit").map(|limit| (limit * 1000.0).round() / 1000.0);
        let limit = limit.map(|limit| format!(", limit {limit} CPUs"));
        let limit = limit.unwrap_or_default();
        let at = (place.variant, place.step);
        match found.iter_mut().find(|one| (one.0, one.1) == at) {
            Some(known) if known.2 >= rate => {}
            Some(known) => (known.2, known.3) = (rate, limit),
            None => found.push((at.0, at.1, rate, limit)),
        }
    }
    found.first()?;
    found.sort_by_key(|one| (one.0, one.1));
    let name = |(variant, step, rate, limit): &(usize, usize, f64, String)| {
        format!("{} ({rate:.1} times a second{limit})", place_name(findings, *variant, *step))
    };
    let names: Vec<String> = found.iter().map(name).collect();
    let message =
        format!("A limit of CPU time stopped the server again and again: {}.", list(&names));
    let advice = "Throughput and response times there are those of the limit, which stops all threads until \
                  its next period (usually 100 ms): raise it (`cpu` of pods) or remove it, unless it is what \
                  you measure.";
    let places = found.iter().map(|one| (one.0, one.1));
    Some(caveat_at(CaveatKind::Throttled, (message, advice), places))
}

#[cfg(test)]
mod tests {
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
}
