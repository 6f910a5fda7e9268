//! Commands of a job: programs that run to their end beside the server.
//!
//! Like a private server, a command runs as the servers' user, without Dyno's rights, and with nothing of its
//! environment but PATH; its folder has an owner file, so that it always ends with Dyno. On a host, the agent runs
//! it with the same code.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_host::{Keeper, KeptProcess, ProcessSpec};
use dyno_load::AbortFlag;
use dyno_units::{Clock, Nanoseconds, clean_text, redact_secrets};
use serde::{Deserialize, Serialize};

use crate::error::{Context, Result};

const POLL: Nanoseconds = Nanoseconds::from_millis(10);

const MEMORY_EVERY: Nanoseconds = Nanoseconds::from_millis(250);

pub(crate) const STOP_LIMIT: Nanoseconds = Nanoseconds::from_secs(10);

const OUTPUT_LINES: usize = 20;

/// Lines of its output in which figures are looked for, from the end.
const FIGURE_LINES: usize = 1000;

/// A command that prints more than this is ended: its output would fill the disk.
const OUTPUT_BYTES_MAX: u64 = 64 << 20;

const OWN_PROGRAM: &str = "dyno";

const OWN_PROGRAM_VARIABLE: &str = "DYNO_PROGRAM";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stage {
    Setup,
    Work,
}

impl Stage {
    fn log(self) -> &'static str {
        match self {
            Stage::Setup => "setup.log",
            Stage::Work => "output.log",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommandOrder {
    pub(crate) name: String,
    pub(crate) stage: Stage,
    /// A program and its arguments; never a secret.
    pub(crate) command: Vec<String>,
    /// Figures that the command prints: lines with a figure's name, blanks (or a colon, or `=`), and a
    /// number. The last line counts.
    pub(crate) figures: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CommandEnd {
    pub(crate) took: Nanoseconds,
    /// `ended with exit code 0`.
    pub(crate) ended: String,
    pub(crate) is_done: bool,
    /// Why it has failed: neither has it done its work, nor was it stopped because the step had ended.
    pub(crate) failure: Option<String>,
    pub(crate) cpu_s: Option<f64>,
    pub(crate) rss_peak_bytes: u64,
    /// The last lines of its output.
    pub(crate) output: Vec<String>,
    pub(crate) figures: Vec<(String, f64)>,
}

impl CommandEnd {
    /// What an agent reports, as it may be shown and kept: what comes from a host is bounded and cleaned here as well.
    pub(crate) fn into_kept(self, order: &CommandOrder) -> CommandEnd {
        let cleaned = |line: &String| clean_text(&redact_secrets(line));
        let is_wanted = |(name, value): &(String, f64)| {
            value.is_finite() && order.figures.iter().any(|one| one == name)
        };
        CommandEnd {
            ended: cleaned(&self.ended),
            failure: self.failure.as_ref().map(cleaned),
            output: self.output.iter().take(OUTPUT_LINES).map(cleaned).collect(),
            figures: self.figures.into_iter().filter(is_wanted).collect(),
            cpu_s: self.cpu_s.filter(|cpu| cpu.is_finite()),
            ..self
        }
    }
}

/// Where the commands of a job run, and what they leave to each other. Removed on drop.
pub(crate) struct JobFolder {
    keeper: Arc<Keeper>,
    folder: PathBuf,
    scratch: PathBuf,
}

impl JobFolder {
    pub(crate) fn make(keeper: &Arc<Keeper>) -> Result<JobFolder> {
        let folder = keeper.make_folder("job")?;
        let mut made = JobFolder { keeper: Arc::clone(keeper), scratch: folder.clone(), folder };
        made.scratch = keeper.make_inner(&made.folder, "scratch")?;
        Ok(made)
    }

    /// This Dyno for commands; a copy for another user, who may not reach the original.
    fn own_program(&self, program: Option<&Path>) -> Result<PathBuf> {
        let program = program.context("the path of this Dyno program is unknown")?;
        if self.keeper.run_as().is_none() {
            return Ok(program.to_owned());
        }
        let copy = self.folder.join(OWN_PROGRAM);
        if !copy.exists() {
            let text = std::fs::File::open(program);
            let mut text = text.context(format_args!("{} cannot be read", program.display()))?;
            self.keeper.write_program(&self.folder, OWN_PROGRAM, &mut text)?;
        }
        Ok(copy)
    }

    /// In this environment with PATH and a few fixed variables. Fails if it cannot start.
    pub(crate) fn run(
        &self,
        order: &CommandOrder,
        (environment, program): (&[(String, String)], Option<&Path>),
        clock: &dyn Clock,
        stop: &AbortFlag,
    ) -> Result<CommandEnd> {
        let mut environment = environment.to_vec();
        if order.command.iter().any(|word| word.contains(OWN_PROGRAM_VARIABLE)) {
            let own = self.own_program(program)?;
            environment.push((OWN_PROGRAM_VARIABLE.to_owned(), own.display().to_string()));
        }
        environment.push(("DYNO_SCRATCH".to_owned(), self.scratch.display().to_string()));
        let program = self.program_of(order)?;
        // A file that an earlier job has made, as the servers' user, may be among its arguments.
        let found = [program.display().to_string()];
        dyno_units::refuse_planted(&found)
            .context(format_args!("`{}` cannot be started", program.display()))?;
        let spec = ProcessSpec {
            program,
            arguments: order.command.iter().skip(1).cloned().collect(),
            environment,
            log: self.folder.join(order.stage.log()),
            ..ProcessSpec::default()
        };
        let began = clock.now();
        let mut process = self.keeper.spawn(&self.folder, &spec)?;
        let (stopped, rss_peak_bytes) = until_ended(&mut process, &spec.log, (clock, stop));
        let took = clock.now().saturating_sub(began);
        let how = process.ended().unwrap_or_default();
        let is_done = stopped.is_none() && process.has_succeeded();
        let lines = dyno_host::last_lines(&spec.log, FIGURE_LINES);
        let output = lines[lines.len().saturating_sub(OUTPUT_LINES)..].iter();
        let output = output.map(|line| clean_text(&redact_secrets(line))).collect();
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
        let figures = if is_done { figures(&order.figures, &lines) } else { Vec::new() };
        let cpu_s = process.cpu_s();
        Ok(CommandEnd { took, ended, is_done, failure, cpu_s, rss_peak_bytes, output, figures })
    }

    fn program_of(&self, order: &CommandOrder) -> Result<PathBuf> {
        let program = order.command.first().map_or("", String::as_str);
        let path = Path::new(program);
        let found = match path.is_absolute() {
            true => Some(path.to_owned()),
            false => self.keeper.find_program(program, &[]),
        };
        found.context(format_args!(
            "the command `{}`: the program `{program}` is not installed, or not in PATH",
            order.name
        ))
    }
}

impl Drop for JobFolder {
    fn drop(&mut self) {
        // A folder that stays is removed by the next run.
        let _ = self.keeper.remove_folder(&self.folder);
    }
}

/// Waits until a command has ended, or stops it; returns why it was stopped, and its most memory.
fn until_ended(
    process: &mut KeptProcess,
    log: &Path,
    (clock, stop): (&dyn Clock, &AbortFlag),
) -> (Option<Stopped>, u64) {
    let (mut most, mut next) = (0, clock.now());
    while process.ended().is_none() {
        if clock.now() >= next {
            most = most.max(process.rss_bytes());
            next = clock.now() + MEMORY_EVERY;
        }
        let size = std::fs::symlink_metadata(log).map_or(0, |facts| facts.len());
        let stopped = match stop.is_raised() {
            true => Some(Stopped::AtEndOfStep),
            false => (size > OUTPUT_BYTES_MAX).then_some(Stopped::TooMuchOutput),
        };
        // A command that ended at this moment was not stopped. One that ends on the signal has not
        // done its work, even if it reports success.
        if stopped.is_some() && process.ended().is_none() {
            process.stop("TERM", clock, STOP_LIMIT);
            return (stopped, most);
        }
        clock.sleep_until(clock.now() + POLL);
    }
    (None, most)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopped {
    AtEndOfStep,
    TooMuchOutput,
}

fn figures(names: &[String], lines: &[String]) -> Vec<(String, f64)> {
    let is_end = |c: char| c.is_whitespace() || c == '=' || c == ':';
    let value = |name: &str| {
        lines.iter().rev().find_map(|line| {
            let (before, value) = line.trim().rsplit_once(is_end)?;
            let value = value.parse().ok().filter(|value: &f64| value.is_finite())?;
            (before.trim_end_matches(is_end) == name).then_some(value)
        })
    };
    names.iter().filter_map(|name| Some((name.clone(), value(name)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_the_last_lines_of_their_names() {
        let check = |text: &str, expected: &[(&str, f64)]| {
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            let found = figures(&["rows", "lag"].map(str::to_owned), &lines);
            let found: Vec<(&str, f64)> = found.iter().map(|(id, n)| (id.as_str(), *n)).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("", &[]);
        check("rows 7\nrows: 8\n", &[("rows", 8.0)]);
        check("  rows = 8.5  \nlag=1e-3\n", &[("rows", 8.5), ("lag", 1e-3)]);
        check("rows many\nother 3\nrows inf\n", &[]);
        check("all rows 9\n", &[]);
    }

    #[test]
    fn what_a_host_reports_is_bounded_and_without_secrets() {
        let order = CommandOrder {
            name: "copy".to_owned(),
            stage: Stage::Work,
            command: Vec::new(),
            figures: vec!["rows".to_owned()],
        };
        let figure = |name: &str, value: f64| (name.to_owned(), value);
        let end = CommandEnd {
            took: Nanoseconds::SECOND,
            ended: "ended\u{1b}[31m".to_owned(),
            is_done: true,
            failure: None,
            cpu_s: Some(f64::NAN),
            rss_peak_bytes: 7,
            output: vec!["mysql://me:pw@h/d".to_owned(); 30],
            figures: vec![figure("rows", 1.0), figure("time", 2.0), figure("rows", f64::NAN)],
        };
        let kept = end.into_kept(&order);
        assert_eq!((kept.output.len(), kept.output[0].as_str()), (20, "mysql://me:***@h/d"));
        assert_eq!((kept.figures, kept.cpu_s), (vec![figure("rows", 1.0)], None));
        assert_eq!(kept.ended, "ended\u{fffd}[31m");
    }
}
