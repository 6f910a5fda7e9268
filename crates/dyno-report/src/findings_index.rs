//! Which variant and step of the findings a trial of a run belongs to.
//!
//! Findings may join several runs, whose own indexes need not be those of the findings; and names
//! may have got further levels when runs were joined.

use std::collections::HashMap;

use dyno_analysis::Findings;
use dyno_record::{Run, StepSummary, TrialOutcome, TrialSummary};

use crate::view::Place;

/// The indexes among the findings of the trials and steps of several runs.
pub(crate) struct FindingsIndex {
    /// For each run, its trials' variants by trial number.
    variants: Vec<HashMap<u32, usize>>,
    /// For each run, the findings' step of each of its steps.
    steps: Vec<Vec<Option<usize>>>,
}

impl FindingsIndex {
    /// Finds them. By the plan if the findings list the trials of all runs in their order, else by
    /// name.
    pub(crate) fn new(findings: &Findings, runs: &[Run]) -> FindingsIndex {
        let variants: Vec<&str> = findings.variants.iter().map(|v| v.name.as_str()).collect();
        let steps: Vec<&str> = findings.steps.iter().map(|s| s.name.as_str()).collect();
        let planned = planned(findings, runs);
        let of = |(run, planned): (&Run, &HashMap<u32, usize>)| {
            let named = |trial: &TrialSummary| {
                let name = run.manifest.variants.get(trial.variant).map(|v| v.name.as_str());
                let by_name = || place(&variants, name, trial.variant);
                Some((trial.number, planned.get(&trial.number).copied().or_else(by_name)?))
            };
            run.trials.iter().filter_map(named).collect()
        };
        let steps_of = |run: &Run| {
            let own = run.manifest.steps.iter().enumerate();
            own.map(|(i, step)| place(&steps, Some(step.name.as_str()), i)).collect()
        };
        FindingsIndex {
            variants: runs.iter().zip(&planned).map(of).collect(),
            steps: runs.iter().map(steps_of).collect(),
        }
    }

    pub(crate) fn variant(&self, run: usize, trial: u32) -> Option<usize> {
        self.variants.get(run)?.get(&trial).copied()
    }

    pub(crate) fn step(&self, run: usize, step: usize) -> Option<usize> {
        self.steps.get(run)?.get(step).copied().flatten()
    }

    /// The finished trials of variants that the findings have, each with its run and its variant.
    pub(crate) fn trials<'a>(
        &self,
        runs: &'a [Run],
    ) -> impl Iterator<Item = (usize, &'a TrialSummary, usize)> {
        runs.iter().enumerate().flat_map(move |(i, run)| {
            let finished = run.trials.iter().filter(|t| t.outcome == TrialOutcome::Finished);
            finished.filter_map(move |t| Some((i, t, self.variant(i, t.number)?)))
        })
    }

    /// The steps of these trials that the findings have.
    pub(crate) fn steps<'a>(
        &self,
        runs: &'a [Run],
    ) -> impl Iterator<Item = (usize, &'a TrialSummary, Place, &'a StepSummary)> {
        self.trials(runs).flat_map(move |(i, trial, variant)| {
            let place = move |step: &StepSummary| Some((variant, self.step(i, step.step)?));
            trial.steps.iter().filter_map(move |step| Some((i, trial, place(step)?, step)))
        })
    }
}

/// For each run the variant of each trial by its number. The findings list the trials of all runs
/// in their order; where they do not, nothing is known and names must tell.
pub(crate) fn planned(findings: &Findings, runs: &[Run]) -> Vec<HashMap<u32, usize>> {
    let n_variants = findings.variants.len();
    let mut facts = findings.trials.iter();
    let mut all = Vec::new();
    for run in runs {
        let mut variants = HashMap::new();
        for plan in &run.manifest.trials {
            match facts.next() {
                Some(fact) if fact.number == plan.number && fact.variant < n_variants => {
                    variants.insert(plan.number, fact.variant);
                }
                _ => return runs.iter().map(|_| HashMap::new()).collect(),
            }
        }
        all.push(variants);
    }
    all
}

/// The index of a name among those of the findings, else the index itself where there is such.
fn place(names: &[&str], name: Option<&str>, index: usize) -> Option<usize> {
    names.iter().position(|n| Some(*n) == name).or((index < names.len()).then_some(index))
}
