//! Searches for the highest load under a limit, on servers of known capacity and on real ones.

use serde_json::Value;

use crate::support::{Workbench, events, trial_folder};

/// The rate at which M/M/1's p99 is the limit: response times are exponential with rate μ − λ.
fn true_rate(mean_service_s: f64, limit_s: f64) -> f64 {
    1.0 / mean_service_s - 100_f64.ln() / limit_s
}

fn probes(result: &Value) -> &Vec<Value> {
    result["search"]["probes"].as_array().expect("the search has probes")
}

#[test]
fn the_rate_that_a_simulated_queue_sustains_is_the_one_of_theory() {
    let bench = Workbench::new();
    let arguments = ["oltp_point_select", "--on", "simulated", "--find-rate", "p99 <= 20ms"];
    let times = ["--duration", "60s", "--warm-up", "5s"];
    for seed in ["1", "2", "3"] {
        let result = bench.bench(&[&arguments[..], &times[..], &["--seed", seed]].concat());
        let search = &result["search"];
        let truth = true_rate(1e-3, 20e-3);
        let found = search["found"].as_f64().expect("a rate is found");
        assert!((found / truth - 1.0).abs() < 0.1, "{found} instead of {truth}: {search:#}");
        assert!(search["lowest_broken"].as_f64().expect("a rate broke") > found);
        assert_eq!((&search["unit"], &search["limit"]), (&"1/s".into(), &"p99 ≤ 20 ms".into()));
        // The result has the numbers of the rate found, which held twice.
        assert_eq!(result["rate"], search["found"]);
        assert!(result["response_time_us"]["p99"].as_f64().unwrap() <= 20_000.0);
        let at_found = probes(&result).iter().filter(|probe| probe["offered"] == search["found"]);
        assert!(at_found.filter(|probe| probe["held"] == true).count() >= 2, "{search:#}");
    }
}

#[test]
fn the_clients_that_a_queue_of_constant_service_sustains_are_exact() {
    let bench = Workbench::new();
    // With one server and no think time, n clients wait n ms.
    let result = bench.bench(&[
        "oltp_point_select",
        "--on",
        "simulated",
        "--setting",
        "distribution=constant",
        "--find-clients",
        "p95 <= 20.5ms",
        "--find-precision",
        "1%",
        "--duration",
        "5s",
    ]);
    assert_eq!(result["search"]["found"], 20.0, "{:#}", result["search"]);
    assert_eq!(result["search"]["lowest_broken"], 21.0);
    assert_eq!((&result["search"]["unit"], &result["clients"]), (&"clients".into(), &20.0.into()));
}

#[test]
fn a_limit_that_nothing_keeps_is_reported() {
    let bench = Workbench::new();
    let arguments = ["bench", "oltp_point_select", "--on", "simulated", "--duration", "2s"];
    let limit = ["--find-rate", "mean <= 100us"];
    let answer = bench.dyno_good(&[&arguments[..], &limit[..]].concat());
    assert!(
        answer.out.contains("highest rate with mean ≤ 100 µs: none met the limit"),
        "{}",
        answer.out
    );
    assert!(answer.out.contains("over the limit: mean was"), "{}", answer.out);
    // A limit that everything keeps ends at the maximum.
    let limit = ["--find-clients", "p50 <= 150ms", "--clients", "6"];
    let answer = bench.dyno_good(&[&arguments[..], &limit[..]].concat());
    assert!(
        answer.out.contains("6 met the limit twice, and nothing higher was tried"),
        "{}",
        answer.out
    );
}

#[test]
fn limits_that_cannot_be_searched_are_refused() {
    let bench = Workbench::new();
    let check = |options: &[&str], part: &str| {
        let arguments = ["bench", "oltp_point_select", "--on", "simulated"];
        let answer = bench.dyno(&[&arguments[..], options].concat());
        assert_ne!(answer.code, 0);
        assert!(answer.err.contains(part), "{}", answer.err);
    };
    check(&["--find-rate", "p99 > 20ms"], "write it like");
    check(&["--find-rate", "p99 <= 2s"], "at least 10 times the limit");
    check(&["--find-rate", "p99 <= 2ms", "--find-clients", "p99 <= 2ms"], "cannot be used with");
    check(&["--find-rate", "p99 <= 2ms", "--rate", "5"], "cannot be used with");
    check(&["--find-clients", "p99 <= 2ms", "--rate", "5"], "cannot be used with");
    check(&["--find-precision", "3%"], "--find-rate");
    check(&["--find-rate", "p99 <= 2ms", "--find-precision", "80%"], "between 0.5% and 50%");
}

#[test]
fn a_study_compares_what_two_servers_sustain() {
    let bench = Workbench::new();
    bench.write(
        "study.toml",
        r#"
        title = "Which sustains more under a limit of 20 ms?"
        [database.a]
        product = "simulated"
        settings = { service_time = "2ms", noise = 0.02 }
        [database.b]
        like = "a"
        settings = { service_time = "1ms" }
        [workload.oltp_point_select]
        [design]
        vary = { database = ["a", "b"] }
        find_rate = "p99 <= 20ms"
        repetitions = 4
        warm_up = "2s"
        duration = "20s"
        rest = "0s"
        seed = 11
        "#,
    );
    let answer = bench.dyno_good(&["run", "study.toml"]);
    assert!(answer.out.contains("b sustains"), "{}", answer.out);
    let findings = bench.json("runs/study/findings.json");
    let comparisons = findings["comparisons"].as_array().expect("there are comparisons");
    // Response times at different loads are not compared.
    let metrics: Vec<&str> = comparisons.iter().filter_map(|c| c["metric"].as_str()).collect();
    assert_eq!(metrics, ["rate_at_limit"]);
    assert_eq!(comparisons[0]["verdict"], "better");
    let effect = comparisons[0]["relative"]["value"].as_f64().unwrap();
    let truth = (true_rate(1e-3, 20e-3) / true_rate(2e-3, 20e-3) - 1.0) * 100.0;
    assert!((0.8..1.2).contains(&(effect / truth)), "{effect} % instead of {truth} %");
    assert_eq!(findings["searches"].as_array().expect("there are searches").len(), 8);
    let sql = "SELECT count(*), sum(held) FROM load_probe WHERE trial = 1";
    let output = bench.dyno_good(&["sql", "runs/study", sql, "--tsv"]).out;
    let n_probes = findings["searches"][0]["probes"].as_array().expect("probes").len();
    assert!(output.contains(&format!("{n_probes}\t")), "{output}");
    let report = std::fs::read_to_string(bench.path("runs/study/report.html")).unwrap();
    assert!(report.contains("loads tried by the searches"));
}

fn a_short_search_on(product: &str) {
    let bench = Workbench::new();
    let result = bench.bench(&[
        "oltp_point_select",
        "--on",
        product,
        "--table-size",
        "2000",
        "--find-rate",
        // The median: other work of the machine is in the tails.
        "p50 <= 50ms",
        "--find-precision",
        "30%",
        "--duration",
        "500ms",
        "--warm-up",
        "100ms",
    ]);
    assert!(result["search"]["found"].as_f64().is_some_and(|rate| rate > 0.0), "{result:#}");
    for probe in probes(&result) {
        assert!(probe["offered"].as_f64().is_some_and(|rate| rate > 0.0), "{probe}");
        assert!(probe["throughput_tps"].is_f64() && probe["held"].is_boolean(), "{probe}");
    }
}

#[test]
fn a_search_runs_on_mariadb() {
    a_short_search_on("mariadb");
}

#[test]
fn a_search_runs_on_postgresql() {
    a_short_search_on("postgresql");
}

#[test]
fn a_search_of_a_study_that_is_stopped_is_kept_and_done_again() {
    let bench = Workbench::new();
    bench.write(
        "study.toml",
        "title = 'Which rate holds?'\n[database.a]\nproduct = 'null-mysql'\n\
         [workload.oltp_point_select]\n[design]\nfind_rate = 'p50 <= 30ms'\nclients = 2\n\
         find_precision = '50%'\nrepetitions = 1\nwarm_up = '0s'\nduration = '300ms'\nrest = '0s'\n",
    );
    let mut running = bench.start(&["run", "study.toml"]);
    running.wait_for(&["probe 2 at"]);
    running.signal(rustix::process::Signal::INT);
    running.wait_for(&["stopped; what the unfinished trial measured stays in its folder"]);
    assert_eq!(running.end(), 130);
    let run = bench.path("runs/study");
    let probes = |trial: &std::path::Path| events(trial).matches("\"load_probed\"").count();
    assert!(probes(&trial_folder(&run, 1)) >= 2, "its probes are in the record");
    // The same command repeats the trial, and keeps the first one's probes.
    bench.dyno_good(&["run", "study.toml"]);
    assert!(probes(&run.join("trials/0001-a.unfinished-1")) >= 2);
    let findings = bench.json("runs/study/findings.json");
    assert_eq!(findings["trials"][0]["state"], "finished", "{:#}", findings["trials"]);
}
