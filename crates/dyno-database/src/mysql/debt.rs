//! The debt of InnoDB and RocksDB, and how to settle it: as the Insert Benchmark does between its
//! write-heavy and read-write steps, but without RESET MASTER, which would cut off replicas.

use dyno_units::clean_text;
use dyno_workload::{Connection, Connector, ErrorClass, StatementError, TextRows};

use super::probe::innodb::checkpoint_age_limit;
use super::probe::rocksdb::levels_of_rows;
use super::probe::{parse_innodb_status, pending_compaction_bytes};
use crate::probe::{Asker, cell, number, numbers_by_name};
use crate::{Debt, DebtMeter, DebtPart};

/// An idle server keeps some undo logs, purged in batches; a thousand are read in no time.
const HISTORY_PAID: f64 = 1_000.0;
/// The level to which the Insert Benchmark flushes.
const DIRTY_PERCENT_PAID: f64 = 1.0;
/// Far below where flushing becomes urgent (about three quarters of the limit).
const CHECKPOINT_PERCENT_PAID: f64 = 10.0;
/// One file as RocksDB makes them by default, and one memtable: less stays where it is at rest.
const COMPACTION_BYTES_PAID: f64 = 67_108_864.0;
const MEMTABLE_BYTES_PAID: f64 = 67_108_864.0;
/// By default compaction begins with the fourth file.
const L0_FILES_PAID: f64 = 3.0;

/// In percent, while settling: below the caught-up value, because servers count pages differently.
const DIRTY_PERCENT_WANTED: f64 = 0.5;

/// Between queries for the limit of the checkpoint age, which only a setting changes.
const LIMIT_READINGS: u32 = 60;

/// How an answer ends if there is no such view.
const NO_SUCH_VIEW: &str = "(1109)";
/// The server's error for a setting that it does not know.
const UNKNOWN_SETTING: &str = "1193";
/// Its errors for a right that the user lacks.
const NO_RIGHT: [&str; 2] = ["1227", "1142"];

/// In this order, restored in reverse: the server keeps the low-water mark below the other.
const LOWERED: [&str; 2] = ["innodb_max_dirty_pages_pct_lwm", "innodb_max_dirty_pages_pct"];

pub(crate) fn meter(connector: Connector) -> Box<dyn DebtMeter> {
    Box::new(MySqlDebt {
        asker: Asker::new(connector.clone()),
        connector,
        saved: Vec::new(),
        limit: None,
        n_readings: 0,
        has_rocksdb: true,
    })
}

struct MySqlDebt {
    asker: Asker,
    connector: Connector,
    // Settings to restore: name and value, in the order in which they were changed.
    saved: Vec<(&'static str, String)>,
    // Limit of the checkpoint age in bytes, as of some readings ago.
    limit: Option<f64>,
    n_readings: u32,
    has_rocksdb: bool,
}

impl MySqlDebt {
    fn innodb(&mut self) -> Result<Vec<DebtPart>, String> {
        let answer = self.asker.ask("SHOW ENGINE INNODB STATUS")?;
        // The columns are type, name and text.
        let text = answer.rows.iter().find_map(|row| cell(row, 2)).unwrap_or_default();
        let values = parse_innodb_status(text);
        if self.n_readings.is_multiple_of(LIMIT_READINGS) {
            let asker = &mut self.asker;
            self.limit =
                checkpoint_age_limit(&mut |sql| asker.ask(sql).ok().map(|answer| answer.rows));
        }
        let value = |name: &str| values.get(name).copied();
        let own_limit = value("checkpoint_age_max").or_else(|| value("log_capacity"));
        let limit = own_limit.or(self.limit).filter(|limit| *limit > 0.0);
        let age = value("checkpoint_age").zip(limit).map(|(age, limit)| 100.0 * age / limit);
        let parts = [
            ("debt.history_list_length", value("history_list_length"), HISTORY_PAID),
            ("debt.dirty_pages_percent", value("dirty_percent"), DIRTY_PERCENT_PAID),
            ("debt.checkpoint_age_percent", age, CHECKPOINT_PERCENT_PAID),
        ];
        Ok(present(parts))
    }

    /// None if the server has no RocksDB.
    fn rocksdb(&mut self) -> Result<Option<Vec<DebtPart>>, String> {
        let memtables = self.asker.ask(
            "SELECT SUM(value) FROM information_schema.ROCKSDB_CFSTATS \
             WHERE stat_type = 'CUR_SIZE_ALL_MEM_TABLES'",
        );
        let memtables = match memtables {
            Err(error) if error.contains(NO_SUCH_VIEW) => return Ok(None),
            other => other?,
        };
        let compaction = self.asker.ask(
            "SELECT cf_name, level, type, value FROM information_schema.ROCKSDB_COMPACTION_STATS \
             WHERE type IN ('NumFiles', 'SizeBytes', 'Score')",
        )?;
        let families = levels_of_rows(&compaction.rows);
        let l0 = families.iter().flatten().filter(|level| level.name == "L0");
        let memtables = memtables.rows.first().and_then(|row| cell(row, 0)).and_then(number);
        let pending = families.iter().map(|levels| pending_compaction_bytes(levels)).sum();
        Ok(Some(present([
            ("debt.pending_compaction_bytes", Some(pending), COMPACTION_BYTES_PAID),
            ("debt.memtable_bytes", memtables, MEMTABLE_BYTES_PAID),
            ("debt.l0_files", Some(l0.map(|level| level.files).fold(0.0, f64::max)), L0_FILES_PAID),
        ])))
    }

    /// A connection without limits: settling takes its time.
    fn connect(&self) -> Result<Box<dyn Connection>, String> {
        (self.connector)().map_err(|error| error.to_string())
    }

    fn settle_innodb(&mut self, connection: &mut dyn Connection) -> Result<Vec<String>, String> {
        let sql = "SHOW GLOBAL VARIABLES LIKE 'innodb\\_max\\_dirty\\_pages\\_pct%'";
        let settings = numbers_by_name(&query(connection, sql)?);
        let mut done = Vec::new();
        for name in LOWERED {
            let Some(now) = settings.get(name).copied() else { continue };
            // A low-water mark of 0 means none, not an early one.
            if now <= DIRTY_PERCENT_WANTED && !(name.ends_with("lwm") && now == 0.0) {
                continue;
            }
            if !self.saved.iter().any(|(saved, _)| *saved == name) {
                self.saved.push((name, now.to_string()));
            }
            query(connection, &format!("SET GLOBAL {name} = {DIRTY_PERCENT_WANTED}"))?;
            done.push(format!("{name} = {DIRTY_PERCENT_WANTED} (it was {now})"));
        }
        Ok(done)
    }
}

fn present<const N: usize>(parts: [(&'static str, Option<f64>, f64); N]) -> Vec<DebtPart> {
    parts
        .into_iter()
        .filter_map(|(reading, value, caught_up_at)| {
            Some(DebtPart { reading, value: value?, caught_up_at })
        })
        .collect()
}

impl DebtMeter for MySqlDebt {
    fn read(&mut self) -> Result<Debt, String> {
        let mut parts = self.innodb()?;
        if self.has_rocksdb {
            match self.rocksdb()? {
                Some(rocksdb) => parts.extend(rocksdb),
                // An engine that is missing now will not come while load runs.
                None => self.has_rocksdb = false,
            }
        }
        self.n_readings = self.n_readings.wrapping_add(1);
        Ok(Debt { parts })
    }

    fn begin_settling(&mut self, tables: &[String]) -> Result<Vec<String>, String> {
        let mut connection = self.connect()?;
        let connection = connection.as_mut();
        let mut done = Vec::new();
        if !tables.is_empty() {
            let sql = format!("ANALYZE TABLE {}", tables.join(", "));
            check_analyzed(&query(connection, &sql)?)?;
            done.push(sql);
        }
        done.extend(self.settle_innodb(connection)?);
        done.extend(settle_rocksdb(connection)?);
        Ok(done)
    }

    fn end_settling(&mut self) -> Result<(), String> {
        if self.saved.is_empty() {
            return Ok(());
        }
        let mut connection = self.connect().map_err(|error| not_put_back(&self.saved, &error))?;
        let mut failures = Vec::new();
        // The last changed first; a failure does not prevent the others from being restored.
        let mut kept = Vec::new();
        for (name, value) in std::mem::take(&mut self.saved).into_iter().rev() {
            if let Err(error) = query(connection.as_mut(), &format!("SET GLOBAL {name} = {value}"))
            {
                failures.push(error);
                kept.insert(0, (name, value));
            }
        }
        self.saved = kept;
        if failures.is_empty() {
            Ok(())
        } else {
            Err(not_put_back(&self.saved, &failures.join("; ")))
        }
    }
}

impl Drop for MySqlDebt {
    /// A caller that forgets to end settling still leaves the server as it was.
    fn drop(&mut self) {
        // This runs on drop, so an error has no receiver.
        let _ = self.end_settling();
    }
}

fn not_put_back(saved: &[(&str, String)], why: &str) -> String {
    let settings: Vec<String> =
        saved.iter().map(|(name, value)| format!("SET GLOBAL {name} = {value}")).collect();
    format!("settings could not be restored ({why}); restore them: {}", settings.join("; "))
}

/// Flushes memtables and compacts level 0, if there is RocksDB.
fn settle_rocksdb(connection: &mut dyn Connection) -> Result<Vec<String>, String> {
    let flush = "SET GLOBAL rocksdb_force_flush_memtable_now = 1";
    match connection.query(flush) {
        Err(error) if error.code == UNKNOWN_SETTING => return Ok(Vec::new()),
        other => other.map_err(|error| with_statement(flush, &error))?,
    };
    let compact = "SET GLOBAL rocksdb_compact_lzero_now = 1";
    // MariaDB has only the setting that does both.
    let both = "SET GLOBAL rocksdb_force_flush_memtable_and_lzero_now = 1";
    let compact = match connection.query(compact) {
        Err(error) if error.code == UNKNOWN_SETTING => {
            query(connection, both)?;
            both
        }
        other => {
            other.map_err(|error| with_statement(compact, &error))?;
            compact
        }
    };
    Ok(vec![flush.to_owned(), compact.to_owned()])
}

/// ANALYZE TABLE reports errors in its rows: table, what, kind, text.
fn check_analyzed(rows: &TextRows) -> Result<(), String> {
    let is_error = |row: &&Vec<Option<String>>| {
        cell(row, 2).is_some_and(|kind| kind.eq_ignore_ascii_case("error"))
    };
    match rows.iter().find(is_error) {
        None => Ok(()),
        Some(row) => Err(clean_text(&format!(
            "ANALYZE TABLE {} failed: {}",
            cell(row, 0).unwrap_or_default(),
            cell(row, 3).unwrap_or_default()
        ))),
    }
}

fn query(connection: &mut dyn Connection, sql: &str) -> Result<TextRows, String> {
    connection.query(sql).map_err(|error| with_statement(sql, &error))
}

fn with_statement(sql: &str, error: &StatementError) -> String {
    let advice = if NO_RIGHT.contains(&error.code.as_str()) {
        "; grant the user this privilege, or run without waiting for this server to catch up"
    } else if error.class == ErrorClass::Disconnected {
        "; is the server still up?"
    } else {
        ""
    };
    format!("`{sql}` failed: {error}{advice}")
}
