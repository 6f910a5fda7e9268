//! Sequential stopping: which variants need no more repetitions, and the levels of tests then.

mod settle;
#[cfg(test)]
mod tests;

use dyno_record::{Extension, Run, StoppingRecord};
use dyno_units::Direction;
use serde::{Deserialize, Serialize};

use crate::compare::Levels;
use crate::join::{Joined, Matching};
use crate::statistics::{Call, Rule};
use crate::words::list;

pub use settle::{
    Series, Why, level_of_a_look, level_of_the_end, levels, levels_of_cells, looks, settle,
};

/// The default.
const CONFIDENCE: f64 = 0.95;

/// Repeated looks and their effect, for runs that may stop early.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StoppingFacts {
    /// Before the first look.
    pub repetitions_min: u32,
    pub repetitions_max: u32,
    /// Looks that share the error rates.
    pub looks: u32,
    /// Of bounds at each look before the end; together all looks have the findings' confidence.
    pub confidence_of_looks: f64,
    /// In plan order.
    pub variants: Vec<VariantStopping>,
    /// Trials that were not needed.
    pub saved_trials: u32,
}

/// Results could be looked at before the last trials were asked for: in joined or extended runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RepeatedLooks {
    /// The most of all variants.
    pub looks: u32,
    /// Of bounds and verdicts of each look ([`share_of_look`]); together about the findings'.
    pub confidence: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VariantStopping {
    pub repetitions: u32,
    pub settled: bool,
    /// Why, or what is still open.
    pub why: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoppingDecision {
    /// Variant, and why it is settled.
    pub settled: Vec<(usize, String)>,
}

/// Which variants need no more repetitions, by the manifest's rule, after each block; none if the
/// run does not stop early, or was not interleaved. Settled ones stay so while they get no trials.
pub fn decide(run: &Run) -> StoppingDecision {
    let Some(stopping) = &run.manifest.stopping else { return StoppingDecision::default() };
    let runs = std::slice::from_ref(run);
    let joined = Joined::new(runs, Matching::Join);
    if !joined.interleaved {
        return StoppingDecision::default();
    }
    let rule = Rule { threshold: run.manifest.threshold, confidence: CONFIDENCE };
    let settled = settle(&series(&joined), stopping, &rule).into_iter().enumerate();
    StoppingDecision {
        settled: settled
            .filter_map(|(variant, why)| Some((variant, in_words(&joined, variant, &why?))))
            .collect(),
    }
}

pub(crate) fn series(joined: &Joined<'_>) -> Series {
    let n_steps = joined.steps.len();
    let mut series = Series {
        baselines: joined.variants.iter().map(|variant| variant.baseline).collect(),
        logs: vec![vec![Vec::new(); n_steps]; joined.variants.len()],
        more_is_better: (0..n_steps).map(|step| is_more_better(joined, step)).collect(),
        resolution: vec![0.0; n_steps],
        repetitions: vec![0; joined.variants.len()],
    };
    for trial in joined.trials.iter().filter(|trial| trial.finished().is_some()) {
        series.repetitions[trial.variant] += 1;
        for step in 0..n_steps {
            let source = joined.source(trial, step);
            let value = source.and_then(|source| source.value(joined.main[step])?.ok());
            let value = value.filter(|value| *value > 0.0);
            series.logs[trial.variant][step].extend(value.map(|v| (trial.block, v.ln())));
        }
    }
    for (step, record) in joined.steps.iter().enumerate() {
        let logs = series.logs.iter().flat_map(|steps| &steps[step]);
        let logs: Vec<f64> = logs.map(|(_, log)| *log).collect();
        let typical = crate::statistics::mean(&logs).exp();
        series.resolution[step] = crate::compare::resolution(joined.main[step], record, typical);
    }
    series
}

fn is_more_better(joined: &Joined<'_>, step: usize) -> bool {
    joined.metrics.get(joined.main[step]).better == Direction::Higher
}

fn in_words(joined: &Joined<'_>, variant: usize, why: &Why) -> String {
    let name = |idx: usize| joined.variants[idx].name.as_str();
    match why {
        Why::AllDone => "all its repetitions are done".to_owned(),
        Why::Decided(calls) => {
            let word = |(step, call): (usize, &Call)| {
                let verdict = match (call, is_more_better(joined, step)) {
                    (Call::Inside | Call::Undecided, _) => "no difference",
                    (Call::Higher, true) | (Call::Lower, false) => "better",
                    _ => "worse",
                };
                format!("{verdict} at {}", joined.steps[step].name)
            };
            let words: Vec<String> = calls.iter().enumerate().map(word).collect();
            let baseline = joined.variants[variant].baseline.map_or("", name);
            format!("decided against {baseline}: {}", list(&words))
        }
        Why::CannotWin(best) => {
            format!("it can no longer win: {} is ahead by more than the threshold", name(*best))
        }
        Why::Precise => "its value is known to within the threshold".to_owned(),
        Why::NotNeeded => "everything compared with it is decided".to_owned(),
    }
}

/// The share of 1 − confidence for the k-th look: all for the first, then 1 / (k (k + 1)). Joining
/// or extending runs ([`looks_at`]) until something is found errs in at most 1 + 1/6 + 1/12 + … =
/// 1.5 times the stated share of studies, however often (Bonferroni); simulated, 1.2 times.
pub fn share_of_look(look: u32) -> f64 {
    if look < 2 { 1.0 } else { 1.0 / f64::from(look * (look + 1)) }
}

/// Looks at a run: one now, and one before each extension, if trials had ended since the last. An
/// extension before the first trial's end is no look.
pub fn looks_at(run: &Run) -> u32 {
    let before = run.manifest.extensions.iter().map(Extension::ended);
    let now = run.trials.len() as u32;
    let all: std::collections::BTreeSet<u32> = before.chain([now]).filter(|n| *n > 0).collect();
    all.len() as u32
}

/// By variant: of looks if the run may stop early or was joined or extended, else plain.
pub(crate) fn levels_of<'a>(runs: &[Run], joined: &Joined<'_>, rule: &'a Rule) -> Levels<'a> {
    let whole = 1.0 - rule.confidence;
    let mut found =
        Levels { rule, stops_early: false, looks: None, of_variants: None, of_cells: None };
    let n = joined.variants.len();
    let (mut of_variants, mut of_cells) = (vec![whole; n], vec![whole; n]);
    let mut times = vec![0_u32; n];
    for (run, variants) in runs.iter().zip(&joined.of_runs) {
        let own = levels_of_run(run, rule);
        for (own_idx, &variant) in variants.iter().enumerate() {
            let has_any = |trial: &dyno_record::TrialSummary| trial.variant == own_idx;
            let looks = if run.trials.iter().any(has_any) { looks_at(run) } else { 0 };
            times[variant] += looks;
            if let Some((compared, cells)) = &own {
                of_variants[variant] = of_variants[variant].min(compared[own_idx]);
                of_cells[variant] = of_cells[variant].min(cells[own_idx]);
            }
        }
    }
    found.stops_early = of_variants.iter().any(|level| *level < whole);
    let looks = times.iter().copied().max().filter(|looks| *looks > 1);
    found.looks =
        looks.map(|looks| RepeatedLooks { looks, confidence: 1.0 - whole * share_of_look(looks) });
    for variant in 0..n {
        let share = share_of_look(times[variant]);
        of_variants[variant] *= share;
        of_cells[variant] *= share;
    }
    // The stricter level of the two compared runs decides.
    for variant in joined.n_first..n {
        if let Some(baseline) = joined.variants[variant].baseline.filter(|_| joined.n_first > 0) {
            of_variants[variant] = of_cells[variant].min(of_cells[baseline]);
        }
    }
    if of_variants.iter().chain(&of_cells).any(|level| *level < whole) {
        found.of_variants = Some(of_variants);
        found.of_cells = Some(of_cells);
    }
    found
}

/// Of comparisons and cells by variant, for a run that may stop early. The run's threshold decides
/// what was settled, not the analysis's.
fn levels_of_run(run: &Run, rule: &Rule) -> Option<(Vec<f64>, Vec<f64>)> {
    let stopping = run.manifest.stopping.as_ref()?;
    let joined = Joined::new(std::slice::from_ref(run), Matching::Join);
    if !joined.interleaved {
        let as_at_a_look = vec![level_of_a_look(stopping, rule); joined.variants.len()];
        return Some((as_at_a_look.clone(), as_at_a_look));
    }
    let series = series(&joined);
    let own = Rule { threshold: run.manifest.threshold, ..*rule };
    Some((levels(&series, stopping, &own), levels_of_cells(&series, stopping, &own)))
}

/// `None` for several runs, and for those that do not stop early.
pub(crate) fn facts(runs: &[Run], joined: &Joined<'_>, rule: &Rule) -> Option<StoppingFacts> {
    let [run] = runs else { return None };
    let stopping: &StoppingRecord = run.manifest.stopping.as_ref()?;
    let series = series(joined);
    let own = Rule { threshold: run.manifest.threshold, ..*rule };
    let settled = settle(&series, stopping, &own);
    let open = |variant: usize| match joined.variants[variant].baseline {
        _ if !joined.interleaved => {
            "variants are decided early only in interleaved order".to_owned()
        }
        Some(_) => "not decided at every load level".to_owned(),
        None => "the variants compared with it are not decided".to_owned(),
    };
    let variant = |(idx, why): (usize, &Option<Why>)| VariantStopping {
        repetitions: series.repetitions[idx],
        // Having all repetitions settles nothing.
        settled: !matches!(why, None | Some(Why::AllDone))
            || joined.variants[idx].baseline.is_none(),
        why: why.as_ref().map_or_else(|| open(idx), |why| in_words(joined, idx, why)),
    };
    let is_saved = |trial: &&crate::join::JoinedTrial<'_>| {
        trial.summary.is_none() && settled[trial.variant].is_some()
    };
    Some(StoppingFacts {
        repetitions_min: stopping.repetitions_min,
        repetitions_max: stopping.repetitions_max,
        looks: looks(stopping).len() as u32,
        confidence_of_looks: 1.0 - level_of_a_look(stopping, rule),
        saved_trials: joined.trials.iter().filter(is_saved).count() as u32,
        variants: settled.iter().enumerate().map(variant).collect(),
    })
}
