//! What a record says twice must agree: finds figures that were changed or damaged in one place.

use crate::{
    EncodedHistogram, KindSummary, Manifest, StepSummary, TrialOutcome, TrialSummary, sends_nothing,
};

/// Tolerance between throughput over the seconds and the number of commits, besides
/// [`COUNT_SLACK`]: values have six digits, times are in milliseconds.
const SHARE_SLACK: f64 = 0.02;
const COUNT_SLACK: f64 = 10.0;

/// The measured time may end so many seconds after the start of its last interval.
const LAST_INTERVAL_S: f64 = 2.0;

/// A hundred years: nanoseconds then fit 64 bits.
const TIME_MOST_S: f64 = 100.0 * 365.25 * 86_400.0;

const FIGURES_MOST: usize = 1_000;

/// Of all of a trial's counts: 10 million a second for 28 years. Sums over trials then fit 64 bits.
const COUNT_MOST: u64 = 1 << 53;

pub(crate) fn check_trial(manifest: &Manifest, trial: &TrialSummary) -> Result<(), String> {
    if let Some(planned) = manifest.trials.iter().find(|plan| plan.number == trial.number) {
        let (ours, theirs) = (
            (trial.variant, trial.repetition, trial.block),
            (planned.variant, planned.repetition, planned.block),
        );
        if ours != theirs {
            return Err(format!(
                "its summary says variant {}, repetition {}, block {}; manifest.json says variant {}, \
                 repetition {}, block {}",
                ours.0, ours.1, ours.2, theirs.0, theirs.1, theirs.2
            ));
        }
    }
    let all = trial.steps.iter().flat_map(counts).fold(0, u64::saturating_add);
    if all > COUNT_MOST {
        return Err(format!("its counts add up to more than {COUNT_MOST}"));
    }
    let times =
        trial.loads().flat_map(|load| load.intervals.start_s.iter().chain([&load.measured_s]));
    if let Some(time) = times.copied().find(|time| time.is_nan() || time.abs() > TIME_MOST_S) {
        return Err(format!("one of its times is {time:e} s"));
    }
    if trial.metrics.len() > FIGURES_MOST {
        return Err(format!("it declares more than {FIGURES_MOST} metrics"));
    }
    let mut figures = trial.steps.iter().flat_map(|step| step.figures.keys());
    if let Some(unknown) = figures.find(|id| trial.metrics.iter().all(|metric| metric.id != **id)) {
        return Err(format!("it has values of {unknown}, but does not declare that metric"));
    }
    let steps: Vec<usize> = trial.steps.iter().map(|step| step.step).collect();
    let all: Vec<usize> = (0..manifest.steps.len()).collect();
    if trial.outcome == TrialOutcome::Finished && steps != all {
        return Err(format!(
            "it finished with {} steps, but manifest.json has {}",
            steps.len(),
            all.len()
        ));
    }
    let variant = manifest.variants.get(trial.variant);
    // A server that was only watched has counters, and no times.
    if variant.is_some_and(|variant| sends_nothing(&variant.workload)) {
        return Ok(());
    }
    let named = |step: &StepSummary| {
        let name = manifest.steps.get(step.step).map(|step| step.name.as_str()).unwrap_or_default();
        check_step(step).map_err(|why| format!("step `{name}`: {why}"))
    };
    trial.steps.iter().try_for_each(named)
}

fn counts<'a>(step: &'a StepSummary) -> impl Iterator<Item = u64> + use<'a> {
    let StepSummary { reads, writes, others, rows_received, rows_changed, .. } = step;
    let StepSummary { warnings, due, missed, in_flight_at_end, retries, reconnects, .. } = step;
    let own = [reads, writes, others, rows_received, rows_changed, warnings, due, missed, retries];
    let of_kind = |kind: &'a KindSummary| kind.outcomes.values();
    let outcomes = step.kinds.iter().flat_map(of_kind);
    let hosts = step.hosts.iter().flat_map(move |host| {
        let own = [&host.clients, &host.due, &host.missed].into_iter().chain(&host.committed);
        own.chain(host.kinds.iter().flat_map(of_kind))
    });
    let promotions = step.faults.iter().filter_map(|fault| fault.promotion.as_ref());
    let survived = promotions.filter_map(|promotion| promotion.survived.as_ref());
    let survived = survived.flat_map(|all| {
        [&all.acknowledged, &all.in_doubt, &all.found].into_iter().chain(&all.lost)
    });
    let load = own.into_iter().chain([reconnects]).chain(in_flight_at_end).chain(outcomes);
    load.chain(hosts).chain(survived).copied()
}

fn check_step(step: &StepSummary) -> Result<(), String> {
    let mut committed = 0;
    for kind in &step.kinds {
        let counted = kind.outcomes.get("committed").copied().unwrap_or(0);
        for (what, histogram) in [("response", &kind.response), ("service", &kind.service)] {
            let recorded = count(histogram);
            let has_none = recorded == 0 && step.imported.is_some();
            if recorded != counted && !has_none {
                return Err(format!(
                    "{counted} transactions of kind {} committed, and its {what} times are {recorded}",
                    kind.name
                ));
            }
        }
        committed += counted;
    }
    // Other tools print intervals of other lengths, and not always the last one.
    if step.imported.is_some() { Ok(()) } else { check_times(step, committed as f64) }
}

fn count(histogram: &EncodedHistogram) -> u64 {
    histogram.decode().map_or(0, |histogram| histogram.len())
}

fn check_times(step: &StepSummary, committed: f64) -> Result<(), String> {
    let measured_s = step.measured_s;
    if !(measured_s.is_finite() && measured_s >= 0.0) {
        return Err(format!("its measured time is {measured_s} s"));
    }
    let starts = &step.intervals.start_s;
    let Some(last) = starts.last().copied().filter(|start| *start >= 0.0) else { return Ok(()) };
    if !(last - 0.01..=last + LAST_INTERVAL_S).contains(&measured_s) {
        return Err(format!(
            "its measured time is {measured_s} s, and its last second begins at {last} s"
        ));
    }
    let ends = starts.iter().skip(1).copied().chain([measured_s]);
    let seconds = starts.iter().zip(ends).zip(&step.intervals.throughput);
    let measured = seconds.filter(|((start, _), _)| **start >= 0.0);
    let by_second: f64 =
        measured.map(|((start, end), throughput)| (end - start) * throughput).sum();
    if (by_second - committed).abs() > SHARE_SLACK * committed + COUNT_SLACK {
        return Err(format!(
            "{committed} transactions committed, and its seconds together have {by_second:.0}"
        ));
    }
    Ok(())
}
