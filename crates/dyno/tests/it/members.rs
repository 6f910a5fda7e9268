//! Deployments of several servers: replicas, a pooler.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{DataFolder, Workbench, events, read_json, trial_folder};

/// `tpcb` with these lines of the database; returns the first trial's summary.
fn run(lines: &str, workload: &str, design: &str) -> (Workbench, DataFolder, Value) {
    run_until(lines, workload, design, |_| true)
}

/// Longer if a busy machine's first step does not show enough.
fn run_until(
    lines: &str,
    workload: &str,
    design: &str,
    is_seen: impl Fn(&Value) -> bool,
) -> (Workbench, DataFolder, Value) {
    let done = run_for(4, lines, workload, design);
    let is_good =
        done.2["outcome"]["state"] != "finished" || is_seen(&done.2["steps"][0]["readings"]);
    if is_good { done } else { run_for(30, lines, workload, design) }
}

fn run_for(
    seconds: u32,
    lines: &str,
    workload: &str,
    design: &str,
) -> (Workbench, DataFolder, Value) {
    let bench = Workbench::new();
    let data = DataFolder::new();
    bench.write(
        "study.toml",
        &format!(
            "title = \"x\"\n[database.a]\n{lines}\n[workload.tpcb]\n{workload}\n[design]\n\
             repetitions = 1\nwarm_up = \"200ms\"\nduration = \"{seconds}s\"\nrest = \"0s\"\n\
             {design}\n"
        ),
    );
    bench.dyno_good(&["run", "study.toml", "--out", "run", "--data-folder", data.text()]);
    let trial = trial_folder(&bench.path("run"), 1);
    let summary = read_json(&trial.join("summary.json"));
    (bench, data, summary)
}

/// 0 if none was read.
fn most(readings: &Value, name: &str) -> f64 {
    let values = readings[name].as_array().into_iter().flatten();
    values.filter_map(Value::as_f64).fold(0.0, f64::max)
}

fn members(summary: &Value) -> Vec<(&str, &str)> {
    let all = summary["members"].as_array().unwrap().iter();
    all.map(|one| (one["name"].as_str().unwrap(), one["role"].as_str().unwrap())).collect()
}

fn texts(folder: &Path) -> String {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| match path.is_dir() {
            true => texts(&path),
            false => String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned(),
        })
        .collect()
}

#[track_caller]
fn check_replicas(product: &str, mode: &str, n: usize, reuse: bool) {
    let lines = format!("product = \"{product}\"\nreplicas = {n}\nreplication = \"{mode}\"");
    let design = format!("clients = 2\nrate = 200\nreuse = {reuse}");
    let (bench, data, summary) = run(&lines, "", &design);
    assert_eq!(summary["outcome"]["state"], "finished", "{:#}", summary["outcome"]);
    let found = members(&summary);
    assert_eq!(found[0], ("primary", "primary"));
    assert_eq!(found.len(), n + 1, "{found:?}");
    let readings = summary["steps"][0]["readings"].as_object().unwrap();
    for number in 1..=n {
        let name = format!("replica-{number}");
        assert_eq!(found[number], (name.as_str(), "replica"));
        for reading in ["cpu_s_per_s", "rss_bytes"] {
            assert!(readings.contains_key(&format!("{name}.{reading}")), "{name} {reading}");
        }
        let streaming = &readings[&format!("replication.{name}.streaming")];
        assert!(streaming.as_array().unwrap().iter().all(|one| one != 0.0), "{streaming}");
        let lag = readings[&format!("replication.{name}.lag_bytes")].as_array().unwrap();
        assert!(lag.iter().any(Value::is_number), "{lag:?}");
    }
    let audit = summary["audit"].as_array().unwrap();
    assert!(audit.iter().all(|row| row["pass"] == true), "{audit:#?}");
    let equal =
        |row: &&Value| row["name"].as_str().unwrap().contains("has the same rows as the primary");
    assert_eq!(audit.iter().filter(equal).count(), n, "{audit:#?}");
    // The replication password is nowhere in the record.
    let record = texts(&bench.path("run"));
    assert!(!record.contains("PASSWORD '"), "a statement with the password is in the record");
    let said = events(&trial_folder(&bench.path("run"), 1));
    assert!(said.contains("a row written on the primary was seen on each of them"), "{said}");
    // Only data sets are left.
    let left = fs::read_dir(data.path()).unwrap().flatten();
    let left: Vec<String> =
        left.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let is_server = |name: &&String| name.starts_with(product) || name.starts_with("data-");
    assert_eq!(left.iter().find(is_server), None, "{left:?}");
}

#[test]
fn replicas_of_postgresql_have_what_their_primary_has() {
    check_replicas("postgresql", "asynchronous", 2, true);
}

#[test]
fn commits_of_postgresql_wait_for_a_replica() {
    check_replicas("postgresql", "synchronous", 1, false);
}

#[test]
fn replicas_of_mariadb_have_what_their_primary_has() {
    check_replicas("mariadb", "asynchronous", 2, true);
}

#[test]
fn commits_of_mariadb_wait_for_a_replica() {
    check_replicas("mariadb", "synchronous", 1, false);
}

#[track_caller]
fn check_cluster(load_on: &str, reuse: bool) {
    let lines = format!(
        "product = \"mariadb\"\ncluster = \"galera\"\nnodes = 3\nload_on = \"{load_on}\"\n\
         settings = {{ wsrep_slave_threads = 2, wsrep_provider_options = \"gcs.fc_limit=32\" }}"
    );
    let sends = |readings: &Value, n: usize| {
        most(readings, &format!("galera.node-{n}.replicated_bytes_per_s")) > 0.0
    };
    let is_to_send = |n: usize| n == 1 || load_on == "all";
    let is_seen = |readings: &Value| {
        (1..=3).all(|n| {
            let size = most(readings, &format!("galera.node-{n}.cluster_size"));
            size > 0.0 && (sends(readings, n) || !is_to_send(n))
        })
    };
    let design = format!("clients = 6\nrate = 300\nreuse = {reuse}");
    let (bench, data, summary) = run_until(&lines, "", &design, is_seen);
    assert_eq!(summary["outcome"]["state"], "finished", "{:#}", summary["outcome"]);
    let expected = [("node-1", "primary"), ("node-2", "node"), ("node-3", "node")];
    assert_eq!(members(&summary), expected);
    let step = &summary["steps"][0];
    let readings = &step["readings"];
    for n in 1..=3 {
        assert_eq!(most(readings, &format!("galera.node-{n}.cluster_size")), 3.0);
        assert_eq!(sends(readings, n), is_to_send(n), "node-{n}: {readings}");
        assert!(readings[&format!("galera.node-{n}.paused_percent")].is_array(), "{readings}");
    }
    assert!(readings["node-2.cpu_s_per_s"].is_array(), "{readings}");
    let audit = summary["audit"].as_array().unwrap();
    assert!(audit.iter().all(|row| row["pass"] == true), "{audit:#?}");
    let equal =
        |row: &&Value| row["name"].as_str().unwrap().contains("has the same rows as node-1");
    assert_eq!(audit.iter().filter(equal).count(), 2, "{audit:#?}");
    // Nodes change the same few rows: losers count as deadlocks.
    let outcomes = step["kinds"][0]["outcomes"].as_object().unwrap();
    let is_known = |name: &String| ["committed", "deadlock"].contains(&name.as_str());
    assert!(outcomes.keys().all(is_known), "{outcomes:?}");
    let settings = &summary["server"]["settings"];
    assert_eq!(settings["wsrep_cluster_name"], "***");
    assert_eq!(settings["wsrep_slave_threads"], "2");
    let said = events(&trial_folder(&bench.path("run"), 1));
    assert!(said.contains("3 nodes form the cluster"), "{said}");
    let left = fs::read_dir(data.path()).unwrap().flatten();
    let left: Vec<String> =
        left.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let is_server = |name: &&String| name.starts_with("mariadb") || name.starts_with("data-");
    assert_eq!(left.iter().find(is_server), None, "{left:?}");
}

#[test]
fn all_nodes_of_a_cluster_take_the_load_and_have_the_same_rows() {
    check_cluster("all", true);
}

#[test]
fn the_first_node_of_a_cluster_takes_the_load_alone() {
    check_cluster("first", false);
}

#[test]
fn clients_share_the_connections_of_a_pooler() {
    let check = |mode: &str, protocol: &str, expected: &str| {
        let lines = format!(
            "product = \"postgresql\"\nbehind = {{ product = \"pgbouncer\", pool_mode = \"{mode}\", \
             pool_size = 2 }}"
        );
        let workload = format!("protocol = \"{protocol}\"");
        // Waits of shared connections are short: only their sum shows them for sure.
        let waiting = if mode == "session" { "clients_waiting" } else { "wait_s_per_s" };
        let is_seen = |readings: &Value| most(readings, &format!("pgbouncer.{waiting}")) > 0.0;
        let (bench, _data, summary) = run_until(&lines, &workload, "clients = 6", is_seen);
        assert_eq!(summary["outcome"]["state"], "finished", "{:#}", summary["outcome"]);
        assert_eq!(members(&summary), [("primary", "primary"), ("pooler", "router")]);
        assert_eq!(summary["server"]["product"], "PostgreSQL");
        let step = &summary["steps"][0];
        let readings = &step["readings"];
        assert!(is_seen(readings), "{mode}: {readings}");
        assert!(most(readings, "pgbouncer.servers_active") <= 2.0, "{mode}: {readings}");
        assert!(readings["pooler.cpu_s_per_s"].is_array(), "{mode}: {readings}");
        let audit = summary["audit"].as_array().unwrap();
        assert!(audit.iter().all(|row| row["pass"] == true), "{audit:#?}");
        let said = events(&trial_folder(&bench.path("run"), 1));
        assert!(said.contains(expected), "{said}");
    };
    check("transaction", "prepared", "join");
    check("session", "simple", "2 of 6 clients are served");
}

#[test]
fn a_proxy_passes_connections_on_to_a_server() {
    let check = |product: &str| {
        let lines = format!("product = \"{product}\"\nbehind = {{ product = \"haproxy\" }}");
        let is_seen = |readings: &Value| {
            most(readings, "haproxy.clients") >= 4.0
                && most(readings, "haproxy.sent_bytes_per_s") > 0.0
        };
        let (_bench, _data, summary) = run_until(&lines, "", "clients = 4\nrate = 200", is_seen);
        assert_eq!(summary["outcome"]["state"], "finished", "{:#}", summary["outcome"]);
        assert_eq!(members(&summary), [("primary", "primary"), ("proxy", "router")]);
        let readings = &summary["steps"][0]["readings"];
        assert!(is_seen(readings), "{product}: {readings}");
        assert!(readings["proxy.cpu_s_per_s"].is_array(), "{product}: {readings}");
        let audit = summary["audit"].as_array().unwrap();
        assert!(audit.iter().all(|row| row["pass"] == true), "{audit:#?}");
    };
    check("postgresql");
    check("mariadb");
}

#[test]
fn a_proxy_shares_the_load_among_the_nodes_of_a_cluster() {
    let lines = "product = \"mariadb\"\ncluster = \"galera\"\nnodes = 2\nload_on = \"all\"\n\
                 behind = { product = \"haproxy\", balance = \"roundrobin\" }";
    let is_seen = |readings: &Value| {
        let connections =
            |node: &str| most(readings, &format!("haproxy.server.{node}.connections"));
        connections("node-1") >= 2.0 && connections("node-2") >= 2.0
    };
    let (_bench, _data, summary) = run_until(lines, "", "clients = 4\nrate = 200", is_seen);
    assert_eq!(summary["outcome"]["state"], "finished", "{:#}", summary["outcome"]);
    let expected = [("node-1", "primary"), ("node-2", "node"), ("proxy", "router")];
    assert_eq!(members(&summary), expected);
    assert!(is_seen(&summary["steps"][0]["readings"]), "{}", summary["steps"][0]["readings"]);
    let audit = summary["audit"].as_array().unwrap();
    assert!(audit.iter().all(|row| row["pass"] == true), "{audit:#?}");
}

#[test]
fn what_a_deployment_cannot_be_is_said_by_check() {
    let bench = Workbench::new();
    let check = |lines: &str, expected: &str| {
        let study = format!("title = \"x\"\n[database.a]\n{lines}\n[workload.tpcb]\n");
        bench.write("study.toml", &study);
        let answer = bench.dyno(&["check", "study.toml"]);
        assert_eq!(answer.code, 2, "{lines}: {}{}", answer.out, answer.err);
        assert!(answer.err.contains(expected), "{lines}: {}", answer.err);
    };
    check("product = \"sqlite\"\nreplicas = 1", "product `sqlite` has no replicas");
    check(
        "product = \"postgresql\"\ncluster = \"galera\"",
        "product `postgresql` has no cluster `galera`",
    );
    check(
        "product = \"mariadb\"\nbehind = { product = \"pgbouncer\" }",
        "`pgbouncer` cannot be placed in front of `mariadb`",
    );
    check(
        "product = \"postgresql\"\nbehind = { product = \"proxysql\" }",
        "Dyno cannot start ProxySQL",
    );
    check(
        "product = \"postgresql\"\nbehind = { product = \"pgbouncer\", pool_sise = 4 }",
        "`pgbouncer` has no option `pool_sise`",
    );
}

#[test]
fn members_that_are_not_there_are_refused_before_the_first_trial() {
    let (bench, data) = (Workbench::new(), DataFolder::new());
    let check = |lines: &str, fault: &str, expected: &str| {
        let study = format!(
            "title = \"x\"\n[database.a]\nproduct = \"postgresql\"\n{lines}\n[workload.oltp_read_only]\n{fault}"
        );
        bench.write("study.toml", &study);
        let answer =
            bench.dyno(&["run", "study.toml", "--out", "run", "--data-folder", data.text()]);
        assert_eq!(answer.code, 2, "{lines}: {}{}", answer.out, answer.err);
        assert!(answer.err.contains(expected), "{lines}: {}", answer.err);
        assert!(!bench.path("run").exists());
        let answer = bench.dyno(&["check", "study.toml"]);
        assert_eq!(answer.code, 2, "{lines}: {}{}", answer.out, answer.err);
        assert!(answer.err.contains(expected), "{lines}: {}", answer.err);
    };
    check(
        "replicas = 1\nmember_cpus = { replica-2 = 0 }",
        "",
        "`member_cpus` names the member `replica-2`, which this deployment does not have; its members: primary, \
         replica-1",
    );
    check(
        "behind = { product = \"pgbouncer\" }\nmember_memory = { pooler = \"1GiB\" }",
        "",
        "`member_memory` cannot be given to `pooler`",
    );
    let fault = "[fault.f]\ndo = \"kill\"\nat = \"3s\"\nthen = \"promote\"\n";
    check(
        "replicas = 1",
        fault,
        "cannot promote: how many transactions are lost cannot be counted",
    );
}

#[test]
fn a_member_with_limits_may_be_one_of_some_variants_only() {
    let bench = Workbench::new();
    bench.write(
        "study.toml",
        "title = \"x\"\n[database.a]\nproduct = \"postgresql\"\nreplicas = 0\nmember_cpus = { replica-1 = 0 }\n\
         [workload.oltp_read_only]\n[design.vary]\n\"database.replicas\" = [0, 1]\n",
    );
    let answer = bench.dyno_good(&["check", "study.toml"]);
    assert!(answer.out.contains("no errors; 2 variants"), "{}", answer.out);
}

#[test]
fn replicas_take_the_load_of_a_workload_that_only_reads() {
    let rows_of_primary = |reads_on: &str| {
        let (bench, data) = (Workbench::new(), DataFolder::new());
        let text = format!(
            "title = \"x\"\n[database.a]\nproduct = \"postgresql\"\nreplicas = 2\nreads_on = \"{reads_on}\"\n\
             [workload.oltp_read_only]\ntables = 1\ntable_size = 1000\n[design]\nclients = 4\n\
             repetitions = 1\nwarm_up = \"100ms\"\nduration = \"3s\"\nrest = \"0s\"\n"
        );
        bench.write("study.toml", &text);
        bench.dyno_good(&["run", "study.toml", "--out", "run", "--data-folder", data.text()]);
        let summary = read_json(&trial_folder(&bench.path("run"), 1).join("summary.json"));
        assert_eq!(summary["outcome"]["state"], "finished", "{:#}", summary["outcome"]);
        let audit = summary["audit"].as_array().unwrap();
        assert!(audit.iter().all(|row| row["pass"] == true), "{audit:#?}");
        let step = &summary["steps"][0];
        assert!(step["kinds"][0]["outcomes"]["committed"].as_u64() > Some(0), "{step:#}");
        let most = |name: &str| most(&step["readings"], name);
        let replicas = ["replica-1.cpu_s_per_s", "replica-2.cpu_s_per_s"].map(most);
        assert!(replicas.iter().all(|cpu| *cpu > 0.02), "{replicas:?}");
        most("pg.rows_fetched_per_s")
    };
    // The primary has other CPU work, so its share of the load shows in rows read, some of them by probes.
    let [without, with] = ["replicas", "all"].map(rows_of_primary);
    assert!(with > 2.0 * without, "{without} rows/s, and {with} with a share of the load");
}

#[test]
fn replicas_take_no_load_that_writes() {
    let bench = Workbench::new();
    let check = |workload: &str, database: &str, expected: &str| {
        let text = format!(
            "title = \"x\"\n[database.a]\nproduct = \"postgresql\"\nreplicas = 1\nreads_on = \"replicas\"\n\
             {database}\n[workload.{workload}]\n[design]\nclients = 4\n"
        );
        bench.write("study.toml", &text);
        let answer = bench.dyno(&["check", "study.toml"]);
        assert_eq!(answer.code, if expected.is_empty() { 0 } else { 2 }, "{}", answer.err);
        assert!(answer.err.contains(expected), "{workload}: {}", answer.err);
    };
    check("oltp_read_only", "", "");
    check("oltp_read_write", "", "it writes, and replicas are read-only");
    check("tpcb", "", "it writes, and replicas are read-only");
    let behind = "behind = { product = \"pgbouncer\" }";
    check("oltp_read_only", behind, "`reads_on` and `behind` cannot be combined");
}
