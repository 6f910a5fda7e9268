//! A rate that changes at given times.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::Nanoseconds;
use crate::quantity::{ParseQuantityError, parse_count, parse_duration};

/// A century; longer times overflow the sums of a plan.
const LENGTH_MOST: Nanoseconds = Nanoseconds::from_secs(100 * 365 * 86_400);

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateStep {
    /// Per second; finite and not negative.
    pub rate: f64,
    /// Above zero.
    pub length: Nanoseconds,
}

impl RateStep {
    fn count(&self) -> f64 {
        self.rate * self.length.as_secs_f64()
    }
}

/// Rates that hold one after the other, again and again; at least one of them is above zero.
#[derive(Clone, Debug, PartialEq)]
pub struct SteppedRate(Arc<[RateStep]>);

impl SteppedRate {
    /// Per second.
    pub const RATE_MOST: f64 = 1e9;
    pub const STEPS_MOST: usize = 1000;

    pub fn steps(&self) -> &[RateStep] {
        &self.0
    }

    pub fn first(&self) -> f64 {
        self.0[0].rate
    }

    pub fn length(&self) -> Nanoseconds {
        Nanoseconds(self.0.iter().map(|step| step.length.0).sum())
    }

    /// Per second, from the beginning until `end`.
    pub fn mean_until(&self, end: Nanoseconds) -> f64 {
        let whole = self.length();
        let n_whole = end.0 / whole.0;
        let mut left = Nanoseconds(end.0 % whole.0);
        let mut count = n_whole as f64 * self.count();
        for step in self.0.iter() {
            let length = step.length.min(left);
            count += step.rate * length.as_secs_f64();
            left = left.saturating_sub(length);
        }
        count / end.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    fn count(&self) -> f64 {
        self.0.iter().map(RateStep::count).sum()
    }

    /// The time in nanoseconds before which exactly `count` arrivals happen: the inverse of the
    /// rate's integral. If a pause follows them, the end of the pause.
    pub fn time_of(&self, count: f64) -> f64 {
        let (whole, of_whole) = (self.length().0 as f64, self.count());
        let n_whole = (count / of_whole).floor();
        // Rounding may leave less than 0.
        let mut left = (count - n_whole * of_whole).max(0.0);
        let mut begin = n_whole * whole;
        for step in self.0.iter() {
            let length = step.length.0 as f64;
            if left < step.count() {
                return begin + (left / step.rate * 1e9).min(length);
            }
            left -= step.count();
            begin += length;
        }
        begin
    }
}

impl fmt::Display for SteppedRate {
    /// Writes `500/s for 10s, 2000/s for 2.5s`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (idx, RateStep { rate, length }) in self.0.iter().enumerate() {
            let comma = if idx > 0 { ", " } else { "" };
            write!(out, "{comma}{rate}/s for {}s", length.as_secs_f64())?;
        }
        Ok(())
    }
}

impl FromStr for SteppedRate {
    type Err = ParseQuantityError;

    /// Reads `500 for 10s, 2k for 5s`, with or without `/s`; a rate may be 0, but not all.
    fn from_str(text: &str) -> Result<SteppedRate, ParseQuantityError> {
        let steps = text.split(',').map(step).collect::<Result<Vec<RateStep>, _>>()?;
        if steps.len() > SteppedRate::STEPS_MOST {
            let most = SteppedRate::STEPS_MOST;
            return refuse(format!("a schedule can have at most {most} rates"));
        }
        let length = steps.iter().fold(0_u64, |sum, step| sum.saturating_add(step.length.0));
        if length > LENGTH_MOST.0 {
            return refuse(format!(
                "`{text}`: all rates together must hold for less than a century"
            ));
        }
        if steps.iter().all(|step| step.rate == 0.0) {
            return refuse(format!("`{text}`: at least one of the rates must be above 0"));
        }
        Ok(SteppedRate(steps.into()))
    }
}

fn step(text: &str) -> Result<RateStep, ParseQuantityError> {
    let text = text.trim();
    let Some((rate, length)) = text.split_once("for") else {
        return refuse(format!(
            "`{text}` is not a rate and its duration; write \"500 for 10s, 2k for 5s\""
        ));
    };
    let length = parse_duration(length)?;
    if length == Nanoseconds::ZERO {
        return refuse(format!("`{text}`: a rate must hold for longer than 0"));
    }
    Ok(RateStep { rate: rate_of(rate)?, length })
}

fn rate_of(text: &str) -> Result<f64, ParseQuantityError> {
    let text = text.trim();
    let number = text.strip_suffix("/s").unwrap_or(text).trim();
    let rate = match number.parse::<f64>() {
        Ok(rate) => rate,
        Err(_) => parse_count(number)? as f64,
    };
    if (0.0..=SteppedRate::RATE_MOST).contains(&rate) {
        return Ok(rate);
    }
    refuse(format!("`{text}`: a rate must be at least 0 and at most {}", SteppedRate::RATE_MOST))
}

fn refuse<T>(why: String) -> Result<T, ParseQuantityError> {
    Err(ParseQuantityError::new(why))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stepped(text: &str) -> SteppedRate {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn what_is_written_is_read_again() {
        let check = |text: &str, expected: &str| {
            let read = stepped(text);
            assert_eq!(read.to_string(), expected);
            assert_eq!(stepped(expected), read);
        };
        check("500 for 10s", "500/s for 10s");
        check("500 for 10s, 2k for 1min 30s", "500/s for 10s, 2000/s for 90s");
        check(" 0.5/s  for 250ms ,0 for 2s", "0.5/s for 0.25s, 0/s for 2s");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let check = |text: &str, words: &str| {
            let error = text.parse::<SteppedRate>().expect_err(text).to_string();
            assert!(error.contains(words), "{text}: {error}");
        };
        check("", "write \"500 for 10s, 2k for 5s\"");
        check("500", "write \"500 for 10s, 2k for 5s\"");
        check("500 for 10s, 300", "`300` is not a rate and its duration");
        check("500 for 10s,", "`` is not a rate and its duration");
        check("500 for", "not a duration");
        check("500 for 0s", "longer than 0");
        check("5 for 2000000h", "less than a century");
        check("many for 5s", "`many` is not a whole number");
        check("-1 for 5s", "a rate must be at least 0");
        check("NaN for 5s", "a rate must be at least 0");
        check("2e9 for 5s", "a rate must be at least 0 and at most");
        check("0 for 5s, 0 for 1s", "at least one of the rates must be above 0");
    }

    #[test]
    fn times_are_those_of_the_integral() {
        // 10 in the first second, nothing in the second, 40 in the third and the fourth.
        let rate = stepped("10 for 1s, 0 for 1s, 20 for 2s");
        let check = |count: f64, seconds: f64| {
            let time = rate.time_of(count) / 1e9;
            assert!((time - seconds).abs() < 1e-9, "{count}: {time} s, not {seconds} s");
        };
        check(0.0, 0.0);
        check(5.0, 0.5);
        // The first arrival after a pause comes at its end.
        check(10.0, 2.0);
        check(30.0, 3.0);
        check(50.0, 4.0);
        check(55.0, 4.5);
        check(60.0, 6.0);
        assert_eq!(rate.length(), Nanoseconds::from_secs(4));
        assert_eq!(rate.first(), 10.0);
    }

    #[test]
    fn the_mean_is_that_of_the_time_asked_for() {
        let rate = stepped("10 for 1s, 0 for 1s, 20 for 2s");
        let check = |end_ms: u64, expected: f64| {
            let mean = rate.mean_until(Nanoseconds::from_millis(end_ms));
            assert!((mean - expected).abs() < 1e-9, "{end_ms} ms: {mean}");
        };
        check(500, 10.0);
        check(2_000, 5.0);
        check(4_000, 12.5);
        check(5_000, 12.0);
        check(8_000, 12.5);
    }

    proptest! {
        #[test]
        fn times_never_decrease_and_undo_the_mean(
            rates in proptest::collection::vec((0_u32..5_000, 1_u64..5_000), 1..8),
            count in 0.0_f64..1e6,
            more in 0.0_f64..1e4,
        ) {
            prop_assume!(rates.iter().any(|(rate, _)| *rate > 0));
            let steps: Vec<String> =
                rates.iter().map(|(rate, ms)| format!("{rate} for {ms}ms")).collect();
            let rate = stepped(&steps.join(", "));
            let time = rate.time_of(count);
            prop_assert!(rate.time_of(count + more) >= time);
            let come = rate.mean_until(Nanoseconds(time as u64)) * time / 1e9;
            prop_assert!((come - count).abs() <= 1e-3 + count * 1e-6, "{come} of {count}");
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,24}") {
            let _ = text.parse::<SteppedRate>();
        }
    }
}
