//! A private FerretDB: made, started, stopped and removed by Dyno. It is reached by its Unix socket alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_host::{FileKind, ProcessSpec};
use dyno_units::Clock;
use dyno_workload::{Connection, Connector, Dialect};

use super::connection::PING;
use super::programs::{self, PROGRAM};
use super::{facts, settings};
use crate::logs::LogFiles;
use crate::private::{NO_PORTS, OwnServer, START_LIMIT, ServerFolder, ServerKind};
use crate::waiting::SET_UP_LIMIT;
use crate::{
    Access, Address, CostSource, DeployError, Endpoint, Installation, Launch, Part, Server,
    ServerFacts, ServerSpec, TlsMode, version_fits,
};

const CATALOG: &str = "dyno";

/// The name of the user, who has no password: the folder of the socket admits no other.
const USER: &str = "dyno";

const SOCKET: &str = "mongodb.sock";

const KIND: ServerKind = ServerKind {
    product: "FerretDB",
    stop_signal: "TERM",
    log_files: LogFiles::Named(&[]),
    ports: NO_PORTS,
    open: None,
    start_limit: START_LIMIT,
};

struct PrivateServer {
    server: OwnServer,
    endpoint: Endpoint,
    connector: Connector,
    installation: Installation,
    settings: BTreeMap<String, String>,
}

pub(super) fn check_spec(spec: &ServerSpec) -> Result<(), DeployError> {
    if let Some(engine) = &spec.engine {
        return Err(DeployError::new(format!(
            "Dyno starts FerretDB only with SQLite, so no other engine can be chosen: leave \
             `{engine}` out"
        )));
    }
    match spec.part {
        Part::Alone => Ok(()),
        _ => Err(DeployError::new(
            "Dyno starts only single FerretDB servers: no replicas and no \
            clusters",
        )),
    }
}

/// Starts a private server and waits until it answers.
pub(super) fn start(launch: &Launch<'_>) -> Result<Box<dyn Server>, DeployError> {
    let Launch { spec, data, place, clock } = *launch;
    check_spec(spec)?;
    if data.is_some() {
        return Err(DeployError::new("FerretDB's data are not kept, so they cannot be reused"));
    }
    let installation = programs::find(spec, place.keeper())?;
    let settings = settings::spelled(&spec.settings)?;
    if let Some(wanted) = &spec.version
        && !version_fits(&installation.version, wanted)
    {
        return Err(DeployError::new(format!(
            "FerretDB in {} is {}, not {wanted}",
            installation.programs.display(),
            installation.version
        )));
    }
    let folder = ServerFolder::make(place, &spec.product)?;
    folder.put_data(None, KIND)?;
    let socket = folder.run().join(SOCKET);
    let process = ProcessSpec {
        program: PathBuf::from("/bin/sh"),
        arguments: arguments(&installation.programs.join(PROGRAM), &folder, &socket, &settings),
        environment: vec![
            ("TMPDIR".to_owned(), folder.tmp().display().to_string()),
            // It reports nothing to anybody.
            ("DO_NOT_TRACK".to_owned(), "true".to_owned()),
        ],
        log: folder.log(),
        cpus: spec.cpus.clone(),
        limits: spec.limits,
        ..ProcessSpec::default()
    };
    let endpoint = endpoint(&socket);
    let reach = || super::open(&endpoint).map(drop).map_err(|error| error.message);
    let (server, ()) = OwnServer::start(folder, &process, KIND, clock, reach)?;
    let connector = super::connector(endpoint.clone());
    Ok(Box::new(PrivateServer { server, endpoint, connector, installation, settings }))
}

/// It does not start where one that was killed has left its socket, so that is removed first, as the server's user.
const START: &str = "rm -f \"$0\" && exec \"$@\"";

fn arguments(
    program: &Path,
    folder: &ServerFolder,
    socket: &Path,
    settings: &BTreeMap<String, String>,
) -> Vec<String> {
    vec![
        "-c".to_owned(),
        START.to_owned(),
        socket.display().to_string(),
        program.display().to_string(),
        "--handler=sqlite".to_owned(),
        format!("--sqlite-url={}", settings::uri(settings, &folder.data())),
        format!("--listen-unix={}", socket.display()),
        // No port: neither for clients nor for its own statistics.
        "--listen-addr=".to_owned(),
        "--debug-addr=".to_owned(),
        format!("--state-dir={}", folder.tmp().display()),
        "--telemetry=disable".to_owned(),
        "--log-level=warn".to_owned(),
    ]
}

fn endpoint(socket: &Path) -> Endpoint {
    Endpoint {
        protocol: super::PROTOCOL,
        address: Address::Unix(socket.to_owned()),
        user: USER.to_owned(),
        password: None,
        catalog: CATALOG.to_owned(),
        tls: TlsMode::Off,
        server_public_key: None,
        session_options: None,
    }
}

/// What a file in the data folder holds: a database of SQLite, or its log.
pub(super) fn file_kind(path: &Path) -> FileKind {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if name.ends_with("-wal") || name.ends_with("-journal") {
        return FileKind::Logs;
    }
    match name.ends_with(".sqlite") {
        true => FileKind::TablesAndIndexes,
        false => FileKind::Other,
    }
}

pub(super) fn check_alive(connector: &Connector) -> Result<(), DeployError> {
    let failed = |why: String| DeployError::new(format!("the server no longer answers: {why}"));
    let mut connection: Box<dyn Connection> =
        connector().map_err(|error| failed(error.to_string()))?;
    connection.set_cold_limit(SET_UP_LIMIT.0);
    connection.query(PING).map(drop).map_err(|error| failed(error.to_string()))
}

pub(super) const NO_COSTS: &str = "there are no SQL statements whose cost could be measured";

impl Server for PrivateServer {
    /// None is spoken.
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn connector(&self) -> Connector {
        Arc::clone(&self.connector)
    }

    fn own(&self) -> Option<&OwnServer> {
        Some(&self.server)
    }

    fn endpoint(&self) -> Option<&Endpoint> {
        Some(&self.endpoint)
    }

    fn facts(&self) -> Result<ServerFacts, DeployError> {
        let mut facts = facts::ask(&self.endpoint, &mut super::open(&self.endpoint)?)?;
        facts.durability = settings::durability(&self.settings);
        facts.durability_settings = &settings::DURABILITY;
        facts.settings.extend(self.settings.clone());
        facts.build = Some(self.installation.facts(None));
        Ok(facts)
    }

    fn cost_source(
        &self,
        _access: Access,
        _clock: &Arc<dyn Clock>,
    ) -> Result<Box<dyn CostSource>, String> {
        Err(NO_COSTS.to_owned())
    }

    fn check_alive(&self) -> Result<(), DeployError> {
        check_alive(&self.connector)
    }

    fn stop(self: Box<Self>) -> Result<(), DeployError> {
        self.server.stop()
    }
}
