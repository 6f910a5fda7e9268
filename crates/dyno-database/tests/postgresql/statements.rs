//! Statements of all kinds, and all the ways in which they fail.

use std::task::Poll;

use dyno_model::names;
use dyno_workload::{Connection, ErrorClass, Reply, Row, StatementError, Value};

use crate::server::{one_by_one, server};
use crate::{affected, execute, finish, open, rows, statement, text};

fn prepared_and_text_statements_are_counted() {
    let server = server();
    let mut connection = open(&server);
    for is_blocking in [false, true] {
        connection.set_blocking(is_blocking, 0).unwrap();
        connection.query("CREATE TABLE counted (id int PRIMARY KEY, c text, n bigint)").unwrap();
        let statements = [
            statement("INSERT INTO counted VALUES ($1, $2, $3)"),
            statement("SELECT * FROM counted WHERE id BETWEEN $1 AND $2"),
            statement("UPDATE counted SET n = n + 1 WHERE id > $1"),
            statement("SELECT 1"),
        ];
        connection.prepare(&statements).unwrap();
        for id in 0..10 {
            let values =
                [Value::Integer(id), Value::Text("ü\t".as_bytes()), Value::Integer(id << 40)];
            assert_eq!(execute(&mut connection, 0, &values), Ok(affected(1)));
        }
        let values = [Value::Integer(2), Value::Integer(5)];
        assert_eq!(execute(&mut connection, 1, &values), Ok(rows(4)));
        assert_eq!(execute(&mut connection, 2, &[Value::Integer(3)]), Ok(affected(6)));
        assert_eq!(execute(&mut connection, 3, &[]), Ok(rows(1)));
        assert_eq!(text(&mut connection, "BEGIN"), Ok(Reply::default()));
        assert_eq!(text(&mut connection, "DELETE FROM counted WHERE id < 5"), Ok(affected(5)));
        assert_eq!(text(&mut connection, "ROLLBACK"), Ok(Reply::default()));
        assert_eq!(text(&mut connection, "SELECT * FROM counted; SELECT 1"), Ok(rows(11)));
        assert_eq!(text(&mut connection, ""), Ok(Reply::default()));
        let seen = connection.query("SELECT c, n, NULL FROM counted WHERE id = 9").unwrap();
        let n = ((9_i64 << 40) + 1).to_string();
        assert_eq!(seen, [vec![Some("ü\t".to_owned()), Some(n), None]]);
        connection.query("DROP TABLE counted").unwrap();
    }
}

fn rows_are_kept_where_the_statement_wants_it() {
    let server = server();
    let mut connection = open(&server);
    connection
        .query(
            "CREATE PROCEDURE pair(a int, INOUT b bigint, INOUT c text) LANGUAGE plpgsql AS $$ \
             BEGIN b := b + a; c := c || '!'; END $$",
        )
        .unwrap();
    for is_blocking in [false, true] {
        connection.set_blocking(is_blocking, 0).unwrap();
        let kept = |sql: &str| statement(sql).keeping_rows();
        let statements = [
            kept(
                "SELECT $1::int + n, n::bigint, n::smallint, 1.25::numeric(6,2), 0.5::float8, true, \
                 NULL::int, repeat('x', n), timestamp '2024-02-29 01:02:03' \
                 FROM generate_series(1, 3) n",
            ),
            statement("SELECT 1"),
            kept("CALL pair($1, $2, $3)"),
            kept("SELECT repeat('y', $1)"),
        ];
        connection.prepare(&statements).unwrap();
        for first in [10, 20] {
            assert_eq!(execute(&mut connection, 0, &[Value::Integer(first)]), Ok(rows(3)));
            let seen = connection.kept_rows();
            assert_eq!((seen.n_rows(), seen.integer(2, 0)), (3, Some(first + 3)));
            assert_eq!((seen.integer(1, 1), seen.integer(1, 2)), (Some(2), Some(2)));
            assert_eq!((seen.fixed(0, 3, 2), seen.real(0, 4)), (Some(125), Some(0.5)));
            assert_eq!((seen.integer(0, 5), seen.is_null(0, 6)), (Some(1), true));
            assert_eq!(seen.text(2, 7), Some(&b"xxx"[..]));
            assert_eq!(seen.text(0, 8), Some(&b"2024-02-29 01:02:03"[..]));
            assert_eq!(execute(&mut connection, 1, &[]), Ok(rows(1)));
        }
        let values = [Value::Integer(2), Value::Integer(1 << 40), Value::Text(b"hi")];
        assert_eq!(execute(&mut connection, 2, &values), Ok(rows(1)));
        let seen = connection.kept_rows();
        assert_eq!(seen.integer(0, 0), Some((1 << 40) + 2));
        assert_eq!(seen.text(0, 1), Some(&b"hi!"[..]));
        // Longer than any buffer was before.
        assert_eq!(execute(&mut connection, 3, &[Value::Integer(3_000_000)]), Ok(rows(1)));
        assert_eq!(connection.kept_rows().text(0, 0).map(<[u8]>::len), Some(3_000_000));
    }
    for is_blocking in [false, true] {
        connection.set_blocking(is_blocking, 0).unwrap();
        let sql = "SELECT min(n), NULL, 'zwölf' FROM generate_series(7, 9) n";
        connection.send_text_keeping(sql, 3);
        assert_eq!(finish(&mut connection), Ok(rows(1)));
        let kept = connection.kept_rows();
        assert_eq!((kept.integer(0, 0), kept.text(0, 2)), (Some(7), Some("zwölf".as_bytes())));
        assert!(kept.is_null(0, 1));
        // SQL's own PREPARE and EXECUTE, as text.
        connection.query("PREPARE p (int) AS SELECT $1 + 1").unwrap();
        connection.send_text_keeping("execute p (41)", 1);
        assert_eq!(finish(&mut connection), Ok(rows(1)));
        assert_eq!(connection.kept_rows().integer(0, 0), Some(42));
        connection.query("DEALLOCATE p").unwrap();
    }
    connection.query("DROP PROCEDURE pair").unwrap();
}

fn misuse_is_reported_and_harmless() {
    let server = server();
    let mut connection = open(&server);
    connection.prepare(&[statement("SELECT $1::int")]).unwrap();
    let check = |result: Result<Reply, StatementError>, part: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.class, ErrorClass::Refused);
        assert!(error.to_string().contains(part), "{error}");
    };
    check(execute(&mut connection, 7, &[]), "no statement was prepared");
    check(execute(&mut connection, 0, &[]), "takes 1 values");
    check(text(&mut connection, "SELECT '\0'"), "zero byte");
    check(finish(&mut connection), "no statement is in flight");
    connection.query("CREATE TEMP TABLE t (a int)").unwrap();
    check(text(&mut connection, "COPY t FROM STDIN"), "COPY FROM STDIN is not a statement");
    assert!(connection.query("COPY t FROM STDIN").is_err());
    check(text(&mut connection, "COPY (SELECT 1) TO STDOUT"), "nor is COPY TO STDOUT");
    let copies = ["COPY t FROM STDIN", "COPY t TO STDOUT"].map(|sql| statement(sql).of_texts(0));
    connection.prepare(&[copies.as_slice(), &[statement("SELECT 1")]].concat()).unwrap();
    for copy in [0, 1] {
        check(execute(&mut connection, copy, &[]), "nor is COPY TO STDOUT");
        assert_eq!(execute(&mut connection, 2, &[]), Ok(rows(1)));
    }
    // As the last statement of a pipeline.
    connection.begin_pipeline();
    [2, 0].iter().for_each(|idx| connection.send_execute(*idx, &[]));
    connection.send_pipeline();
    assert_eq!(finish(&mut connection), Ok(rows(1)));
    check(finish(&mut connection), "nor is COPY TO STDOUT");
    assert_eq!(execute(&mut connection, 2, &[]), Ok(rows(1)));
    // In front of another one: what follows is no reply to what is sent later.
    for copy in [0, 1] {
        let mut other = open(&server);
        other.query("CREATE TEMP TABLE t (a int)").unwrap();
        other.prepare(&[copies.as_slice(), &[statement("SELECT 1")]].concat()).unwrap();
        other.begin_pipeline();
        [2, copy, 2].iter().for_each(|idx| other.send_execute(*idx, &[]));
        other.send_pipeline();
        assert_eq!(finish(&mut other), Ok(rows(1)));
        for _ in 0..2 {
            let error = finish(&mut other).unwrap_err();
            assert!(error.message.contains("nor is COPY TO STDOUT"), "{error}");
            assert_eq!(error.class, ErrorClass::Disconnected, "{error}");
            other.send_execute(2, &[]);
        }
    }
    let error = connection.prepare(&[statement("SELECT 1"), statement("SELEC")]).unwrap_err();
    assert!(error.message.contains("syntax error") && error.message.ends_with("in: SELEC"));
    connection.prepare(&[statement("SELECT 2")]).unwrap();
    connection.prepare(&[statement("SELECT 3")]).unwrap();
    assert_eq!(execute(&mut connection, 0, &[]), Ok(rows(1)));
}

fn long_and_many_rows_are_skipped_in_bounded_memory() {
    let server = server();
    let mut connection = open(&server);
    connection
        .prepare(&[
            statement("SELECT repeat('x', $1), generate_series(1, $2)"),
            statement("SELECT length($1)"),
        ])
        .unwrap();
    for is_blocking in [false, true] {
        connection.set_blocking(is_blocking, 0).unwrap();
        let long = [Value::Integer(20_000_000), Value::Integer(3)];
        assert_eq!(execute(&mut connection, 0, &long), Ok(rows(3)));
        let many = [Value::Integer(10), Value::Integer(300_000)];
        assert_eq!(execute(&mut connection, 0, &many), Ok(rows(300_000)));
        // More than a socket takes at once.
        let text = vec![b'y'; 10_000_000];
        assert_eq!(execute(&mut connection, 1, &[Value::Text(&text)]), Ok(rows(1)));
    }
    let seen = connection.query("SELECT repeat('z', 3000000)").unwrap();
    assert_eq!(seen[0][0].as_deref().map(str::len), Some(3_000_000));
}

fn blocking_reads_give_up_in_time() {
    let server = server();
    let mut connection = open(&server);
    connection.set_blocking(true, 1_000_000).unwrap();
    connection.query("SELECT pg_advisory_lock(77)").unwrap();
    let mut waiting = open(&server);
    waiting.set_blocking(true, 1_000_000).unwrap();
    waiting.send_text("SELECT pg_advisory_lock(77)");
    assert_eq!(waiting.poll_reply(), Poll::Pending);
    connection.query("SELECT pg_advisory_unlock(77)").unwrap();
    assert_eq!(finish(&mut waiting), Ok(rows(1)));
}

fn notices_are_counted_and_kept() {
    let server = server();
    let mut connection = open(&server);
    let sql = "DO $$ BEGIN RAISE WARNING 'first'; RAISE NOTICE 'second'; END $$";
    assert_eq!(text(&mut connection, sql).unwrap().warnings, 2);
    connection.query("DROP TABLE IF EXISTS no_such_table").unwrap();
    let (lines, n_older) = connection.take_notices();
    assert_eq!(n_older, 0);
    assert_eq!(lines[0], "WARNING: first (01000)");
    assert_eq!(lines[1], "NOTICE: second (00000)");
    assert!(lines[2].contains("no_such_table"), "{lines:?}");
    // A channel's news come between replies.
    connection.query("LISTEN news").unwrap();
    open(&server).query("NOTIFY news, 'x'").unwrap();
    assert_eq!(text(&mut connection, "SELECT 1"), Ok(rows(1)));
    assert_eq!(connection.lost(), None);
    assert_eq!(text(&mut connection, "SELECT 1"), Ok(rows(1)));
}

#[track_caller]
fn check_class(result: Result<Reply, StatementError>, class: ErrorClass, code: &str) {
    let error = result.unwrap_err();
    assert_eq!((error.class, error.code.as_str()), (class, code), "{error}");
}

fn duplicate_keys_and_failed_transactions() {
    let server = server();
    let mut connection = open(&server);
    connection.query("CREATE TABLE twice (id int PRIMARY KEY)").unwrap();
    connection.prepare(&[statement("INSERT INTO twice VALUES ($1)")]).unwrap();
    let one = [Value::Integer(1)];
    text(&mut connection, "BEGIN").unwrap();
    assert_eq!(execute(&mut connection, 0, &one), Ok(affected(1)));
    check_class(execute(&mut connection, 0, &one), ErrorClass::DuplicateKey, "23505");
    check_class(text(&mut connection, "SELECT 1"), ErrorClass::Refused, "25P02");
    // PostgreSQL answers this COMMIT with ROLLBACK and no error.
    check_class(text(&mut connection, "COMMIT"), ErrorClass::Refused, "25P02");
    assert_eq!(execute(&mut connection, 0, &one), Ok(affected(1)));
    check_class(execute(&mut connection, 0, &[Value::Null]), ErrorClass::Refused, "23502");
}

fn a_real_deadlock_has_one_victim() {
    let server = server();
    let (mut first, mut second) = (open(&server), open(&server));
    first.query("CREATE TABLE dead (id int PRIMARY KEY, n int)").unwrap();
    first.query("INSERT INTO dead VALUES (1, 0), (2, 0)").unwrap();
    for connection in [&mut first, &mut second] {
        connection.query("SET deadlock_timeout = '20ms'").unwrap();
        connection.prepare(&[statement("UPDATE dead SET n = n + 1 WHERE id = $1")]).unwrap();
        text(connection, "BEGIN").unwrap();
    }
    execute(&mut first, 0, &[Value::Integer(1)]).unwrap();
    execute(&mut second, 0, &[Value::Integer(2)]).unwrap();
    first.send_execute(0, &[Value::Integer(2)]);
    second.send_execute(0, &[Value::Integer(1)]);
    // The server releases the victim's locks at once, so that the other one goes on.
    let (mut victims, mut winners) = (0, 0);
    for connection in [&mut first, &mut second] {
        match finish(connection) {
            Ok(reply) => {
                assert_eq!(reply, affected(1));
                text(connection, "COMMIT").unwrap();
                winners += 1;
            }
            failed => {
                check_class(failed, ErrorClass::Deadlock, "40P01");
                text(connection, "ROLLBACK").unwrap();
                victims += 1;
            }
        }
    }
    assert_eq!((victims, winners), (1, 1));
    assert_eq!(text(&mut first, "SELECT * FROM dead WHERE n = 1"), Ok(rows(2)));
}

fn serialization_failures_and_lock_timeouts() {
    let server = server();
    let (mut first, mut second) = (open(&server), open(&server));
    first.query("CREATE TABLE serial (id int PRIMARY KEY, n int)").unwrap();
    first.query("INSERT INTO serial VALUES (1, 0)").unwrap();
    let update = "UPDATE serial SET n = n + 1";
    text(&mut second, "BEGIN ISOLATION LEVEL REPEATABLE READ").unwrap();
    text(&mut second, "SELECT * FROM serial").unwrap();
    text(&mut first, update).unwrap();
    check_class(text(&mut second, update), ErrorClass::Serialization, "40001");
    text(&mut second, "ROLLBACK").unwrap();

    text(&mut first, "BEGIN").unwrap();
    text(&mut first, update).unwrap();
    second.query("SET lock_timeout = '5ms'").unwrap();
    check_class(text(&mut second, update), ErrorClass::LockTimeout, "55P03");
    // Its limit holds for all that follows on the connection.
    let mut hasty = open(&server);
    hasty.query("SET statement_timeout = '5ms'").unwrap();
    check_class(text(&mut hasty, update), ErrorClass::TimedOut, "57014");
    text(&mut first, "COMMIT").unwrap();
    let nowait = "SELECT * FROM serial FOR UPDATE NOWAIT";
    text(&mut first, "BEGIN").unwrap();
    text(&mut first, nowait).unwrap();
    check_class(text(&mut second, nowait), ErrorClass::LockTimeout, "55P03");
}

fn an_ended_connection_says_why() {
    let server = server();
    for is_blocking in [false, true] {
        let (mut first, mut second) = (open(&server), open(&server));
        second.set_blocking(is_blocking, 0).unwrap();
        assert_eq!(second.lost(), None);
        let id = second.query("SELECT pg_backend_pid()").unwrap()[0][0].clone().unwrap();
        let end = format!("SELECT pg_terminate_backend({id}, 10000)");
        assert_eq!(first.query(&end).unwrap()[0][0].as_deref(), Some("t"));
        // Written into the void or read first: the server's own words come either way.
        let error = text(&mut second, "SELECT 1").unwrap_err();
        assert_eq!(error.class, ErrorClass::Disconnected, "{error}");
        assert!(error.message.contains("terminating connection"), "{error}");
        for _ in 0..2 {
            assert!(text(&mut second, "SELECT 1").unwrap_err().class.loses_connection());
            assert!(second.query("SELECT 1").unwrap_err().class.loses_connection());
        }
        assert!(second.lost().unwrap().contains("terminating connection"));
    }
    // One that is ended while a statement runs, and one that is ended while it idles.
    let (mut first, mut running, mut idle) = (open(&server), open(&server), open(&server));
    running.query("SET application_name = 'to be ended'").unwrap();
    idle.query("SET application_name = 'to be ended'").unwrap();
    running.send_text("SELECT pg_sleep(600)");
    let end = "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity \
               WHERE application_name = 'to be ended'";
    assert_eq!(first.query(end).unwrap()[0][0].as_deref(), Some("2"));
    check_class(finish(&mut running), ErrorClass::Disconnected, "57P01");
    assert!(idle.lost().unwrap().contains("terminating connection"));
}

fn copy_stores_all_rows() {
    let server = server();
    let mut connection = open(&server);
    connection.query("CREATE TABLE copied (id int, k bigint, c text)").unwrap();
    let mut number = 0;
    let stored = connection
        .load_rows("copied", &names(&["id", "k", "c"]), &mut |row: &mut Row| {
            number += 1;
            row.push_integer(number);
            if number % 10 == 0 {
                row.push_null()
            } else {
                row.push_integer(-number)
            }
            row.push_text(format!("tab\t back\\slash \n{number}").as_bytes());
            number <= 100_000
        })
        .unwrap();
    assert_eq!(stored, 100_000);
    let sql = "SELECT count(*), count(k), sum(k), count(DISTINCT c), max(c) FROM copied";
    let seen = connection.query(sql).unwrap();
    let expected = ["100000", "90000", "-4500000000", "100000", "tab\t back\\slash \n99999"];
    assert_eq!(seen[0].iter().flatten().collect::<Vec<_>>(), expected);
    assert_eq!(connection.load_rows("copied", &names(&["id"]), &mut |_| false), Ok(0));
}

fn a_failed_copy_is_reported_and_the_connection_lives() {
    let server = server();
    let mut connection = open(&server);
    connection.query("CREATE TABLE refused (id smallint)").unwrap();
    let mut number = 0_i64;
    let error = connection
        .load_rows("refused", &names(&["id"]), &mut |row: &mut Row| {
            number += 1;
            row.push_integer(number);
            number < 10_000_000
        })
        .unwrap_err();
    assert_eq!(error.code, "22003");
    assert!(error.message.contains("in COPY refused, line 32768"), "{error}");
    assert!(number < 10_000_000, "rows were made to no use");
    let error = connection.load_rows("missing", &names(&["id"]), &mut |_| false).unwrap_err();
    assert_eq!(error.code, "42P01");
    assert_eq!(text(&mut connection, "SELECT * FROM refused"), Ok(rows(0)));
}

#[test]
fn on_one_server() {
    one_by_one(&[
        ("prepared_and_text_statements_are_counted", prepared_and_text_statements_are_counted),
        ("rows_are_kept_where_the_statement_wants_it", rows_are_kept_where_the_statement_wants_it),
        ("misuse_is_reported_and_harmless", misuse_is_reported_and_harmless),
        (
            "long_and_many_rows_are_skipped_in_bounded_memory",
            long_and_many_rows_are_skipped_in_bounded_memory,
        ),
        ("blocking_reads_give_up_in_time", blocking_reads_give_up_in_time),
        ("notices_are_counted_and_kept", notices_are_counted_and_kept),
        ("duplicate_keys_and_failed_transactions", duplicate_keys_and_failed_transactions),
        ("a_real_deadlock_has_one_victim", a_real_deadlock_has_one_victim),
        ("serialization_failures_and_lock_timeouts", serialization_failures_and_lock_timeouts),
        ("an_ended_connection_says_why", an_ended_connection_says_why),
        ("copy_stores_all_rows", copy_stores_all_rows),
        (
            "a_failed_copy_is_reported_and_the_connection_lives",
            a_failed_copy_is_reported_and_the_connection_lives,
        ),
    ]);
}
