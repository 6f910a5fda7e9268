//! The sentence on whether something beside the load blocks it.

use super::AnswerWriter;
use super::pair::distance;
use crate::words::{ci, list};
use crate::{Comparison, Verdict};

const NAMED_MOST: usize = 2;

impl AnswerWriter<'_> {
    /// The variant that is worst against its baseline in the main metric of the last step, by how
    /// much, and which others are worse; `None` if none is.
    pub(super) fn blocked(&self) -> Option<String> {
        let step = self.findings.steps.len().checked_sub(1)?;
        let variants = self.compared_variants();
        let of_variant = |&variant: &usize| {
            let all = self.main_comparisons(variant);
            all.into_iter().find(|c| c.step == step)
        };
        let all: Vec<&Comparison> = variants.iter().filter_map(of_variant).collect();
        let is_worse = |c: &&&Comparison| c.verdict == Verdict::Worse;
        let worst =
            *all.iter().filter(is_worse).max_by(|a, b| distance(a).total_cmp(&distance(b)))?;
        let of_verdict = |verdict: Verdict| -> Vec<usize> {
            let is_it = |c: &&&Comparison| c.verdict == verdict && c.variant != worst.variant;
            all.iter().filter(is_it).map(|c| c.variant).collect()
        };
        let parts = [
            (Verdict::Worse, "is also worse", "are also worse"),
            (Verdict::NoDifference, "makes no difference", "make no difference"),
            (Verdict::Inconclusive, "is undecided", "are undecided"),
            (Verdict::Better, "is better", "are better"),
        ];
        let others: String = parts
            .iter()
            .filter_map(|(verdict, one, several)| {
                let variants = of_verdict(*verdict);
                let verb = if variants.len() == 1 { one } else { several };
                (!variants.is_empty())
                    .then(|| format!("; {} {verb}", self.names_or_number(&variants)))
            })
            .collect();
        let style = self.findings.effect_style(worst.metric);
        let interval =
            ci(&worst.relative, self.findings.confidence, style.interval(&worst.relative));
        Some(format!("{} ({interval}){others}.", self.claim(worst)))
    }

    fn names_or_number(&self, variants: &[usize]) -> String {
        match variants.len() {
            n if n > NAMED_MOST => format!("{n} others"),
            _ => list(&variants.iter().map(|&variant| self.name(variant)).collect::<Vec<_>>()),
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use dyno_units::Question;

    use crate::fixtures::{make_open, run, wobble};
    use crate::{Options, analyse};

    /// The first two sentences, for these response times.
    #[track_caller]
    fn check(question: Question, response_ms: &[f64], expected: &Expect) {
        let names = ["without", "skips", "waits", "holds"];
        let names = &names[..response_ms.len()];
        let mut run = run(names, &[10], 5, |variant, step, repetition| {
            10_000.0 / response_ms[variant] * wobble(variant, step, repetition)
        });
        run.manifest.questions = vec![question];
        make_open(&mut run);
        let answer = analyse(&[run], &Options::default()).answer;
        let lines = answer.lines.first().cloned().unwrap_or_default();
        expected.assert_eq(&format!("{}\n{lines}", answer.headline));
    }

    #[test]
    fn the_worst_is_named_and_the_others_are_judged() {
        check(
            Question::Blocks,
            &[2.0, 2.0, 600.0],
            &expect![[r#"
                The p95 response time of waits is 302× that of without (95 % CI 297–306×, n = 5); skips makes no difference.
                skips vs. without: p95 response time 1.00× (95 % CI 0.988–1.02×, n = 5), no difference."#]],
        );
        check(
            Question::Blocks,
            &[2.0, 3.0, 600.0],
            &expect![[r#"
                The p95 response time of waits is 302× that of without (95 % CI 297–306×, n = 5); skips is also worse.
                skips vs. without: p95 response time 1.50× (95 % CI 1.48–1.52×, n = 5), worse."#]],
        );
        check(
            Question::Blocks,
            &[2.0, 2.0, 2.0, 600.0],
            &expect![[r#"
                The p95 response time of holds is 301× that of without (95 % CI 297–304×, n = 5); skips and waits make no difference.
                skips vs. without: p95 response time 1.00× (95 % CI 0.990–1.01×, n = 5), no difference."#]],
        );
    }

    #[test]
    fn the_usual_sentences_are_used_where_nothing_blocks() {
        check(
            Question::Blocks,
            &[2.0, 2.0, 2.0],
            &expect![[r#"
                No winner at 1000/s offered: without had the shortest p95 response time (3.87 ms), but none of the other 2 differs by more than 3 %.
                skips vs. without: p95 response time +0.2 % (95 % CI −1.2 to +1.6 %, n = 5), no difference."#]],
        );
        check(
            Question::Best,
            &[2.0, 2.0, 600.0],
            &expect![[r#"
                Undecided which is best at 1000/s offered: without had the shortest p95 response time (3.87 ms), not shown to be better than skips; the other measured worse.
                skips vs. without: p95 response time 1.00× (95 % CI 0.988–1.02×, n = 5), no difference."#]],
        );
    }
}
