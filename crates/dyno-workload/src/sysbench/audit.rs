//! Checks after the scripts; sysbench itself has none.

use crate::{AuditRow, AuditTotals, TextRows, number_in};

use super::settings::{Settings, Shape};
use super::statements::{Mix, StatementKind};

/// Shortest text of a row of `bulk_insert`: `(1,1),`.
const BULK_ROW_BYTES_LEAST: u64 = 6;

impl Settings {
    pub(super) fn audit_queries(&self) -> Vec<String> {
        let count = |number| format!("SELECT COUNT(*) FROM sbtest{number}");
        match self.shape {
            Shape::Mix(mix) if mix.count(StatementKind::Delete) == 0 => Vec::new(),
            Shape::RandomKeys { .. } => Vec::new(),
            Shape::Mix(_) | Shape::Insert | Shape::BulkInsert { .. } => {
                (1..=self.n_tables).map(count).collect()
            }
        }
    }

    pub(super) fn why_not_of_tables(&self) -> Option<&'static str> {
        match self.shape {
            Shape::Mix(mix) if mix.count(StatementKind::Delete) > 0 => None,
            Shape::Mix(mix) if mix.has_writes() => Some("the workload only updates rows in place"),
            Shape::Mix(_) | Shape::RandomKeys { .. } => Some("the workload only reads"),
            Shape::Insert | Shape::BulkInsert { .. } => None,
        }
    }

    pub(super) fn audit(&self, totals: &AuditTotals, answers: &[TextRows]) -> Vec<AuditRow> {
        let per_transaction = match self.shape {
            Shape::Mix(mix) => Some(mix.n_statements()),
            Shape::Insert | Shape::RandomKeys { .. } => Some(1),
            // One statement for thousands of transactions.
            Shape::BulkInsert { .. } => None,
        };
        let statements = per_transaction.map(|n| AuditRow::statements(n, totals));
        let received = match self.shape {
            Shape::Mix(mix) => received(&mix, totals),
            _ => None,
        };
        statements.into_iter().chain(received).chain(self.rows(totals, answers)).collect()
    }

    fn rows(&self, totals: &AuditTotals, answers: &[TextRows]) -> Option<AuditRow> {
        let counts: Vec<Option<i128>> =
            answers.iter().map(|answer| number_in(answer, 0, 0)).collect();
        let total = counts.iter().copied().sum::<Option<i128>>();
        let Settings { n_tables, n_rows, .. } = *self;
        let filled = i128::from(n_tables * n_rows);
        let changed = i128::from(totals.tally.rows_changed);
        let unknown = i128::from(totals.unknown());
        let bounds = match self.shape {
            Shape::Mix(mix) if mix.count(StatementKind::Delete) == 0 => return None,
            Shape::Mix(mix) if mix.count(StatementKind::Insert) == 0 => {
                (filled - changed - unknown, filled - changed)
            }
            Shape::Mix(mix) if mix.has_begin => return Some(self.unchanged(&counts)),
            Shape::Mix(_) => {
                // Attempts that ended between DELETE and INSERT lack their row.
                let halves = i128::from(totals.unfinished() + totals.in_flight);
                (filled - halves, filled)
            }
            Shape::Insert => {
                let filled = (n_tables * n_rows, 1);
                return Some(AuditRow::inserted("rows in the tables", filled, totals, total));
            }
            Shape::BulkInsert { bytes_max } => {
                let rows_most = bytes_max as u64 / BULK_ROW_BYTES_LEAST;
                (changed, changed + unknown * i128::from(rows_most))
            }
            Shape::RandomKeys { .. } => return None,
        };
        Some(AuditRow::between("rows in the tables", bounds, total))
    }

    fn unchanged(&self, counts: &[Option<i128>]) -> AuditRow {
        let Settings { n_tables, n_rows, .. } = *self;
        let wrong = counts.iter().position(|count| *count != Some(n_rows.into()));
        let measured = match wrong {
            None if counts.len() as u64 == n_tables => format!("{n_rows} in each"),
            None => format!("{} tables", counts.len()),
            Some(idx) => {
                let count = counts[idx].map_or("no number".to_owned(), |count| count.to_string());
                format!("{count} in sbtest{}", idx + 1)
            }
        };
        let expected = format!("{n_rows} in each");
        let pass = measured == expected;
        let name = match n_tables {
            1 => "rows in the table".to_owned(),
            n => format!("rows in {n} tables"),
        };
        AuditRow::judged(name, expected, measured, pass)
    }
}

/// Rows received by a mix that changes none: every key that is asked for is there.
fn received(mix: &Mix, totals: &AuditTotals) -> Option<AuditRow> {
    if mix.has_writes() {
        return None;
    }
    let (least, most) = mix.rows_returned();
    let committed = i128::from(totals.committed());
    let of_unfinished = i128::from(totals.unfinished()) * i128::from(most);
    let bounds = (committed * i128::from(least), committed * i128::from(most) + of_unfinished);
    let received = totals.tally.rows_received.into();
    Some(AuditRow::between("rows received", bounds, Some(received)).of_clients())
}

#[cfg(test)]
mod tests;
