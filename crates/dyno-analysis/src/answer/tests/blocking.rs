//! The sentence on whether something beside the load blocks it.

use expect_test::{Expect, expect};

use dyno_units::Question;

use crate::fixtures::{make_open, run, wobble};
use crate::{Options, analyse};

/// The first two sentences, for these response times.
#[track_caller]
fn check(question: Question, response_ms: &[f64], expected: &Expect) {
    let names = ["without", "skips", "waits", "holds"];
    let names = &names[..response_ms.len()];
    let mut run = run(names, &[10], 5, |variant, step, repetition| {
        10_000.0 / response_ms[variant] * wobble(variant, step, repetition)
    });
    run.manifest.questions = vec![question];
    make_open(&mut run);
    let answer = analyse(&[run], &Options::default()).answer;
    let lines = answer.lines.first().cloned().unwrap_or_default();
    expected.assert_eq(&format!("{}\n{lines}", answer.headline));
}

#[test]
fn the_worst_is_named_and_the_others_are_judged() {
    check(
        Question::Blocks,
        &[2.0, 2.0, 600.0],
        &expect![[r#"
            The p95 response time of waits is 302× that of without (95 % CI 297–306×, n = 5); skips makes no difference.
            skips vs. without: p95 response time 1.00× (95 % CI 0.988–1.02×, n = 5), no difference."#]],
    );
    check(
        Question::Blocks,
        &[2.0, 3.0, 600.0],
        &expect![[r#"
            The p95 response time of waits is 302× that of without (95 % CI 297–306×, n = 5); skips is also worse.
            skips vs. without: p95 response time 1.50× (95 % CI 1.48–1.52×, n = 5), worse."#]],
    );
    check(
        Question::Blocks,
        &[2.0, 2.0, 2.0, 600.0],
        &expect![[r#"
            The p95 response time of holds is 301× that of without (95 % CI 297–304×, n = 5); skips and waits make no difference.
            skips vs. without: p95 response time 1.00× (95 % CI 0.990–1.01×, n = 5), no difference."#]],
    );
}

#[test]
fn where_nothing_blocks_that_is_said() {
    check(
        Question::Blocks,
        &[2.0, 2.0, 2.0],
        &expect![[r#"
            No variant is worse than without by more than 3 %.
            skips vs. without: p95 response time +0.2 % (95 % CI −1.2 to +1.6 %, n = 5), no difference."#]],
    );
    check(
        Question::Blocks,
        &[2.0, 2.0],
        &expect![[r#"
        skips does not block the load: skips and without are within 3 % of each other in p95 response time at 1000/s offered.
        p95 response time: +0.2 % (95 % CI −1.4 to +1.8 %, n = 5), no difference."#]],
    );
    check(
        Question::Blocks,
        &[2.0, 1.0],
        &expect![[r#"
        The p95 response time of skips is 49.9 % shorter than that of without: 1.94 ms against 3.87 ms at 1000/s offered.
        p95 response time: −49.9 % (95 % CI −50.7 to −49.1 %, n = 5), better."#]],
    );
    check(
        Question::Best,
        &[2.0, 2.0, 600.0],
        &expect![[r#"
            Undecided which is best at 1000/s offered: without had the shortest p95 response time (3.87 ms), not shown to be better than skips; the other measured worse.
            skips vs. without: p95 response time 1.00× (95 % CI 0.988–1.02×, n = 5), no difference."#]],
    );
}
