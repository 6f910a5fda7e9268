//! `events.jsonl`: what happened, in order.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Fault;

/// One entry of the ordered stream that the lab emits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When, in nanoseconds since the run's clock began.
    pub at_ns: u64,
    pub unix_ms: u64,
    #[serde(flatten)]
    pub kind: EventKind,
}

/// One kind of transaction in one second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindSecond {
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
    TrialBegan {
        trial: u32,
        variant: String,
        repetition: u32,
    },
    /// A phase of a trial began: `deploy`, `fill`, `step 8 clients` …
    TrialPhaseBegan {
        phase: String,
    },
    TrialPhaseEnded {
        phase: String,
        took_s: f64,
        /// Whether it did all that it was to do; after one that did not, the trial is torn down.
        is_done: bool,
    },
    ServerReady {
        /// Product and version.
        server: String,
        /// Seconds from start to ready.
        took_s: f64,
        /// Its process, if Dyno started it.
        pid: Option<i32>,
    },
    Populated {
        rows: u64,
        took_s: f64,
    },
    DataSetKept {
        /// Its key: `dyno datasets` lists it.
        key: String,
        bytes: u64,
    },
    /// The trial runs on a copy of a data set that was populated before.
    DataSetReused {
        key: String,
        rows: u64,
        /// Seconds that populating took then.
        populate_s: f64,
        populated_unix_ms: u64,
        /// Seconds that copying took.
        took_s: f64,
    },
    PopulateProgressed {
        rows: u64,
        rows_total: u64,
    },
    /// A part of a step began: `warm-up` or `measure`.
    PhaseBegan {
        step: usize,
        name: String,
        phase: String,
    },
    /// A second of a step ended. Sent while it goes on, and not written among the events: the
    /// interval log has it.
    IntervalEnded {
        step: usize,
        /// Seconds since the measurement phase began, at the interval's start; negative in warm-up.
        second: i64,
        /// Committed transactions per second.
        throughput: f64,
        p95_us: f64,
    },
    /// A stretch between two readings ended in a step in which nothing is sent. Sent while it goes on,
    /// and not written among the events.
    IntervalObserved {
        step: usize,
        /// Seconds since the measurement phase began, at its end; negative in warm-up.
        passed_s: f64,
    },
    /// What the clients did in a second of a step, by kind. Sent while it goes on, and not written
    /// among the events: the interval log has it.
    Kinds {
        step: String,
        kinds: Vec<KindSecond>,
    },
    /// Probes were read. Sent while it goes on, and not written among the events: the readings are
    /// in a file of their own.
    ReadingsTaken {
        values: BTreeMap<String, f64>,
    },
    /// Something that went on in a step beside its load, or instead of it, ended.
    ActivityEnded {
        step: usize,
        activity: String,
        took_s: f64,
        is_done: bool,
    },
    /// A search tried a load.
    LoadProbed {
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
    StepEnded {
        step: usize,
        /// Committed transactions per second in the measurement phase.
        throughput: f64,
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
        failed: Vec<String>,
        /// What was not checked, each with the reason; empty in older records.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        skipped: Vec<String>,
        took_s: f64,
    },
    /// Settings of the machine's kernel were changed for the trial, which puts them back at its end.
    KernelSet {
        /// Their values in force, by name.
        settings: BTreeMap<String, String>,
    },
    VolumeLimited {
        volume: String,
        /// The limit in words; none where it was lifted.
        limit: Option<String>,
    },
    /// The limit of a volume's device was lowered for a while. Written down after the step.
    VolumeDipped {
        step: usize,
        volume: String,
        /// When it was lowered, in seconds since the measurement phase began.
        start_s: f64,
        length_s: f64,
        limit: String,
    },
    /// A fault of a server was made. Written down after the step.
    FaultMade {
        step: usize,
        fault: Fault,
    },
    /// The operating system's page cache was emptied.
    CachesDropped {
        /// The host of a server; none for the machine that runs the study.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<String>,
        before_bytes: u64,
        after_bytes: u64,
    },
    /// A rest between steps or trials began.
    Rested {
        seconds: f64,
    },
    /// A wait for the engine to pay what it put off began: before a step, or after the last one.
    WaitBegan {
        /// Which: `settling before l.x`, `run-off`.
        wait: String,
        limit_s: f64,
    },
    /// What was read in a wait. Sent while it goes on, and not written among the events: the
    /// summary has it.
    DebtRead {
        wait: String,
        passed_s: f64,
        limit_s: f64,
        /// The worst part of the debt over what counts as paid: at or below 1 all is paid.
        gauge: Option<f64>,
        /// The parts that are not paid: reading and value.
        unpaid: Vec<(String, f64)>,
    },
    WaitEnded {
        wait: String,
        took_s: f64,
        /// Whether all was paid; none where it could not be read.
        paid: Option<bool>,
        /// What was done to have it paid, and what was left, in words.
        notes: Vec<String>,
    },
    TrialFinished {
        trial: u32,
    },
    /// The trial ended badly; its data are kept and not used for estimates.
    TrialFailed {
        trial: u32,
        message: String,
        server_log: Vec<String>,
    },
    /// What was made for the trial could not be removed; what was measured stands.
    CleanUpFailed {
        trial: u32,
        message: String,
    },
    /// The trial was stopped by the user or a time limit.
    TrialAbandoned {
        trial: u32,
    },
    /// A variant gets no more repetitions: nothing that they could show is open any more.
    VariantSettled {
        variant: String,
        repetitions: u32,
        why: String,
    },
    /// A trial of the plan is not done, because its variant is settled.
    TrialSkipped {
        trial: u32,
        variant: String,
        repetition: u32,
        why: String,
    },
    /// A block is void, because the host was disturbed while it ran; it is measured again.
    BlockVoided {
        block: u32,
        why: String,
    },
    /// A server left over from an earlier, killed run was ended.
    LeftoverEnded {
        what: String,
    },
    Noted {
        message: String,
    },
}
