//! The settings that shape a server's files.

use std::sync::Arc;

use dyno_host::Keeper;

use super::{programs, settings};
use crate::data::RuntimeSettings;
use crate::error::Result;
use crate::settings::Words;
use crate::{DataShape, ServerSpec};

/// Not those for WAL that is kept to recycle, nor autovacuum's.
const RUNTIME_SETTINGS: RuntimeSettings = RuntimeSettings {
    names: Words(
        "autovacuum_work_mem backend_flush_after checkpoint_completion_target \
         checkpoint_flush_after checkpoint_warning commit_delay commit_siblings \
         constraint_exclusion cpu_index_tuple_cost cpu_operator_cost cpu_tuple_cost \
         deadlock_timeout default_transaction_isolation effective_cache_size \
         effective_io_concurrency from_collapse_limit fsync full_page_writes hash_mem_multiplier \
         join_collapse_limit lock_timeout logical_decoding_work_mem maintenance_io_concurrency \
         maintenance_work_mem max_connections max_files_per_process max_locks_per_transaction \
         max_parallel_maintenance_workers max_parallel_workers max_parallel_workers_per_gather \
         max_stack_depth max_worker_processes min_parallel_index_scan_size \
         min_parallel_table_scan_size parallel_leader_participation parallel_setup_cost \
         parallel_tuple_cost plan_cache_mode random_page_cost seq_page_cost shared_buffers \
         shared_memory_type statement_timeout superuser_reserved_connections synchronous_commit \
         temp_buffers track_activities track_activity_query_size track_functions track_io_timing \
         track_wal_io_timing wal_buffers wal_sync_method work_mem",
    ),
    beginnings: Words(
        "bgwriter_ enable_ geqo huge_page idle_ io_ jit log_ tcp_ vacuum_cost_ wal_writer_",
    ),
};

pub(crate) fn data_shape(spec: &ServerSpec, keeper: &Arc<Keeper>) -> Result<DataShape> {
    let programs = programs::find(spec, keeper)?;
    let server = programs.folder.join("postgres");
    let server = (programs.program(&server), &*programs.version);
    RUNTIME_SETTINGS.shape(spec, server, |name, value| {
        Ok((name.to_ascii_lowercase(), settings::spelled(name, value)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, is_shaping: bool) {
        let shaping = RUNTIME_SETTINGS.shaping([(name.to_owned(), "1".to_owned())]).unwrap();
        assert_eq!(!shaping.is_empty(), is_shaping, "{name}");
    }

    #[test]
    fn what_shapes_the_files_counts() {
        check("max_wal_size", true);
        check("default_toast_compression", true);
        check("autovacuum", true);
        check("wal_level", true);
        check("a_setting_of_the_next_version", true);
        check("shared_buffers", false);
        check("synchronous_commit", false);
        check("enable_seqscan", false);
        check("jit", false);
    }
}
