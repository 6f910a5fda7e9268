//! A folder to work in, the program, and ways to wait.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Output, Stdio};

use serde_json::Value;

/// Dyno runs in a folder that vanishes with the test.
pub(crate) struct Workbench {
    folder: tempfile::TempDir,
}

pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// The user of servers can enter it; it vanishes with the test.
pub(crate) struct DataFolder(tempfile::TempDir);

impl DataFolder {
    pub(crate) fn new() -> DataFolder {
        DataFolder::below(&std::env::temp_dir())
    }

    /// On a disk, wherever the tests' other files are.
    pub(crate) fn on_disk() -> DataFolder {
        DataFolder::below(Path::new("/var/tmp"))
    }

    fn below(folder: &Path) -> DataFolder {
        let mut builder = tempfile::Builder::new();
        let folder = builder.prefix("dyno-test-").tempdir_in(folder).expect("a folder");
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))
            .expect("it is ours");
        DataFolder(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn text(&self) -> &str {
        self.path().to_str().expect("its name is ASCII")
    }
}

impl Workbench {
    pub(crate) fn new() -> Workbench {
        Workbench { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("the file can be written");
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dyno"));
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        // Without data sets of others; tests of those have their own folder.
        let is_trial = matches!(arguments.first(), Some(&("run" | "bench")));
        if is_trial && !arguments.contains(&"--data-folder") {
            command.arg("--no-reuse");
        }
        // Without this machine's calibration.
        command.env("XDG_STATE_HOME", self.path("state"));
        // Without the user's fetched programs.
        command.env("DYNO_BUILDS", self.path("builds"));
        command
    }

    /// On a busy machine a transaction may outlast a short load, which is then repeated for longer.
    pub(crate) fn dyno(&self, arguments: &[&str]) -> Answer {
        let run = |arguments: &[&str]| {
            Answer::from(self.command(arguments).output().expect("dyno starts"))
        };
        let mut answer = run(arguments);
        let Some(name) = arguments.iter().position(|argument| *argument == "--duration") else {
            return answer;
        };
        let mut arguments = arguments.to_vec();
        for duration in ["4s", "16s"] {
            if answer.err.contains("no transaction completed") {
                arguments[name + 1] = duration;
                answer = run(&arguments);
            }
        }
        answer
    }

    /// The exit code must be 0.
    #[track_caller]
    pub(crate) fn dyno_good(&self, arguments: &[&str]) -> Answer {
        let answer = self.dyno(arguments);
        assert_eq!(answer.code, 0, "dyno {arguments:?}\n{}\n{}", answer.out, answer.err);
        answer
    }

    /// Its lines can be waited for.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        Running::of(self.command(arguments))
    }

    #[track_caller]
    pub(crate) fn bench(&self, arguments: &[&str]) -> Value {
        self.bench_to(0, arguments)
    }

    /// Expects this exit code.
    #[track_caller]
    pub(crate) fn bench_to(&self, code: i32, arguments: &[&str]) -> Value {
        let all: Vec<&str> =
            ["bench"].iter().chain(arguments).chain(&["--json"]).copied().collect();
        let answer = self.dyno(&all);
        assert_eq!(answer.code, code, "dyno {all:?}\n{}\n{}", answer.out, answer.err);
        serde_json::from_str(&answer.out).expect("bench prints JSON")
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        read_json(&self.path(name))
    }
}

impl From<Output> for Answer {
    fn from(output: Output) -> Answer {
        Answer {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

pub(crate) struct Running {
    pub(crate) child: Child,
    lines: BufReader<ChildStderr>,
    pub(crate) said: String,
}

impl Running {
    pub(crate) fn of(mut command: Command) -> Running {
        let mut child =
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("dyno starts");
        let lines = BufReader::new(child.stderr.take().expect("it is piped"));
        Running { child, lines, said: String::new() }
    }

    #[track_caller]
    pub(crate) fn wait_for(&mut self, words: &[&str]) {
        loop {
            let mut line = String::new();
            let n = self.lines.read_line(&mut line).expect("lines can be read");
            assert!(n > 0, "dyno ended before it said {words:?}:\n{}", self.said);
            self.said += &line;
            if words.iter().all(|word| line.contains(word)) {
                return;
            }
        }
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.child.id()).expect("a process id is small");
        let id = rustix::process::Pid::from_raw(id).expect("a process id is not zero");
        rustix::process::kill_process(id, signal).expect("the signal is sent");
    }

    pub(crate) fn end(self) -> i32 {
        self.outcome().0.code().unwrap_or(-1)
    }

    /// Returns how it ended, and its output.
    pub(crate) fn outcome(mut self) -> (ExitStatus, String) {
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.lines, &mut rest).expect("lines can be read");
        self.said += &rest;
        (self.child.wait().expect("it ends"), self.said)
    }
}

/// For servers of commands without a data folder.
pub(crate) fn data_root() -> PathBuf {
    std::env::var_os("DYNO_DATA_FOLDER").map_or_else(user_root, PathBuf::from)
}

/// Of the tests' user. Servers start on the initial data kept there, as initialising takes seconds.
pub(crate) fn user_root() -> PathBuf {
    format!("/var/tmp/dyno-{}", rustix::process::getuid().as_raw()).into()
}

pub(crate) fn read_json(path: &Path) -> Value {
    let text =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("the file is JSON")
}

/// Packed or not.
pub(crate) fn events(trial: &Path) -> String {
    let plain = trial.join("events.jsonl");
    if plain.exists() {
        return std::fs::read_to_string(plain).expect("events can be read");
    }
    let output = Command::new("gzip")
        .arg("-dc")
        .arg(trial.join("events.jsonl.gz"))
        .output()
        .expect("gzip is there");
    String::from_utf8(output.stdout).expect("events are text")
}

/// From a trial's events.
pub(crate) fn server_pid(trial: &Path) -> i32 {
    let text = events(trial);
    let line = text.lines().rfind(|line| line.contains("server_ready")).expect("a server is ready");
    let event: Value = serde_json::from_str(line).expect("an event is JSON");
    event["pid"].as_i64().expect("the server has a process") as i32
}

/// Number of looks, and milliseconds between them: only what never comes takes so long.
const LOOKS: (u32, u64) = (12_000, 10);

/// The last look's error is the test's message.
#[track_caller]
pub(crate) fn await_good<T>(mut look: impl FnMut() -> Result<T, String>) -> T {
    let (looks, pause) = LOOKS;
    let mut last = String::new();
    for _ in 0..looks {
        match look() {
            Ok(found) => return found,
            Err(why) => last = why,
        }
        std::thread::sleep(std::time::Duration::from_millis(pause));
    }
    panic!("{last}");
}

#[track_caller]
pub(crate) fn await_that(what: &str, mut is_so: impl FnMut() -> bool) {
    await_good(|| if is_so() { Ok(()) } else { Err(format!("it is not so that {what}")) });
}

#[track_caller]
pub(crate) fn await_end(pid: i32) {
    await_that(&format!("process {pid} has ended"), || !is_alive(pid));
}

#[track_caller]
pub(crate) fn await_none(left: impl Fn() -> Vec<String>) {
    await_good(|| match left() {
        left if left.is_empty() => Ok(()),
        left => Err(format!("{left:?} are still there")),
    });
}

pub(crate) fn free_port() -> u16 {
    dyno_host::free_loopback_port().expect("a port is free")
}

/// A zombie does not count.
pub(crate) fn is_alive(pid: i32) -> bool {
    // A killed process keeps its files and locks until its last thread has gone, perhaps after the main
    // thread.
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    let is_left = |thread: std::fs::DirEntry| {
        std::fs::read_to_string(thread.path().join("stat"))
            .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").trim_start().starts_with('Z'))
    };
    threads.flatten().any(is_left)
}

pub(crate) fn trial_folder(run: &Path, number: u32) -> PathBuf {
    let prefix = format!("{number:04}-");
    std::fs::read_dir(run.join("trials"))
        .expect("there are trials")
        .map(|entry| entry.expect("the entry can be read").path())
        .find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.starts_with(&prefix) && !name.contains("unfinished")
        })
        .expect("the trial has a folder")
}
