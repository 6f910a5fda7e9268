//! Servers on hosts: by local agents and over OpenSSH.

use std::fs;
use std::io::Write;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::agents::{Sshd, agents};
use crate::support::{
    DataFolder, Running, Workbench, await_end, await_none, events, is_alive, read_json, server_pid,
    trial_folder,
};

/// The hosts of the servers also generate load.
fn study(product: &str, host: &str, design: &str) -> String {
    format!(
        r#"
        title = "Do servers on hosts work?"
        [database.there]
        product = "{product}"
        on = "sql"
        [workload.oltp_update_index]
        table_size = 1000
        [host.sql]
        {host}
        [design]
        generators = "sql"
        clients = 4
        rate = 400
        workers = 1
        repetitions = 1
        warm_up = "0s"
        rest = "0s"
        void_blocks = "keep"
        {design}
        "#
    )
}

const ONE: &str = "names = [\"sql1\"]";
const SHORT: &str = "duration = \"2s\"";

fn summary(bench: &Workbench) -> Value {
    read_json(&trial_folder(&bench.path("runs/study"), 1).join("summary.json"))
}

/// Left by servers in a data folder.
pub(crate) fn left(data: &DataFolder) -> Vec<String> {
    let entries = fs::read_dir(data.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let kept = ["mariadb-", "mysql-", "postgresql-", "pgbouncer-", "haproxy-"];
    names.filter(|name| kept.iter().any(|one| name.starts_with(one))).collect()
}

/// On one host.
#[track_caller]
fn check_trial(bench: &Workbench) {
    let trial = summary(bench);
    assert_eq!(trial["outcome"]["state"], "finished", "{trial:#}");
    let audit = trial["audit"].as_array().unwrap();
    assert!(!audit.is_empty() && audit.iter().all(|row| row["pass"] == true), "{audit:#?}");
    let step = &trial["steps"][0];
    let committed = step["kinds"][0]["outcomes"]["committed"].as_u64().unwrap();
    assert!(committed > 20, "{committed}");
    assert_eq!(trial["server"]["transport"], "tcp", "{}", trial["server"]);
    assert!(!trial["server"]["of_product"]["build"].is_null(), "{}", trial["server"]);
    let member = &trial["members"][0];
    assert_eq!(member["role"], "primary", "{member}");
    let text = events(&trial_folder(&bench.path("runs/study"), 1));
    assert!(text.contains("hosts of servers: "), "{text}");
    // Started, and restarted on its data.
    assert_eq!(text.matches("server_ready").count(), 2, "{text}");
}

#[test]
fn a_server_is_started_by_a_local_agent_and_ends_with_the_trial() {
    for product in ["mariadb", "postgresql"] {
        let (bench, data) = (Workbench::new(), DataFolder::new());
        bench.write("study.toml", &study(product, ONE, SHORT));
        bench.dyno_good(&["run", "study.toml", "--data-folder", data.text()]);
        check_trial(&bench);
        let pid = server_pid(&trial_folder(&bench.path("runs/study"), 1));
        assert!(!is_alive(pid) && left(&data).is_empty(), "{pid} {:?}", left(&data));
    }
}

/// A long trial; returns the run, the server's process and the agents.
fn running(bench: &Workbench, data: &DataFolder) -> (Running, i32, Vec<i32>) {
    bench.write("study.toml", &study("mariadb", ONE, "duration = \"60s\""));
    let mut run = bench.start(&["run", "study.toml", "--data-folder", data.text()]);
    run.wait_for(&["measuring"]);
    let pid = server_pid(&trial_folder(&bench.path("runs/study"), 1));
    assert!(is_alive(pid) && !left(data).is_empty());
    let agents = agents(run.child.id());
    assert_eq!(agents.len(), 2, "one with the server, one with the load");
    (run, pid, agents)
}

fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

pub(crate) fn parent(of: i32) -> i32 {
    parent_of(of).unwrap()
}

/// None if it has ended.
fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
}

#[track_caller]
pub(crate) fn await_removal(data: &DataFolder) {
    await_none(|| left(data));
}

#[test]
fn a_server_ends_with_an_agent_that_is_killed() {
    let (bench, data) = (Workbench::new(), DataFolder::new());
    let (run, server, agents) = running(&bench, &data);
    let agent = parent(server);
    assert!(agents.contains(&agent));
    kill(agent, Signal::KILL);
    await_end(server);
    await_removal(&data);
    assert_eq!(run.end(), 1);
    let message = summary(&bench)["outcome"]["message"].to_string();
    assert!(message.contains("host sql1") && message.contains("signal 9"), "{message}");
}

#[test]
fn a_server_ends_with_a_controller_that_is_killed() {
    let (bench, data) = (Workbench::new(), DataFolder::new());
    let (mut run, server, agents) = running(&bench, &data);
    run.signal(Signal::KILL);
    run.child.wait().unwrap();
    await_end(server);
    agents.into_iter().for_each(await_end);
    await_removal(&data);
}

/// Possible passwords: exactly 32 hexadecimal digits in a row.
fn tokens(bytes: &[u8]) -> Vec<String> {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let runs = bytes.split(|byte| !is_digit(byte)).filter(|run| run.len() == 32);
    runs.map(|run| String::from_utf8_lossy(run).into_owned()).collect()
}

/// Also those in sessions of their own.
pub(crate) fn descendants(of: u32) -> Vec<u32> {
    let mut all = vec![of];
    let pids = || {
        let entries = fs::read_dir("/proc").unwrap();
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
    };
    let parent_of = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    let mut known = 0;
    while known < all.len() {
        let parents = all[known..].to_vec();
        known = all.len();
        let children = pids().filter(|&pid| parent_of(pid).is_some_and(|it| parents.contains(&it)));
        all.extend(children.collect::<Vec<u32>>());
    }
    all
}

#[test]
fn the_password_of_a_server_is_on_no_command_line_in_no_environment_and_in_no_record() {
    assert_eq!(tokens(b"-p0123456789abcdef0123456789abcdef x").len(), 1);
    for product in ["mariadb", "postgresql"] {
        check_secrets(&study(product, ONE, "duration = \"60s\""), 1);
    }
}

/// Runs a study with so many servers for a while: no password may be where others could read it.
#[track_caller]
pub(crate) fn check_secrets(study: &str, n_servers: usize) {
    let (bench, data) = (Workbench::new(), DataFolder::new());
    bench.write("study.toml", study);
    let mut run = bench.start(&["run", "study.toml", "--data-folder", data.text()]);
    run.wait_for(&["measuring"]);
    let processes = descendants(run.child.id());
    let is_server = |pid: i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let text = String::from_utf8_lossy(&line);
        let program = text.split('\0').next().unwrap();
        ["/mariadbd", "/mysqld", "/postgres"].iter().any(|name| program.ends_with(name))
    };
    // A new PostgreSQL backend has its server's command line until it sets its title.
    let servers = processes.iter().map(|pid| *pid as i32).filter(|pid| is_server(*pid));
    let found = servers.filter_map(parent_of).filter(|parent| !is_server(*parent)).count();
    assert_eq!(found, n_servers, "{study}: {processes:?}");
    for pid in processes {
        for file in ["cmdline", "environ"] {
            let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
            assert_eq!(tokens(&bytes), Vec::<String>::new(), "{study}, {file} of {pid}: {text}");
        }
    }
    run.signal(rustix::process::Signal::INT);
    assert_eq!(run.end(), 130);
    let mut folders = vec![bench.path("runs/study")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = fs::read(&path).unwrap();
                let found = tokens(&bytes);
                assert_eq!(found, Vec::<String>::new(), "{study}: {}", path.display());
            }
        }
    }
    await_removal(&data);
}

/// None, with a message, without OpenSSH's server.
fn sshd(bench: &Workbench) -> Option<Sshd> {
    fs::create_dir(bench.path("ssh")).unwrap();
    let sshd = Sshd::start(&bench.path("ssh"));
    if sshd.is_none() {
        // Not captured by the harness, which drops the output of tests that pass.
        let why = "SKIPPED: 1 test of servers over OpenSSH: openssh-server is not installed";
        let _ = writeln!(std::io::stderr(), "{why}");
    }
    sshd
}

#[test]
fn a_server_is_started_over_openssh() {
    let bench = Workbench::new();
    let Some(sshd) = sshd(&bench) else { return };
    let data = DataFolder::new();
    let host = format!("reach = '{}'\nnames = [\"127.0.0.1\"]", sshd.reach());
    let design = format!("data_folder = \"{}\"\n{SHORT}", data.text());
    bench.write("study.toml", &study("postgresql", &host, &design));
    bench.dyno_good(&["run", "study.toml"]);
    check_trial(&bench);
    await_removal(&data);
}

/// The study of SQL servers, shortened.
pub(crate) fn sql_servers(data: &DataFolder) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/sql-servers/bench-top.toml");
    let mut text = fs::read_to_string(path).unwrap();
    let data = format!("generators = \"sql\"\ndata_folder = \"{}\"", data.text());
    for (from, to) in [
        (", \"sql4\"]", "]"),
        ("[1, 2, 4]", "[1, 3]"),
        ("option = { row_filter = [false, true] }, ", ""),
        ("[4, 8, 16, 32]", "[3, 6]"),
        ("\"40k\"", "1000"),
        ("repetitions = 3", "repetitions = 1\nvoid_blocks = \"keep\""),
        ("duration = \"5s\"", "duration = \"2s\""),
        ("require = \"p95 <= 20ms\"\n", ""),
        ("generators = \"sql\"", &data),
    ] {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    text
}

/// Of one server and of three independent ones.
#[track_caller]
pub(crate) fn check_sql_servers(bench: &Workbench) {
    for number in [1, 2] {
        let folder = trial_folder(&bench.path("runs/study"), number);
        let trial = read_json(&folder.join("summary.json"));
        assert_eq!(trial["outcome"]["state"], "finished", "{:#}", trial["outcome"]);
        let members = trial["members"].as_array().unwrap();
        let names: Vec<&str> = members.iter().map(|one| one["name"].as_str().unwrap()).collect();
        let audit = trial["audit"].as_array().unwrap();
        assert!(audit.iter().all(|row| row["pass"] == true), "{audit:#?}");
        let step = &trial["steps"][1];
        let hosts = step["hosts"].as_array().unwrap();
        assert_eq!(hosts.len(), 3);
        // Agents see the processes of all servers.
        assert!(step["server_cpu_s"].as_f64().unwrap() > 0.0, "{}", step["server_cpu_s"]);
        let known = trial["meanings"].as_object().unwrap();
        let is_of_host = |name: &String| name.starts_with("host.sql1.memory.");
        assert!(known.keys().any(is_of_host), "{:?}", known.keys());
        if names.len() == 1 {
            continue;
        }
        assert_eq!(names, ["sql1", "sql2", "sql3"]);
        assert!(known.contains_key("sql3.rss_bytes") && known.contains_key("server.rss_bytes"));
        let mut urls: Vec<&str> =
            hosts.iter().map(|host| host["server"].as_str().unwrap()).collect();
        urls.dedup();
        assert_eq!(urls.len(), 3, "{urls:?}");
        for name in names {
            let of_server = |row: &&Value| row["name"].as_str().unwrap().starts_with(name);
            // Statements and rows: each server did what its own clients asked.
            assert!(audit.iter().filter(of_server).count() >= 2, "{audit:#?}");
        }
        // The machines, and the network to them from here and from the generators.
        let host = &members[2]["host"];
        assert!(host["cpus"].as_u64() > Some(0) && host["facts"]["memory"].is_string(), "{host}");
        for network in [&host["network"], &trial["steps"][0]["hosts"][1]["network"]] {
            assert!(network["round_trip_us"].as_f64() > Some(0.0), "{network}");
            assert!(network["bytes_per_s"].as_f64() > Some(0.0), "{network}");
        }
        let page = fs::read_to_string(bench.path("runs/study/report.html")).unwrap();
        assert!(page.contains("Load generators") && page.contains("Hosts of servers"));
    }
}

#[test]
fn the_study_of_sql_servers_runs_with_local_agents() {
    let (bench, data) = (Workbench::new(), DataFolder::new());
    bench.write("study.toml", &sql_servers(&data));
    bench.dyno_good(&["run", "study.toml"]);
    check_sql_servers(&bench);
    await_removal(&data);
}

#[test]
#[ignore = "matrix hosts: with local agents it is in the suite, and another study over OpenSSH"]
fn the_study_of_sql_servers_runs_over_openssh() {
    let (bench, data) = (Workbench::new(), DataFolder::new());
    let Some(sshd) = sshd(&bench) else { return };
    let line = "reach = \"local\" ";
    let reach = sshd.reach().replace("{name}", "-o HostName=127.0.0.1 {name}");
    let text = sql_servers(&data);
    assert!(text.contains(line), "{text}");
    bench.write("study.toml", &text.replace(line, &format!("reach = '{reach}' ")));
    bench.dyno_good(&["run", "study.toml"]);
    check_sql_servers(&bench);
    await_removal(&data);
}
