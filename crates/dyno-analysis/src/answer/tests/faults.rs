//! Faults made by the study.

use crate::FaultFacts;
use crate::answer::faults::{in_short, lost, part};

#[test]
fn what_was_lost_is_said() {
    let check = |all: &[Option<(u64, u64)>], expected: &str| {
        let facts: Vec<FaultFacts> =
            all.iter().map(|lost| FaultFacts { lost: *lost, ..FaultFacts::default() }).collect();
        assert_eq!(lost(&facts).unwrap_or_default(), expected);
    };
    check(&[None], "");
    check(&[Some((0, 0)), Some((0, 0))], "no confirmed transaction lost");
    check(&[Some((40, 40))], "40 confirmed transactions lost");
    check(&[Some((40, 44))], "40 to 44 confirmed transactions lost");
    check(&[Some((0, 0)), Some((2, 5))], "0 to 5 confirmed transactions lost per trial");
    check(&[Some((0, 32))], "no loss shown (at most 32 confirmed transactions)");
}

#[test]
fn a_headline_says_how_long_nothing_was_committed() {
    let check = |away: &[(f64, &str)], expected: Option<&str>| {
        assert_eq!(in_short(away).as_deref(), expected);
    };
    check(&[], None);
    check(&[(1.5, "a")], Some("a committed nothing for 1.5 s"));
    let two = [(1.5, "a"), (3.0, "b")];
    check(&two, Some("nothing was committed for 1.5 s with a and 3 s with b"));
    let three = [(2.0, "a"), (1.0, "b"), (3.0, "c")];
    check(&three, Some("nothing was committed for 1 s with b to 3 s with c"));
}

#[test]
fn faults_of_all_trials_are_one_sentence() {
    let one = |away: f64, recovered_after_s: Option<f64>| FaultFacts {
        away_s: Some(away),
        recovered_after_s,
        ..FaultFacts::default()
    };
    let check = |faults: &[FaultFacts], expected: &str| {
        assert_eq!(part("pg", &faults.iter().collect::<Vec<_>>()), expected);
    };
    check(&[one(4.2, Some(5.5))], "pg committed nothing for 4.2 s, recovered after 5.5 s");
    check(
        &[one(4.0, Some(5.0)), one(6.0, None), one(5.0, Some(7.0))],
        "pg committed nothing for 5 s (median of 3, range 4 s to 6 s), recovered after 6 s (median of 2, \
         range 5 s to 7 s); not recovered by the end of the measurement in 1 of 3 faults",
    );
    check(
        &[one(9.0, None), one(9.0, None)],
        "pg committed nothing for 9 s (median of 2, range 9 s to 9 s), not recovered by the end of the measurement \
         in any of 2 faults",
    );
    check(
        &[one(9.0, None)],
        "pg committed nothing for 9 s, not recovered by the end of the measurement",
    );
}
