//! Debt rises under writes and falls after settling.

use dyno_database::{Debt, DebtMeter};
use dyno_units::Nanoseconds;

use crate::server::{Running, clock};

fn part(debt: &Debt, reading: &str) -> f64 {
    let found = debt.parts.iter().find(|part| part.reading == reading);
    found.unwrap_or_else(|| panic!("no {reading} in {debt:?}")).value
}

/// Reads until the engine has caught up; how long that may take is far more than it does.
fn wait_until_caught_up(meter: &mut dyn DebtMeter) -> Debt {
    let clock = clock();
    let until = Nanoseconds::from_secs(60);
    loop {
        let debt = meter.read().unwrap();
        if debt.is_caught_up() {
            return debt;
        }
        assert!(clock.now() < until, "still behind: {debt:?}");
        clock.sleep_until(clock.now() + Nanoseconds::from_millis(50));
    }
}

fn setting(server: &Running, name: &str) -> String {
    server.server().facts().unwrap().settings[name].clone()
}

#[test]
fn innodb_pays_its_dirty_pages() {
    // Nothing is flushed before it has to be, not even while nothing else is done.
    let settings = [
        ("innodb_max_dirty_pages_pct", "90"),
        ("innodb_max_dirty_pages_pct_lwm", "80"),
        ("innodb_adaptive_flushing", "OFF"),
        ("innodb_idle_flush_pct", "0"),
        ("innodb_buffer_pool_size", "32M"),
    ];
    let server = Running::start("mariadb", None, &settings);
    let mut meter = server.server().debt_meter().unwrap();
    server.run(&[
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, c TEXT)",
        "INSERT INTO t (c) SELECT REPEAT('x', 200) FROM seq_1_to_20000",
        "UPDATE t SET c = REPEAT('y', 200)",
    ]);
    let owed = meter.read().unwrap();
    assert!(part(&owed, "debt.dirty_pages_percent") > 5.0, "{owed:?}");
    assert!(!owed.is_caught_up());

    let done = meter.begin_settling(&["t".to_owned()]).unwrap();
    assert!(done[0].starts_with("ANALYZE TABLE t"), "{done:?}");
    assert!(done.iter().any(|line| line.contains("innodb_max_dirty_pages_pct")), "{done:?}");
    assert_eq!(setting(&server, "innodb_max_dirty_pages_pct"), "0.500000");
    let settled = wait_until_caught_up(meter.as_mut());
    assert!(part(&settled, "debt.dirty_pages_percent") <= 1.0);
    meter.end_settling().unwrap();
    assert_eq!(setting(&server, "innodb_max_dirty_pages_pct"), "90.000000");
    assert_eq!(setting(&server, "innodb_max_dirty_pages_pct_lwm"), "80.000000");
    // Once more is none too many.
    meter.end_settling().unwrap();
}

#[test]
fn innodb_gets_its_settings_back_from_whoever_fails() {
    let server = Running::start("mariadb", None, &[("innodb_max_dirty_pages_pct", "75")]);
    let mut meter = server.server().debt_meter().unwrap();
    let error = meter.begin_settling(&["no_such_table".to_owned()]).unwrap_err();
    assert!(error.contains("no_such_table"), "{error}");
    meter.end_settling().unwrap();
    assert_eq!(setting(&server, "innodb_max_dirty_pages_pct"), "75.000000");
    meter.begin_settling(&[]).unwrap();
    assert_eq!(setting(&server, "innodb_max_dirty_pages_pct"), "0.500000");
    drop(meter);
    assert_eq!(setting(&server, "innodb_max_dirty_pages_pct"), "75.000000");

    server.run(&["CREATE USER weak@localhost", "GRANT ALL ON dyno.* TO weak@localhost"]);
    let weak = server.endpoint("weak");
    let mut weak = weak.protocol.debt_meter(&weak).unwrap();
    let error = weak.begin_settling(&[]).unwrap_err();
    assert!(error.contains("SET GLOBAL") && error.contains("grant"), "{error}");
    let error = weak.read().unwrap_err();
    assert!(error.contains("SHOW ENGINE INNODB STATUS"), "{error}");
}

#[test]
fn rocksdb_pays_its_files_of_level_0() {
    let server = Running::start("mariadb", Some("RocksDB"), &[]);
    let mut meter = server.server().debt_meter().unwrap();
    server.run(&["CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, c TEXT) ENGINE=RocksDB"]);
    server.run(&["INSERT INTO t (c) SELECT REPEAT('x', 200) FROM seq_1_to_3000"]);
    let owed = meter.read().unwrap();
    assert!(part(&owed, "debt.memtable_bytes") > 600_000.0, "{owed:?}");
    let done = meter.begin_settling(&["t".to_owned()]).unwrap();
    assert!(done.iter().any(|line| line.contains("lzero_now")), "{done:?}");
    let settled = meter.read().unwrap();
    assert!(part(&settled, "debt.memtable_bytes") < 100_000.0, "{settled:?}");
    assert_eq!(part(&settled, "debt.pending_compaction_bytes"), 0.0);
    assert!(part(&settled, "debt.l0_files") <= 3.0);
    meter.end_settling().unwrap();
}

#[test]
fn postgresql_pays_dead_rows_and_the_checkpoint() {
    let server = Running::start("postgresql", None, &[("autovacuum", "off")]);
    let mut meter = server.server().debt_meter().unwrap();
    server.run(&[
        "CREATE TABLE t (id int PRIMARY KEY, v text)",
        "INSERT INTO t SELECT n, repeat('x', 500) FROM generate_series(1, 20000) n",
        "UPDATE t SET v = repeat('y', 500)",
        // By the connection that has changed them: what another one has counted comes when it ends.
        "SELECT pg_stat_force_next_flush()",
    ]);
    let owed = meter.read().unwrap();
    assert!(part(&owed, "debt.dead_tuples") >= 20_000.0, "{owed:?}");
    assert!(part(&owed, "debt.checkpoint_distance") > 20e6, "{owed:?}");
    assert!(!owed.is_caught_up());
    let done = meter.begin_settling(&["t".to_owned()]).unwrap();
    assert_eq!(done.last().map(String::as_str), Some("CHECKPOINT"));
    let settled = wait_until_caught_up(meter.as_mut());
    assert!(part(&settled, "debt.dead_tuples") < 100.0, "{settled:?}");
    meter.end_settling().unwrap();
}

#[test]
fn sqlite_pays_its_wal() {
    let settings = [("journal_mode", "wal"), ("wal_autocheckpoint", "20")];
    let server = Running::start("sqlite", None, &settings);
    let mut meter = server.server().debt_meter().unwrap();
    // A reader keeps the WAL from being checkpointed.
    let mut reader = server.connect();
    server.run(&["CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)"]);
    reader.query("BEGIN").unwrap();
    reader.query("SELECT COUNT(*) FROM t").unwrap();
    let mut writer = server.connect();
    for n in 0..40 {
        writer.query(&format!("INSERT INTO t VALUES ({n}, hex(zeroblob(2000)))")).unwrap();
    }
    let owed = meter.read().unwrap();
    assert!(part(&owed, "debt.wal_frames") >= 40.0, "{owed:?}");
    assert!(!owed.is_caught_up());
    reader.query("ROLLBACK").unwrap();
    let done = meter.begin_settling(&["t".to_owned()]).unwrap();
    assert_eq!(done, ["ANALYZE t", "PRAGMA wal_checkpoint(TRUNCATE)"]);
    assert_eq!(part(&meter.read().unwrap(), "debt.wal_frames"), 0.0);
}
