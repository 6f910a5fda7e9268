//! Data in memory.

use dyno_record::{MemberFacts, PlaceFacts};

use crate::fixtures::run;
use crate::{CaveatKind, Options, analyse};

#[test]
fn data_in_memory_have_a_caveat() {
    let check = |survives: Option<bool>, expected: Option<&str>| {
        let mut run = run(&["disk", "memory"], &[4], 3, |_, _, _| 1_000.0);
        for trial in run.trials.iter_mut().filter(|trial| trial.variant == 1) {
            let place = PlaceFacts {
                filesystem: Some("tmpfs".to_owned()),
                survives_power_failure: survives,
                ..PlaceFacts::default()
            };
            trial.members = vec![MemberFacts { place: Some(place), ..MemberFacts::default() }];
        }
        let findings = analyse(&[run], &Options::default());
        let found = findings.caveats.iter().find(|one| one.kind == CaveatKind::InMemory);
        assert_eq!(found.map(|one| one.message.as_str()), expected);
        assert!(found.is_none_or(|one| one.variants == [1]));
    };
    check(Some(false), Some("The data were in memory (tmpfs): memory."));
    check(Some(true), None);
    check(None, None);
}
