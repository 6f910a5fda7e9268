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

mod schema;
mod transactions;

#[cfg(test)]
mod tests;

use dyno_model::{OptionError, OptionSpec};

use crate::prelude::*;

use crate::ledger::{Ledger, NotedRows};
use crate::options::{Options, count, word};
use crate::skew::{DrawnKeys, DrawnKinds, KeyBins};
use crate::sysbench::distribution::{self, Distribution, DistributionSpec};

use transactions::{Client, Naming, Script};

const NAME: &str = "tpcb";

pub fn spec() -> WorkloadSpec {
    let summary =
        "pgbench's TPC-B: adds an amount to the balances of an account, a teller and a branch";
    WorkloadSpec::new(NAME, summary, option_specs(), plan)
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
        queries(self.settings.script)
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
        let drawn = self.settings.drawn_keys();
        let ledger = self.settings.names_transactions.then(|| {
            let tables = vec![schema::HISTORY.to_owned()];
            Ledger::new(NotedRows { tables, column: "filler", filled: 0, per_transaction: 1 })
        });
        Arc::new(TpcBClients { workload: self, drawn, ledger })
    }
}

struct TpcBClients {
    workload: Arc<TpcB>,
    drawn: DrawnKinds<3>,
    ledger: Option<Arc<Ledger>>,
}

impl Clients for TpcBClients {
    fn client(&self, context: ClientContext) -> ClientFuture {
        let naming = self.ledger.as_ref().map(Naming::new);
        let client = Client::new(&self.workload.settings, self.drawn.client(), naming);
        Box::pin(drive(client, context))
    }

    fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_deref()
    }

    fn audit(&self, totals: &AuditTotals, answers: &[TextRows]) -> Vec<AuditRow> {
        judge(self.workload.settings.script, &self.drawn, totals, answers)
    }
}

const ACCOUNTS: u64 = 100_000;

const TELLERS: u64 = 10;

/// Most branches: tellers are numbered in 32 bits.
const SCALE_MAX: u64 = 200_000_000;

const OPTIONS: &[OptionSpec] = &[
    count("scale", "1", 1, SCALE_MAX)
        .help("branches; each has 10 tellers and 100,000 accounts (about 15 MB)"),
    word("script", &["tpcb-like", "simple-update", "select-only"]).help(
        "what a transaction does: 7 statements; 5, without tellers and branches; or 1 SELECT",
    ),
    word("protocol", &["prepared", "simple", "extended"]).help(
        "statements prepared once for each connection; sent as text (pgbench's default); or \
         parsed, bound and executed each time (PostgreSQL only)",
    ),
    count("fillfactor", "100", 10, 100)
        .help("percentage of a page to fill, from 10 to 100 (PostgreSQL only)"),
];

fn option_specs() -> Vec<OptionSpec> {
    [OPTIONS, distribution::OPTIONS].concat()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Prepared,
    Simple,
    /// Parsed again for each execution, then executed with values.
    Extended,
}

#[derive(Clone, Debug)]
struct Settings {
    scale: u64,
    script: Script,
    protocol: Protocol,
    fillfactor: u64,
    accounts: Distribution,
    /// Whether rows of history say in `filler` which transaction made them.
    names_transactions: bool,
}

impl Settings {
    fn read(options: &Options) -> Result<Settings, OptionError> {
        let scale = options.in_range("scale")?;
        Ok(Settings {
            scale,
            script: options.meaning("script", Script::ALL),
            protocol: options
                .meaning("protocol", [Protocol::Prepared, Protocol::Simple, Protocol::Extended]),
            fillfactor: options.in_range("fillfactor")?,
            accounts: DistributionSpec::from_options(options)?.over(scale * ACCOUNTS),
            names_transactions: false,
        })
    }

    /// Of the accounts drawn, and of tellers and branches, which are all equally likely.
    fn drawn_keys(&self) -> DrawnKinds<3> {
        let even = |n_keys| DrawnKeys::new(KeyBins::even(n_keys));
        DrawnKinds([
            ("skew of accounts", self.accounts.counted()),
            ("skew of tellers", even(self.scale * TELLERS)),
            ("skew of branches", even(self.scale)),
        ])
    }
}

/// Sums of all tables, and rows of history; one statement, hence of one moment.
const BALANCES: &str = "SELECT (SELECT COALESCE(SUM(abalance), 0) FROM pgbench_accounts), \
     (SELECT COALESCE(SUM(tbalance), 0) FROM pgbench_tellers), \
     (SELECT COALESCE(SUM(bbalance), 0) FROM pgbench_branches), \
     (SELECT COALESCE(SUM(delta), 0) FROM pgbench_history), \
     (SELECT COUNT(*) FROM pgbench_history)";

fn queries(script: Script) -> Vec<String> {
    match script {
        Script::TpcbLike | Script::SimpleUpdate => vec![BALANCES.to_owned()],
        Script::SelectOnly => Vec::new(),
    }
}

fn judge(
    script: Script,
    drawn: &DrawnKinds<3>,
    totals: &AuditTotals,
    answers: &[TextRows],
) -> Vec<AuditRow> {
    let mut rows = vec![AuditRow::statements(script.n_statements(), totals), received(totals)];
    rows.extend(drawn.audit_rows().take(if script.has_begin() { 3 } else { 1 }));
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

fn received(totals: &AuditTotals) -> AuditRow {
    let committed = i128::from(totals.committed());
    let bounds = (committed, committed + i128::from(totals.unfinished()));
    let received = totals.tally.rows_received.into();
    AuditRow::between("rows received, 1 per transaction", bounds, Some(received)).of_clients()
}
