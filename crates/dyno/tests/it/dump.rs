//! `dyno dump` and `dyno restore` as a user runs them, and as jobs of a study do.

use serde_json::Value;

use crate::support::{DataFolder, Workbench, read_json, trial_folder};
use crate::up::UpBench;

#[test]
fn a_database_is_dumped_and_restored_into_another() {
    let bench = UpBench::new();
    let url = bench.up(&["mariadb", "--name", "here"]);
    let other = url.replace("/dyno?", "/other?");
    let made = "CREATE TABLE t (a INT PRIMARY KEY, b TEXT); INSERT INTO t VALUES (1, 'x'), (2, NULL); \
                CREATE VIEW v AS SELECT a FROM t; CREATE DATABASE other";
    bench.good(&["connect", "here", "--", "-e", made]);
    let dumped = bench.good(&["dump", &url, "kept", "--threads", "2"]);
    assert!(
        dumped.out.starts_with("dumped 1 table with 2 rows: 9 B in 1 file, "),
        "{}",
        dumped.out
    );
    assert!(dumped.err.contains("note: the view v is not in the dump"), "{}", dumped.err);
    let restored = bench.good(&["restore", "kept", &other, "--json"]);
    let result: Value = serde_json::from_str(&restored.out).unwrap();
    let keys = ["format", "rows", "tables"].map(|key| &result[key]);
    assert_eq!(keys, [1, 2, 1].map(Value::from).each_ref());
    let sql = "SELECT SUM(a), COUNT(b) FROM other.t";
    let found = bench.good(&["connect", "here", "--", "-N", "-e", sql]);
    assert_eq!(found.out.trim(), "3\t1");

    let check = |arguments: &[&str], code: i32, expected: &str| {
        let answer = bench.dyno(arguments);
        assert_eq!(answer.code, code, "{arguments:?} {}", answer.err);
        assert!(answer.err.contains(expected), "{arguments:?} {}", answer.err);
    };
    check(&["dump", &url, "kept"], 1, "kept already exists");
    check(&["restore", "kept", &other], 1, "the table `t` already exists");
    check(&["restore", ".", &other], 2, "is not a complete Dyno dump");
    check(&["dump", "sqlite://x", "y"], 2, "unsupported URL scheme `sqlite`");
    check(&["dump", "postgresql://x@localhost/y", "z"], 1, "use the server's own tools");
    check(&["dump", &url, "z", "--rows", "0"], 2, "a file has at least 1 row");
    assert!(!bench.bench.path("z").exists());
}

/// If Dyno is root, a job's commands run as another user, who may not reach its program.
#[test]
fn jobs_dump_and_restore_with_this_very_dyno() {
    let bench = Workbench::new();
    let folder = DataFolder::new();
    bench.write(
        "study.toml",
        r#"
        title = "Is what is restored the same?"
        [database.mariadb]
        product = "mariadb"
        [workload.oltp_read_only]
        table_size = 1000
        [job.dyno]
        setup   = ["sh", "-c", "$DYNO_PROGRAM dump $DYNO_URL $DYNO_SCRATCH/dump --threads 2"]
        before  = ["DROP TABLE sbtest1"]
        command = ["sh", "-c", "$DYNO_PROGRAM restore $DYNO_SCRATCH/dump $DYNO_URL"]
        same_tables = true
        [design]
        vary = { job = ["dyno"] }
        repetitions = 1
        "#,
    );
    let arguments = ["run", "study.toml", "--out", "run", "--data-folder", folder.text()];
    bench.dyno_good(&arguments);
    let trial = read_json(&trial_folder(&bench.path("run"), 1).join("summary.json"));
    assert_eq!(trial["outcome"]["state"], "finished");
    let output = trial["steps"][0]["activities"][0]["output"].to_string();
    assert!(output.contains("restored 1 table with 1,000 rows"), "{output}");
}
