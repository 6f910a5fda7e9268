//! Numbers that the server gives to new rows, and those of several kinds of transactions.

use super::*;

/// Transactions of these statements in both products' logs, each 30 times; `n` rises.
fn logs(statements: &dyn Fn(u64) -> Vec<String>) -> [String; 2] {
    let mut all = Vec::new();
    for n in 0..30 {
        all.push("BEGIN".to_owned());
        all.extend(statements(n));
        all.push("COMMIT".to_owned());
    }
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let line =
        |text: &&str| format!("2026-11-26 20:46:00.123 UTC [77] me@shop LOG:  statement: {text}\n");
    [general(&all), all.iter().map(line).collect()]
}

#[track_caller]
fn check(log: &str, expected: &[&str], absent: &str) {
    let study = captured(log).study;
    for expected in expected {
        assert!(study.contains(expected), "{expected}\n{study}");
    }
    assert!(!study.contains(absent), "{absent}\n{study}");
}

const LAST: &str = "SELECT LAST_INSERT_ID()";
const READ: &str = "# taken for the number that the server gives the row\nread = [\"v2\"]\n";

#[test]
fn numbers_that_the_server_gave_are_read() {
    let order = |returning: &str, n: u64| {
        vec![
            format!("INSERT INTO orders (customer) VALUES ({}){returning}", n * 7919 % 1000),
            format!("INSERT INTO order_lines (order_id, line) VALUES ({}, 1)", 43387 + n),
            format!("INSERT INTO order_lines (order_id, line) VALUES ({}, 2)", 43387 + n),
        ]
    };
    let lines = "INSERT INTO order_lines (order_id, line) VALUES (:v2, ";
    let [mysql, postgresql] = logs(&|n| order(" RETURNING id", n));
    let returned = format!("VALUES (:v1) RETURNING id\"\n{READ}");
    check(&postgresql, &[&returned, lines], "sequence");
    check(&mysql, &[&returned, lines], LAST);
    let [mysql, postgresql] = logs(&|n| order("", n));
    check(&mysql, &[&format!("sql = \"{LAST}\"\n{READ}"), lines], "sequence");
    // Nobody knows where the program had it from.
    let after = "v2 = { sequence = 43417, after = \"order_lines.order_id\" }";
    check(&postgresql, &[after], "read = [");
    let [mysql, _] = logs(&|n| {
        let update = format!("UPDATE orders SET n = 5 WHERE ID = {}", 43387 + n);
        vec![order("", n)[0].clone(), "SELECT 1".to_owned(), update]
    });
    let read = READ.replace("v2", "v4");
    check(&mysql, &[&format!("sql = \"{LAST}\"\n{read}"), "WHERE ID = :v4"], "sequence");
}

#[test]
fn numbers_of_the_program_are_not_read() {
    let after = |statement: &dyn Fn(u64) -> String| {
        logs(&|n| {
            vec![
                "INSERT INTO audit (what) VALUES (7) RETURNING id".to_owned(),
                statement(43387 + n),
            ]
        })
    };
    for log in after(&|n| format!("INSERT INTO orders (id, total) VALUES ({n}, 7)")) {
        check(&log, &["{ sequence = 43417, after = \"orders.id\" }"], "read = [");
    }
    for log in after(&|n| format!("INSERT INTO orders (order_id, total) VALUES ({n}, 7)")) {
        check(&log, &["{ sequence = 43417, after = \"orders.order_id\" }"], "read = [");
    }
    for log in after(&|n| format!("INSERT INTO orders (created, total) VALUES ({n}, 7)")) {
        check(&log, &["{ sequence = 43417, after = \"orders.created\" }"], "read = [");
    }
    for log in after(&|n| format!("SELECT a FROM t WHERE created > {n}")) {
        check(&log, &["uniform"], "read = [");
    }
    for log in after(&|n| format!("UPDATE t SET a = 7 WHERE id = {}", n * 7919 % 1000)) {
        check(&log, &["uniform"], "read = [");
    }
}

#[test]
fn kinds_share_the_numbers_of_a_column() {
    let statements: Vec<String> = (0..60)
        .map(|n| match n % 2 {
            0 => format!("INSERT INTO orders (id, total) VALUES ({n}, 7)"),
            _ => format!("INSERT INTO orders (note, id) VALUES (7, {n})"),
        })
        .collect();
    let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
    let both =
        ["v1", "v2"].map(|name| format!("{name} = {{ sequence = 60, after = \"orders.id\" }}"));
    check(&general(&statements), &[&both[0], &both[1]], "read = [");
}

/// The generators of the numbers that rise in statements of both products' logs.
#[track_caller]
fn check_rising(statement: impl Fn(u64) -> String, expected: [&str; 2]) {
    let logs = logs(&|n| vec!["SELECT 1".to_owned(), statement(n)]);
    for (log, expected) in logs.iter().zip(expected) {
        check(log, &[&format!(" = {{ sequence = {expected} }}\n")], "read = [");
    }
}

#[test]
fn numbers_go_on_after_the_column_that_sql_names() {
    let check = |names: &str, column: &str| {
        let quoted = super::super::values::quoted(column);
        let expected = format!("30, after = {quoted}");
        check_rising(|n| format!("INSERT INTO {names} VALUES (7, {n})"), [&expected, &expected]);
    };
    check("shop.orders (note, id)", "shop.orders.id");
    check("Orders (note, Id)", "Orders.Id");
    check("orders2026(note,id)", "orders2026.id");
    let quoted = |names: &'static str| move |n: u64| format!("INSERT INTO {names} VALUES (7, {n})");
    let plain = "30";
    check_rising(quoted("`Orders` (note, `Id`)"), ["30, after = \"`Orders`.`Id`\"", plain]);
    let postgresql = "30, after = \"\\\"Orders\\\".\\\"Id\\\"\"";
    check_rising(quoted("\"Orders\" (note, \"Id\")"), [plain, postgresql]);
    // Names that are none for `after`, and columns that the statement does not name.
    check_rising(quoted("`or ders` (note, id)"), [plain, plain]);
    check_rising(quoted("orders"), [plain, plain]);
    // Looked for before it is inserted, and several in one transaction.
    let after = "30, after = \"orders.id\"";
    let looked_up = |n: u64| {
        vec![
            format!("SELECT note FROM orders WHERE id = {n}"),
            format!("INSERT INTO orders (id, note) VALUES ({n}, 7)"),
        ]
    };
    for log in logs(&looked_up) {
        super::ids::check(
            &log,
            &[&format!("v1 = {{ sequence = {after} }}"), "VALUES (:v1, 7)"],
            "read = [",
        );
    }
    let run = |n: u64| {
        (0..3)
            .map(|nth| format!("INSERT INTO orders (id, note) VALUES ({}, 7)", 3 * n + nth))
            .collect()
    };
    for log in logs(&run) {
        super::ids::check(
            &log,
            &["times = 3", "{ sequence = 90, after = \"orders.id\" }"],
            "read = [",
        );
    }
}

#[test]
fn tables_that_differ_by_a_number_have_no_column_to_go_on_after() {
    let statements: Vec<String> = (0..60)
        .map(|n| format!("INSERT INTO orders{} (id, total) VALUES ({n}, 7)", n % 2 + 1))
        .collect();
    let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
    check(&general(&statements), &["{ sequence = 60 }"], "after");
}

#[test]
fn a_numbered_table_may_follow_insert_without_into() {
    for begin in ["INSERT", "INSERT IGNORE", "REPLACE INTO"] {
        let insert = |n: u64| format!("{begin} sbtest{} (k) VALUES ({})", n % 4 + 1, n * 7 % 11);
        let statements: Vec<String> = (0..200).map(insert).collect();
        let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
        let captured = captured(&general(&statements));
        assert_eq!(captured.kinds, 1, "{begin}");
        let expected = format!("sql = \"{begin} sbtest3 (k) VALUES (");
        assert!(captured.study.contains(&expected), "{expected}\n{}", captured.study);
    }
}
