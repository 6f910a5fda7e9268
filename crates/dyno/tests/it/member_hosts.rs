//! Members of a deployment on several hosts, with local agents: replicas, nodes of a cluster.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::server_hosts::{await_removal, check_secrets, left, parent};
use crate::support::{DataFolder, Workbench, await_end, events, is_alive, read_json, trial_folder};

/// On three hosts.
pub(crate) fn study(database: &str, design: &str) -> String {
    study_on("\"sql1\", \"sql2\", \"sql3\"", database, design)
}

pub(crate) fn study_on(hosts: &str, database: &str, design: &str) -> String {
    format!(
        r#"
        title = "Do members on hosts work?"
        [database.there]
        on = "sql"
        {database}
        [workload.oltp_update_index]
        table_size = 1000
        [host.sql]
        names = [{hosts}]
        [design]
        clients = 4
        rate = 200
        workers = 1
        repetitions = 1
        warm_up = "0s"
        rest = "0s"
        void_blocks = "keep"
        {design}
        "#
    )
}

const SHORT: &str = "duration = \"2s\"";
const LONG: &str = "duration = \"60s\"";
const GALERA: &str = "product = \"mariadb\"\ncluster = \"galera\"\nnodes = 3";

fn replicas(product: &str, mode: &str) -> String {
    format!("product = \"{product}\"\nreplicas = 2\nreplication = \"{mode}\"")
}

pub(crate) fn first_trial(bench: &Workbench) -> Value {
    read_json(&trial_folder(&bench.path("runs/study"), 1).join("summary.json"))
}

/// Expects a finished trial with members on the three hosts.
#[track_caller]
pub(crate) fn check_members(text: &str, names: [&str; 3]) -> Workbench {
    let (bench, data) = (Workbench::new(), DataFolder::new());
    bench.write("study.toml", text);
    bench.dyno_good(&["run", "study.toml", "--data-folder", data.text()]);
    let trial = first_trial(&bench);
    assert_eq!(trial["outcome"]["state"], "finished", "{:#}", trial["outcome"]);
    let members = trial["members"].as_array().unwrap();
    let of = |key: &str| -> Vec<&str> {
        members.iter().map(|one| one.pointer(key).unwrap().as_str().unwrap()).collect()
    };
    assert_eq!(of("/name"), names);
    assert_eq!(of("/host/name"), ["sql1", "sql2", "sql3"]);
    let audit = trial["audit"].as_array().unwrap();
    assert!(audit.iter().all(|row| row["pass"] == true), "{audit:#?}");
    // The others' rows were compared with the first one's.
    for name in &names[1..] {
        let is_equal = |row: &&Value| {
            let text = row["name"].as_str().unwrap();
            text.starts_with(name) && text.contains("has the same rows")
        };
        assert_eq!(audit.iter().filter(is_equal).count(), 1, "{name}: {audit:#?}");
    }
    let known = trial["meanings"].as_object().unwrap();
    for name in names {
        assert!(known.contains_key(&format!("{name}.rss_bytes")), "{:?}", known.keys());
    }
    assert!(known.keys().any(|name| name.starts_with("host.sql3.memory.")));
    let page = fs::read_to_string(bench.path("runs/study/report.html")).unwrap();
    assert!(page.contains("Hosts of servers") && page.contains(&format!("{} (", names[2])));
    assert!(left(&data).is_empty(), "{:?}", left(&data));
    bench
}

const WITH_REPLICAS: [&str; 3] = ["primary", "replica-1", "replica-2"];

#[track_caller]
fn check_replicas(product: &str, mode: &str) {
    let bench = check_members(&study(&replicas(product, mode), SHORT), WITH_REPLICAS);
    let text = events(&trial_folder(&bench.path("runs/study"), 1));
    let streams = format!("2 replicas stream, {mode}: a row written on the primary was seen");
    assert!(text.contains(&streams), "{text}");
    let known = first_trial(&bench)["meanings"].clone();
    assert!(known["replication.replica-2.lag_bytes"].is_object(), "{known}");
}

#[test]
fn a_row_travels_to_replicas_on_other_hosts() {
    check_replicas("postgresql", "synchronous");
}

#[test]
#[ignore = "matrix hosts: synchronous replicas of PostgreSQL are in the suite, and reads of those of MariaDB"]
fn a_row_travels_to_replicas_of_mariadb_on_other_hosts() {
    check_replicas("mariadb", "asynchronous");
}

#[test]
fn replicas_on_hosts_take_the_reads_of_generators_there() {
    let database = replicas("mariadb", "synchronous") + "\nreads_on = \"all\"";
    let text = study(&database, &format!("generators = \"sql\"\n{SHORT}"));
    let text = text.replace("oltp_update_index", "oltp_read_only");
    let bench = check_members(&text, WITH_REPLICAS);
    let trial = first_trial(&bench);
    let hosts = trial["steps"][0]["hosts"].as_array().unwrap();
    let mut urls: Vec<&str> = hosts.iter().map(|host| host["server"].as_str().unwrap()).collect();
    urls.dedup();
    assert_eq!(urls.len(), 3, "{urls:?}");
}

#[test]
fn three_hosts_form_a_galera_cluster() {
    let bench = check_members(&study(GALERA, SHORT), ["node-1", "node-2", "node-3"]);
    let text = events(&trial_folder(&bench.path("runs/study"), 1));
    assert!(text.contains("3 nodes form the cluster, and all are synced"), "{text}");
    let known = first_trial(&bench)["meanings"].clone();
    assert!(known["galera.node-3.cluster_size"].is_object(), "{known}");
}

#[test]
fn passwords_of_members_are_on_no_command_line_in_no_environment_and_in_no_record() {
    check_secrets(&study(&replicas("mariadb", "asynchronous"), LONG), 3);
}

#[test]
#[ignore = "matrix hosts: replicas of MariaDB are in the suite"]
fn passwords_of_other_members_are_nowhere_either() {
    for database in [replicas("postgresql", "asynchronous"), GALERA.to_owned()] {
        check_secrets(&study(&database, LONG), 3);
    }
}

/// In the order of members.
fn servers(bench: &Workbench) -> Vec<i32> {
    let text = events(&trial_folder(&bench.path("runs/study"), 1));
    let ready = text.lines().filter(|line| line.contains("server_ready"));
    let pids = ready.map(|line| {
        let event: Value = serde_json::from_str(line).unwrap();
        event["pid"].as_i64().unwrap() as i32
    });
    let mut all: Vec<i32> = pids.collect();
    // The first was filled and then restarted.
    all.remove(0);
    all
}

#[track_caller]
fn check_lost_host(database: &str) {
    let (bench, data) = (Workbench::new(), DataFolder::new());
    bench.write("study.toml", &study(database, LONG));
    let mut run = bench.start(&["run", "study.toml", "--data-folder", data.text()]);
    run.wait_for(&["measuring"]);
    let servers = servers(&bench);
    assert!(servers.len() == 3 && servers.iter().all(|pid| is_alive(*pid)), "{servers:?}");
    // The middle one.
    kill_process(Pid::from_raw(parent(servers[1])).unwrap(), Signal::KILL).unwrap();
    assert_eq!(run.end(), 1);
    servers.into_iter().for_each(await_end);
    await_removal(&data);
    let message = first_trial(&bench)["outcome"]["message"].to_string();
    assert!(message.contains("host sql2") && message.contains("signal 9"), "{message}");
}

#[test]
fn a_host_that_is_lost_fails_the_trial_and_leaves_nothing() {
    check_lost_host(&replicas("postgresql", "asynchronous"));
}

#[test]
#[ignore = "matrix hosts: a host with a replica is in the suite"]
fn a_host_with_a_node_that_is_lost_fails_the_trial_and_leaves_nothing() {
    check_lost_host(GALERA);
}

#[test]
fn members_end_with_a_controller_that_is_killed() {
    let (bench, data) = (Workbench::new(), DataFolder::new());
    bench.write("study.toml", &study(&replicas("mariadb", "asynchronous"), LONG));
    let mut run = bench.start(&["run", "study.toml", "--data-folder", data.text()]);
    run.wait_for(&["measuring"]);
    let servers = servers(&bench);
    run.signal(Signal::KILL);
    run.child.wait().unwrap();
    servers.into_iter().for_each(await_end);
    await_removal(&data);
}
