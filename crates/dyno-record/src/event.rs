//! `events.jsonl`: what happened, in order.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Fault;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Nanoseconds since the run's clock began.
    pub at_ns: u64,
    pub unix_ms: u64,
    #[serde(flatten)]
    pub kind: EventKind,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindSecond {
    pub name: String,
    /// Commits per second.
    pub throughput: f64,
    /// Attempts that did not commit, per second.
    pub errors: f64,
    /// Quantile in [0, 1] and microseconds; empty without commits.
    pub response_us: Vec<(f64, f64)>,
}

impl EventKind {
    /// Passing events report progress, and are not written into the record.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            EventKind::IntervalEnded { .. }
                | EventKind::IntervalObserved { .. }
                | EventKind::Kinds { .. }
                | EventKind::ReadingsTaken { .. }
                | EventKind::DebtRead { .. }
        )
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// Repetitions are counted from 1.
    TrialBegan { trial: u32, variant: String, repetition: u32 },
    /// `deploy`, `fill`, `step 8 clients` …
    TrialPhaseBegan { phase: String },
    /// If it is not done, the trial is torn down.
    TrialPhaseEnded { phase: String, took_s: f64, is_done: bool },
    /// `server` is product and version; `pid` is `None` if Dyno did not start it.
    ServerReady { server: String, took_s: f64, pid: Option<i32> },
    /// All tables are filled.
    Populated { rows: u64, took_s: f64 },
    /// `key` as `dyno datasets` lists it.
    DataSetKept { key: String, bytes: u64 },
    /// The trial uses a copy of a kept data set.
    DataSetReused {
        key: String,
        rows: u64,
        /// Time that populating took originally.
        populate_s: f64,
        populated_unix_ms: u64,
        took_s: f64,
    },
    /// Tables are filled.
    PopulateProgressed { rows: u64, rows_total: u64 },
    /// `warm-up` or `measure`.
    PhaseBegan { step: usize, name: String, phase: String },
    /// A passing event, as the interval log has it: the start of the interval in whole seconds since the measurement
    /// phase began, negative in warm-up, and its commits per second.
    IntervalEnded { step: usize, second: i64, throughput: f64, p95_us: f64 },
    /// A passing event: time between two readings, in a step that sends nothing; its end in seconds since the
    /// measurement phase began, negative in warm-up.
    IntervalObserved { step: usize, passed_s: f64 },
    /// A passing event: a second's work by kind, as the interval log has it.
    Kinds { step: String, kinds: Vec<KindSecond> },
    /// A passing event: the readings have their own file.
    ReadingsTaken { values: BTreeMap<String, f64> },
    /// Something beside the load, or instead of it.
    ActivityEnded { step: usize, activity: String, took_s: f64, is_done: bool },
    /// A search has tried a load.
    LoadProbed {
        step: usize,
        /// Counted from 1 in each search.
        number: u32,
        /// Offered rate, or clients.
        level: f64,
        /// Commits per second in the measurement phase.
        throughput: f64,
        /// The limited statistic of response times, in microseconds; `None` without commits.
        limited_us: Option<f64>,
        /// Why the load broke the limit; `None` if it held.
        broken_by: Option<String>,
    },
    /// A step with load; `throughput` is commits per second.
    StepEnded {
        step: usize,
        throughput: f64,
        p95_us: f64,
        /// The measurement phase; `None` in older records.
        #[serde(default)]
        measured_s: Option<f64>,
    },
    /// After the last step.
    Audited {
        n_passed: usize,
        /// Met demands in words; empty in older records.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        passed: Vec<String>,
        failed: Vec<String>,
        /// Unchecked demands with the reason; empty in older records.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        skipped: Vec<String>,
        took_s: f64,
    },
    /// Kernel settings of the machine were changed until the end of the trial; those in force, by name.
    KernelSet { settings: BTreeMap<String, String> },
    /// The limit in words; `None` if it was lifted.
    VolumeLimited { volume: String, limit: Option<String> },
    /// A device's limit was lowered for a while, so many seconds after the measurement phase began. Written after the
    /// step.
    VolumeDipped { step: usize, volume: String, start_s: f64, length_s: f64, limit: String },
    /// Written after the step.
    FaultMade { step: usize, fault: Fault },
    /// The page cache of a machine was emptied.
    CachesDropped {
        /// The host of a server; `None` for the machine that runs the study.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<String>,
        before_bytes: u64,
        after_bytes: u64,
    },
    /// Between steps or trials.
    Rested { seconds: f64 },
    /// For deferred work of the engine: `settling before l.x`, or after the last step `run-off`.
    WaitBegan { wait: String, limit_s: f64 },
    /// A passing event, as the summary has it.
    DebtRead {
        wait: String,
        passed_s: f64,
        limit_s: f64,
        /// The worst part of the debt over the level that counts as paid; at most 1 if all is paid.
        gauge: Option<f64>,
        /// Reading and value.
        unpaid: Vec<(String, f64)>,
    },
    /// `paid` is `None` if the debt could not be read; notes say what was done about it, and what was left.
    WaitEnded { wait: String, took_s: f64, paid: Option<bool>, notes: Vec<String> },
    /// All that was planned was measured.
    TrialFinished { trial: u32 },
    /// The trial's data are kept and not used for estimates.
    TrialFailed { trial: u32, message: String, server_log: Vec<String> },
    /// Something made for the trial could not be removed; the measurement stands.
    CleanUpFailed { trial: u32, message: String },
    /// By the user or a time limit.
    TrialAbandoned { trial: u32 },
    /// The variant gets no more repetitions: they could not change a verdict.
    VariantSettled { variant: String, repetitions: u32, why: String },
    /// The variant of the trial is settled.
    TrialSkipped { trial: u32, variant: String, repetition: u32, why: String },
    /// The host was disturbed during the block; it is measured again.
    BlockVoided { block: u32, why: String },
    /// A server of an earlier, killed run was ended.
    LeftoverEnded { what: String },
    /// Anything else that is worth telling.
    Noted { message: String },
}
