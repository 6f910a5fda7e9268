//! Common to all servers: start or attach, connect, facts, stop.

use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_host::{DataFiles, Probe, ThreadGroups, ThreadListing};
use dyno_units::Clock;
use dyno_workload::{ConnectError, Connection, Connector, Dialect};

use crate::dialects::{EMBEDDED, NO_EMBEDDED_COST};
use crate::error::{Context, Result, fail};
use crate::private::OwnServer;
use crate::protocol::NO_DEBT;
use crate::settings::Settings;
use crate::waiting::SET_UP_LIMIT;
use crate::{
    Access, Address, BuildFacts, Control, CostSource, DebtMeter, Durability, Endpoint, LocalServer,
};

pub(crate) const NOT_MOVED: &str = "Dyno does not move the data of a server that it did not start";

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
    pub settings: Settings,
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

pub trait Server: Send {
    fn dialect(&self) -> Dialect {
        self.endpoint().and_then(|one| one.protocol.dialect).unwrap_or(EMBEDDED)
    }

    fn connector(&self) -> Connector;

    fn facts(&self) -> Result<ServerFacts>;

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
                Some(own.data_files(self.endpoint()?.protocol.file_kind))
            }
            _ => self.local()?.data.clone(),
        }
    }

    /// How thread names show their kinds; `None` if they do not.
    fn thread_groups(&self) -> Option<ThreadGroups> {
        self.endpoint().filter(|_| self.stores_data())?.protocol.thread_group
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
    fn meet(&mut self, _nodes: &[SocketAddrV4]) {}

    /// Acts on its process while clients use it; none if Dyno has no such process.
    fn control(&self) -> Option<Box<dyn Control>> {
        None
    }

    /// Whether a client blocks its worker thread: then each client wants its own worker.
    fn blocks_worker(&self) -> bool {
        self.endpoint().is_some_and(|one| one.protocol.blocks_worker)
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
        let probes = |one: &Endpoint| (one.protocol.probes)(self.connector(), one, threads);
        endpoint.map(probes).unwrap_or_default()
    }

    /// Fails, with the reason, if it cannot be read.
    fn debt_meter(&self) -> Result<Box<dyn DebtMeter>, String> {
        match self.endpoint().filter(|_| self.stores_data()) {
            Some(one) => (one.protocol.debt_meter)(self.connector(), one),
            None => Err(NO_DEBT.to_owned()),
        }
    }

    /// For [`crate::explain_cost`]. Fails, with the reason, if counters cannot be read.
    fn cost_source(
        &self,
        access: Access,
        clock: &Arc<dyn Clock>,
    ) -> Result<Box<dyn CostSource>, String> {
        match self.endpoint() {
            Some(one) => one.protocol.cost_source(&self.connector(), access, clock),
            None => Err(NO_EMBEDDED_COST.to_owned()),
        }
    }

    /// On a new connection. Fails if there is no answer within half a minute.
    fn check_alive(&self) -> Result<()> {
        ping(&self.connector(), self.endpoint())
    }

    /// Removes everything. Also fails after a kill or an error, as last writes may be lost.
    fn stop(self: Box<Self>) -> Result<()>;

    fn can_keep_data(&self) -> bool {
        false
    }

    /// Stops it in order, with complete data, and moves them to `to` (a new folder in one of the
    /// keeper's), for [`crate::Products::start_on`]. Removes everything else, such as what only
    /// warms the next server.
    fn stop_and_keep_data(self: Box<Self>, _to: &Path) -> Result<()> {
        fail(NOT_MOVED)
    }
}

/// What a server says of how it was built, in one line; none if it says nothing.
pub(crate) fn build_parts(parts: impl Iterator<Item = String>) -> Option<String> {
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

pub(crate) fn ping(connector: &Connector, endpoint: Option<&Endpoint>) -> Result<()> {
    let what = "the server no longer answers";
    let mut connection = connector().context(what)?;
    connection.set_cold_limit(SET_UP_LIMIT.0);
    let ping = endpoint.map_or("SELECT 1", |one| one.protocol.ping);
    connection.query(ping).context(what).map(drop)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Its address, with the user that may do anything.
    pub endpoint: Endpoint,
    pub log: PathBuf,
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
/// Fails if it cannot be reached, or may not be used.
pub fn attach(endpoint: &Endpoint, options: AttachOptions) -> Result<Box<dyn Server>> {
    (endpoint.protocol.attach)(endpoint, options)
}
