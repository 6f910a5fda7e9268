//! One step of load: its specification and its results.

use std::collections::BTreeMap;

use dyno_model::{Load, Name};
use dyno_units::{Nanoseconds, Seed};
use dyno_workload::Tally;
use hdrhistogram::Histogram;

#[derive(Clone, Debug, PartialEq)]
pub struct StepSpec {
    pub load: Load,
    /// Index of the step among those that the workload defines; 0 if it defines none.
    pub step: usize,
    /// Warm-up: recorded apart. What clients with a quota commit in it counts for the quota.
    pub warm_up: Nanoseconds,
    /// Measured time; if clients have quotas or throughput has to become steady, the longest.
    pub duration: Nanoseconds,
    /// How long throughput has to be steady before the step ends, in whole seconds and at least
    /// five; none if it ends by time or by quotas alone. The rule: the means of the fifths of that
    /// time differ by at most 20 %, and a line through them rises or falls by at most 10 %.
    pub until_steady: Option<Nanoseconds>,
    /// How long nothing may commit while clients fail to reconnect, before the step fails: usually [`GONE_LIMIT`]; none if
    /// the server is expected to be away and the caller makes sure that it comes back.
    pub gone_limit: Option<Nanoseconds>,
    /// Time limit of a statement; zero for none.
    pub statement_timeout: Nanoseconds,
    /// Retries of a transaction that failed for a transient reason.
    pub retries: u32,
    /// Threads; at least 1, at most one for each client.
    pub workers: usize,
    /// CPUs to bind workers to, round-robin; empty for none.
    pub cpus: Vec<u32>,
    /// Seed of the clients' streams and of the schedule.
    pub seed: Seed,
}

/// The usual [`StepSpec::gone_limit`].
pub const GONE_LIMIT: Nanoseconds = Nanoseconds::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Warm-up: recorded, not used for estimates.
    WarmUp,
    /// Measure: what estimates are made from.
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

/// Number of attempts by outcome; the indexes are those of [`OUTCOMES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcomes(pub [u64; OUTCOMES.len()]);

impl Outcomes {
    pub fn committed(&self) -> u64 {
        self.0[0]
    }

    /// Attempts that neither committed nor rolled back by design.
    pub fn failed(&self) -> u64 {
        self.0[2..].iter().sum()
    }

    pub fn add(&mut self, other: &Outcomes) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

/// One second of a step, all workers together.
#[derive(Clone, Debug)]
pub struct Interval {
    pub phase: Phase,
    pub start: Nanoseconds,
    /// Its length: one second, less only for the last one of a phase.
    pub length: Nanoseconds,
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
    /// Statements and rows of the attempts that ended in it.
    pub tally: Tally,
}

/// Bins of an interval, in which commits are counted separately.
pub const BINS: usize = 10;

/// Length of a bin; what is done after the last one is counted in it.
pub const BIN_LENGTH: Nanoseconds = Nanoseconds::from_millis(100);

/// One kind of transaction in one interval. An attempt belongs to the interval in which it is done.
#[derive(Clone, Debug)]
pub struct KindInterval {
    pub outcomes: Outcomes,
    /// Response times, done − due, in ns, of committed transactions.
    pub response: Histogram<u64>,
    /// Service times, done − sent, in ns, of committed transactions.
    pub service: Histogram<u64>,
    /// Commits in each [`BIN_LENGTH`] of the interval, by when they were done.
    pub bins: [u32; BINS],
}

/// The totals of a whole step; sums are over the measurement phase.
#[derive(Clone, Debug)]
pub struct StepTotals {
    pub measure_began: Nanoseconds,
    pub measure_ended: Nanoseconds,
    pub measured: Interval,
    pub generator: GeneratorUse,
    /// First message of each outcome that was an error.
    pub error_examples: BTreeMap<&'static str, String>,
    /// Attempts that had been sent, or were just being sent, and were not done when the measurement
    /// phase ended. They are in no interval: whether they committed is not known.
    pub in_flight_at_end: u64,
    /// Whether it was stopped early; then all sums are over the whole intervals before the stop.
    pub aborted: bool,
    /// How it ended; says nothing about a step that was aborted.
    pub ended_by: EndedBy,
    /// What the clients of each role did, in the order of the roles; a load without roles counts
    /// as one whose name is empty.
    pub roles: Vec<RoleTotals>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedBy {
    /// Its duration was over, and no client had a quota.
    Time,
    /// All quotas were done; or all clients had ended by themselves.
    Quota,
    Steady,
    /// Its duration was over, and quotas were not done: [`StepTotals::roles`] says whose.
    Limit,
    /// Its duration was over, and throughput had not become steady.
    Unsteady,
}

/// What the clients of one role did, warm-up included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleTotals {
    /// The role's name; empty if the load has no roles.
    pub name: Name,
    pub clients: usize,
    /// Transactions they committed before the step ended.
    pub committed: u64,
    /// Clients whose quota was not done when the step ended; 0 if there is none.
    pub unfinished: usize,
}

/// What the workers used in the measurement phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GeneratorUse {
    /// User CPU time of all workers, if the kernel reports it.
    pub cpu_user: Nanoseconds,
    pub cpu_system: Nanoseconds,
    /// Time that workers were ready to run and waited for a CPU, if the kernel reports it.
    pub run_queue: Option<Nanoseconds>,
    /// CPU time of the busiest worker as a share of the measurement phase.
    pub busiest_worker: f64,
    pub workers: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError(pub String);

impl std::fmt::Display for LoadError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)?;
        // Wherever it happens: epoll sets, sockets, files of a database in this process.
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
