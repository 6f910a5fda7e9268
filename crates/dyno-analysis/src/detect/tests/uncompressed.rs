//! A compressing filesystem that stored data uncompressed.

use dyno_record::{MemberFacts, PlaceFacts};

use crate::fixtures::run;
use crate::{CaveatKind, Options, analyse};

/// For two variants on btrfs with these uncompressed shares.
fn message(options: &str, shares: [f64; 2], compressibility: f64) -> Option<String> {
    let mut run = run(&["populated", "restored"], &[4], 3, |_, _, _| 1_000.0);
    for trial in &mut run.trials {
        let place = PlaceFacts { options: Some(options.to_owned()), ..PlaceFacts::default() };
        trial.members = vec![MemberFacts { place: Some(place), ..MemberFacts::default() }];
        for step in &mut trial.steps {
            let figures = [
                ("data.stored_uncompressed", shares[trial.variant]),
                ("data.compressibility", compressibility),
            ];
            step.figures
                .extend(figures.map(|(name, value)| (dyno_units::MetricId::new(name), value)));
        }
    }
    let findings = analyse(&[run], &Options::default());
    let found = findings.caveats.iter().find(|one| one.kind == CaveatKind::StoredUncompressed);
    assert!(found.is_none_or(|one| one.variants == [0]), "{found:?}");
    found.map(|one| one.message.clone())
}

#[test]
fn data_that_would_compress_have_a_caveat() {
    let forced = "rw,noatime,compress-force=zstd:1,space_cache=v2";
    assert_eq!(
        message(forced, [97.2, 12.0], 2.13).as_deref(),
        Some(
            "The filesystem compresses, but stored most of the data uncompressed: populated (97 %). They \
             are compressible: a sample shrinks by a factor of 2.1. It stored a smaller share \
             uncompressed in restored (12 %)."
        )
    );
    assert_eq!(message(forced, [97.2, 12.0], 1.05), None);
    assert_eq!(message(forced, [40.0, 12.0], 2.13), None);
    assert_eq!(message("rw,noatime", [97.2, 12.0], 2.13), None);
}
