//! The settings that shape a server's files.

use std::sync::Arc;

use dyno_host::Keeper;

use super::install::{Install, find_install};
use super::option_file::{normal, spelled};
use crate::data::RuntimeSettings;
use crate::error::Result;
use crate::settings::Words;
use crate::{DataShape, ServerSpec};

/// Leave no trace in the files of a server stopped in order. Not the redo log's, whose files keep
/// their size, nor most of RocksDB's, whose files depend on when data were flushed and compacted.
const RUNTIME_SETTINGS: RuntimeSettings = RuntimeSettings {
    names: Words(
        "back_log connect_timeout eq_range_index_dive_limit extra_max_connections general_log \
         host_cache_size innodb_buffer_pool_chunk_size innodb_buffer_pool_dump_at_shutdown \
         innodb_buffer_pool_dump_pct innodb_buffer_pool_instances \
         innodb_buffer_pool_load_at_startup innodb_buffer_pool_size innodb_commit_concurrency \
         innodb_concurrency_tickets innodb_deadlock_detect innodb_deadlock_report \
         innodb_log_buffer_size innodb_log_spin_cpu_abs_lwm innodb_log_spin_cpu_pct_hwm \
         innodb_log_writer_threads innodb_lock_wait_timeout innodb_lru_flush_size \
         innodb_lru_scan_depth innodb_max_dirty_pages_pct innodb_max_dirty_pages_pct_lwm \
         innodb_numa_interleave innodb_old_blocks_pct innodb_old_blocks_time innodb_page_cleaners \
         innodb_print_all_deadlocks innodb_random_read_ahead innodb_read_ahead_threshold \
         innodb_read_io_threads innodb_rollback_on_timeout innodb_sync_spin_loops \
         innodb_use_native_aio innodb_write_io_threads interactive_timeout join_buffer_size \
         key_buffer_size large_pages local_infile lock_wait_timeout log_error_verbosity \
         log_warnings long_query_time max_allowed_packet max_connect_errors max_connections \
         max_heap_table_size max_prepared_stmt_count open_files_limit read_buffer_size \
         read_rnd_buffer_size rocksdb_block_cache_size rocksdb_flush_log_at_trx_commit \
         rocksdb_lock_wait_timeout rocksdb_max_open_files slow_query_log sort_buffer_size \
         sync_binlog table_definition_cache table_open_cache table_open_cache_instances \
         tmp_table_size transaction_isolation tx_isolation wait_timeout",
    ),
    beginnings: Words(
        "aria_pagecache_ binlog_group_commit_ innodb_adaptive_flushing innodb_adaptive_hash_index \
         innodb_flush_ innodb_flushing_ innodb_io_capacity innodb_monitor_ innodb_purge_ \
         innodb_spin_wait_ innodb_status_output innodb_thread_ net_ optimizer_ performance_schema \
         query_cache_ thread_",
    ),
};

pub(crate) fn data_shape(spec: &ServerSpec, keeper: &Arc<Keeper>) -> Result<DataShape> {
    shape_with(&find_install(spec, keeper)?, spec)
}

pub(super) fn shape_with(install: &Install, spec: &ServerSpec) -> Result<DataShape> {
    let server = (install.program(&install.server), &*install.version);
    RUNTIME_SETTINGS.shape(spec, server, |name, value| Ok((normal(name), spelled(name, value)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, is_shaping: bool) {
        let shaping = RUNTIME_SETTINGS.shaping([(normal(name), "1".to_owned())]).unwrap();
        assert_eq!(!shaping.is_empty(), is_shaping, "{name}");
    }

    #[test]
    fn what_shapes_the_files_counts() {
        check("innodb_page_size", true);
        check("innodb-log-file-size", true);
        check("innodb_file_per_table", true);
        check("innodb_default_row_format", true);
        check("innodb_buffer_pool_filename", true);
        check("rocksdb_write_buffer_size", true);
        check("lower_case_table_names", true);
        check("a_setting_of_the_next_version", true);
        check("innodb_buffer_pool_size", false);
        check("INNODB-FLUSH-LOG-AT-TRX-COMMIT", false);
        check("innodb_io_capacity_max", false);
        check("thread_handling", false);
    }

    #[test]
    fn places_outside_are_refused() {
        let undo = ("innodb_undo_directory".to_owned(), "/elsewhere".to_owned());
        let error = RUNTIME_SETTINGS.shaping([undo]).unwrap_err().message;
        assert!(error.contains("innodb_undo_directory"), "{error}");
    }
}
