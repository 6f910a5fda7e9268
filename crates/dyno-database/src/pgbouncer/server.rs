//! A PgBouncer that Dyno starts and removes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_host::{Keeper, Probe, ProcessSpec, ThreadListing};
use dyno_units::{Reading, version_numbers};
use dyno_workload::{Connection, Connector, Dialect};

use super::configuration;
use crate::logs::LogFiles;
use crate::postgresql::{self, probe, settings};
use crate::private::{NO_PORTS, OwnServer, START_LIMIT, ServerFolder, ServerKind};
use crate::transport::CATALOG_LIMIT;
use crate::{
    Client, ClientSecret, DeployError, Endpoint, Place, Router, RouterLaunch, RouterSpec, Server,
    ServerFacts,
};

/// The catalog that is its console.
const CONSOLE: &str = "pgbouncer";

const CONFIGURATION_FILE: &str = "pgbouncer.ini";

/// From here on it knows statements with names in all modes.
const KNOWS_NAMES: [u32; 2] = [1, 21];

const KIND: ServerKind = ServerKind {
    product: "PgBouncer",
    stop_signal: "TERM",
    log_files: LogFiles::Named(&[]),
    ports: NO_PORTS,
    open: None,
    start_limit: START_LIMIT,
};

pub(super) struct PgBouncer {
    spec: RouterSpec,
}

impl PgBouncer {
    pub(super) fn new() -> PgBouncer {
        PgBouncer {
            spec: RouterSpec {
                name: "pgbouncer",
                title: "PgBouncer",
                member: "pooler",
                summary: "a pooler: many clients share few connections to PostgreSQL",
                fronts: &["postgresql"],
                shares_load: false,
                options: configuration::options(),
                confused_names: &[(
                    "proxysql",
                    "Dyno cannot start ProxySQL, because no package contains it; use a running \
                     one by its URL",
                )],
            },
        }
    }
}

fn program(keeper: &Keeper) -> Result<PathBuf, DeployError> {
    keeper.find_program("pgbouncer", &[]).ok_or_else(|| {
        DeployError::new(
            "the program `pgbouncer` is not on this machine; install it (Debian, Ubuntu: package \
             `pgbouncer`), or leave `behind` out",
        )
    })
}

/// The version of the program: `1.18.0`.
fn version(program: &Path, keeper: &Keeper) -> Result<String, DeployError> {
    let text = keeper.ask(program, &["--version"])?;
    let words = text.lines().next().and_then(|line| line.strip_prefix("PgBouncer "));
    words.map(str::to_owned).ok_or_else(|| {
        DeployError::new(format!("{} does not say that it is PgBouncer", program.display()))
    })
}

impl Router for PgBouncer {
    fn spec(&self) -> &RouterSpec {
        &self.spec
    }

    fn check(&self, place: &Place) -> Result<(), DeployError> {
        program(place.keeper()).map(drop)
    }

    fn readings(&self) -> &'static [Reading] {
        probe::pgbouncer::READINGS
    }

    fn start(&self, launch: &RouterLaunch<'_>) -> Result<Box<dyn Server>, DeployError> {
        let keeper = launch.place.keeper();
        let program = program(keeper)?;
        let version = version(&program, keeper)?;
        let folder = ServerFolder::make(launch.place, self.spec.name)?;
        let names = Names::of(&version, configuration::is_shared(&self.spec, launch));
        let folders = (folder.path(), &*folder.run());
        let text = configuration::text(&self.spec, launch, folders)? + names.line();
        if let Some(listening) = launch.open {
            let passwords = configuration::passwords(listening);
            keeper.write_secret(folder.path(), configuration::PASSWORD_FILE, &passwords)?;
        }
        let file = folder.write(CONFIGURATION_FILE, &text)?;
        let process = ProcessSpec {
            program,
            arguments: vec![file.display().to_string()],
            log: folder.log(),
            cpus: launch.cpus.to_vec(),
            ..ProcessSpec::default()
        };
        let endpoint = launch.endpoint(folder.run().join(settings::SOCKET));
        let console = Endpoint { catalog: CONSOLE.to_owned(), ..endpoint.clone() };
        let reach = || postgresql::connect(&console).map_err(|error| error.reason);
        let kind = ServerKind { open: launch.open.map(|listening| listening.address), ..KIND };
        let (server, connection) =
            OwnServer::start(folder, &process, kind, launch.clock, reach).map_err(with_reasons)?;
        drop(connection);
        let connector = match names {
            Names::Parsed => postgresql::pooled_connector(endpoint.clone()),
            Names::Kept | Names::Tracked => postgresql::connector(endpoint.clone()),
        };
        let transport = launch.transport();
        Ok(Box::new(Pooler { server, endpoint, console, connector, version, transport, names }))
    }

    fn notes(&self, launch: &RouterLaunch<'_>) -> Vec<String> {
        let mut notes = Vec::new();
        let version = program(launch.place.keeper())
            .and_then(|program| version(&program, launch.place.keeper()));
        let is_shared = configuration::is_shared(&self.spec, launch);
        if let Ok(version) = version
            && Names::of(&version, is_shared) == Names::Parsed
        {
            notes.push(format!(
                "PgBouncer {version} does not support prepared statements in mode `{}`: each \
                 statement is parsed for each execution",
                launch.option(&self.spec, "pool_mode")
            ));
        }
        let size = configuration::pool_size(&self.spec, launch);
        if !is_shared && size < launch.clients {
            notes.push(format!(
                "in mode `session` a client keeps its connection to the server until it disconnects: {size} \
                 of {} clients are served, and the others wait",
                launch.clients
            ));
        }
        notes
    }

    fn client(&self, endpoint: &Endpoint) -> Option<Client> {
        let arguments = vec![endpoint.to_string()];
        let secret =
            endpoint.password.clone().map(|word| ClientSecret::Variable("PGPASSWORD", word));
        Some(Client { programs: &["psql"], arguments, secret })
    }
}

fn with_reasons(error: DeployError) -> DeployError {
    let said = error.log[error.log.len().saturating_sub(3)..].join("; ");
    DeployError { message: format!("{}: {said}", error.message), ..error }
}

/// What becomes of statements that clients prepare under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    /// A client keeps its server, which knows them.
    Kept,
    /// The pooler sees to it that each server knows them.
    Tracked,
    /// The pooler does not know them: each statement is parsed for each execution.
    Parsed,
}

impl Names {
    fn of(version: &str, is_shared: bool) -> Names {
        match (is_shared, version_numbers(version) >= KNOWS_NAMES.to_vec()) {
            (false, _) => Names::Kept,
            (true, true) => Names::Tracked,
            (true, false) => Names::Parsed,
        }
    }

    fn line(self) -> &'static str {
        if self == Names::Tracked { "max_prepared_statements = 200\n" } else { "" }
    }

    fn words(self) -> &'static str {
        match self {
            Names::Kept => "kept by the client's own connection",
            Names::Tracked => "tracked by the pooler",
            Names::Parsed => {
                "none: this version does not support named statements, so each statement is \
                 parsed for each execution"
            }
        }
    }
}

struct Pooler {
    server: OwnServer,
    endpoint: Endpoint,
    console: Endpoint,
    connector: Connector,
    version: String,
    transport: &'static str,
    names: Names,
}

impl Server for Pooler {
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
        let failed = |error: &dyn std::fmt::Display| {
            DeployError::new(format!("PgBouncer's console does not respond: {error}"))
        };
        let mut console = postgresql::connect(&self.console).map_err(|error| failed(&error))?;
        console.set_cold_limit(CATALOG_LIMIT.0);
        let rows = console.query("SHOW CONFIG").map_err(|error| failed(&error))?;
        let pairs = rows.into_iter().filter_map(|row| {
            let mut cells = row.into_iter();
            Some((cells.next()??, cells.next()?.unwrap_or_default()))
        });
        let names = ("dyno.prepared_statements".to_owned(), self.names.words().to_owned());
        Ok(ServerFacts {
            product: "PgBouncer".to_owned(),
            version: self.version.clone(),
            transport: self.transport,
            settings: pairs.chain([names]).collect(),
            ..ServerFacts::default()
        })
    }

    fn supports_named_statements(&self) -> bool {
        self.names != Names::Parsed
    }

    fn stores_data(&self) -> bool {
        false
    }

    fn probes(&self, _: Option<&ThreadListing>) -> Vec<Box<dyn Probe>> {
        vec![probe::pgbouncer::probe(postgresql::connector(self.console.clone()))]
    }

    /// Asks its console: its servers may all be with clients.
    fn check_alive(&self) -> Result<(), DeployError> {
        self.facts().map(drop)
    }

    fn stop(self: Box<Self>) -> Result<(), DeployError> {
        self.server.discard()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_statements_are_left_out_where_the_pooler_does_not_know_them() {
        let check = |version: &str, is_shared: bool, expected: Names| {
            assert_eq!(Names::of(version, is_shared), expected, "{version} {is_shared}");
        };
        check("1.18.0", false, Names::Kept);
        check("1.18.0", true, Names::Parsed);
        check("1.21.0", true, Names::Tracked);
        check("1.24.1", true, Names::Tracked);
        assert_eq!(Names::Parsed.line(), "");
        assert!(Names::Tracked.line().starts_with("max_prepared_statements"));
    }
}
