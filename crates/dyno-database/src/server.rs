//! Common to all servers: start or attach, connect, facts, stop.

use std::fs;
use std::net::SocketAddrV4;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_host::{
    DataFiles, Origin, Probe, ThreadGroups, ThreadListing, is_loopback, listener_of_port,
    listener_of_socket,
};
use dyno_units::Clock;
use dyno_workload::{ConnectError, Connection, Connector, Dialect};

use crate::dialects::{EMBEDDED, NO_EMBEDDED_COST};
use crate::error::{Context, Result, fail};
use crate::protocol::NO_DEBT;
use crate::settings::Settings;
use crate::sql::first_cell;
use crate::waiting::SET_UP_LIMIT;
use crate::{Access, Address, Control, CostSource, DebtMeter, Durability, Endpoint};

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

#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct BuildFacts {
    pub origin: Origin,
    pub programs: PathBuf,
    pub configured: Option<String>,
}

pub trait Server: Send {
    fn dialect(&self) -> Dialect {
        self.endpoint().and_then(|one| one.protocol.dialect).unwrap_or(EMBEDDED)
    }

    fn connector(&self) -> Connector;

    fn facts(&self) -> Result<ServerFacts>;

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
        Vec::new()
    }

    /// Ids of its processes on this host, also if Dyno did not start it: for observation.
    fn watched_processes(&self) -> Vec<i32> {
        self.local().map_or_else(|| self.processes(), |local| vec![local.pid])
    }

    /// Why it is down, or none while it runs.
    fn down(&mut self) -> Option<String> {
        None
    }

    fn log_tail(&self, _lines: usize) -> Vec<String> {
        Vec::new()
    }

    /// Bytes its data take on disk, logs included, if they can be seen.
    fn data_bytes(&self) -> Option<u64> {
        None
    }

    /// Where its data lie on this host, and what its files hold; none if they cannot be seen.
    fn data_files(&self) -> Option<DataFiles> {
        self.local()?.data.clone()
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
        None
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

/// The parts on this host of a server that Dyno did not start. Nothing is claimed and nothing changed; what is not
/// certain is left out.
#[derive(Clone, Debug)]
pub struct LocalServer {
    /// Its process, whose descendants belong to it.
    pub pid: i32,
    /// Its data, if it reports the folder and this user may see it.
    pub data: Option<DataFiles>,
}

impl LocalServer {
    /// The server at the other end, if it is on this host: the process that listens on the Unix
    /// socket, or on the port of a loopback address. `connection` is one to it.
    pub fn find(endpoint: &Endpoint, connection: &mut dyn Connection) -> Option<LocalServer> {
        let spec = endpoint.protocol;
        let pid = match &endpoint.address {
            Address::Unix(path) => listener_of_socket(path),
            Address::Tcp { host, port } if is_loopback(host) => {
                listener_of_port(host, *port, spec.programs)
            }
            Address::Tcp { .. } => None,
        }?;
        let root = connection.query(spec.data_folder).ok().and_then(first_cell).map(PathBuf::from);
        let root = root.filter(|root| is_seen_alike(pid, root));
        Some(LocalServer { pid, data: root.map(|root| DataFiles { root, kind: spec.file_kind }) })
    }
}

/// Whether a folder is the same for a process and for this one: in a container it may be another
/// one of the same name.
fn is_seen_alike(pid: i32, folder: &Path) -> bool {
    let Ok(relative) = folder.strip_prefix("/") else { return false };
    let theirs = fs::metadata(Path::new("/proc").join(pid.to_string()).join("root").join(relative));
    let (Ok(ours), Ok(theirs)) = (fs::metadata(folder), theirs) else { return false };
    let is_same = (ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino());
    is_same && ours.is_dir() && fs::read_dir(folder).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_the_same_for_oneself() {
        let own = i32::try_from(std::process::id()).expect("fits");
        let folder = tempfile::tempdir().expect("a folder");
        assert!(is_seen_alike(own, folder.path()));
        assert!(!is_seen_alike(own, &folder.path().join("missing")));
        assert!(!is_seen_alike(own, Path::new("relative")));
        assert!(!is_seen_alike(i32::MAX, folder.path()));
        let file = folder.path().join("file");
        fs::write(&file, "").expect("written");
        assert!(!is_seen_alike(own, &file));
    }
}
