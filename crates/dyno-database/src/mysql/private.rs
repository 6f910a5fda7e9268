//! A private server in a folder of its own, from the programs on this machine.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use dyno_host::ProcessSpec;
use dyno_units::{Clock, Nanoseconds, version_numbers};
use dyno_workload::{Connection, StatementError};

use super::install::{Brand, Install, find_install};
use super::option_file::{self, OptionFile, SOCKET};
use super::{MySqlConnection, facts, galera, group, replica, spider};
use crate::data::gone;
use crate::error::{Context, Result, fail};
use crate::initial::{Initialising, identity};
use crate::logs::LogFiles;
use crate::private::{LOG_LINES, OwnServer, ServerControl, ServerFolder, ServerKind};
use crate::running::Running;
use crate::transport::CATALOG_LIMIT;
use crate::{
    Address, BuildFacts, DeployError, Endpoint, Launch, Part, Secret, Server, ServerFacts,
    ServerSpec, version_fits,
};

const CATALOG: &str = crate::part::CLIENT_CATALOG;

const INSTALL_LIMIT: Nanoseconds = Nanoseconds::from_secs(180);

/// How long a node that joins may take: the data are copied to it.
const JOIN_LIMIT: Nanoseconds = Nanoseconds::from_secs(1800);

/// InnoDB's list of the pages in its buffer pool, by its default name.
const BUFFER_POOL_FILE: &str = "ib_buffer_pool";

fn kind(brand: &Brand) -> ServerKind {
    let log_files = LogFiles::Named(&["ib_logfile", "#innodb_redo", "binlog"]);
    ServerKind { log_files, ..ServerKind::new(brand.title) }
}

/// On another server's kept data, if any. Returns when it answers.
pub(super) fn start(launch: &Launch<'_>) -> Result<Box<dyn Server>> {
    let Launch { spec, data, place, clock } = *launch;
    let install = find_install(spec, place.keeper())?;
    if spec.part == Part::Router {
        spider::check(&install)?;
    }
    let folder = ServerFolder::make(place, &spec.product)?;
    check_path(&install, folder.path())?;
    let option_file = OptionFile::of(spec, &folder, &install);
    folder.write("my.cnf", &option_file.text()?)?;
    let ports = replica::ports(&spec.part);
    let open = spec.open.as_ref().map(|listening| listening.address);
    let kind = ServerKind { ports, open, ..kind(Brand::of(spec)) };
    let node = match &spec.part {
        Part::Node(node) => Some(node),
        _ => None,
    };
    let of_galera = node.filter(|_| install.is_mariadb());
    // All that a node of a Galera cluster has which joins comes from another one, if it does not begin with it.
    let joins = of_galera.is_some_and(|node| node.number > 1 && node.joins_at.is_none());
    let kind = if joins { ServerKind { start_limit: JOIN_LIMIT, ..kind } } else { kind };
    let is_new = data.is_none() && !joins;
    if is_new {
        let make = || make_system_tables(&folder, &install, clock);
        folder.put_initial_data(initialising(&option_file, spec), clock, make)?;
    } else {
        folder.put_data(data, kind)?;
        replica::forget_identity(&folder, &spec.part)?;
    }
    let transfer = of_galera.map(|node| {
        galera::put_position(&folder, node)?;
        galera::put_transfer(&folder, spec.open.is_some())
    });
    let arguments = vec![option_file_argument(&folder)];
    let mut process = ProcessSpec {
        image: install.image.clone(),
        ..folder.server(spec, install.server.clone(), arguments)
    };
    process.environment.extend(transfer.transpose()?);
    let socket = Address::Unix(folder.run().join(SOCKET));
    let endpoint = Endpoint::plain(&super::PROTOCOL, socket, "root", CATALOG);
    let installed = install_log(&folder);
    let reach = || -> Result<_, String> {
        let opened = MySqlConnection::open(&endpoint, None);
        let mut connection = opened.map_err(|error| error.to_string())?;
        of_galera.map_or(Ok(()), |node| galera::has_joined(&mut connection, node))?;
        Ok(connection)
    };
    let (server, mut connection) = OwnServer::start(folder, &process, kind, clock, reach)
        .map_err(|error| with_reasons(error, installed))?;
    let prepared = prepare(launch, (&server, &install, is_new), (&mut connection, &endpoint))
        .map_err(|error| DeployError { log: server.folder.log_tail(LOG_LINES), ..error });
    // The password of clients on other machines, if the server has to be told of it each time it is started.
    let is_told = replica::is_told(&connection);
    let told = spec.open.as_ref().filter(|_| is_told).map(|open| open.password.clone());
    let running = Running::new(server.prepared(prepared)?, endpoint);
    let is_mariadb = install.is_mariadb();
    let control = move |one: &Running| control(one, is_mariadb, told.as_ref());
    let facts = move |one: &Running| -> Result<ServerFacts> {
        let asked = super::endpoint_facts(&one.endpoint)?;
        let build = BuildFacts {
            origin: install.origin.clone(),
            programs: install.server.parent().unwrap_or(Path::new("/")).to_owned(),
            configured: facts::configured(&asked.settings),
        };
        Ok(ServerFacts { build: Some(build), ..asked })
    };
    let (control, facts) = (Box::new(control), Box::new(facts));
    Ok(Box::new(Running { facts, control, node: node.cloned(), tidy, ..running }))
}

/// Makes a server that is up what it is to be.
fn prepare(
    launch: &Launch<'_>,
    (server, install, is_new): (&OwnServer, &Install, bool),
    (connection, endpoint): (&mut MySqlConnection, &Endpoint),
) -> Result<()> {
    let spec = launch.spec;
    check_version(spec, connection.version())?;
    if is_new {
        settle(connection).context("the new server cannot be set up")?;
    }
    replica::follow(connection, &spec.part)?;
    replica::admit(connection, endpoint, (&spec.part, spec.open.as_ref()))?;
    let Part::Node(node) = &spec.part else { return Ok(()) };
    if install.is_mariadb() {
        return Ok(());
    }
    let clock = launch.clock.as_ref();
    group::join(connection, (node, CATALOG), &spec.settings, clock).map_err(|error| {
        let log = server.folder.log_tail(LOG_LINES);
        with_reasons(DeployError { log, ..error }, Vec::new())
    })
}

/// The program that makes MariaDB's system tables is a shell script that splits paths at blanks.
fn check_path(install: &Install, folder: &Path) -> Result<()> {
    let has_blank = folder.to_string_lossy().contains(char::is_whitespace);
    if !(has_blank && install.is_mariadb()) {
        return Ok(());
    }
    fail(format!(
        "MariaDB cannot be set up in {}, because its install program does not work in a folder \
         whose path contains a space; choose another data folder",
        folder.display()
    ))
}

fn option_file_argument(folder: &ServerFolder) -> String {
    format!("--defaults-file={}", folder.path().join("my.cnf").display())
}

fn initialising(option_file: &OptionFile<'_>, spec: &ServerSpec) -> Option<Initialising> {
    let install = option_file.install;
    let shape = option_file::shape(install, spec).ok()?;
    let mut reads = vec![replica::part_word(&spec.part).to_owned()];
    reads.push(option_file.initial_text(&shape.settings).ok()?);
    reads.extend(install_arguments(install));
    for program in install.install_db.iter().chain([&install.server]) {
        reads.push(identity(install.program(program)).ok()?);
    }
    Some(Initialising { shape, reads, is_own: replica::is_own })
}

fn install_arguments(install: &Install) -> Vec<String> {
    if !install.is_mariadb() {
        return vec!["--initialize-insecure".to_owned()];
    }
    let mut arguments = vec!["--auth-root-authentication-method=normal".to_owned()];
    // Before 10.3 the program does not know it.
    if version_numbers(&install.version) >= vec![10, 3] {
        arguments.push("--skip-test-db".to_owned());
    }
    arguments
}

fn make_system_tables(
    folder: &ServerFolder,
    install: &Install,
    clock: &Arc<dyn Clock>,
) -> Result<()> {
    let mut arguments = vec![option_file_argument(folder)];
    let program = match &install.install_db {
        None => &install.server,
        Some(install_db) => {
            arguments.push(format!("--basedir={}", install.base.display()));
            arguments.push(format!("--datadir={}", folder.data().display()));
            install_db
        }
    };
    arguments.extend(install_arguments(install));
    let log = folder.path().join(INSTALL_LOG);
    let image = install.image.clone();
    let spec = ProcessSpec { log, image, ..folder.process(program.clone(), arguments) };
    let made = folder.keeper().run(folder.path(), &spec, clock.as_ref(), INSTALL_LIMIT);
    made.map_err(|error| {
        let installed = install_log(folder);
        let reason = logged_errors(&installed).unwrap_or(error.0);
        DeployError {
            message: format!("the system tables of the new server could not be created: {reason}"),
            // The log is removed with the folder, so an error keeps its last lines.
            log: of_both(installed, folder.log_tail(LOG_LINES)),
        }
    })
}

const INSTALL_LOG: &str = "install.log";

/// Without the program's advice about permanent installations.
fn install_log(folder: &ServerFolder) -> Vec<String> {
    let mut lines = dyno_host::last_lines(&folder.path().join(INSTALL_LOG), usize::MAX);
    let advice = lines.iter().position(|line| line.starts_with("Installation of system tables"));
    lines.truncate(advice.unwrap_or(0));
    lines
}

fn of_both(mut first: Vec<String>, then: Vec<String>) -> Vec<String> {
    first.extend(then);
    first.retain(|line| !line.is_empty());
    first[first.len().saturating_sub(LOG_LINES)..].to_vec()
}

/// What a line of the server's log says if it is an error, or an assertion that has failed.
fn logged_error(line: &str) -> Option<&str> {
    let assertion = || line.split_once("InnoDB: ").filter(|(_, text)| text.contains("ssertion"));
    Some(line.split_once("[ERROR] ").or_else(assertion)?.1)
}

/// The errors in the server's own log; `None` if there are none.
fn logged_errors(log: &[String]) -> Option<String> {
    let errors = log.iter().filter_map(|line| logged_error(line));
    let mut errors: Vec<&str> =
        errors.map(|text| text.split_once("mariadbd: ").map_or(text, |(_, rest)| rest)).collect();
    errors.retain(|text| *text != "Aborting");
    (!errors.is_empty()).then(|| errors.join("; "))
}

fn with_reasons(error: DeployError, installed: Vec<String>) -> DeployError {
    let log = of_both(installed, error.log);
    let reasons =
        logged_errors(&log).map(|errors| format!("; it says: {errors}")).unwrap_or_default();
    DeployError { message: error.message + &reasons, log }
}

fn check_version(spec: &ServerSpec, version: &str) -> Result<()> {
    let Some(wanted) = &spec.version else { return Ok(()) };
    if version_fits(version, wanted) {
        return Ok(());
    }
    fail(format!(
        "version {wanted} was requested, but the programs on this machine are version {version}; \
         name the folder of the right ones, or request another version"
    ))
}

/// Makes the catalog, and removes all accounts but Dyno's: a new server's have no passwords. No
/// other user reaches its socket; this protects the data when they are opened elsewhere.
fn settle(connection: &mut MySqlConnection) -> Result<(), StatementError> {
    let strangers = "SELECT User, Host FROM mysql.user WHERE (User = 'root' AND Host <> 'localhost') \
                     OR User = ''";
    for row in connection.query(strangers)? {
        if let [Some(user), Some(host)] = row.as_slice() {
            let quoted = |text: &str| text.replace('\\', "\\\\").replace('\'', "''");
            connection.query(&format!("DROP USER '{}'@'{}'", quoted(user), quoted(host)))?;
        }
    }
    connection.set_cold_limit(CATALOG_LIMIT.0);
    connection.query(&format!("CREATE DATABASE {CATALOG}"))?;
    Ok(())
}

/// The list of pages to read at the next start would warm that server in its own time.
fn tidy(data: &Path) -> Result<()> {
    gone(fs::remove_file(data.join(BUFFER_POOL_FILE)))
        .context(format!("{BUFFER_POOL_FILE} in {} cannot be removed", data.display()))
}

fn control(one: &Running, is_mariadb: bool, told: Option<&Secret>) -> ServerControl {
    let (control, endpoint) = (one.own.control.clone(), &one.endpoint);
    let control = match &one.node {
        Some(node) if !is_mariadb => group::control(control, node, endpoint),
        Some(node) => galera::control(control, (node, one.own.folder.data()), endpoint),
        None => control,
    };
    match told {
        Some(password) => replica::told(control, endpoint, password),
        None => control,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(version: Option<&str>) -> ServerSpec {
        ServerSpec { version: version.map(str::to_owned), ..ServerSpec::new("mariadb") }
    }

    #[test]
    fn another_version_is_refused() {
        let check = |wanted: &str| check_version(&spec(Some(wanted)), "10.11.19-MariaDB");
        check("10.11").unwrap();
        let error = check("10.1").unwrap_err().message;
        assert!(error.contains("version 10.1 was requested"), "{error}");
    }

    #[test]
    fn a_folder_with_a_space_is_refused_where_it_would_fail() {
        let mariadb = Install {
            server: "/usr/sbin/mariadbd".into(),
            install_db: Some("/usr/bin/mariadb-install-db".into()),
            base: "/usr".into(),
            share: None,
            plugins: None,
            version: String::new(),
            origin: Default::default(),
            image: None,
        };
        let mysql = Install { install_db: None, ..mariadb.clone() };
        check_path(&mariadb, Path::new("/var/tmp/x/mariadb-1")).unwrap();
        check_path(&mysql, Path::new("/var/tmp/x y/mariadb-1")).unwrap();
        let error = check_path(&mariadb, Path::new("/var/tmp/x y/mariadb-1")).unwrap_err().message;
        assert!(error.contains("contains a space"), "{error}");
    }

    #[test]
    fn initial_data_are_those_of_the_programs_and_of_what_they_read() {
        let root = tempfile::tempdir().unwrap();
        let keeper = Arc::new(dyno_host::Keeper::new(&root.path().join("servers")).unwrap());
        let folder = ServerFolder::make(&crate::Place::under(&keeper), "d").unwrap();
        let install = Install {
            server: root.path().join("mariadbd"),
            install_db: Some(root.path().join("mariadb-install-db")),
            base: "/usr".into(),
            share: None,
            plugins: None,
            version: "10.11.6-MariaDB".to_owned(),
            origin: Default::default(),
            image: None,
        };
        for program in [&install.server, install.install_db.as_ref().unwrap()] {
            fs::write(program, "one").unwrap();
        }
        let of = |setting: &str, engine: Option<&str>, part: Part| {
            let setting = (setting.to_owned(), dyno_units::SettingValue::Integer(7));
            let engine = engine.map(str::to_owned);
            let spec = ServerSpec { settings: [setting].into(), engine, part, ..spec(None) };
            let option_file = OptionFile::of(&spec, &folder, &install);
            let found = initialising(&option_file, &spec).unwrap();
            assert!(!found.reads.concat().contains(&folder.path().display().to_string()));
            (found.shape, found.reads)
        };
        let plain = of("innodb_buffer_pool_size", None, Part::Alone);
        assert_eq!(of("max_connections", None, Part::Alone), plain);
        for setting in ["innodb-page-size", "lower_case_table_names", "innodb_undo_tablespaces"] {
            assert_ne!(of(setting, None, Part::Alone), plain, "{setting}");
        }
        assert_ne!(of("max_connections", Some("Aria"), Part::Alone), plain);
        assert_ne!(of("max_connections", None, Part::Router), plain);
        fs::write(install.install_db.as_ref().unwrap(), "another").unwrap();
        assert_ne!(of("max_connections", None, Part::Alone), plain);
    }
}
