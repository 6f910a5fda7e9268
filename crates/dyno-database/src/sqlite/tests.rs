//! SQLite from start to stop, with the sysbench scripts.

mod transactions;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Poll;

use dyno_host::{FolderElsewhere, Keeper, Storage};
use dyno_model::{OptionKind, OptionSpec, StepRequest, names};
use dyno_units::{Clock, ManualClock, Seed, SettingValue};
use dyno_workload::catalog::Catalog;
use dyno_workload::{
    Connection, ErrorClass, Reply, Row, Statement, StatementClass, StatementError, Target, Value,
    Workload,
};

use super::pragma;
use super::server::Database;
use crate::settings::GivenSettings;
use crate::{DeployError, Place, Products, Server, ServerSpec};

fn settings(pairs: &[(&str, &str)]) -> GivenSettings {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), SettingValue::Text((*value).to_owned())))
        .collect()
}

/// A database in a folder that vanishes with the test.
fn database(pairs: &[(&str, &str)]) -> (tempfile::TempDir, Database) {
    let folder = tempfile::tempdir().unwrap();
    let pragmas = pragma::from_settings(&settings(pairs)).unwrap();
    let database = Database::create(folder.path(), pragmas).unwrap();
    (folder, database)
}

fn text(connection: &mut dyn Connection, sql: &str) -> Result<Reply, StatementError> {
    connection.send_text(sql);
    reply(connection)
}

fn reply(connection: &mut dyn Connection) -> Result<Reply, StatementError> {
    match connection.poll_reply() {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("SQLite never waits"),
    }
}

fn statement(sql: &str) -> Statement {
    Statement::new(sql, StatementClass::Read)
}

#[test]
fn statements_return_rows_and_report_what_they_changed() {
    let (_folder, database) = database(&[]);
    let mut connection = database.connector()().unwrap();
    let connection = connection.as_mut();
    text(connection, "CREATE TABLE t (id INTEGER PRIMARY KEY, x REAL, s TEXT)").unwrap();
    let insert = statement("INSERT INTO t VALUES (?, ?, ?)");
    connection.prepare(&[insert, statement("SELECT s FROM t WHERE id >= ?")]).unwrap();
    let values = [Value::Integer(1), Value::Real(0.5), Value::Text(b"one")];
    connection.send_execute(0, &values);
    assert_eq!(reply(connection).unwrap(), Reply { affected: 1, ..Reply::default() });
    connection.send_execute(0, &[Value::Integer(2), Value::Null, Value::Null]);
    reply(connection).unwrap();
    connection.send_execute(1, &[Value::Integer(0)]);
    assert_eq!(reply(connection).unwrap(), Reply { rows: 2, ..Reply::default() });
    // BEGIN changes nothing, whatever was changed before it.
    assert_eq!(text(connection, "BEGIN").unwrap(), Reply::default());
    assert_eq!(text(connection, "DELETE FROM t").unwrap().affected, 2);
    assert_eq!(text(connection, "ROLLBACK").unwrap(), Reply::default());
    let one = |text: &str| Some(text.to_owned());
    let rows = connection.query("SELECT id, x, s FROM t ORDER BY id").unwrap();
    assert_eq!(rows, [vec![one("1"), one("0.5"), one("one")], vec![one("2"), None, None]]);
}

#[test]
fn rows_are_kept_where_the_statement_wants_it() {
    let (_folder, database) = database(&[]);
    let mut connection = database.connector()().unwrap();
    let c = connection.as_mut();
    c.prepare(&[
        statement("SELECT ?1, 2.5, NULL, 'x' UNION ALL SELECT ?1 + 1, 3, 4, 'yz'").keeping_rows(),
        statement("SELECT 9"),
    ])
    .unwrap();
    c.send_execute(0, &[Value::Integer(7)]);
    assert_eq!(reply(c).unwrap().rows, 2);
    let rows = c.kept_rows();
    assert_eq!((rows.n_rows(), rows.integer(0, 0), rows.integer(1, 0)), (2, Some(7), Some(8)));
    assert_eq!((rows.real(0, 1), rows.is_null(0, 2)), (Some(2.5), true));
    assert_eq!(rows.text(1, 3), Some(&b"yz"[..]));
    c.send_execute(1, &[]);
    assert_eq!(reply(c).unwrap().rows, 1);
    c.send_execute(0, &[Value::Integer(1)]);
    assert!(reply(c).is_ok());
    assert_eq!(c.kept_rows().integer(0, 0), Some(1));
}

#[test]
fn a_rollback_without_a_transaction_is_no_error() {
    let (_folder, database) = database(&[]);
    let mut connection = database.connector()().unwrap();
    assert!(text(connection.as_mut(), "ROLLBACK").is_ok());
    text(connection.as_mut(), "BEGIN").unwrap();
    assert!(text(connection.as_mut(), "ROLLBACK").is_ok());
    assert!(text(connection.as_mut(), "COMMIT").is_err());
}

#[track_caller]
fn check_error(result: Result<Reply, StatementError>, class: ErrorClass, code: &str) {
    let error = result.unwrap_err();
    assert_eq!((error.class, error.code.as_str()), (class, code), "{error}");
}

#[test]
fn errors_have_their_class() {
    let (_folder, database) = database(&[("journal_mode", "wal"), ("busy_timeout", "0")]);
    let connect = database.connector();
    let (mut first, mut second) = (connect().unwrap(), connect().unwrap());
    let (first, second) = (first.as_mut(), second.as_mut());
    text(first, "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER CHECK (n > 0))").unwrap();
    text(first, "INSERT INTO t VALUES (1, 1)").unwrap();
    let duplicate = text(first, "INSERT INTO t VALUES (1, 1)");
    check_error(duplicate, ErrorClass::DuplicateKey, "SQLITE_CONSTRAINT_PRIMARYKEY");
    assert_eq!(text(first, "UPDATE t SET n = 0").unwrap_err().class, ErrorClass::Refused);
    assert_eq!(text(first, "SELEKT 1").unwrap_err().class, ErrorClass::Refused);

    text(first, "BEGIN").unwrap();
    text(first, "UPDATE t SET n = 2").unwrap();
    check_error(text(second, "UPDATE t SET n = 3"), ErrorClass::LockTimeout, "SQLITE_BUSY");
    // A reader that wants to write after another has written: no waiting would help.
    text(second, "BEGIN").unwrap();
    text(second, "SELECT * FROM t").unwrap();
    text(first, "COMMIT").unwrap();
    let late = text(second, "UPDATE t SET n = 3");
    check_error(late, ErrorClass::Serialization, "SQLITE_BUSY_SNAPSHOT");
    text(second, "ROLLBACK").unwrap();
    text(second, "UPDATE t SET n = 3").unwrap();
}

#[test]
fn a_reply_without_a_statement_is_an_error() {
    let mut connection = super::connection_in_memory().unwrap();
    assert_eq!(reply(connection.as_mut()).unwrap_err().code, "SQLITE_MISUSE");
}

#[test]
fn every_connection_has_the_settings() {
    let pairs = [
        ("journal_mode", "WAL"),
        ("synchronous", "NORMAL"),
        ("page_size", "8192"),
        ("cache_size", "-3000"),
        ("wal_autocheckpoint", "250"),
    ];
    let (_folder, database) = database(&pairs);
    let facts = &database.facts;
    assert_eq!(facts.durability.words, "synced at checkpoints");
    assert_eq!(facts.settings["synchronous"], "normal");
    assert_eq!(facts.settings["busy_timeout"], "5000");
    let connect = database.connector();
    let (mut first, mut second) = (connect().unwrap(), connect().unwrap());
    for connection in [first.as_mut(), second.as_mut()] {
        for (name, value) in [
            ("journal_mode", "wal"),
            ("synchronous", "1"),
            ("page_size", "8192"),
            ("cache_size", "-3000"),
            ("wal_autocheckpoint", "250"),
            ("busy_timeout", "5000"),
        ] {
            let rows = connection.query(&format!("PRAGMA {name}")).unwrap();
            assert_eq!(rows[0][0].as_deref(), Some(value), "{name}");
        }
    }
}

#[test]
fn an_exclusive_database_lets_one_client_in() {
    let pairs = [("locking_mode", "exclusive"), ("journal_mode", "wal"), ("busy_timeout", "0")];
    let (_folder, database) = database(&pairs);
    let connect = database.connector();
    let mut first = connect().unwrap();
    text(first.as_mut(), "CREATE TABLE t (id INTEGER)").unwrap();
    let error = connect().err().unwrap();
    assert!(error.reason.contains("locked"), "{error}");
    assert_eq!(database.facts.settings["locking_mode"], "exclusive");
    drop(first);
    connect().unwrap();
}

/// Makes, fills and finishes the tables of a workload.
fn populate(workload: &dyn Workload, connection: &mut dyn Connection) -> u64 {
    let mut n_rows = 0;
    for (table_idx, table) in workload.tables(connection.dialect()).into_iter().enumerate() {
        connection.query(&table.create).unwrap();
        let mut numbers = 0..table.rows;
        let mut next_row = |row: &mut Row| {
            numbers.next().map(|number| workload.fill_row(table_idx, number, row)).is_some()
        };
        if table.rows > 0 {
            n_rows += connection.load_rows(&table.name, &table.columns, &mut next_row).unwrap();
        }
        for sql in &table.after {
            connection.query(sql).unwrap();
        }
    }
    n_rows
}

#[test]
fn every_workload_can_be_populated_and_prepared() {
    let given = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let small = [given("tables", "2"), given("table_size", "500")];
    let catalog = Catalog::built_in();
    let all = catalog.workloads().iter().filter(|spec| spec.target == Target::Sql);
    for spec in all {
        let is_count = |option: &&OptionSpec| matches!(option.kind, OptionKind::Count);
        let has =
            |name: &str| spec.options.iter().filter(is_count).any(|option| option.name == name);
        let options: BTreeMap<_, _> = small.iter().filter(|(name, _)| has(name)).cloned().collect();
        let request = StepRequest { clients: 2, ..StepRequest::LEAST };
        let workload = spec.plan(&options, request, Seed(7)).unwrap();
        let (_folder, database) = database(&[("journal_mode", "wal")]);
        let mut connection = database.connector()().unwrap();
        let n_rows = populate(workload.as_ref(), connection.as_mut());
        let n_expected: u64 =
            workload.tables(connection.dialect()).iter().map(|table| table.rows).sum();
        assert_eq!(n_rows, n_expected, "{}", spec.name);
        connection.prepare(&workload.statements(connection.dialect())).unwrap();
        assert!(database.bytes() > 0);
    }
}

#[test]
fn row_filter_passes_one_row_of_every_range() {
    let options = ["range_size", "table_size"].map(|name| (name.to_owned(), "50".to_owned()));
    let mut options = BTreeMap::from(options);
    options.insert("row_filter".to_owned(), "on".to_owned());
    options.insert("table_size".to_owned(), "400".to_owned());
    let catalog = Catalog::built_in();
    let spec = catalog.find("oltp_read_only").unwrap();
    let workload = spec.plan(&options, StepRequest::LEAST, Seed(7)).unwrap();
    let (_folder, database) = database(&[]);
    let mut connection = database.connector()().unwrap();
    populate(workload.as_ref(), connection.as_mut());
    let statements = workload.statements(connection.dialect());
    connection.prepare(&statements).unwrap();
    let scan = statements.iter().position(|statement| statement.sql.contains("BETWEEN")).unwrap();
    for first in 1..=351 {
        connection.send_execute(scan, &[Value::Integer(first), Value::Integer(first + 49)]);
        assert_eq!(reply(connection.as_mut()).unwrap().rows, 1, "from {first}");
    }
}

#[test]
fn a_fill_that_fails_leaves_no_transaction_open() {
    let (_folder, database) = database(&[]);
    let mut connection = database.connector()().unwrap();
    let connection = connection.as_mut();
    text(connection, "CREATE TABLE t (id INTEGER PRIMARY KEY)").unwrap();
    let error = connection
        .load_rows("t", &names(&["id"]), &mut |row: &mut Row| {
            row.push_integer(1);
            true
        })
        .unwrap_err();
    assert_eq!(error.class, ErrorClass::DuplicateKey);
    text(connection, "BEGIN").unwrap();
    let rows = connection.query("SELECT count(*) FROM t").unwrap();
    assert_eq!(rows[0][0].as_deref(), Some("0"));
}

fn spec(pairs: &[(&str, &str)]) -> ServerSpec {
    ServerSpec { settings: settings(pairs), ..ServerSpec::new("sqlite") }
}

fn start(spec: &ServerSpec) -> Result<(), DeployError> {
    let root = tempfile::tempdir().unwrap();
    let keeper = Arc::new(Keeper::new(root.path()).unwrap());
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new());
    let server = Products::built_in().start(spec, &Place::under(&keeper), &clock)?;
    assert!(server.blocks_worker() && server.processes().is_empty());
    assert!(server.data_bytes().unwrap() > 0);
    let facts = server.facts().unwrap();
    assert_eq!((facts.product.as_str(), facts.transport), ("SQLite", "in process"));
    server.connector()().unwrap();
    server.stop().unwrap();
    Ok(())
}

#[test]
fn a_server_starts_and_stops() {
    start(&spec(&[("journal_mode", "wal")])).unwrap();
    let version = rusqlite::version()[..2].to_owned();
    start(&ServerSpec { version: Some(version), ..spec(&[]) }).unwrap();
}

#[test]
fn what_cannot_be_had_is_refused() {
    let check = |spec: ServerSpec, expected: &str| {
        let message = start(&spec).unwrap_err().message;
        assert!(message.contains(expected), "{message}");
    };
    check(spec(&[("shared_buffers", "1")]), "has no setting `shared_buffers`");
    check(spec(&[("page_size", "1000")]), "page_size = 1000");
    check(
        ServerSpec { version: Some("2.".to_owned()), ..spec(&[]) },
        "version 2. is not available",
    );
    check(ServerSpec { engine: Some("InnoDB".to_owned()), ..spec(&[]) }, "engine `InnoDB`");
    check(ServerSpec { cpus: vec![1], ..spec(&[]) }, "cpus");
}

#[test]
fn data_live_in_the_place_and_move_between_filesystems() {
    let roots = [tempfile::tempdir().unwrap(), other_filesystem()];
    let [here, there] = roots.each_ref().map(|root| Arc::new(Keeper::new(root.path()).unwrap()));
    let storage: Arc<dyn Storage> = Arc::new(FolderElsewhere::make(&there).unwrap());
    let place = Place::on(&here, storage);
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new());
    let products = Products::built_in();
    let spec = spec(&[]);

    let server = products.start(&spec, &place, &clock).unwrap();
    let data = server.data_files().unwrap().root;
    assert!(data.starts_with(there.root()), "{}", data.display());
    let query = |server: &dyn Server, sql: &str| server.connector()().unwrap().query(sql).unwrap();
    query(server.as_ref(), "CREATE TABLE t (a)");
    query(server.as_ref(), "INSERT INTO t VALUES (7)");
    let staging = here.make_folder("staging").unwrap();
    server.stop_and_keep_data(&staging.join("data")).unwrap();
    assert!(!data.exists());

    let server = products.start_on(&staging.join("data"), &spec, &place, &clock).unwrap();
    assert_eq!(query(server.as_ref(), "SELECT a FROM t")[0][0].as_deref(), Some("7"));
    server.stop().unwrap();
    here.remove_folder(&staging).unwrap();
    place.release().unwrap();
    for keeper in [here, there] {
        assert_eq!(std::fs::read_dir(keeper.root()).unwrap().count(), 0);
    }
}

/// A folder on another filesystem, if this machine has one for everybody.
fn other_filesystem() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

#[test]
fn a_writer_does_not_keep_the_debt_from_being_read() {
    for (journal, n_parts) in [("delete", 0), ("wal", 1)] {
        let (_folder, database) = database(&[("journal_mode", journal), ("busy_timeout", "0")]);
        let mut writer = database.connector()().unwrap();
        text(writer.as_mut(), "BEGIN EXCLUSIVE").unwrap();
        let mut meter = super::debt::meter(database.connector(), database.has_wal());
        assert_eq!(meter.read().unwrap().parts.len(), n_parts, "{journal}");
    }
}
