//! Verdicts of one run against another are counted.

use crate::Verdict;
use crate::answer::versus::headline;

#[test]
fn verdicts_are_counted() {
    use Verdict::{Inconclusive, NoDifference, Worse};
    let check = |verdicts: &[Verdict], expected: &str| {
        assert_eq!(headline("throughput", verdicts), expected);
    };
    check(
        &[Inconclusive, Worse, Inconclusive],
        "Throughput, second run relative to the first, 3 comparisons: 1 worse and 2 inconclusive.",
    );
    check(
        &[NoDifference, NoDifference],
        "Throughput, second run relative to the first, 2 comparisons: 2 no difference.",
    );
}
