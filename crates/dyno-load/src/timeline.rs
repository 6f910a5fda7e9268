//! The phases and intervals of a step, and its early end: by the last client's quota, the end of all clients, or steadiness.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use dyno_units::Nanoseconds;

use crate::load::n_with_quota;
use crate::{Phase, StepSpec};

#[derive(Debug)]
pub(crate) struct Finish {
    n_left: AtomicUsize,
    // When the latest quota so far was done.
    latest: AtomicU64,
    at: AtomicU64,
    pub(crate) is_planned: bool,
}

impl Finish {
    /// A step of fixed length ends earlier only if all clients do.
    pub(crate) fn of(spec: &StepSpec) -> Arc<Finish> {
        let n_with_quota = n_with_quota(&spec.load);
        let n_left = if n_with_quota > 0 { n_with_quota } else { spec.load.clients() };
        let is_planned = n_with_quota > 0 || spec.until_steady.is_some();
        let (latest, at) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
        Arc::new(Finish { n_left: AtomicUsize::new(n_left), latest, at, is_planned })
    }

    pub(crate) fn end_at(&self, at: Nanoseconds) {
        self.at.fetch_min(at.0, Ordering::AcqRel);
    }

    /// The client's quota is done, or the client has ended. Called once for each client.
    pub(crate) fn client_done(&self, now: Nanoseconds) {
        self.latest.fetch_max(now.0, Ordering::AcqRel);
        // Clients may arrive here in another order than they finished.
        if self.n_left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.at.fetch_min(self.latest.load(Ordering::Acquire), Ordering::AcqRel);
        }
    }

    /// The end of the measurement phase; the end of time until it is known.
    #[inline]
    pub(crate) fn at(&self) -> Nanoseconds {
        Nanoseconds(self.at.load(Ordering::Acquire))
    }
}

// The end of a step when its throughput is steady: the steady-state rule of SNIA's Solid State
// Storage Performance Test Specification, with a window's seconds grouped into its five rounds.

const ROUNDS: usize = 5;

/// Largest spread of a window's rounds, as a share of their mean.
const RANGE_MOST: f64 = 0.2;

/// Largest rise or fall of the line through the rounds, as a share of their mean.
const CLIMB_MOST: f64 = 0.1;

#[derive(Clone, Debug)]
pub(crate) struct Steadiness {
    // Commits per second of the last window, oldest first.
    rates: VecDeque<f64>,
    n_seconds: usize,
}

impl Steadiness {
    pub(crate) fn new(window: Nanoseconds) -> Steadiness {
        let n_seconds = (window.0.div_ceil(Nanoseconds::SECOND.0) as usize).max(ROUNDS);
        Steadiness { rates: VecDeque::with_capacity(n_seconds), n_seconds }
    }

    pub(crate) fn push(&mut self, rate: f64) -> bool {
        if self.rates.len() == self.n_seconds {
            self.rates.pop_front();
        }
        self.rates.push_back(rate);
        self.rates.len() == self.n_seconds && is_steady(&self.rounds())
    }

    /// Lengths of rounds differ by a second at most.
    fn rounds(&self) -> [f64; ROUNDS] {
        std::array::from_fn(|round| {
            let (from, to) =
                (round * self.n_seconds / ROUNDS, (round + 1) * self.n_seconds / ROUNDS);
            self.rates.range(from..to).sum::<f64>() / (to - from) as f64
        })
    }
}

/// A server that does nothing is not steady.
fn is_steady(rounds: &[f64; ROUNDS]) -> bool {
    let mean = rounds.iter().sum::<f64>() / ROUNDS as f64;
    let least = rounds.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rounds.iter().copied().fold(0.0, f64::max);
    // Least squares around the middle round.
    let middle = (ROUNDS - 1) as f64 / 2.0;
    let (mut along, mut squares) = (0.0, 0.0);
    for (round, rate) in rounds.iter().enumerate() {
        let x = round as f64 - middle;
        along += x * (rate - mean);
        squares += x * x;
    }
    let climb = (along / squares * 2.0 * middle).abs();
    mean > 0.0 && most - least <= RANGE_MOST * mean && climb <= CLIMB_MOST * mean
}

// The phases of a step and the intervals they are cut into.

/// `ended` is the latest end. Intervals last a second; the last one of a phase may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timeline {
    pub(crate) began: Nanoseconds,
    pub(crate) measure_began: Nanoseconds,
    pub(crate) ended: Nanoseconds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) phase: Phase,
    pub(crate) start: Nanoseconds,
    pub(crate) end: Nanoseconds,
}

impl Timeline {
    pub(crate) fn new(began: Nanoseconds, warm_up: Nanoseconds, duration: Nanoseconds) -> Timeline {
        let measure_began = began + warm_up;
        Timeline { began, measure_began, ended: measure_began + duration }
    }

    /// The interval that contains `end`, or ends there; `end` is after the beginning.
    pub(crate) fn last_idx(&self, end: Nanoseconds) -> u64 {
        let n_until = |from: Nanoseconds, to: Nanoseconds| {
            to.saturating_sub(from).0.div_ceil(Nanoseconds::SECOND.0)
        };
        let n_warm_up = n_until(self.began, self.measure_began.min(end));
        (n_warm_up + n_until(self.measure_began, end)).saturating_sub(1)
    }

    pub(crate) fn span(&self, idx: u64) -> Option<Span> {
        let n_warm_up = (self.measure_began - self.began).0.div_ceil(Nanoseconds::SECOND.0);
        let (phase, number, from, to) = if idx < n_warm_up {
            (Phase::WarmUp, idx, self.began, self.measure_began)
        } else {
            (Phase::Measure, idx - n_warm_up, self.measure_began, self.ended)
        };
        let start = from + Nanoseconds(Nanoseconds::SECOND.0.saturating_mul(number));
        let end = (start + Nanoseconds::SECOND).min(to);
        (start < to).then_some(Span { phase, start, end })
    }
}

#[cfg(test)]
mod tests {
    use dyno_model::Pacing;

    use super::*;
    use crate::fixture::{closed, role, roles};

    fn with_quota(clients: usize, quota: Option<u64>) -> StepSpec {
        roles(vec![role("r", clients, Pacing::Closed, quota)], 1)
    }

    #[test]
    fn the_finish_is_when_the_last_was_done_in_any_order() {
        let finish = Finish::of(&with_quota(3, Some(1)));
        assert!(finish.is_planned);
        for now in [5, 9, 7] {
            assert_eq!(finish.at(), Nanoseconds(u64::MAX));
            finish.client_done(Nanoseconds(now));
        }
        assert_eq!(finish.at(), Nanoseconds(9));
    }

    #[test]
    fn without_quotas_only_clients_that_all_end_are_a_finish() {
        for spec in [with_quota(2, None), closed(2, 1)] {
            let finish = Finish::of(&spec);
            assert!(!finish.is_planned);
            finish.client_done(Nanoseconds(5));
            assert_eq!(finish.at(), Nanoseconds(u64::MAX));
            finish.client_done(Nanoseconds(4));
            assert_eq!(finish.at(), Nanoseconds(5));
        }
        assert!(!Finish::of(&with_quota(0, Some(1))).is_planned);
    }

    #[test]
    fn what_is_to_become_steady_ends_when_it_is_said_to() {
        let steady = Some(Nanoseconds::from_secs(10));
        let spec = StepSpec { until_steady: steady, ..closed(1, 60) };
        let finish = Finish::of(&spec);
        assert_eq!(finish.at(), Nanoseconds(u64::MAX));
        finish.end_at(Nanoseconds(7));
        finish.end_at(Nanoseconds(9));
        assert_eq!(finish.at(), Nanoseconds(7));
    }
}

#[cfg(test)]
mod steadiness {
    use super::*;

    #[test]
    fn rounds_that_are_alike_are_steady() {
        let check = |rounds: [f64; ROUNDS], expected| {
            assert_eq!(is_steady(&rounds), expected, "{rounds:?}");
        };
        check([100.0; 5], true);
        check([95.0, 105.0, 100.0, 105.0, 95.0], true);
        // Range at its limit, without a slope.
        check([100.0, 110.0, 90.0, 110.0, 100.0], true);
        check([100.0, 111.0, 90.0, 110.0, 100.0], false);
        // A climb at the limit, and beyond it.
        check([95.0, 97.5, 100.0, 102.5, 105.0], true);
        check([94.0, 97.0, 100.0, 103.0, 106.0], false);
        check([106.0, 103.0, 100.0, 97.0, 94.0], false);
        check([0.0; 5], false);
    }

    #[test]
    fn a_step_is_steady_when_its_last_window_is() {
        let mut watched = Steadiness::new(Nanoseconds::from_secs(12));
        let rate = |second: u32| 1000.0 * f64::from(second.min(20)) / 20.0;
        let first = (1..60).find(|second| watched.push(rate(*second)));
        // The window from the 18th second to the 29th begins within a tenth of the level.
        assert_eq!(first, Some(29));
        let mut idle = Steadiness::new(Nanoseconds::from_secs(12));
        assert!((0..60).all(|_| !idle.push(0.0)));
    }

    #[test]
    fn a_window_has_a_second_for_each_round_at_least() {
        let mut watched = Steadiness::new(Nanoseconds::from_millis(1500));
        let steady: Vec<bool> = (0..6).map(|_| watched.push(5.0)).collect();
        assert_eq!(steady, [false, false, false, false, true, true]);
    }
}

#[cfg(test)]
mod intervals {
    use super::*;

    #[track_caller]
    fn check(warm_up_ms: u64, duration_ms: u64, expected: &[(Phase, u64, u64)]) {
        let ms = Nanoseconds::from_millis;
        let timeline = Timeline::new(ms(100), ms(warm_up_ms), ms(duration_ms));
        let spans: Vec<_> = (0..)
            .map_while(|idx| timeline.span(idx))
            .map(|span| (span.phase, span.start.0 / 1_000_000, span.end.0 / 1_000_000))
            .collect();
        assert_eq!(spans, expected);
    }

    #[test]
    fn an_end_belongs_to_the_interval_that_it_ends() {
        let ms = Nanoseconds::from_millis;
        let timeline = Timeline::new(ms(100), ms(1500), ms(9000));
        let check = |end_ms, expected| assert_eq!(timeline.last_idx(ms(end_ms)), expected);
        check(101, 0);
        check(1100, 0);
        check(1101, 1);
        check(1600, 1);
        check(1601, 2);
        check(2600, 2);
        check(2601, 3);
        check(10600, 10);
    }

    #[test]
    fn intervals_last_a_second_and_the_last_of_a_phase_what_is_left() {
        use Phase::{Measure, WarmUp};
        check(0, 2000, &[(Measure, 100, 1100), (Measure, 1100, 2100)]);
        check(1000, 1000, &[(WarmUp, 100, 1100), (Measure, 1100, 2100)]);
        check(
            1500,
            1200,
            &[
                (WarmUp, 100, 1100),
                (WarmUp, 1100, 1600),
                (Measure, 1600, 2600),
                (Measure, 2600, 2800),
            ],
        );
    }
}
