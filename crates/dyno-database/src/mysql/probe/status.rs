//! SHOW GLOBAL STATUS: what the server counts above its engines, and what engines add to it.

use std::collections::HashSet;
use std::sync::LazyLock;

use dyno_host::{Probe, ReadingLegend, Readings};
use dyno_units::Nanoseconds;
use dyno_workload::{Connector, TextRows};

use crate::probe::{Asker, Item, Table, Values, cell, gauge, legend as one, legends, number, rate};

/// Statements, rows and resources of the server.
const SERVER: &[Item] = &[
    rate("questions", "mysql.statements_per_s", "1/s", "statements of clients (Questions)"),
    rate("com_select", "mysql.selects_per_s", "1/s", "SELECT statements"),
    rate("com_insert", "mysql.inserts_per_s", "1/s", "INSERT statements"),
    rate("com_update", "mysql.updates_per_s", "1/s", "UPDATE statements"),
    rate("com_delete", "mysql.deletes_per_s", "1/s", "DELETE statements"),
    rate("com_commit", "mysql.commits_per_s", "1/s", "COMMIT statements"),
    rate("com_rollback", "mysql.rollbacks_per_s", "1/s", "ROLLBACK statements"),
    rate("com_stmt_execute", "mysql.executes_per_s", "1/s", "executions of prepared statements"),
    rate("handler_commit", "mysql.handler_commits_per_s", "1/s", "commits inside engines"),
    rate("handler_rollback", "mysql.handler_rollbacks_per_s", "1/s", "rollbacks inside engines"),
    rate(
        "handler_read_first",
        "mysql.handler_read_first_per_s",
        "1/s",
        "first entries of an index read: whole scans of it",
    ),
    rate("handler_read_key", "mysql.handler_read_key_per_s", "1/s", "rows found by a key"),
    rate(
        "handler_read_next",
        "mysql.handler_read_next_per_s",
        "1/s",
        "next rows in the order of an index",
    ),
    rate(
        "handler_read_prev",
        "mysql.handler_read_prev_per_s",
        "1/s",
        "previous rows in the order of an index",
    ),
    rate(
        "handler_read_rnd",
        "mysql.handler_read_rnd_per_s",
        "1/s",
        "rows read by their position: sorts without the row",
    ),
    rate(
        "handler_read_rnd_next",
        "mysql.handler_read_rnd_next_per_s",
        "1/s",
        "next rows of a whole scan of a table",
    ),
    rate("handler_write", "mysql.handler_writes_per_s", "1/s", "rows written"),
    rate("handler_update", "mysql.handler_updates_per_s", "1/s", "rows changed"),
    rate("handler_delete", "mysql.handler_deletes_per_s", "1/s", "rows deleted"),
    rate("created_tmp_tables", "mysql.tmp_tables_per_s", "1/s", "temporary tables made"),
    rate(
        "created_tmp_disk_tables",
        "mysql.tmp_disk_tables_per_s",
        "1/s",
        "temporary tables made on disk",
    ),
    rate("select_full_join", "mysql.full_joins_per_s", "1/s", "joins without an index"),
    rate("select_scan", "mysql.full_scans_per_s", "1/s", "SELECTs that scan their first table"),
    rate(
        "sort_merge_passes",
        "mysql.sort_merge_passes_per_s",
        "1/s",
        "merges of sorts that did not fit in memory",
    ),
    rate("slow_queries", "mysql.slow_statements_per_s", "1/s", "statements over long_query_time"),
    rate(
        "opened_tables",
        "mysql.opened_tables_per_s",
        "1/s",
        "tables opened: the table cache is too small",
    ),
    rate(
        "table_locks_waited",
        "mysql.table_lock_waits_per_s",
        "1/s",
        "waits for a lock on a table",
    ),
    rate("threads_created", "mysql.threads_created_per_s", "1/s", "threads made for connections"),
    rate("aborted_connects", "mysql.aborted_connects_per_s", "1/s", "connections that failed"),
    rate(
        "aborted_clients",
        "mysql.aborted_clients_per_s",
        "1/s",
        "connections that clients dropped",
    ),
    rate("bytes_received", "mysql.received_bytes_per_s", "bytes/s", "bytes received from clients"),
    rate("bytes_sent", "mysql.sent_bytes_per_s", "bytes/s", "bytes sent to clients"),
    rate(
        "binlog_bytes_written",
        "mysql.binlog_bytes_per_s",
        "bytes/s",
        "bytes written to the binary log",
    ),
    rate("binlog_commits", "mysql.binlog_commits_per_s", "1/s", "transactions in the binary log"),
    rate(
        "binlog_group_commits",
        "mysql.binlog_group_commits_per_s",
        "1/s",
        "groups of transactions that the binary log wrote together",
    ),
    gauge("uptime", "mysql.uptime_s", "s", "time since the server was started"),
    gauge("threads_running", "mysql.threads_running", "1", "statements that are being executed"),
    gauge("threads_connected", "mysql.threads_connected", "1", "connections"),
    gauge(
        "prepared_stmt_count",
        "mysql.prepared_statements",
        "1",
        "prepared statements of all connections",
    ),
    gauge("open_tables", "mysql.open_tables", "1", "tables in the table cache"),
    gauge(
        "memory_used",
        "mysql.memory_bytes",
        "bytes",
        "memory that the server has accounted for (MariaDB)",
    ),
];

/// What InnoDB adds.
const INNODB: &[Item] = &[
    rate(
        "innodb_buffer_pool_read_requests",
        "innodb.pool_read_requests_per_s",
        "1/s",
        "pages asked of the buffer pool",
    ),
    rate(
        "innodb_buffer_pool_reads",
        "innodb.pool_misses_per_s",
        "1/s",
        "pages that the buffer pool did not have, and that were waited for",
    ),
    rate(
        "innodb_buffer_pool_read_ahead",
        "innodb.read_ahead_pages_per_s",
        "1/s",
        "pages read ahead",
    ),
    rate(
        "innodb_buffer_pool_write_requests",
        "innodb.pool_write_requests_per_s",
        "1/s",
        "changes of pages in the buffer pool",
    ),
    rate(
        "innodb_buffer_pool_pages_flushed",
        "innodb.pages_flushed_per_s",
        "1/s",
        "dirty pages written by flushing",
    ),
    rate(
        "innodb_buffer_pool_pages_lru_flushed",
        "innodb.lru_pages_flushed_per_s",
        "1/s",
        "dirty pages written to make room",
    ),
    rate(
        "innodb_buffer_pool_wait_free",
        "innodb.free_page_waits_per_s",
        "1/s",
        "waits for a free page: flushing does not keep up",
    ),
    rate("innodb_data_reads", "innodb.data_reads_per_s", "1/s", "reads of data files"),
    rate(
        "innodb_data_read",
        "innodb.data_read_bytes_per_s",
        "bytes/s",
        "bytes read from data files",
    ),
    rate("innodb_data_writes", "innodb.data_writes_per_s", "1/s", "writes of data files"),
    rate(
        "innodb_data_written",
        "innodb.data_written_bytes_per_s",
        "bytes/s",
        "bytes written to data files",
    ),
    rate(
        "innodb_data_fsyncs",
        "innodb.data_fsyncs_per_s",
        "1/s",
        "fsyncs of data files, and of the log in MySQL",
    ),
    rate("innodb_os_log_fsyncs", "innodb.log_fsyncs_per_s", "1/s", "fsyncs of the redo log"),
    rate(
        "innodb_os_log_written",
        "innodb.log_written_bytes_per_s",
        "bytes/s",
        "bytes written to the redo log",
    ),
    rate(
        "innodb_log_writes",
        "innodb.log_writes_per_s",
        "1/s",
        "writes of the redo log: what a disk would have to sync if every commit were synced",
    ),
    rate(
        "innodb_log_write_requests",
        "innodb.log_write_requests_per_s",
        "1/s",
        "entries for the redo log",
    ),
    rate(
        "innodb_log_waits",
        "innodb.log_waits_per_s",
        "1/s",
        "waits because the log buffer was too small",
    ),
    rate(
        "innodb_dblwr_pages_written",
        "innodb.doublewrite_pages_per_s",
        "1/s",
        "pages written to the doublewrite buffer",
    ),
    rate("innodb_row_lock_waits", "innodb.row_lock_waits_per_s", "1/s", "waits for row locks"),
    rate(
        "innodb_row_lock_time",
        "innodb.row_lock_wait_s_per_s",
        "s/s",
        "time waited for row locks, all transactions together",
    )
    .times(1e-3),
    rate("innodb_deadlocks", "innodb.deadlocks_per_s", "1/s", "deadlocks"),
    rate(
        "innodb_adaptive_hash_hash_searches",
        "innodb.hash_searches_per_s",
        "1/s",
        "searches that the adaptive hash index answered",
    ),
    rate(
        "innodb_adaptive_hash_non_hash_searches",
        "innodb.non_hash_searches_per_s",
        "1/s",
        "searches that went down a B-tree",
    ),
    gauge(
        "innodb_row_lock_current_waits",
        "innodb.row_lock_waiting",
        "1",
        "transactions that wait for a row lock",
    ),
    gauge(
        "innodb_checkpoint_max_age",
        "innodb.checkpoint_age_max_bytes",
        "bytes",
        "checkpoint age at which everything waits for flushing",
    ),
    gauge("innodb_data_pending_reads", "innodb.data_pending_reads", "1", "reads under way"),
    gauge("innodb_data_pending_writes", "innodb.data_pending_writes", "1", "writes under way"),
    gauge("innodb_data_pending_fsyncs", "innodb.data_pending_fsyncs", "1", "fsyncs under way"),
    gauge(
        "innodb_buffer_pool_bytes_data",
        "innodb.pool_data_bytes",
        "bytes",
        "bytes of data in the buffer pool",
    ),
];

/// What RocksDB adds.
const ROCKSDB: &[Item] = &[
    rate("rocksdb_rows_read", "rocksdb.rows_read_per_s", "1/s", "rows read"),
    rate("rocksdb_rows_inserted", "rocksdb.rows_inserted_per_s", "1/s", "rows inserted"),
    rate("rocksdb_rows_updated", "rocksdb.rows_updated_per_s", "1/s", "rows updated"),
    rate("rocksdb_rows_deleted", "rocksdb.rows_deleted_per_s", "1/s", "rows deleted"),
    rate(
        "rocksdb_bytes_written",
        "rocksdb.written_bytes_per_s",
        "bytes/s",
        "bytes that transactions wrote, before any compaction",
    ),
    rate("rocksdb_bytes_read", "rocksdb.read_bytes_per_s", "bytes/s", "bytes that gets returned"),
    rate("rocksdb_wal_bytes", "rocksdb.wal_bytes_per_s", "bytes/s", "bytes written to the WAL"),
    rate("rocksdb_wal_synced", "rocksdb.wal_syncs_per_s", "1/s", "syncs of the WAL"),
    rate(
        "rocksdb_flush_write_bytes",
        "rocksdb.flush_bytes_per_s",
        "bytes/s",
        "bytes that flushes of memtables wrote",
    ),
    rate(
        "rocksdb_compact_read_bytes",
        "rocksdb.compaction_read_bytes_per_s",
        "bytes/s",
        "bytes that compaction read",
    ),
    rate(
        "rocksdb_compact_write_bytes",
        "rocksdb.compaction_write_bytes_per_s",
        "bytes/s",
        "bytes that compaction wrote",
    ),
    rate(
        "rocksdb_block_cache_hit",
        "rocksdb.block_cache_hits_per_s",
        "1/s",
        "blocks found in the block cache",
    ),
    rate(
        "rocksdb_block_cache_miss",
        "rocksdb.block_cache_misses_per_s",
        "1/s",
        "blocks not found in the block cache",
    ),
    rate(
        "rocksdb_block_cache_data_miss",
        "rocksdb.block_cache_data_misses_per_s",
        "1/s",
        "data blocks not found in the block cache",
    ),
    rate(
        "rocksdb_bloom_filter_useful",
        "rocksdb.bloom_useful_per_s",
        "1/s",
        "reads that a bloom filter saved",
    ),
    rate(
        "rocksdb_memtable_hit",
        "rocksdb.memtable_hits_per_s",
        "1/s",
        "gets answered by a memtable",
    ),
    rate("rocksdb_get_hit_l0", "rocksdb.get_hits_l0_per_s", "1/s", "gets answered by level 0"),
    rate("rocksdb_get_hit_l1", "rocksdb.get_hits_l1_per_s", "1/s", "gets answered by level 1"),
    rate(
        "rocksdb_get_hit_l2_and_up",
        "rocksdb.get_hits_l2_and_up_per_s",
        "1/s",
        "gets answered by level 2 or a deeper one",
    ),
    rate("rocksdb_number_db_seek", "rocksdb.seeks_per_s", "1/s", "seeks of iterators"),
    rate("rocksdb_number_db_next", "rocksdb.nexts_per_s", "1/s", "steps of iterators"),
    rate(
        "rocksdb_number_sst_entry_delete",
        "rocksdb.tombstones_written_per_s",
        "1/s",
        "tombstones that flushes and compaction wrote into files",
    ),
    rate(
        "rocksdb_number_sst_entry_singledelete",
        "rocksdb.single_tombstones_written_per_s",
        "1/s",
        "tombstones of single deletes written into files",
    ),
    rate(
        "rocksdb_number_sst_entry_put",
        "rocksdb.puts_written_per_s",
        "1/s",
        "values that flushes and compaction wrote into files",
    ),
    rate(
        "rocksdb_stall_micros",
        "rocksdb.stalled_s_per_s",
        "s/s",
        "time that writers were held up, all together",
    )
    .times(1e-6),
    rate(
        "rocksdb_stall_total_slowdowns",
        "rocksdb.stall_slowdowns_per_s",
        "1/s",
        "times that writers were slowed down",
    ),
    rate(
        "rocksdb_stall_total_stops",
        "rocksdb.stall_stops_per_s",
        "1/s",
        "times that writers were stopped",
    ),
    rate(
        "rocksdb_stall_l0_file_count_limit_slowdowns",
        "rocksdb.stall_l0_slowdowns_per_s",
        "1/s",
        "slowdowns because of too many files in level 0",
    ),
    rate(
        "rocksdb_stall_l0_file_count_limit_stops",
        "rocksdb.stall_l0_stops_per_s",
        "1/s",
        "stops because of too many files in level 0",
    ),
    rate(
        "rocksdb_stall_memtable_limit_slowdowns",
        "rocksdb.stall_memtable_slowdowns_per_s",
        "1/s",
        "slowdowns because memtables wait to be flushed",
    ),
    rate(
        "rocksdb_stall_memtable_limit_stops",
        "rocksdb.stall_memtable_stops_per_s",
        "1/s",
        "stops because memtables wait to be flushed",
    ),
    rate(
        "rocksdb_stall_pending_compaction_limit_slowdowns",
        "rocksdb.stall_compaction_slowdowns_per_s",
        "1/s",
        "slowdowns because of pending compaction",
    ),
    rate(
        "rocksdb_stall_pending_compaction_limit_stops",
        "rocksdb.stall_compaction_stops_per_s",
        "1/s",
        "stops because of pending compaction",
    ),
    rate("rocksdb_row_lock_deadlocks", "rocksdb.deadlocks_per_s", "1/s", "deadlocks"),
    rate(
        "rocksdb_row_lock_wait_timeouts",
        "rocksdb.lock_timeouts_per_s",
        "1/s",
        "row locks that were not had in time",
    ),
    rate(
        "rocksdb_snapshot_conflict_errors",
        "rocksdb.snapshot_conflicts_per_s",
        "1/s",
        "transactions refused because of a newer version",
    ),
    gauge("rocksdb_memtable_total", "rocksdb.memtable_bytes", "bytes", "bytes of all memtables"),
    gauge(
        "rocksdb_memtable_unflushed",
        "rocksdb.memtable_unflushed_bytes",
        "bytes",
        "bytes of memtables that are not yet flushed",
    ),
    gauge(
        "rocksdb_manual_compactions_running",
        "rocksdb.manual_compactions_running",
        "1",
        "compactions that somebody asked for",
    ),
];

const DERIVED: &[ReadingLegend] = &[
    one(
        "innodb.pool_hit_percent",
        "%",
        "pages asked of the buffer pool that were there, from the counters (the status text says \
         100 while pages are being read)",
    ),
    one("rocksdb.block_cache_hit_percent", "%", "blocks asked of the block cache that were there"),
];

/// What its readings mean.
pub(super) fn legend() -> &'static [ReadingLegend] {
    static ALL: LazyLock<Vec<ReadingLegend>> =
        LazyLock::new(|| legends(&[SERVER, INNODB, ROCKSDB], &[DERIVED]));
    &ALL
}

/// The server's names for what is read, of the thousand or so that it tells.
static WANTED: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| [SERVER, INNODB, ROCKSDB].into_iter().flatten().map(Item::source).collect());

/// The numbers that are wanted, by their names in lower case.
fn wanted_numbers(rows: &TextRows) -> Values {
    let mut lower = String::new();
    let named = |row: &Vec<Option<String>>| {
        lower.clear();
        lower.push_str(cell(row, 0)?);
        lower.make_ascii_lowercase();
        let name = WANTED.get(lower.as_str())?;
        Some(((*name).to_owned(), number(cell(row, 1)?)?))
    };
    rows.iter().filter_map(named).collect()
}

/// Reads SHOW GLOBAL STATUS.
pub(super) struct StatusProbe {
    asker: Asker,
    server: Table,
    innodb: Table,
    rocksdb: Table,
}

impl StatusProbe {
    pub(super) fn new(connector: Connector) -> StatusProbe {
        StatusProbe {
            asker: Asker::new(connector),
            server: Table::new(SERVER),
            innodb: Table::new(INNODB),
            rocksdb: Table::new(ROCKSDB),
        }
    }

    /// Share of what was asked for and was there, in percent.
    fn hits(table: &Table, values: &Values, all: &str, missed: &str) -> Option<f64> {
        let all = table.growth(values, all).filter(|all| *all > 0.0)?;
        let missed = table.growth(values, missed)?;
        Some((100.0 * (1.0 - missed / all)).clamp(0.0, 100.0))
    }
}

impl Probe for StatusProbe {
    fn legend(&self) -> &'static [ReadingLegend] {
        legend()
    }

    fn read(&mut self, now: Nanoseconds, readings: &mut Readings) {
        let Some(rows) = self.asker.rows(now, "SHOW GLOBAL STATUS") else { return };
        let values = wanted_numbers(&rows);
        let pool = ("innodb_buffer_pool_read_requests", "innodb_buffer_pool_reads");
        if let Some(hits) = StatusProbe::hits(&self.innodb, &values, pool.0, pool.1) {
            readings.insert("innodb.pool_hit_percent".to_owned(), hits);
        }
        let mut blocks = values.clone();
        let hit = values.get("rocksdb_block_cache_hit").copied().unwrap_or(0.0);
        let miss = values.get("rocksdb_block_cache_miss").copied().unwrap_or(0.0);
        blocks.insert("rocksdb_block_cache_all".to_owned(), hit + miss);
        let cache = ("rocksdb_block_cache_all", "rocksdb_block_cache_miss");
        if let Some(hits) = StatusProbe::hits(&self.rocksdb, &blocks, cache.0, cache.1) {
            readings.insert("rocksdb.block_cache_hit_percent".to_owned(), hits);
        }
        self.server.put(now, values.clone(), readings);
        self.innodb.put(now, values, readings);
        self.rocksdb.put(now, blocks, readings);
    }

    fn take_notes(&mut self) -> Vec<String> {
        self.asker.take_notes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_all_that_the_server_tells_the_wanted_numbers_are_kept() {
        let rows: TextRows = [
            ("Questions", "12"),
            ("Innodb_row_lock_time", "3.5"),
            ("Rocksdb_wal_bytes", "not a number"),
            ("Com_alter_db", "7"),
        ]
        .map(|(name, value)| vec![Some(name.to_owned()), Some(value.to_owned())])
        .into();
        let expected = [("innodb_row_lock_time", 3.5), ("questions", 12.0)];
        let expected: Values = expected.map(|(name, value)| (name.to_owned(), value)).into();
        assert_eq!(wanted_numbers(&rows), expected);
    }
}
