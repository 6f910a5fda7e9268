//! The sentence on reads of the data disk per transaction.

use super::AnswerWriter;
use crate::words::number;

const READS: &str = "reads.data";
const NAMED_MOST: usize = 4;

impl AnswerWriter<'_> {
    /// At the heaviest load with known reads.
    pub(super) fn reads_of_the_disk(&self) -> Option<String> {
        let of_step = |step: usize| -> Vec<String> {
            let facts = self.findings.attribution.iter().filter(|facts| facts.step == step);
            facts
                .filter_map(|facts| {
                    let used = facts.uses.iter().find(|used| used.name == READS)?;
                    let reads = used.per_transaction.as_ref()?.value;
                    Some(format!("{} {}", self.name(facts.variant), number(reads)))
                })
                .collect()
        };
        let steps = (0..self.findings.steps.len()).rev();
        let (step, named) =
            steps.map(|step| (step, of_step(step))).find(|(_, all)| !all.is_empty())?;
        let more = if named.len() > NAMED_MOST { ", …" } else { "" };
        let named: Vec<&str> = named.iter().map(String::as_str).take(NAMED_MOST).collect();
        Some(format!(
            "Data disk reads per transaction {}: {}{more}.",
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

    #[test]
    fn a_study_that_asks_for_reads_is_answered_with_them() {
        let answer = |question: Question| {
            let mut run = run(&["xfs", "zfs"], &[8], 3, |_, _, _| 1_000.0);
            run.manifest.questions = vec![question];
            for trial in &mut run.trials {
                let rate = [1_000.0, 2_500.0][trial.variant];
                for step in &mut trial.steps {
                    let n = step.intervals.start_s.len();
                    step.readings.insert("data_disk.reads_per_s".to_owned(), vec![Some(rate); n]);
                }
            }
            let answer = analyse(&[run], &Options::default()).answer;
            [vec![answer.headline], answer.lines].concat().join("\n")
        };
        let said = answer(Question::Reads);
        assert!(
            said.contains("Data disk reads per transaction at 8 clients: xfs 1, zfs 2.5."),
            "{said}"
        );
        assert!(!answer(Question::Best).contains("Data disk reads"));
    }
}
