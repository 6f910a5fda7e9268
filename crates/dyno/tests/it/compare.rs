//! One run against another: as text, as files, and as a gate.

use crate::support::{Workbench, read_json, trial_folder};

fn study(service_time: &str, seed: u32, repetitions: u32) -> String {
    format!(
        r#"
        title = "Is it as fast as before?"
        [database.server]
        product = "simulated"
        settings = {{ service_time = "{service_time}", noise = 0.01 }}
        [workload.oltp_point_select]
        [design]
        clients = 4
        repetitions = {repetitions}
        warm_up = "1s"
        duration = "10s"
        rest = "0s"
        seed = {seed}
        threshold = "5%"
        "#
    )
}

/// Two runs, `runs/before` and `runs/after`.
fn two_runs(before: &str, after: &str) -> Workbench {
    let bench = Workbench::new();
    for (name, text) in [("before", before), ("after", after)] {
        bench.write(&format!("{name}.toml"), text);
        bench.dyno_good(&["run", &format!("{name}.toml")]);
    }
    bench
}

const PAIR: [&str; 3] = ["compare", "runs/before", "runs/after"];

fn gate(bench: &Workbench) -> i32 {
    bench.dyno(&[&PAIR[..], &["--gate"]].concat()).code
}

#[test]
fn the_same_server_is_never_worse() {
    for seed in [1, 2, 3] {
        let bench = two_runs(&study("1ms", seed, 6), &study("1ms", seed + 100, 6));
        let code = gate(&bench);
        assert!(code == 0 || code == 2, "seed {seed}: {code}");
    }
}

#[test]
fn with_a_wide_threshold_and_enough_repetitions_the_same_server_passes() {
    let bench = two_runs(&study("1ms", 5, 8), &study("1ms", 55, 8));
    let answer = bench.dyno(&[&PAIR[..], &["--gate", "--threshold", "25%"]].concat());
    assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
    assert!(answer.err.contains("gate: no worse"), "{}", answer.err);
}

#[test]
fn ten_percent_slower_is_worse() {
    let bench = two_runs(&study("1ms", 7, 6), &study("1.1ms", 8, 6));
    let answer = bench.dyno(&[&PAIR[..], &["--gate"]].concat());
    assert_eq!(answer.code, 1, "{}{}", answer.out, answer.err);
    let expected = "gate: worse:\n  throughput of server (after)";
    assert!(answer.err.contains(expected), "{}", answer.err);
    // In a pull request the gate's verdict comes first, then its evidence.
    let markdown = ["--gate", "--format", "markdown"];
    let answer = bench.dyno(&[&PAIR[..], &markdown].concat());
    assert_eq!(answer.code, 1, "{}", answer.err);
    assert!(
        answer.out.starts_with("**Gate: worse: throughput of server (after)"),
        "{}",
        answer.out
    );
    assert!(answer.out.contains("| p95 response time | CI | verdict | n |"), "{}", answer.out);
    // Without the gate it is shown, but no failure.
    let answer = bench.dyno_good(&PAIR);
    assert!(answer.out.contains("slower than server"), "{}", answer.out);
}

#[test]
fn one_repetition_is_inconclusive() {
    let bench = two_runs(&study("1ms", 7, 1), &study("1.1ms", 8, 1));
    assert_eq!(gate(&bench), 2);
}

#[test]
fn what_has_no_counterpart_cannot_be_said() {
    let other = study("1ms", 8, 3).replace("database.server", "database.another");
    let bench = two_runs(&study("1ms", 7, 3), &other);
    let answer = bench.dyno(&[&PAIR[..], &["--gate"]].concat());
    assert_eq!(answer.code, 2, "{}{}", answer.out, answer.err);
    assert!(answer.err.contains("is in the first run only"), "{}", answer.err);
    // A folder that is no run is a usage error.
    assert_eq!(bench.dyno(&["compare", "runs/before", "runs/none"]).code, 2);
    assert_eq!(bench.dyno(&["compare", "runs/before", "runs/none", "--gate"]).code, 2);
}

#[test]
fn every_format_is_written() {
    let bench = two_runs(&study("1ms", 7, 3), &study("1.1ms", 8, 3));
    for (format, sign) in [("markdown", "## Is it as fast"), ("json", "{"), ("html", "<!doctype")] {
        let out = format!("answer.{format}");
        let arguments = ["--format", format, "--out", &out];
        bench.dyno_good(&[&PAIR[..], &arguments].concat());
        let text = std::fs::read_to_string(bench.path(&out)).expect("it was written");
        assert!(text.starts_with(sign), "{format}: {}", &text[..40]);
    }
    // A link of this name is not followed.
    bench.write("outside", "mine");
    std::os::unix::fs::symlink(bench.path("outside"), bench.path("answer")).unwrap();
    bench.dyno_good(&[&PAIR[..], &["--format", "markdown", "--out", "answer"]].concat());
    assert_eq!(std::fs::read_to_string(bench.path("outside")).unwrap(), "mine");
    assert!(std::fs::read_to_string(bench.path("answer")).unwrap().starts_with("## Is it"));
}

fn change(bench: &Workbench, name: &str, change: impl Fn(&mut serde_json::Value)) {
    let mut value = bench.json(name);
    change(&mut value);
    bench.write(name, &value.to_string());
}

#[test]
fn what_is_invalid_passes_no_gate() {
    let bench = two_runs(&study("1ms", 5, 8), &study("1ms", 55, 8));
    let wide = [&PAIR[..], &["--gate", "--threshold", "25%"]].concat();
    assert_eq!(bench.dyno(&wide).code, 0);
    let summary = trial_folder(&bench.path("runs/after"), 1).join("summary.json");
    let mut trial = read_json(&summary);
    trial["audit"] = serde_json::json!([
        {"name": "rows", "expected": "10", "measured": "9", "pass": false}
    ]);
    std::fs::write(&summary, trial.to_string()).unwrap();
    // Its checksum would show the change first.
    let answer = bench.dyno(&wide);
    assert!(answer.code != 0 && answer.err.contains("its checksum"), "{}", answer.err);
    std::fs::remove_file(summary.with_file_name("checksums.json")).unwrap();
    let answer = bench.dyno(&wide);
    assert_eq!(answer.code, 2, "{}{}", answer.out, answer.err);
    let message = "undecided: the audit of server (after) failed";
    assert!(answer.err.contains(&format!("gate: {message}")), "{}", answer.err);
    let answer = bench.dyno(&[&wide[..], &["--format", "markdown"]].concat());
    assert!(answer.out.starts_with(&format!("**Gate: {message}")), "{}", answer.out);
    let answer = bench.dyno(&[&wide[..], &["--format", "json"]].concat());
    let gate = &serde_json::from_str::<serde_json::Value>(&answer.out).unwrap()["gate"];
    assert_eq!(gate["answer"], "inconclusive");
    assert_eq!(gate["reasons"][0], "the audit of server (after) failed");
}

#[test]
fn unlike_workloads_are_not_compared() {
    let other = study("1ms", 8, 3).replace("oltp_point_select", "oltp_read_only");
    let bench = two_runs(&study("1ms", 7, 3), &other);
    let answer = bench.dyno(&[&PAIR[..], &["--gate"]].concat());
    assert_eq!(answer.code, 2, "{}{}", answer.out, answer.err);
    assert!(answer.err.contains("do different work"), "{}", answer.err);
    assert!(answer.out.contains("Nothing in the two runs can be compared"), "{}", answer.out);
    assert!(answer.out.contains("Caveat (different workloads)"), "{}", answer.out);
    assert!(!answer.out.contains("as fast as server"), "{}", answer.out);
}

#[test]
fn a_gate_that_cannot_do_its_work_calls_nothing_worse() {
    let bench = two_runs(&study("1ms", 7, 3), &study("1ms", 8, 3));
    for out in [&["--out", "no/such/folder"][..], &["--format", "csv"]] {
        let answer = bench.dyno(&[&PAIR[..], &["--gate"], out].concat());
        assert_eq!(answer.code, 2, "{out:?}: {}", answer.err);
        assert!(answer.err.contains("error:"), "{}", answer.err);
    }
    assert_eq!(bench.dyno(&[&PAIR[..], &["--out", "no/such/folder"]].concat()).code, 1);
}

#[test]
fn one_run_is_not_compared_with_itself() {
    let bench = two_runs(&study("1ms", 7, 3), &study("1ms", 8, 3));
    let copy = bench.path("copy");
    for folder in ["", "trials"] {
        std::fs::create_dir(copy.join(folder)).unwrap();
    }
    std::fs::copy(bench.path("runs/before/manifest.json"), copy.join("manifest.json")).unwrap();
    for other in ["runs/before", "copy"] {
        for command in [&["compare"][..], &["compare", "--gate"], &["report"]] {
            let answer = bench.dyno(&[command, &["runs/before", other]].concat());
            assert_eq!(answer.code, 2, "{command:?} {other}: {}", answer.err);
            let why = match command[0] {
                "compare" => "a run cannot be compared with itself",
                _ => "its trials would count twice; name different runs",
            };
            let message = format!("runs/before and {other} hold the same run: {why}");
            assert!(answer.err.contains(&message), "{}", answer.err);
        }
    }
}

#[test]
fn a_report_of_two_runs_leaves_their_own_alone() {
    let bench = two_runs(&study("1ms", 7, 3), &study("1.1ms", 8, 3));
    let files = ["report.html", "report.md", "findings.json"];
    let own = || files.map(|name| std::fs::read(bench.path("runs/before").join(name)).unwrap());
    let before = own();
    let answer = bench.dyno_good(&["report", "runs/before", "runs/after"]);
    assert!(own() == before, "the first run's own report was changed");
    assert!(answer.out.contains("report: runs/before+after/report.html"), "{}", answer.out);
    for name in files {
        assert!(bench.path("runs/before+after").join(name).exists(), "{name}");
    }
    bench.dyno_good(&["report", "runs/before", "runs/after", "--format", "csv"]);
    assert!(bench.path("runs/before+after/tables/trials.csv").exists());
    assert!(!bench.path("runs/before/tables").exists());
    bench.dyno_good(&["report", "runs/before", "runs/after", "--out", "here"]);
    assert!(own() == before && bench.path("here/findings.json").exists());
    // Nothing is written into a run's folder.
    std::fs::rename(bench.path("runs/after"), bench.path("runs/b")).unwrap();
    std::fs::rename(bench.path("runs/before"), bench.path("runs/a")).unwrap();
    std::fs::create_dir(bench.path("runs/a+b")).unwrap();
    std::fs::copy(bench.path("runs/b/manifest.json"), bench.path("runs/a+b/manifest.json"))
        .unwrap();
    let answer = bench.dyno(&["report", "runs/a", "runs/b"]);
    assert_eq!(answer.code, 1, "{}", answer.err);
    assert!(answer.err.contains("runs/a+b is the folder of a run"), "{}", answer.err);
}

#[test]
fn runs_on_unlike_storage_are_no_repetitions_of_each_other() {
    let bench = two_runs(&study("1ms", 7, 3), &study("1ms", 8, 3));
    for (run, filesystem) in [("before", "ext4"), ("after", "tmpfs")] {
        change(&bench, &format!("runs/{run}/manifest.json"), |manifest| {
            manifest["environment"]["facts"]["filesystem"] = filesystem.into();
        });
    }
    bench.dyno_good(&["report", "runs/before", "runs/after", "--out", "here"]);
    let findings = bench.json("here/findings.json");
    assert_eq!(findings["variants"][1]["name"], "server (tmpfs)");
    assert_eq!(findings["cells"][0]["metrics"]["throughput"]["n"], 3);
}

#[test]
fn what_the_design_gives_to_all_trials_distinguishes_runs() {
    let patient = study("1ms", 8, 3).replace("threshold", "retries = 7\n        threshold");
    let bench = two_runs(&study("1ms", 7, 3), &patient);
    bench.dyno_good(&["report", "runs/before", "runs/after", "--out", "here"]);
    let findings = bench.json("here/findings.json");
    assert_eq!(findings["variants"][1]["name"], "server (retries 7)");
}

#[test]
fn a_threshold_has_to_be_below_the_whole() {
    let bench = Workbench::new();
    for command in [&["report", "x"][..], &["compare", "x", "y"]] {
        let answer = bench.dyno(&[command, &["--threshold", "300%"]].concat());
        assert_eq!(answer.code, 2, "{}", answer.err);
        assert!(answer.err.contains("below 100%"), "{}", answer.err);
    }
}
