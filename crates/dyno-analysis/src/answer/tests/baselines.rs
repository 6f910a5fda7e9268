//! The headline of a study that asks whether any variant is worse than its baseline, or differs from it.

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
            "Relative to 16, 17 is slower at 4 clients (−10.1 %, 95 % CI −11.2 to −8.8 %, n = 5); no difference in 3 of 4 comparisons."
        ],
    );
}
