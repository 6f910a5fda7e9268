//! SQLite's probes.

use crate::server::Running;
use crate::{check_there, read};

#[test]
fn pages_and_wal_are_seen() {
    let server = Running::start("sqlite", None, &[("journal_mode", "wal")]);
    let mut writer = server.connect();
    writer.query("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)").unwrap();
    let mut probes = server.server().probes();
    let first = read(&mut probes, [1]).remove(0);
    for n in 0..50 {
        writer.query(&format!("INSERT INTO t VALUES ({n}, hex(zeroblob(2000)))")).unwrap();
    }
    let second = read(&mut probes, [2]).remove(0);
    check_there(&second, &["sqlite.database_bytes", "sqlite.free_pages", "debt.gauge"]);
    assert!(second["sqlite.pages"] > first["sqlite.pages"] + 40.0);
    assert!(second["sqlite.wal_growth_bytes_per_s"] > 50.0 * 4000.0);
    assert!(second["sqlite.wal_frames"] >= 50.0);
    // Nobody has checkpointed them: the automatic one comes at a thousand.
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
    let readings = &read(&mut server.server().probes(), [1])[0];
    check_there(readings, &["sqlite.database_bytes", "sqlite.pages"]);
    assert!(!readings.keys().any(|name| name.contains("wal") || name.starts_with("debt.")));
    assert!(server.server().debt_meter().unwrap().read().unwrap().is_paid());
}
