//! Finds reasons to trust the findings less, with advice.

mod alike;
mod course;
mod dead_end;
mod differences;
mod hosts;
mod imported;
mod in_memory;
mod joined;
mod law;
mod machines;
mod missed;
mod not_on_disk;
mod throttled;
mod uncompressed;
mod unserved;
mod user_space;

pub(crate) use alike::is_cached_on_one_side;
pub use imported::is_imported;

use std::borrow::Cow;
use std::collections::BTreeMap;

use dyno_record::{LevelRecord, Run, StepSummary, TrialSummary, VariantRecord};
use dyno_units::Nanoseconds;
use dyno_units::reading::known;

use crate::attribution::readings::mean_rate;
use crate::cells::Measured;
use crate::join::{Joined, JoinedTrial};
use crate::metrics::quantile;
use crate::numbers::grouped;
use crate::words::{count, list, rate, seconds, share};
use crate::{Caveat, CaveatKind, Findings, MetricId, TrialFacts, metrics};

const REPETITIONS_ENOUGH: u32 = 3;
/// Busier workers delay what they measure.
const BUSY_MOST: f64 = 0.7;
/// Of what a worker can do; more is close to the limit.
const CALIBRATED_MOST: f64 = 0.7;
/// Of the time; workers that wait more for a CPU delay what they measure.
const RUN_QUEUE_MOST: f64 = 0.05;
/// From here on the CPUs count as full.
const CPUS_FULL_PCT: f64 = 90.0;
/// Rarer transient errors are ordinary.
pub(crate) const TRANSIENT_MOST: f64 = 0.001;
/// A retry may mend them, or a workload with random keys produces them.
pub(crate) const TRANSIENT: [&str; 4] =
    ["deadlock", "serialization", "lock_timeout", "duplicate_key"];
pub(crate) const DESIGNED: [&str; 2] = ["committed", "rolled_back"];

/// In the order of their kinds.
pub(crate) fn caveats(
    joined: &Joined<'_>,
    measured: &[Measured],
    findings: &Findings,
    runs: &[Run],
) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    caveats.extend(too_few_repetitions(joined, findings));
    caveats.extend(generator_limit(joined, findings));
    caveats.extend(hosts::caveats(findings));
    caveats.extend(machines::caveats(joined, findings));
    caveats.extend(errors(joined, findings));
    caveats.extend(dead_end::caveat(joined, findings));
    caveats.extend(throttled::caveat(joined, findings));
    caveats.extend(missed::missed_arrivals(joined, findings));
    caveats.extend(unserved::caveat(joined, findings));
    caveats.extend(different_durability(joined, findings));
    caveats.extend(in_memory::caveat(joined, findings));
    caveats.extend(not_on_disk::caveats(joined, findings));
    caveats.extend(user_space::caveat(joined, findings));
    caveats.extend(uncompressed::caveat(joined, findings));
    caveats.extend(missing_trials(findings));
    caveats.extend(audit_failed(findings));
    caveats.extend(short_measurement(measured, findings));
    caveats.extend(crate::time::caveats::caveats(findings));
    caveats.extend(crate::searches::unsettled(findings));
    caveats.extend(alike::caveats(joined, findings));
    caveats.extend(course::caveats(joined, measured, findings, runs));
    caveats.extend(differences::caveats(joined, measured, findings));
    let discarded = crate::voiding::caveat(&findings.void_blocks, runs, &caveats);
    caveats.extend(discarded);
    caveats.extend(law::law_misses(findings));
    caveats.extend(joined::caveats(joined, findings));
    caveats.extend(imported::caveat(joined));
    caveats.extend(simulated(joined));
    caveats.extend(null_server(joined));
    caveats
}

struct Place<'a> {
    variant: usize,
    step: usize,
    trial: &'a TrialSummary,
    summary: &'a StepSummary,
}

fn places<'a>(joined: &Joined<'a>) -> Vec<Place<'a>> {
    let mut places = Vec::new();
    for trial in &joined.trials {
        for step in 0..joined.steps.len() {
            if let (Some(summary), Some(ended)) = (trial.step(step), trial.summary) {
                places.push(Place { variant: trial.variant, step, trial: ended, summary });
            }
        }
    }
    places
}

fn caveat_at(
    kind: CaveatKind,
    (message, advice): (String, &str),
    places: impl Iterator<Item = (usize, usize)>,
) -> Caveat {
    let (variants, steps): (Vec<usize>, Vec<usize>) = places.unzip();
    Caveat {
        kind,
        message,
        advice: advice.to_owned(),
        variants: sorted(variants.into_iter()),
        steps: sorted(steps.into_iter()),
    }
}

fn sorted(indexes: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut indexes: Vec<usize> = indexes.collect();
    indexes.sort_unstable();
    indexes.dedup();
    indexes
}

/// Where it was: `a at 4 clients`.
fn place_name(findings: &Findings, variant: usize, step: usize) -> String {
    let facts = &findings.steps[step];
    let load = facts.search.as_ref().map_or(&facts.name, |search| &search.limit);
    // A job without load is a step, but no load level.
    let is_job = facts.clients == 0
        && facts.rate.is_none()
        && facts.search.is_none()
        && facts.own.as_ref().is_none_or(|own| own.roles.is_empty());
    let at = if is_job { "in step" } else { "at" };
    format!("{} {at} {load}", findings.variants[variant].name)
}

fn too_few_repetitions(joined: &Joined<'_>, findings: &Findings) -> Option<Caveat> {
    let few: Vec<usize> = (0..findings.variants.len())
        .filter(|&idx| findings.variants[idx].finished < REPETITIONS_ENOUGH)
        .collect();
    if few.is_empty() {
        return None;
    }
    let planned = |idx: usize| joined.trials.iter().filter(|t| t.variant == idx).count() as u32;
    let finished = |&idx: &usize| {
        let variant = &findings.variants[idx];
        format!("{} has {}", variant.name, variant.finished)
    };
    let finished: Vec<String> = few.iter().map(finished).collect();
    let advice = if few.iter().all(|&idx| planned(idx) >= REPETITIONS_ENOUGH) {
        "Enough repetitions are planned: start the same run again to do the missing trials, and \
         see below why trials failed, if any did."
    } else {
        "Set `repetitions` in `[design]` to 3 or more: only the spread between repetitions shows how \
         much of a difference is noise."
    };
    Some(Caveat {
        kind: CaveatKind::TooFewRepetitions,
        message: format!("Fewer than 3 repetitions have finished: {}.", list(&finished)),
        advice: advice.to_owned(),
        variants: few,
        steps: Vec::new(),
    })
}

/// Of the workers' time.
fn queue_share(place: &Place<'_>) -> f64 {
    let generator = &place.summary.generator;
    let time = f64::from(generator.workers.max(1)) * place.summary.measured_s;
    generator.run_queue_s.map_or(0.0, |waited| waited / time)
}

fn busy(place: &Place<'_>) -> f64 {
    place.summary.generator.busiest_worker
}

fn used(place: &Place<'_>) -> f64 {
    place.summary.generator.share_of_calibrated.unwrap_or(0.0)
}

/// A database within the generator's process uses its time too, so its limit is not seen.
fn is_limited(place: &Place<'_>) -> bool {
    let server = place.trial.server.product_facts();
    !server.in_process
        && !server.simulated
        && (busy(place) > BUSY_MOST
            || used(place) > CALIBRATED_MOST
            || queue_share(place) > RUN_QUEUE_MOST)
}

/// Of a variant's finished trials.
pub(crate) fn limited_share(joined: &Joined<'_>, variant: usize, step: usize) -> f64 {
    let place = |trial: &JoinedTrial<'_>| {
        let (summary, trial) = (trial.step(step)?, trial.summary?);
        Some(is_limited(&Place { variant, step, trial, summary }))
    };
    let limited: Vec<bool> = joined.finished_of(variant).filter_map(place).collect();
    limited.iter().filter(|is| **is).count() as f64 / limited.len().max(1) as f64
}

fn generator_limit(joined: &Joined<'_>, findings: &Findings) -> Option<Caveat> {
    let limited: Vec<Place<'_>> = places(joined).into_iter().filter(is_limited).collect();
    let worst = |of: &dyn Fn(&Place<'_>) -> f64| {
        let most = limited.iter().max_by(|a, b| of(a).total_cmp(&of(b)))?;
        Some((of(most), place_name(findings, most.variant, most.step)))
    };
    let mut parts = Vec::new();
    let mut advice = Vec::new();
    if let Some((most, place)) = worst(&busy).filter(|(most, _)| *most > BUSY_MOST) {
        parts.push(format!("its busiest worker used {} of a CPU ({place})", share(most)));
        advice.push("give the generator more `workers`, or use fewer clients");
    }
    if let Some((most, place)) = worst(&used).filter(|(most, _)| *most > CALIBRATED_MOST) {
        let is_disturbed = |p: &Place<'_>| p.summary.generator.calibration_disturbed;
        let but = match limited.iter().any(is_disturbed) {
            true => ", by a calibration that other processes disturbed: the true share is lower",
            false => "",
        };
        parts.push(format!(
            "its workers ran at {} of their calibrated maximum ({place}{but})",
            share(most)
        ));
        advice.push(
            "a faster server would look the same: the generator is close to the limit that `dyno \
             calibrate` found for it",
        );
    }
    let waits = worst(&queue_share).filter(|(most, _)| *most > RUN_QUEUE_MOST);
    let only_waits = parts.is_empty();
    if let Some((most, place)) = waits {
        // With all CPUs busy, it is known what they waited for.
        let busiest = limited.iter().max_by(|a, b| queue_share(a).total_cmp(&queue_share(b)));
        let cpus = busiest.and_then(|place| mean_rate(place.summary, known::CPU_BUSY_PCT).ok());
        let full = match cpus.filter(|pct| *pct >= CPUS_FULL_PCT) {
            Some(pct) => {
                format!(", while all CPUs of the machine together were {} busy", share(pct / 100.0))
            }
            None => String::new(),
        };
        parts.push(format!(
            "its workers waited for a CPU {} of the time ({place}){full}",
            share(most)
        ));
        advice.push(match joined.has_bound_cpus {
            true => {
                "give the generator more CPUs (`generator_cpus`) or another machine: these waits are part of \
                 the response times"
            }
            false => {
                "give generator and server separate CPUs with `generator_cpus` and `server_cpus`, or \
                 use another machine for one of them: these waits are part of the response times"
            }
        });
    }
    let advice: Vec<String> = advice.into_iter().map(crate::words::capital).collect();
    (!parts.is_empty()).then(|| Caveat {
        kind: CaveatKind::GeneratorLimit,
        message: match only_waits {
            true => format!("The load generator was short of CPU: {}.", list(&parts)),
            false => format!("The load generator was near its limit: {}.", list(&parts)),
        },
        advice: format!("{}.", advice.join(". ")),
        variants: sorted(limited.iter().map(|place| place.variant)),
        steps: sorted(limited.iter().map(|place| place.step)),
    })
}

#[derive(Default)]
struct Attempts<'a> {
    all: u64,
    failed: BTreeMap<&'a str, u64>,
}

fn errors(joined: &Joined<'_>, findings: &Findings) -> Option<Caveat> {
    // By variant and step.
    let mut attempts: BTreeMap<(usize, usize), Attempts<'_>> = BTreeMap::new();
    let mut examples: BTreeMap<&str, &str> = BTreeMap::new();
    // Errors of a fault are reported with the fault.
    for place in places(joined).into_iter().filter(|place| place.summary.faults.is_empty()) {
        let Attempts { all, failed } = attempts.entry((place.variant, place.step)).or_default();
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
    attempts.retain(|_, Attempts { all, failed }| {
        let of = |is_transient: bool| -> u64 {
            let is_asked = |o: &&str| TRANSIENT.contains(o) == is_transient;
            failed.iter().filter(|(outcome, _)| is_asked(outcome)).map(|(_, n)| n).sum()
        };
        of(false) > 0 || of(true) as f64 > TRANSIENT_MOST * *all as f64
    });
    let failed_share = |Attempts { all, failed }: &Attempts<'_>| {
        failed.values().sum::<u64>() as f64 / (*all).max(1) as f64
    };
    let (worst, counts) =
        attempts.iter().max_by(|(_, a), (_, b)| failed_share(a).total_cmp(&failed_share(b)))?;
    let mut outcomes: Vec<&str> =
        attempts.values().flat_map(|attempts| attempts.failed.keys().copied()).collect();
    outcomes.sort_unstable();
    outcomes.dedup();
    let parts = |outcome: &&str| match examples.get(outcome) {
        Some(example) => format!("{} (“{}”)", outcome.replace('_', " "), shortened(example)),
        None => outcome.replace('_', " "),
    };
    let parts: Vec<String> = outcomes.iter().map(parts).collect();
    let place = place_name(findings, worst.0, worst.1);
    Some(Caveat {
        kind: CaveatKind::Errors,
        message: format!(
            "Some attempts failed, up to {} of them ({place}). Outcomes: {}.",
            share(failed_share(counts)),
            list(&parts)
        ),
        advice: errors_advice(&outcomes),
        variants: sorted(attempts.keys().map(|(variant, _)| *variant)),
        steps: sorted(attempts.keys().map(|(_, step)| *step)),
    })
}

/// Servers quote whole statements; the report's list has them in full.
const EXAMPLE_MOST: usize = 160;

fn shortened(example: &str) -> Cow<'_, str> {
    match example.char_indices().nth(EXAMPLE_MOST) {
        Some((at, _)) => format!("{}…", example[..at].trim_end()).into(),
        None => example.into(),
    }
}

fn errors_advice(outcomes: &[&str]) -> String {
    let hard: Vec<&&str> = outcomes.iter().filter(|o| !TRANSIENT.contains(o)).collect();
    let advice = if hard.is_empty() {
        "Throughput and response times count committed transactions only, but conflicts cost work \
         too: compare retries and errors between variants."
    } else if hard.iter().any(|outcome| **outcome == "timed_out") {
        "Statements that hit `statement_timeout` are missing from the response times, which \
         therefore look too good. Raise the timeout or lower the load."
    } else {
        "Failing can be faster than working, so these numbers may be too good. Fix the cause and \
         run again."
    };
    advice.to_owned()
}

fn different_durability(joined: &Joined<'_>, findings: &Findings) -> Option<Caveat> {
    let mut variants = Vec::new();
    let mut is_asked_for = true;
    for (idx, variant) in findings.variants.iter().enumerate() {
        let Some(baseline) = variant.baseline else { continue };
        let (ours, theirs) = (&variant.durability, &findings.variants[baseline].durability);
        if ours == theirs || ours.is_empty() || theirs.is_empty() {
            continue;
        }
        variants.extend([idx, baseline]);
        is_asked_for &= is_durability_varied(joined, (idx, baseline));
    }
    if variants.is_empty() {
        return None;
    }
    let variants = sorted(variants.into_iter());
    let advice = if is_asked_for {
        "Varied on purpose: a less durable variant is not better because it is faster. A ratio to the \
         baseline also includes everything else that differs between the two; the price of durability \
         alone is the ratio of variants that differ in nothing else."
    } else {
        "Configure the same durability for both, or publish the difference with the result."
    };
    Some(Caveat {
        kind: CaveatKind::DifferentDurability,
        message: format!("Commits are not equally safe: {}.", by_durability(findings)),
        advice: advice.to_owned(),
        variants,
        steps: Vec::new(),
    })
}

/// By a setting that decides it, or the volume.
pub(crate) fn is_durability_varied(joined: &Joined<'_>, (one, other): (usize, usize)) -> bool {
    let (a, b) = (&joined.variants[one], &joined.variants[other]);
    let names = [one, other].map(|idx| joined.product_facts(idx).durability_settings);
    let volume = |variant: &VariantRecord| -> Vec<LevelRecord> {
        let is_it = |level: &&LevelRecord| level.factor.split('.').any(|word| word == "volume");
        variant.levels.iter().filter(is_it).cloned().collect()
    };
    volume(a) != volume(b)
        || names.iter().flatten().any(|name| a.settings.get(name) != b.settings.get(name))
}

/// `every commit is synced (a, b); not synced (c)`
fn by_durability(findings: &Findings) -> String {
    let mut kinds: Vec<(&str, Vec<&str>)> = Vec::new();
    for variant in findings.variants.iter().filter(|variant| !variant.durability.is_empty()) {
        match kinds.iter_mut().find(|(durability, _)| *durability == variant.durability) {
            Some((_, names)) => names.push(&variant.name),
            None => kinds.push((&variant.durability, vec![&variant.name])),
        }
    }
    let kinds =
        kinds.iter().map(|(durability, names)| format!("{durability} ({})", names.join(", ")));
    kinds.collect::<Vec<_>>().join("; ")
}

fn missing_trials(findings: &Findings) -> Option<Caveat> {
    let of = |state: &str| -> Vec<_> {
        findings.trials.iter().filter(|trial| trial.state == state).collect()
    };
    let (failed, missing) = (of("failed"), of("missing"));
    if failed.is_empty() && missing.is_empty() {
        return None;
    }
    let mut parts = Vec::new();
    if let Some(first) = failed.first() {
        let variant = &findings.variants[first.variant].name;
        let why = first.message.as_deref().unwrap_or("for an unknown reason").trim_end_matches('.');
        parts.push(format!("{} failed (trial {}, {variant}: {why})", failed.len(), first.number));
    }
    if !missing.is_empty() {
        let have = if missing.len() == 1 { "has" } else { "have" };
        parts.push(format!("{} {have} not finished yet", missing.len()));
    }
    let needed = findings.trials.iter().filter(|trial| trial.state != "not needed").count();
    let planned = count(needed as u64, "planned trial");
    let advice = match (failed.is_empty(), missing.is_empty()) {
        (true, _) => "Start the same run again to do the missing trials.",
        (false, true) => {
            "Read the server's log of the failed trials. If one variant fails more often than the \
             others, the trials it finished may not be representative."
        }
        (false, false) => {
            "Read the server's log of the failed trials, then start the same run again to do the \
             missing ones."
        }
    };
    let unfinished = || failed.iter().chain(&missing);
    Some(Caveat {
        kind: CaveatKind::MissingTrials,
        message: format!("Of {planned}, {}.", list(&parts)),
        advice: advice.to_owned(),
        variants: sorted(unfinished().map(|trial| trial.variant)),
        steps: Vec::new(),
    })
}

fn audit_failed(findings: &Findings) -> Option<Caveat> {
    let is_failed = |trial: &&TrialFacts| trial.audit.iter().any(|row| !row.pass);
    let failed: Vec<&TrialFacts> = findings.trials.iter().filter(is_failed).collect();
    let first = failed.first()?;
    let row = first.audit.iter().find(|row| !row.pass)?;
    let n_audited = findings.trials.iter().filter(|trial| !trial.audit.is_empty()).count();
    Some(Caveat {
        kind: CaveatKind::AuditFailed,
        message: format!(
            "After the load, the tables of {} of {} did not match the transactions that the server \
             had acknowledged. In trial {} ({}), {}: expected {}, found {}.",
            failed.len(),
            count(n_audited as u64, "audited trial"),
            first.number,
            findings.variants[first.variant].name,
            row.name,
            row.expected,
            row.measured,
        ),
        advice:
            "Do not use these numbers until this is explained: a server that loses work looks faster than it is. Look for \
                 a storage engine without transactions, for another writer to the same tables (a job \
                 of the study, for one), and for a bug in the server or the workload."
                .to_owned(),
        variants: sorted(failed.iter().map(|trial| trial.variant)),
        steps: Vec::new(),
    })
}

/// A quantile with too few observations beyond it in some trial.
struct Short<'a> {
    metric: MetricId,
    places: Vec<&'a Measured>,
    least: &'a Measured,
    needed: f64,
}

impl Short<'_> {
    fn of(measured: &[Measured], metric: MetricId) -> Option<Short<'_>> {
        let beyond = 1.0 - quantile(metric)?;
        let is_few = |n: u64| n > 0 && metrics::few_beyond(1.0 - beyond, n).is_some();
        // Quotas fix the number of transactions.
        let ends_by_quota = |m: &Measured| m.values.contains_key(&metrics::STEP_TIME);
        // Watched and some imported steps have no times.
        let has_times = |m: &Measured| m.values.contains_key(&metric);
        let is_short = |m: &&Measured| is_few(m.committed) && has_times(m) && !ends_by_quota(m);
        let places: Vec<&Measured> = measured.iter().filter(is_short).collect();
        let least = places.iter().copied().min_by_key(|m| m.committed)?;
        Some(Short { metric, places, least, needed: (metrics::BEYOND_LEAST / beyond).round() })
    }

    fn beyond(&self) -> f64 {
        let share = 1.0 - quantile(self.metric).unwrap_or(1.0);
        (self.least.committed as f64 * share + 1e-6).round()
    }

    /// By throughput.
    fn seconds(&self) -> f64 {
        (self.needed / self.least.value(metrics::THROUGHPUT).unwrap_or(0.0)).ceil()
    }

    fn name(&self) -> &'static str {
        match self.metric {
            metrics::RESPONSE_P95 => "p95",
            metrics::RESPONSE_P99 => "p99",
            _ => "p99.9",
        }
    }

    fn nearer(&self) -> &'static str {
        match self.metric {
            metrics::RESPONSE_P95 => "Throughput, the mean and p50",
            metrics::RESPONSE_P99 => "Throughput, p50 and p95",
            _ => "Throughput, p50, p95 and p99",
        }
    }
}

/// One for all quantiles: a short nearer one implies a short further one.
fn short_measurement(measured: &[Measured], findings: &Findings) -> Option<Caveat> {
    let quantiles = [metrics::RESPONSE_P95, metrics::RESPONSE_P99, metrics::RESPONSE_P999];
    let short: Vec<Short<'_>> =
        quantiles.into_iter().filter_map(|metric| Short::of(measured, metric)).collect();
    // Short wherever a nearer one is.
    let last = short.last()?;
    let parts =
        |tell: &dyn Fn(&Short<'_>) -> String| list(&short.iter().map(tell).collect::<Vec<_>>());
    let names = parts(&|one| one.name().to_owned());
    let (times, rest) = match short.len() {
        1 => ("response time", "rests"),
        _ => ("response times", "rest"),
    };
    let trial = if measured.len() > 1 { "the trial with the fewest" } else { "the trial" };
    let beyond = parts(&|one| format!("{:.0} beyond {}", one.beyond(), one.name()));
    let beyond = beyond.replacen(" beyond", " lie beyond", 1);
    let needed = parts(&|one| {
        let needed = grouped(one.needed.round() as u64);
        let took = Nanoseconds::from_secs(one.seconds() as u64);
        format!("{needed} transactions for {} (about {took})", one.name())
    });
    let throughput = last.least.value(metrics::THROUGHPUT).unwrap_or(0.0);
    let n = last.least.committed;
    let planned = findings.steps.get(last.least.step).and_then(|step| step.duration_s);
    let now = planned.map_or(String::new(), |planned| format!(" ({})", seconds(planned)));
    let noun = if n == 1 { "transaction" } else { "transactions" };
    let level = findings.step_noun();
    Some(Caveat {
        kind: CaveatKind::ShortMeasurement,
        message: format!(
            "The {names} {times} {rest} on too few observations: {trial} has {} {noun}, of which about \
             {beyond}. {} are not affected.",
            grouped(n),
            short.first().map_or("Throughput and p50", Short::nearer),
        ),
        advice: format!(
            "At this trial's rate of {}, each trial needs {needed} at each {level}: increase `duration`{now} in the \
             study's `[design]`.",
            metrics::with_thing(metrics::THROUGHPUT, &rate(throughput)),
        ),
        variants: sorted(last.places.iter().map(|m| m.variant)),
        steps: sorted(last.places.iter().map(|m| m.step)),
    })
}

fn variants_on(joined: &Joined<'_>, is_such: impl Fn(&TrialSummary) -> bool) -> Vec<usize> {
    let trials = joined.trials.iter().filter(|trial| trial.summary.is_some_and(&is_such));
    sorted(trials.map(|trial| trial.variant))
}

fn null_server(joined: &Joined<'_>) -> Option<Caveat> {
    let variants = variants_on(joined, |trial| {
        let server = trial.server.product_facts();
        !server.stores_data && !server.simulated
    });
    (!variants.is_empty()).then(|| Caveat {
        kind: CaveatKind::Simulated,
        message: "The server answered at once and stored nothing: this measures the load \
                  generator, not a database."
            .to_owned(),
        advice:
            "Read throughput as the generator's limit on this machine, and response times as what it \
                 adds to those of a database."
                .to_owned(),
        variants,
        steps: Vec::new(),
    })
}

fn simulated(joined: &Joined<'_>) -> Option<Caveat> {
    let variants = variants_on(joined, |trial| trial.server.product_facts().simulated);
    (!variants.is_empty()).then(|| Caveat {
        kind: CaveatKind::Simulated,
        message: "Everything was simulated: nothing real was measured.".to_owned(),
        advice:
            "This only shows how the study runs; for real numbers, run it against a real system."
                .to_owned(),
        variants,
        steps: Vec::new(),
    })
}

#[cfg(test)]
mod tests;
