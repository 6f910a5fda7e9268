//! Variants over steps that do different work.

use dyno_record::Run;
use expect_test::{Expect, expect};

use super::{make_own, noisy};
use crate::{Options, analyse};

/// The headline, and the lines below it.
#[track_caller]
fn check(mut run: Run, expected: &Expect) {
    make_own(&mut run);
    let answer = analyse(&[run], &Options::default()).answer;
    expected.assert_eq(&format!("{}\n{}", answer.headline, answer.lines.join("\n")));
}

/// Without the second step of all variants but the first.
fn cut_short(repetitions: u32) -> Run {
    let rates: [&[f64]; 2] = [&[1000.0, 10.0], &[1500.0, 10.0]];
    let mut run = noisy(&["a", "b"], &[4, 8], repetitions, &rates);
    for trial in run.trials.iter_mut().filter(|trial| trial.variant > 0) {
        trial.steps.truncate(1);
    }
    run
}

#[test]
fn who_is_alone_at_a_step_has_not_won_it() {
    check(
        cut_short(5),
        &expect![[r#"
        b is fastest at 4 clients (1,500 transactions/s); undecided between a and b at 8 clients.
        Throughput: +49.9 % (95 % CI +47.4 to +52.5 %, n = 5), better.
        p95 response time: −33.2 % (95 % CI −34.2 to −32.1 %, n = 5), better.
        Server CPU per transaction: −33.3 % (95 % CI −34.4 to −32.1 %, n = 5), better."#]],
    );
    check(
        cut_short(1),
        &expect![[r#"
        One repetition cannot rank variants at 4 clients; undecided between a and b at 8 clients.
        Throughput: +51.3 % (n = 1, no CI), undecided.
        p95 response time: −33.4 % (n = 1, no CI), undecided.
        Raise `repetitions` to at least 3."#]],
    );
    // Who commits nothing is behind, if that was repeated.
    let rates: [&[f64]; 2] = [&[1000.0, 10.0], &[1500.0, 0.0]];
    check(
        noisy(&["a", "b"], &[4, 8], 5, &rates),
        &expect![[r#"
        b is fastest at 4 clients (1,500 transactions/s); a at 8 clients (10.0 transactions/s).
        Throughput: faster at 4 clients (1.50×, 1.47–1.52×); slower at 8 clients (nothing committed); 95 % CIs, n = 5.
        p95 response time: −33.2 % (95 % CI −34.2 to −32.1 %, n = 5), better.
        Server CPU per transaction: −33.3 % (95 % CI −34.4 to −32.1 %, n = 5), better."#]],
    );
    check(
        noisy(&["a", "b"], &[4, 8], 1, &rates),
        &expect![[r#"
        One repetition cannot rank variants at 4 clients and 8 clients. Raise `repetitions` to at least 3.
        Throughput: undecided at both steps, 0× (8 clients) to 1.51× (4 clients); n = 1, no CI.
        p95 response time: −33.4 % (n = 1, no CI), undecided.
        Raise `repetitions` to at least 3."#]],
    );
}

#[test]
fn a_headline_by_step_has_its_comparisons_as_data() {
    let rates: [&[f64]; 3] = [&[1000.0, 10.0], &[1500.0, 10.0], &[900.0, 20.0]];
    let mut run = noisy(&["a", "b", "c"], &[4, 8], 5, &rates);
    make_own(&mut run);
    let claims = analyse(&[run], &Options::default()).answer.claims;
    let pairs: Vec<_> =
        claims.iter().map(|one| (one.variant, one.other, one.steps.clone())).collect();
    let of = |pair: [usize; 2], step: usize| (pair[0], pair[1], vec![step]);
    assert_eq!(pairs.len(), 4, "{pairs:?}");
    assert!(pairs.contains(&of([1, 0], 0)) && pairs.contains(&of([2, 1], 1)), "{pairs:?}");
}
