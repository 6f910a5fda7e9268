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
    check(&postgresql, &["v2 = { sequence = 43417 }"], "read = [");
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
        check(&log, &["{ sequence = 43417 }"], "read = [");
    }
    for log in after(&|n| format!("INSERT INTO orders (order_id, total) VALUES ({n}, 7)")) {
        check(&log, &["{ sequence = 43417 }"], "read = [");
    }
    for log in after(&|n| format!("INSERT INTO orders (created, total) VALUES ({n}, 7)")) {
        check(&log, &["{ sequence = 43417 }"], "read = [");
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
    let both = ["v1 = { sequence = 60, step = 2 }", "v2 = { sequence = 61, step = 2 }"];
    check(&general(&statements), &both, "read = [");
}
