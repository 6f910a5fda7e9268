//! Disk activity, from `/proc/diskstats` (iostats.rst of the kernel).

use std::collections::BTreeMap;
use std::path::Path;

use dyno_units::reading::prelude::*;

use super::source::Source;
use super::{Probe, Readings, counting, grown, insert};
use crate::kernel_text::numbers;

/// The kernel's unit, whatever the disk's own.
const SECTOR_BYTES: f64 = 512.0;

#[rustfmt::skip]
pub(super) const READINGS: &[Reading] = &[
    reading("disk.reads_per_s", PerSecond, "Reads", "reads of all disks").chart_if_moving(Topic::Disk, 5).up(StallCause::Reading).row(870).words("reads"),
    reading("disk.writes_per_s", PerSecond, "Writes", "writes of all disks").chart_if_moving(Topic::Disk, 6).up(StallCause::Writing).row(880).words("writes"),
    reading("disk.read_bytes_per_s", BytesPerSecond, "Bytes read from disks", "bytes read from all disks").chart(Topic::Disk, 1).up(StallCause::Reading),
    reading("disk.write_bytes_per_s", BytesPerSecond, "Bytes written to disks", "bytes written to all disks").chart(Topic::Disk, 2).up(StallCause::Writing),
    reading("disk.flushes_per_s", PerSecond, "Cache flushes", "cache flushes of all disks, as caused by syncs").chart_if_moving(Topic::Disk, 7).up(StallCause::Fsync).row(890),
    reading("disk.busy_pct", Percent, "Busiest disk: utilisation", "share of time that the busiest disk was busy (%util of iostat)").chart_if_moving(Topic::Disk, 8).worse().up(StallCause::Disk).row(910),
    reading("disk.queue", Unit::other("requests"), "Queue depth", "requests in flight on all disks, mean over the second").chart_if_moving(Topic::Disk, 9).worse().up(StallCause::Disk).row(900).words("disk queue"),
    reading("disk.*.reads_per_s", PerSecond, "reads", "reads of this disk, after merging").topic(Topic::Instance),
    reading("disk.*.writes_per_s", PerSecond, "writes", "writes of this disk, after merging").topic(Topic::Instance),
    reading("disk.*.read_bytes_per_s", BytesPerSecond, "bytes read", "bytes read from this disk").topic(Topic::Instance),
    reading("disk.*.write_bytes_per_s", BytesPerSecond, "bytes written", "bytes written to this disk").topic(Topic::Instance),
    reading("disk.*.read_merges_per_s", PerSecond, "merged reads", "read requests to this disk that the kernel merged with others").topic(Topic::Instance),
    reading("disk.*.write_merges_per_s", PerSecond, "merged writes", "write requests to this disk that the kernel merged with others").topic(Topic::Instance),
    reading("disk.*.read_request_bytes", Bytes, "size of a read", "mean size of a read of this disk").topic(Topic::Instance),
    reading("disk.*.write_request_bytes", Bytes, "size of a write", "mean size of a write of this disk").topic(Topic::Instance),
    reading("disk.*.discards_per_s", PerSecond, "discards", "discards (trims) of this disk").topic(Topic::Instance),
    reading("disk.*.flushes_per_s", PerSecond, "cache flushes", "cache flushes of this disk, as caused by syncs").topic(Topic::Instance),
    reading("disk.*.busy_pct", Percent, "utilisation", "utilisation: share of time that this disk was busy; a disk that serves requests in parallel can be at 100 and still have capacity").topic(Topic::Instance).worse().up(StallCause::Disk),
    reading("disk.*.queue", Unit::other("requests"), "requests in flight", "requests in flight on this disk, mean over the second").topic(Topic::Instance).worse().up(StallCause::Disk),
    reading("disk.*.saturation", Unit::other("requests"), "requests while busy", "requests in flight on this disk while it was busy: beyond what it serves in parallel, requests wait").topic(Topic::Instance).worse(),
    reading("disk.*.await_ms", Milliseconds, "time of a request", "mean time of a request to this disk, including its wait in the queue").topic(Topic::Instance).worse().up(StallCause::Disk),
    reading("disk.*.read_await_ms", Milliseconds, "time of a read", "mean time of a read of this disk, including its wait in the queue").topic(Topic::Instance).worse().up(StallCause::Disk),
    reading("disk.*.write_await_ms", Milliseconds, "time of a write", "mean time of a write to this disk, including its wait in the queue").topic(Topic::Instance).worse().up(StallCause::Disk),
    reading("disk.*.flush_await_ms", Milliseconds, "time of a cache flush", "mean time of a cache flush of this disk").topic(Topic::Instance).worse().up(StallCause::Fsync),
    // The same for the disk with the server's data.
    reading("data_disk.reads_per_s", PerSecond, "reads", "reads of the data disk, after merging"),
    reading("data_disk.writes_per_s", PerSecond, "writes", "writes of the data disk, after merging"),
    reading("data_disk.read_bytes_per_s", BytesPerSecond, "bytes read", "bytes read from the data disk"),
    reading("data_disk.write_bytes_per_s", BytesPerSecond, "bytes written", "bytes written to the data disk"),
    reading("data_disk.read_merges_per_s", PerSecond, "merged reads", "read requests to the data disk that the kernel merged with others"),
    reading("data_disk.write_merges_per_s", PerSecond, "merged writes", "write requests to the data disk that the kernel merged with others"),
    reading("data_disk.read_request_bytes", Bytes, "size of a read", "mean size of a read of the data disk"),
    reading("data_disk.write_request_bytes", Bytes, "size of a write", "mean size of a write of the data disk"),
    reading("data_disk.discards_per_s", PerSecond, "discards", "discards (trims) of the data disk"),
    reading("data_disk.flushes_per_s", PerSecond, "cache flushes", "cache flushes of the data disk, as caused by syncs"),
    reading("data_disk.busy_pct", Percent, "utilisation", "utilisation: share of time that the data disk was busy; a disk that serves requests in parallel can be at 100 and still have capacity").worse(),
    reading("data_disk.queue", Unit::other("requests"), "requests in flight", "requests in flight on the data disk, mean over the second").worse(),
    reading("data_disk.saturation", Unit::other("requests"), "requests while busy", "requests in flight on the data disk while it was busy: beyond what it serves in parallel, requests wait").worse().row(950),
    reading("data_disk.await_ms", Milliseconds, "time of a request", "mean time of a request to the data disk, including its wait in the queue").worse(),
    reading("data_disk.read_await_ms", Milliseconds, "time of a read", "mean time of a read of the data disk, including its wait in the queue").worse().row(920),
    reading("data_disk.write_await_ms", Milliseconds, "time of a write", "mean time of a write to the data disk, including its wait in the queue").worse().row(930),
    reading("data_disk.flush_await_ms", Milliseconds, "time of a cache flush", "mean time of a cache flush of the data disk").worse().row(940),
];

/// Fields after the name.
const READS: usize = 0;
const READ_MERGES: usize = 1;
const READ_SECTORS: usize = 2;
const READ_MS: usize = 3;
const WRITES: usize = 4;
const WRITE_MERGES: usize = 5;
const WRITE_SECTORS: usize = 6;
const WRITE_MS: usize = 7;
/// With at least one request under way.
const BUSY_MS: usize = 9;
/// Requests in flight, summed over time.
const WEIGHTED_MS: usize = 10;
const DISCARDS: usize = 11;
const FLUSHES: usize = 15;
const FLUSH_MS: usize = 16;
const N_FIELDS: usize = 17;

/// Fields before Linux 4.18, before 5.5, and since.
const FIELDS_KNOWN: [usize; 3] = [11, 15, N_FIELDS];

type Counters = [Option<u64>; N_FIELDS];
type Growth = [Option<f64>; N_FIELDS];

/// Per second, with fields and factors: of a disk, and of all.
const RATES: [(&str, usize, f64); 5] = [
    ("reads_per_s", READS, 1.0),
    ("writes_per_s", WRITES, 1.0),
    ("read_bytes_per_s", READ_SECTORS, SECTOR_BYTES),
    ("write_bytes_per_s", WRITE_SECTORS, SECTOR_BYTES),
    ("flushes_per_s", FLUSHES, 1.0),
];

/// Of a disk alone.
const RATES_OF_ONE: [(&str, usize, f64); 3] = [
    ("read_merges_per_s", READ_MERGES, 1.0),
    ("write_merges_per_s", WRITE_MERGES, 1.0),
    ("discards_per_s", DISCARDS, 1.0),
];

/// Without partitions.
fn parse(text: &str) -> BTreeMap<String, Counters> {
    let mut found = BTreeMap::new();
    for line in text.lines() {
        if let Some((name, counters)) = parse_line(line) {
            // A disk precedes its partitions.
            if !is_partition(name, |disk| found.contains_key(disk)) {
                found.insert(name.to_owned(), counters);
            }
        }
    }
    found
}

fn parse_line(line: &str) -> Option<(&str, Counters)> {
    let mut words = line.split_ascii_whitespace();
    let name = words.nth(2)?;
    let rest = line.get(line.find(name)? + name.len()..)?;
    let fields: Vec<u64> = numbers(rest).take(N_FIELDS).collect();
    // Partitions of kernels before 2.6.25 have fewer.
    let n_fields = FIELDS_KNOWN.into_iter().rfind(|n| *n <= fields.len())?;
    Some((name, std::array::from_fn(|field| (field < n_fields).then(|| fields[field]))))
}

/// `sda1` of `sda`, `nvme0n1p2` of `nvme0n1`; but `xvda1` without `xvda` is a disk.
fn is_partition(name: &str, is_disk: impl Fn(&str) -> bool) -> bool {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if stem.len() == name.len() {
        return false;
    }
    let with_p = stem.strip_suffix('p').filter(|disk| disk.ends_with(|c: char| c.is_ascii_digit()));
    is_disk(stem) || with_p.is_some_and(is_disk)
}

/// Its data are on other devices, and would count twice.
fn is_stacked(name: &str) -> bool {
    ["dm-", "md", "loop", "ram", "zram", "bcache", "drbd"].iter().any(|head| name.starts_with(head))
}

pub(super) fn probe(proc_root: &Path, data_disk: Option<String>) -> Box<dyn Probe> {
    let mut source = Source::new(proc_root.join("diskstats"));
    let look = move |_: &mut Readings| source.text().map(parse);
    counting(("disk", READINGS), look, move |before, disks, seconds, readings| {
        let mut total: Growth = [None; N_FIELDS];
        for (name, now) in disks {
            let is_used = [READS, WRITES].iter().any(|field| now[*field] != Some(0));
            let Some(before) = before.get(name).filter(|_| is_used) else { continue };
            let grown: Growth = std::array::from_fn(|field| grown(before[field], now[field]));
            add_disk(&format!("disk.{name}"), &grown, seconds, readings);
            if data_disk.as_ref() == Some(name) {
                add_disk("data_disk", &grown, seconds, readings);
            }
            if !is_stacked(name) {
                add_to(&mut total, &grown);
            }
        }
        add_rates("disk", &RATES, (&total, seconds), readings);
        add_use("disk", &total, seconds, readings);
    })
}

/// Sums, and the time of the busiest disk.
fn add_to(total: &mut Growth, grown: &Growth) {
    for (field, (sum, more)) in total.iter_mut().zip(grown).enumerate() {
        let Some(more) = more else { continue };
        let sum = sum.get_or_insert(0.0);
        *sum = if field == BUSY_MS { sum.max(*more) } else { *sum + more };
    }
}

fn add_disk(prefix: &str, grown: &Growth, seconds: f64, readings: &mut Readings) {
    add_rates(prefix, &RATES, (grown, seconds), readings);
    add_rates(prefix, &RATES_OF_ONE, (grown, seconds), readings);
    add_use(prefix, grown, seconds, readings);
    let both = |a: usize, b: usize| Some(grown[a]? + grown[b]?);
    let bytes = |sectors: usize| Some(grown[sectors]? * SECTOR_BYTES);
    let means = [
        ("saturation", grown[WEIGHTED_MS], grown[BUSY_MS]),
        ("await_ms", both(READ_MS, WRITE_MS), both(READS, WRITES)),
        ("read_await_ms", grown[READ_MS], grown[READS]),
        ("write_await_ms", grown[WRITE_MS], grown[WRITES]),
        ("flush_await_ms", grown[FLUSH_MS], grown[FLUSHES]),
        ("read_request_bytes", bytes(READ_SECTORS), grown[READS]),
        ("write_request_bytes", bytes(WRITE_SECTORS), grown[WRITES]),
    ];
    for (what, sum, count) in means {
        let mean = sum.zip(count.filter(|count| *count > 0.0)).map(|(sum, count)| sum / count);
        insert(readings, format!("{prefix}.{what}"), mean);
    }
}

fn add_rates(
    prefix: &str,
    rates: &[(&str, usize, f64)],
    (grown, seconds): (&Growth, f64),
    readings: &mut Readings,
) {
    for (what, field, factor) in rates {
        let rate = grown[*field].map(|grown| grown * factor / seconds);
        insert(readings, format!("{prefix}.{what}"), rate);
    }
}

fn add_use(prefix: &str, grown: &Growth, seconds: f64, readings: &mut Readings) {
    // A request's time counts when it ends, so a second can hold more than a second.
    let busy_pct = grown[BUSY_MS].map(|busy_ms| (busy_ms / (10.0 * seconds)).min(100.0));
    insert(readings, format!("{prefix}.busy_pct"), busy_pct);
    let queue = grown[WEIGHTED_MS].map(|weighted_ms| weighted_ms / (1000.0 * seconds));
    insert(readings, format!("{prefix}.queue"), queue);
}

#[cfg(test)]
mod tests {
    use dyno_units::Nanoseconds;

    use super::*;

    /// Linux 6.1: 17 counters.
    const NEW: &str = "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n \
        254       0 vda 82819 12973 8360850 53554 26757 60919 23510392 76797 0 13596 131177 7902 3 \
        923568 731 2770 93\n 254       1 vda1 1 2 3 4 5 6 7 8 0 10 11 12 13 14 15 16 17\n";
    /// Linux 3.10: 11 counters.
    const OLD: &str =
        " 8 0 sda 10 1 800 40 20 2 1600 60 3 70 110\n 8 1 sda1 9 0 8 4 2 2 1 6 0 7 10\n";

    #[test]
    fn whole_devices_are_read() {
        let found = parse(NEW);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["loop0", "vda"]);
        let vda = &found["vda"];
        let io = [82_819, 12_973, 8_360_850, 53_554, 26_757, 60_919, 23_510_392, 76_797];
        assert_eq!(vda[..8], io.map(Some));
        assert_eq!([vda[BUSY_MS], vda[WEIGHTED_MS]], [Some(13_596), Some(131_177)]);
        assert_eq!([vda[DISCARDS], vda[FLUSHES]], [Some(7902), Some(2770)]);
        assert_eq!(vda[FLUSH_MS], Some(93));
        let old = parse(OLD);
        assert_eq!((old.len(), old["sda"][WEIGHTED_MS], old["sda"][FLUSHES]), (1, Some(110), None));
    }

    #[test]
    fn partitions_are_classified_by_their_disk() {
        let disks = ["sda", "nvme0n1", "dm-1", "mmcblk0", "md0"];
        let check = |name: &str, expected: bool| {
            assert_eq!(is_partition(name, |disk| disks.contains(&disk)), expected, "{name}");
        };
        check("sda1", true);
        check("nvme0n1p12", true);
        check("mmcblk0p1", true);
        check("md0p1", true);
        check("dm-10", false);
        check("xvda1", false);
        check("nvme0n1", false);
        check("sdap1", false);
        check("", false);
        check("7", false);
    }

    #[test]
    fn rates_are_of_the_time_between_and_totals_count_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |text: &str| {
            std::fs::write(folder.path().join("diskstats"), text).expect("written");
        };
        let mut probe = probe(folder.path(), Some("sda".into()));
        let mut readings = Readings::new();
        write(
            "8 0 sda 10 0 800 40 20 0 1600 60 0 70 110\n253 0 dm-0 10 0 800 40 20 0 1600 60 0 70 110\n\
               7 0 loop0 0 0 0 0 0 0 0 0 0 0 0\n",
        );
        probe.read(Nanoseconds::from_secs(1), &mut readings);
        assert_eq!(readings, Readings::new());
        write(
            "8 0 sda 10 0 800 40 60 0 3600 260 0 1070 4110\n253 0 dm-0 10 0 800 40 60 0 3600 260 0 70 110\n\
               7 0 loop0 0 0 0 0 0 0 0 0 0 0 0\n",
        );
        probe.read(Nanoseconds::from_secs(3), &mut readings);
        let check = |name: &str, expected: f64| assert_eq!(readings[name], expected, "{name}");
        check("disk.sda.writes_per_s", 20.0);
        check("disk.sda.write_bytes_per_s", 512_000.0);
        check("disk.sda.write_await_ms", 5.0);
        check("disk.sda.busy_pct", 50.0);
        check("disk.sda.queue", 2.0);
        check("disk.sda.saturation", 4.0);
        check("disk.sda.await_ms", 5.0);
        check("disk.sda.write_request_bytes", 25_600.0);
        check("data_disk.writes_per_s", 20.0);
        check("data_disk.saturation", 4.0);
        check("disk.writes_per_s", 20.0);
        check("disk.busy_pct", 50.0);
        check("disk.dm-0.writes_per_s", 20.0);
        assert!(!readings.contains_key("disk.sda.read_await_ms"));
        assert!(!readings.keys().any(|name| name.contains("loop0") || name.contains("flush")));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "([a-z0-9é]{0,5}[ 0-9\n]{0,60}){0,4}") {
            let _ = parse(&text);
        }
    }
}
