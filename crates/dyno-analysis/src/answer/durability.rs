//! What safe commits cost: the headline of a study that varies durability on purpose.
//!
//! The cost is that of the safe variant: how much of the throughput of the fastest one it gives up.

use dyno_record::CommitSafety;

use super::AnswerWriter;
use super::ranking::Ranked;
use crate::numbers::{self, EffectStyle};
use crate::words::{ci, list, share, size};
use crate::{Estimate, Verdict, metrics};

/// As many settings of a variant are said behind its name.
const SETTINGS_MOST: usize = 2;

/// As many groups are said in one headline.
const GROUPS_MOST: usize = 3;

/// Variants that differ in durability and not in what else is compared with it.
struct Group {
    /// What is common to them: the product, and what the workload's levels add to it.
    name: String,
    /// The fastest of those that sync every commit.
    safe: Ranked,
    /// The fastest of those that do not.
    fast: Ranked,
    /// Whether there are several of either kind, so that these two are a choice.
    is_choice: bool,
    /// The effect of the safe one against the fast one.
    effect: (Estimate, Verdict),
}

impl Group {
    /// What is said before the two values: that each is the best of several.
    fn at_best(&self) -> &'static str {
        if self.is_choice { "at best " } else { "" }
    }
}

impl AnswerWriter<'_> {
    /// What a commit of a variant survives.
    pub(super) fn safety(&self, variant: usize) -> Option<CommitSafety> {
        self.findings.variants[variant].commit_safety
    }

    /// Whether a variant is known to be less durable than another one.
    pub(super) fn is_less_durable(&self, variant: usize, other: usize) -> bool {
        self.findings.is_less_durable(variant, other)
    }

    /// The cost of syncing every commit; none where the study does not vary durability on purpose,
    /// is judged by something else than throughput, or does something else at each step.
    pub(super) fn cost_of_safety(&self) -> Option<String> {
        let (groups, place) = self.safety_groups()?;
        let at = if groups.len() > 1 { String::new() } else { format!(" {place}") };
        let decided = |group: &Group| match group.effect.1 {
            Verdict::Worse => {
                Some(format!("{}{}", size(group.effect.0.value), self.of_the_throughput(group)))
            }
            _ => None,
        };
        if let [only] = groups.as_slice() {
            let (safe, fast) = (self.name(only.safe.variant), self.name(only.fast.variant));
            let value = |ranked: &Ranked| numbers::value(&ranked.mean);
            let cost = match (decided(only), only.effect.1) {
                (Some(cost), _) => cost,
                (None, Verdict::NoDifference) => "no measurable throughput".to_owned(),
                _ => return None,
            };
            return Some(format!(
                "Syncing every commit costs {cost}{at}: {}{} with it ({safe}), {} without ({fast}).",
                only.at_best(),
                value(&only.safe),
                value(&only.fast)
            ));
        }
        let parts: Vec<String> = groups
            .iter()
            .map(|group| match (decided(group), group.effect.1) {
                (Some(cost), _) => format!("{cost} in {}", group.name),
                (None, Verdict::NoDifference) => format!("nothing measurable in {}", group.name),
                _ => format!("an undecided amount in {}", group.name),
            })
            .collect();
        // "Of the throughput" is said once.
        let repeated = " of the throughput";
        let text = list(&parts);
        let text = match text.split_once(repeated) {
            Some((first, rest)) => format!("{first}{repeated}{}", rest.replace(repeated, "")),
            None => text,
        };
        Some(format!("Syncing every commit costs {text}."))
    }

    /// ` of the throughput (95 % CI 92.1–93.9 %)`: what a group's safe variant gives up a share of.
    fn of_the_throughput(&self, group: &Group) -> String {
        let effect = &group.effect.0;
        let of = " of the throughput";
        let Some((low, high)) = effect.low.zip(effect.high).filter(|_| effect.n > 2) else {
            return of.to_owned();
        };
        let show = |percent: f64, digits: usize| format!("{:.digits$} %", percent.abs());
        let differ = |digits: &usize| show(low, *digits) != show(high, *digits);
        let Some(digits) = (1..=3).find(differ) else { return of.to_owned() };
        let range = numbers::range(&show(high, digits), &show(low, digits));
        format!("{of} ({} CI {range})", share(self.findings.confidence))
    }

    /// The groups of the study, and where they were measured.
    fn safety_groups(&self) -> Option<(Vec<Group>, String)> {
        let (metric, steps) = self.main_metric_and_steps();
        let is_own = self.findings.steps.iter().any(|step| step.own.is_some());
        if metric != metrics::THROUGHPUT || is_own || self.is_mismatched() {
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
        let is_choice = n_safe > 1 || n_unsafe > 1;
        // Both are in the order of their means: the first of each is its fastest.
        let safe = ranked.iter().position(is_safe)?;
        let fast = ranked.iter().position(is_unsafe)?;
        if !is_asked_for || fast > safe && ranked[fast].mean.value < ranked[safe].mean.value {
            return None;
        }
        let pair = (ranked[safe].variant, ranked[fast].variant);
        let effect = self.ranker.against(pair, metrics::THROUGHPUT, steps)?;
        let fast = ranked.remove(fast);
        let safe = ranked.into_iter().find(is_safe)?;
        let mut trials = self.ranker.joined.trials.iter().filter(|t| own.contains(&t.variant));
        let name = trials.find_map(|trial| Some(trial.finished()?.server.product.clone()))?;
        Some(Group { name, safe, fast, is_choice, effect })
    }

    /// The variant that the lines on safety are relative to, where there are such lines: the baseline of
    /// the fastest safe one, as in the tables, or itself.
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

    /// What each variant gives for how much safety: a line for each, the safest first.
    pub(super) fn safety_lines(&self) -> Option<Vec<String>> {
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
        let theirs = self.name(reference);
        let line = |(ranked, effect): (&Ranked, &Option<(Estimate, Verdict)>)| {
            let name = self.name(ranked.variant);
            let safety = self.safety(ranked.variant)?.words();
            let value = numbers::value(&ranked.mean);
            let against = match effect {
                _ if ranked.variant == reference => {
                    let confidence = self.findings.confidence;
                    format!(" ({})", crate::words::ci_of(&ranked.mean, confidence))
                }
                Some((relative, verdict)) => {
                    let interval = ci(relative, self.findings.confidence, style.interval(relative));
                    let effect = style.show(relative.value);
                    let remark = match verdict {
                        Verdict::NoDifference => ", no difference",
                        Verdict::Inconclusive => ", inconclusive",
                        Verdict::Better if self.is_less_durable(ranked.variant, reference) => {
                            ", faster, less durable"
                        }
                        Verdict::Better => ", better",
                        Verdict::Worse => ", worse",
                    };
                    match style {
                        EffectStyle::Ratio => {
                            format!(", {effect} the throughput of {theirs} ({interval}){remark}")
                        }
                        EffectStyle::Percent => {
                            format!(", {effect} against {theirs} ({interval}){remark}")
                        }
                    }
                }
                None => String::new(),
            };
            let of_all = if ranked.variant == reference { ", the baseline" } else { "" };
            let asked = self.asked(ranked.variant);
            Some(format!("{name}{of_all} ({asked}{safety}): {value}{against}."))
        };
        Some(ranked.iter().zip(&effects).filter_map(line).collect())
    }

    /// The settings of the study that tell a variant from others, unless its name has them:
    /// `journal_mode=wal, synchronous=full; `.
    fn asked(&self, variant: usize) -> String {
        let records = &self.ranker.joined.variants;
        let own = &records[variant].settings;
        let differs = |name: &&String| {
            records.iter().any(|other| other.settings.get(*name) != own.get(*name))
        };
        let is_named = |name: &&String| self.name(variant).contains(&format!("{name}="));
        let names = own.keys().filter(differs).filter(|name| !is_named(name));
        let asked: Vec<String> =
            names.take(SETTINGS_MOST).map(|name| format!("{name}={}", own[name])).collect();
        if asked.is_empty() { String::new() } else { format!("{}; ", asked.join(", ")) }
    }

    /// The fastest safe and the fastest other variant of a group.
    fn group_line(&self, group: &Group) -> String {
        let value = |ranked: &Ranked| numbers::value(&ranked.mean);
        let style = EffectStyle::of([&group.effect.0]);
        let interval =
            ci(&group.effect.0, self.findings.confidence, style.interval(&group.effect.0));
        format!(
            "{}: {}{} with every commit synced ({}), {} otherwise ({}): {} ({interval}).",
            group.name,
            group.at_best(),
            value(&group.safe),
            self.name(group.safe.variant),
            value(&group.fast),
            self.name(group.fast.variant),
            style.show(group.effect.0.value),
        )
    }
}
