//! A program that runs to its end, timed, with its resources and the figures it prints.

use std::sync::Arc;

use dyno_units::Direction::Lower;
use dyno_units::{Clock, Metric, MetricId, Unit, metric};

use super::job::{JobActivity, JobEnd, figures};
use crate::command::{CommandOrder, Stage};
use crate::error::TrialError;
use crate::site::JobSite;

#[rustfmt::skip]
const METRICS: [Metric; 3] = [
    metric("job.time", Unit::Seconds, Lower, "job time", "from the start of the command to its end").main(),
    metric("job.cpu", Unit::Seconds, Lower, "CPU time of the job", "CPU time of the command and of all processes that it started").secondary(),
    metric("job.rss_peak", Unit::Bytes, Lower, "peak memory of the job", "highest resident memory of the command and of all processes that it started, read every 250 ms; shared pages are counted for each process").secondary(),
];

const FIGURE: &str = "job.";

/// Runs a program with its arguments; these are never a secret. It prints figures, the id of each of which is `job`, a
/// dot, and the name that it is printed with: not of the job, so that variants whose jobs do the same in different ways
/// are compared.
pub(crate) fn command(
    stage: Stage,
    (command, printed): (&[String], &[Metric]),
    (site, clock): (Arc<JobSite>, &Arc<dyn Clock>),
) -> JobActivity {
    let names = printed.iter().filter_map(|one| one.id.as_str().strip_prefix(FIGURE));
    let order = CommandOrder {
        name: String::new(),
        stage,
        command: command.to_vec(),
        figures: names.map(str::to_owned).collect(),
    };
    let clock = Arc::clone(clock);
    let mut job = JobActivity::new("command", METRICS.to_vec(), move |name, at| {
        let order = CommandOrder { name: name.to_owned(), ..order.clone() };
        let began = clock.now();
        let end = site.run(&order, clock.as_ref(), at.stop)?;
        let failure = end.failure.map(|why| TrialError::Failed {
            message: format!("{}the command `{name}` {why}", site.in_words()),
            log: end.output.clone(),
        });
        let values = [
            Some(end.took.as_secs_f64()),
            end.cpu_s,
            // One that ends before its memory is read has used some, nobody knows how much.
            Some(end.rss_peak_bytes).filter(|bytes| *bytes > 0).map(|bytes| bytes as f64),
        ];
        let id = |name: &String| MetricId::parse(&format!("{FIGURE}{name}"));
        let printed = end.figures.iter().filter_map(|(name, value)| Some((id(name)?, *value)));
        let all = figures(METRICS, values).into_iter().chain(printed).filter(|_| end.is_done);
        let (took, is_done, figures) = (end.took, end.is_done, all.collect());
        Ok(JobEnd { began, took, ended: end.ended, is_done, output: end.output, figures, failure })
    });
    job.printed = printed.to_vec();
    job
}
