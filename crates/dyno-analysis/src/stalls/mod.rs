//! Stalls: gaps and dips of throughput, found in bins of 100 ms, and which readings moved first.

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

/// A stretch of time in which far fewer transactions were done than around it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StallFacts {
    pub variant: usize,
    pub step: usize,
    /// The trial's number in its own run.
    pub trial: u32,
    /// Its beginning, in seconds since the measurement phase began.
    pub start_s: f64,
    pub length_s: f64,
    /// Width of the bins that it was found in, in seconds: 0.1, or more where transactions are rare.
    /// Beginning and end are each known to about this much.
    pub bin_s: f64,
    /// Whether nothing at all was done (but for what the first and the last bin hold): a gap, and
    /// else a dip.
    pub gap: bool,
    /// Transactions that would have been done at the level around it, and were not; of a stall that
    /// began in the warm-up, its share of them that fell into the measured time.
    pub missing: f64,
    /// The level around it, in transactions per second.
    pub level: f64,
    /// The kinds of transactions that stalled, by name.
    pub kinds: Vec<String>,
    /// Which readings left their ordinary range about then, earliest first. Evidence, no verdict.
    pub moved_first: Vec<Moved>,
}

/// A reading that left its ordinary range about the time of a stall.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moved {
    /// Its name: `server.cpu_s_per_s`.
    pub reading: String,
    /// What it is evidence of: `a blocked or suspended process`, `checkpoint age at its limit`.
    pub sign_of: String,
    /// Beginning of the interval in which it first did, in seconds since the stall began: negative
    /// before it. Readings come once a second, so a reading that moves with the stall has a value
    /// above −1.
    pub at_s: f64,
    pub value: f64,
    /// What it ordinarily is: its median over the seconds without stalls; for a limit that is
    /// reached, the limit.
    pub ordinary: f64,
    /// How far it left its ordinary value, in robust standard deviations (1.4826 times the median
    /// absolute deviation); none for a limit that is reached.
    pub deviations: Option<f64>,
    pub unit: String,
    /// What the reading means, in a sentence, where the record tells.
    pub meaning: String,
    /// The probability, at most, that this reading alone is as far off by chance in as many seconds, by
    /// the ranks of its ordinary values; none for a limit that is reached. Short measurements cannot
    /// make it small: with 60 ordinary seconds, 5 seconds about a stall have 8 % at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chance: Option<f64>,
}

/// The stalls of all finished trials of a run, as [`crate::analyse`] finds them.
pub fn stalls_of(run: &Run) -> Vec<StallFacts> {
    stalls(&Joined::new(std::slice::from_ref(run), Matching::Join))
}

/// The stalls of all finished trials, in the order of trials, steps and time. A search has none, nor
/// has a stepped rate: their load changes all the time.
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
    // Times of bins are sums: one that ends with the warm-up may end a rounding error later.
    let in_measure = |(found, _): &(Found, Vec<String>)| {
        found.end_s > 1e-3 && found.start_s < summary.measured_s - 1e-3
    };
    let found: Vec<(Found, Vec<String>)> = found.into_iter().filter(in_measure).collect();
    if found.is_empty() {
        return Vec::new();
    }
    let times: Vec<(f64, f64)> = found.iter().map(|(f, _)| (f.start_s, f.end_s)).collect();
    let evidence = Evidence::new(summary, &trial.meanings, &times);
    // What is missing in the warm-up is no part of what was measured.
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

/// Commits of a kind in each whole second of the measurement phase; none where the record does not tell,
/// or tells of more seconds than it has intervals for.
pub(crate) fn seconds_of_kind(summary: &StepSummary, kind: &str) -> Option<Vec<f64>> {
    let bins = bins_of(summary, kind)?;
    let seconds = summary.measured_s.round() as u32;
    let is_told = seconds as usize <= 2 * summary.intervals.start_s.len() + 2;
    let commits = |s: u32| bins.between(f64::from(s), f64::from(s) + 1.0);
    is_told.then(|| (0..seconds).map(commits).collect())
}

/// Commits per second of a kind in each interval of a step, warm-up included; none where the record does
/// not tell.
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

fn milliseconds(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}

/// Stalls of all kinds together, and those that only some kinds had.
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

/// Whether a kind, with so many commits in so many seconds, did less than half of what it does else, as far as it is
/// frequent enough to tell.
fn has_stalled(bins: &Bins, (whole, seconds): (f64, f64), found: &Found) -> bool {
    let inside = bins.between(found.start_s, found.end_s);
    let length = found.end_s - found.start_s;
    let expected = (whole - inside) / (seconds - length).max(f64::MIN_POSITIVE) * length;
    expected >= 3.0 && inside < 0.5 * expected
}

/// Records without bins have seconds.
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
