//! Servers killed, stopped and restarted on purpose under load.

use serde_json::Value;

use crate::support::{
    DataFolder, Workbench, events, is_alive, read_json, server_pid, trial_folder,
};

/// Summary of the trial, findings, report.
type Run = (Value, Value, String);

/// Runs for so many seconds; longer if a busy machine has not come far enough.
#[track_caller]
pub(crate) fn run_until(
    seconds: u32,
    run: impl Fn(u32) -> Run,
    has_come: fn(&Value) -> bool,
) -> Run {
    let tried = [1, 4].map(|factor| factor * seconds).into_iter().map(&run);
    if let Some(found) = tried.into_iter().find(|found| has_come(&found.0)) {
        return found;
    }
    let found = run(16 * seconds);
    assert!(has_come(&found.0), "{:#}", found.0["steps"][0]["faults"]);
    found
}

/// When the only fault's server, or its replacement, answered again, in measured time.
pub(crate) fn answered(summary: &Value) -> f64 {
    number(&summary["steps"][0]["faults"][0]["answered_s"])
}

/// Whether clients committed after that.
pub(crate) fn went_on(summary: &Value) -> bool {
    commits(summary, answered(summary), f64::MAX) > 0.0
}

#[track_caller]
fn run(database: &str, fault: &str, design: &str) -> Run {
    let (bench, data) = (Workbench::new(), DataFolder::new());
    let study = format!(
        "title = \"How long is it away after a crash?\"\n[database.a]\n{database}\n[workload.tpcb]\n\
         [fault.crash]\n{fault}\n[design]\nrepetitions = 1\nwarm_up = \"200ms\"\nrest = \"0s\"\n{design}\n"
    );
    bench.write("study.toml", &study);
    bench.dyno_good(&["run", "study.toml", "--out", "run", "--data-folder", data.text()]);
    let trial = trial_folder(&bench.path("run"), 1);
    let summary = read_json(&trial.join("summary.json"));
    assert_eq!(summary["outcome"]["state"], "finished", "{:#}", summary["outcome"]);
    assert!(events(&trial).contains("\"fault_made\""));
    assert!(!is_alive(server_pid(&trial)));
    let report = std::fs::read_to_string(bench.path("run/report.html")).unwrap();
    (summary, read_json(&bench.path("run/findings.json")), report)
}

pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Audit demands that were not met; some must have been met.
fn failed_audits(summary: &Value) -> Vec<&Value> {
    let rows = summary["audit"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["pass"] == true), "{summary:#}");
    rows.iter().filter(|row| row["pass"] != true).collect()
}

/// In seconds of a step that begin in this stretch of measured time.
pub(crate) fn commits(summary: &Value, from: f64, to: f64) -> f64 {
    let intervals = &summary["steps"][0]["intervals"];
    let starts = intervals["start_s"].as_array().unwrap().iter();
    let rates = intervals["throughput"].as_array().unwrap();
    let within = starts.zip(rates).filter(|(start, _)| (from..to).contains(&number(start)));
    within.map(|(_, rate)| number(rate)).sum()
}

#[track_caller]
fn check_crash(product: &str) {
    let fault = "do = \"kill\"\nat = \"4s\"\nstart_after = \"1s\"";
    let database = format!("product = \"{product}\"");
    let load = |seconds: u32| format!("clients = 4\nrate = 400\nduration = \"{seconds}s\"");
    let (summary, findings, report) =
        run_until(16, |seconds| run(&database, fault, &load(seconds)), went_on);
    let fault = &summary["steps"][0]["faults"][0];
    assert_eq!((&fault["kind"], &fault["member"]), (&"kill".into(), &"server".into()));
    let times = ["planned_s", "began_s", "ended_s", "started_s", "answered_s"];
    let times = times.map(|time| number(&fault[time]));
    assert!(times.is_sorted() && times[0] == 4.0 && times[3] >= times[1] + 1.0, "{fault}");
    // Confirmed work is there, within bounds for work in doubt.
    assert_eq!(failed_audits(&summary), Vec::<&Value>::new(), "{summary:#}");
    assert!(commits(&summary, 0.0, 4.0) > 0.0, "{}", summary["steps"][0]["intervals"]);
    let outcomes = &summary["steps"][0]["kinds"][0]["outcomes"];
    assert!(number(&outcomes["disconnected"]) >= 1.0, "{outcomes}");
    assert!(number(&summary["steps"][0]["reconnects"]) >= 4.0);
    let found = &findings["faults"][0];
    let away = number(&found["away_s"]);
    assert!(away >= 0.9 && away <= times[4] - times[1] + 15.0, "{found} {fault}");
    assert!(number(&found["answered_after_s"]) >= 1.0, "{found}");
    // A second that began just before the crash has the commits until then.
    assert!(number(&found["lowest"]) < 0.01 * number(&found["before"]), "{found}");
    assert!(number(&found["error_classes"]["disconnected"]) >= 1.0, "{found}");
    let headline = findings["answer"]["headline"].as_str().unwrap();
    assert!(headline.starts_with("After the server was killed: "), "{headline}");
    assert!(report.contains("Faults and recovery"));
    assert!(report.contains("fault crash: kill of server"));
}

#[test]
fn a_mariadb_that_crashes_comes_back_with_all_that_it_had_confirmed() {
    check_crash("mariadb");
}

#[test]
#[ignore = "matrix faults: as a MariaDB, which is in the suite"]
fn a_postgresql_that_crashes_comes_back_with_all_that_it_had_confirmed() {
    check_crash("postgresql");
}

#[test]
fn a_server_that_stays_down_is_audited_after_the_step() {
    let fault = "do = \"kill\"\nat = \"1s\"";
    let (summary, findings, _) =
        run("product = \"postgresql\"", fault, "clients = 2\nrate = 200\nduration = \"3s\"");
    let fault = &summary["steps"][0]["faults"][0];
    assert!(number(&fault["started_s"]) >= 3.0, "{fault}");
    assert_eq!(failed_audits(&summary), Vec::<&Value>::new(), "{summary:#}");
    let found = &findings["faults"][0];
    assert!(found["recovered_after_s"].is_null(), "{found}");
    assert!(number(&found["away_s"]) >= 0.9 * (3.0 - number(&fault["began_s"])), "{found}");
}

#[test]
fn a_server_that_is_stopped_is_seen_at_that_time() {
    let fault = "do = \"stop\"\nat = \"4s\"\nfor = \"1500ms\"\nevery = \"4500ms\"";
    let (summary, findings, _) =
        run("product = \"mariadb\"", fault, "clients = 2\nrate = 200\nduration = \"13s\"");
    let step = &summary["steps"][0];
    let faults = step["faults"].as_array().unwrap();
    assert_eq!(faults.len(), 2, "{faults:?}");
    for (fault, planned) in faults.iter().zip([4.0, 8.5]) {
        assert_eq!(number(&fault["planned_s"]), planned);
        let length = number(&fault["ended_s"]) - number(&fault["began_s"]);
        assert!(number(&fault["began_s"]) >= planned && length >= 1.5, "{fault}");
    }
    // Clients waited; none was disconnected.
    assert_eq!(number(&step["reconnects"]), 0.0);
    assert_eq!(failed_audits(&summary), Vec::<&Value>::new(), "{summary:#}");
    for found in findings["faults"].as_array().unwrap() {
        // On a busy machine, replies that were sent before are read up to a second later.
        assert!(number(&found["away_s"]) >= 0.5, "{found}");
        assert!(number(&found["longest_us"]) >= 1.4e6, "{found}");
    }
}

#[test]
fn a_server_that_is_restarted_closes_its_connections_in_order() {
    let fault = "do = \"restart\"\nat = \"2s\"";
    let (summary, _, _) = run("product = \"postgresql\"", fault, "rate = 200\nduration = \"6s\"");
    let step = &summary["steps"][0];
    let fault = &step["faults"][0];
    assert!(number(&fault["answered_s"]) > number(&fault["ended_s"]), "{fault}");
    assert_eq!(failed_audits(&summary), Vec::<&Value>::new(), "{summary:#}");
    // Arrivals went on: each is done, failed, missed or waiting.
    assert!(number(&step["due"]) > 900.0, "{}", step["due"]);
    assert!(number(&step["reconnects"]) >= 1.0);
}

#[test]
fn a_replica_that_crashes_follows_again() {
    let fault = "do = \"kill\"\nat = \"1s\"\nstart_after = \"500ms\"\nmember = \"replica-1\"";
    let (summary, _, _) = run(
        "product = \"postgresql\"\nreplicas = 1",
        fault,
        "clients = 2\nrate = 200\nduration = \"4s\"",
    );
    assert_eq!(summary["steps"][0]["faults"][0]["member"], "replica-1");
    assert_eq!(failed_audits(&summary), Vec::<&Value>::new(), "{summary:#}");
    let rows = summary["audit"].as_array().unwrap();
    let same = "replica-1 has the same rows as the primary, by count and checksum";
    assert!(rows.iter().any(|row| row["name"] == same), "{rows:?}");
    // The load is on the primary, and continued.
    assert_eq!(number(&summary["steps"][0]["reconnects"]), 0.0);
}

#[test]
#[ignore = "matrix faults: as one on a host, which is in the suite"]
fn a_node_that_crashes_joins_its_cluster_again() {
    let fault = "do = \"kill\"\nat = \"1s\"\nstart_after = \"0s\"\nmember = \"node-2\"";
    let database = "product = \"mariadb\"\ncluster = \"galera\"\nnodes = 3";
    let (summary, _, _) = run(database, fault, "clients = 2\nrate = 200\nduration = \"25s\"");
    let step = &summary["steps"][0];
    assert_eq!(step["faults"][0]["member"], "node-2");
    assert!(number(&step["faults"][0]["answered_s"]) > 1.0, "{}", step["faults"]);
    // The load is on the first node, which continued when the others agreed that one is gone.
    assert!(commits(&summary, 3.0, 25.0) > 0.0, "{}", step["intervals"]);
    assert_eq!(failed_audits(&summary), Vec::<&Value>::new(), "{summary:#}");
    let rows = summary["audit"].as_array().unwrap();
    let same = "node-2 has the same rows as node-1, by count and checksum";
    assert!(rows.iter().any(|row| row["name"] == same), "{rows:?}");
}

#[test]
fn a_node_that_loses_its_cluster_joins_it_again() {
    let fault = "do = \"isolate\"\nat = \"1s\"\nfor = \"8s\"\nmember = \"node-3\"";
    let database = "product = \"mariadb\"\ncluster = \"galera\"\nnodes = 3";
    let (summary, _, report) = run(database, fault, "clients = 2\nrate = 200\nduration = \"25s\"");
    let fault = &summary["steps"][0]["faults"][0];
    assert_eq!((&fault["kind"], &fault["member"]), (&"isolate".into(), &"node-3".into()));
    assert!(number(&fault["ended_s"]) >= number(&fault["began_s"]) + 8.0, "{fault}");
    assert!(number(&fault["answered_s"]) >= number(&fault["ended_s"]), "{fault}");
    assert!(report.contains("fault crash: isolate of node-3"));
    // The others agree that it is gone, and continue; then it gets what it missed.
    assert!(commits(&summary, 3.0, 25.0) > 0.0, "{}", summary["steps"][0]["intervals"]);
    assert_eq!(failed_audits(&summary), Vec::<&Value>::new(), "{summary:#}");
    let sizes = summary["steps"][0]["readings"]["galera.node-1.cluster_size"].as_array().unwrap();
    assert!(sizes.iter().any(|size| size.as_f64() == Some(2.0)), "{sizes:?}");
}

/// Kills a replicated primary under load and promotes a replica; returns summary, fault's findings, report.
fn promoted(database: &str, job: &str) -> (Value, Value, String) {
    let fault = format!("do = \"kill\"\nat = \"3s\"\nthen = \"promote\"\n{job}");
    let load = |seconds: u32| format!("clients = 4\nrate = 400\nduration = \"{seconds}s\"");
    let (summary, findings, report) =
        run_until(16, |seconds| run(database, &fault, &load(seconds)), went_on);
    let fault = &summary["steps"][0]["faults"][0];
    assert_eq!((&fault["kind"], &fault["member"]), (&"kill".into(), &"primary".into()));
    assert_eq!(fault["promotion"]["member"], "replica-1", "{fault}");
    assert!(number(&fault["answered_s"]) >= number(&fault["ended_s"]), "{fault}");
    assert_eq!(failed_audits(&summary), Vec::<&Value>::new(), "{summary:#}");
    assert!(report.contains("Replicas promoted"));
    (summary.clone(), findings["faults"][0].clone(), report)
}

#[track_caller]
fn check_synchronous(product: &str) {
    let database = format!("{product}\nreplicas = 1\nreplication = \"synchronous\"");
    let (_, found, _) = promoted(&database, "");
    let survived = &found["fault"]["promotion"]["survived"];
    assert!(number(&survived["acknowledged"]) > 0.0, "{found}");
    // Confirmed work is there; all other work that is there was in doubt.
    assert!(number(&survived["found"]) >= number(&survived["acknowledged"]), "{found}");
    assert!(number(&survived["in_doubt"]) > 0.0, "{found}");
    // Whatever is in doubt.
    assert_eq!(found["lost"], serde_json::json!([0, 0]), "{found}");
}

/// Replication is cut before the fault, so that later confirmed work must be missing.
#[track_caller]
fn check_asynchronous(product: &str, cut: &str) {
    let job = format!("[job.cut]\nsql = [{cut}]\nstart_after = \"1s\"\nload = \"on\"");
    let (summary, found, _) = promoted(&format!("product = \"{product}\"\nreplicas = 1"), &job);
    assert!(number(&found["lost"][0]) > 0.0, "{found}");
    let (least, most) = (number(&found["lost"][0]), number(&found["lost"][1]));
    let survived = &found["fault"]["promotion"]["survived"];
    assert_eq!((least, most), (number(&survived["lost"]), least), "{found}");
    let missing = number(&survived["acknowledged"]) - number(&survived["found"]);
    assert!(missing <= least && least <= missing + number(&survived["in_doubt"]), "{found}");
    // Clients continued with the replica.
    assert!(found["first_commit_after_s"].is_number(), "{found}");
    assert!(number(&summary["steps"][0]["reconnects"]) >= 4.0);
}

#[test]
fn a_promoted_postgresql_has_all_that_was_confirmed_if_commits_waited_for_it() {
    check_synchronous("product = \"postgresql\"");
}

#[test]
#[ignore = "matrix faults: as a PostgreSQL, which is in the suite"]
fn a_promoted_mariadb_has_all_that_was_confirmed_if_commits_waited_for_it() {
    check_synchronous("product = \"mariadb\"");
}

#[test]
#[ignore = "matrix faults: as a PostgreSQL, which is in the suite"]
fn a_promoted_mysql_has_all_that_was_confirmed_if_commits_waited_for_it() {
    let Some(programs) = crate::group::mysql() else { return };
    check_synchronous(&format!("product = \"mysql\"\nprograms = \"{programs}\""));
}

#[test]
#[ignore = "matrix faults: as a MariaDB, which is in the suite"]
fn a_promoted_postgresql_lacks_what_it_had_not_received() {
    let end = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots";
    let cut = format!("\"ALTER ROLE dyno_replica NOLOGIN\", \"{end}\"");
    check_asynchronous("postgresql", &cut);
}

#[test]
fn a_promoted_mariadb_lacks_what_it_had_not_received() {
    let lock = "ALTER USER 'dyno_replica'@'127.0.0.1' ACCOUNT LOCK";
    let cut = format!(
        "\"SET SESSION sql_log_bin = 0\", \"{lock}\", \"KILL CONNECTION USER dyno_replica\""
    );
    check_asynchronous("mariadb", &cut);
}
