//! Counters of pgbench scripts, as pgbench counts. Each is written by one client, and read at any time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use dyno_units::Nanoseconds;

/// Number, extremes and sums of values, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    pub count: u64,
    pub min: u64,
    pub max: u64,
    pub sum: u64,
    pub sum_of_squares: f64,
}

impl Moments {
    pub fn push(&mut self, value: u64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += value;
        self.sum_of_squares += value as f64 * value as f64;
    }

    pub fn add(&mut self, other: &Moments) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
    }
}

/// Least, greatest, sum, sum of squares (the bits of a double), and number.
#[derive(Debug, Default)]
struct MomentCells([AtomicU64; 5]);

impl MomentCells {
    fn push(&self, value: u64) {
        let mut moments = self.read();
        moments.push(value);
        let Moments { count, min, max, sum, sum_of_squares } = moments;
        for (cell, value) in self.0.iter().zip([min, max, sum, sum_of_squares.to_bits(), count]) {
            cell.store(value, Relaxed);
        }
    }

    fn read(&self) -> Moments {
        let [min, max, sum, squares, count] = self.0.each_ref().map(|cell| cell.load(Relaxed));
        Moments { count, min, max, sum, sum_of_squares: f64::from_bits(squares) }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ScriptTotals {
    pub committed: u64,
    /// Transactions that were not begun, because they were too late.
    pub skipped: u64,
    pub retries: u64,
    pub retried: u64,
    /// Transactions that failed in the end by a serialization failure.
    pub serialization: u64,
    /// Transactions that failed in the end by a deadlock.
    pub deadlock: u64,
    /// Transactions that failed by another error, after which their client went on.
    pub other: u64,
    pub late: u64,
    /// Latencies of those that were done, if they are measured.
    pub latency: Moments,
    /// How late they began, under a rate.
    pub lag: Moments,
}

impl ScriptTotals {
    pub fn failed(&self) -> u64 {
        self.serialization + self.deadlock + self.other
    }

    /// Transactions that have ended in any way.
    pub fn ended(&self) -> u64 {
        self.committed + self.skipped + self.failed()
    }

    pub fn add(&mut self, other: &ScriptTotals) {
        self.committed += other.committed;
        self.skipped += other.skipped;
        self.retries += other.retries;
        self.retried += other.retried;
        self.serialization += other.serialization;
        self.deadlock += other.deadlock;
        self.other += other.other;
        self.late += other.late;
        self.latency.add(&other.latency);
        self.lag.add(&other.lag);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    Serialization,
    Deadlock,
    Other,
}

#[derive(Debug, Default)]
struct ScriptCells {
    committed: AtomicU64,
    skipped: AtomicU64,
    retries: AtomicU64,
    retried: AtomicU64,
    failed: [AtomicU64; 3],
    late: AtomicU64,
    latency: MomentCells,
    lag: MomentCells,
}

/// Adds to a counter that has one writer.
#[inline]
fn add(cell: &AtomicU64, n: u64) {
    cell.store(cell.load(Relaxed) + n, Relaxed);
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CommandTotals {
    pub count: u64,
    pub sum_us: u64,
    /// Retries of transactions that failed in it.
    pub retries: u64,
    /// Failures in it that were not retried.
    pub failures: u64,
}

/// Those of [`CommandTotals`], in their order.
type CommandCells = [AtomicU64; 4];

#[derive(Debug)]
pub(super) struct ClientCells {
    scripts: Vec<ScriptCells>,
    commands: Vec<Vec<CommandCells>>,
    began: AtomicU64,
    latest: AtomicU64,
    connects: AtomicU64,
    connecting: AtomicU64,
}

impl ClientCells {
    #[inline]
    pub(super) fn committed(&self, script: usize) {
        add(&self.scripts[script].committed, 1);
    }

    pub(super) fn skipped(&self, script: usize) {
        add(&self.scripts[script].skipped, 1);
    }

    pub(super) fn failed(&self, script: usize, failure: Failure) {
        add(&self.scripts[script].failed[failure as usize], 1);
    }

    pub(super) fn retried(&self, script: usize, n: u64) {
        add(&self.scripts[script].retries, n);
        add(&self.scripts[script].retried, 1);
    }

    pub(super) fn measured(&self, script: usize, latency_us: u64, lag_us: Option<u64>) {
        self.scripts[script].latency.push(latency_us);
        if let Some(lag_us) = lag_us {
            self.scripts[script].lag.push(lag_us);
        }
    }

    pub(super) fn late(&self, script: usize) {
        add(&self.scripts[script].late, 1);
    }

    pub(super) fn command_done(&self, script: usize, command: usize, took_us: u64) {
        let [count, sum_us, ..] = &self.commands[script][command];
        add(sum_us, took_us);
        add(count, 1);
    }

    pub(super) fn command_failed(&self, script: usize, command: usize, is_retried: bool) {
        let Some([.., retries, failures]) = self.commands[script].get(command) else { return };
        add(if is_retried { retries } else { failures }, 1);
    }

    pub(super) fn began(&self, at: Nanoseconds) {
        self.began.store(at.0, Relaxed);
        self.latest.store(at.0, Relaxed);
    }

    #[inline]
    pub(super) fn active(&self, at: Nanoseconds) {
        self.latest.store(at.0, Relaxed);
    }

    pub(super) fn connected(&self, took: Nanoseconds) {
        add(&self.connects, 1);
        add(&self.connecting, took.0);
    }
}

#[derive(Debug, Default)]
pub struct Statistics {
    clients: Mutex<Vec<Arc<ClientCells>>>,
    initial_connecting: AtomicU64,
    n_aborted: AtomicU64,
}

impl Statistics {
    /// The counters of a new client; `commands` is the number of commands of each script.
    pub(super) fn client(&self, commands: &[usize]) -> Arc<ClientCells> {
        let of_script = |n: &usize| (0..*n).map(|_| CommandCells::default()).collect();
        let scripts = commands.iter().map(|_| ScriptCells::default()).collect();
        let commands = commands.iter().map(of_script).collect();
        let [began, latest, connects, connecting] = [u64::MAX, 0, 0, 0].map(AtomicU64::new);
        let cells = ClientCells { scripts, commands, began, latest, connects, connecting };
        let cells = Arc::new(cells);
        self.clients.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&cells));
        cells
    }

    pub(super) fn connected(&self, took: Nanoseconds) {
        self.initial_connecting.store(took.0, Relaxed);
    }

    /// Counts a client that was aborted; returns how many there are.
    pub(super) fn aborted(&self) -> u64 {
        self.n_aborted.fetch_add(1, Relaxed) + 1
    }

    fn read<T>(&self, read: impl FnMut(&Arc<ClientCells>) -> T) -> Vec<T> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner).iter().map(read).collect()
    }

    pub fn n_aborted(&self) -> u64 {
        self.n_aborted.load(Relaxed)
    }

    /// How long it took to open the connections before the first transaction.
    pub fn initial_connecting(&self) -> Nanoseconds {
        Nanoseconds(self.initial_connecting.load(Relaxed))
    }

    /// How often clients connected for a transaction, and the time it took in all.
    pub fn connects(&self) -> (u64, Nanoseconds) {
        let all = self.read(|one| (one.connects.load(Relaxed), one.connecting.load(Relaxed)));
        (all.iter().map(|one| one.0).sum(), Nanoseconds(all.iter().map(|one| one.1).sum()))
    }

    /// When the first client began and the last one did something, by the lab's clock; none before.
    pub fn span(&self) -> Option<(Nanoseconds, Nanoseconds)> {
        let all = self.read(|one| (one.began.load(Relaxed), one.latest.load(Relaxed)));
        let began = all.iter().map(|one| one.0).min().filter(|at| *at < u64::MAX)?;
        let latest = all.iter().map(|one| one.1).max()?;
        Some((Nanoseconds(began), Nanoseconds(latest.max(began))))
    }

    pub fn scripts(&self) -> Vec<ScriptTotals> {
        let mut totals: Vec<ScriptTotals> = Vec::new();
        for client in self.read(Arc::clone) {
            totals.resize(client.scripts.len(), ScriptTotals::default());
            for (total, cells) in totals.iter_mut().zip(&client.scripts) {
                let failed = |failure: Failure| cells.failed[failure as usize].load(Relaxed);
                total.add(&ScriptTotals {
                    committed: cells.committed.load(Relaxed),
                    skipped: cells.skipped.load(Relaxed),
                    retries: cells.retries.load(Relaxed),
                    retried: cells.retried.load(Relaxed),
                    serialization: failed(Failure::Serialization),
                    deadlock: failed(Failure::Deadlock),
                    other: failed(Failure::Other),
                    late: cells.late.load(Relaxed),
                    latency: cells.latency.read(),
                    lag: cells.lag.read(),
                });
            }
        }
        totals
    }

    pub fn commands(&self, script: usize) -> Vec<CommandTotals> {
        let mut totals: Vec<CommandTotals> = Vec::new();
        for client in self.read(Arc::clone) {
            let Some(commands) = client.commands.get(script) else { continue };
            totals.resize(commands.len(), CommandTotals::default());
            for (total, cells) in totals.iter_mut().zip(commands) {
                let [count, sum_us, retries, failures] = cells.each_ref().map(|n| n.load(Relaxed));
                total.count += count;
                total.sum_us += sum_us;
                total.retries += retries;
                total.failures += failures;
            }
        }
        totals
    }
}
