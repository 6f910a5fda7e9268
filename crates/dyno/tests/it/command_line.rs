//! The command line as a user sees it: hints, exit codes, colours, a search that is stopped.

use rustix::process::Signal;

use crate::support::Workbench;

#[test]
fn wrong_command_lines_end_with_2() {
    let bench = Workbench::new();
    std::fs::create_dir(bench.path("full")).unwrap();
    bench.write("full/file", "");
    let check = |arguments: &[&str], expected: &str| {
        let answer = bench.dyno(arguments);
        assert_eq!(answer.code, 2, "{arguments:?}: {}", answer.err);
        assert!(answer.err.contains(expected), "{arguments:?}: {}", answer.err);
    };
    check(&["rn"], "did you mean `run`?");
    check(&["bench", "oltp_read_only", "--on", "maria"], "did you mean `mariadb`?");
    check(&["bench", "oltp_read_only", "--on", "sqlite", "--threads", "8"], "--clients N");
    check(&["watch", "--metrics", "0.0.0.0:1", "--for", "2s"], "loopback");
    check(&["watch", "--metrics", "nonsense", "--for", "2s"], "ADDRESS:PORT");
    check(&["watch", "--for", "2s", "--record", "full"], "not empty");
    check(&["serve", "--listen", "0.0.0.0:0"], "loopback");
    bench.write(
        "study.toml",
        "title = \"x\"\n[database.a]\nproduct = \"simulated\"\n[workload.tpcb]\n",
    );
    check(&["run", "study.toml", "--metrics", "0.0.0.0:1"], "loopback");
    check(&["run", "study.toml", "--out", "full"], "not empty");
    assert!(!bench.path("runs").exists(), "nothing was done");
    let explain =
        |rest: &[&'static str]| [&["explain-cost", "SELECT 1", "--on"][..], rest].concat();
    check(&explain(&["maria"]), "did you mean `mariadb`?");
    check(&explain(&["sqlite", "--workload", "oltp_read_onl"]), "did you mean `oltp_read_only`?");
    check(&explain(&["sqlite", "--setting", "x"]), "NAME=VALUE");
}

#[test]
fn a_study_that_is_not_utf_8_is_refused_with_its_place() {
    let bench = Workbench::new();
    std::fs::write(bench.path("study.toml"), b"title = \"x\"\n# caf\xe9\n").unwrap();
    let answer = bench.dyno(&["check", "study.toml"]);
    assert_eq!(answer.code, 2, "{}", answer.err);
    assert!(answer.err.contains("line 2, byte 6 (0xe9), is not UTF-8"), "{}", answer.err);
}

#[test]
fn a_port_that_is_taken_names_a_way_out() {
    let bench = Workbench::new();
    std::fs::create_dir(bench.path("runs")).unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let answer = bench.dyno(&["serve", "runs", "--listen", &address]);
    assert_ne!(answer.code, 0);
    assert!(answer.err.contains("`--listen 127.0.0.1:0` picks a free port"), "{}", answer.err);
}

#[test]
fn a_port_without_a_server_is_said_once() {
    let bench = Workbench::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("mysql://nobody@{free}/test");
    let answer = bench.dyno(&["bench", "oltp_point_select", "--on", &url]);
    assert_ne!(answer.code, 0);
    assert_eq!(answer.err.matches("Connection refused").count(), 1, "{}", answer.err);
    assert_eq!(answer.err.matches(&free.to_string()).count(), 1, "{}", answer.err);
}

/// Neither results nor messages have foreign escape sequences (colours are harmless) or characters that change the
/// direction of writing.
#[test]
fn no_command_prints_what_a_terminal_would_obey() {
    let bench = Workbench::new();
    bench.dyno_good(&["bench", "oltp_point_select", "--on", "simulated", "--out", "record"]);
    let query = "SELECT char(27) || '[2J' || char(8238) || char(7) || 'x' AS \u{202e}name";
    for format in [&[][..], &["--tsv"]] {
        let answer = bench.dyno_good(&[&["sql", "record", query], format].concat());
        let is_obeyed = |c: char| c.is_control() && c != '\n' && c != '\t' || c == '\u{202e}';
        assert!(answer.out.contains("[2J") && !answer.out.contains(is_obeyed), "{}", answer.out);
    }
    let answer = bench.dyno(&["check", "\u{1b}]0;title\u{7}\u{202e}.toml"]);
    assert_eq!(answer.code, 2);
    assert!(answer.err.contains("]0;title"), "{}", answer.err);
    assert!(!answer.err.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{:?}", answer.err);
}

#[test]
fn colours_are_as_the_environment_wishes() {
    let bench = Workbench::new();
    bench.write("study.toml", "titel = 'x'\n");
    let check = |wishes: &[(&str, &str)], expected: bool| {
        let mut command = bench.command(&["check", "study.toml"]);
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        let output = command.envs(wishes.iter().copied()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(said.contains('\u{1b}'), expected, "{wishes:?}: {said}");
    };
    check(&[], false);
    check(&[("CLICOLOR_FORCE", "1")], true);
    check(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false);
}

#[test]
fn the_record_has_a_schema() {
    let bench = Workbench::new();
    let arguments = ["bench", "oltp_point_select", "--on", "simulated", "--out", "record"];
    bench.dyno_good(&arguments);
    let schema = bench.dyno_good(&["sql", "record", ".schema"]).out;
    assert!(schema.contains("CREATE TABLE trial") && schema.contains("results"), "{schema}");
    let tables = bench.dyno_good(&["sql", "record", ".tables", "--tsv"]).out;
    assert!(tables.lines().any(|name| name == "interval"), "{tables}");
}

#[test]
fn what_a_search_found_comes_first() {
    let bench = Workbench::new();
    let arguments = ["bench", "oltp_point_select", "--on", "simulated", "--duration", "20s"];
    let answer = bench.dyno_good(&[&arguments[..], &["--find-rate", "p99 <= 20ms"]].concat());
    let first = answer.out.lines().next().unwrap_or_default();
    assert!(first.starts_with("highest rate with p99 ≤ 20 ms: "), "{}", answer.out);
    assert!(first.contains("met the limit twice"), "{first}");
    assert!(answer.err.contains(" left"), "the probes that are left: {}", answer.err);
}

#[test]
fn a_search_that_is_stopped_keeps_its_probes() {
    let bench = Workbench::new();
    let arguments = ["bench", "oltp_point_select", "--on", "null-mysql", "--find-rate"];
    let options = ["p50 <= 50ms", "--duration", "500ms", "--warm-up", "0s", "--json"];
    let mut child = bench
        .command(&[&arguments[..], &options[..]].concat())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("probe 2 at") {
        let n = std::io::BufRead::read_line(&mut lines, &mut said).unwrap();
        assert!(n > 0, "it ended before its second probe: {said}");
    }
    let id = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(id, Signal::INT).unwrap();
    std::io::Read::read_to_string(&mut lines, &mut said).unwrap();
    let mut out = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut out).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
    let result: serde_json::Value = serde_json::from_str(&out).unwrap();
    let search = &result["search"];
    assert!(search["probes"].as_array().is_some_and(|probes| probes.len() >= 2), "{search:#}");
    assert_eq!(
        (&search["interrupted"], &search["found"]),
        (&true.into(), &serde_json::Value::Null)
    );
}

#[test]
fn what_is_no_run_is_said_to_be_none() {
    let bench = Workbench::new();
    bench.write("study.toml", "");
    let check = |arguments: &[&str], expected: &str| {
        let answer = bench.dyno(arguments);
        assert_eq!(answer.code, 2, "{arguments:?} {}", answer.err);
        assert!(answer.err.contains(expected), "{arguments:?} {}", answer.err);
    };
    check(&["report", "runs/none"], "there is no folder runs/none; name the folder of a run");
    check(&["report", "study.toml"], "study.toml is a file; name the folder of a run");
    check(&["sql", "study.toml", "SELECT 1"], "study.toml is a file");
    check(&["compare", "runs/a", "runs/b"], "there is no folder runs/a");
    check(&["compare", "runs/a", "runs/b", "--gate"], "there is no folder runs/a");
}

#[test]
fn check_finds_what_no_program_need_be_asked_for() {
    let bench = Workbench::new();
    let check = |database: &str, rest: &str, expected: &str| {
        let study = format!(
            "title = \"x\"\n[database.a]\n{database}\n{rest}\n[design]\nduration = \"1s\"\nclients = 1\n"
        );
        bench.write("study.toml", &study);
        let answer = bench.dyno(&["check", "study.toml"]);
        assert_eq!(answer.code, 2, "{database}: {}{}", answer.out, answer.err);
        assert!(answer.err.contains(expected), "{database}: {}", answer.err);
    };
    let sqlite = |setting: &str| format!("product = \"sqlite\"\nsettings = {{ {setting} }}");
    let workload = "[workload.oltp_read_only]";
    check(&sqlite("synchronos = \"full\""), workload, "did you mean `synchronous`?");
    check(&sqlite("synchronous = \"sometimes\""), workload, "ignores the setting");
    check(&sqlite("page_size = 1000"), workload, "ignores the setting page_size = 1000");
    check(
        "product = \"files\"",
        "[workload.file-io]\n[job.x]\nsql = [\"SELECT 1\"]",
        "which files does not understand",
    );
}
