//! Memory from `/proc/meminfo`, and paging from `/proc/vmstat`.

use std::path::Path;

use dyno_units::reading::prelude::*;

use super::source::Source;
use super::{Probe, Readings, counting, grown, insert};
use crate::kernel_text::{count, meminfo_bytes};

#[rustfmt::skip]
pub(super) const READINGS: &[Reading] = &[
    reading("memory.available_bytes", Bytes, "Memory available", "memory that programs could still get without swapping").chart(Topic::Memory, 2).better().row(1000),
    reading("memory.free_bytes", Bytes, "free memory", "unused memory"),
    reading("memory.cached_bytes", Bytes, "Page cache", "page cache, shared memory included").chart_if_moving(Topic::Memory, 3),
    reading("memory.dirty_bytes", Bytes, "Dirty pages", "dirty pages of files, not yet written to disk").chart_if_moving(Topic::Memory, 4).row(1010),
    reading("memory.writeback_bytes", Bytes, "pages being written", "dirty pages that are being written to disk now").up(StallCause::Writing),
    reading("memory.swap_used_bytes", Bytes, "Swap in use", "memory moved out to swap").chart_if_moving(Topic::Memory, 5).worse(),
    reading("memory.swap_in_bytes_per_s", BytesPerSecond, "swap in", "memory moved in from swap").worse().up(StallCause::Memory),
    reading("memory.swap_out_bytes_per_s", BytesPerSecond, "swap out", "memory moved out to swap").worse().up(StallCause::Memory),
    reading("memory.major_faults_per_s", PerSecond, "Major page faults", "page faults that had to wait for a disk").chart_if_moving(Topic::Memory, 6).worse().up(StallCause::Memory),
];

/// The kernel's name, ours, and whether pages are counted.
const FLOWS: [(&str, &str, bool); 3] = [
    ("pswpin", "memory.swap_in_bytes_per_s", true),
    ("pswpout", "memory.swap_out_bytes_per_s", true),
    ("pgmajfault", "memory.major_faults_per_s", false),
];

const LEVELS: &[(&str, &str)] = &[
    ("MemAvailable", "memory.available_bytes"),
    ("MemFree", "memory.free_bytes"),
    ("Cached", "memory.cached_bytes"),
    ("Dirty", "memory.dirty_bytes"),
    ("Writeback", "memory.writeback_bytes"),
];

pub(super) fn probe(proc_root: &Path) -> Box<dyn Probe> {
    let mut meminfo = Source::new(proc_root.join("meminfo"));
    let mut vmstat = Source::new(proc_root.join("vmstat"));
    let look = move |readings: &mut Readings| {
        let text = meminfo.text().unwrap_or_default();
        let bytes = |key: &str| meminfo_bytes(text, key);
        for (key, name) in LEVELS {
            insert(readings, *name, bytes(key).map(|bytes| bytes as f64));
        }
        let swap = bytes("SwapTotal").zip(bytes("SwapFree"));
        let swap_used = swap.map(|(total, free)| total.saturating_sub(free) as f64);
        insert(readings, "memory.swap_used_bytes", swap_used);
        let text = vmstat.text().unwrap_or_default();
        Some(FLOWS.map(|(key, ..)| count(text, key, ' ')))
    };
    counting(("memory", READINGS), look, |before, now, seconds, readings| {
        for (idx, (_, name, is_pages)) in FLOWS.into_iter().enumerate() {
            let factor = if is_pages { rustix::param::page_size() as f64 } else { 1.0 };
            let grown = grown(before[idx], now[idx]);
            insert(readings, name, grown.map(|grown| grown * factor / seconds));
        }
    })
}

#[cfg(test)]
mod tests {
    use dyno_units::Nanoseconds;

    use super::*;

    const MEMINFO: &str = "MemTotal:       24684092 kB\nMemFree:            100 kB\n\
        MemAvailable:   24189616 kB\nCached:          2227396 kB\nSwapCached:            7 kB\n\
        SwapTotal:          1000 kB\nSwapFree:            400 kB\nHugePages_Total:       0\n";

    #[test]
    fn levels_come_at_once_and_flows_with_the_second_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("written");
        };
        let mut probe = probe(folder.path());
        write("meminfo", MEMINFO);
        write("vmstat", "pswpin 5\npgmajfault 10\n");
        let mut readings = Readings::new();
        probe.read(Nanoseconds::from_secs(1), &mut readings);
        assert_eq!(readings["memory.swap_used_bytes"], 600.0 * 1024.0);
        assert_eq!(readings.len(), 4);

        write("vmstat", "pswpin 7\npgmajfault 40\n");
        probe.read(Nanoseconds::from_secs(3), &mut readings);
        assert_eq!(readings["memory.major_faults_per_s"], 15.0);
        assert_eq!(readings["memory.swap_in_bytes_per_s"], rustix::param::page_size() as f64);
        assert_eq!(readings.get("memory.swap_out_bytes_per_s"), None);
    }
}
