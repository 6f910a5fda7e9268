//! Faults of servers on hosts, with local agents: they happen there, and are measured as here.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::faults::{self, answered, commits, number, went_on};
use crate::server_hosts::{await_removal, left, parent};
use crate::support::{
    DataFolder, Running, Workbench, await_end, await_that, events, is_alive, read_json, server_pid,
    trial_folder,
};

const CRASH: &str = "do = \"kill\"\nat = \"2s\"\nstart_after = \"1s\"";
const GALERA: &str = "product = \"mariadb\"\ncluster = \"galera\"\nnodes = 3";

/// All tables have primary keys, and clients share nothing.
const WITH_KEYS: &str = "[workload.oltp_update_index]\ntable_size = 1000";

/// `tpcb` with a fault of a database on three hosts. At full speed, a member would catch up much later.
fn study(database: &str, fault: &str, design: &str) -> String {
    format!(
        "title = \"How long is it away after a crash?\"\n[database.there]\non = \"sql\"\n{database}\n\
         [host.sql]\nnames = [\"sql1\", \"sql2\", \"sql3\"]\n[workload.tpcb]\n[fault.crash]\n{fault}\n\
         [design]\nclients = 4\nrate = 200\nrepetitions = 1\nwarm_up = \"200ms\"\nrest = \"0s\"\nvoid_blocks = \"keep\"\n\
         {design}\n"
    )
}

/// Expects a finished trial, after which nothing is left; returns summary, findings and report.
#[track_caller]
fn run(text: &str) -> (Value, Value, String) {
    let (bench, data) = (Workbench::new(), DataFolder::new());
    bench.write("study.toml", text);
    bench.dyno_good(&["run", "study.toml", "--data-folder", data.text()]);
    let trial = trial_folder(&bench.path("runs/study"), 1);
    let summary = read_json(&trial.join("summary.json"));
    assert_eq!(summary["outcome"]["state"], "finished", "{:#}", summary["outcome"]);
    assert!(events(&trial).contains("\"fault_made\""));
    assert!(!is_alive(server_pid(&trial)) && left(&data).is_empty(), "{:?}", left(&data));
    let rows = summary["audit"].as_array().unwrap();
    let failed: Vec<&Value> = rows.iter().filter(|row| row["pass"] != true).collect();
    assert!(!rows.is_empty() && failed.is_empty(), "{failed:#?}");
    let report = fs::read_to_string(bench.path("runs/study/report.html")).unwrap();
    (summary, read_json(&bench.path("runs/study/findings.json")), report)
}

/// The study's last table is its design. Runs longer if a busy machine has not come far enough.
#[track_caller]
fn run_until(text: &str, seconds: u32, has_come: fn(&Value) -> bool) -> (Value, Value, String) {
    let run = |seconds: u32| run(&format!("{text}duration = \"{seconds}s\"\n"));
    faults::run_until(seconds, run, has_come)
}

/// The only fault of a trial.
#[track_caller]
fn fault<'a>(summary: &'a Value, kind: &str, member: &str) -> &'a Value {
    let faults = summary["steps"][0]["faults"].as_array().unwrap();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!((&faults[0]["kind"], &faults[0]["member"]), (&kind.into(), &member.into()));
    &faults[0]
}

/// Readings of seconds that began after this moment of measured time.
fn read_after(summary: &Value, name: &str, from: f64) -> Vec<f64> {
    let step = &summary["steps"][0];
    let starts = step["intervals"]["start_s"].as_array().unwrap().iter();
    let values = step["readings"][name].as_array().unwrap_or_else(|| panic!("no {name}"));
    let after = starts.zip(values).filter(|(start, _)| number(start) >= from);
    after.filter_map(|(_, value)| value.as_f64()).collect()
}

/// The member has another one's rows in the end.
#[track_caller]
fn check_same(summary: &Value, member: &str) {
    let rows = summary["audit"].as_array().unwrap().iter();
    let texts: Vec<&str> = rows.map(|row| row["name"].as_str().unwrap()).collect();
    let is_same = |text: &&&str| text.starts_with(member) && text.contains("has the same rows");
    assert_eq!(texts.iter().filter(is_same).count(), 1, "{member}: {texts:?}");
}

/// A killed server comes back with its confirmed work, and clients log in again.
#[track_caller]
fn check_crash(database: &str) {
    let text = study(&format!("{database}\nservers = 1"), CRASH, "");
    let (summary, findings, report) = run_until(&text, 9, went_on);
    let fault = fault(&summary, "kill", "sql1");
    let times = ["planned_s", "began_s", "ended_s", "started_s", "answered_s"];
    let times = times.map(|time| number(&fault[time]));
    assert!(times.is_sorted() && times[0] == 2.0 && times[3] >= times[1] + 1.0, "{fault}");
    assert!(commits(&summary, 0.0, 2.0) > 0.0, "{}", summary["steps"][0]["intervals"]);
    let step = &summary["steps"][0];
    assert!(number(&step["kinds"][0]["outcomes"]["disconnected"]) >= 1.0, "{}", step["kinds"]);
    assert!(number(&step["reconnects"]) >= 4.0, "{}", step["reconnects"]);
    let found = &findings["faults"][0];
    assert!(number(&found["away_s"]) >= 0.9, "{found}");
    assert!(report.contains("Faults and recovery"));
    assert!(report.contains("fault crash: kill of sql1"));
}

#[test]
fn a_mariadb_on_a_host_that_crashes_comes_back() {
    check_crash("product = \"mariadb\"");
}

#[test]
#[ignore = "matrix hosts: as a MariaDB, which is in the suite"]
fn a_postgresql_on_a_host_that_crashes_comes_back() {
    check_crash("product = \"postgresql\"");
}

#[test]
#[ignore = "matrix hosts: as a MariaDB, which is in the suite"]
fn a_mysql_on_a_host_that_crashes_is_told_of_its_clients_again() {
    let Some(programs) = crate::group::mysql() else { return };
    check_crash(&format!("product = \"mysql\"\nprograms = \"{programs}\""));
}

#[test]
fn one_of_several_servers_is_killed_by_the_name_of_its_host() {
    let fault_text = "do = \"kill\"\nat = \"2s\"\nstart_after = \"3s\"\nmember = \"sql2\"";
    let design = "generators = \"sql\"\nworkers = 1";
    let text = study("product = \"mariadb\"\nservers = 2", fault_text, design);
    let text = text.replace("[workload.tpcb]", WITH_KEYS);
    // The restarted process is read like the first.
    let (summary, ..) = run_until(&text, 9, |summary| {
        let cpu = read_after(summary, "sql2.cpu_s_per_s", answered(summary));
        cpu.iter().any(|busy| *busy > 0.0)
    });
    let fault = fault(&summary, "kill", "sql2");
    // Clients of the other server went on: in these seconds the server was away.
    let (from, to) = (number(&fault["began_s"]), number(&fault["started_s"]) - 1.0);
    assert!(commits(&summary, from, to) > 0.0, "{}", summary["steps"][0]["intervals"]);
}

#[test]
fn a_replica_on_a_host_stands_still_for_a_time() {
    let fault_text = "do = \"stop\"\nat = \"1s\"\nfor = \"1500ms\"\nmember = \"replica-1\"";
    let database = "product = \"postgresql\"\nreplicas = 1";
    let (summary, ..) = run(&study(database, fault_text, "duration = \"5s\""));
    let fault = fault(&summary, "stop", "replica-1");
    let length = number(&fault["ended_s"]) - number(&fault["began_s"]);
    assert!((1.5..15.0).contains(&length), "{fault}");
    // The load is on the primary, which continued.
    assert!(commits(&summary, 1.0, 5.0) > 0.0 && number(&summary["steps"][0]["reconnects"]) == 0.0);
    check_same(&summary, "replica-1");
}

#[track_caller]
fn check_crash_of_primary(product: &str) {
    let database = format!("product = \"{product}\"\nreplicas = 1");
    let (summary, ..) = run_until(&study(&database, CRASH, ""), 8, went_on);
    fault(&summary, "kill", "primary");
    check_same(&summary, "replica-1");
}

#[test]
fn a_primary_on_a_host_crashes_and_its_replicas_follow_again() {
    check_crash_of_primary("postgresql");
}

#[test]
#[ignore = "matrix hosts: as a PostgreSQL, which is in the suite"]
fn a_primary_of_mariadb_on_a_host_crashes_and_its_replicas_follow_again() {
    check_crash_of_primary("mariadb");
}

#[track_caller]
fn check_promotion(product: &str) {
    let database = format!("product = \"{product}\"\nreplicas = 1\nreplication = \"synchronous\"");
    let fault_text = "do = \"kill\"\nat = \"2s\"\nthen = \"promote\"";
    let (summary, findings, report) = run_until(&study(&database, fault_text, ""), 12, went_on);
    let fault = fault(&summary, "kill", "primary");
    assert_eq!(fault["promotion"]["member"], "replica-1", "{fault}");
    let found = &findings["faults"][0];
    assert_eq!(number(&found["lost"][0]), 0.0, "{found}");
    assert!(report.contains("Replicas promoted"));
}

#[test]
fn a_replica_on_a_host_is_promoted() {
    check_promotion("postgresql");
}

#[test]
#[ignore = "matrix hosts: as a PostgreSQL, which is in the suite"]
fn a_replica_of_mariadb_on_a_host_is_promoted() {
    check_promotion("mariadb");
}

#[test]
fn the_first_node_on_a_host_crashes_and_gets_what_it_has_missed() {
    let fault_text = "do = \"kill\"\nat = \"2s\"\nstart_after = \"2s\"\nmember = \"node-1\"";
    let database = format!(
        "{GALERA}\nload_on = \"all\"\nbehind = {{ product = \"haproxy\", balance = \"roundrobin\" }}"
    );
    // The others' clients continue.
    let (summary, ..) = run_until(&study(&database, fault_text, ""), 25, |summary| {
        let sizes = read_after(summary, "galera.node-2.cluster_size", answered(summary));
        went_on(summary) && !sizes.is_empty()
    });
    let fault = fault(&summary, "kill", "node-1");
    assert!(number(&fault["answered_s"]) > number(&fault["started_s"]), "{fault}");
    check_same(&summary, "node-2");
    check_same(&summary, "node-3");
    // It did not form a cluster of its own.
    let sizes = read_after(&summary, "galera.node-2.cluster_size", answered(&summary));
    assert_eq!(sizes.last(), Some(&3.0), "{sizes:?}");
}

#[test]
#[ignore = "matrix hosts: two clusters; a node that is killed is in the suite, and an isolated one without hosts"]
fn a_node_on_a_host_is_restarted_and_another_one_isolated() {
    let restart = "do = \"restart\"\nat = \"1s\"\nmember = \"node-2\"";
    let (summary, ..) = run(&study(GALERA, restart, "duration = \"15s\""));
    fault(&summary, "restart", "node-2");
    check_same(&summary, "node-2");
    let isolate = "do = \"isolate\"\nat = \"1s\"\nfor = \"8s\"\nmember = \"node-3\"";
    let (summary, ..) = run(&study(GALERA, isolate, "duration = \"20s\""));
    let fault = fault(&summary, "isolate", "node-3");
    assert!(number(&fault["ended_s"]) >= number(&fault["began_s"]) + 8.0, "{fault}");
    check_same(&summary, "node-3");
}

#[test]
#[ignore = "matrix hosts: three servers of MySQL for a minute; a node of Galera is in the suite"]
fn a_member_of_a_group_on_a_host_crashes_and_joins_again() {
    let Some(programs) = crate::group::mysql() else { return };
    let database = format!(
        "product = \"mysql\"\nprograms = \"{programs}\"\ncluster = \"group-replication\"\nnodes = 3"
    );
    let fault_text = "do = \"kill\"\nat = \"2s\"\nstart_after = \"1s\"\nmember = \"node-1\"";
    let text = study(&database, fault_text, "").replace("[workload.tpcb]", WITH_KEYS);
    // Clients find another primary.
    let (summary, ..) = run_until(&text, 45, |summary| commits(summary, 20.0, f64::MAX) > 0.0);
    fault(&summary, "kill", "node-1");
    check_same(&summary, "node-2");
}

#[test]
fn a_pooler_on_a_host_is_restarted() {
    let database = "product = \"postgresql\"\nbehind = { product = \"pgbouncer\", pool_size = 4 }";
    let restart = "do = \"restart\"\nat = \"2s\"\nmember = \"pooler\"";
    // Its statistics are read again.
    let (summary, ..) = run_until(&study(database, restart, ""), 6, |summary| {
        let rates = read_after(summary, "pgbouncer.transactions_per_s", answered(summary));
        went_on(summary) && rates.iter().any(|rate| *rate > 0.0)
    });
    let fault = fault(&summary, "restart", "pooler");
    assert!(number(&fault["answered_s"]) >= number(&fault["ended_s"]), "{fault}");
    assert!(number(&summary["steps"][0]["reconnects"]) >= 4.0);
}

#[test]
fn the_page_caches_of_hosts_are_dropped_before_each_load_level() {
    let may_drop = fs::File::options().write(true).open("/proc/sys/vm/drop_caches").is_ok();
    let (bench, data) = (Workbench::new(), DataFolder::new());
    let text =
        study("product = \"postgresql\"\nservers = 1", "do = \"nothing\"", "drop_caches = true");
    let text = text.replace("clients = 4", "vary = { clients = [1, 2] }\nduration = \"1s\"");
    bench.write("study.toml", &text);
    let answer = bench.dyno(&["run", "study.toml", "--data-folder", data.text()]);
    let trial = trial_folder(&bench.path("runs/study"), 1);
    let outcome = read_json(&trial.join("summary.json"))["outcome"].clone();
    assert!(left(&data).is_empty(), "{:?}", left(&data));
    if !may_drop {
        // Found before anything was started.
        let message = outcome["message"].to_string();
        assert!(message.contains("host sql1") && message.contains("root privileges"), "{message}");
        assert!(!events(&trial).contains("server_ready"));
        return;
    }
    assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
    let text = events(&trial);
    let dropped: Vec<&str> =
        text.lines().filter(|line| line.contains("\"caches_dropped\"")).collect();
    assert_eq!(dropped.len(), 2, "{dropped:?}");
    assert!(dropped.iter().all(|line| line.contains("\"host\":\"sql1\"")), "{dropped:?}");
}

/// A run of ten minutes; returns it with the server's process.
fn running(bench: &Workbench, data: &DataFolder, fault: &str) -> (Running, i32) {
    let text = study("product = \"mariadb\"\nservers = 1", fault, "duration = \"10min\"");
    bench.write("study.toml", &text);
    let mut run = bench.start(&["run", "study.toml", "--data-folder", data.text()]);
    run.wait_for(&["measuring"]);
    let server = server_pid(&trial_folder(&bench.path("runs/study"), 1));
    (run, server)
}

#[track_caller]
fn await_stop(pid: i32) {
    await_that(&format!("process {pid} is stopped"), || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit(')').next().unwrap().trim_start().starts_with('T')
    });
}

const PAUSE: &str = "do = \"stop\"\nat = \"1s\"\nfor = \"9min\"";

#[test]
fn a_host_that_is_lost_before_or_in_a_fault_fails_the_trial_at_once() {
    for (fault, is_in_it) in [("do = \"kill\"\nat = \"9min\"", false), (PAUSE, true)] {
        let (bench, data) = (Workbench::new(), DataFolder::new());
        let (run, server) = running(&bench, &data, fault);
        if is_in_it {
            await_stop(server);
        }
        kill_process(Pid::from_raw(parent(server)).unwrap(), Signal::KILL).unwrap();
        // It does not use the rest of its time.
        assert_eq!(run.end(), 1);
        await_end(server);
        await_removal(&data);
        let trial = read_json(&trial_folder(&bench.path("runs/study"), 1).join("summary.json"));
        let message = trial["outcome"]["message"].to_string();
        assert!(message.contains("host sql1") && message.contains("signal 9"), "{message}");
    }
}

#[test]
fn a_server_that_stands_still_ends_with_its_controller() {
    for signal in [Signal::KILL, Signal::INT] {
        let (bench, data) = (Workbench::new(), DataFolder::new());
        let (mut run, server) = running(&bench, &data, PAUSE);
        await_stop(server);
        run.signal(signal);
        run.child.wait().unwrap();
        await_end(server);
        await_removal(&data);
    }
}

#[test]
fn a_fault_of_a_member_that_no_host_has_is_refused() {
    let check = |database: &str, member: &str, expected: &str| {
        let bench = Workbench::new();
        let text = study(database, &format!("{CRASH}\nmember = \"{member}\""), "duration = \"9s\"");
        bench.write("study.toml", &text);
        let answer = bench.dyno(&["check", "study.toml"]);
        assert_eq!(answer.code, 2, "{}{}", answer.out, answer.err);
        assert!(answer.err.contains(expected), "{}", answer.err);
    };
    let none = "the database `there` has no member";
    check("product = \"mariadb\"\nservers = 1", "sql2", none);
    check("product = \"mariadb\"\nreplicas = 1", "replica-2", none);
    // Members of one deployment do not have their hosts' names.
    check("product = \"mariadb\"\nreplicas = 1", "sql2", none);
    check(GALERA, "replica-1", none);
}
