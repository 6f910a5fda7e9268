//! The command `dyno explain-cost` against real servers.

use serde_json::Value;

use crate::support::Workbench;

#[test]
fn a_scan_costs_as_many_reads_as_there_are_rows() {
    let bench = Workbench::new();
    let data = bench.path("data");
    let data = data.to_str().unwrap();
    let sql = "SELECT COUNT(*) FROM sbtest1 WHERE pad LIKE '%nothing%'";
    let answer = bench.dyno_good(&[
        "explain-cost",
        sql,
        "--on",
        "mariadb",
        "--workload",
        "oltp_point_select",
        "--option",
        "tables=1",
        "--option",
        "table_size=2000",
        "--runs",
        "3",
        "--data-folder",
        data,
        "--json",
    ]);
    let cost: Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!(cost["runs"], 3);
    assert_eq!(cost["rows"], 1);
    let counters = cost["counters"].as_array().unwrap();
    let scanned = counters.iter().find(|counter| counter["name"] == "handler_read_rnd_next");
    let scanned = scanned.unwrap_or_else(|| panic!("{}", answer.out));
    assert_eq!(scanned["per_run"]["median"], 2001.0, "2000 rows and the end");
    assert_eq!(scanned["idle"]["high"], 0.0);
    let plan = cost["plan"].to_string();
    assert!(plan.contains("select_type") && plan.contains("sbtest1"), "{plan}");
}

#[test]
fn the_plan_of_postgresql_is_below_the_counters() {
    let bench = Workbench::new();
    let setup =
        ["--setup", "CREATE TABLE t (id int PRIMARY KEY)", "--setup", "INSERT INTO t VALUES (1)"];
    let of = |sql: &str, more: &[&str]| {
        let asked = ["explain-cost", sql, "--on", "postgresql", "--runs", "1"];
        bench.dyno_good(&[&asked[..], &setup, more].concat()).out
    };
    let read = of("SELECT * FROM t WHERE id = 1", &[]);
    assert!(
        read.contains("plan (the optimizer's") && read.contains("  Index Cond: (id = 1)"),
        "{read}"
    );
    let written = of("DELETE FROM t", &["--writes"]);
    assert!(written.contains("Delete on t") && written.contains("1 changed"), "{written}");
    assert!(
        of("SHOW work_mem", &[]).contains("no plan: a statement that begins with SHOW has none")
    );
}

#[test]
fn a_person_gets_a_table_and_writes_are_rolled_back() {
    let bench = Workbench::new();
    let data = bench.path("data");
    let common = ["--on", "sqlite", "--data-folder", data.to_str().unwrap(), "--runs", "2"];
    let setup = ["--setup", "CREATE TABLE t (v)", "--setup", "INSERT INTO t VALUES (1), (2), (3)"];
    let with = |sql: &'static str, more: &[&'static str]| {
        let mut all = vec!["explain-cost", sql];
        all.extend(common);
        all.extend(setup);
        all.extend(more);
        bench.dyno(&all)
    };
    let read = with("SELECT * FROM t", &[]);
    assert_eq!(read.code, 0, "{}", read.err);
    assert!(read.out.contains("3 rows returned") && read.out.contains("vm_step"), "{}", read.out);
    assert!(read.out.ends_with("SCAN t\n"), "{}", read.out);
    let refused = with("DELETE FROM t", &[]);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("DELETE") && refused.err.contains("--writes"), "{}", refused.err);
    let written = with("DELETE FROM t", &["--writes"]);
    // The second run still finds what the first deleted.
    assert!(written.out.contains("3 changed"), "{} {}", written.out, written.err);
    let unknown = with("SELECT nothing FROM nowhere", &[]);
    assert!(unknown.err.contains("nowhere"), "{}", unknown.err);
    let left: Vec<_> = std::fs::read_dir(&data).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn what_mariadb_would_not_take_back_is_not_run() {
    let bench = Workbench::new();
    let old = ["--setup", "CREATE TABLE old_log (v INT) ENGINE = MyISAM"];
    let row = ["--setup", "INSERT INTO old_log VALUES (1)"];
    let new = ["--setup", "CREATE TABLE kept (v INT) ENGINE = InnoDB"];
    let trigger = [
        "--setup",
        "CREATE TRIGGER noted AFTER INSERT ON kept FOR EACH ROW INSERT INTO old_log VALUES (2)",
    ];
    let check = |sql: &str, expected: &str| {
        let asked = ["explain-cost", sql, "--on", "mariadb", "--writes", "--runs", "1"];
        let answer = bench.dyno(&[&asked[..], &old, &row, &new, &trigger].concat());
        assert_ne!(answer.code, 0, "{}", answer.out);
        assert!(answer.err.contains(expected), "{}", answer.err);
    };
    let expected = "`old_log`, and its engine MyISAM cannot roll back";
    check("DELETE FROM old_log", expected);
    // Through its trigger.
    check("INSERT INTO kept VALUES (1)", expected);
}

#[test]
fn what_is_wrong_is_reported() {
    let bench = Workbench::new();
    let check = |arguments: &[&str], words: &[&str]| {
        let mut all = vec!["explain-cost"];
        all.extend(arguments);
        let answer = bench.dyno(&all);
        assert_ne!(answer.code, 0);
        for word in words {
            assert!(answer.err.contains(word), "{arguments:?}: {}", answer.err);
        }
    };
    check(&["SELECT 1", "--on", "oracle"], &["oracle", "mariadb"]);
    check(&["", "--on", "sqlite"], &["no statement"]);
    check(&["SELECT 1", "--on", "sqlite", "--runs", "0"], &["--runs"]);
    let url = "mysql://u:secret@127.0.0.1:1/x";
    check(&["SELECT 1", "--on", url, "--setup", "SELECT 2"], &["private servers"]);
    let answer = bench.dyno(&["explain-cost", "SELECT 1", "--on", url]);
    assert!(answer.err.contains("cannot connect") && !answer.err.contains("secret"));
}
