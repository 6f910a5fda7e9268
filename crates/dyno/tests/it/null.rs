//! Servers that reply at once: measures the generator, and a stall of known length.

use serde_json::Value;

use crate::support::Workbench;

const SHORT: [&str; 4] = ["--duration", "500ms", "--warm-up", "100ms"];

#[track_caller]
fn number(result: &Value, pointer: &str) -> f64 {
    let found = result.pointer(pointer).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("{pointer} is no number: {result:#}"))
}

#[test]
fn null_servers_run_every_kind_of_statement() {
    let bench = Workbench::new();
    for product in ["null-mysql", "null-postgresql"] {
        for workload in ["oltp_point_select", "oltp_read_write", "bulk_insert"] {
            let arguments = [&[workload, "--on", product, "--clients", "4"], &SHORT[..]].concat();
            let result = bench.bench(&arguments);
            let (committed, all) = (&result["outcomes"]["committed"], &result["transactions"]);
            assert_eq!(committed, all, "{workload} on {product}: {}", result["errors"]);
            assert!(all.as_u64() > Some(0), "{workload} on {product}");
            for outcome in ["refused", "disconnected", "timed_out"] {
                let n = result["outcomes"][outcome].as_u64().unwrap_or_default();
                assert_eq!(n, 0, "{workload} on {product}: {}", result["errors"]);
            }
            assert!(result["database"].as_str().unwrap().starts_with("Null ("));
        }
    }
}

#[test]
fn rows_and_changes_are_those_the_server_reports() {
    let bench = Workbench::new();
    for product in ["null-mysql", "null-postgresql"] {
        let arguments = [&["oltp_read_write", "--on", product], &SHORT[..]].concat();
        let result = bench.bench(&arguments);
        // 14 reads of one row; two updates, a delete, an insert.
        let transactions = number(&result, "/transactions");
        let rows = number(&result, "/rows_received") / transactions;
        let changes = number(&result, "/rows_changed") / transactions;
        // A transaction at either end of the measurement counts in part.
        assert!((13.9..=14.1).contains(&rows), "{product}: {rows}");
        assert!((3.9..=4.1).contains(&changes), "{product}: {changes}");
    }
}

#[test]
fn settings_of_null_servers_are_refused_in_words() {
    let bench = Workbench::new();
    let check = |setting: &str, expected: &str| {
        let arguments = ["bench", "oltp_point_select", "--on", "null-mysql", "--setting", setting];
        let answer = bench.dyno(&[&arguments[..], &SHORT[..]].concat());
        assert_ne!(answer.code, 0);
        assert!(answer.err.contains(expected), "{}", answer.err);
    };
    check("speed=2", "no setting `speed`; it has delay");
    check("delay=soon", "delay = `soon` is not a duration");
}

#[test]
fn workloads_that_go_on_with_what_they_read_are_refused() {
    let bench = Workbench::new();
    let check = |product: &str, expected: &str| {
        let answer = bench.dyno(&["bench", "tpcc", "--on", product, "--out", product]);
        assert_ne!(answer.code, 0, "{product}");
        assert!(answer.err.contains(expected), "{}", answer.err);
    };
    check("null-mysql", "`tpcc` works on rows that it has read, but `null-mysql` stores none");
    check("null-postgresql", "`null-postgresql` stores none");
    check("simulated", "or the simulated one with a `store`");
}

#[test]
fn a_delay_is_in_the_service_time_of_every_statement() {
    let bench = Workbench::new();
    for product in ["null-mysql", "null-postgresql"] {
        let arguments = ["oltp_point_select", "--on", product, "--clients", "3"];
        let options = ["--setting", "delay=20ms"];
        let result = bench.bench(&[&arguments[..], &options[..], &SHORT[..]].concat());
        // Histograms have three digits.
        assert!(number(&result, "/service_time_us/p50") >= 19_990.0, "{result:#}");
    }
}

/// A closed loop does not notice a stall; scheduled arrivals do.
#[test]
fn a_stall_is_in_the_response_time_of_all_who_came_meanwhile() {
    let bench = Workbench::new();
    for product in ["null-mysql", "null-postgresql"] {
        let result = bench.bench(&[
            "oltp_point_select",
            "--on",
            product,
            "--rate",
            "1000",
            "--arrivals",
            "constant",
            "--clients",
            "32",
            "--warm-up",
            "1s",
            "--duration",
            "9s",
            "--setting",
            "stall_at=5s",
            "--setting",
            "stall=1s",
        ]);
        // 1000 of 9000 arrivals, a ninth, came evenly during the stall.
        assert!(number(&result, "/response_time_us/p999") >= 900_000.0, "{result:#}");
        assert!(number(&result, "/response_time_us/p95") >= 400_000.0, "{result:#}");
        // The server delayed only those in flight, one per client.
        assert!(number(&result, "/service_time_us/p99") < 500_000.0, "{result:#}");
        assert!(number(&result, "/service_time_us/max") >= 900_000.0, "{result:#}");
        // Every arrival counts: those not sent in time are missed.
        let counted = number(&result, "/transactions") + number(&result, "/outcomes/missed");
        assert!(counted >= 8_950.0, "{result:#}");
    }
}

#[test]
fn a_calibration_is_kept_and_every_run_reports_its_share() {
    let bench = Workbench::new();
    let on = |product: &'static str| [&["oltp_point_select", "--on", product], &SHORT[..]].concat();
    let before = bench.bench(&on("null-postgresql"));
    assert!(before["generator"]["share_of_calibrated"].is_null());
    let why = before["generator"]["share_of_calibrated_absent_because"].as_str();
    assert!(why.is_some_and(|why| why.contains("dyno calibrate")), "{why:?}");

    let answer = bench.dyno_good(&["calibrate", "--duration", "1s", "--json", "--keep-disturbed"]);
    let calibrated: Value = serde_json::from_str(&answer.out).expect("it prints JSON");
    assert_eq!(calibrated, bench.json("state/dyno/calibration.json"));
    assert!(number(&calibrated, "/clock/resolution_ns") >= 1.0);
    for (idx, protocol) in ["mysql", "postgresql"].iter().enumerate() {
        let facts = &calibrated["protocols"][idx];
        assert_eq!(facts["protocol"], *protocol);
        for (idx, clients) in [1, 16, 64].iter().enumerate() {
            assert_eq!(facts["closed"][idx]["clients"], *clients);
            assert!(number(&facts["closed"][idx], "/statements_per_s") > 0.0);
        }
        assert!(number(facts, "/open/sent_per_s") > 0.0);
    }

    // A disturbed calibration is reported wherever it is used.
    let mut disturbed = calibrated.clone();
    disturbed["disturbed"] = true.into();
    bench.write("state/dyno/calibration.json", &disturbed.to_string());
    let result = bench.bench(&on("null-postgresql"));
    assert_eq!(result["generator"]["calibration_disturbed"], true);
    disturbed["disturbed"] = false.into();
    bench.write("state/dyno/calibration.json", &disturbed.to_string());

    let after = bench.bench(&on("null-postgresql"));
    assert_eq!(after["generator"]["calibration_disturbed"], false);
    assert!(number(&after, "/generator/share_of_calibrated") > 0.0);
    assert!(after["generator"]["share_of_calibrated_absent_because"].is_null());
    let embedded = bench.bench(&on("sqlite"));
    let why = embedded["generator"]["share_of_calibrated_absent_because"].as_str();
    assert_eq!(why, Some("the database runs inside Dyno's process"));

    bench.write("state/dyno/calibration.json", "{}");
    let damaged = bench.bench(&on("null-postgresql"));
    let why = damaged["generator"]["share_of_calibrated_absent_because"].as_str();
    assert!(why.is_some_and(|why| why.contains("is not a calibration")), "{why:?}");
}

#[test]
fn a_report_says_that_no_database_was_measured() {
    let bench = Workbench::new();
    bench.write(
        "study.toml",
        r#"
        title = "What does the generator cost?"
        [database.null]
        product = "null-mysql"
        settings = { delay = "1ms" }
        [workload.oltp_point_select]
        [design]
        clients = 4
        repetitions = 3
        warm_up = "100ms"
        duration = "300ms"
        rest = "0s"
        "#,
    );
    bench.dyno_good(&["run", "study.toml"]);
    let findings = bench.json("runs/study/findings.json");
    assert!(findings["caveats"].to_string().contains("not a database"), "{findings:#}");
}
