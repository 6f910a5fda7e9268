//! Dyno's load and real sysbench's leave the same rows and count the same statements.

use std::process::Command;

use dyno_model::{Arrivals, Load};
use dyno_workload::{Connection, MadeWorkload};

use crate::foreign::{Standing, planned, put_load};

const ROWS: u64 = 2_000;
const TABLES: u64 = 2;

fn workload(name: &str) -> MadeWorkload {
    let (tables, rows) = (TABLES.to_string(), ROWS.to_string());
    planned(name, &[("tables", &tables), ("table_size", &rows)])
}

fn counts(connection: &mut dyn Connection) -> Vec<u64> {
    let count = |table: u64| format!("SELECT COUNT(*) FROM sbtest{table}");
    (1..=TABLES)
        .map(|table| {
            let rows = connection.query(&count(table)).unwrap();
            rows[0][0].as_deref().unwrap().parse().unwrap()
        })
        .collect()
}

fn sysbench(standing: &Standing, product: &str, script: &str, command: &str) -> String {
    let mut process = Command::new("sysbench");
    process
        .arg(script)
        .arg(format!("--tables={TABLES}"))
        .arg(format!("--table-size={ROWS}"))
        .args(["--threads=2", "--events=200", "--time=60"]);
    if product == "mariadb" {
        process.args(["--db-driver=mysql", "--mysql-user=root", "--mysql-db=dyno"]);
        process.arg(format!("--mysql-socket={}", standing.socket.display()));
    } else {
        let port = standing.socket.extension().unwrap().to_string_lossy().into_owned();
        process.args(["--db-driver=pgsql", "--pgsql-user=dyno", "--pgsql-db=dyno"]);
        process.arg(format!("--pgsql-host={}", standing.socket.parent().unwrap().display()));
        process.arg(format!("--pgsql-port={port}"));
    }
    let output = process.arg(command).output().expect("sysbench is installed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    text
}

/// From `read: 1400` and the like in sysbench's report.
fn reported(report: &str, name: &str) -> u64 {
    let line = report.lines().find(|line| line.trim().starts_with(name)).unwrap();
    line.split(':').nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap()
}

/// So many transactions that those at the ends do not count; a busy machine needs longer.
fn dyno_load(standing: &Standing, workload: &MadeWorkload) -> dyno_load::StepTotals {
    let load = Load::Open { rate: 200.0, arrivals: Arrivals::Constant, clients: 2 };
    let for_seconds =
        |seconds: u64| put_load(standing.connector(), workload, load.clone(), seconds);
    let has_enough =
        |totals: &dyno_load::StepTotals| totals.measured.kinds[0].outcomes.committed() > 60;
    [1, 5, 25].into_iter().map(for_seconds).find(has_enough).expect("enough is committed")
}

fn same_rows_and_statements(product: &str, script: &str) {
    let standing = Standing::start(product);
    let mut connection = standing.connection();
    sysbench(&standing, product, script, "prepare");
    let report = sysbench(&standing, product, script, "run");
    let after_sysbench = counts(connection.as_mut());
    sysbench(&standing, product, script, "cleanup");

    let workload = workload(script);
    standing.populate(&*workload);
    let totals = dyno_load(&standing, &workload);
    assert_eq!(counts(connection.as_mut()), after_sysbench, "{script} on {product}");
    assert_eq!(after_sysbench, vec![ROWS; TABLES as usize]);

    let outcomes = totals.measured.kinds[0].outcomes;
    let transactions = outcomes.committed();
    let tally = totals.measured.tally;
    if outcomes.failed() == 0 && !report.contains("deadlock") {
        let events = reported(&report, "transactions");
        for (name, ours) in
            [("read", tally.reads), ("write", tally.writes), ("other", tally.others)]
        {
            // sysbench counts a DELETE without a row as "other": another client had the row.
            let per_event = (reported(&report, name) + events / 2) / events;
            assert_eq!(per_event, ours / transactions, "{script}: {name}");
        }
    }
}

#[test]
fn read_write_on_mariadb() {
    same_rows_and_statements("mariadb", "oltp_read_write");
}

#[test]
fn write_only_on_postgresql() {
    same_rows_and_statements("postgresql", "oltp_write_only");
}
