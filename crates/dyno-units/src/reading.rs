//! The units of readings: one table from what a probe says of a reading, or from the ending of its
//! name, to a typed unit.

/// What a reading counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadingUnit {
    /// A plain count.
    Count,
    /// Events per second.
    PerSecond,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// A share in percent.
    Percent,
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// CPU seconds per second: how many CPUs were busy.
    Cpus,
    /// Seconds waited per second: how many waited, on average.
    Waiters,
    /// Any other time per second: how many were at it at a time, on average.
    AtATime,
    /// A unit with no entry of its own, as the probe writes it.
    Other(String),
}

/// Units as probes and records write them.
const LEGENDS: [(&str, ReadingUnit); 16] = [
    ("1", ReadingUnit::Count),
    ("1/s", ReadingUnit::PerSecond),
    ("/s", ReadingUnit::PerSecond),
    ("B", ReadingUnit::Bytes),
    ("bytes", ReadingUnit::Bytes),
    ("B/s", ReadingUnit::BytesPerSecond),
    ("bytes/s", ReadingUnit::BytesPerSecond),
    ("%", ReadingUnit::Percent),
    ("µs", ReadingUnit::Microseconds),
    ("us", ReadingUnit::Microseconds),
    ("ms", ReadingUnit::Milliseconds),
    ("CPU", ReadingUnit::Cpus),
    ("CPUs", ReadingUnit::Cpus),
    ("CPU s/s", ReadingUnit::Cpus),
    ("waiters", ReadingUnit::Waiters),
    ("at a time", ReadingUnit::AtATime),
];

/// Endings of names; the first that fits counts.
const ENDINGS: [(&str, ReadingUnit); 6] = [
    ("_bytes_per_s", ReadingUnit::BytesPerSecond),
    ("_per_s", ReadingUnit::PerSecond),
    ("_bytes", ReadingUnit::Bytes),
    ("_pct", ReadingUnit::Percent),
    ("_ms", ReadingUnit::Milliseconds),
    ("_us", ReadingUnit::Microseconds),
];

/// Parts of the names of times per second in which somebody waited.
const WAITS: [&str; 7] =
    ["wait", "stalled", "throttled", "block_read", "block_write", "wal_write", "wal_sync"];

impl ReadingUnit {
    /// The unit of a reading by its name and what its probe says of it (`bytes/s`), which is empty
    /// where it says nothing.
    pub fn of(name: &str, legend: &str) -> ReadingUnit {
        if name.ends_with("_s_per_s") && matches!(legend, "" | "count" | "s/s") {
            return per_second(name);
        }
        match LEGENDS.iter().find(|(text, _)| *text == legend) {
            Some((_, unit)) => unit.clone(),
            None if matches!(legend, "" | "count") => by_ending(name),
            None => ReadingUnit::Other(legend.to_owned()),
        }
    }

    /// The unit as the head of a column has it; empty for a count.
    pub fn symbol(&self) -> &str {
        match self {
            ReadingUnit::Count => "",
            ReadingUnit::PerSecond => "1/s",
            ReadingUnit::Bytes => "bytes",
            ReadingUnit::BytesPerSecond => "bytes/s",
            ReadingUnit::Percent => "%",
            ReadingUnit::Microseconds => "µs",
            ReadingUnit::Milliseconds => "ms",
            ReadingUnit::Cpus => "CPUs",
            ReadingUnit::Waiters => "waiters",
            ReadingUnit::AtATime => "at a time",
            ReadingUnit::Other(text) => text,
        }
    }
}

/// The unit of a time per second: CPU time, waiting, or anything else that takes time.
fn per_second(name: &str) -> ReadingUnit {
    let last = name.rsplit('.').next().unwrap_or(name);
    match name {
        _ if WAITS.iter().any(|part| last.contains(part)) => ReadingUnit::Waiters,
        _ if name.starts_with("cpu.") || last.starts_with("cpu_") => ReadingUnit::Cpus,
        _ => ReadingUnit::AtATime,
    }
}

fn by_ending(name: &str) -> ReadingUnit {
    let found = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending));
    found.map_or(ReadingUnit::Count, |(_, unit)| unit.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, legend: &str, expected: ReadingUnit) {
        assert_eq!(ReadingUnit::of(name, legend), expected, "{name} {legend}");
    }

    #[test]
    fn cpu_time_is_cpus_and_waiting_is_waiters() {
        check("server.cpu_s_per_s", "CPU s/s", ReadingUnit::Cpus);
        check("server.thread.io.cpu_s_per_s", "", ReadingUnit::Cpus);
        check("cpu.iowait_s_per_s", "CPU s/s", ReadingUnit::Cpus);
        check("cpu.user_s_per_s", "", ReadingUnit::Cpus);
        check("innodb.row_lock_wait_s_per_s", "s/s", ReadingUnit::Waiters);
        check("pg.wal_sync_s_per_s", "s/s", ReadingUnit::Waiters);
        check("server.runqueue_wait_s_per_s", "", ReadingUnit::Waiters);
        check("rocksdb.stalled_s_per_s", "s/s", ReadingUnit::Waiters);
        check("pg.active_s_per_s", "s/s", ReadingUnit::AtATime);
        check("rocksdb.compaction_s_per_s", "s/s", ReadingUnit::AtATime);
    }

    #[test]
    fn other_units_follow_from_the_legend_or_from_the_name() {
        check("mysql.checkpoint_age", "bytes", ReadingUnit::Bytes);
        check("mysql.checkpoint_age_bytes", "", ReadingUnit::Bytes);
        check("network.eth0.sent_bytes_per_s", "", ReadingUnit::BytesPerSecond);
        check("disk.queue", "count", ReadingUnit::Count);
        check("disk.busy_pct", "count", ReadingUnit::Percent);
        check("pg.dead_tuples", "1", ReadingUnit::Count);
        check("pg.xmin_age", "transactions", ReadingUnit::Other("transactions".to_owned()));
        check("responsiveness.process_ms", "ms", ReadingUnit::Milliseconds);
        assert_eq!(ReadingUnit::of("a.b_per_s", "").symbol(), "1/s");
        assert_eq!(ReadingUnit::of("pg.xmin_age", "pages").symbol(), "pages");
    }
}
