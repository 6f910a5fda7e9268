//! SQLite's counters: of prepared statements (`sqlite3_stmt_status`), changes, and I/O of the
//! thread, which are misses of the page cache.

use std::collections::BTreeMap;

use dyno_host::{ThreadIo, thread_io};
use dyno_workload::Reply;
use rusqlite::StatementStatus;

use crate::{Access, CostSource, Counters};

/// What a statement counts: its name in SQLite's documentation, in lower case.
const COUNTED: [(&str, StatementStatus); 7] = [
    ("fullscan_step", StatementStatus::FullscanStep),
    ("sort", StatementStatus::Sort),
    ("autoindex", StatementStatus::AutoIndex),
    ("vm_step", StatementStatus::VmStep),
    ("reprepare", StatementStatus::RePrepare),
    ("filter_miss", StatementStatus::FilterMiss),
    ("filter_hit", StatementStatus::FilterHit),
];

/// A database in this process; rusqlite does not expose the counters of its page cache.
pub(super) struct SqliteCost {
    database: rusqlite::Connection,
    access: Access,
    counters: Counters,
    /// What statements read and wrote, but not what asking for counters did.
    io: ThreadIo,
}

impl SqliteCost {
    pub(super) fn new(
        database: rusqlite::Connection,
        access: Access,
    ) -> Result<SqliteCost, String> {
        if access == Access::ReadOnly {
            database.pragma_update(None, "query_only", true).map_err(|error| error.to_string())?;
        }
        let zero = COUNTED.iter().map(|(name, _)| ((*name).to_owned(), 0.0));
        Ok(SqliteCost { counters: zero.collect(), database, access, io: ThreadIo::default() })
    }

    fn execute(&mut self, sql: &str) -> rusqlite::Result<Reply> {
        let changes_before = self.database.total_changes();
        let io_before = thread_io();
        let mut statement = self.database.prepare(sql)?;
        let n_columns = statement.column_count();
        let mut n_rows = 0;
        {
            let mut rows = statement.raw_query();
            while let Some(row) = rows.next()? {
                for column in 0..n_columns {
                    std::hint::black_box(row.get_ref(column)?);
                }
                n_rows += 1;
            }
        }
        for (name, status) in COUNTED {
            let counted = f64::from(statement.get_status(status));
            *self.counters.entry(name.to_owned()).or_insert(0.0) += counted;
        }
        drop(statement);
        self.add_io(io_before);
        let changed = self.database.total_changes() - changes_before;
        Ok(Reply { rows: n_rows, affected: changed, warnings: 0 })
    }

    fn add_io(&mut self, before: Option<ThreadIo>) {
        if let (Some(before), Some(now)) = (before, thread_io()) {
            self.io = self.io.plus(now.since(before));
        }
    }

    fn batch(&self, sql: &str) -> Result<(), String> {
        self.database.execute_batch(sql).map_err(|error| format!("`{sql}` failed: {error}"))
    }
}

impl CostSource for SqliteCost {
    fn counters(&mut self) -> Result<Counters, String> {
        let mut counters = self.counters.clone();
        let io = [
            ("file_reads", self.io.read_calls),
            ("file_read_bytes", self.io.read_bytes),
            ("file_writes", self.io.write_calls),
            ("file_written_bytes", self.io.written_bytes),
        ];
        counters.extend(io.map(|(name, value)| (name.to_owned(), value as f64)));
        counters.insert("total_changes".to_owned(), self.database.total_changes() as f64);
        for name in ["page_count", "freelist_count"] {
            let value = self.database.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            counters.insert(name.to_owned(), value.map_err(|error| error.to_string())? as f64);
        }
        Ok(counters)
    }

    fn run(&mut self, sql: Option<&str>) -> Result<Reply, String> {
        if self.access == Access::RolledBack {
            self.batch("BEGIN IMMEDIATE")?;
        }
        let Some(sql) = sql else {
            // Asking the kernel counts as reading, too: an idle run asks as often.
            let before = thread_io();
            self.add_io(before);
            return Ok(Reply::default());
        };
        self.execute(sql).map_err(|error| format!("SQLite refuses the statement: {error}"))
    }

    /// Each line below the one that it is part of.
    fn plan(&mut self, sql: &str) -> Result<Vec<String>, String> {
        let asked = || {
            let mut statement = self.database.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
            let row = |row: &rusqlite::Row<'_>| {
                Ok((row.get::<_, i64>("id")?, row.get::<_, i64>("parent")?, row.get("detail")?))
            };
            let rows = statement.query_map([], row)?;
            rows.collect::<rusqlite::Result<Vec<(i64, i64, String)>>>()
        };
        let rows = asked().map_err(|error: rusqlite::Error| error.to_string())?;
        let mut depths: BTreeMap<i64, usize> = BTreeMap::new();
        let line = |(id, parent, detail): (i64, i64, String)| {
            let depth = depths.get(&parent).map_or(0, |depth| depth + 1);
            depths.insert(id, depth);
            format!("{}{detail}", "  ".repeat(depth))
        };
        Ok(rows.into_iter().map(line).collect())
    }

    fn after(&mut self) -> Result<(), String> {
        if self.access == Access::RolledBack { self.batch("ROLLBACK") } else { Ok(()) }
    }
}
