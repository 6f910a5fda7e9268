//! Tests of types, texts and statements, without a server.

use std::sync::{Arc, Mutex};

use dyno_workload::Dialect::{ClickHouse, MySql, PostgreSql};
use dyno_workload::{ErrorClass, StatementError, TextRows};

use super::table::{Table, check_source, match_tables};
use super::value::{
    Column, Kind, canonical, clickhouse_type, fits_clickhouse, held, kind, shown, write_literal,
};
use super::{ArchiveSide, sql};

fn column(name: &str, dialect: dyno_workload::Dialect, declared: &str) -> Column {
    let kind = kind(dialect, declared, false);
    let (name, declared) = (name.to_owned(), declared.to_owned());
    Column { name, declared, kind, is_nullable: false, is_generated: false }
}

#[test]
fn types_go_to_clickhouse_as_they_are_or_not_at_all() {
    let check = |dialect, declared: &str, expected: Option<&str>| {
        let found = kind(dialect, declared, false).map(clickhouse_type);
        assert_eq!(found.as_deref(), expected, "{declared}");
    };
    check(MySql, "tinyint(1)", Some("Int8"));
    check(MySql, "int(10) unsigned zerofill", Some("UInt32"));
    check(MySql, "bigint(20) unsigned", Some("UInt64"));
    check(MySql, "decimal(38,10)", Some("Decimal(38, 10)"));
    check(MySql, "decimal(65,30) unsigned", None);
    check(MySql, "varchar(20)", Some("String"));
    check(MySql, "enum('a','unsigned')", Some("String"));
    check(MySql, "varbinary(8)", Some("String"));
    check(MySql, "date", Some("Date"));
    check(MySql, "datetime", Some("DateTime('UTC')"));
    check(MySql, "datetime(6)", Some("String"));
    for declared in ["double", "float", "bit(3)", "time", "year(4)", "point", "inet6"] {
        check(MySql, declared, None);
    }
    check(PostgreSql, "numeric(10,2)", Some("Decimal(10, 2)"));
    check(PostgreSql, "timestamp without time zone", Some("String"));
    check(PostgreSql, "timestamp(0) with time zone", Some("DateTime('UTC')"));
    check(PostgreSql, "boolean", Some("UInt8"));
    check(PostgreSql, "character varying(20)", Some("String"));
    for declared in ["numeric", "double precision", "text[]", "interval", "point", "numeric(5,-2)"]
    {
        check(PostgreSql, declared, None);
    }
    // Types that others have made.
    for declared in [
        "timestampx",
        "timestampx(3)",
        "timestamp",
        "integer x",
        "date(1)x",
        "varchar(3)[]",
        "public.text",
        "\"text\"",
    ] {
        check(PostgreSql, declared, None);
    }
    for declared in ["intx", "datetimex(3)", "timestampx", "xenum('a')"] {
        check(MySql, declared, None);
    }
}

#[test]
fn a_value_has_one_text() {
    let check = |kind, text: &str, expected: Option<&str>| {
        assert_eq!(canonical(kind, text).ok().as_deref(), expected, "{text}");
    };
    let integer = Kind::Integer { bits: 32, is_unsigned: true };
    check(integer, "0042", Some("42"));
    check(integer, "000", Some("0"));
    let decimal = Kind::Decimal { precision: 9, scale: 3 };
    check(decimal, "-0.500", Some("-0.5"));
    check(decimal, "-0.000", Some("0"));
    check(decimal, "120", Some("120"));
    for wrong in ["NaN", "", "-", "1e5", "Infinity", "."] {
        check(decimal, wrong, None);
    }
    check(Kind::Bytes, "0aff", Some("0AFF"));
    check(Kind::Text, "abc", None);
    check(Kind::Date, "2020-02-29", Some("2020-02-29"));
    for wrong in
        ["0000-00-00", "2020-00-10", "infinity", "0044-03-15 BC", "12020-01-01", "täglich-1-"]
    {
        check(Kind::Date, wrong, None);
    }
    let moment = Kind::DateTime { digits: 6, is_moment: true };
    check(moment, "2020-02-29 10:00:00.500000", Some("2020-02-29 10:00:00.5"));
    check(moment, "2020-02-29 10:00:00.000", Some("2020-02-29 10:00:00"));
    check(moment, "2020-02-29 10:00:00+00", None);
    check(moment, "infinity", None);
}

#[test]
fn days_that_clickhouse_does_not_hold_are_refused() {
    let check = |kind, text: &str, expected: bool| {
        assert_eq!(fits_clickhouse(kind, text).is_ok(), expected, "{text}");
    };
    check(Kind::Date, "1970-01-01", false);
    check(Kind::Date, "1970-01-02", true);
    check(Kind::Date, "2105-12-31", true);
    check(Kind::Date, "2106-01-01", false);
    check(Kind::DateTime { digits: 0, is_moment: false }, "1969-12-31 23:59:59", false);
    check(Kind::DateTime { digits: 3, is_moment: false }, "1969-12-31 23:59:59.5", true);
}

#[test]
fn literals_hold_any_value() {
    let check = |dialect, kind, text: Option<&str>, expected: &str| {
        let mut out = String::new();
        write_literal(dialect, kind, text, &mut out).unwrap();
        assert_eq!(out, expected);
    };
    // It's \ and a line feed.
    let hex = Some("4974277320 5C0A".replace(' ', "")).map(|hex| hex + "00");
    let hex = hex.as_deref();
    check(MySql, Kind::Text, hex, "_utf8mb4 X'49742773205C0A00'");
    check(MySql, Kind::Bytes, Some(""), "X''");
    check(ClickHouse, Kind::Bytes, hex, "'It\\'s \\\\\\x0A\\x00'");
    check(PostgreSql, Kind::Text, Some("49742773205C"), "'It''s \\'");
    check(PostgreSql, Kind::Bytes, hex, "'\\x49742773205C0A00'");
    check(PostgreSql, Kind::Boolean, Some("1"), "'t'");
    check(MySql, Kind::Date, None, "NULL");
    assert!(write_literal(PostgreSql, Kind::Text, Some("FF"), &mut String::new()).is_err());
    assert_eq!(shown(Kind::Text, Some("1B5B6D")).contains('\u{1b}'), false);
}

#[test]
fn names_and_conditions_do_not_break_out() {
    assert_eq!(sql::quoted(MySql, "a`b"), "`a``b`");
    assert_eq!(sql::quoted(PostgreSql, "a\"b"), "\"a\"\"b\"");
    assert_eq!(sql::quoted(ClickHouse, "a`\\b"), "`a\\`\\\\b`");
    let columns = [column("id", MySql, "int(11)"), column("c", MySql, "text")];
    assert_eq!(
        sql::batch(MySql, "t", &columns, ("id", "id < 9 -- old", 5)),
        "SELECT `id`, HEX(CONVERT(`c` USING utf8mb4)), 1 FROM `t` WHERE (id < 9 -- old\n) ORDER BY `id` LIMIT 5 \
         FOR UPDATE"
    );
    assert_eq!(
        sql::create("t", &columns, "id"),
        "CREATE TABLE `t` (`id` Int32, `c` String) ENGINE = MergeTree ORDER BY `id`"
    );
}

/// What is sent for these statements, in order; those with `refused` in them are refused.
fn sent(dialect: dyno_workload::Dialect, statements: &[&str]) -> Vec<String> {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&sent);
    let ask = move |sql: &str| {
        noted.lock().unwrap().push(sql.to_owned());
        match sql.contains("refused") {
            true => Err(StatementError::new(ErrorClass::Refused, "test", "no".to_owned())),
            false => Ok(TextRows::new()),
        }
    };
    let mut side = ArchiveSide::sending(dialect, Box::new(ask));
    for statement in statements {
        let _ = side.send(statement);
    }
    let sent = sent.lock().unwrap();
    sent.clone()
}

/// A pooler gives the session to other clients next. Settings are there before a literal is read.
#[test]
fn settings_of_a_transaction_end_with_it() {
    let begin = sql::begin(PostgreSql);
    let begin = begin.as_str();
    assert!(
        begin.starts_with("BEGIN; SET TRANSACTION ") && begin.contains("; SET LOCAL "),
        "{begin}"
    );
    assert!(!begin.contains("SET standard") && sql::session(PostgreSql).is_empty(), "{begin}");
    let check = |statements: &[&str], expected: &[&str]| {
        assert_eq!(sent(PostgreSql, statements), expected);
        assert_eq!(sent(MySql, statements), statements);
    };
    check(&["SELECT 1"], &[begin, "SELECT 1", "COMMIT"]);
    check(&["refused"], &[begin, "refused", "ROLLBACK"]);
    check(&["BEGIN", "a", "b", "COMMIT"], &[begin, "a", "b", "COMMIT"]);
    check(
        &["BEGIN", "refused", "ROLLBACK", "a"],
        &[begin, "refused", "ROLLBACK", begin, "a", "COMMIT"],
    );
}

#[test]
fn columns_that_the_destination_computes_are_not_inserted() {
    let generated = |name| Column { is_generated: true, ..column(name, MySql, "int") };
    let plain = |name| column(name, MySql, "int");
    let table = |columns: [Column; 3]| Table { columns: columns.into(), key: vec!["a".to_owned()] };
    let inserts = |source: [Column; 3], to: [Column; 3]| {
        let route = match_tables(MySql, &table(source), &table(to), 0)?;
        Ok::<String, String>(sql::insert(MySql, "t", &route.columns))
    };
    let all = "INSERT INTO `t` (`a`,`b`,`c`) VALUES ".replace(',', ", ");
    let some = "INSERT INTO `t` (`a`, `c`) VALUES ";
    let (of_both, of_none) =
        ([plain("a"), generated("b"), plain("c")], [plain("a"), plain("b"), plain("c")]);
    assert_eq!(inserts(of_both.clone(), of_both.clone()).as_deref(), Ok(some));
    assert_eq!(inserts(of_both.clone(), of_none.clone()), Ok(all));
    let why = inserts(of_none, of_both).unwrap_err();
    assert_eq!(why, "its column `b` is generated, unlike the source's");
}

#[test]
fn tables_that_rows_would_not_survive_are_refused() {
    let table = |columns: &[(&str, &str)], key: &[&str]| Table {
        columns: columns.iter().map(|(name, declared)| column(name, MySql, declared)).collect(),
        key: key.iter().map(|&name| name.to_owned()).collect(),
    };
    let check = |table: &Table, part: &str| {
        let why = check_source("t", table).unwrap_err();
        assert!(why.contains(part), "{why}");
    };
    check(&table(&[("a", "int")], &[]), "no primary key");
    check(&table(&[("a", "int"), ("b", "int")], &["a", "b"]), "a primary key of 2 columns");
    check(&table(&[("a", "int"), ("b", "double")], &["a"]), "`b` of `t` is double");
    check(&table(&[("a", "date")], &["a"]), "the primary key of `t` is date");
    let source = table(&[("a", "int"), ("d", "date")], &["a"]);
    assert_eq!(check_source("t", &source), Ok(0));
    let there = |columns: &[(&str, &str)]| Table {
        columns: columns
            .iter()
            .map(|(name, declared)| column(name, ClickHouse, declared))
            .collect(),
        key: vec!["a".to_owned()],
    };
    let refused = |to: &Table, part: &str| {
        let why = match_tables(ClickHouse, &source, to, 0).unwrap_err();
        assert!(why.contains(part), "{why}");
    };
    refused(&there(&[("a", "Int32")]), "has no column `d`");
    refused(
        &there(&[("a", "Int32"), ("d", "Date"), ("e", "Date")]),
        "the source has no column `e`",
    );
    refused(&there(&[("a", "Int32"), ("d", "DateTime")]), "`d` is DateTime, which is not the same");
    refused(&there(&[("a", "Float64"), ("d", "Date")]), "`a` is Float64");
    assert!(
        match_tables(ClickHouse, &source, &there(&[("d", "String"), ("a", "Int32")]), 0).is_ok()
    );
    assert!(held(Kind::Text, "Nullable(String)").is_some());
}
