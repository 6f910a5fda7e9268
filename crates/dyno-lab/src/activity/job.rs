//! Jobs of a study as activities. Each kind says what its work is, and what it measures.

use dyno_host::Probe;
use dyno_record::ActivitySummary;
use dyno_units::Direction::Lower;
use dyno_units::reading::known;
use dyno_units::{Metric, MetricId, Nanoseconds, Unit, metric};

use super::{Activity, StepEnd, Surroundings};
use crate::error::{Result, TrialError};

/// What the server took for a job that ran alone.
#[rustfmt::skip]
const OF_SERVER: [Metric; 2] = [
    metric("job.server_cpu", Unit::Seconds, Lower, "server CPU used by the job", "CPU time of the server's processes while the job ran alone").secondary(),
    metric("job.server_rss_peak", Unit::Bytes, Lower, "server memory during the job", "highest resident memory of the server's processes in any second of the job, which ran alone").secondary(),
];

pub(super) type Figures = Vec<(MetricId, f64)>;

pub(super) fn figures<const N: usize>(metrics: [Metric; N], values: [Option<f64>; N]) -> Figures {
    let all = metrics.into_iter().zip(values);
    all.filter_map(|(metric, value)| Some((metric.id, value?))).collect()
}

pub(super) struct JobEnd {
    pub(super) began: Nanoseconds,
    pub(super) took: Nanoseconds,
    pub(super) ended: String,
    pub(super) is_done: bool,
    pub(super) output: Vec<String>,
    pub(super) figures: Figures,
    /// Why the step fails: the job was not stopped, but failed by itself.
    pub(super) failure: Option<TrialError>,
}

/// Does the job with this name, to its end or until it is to stop.
type Work = dyn FnMut(&str, &Surroundings<'_, '_, '_>) -> Result<JobEnd> + Send + 'static;

pub(crate) struct JobActivity {
    /// Unique in a step: ASCII letters, digits and `. _ -`.
    name: String,
    kind: &'static str,
    metrics: Vec<Metric>,
    pub(super) printed: Vec<Metric>,
    work: Box<Work>,
    pub(super) probe: Option<Box<dyn Probe>>,
    /// Whether nothing else goes on in the step, so that what the server does is the job's.
    is_alone: bool,
    is_done: bool,
    end: Option<JobEnd>,
}

impl JobActivity {
    pub(super) fn new(
        kind: &'static str,
        metrics: Vec<Metric>,
        work: impl FnMut(&str, &Surroundings<'_, '_, '_>) -> Result<JobEnd> + Send + 'static,
    ) -> JobActivity {
        JobActivity {
            name: String::new(),
            kind,
            metrics,
            printed: Vec::new(),
            work: Box::new(work),
            probe: None,
            is_alone: false,
            is_done: false,
            end: None,
        }
    }

    pub(crate) fn named(self, name: String, is_alone: bool) -> JobActivity {
        JobActivity { name, is_alone, ..self }
    }
}

impl Activity for JobActivity {
    fn name(&self) -> &str {
        &self.name
    }

    fn metrics(&self) -> Vec<Metric> {
        let of_server = OF_SERVER.into_iter().filter(|_| self.is_alone);
        self.metrics.iter().cloned().chain(of_server).chain(self.printed.iter().cloned()).collect()
    }

    fn run(&mut self, at: &mut Surroundings<'_, '_, '_>) -> Result {
        let end = self.end.insert((self.work)(&self.name, at)?);
        end.failure.take().map_or(Ok(()), Err)
    }

    fn add_to(&mut self, end: &mut StepEnd) {
        let Some(JobEnd { began, took, ended, is_done, output, figures, .. }) = self.end.take()
        else {
            return;
        };
        self.is_done = is_done;
        end.summary.figures.extend(figures);
        end.summary.activities.push(ActivitySummary {
            name: self.name.clone(),
            kind: self.kind.to_owned(),
            began_ns: began.0,
            took_s: took.as_secs_f64(),
            ended,
            is_done,
            output,
        });
    }

    fn add_readings_to(&self, end: &mut StepEnd) {
        if !(self.is_done && self.is_alone) {
            return;
        }
        let summary = &mut end.summary;
        let column = |id: &str| summary.readings.get(id).map_or(&[][..], Vec::as_slice);
        let lengths = summary.spans.iter().flatten().map(|(_, length)| *length as f64 / 1e9);
        // A second without a value leaves no sum.
        let cpu: Option<f64> = (!column(known::SERVER_CPU).is_empty())
            .then(|| {
                let seconds = column(known::SERVER_CPU).iter().zip(lengths);
                seconds.map(|(rate, length)| rate.map(|rate| rate * length)).sum::<Option<f64>>()
            })
            .flatten();
        let memory = column(known::SERVER_RSS).iter().flatten().copied().reduce(f64::max);
        summary.figures.extend(figures(OF_SERVER, [cpu, memory]));
    }

    fn probe(&mut self) -> Option<Box<dyn Probe>> {
        self.probe.take()
    }
}
