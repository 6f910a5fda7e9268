//! `dyno watch`: servers, processes and this host, without load.

use std::process::Command;

use crate::foreign::Standing;
use crate::support::{Workbench, trial_folder};

/// What watching must leave as it is: tables, users, settings, and how often a server has done what
/// changes any of them.
fn state(standing: &Standing) -> Vec<Vec<Option<String>>> {
    let queries = [
        "SELECT table_schema, table_name, create_time FROM information_schema.tables \
         WHERE table_schema <> 'information_schema' ORDER BY 1, 2",
        "SELECT user, host FROM mysql.user ORDER BY 1, 2",
        "SHOW GLOBAL VARIABLES WHERE variable_name NOT LIKE '%timestamp%'",
        "SHOW GLOBAL STATUS WHERE variable_name REGEXP \
         '^com_(create|drop|alter|rename|insert|update|delete|replace|load|truncate|grant|revoke|lock|flush)'",
    ];
    let mut connection = standing.connection();
    queries.iter().flat_map(|query| connection.query(query).unwrap()).collect()
}

#[test]
fn a_server_is_watched_by_its_url_and_not_touched() {
    let standing = Standing::start("mariadb");
    let before = state(&standing);
    assert!(before.len() > 100, "there is something to compare");
    let bench = Workbench::new();
    // No catalog: nothing of any is looked at.
    let url = format!("mysql://root@localhost?socket={}", standing.socket.display());
    let answer = bench.dyno_good(&["watch", &url, "--for", "4s", "--record", "record"]);
    let lines: Vec<&str> = answer.out.lines().filter(|line| line.contains(" · ")).collect();
    assert_eq!(lines.len(), 4, "{}", answer.out);
    for words in ["server ", "rest ", "statements ", "debt ", "CPU "] {
        assert!(lines[3].contains(words), "{words} is not in {}", lines[3]);
    }
    assert_eq!(state(&standing), before, "watching changes nothing");
    let events = trial_folder(&bench.path("record"), 1).join("events.jsonl.gz");
    assert!(events.is_file(), "the trial is written as any other");

    let summary = trial_folder(&bench.path("record"), 1).join("summary.json");
    let summary = crate::support::read_json(&summary);
    let readings = summary["steps"][0]["readings"].as_object().unwrap();
    for name in [
        "server.cpu_s_per_s",
        "server.foreground.cpu_s_per_s",
        "server.thread.probe.cpu_s_per_s",
        "mysql.statements_per_s",
        "debt.gauge",
        "cpu.busy_pct",
        "data.bytes",
        "filesystem.free_bytes",
    ] {
        assert!(readings.contains_key(name), "{name}: {:?}", readings.keys());
        assert!(summary["meanings"][name]["text"].is_string(), "{name} has no meaning");
    }
    assert!(summary["probes_cpu_s"].as_f64() > Some(0.0));
    assert_eq!(summary["server"]["product"], "MariaDB");
    assert!(summary["server"]["settings"]["datadir"].is_string());
    let page = std::fs::read_to_string(bench.path("record/report.html")).unwrap();
    assert!(page.contains("mysql.statements_per_s"), "the readings are drawn");
    let told = bench.dyno_good(&["report", "record"]).out;
    assert!(told.contains("Observed (Dyno sent no load): "), "{told}");
    assert!(told.contains("statements/s, Dyno's own included"), "{told}");
    // Statements are no transactions, nobody waited, and an idle server has nothing to answer for.
    for wrong in ["transactions/s", "p95", "not available", "behind"] {
        assert!(!told.contains(wrong), "{wrong}: {told}");
        assert!(!answer.out.contains(wrong), "{wrong}: {}", answer.out);
    }
    assert!(!page.contains("per transaction</span>"), "nothing is told by transaction");
    assert!(!told.contains("committed no transaction"), "{told}");
}

#[test]
fn this_host_is_watched_without_the_probes_that_are_off() {
    let bench = Workbench::new();
    let off = ["--probes-off", "responsiveness", "--probes-off", "frequency"];
    let arguments = [&["watch", "--for", "3s", "--record", "record"][..], &off].concat();
    let told = bench.dyno_good(&arguments).out;
    assert!(told.contains("CPUs of this machine were busy."), "{told}");
    assert!(!told.contains("committed no transaction"), "{told}");
    let again = bench.dyno(&["watch", "--for", "3s", "--record", "record"]);
    assert!(again.code != 0 && again.err.contains("name a new one"), "{}", again.err);

    let summary = trial_folder(&bench.path("record"), 1).join("summary.json");
    let readings = crate::support::read_json(&summary)["steps"][0]["readings"].clone();
    let names: Vec<&String> = readings.as_object().unwrap().keys().collect();
    assert!(names.iter().any(|name| *name == "cpu.busy_pct"), "{names:?}");
    assert!(!names.iter().any(|name| name.contains("responsiveness")), "{names:?}");

    let answer = bench.dyno(&["watch", "--probes-off", "everything"]);
    assert_ne!(answer.code, 0);
    assert!(answer.err.contains("responsiveness"), "what can be turned off: {}", answer.err);
}

#[test]
fn a_right_that_is_missing_is_reported_once() {
    let standing = Standing::start("mariadb");
    standing.connection().query("CREATE USER weak@localhost").unwrap();
    let bench = Workbench::new();
    let url = format!("mysql://weak@localhost?socket={}", standing.socket.display());
    let answer = bench.dyno_good(&["watch", &url, "--for", "4s"]);
    let told = answer.err.matches("so `SHOW ENGINE INNODB STATUS` is not recorded").count();
    assert_eq!(told, 1, "{}", answer.err);
    assert!(answer.err.contains("PROCESS"), "{}", answer.err);
    assert!(answer.out.contains("statements "), "the rest is read: {}", answer.out);
}

#[test]
fn watching_a_process_ends_with_it() {
    let mut child = Command::new("sleep").arg("3").spawn().unwrap();
    let bench = Workbench::new();
    let pid = child.id().to_string();
    let mut running = bench.start(&["watch", "--pid", &pid]);
    running.wait_for(&["watching process", &pid, "sleep"]);
    // Else it would be there as one that waits to be collected, which counts as ended, too.
    child.wait().unwrap();
    running.wait_for(&["has ended"]);
    assert_eq!(running.end(), 0);
}

#[test]
fn what_cannot_be_watched_is_reported() {
    let bench = Workbench::new();
    let check = |arguments: &[&str], expected: &str| {
        let all: Vec<&str> = ["watch"].iter().chain(arguments).copied().collect();
        let answer = bench.dyno(&all);
        assert_ne!(answer.code, 0, "{arguments:?}");
        assert!(answer.err.contains(expected), "{arguments:?}: {}", answer.err);
        assert!(!answer.err.contains("hush"), "{arguments:?}: {}", answer.err);
    };
    check(&["--pid", "2147483647"], "there is no such process");
    check(&["--every", "10ms"], "the shortest is 1s");
    check(&["--for", "1ms"], "at least 2s");
    check(&["mysql://me:hush@127.0.0.1:1/x"], "cannot be watched");
    check(&["mysql://me:hush@127.0.0.1"], "cannot be watched");
}
