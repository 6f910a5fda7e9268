//! The probes of SQLite on real files.

use dyno_database::sql_probe;
use dyno_units::Nanoseconds;

use crate::server::Running;
use crate::{check_there, read};

#[test]
fn a_locked_database_reports_its_size() {
    let server = Running::start("sqlite", None, &[]);
    let mut writer = server.connect();
    writer.query("CREATE TABLE t (id INTEGER PRIMARY KEY)").unwrap();
    writer.query("BEGIN EXCLUSIVE").unwrap();
    let readings = &read(&mut server.server().probes(None), [1])[0];
    check_there(readings, &["sqlite.database_bytes"]);
    assert!(!readings.contains_key("sqlite.pages"), "{readings:?}");
    writer.query("ROLLBACK").unwrap();
    check_there(&read(&mut server.server().probes(None), [2])[0], &["sqlite.pages"]);
}

#[test]
fn pages_and_wal_are_seen() {
    let server = Running::start("sqlite", None, &[("journal_mode", "wal")]);
    let mut writer = server.connect();
    writer.query("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)").unwrap();
    let mut probes = server.server().probes(None);
    let first = read(&mut probes, [1]).remove(0);
    for n in 0..50 {
        writer.query(&format!("INSERT INTO t VALUES ({n}, hex(zeroblob(2000)))")).unwrap();
    }
    let second = read(&mut probes, [2]).remove(0);
    check_there(&second, &["sqlite.database_bytes", "sqlite.free_pages", "debt.gauge"]);
    assert!(second["sqlite.pages"] > first["sqlite.pages"] + 40.0);
    assert!(second["sqlite.wal_growth_bytes_per_s"] > 50.0 * 4000.0);
    assert!(second["sqlite.wal_frames"] >= 50.0);
    // They have not been checkpointed: the automatic one comes at a thousand.
    assert_eq!(second["sqlite.wal_frames_pending"], second["debt.wal_frames"]);
    assert!(second["debt.wal_frames"] >= 50.0);
    assert_eq!(second["debt.gauge"], second["debt.wal_frames"] / 1000.0);
    // Reading it changed nothing.
    assert_eq!(read(&mut probes, [3])[0]["sqlite.wal_frames"], second["sqlite.wal_frames"]);
}

#[test]
fn without_a_wal_nothing_is_put_off() {
    let server = Running::start("sqlite", None, &[("journal_mode", "delete")]);
    server.run(&["CREATE TABLE t (id INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (1)"]);
    let readings = &read(&mut server.server().probes(None), [1])[0];
    check_there(readings, &["sqlite.database_bytes", "sqlite.pages"]);
    assert!(!readings.keys().any(|name| name.contains("wal") || name.starts_with("debt.")));
    assert!(server.server().debt_meter().unwrap().read().unwrap().is_caught_up());
}

#[test]
fn failures_of_the_users_own_statement_are_counted_and_reported_once() {
    let server = Running::start("sqlite", None, &[]);
    let connector = server.server().connector();
    let every = Nanoseconds::from_secs(2);
    let check = |sql: &str, n_failed: f64, expected: &str| {
        let mut probes = vec![sql_probe(connector.clone(), "mine", sql, every)];
        assert_eq!((probes[0].name(), probes[0].every()), ("probe.mine", every));
        let readings = read(&mut probes, [1, 3, 5]).remove(2);
        assert_eq!(readings["probe.mine.failures"], n_failed, "{sql}");
        let notes = probes[0].take_notes();
        assert_eq!(notes.len(), usize::from(n_failed > 0.0), "{notes:?}");
        assert!(notes.iter().all(|note| note.contains(expected)), "{notes:?}");
        assert!(probes[0].take_notes().is_empty());
    };
    check("SELECT 1 AS one", 0.0, "");
    // It is not asked again so soon, and is counted all the same: there was no reading.
    check("SELECT x FROM no_such_table", 3.0, "no_such_table");
    check("SELECT 'text' AS word", 3.0, "neither rows of a name and a number");
    check("SELECT 1 AS one WHERE 1 = 0", 3.0, "neither");
}

#[test]
fn a_users_statement_that_was_wrong_is_read_when_it_is_right() {
    let server = Running::start("sqlite", None, &[]);
    let sql = "SELECT count(*) AS n FROM late";
    let connector = server.server().connector();
    let mut probes = vec![sql_probe(connector, "mine", sql, Nanoseconds::SECOND)];
    let before = read(&mut probes, [1]).remove(0);
    assert_eq!((before.get("probe.mine.n"), before["probe.mine.failures"]), (None, 1.0));
    server.run(&["CREATE TABLE late (id INTEGER PRIMARY KEY)"]);
    let after = read(&mut probes, [90]).remove(0);
    assert_eq!((after["probe.mine.n"], after["probe.mine.failures"]), (0.0, 1.0));
}
