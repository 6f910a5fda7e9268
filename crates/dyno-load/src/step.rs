//! One step of load: specification and results.

use std::collections::BTreeMap;

use dyno_model::{Load, Name};
use dyno_units::{Nanoseconds, Seed};
use dyno_workload::Tally;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepSpec {
    pub load: Load,
    /// Among the steps that the workload defines; 0 if it defines none.
    pub step: usize,
    /// Recorded apart; commits in it count for quotas.
    pub warm_up: Nanoseconds,
    /// Measured time; the longest if quotas or steadiness end the step.
    pub duration: Nanoseconds,
    /// How long throughput has to be steady, in whole seconds, at least five; `None` if time or
    /// quotas end the step. Steady: the means of the fifths differ by at most 20 %, and a line
    /// through them rises or falls by at most 10 %.
    pub until_steady: Option<Nanoseconds>,
    /// How long nothing may commit while clients fail to reconnect, before the step fails. Usually
    /// [`GONE_LIMIT`]; `None` if the server may be away and the caller brings it back.
    pub gone_limit: Option<Nanoseconds>,
    /// Zero for none.
    pub statement_timeout: Nanoseconds,
    /// Of a transaction that failed for a transient reason.
    pub retries: u32,
    /// Threads; from 1 to the number of clients.
    pub workers: usize,
    /// Workers are bound to them round-robin; empty for none.
    pub cpus: Vec<u32>,
    /// Of the clients' streams and the schedule.
    pub seed: Seed,
}

pub const GONE_LIMIT: Nanoseconds = Nanoseconds::from_secs(10);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Recorded, not used for estimates.
    #[default]
    WarmUp,
    Measure,
}

/// In the order of [`Outcomes`].
#[rustfmt::skip]
pub const OUTCOMES: [&str; 9] = [
    "committed", "rolled_back", "deadlock", "serialization", "lock_timeout",
    "duplicate_key", "disconnected", "timed_out", "refused",
];

/// Attempts by outcome, indexed as [`OUTCOMES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Outcomes(pub [u64; OUTCOMES.len()]);

impl Outcomes {
    pub fn committed(&self) -> u64 {
        self.0[0]
    }

    /// Neither committed nor rolled back by design.
    pub fn failed(&self) -> u64 {
        self.0[2..].iter().sum()
    }

    pub fn add(&mut self, other: &Outcomes) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

/// All workers together; while it is counted and while it travels, kinds and times are of other types.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval<K = KindInterval, T = Histogram<u64>> {
    pub phase: Phase,
    pub start: Nanoseconds,
    /// One second; less only for the last interval of a phase.
    pub length: Nanoseconds,
    pub kinds: Vec<K>,
    /// sent − due of transactions first sent in it; empty under closed load.
    pub lag: T,
    /// Arrivals due in it; under closed load, transactions begun.
    pub due: u64,
    pub missed: u64,
    pub retries: u64,
    pub reconnects: u64,
    pub tally: Tally,
}

impl<T> Interval<KindInterval<T>, T> {
    pub fn committed(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.outcomes.committed()).sum()
    }
}

pub const BINS: usize = 10;

/// The last bin also has what is done later.
pub const BIN_LENGTH: Nanoseconds = Nanoseconds::from_millis(100);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KindInterval<T = Histogram<u64>> {
    pub outcomes: Outcomes,
    /// done − due of commits, in ns.
    pub response: T,
    /// done − sent of commits, in ns.
    pub service: T,
    pub bins: [u32; BINS],
}

/// Sums are over the measurement phase.
#[derive(Clone, Debug)]
pub struct StepTotals {
    pub measure_began: Nanoseconds,
    pub measure_ended: Nanoseconds,
    pub measured: Interval,
    pub generator: GeneratorUse,
    /// First message of each error outcome.
    pub error_examples: BTreeMap<&'static str, String>,
    /// Attempts not done when the measurement phase ended; whether they committed is not known.
    pub in_flight_at_end: u64,
    /// Stopped early; then sums are over the whole intervals before.
    pub aborted: bool,
    /// Says nothing about an aborted step.
    pub ended_by: EndedBy,
    /// In the order of the roles; a load without roles has one with an empty name.
    pub roles: Vec<RoleTotals>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedBy {
    Time,
    /// All quotas were done, or all clients had ended.
    Quota,
    Steady,
    /// Quotas were not done: [`StepTotals::roles`] says whose.
    Limit,
    Unsteady,
}

/// Warm-up included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleTotals {
    pub name: Name,
    pub clients: usize,
    /// Before the step ended.
    pub committed: u64,
    /// Clients whose quota was not done; 0 without a quota.
    pub unfinished: usize,
}

/// By all workers, in the measurement phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorUse {
    /// Zero if the kernel does not report it.
    pub cpu_user: Nanoseconds,
    pub cpu_system: Nanoseconds,
    /// Time ready to run without a CPU, if the kernel reports it.
    pub run_queue: Option<Nanoseconds>,
    pub busiest_worker: f64,
    pub workers: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError(pub String);

pub(crate) type Loaded<T = ()> = Result<T, LoadError>;

impl std::fmt::Display for LoadError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)?;
        // Applies to epoll sets, sockets and files of a database in this process.
        if self.0.ends_with("Too many open files (os error 24)") {
            out.write_str(
                "; each client needs some of the files that a process may have open: raise the limit (`ulimit -Hn` \
                 shows it), or use fewer clients",
            )?;
        }
        Ok(())
    }
}

impl std::error::Error for LoadError {}

#[test]
fn a_limit_on_open_files_is_named() {
    let check = |error: &str, expected: &str| {
        assert!(LoadError(error.to_owned()).to_string().ends_with(expected), "{error}");
    };
    let limit = std::io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error());
    check(&format!("cannot create an epoll set: {limit}"), "or use fewer clients");
    check("cannot connect", "cannot connect");
}
