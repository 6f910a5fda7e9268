//! What a reading is about, from its name: which chart it goes to and in which unit it is.
//!
//! Names are those of the probes: `disk.read_bytes_per_s`, `server.cpu_s_per_s`. Their endings tell
//! the unit. A name that is not known here is still drawn, among the further readings.

use dyno_units::ReadingUnit;

use crate::format::Unit;

/// Where a reading is shown, in the order of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    /// CPU of the machine by mode.
    CpuMode,
    /// CPU by group of processes.
    CpuGroup,
    /// Who runs and who waits for a CPU, and how long others take then.
    Load,
    /// Disk devices.
    Disk,
    /// Files of the server.
    Files,
    /// Memory.
    Memory,
    /// Pressure: the share of time in which something waited.
    Pressure,
    /// Anything else, the server's own counters among them.
    Other,
}

/// A reading, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Where.
    pub(crate) topic: Topic,
    /// Its name in a legend or title.
    pub(crate) title: String,
    /// Its unit.
    pub(crate) unit: Unit,
    /// Its place among those of its topic.
    pub(crate) rank: usize,
    /// Whether it is shown even where it is zero all the time: that nothing was read from disk is
    /// something to be seen.
    pub(crate) is_kept: bool,
}

/// Readings with a place of their own: name, topic, title, and whether they are always shown.
const KNOWN: [(&str, Topic, &str, bool); 39] = [
    ("cpu.user_pct", Topic::CpuMode, "user", true),
    ("cpu.system_pct", Topic::CpuMode, "system", true),
    ("cpu.iowait_pct", Topic::CpuMode, "waiting for disk", true),
    ("cpu.idle_pct", Topic::CpuMode, "idle", true),
    ("cpu.steal_pct", Topic::CpuMode, "taken by the hypervisor", false),
    ("cpu.softirq_pct", Topic::CpuMode, "deferred interrupts", false),
    ("cpu.irq_pct", Topic::CpuMode, "interrupts", false),
    ("cpu.nice_pct", Topic::CpuMode, "low priority", false),
    ("cpu.unsampled_pct", Topic::CpuMode, "busy between the kernel's samples", false),
    ("server.cpu_s_per_s", Topic::CpuGroup, "server", true),
    ("generator.cpu_s_per_s", Topic::CpuGroup, "load generator", true),
    ("rest.cpu_s_per_s", Topic::CpuGroup, "everything else", true),
    ("cpu.running", Topic::Load, "Threads that run or wait for a CPU", true),
    ("load.avg1", Topic::Load, "Load average of a minute", true),
    ("cpu.context_switches_per_s", Topic::Load, "Context switches", true),
    ("responsiveness.process_ms", Topic::Load, "An unrelated small process took", true),
    ("disk.read_bytes_per_s", Topic::Disk, "Bytes read from disks", true),
    ("disk.write_bytes_per_s", Topic::Disk, "Bytes written to disks", true),
    ("server.disk_read_bytes_per_s", Topic::Disk, "Bytes read for the server", false),
    ("server.disk_write_bytes_per_s", Topic::Disk, "Bytes written by the server", false),
    ("disk.reads_per_s", Topic::Disk, "Reads", false),
    ("disk.writes_per_s", Topic::Disk, "Writes", false),
    ("disk.flushes_per_s", Topic::Disk, "Cache flushes", false),
    ("disk.busy_pct", Topic::Disk, "Busiest disk: time with work", false),
    ("disk.queue", Topic::Disk, "Requests under way", false),
    ("data.tables_bytes", Topic::Files, "Tables", true),
    ("data.indexes_bytes", Topic::Files, "Indexes", true),
    ("data.tables_and_indexes_bytes", Topic::Files, "Tables and indexes", true),
    ("data.undo_bytes", Topic::Files, "Undo logs", true),
    ("data.logs_bytes", Topic::Files, "Logs", true),
    ("server.rss_bytes", Topic::Memory, "Resident memory of the server", true),
    ("memory.available_bytes", Topic::Memory, "Memory available", true),
    ("memory.cached_bytes", Topic::Memory, "Pages of files in memory", false),
    ("memory.dirty_bytes", Topic::Memory, "Changed pages to be written", false),
    ("memory.swap_used_bytes", Topic::Memory, "Swap in use", false),
    ("memory.major_faults_per_s", Topic::Memory, "Page faults that waited for a disk", false),
    ("psi.cpu.some_pct", Topic::Pressure, "Waited for a CPU", true),
    ("psi.io.some_pct", Topic::Pressure, "Waited for a disk", true),
    ("psi.memory.some_pct", Topic::Pressure, "Waited for memory", true),
];

/// Tells what a reading is about.
pub(crate) fn classify(name: &str) -> Reading {
    let known = KNOWN.iter().enumerate().find(|(_, known)| known.0 == name);
    let (rank, topic, title, is_kept) = match known {
        Some((rank, (_, topic, title, is_kept))) => (rank, *topic, *title, *is_kept),
        None => (KNOWN.len(), Topic::Other, name, false),
    };
    Reading { topic, title: title.to_owned(), unit: unit_of(name, ""), rank, is_kept }
}

/// The unit of a reading, as the record has it, else from the ending of its name.
pub(crate) fn unit_of(name: &str, legend: &str) -> Unit {
    match ReadingUnit::of(name, legend) {
        ReadingUnit::Count => Unit::Count,
        ReadingUnit::PerSecond => Unit::PerSecond,
        ReadingUnit::Bytes => Unit::Bytes,
        ReadingUnit::BytesPerSecond => Unit::BytesPerSecond,
        ReadingUnit::Percent => Unit::Percent,
        ReadingUnit::Microseconds => Unit::Micros,
        ReadingUnit::Cpus => Unit::Cpus,
        other => Unit::Other(other.symbol().to_owned()),
    }
}

/// The group of a reading without a place of its own: the first part of its name, `debt` or
/// `innodb`; that of a device or an interface with it.
pub(crate) fn group(name: &str) -> &str {
    let mut dots = name.match_indices('.').map(|(at, _)| at);
    let (first, second) = (dots.next(), dots.next());
    match (first, second) {
        (Some(at), Some(next)) if matches!(&name[..at], "disk" | "network" | "cgroup") => {
            &name[..next]
        }
        (Some(at), _) => &name[..at],
        _ => "others",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_told_by_their_names() {
        let check = |name: &str, topic: Topic, title: &str, unit: Unit| {
            let reading = classify(name);
            assert_eq!((reading.topic, reading.title.as_str()), (topic, title), "{name}");
            assert_eq!(reading.unit, unit, "{name}");
        };
        check("cpu.user_pct", Topic::CpuMode, "user", Unit::Percent);
        check("server.cpu_s_per_s", Topic::CpuGroup, "server", Unit::Cpus);
        let read = "Bytes read from disks";
        check("disk.read_bytes_per_s", Topic::Disk, read, Unit::BytesPerSecond);
        let one = "disk.sda.read_await_ms";
        check(one, Topic::Other, one, Unit::Other("ms".to_owned()));
        let forks = "cpu.forks_per_s";
        check(forks, Topic::Other, forks, Unit::PerSecond);
        check("mysql.threads_running", Topic::Other, "mysql.threads_running", Unit::Count);
        assert_eq!(unit_of("mysql.checkpoint_age", "bytes"), Unit::Bytes);
        assert_eq!(unit_of("mysql.checkpoint_age_bytes", ""), Unit::Bytes);
        assert_eq!(unit_of("pg.xmin_age", "transactions"), Unit::Other("transactions".to_owned()));
        assert_eq!(unit_of("pg.dead_tuples", "1"), Unit::Count);
        assert_eq!(unit_of("server.cpu_s_per_s", "CPU s/s"), Unit::Cpus);
        let waiters = Unit::Other("waiters".to_owned());
        assert_eq!(unit_of("innodb.row_lock_wait_s_per_s", "s/s"), waiters);
        let names =
            ["disk.sda.queue", "network.eth0.drops_per_s", "innodb.data.reads", "debt.all", "load"];
        assert_eq!(names.map(group), ["disk.sda", "network.eth0", "innodb", "debt", "others"]);
    }
}
