//! Routers on hosts, with local agents: a pooler for PostgreSQL, a proxy for a Galera cluster.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::member_hosts::{first_trial, study_on};
use crate::server_hosts::{await_removal, check_secrets, left, parent};
use crate::support::{DataFolder, Running, Workbench, await_end, events, trial_folder};

const SHORT: &str = "duration = \"5s\"";
const LONG: &str = "duration = \"60s\"";
const POOLED: &str = "product = \"postgresql\"\n\
                      behind = { product = \"pgbouncer\", pool_mode = \"transaction\", pool_size = 2 }";
const GALERA: &str = "product = \"mariadb\"\ncluster = \"galera\"\nnodes = 3\nload_on = \"all\"\n\
                      behind = { product = \"haproxy\", balance = \"roundrobin\" }";

/// Expects a finished trial with these members and hosts.
#[track_caller]
fn check(text: &str, expected: &[(&str, &str)]) -> (Workbench, Value) {
    let (bench, data) = (Workbench::new(), DataFolder::new());
    bench.write("study.toml", text);
    bench.dyno_good(&["run", "study.toml", "--data-folder", data.text()]);
    let trial = first_trial(&bench);
    assert_eq!(trial["outcome"]["state"], "finished", "{:#}", trial["outcome"]);
    let members = trial["members"].as_array().unwrap().iter();
    let of = |member: &Value, key: &str| member.pointer(key).unwrap().as_str().unwrap().to_owned();
    let found: Vec<(String, String)> =
        members.map(|one| (of(one, "/name"), of(one, "/host/name"))).collect();
    let found: Vec<(&str, &str)> = found.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(found, expected);
    let audit = trial["audit"].as_array().unwrap();
    assert!(!audit.is_empty() && audit.iter().all(|row| row["pass"] == true), "{audit:#?}");
    assert!(left(&data).is_empty(), "{:?}", left(&data));
    let page = std::fs::read_to_string(bench.path("runs/study/report.html")).unwrap();
    for (member, _) in expected {
        assert!(page.contains(&format!("{member} (")), "{member} is not in the table of hosts");
    }
    (bench, trial)
}

/// Of the load's seconds.
#[track_caller]
fn readings(trial: &Value, name: &str) -> Vec<f64> {
    let values = trial["steps"][0]["readings"][name].as_array();
    let values = values.unwrap_or_else(|| panic!("{name} was not read"));
    values.iter().filter_map(Value::as_f64).collect()
}

/// A transaction begins when the last has ended, so that clients wait for each other.
fn at_full_speed(study: &str) -> String {
    study.replace("rate = 200", "")
}

fn most(trial: &Value, name: &str) -> f64 {
    readings(trial, name).into_iter().fold(0.0, f64::max)
}

#[test]
fn a_pooler_has_the_host_after_those_of_the_servers() {
    let database = format!("{POOLED}\nreplicas = 1");
    let text = study_on("\"sql1\", \"sql2\", \"sql3\"", &database, SHORT);
    let expected = [("primary", "sql1"), ("replica-1", "sql2"), ("pooler", "sql3")];
    let (_bench, trial) = check(&at_full_speed(&text), &expected);
    // Four clients share two connections.
    assert!(most(&trial, "pgbouncer.wait_s_per_s") > 0.0);
    assert!(most(&trial, "pgbouncer.servers_active") <= 2.0);
    assert!(most(&trial, "pgbouncer.transactions_per_s") > 0.0);
    for name in ["pooler.cpu_s_per_s", "pooler.rss_bytes", "replication.replica-1.streaming"] {
        assert!(!readings(&trial, name).is_empty(), "{name}");
    }
    let pooler = &trial["members"][2]["server"];
    assert_eq!((&pooler["product"], &pooler["transport"]), (&"PgBouncer".into(), &"tcp".into()));
    assert_eq!(pooler["settings"]["pool_mode"], "transaction", "{pooler:#}");
    assert!(trial["meanings"].as_object().unwrap().keys().any(|one| one.starts_with("host.sql3.")));
}

#[test]
fn a_pooler_shares_the_host_of_the_server_if_there_is_no_other() {
    let text = study_on("\"sql1\"", POOLED, &format!("generators = \"sql\"\n{SHORT}"));
    let (_bench, trial) = check(&at_full_speed(&text), &[("primary", "sql1"), ("pooler", "sql1")]);
    assert!(most(&trial, "pgbouncer.wait_s_per_s") > 0.0);
    assert!(!readings(&trial, "pooler.cpu_s_per_s").is_empty());
    let hosts = trial["steps"][0]["hosts"].as_array().unwrap();
    assert_eq!(hosts.len(), 1, "{hosts:?}");
}

#[test]
fn a_proxy_on_a_host_shares_the_load_among_the_nodes_of_a_cluster() {
    let expected = [("node-1", "sql1"), ("node-2", "sql2"), ("node-3", "sql3"), ("proxy", "sql1")];
    let (_bench, trial) =
        check(&study_on("\"sql1\", \"sql2\", \"sql3\"", GALERA, SHORT), &expected);
    for node in ["node-1", "node-2", "node-3"] {
        assert!(most(&trial, &format!("haproxy.server.{node}.connections")) >= 1.0, "{node}");
    }
    assert!(most(&trial, "haproxy.clients") >= 4.0);
    assert!(!readings(&trial, "proxy.cpu_s_per_s").is_empty());
}

#[test]
fn the_password_behind_a_router_is_on_no_command_line_in_no_environment_and_in_no_record() {
    check_secrets(&study_on("\"sql1\", \"sql2\"", POOLED, LONG), 1);
}

/// The last member that came up.
fn last_member(run: &mut Running, bench: &Workbench) -> i32 {
    run.wait_for(&["measuring"]);
    let text = events(&trial_folder(&bench.path("runs/study"), 1));
    let ready = text.lines().rfind(|line| line.contains("server_ready")).unwrap();
    let event: Value = serde_json::from_str(ready).unwrap();
    event["pid"].as_i64().unwrap() as i32
}

#[test]
fn a_router_whose_host_is_lost_or_that_is_killed_fails_the_trial() {
    let check = |of_agent: bool, expected: &str| {
        let (bench, data) = (Workbench::new(), DataFolder::new());
        bench.write("study.toml", &study_on("\"sql1\", \"sql2\"", POOLED, LONG));
        let mut run = bench.start(&["run", "study.toml", "--data-folder", data.text()]);
        let pooler = last_member(&mut run, &bench);
        let victim = if of_agent { parent(pooler) } else { pooler };
        kill_process(Pid::from_raw(victim).unwrap(), Signal::KILL).unwrap();
        assert_eq!(run.end(), 1);
        await_end(pooler);
        await_removal(&data);
        let message = first_trial(&bench)["outcome"]["message"].to_string();
        assert!(message.contains("host sql2") && message.contains(expected), "{message}");
    };
    check(true, "signal 9");
    check(false, "PgBouncer");
}
