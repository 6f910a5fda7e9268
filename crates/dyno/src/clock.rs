//! The real clock.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use dyno_units::{Clock, Nanoseconds};

/// The machine's clock; its origin is when it was made.
pub(crate) struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// Starts the clock.
    #[expect(clippy::disallowed_methods, reason = "this is the one real clock")]
    pub(crate) fn start() -> SystemClock {
        SystemClock { origin: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Nanoseconds {
        Nanoseconds::from(self.origin.elapsed())
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one real clock")]
    fn unix_millis(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        since.as_millis() as u64
    }

    fn sleep_until(&self, until: Nanoseconds) {
        std::thread::sleep(until.saturating_sub(self.now()).to_duration());
    }
}
