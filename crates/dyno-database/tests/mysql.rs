//! The MySQL product against a real private MariaDB server, and against the reference driver.
//!
//! One server serves all checks, one after the other: each check makes its own tables.

#![allow(clippy::unwrap_used)] // A failed unwrap here is a failed test.

#[path = "mysql/catalog.rs"]
mod catalog;
#[path = "mysql/dump.rs"]
mod dump;
#[path = "mysql/every_type.rs"]
mod every_type;
mod mysql_server;
#[path = "mysql/pipelines.rs"]
mod pipelines;

use std::path::Path;
use std::sync::Arc;
use std::task::Poll;

use dyno_database::datasets::DataSets;
use dyno_database::{AttachOptions, ServerSpec, mysql as product};
use dyno_host::Keeper;
use dyno_model::names;
use dyno_workload::{
    Connection, ErrorClass, Reply, Row, Statement, StatementClass, StatementError, Value,
};
use mysql::prelude::Queryable;
use mysql_server::{Fixture, spec};

/// Tables of others may be there.
const ALLOWING: AttachOptions =
    AttachOptions { allow_existing_tables: true, keep_tables: false, makes_nothing: false };

/// A check and its name.
type Check = (&'static str, fn(&Fixture));

#[test]
fn private_server_and_its_connections() {
    let files = mysql_server::open_folder();
    let file = |name: &str| mysql_server::fixture_file(&files, name);
    let fixture = Fixture::start(&spec(&[
        ("plugin_load_add", "auth_ed25519"),
        ("max_allowed_packet", "67108864"),
        ("character_set_server", "utf8mb4"),
        ("ssl_cert", &file("tls-server.pem")),
        ("ssl_key", &file("tls-server.key")),
        ("ssl_ca", &file("tls-root.pem")),
    ]));
    let checks: [Check; 21] = [
        ("facts", facts),
        ("text statements", text_statements),
        ("prepared statements", prepared_statements),
        ("changed tables", changed_tables),
        ("without blocking", without_blocking),
        ("several results", several_results),
        ("pipelines", pipelines::check),
        ("kept rows", kept_rows),
        ("long values", long_values),
        ("misuse", misuse),
        ("errors by class", errors_by_class),
        ("deadlock", deadlock),
        ("changed records", changed_records),
        ("killed connections", killed_connections),
        ("loading rows", loading_rows),
        ("loading bad rows", loading_bad_rows),
        ("local files", local_files),
        ("dumps", dump::check),
        ("every type", every_type::check),
        ("the reference driver", reference_driver),
        ("authentication", authentication),
    ];
    for (name, check) in checks {
        announce(name);
        check(&fixture);
    }
    encryption(&fixture, &file("tls-root.pem"), &file("tls-other-root.pem"));
    attaching(&fixture);
    fixture.stop();
}

/// Names the check that runs, for the output of a failed test.
#[allow(clippy::print_stderr)]
fn announce(name: &str) {
    eprintln!("check: {name}");
}

/// Turns of a connection that blocks, far more than the longest reply of these tests takes.
const TURNS_MOST: usize = 1000;

/// Waits for the reply of a connection that blocks: one of many megabytes takes several turns.
fn reply(connection: &mut dyn Connection) -> Result<Reply, StatementError> {
    for _ in 0..TURNS_MOST {
        if let Poll::Ready(result) = connection.poll_reply() {
            return result;
        }
    }
    panic!("a blocking connection is still pending")
}

fn text(connection: &mut dyn Connection, sql: &str) -> Result<Reply, StatementError> {
    connection.send_text(sql);
    reply(connection)
}

fn execute(
    connection: &mut dyn Connection,
    statement: usize,
    values: &[Value<'_>],
) -> Result<Reply, StatementError> {
    connection.send_execute(statement, values);
    reply(connection)
}

fn statements(sql: &[&str]) -> Vec<Statement> {
    sql.iter().map(|sql| Statement::new(*sql, StatementClass::Other)).collect()
}

fn rows(n: u64) -> Reply {
    Reply { rows: n, ..Reply::default() }
}

fn affected(n: u64) -> Reply {
    Reply { affected: n, ..Reply::default() }
}

/// The first value of a query.
fn value(connection: &mut dyn Connection, sql: &str) -> String {
    connection.query(sql).unwrap()[0][0].clone().unwrap()
}

fn facts(fixture: &Fixture) {
    let facts = fixture.server().facts().unwrap();
    assert_eq!((facts.product.as_str(), facts.transport, facts.tls), ("MariaDB", "unix", false));
    assert!(facts.version.contains("MariaDB"));
    assert_eq!(facts.settings["max_allowed_packet"], "67108864");
    assert_eq!(facts.settings["log_bin"], "OFF");
    assert_eq!(facts.durability.words, "every commit is synced");
    assert!(fixture.server().data_bytes().unwrap() > 1 << 20);
    assert_eq!(fixture.server().processes().len(), 1);
    assert!(!fixture.server().log_tail(5).is_empty());
    assert_eq!(fixture.server_mut(|server| server.down()), None);
    // Only root at the socket.
    let mut connection = fixture.connect();
    let accounts =
        connection.query("SELECT User, Host FROM mysql.user WHERE User <> 'mariadb.sys'");
    let expected = vec![Some("root".to_owned()), Some("localhost".to_owned())];
    assert_eq!(accounts.unwrap(), [expected]);
}

fn kept_rows(fixture: &Fixture) {
    let mut c = fixture.connect();
    let c = c.as_mut();
    c.query("CREATE TABLE kept (id INT PRIMARY KEY, d DECIMAL(12,2), t VARCHAR(20), at DATETIME)")
        .unwrap();
    c.query(
        "INSERT INTO kept VALUES (1, -1.5, 'one', '2024-02-29 01:02:03'), (2, NULL, 'two', NULL)",
    )
    .unwrap();
    c.query(
        "CREATE PROCEDURE pair(a INT) BEGIN UPDATE kept SET d = a WHERE id = 1; \
         SELECT id, d FROM kept ORDER BY id; SELECT 'second'; END",
    )
    .unwrap();
    let sql = [
        "SELECT id, d, t, at, 1e0, CAST(? AS UNSIGNED) FROM kept ORDER BY id",
        "SELECT 1",
        "CALL pair(?)",
        "SELECT REPEAT('y', ?)",
    ];
    let keeping = |(idx, statement): (usize, Statement)| match idx {
        1 => statement,
        _ => statement.keeping_rows(),
    };
    let prepared: Vec<Statement> = statements(&sql).into_iter().enumerate().map(keeping).collect();
    c.prepare(&prepared).unwrap();
    for number in [5, 1 << 40] {
        assert_eq!(execute(c, 0, &[Value::Integer(number)]), Ok(rows(2)));
        let seen = c.kept_rows();
        assert_eq!((seen.integer(0, 0), seen.integer(1, 0)), (Some(1), Some(2)));
        assert_eq!((seen.is_null(1, 1), seen.is_null(1, 3)), (true, true));
        assert_eq!(seen.text(1, 2), Some(&b"two"[..]));
        assert_eq!(seen.text(0, 3), Some(&b"2024-02-29 01:02:03"[..]));
        assert_eq!((seen.real(0, 4), seen.integer(1, 5)), (Some(1.0), Some(number)));
        assert_eq!(execute(c, 1, &[]), Ok(rows(1)));
        let reply = execute(c, 2, &[Value::Integer(7)]).unwrap();
        assert_eq!(reply.rows, 3, "both results are counted, the first one is kept");
        let seen = c.kept_rows();
        assert_eq!((seen.n_rows(), seen.fixed(0, 1, 2)), (2, Some(700)));
        assert_eq!(execute(c, 3, &[Value::Integer(3_000_000)]), Ok(rows(1)));
        assert_eq!(c.kept_rows().text(0, 0).map(<[u8]>::len), Some(3_000_000));
    }
    // What the columns are is learnt again when the table changes under the statement.
    c.query("ALTER TABLE kept MODIFY id BIGINT UNSIGNED, MODIFY t INT").unwrap_err();
    c.query("UPDATE kept SET t = id").unwrap();
    c.query("ALTER TABLE kept MODIFY id BIGINT UNSIGNED, MODIFY t INT").unwrap();
    assert_eq!(execute(c, 0, &[Value::Integer(1)]), Ok(rows(2)));
    assert_eq!(c.kept_rows().integer(1, 2), Some(2));
    // As text, in both modes.
    for is_blocking in [false, true] {
        c.set_blocking(is_blocking, 0).unwrap();
        c.send_text_keeping("SELECT MIN(id), NULL, t, d FROM kept GROUP BY id ORDER BY id", 4);
        assert_eq!(awaited(c), Ok(rows(2)));
        let kept = c.kept_rows();
        assert_eq!((kept.n_rows(), kept.integer(0, 0), kept.integer(1, 0)), (2, Some(1), Some(2)));
        assert!(kept.is_null(0, 1) && kept.text(1, 2) == Some(b"2"));
        c.send_text_keeping("SELECT MAX(id) FROM kept WHERE id > 9", 1);
        assert_eq!(awaited(c), Ok(rows(1)));
        assert_eq!(c.kept_rows().integer(0, 0), None);
    }
    c.set_blocking(true, 0).unwrap();
    c.query("DROP PROCEDURE pair").unwrap();
    c.query("DROP TABLE kept").unwrap();
}

fn text_statements(fixture: &Fixture) {
    let mut c = fixture.connect();
    let c = c.as_mut();
    assert_eq!(text(c, "CREATE TABLE a (id INT PRIMARY KEY, n INT)"), Ok(affected(0)));
    assert_eq!(text(c, "INSERT INTO a VALUES (1, 10), (2, NULL), (3, 30)"), Ok(affected(3)));
    assert_eq!(text(c, "SELECT * FROM a"), Ok(rows(3)));
    assert_eq!(text(c, "SELECT * FROM a WHERE id > 9"), Ok(rows(0)));
    assert_eq!(text(c, "UPDATE a SET n = 10"), Ok(affected(2)), "only changed rows count");
    assert_eq!(text(c, "SELECT 1/0").unwrap().warnings, 1);
    assert_eq!(text(c, "BEGIN"), Ok(affected(0)));
    assert_eq!(text(c, "DELETE FROM a"), Ok(affected(3)));
    assert_eq!(text(c, "ROLLBACK"), Ok(affected(0)));
    assert_eq!(value(c, "SELECT COUNT(*) FROM a"), "3");
}

fn prepared_statements(fixture: &Fixture) {
    let mut c = fixture.connect();
    let c = c.as_mut();
    text(c, "CREATE TABLE b (id BIGINT PRIMARY KEY, x DOUBLE, t VARCHAR(100))").unwrap();
    c.prepare(&statements(&[
        "INSERT INTO b VALUES (?, ?, ?)",
        "SELECT * FROM b WHERE id = ?",
        "SELECT t FROM b WHERE id BETWEEN ? AND ? ORDER BY t",
        "BEGIN",
    ]))
    .unwrap();
    for id in 1..=20 {
        let values = [Value::Integer(id), Value::Real(0.5), Value::Text("für ✓".as_bytes())];
        assert_eq!(execute(c, 0, &values), Ok(affected(1)));
    }
    let extremes = [Value::Integer(i64::MIN), Value::Null, Value::Null];
    assert_eq!(execute(c, 0, &extremes), Ok(affected(1)));
    for id in [1, 20, 21, 7] {
        assert_eq!(execute(c, 1, &[Value::Integer(id)]), Ok(rows(u64::from(id <= 20))));
    }
    // Another type for the same placeholder.
    assert_eq!(execute(c, 1, &[Value::Text(b"7")]), Ok(rows(1)));
    assert_eq!(execute(c, 1, &[Value::Null]), Ok(rows(0)));
    assert_eq!(execute(c, 2, &[Value::Integer(5), Value::Integer(9)]), Ok(rows(5)));
    assert_eq!(execute(c, 3, &[]), Ok(affected(0)));
    let stored = c.query("SELECT id, x, t FROM b WHERE id IN (5, -9223372036854775808)").unwrap();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(stored[0], [some("-9223372036854775808"), None, None]);
    assert_eq!(stored[1], [some("5"), some("0.5"), some("für ✓")]);
    // An error does not spoil the next execution.
    let twice = [Value::Integer(5), Value::Null, Value::Null];
    assert_eq!(execute(c, 0, &twice).unwrap_err().class, ErrorClass::DuplicateKey);
    let fresh = [Value::Integer(500), Value::Null, Value::Text(b"")];
    assert_eq!(execute(c, 0, &fresh), Ok(affected(1)));
    // Preparing again replaces what was prepared.
    c.prepare(&statements(&["SELECT ?"])).unwrap();
    assert_eq!(execute(c, 0, &[Value::Integer(1)]), Ok(rows(1)));
    assert_eq!(value(c, "SHOW SESSION STATUS WHERE Variable_name = 'Com_stmt_close'"), {
        "Com_stmt_close"
    });
    let error = c.prepare(&statements(&["SELECT * FROM missing"])).unwrap_err();
    assert!(error.to_string().contains("when preparing `SELECT * FROM missing`"), "{error}");
}

/// Column definitions that the server does not send again unless they changed.
fn changed_tables(fixture: &Fixture) {
    let mut c = fixture.connect();
    let c = c.as_mut();
    text(c, "CREATE TABLE d (id INT PRIMARY KEY, n INT)").unwrap();
    text(c, "INSERT INTO d VALUES (1, 1), (2, 2)").unwrap();
    c.prepare(&statements(&["SELECT * FROM d"])).unwrap();
    for alter in ["ADD t TEXT", "MODIFY n VARCHAR(5)", "DROP t", "ADD u INT, ADD v INT"] {
        assert_eq!(execute(c, 0, &[]), Ok(rows(2)));
        assert_eq!(execute(c, 0, &[]), Ok(rows(2)));
        text(fixture.connect().as_mut(), &format!("ALTER TABLE d {alter}")).unwrap();
        assert_eq!(execute(c, 0, &[]), Ok(rows(2)), "after {alter}");
        assert_eq!(execute(c, 0, &[]), Ok(rows(2)));
    }
}

/// Waits for the reply of a connection that does not block.
fn awaited(connection: &mut dyn Connection) -> Result<Reply, StatementError> {
    use rustix::event::{PollFd, PollFlags, poll};
    loop {
        if let Poll::Ready(result) = connection.poll_reply() {
            return result;
        }
        let flags = match connection.wants_write() {
            true => PollFlags::IN | PollFlags::OUT,
            false => PollFlags::IN,
        };
        let descriptor = connection.descriptor().unwrap();
        poll(&mut [PollFd::new(&descriptor, flags)], None).unwrap();
    }
}

fn without_blocking(fixture: &Fixture) {
    let mut c = fixture.connect();
    let c = c.as_mut();
    c.prepare(&statements(&["SELECT ?", "SELECT LENGTH(?)"])).unwrap();
    c.set_blocking(false, 0).unwrap();
    for number in 0..50 {
        c.send_execute(0, &[Value::Integer(number)]);
        assert_eq!(awaited(c), Ok(rows(1)));
    }
    // A lock of somebody else: there is no reply until it is given up.
    const WAITING: &str = "SELECT GET_LOCK('held', 600), RELEASE_LOCK('held')";
    let holder = std::cell::RefCell::new(fixture.connect());
    let succeed = |sql: &str| assert_eq!(value(holder.borrow_mut().as_mut(), sql), "1");
    let lock = || succeed("SELECT GET_LOCK('held', 0)");
    let give_up = || succeed("SELECT RELEASE_LOCK('held')");
    lock();
    c.send_text(WAITING);
    assert_eq!(c.poll_reply(), Poll::Pending);
    assert_eq!(c.poll_reply(), Poll::Pending);
    give_up();
    assert_eq!(awaited(c), Ok(rows(1)));
    c.send_text("SELECT seq FROM seq_1_to_100000");
    assert_eq!(awaited(c), Ok(rows(100_000)));
    // More than the socket takes at once.
    let long = vec![b'x'; 5_000_000];
    c.send_execute(1, &[Value::Text(&long)]);
    assert_eq!(awaited(c), Ok(rows(1)));
    // A cold call in between blocks, and leaves the mode as it was.
    assert_eq!(value(c, "SELECT SLEEP(0.01)"), "0");
    lock();
    c.send_text(WAITING);
    assert_eq!(c.poll_reply(), Poll::Pending);
    give_up();
    assert_eq!(awaited(c), Ok(rows(1)));
    // A read that runs out of its time is no error.
    lock();
    c.set_blocking(true, 1_000_000).unwrap();
    c.send_text(WAITING);
    assert_eq!(c.poll_reply(), Poll::Pending);
    give_up();
    c.set_blocking(true, 0).unwrap();
    assert_eq!(reply(c), Ok(rows(1)));
}

fn several_results(fixture: &Fixture) {
    let mut c = fixture.connect();
    let c = c.as_mut();
    assert_eq!(text(c, "SELECT 1; SELECT 2 UNION SELECT 3; DO 0; SELECT 4"), Ok(rows(4)));
    let some = |text: &str| Some(text.to_owned());
    let expected = [vec![some("1")], vec![some("2"), some("b")]];
    assert_eq!(c.query("SELECT 1; DO 0; SELECT 2, 'b'").unwrap(), expected);
    text(c, "CREATE PROCEDURE p(n INT) BEGIN SELECT n; SELECT seq FROM seq_1_to_5; END").unwrap();
    assert_eq!(text(c, "CALL p(1)"), Ok(rows(6)));
    c.prepare(&statements(&["CALL p(?)"])).unwrap();
    for number in 0..3 {
        assert_eq!(execute(c, 0, &[Value::Integer(number)]), Ok(rows(6)));
    }
    let error = text(c, "SELECT 1; SELECT * FROM missing; SELECT 2").unwrap_err();
    assert_eq!((error.class, error.code.as_str()), (ErrorClass::Refused, "1146"));
    assert_eq!(c.query("SELECT 1; SELECT missing").unwrap_err().code, "1054");
    assert_eq!(text(c, "SELECT 1"), Ok(rows(1)));
    // An error in the middle of the rows.
    let error = text(c, "SELECT IF(seq = 5000, (SELECT 1 UNION SELECT 2), seq) FROM seq_1_to_9999");
    assert_eq!(error.unwrap_err().code, "1242");
    assert_eq!(text(c, "SELECT 1"), Ok(rows(1)));
}

fn long_values(fixture: &Fixture) {
    let mut c = fixture.connect();
    let c = c.as_mut();
    let max = 0xff_ffff;
    // The first byte of the row is its length's: these rows end before, at and behind a packet.
    for len in [max - 20, max - 10, max - 9, max - 8, max, max + 1, 2 * max, 3 * max - 4] {
        let sql = format!("SELECT REPEAT('x', {len}), 1");
        assert_eq!(text(c, &sql), Ok(rows(1)), "{len}");
    }
    let row = &c.query(&format!("SELECT REPEAT('y', {}), 'end'", max + 5)).unwrap()[0];
    assert_eq!(row[0].as_ref().unwrap().len(), max + 5);
    assert_eq!(row[1].as_deref(), Some("end"));
    c.prepare(&statements(&["SELECT ?", "SELECT LENGTH(?) - ?"])).unwrap();
    for len in [max - 30, max, 2 * max + 7] {
        let long = vec![b'z'; len];
        assert_eq!(execute(c, 0, &[Value::Text(&long)]), Ok(rows(1)), "{len}");
        assert_eq!(execute(c, 1, &[Value::Text(&long), Value::Integer(1)]), Ok(rows(1)));
        let sql = format!("SELECT LENGTH('{}')", String::from_utf8(long).unwrap());
        assert_eq!(text(c, &sql), Ok(rows(1)));
        assert_eq!(value(c, &sql), len.to_string());
    }
}

fn misuse(fixture: &Fixture) {
    let mut c = fixture.connect();
    let c = c.as_mut();
    c.prepare(&statements(&["SELECT ?"])).unwrap();
    let refused = |result: Result<Reply, StatementError>, part: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.class, ErrorClass::Refused);
        assert!(error.message.contains(part), "{error}");
    };
    refused(reply(c), "no statement is in flight");
    refused(execute(c, 1, &[]), "was not prepared");
    refused(execute(c, 0, &[]), "takes 1 values and was given 0");
    c.send_text("SELECT 1");
    c.send_text("SELECT 2");
    refused(reply(c), "already in flight");
    assert_eq!(reply(c), Ok(rows(1)));
    c.send_text("SELECT 1");
    refused(c.query("SELECT 2").map(|_| Reply::default()), "already in flight");
    assert_eq!(reply(c), Ok(rows(1)));
}

fn errors_by_class(fixture: &Fixture) {
    let mut c = fixture.connect();
    let c = c.as_mut();
    let mut class = |sql: &str| text(c, sql).unwrap_err().class;
    assert_eq!(class("SELEC 1"), ErrorClass::Refused);
    assert_eq!(class("SELECT * FROM missing"), ErrorClass::Refused);
    assert_eq!(class("INSERT INTO a VALUES (1, 1)"), ErrorClass::DuplicateKey);
    assert_eq!(class("SET max_statement_time = 0.01; SELECT SLEEP(9)"), ErrorClass::TimedOut);
    let mut holder = fixture.connect();
    text(holder.as_mut(), "BEGIN").unwrap();
    text(holder.as_mut(), "UPDATE a SET n = 5 WHERE id = 1").unwrap();
    let mut c = fixture.connect();
    text(c.as_mut(), "SET innodb_lock_wait_timeout = 0").unwrap();
    let error = text(c.as_mut(), "UPDATE a SET n = 6 WHERE id = 1").unwrap_err();
    assert_eq!((error.class, error.code.as_str()), (ErrorClass::LockTimeout, "1205"));
    assert_eq!(text(c.as_mut(), "ROLLBACK"), Ok(affected(0)));
}

fn deadlock(fixture: &Fixture) {
    let (mut first, mut second) = (fixture.connect(), fixture.connect());
    let (first, second) = (first.as_mut(), second.as_mut());
    for (connection, id) in [(&mut *first, 1), (&mut *second, 2)] {
        text(connection, "BEGIN").unwrap();
        text(connection, &format!("UPDATE a SET n = n + 1 WHERE id = {id}")).unwrap();
    }
    first.send_text("UPDATE a SET n = n + 1 WHERE id = 2");
    second.send_text("UPDATE a SET n = n + 1 WHERE id = 1");
    let results = [reply(first), reply(second)];
    let ([Ok(_), Err(error)] | [Err(error), Ok(_)]) = &results else {
        panic!("not one victim: {results:?}");
    };
    assert_eq!((error.class, error.code.as_str()), (ErrorClass::Deadlock, "1213"));
    text(first, "ROLLBACK").unwrap();
    text(second, "ROLLBACK").unwrap();
}

fn changed_records(fixture: &Fixture) {
    let mut c = fixture.connect();
    let c = c.as_mut();
    text(c, "SET innodb_snapshot_isolation = ON").unwrap();
    text(c, "START TRANSACTION WITH CONSISTENT SNAPSHOT").unwrap();
    text(fixture.connect().as_mut(), "UPDATE a SET n = n + 1 WHERE id = 3").unwrap();
    let error = text(c, "UPDATE a SET n = n + 1 WHERE id = 3").unwrap_err();
    assert_eq!((error.class, error.code.as_str()), (ErrorClass::Serialization, "1020"));
    text(c, "ROLLBACK").unwrap();
}

fn killed_connections(fixture: &Fixture) {
    let killer = &mut fixture.connect();
    // While idle; the server may or may not say why.
    let mut c = fixture.connect();
    let id = value(c.as_mut(), "SELECT CONNECTION_ID()");
    text(killer.as_mut(), &format!("KILL {id}")).unwrap();
    let gone = format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id}");
    while value(killer.as_mut(), &gone) != "0" {}
    assert_eq!(text(c.as_mut(), "SELECT 1").unwrap_err().class, ErrorClass::Disconnected);
    let again = text(c.as_mut(), "SELECT 1").unwrap_err();
    assert!(again.class.loses_connection(), "{again}");
    assert_eq!(c.query("SELECT 1").unwrap_err().class, ErrorClass::Disconnected);
    // While a statement runs.
    let mut c = fixture.connect();
    let id = value(c.as_mut(), "SELECT CONNECTION_ID()");
    c.set_blocking(false, 0).unwrap();
    c.send_text("SELECT SLEEP(100)");
    let runs = format!(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id} AND state LIKE 'User%'"
    );
    while value(killer.as_mut(), &runs) == "0" {}
    text(killer.as_mut(), &format!("KILL {id}")).unwrap();
    let first = awaited(c.as_mut());
    if let Err(error) = &first {
        assert_ne!(error.class, ErrorClass::Deadlock);
    }
    c.send_text("SELECT 1");
    assert_eq!(awaited(c.as_mut()).unwrap_err().class, ErrorClass::Disconnected);
    // A new connection is as good as the first.
    assert_eq!(text(fixture.connect().as_mut(), "SELECT 1"), Ok(rows(1)));
}

const N_LOADED: u64 = 100_000;

fn fill(number: u64, row: &mut Row) {
    row.push_integer(number as i64 - 50_000);
    match number % 5 {
        0 => row.push_null(),
        1 => row.push_text(b"tab\tnewline\nreturn\rback\\slash 'quote' \\N"),
        2 => row.push_text("grün ✓ 漢字 🎉".as_bytes()),
        3 => row.push_text(b""),
        _ => {
            row.push_text_with(|bytes| bytes.resize(bytes.len() + 100, b'a' + (number % 26) as u8))
        }
    }
    row.push_text(&[number as u8, 0, 0xff, 0x5c, (number >> 8) as u8, 0x1a, b'\'']);
}

/// Loads `n` rows into a fresh table, and returns its checksum.
fn load(connection: &mut dyn Connection, table: &str, n: u64) -> String {
    let columns = "id INT PRIMARY KEY, t VARCHAR(200), b VARBINARY(20)";
    let quoted = format!("`{}`", table.replace('`', "``"));
    text(connection, &format!("CREATE TABLE {quoted} ({columns}) CHARACTER SET utf8mb4")).unwrap();
    let mut number = 0;
    let mut next_row = |row: &mut Row| {
        if number == n {
            return false;
        }
        fill(number, row);
        number += 1;
        true
    };
    assert_eq!(connection.load_rows(table, &names(&["id", "t", "b"]), &mut next_row), Ok(n));
    connection.query(&format!("CHECKSUM TABLE {quoted}")).unwrap()[0][1].clone().unwrap()
}

fn loading_rows(fixture: &Fixture) {
    let mut c = fixture.connect();
    let c = c.as_mut();
    let checksum = load(c, "loaded", N_LOADED);
    assert_eq!(value(c, "SELECT COUNT(*) FROM loaded"), N_LOADED.to_string());
    assert_eq!(value(c, "SELECT SUM(id) FROM loaded"), "-50000");
    assert_eq!(value(c, "SELECT COUNT(*) FROM loaded WHERE t IS NULL"), "20000");
    for number in [1, 2, 4, 12_346] {
        let mut row = Row::new();
        fill(number, &mut row);
        let sql = format!("SELECT t, HEX(b) FROM loaded WHERE id = {}", number as i64 - 50_000);
        let stored = &c.query(&sql).unwrap()[0];
        assert_eq!(stored[0].as_deref().unwrap().as_bytes(), row.text(row.cells()[1]));
        let bytes = row.text(row.cells()[2]);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
        assert_eq!(stored[1].as_deref(), Some(hex.as_str()));
    }
    // The same rows by INSERT, where the server has local files turned off, in both of the modes
    // that quote differently.
    text(c, "SET GLOBAL local_infile = OFF").unwrap();
    assert_eq!(load(fixture.connect().as_mut(), "inserted", N_LOADED), checksum);
    let mut other = fixture.connect();
    text(other.as_mut(), "SET sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'").unwrap();
    assert_eq!(load(other.as_mut(), "inserted` too", N_LOADED), checksum);
    text(c, "SET GLOBAL local_infile = ON").unwrap();
    assert_eq!(load(other.as_mut(), "loaded too", N_LOADED), checksum);
    // The session's checks are as they were.
    assert_eq!(value(c, "SELECT @@unique_checks + @@foreign_key_checks"), "2");
    assert_eq!(c.load_rows("loaded", &names(&["id"]), &mut |_| false), Ok(0));
    // A row longer than any packet.
    text(c, "CREATE TABLE loaded_long (t LONGTEXT)").unwrap();
    let mut lens = vec![17_000_000, 3];
    let mut next_row = |row: &mut Row| match lens.pop() {
        Some(len) => {
            row.push_text(&vec![b'l'; len]);
            true
        }
        None => false,
    };
    assert_eq!(c.load_rows("loaded_long", &names(&["t"]), &mut next_row), Ok(2));
    assert_eq!(value(c, "SELECT SUM(LENGTH(t)) FROM loaded_long"), "17000003");
}

fn loading_bad_rows(fixture: &Fixture) {
    let mut c = fixture.connect();
    let c = c.as_mut();
    let load = |c: &mut dyn Connection, table: &str, values: &[&str]| {
        let mut left = values.iter();
        c.load_rows(table, &names(&["id"]), &mut |row: &mut Row| {
            left.next().map(|value| row.push_text(value.as_bytes())).is_some()
        })
    };
    assert_eq!(load(c, "missing", &["1"]).unwrap_err().code, "1146");
    text(c, "CREATE TABLE bad (id INT PRIMARY KEY)").unwrap();
    // Into an empty table, which InnoDB fills in another way.
    assert_eq!(load(c, "bad", &["1", "1"]).unwrap_err().class, ErrorClass::DuplicateKey);
    text(c, "DELETE FROM bad").unwrap();
    assert_eq!(load(c, "bad", &["1", "2"]), Ok(2));
    let error = load(c, "bad", &["3", "2"]).unwrap_err();
    assert_eq!(error.class, ErrorClass::DuplicateKey, "{error}");
    let error = load(c, "bad", &["5", "six"]).unwrap_err();
    assert!(error.message.contains("six"), "{error}");
    assert_eq!(text(c, "SELECT 1"), Ok(rows(1)));
}

/// A statement that makes the server ask for a file of this machine gets none.
fn local_files(fixture: &Fixture) {
    let mut c = fixture.connect();
    let c = c.as_mut();
    text(c, "CREATE TABLE files (t TEXT)").unwrap();
    let sql = "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE files";
    for error in [text(c, sql).unwrap_err(), c.query(sql).unwrap_err()] {
        assert_eq!(error.class, ErrorClass::Refused);
        assert!(error.message.contains("`/etc/passwd`"), "{error}");
    }
    assert_eq!(text(c, "SELECT * FROM files"), Ok(rows(0)));
}

fn reference_driver(fixture: &Fixture) {
    let mut c = fixture.connect();
    let options = mysql::OptsBuilder::new()
        .socket(Some(fixture.setting("socket")))
        .user(Some("root"))
        .db_name(Some("dyno"));
    let mut reference = mysql::Conn::new(options).unwrap();
    let queries = [
        "SELECT 1, -1, 0, 18446744073709551615, -9223372036854775808, 1.5, 1e300, 1e-300, 0.1e0",
        "SELECT NULL, '', 'text', 'für ✓ 漢字 🎉', _binary'bytes', 0x414243, b'1000001'",
        "SELECT DATE '2024-02-29', TIME '-838:59:59.123456', TIMESTAMP '2038-01-19 03:14:07.5'",
        "SELECT CAST(1.10 AS DECIMAL(65, 30)), CAST('{\"a\": [1, null]}' AS JSON), TRUE, PI()",
        "SELECT id, t FROM loaded ORDER BY id LIMIT 2000",
        "SELECT seq, IF(seq % 3, NULL, seq), REPEAT('x', seq) FROM seq_1_to_700",
        "SELECT REPEAT('a', 250), REPEAT('b', 251), REPEAT('c', 65535), REPEAT('d', 65536), NULL",
        "SELECT REPEAT('e', 16777210), NULL, REPEAT('f', 70000)",
        "SELECT * FROM information_schema.engines ORDER BY engine",
        "SELECT 1 FROM loaded WHERE id = 1234567",
        "SHOW GLOBAL VARIABLES LIKE 'innodb%'",
    ];
    for sql in queries {
        let expected: Vec<Vec<Option<String>>> = match reference.query_iter(sql) {
            Err(error) => {
                // MariaDB has no CAST … AS JSON: both have to get the same error.
                let refused = c.query(sql).unwrap_err();
                assert!(error.to_string().contains(&refused.message), "{error}; {refused}");
                continue;
            }
            Ok(rows) => {
                rows.map(|row| row.unwrap().unwrap().into_iter().map(shown).collect()).collect()
            }
        };
        assert_eq!(c.query(sql).unwrap(), expected, "{sql}");
        assert_eq!(text(c.as_mut(), sql), Ok(rows(expected.len() as u64)), "{sql}");
        c.prepare(&statements(&[sql])).unwrap();
        for _ in 0..2 {
            assert_eq!(execute(c.as_mut(), 0, &[]), Ok(rows(expected.len() as u64)), "{sql}");
        }
    }
}

/// A value of the reference driver's text protocol.
fn shown(value: mysql::Value) -> Option<String> {
    match value {
        mysql::Value::NULL => None,
        mysql::Value::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        other => panic!("{other:?} in the text protocol"),
    }
}

fn authentication(fixture: &Fixture) {
    let mut root = fixture.connect();
    let me = mysql_server::user_name();
    for sql in [
        "CREATE USER native@localhost IDENTIFIED VIA mysql_native_password USING PASSWORD('hush')",
        "CREATE USER empty@localhost",
        "CREATE USER ed@localhost IDENTIFIED VIA ed25519 USING PASSWORD('hush ✓')",
        "GRANT ALL ON dyno.* TO native@localhost, empty@localhost, ed@localhost",
        &format!("CREATE OR REPLACE USER `{me}`@localhost IDENTIFIED VIA unix_socket"),
        &format!("GRANT ALL ON *.* TO `{me}`@localhost WITH GRANT OPTION"),
    ] {
        text(root.as_mut(), sql).unwrap();
    }
    let connect = |user: &str, password: Option<&str>| {
        let mut connection = product::connect(&fixture.socket_endpoint(user, password))?;
        Ok::<_, dyno_workload::ConnectError>(value(&mut connection, "SELECT USER()"))
    };
    assert_eq!(connect("native", Some("hush")).unwrap(), "native@localhost");
    assert_eq!(connect("empty", None).unwrap(), "empty@localhost");
    assert_eq!(connect("ed", Some("hush ✓")).unwrap(), "ed@localhost");
    assert_eq!(connect(&me, None).unwrap(), format!("{me}@localhost"));
    for (user, password) in [("native", "hushed"), ("ed", "hushed"), ("nobody here", "hushed")] {
        let error = connect(user, Some(password)).unwrap_err().to_string();
        assert!(error.contains("Access denied for user"), "{error}");
        assert!(error.contains("check user and password"), "{error}");
        assert!(!error.contains("hushed"), "{error} shows the password");
    }
    let mut endpoint = fixture.socket_endpoint("native", Some("hush"));
    "missing".clone_into(&mut endpoint.catalog);
    let error = product::connect(&endpoint).err().unwrap().to_string();
    assert!(error.contains("(1044)") || error.contains("(1049)"), "{error}");
}

fn encryption(fixture: &Fixture, roots: &str, strangers: &str) {
    // A private server has no port; TLS begins the same way through a relay.
    let port = fixture.relay();
    let url = |host: &str, options: &str| {
        format!("mysql://ed:hush%20%E2%9C%93@{host}:{port}/dyno?{options}")
    };
    let connect = |url: String| {
        let endpoint = dyno_database::Endpoint::from_url(&url).unwrap();
        product::connect(&endpoint).map_err(|error| error.to_string())
    };
    let mut plain = connect(url("127.0.0.1", "")).unwrap();
    assert_eq!(plain.query("SHOW STATUS LIKE 'Ssl_cipher'").unwrap()[0][1].as_deref(), Some(""));
    for options in ["tls=encrypt".to_owned(), format!("tls=verify&tls_roots={roots}")] {
        let mut c = connect(url("127.0.0.1", &options)).unwrap();
        assert!(c.is_encrypted());
        assert_ne!(c.query("SHOW STATUS LIKE 'Ssl_cipher'").unwrap()[0][1].as_deref(), Some(""));
        assert_eq!(text(&mut c, "SELECT seq, REPEAT('x', 90) FROM seq_1_to_20000"), {
            Ok(rows(20_000))
        });
        c.prepare(&statements(&["SELECT ?, LENGTH(?)"])).unwrap();
        c.set_blocking(false, 0).unwrap();
        let long = vec![b'x'; 3_000_000];
        c.send_execute(0, &[Value::Integer(1), Value::Text(&long)]);
        assert_eq!(awaited(&mut c), Ok(rows(1)));
        c.set_blocking(true, 0).unwrap();
        assert!(!load(&mut c, &format!("tls {}", options.len()), 3000).is_empty());
    }
    let error = connect(url("127.0.0.1", &format!("tls=verify&tls_roots={strangers}")));
    assert!(error.err().unwrap().contains("handshake failed"));
}

fn attaching(fixture: &Fixture) {
    let mut root = fixture.connect();
    let mut endpoint = fixture.socket_endpoint(&mysql_server::user_name(), None);
    "at`tached".clone_into(&mut endpoint.catalog);
    let catalogs =
        "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = 'at`tached'";
    // A catalog that Dyno made goes when it leaves; with somebody's table in it, it stays.
    let server = dyno_database::attach(&endpoint, AttachOptions::default()).unwrap();
    assert_eq!(server.facts().unwrap().product, "MariaDB");
    assert_eq!(value(root.as_mut(), catalogs), "1");
    server.stop().unwrap();
    assert_eq!(value(root.as_mut(), catalogs), "0");
    let server = dyno_database::attach(&endpoint, AttachOptions::default()).unwrap();
    text(root.as_mut(), "CREATE TABLE `at``tached`.theirs (id INT)").unwrap();
    server.stop().unwrap();
    assert_eq!(value(root.as_mut(), catalogs), "1");
    // Their tables are not to be met by accident, and never dropped.
    let error = dyno_database::attach(&endpoint, AttachOptions::default()).err().unwrap();
    assert!(error.message.contains("theirs"), "{error}");
    dyno_database::attach(&endpoint, ALLOWING).unwrap().stop().unwrap();
    assert_eq!(value(root.as_mut(), "SELECT COUNT(*) FROM `at``tached`.theirs"), "0");
    catalog::check(fixture);
}

#[test]
fn servers_that_cannot_start_say_why() {
    let error = Fixture::try_start(&spec(&[("no_such_setting", "1")])).err().unwrap();
    assert!(error.message.ends_with("unknown variable 'no_such_setting=1'"), "{error}");
    assert!(error.log.iter().any(|line| line.contains("no_such_setting")), "{:?}", error.log);
    let wrong = ServerSpec { version: Some("9.9".to_owned()), ..spec(&[]) };
    let error = Fixture::try_start(&wrong).err().unwrap();
    assert!(
        error.message.contains("MariaDB 9.9 is not installed or fetched on this machine"),
        "{error}"
    );
    let engine = ServerSpec { engine: Some("NoSuchEngine".to_owned()), ..spec(&[]) };
    let error = Fixture::try_start(&engine).err().unwrap();
    assert!(error.log.iter().any(|line| line.contains("NoSuchEngine")), "{error}: {:?}", error.log);
}

/// What a server says of itself, and a file of its data.
fn identity(spec: &ServerSpec, kept: &Path, files: &[&str]) -> (Vec<String>, Vec<Vec<u8>>) {
    let fixture = Fixture::with_initial_data(spec, kept).unwrap();
    let mut c = fixture.connect();
    let found = ["@@server_id", "@@innodb_page_size", "@@datadir"];
    let mut found = found.map(|name| value(c.as_mut(), &format!("SELECT {name}")));
    let data = std::mem::take(&mut found[2]);
    let databases = c.query("SHOW DATABASES").unwrap().into_iter().flatten().flatten();
    let found = found.into_iter().chain(databases).collect();
    let read = |file: &&str| std::fs::read(Path::new(&data).join(file)).expect(file);
    let files = files.iter().map(read).collect();
    drop(c);
    fixture.stop();
    (found, files)
}

#[test]
fn servers_begin_with_a_copy_of_initial_data() {
    let folder = mysql_server::open_folder();
    let check = |spec: &ServerSpec, own: &[&str], n_kept: usize| {
        let [(one, files), (other, others)] = [0, 1].map(|_| identity(spec, folder.path(), own));
        assert_eq!(one, other);
        for ((name, file), other) in own.iter().zip(files).zip(others) {
            assert!(file != other, "{name}");
        }
        let keeper = Arc::new(Keeper::new(folder.path()).unwrap());
        assert_eq!(DataSets::of(&keeper).list().unwrap().len(), n_kept);
    };
    check(&spec(&[]), &[], 1);
    check(&spec(&[("innodb_page_size", "8192"), ("max_connections", "20")]), &[], 2);
    check(&spec(&[("innodb_page_size", "8192"), ("max_connections", "30")]), &[], 2);
    let Some(programs) = mysql_server::mysql() else { return };
    let spec = ServerSpec { programs: Some(programs), ..ServerSpec::new("mysql") };
    check(&spec, &["auto.cnf", "server-cert.pem", "private_key.pem"], 3);
}

#[test]
fn mysql_keeps_every_type_and_character_set() {
    let Some(programs) = mysql_server::mysql() else { return };
    let spec = ServerSpec { programs: Some(programs), ..ServerSpec::new("mysql") };
    let fixture = Fixture::start(&spec);
    every_type::check(&fixture);
    fixture.stop();
}

#[test]
fn a_private_server_listens_nowhere_whatever_is_set() {
    let open = Fixture::try_start(&spec(&[("bind-addr", "0.0.0.0")])).err().unwrap();
    assert!(open.message.contains("make a private server reachable by others"), "{open}");
    let fixture = Fixture::start(&spec(&[("max_connections", "20")]));
    let pid = fixture.server().processes()[0];
    assert_eq!(dyno_host::listens_by_network(pid).unwrap(), Vec::<String>::new());
    assert_eq!(fixture.setting("skip_networking"), "ON");
    let mut root = fixture.connect();
    let accounts = "SELECT GROUP_CONCAT(User, '@', Host ORDER BY User) FROM mysql.user \
                    WHERE User NOT LIKE 'mariadb.%' AND User NOT LIKE 'mysql.%'";
    assert_eq!(value(root.as_mut(), accounts), "root@localhost");
    fixture.stop();
}

#[test]
fn a_server_that_is_killed_is_reported() {
    let fixture = Fixture::start(&spec(&[]));
    let pid = rustix::process::Pid::from_raw(fixture.server().processes()[0]).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let (_root, server) = fixture.into_server();
    let error = server.stop().unwrap_err();
    assert!(
        error.message.contains("did not shut down cleanly: it was ended by signal 9"),
        "{error}"
    );
}

#[test]
fn rocksdb_is_a_choice() {
    let fixture = Fixture::start(&ServerSpec { engine: Some("RocksDB".to_owned()), ..spec(&[]) });
    let mut c = fixture.connect();
    load(c.as_mut(), "rocks", 1000);
    let engine = "SELECT engine FROM information_schema.tables WHERE table_name = 'rocks'";
    assert_eq!(value(c.as_mut(), engine), "ROCKSDB");
    assert_eq!(fixture.server().facts().unwrap().durability.words, "every commit is synced");
    fixture.stop();
}
