//! `dyno bench`: every workload on every product, and the fields its JSON promises.

use serde_json::Value;

use crate::foreign::Standing;
use crate::support::{Workbench, read_json, trial_folder};

/// Workload, and statements per transaction as in sysbench (none if their number varies).
const WORKLOADS: [(&str, Option<u64>); 12] = [
    ("oltp_read_only", Some(16)),
    ("oltp_read_write", Some(20)),
    ("oltp_write_only", Some(6)),
    ("oltp_point_select", Some(1)),
    ("oltp_update_index", Some(1)),
    ("oltp_update_non_index", Some(1)),
    ("oltp_delete", Some(1)),
    ("oltp_insert", Some(1)),
    ("bulk_insert", None),
    ("select_random_points", Some(1)),
    ("select_random_ranges", Some(1)),
    ("tpcb", Some(7)),
];

#[track_caller]
fn check_result(result: &Value, workload: &str, statements: Option<u64>) {
    for pointer in [
        "/throughput_tps",
        "/statements_per_s",
        "/response_time_us/mean",
        "/response_time_us/p50",
        "/response_time_us/max",
        "/generator/cpu_user_us_per_statement",
        "/generator/cpu_system_us_per_statement",
        "/generator/rss_mib",
    ] {
        let value = result.pointer(pointer).and_then(Value::as_f64);
        assert!(value.is_some_and(f64::is_finite), "{workload}: {pointer} is {value:?}");
    }
    let count = |name: &str| result[name].as_u64().unwrap_or_default();
    assert!(count("transactions") > 0, "{workload}: {result:#}");
    // A percentile needs transactions beyond it.
    for (name, least) in [("p95", 20), ("p99", 100), ("p999", 1000)] {
        let value = result["response_time_us"][name].as_f64();
        assert_eq!(
            value.is_some(),
            count("transactions") >= least,
            "{workload}: {name} is {value:?}"
        );
    }
    assert_eq!(result["outcomes"]["committed"], result["transactions"], "{workload}");
    if let Some(statements) = statements
        && result["outcomes"].as_object().is_some_and(|outcomes| {
            outcomes.iter().all(|(name, n)| name == "committed" || n.as_u64() == Some(0))
        })
    {
        assert_eq!(count("statements"), statements * count("transactions"), "{workload}");
    }
}

#[track_caller]
pub(crate) fn check_audit(result: &Value, workload: &str) {
    let rows = result["audit"].as_array().unwrap();
    assert!(!rows.is_empty(), "{workload} has no audit");
    no_check_fails(result, workload);
}

/// A workload that only reads leaves nothing to check where a job runs alone.
fn no_check_fails(result: &Value, what: &str) {
    let rows = result["audit"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["pass"] == true), "{what}: {rows:#?}");
}

/// Repeats with a longer trial if nothing was committed, as on a busy machine or with slow statements.
#[track_caller]
fn measured(bench: &Workbench, arguments: &[&str]) -> Value {
    measured_until(bench, arguments, |_| true)
}

/// The same; a longer one, too, if something that a short load may miss was not seen.
#[track_caller]
fn measured_until(bench: &Workbench, arguments: &[&str], is_seen: fn(&Value) -> bool) -> Value {
    let mut said = Vec::new();
    for duration in ["400ms", "4s", "40s"] {
        let all = [&["bench"], arguments, &["--duration", duration, "--json"]].concat();
        let answer = bench.dyno(&all);
        if answer.code == 0 {
            let result: Value = serde_json::from_str(&answer.out).expect("bench prints JSON");
            // A single transaction has no median; one of bulk_insert may send no statement.
            let is_measured = result["transactions"].as_u64() > Some(1)
                && result["statements"].as_u64() > Some(0);
            if is_measured && is_seen(&result) {
                return result;
            }
        }
        said.push(answer.err);
    }
    panic!("{arguments:?}: {said:#?}");
}

/// The first workload runs on a private server; the others, to save time, on a standing one.
fn every_workload_on(product: &str) {
    let bench = Workbench::new();
    let has_server = matches!(product, "mariadb" | "postgresql");
    let standing = has_server.then(|| Standing::start(product));
    let url = standing.as_ref().map(|server| server.url("benches"));
    for (nth, (workload, statements)) in WORKLOADS.into_iter().enumerate() {
        let on = url.as_deref().filter(|_| nth > 0).unwrap_or(product);
        let mut arguments = vec![workload, "--on", on];
        arguments.extend(["--warm-up", "100ms", "--clients", "2"]);
        if !matches!(workload, "bulk_insert" | "tpcb") {
            arguments.extend(["--table-size", "2000"]);
        }
        // Its CPU time is counted in ticks of 10 ms.
        let has_cpu = |result: &Value| result["server"]["cpu_us_per_statement"].is_number();
        let is_private = product != "sqlite" && on == product;
        let result =
            measured_until(&bench, &arguments, if is_private { has_cpu } else { |_| true });
        check_result(&result, workload, statements);
        check_audit(&result, workload);
        let refused = result["outcomes"]["refused"].as_u64().unwrap_or_default();
        assert_eq!(refused, 0, "{workload} on {product}: {}", result["errors"]);
    }
}

#[test]
fn indexes_are_created_alone_and_beside_the_load() {
    let bench = Workbench::new();
    for product in ["sqlite", "mariadb", "postgresql"] {
        let on = ["create-index", "--on", product, "--table-size", "2000"];
        let result = bench.bench(&on);
        let activity = &result["job"]["activities"][0];
        assert_eq!(
            (&activity["is_done"], &activity["name"]),
            (&true.into(), &"create-index".into())
        );
        assert_eq!(activity["output"].as_array().map(Vec::len), Some(3), "{activity:#}");
        let figures = result["job"]["figures"].as_array().unwrap();
        let time = figures.iter().find(|figure| figure["id"] == "job.time").unwrap();
        assert!(time["value"].as_f64().unwrap() > 0.0 && time["unit"] == "s", "{time}");
        assert_eq!(result["transactions"], 0, "{product}: there is no load");
        no_check_fails(&result, product);
    }
    let beside = ["create-index", "--on", "postgresql", "--table-size", "2000", "--clients", "2"];
    let beside = [&beside[..], &["--load", "until-done", "--start-after", "2s"]].concat();
    let result = bench.bench(&[&beside[..], &["--at-once", "3"]].concat());
    assert!(
        result["transactions"].as_u64() > Some(0)
            && result["job"]["activities"][0]["is_done"] == true
    );

    let text =
        bench.dyno_good(&["bench", "create-index", "--on", "sqlite", "--table-size", "2000"]).out;
    assert!(
        text.contains("\njob             create-index ") && !text.contains("throughput"),
        "{text}"
    );
}

#[test]
fn tables_are_dumped_restored_and_migrated() {
    let bench = Workbench::new();
    let check = |arguments: &[&str]| {
        let result = bench.bench(arguments);
        let activity = &result["job"]["activities"][0];
        let is_it = activity["is_done"] == true && activity["name"] == arguments[0];
        assert!(is_it, "{activity:#}");
        result
    };
    for product in ["mariadb", "postgresql"] {
        let on = ["--on", product, "--tables", "2", "--table-size", "500"];
        let result = check(&[&["restore"], &on[..]].concat());
        let figures = result["job"]["figures"].as_array().unwrap();
        assert!(figures.iter().any(|figure| figure["id"] == "job.data_per_s"), "{figures:?}");
        check_audit(&result, product);
        let result = check(&[&["dump"], &on[..]].concat());
        check_audit(&result, product);
    }
    // Beside a load, updates that meet the mover are lost, as the audit says (studies/migration).
    let migrate = ["migrate", "--on", "postgresql", "--load", "off"];
    let result = check(&[&migrate[..], &["--batch", "20000", "--pause", "0s"]].concat());
    check_audit(&result, "tpcb");
    let rows = result["job"]["figures"].as_array().unwrap();
    let rows = rows.iter().find(|figure| figure["id"] == "job.rows").unwrap();
    assert_eq!(rows["value"], 100_000.0);
}

/// The end of the load stopped the job.
#[test]
fn an_index_that_was_not_finished_is_no_measurement() {
    let arguments =
        ["create-index", "--on", "postgresql", "--table-size", "10", "--duration", "1s"];
    let endless = ["--sql", "SELECT pg_sleep(600)", "--load", "on"];
    let result = Workbench::new().bench_to(1, &[&arguments[..], &endless].concat());
    assert_eq!(result["job"]["activities"][0]["is_done"], false);
}

#[test]
fn every_workload_runs_on_sqlite() {
    every_workload_on("sqlite");
}

#[test]
fn every_workload_runs_on_mariadb() {
    every_workload_on("mariadb");
}

#[test]
fn every_workload_runs_on_postgresql() {
    every_workload_on("postgresql");
}

#[test]
fn every_workload_runs_on_the_simulated_server() {
    let bench = Workbench::new();
    for (workload, statements) in WORKLOADS {
        let result = measured(&bench, &[workload, "--on", "simulated"]);
        check_result(&result, workload, statements);
    }
}

#[test]
fn every_distribution_runs() {
    let bench = Workbench::new();
    for distribution in ["uniform", "gaussian", "special", "pareto", "zipfian"] {
        let arguments = ["oltp_read_only", "--on", "sqlite"];
        let options = ["--table-size", "1000", "--distribution", distribution];
        let result = measured(&bench, &[&arguments[..], &options[..]].concat());
        check_result(&result, distribution, Some(16));
    }
}

#[test]
fn rondbs_additions_run_on_every_product() {
    let bench = Workbench::new();
    for product in ["sqlite", "mariadb", "postgresql"] {
        let arguments = ["oltp_read_only", "--on", product];
        let options = ["--table-size", "1000", "--point-select-keys", "10", "--row-filter", "on"];
        let result = measured(&bench, &[&arguments[..], &options[..]].concat());
        check_result(&result, product, Some(16));
        // Ten point selects of up to ten rows, four ranges of one row. A transaction may be running at the end.
        let rows = result["rows_received"].as_f64().unwrap();
        let transactions = result["transactions"].as_f64().unwrap();
        let expected = 90.0 * transactions..=104.0 * (transactions + 1.0);
        assert!(expected.contains(&rows), "{product}: {rows} rows of {transactions}");
    }
}

#[test]
fn open_load_keeps_its_rate() {
    let bench = Workbench::new();
    let arguments = ["oltp_point_select", "--on", "mariadb", "--rate", "200"];
    let options = ["--duration", "5s", "--table-size", "1000", "--arrivals", "constant"];
    // Transactions that run when a warm-up ends would count as sent, but not as due.
    let more = ["--warm-up", "0s", "--out", "record"];
    bench.bench(&[&arguments[..], &options[..], &more[..]].concat());
    let trial = trial_folder(&bench.path("record"), 1);
    let step = read_json(&trial.join("summary.json"))["steps"][0].clone();
    // How many are sent in time depends on the machine; none is forgotten.
    let outcomes = step["kinds"][0]["outcomes"].as_object().unwrap();
    let sent: u64 = outcomes.values().filter_map(Value::as_u64).sum();
    let rest = ["missed", "in_flight_at_end"].map(|name| step[name].as_u64().unwrap());
    assert_eq!((step["due"].as_u64(), sent + rest[0] + rest[1]), (Some(1000), 1000), "{step:#}");
    assert!(outcomes["committed"].as_u64() > Some(0), "{outcomes:?}");
}

#[test]
fn wrong_options_are_refused_in_words() {
    let bench = Workbench::new();
    let check = |arguments: &[&str], expected: &str| {
        let answer = bench.dyno(arguments);
        assert_ne!(answer.code, 0);
        assert!(answer.err.contains(expected), "{arguments:?}: {}", answer.err);
    };
    check(&["bench", "oltp_read_only", "--on", "oracle"], "there is no product `oracle`");
    check(&["bench", "oltp_read_only", "--on", "sqlite", "--tables", "many"], "`many`");
    check(
        &["bench", "oltp_read_only", "--on", "sqlite", "--clients", "0"],
        "--clients must be at least 1",
    );
    check(&["bench", "oltp_reed_only", "--on", "sqlite"], "oltp_read_only");
    let on_sqlite = |options: &[&str], expected: &str| {
        let arguments = ["bench", "oltp_read_only", "--on", "sqlite"];
        check(&[&arguments[..], options].concat(), expected);
    };
    on_sqlite(&["--duration", "0s"], "--duration must be longer than zero");
    on_sqlite(&["--clients", "1000001"], "--clients must be between 1 and 1000000");
    on_sqlite(&["--rate", "fast"], "`fast` is not a rate");
    on_sqlite(&["--rate", "5 for 9s", "--duration", "5s"], "too short for the stepped rate");
    on_sqlite(&["--rate", "0"], "--rate: a rate must be above 0");
    check(&["bench", "oltp_read_only", "--on", "oracle://h/c"], "unsupported URL scheme `oracle`");
    check(&["bench", "oltp_read_only", "--on", "mysql://me@h"], "names no database");
    let url = "mysql://me@127.0.0.1:1/x";
    check(
        &["bench", "oltp_read_only", "--on", url, "--engine", "RocksDB"],
        "--engine cannot be combined with `url`: only for servers that Dyno starts",
    );
    check(
        &["bench", "oltp_read_only", "--on", "sqlite", "--setting", "jounral_mode=wal"],
        "jounral_mode",
    );
    check(&["bench", "oltp_read_only", "--on", "mysql://root@127.0.0.1:1/x"], "127.0.0.1");
}

#[test]
fn caveats_are_reported_with_the_result() {
    let bench = Workbench::new();
    let arguments = ["oltp_point_select", "--on", "simulated", "--duration", "2s"];
    let result = bench.bench(&[&arguments[..], &["--out", "record"]].concat());
    let kinds: Vec<&str> =
        result["caveats"].as_array().unwrap().iter().filter_map(|c| c["kind"].as_str()).collect();
    assert!(kinds.contains(&"simulated") && !kinds.contains(&"too_few_repetitions"), "{kinds:?}");
    // No folder is measured into twice, and no old result passes for a new one.
    let again = ["bench"].iter().chain(&arguments).chain(&["--out", "record"]).copied();
    let answer = bench.dyno_good(&again.collect::<Vec<_>>());
    assert!(answer.err.contains("nothing was measured"), "{}", answer.err);
    assert!(answer.out.contains("caveat "), "{}", answer.out);
}

#[test]
fn a_bench_checks_its_settings_before_it_begins() {
    let bench = Workbench::new();
    let check = |setting: &str, expected: &str| {
        let answer = bench.dyno(&["bench", "tpcb", "--on", "sqlite", "--setting", setting]);
        assert_eq!(answer.code, 2, "{}", answer.err);
        assert!(answer.err.contains(expected), "{}", answer.err);
        assert!(answer.err.contains("nothing was run"), "{}", answer.err);
        assert!(!answer.err.contains("[trial"), "{}", answer.err);
    };
    check("jurnal_mode=wal", "has no setting `jurnal_mode`");
}

#[test]
fn a_bench_says_by_its_exit_code_whether_demands_are_met() {
    let bench = Workbench::new();
    let check = |demands: &[&str], code: i32, expected: &str| {
        let mut arguments = vec!["bench", "oltp_point_select", "--on", "simulated"];
        demands.iter().for_each(|demand| arguments.extend(["--require", demand]));
        let answer = bench.dyno(&arguments);
        assert_eq!(answer.code, code, "{demands:?} {}", answer.err);
        assert!(answer.err.contains(expected), "{demands:?} {}", answer.err);
    };
    check(&["p99 <= 10s", "throughput >= 1"], 0, "");
    check(&["p99 <= 10s", "p50 <= 1us"], 1, "required but not met: p50 ≤ 1 µs (simulated at 1");
    check(&["p98 <= 10s"], 2, "--require: `p98` cannot have a limit");
    let out = ["bench", "tpcb", "--on", "sqlite", "--out", "a-file"];
    bench.write("a-file", "");
    let answer = bench.dyno(&out);
    assert_eq!(answer.code, 2, "{}", answer.err);
    assert!(answer.err.contains("a-file is a file; the record needs a folder"), "{}", answer.err);
}
