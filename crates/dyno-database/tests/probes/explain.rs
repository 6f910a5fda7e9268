//! Costs of statements whose work is known.

use dyno_database::{Access, Cost, CostPlan, explain_cost};

use crate::server::{Running, clock};

fn explain(server: &Running, sql: &str, access: Access) -> Result<Cost, String> {
    let clock = clock();
    let mut source = server.server().cost_source(access, &clock)?;
    let plan = CostPlan { runs: 3, access };
    let cost = explain_cost(source.as_mut(), sql, plan, clock.as_ref(), &|| false)?;
    Ok(cost.unwrap())
}

#[track_caller]
fn check(cost: &Cost, name: &str, expected: std::ops::RangeInclusive<f64>) {
    let found = cost.counters.iter().find(|counter| counter.name == name);
    let found = found.unwrap_or_else(|| panic!("{name} did not move: {cost:#?}"));
    assert!(expected.contains(&found.per_run.median), "{found:?}");
}

#[test]
fn a_scan_of_mariadb_reads_every_row() {
    let server = Running::start("mariadb", None, &[]);
    server.run(&[
        "CREATE TABLE t (id INT PRIMARY KEY, v TEXT)",
        "INSERT INTO t SELECT seq, REPEAT('x', 50) FROM seq_1_to_3000",
    ]);
    let scan = "SELECT COUNT(*) FROM t WHERE v LIKE '%y%'";
    let cost = explain(&server, scan, Access::ReadOnly).unwrap();
    // The last of them finds that there is no further row.
    check(&cost, "handler_read_rnd_next", 3001.0..=3001.0);
    check(&cost, "com_select", 1.0..=1.0);
    assert_eq!((cost.rows, cost.runs), (1, 3));
    assert!(cost.n_counters > 300);
    assert!(!cost.counters.iter().any(|counter| counter.name.contains("show_status")));

    let delete = "DELETE FROM t WHERE id <= 100";
    let cost = explain(&server, delete, Access::RolledBack).unwrap();
    check(&cost, "handler_delete", 100.0..=100.0);
    assert_eq!(cost.changed, 100);
    let mut connection = server.connect();
    let left = connection.query("SELECT COUNT(*) FROM t").unwrap();
    assert_eq!(left[0][0].as_deref(), Some("3000"), "each run was rolled back");

    let error = explain(&server, delete, Access::ReadOnly).unwrap_err();
    assert!(error.contains("DELETE") && error.contains("rolled back"), "{error}");
    // What the first word does not show, the server does.
    let error = explain(&server, "WITH a AS (SELECT 1) SELECT nonsense", Access::ReadOnly);
    assert!(error.unwrap_err().contains("nonsense"));
}

#[test]
fn a_scan_of_rocksdb_skips_its_tombstones() {
    let server = Running::start("mariadb", Some("RocksDB"), &[]);
    server.run(&[
        "CREATE TABLE t (id INT PRIMARY KEY, v TEXT) ENGINE=RocksDB",
        "INSERT INTO t SELECT seq, REPEAT('x', 50) FROM seq_1_to_3000",
        "SET GLOBAL rocksdb_force_flush_memtable_now = 1",
        "DELETE FROM t WHERE id <= 2000",
    ]);
    let cost = explain(&server, "SELECT MIN(id) FROM t", Access::ReadOnly).unwrap();
    check(&cost, "rocksdb_perf.internal_delete_skipped_count", 2000.0..=2001.0);
}

#[test]
fn a_scan_of_postgresql_reads_every_row() {
    let server = Running::start("postgresql", None, &[("autovacuum", "off")]);
    server.run(&[
        "CREATE TABLE t (id int PRIMARY KEY, v text)",
        "INSERT INTO t SELECT n, repeat('x', 50) FROM generate_series(1, 3000) n",
        "VACUUM ANALYZE t",
    ]);
    let scan = "SELECT count(*) FROM t WHERE v LIKE '%y%'";
    let cost = explain(&server, scan, Access::ReadOnly).unwrap();
    check(&cost, "tables.seq_tup_read", 3000.0..=3000.0);
    check(&cost, "tables.seq_scan", 1.0..=1.0);
    check(&cost, "tables.heap_blks_hit", 20.0..=60.0);

    let delete = "DELETE FROM t WHERE id <= 100";
    let cost = explain(&server, delete, Access::RolledBack).unwrap();
    check(&cost, "tables.n_tup_del", 100.0..=100.0);
    check(&cost, "wal.wal_records", 100.0..=400.0);
    let left = server.connect().query("SELECT count(*) FROM t").unwrap();
    assert_eq!(left[0][0].as_deref(), Some("3000"));
    // It begins with WITH, and writes: the server says no.
    let sql = "WITH gone AS (DELETE FROM t RETURNING 1) SELECT count(*) FROM gone";
    let error = explain(&server, sql, Access::ReadOnly).unwrap_err();
    assert!(error.contains("read-only"), "{error}");
}

#[test]
fn a_scan_of_sqlite_steps_through_every_row() {
    let server = Running::start("sqlite", None, &[]);
    server.run(&["CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)"]);
    let mut writer = server.connect();
    writer.query("BEGIN").unwrap();
    for n in 0..1000 {
        writer.query(&format!("INSERT INTO t VALUES ({n}, 'x')")).unwrap();
    }
    writer.query("COMMIT").unwrap();
    let scan = "SELECT count(*) FROM t WHERE v = 'y'";
    let cost = explain(&server, scan, Access::ReadOnly).unwrap();
    check(&cost, "fullscan_step", 999.0..=1000.0);
    check(&cost, "vm_step", 2000.0..=20_000.0);
    let cost = explain(&server, "DELETE FROM t", Access::RolledBack).unwrap();
    assert_eq!(cost.changed, 1000);
    // A PRAGMA may write; here it does not, whether SQLite says so or not.
    let _ = explain(&server, "PRAGMA user_version = 5", Access::ReadOnly);
    let version = server.connect().query("PRAGMA user_version").unwrap();
    assert_eq!(version[0][0].as_deref(), Some("0"));
    let left = server.connect().query("SELECT count(*) FROM t").unwrap();
    assert_eq!(left[0][0].as_deref(), Some("1000"));
}

#[track_caller]
fn check_refused(server: &Running, sql: &str, access: Access, words: &str) {
    let error = explain(server, sql, access).expect_err(sql);
    assert!(error.contains(words), "{sql}: {error}");
}

#[test]
fn mariadb_keeps_what_could_not_be_rolled_back() {
    let server = Running::start("mariadb", None, &[]);
    server.run(&[
        "CREATE TABLE kept (v INT) ENGINE=InnoDB",
        "CREATE TABLE old (v INT) ENGINE=MyISAM",
        "CREATE TABLE versioned (v INT) ENGINE=MyISAM WITH SYSTEM VERSIONING",
        "CREATE TABLE watched (v INT) ENGINE=InnoDB",
        "CREATE VIEW seen AS SELECT * FROM old",
        "CREATE TRIGGER noted BEFORE DELETE ON watched FOR EACH ROW DELETE FROM old",
        "CREATE FUNCTION lose() RETURNS INT MODIFIES SQL DATA BEGIN DELETE FROM kept; RETURN 1; END",
        "INSERT INTO kept VALUES (1), (2), (3)",
        "INSERT INTO old VALUES (1), (2), (3)",
        "INSERT INTO watched VALUES (1)",
        "INSERT INTO versioned VALUES (1)",
        "CREATE DEFINER = 'mallory'@'localhost' SQL SECURITY INVOKER VIEW `a``trap` AS SELECT lose()",
        "CREATE SQL SECURITY DEFINER VIEW mine AS SELECT * FROM `a``trap`",
    ]);
    // What runs as this user does so behind a view of its own, too.
    for sql in ["SELECT * FROM `a``trap`", "SELECT * FROM mine"] {
        check_refused(&server, sql, Access::ReadOnly, "of `mallory@localhost`");
    }
    let n_rows = |table: &str| {
        let rows = server.connect().query(&format!("SELECT COUNT(*) FROM {table}")).unwrap();
        rows[0][0].clone().unwrap()
    };
    let reached = ["old", "`old`", "versioned", "seen", "watched", "mysql.help_topic"];
    for table in reached {
        let sql = format!("DELETE FROM {table}");
        check_refused(
            &server,
            &sql,
            Access::RolledBack,
            "cannot roll back: the changes of each run would stay",
        );
    }
    let hidden = "/*!999999 SELECT */ DROP TABLE kept";
    check_refused(&server, hidden, Access::RolledBack, "comment");
    check_refused(&server, "/*!999999 SELECT */ SET GLOBAL x = 1", Access::ReadOnly, "comment");
    check_refused(&server, "DROP TABLE kept", Access::RolledBack, "DROP");
    check_refused(&server, "SELECT lose()", Access::ReadOnly, "READ ONLY");
    check_refused(&server, "SELECT 1 INTO OUTFILE '/nowhere/x'", Access::ReadOnly, "OUTFILE");
    explain(&server, "SELECT lose()", Access::RolledBack).unwrap();
    let cost = explain(&server, "DELETE FROM kept WHERE v > 7", Access::RolledBack).unwrap();
    assert_eq!(cost.changed, 0);
    assert_eq!(["kept", "old", "watched", "versioned"].map(n_rows), ["3", "3", "1", "1"]);
}

#[test]
fn postgresql_keeps_its_rows_whatever_a_function_does() {
    let server = Running::start("postgresql", None, &[]);
    server.run(&[
        "CREATE TABLE kept (v int)",
        "INSERT INTO kept VALUES (1), (2), (3)",
        "CREATE FUNCTION lose() RETURNS int LANGUAGE sql AS 'DELETE FROM kept; SELECT 1'",
    ]);
    check_refused(&server, "SELECT lose()", Access::ReadOnly, "read-only");
    // What it sets would hold for the next run, if the read-only mode were not set again.
    let unlocked = "SELECT set_config('default_transaction_read_only', 'off', false), \
         CASE WHEN current_setting('transaction_read_only') = 'off' THEN lose() END";
    explain(&server, unlocked, Access::ReadOnly).unwrap();
    explain(&server, "SELECT lose()", Access::RolledBack).unwrap();
    for sql in ["SELECT 1; COMMIT; DELETE FROM kept", "DELETE FROM kept; COMMIT"] {
        let mut source = server.server().cost_source(Access::ReadOnly, &clock()).unwrap();
        for why in [source.run(Some(sql)).unwrap_err(), source.plan(sql).unwrap_err()] {
            assert!(why.contains("multiple commands"), "{why}");
        }
    }
    let left = server.connect().query("SELECT count(*) FROM kept").unwrap();
    assert_eq!(left[0][0].as_deref(), Some("3"));
}
