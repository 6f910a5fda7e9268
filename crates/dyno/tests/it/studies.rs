//! Study files as a person writes them: right, wrong, and the ones the project ships.

use std::path::Path;

use crate::support::{Workbench, read_json};

fn shipped(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    root.join(name).canonicalize().expect("the study is there").display().to_string()
}

#[test]
fn every_shipped_study_is_right_and_can_be_planned() {
    let bench = Workbench::new();
    for name in [
        "quickstart.toml",
        "connections/full.toml",
        "connections/bench-top.toml",
        "cpu-shootout/full.toml",
        "cpu-shootout/bench-top.toml",
        "durability/full.toml",
        "durability/bench-top.toml",
        "dbstress/full.toml",
        "dbstress/stable-load.toml",
        "dbstress/bench-top.toml",
        "insert-benchmark/full.toml",
        "insert-benchmark/bench-top.toml",
        "key-order/full.toml",
        "key-order/bench-top.toml",
        "pgbench/full.toml",
        "pgbench/bench-top.toml",
        "pooling/full.toml",
        "pooling/bench-top.toml",
        "replicas/full.toml",
        "replicas/bench-top.toml",
        "queue/full.toml",
        "queue/bench-top.toml",
        "sql-servers/full.toml",
        "sql-servers/bench-top.toml",
        "tpcc-volumes/full.toml",
        "tpcc-volumes/bench-top.toml",
        "versions/full.toml",
        "versions/bench-top.toml",
        "aa/full.toml",
        "aa/bench-top.toml",
    ] {
        bench.dyno_good(&["check", &shipped(name)]);
        let plan = bench.dyno_good(&["plan", &shipped(name)]);
        assert!(plan.out.lines().count() > 3, "{name}: {}", plan.out);
    }
}

#[test]
fn the_quickstart_answers_its_question() {
    let bench = Workbench::new();
    let answer = bench.dyno_good(&["run", &shipped("quickstart.toml")]);
    let findings = read_json(&bench.path("runs/quickstart/findings.json"));
    let headline = findings["answer"]["headline"].as_str().unwrap();
    assert!(answer.out.contains("report: "), "{}", answer.out);
    assert!(!headline.is_empty());
    // Not to sync is faster than to sync every commit, on every machine.
    let verdicts: Vec<&str> = findings["comparisons"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|comparison| comparison["metric"] == "throughput")
        .filter_map(|comparison| comparison["verdict"].as_str())
        .collect();
    assert!(verdicts.contains(&"better"), "{verdicts:?} {headline}");
    // A second time there is nothing to do, and nothing is lost.
    let again = bench.dyno_good(&["run", &shipped("quickstart.toml")]);
    assert!(again.err.contains("already done"), "{}", again.err);
}

#[test]
fn all_errors_are_shown_at_once_with_the_nearest_word() {
    let bench = Workbench::new();
    bench.write(
        "wrong.toml",
        r#"title = "x"
[database.a]
prodct = "mariadb"
[database.b]
product = "mariabd"
[workload.oltp_read_onyl]
[design]
vary = { database = ["a", "c"] }
duration = 10
baseline = { database = "z" }
"#,
    );
    let answer = bench.dyno(&["run", "wrong.toml"]);
    assert_eq!(answer.code, 2);
    for expected in ["product", "mariadb", "oltp_read_only", "wrong.toml:3", "wrong.toml:9"] {
        assert!(answer.err.contains(expected), "no {expected} in\n{}", answer.err);
    }
    assert!(!bench.path("runs").exists(), "nothing is made for a wrong study");
}

#[test]
fn the_schema_is_json_and_the_one_beside_the_studies_is_current() {
    let schema = Workbench::new().dyno_good(&["schema"]);
    let value: serde_json::Value = serde_json::from_str(&schema.out).unwrap();
    assert!(value.to_string().contains("point_selects"));
    let beside = std::fs::read_to_string(shipped("study.schema.json")).unwrap();
    assert!(beside == schema.out, "run `dyno schema > studies/study.schema.json`");
}

#[test]
fn the_reference_of_the_study_file_is_current() {
    let printed = Workbench::new().dyno_good(&["schema", "--format", "markdown"]).out;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/study.md");
    let kept = std::fs::read_to_string(path).unwrap();
    assert!(kept == printed, "run `dyno schema --format markdown > docs/study.md`");
}

#[test]
fn completions_are_printed_for_every_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let answer = Workbench::new().dyno_good(&["completions", shell]);
        assert!(answer.out.contains("dyno"), "{shell}");
    }
}

#[test]
fn doctor_says_what_it_found() {
    let answer = Workbench::new().dyno(&["doctor"]);
    assert!(answer.code == 0 || answer.code == 1, "{}", answer.err);
    for expected in ["swap", "clock", "memory"] {
        assert!(answer.out.to_lowercase().contains(expected), "no {expected} in\n{}", answer.out);
    }
}
