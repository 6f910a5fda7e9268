//! When arrivals are due under open load.
//!
//! A schedule is a pure function of its seed, rate and slice: it needs no state but a position, so
//! that nothing is stored for waiting arrivals, however far a stalled server falls behind.

use dyno_units::{Nanoseconds, RandomStream, Seed, SteppedRate};

use dyno_model::Arrivals;

/// Which share of a schedule a worker (or a whole generator) takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Index of the slice, from 0.
    pub index: usize,
    /// Number of slices; together they are the whole schedule.
    pub count: usize,
}

impl Slice {
    pub const WHOLE: Slice = Slice { index: 0, count: 1 };

    /// Part `index` of `count` of this slice. The parts of all slices are slices of the whole: no two
    /// have the same index and count, also where slices are cut into different numbers of parts.
    pub fn part(self, index: usize, count: usize) -> Slice {
        Slice { index: self.index + self.count * index, count: self.count * count }
    }

    pub fn share_of(self, n: usize) -> usize {
        n.saturating_sub(self.index).div_ceil(self.count)
    }
}

/// The due times of one slice, in order; they never decrease.
///
/// Constant: arrival j of the whole schedule is due at origin + j / rate and belongs to slice
/// j mod n. Poisson: each slice is an independent Poisson process of rate / n, from its own stream;
/// the superposition of n such processes is a Poisson process of the whole rate.
///
/// Stepped: the same with a rate of 1, whose times are then mapped by the inverse of the integral
/// of the stepped rate. So a slice of it is a slice of the whole, constant or Poisson.
#[derive(Clone, Debug)]
pub struct Schedule {
    origin: Nanoseconds,
    next: Nanoseconds,
    gaps: Gaps,
    /// Maps arrivals to times, if the rate changes.
    course: Option<Course>,
}

/// The course of a rate that changes: its first rate during the warm-up, and then its steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// The rates from the end of the warm-up on.
    pub rate: SteppedRate,
    /// Length of the warm-up.
    pub before: Nanoseconds,
}

impl Course {
    /// When arrival `count`, counted from 0, is due, in nanoseconds since the origin.
    fn time_of(&self, count: f64) -> f64 {
        let before = self.rate.first() * self.before.as_secs_f64();
        if count < before {
            return count / self.rate.first() * 1e9;
        }
        self.before.0 as f64 + self.rate.time_of(count - before)
    }
}

#[derive(Clone, Debug)]
enum Gaps {
    Constant {
        // The next arrival's number in the whole schedule.
        number: u64,
        step: u64,
        // In nanoseconds; 1 if a course maps arrivals to times.
        gap: f64,
    },
    Poisson {
        // Of the next arrival since the origin, in nanoseconds; in arrivals if there is a course.
        offset: f64,
        mean_gap: f64,
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
        assert!(rate > 0.0, "no such schedule: {rate}/s");
        Schedule::with((arrivals, 1e9 / rate), origin, seed, slice, None)
    }

    /// The slice of the schedule that begins at `origin` and whose rate, of all its slices
    /// together, follows a course.
    pub fn stepped(
        arrivals: Arrivals,
        course: Course,
        origin: Nanoseconds,
        seed: Seed,
        slice: Slice,
    ) -> Schedule {
        Schedule::with((arrivals, 1.0), origin, seed, slice, Some(course))
    }

    fn with(
        (arrivals, gap): (Arrivals, f64),
        origin: Nanoseconds,
        seed: Seed,
        slice: Slice,
        course: Option<Course>,
    ) -> Schedule {
        assert!(slice.index < slice.count, "no such schedule: {slice:?}");
        let gaps = match arrivals {
            Arrivals::Constant => {
                Gaps::Constant { number: slice.index as u64, step: slice.count as u64, gap }
            }
            Arrivals::Poisson => Gaps::Poisson {
                offset: 0.0,
                mean_gap: gap * slice.count as f64,
                random: seed.derive("arrivals", slice.index as u64).stream(),
            },
        };
        let mut schedule = Schedule { origin, next: origin, gaps, course };
        match &mut schedule.gaps {
            // The first one is due at its own place on the grid, not a step later.
            Gaps::Constant { number, gap, .. } => {
                let offset = *number as f64 * *gap;
                schedule.next = schedule.due(offset);
            }
            Gaps::Poisson { .. } => schedule.advance(),
        }
        schedule
    }

    #[inline]
    fn due(&self, offset: f64) -> Nanoseconds {
        let offset_ns = match &self.course {
            None => offset,
            Some(course) => course.time_of(offset),
        };
        self.origin + Nanoseconds(offset_ns as u64)
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

    /// Takes all arrivals that are due before `end` and returns how many there were.
    pub fn skip_before(&mut self, end: Nanoseconds) -> u64 {
        let mut n_skipped = 0;
        while self.next < end {
            self.advance();
            n_skipped += 1;
        }
        n_skipped
    }

    fn advance(&mut self) {
        let offset = match &mut self.gaps {
            Gaps::Constant { number, step, gap } => {
                *number += *step;
                *number as f64 * *gap
            }
            Gaps::Poisson { offset, mean_gap, random } => {
                *offset += random.exponential(*mean_gap);
                *offset
            }
        };
        self.next = self.due(offset);
    }
}

#[cfg(test)]
mod tests;
