//! Several runs seen as one: variants, steps and trials under common indexes.
//!
//! What is the same thing in two runs becomes one variant with the repetitions of both. What has
//! the same name and is not the same thing keeps apart under a further level, which says in what
//! it differs.

use dyno_record::{
    LevelRecord, Manifest, Meaning, OwnStepRecord, Run, StepRecord, StepSummary, TrialOutcome,
    TrialPlan, TrialSummary, VariantRecord,
};

/// All runs together.
pub(crate) struct Joined<'a> {
    /// The variants; baselines are indexes into this list.
    pub(crate) variants: Vec<VariantRecord>,
    /// The steps.
    pub(crate) steps: Vec<StepRecord>,
    /// Every trial of every plan. Blocks and repetitions are counted on from run to run, so that
    /// no block has trials of two runs.
    pub(crate) trials: Vec<JoinedTrial<'a>>,
    /// The machine on which each of the variants ran.
    pub(crate) machines: Vec<String>,
    /// The CPUs of that machine.
    pub(crate) cpus: Vec<u32>,
    /// Whether all runs were interleaved.
    pub(crate) interleaved: bool,
}

/// A trial of a plan and, if it has ended, what came of it.
pub(crate) struct JoinedTrial<'a> {
    /// Its number in its own run.
    pub(crate) number: u32,
    /// Index of the variant.
    pub(crate) variant: usize,
    /// Counted from 1 over all runs.
    pub(crate) repetition: u32,
    /// Counted from 1 over all runs.
    pub(crate) block: u32,
    /// None while it is missing.
    pub(crate) summary: Option<&'a TrialSummary>,
    /// Joined index of each of its own run's steps.
    step_indexes: Vec<usize>,
}

impl<'a> JoinedTrial<'a> {
    /// The summary, if all its steps were done.
    pub(crate) fn finished(&self) -> Option<&'a TrialSummary> {
        self.summary.filter(|summary| summary.outcome == TrialOutcome::Finished)
    }

    /// What it measured at a step; none where it failed, is missing, or measured no time.
    pub(crate) fn step(&self, step: usize) -> Option<&'a StepSummary> {
        let is_it = |summary: &&StepSummary| self.step_indexes.get(summary.step) == Some(&step);
        self.finished()?.steps.iter().find(is_it).filter(|summary| summary.measured_s > 0.0)
    }
}

/// How variants of the same name in different runs are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kinship {
    /// The same thing is the same variant.
    Join,
    /// Each run's variants are its own, compared with those of the first run.
    Against,
}

impl<'a> Joined<'a> {
    /// Joins the runs of a finished plan or of several, in their order.
    pub(crate) fn new(runs: &'a [Run], kinship: Kinship) -> Joined<'a> {
        let mut joined = Joined {
            variants: Vec::new(),
            steps: Vec::new(),
            trials: Vec::new(),
            machines: Vec::new(),
            cpus: Vec::new(),
            interleaved: runs.iter().all(|run| run.manifest.order == "interleaved"),
        };
        let mut sources: Vec<(usize, usize)> = Vec::new();
        for (run_idx, run) in runs.iter().enumerate() {
            let variants = joined.take_variants(runs, run_idx, kinship, &mut sources);
            let steps = joined.take_steps(&run.manifest);
            joined.take_trials(run, &variants, &steps);
        }
        joined
    }

    /// What the finished trials of a variant measured at a step, in the order of the trials.
    pub(crate) fn summaries(&self, variant: usize, step: usize) -> Vec<&'a StepSummary> {
        let own = self.trials.iter().filter(|trial| trial.variant == variant);
        own.filter_map(|trial| trial.step(step)).collect()
    }

    /// What a reading means, by what a trial of a variant tells.
    pub(crate) fn meaning(&self, variant: usize, reading: &str) -> Option<&'a Meaning> {
        let own = self.trials.iter().filter(|trial| trial.variant == variant);
        own.filter_map(|trial| trial.finished()).find_map(|ended| ended.meanings.get(reading))
    }

    /// Takes over the variants of a run; returns their joined indexes. `sources` holds the run and
    /// the index within it from which each joined variant came first.
    fn take_variants(
        &mut self,
        runs: &[Run],
        run_idx: usize,
        kinship: Kinship,
        sources: &mut Vec<(usize, usize)>,
    ) -> Vec<usize> {
        let run = &runs[run_idx];
        let mut indexes = Vec::new();
        for (own_idx, variant) in run.manifest.variants.iter().enumerate() {
            let is_same = |&(other_run, other_idx): &(usize, usize)| {
                other_run < run_idx
                    && kinship == Kinship::Join
                    && is_same_thing(&runs[other_run], other_idx, run, own_idx)
            };
            if let Some(same) = sources.iter().position(is_same) {
                indexes.push(same);
                continue;
            }
            let namesake = sources.iter().position(|&(other_run, other_idx)| {
                other_run < run_idx
                    && runs[other_run].manifest.variants[other_idx].name == variant.name
            });
            let mut taken = variant.clone();
            if let Some(namesake) = namesake {
                let (other_run, other_idx) = sources[namesake];
                let level = telling_level(&runs[other_run], other_idx, run, own_idx);
                taken.name = self.free_name(&format!("{}, {}", variant.name, level.level));
                taken.levels.push(level);
            }
            sources.push((run_idx, own_idx));
            indexes.push(self.variants.len());
            self.variants.push(taken);
            self.machines.push(run.manifest.environment.machine.clone());
            self.cpus.push(run.manifest.environment.cpus);
            // Its own baseline is set below, when all of the run's variants have an index.
            if let Some(last) = self.variants.last_mut() {
                let compared = kinship == Kinship::Against || variant.baseline.is_none();
                last.baseline = namesake.filter(|_| compared);
            }
        }
        for (own_idx, variant) in run.manifest.variants.iter().enumerate() {
            let is_new = sources[indexes[own_idx]] == (run_idx, own_idx);
            let taken = &mut self.variants[indexes[own_idx]];
            if is_new && taken.baseline.is_none() && (kinship == Kinship::Join || run_idx == 0) {
                taken.baseline =
                    variant.baseline.and_then(|baseline| indexes.get(baseline).copied());
            }
        }
        indexes
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
        for step in &manifest.steps {
            let is_same = |other: &StepRecord| {
                (other.clients, other.rate, &other.arrivals)
                    == (step.clients, step.rate, &step.arrivals)
                    && (&other.name, &other.search, plain(&other.own), &other.stepped)
                        == (&step.name, &step.search, plain(&step.own), &step.stepped)
            };
            // Two steps of one plan may be the same load twice: those stay two.
            let found = (0..self.steps.len())
                .find(|&idx| is_same(&self.steps[idx]) && !indexes.contains(&idx));
            indexes.push(found.unwrap_or_else(|| {
                self.steps.push(step.clone());
                self.steps.len() - 1
            }));
        }
        indexes
    }

    fn take_trials(&mut self, run: &'a Run, variants: &[usize], steps: &[usize]) {
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
                step_indexes: steps.to_vec(),
            });
        }
    }
}

/// What a workload says of its step, without the kinds of roles: older records do not tell those.
fn plain(own: &Option<OwnStepRecord>) -> Option<OwnStepRecord> {
    let mut own = own.clone()?;
    own.roles.iter_mut().for_each(|role| role.kinds.clear());
    Some(own)
}

fn summary_of<'a>(run: &'a Run, plan: &TrialPlan) -> Option<&'a TrialSummary> {
    run.trials.iter().find(|summary| summary.number == plan.number)
}

/// Whether two variants of two runs are the same thing, measured on the same machine.
fn is_same_thing(a: &Run, a_idx: usize, b: &Run, b_idx: usize) -> bool {
    let (x, y) = (&a.manifest.variants[a_idx], &b.manifest.variants[b_idx]);
    let asked = |variant: &VariantRecord| {
        (
            variant.name.clone(),
            variant.levels.clone(),
            variant.product.clone(),
            variant.workload.clone(),
            variant.settings.clone(),
            variant.options.clone(),
        )
    };
    let (ours, theirs) = (version_of(a, a_idx), version_of(b, b_idx));
    a.manifest.environment.machine == b.manifest.environment.machine
        && asked(x) == asked(y)
        && (ours == theirs || ours.is_none() || theirs.is_none())
}

/// Product and version as a server of this variant told them.
fn version_of(run: &Run, variant: usize) -> Option<String> {
    let facts = run.trials.iter().filter(|trial| trial.variant == variant).map(|t| &t.server);
    facts
        .filter(|server| !server.version.is_empty())
        .map(|server| format!("{} {}", server.product, server.version))
        .next()
}

/// The level that tells two namesakes of different runs apart.
fn telling_level(a: &Run, a_idx: usize, b: &Run, b_idx: usize) -> LevelRecord {
    let (here, there) = (&b.manifest.environment.machine, &a.manifest.environment.machine);
    let level = |factor: &str, level: String| LevelRecord { factor: factor.to_owned(), level };
    if here != there && !here.is_empty() {
        return level("machine", here.clone());
    }
    match (version_of(a, a_idx), version_of(b, b_idx)) {
        (Some(theirs), Some(ours)) if theirs != ours => level("version", ours),
        _ => level("run", run_name(b)),
    }
}

/// A short name of a run: its folder's.
fn run_name(run: &Run) -> String {
    run.folder
        .file_name()
        .map_or_else(|| "other run".to_owned(), |name| name.to_string_lossy().into_owned())
}
