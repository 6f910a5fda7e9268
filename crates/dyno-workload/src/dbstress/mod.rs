//! db_STRESS, Dimitri Kravtchuk's stress test: objects, each with a history of twenty states.
//!
//! A *read* selects an object with section and zone (SEL1) and its twenty rows of history (SEL2). A
//! *write*, of the object just read, deletes a row of history and inserts it again, and updates
//! another. A client writes after every `rw_ratio` reads; 0 is read only. Statements commit by
//! themselves, unless `trx` adds BEGIN and COMMIT.
//!
//! Reads and writes are two kinds of transactions. The sysbench port's event is a read with the
//! write that may follow: its events per second are reads per second.
//!
//! Option `ref` decides which objects a client draws. With objects of its own (*anti-deadlock*) it
//! never waits for another's rows; with `random` (*true random*) it may, and without a unique key
//! on history (`hpk`) two clients may insert a row twice: the audit reports this drift of HISTORY.
//! The three ways to own objects reach different shares of the data: all but the ends of each
//! slice, one 2000th for each client, half. Departures from the original are in `schema` and `own`.

mod audit;
mod counts;
mod own;
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

use audit::Audit;
use counts::Counts;
use own::Own;
use settings::Settings;
use transactions::Client;

const NAME: &str = "dbstress";

pub fn spec() -> WorkloadSpec {
    let summary = "db_STRESS: objects with a history of states, read and rewritten by many users";
    WorkloadSpec::new(NAME, summary, settings::OPTIONS.to_vec(), plan)
}

/// Rows follow from numbers, not the seed. Refuses more clients than there are objects for.
fn plan(input: &PlanInput<'_>) -> Result<Arc<dyn Workload>, PlanError> {
    let settings = Settings::read(input.options)?;
    let clients = input.request.clients as u64;
    settings.sharing.check(settings.objects, clients).map_err(PlanError::Load)?;
    Ok(Arc::new(DbStress { outline: input.outline(settings.kinds()), settings }))
}

struct DbStress {
    outline: Outline,
    settings: Settings,
}

impl Workload for DbStress {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    fn check(&self, dialect: Dialect) -> Result<(), String> {
        crate::workload::refuse_without_transactions(self.name(), dialect)?;
        if self.settings.for_update && dialect == Dialect::Sqlite {
            return Err(
                "option `for_update`: SQLite has no SELECT … FOR UPDATE; leave the option out, or \
                        vary it in a study of other products"
                    .to_owned(),
            );
        }
        Ok(())
    }

    fn check_load(&self, is_open: bool) -> Result<(), String> {
        if is_open && self.settings.think_ns > 0.0 {
            return Err("option `think_time_ms` cannot be combined with a rate: the rate decides \
                        when transactions begin; leave out one of the two"
                .to_owned());
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
        transactions::statements(&self.settings, dialect)
    }

    fn audit_queries(&self, _dialect: Dialect) -> Vec<String> {
        audit::queries(&self.settings)
    }

    fn clients(self: Arc<Self>) -> Arc<dyn Clients> {
        Arc::new(DbStressClients { workload: self, counts: Counts::default() })
    }
}

struct DbStressClients {
    workload: Arc<DbStress>,
    counts: Counts,
}

impl Clients for DbStressClients {
    fn client(&self, context: ClientContext) -> ClientFuture {
        let settings = &self.workload.settings;
        let place = (context.client_idx as u64, context.n_clients as u64);
        let own = Own::of(settings.sharing, settings.objects, place);
        let counts = self.counts.client(place, own);
        Box::pin(drive(Client::new(settings, place, own, counts), context))
    }

    fn audit(&self, totals: &AuditTotals, answers: &[TextRows]) -> Vec<AuditRow> {
        let settings = &self.workload.settings;
        Audit { settings, counts: &self.counts, totals, answers }.judge()
    }
}
