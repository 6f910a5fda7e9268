//! Data and writes that were not on the disk, or not as the filesystem would have them.

use dyno_record::{PlaceFacts, TrialSummary};

use super::found::{At, Evidence, Found, Place, sorted};
use crate::join::{Joined, JoinedTrial};
use crate::metrics;
use crate::words::{distinct, list};

/// One client syncs at most once in a turn; the fastest disks turn 15 000 times a minute.
const TURNS_MOST: f64 = 250.0;
/// No known device has a write on stable storage within 10 µs.
const SYNCS_MOST: f64 = 100_000.0;
/// The kernel's name for zfs-fuse, which stores data as ZFS does, but not with its speed.
const ZFS_FUSE: &str = "fuse.zfs";

fn volumes(trial: &TrialSummary) -> impl Iterator<Item = &PlaceFacts> {
    trial.members.iter().filter_map(|member| member.place.as_ref())
}

fn is_zfs_fuse(volume: &PlaceFacts) -> bool {
    volume.filesystem.as_deref() == Some(ZFS_FUSE)
}

/// With the data of some measured trial there.
pub(super) fn is_on_zfs_fuse(joined: &Joined<'_>, variant: usize) -> bool {
    let has_steps =
        |trial: &&JoinedTrial<'_>| (0..joined.steps.len()).any(|step| trial.step(step).is_some());
    let mut measured = joined.finished_of(variant).filter(has_steps);
    measured.any(|trial| trial.summary.is_some_and(|trial| volumes(trial).any(is_zfs_fuse)))
}

/// The variants with such a volume, and the first of these.
fn on<'a>(
    seen: &'a Evidence<'_>,
    is_such: fn(&PlaceFacts) -> bool,
) -> Option<(Found, &'a PlaceFacts)> {
    let those = seen.places.iter().filter_map(|place| {
        let volume = volumes(place.trial).find(|volume| is_such(volume))?;
        Some((place.at, volume))
    });
    let those: Vec<(At, &PlaceFacts)> = those.collect();
    let &(_, first) = those.first()?;
    let names = seen.names(sorted(those.iter().map(|((variant, _), _)| *variant)));
    Some((Found::at(names, those.iter().map(|(at, _)| *at)), first))
}

/// No sync reached a disk, whatever the server promised.
pub(super) fn in_memory(seen: &Evidence<'_>) -> Option<Found> {
    let (found, volume) = on(seen, |volume| volume.survives_power_failure == Some(false))?;
    let filesystem = volume.filesystem.as_deref().unwrap_or("a filesystem in memory");
    Some(Found { words: vec![format!("({filesystem}): {}", found.words[0])], ..found })
}

pub(super) fn user_space(seen: &Evidence<'_>) -> Option<Found> {
    Some(on(seen, is_zfs_fuse)?.0)
}

/// Operations on files.
struct Io<'a> {
    volume: &'a PlaceFacts,
    writes: bool,
    /// Each write, or some.
    is_synced: bool,
    is_each_synced: bool,
    is_direct: bool,
    is_fuse: bool,
    /// Per second and client.
    rate: f64,
}

/// `None` if files were not measured, or in memory, which has its own caveat.
fn io<'a>(joined: &Joined<'_>, place: &Place<'a>) -> Option<Io<'a>> {
    let variant = &joined.variants[place.at.0];
    let option = |name: &str| variant.options.get(name).map(String::as_str);
    let writes = match variant.workload.as_str() {
        "fsync" => true,
        "file-io" => option("operation").is_some_and(|word| word != "read"),
        _ => return None,
    };
    let is_synced = option("sync").is_some_and(|word| word != "none");
    let committed = metrics::committed(place.summary);
    let clients = joined.steps[place.at.1].clients.max(1) as f64;
    let volume = volumes(place.trial).next()?;
    let filesystem = volume.filesystem.as_deref().unwrap_or_default();
    (volume.survives_power_failure != Some(false)).then(|| Io {
        volume,
        writes,
        is_synced,
        is_each_synced: is_synced && option("sync_every").is_none_or(|every| every == "1"),
        is_direct: option("direct") == Some("on"),
        is_fuse: filesystem.split('.').any(|word| word.starts_with("fuse")),
        rate: committed as f64 / place.summary.measured_s / clients,
    })
}

/// Writes confirmed before they were on the disk, or reads not from it, after `head`.
fn not_on_disk(
    seen: &Evidence<'_>,
    is_such: fn(&Io<'_>) -> bool,
    head: fn(&PlaceFacts) -> String,
) -> Option<Found> {
    let those = seen.places.iter().filter_map(|place| Some((place.at, io(seen.joined, place)?)));
    let those: Vec<(At, Io<'_>)> = those.filter(|(_, io)| is_such(io)).collect();
    let (_, first) = those.first()?;
    let names = list(distinct(those.iter().map(|((variant, _), _)| seen.variant(*variant))));
    let words = format!("{}{names}", head(first.volume));
    Some(Found::at(words, those.iter().map(|(at, _)| *at)))
}

pub(super) fn fuse(seen: &Evidence<'_>) -> Option<Found> {
    let head =
        |volume: &PlaceFacts| format!("({}): ", volume.filesystem.as_deref().unwrap_or("FUSE"));
    not_on_disk(seen, |io| io.is_fuse && (io.is_synced || io.is_direct), head)
}

pub(super) fn loop_cache(seen: &Evidence<'_>) -> Option<Found> {
    let is_such = |io: &Io<'_>| io.is_direct && io.volume.is_loop_direct == Some(false);
    not_on_disk(seen, is_such, |_| String::new())
}

pub(super) fn page_cache(seen: &Evidence<'_>) -> Option<Found> {
    not_on_disk(seen, |io| io.writes && !io.is_synced && !io.is_direct, |_| String::new())
}

/// A program hides a disk's cache.
pub(super) fn disk_cache(seen: &Evidence<'_>) -> Option<Found> {
    let is_such = |io: &Io<'_>| {
        let has_cache = io.volume.write_cache.as_deref() == Some("write back");
        io.writes && !io.is_synced && io.is_direct && has_cache && !io.is_fuse
    };
    not_on_disk(seen, is_such, |_| String::new())
}

pub(super) fn too_fast(seen: &Evidence<'_>) -> Option<Found> {
    let is_such = |io: &Io<'_>| {
        let most = match io.volume.is_rotational {
            Some(true) => TURNS_MOST,
            Some(false) => SYNCS_MOST,
            None => f64::INFINITY,
        };
        io.writes && io.is_each_synced && !io.is_fuse && io.rate > most
    };
    not_on_disk(seen, is_such, |volume| match volume.is_rotational {
        Some(true) => format!("a spinning disk can perform ({TURNS_MOST}): "),
        _ => format!("any known device can perform ({SYNCS_MOST}): "),
    })
}

/// Of uncompressed data.
const SHARE_LEAST: f64 = 50.0;
/// Less compressible data may be left alone for good reason.
const COMPRESSIBILITY_LEAST: f64 = 1.2;

/// A compressing filesystem that stored compressible data uncompressed.
pub(super) fn uncompressed(seen: &Evidence<'_>) -> Option<Found> {
    let is_asked = |trial: &TrialSummary| {
        let mut options = volumes(trial).filter_map(|volume| volume.options.as_deref());
        options.any(|all| all.split(',').any(|option| option.starts_with("compress")))
    };
    let mut sums = vec![(0.0, 0.0, 0_u32); seen.findings.variants.len()];
    let mut places = Vec::new();
    for place in seen.places.iter().filter(|place| is_asked(place.trial)) {
        let figure = |name: &str| {
            let found = place.summary.figures.iter().find(|(id, _)| id.as_str() == name);
            found.map(|(_, value)| *value)
        };
        let Some(share) = figure("data.stored_uncompressed") else { continue };
        let Some(compressibility) = figure("data.compressibility") else { continue };
        let (shares, compressibilities, n) = &mut sums[place.at.0];
        *shares += share;
        *compressibilities += compressibility;
        *n += 1;
        places.push(place.at);
    }
    let (mut bad, mut named, mut good) = (Vec::new(), Vec::new(), Vec::new());
    let mut first = None;
    for (variant, (shares, compressibilities, n)) in sums.into_iter().enumerate() {
        if n == 0 {
            continue;
        }
        let (share, most) = (shares / f64::from(n), compressibilities / f64::from(n));
        let words = format!("{} ({share:.0} %)", seen.variant(variant));
        if share >= SHARE_LEAST && most >= COMPRESSIBILITY_LEAST {
            first = first.or(Some(most));
            bad.push(variant);
            named.push(words);
        } else {
            good.push(words);
        }
    }
    let mut words = format!(
        "{}. They are compressible: a sample shrinks by a factor of {:.1}.",
        list(&named),
        first?
    );
    if !good.is_empty() {
        words += &format!(" It stored a smaller share uncompressed in {}.", list(&good));
    }
    places.retain(|(variant, _)| bad.contains(variant));
    Some(Found::at(words, places))
}
