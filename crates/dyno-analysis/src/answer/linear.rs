//! The sentence on whether throughput grows faster than what is varied: shards, workers, threads.

use dyno_units::Varied;

use super::{AnswerWriter, At};
use crate::numbers::EffectStyle;
use crate::statistics::{Call, Effect, calls_at};
use crate::words::share;
use crate::{Comparison, Verdict, metrics};

const NAMED_MOST: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growth {
    /// Also after correction for the number of levels.
    More,
    Less,
    Open,
}

struct Grown<'a> {
    level: f64,
    /// The baseline's level.
    least: f64,
    /// Multiple of the baseline's.
    multiple: f64,
    comparison: &'a Comparison,
}

impl AnswerWriter<'_> {
    /// Whether throughput at the last step grows faster than the one number that is varied, against the variant
    /// with the least of it; none if not exactly one is varied, the baseline is another variant, or the step is
    /// not judged by throughput.
    pub(super) fn linear(&self) -> Option<String> {
        let (factor, all) = self.grown_with_number()?;
        let verdicts = self.growths(&all);
        let first = verdicts.iter().position(|one| *one == Growth::More);
        let what = match first {
            Some(first) if verdicts[first..].iter().all(|one| *one == Growth::More) => {
                let from = match first {
                    0 => String::new(),
                    _ => format!(" from {} upwards", all[first].level),
                };
                format!("superlinear in {factor}{from}")
            }
            Some(first) => format!("superlinear in {factor} at {}", all[first].level),
            None if verdicts.iter().all(|one| *one == Growth::Less) => {
                format!("sublinear in {factor}")
            }
            None => format!("not shown to be superlinear in {factor}"),
        };
        Some(format!("Throughput is {what}: {}.", self.growth_in_numbers(&all)))
    }

    /// What more of the one number that is varied brings, by the same comparisons.
    pub(super) fn grown(&self) -> Option<String> {
        let (factor, all) = self.grown_with_number()?;
        let first = all.first().filter(|_| Varied::counts_members(factor))?;
        let place = match self.findings.steps.len() {
            1 => String::new(),
            _ => format!(" {}", self.at(first.comparison.step)),
        };
        let is_open = all.iter().all(|one| one.comparison.verdict == Verdict::Inconclusive);
        let numbers = self.growth_in_numbers(&all);
        let least = first.least;
        Some(match is_open {
            true => format!(
                "Undecided whether throughput{place} grows with the number of {factor}, relative to \
                 {least}: {numbers}."
            ),
            false => {
                format!("Throughput{place} by number of {factor}, relative to {least}: {numbers}.")
            }
        })
    }

    fn grown_with_number(&self) -> Option<(&str, Vec<Grown<'_>>)> {
        let (factor, levels) = self.only_number()?;
        let step = self.findings.steps.len().checked_sub(1)?;
        if self.main_metric(step) != metrics::THROUGHPUT || self.is_mismatched() {
            return None;
        }
        let mut all = Vec::new();
        for variant in self.compared_variants() {
            let comparisons = self.comparisons_of(variant, metrics::THROUGHPUT);
            let comparison = comparisons.into_iter().find(|c| c.step == step)?;
            let (level, least) = (levels[variant], levels[comparison.baseline]);
            if least <= 0.0 || level <= least {
                return None;
            }
            all.push(Grown { level, least, multiple: level / least, comparison });
        }
        all.sort_by(|a, b| a.level.total_cmp(&b.level));
        (!all.is_empty()).then_some((factor, all))
    }

    /// `1.50× at 2 (95 % CI 1.48–1.52×), 2.99× at 4 (2.95–3.03×); n = 5`
    fn growth_in_numbers(&self, all: &[Grown<'_>]) -> String {
        let style = EffectStyle::of(all.iter().map(|one| &one.comparison.relative));
        let named = all.iter().skip(all.len().saturating_sub(NAMED_MOST));
        let parts: Vec<String> = named
            .enumerate()
            .map(|(nth, one)| {
                let effect = &one.comparison.relative;
                let word = match (nth, effect.n) {
                    (0, 2) => "two repetitions: ".to_owned(),
                    (0, _) => format!("{} CI ", share(self.findings.confidence)),
                    _ => String::new(),
                };
                let interval = style.interval(effect).map_or("no CI".to_owned(), |ci| word + &ci);
                format!("{} at {} ({interval})", style.show(effect.value), one.level)
            })
            .collect();
        let n = all.iter().map(|one| one.comparison.relative.n).min().unwrap_or(0);
        format!("{}; n = {n}", parts.join(", "))
    }

    /// "Superlinear at N" is corrected for the number of levels (Holm); "sublinear" is said of all
    /// together, without correction.
    fn growths(&self, all: &[Grown<'_>]) -> Vec<Growth> {
        let rule = self.ranker.levels.rule;
        let beyond_linear = |one: &Grown<'_>| -> (Option<Effect>, f64) {
            let Comparison { variant, baseline, step, .. } = *one.comparison;
            let at = |variant, log_factor| At { variant, step, log_factor };
            let (ours, theirs) = (at(variant, -one.multiple.ln()), at(baseline, 0.0));
            let effect = self.ranker.log_ratio(metrics::THROUGHPUT, ours, theirs);
            (effect, self.ranker.strict_level((variant, baseline)))
        };
        let effects: Vec<(Option<Effect>, f64)> = all.iter().map(beyond_linear).collect();
        let together = calls_at(&effects, rule).into_iter().map(|(call, _)| call);
        let growth = |(call, effect): (Call, &(Option<Effect>, f64))| {
            let alone = calls_at(std::slice::from_ref(effect), rule);
            match (call, alone.as_slice()) {
                (Call::Higher, _) => Growth::More,
                (_, [(Call::Lower, _)]) => Growth::Less,
                _ => Growth::Open,
            }
        };
        together.zip(&effects).map(growth).collect()
    }

    /// The only varied factor and each variant's level, if they are numbers.
    fn only_number(&self) -> Option<(&str, Vec<f64>)> {
        let variants = &self.findings.variants;
        let level = |variant: usize, factor: &str| {
            let levels = variants[variant].levels.iter();
            levels.clone().find(|(name, _)| name == factor).map(|(_, level)| level.as_str())
        };
        let first = variants.first()?;
        let differs = |factor: &&(String, String)| {
            (1..variants.len()).any(|v| level(v, &factor.0) != Some(factor.1.as_str()))
        };
        let varied: Vec<&(String, String)> = first.levels.iter().filter(differs).collect();
        let [(factor, _)] = varied.as_slice() else { return None };
        let numbers = (0..variants.len()).map(|v| level(v, factor)?.parse::<f64>().ok());
        let levels = numbers.collect::<Option<Vec<f64>>>()?;
        Some((factor.rsplit('.').next().unwrap_or(factor), levels))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use dyno_record::LevelRecord;
    use dyno_units::Question;

    use crate::fixtures::{run, wobble};
    use crate::{Options, analyse};

    /// The headline, for these levels and throughputs.
    #[track_caller]
    fn check_question(question: Question, levels: &[(&str, f64)], expected: &Expect) {
        let names: Vec<&str> = levels.iter().map(|(level, _)| *level).collect();
        let mut run = run(&names, &[8], 5, |variant, step, repetition| {
            levels[variant].1 * wobble(variant, step, repetition)
        });
        run.manifest.questions = vec![question];
        for (variant, (level, _)) in run.manifest.variants.iter_mut().zip(levels) {
            let factor = "database.shards".to_owned();
            variant.levels = vec![LevelRecord { factor, level: (*level).to_owned() }];
        }
        let answer = analyse(&[run], &Options::default()).answer;
        let words = answer.headline.split_whitespace().count();
        // Of percentages, signs and units count as well.
        assert!(words <= 32, "{words} words: {}", answer.headline);
        expected.assert_eq(&answer.headline);
    }

    #[track_caller]
    fn check(levels: &[(&str, f64)], expected: &Expect) {
        check_question(Question::Linear, levels, expected);
    }

    #[test]
    fn growth_is_told_where_a_study_asks_how_throughput_scales() {
        let check = |levels, expected: &Expect| check_question(Question::Scales, levels, expected);
        check(
            &[("1", 100.0), ("2", 150.0), ("3", 187.0)],
            &expect![
                "Throughput by number of shards, relative to 1: +49.9 % at 2 (95 % CI +47.8 to +52.1 %), +86.3 % at 3 (+83.8 to +88.9 %); n = 5."
            ],
        );
        check(
            &[("1", 100.0), ("2", 101.0), ("3", 100.0)],
            &expect![
                "Throughput by number of shards, relative to 1: +0.9 % at 2 (95 % CI −0.5 to +2.4 %), −0.4 % at 3 (−1.8 to +1.0 %); n = 5."
            ],
        );
    }

    #[test]
    fn growth_is_compared_with_that_of_the_number_that_is_varied() {
        check(
            &[("1", 29.0), ("2", 67.0), ("3", 150.0), ("4", 219.0), ("8", 500.0)],
            &expect![
                "Throughput is superlinear in shards: 5.15× at 3 (95 % CI 5.09–5.22×), 7.55× at 4 (7.46–7.64×), 17.2× at 8 (17.0–17.5×); n = 5."
            ],
        );
        check(
            &[("1", 100.0), ("2", 150.0), ("4", 900.0)],
            &expect![
                "Throughput is superlinear in shards from 4 upwards: 1.50× at 2 (95 % CI 1.48–1.52×), 8.97× at 4 (8.84–9.09×); n = 5."
            ],
        );
        check(
            &[("1", 100.0), ("2", 150.0), ("4", 300.0)],
            &expect![
                "Throughput is sublinear in shards: 1.50× at 2 (95 % CI 1.48–1.52×), 2.99× at 4 (2.95–3.03×); n = 5."
            ],
        );
        check(
            &[("1", 100.0), ("2", 200.0), ("4", 300.0)],
            &expect![
                "Throughput is not shown to be superlinear in shards: 2.00× at 2 (95 % CI 1.97–2.03×), 2.99× at 4 (2.95–3.03×); n = 5."
            ],
        );
        check(
            &[("1", 100.0), ("2", 250.0), ("4", 300.0)],
            &expect![
                "Throughput is superlinear in shards at 2: 2.50× at 2 (95 % CI 2.46–2.54×), 2.99× at 4 (2.95–3.03×); n = 5."
            ],
        );
    }

    #[test]
    fn levels_that_are_no_numbers_are_ranked_as_usual() {
        check(
            &[("few", 100.0), ("many", 300.0)],
            &expect![
                "many is 3.00× as fast as few: 300 transactions/s against 100/s at 8 clients."
            ],
        );
    }
}
