//! Trials that are missing, short or wrong, and attempts that failed, waited or were held back.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use dyno_record::AuditRow;
use dyno_units::Nanoseconds;

use super::found::{At, Evidence, Found, Place};
use crate::attribution::readings::mean_rate;
use crate::cells::Measured;
use crate::metrics::{self, DESIGNED, TRANSIENT, TRANSIENT_MOST, quantile};
use crate::numbers::grouped;
use crate::words::{count, list, rate, seconds, share};
use crate::{MetricId, TrialFacts};

const REPETITIONS_ENOUGH: u32 = 3;

pub(super) fn too_few_repetitions(seen: &Evidence<'_>) -> Option<Found> {
    let finished = |idx: usize| seen.findings.variants[idx].finished;
    let planned =
        |idx: usize| seen.joined.trials.iter().filter(|trial| trial.variant == idx).count() as u32;
    let variants = 0..seen.findings.variants.len();
    let few: Vec<usize> = variants.filter(|&idx| finished(idx) < REPETITIONS_ENOUGH).collect();
    let words = |&idx: &usize| format!("{} has {}", seen.variant(idx), finished(idx));
    let is_planned = few.iter().all(|&idx| planned(idx) >= REPETITIONS_ENOUGH);
    let found = Found { words: few.iter().map(words).collect(), variants: few, ..Found::default() };
    found.advise_if(
        is_planned,
        "Enough repetitions are planned: start the same run again to do the missing trials, and \
         see below why trials failed, if any did.",
    )
}

pub(super) fn errors(seen: &Evidence<'_>) -> Option<Found> {
    // All, and the failed ones by outcome.
    let mut attempts: BTreeMap<At, (u64, BTreeMap<&str, u64>)> = BTreeMap::new();
    let mut examples: BTreeMap<&str, &str> = BTreeMap::new();
    // Errors of a fault are reported with the fault.
    for place in seen.places.iter().filter(|place| place.summary.faults.is_empty()) {
        let (all, failed) = attempts.entry(place.at).or_default();
        for (outcome, &n) in place.summary.kinds.iter().flat_map(|kind| &kind.outcomes) {
            *all += n;
            if n > 0 && !DESIGNED.contains(&outcome.as_str()) {
                *failed.entry(outcome).or_default() += n;
            }
        }
        for (name, message) in &place.summary.error_examples {
            examples.entry(name).or_insert(message);
        }
    }
    attempts.retain(|_, (all, failed)| {
        let transient: u64 = TRANSIENT.iter().filter_map(|outcome| failed.get(outcome)).sum();
        let is_hard = failed.keys().any(|outcome| !TRANSIENT.contains(outcome));
        is_hard || transient as f64 > TRANSIENT_MOST * *all as f64
    });
    let shares = attempts.iter().map(|(at, (all, failed))| {
        (failed.values().sum::<u64>() as f64 / (*all).max(1) as f64, *at)
    });
    let (most, worst) = shares.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let outcomes: BTreeSet<&str> =
        attempts.values().flat_map(|(_, failed)| failed.keys().copied()).collect();
    let parts = outcomes.iter().map(|outcome| match examples.get(outcome) {
        Some(example) => format!("{} (“{}”)", outcome.replace('_', " "), shortened(example)),
        None => outcome.replace('_', " "),
    });
    let words =
        format!("{} of them ({}). Outcomes: {}", share(most), seen.place(worst), list(parts));
    let found = Found::at(words, attempts.keys().copied());
    if outcomes.iter().all(|outcome| TRANSIENT.contains(outcome)) {
        return found.advise(
            "Throughput and response times count committed transactions only, but conflicts cost \
             work too: compare retries and errors between variants.",
        );
    }
    found.advise_if(
        outcomes.contains("timed_out"),
        "Statements that hit `statement_timeout` are missing from the response times, which \
         therefore look too good. Raise the timeout or lower the load.",
    )
}

/// Servers quote whole statements; the report's list has them in full.
const EXAMPLE_MOST: usize = 160;

fn shortened(example: &str) -> Cow<'_, str> {
    match example.char_indices().nth(EXAMPLE_MOST) {
        Some((at, _)) => format!("{}…", example[..at].trim_end()).into(),
        None => example.into(),
    }
}

const DEAD_LEAST_S: f64 = 1.0;
/// Multiple of the step's p99 that it must last.
const DEAD_TIMES_P99: f64 = 10.0;

/// Seconds without work at the end; `None` if work went on, or ended as expected.
fn dead_s(place: &Place<'_>) -> Option<f64> {
    let step = place.summary;
    // A server with a fault is away on purpose.
    let is_meant = step.search.is_some() || !step.faults.is_empty();
    if is_meant || step.ended_by.as_deref() == Some("quota") {
        return None;
    }
    let rates = step.intervals.start_s.iter().zip(&step.intervals.throughput);
    let last = rates.rev().find(|(_, throughput)| **throughput > 0.0).map(|(start, _)| *start)?;
    // Its commits may have been at its very end.
    let dead_s = step.measured_s - (last + 1.0).max(0.0);
    let p99_us = step.intervals.p99_us.iter().copied().fold(0.0, f64::max);
    (dead_s >= DEAD_LEAST_S && dead_s >= DEAD_TIMES_P99 * p99_us / 1e6).then_some(dead_s)
}

/// A hanging server is not idle: waiting transactions have no response time yet.
pub(super) fn dead_end(seen: &Evidence<'_>) -> Option<Found> {
    let dead: Vec<(f64, &Place<'_>)> =
        seen.places.iter().filter_map(|place| Some((dead_s(place)?, place))).collect();
    let (longest, worst) = dead.iter().max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    let waiting = match worst.summary.in_flight_at_end {
        Some(n) if n > 0 => format!(", with {} waiting for an answer", count(n, "attempt")),
        _ => String::new(),
    };
    let words = format!(
        "{}; longest in trial {} ({}): the last {} of {}{waiting}",
        count(dead.len() as u64, "measurement phase"),
        worst.trial.number,
        seen.place(worst.at),
        seconds(*longest),
        seconds(worst.summary.measured_s),
    );
    Some(Found::at(words, dead.iter().map(|(_, place)| place.at)))
}

/// More is no accident; there are usually ten periods a second.
const PERIODS_MOST: f64 = 0.5;

/// By a limit of CPU time, such as a pod's.
pub(super) fn throttled(seen: &Evidence<'_>) -> Option<Found> {
    let mut worst: BTreeMap<At, (f64, String)> = BTreeMap::new();
    for place in &seen.places {
        // A product in Dyno's process is in the generator's group.
        let is_inside = place.trial.server.product_facts().in_process;
        let group = if is_inside { "generator" } else { "server" };
        let reading = |name: &str| mean_rate(place.summary, &format!("cgroup.{group}.{name}")).ok();
        let rate = reading("throttled_periods_per_s").filter(|rate| *rate > PERIODS_MOST);
        let Some(rate) = rate else { continue };
        // A mean of equal numbers is not exact.
        let limit = reading("cpu_limit").map(|limit| (limit * 1000.0).round() / 1000.0);
        let limit = limit.map_or(String::new(), |limit| format!(", limit {limit} CPUs"));
        if worst.get(&place.at).is_none_or(|known| known.0 < rate) {
            worst.insert(place.at, (rate, limit));
        }
    }
    seen.places_with(
        worst
            .into_iter()
            .map(|(at, (rate, limit))| (at, format!("{rate:.1} times a second{limit}"))),
    )
}

/// Of the first client in the pooler's queue, in seconds.
const LONGEST: &str = "pgbouncer.wait_longest_s";
const WAITING: &str = "pgbouncer.clients_waiting";
/// Of the measured time; a longer wait counts as not served.
const UNSERVED_SHARE: f64 = 0.5;

/// Clients that waited in a pooler for most of a step.
pub(super) fn unserved(seen: &Evidence<'_>) -> Option<Found> {
    let mut found: BTreeMap<At, f64> = BTreeMap::new();
    for place in &seen.places {
        let values = |name: &str| -> Vec<f64> {
            let column = place.summary.readings.get(name).map_or(&[][..], Vec::as_slice);
            column.iter().flatten().copied().collect()
        };
        let longest = values(LONGEST).into_iter().fold(0.0, f64::max);
        let waiting = values(WAITING);
        let measured_s = place.summary.measured_s;
        if measured_s > 0.0 && longest >= UNSERVED_SHARE * measured_s && !waiting.is_empty() {
            let mean = waiting.iter().sum::<f64>() / waiting.len() as f64;
            found.entry(place.at).or_insert(mean);
        }
    }
    seen.places_with(found.into_iter().map(|(at, mean)| (at, format!("{mean:.0} waiting"))))
}

pub(super) fn missing_trials(seen: &Evidence<'_>) -> Option<Found> {
    let trials = &seen.findings.trials;
    let of = |state: &str| -> Vec<&TrialFacts> {
        trials.iter().filter(|trial| trial.state == state).collect()
    };
    let (failed, missing) = (of("failed"), of("missing"));
    let mut parts = Vec::new();
    if let Some(first) = failed.first() {
        let variant = seen.variant(first.variant);
        let why = first.message.as_deref().unwrap_or("for an unknown reason").trim_end_matches('.');
        parts.push(format!("{} failed (trial {}, {variant}: {why})", failed.len(), first.number));
    }
    if !missing.is_empty() {
        let have = if missing.len() == 1 { "has" } else { "have" };
        parts.push(format!("{} {have} not finished yet", missing.len()));
    }
    parts.first()?;
    let needed = trials.iter().filter(|trial| trial.state != "not needed").count();
    let words = format!("{}, {}", count(needed as u64, "planned trial"), list(&parts));
    let found = Found::new(words, failed.iter().chain(&missing).map(|trial| trial.variant));
    if failed.is_empty() {
        return found.advise("Start the same run again to do the missing trials.");
    }
    found.advise_if(
        missing.is_empty(),
        "Read the server's log of the failed trials. If one variant fails more often than the \
         others, the trials it finished may not be representative.",
    )
}

pub(super) fn audit(seen: &Evidence<'_>) -> Option<Found> {
    let trials = &seen.findings.trials;
    // Kinds of transactions that did not commit say nothing of the tables.
    let contradicts = |row: &&AuditRow| !row.pass && row.name != AuditRow::KINDS_COMMIT;
    let is_failed = |trial: &&TrialFacts| trial.audit.iter().any(|row| contradicts(&row));
    let failed: Vec<&TrialFacts> = trials.iter().filter(is_failed).collect();
    let first = failed.first()?;
    let row = first.audit.iter().find(contradicts)?;
    let n_audited = trials.iter().filter(|trial| !trial.audit.is_empty()).count();
    let words = format!(
        "{} of {} did not match the transactions that the server had acknowledged. In trial {} \
         ({}), {}: expected {}, found {}",
        failed.len(),
        count(n_audited as u64, "audited trial"),
        first.number,
        seen.variant(first.variant),
        row.name,
        row.expected,
        row.measured,
    );
    Some(Found::new(words, failed.iter().map(|trial| trial.variant)))
}

/// With their names, and what is not affected if they are.
const QUANTILES: [(MetricId, &str, &str); 3] = [
    (metrics::RESPONSE_P95, "p95", "Throughput, the mean and p50"),
    (metrics::RESPONSE_P99, "p99", "Throughput, p50 and p95"),
    (metrics::RESPONSE_P999, "p99.9", "Throughput, p50, p95 and p99"),
];

/// A quantile with too few observations beyond it in some trial.
struct Short<'a> {
    name: &'static str,
    nearer: &'static str,
    /// Share beyond it.
    beyond: f64,
    places: Vec<&'a Measured>,
    least: &'a Measured,
}

fn short_quantiles(measured: &[Measured]) -> Vec<Short<'_>> {
    let of = |(metric, name, nearer): (MetricId, &'static str, &'static str)| {
        let beyond = 1.0 - quantile(metric)?;
        let is_few = |n: u64| n > 0 && metrics::few_beyond(1.0 - beyond, n).is_some();
        // Quotas fix the number of transactions; watched and some imported steps have no times.
        let is_short = |m: &&Measured| {
            let has = |metric: MetricId| m.values.contains_key(&metric);
            is_few(m.committed) && has(metric) && !has(metrics::STEP_TIME)
        };
        let places: Vec<&Measured> = measured.iter().filter(is_short).collect();
        let least = places.iter().copied().min_by_key(|m| m.committed)?;
        Some(Short { name, nearer, beyond, places, least })
    };
    QUANTILES.into_iter().filter_map(of).collect()
}

/// One for all quantiles: a short nearer one implies a short further one.
pub(super) fn short(seen: &Evidence<'_>) -> Option<Found> {
    let short = short_quantiles(seen.measured);
    let (first, last) = (short.first()?, short.last()?);
    let parts = |tell: &dyn Fn(&Short<'_>) -> String| list(short.iter().map(tell));
    let (s, rests) = if short.len() == 1 { ("", "rests") } else { ("s", "rest") };
    let trial = if seen.measured.len() > 1 { "the trial with the fewest" } else { "the trial" };
    let beyond = parts(&|one| {
        let n = (one.least.committed as f64 * one.beyond + 1e-6).round();
        format!("{n:.0} beyond {}", one.name)
    });
    let of = |measured: &Measured| measured.value(metrics::THROUGHPUT).unwrap_or(0.0);
    let needed = parts(&|one| {
        let needed = (metrics::BEYOND_LEAST / one.beyond).round();
        let took = Nanoseconds::from_secs((needed / of(one.least)).ceil() as u64);
        let needed = grouped(needed.round() as u64);
        format!("{needed} transactions for {} (about {took})", one.name)
    });
    let n = last.least.committed;
    let planned = seen.findings.steps.get(last.least.step).and_then(|step| step.duration_s);
    let words = format!(
        "{} response time{s} {rests} on too few observations: {trial} has {} transaction{}, of \
         which about {}. {}",
        parts(&|one| one.name.to_owned()),
        grouped(n),
        if n == 1 { "" } else { "s" },
        beyond.replacen(" beyond", " lie beyond", 1),
        first.nearer,
    );
    // Short wherever a nearer one is.
    Found::at(words, last.places.iter().map(|m| (m.variant, m.step))).advise(format!(
        "At this trial's rate of {}, each trial needs {needed} at each {}: increase `duration`{} in \
         the study's `[design]`.",
        metrics::with_thing(metrics::THROUGHPUT, &rate(of(last.least))),
        seen.findings.step_noun(),
        planned.map_or(String::new(), |planned| format!(" ({})", seconds(planned))),
    ))
}
