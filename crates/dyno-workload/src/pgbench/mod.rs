//! Scripts of pgbench as workloads; the tables are not Dyno's.

mod client;
mod commands;
mod statistics;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use dyno_model::{OptionKind, Pacing, Role, StepRequest, Words, WorkloadStep};
use dyno_pgbench::{Action, Keeps, Names, Script, Sql, cursor, find_built_in};

use crate::ErrorDetails;
use crate::options::{any_count, word};
use crate::prelude::*;

pub use crate::tpcb::Protocol;
pub use statistics::{CommandTotals, Failure, Moments, ScriptTotals, Statistics};

/// The name in the catalogue, where scripts are run by `dyno pgbench`.
pub const NAME: &str = "pgbench";

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

/// Why tables that a script works on are not audited, in words that follow "because".
pub(crate) const NOT_AUDITED: &str = "Dyno does not know what the script should leave in them";

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
            needs_rows: sql_commands(&settings.scripts).any(|sql| sql.keeps != Keeps::Nothing),
            makes_nothing: settings.tables.is_none(),
            tables_of: settings.tables.clone(),
            why_tables_are_not_audited: Some(NOT_AUDITED),
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
        if !dialect.has_transactions() && !self.outline().makes_nothing {
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
        if self.outline().needs_rows { Err(why) } else { Ok(()) }
    }

    fn check_load(&self, is_open: bool) -> Result<(), String> {
        let why = "a number of transactions and a rate are given together".to_owned();
        if is_open && self.settings.transactions.is_some() { Err(why) } else { Ok(()) }
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

    fn clients(self: Arc<Self>) -> Arc<dyn Clients> {
        Arc::new(client::Shared::of(Arc::clone(&self.settings), Arc::clone(&self.host)))
    }
}

impl Clients for client::Shared {
    fn client(self: Arc<Self>, context: ClientContext) -> ClientFuture {
        Box::pin(client::Client::new(self, &context).run(context))
    }

    fn connected(&self, took: Nanoseconds) {
        self.settings.statistics.connected(took);
    }
}

// pgbench scripts as workloads of a study.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptText {
    pub text: String,
    /// The digest that the record keeps of it.
    pub digest: String,
}

/// The workload `pgbench` of studies that name these script files, by the names that they use.
pub fn spec(files: BTreeMap<String, ScriptText>) -> WorkloadSpec {
    let built_in = dyno_pgbench::BUILT_IN.iter().map(|script| script.name);
    let options = vec![
        script_option("tpcb-like", built_in.chain(files.keys().map(String::as_str))),
        word("protocol", &["simple", "extended", "prepared"])
            .help("how statements are sent; the last two on PostgreSQL only"),
        word("tables", &["pgbench", "none"]).help(
            "whether pgbench's tables are created, or none, for a server that has what the script \
             needs",
        ),
        any_count("scale", "1").help("branches of the tables; the value of :scale"),
        any_count("max_tries", "1")
            .help("how often a transaction is tried after deadlocks and serialization failures"),
    ];
    let summary = "a script of pgbench";
    WorkloadSpec::new(NAME, summary, options, move |input| plan(input, &files))
}

/// The option that names a script, of a workload that has these.
pub(crate) fn script_option<'s>(
    default: &'static str,
    scripts: impl Iterator<Item = &'s str>,
) -> OptionSpec {
    let kind = OptionKind::Word(Words::Owned(scripts.map(str::to_owned).collect()));
    let help = name("the file of the script, or a built-in one");
    OptionSpec { name: name("script"), kind, default: name(default), help, range: None }
}

/// What is wrong with the script.
pub(crate) fn wrong(reason: String) -> PlanError {
    PlanError::Option(OptionError { name: "script".to_owned(), reason })
}

/// The kind of a script's transactions: its name, without folders.
pub(crate) fn kind_of(script: &str) -> Name {
    let stem = std::path::Path::new(script).file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned().into()
}

fn plan(input: &PlanInput<'_>, files: &BTreeMap<String, ScriptText>) -> Planned {
    let options = input.options;
    let file = options.text("script");
    let mut names = Names::new();
    let mut recorded = options.pairs();
    let (title, text) = match files.get(file) {
        Some(script) => {
            recorded.push(("script_sha256".to_owned(), script.digest.clone()));
            (file.to_owned(), script.text.as_str())
        }
        None => {
            let script = find_built_in(file).map_err(wrong)?;
            (script.title.to_owned(), script.text)
        }
    };
    let script = Script::read(&title, text, &mut names).map_err(|error| {
        let lines = error.lines.iter().map(|line| format!("\n{line}"));
        wrong(error.message + &lines.collect::<String>())
    })?;
    if script.has_shell() {
        let why = "it has shell commands, which a study does not run; `dyno pgbench` does";
        return Err(wrong(why.to_owned()));
    }
    let scale = options.count("scale");
    let tables = match options.text("tables") {
        "none" => None,
        _ => {
            let given = BTreeMap::from([("scale".to_owned(), scale.to_string())]);
            Some(crate::tpcb::spec().plan(&given, input.request, input.seed)?)
        }
    };
    let protocol = Protocol::ALL.into_iter().find(|one| one.word() == options.text("protocol"));
    let kind = kind_of(file);
    let settings = Settings {
        name: input.name.clone(),
        scripts: vec![WeightedScript { script, kind, weight: 1 }],
        names,
        protocol: protocol.unwrap_or_default(),
        scale: i64::try_from(scale).unwrap_or(i64::MAX),
        tables,
        max_tries: u32::try_from(options.count("max_tries")).unwrap_or(u32::MAX).max(1),
        // In a study, a failed transaction is counted and the next one begins.
        continues_on_error: true,
        options: recorded,
        ..Settings::default()
    };
    Ok(Arc::new(PgBench::new(settings, Arc::new(SilentHost), input.request)))
}

// Server errors in the words of PostgreSQL's programs.

/// With line, detail, hint and context, as far as given. `sql` is the statement, if known.
pub fn server_message(error: &StatementError, sql: Option<&str>) -> String {
    let plain = || format!("ERROR:  {}", error.message);
    error.details.as_ref().map_or_else(plain, |details| message_of(details, sql))
}

pub fn message_of(details: &ErrorDetails, sql: Option<&str>) -> String {
    let ErrorDetails { severity, message, detail, hint, context, position } = details;
    let mut text = format!("{severity}:  {message}");
    let mark = position.zip(sql).and_then(|(position, sql)| cursor(sql, position));
    match (mark, position) {
        (Some(mark), _) => text.extend(["\n", &mark]),
        (None, Some(position)) => text.push_str(&format!(" at character {position}")),
        (None, None) => {}
    }
    for (label, more) in [("DETAIL", detail), ("HINT", hint), ("CONTEXT", context)] {
        if let Some(more) = more {
            text.push_str(&format!("\n{label}:  {more}"));
        }
    }
    text
}

#[cfg(test)]
mod messages {
    use super::*;
    use crate::ErrorClass;

    #[test]
    fn all_that_the_server_said_is_shown() {
        let check = |details: ErrorDetails, sql: Option<&str>, expected: &str| {
            let error = StatementError::new(ErrorClass::Refused, "1", "m; detail: d");
            let error = StatementError { details: Some(Box::new(details)), ..error };
            assert_eq!(server_message(&error, sql), expected);
        };
        let details = |position: Option<usize>| ErrorDetails {
            severity: "ERROR".to_owned(),
            message: "m".to_owned(),
            position,
            ..ErrorDetails::default()
        };
        let select = Some("SELECT x");
        check(details(Some(8)), select, "ERROR:  m\nLINE 1: SELECT x\n               ^");
        check(details(Some(8)), None, "ERROR:  m at character 8");
        let with_more = ErrorDetails {
            detail: Some("d".to_owned()),
            hint: Some("h".to_owned()),
            context: Some("c\nc2".to_owned()),
            ..details(None)
        };
        check(with_more, select, "ERROR:  m\nDETAIL:  d\nHINT:  h\nCONTEXT:  c\nc2");
        let plain = StatementError::new(ErrorClass::Refused, "1", "m");
        assert_eq!(server_message(&plain, None), "ERROR:  m");
    }
}
