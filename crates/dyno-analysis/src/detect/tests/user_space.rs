//! Data on zfs-fuse.

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
