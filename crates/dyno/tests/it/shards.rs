//! Shards behind a router: split tables, a load through the router, a shard that dies.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{DataFolder, Workbench, await_end, events, read_json, trial_folder};

fn study(workload: &str, database: &str, duration: &str) -> String {
    let mariadb = "product = \"mariadb\"\nsettings = { innodb_buffer_pool_size = \"32MiB\" }";
    study_on(mariadb, workload, database, duration)
}

fn study_on(product: &str, workload: &str, database: &str, duration: &str) -> String {
    format!(
        "title = \"x\"\n[database.a]\n{product}\n{database}\n[workload.{workload}]\ntables = 5\n\
         table_size = 500\n[design]\nclients = 4\nrate = 200\nrepetitions = 1\nwarm_up = \"200ms\"\n\
         duration = \"{duration}\"\nrest = \"0s\"\n"
    )
}

fn left_in(folder: &Path) -> Vec<String> {
    let left = fs::read_dir(folder).unwrap().flatten();
    let left = left.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_of_server = |name: &String| {
        ["mariadb", "postgresql", "data-"].iter().any(|start| name.starts_with(start))
    };
    left.filter(is_of_server).collect()
}

/// In the order of their start.
fn servers(trial: &Path) -> Vec<i32> {
    let said = events(trial);
    let lines = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let pid = |event: Value| {
        let text = event.to_string();
        let (_, rest) = text.split_once("\"pid\":")?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    lines.filter_map(pid).collect()
}

#[track_caller]
fn check_load(workload: &str, by: &str, placed: &str, agreed: &str) {
    let database = format!(
        "shards = 3\nshard_by = \"{by}\"\nrouter_settings = {{ spider_conn_recycle_mode = 1 }}"
    );
    let study = study(workload, &database, "2500ms");
    check_study(&study, "statements_per_s", placed, agreed, &["committed", "deadlock"]);
}

#[track_caller]
fn check_study(study: &str, counted: &str, placed: &str, agreed: &str, known: &[&str]) {
    let (bench, data) = (Workbench::new(), DataFolder::new());
    bench.write("study.toml", study);
    bench.dyno_good(&["run", "study.toml", "--out", "run", "--data-folder", data.text()]);
    let trial = trial_folder(&bench.path("run"), 1);
    let summary = read_json(&trial.join("summary.json"));
    assert_eq!(summary["outcome"]["state"], "finished", "{:#}", summary["outcome"]);
    let members = summary["members"].as_array().unwrap().iter();
    let members: Vec<(&str, &str)> =
        members.map(|one| (one["name"].as_str().unwrap(), one["role"].as_str().unwrap())).collect();
    let expected =
        [("shard-1", "primary"), ("shard-2", "shard"), ("shard-3", "shard"), ("router", "router")];
    assert_eq!(members, expected);
    let said = events(&trial);
    assert!(said.contains(placed), "{said}");
    let audit = summary["audit"].as_array().unwrap();
    assert!(audit.iter().all(|row| row["pass"] == true), "{audit:#?}");
    let row = audit.iter().find(|row| row["name"] == agreed).unwrap();
    assert_eq!(row["measured"], "5 of 5 tables");
    assert!(audit.len() > 1, "{audit:#?}");
    let step = &summary["steps"][0];
    let readings = step["readings"].as_object().unwrap();
    for name in ["shard-1", "shard-2", "shard-3", "router"] {
        let values = readings[&format!("shards.{name}.{counted}")].as_array().unwrap();
        assert!(values.iter().any(|value| value.as_f64() > Some(5.0)), "{name}: {values:?}");
    }
    assert!(
        readings.contains_key("shard-3.cpu_s_per_s") && readings.contains_key("router.rss_bytes")
    );
    let outcomes = step["kinds"][0]["outcomes"].as_object().unwrap();
    let is_known = |name: &String| known.contains(&name.as_str());
    assert!(outcomes["committed"].as_u64() > Some(0), "{outcomes:?}");
    assert!(outcomes.keys().all(is_known), "{outcomes:?}");
    assert_eq!(left_in(data.path()), Vec::<String>::new());
}

#[test]
fn shards_answer_reads_through_their_router() {
    let placed = "2 on shard-1, 2 on shard-2, 1 on shard-3";
    let agreed = "the router counts as many rows as all shards together";
    check_load("oltp_read_only", "table", placed, agreed);
}

#[test]
fn shards_that_have_rows_by_key_take_writes_through_their_router() {
    // Of keys 1 to 500 of five tables, 166 leave no remainder, and 167 each of the two others.
    let placed = "830 rows on shard-1, 835 rows on shard-2, 835 rows on shard-3";
    let agreed = "the router counts as many rows as all shards together, and each shard has only its own rows";
    check_load("oltp_read_write", "key", placed, agreed);
}

fn on_postgresql(workload: &str, by: &str) -> String {
    let product = "product = \"postgresql\"\nsettings = { shared_buffers = \"16MiB\" }";
    let database = format!(
        "shards = 3\nshard_by = \"{by}\"\nrouter_settings = {{ enable_partitionwise_aggregate = true }}"
    );
    study_on(product, workload, &database, "2500ms")
}

#[test]
#[ignore = "matrix products: as a MariaDB, which is in the suite"]
fn shards_of_postgresql_answer_reads_through_their_router() {
    let placed = "2 on shard-1, 2 on shard-2, 1 on shard-3";
    let agreed = "the router counts as many rows as all shards together";
    let study = on_postgresql("oltp_read_only", "table");
    check_study(&study, "transactions_per_s", placed, agreed, &["committed"]);
}

#[test]
fn shards_of_postgresql_that_have_rows_by_key_take_writes_through_their_router() {
    let agreed = "the router counts as many rows as all shards together, and each shard has only its own rows";
    // A shard reports concurrent changes of a row as serialization failures.
    let known = ["committed", "deadlock", "serialization"];
    let study = on_postgresql("oltp_read_write", "key");
    check_study(&study, "transactions_per_s", " rows on shard-1, ", agreed, &known);
}

#[test]
fn tables_without_a_primary_key_are_not_split_by_key() {
    let (bench, data) = (Workbench::new(), DataFolder::new());
    let text = "title = \"x\"\n[database.a]\nproduct = \"mariadb\"\nshards = 2\nshard_by = \"key\"\n\
        [workload.own]\n[workload.own.table.t]\nrows = 10\n[workload.own.table.t.columns]\n\
        a = { type = \"int\", value = { uniform = [1, 9] } }\n[workload.own.transaction.read]\n\
        steps = [{ sql = \"SELECT COUNT(*) FROM t\" }]\n[design]\nclients = 1\nrepetitions = 1\n\
        warm_up = \"0s\"\nduration = \"1s\"\n";
    bench.write("study.toml", text);
    let answer = bench.dyno(&["run", "study.toml", "--out", "run", "--data-folder", data.text()]);
    assert_eq!(answer.code, 1, "{}{}", answer.out, answer.err);
    let all = format!("{}{}", answer.out, answer.err);
    assert!(all.contains("cannot be split by key: it has no primary key"), "{all}");
    assert_eq!(left_in(data.path()), Vec::<String>::new());
}

#[test]
fn a_shard_that_dies_fails_its_trial_by_its_name() {
    let (bench, data) = (Workbench::new(), DataFolder::new());
    bench.write("study.toml", &study("oltp_read_only", "shards = 2", "8s"));
    let mut running =
        bench.start(&["run", "study.toml", "--out", "run", "--data-folder", data.text()]);
    running.wait_for(&["measuring"]);
    // The last two are the second shard and the router.
    let all = servers(&trial_folder(&bench.path("run"), 1));
    let shard = all[all.len() - 2];
    kill_process(Pid::from_raw(shard).unwrap(), Signal::KILL).unwrap();
    assert_eq!(running.end(), 1);
    let findings = read_json(&bench.path("run/findings.json"));
    let trial = &findings["trials"][0];
    assert_eq!(trial["state"], "failed", "{trial:#}");
    let message = trial["message"].as_str().unwrap();
    assert!(message.contains("shard-2: "), "{message}");
    all.into_iter().for_each(await_end);
    assert_eq!(left_in(data.path()), Vec::<String>::new());
}

#[test]
fn what_shards_cannot_be_is_said_by_check() {
    let bench = Workbench::new();
    let check = |lines: &str, design: &str, expected: &str| {
        let study =
            format!("title = \"x\"\n[database.a]\n{lines}\n[workload.tpcb]\n[design]\n{design}\n");
        bench.write("study.toml", &study);
        let answer = bench.dyno(&["check", "study.toml"]);
        assert_eq!(answer.code, 2, "{lines}: {}{}", answer.out, answer.err);
        assert!(answer.err.contains(expected), "{lines}: {}", answer.err);
    };
    check("product = \"clickhouse\"\nshards = 2", "", "product `clickhouse` has no shards");
    check("product = \"mysql\"\nshards = 2", "", "product `mysql` has no shards");
    check("product = \"mariadb\"\nshards = 9", "", "`shards` must be between 0 and 8");
    let both = "product = \"mariadb\"\nshards = 2\nreplicas = 1";
    check(both, "", "`replicas` and `shards` cannot be combined");
    let both = "product = \"mariadb\"\nshards = 2\ncluster = \"galera\"";
    check(both, "", "`cluster` and `shards` cannot be combined");
    let both = "product = \"mariadb\"\nshards = 2\nbehind = { product = \"haproxy\" }";
    check(both, "", "`behind` and `shards` cannot be combined");
    let two = "product = \"mariadb\"\nshards = 2";
    check(two, "run_off = \"5s\"", "`run_off` works with one server only");
    bench.write(
        "study.toml",
        "title = \"x\"\n[database.a]\nproduct = \"mariadb\"\nshards = 2\n[workload.insert-benchmark]\n",
    );
    let answer = bench.dyno(&["check", "study.toml"]);
    assert!(answer.err.contains("defines its own steps"), "{}", answer.err);
}
