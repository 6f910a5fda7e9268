//! A private PostgreSQL server: made, started, stopped and removed by Dyno.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::path::Path;
use std::sync::Arc;

use dyno_host::{AfterCrash, Probe, ProcessSpec, ThreadListing};
use dyno_units::{Clock, Nanoseconds};
use dyno_workload::{Connection, Connector, Dialect};

use super::programs::{self, Programs};
use super::{connect, connector, facts, replica, settings, shards, statement_failed};
use crate::data::build_of;
use crate::initial::{Initialising, identity};
use crate::logs::LogFiles;
use crate::private::{NO_PORTS, OwnServer, START_LIMIT, ServerFolder, ServerKind};
use crate::transport::CATALOG_LIMIT;
use crate::{
    Address, BuildFacts, DataShape, DebtMeter, DeployError, Endpoint, Launch, Part, Server,
    ServerFacts, ServerSpec, TlsMode, version_fits,
};

/// The superuser that `initdb` makes.
const USER: &str = "dyno";
const CATALOG: &str = crate::part::CLIENT_CATALOG;
const LOCALE: &str = "C.UTF-8";
const MAKE_LIMIT: Nanoseconds = Nanoseconds::from_secs(120);
/// How its servers are named and stopped: in a fast shutdown, which ends connections and writes
/// pages.
const KIND: ServerKind = ServerKind {
    product: "PostgreSQL",
    stop_signal: "INT",
    log_files: LogFiles::Folder("pg_wal"),
    ports: NO_PORTS,
    open: None,
    start_limit: START_LIMIT,
};

struct PrivateServer {
    server: OwnServer,
    endpoint: Endpoint,
    connector: Connector,
    programs: Programs,
}

/// Starts a private server, on the kept data of another one if there are any, and waits until it
/// answers.
pub(super) fn start(launch: &Launch<'_>) -> Result<Box<dyn Server>, DeployError> {
    let Launch { spec, data, place, clock } = *launch;
    if let Some(engine) = &spec.engine {
        return Err(DeployError::new(format!(
            "PostgreSQL has no storage engine `{engine}`; leave `engine` out"
        )));
    }
    let programs = programs::find(spec, place.keeper())?;
    if spec.part == Part::Router {
        shards::check(&programs)?;
    }
    let folder = ServerFolder::make(place, &spec.product)?;
    let of_part = replica::settings_of(&spec.part);
    let configuration = settings::configuration(&spec.settings, &folder.data(), of_part)?;
    folder.write(settings::CONFIGURATION_FILE, &configuration)?;
    folder.write(
        settings::ACCESS_FILE,
        &replica::access(&spec.part, spec.open.is_some(), programs.major()),
    )?;
    // A replica's data come from its primary.
    let data = data.filter(|_| !matches!(spec.part, Part::Replica(_)));
    match (&spec.part, data) {
        (Part::Replica(follow), _) => {
            folder.put_data(None, KIND)?;
            replica::copy_primary(&folder, &programs, follow, clock)?;
        }
        (_, None) => {
            let initialising = initialising(&programs, spec);
            let make = || make_data(&folder, &programs, clock);
            folder.put_initial_data(initialising, clock, make)?;
        }
        (_, Some(_)) => folder.put_data(data, KIND)?,
    }
    let open = spec.open.as_ref().map(|listening| listening.address);
    let process = ProcessSpec {
        program: programs.folder.join("postgres"),
        arguments: settings::arguments(folder.path(), &folder.data(), &folder.run(), open),
        environment: vec![("TMPDIR".to_owned(), folder.tmp().display().to_string())],
        log: folder.log(),
        cpus: spec.cpus.clone(),
        limits: spec.limits,
        after_crash: after_crash(&folder, &programs),
        image: programs.image.clone(),
        mounts: folder.mounts(),
        ..ProcessSpec::default()
    };
    let maintenance = endpoint((&folder, open), "postgres");
    let endpoint = endpoint((&folder, open), CATALOG);
    let reach = || connect(&maintenance).map_err(|error| error.reason);
    let (server, mut connection) =
        OwnServer::start(folder, &process, ServerKind { open, ..KIND }, clock, reach)
            .map_err(with_reasons)?;
    match finish(spec, &programs, data, &mut connection) {
        Ok(()) => {
            let connector = connector(endpoint.clone());
            Ok(Box::new(PrivateServer { server, endpoint, connector, programs }))
        }
        Err(error) => {
            drop(connection);
            // The first error is the one to report.
            let _ = server.stop();
            Err(error)
        }
    }
}

/// What decides the data of a new server: `initdb` reads no setting of the study. None for a server of a deployment: copies
/// have one system identifier.
fn initialising(programs: &Programs, spec: &ServerSpec) -> Option<Initialising> {
    if spec.part != Part::Alone {
        return None;
    }
    let [initdb, server] = ["initdb", "postgres"].map(|name| programs.folder.join(name));
    let shape = DataShape {
        product: spec.product.clone(),
        version: programs.version.clone(),
        build: build_of(programs.program(&server)).ok()?,
        engine: None,
        settings: BTreeMap::new(),
    };
    let mut reads = initdb_arguments(LOCALE);
    for program in [&initdb, &server] {
        reads.push(identity(programs.program(program)).ok()?);
    }
    Some(Initialising { shape, reads, is_own: |_| false })
}

fn initdb_arguments(locale: &str) -> Vec<String> {
    vec![
        format!("--username={USER}"),
        // What is in the data folder admits no other user, should a server ever be started
        // on it by other means; Dyno's own rules lie beside it.
        "--auth-local=trust".to_owned(),
        "--auth-host=reject".to_owned(),
        "--encoding=UTF8".to_owned(),
        format!("--locale={locale}"),
        // Data that are not there yet need no sync; the server keeps its own. The long form of
        // this option has two spellings.
        "-N".to_owned(),
        // What is in the folder when it fails shows what it has left in memory. The long form has two
        // spellings as well.
        "-n".to_owned(),
    ]
}

/// Makes the data folder, with the locale C.UTF-8, or C if the system lacks it.
fn make_data(
    folder: &ServerFolder,
    programs: &Programs,
    clock: &Arc<dyn Clock>,
) -> Result<(), DeployError> {
    let make = |locale: &str| {
        let process = ProcessSpec {
            program: programs.folder.join("initdb"),
            arguments: ["-D".to_owned(), folder.data().display().to_string()]
                .into_iter()
                .chain(initdb_arguments(locale))
                .chain(folder.logs().map(|logs| format!("--waldir={}", logs.display())))
                .collect(),
            log: folder.path().join("initdb.log"),
            needs_name: true,
            after_crash: after_crash(folder, programs),
            image: programs.image.clone(),
            mounts: folder.mounts(),
            ..ProcessSpec::default()
        };
        folder.keeper().run(folder.path(), &process, clock.as_ref(), MAKE_LIMIT)
    };
    match make(LOCALE) {
        Err(error) if error.0.contains("invalid locale name") => make("C"),
        other => other,
    }
    .map_err(|error| DeployError::new(format!("PostgreSQL: {error}")))
}

/// A server that dies leaves shared memory to the system, which only a reboot would free; one that `initdb`
/// starts does, too. A server that is started on its data finds and removes it; this one only looks, and
/// recovers nothing. None in a container: what it leaves in memory ends with it.
fn after_crash(folder: &ServerFolder, programs: &Programs) -> Option<AfterCrash> {
    if programs.image.is_some() {
        return None;
    }
    let look: &[&str] = if programs.major() >= 15 { &["--check"] } else { &["--boot", "-x0"] };
    let mut arguments: Vec<String> = look.iter().map(|&word| word.to_owned()).collect();
    arguments.extend(["-D".to_owned(), folder.data().display().to_string()]);
    Some(AfterCrash {
        // The data may be on a volume.
        if_there: folder.data().join("postmaster.pid"),
        program: programs.folder.join("postgres"),
        arguments,
        // Of this process, PostgreSQL does not ask whether it runs: it is meant for one that starts servers.
        pid_variable: Some("PG_GRANDPARENT_PID".to_owned()),
    })
}

fn with_reasons(error: DeployError) -> DeployError {
    let said = error.log[error.log.len().saturating_sub(3)..].join("; ");
    DeployError { message: format!("{}: {said}", error.message), ..error }
}

fn finish(
    spec: &ServerSpec,
    programs: &Programs,
    data: Option<&Path>,
    connection: &mut super::PgConnection,
) -> Result<(), DeployError> {
    let version = facts::version(connection)?;
    if let Some(wanted) = &spec.version
        && !version_fits(&version, wanted)
    {
        return Err(DeployError::new(format!(
            "PostgreSQL in {} is {version}, not {wanted}",
            programs.folder.display()
        )));
    }
    if data.is_none() && !matches!(spec.part, Part::Replica(_)) {
        connection.set_cold_limit(CATALOG_LIMIT.0);
        connection
            .query(&format!("CREATE DATABASE {CATALOG}"))
            .map_err(|error| statement_failed("create its database", error))?;
    }
    replica::admit(connection, (&spec.part, spec.open.as_ref()))
}

fn endpoint((folder, open): (&ServerFolder, Option<SocketAddrV4>), catalog: &str) -> Endpoint {
    Endpoint {
        protocol: super::PROTOCOL,
        address: Address::Unix(folder.run().join(settings::socket(open))),
        user: USER.to_owned(),
        password: None,
        catalog: catalog.to_owned(),
        tls: TlsMode::Off,
        server_public_key: None,
        session_options: None,
    }
}

impl Server for PrivateServer {
    fn dialect(&self) -> Dialect {
        Dialect::PostgreSql
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
        let configured = facts::configured(&self.endpoint);
        let Programs { origin, folder, .. } = self.programs.clone();
        let build = Some(BuildFacts { origin, programs: folder, configured });
        Ok(ServerFacts { build, ..facts::ask(&self.endpoint)? })
    }

    fn client_environment(&self) -> Vec<(String, String)> {
        self.endpoint.client_environment(|socket| {
            let (user, catalog) = (self.endpoint.user.clone(), self.endpoint.catalog.clone());
            let mut all = vec![("PGUSER", user), ("PGDATABASE", catalog)];
            // The socket of a server on a host is named after the port at which others connect.
            if let Some((folder, port)) = super::product::split_socket(socket) {
                all.push(("PGHOST", folder.display().to_string()));
                all.push(("PGPORT", port.to_owned()));
            }
            all
        })
    }

    fn probes(&self, threads: Option<&ThreadListing>) -> Vec<Box<dyn Probe>> {
        super::probe::probes(&self.connector(), threads)
    }

    fn debt_meter(&self) -> Result<Box<dyn DebtMeter>, String> {
        Ok(super::debt::meter(self.connector()))
    }

    fn stop(self: Box<Self>) -> Result<(), DeployError> {
        self.server.stop()
    }

    fn can_keep_data(&self) -> bool {
        true
    }

    fn stop_and_keep_data(self: Box<Self>, to: &Path) -> Result<(), DeployError> {
        self.server.stop_and_keep_data(to, |_| Ok(()))
    }
}
