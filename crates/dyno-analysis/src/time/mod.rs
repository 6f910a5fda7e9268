//! Throughput by second within one trial: whether it was steady, and what it was where it was not.
//!
//! Pure functions of a column of numbers. METHOD.md section 5.1 explains each test and its rates of
//! error; nothing found here changes an estimate or a verdict.

pub(crate) mod caveats;
mod noise;
mod period;
mod segments;
mod stalls;

pub(crate) use noise::autocorrelation;
use serde::{Deserialize, Serialize};
pub(crate) use stalls::stalls as stalls_by_second;

pub const SECONDS_LEAST: usize = 20;

/// Probability of finding what is not there, for each test.
const ALPHA: f64 = 0.01;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeFacts {
    /// The trial's number in its own run.
    pub trial: u32,
    pub seconds: u32,
    pub steadiness: Steadiness,
    /// Seconds at the beginning of the measurement phase that were not like the rest: warm-up that went
    /// on.
    pub warm_up_s: Option<f64>,
    /// The change of a steady slope over the whole measurement phase, in percent of the mean.
    pub trend_percent: Option<f64>,
    /// Where the level changed, in the order of time.
    pub changes: Vec<Change>,
    pub period: Option<Period>,
    /// Seconds in which hardly anything was done. Finer ones are in the findings' own list.
    pub stalls: Vec<Stall>,
    /// Steadiness score: the share of seconds in which throughput was within a tenth of the median
    /// second (or within two standard deviations of a count so small, if that is more), in [0, 1].
    #[serde(default)]
    pub score: f64,
    /// The second from which throughput kept its level to the end, 0 where it always did; none where
    /// it never did, or there are too few seconds to tell.
    #[serde(default)]
    pub steady_from_s: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Steadiness {
    Steady,
    /// After a beginning that was not like the rest.
    SteadyLater,
    /// It rose or fell all the time.
    Trend,
    Changes,
    #[default]
    TooShort,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Seconds since the measurement phase began.
    pub at_s: f64,
    /// Mean throughput of the level before.
    pub before: f64,
    /// Mean throughput of the level after.
    pub after: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Period {
    pub every_s: f64,
    /// The autocorrelation at that distance, in [0, 1].
    pub autocorrelation: f64,
    /// How often noise alone would show one as strong.
    pub p_value: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// Seconds since the measurement phase began.
    pub at_s: f64,
    /// How many seconds in a row.
    pub seconds: u32,
    /// Transactions that the median second would have had, and these had not.
    pub missing: f64,
}

/// Judges the measured seconds of one trial. `throughput` has one value for each whole second of
/// the measurement phase; changes smaller than the share `threshold` do not matter.
pub fn judge(trial: u32, throughput: &[f64], threshold: f64) -> TimeFacts {
    let mut facts = TimeFacts {
        trial,
        seconds: throughput.len() as u32,
        steadiness: Steadiness::TooShort,
        warm_up_s: None,
        trend_percent: None,
        changes: Vec::new(),
        period: None,
        stalls: stalls::stalls(throughput),
        score: score(throughput),
        steady_from_s: None,
    };
    if throughput.len() < SECONDS_LEAST || throughput.iter().any(|v| !v.is_finite()) {
        return facts;
    }
    // A stall is reported as a stall, not as a change of level.
    let level = stalls::without_stalls(throughput, &facts.stalls);
    let mean = crate::statistics::mean(&level);
    if mean <= 0.0 {
        return facts;
    }
    let found = segments::segments(&level);
    let matters = |difference: f64| difference.abs() >= threshold.max(0.01) * mean;
    facts.trend_percent = found.trend.filter(|t| matters(*t)).map(|trend| 100.0 * trend / mean);
    facts.changes = found.changes.into_iter().filter(|c| matters(c.after - c.before)).collect();
    facts.warm_up_s = warm_up(&facts.changes, throughput.len());
    facts.steadiness = match (facts.trend_percent, facts.warm_up_s, facts.changes.as_slice()) {
        (Some(_), ..) => Steadiness::Trend,
        (None, Some(_), _) => Steadiness::SteadyLater,
        (None, None, []) => Steadiness::Steady,
        _ => Steadiness::Changes,
    };
    facts.steady_from_s = steady_from(&facts, throughput);
    facts.period = period::period(throughput, &found.residuals);
    facts
}

/// The end of a beginning that was not like the rest: all changes lie in the first third.
fn warm_up(changes: &[Change], seconds: usize) -> Option<f64> {
    let last = changes.last()?;
    (last.at_s <= seconds as f64 / 3.0).then_some(last.at_s)
}

/// The second from which the level was kept: none with a trend, and where the level still changed, or
/// a stall was still made up for, in the last third.
fn steady_from(facts: &TimeFacts, throughput: &[f64]) -> Option<f64> {
    let last = facts.changes.last().map_or(0.0, |change| change.at_s);
    let last = last.max(caught_up_at(&facts.stalls, throughput));
    let is_early = last <= throughput.len() as f64 * 2.0 / 3.0;
    (facts.steadiness != Steadiness::Trend && is_early).then_some(last)
}

/// The second at which what the stalls left undone had been made up for: behind the last seconds
/// after a stall that are all above the ordinary. 0 where none was, or no longer than the one second
/// that is set aside with each stall.
fn caught_up_at(stalls: &[Stall], throughput: &[f64]) -> f64 {
    let (middle, room) = ordinary(throughput);
    let end = |stall: &Stall| {
        let from = (stall.at_s as usize + stall.seconds as usize).min(throughput.len());
        let above = throughput[from..].iter().take_while(|v| **v - middle > room).count();
        (above > 1).then_some((from + above) as f64)
    };
    stalls.iter().filter_map(end).fold(0.0, f64::max)
}

/// The median second, and how far from it an ordinary second may be: a tenth, or two standard
/// deviations of a count so small.
fn ordinary(throughput: &[f64]) -> (f64, f64) {
    let middle = crate::statistics::median(throughput);
    (middle, (0.1 * middle).max(2.0 * middle.max(0.0).sqrt()))
}

/// The share of seconds near the median second.
fn score(throughput: &[f64]) -> f64 {
    if throughput.is_empty() {
        return 0.0;
    }
    let (middle, room) = ordinary(throughput);
    let near = throughput.iter().filter(|v| (**v - middle).abs() <= room && **v > 0.0).count();
    near as f64 / throughput.len() as f64
}

#[cfg(test)]
mod tests;
