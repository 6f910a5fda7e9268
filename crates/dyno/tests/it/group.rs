//! Group replication of MySQL: members join, a load on one and on all, a primary dies. Needs MySQL's programs from
//! `target/builds` (by `scripts/test`), or from the folder in DYNO_TEST_MYSQL.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{DataFolder, Workbench, events, is_alive, read_json, trial_folder};
use crate::up::UpBench;

/// None, with a message that a test is skipped, without MySQL's programs.
pub(crate) fn mysql() -> Option<String> {
    let named = std::env::var_os("DYNO_TEST_MYSQL").map(PathBuf::from);
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/builds");
    let builds = fs::read_dir(fetched).into_iter().flatten().flatten();
    let mut builds = builds.filter(|one| one.file_name().to_string_lossy().starts_with("mysql-"));
    let fetched = builds.find_map(|one| one.path().join("root/usr").canonicalize().ok());
    let found = named.or(fetched).map(|folder| folder.display().to_string());
    if found.is_none() {
        eprintln!(
            "skipped: there is no MySQL (scripts/test fetches one, or DYNO_TEST_MYSQL names its folder)"
        );
    }
    found
}

/// Three members; returns the summary of the trial.
fn run(programs: &str, database: &str, more: &str, design: &str) -> (Workbench, Value) {
    let (bench, data) = (Workbench::new(), DataFolder::new());
    let study = format!(
        "title = \"x\"\n[database.a]\nproduct = \"mysql\"\nprograms = \"{programs}\"\n\
         cluster = \"group-replication\"\nnodes = 3\n{database}\n[workload.oltp_read_write]\ntables = 2\n\
         table_size = 500\n{more}\n[design]\nrepetitions = 1\nwarm_up = \"200ms\"\nrest = \"0s\"\n{design}\n"
    );
    bench.write("study.toml", &study);
    bench.dyno_good(&["run", "study.toml", "--out", "run", "--data-folder", data.text()]);
    let summary = read_json(&trial_folder(&bench.path("run"), 1).join("summary.json"));
    assert_eq!(summary["outcome"]["state"], "finished", "{:#}", summary["outcome"]);
    let audit = summary["audit"].as_array().unwrap();
    assert!(audit.iter().all(|row| row["pass"] == true), "{audit:#?}");
    let equal =
        |row: &&Value| row["name"].as_str().unwrap().contains("has the same rows as node-1");
    assert_eq!(audit.iter().filter(equal).count(), 2, "{audit:#?}");
    let left = fs::read_dir(data.path()).unwrap().flatten();
    let left: Vec<String> =
        left.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let is_server = |name: &&String| name.starts_with("mysql") || name.starts_with("data-");
    assert_eq!(left.iter().find(is_server), None, "{left:?}");
    (bench, summary)
}

fn readings<'s>(summary: &'s Value, name: &str) -> Vec<f64> {
    let values: &'s Value = &summary["steps"][0]["readings"][name];
    let values = values.as_array().unwrap_or_else(|| panic!("there is no reading {name}"));
    values.iter().filter_map(Value::as_f64).collect()
}

fn most(summary: &Value, name: &str) -> f64 {
    readings(summary, name).into_iter().fold(0.0, f64::max)
}

#[track_caller]
fn check_group(load_on: &str) {
    let Some(programs) = mysql() else { return };
    let database = format!("load_on = \"{load_on}\"");
    let (bench, summary) =
        run(&programs, &database, "", "clients = 3\nrate = 100\nduration = \"2500ms\"");
    let members = summary["members"].as_array().unwrap().iter();
    let members: Vec<(&str, &str)> =
        members.map(|one| (one["name"].as_str().unwrap(), one["role"].as_str().unwrap())).collect();
    assert_eq!(members, [("node-1", "primary"), ("node-2", "node"), ("node-3", "node")]);
    for number in 1..=3 {
        let name = |what: &str| format!("group.node-{number}.{what}");
        assert_eq!(most(&summary, &name("members")), 3.0);
        let takes_writes = number == 1 || load_on == "all";
        assert_eq!(most(&summary, &name("is_primary")), f64::from(u8::from(takes_writes)));
        assert_eq!(most(&summary, &name("proposed_per_s")) > 0.0, takes_writes, "node-{number}");
        assert!(!readings(&summary, &name("apply_queue")).is_empty());
        assert!(!readings(&summary, &name("lag_s")).is_empty());
    }
    let outcomes = summary["steps"][0]["kinds"][0]["outcomes"].as_object().unwrap();
    assert!(outcomes["committed"].as_u64() > Some(0), "{outcomes:?}");
    let said = events(&trial_folder(&bench.path("run"), 1));
    assert!(said.contains("3 nodes form the cluster"), "{said}");
    let settings = &summary["server"]["settings"];
    assert_eq!(settings["group_replication_communication_stack"], "MYSQL", "{settings:#}");
}

#[test]
fn one_member_of_a_group_takes_writes() {
    check_group("first");
}

#[test]
#[ignore = "matrix products: a group with one primary is in the suite"]
fn all_members_of_a_group_take_writes() {
    check_group("all");
}

#[test]
#[ignore = "matrix faults: three servers of MySQL for a minute; a cluster of Galera is in the suite"]
fn a_group_goes_on_without_its_primary_which_joins_it_again() {
    let Some(programs) = mysql() else { return };
    // The others notice a dead member after five seconds, and look for it every fifteen.
    let database = "settings = { group_replication_member_expel_timeout = 0 }";
    let fault = "[fault.crash]\ndo = \"kill\"\nat = \"2s\"\nstart_after = \"1s\"";
    let (_bench, summary) =
        run(&programs, database, fault, "clients = 2\nrate = 100\nduration = \"45s\"");
    let fault = &summary["steps"][0]["faults"][0];
    assert_eq!((&fault["kind"], &fault["member"]), (&"kill".into(), &"node-1".into()));
    assert!(fault["answered_s"].as_f64() > Some(2.0), "{fault}");
    // Another member is primary now, and clients have found it.
    let others = ["group.node-2.is_primary", "group.node-3.is_primary"];
    assert_eq!(others.map(|name| most(&summary, name)).iter().sum::<f64>(), 1.0);
    let intervals = &summary["steps"][0]["intervals"];
    let rates = intervals["throughput"].as_array().unwrap();
    let last = rates.iter().rev().take(10).filter_map(Value::as_f64).fold(0.0, f64::max);
    assert!(last > 0.0, "{intervals}");
}

#[test]
#[ignore = "matrix products: as a cluster of Galera, which is in the suite"]
fn a_group_that_is_up_listens_at_the_loopback_alone_and_is_gone_after_a_kill() {
    let Some(programs) = mysql() else { return };
    let bench = UpBench::new();
    let cluster = ["--cluster", "group-replication", "--nodes", "3"];
    let named = ["mysql", "--name", "g", "--programs", &programs];
    let urls = bench.up(&[&named[..], &cluster].concat());
    assert_eq!(urls.lines().count(), 3, "{urls}");
    let listed = bench.ls();
    let members = listed[0]["members"].as_array().unwrap();
    let pids: Vec<i32> = members.iter().map(|one| one["pid"].as_i64().unwrap() as i32).collect();
    for pid in &pids {
        let addresses = dyno_host::listens_by_network(*pid).unwrap();
        // If members had no addresses, this would prove nothing.
        assert_eq!(addresses.len(), 1, "{addresses:?}");
        assert!(addresses[0].starts_with("127.0.0.1:"), "{addresses:?}");
    }
    bench.kill_holder(pids[0]);
    bench.good(&["down", "g"]);
    assert_eq!(pids.iter().filter(|pid| is_alive(**pid)).count(), 0, "{pids:?}");
    assert_eq!(bench.left(), Vec::<String>::new());
}

#[test]
fn what_a_group_cannot_be_is_said_by_check() {
    let bench = Workbench::new();
    let check = |database: &str, more: &str, expected: &str| {
        let study = format!("title = \"x\"\n[database.a]\n{database}\n[workload.tpcb]\n{more}\n");
        bench.write("study.toml", &study);
        let answer = bench.dyno(&["check", "study.toml"]);
        assert_eq!(answer.code, 2, "{database}: {}{}", answer.out, answer.err);
        assert!(answer.err.contains(expected), "{database}: {}", answer.err);
    };
    check(
        "product = \"mariadb\"\ncluster = \"group-replication\"",
        "",
        "product `mariadb` has no cluster `group-replication`",
    );
    let group = "product = \"mysql\"\ncluster = \"group-replication\"";
    check(
        group,
        "[fault.cut]\ndo = \"isolate\"\nat = \"1s\"\nfor = \"1s\"\nmember = \"node-2\"\n[design]\n\
         vary = { fault = [\"cut\"] }",
        "between the nodes of a cluster (galera) can be cut",
    );
    check(
        &format!("{group}\nsettings = {{ group_replication_local_address = \"0.0.0.0:1\" }}"),
        "",
        "would make a private server reachable by others",
    );
}
