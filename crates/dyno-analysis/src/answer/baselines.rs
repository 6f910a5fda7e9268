//! The headline of a study that asks whether any variant is worse than its baseline, or differs from it.

use dyno_units::Question;

use super::AnswerWriter;
use super::compared::is_nothing;
use super::pair::distance;
use crate::words::{ci, count, share};
use crate::{Comparison, Verdict, metrics};

/// Decided comparisons that are named, for each direction.
const NAMED_MOST: usize = 2;

impl AnswerWriter<'_> {
    /// What all comparisons with baselines say together; none for one variant, and for runs that did different
    /// work. The correction for the number of comparisons is in their verdicts.
    pub(super) fn against_baselines(&self, question: Question) -> Option<String> {
        let variants = self.compared_variants();
        let is_main =
            |c: &&Comparison| variants.contains(&c.variant) && c.metric == self.main_metric(c.step);
        let all: Vec<&Comparison> = self.findings.comparisons.iter().filter(is_main).collect();
        let is_one = variants.len() < 2 && self.own_steps().is_none();
        if is_one || all.len() < 2 || self.is_mismatched() {
            return None;
        }
        let with = |verdict: Verdict| -> Vec<&Comparison> {
            let mut found: Vec<&Comparison> =
                all.iter().copied().filter(|c| c.verdict == verdict).collect();
            found.sort_by(|a, b| distance(b).total_cmp(&distance(a)));
            found
        };
        let (worse, better) = (with(Verdict::Worse), with(Verdict::Better));
        let n_open = with(Verdict::Inconclusive).len();
        let is_single = all.iter().all(|c| c.relative.n < 2);
        if is_single {
            let more = super::compared::MORE_REPETITIONS;
            return Some(format!("One repetition cannot show a difference. {more}."));
        }
        let of = self.baseline_of(&all);
        let [is_better, is_worse] = match all.iter().all(|c| c.metric == metrics::THROUGHPUT) {
            true => ["faster", "slower"],
            false => ["better", "worse"],
        };
        let threshold = share(self.findings.threshold);
        let open = match n_open {
            0 => String::new(),
            n => format!("; undecided in {n} of {}", count(all.len() as u64, "comparison")),
        };
        let is_same = question == Question::Same;
        let none = match (is_same, n_open) {
            (true, 0) => format!("No variant differs from {of} by more than {threshold}"),
            (true, _) => format!("No variant is shown to differ from {of}"),
            (false, 0) => format!("No variant is {is_worse} than {of} by more than {threshold}"),
            (false, _) => format!("No variant is shown to be {is_worse} than {of}"),
        };
        let (worse, better) = (self.decided(&worse, is_worse), self.decided(&better, is_better));
        Some(match (worse, better) {
            (None, None) => format!("{none}{open}."),
            (None, Some(better)) if is_same => format!("Relative to {of}, {better}{open}."),
            (None, Some(better)) => format!("{none}{open}; {better}."),
            (Some(worse), None) => format!("Relative to {of}, {worse}{open}."),
            (Some(worse), Some(better)) => format!("Relative to {of}, {worse}; {better}{open}."),
        })
    }

    /// `b is slower at 8 clients (0.910×, 95 % CI 0.880–0.940×, n = 5)`, the largest first; none if there are none.
    fn decided(&self, all: &[&Comparison], word: &str) -> Option<String> {
        let named = all.iter().take(NAMED_MOST).enumerate().map(|(nth, c)| {
            let (name, at) = (self.name(c.variant), self.at(c.step));
            if is_nothing(c) {
                return format!("{name} committed nothing {at}");
            }
            let style = self.findings.effect_style(c.metric);
            let interval = style.interval(&c.relative);
            let interval = match nth {
                0 => ci(&c.relative, self.findings.confidence, interval),
                _ => interval.unwrap_or_else(|| "no CI".to_owned()),
            };
            format!("{name} is {word} {at} ({}, {interval})", style.show(c.relative.value))
        });
        let named: Vec<String> = named.collect();
        let more = match all.len().saturating_sub(NAMED_MOST) {
            0 => String::new(),
            n => format!(" and in {}", count(n as u64, "more comparison")),
        };
        (!named.is_empty()).then(|| format!("{}{more}", named.join(", ")))
    }

    /// The baseline's name, or that each has its own.
    fn baseline_of(&self, all: &[&Comparison]) -> String {
        let first = all[0].baseline;
        match all.iter().all(|c| c.baseline == first) {
            true => self.name(first).to_owned(),
            false => "its baseline".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use dyno_units::Question;
    use expect_test::{Expect, expect};

    use crate::fixtures::{run, wobble};
    use crate::{Options, analyse};

    #[track_caller]
    fn check(question: Question, repetitions: u32, rates: &[&[f64]], expected: &Expect) {
        let names = ["16", "17", "18"];
        let names = &names[..rates.len()];
        let mut run = run(names, &[4, 8], repetitions, |variant, step, repetition| {
            rates[variant][step] * wobble(variant, step, repetition)
        });
        run.manifest.questions = vec![question];
        expected.assert_eq(&analyse(&[run], &Options::default()).answer.headline);
    }

    #[test]
    fn a_baseline_is_answered_against() {
        use Question::{Same, Worse};
        check(
            Worse,
            5,
            &[&[1e3, 2e3], &[900.0, 2e3], &[1e3, 3e3]],
            &expect![
                "Relative to 16, 17 is slower at 4 clients (−10.1 %, 95 % CI −11.2 to −8.8 %, n = 5); 18 is faster at 8 clients (+49.4 %, 95 % CI +47.5 to +51.4 %, n = 5)."
            ],
        );
        check(
            Worse,
            10,
            &[&[1e3, 2e3], &[1e3, 2e3], &[1e3, 3e3]],
            &expect![
                "No variant is slower than 16 by more than 3 %; 18 is faster at 8 clients (+50.0 %, 95 % CI +48.7 to +51.3 %, n = 10)."
            ],
        );
        check(
            Worse,
            3,
            &[&[1e3, 2e3], &[1010.0, 2e3], &[1e3, 2050.0]],
            &expect!["No variant is shown to be slower than 16; undecided in 1 of 4 comparisons."],
        );
        check(
            Worse,
            1,
            &[&[1e3, 2e3], &[900.0, 2e3], &[1e3, 2e3]],
            &expect!["One repetition cannot show a difference. Raise `repetitions` to at least 3."],
        );
        check(
            Same,
            10,
            &[&[1e3, 2e3], &[1e3, 2e3], &[1e3, 2e3]],
            &expect!["No variant differs from 16 by more than 3 %."],
        );
        check(
            Same,
            3,
            &[&[1e3, 2e3], &[1010.0, 2e3], &[1e3, 2e3]],
            &expect!["No variant differs from 16 by more than 3 %."],
        );
        check(
            Same,
            5,
            &[&[1e3, 2e3], &[900.0, 2e3], &[1e3, 2e3]],
            &expect![
                "Relative to 16, 17 is slower at 4 clients (−10.1 %, 95 % CI −11.2 to −8.8 %, n = 5)."
            ],
        );
    }
}
