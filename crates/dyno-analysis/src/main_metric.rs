//! The main metric of a step, by which answer, first verdict, sequential stopping and gate judge.

use dyno_record::{OwnStepRecord, RoleRecord};
use dyno_units::{MetricId, MetricRole};

use crate::join::Joined;
use crate::{metrics, searches};

/// The main metric of a step:
/// * a search: what it found, the sustained rate or number of clients;
/// * a step that ends when its quotas are done, none of which is done at a given rate: the time it
///   took;
/// * no load: what its activities declare to be their main metric, the first if there are several;
/// * open load: p95 response time, because throughput there is the offered rate;
/// * closed load, also beside roles at a given rate: throughput.
///
/// A step of the workload's own is judged by its time or by p95 only if that suits all variants.
pub(crate) fn main_metric(joined: &Joined<'_>, step: usize) -> MetricId {
    let record = &joined.steps[step];
    let all = |suits: fn(&OwnStepRecord) -> bool| {
        joined.variants.iter().all(|variant| record.own_of(variant).is_some_and(suits))
    };
    match (&record.search, record.rate) {
        (Some(search), _) => searches::metric(search),
        _ if all(takes_its_time) => metrics::STEP_TIME,
        (None, Some(_)) => metrics::RESPONSE_P95,
        _ if all(is_open) => metrics::RESPONSE_P95,
        (None, None) if metrics::has_load(record) => metrics::THROUGHPUT,
        (None, None) => declared(joined, step).unwrap_or(metrics::THROUGHPUT),
    }
}

/// Whether the server decides the step's length. With rate and quota, the schedule does.
fn takes_its_time(own: &OwnStepRecord) -> bool {
    let is_scheduled = |role: &RoleRecord| role.quota.is_some() && role.rate.is_some();
    own.ends_by_quota && !own.roles.iter().any(is_scheduled)
}

fn is_open(own: &OwnStepRecord) -> bool {
    !own.roles.is_empty() && own.roles.iter().all(|role| role.rate.is_some())
}

/// The first figure declared as main in a step without load, else the first.
fn declared(joined: &Joined<'_>, step: usize) -> Option<MetricId> {
    let is_measured = |id: MetricId| {
        let mut steps = joined.trials.iter().filter_map(|trial| trial.step(step));
        steps.any(|summary| summary.figures.contains_key(&id))
    };
    let measured: Vec<_> = joined.metrics.iter().filter(|m| is_measured(m.id)).collect();
    let main = measured.iter().find(|metric| metric.role == MetricRole::Main);
    main.or(measured.first()).map(|metric| metric.id)
}

#[cfg(test)]
mod tests {
    use dyno_record::{OwnStepRecord, SearchRecord};

    use super::*;
    use crate::fixtures::{make_open, run};

    #[track_caller]
    fn check(change: impl Fn(&mut dyno_record::Run), expected: MetricId) {
        let mut run = run(&["a", "b"], &[4], 3, |_, _, _| 100.0);
        change(&mut run);
        let findings = crate::analyse(&[run], &crate::Options::default());
        assert_eq!(findings.steps[0].main_metric, expected);
    }

    fn search(sought: &str) -> SearchRecord {
        let text = format!(
            r#"{{"sought":"{sought}","statistic":"p99","bound_us":20000.0,"limit":"p99 ≤ 20 ms",
                "precision":0.03}}"#
        );
        serde_json::from_str(&text).expect("it is a search")
    }

    #[test]
    fn each_kind_of_load_has_its_own() {
        check(|_| (), metrics::THROUGHPUT);
        check(make_open, metrics::RESPONSE_P95);
        check(|run| run.manifest.steps[0].search = Some(search("rate")), metrics::RATE_AT_LIMIT);
        check(
            |run| run.manifest.steps[0].search = Some(search("clients")),
            metrics::CLIENTS_AT_LIMIT,
        );
    }

    #[test]
    fn a_quota_counts_where_all_variants_have_it() {
        let own =
            |ends_by_quota: bool| OwnStepRecord { roles: Vec::new(), ends_by_quota, settle_s: 0.0 };
        check(|run| run.manifest.steps[0].own = Some(own(true)), metrics::STEP_TIME);
        let mixed = |run: &mut dyno_record::Run| {
            let name = run.manifest.steps[0].name.clone();
            run.manifest.steps[0].own = Some(own(true));
            run.manifest.variants[1].own_steps.insert(name, own(false));
        };
        check(mixed, metrics::THROUGHPUT);
    }

    /// With a rate, a quota, both or neither.
    fn roles(run: &mut dyno_record::Run, roles: &[(Option<f64>, Option<u64>)]) {
        let role = |&(rate, quota): &(Option<f64>, Option<u64>)| RoleRecord {
            name: "client".to_owned(),
            clients: 1,
            pacing: if rate.is_some() { "constant" } else { "closed" }.to_owned(),
            rate,
            quota,
            kinds: Vec::new(),
        };
        let ends_by_quota = roles.iter().any(|(_, quota)| quota.is_some());
        let roles = roles.iter().map(role).collect();
        run.manifest.steps[0].own = Some(OwnStepRecord { roles, ends_by_quota, settle_s: 0.0 });
    }

    #[test]
    fn a_step_whose_schedule_sets_its_length_is_not_judged_by_its_time() {
        let (rate, quota) = (Some(100.0), Some(5_000));
        let check = |own: &[(Option<f64>, Option<u64>)], expected| {
            check(|run| roles(run, own), expected);
        };
        check(&[(None, quota)], metrics::STEP_TIME);
        check(&[(None, quota), (None, None)], metrics::STEP_TIME);
        check(&[(None, quota), (rate, None)], metrics::STEP_TIME);
        // As in the Insert Benchmark's query steps.
        check(&[(rate, quota), (rate, quota), (None, None)], metrics::THROUGHPUT);
        check(&[(rate, quota), (None, quota)], metrics::THROUGHPUT);
        check(&[(rate, None), (None, None)], metrics::THROUGHPUT);
        check(&[(None, None)], metrics::THROUGHPUT);
        check(&[(rate, quota)], metrics::RESPONSE_P95);
        check(&[(rate, None), (rate, quota)], metrics::RESPONSE_P95);
    }
}
