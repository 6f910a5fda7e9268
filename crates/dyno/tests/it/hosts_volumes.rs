//! Volumes of servers on hosts, with local agents: each host makes its own, and none is left.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::hosts_jobs::await_empty;
use crate::member_hosts::{first_trial, study, study_on};
use crate::server_hosts::parent;
use crate::support::{
    DataFolder, Running, Workbench, await_end, await_that, server_pid, trial_folder,
};
use crate::volumes::{can_be_made, events_of, images_under, mounts_under};

const SHORT: &str = "duration = \"2s\"";
const LONG: &str = "duration = \"60s\"";

/// Adds these tables; the first is for the data.
fn on_volume(text: &str, tables: &str) -> String {
    text.replace("[design]", &format!("{tables}\n[design]"))
}

const EXT4: &str =
    "[volume.v]\nfilesystem = \"ext4\"\nsize = \"640MiB\"\nmount_options = \"noatime\"";

fn can_be_made_here(bench: &Workbench, tables: &str) -> bool {
    let design = format!("volume = \"v\"\n{SHORT}");
    let local = study_on("\"sql1\"", "product = \"sqlite\"", &design).replace("on = \"sql\"\n", "");
    bench.write("study.toml", &on_volume(&local, tables));
    can_be_made(bench)
}

#[track_caller]
fn nothing_is_left(data: &DataFolder) {
    await_that("nothing is mounted or attached", || {
        (mounts_under(data.path()), images_under(data.path())) == (0, 0)
    });
    await_empty(data);
}

/// Returns the first trial's summary; none if volumes cannot be made here.
#[track_caller]
fn run(text: &str, tables: &str) -> Option<(Workbench, Value)> {
    let (bench, data) = (Workbench::new(), DataFolder::on_disk());
    if !can_be_made_here(&bench, tables) {
        return None;
    }
    bench.write("study.toml", &on_volume(text, tables));
    bench.dyno(&["run", "study.toml", "--data-folder", data.text()]);
    nothing_is_left(&data);
    let trial = first_trial(&bench);
    Some((bench, trial))
}

#[track_caller]
fn run_well(text: &str, tables: &str) -> Option<(Workbench, Value)> {
    let (bench, trial) = run(text, tables)?;
    assert_eq!(trial["outcome"]["state"], "finished", "{:#}", trial["outcome"]);
    let audit = trial["audit"].as_array().unwrap();
    assert!(audit.iter().all(|row| row["pass"] == true), "{audit:#?}");
    Some((bench, trial))
}

#[test]
fn each_host_has_a_volume_of_its_own_for_what_comes_from_the_first() {
    // Data go from host to host, or the server copies them.
    for database in [
        "product = \"mariadb\"\nreplicas = 1",
        "product = \"postgresql\"\nreplicas = 1\nreplication = \"synchronous\"",
    ] {
        let Some((bench, trial)) = run_well(&study(database, SHORT), EXT4) else { return };
        let places: Vec<&Value> =
            trial["members"].as_array().unwrap().iter().map(|one| &one["place"]).collect();
        assert_eq!(places.len(), 2);
        for place in &places {
            assert_eq!(place["kind"], "ext4 mount=noatime", "{place}");
            assert!(place["options"].as_str().unwrap().contains("noatime"), "{place}");
            assert_eq!(place["is_loop_direct"].is_boolean(), true, "{place}");
        }
        assert_ne!(places[0]["device"], places[1]["device"]);
        let figures = &trial["steps"][0]["figures"];
        for name in ["data.length", "data.on_disk", "volume.free"] {
            assert!(figures[name].as_f64() > Some(1e6), "{name}: {figures}");
        }
        let readings = trial["steps"][0]["readings"].as_object().unwrap();
        for host in ["sql1", "sql2"] {
            let name = format!("host.{host}.data_disk.writes_per_s");
            assert!(readings.contains_key(&name), "{:?}", readings.keys());
        }
        let page = fs::read_to_string(bench.path("runs/study/report.html")).unwrap();
        assert!(page.contains("ext4 on loop"), "the place of the data is among the facts");
    }
}

#[test]
fn limits_bind_on_each_host_while_it_is_measured_and_dips_are_recorded() {
    let limited = format!(
        "{EXT4}\nlimit = {{ write_iops = 5000 }}\n\
         dips = {{ every = \"1s\", for = \"200ms\", write_iops = 100 }}"
    );
    let text = study("product = \"postgresql\"\nreplicas = 1", SHORT);
    let Some((bench, trial)) = run_well(&text, &limited) else { return };
    let folder = trial_folder(&bench.path("runs/study"), 1);
    let limits = events_of(&folder, &["volume_limited"]);
    let words: Vec<String> =
        limits.iter().map(|one| format!("{} {}", one["volume"], one["limit"])).collect();
    let bound = |host: &str| format!("\"v on {host}\" \"5000 writes/s\"");
    let lifted = |host: &str| format!("\"v on {host}\" null");
    assert_eq!(words, [bound("sql1"), bound("sql2"), lifted("sql1"), lifted("sql2")]);
    let dips = trial["steps"][0]["dips"].as_array().unwrap();
    for host in ["v on sql1", "v on sql2"] {
        let own: Vec<&Value> = dips.iter().filter(|dip| dip["volume"] == host).collect();
        assert!(!own.is_empty(), "{dips:#?}");
        assert!(own.iter().all(|dip| dip["limit"] == "100 writes/s"), "{own:#?}");
    }
    let readings = trial["steps"][0]["readings"].as_object().unwrap();
    assert!(readings.contains_key("host.sql1.data_disk.limit_used_pct"), "{:?}", readings.keys());
}

#[test]
#[ignore = "matrix hosts: volumes of data on hosts are in the suite, and those of logs without hosts"]
fn logs_have_a_volume_of_their_own_on_each_host() {
    for product in ["mariadb", "postgresql"] {
        let tables = format!("{EXT4}\n[volume.logs]\nlike = \"v\"\nfilesystem = \"xfs\"");
        let database = format!("product = \"{product}\"\nlog_volume = \"logs\"\nreplicas = 1");
        let text = study(&database, &format!("volume = \"v\"\n{SHORT}"));
        let (bench, data) = (Workbench::new(), DataFolder::on_disk());
        if !can_be_made_here(&bench, &tables) {
            return;
        }
        bench.write("study.toml", &on_volume(&text.replace(SHORT, LONG), &tables));
        let mut run = bench.start(&["run", "study.toml", "--data-folder", data.text()]);
        run.wait_for(&["measuring"]);
        assert_eq!((mounts_under(data.path()), images_under(data.path())), (4, 4));
        run.signal(Signal::INT);
        assert_eq!(run.end(), 130);
        nothing_is_left(&data);
    }
}

#[test]
fn what_cannot_be_made_is_said_with_its_host() {
    let tables =
        "[volume.v]\nfilesystem = \"ext4\"\nsize = \"64MiB\"\nmount_options = \"no_such_option\"";
    let text = study_on("\"sql1\"", "product = \"postgresql\"", SHORT);
    let Some((_bench, trial)) = run(&text, tables) else { return };
    let message = trial["outcome"]["message"].to_string();
    assert!(message.contains("host sql1: the volume `v`: "), "{message}");
    assert!(message.contains("no_such_option"), "{message}");
}

#[test]
fn a_volume_that_is_too_small_fails_the_trial_and_is_removed() {
    let text = study_on("\"sql1\"", "product = \"postgresql\"", SHORT).replace("1000", "400000");
    let tables = "[volume.v]\nfilesystem = \"ext4\"\nsize = \"128MiB\"";
    let Some((_bench, trial)) = run(&text, tables) else { return };
    let message = trial["outcome"]["message"].to_string();
    assert!(message.contains("volume v is full"), "{message}");
}

/// A server on a volume under load; returns the run and the server's process.
fn running(bench: &Workbench, data: &DataFolder) -> Option<(Running, i32)> {
    let tables = format!("{EXT4}\nlimit = {{ write_iops = 5000 }}");
    if !can_be_made_here(bench, &tables) {
        return None;
    }
    let text = study_on("\"sql1\"", "product = \"mariadb\"", LONG);
    bench.write("study.toml", &on_volume(&text, &tables));
    let mut run = bench.start(&["run", "study.toml", "--data-folder", data.text()]);
    run.wait_for(&["measuring"]);
    assert_eq!((mounts_under(data.path()), images_under(data.path())), (1, 1));
    let server = server_pid(&trial_folder(&bench.path("runs/study"), 1));
    Some((run, server))
}

#[test]
fn a_volume_ends_with_its_agent_and_with_its_controller() {
    for kills_agent in [true, false] {
        let (bench, data) = (Workbench::new(), DataFolder::on_disk());
        let Some((mut run, server)) = running(&bench, &data) else { return };
        if kills_agent {
            kill_process(Pid::from_raw(parent(server)).unwrap(), Signal::KILL).unwrap();
            assert_eq!(run.end(), 1);
            let message = first_trial(&bench)["outcome"]["message"].to_string();
            assert!(message.contains("host sql1") && message.contains("signal 9"), "{message}");
        } else {
            run.signal(Signal::KILL);
            run.child.wait().unwrap();
        }
        await_end(server);
        nothing_is_left(&data);
    }
}

#[test]
fn a_volume_is_removed_when_the_user_stops_the_run() {
    let (bench, data) = (Workbench::new(), DataFolder::on_disk());
    let Some((run, server)) = running(&bench, &data) else { return };
    run.signal(Signal::INT);
    assert_eq!(run.end(), 130);
    await_end(server);
    nothing_is_left(&data);
}

#[test]
fn devices_of_hosts_are_not_formatted() {
    let bench = Workbench::new();
    let text = study_on("\"sql1\"", "product = \"mariadb\"", SHORT);
    let tables = "[volume.v]\nfilesystem = \"ext4\"\ndevice = \"/dev/sdz\"";
    bench.write("study.toml", &on_volume(&text, tables));
    let answer = bench.dyno(&["check", "study.toml"]);
    assert_eq!(answer.code, 2, "{}", answer.out);
    assert!(answer.err.contains("cannot format /dev/sdz on hosts"), "{}", answer.err);
}
