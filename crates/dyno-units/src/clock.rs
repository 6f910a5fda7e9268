//! Time as a value: nanoseconds since an origin, and the clock that reads them.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in time since a clock's origin, or a duration.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanoseconds(pub u64);

impl Nanoseconds {
    pub const ZERO: Nanoseconds = Nanoseconds(0);
    pub const SECOND: Nanoseconds = Nanoseconds(1_000_000_000);

    pub const fn from_secs(seconds: u64) -> Nanoseconds {
        Nanoseconds(seconds.saturating_mul(1_000_000_000))
    }

    pub const fn from_millis(millis: u64) -> Nanoseconds {
        Nanoseconds(millis.saturating_mul(1_000_000))
    }

    pub const fn from_micros(micros: u64) -> Nanoseconds {
        Nanoseconds(micros.saturating_mul(1_000))
    }

    /// Negative values and NaN become zero.
    pub fn from_secs_f64(seconds: f64) -> Nanoseconds {
        Nanoseconds((seconds * 1e9) as u64)
    }

    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }

    pub fn saturating_sub(self, earlier: Nanoseconds) -> Nanoseconds {
        Nanoseconds(self.0.saturating_sub(earlier.0))
    }

    pub fn to_duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}

impl From<Duration> for Nanoseconds {
    fn from(duration: Duration) -> Nanoseconds {
        Nanoseconds(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Add for Nanoseconds {
    type Output = Nanoseconds;

    fn add(self, other: Nanoseconds) -> Nanoseconds {
        Nanoseconds(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanoseconds {
    fn add_assign(&mut self, other: Nanoseconds) {
        *self = *self + other;
    }
}

impl Sub for Nanoseconds {
    type Output = Nanoseconds;

    fn sub(self, other: Nanoseconds) -> Nanoseconds {
        debug_assert!(self.0 >= other.0, "time ran backwards: {} - {}", self.0, other.0);
        self.saturating_sub(other)
    }
}

impl fmt::Display for Nanoseconds {
    /// Writes `850 ns`, `1.25 ms`, `2 h 5 min`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0;
        let fraction = |out: &mut fmt::Formatter<'_>, per: f64, unit: &str| {
            let text = format!("{:.2}", ns as f64 / per);
            write!(out, "{} {unit}", text.trim_end_matches('0').trim_end_matches('.'))
        };
        match ns {
            0 => write!(out, "0 s"),
            1..1_000 => write!(out, "{ns} ns"),
            1_000..1_000_000 => fraction(out, 1e3, "µs"),
            1_000_000..1_000_000_000 => fraction(out, 1e6, "ms"),
            1_000_000_000..60_000_000_000 => fraction(out, 1e9, "s"),
            60_000_000_000..3_600_000_000_000 => {
                let s = ns / 1_000_000_000;
                match s % 60 {
                    0 => write!(out, "{} min", s / 60),
                    rest => write!(out, "{} min {rest} s", s / 60),
                }
            }
            _ => {
                let min = ns / 60_000_000_000;
                match min % 60 {
                    0 => write!(out, "{} h", min / 60),
                    rest => write!(out, "{} h {rest} min", min / 60),
                }
            }
        }
    }
}

/// Only the command line makes the real clock; all other code gets it as an argument.
pub trait Clock: Send + Sync {
    /// Since this clock's origin; never decreases.
    fn now(&self) -> Nanoseconds;

    /// Milliseconds since 1970-01-01 UTC. May jump; for time stamps only.
    fn unix_millis(&self) -> u64;

    /// Blocks the thread until `now()` is at least `until`.
    fn sleep_until(&self, until: Nanoseconds);
}

/// Stands still until it is set, or until a caller sleeps on it.
#[derive(Debug, Default)]
pub struct ManualClock {
    now_ns: AtomicU64,
}

impl ManualClock {
    pub fn new() -> ManualClock {
        ManualClock::default()
    }

    /// Does nothing if the clock is already later.
    pub fn advance_to(&self, now: Nanoseconds) {
        self.now_ns.fetch_max(now.0, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Nanoseconds {
        Nanoseconds(self.now_ns.load(Ordering::Relaxed))
    }

    fn unix_millis(&self) -> u64 {
        // A fixed day, so that records made in a test are the same each time.
        1_700_000_000_000 + self.now().0 / 1_000_000
    }

    fn sleep_until(&self, until: Nanoseconds) {
        self.advance_to(until);
    }
}

/// Year, month and day of a day since 1970. After Howard Hinnant's `civil_from_days`
/// ("chrono-compatible low-level date algorithms", 2013).
pub fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// `2026-03-01 14:05:09 UTC`, from milliseconds since 1970.
pub fn utc_date_time(unix_ms: u64) -> String {
    let s = unix_ms / 1000;
    let (year, month, day) = civil((s / 86_400) as i64);
    let (h, m, s) = (s % 86_400 / 3600, s % 3600 / 60, s % 60);
    format!("{year:04}-{month:02}-{day:02} {h:02}:{m:02}:{s:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(ns: u64, expected: &str) {
        assert_eq!(Nanoseconds(ns).to_string(), expected);
    }

    #[test]
    fn times_are_written_in_a_readable_unit() {
        check(0, "0 s");
        check(850, "850 ns");
        check(1_250, "1.25 µs");
        check(20_000_000, "20 ms");
        check(1_500_000_000, "1.5 s");
        check(90_000_000_000, "1 min 30 s");
        check(7_500_000_000_000, "2 h 5 min");
    }

    #[test]
    fn times_beyond_all_are_the_longest() {
        let all = [Nanoseconds::from_secs, Nanoseconds::from_millis, Nanoseconds::from_micros];
        assert_eq!(all.map(|of| of(u64::MAX)), [Nanoseconds(u64::MAX); 3]);
    }

    #[test]
    fn manual_clock_sleeps_by_moving() {
        let clock = ManualClock::new();
        clock.sleep_until(Nanoseconds::from_secs(3));
        clock.sleep_until(Nanoseconds::from_secs(2));
        assert_eq!(clock.now(), Nanoseconds::from_secs(3));
    }
}

#[cfg(test)]
mod tests_of_dates {
    use super::*;

    #[test]
    fn dates_are_civil() {
        let check = |unix_ms: u64, expected: &str| assert_eq!(utc_date_time(unix_ms), expected);
        check(0, "1970-01-01 00:00:00 UTC");
        check(951_782_399_000, "2000-02-28 23:59:59 UTC");
        check(951_782_400_000, "2000-02-29 00:00:00 UTC");
        check(1_709_210_096_000, "2024-02-29 12:34:56 UTC");
        check(4_102_444_799_999, "2099-12-31 23:59:59 UTC");
    }
}
