//! SQLite's debt: WAL frames not yet in the database.

use dyno_workload::{Connector, TextRows};

use crate::debt::part;
use crate::probe::{Asker, cell, number};
use crate::{Debt, DebtMeter};

pub(super) struct WalFrames {
    pub(super) all: f64,
    /// Not yet in the database.
    pub(super) pending: f64,
}

/// Asks for the frames of the WAL without checkpointing any; none if the journal is another one.
pub(super) fn wal_frames(ask: &mut dyn FnMut(&str) -> Option<TextRows>) -> Option<WalFrames> {
    let rows = ask("PRAGMA wal_checkpoint(NOOP)")?;
    // Busy, frames in the WAL, frames of them in the database; -1 without a WAL.
    let row = rows.first()?;
    let all = cell(row, 1).and_then(number).filter(|all| *all >= 0.0)?;
    let done = cell(row, 2).and_then(number).filter(|done| *done >= 0.0)?;
    Some(WalFrames { all, pending: (all - done).max(0.0) })
}

/// Without a WAL there is no debt, and nothing is asked: a writer would lock the probe out.
pub(crate) fn meter(connector: Connector, has_wal: bool) -> Box<dyn DebtMeter> {
    Box::new(SqliteDebt { asker: Asker::new(connector.clone()), connector, has_wal })
}

struct SqliteDebt {
    asker: Asker,
    connector: Connector,
    has_wal: bool,
}

impl DebtMeter for SqliteDebt {
    fn read(&mut self) -> Result<Debt, String> {
        if !self.has_wal {
            return Ok(Debt { parts: Vec::new() });
        }
        // A commit that leaves more frames than this checkpoints them; fewer stay for ever.
        let limit = self.asker.ask("PRAGMA wal_autocheckpoint")?.rows;
        let limit = limit.first().and_then(|row| cell(row, 0)).and_then(number).unwrap_or(1000.0);
        let asker = &mut self.asker;
        let mut failure = None;
        let frames = wal_frames(&mut |sql| match asker.ask(sql) {
            Ok(answer) => Some(answer.rows),
            Err(error) => {
                failure = Some(error);
                None
            }
        });
        if let Some(error) = failure {
            return Err(error);
        }
        let frames = frames.map(|all| part("debt.wal_frames", all.pending, limit.max(1.0)));
        Ok(Debt { parts: frames.into_iter().collect() })
    }

    fn begin_settling(&mut self, tables: &[String]) -> Result<Vec<String>, String> {
        let mut connection = (self.connector)().map_err(|error| error.to_string())?;
        let mut done = Vec::new();
        for sql in tables.iter().map(|table| format!("ANALYZE {table}")) {
            connection.query(&sql).map_err(|error| format!("`{sql}` failed: {error}"))?;
            done.push(sql);
        }
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        let rows = connection.query(sql).map_err(|error| format!("`{sql}` failed: {error}"))?;
        if rows.first().and_then(|row| cell(row, 0)) == Some("1") {
            return Err(format!("`{sql}` failed: a client was reading or writing all the time"));
        }
        done.push(sql.to_owned());
        Ok(done)
    }
}
