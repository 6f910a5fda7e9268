//! Protocols: URLs, and operations on any server that speaks one.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_host::{FileKind, Probe, ThreadGroups, ThreadListing};
use dyno_units::Clock;
use dyno_workload::{ConnectError, Connection, Connector, Dialect, Target};

use crate::dialects::sql_of;
use crate::error::Result;
use crate::{Access, AttachOptions, CostSource, DebtMeter, Endpoint, Secret, Server, ServerFacts};

pub(crate) const NO_STATEMENTS: &str = "there are no SQL statements whose cost could be measured";

/// Makes a cost source from a connection, or returns why there is none.
pub(crate) type OpenCostSource =
    fn(Box<dyn Connection>, Access, &Arc<dyn Clock>) -> Result<Box<dyn CostSource>, String>;

/// Why there is nothing to measure of the work that an engine defers.
pub(crate) const NO_DEBT: &str = "this product does not report its deferred work";

/// The protocol of a server; one in each product folder whose servers have URLs.
pub struct Protocol {
    /// The scheme with which URLs are written: `mysql`.
    pub name: &'static str,
    /// The schemes that are read, the one above included.
    pub schemes: &'static [&'static str],
    /// A URL with all its parts, for messages.
    pub example: &'static str,
    /// The SQL of its servers; none if they hold documents.
    pub dialect: Option<Dialect>,
    pub default_port: u16,
    pub socket: SocketKey,
    /// Whether a URL may name the file with the server's public RSA key.
    pub has_server_public_key: bool,
    /// Whether a URL may give settings for its sessions (`options`).
    pub has_session_options: bool,
    /// What any server answers.
    pub ping: &'static str,
    /// Whether a client waits for its answer in a read.
    pub blocks_worker: bool,
    /// A catalog that every server has and every user may open.
    pub common_catalog: &'static str,
    /// Names of server programs, as the kernel has them.
    pub programs: &'static [&'static str],
    /// The statement that returns the data folder.
    pub data_folder: &'static str,
    /// What a file in the data folder holds, by its path in there.
    pub file_kind: fn(&Path) -> FileKind,
    pub thread_group: Option<ThreadGroups>,
    pub(crate) connector: fn(Endpoint) -> Connector,
    pub(crate) unnamed_connector: fn(Endpoint) -> Connector,
    /// Uses a running server; makes the catalog if it is missing, refuses one that holds tables
    /// which Dyno did not make unless those are allowed.
    pub(crate) attach: fn(&Endpoint, AttachOptions) -> Result<Box<dyn Server>>,
    pub(crate) facts: fn(&Endpoint) -> Result<ServerFacts>,
    /// The probes of a server, on these connections to it.
    pub(crate) probes: fn(Connector, &Endpoint, Option<&ThreadListing>) -> Vec<Box<dyn Probe>>,
    /// What reads the engine's counters around a statement, on this connection; or why nothing does.
    pub(crate) cost_source: OpenCostSource,
    /// What reads the engine's debt, on these connections to the server; or why it has none.
    pub(crate) debt_meter: fn(Connector, &Endpoint) -> Result<Box<dyn DebtMeter>, String>,
    /// A client for people, for a server of this version; none if it has none.
    pub(crate) client: fn(&Endpoint, &str) -> Option<Client>,
    /// How its servers are dumped and restored; none if Dyno cannot do that.
    #[cfg(feature = "servers")]
    pub(crate) dumping: Option<&'static dyn crate::Dumping>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// Names of its program, the preferred one first; a second word is the program's first argument.
    pub programs: &'static [&'static str],
    /// Its arguments; no secret.
    pub arguments: Vec<String>,
    /// How it is given the password; none if it needs none.
    pub secret: Option<ClientSecret>,
}

/// How a client is given a password: never by an argument, which all users of the machine can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientSecret {
    /// By an environment variable of this name, of the client alone.
    Variable(&'static str, Secret),
    /// By a file that only its user can read.
    File {
        /// What the file's name ends with: `.xml`.
        ending: &'static str,
        text: Secret,
        /// What the argument that names the file begins with; it comes before the others.
        argument: &'static str,
    },
}

/// The key of a URL's query that names a Unix socket.
pub struct SocketKey {
    /// The key in the URL's query: `socket`.
    pub name: &'static str,
    /// The socket's path from the key's value and the port.
    pub join: fn(PathBuf, u16) -> PathBuf,
    /// The key's value and the port; none if the path is the value and has no port.
    pub split: fn(&Path) -> Option<(&Path, &str)>,
}

impl SocketKey {
    /// A key whose value is the path of the socket itself.
    pub const fn of_path(name: &'static str) -> SocketKey {
        SocketKey { name, join: |path, _| path, split: |_| None }
    }
}

/// Opens a connection and checks it; also the settings with which a transaction is as it was checked.
pub(crate) fn checked(
    open: &Connector,
    endpoint: &Endpoint,
) -> Result<(Box<dyn Connection>, Vec<String>), ConnectError> {
    let mut connection = open()?;
    let check = sql_of(connection.dialect()).check_routines;
    let pinned = check.map(|check| check(connection.as_mut())).transpose();
    Ok((connection, pinned.map_err(|reason| endpoint.not_opened(reason))?.unwrap_or_default()))
}

impl Protocol {
    pub fn target(&self) -> Target {
        self.dialect.map_or(Target::Documents, |_| Target::Sql)
    }

    pub fn connector(&self, endpoint: &Endpoint) -> Connector {
        (self.connector)(endpoint.clone())
    }

    /// The same for a server that Dyno neither started nor attaches: fails if other users' functions or operators would
    /// run there with the rights of Dyno's user.
    pub fn checked_connector(&self, endpoint: &Endpoint) -> Connector {
        let (open, endpoint) = (self.connector(endpoint), endpoint.clone());
        Arc::new(move || Ok(checked(&open, &endpoint)?.0))
    }

    /// The same through a router that does not support named prepared statements
    /// ([`Server::supports_named_statements`]).
    pub fn unnamed_connector(&self, endpoint: &Endpoint) -> Connector {
        (self.unnamed_connector)(endpoint.clone())
    }

    /// The facts of a server, which is neither claimed nor changed. Fails if it cannot be reached, or does not answer.
    pub fn facts(&self, endpoint: &Endpoint) -> Result<ServerFacts> {
        (self.facts)(endpoint)
    }

    /// The probes of a server that is neither claimed nor changed. What the server says of its threads they put into
    /// `threads`, if it is given.
    pub fn probes(
        &self,
        endpoint: &Endpoint,
        threads: Option<&ThreadListing>,
    ) -> Vec<Box<dyn Probe>> {
        (self.probes)(self.connector(endpoint), endpoint, threads)
    }

    /// Reads the engine's debt. Fails with the reason why there is none that could be read.
    pub fn debt_meter(&self, endpoint: &Endpoint) -> Result<Box<dyn DebtMeter>, String> {
        (self.debt_meter)(self.connector(endpoint), endpoint)
    }

    /// For [`crate::explain_cost`]. Fails, with the reason, if the engine's counters cannot be read.
    pub fn cost_source(
        &self,
        connector: &Connector,
        access: Access,
        clock: &Arc<dyn Clock>,
    ) -> Result<Box<dyn CostSource>, String> {
        if self.dialect.is_none() {
            return Err(NO_STATEMENTS.to_owned());
        }
        (self.cost_source)(connector().map_err(|error| error.to_string())?, access, clock)
    }
}

impl PartialEq for Protocol {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Protocol {}

impl fmt::Debug for Protocol {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name)
    }
}
