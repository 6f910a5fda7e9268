//! Null servers, with Dyno's connections and the reference drivers.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use dyno_model::names;
use dyno_units::{Clock, ManualClock, Nanoseconds};
use dyno_workload::{
    Connection, ErrorClass, Reply, Row, Statement, StatementClass, StatementError, Value,
};

use super::wire::VALUE;
use super::{Listen, NullServer, Script, StallOrigin, Wire};
use crate::Address;

const BOTH: [Wire; 2] = [Wire::MySql, Wire::PostgreSql];

/// A server on TCP, whose clock stands still unless it is set.
fn start(wire: Wire, script: Script, clock: &Arc<ManualClock>) -> NullServer {
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    NullServer::start(wire, &Listen::Loopback, script, clock).expect("a port is free")
}

fn at_once(wire: Wire) -> NullServer {
    start(wire, Script::default(), &Arc::new(ManualClock::new()))
}

fn placeholders(wire: Wire, sql: &str) -> Statement {
    Statement::new(wire.dialect().placeholders(sql), StatementClass::Other)
}

fn wait(connection: &mut dyn Connection) -> Result<Reply, StatementError> {
    connection.set_blocking(true, 0)?;
    loop {
        if let Poll::Ready(reply) = connection.poll_reply() {
            return reply;
        }
    }
}

fn text(connection: &mut dyn Connection, sql: &str) -> Reply {
    connection.send_text(sql);
    wait(connection).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

const ONE_ROW: Reply = Reply { rows: 1, affected: 0, warnings: 0 };

fn changed(affected: u64) -> Reply {
    Reply { rows: 0, affected, warnings: 0 }
}

#[test]
fn text_statements_are_answered_by_their_kind() {
    for wire in BOTH {
        let server = at_once(wire);
        let mut connection = (server.connector())().unwrap();
        let connection = connection.as_mut();
        assert_eq!(text(connection, "SELECT c FROM t"), ONE_ROW);
        assert_eq!(text(connection, "BEGIN"), changed(0));
        assert_eq!(text(connection, "INSERT INTO t VALUES (1), (2)"), changed(2));
        assert_eq!(text(connection, "UPDATE t SET c = 1"), changed(1));
        assert_eq!(text(connection, "DELETE FROM t"), changed(1));
        assert_eq!(text(connection, "COMMIT"), changed(0));
        assert_eq!(text(connection, "CREATE TABLE t (c int)"), changed(0));
        assert_eq!(server.statements(), 7);
        let rows = connection.query("SELECT c FROM t").unwrap();
        assert_eq!(rows, [[Some(String::from_utf8_lossy(VALUE).into_owned())]]);
        // More rows than fit into one byte of MySQL's numbers.
        let values = vec!["(1)"; 1000].join(",");
        assert_eq!(text(connection, &format!("INSERT INTO t VALUES {values}")), changed(1000));
    }
}

#[test]
fn prepared_statements_are_answered_by_their_kind() {
    for wire in BOTH {
        let server = at_once(wire);
        let mut connection = (server.connector())().unwrap();
        let statements = [
            "SELECT c FROM t WHERE id=?",
            "UPDATE t SET c=? WHERE id=?",
            "INSERT INTO t (id, c) VALUES (?, ?), (?, ?)",
            "DELETE FROM t WHERE id=?",
        ];
        let (one, c) = (Value::Integer(1), Value::Text(b"text"));
        // Prepared twice: the second time replaces the first.
        for _ in 0..2 {
            let statements = statements.map(|sql| placeholders(wire, sql));
            connection.prepare(&statements).unwrap();
        }
        for _ in 0..3 {
            let mut check = |idx: usize, values: &[Value<'_>], expected: Reply| {
                connection.send_execute(idx, values);
                assert_eq!(wait(connection.as_mut()), Ok(expected), "{}", statements[idx]);
            };
            check(0, &[one], ONE_ROW);
            check(1, &[c, one], changed(1));
            check(2, &[one, c, one, Value::Null], changed(2));
            check(3, &[one], changed(1));
        }
        assert_eq!(server.down(), None);
    }
}

#[test]
fn rows_are_counted_and_not_kept() {
    for wire in BOTH {
        let server = at_once(wire);
        let mut connection = (server.connector())().unwrap();
        let mut n_rows = 0;
        let mut next_row = |row: &mut Row| {
            n_rows += 1;
            row.push_integer(n_rows);
            row.push_text(b"a\tb\\\n");
            row.push_null();
            n_rows <= 30_000
        };
        let stored = connection.load_rows("t", &names(&["a", "b", "c"]), &mut next_row);
        assert_eq!(stored, Ok(30_000));
        assert_eq!(text(connection.as_mut(), "SELECT 1"), ONE_ROW);
    }
}

/// What a lab does before a load: notes its tables, and drops them behind it.
#[test]
fn a_catalog_can_be_claimed() {
    for wire in BOTH {
        let server = at_once(wire);
        let mut connection = (server.connector())().unwrap();
        crate::note_tables(connection.as_mut(), &["t1".to_owned(), "t2".to_owned()]).unwrap();
        crate::drop_claimed_tables(connection.as_mut()).unwrap();
    }
}

#[test]
fn unix_sockets_are_removed_with_the_server() {
    let folder = tempfile::tempdir().unwrap();
    for wire in BOTH {
        let place = Listen::Folder(folder.path().to_owned());
        let clock = Arc::new(ManualClock::new());
        let server = NullServer::start(wire, &place, Script::default(), clock).unwrap();
        let mut connections: Vec<_> = (0..20).map(|_| (server.connector())().unwrap()).collect();
        for connection in &mut connections {
            assert_eq!(text(connection.as_mut(), "SELECT 1"), ONE_ROW);
        }
        let Address::Unix(path) = server.endpoint().address.clone() else { panic!("no socket") };
        assert!(path.exists());
        drop(server);
        assert!(!path.exists());
        connections[0].send_text("SELECT 1");
        let error = wait(connections[0].as_mut()).unwrap_err();
        assert_eq!(error.class, ErrorClass::Disconnected);
    }
}

#[test]
fn the_reference_driver_of_mysql_is_served() {
    use mysql::prelude::Queryable;
    let server = at_once(Wire::MySql);
    let Address::Tcp { host, port } = &server.endpoint().address else { panic!("no port") };
    let options = mysql::OptsBuilder::new()
        .ip_or_hostname(Some(host))
        .tcp_port(*port)
        .user(Some("anybody"))
        .pass(Some("any password"))
        .db_name(Some("any"))
        .prefer_socket(false)
        // Otherwise it asks, and would get 0.
        .max_allowed_packet(Some(1 << 24));
    let mut driver = mysql::Conn::new(options).unwrap();
    let value = String::from_utf8_lossy(VALUE).into_owned();
    let found: Option<String> = driver.query_first("SELECT c FROM t").unwrap();
    assert_eq!(found.as_deref(), Some(value.as_str()));
    for _ in 0..3 {
        let found: Vec<String> = driver.exec("SELECT c FROM t WHERE id = ?", (1,)).unwrap();
        assert_eq!(found, std::slice::from_ref(&value));
    }
    driver.exec_drop("INSERT INTO t VALUES (?, ?), (?, ?)", (1, "a", 2, "b")).unwrap();
    assert_eq!(driver.affected_rows(), 2);
    driver.exec_drop("UPDATE t SET c = ?", ("a",)).unwrap();
    assert_eq!(driver.affected_rows(), 1);
    driver.ping().unwrap();
    let mut transaction = driver.start_transaction(mysql::TxOpts::default()).unwrap();
    transaction.query_drop("DELETE FROM t").unwrap();
    transaction.commit().unwrap();
    driver.reset().unwrap();
}

#[test]
fn the_reference_driver_of_postgresql_is_served() {
    let server = at_once(Wire::PostgreSql);
    let Address::Tcp { host, port } = &server.endpoint().address else { panic!("no port") };
    let options = format!("host={host} port={port} user=anybody password=any dbname=any");
    let mut driver = postgres::Client::connect(&options, postgres::NoTls).unwrap();
    let value = String::from_utf8_lossy(VALUE).into_owned();
    let select = driver.prepare("SELECT c FROM t WHERE id = $1").unwrap();
    for id in 0..3_i32 {
        let found: String = driver.query_one(&select, &[&id]).unwrap().get(0);
        assert_eq!(found, value);
    }
    let changed = driver.execute("UPDATE t SET c = $1 WHERE id = $2", &[&"a", &1_i32]).unwrap();
    assert_eq!(changed, 1);
    let found = driver.simple_query("SELECT c FROM t").unwrap();
    assert!(matches!(&found[1], postgres::SimpleQueryMessage::Row(row)
        if row.get(0) == Some(value.as_str())));
    let mut copy = driver.copy_in("COPY t FROM STDIN").unwrap();
    copy.write_all(b"1\ta\n2\tb\n3\tc\\\nd\n").unwrap();
    assert_eq!(copy.finish().unwrap(), 3);
    let mut transaction = driver.transaction().unwrap();
    assert_eq!(transaction.execute("DELETE FROM t WHERE id = $1", &[&1_i32]).unwrap(), 1);
    transaction.commit().unwrap();
    drop(driver.copy_in("COPY t FROM STDIN").unwrap());
    assert!(driver.is_valid(std::time::Duration::from_secs(5)).is_ok());
}

#[test]
fn errors_leave_the_connection_usable() {
    let server = at_once(Wire::PostgreSql);
    let mut driver = raw(&server);
    // Bind of a statement that is not there, Execute, Sync.
    let bind = b"B\0\0\0\x0e\0no\0\0\0\0\0\0\0E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";
    driver.write_all(&[b"\0\0\0\x08\0\x03\0\0".as_slice(), bind, b"X\0\0\0\x04"].concat()).unwrap();
    let mut said = Vec::new();
    driver.read_to_end(&mut said).unwrap();
    let end = &said[said.len() - 6..];
    assert_eq!(end, b"Z\0\0\0\x05I");
    assert!(String::from_utf8_lossy(&said).contains("C26000"));
    assert_eq!(server.statements(), 0);
}

fn raw(server: &NullServer) -> TcpStream {
    let Address::Tcp { host, port } = &server.endpoint().address else { panic!("no port") };
    TcpStream::connect((host.as_str(), *port)).expect("it listens")
}

/// Sends a statement, and waits until the server has it.
fn send_and_wait(server: &NullServer, connection: &mut dyn Connection, sql: &str) {
    let n_before = server.statements();
    connection.set_blocking(false, 0).unwrap();
    connection.send_text(sql);
    while server.statements() == n_before {
        let _ = connection.wants_write();
        std::thread::yield_now();
    }
}

#[test]
fn answers_are_delayed_by_the_clock() {
    for wire in BOTH {
        let clock = Arc::new(ManualClock::new());
        let script = Script { delay: Nanoseconds::SECOND, ..Script::default() };
        let server = start(wire, script, &clock);
        let mut connection = (server.connector())().unwrap();
        send_and_wait(&server, connection.as_mut(), "SELECT 1");
        // The clock stands still: however long that takes, there is no answer.
        assert!(connection.poll_reply().is_pending());
        assert!(connection.poll_reply().is_pending());
        clock.advance_to(Nanoseconds::SECOND);
        assert_eq!(wait(connection.as_mut()), Ok(ONE_ROW));
    }
}

#[test]
fn no_answer_comes_while_a_stall_lasts() {
    let clock = Arc::new(ManualClock::new());
    let second = Nanoseconds::from_secs;
    let script = Script {
        stalls: vec![(second(10), second(1)), (second(20), second(1))],
        origin: StallOrigin::Clock,
        ..Script::default()
    };
    let server = start(Wire::PostgreSql, script, &clock);
    let mut connection = (server.connector())().unwrap();
    assert_eq!(text(connection.as_mut(), "SELECT 1"), ONE_ROW);
    for begin in [second(10), second(20)] {
        clock.advance_to(begin);
        connection.set_blocking(false, 0).unwrap();
        connection.send_text("SELECT 1");
        assert!(connection.poll_reply().is_pending());
        let n_before = server.statements();
        assert!(connection.poll_reply().is_pending());
        clock.advance_to(begin + Nanoseconds(999_999_999));
        assert!(connection.poll_reply().is_pending());
        assert_eq!(server.statements(), n_before);
        clock.advance_to(begin + second(1));
        assert_eq!(wait(connection.as_mut()), Ok(ONE_ROW));
    }
}

#[test]
fn stalls_are_counted_from_the_first_execution() {
    let clock = Arc::new(ManualClock::new());
    clock.advance_to(Nanoseconds::from_secs(5));
    let stalls = vec![(Nanoseconds::ZERO, Nanoseconds::SECOND)];
    let server = start(Wire::MySql, Script { stalls, ..Script::default() }, &clock);
    let mut connection = (server.connector())().unwrap();
    assert_eq!(text(connection.as_mut(), "SELECT 1"), ONE_ROW);
    connection.prepare(&[placeholders(Wire::MySql, "SELECT 1")]).unwrap();
    // The stall begins with it, and so behind it.
    connection.send_execute(0, &[]);
    assert_eq!(wait(connection.as_mut()), Ok(ONE_ROW));
    connection.set_blocking(false, 0).unwrap();
    connection.send_execute(0, &[]);
    assert!(connection.poll_reply().is_pending());
    assert!(connection.poll_reply().is_pending());
    clock.advance_to(Nanoseconds::from_secs(6));
    assert_eq!(wait(connection.as_mut()), Ok(ONE_ROW));
}

#[test]
fn a_server_in_a_stall_can_be_stopped() {
    let clock = Arc::new(ManualClock::new());
    let stalls = vec![(Nanoseconds::ZERO, Nanoseconds::from_secs(1 << 30))];
    let script = Script { stalls, origin: StallOrigin::Clock, ..Script::default() };
    drop(start(Wire::MySql, script, &clock));
}

#[test]
fn a_client_that_does_not_read_is_not_read_further() {
    let folder = tempfile::tempdir().unwrap();
    let place = Listen::Folder(folder.path().to_owned());
    let clock = Arc::new(ManualClock::new());
    let server = NullServer::start(Wire::PostgreSql, &place, Script::default(), clock).unwrap();
    let Address::Unix(path) = &server.endpoint().address else { panic!("no socket") };
    let mut stream = UnixStream::connect(path).unwrap();
    stream.write_all(b"\0\0\0\x08\0\x03\0\0").unwrap();
    let mut reader = stream.try_clone().unwrap();
    // No client reads, so writing comes to an end: the server holds no more than the sockets do.
    let query = b"Q\0\0\0\x0dSELECT 1\0".repeat(100);
    stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut n_written = 0;
    loop {
        assert!(n_written < 100_000_000, "it reads from a client that does not read");
        match stream.write(&query[n_written % query.len()..]) {
            Ok(n) => n_written += n,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    // As soon as the client reads, all is received and answered.
    let rest = query[n_written % query.len()..].to_vec();
    let n_queries = (n_written + rest.len()) as u64 / (query.len() as u64 / 100);
    stream.set_write_timeout(None).unwrap();
    let writer = std::thread::spawn(move || {
        stream.write_all(&rest).unwrap();
        stream
    });
    reader.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let (mut said, mut n_answers, mut room) = (Vec::new(), 0, [0; 1 << 16]);
    while n_answers < n_queries {
        let n = reader.read(&mut room).expect("it answers");
        assert!(n > 0, "it hung up after {n_answers} of {n_queries} answers");
        // An answer may have begun before this piece.
        let from = said.len().saturating_sub(VALUE.len() - 1);
        said.extend_from_slice(&room[..n]);
        n_answers += said[from..].windows(VALUE.len()).filter(|part| part == VALUE).count() as u64;
    }
    assert_eq!((n_answers, server.statements()), (n_queries, n_queries));
    drop(writer.join().unwrap());
}
