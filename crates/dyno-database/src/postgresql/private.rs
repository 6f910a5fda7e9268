//! A private PostgreSQL server.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::path::Path;
use std::sync::Arc;

use dyno_host::{AfterCrash, ProcessSpec};
use dyno_units::{Clock, Nanoseconds};
use dyno_workload::Connection;

use super::product::split_socket;
use super::{connect, facts, programs, replica, settings, shards};
use crate::data::build_of;
use crate::error::{Context, Result, fail};
use crate::initial::{Initialising, identity};
use crate::logs::LogFiles;
use crate::private::{OwnServer, ServerFolder, ServerKind};
use crate::running::Running;
use crate::transport::CATALOG_LIMIT;
use crate::{
    Address, DataShape, DeployError, Endpoint, Installation, Launch, Part, Server, ServerFacts,
    ServerSpec,
};

/// The superuser that `initdb` makes.
const USER: &str = "dyno";
const CATALOG: &str = crate::part::CLIENT_CATALOG;
const LOCALE: &str = "C.UTF-8";
const MAKE_LIMIT: Nanoseconds = Nanoseconds::from_secs(120);
/// A fast shutdown ends connections and writes pages.
const KIND: ServerKind = ServerKind {
    stop_signal: "INT",
    log_files: LogFiles::Folder("pg_wal"),
    ..ServerKind::new("PostgreSQL")
};

/// Starts a private server, on the kept data of another one if there are any, and waits until it
/// answers.
pub(super) fn start(launch: &Launch<'_>) -> Result<Box<dyn Server>> {
    let Launch { spec, data, place, clock } = *launch;
    if let Some(engine) = &spec.engine {
        return fail(format!("PostgreSQL has no storage engine `{engine}`; leave `engine` out"));
    }
    let installation = programs::find(spec, place.keeper())?;
    if spec.part == Part::Router {
        shards::check(&installation)?;
    }
    let folder = ServerFolder::make(place, &spec.product)?;
    let of_part = replica::settings_of(&spec.part);
    let configuration = settings::configuration(&spec.settings, &folder.data(), of_part)?;
    folder.write(settings::CONFIGURATION_FILE, &configuration)?;
    folder.write(
        settings::ACCESS_FILE,
        &replica::access(&spec.part, spec.open.is_some(), installation.major()),
    )?;
    // A replica's data come from its primary.
    let data = data.filter(|_| !matches!(spec.part, Part::Replica(_)));
    match (&spec.part, data) {
        (Part::Replica(follow), _) => {
            folder.put_data(None, KIND)?;
            replica::copy_primary(&folder, &installation, follow, clock)?;
        }
        (_, None) => {
            let initialising = initialising(&installation, spec);
            let make = || make_data(&folder, &installation, clock);
            folder.put_initial_data(initialising, clock, make)?;
        }
        (_, Some(_)) => folder.put_data(data, KIND)?,
    }
    let open = spec.open.as_ref().map(|listening| listening.address);
    let arguments = settings::arguments(folder.path(), &folder.data(), &folder.run(), open);
    let process = ProcessSpec {
        after_crash: after_crash(&folder, &installation),
        image: installation.image.clone(),
        ..folder.server(spec, installation.programs.join("postgres"), arguments)
    };
    let maintenance = endpoint((&folder, open), "postgres");
    let endpoint = endpoint((&folder, open), CATALOG);
    let reach = || connect(&maintenance).map_err(|error| error.reason);
    let (server, mut connection) =
        OwnServer::start(folder, &process, ServerKind { open, ..KIND }, clock, reach)
            .map_err(DeployError::with_last_words)?;
    let finished = finish(spec, &installation, data, &mut connection);
    drop(connection);
    let facts = move |one: &Running| -> Result<ServerFacts> {
        let build = Some(installation.facts(facts::configured(&one.endpoint)));
        Ok(ServerFacts { build, ..facts::ask(&one.endpoint)? })
    };
    let running = Running::new(server.prepared(finished)?, endpoint);
    Ok(Box::new(Running { facts: Box::new(facts), client_variables, ..running }))
}

fn client_variables(endpoint: &Endpoint, socket: &Path) -> Vec<(&'static str, String)> {
    let (user, catalog) = (endpoint.user.clone(), endpoint.catalog.clone());
    let mut all = vec![("PGUSER", user), ("PGDATABASE", catalog)];
    // The socket of a server on a host is named after the port at which others connect.
    if let Some((folder, port)) = split_socket(socket) {
        all.push(("PGHOST", folder.display().to_string()));
        all.push(("PGPORT", port.to_owned()));
    }
    all
}

/// `initdb` reads no setting of the study. None in a deployment, where copies share a system identifier.
fn initialising(installation: &Installation, spec: &ServerSpec) -> Option<Initialising> {
    if spec.part != Part::Alone {
        return None;
    }
    let [initdb, server] = ["initdb", "postgres"].map(|name| installation.programs.join(name));
    let shape = DataShape {
        product: spec.product.clone(),
        version: installation.version.clone(),
        build: build_of(installation.program(&server)).ok()?,
        engine: None,
        settings: BTreeMap::new(),
    };
    let mut reads = initdb_arguments(LOCALE);
    for program in [&initdb, &server] {
        reads.push(identity(installation.program(program)).ok()?);
    }
    Some(Initialising { shape, reads, is_own: |_| false })
}

fn initdb_arguments(locale: &str) -> Vec<String> {
    vec![
        format!("--username={USER}"),
        // The data folder's rules admit no other user, should a server be started on it by other
        // means; Dyno's own rules lie beside it.
        "--auth-local=trust".to_owned(),
        "--auth-host=reject".to_owned(),
        "--encoding=UTF8".to_owned(),
        format!("--locale={locale}"),
        // Data that are not there yet need no sync. The long option has two spellings.
        "-N".to_owned(),
        // Keeps a failure's files. The long option has two spellings.
        "-n".to_owned(),
    ]
}

/// Makes the data folder, with the locale C.UTF-8, or C if the system lacks it.
fn make_data(
    folder: &ServerFolder,
    installation: &Installation,
    clock: &Arc<dyn Clock>,
) -> Result<()> {
    let make = |locale: &str| {
        let process = ProcessSpec {
            program: installation.programs.join("initdb"),
            arguments: ["-D".to_owned(), folder.data().display().to_string()]
                .into_iter()
                .chain(initdb_arguments(locale))
                .chain(folder.logs().map(|logs| format!("--waldir={}", logs.display())))
                .collect(),
            log: folder.path().join("initdb.log"),
            needs_name: true,
            after_crash: after_crash(folder, installation),
            image: installation.image.clone(),
            mounts: folder.mounts(),
            ..ProcessSpec::default()
        };
        folder.keeper().run(folder.path(), &process, clock.as_ref(), MAKE_LIMIT)
    };
    match make(LOCALE) {
        Err(error) if error.0.contains("invalid locale name") => make("C"),
        other => other,
    }
    .context("PostgreSQL")
}

/// A crashed server, also `initdb`'s, leaves shared memory until a reboot. A server started on its data
/// removes it; this one only looks, and recovers nothing. None in a container, whose memory ends with it.
fn after_crash(folder: &ServerFolder, installation: &Installation) -> Option<AfterCrash> {
    if installation.image.is_some() {
        return None;
    }
    let look: &[&str] = if installation.major() >= 15 { &["--check"] } else { &["--boot", "-x0"] };
    let mut arguments: Vec<String> = look.iter().map(|&word| word.to_owned()).collect();
    arguments.extend(["-D".to_owned(), folder.data().display().to_string()]);
    Some(AfterCrash {
        // The data may be on a volume.
        if_there: folder.data().join("postmaster.pid"),
        program: installation.programs.join("postgres"),
        arguments,
        // Of this process, PostgreSQL does not ask whether it runs: it is meant for one that starts servers.
        pid_variable: Some("PG_GRANDPARENT_PID".to_owned()),
    })
}

fn finish(
    spec: &ServerSpec,
    installation: &Installation,
    data: Option<&Path>,
    connection: &mut super::PgConnection,
) -> Result<()> {
    spec.check_version("PostgreSQL", &installation.programs, &facts::version(connection)?)?;
    if data.is_none() && !matches!(spec.part, Part::Replica(_)) {
        connection.set_cold_limit(CATALOG_LIMIT.0);
        connection
            .query(&format!("CREATE DATABASE {CATALOG}"))
            .context("PostgreSQL: cannot create its database")?;
    }
    replica::admit(connection, (&spec.part, spec.open.as_ref()))
}

fn endpoint((folder, open): (&ServerFolder, Option<SocketAddrV4>), catalog: &str) -> Endpoint {
    let socket = folder.run().join(settings::socket(open));
    Endpoint::plain(&super::PROTOCOL, Address::Unix(socket), USER, catalog)
}
