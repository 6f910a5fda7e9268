//! Effects of Ctrl-C, SIGTERM and SIGHUP on each command, as docs/signals.md says.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use dyno_database::Endpoint;
use dyno_workload::Connection;
use rustix::process::Signal;

use crate::support::{DataFolder, Running, Workbench, await_none, await_that};
use crate::up::UpBench;

/// Commands that end too soon for a signal, or become another program. They listen like all others.
const NOT_TRIED: [&str; 14] = [
    "convert",
    "import",
    "report",
    "compare",
    "sql",
    "schema",
    "doctor",
    "datasets",
    "ls",
    "logs",
    "down",
    "products",
    "completions",
    "connect",
];

/// Tried in other tests: see pgbench.rs.
const TRIED_ELSEWHERE: [&str; 1] = ["pgbench"];

/// According to the document.
struct Promise {
    /// None if it ends by the signal.
    code: Option<i32>,
    /// Printed at the first signal; empty for nothing.
    words: String,
}

/// The commands of each line of the table, with the promise.
fn promises() -> Vec<(Vec<String>, Promise)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/signals.md");
    let text = std::fs::read_to_string(path).expect("there is a table of signals");
    let (_, rest) = text.split_once("<!-- signals -->").expect("it begins");
    let (table, _) = rest.split_once("<!-- /signals -->").expect("it ends");
    let quoted = |cell: &str| -> Vec<String> {
        cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    let lines = table.lines().filter(|line| line.starts_with("| `"));
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let words = quoted(cells[4]).concat();
            (quoted(cells[1]), Promise { code: cells[3].parse().ok(), words })
        })
        .collect()
}

#[track_caller]
fn promise(command: &str) -> Promise {
    let mut all = promises().into_iter();
    let found = all.find(|(commands, _)| commands.iter().any(|one| one == command));
    found.unwrap_or_else(|| panic!("docs/signals.md does not say what ends {command}")).1
}

/// One after the other. Programs started by `nohup`, such as these tests, ignore a hangup.
fn sequences() -> Vec<Vec<Signal>> {
    let status = std::fs::read_to_string("/proc/self/status").expect("there is /proc");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0");
    let ignored = u64::from_str_radix(ignored.trim(), 16).expect("a mask");
    let mut all = vec![vec![Signal::INT], vec![Signal::TERM]];
    if ignored & 1 == 0 {
        all.push(vec![Signal::HUP]);
    }
    // It leaves things behind.
    all.push(vec![Signal::INT, Signal::INT]);
    all
}

/// Signals a command once it is `ready`, and checks its end. `left` gets its output, unless a second signal kept it
/// from cleaning up.
#[track_caller]
fn check(
    bench: &Workbench,
    arguments: &[&str],
    mut ready: impl FnMut(&mut Running),
    mut left: impl FnMut(&str),
) {
    let promise = promise(arguments[0]);
    for signals in sequences() {
        // A silent command ends before a second signal could come.
        if promise.words.is_empty() && signals.len() > 1 {
            continue;
        }
        let mut command = bench.command(arguments);
        command.env("TMPDIR", bench.path(""));
        let mut running = Running::of(command);
        ready(&mut running);
        for (idx, signal) in signals.iter().enumerate() {
            running.signal(*signal);
            if idx == 0 && !promise.words.is_empty() {
                running.wait_for(&[&promise.words]);
            }
        }
        let (status, said) = running.outcome();
        let place = format!("dyno {arguments:?} after {signals:?}: {status}\n{said}");
        match promise.code {
            Some(code) => assert_eq!(status.code(), Some(code), "{place}"),
            None => assert_eq!(status.signal(), Some(signals[0].as_raw()), "{place}"),
        }
        assert!(!said.contains("error:"), "{place}");
        if signals.len() == 1 {
            left(&said);
        }
    }
}

/// Empty if there is none.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn the_table_has_each_command_once() {
    let bench = Workbench::new();
    let help = bench.dyno_good(&["--help"]).out;
    let (_, listed) = help.split_once("Commands:").expect("commands");
    let names = listed.lines().filter_map(|line| line.strip_prefix("  "));
    let names = names.filter_map(|line| line.split_once(' ')).map(|(name, _)| name.to_owned());
    let known: BTreeSet<String> =
        names.filter(|name| !name.is_empty() && !name.starts_with('-') && name != "help").collect();
    let table: Vec<String> = promises().into_iter().flat_map(|(commands, _)| commands).collect();
    let unique: BTreeSet<String> = table.iter().cloned().collect();
    assert_eq!((unique.len(), &unique), (table.len(), &known));
    let source = include_str!("signals.rs");
    for name in known.iter().filter(|name| !NOT_TRIED.contains(&name.as_str())) {
        let is_tried = source.contains(&format!("[\"{name}\","));
        assert!(is_tried || TRIED_ELSEWHERE.contains(&name.as_str()), "{name} is not tried");
    }
}

const STUDY: &str = r#"
    title = "Which of them is slower?"
    [database.a]
    product = "sqlite"
    [database.b]
    like = "a"
    [workload.oltp_point_select]
    table_size = 10
    [design]
    vary = { database = ["a", "b"] }
    repetitions = 6
    warm_up = "0s"
    duration = "1h"
"#;

#[test]
fn trials_are_abandoned() {
    let bench = Workbench::new();
    bench.write("study.toml", STUDY);
    let measuring = |running: &mut Running| running.wait_for(&["measuring"]);
    // A second signal leaves data there.
    let folders = [DataFolder::new(), DataFolder::new(), DataFolder::new()];
    let data = |idx: usize| ["--data-folder", folders[idx].text()];
    let run = [&["run", "study.toml", "--no-reuse"][..], &data(0)].concat();
    check(&bench, &run, measuring, |_| {
        await_none(|| names(folders[0].path()));
        assert!(bench.path("runs/study/manifest.json").is_file());
    });
    let bench_command = ["bench", "oltp_point_select", "--on", "sqlite", "--duration", "1h"];
    let bench_command = [&bench_command[..], &["--warm-up", "0s"], &data(1)].concat();
    let entries = || names(folders[1].path());
    let has_begun = |_: &mut Running| await_that("it has data", || !entries().is_empty());
    check(&bench, &bench_command, has_begun, |_| await_none(entries));
    let gate = ["gate", "a", "b", "--study", "study.toml", "--out", "gate"];
    let study = STUDY.replace("vary = { database = [\"a\", \"b\"] }", "database = \"a\"");
    bench.write("study.toml", &study);
    check(&bench, &[&gate[..], &data(2)].concat(), measuring, |said| {
        assert!(said.contains("so there is no verdict"), "{said}");
        // Data sets are for later runs.
        await_none(|| {
            names(folders[2].path()).into_iter().filter(|name| name != "datasets").collect()
        });
    });
}

#[test]
fn commands_without_servers_end_at_once() {
    let bench = Workbench::new();
    check(
        &bench,
        &["calibrate", "--duration", "1h"],
        |running| running.wait_for(&["1 client"]),
        |_| {
            assert!(!bench.path("state").exists(), "nothing is kept");
            assert_eq!(names(&bench.path("")), [""; 0], "nor its sockets");
        },
    );
    check(
        &bench,
        &["watch", "--record", "watched"],
        |running| running.wait_for(&["watching"]),
        |_| {
            assert!(bench.path("watched/report.html").is_file());
            std::fs::remove_dir_all(bench.path("watched")).expect("it is ours");
        },
    );
    std::fs::create_dir(bench.path("runs")).expect("it is ours");
    check(
        &bench,
        &["serve", "--listen", "127.0.0.1:0"],
        |running| running.wait_for(&["serving"]),
        |_| {},
    );

    bench.write("slow.lua", include_str!("cases/parallel-prepare.lua"));
    let words = ["slow.lua", "--mysql-dry-run", "--threads=2", "prepare"];
    let begun = |running: &mut Running| running.wait_for(&["begun"]);
    check(&bench, &[&["sysbench", "--no-record"][..], &words].concat(), begun, |_| {});

    // Their input does not come.
    let pipe = bench.path("pipe").display().to_string();
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo starts");
    assert!(made.success());
    let readers: [&[&str]; 3] =
        [&["check", &pipe], &["plan", &pipe], &["capture", &pipe, "--out", "made"]];
    for words in readers {
        // The pipe can be opened once it is read; it stays open meanwhile.
        let mut held = None;
        let mut open = |_: &mut Running| held = Some(OpenOptions::new().write(true).open(&pipe));
        check(&bench, words, &mut open, |_| assert!(!bench.path("made").exists()));
    }
}

/// Observes and locks what commands do on a server.
struct Session(RefCell<Box<dyn Connection>>);

impl Session {
    fn open(url: &str) -> Session {
        let endpoint = Endpoint::from_url(url).expect("it is a URL");
        Session(RefCell::new(endpoint.protocol.connector(&endpoint)().expect("it answers")))
    }

    #[track_caller]
    fn cell(&self, sql: &str) -> String {
        let rows = self.0.borrow_mut().query(sql);
        let rows = rows.unwrap_or_else(|error| panic!("{sql}: {error}"));
        rows.into_iter().flatten().next().flatten().unwrap_or_default()
    }

    /// Whether another session runs such a statement, or is in such a state.
    fn sees(&self, pattern: &str) -> bool {
        let sql = format!(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND \
             (INFO LIKE '{pattern}' OR STATE LIKE '{pattern}')"
        );
        self.cell(&sql) != "0"
    }

    #[track_caller]
    fn await_seen(&self, pattern: &str) {
        await_that(&format!("a session does {pattern}"), || self.sees(pattern));
    }

    #[track_caller]
    fn await_unseen(&self, pattern: &str) {
        await_that(&format!("no session does {pattern}"), || !self.sees(pattern));
    }
}

#[test]
fn commands_on_a_server_leave_it_in_order() {
    let bench = UpBench::new();
    let url = bench.up(&["mariadb", "--name", "here"]);
    let other = url.replace("/dyno?", "/other?");
    let session = Session::open(&url);
    // Rows are stored slowly: a full restore takes minutes and has hundreds of files.
    for sql in [
        "CREATE DATABASE other",
        "CREATE TABLE other.r (id INT PRIMARY KEY)",
        "CREATE TABLE r (id INT PRIMARY KEY)",
        "INSERT INTO r SELECT seq FROM seq_1_to_100",
        "SET SESSION check_constraint_checks = 0",
        "CREATE TABLE t (id INT PRIMARY KEY, CHECK (SHA2(REPEAT(id, 3000000), 512) <> ''))",
        "INSERT INTO t SELECT seq FROM seq_1000_to_9999",
    ] {
        session.cell(sql);
    }
    let path = |name: &str| bench.bench.path(name);
    bench.good(&["dump", &url, "kept", "--table", "t", "--rows", "20"]);

    session.cell("LOCK TABLES t WRITE");
    let dump = ["dump", &url, "dumped", "--table", "t", "--threads", "1"];
    let waits = |_: &mut Running| session.await_seen("Waiting for table metadata lock");
    check(&bench.bench, &dump, waits, |_| {
        session.await_unseen("Waiting for table metadata lock");
        assert!(!path("dumped").exists());
    });
    session.cell("UNLOCK TABLES");

    check(
        &bench.bench,
        &["restore", "kept", &other],
        |_| session.await_seen("LOAD DATA%"),
        |said| {
            assert!(said.contains("what was restored so far is left in place, in t"), "{said}");
            session.await_unseen("LOAD DATA%");
            session.cell("DROP TABLE other.t");
        },
    );

    let archive = ["archive", &url, &other, "--table", "r", "--where", "id <= 90"];
    let archive = [&archive[..], &["--batch", "10", "--pause", "1h"]].concat();
    let n_rows = |table: &str| {
        let n = session.cell(&format!("SELECT COUNT(*) FROM {table}"));
        n.parse::<u32>().expect("a number")
    };
    let before = Cell::new(100);
    check(
        &bench.bench,
        &archive,
        |_| {
            await_that("a batch has moved", || n_rows("r") < before.get());
            before.set(n_rows("r"));
        },
        |_| assert_eq!((n_rows("r"), n_rows("r") + n_rows("other.r")), (before.get(), 100)),
    );

    let sql = "SELECT SLEEP(0.01)";
    let explain = ["explain-cost", sql, "--on", &url, "--runs", "10000"];
    check(&bench.bench, &explain, |_| session.await_seen("SELECT SLEEP%"), |_| {});
}

#[test]
fn a_server_that_is_being_started_is_stopped() {
    let bench = Workbench::new();
    let folder = DataFolder::new();
    let servers = || {
        let is_server = |name: &String| name.ends_with(".owner.json");
        names(folder.path()).into_iter().filter(is_server).collect::<Vec<_>>()
    };
    check(
        &bench,
        &["up", "mariadb", "--data-folder", folder.text()],
        |_| await_that("a server is being started", || !servers().is_empty()),
        |_| await_none(|| [servers(), names(&bench.path("up"))].concat()),
    );
}
