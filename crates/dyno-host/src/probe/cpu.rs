//! How the CPUs spend their time, from `/proc/stat` (proc_stat(5)). Linux measures idle time and
//! disk waits with a clock (`CONFIG_NO_HZ_COMMON`), but samples busy modes at timer ticks, which
//! miss short runs: with small transactions that wait for a disk, a fifth of the work was in no
//! mode. So busy time is all time not idle, waiting or stolen; what the modes lack has its own
//! reading.

use std::path::Path;

use dyno_units::reading::prelude::*;

use super::source::Source;
use super::{Probe, Readings, counting, grown, growth, insert};
use crate::kernel_text::numbers;

/// In the order of the file. User time includes guest time.
const MODES: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
const IDLE: usize = 3;
const IOWAIT: usize = 4;
const STEAL: usize = 7;

#[rustfmt::skip]
pub(super) const READINGS: &[Reading] = &[
    reading("cpu.busy_pct", Percent, "CPU", "share of all CPUs that did work: not idle, waiting or stolen").row(260).words("CPU"),
    reading("cpu.busy_s_per_s", Cpus, "busy CPUs", "CPU time spent on work, summed over all CPUs: all time but idle, waiting and stolen"),
    reading("cpu.unsampled_pct", Percent, "busy, mode unknown", "share of all CPUs that was busy, but that the kernel's tick sampling did not assign to user, system or any other mode").chart_if_moving(Topic::CpuMode, 9),
    reading("cpu.unsampled_s_per_s", Cpus, "busy, mode unknown", "busy CPU time that the kernel's tick sampling did not assign to user, system or any other mode"),
    reading("cpu.busiest_pct", Percent, "busiest CPU", "share of time that the busiest single CPU did work").worse().row(270),
    reading("cpu.user_pct", Percent, "user", "share of all CPUs spent in user mode").chart(Topic::CpuMode, 1),
    reading("cpu.user_s_per_s", Cpus, "user", "CPU time spent in user mode"),
    reading("cpu.nice_pct", Percent, "nice", "share of all CPUs spent in low-priority programs (nice)").chart_if_moving(Topic::CpuMode, 8),
    reading("cpu.nice_s_per_s", Cpus, "nice", "CPU time spent in low-priority programs (nice)"),
    reading("cpu.system_pct", Percent, "system", "share of all CPUs spent in the kernel").chart(Topic::CpuMode, 2),
    reading("cpu.system_s_per_s", Cpus, "system", "CPU time spent in the kernel"),
    reading("cpu.idle_pct", Percent, "idle", "share of all CPUs with nothing to do").chart(Topic::CpuMode, 4),
    reading("cpu.idle_s_per_s", Cpus, "idle", "CPU time with nothing to do"),
    reading("cpu.iowait_pct", Percent, "iowait", "share of all CPUs idle while a thread there waited for a disk").chart(Topic::CpuMode, 3).worse().up(StallCause::Disk).row(280),
    reading("cpu.iowait_s_per_s", Cpus, "iowait", "CPU time idle while a thread there waited for a disk").worse(),
    reading("cpu.irq_pct", Percent, "irq", "share of all CPUs spent on interrupts").chart_if_moving(Topic::CpuMode, 7),
    reading("cpu.irq_s_per_s", Cpus, "irq", "CPU time spent on interrupts"),
    reading("cpu.softirq_pct", Percent, "softirq", "share of all CPUs spent on deferred interrupt work").chart_if_moving(Topic::CpuMode, 6),
    reading("cpu.softirq_s_per_s", Cpus, "softirq", "CPU time spent on deferred interrupt work"),
    reading("cpu.steal_pct", Percent, "steal", "share of all CPUs that the hypervisor gave to others").chart_if_moving(Topic::CpuMode, 5).worse().up(StallCause::StolenCpu).row(290),
    reading("cpu.steal_s_per_s", Cpus, "steal", "CPU time that the hypervisor gave to others").worse(),
    reading("cpu.context_switches_per_s", PerSecond, "Context switches", "switches from one thread to another").chart(Topic::Load, 3).row(310),
    reading("cpu.interrupts_per_s", PerSecond, "interrupts", "interrupts served"),
    reading("cpu.forks_per_s", PerSecond, "forks", "processes and threads created"),
    reading("cpu.running", Unit::other("threads"), "Threads that run or wait for a CPU", "threads that run or wait for a CPU (run queue)").chart(Topic::Load, 1).worse().up(StallCause::WaitingForCpu).row(300),
    reading("cpu.blocked", Unit::other("threads"), "threads blocked by a disk", "threads in uninterruptible sleep, usually waiting for a disk").worse().up(StallCause::Disk),
];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuCounters {
    /// Ticks, all CPUs together.
    pub(crate) modes: [u64; MODES.len()],
    /// Ticks without work by CPU.
    each: Vec<u64>,
    context_switches: Option<u64>,
    interrupts: Option<u64>,
    forks: Option<u64>,
    running: Option<u64>,
    blocked: Option<u64>,
}

impl CpuCounters {
    /// From `/proc/stat`; `None` without a line for all CPUs.
    pub(crate) fn parse(text: &str) -> Option<CpuCounters> {
        let mut found = CpuCounters::default();
        let mut has_total = false;
        for line in text.lines() {
            let Some((key, rest)) = line.split_once(' ') else { continue };
            let first = || numbers(rest).next();
            match key {
                "cpu" => {
                    found.modes = parse_modes(rest);
                    has_total = true;
                }
                "ctxt" => found.context_switches = first(),
                "intr" => found.interrupts = first(),
                "processes" => found.forks = first(),
                "procs_running" => found.running = first(),
                "procs_blocked" => found.blocked = first(),
                _ if key.starts_with("cpu") => {
                    found.each.push(without_work(&parse_modes(rest)));
                }
                _ => {}
            }
        }
        has_total.then_some(found)
    }

    pub(crate) fn n_cpus(&self) -> usize {
        self.each.len()
    }

    /// In ticks, by mode.
    pub(crate) fn since(&self, before: &CpuCounters) -> [u64; MODES.len()] {
        let mut grown = self.modes;
        for (now, before) in grown.iter_mut().zip(before.modes) {
            *now = now.saturating_sub(before);
        }
        grown
    }
}

/// Ticks of all modes but idle, disk wait and stolen.
pub(crate) fn busy(modes: &[u64; MODES.len()]) -> u64 {
    sum(modes).saturating_sub(without_work(modes))
}

/// Ticks of idle, disk wait and stolen.
fn without_work(modes: &[u64; MODES.len()]) -> u64 {
    modes[IDLE].saturating_add(modes[IOWAIT]).saturating_add(modes[STEAL])
}

pub(crate) fn stolen(modes: &[u64; MODES.len()]) -> u64 {
    modes[STEAL]
}

pub(crate) fn sum(modes: &[u64; MODES.len()]) -> u64 {
    modes.iter().fold(0, |sum, ticks| sum.saturating_add(*ticks))
}

fn parse_modes(text: &str) -> [u64; MODES.len()] {
    // Kernels before 2.6.11 report fewer modes.
    let mut modes = [0; MODES.len()];
    modes.iter_mut().zip(numbers(text)).for_each(|(mode, ticks)| *mode = ticks);
    modes
}

pub(super) fn probe(proc_root: &Path, ticks_per_s: u64) -> Box<dyn Probe> {
    let mut source = Source::new(proc_root.join("stat"));
    let look = move |readings: &mut Readings| {
        let counters = source.text().and_then(CpuCounters::parse)?;
        insert(readings, "cpu.running", counters.running.map(|n| n as f64));
        insert(readings, "cpu.blocked", counters.blocked.map(|n| n as f64));
        Some(counters)
    };
    // Ticks by which the modes exceeded busy time so far: samples scatter.
    let mut oversampled = 0.0;
    counting(("cpu", READINGS), look, move |before, now, seconds, readings| {
        let ticks = seconds * ticks_per_s as f64;
        add_modes((before, now), ticks, &mut oversampled, readings);
        add_busiest(before, now, ticks, readings);
        let events = [
            ("context_switches", grown(before.context_switches, now.context_switches)),
            ("interrupts", grown(before.interrupts, now.interrupts)),
            ("forks", grown(before.forks, now.forks)),
        ];
        for (name, grown) in events {
            insert(readings, format!("cpu.{name}_per_s"), grown.map(|grown| grown / seconds));
        }
    })
}

fn add_modes(
    (before, now): (&CpuCounters, &CpuCounters),
    ticks: f64,
    oversampled: &mut f64,
    readings: &mut Readings,
) {
    let grown = now.since(before);
    let capacity = ticks * now.n_cpus() as f64;
    // The sum means nothing without CPU lines, or if a CPU was switched on or off; some virtual
    // hosts show zeros only.
    let is_known = capacity > 0.0 && before.n_cpus() == now.n_cpus() && sum(&grown) > 0;
    let mut add = |name: &str, spent: f64| {
        readings.insert(format!("cpu.{name}_s_per_s"), spent / ticks);
        if is_known {
            readings.insert(format!("cpu.{name}_pct"), 100.0 * spent / capacity);
        }
    };
    for (name, grown) in MODES.iter().copied().zip(grown) {
        add(name, grown as f64);
    }
    if is_known {
        let spent = (capacity - without_work(&grown) as f64).max(0.0);
        add("busy", spent);
        let unsampled = spent - busy(&grown) as f64 - *oversampled;
        *oversampled = (-unsampled).max(0.0);
        add("unsampled", unsampled.max(0.0));
    }
}

fn add_busiest(before: &CpuCounters, now: &CpuCounters, ticks: f64, readings: &mut Readings) {
    // A CPU switched on or off shifts the list.
    if before.each.len() != now.each.len() || sum(&now.since(before)) == 0 {
        return;
    }
    let shares =
        before.each.iter().zip(&now.each).map(|(before, now)| {
            (100.0 * (ticks - growth(*before, *now)) / ticks).clamp(0.0, 100.0)
        });
    insert(readings, "cpu.busiest_pct", shares.reduce(f64::max));
}

#[cfg(test)]
mod tests {
    use dyno_units::Nanoseconds;

    use super::*;

    /// Linux 6.1 on two CPUs.
    const TEXT: &str = "cpu  25379 10 8925 282729 906 5 87 26 100 0\n\
        cpu0 12279 0 3463 143055 194 0 17 10 0 0\n\
        cpu1 13100 10 5462 139674 712 5 70 16 100 0\n\
        intr 344665 0 0 14\nctxt 576459\nbtime 1795165961\nprocesses 13786\n\
        procs_running 3\nprocs_blocked 1\nsoftirq 235919 0 31600\n";

    #[test]
    fn the_counters_are_read() {
        let found = CpuCounters::parse(TEXT).expect("counters");
        assert_eq!(found.modes, [25_379, 10, 8_925, 282_729, 906, 5, 87, 26]);
        assert_eq!(found.each.len(), 2);
        assert_eq!(found.each[0], 143_055 + 194 + 10);
        assert_eq!(busy(&found.modes), 25_379 + 10 + 8_925 + 5 + 87);
        assert_eq!(
            [found.context_switches, found.interrupts, found.forks, found.running, found.blocked],
            [Some(576_459), Some(344_665), Some(13_786), Some(3), Some(1)]
        );
    }

    #[test]
    fn older_kernels_report_less() {
        let found = CpuCounters::parse("cpu 10 20 30 40\ncpu0 10 20 30 40\n").expect("counters");
        assert_eq!(found.modes, [10, 20, 30, 40, 0, 0, 0, 0]);
        assert_eq!(found.running, None);
        assert_eq!(CpuCounters::parse("ctxt 5\n"), None);
    }

    #[test]
    fn shares_and_seconds_are_of_the_time_between() {
        let text = |user: u64, idle: u64, steal: u64| {
            format!(
                "cpu {user} 0 0 {idle} 0 0 0 {steal}\ncpu0 {user} 0 0 0 0 0 0 {steal}\n\
                 cpu1 0 0 0 {idle} 0 0 0 0\nctxt {user}\nprocs_running 2\n"
            )
        };
        let folder = tempfile::tempdir().expect("a folder");
        let write =
            |text: String| std::fs::write(folder.path().join("stat"), text).expect("written");
        let mut probe = probe(folder.path(), 100);
        let mut readings = Readings::new();
        write(text(1000, 5000, 10));
        probe.read(Nanoseconds::from_secs(1), &mut readings);
        assert_eq!(readings, Readings::from([("cpu.running".into(), 2.0)]));

        write(text(1150, 5200, 60));
        probe.read(Nanoseconds::from_secs(3), &mut readings);
        let check = |name: &str, expected: f64| assert_eq!(readings[name], expected, "{name}");
        check("cpu.user_s_per_s", 0.75);
        check("cpu.user_pct", 37.5);
        check("cpu.busy_pct", 37.5);
        check("cpu.idle_pct", 50.0);
        check("cpu.steal_pct", 12.5);
        check("cpu.busiest_pct", 75.0);
        check("cpu.context_switches_per_s", 75.0);
    }

    #[test]
    fn work_between_ticks_is_busy_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut probe = probe(folder.path(), 100);
        let mut second = 0;
        let mut check = |(user, idle): (u64, u64), expected: Option<(f64, f64)>| {
            let text = format!("cpu {user} 0 0 {idle}\ncpu0 {user} 0 0 {idle}\n");
            std::fs::write(folder.path().join("stat"), text).expect("written");
            let mut readings = Readings::new();
            second += 1;
            probe.read(Nanoseconds::from_secs(second), &mut readings);
            let both = [readings.get("cpu.busy_s_per_s"), readings.get("cpu.unsampled_s_per_s")];
            let round = |value: f64| (value * 1e6).round() / 1e6;
            let found = both[0].zip(both[1]).map(|(a, b)| (round(*a), round(*b)));
            assert_eq!(found, expected, "{user} {idle}");
        };
        check((0, 0), None);
        check((20, 50), Some((0.5, 0.3)));
        // Excess samples count against the next second.
        check((90, 90), Some((0.6, 0.0)));
        check((110, 140), Some((0.5, 0.2)));
        // A host that reports nothing was not busy.
        check((110, 140), None);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "((cpu|ctxt|intr)?[0-9 \n-]{0,30}){0,6}") {
            if let Some(found) = CpuCounters::parse(&text) {
                let _ = busy(&found.modes);
            }
        }
    }
}
