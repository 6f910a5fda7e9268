//! Asks the server after the last step whether it did what it confirmed.

use dyno_database::ReplicationMode;
use dyno_record::{AuditRow, EventKind, Survived};
use dyno_units::Nanoseconds;
use dyno_workload::AuditRow as Found;
use dyno_workload::{
    AuditTotals, Connector, Dialect, MadeWorkload, StatementError, Stored, TextRows,
};

use crate::{DoneThere, Result, Trial, plan_workload};

pub(super) fn audit(trial: &mut Trial<'_, '_>) -> Result {
    if trial.deployment.independent_servers().nth(1).is_some() {
        return trial.audit_each();
    }
    let tables = trial.deployment.tables().filter(|server| server.stores_data());
    let Some(server) = tables else { return Ok(()) };
    let began = trial.lab.clock.now();
    let (connector, dialect) = (server.connector(), server.dialect());
    let found = examine(&connector, dialect, &trial.workload, &trial.results.did);
    if let Some(name) = trial.deployment.promoted.get().map(|promoted| promoted.name.clone()) {
        return trial.audit_promoted(found, &name, began);
    }
    let why_not = trial.workload.outline().why_tables_are_not_audited;
    let tables = why_not.map(|why| format!("the contents of the tables, because {why}"));
    trial.audited_without(tables, found.into_iter().map(recorded).collect(), began)
}

impl Trial<'_, '_> {
    pub(super) fn audited(&mut self, rows: Vec<AuditRow>, began: Nanoseconds) -> Result {
        self.audited_without(None, rows, began)
    }

    fn audited_without(
        &mut self,
        left_out: Option<String>,
        mut rows: Vec<AuditRow>,
        began: Nanoseconds,
    ) -> Result {
        rows.extend(AuditRow::of_kinds(&self.results.summary.steps));
        let is_passed = |row: &&AuditRow| row.pass && !row.is_undecided;
        let undecided = rows.iter().filter(|row| row.is_undecided).map(|row| {
            format!("{}, because the sample is too small (expected {})", row.name, row.expected)
        });
        let kind = EventKind::Audited {
            n_passed: rows.iter().filter(is_passed).count(),
            passed: rows.iter().filter(is_passed).map(|row| row.name.clone()).collect(),
            failed: rows.iter().filter(|row| !row.pass).map(failure).collect(),
            skipped: undecided.chain(left_out).collect(),
            took_s: self.lab.clock.now().saturating_sub(began).as_secs_f64(),
        };
        self.results.summary.audit.extend(rows);
        self.event(kind)
    }

    /// Audit of a promoted replica. Missing confirmed transactions are a finding if commits do not wait for
    /// replicas, and fail a demand if they do.
    fn audit_promoted(&mut self, found: Vec<Found>, member: &str, began: Nanoseconds) -> Result {
        let replicas = self.deployment.replicas();
        let mode = replicas.first().map(|replica| replica.follow.replication.mode);
        let waits = mode == Some(ReplicationMode::Synchronous);
        let stored = found.iter().find_map(|row| row.stored);
        let survived = stored.map(|Stored { acknowledged, in_doubt, found, lost }| Survived {
            acknowledged,
            in_doubt,
            found,
            lost,
            why_range: self.workload.why_loss_is_a_range().filter(|_| lost.is_none()),
        });
        let rows = found.into_iter().map(|row| {
            let may_lose = row.stored.is_some_and(|stored| {
                !waits && stored.found <= stored.acknowledged + stored.in_doubt
            });
            let loss = match may_lose {
                true => ", which may lack the last transactions, as commits did not wait for it",
                false => "",
            };
            let name = format!("{} on {member}, which was promoted{loss}", row.name);
            recorded(Found { name, pass: row.pass || may_lose, ..row })
        });
        let rows = rows.collect();
        let faults = self.results.summary.steps.iter_mut().flat_map(|step| &mut step.faults);
        for promotion in faults.filter_map(|fault| fault.promotion.as_mut()) {
            promotion.survived.clone_from(&survived);
        }
        self.audited(rows, began)
    }

    fn audit_each(&mut self) -> Result {
        let began = self.lab.clock.now();
        let mut rows = Vec::new();
        for (idx, (name, server)) in self.deployment.independent_servers().enumerate() {
            // The trial's own workload has counted what was done on all of them.
            let plan = plan_workload(&self.lab.catalog, self.order.plan, self.variant)?;
            let workload = MadeWorkload::new(plan);
            let nothing = DoneThere::default();
            let done = self.results.done_there.get(idx).unwrap_or(&nothing);
            workload.clients.add_counts(&done.counts);
            let found = examine(&server.connector(), server.dialect(), &workload, &done.did);
            let found = found.into_iter().map(recorded);
            rows.extend(found.map(|row| AuditRow { name: format!("{name}: {}", row.name), ..row }));
        }
        self.audited(rows, began)
    }
}

/// Questions that the server does not answer fail a demand, but leave the measurements.
fn examine(
    connector: &Connector,
    dialect: Dialect,
    workload: &MadeWorkload,
    totals: &AuditTotals,
) -> Vec<Found> {
    match ask(connector, &workload.audit_queries(dialect)) {
        Ok(answers) => without_empty_checks(workload.audit(totals, &answers), totals),
        Err(message) => {
            vec![Found::judged("audit queries", "answers", message, false)]
        }
    }
}

/// Without transactions, leaves out the checks that had nothing to check.
fn without_empty_checks(mut rows: Vec<Found>, totals: &AuditTotals) -> Vec<Found> {
    let is_nothing = |row: &Found| row.pass && (row.is_undecided || row.is_of_clients);
    if totals.is_empty() {
        rows.retain(|row| !is_nothing(row));
    }
    rows
}

pub(super) fn ask(connector: &Connector, queries: &[String]) -> Result<Vec<TextRows>, String> {
    if queries.is_empty() {
        return Ok(Vec::new());
    }
    let mut connection = connector().map_err(|error| error.to_string())?;
    let told = |error: StatementError| error.to_string();
    queries.iter().map(|sql| connection.query(sql).map_err(told)).collect()
}

fn recorded(row: Found) -> AuditRow {
    let Found { name, expected, measured, pass, is_undecided, .. } = row;
    AuditRow { name, expected, measured, pass, is_undecided }
}

fn failure(row: &AuditRow) -> String {
    format!("{}: expected {}, found {}", row.name, row.expected, row.measured)
}

#[cfg(test)]
mod tests {
    use dyno_workload::KindTotals;

    use super::*;

    #[test]
    fn without_transactions_only_the_tables_are_judged() {
        let row = |name, expected: u64, measured: u64| {
            dyno_workload::AuditRow::judged(name, expected, measured, expected == measured)
        };
        let undecided =
            dyno_workload::AuditRow { is_undecided: true, ..row("shares of rows", 1, 1) };
        let rows = vec![
            row("statements sent", 0, 0).of_clients(),
            row("sums", 0, 0),
            undecided,
            row("lost", 0, 1),
        ];
        let names = |totals: &AuditTotals| -> Vec<String> {
            without_empty_checks(rows.clone(), totals).into_iter().map(|row| row.name).collect()
        };
        assert_eq!(names(&AuditTotals::default()), ["sums", "lost"]);
        let one = KindTotals { committed: 1, ..KindTotals::default() };
        let some = AuditTotals { kinds: vec![one], ..AuditTotals::default() };
        assert_eq!(names(&some).len(), 4);
    }
}
