//! `summary.json` of a trial: all that analysis needs. Its presence marks the trial as ended.
//! Per-second values are columns; full histograms of every second are in the interval logs.

use std::collections::BTreeMap;

use dyno_units::{Metric, MetricId, Reading};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use crate::{EncodedCounts, EncodedHistogram, Environment, MemberFacts, NetworkFacts, ServerFacts};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialSummary {
    pub number: u32,
    pub variant: usize,
    /// Counted from 1.
    pub repetition: u32,
    /// Counted from 1.
    pub block: u32,
    pub outcome: TrialOutcome,
    pub began_unix_ms: u64,
    pub ended_unix_ms: u64,
    /// The primary member's facts; empty if the trial needed no server.
    #[serde(default)]
    pub server: ServerFacts,
    /// Empty if it needed none, and in older records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberFacts>,
    /// On which all of it ran; `None` for the machine that ran the study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<TrialHost>,
    pub data: DataSet,
    /// As far as they were done.
    pub steps: Vec<StepSummary>,
    /// CPU seconds that the probes cost.
    pub probes_cpu_s: f64,
    /// Time over which `probes_cpu_s` was spent.
    pub probes_wall_s: f64,
    /// Demands of the workload on the tables at the end; empty if none, and in older records.
    #[serde(default)]
    pub audit: Vec<AuditRow>,
    /// The time after the last step until the engine's debt was paid, if the study asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_off: Option<RunOff>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<Canary>,
    /// By name, as the probes registered them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub meanings: BTreeMap<String, Reading>,
    /// Of its steps' figures, as the activities declare them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
}

impl TrialSummary {
    /// Every step, and every load probe of a search.
    pub(crate) fn each_load(&mut self, job: &mut dyn FnMut(&mut StepSummary)) {
        for step in &mut self.steps {
            job(step);
            let probes = step.search.iter_mut().flat_map(|search| &mut search.probes);
            probes.filter_map(|probe| probe.load.as_mut()).for_each(&mut *job);
        }
    }

    /// The same ones, to look at.
    pub(crate) fn loads(&self) -> impl Iterator<Item = &StepSummary> {
        self.steps.iter().flat_map(|step| {
            let probes = step.search.iter().flat_map(|search| &search.probes);
            std::iter::once(step).chain(probes.filter_map(|probe| probe.load.as_ref()))
        })
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialHost {
    /// The table of the study.
    pub pool: String,
    pub name: String,
    /// What is there, if the study does not say it: `node c2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    pub environment: Environment,
}

/// Times of a fixed piece of work while nothing else of the trial runs; longer on a slow host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Canary {
    pub before_s: f64,
    pub after_s: f64,
}

/// The time after the last step, without load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunOff {
    pub limit_s: f64,
    /// `None` if the debt was not paid within the limit, or could not be read.
    pub paid_after_s: Option<f64>,
    /// Why the debt could not be read.
    #[serde(default)]
    pub unseen: Option<String>,
    /// Of each reading, in seconds since the load ended.
    pub start_s: Vec<f64>,
    /// By name, one value per entry of `start_s`; `None` where missing.
    #[serde(with = "crate::columns")]
    pub readings: BTreeMap<String, Vec<Option<f64>>>,
}

/// The wait for deferred work before a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    pub limit_s: f64,
    pub took_s: f64,
    /// When the step began.
    pub paid: bool,
    /// What was done (`VACUUM ANALYZE`, `CHECKPOINT`), and what was left.
    pub notes: Vec<String>,
}

/// A demand on the tables after the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditRow {
    pub name: String,
    pub expected: String,
    pub measured: String,
    /// Nothing contradicts it.
    pub pass: bool,
    /// The sample was too small to contradict it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_undecided: bool,
}

impl AuditRow {
    /// The name of the check that every kind of transaction does its work; a trial has it where one does not.
    pub const KINDS_COMMIT: &str = "every kind of transaction commits";

    /// The check, failed, of steps in which a kind never committed, or the server refused more than half of its
    /// attempts; none if there is no such kind. Losses of connections count as faults, not as refusals.
    pub fn of_kinds(steps: &[StepSummary]) -> Option<AuditRow> {
        let mut kinds: BTreeMap<&str, [u64; 3]> = BTreeMap::new();
        for kind in steps.iter().flat_map(|step| &step.kinds) {
            let [done, refused, attempts] = kinds.entry(&kind.name).or_default();
            for (outcome, n) in &kind.outcomes {
                let is_done = matches!(outcome.as_str(), "committed" | "rolled_back");
                *done = done.saturating_add(if is_done { *n } else { 0 });
                let is_refused = matches!(outcome.as_str(), "refused" | "duplicate_key");
                *refused = refused.saturating_add(if is_refused { *n } else { 0 });
                *attempts = attempts.saturating_add(*n);
            }
        }
        let fails = |(_, [done, refused, attempts]): &(&&str, &[u64; 3])| {
            *attempts > 0 && (*done == 0 || *refused > attempts / 2)
        };
        let failed = kinds.iter().filter(fails);
        let failed = failed
            .map(|(name, [done, _, attempts])| format!("{name} {done} of {attempts} attempts"));
        let failed: Vec<String> = failed.collect();
        (!failed.is_empty()).then(|| AuditRow {
            name: AuditRow::KINDS_COMMIT.to_owned(),
            expected: "no kind that never commits, or is refused in more than half of its attempts"
                .to_owned(),
            measured: failed.join(", "),
            pass: false,
            is_undecided: false,
        })
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum TrialOutcome {
    #[default]
    Finished,
    /// With the last lines of the server's log.
    Failed { message: String, server_log: Vec<String> },
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DataSet {
    pub rows: u64,
    /// Indexes included; of a reused data set, the original time.
    pub populate_s: f64,
    /// On disk after populating.
    pub bytes: Option<u64>,
    /// On disk after the last step.
    pub bytes_after: Option<u64>,
    /// Of logs, after populating.
    #[serde(default)]
    pub log_bytes: Option<u64>,
    /// Of logs, after the last step.
    #[serde(default)]
    pub log_bytes_after: Option<u64>,
    /// Populated by an earlier trial and copied.
    #[serde(default)]
    pub reused: bool,
    /// Of the kept data set that was copied, if one was.
    #[serde(default)]
    pub key: Option<String>,
}

/// Without load, what describes a load is zero or empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepSummary {
    /// Index into the manifest's steps.
    pub step: usize,
    /// The measurement phase as it really was.
    pub measured_s: f64,
    pub kinds: Vec<KindSummary>,
    /// Statements that returned rows and changed none.
    pub reads: u64,
    /// Statements that changed rows.
    pub writes: u64,
    pub others: u64,
    pub rows_received: u64,
    pub rows_changed: u64,
    pub warnings: u64,
    /// Arrivals due in the measurement phase.
    pub due: u64,
    /// Arrivals due and never sent.
    pub missed: u64,
    /// Attempts without an answer when the measurement phase ended; `None` in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight_at_end: Option<u64>,
    pub retries: u64,
    pub reconnects: u64,
    /// sent − due, of all attempts.
    pub lag: EncodedHistogram,
    pub generator: GeneratorSummary,
    /// Of the server's processes; `None` if in process or on another host.
    pub server_cpu_s: Option<f64>,
    /// First message by kind of error.
    pub error_examples: BTreeMap<String, String>,
    /// One value per second of warm-up and measurement phase.
    pub intervals: IntervalColumns,
    /// By `probe.name`, one value per entry of `intervals.start_s`; `None` where missing. Left out
    /// of the file if there are `spans`: then only the log has them.
    #[serde(with = "crate::columns")]
    pub readings: BTreeMap<String, Vec<Option<f64>>>,
    /// Start and length of each interval, in nanoseconds on the run's clock, for laying the log's
    /// readings beside them. Only if readings are too many to be kept twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spans: Option<Vec<(u64, u64)>>,
    /// For a search. All else in this summary is then of the latest load probe at the level found
    /// (if none was found, at the lowest level measured).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchSummary>,
    /// `time`; `quota` (all were done); `limit` (they were not, in the longest time); `steady`;
    /// `unsteady`; `activity` (one had ended). `None` in older records: all ended by time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settled>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dips: Vec<VolumeDip>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub activities: Vec<ActivitySummary>,
    /// Generators, if not the machine that runs the study alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostSummary>,
    /// Measured by activities, by metric; all are in [`TrialSummary::metrics`]. Values that are not
    /// finite are left out of the file.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        serialize_with = "serialize_finite"
    )]
    pub figures: BTreeMap<MetricId, f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportedFrom>,
}

/// The other tool's output that a step was read from; its kinds may lack times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedFrom {
    /// With its version if known: `sysbench 1.0.20`.
    pub tool: String,
    /// The file, and the line if it holds several runs.
    pub place: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VolumeDip {
    pub volume: String,
    /// Seconds since the measurement phase began.
    pub start_s: f64,
    pub length_s: f64,
    pub limit: String,
}

/// Done to a server on purpose. Times are in seconds since the measurement phase began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    pub name: String,
    /// What it was: `kill`, `stop` or `restart`.
    pub kind: String,
    pub member: String,
    pub planned_s: f64,
    pub began_s: f64,
    /// When the server had ended; for `stop`, when it was resumed. `None` if that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_s: Option<f64>,
    /// When the server or its replica answered again; `None` for `stop`, or if neither did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotion: Option<Promotion>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promotion {
    pub member: String,
    /// By the audit; `None` if not found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub survived: Option<Survived>,
}

/// Transactions of a trial whose primary was replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survived {
    /// Confirmed to a client, before or after the promotion.
    pub acknowledged: u64,
    /// Without an answer: committed or not.
    pub in_doubt: u64,
    /// In the promoted server at the end.
    pub found: u64,
    /// Confirmed and missing, if the rows of those in doubt were looked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Why they were not, to follow "because".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_range: Option<String>,
}

impl Survived {
    /// Least and most confirmed transactions that can be missing. Equal if rows were looked up or
    /// none is in doubt; else those in doubt may be among the found.
    pub fn lost(&self) -> (u64, u64) {
        if let Some(lost) = self.lost {
            return (lost, lost);
        }
        let least = self.acknowledged.saturating_sub(self.found);
        let most = (self.acknowledged + self.in_doubt).saturating_sub(self.found);
        (least, most.min(self.acknowledged))
    }
}

/// Something beside the load, or instead of it; its figures are the step's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ActivitySummary {
    /// The ids of its figures begin with it.
    pub name: String,
    /// `command`.
    pub kind: String,
    /// Nanoseconds on the run's clock.
    pub began_ns: u64,
    pub took_s: f64,
    pub ended: String,
    /// If not, its figures are left out.
    pub is_done: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output: Vec<String>,
}

/// JSON has no infinity: `null` could not be read back.
fn serialize_finite<S: Serializer>(
    figures: &BTreeMap<MetricId, f64>,
    out: S,
) -> Result<S::Ok, S::Error> {
    let mut map = out.serialize_map(None)?;
    for (metric, value) in figures.iter().filter(|(_, value)| value.is_finite()) {
        map.serialize_entry(metric, value)?;
    }
    map.end()
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchSummary {
    /// The highest level that held twice (offered rate or clients), if any.
    pub found: Option<f64>,
    /// The lowest level above it that broke the limit, if any was tried.
    pub lowest_broken: Option<f64>,
    /// Whether the search ended by itself, not by its limit of probes.
    pub settled: bool,
    /// In the order of time.
    pub probes: Vec<LoadProbe>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadProbe {
    /// Counted from 1.
    pub number: u32,
    /// Offered rate, or clients.
    pub level: f64,
    /// Commits per second.
    pub throughput: f64,
    /// The limited statistic of response times; `None` without commits.
    pub limited_us: Option<f64>,
    pub held: bool,
    pub broken_by: Option<String>,
    /// `None` if the server did not even let all clients connect.
    pub load: Option<StepSummary>,
}

/// In one step, measurement phase only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindSummary {
    pub name: String,
    /// Attempts by word: `committed`, `rolled_back`, `deadlock`, `serialization`, `lock_timeout`,
    /// `duplicate_key`, `disconnected`, `timed_out`, `refused`.
    pub outcomes: BTreeMap<String, u64>,
    /// done − due, of commits.
    pub response: EncodedHistogram,
    /// done − sent, of commits.
    pub service: EncodedHistogram,
    /// Commits in each 100 ms of the step, warm-up included: ten for each whole interval, fewer for
    /// a shorter one (whose last bin may be shorter too).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commits_100ms: Option<EncodedCounts>,
}

/// In the measurement phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorSummary {
    pub workers: u32,
    pub cpu_user_s: f64,
    pub cpu_system_s: f64,
    /// User CPU seconds of the whole process: workers, collector, recording, probes, an embedded
    /// database. `None` in older records.
    #[serde(default)]
    pub process_cpu_user_s: Option<f64>,
    #[serde(default)]
    pub process_cpu_system_s: Option<f64>,
    /// Time that its threads waited for a CPU, if the kernel reports it.
    pub run_queue_s: Option<f64>,
    /// CPU seconds per second of the measurement phase, in [0, 1].
    pub busiest_worker: f64,
    pub rss_bytes: u64,
    /// Statements per second and worker as a share of what `dyno calibrate` found for so many
    /// clients on this machine; `None` if unknown.
    #[serde(default)]
    pub share_of_calibrated: Option<f64>,
    /// If other processes disturbed it, the share is too high.
    #[serde(default)]
    pub calibration_disturbed: bool,
}

/// One of several generators in a step, measurement phase only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostSummary {
    pub name: String,
    /// The server of its share of the load, as a URL without a password, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The machine's own name.
    #[serde(default)]
    pub machine: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
    pub clients: u64,
    pub generator: GeneratorSummary,
    pub kinds: Vec<KindSummary>,
    pub due: u64,
    pub missed: u64,
    /// sent − due.
    pub lag: EncodedHistogram,
    /// By interval.
    pub committed: Vec<u64>,
    /// By interval.
    pub lag_p99_us: Vec<f64>,
    /// `None` if not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockFacts>,
    /// To its server, before the trial's first load; only for servers that agents started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkFacts>,
}

/// Against the clock of the machine that runs the study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockFacts {
    /// Its wall clock minus the other.
    pub wall_offset_ms: f64,
    /// Largest error of `wall_offset_ms`.
    pub wall_bound_ms: f64,
    /// Largest distance of its beginning of the step from the others'.
    pub bound_us: f64,
    /// The shortest before the step.
    pub round_trip_us: f64,
    /// How much faster it runs; `None` if the step was too short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_ppm: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_bound_ppm: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub during: Vec<ClockReading>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<ClockReading>,
}

/// A host's clock against the reading before the step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockReading {
    /// Since the reading before the step.
    pub at_s: f64,
    /// How much further it had gone than the other clock.
    pub offset_us: f64,
    pub bound_us: f64,
}

/// One value per second, all columns of the same length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IntervalColumns {
    /// Start of each interval since the measurement phase began; negative in warm-up.
    pub start_s: Vec<f64>,
    /// Commits per second.
    pub throughput: Vec<f64>,
    /// Attempts that did not commit, per second.
    pub errors: Vec<f64>,
    /// Arrivals per second.
    pub missed: Vec<f64>,
    /// Median response time; 0 without commits.
    pub p50_us: Vec<f64>,
    pub p95_us: Vec<f64>,
    pub p99_us: Vec<f64>,
    pub max_us: Vec<f64>,
    pub lag_p99_us: Vec<f64>,
}

impl IntervalColumns {
    /// All but the starts.
    pub(crate) fn values(&self) -> [&Vec<f64>; 8] {
        let IntervalColumns { throughput, errors, missed, p50_us, p95_us, p99_us, max_us, .. } =
            self;
        [throughput, errors, missed, p50_us, p95_us, p99_us, max_us, &self.lag_p99_us]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_that_do_not_do_their_work_fail_the_audit() {
        let step = |outcomes: &[(&str, u64)]| StepSummary {
            kinds: vec![KindSummary {
                name: "order".to_owned(),
                outcomes: outcomes.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect(),
                response: EncodedHistogram::default(),
                service: EncodedHistogram::default(),
                commits_100ms: None,
            }],
            ..StepSummary::default()
        };
        let check = |steps: &[&[(&str, u64)]], expected: Option<&str>| {
            let steps: Vec<StepSummary> = steps.iter().map(|outcomes| step(outcomes)).collect();
            let found = AuditRow::of_kinds(&steps).map(|row| row.measured);
            assert_eq!(found.as_deref(), expected);
        };
        check(&[&[("committed", 10), ("refused", 10)]], None);
        check(&[&[("committed", 10), ("refused", 11)]], Some("order 10 of 21 attempts"));
        check(&[&[("refused", 11)]], Some("order 0 of 11 attempts"));
        check(&[&[("duplicate_key", 9)], &[("committed", 9)]], None);
        // A server that was away loses connections, and that is what was asked.
        check(&[&[("committed", 1), ("disconnected", 500)]], None);
        check(&[&[("rolled_back", 5)]], None);
        check(&[&[]], None);
    }
}
