//! PgBouncer, a pooler for PostgreSQL: many clients share few connections.

mod configuration;

use std::path::PathBuf;
use std::sync::Arc;

use dyno_host::{Keeper, ProcessSpec};
use dyno_units::{Reading, version_numbers};
use dyno_workload::Connection;

use crate::error::{Context, Result};
use crate::postgresql::{self, probe, settings};
use crate::private::{OwnServer, ServerFolder, ServerKind};
use crate::product::Family;
use crate::running::Running;
use crate::settings::Settings;
use crate::transport::CATALOG_LIMIT;
use crate::{Client, DeployError, Endpoint, Router, RouterLaunch, RouterSpec, Server, ServerFacts};

/// The catalog that is its console.
const CONSOLE: &str = "pgbouncer";

const CONFIGURATION_FILE: &str = "pgbouncer.ini";

/// From here on it knows statements with names in all modes.
const KNOWS_NAMES: [u32; 2] = [1, 21];

/// For the registry. The probe and the console's words belong to PostgreSQL's protocol.
pub(crate) const FAMILY: Family = Family {
    routers: || vec![Arc::new(PgBouncer::new())],
    probes: &["pgbouncer"],
    ..Family::of(Vec::new)
};

struct PgBouncer {
    spec: RouterSpec,
}

impl PgBouncer {
    fn new() -> PgBouncer {
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

    fn program(&self, keeper: &Keeper) -> Result<(PathBuf, String)> {
        let program = self.spec.program(keeper)?;
        let version = self.spec.version((&program, keeper), "--version", "PgBouncer ")?;
        Ok((program, version))
    }
}

impl Router for PgBouncer {
    fn spec(&self) -> &RouterSpec {
        &self.spec
    }

    fn readings(&self) -> &'static [Reading] {
        probe::pgbouncer::READINGS
    }

    fn start(&self, launch: &RouterLaunch<'_>) -> Result<Box<dyn Server>> {
        let keeper = launch.place.keeper();
        let (program, version) = self.program(keeper)?;
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
        let open = launch.open.map(|listening| listening.address);
        let kind = ServerKind { open, ..ServerKind::new("PgBouncer") };
        let (server, connection) = OwnServer::start(folder, &process, kind, launch.clock, reach)
            .map_err(DeployError::with_last_words)?;
        drop(connection);
        let connector = match names {
            Names::Parsed => postgresql::pooled_connector(endpoint.clone()),
            Names::Kept | Names::Tracked => postgresql::connector(endpoint.clone()),
        };
        let transport = launch.transport();
        let to = postgresql::connector(console.clone());
        let facts = move |_: &Running| -> Result<ServerFacts> {
            Ok(ServerFacts {
                product: "PgBouncer".to_owned(),
                version: version.clone(),
                transport,
                settings: ask(&console, names)?,
                ..ServerFacts::default()
            })
        };
        Ok(Box::new(Running {
            connector,
            facts: Box::new(facts),
            probes: Box::new(move |_| vec![probe::pgbouncer::probe(to.clone())]),
            // Its servers may all be with clients.
            check_alive: Box::new(|one| one.facts().map(drop)),
            supports_named_statements: names != Names::Parsed,
            ..Running::router(server, endpoint)
        }))
    }

    fn notes(&self, launch: &RouterLaunch<'_>) -> Vec<String> {
        let mut notes = Vec::new();
        let is_shared = configuration::is_shared(&self.spec, launch);
        if let Ok((_, version)) = self.program(launch.place.keeper())
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
        (postgresql::PROTOCOL.client)(endpoint, "")
    }
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

fn ask(console: &Endpoint, names: Names) -> Result<Settings> {
    let failed = "PgBouncer's console does not respond";
    let mut console = postgresql::connect(console).context(failed)?;
    console.set_cold_limit(CATALOG_LIMIT.0);
    let rows = console.query("SHOW CONFIG").context(failed)?;
    let pairs = rows.into_iter().filter_map(|row| {
        let mut cells = row.into_iter();
        Some((cells.next()??, cells.next()?.unwrap_or_default()))
    });
    let names = ("dyno.prepared_statements".to_owned(), names.words().to_owned());
    Ok(pairs.chain([names]).collect())
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
