//! What Dyno's own process has used.

use std::path::Path;

use crate::process_table::ProcessStat;

/// CPU time of this process so far, all its threads together, in seconds: in programs, and in the
/// kernel. None if the kernel does not tell. Resolution: one clock tick, usually 10 ms.
pub fn own_cpu() -> Option<(f64, f64)> {
    let text = std::fs::read_to_string(Path::new("/proc/self/stat")).ok()?;
    let (user, system) = ProcessStat::parse_user_and_system(&text)?;
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    Some((user as f64 / per_second, system as f64 / per_second))
}
