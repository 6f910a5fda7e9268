//! Load from several agents as one: on this machine, over OpenSSH, and when something goes wrong.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::foreign::Standing;
use crate::support::{
    Answer, Running, Workbench, await_end, await_good, free_port, read_json, trial_folder,
};
use crate::up::UpBench;

/// Of a null server at a fixed rate.
pub(crate) fn study(generators: &str, design: &str) -> String {
    format!(
        r#"
        title = "Do several generate as one?"
        [database.null]
        product = "null-mysql"
        [workload.oltp_point_select]
        table_size = 1000
        {generators}
        [design]
        rate = 600
        arrivals = "constant"
        clients = 6
        repetitions = 1
        warm_up = "1s"
        rest = "0s"
        {design}
        "#
    )
}

const THREE: &str = "[host.load]\nnames = [\"a\", \"b\", \"c\"]";

pub(crate) fn summary(bench: &Workbench, run: &str, trial: u32) -> Value {
    read_json(&trial_folder(&bench.path(&format!("runs/{run}")), trial).join("summary.json"))
}

pub(crate) fn committed(step: &Value) -> f64 {
    step["kinds"][0]["outcomes"]["committed"].as_f64().expect("some committed")
}

#[test]
fn three_local_agents_do_what_three_workers_do() {
    let bench = Workbench::new();
    bench.write("one.toml", &study("", "duration = \"4s\"\nworkers = 3"));
    let design = "duration = \"4s\"\nworkers = 1\ngenerators = \"load\"";
    bench.write("three.toml", &study(THREE, design));
    for study in ["one.toml", "three.toml"] {
        bench.dyno_good(&["run", study]);
    }
    let [one, three] = ["one", "three"].map(|run| summary(&bench, run, 1)["steps"][0].clone());
    assert!(one["hosts"].is_null());
    // Constant arrivals: each is due at the same time of the step, on any agent.
    assert_eq!((one["due"].as_u64(), three["due"].as_u64()), (Some(2400), Some(2400)));
    // How many are sent in time depends on the machine.
    assert!(committed(&one) > 0.0, "{one}");
    let hosts = three["hosts"].as_array().expect("there are hosts");
    let names: Vec<&str> = hosts.iter().map(|host| host["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(hosts.iter().map(committed).sum::<f64>(), committed(&three));
    for host in hosts {
        assert_eq!((host["due"].as_u64(), host["clients"].as_u64()), (Some(800), Some(2)));
        let clock = &host["clock"];
        let off = clock["wall_offset_ms"].as_f64().unwrap().abs();
        assert!(off <= clock["wall_bound_ms"].as_f64().unwrap() + 2.0, "{clock}");
        assert!(host["generator"]["process_cpu_user_s"].is_number(), "{host}");
    }
    assert_eq!(three["generator"]["workers"], 3);
    let page = fs::read_to_string(bench.path("runs/three/report.html")).unwrap();
    assert!(page.contains("Load generators"), "the page has its section");
}

#[test]
fn servers_over_the_same_data_have_an_agent_each() {
    let bench = UpBench::new();
    // On a busy machine, a node may be silent for longer than the default of five seconds.
    let patience = "wsrep_provider_options=evs.suspect_timeout=PT1M;evs.inactive_timeout=PT2M";
    let cluster =
        ["mariadb", "--name=here", "--cluster=galera", "--nodes=2", "--setting", patience];
    let urls = bench.up(&cluster);
    let [first, second] = urls.lines().collect::<Vec<_>>()[..] else { panic!("{urls}") };
    let other = bench.up(&["mariadb", "--name", "other"]);
    let run = |name: &str, more: &str, generators: &str| {
        let hosts = "[host.load]\nnames = [\"a\", \"b\"]";
        let text = format!(
            "title = \"x\"\n[database.cluster]\nurl = \"{first}\"\nmore_urls = [\"{more}\"]\n\
             [workload.oltp_update_non_index]\ntable_size = 1000\n{hosts}\n[design]\n{generators}\n\
             vary = {{ \"database.sql_servers\" = [1, 2] }}\nclients = 4\nworkers = 2\norder = \"sequential\"\n\
             repetitions = 1\nwarm_up = \"0s\"\nrest = \"0s\"\nduration = \"1s\"\nvoid_blocks = \"keep\"\n"
        );
        bench.bench.write(&format!("{name}.toml"), &text);
        (
            bench.dyno(&["run", &format!("{name}.toml")]),
            [1, 2].map(|n| summary(&bench.bench, name, n)),
        )
    };
    let servers = |trial: &Value| -> Vec<Value> {
        let hosts = trial["steps"][0]["hosts"].as_array().expect("there are hosts");
        hosts.iter().map(|host| host["server"].clone()).collect()
    };
    let (answer, [one, two]) = run("agents", second, "generators = \"load\"");
    assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
    assert_eq!(servers(&one), [Value::Null, Value::Null]);
    assert_eq!(servers(&two), [Value::from(first), Value::from(second)]);
    let audit = two["audit"].as_array().unwrap();
    let is_of_second = |row: &&Value| row["name"].as_str().unwrap().starts_with("server-2 (");
    assert_eq!(audit.iter().filter(is_of_second).count(), 1, "{audit:#?}");
    assert!(audit.iter().all(|row| row["pass"] == true), "{audit:#?}");
    let page = fs::read_to_string(bench.bench.path("runs/agents/report.html")).unwrap();
    assert!(page.contains(">Server<"), "the page names the servers");

    // Without agents, the clients of the one process take turns.
    let (answer, [_, two]) = run("here", second, "");
    assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
    assert!(two["audit"].as_array().unwrap().iter().any(|row| is_of_second(&row)), "{two:#}");

    let (answer, [one, two]) = run("wrong", &other, "generators = \"load\"");
    assert_ne!(answer.code, 0, "{}", answer.out);
    assert_eq!(one["outcome"]["state"], "finished", "{:#}", one["outcome"]);
    let why = two["outcome"]["message"].to_string();
    assert!(why.contains("server-2 (") && why.contains("share the data of `url`"), "{why}");

    // The same socket by another path.
    let (answer, [_, two]) = run("twice", &first.replace("socket=/", "socket=/./"), "");
    assert_ne!(answer.code, 0, "{}", answer.out);
    let why = two["outcome"]["message"].to_string();
    assert!(why.contains("is the first server under another address"), "{why}");
}

#[test]
fn searches_and_closed_loads_go_with_agents() {
    let bench = Workbench::new();
    let text = study(THREE, "generators = \"load\"\nduration = \"1s\"\nworkers = 1");
    let closed = text.replace("rate = 600", "").replace("arrivals = \"constant\"", "");
    bench.write("closed.toml", &closed.replace("warm_up = \"1s\"", "warm_up = \"0s\""));
    bench.dyno_good(&["run", "closed.toml"]);
    let step = &summary(&bench, "closed", 1)["steps"][0];
    assert!(committed(step) > 0.0 && step["hosts"].as_array().unwrap().len() == 3);
    let audit = &summary(&bench, "closed", 1)["audit"];
    let drawn = audit
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["name"].as_str().unwrap().starts_with("rows drawn"));
    // The agents' draws have arrived here.
    let expected = drawn.map(|row| row["expected"].as_str().unwrap().to_owned());
    assert!(expected.is_none_or(|text| !text.contains("for 0 draws")), "{audit}");
}

#[test]
fn what_agents_cannot_do_is_refused_by_check() {
    let bench = Workbench::new();
    let check = |from: &str, to: &str, expected: &str| {
        let text = study(THREE, "generators = \"load\"\nduration = \"1s\"");
        assert!(text.contains(from), "{from}");
        bench.write("study.toml", &text.replace(from, to));
        let answer = bench.dyno(&["check", "study.toml"]);
        assert_eq!(answer.code, 2, "{to}: {}", answer.out);
        assert!(answer.err.contains(expected), "{to}: {}", answer.err);
    };
    check(
        "\"null-mysql\"",
        "\"sqlite\"",
        "runs inside Dyno's own process, and agents cannot connect",
    );
    check("clients = 6", "clients = 2", "3 generators cannot share a load of 2 clients");
    check(
        "names =",
        "reach = \"ssh {name} dyno agent\"\nnames =",
        "cannot be reached from other hosts",
    );
    check("duration = \"1s\"", "duration = \"5s\"\nuntil_steady = \"9s\"", "`until_steady`");
    check(
        "[workload.oltp_point_select]\n        table_size = 1000",
        "[workload.tpcb]",
        "cannot be combined with",
    );
    check("generators = \"load\"", "generators = \"loat\"", "there is no host `loat`");
    check("\"b\"", "\"-oProxyCommand=x\"", "cannot be the name of a host");
    check("\"b\"", "\"a\"", "host `a` is listed twice");
}

/// Why the one trial of a study with this `reach` failed.
fn failure(bench: &Workbench, reach: &str) -> String {
    let host = format!("[host.load]\nreach = '{reach}'\nnames = [\"b1\"]");
    // Private servers are for local agents; here nothing comes to connect.
    let text = study(&host, "duration = \"1s\"\ngenerators = \"load\"");
    let text = text.replace("product = \"null-mysql\"", "url = \"mysql://me@127.0.0.1:1/test\"");
    bench.write("study.toml", &text);
    let answer = bench.dyno(&["run", "study.toml", "--new"]);
    assert_eq!(answer.code, 1, "{}", answer.err);
    answer.err
}

#[test]
fn a_command_that_starts_no_agent_ends_in_a_message_with_its_host() {
    let bench = Workbench::new();
    let check = |reach: &str, parts: &[&str]| {
        let said = failure(&bench, reach);
        for part in ["host b1"].iter().chain(parts) {
            assert!(said.contains(part), "{reach}: {part} is not in {said}");
        }
    };
    check("/nowhere/ssh {name} dyno agent", &["cannot be started"]);
    check("sh -c \"echo no route to {name} >&2; exit 7\"", &["exit code 7", "no route to b1"]);
    check("echo Welcome to {name}", &["“Welcome to b1”", "must print nothing"]);
    bench.write("other", "");
    let message = r#"{"hello":{"protocol":7,"dyno":"0.0.9"}}"#;
    let mut frame = b"DynA".to_vec();
    frame.extend_from_slice(&(message.len() as u32).to_le_bytes());
    frame.extend_from_slice(message.as_bytes());
    fs::write(bench.path("other"), frame).unwrap();
    let reach = format!("cat {}", bench.path("other").display());
    check(&reach, &["Dyno 0.0.9 (protocol 7)", "install the same version"]);
}

/// Ids of a Dyno's agents.
pub(crate) fn agents(of: u32) -> Vec<i32> {
    let children = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let parent = stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse::<u32>().ok()?;
        let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        (parent == of && command.contains("agent")).then_some(pid)
    });
    children.collect()
}

pub(crate) fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Two trials; returns the run with its agents once the first trial is measured.
fn running(bench: &Workbench) -> (Running, Vec<i32>) {
    let design = "duration = \"15s\"\nworkers = 1\ngenerators = \"load\"";
    let text = study(THREE, design).replace("repetitions = 1", "repetitions = 2");
    bench.write("study.toml", &text);
    let mut run = bench.start(&["run", "study.toml"]);
    run.wait_for(&["trial 1/2", "measuring"]);
    let agents = agents(run.child.id());
    assert_eq!(agents.len(), 3);
    (run, agents)
}

/// An agent dies in the first trial, which fails; the second trial has new agents.
fn check_lost(signal: Signal, expected: &str) {
    let bench = Workbench::new();
    let (run, agents) = running(&bench);
    kill(agents[1], signal);
    assert_eq!(run.end(), 1);
    agents.into_iter().for_each(await_end);
    let findings = read_json(&bench.path("runs/study/findings.json"));
    let trials = findings["trials"].as_array().unwrap();
    let message = trials[0]["message"].as_str().unwrap();
    let named = ["host a", "host b", "host c"].iter().any(|host| message.contains(host));
    assert!(named && message.contains(expected), "{message}");
    assert_eq!(trials[1]["state"], "finished", "{:#}", trials[1]);
}

#[test]
fn an_agent_that_is_killed_fails_its_trial_and_the_next_one_runs() {
    check_lost(Signal::KILL, "was ended by signal 9");
}

#[test]
fn an_agent_that_hangs_fails_its_trial_and_the_next_one_runs() {
    check_lost(Signal::STOP, "has not answered for 10 s");
}

#[test]
fn agents_end_with_their_controller() {
    let bench = Workbench::new();
    let (mut run, agents) = running(&bench);
    run.signal(Signal::KILL);
    run.child.wait().unwrap();
    agents.into_iter().for_each(await_end);
}

#[test]
fn an_agent_by_hand_says_what_it_is() {
    let bench = Workbench::new();
    let mut command = bench.command(&["agent"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"hello?\n").unwrap();
    let answer = Answer::from(child.wait_with_output().unwrap());
    assert_eq!((answer.code, answer.out.as_str()), (1, ""));
    assert!(answer.err.contains("is started by a study"), "{}", answer.err);
    // It ends with its input.
    let answer = bench.dyno(&["agent"]);
    assert_eq!((answer.code, answer.out.as_str()), (0, ""), "{}", answer.err);
}

/// A loopback port that leads to a Unix socket.
pub(crate) fn forward(socket: PathBuf) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = UnixStream::connect(&socket) else { return };
            join(client, server);
        }
    });
    port
}

fn join(client: TcpStream, server: UnixStream) {
    let _ = client.set_nodelay(true);
    let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    thread::spawn(move || {
        copy(from, &to);
        let _ = to.shutdown(Shutdown::Write);
    });
    thread::spawn(move || {
        copy(server, &client);
        let _ = client.shutdown(Shutdown::Write);
    });
}

fn copy(mut from: impl Read, mut to: impl Write) {
    let mut buffer = [0; 16 << 10];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..n]).is_err() {
            return;
        }
    }
}

/// On the loopback, with keys and a configuration of its own.
pub(crate) struct Sshd {
    server: Child,
    folder: PathBuf,
    port: u16,
}

const SSHD: &str = "/usr/sbin/sshd";

impl Sshd {
    /// None without OpenSSH's server.
    pub(crate) fn start(folder: &Path) -> Option<Sshd> {
        if !Path::new(SSHD).exists() {
            return None;
        }
        // OpenSSH checks the rights of every folder above its files.
        fs::set_permissions(folder, Permissions::from_mode(0o700)).unwrap();
        let path = |name: &str| folder.join(name).display().to_string();
        for key in ["host_key", "user_key", "other_key"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f", &path(key)])
                .status()
                .expect("ssh-keygen is there");
            assert!(made.success());
        }
        fs::copy(folder.join("user_key.pub"), folder.join("authorized_keys")).unwrap();
        let port = free_port();
        // Bash reads its start-up file only in a shell of level 1: the user's may wait for a lock that the shell of a
        // killed agent has left.
        let config = format!(
            "SetEnv SHLVL=1\nPort {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\n\
             UsePAM no\nStrictModes no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n\
             PubkeyAuthentication yes\nKbdInteractiveAuthentication no\n",
            path("host_key"),
            path("authorized_keys"),
        );
        fs::write(folder.join("sshd_config"), config).unwrap();
        // As root, it needs this folder, which its service would make.
        let _ = fs::create_dir("/run/sshd");
        let log = folder.join("sshd.log");
        let server = Command::new(SSHD)
            .args(["-D", "-e", "-f", &path("sshd_config")])
            .stdin(Stdio::null())
            .stderr(fs::File::create(&log).unwrap())
            .spawn()
            .expect("it starts");
        let mut sshd = Sshd { server, folder: folder.to_owned(), port };
        sshd.know("host_key");
        await_good(|| {
            let said = fs::read_to_string(&log).unwrap();
            assert!(sshd.server.try_wait().unwrap().is_none(), "{said}");
            if said.contains("Server listening on ") { Ok(()) } else { Err(said) }
        });
        Some(sshd)
    }

    /// Makes this key the server's for the client.
    pub(crate) fn know(&self, key: &str) {
        let key = fs::read_to_string(self.folder.join(format!("{key}.pub"))).unwrap();
        let known = format!("[127.0.0.1]:{} {key}", self.port);
        fs::write(self.folder.join("known_hosts"), known).unwrap();
    }

    /// Starts an agent over OpenSSH, which checks host keys as by default.
    pub(crate) fn reach(&self) -> String {
        let path = |name: &str| self.folder.join(name).display().to_string();
        format!(
            "ssh -F none -p {} -i {} -o UserKnownHostsFile={} -o BatchMode=yes {{name}} {} agent",
            self.port,
            path("user_key"),
            path("known_hosts"),
            env!("CARGO_BIN_EXE_dyno"),
        )
    }
}

impl Sshd {
    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn agents_are_reached_over_openssh_whose_host_keys_are_checked() {
    let bench = Workbench::new();
    fs::create_dir(bench.path("ssh")).unwrap();
    let Some(sshd) = Sshd::start(&bench.path("ssh")) else {
        // Not captured by the harness, which drops the output of tests that pass.
        let why = "SKIPPED: 1 test of agents over OpenSSH: openssh-server is not installed";
        let _ = writeln!(std::io::stderr(), "{why}");
        return;
    };
    let standing = Standing::start("mariadb");
    for sql in
        ["CREATE USER gen@localhost IDENTIFIED BY 'hush-hush'", "GRANT ALL ON *.* TO gen@localhost"]
    {
        standing.connection().query(sql).unwrap();
    }
    let port = forward(standing.socket.clone());
    let host = format!("[host.load]\nreach = '{}'\nnames = [\"127.0.0.1\"]", sshd.reach());
    let design = "duration = \"2s\"\nworkers = 1\ngenerators = \"load\"";
    let url = format!("url = \"mysql://gen:${{AGENT_TEST}}@127.0.0.1:{port}/agents\"");
    let text = study(&host, design).replace("product = \"null-mysql\"", &url);
    bench.write("study.toml", &text);
    let run = || {
        let mut command = bench.command(&["run", "study.toml", "--new"]);
        let output = command.env("AGENT_TEST", "hush-hush").output().unwrap();
        Answer::from(output)
    };
    let answer = run();
    let log = || fs::read_to_string(bench.path("ssh/sshd.log")).unwrap();
    assert_eq!(answer.code, 0, "{}\n{}\n{}", answer.out, answer.err, log());
    let step = &summary(&bench, "study", 1)["steps"][0];
    assert_eq!((step["due"].as_u64(), step["hosts"].as_array().unwrap().len()), (Some(1200), 1));
    assert!(committed(step) > 0.0, "{step}");
    // The password went over the channel, but is in no log and no record.
    let record = fs::read_to_string(bench.path("runs/study/manifest.json")).unwrap();
    let summary = summary(&bench, "study", 1).to_string();
    for text in [log(), answer.err, answer.out, record, summary] {
        assert!(!text.contains("hush-hush"), "{text}");
    }
    // Another host answers.
    sshd.know("other_key");
    let answer = run();
    assert_eq!(answer.code, 1, "{}", answer.err);
    let refused =
        answer.err.contains("host 127.0.0.1") && answer.err.contains("verification failed");
    assert!(refused, "{}", answer.err);
}
