//! A record of an earlier Dyno (0.1.0, commit 3fb30b3, SQLite) is read as it was then.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::Workbench;

/// Two variants of SQLite, two repetitions of a second.
const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/format_1");

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

#[test]
fn a_record_of_the_first_format_is_read() {
    let bench = Workbench::new();
    copy(Path::new(RECORD), &bench.path("old"));
    let findings = bench.dyno_good(&["report", "old", "--format", "json"]).out;
    let findings: Value = serde_json::from_str(&findings).unwrap();
    // As found by the program that wrote it.
    let throughput = |cell: usize| &findings["cells"][cell]["metrics"]["throughput"]["values"];
    assert_eq!(*throughput(0), serde_json::json!([131.5, 147.5]));
    assert_eq!(*throughput(1), serde_json::json!([18697.0, 16849.0]));
    let trials = findings["trials"].as_array().unwrap();
    assert!(trials.len() == 4 && trials.iter().all(|trial| trial["state"] == "finished"));
    // Later records describe their readings; for this one the registry does.
    assert!(!findings["attribution"].as_array().unwrap().is_empty());

    bench.dyno_good(&["report", "old"]);
    let page = fs::read_to_string(bench.path("old/report.html")).unwrap();
    assert!(page.contains("What does each level of commit safety cost?"));
    let rows = bench.dyno_good(&["sql", "old", "SELECT count(*) FROM results"]).out;
    assert!(rows.contains('4'), "{rows}");
}

#[test]
fn a_record_of_a_format_to_come_is_refused() {
    let bench = Workbench::new();
    copy(Path::new(RECORD), &bench.path("new"));
    let manifest = bench.path("new/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    let mut value: Value = serde_json::from_str(&text).unwrap();
    value["format"] = Value::from(2);
    fs::write(&manifest, value.to_string()).unwrap();
    let answer = bench.dyno(&["report", "new"]);
    assert_eq!(answer.code, 1, "{}", answer.err);
    assert!(answer.err.contains("format 2"), "{}", answer.err);
}
