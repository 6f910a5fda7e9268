//! The sentence on deferred work of engines.

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
    assert!(said.contains("caught up: innodb 4×, postgresql 0.5× (n = 3)."), "{said}");
    assert!(!answer(Question::Best).contains("Deferred work"));
}
