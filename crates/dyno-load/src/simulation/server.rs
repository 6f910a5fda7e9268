//! A server that is a queue with known theory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::{Arc, Mutex, MutexGuard};

use dyno_units::{Clock, ManualClock, Nanoseconds, RandomStream, Seed, locked};
use dyno_workload::{ConnectError, Connection, Dialect, ErrorClass, StatementError};

use super::store::{SimulatedConnection, Store, WriteLock, refused};

/// One queue, first come, first served, with several places that serve statements in parallel:
/// G/G/c in Kendall's notation, M/M/c with Poisson arrivals and exponential service times. Stalls
/// and outages count from the beginning of the measurement phase.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedServer {
    /// At least 1.
    pub servers: usize,
    pub service: ServiceTime,
    /// When nothing is served: start and length, in order, not overlapping.
    pub stalls: Vec<(Nanoseconds, Nanoseconds)>,
    /// When the server is down: statements in flight lose their connection, new ones are refused.
    pub outages: Vec<(Nanoseconds, Nanoseconds)>,
    /// Shares, in [0, 1], of prepared statements that fail; ROLLBACK and other text does not.
    /// [`ErrorClass::TimedOut`] means no reply.
    pub errors: Vec<(ErrorClass, f64)>,
    /// Growth of service times in an hour of the measurement phase, as a share.
    pub drift: f64,
    pub noise: Option<Noise>,
    /// With a store, the store's.
    pub dialect: Dialect,
    /// Without a store a read returns one row, none to keep, and a write reports one row changed.
    pub store: Option<Store>,
    pub seed: Seed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceTime {
    Constant(Nanoseconds),
    /// The mean.
    Exponential(Nanoseconds),
}

impl ServiceTime {
    pub fn mean(self) -> Nanoseconds {
        match self {
            ServiceTime::Constant(mean) | ServiceTime::Exponential(mean) => mean,
        }
    }

    pub fn scaled(self, factor: f64) -> ServiceTime {
        let scale = |mean: Nanoseconds| Nanoseconds((mean.0 as f64 * factor) as u64);
        match self {
            ServiceTime::Constant(mean) => ServiceTime::Constant(scale(mean)),
            ServiceTime::Exponential(mean) => ServiceTime::Exponential(scale(mean)),
        }
    }
}

/// The logarithm of service times follows a first-order autoregressive process with one step a
/// second; the mean of service times stays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Of the logarithm; about the relative deviation of service times.
    pub deviation: f64,
    /// Of one second with the next, in [0, 1).
    pub correlation: f64,
}

impl SimulatedServer {
    /// Without faults, and speaking MySQL.
    pub fn new(servers: usize, service: ServiceTime) -> SimulatedServer {
        SimulatedServer {
            servers,
            service,
            stalls: Vec::new(),
            outages: Vec::new(),
            errors: Vec::new(),
            drift: 0.0,
            noise: None,
            // Nothing is parsed.
            dialect: Dialect::ALL[0],
            store: None,
            seed: Seed(0),
        }
    }

    pub fn with_store(self, store: Store) -> SimulatedServer {
        SimulatedServer { store: Some(store), ..self }
    }

    pub fn with_seed(self, seed: Seed) -> SimulatedServer {
        SimulatedServer { seed, ..self }
    }

    pub fn with_stall(mut self, start: Nanoseconds, length: Nanoseconds) -> SimulatedServer {
        self.stalls.push((start, length));
        self.stalls.sort_unstable();
        self
    }

    pub fn with_outage(mut self, start: Nanoseconds, length: Nanoseconds) -> SimulatedServer {
        self.outages.push((start, length));
        self.outages.sort_unstable();
        self
    }

    pub fn with_errors(mut self, class: ErrorClass, share: f64) -> SimulatedServer {
        self.errors.push((class, share));
        self
    }

    pub fn with_drift(self, drift: f64) -> SimulatedServer {
        SimulatedServer { drift, ..self }
    }

    pub fn with_noise(self, noise: Noise) -> SimulatedServer {
        SimulatedServer { noise: Some(noise), ..self }
    }
}

/// Clones share it.
#[derive(Clone)]
pub(super) struct Queue {
    clock: Arc<ManualClock>,
    // A simulation has one thread, but connections are `Send`.
    inner: Arc<Mutex<Inner>>,
}

pub(super) struct Inner {
    server: SimulatedServer,
    measure_began: Nanoseconds,
    random: RandomStream,
    // When each place becomes free.
    places: BinaryHeap<Reverse<Nanoseconds>>,
    completions: BinaryHeap<Reverse<(Nanoseconds, usize)>>,
    n_connections: usize,
    noise_level: f64,
    noise_second: u64,
    write_lock: WriteLock,
    // Of statements whose connections may now write.
    granted: BTreeMap<usize, Fate>,
}

/// When a statement completes, if ever, and its result.
pub(super) type Fate = (Option<Nanoseconds>, Result<(), ErrorClass>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MayFail {
    Yes,
    No,
}

impl Queue {
    pub(super) fn new(
        server: &SimulatedServer,
        clock: &Arc<ManualClock>,
        measure_began: Nanoseconds,
    ) -> Queue {
        let mut random = server.seed.derive("simulated server", 0).stream();
        // Begins in the steady state.
        let noise_level = server.noise.map_or(0.0, |noise| noise.deviation * random.normal());
        let inner = Inner {
            server: server.clone(),
            measure_began,
            random,
            places: vec![Reverse(Nanoseconds::ZERO); server.servers.max(1)].into(),
            completions: BinaryHeap::new(),
            n_connections: 0,
            noise_level,
            noise_second: noise_second(clock.now(), measure_began),
            write_lock: WriteLock::default(),
            granted: BTreeMap::new(),
        };
        Queue { clock: Arc::clone(clock), inner: Arc::new(Mutex::new(inner)) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        locked(&self.inner)
    }

    pub(super) fn now(&self) -> Nanoseconds {
        self.clock.now()
    }

    pub(super) fn release(&self, connection: usize) {
        let now = self.now();
        self.lock().release(now, connection);
    }

    pub(super) fn connect(&self) -> Result<Box<dyn Connection>, ConnectError> {
        let mut inner = self.lock();
        if inner.outage_at(self.clock.now()).is_some() {
            return Err(refused("it has an outage"));
        }
        let rows = inner.server.store.as_ref().map(Store::connect).transpose()?;
        inner.n_connections += 1;
        let number = inner.n_connections;
        let dialect = inner.server.dialect;
        Ok(Box::new(SimulatedConnection::new(number, self.clone(), dialect, rows)))
    }

    pub(super) fn newest_connection(&self) -> usize {
        self.lock().n_connections
    }

    pub(super) fn next_completion(&self) -> Option<Nanoseconds> {
        self.lock().completions.peek().map(|Reverse((at, _))| *at)
    }

    /// Passes connections whose statements are over by `now`, in order.
    pub(super) fn take_completed(&self, now: Nanoseconds, mut completed: impl FnMut(usize)) {
        let completions = &mut self.lock().completions;
        while let Some(&Reverse((at, connection))) = completions.peek()
            && at <= now
        {
            completions.pop();
            completed(connection);
        }
    }
}

impl Inner {
    pub(super) fn submit(&mut self, now: Nanoseconds, number: usize, may_fail: MayFail) -> Fate {
        let fate = self.decide(now, may_fail);
        if let Some(at) = fate.0 {
            self.completions.push(Reverse((at, number)));
        }
        fate
    }

    /// For a statement that writes; `None` if it has to wait: then see [`Inner::take_granted`].
    pub(super) fn submit_writing(
        &mut self,
        now: Nanoseconds,
        connection: usize,
        may_fail: MayFail,
    ) -> Option<Fate> {
        self.write_lock.ask(connection, may_fail).then(|| self.submit(now, connection, may_fail))
    }

    pub(super) fn take_granted(&mut self, connection: usize) -> Option<Fate> {
        self.granted.remove(&connection)
    }

    fn release(&mut self, now: Nanoseconds, connection: usize) {
        self.granted.remove(&connection);
        if let Some((next, may_fail)) = self.write_lock.leave(connection) {
            let fate = self.submit(now, next, may_fail);
            self.granted.insert(next, fate);
        }
    }

    fn decide(&mut self, now: Nanoseconds, may_fail: MayFail) -> Fate {
        if self.outage_at(now).is_some() {
            return (Some(now), Err(ErrorClass::Disconnected));
        }
        let work = self.draw_work(now);
        // In order of time, the place that is free first is the same as one queue.
        let free = self.places.pop().map_or(now, |Reverse(free)| free);
        let finish = self.finish(free.max(now), work);
        self.places.push(Reverse(finish));
        let starts = self.server.outages.iter().map(|(start, _)| self.measure_began + *start);
        if let Some(lost) = starts.filter(|start| (now..=finish).contains(start)).min() {
            return (Some(lost), Err(ErrorClass::Disconnected));
        }
        let error = if may_fail == MayFail::Yes { self.draw_error() } else { None };
        match error {
            Some(ErrorClass::TimedOut) => (None, Err(ErrorClass::TimedOut)),
            Some(class) => (Some(finish), Err(class)),
            None => (Some(finish), Ok(())),
        }
    }

    fn draw_work(&mut self, now: Nanoseconds) -> Nanoseconds {
        let ns = match self.server.service {
            ServiceTime::Constant(time) => time.0 as f64,
            ServiceTime::Exponential(mean) => self.random.exponential(mean.0 as f64),
        };
        let hours = now.saturating_sub(self.measure_began).as_secs_f64() / 3600.0;
        Nanoseconds((ns * (1.0 + self.server.drift * hours) * self.slowdown(now)) as u64)
    }

    fn slowdown(&mut self, now: Nanoseconds) -> f64 {
        let Some(Noise { deviation, correlation }) = self.server.noise else { return 1.0 };
        let second = noise_second(now, self.measure_began);
        while self.noise_second < second {
            let fresh = deviation * (1.0 - correlation * correlation).sqrt() * self.random.normal();
            self.noise_level = correlation * self.noise_level + fresh;
            self.noise_second += 1;
        }
        // The mean of a log-normal variable is exp(μ + σ²/2).
        (self.noise_level - deviation * deviation / 2.0).exp()
    }

    fn draw_error(&mut self) -> Option<ErrorClass> {
        if self.server.errors.is_empty() {
            return None;
        }
        let mut drawn = self.random.unit();
        for (class, share) in &self.server.errors {
            if drawn < *share {
                return Some(*class);
            }
            drawn -= share;
        }
        None
    }

    fn finish(&self, begin: Nanoseconds, work: Nanoseconds) -> Nanoseconds {
        let (mut at, mut left) = (begin, work);
        for (start, length) in &self.server.stalls {
            let start = self.measure_began + *start;
            let end = start + *length;
            if at + left <= start {
                break;
            }
            if at < end {
                left = left.saturating_sub(start.saturating_sub(at));
                at = end;
            }
        }
        at + left
    }

    fn outage_at(&self, now: Nanoseconds) -> Option<Nanoseconds> {
        self.server
            .outages
            .iter()
            .map(|(start, length)| (self.measure_began + *start, *length))
            .find(|(start, length)| (*start..*start + *length).contains(&now))
            .map(|(start, _)| start)
    }
}

/// The second, in which noise is constant. Seconds begin with the measurement phase's intervals.
fn noise_second(now: Nanoseconds, measure_began: Nanoseconds) -> u64 {
    let second = Nanoseconds::SECOND.0;
    (now.0 + second - measure_began.0 % second) / second
}

pub(super) fn injected_failure(class: ErrorClass) -> StatementError {
    StatementError::new(class, class.name(), "a failure was injected by the simulated server")
}
