//! A program that runs to its end, timed, with its resources and the figures it prints.

use std::sync::Arc;

use dyno_record::ActivitySummary;
use dyno_units::Direction::Lower;
use dyno_units::{Clock, Metric, Nanoseconds, Unit, metric};

use super::{Activity, StepEnd, Surroundings, add_figures, job_figure};
use crate::command::{CommandEnd, CommandOrder, JobSite, Stage};
use crate::trial::TrialError;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CommandJob {
    /// Its name, unique in a step: ASCII letters, digits and `. _ -`.
    pub(crate) name: String,
    pub(crate) stage: Stage,
    /// A program and its arguments; never a secret.
    pub(crate) command: Vec<String>,
    /// The figures that it prints. The id of each is `job`, a dot, and the name that it is printed with.
    pub(crate) figures: Vec<Metric>,
    /// Whether nothing else goes on in the step, so that what the server does is the job's.
    pub(crate) is_alone: bool,
}

#[rustfmt::skip]
const METRICS: [Metric; 3] = [
    metric("job.time", Unit::Seconds, Lower, "job time", "from the start of the command to its end").main(),
    metric("job.cpu", Unit::Seconds, Lower, "CPU time of the job", "CPU time of the command and of all processes that it started").secondary(),
    metric("job.rss_peak", Unit::Bytes, Lower, "peak memory of the job", "highest resident memory of the command and of all processes that it started, read every 250 ms; shared pages are counted for each process").secondary(),
];

/// What the ids of its figures begin with.
const FIGURE: &str = "job.";

pub(crate) struct Command {
    job: CommandJob,
    site: Arc<JobSite>,
    clock: Arc<dyn Clock>,
    /// When it began, and what has come of it.
    outcome: Option<(Nanoseconds, CommandEnd)>,
}

impl Command {
    pub(crate) fn new(job: CommandJob, site: Arc<JobSite>, clock: &Arc<dyn Clock>) -> Command {
        Command { job, site, clock: Arc::clone(clock), outcome: None }
    }

    fn order(&self) -> CommandOrder {
        let names = self.job.figures.iter().filter_map(|one| one.id.as_str().strip_prefix(FIGURE));
        CommandOrder {
            name: self.job.name.clone(),
            stage: self.job.stage,
            command: self.job.command.clone(),
            figures: names.map(str::to_owned).collect(),
        }
    }
}

impl Activity for Command {
    fn name(&self) -> &str {
        &self.job.name
    }

    fn metrics(&self) -> Vec<Metric> {
        let of_server = super::server_metrics(self.job.is_alone);
        let own = METRICS.into_iter().chain(of_server);
        own.chain(self.job.figures.iter().cloned()).collect()
    }

    fn run(&mut self, at: &mut Surroundings<'_, '_, '_>) -> Result<(), TrialError> {
        let began = self.clock.now();
        let end = self.site.run(&self.order(), self.clock.as_ref(), at.stop)?;
        let (failure, log) = (end.failure.clone(), end.output.clone());
        self.outcome = Some((began, end));
        let Some(why) = failure else { return Ok(()) };
        let message = format!("{}the command `{}` {why}", self.site.in_words(), self.job.name);
        Err(TrialError::Failed { message, log })
    }

    fn add_to(&mut self, end: &mut StepEnd) {
        let Some((began, outcome)) = self.outcome.take() else { return };
        if outcome.is_done {
            let values = [
                Some(outcome.took.as_secs_f64()),
                outcome.cpu_s,
                // One that ends before its memory is read has used some, nobody knows how much.
                Some(outcome.rss_peak_bytes).filter(|bytes| *bytes > 0).map(|bytes| bytes as f64),
            ];
            add_figures(end, METRICS, values);
            let printed = outcome.figures.iter();
            let printed = printed.filter_map(|(name, value)| Some((job_figure(name)?, *value)));
            end.summary.figures.extend(printed);
        }
        end.summary.activities.push(ActivitySummary {
            name: self.job.name.clone(),
            kind: "command".to_owned(),
            began_ns: began.0,
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
