//! Stalls: gaps and dips of throughput in bins of 100 ms, and the readings that moved first.

mod bins;
mod evidence;
mod find;
mod made;
#[cfg(test)]
mod tests;

use dyno_record::{Run, StepSummary, TrialSummary};
use serde::{Deserialize, Serialize};

use crate::join::{Joined, Matching};

pub(crate) use self::bins::Bins;
use self::evidence::Evidence;
use self::find::Found;
pub use self::made::MadeDips;
pub(crate) use self::made::made_dips;

/// A time with far fewer transactions than around it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StallFacts {
    pub variant: usize,
    pub step: usize,
    /// In its own run.
    pub trial: u32,
    /// Since the measurement phase began.
    pub start_s: f64,
    pub length_s: f64,
    /// Width of the bins, about the error of beginning and end: 0.1, or more if few commit.
    pub bin_s: f64,
    /// Nothing was done (apart from the first and the last bin); otherwise a dip.
    pub gap: bool,
    /// Transactions missing from the level around it, within the measurement phase.
    pub missing: f64,
    /// Transactions per second around it.
    pub level: f64,
    /// Kinds that stalled.
    pub kinds: Vec<String>,
    /// Earliest first. Evidence, no verdict.
    pub moved_first: Vec<Moved>,
}

/// A reading that left its ordinary range about the time of a stall.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moved {
    /// `server.cpu_s_per_s`.
    pub reading: String,
    /// What it is evidence of: `a server that waits or is suspended`, `checkpoint age at its limit`.
    pub sign_of: String,
    /// Beginning of the first such interval since the stall began. Readings come once a second, so
    /// one that moves with the stall is above −1.
    pub at_s: f64,
    pub value: f64,
    /// Median over the seconds without stalls; or the limit that was reached.
    pub ordinary: f64,
    /// In robust standard deviations (1.4826 × median distance); `None` for a reached limit.
    pub deviations: Option<f64>,
    pub unit: String,
    /// In a sentence, if the record tells.
    pub meaning: String,
    /// Upper bound of the probability of such a value by chance in as many seconds, by ranks;
    /// `None` for a reached limit. At least 8 % for 5 seconds among 60 ordinary ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chance: Option<f64>,
}

/// As [`crate::analyse`] finds them.
pub fn stalls_of(run: &Run) -> Vec<StallFacts> {
    stalls(&Joined::new(std::slice::from_ref(run), Matching::Join))
}

/// In order, without searches and stepped rates, whose load always changes.
pub(crate) fn stalls(joined: &Joined<'_>) -> Vec<StallFacts> {
    let mut all = Vec::new();
    for trial in &joined.trials {
        for step in 0..joined.steps.len() {
            let (Some(summary), Some(ended)) = (trial.step(step), trial.summary) else { continue };
            if summary.search.is_some() || joined.steps[step].stepped.is_some() {
                continue;
            }
            let place = StallFacts {
                variant: trial.variant,
                step,
                trial: trial.number,
                ..StallFacts::default()
            };
            all.extend(of_step(summary, ended, &place));
        }
    }
    all
}

fn of_step(summary: &StepSummary, trial: &TrialSummary, place: &StallFacts) -> Vec<StallFacts> {
    let found = match Bins::of(summary) {
        Some(total) => by_bins(summary, &total),
        None => by_seconds(summary),
    };
    // Times of bins are sums, with rounding errors.
    let in_measure = |(found, _): &(Found, Vec<String>)| {
        found.end_s > 1e-3 && found.start_s < summary.measured_s - 1e-3
    };
    let found: Vec<(Found, Vec<String>)> = found.into_iter().filter(in_measure).collect();
    if found.is_empty() {
        return Vec::new();
    }
    let times: Vec<(f64, f64)> = found.iter().map(|(f, _)| (f.start_s, f.end_s)).collect();
    let evidence = Evidence::new(summary, &trial.meanings, &times);
    // The warm-up is not measured.
    let measured = |found: &Found| {
        let within = found.end_s.min(summary.measured_s) - found.start_s.max(0.0);
        within / (found.end_s - found.start_s)
    };
    let facts = |(found, kinds): (Found, Vec<String>)| StallFacts {
        start_s: milliseconds(found.start_s),
        length_s: milliseconds(found.end_s - found.start_s),
        bin_s: found.bin_s,
        gap: found.is_gap,
        missing: (found.missing * measured(&found)).round(),
        level: found.level,
        kinds,
        moved_first: evidence.moved((found.start_s, found.end_s)),
        ..place.clone()
    };
    found.into_iter().map(facts).collect()
}

fn bins_of(summary: &StepSummary, kind: &str) -> Option<Bins> {
    Bins::of_kind(summary, summary.kinds.iter().find(|own| own.name == kind)?)
}

/// By whole second of the measurement phase; `None` if unknown, or beyond the intervals.
pub(crate) fn seconds_of_kind(summary: &StepSummary, kind: &str) -> Option<Vec<f64>> {
    let bins = bins_of(summary, kind)?;
    let seconds = summary.measured_s.round() as u32;
    let is_told = seconds as usize <= 2 * summary.intervals.start_s.len() + 2;
    let commits = |s: u32| bins.between(f64::from(s), f64::from(s) + 1.0);
    is_told.then(|| (0..seconds).map(commits).collect())
}

/// By interval, warm-up included; `None` if the record does not tell.
pub fn rates_of_kind(summary: &StepSummary, kind: &str) -> Option<Vec<f64>> {
    let bins = bins_of(summary, kind)?;
    let starts = &summary.intervals.start_s;
    let end = |i: usize| {
        starts.get(i + 1).copied().unwrap_or_else(|| summary.measured_s.min(starts[i] + 1.0))
    };
    let rate = |i: usize| {
        let length = (end(i) - starts[i]).clamp(0.001, 1.0);
        bins.between(starts[i], starts[i] + length) / length
    };
    Some((0..starts.len()).map(rate).collect())
}

/// By bins of 100 ms, with their begin, warm-up included; `None` if the record does not tell.
pub fn rates_of_tenths(summary: &StepSummary) -> Option<Vec<(f64, f64)>> {
    let bins = Bins::of(summary)?;
    let rate = |i: usize| (bins.start_s[i], bins.counts[i] / bins.width_s[i].max(0.001));
    Some((0..bins.len()).map(rate).collect())
}

fn milliseconds(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}

/// Of all kinds together, and of some kinds only.
fn by_bins(summary: &StepSummary, total: &Bins) -> Vec<(Found, Vec<String>)> {
    let mut all: Vec<(Found, Vec<String>)> =
        find::find_in_total(total).into_iter().map(|found| (found, Vec::new())).collect();
    let kinds = || {
        let kinds = summary.kinds.iter();
        kinds.filter_map(|kind| Some((&kind.name, Bins::of_kind(summary, kind)?)))
    };
    if !all.is_empty() {
        for (name, bins) in kinds() {
            let whole = (bins.counts.iter().sum(), bins.width_s.iter().sum());
            for (found, names) in &mut all {
                names.extend(has_stalled(&bins, whole, found).then(|| name.clone()));
            }
        }
    }
    if summary.kinds.len() > 1 {
        for (name, bins) in kinds() {
            for found in find::find(&bins) {
                add_of_kind(&mut all, name, found);
            }
        }
    }
    all.sort_by(|(a, _), (b, _)| a.start_s.total_cmp(&b.start_s));
    all
}

fn add_of_kind(all: &mut Vec<(Found, Vec<String>)>, name: &str, found: Found) {
    let overlaps = |other: &Found| found.start_s < other.end_s && other.start_s < found.end_s;
    match all.iter_mut().find(|(other, _)| overlaps(other)) {
        Some((_, names)) => {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        None => all.push((found, vec![name.to_owned()])),
    }
}

/// The kind did less than half of its usual work per second, if frequent enough to tell.
fn has_stalled(bins: &Bins, (whole, seconds): (f64, f64), found: &Found) -> bool {
    let inside = bins.between(found.start_s, found.end_s);
    let length = found.end_s - found.start_s;
    let expected = (whole - inside) / (seconds - length).max(f64::MIN_POSITIVE) * length;
    expected >= 3.0 && inside < 0.5 * expected
}

/// For records without bins.
fn by_seconds(summary: &StepSummary) -> Vec<(Found, Vec<String>)> {
    let throughput = crate::cells::measured_seconds(summary);
    let level = crate::statistics::median(&throughput);
    let found = |stall: crate::time::Stall| Found {
        start_s: stall.at_s,
        end_s: stall.at_s + f64::from(stall.seconds),
        missing: stall.missing,
        level,
        is_gap: stall.missing >= 0.99 * level * f64::from(stall.seconds),
        bin_s: 1.0,
    };
    crate::time::stalls_by_second(&throughput).into_iter().map(|s| (found(s), Vec::new())).collect()
}
