//! Each script's demands, with right and wrong answers.

use crate::fake::{Fake, made};
use crate::{AuditTotals, Dialect, KindTotals, MadeWorkload, Tally, TextRows};

/// A case: a script of two tables with 500 rows each, and what its clients received.
struct Case {
    workload: MadeWorkload,
    totals: AuditTotals,
}

fn case(script: &str, options: &[(&str, &str)]) -> Case {
    let two_tables = [("tables", "2"), ("table_size", "500")];
    let has_rows = script != "bulk_insert";
    let tables = if has_rows { &two_tables[..] } else { &two_tables[..1] };
    let options: Vec<(&str, &str)> = tables.iter().chain(options).copied().collect();
    let workload = made(script, &options, 1).unwrap();
    Case {
        workload,
        totals: AuditTotals { kinds: vec![KindTotals::default()], ..AuditTotals::default() },
    }
}

impl Case {
    fn attempts(mut self, committed: u64, undone: u64, lost: u64, in_flight: u64) -> Case {
        self.totals.kinds[0] = KindTotals { committed, undone, lost, ..KindTotals::default() };
        self.totals.in_flight = in_flight;
        self
    }

    fn tally(mut self, statements: u64, rows_received: u64, rows_changed: u64) -> Case {
        let others = statements;
        self.totals.tally = Tally { others, rows_received, rows_changed, ..Tally::default() };
        self
    }

    /// Judges these row counts; returns each demand with its end: `rows in the tables: ok`.
    fn judge(&self, counts: &[u64]) -> String {
        let answer = |count: &u64| vec![vec![Some(count.to_string())]];
        let answers: Vec<TextRows> = counts.iter().map(answer).collect();
        assert_eq!(self.workload.audit_queries(Dialect::MySql).len(), answers.len());
        let rows = self.workload.audit(&self.totals, &answers);
        // What was drawn is judged apart: here are no clients.
        let rows = rows.iter().filter(|row| !row.name.starts_with("rows drawn"));
        let answers = rows.map(|row| {
            let end = if row.pass { "ok" } else { "wrong" };
            format!("{} {end}", row.name.split(',').next().unwrap_or_default())
        });
        answers.collect::<Vec<_>>().join("; ")
    }
}

#[test]
fn what_clients_draw_is_judged() {
    let check = |script: &str, options: &[(&str, &str)], is_judged: bool| {
        let workload = case(script, options).workload;
        Fake::new(Dialect::MySql).run(&workload, 3000);
        let rows = workload.audit(&AuditTotals::default(), &[]);
        let row = rows.iter().find(|row| row.name.starts_with("rows drawn"));
        assert_eq!(row.is_some(), is_judged, "{script}");
        if let Some(row) = row {
            assert!(row.pass, "{script} {options:?}: {row:?}");
            assert!(!row.expected.contains(" 0 draws"), "{script}: {row:?}");
        }
    };
    for distribution in ["uniform", "gaussian", "special", "pareto", "zipfian"] {
        check("oltp_point_select", &[("distribution", distribution)], true);
    }
    check("oltp_read_write", &[("distribution", "zipfian")], true);
    check("oltp_insert", &[], true);
    check("select_random_points", &[], false);
    check("bulk_insert", &[], false);
}

#[test]
fn statements_follow_from_the_options() {
    let judge = |script: &str, options: &[(&str, &str)], counts: &[u64], statements: u64| {
        let rows_received = if script == "oltp_point_select" { 10 } else { 10 * 200 };
        let case = case(script, options).attempts(10, 0, 0, 0);
        case.tally(statements, rows_received, 0).judge(counts)
    };
    assert_eq!(judge("oltp_read_only", &[], &[], 160), "statements sent ok; rows received ok");
    assert_eq!(judge("oltp_read_only", &[], &[], 159), "statements sent wrong; rows received ok");
    let short = [("skip_trx", "on"), ("sum_ranges", "3")];
    assert_eq!(judge("oltp_read_only", &short, &[], 160), "statements sent ok; rows received ok");
    let both = &[500, 500];
    assert_eq!(judge("oltp_read_write", &[], both, 200), "statements sent ok; rows in 2 tables ok");
    assert_eq!(judge("oltp_write_only", &[], both, 60), "statements sent ok; rows in 2 tables ok");
    assert_eq!(judge("oltp_update_index", &[], &[], 10), "statements sent ok");
    assert_eq!(judge("oltp_point_select", &[], &[], 10), "statements sent ok; rows received ok");
    assert_eq!(judge("select_random_points", &[], &[], 11), "statements sent wrong");
}

#[test]
fn a_point_select_finds_its_row() {
    let judge = |options: &[(&str, &str)], rows| {
        case("oltp_point_select", options).attempts(10, 1, 0, 3).tally(11, rows, 0).judge(&[])
    };
    assert_eq!(judge(&[], 9), "statements sent ok; rows received wrong");
    assert_eq!(judge(&[], 10), "statements sent ok; rows received ok");
    // The attempt that failed may have had its row.
    assert_eq!(judge(&[], 12), "statements sent ok; rows received wrong");
    // Of five keys some may be the same.
    let keys = [("point_select_keys", "5")];
    assert_eq!(judge(&keys, 9), "statements sent ok; rows received wrong");
    assert_eq!(judge(&keys, 50), "statements sent ok; rows received ok");
}

#[test]
fn range_scans_receive_at_least_their_first_row() {
    let judge = |options: &[(&str, &str)], rows| {
        case("oltp_read_only", options).attempts(1, 0, 0, 0).tally(16, rows, 0).judge(&[])
    };
    let (ok, wrong) =
        ("statements sent ok; rows received ok", "statements sent ok; rows received wrong");
    assert_eq!([judge(&[], 13), judge(&[], 14)], [wrong, ok]);
    assert_eq!([judge(&[], 311), judge(&[], 312)], [ok, wrong]);
    let filter = [("row_filter", "on")];
    assert_eq!([judge(&filter, 10), judge(&filter, 11)], [wrong, ok]);
    assert_eq!([judge(&filter, 14), judge(&filter, 15)], [ok, wrong]);
}

#[test]
fn rows_that_are_deleted_are_inserted_again() {
    let judge = |options: &[(&str, &str)], counts: &[u64]| {
        let statements = if options.is_empty() { 60 } else { 40 };
        case("oltp_write_only", options).attempts(10, 1, 0, 2).tally(statements, 0, 0).judge(counts)
    };
    assert_eq!(judge(&[], &[500, 500]), "statements sent ok; rows in 2 tables ok");
    // A row more in one table does not make up for one less in another.
    assert_eq!(judge(&[], &[501, 499]), "statements sent ok; rows in 2 tables wrong");
    let single = [("skip_trx", "on")];
    assert_eq!(judge(&single, &[499, 498]), "statements sent ok; rows in the tables ok");
    assert_eq!(judge(&single, &[499, 497]), "statements sent ok; rows in the tables wrong");
    assert_eq!(judge(&single, &[500, 501]), "statements sent ok; rows in the tables wrong");
}

#[test]
fn rows_that_come_or_go_are_counted() {
    let delete = |counts: &[u64]| {
        case("oltp_delete", &[]).attempts(10, 0, 1, 2).tally(11, 0, 8).judge(counts)
    };
    assert_eq!(delete(&[492, 500]), "statements sent ok; rows in the tables ok");
    assert_eq!(delete(&[492, 497]), "statements sent ok; rows in the tables ok");
    assert_eq!(delete(&[492, 496]), "statements sent ok; rows in the tables wrong");
    assert_eq!(delete(&[493, 500]), "statements sent ok; rows in the tables wrong");
    let insert = |counts: &[u64]| {
        case("oltp_insert", &[]).attempts(10, 0, 0, 2).tally(10, 0, 10).judge(counts)
    };
    assert_eq!(insert(&[505, 505]), "statements sent ok; rows in the tables ok");
    assert_eq!(insert(&[505, 507]), "statements sent ok; rows in the tables ok");
    assert_eq!(insert(&[505, 508]), "statements sent ok; rows in the tables wrong");
    assert_eq!(insert(&[505, 504]), "statements sent ok; rows in the tables wrong");
    let bulk = |counts: &[u64]| {
        let case = case("bulk_insert", &[("statement_bytes", "600")]);
        case.attempts(300, 0, 0, 1).tally(3, 0, 250).judge(counts)
    };
    assert_eq!(bulk(&[100, 150]), "rows in the tables ok");
    assert_eq!(bulk(&[100, 250]), "rows in the tables ok");
    assert_eq!(bulk(&[100, 149]), "rows in the tables wrong");
    assert_eq!(bulk(&[100, 251]), "rows in the tables wrong");
}
