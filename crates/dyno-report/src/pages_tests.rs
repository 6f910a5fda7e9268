//! Every page and text of the fixtures by its digest, and of what becomes of them when any one thing in the findings
//! or the record is missing or another: byte for byte. Whoever changes what is shown means to, and says so with
//! `UPDATE_EXPECT=1 cargo test -p dyno-report pages`.

use std::collections::{BTreeMap, BTreeSet};

use dyno_analysis::hosts::{HostFacts, ServerHostFacts};
use dyno_analysis::insert_benchmark::{Buckets, GetMin, InsertBenchmarkCell, N_BUCKETS, Sla};
use dyno_analysis::stopping::{StoppingFacts, VariantStopping};
use dyno_analysis::vectors::{VectorFacts, VectorPoint};
use dyno_analysis::{
    Estimate, FaultFacts, Findings, OtherEffect, ProbeFacts, StepSearch, TrialHostFacts,
    TrialSearch, metrics,
};
use dyno_record::{ClockFacts, NetworkFacts, Run};
use expect_test::expect_file;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::times::Times;
use crate::{fixture, html, markdown, terminal};

/// The digests of all that was rendered, by a name.
#[derive(Default)]
struct Digests(BTreeMap<String, Sha256>);

impl Digests {
    fn add(&mut self, name: &str, findings: &Findings, runs: &[Run], times: &Times) {
        let mut add = |format: &str, text: String| {
            let digest = self.0.entry(format!("{name} {format}")).or_default();
            digest.update(text.as_bytes());
        };
        add("page", html::render(findings, runs, times, "2026-03-01"));
        add("Markdown", markdown::render(findings));
        [60, 100].iter().for_each(|width| add("text", terminal::render(findings, *width, true)));
    }

    fn lines(self) -> String {
        let line = |(name, digest): (String, Sha256)| {
            let digest: String =
                digest.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{digest} {name}\n")
        };
        self.0.into_iter().map(line).collect()
    }
}

fn times(findings: &Findings, runs: &[Run]) -> Times {
    let mut times = Times::new(findings, runs);
    fixture::times(runs, &mut |run, trial, second| times.add(run, trial, second));
    times
}

/// A record with something for every section.
fn everything() -> (Findings, Vec<Run>) {
    let (mut findings, mut runs) = fixture::small();
    let rate = findings.cells[0].metrics[&metrics::THROUGHPUT].clone();
    findings.scaling = fixture::three_variants().0.scaling;
    findings.scaling[0].law.as_mut().unwrap().misses = vec![dyno_analysis::scaling::LawMiss {
        step: 0,
        clients: 1,
        law: 7e3,
        measured: rate.clone(),
    }];
    findings.kinds = fixture::own_steps().0.kinds;
    findings.kinds.retain(|kind| kind.step != 2);
    findings.kinds.iter_mut().for_each(|kind| kind.step %= 2);
    findings.kind_comparisons = fixture::own_steps().0.kind_comparisons;
    findings.other_effects = vec![OtherEffect {
        variant: 2,
        baseline: 1,
        step: 1,
        metric: metrics::THROUGHPUT,
        percent: 12.34,
        low: Some(8.0),
        high: None,
        n: 3,
    }];
    add_hosts(&mut findings);
    add_faults(&mut findings);
    add_insert_benchmark(&mut findings, &rate);
    let point = |search, recall| VectorPoint {
        step: 0,
        search,
        recall: Estimate { value: recall, ..rate.clone() },
        rate: rate.clone(),
    };
    findings.vectors = vec![VectorFacts {
        variant: 1,
        recall_asked: 0.95,
        parameter: "ef_search".to_owned(),
        points: vec![point(Some(10.0), 0.7), point(Some(20.0), 0.96)],
        exact: Some(point(None, 1.0)),
        reached: Some(1),
        build: Some(rate.clone()),
        ..VectorFacts::default()
    }];
    let probe = |level: f64, broken_by: Option<&str>| ProbeFacts {
        level,
        throughput: level * 0.9,
        limited_us: Some(level),
        held: broken_by.is_none(),
        broken_by: broken_by.map(str::to_owned),
    };
    findings.searches = vec![TrialSearch {
        variant: 1,
        step: 0,
        repetition: 1,
        found: Some(900.0),
        lowest_broken: Some(1000.0),
        settled: true,
        probes: vec![probe(900.0, None), probe(1000.0, Some("p99")), probe(800.0, None)],
    }];
    let limit = "p99 ≤ 20 ms".to_owned();
    findings.steps[1].search =
        Some(StepSearch { metric: metrics::RATE_AT_LIMIT, limit, precision: 0.05 });
    let settled =
        |settled, why: &str| VariantStopping { repetitions: 3, settled, why: why.to_owned() };
    findings.stopping = Some(StoppingFacts {
        repetitions_min: 3,
        repetitions_max: 20,
        looks: 9,
        confidence_of_looks: 0.9969,
        variants: vec![settled(true, "worse"), settled(false, "open")],
        saved_trials: 17,
    });
    findings.made_dips = vec![dyno_analysis::MadeDips {
        step: 1,
        trial: 2,
        volume: "drive".to_owned(),
        limit: "50 writes/s".to_owned(),
        made: 3,
        found: 2,
        others: 1,
        period_s: Some(60.0),
        found_period_s: Some(60.1),
        level_left: Some(0.06),
        ..dyno_analysis::MadeDips::default()
    }];
    findings.answer.note = Some("Compared are `wal` and MariaDB 12.3, n = 5.".to_owned());
    findings.trials[0].is_rerun = true;
    findings.trials[1].is_reused = true;
    findings.cells[0].few_beyond.insert(metrics::RESPONSE_P95, 3);
    let examples = &mut runs[0].trials[0].steps[0].error_examples;
    examples.insert("refused".to_owned(), format!("no table in {}1", "a_table, ".repeat(40)));
    examples.insert("timed_out".to_owned(), "no answer".to_owned());
    (findings, runs)
}

pub(crate) fn add_hosts(findings: &mut Findings) {
    let network = NetworkFacts {
        round_trip_us: 250.0,
        round_trip_least_us: 200.0,
        bytes_per_s: Some(f64::from(100 << 20)),
    };
    findings.hosts = vec![HostFacts {
        host: "sql1".to_owned(),
        machine: "node-1".to_owned(),
        server: Some("mysql://me@db2:3306/test".to_owned()),
        n: 3,
        share: 0.333,
        share_meant: 0.333,
        throughput: 1000.0,
        cpu_us: Some(12.0),
        clock: Some(ClockFacts {
            wall_offset_ms: -5000.0,
            drift_ppm: Some(50.2),
            drift_bound_ppm: Some(3.0),
            ..ClockFacts::default()
        }),
        network: Some(network.clone()),
        ..HostFacts::default()
    }];
    let facts = [("kernel", "Linux 6.1"), ("cpu.model", "EPYC")];
    findings.server_hosts = vec![ServerHostFacts {
        host: "sql1".to_owned(),
        members: vec!["replica-1 (replica)".to_owned()],
        machine: "node-1".to_owned(),
        dyno: "1.2".to_owned(),
        cpus: 8,
        facts: facts.map(|(name, text)| (name.to_owned(), text.to_owned())).into(),
        n: 3,
        network: Some(network),
    }];
    findings.trial_hosts = vec![TrialHostFacts {
        pool: "m5".to_owned(),
        host: "m5-1".to_owned(),
        place: Some("node c1".to_owned()),
        environment: dyno_record::Environment {
            machine: "ip-10".to_owned(),
            cpus: 8,
            memory_bytes: 4 << 30,
            facts: facts.map(|(name, text)| (name.to_owned(), text.to_owned())).into(),
        },
        variants: vec![0],
        blocks: vec![1, 3],
        n: 2,
    }];
}

fn add_faults(findings: &mut Findings) {
    let fault = dyno_record::Fault {
        name: "crash".to_owned(),
        kind: "kill".to_owned(),
        member: "server".to_owned(),
        began_s: 3.04,
        ..dyno_record::Fault::default()
    };
    let facts = FaultFacts {
        variant: 1,
        trial: 2,
        fault,
        before: Some(1234.0),
        lowest: Some(0.0),
        away_s: Some(6.2),
        answered_after_s: Some(5.81),
        errors: 12.0,
        error_classes: [("disconnected".to_owned(), 12)].into(),
        ..FaultFacts::default()
    };
    let promotion = dyno_record::Promotion {
        member: "replica-2".to_owned(),
        survived: Some(dyno_record::Survived {
            acknowledged: 900,
            in_doubt: 4,
            found: 860,
            lost: None,
            why_range: Some("its numbers repeat".to_owned()),
        }),
    };
    let replaced = FaultFacts {
        fault: dyno_record::Fault { promotion: Some(promotion), ..facts.fault.clone() },
        recovered_after_s: Some(8.1),
        first_commit_after_s: Some(0.4),
        lost: Some((40, 44)),
        ..facts.clone()
    };
    findings.faults = vec![facts, replaced];
}

fn add_insert_benchmark(findings: &mut Findings, rate: &Estimate) {
    let mut slow = Buckets { counts: [0; N_BUCKETS], max_s: 2.5 };
    (slow.counts[1], slow.counts[7]) = (999_999, 1);
    let due = Buckets { max_s: 9.0, ..slow.clone() };
    let cell = InsertBenchmarkCell {
        variant: 1,
        step: 1,
        inserts: Some(rate.clone()),
        queries: Some(rate.clone()),
        relative: Some(0.5),
        response: [("insert".to_owned(), slow)].into(),
        response_from_due: [("insert".to_owned(), due)].into(),
        sla: Some(Sla {
            target: 200.0,
            met: 0,
            trials: 3,
            seconds_met: Some(0.9996),
            longest_miss_s: 7,
            window_s: 2,
        }),
        columns: [("ips".to_owned(), 190.0)].into(),
        get_min: Some(GetMin {
            at_start_max_s: 4.2,
            later: 1,
            later_max_s: 2.0,
            ..GetMin::default()
        }),
        ..InsertBenchmarkCell::default()
    };
    let baseline = InsertBenchmarkCell { variant: 0, sla: None, ..cell.clone() };
    findings.insert_benchmark = vec![baseline, cell];
}

/// The places of a value by their kinds: `.variants[].name`.
fn kinds(value: &Value, at: &str, into: &mut BTreeSet<String>) {
    if !at.is_empty() {
        into.insert(at.to_owned());
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| kinds(item, &format!("{at}[]"), into)),
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| kinds(value, &format!("{at}.{name}"), into));
        }
        _ => {}
    }
}

fn changed(value: &Value, at: &str, kind: &str, change: fn(&Value) -> Value) -> Value {
    match value {
        value if at == kind => change(value),
        Value::Array(items) => {
            items.iter().map(|item| changed(item, &format!("{at}[]"), kind, change)).collect()
        }
        Value::Object(fields) => {
            let inner = |(name, value): (&String, &Value)| {
                (name.clone(), changed(value, &format!("{at}.{name}"), kind, change))
            };
            Value::Object(fields.iter().map(inner).collect())
        }
        other => other.clone(),
    }
}

fn another(value: &Value) -> Value {
    match value {
        Value::Bool(value) => (!value).into(),
        Value::Array(_) => Vec::<Value>::new().into(),
        other => other.clone(),
    }
}

/// All that the value becomes if one kind of place is missing or another, by its first field.
fn all_changed<T: Serialize + DeserializeOwned>(value: &T) -> Vec<(String, T)> {
    let value = serde_json::to_value(value).unwrap();
    let mut places = BTreeSet::new();
    kinds(&value, "", &mut places);
    let missing: fn(&Value) -> Value = |_| Value::Null;
    let read = |(kind, change): (&String, fn(&Value) -> Value)| {
        let changed = changed(&value, "", kind, change);
        let is_another = changed != value;
        let name = kind.split(['.', '[']).find(|part| !part.is_empty() && *part != "]");
        let read = serde_json::from_value(changed).ok().filter(|_| is_another)?;
        Some((name.unwrap_or_default().to_owned(), read))
    };
    places.iter().flat_map(|kind| [(kind, missing), (kind, another)]).filter_map(read).collect()
}

#[test]
fn pages_and_texts_stay_as_they_are() {
    let mut digests = Digests::default();
    let (mut tpcc, runs_of_tpcc) = fixture::own_steps();
    tpcc.variants
        .iter_mut()
        .for_each(|v| dyno_analysis::tpcc::WORKLOAD.clone_into(&mut v.workload));
    tpcc.kinds.iter_mut().for_each(|kind| "new_order".clone_into(&mut kind.kind));
    let (mut alone, runs_alone) = fixture::three_variants();
    alone.steps.truncate(1);
    alone.cells.retain(|cell| cell.step == 0);
    alone.comparisons.retain(|c| c.step == 0);
    let (mut watched, runs_watched) = fixture::single();
    "none".clone_into(&mut watched.variants[0].workload);
    let mut large = fixture::three_variants();
    fixture::make_large(&mut large.0);
    let mut two = fixture::three_variants();
    let mut other = two.1[0].clone();
    "m6".clone_into(&mut other.manifest.environment.machine);
    two.1.push(other);
    for (name, (findings, runs)) in [
        ("three variants", fixture::three_variants()),
        ("one trial", fixture::single()),
        ("many", fixture::many()),
        ("own steps", fixture::own_steps()),
        ("hostile", fixture::hostile()),
        ("everything", everything()),
        ("TPC-C", (tpcc, runs_of_tpcc)),
        ("one step", (alone, runs_alone)),
        ("watched", (watched, runs_watched)),
        ("large effects", large),
        ("two machines", two),
    ] {
        digests.add(name, &findings, &runs, &times(&findings, &runs));
        digests.add(&format!("{name} without a record"), &findings, &[], &Times::default());
    }
    expect_file!["../tests/golden/pages.txt"].assert_eq(&digests.lines());
}

#[test]
fn pages_of_changed_records_stay_as_they_are() {
    let (findings, runs) = everything();
    let run = &runs[0];
    let manifests = all_changed(&run.manifest).into_iter();
    let manifests = manifests.map(|(name, manifest)| (name, Run { manifest, ..run.clone() }));
    let trials = all_changed(&run.trials).into_iter();
    let trials = trials.map(|(_, trials)| ("trials".to_owned(), Run { trials, ..run.clone() }));
    let mut digests = Digests::default();
    for (name, run) in manifests.chain(trials) {
        let runs = [run];
        digests.add(&name, &findings, &runs, &Times::new(&findings, &runs));
    }
    expect_file!["../tests/golden/pages-record.txt"].assert_eq(&digests.lines());
}
