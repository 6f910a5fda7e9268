//! Scripts of sysbench as workloads.

mod client;
mod events;
mod links;
mod serve;
mod statistics;
mod study;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use dyno_model::StepRequest;
use dyno_sysbench::{OptionValue, Program};

use crate::Connector;
use crate::pgbench::{LONGEST, NOT_AUDITED, quota_step};
use crate::prelude::*;

pub use serve::{Ended, Single};
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
        if let Ignored::Codes(codes) = self { codes.iter().any(|one| one == code) } else { true }
    }
}

#[derive(Clone)]
pub struct Settings {
    pub name: Name,
    pub kind: Name,
    /// A workload of more than [`MOST_COMPILED`] clients is not compiled.
    pub program: Program,
    /// What `sysbench.opt` has.
    pub options: Vec<(String, OptionValue)>,
    /// Variables of scripts that declare no options.
    pub globals: Vec<(String, OptionValue)>,
    /// Decides about random numbers; if there is none, the step's seed does.
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
    /// The workload whose tables are made and filled, if any are.
    pub tables: Option<Arc<dyn Workload>>,
    /// Whether the script cannot ask for a connection, so that none is opened; one that does all the same is refused.
    pub is_without_server: bool,
    /// Opens connections besides that of the client; scripts of a study have one.
    pub connector: Option<Connector>,
    /// What the record keeps: names and values.
    pub recorded: Vec<(String, String)>,
    pub statistics: Arc<Statistics>,
}

/// The name of the driver that scripts find.
pub fn driver_of(dialect: Dialect) -> &'static str {
    if dialect == Dialect::PostgreSql { "pgsql" } else { "mysql" }
}

pub struct LuaWorkload {
    settings: Arc<Settings>,
    outline: Outline,
}

/// With more clients, scripts are interpreted: each client compiles its script, which takes memory and time.
pub const MOST_COMPILED: usize = 1000;

impl LuaWorkload {
    pub fn new(mut settings: Settings, request: StepRequest) -> LuaWorkload {
        settings.program.is_compiled &= request.clients <= MOST_COMPILED;
        // All clients share the events; each may do all.
        let steps = settings.events.map(|events| {
            let limit = settings.limit.unwrap_or(LONGEST);
            quota_step("events", (request.clients, events), settings.rate, limit)
        });
        let outline = Outline {
            name: settings.name.clone(),
            kinds: vec![settings.kind.clone()],
            options: settings.recorded.clone(),
            steps: steps.into_iter().collect(),
            makes_nothing: settings.tables.is_none(),
            tables_of: settings.tables.clone(),
            why_tables_are_not_audited: Some(NOT_AUDITED),
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
        let why = "sysbench scripts need MariaDB, MySQL or PostgreSQL";
        if dialect == Dialect::Sqlite { Err(why.to_owned()) } else { Ok(()) }
    }

    fn check_load(&self, is_open: bool) -> Result<(), String> {
        let why = "a number of events and a rate are given together".to_owned();
        if is_open && self.settings.events.is_some() { Err(why) } else { Ok(()) }
    }

    fn clients(self: Arc<Self>) -> Arc<dyn Clients> {
        let settings = Arc::clone(&self.settings);
        Arc::new(Shared { settings, next_event: AtomicU64::new(0), problem: Mutex::new(None) })
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
        let events = self.settings.events;
        events.is_none_or(|events| self.next_event.fetch_add(1, Relaxed) < events)
    }

    fn broke(&self, problem: String, exit_code: Option<i32>) {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(problem);
        self.settings.program.host.broken(exit_code);
    }
}

impl Clients for Shared {
    fn client(self: Arc<Self>, context: ClientContext) -> ClientFuture {
        match client::Client::start(self, context) {
            Some(client) => Box::pin(client.run()),
            None => Box::pin(std::future::ready(())),
        }
    }

    fn connected(&self, _: Nanoseconds) {
        self.settings.program.host.started();
    }

    fn why_ended(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
