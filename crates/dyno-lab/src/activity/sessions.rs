//! Connections of a job. Their statements have no time limit, and can be cancelled.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use dyno_units::{Clock, Nanoseconds, locked};
use dyno_workload::{Connection, Connector};

use super::job::{Figures, JobEnd};
use super::{POLL, Surroundings};
use crate::error::{Result, TrialError};

/// Cancelling is repeated, because a connection's statement may begin just after it was cancelled.
const CANCEL_EVERY: Nanoseconds = Nanoseconds::SECOND;

const COLD_LIMIT: Nanoseconds = Nanoseconds::from_secs(600);

type Connections = Vec<Box<dyn Connection>>;

/// What the connections of a job share while they work.
pub(super) struct Work {
    is_stopped: AtomicBool,
    failure: Mutex<Option<String>>,
}

impl Work {
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Stops all. What fails because the job was stopped is no news.
    pub(super) fn fail(&self, why: String) {
        if !self.is_stopped.swap(true, Ordering::Relaxed) {
            *locked(&self.failure) = Some(why);
        }
    }
}

pub(super) struct Worked {
    began: Nanoseconds,
    pub(super) took: Nanoseconds,
    pub(super) failure: Option<String>,
}

impl Worked {
    pub(super) fn into_end(
        self,
        (name, at): (&str, &Surroundings<'_, '_, '_>),
        is_done: bool,
        (figures, output): (Figures, Vec<String>),
    ) -> JobEnd {
        let Worked { began, took, failure } = self;
        let stopped = if is_done { "ended" } else { "was stopped at the end of the measured time" };
        let ended = failure.clone().unwrap_or_else(|| stopped.to_owned());
        let failure = failure.filter(|_| !at.stop.is_raised());
        let failure = failure.map(|why| TrialError::new(format!("the job `{name}` {why}")));
        JobEnd { began, took, ended, is_done, output, figures, failure }
    }
}

pub(super) struct Sessions {
    connector: Connector,
    pub(super) clock: Arc<dyn Clock>,
}

impl Sessions {
    pub(super) fn new(connector: Connector, clock: &Arc<dyn Clock>) -> Sessions {
        Sessions { connector, clock: Arc::clone(clock) }
    }

    /// Has this many connections do their work, each on a thread of its own, until none has more to do.
    pub(super) fn work(
        &self,
        n: usize,
        at: &Surroundings<'_, '_, '_>,
        work: impl Fn(&mut dyn Connection, &Work) + Sync,
    ) -> Result<Worked> {
        let (mut connections, ids) = self.connect(n)?;
        let is_stopped = AtomicBool::new(at.stop.is_raised());
        let shared = Work { is_stopped, failure: Mutex::default() };
        let n_alive = AtomicUsize::new(n);
        let began = self.clock.now();
        thread::scope(|scope| {
            let (work, shared, n_alive) = (&work, &shared, &n_alive);
            for connection in &mut connections {
                scope.spawn(move || {
                    work(connection.as_mut(), shared);
                    n_alive.fetch_sub(1, Ordering::Release);
                });
            }
            self.watch((n_alive, &shared.is_stopped), &ids, at);
        });
        let took = self.clock.now().saturating_sub(began);
        let failure = shared.failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Worked { began, took, failure })
    }

    fn connect(&self, n: usize) -> Result<(Connections, Vec<u64>)> {
        let (mut connections, mut ids) = (Vec::new(), Vec::new());
        for _ in 0..n {
            let mut connection = (self.connector)()?;
            connection.set_cold_limit(COLD_LIMIT.0);
            ids.extend(dyno_database::session(connection.as_mut()));
            // A statement of the job takes as long as it takes.
            connection.set_cold_limit(0);
            connections.push(connection);
        }
        Ok((connections, ids))
    }

    /// Waits until all connections have no more to do; cancels what they do if the step stops.
    fn watch(
        &self,
        (n_alive, is_stopped): (&AtomicUsize, &AtomicBool),
        ids: &[u64],
        at: &Surroundings<'_, '_, '_>,
    ) {
        let mut next_cancel = Nanoseconds::ZERO;
        while n_alive.load(Ordering::Acquire) > 0 {
            let stops = at.stop.is_raised() || is_stopped.load(Ordering::Relaxed);
            if stops && self.clock.now() >= next_cancel {
                is_stopped.store(true, Ordering::Relaxed);
                next_cancel = self.clock.now() + CANCEL_EVERY;
                // What cannot be cancelled ends by itself, and the step waits for it.
                if let Ok(mut connection) = (self.connector)() {
                    connection.set_cold_limit(COLD_LIMIT.0);
                    for id in ids {
                        let _ = dyno_database::cancel(connection.as_mut(), *id);
                    }
                }
            }
            self.clock.sleep_until(self.clock.now() + POLL);
        }
    }
}
