//! Workloads with steps of their own: checked, planned, run, recorded.

use serde_json::Value;

use crate::support::{Workbench, trial_folder};

/// The Insert Benchmark at its smallest, with these lines of the design.
fn study(design: &str) -> String {
    format!(
        r#"
        title = "What do its steps leave behind?"
        [database.a]
        product = "sqlite"
        [workload.insert-benchmark]
        rows_i0 = 2000
        rows_i1 = 400
        rows_i2 = 100
        commit_i0 = 100
        commit_i1 = 50
        commit_i2 = 5
        rate_2 = 0
        rate_3 = 0
        settle_s = 5
        [design]
        repetitions = 1
        rest = "0s"
        duration = "2s"
        seed = 7
        {design}
        "#
    )
}

const SMALL: &[&str] = &[
    "--rows-i0=2000",
    "--rows-i1=400",
    "--rows-i2=100",
    "--rate-2=0",
    "--rate-3=0",
    "--settle-s=5",
];

fn names(steps: &Value) -> Vec<&str> {
    steps.as_array().expect("a list").iter().filter_map(|step| step["name"].as_str()).collect()
}

#[test]
fn bench_runs_all_steps_and_reports_each() {
    let bench = Workbench::new();
    let mut arguments = vec!["insert-benchmark", "--on=sqlite", "--clients=2", "--duration=2s"];
    arguments.extend(SMALL);
    let result = bench.bench(&arguments);
    let steps = &result["steps"];
    let found = names(steps);
    assert!(found.starts_with(&["l.i0", "l.x", "l.i1", "l.i2"]), "{found:?}");
    for step in steps.as_array().unwrap() {
        let by_quota = step["roles"].as_array().unwrap().iter().any(|role| role["quota"].is_u64());
        let expected = if by_quota { "quota" } else { "time" };
        assert_eq!(step["ended_by"], expected, "{step:#}");
        assert!(step["measured_s"].as_f64() > Some(0.0), "{step:#}");
        let transactions = |entry: &Value| entry["transactions"].as_u64().unwrap();
        let kinds = step["kinds"].as_array().unwrap();
        assert_eq!(kinds.iter().map(transactions).sum::<u64>(), transactions(step), "{step:#}");
    }
    assert_eq!(result["throughput_tps"], Value::Null, "steps are not added up");
    assert!(result["canary"]["before_s"].as_f64() > Some(0.0), "{}", result["canary"]);
    let failed: Vec<&Value> =
        result["audit"].as_array().unwrap().iter().filter(|row| row["pass"] != true).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn bench_for_a_person_has_a_line_for_each_step() {
    let bench = Workbench::new();
    let mut arguments = vec!["bench", "insert-benchmark", "--on=sqlite", "--duration=1s"];
    arguments.extend(SMALL);
    let answer = bench.dyno_good(&arguments);
    for step in ["l.i0", "l.x", "l.i1", "l.i2"] {
        let lines = answer.out.lines().filter(|line| line.starts_with(&format!("{step} "))).count();
        assert_eq!(lines, 1, "{}", answer.out);
    }
    assert!(answer.out.contains("audit"), "{}", answer.out);
}

#[test]
fn the_record_has_the_steps_as_planned_and_as_they_ended() {
    let bench = Workbench::new();
    bench.write("study.toml", &study("clients = 2"));
    bench.dyno_good(&["run", "study.toml"]);
    let manifest = bench.json("runs/study/manifest.json");
    let first = &manifest["steps"][0];
    assert_eq!((&first["name"], &first["arrivals"]), (&"l.i0".into(), &"own".into()));
    let own = &first["own"];
    assert_eq!((&own["ends_by_quota"], &own["roles"][0]["clients"]), (&true.into(), &2.into()));
    // 2000 rows per client and table, 100 a transaction.
    assert_eq!(own["roles"][0]["quota"], 20);

    let folder = trial_folder(&bench.path("runs/study"), 1);
    let summary = crate::support::read_json(&folder.join("summary.json"));
    let step = &summary["steps"][0];
    assert_eq!(step["ended_by"], "quota");
    for kind in step["kinds"].as_array().unwrap() {
        let counts = dyno_record::EncodedCounts(kind["commits_100ms"].as_str().unwrap().to_owned());
        let total: u32 = counts.decode().expect("a series").iter().sum();
        let committed = kind["outcomes"]["committed"].as_u64().unwrap_or(0);
        assert_eq!(u64::from(total), committed, "{}", kind["name"]);
    }
    let waits: Vec<&Value> =
        summary["steps"].as_array().unwrap().iter().map(|step| &step["settled"]).collect();
    assert!(waits.iter().any(|wait| wait["limit_s"].is_number()), "{waits:?}");
    assert_eq!(waits[0], &Value::Null);
}

#[test]
fn a_variant_whose_steps_differ_from_the_first_ones_has_them_in_the_record() {
    let bench = Workbench::new();
    let vary = "clients = 2\nvary = { option = { commit_i0 = [100, 50] } }";
    bench.write("study.toml", &study(vary).replace("commit_i0 = 100\n", ""));
    bench.dyno_good(&["run", "study.toml"]);
    let manifest = bench.json("runs/study/manifest.json");
    assert_eq!(manifest["steps"][0]["own"]["roles"][0]["quota"], 20);
    assert_eq!(manifest["variants"][0]["own_steps"], Value::Null);
    let own = &manifest["variants"][1]["own_steps"];
    assert_eq!(own.as_object().map(|steps| steps.len()), Some(1), "{own}");
    assert_eq!(own["l.i0"]["roles"][0]["quota"], 40);
}

#[test]
fn the_plan_knows_what_it_does_not_know() {
    let bench = Workbench::new();
    bench.write("study.toml", &study("clients = 2"));
    let answer = bench.dyno_good(&["plan", "study.toml"]);
    assert!(answer.out.contains("until done, at most"), "{}", answer.out);
    assert!(answer.out.contains("limits end it after"), "{}", answer.out);
}

#[test]
fn load_levels_are_refused_before_anything_runs() {
    let bench = Workbench::new();
    let check = |design: &str, words: &str| {
        bench.write("study.toml", &study(design));
        let answer = bench.dyno(&["check", "study.toml"]);
        assert_eq!(answer.code, 2, "{}", answer.err);
        assert!(answer.err.contains(words), "{}", answer.err);
    };
    check("vary = { clients = [1, 2] }", "it defines its own steps");
    check("rate = 100", "it defines its own steps");
    check("find_rate = \"p99 <= 20ms\"", "it defines its own steps");

    let answer = bench.dyno(&["bench", "insert-benchmark", "--on=sqlite", "--rate=5"]);
    assert_eq!(answer.code, 2);
    assert!(
        answer.err.contains("--rate cannot be combined with workload `insert-benchmark`"),
        "{}",
        answer.err
    );
}
