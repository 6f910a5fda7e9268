//! The end of a step that goes on until its throughput is steady.
//!
//! The rule is the one for the steady state in SNIA's Solid State Storage Performance Test
//! Specification, with the seconds of a window grouped into its five rounds.

use std::collections::VecDeque;

use dyno_units::Nanoseconds;

const ROUNDS: usize = 5;

/// Largest spread of the rounds of a steady window, as a share of their mean.
const RANGE_MOST: f64 = 0.2;

/// Most that the straight line through them climbs or falls within the window, as a share of their
/// mean.
const CLIMB_MOST: f64 = 0.1;

#[derive(Clone, Debug)]
pub(crate) struct Steadiness {
    // Commits per second, of the last window, oldest first.
    rates: VecDeque<f64>,
    n_seconds: usize,
}

impl Steadiness {
    /// What has to be steady is the last `window`, at least a second a round.
    pub(crate) fn new(window: Nanoseconds) -> Steadiness {
        let n_seconds = (window.0.div_ceil(Nanoseconds::SECOND.0) as usize).max(ROUNDS);
        Steadiness { rates: VecDeque::with_capacity(n_seconds), n_seconds }
    }

    /// Takes the throughput of the next second; returns whether the window that ends with it is
    /// steady.
    pub(crate) fn push(&mut self, rate: f64) -> bool {
        if self.rates.len() == self.n_seconds {
            self.rates.pop_front();
        }
        self.rates.push_back(rate);
        self.rates.len() == self.n_seconds && is_steady(&self.rounds())
    }

    /// The mean rate of each round; their lengths differ by a second at most.
    fn rounds(&self) -> [f64; ROUNDS] {
        std::array::from_fn(|round| {
            let (from, to) =
                (round * self.n_seconds / ROUNDS, (round + 1) * self.n_seconds / ROUNDS);
            self.rates.range(from..to).sum::<f64>() / (to - from) as f64
        })
    }
}

/// Whether consecutive rounds are alike. A server that does nothing is not steady.
fn is_steady(rounds: &[f64; ROUNDS]) -> bool {
    let mean = rounds.iter().sum::<f64>() / ROUNDS as f64;
    let least = rounds.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rounds.iter().copied().fold(0.0, f64::max);
    // Least squares: the rounds are one apart, and half of them lie on each side of their middle.
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
        // A fifth apart, but on a level: 110 − 90 of 100.
        check([100.0, 110.0, 90.0, 110.0, 100.0], true);
        check([100.0, 111.0, 90.0, 110.0, 100.0], false);
        // A line that climbs by a tenth, and one that climbs by more.
        check([95.0, 97.5, 100.0, 102.5, 105.0], true);
        check([94.0, 97.0, 100.0, 103.0, 106.0], false);
        check([106.0, 103.0, 100.0, 97.0, 94.0], false);
        check([0.0; 5], false);
    }

    #[test]
    fn a_step_is_steady_when_its_last_window_is() {
        let mut watched = Steadiness::new(Nanoseconds::from_secs(12));
        // Caches fill for twenty seconds.
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
