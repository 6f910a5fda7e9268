//! The cache of ZFS (ARC), from the kernel module's `arcstats`; zfs-fuse has none.

use std::path::Path;

use dyno_units::reading::prelude::*;

use super::source::Source;
use super::{Probe, Readings, counting, grown, insert};

#[rustfmt::skip]
pub(super) const READINGS: &[Reading] = &[
    reading("arc.size_bytes", Bytes, "ARC", "memory used by ZFS's cache"),
    reading("arc.target_bytes", Bytes, "ARC target", "current target size of ZFS's cache"),
    reading("arc.hits_per_s", PerSecond, "ARC hits", "reads served from ZFS's cache"),
    reading("arc.misses_per_s", PerSecond, "ARC misses", "reads not served from ZFS's cache").worse(),
    reading("arc.hit_pct", Percent, "ARC hit share", "share of reads served from ZFS's cache").better(),
    reading("arc.*_hits_per_s", PerSecond, "ARC hits by kind", "reads served from ZFS's cache: on demand or by prefetch, of data or of metadata"),
    reading("arc.*_misses_per_s", PerSecond, "ARC misses by kind", "reads not served from ZFS's cache, by the same kinds").worse(),
    reading("arc.l2.size_bytes", Bytes, "L2ARC", "bytes on ZFS's cache device"),
    reading("arc.l2.hits_per_s", PerSecond, "L2ARC hits", "misses of the ARC that the cache device served"),
    reading("arc.l2.misses_per_s", PerSecond, "L2ARC misses", "misses of the ARC that the cache device did not serve").worse(),
];

/// The module's counters, and readings of their growth.
const COUNTERS: [(&str, &str); 12] = [
    ("hits", "arc.hits_per_s"),
    ("misses", "arc.misses_per_s"),
    ("demand_data_hits", "arc.demand_data_hits_per_s"),
    ("demand_data_misses", "arc.demand_data_misses_per_s"),
    ("demand_metadata_hits", "arc.demand_metadata_hits_per_s"),
    ("demand_metadata_misses", "arc.demand_metadata_misses_per_s"),
    ("prefetch_data_hits", "arc.prefetch_data_hits_per_s"),
    ("prefetch_data_misses", "arc.prefetch_data_misses_per_s"),
    ("prefetch_metadata_hits", "arc.prefetch_metadata_hits_per_s"),
    ("prefetch_metadata_misses", "arc.prefetch_metadata_misses_per_s"),
    ("l2_hits", "arc.l2.hits_per_s"),
    ("l2_misses", "arc.l2.misses_per_s"),
];

const SIZES: [(&str, &str); 3] =
    [("size", "arc.size_bytes"), ("c", "arc.target_bytes"), ("l2_size", "arc.l2.size_bytes")];

pub(super) fn probe(proc_root: &Path) -> Box<dyn Probe> {
    let mut source = Source::new(proc_root.join("spl/kstat/zfs/arcstats"));
    let look = move |readings: &mut Readings| {
        let text = source.text().unwrap_or_default();
        for (field, name) in SIZES {
            insert(readings, name, value(text, field).map(|size| size as f64));
        }
        Some(COUNTERS.map(|(field, _)| value(text, field)))
    };
    counting(("arc", READINGS), look, |before, now, seconds, readings| {
        for (idx, (_, name)) in COUNTERS.into_iter().enumerate() {
            insert(readings, name, grown(before[idx], now[idx]).map(|n| n / seconds));
        }
        let hits_and_misses = grown(before[0], now[0]).zip(grown(before[1], now[1]));
        let is_used = |(hits, misses): &(f64, f64)| hits + misses > 0.0;
        let share = |(hits, misses): (f64, f64)| 100.0 * hits / (hits + misses);
        insert(readings, "arc.hit_pct", hits_and_misses.filter(is_used).map(share));
    })
}

/// `hits                            4    1234`
fn value(text: &str, field: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next() == Some(field)).then(|| words.nth(1)?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use dyno_units::Nanoseconds;

    use super::*;

    fn text(hits: u64, misses: u64) -> String {
        format!(
            "13 1 0x01 147 39984 7362571232 90210342341\n\
             name                            type data\n\
             hits                            4    {hits}\n\
             misses                          4    {misses}\n\
             demand_data_hits                4    {hits}\n\
             prefetch_metadata_misses        4    {misses}\n\
             c                               4    33554432\n\
             size                            4    16777216\n\
             l2_size                         4    0\n"
        )
    }

    #[test]
    fn hits_and_misses_are_rates_and_sizes_are_as_they_are() {
        let proc_root = tempfile::tempdir().unwrap();
        let mut none = Readings::new();
        probe(proc_root.path()).read(Nanoseconds::SECOND, &mut none);
        assert_eq!(none, Readings::new());
        let folder = proc_root.path().join("spl/kstat/zfs");
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("arcstats");
        fs::write(&file, text(1_000, 100)).unwrap();
        let mut probe = probe(proc_root.path());
        let mut first = Readings::new();
        probe.read(Nanoseconds::SECOND, &mut first);
        assert_eq!(first.len(), 3, "{first:?}");
        fs::write(&file, text(1_900, 200)).unwrap();
        let mut readings = Readings::new();
        probe.read(Nanoseconds(3_000_000_000), &mut readings);
        assert_eq!(readings["arc.size_bytes"], 16_777_216.0);
        assert_eq!(readings["arc.target_bytes"], 33_554_432.0);
        assert_eq!(readings["arc.hits_per_s"], 450.0);
        assert_eq!(readings["arc.demand_data_hits_per_s"], 450.0);
        assert_eq!(readings["arc.prefetch_metadata_misses_per_s"], 50.0);
        assert_eq!(readings["arc.hit_pct"], 90.0);
        assert!(readings.keys().all(|name| READINGS.iter().any(|one| one.is_for(name))));
    }
}
