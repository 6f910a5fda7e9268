//! The whole pipeline on a simulated server whose truth is known.

use serde_json::Value;

use crate::support::Workbench;

/// A study of two simulated servers; `b` differs from `a` by its mean service time.
fn two_servers(service_b: &str, extra: &str) -> String {
    format!(
        r#"
        title = "Is b slower than a?"
        [database.a]
        product = "simulated"
        settings = {{ service_time = "1ms", noise = 0.02 }}
        [database.b]
        like = "a"
        settings = {{ service_time = "{service_b}" }}
        [workload.oltp_point_select]
        [design]
        vary = {{ database = ["a", "b"] }}
        clients = 4
        repetitions = 6
        warm_up = "2s"
        duration = "20s"
        rest = "0s"
        seed = 11
        threshold = "3%"
        {extra}
        "#
    )
}

fn run(study: &str) -> (Workbench, Value) {
    let bench = Workbench::new();
    bench.write("study.toml", study);
    bench.dyno_good(&["run", "study.toml"]);
    let findings = bench.json("runs/study/findings.json");
    (bench, findings)
}

fn throughput_comparison(findings: &Value) -> &Value {
    findings["comparisons"]
        .as_array()
        .expect("there are comparisons")
        .iter()
        .find(|comparison| comparison["metric"] == "throughput")
        .expect("throughput is compared")
}

#[test]
fn an_injected_slowdown_of_ten_percent_is_found() {
    let (_bench, findings) = run(&two_servers("1.1ms", ""));
    let found = throughput_comparison(&findings);
    assert_eq!(found["verdict"], "worse", "{found:#}");
    let effect = found["relative"]["value"].as_f64().unwrap();
    // 1/1.1 is 9.1 % less.
    assert!((-11.0..-7.0).contains(&effect), "{effect}");
    let (low, high) =
        (found["relative"]["low"].as_f64().unwrap(), found["relative"]["high"].as_f64().unwrap());
    assert!(low <= -9.09 + 1.0 && high >= -9.09 - 1.0, "{low} … {high}");
}

#[test]
fn the_same_server_twice_shows_no_difference() {
    let (_bench, findings) = run(&two_servers("1ms", ""));
    let found = throughput_comparison(&findings);
    assert!(found["verdict"] == "no_difference" || found["verdict"] == "inconclusive", "{found:#}");
    assert!(findings["caveats"].to_string().contains("simulated"));
}

#[test]
fn a_stall_of_one_second_shows_in_response_time() {
    let study = r#"
        title = "What does a stall look like?"
        [database.stalling]
        product = "simulated"
        settings = { service_time = "1ms", distribution = "constant", servers = 4, stall_at = "5s", stall = "1s" }
        [workload.oltp_point_select]
        [design]
        rate = 500
        arrivals = "constant"
        clients = 4
        repetitions = 1
        warm_up = "1s"
        duration = "20s"
        seed = 3
    "#;
    let (bench, findings) = run(study);
    let metrics = &findings["cells"][0]["metrics"];
    let us = |metric: &str| metrics[metric]["value"].as_f64().unwrap_or_default();
    // 500 arrivals of 10 000 met the stall; the first waited for a second.
    assert!(us("response_p999") > 900_000.0, "{metrics:#}");
    assert!(us("response_p50") < 2_000.0, "{metrics:#}");
    // Four of them had been sent when the server stood still; the others waited to be sent, and
    // their service took what it always takes.
    assert!(us("service_p95") < 2_000.0, "{metrics:#}");
    let report = std::fs::read_to_string(bench.path("runs/study/report.html")).unwrap();
    assert!(report.contains("What does a stall look like?"));
}

#[test]
fn overload_counts_the_arrivals_that_were_never_sent() {
    let study = r#"
        title = "Too much"
        [database.small]
        product = "simulated"
        settings = { service_time = "10ms" }
        [workload.oltp_point_select]
        [design]
        rate = 200
        clients = 10
        repetitions = 3
        warm_up = "0s"
        duration = "10s"
        seed = 3
    "#;
    let (_bench, findings) = run(study);
    let missed = findings["cells"][0]["missed"].as_u64().unwrap();
    // About 100 of 200 arrivals a second are served, in three repetitions of ten seconds.
    assert!((2_000..4_000).contains(&missed), "{missed}");
    assert!(findings["caveats"].to_string().contains("missed_arrivals"));
}

#[test]
fn the_same_seed_gives_the_same_findings() {
    let study = two_servers("1.2ms", "order = \"interleaved\"");
    let (_, first) = run(&study);
    let (_, second) = run(&study);
    assert_eq!(first["comparisons"], second["comparisons"]);
    assert_eq!(first["cells"], second["cells"]);
}

#[test]
fn the_record_can_be_queried() {
    let (bench, findings) = run(&two_servers("1ms", ""));
    let answer = bench.dyno_good(&[
        "sql",
        "runs/study",
        "SELECT count(DISTINCT trial), count(*) FROM results WHERE variant IN ('a', 'b')",
        "--tsv",
    ]);
    assert!(answer.out.contains("12\t12"), "{}", answer.out);
    assert_eq!(findings["trials"].as_array().unwrap().len(), 12);
    let wrong = bench.dyno(&["sql", "runs/study", "SELECT nonsense FROM results"]);
    assert_eq!(wrong.code, 1);
    assert!(wrong.err.contains("nonsense"), "{}", wrong.err);
}
