//! The probes of PostgreSQL against a real server.

use crate::server::Running;
use crate::{check_there, read};

#[test]
fn statistics_sessions_and_tables_are_seen() {
    let server = Running::start("postgresql", None, &[("max_prepared_transactions", "2")]);
    server.run(&[
        "CREATE TABLE t (id int PRIMARY KEY, v text)",
        "INSERT INTO t SELECT n, repeat('x', 50) FROM generate_series(1, 5000) n",
    ]);
    let mut probes = server.server().probes(None);
    let first = &read(&mut probes, [1])[0];
    assert!(!first.contains_key("pg.commits_per_s"));

    // Somebody keeps a snapshot and a lock, somebody waits for the lock, others write.
    let mut holder = server.connect();
    holder.query("BEGIN ISOLATION LEVEL REPEATABLE READ").unwrap();
    holder.query("UPDATE t SET v = 'held' WHERE id = 1").unwrap();
    let mut waiter = server.connect();
    waiter.send_text("UPDATE t SET v = 'waits' WHERE id = 1");
    let mut flush = server.connect();
    let mut is_waiting = || {
        let waits = flush.query("SELECT 1 FROM pg_locks WHERE NOT granted").unwrap();
        !waits.is_empty()
    };
    while !is_waiting() {}
    server.run(&["BEGIN", "INSERT INTO t VALUES (-1, '')", "PREPARE TRANSACTION 'p'"]);
    for n in 0..20 {
        server.run(&[&format!("UPDATE t SET v = 'y{n}' WHERE id > 4990")]);
    }
    flush.query("SELECT pg_stat_force_next_flush()").unwrap();

    let readings = &read(&mut probes, [12])[0];
    check_there(
        readings,
        &[
            "pg.commits_per_s",
            "pg.block_hit_percent",
            "pg.wal_bytes_per_s",
            "pg.wal_inserted_bytes_per_s",
            "pg.checkpoint_distance_bytes",
            "pg.checkpoint_distance_percent",
            "pg.checkpoints_timed_per_s",
            "pg.buffers_allocated_per_s",
            "pg.sessions_active",
            "pg.horizon_age.slot",
            "pg.dead_tuples",
            "pg.autovacuums_per_s",
            "pg.inserted_since_vacuum",
            "pg.vacuum.running",
            "pg.table.t.dead_tuples",
            "pg.table.t.bytes",
            "pg.freeze_age",
            "pg.uptime_s",
            "debt.dead_tuples",
            "debt.horizon_age",
            "debt.checkpoint_distance",
            "debt.gauge",
        ],
    );
    assert_eq!(readings["pg.lock_waits"], 1.0);
    assert_eq!(readings["pg.waiting.Lock"], 1.0);
    assert_eq!(readings["pg.sessions_idle_in_transaction"], 1.0);
    assert_eq!(readings["pg.prepared_transactions"], 1.0);
    // Twenty transactions came after the snapshot.
    assert!(readings["pg.horizon_age.backend"] >= 20.0, "{readings:?}");
    assert!(readings["pg.horizon_age.prepared"] >= 20.0);
    assert_eq!(readings["pg.horizon_age.slot"], 0.0);
    assert!(readings["pg.horizon_age"] >= readings["pg.horizon_age.backend"]);
    assert!(readings["pg.wal_inserted_bytes_per_s"] > 0.0);
    // 16 has pg_stat_io, 15 has not: a missing reading, and no failure.
    let facts = server.server().facts().unwrap();
    let has_io = readings.keys().any(|name| name.starts_with("pg.io."));
    assert_eq!(has_io, !facts.version.starts_with("15"));

    holder.query("ROLLBACK").unwrap();
    server.run(&["ROLLBACK PREPARED 'p'"]);
}

#[test]
fn a_user_without_rights_gets_what_is_public() {
    let server = Running::start("postgresql", None, &[]);
    server.run(&["CREATE ROLE nobody LOGIN"]);
    let endpoint = server.endpoint("nobody");
    let mut probes = endpoint.protocol.probes(&endpoint, None);
    read(&mut probes, [1]);
    let readings = &read(&mut probes, [2])[0];
    check_there(readings, &["pg.commits_per_s", "pg.horizon_age.backend", "pg.dead_tuples"]);
    let mut meter = endpoint.protocol.debt_meter(&endpoint).unwrap();
    let error = meter.begin_settling(&[]).unwrap_err();
    assert!(error.contains("CHECKPOINT") && error.contains("grant"), "{error}");
    meter.end_settling().unwrap();
}
