//! Statements that are sent together, and statements that are parsed each time.

use std::task::Poll;

use dyno_database::postgresql::PgConnection;
use dyno_workload::{Connection, ErrorClass, Reply, Statement, StatementError, Value};

use crate::server::{one_by_one, server};
use crate::{affected, execute, finish, open, rows, statement, text};

/// A table of so many rows, and statements about it.
fn prepared(connection: &mut PgConnection, table: &str, n_rows: i64) {
    connection.query(&format!("CREATE TABLE {table} (id int PRIMARY KEY, t text)")).unwrap();
    let fill =
        format!("INSERT INTO {table} SELECT n, n || 't' FROM generate_series(1, {n_rows}) n");
    connection.query(&fill).unwrap();
    let statements = [
        statement(&format!("SELECT id, t FROM {table} WHERE id <= $1 ORDER BY id")).keeping_rows(),
        statement(&format!("INSERT INTO {table} VALUES ($1, $2)")),
        statement(&format!("UPDATE {table} SET t = $1 WHERE id > $2")),
    ];
    connection.prepare(&statements).unwrap();
}

/// The next reply of a pipeline, as a session takes it.
fn next(connection: &mut PgConnection) -> Result<Reply, StatementError> {
    match connection.poll_received() {
        Poll::Ready(result) => result,
        Poll::Pending => finish(connection),
    }
}

fn insert(connection: &mut PgConnection, id: i64) {
    connection.send_execute(1, &[Value::Integer(id), Value::Text(b"new")]);
}

fn replies_come_in_order_with_their_rows() {
    let server = server();
    let mut connection = open(&server);
    let c = &mut connection;
    prepared(c, "piped", 5000);
    for is_blocking in [false, true] {
        c.set_blocking(is_blocking, 0).unwrap();
        assert!(c.begin_pipeline());
        assert_eq!(c.n_awaited(), 0);
        c.send_text("BEGIN");
        c.send_execute(0, &[Value::Integer(3)]);
        // More than one read.
        c.send_execute(0, &[Value::Integer(5000)]);
        insert(c, 9000);
        c.send_execute(2, &[Value::Text(b"x"), Value::Integer(4990)]);
        c.send_execute(0, &[Value::Integer(1)]);
        c.send_text("ROLLBACK");
        c.send_pipeline();
        assert_eq!(c.n_awaited(), 7);
        assert_eq!(next(c), Ok(Reply::default()));
        assert_eq!(next(c), Ok(rows(3)));
        assert_eq!(c.kept_rows().text(2, 1), Some(&b"3t"[..]));
        assert_eq!(next(c), Ok(rows(5000)));
        assert_eq!(c.kept_rows().integer(4999, 0), Some(5000));
        assert_eq!((next(c), next(c)), (Ok(affected(1)), Ok(affected(11))));
        assert_eq!(next(c), Ok(rows(1)));
        assert_eq!(c.kept_rows().integer(0, 0), Some(1));
        assert_eq!((next(c), c.n_awaited()), (Ok(Reply::default()), 0));
        // A single statement finds everything in its place.
        assert_eq!(execute(c, 0, &[Value::Integer(2)]), Ok(rows(2)));
        assert_eq!(c.query("SELECT COUNT(*) FROM piped").unwrap()[0][0].as_deref(), Some("5000"));
        // An empty pipeline sends nothing.
        assert!(c.begin_pipeline());
        c.send_pipeline();
        assert_eq!(c.n_awaited(), 0);
    }
}

fn an_error_ends_a_pipeline_and_its_commit_is_passed_over() {
    let server = server();
    let mut connection = open(&server);
    let c = &mut connection;
    prepared(c, "broken", 10);
    c.begin_pipeline();
    c.send_text("BEGIN");
    insert(c, 50);
    insert(c, 7);
    insert(c, 51);
    c.send_text("COMMIT");
    c.send_pipeline();
    assert_eq!((next(c), next(c)), (Ok(Reply::default()), Ok(affected(1))));
    assert_eq!(next(c).unwrap_err().class, ErrorClass::DuplicateKey);
    assert_eq!(c.n_awaited(), 0, "the rest is passed over");
    assert_eq!(text(c, "ROLLBACK"), Ok(Reply::default()));
    let n = c.query("SELECT COUNT(*) FROM broken").unwrap();
    assert_eq!(n[0][0].as_deref(), Some("10"));
    // The first one, and the last one.
    for id in [1, 60] {
        c.begin_pipeline();
        insert(c, id);
        insert(c, 60);
        c.send_pipeline();
        let first = next(c);
        let error = if id == 1 { first } else { next(c) }.unwrap_err();
        assert_eq!((error.class, c.n_awaited()), (ErrorClass::DuplicateKey, 0));
    }
    // A COMMIT in a transaction that has failed before.
    text(c, "BEGIN").unwrap();
    text(c, "SELECT 1/0").unwrap_err();
    c.begin_pipeline();
    c.send_text("COMMIT");
    c.send_execute(0, &[Value::Integer(1)]);
    c.send_pipeline();
    assert_eq!(next(c).unwrap_err().code, "25P02");
    assert_eq!((c.n_awaited(), next(c)), (1, Ok(rows(1))));
    // What cannot be written leaves nothing half sent.
    c.begin_pipeline();
    insert(c, 70);
    c.send_execute(1, &[Value::Integer(1 << 40), Value::Null]);
    insert(c, 71);
    c.send_pipeline();
    assert_eq!((next(c).unwrap_err().code.as_str(), c.n_awaited()), ("22003", 0));
    let n = c.query("SELECT COUNT(*) FROM broken WHERE id >= 60").unwrap();
    assert_eq!(n[0][0].as_deref(), Some("0"));
}

fn a_connection_that_is_lost_loses_its_pipeline() {
    let server = server();
    let mut connection = open(&server);
    let c = &mut connection;
    c.begin_pipeline();
    c.send_text("SELECT 1");
    c.send_text("SELECT pg_terminate_backend(pg_backend_pid())");
    c.send_text("SELECT 2");
    c.send_pipeline();
    let lost = (0..3).find_map(|_| next(c).err()).expect("the server ended it");
    assert_eq!((lost.class, c.n_awaited()), (ErrorClass::Disconnected, 0));
}

fn statements_are_parsed_each_time_where_they_want_it() {
    let server = server();
    let mut connection = open(&server);
    let c = &mut connection;
    c.query("CREATE TABLE unnamed (id int PRIMARY KEY, n bigint, t text)").unwrap();
    let unnamed = |sql: &str| -> Statement { statement(sql).unnamed() };
    let statements = [
        unnamed("INSERT INTO unnamed VALUES ($1, $2, $3)"),
        unnamed("SELECT id, n FROM unnamed WHERE n > $1 ORDER BY id").keeping_rows(),
        unnamed("BEGIN"),
        unnamed("COMMIT"),
        statement("SELECT id FROM unnamed WHERE id = $1"),
    ];
    c.prepare(&statements).unwrap();
    for id in 1..=3 {
        assert_eq!(execute(c, 2, &[]), Ok(Reply::default()));
        let values = [Value::Integer(id), Value::Integer(id << 40), Value::Text(b"t")];
        assert_eq!(execute(c, 0, &values), Ok(affected(1)));
        assert_eq!(execute(c, 1, &[Value::Integer(0)]), Ok(rows(id as u64)));
        assert_eq!(c.kept_rows().integer(id as usize - 1, 1), Some(id << 40));
        assert_eq!(execute(c, 4, &[Value::Integer(id)]), Ok(rows(1)));
        assert_eq!(execute(c, 3, &[]), Ok(Reply::default()));
    }
    // None of them is there under a name.
    let named = c.query("SELECT COUNT(*) FROM pg_prepared_statements WHERE name <> ''").unwrap();
    assert_eq!(named[0][0].as_deref(), Some("1"));
    // An error is returned by the statement that causes it, and a COMMIT that rolls back is one.
    execute(c, 2, &[]).unwrap();
    let twice = [Value::Integer(1), Value::Null, Value::Null];
    assert_eq!(execute(c, 0, &twice).unwrap_err().class, ErrorClass::DuplicateKey);
    assert_eq!(execute(c, 3, &[]).unwrap_err().code, "25P02");
    // They go into pipelines as well, and meet a table that has changed meanwhile.
    c.query("ALTER TABLE unnamed ADD u int").unwrap();
    c.begin_pipeline();
    c.send_execute(2, &[]);
    c.send_execute(1, &[Value::Integer(2 << 40)]);
    c.send_execute(4, &[Value::Integer(2)]);
    c.send_execute(3, &[]);
    c.send_pipeline();
    assert_eq!((next(c), next(c)), (Ok(Reply::default()), Ok(rows(1))));
    assert_eq!((next(c), next(c)), (Ok(rows(1)), Ok(Reply::default())));
    let refused = c.prepare(&[unnamed("SELECT no FROM nowhere")]).unwrap_err();
    assert!(refused.message.contains("in: SELECT no FROM nowhere"), "{refused}");
}

#[test]
fn on_one_server() {
    one_by_one(&[
        ("replies_come_in_order_with_their_rows", replies_come_in_order_with_their_rows),
        (
            "an_error_ends_a_pipeline_and_its_commit_is_passed_over",
            an_error_ends_a_pipeline_and_its_commit_is_passed_over,
        ),
        (
            "a_connection_that_is_lost_loses_its_pipeline",
            a_connection_that_is_lost_loses_its_pipeline,
        ),
        (
            "statements_are_parsed_each_time_where_they_want_it",
            statements_are_parsed_each_time_where_they_want_it,
        ),
    ]);
}
