//! The end of a step when its throughput is steady: the steady-state rule of SNIA's Solid State
//! Storage Performance Test Specification, with a window's seconds grouped into its five rounds.

use std::collections::VecDeque;

use dyno_units::Nanoseconds;

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

#[cfg(test)]
mod tests {
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
