//! Makes and fills tables in parallel chunks, also within one table.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use dyno_load::AbortFlag;
use dyno_workload::{Connection, Connector, Dialect, Row, StatementError, Table, Workload};

use crate::error::{Result, TrialError, fail};

/// Large enough to hide a statement's cost, small enough for loaders to finish together.
const CHUNK_ROWS: u64 = 50_000;

/// What populating is told while it goes on: rows so far, rows in all.
pub(crate) type Progress<'a> = &'a mut dyn FnMut(u64, u64) -> Result;

/// Done on a loader's connection; which of them, counted from 0.
type Job<'a> = &'a (dyn Fn(&mut dyn Connection, usize) -> Result + Sync);

pub(crate) struct Population<'a> {
    pub(crate) connector: Connector,
    pub(crate) dialect: Dialect,
    pub(crate) workload: &'a dyn Workload,
    /// Threads that fill, at least 1.
    pub(crate) loaders: usize,
    pub(crate) abort: &'a AbortFlag,
}

#[derive(Clone, Copy)]
struct Chunk {
    table_idx: usize,
    first: u64,
    end: u64,
}

impl Population<'_> {
    /// Makes all tables, fills them, then runs what is to be run after. Returns the rows filled.
    pub(crate) fn populate(&self, progress: Progress<'_>) -> Result<u64> {
        let tables = self.workload.tables(self.dialect);
        if tables.is_empty() && self.workload.outline().makes_nothing {
            return Ok(0);
        }
        let mut connection = (self.connector)()?;
        let names: Vec<String> = tables.iter().map(|table| table.name.clone()).collect();
        // First, because nothing is dropped if a routine is somebody else's.
        let after = tables.iter().flat_map(|table| &table.after);
        dyno_database::replace_routines(connection.as_mut(), after)?;
        dyno_database::replace_tables(connection.as_mut(), &names)?;
        for table in &tables {
            connection.query(&table.create).map_err(|error| of_table(table, &error))?;
        }
        drop(connection);
        let rows_total = tables.iter().map(|table| table.rows).sum();
        let chunks = chunks(&tables);
        let filled = AtomicU64::new(0);
        let fill = |connection: &mut dyn Connection, idx: usize| -> Result {
            self.fill(connection, &tables[chunks[idx].table_idx], chunks[idx], &filled)
        };
        let mut tick = || progress(filled.load(Ordering::Relaxed), rows_total);
        self.parallel(chunks.len(), &mut tick, &fill)?;
        let after = |connection: &mut dyn Connection, idx: usize| -> Result {
            for statement in &tables[idx].after {
                let result = connection.query(statement);
                result.map_err(|error| of_table(&tables[idx], &error))?;
            }
            Ok(())
        };
        self.parallel(tables.len(), &mut || progress(rows_total, rows_total), &after)?;
        Ok(filled.into_inner())
    }

    fn fill(
        &self,
        to: &mut dyn Connection,
        table: &Table,
        chunk: Chunk,
        filled: &AtomicU64,
    ) -> Result {
        let mut number = chunk.first;
        let mut next_row = |row: &mut Row| {
            if number == chunk.end || self.abort.is_raised() {
                return false;
            }
            row.clear();
            self.workload.fill_row_in(self.dialect, chunk.table_idx, number, row);
            number += 1;
            true
        };
        let stored = to.load_rows(&table.name, &table.columns, &mut next_row);
        let stored = stored.map_err(|error| of_table(table, &error))?;
        let sent = number - chunk.first;
        if stored != sent {
            return fail(format!(
                "populating {}: {sent} rows were sent, but {stored} were stored",
                table.name
            ));
        }
        filled.fetch_add(stored, Ordering::Relaxed);
        Ok(())
    }

    /// Does `n` jobs on the loaders, each with a connection of its own; ends at the first error.
    fn parallel(&self, n: usize, tick: &mut dyn FnMut() -> Result, job: Job<'_>) -> Result {
        let next = AtomicUsize::new(0);
        let stop = AtomicBool::new(false);
        let failure = Mutex::new(None);
        let (alive, ended) = channel::<()>();
        let loaders = self.loaders.min(n).max(1);
        let mut told = Ok(());
        std::thread::scope(|scope| {
            for _ in 0..loaders {
                let alive: Sender<()> = alive.clone();
                let (next, stop, failure) = (&next, &stop, &failure);
                scope.spawn(move || {
                    let result = self.work(n, next, stop, job);
                    if let Err(error) = result {
                        stop.store(true, Ordering::Relaxed);
                        failure.lock().expect("no loader panics").get_or_insert(error);
                    }
                    drop(alive);
                });
            }
            drop(alive);
            // The channel closes when the last loader has ended.
            while ended.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                told = tick();
                if told.is_err() {
                    stop.store(true, Ordering::Relaxed);
                    break;
                }
            }
        });
        told?;
        failure.into_inner().expect("no loader panics").map_or(Ok(()), Err)
    }

    fn work(&self, n: usize, next: &AtomicUsize, stop: &AtomicBool, job: Job<'_>) -> Result {
        let mut connection = (self.connector)()?;
        loop {
            let idx = next.fetch_add(1, Ordering::Relaxed);
            if idx >= n || stop.load(Ordering::Relaxed) || self.abort.is_raised() {
                return Ok(());
            }
            job(connection.as_mut(), idx)?;
        }
    }
}

fn of_table(table: &Table, error: &StatementError) -> TrialError {
    TrialError::new(format!("populating {}: {error}", table.name))
}

/// Cuts the tables into chunks, round-robin over the tables so that loaders meet different ones.
fn chunks(tables: &[Table]) -> Vec<Chunk> {
    let n_chunks = |table: &Table| table.rows.div_ceil(CHUNK_ROWS);
    let most = tables.iter().map(n_chunks).max().unwrap_or(0);
    let mut chunks = Vec::new();
    for nth in 0..most {
        for (table_idx, table) in tables.iter().enumerate() {
            let first = nth * CHUNK_ROWS;
            if first < table.rows {
                chunks.push(Chunk { table_idx, first, end: table.rows.min(first + CHUNK_ROWS) });
            }
        }
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: u64) -> Table {
        Table { name: "t".into(), create: String::new(), columns: vec![], rows, after: vec![] }
    }

    #[test]
    fn chunks_cover_every_row_once() {
        let tables = [table(0), table(1), table(CHUNK_ROWS), table(3 * CHUNK_ROWS + 7)];
        for (table_idx, table) in tables.iter().enumerate() {
            let mut next = 0;
            for chunk in chunks(&tables).iter().filter(|chunk| chunk.table_idx == table_idx) {
                assert_eq!(chunk.first, next);
                assert!(chunk.end > chunk.first);
                next = chunk.end;
            }
            assert_eq!(next, table.rows);
        }
    }
}
