//! Sentences about comparisons: the headline, and one detail for each variant.

use super::{Teller, shorten};
use crate::statistics::{REPETITIONS_CAP, geometric_mean};
use crate::words::{count, effect, effect_text, list, percent, share, spoken};
use crate::{Comparison, ConcurrencyGroup, Estimate, GroupComparison, Metric, Verdict};

/// The metrics that are always told, and those told where something was decided.
const ALWAYS_TOLD: [Metric; 4] =
    [Metric::RateAtLimit, Metric::ClientsAtLimit, Metric::Throughput, Metric::ResponseP95];
const TOLD_IF_DECIDED: [Metric; 1] = [Metric::ServerCpuPerTransaction];

/// As many steps of one verdict are told one by one; more are told by their extremes.
const STEPS_NAMED: usize = 3;

/// Verdicts in the order in which they are told.
const VERDICTS: [Verdict; 4] =
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
                n_of(several),
            ),
        }
    }

    /// The comparisons of a variant in the first main metric that it has any of.
    fn main_comparisons(&self, variant: usize) -> Vec<&Comparison> {
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
                format!("{}: {} ({bounds}).", self.claim(c), self.both_values(c))
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

    /// `1,501 against 1,001 transactions/s at 4 clients`.
    fn both_values(&self, c: &Comparison) -> String {
        let value = |variant: usize| {
            let estimate = self.cell(variant, c.step)?.metrics.get(&c.metric)?;
            Some(spoken(c.metric, estimate.value))
        };
        let at = format!("at {}", self.step(c.step));
        match (value(c.variant), value(c.baseline)) {
            (Some(ours), Some(theirs)) => {
                let ours = ours.trim_end_matches(" transactions/s");
                format!("{ours} against {theirs} {at}")
            }
            _ => at,
        }
    }

    /// The headline of a study with several: the variant with the best mean, and what is known of
    /// it.
    pub(super) fn best_of_several(&self) -> String {
        let mains = (0..self.findings.steps.len()).map(|step| self.main_metric(step));
        let mains: Vec<Metric> = mains.collect();
        let metric = ALWAYS_TOLD.into_iter().find(|metric| mains.contains(metric));
        let metric = metric.unwrap_or(Metric::Throughput);
        let steps: Vec<usize> = (0..self.findings.steps.len())
            .filter(|&step| self.main_metric(step) == metric)
            .collect();
        let mut ranked = self.ranked(metric, &steps);
        ranked.sort_by(
            |(_, a), (_, b)| {
                if metric.more_is_better() { b.total_cmp(a) } else { a.total_cmp(b) }
            },
        );
        let Some(&(best, value)) = ranked.first() else {
            return "No variant has committed transactions at every step; the details tell what \
                    can be said."
                .to_owned();
        };
        let place = match steps.as_slice() {
            [only] => format!("at {}", self.step(*only)),
            _ => format!("as the geometric mean over {}", all_steps(steps.len())),
        };
        let comparisons = self.main_comparisons(best);
        let is_decided =
            !comparisons.is_empty() && comparisons.iter().all(|c| c.verdict == Verdict::Better);
        let observed = match (metric, is_decided) {
            (Metric::Throughput, true) => "is fastest".to_owned(),
            (Metric::Throughput, false) => "had the highest throughput".to_owned(),
            (metric, _) if metric.more_is_better() => format!("had the highest {}", metric.name()),
            _ => format!("had the lowest {}", metric.name()),
        };
        let known = if self.findings.variants[best].baseline.is_some() {
            self.known_of_best(&comparisons)
        } else {
            self.standing_of_baseline(best)
        };
        format!("{} {observed}: {} {place}{known}.", self.name(best), spoken(metric, value))
    }

    /// What is known of the best, to be read behind its value.
    fn known_of_best(&self, comparisons: &[&Comparison]) -> String {
        let c = match comparisons {
            [] => return ", and cannot be compared with its baseline".to_owned(),
            [only] => only,
            [first, ..] => {
                let theirs = self.name(first.baseline);
                let told = self.by_verdict(comparisons, false);
                return format!("; against {theirs}, {told} ({})", n_of(comparisons));
            }
        };
        let theirs = self.name(c.baseline);
        let against = if c.relative.is_told_as_ratio() { "" } else { "against " };
        let told = format!(", {} {against}{theirs} ({})", effect(&c.relative), self.bounds_of(c));
        match c.verdict {
            Verdict::Better => told,
            Verdict::Worse => format!("{told}: worse"),
            Verdict::NoDifference => format!("{told}: no difference that matters"),
            Verdict::Inconclusive => format!("{told}: inconclusive{}", self.why_undecided(c)),
        }
    }

    /// Variants that have a value at all of these steps, with its geometric mean.
    fn ranked(&self, metric: Metric, steps: &[usize]) -> Vec<(usize, f64)> {
        let value = |variant: usize, step: &usize| {
            Some(self.cell(variant, *step)?.metrics.get(&metric)?.value)
        };
        let of_variant = |variant: usize| {
            let values: Option<Vec<f64>> = steps.iter().map(|step| value(variant, step)).collect();
            Some((variant, geometric_mean(&values?)?))
        };
        (0..self.findings.variants.len()).filter_map(of_variant).collect()
    }

    /// What the others are against a baseline that has the best mean.
    fn standing_of_baseline(&self, baseline: usize) -> String {
        let comparisons: Vec<&Comparison> = self
            .compared_variants()
            .into_iter()
            .flat_map(|variant| self.main_comparisons(variant))
            .filter(|c| c.baseline == baseline)
            .collect();
        let told: Vec<String> = VERDICTS
            .into_iter()
            .map(|verdict| (comparisons.iter().filter(|c| c.verdict == verdict).count(), verdict))
            .filter(|(n, _)| *n > 0)
            .map(|(n, verdict)| format!("{n} {}", short_word(verdict)))
            .collect();
        let n = comparisons.len();
        match (n, told.as_slice()) {
            (0, _) => "; it is a baseline".to_owned(),
            (_, [_]) => {
                let word = short_word(comparisons[0].verdict);
                let all = if n == 2 { "both".to_owned() } else { format!("all {n}") };
                format!("; {all} comparisons with it came out {word}")
            }
            (_, told) => {
                let n = count(n as u64, "comparison");
                format!("; of {n} with it came out {}", list(told))
            }
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
                    format!("{}{}", self.by_verdict(several, true), changed_n(several, before))
                }
            };
            place = place.or(Some(first));
            parts.push(format!("{} {told}", metric.name()));
        }
        let first = place?;
        let at = match self.findings.steps.len() {
            1 => format!(" at {}", self.step(first.step)),
            _ => format!(" (n = {})", first.relative.n),
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
        let bounds = match short_bounds(&c.relative) {
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

    /// Comparisons of one variant in one metric by verdict: `better at 4 clients (+49.5 %), worse
    /// at 16 clients (−40.3 %)`. With bounds where few share a verdict.
    fn by_verdict(&self, comparisons: &[&Comparison], with_bounds: bool) -> String {
        let mut parts = Vec::new();
        for verdict in VERDICTS {
            let group: Vec<&Comparison> =
                comparisons.iter().filter(|c| c.verdict == verdict).copied().collect();
            if !group.is_empty() {
                parts.push(self.same_verdict(&group, comparisons.len(), with_bounds));
            }
        }
        let chance = if with_bounds { self.chance_among(comparisons) } else { String::new() };
        let more = comparisons.iter().filter_map(|c| c.repetitions_needed).max();
        let more = more.map_or(String::new(), |n| format!("; {}", would_decide(n)));
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
    fn same_verdict(&self, group: &[&Comparison], n_all: usize, with_bounds: bool) -> String {
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
        let at = |c: &Comparison| format!("{} at {}", effect(&c.relative), self.step(c.step));
        let least = group.iter().min_by(by_effect).map_or_else(String::new, |c| at(c));
        let most = group.iter().max_by(by_effect).map_or_else(String::new, |c| at(c));
        let n = group.len();
        if n > STEPS_NAMED || (n == n_all && n > 1 && !with_bounds) {
            let where_ = if n == n_all { all_steps(n) } else { format!("{n} of {n_all} steps") };
            return format!("{word} at {where_}, from {least} to {most}");
        }
        let told: Vec<String> = group
            .iter()
            .map(|c| match short_bounds(&c.relative) {
                _ if is_nothing(c) => format!("{} (nothing committed)", self.step(c.step)),
                Some(bounds) if with_bounds => {
                    format!("{} ({}: {bounds})", self.step(c.step), effect(&c.relative))
                }
                _ => format!("{} ({})", self.step(c.step), effect(&c.relative)),
            })
            .collect();
        format!("{word} at {}", list(&told))
    }

    /// A variant over all steps of low, and of high, concurrency.
    fn groups_sentence(&self, variant: usize) -> Option<String> {
        let groups: Vec<&GroupComparison> =
            self.findings.concurrency.iter().filter(|g| g.variant == variant).collect();
        let first = groups.first()?;
        let told: Vec<String> = groups
            .iter()
            .map(|group| {
                let steps = match group.group {
                    ConcurrencyGroup::Low => "no more clients than CPUs",
                    ConcurrencyGroup::High => "more clients than CPUs",
                };
                let bounds = short_bounds(&group.relative)
                    .map_or(String::new(), |bounds| format!(" ({bounds})"));
                format!("{steps} {}{bounds}, {}", effect(&group.relative), long_word(group.verdict))
            })
            .collect();
        Some(format!(
            "{} against {} by concurrency, throughput as the geometric mean over steps: {}.",
            self.name(variant),
            self.name(first.baseline),
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
    fn bounds_of(&self, c: &Comparison) -> String {
        if c.relative.low.is_none() && c.relative.n >= 2 {
            let n = c.relative.n;
            return format!("n = {n}, no bounds because some repetition committed nothing");
        }
        self.bounds(&c.relative, effect_text(&c.relative))
    }

    /// Why it is undecided where that is not plain, and what would decide it.
    fn why_undecided(&self, c: &Comparison) -> String {
        let n_family = self.family_size(c.metric);
        let chance = if excludes_zero(c) && n_family > 1 {
            format!(": among {n_family} comparisons one such may be chance")
        } else {
            String::new()
        };
        match c.repetitions_needed {
            Some(_) if c.relative.n < 2 => {
                format!("{chance}; at least 3 repetitions are needed")
            }
            Some(n) => format!("{chance}; {}", would_decide(n)),
            None => chance,
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

/// `+124 % … +139 %`.
fn short_bounds(relative: &Estimate) -> Option<String> {
    let text = effect_text(relative);
    let (low, high) = relative.low.zip(relative.high)?;
    Some(format!("{} … {}", text(low), text(high)))
}

/// ` (n = 2 to 3)` where it is not what was told before.
fn changed_n(comparisons: &[&Comparison], before: u32) -> String {
    let is_told = comparisons.iter().all(|c| c.relative.n == before);
    if is_told { String::new() } else { format!(" ({})", n_of(comparisons)) }
}

fn long_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::NoDifference => "no difference that matters",
        other => short_word(other),
    }
}

fn short_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::NoDifference => "no difference",
        Verdict::Inconclusive => "inconclusive",
    }
}

fn would_decide(n: u32) -> String {
    if n >= REPETITIONS_CAP {
        return format!("even {n} repetitions might not decide");
    }
    format!("about {n} repetitions would probably decide")
}

/// `both steps`, `all 3 steps`.
fn all_steps(n: usize) -> String {
    if n == 2 { "both steps".to_owned() } else { format!("all {n} steps") }
}

/// `n = 3`, or `n = 2 to 3` where steps differ.
fn n_of(comparisons: &[&Comparison]) -> String {
    let ns = comparisons.iter().map(|c| c.relative.n);
    match (ns.clone().min().unwrap_or(0), ns.max().unwrap_or(0)) {
        (least, most) if least == most => format!("n = {least}"),
        (least, most) => format!("n = {least} to {most}"),
    }
}
