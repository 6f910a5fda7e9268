//! TPC-B as pgbench has it: the same tables, scripts and statements, on every product.
//!
//! Option `script` chooses among pgbench's three built-in scripts. As in pgbench, all values of a
//! transaction are drawn before it begins, and a retry sends the same values again. With the option
//! `distribution` accounts can be drawn otherwise than uniformly (`random_zipfian` and the like in
//! pgbench's own scripts); tellers, branches and the delta are always uniform.
//!
//! Option `protocol` is pgbench's: `prepared` executes statements that were prepared once for each
//! connection; `simple` sends them as text, the values written into it; `extended` sends Parse,
//! Bind, Describe, Execute and Sync of the unnamed statement each time, BEGIN and COMMIT among
//! them. Only PostgreSQL has unnamed statements. On MariaDB and MySQL the like would be to prepare,
//! execute and close each time, which takes two round trips for what is one here, and its figures
//! would stand beside PostgreSQL's as if they were the same; SQLite keeps what it has parsed. On
//! those it is refused.
//!
//! Where the tables depart from pgbench's is told in `schema`.

mod audit;
mod counts;
mod schema;
mod settings;
mod transactions;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use dyno_units::Seed;

use crate::options::{OptionError, OptionSpec, Options};
use crate::{
    AuditRow, AuditTotals, ClientFuture, Dialect, Row, Seat, Statement, Table, TextRows, Workload,
    drive,
};

use counts::Counts;
use settings::{Protocol, Settings};
use transactions::Client;

/// The workload's name.
pub const NAME: &str = "tpcb";

/// One sentence.
pub const SUMMARY: &str = "pgbench's TPC-B: a delta goes to an account, a teller and a branch";

/// Its options.
pub fn option_specs() -> Vec<OptionSpec> {
    settings::option_specs()
}

/// Makes the workload. The rows follow from the options alone: `seed` decides nothing here.
pub fn create(
    name: &'static str,
    options: Options,
    _seed: Seed,
) -> Result<Arc<dyn Workload>, OptionError> {
    let settings = Settings::read(&options)?;
    let counts = Counts::new(&settings);
    Ok(Arc::new(TpcB { name, options: options.pairs(), settings, counts }))
}

struct TpcB {
    name: &'static str,
    options: Vec<(String, String)>,
    settings: Settings,
    counts: Counts,
}

impl Workload for TpcB {
    fn name(&self) -> &'static str {
        self.name
    }

    fn kinds(&self) -> &[&'static str] {
        self.settings.script.kinds()
    }

    fn options(&self) -> Vec<(String, String)> {
        self.options.clone()
    }

    fn check(&self, dialect: Dialect) -> Result<(), String> {
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
                Dialect::Sqlite => "SQLite is not reached by a protocol",
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
        let script = self.settings.script;
        match self.settings.protocol {
            Protocol::Prepared => script.statements(dialect),
            Protocol::Simple => Vec::new(),
            Protocol::Extended => script.unnamed_statements(dialect),
        }
    }

    fn client(&self, seat: Seat) -> ClientFuture {
        Box::pin(drive(Client::new(&self.settings, self.counts.client()), seat))
    }

    fn audit_queries(&self, _dialect: Dialect) -> Vec<String> {
        audit::queries(self.settings.script)
    }

    fn audit(&self, totals: &AuditTotals, answers: &[TextRows]) -> Vec<AuditRow> {
        audit::judge(self.settings.script, &self.counts, totals, answers)
    }
}
