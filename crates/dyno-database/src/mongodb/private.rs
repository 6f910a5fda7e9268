//! A private FerretDB, reached only by its Unix socket, and how its program is found.

use std::path::{Path, PathBuf};

use dyno_host::{FileKind, Keeper};

use super::settings;
use crate::error::{Result, fail};
use crate::installation::Finder;
use crate::private::{OwnServer, ServerFolder, ServerKind};
use crate::running::Running;
use crate::settings::Settings;
use crate::{Address, Endpoint, Launch, Server, ServerFacts, ServerSpec};

const CATALOG: &str = "dyno";

/// The name of the user, who has no password: the folder of the socket admits no other.
const USER: &str = "dyno";

const SOCKET: &str = "mongodb.sock";

const KIND: ServerKind = ServerKind::new("FerretDB");

const PROGRAM: &str = "ferretdb";

pub(super) static FINDER: Finder = Finder {
    title: "FerretDB",
    program: PROGRAM,
    places: &["/usr/bin", "/usr/local/bin"],
    advice: "docs/documents.md says how to build it from its Go module;",
    version: version_in,
    // Its version does not say who built it.
    builder: |_, _| String::new(),
};

pub(super) fn check_spec(spec: &ServerSpec) -> Result<()> {
    if let Some(engine) = &spec.engine {
        return fail(format!(
            "Dyno starts FerretDB only with SQLite, so no other engine can be chosen: leave \
             `{engine}` out"
        ));
    }
    spec.check_alone("FerretDB")
}

/// Starts a private server and waits until it answers.
pub(super) fn start(launch: &Launch<'_>) -> Result<Box<dyn Server>> {
    let Launch { spec, data, place, clock } = *launch;
    check_spec(spec)?;
    if data.is_some() {
        return fail("FerretDB's data are not kept, so they cannot be reused");
    }
    let installation = FINDER.find(spec, place.keeper())?;
    check_version(&installation.version)?;
    let settings = settings::spelled(&spec.settings)?;
    spec.check_version("FerretDB", &installation.programs, &installation.version)?;
    let folder = ServerFolder::make(place, &spec.product)?;
    folder.put_data(None, KIND)?;
    let socket = folder.run().join(SOCKET);
    let arguments = arguments(&installation.programs.join(PROGRAM), &folder, &socket, &settings);
    let mut process = folder.server(spec, PathBuf::from("/bin/sh"), arguments);
    // It reports nothing to anybody.
    process.environment.push(("DO_NOT_TRACK".to_owned(), "true".to_owned()));
    let endpoint = Endpoint::plain(&super::PROTOCOL, Address::Unix(socket), USER, CATALOG);
    let reach = || super::open(&endpoint).map(drop).map_err(|error| error.message);
    let (server, ()) = OwnServer::start(folder, &process, KIND, clock, reach)?;
    let facts = move |one: &Running| -> Result<ServerFacts> {
        let mut facts = super::PROTOCOL.facts(&one.endpoint)?;
        facts.settings.extend(settings.clone());
        Ok(ServerFacts {
            durability: settings::durability(&settings),
            durability_settings: &settings::DURABILITY,
            build: Some(installation.facts(None)),
            ..facts
        })
    };
    let running = Running::new(server, endpoint);
    Ok(Box::new(Running { facts: Box::new(facts), can_keep_data: false, ..running }))
}

/// It does not start where one that was killed has left its socket, so that is removed first, as the server's user.
const START: &str = "rm -f \"$0\" && exec \"$@\"";

fn arguments(
    program: &Path,
    folder: &ServerFolder,
    socket: &Path,
    settings: &Settings,
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

/// What a file in the data folder holds: a database of SQLite, or its log.
pub(super) fn file_kind(path: &Path) -> FileKind {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if name.ends_with("-wal") || name.ends_with("-journal") {
        return FileKind::Logs;
    }
    if name.ends_with(".sqlite") { FileKind::TablesAndIndexes } else { FileKind::Other }
}

/// FerretDB 2 has no SQLite in it: it needs PostgreSQL with an extension.
fn check_version(version: &str) -> Result<()> {
    match version.starts_with("1.") {
        true => Ok(()),
        false => fail(format!(
            "FerretDB {version} stores its documents in a PostgreSQL with an extension, which Dyno \
             does not start; use version 1, or start it yourself and give its URL"
        )),
    }
}

fn version_in(folder: &Path, keeper: &Keeper) -> Option<String> {
    let program = folder.join(PROGRAM);
    std::fs::metadata(&program).ok().filter(|facts| facts.is_file())?;
    version_said(&keeper.ask(&program, &["--version"]).ok()?)
}

/// `version: v1.24.0` among other lines.
fn version_said(text: &str) -> Option<String> {
    let version = text.lines().find_map(|line| line.strip_prefix("version: "))?.trim();
    let version = version.strip_prefix('v').unwrap_or(version);
    version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_what_the_program_says() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(version_said(text).as_deref(), expected, "{text}");
        };
        check("version: v1.24.0\ncommit: unknown\nbranch: unknown\n", Some("1.24.0"));
        check("version: unknown\n", None);
        check("commit: v1\n", None);
        assert!(check_version("1.24.0").is_ok());
        assert!(check_version("2.0.0").unwrap_err().message.contains("use version 1"));
    }
}
