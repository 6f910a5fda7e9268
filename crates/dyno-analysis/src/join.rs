//! Several runs as one. Equal variants get the repetitions of all runs; other namesakes get a level
//! that says how they differ. Variants of different workloads are never compared.

mod matching;
mod order;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

use dyno_record::{
    Manifest, OwnStepRecord, ProductFacts, Run, StepRecord, StepSummary, TrialOutcome, TrialPlan,
    TrialSummary, VariantRecord,
};
use dyno_units::{Metric, MetricId, Reading};

use crate::main_metric::main_metric;
use crate::metrics::{self, Metrics};

use matching::{Difference, Matched, distinctive_levels, level};

#[derive(Default)]
pub(crate) struct Joined<'a> {
    /// Baselines are indexes into this list.
    pub(crate) variants: Vec<VariantRecord>,
    pub(crate) steps: Vec<StepRecord>,
    /// Blocks and repetitions are numbered on, so that no block has trials of two runs.
    pub(crate) trials: Vec<JoinedTrial<'a>>,
    /// Indexes of finished trials by variant: a plan may have many others.
    finished: Vec<Vec<usize>>,
    /// By variant.
    pub(crate) machines: Vec<String>,
    pub(crate) cpus: Vec<u32>,
    /// By variant, of the generator and of its servers, if the study binds them.
    pub(crate) bound_cpus: Vec<[Option<u32>; 2]>,
    pub(crate) interleaved: bool,
    /// In all runs, both for the generator and the servers.
    pub(crate) has_bound_cpus: bool,
    /// Variants of later runs with a workload that no earlier run has.
    pub(crate) mismatches: Vec<Mismatch>,
    pub(crate) metrics: Metrics,
    /// By step.
    pub(crate) main: Vec<MetricId>,
    pub(crate) n_runs: usize,
    /// Joined index by run and variant.
    pub(crate) of_runs: Vec<Vec<usize>>,
    /// Variants of the first run, which are listed first, if the second is compared with it.
    pub(crate) n_first: usize,
}

/// Its workload differs from an earlier run's.
pub(crate) struct Mismatch {
    pub(crate) variant: usize,
    /// Its namesake in an earlier run, or any variant there.
    pub(crate) other: usize,
    /// The namesake's level first: `workload oltp_read_only and oltp_point_select`.
    pub(crate) what: Vec<String>,
    /// Whether `other` has its name.
    pub(crate) is_namesake: bool,
}

pub(crate) struct JoinedTrial<'a> {
    /// In its own run.
    pub(crate) number: u32,
    pub(crate) variant: usize,
    /// Counted from 1 over all runs.
    pub(crate) repetition: u32,
    /// Counted from 1 over all runs.
    pub(crate) block: u32,
    /// `None` while it is missing.
    pub(crate) summary: Option<&'a TrialSummary>,
    /// Joined index by step of its own run; shared by the run's trials.
    step_indexes: Rc<[usize]>,
}

impl<'a> JoinedTrial<'a> {
    /// If all its steps were done.
    pub(crate) fn finished(&self) -> Option<&'a TrialSummary> {
        self.summary.filter(|summary| summary.outcome == TrialOutcome::Finished)
    }

    pub(crate) fn has_step(&self, step: usize) -> bool {
        self.step_indexes.contains(&step)
    }

    /// `None` if it failed, is missing, or measured no time.
    pub(crate) fn step(&self, step: usize) -> Option<&'a StepSummary> {
        let is_it = |summary: &&StepSummary| self.step_indexes.get(summary.step) == Some(&step);
        self.finished()?.steps.iter().find(is_it).filter(|summary| summary.measured_s > 0.0)
    }
}

/// For namesakes of different runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matching {
    /// Equal variants become one.
    Join,
    /// Each run's variants are its own, compared with the first run's.
    Against,
}

impl<'a> Joined<'a> {
    /// Empty if no trial has finished.
    pub(crate) fn product_facts(&self, variant: usize) -> ProductFacts {
        let mut trials = self.finished_of(variant);
        let facts = trials.find_map(|trial| Some(trial.finished()?.server.product_facts()));
        facts.map(Cow::into_owned).unwrap_or_default()
    }

    pub(crate) fn new(runs: &'a [Run], matching: Matching) -> Joined<'a> {
        let mut joined = Joined {
            interleaved: runs.iter().all(|run| run.manifest.order == "interleaved"),
            has_bound_cpus: runs.iter().all(|run| {
                let is_bound = |key| run.manifest.design.get(key).is_some_and(|cpus| cpus != "all");
                is_bound("generator_cpus") && is_bound("server_cpus")
            }),
            n_runs: runs.len(),
            ..Joined::default()
        };
        let mut sources: Vec<Source> = Vec::new();
        for (run_idx, run) in runs.iter().enumerate() {
            let variants = joined.take_variants(runs, run_idx, matching, &mut sources);
            let steps = joined.take_steps(&run.manifest);
            joined.take_trials(run, &variants, &steps);
            joined.of_runs.push(variants);
            if run_idx == 0 && matching == Matching::Against {
                joined.n_first = joined.variants.len();
            }
        }
        if runs.first().is_some_and(|first| first.manifest.steps.len() < joined.steps.len()) {
            joined.order_steps();
        }
        joined.finished = vec![Vec::new(); joined.variants.len()];
        for (idx, trial) in joined.trials.iter().enumerate() {
            if trial.finished().is_some() {
                joined.finished[trial.variant].push(idx);
            }
        }
        let trials = joined.trials.iter().filter_map(|trial| trial.summary);
        joined.metrics.extend(trials.flat_map(|summary| &summary.metrics));
        joined.main = (0..joined.steps.len()).map(|step| main_metric(&joined, step)).collect();
        joined
    }

    /// To derive metrics from; `None` as for [`JoinedTrial::step`].
    pub(crate) fn source(
        &self,
        trial: &JoinedTrial<'a>,
        step: usize,
    ) -> Option<metrics::Source<'_>> {
        let summary = trial.step(step)?;
        let server = trial.summary?.server.product_facts();
        Some(metrics::Source::new(
            summary,
            &self.steps[step],
            &self.variants[trial.variant],
            server,
        ))
    }

    /// Each step that a trial measured, in order.
    pub(crate) fn measured_steps(
        &self,
    ) -> impl Iterator<Item = (&JoinedTrial<'a>, usize, &'a StepSummary)> {
        let steps = 0..self.steps.len();
        let of = move |trial| steps.clone().map(move |step| (trial, step));
        let all = self.trials.iter().flat_map(of);
        all.filter_map(|(trial, step)| Some((trial, step, trial.step(step)?)))
    }

    /// Variants and steps that some trial measured.
    pub(crate) fn measured_cells(
        &self,
    ) -> impl Iterator<Item = (usize, usize, Vec<&'a StepSummary>)> {
        let steps = 0..self.steps.len();
        let of = move |variant| steps.clone().map(move |step| (variant, step));
        let all = (0..self.variants.len()).flat_map(of);
        let all = all.map(|(variant, step)| (variant, step, self.summaries(variant, step)));
        all.filter(|(.., summaries)| !summaries.is_empty())
    }

    /// Of finished trials, in order.
    pub(crate) fn summaries(&self, variant: usize, step: usize) -> Vec<&'a StepSummary> {
        self.finished_of(variant).filter_map(|trial| trial.step(step)).collect()
    }

    /// In order.
    pub(crate) fn finished_of(&self, variant: usize) -> impl Iterator<Item = &JoinedTrial<'a>> {
        self.finished[variant].iter().map(|idx| &self.trials[*idx])
    }

    pub(crate) fn meaning(&self, variant: usize, reading: &str) -> Option<&'a Reading> {
        let mut own = self.finished_of(variant).filter_map(|trial| trial.finished());
        own.find_map(|ended| ended.meanings.get(reading))
    }

    /// Returns joined indexes. `sources`: run and own index of each variant's first occurrence.
    fn take_variants(
        &mut self,
        runs: &[Run],
        run_idx: usize,
        matching: Matching,
        sources: &mut Vec<Source>,
    ) -> Vec<usize> {
        let manifest = &runs[run_idx].manifest;
        let mut indexes = Vec::new();
        let earlier: Vec<(usize, Matched<'_>)> = sources
            .iter()
            .enumerate()
            .map(|(idx, &(run, own_idx))| (idx, Matched { run: &runs[run], own_idx }))
            .collect();
        for own_idx in 0..manifest.variants.len() {
            let ours = Matched { run: &runs[run_idx], own_idx };
            let same = earlier.iter().find(|(_, other)| ours.is_same_thing(*other));
            if let (Some((same, _)), Matching::Join) = (same, matching) {
                indexes.push(*same);
                continue;
            }
            sources.push((run_idx, own_idx));
            indexes.push(self.take_variant(ours, &earlier, matching));
        }
        for (own_idx, variant) in manifest.variants.iter().enumerate() {
            let is_new = sources[indexes[own_idx]] == (run_idx, own_idx);
            let taken = &mut self.variants[indexes[own_idx]];
            if is_new && taken.baseline.is_none() && (matching == Matching::Join || run_idx == 0) {
                taken.baseline =
                    variant.baseline.and_then(|baseline| indexes.get(baseline).copied());
            }
        }
        indexes
    }

    /// For a variant that equals none of `earlier`.
    fn take_variant(
        &mut self,
        ours: Matched<'_>,
        earlier: &[(usize, Matched<'_>)],
        matching: Matching,
    ) -> usize {
        let is_namesake =
            |(_, other): &&(usize, Matched<'_>)| other.variant().name == ours.variant().name;
        let is_alike =
            |(_, other): &&(usize, Matched<'_>)| ours.workload_differences(*other).is_empty();
        let namesakes = || earlier.iter().filter(is_namesake);
        let namesake = namesakes().find(is_alike).or_else(|| namesakes().next());
        let nearest = namesake.or_else(|| earlier.iter().find(is_alike)).or(earlier.first());
        let index = self.variants.len();
        if let Some((other, theirs)) = nearest {
            let what = ours.workload_differences(*theirs).iter().map(Difference::of_both).collect();
            let is_namesake = namesake.is_some();
            self.mismatches.push(Mismatch { variant: index, other: *other, what, is_namesake });
            self.mismatches.retain(|mismatch| !mismatch.what.is_empty());
        }
        let mut taken = ours.variant().clone();
        // Its own baseline is set once all variants of the run have an index.
        let is_compared = matching == Matching::Against || taken.baseline.is_none();
        taken.baseline = namesake.filter(|it| is_compared && is_alike(it)).map(|(idx, _)| *idx);
        if let Some((namesake, theirs)) = namesake {
            let (differences, words) = distinctive_levels(ours, *theirs, matching);
            // If two runs are compared, both names say the run.
            let is_run = differences.first().is_some_and(|d| d.factor == "run");
            if matching == Matching::Against && is_run {
                let name =
                    format!("{} ({})", theirs.variant().name, matching::run_name(theirs.run));
                if self.variants[*namesake].name == theirs.variant().name {
                    self.variants[*namesake].name = self.free_name(&name);
                }
            }
            taken.name = self.free_name(&format!("{} ({words})", taken.name));
            for difference in differences {
                taken.levels.push(level(&difference.factor, &difference.ours));
                self.add_level(*namesake, &difference.factor, &difference.theirs);
            }
        }
        let environment = &ours.run.manifest.environment;
        self.machines.push(environment.machine.clone());
        self.cpus.push(environment.cpus);
        self.bound_cpus.push(["generator_cpus", "server_cpus"].map(|key| {
            let numbers = ours.run.manifest.design.get(key).filter(|cpus| *cpus != "all")?;
            Some(numbers.split(',').count() as u32)
        }));
        self.variants.push(taken);
        index
    }

    fn add_level(&mut self, variant: usize, factor: &str, theirs: &str) {
        let levels = &mut self.variants[variant].levels;
        if !theirs.is_empty() && levels.iter().all(|level| level.factor != factor) {
            levels.push(level(factor, theirs));
        }
    }

    fn free_name(&self, wanted: &str) -> String {
        let is_taken = |name: &str| self.variants.iter().any(|variant| variant.name == name);
        if !is_taken(wanted) {
            return wanted.to_owned();
        }
        (2_u32..)
            .map(|i| format!("{wanted} ({i})"))
            .find(|name| !is_taken(name))
            .expect("there are fewer variants than numbers")
    }

    fn take_steps(&mut self, manifest: &Manifest) -> Vec<usize> {
        let mut indexes = Vec::new();
        // A plan's equal steps stay apart.
        let mut is_taken = vec![false; self.steps.len()];
        for step in &manifest.steps {
            let found = (0..is_taken.len())
                .find(|&idx| !is_taken[idx] && is_same_step(&self.steps[idx], step));
            let idx = found.unwrap_or_else(|| {
                self.steps.push(step.clone());
                is_taken.push(true);
                self.steps.len() - 1
            });
            is_taken[idx] = true;
            indexes.push(idx);
        }
        indexes
    }

    fn take_trials(&mut self, run: &'a Run, variants: &[usize], steps: &[usize]) {
        let steps: Rc<[usize]> = steps.into();
        let most = |of: fn(&JoinedTrial<'_>) -> u32, trials: &[JoinedTrial<'_>]| {
            trials.iter().map(of).max().unwrap_or(0)
        };
        let blocks_before = most(|trial| trial.block, &self.trials);
        let repetitions_before: Vec<u32> = (0..self.variants.len())
            .map(|variant| {
                let of_variant = self.trials.iter().filter(|trial| trial.variant == variant);
                of_variant.map(|trial| trial.repetition).max().unwrap_or(0)
            })
            .collect();
        for plan in &run.manifest.trials {
            let Some(&variant) = variants.get(plan.variant) else { continue };
            self.trials.push(JoinedTrial {
                number: plan.number,
                variant,
                repetition: repetitions_before[variant] + plan.repetition,
                block: blocks_before + plan.block,
                summary: summary_of(run, plan),
                step_indexes: Rc::clone(&steps),
            });
            // The machine of whole trials is their host.
            if let Some(host) = summary_of(run, plan).and_then(|summary| summary.host.as_ref()) {
                self.machines[variant].clone_from(&host.pool);
                self.cpus[variant] = host.environment.cpus;
            }
        }
    }
}

/// Two runs that are one, perhaps from a copy of its folder: its trials would count twice.
pub fn same_runs(runs: &[Run]) -> Option<(usize, usize)> {
    let identity = |run: &Run| {
        let manifest = &run.manifest;
        let began = (manifest.created_unix_ms, manifest.environment.machine.clone());
        (began, manifest.fingerprint.clone(), manifest.seed)
    };
    let of = |second: usize| {
        let first = runs[..second].iter().position(|r| identity(r) == identity(&runs[second]))?;
        Some((first, second))
    };
    (0..runs.len()).find_map(of)
}

/// Two runs, perhaps one, that declare a metric with different unit or direction, and the metric.
pub fn unlike_metrics(runs: &[Run]) -> Option<(usize, usize, MetricId)> {
    let mut known: BTreeMap<MetricId, (usize, &Metric)> = BTreeMap::new();
    let trials =
        runs.iter().enumerate().flat_map(|(idx, run)| run.trials.iter().map(move |t| (idx, t)));
    for (idx, metric) in trials.flat_map(|(idx, trial)| trial.metrics.iter().map(move |m| (idx, m)))
    {
        let (first, other) = known.entry(metric.id).or_insert((idx, metric));
        if (&other.unit, other.better) != (&metric.unit, metric.better) {
            return Some((*first, idx, metric.id));
        }
    }
    None
}

/// Run and index within it.
type Source = (usize, usize);

/// Lengths are conditions of the variants.
fn is_same_step(a: &StepRecord, b: &StepRecord) -> bool {
    (a.clients, a.rate, &a.arrivals) == (b.clients, b.rate, &b.arrivals)
        && (&a.name, &a.search, plain(&a.own), &a.stepped)
            == (&b.name, &b.search, plain(&b.own), &b.stepped)
}

/// Without the kinds of roles, which older records lack.
fn plain(own: &Option<OwnStepRecord>) -> Option<OwnStepRecord> {
    let mut own = own.clone()?;
    own.roles.iter_mut().for_each(|role| role.kinds.clear());
    Some(own)
}

fn summary_of<'a>(run: &'a Run, plan: &TrialPlan) -> Option<&'a TrialSummary> {
    run.trials.iter().find(|summary| summary.number == plan.number)
}
