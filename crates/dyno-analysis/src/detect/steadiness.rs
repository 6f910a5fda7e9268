//! Measurements that were not steady, or did not end or begin as they should, and fits that miss.

use dyno_units::reading::{Role, known};

use super::found::{At, Evidence, Found, Place};
use crate::attribution::readings::measured_values;
use crate::scaling::LawMiss;
use crate::time::{Steadiness, TimeFacts};
use crate::words::{ci_of, count, cut, list, percent, rate, seconds, share};
use crate::{Cell, StallFacts, TrialSearch};

const PLACES_NAMED: usize = 3;
/// Fall of a server's age that may be rounding.
const AGE_ROUNDING_S: f64 = 1.5;

/// Cells with such a detail.
fn cells(seen: &Evidence<'_>, detail: impl Fn(&Cell) -> Option<String>) -> Option<Found> {
    let mut found = Found::default();
    for cell in &seen.findings.cells {
        if let Some(detail) = detail(cell) {
            let (variant, step) =
                (seen.variant(cell.variant), &seen.findings.steps[cell.step].name);
            found.add(format!("{variant} at {step} ({detail})"), (cell.variant, cell.step));
        }
    }
    cut(&mut found.words, PLACES_NAMED, "");
    Some(found)
}

/// Trials with this verdict, if they are at least half: one in a hundred looks so by chance.
fn half_agree(cell: &Cell, is_it: impl Fn(&TimeFacts) -> bool) -> Option<Vec<&TimeFacts>> {
    let found: Vec<&TimeFacts> = cell.time.iter().filter(|facts| is_it(facts)).collect();
    (!found.is_empty() && 2 * found.len() >= cell.time.len()).then_some(found)
}

/// `in 2 of 3 trials`.
fn among(cell: &Cell, trials: &[&TimeFacts]) -> String {
    format!("in {} of {}", trials.len(), count(cell.time.len() as u64, "trial"))
}

pub(super) fn warm_up(seen: &Evidence<'_>) -> Option<Found> {
    let of = |cell: &Cell| {
        let trials = half_agree(cell, |facts| facts.steadiness == Steadiness::SteadyLater)?;
        let most = trials.iter().filter_map(|facts| facts.warm_up_s).fold(0.0, f64::max);
        Some((most, among(cell, &trials)))
    };
    let longest = seen.findings.cells.iter().filter_map(of).map(|(most, _)| most);
    let longest = longest.fold(0.0, f64::max);
    let detail = |cell: &Cell| of(cell).map(|(most, among)| format!("up to {most} s {among}"));
    cells(seen, detail)?.advise(format!(
        "The results include these seconds. Lengthen `warm_up` by {longest} s or more."
    ))
}

pub(super) fn not_steady(seen: &Evidence<'_>) -> Option<Found> {
    let is_it =
        |facts: &TimeFacts| matches!(facts.steadiness, Steadiness::Trend | Steadiness::Changes);
    cells(seen, |cell| match half_agree(cell, is_never_steady) {
        // That has its own caveat.
        Some(_) => None,
        None => Some(course(cell, &half_agree(cell, is_it)?)),
    })
}

fn course(cell: &Cell, trials: &[&TimeFacts]) -> String {
    let trends = trials.iter().filter_map(|facts| facts.trend_percent);
    let n_changes = trials.iter().map(|facts| facts.changes.len()).max().unwrap_or(0);
    let among = among(cell, trials);
    match trends.max_by(|a, b| a.abs().total_cmp(&b.abs())) {
        Some(trend) => format!("{} from beginning to end {among}", percent(trend)),
        None if n_changes == 0 => format!("catching up after a stall {among}"),
        None => format!("{} {among}", count(n_changes as u64, "level change")),
    }
}

/// Long enough to judge, without a level kept to the end.
fn is_never_steady(facts: &TimeFacts) -> bool {
    facts.steadiness != Steadiness::TooShort && facts.steady_from_s.is_none()
}

pub(super) fn never_steady(seen: &Evidence<'_>) -> Option<Found> {
    cells(seen, |cell| Some(course(cell, &half_agree(cell, is_never_steady)?)))
}

pub(super) fn stalls(seen: &Evidence<'_>) -> Option<Found> {
    cells(seen, |cell| {
        let is_here = |s: &&StallFacts| (s.variant, s.step) == (cell.variant, cell.step);
        let all: Vec<&StallFacts> = seen.findings.stalls.iter().filter(is_here).collect();
        all.first()?;
        let length: f64 = all.iter().map(|stall| stall.length_s).sum();
        let missing: f64 = all.iter().map(|stall| stall.missing).sum();
        let done = cell.outcomes.get("committed").copied().unwrap_or(0) as f64;
        Some(format!(
            "{}, {}{}; about {} fewer transactions than expected, {} of the total",
            count(all.len() as u64, "stall"),
            seconds(length),
            of_kinds(&seen.findings.variants[cell.variant].workload, cell, &all),
            rate(missing).trim_end_matches("/s"),
            share(missing / (done + missing).max(1.0)),
        ))
    })
}

/// `, only insert`, if others went on.
pub(super) fn of_kinds(workload: &str, cell: &Cell, stalls: &[&StallFacts]) -> String {
    let kinds = super::found::sorted(stalls.iter().flat_map(|stall| &stall.kinds));
    let ran = cell.kinds.values().filter(|n| **n > 0).count();
    if kinds.is_empty() || kinds.len() >= ran {
        return String::new();
    }
    let titles: Vec<_> = kinds.iter().map(|kind| crate::kinds::title(workload, kind)).collect();
    format!(", only {}", list(&titles))
}

/// Without a load that holds, or one that breaks, or an end.
pub(super) fn searches(seen: &Evidence<'_>) -> Option<Found> {
    type Doubt = (fn(&TrialSearch) -> bool, &'static str);
    let doubts: [Doubt; 3] = [
        (|one| one.found.is_none(), "found no load that met the limit twice"),
        (
            |one| one.found.is_some() && one.lowest_broken.is_none(),
            "stopped at the highest load allowed",
        ),
        (|one| !one.settled, "still had contradictory probes at the end"),
    ];
    let mut found = Found::default();
    for (is_doubtful, what) in doubts {
        let doubtful = || seen.findings.searches.iter().filter(|one| is_doubtful(one));
        found.variants.extend(doubtful().map(|one| one.variant));
        found.steps.extend(doubtful().map(|one| one.step));
        match doubtful().count() {
            0 => {}
            1 => found.words.push(format!("1 search {what}")),
            n => found.words.push(format!("{n} searches {what}")),
        }
    }
    Some(found)
}

/// It became younger during a step, without a fault of the study.
fn is_restarted(place: &Place<'_>) -> bool {
    let summary = place.summary;
    if !summary.faults.is_empty() {
        return false;
    }
    let meanings = place.trial.meanings.iter();
    let ages = meanings.filter(|(_, reading)| reading.role == Some(Role::Uptime));
    let mut ages = ages.map(|(name, _)| measured_values(summary, name));
    let falls = |pair: &[(f64, f64)]| pair[1].1 < pair[0].1 - AGE_ROUNDING_S;
    let by_age = ages.any(|ages| ages.windows(2).any(falls));
    // A server that is gone for a second or more has no processes.
    let is_gone = |(_, n): &(f64, f64)| *n < 1.0;
    by_age || measured_values(summary, known::SERVER_PROCESSES).iter().any(is_gone)
}

pub(super) fn restarts(seen: &Evidence<'_>) -> Option<Found> {
    let restarted: Vec<_> = seen.places.iter().filter(|place| is_restarted(place)).collect();
    let first = restarted.first()?;
    let words = format!(
        "{}, first in trial {} ({})",
        count(restarted.len() as u64, "measurement phase"),
        first.trial.number,
        seen.place(first.at),
    );
    Some(Found::at(words, restarted.iter().map(|place| place.at)))
}

/// In their longest time.
pub(super) fn ended_by(seen: &Evidence<'_>, end: &str) -> Option<Found> {
    let of = |cell: &Cell| -> Option<(At, String)> {
        let n = cell.ended_by.get(end).filter(|n| **n > 0)?;
        let all: u32 = cell.ended_by.values().sum();
        Some(((cell.variant, cell.step), format!("{n} of {all}")))
    };
    seen.places_with(seen.findings.cells.iter().filter_map(of))
}

pub(super) fn backlogs(seen: &Evidence<'_>) -> Option<Found> {
    let mut found = Found::default();
    for cell in &seen.findings.cells {
        let unpaid = cell.settled.iter().filter(|settled| !settled.paid).count();
        if unpaid > 0 {
            let at = (cell.variant, cell.step);
            let all = count(cell.settled.len() as u64, "trial");
            let place = seen.place(at);
            found.add(format!("{place} began with a backlog in {unpaid} of {all}"), at);
        }
    }
    for run_off in seen.findings.run_off.iter().filter(|run_off| !run_off.unpaid.is_empty()) {
        found.words.push(run_off.summary.trim_end_matches('.').to_owned());
        found.variants.push(run_off.variant);
    }
    found.joined("; ", usize::MAX)
}

/// Where the Universal Scalability Law does not describe the measurements.
pub(super) fn law_misses(seen: &Evidence<'_>) -> Option<Found> {
    let mut found = Found::default();
    for scaling in &seen.findings.scaling {
        let Some(law) = &scaling.law else { continue };
        let off = |miss: &&LawMiss| (miss.law / miss.measured.value).ln().abs();
        let worst = law.misses.iter().max_by(|a, b| off(a).total_cmp(&off(b)));
        let Some(worst) = worst else { continue };
        let more = match law.misses.len() - 1 {
            0 => String::new(),
            1 => "; 1 more load is outside".to_owned(),
            n => format!("; {n} more loads are outside"),
        };
        found.words.push(format!(
            "{}{}: at {} it predicts {}, but {} ({}) was measured{more}",
            seen.variant(scaling.variant),
            law.r_squared.map_or(String::new(), |r| format!(" (R² = {r:.3})")),
            seen.findings.steps[worst.step].name,
            rate(worst.law),
            rate(worst.measured.value),
            ci_of(&worst.measured, seen.findings.confidence),
        ));
        found.variants.push(scaling.variant);
        found.steps.extend(law.misses.iter().map(|miss| miss.step));
    }
    found.joined(". ", usize::MAX)
}
