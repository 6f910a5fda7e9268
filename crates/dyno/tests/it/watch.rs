//! `dyno watch`: servers, processes and this host, without load.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::foreign::Standing;
use crate::support::{Answer, Workbench, trial_folder};

/// Must not change: tables, users, settings, and the server's counts of changes to them.
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
    // No catalog: nothing of one is looked at.
    let url = format!("mysql://root@localhost?socket={}", standing.socket.display());
    let answer = bench.dyno_good(&["watch", &url, "--for", "4s", "--record", "record"]);
    let lines: Vec<&str> = answer.out.lines().filter(|line| line.contains(" s · ")).collect();
    assert_eq!(lines.len(), 4, "{}", answer.out);
    for words in ["server ", "other processes ", "statements ", "backlog ", "CPU "] {
        assert!(lines.iter().any(|line| line.contains(words)), "{words}: {}", answer.out);
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
    // Statements are no transactions, nobody waits, and an idle server has no debt.
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
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    let bench = Workbench::new();
    let pid = child.id().to_string();
    let mut command = bench.command(&["watch", "--pid", &pid]);
    let mut watch = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    // It must be seen before it ends.
    assert!(lines.any(|line| line.contains(" s · ")));
    child.kill().unwrap();
    // Otherwise it would stay as a zombie, which also counts as ended.
    child.wait().unwrap();
    lines.for_each(drop);
    let answer: Answer = watch.wait_with_output().unwrap().into();
    assert_eq!(answer.code, 0, "{}", answer.err);
    let expected = [&format!("watching process {pid} sleep"), "has ended"];
    assert!(expected.iter().all(|words| answer.err.contains(*words)), "{}", answer.err);
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
    check(&["--every", "10ms"], "must be at least 1 s");
    check(&["--for", "1ms"], "at least 2s");
    check(&["mysql://me:hush@127.0.0.1:1/x"], "cannot be watched");
    check(&["mysql://me:hush@127.0.0.1"], "cannot be watched");
}

/// Two databases without load, one of them no server.
const STUDY: &str = r#"
title = "What goes on by itself?"
[database.sqlite]
product = "sqlite"
[database.host]
product = "host"
[workload.none]
[probe.made]
command = ["echo", "answer 42"]
[design]
vary = { database = ["sqlite", "host"] }
repetitions = 1
duration = "3s"
warm_up = "1s"
rest = "0s"
probes_off = ["responsiveness"]
"#;

#[test]
fn a_study_may_send_nothing() {
    let bench = Workbench::new();
    bench.write("study.toml", STUDY);
    bench.dyno_good(&["check", "study.toml"]);
    let plan = bench.dyno_good(&["plan", "study.toml"]).out;
    assert!(plan.contains("observe") && plan.contains("nothing is sent"), "{plan}");
    let told = bench.dyno_good(&["run", "study.toml", "--out", "record"]).out;
    for variant in ["sqlite", "host"] {
        let observed = format!("Observed on {variant} (Dyno sent no load): ");
        assert!(told.contains(&observed), "{observed}: {told}");
    }
    for wrong in ["transactions/s", "p95", "calibrat", "offered", "audit", "repetitions"] {
        assert!(!told.contains(wrong), "{wrong}: {told}");
    }
    for trial in [1, 2] {
        let folder = trial_folder(&bench.path("record"), trial);
        let summary = crate::support::read_json(&folder.join("summary.json"));
        let step = &summary["steps"][0];
        assert_eq!((&step["ended_by"], step["measured_s"].as_f64()), (&"time".into(), Some(3.0)));
        let starts: Vec<f64> =
            serde_json::from_value(step["intervals"]["start_s"].clone()).unwrap();
        assert_eq!(starts, [-1.0, 0.0, 1.0, 2.0]);
        let readings = step["readings"].as_object().unwrap();
        for name in ["cpu.busy_pct", "probe.made.answer"] {
            let column = readings.get(name).and_then(serde_json::Value::as_array);
            let is_read = column.is_some_and(|column| column.iter().any(|value| value.is_number()));
            assert!(is_read, "{name}: {:?}", readings.keys());
        }
        assert!(!readings.keys().any(|name| name.contains("responsiveness")));
        assert!(summary["canary"].is_null() && summary["audit"].as_array().unwrap().is_empty());
    }
}

#[test]
fn what_says_something_of_a_load_is_refused() {
    let bench = Workbench::new();
    let check = |from: &str, to: &str, expected: &str| {
        assert!(STUDY.contains(from));
        bench.write("study.toml", &STUDY.replace(from, to));
        let answer = bench.dyno(&["check", "study.toml"]);
        let told = answer.err + &answer.out;
        assert!(answer.code != 0 && told.contains(expected), "{to}: {told}");
    };
    let design = "repetitions = 1";
    check(design, "clients = 4", "`clients` has no effect here");
    check(design, "rate = 500", "`rate` has no effect here");
    check(design, "until_steady = '9s'", "`until_steady` has no effect here");
    check("[workload.none]", "[workload.none]\nevery = '1ms'", "must be at least 1 s");
    check("\"sqlite\"\n[", "\"simulated\"\n[", "nothing to observe");
    check("[workload.none]", "[workload.tpcb]", "needs something to work on");
}

#[test]
fn what_was_watched_until_ctrl_c_is_kept_and_compared() {
    let bench = Workbench::new();
    bench.dyno_good(&["watch", "--for", "2s", "--record", "before"]);
    let mut command = bench.command(&["watch", "--record", "after"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    // Two intervals exceed the other run's two seconds, however late they end.
    assert!(lines.by_ref().filter(|line| line.contains(" s · ")).nth(1).is_some());
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let rest: Vec<String> = lines.collect();
    assert!(child.wait().unwrap().success(), "{rest:?}");
    let summary = trial_folder(&bench.path("after"), 1).join("summary.json");
    let step = crate::support::read_json(&summary)["steps"][0].clone();
    assert_eq!(step["ended_by"], "activity");
    assert!(step["measured_s"].as_f64() >= Some(2.0), "{step}");
    assert!(bench.path("after/report.html").is_file());
    let told = bench.dyno_good(&["compare", "before", "after"]).out;
    assert_eq!(told.matches("(Dyno sent no load): ").count(), 2, "{told}");
}

#[test]
fn transactions_are_those_that_the_server_has_counted() {
    let standing = Standing::start("postgresql");
    let folder = standing.socket.parent().unwrap().display().to_string();
    let bench = Workbench::new();
    let port = standing.socket.extension().unwrap().to_str().unwrap();
    let url = format!("postgresql://dyno@x:{port}/postgres?host={folder}");
    bench.dyno_good(&["watch", &url, "--for", "4s", "--record", "record"]);
    let told = bench.dyno_good(&["report", "record"]).out;
    assert!(told.contains("transactions/s, Dyno's own included"), "{told}");
    assert!(!told.contains("p95"), "{told}");
    let summary = trial_folder(&bench.path("record"), 1).join("summary.json");
    let kind = crate::support::read_json(&summary)["steps"][0]["kinds"][0].clone();
    assert!(kind["name"].as_str().unwrap().ends_with("(counted by the server)"), "{kind}");
    assert!(kind["outcomes"]["committed"].as_u64() > Some(0), "{kind}");
}
