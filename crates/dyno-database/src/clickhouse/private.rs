//! A private ClickHouse server: made, started, stopped and removed by Dyno.
//!
//! The server has no sockets of the file system for this, so it listens on a port of the loopback (and on
//! another one if its own client is to reach it), and has a password that is made for it. The password is sent only after it was seen that the server's own
//! process holds the port.

use std::path::Path;
use std::sync::Arc;

use dyno_host::{Probe, ProcessSpec, ThreadListing, free_loopback_ports, random_token};
use dyno_units::Nanoseconds;
use dyno_workload::{Connection, Connector, Dialect};
use ring::digest::{SHA256, digest};

use super::connection::{self, ClickHouseConnection, Guard};
use super::programs::{self, PROGRAM};
use super::settings::Ports;
use super::{facts, settings, statement_failed};
use crate::control::ServerControl;
use crate::logs::LogFiles;
use crate::private::{OwnServer, START_LIMIT, ServerFolder, ServerKind, ports};
use crate::transport::{ReadBuffer, Transport};
use crate::{
    Address, DeployError, Endpoint, Installation, Launch, Part, Secret, Server, ServerFacts,
    ServerSpec, TlsMode, version_fits,
};

const CATALOG: &str = "dyno";
const MAINTENANCE: &str = "default";

const PING_LIMIT: Nanoseconds = Nanoseconds::from_secs(2);

/// Folders in the data that are made anew by each server; one has the digest of the password.
const NOT_KEPT: [&str; 1] = ["preprocessed_configs"];

fn kind(all: Ports) -> ServerKind {
    let all: Vec<u16> = [all.http].into_iter().chain(all.native).collect();
    ServerKind {
        product: "ClickHouse",
        stop_signal: "TERM",
        log_files: LogFiles::Named(&[]),
        ports: ports(&all),
        open: None,
        start_limit: START_LIMIT,
    }
}

struct PrivateServer {
    server: OwnServer,
    endpoint: Endpoint,
    guard: Guard,
    connector: Connector,
    installation: Installation,
    /// Settings of the server itself, which it does not report.
    of_server: Vec<(String, String)>,
    ports: Ports,
}

pub(super) fn check_spec(spec: &ServerSpec) -> Result<(), DeployError> {
    if let Some(engine) = &spec.engine {
        return Err(DeployError::new(format!(
            "the engine of ClickHouse's tables is not a setting of the server, so `{engine}` cannot be \
             chosen; leave `engine` out"
        )));
    }
    if !matches!(spec.part, Part::Alone) {
        return Err(DeployError::new(
            "Dyno starts only single ClickHouse servers: no replicas and no clusters",
        ));
    }
    Ok(())
}

/// Starts a private server, on the kept data of another one if there are any, and waits until it
/// answers.
pub(super) fn start(launch: &Launch<'_>) -> Result<Box<dyn Server>, DeployError> {
    let Launch { spec, data, place, clock } = *launch;
    check_spec(spec)?;
    let installation = programs::find(spec, place.keeper())?;
    let given = settings::spelled(&spec.settings)?;
    let all = free_loopback_ports(1 + usize::from(spec.admits_client)).map_err(no_port)?;
    let port = all[0];
    let ports = Ports { http: port, native: all.get(1).copied() };
    let kind = kind(ports);
    let password = random_token()
        .map_err(|error| DeployError::new(format!("no password can be generated: {error}")))?;
    let folder = ServerFolder::make(place, &spec.product)?;
    let hash: String = digest(&SHA256, password.as_bytes())
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let users = folder.write(settings::USERS_FILE, &settings::users(&given, &hash))?;
    let (data_folder, tmp) = (folder.data(), folder.tmp());
    let places = settings::Places { data: &data_folder, tmp: &tmp, users: &users };
    let text = settings::configuration(&given, ports, &places)?;
    let file = folder.write(settings::CONFIGURATION_FILE, &text)?;
    folder.put_data(data, kind)?;
    let process = ProcessSpec {
        program: installation.programs.join(PROGRAM),
        arguments: vec![format!("--config-file={}", file.display())],
        environment: vec![("TMPDIR".to_owned(), tmp.display().to_string())],
        log: folder.log(),
        cpus: spec.cpus.clone(),
        limits: spec.limits,
        ..ProcessSpec::default()
    };
    let endpoint = endpoint(port, Secret::new(password));
    let (server, ()) = OwnServer::start(folder, &process, kind, clock, || ping(&endpoint))
        .map_err(with_reasons)?;
    let guard = guard(server.control(), port);
    match finish(spec, (&installation, &given), data, (&endpoint, &guard)) {
        Ok(()) => {
            let connector = connection::connector(endpoint.clone(), Some(Arc::clone(&guard)));
            let of_server = given
                .into_iter()
                .filter(|(name, _)| settings::OF_SERVER.contains(&name.as_str()))
                .collect();
            Ok(Box::new(PrivateServer {
                server,
                endpoint,
                guard,
                connector,
                installation,
                of_server,
                ports,
            }))
        }
        Err(error) => {
            // The first error is the one to report.
            let _ = server.stop();
            Err(error)
        }
    }
}

fn no_port(error: std::io::Error) -> DeployError {
    DeployError::new(format!("there is no free loopback port for ClickHouse: {error}"))
}

/// The error of a server that did not start, with the errors in its log: the rest are traces of its stack.
fn with_reasons(error: DeployError) -> DeployError {
    let said: Vec<&str> = error
        .log
        .iter()
        .filter_map(|line| line.split_once("<Error> Application: ").map(|(_, why)| why))
        .collect();
    match said.is_empty() {
        true => error,
        false => {
            DeployError { message: format!("{}: {}", error.message, said.join("; ")), ..error }
        }
    }
}

/// Whether something answers at the port as ClickHouse does; it is sent no password.
fn ping(endpoint: &Endpoint) -> Result<(), String> {
    let ask = || -> std::io::Result<bool> {
        let mut transport = Transport::open(endpoint)?;
        transport.begin_cold(PING_LIMIT)?;
        let request = b"GET /ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        transport.write_some(request)?;
        let mut received = ReadBuffer::new();
        while received.unread().len() < 1024 && transport.read_some(&mut received)? > 0 {}
        Ok(memchr::memmem::find(received.unread(), b"Ok.").is_some())
    };
    match ask() {
        Ok(true) => Ok(()),
        Ok(false) => Err("it does not respond like ClickHouse".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn guard(control: ServerControl, port: u16) -> Guard {
    Arc::new(move || match control.listens()?.contains(&format!("127.0.0.1:{port}")) {
        true => Ok(()),
        false => Err(format!(
            "port {port} is not held by the ClickHouse that Dyno started, so it is not sent the \
                 password"
        )),
    })
}

/// Checks version and settings, and makes the catalog.
fn finish(
    spec: &ServerSpec,
    (installation, given): (&Installation, &std::collections::BTreeMap<String, String>),
    data: Option<&Path>,
    (endpoint, guard): (&Endpoint, &Guard),
) -> Result<(), DeployError> {
    let maintenance = Endpoint { catalog: MAINTENANCE.to_owned(), ..endpoint.clone() };
    let mut connection = open(&maintenance, guard)?;
    let version = facts::version(&mut connection)?;
    if let Some(wanted) = &spec.version
        && !version_fits(&version, wanted)
    {
        return Err(DeployError::new(format!(
            "ClickHouse in {} is {version}, not {wanted}",
            installation.programs.display()
        )));
    }
    let reported = settings::reported(&mut connection)?;
    settings::check_taken(given, &reported).map_err(DeployError::new)?;
    if data.is_none() {
        connection
            .query(&format!("CREATE DATABASE {CATALOG}"))
            .map_err(|error| statement_failed("create its database", error))?;
    }
    Ok(())
}

fn open(endpoint: &Endpoint, guard: &Guard) -> Result<ClickHouseConnection, DeployError> {
    connection::open(endpoint, Some(guard))
        .map_err(|failure| DeployError::new(failure.error.to_string()))
}

fn endpoint(port: u16, password: Secret) -> Endpoint {
    Endpoint {
        protocol: super::PROTOCOL,
        address: Address::Tcp { host: "127.0.0.1".to_owned(), port },
        user: settings::USER.to_owned(),
        password: Some(password),
        catalog: CATALOG.to_owned(),
        tls: TlsMode::Off,
        server_public_key: None,
        session_options: None,
    }
}

impl Server for PrivateServer {
    fn dialect(&self) -> Dialect {
        Dialect::ClickHouse
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
        let mut connection = open(&self.endpoint, &self.guard)?;
        let mut facts = facts::ask(&self.endpoint, &mut connection)?;
        facts.settings.extend(self.of_server.iter().cloned());
        let configured = facts::configured(&mut connection);
        Ok(ServerFacts { build: Some(self.installation.facts(configured)), ..facts })
    }

    fn client_port(&self) -> Option<u16> {
        self.ports.native
    }

    fn blocks_worker(&self) -> bool {
        true
    }

    fn probes(&self, _: Option<&ThreadListing>) -> Vec<Box<dyn Probe>> {
        super::probe::probes(&self.connector())
    }

    fn stop(self: Box<Self>) -> Result<(), DeployError> {
        self.server.stop()
    }

    fn can_keep_data(&self) -> bool {
        true
    }

    fn stop_and_keep_data(self: Box<Self>, to: &Path) -> Result<(), DeployError> {
        self.server.stop_and_keep_data(to, |data| {
            for name in NOT_KEPT {
                match std::fs::remove_dir_all(data.join(name)) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(DeployError::new(format!(
                            "{} cannot be removed: {error}",
                            data.join(name).display()
                        )));
                    }
                    _ => {}
                }
            }
            Ok(())
        })
    }
}
