//! What clients insert, and its audit.

use std::collections::HashSet;

use expect_test::{Expect, expect};

use crate::catalog::PlanError;
use crate::fake::{Fake, Ran, made, refused_option};
use crate::{AuditTotals, Dialect, KindTotals, MadeWorkload, Row, Tally, TextRows};

fn make(options: &[(&str, &str)]) -> Result<MadeWorkload, PlanError> {
    made(super::NAME, options, 4)
}

fn run(options: &[(&str, &str)], n: u64) -> Ran {
    Fake::new(Dialect::PostgreSql).run(&make(options).unwrap(), n)
}

const RANDOM: (&str, &str) = ("key", "random-string");

#[track_caller]
fn check_tables(options: &[(&str, &str)], dialect: Dialect, expected: Expect) {
    let tables = make(options).unwrap().tables(dialect);
    let text: String = tables
        .iter()
        .map(|table| format!("{}\n  {}\n", table.create, table.after.join("\n  ")))
        .collect();
    expected.assert_eq(&text);
}

#[test]
fn tables_in_each_dialect() {
    check_tables(
        &[],
        Dialect::MySql,
        expect![[r#"
        CREATE TABLE test_sequential_pk1 (id int not null auto_increment, number int not null, PRIMARY KEY (id), KEY test_sequential_pk1_number (number))
          ANALYZE TABLE test_sequential_pk1
    "#]],
    );
    check_tables(
        &[RANDOM, ("tables", "2")],
        Dialect::MySql,
        expect![[r#"
        CREATE TABLE test_random_pk1 (id varchar(26) not null, number int not null, PRIMARY KEY (id), KEY test_random_pk1_number (number))
          ANALYZE TABLE test_random_pk1
        CREATE TABLE test_random_pk2 (id varchar(26) not null, number int not null, PRIMARY KEY (id), KEY test_random_pk2_number (number))
          ANALYZE TABLE test_random_pk2
    "#]],
    );
    check_tables(
        &[],
        Dialect::PostgreSql,
        expect![[r#"
        CREATE TABLE test_sequential_pk1 (id serial, number int not null, PRIMARY KEY (id))
          CREATE INDEX test_sequential_pk1_number ON test_sequential_pk1 (number)
          VACUUM ANALYZE test_sequential_pk1
    "#]],
    );
    check_tables(
        &[RANDOM],
        Dialect::PostgreSql,
        expect![[r#"
        CREATE TABLE test_random_pk1 (id varchar(26) not null, number int not null, PRIMARY KEY (id))
          CREATE INDEX test_random_pk1_number ON test_random_pk1 (number)
          VACUUM ANALYZE test_random_pk1
    "#]],
    );
    check_tables(
        &[],
        Dialect::Sqlite,
        expect![[r#"
        CREATE TABLE test_sequential_pk1 (id integer not null, number int not null, PRIMARY KEY (id))
          CREATE INDEX test_sequential_pk1_number ON test_sequential_pk1 (number)
          ANALYZE test_sequential_pk1
    "#]],
    );
}

#[test]
fn statements_of_both_keys() {
    let sent = |options: &[(&str, &str)]| run(options, 2).sent_text();
    expect![[r#"
        INSERT INTO test_sequential_pk1 (number) VALUES ($1) 296
        INSERT INTO test_sequential_pk1 (number) VALUES ($1) 6155
    "#]]
    .assert_eq(&sent(&[]));
    expect![[r#"
        INSERT INTO test_random_pk1 (id, number) VALUES ($1, $2) text[23] 296
        INSERT INTO test_random_pk1 (id, number) VALUES ($1, $2) text[23] 5384
    "#]]
    .assert_eq(&sent(&[RANDOM, ("tables", "3")]));
    expect![[r#"
        INSERT INTO test_random_pk1 (id, number) VALUES ('90557870348-61548085474', 296), ('53831191384-45135977114', 558), ('12271878681-89264271499', 5548)
        INSERT INTO test_random_pk1 (id, number) VALUES ('61855499259-61372072222', 3342), ('44278875608-85115226389', 5793), ('58661801499-67532981180', 2135)
    "#]].assert_eq(&sent(&[RANDOM, ("rows_per_transaction", "3")]));
}

#[test]
fn numbers_are_uniform_and_every_table_is_met() {
    let ran = run(&[("numbers", "50"), ("tables", "4")], 2000);
    let numbers: HashSet<i64> = ran.integers().collect();
    assert_eq!(
        (numbers.len(), numbers.iter().min(), numbers.iter().max()),
        (50, Some(&1), Some(&50))
    );
    let tables: HashSet<&str> = ran.sent.iter().map(|sent| sent.sql.as_str()).collect();
    assert_eq!(tables.len(), 4);
}

fn line(options: &[(&str, &str)], table: usize, number: u64) -> String {
    let mut row = Row::new();
    make(options).unwrap().fill_row(table, number, &mut row);
    let mut out = Vec::new();
    row.write_tab_separated(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn filled_rows_follow_from_the_seed_and_have_keys_of_their_own() {
    let key = |table, number| {
        let line = line(&[RANDOM, ("tables", "2")], table, number);
        line.split('\t').next().unwrap().to_owned()
    };
    assert_eq!(key(0, 5), key(0, 5));
    let keys: HashSet<String> = (0..2)
        .flat_map(|t| (0..5000).map(move |n| (t, n)))
        .map(|(table, number)| key(table, number))
        .collect();
    assert_eq!(keys.len(), 10_000);
    assert!(keys.iter().all(|key| key.len() == 23 && key.as_bytes()[11] == b'-'));
    let first: HashSet<u8> = keys.iter().map(|key| key.as_bytes()[0]).collect();
    assert_eq!(first.len(), 10, "all digits come first");
    assert!(line(&[], 0, 7).trim().parse::<i64>().is_ok(), "the server gives the key");
}

#[test]
fn senseless_options_are_refused() {
    let check = |name: &str, value: &str| {
        assert_eq!(refused_option(make(&[(name, value)])).name, name);
    };
    check("key", "uuid");
    check("tables", "0");
    check("rows_per_transaction", "0");
    check("numbers", "0");
    check("table_size", "3B");
    check("rows_per_transaction", "10001");
}

#[track_caller]
fn check_audit(counted: i64, sizes: [i64; 2], expected_to_fail: &[&str]) {
    let workload = make(&[("table_size", "1000"), ("rows_per_transaction", "2")]).unwrap();
    let totals = AuditTotals {
        kinds: vec![KindTotals { committed: 10, ..KindTotals::default() }],
        tally: Tally { writes: 10, ..Tally::default() },
        in_flight: 1,
    };
    let text = |number: i64| Some(number.to_string());
    let answers: Vec<TextRows> =
        vec![vec![vec![text(counted)]], vec![vec![text(counted), text(sizes[0]), text(sizes[1])]]];
    let rows = workload.audit(&totals, &answers);
    let failed: Vec<&str> =
        rows.iter().filter(|row| !row.pass).map(|row| row.name.as_str()).collect();
    assert_eq!(failed, expected_to_fail, "{rows:?}");
}

#[test]
fn an_audit_finds_lost_rows_and_tables_without_a_size() {
    check_audit(1020, [1 << 16, 1 << 14], &[]);
    check_audit(1022, [1 << 16, 1 << 14], &[]);
    check_audit(1023, [1 << 16, 1 << 14], &["rows in all tables, filled and inserted"]);
    check_audit(1019, [1 << 16, 1 << 14], &["rows in all tables, filled and inserted"]);
    check_audit(1020, [1 << 16, 0], &["size of the indexes of test_sequential_pk1"]);
    let rows = make(&[]).unwrap().audit(&AuditTotals::default(), &[]);
    assert_eq!(rows.iter().filter(|row| !row.pass).count(), 3, "{rows:?}");
}

#[test]
fn sizes_are_read_while_it_runs_where_that_is_cheap() {
    let workload = make(&[RANDOM]).unwrap();
    let query = |dialect| workload.readings_query(dialect);
    assert!(query(Dialect::MySql).unwrap().ends_with("table_name LIKE 'test_random_pk%'"));
    assert!(query(Dialect::PostgreSql).unwrap().contains("pg_indexes_size(relid)"));
    assert_eq!(query(Dialect::Sqlite), None);
}

#[test]
fn an_audit_reports_bytes_per_row() {
    let answers: Vec<TextRows> = vec![
        vec![vec![Some("1000".to_owned())]],
        // The answer to ANALYZE TABLE.
        vec![vec![Some("status".to_owned()), Some("OK".to_owned())]],
        vec![vec![Some("1000".to_owned()), Some("71000".to_owned()), Some("49700".to_owned())]],
    ];
    let options = [RANDOM, ("table_size", "1000")];
    let rows = make(&options).unwrap().audit(&AuditTotals::default(), &answers);
    let measured: Vec<&str> = rows.iter().skip(2).map(|row| row.measured.as_str()).collect();
    assert_eq!(
        measured,
        [
            "71000 bytes, 71.0 per row of 1000; the columns alone are 27",
            "49700 bytes, 49.7 per row of 1000, 0.70 of the data",
        ]
    );
}
