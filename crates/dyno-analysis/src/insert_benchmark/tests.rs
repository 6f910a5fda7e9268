//! Cells of the Insert Benchmark out of records whose truth is known.

use dyno_record::{
    EncodedCounts, EncodedHistogram, KindSummary, OwnStepRecord, RoleRecord, Run, StepSummary,
    new_histogram,
};

use super::*;
use crate::fixtures;
use crate::{Options, analyse};

/// Each took `ms`; commits by second.
fn kind(name: &str, ms: u64, seconds: &[u32]) -> KindSummary {
    let total: u32 = seconds.iter().sum();
    let mut histogram = new_histogram();
    histogram.record_n(ms * 1_000_000, u64::from(total)).unwrap();
    let bins: Vec<u32> =
        seconds.iter().flat_map(|count| [*count, 0, 0, 0, 0, 0, 0, 0, 0, 0]).collect();
    KindSummary {
        name: name.to_owned(),
        outcomes: BTreeMap::from([("committed".to_owned(), u64::from(total))]),
        response: EncodedHistogram::encode(&histogram),
        service: EncodedHistogram::encode(&histogram),
        commits_100ms: Some(EncodedCounts::encode(&bins)),
    }
}

fn own(rate: Option<f64>) -> OwnStepRecord {
    let role = RoleRecord {
        name: "inserter".to_owned(),
        clients: 2,
        pacing: if rate.is_some() { "constant" } else { "closed" }.to_owned(),
        rate,
        quota: Some(1000),
        kinds: Vec::new(),
    };
    OwnStepRecord { roles: vec![role], ends_by_quota: true, settle_s: 0.0 }
}

/// Two variants, one repetition: l.i0, l.x, q100 of ten seconds; the second queries twice as much.
fn run(q_inserts: &[u32]) -> Run {
    let mut run = fixtures::run(&["a", "b"], &[1, 2, 3], 1, |_, _, _| 10.0);
    for variant in &mut run.manifest.variants {
        variant.workload = WORKLOAD.to_owned();
        for (name, value) in [("commit_i0", "100"), ("commit_q", "50")] {
            variant.options.insert(name.to_owned(), value.to_owned());
        }
    }
    let steps = [("l.i0", None), ("l.x", None), ("q100", Some(2.0))];
    for (record, (name, rate)) in run.manifest.steps.iter_mut().zip(steps) {
        record.name = name.to_owned();
        record.own = Some(own(rate));
        record.warm_up_s = 0.0;
    }
    for trial in &mut run.trials {
        let factor = 1 + trial.variant as u32;
        let kinds = [
            vec![kind("insert", 3, &[5; 10])],
            vec![kind("create_indexes", 9000, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 1])],
            vec![
                kind("insert", 3, q_inserts),
                kind("delete", 3, &[4; 10]),
                kind("get_min_start", 700, &[2, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
                kind("market", 1, &[7 * factor; 10]),
                kind("pdc", 20, &[3 * factor; 10]),
            ],
        ];
        for (step, kinds) in trial.steps.iter_mut().zip(kinds) {
            set(step, kinds);
        }
    }
    run
}

fn set(step: &mut StepSummary, kinds: Vec<KindSummary>) {
    step.kinds = kinds;
    step.intervals.start_s = (0..10).map(f64::from).collect();
    step.intervals.throughput = vec![1.0; 10];
    step.readings.clear();
}

fn cells(run: Run) -> Vec<InsertBenchmarkCell> {
    analyse(&[run], &Options::default()).insert_benchmark
}

fn value(rate: &Option<Estimate>) -> Option<f64> {
    // Rounding of the geometric mean.
    rate.as_ref().map(|rate| (rate.value * 1e6).round() / 1e6)
}

#[test]
fn transactions_become_rows_and_queries() {
    let cells = cells(run(&[4; 10]));
    assert_eq!(cells.len(), 6);
    let rates = |cell: &InsertBenchmarkCell| {
        [&cell.inserts, &cell.deletes, &cell.queries, &cell.indexed].map(value)
    };
    assert_eq!(rates(&cells[0]), [Some(500.0), None, None, None]);
    // 5000 rows in ten seconds.
    assert_eq!(rates(&cells[1]), [None, None, None, Some(500.0)]);
    assert_eq!(rates(&cells[2]), [Some(200.0), Some(200.0), Some(10.0), None]);
    assert_eq!(cells[2].relative, None);
    let relative: Vec<_> = cells[3..]
        .iter()
        .map(|cell| cell.relative.map(|ratio| (ratio * 1e6).round() / 1e6))
        .collect();
    assert_eq!(relative, [Some(1.0), Some(1.0), Some(2.0)]);
}

#[test]
fn queries_of_all_kinds_share_buckets() {
    let cells = cells(run(&[4; 10]));
    let query = &cells[2].response["query"];
    assert_eq!((query.counts[1], query.counts[4], query.total()), (70, 30, 100));
    assert_eq!(cells[2].response["insert"].counts[2], 40);
    assert_eq!(cells[2].response, cells[2].response_from_due);
    let min = cells[2].get_min.as_ref().unwrap();
    assert_eq!((min.at_start, min.later), (2, 0));
    assert!((min.at_start_max_s - 0.7).abs() < 0.001);
    assert_eq!(cells[0].get_min, None);
}

#[test]
fn the_columns_of_a_row_agree_with_each_other() {
    let mut run = run(&[4; 10]);
    let readings = [
        ("disk.reads_per_s", 300.0),
        ("disk.read_bytes_per_s", 3e6),
        ("disk.writes_per_s", 463.0),
        ("disk.write_bytes_per_s", 5e6),
        ("cpu.context_switches_per_s", 700.0),
        ("cpu.busy_pct", 30.0),
        ("cpu.busy_s_per_s", 1.2),
    ];
    for step in run.trials.iter_mut().flat_map(|trial| &mut trial.steps) {
        for (name, value) in readings {
            step.readings.insert(name.to_owned(), vec![Some(value); 10]);
        }
        // It ended before its last inserts were due.
        step.measured_s = 9.0;
    }
    let cpus = f64::from(run.manifest.environment.cpus);
    let findings = analyse(&[run], &Options::default());
    for cell in &findings.insert_benchmark {
        let row = |name: &str| cell.columns.get(name).copied();
        let operations = row("qps").filter(|rate| *rate > 0.0).or(row("ips"));
        let check = |name: &str, of: f64, by: Option<f64>| {
            let (value, by) = (row(name).expect(name), by.expect("there is a rate"));
            assert!((value * by / of - 1.0).abs() < 1e-9, "{name} of step {}", cell.step);
        };
        check("wpi", row("wps").unwrap(), row("ips"));
        check("wkbpi", 1024.0 * row("wmbps").unwrap(), row("ips"));
        check("rpq", row("rps").unwrap(), operations);
        check("rkbpq", 1024.0 * row("rmbps").unwrap(), operations);
        check("cspq", row("csps").unwrap(), operations);
        check("cpupq", row("cpups").unwrap() / 100.0 * cpus * 1e6, operations);
    }
    // One table of the page has these names.
    assert!(findings.attribution.iter().all(|facts| facts.field_names.is_empty()));
}

/// By second, of two clients with a rate of two a second each.
#[track_caller]
fn check_sla(inserts: &[u32], met: u32, seconds_met: Option<f64>, longest_miss_s: u32) {
    let mut run = run(&[4; 10]);
    for trial in &mut run.trials {
        let step = &mut trial.steps[2];
        step.kinds[0] = kind("insert", 3, inserts);
        step.measured_s = inserts.len() as f64;
        step.intervals.start_s = (0..inserts.len()).map(|s| s as f64).collect();
        step.intervals.throughput = vec![1.0; inserts.len()];
    }
    let cells = cells(run);
    let sla = cells[2].sla.as_ref().unwrap();
    assert_eq!((sla.target, sla.trials, sla.window_s), (200.0, 1, 10));
    let found = (sla.met, sla.seconds_met, sla.longest_miss_s);
    assert_eq!(found, (met, seconds_met, longest_miss_s), "{sla:?}");
}

#[test]
fn an_insert_rate_is_kept_as_a_whole_and_by_windows() {
    // The last insert's second is not whole.
    check_sla(&[4; 21], 1, Some(1.0), 0);
    // Half the rate in every second.
    check_sla(&[2; 21], 0, Some(0.0), 20);
    // A statement of each client falls into the next window.
    let of_second = |s: u32| match s {
        9 => 2,
        10 => 6,
        _ => 4,
    };
    let late: Vec<u32> = (0..21).map(of_second).collect();
    check_sla(&late, 1, Some(1.0), 0);
    // Caught up: kept as a whole, not in each window.
    let of_second = |s: u32| match s {
        3..=9 => 0,
        10 => 32,
        _ => 4,
    };
    let caught_up: Vec<u32> = (0..21).map(of_second).collect();
    check_sla(&caught_up, 1, Some(0.5), 10);
    // Less than a window.
    check_sla(&[4; 10], 1, None, 0);
}

#[test]
fn steps_without_a_rate_have_no_sla_and_other_workloads_no_cells() {
    assert!(cells(run(&[4; 10]))[0].sla.is_none());
    let other = fixtures::run(&["a"], &[1], 2, |_, _, _| 10.0);
    assert!(cells(other).is_empty());
}

#[test]
fn rows_of_a_commit_follow_from_step_and_options() {
    let options: BTreeMap<String, String> =
        [("commit_i0", "100"), ("commit_i1", "50"), ("commit_i2", "5"), ("commit_q", "1k")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
    let check = |step: &str, expected: Option<u64>| {
        assert_eq!(rows_per_commit(step, &options), expected, "{step}");
    };
    check("l.i0", Some(100));
    check("l.i1", Some(50));
    check("l.i2", Some(5));
    check("l.x", None);
    check("q100", Some(100));
    check("qp1000", Some(1000));
    check("qr2000", Some(1000));
}
