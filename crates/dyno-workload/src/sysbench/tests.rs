//! What every script makes and sends to a recording connection.

mod audits;

use std::collections::HashSet;

use expect_test::{Expect, expect};

use crate::fake::{Fake, Ran, made, refused_option};
use crate::{Dialect, ErrorClass, MadeWorkload, Row, StatementError, TableShape, Tally};

fn workload(name: &str, options: &[(&str, &str)]) -> MadeWorkload {
    made(name, options, 1).unwrap()
}

/// Runs client 0 of 1 for `n` transactions.
fn run(name: &str, options: &[(&str, &str)], n: u64) -> Ran {
    Fake::new(Dialect::MySql).run(&workload(name, options), n)
}

#[track_caller]
fn check_counts(name: &str, options: &[(&str, &str)], reads: u64, writes: u64, others: u64) {
    let ran = run(name, options, 5);
    let expected = Tally { reads, writes, others, ..Tally::default() };
    assert_eq!(ran.tallies, [expected; 5], "{name} {options:?}");
}

#[test]
fn statements_of_a_transaction_are_as_many_as_in_sysbench() {
    check_counts("oltp_read_only", &[], 14, 0, 2);
    check_counts("oltp_read_write", &[], 14, 4, 2);
    check_counts("oltp_write_only", &[], 0, 4, 2);
    check_counts("oltp_point_select", &[], 1, 0, 0);
    check_counts("oltp_update_index", &[], 0, 1, 0);
    check_counts("oltp_update_non_index", &[], 0, 1, 0);
    check_counts("oltp_delete", &[], 0, 1, 0);
    check_counts("oltp_insert", &[], 0, 1, 0);
    check_counts("select_random_points", &[], 1, 0, 0);
    check_counts("select_random_ranges", &[], 1, 0, 0);
    check_counts("bulk_insert", &[], 0, 0, 0);
}

#[test]
fn options_change_the_number_of_statements() {
    check_counts("oltp_read_only", &[("skip_trx", "on")], 14, 0, 0);
    check_counts("oltp_read_only", &[("range_selects", "off")], 10, 0, 2);
    check_counts("oltp_read_only", &[("point_selects", "5"), ("sum_ranges", "3")], 11, 0, 2);
    check_counts("oltp_read_write", &[("delete_inserts", "10")], 14, 22, 2);
    check_counts("oltp_write_only", &[("delete_inserts", "0"), ("index_updates", "2")], 0, 3, 2);
    check_counts("oltp_update_non_index", &[("non_index_updates", "4")], 0, 4, 0);
    check_counts("oltp_point_select", &[("point_select_keys", "100")], 1, 0, 0);
}

#[track_caller]
fn check_sent(name: &str, options: &[(&str, &str)], expected: Expect) {
    expected.assert_eq(&run(name, options, 1).sent_text());
}

#[test]
fn order_and_values_of_a_transaction() {
    // 9 tables of one row: ids are always 1, tables show which statements share a draw.
    check_sent(
        "oltp_read_write",
        &[("tables", "9"), ("table_size", "1"), ("point_selects", "2"), ("delete_inserts", "2")],
        expect![[r#"
            BEGIN
            SELECT c FROM sbtest1 WHERE id=? 1
            SELECT c FROM sbtest1 WHERE id=? 1
            SELECT c FROM sbtest6 WHERE id BETWEEN ? AND ? 1 100
            SELECT SUM(k) FROM sbtest5 WHERE id BETWEEN ? AND ? 1 100
            SELECT c FROM sbtest5 WHERE id BETWEEN ? AND ? ORDER BY c 1 100
            SELECT DISTINCT c FROM sbtest9 WHERE id BETWEEN ? AND ? ORDER BY c 1 100
            UPDATE sbtest4 SET k=k+1 WHERE id=? 1
            UPDATE sbtest6 SET c=? WHERE id=? text[119] 1
            DELETE FROM sbtest3 WHERE id=? 1
            INSERT INTO sbtest3 (id, k, c, pad) VALUES (?, ?, ?, ?) 1 1 text[119] text[59]
            DELETE FROM sbtest3 WHERE id=? 1
            INSERT INTO sbtest3 (id, k, c, pad) VALUES (?, ?, ?, ?) 1 1 text[119] text[59]
            COMMIT
        "#]],
    );
}

#[test]
fn keys_and_filters_of_rondb() {
    let options = [("point_select_keys", "3"), ("point_selects", "1"), ("row_filter", "on")];
    let statements: Vec<String> = workload("oltp_read_only", &options)
        .statements(Dialect::PostgreSql)
        .into_iter()
        .map(|statement| statement.sql)
        .collect();
    expect![[r#"
        SELECT c FROM sbtest1 WHERE id IN ($1, $2, $3)
        SELECT c FROM sbtest1 WHERE id BETWEEN $1 AND $2 AND id % 100 = 0
        SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN $1 AND $2 AND id % 100 = 0
        SELECT c FROM sbtest1 WHERE id BETWEEN $1 AND $2 AND id % 100 = 0 ORDER BY c
        SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN $1 AND $2 AND id % 100 = 0 ORDER BY c"#]]
    .assert_eq(&statements.join("\n"));
}

#[test]
fn random_keys_come_from_the_clients_own_part() {
    let points = workload("select_random_points", &[("table_size", "1000")]);
    for client_idx in 0..4 {
        let ran = Fake::of(client_idx, 4).run(&points, 50);
        let keys: Vec<i64> = ran.integers().collect();
        assert_eq!(keys.len(), 500);
        let part = client_idx as i64 * 250..=client_idx as i64 * 250 + 250;
        assert!(keys.iter().all(|key| part.contains(key)), "client {client_idx}: {keys:?}");
    }
    let ran = run("select_random_ranges", &[("number_of_ranges", "2"), ("delta", "7")], 20);
    let keys: Vec<i64> = ran.integers().collect();
    assert_eq!(keys.len(), 80);
    assert!(keys.chunks(2).all(|range| range[1] - range[0] == 7));
}

#[test]
fn clients_never_insert_the_same_id() {
    let insert = workload("oltp_insert", &[("auto_inc", "off"), ("tables", "3")]);
    let mut ids = HashSet::new();
    for (client_idx, n_clients) in [(0, 1), (0, 3), (1, 3), (2, 3), (0, 2), (1, 2)] {
        let ran = Fake::of(client_idx, n_clients).run(&insert, 40);
        assert_eq!(ran.sent.len(), 40);
        for sent in &ran.sent {
            assert!(ids.insert(sent.values[0].clone()), "{} again", sent.values[0]);
        }
    }
    assert_eq!(insert.tables(Dialect::MySql)[0].rows, 0);
}

#[test]
fn a_server_that_gives_ids_is_sent_none() {
    let values = |dialect, options: &[(&str, &str)]| {
        let insert = workload("oltp_insert", options);
        Fake::new(dialect).run(&insert, 1).sent[0].values.len()
    };
    assert_eq!(values(Dialect::MySql, &[]), 3);
    assert_eq!(values(Dialect::PostgreSql, &[]), 3);
    assert_eq!(values(Dialect::Sqlite, &[]), 3);
    assert_eq!(values(Dialect::Sqlite, &[("secondary", "on")]), 4);
    assert_eq!(values(Dialect::MySql, &[("auto_inc", "off")]), 4);
}

#[test]
fn bulk_insert_counts_rows_and_sends_long_statements() {
    let options = [("statement_bytes", "1000"), ("tables", "2")];
    let bulk = workload("bulk_insert", &options);
    let ran = Fake::of(1, 4).run(&bulk, 1000);
    let n_writes: u64 = ran.tallies.iter().map(|tally| tally.writes).sum();
    assert_eq!(ran.tallies.len(), 1000);
    assert_eq!(n_writes as usize, ran.sent.len());
    assert!(ran.sent.iter().all(|sent| (950..=1000).contains(&sent.sql.len())));
    let first = &ran.sent[0].sql;
    // Clients 1 and 3 share table 2: 1 has the odd ids.
    assert!(first.starts_with("INSERT INTO sbtest2 VALUES (1,1),(3,3),(5,5),"), "{first}");
}

#[test]
fn a_bulk_statement_that_failed_is_sent_again_or_dropped() {
    let first_id = |class| {
        let bulk = workload("bulk_insert", &[("statement_bytes", "1000")]);
        let mut fake = Fake::new(Dialect::MySql);
        fake.fail_next(StatementError::new(class, "1", "no"));
        let ran = fake.run(&bulk, 300);
        let is_row_statement = |sql: &&str| sql.starts_with("INSERT");
        let sent: Vec<&str> =
            ran.sent.iter().map(|sent| sent.sql.as_str()).filter(is_row_statement).collect();
        (sent[0] == sent[1], sent[1].contains("(1,1)"))
    };
    assert_eq!(first_id(ErrorClass::Deadlock), (true, true));
    assert_eq!(first_id(ErrorClass::DuplicateKey), (false, false));
}

#[test]
fn an_error_ends_the_transaction_and_a_retry_begins_again() {
    let mut fake = Fake::new(Dialect::MySql);
    fake.fail_next(StatementError::new(ErrorClass::Deadlock, "1213", "deadlock"));
    let ran = fake.run(&workload("oltp_write_only", &[]), 1);
    let sent: Vec<&str> = ran.sent.iter().map(|sent| sent.sql.split(' ').next().unwrap()).collect();
    let expected = ["BEGIN", "ROLLBACK", "BEGIN", "UPDATE", "UPDATE", "DELETE", "INSERT", "COMMIT"];
    assert_eq!(sent, expected);
}

#[test]
fn statement_indexes_meet_the_statements_of_their_table() {
    // Each statement must name the drawn table: with all kinds in one mix, each kind of each table
    // is met.
    let mix = workload("oltp_read_write", &[("tables", "4")]);
    let ran = Fake::new(Dialect::Sqlite).run(&mix, 200);
    let met: HashSet<&str> = ran.sent.iter().map(|sent| sent.sql.as_str()).collect();
    let prepared = mix.statements(Dialect::Sqlite);
    assert_eq!(prepared.len(), 9 * 4);
    assert!(prepared.iter().all(|statement| met.contains(statement.sql.as_str())));
    assert_eq!(met.len(), 9 * 4 + 2);
}

#[track_caller]
fn check_tables(dialect: Dialect, options: &[(&str, &str)], expected: Expect) {
    let tables = workload("oltp_read_write", options).tables(dialect);
    let table = tables.last().unwrap();
    let create = table.create.replace(", ", ",\n  ");
    let text = format!("{create}\n{}", table.after.join("\n"));
    expected.assert_eq(&text);
}

#[test]
fn the_shapes_of_tables_are_those_of_the_tables() {
    for (name, options) in [
        ("oltp_read_write", &[("tables", "7"), ("table_size", "123")][..]),
        ("oltp_insert", &[("tables", "2")]),
        ("bulk_insert", &[]),
    ] {
        let workload = workload(name, options);
        for dialect in Dialect::ALL {
            let tables = workload.tables(dialect);
            let n_tables = tables.len() as u64;
            let rows = tables[0].rows;
            assert!(tables.iter().all(|t| (&t.columns, t.rows) == (&tables[0].columns, rows)));
            let expected = [TableShape { first: 0, n_tables, rows }];
            assert_eq!(workload.table_shapes(), expected, "{name}");
        }
    }
}

#[test]
fn tables_in_each_dialect() {
    check_tables(
        Dialect::MySql,
        &[("tables", "2")],
        expect![[r#"
            CREATE TABLE sbtest2 (id INTEGER NOT NULL AUTO_INCREMENT,
              k INTEGER DEFAULT '0' NOT NULL,
              c CHAR(120) DEFAULT '' NOT NULL,
              pad CHAR(60) DEFAULT '' NOT NULL,
              PRIMARY KEY (id))
            CREATE INDEX k_2 ON sbtest2 (k)
            ANALYZE TABLE sbtest2"#]],
    );
    check_tables(
        Dialect::PostgreSql,
        &[],
        expect![[r#"
            CREATE TABLE sbtest1 (id SERIAL,
              k INTEGER DEFAULT '0' NOT NULL,
              c CHAR(120) DEFAULT '' NOT NULL,
              pad CHAR(60) DEFAULT '' NOT NULL,
              PRIMARY KEY (id))
            CREATE INDEX k_1 ON sbtest1 (k)
            SELECT setval(pg_get_serial_sequence('sbtest1', 'id'), 10000)
            VACUUM ANALYZE sbtest1"#]],
    );
    check_tables(
        Dialect::Sqlite,
        &[],
        expect![[r#"
            CREATE TABLE sbtest1 (id INTEGER,
              k INTEGER DEFAULT '0' NOT NULL,
              c CHAR(120) DEFAULT '' NOT NULL,
              pad CHAR(60) DEFAULT '' NOT NULL,
              PRIMARY KEY (id))
            CREATE INDEX k_1 ON sbtest1 (k)
            ANALYZE sbtest1"#]],
    );
    let secondary = [("secondary", "on"), ("create_secondary", "off")];
    check_tables(
        Dialect::MySql,
        &secondary,
        expect![[r#"
            CREATE TABLE sbtest1 (id INTEGER NOT NULL AUTO_INCREMENT,
              k INTEGER DEFAULT '0' NOT NULL,
              c CHAR(120) DEFAULT '' NOT NULL,
              pad CHAR(60) DEFAULT '' NOT NULL,
              KEY xid (id))
            ANALYZE TABLE sbtest1"#]],
    );
    check_tables(
        Dialect::PostgreSql,
        &secondary,
        expect![[r#"
            CREATE TABLE sbtest1 (id SERIAL,
              k INTEGER DEFAULT '0' NOT NULL,
              c CHAR(120) DEFAULT '' NOT NULL,
              pad CHAR(60) DEFAULT '' NOT NULL)
            CREATE INDEX xid_1 ON sbtest1 (id)
            SELECT setval(pg_get_serial_sequence('sbtest1', 'id'), 10000)
            VACUUM ANALYZE sbtest1"#]],
    );
    check_tables(
        Dialect::Sqlite,
        &[("auto_inc", "off"), ("secondary", "on")],
        expect![[r#"
            CREATE TABLE sbtest1 (id INTEGER NOT NULL,
              k INTEGER DEFAULT '0' NOT NULL,
              c CHAR(120) DEFAULT '' NOT NULL,
              pad CHAR(60) DEFAULT '' NOT NULL)
            CREATE INDEX xid_1 ON sbtest1 (id)
            CREATE INDEX k_1 ON sbtest1 (k)
            ANALYZE sbtest1"#]],
    );
}

#[test]
fn rows_are_a_pure_function_of_their_number() {
    let line = |name: &str, seed: u64, table_idx: usize, number: u64| {
        let workload = made(name, &[("tables", "2")], seed).unwrap();
        let mut row = Row::new();
        workload.fill_row(table_idx, number, &mut row);
        let mut out = Vec::new();
        row.write_tab_separated(&mut out);
        String::from_utf8(out).unwrap().replace('\t', "\n").replace("-4", "\n-4")
    };
    expect![[r#"
        42
        1319
        05047282512
        -42451739272-57250291526-37373000679-66575963858
        -44714701951-93849850995-51840082912-80664519236-98797661371
        83076579164-61425749131-89650082165-32841329074-85360628714
    "#]]
    .assert_eq(&line("oltp_read_only", 1, 0, 41));
    assert_eq!(line("oltp_read_only", 1, 0, 7), line("oltp_write_only", 1, 0, 7));
    assert_ne!(line("oltp_read_only", 1, 0, 7), line("oltp_read_only", 1, 1, 7));
    assert_ne!(line("oltp_read_only", 1, 0, 7), line("oltp_read_only", 2, 0, 7));
    let without_id = |line: String| line.split_once('\n').map(|(_, rest)| rest.to_owned());
    assert_ne!(
        without_id(line("oltp_read_only", 1, 0, 7)),
        without_id(line("oltp_read_only", 1, 0, 8))
    );
}

#[test]
fn values_of_k_follow_the_distribution() {
    let workload =
        workload("oltp_read_only", &[("distribution", "zipfian"), ("table_size", "1000")]);
    let mut row = Row::new();
    let mut n_hot = 0;
    for number in 0..2000 {
        row.clear();
        workload.fill_row(0, number, &mut row);
        let crate::Cell::Integer(k) = row.cells()[1] else { panic!("{:?}", row.cells()) };
        assert!((1..=1000).contains(&k));
        n_hot += i32::from(k <= 10);
    }
    assert!(n_hot > 400, "{n_hot}");
}

#[track_caller]
fn check_refused(name: &str, options: &[(&str, &str)], expected: &str) {
    let error = refused_option(made(name, options, 1));
    assert_eq!(error.name, expected, "{error}");
}

#[test]
fn senseless_options_are_refused() {
    check_refused("oltp_read_only", &[("tables", "0")], "tables");
    check_refused("oltp_read_only", &[("table_size", "3B")], "table_size");
    check_refused("oltp_read_only", &[("index_updates", "1")], "index_updates");
    check_refused("oltp_read_only", &[("point_select_keys", "0")], "point_select_keys");
    check_refused("bulk_insert", &[("statement_bytes", "10")], "statement_bytes");
    check_refused("oltp_update_index", &[("index_updates", "0")], "index_updates");
    let nothing = [("skip_trx", "on"), ("point_selects", "0"), ("range_selects", "off")];
    check_refused("oltp_read_only", &nothing, "skip_trx");
}

#[test]
fn every_script_can_be_made_with_its_defaults() {
    let specs = super::specs();
    for spec in &specs {
        let workload = made(&spec.name, &[], 1).unwrap();
        assert_eq!(workload.name(), spec.name);
        assert_eq!(workload.kinds(), std::slice::from_ref(&spec.name));
        assert_eq!(workload.options().len(), spec.options.len());
        assert!(!workload.tables(Dialect::MySql).is_empty());
    }
    assert_eq!(specs.len(), 11);
}
