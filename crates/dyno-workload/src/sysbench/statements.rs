//! Statements of the OLTP scripts, and their places among the prepared ones. As in sysbench, each
//! connection prepares each kind for each table (limits such as MariaDB's and MySQL's
//! `max_prepared_stmt_count` must allow clients × tables × kinds), without kinds that a mix never
//! sends. BEGIN and COMMIT go as text. A statement is counted by purpose; sysbench counts an UPDATE
//! or DELETE that meets no row as "other".

use crate::{Dialect, Statement, StatementClass};

/// What a statement does; the order is the order inside a transaction, reads first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(super) enum StatementKind {
    PointSelect,
    SimpleRange,
    SumRange,
    OrderRange,
    DistinctRange,
    IndexUpdate,
    NonIndexUpdate,
    Delete,
    Insert,
}

pub(super) const N_STATEMENT_KINDS: usize = 9;

impl StatementKind {
    const ALL: [StatementKind; N_STATEMENT_KINDS] = {
        use StatementKind::*;
        let [a, b, c, d] = StatementKind::RANGES;
        [PointSelect, a, b, c, d, IndexUpdate, NonIndexUpdate, Delete, Insert]
    };

    pub(super) const RANGES: [StatementKind; 4] = {
        use StatementKind::*;
        [SimpleRange, SumRange, OrderRange, DistinctRange]
    };

    fn class(self) -> StatementClass {
        let is_read = self == StatementKind::PointSelect || StatementKind::RANGES.contains(&self);
        if is_read { StatementClass::Read } else { StatementClass::Write }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mix {
    pub(super) has_begin: bool,
    pub(super) counts: [u64; N_STATEMENT_KINDS],
    /// Keys of one point select: above 1, `IN` takes the place of `=`.
    pub(super) n_keys: u64,
    pub(super) range_size: u64,
    /// Range scans return only one of their rows.
    ///
    /// The filter `id % range_size = 0` passes one of any `range_size` consecutive ids, and no
    /// planner can shorten the scan, so all rows are read. (With option `secondary`, MariaDB and
    /// MySQL filter entries of the plain index and read one row.)
    pub(super) has_row_filter: bool,
}

impl Mix {
    pub(super) fn count(&self, kind: StatementKind) -> u64 {
        self.counts[kind as usize]
    }

    pub(super) fn set(&mut self, kind: StatementKind, count: u64) {
        self.counts[kind as usize] = count;
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.has_begin && self.counts.iter().all(|count| *count == 0)
    }

    pub(super) fn n_statements(&self) -> u64 {
        self.counts.iter().sum::<u64>() + if self.has_begin { 2 } else { 0 }
    }

    pub(super) fn has_writes(&self) -> bool {
        self.kinds().any(|kind| kind.class() == StatementClass::Write)
    }

    /// Fewest and most rows that a transaction receives, as long as no other one takes rows away.
    pub(super) fn rows_returned(&self) -> (u64, u64) {
        let points = self.count(StatementKind::PointSelect);
        let sums = self.count(StatementKind::SumRange);
        let scans =
            [StatementKind::SimpleRange, StatementKind::OrderRange, StatementKind::DistinctRange];
        let scans: u64 = scans.into_iter().map(|kind| self.count(kind)).sum();
        // A scan that begins at the last row has that one alone, and the filter may not pass it.
        let (scan_least, scan_most) =
            if self.has_row_filter { (0, 1) } else { (1, self.range_size) };
        (points + sums + scans * scan_least, points * self.n_keys + sums + scans * scan_most)
    }

    fn kinds(&self) -> impl Iterator<Item = StatementKind> {
        StatementKind::ALL.into_iter().filter(|kind| self.count(*kind) > 0)
    }

    pub(super) fn statements(&self, dialect: Dialect, n_tables: u64) -> Vec<Statement> {
        self.kinds()
            .flat_map(|kind| (1..=n_tables).map(move |number| (kind, number)))
            .map(|(kind, number)| {
                Statement::new(dialect.placeholders(&self.sql(kind, number)), kind.class())
            })
            .collect()
    }

    fn sql(&self, kind: StatementKind, number: u64) -> String {
        let table = format!("sbtest{number}");
        let filter = match self.has_row_filter {
            true => format!(" AND id % {} = 0", self.range_size),
            false => String::new(),
        };
        let between = format!("FROM {table} WHERE id BETWEEN ? AND ?{filter}");
        match kind {
            StatementKind::PointSelect if self.n_keys == 1 => {
                format!("SELECT c FROM {table} WHERE id=?")
            }
            StatementKind::PointSelect => {
                format!("SELECT c FROM {table} WHERE id IN ({})", question_marks(self.n_keys))
            }
            StatementKind::SimpleRange => format!("SELECT c {between}"),
            StatementKind::SumRange => format!("SELECT SUM(k) {between}"),
            StatementKind::OrderRange => format!("SELECT c {between} ORDER BY c"),
            StatementKind::DistinctRange => format!("SELECT DISTINCT c {between} ORDER BY c"),
            StatementKind::IndexUpdate => format!("UPDATE {table} SET k=k+1 WHERE id=?"),
            StatementKind::NonIndexUpdate => format!("UPDATE {table} SET c=? WHERE id=?"),
            StatementKind::Delete => format!("DELETE FROM {table} WHERE id=?"),
            StatementKind::Insert => {
                format!("INSERT INTO {table} (id, k, c, pad) VALUES (?, ?, ?, ?)")
            }
        }
    }

    pub(super) fn places(&self, n_tables: u64) -> StatementPlaces {
        let mut places = StatementPlaces { first: [usize::MAX; N_STATEMENT_KINDS] };
        for (place, kind) in self.kinds().enumerate() {
            places.first[kind as usize] = place * n_tables as usize;
        }
        places
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct StatementPlaces {
    first: [usize; N_STATEMENT_KINDS],
}

impl StatementPlaces {
    #[inline]
    pub(super) fn index(&self, kind: StatementKind, table_idx: u64) -> usize {
        self.first[kind as usize] + table_idx as usize
    }
}

/// One per table. sysbench sends values in the text; here the statement is prepared, as in all
/// other scripts, to leave out parsing. Servers that give ids get none.
pub(super) fn insert_statements(dialect: Dialect, n_tables: u64, has_ids: bool) -> Vec<Statement> {
    let (columns, values) =
        if has_ids { ("id, k, c, pad", "?, ?, ?, ?") } else { ("k, c, pad", "?, ?, ?") };
    (1..=n_tables)
        .map(|number| format!("INSERT INTO sbtest{number} ({columns}) VALUES ({values})"))
        .map(|sql| Statement::new(dialect.placeholders(&sql), StatementClass::Write))
        .collect()
}

pub(super) fn random_keys_statement(dialect: Dialect, n_keys: u64, is_range: bool) -> Statement {
    let sql = match is_range {
        false => {
            let marks = question_marks(n_keys);
            format!("SELECT id, k, c, pad FROM sbtest1 WHERE k IN ({marks})")
        }
        true => {
            let ranges = vec!["k BETWEEN ? AND ?"; n_keys as usize].join(" OR ");
            format!("SELECT count(k) FROM sbtest1 WHERE {ranges}")
        }
    };
    Statement::new(dialect.placeholders(&sql), StatementClass::Read)
}

fn question_marks(count: u64) -> String {
    vec!["?"; count as usize].join(", ")
}
