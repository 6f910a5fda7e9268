//! The sentence on deferred work of engines.

use super::AnswerWriter;
use crate::debt::DebtFacts;
use crate::words::number;

const NAMED_MOST: usize = 4;

impl AnswerWriter<'_> {
    /// Deferred work at the end of the last known step, over the level that counts as caught up.
    pub(super) fn fallen_behind(&self) -> Option<String> {
        let gauges = || self.findings.debt.iter().filter(|facts| facts.gauge);
        let step = gauges().map(|facts| facts.step).max()?;
        let mut here: Vec<&DebtFacts> = gauges().filter(|facts| facts.step == step).collect();
        here.sort_by(|a, b| b.at_end.value.total_cmp(&a.at_end.value));
        let named: Vec<String> = here
            .iter()
            .take(NAMED_MOST)
            .map(|facts| format!("{} {}×", self.name(facts.variant), number(facts.at_end.value)))
            .collect();
        let more = if here.len() > NAMED_MOST { ", …" } else { "" };
        Some(format!(
            "Deferred work at the end ({}), relative to the level at which an engine counts as caught \
             up: {}{more}.",
            self.step(step),
            named.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use dyno_units::Question;
    use dyno_units::reading::known;
    use dyno_units::reading::prelude::*;

    use crate::fixtures::run;
    use crate::{Options, analyse};

    #[test]
    fn a_study_that_asks_who_falls_behind_is_answered_with_it() {
        let answer = |question: Question| {
            let mut run = run(&["innodb", "postgresql"], &[8], 3, |_, _, _| 1_000.0);
            run.manifest.questions = vec![question];
            for trial in &mut run.trials {
                let meaning = reading(known::DEBT_GAUGE, Number, "deferred work", "deferred work");
                let meaning = meaning.topic(Topic::Debt).role(Role::DebtGauge);
                trial.meanings.insert(known::DEBT_GAUGE.to_owned(), meaning);
                let gauge = [4.0, 0.5][trial.variant];
                for step in &mut trial.steps {
                    let n = step.intervals.start_s.len();
                    step.readings.insert(known::DEBT_GAUGE.to_owned(), vec![Some(gauge); n]);
                }
            }
            analyse(&[run], &Options::default()).answer.headline
        };
        let said = answer(Question::Backlog);
        assert!(said.contains("caught up: innodb 4×, postgresql 0.5×."), "{said}");
        assert!(!answer(Question::Best).contains("Deferred work"));
    }
}
