//! How long set-up work waits, and how the user ends every wait for a server.

use std::sync::atomic::{AtomicU32, Ordering};

use dyno_units::Nanoseconds;

/// How long set-up work may take in all, what the server sends meanwhile included: to log in, to
/// ask for version and settings, to use the catalog, to prepare.
pub(crate) const SET_UP_LIMIT: Nanoseconds = Nanoseconds::from_secs(30);

/// How often the user has stopped Dyno: a signal is the process's, not a connection's.
static N_STOPS: AtomicU32 = AtomicU32::new(0);

/// How often the user has stopped Dyno, for work that waits for nothing and may take its time.
pub(crate) fn n_stops() -> u32 {
    N_STOPS.load(Ordering::Relaxed)
}

/// Ends every wait for a server that goes on now: set-up work at once, other cold calls after ten
/// more seconds. Their connections are lost. What begins after it waits as ever, so that a run can
/// be torn down.
pub fn stop_waiting() {
    N_STOPS.fetch_add(1, Ordering::Relaxed);
}
