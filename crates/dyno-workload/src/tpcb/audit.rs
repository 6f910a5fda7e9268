//! TPC-B's consistency conditions: money is neither made nor lost, and no commit is forgotten.

use crate::{AuditRow, AuditTotals, TextRows, number_in};

use super::counts::Counts;
use super::transactions::Script;

/// Sums of all tables, and rows of history; one statement, hence of one moment.
const BALANCES: &str = "SELECT (SELECT COALESCE(SUM(abalance), 0) FROM pgbench_accounts), \
     (SELECT COALESCE(SUM(tbalance), 0) FROM pgbench_tellers), \
     (SELECT COALESCE(SUM(bbalance), 0) FROM pgbench_branches), \
     (SELECT COALESCE(SUM(delta), 0) FROM pgbench_history), \
     (SELECT COUNT(*) FROM pgbench_history)";

/// The queries to the server; none if nothing is written.
pub(super) fn queries(script: Script) -> Vec<String> {
    match script {
        Script::TpcbLike | Script::SimpleUpdate => vec![BALANCES.to_owned()],
        Script::SelectOnly => Vec::new(),
    }
}

pub(super) fn judge(
    script: Script,
    counts: &Counts,
    totals: &AuditTotals,
    answers: &[TextRows],
) -> Vec<AuditRow> {
    let mut rows = vec![AuditRow::statements(script.n_statements(), totals), received(totals)];
    rows.extend(counts.audit_rows(script));
    if script == Script::SelectOnly {
        return rows;
    }
    let number = |column| number_in(answers.first()?, 0, column);
    let moved = number(3).unwrap_or_default();
    let of_history = |name| format!("sum of {name} must equal the sum of the deltas in history");
    rows.push(AuditRow::equal(of_history("account balances"), moved, number(0)));
    if script == Script::TpcbLike {
        rows.push(AuditRow::equal(of_history("teller balances"), moved, number(1)));
        rows.push(AuditRow::equal(of_history("branch balances"), moved, number(2)));
    } else {
        rows.push(AuditRow::equal("sum of teller balances", 0, number(1)));
        rows.push(AuditRow::equal("sum of branch balances", 0, number(2)));
    }
    rows.push(AuditRow::inserted("rows in history, 1 per transaction", (0, 1), totals, number(4)));
    rows
}

/// Each transaction has read its account.
fn received(totals: &AuditTotals) -> AuditRow {
    let committed = i128::from(totals.committed());
    let bounds = (committed, committed + i128::from(totals.unfinished()));
    let received = totals.tally.rows_received.into();
    AuditRow::between("rows received, 1 per transaction", bounds, Some(received)).of_clients()
}
