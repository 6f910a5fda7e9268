//! Costs of transactions whose truth is known.

use std::collections::BTreeMap;

use dyno_record::{Run, StepSummary};

use super::{AttributionFacts, Use};
use crate::fixtures::{MEASURED_S, run};
use crate::{Options, analyse, metrics};

/// The same in all measured intervals; another in the warm-up.
fn set(step: &mut StepSummary, readings: &[(&str, f64)]) {
    for (name, value) in readings {
        let starts = &step.intervals.start_s;
        let column = starts.iter().map(|s| Some(if *s < 0.0 { 1e9 } else { *value })).collect();
        step.readings.insert((*name).to_owned(), column);
    }
}

fn found(change: impl Fn(&mut StepSummary, u32)) -> AttributionFacts {
    let mut run: Run = run(&["a"], &[4], 3, |_, _, _| 1_000.0);
    for (trial, number) in run.trials.iter_mut().zip(1..) {
        change(&mut trial.steps[0], number);
    }
    analyse(&[run], &Options::default()).attribution.remove(0)
}

fn of<'a>(facts: &'a AttributionFacts, name: &str) -> &'a Use {
    facts.uses.iter().find(|used| used.name == name).expect("it is a resource")
}

#[test]
fn cpu_is_shared_out_and_adds_up() {
    let facts = found(|step, number| {
        // Each repetition costs a little more.
        let scale = 1.0 + 0.01 * f64::from(number);
        set(
            step,
            &[
                ("server.cpu_s_per_s", 0.6 * scale),
                ("server.foreground.cpu_s_per_s", 0.45 * scale),
                ("server.thread.purge.cpu_s_per_s", 0.1 * scale),
                ("generator.cpu_s_per_s", 0.3 * scale),
                ("rest.cpu_s_per_s", 0.1 * scale),
                ("cpu.busy_s_per_s", scale),
            ],
        );
    });
    let per_transaction = |name: &str| {
        let used = of(&facts, name).per_transaction.as_ref().expect("it was read");
        assert_eq!((used.n, used.unit.as_str()), (3, "µs"));
        assert!(used.low.unwrap() < used.value && used.value < used.high.unwrap());
        used.value
    };
    // 1000 transactions a second, two statements each.
    assert!((per_transaction("cpu.server") - 612.0).abs() < 0.5);
    let parts = ["cpu.server", "cpu.generator", "cpu.rest"].map(per_transaction);
    let whole = per_transaction("cpu.machine");
    assert!((parts.iter().sum::<f64>() / whole - 1.0).abs() < 1e-6, "{parts:?} {whole}");
    assert!((per_transaction("cpu.server.thread.purge") - 102.0).abs() < 0.5);
    let statement = of(&facts, "cpu.server").per_statement.as_ref().unwrap().value;
    assert!((statement - 306.0).abs() < 0.5, "{statement}");
    assert_eq!(of(&facts, "cpu.server").per_inserted_row, None);
    let trips = of(&facts, "statements").per_transaction.as_ref().unwrap().value;
    assert!((trips - 2.0).abs() < 1e-9);
}

#[test]
fn what_is_missing_says_why() {
    let facts = found(|step, _| step.readings.clear());
    let reads = of(&facts, "reads");
    assert_eq!(reads.per_transaction, None);
    assert_eq!(reads.absent.as_deref(), Some("`disk.reads_per_s` was not recorded"));
    let fsyncs = of(&facts, "fsyncs");
    assert_eq!(fsyncs.absent.as_deref(), Some("the engine has no counter for them"));
    // The summary has the server's CPU without readings.
    let server = of(&facts, "cpu.server").per_transaction.as_ref().unwrap();
    assert!((server.value - 8.0 / MEASURED_S / 1_000.0 * 1e6).abs() < 1e-6);
}

#[test]
fn synchronous_writes_are_those_of_all_engines() {
    let fsyncs = |readings: &[(&str, f64)]| {
        let facts = found(|step, _| set(step, readings));
        let used = of(&facts, "fsyncs");
        let value = used.per_transaction.as_ref().map(|estimate| estimate.value);
        (value.map(|value| (value * 1e9).round() / 1e9), used.formula.clone())
    };
    // MariaDB with both engines; InnoDB's two names count once.
    let (both, formula) = fsyncs(&[
        ("innodb.os_fsyncs_per_s", 100.0),
        ("innodb.data_fsyncs_per_s", 100.0),
        ("rocksdb.wal_syncs_per_s", 400.0),
    ]);
    assert_eq!(both, Some(0.5));
    let expected = "mean of `innodb.os_fsyncs_per_s` + mean of `rocksdb.wal_syncs_per_s`";
    assert!(formula.starts_with(expected), "{formula}");
    // PostgreSQL 16, and 18 with all figures by kind of process.
    let io =
        [("pg.io.client_backend.fsyncs_per_s", 20.0), ("pg.io.checkpointer.fsyncs_per_s", 30.0)];
    assert_eq!(fsyncs(&[io[0], io[1], ("pg.wal_syncs_per_s", 250.0)]).0, Some(0.3));
    assert_eq!(fsyncs(&io).0, Some(0.05));
}

#[test]
fn a_last_interval_that_is_short_counts_by_its_length() {
    let mut summary = dyno_record::StepSummary { measured_s: 1.5, ..Default::default() };
    summary.intervals.start_s = vec![-1.0, 0.0, 1.0];
    summary.readings.insert("x".to_owned(), vec![Some(900.0), Some(10.0), Some(40.0)]);
    assert_eq!(super::readings::mean_rate(&summary, "x"), Ok(20.0));
}

#[test]
fn the_columns_of_the_insert_benchmark() {
    let facts = found(|step, _| {
        // As in the author's legend: 45.5 % of four CPUs at 103,093 rows a second are 18 µs.
        step.kinds[0].name = "insert".to_owned();
        step.rows_changed = 103_093 * MEASURED_S as u64;
        set(
            step,
            &[
                ("cpu.busy_pct", 45.5),
                ("cpu.busy_s_per_s", 1.82),
                ("cpu.context_switches_per_s", 206_186.0),
                ("disk.write_bytes_per_s", 103_093.0 * 1024.0 * 0.5),
                ("disk.writes_per_s", 1_030.93),
            ],
        );
    });
    let value = |name: &str| {
        let column = facts.field_names.iter().find(|column| column.name == name).unwrap();
        column.value.as_ref().map(|estimate| estimate.value)
    };
    assert!((value("ips").unwrap() - 103_093.0).abs() < 1.0);
    assert_eq!(value("cpupq").unwrap().round(), 18.0);
    assert!((value("cspq").unwrap() - 2.0).abs() < 1e-6);
    assert!((value("wkbpi").unwrap() - 0.5).abs() < 1e-6);
    assert!((value("wpi").unwrap() - 0.01).abs() < 1e-9);
    assert_eq!(value("qps"), Some(0.0));
    assert_eq!(value("rss"), None);
    let row = of(&facts, "cpu.machine").per_inserted_row.as_ref().unwrap().value;
    assert!((row - 17.65).abs() < 0.01, "{row}");
}

fn commit(step: &mut StepSummary, kinds: &[(&str, u64)]) {
    let kind = step.kinds[0].clone();
    let of = |(name, n): &(&str, u64)| dyno_record::KindSummary {
        name: (*name).to_owned(),
        outcomes: BTreeMap::from([("committed".to_owned(), *n)]),
        ..kind.clone()
    };
    step.kinds = kinds.iter().map(of).collect();
}

#[test]
fn where_queries_run_the_field_divides_by_them() {
    let facts = found(|step, _| {
        commit(step, &[("insert", 20), ("delete", 20), ("market", 5_000), ("get_min", 3)]);
        step.rows_changed = 2_000;
        set(step, &[("disk.reads_per_s", 1_000.0), ("disk.writes_per_s", 500.0)]);
    });
    let value = |name: &str| {
        let column = facts.field_names.iter().find(|column| column.name == name).unwrap();
        column.value.as_ref().unwrap().value
    };
    assert!((value("qps") - 500.0).abs() < 1e-9 && (value("ips") - 100.0).abs() < 1e-9);
    assert!((value("rpq") - 2.0).abs() < 1e-9 && (value("wpi") - 5.0).abs() < 1e-9);
}

#[test]
fn asking_for_the_smallest_id_is_no_query() {
    let facts = found(|step, _| {
        // A write step with deletes asks for it at its start and when it runs out of rows.
        commit(step, &[("insert", 20), ("delete", 20), ("get_min_start", 1), ("get_min", 2)]);
        step.rows_changed = 2_000;
        set(step, &[("disk.reads_per_s", 1_000.0)]);
    });
    let value = |name: &str| {
        let column = facts.field_names.iter().find(|column| column.name == name).unwrap();
        column.value.as_ref().unwrap().value
    };
    assert_eq!(value("qps"), 0.0);
    assert!((value("rpq") - 10.0).abs() < 1e-9, "{}", value("rpq"));
}

#[test]
fn one_quantity_has_one_value_under_either_name() {
    // Bytes differ between trials, so that the kinds of means differ.
    let mut record =
        run(&["a"], &[4], 3, |_, _, repetition| 1_000.0 + 100.0 * f64::from(repetition));
    for trial in &mut record.trials {
        let bytes = 1e6 * f64::from(trial.repetition * trial.repetition);
        set(&mut trial.steps[0], &[("disk.write_bytes_per_s", bytes)]);
        // Short, and unlike the others.
        let step = &mut trial.steps[0];
        step.measured_s -= 0.75;
        let column = step.readings.get_mut("disk.write_bytes_per_s").expect("it was set");
        *column.last_mut().expect("there are intervals") = Some(9.0 * bytes);
    }
    let findings = analyse(&[record], &Options::default());
    let (facts, cell) = (&findings.attribution[0], &findings.cells[0]);
    let value = |name: &str| {
        let column = facts.field_names.iter().find(|column| column.name == name).unwrap();
        column.value.as_ref().unwrap().value
    };
    let written = of(facts, "written_bytes");
    let check = |theirs: f64, ours: f64| {
        assert!((theirs / ours - 1.0).abs() < 1e-9, "{theirs} and {ours}");
    };
    check(value("wmbps") * 1024.0 * 1024.0, written.per_second.as_ref().unwrap().value);
    check(value("wkbpq") * 1024.0, written.per_transaction.as_ref().unwrap().value);
    check(value("wkbpq") * 1024.0, cell.metrics[&metrics::DISK_WRITTEN].value);
    check(value("maxop") * 1e6, cell.metrics[&metrics::RESPONSE_MAX].value);
}

#[test]
fn a_database_in_the_generators_process_is_no_server() {
    let of_process = |in_process: bool| {
        let mut run: Run = run(&["a"], &[4], 3, |_, _, _| 1_000.0);
        for trial in &mut run.trials {
            let product = dyno_record::ProductFacts { in_process, ..Default::default() };
            trial.server.of_product = Some(product);
            trial.steps[0].server_cpu_s = None;
            set(&mut trial.steps[0], &[("generator.cpu_s_per_s", 0.3)]);
        }
        analyse(&[run], &Options::default()).attribution.remove(0)
    };
    let (inside, beside) = (of_process(true), of_process(false));
    let why = |facts: &AttributionFacts| of(facts, "cpu.server").absent.clone().unwrap();
    assert_eq!(why(&inside), "the database runs inside the load generator's own process");
    assert!(why(&beside).contains("was not recorded"));
    assert!(of(&inside, "cpu.generator").title.ends_with("and the database inside it"));
    assert!(of(&beside, "cpu.generator").title.ends_with("load generator"));
}

#[test]
fn cpu_time_ends_at_all_cpus() {
    let facts = found(|step, number| {
        let busy = [3.99, 3.2, 3.9][number as usize - 1];
        set(step, &[("cpu.busy_s_per_s", busy)]);
    });
    let used = of(&facts, "cpu.machine").per_second.as_ref().unwrap();
    let cpus = run(&["a"], &[4], 3, |_, _, _| 1_000.0).manifest.environment.cpus;
    assert_eq!(cpus, 4);
    assert_eq!(used.high, Some(4e6), "{used:?}");
}
