//! The phases of a step and the intervals they are cut into.

use dyno_units::Nanoseconds;

use crate::Phase;

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
