//! The sentence on variation of throughput during the measurement.

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
         52 % (n = 3)."
    );
    assert!(!answer(Question::Best).concat().contains("within 10 %"));
}
