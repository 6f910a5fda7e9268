//! Several variants of a second run, compared with the first.

use std::path::PathBuf;

use expect_test::{Expect, expect};

use super::noisy;
use crate::{Options, analyse_against};

#[track_caller]
fn check(clients: &[u64], rates: &[&[f64]], expected: &Expect) {
    let first = noisy(&["a", "b"], &[4], 8, &[&[1000.0], &[2000.0]]);
    let mut second = noisy(&["a", "b"], clients, 8, rates);
    second.folder = PathBuf::from("runs/second");
    expected.assert_eq(&analyse_against(&first, &second, &Options::default()).answer.headline);
}

#[test]
fn a_second_run_is_told_relative_to_the_first() {
    check(
        &[4],
        &[&[900.0], &[2000.0]],
        &expect![
            "Relative to the first run, a (second) is slower at 4 clients (0.900×, 95 % CI 0.893–0.907×, n = 8)."
        ],
    );
    check(
        &[4],
        &[&[1001.0], &[2001.0]],
        &expect!["No variant is slower than in the first run by more than 3 %."],
    );
    check(
        &[4, 8],
        &[&[900.0, 900.0], &[2000.0, 2000.0]],
        &expect![
            "These runs did different work. Relative to the first run, a (second) is slower at 4 clients (0.900×, 95 % CI 0.893–0.907×, n = 8)."
        ],
    );
}
