//! A user's own probe: a command that prints lines of name and value. It is killed with its process
//! group after its time limit and when the observation ends; if Dyno is killed, the next Dyno finds
//! it by its folder's mark. A failure costs its own readings; it is reported once, and counted.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use dyno_units::reading::prelude::*;
use dyno_units::{Clock, Nanoseconds, locked, redact_secrets};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::{Probe, Readings};
use crate::error::Result;
use crate::keeper::{FOLDER_MARK, Keeper};

#[rustfmt::skip]
pub const USER_READINGS: &[Reading] = &[
    reading("probe.*", Number, "reading of a declared probe", "a reading of a probe that the study declares"),
    reading("probe.*.failures", Unit::other("reads"), "failed reads", "times so far that this probe could not be read").worse(),
];

/// The rest is not read.
const BYTES_MAX: usize = 1 << 20;

/// Characters of a name; the rest is cut off.
const NAME_LENGTH_MAX: usize = 120;

/// Without secrets; blanks and the like become `_`.
pub fn reading_name(probe: &str, name: &str) -> String {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '/' | '%');
    let name = redact_secrets(name.trim());
    let name = name.chars().map(|c| if allowed(c) { c } else { '_' }).take(NAME_LENGTH_MAX);
    format!("{probe}.{}", name.collect::<String>())
}

/// Counts failures, and notes the reason of the first.
#[derive(Debug, Default)]
pub struct Failures {
    n: u64,
    notes: Vec<String>,
}

impl Failures {
    /// Adds what the probe found, or notes its failure; and the number of failures.
    pub fn add(
        &mut self,
        probe: &str,
        found: Result<impl IntoIterator<Item = (String, f64)>, String>,
        readings: &mut Readings,
    ) {
        match found {
            Ok(found) => readings.extend(found),
            Err(reason) => {
                if self.n == 0 {
                    self.notes.push(format!("{probe} cannot be read: {reason}"));
                }
                self.n += 1;
            }
        }
        readings.insert(format!("{probe}.failures"), self.n as f64);
    }

    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }
}

/// By which another thread ends the probe while it is read.
#[derive(Debug, Default)]
pub struct ProbeCommand(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    group: Option<Pid>,
    is_over: bool,
}

impl ProbeCommand {
    /// With its group; and starts no more.
    pub fn end(&self) {
        let mut state = locked(&self.0);
        state.is_over = true;
        if let Some(group) = state.group {
            // Not collected yet, so the group is its own; it may have ended.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    fn start(&self, command: &mut Command) -> io::Result<Child> {
        let mut state = locked(&self.0);
        if state.is_over {
            return Err(io::Error::other("the observation has ended"));
        }
        let child = command.spawn()?;
        state.group = Some(Pid::from_child(&child));
        Ok(child)
    }

    fn collect(&self, child: &mut Child) -> io::Result<ExitStatus> {
        let mut state = locked(&self.0);
        if let Some(group) = state.group.take() {
            let _ = kill_process_group(group, Signal::KILL);
        }
        child.wait()
    }
}

/// By which the next Dyno finds what is started. Removed when dropped.
struct Mark {
    keeper: Arc<Keeper>,
    folder: PathBuf,
}

impl Mark {
    fn make(keeper: &Arc<Keeper>) -> Result<Mark> {
        Ok(Mark { folder: keeper.make_folder("probe")?, keeper: Arc::clone(keeper) })
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        // The next run removes what stays.
        let _ = self.keeper.remove_folder(&self.folder);
    }
}

pub struct CommandProbe {
    name: String,
    command: Vec<String>,
    every: Nanoseconds,
    limit: Nanoseconds,
    clock: Arc<dyn Clock>,
    failures: Failures,
    // Environment variables that the command does not get.
    hidden: Vec<String>,
    keeper: Option<Arc<Keeper>>,
    // Made with the first read.
    mark: Option<Mark>,
    running: Arc<ProbeCommand>,
}

impl CommandProbe {
    /// `name` is the study's. Killed after `limit`.
    pub fn new(
        name: &str,
        command: &[String],
        (every, limit): (Nanoseconds, Nanoseconds),
        clock: Arc<dyn Clock>,
    ) -> CommandProbe {
        let (name, command) = (format!("probe.{name}"), command.to_vec());
        let (failures, hidden) = (Failures::default(), Vec::new());
        let (keeper, mark, running) = (None, None, Arc::default());
        CommandProbe { name, command, every, limit, clock, failures, hidden, keeper, mark, running }
    }

    /// The next Dyno ends the command if this one is killed.
    pub fn kept_by(self, keeper: &Arc<Keeper>) -> CommandProbe {
        CommandProbe { keeper: Some(Arc::clone(keeper)), ..self }
    }

    /// The command does not inherit these environment variables.
    pub fn without_variables(self, hidden: &[String]) -> CommandProbe {
        CommandProbe { hidden: hidden.to_vec(), ..self }
    }

    fn run(&mut self) -> Result<String, String> {
        if let (None, Some(keeper)) = (&self.mark, &self.keeper) {
            self.mark = Some(Mark::make(keeper).map_err(|error| error.to_string())?);
        }
        let (program, arguments) = self.command.split_first().ok_or("the command is empty")?;
        dyno_units::refuse_planted(&self.command)
            .map_err(|error| format!("`{program}` cannot be started: {error}"))?;
        let mut command = Command::new(program);
        for name in &self.hidden {
            command.env_remove(name);
        }
        command.envs(self.mark.iter().map(|mark| (FOLDER_MARK, &mark.folder)));
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let started = self.running.start(command.process_group(0));
        let mut child =
            started.map_err(|error| format!("`{program}` cannot be started: {error}"))?;
        let deadline = self.clock.now() + self.limit;
        let result = self.text_of(&mut child, deadline);
        let status = self.running.collect(&mut child).map_err(|error| error.to_string())?;
        match result {
            Ok(_) if !status.success() => Err(format!("`{program}` ended with {status}")),
            Ok(text) => Ok(text),
            Err(reason) => Err(format!("`{program}` {reason}")),
        }
    }

    fn text_of(&self, child: &mut Child, deadline: Nanoseconds) -> Result<String, String> {
        let failed = |error: io::Error| format!("cannot be read: {error}");
        let mut stdout = child.stdout.take().ok_or("has no output")?;
        let mut bytes = Vec::new();
        loop {
            if !self.is_ready_before(&stdout, deadline).map_err(failed)? {
                return Err(format!("took longer than {}", self.limit));
            }
            if read_some(&mut stdout, &mut bytes).map_err(failed)? == 0 {
                break;
            }
            if bytes.len() > BYTES_MAX {
                return Err(format!("printed more than {BYTES_MAX} bytes"));
            }
        }
        let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty());
        let process = process.map_err(|error| failed(error.into()))?;
        if !self.is_ready_before(&process, deadline).map_err(failed)? {
            return Err(format!("took longer than {}", self.limit));
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn is_ready_before(&self, descriptor: &impl AsFd, deadline: Nanoseconds) -> io::Result<bool> {
        let mut waited = [PollFd::new(descriptor, PollFlags::IN)];
        loop {
            let left = deadline.saturating_sub(self.clock.now()).to_duration();
            let left = Timespec::try_from(left).map_err(io::Error::other)?;
            match poll(&mut waited, Some(&left)) {
                Ok(n_ready) => return Ok(n_ready > 0),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn read_some(stdout: &mut ChildStdout, bytes: &mut Vec<u8>) -> io::Result<usize> {
    let mut piece = [0; 4096];
    let n_read = stdout.read(&mut piece)?;
    bytes.extend_from_slice(&piece[..n_read]);
    Ok(n_read)
}

/// A name, blanks (or a colon, or `=`), a number.
fn parse(probe: &str, text: &str) -> Readings {
    let mut found = Readings::new();
    for line in text.lines() {
        let end = |c: char| c.is_whitespace() || c == '=' || c == ':';
        let Some((name, value)) = line.trim().rsplit_once(end) else { continue };
        let name = name.trim_end_matches(end);
        if let Some(value) = value.parse().ok().filter(|value: &f64| value.is_finite())
            && !name.is_empty()
        {
            found.insert(reading_name(probe, name), value);
        }
    }
    found
}

impl Probe for CommandProbe {
    fn registered(&self) -> Cow<'static, [Reading]> {
        USER_READINGS.into()
    }

    fn read(&mut self, _now: Nanoseconds, readings: &mut Readings) {
        let found = self.run().and_then(|text| {
            let found = parse(&self.name, &text);
            let is_empty = found.is_empty();
            if is_empty { Err("no line contains a name and a number".into()) } else { Ok(found) }
        });
        self.failures.add(&self.name, found, readings);
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn every(&self) -> Nanoseconds {
        self.every
    }

    fn command(&self) -> Option<Arc<ProbeCommand>> {
        Some(Arc::clone(&self.running))
    }

    fn take_notes(&mut self) -> Vec<String> {
        self.failures.take_notes()
    }
}

#[cfg(test)]
mod tests {
    use dyno_units::ManualClock;

    use super::*;
    use crate::process_table::ProcessStat;

    fn read(script: &str, limit: Nanoseconds, n_times: usize) -> (Readings, Vec<String>) {
        let command = ["/bin/sh", "-c", script].map(str::to_owned);
        let clock = Arc::new(ManualClock::new());
        let times = (Nanoseconds::SECOND, limit);
        let mut probe = CommandProbe::new("mine", &command, times, clock);
        let mut readings = Readings::new();
        for _ in 0..n_times {
            probe.read(Nanoseconds::ZERO, &mut readings);
        }
        (readings, probe.take_notes())
    }

    const LONG: Nanoseconds = Nanoseconds::from_secs(60);

    #[test]
    fn lines_are_readings() {
        let check = |text: &str, expected: &[(&str, f64)]| {
            let expected: Readings = expected.iter().map(|(n, v)| ((*n).into(), *v)).collect();
            assert_eq!(parse("probe.p", text), expected, "{text}");
        };
        check(
            "queue 12\nwait: 3.5\nload = -1e3\n",
            &[("probe.p.queue", 12.0), ("probe.p.wait", 3.5), ("probe.p.load", -1000.0)],
        );
        check("two words 4\n", &[("probe.p.two_words", 4.0)]);
        check("nothing\n 7\nx NaN\ny inf\n", &[]);
    }

    #[test]
    fn secrets_in_names_are_hidden() {
        let check = |text: &str, expected: &str| {
            let found: Vec<String> = parse("probe.p", text).into_keys().collect();
            assert_eq!(found, [expected], "{text}");
        };
        check("mysql://me:S3cr3t@h/db queue 12\n", "probe.p.mysql_//me_____h/db_queue");
        check("PGPASSWORD=S3cr3t psql: 3\n", "probe.p.PGPASSWORD_____psql");
        check("--token S3cr3t = 1\n", "probe.p.--token____");
        check("IDENTIFIED BY 'S3cr3t' 4\n", "probe.p.IDENTIFIED_BY______");
        // Harmless names stay.
        assert_eq!(parse("probe.p", "tokens_per_s 5")["probe.p.tokens_per_s"], 5.0);
    }

    #[test]
    fn names_are_short() {
        let found = parse("probe.p", &format!("{} 1\n", "x".repeat(100_000)));
        let lengths: Vec<usize> = found.keys().map(String::len).collect();
        assert_eq!(lengths, ["probe.p.".len() + NAME_LENGTH_MAX]);
    }

    #[test]
    fn a_command_is_run_and_read() {
        let (readings, notes) = read("echo a 1; echo b 2", LONG, 2);
        let expected = [("probe.mine.a", 1.0), ("probe.mine.b", 2.0), ("probe.mine.failures", 0.0)];
        assert_eq!(readings, expected.map(|(n, v)| (n.to_owned(), v)).into());
        assert_eq!(notes, Vec::<String>::new());
    }

    #[track_caller]
    fn check_failure(script: &str, limit: Nanoseconds, expected: &str) {
        let (readings, notes) = read(script, limit, 3);
        assert_eq!(readings, Readings::from([("probe.mine.failures".to_owned(), 3.0)]));
        assert!(notes.len() == 1 && notes[0].contains(expected), "{notes:?}");
    }

    #[test]
    fn a_command_that_prints_without_end_is_stopped() {
        let limit = Nanoseconds::from_secs(60);
        check_failure("yes a 1", limit, "printed more than 1048576 bytes");
    }

    #[test]
    fn a_command_does_not_inherit_hidden_variables() {
        // PATH exists everywhere.
        let script = "/usr/bin/env | { n=0; while read -r line; do case $line in PATH=*) n=1;; esac; \
                      done; echo has_path $n; }";
        let command = ["/bin/sh", "-c", script].map(str::to_owned);
        let found = |hidden: &[String]| {
            let times = (Nanoseconds::SECOND, LONG);
            let clock = Arc::new(ManualClock::new());
            let probe = CommandProbe::new("mine", &command, times, clock);
            let mut readings = Readings::new();
            probe.without_variables(hidden).read(Nanoseconds::ZERO, &mut readings);
            readings["probe.mine.has_path"]
        };
        // A shell without PATH uses a default, and does not export it.
        assert_eq!((found(&[]), found(&["PATH".to_owned()])), (1.0, 0.0));
    }

    #[test]
    fn failures_are_counted_and_reported_once() {
        check_failure("echo a 1; exit 3", LONG, "exit status: 3");
        check_failure("echo nothing", LONG, "no line contains");
        check_failure("yes x 1", LONG, "more than");
    }

    #[test]
    fn what_a_command_leaves_in_the_background_ends_with_it() {
        let script = "sleep 1000 </dev/null >/dev/null 2>&1 & echo pid $!";
        let (readings, notes) = read(script, LONG, 1);
        assert_eq!(notes, Vec::<String>::new());
        let pid = readings["probe.mine.pid"] as i32;
        let has_ended = || {
            let stat = ProcessStat::read(std::path::Path::new("/proc"), pid);
            stat.is_none_or(|stat| !stat.is_alive() || stat.name != "sleep")
        };
        // The signal takes a moment to arrive.
        for _ in 0..12_000 {
            if has_ended() {
                return;
            }
            let _ = poll(
                &mut [],
                Timespec::try_from(std::time::Duration::from_millis(5)).ok().as_ref(),
            );
        }
        panic!("process {pid} goes on");
    }

    #[test]
    fn a_command_is_ended_while_it_is_read() {
        let command = ["/bin/sh", "-c", "sleep 1000"].map(str::to_owned);
        let times = (Nanoseconds::SECOND, LONG);
        let mut probe = CommandProbe::new("mine", &command, times, Arc::new(ManualClock::new()));
        let running = probe.command().expect("it has a command");
        let mut readings = Readings::new();
        std::thread::scope(|scope| {
            scope.spawn(|| probe.read(Nanoseconds::ZERO, &mut readings));
            while running.0.lock().unwrap().group.is_none() {
                std::thread::yield_now();
            }
            running.end();
        });
        let notes = probe.take_notes();
        assert!(notes[0].contains("signal: 9"), "{notes:?}");
        // Nor is another one started.
        assert!(probe.run().unwrap_err().contains("the observation has ended"));
    }

    #[test]
    fn a_command_that_hangs_is_killed_with_its_children() {
        check_failure("sleep 1000", Nanoseconds::from_millis(50), "took longer than 50 ms");
        // With its output closed.
        check_failure("exec >&-; sleep 1000", Nanoseconds::from_millis(50), "took longer");
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "[a-é0-9=: .\n-]{0,60}") {
            let _ = parse("p", &text);
        }
    }
}
