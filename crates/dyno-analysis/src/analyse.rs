//! Records → findings: the sequence of the analysis, and facts that need no statistics.

use std::collections::{BTreeMap, BTreeSet};

use dyno_record::{MemberFacts, MemberRole, Run, TrialOutcome, TrialSummary};
use dyno_units::{Question, Seed, Varied};

use crate::answer::{Ranker, answer, is_watched};
use crate::attribution::{attribution, why};
use crate::bound::bound_by;
use crate::cells::{Measured, cells, measure_all};
use crate::compare::{Levels, comparisons, concurrency, other_effects};
use crate::cost::cost;
use crate::debt::{debt, run_off};
use crate::detect::caveats;
use crate::faults::faults;
use crate::gate::judge;
use crate::hosts::{hosts, server_hosts};
use crate::insert_benchmark::insert_benchmark;
use crate::join::{Joined, JoinedTrial, Matching};
use crate::kinds::{kind_comparisons, kinds};
use crate::requirements::{own_limits, requirements};
use crate::scaling::{scaling, under_limit};
use crate::searches::{searches, step_search};
use crate::settings::setting_differences;
use crate::stalls::{made_dips, stalls};
use crate::statistics::Rule;
use crate::stopping;
use crate::trial_hosts::trial_hosts;
use crate::vectors::vectors;
use crate::volume;
use crate::words::{begin, distinct};
use crate::{Answer, CaveatKind, ConcurrencyGroup, Findings, StepFacts, TrialFacts, VariantFacts};

const FORMAT: u32 = 1;

#[derive(Clone, Debug)]
pub struct Options {
    pub confidence: f64,
    /// `None` for the record's own.
    pub threshold: Option<f64>,
    pub seed: u64,
    /// Judges each variant against its baseline, as always if two runs are compared.
    pub gate: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { confidence: 0.95, threshold: None, seed: 1, gate: false }
    }
}

/// Analyses runs of one study together. Variants that are alike (name, levels, product, version,
/// workload, options, settings) under the same conditions (machine, storage, CPUs, times) become
/// one, with the repetitions of all runs. Other namesakes get distinguishing levels (`machine`,
/// `version`, `filesystem` …, or `run`), and a baseline among them is compared with its namesake in
/// the first run, if their workloads are alike.
pub fn analyse(runs: &[Run], options: &Options) -> Findings {
    analyse_joined(runs, options, Matching::Join)
}

/// Compares every variant of `candidate` with its namesake in `baseline`, even if they are alike.
/// Variants of the baseline run are compared as its study says.
pub fn analyse_against(baseline: &Run, candidate: &Run, options: &Options) -> Findings {
    let runs = [baseline.clone(), candidate.clone()];
    analyse_joined(&runs, options, Matching::Against)
}

fn analyse_joined(runs: &[Run], options: &Options, matching: Matching) -> Findings {
    let joined = Joined::new(runs, matching);
    let first = runs.first().map(|run| &run.manifest);
    let rule = Rule {
        threshold: options.threshold.or(first.map(|m| m.threshold)).unwrap_or(0.0),
        confidence: options.confidence,
    };
    let trial_hosts = trial_hosts(&joined);
    // Of several machines, the largest.
    let most = trial_hosts.iter().map(|host| host.environment.cpus).max();
    let cpus = most.or(first.map(|manifest| manifest.environment.cpus)).unwrap_or(0);
    let measured = measure_all(&joined);
    let levels = stopping::levels_of(runs, &joined, &rule);
    let steps = step_facts(&joined, runs, cpus);
    let variants: Vec<VariantFacts> =
        (0..joined.variants.len()).map(|idx| variant_facts(&joined, idx)).collect();
    let comparisons = comparisons(&joined, &measured, &levels, Seed(options.seed));
    let stalls = stalls(&joined);
    let mut findings = Findings {
        format: FORMAT,
        title: first.map_or_else(String::new, |manifest| manifest.title.clone()),
        answer: Answer::default(),
        threshold: rule.threshold,
        confidence: rule.confidence,
        metrics: joined.metrics.clone(),
        cells: cells(&joined, &measured, &levels),
        other_effects: other_effects(&joined, &measured, &levels),
        concurrency: concurrency(&joined, &steps, (&measured, &comparisons), &levels),
        why: why(&joined, (&measured, &comparisons), &levels, cpus),
        comparisons,
        void_blocks: runs.iter().flat_map(|run| run.voids.clone()).collect(),
        searches: searches(&joined),
        scaling: Vec::new(),
        repeated_looks: levels.looks,
        stopping: stopping::facts(runs, &joined, &rule),
        hosts: hosts(&joined),
        server_hosts: server_hosts(&joined),
        trial_hosts,
        made_dips: made_dips(&joined, &stalls),
        faults: faults(&joined),
        stalls,
        kinds: kinds(&joined, &measured, &levels),
        kind_comparisons: kind_comparisons(&joined, &measured, &levels, Seed(options.seed)),
        insert_benchmark: insert_benchmark(&joined, &levels),
        debt: debt(&joined, &levels),
        run_off: run_off(&joined, &levels),
        attribution: attribution(&joined, cpus, &levels),
        bound_by: bound_by(&joined, &measured),
        caveats: Vec::new(),
        trials: joined.trials.iter().map(trial_facts).collect(),
        setting_differences: setting_differences(&joined, &variants),
        environment: environment(runs),
        cpus,
        variants,
        steps,
        ..Findings::default()
    };
    let ranker = Ranker { joined: &joined, measured: &measured, levels: &levels };
    conclude(&mut findings, runs, &ranker);
    if matching == Matching::Against || options.gate {
        tell_gate(&mut findings, (&joined, &measured, &levels));
    }
    findings
}

/// Adds what follows from cells and comparisons, the answer last.
fn conclude(findings: &mut Findings, runs: &[Run], ranker: &Ranker<'_>) {
    let (joined, measured) = (ranker.joined, ranker.measured);
    findings.vectors = vectors(joined, &findings.cells);
    findings.requirements = requirements(runs, &joined.metrics, &findings.cells);
    let limits = own_limits(runs, &joined.metrics);
    findings.under_limit = under_limit(&findings.steps, &findings.cells, &limits);
    findings.cost = cost(&findings.cells, ranker);
    tell_unneeded(findings, joined, runs);
    tell_reruns(findings, runs);
    findings.scaling = scaling(&findings.steps, &findings.cells, measured, ranker.levels);
    findings.caveats = caveats(joined, measured, findings, runs);
    if is_watched(findings) {
        // Watching measures nothing that repetitions or a longer time would improve.
        findings.caveats.retain(|caveat| caveat.kind == CaveatKind::ServerRestarted);
    }
    findings.questions = questions(runs, joined, findings);
    findings.answer = answer(findings, ranker);
}

/// What is asked: what the first run says, except where several runs that were joined vary something together.
fn questions(runs: &[Run], joined: &Joined<'_>, findings: &Findings) -> Vec<Question> {
    // A record may name one any number of times.
    let first = runs.first().into_iter().flat_map(|run| &run.manifest.questions);
    let said: Vec<Question> = distinct(first.copied());
    let agree = runs.iter().all(|run| run.manifest.questions == runs[0].manifest.questions);
    let is_usual = said == [Question::Best];
    if !said.is_empty() && (runs.len() == 1 || agree && !is_usual) {
        return said;
    }
    match varied(joined, findings).question() {
        Question::Best if !said.is_empty() => said,
        inferred => vec![inferred],
    }
}

fn varied(joined: &Joined<'_>, findings: &Findings) -> Varied {
    let variants = &joined.variants;
    // Of each product and work the first variant, with the names of the settings that decide.
    let mut firsts = BTreeMap::new();
    let durability = variants.iter().enumerate().any(|(idx, variant)| {
        let work = (&variant.product, &variant.workload, &variant.options);
        let names = || (variant, joined.product_facts(idx).durability_settings);
        let (first, names) = firsts.entry(work).or_insert_with(names);
        names.iter().any(|name| first.settings.get(name) != variant.settings.get(name))
    });
    let mut levels: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for level in variants.iter().flat_map(|variant| &variant.levels) {
        levels.entry(&level.factor).or_default().insert(&level.level);
    }
    levels.retain(|_, levels| levels.len() > 1);
    let is_of_members = |(factor, levels): &(&&str, &BTreeSet<&str>)| {
        Varied::is_of_members(factor, levels.iter().copied())
    };
    let dipping: BTreeSet<usize> = findings.made_dips.iter().map(|dips| dips.variant).collect();
    Varied {
        faults: !findings.faults.is_empty(),
        jobs: false,
        dips: !dipping.is_empty() && dipping.len() < variants.len(),
        durability,
        prices: variants.iter().any(|v| v.price_per_hour != variants[0].price_per_hour),
        members: levels.iter().find(is_of_members).map(|(factor, _)| (*factor).to_owned()),
        limits: !findings.requirements.is_empty(),
        versions: levels.keys().any(|factor| factor.rsplit('.').next() == Some("version")),
    }
}

fn tell_gate(
    findings: &mut Findings,
    (joined, measured, levels): (&Joined<'_>, &[Measured], &Levels<'_>),
) {
    let (gate, rows) = judge(joined, findings, measured, levels);
    let is_compared = findings.comparisons.iter().any(|c| c.variant >= joined.n_first);
    if !is_compared && !findings.cells.is_empty() && !is_watched(findings) {
        // Results of the variants alone do not answer the question.
        let names = || findings.variants.iter().map(|variant| variant.name.as_str());
        findings.answer = Answer {
            headline: "Nothing in the two runs can be compared.".to_owned(),
            lines: gate.reasons().iter().map(|why| begin(why, names()) + ".").collect(),
            ..Answer::default()
        };
    }
    findings.gate = Some(gate);
    findings.gate_rows = rows;
}

fn step_facts(joined: &Joined<'_>, runs: &[Run], cpus: u32) -> Vec<StepFacts> {
    let is_low = |clients: u64| clients <= u64::from(cpus);
    // Times may differ between runs.
    let is_for_one_time = |step: &dyno_record::StepRecord| {
        let mut others = runs.iter().flat_map(|run| &run.manifest.steps);
        step.search.is_none()
            && step.own.is_none()
            && others.all(|other| other.name != step.name || other.duration_s == step.duration_s)
    };
    let facts = |(idx, step): (usize, &dyno_record::StepRecord)| StepFacts {
        name: step.name.clone(),
        clients: step.clients,
        rate: step.rate,
        duration_s: Some(step.duration_s).filter(|_| is_for_one_time(step)),
        search: step_search(step),
        main_metric: joined.main[idx],
        own: step.own.clone(),
        concurrency: if is_low(step.clients) {
            ConcurrencyGroup::Low
        } else {
            ConcurrencyGroup::High
        },
    };
    joined.steps.iter().enumerate().map(facts).collect()
}

fn variant_facts(joined: &Joined<'_>, idx: usize) -> VariantFacts {
    let record = &joined.variants[idx];
    let ended: Vec<&TrialSummary> = joined
        .trials
        .iter()
        .filter(|trial| trial.variant == idx)
        .filter_map(|trial| trial.summary)
        .collect();
    let is_finished = |trial: &&&TrialSummary| trial.outcome == TrialOutcome::Finished;
    let finished = ended.iter().filter(is_finished).count();
    // A failed trial may have learnt its server's facts.
    let trial = ended.iter().find(is_finished).or(ended.first());
    let server = trial.map(|trial| trial.server.clone()).unwrap_or_default();
    let levels = record.levels.iter().map(|level| (level.factor.clone(), level.level.clone()));
    let product = server.product_facts().into_owned();
    let loss = trial.and_then(|trial| volume::loss_of(trial));
    let promised = (server.durability.as_str(), product.commit_safety);
    let (durability, commit_safety) = volume::durability(promised, loss.as_ref());
    VariantFacts {
        name: record.name.clone(),
        baseline: record.baseline,
        levels: levels.collect(),
        server: format!("{} {}", server.product, server.version).trim().to_owned(),
        commit_safety,
        memory_bytes: product.memory_bytes.map(|first| first + memory_of_shards(trial)),
        durability,
        workload: record.workload.clone(),
        options: record.options.clone(),
        settings: server.settings.into_iter().chain(server.machine).collect(),
        finished: finished as u32,
        failed: (ended.len() - finished) as u32,
        price_per_hour: record.price_per_hour.clone(),
        machine: joined.machines[idx].clone(),
    }
}

/// Further shards hold parts of a trial's data.
fn memory_of_shards(trial: Option<&&TrialSummary>) -> f64 {
    let members = trial.iter().flat_map(|trial| &trial.members);
    let shards = members.filter(|member| member.role == MemberRole::Shard);
    shards.filter_map(|shard| shard.server.product_facts().memory_bytes).sum()
}

fn trial_facts(trial: &JoinedTrial<'_>) -> TrialFacts {
    let mut facts = TrialFacts {
        number: trial.number,
        variant: trial.variant,
        repetition: trial.repetition,
        block: trial.block,
        state: "missing".to_owned(),
        ..TrialFacts::default()
    };
    if let Some(summary) = trial.summary {
        facts.rows = summary.data.rows;
        facts.populate_s = summary.data.populate_s;
        facts.is_reused = summary.data.reused;
        facts.bytes = summary.data.bytes;
        facts.bytes_after = summary.data.bytes_after;
        facts.began_unix_ms = Some(summary.began_unix_ms);
        facts.ended_unix_ms = Some(summary.ended_unix_ms);
        facts.audit = summary.audit.clone();
        match &summary.outcome {
            TrialOutcome::Finished => facts.state = "finished".to_owned(),
            TrialOutcome::Failed { message, server_log } => {
                facts.state = "failed".to_owned();
                facts.message = Some(message.clone());
                facts.server_log = server_log.clone();
            }
        }
    }
    facts
}

/// Missing trials of settled variants are not needed.
fn tell_unneeded(findings: &mut Findings, joined: &Joined<'_>, runs: &[Run]) {
    let mut all = findings.trials.iter_mut().zip(&joined.trials);
    for run in runs {
        let settled = stopping::decide(run).settled;
        let n_variants = run.manifest.variants.len();
        // Joining leaves out trials of missing variants.
        for plan in run.manifest.trials.iter().filter(|plan| plan.variant < n_variants) {
            let Some((facts, trial)) = all.next() else { return };
            let is_settled = settled.iter().any(|(variant, _)| *variant == plan.variant);
            if trial.summary.is_none() && is_settled {
                facts.state = "not needed".to_owned();
            }
        }
    }
}

fn tell_reruns(findings: &mut Findings, runs: &[Run]) {
    let mut all = findings.trials.iter_mut();
    for run in runs {
        let n_variants = run.manifest.variants.len();
        let discarded = |number: u32| {
            run.voids.iter().flat_map(|void| &void.trials).any(|trial| trial.number == number)
        };
        for plan in run.manifest.trials.iter().filter(|plan| plan.variant < n_variants) {
            let Some(facts) = all.next() else { return };
            facts.is_rerun = facts.began_unix_ms.is_some() && discarded(plan.number);
        }
    }
}

/// `23.5 GiB`, `16 GiB`.
fn memory_in_words(bytes: u64) -> String {
    let text = dyno_units::ByteCount(bytes).to_string();
    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let rounded = number.parse().map(|number: f64| format!("{number:.1}"));
    let number = rounded.as_deref().unwrap_or(number);
    format!("{} {unit}", number.trim_end_matches(".0"))
}

/// `ext4 on vda`: storage of a member's data; `None` if not Dyno's, or unknown to the kernel.
fn storage(member: &MemberFacts) -> Option<String> {
    let place = member.place.as_ref().filter(|_| member.role != MemberRole::Router)?;
    let filesystem = place.filesystem.as_deref()?;
    let device = place.device.as_deref().and_then(|device| device.strip_prefix("/dev/"));
    Some(device.map_or_else(|| filesystem.to_owned(), |device| format!("{filesystem} on {device}")))
}

/// Of several machines, all differing values.
fn environment(runs: &[Run]) -> BTreeMap<String, String> {
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut add = |name: &str, value: String| {
        let known = values.entry(name.to_owned()).or_default();
        if !value.is_empty() && !known.contains(&value) {
            known.push(value);
        }
    };
    for run in runs {
        add("dyno", run.manifest.dyno.clone());
        for place in run.trials.iter().flat_map(|trial| &trial.members).filter_map(storage) {
            add("storage", place);
        }
    }
    let of_trials = |run: &Run| {
        let hosts = run.trials.iter().filter_map(|trial| trial.host.clone());
        hosts.map(|host| host.environment).collect::<Vec<_>>()
    };
    let of_run = |run: &Run| match of_trials(run) {
        none if none.is_empty() => vec![run.manifest.environment.clone()],
        some => some,
    };
    for environment in runs.iter().flat_map(of_run) {
        add("machine", environment.machine.clone());
        add("cpus", environment.cpus.to_string());
        // Unknown for imported results.
        if environment.memory_bytes > 0 {
            add("memory", memory_in_words(environment.memory_bytes));
        }
        for (name, value) in &environment.facts {
            add(name, value.clone());
        }
    }
    values.into_iter().map(|(name, values)| (name, values.join("; "))).collect()
}

#[cfg(test)]
mod tests;
