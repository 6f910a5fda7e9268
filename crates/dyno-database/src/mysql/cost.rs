//! Counters of MariaDB and MySQL: session status, RocksDB's perf context, InnoDB's metrics.

use dyno_workload::{Connection, Reply};

use super::reach;
use crate::explain_cost::{execute, table};
use crate::probe::numbers_by_name;
use crate::settings::Words;
use crate::{Access, CostSource, Counters};

/// `ER_WARNING_NOT_COMPLETE_ROLLBACK`: some of what was changed stays changed.
const NOT_ROLLED_BACK: &str = "1196";

/// Status variables that move but are not counters.
const GAUGES: Words = Words(
    "uptime uptime_since_flush_status last_query_cost memory_used max_memory_used \
     max_used_connections prepared_stmt_count open_files open_streams open_tables \
     open_table_definitions threads_cached threads_connected threads_running \
     innodb_checkpoint_age innodb_checkpoint_max_age innodb_checkpoint_target_age \
     innodb_history_list_length innodb_ibuf_free_list innodb_ibuf_segment_size innodb_ibuf_size \
     innodb_max_trx_id innodb_num_open_files innodb_row_lock_current_waits \
     innodb_row_lock_time_avg innodb_row_lock_time_max key_blocks_unused key_blocks_used",
);

/// Prefixes of the names of further gauges: sizes and current waits.
const GAUGE_GROUPS: Words = Words(
    "innodb_buffer_pool_bytes_ innodb_data_pending_ innodb_mem_ innodb_os_log_pending_ \
     qcache_free_",
);

/// Pages of the buffer pool by what they are; other names of that form count.
const PAGE_GAUGES: Words = Words("data dirty free latched misc old total");

fn is_gauge(name: &str) -> bool {
    GAUGES.has(name)
        || GAUGE_GROUPS.iter().any(|group| name.starts_with(group))
        || name.strip_prefix("innodb_buffer_pool_pages_").is_some_and(|kind| PAGE_GAUGES.has(kind))
}

/// Views with counters of their own: the prefix of their names here, and their queries.
const VIEWS: [(&str, &str); 3] = [
    (
        "rocksdb_perf.",
        "SELECT stat_type, value FROM information_schema.ROCKSDB_PERF_CONTEXT_GLOBAL \
         WHERE stat_type <> 'IO_THREAD_POOL_ID'",
    ),
    (
        "innodb_metrics.",
        "SELECT name, count FROM information_schema.INNODB_METRICS \
         WHERE status = 'enabled' AND type = 'counter'",
    ),
    (
        "innodb_metrics.",
        "SELECT name, count FROM information_schema.INNODB_METRICS \
         WHERE enabled = 1 AND type = 'counter'",
    ),
];

pub(super) struct MySqlCost {
    connection: Box<dyn Connection>,
    access: Access,
    // Those of the views that this server has.
    views: Vec<(&'static str, &'static str)>,
    // Views are read before the status if a run follows, and after it otherwise: the cost of
    // reading them stays out of the session's status.
    is_before: bool,
}

impl MySqlCost {
    pub(super) fn new(
        mut connection: Box<dyn Connection>,
        access: Access,
    ) -> Result<MySqlCost, String> {
        // The query cache would answer instead of the engine; RocksDB must count and time
        // everything. A server that lacks either needs no setting.
        for sql in
            ["SET SESSION query_cache_type = OFF", "SET SESSION rocksdb_perf_context_level = 3"]
        {
            let _ = connection.query(sql);
        }
        if access == Access::ReadOnly {
            connection
                .query("SET SESSION TRANSACTION READ ONLY")
                .map_err(|error| error.to_string())?;
        }
        let has = |(_, sql): &(&str, &str)| connection.query(sql).is_ok();
        let views = VIEWS.into_iter().filter(has).collect();
        Ok(MySqlCost { connection, access, views, is_before: true })
    }

    fn status(&mut self, counters: &mut Counters) -> Result<(), String> {
        let sql = "SHOW SESSION STATUS";
        let rows =
            self.connection.query(sql).map_err(|error| format!("`{sql}` failed: {error}"))?;
        counters.extend(numbers_by_name(&rows));
        counters.retain(|name, _| !is_gauge(name));
        Ok(())
    }

    fn views(&mut self, counters: &mut Counters) -> Result<(), String> {
        for (prefix, sql) in &self.views {
            let rows =
                self.connection.query(sql).map_err(|error| format!("`{sql}` failed: {error}"))?;
            let values = numbers_by_name(&rows).into_iter();
            counters.extend(values.map(|(name, value)| (format!("{prefix}{name}"), value)));
        }
        Ok(())
    }
}

impl CostSource for MySqlCost {
    fn check(&mut self, sql: &str) -> Result<(), String> {
        let writes_a_file =
            |word: &str| ["OUTFILE", "DUMPFILE"].iter().any(|file| word.eq_ignore_ascii_case(file));
        if sql.split(|c: char| !c.is_alphanumeric() && c != '_').any(writes_a_file) {
            return Err(
                "INTO OUTFILE and INTO DUMPFILE write a file, which cannot be rolled back".into()
            );
        }
        reach::check_views(self.connection.as_mut(), &[], sql)?;
        match self.access {
            Access::ReadOnly => Ok(()),
            Access::RolledBack => reach::check(self.connection.as_mut(), sql),
        }
    }

    fn counters(&mut self) -> Result<Counters, String> {
        let mut counters = Counters::new();
        if self.is_before {
            self.views(&mut counters)?;
            self.status(&mut counters)?;
        } else {
            self.status(&mut counters)?;
            self.views(&mut counters)?;
        }
        self.is_before = !self.is_before;
        Ok(counters)
    }

    /// In its own transaction, so that no function called can allow the next run to write.
    fn run(&mut self, sql: Option<&str>) -> Result<Reply, String> {
        let begin = match self.access {
            Access::ReadOnly => "START TRANSACTION READ ONLY",
            Access::RolledBack => "START TRANSACTION",
        };
        execute(self.connection.as_mut(), begin)?;
        sql.map_or(Ok(Reply::default()), |sql| execute(self.connection.as_mut(), sql))
    }

    /// Inside the same transaction as a run: planning may execute subqueries.
    fn plan(&mut self, sql: &str) -> Result<Vec<String>, String> {
        self.run(None)?;
        let answer = self.connection.query_named(&format!("EXPLAIN {sql}"));
        execute(self.connection.as_mut(), "ROLLBACK")?;
        answer.map(|answer| table(&answer)).map_err(|error| error.to_string())
    }

    fn after(&mut self) -> Result<(), String> {
        let reply = execute(self.connection.as_mut(), "ROLLBACK")?;
        if reply.warnings == 0 {
            return Ok(());
        }
        // A trigger, a view or a function may lead to a table that this user cannot see.
        let warnings = self.connection.query("SHOW WARNINGS").map_err(|error| error.to_string())?;
        let is_kept = |row: &Vec<Option<String>>| {
            row.get(1).is_some_and(|code| code.as_deref() == Some(NOT_ROLLED_BACK))
        };
        if warnings.iter().any(is_kept) {
            return Err(
                "THE STATEMENT HAS CHANGED A TABLE WHOSE ENGINE CANNOT ROLL BACK (through a \
                 trigger, a view or a function): the change stays; the statement was not run \
                 again"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_now_and_not_since_a_beginning_is_no_counter() {
        let check = |name: &str, expected: bool| assert_eq!(is_gauge(name), expected, "{name}");
        check("innodb_max_trx_id", true);
        check("innodb_buffer_pool_pages_dirty", true);
        check("innodb_buffer_pool_bytes_data", true);
        check("innodb_data_pending_reads", true);
        check("innodb_buffer_pool_pages_flushed", false);
        check("innodb_ibuf_merges", false);
        check("handler_read_rnd_next", false);
    }
}
