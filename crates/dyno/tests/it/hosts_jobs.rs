//! Jobs with servers on hosts, with local agents: statements go there, commands run beside the server.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::member_hosts::{first_trial, study, study_on};
use crate::server_hosts::{await_removal, check_secrets, parent};
use crate::support::{
    DataFolder, Running, Workbench, await_end, await_good, await_none, is_alive, server_pid,
    trial_folder,
};

const SHORT: &str = "duration = \"3s\"";
const LONG: &str = "duration = \"60s\"";

/// One server on a host.
fn with_job(product: &str, job: &str, design: &str) -> String {
    let text = study_on("\"sql1\"", &format!("product = \"{product}\""), design);
    text.replace("[design]", &format!("[job.j]\n{job}\n[design]"))
}

/// Returns the bench and the first trial's summary.
#[track_caller]
fn run(text: &str) -> (Workbench, Value) {
    let (bench, data) = (Workbench::new(), DataFolder::new());
    bench.write("study.toml", text);
    bench.dyno(&["run", "study.toml", "--data-folder", data.text()]);
    let left: Vec<_> = fs::read_dir(data.path()).unwrap().map(|one| one.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?}");
    let trial = first_trial(&bench);
    (bench, trial)
}

#[track_caller]
fn run_well(text: &str) -> (Workbench, Value) {
    let (bench, trial) = run(text);
    assert_eq!(trial["outcome"]["state"], "finished", "{:#}", trial["outcome"]);
    let audit = trial["audit"].as_array().unwrap();
    assert!(audit.iter().all(|row| row["pass"] == true), "{audit:#?}");
    (bench, trial)
}

#[track_caller]
fn figure(trial: &Value, name: &str) -> f64 {
    let figures = &trial["steps"][0]["figures"];
    figures[name].as_f64().unwrap_or_else(|| panic!("{name}: {figures:#}"))
}

#[test]
fn statements_are_sent_to_a_server_on_a_host() {
    for product in ["mariadb", "postgresql"] {
        let job = "sql = [\"CREATE INDEX by_pad ON sbtest1 (pad)\", \"CREATE INDEX by_c ON sbtest1 (c)\"]\n\
                   check = \"SELECT count(*) > 0 FROM sbtest1\"\nload = \"until-done\"\nstart_after = \"1s\"";
        let (_bench, trial) = run_well(&with_job(product, job, SHORT));
        let step = &trial["steps"][0];
        assert!(figure(&trial, "job.time") > 0.0);
        assert_eq!(step["activities"][0]["is_done"], true, "{:#}", step["activities"]);
        assert!(step["kinds"][0]["outcomes"]["committed"].as_u64() > Some(20));
    }
}

#[test]
fn batches_are_sent_to_a_server_on_a_host_until_none_is_left() {
    let job = "sql = [\"DELETE FROM spare LIMIT 40\", \"SELECT ROW_COUNT()\"]\nrepeat = \"until-no-rows\"\n\
               pause = \"150ms\"\nbefore = [\"CREATE TABLE spare AS SELECT id FROM sbtest1\"]\nload = \"off\"";
    let (_bench, trial) = run_well(&with_job("mariadb", job, SHORT));
    assert!(figure(&trial, "job.time") > 0.0);
    // The server's processes are seen by their agent.
    assert!(figure(&trial, "job.server_rss_peak") > 1e6);
}

/// Copies the data with the product's client, and uses what the setup left. Lasts until its memory is read.
fn copying(product: &str) -> String {
    let client = match product {
        "mariadb" => {
            "mariadb-dump --no-defaults --socket=$DYNO_SOCKET --user=$DYNO_USER $DYNO_DATABASE"
        }
        _ => "pg_dump",
    };
    format!(
        "setup = [\"sh\", \"-c\", \"id -u > $DYNO_SCRATCH/who\"]\n\
         command = [\"sh\", \"-c\", \"set -e; cd $DYNO_SCRATCH; test -s who; {client} > dump; \
         echo bytes $(wc -c < dump); sleep 1; $DYNO_PROGRAM --version; env | sort\"]\n"
    )
}

#[test]
fn a_command_runs_beside_its_server_with_what_a_local_one_gets() {
    for product in ["postgresql", "mariadb"] {
        let job = format!(
            "{}load = \"until-done\"\nfigures = {{ bytes = \"B, lower\" }}",
            copying(product)
        );
        let (_bench, trial) = run_well(&with_job(product, &job, SHORT));
        // A thousand rows of the workload.
        assert!(figure(&trial, "job.bytes") > 100_000.0);
        for name in ["job.time", "job.cpu", "job.rss_peak"] {
            assert!(figure(&trial, name) > 0.0, "{name}");
        }
        let activity = &trial["steps"][0]["activities"][0];
        assert_eq!(activity["ended"], "ended with exit code 0", "{activity:#}");
        let output = activity["output"].to_string();
        for word in ["DYNO_SOCKET=/", "DYNO_USER=", "DYNO_DATABASE=", "DYNO_URL="] {
            assert!(output.contains(word), "{word}: {output}");
        }
        // As the server's user it needs no password on the socket.
        assert!(!output.contains("PASSWORD"), "{output}");
    }
}

#[test]
fn a_job_works_with_the_member_that_it_names() {
    let question = |server: &str| {
        format!(
            "command = [\"sh\", \"-c\", \"echo replica $(psql -Atc 'SELECT pg_is_in_recovery()::int')\"]\n\
                 check = \"SELECT 1\"\nload = \"on\"\nfigures = {{ replica = \"1, higher\" }}\n{server}"
        )
    };
    for (member, expected) in [("", 0.0), ("member = \"replica-1\"", 1.0)] {
        let text = study("product = \"postgresql\"\nreplicas = 1", SHORT);
        let text = text.replace("[design]", &format!("[job.j]\n{}\n[design]", question(member)));
        let (_bench, trial) = run_well(&text);
        assert!((figure(&trial, "job.replica") - expected).abs() < 0.5, "{member}");
    }
    // The host distinguishes independent servers.
    let text =
        study("product = \"postgresql\"\nservers = 2", &format!("generators = \"sql\"\n{SHORT}"));
    let job = "sql = \"CREATE INDEX by_pad ON sbtest1 (pad)\"\nmember = \"sql2\"\nload = \"until-done\"\n\
               check = \"SELECT count(*) FROM pg_indexes WHERE indexname = 'by_pad'\"";
    let (_bench, trial) = run_well(&text.replace("[design]", &format!("[job.j]\n{job}\n[design]")));
    assert!(figure(&trial, "job.time") > 0.0);
}

#[test]
fn what_goes_wrong_with_a_command_is_said_with_its_host() {
    for (command, expected) in [
        (
            "[\"sh\", \"-c\", \"echo no space; exit 3\"]",
            "host sql1: the command `j` ended with exit code 3",
        ),
        (
            "[\"no-such-program\"]",
            "host sql1: the command `j`: the program `no-such-program` is not installed",
        ),
        (
            "[\"yes\"]",
            "host sql1: the command `j` was stopped: it printed more than 67108864 bytes",
        ),
    ] {
        let job = format!("command = {command}\nload = \"until-done\"");
        let (_bench, trial) = run(&with_job("postgresql", &job, SHORT));
        let outcome = trial["outcome"].to_string();
        assert!(outcome.contains(expected), "{expected}: {outcome}");
        if command.contains("exit 3") {
            assert!(outcome.contains("no space"), "{outcome}");
        }
    }
}

#[test]
fn a_command_ends_with_the_load_if_it_is_to() {
    let job = "command = [\"sleep\", \"600\"]\nload = \"on\"";
    let (_bench, trial) = run_well(&with_job("postgresql", job, SHORT));
    let activity = &trial["steps"][0]["activities"][0];
    assert_eq!(activity["ended"], "was stopped at the end of the measured time", "{activity:#}");
}

#[test]
fn no_password_is_on_a_command_line_or_in_the_environment_of_a_command() {
    let job = "command = [\"sleep\", \"600\"]\nload = \"on\"";
    for product in ["mariadb", "postgresql"] {
        check_secrets(&with_job(product, job, LONG), 1);
    }
}

/// A run whose command has started, with the processes of command and server.
fn running(bench: &Workbench, data: &DataFolder) -> (Running, i32, i32) {
    // The servers' user writes to it.
    let notes = DataFolder::new();
    let note = notes.path().join("pid");
    fs::write(&note, "").unwrap();
    fs::set_permissions(&note, Permissions::from_mode(0o666)).unwrap();
    let job = format!(
        "command = [\"sh\", \"-c\", \"trap '' TERM; echo $$ > {}; sleep 600\"]\nload = \"on\"",
        note.display()
    );
    bench.write("study.toml", &with_job("mariadb", &job, LONG));
    let mut run = bench.start(&["run", "study.toml", "--data-folder", data.text()]);
    run.wait_for(&["measuring"]);
    let pid = await_number(&note);
    let server = server_pid(&trial_folder(&bench.path("runs/study"), 1));
    assert!(is_alive(pid) && is_alive(server));
    assert_eq!(parent(server), parent(pid), "both are children of the agent");
    (run, pid, server)
}

/// As soon as the file has one.
#[track_caller]
fn await_number(file: &PathBuf) -> i32 {
    await_good(|| {
        let text = fs::read_to_string(file).unwrap();
        let whole = text.strip_suffix('\n').and_then(|number| number.parse().ok());
        whole.ok_or_else(|| format!("{text:?} is in {}", file.display()))
    })
}

#[track_caller]
pub(crate) fn await_empty(data: &DataFolder) {
    await_none(|| {
        let entries = fs::read_dir(data.path()).unwrap();
        entries.map(|one| one.unwrap().file_name().to_string_lossy().into_owned()).collect()
    });
}

#[test]
fn a_command_ends_with_its_agent_and_with_its_controller() {
    let kill = |pid: i32| kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    for kills_agent in [true, false] {
        let (bench, data) = (Workbench::new(), DataFolder::new());
        let (mut run, command, server) = running(&bench, &data);
        if kills_agent {
            kill(parent(server));
            assert_eq!(run.end(), 1);
            let message = first_trial(&bench)["outcome"]["message"].to_string();
            assert!(message.contains("host sql1") && message.contains("signal 9"), "{message}");
        } else {
            run.signal(Signal::KILL);
            run.child.wait().unwrap();
        }
        await_end(command);
        await_end(server);
        await_removal(&data);
        await_empty(&data);
    }
}

#[test]
fn a_command_that_does_not_end_is_killed_when_the_user_stops_the_run() {
    let (bench, data) = (Workbench::new(), DataFolder::new());
    let (run, command, server) = running(&bench, &data);
    run.signal(Signal::INT);
    assert_eq!(run.end(), 130);
    await_end(command);
    await_end(server);
    await_empty(&data);
}
