//! What a sync reaches on a server's volume: settings promise no more than the volume keeps.

use dyno_record::{CommitSafety, MemberRole, PlaceFacts, TrialSummary};

/// What a volume takes from a promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    /// What a commit survives at best; `None` if unknown: the settings decide.
    pub(crate) at_best: Option<CommitSafety>,
    pub(crate) why: String,
}

/// They leave the disk's cache unflushed.
const NO_BARRIER: [&str; 3] = ["nobarrier", "barrier=0", "nobarriers"];

/// The worst of a trial's servers' volumes.
pub(crate) fn loss_of(trial: &TrialSummary) -> Option<Loss> {
    let holds_data = |role: MemberRole| {
        use MemberRole::{Node, Primary, Shard, Store};
        matches!(role, Primary | Node | Shard | Store)
    };
    let members = trial.members.iter().filter(|member| holds_data(member.role));
    let losses = members.filter_map(|member| loss(member.place.as_ref()?));
    losses.max_by_key(|loss| loss.at_best)
}

/// `None` if a sync is one.
fn loss(place: &PlaceFacts) -> Option<Loss> {
    let filesystem = place.filesystem.as_deref().unwrap_or_default();
    let option = |name: &str| {
        let options = place.options.as_deref().unwrap_or_default();
        options.split(',').any(|option| option == name)
    };
    // A dataset's properties are in its kind.
    let property = |name: &str| place.kind.split(' ').any(|word| word == name);
    let loss = |at_best: CommitSafety, why: &str| {
        Some(Loss { at_best: Some(at_best), why: why.to_owned() })
    };
    let is_zfs = filesystem.split('.').any(|word| word == "zfs");
    match () {
        () if place.survives_power_failure == Some(false) => {
            let why = format!("the volume is in memory ({filesystem})");
            Some(Loss { at_best: Some(CommitSafety::DataAtRisk), why })
        }
        () if filesystem == "overlay" && option("volatile") => {
            loss(CommitSafety::DataAtRisk, "the volume ignores syncs (overlay, volatile)")
        }
        () if is_zfs && property("logbias=throughput") => loss(
            CommitSafety::DataAtRisk,
            "the volume may lose synced pages (ZFS, logbias=throughput: openzfs #18996)",
        ),
        () if is_zfs && property("sync=disabled") => {
            loss(CommitSafety::LastCommitsAtRisk, "the volume ignores syncs (ZFS, sync=disabled)")
        }
        // Without a known cache there is nothing to flush.
        () if NO_BARRIER.iter().any(|name| option(name))
            && place.write_cache.as_deref() != Some("write through") =>
        {
            loss(
                CommitSafety::DataAtRisk,
                "a sync does not flush the disk's cache (mounted with nobarrier)",
            )
        }
        () if filesystem.contains("overlay") => Some(Loss {
            at_best: None,
            why: "in a container's layer, whose own volume is not known".to_owned(),
        }),
        () => None,
    }
}

/// By the server's settings and its volume.
pub(crate) fn durability(
    (words, safety): (&str, Option<CommitSafety>),
    loss: Option<&Loss>,
) -> (String, Option<CommitSafety>) {
    let Some(loss) = loss.filter(|_| !words.is_empty()) else { return (words.to_owned(), safety) };
    let both = safety.map(|safety| loss.at_best.map_or(safety, |at_best| safety.max(at_best)));
    (format!("{words}, but {}", loss.why), both)
}

#[cfg(test)]
mod tests {
    use dyno_record::MemberFacts;

    use super::*;
    use crate::fixtures::run;
    use crate::{CaveatKind, Options, analyse};

    fn place(filesystem: &str, kind: &str, options: &str) -> PlaceFacts {
        PlaceFacts {
            kind: kind.to_owned(),
            filesystem: Some(filesystem.to_owned()),
            options: Some(options.to_owned()),
            survives_power_failure: Some(filesystem != "tmpfs"),
            ..PlaceFacts::default()
        }
    }

    #[test]
    fn a_volume_keeps_a_promise_or_takes_from_it() {
        use CommitSafety::{DataAtRisk, LastCommitsAtRisk};
        let check = |place: &PlaceFacts, expected: Option<(Option<CommitSafety>, &str)>| {
            let found = loss(place);
            let found = found.as_ref().map(|loss| (loss.at_best, loss.why.as_str()));
            assert_eq!(found.map(|(safety, _)| safety), expected.map(|(safety, _)| safety));
            let (why, part) = (found.map_or("", |one| one.1), expected.map_or("", |one| one.1));
            assert!(why.contains(part), "{why}");
        };
        check(&place("ext4", "folder", "rw,relatime"), None);
        check(&place("xfs", "xfs mount=noatime", "rw,noatime"), None);
        check(&place("tmpfs", "folder", "rw"), Some((Some(DataAtRisk), "in memory (tmpfs)")));
        for (filesystem, option) in [
            ("ext4", "nobarrier"),
            ("ext4", "barrier=0"),
            ("xfs", "nobarrier"),
            ("btrfs", "nobarrier"),
        ] {
            let mut unsafe_one = place(filesystem, "folder", &format!("rw,{option},noatime"));
            check(&unsafe_one, Some((Some(DataAtRisk), "does not flush the disk's cache")));
            unsafe_one.write_cache = Some("write back".to_owned());
            check(&unsafe_one, Some((Some(DataAtRisk), "does not flush the disk's cache")));
            // A disk without a cache needs no flush.
            unsafe_one.write_cache = Some("write through".to_owned());
            check(&unsafe_one, None);
        }
        let zfs = |properties: &str| place("zfs", &format!("zfs {properties}"), "rw,xattr");
        check(&zfs("recordsize=16k"), None);
        check(&zfs("sync=standard"), None);
        check(&zfs("sync=disabled"), Some((Some(LastCommitsAtRisk), "sync=disabled")));
        check(&zfs("atime=off logbias=throughput"), Some((Some(DataAtRisk), "#18996")));
        check(&zfs("logbias=throughput sync=disabled"), Some((Some(DataAtRisk), "#18996")));
        check(&place("overlay", "folder", "rw,volatile"), Some((Some(DataAtRisk), "volatile")));
        check(&place("overlay", "folder", "rw"), Some((None, "container's layer")));
        check(&place("fuse.fuse-overlayfs", "folder", "rw"), Some((None, "container's layer")));
        check(&PlaceFacts::default(), None);
    }

    #[test]
    fn variants_on_unlike_volumes_are_not_equally_durable() {
        let on = |places: [PlaceFacts; 2]| {
            let mut run = run(&["a", "b"], &[4], 3, |_, _, _| 1_000.0);
            for trial in &mut run.trials {
                let place = Some(places[trial.variant].clone());
                trial.members = vec![MemberFacts { place, ..MemberFacts::default() }];
            }
            run.manifest.variants[1].levels[0].factor = "volume".to_owned();
            analyse(&[run], &Options::default())
        };
        let sound = place("zfs", "zfs", "rw");
        let found = on([sound.clone(), place("zfs", "zfs sync=disabled", "rw")]);
        assert!(found.is_less_durable(1, 0) && !found.is_less_durable(0, 1));
        let caveat = found.caveats.iter().find(|c| c.kind == CaveatKind::DifferentDurability);
        let message = &caveat.expect("they differ").message;
        assert!(
            message.contains(
                "every commit is synced (a); every commit is synced, but the volume ignores syncs"
            ),
            "{message}"
        );
        // A container's layer promises no less, but nobody knows how much.
        let found = on([sound.clone(), place("overlay", "folder", "rw")]);
        assert!(!found.is_less_durable(1, 0));
        assert!(found.caveats.iter().any(|c| c.kind == CaveatKind::DifferentDurability));
        let found = on([sound.clone(), sound]);
        assert!(found.caveats.iter().all(|c| c.kind != CaveatKind::DifferentDurability));
    }
}
