//! One run against another: as text, as files, and as a gate.

use crate::support::Workbench;

/// A study of one simulated server.
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

/// A bench with two runs, `runs/before` and `runs/after`.
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
    assert!(answer.err.contains("gate: worse: throughput of server, after"), "{}", answer.err);
    // In a pull request the gate's word comes first, then what it rests on.
    let markdown = ["--gate", "--format", "markdown"];
    let answer = bench.dyno(&[&PAIR[..], &markdown].concat());
    assert_eq!(answer.code, 1, "{}", answer.err);
    assert!(answer.out.starts_with("**Gate: worse: throughput of server, after"), "{}", answer.out);
    assert!(answer.out.contains("| p95 response time | bounds | verdict | n |"), "{}", answer.out);
    // Without the gate it is said, and no failure.
    let answer = bench.dyno_good(&PAIR);
    assert!(answer.out.contains("slower than server"), "{}", answer.out);
}

#[test]
fn one_repetition_cannot_say() {
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
    // A record that is not there is an error, and for a gate nothing that could be said.
    assert_eq!(bench.dyno(&["compare", "runs/before", "runs/none"]).code, 1);
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
}
