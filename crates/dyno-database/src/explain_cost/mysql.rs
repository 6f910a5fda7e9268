//! Counters of MariaDB and MySQL: the session's status, RocksDB's perf context, InnoDB's metrics.

use dyno_workload::{Connection, Reply};

use super::{Access, CostSource, Counters, execute};
use crate::probe::numbers_by_name;

/// What is no counter, though it moves.
const GAUGES: [&str; 6] = [
    "uptime",
    "uptime_since_flush_status",
    "last_query_cost",
    "memory_used",
    "max_memory_used",
    "threads_running",
];

/// Views with counters of their own: what their names begin with here, and how they are asked.
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
    // Views are read before the status where a run follows, and after it where one has been: what
    // reading them costs the session stays out of its status.
    is_before: bool,
}

impl MySqlCost {
    pub(super) fn new(
        mut connection: Box<dyn Connection>,
        access: Access,
    ) -> Result<MySqlCost, String> {
        // Without the query cache, which would answer instead of the engine; with all that RocksDB
        // counts and times. A server that lacks either has nothing to turn.
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
        for gauge in GAUGES {
            counters.remove(gauge);
        }
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

    fn run(&mut self, sql: Option<&str>) -> Result<Reply, String> {
        if self.access == Access::RolledBack {
            execute(self.connection.as_mut(), "BEGIN")?;
        }
        match sql {
            Some(sql) => execute(self.connection.as_mut(), sql),
            None => Ok(Reply::default()),
        }
    }

    fn after(&mut self) -> Result<(), String> {
        if self.access == Access::RolledBack {
            execute(self.connection.as_mut(), "ROLLBACK")?;
        }
        Ok(())
    }
}
