//! ClickHouse's counters since its start, current metrics, and metrics that it updates every minute.

use dyno_host::Probe;
use dyno_units::reading::prelude::*;
use dyno_workload::{Connector, NamedRows};

use crate::probe::{Counters, Item, Values, gauge, numbers_by_name, rate};

#[rustfmt::skip]
const ITEMS: &[Item] = &[
    rate("event.query", reading("clickhouse.queries_per_s", PerSecond, "statements", "statements started, including those of probes").better().row(145).words("statements")),
    rate("event.selectquery", reading("clickhouse.selects_per_s", PerSecond, "SELECTs", "SELECT statements started, including those of probes").better()),
    rate("event.insertquery", reading("clickhouse.inserts_per_s", PerSecond, "INSERTs", "INSERT statements started").better()),
    rate("event.insertedrows", reading("clickhouse.rows_inserted_per_s", PerSecond, "rows inserted", "rows inserted").better()),
    rate("event.mergetreedatawritercompressedbytes", reading("clickhouse.inserted_bytes_per_s", BytesPerSecond, "bytes inserted", "compressed bytes written for rows inserted")),
    rate("event.mergetreedatawriterblocks", reading("clickhouse.parts_written_per_s", PerSecond, "parts written", "parts written by INSERTs; merges reduce their number")),
    rate("event.mergedrows", reading("clickhouse.rows_merged_per_s", PerSecond, "rows merged", "rows that background merges have read").up(StallCause::Compaction)),
    rate("event.mergeduncompressedbytes", reading("clickhouse.merged_bytes_per_s", BytesPerSecond, "bytes merged", "uncompressed bytes that background merges have read").up(StallCause::Compaction)),
    rate("event.selectedmarks", reading("clickhouse.marks_selected_per_s", PerSecond, "marks selected", "marks (of granules of 8192 rows by default) that statements selected to read")),
    rate("event.markcachehits", reading("clickhouse.mark_cache_hits_per_s", PerSecond, "mark cache hits", "marks found in the mark cache")),
    rate("event.markcachemisses", reading("clickhouse.mark_cache_misses_per_s", PerSecond, "mark cache misses", "marks that had to be read from files").worse()),
    rate("event.readcompressedbytes", reading("clickhouse.compressed_bytes_read_per_s", BytesPerSecond, "compressed bytes read", "compressed bytes read from files and caches of the system")),
    rate("event.osreadbytes", reading("clickhouse.disk_read_bytes_per_s", BytesPerSecond, "bytes read from disk", "bytes that threads of statements and merges read from disks")),
    rate("event.oswritebytes", reading("clickhouse.disk_written_bytes_per_s", BytesPerSecond, "bytes written to disk", "bytes that threads of statements and merges wrote")),
    rate("event.delayedinserts", reading("clickhouse.inserts_delayed_per_s", PerSecond, "INSERTs delayed", "INSERTs that were delayed because there are many parts").worse()),
    rate("event.rejectedinserts", reading("clickhouse.inserts_rejected_per_s", PerSecond, "INSERTs rejected", "INSERTs that were rejected because there are too many parts").worse()),
    rate("event.oscpuwaitmicroseconds", reading("clickhouse.cpu_wait_s_per_s", Waiters, "waiting for a CPU", "time that threads of statements and merges were runnable but waiting for a CPU").worse()).times(1e-6),
    rate("event.diskreadelapsedmicroseconds", reading("clickhouse.file_read_s_per_s", Waiters, "time in file reads", "time in reads of files, all threads together")).times(1e-6),
    rate("event.diskwriteelapsedmicroseconds", reading("clickhouse.file_write_s_per_s", Waiters, "time in file writes", "time in writes of files, all threads together")).times(1e-6),
    gauge("metric.query", reading("clickhouse.queries_running", Count, "statements running", "statements that are being executed, including the probe's own")),
    gauge("metric.merge", reading("clickhouse.merges_running", Count, "merges running", "background merges in progress").up(StallCause::Compaction)),
    gauge("metric.httpconnection", reading("clickhouse.http_connections", Count, "connections", "connections by HTTP")),
    gauge("metric.delayedinserts", reading("clickhouse.inserts_waiting", Count, "INSERTs waiting", "INSERTs that are being delayed because there are many parts").worse()),
    gauge("metric.memorytracking", reading("clickhouse.statement_memory_bytes", Bytes, "memory of statements", "memory that running statements have allocated")),
    gauge("metric.rwlockwaitingreaders", reading("clickhouse.lock_readers_waiting", Count, "waiting to read a table", "threads that wait for a table's lock to read it").worse()),
    gauge("metric.rwlockwaitingwriters", reading("clickhouse.lock_writers_waiting", Count, "waiting to change a table", "threads that wait for a table's lock to change it").worse()),
    gauge("minute.maxpartcountforpartition", reading("clickhouse.parts_most", Count, "most parts", "parts of the partition that has most of them, looked up every minute").worse().up(StallCause::Compaction)),
    gauge("minute.markcachebytes", reading("clickhouse.mark_cache_bytes", Bytes, "mark cache", "memory of the mark cache, looked up every minute")),
    gauge("minute.uncompressedcachebytes", reading("clickhouse.uncompressed_cache_bytes", Bytes, "uncompressed cache", "memory of the cache of uncompressed blocks, looked up every minute")),
    gauge("uptime", reading("clickhouse.uptime_s", Seconds, "uptime", "time since the server was started").role(Role::Uptime)),
];

pub(super) static COUNTERS: Counters = Counters {
    probe: "clickhouse",
    statement: "SELECT concat('event.', event) AS name, toFloat64(value) AS value FROM system.events \
                UNION ALL SELECT concat('metric.', metric), toFloat64(value) FROM system.metrics \
                UNION ALL SELECT concat('minute.', metric), toFloat64(value) \
                FROM system.asynchronous_metrics UNION ALL SELECT 'uptime', toFloat64(uptime())",
    values,
    items: ITEMS,
};

/// Counters that are still 0 are not listed by the server.
fn values(answer: &NamedRows) -> Values {
    let mut values = numbers_by_name(&answer.rows);
    for item in ITEMS.iter().filter(|item| item.source.starts_with("event.")) {
        values.entry(item.source.to_owned()).or_insert(0.0);
    }
    values
}

pub(super) fn probes(connector: Connector) -> Vec<Box<dyn Probe>> {
    vec![COUNTERS.probe("", connector)]
}
