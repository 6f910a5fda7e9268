//! Connections of a job whose statements take as long as they take, and can be cancelled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use dyno_units::{Clock, Nanoseconds};
use dyno_workload::{Connection, Connector};

use super::{POLL, Surroundings};
use crate::trial::TrialError;

/// How often what is still running is cancelled, once it has to stop: the statement of a connection may
/// begin just after it was cancelled.
const CANCEL_EVERY: Nanoseconds = Nanoseconds::SECOND;

/// How long connecting and cancelling may take.
const COLD_LIMIT: Nanoseconds = Nanoseconds::from_secs(600);

type Connections = Vec<Box<dyn Connection>>;

/// Makes the connections of a job, and cancels what they do.
pub(super) struct Sessions {
    connector: Connector,
    clock: Arc<dyn Clock>,
}

impl Sessions {
    pub(super) fn new(connector: Connector, clock: &Arc<dyn Clock>) -> Sessions {
        Sessions { connector, clock: Arc::clone(clock) }
    }

    /// This many connections, and the numbers of their sessions.
    pub(super) fn connect(&self, n: usize) -> Result<(Connections, Vec<u64>), TrialError> {
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
    pub(super) fn watch(
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
