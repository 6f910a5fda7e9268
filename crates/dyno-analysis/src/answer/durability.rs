//! The cost of safe commits: the share of the fastest variant's throughput that the safe one lacks.

use std::cmp::Ordering;

use dyno_record::CommitSafety;
use dyno_units::Question;

use super::AnswerWriter;
use super::grammar::{Said, word};
use super::ranking::Ranked;
use crate::numbers::{self, EffectStyle};
use crate::words::{count, distinct, joined, list, share, size};
use crate::{Claim, Verdict, metrics};

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
    /// `safe` against `fast`.
    claim: Claim,
}

fn in_throughput(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "faster",
        Verdict::Worse => "slower",
        other => word(other),
    }
}

/// Of losing data at a crash; none where every commit is synced.
fn risk(safety: Option<CommitSafety>) -> Option<&'static str> {
    match safety {
        Some(CommitSafety::DataAtRisk) => Some("risks corruption"),
        Some(CommitSafety::LastCommitsAtRisk) => Some("risks losing commits"),
        _ => None,
    }
}

impl AnswerWriter<'_> {
    fn safety(&self, variant: usize) -> Option<CommitSafety> {
        self.findings.variants[variant].commit_safety
    }

    pub(super) fn cost_of_safety(&self) -> Option<Said> {
        let (groups, place) = self.safety_groups()?;
        let text = self.cost_in_groups(&groups, &place)?;
        Some(Said::of(groups.into_iter().map(|group| group.claim), text))
    }

    fn cost_in_groups(&self, groups: &[Group], place: &str) -> Option<String> {
        let cut = |group: &Group| {
            format!("{}{}", size(group.claim.relative.value), self.interval_of(group))
        };
        let less = format!("less than {}", share(self.findings.threshold));
        if let [only] = groups {
            let (safe, fast) = (self.name(only.safe.variant), self.name(only.fast.variant));
            let risk = risk(self.safety(only.fast.variant));
            let risk = risk.map_or(String::new(), |risk| format!(" (which {risk})"));
            let both = format!(
                "{} with {safe}, {} with {fast}{risk}",
                self.value_named(metrics::THROUGHPUT, &only.safe.mean),
                numbers::value(&only.fast.mean)
            );
            let relative = &only.claim.relative;
            let style = EffectStyle::of([relative]);
            let ends = numbers::bounds(relative).filter(|(low, high)| {
                let is_open = *low < 0.0 && *high > 0.0 && !numbers::is_too_wide(*low, *high);
                is_open && style == EffectStyle::Percent
            });
            return Some(match (only.claim.verdict, ends) {
                (Verdict::Worse, _) => {
                    format!(
                        "Syncing every commit cuts throughput by {} {place}: {both}.",
                        cut(only)
                    )
                }
                (Verdict::NoDifference, _) => {
                    format!("Syncing every commit costs {less} of throughput {place}: {both}.")
                }
                (Verdict::Better, _) => return None,
                (Verdict::Inconclusive, _) if relative.n < 2 => format!(
                    "One repetition cannot show whether syncing every commit costs throughput {place}: {both}."
                ),
                (Verdict::Inconclusive, Some((low, high))) => format!(
                    "Undecided whether syncing every commit costs throughput {place}: {safe} may be {} \
                     slower or {} faster than {fast}{risk}.",
                    size(low),
                    size(high)
                ),
                (Verdict::Inconclusive, None) => format!(
                    "Undecided whether syncing every commit costs throughput {place}: {both}."
                ),
            });
        }
        let (mut cuts, mut free, mut open) = (Vec::new(), Vec::new(), Vec::new());
        for group in groups {
            match group.claim.verdict {
                Verdict::Worse => cuts.push(format!("by {} in {}", cut(group), group.name)),
                Verdict::NoDifference => free.push(&group.name),
                _ => open.push(&group.name),
            }
        }
        let open_in = list(&open);
        if cuts.is_empty() && free.is_empty() {
            return Some(format!(
                "Undecided how much throughput syncing every commit costs in {open_in}."
            ));
        }
        let cuts = (!cuts.is_empty()).then(|| format!("cuts throughput {}", list(&cuts)));
        let free =
            (!free.is_empty()).then(|| format!("costs {less} of throughput in {}", list(&free)));
        let open = match open.is_empty() {
            true => String::new(),
            false => format!("; undecided in {open_in}"),
        };
        Some(format!("Syncing every commit {}{open}.", list(cuts.into_iter().chain(free))))
    }

    /// The headline's pair, if it was chosen, and that the lines below compare others, if they do.
    pub(super) fn safety_note(&self) -> Option<String> {
        let (groups, _) = self.safety_groups()?;
        let [only] = groups.as_slice() else { return None };
        let reference = self.reference(only);
        let is_below = [only.safe.variant, only.fast.variant].contains(&reference);
        let (safe, fast) = (self.name(only.safe.variant), self.name(only.fast.variant));
        let pair = match only.n_pairs {
            1 if is_below => return None,
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
        let effect = &group.claim.relative;
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
            (&record.product, &record.workload, &record.options)
        };
        let mut keys: Vec<_> = (0..records.len()).map(key).collect();
        keys.dedup();
        let groups = keys.into_iter().filter_map(|one| {
            let own: Vec<usize> = (0..records.len()).filter(|v| key(*v) == one).collect();
            self.safety_group(&own, &steps)
        });
        let mut groups: Vec<Group> = groups.collect();
        // Groups of one product, which differ in their workloads, are told apart by their variants.
        let names: Vec<String> = groups.iter().map(|group| group.name.clone()).collect();
        for group in &mut groups {
            if names.iter().filter(|name| **name == group.name).count() > 1 {
                group.name = self.name(group.safe.variant).to_owned();
            }
        }
        let is_few = (1..=GROUPS_MOST).contains(&groups.len());
        is_few.then(|| (groups, self.place(&steps)))
    }

    /// `at 4 clients`, `on average over all 3 loads`.
    fn place(&self, steps: &[usize]) -> String {
        match steps {
            [only] => self.at(*only),
            _ => format!("on average over {}", self.all_steps(steps.len())),
        }
    }

    fn safety_group(&self, own: &[usize], steps: &[usize]) -> Option<Group> {
        let records = &self.ranker.joined.variants;
        let names = self.ranker.joined.product_facts(*own.first()?).durability_settings;
        let asked = distinct(own.iter().map(|variant| -> Vec<Option<&String>> {
            names.iter().map(|name| records[*variant].settings.get(name)).collect()
        }));
        let mut ranked = self.ranker.rank(metrics::THROUGHPUT, steps);
        ranked.retain(|ranked| own.contains(&ranked.variant));
        // Sorted by mean, so the first of each is the fastest.
        ranked.retain(|ranked| self.safety(ranked.variant).is_some());
        let is_safe = |r: &Ranked| self.safety(r.variant) == Some(CommitSafety::EveryCommit);
        let (mut safe, mut fast): (Vec<Ranked>, Vec<Ranked>) =
            ranked.into_iter().partition(is_safe);
        let n_pairs = safe.len() * fast.len();
        if n_pairs == 0 || asked.len() < 2 {
            return None;
        }
        let (safe, fast) = (safe.swap_remove(0), fast.swap_remove(0));
        if fast.mean.value < safe.mean.value {
            return None;
        }
        let pair = (safe.variant, fast.variant);
        let claim = self.ranker.against_one_of(n_pairs, pair, metrics::THROUGHPUT, steps)?;
        let mut trials = self.ranker.joined.trials.iter().filter(|t| own.contains(&t.variant));
        let name = trials.find_map(|trial| Some(trial.finished()?.server.product.clone()))?;
        Some(Group { name, safe, fast, n_pairs, variants: own.to_vec(), claim })
    }

    /// Reference of the lines on safety, if any: the fastest safe variant's baseline, or itself.
    pub(super) fn safe_one(&self) -> Option<usize> {
        if self.compared_variants().is_empty() || self.has_own_steps() {
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
        let reference = self.reference(group);
        let mut ranked = self.ranked_by_safety(reference);
        ranked.sort_by_key(|(r, _)| (self.safety(r.variant), r.variant != reference));
        let others = ranked.iter().filter(|(r, _)| r.variant != reference);
        let style =
            EffectStyle::of(others.filter_map(|(_, claim)| Some(&claim.as_ref()?.relative)));
        let line = |(ranked, claim): &(Ranked, Option<Claim>)| {
            let name = self.name(ranked.variant);
            let safety = self.safety(ranked.variant);
            let against = match claim {
                _ if ranked.variant == reference => format!(" ({})", self.ci_of(&ranked.mean)),
                Some(Claim { relative, verdict, .. }) => {
                    let durability = match self.safety(reference).cmp(&safety) {
                        Ordering::Less => "less",
                        Ordering::Equal => "equally",
                        Ordering::Greater => "more",
                    };
                    let vs = if style == EffectStyle::Percent { " vs." } else { "" };
                    format!(
                        ", {}{vs} the baseline ({}): {}, {durability} durable",
                        style.show(relative.value),
                        self.effect_ci(relative, style),
                        in_throughput(*verdict)
                    )
                }
                None => String::new(),
            };
            let of_all = if ranked.variant == reference { ", the baseline" } else { "" };
            let (asked, safety) = (self.asked(ranked.variant), safety?.words());
            let value = self.value_named(metrics::THROUGHPUT, &ranked.mean);
            Some(format!("{name}{of_all} ({asked}{safety}): {value}{against}."))
        };
        let mut lines: Vec<String> = ranked.iter().filter_map(line).collect();
        if lines.len() > room && room > 0 {
            let n_more = lines.drain(room - 1..).count();
            lines.push(format!("{} in the table below.", count(n_more as u64, "more variant")));
        }
        Some(lines)
    }

    /// All variants with a rank, each against `other`, by throughput.
    fn ranked_by_safety(&self, other: usize) -> Vec<(Ranked, Option<Claim>)> {
        let (metric, steps) = self.main_metric_and_steps();
        let against = |ranked: Ranked| {
            let claim = self.ranker.against((ranked.variant, other), metric, &steps);
            (ranked, claim)
        };
        self.ranker.rank(metric, &steps).into_iter().map(against).collect()
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
        let names = own.keys().filter(differs).filter(|name| !is_named(name)).take(SETTINGS_MOST);
        let asked = joined(names.map(|name| format!("{name}={}", own[name])), ", ");
        if asked.is_empty() { asked } else { asked + "; " }
    }

    fn group_line(&self, group: &Group) -> String {
        let safe = group.safe.variant;
        let mut others = self.ranked_by_safety(safe);
        others.retain(|(r, _)| group.variants.contains(&r.variant) && r.variant != safe);
        others.sort_by_key(|(r, _)| self.safety(r.variant));
        let style =
            EffectStyle::of(others.iter().filter_map(|(_, claim)| Some(&claim.as_ref()?.relative)));
        let of = |(other, claim): &(Ranked, Option<Claim>)| {
            let Claim { relative, verdict, .. } = claim.as_ref()?;
            let verdict = match verdict.is_decided() {
                true => String::new(),
                false => format!(", {}", word(*verdict)),
            };
            let risk = risk(self.safety(other.variant));
            let risk = risk.map_or(String::new(), |risk| format!("; {risk}"));
            let (shown, ci) = (style.show(relative.value), self.effect_ci(relative, style));
            Some(format!("{shown} with {} ({ci}{verdict}{risk})", self.name(other.variant)))
        };
        format!(
            "{}: {} with {}, which syncs every commit; {}.",
            group.name,
            self.value_named(metrics::THROUGHPUT, &group.safe.mean),
            self.name(safe),
            joined(others.iter().filter_map(of), "; "),
        )
    }
}
