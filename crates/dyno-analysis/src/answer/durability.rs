//! The cost of safe commits: the share of the fastest variant's throughput that the safe one lacks.

use std::cmp::Ordering;

use dyno_record::CommitSafety;
use dyno_units::Question;

use super::AnswerWriter;
use super::ranking::Ranked;
use crate::numbers::{self, EffectStyle};
use crate::words::{ci, count, list, share, size};
use crate::{Estimate, Verdict, metrics};

const SETTINGS_MOST: usize = 2;

const GROUPS_MOST: usize = 3;

/// Variants that differ in durability, compared with each other.
struct Group {
    /// The product, and its workload's levels.
    name: String,
    /// Fastest that syncs every commit.
    safe: Ranked,
    /// Fastest that does not.
    fast: Ranked,
    /// From which this pair was chosen.
    n_pairs: usize,
    variants: Vec<usize>,
    /// Of `safe` against `fast`.
    effect: (Estimate, Verdict),
}

fn in_throughput(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::NoDifference => "no difference",
        Verdict::Inconclusive => "inconclusive",
        Verdict::Better => "faster",
        Verdict::Worse => "slower",
    }
}

impl AnswerWriter<'_> {
    pub(super) fn safety(&self, variant: usize) -> Option<CommitSafety> {
        self.findings.variants[variant].commit_safety
    }

    pub(super) fn is_less_durable(&self, variant: usize, other: usize) -> bool {
        self.findings.is_less_durable(variant, other)
    }

    pub(super) fn cost_of_safety(&self) -> Option<String> {
        let (groups, place) = self.safety_groups()?;
        let at = if groups.len() > 1 { String::new() } else { format!(" {place}") };
        let decided = |group: &Group| match group.effect.1 {
            Verdict::Worse => {
                Some(format!("by {}{}", size(group.effect.0.value), self.interval_of(group)))
            }
            _ => None,
        };
        if let [only] = groups.as_slice() {
            let (safe, fast) = (self.name(only.safe.variant), self.name(only.fast.variant));
            let cost = match (decided(only), only.effect.1) {
                (Some(cost), _) => format!("cuts throughput {cost}"),
                (None, Verdict::NoDifference) => "costs no measurable throughput".to_owned(),
                _ => return None,
            };
            let risk = match self.safety(only.fast.variant) {
                Some(CommitSafety::DataAtRisk) => " (which risks corruption)",
                Some(CommitSafety::LastCommitsAtRisk) => " (which risks losing commits)",
                _ => "",
            };
            return Some(format!(
                "Syncing every commit {cost}{at}: {} with {safe}, {} with {fast}{risk}.",
                self.value_named(metrics::THROUGHPUT, &only.safe.mean),
                numbers::value(&only.fast.mean)
            ));
        }
        let names = |is_it: &dyn Fn(&Group) -> bool| -> Vec<&str> {
            groups.iter().filter(|group| is_it(group)).map(|group| group.name.as_str()).collect()
        };
        let cut: Vec<String> = groups
            .iter()
            .filter_map(|group| Some(format!("{} in {}", decided(group)?, group.name)))
            .collect();
        let free = names(&|group| group.effect.1 == Verdict::NoDifference);
        let open =
            names(&|group| !matches!(group.effect.1, Verdict::Worse | Verdict::NoDifference));
        if cut.is_empty() && free.is_empty() {
            return Some(format!(
                "Undecided how much throughput syncing every commit costs in {}.",
                list(&open)
            ));
        }
        let mut parts = Vec::new();
        if !cut.is_empty() {
            parts.push(format!("cuts throughput {}", list(&cut)));
        }
        if !free.is_empty() {
            parts.push(format!("costs no measurable throughput in {}", list(&free)));
        }
        let open = match open.as_slice() {
            [] => String::new(),
            open => format!("; undecided in {}", list(open)),
        };
        Some(format!("Syncing every commit {}{open}.", list(&parts)))
    }

    /// The headline's pair, if it was chosen, and that the lines below compare others, if they do.
    pub(super) fn safety_note(&self) -> Option<String> {
        let (groups, _) = self.safety_groups()?;
        let [only] = groups.as_slice() else { return None };
        let reference = self.reference(only);
        let is_below = [only.safe.variant, only.fast.variant].contains(&reference);
        if is_below && only.n_pairs == 1 {
            return None;
        }
        let (safe, fast) = (self.name(only.safe.variant), self.name(only.fast.variant));
        let pair = match only.n_pairs {
            1 => format!("{safe} with {fast}"),
            n => format!(
                "the fastest variant that syncs every commit, {safe}, with the fastest that does not, {fast}; \
                 the CI allows for the choice among {n} pairs"
            ),
        };
        if is_below {
            return Some(format!("This compares {pair}."));
        }
        let mut baselines = self.findings.comparisons.iter().map(|c| c.baseline);
        let below = match baselines.all(|baseline| baseline == reference) {
            true => format!("the baseline, {}", self.name(reference)),
            false => "its own baseline".to_owned(),
        };
        Some(format!("This compares {pair}. Below, each variant is compared with {below}."))
    }

    /// ` (95 % CI 92.1–93.9 %)` of the share that the safe variant gives up.
    fn interval_of(&self, group: &Group) -> String {
        let effect = &group.effect.0;
        let Some((low, high)) = effect.low.zip(effect.high).filter(|_| effect.n > 2) else {
            return String::new();
        };
        let show = |percent: f64, digits: usize| format!("{:.digits$} %", percent.abs());
        let differ = |digits: &usize| show(low, *digits) != show(high, *digits);
        let Some(digits) = (1..=3).find(differ) else { return String::new() };
        let range = numbers::range(&show(high, digits), &show(low, digits));
        format!(" ({} CI {range})", share(self.findings.confidence))
    }

    /// None unless the study asks for the price of durability, varies it on purpose, is judged by throughput
    /// and does the same at each step.
    fn safety_groups(&self) -> Option<(Vec<Group>, String)> {
        let (metric, steps) = self.main_metric_and_steps();
        let is_asked = self.findings.questions.contains(&Question::Durability);
        let is_own = self.findings.steps.iter().any(|step| step.own.is_some());
        if !is_asked || metric != metrics::THROUGHPUT || is_own || self.is_mismatched() {
            return None;
        }
        let records = &self.ranker.joined.variants;
        let key = |variant: usize| {
            let record = &records[variant];
            (record.product.clone(), record.workload.clone(), record.options.clone())
        };
        let mut keys: Vec<_> = (0..records.len()).map(key).collect();
        keys.dedup();
        let mut groups = Vec::new();
        for one in &keys {
            let own: Vec<usize> = (0..records.len()).filter(|v| key(*v) == *one).collect();
            if let Some(group) = self.safety_group(&own, &steps) {
                groups.push(group);
            }
        }
        // Groups of one product, which differ in their workloads, are told apart by their variants.
        let is_named_alike =
            |group: &Group| groups.iter().filter(|other| other.name == group.name).count() > 1;
        let alike: Vec<bool> = groups.iter().map(is_named_alike).collect();
        for (group, _) in groups.iter_mut().zip(alike).filter(|(_, is_alike)| *is_alike) {
            group.name = self.name(group.safe.variant).to_owned();
        }
        let is_few = (1..=GROUPS_MOST).contains(&groups.len());
        let place = self.place(&steps);
        is_few.then_some((groups, place))
    }

    fn safety_group(&self, own: &[usize], steps: &[usize]) -> Option<Group> {
        let records = &self.ranker.joined.variants;
        let names = self.ranker.joined.product_facts(*own.first()?).durability_settings;
        let asked = |variant: usize| -> Vec<Option<&String>> {
            names.iter().map(|name| records[variant].settings.get(name)).collect()
        };
        let is_asked_for = own.iter().any(|variant| asked(*variant) != asked(own[0]));
        let of_group = |ranked: &Ranked| own.contains(&ranked.variant);
        let mut ranked = self.ranker.rank(metrics::THROUGHPUT, steps);
        ranked.retain(of_group);
        let is_safe = |r: &Ranked| self.safety(r.variant) == Some(CommitSafety::EveryCommit);
        let is_unsafe = |r: &Ranked| {
            self.safety(r.variant).is_some_and(|safety| safety > CommitSafety::EveryCommit)
        };
        let n_safe = ranked.iter().filter(|r| is_safe(r)).count();
        let n_unsafe = ranked.iter().filter(|r| is_unsafe(r)).count();
        let n_pairs = n_safe * n_unsafe;
        // Both are sorted by mean, so the first is the fastest.
        let safe = ranked.iter().position(is_safe)?;
        let fast = ranked.iter().position(is_unsafe)?;
        if !is_asked_for || fast > safe && ranked[fast].mean.value < ranked[safe].mean.value {
            return None;
        }
        let pair = (ranked[safe].variant, ranked[fast].variant);
        let effect = self.ranker.against_one_of(n_pairs, pair, metrics::THROUGHPUT, steps)?;
        let fast = ranked.remove(fast);
        let safe = ranked.into_iter().find(is_safe)?;
        let mut trials = self.ranker.joined.trials.iter().filter(|t| own.contains(&t.variant));
        let name = trials.find_map(|trial| Some(trial.finished()?.server.product.clone()))?;
        Some(Group { name, safe, fast, n_pairs, variants: own.to_vec(), effect })
    }

    /// Reference of the lines on safety, if any: the fastest safe variant's baseline, or itself.
    pub(super) fn safe_one(&self) -> Option<usize> {
        if self.compared_variants().is_empty() || self.own_steps().is_some() {
            return None;
        }
        match self.safety_groups()?.0.as_slice() {
            [only] => Some(self.reference(only)),
            _ => None,
        }
    }

    fn reference(&self, group: &Group) -> usize {
        let safe = group.safe.variant;
        self.findings.variants[safe].baseline.unwrap_or(safe)
    }

    /// A line for each variant, the safest first; of several groups, a line for each group.
    pub(super) fn safety_lines(&self, room: usize) -> Option<Vec<String>> {
        let (groups, _) = self.safety_groups()?;
        let [group] = groups.as_slice() else {
            return Some(groups.iter().map(|group| self.group_line(group)).collect());
        };
        let (metric, steps) = self.main_metric_and_steps();
        let reference = self.reference(group);
        let mut ranked = self.ranker.rank(metric, &steps);
        ranked.sort_by_key(|r| (self.safety(r.variant), r.variant != reference));
        let effects: Vec<Option<(Estimate, Verdict)>> = ranked
            .iter()
            .map(|r| self.ranker.against((r.variant, reference), metric, &steps))
            .collect();
        let others = ranked.iter().zip(&effects).filter(|(r, _)| r.variant != reference);
        let style = EffectStyle::of(others.filter_map(|(_, e)| e.as_ref()).map(|(e, _)| e));
        let line = |(ranked, effect): (&Ranked, &Option<(Estimate, Verdict)>)| {
            let name = self.name(ranked.variant);
            let safety = self.safety(ranked.variant)?.words();
            let value = self.value_named(metric, &ranked.mean);
            let against = match effect {
                _ if ranked.variant == reference => {
                    let confidence = self.findings.confidence;
                    format!(" ({})", crate::words::ci_of(&ranked.mean, confidence))
                }
                Some((relative, verdict)) => {
                    let interval = ci(relative, self.findings.confidence, style.interval(relative));
                    let effect = style.show(relative.value);
                    let ours = self.safety(ranked.variant);
                    let durability = match self.safety(reference).cmp(&ours) {
                        Ordering::Less => ", less durable",
                        Ordering::Equal => ", equally durable",
                        Ordering::Greater => ", more durable",
                    };
                    let verdict = in_throughput(*verdict);
                    let of = match style {
                        EffectStyle::Ratio => format!("{effect} the baseline"),
                        EffectStyle::Percent => format!("{effect} vs. the baseline"),
                    };
                    format!(", {of} ({interval}): {verdict}{durability}")
                }
                None => String::new(),
            };
            let of_all = if ranked.variant == reference { ", the baseline" } else { "" };
            let asked = self.asked(ranked.variant);
            Some(format!("{name}{of_all} ({asked}{safety}): {value}{against}."))
        };
        let mut lines: Vec<String> = ranked.iter().zip(&effects).filter_map(line).collect();
        if lines.len() > room && room > 0 {
            let more = lines.len() - (room - 1);
            lines.truncate(room - 1);
            lines.push(format!("{} in the table below.", count(more as u64, "more variant")));
        }
        Some(lines)
    }

    /// Distinguishing settings that its name lacks: `journal_mode=wal, synchronous=full; `.
    fn asked(&self, variant: usize) -> String {
        let records = &self.ranker.joined.variants;
        let own = &records[variant].settings;
        let differs = |name: &&String| {
            records.iter().any(|other| other.settings.get(*name) != own.get(*name))
        };
        let of_variant = self.name(variant);
        let is_word = |value: &str| {
            value.chars().all(|c| c.is_ascii_alphabetic())
                && of_variant.split(|c: char| !c.is_alphanumeric()).any(|word| word == value)
        };
        let is_named =
            |name: &&String| of_variant.contains(&format!("{name}=")) || is_word(&own[*name]);
        let names = own.keys().filter(differs).filter(|name| !is_named(name));
        let asked: Vec<String> =
            names.take(SETTINGS_MOST).map(|name| format!("{name}={}", own[name])).collect();
        if asked.is_empty() { String::new() } else { format!("{}; ", asked.join(", ")) }
    }

    fn group_line(&self, group: &Group) -> String {
        let (metric, steps) = self.main_metric_and_steps();
        let safe = group.safe.variant;
        let mut others = self.ranker.rank(metric, &steps);
        others.retain(|r| group.variants.contains(&r.variant) && r.variant != safe);
        others.sort_by_key(|r| self.safety(r.variant));
        let effects: Vec<Option<(Estimate, Verdict)>> =
            others.iter().map(|r| self.ranker.against((r.variant, safe), metric, &steps)).collect();
        let style = EffectStyle::of(effects.iter().flatten().map(|(effect, _)| effect));
        let of = |(other, effect): (&Ranked, &Option<(Estimate, Verdict)>)| {
            let (effect, verdict) = effect.as_ref()?;
            let interval = ci(effect, self.findings.confidence, style.interval(effect));
            let verdict = match verdict {
                Verdict::NoDifference | Verdict::Inconclusive => {
                    format!(", {}", in_throughput(*verdict))
                }
                Verdict::Better | Verdict::Worse => String::new(),
            };
            let risk = match self.safety(other.variant) {
                Some(CommitSafety::DataAtRisk) => "; risks corruption",
                Some(CommitSafety::LastCommitsAtRisk) => "; risks losing commits",
                _ => "",
            };
            let shown = style.show(effect.value);
            Some(format!("{shown} with {} ({interval}{verdict}{risk})", self.name(other.variant)))
        };
        let all: Vec<String> = others.iter().zip(&effects).filter_map(of).collect();
        format!(
            "{}: {} with {}, which syncs every commit; {}.",
            group.name,
            self.value_named(metric, &group.safe.mean),
            self.name(safe),
            all.join("; "),
        )
    }
}
