//! Audits pass what is right and find what is wrong.

use super::{Ready, asked};
use crate::insert_benchmark::Kind;
use crate::insert_benchmark::clients::{add, read};
use crate::{AuditTotals, KindTotals, Reply, StatementError, Tally, TextRows};

/// Two tables with their counters: 1000 rows each in l.i0, 100 inserted and deleted since.
fn counted() -> Ready {
    let workload = asked(&[], 2);
    let counters = &workload.bench.counters;
    for counters in &counters.tables {
        for (n, rows) in [(10, 100), (2, 50)] {
            for _ in 0..n {
                counters.inserts.begin(rows).end(&Ok(changed(rows)));
            }
        }
        for _ in 0..2 {
            counters.deletes.begin(50).end(&Ok(changed(50)));
        }
        add(&counters.inserts_with_deletes, 100);
        add(&counters.batch_max, 50);
    }
    add(&counters.range.queries, 300);
    add(&counters.range.rows, 2995);
    workload
}

fn changed(rows: u64) -> Reply {
    Reply { affected: rows, ..Reply::default() }
}

fn totals(inserts: u64, deletes: u64, ranges: [u64; 3]) -> AuditTotals {
    let mut kinds = vec![KindTotals::default(); crate::insert_benchmark::KINDS.len()];
    kinds[Kind::Insert.index()].committed = inserts;
    kinds[Kind::Delete.index()].committed = deletes;
    for (kind, committed) in Kind::RANGES.iter().zip(ranges) {
        kinds[kind.index()].committed = committed;
    }
    AuditTotals { kinds, tally: Tally::default(), in_flight: 0 }
}

fn answers(numbers: &[i64]) -> Vec<TextRows> {
    numbers.iter().map(|number| vec![vec![Some(number.to_string())]]).collect()
}

#[track_caller]
fn check(workload: &Ready, totals: &AuditTotals, numbers: &[i64], expected_to_fail: &[&str]) {
    let rows = workload.audit(totals, &answers(numbers));
    let failed: Vec<&str> =
        rows.iter().filter(|row| !row.pass).map(|row| row.name.as_str()).collect();
    assert_eq!(failed, expected_to_fail, "{rows:#?}");
}

const RIGHT: [u64; 3] = [100, 100, 100];

#[test]
fn what_is_right_passes() {
    let workload = counted();
    check(&workload, &totals(24, 4, RIGHT), &[1000, 1000, 6], &[]);
    let names: Vec<String> = workload
        .audit(&totals(24, 4, RIGHT), &answers(&[1000, 1000, 6]))
        .into_iter()
        .map(|row| row.name)
        .collect();
    assert_eq!(names.len(), 2 + 3 + 2 + 2 + 1 + 3 + 1, "{names:?}");
}

#[test]
fn rows_that_are_lost_or_left_are_found() {
    let rows = "rows of pi2, inserted less deleted";
    check(&counted(), &totals(24, 4, RIGHT), &[1000, 999, 6], &[rows]);
    check(&counted(), &totals(24, 4, RIGHT), &[1000, 1001, 6], &[rows]);
    check(&counted(), &totals(24, 4, RIGHT), &[1000, 1000, 5], &["secondary indexes"]);
    let failed = counted().audit(&totals(24, 4, RIGHT), &[]).iter().filter(|row| !row.pass).count();
    assert_eq!(failed, 3, "questions without answers");
}

#[test]
fn a_delete_that_misses_rows_is_found() {
    let workload = counted();
    let counters = workload.bench.counters.table(0);
    add(&counters.inserts_with_deletes, 50);
    counters.inserts.begin(50).end(&Ok(changed(50)));
    counters.deletes.begin(50).end(&Ok(changed(49)));
    let failed = ["rows of pi1, inserted less deleted", "rows that DELETEs removed"];
    check(&workload, &totals(25, 5, RIGHT), &[1001, 1000, 6], &failed);
}

#[test]
fn deletes_that_lag_behind_are_found() {
    let workload = counted();
    let counters = workload.bench.counters.table(1);
    // Nine batches may lie between.
    add(&counters.inserts_with_deletes, 450);
    check(&workload, &totals(24, 4, RIGHT), &[1000, 1000, 6], &[]);
    add(&counters.inserts_with_deletes, 1);
    let name = "rows of pi2 deleted, one for each inserted meanwhile";
    check(&workload, &totals(24, 4, RIGHT), &[1000, 1000, 6], &[name]);
}

#[test]
fn statements_of_unknown_outcome_leave_bounds() {
    let workload = counted();
    let counters = workload.bench.counters.table(0);
    drop(counters.inserts.begin(50));
    let gone = StatementError::new(crate::ErrorClass::Disconnected, "2013", "gone");
    counters.deletes.begin(50).end(&Err(gone));
    let refused = StatementError::new(crate::ErrorClass::Refused, "1", "no");
    counters.inserts.begin(50).end(&Err(refused));
    assert_eq!((read(&counters.inserts.unknown), read(&counters.deletes.unknown)), (50, 50));
    for rows in [950, 1000, 1050] {
        check(&workload, &totals(24, 4, RIGHT), &[rows, 1000, 6], &[]);
    }
    check(&workload, &totals(25, 5, RIGHT), &[1000, 1000, 6], &[]);
    let name = "rows of pi1, inserted less deleted";
    check(&workload, &totals(24, 4, RIGHT), &[949, 1000, 6], &[name]);
}

#[test]
fn statements_in_flight_at_a_steps_end_leave_bounds() {
    let with_in_flight =
        |inserts, deletes| AuditTotals { in_flight: 2, ..totals(inserts, deletes, RIGHT) };
    // Two INSERTs and two DELETEs ended after their step did: the clients alone know.
    check(&counted(), &with_in_flight(22, 2), &[1000, 1000, 6], &[]);
    let name = "INSERTs acknowledged, by clients and by the load generator";
    check(&counted(), &with_in_flight(21, 4), &[1000, 1000, 6], &[name]);
    check(&counted(), &with_in_flight(25, 4), &[1000, 1000, 6], &[name]);
}

#[test]
fn few_queries_decide_nothing() {
    let undecided = |queries: u64| {
        let workload = asked(&[], 1);
        let point = &workload.bench.counters.point;
        add(&point.queries, queries);
        add(&point.rows, 9 * queries);
        let rows = workload.audit(&totals(0, 0, RIGHT), &answers(&[0, 3]));
        rows.iter().find(|row| row.name == "rows of a point query").unwrap().is_undecided
    };
    assert!(undecided(1) && undecided(29) && !undecided(30));
}

#[test]
fn commits_that_only_one_side_counted_are_found() {
    let name = "INSERTs acknowledged, by clients and by the load generator";
    check(&counted(), &totals(25, 4, RIGHT), &[1000, 1000, 6], &[name]);
    let name = "DELETEs acknowledged, by clients and by the load generator";
    check(&counted(), &totals(24, 3, RIGHT), &[1000, 1000, 6], &[name]);
}

#[test]
fn an_uneven_mix_and_queries_without_rows_are_found() {
    let share = |kind: &str| format!("share of {kind} among range queries");
    let failed = [share("market"), share("pdc")];
    let failed: Vec<&str> = failed.iter().map(String::as_str).collect();
    check(&counted(), &totals(24, 4, [1000, 1300, 1600]), &[1000, 1000, 6], &failed);
    let workload = counted();
    add(&workload.bench.counters.range.queries, 100);
    check(&workload, &totals(24, 4, RIGHT), &[1000, 1000, 6], &["rows of a range query"]);
}

#[test]
fn products_that_are_not_uniform_are_found() {
    let workload = counted();
    let client = workload.bench.products.client();
    (0..10_000).for_each(|product| client.note(product));
    check(&workload, &totals(24, 4, RIGHT), &[1000, 1000, 6], &[]);
    (0..10_000).for_each(|product| client.note(product / 10));
    let rows = workload.audit(&totals(24, 4, RIGHT), &answers(&[1000, 1000, 6]));
    let failed: Vec<&str> =
        rows.iter().filter(|row| !row.pass).map(|row| row.name.as_str()).collect();
    assert!(failed.len() == 1 && failed[0].starts_with("productid of inserted"), "{rows:#?}");
}
