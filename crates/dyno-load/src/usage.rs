//! What a worker's thread used of the machine, by the kernel.

use std::fs;

use dyno_units::Nanoseconds;

/// All fields only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) cpu: Nanoseconds,
    // In clock ticks (usually 10 ms): good enough for the proportion.
    user_ticks: u64,
    system_ticks: u64,
    /// Time ready to run without a CPU; `None` if the kernel does not report it.
    pub(crate) run_queue: Option<Nanoseconds>,
}

impl Usage {
    pub(crate) fn of_this_thread() -> Usage {
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let stat = fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
        let schedstat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let (user_ticks, system_ticks) = parse_stat(&stat).unwrap_or_default();
        Usage {
            cpu: Nanoseconds(cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64),
            user_ticks,
            system_ticks,
            run_queue: parse_schedstat(&schedstat),
        }
    }

    /// The exact total, split in the proportion of the ticks.
    pub(crate) fn split_since(&self, earlier: &Usage) -> (Nanoseconds, Nanoseconds) {
        let total = self.cpu.saturating_sub(earlier.cpu);
        let user = self.user_ticks.saturating_sub(earlier.user_ticks);
        let system = self.system_ticks.saturating_sub(earlier.system_ticks);
        // Without a tick in the phase, the thread's whole life has to do.
        let (user, system) =
            if user + system > 0 { (user, system) } else { (self.user_ticks, self.system_ticks) };
        let share = match user + system {
            0 => 0.0,
            all => system as f64 / all as f64,
        };
        let system = Nanoseconds((total.0 as f64 * share) as u64);
        (total.saturating_sub(system), system)
    }

    pub(crate) fn run_queue_since(&self, earlier: &Usage) -> Option<Nanoseconds> {
        Some(self.run_queue?.saturating_sub(earlier.run_queue?))
    }
}

/// From `/proc/…/stat` (proc(5), fields 14 and 15). The thread's name in parentheses may hold
/// anything, so counting starts after the last one.
fn parse_stat(stat: &str) -> Option<(u64, u64)> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// From `/proc/…/schedstat`, second field, in ns.
fn parse_schedstat(schedstat: &str) -> Option<Nanoseconds> {
    schedstat.split_ascii_whitespace().nth(1)?.parse().ok().map(Nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_behind_the_name() {
        let stat = "7 (a) b (c) R 1 7 7 0 -1 4194304 95 0 0 0 120 34 0 0 20 0 1 0";
        assert_eq!(parse_stat(stat), Some((120, 34)));
        assert_eq!(parse_stat("nothing"), None);
    }

    #[test]
    fn schedstat_is_read() {
        assert_eq!(parse_schedstat("1000 250 3"), Some(Nanoseconds(250)));
        assert_eq!(parse_schedstat(""), None);
    }

    #[test]
    fn the_total_is_exact_and_split_as_the_ticks_are() {
        let usage = |cpu, user_ticks, system_ticks| Usage {
            cpu: Nanoseconds(cpu),
            user_ticks,
            system_ticks,
            run_queue: None,
        };
        let check = |from: Usage, to: Usage, user, system| {
            assert_eq!(to.split_since(&from), (Nanoseconds(user), Nanoseconds(system)));
        };
        check(usage(100, 0, 0), usage(1100, 3, 1), 750, 250);
        check(usage(100, 3, 1), usage(300, 3, 1), 150, 50);
        check(usage(0, 0, 0), usage(300, 0, 0), 300, 0);
    }

    #[test]
    fn this_thread_has_used_something() {
        assert!(Usage::of_this_thread().cpu > Nanoseconds::ZERO);
    }
}
