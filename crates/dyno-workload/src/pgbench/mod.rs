//! Scripts of pgbench as workloads; the tables are not Dyno's.

mod client;
mod commands;
mod message;
mod statistics;
mod study;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use dyno_model::{Name, Pacing, Role, StepRequest, WorkloadStep, name};
use dyno_pgbench::{Action, Keeps, Names, Script, Sql};
use dyno_units::Nanoseconds;

use crate::{
    ClientContext, ClientFuture, Clients, Dialect, Outline, Row, Statement, StatementClass, Table,
    Workload,
};

pub use message::{message_of, server_message};
pub use statistics::{CommandTotals, Failure, Moments, ScriptTotals, Statistics};
pub use study::{ScriptText, spec};
#[cfg(feature = "lua")]
pub(crate) use study::{kind_of, script_option, wrong};

/// The name in the catalogue, where scripts are run by `dyno pgbench`.
pub const NAME: &str = "pgbench";

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

#[derive(Clone, Debug, PartialEq)]
pub struct WeightedScript {
    pub script: Script,
    pub kind: Name,
    pub weight: u32,
}

/// How scripts are run.
#[derive(Clone, Default)]
pub struct Settings {
    pub name: Name,
    /// The scripts; at least one, and not all of weight 0.
    pub scripts: Vec<WeightedScript>,
    /// The names of their variables.
    pub names: Names,
    pub protocol: Protocol,
    /// Variables with their values, as texts; of several with the same name, the last.
    pub defines: Vec<(String, String)>,
    /// The value of `:scale`.
    pub scale: i64,
    /// For all random numbers of the scripts, in pgbench's way; without it, the step's seed decides.
    pub seed: Option<u64>,
    /// The workload whose tables are made and filled, if any are.
    pub tables: Option<Arc<dyn Workload>>,
    /// Transactions that each client does; none if the time ends it.
    pub transactions: Option<u64>,
    /// With those: transactions per second of all clients.
    pub rate: Option<f64>,
    /// Whether an offered rate decides when transactions begin.
    pub is_paced: bool,
    /// Longest latency in microseconds; 0 for none.
    pub latency_limit_us: u64,
    /// How often a transaction is tried after serialization failures and deadlocks; 0 for any number.
    pub max_tries: u32,
    /// Whether a client goes on after another error of the server.
    pub continues_on_error: bool,
    /// Whether each transaction has a connection of its own.
    pub connects: bool,
    /// Whether the latencies of transactions are measured by the clients themselves.
    pub measures: bool,
    /// Whether those of commands are.
    pub measures_commands: bool,
    /// Whether errors that are retried or go on are reported.
    pub is_verbose: bool,
    pub is_debugging: bool,
    /// What the record keeps: names and values.
    pub options: Vec<(String, String)>,
    pub statistics: Arc<Statistics>,
}

/// Who runs the scripts: what a workload cannot do itself.
pub trait Host: Send + Sync {
    /// Shows a message, as it is.
    fn say(&self, message: &str);

    /// Returns the first line with its end if `wants_line`. Fails with the reason alone.
    fn shell(&self, command: &str, wants_line: bool) -> Result<String, String>;

    /// A transaction has ended; called for each, in the client's thread.
    fn ended(&self, entry: &LogEntry) {
        let _ = entry;
    }

    /// Whether [`Host::ended`] is to be called.
    fn logs(&self) -> bool {
        false
    }

    fn aborted(&self, client: usize) {
        let _ = client;
    }
}

/// A host that takes no messages and runs no commands: of studies.
#[derive(Clone, Copy, Debug, Default)]
pub struct SilentHost;

impl Host for SilentHost {
    fn say(&self, _: &str) {}

    fn shell(&self, _: &str, _: bool) -> Result<String, String> {
        Err("only `dyno pgbench` runs shell commands".to_owned())
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogEntry {
    pub client: usize,
    /// How many transactions the client has ended, with this one.
    pub number: u64,
    pub script: usize,
    pub outcome: LogOutcome,
    /// How late it began, in microseconds.
    pub lag_us: u64,
    pub retries: u32,
    /// When it ended, by the lab's clock.
    pub at: Nanoseconds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogOutcome {
    /// Well, with this latency in microseconds.
    Done(u64),
    Skipped,
    Failed(Failure),
}

pub struct PgBench {
    settings: Arc<Settings>,
    host: Arc<dyn Host>,
    outline: Outline,
}

/// Longest time of a step that ends when its transactions are done.
pub(crate) const LONGEST: Nanoseconds = Nanoseconds::from_secs(30 * 24 * 3600);

/// A step that ends when so many clients have each done so many transactions; `rate` is of all of them, a second.
pub(crate) fn quota_step(
    step: &'static str,
    (clients, quota): (usize, u64),
    rate: Option<f64>,
    limit: Nanoseconds,
) -> WorkloadStep {
    let pacing = match rate {
        Some(rate) => Pacing::Poisson { rate: rate / clients.max(1) as f64 },
        None => Pacing::Closed,
    };
    let role =
        Role { name: name("client"), clients, pacing, quota: Some(quota), kinds: Vec::new() };
    WorkloadStep { name: name(step), roles: vec![role], limit, settle: Nanoseconds::ZERO }
}

impl PgBench {
    /// Scripts whose messages go to `host`, which runs their shell commands.
    pub fn new(mut settings: Settings, host: Arc<dyn Host>, request: StepRequest) -> PgBench {
        for name in ["scale", "client_id", "default_seed", "random_seed"] {
            settings.names.slot(name);
        }
        for (name, _) in &settings.defines {
            settings.names.slot(name);
        }
        let steps = settings.transactions.map(|quota| {
            quota_step("transactions", (request.clients, quota), settings.rate, LONGEST)
        });
        let outline = Outline {
            name: settings.name.clone(),
            kinds: settings.scripts.iter().map(|script| script.kind.clone()).collect(),
            options: settings.options.clone(),
            steps: steps.into_iter().collect(),
            ..Outline::default()
        };
        PgBench { settings: Arc::new(settings), host, outline }
    }
}

/// The SQL commands of all scripts, in their order: those that are prepared.
pub fn sql_commands(scripts: &[WeightedScript]) -> impl Iterator<Item = &Sql> {
    let commands = scripts.iter().flat_map(|script| &script.script.commands);
    commands
        .filter_map(|command| if let Action::Sql(sql) = &command.action { Some(sql) } else { None })
}

/// The class of a statement, by its first word.
pub(crate) fn class_of(sql: &Sql) -> StatementClass {
    let text = match sql.parts.first() {
        Some(dyno_pgbench::Part::Text(text)) => text.trim_start(),
        _ => "",
    };
    StatementClass::of_text(text)
}

impl Workload for PgBench {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    fn check(&self, dialect: Dialect) -> Result<(), String> {
        if dialect == Dialect::PostgreSql {
            return Ok(());
        }
        if !dialect.has_transactions() && !self.makes_nothing() {
            let why = "pgbench's own tables need transactions and UPDATE, and ClickHouse has neither; write \
                       `tables = \"none\"` and a script of statements that it has";
            return Err(why.to_owned());
        }
        let protocol = self.settings.protocol;
        if protocol != Protocol::Simple {
            let word = protocol.word();
            return Err(format!("option `protocol`: `{word}` is PostgreSQL's; use `simple`"));
        }
        let why = "\\gset and \\aset need PostgreSQL".to_owned();
        if self.needs_rows() { Err(why) } else { Ok(()) }
    }

    fn needs_rows(&self) -> bool {
        sql_commands(&self.settings.scripts).any(|sql| sql.keeps != Keeps::Nothing)
    }

    fn check_load(&self, is_open: bool) -> Result<(), String> {
        let why = "a number of transactions and a rate are given together".to_owned();
        if is_open && self.settings.transactions.is_some() { Err(why) } else { Ok(()) }
    }

    fn tables(&self, dialect: Dialect) -> Vec<Table> {
        self.settings.tables.as_ref().map_or_else(Vec::new, |tables| tables.tables(dialect))
    }

    fn makes_nothing(&self) -> bool {
        self.settings.tables.is_none()
    }

    fn fill_row(&self, table_idx: usize, number: u64, row: &mut Row) {
        if let Some(tables) = &self.settings.tables {
            tables.fill_row(table_idx, number, row);
        }
    }

    fn statements(&self, dialect: Dialect) -> Vec<Statement> {
        let protocol = self.settings.protocol;
        if protocol == Protocol::Simple || dialect != Dialect::PostgreSql {
            return Vec::new();
        }
        let statement = |sql: &Sql| {
            let statement = Statement::new(sql.numbered(), class_of(sql));
            let statement = statement.of_texts(sql.parameters().count());
            let is_unnamed = protocol == Protocol::Extended;
            let statement = if is_unnamed { statement.unnamed() } else { statement };
            if sql.keeps == Keeps::Nothing { statement } else { statement.keeping_last_row() }
        };
        sql_commands(&self.settings.scripts).map(statement).collect()
    }

    fn why_tables_are_not_audited(&self) -> Option<&'static str> {
        Some("Dyno does not know what the script should leave in them")
    }

    fn clients(self: Arc<Self>) -> Arc<dyn Clients> {
        let shared = client::Shared::of(Arc::clone(&self.settings), Arc::clone(&self.host));
        Arc::new(PgBenchClients(shared))
    }
}

struct PgBenchClients(Arc<client::Shared>);

impl Clients for PgBenchClients {
    fn client(&self, context: ClientContext) -> ClientFuture {
        let client = client::Client::new(Arc::clone(&self.0), &context);
        Box::pin(client.run(context))
    }

    fn connected(&self, took: Nanoseconds) {
        self.0.settings.statistics.connected(took);
    }
}
