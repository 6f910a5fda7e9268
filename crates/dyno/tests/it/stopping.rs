//! Sequential stopping: settled variants get no more repetitions.

use std::path::Path;

use serde_json::Value;

use crate::support::Workbench;

/// One server is much slower than the baseline, one slightly.
const STUDY: &str = r#"
    title = "Which of them is slower?"
    [database.a]
    product = "simulated"
    settings = { service_time = "1ms", noise = 0.03 }
    [database.slow]
    like = "a"
    settings = { service_time = "1.5ms" }
    [database.near]
    like = "a"
    settings = { service_time = "1.01ms" }
    [workload.oltp_point_select]
    [design]
    vary = { database = ["a", "slow", "near"] }
    clients = 4
    repetitions = 12
    repetitions_min = 3
    stop = "settled"
    warm_up = "1s"
    duration = "10s"
    rest = "0s"
    seed = 5
    threshold = "1%"
"#;

fn events(run: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("events.jsonl")).expect("there are events");
    text.lines().map(|line| serde_json::from_str(line).expect("an event")).collect()
}

/// Trials with a summary.
fn ended(run: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(run.join("trials")).expect("there are trials");
    let mut names: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().join("summary.json").exists())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn count(names: &[String], variant: &str) -> usize {
    names.iter().filter(|name| name.ends_with(&format!("-{variant}"))).count()
}

#[test]
fn what_is_settled_is_repeated_no_more() {
    let bench = Workbench::new();
    bench.write("study.toml", STUDY);
    let answer = bench.dyno_good(&["run", "study.toml"]);
    let run = bench.path("runs/study");
    let names = ended(&run);
    assert!(count(&names, "slow") >= 3, "{names:?}");
    assert!(count(&names, "slow") < 12, "half as fast is settled early: {names:?}");
    assert_eq!(count(&names, "near"), 12, "one percent is not decided so soon: {names:?}");
    assert_eq!(count(&names, "a"), 12, "the baseline goes on while anything is open: {names:?}");

    let events = events(&run);
    let settled: Vec<&Value> =
        events.iter().filter(|event| event["event"] == "variant_settled").collect();
    let slow = settled.iter().find(|event| event["variant"] == "slow").expect("it is settled");
    assert_eq!(slow["repetitions"].as_u64(), Some(count(&names, "slow") as u64));
    assert!(!slow["why"].as_str().unwrap_or_default().is_empty());
    let skipped = events.iter().filter(|event| event["event"] == "trial_skipped").count();
    assert_eq!(skipped + names.len(), 36);
    assert!(answer.err.contains(&format!("{skipped} trials were not needed")), "{}", answer.err);
    let stopping = &bench.json("runs/study/manifest.json")["stopping"];
    assert_eq!(stopping["repetitions_min"], 3);
    assert_eq!(stopping["repetitions_max"], 12);
}

#[test]
fn a_resumed_run_decides_as_if_it_had_not_been_interrupted() {
    let bench = Workbench::new();
    bench.write("study.toml", STUDY);
    bench.dyno_good(&["run", "study.toml"]);
    let run = bench.path("runs/study");
    let names = ended(&run);
    let findings =
        |bench: &Workbench| bench.json("runs/study/findings.json")["comparisons"].clone();
    let before = findings(&bench);
    // As if killed in the middle of the third block, or of a later one.
    for kept in [8, names.len() - 2] {
        for name in &names[kept..] {
            std::fs::remove_dir_all(run.join("trials").join(name)).expect("it can be removed");
        }
        bench.dyno_good(&["run", "study.toml"]);
        assert_eq!(ended(&run), names, "{kept} trials were kept");
        assert_eq!(findings(&bench), before);
    }
}

#[test]
fn the_plan_says_that_it_may_be_less() {
    let bench = Workbench::new();
    bench.write("study.toml", STUDY);
    let answer = bench.dyno_good(&["plan", "study.toml"]);
    assert!(answer.out.contains("at most 36"), "{}", answer.out);
    assert!(answer.out.contains("3 to 12 repetitions"), "{}", answer.out);
}
