//! The headline of several variants: which is best. "Is fastest" needs a best mean clearly ahead of
//! all others and, at every step, better than the baseline; else the rivals are named.

use dyno_units::Unit;

use super::AnswerWriter;
use super::compared::MORE_REPETITIONS as MORE;
use super::ranking::{Ranked, Standing};
use crate::numbers::{self, EffectStyle};
use crate::words::{ci, list, share, size};
use crate::{Direction, Metric, MetricId, Verdict, metrics};

pub(super) const NAMED_MOST: usize = 3;

impl AnswerWriter<'_> {
    pub(super) fn best_of_several(&self) -> String {
        if let Some(text) = self.own_steps() {
            return text;
        }
        if let Some(text) = self.best_by_contest() {
            return text;
        }
        let (metric, steps) = self.main_metric_and_steps();
        let ranked = self.ranker.rank(metric, &steps);
        let Some(best) = ranked.first() else {
            return format!(
                "No variant committed transactions at every {}.",
                self.findings.step_noun()
            );
        };
        let place = self.place(&steps);
        let name = self.name(best.variant);
        let value = self.value_named(metric, &best.mean);
        let others = &ranked[1..];
        let of = |standings: &[Standing]| -> Vec<&Ranked> {
            others.iter().filter(|ranked| standings.contains(&ranked.standing)).collect()
        };
        let (tied, single) = (of(&[Standing::Same, Standing::Tied]), of(&[Standing::Single]));
        let n_behind = others.len() - tied.len() - single.len();
        if tied.is_empty() && single.is_empty() {
            return self.winner(best, &ranked, (metric, &steps, &place));
        }
        let had =
            format!("{name} had the {} {} ({value})", self.extreme(metric), self.title(metric));
        let (best_is, better, worse) = match metric {
            metrics::THROUGHPUT => ("fastest", "faster", "slower"),
            _ => ("best", "better", "worse"),
        };
        // Of single tests, which show that all are behind, but not each that is named among others.
        let behind = match n_behind {
            0 => String::new(),
            1 => format!("; the other measured {worse}"),
            n => format!("; the remaining {n} measured {worse}"),
        };
        if !single.is_empty() {
            return match tied.is_empty() && n_behind == 0 {
                true => format!("One repetition cannot rank variants {place}: {had}. {MORE}."),
                false => {
                    let single = self.named(&single);
                    format!("One repetition cannot rank {single} {place}: {had}{behind}. {MORE}.")
                }
            };
        }
        if n_behind == 0 && tied.iter().all(|ranked| ranked.standing == Standing::Same) {
            let threshold = share(self.findings.threshold);
            let others = match others {
                [only] => format!("{} does not differ", self.name(only.variant)),
                others => format!("none of the other {} differs", others.len()),
            };
            return format!("No winner {place}: {had}, but {others} by more than {threshold}.");
        }
        let tied = self.named(&tied);
        match n_behind {
            0 => format!(
                "Undecided which is {best_is} {place}: {had}, not shown to be {better} than {tied}."
            ),
            _ => format!(
                "Undecided which is {best_is} {place}: {had}, not shown to be {better} than \
                 {tied}{behind}."
            ),
        }
    }

    /// `at 4 clients`, `on average over all 3 loads`.
    pub(super) fn place(&self, steps: &[usize]) -> String {
        match steps {
            [only] => self.at(*only),
            _ => format!("on average over {}", self.all_steps(steps.len())),
        }
    }

    fn winner(
        &self,
        best: &Ranked,
        ranked: &[Ranked],
        (metric, steps, place): (MetricId, &[usize], &str),
    ) -> String {
        if let Some(text) = self.winner_at_two(best.variant, metric, steps) {
            return text;
        }
        let name = self.name(best.variant);
        let value = self.value_named(metric, &best.mean);
        let is_best = if self.is_better_at_every_step(best.variant) {
            self.is_best(metric)
        } else {
            format!("has the {} mean {}", self.extreme(metric), self.title(metric))
        };
        // Its baseline; for a baseline the next variant.
        let baseline = self.findings.variants[best.variant].baseline;
        let other = baseline.or_else(|| ranked.get(1).map(|next| next.variant));
        let ahead = other.and_then(|other| {
            let (relative, _) = self.ranker.against((best.variant, other), metric, steps)?;
            let other = self.name(other);
            let style = EffectStyle::of([&relative]);
            // For one load level, the line below has the interval.
            let interval = match steps.len() {
                1 => String::new(),
                _ => {
                    let interval = style.interval(&relative);
                    format!(" ({})", ci(&relative, self.findings.confidence, interval))
                }
            };
            Some(match style {
                EffectStyle::Ratio => {
                    let effect = EffectStyle::Ratio.show(relative.value);
                    format!(", {effect} that of {other}{interval}")
                }
                EffectStyle::Percent if baseline.is_none() => {
                    // Relative to the baseline, as the comparisons below.
                    let (next, _) =
                        self.ranker.against((ranked[1].variant, best.variant), metric, steps)?;
                    let word = if next.value > 0.0 { "higher" } else { "lower" };
                    format!("; next is {other}, {} {word}", size(next.value))
                }
                EffectStyle::Percent => {
                    let word = if relative.value > 0.0 { "more" } else { "less" };
                    format!(", {} {word} than {other}{interval}", size(relative.value))
                }
            })
        });
        format!("{name} {is_best} {place}: {value}{}.", ahead.unwrap_or_default())
    }

    /// Of two load levels, each by itself. `None` unless ahead of all others at both.
    fn winner_at_two(&self, best: usize, metric: MetricId, steps: &[usize]) -> Option<String> {
        let [first, second] = steps else { return None };
        let baseline = self.findings.variants[best].baseline?;
        let own = self.comparisons_of(best, metric);
        let at = |step: usize| {
            let comparison = own.iter().copied().find(|c| (c.step, c.baseline) == (step, baseline));
            Some((comparison?, self.cell(best, step)?.metrics.get(&metric)?))
        };
        let ((a, a_value), (b, b_value)) = (at(*first)?, at(*second)?);
        if !self.is_better_at_every_step(best) {
            return None;
        }
        let style = self.style_of(&[a, b]);
        let of = match style {
            EffectStyle::Ratio => "that of",
            EffectStyle::Percent => "relative to",
        };
        let spread = match (style.interval(&a.relative), a.relative.n) {
            (None, _) => String::new(),
            (Some(values), 2) => format!("; two repetitions: {values}"),
            (Some(interval), _) => {
                format!(", {} CI {interval}", share(self.findings.confidence))
            }
        };
        let beside = style.interval(&b.relative).map_or(String::new(), |text| match b.relative.n {
            2 => format!("; {text}"),
            _ => format!(", {text}"),
        });
        let is_first = |step: &usize| {
            let ranked = self.ranker.rank(metric, &[*step]);
            let is_behind = |r: &Ranked| r.standing == Standing::Behind;
            ranked.split_first().is_some_and(|(first, others)| {
                first.variant == best && others.iter().all(is_behind)
            })
        };
        if !steps.iter().all(is_first) {
            return None;
        }
        Some(format!(
            "{} {}: {} {} ({} {of} {}{spread}) and {} {} ({}{beside}).",
            self.name(best),
            self.is_best(metric),
            self.value_named(metric, a_value),
            self.at(*first),
            style.show(a.relative.value),
            self.name(baseline),
            numbers::value(b_value),
            self.at(*second),
            style.show(b.relative.value),
        ))
    }

    /// `b, c and d`, `7 others`.
    fn named(&self, tied: &[&Ranked]) -> String {
        if tied.len() > NAMED_MOST {
            return format!("{} others", tied.len());
        }
        list(&tied.iter().map(|ranked| self.name(ranked.variant)).collect::<Vec<_>>())
    }

    /// By the comparisons with its baseline; if it is the baseline, those of its rivals.
    fn is_better_at_every_step(&self, best: usize) -> bool {
        let own = self.main_comparisons(best);
        let of_rivals = self.compared_variants().into_iter();
        let of_rivals = of_rivals.flat_map(|variant| self.main_comparisons(variant));
        own.iter().all(|c| c.verdict == Verdict::Better)
            && of_rivals.filter(|c| c.baseline == best).all(|c| c.verdict == Verdict::Worse)
    }

    pub(super) fn is_best(&self, metric: MetricId) -> String {
        match metric {
            metrics::THROUGHPUT => "is fastest".to_owned(),
            metrics::RATE_AT_LIMIT => "sustains the highest rate".to_owned(),
            metrics::CLIENTS_AT_LIMIT => "sustains the most clients".to_owned(),
            other => format!("has the {} {}", self.extreme(other), self.title(other)),
        }
    }

    fn extreme(&self, metric: MetricId) -> &'static str {
        let metric = self.findings.metrics.get(metric);
        match (metric.better, is_duration(metric)) {
            (Direction::Higher, _) => "highest",
            (_, true) => "shortest",
            (_, false) => "lowest",
        }
    }
}

/// Less of it is "shorter": a time that somebody waited, not CPU time.
pub(super) fn is_duration(metric: &Metric) -> bool {
    let is_time = matches!(metric.unit, Unit::Microseconds | Unit::Milliseconds | Unit::Seconds);
    is_time && ![metrics::SERVER_CPU, metrics::GENERATOR_CPU].contains(&metric.id)
}
