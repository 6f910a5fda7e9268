//! Counters of sysbench scripts, as sysbench counts. Each is written by one client, and read at any time.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use dyno_sysbench::{BUCKETS, Counter, Counters, Histogram, bucket_of};
use dyno_units::Nanoseconds;

// The hot fields fill one cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct ClientCells {
    /// The counters that the script can read, too.
    pub counters: Arc<Counters>,
    buckets: Box<[AtomicU32]>,
    min: AtomicU64,
    max: AtomicU64,
    sum: AtomicU64,
    latest: AtomicU64,
    is_running: AtomicBool,
    is_in_event: AtomicBool,
    began: AtomicU64,
}

impl Default for ClientCells {
    fn default() -> ClientCells {
        let (counters, buckets) =
            (Arc::default(), (0..BUCKETS).map(|_| AtomicU32::new(0)).collect());
        let [min, began] = [u64::MAX; 2].map(AtomicU64::new);
        let [max, sum, latest] = [0; 3].map(AtomicU64::new);
        let [is_running, is_in_event] = [false; 2].map(AtomicBool::new);
        ClientCells { counters, buckets, min, max, sum, latest, is_running, is_in_event, began }
    }
}

impl ClientCells {
    pub fn began(&self, at: Nanoseconds) {
        if !self.is_running.load(Relaxed) && self.began.load(Relaxed) == u64::MAX {
            self.began.store(at.0, Relaxed);
            self.is_running.store(true, Relaxed);
        }
        self.latest.store(at.0.max(self.latest.load(Relaxed)), Relaxed);
    }

    pub fn event_began(&self) {
        self.is_in_event.store(true, Relaxed);
    }

    pub fn event_ended(&self, at: Nanoseconds, took: Nanoseconds) {
        self.counters.add(Counter::Event, 1);
        let bucket = &self.buckets[bucket_of(took.0 as f64 / 1e6)];
        bucket.store(bucket.load(Relaxed) + 1, Relaxed);
        self.min.store(self.min.load(Relaxed).min(took.0), Relaxed);
        self.max.store(self.max.load(Relaxed).max(took.0), Relaxed);
        self.sum.store(self.sum.load(Relaxed) + took.0, Relaxed);
        self.latest.store(at.0, Relaxed);
        self.is_in_event.store(false, Relaxed);
    }

    /// Counts a statement as sysbench does: by what it has returned or changed.
    #[inline]
    pub(super) fn answered(&self, has_rows: bool, changed: u64) {
        let counter = match (has_rows, changed) {
            (true, _) => Counter::Read,
            (false, 0) => Counter::Other,
            (false, _) => Counter::Write,
        };
        self.counters.add(counter, 1);
    }

    pub fn ended(&self, at: Nanoseconds) {
        self.latest.store(at.0.max(self.latest.load(Relaxed)), Relaxed);
        self.is_running.store(false, Relaxed);
        self.is_in_event.store(false, Relaxed);
    }
}

#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub reads: u64,
    pub writes: u64,
    pub others: u64,
    pub errors: u64,
    pub reconnects: u64,
    pub events: u64,
    /// Latencies, by sysbench's buckets.
    pub latencies: Histogram,
    pub sum: Nanoseconds,
    /// The least of all so far; none before the first.
    pub min: Option<Nanoseconds>,
    /// The greatest of all so far.
    pub max: Nanoseconds,
    pub running: usize,
    /// Clients whose event is under way.
    pub in_event: usize,
    /// Events and sums of latencies of each client.
    pub clients: Vec<(u64, Nanoseconds)>,
}

impl Snapshot {
    /// What came after `before`; extremes are of the whole time.
    #[must_use]
    pub fn since(&self, before: &Snapshot) -> Snapshot {
        let clients = self.clients.iter().enumerate().map(|(idx, (events, sum))| {
            let then = before.clients.get(idx).copied().unwrap_or_default();
            (events - then.0, sum.saturating_sub(then.1))
        });
        Snapshot {
            reads: self.reads - before.reads,
            writes: self.writes - before.writes,
            others: self.others - before.others,
            errors: self.errors - before.errors,
            reconnects: self.reconnects - before.reconnects,
            events: self.events - before.events,
            latencies: self.latencies.since(&before.latencies),
            sum: self.sum.saturating_sub(before.sum),
            clients: clients.collect(),
            ..self.clone()
        }
    }

    pub fn queries(&self) -> u64 {
        self.reads + self.writes + self.others
    }
}

#[derive(Debug, Default)]
pub struct Statistics {
    clients: Mutex<Vec<Arc<ClientCells>>>,
    uses_database: AtomicBool,
}

impl Statistics {
    pub fn client(&self) -> Arc<ClientCells> {
        let cells = Arc::new(ClientCells::default());
        self.clients.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&cells));
        cells
    }

    pub(super) fn connected(&self) {
        self.uses_database.store(true, Relaxed);
    }

    /// Whether a script has asked for a connection.
    pub fn uses_database(&self) -> bool {
        self.uses_database.load(Relaxed)
    }

    /// When the first client began and the last one did something, by the lab's clock; none before.
    pub fn span(&self) -> Option<(Nanoseconds, Nanoseconds)> {
        let clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let began = clients.iter().map(|one| one.began.load(Relaxed)).min();
        let began = began.filter(|at| *at < u64::MAX)?;
        let latest = clients.iter().map(|one| one.latest.load(Relaxed)).max()?;
        Some((Nanoseconds(began), Nanoseconds(latest.max(began))))
    }

    pub fn snapshot(&self) -> Snapshot {
        let mut all = Snapshot::default();
        for client in self.clients.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let get = |counter| client.counters.get(counter);
            let (events, sum) = (get(Counter::Event), Nanoseconds(client.sum.load(Relaxed)));
            all.reads += get(Counter::Read);
            all.writes += get(Counter::Write);
            all.others += get(Counter::Other);
            all.errors += get(Counter::Error);
            all.reconnects += get(Counter::Reconnect);
            all.events += events;
            all.sum += sum;
            for (bucket, count) in client.buckets.iter().enumerate() {
                all.latencies.add(bucket, count.load(Relaxed).into());
            }
            let min = Some(client.min.load(Relaxed)).filter(|min| *min < u64::MAX);
            all.min = [all.min, min.map(Nanoseconds)].into_iter().flatten().min();
            all.max = all.max.max(Nanoseconds(client.max.load(Relaxed)));
            all.running += usize::from(client.is_running.load(Relaxed));
            all.in_event += usize::from(client.is_in_event.load(Relaxed));
            if client.began.load(Relaxed) < u64::MAX {
                all.clients.push((events, sum));
            }
        }
        all
    }
}
