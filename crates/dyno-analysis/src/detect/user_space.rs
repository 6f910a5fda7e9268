//! Data on zfs-fuse: stored as by ZFS, but not with its speed.

use super::{caveat_at, places};
use crate::join::Joined;
use crate::words::list;
use crate::{Caveat, CaveatKind, Findings};

/// The kernel's name for zfs-fuse.
const FILESYSTEM: &str = "fuse.zfs";

pub(super) fn variants(joined: &Joined<'_>) -> Vec<usize> {
    let mut found: Vec<usize> = cells(joined).into_iter().map(|(variant, _)| variant).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn cells(joined: &Joined<'_>) -> Vec<(usize, usize)> {
    let is_fuse = |place: &super::Place<'_>| {
        let mut facts = place.trial.members.iter().filter_map(|member| member.place.as_ref());
        facts.any(|facts| facts.filesystem.as_deref() == Some(FILESYSTEM))
    };
    let all = places(joined).into_iter().filter(is_fuse);
    all.map(|place| (place.variant, place.step)).collect()
}

pub(super) fn caveat(joined: &Joined<'_>, findings: &Findings) -> Option<Caveat> {
    let found = cells(joined);
    found.first()?;
    let variants = variants(joined);
    let names: Vec<&str> =
        variants.iter().map(|variant| findings.variants[*variant].name.as_str()).collect();
    let message = format!("The data were on zfs-fuse, not on the kernel's ZFS: {}.", list(&names));
    let advice = "Record size, copy-on-write and compression work as in ZFS; speed does not: the kernel's \
                  page cache lies above and below it, and a sync ends in user space. Compare variants on zfs-fuse \
                  with each other, not with other filesystems.";
    Some(caveat_at(CaveatKind::UserSpace, (message, advice), found.into_iter()))
}

#[cfg(test)]
mod tests {
    use dyno_record::{MemberFacts, PlaceFacts};

    use crate::fixtures::run;
    use crate::{CaveatKind, Options, analyse};

    #[test]
    fn data_on_zfs_fuse_have_a_caveat() {
        let check = |filesystem: &str, expected: Option<&str>| {
            let mut run = run(&["ext4", "zfs"], &[4], 3, |_, _, _| 1_000.0);
            for trial in run.trials.iter_mut().filter(|trial| trial.variant == 1) {
                let filesystem = Some(filesystem.to_owned());
                let place = PlaceFacts { filesystem, ..PlaceFacts::default() };
                trial.members = vec![MemberFacts { place: Some(place), ..MemberFacts::default() }];
            }
            let findings = analyse(&[run], &Options::default());
            let found = findings.caveats.iter().find(|one| one.kind == CaveatKind::UserSpace);
            assert_eq!(found.map(|one| one.message.as_str()), expected);
            assert!(found.is_none_or(|one| one.variants == [1]));
        };
        check("fuse.zfs", Some("The data were on zfs-fuse, not on the kernel's ZFS: zfs."));
        check("zfs", None);
        check("ext4", None);
    }
}
