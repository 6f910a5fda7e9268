//! Statements whose values and columns go as texts, prepared when they are first executed.

use dyno_workload::{Connection, LastRows, Statement, StatementClass, Value};

use crate::server::{one_by_one, server};
use crate::{execute, finish, open};

fn texts(sql: &str, n_values: usize) -> Statement {
    Statement::new(sql, StatementClass::Other).of_texts(n_values)
}

/// Names and values of the last row of a result.
fn last(rows: &LastRows, result: usize) -> Vec<(String, Option<String>)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    rows.columns(result).map(|(name, value)| (text(name), value.map(text))).collect()
}

fn they_need_not_be_possible_before() {
    let server = server();
    let mut connection = open(&server);
    let c = &mut connection;
    c.prepare(&[
        texts("CREATE TABLE late (id int, x float8)", 0),
        texts("INSERT INTO late VALUES ($1, $2)", 2),
        texts("SELECT id AS a, x AS b FROM late WHERE id <= $1 ORDER BY id", 1).keeping_last_row(),
        texts("SELECT x FROM late WHERE id = $1", 1).unnamed(),
    ])
    .unwrap();
    // The table is not there yet; later the same statement is.
    c.send_execute(1, &[Value::Integer(1), Value::Text(b"0.5")]);
    assert_eq!(finish(c).unwrap_err().code, "42P01");
    execute(c, 0, &[]).unwrap();
    for id in 1..=3 {
        execute(c, 1, &[Value::Integer(id), Value::Text(b"0.5")]).unwrap();
    }
    assert_eq!(execute(c, 1, &[Value::Integer(4), Value::Null]).unwrap().affected, 1);
    // A statement that fails when it is executed was parsed nevertheless.
    c.send_execute(1, &[Value::Text(b"x"), Value::Null]);
    assert_eq!(finish(c).unwrap_err().code, "22P02");
    assert_eq!(execute(c, 2, &[Value::Integer(3)]).unwrap().rows, 3);
    let expected = [("a", Some("3")), ("b", Some("0.5"))];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.map(str::to_owned)));
    assert_eq!(last(c.last_rows(), 0), expected);
    assert_eq!(c.last_rows().n_rows(0), Some(3));
    assert_eq!(execute(c, 3, &[Value::Integer(-4)]).unwrap().rows, 0);
    assert_eq!(execute(c, 3, &[Value::Integer(4)]).unwrap().rows, 1);
}

fn all_results_of_a_text_keep_their_last_rows() {
    let server = server();
    let mut connection = open(&server);
    let c = &mut connection;
    assert!(c.send_text_keeping_last("SELECT 1 AS a UNION SELECT 2 ORDER BY 1; BEGIN; SELECT NULL AS b WHERE false; SELECT NULL AS c"));
    finish(c).unwrap();
    let rows = c.last_rows();
    let n_rows: Vec<_> = (0..rows.n_results()).map(|result| rows.n_rows(result)).collect();
    assert_eq!(n_rows, [Some(2), None, Some(0), Some(1)]);
    assert_eq!(last(rows, 0), [("a".to_owned(), Some("2".to_owned()))]);
    assert_eq!(last(rows, 3), [("c".to_owned(), None)]);
    assert_eq!(c.is_in_transaction(), Some(true));
    c.send_text("ROLLBACK");
    finish(c).unwrap();
    assert_eq!(c.is_in_transaction(), Some(false));
}

#[test]
fn on_one_server() {
    one_by_one(&[
        ("they_need_not_be_possible_before", they_need_not_be_possible_before),
        ("all_results_of_a_text_keep_their_last_rows", all_results_of_a_text_keep_their_last_rows),
    ]);
}
