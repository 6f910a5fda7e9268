//! InnoDB from the inside: SHOW ENGINE INNODB STATUS every time, INNODB_METRICS more rarely.
//!
//! The names in capitals are those that `InnoDB_Stats` gave them.

use std::sync::LazyLock;

use dyno_host::{Probe, ReadingLegend, Readings};
use dyno_units::Nanoseconds;
use dyno_workload::Connector;

use super::parse_innodb_status;
use crate::probe::{
    Asker, Every, Item, Table, Values, cell, gauge, legend as one, legends, numbers_by_name, rate,
};

/// What the status text tells.
const TEXT: &[Item] = &[
    gauge(
        "history_list_length",
        "innodb.history_list_length",
        "1",
        "undo logs of committed transactions that are not yet purged",
    ),
    gauge(
        "purge_lag",
        "innodb.purge_lag_transactions",
        "transactions",
        "transactions since the one that purge has reached",
    ),
    rate(
        "trx_id",
        "innodb.transaction_ids_per_s",
        "1/s",
        "transaction ids given out: transactions that write",
    ),
    gauge("transactions_active", "innodb.transactions_active", "1", "transactions that are open"),
    gauge(
        "transactions_waiting",
        "innodb.transactions_waiting",
        "1",
        "transactions that wait for a lock",
    ),
    gauge(
        "transaction_longest_s",
        "innodb.transaction_longest_s",
        "s",
        "age of the oldest open transaction",
    ),
    gauge("read_views", "innodb.read_views", "1", "open read views"),
    gauge(
        "checkpoint_age",
        "innodb.checkpoint_age_bytes",
        "bytes",
        "redo since the last checkpoint (Checkpoint-age)",
    ),
    gauge("log_age", "innodb.log_age_bytes", "bytes", "redo that is not yet on disk (Log-age)"),
    gauge("flush_age", "innodb.flush_age_bytes", "bytes", "redo since the oldest dirty page"),
    gauge(
        "checkpoint_age_max",
        "innodb.checkpoint_age_max_text_bytes",
        "bytes",
        "checkpoint age at which everything waits (XtraDB)",
    ),
    rate("lsn", "innodb.redo_bytes_per_s", "bytes/s", "redo written (Log-writes-MB)"),
    rate("log_ios", "innodb.log_ios_per_s", "1/s", "writes of the redo log (Log-writes)"),
    gauge(
        "pending_log_writes",
        "innodb.pending_log_writes",
        "1",
        "writes or flushes of the redo log under way",
    ),
    gauge(
        "pending_checkpoint_writes",
        "innodb.pending_checkpoint_writes",
        "1",
        "writes of a checkpoint under way",
    ),
    gauge("pending_flushes", "innodb.pending_flushes", "1", "fsyncs under way"),
    gauge("pending_aio_reads", "innodb.pending_aio_reads", "1", "asynchronous reads under way"),
    gauge("pending_aio_writes", "innodb.pending_aio_writes", "1", "asynchronous writes under way"),
    gauge("pending_page_reads", "innodb.pending_page_reads", "1", "pages being read"),
    gauge("pending_page_writes", "innodb.pending_page_writes", "1", "pages being written"),
    gauge(
        "pending_single_page_flushes",
        "innodb.pending_single_page_flushes",
        "1",
        "pages that threads of clients flush themselves, which stalls them",
    ),
    rate("os_file_reads", "innodb.os_file_reads_per_s", "1/s", "reads of files (OS-file-reads)"),
    rate(
        "os_file_writes",
        "innodb.os_file_writes_per_s",
        "1/s",
        "writes of files (OS-file-writes)",
    ),
    rate("os_fsyncs", "innodb.os_fsyncs_per_s", "1/s", "fsyncs (OS-fsyncs)"),
    gauge("dirty_pages", "innodb.dirty_pages", "1", "pages to flush (Modified-db-pages)"),
    gauge(
        "dirty_percent",
        "innodb.dirty_pages_percent",
        "%",
        "pages to flush, of data and free pages",
    ),
    gauge("pool_pages", "innodb.pool_pages", "1", "pages of the buffer pool (Buffer-pool-size)"),
    gauge("free_pages", "innodb.free_pages", "1", "free pages (Free-buffers)"),
    gauge("database_pages", "innodb.database_pages", "1", "pages with data (Database-pages)"),
    rate("pages_read", "innodb.pages_read_per_s", "1/s", "pages read (Pages-read)"),
    rate("pages_created", "innodb.pages_created_per_s", "1/s", "pages created (Pages-create)"),
    rate("pages_written", "innodb.pages_written_per_s", "1/s", "pages written (Pages-write)"),
    rate(
        "pages_made_young",
        "innodb.pages_made_young_per_s",
        "1/s",
        "pages moved to the young end of the LRU",
    ),
    gauge("lru_len", "innodb.lru_pages", "1", "pages in the LRU (LRU-len)"),
    gauge(
        "lru_unzip_len",
        "innodb.lru_unzip_pages",
        "1",
        "uncompressed copies in the LRU (LRU-unzip-len)",
    ),
    gauge(
        "hit_percent_of_window",
        "innodb.pool_hit_text_percent",
        "%",
        "Buffer-pool-hit as the status text tells it, of a time of its own",
    ),
    gauge(
        "memory_bytes",
        "innodb.memory_bytes",
        "bytes",
        "memory of the buffer pool and its structures (Total-memory)",
    ),
    gauge(
        "additional_pool_bytes",
        "innodb.additional_pool_bytes",
        "bytes",
        "memory of the additional pool (Additional-pool; up to 5.6)",
    ),
    gauge("dictionary_bytes", "innodb.dictionary_bytes", "bytes", "memory of the data dictionary"),
    rate(
        "os_wait_reservations",
        "innodb.os_waits_per_s",
        "1/s",
        "waits in the wait arrays (Wait-Array-reservations)",
    ),
    rate(
        "os_wait_signals",
        "innodb.os_wait_signals_per_s",
        "1/s",
        "signals of the wait arrays (Wait-Array-signals)",
    ),
    rate(
        "mutex_spin_waits",
        "innodb.mutex_spin_waits_per_s",
        "1/s",
        "waits for a mutex (Mutex-spin-waits; up to 5.6)",
    ),
    rate(
        "mutex_spin_rounds",
        "innodb.mutex_spin_rounds_per_s",
        "1/s",
        "rounds of spinning for a mutex (Mutex-spin-rounds)",
    ),
    rate(
        "mutex_os_waits",
        "innodb.mutex_os_waits_per_s",
        "1/s",
        "mutexes slept for (Mutex-OS-waits)",
    ),
    rate(
        "rw_shared_spins",
        "innodb.rw_shared_spins_per_s",
        "1/s",
        "waits for a shared lock (RW-shared-spins)",
    ),
    rate(
        "rw_shared_rounds",
        "innodb.rw_shared_rounds_per_s",
        "1/s",
        "rounds of spinning for a shared lock (from 5.5)",
    ),
    rate(
        "rw_shared_os_waits",
        "innodb.rw_shared_os_waits_per_s",
        "1/s",
        "shared locks slept for (RW-shared-OS-waits)",
    ),
    rate(
        "rw_excl_spins",
        "innodb.rw_excl_spins_per_s",
        "1/s",
        "waits for an exclusive lock (RW-excl-spins)",
    ),
    rate(
        "rw_excl_rounds",
        "innodb.rw_excl_rounds_per_s",
        "1/s",
        "rounds of spinning for an exclusive lock (from 5.5)",
    ),
    rate(
        "rw_excl_os_waits",
        "innodb.rw_excl_os_waits_per_s",
        "1/s",
        "exclusive locks slept for (RW-excl-OS-waits)",
    ),
    rate(
        "rw_sx_os_waits",
        "innodb.rw_sx_os_waits_per_s",
        "1/s",
        "shared-exclusive locks slept for",
    ),
    gauge("semaphore_waits", "innodb.semaphore_waits", "1", "threads that wait for a semaphore"),
    gauge(
        "semaphore_wait_longest_s",
        "innodb.semaphore_wait_longest_s",
        "s",
        "longest of those waits",
    ),
    gauge(
        "ibuf_size",
        "innodb.change_buffer_pages",
        "1",
        "pages of the change buffer (Insert-Buffer-size)",
    ),
    gauge(
        "ibuf_free_list_len",
        "innodb.change_buffer_free_pages",
        "1",
        "free pages of the change buffer (Insert-Buffer-free-len)",
    ),
    gauge(
        "ibuf_seg_size",
        "innodb.change_buffer_segment_pages",
        "1",
        "pages of the change buffer's segment (Insert-Buffer-seg-size)",
    ),
    rate(
        "ibuf_merges",
        "innodb.change_buffer_merges_per_s",
        "1/s",
        "merges of the change buffer (Insert-Buffer-merges)",
    ),
    rate(
        "ibuf_inserts",
        "innodb.change_buffer_inserts_per_s",
        "1/s",
        "changes put into the change buffer (Insert-Buffer-inserts; up to 5.1)",
    ),
    rate(
        "ibuf_merged_records",
        "innodb.change_buffer_merged_records_per_s",
        "1/s",
        "changes merged from the change buffer (Insert-Buffer-merged-recs; up to 5.1)",
    ),
    rate(
        "ibuf_inserts_merged",
        "innodb.change_buffer_inserts_merged_per_s",
        "1/s",
        "inserts merged from the change buffer",
    ),
    rate(
        "ibuf_marks_merged",
        "innodb.change_buffer_marks_merged_per_s",
        "1/s",
        "marks as deleted merged from the change buffer",
    ),
    rate(
        "ibuf_deletes_merged",
        "innodb.change_buffer_deletes_merged_per_s",
        "1/s",
        "deletes merged from the change buffer",
    ),
    gauge(
        "hash_table_size",
        "innodb.hash_table_cells",
        "1",
        "cells of the adaptive hash index (Hash-Index-size)",
    ),
    gauge(
        "hash_node_buffers",
        "innodb.hash_table_buffers",
        "1",
        "pages of the adaptive hash index (Hash-Index-buffers)",
    ),
    gauge(
        "queries_inside",
        "innodb.queries_inside",
        "1",
        "statements inside InnoDB (Queries-inside)",
    ),
    gauge(
        "queries_in_queue",
        "innodb.queries_in_queue",
        "1",
        "statements that wait to get in (Queries-in-queue)",
    ),
    rate("rows_inserted", "innodb.rows_inserted_per_s", "1/s", "rows inserted (Rows-insert)"),
    rate("rows_updated", "innodb.rows_updated_per_s", "1/s", "rows updated (Rows-update)"),
    rate("rows_deleted", "innodb.rows_deleted_per_s", "1/s", "rows deleted (Rows-delete)"),
    rate("rows_read", "innodb.rows_read_per_s", "1/s", "rows read (Rows-read)"),
];

/// Counters of INNODB_METRICS that nothing else tells; those that are turned off are missing.
const METRICS: &[Item] = &[
    rate(
        "purge_del_mark_records",
        "innodb.purged_records_per_s",
        "1/s",
        "deleted records that purge removed",
    ),
    rate(
        "purge_undo_log_pages",
        "innodb.purged_undo_pages_per_s",
        "1/s",
        "undo pages that purge went through",
    ),
    rate("purge_invoked", "innodb.purge_runs_per_s", "1/s", "times that purge ran"),
    gauge(
        "purge_dml_delay_usec",
        "innodb.purge_dml_delay_s",
        "s",
        "delay put on writers because purge lags",
    )
    .times(1e-6),
    rate(
        "buffer_flush_adaptive_total_pages",
        "innodb.flushed_adaptive_per_s",
        "1/s",
        "pages flushed adaptively",
    ),
    rate(
        "buffer_flush_sync_total_pages",
        "innodb.flushed_sync_per_s",
        "1/s",
        "pages flushed while everything waited",
    ),
    rate(
        "buffer_flush_background_total_pages",
        "innodb.flushed_background_per_s",
        "1/s",
        "pages flushed because there was time",
    ),
    rate(
        "buffer_flush_neighbor_total_pages",
        "innodb.flushed_neighbours_per_s",
        "1/s",
        "pages flushed because their neighbours were",
    ),
    rate(
        "buffer_lru_single_flush_num_scan",
        "innodb.lru_single_flushes_per_s",
        "1/s",
        "flushes of single pages by threads of clients",
    ),
    rate(
        "buffer_lru_get_free_waits",
        "innodb.lru_free_waits_per_s",
        "1/s",
        "waits for a free page",
    ),
    rate("index_page_splits", "innodb.page_splits_per_s", "1/s", "pages split"),
    rate("index_page_merge_successful", "innodb.page_merges_per_s", "1/s", "pages merged"),
    rate("log_checkpoints", "innodb.checkpoints_per_s", "1/s", "checkpoints"),
    rate(
        "lock_deadlocks",
        "innodb.metric_deadlocks_per_s",
        "1/s",
        "deadlocks, as InnoDB counts them",
    ),
    rate(
        "lock_timeouts",
        "innodb.lock_timeouts_per_s",
        "1/s",
        "row locks that were not had in time",
    ),
    rate("trx_rw_commits", "innodb.rw_commits_per_s", "1/s", "transactions committed that wrote"),
    rate(
        "trx_ro_commits",
        "innodb.ro_commits_per_s",
        "1/s",
        "transactions committed that only read",
    ),
    rate(
        "adaptive_hash_searches",
        "innodb.metric_hash_searches_per_s",
        "1/s",
        "searches that the adaptive hash index answered",
    ),
    rate(
        "adaptive_hash_searches_btree",
        "innodb.metric_btree_searches_per_s",
        "1/s",
        "searches that went down a B-tree",
    ),
];

const DERIVED: &[ReadingLegend] = &[one(
    "innodb.checkpoint_age_percent",
    "%",
    "redo since the last checkpoint, of the age at which everything waits for flushing (where the \
     server does not tell that age: of the redo log's size)",
)];

/// What its readings mean.
pub(super) fn legend() -> &'static [ReadingLegend] {
    static ALL: LazyLock<Vec<ReadingLegend>> =
        LazyLock::new(|| legends(&[TEXT, METRICS], &[DERIVED]));
    &ALL
}

/// The metrics that are turned on: MariaDB tells it otherwise than MySQL.
const ASK_METRICS: [&str; 2] = [
    "SELECT name, count FROM information_schema.INNODB_METRICS WHERE status = 'enabled'",
    "SELECT name, count FROM information_schema.INNODB_METRICS WHERE enabled = 1",
];

/// Reads InnoDB's status text and its metrics.
pub(super) struct InnodbProbe {
    asker: Asker,
    text: Table,
    metrics: Table,
    metrics_due: Every,
    limit: Limit,
}

impl InnodbProbe {
    pub(super) fn new(connector: Connector) -> InnodbProbe {
        InnodbProbe {
            asker: Asker::new(connector),
            text: Table::new(TEXT),
            metrics: Table::new(METRICS),
            metrics_due: Every::new(Nanoseconds::from_secs(10)),
            limit: Limit::new(),
        }
    }
}

impl Probe for InnodbProbe {
    fn legend(&self) -> &'static [ReadingLegend] {
        legend()
    }

    fn read(&mut self, now: Nanoseconds, readings: &mut Readings) {
        let Some(values) = status(&mut self.asker, now) else { return };
        if let Some(percent) = self.limit.percent(&mut self.asker, now, &values) {
            readings.insert("innodb.checkpoint_age_percent".to_owned(), percent);
        }
        self.text.put(now, values, readings);
        if self.metrics_due.is_due(now) {
            let rows = ASK_METRICS.iter().find_map(|sql| self.asker.rows(now, sql));
            if let Some(rows) = rows {
                self.metrics.put(now, numbers_by_name(&rows), readings);
            }
        }
    }

    fn take_notes(&mut self) -> Vec<String> {
        self.asker.take_notes()
    }
}

/// The values of the status text.
pub(super) fn status(asker: &mut Asker, now: Nanoseconds) -> Option<Values> {
    let rows = asker.rows(now, "SHOW ENGINE INNODB STATUS")?;
    // Type, name, text.
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

    /// The checkpoint age in percent of its limit.
    fn percent(&mut self, asker: &mut Asker, now: Nanoseconds, values: &Values) -> Option<f64> {
        if self.due.is_due(now) {
            self.bytes = checkpoint_age_limit(&mut |sql| asker.rows(now, sql));
        }
        let told = values.get("checkpoint_age_max").or(values.get("log_capacity"));
        let limit = told.copied().or(self.bytes)?;
        (limit > 0.0).then(|| 100.0 * values.get("checkpoint_age").copied().unwrap_or(0.0) / limit)
    }
}

/// The limit of the checkpoint age: as MariaDB tells it, else the size of the redo log.
pub(in crate::mysql) fn checkpoint_age_limit(
    ask: &mut dyn FnMut(&str) -> Option<dyno_workload::TextRows>,
) -> Option<f64> {
    let told = ask("SHOW GLOBAL STATUS LIKE 'Innodb_checkpoint_max_age'")?;
    if let Some(limit) = numbers_by_name(&told).get("innodb_checkpoint_max_age") {
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
