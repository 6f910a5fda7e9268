//! Asks the server, after the last step, whether it did what it confirmed.

use dyno_load::{Interval, KindInterval, OUTCOMES};
use dyno_record::{AuditRow, EventKind};
use dyno_workload::{
    AuditTotals, Connector, Dialect, ErrorClass, KindTotals, MadeWorkload, StatementError, TextRows,
};

use super::Phase;
use crate::trial::{Trial, TrialError};

/// Asks the server whether it did what it confirmed, if it has rows.
pub(super) struct Audit;

impl Phase for Audit {
    fn name(&self) -> String {
        "audit".to_owned()
    }

    fn run(&self, trial: &mut Trial<'_, '_>) -> Result<(), TrialError> {
        let tables = trial.deployment.tables().filter(|server| server.stores_data());
        let Some(server) = tables else { return Ok(()) };
        let began = trial.lab.clock.now();
        let (connector, dialect) = (server.connector(), server.dialect());
        let rows = audit(&connector, dialect, &trial.workload, &trial.results.did);
        let kind = EventKind::Audited {
            n_passed: rows.iter().filter(|row| row.pass && !row.is_undecided).count(),
            failed: rows.iter().filter(|row| !row.pass).map(failure).collect(),
            took_s: trial.lab.clock.now().saturating_sub(began).as_secs_f64(),
        };
        trial.results.audit = rows;
        trial.event(kind)
    }
}

/// The outcome of what the workload wanted rolled back.
const ROLLED_BACK: &str = "rolled_back";

/// What the clients did in one interval.
pub(crate) fn totals(interval: &Interval) -> AuditTotals {
    AuditTotals {
        kinds: interval.kinds.iter().map(kind_totals).collect(),
        tally: interval.tally,
        in_flight: 0,
    }
}

fn kind_totals(kind: &KindInterval) -> KindTotals {
    let is_lost = |name: &str| {
        ErrorClass::ALL.iter().any(|class| class.loses_connection() && class.name() == name)
    };
    let count = |is_wanted: &dyn Fn(&str) -> bool| -> u64 {
        let outcomes = OUTCOMES.iter().zip(kind.outcomes.0);
        outcomes.filter(|(name, _)| is_wanted(name)).map(|(_, count)| count).sum()
    };
    let committed = kind.outcomes.committed();
    let rolled_back = count(&|name| name == ROLLED_BACK);
    let lost = count(&is_lost);
    let undone = count(&|_| true) - committed - rolled_back - lost;
    KindTotals { committed, rolled_back, undone, lost }
}

/// Audits the tables. Questions that the server does not answer are a demand that is not met, and
/// no reason to throw away what was measured.
fn audit(
    connector: &Connector,
    dialect: Dialect,
    workload: &MadeWorkload,
    totals: &AuditTotals,
) -> Vec<AuditRow> {
    let rows = match ask(connector, &workload.audit_queries(dialect)) {
        Ok(answers) => workload.audit(totals, &answers),
        Err(message) => {
            vec![dyno_workload::AuditRow::judged("audit queries", "answers", message, false)]
        }
    };
    rows.into_iter().map(recorded).collect()
}

pub(super) fn ask(connector: &Connector, queries: &[String]) -> Result<Vec<TextRows>, String> {
    if queries.is_empty() {
        return Ok(Vec::new());
    }
    let mut connection = connector().map_err(|error| error.to_string())?;
    let told = |error: StatementError| error.to_string();
    queries.iter().map(|sql| connection.query(sql).map_err(told)).collect()
}

fn recorded(row: dyno_workload::AuditRow) -> AuditRow {
    let dyno_workload::AuditRow { name, expected, measured, pass, is_undecided } = row;
    AuditRow { name, expected, measured, pass, is_undecided }
}

/// A demand that is not met, in words.
fn failure(row: &AuditRow) -> String {
    format!("{}: expected {}, found {}", row.name, row.expected, row.measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_parted_by_what_is_known_of_them() {
        let mut outcomes = dyno_load::Outcomes::default();
        for (idx, name) in OUTCOMES.iter().enumerate() {
            outcomes.0[idx] = match *name {
                "committed" => 1000,
                "rolled_back" => 400,
                "disconnected" => 200,
                "timed_out" => 30,
                _ => 1,
            };
        }
        let histogram = dyno_record::new_histogram();
        let response = histogram.clone();
        let kind = KindInterval { outcomes, response, service: histogram, bins: [0; 10] };
        let expected = KindTotals { committed: 1000, rolled_back: 400, undone: 5, lost: 230 };
        assert_eq!(kind_totals(&kind), expected);
    }
}
