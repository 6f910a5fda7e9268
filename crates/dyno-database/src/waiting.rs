//! How long set-up work waits, and how the user ends waits for servers.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use dyno_units::Nanoseconds;

/// For all set-up work, whatever the server sends: login, settings, catalog, preparing.
pub(crate) const SET_UP_LIMIT: Nanoseconds = Nanoseconds::from_secs(30);

/// After the user's stop, before a server is trusted with what is left to clean up: one that works
/// answers at once, and waiting for one that does not delays the end.
pub(crate) const STOPPED_LIMIT: Nanoseconds = Nanoseconds::from_secs(5);

/// How often the user has stopped Dyno: a signal is the process's, not a connection's.
static N_STOPS: AtomicU32 = AtomicU32::new(0);

static IS_OVER: AtomicBool = AtomicBool::new(false);

/// How often the user has stopped Dyno, for work that does not wait and may take long.
pub(crate) fn n_stops() -> u32 {
    N_STOPS.load(Ordering::Relaxed)
}

/// Ends all waits for servers: set-up work at once, other cold calls after ten seconds; their
/// connections are lost. Later set-up work has five seconds, so that a run can be torn down without a
/// silent server delaying it.
pub fn stop_waiting() {
    N_STOPS.fetch_add(1, Ordering::Relaxed);
}

/// Ends every wait for a server, now and later: nothing that was begun is worth a wait.
pub fn wait_no_more() {
    IS_OVER.store(true, Ordering::Relaxed);
    stop_waiting();
}

/// Allows later waits again, for whoever cleans up.
pub(crate) fn wait_again() {
    IS_OVER.store(false, Ordering::Relaxed);
}

pub(crate) fn is_over() -> bool {
    IS_OVER.load(Ordering::Relaxed)
}
