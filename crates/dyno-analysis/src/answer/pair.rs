//! The headline of a variant against its baseline.

use super::AnswerWriter;
use super::best::is_duration;
use super::compared::{VERDICTS, is_nothing};
use crate::numbers::{EffectStyle, bounds, is_too_wide, value};
use crate::words::{capital, list, loads, share, size};
use crate::{Comparison, MetricId, Verdict, metrics};

const STEPS_NAMED: usize = 2;

impl AnswerWriter<'_> {
    pub(super) fn one_against_its_baseline(&self, variant: usize) -> String {
        match self.main_comparisons(variant).as_slice() {
            [] => format!("{} cannot be compared with its baseline.", self.name(variant)),
            [only] => self.at_one_step(only),
            several => self.over_steps(several, true),
        }
    }

    pub(super) fn main_comparisons(&self, variant: usize) -> Vec<&Comparison> {
        for metric in self.always_said() {
            let mut comparisons = self.comparisons_of(variant, metric);
            comparisons.retain(|c| self.main_metric(c.step) == metric);
            if !comparisons.is_empty() {
                return comparisons;
            }
        }
        Vec::new()
    }

    fn at_one_step(&self, c: &Comparison) -> String {
        let (ours, theirs) = (self.name(c.variant), self.name(c.baseline));
        let at = self.at(c.step);
        if is_nothing(c) {
            return format!("{ours} committed nothing {at} in any of {} trials.", c.relative.n);
        }
        let effect = self.findings.effect_style(c.metric).show(c.relative.value);
        let in_metric = match c.metric {
            metrics::THROUGHPUT => String::new(),
            other => format!(" in {}", self.title(other)),
        };
        match c.verdict {
            Verdict::Better | Verdict::Worse => {
                format!("{}: {} {at}.", self.claim(c), self.both_values(c))
            }
            Verdict::NoDifference => format!(
                "No difference: {ours} and {theirs} are within {} of each other{in_metric} {at}.",
                share(self.findings.threshold),
            ),
            Verdict::Inconclusive if c.relative.n < 2 => format!(
                "One repetition cannot show a difference between {ours} and {theirs}; measured: \
                 {effect}{in_metric} {at}.",
            ),
            Verdict::Inconclusive => match self.may_be(&[c]) {
                Some(may_be) => format!("Undecided: {may_be} {at} (measured: {effect})."),
                None => format!(
                    "Undecided whether {ours} and {theirs} differ{in_metric} {at} (measured: {effect})."
                ),
            },
        }
    }

    /// `b may be 54.0 % slower or 182 % faster than a`: what the intervals of undecided comparisons of one
    /// variant leave open, of several the outermost ends. None unless each of them has an interval around zero:
    /// one beside zero, undecided only by the correction for the number of comparisons, would read as decided.
    fn may_be(&self, comparisons: &[&Comparison]) -> Option<String> {
        let around_zero =
            |c: &&Comparison| bounds(&c.relative).filter(|(low, high)| *low < 0.0 && *high > 0.0);
        let ends: Vec<(f64, f64)> = comparisons.iter().map(around_zero).collect::<Option<_>>()?;
        let low = ends.iter().map(|(low, _)| *low).min_by(f64::total_cmp)?;
        let high = ends.iter().map(|(_, high)| *high).max_by(f64::total_cmp)?;
        let (c, style) = (*comparisons.first()?, self.style_of(comparisons));
        let (ours, theirs, name) =
            (self.name(c.variant), self.name(c.baseline), self.title(c.metric));
        let up_to = if comparisons.len() > 1 { "up to " } else { "" };
        let or = |less: &str, more: &str| {
            format!("{up_to}{} {less} or {} {more}", size(low), size(high))
        };
        let times = || format!("{} to {}", style.show(low), style.show(high));
        Some(match (c.metric, style) {
            _ if is_too_wide(low, high) => return None,
            (metrics::THROUGHPUT, EffectStyle::Ratio) => {
                format!("{ours} may be {} as fast as {theirs}", times())
            }
            (metrics::RATE_AT_LIMIT, EffectStyle::Ratio) => {
                format!("{ours} may sustain {} the load of {theirs}", times())
            }
            (metrics::RATE_AT_LIMIT, EffectStyle::Percent) => {
                format!("{ours} may sustain {} load than {theirs}", or("less", "more"))
            }
            (metrics::CLIENTS_AT_LIMIT, EffectStyle::Ratio) => {
                format!("{ours} may sustain {} as many clients as {theirs}", times())
            }
            (metrics::CLIENTS_AT_LIMIT, EffectStyle::Percent) => {
                format!("{ours} may sustain {} clients than {theirs}", or("fewer", "more"))
            }
            (metrics::THROUGHPUT, EffectStyle::Percent) => {
                format!("{ours} may be {} than {theirs}", or("slower", "faster"))
            }
            (_, EffectStyle::Ratio) => {
                format!("the {name} of {ours} may be {} that of {theirs}", times())
            }
            (metric, EffectStyle::Percent) => {
                let [more, less] = self.more_and_less(metric);
                format!("the {name} of {ours} may be {} than that of {theirs}", or(less, more))
            }
        })
    }

    /// The style of these comparisons, which are of one metric: that of all of its effects, so that one
    /// effect is written alike everywhere.
    pub(super) fn style_of(&self, comparisons: &[&Comparison]) -> EffectStyle {
        comparisons.first().map_or(EffectStyle::Percent, |c| self.findings.effect_style(c.metric))
    }

    /// `b is 2.31× as fast as a`, `b is 10.3 % slower than a`.
    pub(super) fn claim(&self, c: &Comparison) -> String {
        let (ours, theirs) = (self.name(c.variant), self.name(c.baseline));
        let style = self.findings.effect_style(c.metric);
        let (effect, size) = (style.show(c.relative.value), size(c.relative.value));
        let name = self.title(c.metric);
        let more = if c.relative.value > 0.0 { "more" } else { "less" };
        let many = if c.relative.value > 0.0 { "more" } else { "fewer" };
        match (c.metric, style) {
            (metrics::THROUGHPUT, EffectStyle::Ratio) => {
                format!("{ours} is {effect} as fast as {theirs}")
            }
            (metrics::THROUGHPUT, EffectStyle::Percent) => {
                format!("{ours} is {size} {} than {theirs}", self.word_of(c))
            }
            (metrics::RATE_AT_LIMIT, EffectStyle::Ratio) => {
                format!("{ours} sustains {effect} the load of {theirs}")
            }
            (metrics::RATE_AT_LIMIT, EffectStyle::Percent) => {
                format!("{ours} sustains {size} {more} load than {theirs}")
            }
            (metrics::CLIENTS_AT_LIMIT, EffectStyle::Ratio) => {
                format!("{ours} sustains {effect} as many clients as {theirs}")
            }
            (metrics::CLIENTS_AT_LIMIT, EffectStyle::Percent) => {
                format!("{ours} sustains {size} {many} clients than {theirs}")
            }
            (_, EffectStyle::Ratio) => format!("The {name} of {ours} is {effect} that of {theirs}"),
            (_, EffectStyle::Percent) => {
                format!("The {name} of {ours} is {size} {} than that of {theirs}", self.word_of(c))
            }
        }
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

    /// `faster at all 5 loads, by 24.8 % (1 client) to 88.1 % (16 clients)`, or a whole sentence.
    pub(super) fn over_steps(&self, comparisons: &[&Comparison], is_named: bool) -> String {
        let Some(first) = comparisons.first() else { return String::new() };
        let (ours, theirs) = (self.name(first.variant), self.name(first.baseline));
        let n = comparisons.len();
        let all = |verdict: Verdict| comparisons.iter().all(|c| c.verdict == verdict);
        let is_lost = |c: &&Comparison| is_nothing(c);
        if comparisons.iter().all(is_lost) {
            let text = format!("committed nothing at {}", self.all_steps(n));
            return if is_named { format!("{ours} {text}.") } else { text };
        }
        let threshold = share(self.findings.threshold);
        if all(Verdict::NoDifference) {
            let at = self.all_steps(n);
            return match is_named {
                true => format!(
                    "No difference: {ours} and {theirs} are within {threshold} of each other at {at}."
                ),
                false => format!("no difference at {at}"),
            };
        }
        if all(Verdict::Inconclusive) {
            let at = self.all_steps(n);
            let is_single = comparisons.iter().all(|c| c.relative.n < 2);
            return match (is_named, self.may_be(comparisons)) {
                (true, _) if is_single => {
                    format!("One repetition cannot show how {ours} and {theirs} differ at {at}.")
                }
                (true, Some(may_be)) => format!("Undecided at {at}: {may_be}."),
                (true, None) => {
                    format!("Undecided at {at} whether {ours} and {theirs} differ.")
                }
                (false, _) => format!("undecided at {at}"),
            };
        }
        if all(Verdict::Better) || all(Verdict::Worse) {
            let text = format!("{} {}", self.word_of(first), self.reach(comparisons));
            return match (is_named, first.metric) {
                (false, _) => text,
                (true, metrics::THROUGHPUT) => {
                    let text = text.replacen(" at ", &format!(" than {theirs} at "), 1);
                    format!("{ours} is {text}.")
                }
                (true, metric) => {
                    let name = capital(self.title(metric));
                    format!("{name} of {ours} relative to {theirs}: {text}.")
                }
            };
        }
        let text = self.mixed(comparisons);
        match (is_named, first.metric) {
            (false, _) => text,
            (true, metrics::THROUGHPUT) => format!("Compared with {theirs}, {ours} is {text}."),
            (true, metric) => {
                format!("{} of {ours} relative to {theirs}: {text}.", capital(self.title(metric)))
            }
        }
    }

    /// `at all 5 loads, by 24.8 % (1 client) to 88.1 % (16 clients)`, if they agree.
    fn reach(&self, comparisons: &[&Comparison]) -> String {
        let style = self.style_of(comparisons);
        let by_size = |a: &&&Comparison, b: &&&Comparison| distance(a).total_cmp(&distance(b));
        let show = |c: &Comparison| match style {
            EffectStyle::Percent => size(c.relative.value),
            EffectStyle::Ratio => style.show(c.relative.value),
        };
        let ends = comparisons.iter().min_by(by_size).zip(comparisons.iter().max_by(by_size));
        let at = self.all_steps(comparisons.len());
        let by = if style == EffectStyle::Percent { "by " } else { "" };
        match ends {
            Some((least, most)) if show(least) != show(most) => format!(
                "at {at}, {by}{} ({}) to {} ({})",
                show(least),
                self.step(least.step),
                show(most),
                self.step(most.step)
            ),
            Some((least, _)) => format!("at {at}, {by}{}", show(least)),
            None => format!("at {at}"),
        }
    }

    /// `faster at 4 clients (+49.5 %), slower at 16 clients (−40.3 %) and no different at 1 client`
    fn mixed(&self, comparisons: &[&Comparison]) -> String {
        let style = self.style_of(comparisons);
        let n_all = comparisons.len();
        let mut parts = Vec::new();
        for verdict in VERDICTS {
            let group: Vec<&Comparison> =
                comparisons.iter().filter(|c| c.verdict == verdict).copied().collect();
            let Some(first) = group.first() else { continue };
            let is_decided = matches!(verdict, Verdict::Better | Verdict::Worse);
            let word = match verdict {
                Verdict::Better | Verdict::Worse => self.word_of(first),
                Verdict::NoDifference => "no different",
                Verdict::Inconclusive => "undecided",
            };
            let step = |c: &&Comparison| match is_decided {
                true if is_nothing(c) => format!("{} (nothing committed)", self.step(c.step)),
                true => format!("{} ({})", self.step(c.step), style.show(c.relative.value)),
                false => self.step(c.step),
            };
            let most = group.iter().max_by(|a, b| distance(a).total_cmp(&distance(b)));
            let up_to = match most {
                Some(most) if is_decided => match style {
                    EffectStyle::Percent => format!(" (by up to {})", size(most.relative.value)),
                    EffectStyle::Ratio => {
                        let end = if most.relative.value > 0.0 { "up" } else { "down" };
                        format!(" ({end} to {})", style.show(most.relative.value))
                    }
                },
                _ => String::new(),
            };
            parts.push(match group.len() {
                n if n > STEPS_NAMED => {
                    format!("{word} at {n} of {n_all} {}s{up_to}", self.findings.step_noun())
                }
                _ => format!("{word} at {}", loads(&group.iter().map(step).collect::<Vec<_>>())),
            });
        }
        list(&parts)
    }

    fn word_of(&self, c: &Comparison) -> &'static str {
        let [more, less] = self.more_and_less(c.metric);
        if c.relative.value > 0.0 { more } else { less }
    }

    fn more_and_less(&self, metric: MetricId) -> [&'static str; 2] {
        match self.findings.metrics.get(metric) {
            metric if metric.id == metrics::THROUGHPUT => ["faster", "slower"],
            metric if is_duration(metric) => ["longer", "shorter"],
            _ => ["higher", "lower"],
        }
    }
}

/// How far an effect is from none, on the scale of ratios.
pub(super) fn distance(c: &Comparison) -> f64 {
    let ratio = crate::numbers::as_ratio(c.relative.value);
    if ratio > 0.0 { ratio.ln().abs() } else { f64::INFINITY }
}
