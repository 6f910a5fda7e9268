//! Resources used by Dyno's own process.

use std::path::Path;

use dyno_units::Nanoseconds;
use rustix::time::{ClockId, clock_gettime};

use crate::process_table::ProcessStat;

/// Seconds in programs and in the kernel, all threads. Resolution: one clock tick, usually 10 ms.
pub fn own_cpu() -> Option<(f64, f64)> {
    let text = std::fs::read_to_string(Path::new("/proc/self/stat")).ok()?;
    let (user, system) = ProcessStat::parse_user_and_system(&text)?;
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    Some((user as f64 / per_second, system as f64 / per_second))
}

pub fn own_rss_bytes() -> Option<u64> {
    let text = std::fs::read_to_string(Path::new("/proc/self/statm")).ok()?;
    let pages: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

pub fn thread_cpu() -> Nanoseconds {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Nanoseconds(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}

/// Seconds of children that ended and were collected, in whole clock ticks.
pub fn children_cpu() -> Option<f64> {
    let text = std::fs::read_to_string(Path::new("/proc/self/stat")).ok()?;
    let ticks = ProcessStat::parse(&text)?.reaped_ticks;
    Some(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}
