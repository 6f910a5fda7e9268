//! Statements that are sent together to a real server.

use std::task::Poll;

use dyno_workload::{Connection, ErrorClass, Reply, Statement, StatementError, Value};

use crate::mysql_server::Fixture;
use crate::{affected, awaited, rows, statements, text, value};

/// The next reply of a pipeline, as a session takes it.
fn next(connection: &mut dyn Connection) -> Result<Reply, StatementError> {
    match connection.poll_received() {
        Poll::Ready(result) => result,
        Poll::Pending => awaited(connection),
    }
}

fn insert(connection: &mut dyn Connection, id: i64) {
    connection.send_execute(1, &[Value::Integer(id), Value::Text(b"new")]);
}

pub(crate) fn check(fixture: &Fixture) {
    let mut c = fixture.connect();
    let c = c.as_mut();
    text(c, "CREATE TABLE piped (id INT PRIMARY KEY, t VARCHAR(20)) ENGINE=InnoDB").unwrap();
    text(c, "INSERT INTO piped SELECT seq, CONCAT(seq, 't') FROM seq_1_to_5000").unwrap();
    let sql = [
        "SELECT id, t FROM piped WHERE id <= ? ORDER BY id",
        "INSERT INTO piped VALUES (?, ?)",
        "UPDATE piped SET t = ? WHERE id > ?",
    ];
    let prepared = statements(&sql).into_iter().map(Statement::keeping_rows);
    c.prepare(&prepared.collect::<Vec<_>>()).unwrap();
    for is_blocking in [false, true] {
        c.set_blocking(is_blocking, 0).unwrap();
        assert!(c.begin_pipeline());
        c.send_text("SET autocommit = 0");
        c.send_execute(0, &[Value::Integer(3)]);
        // More than one read.
        c.send_execute(0, &[Value::Integer(5000)]);
        insert(c, 9000);
        c.send_execute(2, &[Value::Text(b"x"), Value::Integer(4990)]);
        c.send_execute(0, &[Value::Integer(1)]);
        c.send_text("ROLLBACK");
        c.send_pipeline();
        assert_eq!(c.n_awaited(), 7);
        assert_eq!((next(c), next(c)), (Ok(affected(0)), Ok(rows(3))));
        assert_eq!(c.kept_rows().text(2, 1), Some(&b"3t"[..]));
        assert_eq!(next(c), Ok(rows(5000)));
        assert_eq!(c.kept_rows().integer(4999, 0), Some(5000));
        assert_eq!((next(c), next(c)), (Ok(affected(1)), Ok(affected(11))));
        assert_eq!(next(c), Ok(rows(1)));
        assert_eq!(c.kept_rows().integer(0, 0), Some(1));
        assert_eq!((next(c), c.n_awaited()), (Ok(affected(0)), 0));
        c.send_execute(0, &[Value::Integer(2)]);
        assert_eq!(awaited(c), Ok(rows(2)));
        assert!(c.begin_pipeline());
        c.send_pipeline();
        assert_eq!(c.n_awaited(), 0, "an empty pipeline sends nothing");
    }
    failing_pipelines(fixture, c);
    text(c, "DROP TABLE piped").unwrap();
}

/// What stands behind an error is done; what a deadlock's victim leaves behind is one transaction.
fn failing_pipelines(fixture: &Fixture, c: &mut dyn Connection) {
    c.set_blocking(false, 0).unwrap();
    c.begin_pipeline();
    [7000, 7, 7001].into_iter().for_each(|id| insert(c, id));
    c.send_pipeline();
    assert_eq!(next(c), Ok(affected(1)));
    assert_eq!(next(c).unwrap_err().class, ErrorClass::DuplicateKey);
    assert_eq!((c.n_awaited(), next(c)), (1, Ok(affected(1))));
    c.send_text("ROLLBACK");
    awaited(c).unwrap();
    // What cannot be written leaves nothing half sent, and types are sent again.
    c.begin_pipeline();
    insert(c, 7002);
    c.send_execute(1, &[Value::Null]);
    c.send_pipeline();
    assert_eq!((next(c).unwrap_err().class, c.n_awaited()), (ErrorClass::Refused, 0));
    c.send_execute(1, &[Value::Text(b"7003"), Value::Null]);
    assert_eq!(awaited(c), Ok(affected(1)));
    c.send_text("ROLLBACK");
    awaited(c).unwrap();
    // Somebody changes much, so that the victim is this connection.
    let mut other = fixture.connect();
    let other = other.as_mut();
    text(other, "BEGIN").unwrap();
    text(other, "UPDATE piped SET t = 'other' WHERE id BETWEEN 100 AND 2000").unwrap();
    c.begin_pipeline();
    c.send_text("SET autocommit = 0");
    c.send_text("UPDATE piped SET t = 'mine' WHERE id = 1");
    c.send_text("UPDATE piped SET t = 'mine' WHERE id = 100");
    c.send_text("UPDATE piped SET t = 'mine' WHERE id = 3000");
    c.send_pipeline();
    assert_eq!((next(c), next(c)), (Ok(affected(0)), Ok(affected(1))));
    text(other, "UPDATE piped SET t = 'other' WHERE id = 1").unwrap();
    assert_eq!(next(c).unwrap_err().class, ErrorClass::Deadlock);
    assert_eq!(next(c), Ok(affected(1)));
    c.send_text("ROLLBACK");
    awaited(c).unwrap();
    text(other, "ROLLBACK").unwrap();
    c.set_blocking(true, 0).unwrap();
    assert_eq!(value(c, "SELECT COUNT(*) FROM piped WHERE t IN ('mine', 'new')"), "0");
    assert_eq!(value(c, "SELECT COUNT(*) FROM piped"), "5000");
    text(c, "SET autocommit = 1").unwrap();
}
