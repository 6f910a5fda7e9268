//! PostgreSQL's counters: statistics views of the catalog and the server.

use std::sync::Arc;

use dyno_units::{Clock, Nanoseconds};
use dyno_workload::{Connection, Reply};

use super::sql::{VISIBLE, literal, tables_of_others};
use crate::dialects::{OfOthers, ask_named, within};
use crate::explain_cost::{execute, words};
use crate::probe::{cell, named_numbers, number};
use crate::sql::first_cell;
use crate::{Access, CostSource, Counters};

/// Before 15: counters come at most twice a second, and may be half a second old.
const COLLECTOR_PAUSE: Nanoseconds = Nanoseconds::from_millis(600);

/// Views: the prefix of their counters here, their query, and the first version that has them.
const VIEWS: [(&str, &str, u32); 6] = [
    (
        "database.",
        "SELECT * FROM pg_catalog.pg_stat_database WHERE datname = current_database()",
        0,
    ),
    (
        "tables.",
        "SELECT sum(seq_scan) AS seq_scan, sum(seq_tup_read) AS seq_tup_read, \
         sum(idx_scan) AS idx_scan, sum(idx_tup_fetch) AS idx_tup_fetch, \
         sum(n_tup_ins) AS n_tup_ins, sum(n_tup_upd) AS n_tup_upd, sum(n_tup_del) AS n_tup_del, \
         sum(n_tup_hot_upd) AS n_tup_hot_upd FROM pg_catalog.pg_stat_user_tables",
        0,
    ),
    (
        "tables.",
        "SELECT sum(heap_blks_read) AS heap_blks_read, sum(heap_blks_hit) AS heap_blks_hit, \
         sum(idx_blks_read) AS idx_blks_read, sum(idx_blks_hit) AS idx_blks_hit, \
         sum(toast_blks_read) AS toast_blks_read, sum(toast_blks_hit) AS toast_blks_hit, \
         sum(tidx_blks_read) AS tidx_blks_read, sum(tidx_blks_hit) AS tidx_blks_hit \
         FROM pg_catalog.pg_statio_user_tables",
        0,
    ),
    (
        "indexes.",
        "SELECT sum(idx_tup_read) AS idx_tup_read, sum(idx_tup_fetch) AS idx_tup_fetch \
         FROM pg_catalog.pg_stat_user_indexes",
        0,
    ),
    ("bgwriter.", "SELECT * FROM pg_catalog.pg_stat_bgwriter", 0),
    ("wal.", "SELECT * FROM pg_catalog.pg_stat_wal", 140_000),
];

/// From 16: operations by kind of process.
const ASK_IO: &str = "SELECT backend_type, sum(reads) AS reads, sum(writes) AS writes, \
     sum(extends) AS extends, sum(hits) AS hits, sum(evictions) AS evictions, \
     sum(fsyncs) AS fsyncs FROM pg_catalog.pg_stat_io GROUP BY backend_type";

const GAUGES: [&str; 2] = ["database.numbackends", "database.datid"];

/// A superuser's setting; without it the times of reads and writes stay 0.
const TIMING: &str = "SET LOCAL track_io_timing = on";

pub(super) struct PgCost {
    connection: Box<dyn Connection>,
    access: Access,
    has_timing: bool,
    version: u32,
    /// Settings of each transaction.
    pinned: Vec<String>,
    clock: Arc<dyn Clock>,
}

impl PgCost {
    pub(super) fn new(
        mut connection: Box<dyn Connection>,
        access: Access,
        clock: Arc<dyn Clock>,
    ) -> Result<PgCost, String> {
        let rows =
            connection.query("SHOW server_version_num").map_err(|error| error.to_string())?;
        let version = first_cell(rows).and_then(|version| version.parse().ok()).unwrap_or(0);
        let pinned = super::routines::check(connection.as_mut())?;
        let has_timing = within(connection.as_mut(), &[TIMING], "SELECT 1").is_ok();
        Ok(PgCost { connection, access, has_timing, version, pinned, clock })
    }

    /// Its settings end with the transaction, as a pooler gives the session to others.
    fn begin(&mut self) -> Result<(), String> {
        let access = if self.access == Access::ReadOnly { " READ ONLY" } else { "" };
        let timing = if self.has_timing { format!("; {TIMING}") } else { String::new() };
        let pinned = self.pinned.join("; ");
        let begun = self.connection.query(&format!("BEGIN{access}{timing}; {pinned}"));
        begun.map(drop).map_err(|error| error.to_string())
    }

    fn flush(&mut self) -> Result<(), String> {
        if self.version >= 150_000 {
            self.query("SELECT pg_catalog.pg_stat_force_next_flush()")?;
            return Ok(());
        }
        for _ in 0..2 {
            self.clock.sleep_until(self.clock.now() + COLLECTOR_PAUSE);
            self.query("SELECT 1")?;
        }
        Ok(())
    }

    fn query(&mut self, sql: &str) -> Result<dyno_workload::NamedRows, String> {
        ask_named(self.connection.as_mut(), sql).map_err(|error| format!("`{sql}` failed: {error}"))
    }
}

/// What a statement may name: all its words in visible tables, and in those of schemas that it names as well. Names
/// that are not quoted are in small letters.
fn named(sql: &str, visible: &str) -> String {
    let words = words(sql).into_iter().flat_map(|word| [word.to_ascii_lowercase(), word]);
    let words: Vec<String> = words.map(|word| literal(&word)).collect();
    let words = words.join(", ");
    format!("c.relname IN ({words}) AND (c.oid IN ({visible}) OR n.nspname IN ({words}))")
}

/// Reading alone can run code of a table's owner: such a statement is not even planned. Fails with the reason.
pub(super) fn check_read(
    connection: &mut dyn Connection,
    pinned: &[String],
    sql: &str,
) -> Result<(), String> {
    if words(sql).is_empty() {
        return Ok(());
    }
    if sql.to_ascii_lowercase().contains("u&\"") {
        return Err(
            "it contains a name with Unicode escapes (`U&\"…\"`): write the name itself".to_owned()
        );
    }
    let pinned: Vec<&str> = pinned.iter().map(String::as_str).collect();
    let visible = within(connection, &pinned, VISIBLE).map_err(|error| error.to_string())?;
    let visible: Vec<String> = visible.rows.into_iter().flatten().flatten().collect();
    let asked = tables_of_others(&named(sql, &visible.join(", ")));
    let found = ask_named(connection, &asked)
        .map_err(|error| format!("the owners of the tables cannot be read: {error}"))?;
    let found = OfOthers::all(found.rows);
    OfOthers::refusal(&found).map_or(Ok(()), |why| Err(connection.shown(&why)))
}

/// Runs it by the extended protocol, in which a message holds one statement: a second one could end the transaction,
/// and with it that nothing is changed.
fn execute_one(connection: &mut dyn Connection, sql: &str) -> Result<Reply, String> {
    connection.set_blocking(true, 0).map_err(|error| error.to_string())?;
    connection.begin_pipeline();
    connection.send_text(sql);
    connection.send_pipeline();
    loop {
        if let std::task::Poll::Ready(reply) = connection.poll_reply() {
            return reply.map_err(|error| format!("the server refuses the statement: {error}"));
        }
    }
}

impl CostSource for PgCost {
    fn check(&mut self, sql: &str) -> Result<(), String> {
        check_read(self.connection.as_mut(), &self.pinned, sql)
    }

    fn counters(&mut self) -> Result<Counters, String> {
        self.flush()?;
        let mut counters = Counters::new();
        for (prefix, sql, from) in VIEWS {
            if self.version >= from {
                let values = named_numbers(&self.query(sql)?).into_iter();
                counters.extend(values.map(|(name, value)| (format!("{prefix}{name}"), value)));
            }
        }
        if self.version >= 160_000 {
            let answer = self.query(ASK_IO)?;
            for row in &answer.rows {
                let kind = cell(row, 0).unwrap_or_default().replace(' ', "_");
                for (column, name) in answer.columns.iter().enumerate().skip(1) {
                    if let Some(value) = cell(row, column).and_then(number) {
                        counters.insert(format!("io.{kind}.{name}"), value);
                    }
                }
            }
        }
        for gauge in GAUGES {
            counters.remove(gauge);
        }
        Ok(counters)
    }

    /// Inside a transaction like that of a run: planning may call functions.
    fn plan(&mut self, sql: &str) -> Result<Vec<String>, String> {
        self.begin()?;
        let explain = format!("EXPLAIN {sql}");
        // Its rows come with a message that could hold more than one statement.
        let answer = execute_one(self.connection.as_mut(), &explain)
            .and_then(|_| self.connection.query(&explain).map_err(|error| error.to_string()));
        execute(self.connection.as_mut(), "ROLLBACK")?;
        let rows = answer?;
        Ok(rows.into_iter().flatten().flatten().collect())
    }

    /// In a transaction of its own, so that no function in the statement can allow the next run to
    /// write. Rolled back before counters are read, as they are reported only at its end.
    fn run(&mut self, sql: Option<&str>) -> Result<Reply, String> {
        self.begin()?;
        let reply =
            sql.map_or(Ok(Reply::default()), |sql| execute_one(self.connection.as_mut(), sql));
        execute(self.connection.as_mut(), "ROLLBACK")?;
        reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_names_what_its_words_are() {
        let check = |sql: &str, expected: &str| assert_eq!(named(sql, "1, 2"), expected);
        check("A", "c.relname IN ('a', 'A') AND (c.oid IN (1, 2) OR n.nspname IN ('a', 'A'))");
        let found = named("SELECT * FROM s.\"It's A\"", "3");
        assert!(found.contains("'it''s a', 'It''s A'") && found.contains(", 's', 's'"), "{found}");
        // A quote in a name is doubled.
        for (sql, name) in
            [("TABLE \"a\"\"b\"", "a\"b"), ("TABLE \"\"\"a\"", "\"a"), ("TABLE \"a\"\"\"", "a\"")]
        {
            let found = named(sql, "3");
            assert!(found.contains(&format!("'{name}'")), "{found}");
        }
        assert!(named("TABLE a–b", "3").contains("'a–b'"));
    }
}
