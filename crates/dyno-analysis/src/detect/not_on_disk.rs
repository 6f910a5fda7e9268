//! File operations not of the disk: writes confirmed before they were on it, reads not from it.

use dyno_record::PlaceFacts;

use super::{Place, caveat_at, places};
use crate::join::Joined;
use crate::words::list;
use crate::{Caveat, CaveatKind, Findings};

/// One client syncs at most once in a turn; the fastest disks turn 15 000 times a minute.
const TURNS_MOST: f64 = 250.0;

/// No known device has a write on stable storage within 10 µs.
const SYNCS_MOST: f64 = 100_000.0;

struct Io<'a> {
    place: &'a PlaceFacts,
    writes: bool,
    /// Each write, or some.
    is_synced: bool,
    is_each_synced: bool,
    is_direct: bool,
    /// Per second and client.
    rate: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    Fuse,
    LoopCache,
    PageCache,
    DiskCache,
    TooFast,
}

const REASONS: [Reason; 5] =
    [Reason::Fuse, Reason::LoopCache, Reason::PageCache, Reason::DiskCache, Reason::TooFast];

impl Reason {
    fn holds(self, io: &Io<'_>) -> bool {
        let Io { place, writes, is_synced, is_each_synced, is_direct, rate } = io;
        let is_memory = place.survives_power_failure == Some(false);
        let is_fuse =
            place.filesystem.as_deref().is_some_and(|name| name.split('.').any(is_fuse_word));
        let has_cache = place.write_cache.as_deref() == Some("write back");
        let most = match place.is_rotational {
            Some(true) => TURNS_MOST,
            Some(false) => SYNCS_MOST,
            None => f64::INFINITY,
        };
        // Memory has its own caveat, and a program hides a disk's cache.
        match self {
            _ if is_memory => false,
            Reason::Fuse => is_fuse && (*is_synced || *is_direct),
            Reason::LoopCache => *is_direct && place.is_loop_direct == Some(false),
            Reason::PageCache => *writes && !is_synced && !is_direct,
            Reason::DiskCache => *writes && !is_synced && *is_direct && has_cache && !is_fuse,
            Reason::TooFast => *writes && *is_each_synced && !is_fuse && *rate > most,
        }
    }

    fn words(self, names: &str, io: &Io<'_>) -> (String, &'static str) {
        let place = io.place;
        match self {
            Reason::Fuse => (
                format!(
                    "The filesystem runs in user space ({}): {names}.",
                    place.filesystem.as_deref().unwrap_or("FUSE")
                ),
                "What a sync reaches, and whether O_DIRECT bypasses a cache, depends on its program. Use \
                 an in-kernel filesystem to measure a disk.",
            ),
            Reason::LoopCache => (
                format!(
                    "The device is an image file that is accessed through the page cache: {names}."
                ),
                "Operations that bypass the page cache of the filesystem still go through that of the \
                 image file. Put the image on a filesystem that has direct I/O, or use a device.",
            ),
            Reason::PageCache => (
                format!("Writes went to the page cache and were not synced: {names}."),
                "Their rate and response times are those of memory, until the kernel writes back. \
                 Use direct = true, or sync.",
            ),
            Reason::DiskCache => (
                format!(
                    "Direct writes were not synced, and the device has a write cache: {names}."
                ),
                "O_DIRECT does not flush the device's cache: a write may be only in the device's \
                 memory, and be lost in a power failure. Databases sync after it; add sync = \
                 \"fdatasync\" to see what that costs.",
            ),
            Reason::TooFast => {
                let (what, most) = match place.is_rotational {
                    Some(true) => ("a spinning disk", TURNS_MOST),
                    _ => ("any known device", SYNCS_MOST),
                };
                (
                    format!(
                        "More syncs per second per client than {what} can perform ({most}): {names}."
                    ),
                    "Either a cache answers (in a controller, a hypervisor, or a drive that does not \
                     flush), or the kernel is wrong about the disk, as it often is in virtual \
                     machines. Do not conclude that a commit survives a power failure unless you \
                     know that this cache does.",
                )
            }
        }
    }
}

fn is_fuse_word(word: &str) -> bool {
    word.starts_with("fuse")
}

pub(super) fn caveats(joined: &Joined<'_>, findings: &Findings) -> Vec<Caveat> {
    let all = places(joined);
    let found: Vec<(&Place<'_>, Io<'_>)> =
        all.iter().filter_map(|place| Some((place, io(joined, place)?))).collect();
    let caveat = |reason: Reason| {
        let those = found.iter().filter(|(_, io)| reason.holds(io));
        let (_, first) = those.clone().next()?;
        let mut names: Vec<&str> = Vec::new();
        for (place, _) in those.clone() {
            let name = findings.variants[place.variant].name.as_str();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let words = reason.words(&list(&names), first);
        let places = those.map(|(place, _)| (place.variant, place.step));
        Some(caveat_at(CaveatKind::NotOnDisk, words, places))
    };
    REASONS.into_iter().filter_map(caveat).collect()
}

/// `None` if files were not measured.
fn io<'a>(joined: &Joined<'_>, place: &Place<'a>) -> Option<Io<'a>> {
    let variant = &joined.variants[place.variant];
    let option = |name: &str| variant.options.get(name).map(String::as_str);
    let writes = match variant.workload.as_str() {
        "fsync" => true,
        "file-io" => option("operation").is_some_and(|word| word != "read"),
        _ => return None,
    };
    let is_synced = option("sync").is_some_and(|word| word != "none");
    let members = place.trial.members.iter();
    let committed: u64 =
        place.summary.kinds.iter().filter_map(|kind| kind.outcomes.get("committed")).sum();
    let clients = joined.steps[place.step].clients.max(1) as f64;
    Some(Io {
        place: members.filter_map(|member| member.place.as_ref()).next()?,
        writes,
        is_synced,
        is_each_synced: is_synced && option("sync_every").is_none_or(|every| every == "1"),
        is_direct: option("direct") == Some("on"),
        rate: committed as f64 / place.summary.measured_s / clients,
    })
}

#[cfg(test)]
mod tests {
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
}
