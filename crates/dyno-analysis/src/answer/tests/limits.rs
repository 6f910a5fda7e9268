//! The headline of a study with limits.

use dyno_record::RequirementRecord;
use dyno_units::Question;
use expect_test::{Expect, expect};

use crate::fixtures::{run, wobble};
use crate::{Options, analyse};

#[track_caller]
fn check(bound_us: f64, expected: &Expect) {
    check_repeated((bound_us, 3), expected);
}

#[track_caller]
fn check_repeated((bound_us, repetitions): (f64, u32), expected: &Expect) {
    let rates = [[1000.0, 2000.0, 2200.0], [900.0, 3000.0, 6000.0]];
    let mut run =
        run(&["alone", "pooled"], &[1, 4, 16], repetitions, |variant, step, repetition| {
            rates[variant][step] * wobble(variant, step, repetition)
        });
    run.manifest.questions = vec![Question::Limit];
    run.manifest.requirements = vec![RequirementRecord {
        text: "mean ≤ the limit".to_owned(),
        measure: "mean".to_owned(),
        bound: bound_us,
        is_in_own_unit: false,
        is_least: None,
    }];
    let answer = analyse(&[run], &Options::default()).answer;
    expected.assert_eq(&format!("{}\n{}", answer.headline, answer.lines[0]));
}

#[test]
fn what_fits_within_the_limit_is_said_for_each_variant() {
    check(
        4_000.0,
        &expect![[r#"
        Highest throughput shown within mean ≤ the limit: pooled 5,990 transactions/s at 16 clients; alone 2,000/s at 4 clients.
        Required: mean ≤ the limit: not met by alone (16 clients); met everywhere else."#]],
    );
    check(
        1_200.0,
        &expect![[r#"
        No variant met mean ≤ the limit at any load level.
        Required: mean ≤ the limit: not met by alone (all 3 load levels) and pooled (all 3 load levels)."#]],
    );
    check(
        1_050.0,
        &expect![[r#"
        No variant met mean ≤ the limit at any load level.
        Required: mean ≤ the limit: not met by alone (all 3 load levels) and pooled (all 3 load levels)."#]],
    );
    check(
        100.0,
        &expect![[r#"
        No variant met mean ≤ the limit at any load level.
        Required: mean ≤ the limit: not met by alone (all 3 load levels) and pooled (all 3 load levels)."#]],
    );
}

#[test]
fn one_repetition_shows_nothing_within_a_limit() {
    check_repeated(
        (4_000.0, 1),
        &expect![[r#"
        Highest throughput measured once within mean ≤ the limit, which one repetition cannot show: pooled 5,980 transactions/s at 16 clients; alone 2,010/s at 4 clients.
        Required: mean ≤ the limit: one repetition cannot show it; measured once: not met by alone (16 clients); met everywhere else."#]],
    );
}
