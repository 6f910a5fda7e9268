//! The headline of one run against another.

use super::AnswerWriter;
use super::compared::VERDICTS;
use crate::words::{capital, count, list};
use crate::{Comparison, Verdict};

impl AnswerWriter<'_> {
    /// Headline and lines, if several variants of a second run are compared with the first.
    pub(super) fn against_the_first_run(&self) -> Option<(String, Vec<String>)> {
        let n_first = self.ranker.joined.n_first;
        let mut candidates = self.compared_variants();
        candidates.retain(|variant| *variant >= n_first);
        if n_first == 0 || candidates.len() < 2 {
            return None;
        }
        let of: Vec<Vec<&Comparison>> =
            candidates.iter().map(|variant| self.main_comparisons(*variant)).collect();
        let all: Vec<Verdict> = of.iter().flatten().map(|c| c.verdict).collect();
        let metric = self.title(of.iter().flatten().next()?.metric);
        let lines = candidates.iter().zip(&of).filter_map(|(variant, comparisons)| {
            let text = match comparisons.as_slice() {
                [] => return None,
                [only] => self.effect_and_ci(only, self.findings.effect_style(only.metric)),
                several => self.over_steps(several, false),
            };
            Some(format!("{}: {text}.", self.name(*variant)))
        });
        Some((headline(metric, &all), lines.collect()))
    }
}

/// `Throughput, second run against first: 1 of 4 comparisons worse, 3 inconclusive.`
fn headline(metric: &str, verdicts: &[Verdict]) -> String {
    let metric = capital(metric);
    let n = count(verdicts.len() as u64, "comparison");
    let word = |verdict: Verdict| match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::NoDifference => "no difference",
        Verdict::Inconclusive => "inconclusive",
    };
    let counts = VERDICTS.iter().filter_map(|verdict| {
        let n = verdicts.iter().filter(|one| *one == verdict).count();
        (n > 0).then(|| format!("{n} {}", word(*verdict)))
    });
    let counts: Vec<String> = counts.collect();
    format!("{metric}, second run relative to the first, {n}: {}.", list(&counts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_counted() {
        use Verdict::{Inconclusive, NoDifference, Worse};
        let check = |verdicts: &[Verdict], expected: &str| {
            assert_eq!(headline("throughput", verdicts), expected);
        };
        check(
            &[Inconclusive, Worse, Inconclusive],
            "Throughput, second run relative to the first, 3 comparisons: 1 worse and 2 inconclusive.",
        );
        check(
            &[NoDifference, NoDifference],
            "Throughput, second run relative to the first, 2 comparisons: 2 no difference.",
        );
    }
}
