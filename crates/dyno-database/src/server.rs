//! Common to all servers: start or attach, connect, facts, stop.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_host::{
    CopyError, DataFiles, KeeperError, Probe, ServerLimits, ThreadGroups, ThreadListing,
};
use dyno_units::{Clock, SettingValue};
use dyno_workload::{ConnectError, Connection, Connector, Dialect, StatementError};

use crate::private::OwnServer;
use crate::products::EMBEDDED;
use crate::protocol::NO_DEBT;
use crate::waiting::SET_UP_LIMIT;
use crate::{
    Access, Address, BuildFacts, CatalogError, Control, CostSource, DebtMeter, Durability,
    Endpoint, Listening, LocalServer, Part, UrlError, cost_source, version_fits,
};

pub(crate) const NOT_MOVED: &str = "Dyno does not move the data of a server that it did not start";

const NO_STATEMENTS: &str = "there are no SQL statements whose cost could be measured";

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct ServerSpec {
    /// The name of the product as studies write it: `mariadb`.
    pub product: String,
    /// What the server's version must begin with ([`crate::version_fits`]).
    pub version: Option<String>,
    /// The storage engine tables get by default.
    pub engine: Option<String>,
    /// Folder with the programs; else PATH, the usual places, and what was fetched.
    pub programs: Option<PathBuf>,
    /// Where the programs must come from: [`crate::MACHINE`], or a source of packages.
    pub from: Option<String>,
    /// The image of a container engine that has the programs; none for programs of this machine.
    pub image: Option<String>,
    /// Settings, shares of memory resolved.
    pub settings: BTreeMap<String, SettingValue>,
    /// CPUs to bind it to; empty for none.
    pub cpus: Vec<u32>,
    pub limits: ServerLimits,
    pub part: Part,
    /// For the product's own client, if that needs another port ([`Server::client_port`]).
    pub admits_client: bool,
    /// Where clients and members on other machines connect to it; none if they do not.
    pub open: Option<Listening>,
}

impl ServerSpec {
    pub fn new(product: &str) -> ServerSpec {
        ServerSpec {
            product: product.to_owned(),
            version: None,
            engine: None,
            programs: None,
            from: None,
            image: None,
            settings: BTreeMap::new(),
            cpus: Vec::new(),
            limits: ServerLimits::default(),
            part: Part::Alone,
            admits_client: false,
            open: None,
        }
    }

    /// Refuses a part in a deployment of several servers.
    #[cfg(feature = "servers")]
    pub(crate) fn check_alone(&self, title: &str) -> Result<(), DeployError> {
        match self.part {
            Part::Alone => Ok(()),
            _ => Err(DeployError::new(format!(
                "Dyno starts only single {title} servers: no replicas and no clusters"
            ))),
        }
    }

    /// Refuses programs of another version than is asked for.
    pub(crate) fn check_version(
        &self,
        title: &str,
        programs: &Path,
        version: &str,
    ) -> Result<(), DeployError> {
        match &self.version {
            Some(wanted) if !version_fits(version, wanted) => Err(DeployError::new(format!(
                "{title} in {} is {version}, not {wanted}",
                programs.display()
            ))),
            _ => Ok(()),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerFacts {
    /// The product's name, as reported by the server.
    pub product: String,
    /// The full version text that the server reports.
    pub version: String,
    /// `unix`, `tcp`, `in process`.
    pub transport: &'static str,
    pub tls: bool,
    /// All settings in force that the server reports, by name.
    pub settings: BTreeMap<String, String>,
    pub durability: Durability,
    pub durability_settings: &'static [&'static str],
    /// Bytes of memory that it has for data; none if its settings do not say.
    pub memory_bytes: Option<f64>,
    pub memory_settings: &'static [&'static str],
    /// Whether its work is done on the load generator's own threads.
    pub in_process: bool,
    pub stores_data: bool,
    /// Where its programs come from; none if Dyno did not start it, or they are Dyno's own.
    pub build: Option<BuildFacts>,
}

impl ServerFacts {
    /// Facts of a server that stores data in a process of its own; what it says of itself is missing.
    pub(crate) fn at(endpoint: &Endpoint, tls: bool) -> ServerFacts {
        let transport = match endpoint.address {
            Address::Unix(_) => "unix",
            Address::Tcp { .. } => "tcp",
        };
        ServerFacts { transport, tls, stores_data: true, ..ServerFacts::default() }
    }
}

/// A server that is up.
pub trait Server: Send {
    fn dialect(&self) -> Dialect {
        self.endpoint().and_then(|one| one.protocol.spec().dialect).unwrap_or(EMBEDDED)
    }

    fn connector(&self) -> Connector;

    fn facts(&self) -> Result<ServerFacts, DeployError>;

    /// Process and folder; none in Dyno's own process, or if Dyno did not start it here.
    fn own(&self) -> Option<&OwnServer> {
        None
    }

    /// What is on this host of a server that Dyno did not start.
    fn local(&self) -> Option<&LocalServer> {
        None
    }

    /// For other processes, with their user; none in Dyno's own process without an address.
    fn endpoint(&self) -> Option<&Endpoint> {
        None
    }

    /// Its own processes on this host, without children, which probes find; empty in process or by
    /// URL. Dyno may end them.
    fn processes(&self) -> Vec<i32> {
        self.own().map(OwnServer::pid).into_iter().collect()
    }

    /// Ids of its processes on this host, also if Dyno did not start it: for observation.
    fn watched_processes(&self) -> Vec<i32> {
        self.local().map_or_else(|| self.processes(), |local| vec![local.pid])
    }

    /// Why it is down, or none while it runs.
    fn down(&mut self) -> Option<String> {
        self.own()?.down()
    }

    /// The last lines of its log.
    fn log_tail(&self, lines: usize) -> Vec<String> {
        self.own().map(|own| own.folder().log_tail(lines)).unwrap_or_default()
    }

    /// Bytes its data take on disk, logs included, if they can be seen.
    fn data_bytes(&self) -> Option<u64> {
        self.own().filter(|_| self.stores_data())?.data_bytes()
    }

    /// Where its data lie on this host, and what its files hold; none if they cannot be seen.
    fn data_files(&self) -> Option<DataFiles> {
        match self.own() {
            Some(own) if self.stores_data() => {
                Some(own.data_files(self.endpoint()?.protocol.spec().file_kind))
            }
            _ => self.local()?.data.clone(),
        }
    }

    /// How thread names show their kinds; `None` if they do not.
    fn thread_groups(&self) -> Option<ThreadGroups> {
        self.endpoint().filter(|_| self.stores_data())?.protocol.spec().thread_group
    }

    /// For programs that Dyno starts as this server's user: DYNO_URL and its parts, and variables of the
    /// product's clients. None for a server by URL, whose password is in no environment.
    fn client_environment(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Its address and log; none in Dyno's own process, or if Dyno did not start it.
    fn reach(&self) -> Option<Reach> {
        let (own, endpoint) = (self.own()?, self.endpoint()?);
        Some(Reach { endpoint: endpoint.clone(), log: own.folder().log() })
    }

    /// The loopback port for the product's own client; none if it is Dyno's.
    fn client_port(&self) -> Option<u16> {
        None
    }

    /// Tells a node on several machines all nodes' addresses, by number: at its start, it knew only earlier ones.
    fn meet(&mut self, nodes: &[SocketAddrV4]) {
        let _ = nodes;
    }

    /// Acts on its process while clients use it; none if Dyno has no such process.
    fn control(&self) -> Option<Box<dyn Control>> {
        None
    }

    /// Whether a client blocks its worker thread: then each client wants its own worker.
    fn blocks_worker(&self) -> bool {
        self.endpoint().is_some_and(|one| one.protocol.spec().blocks_worker)
    }

    /// Whether it supports named prepared statements; otherwise each statement is parsed for each execution.
    fn supports_named_statements(&self) -> bool {
        true
    }

    /// Whether it stores what it confirms; otherwise there is nothing to audit.
    fn stores_data(&self) -> bool {
        true
    }

    /// Each has its own connection, opened at the first read. What this version lacks is a missing
    /// reading. `threads` gets the server's list of threads, with those of the probes.
    fn probes(&self, threads: Option<&ThreadListing>) -> Vec<Box<dyn Probe>> {
        let endpoint = self.endpoint().filter(|_| self.stores_data());
        let probes = |one: &Endpoint| (one.protocol.spec().probes)(self.connector(), one, threads);
        endpoint.map(probes).unwrap_or_default()
    }

    /// Fails, with the reason, if it cannot be read.
    fn debt_meter(&self) -> Result<Box<dyn DebtMeter>, String> {
        match self.endpoint().filter(|_| self.stores_data()) {
            Some(one) => (one.protocol.spec().debt_meter)(self.connector(), one),
            None => Err(NO_DEBT.to_owned()),
        }
    }

    /// For [`crate::explain_cost`]. Fails, with the reason, if counters cannot be read.
    fn cost_source(
        &self,
        access: Access,
        clock: &Arc<dyn Clock>,
    ) -> Result<Box<dyn CostSource>, String> {
        match self.endpoint().is_some_and(|one| one.protocol.spec().dialect.is_none()) {
            true => Err(NO_STATEMENTS.to_owned()),
            false => cost_source(&self.connector(), access, clock),
        }
    }

    /// On a new connection. Fails if there is no answer within half a minute.
    fn check_alive(&self) -> Result<(), DeployError> {
        ping(&self.connector(), self.endpoint())
    }

    /// Removes everything. Also fails after a kill or an error, as last writes may be lost.
    fn stop(self: Box<Self>) -> Result<(), DeployError>;

    fn can_keep_data(&self) -> bool {
        false
    }

    /// Stops it in order, with complete data, and moves them to `to` (a new folder in one of the
    /// keeper's), for [`crate::Products::start_on`]. Removes everything else, such as what only
    /// warms the next server.
    fn stop_and_keep_data(self: Box<Self>, to: &Path) -> Result<(), DeployError> {
        let _ = to;
        Err(DeployError::new(NOT_MOVED))
    }
}

/// What a server says of how it was built, in one line; none if it says nothing.
pub(crate) fn build_parts(parts: impl Iterator<Item = String>) -> Option<String> {
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

pub(crate) fn ping(connector: &Connector, endpoint: Option<&Endpoint>) -> Result<(), DeployError> {
    let what = "the server no longer answers";
    let mut connection = connector().context(what)?;
    connection.set_cold_limit(SET_UP_LIMIT.0);
    let ping = endpoint.map_or("SELECT 1", |one| one.protocol.spec().ping);
    connection.query(ping).context(what).map(drop)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Its address, with the user that may do anything.
    pub endpoint: Endpoint,
    pub log: PathBuf,
}

#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct DeployError {
    /// What happened, where, what to do; no secret.
    pub message: String,
    /// The last lines of the server's log, if it got that far.
    pub log: Vec<String>,
}

impl DeployError {
    pub fn new(message: impl Into<String>) -> DeployError {
        DeployError { message: message.into(), log: Vec::new() }
    }

    /// The same with the last lines of the log in its message.
    pub(crate) fn with_last_words(self) -> DeployError {
        let said = self.log[self.log.len().saturating_sub(3)..].join("; ");
        DeployError { message: format!("{}: {said}", self.message), ..self }
    }
}

/// Errors that say by themselves what could not be done.
pub trait Telling: fmt::Display {}

impl Telling for UrlError {}
impl Telling for ConnectError {}
impl Telling for StatementError {}
impl Telling for CatalogError {}
impl Telling for CopyError {}
impl Telling for KeeperError {}

impl<E: Telling> From<E> for DeployError {
    fn from(error: E) -> DeployError {
        DeployError::new(error.to_string())
    }
}

/// Opens connections whose statements may take long, such as creating an index or counting all rows.
pub(crate) fn connector<C: Connection + 'static>(
    open: impl Fn() -> Result<C, ConnectError> + Send + Sync + 'static,
) -> Connector {
    Arc::new(move || {
        let mut connection = open()?;
        connection.set_cold_limit(0);
        Ok(Box::new(connection) as Box<dyn Connection>)
    })
}

/// Says before an error what could not be done.
pub(crate) trait Context<T> {
    /// `what: error`
    fn context(self, what: impl fmt::Display) -> Result<T, DeployError>;
}

impl<T, E: fmt::Display> Context<T> for Result<T, E> {
    fn context(self, what: impl fmt::Display) -> Result<T, DeployError> {
        self.map_err(|error| DeployError::new(format!("{what}: {error}")))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttachOptions {
    /// Whether its catalog may hold tables that Dyno did not create, which are left alone.
    pub allow_existing_tables: bool,
    /// Whether Dyno's own tables, and a catalog that it made, are kept at the end.
    pub keep_tables: bool,
    /// Whether nothing will be made in it: then it is not claimed, and nothing is noted or dropped.
    pub makes_nothing: bool,
}

/// Uses a running server; makes the catalog if it is missing, and refuses one that holds tables which Dyno did not make
/// unless those are allowed.
///
/// # Errors
///
/// It cannot be reached, or may not be used.
pub fn attach(endpoint: &Endpoint, options: AttachOptions) -> Result<Box<dyn Server>, DeployError> {
    (endpoint.protocol.spec().attach)(endpoint, options)
}
