//! Every comparison in words: a sentence for each variant, with what was decided and what was not.

use super::best::is_duration;
use super::{AnswerWriter, shorten};
use crate::numbers::EffectStyle;
use crate::statistics::REPETITIONS_CAP;
use crate::words::{capital, ci, list, loads, share};
use crate::{Comparison, ConcurrencyGroup, GroupComparison, MetricId, Verdict, metrics};

const STEPS_NAMED: usize = 3;

/// In the order of sentences.
pub(super) const VERDICTS: [Verdict; 4] =
    [Verdict::Better, Verdict::Worse, Verdict::NoDifference, Verdict::Inconclusive];

impl AnswerWriter<'_> {
    /// A sentence for each variant, and one on concurrency; decided ones first if too many.
    pub(super) fn comparisons_in_words(&self) -> Vec<String> {
        let compared = self.compared_variants();
        let mut sentences: Vec<(bool, String)> = Vec::new();
        for &variant in &compared {
            let is_decided = self
                .main_comparisons(variant)
                .iter()
                .any(|c| matches!(c.verdict, Verdict::Better | Verdict::Worse));
            let sentence = self.variant_sentence(variant);
            sentences.extend(sentence.map(|sentence| (is_decided, sentence)));
        }
        if sentences.len() > super::DETAILS_MOST {
            sentences.sort_by_key(|(is_decided, _)| !is_decided);
        }
        let mut details: Vec<String> = sentences.into_iter().map(|(_, text)| text).collect();
        for &variant in &compared {
            details.extend(self.groups_sentence(variant));
        }
        shorten(&mut details, "sentence");
        details
    }

    fn variant_sentence(&self, variant: usize) -> Option<String> {
        let mut parts = Vec::new();
        let is_one_step = self.findings.steps.len() == 1;
        let mut place: Option<&Comparison> = None;
        let is_decided = |c: &&Comparison| matches!(c.verdict, Verdict::Better | Verdict::Worse);
        let declared = self.findings.metrics.declared().map(|metric| metric.id);
        let if_decided: Vec<MetricId> =
            std::iter::once(metrics::SERVER_CPU).chain(declared).collect();
        let always: Vec<MetricId> = self.always_said().collect();
        let others = if_decided.into_iter().filter(|metric| !always.contains(metric));
        for metric in always.iter().copied().chain(others) {
            let mut comparisons = self.comparisons_of(variant, metric);
            if !always.contains(&metric) {
                comparisons.retain(is_decided);
            }
            let Some(&first) = comparisons.first() else { continue };
            let text = match comparisons.as_slice() {
                [only] if self.findings.steps.len() == 1 => self.one(only),
                several => {
                    let before = place.map_or(first.relative.n, |place| place.relative.n);
                    format!("{}{}", self.by_verdict(several), self.changed_n(several, before))
                }
            };
            place = place.or(Some(first));
            parts.push(match is_one_step {
                true => format!("{} {text}", self.title(metric)),
                false => capital(&format!("{}: {text}", self.title(metric))),
            });
        }
        let first = place?;
        let (at, text) = match is_one_step {
            true => (format!(" {}:", self.at(first.step)), parts.join("; ")),
            false => {
                let n = first.relative.n;
                (format!(" ({}).", self.cis_and_n(n, n)), parts.join(". "))
            }
        };
        Some(format!(
            "{} vs. {}{at} {text}.",
            self.name_and_durability(variant, first.baseline),
            self.name(first.baseline),
        ))
    }

    /// Adds ` (less durable)` if it is known to be.
    fn name_and_durability(&self, variant: usize, baseline: usize) -> String {
        let note = if self.is_less_durable(variant, baseline) { " (less durable)" } else { "" };
        format!("{}{note}", self.name(variant))
    }

    /// For a less durable variant the word is not "better", but the direction of the difference.
    pub(super) fn verdict_of(&self, c: &Comparison) -> &'static str {
        if c.verdict != Verdict::Better || !self.is_less_durable(c.variant, c.baseline) {
            return word(c.verdict);
        }
        let is_more = c.relative.value > 0.0;
        match (is_duration(self.findings.metrics.get(c.metric)), is_more) {
            (true, true) => "longer",
            (true, false) => "shorter",
            (false, true) => "higher",
            (false, false) => "lower",
        }
    }

    /// At the only step: `+9.1 % (95 % CI …, n = 3), better`.
    fn one(&self, c: &Comparison) -> String {
        if is_nothing(c) {
            return format!("nothing committed in any of {} trials", c.relative.n);
        }
        let style = self.findings.effect_style(c.metric);
        let interval = match style.interval(&c.relative) {
            None if c.relative.n >= 2 => {
                format!("n = {}, no CI because some trial committed nothing", c.relative.n)
            }
            interval => ci(&c.relative, self.findings.confidence, interval),
        };
        let verdict = match c.verdict {
            Verdict::Inconclusive => format!("inconclusive{}", self.why_undecided(c)),
            _ => self.verdict_of(c).to_owned(),
        };
        format!("{} ({interval}), {verdict}", style.show(c.relative.value))
    }

    /// `better at 4 clients (+49.5 %, +47.1 to +52.0 %), worse at 16 clients (−40.3 %, …)`.
    fn by_verdict(&self, comparisons: &[&Comparison]) -> String {
        let style = self.style_of(comparisons);
        let mut parts = Vec::new();
        for verdict in VERDICTS {
            let group: Vec<&Comparison> =
                comparisons.iter().filter(|c| c.verdict == verdict).copied().collect();
            if !group.is_empty() {
                parts.push(self.same_verdict(&group, comparisons.len(), style));
            }
        }
        let chance = self.chance_among(comparisons);
        let chance = if chance.is_empty() { chance } else { format!(" ({chance})") };
        let more =
            repetitions_needed(comparisons).map_or(String::new(), |text| format!("; {text}"));
        format!("{}{chance}{more}", parts.join("; "))
    }

    fn chance_among(&self, comparisons: &[&Comparison]) -> String {
        self.chances_among(comparisons).map_or(String::new(), |(places, n_family)| {
            format!(
                "significant {places} if tested alone, but not after correcting for {n_family} \
                 comparisons"
            )
        })
    }

    /// Loads whose intervals exclude zero without a verdict, and the size of the family.
    pub(super) fn chances_among(&self, comparisons: &[&Comparison]) -> Option<(String, usize)> {
        let is_such = |c: &&&Comparison| c.verdict == Verdict::Inconclusive && excludes_zero(c);
        let such: Vec<&&Comparison> = comparisons.iter().filter(is_such).collect();
        let places = match such.as_slice() {
            [] => return None,
            [only] => self.at(only.step),
            several => {
                let steps: Vec<String> = several.iter().map(|c| self.step(c.step)).collect();
                format!("at {}", loads(&steps))
            }
        };
        Some((places, self.family_size(such[0].metric)))
    }

    /// ` (not significant after correcting for 11 comparisons)`
    pub(super) fn if_only_corrected(&self, c: &Comparison) -> String {
        let n_family = self.family_size(c.metric);
        match c.verdict == Verdict::Inconclusive && excludes_zero(c) && n_family > 1 {
            true => format!(" (not significant after correcting for {n_family} comparisons)"),
            false => String::new(),
        }
    }

    fn family_size(&self, metric: MetricId) -> usize {
        self.findings.comparisons.iter().filter(|c| c.metric == metric).count()
    }

    fn same_verdict(&self, group: &[&Comparison], n_all: usize, style: EffectStyle) -> String {
        let noun = self.findings.step_noun();
        let verdict = self.verdict_of(group[0]);
        let n = group.len();
        if matches!(group[0].verdict, Verdict::NoDifference | Verdict::Inconclusive) {
            let steps: Vec<String> = group.iter().map(|c| self.step(c.step)).collect();
            return match n {
                2 if n == n_all => format!("{verdict} at either {noun}"),
                n if n == n_all && n > 1 => format!("{verdict} at any of the {n} {noun}s"),
                n if n > STEPS_NAMED => format!("{verdict} at {n} of {n_all} {noun}s"),
                _ => format!("{verdict} at {}", loads(&steps)),
            };
        }
        let by_effect =
            |a: &&&Comparison, b: &&&Comparison| a.relative.value.total_cmp(&b.relative.value);
        let value = |c: &Comparison| {
            let interval = style.interval(&c.relative);
            let interval = interval.map_or(String::new(), |text| format!(", {text}"));
            format!("{}{interval}", style.show(c.relative.value))
        };
        let at = |c: &Comparison| format!("{} ({})", self.step(c.step), value(c));
        let ends = group.iter().min_by(by_effect).zip(group.iter().max_by(by_effect));
        if let Some((least, most)) = ends.filter(|_| n > STEPS_NAMED) {
            let steps =
                if n == n_all { self.all_steps(n) } else { format!("{n} of {n_all} {noun}s") };
            let end = |c: &Comparison| {
                let interval = style.interval(&c.relative);
                let interval = interval.map_or(String::new(), |text| format!(", {text}"));
                format!("{} ({}{interval})", style.show(c.relative.value), self.step(c.step))
            };
            return format!("{verdict} at {steps}: between {} and {}", end(least), end(most));
        }
        let step = |c: &&Comparison| match is_nothing(c) {
            true => format!("{} (nothing committed)", self.step(c.step)),
            false => at(c),
        };
        format!("{verdict} at {}", list(&group.iter().map(step).collect::<Vec<_>>()))
    }

    fn groups_sentence(&self, variant: usize) -> Option<String> {
        let groups: Vec<&GroupComparison> =
            self.findings.concurrency.iter().filter(|g| g.variant == variant).collect();
        let first = groups.first()?;
        let style = EffectStyle::of(groups.iter().map(|group| &group.relative));
        let parts: Vec<String> = groups
            .iter()
            .map(|group| {
                let loads = match group.group {
                    ConcurrencyGroup::Low => "up to one client per CPU",
                    ConcurrencyGroup::High => "more clients than CPUs",
                };
                let interval = style.interval(&group.relative);
                let interval = interval.map_or(String::new(), |text| format!(" ({text})"));
                let effect = style.show(group.relative.value);
                let verdict = match self.is_less_durable(group.variant, group.baseline) {
                    true if group.verdict == Verdict::Better => "higher",
                    _ => word(group.verdict),
                };
                format!("{loads} {effect}{interval}, {verdict}")
            })
            .collect();
        Some(format!(
            "{} vs. {} by concurrency, throughput as the geometric mean over load levels ({}): {}.",
            self.name_and_durability(variant, first.baseline),
            self.name(first.baseline),
            self.cis_and_n(first.relative.n, first.relative.n),
            parts.join("; "),
        ))
    }

    pub(super) fn unpaired(&self) -> Option<String> {
        let is_apart = |c: &Comparison| !c.paired && c.relative.n >= 2;
        self.findings.comparisons.iter().any(is_apart).then(|| {
            "Some comparisons are not paired by block, because their trials were not interleaved or \
             too few blocks contain both variants: in these comparisons, drift of the machine between \
             the variants' trials looks like an effect."
                .to_owned()
        })
    }

    pub(super) fn repeated_looks(&self) -> Option<String> {
        let facts = self.findings.repeated_looks?;
        Some(format!(
            "There were {} opportunities to look at the results, because trials were added or runs joined: CIs and \
             verdicts use a confidence of {} instead of {}, so that repeated looks do not raise the \
             false-positive rate.",
            facts.looks,
            share(facts.confidence),
            share(self.findings.confidence),
        ))
    }

    /// Which verdicts the study was made for, where there are others.
    pub(super) fn exploratory(&self) -> Option<String> {
        if !self.findings.questions.iter().any(|question| super::compares(*question)) {
            return None;
        }
        let is_main = |c: &&Comparison| c.metric == self.main_metric(c.step);
        let mut mains: Vec<&str> = Vec::new();
        for c in self.findings.comparisons.iter().filter(is_main) {
            let title = self.title(c.metric);
            if !mains.contains(&title) {
                mains.push(title);
            }
        }
        let has_others = self.findings.comparisons.iter().any(|c| !is_main(&c));
        (has_others && !mains.is_empty()).then(|| {
            format!(
                "Only verdicts on {} answer the question that was asked; those on other metrics are \
                 exploratory.",
                list(&mains)
            )
        })
    }

    fn why_undecided(&self, c: &Comparison) -> String {
        let n_family = self.family_size(c.metric);
        let chance = if excludes_zero(c) && n_family > 1 {
            format!(
                " (significant if tested alone, but not after correcting for {n_family} comparisons)"
            )
        } else {
            String::new()
        };
        let more = repetitions_needed(&[c]).map_or(String::new(), |text| format!("; {text}"));
        format!("{chance}{more}")
    }

    /// ` (n = 2 to 3)` if different from before.
    fn changed_n(&self, comparisons: &[&Comparison], before: u32) -> String {
        if comparisons.iter().all(|c| c.relative.n == before) {
            return String::new();
        }
        let ns = comparisons.iter().map(|c| c.relative.n);
        format!(" ({})", self.cis_and_n(ns.clone().min().unwrap_or(0), ns.max().unwrap_or(0)))
    }

    /// `95 % CIs, n = 3`, or `n = 2 to 3`.
    pub(super) fn cis_and_n(&self, least: u32, most: u32) -> String {
        let confidence = share(self.findings.confidence);
        match (least, most) {
            (_, 0 | 1) => format!("n = {most}, no CI"),
            (2, 2) => "two repetitions".to_owned(),
            (least, most) if least == most => format!("{confidence} CIs, n = {least}"),
            (least, most) => format!("{confidence} CIs, n = {least} to {most}"),
        }
    }
}

/// Nothing committed, where the baseline always did.
pub(super) fn is_nothing(c: &Comparison) -> bool {
    c.metric == metrics::THROUGHPUT && c.verdict == Verdict::Worse && c.relative.max <= -100.0
}

fn excludes_zero(c: &Comparison) -> bool {
    let bounds = c.relative.low.zip(c.relative.high);
    bounds.is_some_and(|(low, high)| low > 0.0 || high < 0.0)
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::NoDifference => "no difference",
        Verdict::Inconclusive => "inconclusive",
    }
}

/// More would be a guess from too little.
const REPETITIONS_GUESSED: u32 = 50;

pub(super) const MORE_REPETITIONS: &str = "Raise `repetitions` to at least 3";

/// `None` if all is decided.
pub(super) fn repetitions_needed(comparisons: &[&Comparison]) -> Option<String> {
    let open = comparisons.iter().filter(|c| c.verdict == Verdict::Inconclusive);
    let most = open.clone().filter_map(|c| c.repetitions_needed).max();
    let is_single = open.clone().count() > 0 && open.clone().all(|c| c.relative.n < 2);
    match most {
        Some(n) if n >= REPETITIONS_CAP => {
            Some(format!("even {n} repetitions in total might not be enough to decide"))
        }
        Some(n) if n > REPETITIONS_GUESSED => Some(format!(
            "with as much noise as here, more than {REPETITIONS_GUESSED} repetitions in total would be \
             needed to decide"
        )),
        Some(n) => Some(format!("about {n} repetitions in total would be needed to decide")),
        None if is_single => Some("raise `repetitions` to at least 3".to_owned()),
        None => None,
    }
}
