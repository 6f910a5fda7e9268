//! Sentences about comparisons: the headline of two variants, and one detail for each variant.

use super::{Teller, shorten};
use crate::statistics::REPETITIONS_CAP;
use crate::words::{common_text, effect, effect_text, list, percent, share, short_range, spoken};
use crate::{Comparison, ConcurrencyGroup, GroupComparison, Metric, Verdict};

/// The metrics that are always told, and those told where something was decided.
pub(super) const ALWAYS_TOLD: [Metric; 5] = [
    Metric::RateAtLimit,
    Metric::ClientsAtLimit,
    Metric::Throughput,
    Metric::StepTime,
    Metric::ResponseP95,
];
const TOLD_IF_DECIDED: [Metric; 1] = [Metric::ServerCpuPerTransaction];

/// As many steps of one verdict are told one by one; more are told by their extremes.
const STEPS_NAMED: usize = 3;

/// Verdicts in the order in which they are told.
pub(super) const VERDICTS: [Verdict; 4] =
    [Verdict::Better, Verdict::Worse, Verdict::NoDifference, Verdict::Inconclusive];

impl Teller<'_> {
    // Headlines.

    /// The headline of a study with one compared variant.
    pub(super) fn one_against_its_baseline(&self, variant: usize) -> String {
        match self.main_comparisons(variant).as_slice() {
            [] => format!("{} cannot be compared with its baseline.", self.name(variant)),
            [only] => self.headline_of_one(only),
            several => format!(
                "{} against {}: {} {} ({}).",
                self.name(variant),
                self.name(several[0].baseline),
                several[0].metric.name(),
                self.by_verdict(several, false),
                self.n_of(several),
            ),
        }
    }

    /// The comparisons of a variant in the first main metric that it has any of.
    pub(super) fn main_comparisons(&self, variant: usize) -> Vec<&Comparison> {
        for metric in ALWAYS_TOLD {
            let mut comparisons = self.comparisons_of(variant, metric);
            comparisons.retain(|c| self.main_metric(c.step) == metric);
            if !comparisons.is_empty() {
                return comparisons;
            }
        }
        Vec::new()
    }

    fn headline_of_one(&self, c: &Comparison) -> String {
        if is_nothing(c) {
            return format!("{}: worse.", self.nothing(c));
        }
        let (ours, theirs) = (self.name(c.variant), self.name(c.baseline));
        let (told, bounds) = (effect(&c.relative), self.bounds_of(c));
        match c.verdict {
            Verdict::Better | Verdict::Worse => {
                format!("{} ({bounds}): {}.", self.claim(c), self.both_values(c))
            }
            Verdict::NoDifference => format!(
                "No difference that matters between {ours} and {theirs}: {} {told} at {} \
                 ({bounds}; threshold {}).",
                c.metric.name(),
                self.step(c.step),
                share(self.findings.threshold),
            ),
            Verdict::Inconclusive => format!(
                "The data do not decide between {ours} and {theirs}: {} {told} at {} ({bounds}){}.",
                c.metric.name(),
                self.step(c.step),
                self.why_undecided(c),
            ),
        }
    }

    /// `b is 2.31 × as fast as a`, `b is 10.3 % slower than a`.
    fn claim(&self, c: &Comparison) -> String {
        let (ours, theirs) = (self.name(c.variant), self.name(c.baseline));
        let told = effect(&c.relative);
        let size = percent(c.relative.value.abs());
        let size = size.trim_start_matches('+');
        let is_more = c.relative.value > 0.0;
        match (c.metric, c.relative.is_told_as_ratio()) {
            (Metric::Throughput, true) => format!("{ours} is {told} as fast as {theirs}"),
            (Metric::Throughput, false) => {
                let word = if is_more { "faster" } else { "slower" };
                format!("{ours} is {size} {word} than {theirs}")
            }
            (metric, true) => {
                format!("The {} of {ours} is {told} that of {theirs}", metric.name())
            }
            (metric, false) => {
                let word = match (metric.more_is_better(), is_more) {
                    (true, true) => "higher",
                    (true, false) => "lower",
                    (false, true) => "longer",
                    (false, false) => "shorter",
                };
                format!("The {} of {ours} is {size} {word} than that of {theirs}", metric.name())
            }
        }
    }

    /// `1,501 (1,480 … 1,522) against 1,001 (982 … 1,021) transactions/s at 4 clients`.
    fn both_values(&self, c: &Comparison) -> String {
        let unit = match c.metric {
            Metric::Throughput | Metric::RateAtLimit => " transactions/s",
            _ => "",
        };
        let bare = |value: f64| spoken(c.metric, value).trim_end_matches(unit).to_owned();
        let value = |variant: usize| {
            let estimate = self.cell(variant, c.step)?.metrics.get(&c.metric)?;
            let range = short_range(estimate, bare).unwrap_or_else(|| "no bounds".to_owned());
            Some(format!("{} ({range})", bare(estimate.value)))
        };
        let at = format!("at {}", self.step(c.step));
        match (value(c.variant), value(c.baseline)) {
            (Some(ours), Some(theirs)) => format!("{ours} against {theirs}{unit} {at}"),
            _ => at,
        }
    }

    // Details.

    /// One sentence for each variant, and one on low and high concurrency; the decided ones first
    /// where there are too many.
    pub(super) fn comparisons_told(&self) -> Vec<String> {
        let compared = self.compared_variants();
        let is_told_above = compared.len() == 1 && self.findings.steps.len() == 1;
        let mut told: Vec<(bool, String)> = Vec::new();
        for &variant in &compared {
            let is_decided = self
                .main_comparisons(variant)
                .iter()
                .any(|c| matches!(c.verdict, Verdict::Better | Verdict::Worse));
            let sentence = self.variant_sentence(variant, is_told_above);
            told.extend(sentence.map(|sentence| (is_decided, sentence)));
        }
        if told.len() > super::DETAILS_MOST {
            told.sort_by_key(|(is_decided, _)| !is_decided);
        }
        let mut details: Vec<String> = told.into_iter().map(|(_, sentence)| sentence).collect();
        for &variant in &compared {
            if details.len() < super::DETAILS_MOST {
                details.extend(self.groups_sentence(variant));
            }
        }
        shorten(&mut details, "variant");
        details
    }

    /// What is known of one variant: every metric that is told, in one sentence.
    fn variant_sentence(&self, variant: usize, is_told_above: bool) -> Option<String> {
        let mut parts = Vec::new();
        let mut place: Option<&Comparison> = None;
        let is_decided = |c: &&Comparison| matches!(c.verdict, Verdict::Better | Verdict::Worse);
        for metric in ALWAYS_TOLD.into_iter().chain(TOLD_IF_DECIDED) {
            let mut comparisons = self.comparisons_of(variant, metric);
            if TOLD_IF_DECIDED.contains(&metric) {
                comparisons.retain(is_decided);
            }
            let is_headline = |c: &&Comparison| is_told_above && self.main_metric(c.step) == metric;
            comparisons.retain(|c| !is_headline(c));
            let Some(&first) = comparisons.first() else { continue };
            let told = match comparisons.as_slice() {
                [only] if self.findings.steps.len() == 1 => self.one(only, place),
                several => {
                    let before = place.map_or(first.relative.n, |place| place.relative.n);
                    format!("{}{}", self.by_verdict(several, true), self.changed_n(several, before))
                }
            };
            place = place.or(Some(first));
            parts.push(format!("{} {told}", metric.name()));
        }
        let first = place?;
        let at = match self.findings.steps.len() {
            1 => format!(" at {}", self.step(first.step)),
            _ => format!(" ({})", self.n_told(first.relative.n, first.relative.n)),
        };
        Some(format!(
            "{} against {}{at}: {}.",
            self.name(variant),
            self.name(first.baseline),
            parts.join("; "),
        ))
    }

    /// One comparison at the only step: `+9.1 % (95 % bounds …, n = 3), better`. Confidence and
    /// repetitions are told once, with the first one.
    fn one(&self, c: &Comparison, told_before: Option<&Comparison>) -> String {
        if is_nothing(c) {
            return format!("none committed in any of {} repetitions, worse", c.relative.n);
        }
        let is_same = told_before.is_some_and(|before| before.relative.n == c.relative.n);
        let bounds = match short_range(&c.relative, effect_text(&c.relative)) {
            Some(bounds) if is_same => bounds,
            _ => self.bounds_of(c),
        };
        format!("{} ({bounds}), {}", effect(&c.relative), self.verdict_told(c))
    }

    fn verdict_told(&self, c: &Comparison) -> String {
        match c.verdict {
            Verdict::Inconclusive => format!("inconclusive{}", self.why_undecided(c)),
            other => long_word(other).to_owned(),
        }
    }

    /// Comparisons of one variant in one metric by verdict: `better at 4 clients (+49.5 %: +47.1 % …
    /// +52 %), worse at 16 clients (−40.3 %: …)`. In full, each step is told where few share a verdict.
    pub(super) fn by_verdict(&self, comparisons: &[&Comparison], in_full: bool) -> String {
        let text = common_text(comparisons.iter().map(|c| &c.relative));
        let mut parts = Vec::new();
        for verdict in VERDICTS {
            let group: Vec<&Comparison> =
                comparisons.iter().filter(|c| c.verdict == verdict).copied().collect();
            if !group.is_empty() {
                parts.push(self.same_verdict(&group, comparisons.len(), in_full, text));
            }
        }
        let chance = if in_full { self.chance_among(comparisons) } else { String::new() };
        let more = comparisons.iter().filter_map(|c| c.repetitions_needed).max();
        let is_single = comparisons.iter().all(|c| c.relative.n < 2);
        let more = match more {
            Some(n) => format!("; {}", would_decide(n)),
            None if is_single => format!("; {NO_SPREAD}"),
            None => String::new(),
        };
        format!("{}{chance}{more}", list(&parts))
    }

    /// Why bounds that exclude zero are no verdict, where there are such.
    fn chance_among(&self, comparisons: &[&Comparison]) -> String {
        let is_such = |c: &&&Comparison| c.verdict == Verdict::Inconclusive && excludes_zero(c);
        let steps: Vec<String> =
            comparisons.iter().filter(is_such).map(|c| self.step(c.step)).collect();
        match comparisons.first() {
            Some(first) if !steps.is_empty() => format!(
                " (at {} the bounds exclude zero, but among {} comparisons one such may be chance)",
                list(&steps),
                self.family_size(first.metric),
            ),
            _ => String::new(),
        }
    }

    fn family_size(&self, metric: Metric) -> usize {
        self.findings.comparisons.iter().filter(|c| c.metric == metric).count()
    }

    /// Comparisons that share their verdict.
    fn same_verdict(
        &self,
        group: &[&Comparison],
        n_all: usize,
        in_full: bool,
        text: fn(f64) -> String,
    ) -> String {
        let word = short_word(group[0].verdict);
        if matches!(group[0].verdict, Verdict::NoDifference | Verdict::Inconclusive) {
            let steps: Vec<String> = group.iter().map(|c| self.step(c.step)).collect();
            return match group.len() {
                n if n == n_all && n > 1 => format!("{word} at {}", all_steps(n)),
                n if n > STEPS_NAMED => format!("{word} at {n} of {n_all} steps"),
                _ => format!("{word} at {}", list(&steps)),
            };
        }
        let by_effect =
            |a: &&&Comparison, b: &&&Comparison| a.relative.value.total_cmp(&b.relative.value);
        let at = |c: &Comparison| {
            let bounds = short_range(&c.relative, text);
            let bounds = bounds.map_or(String::new(), |bounds| format!(" ({bounds})"));
            format!("{}{bounds} at {}", text(c.relative.value), self.step(c.step))
        };
        let least = group.iter().min_by(by_effect).map_or_else(String::new, |c| at(c));
        let most = group.iter().max_by(by_effect).map_or_else(String::new, |c| at(c));
        let n = group.len();
        if n > STEPS_NAMED || (n == n_all && n > 1 && !in_full) {
            let where_ = if n == n_all { all_steps(n) } else { format!("{n} of {n_all} steps") };
            return format!("{word} at {where_}, from {least} to {most}");
        }
        let told: Vec<String> = group
            .iter()
            .map(|c| match short_range(&c.relative, text) {
                _ if is_nothing(c) => format!("{} (nothing committed)", self.step(c.step)),
                Some(bounds) => {
                    format!("{} ({}: {bounds})", self.step(c.step), text(c.relative.value))
                }
                None => format!("{} ({})", self.step(c.step), text(c.relative.value)),
            })
            .collect();
        format!("{word} at {}", list(&told))
    }

    /// A variant over all steps of low, and of high, concurrency.
    fn groups_sentence(&self, variant: usize) -> Option<String> {
        let groups: Vec<&GroupComparison> =
            self.findings.concurrency.iter().filter(|g| g.variant == variant).collect();
        let first = groups.first()?;
        let text = common_text(groups.iter().map(|group| &group.relative));
        let told: Vec<String> = groups
            .iter()
            .map(|group| {
                let steps = match group.group {
                    ConcurrencyGroup::Low => "no more clients than CPUs",
                    ConcurrencyGroup::High => "more clients than CPUs",
                };
                let bounds = short_range(&group.relative, text)
                    .map_or(String::new(), |bounds| format!(" ({bounds})"));
                let told = text(group.relative.value);
                format!("{steps} {told}{bounds}, {}", long_word(group.verdict))
            })
            .collect();
        Some(format!(
            "{} against {} by concurrency, throughput as the geometric mean over steps ({}): {}.",
            self.name(variant),
            self.name(first.baseline),
            self.n_told(first.relative.n, first.relative.n),
            told.join("; "),
        ))
    }

    pub(super) fn unpaired(&self) -> Option<String> {
        let is_apart = |c: &Comparison| !c.paired && c.relative.n >= 2;
        self.findings.comparisons.iter().any(is_apart).then(|| {
            "Some comparisons are not paired by block, because their trials were not interleaved \
             or too few blocks have both: there, a drift of the machine between the variants \
             cannot be told from an effect."
                .to_owned()
        })
    }

    // Parts of sentences.

    fn nothing(&self, c: &Comparison) -> String {
        format!(
            "{} committed nothing at {} in any of {} repetitions",
            self.name(c.variant),
            self.step(c.step),
            c.relative.n,
        )
    }

    /// `95 % bounds +124 % … +139 %, n = 3`, or why there are none.
    pub(super) fn bounds_of(&self, c: &Comparison) -> String {
        if c.relative.low.is_none() && c.relative.n >= 2 {
            let n = c.relative.n;
            return format!("n = {n}, no bounds because some repetition committed nothing");
        }
        self.bounds(&c.relative, effect_text(&c.relative))
    }

    /// Why it is undecided where that is not plain, and what would decide it.
    pub(super) fn why_undecided(&self, c: &Comparison) -> String {
        let n_family = self.family_size(c.metric);
        let chance = if excludes_zero(c) && n_family > 1 {
            format!(": among {n_family} comparisons one such may be chance")
        } else {
            String::new()
        };
        match c.repetitions_needed {
            Some(n) => format!("{chance}; {}", would_decide(n)),
            None if c.relative.n < 2 => format!("{chance}; {NO_SPREAD}"),
            None => chance,
        }
    }

    /// ` (n = 2 to 3)` where it is not what was told before.
    fn changed_n(&self, comparisons: &[&Comparison], before: u32) -> String {
        let is_told = comparisons.iter().all(|c| c.relative.n == before);
        if is_told { String::new() } else { format!(" ({})", self.n_of(comparisons)) }
    }

    /// `95 % bounds, n = 3`, or `n = 2 to 3` where steps differ.
    pub(super) fn n_of(&self, comparisons: &[&Comparison]) -> String {
        let ns = comparisons.iter().map(|c| c.relative.n);
        self.n_told(ns.clone().min().unwrap_or(0), ns.max().unwrap_or(0))
    }

    /// The same of the least and the most repetitions.
    pub(super) fn n_told(&self, least: u32, most: u32) -> String {
        let confidence = share(self.findings.confidence);
        match (least, most) {
            (_, 0 | 1) => format!("n = {most}, so no bounds"),
            (least, most) if least == most => format!("{confidence} bounds, n = {least}"),
            (least, most) => format!("{confidence} bounds, n = {least} to {most}"),
        }
    }
}

/// Whether a variant committed nothing at all where its baseline always did.
fn is_nothing(c: &Comparison) -> bool {
    c.metric == Metric::Throughput && c.verdict == Verdict::Worse && c.relative.max <= -100.0
}

fn excludes_zero(c: &Comparison) -> bool {
    let bounds = c.relative.low.zip(c.relative.high);
    bounds.is_some_and(|(low, high)| low > 0.0 || high < 0.0)
}

fn long_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::NoDifference => "no difference that matters",
        other => short_word(other),
    }
}

pub(super) fn short_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::NoDifference => "no difference",
        Verdict::Inconclusive => "inconclusive",
    }
}

/// Why one repetition does not even tell how many would decide.
const NO_SPREAD: &str = "one repetition has no spread, so how many would decide is not known";

fn would_decide(n: u32) -> String {
    if n >= REPETITIONS_CAP {
        return format!("even {n} repetitions might not decide");
    }
    format!("about {n} repetitions would probably decide")
}

/// `both steps`, `all 3 steps`.
pub(super) fn all_steps(n: usize) -> String {
    if n == 2 { "both steps".to_owned() } else { format!("all {n} steps") }
}
