//! Counters of MariaDB and MySQL: the session's status, RocksDB's perf context, InnoDB's metrics.

use dyno_workload::{Connection, Reply};

use super::{Access, CostSource, Counters, execute};
use crate::probe::numbers_by_name;

/// Tables whose engine takes nothing back.
const NOT_TAKEN_BACK: &str = "SELECT t.TABLE_NAME, t.ENGINE FROM information_schema.TABLES t \
     JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE \
     WHERE t.TABLE_TYPE = 'BASE TABLE' AND COALESCE(e.TRANSACTIONS, 'NO') <> 'YES' \
     AND t.TABLE_SCHEMA NOT IN \
     ('mysql', 'information_schema', 'performance_schema', 'sys')";

/// `ER_WARNING_NOT_COMPLETE_ROLLBACK`: some of what was changed stays changed.
const NOT_ROLLED_BACK: &str = "1196";

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

/// The table, of these with their engines, that a statement may mean: its name occurs in it.
fn named<'a>(tables: &'a [(String, String)], sql: &str) -> Option<&'a (String, String)> {
    let sql = sql.to_lowercase();
    tables.iter().find(|(table, _)| sql.contains(&table.to_lowercase()))
}

impl CostSource for MySqlCost {
    fn check(&mut self, sql: &str) -> Result<(), String> {
        if self.access == Access::ReadOnly {
            return Ok(());
        }
        let rows = self.connection.query(NOT_TAKEN_BACK).map_err(|error| error.to_string())?;
        let tables: Vec<(String, String)> = rows
            .into_iter()
            .filter_map(|row| match <[Option<String>; 2]>::try_from(row) {
                Ok([Some(table), Some(engine)]) => Some((table, engine)),
                _ => None,
            })
            .collect();
        match named(&tables, sql) {
            None => Ok(()),
            Some((table, engine)) => Err(format!(
                "the statement may change `{table}`, and its engine {engine} takes nothing back: each \
                 run would stay"
            )),
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
        if self.access == Access::ReadOnly {
            return Ok(());
        }
        let reply = execute(self.connection.as_mut(), "ROLLBACK")?;
        if reply.warnings == 0 {
            return Ok(());
        }
        // A trigger or a view may lead to a table that the statement does not name.
        let warnings = self.connection.query("SHOW WARNINGS").map_err(|error| error.to_string())?;
        let is_kept = |row: &Vec<Option<String>>| {
            row.get(1).is_some_and(|code| code.as_deref() == Some(NOT_ROLLED_BACK))
        };
        if warnings.iter().any(is_kept) {
            return Err("THE STATEMENT HAS CHANGED A TABLE WHOSE ENGINE TAKES NOTHING BACK (by a \
                 trigger or a view): what it did stays; it was not run again"
                .to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_takes_nothing_back_is_found_by_its_name() {
        let tables =
            [("Old".to_owned(), "MyISAM".to_owned()), ("a b".to_owned(), "Aria".to_owned())];
        let check = |sql: &str, expected: Option<&str>| {
            assert_eq!(named(&tables, sql).map(|(_, engine)| engine.as_str()), expected, "{sql}");
        };
        check("DELETE FROM shop.`old` WHERE id = 1", Some("MyISAM"));
        check("UPDATE `a b` SET v = 1", Some("Aria"));
        check("DELETE FROM new", None);
    }
}
