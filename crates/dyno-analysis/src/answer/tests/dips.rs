//! Dips of a volume's limit that the study made.

use crate::MadeDips;
use crate::answer::figures::line;

#[test]
fn dips_of_all_trials_are_one_line() {
    let one = MadeDips {
        volume: "dipping".to_owned(),
        made: 3,
        found: 3,
        period_s: Some(10.0),
        found_period_s: Some(9.98),
        level_left: Some(0.018),
        ..MadeDips::default()
    };
    let check = |dips: &[&MadeDips], expected: &str| assert_eq!(line("dipping", dips), expected);
    check(
        &[&one, &MadeDips { others: 1, ..one.clone() }],
        "Volume dipping was slowed down 6 times: 6 detected as stalls, 10.0 s apart (made 10.0 s apart); \
         throughput fell to 1.8 % of its level between them; 1 other stall.",
    );
    // A single dip has no period; without bins there is no depth.
    let single = MadeDips {
        made: 1,
        found: 0,
        period_s: None,
        found_period_s: None,
        level_left: None,
        ..one
    };
    check(
        &[&single],
        "Volume dipping was slowed down 1 time: 0 detected as stalls; no other stalls.",
    );
}
