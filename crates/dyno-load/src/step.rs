//! One step of load: what is asked for, and what comes out of it.

use std::collections::BTreeMap;

use dyno_units::{Nanoseconds, Seed};
use dyno_workload::Tally;
use hdrhistogram::Histogram;

/// A step of load.
#[derive(Clone, Debug, PartialEq)]
pub struct StepSpec {
    /// How hard.
    pub load: Load,
    /// Warm-up: recorded apart.
    pub warm_up: Nanoseconds,
    /// Measured time.
    pub duration: Nanoseconds,
    /// Time limit of a statement; zero for none.
    pub statement_timeout: Nanoseconds,
    /// Retries of a transaction that failed for a transient reason.
    pub retries: u32,
    /// Threads; at least 1, at most one for each client.
    pub workers: usize,
    /// CPUs to bind workers to, round and round; empty for none.
    pub cpus: Vec<u32>,
    /// Seed of the clients' streams and of the schedule.
    pub seed: Seed,
}

/// How hard the load is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// So many clients, each with one transaction at a time, one after the other.
    Closed {
        /// Clients.
        clients: usize,
    },
    /// Arrivals by a schedule, whatever the server does. While all clients are busy, arrivals wait
    /// for up to a minute, and are then given up as missed.
    Open {
        /// Offered rate, arrivals per second.
        rate: f64,
        /// How they are spread.
        arrivals: Arrivals,
        /// Clients: the most transactions in flight.
        clients: usize,
    },
}

impl Load {
    /// Clients of this load.
    pub fn clients(&self) -> usize {
        match *self {
            Load::Closed { clients } | Load::Open { clients, .. } => clients,
        }
    }
}

/// How arrivals are spread in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Evenly.
    Constant,
    /// With exponential gaps.
    Poisson,
}

/// Which part of a step an interval belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Recorded, not used for estimates.
    WarmUp,
    /// What estimates are made from.
    Measure,
}

/// The words for outcomes, in the order of [`Outcomes`]' counters.
pub const OUTCOMES: [&str; 9] = [
    "committed",
    "rolled_back",
    "deadlock",
    "serialization",
    "lock_timeout",
    "duplicate_key",
    "disconnected",
    "timed_out",
    "refused",
];

/// How many attempts ended in which way; indexes are those of [`OUTCOMES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcomes(pub [u64; OUTCOMES.len()]);

impl Outcomes {
    /// Attempts that committed.
    pub fn committed(&self) -> u64 {
        self.0[0]
    }

    /// Attempts that neither committed nor rolled back by design.
    pub fn failed(&self) -> u64 {
        self.0[2..].iter().sum()
    }

    /// Adds other counts to these.
    pub fn add(&mut self, other: &Outcomes) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

/// One second of a step, all workers together.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Its phase.
    pub phase: Phase,
    /// Its start, by the clock.
    pub start: Nanoseconds,
    /// Its length: one second, less only for the last one of a phase.
    pub length: Nanoseconds,
    /// By kind of transaction.
    pub kinds: Vec<KindInterval>,
    /// Lag, sent − due, of the transactions first sent in it. Empty under closed load, where due is
    /// sent.
    pub lag: Histogram<u64>,
    /// Arrivals that were due in it; under closed load, transactions begun.
    pub due: u64,
    /// Arrivals that will never be sent, counted in the interval in which they were given up.
    pub missed: u64,
    /// Retries begun in it.
    pub retries: u64,
    /// Reconnects done in it.
    pub reconnects: u64,
    /// Statements and rows.
    pub tally: Tally,
}

/// One kind of transaction in one interval. An attempt belongs to the interval in which it is done.
#[derive(Clone, Debug)]
pub struct KindInterval {
    /// How attempts ended.
    pub outcomes: Outcomes,
    /// Response times, done − due, in ns, of committed transactions.
    pub response: Histogram<u64>,
    /// Service times, done − sent, in ns, of committed transactions.
    pub service: Histogram<u64>,
}

/// What a whole step came to; the sums over the measure phase.
#[derive(Clone, Debug)]
pub struct StepTotals {
    /// When the measure phase began, by the clock.
    pub measure_began: Nanoseconds,
    /// When it ended.
    pub measure_ended: Nanoseconds,
    /// All measured intervals together.
    pub measured: Interval,
    /// What the generator used in the measure phase.
    pub generator: GeneratorUse,
    /// First message of each outcome that was an error.
    pub error_examples: BTreeMap<&'static str, String>,
    /// Attempts that had been sent, or were just being sent, and were not done when the measure
    /// phase ended. They are in no interval: whether they committed is not known.
    pub in_flight_at_end: u64,
    /// Whether it was stopped before its time; then all sums are those of the whole intervals
    /// before the stop.
    pub aborted: bool,
}

/// What the workers used in the measure phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GeneratorUse {
    /// User CPU time of all workers, where the kernel tells.
    pub cpu_user: Nanoseconds,
    /// System CPU time of all workers.
    pub cpu_system: Nanoseconds,
    /// Time that workers were ready to run and waited for a CPU, where the kernel tells.
    pub run_queue: Option<Nanoseconds>,
    /// CPU time of the busiest worker as a share of the measure phase.
    pub busiest_worker: f64,
    /// Workers.
    pub workers: usize,
}

/// A step that could not be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError(pub String);

impl std::fmt::Display for LoadError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for LoadError {}
