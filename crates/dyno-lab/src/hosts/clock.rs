//! An agent's clock relative to the controller's, by NTP's arithmetic (RFC 5905, section 8).
//!
//! A ping leaves at t1 and arrives at t2, its answer leaves at t3 and arrives at t4; t1 and t4 are
//! the controller's time, t2 and t3 the agent's. The offset, agent − controller, is ((t2 − t1) + (t3
//! − t4)) / 2, with an error of at most half of the round trip (t4 − t1) − (t3 − t2). The shortest of
//! several round trips is best.

use dyno_record::{ClockFacts, ClockReading};
use dyno_units::Nanoseconds;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RoundTrip {
    /// The middle of it, by the controller's clock.
    pub(crate) at: Nanoseconds,
    /// Agent's clock − controller's, in nanoseconds.
    pub(crate) offset_ns: i64,
    /// How long it took, without the agent's own time.
    pub(crate) took: Nanoseconds,
    /// Agent's wall clock − controller's, in milliseconds.
    pub(crate) wall_ms: i64,
}

impl RoundTrip {
    /// From when the ping went out and its answer came in, and what the answer says.
    pub(crate) fn of(
        [sent, answered]: [Nanoseconds; 2],
        [received, replied]: [Nanoseconds; 2],
        wall_ms: i64,
    ) -> RoundTrip {
        let signed = |time: Nanoseconds| i128::from(time.0);
        let there = signed(received) - signed(sent);
        let back = signed(replied) - signed(answered);
        let took = answered.saturating_sub(sent).saturating_sub(replied.saturating_sub(received));
        RoundTrip {
            at: Nanoseconds(sent.0.midpoint(answered.0)),
            offset_ns: ((there + back) / 2) as i64,
            took,
            wall_ms,
        }
    }

    /// How far the truth is from the offset at most.
    fn bound_ns(&self) -> u64 {
        self.took.0.div_ceil(2)
    }

    pub(crate) fn to_agent(self, at: Nanoseconds) -> Nanoseconds {
        let time = i128::from(at.0) + i128::from(self.offset_ns);
        Nanoseconds(u64::try_from(time).unwrap_or_default())
    }

    pub(crate) fn to_controller(self, at: Nanoseconds) -> Nanoseconds {
        let time = i128::from(at.0) - i128::from(self.offset_ns);
        Nanoseconds(u64::try_from(time).unwrap_or_default())
    }
}

pub(crate) fn best(trips: &[RoundTrip]) -> Option<RoundTrip> {
    trips.iter().min_by_key(|trip| trip.took).copied()
}

/// Length of the windows of which the best reading is kept while a load goes on.
const WINDOW: Nanoseconds = Nanoseconds::from_secs(10);

/// From round trips before, during and after a load. None without one before.
pub(crate) fn facts([before, during, after]: [&[RoundTrip]; 3]) -> Option<ClockFacts> {
    let first = best(before)?;
    let reading = |trip: &RoundTrip| ClockReading {
        at_s: (trip.at.0 as f64 - first.at.0 as f64) / 1e9,
        offset_us: (trip.offset_ns as f64 - first.offset_ns as f64) / 1e3,
        bound_us: trip.bound_ns() as f64 / 1e3,
    };
    let last = best(after);
    let drift = last.and_then(|last| drift(&first, &last));
    let wall_bound_ms = first.took.0 as f64 / 2e6 + 1.0;
    Some(ClockFacts {
        wall_offset_ms: first.wall_ms as f64,
        wall_bound_ms,
        bound_us: first.bound_ns() as f64 / 1e3,
        round_trip_us: first.took.as_micros_f64(),
        drift_ppm: drift.map(|(ppm, _)| ppm),
        drift_bound_ppm: drift.map(|(_, bound)| bound),
        during: thinned(during).iter().map(reading).collect(),
        after: last.as_ref().map(reading),
    })
}

/// How much faster the agent's clock runs, and the maximum error, both in parts per million.
fn drift(first: &RoundTrip, last: &RoundTrip) -> Option<(f64, f64)> {
    let apart = last.at.saturating_sub(first.at);
    if apart < Nanoseconds::from_millis(100) {
        return None;
    }
    let moved = last.offset_ns as f64 - first.offset_ns as f64;
    let bound = (first.bound_ns() + last.bound_ns()) as f64;
    let ppm = 1e6 / apart.0 as f64;
    Some((moved * ppm, bound * ppm))
}

fn thinned(trips: &[RoundTrip]) -> Vec<RoundTrip> {
    let window = |trip: &RoundTrip| trip.at.0 / WINDOW.0;
    trips.chunk_by(|a, b| window(a) == window(b)).filter_map(best).collect()
}

#[cfg(test)]
mod tests {
    use dyno_units::Seed;

    use super::*;

    /// A clock that is off by so much at the origin, and runs so much faster.
    struct Skewed {
        offset_ns: f64,
        ppm: f64,
    }

    impl Skewed {
        fn at(&self, truth: f64) -> f64 {
            truth + self.offset_ns + truth * self.ppm / 1e6
        }
    }

    /// Round trips from `from_s` on, a tenth of a second apart, whose ways are random and unlike.
    fn trips(clock: &Skewed, (from_s, n): (f64, u64), seed: u64) -> Vec<RoundTrip> {
        let mut random = Seed(seed).stream();
        let mut trip = |nth: u64| {
            let sent = 1e10 + (from_s + nth as f64 / 10.0) * 1e9;
            let there = 2e4 + random.exponential(2e5);
            let back = 1e4 + random.exponential(4e5);
            let (received, replied) = (sent + there, sent + there + 3e3);
            let time = |at: f64| Nanoseconds(at as u64);
            RoundTrip::of(
                [time(sent), time(replied + back)],
                [time(clock.at(received)), time(clock.at(replied))],
                0,
            )
        };
        (0..n).map(&mut trip).collect()
    }

    #[test]
    fn offset_and_drift_are_within_their_bounds() {
        for (offset_s, ppm) in [(0.0, 0.0), (5.0, 50.0), (-5.0, -50.0), (5.0, -50.0)] {
            for seed in 1..=50 {
                let clock = Skewed { offset_ns: offset_s * 1e9, ppm };
                let before = trips(&clock, (0.0, 8), seed);
                let first = best(&before).expect("there are some");
                let truth = clock.at(first.at.0 as f64) - first.at.0 as f64;
                let miss = (first.offset_ns as f64 - truth).abs();
                assert!(miss <= first.bound_ns() as f64 + 10.0, "{offset_s} {ppm} {seed}: {miss}");
                let after = trips(&clock, (60.0, 8), seed + 1000);
                let during = trips(&clock, (1.0, 500), seed + 2000);
                let facts = facts([&before, &during, &after]).expect("it was measured");
                let (drift, bound) = (facts.drift_ppm.unwrap(), facts.drift_bound_ppm.unwrap());
                assert!((drift - ppm).abs() <= bound + 0.01, "{drift} ± {bound} of {ppm}");
                assert!(bound < 20.0 && facts.during.len() == 6, "{bound}");
            }
        }
    }

    #[test]
    fn a_time_is_the_same_moment_on_both_clocks() {
        let check = |offset_ns: i64, at: u64, expected: u64| {
            let trip =
                RoundTrip { at: Nanoseconds(0), offset_ns, took: Nanoseconds(0), wall_ms: 0 };
            assert_eq!(trip.to_agent(Nanoseconds(at)), Nanoseconds(expected));
        };
        check(5, 100, 105);
        check(-5, 100, 95);
        check(-500, 100, 0);
    }

    #[test]
    fn a_short_time_says_nothing_of_drift() {
        let clock = Skewed { offset_ns: 0.0, ppm: 50.0 };
        let one = trips(&clock, (0.0, 1), 1);
        assert_eq!(facts([&one, &[], &one]).and_then(|facts| facts.drift_ppm), None);
        assert_eq!(facts([&[], &[], &one]), None);
    }
}
