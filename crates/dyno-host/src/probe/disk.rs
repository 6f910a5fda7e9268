//! Disk activity, from `/proc/diskstats` (iostats.rst of the kernel).

use std::collections::BTreeMap;
use std::path::Path;

use dyno_units::Nanoseconds;
use dyno_units::reading::prelude::*;

use super::source::Source;
use super::{Probe, Readings, growth, numbers, seconds_since};

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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct DiskCounters {
    reads: u64,
    read_merges: u64,
    read_sectors: u64,
    read_ms: u64,
    writes: u64,
    write_merges: u64,
    write_sectors: u64,
    write_ms: u64,
    /// With at least one request under way.
    busy_ms: u64,
    /// Requests in flight, summed over time.
    weighted_ms: u64,
    /// Since Linux 4.18.
    discards: Option<u64>,
    /// Number and time; since Linux 5.5.
    flushes: Option<(u64, u64)>,
}

/// Without partitions.
fn parse(text: &str) -> BTreeMap<String, DiskCounters> {
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

fn parse_line(line: &str) -> Option<(&str, DiskCounters)> {
    let mut words = line.split_ascii_whitespace();
    let name = words.nth(2)?;
    let rest = line.get(line.find(name)? + name.len()..)?;
    let mut fields = [0; 17];
    let n_fields = fields.iter_mut().zip(numbers(rest)).map(|(field, n)| *field = n).count();
    // Partitions of kernels before 2.6.25 have fewer.
    if n_fields < 11 {
        return None;
    }
    Some((
        name,
        DiskCounters {
            reads: fields[0],
            read_merges: fields[1],
            read_sectors: fields[2],
            read_ms: fields[3],
            writes: fields[4],
            write_merges: fields[5],
            write_sectors: fields[6],
            write_ms: fields[7],
            busy_ms: fields[9],
            weighted_ms: fields[10],
            discards: (n_fields >= 15).then_some(fields[11]),
            flushes: (n_fields == 17).then_some((fields[15], fields[16])),
        },
    ))
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

pub(super) struct DiskProbe {
    source: Source,
    data_disk: Option<String>,
    before: Option<(Nanoseconds, BTreeMap<String, DiskCounters>)>,
}

impl DiskProbe {
    pub(super) fn new(proc_root: &Path, data_disk: Option<String>) -> DiskProbe {
        DiskProbe { source: Source::new(proc_root.join("diskstats")), data_disk, before: None }
    }
}

impl Probe for DiskProbe {
    fn registered(&self) -> Cow<'static, [Reading]> {
        READINGS.into()
    }

    fn read(&mut self, now: Nanoseconds, readings: &mut Readings) {
        let disks = self.source.text().map(parse);
        if let (Some((at, before)), Some(disks)) = (&self.before, &disks)
            && let Some(seconds) = seconds_since(Some(*at), now)
        {
            let mut total = Totals::default();
            for (name, now) in disks {
                let is_used = now.reads + now.writes > 0;
                if let (Some(before), true) = (before.get(name), is_used) {
                    add_disk(&format!("disk.{name}"), (before, now), seconds, readings);
                    if self.data_disk.as_ref() == Some(name) {
                        add_disk("data_disk", (before, now), seconds, readings);
                    }
                    if !is_stacked(name) {
                        total.add(before, now);
                    }
                }
            }
            total.write(seconds, readings);
        }
        self.before = disks.map(|disks| (now, disks));
    }
}

fn add_disk(
    prefix: &str,
    (before, now): (&DiskCounters, &DiskCounters),
    seconds: f64,
    readings: &mut Readings,
) {
    let mut add = |what: &str, value: f64| readings.insert(format!("{prefix}.{what}"), value);
    let grown = |count: fn(&DiskCounters) -> u64| growth(count(before), count(now));
    let (reads, writes) = (grown(|c| c.reads), grown(|c| c.writes));
    let bytes_read = grown(|c| c.read_sectors) * SECTOR_BYTES;
    let bytes_written = grown(|c| c.write_sectors) * SECTOR_BYTES;
    let (read_ms, write_ms) = (grown(|c| c.read_ms), grown(|c| c.write_ms));
    let (busy_ms, weighted_ms) = (grown(|c| c.busy_ms), grown(|c| c.weighted_ms));
    add("reads_per_s", reads / seconds);
    add("writes_per_s", writes / seconds);
    add("read_bytes_per_s", bytes_read / seconds);
    add("write_bytes_per_s", bytes_written / seconds);
    add("read_merges_per_s", grown(|c| c.read_merges) / seconds);
    add("write_merges_per_s", grown(|c| c.write_merges) / seconds);
    // A request's time counts when it ends, so a second can hold more than a second.
    add("busy_pct", (busy_ms / (10.0 * seconds)).min(100.0));
    add("queue", weighted_ms / (1000.0 * seconds));
    let mut add_mean = |what: &str, sum: f64, count: f64| {
        if count > 0.0 {
            add(what, sum / count);
        }
    };
    add_mean("saturation", weighted_ms, busy_ms);
    add_mean("await_ms", read_ms + write_ms, reads + writes);
    add_mean("read_await_ms", read_ms, reads);
    add_mean("write_await_ms", write_ms, writes);
    add_mean("read_request_bytes", bytes_read, reads);
    add_mean("write_request_bytes", bytes_written, writes);
    if let (Some(before), Some(now)) = (before.flushes, now.flushes) {
        add_mean("flush_await_ms", growth(before.1, now.1), growth(before.0, now.0));
        add("flushes_per_s", growth(before.0, now.0) / seconds);
    }
    if let (Some(before), Some(now)) = (before.discards, now.discards) {
        add("discards_per_s", growth(before, now) / seconds);
    }
}

#[derive(Default)]
struct Totals {
    n_disks: usize,
    reads: f64,
    writes: f64,
    sectors_read: f64,
    sectors_written: f64,
    flushes: Option<f64>,
    weighted_ms: f64,
    busy_ms_max: f64,
}

impl Totals {
    fn add(&mut self, before: &DiskCounters, now: &DiskCounters) {
        self.n_disks += 1;
        self.reads += growth(before.reads, now.reads);
        self.writes += growth(before.writes, now.writes);
        self.sectors_read += growth(before.read_sectors, now.read_sectors);
        self.sectors_written += growth(before.write_sectors, now.write_sectors);
        self.weighted_ms += growth(before.weighted_ms, now.weighted_ms);
        self.busy_ms_max = self.busy_ms_max.max(growth(before.busy_ms, now.busy_ms));
        if let (Some(before), Some(now)) = (before.flushes, now.flushes) {
            *self.flushes.get_or_insert(0.0) += growth(before.0, now.0);
        }
    }

    fn write(&self, seconds: f64, readings: &mut Readings) {
        if self.n_disks == 0 {
            return;
        }
        let mut add = |what: &str, value: f64| readings.insert(format!("disk.{what}"), value);
        add("reads_per_s", self.reads / seconds);
        add("writes_per_s", self.writes / seconds);
        add("read_bytes_per_s", self.sectors_read * SECTOR_BYTES / seconds);
        add("write_bytes_per_s", self.sectors_written * SECTOR_BYTES / seconds);
        add("busy_pct", (self.busy_ms_max / (10.0 * seconds)).min(100.0));
        add("queue", self.weighted_ms / (1000.0 * seconds));
        if let Some(flushes) = self.flushes {
            add("flushes_per_s", flushes / seconds);
        }
    }
}

#[cfg(test)]
mod tests {
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
        let expected = DiskCounters {
            reads: 82_819,
            read_merges: 12_973,
            read_sectors: 8_360_850,
            read_ms: 53_554,
            writes: 26_757,
            write_merges: 60_919,
            write_sectors: 23_510_392,
            write_ms: 76_797,
            busy_ms: 13_596,
            weighted_ms: 131_177,
            discards: Some(7902),
            flushes: Some((2770, 93)),
        };
        assert_eq!(found["vda"], expected);
        let old = parse(OLD);
        assert_eq!((old.len(), old["sda"].weighted_ms, old["sda"].flushes), (1, 110, None));
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
        let mut probe = DiskProbe::new(folder.path(), Some("sda".into()));
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
