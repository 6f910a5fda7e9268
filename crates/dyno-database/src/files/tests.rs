//! Files from start to stop, on a folder and, where there is one, in memory.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::task::Poll;

use dyno_host::Keeper;
use dyno_model::StepRequest;
use dyno_units::{Clock, ManualClock, Seed, SettingValue};
use dyno_workload::catalog::Catalog;
use dyno_workload::files::{FileCommand, FileSet};
use dyno_workload::{
    Connection, Reply, Row, Statement, StatementClass, StatementError, Value, Workload,
};

use super::connection::FileConnection;
use super::work::Shared;
use crate::{Place, Products, ServerSpec};

fn connection(folder: &Path) -> FileConnection {
    FileConnection::new(Arc::new(Shared::new(folder)))
}

const SET: FileSet = FileSet {
    first: 0,
    files: 2,
    size: 64 << 10,
    block: 4096,
    step: 4096,
    is_direct: false,
    is_synced: false,
    random: 512,
    seed: 5,
};

fn ask(connection: &mut dyn Connection, command: FileCommand) -> Result<(), StatementError> {
    connection.query(&command.to_string()).map(|_| ())
}

fn checked(connection: &mut dyn Connection, set: FileSet) -> [u64; 5] {
    let rows = connection.query(&FileCommand::Check(set).to_string()).unwrap();
    [0, 1, 2, 3, 4].map(|column| rows[0][column].as_ref().unwrap().parse().unwrap())
}

/// Makes and fills both files, and opens them on the same connection.
fn filled(connection: &mut dyn Connection, set: FileSet) {
    for first in 0..set.files {
        ask(connection, FileCommand::Make(FileSet { first, files: set.files - first, ..set }))
            .unwrap();
    }
    for file in 0..set.files {
        let mut block = 0;
        let mut next = |row: &mut Row| {
            row.push_integer(block);
            block += 1;
            block as u64 <= set.size / set.block
        };
        let n = connection.load_rows(&format!("file{file}"), &[], &mut next).unwrap();
        assert_eq!(n, set.size / set.block);
    }
    ask(connection, FileCommand::Settle(set)).unwrap();
    let commands = [
        FileCommand::Read,
        FileCommand::Write,
        FileCommand::Fsync,
        FileCommand::Fdatasync,
        FileCommand::Truncate,
    ];
    let statements = commands.map(|one| Statement::new(one.to_string(), StatementClass::Other));
    connection.prepare(&statements).unwrap();
    ask(connection, FileCommand::Open(set)).unwrap();
}

fn send(
    connection: &mut dyn Connection,
    statement: usize,
    values: &[i64],
) -> Result<Reply, StatementError> {
    let values: Vec<Value<'_>> = values.iter().map(|value| Value::Integer(*value)).collect();
    connection.send_execute(statement, &values);
    match connection.poll_reply() {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("files never wait"),
    }
}

#[test]
fn what_is_written_is_read_and_what_is_damaged_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let mut connection = connection(folder.path());
    let connection = &mut connection;
    filled(connection, SET);
    let [size, _, sectors, empty, wrong] = checked(connection, SET);
    assert_eq!([size, sectors, empty, wrong], [128 << 10, 256, 0, 0]);
    assert_eq!(send(connection, 0, &[1, 8192]).unwrap().rows, 1);
    assert_eq!(send(connection, 1, &[1, 8192]).unwrap().affected, 1);
    assert_eq!(send(connection, 2, &[1]).unwrap(), Reply::default());
    assert_eq!(send(connection, 3, &[0]).unwrap(), Reply::default());
    assert_eq!(send(connection, 0, &[1, 8192]).unwrap().rows, 1);
    assert_eq!(checked(connection, SET)[4], 0);

    let path = folder.path().join("file0");
    let mut bytes = fs::read(&path).unwrap();
    bytes[4096] ^= 1;
    bytes[20_000] ^= 1;
    bytes[32768..33280].fill(0);
    fs::write(&path, &bytes).unwrap();
    assert_eq!(checked(connection, SET)[3..], [1, 2]);
    let error = send(connection, 0, &[0, 4096]).unwrap_err();
    assert!(error.message.contains("does not contain what was written there"), "{error}");
    send(connection, 4, &[0]).unwrap();
    let error = send(connection, 0, &[0, 4096]).unwrap_err();
    assert!(error.message.contains("file0 ends at 4096"), "{error}");
    let error = send(connection, 0, &[9, 0]).unwrap_err();
    assert!(error.message.contains("file9 is not open"), "{error}");
    connection.send_text("ROLLBACK");
    assert_eq!(connection.poll_reply(), Poll::Ready(Ok(Reply::default())));
    connection.send_text("SELECT 1");
    assert!(matches!(connection.poll_reply(), Poll::Ready(Err(_))));
}

#[test]
fn a_file_that_is_begun_has_its_first_block() {
    let folder = tempfile::tempdir().unwrap();
    let mut connection = connection(folder.path());
    let set = FileSet { first: 3, files: 1, size: 512, block: 512, step: 512, ..SET };
    ask(&mut connection, FileCommand::Begin(set)).unwrap();
    assert_eq!(fs::metadata(folder.path().join("file3")).unwrap().len(), 512);
    let [size, _, sectors, empty, wrong] = checked(&mut connection, set);
    assert_eq!([size, sectors, empty, wrong], [512, 1, 0, 0]);
}

#[test]
fn what_cannot_be_is_refused_before_the_load() {
    // In memory, O_DIRECT may be of any size.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let mut connection = connection(folder.path());
    let connection = &mut connection;
    let message = |connection: &mut FileConnection, set: FileSet| {
        ask(connection, FileCommand::Make(set)).unwrap_err().message
    };
    let huge = message(connection, FileSet { size: 1 << 52, ..SET });
    assert!(
        huge.contains("they need 8192 TiB, but only ") && huge.contains(" are free in "),
        "{huge}"
    );
    assert!(huge.starts_with(super::product::REFUSED), "{huge}");
    // Data that compress may fit.
    ask(connection, FileCommand::Make(FileSet { size: 1 << 52, random: 16, ..SET })).unwrap();
    let direct = FileSet { is_direct: true, block: 1000, step: 1000, ..SET };
    match ask(connection, FileCommand::Make(direct)) {
        Err(error) => assert!(error.message.contains("set direct = false"), "{error}"),
        Ok(()) => eprintln!("skipped: {} takes any O_DIRECT", folder.path().display()),
    }
    fs::remove_dir_all(folder.path()).unwrap();
    fs::write(folder.path(), "a file").unwrap();
    let gone = message(connection, SET);
    fs::remove_file(folder.path()).unwrap();
    assert!(!gone.is_empty());
    assert!(connection.query("SELECT 1").unwrap_err().message.contains("is not an operation"));
}

fn spec() -> ServerSpec {
    ServerSpec::new("files")
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(ManualClock::new())
}

#[test]
fn files_are_made_and_removed_with_their_folder() {
    let root = tempfile::tempdir().unwrap();
    let keeper = Arc::new(Keeper::new(root.path()).unwrap());
    let place = Place::under(&keeper);
    let products = Products::built_in();
    let server = products.start(&spec(), &place, &clock()).unwrap();
    assert!(server.blocks_worker() && server.processes().is_empty());
    let facts = server.facts().unwrap();
    assert!(facts.in_process && facts.version.starts_with("Linux "), "{facts:?}");
    server.check_alive().unwrap();
    // What nothing was put into has no size that could change.
    assert_eq!(server.data_bytes(), Some(0));
    let mut connection = server.connector()().unwrap();
    filled(connection.as_mut(), FileSet { is_synced: true, ..SET });
    assert!(server.data_bytes().unwrap() >= 128 << 10);
    let folder = server.data_files().unwrap().root;
    drop(connection);
    server.stop().unwrap();
    assert!(!folder.exists());
    let left: Vec<_> = fs::read_dir(root.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn what_files_do_not_have_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let place = Place::under(&Arc::new(Keeper::new(root.path()).unwrap()));
    let products = Products::built_in();
    let settings = BTreeMap::from([("x".to_owned(), SettingValue::Integer(1))]);
    for (spec, expected) in [
        (ServerSpec { engine: Some("x".to_owned()), ..spec() }, "leave `engine` out"),
        (ServerSpec { cpus: vec![0], ..spec() }, "leave `cpus` out"),
        (ServerSpec { settings, ..spec() }, "leave `settings` out"),
        (ServerSpec { version: Some("1".to_owned()), ..spec() }, "is not available"),
    ] {
        let error = products.start(&spec, &place, &clock()).err().expect("it is refused");
        assert!(error.message.contains(expected), "{error}");
    }
    assert!(products.refused_setting("files", "x").is_some());
}

/// Makes the files of each mode of both workloads as a trial does, and prepares its statements.
#[test]
fn every_mode_can_be_filled_and_prepared() {
    let modes: [&[(&str, &str)]; 6] = [
        &[("direct", "off")],
        &[("direct", "off"), ("operation", "mixed"), ("sync", "dsync"), ("files", "3")],
        &[("direct", "off"), ("access", "sequential"), ("operation", "write")],
        &[("direct", "off"), ("block_size", "1000"), ("compress_ratio", "4")],
        &[],
        &[("alignment", "512"), ("block_size", "4KiB")],
    ];
    let catalog = Catalog::built_in();
    let spec = catalog.find("file-io").unwrap();
    for mode in modes {
        let given = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut options: BTreeMap<String, String> = mode.iter().map(given).collect();
        options.insert("total_size".to_owned(), "192KiB".to_owned());
        let workload = spec.plan(&options, StepRequest::LEAST, Seed(7)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut connection = connection(folder.path());
        if let Err(error) = fill(workload.as_ref(), &mut connection) {
            // Old kernels' filesystems in memory.
            assert!(error.message.contains("O_DIRECT"), "{mode:?}: {error}");
            eprintln!("skipped: {error}");
            continue;
        }
        let dialect = connection.dialect();
        let rows: u64 = workload.tables(dialect).iter().map(|table| table.rows).sum();
        let answer = connection.query(&workload.audit_queries(dialect)[0]).unwrap();
        let wrong = (answer[0][3].as_deref(), answer[0][4].as_deref());
        assert_eq!(wrong, (Some("0"), Some("0")), "{mode:?}");
        assert_eq!(rows > 0, answer[0][2].as_deref() != Some("0"), "{mode:?}");
        let (set_up, prepared): (Vec<Statement>, Vec<Statement>) =
            workload.statements(dialect).into_iter().partition(|statement| statement.is_set_up);
        connection.prepare(&prepared).unwrap();
        for statement in set_up {
            connection.query(&statement.sql).unwrap();
        }
        send(&mut connection, 1, &[0, 0]).unwrap();
        send(&mut connection, 0, &[0, 0]).unwrap();
    }
}

fn fill(workload: &dyn Workload, connection: &mut dyn Connection) -> Result<(), StatementError> {
    for (idx, table) in workload.tables(connection.dialect()).iter().enumerate() {
        connection.query(&table.create)?;
        let mut number = 0;
        let mut next = |row: &mut Row| {
            workload.fill_row(idx, number, row);
            number += 1;
            number <= table.rows
        };
        assert_eq!(connection.load_rows(&table.name, &table.columns, &mut next)?, table.rows);
        for sql in &table.after {
            connection.query(sql)?;
        }
    }
    Ok(())
}
