//! The statements that clients of each role send.

use std::collections::HashMap;

use expect_test::{Expect, expect};

use super::asked;
use crate::fake::{Fake, Ran};
use crate::{Dialect, ErrorClass, KeptRows, StatementError, Value};

/// Few rows and steps; step 0 loads, 1 indexes, 2 and 3 churn, 4 asks ranges, 5 asks points.
const SMALL: &[(&str, &str)] = &[
    ("commit_i0", "3"),
    ("commit_i1", "2"),
    ("resync_get_min", "3"),
    ("rate_2", "0"),
    ("rate_3", "0"),
];

const LOAD: usize = 0;
const INDEX: usize = 1;
const CHURN: usize = 2;
const RANGES: usize = 4;
const POINTS: usize = 5;

const INSERTER: usize = 0;
const DELETER: usize = 1;
const QUERY: usize = 2;

fn answers(id: i64) -> crate::fake::Answers {
    Box::new(move |_: &str, _: &[Value<'_>], rows: &mut KeptRows| {
        rows.clear(1);
        rows.push_integer(id);
    })
}

fn with<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    SMALL.iter().chain(more).copied().collect()
}

fn run(more: &[(&str, &str)], dialect: Dialect, (step, role): (usize, usize), n: u64) -> Ran {
    let workload = asked(&with(more), 1);
    Fake::new(dialect).in_step(step, role).answering(answers(7)).run(&workload, n)
}

#[track_caller]
fn check_sent(
    more: &[(&str, &str)],
    dialect: Dialect,
    place: (usize, usize),
    n: u64,
    expected: Expect,
) {
    expected.assert_eq(&run(more, dialect, place, n).sent_text());
}

#[test]
fn rows_of_an_insert() {
    check_sent(
        &[],
        Dialect::MySql,
        (LOAD, INSERTER),
        1,
        expect![[r#"
        insert into pi1 (dateandtime,cashregisterid,customerid,productid,price,data) values (now(),52,2956,9055,307.00,'aaaaaaaoSn'),(now(),451,55472,1227,446.00,'aaaaaaarSc2'),(now(),618,61372,5792,221.00,'aaaaaaaaaaaaOhDJo/X')
    "#]],
    );
    check_sent(
        &[("schema", "2023-07")],
        Dialect::PostgreSql,
        (LOAD, INSERTER),
        1,
        expect![[r#"
        insert into pi1 (dateandtime,cashregisterid,customerid,productid,price,data) values (localtimestamp(0),52,2956,9055,32.64,'aaaaaaaoSn'),(localtimestamp(0),451,55472,1227,559.18,'aaaaaaarSc2'),(localtimestamp(0),618,61372,5792,615.93,'aaaaaaaaaaaaOhDJo/X')
    "#]],
    );
}

#[test]
fn indexes_in_each_dialect() {
    check_sent(
        &[],
        Dialect::MySql,
        (INDEX, 0),
        1,
        expect![[r#"
        ALTER TABLE pi1 ADD INDEX pi1_marketsegment (productid, customerid, price), ADD INDEX pi1_registersegment (cashregisterid, customerid, price), ADD INDEX pi1_pdc (price, dateandtime, customerid)
    "#]],
    );
    let one = [("create_indexes", "one-by-one"), ("schema", "2023-07")];
    check_sent(
        &one,
        Dialect::MySql,
        (INDEX, 0),
        1,
        expect![[r#"
        ALTER TABLE pi1 ADD INDEX pi1_marketsegment (price, customerid)
        ALTER TABLE pi1 ADD INDEX pi1_registersegment (cashregisterid, price, customerid)
        ALTER TABLE pi1 ADD INDEX pi1_pdc (price, dateandtime, customerid)
    "#]],
    );
    check_sent(
        &[],
        Dialect::PostgreSql,
        (INDEX, 0),
        1,
        expect![[r#"
        CREATE INDEX pi1_marketsegment ON pi1 (productid, customerid, price)
        CREATE INDEX pi1_registersegment ON pi1 (cashregisterid, customerid, price)
        CREATE INDEX pi1_pdc ON pi1 (price, dateandtime, customerid)
    "#]],
    );
}

#[test]
fn deletes_ask_for_the_smallest_id_first_and_again() {
    check_sent(
        &[],
        Dialect::MySql,
        (CHURN, DELETER),
        6,
        expect![[r#"
        select min(transactionid) from pi1
        delete from pi1 where transactionid >= 7 order by transactionid asc limit 2
        delete from pi1 where transactionid >= 9 order by transactionid asc limit 2
        delete from pi1 where transactionid >= 11 order by transactionid asc limit 2
        select min(transactionid) from pi1
        delete from pi1 where transactionid >= 7 order by transactionid asc limit 2
    "#]],
    );
    check_sent(
        &[],
        Dialect::PostgreSql,
        (CHURN, DELETER),
        2,
        expect![[r#"
        select min(transactionid) from pi1
        delete from pi1 where transactionid in (select transactionid from pi1 where transactionid >= 7 order by transactionid asc limit 2)
    "#]],
    );
    check_sent(
        &[("deletes", "range")],
        Dialect::Sqlite,
        (CHURN, DELETER),
        3,
        expect![[r#"
        select min(transactionid) from pi1
        delete from pi1 where (transactionid>=7 and transactionid<9)
        delete from pi1 where (transactionid>=9 and transactionid<11)
    "#]],
    );
}

#[test]
fn range_queries_in_each_dialect() {
    check_sent(
        &[],
        Dialect::MySql,
        (RANGES, QUERY),
        5,
        expect![[r#"
        SELECT productid, customerid, price FROM pi1 FORCE INDEX (pi1_marketsegment) WHERE productid >= 295 ORDER BY productid, customerid, price LIMIT 10
        SELECT price, dateandtime, customerid FROM pi1 FORCE INDEX (pi1_pdc) WHERE price >= 307 ORDER BY price, dateandtime, customerid LIMIT 10
        SELECT productid, customerid, price FROM pi1 FORCE INDEX (pi1_marketsegment) WHERE productid >= 5383 ORDER BY productid, customerid, price LIMIT 10
        SELECT cashregisterid, customerid, price FROM pi1 FORCE INDEX (pi1_registersegment) WHERE cashregisterid > 554 ORDER BY cashregisterid, customerid, price LIMIT 10
        SELECT productid, customerid, price FROM pi1 FORCE INDEX (pi1_marketsegment) WHERE productid >= 8926 ORDER BY productid, customerid, price LIMIT 10
    "#]],
    );
    check_sent(
        &[],
        Dialect::PostgreSql,
        (RANGES, QUERY),
        5,
        expect![[r#"
        prepare market_query_ps(int) as SELECT productid, customerid, price FROM pi1 WHERE productid >= $1 ORDER BY productid, customerid, price LIMIT 10
        prepare register_query_ps(int) as SELECT cashregisterid, customerid, price FROM pi1 WHERE cashregisterid > $1 ORDER BY cashregisterid, customerid, price LIMIT 10
        prepare pdc_query_ps(int) as SELECT price, dateandtime, customerid FROM pi1 WHERE price >= $1 ORDER BY price, dateandtime, customerid LIMIT 10
        execute market_query_ps (295)
        execute pdc_query_ps (307)
        execute market_query_ps (5383)
        execute register_query_ps (554)
        execute market_query_ps (8926)
    "#]],
    );
    check_sent(
        &[("query_protocol", "prepared")],
        Dialect::PostgreSql,
        (RANGES, QUERY),
        1,
        expect![[r#"
        SELECT productid, customerid, price FROM pi1 WHERE productid >= $1 ORDER BY productid, customerid, price LIMIT 10 295
    "#]],
    );
    check_sent(
        &[("schema", "2023-07")],
        Dialect::MySql,
        (RANGES, QUERY),
        5,
        expect![[r#"
        SELECT price, customerid FROM pi1 FORCE INDEX (pi1_marketsegment) WHERE price >= 34.09 ORDER BY price, customerid LIMIT 10
        SELECT cashregisterid, price, customerid FROM pi1 FORCE INDEX (pi1_registersegment) WHERE cashregisterid > 55 ORDER BY cashregisterid, price, customerid LIMIT 10
        SELECT cashregisterid, price, customerid FROM pi1 FORCE INDEX (pi1_registersegment) WHERE cashregisterid > 451 ORDER BY cashregisterid, price, customerid LIMIT 10
        SELECT cashregisterid, price, customerid FROM pi1 FORCE INDEX (pi1_registersegment) WHERE cashregisterid > 122 ORDER BY cashregisterid, price, customerid LIMIT 10
        SELECT price, dateandtime, customerid FROM pi1 FORCE INDEX (pi1_pdc) WHERE price >= 144.58 ORDER BY price, dateandtime, customerid LIMIT 10
    "#]],
    );
}

/// The original's program sends these as text too.
#[test]
fn the_smallest_and_the_largest_id_are_asked_for_as_text() {
    let check = |more: &[(&str, &str)], dialect, place, is_prepared| {
        let ran = run(more, dialect, place, 1);
        let asked = ran.sent.iter().find(|sent| sent.sql.contains("(transactionid) from pi1"));
        let asked = asked.unwrap_or_else(|| panic!("{}", ran.sent_text()));
        assert_eq!(asked.is_prepared, is_prepared, "{dialect:?}: {}", asked.sql);
    };
    for dialect in [Dialect::MySql, Dialect::PostgreSql] {
        check(&[], dialect, (CHURN, DELETER), false);
        check(&[], dialect, (POINTS, QUERY), false);
        let prepared = [("query_protocol", "prepared")];
        check(&prepared, dialect, (CHURN, DELETER), true);
        check(&prepared, dialect, (POINTS, QUERY), true);
    }
}

#[test]
fn point_queries_ask_for_the_largest_id_first() {
    check_sent(
        &[],
        Dialect::MySql,
        (POINTS, QUERY),
        2,
        expect![[r#"
        select max(transactionid) from pi1
        SELECT transactionid, productid, data FROM pi1 WHERE transactionid IN (0, 0, 6, 4, 0, 3, 3, 3, 0, 6)
    "#]],
    );
    check_sent(
        &[],
        Dialect::PostgreSql,
        (POINTS, QUERY),
        2,
        expect![[r#"
        prepare pk_query_ps(int, int, int, int, int, int, int, int, int, int) as SELECT transactionid, productid, data FROM pi1 WHERE transactionid IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
        select max(transactionid) from pi1
        execute pk_query_ps (0, 0, 6, 4, 0, 3, 3, 3, 0, 6)
    "#]],
    );
    check_sent(
        &[("query_protocol", "prepared")],
        Dialect::PostgreSql,
        (POINTS, QUERY),
        2,
        expect![[r#"
        select max(transactionid) from pi1
        SELECT transactionid, productid, data FROM pi1 WHERE transactionid IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) 0 0 6 4 0 3 3 3 0 6
    "#]],
    );
    let ran = run(&[("rows_per_query", "1")], Dialect::MySql, (POINTS, QUERY), 203);
    let maxima: Vec<usize> = (0..203).filter(|idx| ran.sent[*idx].sql.contains("max(")).collect();
    assert_eq!(maxima, [0, 101, 202]);
}

#[test]
fn every_client_has_its_own_table_and_values() {
    let workload = asked(SMALL, 3);
    let sent = |idx| Fake::of(idx, 3).in_step(LOAD, INSERTER).run(&workload, 1).sent[0].sql.clone();
    let all: Vec<String> = (0..3).map(sent).collect();
    for (idx, sql) in all.iter().enumerate() {
        assert!(sql.starts_with(&format!("insert into pi{} ", idx + 1)), "{sql}");
    }
    let values = |sql: &str| sql.split_once("values").unwrap().1.to_owned();
    assert_ne!(values(&all[0]), values(&all[1]));
}

/// The columns of all rows that many INSERTs hold.
fn columns(more: &[(&str, &str)], n: u64) -> Vec<Vec<String>> {
    let ran = run(more, Dialect::MySql, (LOAD, INSERTER), n);
    let rows = ran.sent.iter().flat_map(|sent| {
        let rows = sent.sql.split_once(" values (").unwrap().1;
        let rows: Vec<String> = rows.split("),(").map(str::to_owned).collect();
        rows
    });
    rows.map(|row| {
        row.trim_end_matches(')')
            .split(',')
            .map(|value| value.trim_matches('\'').to_owned())
            .collect()
    })
    .collect()
}

#[test]
fn values_are_uniform_over_their_ranges() {
    let rows = columns(&[], 20_000);
    assert_eq!((rows.len(), rows[0].len()), (60_000, 6));
    for (column, n) in [(1, 1000.0), (2, 100_000.0), (3, 10_000.0), (4, 500.0)] {
        let mut values: Vec<f64> =
            rows.iter().map(|row| row[column].parse::<f64>().unwrap() / n).collect();
        values.sort_by(f64::total_cmp);
        assert!(values[0] >= 0.0 && values[values.len() - 1] < 1.0, "column {column}");
        // Kolmogorov and Smirnov's distance; 1.95 / √n is exceeded once in a thousand times.
        let most = values
            .iter()
            .enumerate()
            .map(|(idx, value)| (idx as f64 / values.len() as f64 - value).abs())
            .fold(0.0, f64::max);
        assert!(most < 1.95 / 60_000_f64.sqrt() + 1.0 / n, "column {column}: {most}");
    }
}

#[test]
fn data_has_its_length_and_its_random_part() {
    let mut lengths: HashMap<usize, usize> = HashMap::new();
    let mut letters: HashMap<char, usize> = HashMap::new();
    for row in columns(&[], 5_000) {
        let data = &row[5];
        *lengths.entry(data.len()).or_default() += 1;
        let n_random = data.len() * 3 / 8;
        let (plain, random) = data.split_at(data.len() - n_random);
        assert!(plain.chars().all(|c| c == 'a') && (3..=7).contains(&n_random), "{data}");
        random.chars().for_each(|c| *letters.entry(c).or_default() += 1);
    }
    assert_eq!((lengths.len(), letters.len()), (11, 64));
    assert!(lengths.keys().all(|length| (10..=20).contains(length)));
    let longest =
        [("data_length_min", "100"), ("data_length_max", "100"), ("data_random_pct", "100")];
    assert!(columns(&longest, 1).iter().all(|row| row[5].len() == 100));
}

#[test]
fn prices_of_2023_07_have_a_fraction() {
    let prices: Vec<f64> = columns(&[("schema", "2023-07")], 5_000)
        .iter()
        .map(|row| row[4].parse().unwrap())
        .collect();
    let most = prices.iter().copied().fold(0.0, f64::max);
    assert!((995.0..=1005.0).contains(&most), "{most}");
    assert!(prices.iter().any(|price| price.fract() != 0.0));
}

#[test]
fn a_refused_insert_is_sent_again_with_the_same_rows() {
    let workload = asked(SMALL, 1);
    let mut fake = Fake::new(Dialect::MySql).in_step(LOAD, INSERTER);
    fake.fail_next(StatementError::new(ErrorClass::Deadlock, "1213", "deadlock"));
    let ran = fake.run(&workload, 2);
    let sql: Vec<&str> = ran.sent.iter().map(|sent| sent.sql.as_str()).collect();
    assert_eq!((sql.len(), sql[1]), (4, "ROLLBACK"));
    assert_eq!(sql[0], sql[2]);
    assert_ne!(sql[0], sql[3]);
}

#[test]
fn an_index_that_was_made_is_not_made_again() {
    let workload = asked(SMALL, 1);
    let mut fake = Fake::new(Dialect::PostgreSql).in_step(INDEX, 0);
    fake.succeed_next();
    fake.fail_next(StatementError::new(ErrorClass::Refused, "53100", "disk full"));
    let ran = fake.run(&workload, 2);
    let made: Vec<&str> =
        ran.sent.iter().filter_map(|sent| sent.sql.strip_prefix("CREATE INDEX pi1_")).collect();
    let names: Vec<&str> = made.iter().map(|rest| rest.split_once(' ').unwrap().0).collect();
    assert_eq!(names, ["marketsegment", "registersegment", "registersegment", "pdc"]);
}

#[test]
fn a_client_without_a_place_fails_each_transaction() {
    // Two clients sit where one was asked for.
    let workload = asked(SMALL, 1);
    let ran = Fake::of(1, 2).in_step(LOAD, INSERTER).run(&workload, 1);
    assert!(ran.sent.iter().all(|sent| sent.sql == "ROLLBACK"), "{}", ran.sent_text());
}
