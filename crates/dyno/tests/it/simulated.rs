//! The whole pipeline on a simulated server of known behaviour.

use serde_json::Value;

use crate::support::Workbench;

/// `b` differs from `a` in its mean service time.
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
    // 500 of 10,000 arrivals met the stall; the first waited for a second.
    assert!(us("response_p999") > 900_000.0, "{metrics:#}");
    assert!(us("response_p50") < 2_000.0, "{metrics:#}");
    // Four had been sent when the server stopped; the others waited to be sent, with the usual
    // service time.
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

/// What limited the only variant at its only load level.
fn bound_by(settings: &str, workload: &str, load: &str) -> Value {
    let study = format!(
        r#"
        title = "What limits it?"
        [database.a]
        product = "simulated"
        settings = {{ {settings} }}
        {workload}
        [design]
        {load}
        repetitions = 3
        warm_up = "1s"
        duration = "20s"
        rest = "0s"
        seed = 5
        "#
    );
    let (_bench, findings) = run(&study);
    findings["bound_by"][0].clone()
}

/// Of a simulated server nothing is known but what its clients saw: that decides where they asked for
/// less than it can do, and nowhere else.
#[test]
fn clients_that_ask_for_less_than_the_server_can_do_limit_throughput() {
    let check = |found: &Value, by: &str, text: &str| {
        assert_eq!(found["by"], by, "{found:#}");
        assert_eq!((&found["agreeing"], &found["n"]), (&3.into(), &3.into()), "{found:#}");
        assert!(found["text"].as_str().is_some_and(|own| own.contains(text)), "{found:#}");
    };
    let point_select = "[workload.oltp_point_select]";
    // A tenth of 1,000/s, nine tenths of it, and twice as much.
    let offered = |rate: u32| format!("rate = {rate}\nclients = 100");
    let found = bound_by("service_time = \"1ms\"", point_select, &offered(100));
    check(&found, "rate", "nothing: the offered rate");
    let found = bound_by("service_time = \"1ms\"", point_select, &offered(900));
    check(&found, "rate", "nothing: the offered rate");
    let found = bound_by("service_time = \"1ms\"", point_select, &offered(2000));
    check(&found, "unknown", "not known");
    // Pauses of a second between reads of some milliseconds.
    let pausing = "[workload.dbstress]\nthink_time_ms = 1000";
    let found = bound_by("service_time = \"100us\", servers = 4", pausing, "clients = 4");
    check(&found, "clients", "nothing: the clients' own waiting");
    let found = bound_by("service_time = \"1ms\"", point_select, "clients = 4");
    check(&found, "unknown", "not known");
    assert!(found["why"].as_str().is_some_and(|why| why.contains("simulated")), "{found:#}");
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

#[test]
fn a_stepped_rate_offers_what_it_says_second_by_second() {
    let bench = Workbench::new();
    let arguments = ["oltp_point_select", "--on", "simulated", "--setting", "servers=8"];
    let load = ["--rate", "100 for 2s, 1k for 1s, 0 for 1s", "--arrivals", "constant"];
    let times = ["--duration", "8s", "--warm-up", "1s", "--out", "record"];
    let result = bench.bench(&[&arguments[..], &load[..], &times[..]].concat());
    assert_eq!(result["stepped"], "100/s for 2s, 1000/s for 1s, 0/s for 1s");
    assert_eq!((&result["rate"], &result["outcomes"]["missed"]), (&300.0.into(), &0.into()));
    let transactions = result["transactions"].as_i64().unwrap();
    assert!((2370..=2400).contains(&transactions), "{transactions}");
    let folder = crate::support::trial_folder(&bench.path("record"), 1);
    let summary = crate::support::read_json(&folder.join("summary.json"));
    let seconds = summary["steps"][0]["intervals"]["throughput"].as_array().unwrap();
    // The warm-up has the first rate; transactions under way at a second's end count in the next.
    let expected = [100.0, 100.0, 100.0, 1000.0, 0.0, 100.0, 100.0, 1000.0, 0.0];
    assert_eq!(seconds.len(), expected.len(), "{seconds:?}");
    for (found, expected) in seconds.iter().zip(expected) {
        assert!((found.as_f64().unwrap() - expected).abs() < 40.0, "{seconds:?}");
    }
}

#[test]
fn a_step_goes_on_until_it_is_steady_or_its_time_is_over() {
    let bench = Workbench::new();
    let run = |settings: &[&str]| {
        let arguments = ["oltp_point_select", "--on", "simulated", "--warm-up", "1s"];
        let times = ["--duration", "10s", "--until-steady", "30s"];
        bench.bench(&[&arguments[..], &times[..], settings].concat())
    };
    // The four-second stall must leave the ten steady seconds; then one second is under way.
    let steady = run(&["--setting", "stall_at=2s", "--setting", "stall=4s"]);
    assert_eq!(
        (&steady["ended_by"], steady["measured_s"].as_f64()),
        (&"steady".into(), Some(17.0))
    );
    let unsteady = run(&["--setting", "drift=3600"]);
    assert_eq!(unsteady["ended_by"], "unsteady");
    assert_eq!(unsteady["measured_s"], 30.0);
    let caveats = unsteady["caveats"].as_array().unwrap();
    assert!(caveats.iter().any(|caveat| caveat["kind"] == "unfinished_quota"), "{caveats:#?}");
    let answer =
        bench.dyno(&["bench", "oltp_point_select", "--on", "simulated", "--until-steady", "5s"]);
    assert_eq!(answer.code, 2);
    assert!(answer.err.contains("steady for --duration, which is 10 s"), "{}", answer.err);
}

#[test]
fn steps_of_a_study_may_have_rates_that_change() {
    let bench = Workbench::new();
    bench.write(
        "study.toml",
        r#"
        title = "What does a spike do?"
        [database.queue]
        product = "simulated"
        [workload.oltp_point_select]
        [design]
        vary = { rate = [300, "300 for 8s, 1500 for 2s"] }
        repetitions = 3
        warm_up = "1s"
        duration = "20s"
        rest = "0s"
        seed = 5
        "#,
    );
    bench.dyno_good(&["run", "study.toml"]);
    let findings = bench.json("runs/study/findings.json");
    let names: Vec<&str> =
        findings["steps"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["300/s", "300/s for 8s, 1500/s for 2s"]);
    // A spike above capacity is in the response times of all arrivals in it.
    let p99 = |step: usize| {
        let cells = findings["cells"].as_array().unwrap();
        let cell = cells.iter().find(|cell| cell["step"] == step).unwrap();
        cell["metrics"]["response_p99"]["value"].as_f64().unwrap()
    };
    assert!(p99(1) > 10.0 * p99(0), "{} and {}", p99(0), p99(1));
}

#[test]
fn with_a_store_rows_are_true_and_the_same_each_time() {
    let study = r#"
        title = "Do transactions that read what they write work in simulated time?"
        [database.rows]
        product = "simulated"
        settings = { service_time = "100us", servers = 4, deadlocks = 0.002, store = "sqlite" }
        [workload.tpcc]
        size = "small"
        warehouses = 2
        [design]
        clients = 4
        repetitions = 2
        warm_up = "0s"
        duration = "3s"
        rest = "0s"
        seed = 5
    "#;
    let (bench, first) = run(study);
    let audits = |findings: &Value| -> Vec<Value> {
        let trials = findings["trials"].as_array().expect("there are trials");
        trials.iter().map(|trial| trial["audit"].clone()).collect()
    };
    for audit in audits(&first) {
        let rows = audit.as_array().expect("it was audited");
        let failed: Vec<&Value> = rows.iter().filter(|row| row["pass"] != true).collect();
        assert!(rows.len() > 50 && failed.is_empty(), "{failed:#?}");
    }
    let new_orders = first["kinds"].as_array().expect("there are kinds");
    let new_orders = new_orders.iter().find(|kind| kind["kind"] == "new_order").expect("one is");
    assert!(new_orders["outcomes"]["deadlock"].as_u64() > Some(0), "{new_orders:#}");
    assert!(new_orders["outcomes"]["refused"].is_null(), "{new_orders:#}");
    let page = std::fs::read_to_string(bench.path("runs/study/report.html")).expect("a page");
    assert!(page.contains("per minute: NOPM"));

    let (_bench, second) = run(study);
    assert_eq!(first["cells"], second["cells"]);
    assert_eq!(audits(&first), audits(&second));
}
