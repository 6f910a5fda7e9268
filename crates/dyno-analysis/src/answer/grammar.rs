//! The parts of sentences: who is compared with whom, in which metric, where, by how much, and what
//! was decided.

use dyno_units::Unit;

use super::AnswerWriter;
use crate::numbers::{EffectStyle, interval, value};
use crate::statistics::REPETITIONS_CAP;
use crate::words::{ci, joined, list, loads, share, size};
use crate::{Claim, Comparison, Estimate, Metric, MetricId, Verdict, metrics};

/// In the order of sentences.
const VERDICTS: [Verdict; 4] =
    [Verdict::Better, Verdict::Worse, Verdict::NoDifference, Verdict::Inconclusive];

/// Loads of one verdict that are named one by one.
const STEPS_NAMED: usize = 3;

/// In a headline.
const STEPS_NAMED_SHORT: usize = 2;

/// More would be a guess from too little.
const REPETITIONS_GUESSED: u32 = 50;

pub(super) const MORE_REPETITIONS: &str = "Raise `repetitions` to at least 3";

/// A sentence, and the comparisons that it is made of, if it compares.
#[derive(Clone)]
pub(super) struct Said {
    pub(super) text: String,
    pub(super) claims: Vec<Claim>,
}

impl Said {
    pub(super) fn of<C: Into<Claim>>(all: impl IntoIterator<Item = C>, text: String) -> Said {
        Said { text, claims: all.into_iter().map(Into::into).collect() }
    }
}

impl From<String> for Said {
    fn from(text: String) -> Said {
        Said { text, claims: Vec::new() }
    }
}

/// For subject, "is" and "sustains" of [`AnswerWriter::clause`].
pub(super) type Mood = [&'static str; 3];

pub(super) const IS: Mood = ["The", "is", "sustains"];
pub(super) const MAY_BE: Mood = ["the", "may be", "may sustain"];

impl AnswerWriter<'_> {
    /// `b is 10.3 % slower than a`, with `amount` in words for more and for less.
    pub(super) fn clause(
        &self,
        c: &Comparison,
        [the, is, sustains]: Mood,
        amount: &dyn Fn([&'static str; 2]) -> String,
    ) -> String {
        let (ours, theirs) = (self.name(c.variant), self.name(c.baseline));
        let (verb, words, as_ratio, as_percent) = match c.metric {
            metrics::RATE_AT_LIMIT => (sustains, ["more", "less"], "the load of", "load than"),
            metrics::CLIENTS_AT_LIMIT => {
                (sustains, ["more", "fewer"], "as many clients as", "clients than")
            }
            metrics::THROUGHPUT => (is, ["faster", "slower"], "as fast as", "than"),
            other => (is, self.more_and_less(other), "that of", "than that of"),
        };
        let subject = match c.metric {
            metrics::THROUGHPUT | metrics::RATE_AT_LIMIT | metrics::CLIENTS_AT_LIMIT => {
                ours.to_owned()
            }
            other => format!("{the} {} of {ours}", self.title(other)),
        };
        let than = match self.findings.effect_style(c.metric) {
            EffectStyle::Ratio => as_ratio,
            EffectStyle::Percent => as_percent,
        };
        format!("{subject} {verb} {} {than} {theirs}", amount(words))
    }

    /// `faster at 4 clients (+49.5 %); slower at 16 clients (−40.3 %); no different at 1 client`: the loads of
    /// each verdict, if asked for with intervals.
    pub(super) fn over_loads(&self, all: &[&Comparison], has_ci: bool) -> String {
        if all.iter().all(|c| is_nothing(c)) {
            return format!("committed nothing at {}", self.all_steps(all.len()));
        }
        let of_verdict = |group: Vec<&Comparison>| self.of_verdict(&group, all.len(), has_ci);
        let chance = if has_ci { self.chance(all) } else { String::new() };
        joined(by_verdict(all).map(of_verdict), "; ") + &chance
    }

    /// `faster at all 5 loads, by 24.8 % (1 client) to 88.1 % (16 clients)`.
    fn of_verdict(&self, group: &[&Comparison], n_all: usize, has_ci: bool) -> String {
        let (style, n, is_decided) =
            (self.style_of(group), group.len(), group[0].verdict.is_decided());
        let word = match group[0].verdict {
            Verdict::Better | Verdict::Worse => self.word_of(group[0]),
            Verdict::NoDifference => "no different",
            Verdict::Inconclusive => "undecided",
        };
        let has_values = is_decided || has_ci;
        let interval = |c: &Comparison| {
            let interval = style.interval(&c.relative).filter(|_| has_ci);
            interval.map_or(String::new(), |text| format!(", {text}"))
        };
        let most_named = if has_ci { STEPS_NAMED } else { STEPS_NAMED_SHORT };
        if n <= most_named && (n == 1 || n < n_all) {
            let step = |c: &&Comparison| match has_values {
                true if is_nothing(c) => format!("{} (nothing committed)", self.step(c.step)),
                true => {
                    let value = style.show(c.relative.value);
                    format!("{} ({value}{})", self.step(c.step), interval(c))
                }
                false => self.step(c.step),
            };
            return format!("{word} at {}", loads(group.iter().map(step)));
        }
        let at = match n == n_all {
            true => self.all_steps(n),
            false => format!("{n} of {n_all} {}s", self.findings.step_noun()),
        };
        // The word has the direction.
        let is_by = is_decided && style == EffectStyle::Percent;
        let show = |c: &Comparison| match is_by {
            true => size(c.relative.value),
            false => style.show(c.relative.value),
        };
        let (least, most) =
            ends(group, |c| if is_decided { distance(c) } else { c.relative.value });
        let end = |c: &Comparison| format!("{} ({}{})", show(c), self.step(c.step), interval(c));
        let values = match () {
            () if !has_values => return format!("{word} at {at}"),
            () if !has_ci && n < n_all => {
                let up = if most.relative.value > 0.0 || is_by { "up" } else { "down" };
                let by = if is_by { "by " } else { "" };
                return format!("{word} at {at} ({by}{up} to {})", show(most));
            }
            () if !has_ci && show(least) == show(most) => show(least),
            () => format!("{} to {}", end(least), end(most)),
        };
        format!("{word} at {at}, {}{values}", if is_by { "by " } else { "" })
    }

    /// `1,500 transactions/s against 1,000/s`.
    pub(super) fn both_values(&self, c: &Comparison) -> String {
        let of = |variant: usize| {
            let estimate = self.cell(variant, c.step)?.metrics.get(&c.metric)?;
            Some(value(estimate))
        };
        match (of(c.variant), of(c.baseline)) {
            (Some(ours), Some(theirs)) => {
                format!("{} against {theirs}", metrics::with_thing(c.metric, &ours))
            }
            _ => self.title(c.metric).to_owned(),
        }
    }

    /// The style of these comparisons, which are of one metric: that of all of its effects, so that one
    /// effect is written alike everywhere.
    pub(super) fn style_of(&self, comparisons: &[&Comparison]) -> EffectStyle {
        comparisons.first().map_or(EffectStyle::Percent, |c| self.findings.effect_style(c.metric))
    }

    /// `95 % CI 2.23–2.38×, n = 3`.
    pub(super) fn effect_ci(&self, relative: &Estimate, style: EffectStyle) -> String {
        ci(relative, self.findings.confidence, style.interval(relative))
    }

    /// `, best of 3 loads`, after an interval that allows for the choice.
    pub(super) fn choice(&self, claim: &Claim) -> String {
        let has_ci = claim.relative.low.is_some() && claim.relative.n > 2;
        match claim.best_of.filter(|_| has_ci) {
            Some(n) => format!(", best of {n} loads"),
            None => String::new(),
        }
    }

    /// `95 % CI 1,480–1,520/s, n = 3`.
    pub(super) fn ci_of(&self, estimate: &Estimate) -> String {
        ci(estimate, self.findings.confidence, interval(estimate))
    }

    /// `95 % CIs, n = 3`, or `n = 2 to 3`.
    pub(super) fn cis_and_n(&self, ns: impl Iterator<Item = u32> + Clone) -> String {
        let confidence = share(self.findings.confidence);
        match (ns.clone().min().unwrap_or(0), ns.clone().max().unwrap_or(0)) {
            (_, 0 | 1) => format!("{}, no CI", n_of(ns)),
            (2, 2) => "two repetitions".to_owned(),
            _ => format!("{confidence} CIs, {}", n_of(ns)),
        }
    }

    /// `b, c and d`, `7 others`.
    pub(super) fn named(&self, variants: &[usize], most: usize) -> String {
        match variants.len() {
            n if n > most => format!("{n} others"),
            _ => list(variants.iter().map(|variant| self.name(*variant))),
        }
    }

    /// `1, 2 and 4 clients`.
    pub(super) fn loads(&self, comparisons: &[&Comparison]) -> String {
        loads(comparisons.iter().map(|c| self.step(c.step)))
    }

    /// ` (significant at 8 clients if tested alone, but not after correcting for 5 comparisons)`: of those whose
    /// intervals exclude zero without a verdict; empty if there are none.
    pub(super) fn chance(&self, all: &[&Comparison]) -> String {
        let is_such = |c: &&Comparison| c.verdict == Verdict::Inconclusive && excludes_zero(c);
        let such: Vec<&Comparison> = all.iter().copied().filter(is_such).collect();
        let at = match such.as_slice() {
            [] => return String::new(),
            [_] if all.len() == 1 => String::new(),
            [only] => self.at(only.step) + " ",
            several => format!("at {} ", self.loads(several)),
        };
        match self.family_size(such[0].metric) {
            1 => String::new(),
            n => {
                format!(
                    " (significant {at}if tested alone, but not after correcting for {n} comparisons)"
                )
            }
        }
    }

    fn family_size(&self, metric: MetricId) -> usize {
        self.findings.comparisons.iter().filter(|c| c.metric == metric).count()
    }

    /// For a less durable variant the word is not "better", but the direction of the difference.
    pub(super) fn verdict_of(&self, c: &Comparison) -> &'static str {
        if c.verdict != Verdict::Better || !self.findings.is_less_durable(c.variant, c.baseline) {
            return word(c.verdict);
        }
        match self.word_of(c) {
            "faster" => "higher",
            "slower" => "lower",
            word => word,
        }
    }

    pub(super) fn word_of(&self, c: &Comparison) -> &'static str {
        let [more, less] = self.more_and_less(c.metric);
        if c.relative.value > 0.0 { more } else { less }
    }

    pub(super) fn more_and_less(&self, metric: MetricId) -> [&'static str; 2] {
        match self.findings.metrics.get(metric) {
            metric if metric.id == metrics::THROUGHPUT => ["faster", "slower"],
            metric if is_duration(metric) => ["longer", "shorter"],
            _ => ["higher", "lower"],
        }
    }
}

/// `n = 3`, `n = 2 to 3`; of one at most only the most.
pub(super) fn n_of(ns: impl Iterator<Item = u32> + Clone) -> String {
    match (ns.clone().min().unwrap_or(0), ns.max().unwrap_or(0)) {
        (least, most) if least == most || most < 2 => format!("n = {most}"),
        (least, most) => format!("n = {least} to {most}"),
    }
}

pub(super) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::NoDifference => "no difference",
        Verdict::Inconclusive => "undecided",
    }
}

/// Less of it is "shorter": a time that somebody waited, not CPU time.
pub(super) fn is_duration(metric: &Metric) -> bool {
    let is_time = matches!(metric.unit, Unit::Microseconds | Unit::Milliseconds | Unit::Seconds);
    is_time && ![metrics::SERVER_CPU, metrics::GENERATOR_CPU].contains(&metric.id)
}

/// Nothing committed, where the baseline always did.
pub(super) fn is_nothing(c: &Comparison) -> bool {
    c.metric == metrics::THROUGHPUT && c.verdict == Verdict::Worse && c.relative.max <= -100.0
}

fn excludes_zero(c: &Comparison) -> bool {
    let bounds = c.relative.low.zip(c.relative.high);
    bounds.is_some_and(|(low, high)| low > 0.0 || high < 0.0)
}

/// Those with each verdict, as far as there are any.
fn by_verdict<'a>(all: &[&'a Comparison]) -> impl Iterator<Item = Vec<&'a Comparison>> {
    let with = move |verdict: Verdict| -> Vec<&'a Comparison> {
        all.iter().copied().filter(|c| c.verdict == verdict).collect()
    };
    VERDICTS.into_iter().map(with).filter(|group| !group.is_empty())
}

/// Least and most of comparisons, of which there is one at least.
fn ends<'a>(
    all: &[&'a Comparison],
    of: impl Fn(&Comparison) -> f64,
) -> (&'a Comparison, &'a Comparison) {
    all.iter().copied().fold((all[0], all[0]), |(least, most), c| {
        let order = |other: &Comparison| of(c).total_cmp(&of(other));
        let least = if order(least).is_lt() { c } else { least };
        (least, if order(most).is_ge() { c } else { most })
    })
}

/// How far an effect is from none, on the scale of ratios.
pub(super) fn distance(c: &Comparison) -> f64 {
    let ratio = crate::numbers::as_ratio(c.relative.value);
    if ratio > 0.0 { ratio.ln().abs() } else { f64::INFINITY }
}

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
