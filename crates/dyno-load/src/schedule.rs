//! When arrivals are due under open load: a pure function of seed, rate and slice, so that nothing
//! is stored for waiting arrivals, however far a stalled server falls behind.

use dyno_units::{Nanoseconds, RandomStream, Seed, SteppedRate};

use dyno_model::Arrivals;

/// The share of a schedule that a worker, or a generator, takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Counted from 0.
    pub index: usize,
    /// All slices together are the whole schedule.
    pub count: usize,
}

impl Slice {
    pub const WHOLE: Slice = Slice { index: 0, count: 1 };

    /// Part `index` of `count`. Parts of different slices never coincide, however they are cut.
    pub fn part(self, index: usize, count: usize) -> Slice {
        Slice { index: self.index + self.count * index, count: self.count * count }
    }

    pub fn share_of(self, n: usize) -> usize {
        n.saturating_sub(self.index).div_ceil(self.count)
    }
}

/// The due times of one slice; they never decrease.
///
/// Constant: arrival j of the whole schedule is due at origin + j / rate and belongs to slice j mod
/// n. Poisson: each slice is an independent process of rate / n with its own stream; n of them
/// superpose to a Poisson process of the whole rate. Stepped: the same with rate 1, mapped by the
/// inverse of the stepped rate's integral.
#[derive(Clone, Debug)]
pub struct Schedule {
    origin: Nanoseconds,
    next: Nanoseconds,
    gaps: Gaps,
    /// Maps arrivals to times, if the rate changes.
    course: Option<Course>,
}

/// The first rate during the warm-up, then the steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// From the end of the warm-up on.
    pub rate: SteppedRate,
    pub before: Nanoseconds,
}

impl Course {
    /// Arrival `count`, counted from 0, in nanoseconds since the origin.
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
        // Number of the next arrival in the whole schedule.
        number: u64,
        step: u64,
        // In nanoseconds; 1 with a course.
        gap: f64,
    },
    Poisson {
        // Of the next arrival since the origin: nanoseconds; arrivals with a course.
        offset: f64,
        mean_gap: f64,
        random: RandomStream,
    },
}

impl Schedule {
    /// `rate` is positive, and that of all slices together.
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

    /// The course is that of all slices together.
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
            // The first one is due at its own place on the grid.
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

    #[inline]
    pub fn peek(&self) -> Nanoseconds {
        self.next
    }

    #[inline]
    pub fn take(&mut self) -> Nanoseconds {
        let due = self.next;
        self.advance();
        due
    }

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
