//! Order, drift, busy hosts, restarted servers, unmet quotas, deferred work, open verdicts.

use std::collections::BTreeMap;

use dyno_record::{Canary, Run, StepSummary};
use dyno_units::reading::{Role, known};

use crate::attribution::readings::{mean_rate, measured_values};
use crate::cells::Measured;
use crate::join::{Joined, JoinedTrial};
use crate::statistics::{mean, median, t_two_sided_p};
use crate::trial_hosts::machine_of;
use crate::voiding::limits;
use crate::words::{count, list, percent, seconds, share};
use crate::{Caveat, CaveatKind, Findings, metrics};

use super::{Place, caveat_at, place_name, places, sorted};

/// To distinguish a course from chance.
pub(super) const BLOCKS_LEAST: usize = 5;
const DRIFT_ALPHA: f64 = 0.01;
/// A canary at this multiple of the run's median shows a busy host.
const CANARY_SLOW: f64 = 1.25;
/// CPU time given to others counts from here on.
const STEAL_PCT: f64 = 1.0;
/// Of the machine's CPUs.
const OTHERS_SHARE: f64 = 0.1;
/// Fall of a server's age that may be rounding.
const AGE_ROUNDING_S: f64 = 1.5;

pub(super) fn caveats(
    joined: &Joined<'_>,
    measured: &[Measured],
    findings: &Findings,
    runs: &[Run],
) -> Vec<Caveat> {
    [
        sequential_order(joined, findings),
        drift(measured, findings),
        noisy_host(joined, findings, runs),
        server_restarted(joined, findings),
        unfinished_quota(findings),
        unsteady_end(findings),
        not_caught_up(findings),
        not_settled(findings),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn sequential_order(joined: &Joined<'_>, findings: &Findings) -> Option<Caveat> {
    // Imported results have their own caveat, as their order is unknown.
    let is_known = !super::imported::are_all(joined);
    if joined.interleaved || !is_known || findings.comparisons.is_empty() {
        return None;
    }
    let compared = findings.comparisons.iter().flat_map(|c| [c.variant, c.baseline]);
    Some(Caveat {
        kind: CaveatKind::SequentialOrder,
        message: "Variants were measured one after the other, so any drift of the machine looks like \
                  an effect of the variant."
            .to_owned(),
        advice:
            "Use `order = \"interleaved\"`. METHOD.md shows how often a drift of 2 % causes a false \
                 alarm otherwise."
                .to_owned(),
        variants: sorted(compared),
        steps: Vec::new(),
    })
}

/// Rise or fall of throughput from block to block, all variants and steps together: the slope of
/// blocks' mean distance (of logarithms) from the cells' means, by its t value.
fn drift(measured: &[Measured], findings: &Findings) -> Option<Caveat> {
    let log = |m: &Measured| m.value(metrics::THROUGHPUT).filter(|v| *v > 0.0).map(f64::ln);
    let cell_mean = |variant: usize, step: usize| {
        let here = measured.iter().filter(|m| (m.variant, m.step) == (variant, step));
        let logs: Vec<f64> = here.filter_map(log).collect();
        (logs.len() >= BLOCKS_LEAST).then(|| mean(&logs))
    };
    let mut means = std::collections::BTreeMap::new();
    let mut blocks: std::collections::BTreeMap<u32, Vec<f64>> = std::collections::BTreeMap::new();
    for one in measured {
        let place = (one.variant, one.step);
        let center = *means.entry(place).or_insert_with(|| cell_mean(place.0, place.1));
        if let (Some(center), Some(value)) = (center, log(one)) {
            blocks.entry(one.block).or_default().push(value - center);
        }
    }
    let points: Vec<(f64, f64)> =
        blocks.iter().map(|(block, off)| (f64::from(*block), mean(off))).collect();
    let (slope, p) = slope_and_p(&points)?;
    let change = slope * (points.last()?.0 - points.first()?.0);
    let matters = change.abs() >= findings.threshold.max(0.01).ln_1p();
    (p <= DRIFT_ALPHA && matters).then(|| Caveat {
        kind: CaveatKind::Drift,
        message: format!(
            "Throughput of all variants together changed by {} from the first to the last of {} \
             ({}).",
            percent(change.exp_m1() * 100.0),
            count(points.len() as u64, "block"),
            crate::numbers::p_value(p),
        ),
        advice: "Something is drifting: a disk that fills up, the temperature, or a noisy neighbour, for example. \
                 Comparisons within blocks cancel it; the CIs of individual variants are wider because \
                 of it."
            .to_owned(),
        variants: Vec::new(),
        steps: Vec::new(),
    })
}

/// By least squares and Student's distribution, two-sided.
pub(super) fn slope_and_p(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    if points.len() < BLOCKS_LEAST {
        return None;
    }
    let n = points.len() as f64;
    let (x, y) = (
        points.iter().map(|(x, _)| x).sum::<f64>() / n,
        points.iter().map(|(_, y)| y).sum::<f64>() / n,
    );
    let squares: f64 = points.iter().map(|(a, _)| (a - x).powi(2)).sum();
    let slope = points.iter().map(|(a, b)| (a - x) * (b - y)).sum::<f64>() / squares;
    let left: f64 = points.iter().map(|(a, b)| (b - y - slope * (a - x)).powi(2)).sum();
    let error = (left / (n - 2.0) / squares).sqrt();
    let p = if error > 0.0 { t_two_sided_p(slope / error, n - 2.0) } else { 0.0 };
    (slope != 0.0).then_some((slope, p))
}

fn noisy_host(joined: &Joined<'_>, findings: &Findings, runs: &[Run]) -> Option<Caveat> {
    let mut parts = Vec::new();
    let mut variants = Vec::new();
    if let Some((text, of)) = slow_canary(joined, findings, runs) {
        parts.push(text);
        variants.extend(of);
    }
    let places = places(joined);
    let others_most = OTHERS_SHARE * f64::from(findings.cpus.max(1));
    let stolen = |v: f64| format!("CPU steal reached {}", share(v / 100.0));
    let n_cpus = findings.cpus;
    let others = |v: f64| {
        format!("other processes and the kernel's own threads used up to {v:.2} of {n_cpus} CPUs")
    };
    if let Some((value, worst, of)) =
        over(&places, |s| mean_rate(s, known::CPU_STEAL_PCT).ok(), STEAL_PCT)
    {
        let limit = limits(runs, worst.trial);
        let limit = beside_limit(value / 100.0, limit.steal, limit.is_last, share);
        parts.push(format!(
            "{} ({}{limit})",
            stolen(value),
            place_name(findings, worst.variant, worst.step)
        ));
        variants.extend(of);
    }
    if let Some((value, worst, of)) = over(&places, used_by_others, others_most) {
        let limit = limits(runs, worst.trial);
        let n_cpus = f64::from(n_cpus.max(1));
        let cpus = |share: f64| format!("{:.2} CPUs", share * n_cpus);
        let user = mean_rate(worst.summary, known::REST_CPU_USER).ok();
        let limit = user.filter(|_| limit.others.is_some()).map_or(String::new(), |user| {
            let beside = beside_limit(user / n_cpus, limit.others, limit.is_last, cpus);
            format!("; {} of it in user mode{beside}", cpus(user / n_cpus))
        });
        parts.push(format!(
            "{} ({}{limit})",
            others(value),
            place_name(findings, worst.variant, worst.step)
        ));
        variants.extend(of);
    }
    (!parts.is_empty()).then(|| Caveat {
        kind: CaveatKind::NoisyHost,
        message: format!("The host was busy with other work: {}.", parts.join("; ")),
        advice: noise_advice(findings),
        variants: sorted(variants.into_iter()),
        steps: Vec::new(),
    })
}

/// The limit beyond which such a trial is discarded, to follow its value; empty without one.
fn beside_limit(
    value: f64,
    limit: Option<f64>,
    is_last: bool,
    show: impl Fn(f64) -> String,
) -> String {
    let Some(limit) = limit else { return String::new() };
    let is_over = value > limit;
    let limit = show(limit);
    match (is_over, is_last) {
        (false, _) => format!("; limit {limit}"),
        (true, true) => format!(
            "; above this variant's limit of {limit}, but kept: no more blocks could be discarded"
        ),
        (true, false) => format!("; above this variant's limit of {limit}, but kept"),
    }
}

fn noise_advice(findings: &Findings) -> String {
    let effect = if findings.trials.len() == 1 {
        "A single trial cannot show how much of the result is due to that work."
    } else if findings.comparisons.is_empty() {
        "The noise widens the CIs."
    } else {
        "Interleaved repetitions spread the noise over all variants, so it mostly widens the CIs; but a \
         variant that uses more CPU or disk suffers more from it."
    };
    format!("Stop the other work on the host, or use a dedicated machine. {effect}")
}

/// As far as seen: much of what no tick saw is the load's own interrupts and switches.
fn used_by_others(summary: &StepSummary) -> Option<f64> {
    let rest = mean_rate(summary, known::REST_CPU).ok()?;
    Some(rest - mean_rate(summary, known::CPU_UNSAMPLED).unwrap_or(0.0))
}

fn over<'p, 'a>(
    places: &'p [Place<'a>],
    mean: impl Fn(&StepSummary) -> Option<f64>,
    most: f64,
) -> Option<(f64, &'p Place<'a>, Vec<usize>)> {
    let over: Vec<(f64, &Place<'a>)> = places
        .iter()
        .filter_map(|place| Some((mean(place.summary)?, place)))
        .filter(|(value, _)| *value > most)
        .collect();
    let (value, worst) = over.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some((value, worst, over.iter().map(|(_, place)| place.variant).collect()))
}

/// Against the median of all trials on the same machine, with the variants of all slow trials.
fn slow_canary<'a>(
    joined: &Joined<'a>,
    findings: &Findings,
    runs: &[Run],
) -> Option<(String, Vec<usize>)> {
    let canary = |trial: &JoinedTrial<'a>| {
        let summary = trial.finished()?;
        let canary: &Canary = summary.canary.as_ref()?;
        let most = canary.before_s.max(canary.after_s);
        Some((trial.variant, trial.number, most, canary.clone(), machine_of(summary), summary))
    };
    let all: Vec<_> = joined.trials.iter().filter_map(canary).collect();
    // Machines differ in speed.
    let mut machines: BTreeMap<(&str, &str), Vec<_>> = BTreeMap::new();
    all.iter().for_each(|one| machines.entry(one.4).or_default().push(one));
    let mut slow = Vec::new();
    for trials in machines.into_values() {
        let times: Vec<f64> =
            trials.iter().flat_map(|one| [one.3.before_s, one.3.after_s]).collect();
        let ordinary = median(&times);
        let is_slow = |most: f64| ordinary > 0.0 && most > CANARY_SLOW * ordinary;
        slow.extend(trials.iter().filter(|one| is_slow(one.2)).map(|one| (*one, ordinary)));
    }
    let worst = slow.iter().max_by(|a, b| (a.0.2 / a.1).total_cmp(&(b.0.2 / b.1)))?;
    let ((variant, number, most, canary, _, summary), ordinary) = worst;
    // Only the time before a trial discards blocks.
    let is_before = canary.before_s >= *most;
    let limit = limits(runs, summary);
    let beside = match is_before {
        true => beside_limit(*most, limit.canary, limit.is_last, seconds),
        false => String::new(),
    };
    let text = format!(
        "the CPU probe (a fixed piece of CPU work, timed before and after each trial) took {} {} trial \
         {number} ({}; median over all trials that were kept: {}{beside})",
        seconds(*most),
        if is_before { "before" } else { "after" },
        findings.variants[*variant].name,
        seconds(*ordinary),
    );
    Some((text, slow.iter().map(|(one, _)| one.0).collect()))
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

fn server_restarted(joined: &Joined<'_>, findings: &Findings) -> Option<Caveat> {
    let places = places(joined);
    let restarted: Vec<_> = places.iter().filter(|place| is_restarted(place)).collect();
    let first = restarted.first()?;
    let message = format!(
        "The server restarted or was unavailable during {}, first in trial {} ({}).",
        count(restarted.len() as u64, "measurement phase"),
        first.trial.number,
        place_name(findings, first.variant, first.step),
    );
    let advice = "Do not use these numbers: caches were cold and recovery ran. Read the server's log \
                  for the cause.";
    let places = restarted.iter().map(|place| (place.variant, place.step));
    Some(caveat_at(CaveatKind::ServerRestarted, (message, advice), places))
}

fn unfinished_quota(findings: &Findings) -> Option<Caveat> {
    let over = |cell: &&crate::Cell| cell.ended_by.get("limit").is_some_and(|n| *n > 0);
    let cells: Vec<&crate::Cell> = findings.cells.iter().filter(over).collect();
    if cells.is_empty() {
        return None;
    }
    let place = |cell: &&crate::Cell| {
        let n = cell.ended_by["limit"];
        let all: u32 = cell.ended_by.values().sum();
        format!("{} ({n} of {all})", place_name(findings, cell.variant, cell.step))
    };
    let places: Vec<String> = cells.iter().map(place).collect();
    let message = format!(
        "Steps that end when their work is done reached their time limit first: {}. The steps after \
         them ran on less data than intended.",
        list(&places)
    );
    let advice = "Allow the step more time, or give it less to do. Its rate covers only the work \
                  that was done; its time cannot be compared.";
    let places = cells.iter().map(|cell| (cell.variant, cell.step));
    Some(caveat_at(CaveatKind::UnfinishedQuota, (message, advice), places))
}

/// In their longest time.
fn unsteady_end(findings: &Findings) -> Option<Caveat> {
    let count = |cell: &crate::Cell| cell.ended_by.get("unsteady").copied().unwrap_or(0);
    let cells: Vec<&crate::Cell> = findings.cells.iter().filter(|cell| count(cell) > 0).collect();
    let place = |cell: &&crate::Cell| {
        let all: u32 = cell.ended_by.values().sum();
        let place = place_name(findings, cell.variant, cell.step);
        format!("{place} ({} of {all})", count(cell))
    };
    let places: Vec<String> = cells.iter().map(place).collect();
    let message = format!(
        "Steps that end when throughput is steady reached their time limit first: {}.",
        list(&places)
    );
    let advice = "Raise `until_steady`, or find out what keeps changing: a cache that fills, deferred \
                  work that grows, a period longer than `duration`.";
    let at = cells.iter().map(|cell| (cell.variant, cell.step));
    (!cells.is_empty()).then(|| caveat_at(CaveatKind::UnfinishedQuota, (message, advice), at))
}

fn not_caught_up(findings: &Findings) -> Option<Caveat> {
    let (mut parts, mut variants, mut steps) = (Vec::new(), Vec::new(), Vec::new());
    for cell in &findings.cells {
        let unpaid = cell.settled.iter().filter(|settled| !settled.paid).count();
        if unpaid > 0 {
            let place = place_name(findings, cell.variant, cell.step);
            let all = count(cell.settled.len() as u64, "trial");
            parts.push(format!("{place} began with a backlog in {unpaid} of {all}"));
            variants.push(cell.variant);
            steps.push(cell.step);
        }
    }
    for run_off in findings.run_off.iter().filter(|run_off| !run_off.unpaid.is_empty()) {
        parts.push(run_off.summary.trim_end_matches('.').to_owned());
        variants.push(run_off.variant);
    }
    (!parts.is_empty()).then(|| Caveat {
        kind: CaveatKind::NotCaughtUp,
        message: format!(
            "The engine had not caught up with its deferred work: {}.",
            parts.join("; ")
        ),
        advice:
            "Deferred work (flushing, purge, compaction) is missing from the numbers of the load \
             that caused it, and slows down what comes next. Allow more time between steps, or \
             look at the charts of deferred work over time."
                .to_owned(),
        variants: sorted(variants.into_iter()),
        steps: sorted(steps.into_iter()),
    })
}

fn not_settled(findings: &Findings) -> Option<Caveat> {
    let stopping = findings.stopping.as_ref()?;
    let open: Vec<usize> = (0..stopping.variants.len())
        .filter(|&idx| !stopping.variants[idx].settled && findings.variants[idx].baseline.is_some())
        .collect();
    if open.is_empty() {
        return None;
    }
    let names: Vec<&str> = open.iter().map(|&idx| findings.variants[idx].name.as_str()).collect();
    Some(Caveat {
        kind: CaveatKind::NotSettled,
        message: format!(
            "The run ended before every verdict was decided: {} {} undecided after at most {} repetitions.",
            list(&names),
            if names.len() == 1 { "is" } else { "are" },
            stopping.repetitions_max,
        ),
        advice:
            "Start the run again if trials are missing. Otherwise raise `repetitions`, the time \
                 `budget` or the `threshold`."
                .to_owned(),
        variants: open,
        steps: Vec::new(),
    })
}

#[cfg(test)]
mod tests;
