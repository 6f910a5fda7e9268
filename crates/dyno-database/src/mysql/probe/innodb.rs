//! InnoDB's internals: SHOW ENGINE INNODB STATUS each time, INNODB_METRICS less often. Names in
//! capitals are from `InnoDB_Stats`.

use dyno_host::Probe;
use dyno_units::Nanoseconds;
use dyno_units::reading::prelude::*;
use dyno_workload::Connector;

use super::parse_innodb_status;
use crate::probe::{
    Asker, Every, Item, Table, Values, all_of, asking, cell, gauge, numbers_by_name, rate,
};

#[rustfmt::skip]
const TEXT: &[Item] = &[
    gauge("history_list_length", reading("innodb.history_list_length", Count, "history list length", "undo logs of committed transactions that are not yet purged").worse().up(StallCause::Purge).row(520)),
    gauge("purge_lag", reading("innodb.purge_lag_transactions", Unit::other("transactions"), "purge lag", "transactions since the one that purge has reached").worse().up(StallCause::Purge)),
    rate("trx_id", reading("innodb.transaction_ids_per_s", PerSecond, "transaction ids given out", "transaction ids given out: transactions that write")),
    gauge("transactions_active", reading("innodb.transactions_active", Count, "open transactions", "transactions that are open")),
    gauge("transactions_waiting", reading("innodb.transactions_waiting", Count, "transactions waiting for a lock", "transactions that wait for a lock").worse().up(StallCause::Locks)),
    gauge("transaction_longest_s", reading("innodb.transaction_longest_s", Seconds, "oldest transaction", "age of the oldest open transaction").worse()),
    gauge("read_views", reading("innodb.read_views", Count, "read views", "open read views")),
    gauge("checkpoint_age", reading("innodb.checkpoint_age_bytes", Bytes, "checkpoint age", "redo since the last checkpoint (Checkpoint-age)").worse().moves(StallCause::CheckpointLimit, Movement::ToLimit)),
    gauge("log_age", reading("innodb.log_age_bytes", Bytes, "redo not yet on disk", "redo that is not yet on disk (Log-age)")),
    gauge("flush_age", reading("innodb.flush_age_bytes", Bytes, "redo since the oldest dirty page", "redo since the oldest dirty page")),
    gauge("checkpoint_age_max", reading("innodb.checkpoint_age_max_text_bytes", Bytes, "checkpoint age limit (XtraDB)", "checkpoint age at which everything waits (XtraDB)").role(Role::Limit(StallCause::CheckpointLimit))),
    rate("lsn", reading("innodb.redo_bytes_per_s", BytesPerSecond, "redo written", "redo written (Log-writes-MB)").row(570)),
    rate("log_ios", reading("innodb.log_ios_per_s", PerSecond, "redo log writes", "writes of the redo log (Log-writes)")),
    gauge("pending_log_writes", reading("innodb.pending_log_writes", Count, "pending log writes", "writes or flushes of the redo log under way").up(StallCause::Flushing)),
    gauge("pending_checkpoint_writes", reading("innodb.pending_checkpoint_writes", Count, "pending checkpoint writes", "writes of a checkpoint under way").up(StallCause::Checkpoint)),
    gauge("pending_flushes", reading("innodb.pending_flushes", Count, "fsyncs under way", "fsyncs under way").up(StallCause::Fsync)),
    gauge("pending_aio_reads", reading("innodb.pending_aio_reads", Count, "pending aio reads", "asynchronous reads under way").up(StallCause::Disk)),
    gauge("pending_aio_writes", reading("innodb.pending_aio_writes", Count, "pending aio writes", "asynchronous writes under way").up(StallCause::Disk)),
    gauge("pending_page_reads", reading("innodb.pending_page_reads", Count, "pending page reads", "pages being read")),
    gauge("pending_page_writes", reading("innodb.pending_page_writes", Count, "pending page writes", "pages being written").up(StallCause::Flushing)),
    gauge("pending_single_page_flushes", reading("innodb.pending_single_page_flushes", Count, "pending single page flushes", "pages that threads of clients flush themselves, which stalls them").worse()),
    rate("os_file_reads", reading("innodb.os_file_reads_per_s", PerSecond, "file reads", "reads of files (OS-file-reads)")),
    rate("os_file_writes", reading("innodb.os_file_writes_per_s", PerSecond, "file writes", "writes of files (OS-file-writes)")),
    rate("os_fsyncs", reading("innodb.os_fsyncs_per_s", PerSecond, "fsyncs", "fsyncs (OS-fsyncs)").up(StallCause::Fsync).row(580)),
    gauge("dirty_pages", reading("innodb.dirty_pages", Count, "dirty pages", "pages to flush (Modified-db-pages)")),
    gauge("dirty_percent", reading("innodb.dirty_pages_percent", Percent, "dirty pages", "pages to flush, of data and free pages").row(530)),
    gauge("pool_pages", reading("innodb.pool_pages", Count, "buffer pool pages", "pages of the buffer pool (Buffer-pool-size)")),
    gauge("free_pages", reading("innodb.free_pages", Count, "free pages", "free pages (Free-buffers)")),
    gauge("database_pages", reading("innodb.database_pages", Count, "database pages", "pages with data (Database-pages)")),
    rate("pages_read", reading("innodb.pages_read_per_s", PerSecond, "pages read", "pages read (Pages-read)")),
    rate("pages_created", reading("innodb.pages_created_per_s", PerSecond, "pages created", "pages created (Pages-create)")),
    rate("pages_written", reading("innodb.pages_written_per_s", PerSecond, "pages written", "pages written (Pages-write)").up(StallCause::Flushing)),
    rate("pages_made_young", reading("innodb.pages_made_young_per_s", PerSecond, "pages made young", "pages moved to the young end of the LRU")),
    gauge("lru_len", reading("innodb.lru_pages", Count, "LRU pages", "pages in the LRU (LRU-len)")),
    gauge("lru_unzip_len", reading("innodb.lru_unzip_pages", Count, "uncompressed LRU pages", "uncompressed copies in the LRU (LRU-unzip-len)")),
    gauge("hit_percent_of_window", reading("innodb.pool_hit_text_percent", Percent, "buffer pool hit ratio (status text)", "hit ratio from SHOW ENGINE INNODB STATUS, over its own averaging window")),
    gauge("memory_bytes", reading("innodb.memory_bytes", Bytes, "memory", "memory of the buffer pool and its structures (Total-memory)")),
    gauge("additional_pool_bytes", reading("innodb.additional_pool_bytes", Bytes, "additional memory pool", "memory of the additional pool (Additional-pool; up to 5.6)")),
    gauge("dictionary_bytes", reading("innodb.dictionary_bytes", Bytes, "data dictionary", "memory of the data dictionary")),
    rate("os_wait_reservations", reading("innodb.os_waits_per_s", PerSecond, "wait array reservations", "waits in the wait arrays (Wait-Array-reservations)").worse()),
    rate("os_wait_signals", reading("innodb.os_wait_signals_per_s", PerSecond, "wait array signals", "signals of the wait arrays (Wait-Array-signals)").worse()),
    rate("mutex_spin_waits", reading("innodb.mutex_spin_waits_per_s", PerSecond, "mutex spin waits", "waits for a mutex (Mutex-spin-waits; up to 5.6)").worse()),
    rate("mutex_spin_rounds", reading("innodb.mutex_spin_rounds_per_s", PerSecond, "mutex spin rounds", "rounds of spinning for a mutex (Mutex-spin-rounds)")),
    rate("mutex_os_waits", reading("innodb.mutex_os_waits_per_s", PerSecond, "mutex sleeps", "OS waits for mutexes (Mutex-OS-waits)").worse()),
    rate("rw_shared_spins", reading("innodb.rw_shared_spins_per_s", PerSecond, "shared lock waits", "waits for a shared lock (RW-shared-spins)")),
    rate("rw_shared_rounds", reading("innodb.rw_shared_rounds_per_s", PerSecond, "shared lock spin rounds", "rounds of spinning for a shared lock (from 5.5)")),
    rate("rw_shared_os_waits", reading("innodb.rw_shared_os_waits_per_s", PerSecond, "shared lock sleeps", "OS waits for shared rw-locks (RW-shared-OS-waits)").worse()),
    rate("rw_excl_spins", reading("innodb.rw_excl_spins_per_s", PerSecond, "exclusive lock waits", "waits for an exclusive lock (RW-excl-spins)")),
    rate("rw_excl_rounds", reading("innodb.rw_excl_rounds_per_s", PerSecond, "exclusive lock spin rounds", "rounds of spinning for an exclusive lock (from 5.5)")),
    rate("rw_excl_os_waits", reading("innodb.rw_excl_os_waits_per_s", PerSecond, "exclusive lock sleeps", "OS waits for exclusive rw-locks (RW-excl-OS-waits)").worse()),
    rate("rw_sx_os_waits", reading("innodb.rw_sx_os_waits_per_s", PerSecond, "shared-exclusive lock sleeps", "OS waits for shared-exclusive rw-locks").worse()),
    gauge("semaphore_waits", reading("innodb.semaphore_waits", Count, "semaphore waits", "threads that wait for a semaphore").worse().up(StallCause::Locks)),
    gauge("semaphore_wait_longest_s", reading("innodb.semaphore_wait_longest_s", Seconds, "longest semaphore wait", "longest of those waits").worse().up(StallCause::Locks)),
    gauge("ibuf_size", reading("innodb.change_buffer_pages", Count, "change buffer pages", "pages of the change buffer (Insert-Buffer-size)")),
    gauge("ibuf_free_list_len", reading("innodb.change_buffer_free_pages", Count, "change buffer free pages", "free pages of the change buffer (Insert-Buffer-free-len)")),
    gauge("ibuf_seg_size", reading("innodb.change_buffer_segment_pages", Count, "change buffer segment pages", "pages of the change buffer's segment (Insert-Buffer-seg-size)")),
    rate("ibuf_merges", reading("innodb.change_buffer_merges_per_s", PerSecond, "change buffer merges", "merges of the change buffer (Insert-Buffer-merges)")),
    rate("ibuf_inserts", reading("innodb.change_buffer_inserts_per_s", PerSecond, "change buffer inserts", "changes put into the change buffer (Insert-Buffer-inserts; up to 5.1)")),
    rate("ibuf_merged_records", reading("innodb.change_buffer_merged_records_per_s", PerSecond, "change buffer merged records", "changes merged from the change buffer (Insert-Buffer-merged-recs; up to 5.1)")),
    rate("ibuf_inserts_merged", reading("innodb.change_buffer_inserts_merged_per_s", PerSecond, "change buffer inserts merged", "inserts merged from the change buffer")),
    rate("ibuf_marks_merged", reading("innodb.change_buffer_marks_merged_per_s", PerSecond, "change buffer marks merged", "delete marks merged from the change buffer")),
    rate("ibuf_deletes_merged", reading("innodb.change_buffer_deletes_merged_per_s", PerSecond, "change buffer deletes merged", "deletes merged from the change buffer")),
    gauge("hash_table_size", reading("innodb.hash_table_cells", Count, "adaptive hash cells", "cells of the adaptive hash index (Hash-Index-size)")),
    gauge("hash_node_buffers", reading("innodb.hash_table_buffers", Count, "adaptive hash pages", "pages of the adaptive hash index (Hash-Index-buffers)")),
    gauge("queries_inside", reading("innodb.queries_inside", Count, "statements inside InnoDB", "statements inside InnoDB (Queries-inside)")),
    gauge("queries_in_queue", reading("innodb.queries_in_queue", Count, "statements in the queue", "statements that wait to get in (Queries-in-queue)").worse()),
    rate("rows_inserted", reading("innodb.rows_inserted_per_s", PerSecond, "rows inserted", "rows inserted (Rows-insert)")),
    rate("rows_updated", reading("innodb.rows_updated_per_s", PerSecond, "rows updated", "rows updated (Rows-update)")),
    rate("rows_deleted", reading("innodb.rows_deleted_per_s", PerSecond, "rows deleted", "rows deleted (Rows-delete)")),
    rate("rows_read", reading("innodb.rows_read_per_s", PerSecond, "rows read", "rows read (Rows-read)")),
];

/// Counters that only INNODB_METRICS has; those that are turned off are missing.
#[rustfmt::skip]
const METRICS: &[Item] = &[
    rate("purge_del_mark_records", reading("innodb.purged_records_per_s", PerSecond, "purged records", "deleted records that purge removed").up(StallCause::Purge)),
    rate("purge_undo_log_pages", reading("innodb.purged_undo_pages_per_s", PerSecond, "purged undo pages", "undo pages that purge went through").up(StallCause::Purge)),
    rate("purge_invoked", reading("innodb.purge_runs_per_s", PerSecond, "purge runs", "times that purge ran").up(StallCause::Purge)),
    gauge("purge_dml_delay_usec", reading("innodb.purge_dml_delay_s", Seconds, "purge delay of writers", "delay put on writers because purge lags").worse().up(StallCause::Purge)).times(1e-6),
    rate("buffer_flush_adaptive_total_pages", reading("innodb.flushed_adaptive_per_s", PerSecond, "pages flushed adaptively", "pages flushed adaptively").up(StallCause::Flushing)),
    rate("buffer_flush_sync_total_pages", reading("innodb.flushed_sync_per_s", PerSecond, "pages flushed synchronously", "pages flushed while everything waited").worse().up(StallCause::Flushing)),
    rate("buffer_flush_background_total_pages", reading("innodb.flushed_background_per_s", PerSecond, "pages flushed in the background", "pages flushed in idle time").up(StallCause::Flushing)),
    rate("buffer_flush_neighbor_total_pages", reading("innodb.flushed_neighbours_per_s", PerSecond, "neighbour pages flushed", "pages flushed because their neighbours were flushed").up(StallCause::Flushing)),
    rate("buffer_lru_single_flush_num_scan", reading("innodb.lru_single_flushes_per_s", PerSecond, "single-page flushes", "flushes of single pages by threads of clients").worse().up(StallCause::Flushing)),
    rate("buffer_lru_get_free_waits", reading("innodb.lru_free_waits_per_s", PerSecond, "free page waits (metric)", "waits for a free page").worse().up(StallCause::Flushing)),
    rate("index_page_splits", reading("innodb.page_splits_per_s", PerSecond, "page splits", "pages split")),
    rate("index_page_merge_successful", reading("innodb.page_merges_per_s", PerSecond, "page merges", "pages merged")),
    rate("log_checkpoints", reading("innodb.checkpoints_per_s", PerSecond, "checkpoints", "checkpoints").up(StallCause::Checkpoint)),
    rate("lock_deadlocks", reading("innodb.metric_deadlocks_per_s", PerSecond, "deadlocks (metric)", "deadlocks, as InnoDB counts them").worse()),
    rate("lock_timeouts", reading("innodb.lock_timeouts_per_s", PerSecond, "lock timeouts", "row lock timeouts").worse()),
    rate("trx_rw_commits", reading("innodb.rw_commits_per_s", PerSecond, "read-write commits", "transactions committed that wrote").better()),
    rate("trx_ro_commits", reading("innodb.ro_commits_per_s", PerSecond, "read-only commits", "transactions committed that only read").better()),
    rate("adaptive_hash_searches", reading("innodb.metric_hash_searches_per_s", PerSecond, "adaptive hash searches (metric)", "searches that the adaptive hash index answered")),
    rate("adaptive_hash_searches_btree", reading("innodb.metric_btree_searches_per_s", PerSecond, "B-tree searches (metric)", "searches that went down a B-tree")),
];

#[rustfmt::skip]
const DERIVED: &[Reading] = &[
    reading("innodb.checkpoint_age_percent", Percent, "checkpoint age", "redo since the last checkpoint, as a share of the age at which everything waits for flushing (if the server does not report that age, of the redo log's size)").worse().moves(StallCause::CheckpointLimit, Movement::From(85)).row(540),
    reading("server.thread.purge.cpu_s_per_s", Cpus, "CPU of purge", "CPU time of the server's threads that purge old row versions").up(StallCause::Purge).instance_of("*.thread.*.cpu_s_per_s"),
    reading("server.thread.page_cleaner.cpu_s_per_s", Cpus, "CPU of the page cleaner", "CPU time of the server's threads that flush dirty pages").up(StallCause::Flushing).instance_of("*.thread.*.cpu_s_per_s"),
];

pub(super) fn registered() -> Vec<Reading> {
    all_of(&[TEXT, METRICS], DERIVED)
}

/// The metrics that are turned on: MariaDB reports this differently from MySQL.
const ASK_METRICS: [&str; 2] = [
    "SELECT name, count FROM information_schema.INNODB_METRICS WHERE status = 'enabled'",
    "SELECT name, count FROM information_schema.INNODB_METRICS WHERE enabled = 1",
];

pub(super) fn probe(connector: Connector) -> Box<dyn Probe> {
    let (mut text, mut metrics, mut limit) = (Table::new(TEXT), Table::new(METRICS), Limit::new());
    let mut metrics_due = Every::new(Nanoseconds::from_secs(10));
    asking("innodb", registered(), Asker::new(connector), move |asker, now, readings| {
        let Some(values) = status(asker, now) else { return };
        if let Some(percent) = limit.percent(asker, now, &values) {
            readings.insert("innodb.checkpoint_age_percent".to_owned(), percent);
        }
        text.put(now, values, readings);
        if metrics_due.is_due(now) {
            let rows = ASK_METRICS.iter().find_map(|sql| asker.rows(now, sql));
            if let Some(rows) = rows {
                metrics.put(now, numbers_by_name(&rows), readings);
            }
        }
    })
}

pub(super) fn status(asker: &mut Asker, now: Nanoseconds) -> Option<Values> {
    let rows = asker.rows(now, "SHOW ENGINE INNODB STATUS")?;
    // The columns are type, name and text.
    let text = rows.iter().find_map(|row| cell(row, 2))?;
    Some(parse_innodb_status(text))
}

/// The checkpoint age at which everything waits for flushing.
struct Limit {
    due: Every,
    bytes: Option<f64>,
}

impl Limit {
    fn new() -> Limit {
        Limit { due: Every::new(Nanoseconds::from_secs(60)), bytes: None }
    }

    fn percent(&mut self, asker: &mut Asker, now: Nanoseconds, values: &Values) -> Option<f64> {
        if self.due.is_due(now) {
            self.bytes = checkpoint_age_limit(&mut |sql| asker.rows(now, sql));
        }
        let own_limit = values.get("checkpoint_age_max").or(values.get("log_capacity"));
        let limit = own_limit.copied().or(self.bytes)?;
        (limit > 0.0).then(|| 100.0 * values.get("checkpoint_age").copied().unwrap_or(0.0) / limit)
    }
}

/// The limit of the checkpoint age: as MariaDB reports it, else the size of the redo log.
pub(in crate::mysql) fn checkpoint_age_limit(
    ask: &mut dyn FnMut(&str) -> Option<dyno_workload::TextRows>,
) -> Option<f64> {
    let answer = ask("SHOW GLOBAL STATUS LIKE 'Innodb_checkpoint_max_age'")?;
    if let Some(limit) = numbers_by_name(&answer).get("innodb_checkpoint_max_age") {
        return Some(*limit);
    }
    let settings = numbers_by_name(&ask(
        "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('innodb_redo_log_capacity', \
         'innodb_log_file_size', 'innodb_log_files_in_group')",
    )?);
    let value = |name: &str| settings.get(name).copied();
    value("innodb_redo_log_capacity").filter(|bytes| *bytes > 0.0).or_else(|| {
        Some(value("innodb_log_file_size")? * value("innodb_log_files_in_group").unwrap_or(1.0))
    })
}
