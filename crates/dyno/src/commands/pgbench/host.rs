//! What scripts need of this program: messages, shell commands, and the log of transactions.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use dyno_load::AbortFlag;
use dyno_pgbench::Prng;
use dyno_units::locked;
use dyno_workload::pgbench::{Failure, Host, LogEntry, LogOutcome, ScriptTotals};

use super::options::Options;
use crate::commands::report;
use crate::terminal;

pub(super) struct Terminal {
    logs: Option<Logs>,
    /// Raised by the first client that is aborted, if that ends the run.
    stop: Option<AbortFlag>,
    /// The thread of that client.
    pub(super) stopped_by: Mutex<Option<usize>>,
    n_threads: usize,
}

struct Logs {
    files: Vec<Mutex<LogFile>>,
    /// Microseconds from the lab's clock to Unix time.
    shift_us: u64,
    options: Options,
}

struct LogFile {
    file: BufWriter<File>,
    sampling: Prng,
    /// The interval that is added up: its beginning, in microseconds of Unix time.
    began_us: Option<u64>,
    totals: ScriptTotals,
    failure: Option<std::io::Error>,
}

impl Terminal {
    /// Opens the log files, if there are any; `pid` is part of their names.
    pub(super) fn new(
        options: &Options,
        stop: Option<AbortFlag>,
        (pid, shift_us): (u32, u64),
    ) -> Result<Terminal, String> {
        let n_threads = options.threads.max(1) as usize;
        let logs = options.log.then(|| Logs::open(options, (pid, n_threads), shift_us));
        Ok(Terminal { logs: logs.transpose()?, stop, stopped_by: Mutex::new(None), n_threads })
    }

    /// Writes what the logs still hold, at this time of the lab's clock.
    pub(super) fn finish(&self, at_ns: u64) -> Result<(), String> {
        let Some(logs) = &self.logs else { return Ok(()) };
        for file in &logs.files {
            let mut file = locked(file);
            file.end_intervals(logs.shift_us + at_ns / 1000, &logs.options);
            let flushed = file.file.flush();
            if let Some(error) = file.failure.take().or(flushed.err()) {
                return Err(format!("could not write the log file: {error}"));
            }
        }
        Ok(())
    }
}

impl Logs {
    fn open(
        options: &Options,
        (pid, n_threads): (u32, usize),
        shift_us: u64,
    ) -> Result<Logs, String> {
        let prefix = options.log_prefix.as_deref().unwrap_or("pgbench_log");
        let mut files = Vec::new();
        for thread in 0..n_threads {
            let nth = if thread == 0 { String::new() } else { format!(".{thread}") };
            let name = format!("{prefix}.{pid}{nth}");
            let file = report::create(Path::new(&name), true)
                .map_err(|error| format!("could not open logfile \"{name}\": {error}"))?;
            files.push(Mutex::new(LogFile {
                file: BufWriter::new(file),
                sampling: Prng::new(u64::from(pid) << 16 | thread as u64),
                began_us: None,
                totals: ScriptTotals::default(),
                failure: None,
            }));
        }
        Ok(Logs { files, shift_us, options: options.clone() })
    }
}

impl LogFile {
    fn write(&mut self, text: &str) {
        if let Err(error) = writeln!(self.file, "{text}") {
            self.failure.get_or_insert(error);
        }
    }

    fn take(&mut self, entry: &LogEntry, now_us: u64, options: &Options) {
        if options.sampling > 0.0 && self.sampling.unit() > options.sampling {
            return;
        }
        if options.aggregate > 0 {
            self.began_us.get_or_insert(now_us / 1_000_000 * 1_000_000);
            self.end_intervals(now_us, options);
            self.add(entry, options);
            return;
        }
        let outcome = match entry.outcome {
            LogOutcome::Done(us) => us.to_string(),
            LogOutcome::Skipped => "skipped".to_owned(),
            LogOutcome::Failed(failure) => {
                String::from(match (options.failures_detailed, failure) {
                    (false, _) => "failed",
                    (true, Failure::Serialization) => "serialization",
                    (true, Failure::Deadlock) => "deadlock",
                    (true, Failure::Other) => "other",
                })
            }
        };
        let LogEntry { client, number, script, lag_us, retries, .. } = entry;
        let (seconds, rest) = (now_us / 1_000_000, now_us % 1_000_000);
        let mut text = format!("{client} {number} {outcome} {script} {seconds} {rest}");
        if options.settings.rate.is_some() {
            text += &format!(" {lag_us}");
        }
        if options.settings.max_tries != 1 {
            text += &format!(" {retries}");
        }
        self.write(&text);
    }

    fn add(&mut self, entry: &LogEntry, options: &Options) {
        let totals = &mut self.totals;
        match entry.outcome {
            LogOutcome::Done(us) => {
                totals.committed += 1;
                totals.latency.push(us);
                if options.settings.rate.is_some() {
                    totals.lag.push(entry.lag_us);
                }
            }
            LogOutcome::Skipped => totals.skipped += 1,
            LogOutcome::Failed(Failure::Serialization) => totals.serialization += 1,
            LogOutcome::Failed(Failure::Deadlock) => totals.deadlock += 1,
            LogOutcome::Failed(Failure::Other) => totals.other += 1,
        }
        totals.retries += u64::from(entry.retries);
        totals.retried += u64::from(entry.retries > 0);
    }

    fn end_intervals(&mut self, now_us: u64, options: &Options) {
        let length = options.aggregate.unsigned_abs() * 1_000_000;
        while let Some(began) = self.began_us
            && length > 0
            && began + length <= now_us
        {
            let totals = std::mem::take(&mut self.totals);
            self.write(&interval_line(began / 1_000_000, &totals, options));
            self.began_us = Some(began + length);
        }
    }
}

/// A line of an aggregated log: since version 15, all columns are always there.
fn interval_line(second: u64, totals: &ScriptTotals, options: &Options) -> String {
    let moments = |of: &dyno_workload::pgbench::Moments| {
        format!("{} {:.0} {} {}", of.sum, of.sum_of_squares, of.min, of.max)
    };
    let only = |is_there: bool, n: u64| if is_there { n } else { 0 };
    format!(
        "{second} {} {} {} {} {} {} {} {}",
        totals.committed,
        moments(&totals.latency),
        moments(&totals.lag),
        only(options.settings.latency_limit_us > 0, totals.skipped),
        only(options.settings.max_tries != 1, totals.retried),
        only(options.settings.max_tries != 1, totals.retries),
        only(options.failures_detailed, totals.serialization),
        only(options.failures_detailed, totals.deadlock),
    )
}

impl Host for Terminal {
    fn say(&self, message: &str) {
        terminal::say(message);
    }

    fn shell(&self, command: &str, wants_line: bool) -> Result<String, String> {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(command).stdin(Stdio::null());
        let failed = || "could not launch shell command".to_owned();
        if !wants_line {
            let status = shell.status().map_err(|_| failed())?;
            return if status.success() { Ok(String::new()) } else { Err(failed()) };
        }
        let output = shell.stderr(Stdio::inherit()).output().map_err(|_| failed())?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.split_inclusive('\n').next().map(str::to_owned);
        line.ok_or_else(|| "could not read result of shell command".to_owned())
    }

    fn ended(&self, entry: &LogEntry) {
        let Some(logs) = &self.logs else { return };
        let file = &logs.files[entry.client % logs.files.len()];
        let mut file = locked(file);
        file.take(entry, logs.shift_us + entry.at.0 / 1000, &logs.options);
    }

    fn logs(&self) -> bool {
        self.logs.is_some()
    }

    fn aborted(&self, client: usize) {
        if let Some(stop) = &self.stop {
            let mut by = locked(&self.stopped_by);
            by.get_or_insert(client % self.n_threads);
            stop.raise();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_log_is_not_written_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("precious"), "rows").unwrap();
        std::os::unix::fs::symlink(path("precious"), path("log.7")).unwrap();
        let name = path("log.7").to_str().unwrap().to_owned();
        for text in ["first", "second"] {
            write!(report::create(Path::new(&name), true).unwrap(), "{text}").unwrap();
            assert_eq!(fs::read_to_string(&name).unwrap(), text);
        }
        assert_eq!(fs::read_to_string(path("precious")).unwrap(), "rows");
    }
}
