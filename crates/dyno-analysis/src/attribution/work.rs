//! A step's work, by which its resources are divided.

use dyno_record::StepSummary;

use super::uses::statements;

const INSERTS: &str = "insert";
const DELETES: &str = "delete";
/// Kinds that neither query nor change the workload's rows: they find the ends, or make indexes.
const ASIDE: [&str; 4] = ["get_min", "get_min_start", "get_max", "create_indexes"];

/// Of one trial at one step, per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Work {
    pub(super) transactions: f64,
    pub(super) statements: f64,
    /// If kinds tell.
    pub(super) inserted_rows: Option<f64>,
    /// If kinds tell.
    pub(super) queries: Option<f64>,
}

impl Work {
    pub(super) fn of(summary: &StepSummary) -> Work {
        let seconds = summary.measured_s;
        let committed = |is_it: &dyn Fn(&str) -> bool| -> f64 {
            let kinds = summary.kinds.iter().filter(|kind| is_it(&kind.name));
            kinds.filter_map(|k| k.outcomes.get("committed")).sum::<u64>() as f64
        };
        let inserts = committed(&|name| name == INSERTS);
        let changes = committed(&|name| name == INSERTS || name == DELETES);
        let is_known = summary.kinds.iter().any(|kind| kind.name == INSERTS);
        let is_query = |name: &str| name != INSERTS && name != DELETES && !ASIDE.contains(&name);
        let share = if changes > 0.0 { inserts / changes } else { 0.0 };
        Work {
            transactions: committed(&|_| true) / seconds,
            statements: statements(summary) as f64 / seconds,
            inserted_rows: is_known.then(|| summary.rows_changed as f64 * share / seconds),
            queries: is_known.then(|| committed(&is_query) / seconds),
        }
    }

    /// The field's divisor: queries, else inserted rows; without inserts as a kind, transactions.
    pub(super) fn operations(&self) -> f64 {
        match (self.queries, self.inserted_rows) {
            (Some(queries), _) if queries > 0.0 => queries,
            (_, Some(rows)) => rows,
            _ => self.transactions,
        }
    }
}
