//! `events.jsonl`: what happened, in order.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Fault;

/// One entry of the ordered stream that the lab emits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When, in nanoseconds since the run's clock began.
    pub at_ns: u64,
    /// When, in milliseconds since 1970 UTC.
    pub unix_ms: u64,
    /// What.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// One kind of transaction in one second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindSecond {
    /// The kind.
    pub name: String,
    /// Committed transactions per second.
    pub throughput: f64,
    /// Attempts that did not commit, per second.
    pub errors: f64,
    /// Response times in microseconds: quantile in [0, 1] and value; empty where nothing committed.
    pub response_us: Vec<(f64, f64)>,
}

impl EventKind {
    /// Whether it is sent while something goes on, and not written among the events.
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

/// What happened; events are past tense.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// A trial began.
    TrialBegan {
        /// Its number.
        trial: u32,
        /// Its variant's name.
        variant: String,
        /// Its repetition.
        repetition: u32,
    },
    /// A phase of a trial began: `deploy`, `fill`, `step 8 clients` …
    TrialPhaseBegan {
        /// Its name.
        phase: String,
    },
    /// A phase of a trial ended.
    TrialPhaseEnded {
        /// Its name.
        phase: String,
        /// Seconds.
        took_s: f64,
        /// Whether it did all that it was to do; after one that did not, the trial is torn down.
        is_done: bool,
    },
    /// A server answers.
    ServerReady {
        /// Product and version.
        server: String,
        /// Seconds from start to ready.
        took_s: f64,
        /// Its process, if Dyno started it.
        pid: Option<i32>,
    },
    /// Tables are filled.
    Populated {
        /// Rows.
        rows: u64,
        /// Seconds.
        took_s: f64,
    },
    /// The trial's data set was kept for later ones.
    DataSetKept {
        /// Its key: `dyno datasets` lists it.
        key: String,
        /// Bytes on disk.
        bytes: u64,
    },
    /// The trial runs on a copy of a data set that was populated before.
    DataSetReused {
        /// Its key.
        key: String,
        /// Rows.
        rows: u64,
        /// Seconds that populating took then.
        populate_s: f64,
        /// When that was, in milliseconds since 1970 UTC.
        populated_unix_ms: u64,
        /// Seconds that copying took.
        took_s: f64,
    },
    /// Rows filled so far.
    PopulateProgressed {
        /// Rows so far.
        rows: u64,
        /// Rows in all.
        rows_total: u64,
    },
    /// A part of a step began: `warm-up` or `measure`.
    PhaseBegan {
        /// The step's index.
        step: usize,
        /// The step's name.
        name: String,
        /// The phase.
        phase: String,
    },
    /// A second of a step ended. Sent while it goes on, and not written among the events: the
    /// interval log has it.
    IntervalEnded {
        /// The step's index.
        step: usize,
        /// Seconds since the measurement phase began, at the interval's start; negative in warm-up.
        second: i64,
        /// Committed transactions per second.
        throughput: f64,
        /// p95 response time in microseconds.
        p95_us: f64,
    },
    /// A stretch between two readings ended in a step in which nothing is sent. Sent while it goes on,
    /// and not written among the events.
    IntervalObserved {
        /// The step's index.
        step: usize,
        /// Seconds since the measurement phase began, at its end; negative in warm-up.
        passed_s: f64,
    },
    /// What the clients did in a second of a step, by kind. Sent while it goes on, and not written
    /// among the events: the interval log has it.
    Kinds {
        /// The step's name.
        step: String,
        /// By kind of transaction.
        kinds: Vec<KindSecond>,
    },
    /// Probes were read. Sent while it goes on, and not written among the events: the readings are
    /// in a file of their own.
    ReadingsTaken {
        /// The readings, by name.
        values: BTreeMap<String, f64>,
    },
    /// Something that went on in a step beside its load, or instead of it, ended.
    ActivityEnded {
        /// The step's index.
        step: usize,
        /// Its name.
        activity: String,
        /// Seconds from its beginning.
        took_s: f64,
        /// Whether it did not fail.
        is_done: bool,
    },
    /// A search tried a load.
    LoadProbed {
        /// The step's index.
        step: usize,
        /// Counted from 1 in each search.
        number: u32,
        /// Offered rate, or clients.
        level: f64,
        /// Committed transactions per second in the measurement phase.
        throughput: f64,
        /// The limited statistic of response times, in microseconds; none where nothing committed.
        limited_us: Option<f64>,
        /// Why the load did not hold; none where it did.
        broken_by: Option<String>,
    },
    /// A step ended.
    StepEnded {
        /// The step's index.
        step: usize,
        /// Committed transactions per second in the measurement phase.
        throughput: f64,
        /// p95 response time in microseconds.
        p95_us: f64,
        /// Length of the measurement phase in seconds; none in records of before.
        #[serde(default)]
        measured_s: Option<f64>,
    },
    /// The tables were audited after the last step.
    Audited {
        /// Demands that are met.
        n_passed: usize,
        /// Each of them in words; empty in older records.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        passed: Vec<String>,
        /// Demands that are not met, each in words.
        failed: Vec<String>,
        /// What was not checked, each with the reason; empty in older records.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        skipped: Vec<String>,
        /// Seconds.
        took_s: f64,
    },
    /// Settings of the machine's kernel were changed for the trial, which puts them back at its end.
    KernelSet {
        /// Their values in force, by name.
        settings: BTreeMap<String, String>,
    },
    /// The limit of a volume's device was set, or lifted.
    VolumeLimited {
        /// The volume's name.
        volume: String,
        /// The limit in words; none where it was lifted.
        limit: Option<String>,
    },
    /// The limit of a volume's device was lowered for a while. Written down after the step.
    VolumeDipped {
        /// The step's index.
        step: usize,
        /// The volume's name.
        volume: String,
        /// When it was lowered, in seconds since the measurement phase began.
        start_s: f64,
        /// For how long, in seconds.
        length_s: f64,
        /// The lower limit in words.
        limit: String,
    },
    /// A fault of a server was made. Written down after the step.
    FaultMade {
        /// The step's index.
        step: usize,
        /// What happened, and when.
        fault: Fault,
    },
    /// The operating system's page cache was emptied.
    CachesDropped {
        /// The host of a server; none for the machine that runs the study.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<String>,
        /// Bytes that it held before.
        before_bytes: u64,
        /// Bytes that it held after.
        after_bytes: u64,
    },
    /// A rest between steps or trials began.
    Rested {
        /// Its length in seconds.
        seconds: f64,
    },
    /// A wait for the engine to pay what it put off began: before a step, or after the last one.
    WaitBegan {
        /// Which: `settling before l.x`, `run-off`.
        wait: String,
        /// The most it may take, in seconds.
        limit_s: f64,
    },
    /// What was read in a wait. Sent while it goes on, and not written among the events: the
    /// summary has it.
    DebtRead {
        /// Which wait.
        wait: String,
        /// Seconds since it began.
        passed_s: f64,
        /// The most it may take, in seconds.
        limit_s: f64,
        /// The worst part of the debt over what counts as paid: at or below 1 all is paid.
        gauge: Option<f64>,
        /// The parts that are not paid: reading and value.
        unpaid: Vec<(String, f64)>,
    },
    /// A wait ended.
    WaitEnded {
        /// Which wait.
        wait: String,
        /// How long it took, in seconds.
        took_s: f64,
        /// Whether all was paid; none where it could not be read.
        paid: Option<bool>,
        /// What was done to have it paid, and what was left, in words.
        notes: Vec<String>,
    },
    /// The trial ended well.
    TrialFinished {
        /// Its number.
        trial: u32,
    },
    /// The trial ended badly; its data are kept and not used for estimates.
    TrialFailed {
        /// Its number.
        trial: u32,
        /// Why.
        message: String,
        /// The last lines of the server's log.
        server_log: Vec<String>,
    },
    /// What was made for the trial could not be removed; what was measured stands.
    CleanUpFailed {
        /// Its number.
        trial: u32,
        /// Why, and what is left.
        message: String,
    },
    /// The trial was stopped by the user or a time limit.
    TrialAbandoned {
        /// Its number.
        trial: u32,
    },
    /// A variant gets no more repetitions: nothing that they could show is open any more.
    VariantSettled {
        /// Its name.
        variant: String,
        /// Repetitions that it has had.
        repetitions: u32,
        /// Why.
        why: String,
    },
    /// A trial of the plan is not done, because its variant is settled.
    TrialSkipped {
        /// Its number.
        trial: u32,
        /// Its variant's name.
        variant: String,
        /// Its repetition.
        repetition: u32,
        /// Why.
        why: String,
    },
    /// A block is void, because the host was disturbed while it ran; it is measured again.
    BlockVoided {
        /// The block.
        block: u32,
        /// Why.
        why: String,
    },
    /// A server left over from an earlier, killed run was ended.
    LeftoverEnded {
        /// What and where.
        what: String,
    },
    /// A notice that is no failure.
    Noted {
        /// What.
        message: String,
    },
}
