//! Scripts of sysbench as a workload: what they do is theirs.

mod client;
mod emulate;
mod events;
mod links;
mod serve;
mod single;
mod statistics;
mod study;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use dyno_model::{Name, Pacing, Role, StepRequest, WorkloadStep, name};
use dyno_sysbench::{Host, Limits, OptionValue, RandomSettings, Setup, State, Unique};
use dyno_units::Nanoseconds;

use crate::{
    ClientContext, ClientFuture, Clients, Connector, Dialect, Outline, Row, Statement, Table,
    Workload,
};

pub use single::{Ended, Single};
pub use statistics::{ClientCells, Snapshot, Statistics};
pub use study::{ScriptFile, declared, spec};

pub const NAME: &str = "sysbench";

/// Errors of the server after which an event begins again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ignored {
    All,
    Codes(Vec<String>),
}

impl Ignored {
    pub fn contains(&self, code: &str) -> bool {
        match self {
            Ignored::All => true,
            Ignored::Codes(codes) => codes.iter().any(|one| one == code),
        }
    }
}

#[derive(Clone)]
pub struct Settings {
    pub name: Name,
    pub kind: Name,
    /// The path of the script, for messages.
    pub path: String,
    pub text: String,
    /// What `sysbench.opt` has.
    pub options: Vec<(String, OptionValue)>,
    /// Variables of scripts that declare no options.
    pub globals: Vec<(String, OptionValue)>,
    /// The command line, as the script finds it.
    pub argv: Vec<String>,
    pub command: Option<String>,
    pub random: RandomSettings,
    /// Decides about them; if there is none, the step's seed does.
    pub seed: Option<u64>,
    /// Whether statements are prepared by the server; else values are written into their texts.
    pub prepares: bool,
    pub ignored: Ignored,
    /// Events of all clients; none if the time ends them.
    pub events: Option<u64>,
    /// With those: events per second of all clients.
    pub rate: Option<f64>,
    /// With those: the time after which they end all the same.
    pub limit: Option<Nanoseconds>,
    /// Whether an offered rate decides when events begin.
    pub is_paced: bool,
    /// Whether a client goes on with the next event after an error.
    pub continues: bool,
    /// Whether scripts may run programs and write files.
    pub is_trusted: bool,
    /// Whether scripts are compiled. A workload of more than [`MOST_COMPILED`] clients does without.
    pub is_compiled: bool,
    pub limits: Limits,
    /// The workload whose tables are made and filled, if any are.
    pub tables: Option<Arc<dyn Workload>>,
    /// Whether the script cannot ask for a connection, so that none is opened; one that does all the same is refused.
    pub is_without_server: bool,
    /// Opens connections besides that of the client; scripts of a study have one.
    pub connector: Option<Connector>,
    /// What the record keeps: names and values.
    pub recorded: Vec<(String, String)>,
    pub host: Arc<dyn Host>,
    /// Is called when all clients are about to begin.
    pub started: Arc<dyn Fn() + Send + Sync>,
    /// Is called when a client cannot go on, with the exit code that its script wants.
    pub broken: Arc<dyn Fn(Option<i32>) + Send + Sync>,
    pub statistics: Arc<Statistics>,
    /// Numbers that do not repeat, of all clients.
    pub unique: Arc<Unique>,
}

/// The name of the driver that scripts find.
pub fn driver_of(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::PostgreSql => "pgsql",
        Dialect::MySql | Dialect::Sqlite | Dialect::ClickHouse => "mysql",
    }
}

impl Settings {
    /// A state for client `tid`.
    ///
    /// # Errors
    ///
    /// What is wrong with the script's text.
    fn state(
        &self,
        tid: usize,
        seed: [u64; 2],
        driver: &str,
        cells: &ClientCells,
    ) -> Result<State, String> {
        State::load(&Setup {
            path: &self.path,
            text: &self.text,
            tid,
            seed,
            random: self.random,
            unique: Arc::clone(&self.unique),
            counters: Arc::clone(&cells.counters),
            host: Arc::clone(&self.host),
            driver,
            argv: &self.argv,
            command: self.command.as_deref(),
            is_trusted: self.is_trusted,
            is_compiled: self.is_compiled,
            limits: self.limits,
        })
    }
}

pub struct LuaWorkload {
    settings: Arc<Settings>,
    outline: Outline,
}

/// Each client compiles its script by itself, which takes memory and time: with more clients than these, scripts
/// are interpreted.
pub const MOST_COMPILED: usize = 1000;

/// Longest time of a step that ends when its events are done.
const LONGEST: Nanoseconds = Nanoseconds::from_secs(30 * 24 * 3600);

impl LuaWorkload {
    pub fn new(mut settings: Settings, request: StepRequest) -> LuaWorkload {
        settings.is_compiled &= request.clients <= MOST_COMPILED;
        let steps = settings.events.map(|events| {
            let pacing = match settings.rate {
                Some(rate) => Pacing::Poisson { rate: rate / request.clients.max(1) as f64 },
                None => Pacing::Closed,
            };
            let client = Role {
                name: name("client"),
                clients: request.clients,
                pacing,
                // All of them share the events; each may do all.
                quota: Some(events),
                kinds: Vec::new(),
            };
            WorkloadStep {
                name: name("events"),
                roles: vec![client],
                limit: settings.limit.unwrap_or(LONGEST),
                settle: Nanoseconds::ZERO,
            }
        });
        let outline = Outline {
            name: settings.name.clone(),
            kinds: vec![settings.kind.clone()],
            options: settings.recorded.clone(),
            steps: steps.into_iter().collect(),
            ..Outline::default()
        };
        LuaWorkload { settings: Arc::new(settings), outline }
    }
}

impl Workload for LuaWorkload {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    fn check(&self, dialect: Dialect) -> Result<(), String> {
        crate::workload::refuse_without_transactions(self.name(), dialect)?;
        match dialect {
            Dialect::Sqlite => {
                let why = "sysbench scripts need MariaDB, MySQL or PostgreSQL";
                Err(why.to_owned())
            }
            Dialect::MySql | Dialect::PostgreSql | Dialect::ClickHouse => Ok(()),
        }
    }

    fn check_load(&self, is_open: bool) -> Result<(), String> {
        match is_open && self.settings.events.is_some() {
            true => Err("a number of events and a rate are given together".to_owned()),
            false => Ok(()),
        }
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

    fn statements(&self, _: Dialect) -> Vec<Statement> {
        // Scripts prepare their own.
        Vec::new()
    }

    fn why_tables_are_not_audited(&self) -> Option<&'static str> {
        Some("Dyno does not know what the script should leave in them")
    }

    fn clients(self: Arc<Self>) -> Arc<dyn Clients> {
        let settings = Arc::clone(&self.settings);
        let shared = Shared { settings, next_event: AtomicU64::new(0), problem: Mutex::new(None) };
        Arc::new(LuaClients { shared: Arc::new(shared) })
    }
}

pub(crate) struct Shared {
    settings: Arc<Settings>,
    next_event: AtomicU64,
    /// Why the first client that could not go on could not.
    problem: Mutex<Option<String>>,
}

impl Shared {
    /// Whether another event is left; it is then taken.
    fn takes_event(&self) -> bool {
        match self.settings.events {
            None => true,
            Some(events) => self.next_event.fetch_add(1, Relaxed) < events,
        }
    }

    fn broke(&self, problem: String, exit_code: Option<i32>) {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(problem);
        (self.settings.broken)(exit_code);
    }
}

struct LuaClients {
    shared: Arc<Shared>,
}

impl Clients for LuaClients {
    fn client(&self, context: ClientContext) -> ClientFuture {
        match client::Client::start(Arc::clone(&self.shared), context) {
            Some(client) => Box::pin(client.run()),
            None => Box::pin(std::future::ready(())),
        }
    }

    fn connected(&self, _: Nanoseconds) {
        (self.shared.settings.started)();
    }

    fn why_ended(&self) -> Option<String> {
        self.shared.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
