//! The rules by which a search judges whether a load held. Pure; METHOD.md gives the reasons.

use dyno_study::Limit;
use dyno_units::Nanoseconds;

/// Largest share of transactions that may fail for good, and of arrivals that may not be done.
const LOST_MOST: f64 = 0.01;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seen {
    /// The limited statistic of response times, in nanoseconds; none where nothing committed.
    pub(crate) limited_ns: Option<f64>,
    /// Transactions that committed, or rolled back as designed.
    pub(crate) done: u64,
    /// Transactions that failed and were not tried again.
    pub(crate) lost: u64,
    /// Under open load: the offered rate, and the arrivals that were due.
    pub(crate) offered: Option<(f64, u64)>,
}

pub(crate) fn broken_by(limit: &Limit, seen: &Seen) -> Option<String> {
    let Some(limited_ns) = seen.limited_ns else {
        return Some("no transaction committed".to_owned());
    };
    if limited_ns > limit.bound.0 as f64 {
        let value = Nanoseconds(limited_ns as u64);
        return Some(format!("{} was {value}", limit.statistic.word()));
    }
    let lost = seen.lost as f64 / (seen.done + seen.lost).max(1) as f64;
    if lost > LOST_MOST {
        return Some(format!("{:.1} % of the transactions failed", lost * 100.0));
    }
    let (rate, due) = seen.offered?;
    let not_done = due.saturating_sub(seen.done) as f64;
    // By Little's law no more than this are in flight while response times keep to the limit.
    let in_flight = rate * limit.bound.as_secs_f64();
    (not_done > LOST_MOST * due as f64 + in_flight).then(|| {
        let share = not_done / due.max(1) as f64;
        format!("{:.1} % of the arrivals were not done at the end", share * 100.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(seen: Seen, expected: Option<&str>) {
        let limit = "p99 <= 20ms".parse().expect("the limit is right");
        assert_eq!(broken_by(&limit, &seen).as_deref(), expected);
    }

    const GOOD: Seen =
        Seen { limited_ns: Some(19e6), done: 1000, lost: 0, offered: Some((100.0, 1000)) };

    #[test]
    fn a_load_holds_while_times_errors_and_backlog_keep_to_their_limits() {
        check(GOOD, None);
        check(Seen { limited_ns: Some(20e6), ..GOOD }, None);
        check(Seen { limited_ns: Some(20.1e6), ..GOOD }, Some("p99 was 20.1 ms"));
        check(Seen { limited_ns: None, done: 0, ..GOOD }, Some("no transaction committed"));
        check(Seen { lost: 10, ..GOOD }, None);
        check(Seen { lost: 20, ..GOOD }, Some("2.0 % of the transactions failed"));
        // One percent of 1000 and two in flight may be open at the end.
        check(Seen { offered: Some((100.0, 1012)), ..GOOD }, None);
        let overload = Seen { offered: Some((101.3, 1013)), ..GOOD };
        check(overload, Some("1.3 % of the arrivals were not done at the end"));
        check(Seen { offered: None, ..GOOD }, None);
    }
}
