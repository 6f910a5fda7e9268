//! Hosts that were busy with other work, and blocks that were discarded for it.

use std::collections::BTreeMap;

use dyno_record::StepSummary;
use dyno_units::reading::known;

use super::found::{Evidence, Found, Place};
use crate::attribution::readings::mean_rate;
use crate::join::JoinedTrial;
use crate::statistics::median;
use crate::trial_hosts::machine_of;
use crate::voiding::{self, limits};
use crate::words::{seconds, share};

/// A canary at this multiple of the run's median shows a busy host.
const CANARY_SLOW: f64 = 1.25;
/// CPU time given to others counts from here on.
const STEAL_PCT: f64 = 1.0;
/// Of the machine's CPUs.
const OTHERS_SHARE: f64 = 0.1;

pub(super) fn noisy_host(seen: &Evidence<'_>) -> Option<Found> {
    let n_cpus = seen.findings.cpus;
    let cpus = f64::from(n_cpus.max(1));
    let mut found = slow_canary(seen).unwrap_or_default();
    if let Some((value, worst, of)) =
        over(&seen.places, |step| mean_rate(step, known::CPU_STEAL_PCT).ok(), STEAL_PCT)
    {
        let (limit, is_last) = limits(seen.runs, worst.trial);
        let limit = beside_limit(value / 100.0, limit.steal, is_last, share);
        let (stolen, place) = (share(value / 100.0), seen.place(worst.at));
        found.words.push(format!("CPU steal reached {stolen} ({place}{limit})"));
        found.variants.extend(of);
    }
    if let Some((value, worst, of)) = over(&seen.places, used_by_others, OTHERS_SHARE * cpus) {
        let (limit, is_last) = limits(seen.runs, worst.trial);
        let show = |share: f64| format!("{:.2} CPUs", share * cpus);
        let user = mean_rate(worst.summary, known::REST_CPU_USER).ok();
        let limit = user.filter(|_| limit.others.is_some()).map_or(String::new(), |user| {
            let beside = beside_limit(user / cpus, limit.others, is_last, show);
            format!("; {} of it in user mode{beside}", show(user / cpus))
        });
        found.words.push(format!(
            "other processes and the kernel's own threads used up to {value:.2} of {n_cpus} CPUs \
             ({}{limit})",
            seen.place(worst.at)
        ));
        found.variants.extend(of);
    }
    let effect = if seen.findings.trials.len() == 1 {
        "A single trial cannot show how much of the result is due to that work."
    } else if seen.findings.comparisons.is_empty() {
        "The noise widens the CIs."
    } else {
        "Interleaved repetitions spread the noise over all variants, so it mostly widens the CIs; \
         but a variant that uses more CPU or disk suffers more from it."
    };
    found
        .joined("; ", usize::MAX)?
        .advise(format!("Stop the other work on the host, or use a dedicated machine. {effect}"))
}

/// The limit beyond which such a trial is discarded, to follow its value; empty without one.
fn beside_limit(
    value: f64,
    limit: Option<f64>,
    is_last: bool,
    show: impl Fn(f64) -> String,
) -> String {
    let Some(limit) = limit else { return String::new() };
    let (is_over, limit) = (value > limit, show(limit));
    let why = if is_last { ": no more blocks could be discarded" } else { "" };
    match is_over {
        false => format!("; limit {limit}"),
        true => format!("; above this variant's limit of {limit}, but kept{why}"),
    }
}

/// As far as seen: much of what no tick saw is the load's own interrupts and switches.
fn used_by_others(summary: &StepSummary) -> Option<f64> {
    let rest = mean_rate(summary, known::REST_CPU).ok()?;
    Some(rest - mean_rate(summary, known::CPU_UNSAMPLED).unwrap_or(0.0))
}

/// The largest such value with its place, and all variants with more than `most`.
fn over<'p, 'a>(
    places: &'p [Place<'a>],
    mean: impl Fn(&StepSummary) -> Option<f64>,
    most: f64,
) -> Option<(f64, &'p Place<'a>, Vec<usize>)> {
    let values = places.iter().filter_map(|place| Some((mean(place.summary)?, place)));
    let over: Vec<(f64, &Place<'a>)> = values.filter(|(value, _)| *value > most).collect();
    let (value, worst) = over.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some((value, worst, over.iter().map(|(_, place)| place.at.0).collect()))
}

/// Against the median of all trials on the same machine, with the variants of all slow trials.
fn slow_canary(seen: &Evidence<'_>) -> Option<Found> {
    // Machines differ in speed.
    let mut machines: BTreeMap<(&str, &str), Vec<_>> = BTreeMap::new();
    for trial in &seen.joined.trials {
        let summary = trial.finished();
        if let Some((summary, canary)) = summary.and_then(|s| Some((s, s.canary.as_ref()?))) {
            machines.entry(machine_of(summary)).or_default().push((trial, summary, canary));
        }
    }
    let mut slow = Vec::new();
    for trials in machines.into_values() {
        let times = trials.iter().flat_map(|(.., canary)| [canary.before_s, canary.after_s]);
        let ordinary = median(&times.collect::<Vec<f64>>());
        for (trial, summary, canary) in trials {
            let most = canary.before_s.max(canary.after_s);
            if ordinary > 0.0 && most > CANARY_SLOW * ordinary {
                slow.push((most, ordinary, trial, summary, canary));
            }
        }
    }
    let worst = slow.iter().max_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)))?;
    let &(most, ordinary, JoinedTrial { variant, number, .. }, summary, canary) = worst;
    // Only the time before a trial discards blocks.
    let is_before = canary.before_s >= most;
    let (limit, is_last) = limits(seen.runs, summary);
    let words = format!(
        "the CPU probe (a fixed piece of CPU work, timed before and after each trial) took {} {} \
         trial {number} ({}; median over all trials that were kept: {}{})",
        seconds(most),
        if is_before { "before" } else { "after" },
        seen.variant(*variant),
        seconds(ordinary),
        beside_limit(most, limit.canary.filter(|_| is_before), is_last, seconds)
    );
    Some(Found::new(words, slow.iter().map(|(_, _, trial, ..)| trial.variant)))
}

pub(super) fn discarded(seen: &Evidence<'_>) -> Option<Found> {
    let is_defined = seen.caveats.iter().any(|caveat| caveat.message.contains(voiding::PROBE));
    let void = &seen.findings.void_blocks;
    let (message, advice) = voiding::in_words(void, seen.runs, is_defined)?;
    Found::new(message, []).advise(advice)
}
