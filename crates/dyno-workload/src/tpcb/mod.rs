//! TPC-B as pgbench has it: the same tables, scripts and statements, on every product.
//!
//! Option `script` chooses among pgbench's three built-in scripts. As in pgbench, all values of a
//! transaction are drawn before it begins, and a retry sends the same values again. With the option
//! `distribution` accounts can be drawn otherwise than uniformly (`random_zipfian` and the like in
//! pgbench's own scripts); tellers, branches and the delta are always uniform.
//!
//! Option `protocol` is pgbench's: `prepared` executes statements that were prepared once for each
//! connection, `simple` sends them as text, the values written into it. pgbench's `extended` (parse
//! and bind for each execution) is not here, because a connection has no such request.
//!
//! Where the tables depart from pgbench's is told in `schema`.

mod audit;
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
    Ok(Arc::new(TpcB { name, options: options.pairs(), settings }))
}

struct TpcB {
    name: &'static str,
    options: Vec<(String, String)>,
    settings: Settings,
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
        if self.settings.fillfactor == 100 || dialect == Dialect::PostgreSql {
            return Ok(());
        }
        Err(format!(
            "option `fillfactor`: only tables of PostgreSQL can be filled to {} %; leave the option \
             out, or vary it in a study of PostgreSQL alone",
            self.settings.fillfactor
        ))
    }

    fn tables(&self, dialect: Dialect) -> Vec<Table> {
        schema::tables(&self.settings, dialect)
    }

    fn fill_row(&self, table_idx: usize, number: u64, row: &mut Row) {
        schema::fill_row(table_idx, number, row);
    }

    fn statements(&self, dialect: Dialect) -> Vec<Statement> {
        match self.settings.protocol {
            Protocol::Prepared => self.settings.script.statements(dialect),
            Protocol::Simple => Vec::new(),
        }
    }

    fn client(&self, seat: Seat) -> ClientFuture {
        Box::pin(drive(Client::new(&self.settings), seat))
    }

    fn audit_queries(&self, _dialect: Dialect) -> Vec<String> {
        audit::queries(self.settings.script)
    }

    fn audit(&self, totals: &AuditTotals, answers: &[TextRows]) -> Vec<AuditRow> {
        audit::judge(self.settings.script, totals, answers)
    }
}
