//! A command: a program that runs to its end, timed, with what it took and what it said of itself.
//!
//! It runs as private servers do: as their user, with none of Dyno's rights and environment but PATH, in
//! the job's folder with an owner file, so that it ends with Dyno in every case.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_host::{Keeper, KeptProcess, ProcessSpec};
use dyno_record::ActivitySummary;
use dyno_units::{
    Clock, Direction, Metric, MetricId, MetricRole, Nanoseconds, Unit, clean_text, redact_secrets,
};

use super::{Activity, POLL, StepEnd, Surroundings, job_figure};
use crate::trial::TrialError;

/// How often its memory is read.
const MEMORY_EVERY: Nanoseconds = Nanoseconds::from_millis(250);

/// How long it may take to end when it is asked to.
const STOP_LIMIT: Nanoseconds = Nanoseconds::from_secs(10);

/// Lines of its output that the record keeps.
const OUTPUT_LINES: usize = 20;

/// Lines of its output in which figures are looked for, from the end.
const FIGURE_LINES: usize = 1000;

/// A command that prints more than this is ended: its output would fill the disk.
const OUTPUT_BYTES_MAX: u64 = 64 << 20;

/// The name of Dyno's own program in the folder of a job.
const OWN_PROGRAM: &str = "dyno";

/// A command that goes on in steps.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CommandJob {
    /// Its name, unique in a step: ASCII letters, digits and `. _ -`.
    pub(crate) name: String,
    /// Name of the file that takes its output.
    pub(crate) log: &'static str,
    /// A program and its arguments; never a secret.
    pub(crate) command: Vec<String>,
    /// Environment variables to set; it gets no others but PATH and a few that are always the same.
    pub(crate) environment: Vec<(String, String)>,
    /// The figures that it prints: a line with the name of one, blanks (or a colon, or `=`) and a
    /// number; the last line of a name counts. The id of each is `job`, a dot, and the name.
    pub(crate) figures: Vec<Metric>,
    /// Whether nothing else goes on in the step, so that what the server does is the job's.
    pub(crate) is_alone: bool,
}

/// A command of one step.
pub(crate) struct Command {
    job: CommandJob,
    folder: Arc<JobFolder>,
    clock: Arc<dyn Clock>,
    outcome: Option<Outcome>,
}

/// The folder of a job: where its commands run, and what they leave to each other. It is removed when
/// nobody needs it any more.
pub(crate) struct JobFolder {
    keeper: Arc<Keeper>,
    folder: PathBuf,
    /// Where commands may write.
    pub(crate) scratch: PathBuf,
}

impl JobFolder {
    pub(crate) fn make(keeper: &Arc<Keeper>) -> Result<JobFolder, TrialError> {
        let folder = keeper.make_folder("job")?;
        let mut made = JobFolder { keeper: Arc::clone(keeper), scratch: folder.clone(), folder };
        made.scratch = keeper.make_inner(&made.folder, "scratch")?;
        Ok(made)
    }

    /// This Dyno as a program that the commands can run. If they run as another user, it is a copy: that
    /// user may not be able to reach the program where it is.
    pub(crate) fn own_program(&self, program: Option<&Path>) -> Result<PathBuf, TrialError> {
        let program =
            program.ok_or_else(|| TrialError::new("the path of this Dyno program is unknown"))?;
        if self.keeper.run_as().is_none() {
            return Ok(program.to_owned());
        }
        let copy = self.folder.join(OWN_PROGRAM);
        if !copy.exists() {
            let mut text = std::fs::File::open(program).map_err(|e| {
                TrialError::new(format!("{} cannot be read: {e}", program.display()))
            })?;
            self.keeper.write_program(&self.folder, OWN_PROGRAM, &mut text)?;
        }
        Ok(copy)
    }
}

impl Drop for JobFolder {
    fn drop(&mut self) {
        // A folder that stays is removed by the next run.
        let _ = self.keeper.remove_folder(&self.folder);
    }
}

/// What has come of a command.
struct Outcome {
    began: Nanoseconds,
    took: Nanoseconds,
    /// `ended with exit code 0`.
    ended: String,
    is_done: bool,
    cpu_s: Option<f64>,
    rss_peak_bytes: u64,
    output: Vec<String>,
    figures: Vec<(MetricId, f64)>,
}

impl Command {
    /// A command that has not begun.
    pub(crate) fn new(job: CommandJob, folder: Arc<JobFolder>, clock: &Arc<dyn Clock>) -> Command {
        Command { job, folder, clock: Arc::clone(clock), outcome: None }
    }

    fn own_metrics(&self) -> Vec<Metric> {
        let metric = |part: &str, unit, title: &'static str, text: &'static str, role| {
            Some(Metric {
                id: job_figure(part)?,
                unit,
                better: Direction::Lower,
                role,
                at_most: None,
                title: title.into(),
                text: text.into(),
            })
        };
        let time = "from the start of the command to its end";
        let cpu = "CPU time of the command and of all processes that it started";
        let rss = "highest resident memory of the command and of all processes that it started, \
                   read every 250 ms; shared pages are counted for each process";
        let (seconds, bytes) = (Unit::Seconds, Unit::Bytes);
        let all = [
            metric("time", seconds.clone(), "job time", time, MetricRole::Main),
            metric("cpu", seconds, "CPU time of the job", cpu, MetricRole::Secondary),
            metric("rss_peak", bytes, "peak memory of the job", rss, MetricRole::Secondary),
        ];
        all.into_iter().flatten().collect()
    }

    fn program(&self) -> Result<PathBuf, TrialError> {
        let program = self.job.command.first().map_or("", String::as_str);
        let path = Path::new(program);
        let found = match path.is_absolute() {
            true => Some(path.to_owned()),
            false => self.folder.keeper.find_program(program, &[]),
        };
        found.ok_or_else(|| {
            TrialError::new(format!(
                "the command `{}`: the program `{program}` is not installed, or not in PATH",
                self.job.name
            ))
        })
    }

    /// Runs it; its output is in the job's folder.
    fn run_there(&mut self, at: &Surroundings<'_, '_, '_>) -> Result<(), TrialError> {
        let folder = Arc::clone(&self.folder);
        let spec = ProcessSpec {
            program: self.program()?,
            arguments: self.job.command.iter().skip(1).cloned().collect(),
            environment: self.job.environment.clone(),
            log: folder.folder.join(format!("{}.log", self.job.log)),
            ..ProcessSpec::default()
        };
        let began = self.clock.now();
        let mut process = folder.keeper.spawn(&folder.folder, &spec)?;
        let (stopped, rss_peak_bytes) = self.until_ended(&mut process, &spec.log, at);
        let took = self.clock.now().saturating_sub(began);
        let how = process.ended().unwrap_or_default();
        let is_done = stopped.is_none() && process.has_succeeded();
        let lines = dyno_host::last_lines(&spec.log, FIGURE_LINES);
        let output: Vec<String> = lines[lines.len().saturating_sub(OUTPUT_LINES)..]
            .iter()
            .map(|line| clean_text(&redact_secrets(line)))
            .collect();
        let failure = match &stopped {
            None if is_done => None,
            None => Some(how.clone()),
            Some(Stopped::TooMuchOutput) => {
                Some(format!("was stopped: it printed more than {OUTPUT_BYTES_MAX} bytes"))
            }
            // The end of the step is no failure.
            Some(Stopped::AtEndOfStep) => None,
        };
        let ended = match stopped {
            Some(Stopped::AtEndOfStep) => "was stopped at the end of the measured time".to_owned(),
            _ => failure.clone().unwrap_or(how),
        };
        self.outcome = Some(Outcome {
            began,
            took,
            ended,
            is_done,
            cpu_s: process.cpu_s(),
            rss_peak_bytes,
            output: output.clone(),
            figures: if is_done { figures(&self.job, &lines) } else { Vec::new() },
        });
        match failure {
            None => Ok(()),
            Some(why) => Err(TrialError::Failed {
                message: format!("the command `{}` {why}", self.job.name),
                log: output,
            }),
        }
    }

    /// Waits until it has ended, or stops it; returns why it was stopped, and its most memory.
    fn until_ended(
        &self,
        process: &mut KeptProcess,
        log: &Path,
        at: &Surroundings<'_, '_, '_>,
    ) -> (Option<Stopped>, u64) {
        let (mut most, mut next) = (0, self.clock.now());
        while process.ended().is_none() {
            if self.clock.now() >= next {
                most = most.max(process.rss_bytes());
                next = self.clock.now() + MEMORY_EVERY;
            }
            let size = std::fs::symlink_metadata(log).map_or(0, |facts| facts.len());
            let stopped = match at.stop.is_raised() {
                true => Some(Stopped::AtEndOfStep),
                false => (size > OUTPUT_BYTES_MAX).then_some(Stopped::TooMuchOutput),
            };
            // One that ended by itself at that very moment was not stopped. One that ends on the signal
            // has not done its work, even if it says that it succeeded.
            if stopped.is_some() && process.ended().is_none() {
                process.stop("TERM", self.clock.as_ref(), STOP_LIMIT);
                return (stopped, most);
            }
            self.clock.sleep_until(self.clock.now() + POLL);
        }
        (None, most)
    }
}

/// Why a command was stopped before its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopped {
    AtEndOfStep,
    TooMuchOutput,
}

impl Activity for Command {
    fn name(&self) -> &str {
        &self.job.name
    }

    fn metrics(&self) -> Vec<Metric> {
        let of_server = super::server_metrics(self.job.is_alone);
        let own = self.own_metrics().into_iter().chain(of_server);
        own.chain(self.job.figures.iter().cloned()).collect()
    }

    fn run(&mut self, at: &mut Surroundings<'_, '_, '_>) -> Result<(), TrialError> {
        self.run_there(at)
    }

    fn add_to(&mut self, end: &mut StepEnd) {
        let Some(outcome) = self.outcome.take() else { return };
        if outcome.is_done {
            let values = [
                Some(outcome.took.as_secs_f64()),
                outcome.cpu_s,
                Some(outcome.rss_peak_bytes as f64),
            ];
            let own = self.own_metrics().into_iter().map(|metric| metric.id).zip(values);
            let own = own.filter_map(|(id, value)| Some((id, value?)));
            end.summary.figures.extend(own.chain(outcome.figures));
        }
        end.summary.activities.push(ActivitySummary {
            name: self.job.name.clone(),
            kind: "command".to_owned(),
            began_ns: outcome.began.0,
            took_s: outcome.took.as_secs_f64(),
            ended: outcome.ended,
            is_done: outcome.is_done,
            output: outcome.output,
        });
    }

    fn add_readings_to(&self, end: &mut StepEnd) {
        let is_done =
            end.summary.activities.iter().any(|one| one.name == self.job.name && one.is_done);
        if is_done && self.job.is_alone {
            super::add_server_figures(end);
        }
    }
}

/// The figures in what a command printed.
fn figures(job: &CommandJob, lines: &[String]) -> Vec<(MetricId, f64)> {
    let is_end = |c: char| c.is_whitespace() || c == '=' || c == ':';
    let value = |name: &str| {
        lines.iter().rev().find_map(|line| {
            let (before, value) = line.trim().rsplit_once(is_end)?;
            let value = value.parse().ok().filter(|value: &f64| value.is_finite())?;
            (before.trim_end_matches(is_end) == name).then_some(value)
        })
    };
    let found = job.figures.iter().filter_map(|metric| {
        let name = metric.id.as_str().strip_prefix("job.")?;
        Some((metric.id, value(name)?))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_the_last_lines_of_their_names() {
        let wanted = ["job.rows", "job.lag", "other.rows"].map(|id| {
            dyno_units::metric(id, Unit::Seconds, Direction::Lower, "a figure", "a figure")
        });
        let job = CommandJob {
            name: "build".to_owned(),
            log: "output",
            command: Vec::new(),
            environment: Vec::new(),
            figures: wanted.to_vec(),
            is_alone: true,
        };
        let check = |text: &str, expected: &[(&str, f64)]| {
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            let found = figures(&job, &lines);
            let found: Vec<(&str, f64)> = found.iter().map(|(id, n)| (id.as_str(), *n)).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("", &[]);
        check("rows 7\nrows: 8\n", &[("job.rows", 8.0)]);
        check("  rows = 8.5  \nlag=1e-3\n", &[("job.rows", 8.5), ("job.lag", 1e-3)]);
        check("rows many\nother 3\nrows inf\n", &[]);
        check("all rows 9\n", &[]);
    }
}
