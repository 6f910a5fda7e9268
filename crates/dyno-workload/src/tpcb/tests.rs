//! What pgbench's scripts make and send to a recording connection.

use std::collections::{BTreeMap, HashSet};

use dyno_units::Seed;
use expect_test::{Expect, expect};

use crate::catalog::PlanError;
use crate::fake::{Fake, Ran, made, refused_option};
use crate::{
    AuditTotals, Dialect, ErrorClass, KindTotals, MadeWorkload, Row, StatementError, Tally,
    TextRows,
};

const DIALECTS: [Dialect; 3] = [Dialect::PostgreSql, Dialect::MySql, Dialect::Sqlite];

fn make(options: &[(&str, &str)]) -> Result<MadeWorkload, PlanError> {
    made(super::NAME, options, 1)
}

fn workload(options: &[(&str, &str)]) -> MadeWorkload {
    make(options).unwrap()
}

fn run(options: &[(&str, &str)], n: u64) -> Ran {
    Fake::new(Dialect::MySql).run(&workload(options), n)
}

#[test]
fn statements_of_a_transaction_are_as_many_as_in_pgbench() {
    for (script, reads, writes, others) in
        [("tpcb-like", 1, 4, 2), ("simple-update", 1, 2, 2), ("select-only", 1, 0, 0)]
    {
        let expected = Tally { reads, writes, others, ..Tally::default() };
        for protocol in ["prepared", "simple", "extended"] {
            let ran = run(&[("script", script), ("protocol", protocol)], 5);
            assert_eq!(ran.tallies, [expected; 5], "{script} {protocol}");
        }
    }
}

#[track_caller]
fn check_sent(options: &[(&str, &str)], expected: Expect) {
    expected.assert_eq(&run(options, 1).sent_text());
}

#[test]
fn order_and_values_of_a_transaction() {
    check_sent(
        &[("scale", "7")],
        expect![[r#"
        BEGIN
        UPDATE pgbench_accounts SET abalance = abalance + ? WHERE aid = ? 1155 36501
        SELECT abalance FROM pgbench_accounts WHERE aid = ? 36501
        UPDATE pgbench_tellers SET tbalance = tbalance + ? WHERE tid = ? 1155 64
        UPDATE pgbench_branches SET bbalance = bbalance + ? WHERE bid = ? 1155 1
        INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (?, ?, ?, ?, CURRENT_TIMESTAMP) 64 1 36501 1155
        COMMIT
    "#]],
    );
    check_sent(
        &[("scale", "7"), ("protocol", "simple")],
        expect![[r#"
        BEGIN
        UPDATE pgbench_accounts SET abalance = abalance + 1155 WHERE aid = 36501
        SELECT abalance FROM pgbench_accounts WHERE aid = 36501
        UPDATE pgbench_tellers SET tbalance = tbalance + 1155 WHERE tid = 64
        UPDATE pgbench_branches SET bbalance = bbalance + 1155 WHERE bid = 1
        INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (64, 1, 36501, 1155, CURRENT_TIMESTAMP)
        COMMIT
    "#]],
    );
    check_sent(
        &[("script", "simple-update")],
        expect![[r#"
        BEGIN
        UPDATE pgbench_accounts SET abalance = abalance + ? WHERE aid = ? 1155 5215
        SELECT abalance FROM pgbench_accounts WHERE aid = ? 5215
        INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (?, ?, ?, ?, CURRENT_TIMESTAMP) 10 1 5215 1155
        COMMIT
    "#]],
    );
    check_sent(
        &[("script", "select-only"), ("protocol", "simple")],
        expect![[r#"
        SELECT abalance FROM pgbench_accounts WHERE aid = 5215
    "#]],
    );
}

#[test]
fn all_protocols_send_the_same_values() {
    let numbers = |protocol: &str| -> Vec<Vec<i64>> {
        let ran = run(&[("scale", "20"), ("protocol", protocol)], 50);
        let text = ran.sent_text().replace(['(', ')', ','], " ");
        let of_line = |line: &str| line.split(' ').filter_map(|word| word.parse().ok()).collect();
        text.lines().map(of_line).collect()
    };
    let (prepared, simple) = (numbers("prepared"), numbers("simple"));
    assert_eq!(prepared.len(), 50 * 7);
    assert_eq!(prepared, simple);
    assert_eq!(prepared, numbers("extended"));
}

#[test]
fn extended_parses_every_statement_each_time() {
    let of = |script, protocol| {
        let options = [("script", script), ("protocol", protocol)];
        workload(&options).statements(Dialect::PostgreSql)
    };
    for (script, n) in [("tpcb-like", 7), ("simple-update", 5), ("select-only", 1)] {
        let statements = of(script, "extended");
        assert_eq!(statements.len(), n, "{script}: BEGIN and COMMIT are among them");
        assert!(statements.iter().all(|statement| statement.is_unnamed));
        assert!(of(script, "prepared").iter().all(|statement| !statement.is_unnamed));
    }
    let sent = |protocol| run(&[("protocol", protocol)], 3).sent_text();
    assert_eq!(sent("extended"), sent("prepared"));
}

#[test]
fn extended_is_refused_where_nothing_is_unnamed() {
    let workload = workload(&[("protocol", "extended")]);
    assert_eq!(workload.check(Dialect::PostgreSql), Ok(()));
    for (dialect, part) in [(Dialect::MySql, "two round trips"), (Dialect::Sqlite, "SQLite")] {
        let reason = workload.check(dialect).unwrap_err();
        assert!(reason.contains("`protocol`") && reason.contains(part), "{reason}");
    }
}

#[test]
fn values_cover_their_ranges_and_keep_to_them() {
    let ran = run(&[("scale", "2")], 20_000);
    let inserts = ran.sent.iter().filter(|sent| sent.sql.starts_with("INSERT"));
    let rows: Vec<Vec<i64>> =
        inserts.map(|sent| sent.values.iter().map(|v| v.parse().unwrap()).collect()).collect();
    let column = |idx: usize| rows.iter().map(move |row| row[idx]);
    let ends = |idx: usize| (column(idx).min().unwrap(), column(idx).max().unwrap());
    assert_eq!((ends(0), ends(1)), ((1, 20), (1, 2)));
    let (first, last) = ends(2);
    assert!((1..100).contains(&first) && (199_900..=200_000).contains(&last), "{first} {last}");
    let (least, most) = ends(3);
    assert!((-5000..-4990).contains(&least) && (4991..=5000).contains(&most), "{least} {most}");
    let tellers: HashSet<i64> = column(0).collect();
    assert_eq!(tellers.len(), 20);
}

#[test]
fn accounts_follow_the_distribution() {
    let ran = run(&[("script", "select-only"), ("distribution", "zipfian")], 2000);
    let n_hot = ran.integers().filter(|aid| *aid <= 1000).count();
    assert!((400..1200).contains(&n_hot), "{n_hot}");
}

#[test]
fn a_retry_sends_the_same_values_again() {
    let mut fake = Fake::new(Dialect::PostgreSql);
    fake.fail_next(StatementError::new(ErrorClass::Serialization, "40001", "no"));
    let ran = fake.run(&workload(&[("script", "simple-update")]), 1);
    // BEGIN failed; ROLLBACK, and all again.
    let text = ran.sent_text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[1]), (7, "BEGIN", "ROLLBACK"));
    let mut fake = Fake::new(Dialect::PostgreSql);
    for _ in 0..2 {
        fake.succeed_next();
    }
    fake.fail_next(StatementError::new(ErrorClass::Serialization, "40001", "no"));
    let ran = fake.run(&workload(&[("script", "simple-update")]), 1);
    let text = ran.sent_text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..3], lines[4..7], "{text}");
    assert_eq!(lines.len(), 9);
}

#[track_caller]
fn check_tables(dialect: Dialect, options: &[(&str, &str)], expected: Expect) {
    let text: String = workload(options)
        .tables(dialect)
        .iter()
        .map(|table| format!("{}\n  {}\n", table.create, table.after.join("\n  ")))
        .collect();
    expected.assert_eq(&text);
}

#[test]
fn tables_in_each_dialect() {
    check_tables(
        Dialect::PostgreSql,
        &[("fillfactor", "90")],
        expect![[r#"
            CREATE TABLE pgbench_branches (bid int not null, bbalance int, filler char(88)) WITH (fillfactor=90)
              VACUUM ANALYZE pgbench_branches
              ALTER TABLE pgbench_branches ADD PRIMARY KEY (bid)
            CREATE TABLE pgbench_tellers (tid int not null, bid int, tbalance int, filler char(84)) WITH (fillfactor=90)
              VACUUM ANALYZE pgbench_tellers
              ALTER TABLE pgbench_tellers ADD PRIMARY KEY (tid)
            CREATE TABLE pgbench_accounts (aid int not null, bid int, abalance int, filler char(84) default '') WITH (fillfactor=90)
              ALTER TABLE pgbench_accounts ALTER COLUMN filler DROP DEFAULT
              VACUUM ANALYZE pgbench_accounts
              ALTER TABLE pgbench_accounts ADD PRIMARY KEY (aid)
            CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))
              VACUUM ANALYZE pgbench_history
        "#]],
    );
    check_tables(
        Dialect::MySql,
        &[("scale", "20000")],
        expect![[r#"
            CREATE TABLE pgbench_branches (bid int not null primary key, bbalance int, filler char(88))
              ANALYZE TABLE pgbench_branches
            CREATE TABLE pgbench_tellers (tid int not null primary key, bid int, tbalance int, filler char(84))
              ANALYZE TABLE pgbench_tellers
            CREATE TABLE pgbench_accounts (aid bigint not null primary key, bid int, abalance int, filler char(84) default '')
              ALTER TABLE pgbench_accounts ALTER COLUMN filler DROP DEFAULT
              ANALYZE TABLE pgbench_accounts
            CREATE TABLE pgbench_history (tid int, bid int, aid bigint, delta int, mtime datetime, filler char(22))
              ANALYZE TABLE pgbench_history
        "#]],
    );
    check_tables(
        Dialect::Sqlite,
        &[],
        expect![[r#"
            CREATE TABLE pgbench_branches (bid integer primary key not null, bbalance int, filler char(88))
              ANALYZE pgbench_branches
            CREATE TABLE pgbench_tellers (tid integer primary key not null, bid int, tbalance int, filler char(84))
              ANALYZE pgbench_tellers
            CREATE TABLE pgbench_accounts (aid integer primary key not null, bid int, abalance int, filler char(84) default '                                                                                    ')
              ANALYZE pgbench_accounts
            CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))
              ANALYZE pgbench_history
        "#]],
    );
}

fn line(table_idx: usize, number: u64) -> String {
    let mut row = Row::new();
    workload(&[("scale", "3")]).fill_row(table_idx, number, &mut row);
    let mut out = Vec::new();
    row.write_tab_separated(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn rows_are_those_of_pgbench() {
    assert_eq!((line(0, 0), line(0, 2)), ("1\t0\n".to_owned(), "3\t0\n".to_owned()));
    assert_eq!((line(1, 9), line(1, 10)), ("10\t1\t0\n".to_owned(), "11\t2\t0\n".to_owned()));
    assert_eq!(line(2, 99_999), "100000\t1\t0\n");
    assert_eq!(line(2, 100_000), "100001\t2\t0\n");
    for dialect in DIALECTS {
        let tables = workload(&[("scale", "3")]).tables(dialect);
        let rows: Vec<u64> = tables.iter().map(|table| table.rows).collect();
        assert_eq!(rows, [3, 30, 300_000, 0], "{dialect:?}");
        for (idx, table) in tables.iter().enumerate().filter(|(_, table)| table.rows > 0) {
            assert_eq!(line(idx, 0).split('\t').count(), table.columns.len(), "{}", table.name);
        }
    }
}

#[track_caller]
fn check_refused(options: &[(&str, &str)], expected: &str) {
    let error = refused_option(make(options));
    assert_eq!(error.name, expected, "{error}");
}

#[test]
fn senseless_options_are_refused() {
    check_refused(&[("scale", "0")], "scale");
    check_refused(&[("scale", "1B")], "scale");
    check_refused(&[("fillfactor", "9")], "fillfactor");
    check_refused(&[("fillfactor", "101")], "fillfactor");
    check_refused(&[("script", "tpcb_like")], "script");
    check_refused(&[("protocol", "parsed")], "protocol");
    check_refused(&[("pareto_h", "1")], "pareto_h");
}

#[test]
fn fillfactor_is_refused_where_there_is_none() {
    let workload = workload(&[("fillfactor", "80")]);
    assert_eq!(workload.check(Dialect::PostgreSql), Ok(()));
    for dialect in [Dialect::MySql, Dialect::Sqlite] {
        let reason = workload.check(dialect).unwrap_err();
        assert!(reason.contains("`fillfactor`") && reason.contains("PostgreSQL"), "{reason}");
        assert_eq!(self::workload(&[]).check(dialect), Ok(()));
    }
}

/// What 100 transactions of `script` add up to, to which the server replies `answers`.
#[track_caller]
fn check_audit(script: &str, lost: u64, answers: &[i64], expected_to_fail: &[&str]) {
    let workload = workload(&[("script", script)]);
    let per_transaction = run(&[("script", script)], 1).tallies[0].statements();
    let totals = AuditTotals {
        kinds: vec![KindTotals { committed: 100, lost, ..KindTotals::default() }],
        tally: Tally {
            reads: 100,
            others: 100 * (per_transaction - 1),
            rows_received: 100,
            ..Tally::default()
        },
        in_flight: 2,
    };
    let row: Vec<_> = answers.iter().map(|number| Some(number.to_string())).collect();
    let n_queries = workload.audit_queries(Dialect::Sqlite).len();
    let answers: Vec<TextRows> = vec![vec![row]; n_queries];
    let rows = workload.audit(&totals, &answers);
    let failed: Vec<&str> =
        rows.iter().filter(|row| !row.pass).map(|row| row.name.as_str()).collect();
    assert_eq!(failed, expected_to_fail, "{rows:?}");
}

const ACCOUNTS: &str = "sum of account balances must equal the sum of the deltas in history";
const TELLERS: &str = "sum of teller balances must equal the sum of the deltas in history";
const BRANCHES: &str = "sum of branch balances must equal the sum of the deltas in history";
const HISTORY: &str = "rows in history, 1 per transaction";

#[test]
fn an_audit_passes_what_is_right_and_finds_what_is_wrong() {
    check_audit("tpcb-like", 0, &[-7, -7, -7, -7, 100], &[]);
    // Two were in flight in the end: they may have committed.
    check_audit("tpcb-like", 0, &[9, 9, 9, 9, 102], &[]);
    check_audit("tpcb-like", 0, &[9, 9, 9, 9, 103], &[HISTORY]);
    check_audit("tpcb-like", 1, &[9, 9, 9, 9, 103], &[]);
    check_audit("tpcb-like", 0, &[9, 9, 9, 9, 99], &[HISTORY]);
    check_audit("tpcb-like", 0, &[8, 9, 9, 9, 100], &[ACCOUNTS]);
    check_audit("tpcb-like", 0, &[9, 8, 9, 9, 100], &[TELLERS]);
    check_audit("tpcb-like", 0, &[9, 9, 8, 9, 100], &[BRANCHES]);
    check_audit("tpcb-like", 0, &[9, 9, 9, 8, 100], &[ACCOUNTS, TELLERS, BRANCHES]);
    check_audit("simple-update", 0, &[9, 0, 0, 9, 100], &[]);
    check_audit("simple-update", 0, &[9, 1, 0, 9, 100], &["sum of teller balances"]);
    check_audit("simple-update", 0, &[8, 0, 0, 9, 100], &[ACCOUNTS]);
    check_audit("select-only", 0, &[], &[]);
}

#[test]
fn an_audit_counts_statements_and_rows() {
    let workload = workload(&[("script", "select-only")]);
    let judge = |committed, undone, reads, rows_received| -> Vec<bool> {
        let totals = AuditTotals {
            kinds: vec![KindTotals { committed, undone, ..KindTotals::default() }],
            tally: Tally { reads, rows_received, ..Tally::default() },
            in_flight: 1,
        };
        workload.audit(&totals, &[]).iter().map(|row| row.pass).collect()
    };
    assert!(workload.audit_queries(Dialect::MySql).is_empty());
    assert_eq!(judge(50, 0, 50, 50), [true, true, true]);
    assert_eq!(judge(50, 0, 50, 49), [true, false, true]);
    assert_eq!(judge(50, 0, 51, 50), [false, true, true]);
    assert_eq!(judge(50, 1, 51, 50), [true, true, true]);
}

#[test]
fn an_audit_without_answers_fails() {
    let rows = workload(&[]).audit(&AuditTotals::default(), &[vec![]]);
    let passed: Vec<bool> = rows.iter().map(|row| row.pass).collect();
    assert_eq!(passed, [true, true, true, true, true, false, false, false, false], "{rows:?}");
    assert!(rows[2..5].iter().all(|row| row.is_undecided), "nothing was drawn: {rows:?}");
}

#[test]
fn a_wrong_skew_is_found() {
    let settings = |distribution: &str| {
        let given = BTreeMap::from([("distribution".to_owned(), distribution.to_owned())]);
        let specs = super::option_specs();
        let options = crate::options::Options::resolve(&specs, &given).unwrap();
        super::Settings::read(&options).unwrap()
    };
    let failed = |intended: &str, drawn: &str| -> Vec<String> {
        let keys = settings(intended).drawn_keys();
        let drawn = settings(drawn);
        let mut random = Seed(3).stream();
        let [accounts, tellers, branches] = keys.client();
        for _ in 0..5000 {
            accounts.note(drawn.accounts.draw(&mut random));
            tellers.note(random.below(10));
            branches.note(0);
        }
        let rows: Vec<_> = keys.audit_rows().collect();
        assert!(rows.iter().all(|row| !row.is_undecided), "{rows:?}");
        rows.into_iter().filter(|row| !row.pass).map(|row| row.name).collect()
    };
    assert!(failed("uniform", "uniform").is_empty() && failed("zipfian", "zipfian").is_empty());
    for (intended, drawn) in [("uniform", "zipfian"), ("zipfian", "uniform")] {
        let failed = failed(intended, drawn);
        assert!(failed.len() == 1 && failed[0].starts_with("skew of accounts"), "{failed:?}");
    }
}
