//! Rows by table that clients of all steps inserted and deleted, for the audit. The load generator
//! counts only kinds of transactions, whatever their tables and sizes. Clients count after complete
//! replies, without waiting.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use crate::{Reply, StatementError};

#[derive(Debug)]
pub(super) struct TrialCounters {
    tables: Vec<TableCounters>,
    drifts: Vec<Drift>,
    pub(super) range: QueryCounters,
    pub(super) point: QueryCounters,
}

impl TrialCounters {
    pub(super) fn new(n_tables: usize, n_steps: usize) -> TrialCounters {
        let drifts = (0..n_tables * n_steps).map(|_| Drift::default()).collect();
        let tables = (0..n_tables).map(|_| TableCounters::default()).collect();
        let (range, point) = (QueryCounters::default(), QueryCounters::default());
        TrialCounters { tables, drifts, range, point }
    }

    pub(super) fn tables(&self) -> &[TableCounters] {
        &self.tables
    }

    pub(super) fn table(&self, table: usize) -> &TableCounters {
        &self.tables[table]
    }

    pub(super) fn drift(&self, step: usize, table: usize) -> &Drift {
        &self.drifts[step * self.tables.len() + table]
    }
}

#[derive(Debug, Default)]
pub(super) struct TableCounters {
    pub(super) inserts: RowCounters,
    pub(super) deletes: RowCounters,
    /// Of the inserts, those of steps that delete as well.
    pub(super) inserts_with_deletes: AtomicU64,
    /// Rows of the largest commit that was deleted.
    pub(super) batch_max: AtomicU64,
    pub(super) tail: AtomicI64,
}

#[derive(Debug, Default)]
pub(super) struct RowCounters {
    pub(super) statements: AtomicU64,
    pub(super) expected: AtomicU64,
    pub(super) changed: AtomicU64,
    pub(super) unknown: AtomicU64,
    pub(super) unknown_statements: AtomicU64,
}

impl RowCounters {
    pub(super) fn begin(&self, rows: u64) -> Pending<'_> {
        Pending { counters: self, rows, is_known: false }
    }
}

/// A statement in flight. If it is dropped with its client, its outcome is unknown.
pub(super) struct Pending<'a> {
    counters: &'a RowCounters,
    rows: u64,
    is_known: bool,
}

impl Pending<'_> {
    pub(super) fn end(mut self, result: &Result<Reply, StatementError>) {
        if let Ok(reply) = result {
            add(&self.counters.statements, 1);
            add(&self.counters.expected, self.rows);
            add(&self.counters.changed, reply.affected);
        }
        self.is_known = !matches!(result, Err(error) if error.class.loses_connection());
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if !self.is_known {
            add(&self.counters.unknown, self.rows);
            add(&self.counters.unknown_statements, 1);
        }
    }
}

/// How far the inserts and the deletes of one table came in one step, in batches.
#[derive(Debug, Default)]
pub(super) struct Drift {
    pub(super) inserts: AtomicU64,
    pub(super) deletes: AtomicU64,
    /// One of the clients has ended, so the other one no longer waits.
    pub(super) is_over: AtomicBool,
}

#[derive(Debug, Default)]
pub(super) struct QueryCounters {
    pub(super) queries: AtomicU64,
    pub(super) rows: AtomicU64,
}

/// Reads a counter; all clients have ended by then, or a rough figure will do.
pub(super) fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

pub(super) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}
