//! A compressing filesystem that stored compressible data uncompressed.

use dyno_record::TrialSummary;

use super::{caveat_at, places};
use crate::join::Joined;
use crate::words::list;
use crate::{Caveat, CaveatKind, Findings};

/// Of uncompressed data.
const SHARE_LEAST: f64 = 50.0;

/// Less compressible data may be left alone for good reason.
const COMPRESSIBILITY_LEAST: f64 = 1.2;

pub(super) fn caveat(joined: &Joined<'_>, findings: &Findings) -> Option<Caveat> {
    let mut sums = vec![(0.0, 0.0, 0_u32); findings.variants.len()];
    let mut found = Vec::new();
    for place in places(joined).into_iter().filter(|place| is_asked_to_compress(place.trial)) {
        let figure = |name: &str| {
            let found = place.summary.figures.iter().find(|(id, _)| id.as_str() == name);
            found.map(|(_, value)| *value)
        };
        let Some(share) = figure("data.stored_uncompressed") else { continue };
        let Some(compressibility) = figure("data.compressibility") else { continue };
        let (shares, compressibilities, n) = &mut sums[place.variant];
        *shares += share;
        *compressibilities += compressibility;
        *n += 1;
        found.push((place.variant, place.step));
    }
    let mean = |variant: usize| {
        let (shares, compressibilities, n) = sums[variant];
        (n > 0).then(|| (shares / f64::from(n), compressibilities / f64::from(n)))
    };
    let known: Vec<(usize, f64, f64)> = (0..sums.len())
        .filter_map(|variant| mean(variant).map(|(share, most)| (variant, share, most)))
        .collect();
    let is_bad = |share: f64, most: f64| share >= SHARE_LEAST && most >= COMPRESSIBILITY_LEAST;
    let named = |(variant, share, _): &&(usize, f64, f64)| {
        format!("{} ({share:.0} %)", findings.variants[*variant].name)
    };
    let (bad, good): (Vec<_>, Vec<_>) =
        known.iter().partition(|(_, share, most)| is_bad(*share, *most));
    let (_, _, most) = bad.first()?;
    let mut message = format!(
        "The filesystem compresses, but stored most of the data uncompressed: {}. They are compressible: a \
         sample shrinks by a factor of {most:.1}.",
        list(&bad.iter().map(|one| named(&one)).collect::<Vec<_>>())
    );
    if !good.is_empty() {
        let good = good.iter().map(|one| named(&one)).collect::<Vec<_>>();
        message.push_str(&format!(" It stored a smaller share uncompressed in {}.", list(&good)));
    }
    let advice = "The server preallocates space for its files, and btrfs does not compress what is written \
                  into a file after space was preallocated in it. Files that were copied without \
                  preallocating are compressed until the server extends them: data = \"restored\" for the \
                  database.";
    let bad: Vec<usize> = bad.iter().map(|(variant, _, _)| *variant).collect();
    found.retain(|(variant, _)| bad.contains(variant));
    Some(caveat_at(CaveatKind::StoredUncompressed, (message, advice), found.into_iter()))
}

fn is_asked_to_compress(trial: &TrialSummary) -> bool {
    let mut places = trial.members.iter().filter_map(|member| member.place.as_ref());
    places.any(|place| {
        let options = place.options.as_deref().unwrap_or_default();
        options.split(',').any(|option| option.starts_with("compress"))
    })
}

#[cfg(test)]
mod tests {
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
}
