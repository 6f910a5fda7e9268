//! `summary.json` of a trial: all that analysis needs, written once, when the trial has ended.
//!
//! Its presence is what marks a trial as ended. Per-second values are stored as columns; the full
//! histograms of every second are in the interval logs beside it.

use std::collections::BTreeMap;

use dyno_units::{Metric, MetricId, Reading};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use crate::{EncodedCounts, EncodedHistogram, Environment, MemberFacts, NetworkFacts, ServerFacts};

/// One ended trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// The server it ran on: the primary member's facts. Empty where the trial needed no server.
    #[serde(default)]
    pub server: ServerFacts,
    /// The members that it ran on. Empty where it needed none, and in records of before this was kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberFacts>,
    /// The host on which all of it ran; none if it was the machine that ran the study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<TrialHost>,
    pub data: DataSet,
    /// Its steps, as far as they were done.
    pub steps: Vec<StepSummary>,
    /// What the probes cost, in CPU seconds, and over how many seconds.
    pub probes_cpu_s: f64,
    /// Seconds over which `probes_cpu_s` was spent.
    pub probes_wall_s: f64,
    /// What the workload demands of the tables after the last step, and whether it is met; empty
    /// where the workload demands nothing, and in records of before this was kept.
    #[serde(default)]
    pub audit: Vec<AuditRow>,
    /// The time after the last step until the engine's debt was paid, if the study asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_off: Option<RunOff>,
    /// What a small fixed piece of work took on this host before and after the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<Canary>,
    /// What the readings of the trial are, by name, as their probes registered them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub meanings: BTreeMap<String, Reading>,
    /// What the figures of its steps are, as the activities that measured them declare it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
}

impl TrialSummary {
    /// Does something with each load that was measured: with every step, and in searches with every
    /// load probe.
    pub(crate) fn each_load(&mut self, job: &mut dyn FnMut(&mut StepSummary)) {
        for step in &mut self.steps {
            job(step);
            let probes = step.search.iter_mut().flat_map(|search| &mut search.probes);
            probes.filter_map(|probe| probe.load.as_mut()).for_each(&mut *job);
        }
    }
}

/// A host on which a trial ran as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialHost {
    /// The table of the study that names it.
    pub pool: String,
    pub name: String,
    /// What is there, if the study does not say it: `node c2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    pub environment: Environment,
}

/// A small fixed piece of work, done on this host while nothing else of the trial runs. A host that
/// is busy with other things, or has slowed its CPUs down, takes longer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Canary {
    pub before_s: f64,
    pub after_s: f64,
}

/// The time after the last step, without load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunOff {
    pub limit_s: f64,
    /// Seconds until the debt was paid; none where it was not within the limit, or could not be
    /// seen.
    pub paid_after_s: Option<f64>,
    /// Why the debt could not be seen; none where it could.
    #[serde(default)]
    pub unseen: Option<String>,
    /// Time of each reading, in seconds since the load ended.
    pub start_s: Vec<f64>,
    /// Readings, by name, one per entry of `start_s`; none where missing.
    #[serde(with = "crate::columns")]
    pub readings: BTreeMap<String, Vec<Option<f64>>>,
}

/// The wait before a step for the engine to pay its debt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    pub limit_s: f64,
    pub took_s: f64,
    /// Whether the debt was paid when the step began.
    pub paid: bool,
    /// What was done to pay it (`VACUUM ANALYZE`, `CHECKPOINT`), and what was left, in words.
    pub notes: Vec<String>,
}

/// One demand on the tables after the load, and whether it is met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditRow {
    /// What is demanded, in words.
    pub name: String,
    pub expected: String,
    pub measured: String,
    /// Whether nothing speaks against it.
    pub pass: bool,
    /// Whether the sample was too small to tell: nothing speaks against it, and nothing could have.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_undecided: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum TrialOutcome {
    Finished,
    Failed { message: String, server_log: Vec<String> },
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DataSet {
    pub rows: u64,
    /// Seconds to populate, indexes included; where the data set was reused, those it took then.
    pub populate_s: f64,
    /// Bytes on disk after populating, where known.
    pub bytes: Option<u64>,
    /// Bytes on disk after the last step, where known.
    pub bytes_after: Option<u64>,
    /// Bytes of logs among those after populating, where files tell.
    #[serde(default)]
    pub log_bytes: Option<u64>,
    /// Bytes of logs among those after the last step, where files tell.
    #[serde(default)]
    pub log_bytes_after: Option<u64>,
    /// Whether it was populated by an earlier trial and copied for this one.
    #[serde(default)]
    pub reused: bool,
    /// The key of the kept data set that the trial ran on a copy of, if it did.
    #[serde(default)]
    pub key: Option<String>,
}

/// One step. What is of load is zero or empty if there was none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepSummary {
    /// Index into the manifest's steps.
    pub step: usize,
    /// Length of the measurement phase, in seconds, as it really was.
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
    /// Arrivals that were due in the measurement phase.
    pub due: u64,
    /// Arrivals that were due and never sent.
    pub missed: u64,
    /// Attempts that were sent and had no answer when the measurement phase ended. None in records of
    /// before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight_at_end: Option<u64>,
    pub retries: u64,
    pub reconnects: u64,
    /// Lag, sent − due, of all attempts.
    pub lag: EncodedHistogram,
    pub generator: GeneratorSummary,
    /// CPU seconds of the server's processes, or none (in process, or on another host).
    pub server_cpu_s: Option<f64>,
    /// First message of each kind of error, by its name.
    pub error_examples: BTreeMap<String, String>,
    /// One value per second of warm-up and measurement phase.
    pub intervals: IntervalColumns,
    /// Readings, by `probe.name`, one per entry of `intervals.start_s`; none where missing. In the
    /// file they are left out where there are `spans`: then they are in the log of readings alone.
    #[serde(with = "crate::columns")]
    pub readings: BTreeMap<String, Vec<Option<f64>>>,
    /// Start and length of each interval, in nanoseconds on the run's clock: what readings in the log
    /// are laid beside. In the file only where readings are too many to be kept twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spans: Option<Vec<(u64, u64)>>,
    /// What was found, if the step is a search. All else in this summary is then of the latest load
    /// probe at the level that was found (where none was, at the lowest that was measured).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchSummary>,
    /// How the step ended: `time`; `quota` (all quotas were done); `limit` (they were not, when its
    /// longest time was over); `steady`; `unsteady`; `activity` (one beside the load, or instead of
    /// it, had ended). None in records of before this was kept, when all ended by time.
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
    /// The hosts that generated the load, if it was not the machine that runs the study alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostSummary>,
    /// What its activities measured beside the load, by metric; each is in [`TrialSummary::metrics`].
    /// Values that are no finite numbers are left out of the file.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        serialize_with = "serialize_finite"
    )]
    pub figures: BTreeMap<MetricId, f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportedFrom>,
}

/// The output of another tool that a step was read from. Its kinds have no times if the output has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedFrom {
    /// The tool, with its version if the output says it: `sysbench 1.0.20`.
    pub tool: String,
    /// The file, and the line if it holds several runs.
    pub place: String,
}

/// A while in which the limit of a volume's device was lowered on purpose.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VolumeDip {
    pub volume: String,
    /// When it began, in seconds since the measurement phase began.
    pub start_s: f64,
    pub length_s: f64,
    pub limit: String,
}

/// What happened to a server on purpose. Times are in seconds since the measurement phase began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    pub name: String,
    /// What it was: `kill`, `stop` or `restart`.
    pub kind: String,
    pub member: String,
    pub planned_s: f64,
    pub began_s: f64,
    /// When the server had ended; of `stop`, when it was let go on. None if that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_s: Option<f64>,
    /// When it, or the replica that was promoted in its place, answered again; none of `stop`, and if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotion: Option<Promotion>,
}

/// A replica that was made the primary in place of one that was killed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promotion {
    pub member: String,
    /// What it had of the transactions, by the audit; none if that was not found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub survived: Option<Survived>,
}

/// Transactions of a trial whose primary was replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survived {
    /// Those whose commit was confirmed to a client, before or after the promotion.
    pub acknowledged: u64,
    /// Those without an answer, which may have committed or not.
    pub in_doubt: u64,
    /// Those that the promoted server had at the end.
    pub found: u64,
    /// Those that were confirmed and are missing, where the rows of those in doubt were looked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Why they were not, in words that follow "because".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_range: Option<String>,
}

impl Survived {
    /// The least and the most confirmed transactions that can be missing: the same number if rows were looked up
    /// or none is in doubt; else one that is in doubt may be among those that were found.
    pub fn lost(&self) -> (u64, u64) {
        if let Some(lost) = self.lost {
            return (lost, lost);
        }
        let least = self.acknowledged.saturating_sub(self.found);
        let most = (self.acknowledged + self.in_doubt).saturating_sub(self.found);
        (least, most.min(self.acknowledged))
    }
}

/// What went on in a step beside its load, or instead of it. Its figures are the step's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ActivitySummary {
    /// Its name, with which the ids of its figures begin.
    pub name: String,
    /// What it was: `command`.
    pub kind: String,
    /// When it began, in nanoseconds on the run's clock.
    pub began_ns: u64,
    pub took_s: f64,
    pub ended: String,
    /// Whether it did all that it was to do; else its figures are left out.
    pub is_done: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output: Vec<String>,
}

/// JSON has no word for infinity: it would become `null`, and the file could not be read.
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
    /// The highest level that held twice: offered rate, or clients. None where none did.
    pub found: Option<f64>,
    /// The lowest level above it that broke the limit; none where none was tried that did.
    pub lowest_broken: Option<f64>,
    /// Whether the search came to its end, rather than to the most probes it may make.
    pub settled: bool,
    /// All its load probes, in the order of time.
    pub probes: Vec<LoadProbe>,
}

/// One load that a search tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadProbe {
    /// Counted from 1.
    pub number: u32,
    /// Offered rate, or clients.
    pub level: f64,
    /// Committed transactions per second.
    pub throughput: f64,
    /// The limited statistic of response times, in microseconds; none where nothing committed.
    pub limited_us: Option<f64>,
    pub held: bool,
    pub broken_by: Option<String>,
    /// All that was measured; none where the server did not even let all clients connect.
    pub load: Option<StepSummary>,
}

/// One kind of transaction in one step, measurement phase only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindSummary {
    pub name: String,
    /// How attempts ended, by word: `committed`, `rolled_back`, `deadlock`, `serialization`,
    /// `lock_timeout`, `duplicate_key`, `disconnected`, `timed_out`, `refused`.
    pub outcomes: BTreeMap<String, u64>,
    /// Response times, done − due, of committed transactions.
    pub response: EncodedHistogram,
    /// Service times, done − sent, of committed transactions.
    pub service: EncodedHistogram,
    /// Commits in each 100 ms of the step, warm-up included, from the start of its first interval:
    /// ten for each whole interval, fewer for a shorter one (its last bin may be shorter too).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commits_100ms: Option<EncodedCounts>,
}

/// What the load generator used in the measurement phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorSummary {
    pub workers: u32,
    pub cpu_user_s: f64,
    pub cpu_system_s: f64,
    /// User CPU seconds of the whole process: workers, the threads that collect and write the
    /// record, probes; and of an embedded database. None in records of before this was kept.
    #[serde(default)]
    pub process_cpu_user_s: Option<f64>,
    #[serde(default)]
    pub process_cpu_system_s: Option<f64>,
    /// Seconds its threads were ready to run and had to wait for a CPU, where the kernel tells.
    pub run_queue_s: Option<f64>,
    /// Busiest worker: CPU seconds per second of the measurement phase, in [0, 1].
    pub busiest_worker: f64,
    pub rss_bytes: u64,
    /// Statements per second and worker as a share of what a worker can do on this machine with
    /// so many clients, by `dyno calibrate`. None where that is not known.
    #[serde(default)]
    pub share_of_calibrated: Option<f64>,
    /// Whether other processes disturbed that calibration: then the share is too high.
    #[serde(default)]
    pub calibration_disturbed: bool,
}

/// What one of several generators did in a step, measure phase only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostSummary {
    pub name: String,
    /// The server that it loaded, as a URL without a password, if its load was divided among several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// What the machine calls itself.
    #[serde(default)]
    pub machine: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
    pub clients: u64,
    pub generator: GeneratorSummary,
    pub kinds: Vec<KindSummary>,
    pub due: u64,
    pub missed: u64,
    /// Lag, sent − due.
    pub lag: EncodedHistogram,
    /// Transactions committed in each interval of the step.
    pub committed: Vec<u64>,
    /// p99 lag in microseconds in each interval of the step.
    pub lag_p99_us: Vec<f64>,
    /// Its clock; none where that could not be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockFacts>,
    /// The network between it and its server, before the first load of the trial on servers that agents have
    /// started; none of other loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkFacts>,
}

/// A host's clock against that of the machine that runs the study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockFacts {
    /// Its wall clock − the other one, in milliseconds.
    pub wall_offset_ms: f64,
    /// How far the truth is from that at most.
    pub wall_bound_ms: f64,
    /// How far its beginning of the step was from that of the others at most, in microseconds.
    pub bound_us: f64,
    /// The shortest round trip before the step, in microseconds.
    pub round_trip_us: f64,
    /// How much faster it runs, in parts per million; none where the step was too short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_ppm: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_bound_ppm: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub during: Vec<ClockReading>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<ClockReading>,
}

/// A host's clock at one time, against the reading before the step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockReading {
    /// Seconds since the reading before the step.
    pub at_s: f64,
    /// How much further it had gone than the other clock, in microseconds.
    pub offset_us: f64,
    pub bound_us: f64,
}

/// Per-second columns of a step; all of the same length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IntervalColumns {
    /// Start of each interval, seconds since the measurement phase began; negative in warm-up.
    pub start_s: Vec<f64>,
    /// Committed transactions per second.
    pub throughput: Vec<f64>,
    /// Attempts that did not commit, per second.
    pub errors: Vec<f64>,
    /// Missed arrivals per second.
    pub missed: Vec<f64>,
    /// Median response time in microseconds; 0 where nothing was done.
    pub p50_us: Vec<f64>,
    pub p95_us: Vec<f64>,
    pub p99_us: Vec<f64>,
    pub max_us: Vec<f64>,
    pub lag_p99_us: Vec<f64>,
}
