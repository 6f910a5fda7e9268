//! File operations not of the disk.

use dyno_record::{MemberFacts, PlaceFacts};

use crate::fixtures::run;
use crate::{CaveatKind, Options, analyse};

fn place(filesystem: &str) -> PlaceFacts {
    PlaceFacts {
        filesystem: Some(filesystem.to_owned()),
        survives_power_failure: Some(true),
        ..PlaceFacts::default()
    }
}

/// Beginnings of the caveats, for four clients with a thousand operations a second each.
#[track_caller]
fn check(workload: &str, options: &[(&str, &str)], place: &PlaceFacts, expected: &[&str]) {
    let mut run = run(&["disk"], &[4], 3, |_, _, _| 4_000.0);
    let variant = &mut run.manifest.variants[0];
    variant.workload = workload.to_owned();
    variant.options =
        options.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    for trial in &mut run.trials {
        let place = Some(place.clone());
        trial.members = vec![MemberFacts { place, ..MemberFacts::default() }];
    }
    let findings = analyse(&[run], &Options::default());
    let found = findings.caveats.iter().filter(|one| one.kind == CaveatKind::NotOnDisk);
    let found: Vec<&str> = found.map(|one| one.message.as_str()).collect();
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.contains(expected) && found.ends_with(": disk."), "{found}");
    }
}

#[test]
fn what_did_not_reach_the_disk_has_a_caveat() {
    let turning = PlaceFacts { is_rotational: Some(true), ..place("ext4") };
    let flash = PlaceFacts {
        is_rotational: Some(false),
        write_cache: Some("write back".to_owned()),
        ..place("xfs")
    };
    let synced = [("sync", "fsync"), ("direct", "off")];
    let direct = [("sync", "none"), ("direct", "on")];
    check("fsync", &synced, &turning, &["than a spinning disk can perform (250)"]);
    check("fsync", &synced, &flash, &[]);
    check("fsync", &synced, &place("ext4"), &[]);
    check("fsync", &synced, &place("fuse.zfs"), &["runs in user space (fuse.zfs)"]);
    check("fsync", &direct, &flash, &["the device has a write cache"]);
    let through = PlaceFacts { write_cache: Some("write through".into()), ..flash.clone() };
    check("fsync", &direct, &through, &[]);
    check("fsync", &[("sync", "none"), ("direct", "off")], &flash, &["to the page cache"]);
    let image = PlaceFacts { is_loop_direct: Some(false), ..flash.clone() };
    let both = ["through the page cache", "the device has a write cache"];
    check("file-io", &[("operation", "rewrite"), direct[0], direct[1]], &image, &both);
    check("file-io", &[("operation", "read"), direct[0], direct[1]], &image, &both[..1]);
    check("file-io", &[("operation", "read"), direct[0], direct[1]], &flash, &[]);
    let some = [("operation", "mixed"), ("sync", "fsync"), ("sync_every", "100")];
    check("file-io", &some, &turning, &[]);
    // Memory has its own caveat; other workloads do not measure the disk.
    let memory = PlaceFacts { survives_power_failure: Some(false), ..place("tmpfs") };
    check("fsync", &[("sync", "none"), ("direct", "off")], &memory, &[]);
    check("tpcb", &synced, &turning, &[]);
}
