//! The run-off after the load, until the engine has caught up.

use serde_json::Value;

use crate::support::{Workbench, trial_folder};

fn run_off(product: &str) -> Value {
    let bench = Workbench::new();
    let on = format!("--on={product}");
    let arguments = ["tpcb", &on, "--clients=2", "--duration=2s", "--warm-up=0s", "--run-off=20s"];
    bench.bench(&arguments)["run_off"].clone()
}

#[track_caller]
fn check(product: &str) {
    let run_off = run_off(product);
    assert_eq!(run_off["limit_s"], 20.0);
    assert_eq!(run_off["unseen"], Value::Null, "{run_off:#}");
    let times = run_off["start_s"].as_array().expect("a list");
    // At least two readings in a row.
    assert!(times.len() >= 2, "{times:?}");
    let debts: Vec<_> = run_off["readings"]
        .as_object()
        .expect("readings by name")
        .iter()
        .filter(|(name, _)| name.starts_with("debt."))
        .collect();
    assert!(!debts.is_empty(), "{run_off:#}");
    for (name, column) in debts {
        assert_eq!(column.as_array().map(Vec::len), Some(times.len()), "{name}");
    }
    if run_off["paid_after_s"].is_null() {
        assert!(times.last().and_then(Value::as_f64) >= Some(20.0), "{times:?}");
    }
}

#[test]
fn mariadb_pays() {
    check("mariadb");
}

#[test]
fn postgresql_pays() {
    check("postgresql");
}

#[test]
fn a_simulated_server_has_nothing_to_pay() {
    assert_eq!(run_off("simulated"), Value::Null);
}

#[test]
fn a_study_asks_for_it_and_names_a_probe_of_its_own() {
    let bench = Workbench::new();
    bench.write(
        "study.toml",
        r#"
        title = "How long does it flush?"
        [machine]
        price_per_hour = "0.192 USD"
        [database.a]
        product = "mariadb"
        [workload.tpcb]
        [probe.answer]
        command = ["echo", "everything 42"]
        [probe.rows]
        sql = "SELECT count(*) AS branches FROM pgbench_branches"
        [design]
        clients = 1
        repetitions = 1
        warm_up = "0s"
        duration = "3s"
        run_off = "15s"
        "#,
    );
    bench.dyno_good(&["run", "study.toml"]);
    let manifest = bench.json("runs/study/manifest.json");
    let price = &manifest["variants"][0]["price_per_hour"];
    assert_eq!((&price["amount"], &price["currency"]), (&0.192.into(), &"USD".into()));
    let folder = trial_folder(&bench.path("runs/study"), 1);
    let summary = crate::support::read_json(&folder.join("summary.json"));
    assert!(summary["run_off"]["start_s"].is_array(), "{:#}", summary["run_off"]);
    let values = |name: &str| -> Vec<f64> {
        let column = summary["steps"][0]["readings"][name].as_array();
        column.into_iter().flatten().filter_map(Value::as_f64).collect()
    };
    let readings =
        || summary["steps"][0]["readings"].as_object().unwrap().keys().collect::<Vec<_>>();
    assert!(values("probe.answer.everything").contains(&42.0), "{:?}", readings());
    assert!(values("probe.rows.branches").contains(&1.0), "{:?}", readings());
    let canary = &summary["canary"];
    assert!(canary["before_s"].as_f64() > Some(0.0) && canary["after_s"].as_f64() > Some(0.0));
}
