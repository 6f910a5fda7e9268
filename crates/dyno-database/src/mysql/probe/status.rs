//! SHOW GLOBAL STATUS: counters of the server itself, and those of its engines.

use std::collections::HashSet;
use std::sync::LazyLock;

use dyno_host::Probe;
use dyno_units::reading::prelude::*;
use dyno_workload::{Connector, TextRows};

use super::progress::{self, Progress};
use crate::probe::{Asker, Item, Table, Values, all_of, asking, cell, gauge, number, rate};

#[rustfmt::skip]
const SERVER: &[Item] = &[
    rate("questions", reading("mysql.statements_per_s", PerSecond, "statements", "statements of clients (Questions)").better().role(Role::Statements).row(110).words("statements")),
    rate("com_select", reading("mysql.selects_per_s", PerSecond, "selects", "SELECT statements")),
    rate("com_insert", reading("mysql.inserts_per_s", PerSecond, "inserts", "INSERT statements")),
    rate("com_update", reading("mysql.updates_per_s", PerSecond, "updates", "UPDATE statements")),
    rate("com_delete", reading("mysql.deletes_per_s", PerSecond, "deletes", "DELETE statements")),
    rate("com_commit", reading("mysql.commits_per_s", PerSecond, "commits", "COMMIT statements").better().row(120)),
    rate("com_rollback", reading("mysql.rollbacks_per_s", PerSecond, "rollbacks", "ROLLBACK statements").worse()),
    rate("com_stmt_execute", reading("mysql.executes_per_s", PerSecond, "prepared executions", "executions of prepared statements")),
    rate("handler_commit", reading("mysql.handler_commits_per_s", PerSecond, "handler commits", "commits inside engines")),
    rate("handler_rollback", reading("mysql.handler_rollbacks_per_s", PerSecond, "handler rollbacks", "rollbacks inside engines").worse()),
    rate("handler_read_first", reading("mysql.handler_read_first_per_s", PerSecond, "first index entries read", "first entries of an index read: whole scans of it")),
    rate("handler_read_key", reading("mysql.handler_read_key_per_s", PerSecond, "rows read by key", "rows found by a key")),
    rate("handler_read_next", reading("mysql.handler_read_next_per_s", PerSecond, "next rows in index order", "next rows in the order of an index")),
    rate("handler_read_prev", reading("mysql.handler_read_prev_per_s", PerSecond, "previous rows in index order", "previous rows in the order of an index")),
    rate("handler_read_rnd", reading("mysql.handler_read_rnd_per_s", PerSecond, "rows read by position", "rows read by their position: sorts without the row")),
    rate("handler_read_rnd_next", reading("mysql.handler_read_rnd_next_per_s", PerSecond, "rows read by table scans", "next rows of a whole scan of a table")),
    rate("handler_write", reading("mysql.handler_writes_per_s", PerSecond, "rows written", "rows written")),
    rate("handler_update", reading("mysql.handler_updates_per_s", PerSecond, "rows updated", "rows changed")),
    rate("handler_delete", reading("mysql.handler_deletes_per_s", PerSecond, "rows deleted", "rows deleted")),
    rate("created_tmp_tables", reading("mysql.tmp_tables_per_s", PerSecond, "temporary tables", "temporary tables created")),
    rate("created_tmp_disk_tables", reading("mysql.tmp_disk_tables_per_s", PerSecond, "temporary tables on disk", "temporary tables created on disk").worse()),
    rate("select_full_join", reading("mysql.full_joins_per_s", PerSecond, "full joins", "joins without an index").worse()),
    rate("select_scan", reading("mysql.full_scans_per_s", PerSecond, "full scans", "SELECTs that scan their first table")),
    rate("sort_merge_passes", reading("mysql.sort_merge_passes_per_s", PerSecond, "sort merge passes", "merges of sorts that did not fit in memory").worse()),
    rate("slow_queries", reading("mysql.slow_statements_per_s", PerSecond, "slow statements", "statements that took longer than long_query_time").worse()),
    rate("opened_tables", reading("mysql.opened_tables_per_s", PerSecond, "opened tables", "tables opened; if there are many, the table cache is too small")),
    rate("table_locks_waited", reading("mysql.table_lock_waits_per_s", PerSecond, "table lock waits", "waits for a lock on a table").worse().up(StallCause::Locks)),
    rate("threads_created", reading("mysql.threads_created_per_s", PerSecond, "threads created", "threads created for connections")),
    rate("aborted_connects", reading("mysql.aborted_connects_per_s", PerSecond, "failed connections", "connections that failed").worse()),
    rate("aborted_clients", reading("mysql.aborted_clients_per_s", PerSecond, "dropped connections", "connections that clients dropped").worse()),
    rate("bytes_received", reading("mysql.received_bytes_per_s", BytesPerSecond, "received from clients", "bytes received from clients")),
    rate("bytes_sent", reading("mysql.sent_bytes_per_s", BytesPerSecond, "sent to clients", "bytes sent to clients")),
    rate("binlog_bytes_written", reading("mysql.binlog_bytes_per_s", BytesPerSecond, "binary log written", "bytes written to the binary log")),
    rate("binlog_commits", reading("mysql.binlog_commits_per_s", PerSecond, "binary log commits", "transactions in the binary log")),
    rate("binlog_group_commits", reading("mysql.binlog_group_commits_per_s", PerSecond, "binary log group commits", "groups of transactions that the binary log wrote together")),
    gauge("uptime", reading("mysql.uptime_s", Seconds, "uptime", "time since the server was started").role(Role::Uptime)),
    gauge("threads_running", reading("mysql.threads_running", Count, "threads running", "statements that are being executed").row(130).words("running")),
    gauge("threads_connected", reading("mysql.threads_connected", Count, "threads connected", "connections")),
    gauge("prepared_stmt_count", reading("mysql.prepared_statements", Count, "prepared statements", "prepared statements of all connections")),
    gauge("open_tables", reading("mysql.open_tables", Count, "open tables", "tables in the table cache")),
    gauge("memory_used", reading("mysql.memory_bytes", Bytes, "memory", "memory that the server has accounted for (MariaDB)")),
];

#[rustfmt::skip]
const INNODB: &[Item] = &[
    rate("innodb_buffer_pool_read_requests", reading("innodb.pool_read_requests_per_s", PerSecond, "buffer pool reads", "pages requested from the buffer pool")),
    rate("innodb_buffer_pool_reads", reading("innodb.pool_misses_per_s", PerSecond, "buffer pool misses", "pages that were not in the buffer pool and had to be waited for").worse().row(560)),
    rate("innodb_buffer_pool_read_ahead", reading("innodb.read_ahead_pages_per_s", PerSecond, "pages read ahead", "pages read ahead")),
    rate("innodb_buffer_pool_write_requests", reading("innodb.pool_write_requests_per_s", PerSecond, "buffer pool changes", "changes of pages in the buffer pool")),
    rate("innodb_buffer_pool_pages_flushed", reading("innodb.pages_flushed_per_s", PerSecond, "pages flushed", "dirty pages written by flushing").up(StallCause::Flushing)),
    rate("innodb_buffer_pool_pages_lru_flushed", reading("innodb.lru_pages_flushed_per_s", PerSecond, "LRU pages flushed", "dirty pages written to make room").up(StallCause::Flushing)),
    rate("innodb_buffer_pool_wait_free", reading("innodb.free_page_waits_per_s", PerSecond, "free page waits", "waits for a free page: flushing does not keep up").worse().up(StallCause::Flushing)),
    rate("innodb_data_reads", reading("innodb.data_reads_per_s", PerSecond, "data reads", "reads of data files")),
    rate("innodb_data_read", reading("innodb.data_read_bytes_per_s", BytesPerSecond, "data bytes read", "bytes read from data files")),
    rate("innodb_data_writes", reading("innodb.data_writes_per_s", PerSecond, "data writes", "writes of data files")),
    rate("innodb_data_written", reading("innodb.data_written_bytes_per_s", BytesPerSecond, "data bytes written", "bytes written to data files")),
    rate("innodb_data_fsyncs", reading("innodb.data_fsyncs_per_s", PerSecond, "fsyncs of data files", "fsyncs of data files, and of the log in MySQL").up(StallCause::Fsync)),
    rate("innodb_os_log_fsyncs", reading("innodb.log_fsyncs_per_s", PerSecond, "fsyncs of the redo log", "fsyncs of the redo log").up(StallCause::Fsync)),
    rate("innodb_os_log_written", reading("innodb.log_written_bytes_per_s", BytesPerSecond, "redo log bytes written", "bytes written to the redo log")),
    rate("innodb_log_writes", reading("innodb.log_writes_per_s", PerSecond, "redo log writes", "writes of the redo log: what a disk would have to sync if every commit were synced")),
    rate("innodb_log_write_requests", reading("innodb.log_write_requests_per_s", PerSecond, "redo log write requests", "entries for the redo log")),
    rate("innodb_log_waits", reading("innodb.log_waits_per_s", PerSecond, "redo log waits", "waits because the log buffer was too small").worse().up(StallCause::Flushing)),
    rate("innodb_dblwr_pages_written", reading("innodb.doublewrite_pages_per_s", PerSecond, "doublewrite pages", "pages written to the doublewrite buffer")),
    rate("innodb_row_lock_waits", reading("innodb.row_lock_waits_per_s", PerSecond, "row lock waits", "waits for row locks").worse().up(StallCause::Locks)),
    rate("innodb_row_lock_time", reading("innodb.row_lock_wait_s_per_s", Waiters, "row lock waiting time", "time waited for row locks, all transactions together").worse().up(StallCause::Locks)).times(1e-3),
    rate("innodb_deadlocks", reading("innodb.deadlocks_per_s", PerSecond, "deadlocks", "deadlocks").worse()),
    rate("innodb_adaptive_hash_hash_searches", reading("innodb.hash_searches_per_s", PerSecond, "adaptive hash searches", "searches that the adaptive hash index answered")),
    rate("innodb_adaptive_hash_non_hash_searches", reading("innodb.non_hash_searches_per_s", PerSecond, "B-tree searches", "searches that went down a B-tree")),
    gauge("innodb_row_lock_current_waits", reading("innodb.row_lock_waiting", Count, "waiting for row locks", "transactions that wait for a row lock").worse().up(StallCause::Locks).row(590)),
    gauge("innodb_checkpoint_max_age", reading("innodb.checkpoint_age_max_bytes", Bytes, "checkpoint age limit", "checkpoint age at which everything waits for flushing").role(Role::Limit(StallCause::CheckpointLimit))),
    gauge("innodb_data_pending_reads", reading("innodb.data_pending_reads", Count, "reads under way", "reads under way").up(StallCause::Disk)),
    gauge("innodb_data_pending_writes", reading("innodb.data_pending_writes", Count, "writes under way", "writes under way").up(StallCause::Disk)),
    gauge("innodb_data_pending_fsyncs", reading("innodb.data_pending_fsyncs", Count, "fsyncs under way", "fsyncs under way").up(StallCause::Fsync)),
    gauge("innodb_buffer_pool_bytes_data", reading("innodb.pool_data_bytes", Bytes, "data in the buffer pool", "bytes of data in the buffer pool")),
];

#[rustfmt::skip]
const ROCKSDB: &[Item] = &[
    rate("rocksdb_rows_read", reading("rocksdb.rows_read_per_s", PerSecond, "rows read", "rows read")),
    rate("rocksdb_rows_inserted", reading("rocksdb.rows_inserted_per_s", PerSecond, "rows inserted", "rows inserted")),
    rate("rocksdb_rows_updated", reading("rocksdb.rows_updated_per_s", PerSecond, "rows updated", "rows updated")),
    rate("rocksdb_rows_deleted", reading("rocksdb.rows_deleted_per_s", PerSecond, "rows deleted", "rows deleted")),
    rate("rocksdb_bytes_written", reading("rocksdb.written_bytes_per_s", BytesPerSecond, "bytes written", "bytes that transactions wrote, before any compaction")),
    rate("rocksdb_bytes_read", reading("rocksdb.read_bytes_per_s", BytesPerSecond, "bytes read", "bytes that gets returned")),
    rate("rocksdb_wal_bytes", reading("rocksdb.wal_bytes_per_s", BytesPerSecond, "WAL written", "bytes written to the WAL")),
    rate("rocksdb_wal_synced", reading("rocksdb.wal_syncs_per_s", PerSecond, "WAL syncs", "syncs of the WAL").up(StallCause::Fsync)),
    rate("rocksdb_flush_write_bytes", reading("rocksdb.flush_bytes_per_s", BytesPerSecond, "flushed", "bytes that flushes of memtables wrote").up(StallCause::Flushing)),
    rate("rocksdb_compact_read_bytes", reading("rocksdb.compaction_read_bytes_per_s", BytesPerSecond, "read by compaction", "bytes that compaction read").up(StallCause::Compaction)),
    rate("rocksdb_compact_write_bytes", reading("rocksdb.compaction_write_bytes_per_s", BytesPerSecond, "written by compaction", "bytes that compaction wrote").up(StallCause::Compaction)),
    rate("rocksdb_block_cache_hit", reading("rocksdb.block_cache_hits_per_s", PerSecond, "block cache hits", "blocks found in the block cache")),
    rate("rocksdb_block_cache_miss", reading("rocksdb.block_cache_misses_per_s", PerSecond, "block cache misses", "blocks not found in the block cache").worse()),
    rate("rocksdb_block_cache_data_miss", reading("rocksdb.block_cache_data_misses_per_s", PerSecond, "block cache data misses", "data blocks not found in the block cache").worse()),
    rate("rocksdb_bloom_filter_useful", reading("rocksdb.bloom_useful_per_s", PerSecond, "reads saved by bloom filters", "reads that a bloom filter saved").better()),
    rate("rocksdb_memtable_hit", reading("rocksdb.memtable_hits_per_s", PerSecond, "memtable hits", "gets answered by a memtable")),
    rate("rocksdb_get_hit_l0", reading("rocksdb.get_hits_l0_per_s", PerSecond, "gets from level 0", "gets answered by level 0")),
    rate("rocksdb_get_hit_l1", reading("rocksdb.get_hits_l1_per_s", PerSecond, "gets from level 1", "gets answered by level 1")),
    rate("rocksdb_get_hit_l2_and_up", reading("rocksdb.get_hits_l2_and_up_per_s", PerSecond, "gets from level 2 and deeper", "gets answered by level 2 or a deeper one")),
    rate("rocksdb_number_db_seek", reading("rocksdb.seeks_per_s", PerSecond, "seeks", "seeks of iterators")),
    rate("rocksdb_number_db_next", reading("rocksdb.nexts_per_s", PerSecond, "iterator steps", "steps of iterators")),
    rate("rocksdb_number_sst_entry_delete", reading("rocksdb.tombstones_written_per_s", PerSecond, "tombstones written", "tombstones that flushes and compaction wrote into files")),
    rate("rocksdb_number_sst_entry_singledelete", reading("rocksdb.single_tombstones_written_per_s", PerSecond, "single tombstones written", "tombstones of single deletes written into files")),
    rate("rocksdb_number_sst_entry_put", reading("rocksdb.puts_written_per_s", PerSecond, "puts written", "values that flushes and compaction wrote into files")),
    rate("rocksdb_stall_micros", reading("rocksdb.stalled_s_per_s", Waiters, "writers held up", "time that writers were held up, all writers together").worse().up(StallCause::Compaction).row(610)).times(1e-6),
    rate("rocksdb_stall_total_slowdowns", reading("rocksdb.stall_slowdowns_per_s", PerSecond, "write slowdowns", "times that writers were slowed down").worse().up(StallCause::Compaction)),
    rate("rocksdb_stall_total_stops", reading("rocksdb.stall_stops_per_s", PerSecond, "write stops", "times that writers were stopped").worse().up(StallCause::Compaction)),
    rate("rocksdb_stall_l0_file_count_limit_slowdowns", reading("rocksdb.stall_l0_slowdowns_per_s", PerSecond, "slowdowns by level 0", "slowdowns because of too many files in level 0").worse().up(StallCause::Compaction)),
    rate("rocksdb_stall_l0_file_count_limit_stops", reading("rocksdb.stall_l0_stops_per_s", PerSecond, "stops by level 0", "stops because of too many files in level 0").worse().up(StallCause::Compaction)),
    rate("rocksdb_stall_memtable_limit_slowdowns", reading("rocksdb.stall_memtable_slowdowns_per_s", PerSecond, "slowdowns by memtables", "slowdowns because memtables wait to be flushed").worse().up(StallCause::Compaction)),
    rate("rocksdb_stall_memtable_limit_stops", reading("rocksdb.stall_memtable_stops_per_s", PerSecond, "stops by memtables", "stops because memtables wait to be flushed").worse().up(StallCause::Compaction)),
    rate("rocksdb_stall_pending_compaction_limit_slowdowns", reading("rocksdb.stall_compaction_slowdowns_per_s", PerSecond, "slowdowns by compaction", "slowdowns because of pending compaction").worse().up(StallCause::Compaction)),
    rate("rocksdb_stall_pending_compaction_limit_stops", reading("rocksdb.stall_compaction_stops_per_s", PerSecond, "stops by compaction", "stops because of pending compaction").worse().up(StallCause::Compaction)),
    rate("rocksdb_row_lock_deadlocks", reading("rocksdb.deadlocks_per_s", PerSecond, "deadlocks", "deadlocks").worse()),
    rate("rocksdb_row_lock_wait_timeouts", reading("rocksdb.lock_timeouts_per_s", PerSecond, "lock timeouts", "row lock timeouts").worse()),
    rate("rocksdb_snapshot_conflict_errors", reading("rocksdb.snapshot_conflicts_per_s", PerSecond, "snapshot conflicts", "transactions refused because of a newer version").worse()),
    gauge("rocksdb_memtable_total", reading("rocksdb.memtable_bytes", Bytes, "memtables", "bytes of all memtables")),
    gauge("rocksdb_memtable_unflushed", reading("rocksdb.memtable_unflushed_bytes", Bytes, "unflushed memtables", "bytes of memtables that are not yet flushed")),
    gauge("rocksdb_manual_compactions_running", reading("rocksdb.manual_compactions_running", Count, "manual compactions running", "compactions started by a command").up(StallCause::Compaction)),
];

#[rustfmt::skip]
const DERIVED: &[Reading] = &[
    reading("innodb.pool_hit_percent", Percent, "buffer pool hit ratio", "share of requested pages found in the buffer pool, from the counters (the status text says 100 while pages are being read)").better().row(550),
    reading("rocksdb.block_cache_hit_percent", Percent, "block cache hit ratio", "share of requested blocks found in the block cache").better(),
];

pub(super) fn registered() -> Vec<Reading> {
    [all_of(&[SERVER, INNODB, ROCKSDB], DERIVED), progress::READINGS.to_vec()].concat()
}

/// The server's names for what is read, of the thousand or so that it has.
static WANTED: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    [SERVER, INNODB, ROCKSDB].into_iter().flatten().map(|item| item.source).collect()
});

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

/// Share of what was asked for and was there, in percent.
fn hits(table: &Table, values: &Values, all: &str, missed: &str) -> Option<f64> {
    let all = table.growth(values, all).filter(|all| *all > 0.0)?;
    let missed = table.growth(values, missed)?;
    Some((100.0 * (1.0 - missed / all)).clamp(0.0, 100.0))
}

pub(super) fn probe(connector: Connector) -> Box<dyn Probe> {
    let (mut server, mut innodb, mut rocksdb) =
        (Table::new(SERVER), Table::new(INNODB), Table::new(ROCKSDB));
    let mut progress = Progress::default();
    asking("mysql", registered(), Asker::new(connector), move |asker, now, readings| {
        let Some(rows) = asker.rows(now, "SHOW GLOBAL STATUS") else { return };
        let values = wanted_numbers(&rows);
        let pool = ("innodb_buffer_pool_read_requests", "innodb_buffer_pool_reads");
        if let Some(hits) = hits(&innodb, &values, pool.0, pool.1) {
            readings.insert("innodb.pool_hit_percent".to_owned(), hits);
        }
        let mut blocks = values.clone();
        let hit = values.get("rocksdb_block_cache_hit").copied().unwrap_or(0.0);
        let miss = values.get("rocksdb_block_cache_miss").copied().unwrap_or(0.0);
        blocks.insert("rocksdb_block_cache_all".to_owned(), hit + miss);
        let cache = ("rocksdb_block_cache_all", "rocksdb_block_cache_miss");
        if let Some(hits) = hits(&rocksdb, &blocks, cache.0, cache.1) {
            readings.insert("rocksdb.block_cache_hit_percent".to_owned(), hits);
        }
        server.put(now, values.clone(), readings);
        innodb.put(now, values, readings);
        rocksdb.put(now, blocks, readings);
        progress.read(asker, now, readings);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_all_that_the_server_reports_the_wanted_numbers_are_kept() {
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
