//! TPC-B as pgbench implements it: same tables, scripts and statements, on every product.
//!
//! Option `script` chooses among pgbench's three built-in scripts. As in pgbench, a transaction's values are drawn
//! before it begins, and a retry sends the same. `distribution` draws accounts otherwise than uniformly (as
//! `random_zipfian` and others in pgbench's scripts); tellers, branches and the delta are always uniform.
//!
//! Option `protocol` is pgbench's: `prepared` executes statements prepared once per connection; `simple` sends texts
//! with values; `extended` sends Parse, Bind, Describe, Execute and Sync of the unnamed statement each time, also
//! for BEGIN and COMMIT. Only PostgreSQL has unnamed statements. To prepare, execute and close each time, as MariaDB
//! and MySQL could, takes two round trips, so figures would not compare; SQLite keeps what it has parsed. For those
//! products the option is refused.
//!
//! In trials that promote a replica, the INSERT into the history also sets `filler`, to tell its rows apart.
//! Departures from pgbench's tables are in `schema`.

mod audit;
mod counts;
mod schema;
mod settings;
mod transactions;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::catalog::{PlanError, PlanInput, WorkloadSpec};
use crate::{
    AuditRow, AuditTotals, ClientContext, ClientFuture, Clients, Dialect, Outline, Row, Statement,
    Table, TextRows, Workload, drive,
};

use crate::ledger::{Ledger, NotedRows};

use counts::Counts;
use settings::{Protocol, Settings};
use transactions::{Client, Naming, Script};

const NAME: &str = "tpcb";

pub fn spec() -> WorkloadSpec {
    let summary =
        "pgbench's TPC-B: adds an amount to the balances of an account, a teller and a branch";
    WorkloadSpec::new(NAME, summary, settings::option_specs(), plan)
}

/// The rows follow from the options alone: the seed has no effect here.
fn plan(input: &PlanInput<'_>) -> Result<Arc<dyn Workload>, PlanError> {
    let settings = Settings::read(input.options)?;
    Ok(Arc::new(TpcB { outline: input.outline(settings.script.kinds()), settings }))
}

struct TpcB {
    outline: Outline,
    settings: Settings,
}

impl Workload for TpcB {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    fn check(&self, dialect: Dialect) -> Result<(), String> {
        crate::workload::refuse_without_transactions(self.name(), dialect)?;
        let Settings { fillfactor, protocol, .. } = self.settings;
        if dialect == Dialect::PostgreSql {
            return Ok(());
        }
        if fillfactor != 100 {
            return Err(format!(
                "option `fillfactor`: only tables of PostgreSQL can be filled to {fillfactor} %; \
                 leave the option out, or vary it in a study of PostgreSQL alone"
            ));
        }
        if protocol == Protocol::Extended {
            let why = match dialect {
                Dialect::Sqlite => "SQLite has no wire protocol",
                _ => {
                    "MariaDB and MySQL have none, and would take two round trips to prepare and \
                      to execute"
                }
            };
            return Err(format!(
                "option `protocol`: `extended` parses an unnamed statement and executes it in one \
                 round trip, as only PostgreSQL does; {why}; use `prepared` or `simple`, or vary \
                 it in a study of PostgreSQL alone"
            ));
        }
        Ok(())
    }

    fn tables(&self, dialect: Dialect) -> Vec<Table> {
        schema::tables(&self.settings, dialect)
    }

    fn fill_row(&self, table_idx: usize, number: u64, row: &mut Row) {
        schema::fill_row(table_idx, number, row);
    }

    fn statements(&self, dialect: Dialect) -> Vec<Statement> {
        let Settings { script, protocol, names_transactions, .. } = self.settings;
        match protocol {
            Protocol::Prepared => script.statements(dialect, names_transactions),
            Protocol::Simple => Vec::new(),
            Protocol::Extended => script.unnamed_statements(dialect, names_transactions),
        }
    }

    fn audit_queries(&self, _dialect: Dialect) -> Vec<String> {
        audit::queries(self.settings.script)
    }

    fn why_tables_are_not_audited(&self) -> Option<&'static str> {
        (self.settings.script == Script::SelectOnly).then_some("the workload only reads")
    }

    fn counts_commits(&self) -> bool {
        self.settings.script != Script::SelectOnly
    }

    /// In the column `filler` of the history, which pgbench leaves empty.
    fn noting_commits(self: Arc<Self>) -> Result<Arc<dyn Workload>, &'static str> {
        if self.settings.script == Script::SelectOnly {
            return Err("the workload only reads");
        }
        let settings = Settings { names_transactions: true, ..self.settings.clone() };
        Ok(Arc::new(TpcB { outline: self.outline.clone(), settings }))
    }

    fn clients(self: Arc<Self>) -> Arc<dyn Clients> {
        let counts = Counts::new(&self.settings);
        let ledger = self.settings.names_transactions.then(|| {
            let tables = vec![schema::HISTORY.to_owned()];
            Ledger::new(NotedRows { tables, column: "filler", filled: 0, per_transaction: 1 })
        });
        Arc::new(TpcBClients { workload: self, counts, ledger })
    }
}

struct TpcBClients {
    workload: Arc<TpcB>,
    counts: Counts,
    ledger: Option<Arc<Ledger>>,
}

impl Clients for TpcBClients {
    fn client(&self, context: ClientContext) -> ClientFuture {
        let naming = self.ledger.as_ref().map(Naming::new);
        let client = Client::new(&self.workload.settings, self.counts.client(), naming);
        Box::pin(drive(client, context))
    }

    fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_deref()
    }

    fn audit(&self, totals: &AuditTotals, answers: &[TextRows]) -> Vec<AuditRow> {
        audit::judge(self.workload.settings.script, &self.counts, totals, answers)
    }
}
