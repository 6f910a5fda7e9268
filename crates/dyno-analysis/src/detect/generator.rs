//! The load generator as a limit, and servers that are none.

use dyno_record::ProductFacts;
use dyno_units::reading::known;

use super::found::{Evidence, Found, Place};
use crate::attribution::readings::mean_rate;
use crate::join::{Joined, JoinedTrial};
use crate::words::{list, share};

/// Busier workers delay what they measure.
pub(super) const BUSY_MOST: f64 = 0.7;
/// Of what a worker can do; more is close to the limit.
const CALIBRATED_MOST: f64 = 0.7;
/// Of the time; workers that wait more for a CPU delay what they measure.
pub(super) const RUN_QUEUE_MOST: f64 = 0.05;
/// From here on the CPUs count as full.
const CPUS_FULL_PCT: f64 = 90.0;

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
        Some(is_limited(&Place { at: (variant, step), trial, summary }))
    };
    let limited: Vec<bool> = joined.finished_of(variant).filter_map(place).collect();
    limited.iter().filter(|is| **is).count() as f64 / limited.len().max(1) as f64
}

pub(super) fn limit(seen: &Evidence<'_>) -> Option<Found> {
    let limited: Vec<&Place<'_>> = seen.places.iter().filter(|place| is_limited(place)).collect();
    let worst = |of: fn(&Place<'_>) -> f64, most: f64| {
        let worst = limited.iter().max_by(|a, b| of(a).total_cmp(&of(b)))?;
        (of(worst) > most).then(|| (share(of(worst)), seen.place(worst.at), *worst))
    };
    let (mut words, mut advice) = (Vec::new(), Vec::new());
    if let Some((most, place, _)) = worst(busy, BUSY_MOST) {
        words.push(format!("its busiest worker used {most} of a CPU ({place})"));
        advice.push("Give the generator more `workers`, or use fewer clients");
    }
    if let Some((most, place, _)) = worst(used, CALIBRATED_MOST) {
        let but = match limited.iter().any(|p| p.summary.generator.calibration_disturbed) {
            true => ", by a calibration that other processes disturbed: the true share is lower",
            false => "",
        };
        words.push(format!("its workers ran at {most} of their calibrated maximum ({place}{but})"));
        advice.push(
            "A faster server would look the same: the generator is close to the limit that `dyno \
             calibrate` found for it",
        );
    }
    let state = if words.is_empty() { "short of CPU" } else { "near its limit" };
    if let Some((most, place, worst)) = worst(queue_share, RUN_QUEUE_MOST) {
        // With all CPUs busy, it is known what they waited for.
        let cpus = mean_rate(worst.summary, known::CPU_BUSY_PCT).ok();
        let full = cpus.filter(|pct| *pct >= CPUS_FULL_PCT).map_or(String::new(), |pct| {
            format!(", while all CPUs of the machine together were {} busy", share(pct / 100.0))
        });
        words.push(format!("its workers waited for a CPU {most} of the time ({place}){full}"));
        advice.push(match seen.joined.has_bound_cpus {
            true => {
                "Give the generator more CPUs (`generator_cpus`) or another machine: these waits \
                 are part of the response times"
            }
            false => {
                "Give generator and server separate CPUs with `generator_cpus` and `server_cpus`, \
                 or use another machine for one of them: these waits are part of the response times"
            }
        });
    }
    words.first()?;
    let words = format!("{state}: {}", list(&words));
    let found = Found::at(words, limited.iter().map(|place| place.at));
    found.advise(format!("{}.", advice.join(". ")))
}

/// Variants on such servers.
pub(super) fn servers(seen: &Evidence<'_>, is_such: fn(&ProductFacts) -> bool) -> Option<Found> {
    let trials =
        seen.joined.trials.iter().filter(|trial| {
            trial.summary.is_some_and(|trial| is_such(&trial.server.product_facts()))
        });
    Found::of(trials.map(|trial| trial.variant))
}
