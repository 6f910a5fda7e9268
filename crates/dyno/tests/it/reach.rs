//! Ways to reach hosts, and what happens when they fail.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;
use serde_json::Value;

use crate::agents::{Sshd, committed, forward, kill, study, summary};
use crate::foreign::Standing;
use crate::support::{Running, Workbench, await_end, read_json};

/// Reached by TCP.
pub(crate) struct Database {
    // Stops on drop.
    _standing: Standing,
    port: u16,
}

impl Database {
    pub(crate) fn start() -> Database {
        let standing = Standing::start("mariadb");
        for sql in ["CREATE USER gen@localhost", "GRANT ALL ON *.* TO gen@localhost"] {
            standing.connection().query(sql).unwrap();
        }
        let port = forward(standing.socket.clone());
        Database { _standing: standing, port }
    }

    /// With these hosts and lines of the design.
    pub(crate) fn study(&self, hosts: &str, design: &str) -> String {
        let url = format!("url = \"mysql://gen@127.0.0.1:{}/agents\"", self.port);
        let design = format!("generators = \"load\"\nvoid_blocks = \"keep\"\n{design}");
        let text = study(hosts, &design).replace("product = \"null-mysql\"", &url);
        // The design has its own.
        if design.contains("repetitions") { text.replace("repetitions = 1\n", "") } else { text }
    }
}

pub(crate) fn random_byte() -> u8 {
    let mut byte = [0];
    fs::File::open("/dev/urandom").unwrap().read_exact(&mut byte).unwrap();
    byte[0]
}

/// Agents with these values in their environment.
pub(crate) fn agents_with(variables: &[(&str, &str)]) -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let words = |file: &str| -> Option<Vec<String>> {
            let text = fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
            Some(text.trim_end_matches('\0').split('\0').map(str::to_owned).collect())
        };
        let command = words("cmdline")?;
        let is_agent = command.len() == 2 && command[1] == "agent";
        let environment = if is_agent { words("environ")? } else { return None };
        let is_set =
            |(name, value): &(&str, &str)| environment.contains(&format!("{name}={value}"));
        variables.iter().all(is_set).then_some(pid)
    });
    entries.collect()
}

/// Not captured by the harness, which drops the output of tests that pass.
fn skip(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

pub(crate) fn trials(bench: &Workbench) -> Vec<Value> {
    let findings = read_json(&bench.path("runs/study/findings.json"));
    findings["trials"].as_array().unwrap().clone()
}

/// Reaches three hosts; a file `way-gone-NAME` closes the way to one.
fn way(bench: &Workbench) -> String {
    let script = "if [ -e \"$0-gone-$1\" ]; then echo \"no route to $1\" >&2; exit 255; fi\n\
                  export TEST_WAY=$0 TEST_HOST=$1\nshift\nexec \"$@\"\n";
    bench.write("way", script);
    let way = bench.path("way");
    format!("reach = 'sh {} {{name}} {} agent'", way.display(), env!("CARGO_BIN_EXE_dyno"))
}

/// Ends host b for good in the first trial.
fn losing(bench: &Workbench, database: &Database, more: (&str, u32)) -> Running {
    let (lost, repetitions) = more;
    let host = format!("[host.load]\n{}\nnames = [\"a\", \"b\", \"c\"]\n{lost}", way(bench));
    // Time for the kill on a busy machine; the first trial ends with it.
    let design = format!("duration = \"10s\"\nworkers = 1\nrepetitions = {repetitions}");
    bench.write("study.toml", &database.study(&host, &design));
    let mut run = bench.start(&["run", "study.toml"]);
    run.wait_for(&["trial 1/", "measuring"]);
    bench.write("way-gone-b", "");
    let way = bench.path("way");
    let agents = agents_with(&[("TEST_WAY", way.to_str().unwrap()), ("TEST_HOST", "b")]);
    assert_eq!(agents.len(), 1, "{agents:?}");
    kill(agents[0], Signal::KILL);
    run
}

pub(crate) fn names(step: &Value) -> Vec<&str> {
    let hosts = step["hosts"].as_array().unwrap();
    hosts.iter().map(|host| host["name"].as_str().unwrap()).collect()
}

#[test]
fn a_run_goes_on_with_the_hosts_that_are_left_if_the_study_says_so() {
    let (bench, database) = (Workbench::new(), Database::start());
    let run = losing(&bench, &database, ("lost = \"continue\"", 3));
    assert_eq!(run.end(), 1);
    let trials = trials(&bench);
    let message = trials[0]["message"].as_str().unwrap();
    assert!(message.contains("host b: its agent's command was ended by signal 9"), "{message}");
    for (nth, trial) in trials.iter().enumerate().skip(1) {
        assert_eq!(trial["state"], "finished", "{trial:#}");
        let step = &summary(&bench, "study", nth as u32 + 1)["steps"][0];
        assert_eq!((step["due"].as_u64(), names(step)), (Some(6000), vec!["a", "c"]));
    }
}

#[test]
fn a_host_that_comes_back_is_waited_for() {
    let (bench, database) = (Workbench::new(), Database::start());
    let mut run = losing(&bench, &database, ("", 2));
    run.wait_for(&["host b", "no route to b", "retrying"]);
    fs::remove_file(bench.path("way-gone-b")).unwrap();
    assert_eq!(run.end(), 1);
    let trials = trials(&bench);
    assert_eq!((&trials[0]["state"], &trials[1]["state"]), (&"failed".into(), &"finished".into()));
    assert_eq!(names(&summary(&bench, "study", 2)["steps"][0]), ["a", "b", "c"]);
}

#[test]
#[ignore = "matrix hosts: it waits a minute for the host; one that comes back is in the suite"]
fn a_run_whose_host_stays_away_ends_and_is_continued() {
    let (bench, database) = (Workbench::new(), Database::start());
    let mut run = losing(&bench, &database, ("", 3));
    run.wait_for(&[
        "host b",
        "earlier trials used this host",
        "the same command continues the run",
    ]);
    assert_eq!(run.end(), 1);
    let begun = fs::read_dir(bench.path("runs/study/trials")).unwrap().count();
    assert_eq!(begun, 2, "the third one was not begun");
    fs::remove_file(bench.path("way-gone-b")).unwrap();
    let answer = bench.dyno(&["run", "study.toml", "--retry-failed"]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    assert!(trials(&bench).iter().all(|trial| trial["state"] == "finished"));
}

/// None, with a message, without OpenSSH's server.
fn sshd(bench: &Workbench) -> Option<Sshd> {
    fs::create_dir(bench.path("ssh")).unwrap();
    let sshd = Sshd::start(&bench.path("ssh"));
    if sshd.is_none() {
        skip("a test of hosts over OpenSSH: openssh-server is not installed");
    }
    sshd
}

#[test]
fn the_program_is_copied_to_hosts_that_do_not_have_it() {
    let bench = Workbench::new();
    let Some(sshd) = sshd(&bench) else { return };
    let database = Database::start();
    let cache = bench.path("cache");
    let program = env!("CARGO_BIN_EXE_dyno");
    let reach = sshd.reach();
    let reach = reach.strip_suffix(&format!("{program} agent")).unwrap();
    // With a cache folder of the test's own.
    let reach = format!("{reach} env XDG_CACHE_HOME={} dyno agent", cache.display());
    let host = format!("[host.load]\nreach = '{reach}'\nnames = [\"127.0.0.1\"]\ncopy = true");
    bench.write("study.toml", &database.study(&host, "duration = \"1s\""));
    let copy = || {
        let files = fs::read_dir(cache.join("dyno/agents")).unwrap();
        let [file] = &files.map(|file| file.unwrap()).collect::<Vec<_>>()[..] else { panic!() };
        let facts = file.metadata().unwrap();
        assert_eq!(facts.permissions().mode() & 0o777, 0o700);
        (file.path(), facts.len(), std::os::unix::fs::MetadataExt::ino(&facts))
    };
    let run = || bench.dyno_good(&["run", "study.toml", "--new"]);
    run();
    let first = copy();
    assert_eq!(first.1, fs::metadata(program).unwrap().len());
    assert!(committed(&summary(&bench, "study", 1)["steps"][0]) > 0.0);
    // It exists now.
    run();
    assert_eq!(copy(), first);
    // A changed program is replaced.
    fs::write(&first.0, "#!/bin/sh\necho me >&2\n").unwrap();
    run();
    assert_eq!((copy().0, copy().1), (first.0, first.1));
}

#[test]
fn a_disk_that_is_full_there_is_said_with_the_host() {
    let bench = Workbench::new();
    if !rustix::process::getuid().is_root() {
        skip("a test of a full disk on a host: only root can mount one");
        return;
    }
    // A cache of one megabyte, for these commands alone.
    let cache = bench.path("cache");
    fs::create_dir(&cache).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=1m tmpfs {0} || exit 99\nmkdir -p {0}/dyno/agents\n\
         export XDG_CACHE_HOME={0}\nexec \"$@\"\n",
        cache.display()
    );
    bench.write("small", &script);
    let reach = format!("unshare --mount sh {} dyno agent", bench.path("small").display());
    let host = format!("[host.load]\nreach = '{reach}'\nnames = [\"b1\"]\ncopy = true");
    let text = study(&host, "duration = \"1s\"\ngenerators = \"load\"");
    let text = text.replace("product = \"null-mysql\"", "url = \"mysql://me@127.0.0.1:1/test\"");
    bench.write("study.toml", &text);
    let answer = bench.dyno(&["run", "study.toml"]);
    assert_eq!(answer.code, 1, "{}", answer.err);
    if answer.err.contains("exit code 99") {
        skip("a test of a full disk on a host: this machine does not allow to mount one");
        return;
    }
    for part in ["host b1: the program cannot be copied", "No space left on device"] {
        assert!(answer.err.contains(part), "{part} is not in {}", answer.err);
    }
    assert_eq!(fs::read_dir(&cache).unwrap().count(), 0);
}

#[test]
fn an_ssh_that_is_killed_ends_the_agent_and_fails_the_trial() {
    let bench = Workbench::new();
    let Some(sshd) = sshd(&bench) else { return };
    let database = Database::start();
    let host = format!("[host.load]\nreach = '{}'\nnames = [\"127.0.0.1\"]", sshd.reach());
    bench.write("study.toml", &database.study(&host, "duration = \"10s\"\nrepetitions = 2"));
    let mut run = bench.start(&["run", "study.toml"]);
    run.wait_for(&["trial 1/2", "measuring"]);
    let ssh = crate::agents::agents(run.child.id());
    assert_eq!(ssh.len(), 1, "its command line ends with the agent's");
    let port = sshd.port().to_string();
    let is_ours = |pid: &i32| {
        let text = fs::read_to_string(format!("/proc/{pid}/environ")).unwrap_or_default();
        // SSH_CONNECTION ends with the server's port.
        text.split('\0').any(|one| one.starts_with("SSH_CONNECTION=") && one.ends_with(&port))
    };
    let agents: Vec<i32> = agents_with(&[]).into_iter().filter(is_ours).collect();
    assert_eq!(agents.len(), 1, "{agents:?}");
    kill(ssh[0], Signal::KILL);
    assert_eq!(run.end(), 1);
    await_end(agents[0]);
    let trials = trials(&bench);
    let message = trials[0]["message"].as_str().unwrap();
    assert!(message.contains("host 127.0.0.1: ") && message.contains("signal 9"), "{message}");
    assert_eq!(trials[1]["state"], "finished", "{:#}", trials[1]);
}
