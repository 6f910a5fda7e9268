//! Blocks spoiled by the host, which are void and measured again. The rule sees readings of the
//! host alone: CPU time taken by the hypervisor, other processes' user CPU time, and the canary
//! before a trial. Kernel work and the canary afterwards do not count, as a variant's slow starts
//! may cause them. Each trial is compared with the quietest one *of the same variant* (on the same
//! host) so far, so neither a variant's usual effect on the host nor an always busy machine makes
//! blocks void. All ended blocks are judged whenever one has ended; decisions are recorded, and
//! final.

use std::collections::{BTreeMap, BTreeSet};

use dyno_record::{Run, StepSummary, TrialSummary, VoidBlock};
use dyno_units::reading::known;

use crate::attribution::readings::mean_rate;
use crate::trial_hosts::{environment_of, machine_of};
use crate::words::{count, list, seconds};

/// In seconds; the host is read once a second, so shorter steps tell nothing.
const STEP_LEAST_S: f64 = 1.0;

/// By trial; `None` if not read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Disturbance {
    /// Share of all CPUs that the hypervisor gave to others.
    pub(crate) steal: Option<f64>,
    /// Share of all CPUs that other processes used in user mode.
    pub(crate) others: Option<f64>,
    /// Seconds of the canary before the trial.
    pub(crate) canary: Option<f64>,
}

impl Disturbance {
    fn of(trial: &TrialSummary, cpus: u32) -> Disturbance {
        let steps = || trial.steps.iter().filter(|step| step.measured_s >= STEP_LEAST_S);
        let most = |value: &dyn Fn(&StepSummary) -> Option<f64>| {
            steps().filter_map(value).max_by(f64::total_cmp)
        };
        let cpus = f64::from(cpus.max(1));
        let others = |step: &StepSummary| {
            let rest = mean_rate(step, known::REST_CPU_USER).ok()?;
            Some((rest / cpus).max(0.0))
        };
        let steal = |step: &StepSummary| Some(mean_rate(step, known::CPU_STEAL_PCT).ok()? / 100.0);
        let canary = trial.canary.as_ref().filter(|_| steps().next().is_some());
        Disturbance {
            steal: most(&steal),
            others: most(&others),
            canary: canary.map(|canary| canary.before_s),
        }
    }

    /// By criterion.
    fn quieter(self, other: Disturbance) -> Disturbance {
        let less = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Disturbance {
            steal: less(self.steal, other.steal),
            others: less(self.others, other.others),
            canary: less(self.canary, other.canary),
        }
    }
}

/// Void blocks by the manifest's rule, not set aside yet, with reasons; at most as many as may be
/// repeated. Only complete blocks count.
pub fn void_blocks(run: &Run) -> Vec<(u32, Vec<String>)> {
    let Some(rule) = &run.manifest.voiding else { return Vec::new() };
    let left = (rule.repeats_max as usize).saturating_sub(run.voids.len());
    let ended: BTreeSet<u32> = run.trials.iter().map(|trial| trial.number).collect();
    let mut missing = run.manifest.trials.iter().filter(|plan| !ended.contains(&plan.number));
    let open: BTreeSet<u32> = missing.by_ref().map(|plan| plan.block).collect();
    let seen: Vec<(&TrialSummary, Disturbance)> = run
        .trials
        .iter()
        .filter(|trial| !open.contains(&trial.block))
        .map(|trial| {
            let cpus = environment_of(trial, &run.manifest).cpus;
            (trial, Disturbance::of(trial, cpus))
        })
        .collect();
    // Machines differ in speed.
    let same = |trial: &'_ TrialSummary| {
        let (pool, host) = machine_of(trial);
        (trial.variant, pool.to_owned(), host.to_owned())
    };
    let mut quietest: BTreeMap<(usize, String, String), Disturbance> = BTreeMap::new();
    for (trial, disturbance) in &seen {
        let known = quietest.entry(same(trial)).or_insert(*disturbance);
        *known = known.quieter(*disturbance);
    }
    let mut void: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for (trial, disturbance) in &seen {
        if let Some(why) = rule_broken(rule, disturbance, &quietest[&same(trial)]) {
            let variant = &run.manifest.variants[trial.variant].name;
            let why = format!("trial {} ({variant}): {why}", trial.number);
            void.entry(trial.block).or_default().push(why);
        }
    }
    void.into_iter().take(left).collect()
}

/// For discarding a trial, by the quietest kept one of its variant on its machine, and whether no
/// more blocks of the run may be discarded; empty if its run discards nothing.
pub(crate) fn limits(runs: &[Run], kept: &TrialSummary) -> (Disturbance, bool) {
    let of = |run: &&Run| run.trials.iter().any(|trial| std::ptr::eq(trial, kept));
    let Some(run) = runs.iter().find(of) else { return Default::default() };
    let Some(rule) = &run.manifest.voiding else { return Default::default() };
    let is_alike = |trial: &&TrialSummary| {
        trial.variant == kept.variant && machine_of(trial) == machine_of(kept)
    };
    let alike = run.trials.iter().filter(is_alike);
    let read = |trial| Disturbance::of(trial, environment_of(trial, &run.manifest).cpus);
    let least = alike.map(read).reduce(Disturbance::quieter).unwrap_or_default();
    let limits = Disturbance {
        steal: least.steal.map(|share| share + rule.steal),
        others: least.others.map(|share| share + rule.others),
        canary: least.canary.map(|seconds| seconds * (1.0 + rule.canary)),
    };
    (limits, is_at_limit(run))
}

fn is_at_limit(run: &Run) -> bool {
    let most = run.manifest.voiding.as_ref().map_or(u32::MAX, |rule| rule.repeats_max);
    run.voids.len() as u32 >= most
}

const QUIETEST: &str = "this variant's quietest trial";

/// What exceeded the quietest trial of the same variant by more than allowed, in words.
fn rule_broken(
    rule: &dyno_record::VoidingRecord,
    found: &Disturbance,
    quietest: &Disturbance,
) -> Option<String> {
    let whole = |share: f64| format!("{:.0} %", share * 100.0);
    // A value and its exceeded limit must not look alike.
    let both = |found: f64, limit: f64| match whole(found) == whole(limit) {
        true => [found, limit].map(|share| format!("{:.1} %", share * 100.0)),
        false => [found, limit].map(whole),
    };
    let mut parts = Vec::new();
    let others = ("other processes used", " of the CPUs in user mode");
    for (found, least, most, (used, of)) in [
        (found.steal, quietest.steal, rule.steal, ("CPU steal was", "")),
        (found.others, quietest.others, rule.others, others),
    ] {
        let both_known = found.zip(least).filter(|(found, least)| found - least > most);
        let Some((found, least)) = both_known else { continue };
        let ([found, limit], least) = (both(found, least + most), whole(least));
        parts.push(format!("{used} {found}{of} (limit {limit}; {least} in {QUIETEST})"));
    }
    if let Some((found, least)) = found.canary.zip(quietest.canary)
        && found > least * (1.0 + rule.canary)
    {
        let limit = seconds(least * (1.0 + rule.canary));
        let (found, least) = (seconds(found), seconds(least));
        parts.push(format!("the CPU probe took {found} (limit {limit}; {least} in {QUIETEST})"));
    }
    (!parts.is_empty()).then(|| list(&parts))
}

pub(crate) const PROBE: &str = "the CPU probe";

/// If a run discarded as many blocks as allowed, says that later disturbed ones were kept.
fn at_limit(runs: &[Run]) -> String {
    let numbers = |run: &Run| {
        let n_blocks = run.manifest.trials.iter().map(|plan| plan.block).max().unwrap_or(0);
        (run.voids.len(), n_blocks)
    };
    let full: Vec<(usize, u32)> =
        runs.iter().filter(|run| !run.voids.is_empty() && is_at_limit(run)).map(numbers).collect();
    let Some(&(n, n_blocks)) = full.first() else { return String::new() };
    let were = if n == 1 { "was" } else { "were" };
    let blocks = match (runs.len(), full.len()) {
        (1, _) => format!("{n} of {n_blocks} blocks"),
        (all, some) if all == some && full.iter().all(|one| *one == full[0]) => {
            format!("In each run {n} of {n_blocks} blocks")
        }
        _ => format!("In one of the runs {n} of {n_blocks} blocks"),
    };
    format!(
        " {blocks} {were} discarded, the most allowed for {n_blocks} repetitions; any that were \
         disturbed after that were kept."
    )
}

#[derive(Debug, Default, PartialEq)]
struct Reasons {
    /// By variant name: blocks with such a trial, and those without one of another variant.
    of: BTreeMap<String, (u32, u32)>,
    blocks: u32,
    variants: usize,
}

impl Reasons {
    fn of(runs: &[Run]) -> Reasons {
        let names: BTreeSet<&str> =
            runs.iter().flat_map(|run| &run.manifest.variants).map(|v| v.name.as_str()).collect();
        let mut reasons = Reasons { variants: names.len(), ..Reasons::default() };
        for run in runs {
            for void in &run.voids {
                let variants: BTreeSet<&str> =
                    void.why.iter().filter_map(|why| variant_of(why, run)).collect();
                reasons.blocks += 1;
                for variant in &variants {
                    let known = reasons.of.entry((*variant).to_owned()).or_default();
                    known.0 += 1;
                    known.1 += u32::from(variants.len() == 1);
                }
            }
        }
        reasons
    }

    /// The variant that alone was the reason in at least three blocks, and so often in at most one
    /// of twenty runs in which all are hit alike; with its blocks and this share.
    fn suspect(&self) -> Option<(&str, u32, f64)> {
        let (name, (_, alone)) = self.of.iter().max_by_key(|(_, (_, alone))| *alone)?;
        let share = 1.0 / self.variants.max(1) as f64;
        let at_least: f64 = (*alone..=self.blocks).map(|k| binomial(self.blocks, k, share)).sum();
        let chance = (self.variants as f64 * at_least).min(1.0);
        (*alone >= SUSPECT_LEAST && chance <= 0.05).then_some((name, *alone, chance))
    }
}

/// Blocks with one reason only, for a suspicion.
const SUSPECT_LEAST: u32 = 3;

fn binomial(n: u32, k: u32, share: f64) -> f64 {
    let ways: f64 = (0..k).map(|i| f64::from(n - i) / f64::from(i + 1)).product();
    ways * share.powi(k as i32) * (1.0 - share).powi((n - k) as i32)
}

/// From a reason such as `trial 5 (…): …`.
fn variant_of<'a>(why: &str, run: &'a Run) -> Option<&'a str> {
    let number: u32 = why.strip_prefix("trial ")?.split(' ').next()?.parse().ok()?;
    let plan = run.manifest.trials.iter().find(|plan| plan.number == number)?;
    Some(&run.manifest.variants.get(plan.variant)?.name)
}

fn by_variant(runs: &[Run]) -> String {
    let reasons = Reasons::of(runs);
    let part = |(name, (blocks, _)): (&String, &(u32, u32))| {
        format!("{name} in {}", count(u64::from(*blocks), "block"))
    };
    match reasons.of.len() {
        0 => String::new(),
        _ if reasons.blocks < 2 => String::new(),
        _ => {
            let parts: Vec<String> = reasons.of.iter().map(part).collect();
            format!(" The trials over the limit were of {}.", list(&parts))
        }
    }
}

fn suspicion(runs: &[Run]) -> String {
    let reasons = Reasons::of(runs);
    let Some((name, alone, chance)) = reasons.suspect() else { return String::new() };
    format!(
        " {name} alone was the reason for {alone} of {} blocks, which chance does in {} of runs: it may load the \
         host itself when it is slow, and is then shown faster than it is. Run the study with `void_blocks = \
         \"keep\"` and compare.",
        reasons.blocks,
        crate::words::share(chance),
    )
}

const REASONS_MOST: usize = 4;

/// Message and advice: void blocks, reasons, and whether more would be void.
pub(crate) fn in_words(
    void: &[VoidBlock],
    runs: &[Run],
    is_probe_defined: bool,
) -> Option<(String, String)> {
    void.first()?;
    let is_used = void.iter().flat_map(|one| one.why.first()).any(|why| why.contains(PROBE));
    let definition = match (is_used, is_probe_defined) {
        (true, true) => " The probe's time before the trial is used.",
        (true, false) => {
            " The CPU probe is a fixed piece of CPU work, timed before and after each trial; the time before \
             it is used."
        }
        (false, _) => "",
    };
    // In the order of the runs.
    let of: Vec<usize> =
        runs.iter().enumerate().flat_map(|(idx, run)| run.voids.iter().map(move |_| idx)).collect();
    let reason = |(idx, one): (usize, &VoidBlock)| {
        let run = of.get(idx).filter(|_| runs.len() > 1 && of.len() == void.len());
        let run = run.map_or(String::new(), |run| format!(" of run {}", run + 1));
        let more = one.why.len().saturating_sub(1);
        let more = match more {
            0 => String::new(),
            1 => "; 1 more trial of this block was disturbed".to_owned(),
            n => format!("; {n} more trials of this block were disturbed"),
        };
        let why = one.why.first().map_or("no reason recorded", String::as_str);
        format!("Block {}{run}, {why}{more}", one.block)
    };
    let mut reasons: Vec<String> = void.iter().enumerate().take(REASONS_MOST).map(reason).collect();
    if let Some(rest) = void.len().checked_sub(REASONS_MOST).filter(|rest| *rest > 0) {
        reasons.push(format!("{rest} more blocks"));
    }
    let were = if void.len() == 1 { "was" } else { "were" };
    let message = format!(
        "{} {were} discarded and run again (a block is one trial of each variant) because the host \
         was much busier than in the quietest trial of the same variant. {}.{definition}{}",
        count(void.len() as u64, "block"),
        reasons.join(". "),
        by_variant(runs)
    );
    let advice = format!(
        "Discarded blocks do not contribute to any result. They are chosen from host readings \
         alone, without regard to throughput and response times, so a block that was kept may show \
         worse results than one that was discarded.{}{} `void_blocks = \"keep\"` in the study \
         turns this rule off.",
        at_limit(runs),
        suspicion(runs)
    );
    Some((message, advice))
}

#[cfg(test)]
mod tests;
