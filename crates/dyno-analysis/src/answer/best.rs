//! The headline of a study with several variants: which is best, as far as that is known.
//!
//! "Is fastest" is said only where the best mean is told from that of every other variant, and is
//! better than its baseline at every step. Else it is said which are not told apart.

use super::compared::{all_steps, short_word};
use super::ranking::Ranked;
use super::{Teller, compared};
use crate::words::{bounds, count, effect, list, spoken};
use crate::{Comparison, Estimate, Metric, Verdict};

/// As many variants that are not told apart are named; of more, their number is told.
const NAMED_MOST: usize = 4;

impl Teller<'_> {
    pub(super) fn best_of_several(&self) -> String {
        let mains: Vec<Metric> =
            (0..self.findings.steps.len()).map(|step| self.main_metric(step)).collect();
        let metric = compared::ALWAYS_TOLD.into_iter().find(|metric| mains.contains(metric));
        let metric = metric.unwrap_or(Metric::Throughput);
        let steps: Vec<usize> =
            (0..mains.len()).filter(|&step| self.main_metric(step) == metric).collect();
        if mains.len() > 1 && self.findings.steps.iter().any(|step| step.own.is_some()) {
            return self.best_step_by_step();
        }
        let ranked = self.ranker.rank(metric, &steps);
        let Some(best) = ranked.first() else {
            return "No variant has committed transactions at every step; the details tell what \
                    can be said."
                .to_owned();
        };
        let place = match steps.as_slice() {
            [only] => format!("at {}", self.step(*only)),
            _ => format!("as the geometric mean over {}", all_steps(steps.len())),
        };
        let known = if self.findings.variants[best.variant].baseline.is_some() {
            self.known_of_best(&self.main_comparisons(best.variant))
        } else {
            self.standing_of_baseline(best.variant)
        };
        let value = |ranked: &Ranked| self.value_of(metric, &ranked.mean);
        let tied: Vec<&Ranked> = ranked[1..].iter().filter(|r| !r.is_behind).collect();
        let name = self.name(best.variant);
        let words = Words::of(metric);
        let is_told = self.is_better_at_every_step(best.variant, &tied);
        match tied.as_slice() {
            [] if is_told => {
                format!("{name} {}: {} {place}{known}.", words.is_best, value(best))
            }
            [] => format!("{name} {}: {} {place}{known}.", words.had, value(best)),
            tied if tied.len() + 1 == ranked.len() || !is_told => format!(
                "No variant is told {}: {name} {}, {} {place}{known}; {} not told from it.",
                words.to_be_best,
                words.had,
                value(best),
                self.named(tied),
            ),
            [other] => format!(
                "{name} and {} {}, and not told apart: {} and {} {place}; {name}{}.",
                self.name(other.variant),
                words.are_best,
                value(best),
                value(other),
                known.trim_start_matches([',', ';']),
            ),
            tied => format!(
                "{name} had the best mean, {} {place}{known}; {} not told from it, and all others \
                 are behind.",
                value(best),
                self.named(tied),
            ),
        }
    }

    /// `b and c are`, `7 others are`.
    fn named(&self, tied: &[&Ranked]) -> String {
        if tied.len() > NAMED_MOST {
            return format!("{} others are", tied.len());
        }
        let names: Vec<&str> = tied.iter().map(|ranked| self.name(ranked.variant)).collect();
        format!("{} {}", list(&names), if names.len() == 1 { "is" } else { "are" })
    }

    /// Whether all comparisons between the best and its baseline (where it is one: of its rivals with
    /// it), those that are not told apart from it aside, say that it is better.
    fn is_better_at_every_step(&self, best: usize, tied: &[&Ranked]) -> bool {
        let is_tied = |variant: usize| tied.iter().any(|ranked| ranked.variant == variant);
        let own = self.main_comparisons(best);
        let of_rivals = self.compared_variants().into_iter().filter(|variant| !is_tied(*variant));
        let of_rivals = of_rivals.flat_map(|variant| self.main_comparisons(variant));
        own.iter().filter(|c| !is_tied(c.baseline)).all(|c| c.verdict == Verdict::Better)
            && of_rivals.filter(|c| c.baseline == best).all(|c| c.verdict == Verdict::Worse)
    }

    /// `1,501 transactions/s (95 % bounds 1,480 … 1,523 transactions/s, n = 5)`.
    fn value_of(&self, metric: Metric, mean: &Estimate) -> String {
        let text = |value: f64| spoken(metric, value);
        let unit = " transactions/s";
        let bare = |value: f64| text(value).trim_end_matches(unit).to_owned();
        let bounds = bounds(mean, self.findings.confidence, bare);
        format!("{} ({bounds})", text(mean.value))
    }

    /// The best at each step by itself: steps that a workload defines are unlike work, of which there
    /// is no mean.
    fn best_step_by_step(&self) -> String {
        // Variants that are best at some step, with what is told of those steps.
        let mut best: Vec<(usize, Vec<String>)> = Vec::new();
        let (mut open, mut ns) = (Vec::new(), Vec::new());
        for step in 0..self.findings.steps.len() {
            let ranked = self.ranker.rank(self.main_metric(step), &[step]);
            let Some(first) = ranked.first() else { continue };
            ns.push(first.mean.n);
            if ranked.len() < 2 || ranked[1..].iter().any(|rival| !rival.is_behind) {
                open.push(self.step(step));
                continue;
            }
            let told = format!("{} ({})", self.step(step), self.own_rate(first.variant, step));
            match best.iter_mut().find(|(variant, _)| *variant == first.variant) {
                Some((_, steps)) => steps.push(told),
                None => best.push((first.variant, vec![told])),
            }
        }
        // Of a step that ends by quota the shortest time is the highest rate.
        let words = Words::of(Metric::Throughput);
        let mut parts: Vec<String> = best
            .iter()
            .map(|(v, steps)| format!("{} {} at {}", self.name(*v), words.is_best, list(steps)))
            .collect();
        if !open.is_empty() {
            let of = if parts.is_empty() { "any step" } else { &list(&open) };
            parts.push(format!("no variant is told {} at {of}", words.to_be_best));
        }
        let n = |n: Option<&u32>| n.copied().unwrap_or(0);
        format!(
            "Step by step, as steps are unlike work: {} ({}).",
            parts.join("; "),
            self.n_told(n(ns.iter().min()), n(ns.iter().max())),
        )
    }

    // What is known of the best.

    /// What is known of the best, to be read behind its value.
    fn known_of_best(&self, comparisons: &[&Comparison]) -> String {
        let c = match comparisons {
            [] => return ", and cannot be compared with its baseline".to_owned(),
            [only] => only,
            [first, ..] => {
                let theirs = self.name(first.baseline);
                let told = self.by_verdict(comparisons, true);
                return format!("; against {theirs}, {told} ({})", self.n_of(comparisons));
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

    /// What the others are against a baseline that has the best mean.
    fn standing_of_baseline(&self, baseline: usize) -> String {
        let comparisons: Vec<&Comparison> = self
            .compared_variants()
            .into_iter()
            .flat_map(|variant| self.main_comparisons(variant))
            .filter(|c| c.baseline == baseline)
            .collect();
        let told: Vec<String> = compared::VERDICTS
            .into_iter()
            .map(|verdict| (comparisons.iter().filter(|c| c.verdict == verdict).count(), verdict))
            .filter(|(n, _)| *n > 0)
            .map(|(n, verdict)| format!("{n} {}", short_word(verdict)))
            .collect();
        let n = comparisons.len();
        match (n, told.as_slice()) {
            (0, _) => "; it is a baseline".to_owned(),
            (1, _) => {
                format!("; the comparison with it came out {}", short_word(comparisons[0].verdict))
            }
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
}

/// How it is said of a metric that a variant is the best.
struct Words {
    is_best: String,
    are_best: String,
    to_be_best: String,
    had: String,
}

impl Words {
    fn of(metric: Metric) -> Words {
        let extreme = if metric.more_is_better() { "highest" } else { "lowest" };
        let name = metric.name();
        let had = format!("had the {extreme} {name}");
        match metric {
            Metric::Throughput => Words {
                is_best: "is fastest".to_owned(),
                are_best: "are fastest".to_owned(),
                to_be_best: "to be fastest".to_owned(),
                had,
            },
            _ => Words {
                is_best: format!("has the {extreme} {name}"),
                are_best: format!("have the {extreme} {name}"),
                to_be_best: format!("to have the {extreme} {name}"),
                had,
            },
        }
    }
}
