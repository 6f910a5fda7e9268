//! For example an insert rate that is kept while queries slow down.

use std::collections::BTreeMap;

use dyno_record::{EncodedCounts, KindSummary, OwnStepRecord, RoleRecord, Run};

use super::KindCell;
use crate::fixtures::{MEASURED_S, run, step_summary, wobble};
use crate::{Findings, Options, Verdict, analyse, metrics};

fn role(name: &str, rate: Option<f64>, quota: Option<u64>) -> RoleRecord {
    RoleRecord {
        name: name.to_owned(),
        clients: 2,
        pacing: if rate.is_some() { "constant" } else { "closed" }.to_owned(),
        rate,
        quota,
        kinds: Vec::new(),
    }
}

/// Two inserters at 50/s each, and queries, slower in the second variant with `inserts` rows/s.
fn with_roles(inserts: f64) -> Findings {
    with_rates(inserts, 50.0)
}

/// `other`: rate of the second variant's inserters.
fn with_rates(inserts: f64, other: f64) -> Findings {
    with_kinds(inserts, other, &[])
}

/// `kinds`: named by inserters.
fn with_kinds(inserts: f64, other: f64, kinds: &[&str]) -> Findings {
    let mut run = run(&["a", "b"], &[4, 8, 16], 5, |_, _, _| 1_000.0);
    for step in &mut run.manifest.steps {
        step.own = Some(OwnStepRecord {
            roles: vec![role("inserter", Some(50.0), None), role("query", None, None)],
            ends_by_quota: false,
            settle_s: 0.0,
        });
        let first = step.own.as_mut().expect("it was just given");
        first.roles[0].kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        let mut own = first.clone();
        own.roles[0].rate = Some(other);
        if Some(&own) != step.own.as_ref() {
            run.manifest.variants[1].own_steps.insert(step.name.clone(), own);
        }
    }
    for trial in &mut run.trials {
        let variant = trial.variant;
        for (idx, step) in trial.steps.iter_mut().enumerate() {
            let kind = |name: &str, rate: f64| {
                let one = step_summary(0, rate, 1.0 / rate).kinds.remove(0);
                let bins = vec![(rate / 10.0).round() as u32; 120];
                let commits_100ms = Some(EncodedCounts::encode(&bins));
                KindSummary { name: name.to_owned(), commits_100ms, ..one }
            };
            let queries = if variant == 0 { 5_000.0 } else { 4_000.0 };
            let noise = wobble(variant, idx, trial.repetition);
            step.kinds = vec![
                kind("insert", if variant == 0 { 100.0 } else { inserts }),
                kind("market", queries * noise),
                kind("never", 0.0),
                kind("get_min", if kinds.is_empty() { 0.0 } else { 10.0 }),
            ];
        }
    }
    analyse(&[run], &Options::default())
}

fn cell<'a>(findings: &'a Findings, variant: usize, kind: &str) -> &'a KindCell {
    let is_it = |c: &&KindCell| (c.variant, c.step, c.kind.as_str()) == (variant, 0, kind);
    findings.kinds.iter().find(is_it).expect("the kind ran")
}

#[test]
fn each_kind_has_its_own_estimates_and_verdicts() {
    let findings = with_roles(100.0);
    // Two kinds, two variants, three steps.
    assert_eq!(findings.kinds.len(), 12);
    let queries = cell(&findings, 1, "market");
    assert!((queries.metrics[&metrics::THROUGHPUT].value / 4_000.0 - 1.0).abs() < 0.02);
    assert!(queries.metrics.contains_key(&metrics::RESPONSE_P99));
    assert_eq!((queries.role.as_deref(), &queries.offered), (None, &None));
    // 50 of 1,000 inserts are beyond p95, 10 beyond p99; queries are many.
    let few = |kind: &str, metric| cell(&findings, 1, kind).few_beyond.get(&metric).copied();
    assert_eq!(few("insert", metrics::RESPONSE_P95), None);
    assert_eq!(few("insert", metrics::RESPONSE_P99), Some(10));
    assert_eq!(few("market", metrics::RESPONSE_P99), None);
    // Equal up to a class of the histogram: the interval is not narrower.
    let same = &cell(&findings, 1, "insert").metrics[&metrics::RESPONSE_P95];
    assert_eq!(same.min, same.max);
    let (low, high) = (same.low.expect("five values"), same.high.expect("five values"));
    assert!((1.000_1..1.01).contains(&(high / low)), "{same:?}");
    let verdict = |kind: &str| {
        let is_it = |c: &&crate::kinds::KindComparison| {
            c.kind == kind && c.comparison.step == 0 && c.comparison.metric == metrics::THROUGHPUT
        };
        findings.kind_comparisons.iter().find(is_it).expect("compared").comparison.verdict
    };
    // All kinds and steps share an error.
    assert!(findings.kind_comparisons.iter().all(|c| c.comparison.pooled.is_some()));
    assert_eq!(verdict("market"), Verdict::Worse);
    assert_eq!(verdict("insert"), Verdict::NoDifference);
}

#[test]
fn an_offered_rate_is_kept_or_not() {
    let findings = with_roles(100.0);
    let kept = cell(&findings, 1, "insert").offered.clone().expect("a rate is offered");
    assert_eq!((kept.rate, kept.met, kept.of, kept.seconds_met), (100.0, 5, 5, Some(1.0)));
    let findings = with_roles(80.0);
    let missed = cell(&findings, 1, "insert").offered.clone().expect("a rate is offered");
    assert_eq!((missed.met, missed.seconds_met), (0, Some(0.0)));
    assert!((missed.kept.value - 0.8).abs() < 1e-6);
    assert_eq!(cell(&findings, 1, "insert").role.as_deref(), Some("inserter"));
}

#[test]
fn kinds_that_share_a_role_share_its_rate() {
    let kinds = ["insert", "get_min"];
    let findings = with_kinds(90.0, 50.0, &kinds);
    for kind in kinds {
        let kept = cell(&findings, 1, kind).offered.clone().expect("a rate is offered");
        assert_eq!((kept.rate, kept.met, kept.of, kept.seconds_met), (100.0, 5, 5, Some(1.0)));
        assert!((kept.kept.value - 1.0).abs() < 1e-6, "{kept:?}");
        assert_eq!(cell(&findings, 1, kind).role.as_deref(), Some("inserter"));
    }
    let findings = with_kinds(80.0, 50.0, &kinds);
    let missed = cell(&findings, 1, "get_min").offered.clone().expect("a rate is offered");
    assert_eq!((missed.met, missed.seconds_met), (0, Some(0.0)));
}

#[test]
fn a_variant_is_measured_against_the_rate_that_it_offers_itself() {
    let findings = with_rates(80.0, 40.0);
    let of = |variant| cell(&findings, variant, "insert").offered.clone().expect("it is offered");
    assert_eq!((of(0).rate, of(0).met), (100.0, 5));
    assert_eq!((of(1).rate, of(1).met, of(1).seconds_met), (80.0, 5, Some(1.0)));
}

/// Their differences are below the histogram's resolution.
#[test]
fn equal_times_of_a_kind_are_not_known_exactly() {
    let mut run = run(&["a"], &[4], 3, |_, _, _| 1_000.0);
    for step in run.trials.iter_mut().flat_map(|trial| &mut trial.steps) {
        let other = KindSummary { name: "other".to_owned(), ..step.kinds[0].clone() };
        step.kinds.push(other);
    }
    let findings = analyse(&[run], &Options::default());
    let p95 = &cell(&findings, 0, "other").metrics[&metrics::RESPONSE_P95];
    assert!(p95.values.iter().all(|value| *value == p95.values[0]), "{p95:?}");
    assert!(p95.low.unwrap() < p95.value && p95.value < p95.high.unwrap(), "{p95:?}");
}

#[test]
fn own_steps_are_no_load_levels() {
    let findings = with_roles(100.0);
    assert_eq!((findings.scaling.len(), findings.concurrency.len()), (0, 0));
    assert_eq!(findings.under_limit, []);
    assert!(findings.steps.iter().all(|step| step.own.is_some()));
}

/// It ends by quota, after seconds that the variant determines.
fn with_quota(ended_by: &str) -> Findings {
    let mut run: Run = run(&["a", "b"], &[4], 5, |_, _, _| 1_000.0);
    run.manifest.steps[0].own = Some(OwnStepRecord {
        roles: vec![role("inserter", None, Some(5_000))],
        ends_by_quota: true,
        settle_s: 0.0,
    });
    for trial in &mut run.trials {
        let factor = if trial.variant == 0 { 1.0 } else { 1.3 };
        let step = &mut trial.steps[0];
        step.measured_s = MEASURED_S * factor * wobble(trial.variant, 0, trial.repetition);
        step.ended_by = Some(if trial.variant == 0 { "quota" } else { ended_by }.to_owned());
    }
    analyse(&[run], &Options::default())
}

#[test]
fn a_step_that_ends_by_quota_compares_its_time() {
    let findings = with_quota("quota");
    let time = &findings.cells[0].metrics[&metrics::STEP_TIME];
    assert!((time.value / MEASURED_S / 1e6 - 1.0).abs() < 0.02, "{time:?}");
    let is_time = |c: &&crate::Comparison| c.metric == metrics::STEP_TIME;
    let compared = findings.comparisons.iter().find(is_time).expect("it is compared");
    assert_eq!(compared.verdict, Verdict::Worse);
    assert!((compared.relative.value - 30.0).abs() < 2.0, "{compared:?}");
    assert_eq!(findings.cells[0].ended_by, BTreeMap::from([("quota".to_owned(), 5)]));
    // What was not done in time has no time.
    let findings = with_quota("limit");
    assert!(!findings.cells[1].metrics.contains_key(&metrics::STEP_TIME));
    assert!(findings.cells[1].absent[&metrics::STEP_TIME].contains("quotas were not met"));
}

#[test]
fn each_variant_ends_a_step_in_its_own_way() {
    let mut run: Run = run(&["a", "b"], &[4], 3, |_, _, _| 1_000.0);
    let own = |ends_by_quota: bool| OwnStepRecord {
        roles: vec![role("inserter", None, ends_by_quota.then_some(5_000))],
        ends_by_quota,
        settle_s: 0.0,
    };
    run.manifest.steps[0].own = Some(own(false));
    let name = run.manifest.steps[0].name.clone();
    run.manifest.variants[1].own_steps.insert(name, own(true));
    for trial in &mut run.trials {
        let how = if trial.variant == 0 { "time" } else { "quota" };
        trial.steps[0].ended_by = Some(how.to_owned());
    }
    let findings = analyse(&[run], &Options::default());
    let has_time = |v: usize| findings.cells[v].metrics.contains_key(&metrics::STEP_TIME);
    assert_eq!((has_time(0), has_time(1)), (false, true));
    assert!(!findings.cells[0].absent.contains_key(&metrics::STEP_TIME));
    // A step that ends by quota for one variant only is not compared by time.
    assert!(findings.comparisons.iter().all(|c| c.metric != metrics::STEP_TIME));
    assert!(findings.comparisons.iter().any(|c| c.metric == metrics::THROUGHPUT));
}
