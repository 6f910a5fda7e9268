//! `dyno gate` in a pipeline: exit codes, formats, refusals.

use crate::support::{Answer, Workbench};

/// `same` is as `old`, `slow` a quarter slower, `wild` as fast but very noisy.
fn bench(design: &str) -> Workbench {
    let bench = Workbench::new();
    let study = format!(
        r#"
        title = "Which of them is slower?"
        [database.old]
        product = "simulated"
        settings = {{ service_time = "1ms", noise = 0.01 }}
        [database.same]
        like = "old"
        [database.slow]
        like = "old"
        settings = {{ service_time = "1.25ms" }}
        [database.wild]
        like = "old"
        settings = {{ noise = 0.5 }}
        [workload.oltp_point_select]
        [design]
        database = "old"
        clients = 4
        repetitions = 6
        warm_up = "0s"
        duration = "5s"
        rest = "0s"
        seed = 7
        threshold = "10%"
        {design}
        "#
    );
    bench.write("study.toml", &study);
    bench
}

#[track_caller]
fn gate(bench: &Workbench, arguments: &[&str], code: i32) -> Answer {
    let all = [&["gate"], arguments, &["--study", "study.toml"]].concat();
    let answer = bench.dyno(&all);
    assert_eq!(answer.code, code, "dyno {all:?}\n{}\n{}", answer.out, answer.err);
    answer
}

#[test]
fn an_equal_build_passes_and_a_slower_one_does_not() {
    let bench = bench("");
    let passed = gate(&bench, &["old", "same"], 0);
    assert!(passed.out.ends_with("gate: no worse\n"), "{}", passed.out);
    assert!(passed.err.contains("2 variants × 6 repetitions = 12 trials"), "{}", passed.err);
    let failed = gate(&bench, &["old", "slow"], 1);
    let expected = "gate: worse:\n  throughput of slow at 4 clients (";
    assert!(failed.out.contains(expected), "{}", failed.out);
    assert!(failed.out.contains("record and report in runs/gate-2"), "{}", failed.out);
    assert!(bench.path("runs/gate-2/report.html").is_file());
    // The other way round the new build is faster.
    let faster = gate(&bench, &["slow", "old", "--quiet"], 0);
    assert_eq!((faster.out.as_str(), faster.err.as_str()), ("no worse\n", ""));
}

#[test]
fn a_noisy_build_is_not_called_worse() {
    let bench = bench("");
    let answer = gate(&bench, &["old", "wild", "--repetitions", "2"], 2);
    assert!(answer.out.contains("gate: undecided: throughput of wild"), "{}", answer.out);
}

#[test]
fn json_and_junit_name_variants_and_steps() {
    let bench = bench("");
    // A link of this name is not followed.
    bench.write("outside", "mine");
    std::os::unix::fs::symlink(bench.path("outside"), bench.path("gate.xml")).expect("it is new");
    let answer = gate(&bench, &["old", "slow", "--format", "json", "--junit", "gate.xml"], 1);
    assert_eq!(std::fs::read_to_string(bench.path("outside")).expect("it is there"), "mine");
    let value: serde_json::Value = serde_json::from_str(&answer.out).expect("it is JSON");
    assert_eq!(value["gate"]["answer"], "worse");
    assert_eq!(value["record"], "runs/gate");
    let row = &value["rows"][0];
    let names = [&row["variant"], &row["baseline"], &row["step"], &row["call"]];
    assert_eq!(names, ["slow", "old", "4 clients", "worse"], "{row:#}");
    let xml = std::fs::read_to_string(bench.path("gate.xml")).expect("it is written");
    assert!(xml.contains("<testsuite name=\"dyno gate\" tests=\"3\" failures=\""), "{xml}");
    assert!(xml.contains("name=\"throughput of slow at 4 clients\""), "{xml}");
    assert!(xml.contains("<failure message=\"worse: throughput of slow at 4 clients ("), "{xml}");
}

#[test]
fn what_the_study_demands_is_demanded_of_the_new_build() {
    // Four clients share one server: a transaction takes 4 ms, and 5 ms on `slow`.
    let bench = bench("require = \"mean <= 4.5ms\"");
    let met = gate(&bench, &["old", "same"], 0);
    assert!(!met.err.contains("required"), "{}", met.err);
    let broken = gate(&bench, &["old", "slow", "--threshold", "50%"], 1);
    assert!(broken.out.ends_with("gate: no worse\n"), "{}", broken.out);
    let expected = "required but not met: mean ≤ 4.5 ms (slow at 4 clients)";
    assert!(broken.err.contains(expected), "{}", broken.err);
    // Nothing is demanded of the old build.
    gate(&bench, &["slow", "same"], 0);
}

#[test]
fn what_goes_wrong_is_no_verdict() {
    let bench = bench("");
    let check = |arguments: &[&str], expected: &str| {
        let answer = bench.dyno(&[&["gate"], arguments].concat());
        assert_eq!(answer.code, 2, "{arguments:?} {}", answer.err);
        assert!(answer.err.contains(expected), "{arguments:?} {}", answer.err);
    };
    let study = |old, new| [old, new, "--study", "study.toml"];
    check(&study("old", "newer"), "the study has no database `newer`; it has old, same, slow");
    check(&["old", "same", "--study", "none.toml"], "cannot read the study none.toml");
    check(
        &[&study("old", "same")[..], &["--out", "study.toml"]].concat(),
        "study.toml is a file; the record needs a folder",
    );
    check(
        &[&study("old", "same")[..], &["--junit", "no/such/gate.xml"]].concat(),
        "cannot write no/such/gate.xml: there is no folder no/such",
    );
    let product = ["--on", "mariadb", "--workload", "tpcb"];
    check(&[&["a/bin", "b/bin"][..], &product].concat(), "there is no folder a/bin");
    check(&[&["a", "b", "--threads", "4"][..], &product].concat(), "`--clients 1,8`");
}
