//! Whether a trial's throughput by second was steady, and how it was not (METHOD.md, section 5.1).

mod noise;
mod period;
mod segments;
mod stalls;

pub(crate) use noise::autocorrelation;
use serde::{Deserialize, Serialize};
pub(crate) use stalls::stalls as stalls_by_second;

pub const SECONDS_LEAST: usize = 20;

/// Of a false alarm, for each test.
const ALPHA: f64 = 0.01;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeFacts {
    /// In its own run.
    pub trial: u32,
    pub seconds: u32,
    pub steadiness: Steadiness,
    /// Seconds at the beginning of the measurement that were still warm-up.
    pub warm_up_s: Option<f64>,
    /// Over the whole measurement phase, in percent of the mean.
    pub trend_percent: Option<f64>,
    /// Of the level, in the order of time.
    pub changes: Vec<Change>,
    pub period: Option<Period>,
    /// Seconds with hardly any work; the findings' own list has shorter ones.
    pub stalls: Vec<Stall>,
    /// Share of seconds within a tenth of the median second (or two standard deviations of so small
    /// a count, if more), in [0, 1].
    #[serde(default)]
    pub score: f64,
    /// When throughput's last level began, 0 if always; `None` if never, or with too few seconds.
    #[serde(default)]
    pub steady_from_s: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Steadiness {
    Steady,
    /// After a different beginning.
    SteadyLater,
    /// Rising or falling all the time.
    Trend,
    Changes,
    #[default]
    TooShort,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Since the measurement phase began.
    pub at_s: f64,
    /// Mean of the level before.
    pub before: f64,
    /// Mean of the level after.
    pub after: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Period {
    pub every_s: f64,
    /// At that distance, in [0, 1].
    pub autocorrelation: f64,
    /// Of one as strong in noise alone.
    pub p_value: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// Since the measurement phase began.
    pub at_s: f64,
    /// In a row.
    pub seconds: u32,
    /// Transactions short of the median second.
    pub missing: f64,
}

/// By whole second of the measurement phase; changes below the share `threshold` do not matter.
pub fn judge(trial: u32, throughput: &[f64], threshold: f64) -> TimeFacts {
    let mut facts = TimeFacts {
        trial,
        seconds: throughput.len() as u32,
        stalls: stalls::stalls(throughput),
        score: score(throughput),
        ..TimeFacts::default()
    };
    if throughput.len() < SECONDS_LEAST || throughput.iter().any(|v| !v.is_finite()) {
        return facts;
    }
    // A stall is no change of level.
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

/// If all changes are in the first third.
fn warm_up(changes: &[Change], seconds: usize) -> Option<f64> {
    let last = changes.last()?;
    (last.at_s <= seconds as f64 / 3.0).then_some(last.at_s)
}

/// `None` with a trend, or if the last third still changed, or made up for a stall.
fn steady_from(facts: &TimeFacts, throughput: &[f64]) -> Option<f64> {
    let last = facts.changes.last().map_or(0.0, |change| change.at_s);
    let last = last.max(caught_up_at(&facts.stalls, throughput));
    let is_early = last <= throughput.len() as f64 * 2.0 / 3.0;
    (facts.steadiness != Steadiness::Trend && is_early).then_some(last)
}

/// When the stalls' work had been made up for: after the last seconds above the ordinary. 0 if
/// there were none, or only the second that is set aside with each stall.
fn caught_up_at(stalls: &[Stall], throughput: &[f64]) -> f64 {
    let (middle, room) = ordinary(throughput);
    let end = |stall: &Stall| {
        let from = (stall.at_s as usize + stall.seconds as usize).min(throughput.len());
        let above = throughput[from..].iter().take_while(|v| **v - middle > room).count();
        (above > 1).then_some((from + above) as f64)
    };
    stalls.iter().filter_map(end).fold(0.0, f64::max)
}

/// The median second and its ordinary distance: a tenth, or two deviations of so small a count.
fn ordinary(throughput: &[f64]) -> (f64, f64) {
    let middle = crate::statistics::median(throughput);
    (middle, (0.1 * middle).max(2.0 * middle.max(0.0).sqrt()))
}

/// Of seconds near the median second.
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
