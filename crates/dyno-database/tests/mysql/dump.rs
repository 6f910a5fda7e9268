//! What is dumped and restored is the same, whatever the types of its columns.

use std::path::Path;

use dyno_database::{Dump, DumpOptions, Endpoint, Moved, dump, restore};
use dyno_workload::Connection;

use crate::mysql_server::{Fixture, user_name};
use crate::text;

const TABLES: &[&str] = &[
    "CREATE DATABASE source",
    "CREATE DATABASE target",
    "USE source",
    "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
    "CREATE TABLE kinds (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, t TEXT, b BLOB, \
     f FLOAT, d DOUBLE, n DECIMAL(20,5), bits BIT(12), at DATETIME(6), ts TIMESTAMP(3) NULL, y YEAR, \
     e ENUM('a','ü'), s SET('x','y'), j JSON, g GEOMETRY, u UUID, i INET6, \
     v INT AS (y + 1) VIRTUAL, p INT AS (y * 2) PERSISTENT, hidden INT INVISIBLE DEFAULT 5, \
     l VARCHAR(20) CHARACTER SET latin1, `odd ``name` INT, KEY by_t (t(10)), UNIQUE KEY by_u (u), \
     FULLTEXT KEY words (t)) CHARSET utf8mb4",
    "INSERT INTO kinds (t, b, f, d, n, bits, at, ts, y, e, s, j, g, u, i, hidden, l) VALUES \
     ('a\\tb\\nc\\\\d\\r''\"ü😀', 0x00ff09085c0a, 0.1, 0.1, 12345.67891, b'101010101010', \
     '2020-01-01 01:02:03.456789', '2021-06-01 12:00:00.123', 2021, 'ü', 'x,y', '{\"a\": \"\\\\n\"}', \
     ST_GeomFromText('POINT(1 2)'), UUID(), '::1', 6, 'café'), \
     (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
     NULL), \
     ('', '', 1e-30, 1e300, -0.00001, 0, '0001-01-01', '1970-01-02', 1901, 'a', '', 'null', NULL, \
     UUID(), NULL, NULL, 'ÿ')",
    "CREATE TABLE parent (a INT PRIMARY KEY)",
    "INSERT INTO parent VALUES (1), (2)",
    "CREATE TABLE child (a INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (a))",
    "INSERT INTO child VALUES (10, 1), (11, NULL)",
    "CREATE TABLE zero (a INT AUTO_INCREMENT PRIMARY KEY, b TEXT)",
    "INSERT INTO zero VALUES (0, 'zero'), (1, '')",
    "CREATE TABLE many (a INT AUTO_INCREMENT PRIMARY KEY, b BLOB, KEY by_b (b(5)))",
    "INSERT INTO many SELECT seq * 3, REPEAT(CHAR(seq MOD 256), seq MOD 100) FROM seq_1_to_5000",
    "CREATE TABLE keyless (a VARCHAR(10))",
    "INSERT INTO keyless VALUES (''), ('x'), (NULL)",
    "CREATE TABLE `empty one` (a INT)",
    "CREATE TABLE plain (a INT) ENGINE = MyISAM",
    "INSERT INTO plain VALUES (1)",
    "CREATE VIEW seen AS SELECT * FROM zero",
    "CREATE TRIGGER fired BEFORE INSERT ON zero FOR EACH ROW SET NEW.b = CONCAT(NEW.b, '!')",
    // Estimates of rows decide into how many files a table goes.
    "ANALYZE TABLE many",
];

const NAMES: [&str; 8] =
    ["kinds", "parent", "child", "zero", "many", "keyless", "empty one", "plain"];

pub(crate) fn check(fixture: &Fixture) {
    let mut root = fixture.connect();
    for sql in TABLES {
        root.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let endpoint = |catalog: &str| Endpoint {
        catalog: catalog.to_owned(),
        ..fixture.socket_endpoint(&user_name(), None)
    };
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("dump");
    let options = DumpOptions {
        folder: made.clone(),
        tables: Vec::new(),
        threads: 3,
        rows_per_file: 1000,
        is_synced: true,
    };
    let moved = Moved::default();
    let written = dump(&endpoint("source"), &options, &moved).unwrap();
    assert_eq!(written, Dump::open(&made).unwrap());
    assert_eq!((written.tables.len(), written.rows(), moved.rows()), (8, 5013, 5013));
    assert!(written.n_files() >= 6 + 4, "{} files", written.n_files());
    assert_eq!(
        written.notes,
        [
            "the rows of plain may be from another point in time than those of other tables: its \
             engine, MyISAM, \
             has no transactions",
            "the view seen is not in the dump",
            "1 trigger is not in the dump",
        ]
    );
    let error = dump(&endpoint("source"), &options, &moved).unwrap_err().0;
    assert!(error.contains("already exist"), "{error}");
    restored(root.as_mut(), &written, &made, &endpoint("target"));
    // A server that takes no files of clients is sent statements.
    text(root.as_mut(), "SET GLOBAL local_infile = OFF").unwrap();
    again(root.as_mut());
    restored(root.as_mut(), &written, &made, &endpoint("target"));
    text(root.as_mut(), "SET GLOBAL local_infile = ON").unwrap();
    refused(root.as_mut(), &options, &written, &endpoint);
    for sql in ["USE dyno", "DROP DATABASE source", "DROP DATABASE target"] {
        text(root.as_mut(), sql).unwrap();
    }
}

fn again(root: &mut dyn Connection) {
    for sql in ["DROP DATABASE target", "CREATE DATABASE target"] {
        text(root, sql).unwrap();
    }
}

/// Restores, and compares tables and definitions.
#[track_caller]
fn restored(root: &mut dyn Connection, written: &Dump, folder: &Path, target: &Endpoint) {
    let moved = Moved::default();
    restore(written, folder, target, 3, &moved).unwrap();
    assert_eq!((moved.rows(), moved.bytes()), (written.rows(), written.bytes()));
    for name in NAMES {
        let mut of = |catalog: &str| {
            let count = root.query(&format!("SELECT COUNT(*) FROM {catalog}.`{name}`")).unwrap();
            let sum = format!("CHECKSUM TABLE {catalog}.`{name}` EXTENDED");
            let sum = root.query(&sum).unwrap()[0][1].clone();
            let definition = format!("SHOW CREATE TABLE {catalog}.`{name}`");
            (count, sum, root.query(&definition).unwrap()[0][1].clone())
        };
        assert_eq!(of("target"), of("source"), "{name}");
    }
}

/// What cannot be dumped or restored.
fn refused(
    root: &mut dyn Connection,
    options: &DumpOptions,
    written: &Dump,
    endpoint: &dyn Fn(&str) -> Endpoint,
) {
    let folder = &options.folder;
    let moved = Moved::default();
    let check = |error: String, expected: &str| assert!(error.contains(expected), "{error}");
    let error = restore(written, folder, &endpoint("target"), 2, &moved).unwrap_err().0;
    check(error, "the table `child` already exists");
    let unknown = DumpOptions {
        folder: folder.with_extension("2"),
        tables: vec!["nothing".to_owned()],
        ..options.clone()
    };
    let error = dump(&endpoint("source"), &unknown, &moved).unwrap_err().0;
    check(error, "the database has no table `nothing`");
    assert!(!unknown.folder.exists(), "what is not complete is removed");
    again(root);
    let other = DumpOptions { tables: Vec::new(), ..unknown };
    check(dump(&endpoint("target"), &other, &moved).unwrap_err().0, "the database has no tables");
    // A file that was changed afterwards, at its size: its rows are not stored.
    let file = folder.join("zero.00001.tsv");
    let bytes = std::fs::read(&file).unwrap();
    let changed: Vec<u8> = bytes.iter().map(|&b| if b == b'z' { b'Z' } else { b }).collect();
    std::fs::write(&file, changed).unwrap();
    let error = restore(written, folder, &endpoint("target"), 2, &moved).unwrap_err().0;
    check(error.clone(), "zero.00001.tsv: the file is damaged");
    check(error, "what was restored so far is left in place, in child, ");
    let rows = root.query("SELECT COUNT(*) FROM target.zero").unwrap();
    assert_eq!(rows[0][0].as_deref(), Some("0"));
}
