//! The sentence on reads of the data disk per transaction.

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
        said.contains("Data disk reads per transaction at 8 clients: xfs 1, zfs 2.5 (n = 3)."),
        "{said}"
    );
    assert!(!answer(Question::Best).contains("Data disk reads"));
}
