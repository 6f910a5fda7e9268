//! Whole trials on hosts: local ones, several machines at once, and failures.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::agents::agents;
use crate::support::{
    DataFolder, Running, Workbench, await_end, await_none, is_alive, read_json, trial_folder,
};

/// On two kinds of hosts.
fn study(hosts: &str, product: &str, design: &str) -> String {
    format!(
        r#"
        title = "Which machine is faster?"
        {hosts}
        [database.old]
        product = "{product}"
        trials_on = "m5"
        price_per_hour = "0.2 USD"
        [database.new]
        like = "old"
        trials_on = "m6"
        price_per_hour = "0.1 USD"
        [workload.oltp_read_only]
        table_size = 1000
        [design]
        baseline = {{ database = "old" }}
        vary = {{ database = ["old", "new"] }}
        clients = 2
        repetitions = 2
        order = "sequential"
        warm_up = "0s"
        rest = "0s"
        void_blocks = "keep"
        {design}
        "#
    )
}

const HOSTS: &str = "[host.m5]\nnames = [\"a\", \"b\"]\n[host.m6]\nnames = [\"c\"]";

fn summary(bench: &Workbench, trial: u32) -> Value {
    read_json(&trial_folder(&bench.path("runs/study"), trial).join("summary.json"))
}

/// Without kept data sets.
fn left(data: &DataFolder) -> Vec<String> {
    let entries = fs::read_dir(data.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let kinds = ["study-", "postgresql-", "sqlite-"];
    names.filter(|name| kinds.iter().any(|kind| name.starts_with(kind))).collect()
}

#[test]
fn trials_run_on_their_hosts_and_are_read_like_others() {
    let (bench, data) = (Workbench::new(), DataFolder::new());
    bench.write("study.toml", &study(HOSTS, "sqlite", "duration = \"1s\""));
    let answer = bench.dyno_good(&["run", "study.toml", "--data-folder", data.text()]);
    assert!(answer.err.contains("some of these hosts are the same machine"), "{}", answer.err);
    // In the plan's order: both of the first database, then those of the other.
    for (number, pool, host) in [(1, "m5", "a"), (2, "m5", "b"), (3, "m6", "c"), (4, "m6", "c")] {
        let trial = summary(&bench, number);
        assert_eq!(trial["outcome"]["state"], "finished", "{:#}", trial["outcome"]);
        assert_eq!((&trial["host"]["pool"], &trial["host"]["name"]), (&pool.into(), &host.into()));
        assert!(trial["host"]["environment"]["cpus"].as_u64().unwrap() > 0, "{}", trial["host"]);
        let folder = trial_folder(&bench.path("runs/study"), number);
        for name in ["events.jsonl.gz", "intervals.hlog.gz", "readings.jsonl.gz"] {
            assert!(folder.join(name).metadata().unwrap().len() > 50, "{name}");
        }
        assert!(trial["audit"].as_array().unwrap().iter().all(|row| row["pass"] == true));
    }
    let findings = read_json(&bench.path("runs/study/findings.json"));
    let hosts = findings["trial_hosts"].as_array().unwrap();
    let names: Vec<_> = hosts.iter().map(|host| host["host"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    let caveats = findings["caveats"].as_array().unwrap();
    let machines = caveats.iter().find(|caveat| caveat["kind"] == "several_machines");
    let message = machines.expect("it is said")["message"].as_str().unwrap();
    assert!(message.contains("ran on different machines: old on a ("), "{message}");
    let page = fs::read_to_string(bench.path("runs/study/report.html")).unwrap();
    assert!(page.contains("hosts of trials") && page.contains("per million transactions"));
    // Only data sets are left, and all is done.
    assert_eq!(left(&data), Vec::<String>::new());
    let again = bench.dyno_good(&["run", "study.toml", "--data-folder", data.text()]);
    assert!(again.err.contains("all trials are already done"), "{}", again.err);
}

/// An agent that seems to be on another machine, with its own kernel identity and data disk. None, with a message,
/// if no mount can be made.
fn other_machine(bench: &Workbench, data: &DataFolder) -> Option<String> {
    let file = "/proc/sys/kernel/random/boot_id";
    let text = [
        "set -e",
        "mkdir BENCH/disk-$1 && mount --bind BENCH/disk-$1 DATA",
        "echo boot-of-$1 > BENCH/boot-$1 && mount --bind BENCH/boot-$1 FILE",
        "exec DYNO agent",
    ];
    // A host's agents begin anew, except for the disk.
    let text = text.join("\n").replace("mkdir ", "mkdir -p ");
    let (dyno, folder) = (env!("CARGO_BIN_EXE_dyno"), bench.path("").display().to_string());
    let words = [("BENCH", folder.as_str()), ("DATA", data.text()), ("FILE", file), ("DYNO", dyno)];
    let text = words.iter().fold(text, |text, (word, value)| text.replace(word, value));
    bench.write("boot.sh", &text);
    let script = bench.path("boot.sh");
    let script = script.display();
    let tried = std::process::Command::new("unshare")
        .args(["-m", "sh", "-c", &format!("mount --bind /proc/sys/kernel/osrelease {file}")])
        .output();
    if !tried.is_ok_and(|output| output.status.success()) {
        // Not captured by the harness, which drops the output of tests that pass.
        let why = "SKIPPED: 1 test of trials on several machines: no mount namespace can be made";
        let _ = writeln!(std::io::stderr(), "{why}");
        return None;
    }
    Some(format!("reach = \"unshare -m sh {script} {{name}} agent\""))
}

#[test]
fn trials_on_different_machines_run_at_the_same_time() {
    let bench = Workbench::new();
    let data = DataFolder::new();
    let Some(reach) = other_machine(&bench, &data) else { return };
    let hosts = format!(
        "[host.m5]\n{reach}\nnames = [\"a\", \"b\"]\n[host.m6]\n{reach}\nnames = [\"c\", \"d\"]"
    );
    let design = format!("duration = \"1s\"\ndata_folder = \"{}\"", data.text());
    let text = study(&hosts, "sqlite", &design).replace("\"sequential\"", "\"interleaved\"");
    // Trials wait for each other: in sequence, none would end.
    let here = DataFolder::new();
    std::fs::set_permissions(here.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let meet =
        format!("touch {0}/$$; until [ $(ls {0} | wc -l) = 4 ]; do sleep 0.01; done", here.text());
    let job = format!(
        "[job.meet]\nsetup = [\"sh\", \"-c\", \"{meet}\"]\ncommand = [\"true\"]\nload = \"on\"\n"
    );
    bench.write("study.toml", &text.replace("[design]", &format!("{job}[design]")));
    let answer = bench.dyno_good(&["run", "study.toml"]);
    assert!(!answer.err.contains("are the same machine"), "{}", answer.err);
    // All four at once, each on its own machine, reported one after the other.
    for number in 1..=4 {
        let trial = summary(&bench, number);
        assert_eq!(trial["outcome"]["state"], "finished", "{:#}", trial["outcome"]);
    }
    let place = |number: u32| answer.err.find(&format!("[trial {number}/4")).unwrap();
    let told: Vec<usize> = (1..=4).map(place).collect();
    let last = |number: u32| answer.err.rfind(&format!("[trial {number}/4")).unwrap();
    for (first, next) in told.iter().enumerate().skip(1) {
        let before = (1..=4).filter(|number| place(*number) < *next).map(last).max();
        assert!(before.is_none_or(|before| before < *next), "{first}: {}", answer.err);
    }
}

#[test]
fn a_server_and_the_files_of_the_study_go_to_the_host() {
    let (bench, data) = (Workbench::new(), DataFolder::new());
    fs::create_dir(bench.path("scripts")).unwrap();
    bench.write("scripts/one.sql", "SELECT abalance FROM pgbench_accounts WHERE aid = 1;\n");
    let text = study(HOSTS, "postgresql", "duration = \"1s\"").replace(
        "[workload.oltp_read_only]\n        table_size = 1000",
        "[workload.pgbench]\n        script = \"scripts/one.sql\"",
    );
    bench.write("study.toml", &text);
    bench.dyno_good(&["run", "study.toml", "--data-folder", data.text()]);
    let trial = summary(&bench, 1);
    assert_eq!(trial["server"]["product"], "PostgreSQL", "{}", trial["server"]);
    assert!(trial["steps"][0]["kinds"][0]["outcomes"]["committed"].as_u64().unwrap() > 20);
    assert_eq!(left(&data), Vec::<String>::new());
    bench.write("study.toml", &text.replace("scripts/one.sql", "../one.sql"));
    let answer = bench.dyno(&["check", "study.toml"]);
    assert!(answer.code == 2 && answer.err.contains("../one.sql"), "{}", answer.err);
}

/// Returns the run with its agent once the first trial is measured.
fn running(bench: &Workbench, data: &DataFolder, hosts: &str) -> (Running, i32) {
    bench.write("study.toml", &study(hosts, "postgresql", "duration = \"20s\""));
    let mut run = bench.start(&["run", "study.toml", "--data-folder", data.text()]);
    run.wait_for(&["trial 1/4", "measuring"]);
    let agents = agents(run.child.id());
    assert_eq!(agents.len(), 1, "one trial at a time on one machine");
    assert!(!left(data).is_empty());
    (run, agents[0])
}

#[track_caller]
fn await_removal(data: &DataFolder) {
    await_none(|| left(data));
}

#[test]
fn a_trial_whose_agent_is_killed_fails_with_its_host_and_leaves_nothing() {
    let (bench, data) = (Workbench::new(), DataFolder::new());
    let (mut run, agent) = running(&bench, &data, HOSTS);
    kill_process(Pid::from_raw(agent).unwrap(), Signal::KILL).unwrap();
    run.wait_for(&["trial 2/4", "measuring"]);
    let failed = summary(&bench, 1)["outcome"]["message"].to_string();
    assert!(failed.contains("host a: ") && failed.contains("signal 9"), "{failed}");
    // A stop is passed on, and the running trial is abandoned there.
    run.signal(Signal::INT);
    assert_eq!(run.end(), 130);
    await_removal(&data);
    assert!(!bench.path("runs/study").join("trials/0002-old/summary.json").exists());
}

#[test]
fn nothing_survives_a_controller_that_is_killed_and_the_run_is_continued() {
    let (bench, data) = (Workbench::new(), DataFolder::new());
    let (mut run, agent) = running(&bench, &data, HOSTS);
    run.signal(Signal::KILL);
    run.child.wait().unwrap();
    await_end(agent);
    await_removal(&data);
    assert!(!is_alive(agent));
    let mut run = bench.start(&["run", "study.toml", "--data-folder", data.text()]);
    run.wait_for(&["trial 1/4", "measuring"]);
    run.signal(Signal::INT);
    assert_eq!(run.end(), 130);
    let folder = fs::read_dir(bench.path("runs/study/trials")).unwrap();
    let names: Vec<String> =
        folder.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    assert!(names.iter().any(|name| name.ends_with(".unfinished-1")), "{names:?}");
    await_removal(&data);
}

#[test]
fn hosts_that_cannot_be_used_end_the_run_with_a_message() {
    let (bench, data) = (Workbench::new(), DataFolder::new());
    let check = |hosts: &str, parts: &[&str]| {
        bench.write("study.toml", &study(hosts, "sqlite", "duration = \"1s\""));
        let answer = bench.dyno(&["run", "study.toml", "--new"]);
        assert_eq!(answer.code, 1, "{}", answer.err);
        for part in parts {
            assert!(answer.err.contains(part), "{part} is not in {}", answer.err);
        }
    };
    let host = |reach: &str| format!("[host.m5]\nreach = \"{reach}\"\n[host.m6]\n");
    check(&host("sh -c 'exit 7' {name}"), &["host m5: ", "exit code 7"]);
    check(&host("/nowhere/dyno agent"), &["host m5: ", "/nowhere/dyno"]);
    check(&host("echo hello {name}"), &["host m5: ", "hello m5"]);
    // Paths of another machine than meant.
    let far = format!("[host.m5]\nreach = \"{} agent\"\n[host.m6]\n", env!("CARGO_BIN_EXE_dyno"));
    bench.write("study.toml", &study(&far, "sqlite", "duration = \"1s\""));
    let answer = bench.dyno(&["run", "study.toml", "--data-folder", data.text()]);
    assert!(answer.code == 2 && answer.err.contains("`data_folder` in [design]"), "{}", answer.err);
}
