//! MySQL on hosts, with local agents: one server, replicas, group replication. Needs MySQL's
//! programs (see [`crate::group::mysql`]).

use crate::group::mysql;
use crate::member_hosts::{check_members, first_trial, study};
use crate::server_hosts::{check_secrets, left};
use crate::support::{DataFolder, Workbench, events, trial_folder};

const SHORT: &str = "duration = \"2s\"";
const LONG: &str = "duration = \"60s\"";

/// None, with a message, without MySQL's programs.
fn database(more: &str) -> Option<String> {
    let programs = mysql()?;
    Some(format!("product = \"mysql\"\nprograms = \"{programs}\"\n{more}"))
}

const GROUP: &str = "cluster = \"group-replication\"\nnodes = 3";

#[test]
fn load_generators_log_in_at_a_mysql_server_on_a_host() {
    let Some(database) = database("servers = 1") else { return };
    let (bench, data) = (Workbench::new(), DataFolder::new());
    bench.write("study.toml", &study(&database, &format!("generators = \"sql\"\n{SHORT}")));
    bench.dyno_good(&["run", "study.toml", "--data-folder", data.text()]);
    let trial = first_trial(&bench);
    assert_eq!(trial["outcome"]["state"], "finished", "{:#}", trial["outcome"]);
    let audit = trial["audit"].as_array().unwrap();
    assert!(!audit.is_empty() && audit.iter().all(|row| row["pass"] == true), "{audit:#?}");
    let step = &trial["steps"][0];
    assert_eq!(step["hosts"].as_array().unwrap().len(), 3, "{:#}", step["hosts"]);
    assert!(step["kinds"][0]["outcomes"]["committed"].as_u64().unwrap() > 0, "{:#}", step["kinds"]);
    assert_eq!(trial["server"]["product"], "MySQL");
    assert!(left(&data).is_empty(), "{:?}", left(&data));
}

#[track_caller]
fn check_replicas(mode: &str) {
    let more = format!("replicas = 2\nreplication = \"{mode}\"");
    let Some(database) = database(&more) else { return };
    let names = ["primary", "replica-1", "replica-2"];
    let bench = check_members(&study(&database, SHORT), names);
    let known = first_trial(&bench)["meanings"].clone();
    assert!(known["replication.replica-2.lag_s"].is_object(), "{known}");
}

#[test]
fn a_row_travels_to_replicas_of_mysql_on_other_hosts() {
    check_replicas("synchronous");
}

#[test]
#[ignore = "matrix hosts: synchronous replication is in the suite"]
fn a_row_travels_to_asynchronous_replicas_of_mysql_on_other_hosts() {
    check_replicas("asynchronous");
}

#[test]
#[ignore = "matrix hosts: three servers of MySQL; a group without hosts is in the suite"]
fn three_hosts_form_a_group() {
    let Some(database) = database(GROUP) else { return };
    let bench = check_members(&study(&database, SHORT), ["node-1", "node-2", "node-3"]);
    let text = events(&trial_folder(&bench.path("runs/study"), 1));
    assert!(text.contains("3 nodes form the cluster, and all are synced"), "{text}");
    let known = first_trial(&bench)["meanings"].clone();
    assert!(known["group.node-3.members"].is_object(), "{known}");
}

#[track_caller]
fn check_passwords(more: &str, n_servers: usize) {
    let Some(database) = database(more) else { return };
    check_secrets(&study(&database, LONG), n_servers);
}

#[test]
fn passwords_of_mysql_are_on_no_command_line_in_no_environment_and_in_no_record() {
    check_passwords("servers = 1", 1);
}

#[test]
#[ignore = "matrix hosts: a server alone is in the suite, and replicas of MariaDB"]
fn passwords_of_members_of_mysql_are_nowhere_either() {
    check_passwords("replicas = 1", 2);
    check_passwords(GROUP, 3);
}
