//! The real clock: the only place that reads the system's time.

use std::time::{SystemTime, UNIX_EPOCH};

use dyno_units::{Clock, Nanoseconds};
use rustix::time::{ClockId, clock_gettime};

pub(crate) struct SystemClock {
    origin_ns: u64,
}

/// Read for every transaction, so without the standard library's checked arithmetic on seconds.
fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

impl SystemClock {
    pub(crate) fn start() -> SystemClock {
        SystemClock { origin_ns: monotonic_ns() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Nanoseconds {
        Nanoseconds(monotonic_ns() - self.origin_ns)
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
