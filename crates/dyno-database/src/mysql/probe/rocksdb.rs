//! RocksDB's internals as reported by MyRocks: memtables, levels, compaction, tombstones, perf
//! context. Its counters are in the global status.

use dyno_host::{Probe, Readings};
use dyno_units::Nanoseconds;
use dyno_units::reading::prelude::*;
use dyno_workload::{Connector, TextRows};

use super::{Level, RocksDbStatus, parse_rocksdb_status, pending_compaction_bytes};
use crate::probe::{
    Asker, Every, Item, Table, Values, all_of, asking, cell, gauge, number, numbers_by_name, rate,
};

/// Readings of column families, summed over all of them.
#[rustfmt::skip]
const FAMILIES: &[Item] = &[
    gauge("cur_size_all_mem_tables", reading("rocksdb.memtables_bytes", Bytes, "memtables", "bytes of memtables, all column families together")),
    gauge("num_immutable_mem_table", reading("rocksdb.immutable_memtables", Count, "immutable memtables", "full memtables that wait to be flushed").up(StallCause::Compaction)),
    gauge("mem_table_flush_pending", reading("rocksdb.flushes_pending", Count, "pending flushes", "column families with a flush pending").up(StallCause::Compaction)),
    gauge("compaction_pending", reading("rocksdb.compactions_pending", Count, "pending compactions", "column families with a compaction pending").up(StallCause::Compaction)),
    gauge("num_live_versions", reading("rocksdb.live_versions", Count, "live versions", "versions of the list of files still in use")),
];

#[rustfmt::skip]
const INSTANCE: &[Item] = &[
    gauge("db_num_snapshots", reading("rocksdb.snapshots", Count, "snapshots", "open snapshots")),
    gauge("db_oldest_snapshot_time", reading("rocksdb.oldest_snapshot_time", Seconds, "oldest snapshot", "when the oldest open snapshot was taken, in Unix time; 0 for none")),
    gauge("db_background_errors", reading("rocksdb.background_errors", Count, "background errors", "errors of flushes and compaction").worse()),
    gauge("db_block_cache_usage", reading("rocksdb.block_cache_bytes", Bytes, "block cache", "bytes in the block cache")),
];

/// What files hold, all column families together.
#[rustfmt::skip]
const FILES: &[Item] = &[
    gauge("tombstones", reading("rocksdb.tombstones", Count, "tombstones", "tombstones in files").worse().row(620)),
    gauge("entries", reading("rocksdb.entries", Count, "entries", "entries in files")),
    gauge("files", reading("rocksdb.files", Count, "files", "files")),
];

#[rustfmt::skip]
const TEXT: &[Item] = &[
    gauge("pending", reading("rocksdb.pending_compaction_bytes", Bytes, "pending compaction", "bytes that wait for compaction, estimated from sizes and scores of levels if the server does not report them").up(StallCause::Compaction).row(600)),
    gauge("l0_files", reading("rocksdb.l0_files", Count, "level 0 files", "files of level 0, in the column family with most of them").up(StallCause::Compaction)),
    gauge("compacting", reading("rocksdb.files_compacting", Count, "files being compacted", "files that are being compacted").up(StallCause::Compaction)),
    rate("compaction_s", reading("rocksdb.compaction_s_per_s", AtATime, "compaction time", "time that flushes and compaction took, all threads together").up(StallCause::Compaction)),
    rate("compactions", reading("rocksdb.compactions_per_s", PerSecond, "compactions", "flushes and compactions").up(StallCause::Compaction)),
    rate("stalls", reading("rocksdb.text_stalls_per_s", PerSecond, "write stalls", "times that writers were slowed down or stopped, for any reason").worse().up(StallCause::Compaction)),
    gauge("stalled_percent", reading("rocksdb.stalled_percent", Percent, "writers held up since the start", "share of the time since the server's start in which writers were held up").worse().up(StallCause::Compaction)),
];

#[rustfmt::skip]
const PATTERNS: &[Reading] = &[
    reading("rocksdb.level.*.files", Count, "files of the level", "files of this level, all column families together"),
    reading("rocksdb.level.*.bytes", Bytes, "size of the level", "size of this level"),
    reading("rocksdb.level.*.score", Count, "compaction score of the level", "compaction score of this level; compaction is due at 1"),
    reading("rocksdb.perf.*_per_s", PerSecond, "perf context counter", "growth of this counter of the perf context (its times are in ns)"),
    reading("server.thread.compaction.cpu_s_per_s", Cpus, "CPU of compaction", "CPU time of the server's threads that compact").up(StallCause::Compaction).instance_of("*.thread.*.cpu_s_per_s"),
    reading("server.thread.flush.cpu_s_per_s", Cpus, "CPU of flushing", "CPU time of the server's threads that flush memtables").up(StallCause::Flushing).instance_of("*.thread.*.cpu_s_per_s"),
];

pub(super) fn registered() -> Vec<Reading> {
    all_of(&[FAMILIES, INSTANCE, FILES, TEXT], PATTERNS)
}

const ASK_FAMILIES: &str =
    "SELECT stat_type, SUM(value) FROM information_schema.ROCKSDB_CFSTATS GROUP BY stat_type";
const ASK_INSTANCE: &str = "SELECT stat_type, value FROM information_schema.ROCKSDB_DBSTATS";
const ASK_PERF: &str =
    "SELECT stat_type, value FROM information_schema.ROCKSDB_PERF_CONTEXT_GLOBAL";
const ASK_FILES: &str = "SELECT SUM(entry_deletes + entry_singledeletes) AS tombstones, \
                         SUM(num_rows) AS entries, COUNT(DISTINCT sst_name) AS files \
                         FROM information_schema.ROCKSDB_INDEX_FILE_MAP";

struct RocksDb {
    families: Table,
    instance: Table,
    files: Table,
    text: Table,
    perf: Option<(Nanoseconds, Values)>,
    text_due: Every,
    files_due: Every,
    has_asked_level: bool,
}

impl RocksDb {
    fn new() -> RocksDb {
        RocksDb {
            families: Table::new(FAMILIES),
            instance: Table::new(INSTANCE),
            files: Table::new(FILES),
            text: Table::new(TEXT),
            perf: None,
            text_due: Every::new(Nanoseconds::from_secs(5)),
            // It reads every file.
            files_due: Every::new(Nanoseconds::from_secs(30)),
            has_asked_level: false,
        }
    }

    /// Notes once that the perf context counts nothing: by default it is off.
    fn look_for_level(&mut self, asker: &mut Asker, now: Nanoseconds) {
        if self.has_asked_level {
            return;
        }
        let Some(rows) = asker.rows(now, "SELECT @@GLOBAL.rocksdb_perf_context_level") else {
            return;
        };
        self.has_asked_level = true;
        let level = rows.first().and_then(|row| cell(row, 0)).and_then(number);
        if let Some(level) = level.filter(|level| *level < 2.0) {
            asker.note(format!(
                "rocksdb_perf_context_level is {level}: RocksDB counts nothing in its perf context \
                 (rocksdb.perf.*), such as the tombstones that reads skip; 2 counts them"
            ));
        }
    }

    fn read_perf(&mut self, asker: &mut Asker, now: Nanoseconds, readings: &mut Readings) {
        let Some(rows) = asker.rows(now, ASK_PERF) else { return };
        let values = numbers_by_name(&rows);
        if let Some((at, before)) = &self.perf {
            let seconds = now.saturating_sub(*at).as_secs_f64();
            for (name, value) in &values {
                let growth = value - before.get(name).copied().unwrap_or(*value);
                // Constant counters would be most of a hundred readings.
                if growth > 0.0 && seconds > 0.0 {
                    readings.insert(format!("rocksdb.perf.{name}_per_s"), growth / seconds);
                }
            }
        }
        self.perf = Some((now, values));
    }

    fn read_text(&mut self, asker: &mut Asker, now: Nanoseconds, readings: &mut Readings) {
        let Some(rows) = asker.rows(now, "SHOW ENGINE ROCKSDB STATUS") else { return };
        let status = parse_rocksdb_status(&joined(&rows));
        for (name, level) in levels(&status) {
            readings.insert(format!("rocksdb.level.{name}.files"), level.files);
            readings.insert(format!("rocksdb.level.{name}.bytes"), level.bytes);
            readings.insert(format!("rocksdb.level.{name}.score"), level.score);
        }
        self.text.put(now, text_values(&status), readings);
    }

    fn read(&mut self, asker: &mut Asker, now: Nanoseconds, readings: &mut Readings) {
        // Without the engine there is no such view, and nothing more is asked.
        let Some(rows) = asker.rows(now, ASK_FAMILIES) else { return };
        self.families.put(now, numbers_by_name(&rows), readings);
        if self.text_due.is_due(now) {
            self.read_text(asker, now, readings);
            self.look_for_level(asker, now);
            self.read_perf(asker, now, readings);
            if let Some(rows) = asker.rows(now, ASK_INSTANCE) {
                self.instance.put(now, numbers_by_name(&rows), readings);
            }
        }
        if self.files_due.is_due(now)
            && let Some(values) = asker.row_numbers(now, ASK_FILES)
        {
            self.files.put(now, values, readings);
        }
    }
}

pub(super) fn probe(connector: Connector) -> Box<dyn Probe> {
    let mut rocksdb = RocksDb::new();
    asking("rocksdb", registered(), Asker::new(connector), move |asker, now, readings| {
        rocksdb.read(asker, now, readings);
    })
}

/// The texts of all rows: type, name, text.
fn joined(rows: &TextRows) -> String {
    let texts: Vec<&str> = rows.iter().filter_map(|row| cell(row, 2)).collect();
    texts.join("\n")
}

/// Levels of all column families together: files and bytes summed up, of scores the highest.
fn levels(status: &RocksDbStatus) -> Vec<(String, Level)> {
    let mut sums = std::collections::BTreeMap::<String, Level>::new();
    for level in status.families.values().flatten().filter(|level| level.name.starts_with('L')) {
        let sum = sums.entry(level.name.clone()).or_default();
        sum.files += level.files;
        sum.bytes += level.bytes;
        sum.score = sum.score.max(level.score);
    }
    sums.into_iter().collect()
}

fn text_values(status: &RocksDbStatus) -> Values {
    let all = || status.families.values().flatten();
    let sum = |column: &str| {
        let sums = all().filter(|level| level.name == "Sum");
        sums.filter_map(|level| level.columns.get(column)).sum::<f64>()
    };
    let l0 = all().filter(|level| level.name == "L0").map(|level| level.files);
    let estimate: f64 =
        status.families.values().map(|levels| pending_compaction_bytes(levels)).sum();
    let is_total = |reason: &str| reason.starts_with("total-") || !reason.contains('-');
    let stalls = status.stalls.iter().filter(|(reason, _)| is_total(reason)).map(|(_, n)| n);
    let mut values = Values::from([
        ("pending".to_owned(), status.pending_compaction_bytes.unwrap_or(estimate)),
        ("l0_files".to_owned(), l0.fold(0.0, f64::max)),
        (
            "compacting".to_owned(),
            all().filter(|level| level.name == "Sum").map(|level| level.compacting).sum(),
        ),
        ("compaction_s".to_owned(), sum("Comp(sec)")),
        ("compactions".to_owned(), sum("Comp(cnt)")),
        ("stalls".to_owned(), stalls.sum()),
    ]);
    if let Some(percent) = status.stalled_percent {
        values.insert("stalled_percent".to_owned(), percent);
    }
    values
}

/// By column family, from ROCKSDB_COMPACTION_STATS: column family, level, statistic, value.
pub(in crate::mysql) fn levels_of_rows(rows: &TextRows) -> Vec<Vec<Level>> {
    let mut families = std::collections::BTreeMap::<(&str, &str), Level>::new();
    for row in rows {
        let (Some(family), Some(name), Some(what), Some(value)) =
            (cell(row, 0), cell(row, 1), cell(row, 2), cell(row, 3).and_then(number))
        else {
            continue;
        };
        let level = families.entry((family, name)).or_default();
        level.name = name.to_owned();
        match what {
            "NumFiles" => level.files = value,
            "SizeBytes" => level.bytes = value,
            "Score" => level.score = value,
            _ => {}
        }
    }
    let mut found = std::collections::BTreeMap::<&str, Vec<Level>>::new();
    for ((family, _), level) in families {
        found.entry(family).or_default().push(level);
    }
    found.into_values().collect()
}
