//! Memory from `/proc/meminfo`, and paging from `/proc/vmstat`.

use std::path::Path;

use dyno_units::Nanoseconds;
use dyno_units::reading::prelude::*;

use super::source::Source;
use super::{Probe, Readings, growth, numbers, seconds_since};

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

pub(crate) fn meminfo_bytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    numbers(line).next()?.checked_mul(1024)
}

fn vmstat_count(text: &str, key: &str) -> Option<u64> {
    numbers(text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))?).next()
}

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

pub(super) struct MemoryProbe {
    meminfo: Source,
    vmstat: Source,
    before: Option<Nanoseconds>,
    flows_before: [Option<u64>; FLOWS.len()],
}

impl MemoryProbe {
    pub(super) fn new(proc_root: &Path) -> MemoryProbe {
        MemoryProbe {
            meminfo: Source::new(proc_root.join("meminfo")),
            vmstat: Source::new(proc_root.join("vmstat")),
            before: None,
            flows_before: [None; FLOWS.len()],
        }
    }
}

impl Probe for MemoryProbe {
    fn registered(&self) -> Cow<'static, [Reading]> {
        READINGS.into()
    }

    fn read(&mut self, now: Nanoseconds, readings: &mut Readings) {
        let text = self.meminfo.text().unwrap_or_default();
        for (key, name) in LEVELS.iter().copied() {
            if let Some(bytes) = meminfo_bytes(text, key) {
                readings.insert(name.into(), bytes as f64);
            }
        }
        let swap = (meminfo_bytes(text, "SwapTotal"), meminfo_bytes(text, "SwapFree"));
        if let (Some(total), Some(free)) = swap {
            readings.insert("memory.swap_used_bytes".into(), total.saturating_sub(free) as f64);
        }
        let text = self.vmstat.text().unwrap_or_default();
        let flows = FLOWS.map(|(key, ..)| vmstat_count(text, key));
        if let Some(seconds) = seconds_since(self.before, now) {
            for (idx, (_, name, is_pages)) in FLOWS.into_iter().enumerate() {
                if let (Some(before), Some(now)) = (self.flows_before[idx], flows[idx]) {
                    let factor = if is_pages { rustix::param::page_size() as f64 } else { 1.0 };
                    readings.insert(name.into(), growth(before, now) * factor / seconds);
                }
            }
        }
        self.before = Some(now);
        self.flows_before = flows;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: &str = "MemTotal:       24684092 kB\nMemFree:            100 kB\n\
        MemAvailable:   24189616 kB\nCached:          2227396 kB\nSwapCached:            7 kB\n\
        SwapTotal:          1000 kB\nSwapFree:            400 kB\nHugePages_Total:       0\n";

    #[test]
    fn a_level_is_found_by_its_whole_name() {
        let check = |key: &str, expected: Option<u64>| {
            assert_eq!(meminfo_bytes(MEMINFO, key), expected, "{key}");
        };
        check("MemFree", Some(102_400));
        check("Cached", Some(2_227_396 * 1024));
        check("Dirty", None);
        check("Mem", None);
        assert_eq!(meminfo_bytes("MemFree: 99999999999999999 kB", "MemFree"), None);
        assert_eq!(meminfo_bytes("MemFree: lots", "MemFree"), None);
        assert_eq!(vmstat_count("pswpin 5\npswpout 7\n", "pswpout"), Some(7));
        assert_eq!(vmstat_count("pswpin_x 5\n", "pswpin"), None);
    }

    #[test]
    fn levels_come_at_once_and_flows_with_the_second_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("written");
        };
        let mut probe = MemoryProbe::new(folder.path());
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
