//! Data in memory: no sync reached a disk, whatever the server promised.

use super::{caveat_at, places};
use crate::join::Joined;
use crate::words::list;
use crate::{Caveat, CaveatKind, Findings};

pub(super) fn caveat(joined: &Joined<'_>, findings: &Findings) -> Option<Caveat> {
    let all = places(joined);
    let in_memory: Vec<(usize, usize, &str)> = all
        .iter()
        .filter_map(|place| {
            let mut facts = place.trial.members.iter().filter_map(|member| member.place.as_ref());
            let lost = facts.find(|facts| facts.survives_power_failure == Some(false))?;
            let filesystem = lost.filesystem.as_deref().unwrap_or("a filesystem in memory");
            Some((place.variant, place.step, filesystem))
        })
        .collect();
    let (_, _, filesystem) = in_memory.first()?;
    let mut variants: Vec<usize> = in_memory.iter().map(|(variant, ..)| *variant).collect();
    variants.dedup();
    variants.sort_unstable();
    variants.dedup();
    let names: Vec<&str> =
        variants.iter().map(|variant| findings.variants[*variant].name.as_str()).collect();
    let message = format!("The data were in memory ({filesystem}): {}.", list(&names));
    let advice = "A sync costs nothing there, and nothing survives a power failure: use such a \
                  variant to see what the disk costs, not as a configuration to run.";
    let places = in_memory.iter().map(|(variant, step, _)| (*variant, *step));
    Some(caveat_at(CaveatKind::InMemory, (message, advice), places))
}

#[cfg(test)]
mod tests {
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
}
