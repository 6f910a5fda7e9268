//! The sentence on variation of throughput during the measurement.

use super::AnswerWriter;
use crate::Cell;
use crate::time::{Steadiness, TimeFacts};
use crate::words::share;

const NAMED_MOST: usize = 4;

impl AnswerWriter<'_> {
    /// Share of seconds near each variant's median, at the heaviest load known for all.
    pub(super) fn evenness(&self) -> Option<String> {
        let score = |cell: &Cell| {
            let is_judged = |facts: &&TimeFacts| facts.steadiness != Steadiness::TooShort;
            let scores: Vec<f64> =
                cell.time.iter().filter(is_judged).map(|facts| facts.score).collect();
            (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64)
        };
        let variants = self.findings.variants.len();
        let of_step = |step: usize| -> Option<Vec<(usize, f64)>> {
            (0..variants).map(|one| Some((one, score(self.cell(one, step)?)?))).collect()
        };
        let found =
            (0..self.findings.steps.len()).rev().find_map(|step| Some((step, of_step(step)?)));
        let (step, mut all) = found?;
        all.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let named: Vec<String> = all
            .iter()
            .take(NAMED_MOST)
            .map(|(variant, score)| format!("{} {}", self.name(*variant), share(*score)))
            .collect();
        let more = if all.len() > NAMED_MOST { "; the others in fewer" } else { "" };
        Some(format!(
            "Share of seconds within 10 % of the median throughput {}: {}{more}.",
            self.at(step),
            named.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use dyno_units::Question;

    use crate::fixtures::run;
    use crate::{Options, analyse};

    /// More than the minimum for a judgement.
    const SECONDS: usize = 31;

    #[test]
    fn a_study_that_asks_how_much_throughput_varies_is_answered() {
        let answer = |question: Question| {
            let mut run = run(&["together", "apart"], &[1, 8], 3, |_, _, _| 1_000.0);
            run.manifest.questions = vec![question];
            for trial in &mut run.trials {
                for step in &mut trial.steps {
                    // High and low in turn.
                    let low = [1_000.0, 400.0][trial.variant];
                    let second = |i: usize| if i.is_multiple_of(2) { 1_000.0 } else { low };
                    step.measured_s = SECONDS as f64;
                    step.intervals.start_s = (0..SECONDS).map(|i| i as f64).collect();
                    step.intervals.throughput = (0..SECONDS).map(second).collect();
                    step.readings.clear();
                }
            }
            let answer = analyse(&[run], &Options::default()).answer;
            [vec![answer.headline], answer.lines].concat()
        };
        let said = answer(Question::Steady);
        assert_eq!(
            said[0],
            "Share of seconds within 10 % of the median throughput at 8 clients: together 100 %, apart \
             52 %."
        );
        assert!(!answer(Question::Best).concat().contains("within 10 %"));
    }
}
