//! Real volumes. Skipped, with the reason printed, where the machine cannot make them.

use std::fs;
use std::sync::Arc;

use dyno_units::{ByteCount, Clock, Nanoseconds};

use super::*;
use crate::keeper::Place;
use crate::keeper::tests::RealClock;

fn clock() -> Arc<dyn Clock> {
    Arc::new(RealClock)
}

/// `None` where such volumes cannot be made.
fn lab(spec: &VolumeSpec) -> Option<(tempfile::TempDir, Arc<Keeper>)> {
    let root = tempfile::tempdir_in("/var/tmp").expect("a folder");
    let keeper = Arc::new(Keeper::new(root.path()).expect("the root can be used"));
    let problems = volume_problems(&keeper, spec);
    if problems.is_empty() {
        return Some((root, keeper));
    }
    eprintln!("skipped: a volume of {}: {}", spec.filesystem, problems.join("; "));
    None
}

fn mounts_under(folder: &Path) -> usize {
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("readable");
    crate::storage::Mount::all(&mounts)
        .iter()
        .filter(|mount| mount.point.starts_with(folder))
        .count()
}

#[track_caller]
fn is_made_and_removed(spec: &VolumeSpec) {
    let Some((root, keeper)) = lab(spec) else { return };
    let clock = clock();
    let volume = Arc::new(Volume::make(&keeper, spec, &clock).expect("it is made"));
    let place = Place::on(&keeper, volume.clone());
    let facts = place.facts();
    let filesystem = facts.filesystem.as_deref().expect("known");
    assert_eq!(filesystem.trim_start_matches("fuse."), spec.filesystem);
    let options = facts.options.as_deref().expect("known");
    for option in ["nosuid", "nodev"] {
        assert!(options.split(',').any(|one| one == option), "{options}");
    }
    assert_eq!(facts.kind, spec.kind());
    assert_eq!(facts.limit, Some(spec.limit).filter(|limit| !limit.is_none()));
    let server = keeper.make_folder("server").expect("made");
    let data = place.data_of(&server, server.join("data"));
    place.make_data(&data).expect("made");
    fs::write(data.join("rows"), vec![7; 1 << 20]).expect("written");
    let usage = volume.usage().expect("measured");
    assert_eq!(usage.apparent_bytes, 1 << 20);
    assert!(usage.free_bytes > 0);
    assert_eq!(mounts_under(root.path()), 1);
    let image = volume.folder.join(IMAGE);
    place.release().expect("removed");
    assert_eq!(mounts_under(root.path()), 0);
    assert!(loop_device::attached_to(&image).is_empty());
    assert!(!volume.folder.exists());
    keeper.remove_folder(&server).expect("removed");
}

#[test]
fn each_filesystem_is_made_and_removed() {
    for (name, _) in filesystems() {
        is_made_and_removed(&VolumeSpec::new("v", name, ByteCount(320 << 20)));
    }
}

#[test]
fn options_reach_the_filesystem() {
    let mut spec = VolumeSpec::new("v", "ext4", ByteCount(64 << 20));
    spec.make_options = vec!["-b".into(), "1024".into()];
    spec.mount_options = vec!["noatime".into(), "data=journal".into()];
    spec.read_ahead = Some(ByteCount(64 << 10));
    let Some((_root, keeper)) = lab(&spec) else { return };
    let volume = Arc::new(Volume::make(&keeper, &spec, &clock()).expect("it is made"));
    let facts = Place::on(&keeper, volume.clone()).facts();
    let options = facts.options.expect("known");
    for option in ["noatime", "nosuid", "nodev", "data=journal"] {
        assert!(options.split(',').any(|one| one == option), "{options}");
    }
    assert_eq!(rustix::fs::statvfs(&volume.files).expect("known").f_bsize, 1024);
    let device = loop_device::attached_to(&volume.folder.join(IMAGE)).remove(0);
    let read_ahead =
        || fs::read_to_string(device.sys().join("queue/read_ahead_kb")).expect("known");
    assert_eq!(read_ahead().trim(), "64");
    volume.release().expect("removed");
    assert_ne!(read_ahead().trim(), "64");
}

#[test]
fn what_cannot_be_made_leaves_nothing() {
    let mut spec = VolumeSpec::new("v", "ext4", ByteCount(64 << 20));
    spec.mount_options = vec!["no-such-option".into()];
    let Some((root, keeper)) = lab(&spec) else { return };
    let error = Volume::make(&keeper, &spec, &clock()).err().expect("refused").0;
    assert!(error.contains("the volume `v`") && error.contains("mount"), "{error}");
    assert_eq!(mounts_under(root.path()), 0);
    assert_eq!(fs::read_dir(keeper.root()).expect("readable").count(), 0);
}

#[test]
fn a_limit_binds_from_when_it_is_asked_to_until_it_is_lifted() {
    let mut spec = VolumeSpec::new("v", "ext4", ByteCount(64 << 20));
    spec.limit = IoLimit { write_iops: Some(500), ..IoLimit::default() };
    spec.dips = Some(Dips {
        every: Nanoseconds::SECOND,
        length: Nanoseconds::from_millis(100),
        limit: IoLimit { write_iops: Some(50), ..IoLimit::default() },
    });
    let Some((_root, keeper)) = lab(&spec) else { return };
    let volume = Volume::make(&keeper, &spec, &clock()).expect("it is made");
    let device = loop_device::attached_to(&volume.folder.join(IMAGE)).remove(0);
    if !matches!(Groups::find(), Ok(Groups::V1(_))) {
        eprintln!("skipped: the limit is read as control groups of version 1 have it");
        return volume.release().expect("removed");
    }
    let limits = || {
        let path = "/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device";
        let text = fs::read_to_string(path).expect("readable");
        text.lines()
            .find(|line| line.starts_with(&format!("{} ", device.number)))
            .map(str::to_owned)
    };
    let bound = |writes: u64| Some(format!("{} {writes}", device.number));
    assert_eq!(limits(), None, "what fills the volume is not limited");
    volume.bind_limit(&[]).expect("bound");
    assert_eq!(limits(), bound(500));
    volume.lift_limit().expect("lifted");
    assert_eq!(limits(), None);
    volume.bind_limit(&[]).expect("bound again");
    volume.dip(true).expect("lowered");
    assert_eq!(limits(), bound(50));
    volume.dip(false).expect("raised");
    assert_eq!(limits(), bound(500));
    volume.dip(true).expect("lowered");
    // Also during a dip.
    volume.release().expect("removed");
    assert_eq!(limits(), None);
}

#[test]
fn a_mount_that_is_not_dynos_stops_the_removal() {
    let spec = VolumeSpec::new("v", "tmpfs", ByteCount(1 << 20));
    let Some((_root, keeper)) = lab(&spec) else { return };
    let clock = clock();
    let volume = Volume::make(&keeper, &spec, &clock).expect("it is made");
    let files = volume.files.to_string_lossy().into_owned();
    let tools = Tools { keeper: &keeper, clock: clock.as_ref() };
    tools.run("mount", "mount", &["-t", "tmpfs", "theirs", &files]).expect("mounted over it");
    let error = volume.release().expect_err("refused").0;
    assert!(error.contains("not by Dyno"), "{error}");
    tools.run("umount", "mount", &[&files]).expect("unmounted");
    volume.release().expect("removed");
}

#[test]
fn a_mount_that_is_busy_for_a_moment_is_unmounted() {
    let spec = VolumeSpec::new("v", "tmpfs", ByteCount(1 << 20));
    let Some((root, keeper)) = lab(&spec) else { return };
    let volume = Volume::make(&keeper, &spec, &clock()).expect("it is made");
    let mut reader = std::process::Command::new("sleep")
        .arg("0.3")
        .current_dir(&volume.files)
        .spawn()
        .expect("sleep");
    volume.release().expect("removed once nobody uses it");
    assert_eq!(mounts_under(root.path()), 0);
    assert!(reader.wait().expect("ended").success());
}

#[test]
fn a_device_holds_nothing_of_before() {
    let mut spec = VolumeSpec::new("v", "ext4", ByteCount(64 << 20));
    let Some((root, keeper)) = lab(&spec) else { return };
    let (clock, image) = (clock(), root.path().join("disk"));
    let tools = Tools { keeper: &keeper, clock: clock.as_ref() };
    let device = loop_device::make(tools, &image, ByteCount(64 << 20)).expect("attached");
    spec.backing = Backing::Device { path: device.path.clone(), may_format: true };
    let volume = Volume::make(&keeper, &spec, &clock).expect("a blank device is formatted");
    fs::write(volume.files.join("rows"), "of a run before").expect("written");
    volume.release().expect("removed");
    // It has Dyno's label. A dry run makes no filesystem; the old one must not come back.
    spec.make_options = vec!["-n".into()];
    let error = Volume::make(&keeper, &spec, &clock).err().expect("nothing was made").0;
    assert!(error.contains("mount"), "{error}");
    spec.make_options = Vec::new();
    let volume = Volume::make(&keeper, &spec, &clock).expect("it is blank again");
    assert!(!volume.files.join("rows").exists());
    volume.release().expect("removed");
    loop_device::detach(tools, &device).expect("detached");
    assert_eq!(mounts_under(root.path()), 0);
}

#[test]
fn what_does_not_fit_is_refused_beforehand() {
    let root = tempfile::tempdir_in("/var/tmp").expect("a folder");
    let keeper = Keeper::new(root.path()).expect("the root can be used");
    let check = |change: &dyn Fn(&mut VolumeSpec), expected: &str| {
        let mut spec = VolumeSpec::new("v", "ext4", ByteCount(64 << 20));
        change(&mut spec);
        let problems = volume_problems(&keeper, &spec).join("; ");
        assert!(problems.contains(expected), "{problems}");
    };
    check(
        &|spec| spec.filesystem = "ntfs".into(),
        "there is no filesystem `ntfs`; choose one of ext4,",
    );
    check(&|spec| spec.backing = Backing::Size(ByteCount(1 << 60)), "choose another disk");
    check(&|spec| spec.backing = Backing::Size(ByteCount(4096)), "ext4 needs at least");
    check(
        &|spec| {
            spec.filesystem = "tmpfs".into();
            spec.limit.read_iops = Some(1);
        },
        "is in memory",
    );
    check(
        &|spec| {
            spec.properties.insert("recordsize".into(), "16k".into());
        },
        "has no properties",
    );
    for (word, is_refused) in
        [("-d", false), ("stride=4", false), ("/root", true), ("device=LABEL=journal", true)]
    {
        let mut spec = VolumeSpec::new("v", "ext4", ByteCount(64 << 20));
        spec.make_options = vec![word.to_owned()];
        let problems = volume_problems(&keeper, &spec).join("; ");
        assert_eq!(problems.contains("outside the volume"), is_refused, "{problems}");
    }
    for word in [
        "remount",
        "suid",
        "journal_path=/dev/sda",
        "X-mount.subdir=a",
        "device=b",
        "offset=4096",
        "sizelimit=1",
        "usrjquota=\"a",
    ] {
        check(&|spec| spec.mount_options.push(word.into()), "outside the volume");
    }
    let device = |path: &str, may_format| Backing::Device { path: path.into(), may_format };
    check(&|spec| spec.backing = device("/etc/passwd", true), "it is not a block device");
    check(&|spec| spec.backing = device("/dev/no-such", true), "No such file");
}

#[test]
fn a_scheduler_that_the_device_does_not_have_is_refused_with_those_that_it_has() {
    let check = |text: &str, wanted: &str| {
        super::check_scheduler(text, wanted, Path::new("/dev/loop0")).map_err(|error| error.0)
    };
    assert_eq!(check("none [mq-deadline] kyber\n", "mq-deadline"), Ok(()));
    let expected = "/dev/loop0 has no I/O scheduler `bfq`; it has none, mq-deadline";
    assert_eq!(check("none [mq-deadline]\n", "bfq"), Err(expected.to_owned()));
    assert!(check("", "none").expect_err("refused").contains("none to choose"));
}
