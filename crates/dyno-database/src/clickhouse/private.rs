//! A private ClickHouse server. It has no Unix sockets for this, so it listens on a loopback port (and on another for
//! its own client) with a password made for it. The password is sent only once the server's own process is seen to hold
//! the port.

use std::path::Path;
use std::sync::Arc;

use dyno_host::{free_loopback_ports, random_token};
use dyno_units::Nanoseconds;
use dyno_workload::Connection;
use ring::digest::{SHA256, digest};

use super::connection::{self, ClickHouseConnection, Guard};
use super::programs::{FINDER, PROGRAM};
use super::settings::Ports;
use super::{facts, settings};
use crate::data::gone;
use crate::error::{Context, Result, fail};
use crate::private::{OwnServer, ServerControl, ServerFolder, ServerKind, ports};
use crate::running::Running;
use crate::settings::Settings;
use crate::transport::{ReadBuffer, Transport};
use crate::{
    Address, DeployError, Endpoint, Installation, Launch, Secret, Server, ServerFacts, ServerSpec,
};

const CATALOG: &str = "dyno";
const MAINTENANCE: &str = "default";

const PING_LIMIT: Nanoseconds = Nanoseconds::from_secs(2);

/// Folders in the data that are made anew by each server; one has the digest of the password.
const NOT_KEPT: [&str; 1] = ["preprocessed_configs"];

fn kind(all: Ports) -> ServerKind {
    let all: Vec<u16> = [all.http].into_iter().chain(all.native).collect();
    ServerKind { ports: ports(&all), ..ServerKind::new("ClickHouse") }
}

pub(super) fn check_spec(spec: &ServerSpec) -> Result<()> {
    if let Some(engine) = &spec.engine {
        return fail(format!(
            "the engine of ClickHouse's tables is not a setting of the server, so `{engine}` cannot be \
             chosen; leave `engine` out"
        ));
    }
    spec.check_alone("ClickHouse")
}

/// On another server's kept data, if any. Returns when it answers.
pub(super) fn start(launch: &Launch<'_>) -> Result<Box<dyn Server>> {
    let Launch { spec, data, place, clock } = *launch;
    check_spec(spec)?;
    let installation = FINDER.find(spec, place.keeper())?;
    let given = settings::spelled(&spec.settings)?;
    let all = free_loopback_ports(1 + usize::from(spec.admits_client))
        .context("there is no free loopback port for ClickHouse")?;
    let port = all[0];
    let ports = Ports { http: port, native: all.get(1).copied() };
    let kind = kind(ports);
    let password = random_token().context("no password can be generated")?;
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
    let arguments = vec![format!("--config-file={}", file.display())];
    let process = folder.server(spec, installation.programs.join(PROGRAM), arguments);
    let endpoint = Endpoint {
        password: Some(Secret::new(password)),
        ..Endpoint::plain(&super::PROTOCOL, Address::of_loopback(port), settings::USER, CATALOG)
    };
    let (server, ()) = OwnServer::start(folder, &process, kind, clock, || ping(&endpoint))
        .map_err(with_reasons)?;
    let guard = guard(server.control.clone(), port);
    let finished = finish(spec, (&installation, &given), data, (&endpoint, &guard));
    let server = server.prepared(finished)?;
    let connector = connection::connector(endpoint.clone(), Some(Arc::clone(&guard)));
    // Settings of the server itself, which it does not report.
    let mut of_server = given;
    of_server.retain(|name, _| settings::OF_SERVER.has(name));
    let facts = move |one: &Running| -> Result<ServerFacts> {
        let mut connection = open(&one.endpoint, &guard)?;
        let mut facts = facts::ask(&one.endpoint, &mut connection)?;
        facts.settings.extend(of_server.clone());
        let configured = facts::configured(&mut connection);
        Ok(ServerFacts { build: Some(installation.facts(configured)), ..facts })
    };
    Ok(Box::new(Running {
        connector,
        facts: Box::new(facts),
        client_port: ports.native,
        tidy,
        ..Running::new(server, endpoint)
    }))
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
    (installation, given): (&Installation, &Settings),
    data: Option<&Path>,
    (endpoint, guard): (&Endpoint, &Guard),
) -> Result<()> {
    let maintenance = Endpoint { catalog: MAINTENANCE.to_owned(), ..endpoint.clone() };
    let mut connection = open(&maintenance, guard)?;
    let version = facts::version(&mut connection)?;
    spec.check_version("ClickHouse", &installation.programs, &version)?;
    let reported = settings::reported(&mut connection)?;
    settings::check_taken(given, &reported).map_err(DeployError::new)?;
    if data.is_none() {
        connection
            .query(&format!("CREATE DATABASE {CATALOG}"))
            .context("ClickHouse: cannot create its database")?;
    }
    Ok(())
}

fn open(endpoint: &Endpoint, guard: &Guard) -> Result<ClickHouseConnection> {
    connection::open(endpoint, Some(guard)).map_err(|failure| failure.error.into())
}

fn tidy(data: &Path) -> Result<()> {
    for folder in NOT_KEPT.map(|name| data.join(name)) {
        let removed = std::fs::remove_dir_all(&folder);
        gone(removed).context(format!("{} cannot be removed", folder.display()))?;
    }
    Ok(())
}
