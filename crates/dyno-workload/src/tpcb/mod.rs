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
//! Departures from pgbench's tables are at `tables`.

mod transactions;

#[cfg(test)]
mod tests;

use crate::ledger::{Ledger, NotedRows};
use crate::options::{Options, count, word};
use crate::prelude::*;
use crate::skew::{DrawnKeys, DrawnKinds, KeyBins};
use crate::sysbench::distribution::{self, Distribution, DistributionSpec};
use crate::workload::{ONLY_READS, columns_of};

use transactions::{Client, Naming, Script};

const NAME: &str = "tpcb";

pub fn spec() -> WorkloadSpec {
    let summary =
        "pgbench's TPC-B: adds an amount to the balances of an account, a teller and a branch";
    WorkloadSpec::new(NAME, summary, option_specs(), plan)
}

/// The rows follow from the options alone: the seed has no effect here.
fn plan(input: &PlanInput<'_>) -> Planned {
    let settings = Settings::read(input.options)?;
    let reads = settings.script == Script::SelectOnly;
    let outline = Outline {
        counts_commits: !reads,
        why_tables_are_not_audited: reads.then_some(ONLY_READS),
        ..input.outline(settings.script.kinds())
    };
    Ok(Arc::new(TpcB { outline, settings }))
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
        tables(&self.settings, dialect)
    }

    fn fill_row(&self, table_idx: usize, number: u64, row: &mut Row) {
        fill_row(table_idx, number, row);
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

    /// In the column `filler` of the history, which pgbench leaves empty.
    fn noting_commits(self: Arc<Self>) -> Result<Arc<dyn Workload>, &'static str> {
        if self.settings.script == Script::SelectOnly {
            return Err(ONLY_READS);
        }
        let settings = Settings { names_transactions: true, ..self.settings.clone() };
        Ok(Arc::new(TpcB { outline: self.outline.clone(), settings }))
    }

    fn clients(self: Arc<Self>) -> Arc<dyn Clients> {
        let drawn = self.settings.drawn_keys();
        let ledger = self.settings.names_transactions.then(|| {
            let tables = vec![HISTORY.to_owned()];
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
    fn client(self: Arc<Self>, context: ClientContext) -> ClientFuture {
        let naming = self.ledger.as_ref().map(Naming::new);
        let client = Client::new(&self.workload.settings, self.drawn.client(), naming);
        Box::pin(drive(client, context))
    }

    fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_deref()
    }

    fn audit(&self, totals: &AuditTotals, answers: &[TextRows]) -> Vec<AuditRow> {
        let script = self.workload.settings.script;
        let mut rows = vec![AuditRow::statements(script.n_statements(), totals), received(totals)];
        rows.extend(self.drawn.audit_rows().take(if script.has_begin() { 3 } else { 1 }));
        if script == Script::SelectOnly {
            return rows;
        }
        let number = |column| number_in(answers.first()?, 0, column);
        let moved = number(3).unwrap_or_default();
        let of_history =
            |name| format!("sum of {name} must equal the sum of the deltas in history");
        rows.push(AuditRow::equal(of_history("account balances"), moved, number(0)));
        if script == Script::TpcbLike {
            rows.push(AuditRow::equal(of_history("teller balances"), moved, number(1)));
            rows.push(AuditRow::equal(of_history("branch balances"), moved, number(2)));
        } else {
            rows.push(AuditRow::equal("sum of teller balances", 0, number(1)));
            rows.push(AuditRow::equal("sum of branch balances", 0, number(2)));
        }
        let name = "rows in history, 1 per transaction";
        rows.push(AuditRow::inserted(name, (0, 1), totals, number(4)));
        rows
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// As text with the values in it.
    #[default]
    Simple,
    /// Parsed for each execution, with parameters.
    Extended,
    /// Prepared when first executed, with parameters.
    Prepared,
}

impl Protocol {
    /// All of them, in pgbench's order.
    pub const ALL: [Protocol; 3] = [Protocol::Simple, Protocol::Extended, Protocol::Prepared];

    /// The name on the command line and in results.
    pub fn word(self) -> &'static str {
        ["simple", "extended", "prepared"][self as usize]
    }
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

fn received(totals: &AuditTotals) -> AuditRow {
    let committed = i128::from(totals.committed());
    let bounds = (committed, committed + i128::from(totals.unfinished()));
    let received = totals.tally.rows_received.into();
    AuditRow::between("rows received, 1 per transaction", bounds, Some(received)).of_clients()
}

// The four tables in three dialects, and their rows: those of `pgbench -i`, except:
//
// - pgbench adds primary keys after the rows, as this does on PostgreSQL. An InnoDB table is its
// primary key, and a later key would rewrite it; SQLite cannot add one. There the key is made
// with the table.
// - An account's `filler` is not sent, but a default during the fill: pgbench's empty string, which
// CHAR(84) pads to 84 blanks; on SQLite, which pads nothing, 84 blanks, as TPC-B wants rows of
// 100 bytes.
// - On MariaDB and MySQL `mtime` is a DATETIME, as TIMESTAMP is another type there.

/// From this scale on pgbench makes the columns of account numbers wider, as 32 bits are too tight.
const WIDE_SCALE: u64 = 20_000;

const HISTORY: &str = "pgbench_history";

fn tables(settings: &Settings, dialect: Dialect) -> Vec<Table> {
    let scale = settings.scale;
    let aid = if scale >= WIDE_SCALE { "bigint" } else { "int" };
    let keyed = |name: &str, columns: &str, rows| {
        let with = match dialect {
            Dialect::PostgreSql => format!(" WITH (fillfactor={})", settings.fillfactor),
            Dialect::MySql | Dialect::Sqlite | Dialect::ClickHouse => String::new(),
        };
        // All but the last one, `filler`.
        let mut filled = columns_of(columns);
        filled.pop();
        let (key, others) = columns.split_once(", ").expect("the key comes first");
        let key_column = key_column(dialect, key, aid);
        let create = format!("CREATE TABLE {name} ({key_column}, {others}){with}");
        let after = after(dialect, name, Some(key));
        Table { name: name.to_owned(), create, columns: filled, rows, after }
    };
    let filled = filler(dialect);
    let accounts = format!("aid, bid int, abalance int, filler char(84) default '{filled}'");
    let mut accounts = keyed("pgbench_accounts", &accounts, scale * ACCOUNTS);
    // The default is taken away again, if a table can be changed without being rewritten.
    let sql = "ALTER TABLE pgbench_accounts ALTER COLUMN filler DROP DEFAULT";
    accounts.after.splice(..0, (dialect != Dialect::Sqlite).then(|| sql.to_owned()));
    let tellers = "tid, bid int, tbalance int, filler char(84)";
    let mtime = if dialect == Dialect::MySql { "datetime" } else { "timestamp" };
    vec![
        keyed("pgbench_branches", "bid, bbalance int, filler char(88)", scale),
        keyed("pgbench_tellers", tellers, scale * TELLERS),
        accounts,
        Table {
            name: HISTORY.to_owned(),
            create: format!(
                "CREATE TABLE {HISTORY} (tid int, bid int, aid {aid}, delta int, \
                 mtime {mtime}, filler char(22))"
            ),
            columns: names(&["tid", "bid", "aid", "delta"]),
            rows: 0,
            after: after(dialect, HISTORY, None),
        },
    ]
}

fn filler(dialect: Dialect) -> String {
    let width = if dialect == Dialect::Sqlite { 84 } else { 0 };
    " ".repeat(width)
}

fn key_column(dialect: Dialect, key: &str, aid: &str) -> String {
    let kind = if key == "aid" { aid } else { "int" };
    match dialect {
        Dialect::PostgreSql => format!("{key} {kind} not null"),
        Dialect::MySql => format!("{key} {kind} not null primary key"),
        // Of exactly this type a primary key is the row's own number, and no second tree.
        Dialect::Sqlite | Dialect::ClickHouse => format!("{key} integer primary key not null"),
    }
}

/// What pgbench does after filling, in its order: VACUUM ANALYZE, then the primary key.
fn after(dialect: Dialect, table: &str, key: Option<&str>) -> Vec<String> {
    let key = key.filter(|_| dialect == Dialect::PostgreSql);
    let key = key.map(|key| format!("ALTER TABLE {table} ADD PRIMARY KEY ({key})"));
    [dialect.analyze(table)].into_iter().chain(key).collect()
}

/// Writes row `number`, counted from 0, of table `table_idx` of [`tables`].
fn fill_row(table_idx: usize, number: u64, row: &mut Row) {
    row.push_integer(number as i64 + 1);
    match table_idx {
        0 => {}
        1 => row.push_integer((number / TELLERS) as i64 + 1),
        _ => row.push_integer((number / ACCOUNTS) as i64 + 1),
    }
    row.push_integer(0);
}
