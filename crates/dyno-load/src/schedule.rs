//! When arrivals are due under open load.
//!
//! A schedule is a pure function of its seed, rate and slice: it needs no state but a position, so
//! that however far a stalled server falls behind, nothing is stored for the arrivals that wait.

use dyno_units::{Nanoseconds, RandomStream, Seed};

use crate::Arrivals;

/// Which share of a schedule a worker (or a whole generator) takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Which one, counted from 0.
    pub index: usize,
    /// Of how many; all of them together are the whole schedule.
    pub count: usize,
}

impl Slice {
    /// The whole schedule.
    pub const WHOLE: Slice = Slice { index: 0, count: 1 };
}

/// The due times of one slice, in order; they never decrease.
///
/// Constant: arrival j of the whole schedule is due at origin + j / rate and belongs to slice
/// j mod n. Poisson: each slice is an independent Poisson process of rate / n, from its own stream;
/// the superposition of n such processes is a Poisson process of the whole rate.
#[derive(Clone, Debug)]
pub struct Schedule {
    origin: Nanoseconds,
    next: Nanoseconds,
    gaps: Gaps,
}

#[derive(Clone, Debug)]
enum Gaps {
    Constant {
        // The next arrival's number in the whole schedule.
        number: u64,
        step: u64,
        gap_ns: f64,
    },
    Poisson {
        // Of the next arrival, since the origin.
        offset_ns: f64,
        mean_gap_ns: f64,
        random: RandomStream,
    },
}

impl Schedule {
    /// The slice of the schedule that begins at `origin` and offers `rate` arrivals per second in
    /// all its slices together. `rate` must be positive.
    pub fn new(
        arrivals: Arrivals,
        rate: f64,
        origin: Nanoseconds,
        seed: Seed,
        slice: Slice,
    ) -> Schedule {
        assert!(rate > 0.0 && slice.index < slice.count, "no such schedule: {rate}/s, {slice:?}");
        let gaps = match arrivals {
            Arrivals::Constant => Gaps::Constant {
                number: slice.index as u64,
                step: slice.count as u64,
                gap_ns: 1e9 / rate,
            },
            Arrivals::Poisson => Gaps::Poisson {
                offset_ns: 0.0,
                mean_gap_ns: 1e9 * slice.count as f64 / rate,
                random: seed.derive("arrivals", slice.index as u64).stream(),
            },
        };
        let mut schedule = Schedule { origin, next: origin, gaps };
        match &mut schedule.gaps {
            // The first one is due at its own place on the grid, not a step later.
            Gaps::Constant { number, gap_ns, .. } => {
                schedule.next = origin + Nanoseconds((*number as f64 * *gap_ns) as u64);
            }
            Gaps::Poisson { .. } => schedule.advance(),
        }
        schedule
    }

    /// When the next arrival is due.
    #[inline]
    pub fn peek(&self) -> Nanoseconds {
        self.next
    }

    /// Takes the next arrival: its due time.
    #[inline]
    pub fn take(&mut self) -> Nanoseconds {
        let due = self.next;
        self.advance();
        due
    }

    /// Takes all arrivals that are due before `end` and tells how many there were.
    pub fn skip_before(&mut self, end: Nanoseconds) -> u64 {
        let mut n_skipped = 0;
        while self.next < end {
            self.advance();
            n_skipped += 1;
        }
        n_skipped
    }

    fn advance(&mut self) {
        let offset_ns = match &mut self.gaps {
            Gaps::Constant { number, step, gap_ns } => {
                *number += *step;
                *number as f64 * *gap_ns
            }
            Gaps::Poisson { offset_ns, mean_gap_ns, random } => {
                *offset_ns += random.exponential(*mean_gap_ns);
                *offset_ns
            }
        };
        self.next = self.origin + Nanoseconds(offset_ns as u64);
    }
}

#[cfg(test)]
mod tests;
