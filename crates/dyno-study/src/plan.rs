//! The ordered list of trials that a study asks for.

mod table;
mod text;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use dyno_model::{Load, StepRequest};
pub use dyno_units::TrialPlan as PlannedTrial;
use dyno_units::{Nanoseconds, Seed};

pub use self::table::{TableContext, VariantSize, over_budget, over_host_time, render_table};
pub use self::text::{PLAN_FORMAT, canonical_text, measured_fields, order_word};
use crate::{Design, JobChoice, JobLoad, LoadLevel, Order, Study, Variant};

/// What will be done, in order. A pure function of the study and the seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub title: String,
    pub seed: Seed,
    pub variants: Vec<Variant>,
    pub steps: Vec<PlannedStep>,
    /// The trials, in the order in which they run.
    pub trials: Vec<PlannedTrial>,
    /// Rest between steps and between trials.
    pub rest: Nanoseconds,
    /// Longest time after the last step of a trial in which the engine's debt is watched, if it is.
    pub run_off: Option<Nanoseconds>,
    /// Whether the page cache is emptied before each step.
    pub drop_caches: bool,
    /// Repetitions before a variant that is settled gets no more of them; none where all get all.
    pub repetitions_min: Option<u32>,
}

/// Transactions per second of a client that goes as fast as it can, where nothing is known of it.
pub const GUESSED_RATE: f64 = 100.0;

/// Waits are guessed to take one part in so many of their limit.
const GUESSED_SHARE: u64 = 10;

/// One stretch of load inside a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedStep {
    /// Its name: `8 clients`, `500/s`, `highest rate with p99 ≤ 20 ms`.
    pub name: String,
    pub load: LoadLevel,
    /// Whether any variant has that load: false if all of them have jobs that run alone.
    pub has_load: bool,
    pub warm_up: Nanoseconds,
    /// Measured time; the longest where it is known only when the step has ended.
    pub duration: Nanoseconds,
    /// How long its throughput has to be steady before it ends; none where it ends otherwise.
    pub until_steady: Option<Nanoseconds>,
}

impl PlannedStep {
    /// Load probes that the step takes as a rule, if it is a search.
    pub fn probes_expected(&self) -> Option<u32> {
        let LoadLevel::Search(search) = &self.load else { return None };
        Some(search.probes_expected())
    }

    /// Whether its length is known only when it has ended: what is planned is its longest time.
    pub fn is_open_ended(&self) -> bool {
        self.until_steady.is_some() || self.ends_by_quota()
    }

    /// Whether the time that it takes is a result ([`dyno_model::WorkloadStep::is_timed`]).
    pub fn is_timed(&self) -> bool {
        matches!(&self.load, LoadLevel::Own(own) if own.step.is_timed())
    }

    fn ends_by_quota(&self) -> bool {
        matches!(&self.load, LoadLevel::Own(own) if own.step.ends_by_quota())
    }

    /// Longest wait before it for the engine to pay its debt.
    pub fn settle(&self) -> Nanoseconds {
        if let LoadLevel::Own(own) = &self.load { own.step.settle } else { Nanoseconds::ZERO }
    }

    /// Warm-up and measured time that is known beforehand: of a step that ends by quota, what its
    /// rates tell.
    fn time_least(&self, rest: Nanoseconds) -> Nanoseconds {
        match self.until_steady {
            Some(window) => self.warm_up + window,
            // The first one is due at once; how far apart random ones are is not known.
            None if self.ends_by_quota() => {
                self.quota_time(|n, rate| Some(n.saturating_sub(1) as f64 / rate?), f64::floor)
            }
            None => self.loaded_time(rest),
        }
    }

    /// The time that quotas take, by the seconds of a quota whose transactions may have a rate.
    fn quota_time(
        &self,
        of: fn(u64, Option<f64>) -> Option<f64>,
        whole: fn(f64) -> f64,
    ) -> Nanoseconds {
        let LoadLevel::Own(own) = &self.load else { return Nanoseconds::ZERO };
        let times = own
            .step
            .roles
            .iter()
            .filter_map(|role| of(role.quota?, role.pacing.rate().filter(|rate| *rate > 0.0)));
        let seconds = whole(times.fold(0.0, f64::max));
        Nanoseconds::from_secs(seconds as u64).min(self.duration)
    }

    /// What it probably takes, wait for the engine's debt included: what a step of this name took
    /// before (`measured`), or a guess. Of steps that end by quota, [`GUESSED_RATE`]; of waits a tenth
    /// of their limit; of steps until steady, twice the time that they have to be steady.
    fn time_likely(&self, rest: Nanoseconds, measured: Option<Nanoseconds>) -> Nanoseconds {
        let settle = Nanoseconds(self.settle().0 / GUESSED_SHARE);
        let load = match (measured, self.until_steady) {
            (Some(measured), _) => (self.warm_up + measured).min(self.loaded_time(rest)),
            (None, Some(window)) => self.warm_up + Nanoseconds(window.0 * 2).min(self.duration),
            (None, None) if self.ends_by_quota() => {
                self.quota_time(|n, rate| Some(n as f64 / rate.unwrap_or(GUESSED_RATE)), f64::ceil)
            }
            (None, None) => self.loaded_time(rest),
        };
        settle + load
    }

    /// Longest wait for the engine's debt, warm-up and measured time; for a search the expected
    /// time of all its probes, with `rest` between them.
    pub fn time(&self, rest: Nanoseconds) -> Nanoseconds {
        self.settle() + self.loaded_time(rest)
    }

    fn loaded_time(&self, rest: Nanoseconds) -> Nanoseconds {
        let n_probes = u64::from(self.probes_expected().unwrap_or(1));
        let loads = (self.warm_up + self.duration).0.saturating_mul(n_probes);
        Nanoseconds(loads) + Nanoseconds(rest.0.saturating_mul(n_probes.saturating_sub(1)))
    }
}

impl Plan {
    pub fn has_own_steps(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.load, LoadLevel::Own(_)))
    }

    /// Time of one trial: warm-up and measured time of each step, waits for the engine's debt, and
    /// the rests between steps; the longest time where it is not known ([`Plan::is_open_ended`]).
    /// Deploying and populating come on top.
    pub fn trial_time(&self) -> Nanoseconds {
        let run_off = self.run_off.unwrap_or(Nanoseconds::ZERO);
        self.steps.iter().fold(self.rests() + run_off, |total, step| total + step.time(self.rest))
    }

    /// The part of [`Plan::trial_time`] that is known beforehand.
    pub fn trial_time_least(&self) -> Nanoseconds {
        self.steps.iter().fold(self.rests(), |total, step| total + step.time_least(self.rest))
    }

    /// What one trial probably takes under load, at rest and in waits; `measured` is what steps of the
    /// same name took before. Deploying and populating come on top.
    pub fn trial_time_likely(&self, measured: &BTreeMap<String, Nanoseconds>) -> Nanoseconds {
        let run_off = Nanoseconds(self.run_off.unwrap_or(Nanoseconds::ZERO).0 / GUESSED_SHARE);
        let steps = self.steps.iter();
        steps.fold(self.rests() + run_off, |total, step| {
            total + step.time_likely(self.rest, measured.get(&step.name).copied())
        })
    }

    /// What the whole run probably takes, with `prepare` in each trial; all trials of the plan.
    pub fn time_likely(
        &self,
        prepare: Nanoseconds,
        measured: &BTreeMap<String, Nanoseconds>,
    ) -> Nanoseconds {
        self.trials_time(self.trials.len() as u64, prepare + self.trial_time_likely(measured))
    }

    pub fn step_request(&self) -> StepRequest {
        let own = self.steps.iter().find_map(|step| match &step.load {
            LoadLevel::Own(own) => Some(own.request),
            _ => None,
        });
        own.unwrap_or_else(|| StepRequest {
            clients: self.steps.iter().map(|step| step.load.clients_least()).max().unwrap_or(1),
            duration: self.steps.iter().map(|step| step.duration).max().unwrap_or_default(),
        })
    }

    /// Whether times are longest times, because something ends when it is done.
    pub fn is_open_ended(&self) -> bool {
        let is_waiting = |step: &PlannedStep| step.settle() > Nanoseconds::ZERO;
        self.run_off.is_some()
            || self.steps.iter().any(|step| step.is_open_ended() || is_waiting(step))
    }

    fn rests(&self) -> Nanoseconds {
        Nanoseconds(self.rest.0.saturating_mul(self.steps.len().saturating_sub(1) as u64))
    }

    /// Time of the whole run under load and at rest; the longest time where it is not known.
    /// Deploying and populating come on top.
    pub fn load_time(&self) -> Nanoseconds {
        self.total_time(Nanoseconds::ZERO)
    }

    /// Shortest and longest time of the whole run, where deploying and populating takes `prepare` in
    /// each trial. They differ where something ends when it is done, or trials are left out when
    /// nothing that they could show is open any more. No trial is counted as failed.
    pub fn time_bounds(&self, prepare: Nanoseconds) -> (Nanoseconds, Nanoseconds) {
        let n_least = match self.repetitions_min {
            Some(least) => self.trials.iter().filter(|trial| trial.repetition <= least).count(),
            None => self.trials.len(),
        };
        let least = self.trials_time(n_least as u64, prepare + self.trial_time_least());
        (least, self.total_time(prepare))
    }

    /// Longest time of the whole run when all trials are done and deploying and populating takes
    /// `prepare` in each trial.
    pub fn total_time(&self, prepare: Nanoseconds) -> Nanoseconds {
        self.trials_time(self.trials.len() as u64, prepare + self.trial_time())
    }

    /// Time of so many trials that take `one` each, and of the rests between them.
    fn trials_time(&self, n_trials: u64, one: Nanoseconds) -> Nanoseconds {
        Nanoseconds(one.0.saturating_mul(n_trials))
            + Nanoseconds(self.rest.0.saturating_mul(n_trials.saturating_sub(1)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockOrder {
    /// Every second block is the reverse of the one before it, so that a drift that goes on within
    /// blocks cancels out over two of them.
    Mirrored,
    /// Each block is drawn on its own, as Dyno did before blocks were mirrored: only for going on
    /// with a run that was planned so.
    Free,
}

/// Makes the plan of a study. `seed` is used if the study fixes none.
pub fn plan(study: &Study, seed: Seed) -> Plan {
    plan_in(study, seed, BlockOrder::Mirrored)
}

pub fn plan_in(study: &Study, seed: Seed, order: BlockOrder) -> Plan {
    let design = &study.design;
    let seed = design.seed.unwrap_or(seed);
    let variants = study.variants.clone();
    let trials = match design.order {
        Order::Interleaved => interleaved(variants.len(), design.repetitions, seed, order),
        Order::Sequential => sequential(variants.len(), design.repetitions),
    };
    let steps = steps(design, &study.variants);
    Plan {
        title: study.title.clone(),
        seed,
        variants,
        steps,
        trials,
        rest: design.rest,
        run_off: design.run_off,
        drop_caches: design.drop_caches,
        repetitions_min: design.repetitions_min,
    }
}

/// Each repetition is a block with every variant once, in random order.
fn interleaved(
    n_variants: usize,
    repetitions: u32,
    seed: Seed,
    block_order: BlockOrder,
) -> Vec<PlannedTrial> {
    let mut trials = Vec::new();
    let mut order: Vec<usize> = Vec::new();
    for block in 1..=repetitions {
        if block_order == BlockOrder::Mirrored && block.is_multiple_of(2) {
            order.reverse();
        } else {
            order = (0..n_variants).collect();
            seed.derive("order", u64::from(block)).stream().shuffle(&mut order);
        }
        for &variant in &order {
            let number = trials.len() as u32 + 1;
            trials.push(PlannedTrial { number, variant, repetition: block, block });
        }
    }
    trials
}

/// All repetitions of a variant, then the next variant.
fn sequential(n_variants: usize, repetitions: u32) -> Vec<PlannedTrial> {
    let mut trials = Vec::new();
    for variant in 0..n_variants {
        for repetition in 1..=repetitions {
            let number = trials.len() as u32 + 1;
            trials.push(PlannedTrial { number, variant, repetition, block: repetition });
        }
    }
    trials
}

fn steps(design: &Design, variants: &[Variant]) -> Vec<PlannedStep> {
    let jobs: Vec<Option<JobChoice>> = variants.iter().map(Variant::job).collect();
    let is_alone =
        |job: &Option<JobChoice>| job.as_ref().is_some_and(|job| job.load == JobLoad::Off);
    let has_load = jobs.is_empty() || !jobs.iter().all(is_alone);
    let mut names: Vec<&str> = jobs.iter().flatten().map(|job| job.name.as_str()).collect();
    names.dedup();
    let open = design.loads.iter().filter_map(|load| match load {
        LoadLevel::Given(load) if load.is_open() => Some(load.clients()),
        _ => None,
    });
    let clients: BTreeSet<usize> = open.collect();
    let is_clients_varied = clients.len() > 1;
    let step = |load: &LoadLevel| {
        let (warm_up, duration) = match load {
            _ if !has_load => (Nanoseconds::ZERO, design.duration),
            // What is done in a warm-up would not count, and would be there all the same.
            LoadLevel::Own(own) if own.step.ends_by_quota() => (Nanoseconds::ZERO, own.step.limit),
            LoadLevel::Own(own) => (design.warm_up, own.step.limit),
            _ => (design.warm_up, design.duration),
        };
        let name = match (has_load, names.as_slice()) {
            (true, _) => step_name(load, is_clients_varied),
            (false, [name]) => (*name).to_owned(),
            (false, _) => "job".to_owned(),
        };
        let load = load.clone();
        let planned = PlannedStep { name, load, has_load, warm_up, duration, until_steady: None };
        match design.until_steady {
            Some(longest) if !planned.is_open_ended() => {
                PlannedStep { until_steady: Some(duration), duration: longest, ..planned }
            }
            _ => planned,
        }
    };
    design.loads.iter().map(step).collect()
}

fn step_name(load: &LoadLevel, is_clients_varied: bool) -> String {
    let clients_text = |clients: usize| match clients {
        1 => "1 client".to_owned(),
        _ => format!("{clients} clients"),
    };
    let with_clients = |rate: String, clients: usize| match is_clients_varied {
        true => format!("{rate}, {}", clients_text(clients)),
        false => rate,
    };
    match load {
        LoadLevel::Given(Load::Open { rate, clients, .. }) => {
            with_clients(format!("{rate}/s"), *clients)
        }
        LoadLevel::Given(Load::Stepped { rate, clients, .. }) => {
            with_clients(rate.to_string(), *clients)
        }
        LoadLevel::Given(load) => clients_text(load.clients()),
        LoadLevel::Search(search) => search.to_string(),
        LoadLevel::Own(own) => own.step.name.clone().into_owned(),
    }
}
