//! A private server: made in a folder of its own from the programs on this machine, and removed.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_host::{DataFiles, Keeper, KeptProcess, Probe, ProcessSpec, ThreadGroups, ThreadListing};
use dyno_units::{Clock, Nanoseconds};
use dyno_workload::{Connection, Connector, Dialect, StatementError};

use super::option_file::{Install, OptionFile, data_path, log_path, socket_path};
use super::{MySqlConnection, facts, files};
use crate::data::move_data;
use crate::transport::CATALOG_LIMIT;
use crate::{
    Address, DebtMeter, DeployError, Endpoint, Protocol, Server, ServerFacts, ServerSpec, TlsMode,
};

/// The catalog of a private server.
const CATALOG: &str = "dyno";

/// How long making the system tables, starting and stopping may take.
const INSTALL_LIMIT: Nanoseconds = Nanoseconds::from_secs(180);
const START_LIMIT: Nanoseconds = Nanoseconds::from_secs(60);
const STOP_LIMIT: Nanoseconds = Nanoseconds::from_secs(120);

/// How long stopping may take after populating: all that is dirty has to be written.
const HAND_OVER_LIMIT: Nanoseconds = Nanoseconds::from_secs(1800);

/// InnoDB's list of the pages in its buffer pool, by its default name.
const BUFFER_POOL_FILE: &str = "ib_buffer_pool";

/// Pause between two attempts to reach a server that starts.
const START_PAUSE: Nanoseconds = Nanoseconds::from_millis(20);

/// How many lines of the log an error shows.
const LOG_LINES: usize = 30;

/// How much of the log's end is read for its last lines, in bytes.
const LOG_TAIL: u64 = 64 * 1024;

/// Where programs are, below the folder of an installation.
const PROGRAM_FOLDERS: [&str; 7] = ["", "bin", "sbin", "libexec", "scripts", "usr/sbin", "usr/bin"];

/// A server that Dyno started and removes.
struct PrivateServer {
    folder: ServerFolder,
    process: KeptProcess,
    endpoint: Endpoint,
    clock: Arc<dyn Clock>,
}

/// A server's folder; it is removed with this.
struct ServerFolder {
    keeper: Arc<Keeper>,
    path: PathBuf,
    is_removed: bool,
}

impl ServerFolder {
    fn remove(&mut self) -> Result<(), DeployError> {
        self.is_removed = true;
        self.keeper.remove_folder(&self.path).map_err(|error| DeployError::new(error.0))
    }
}

impl Drop for ServerFolder {
    fn drop(&mut self) {
        if !self.is_removed {
            // What stays behind is found and removed by the next run.
            let _ = self.remove();
        }
    }
}

/// Starts a private server, on data that another one handed over if there are any, and waits until
/// it answers.
pub(crate) fn start(
    spec: &ServerSpec,
    data: Option<&Path>,
    keeper: &Arc<Keeper>,
    clock: &Arc<dyn Clock>,
) -> Result<Box<dyn Server>, DeployError> {
    let install = find_install(spec, keeper)?;
    let path = keeper.make_folder(&spec.product).map_err(|error| DeployError::new(error.0))?;
    let folder = ServerFolder { keeper: Arc::clone(keeper), path, is_removed: false };
    // The log goes with the folder: an error takes its last lines along.
    match start_in(&folder.path, spec, data, &install, (keeper, clock)) {
        Ok((process, endpoint)) => {
            let clock = Arc::clone(clock);
            Ok(Box::new(PrivateServer { folder, process, endpoint, clock }))
        }
        Err(error) => Err(DeployError { log: failure_log(&folder.path, LOG_LINES), ..error }),
    }
}

fn start_in(
    folder: &Path,
    spec: &ServerSpec,
    data: Option<&Path>,
    install: &Install,
    (keeper, clock): (&Keeper, &Arc<dyn Clock>),
) -> Result<(KeptProcess, Endpoint), DeployError> {
    write_option_file(folder, spec, install, keeper)?;
    match data {
        Some(data) => move_data(data, &data_path(folder))?,
        None => make_system_tables(folder, install, (keeper, clock))?,
    }
    let process_spec = ProcessSpec {
        cpus: spec.cpus.clone(),
        ..process_spec(folder, &install.server, vec![option_file_argument(folder)], keeper)
    };
    let mut process =
        keeper.spawn(folder, &process_spec).map_err(|error| DeployError::new(error.0))?;
    let endpoint = Endpoint {
        protocol: Protocol::MySql,
        address: Address::Unix(socket_path(folder)),
        user: "root".to_owned(),
        password: None,
        catalog: CATALOG.to_owned(),
        tls: TlsMode::Off,
    };
    let mut connection = wait_until_up(&endpoint, &mut process, clock.as_ref())
        .map_err(|reason| DeployError::new(format!("{reason}{}", told_suffix(folder))))?;
    check_version(spec, connection.version())?;
    if data.is_none() {
        settle(&mut connection).map_err(|error| {
            DeployError::new(format!("the new server cannot be set up: {error}"))
        })?;
    }
    Ok((process, endpoint))
}

/// Finds the programs, and the files that belong to them.
pub(super) fn find_install(spec: &ServerSpec, keeper: &Keeper) -> Result<Install, DeployError> {
    // A folder that was named is the only one: a server from elsewhere would be another one.
    let find_one = |name: &str| match &spec.programs {
        None => keeper.find_program(name, &[]),
        Some(folder) => PROGRAM_FOLDERS
            .iter()
            .map(|inner| folder.join(inner).join(name))
            .find(|program| program.is_file()),
    };
    let find = |names: &[&str]| names.iter().find_map(|name| find_one(name));
    let install_db = find(&["mariadb-install-db", "mysql_install_db"]);
    let Some(server) = find(&["mariadbd", "mysqld"]) else {
        let place = match &spec.programs {
            Some(folder) => format!("in {} nor in the folders of its programs", folder.display()),
            None => "on the PATH nor in the usual places".to_owned(),
        };
        return Err(DeployError::new(format!(
            "there is no MariaDB server: `mariadbd` is neither {place}; install it (Debian, \
             Ubuntu: package `mariadb-server`) or name the folder of its programs"
        )));
    };
    if install_db.is_none() && server.ends_with("mariadbd") {
        return Err(DeployError::new(format!(
            "{} is there, but `mariadb-install-db`, which makes its system tables, is not; install \
             the whole server (Debian, Ubuntu: package `mariadb-server`)",
            server.display()
        )));
    }
    Ok(Install { install_db, ..install_at(server) })
}

/// The folders that belong to a server program.
fn install_at(server: PathBuf) -> Install {
    // The program may be a link into the true folder; its own place still says the layout.
    let base = server.parent().and_then(Path::parent).unwrap_or(Path::new("/")).to_owned();
    let first = |names: &[&str], proof: &str| {
        names.iter().map(|name| base.join(name)).find(|folder| folder.join(proof).exists())
    };
    let share = first(&["share/mysql", "share/mariadb", "share"], "english/errmsg.sys");
    let plugins = first(&["lib/mysql/plugin", "lib/mariadb/plugin", "lib/plugin"], "");
    Install { server, install_db: None, base, share, plugins }
}

fn write_option_file(
    folder: &Path,
    spec: &ServerSpec,
    install: &Install,
    keeper: &Keeper,
) -> Result<(), DeployError> {
    let option_file = OptionFile {
        folder,
        install,
        port: free_port().map_err(|error| {
            DeployError::new(format!("there is no free port on 127.0.0.1: {error}"))
        })?,
        engine: spec.engine.as_deref(),
        settings: &spec.settings,
    };
    let text = option_file.text()?;
    let told = |error: io::Error| {
        DeployError::new(format!("cannot write into {}: {error}", folder.display()))
    };
    fs::write(option_file_path(folder), text).map_err(told)?;
    let tmp = folder.join("tmp");
    fs::create_dir(&tmp).map_err(told)?;
    if let Some(user) = keeper.run_as() {
        std::os::unix::fs::chown(&tmp, Some(user.uid), Some(user.gid)).map_err(told)?;
    }
    Ok(())
}

/// A port that nobody listens at. Another process may take it before the server does; the server's
/// log then says so.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn option_file_path(folder: &Path) -> PathBuf {
    folder.join("my.cnf")
}

fn option_file_argument(folder: &Path) -> String {
    format!("--defaults-file={}", option_file_path(folder).display())
}

fn process_spec(
    folder: &Path,
    program: &Path,
    arguments: Vec<String>,
    keeper: &Keeper,
) -> ProcessSpec {
    ProcessSpec {
        program: program.to_owned(),
        arguments,
        environment: vec![("TMPDIR".to_owned(), folder.join("tmp").display().to_string())],
        log: log_path(folder),
        run_as: keeper.run_as(),
        cpus: Vec::new(),
    }
}

fn make_system_tables(
    folder: &Path,
    install: &Install,
    (keeper, clock): (&Keeper, &Arc<dyn Clock>),
) -> Result<(), DeployError> {
    let mut arguments = vec![option_file_argument(folder)];
    let program = match &install.install_db {
        None => {
            arguments.push("--initialize-insecure".to_owned());
            &install.server
        }
        Some(install_db) => {
            arguments.push(format!("--basedir={}", install.base.display()));
            arguments.push(format!("--datadir={}", data_path(folder).display()));
            arguments.push("--auth-root-authentication-method=normal".to_owned());
            arguments.push("--skip-test-db".to_owned());
            install_db
        }
    };
    let log = install_log_path(folder);
    let spec = ProcessSpec { log, ..process_spec(folder, program, arguments, keeper) };
    keeper.run(folder, &spec, clock.as_ref(), INSTALL_LIMIT).map_err(|error| {
        let reason = errors_told(folder).unwrap_or(error.0);
        DeployError::new(format!("the system tables of the new server were not made: {reason}"))
    })
}

/// The file with the output of the program that makes the system tables.
fn install_log_path(folder: &Path) -> PathBuf {
    folder.join("install.log")
}

/// The last lines of both logs. The install program's advice, which is about installing for good,
/// is left out.
fn failure_log(folder: &Path, n_lines: usize) -> Vec<String> {
    let mut lines = last_lines(&install_log_path(folder), usize::MAX);
    let advice = lines.iter().position(|line| line.starts_with("Installation of system tables"));
    lines.truncate(advice.unwrap_or(0));
    lines.extend(last_lines(&log_path(folder), n_lines));
    lines.retain(|line| !line.is_empty());
    lines[lines.len().saturating_sub(n_lines)..].to_vec()
}

/// The errors that the server itself told in its log; none where it told none.
fn errors_told(folder: &Path) -> Option<String> {
    let lines = failure_log(folder, LOG_LINES);
    let told = lines.iter().filter_map(|line| Some(line.split_once("[ERROR] ")?.1));
    let mut told: Vec<&str> =
        told.map(|text| text.split_once("mariadbd: ").map_or(text, |(_, rest)| rest)).collect();
    told.retain(|text| *text != "Aborting");
    (!told.is_empty()).then(|| told.join("; "))
}

/// What follows a message about a server that did not start.
fn told_suffix(folder: &Path) -> String {
    errors_told(folder).map(|told| format!("; it says: {told}")).unwrap_or_default()
}

/// Tries to connect until the server answers, has ended, or is too late.
fn wait_until_up(
    endpoint: &Endpoint,
    process: &mut KeptProcess,
    clock: &dyn Clock,
) -> Result<MySqlConnection, String> {
    let until = clock.now() + START_LIMIT;
    loop {
        let error = match MySqlConnection::open(endpoint, None) {
            Ok(connection) => return Ok(connection),
            Err(error) => error,
        };
        if let Some(how) = process.ended() {
            return Err(format!("the server ended while it was starting ({how})"));
        }
        if clock.now() >= until {
            return Err(format!(
                "the server does not answer {START_LIMIT} after its start: {error}"
            ));
        }
        clock.sleep_until(clock.now() + START_PAUSE);
    }
}

fn check_version(spec: &ServerSpec, version: &str) -> Result<(), DeployError> {
    let Some(wanted) = &spec.version else { return Ok(()) };
    // 10.1 must not accept 10.11.
    let rest = version.strip_prefix(wanted.as_str());
    if rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit())) {
        return Ok(());
    }
    Err(DeployError::new(format!(
        "version {wanted} was asked for, and the programs on this machine are version {version}; \
         name the folder of the right ones, or change the version asked for"
    )))
}

/// Makes the catalog, and shuts out everybody but the owner of the socket's folder: the accounts
/// of a new server have no passwords, and any user of this machine can reach its port.
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

impl Server for PrivateServer {
    fn dialect(&self) -> Dialect {
        Dialect::MySql
    }

    fn connector(&self) -> Connector {
        super::connector(self.endpoint.clone())
    }

    fn facts(&self) -> Result<ServerFacts, DeployError> {
        let mut connection =
            super::connect(&self.endpoint).map_err(|error| DeployError::new(error.to_string()))?;
        facts::ask(&mut connection, &self.endpoint).map_err(|error| {
            DeployError::new(format!("the server does not tell its facts: {error}"))
        })
    }

    fn processes(&self) -> Vec<i32> {
        vec![self.process.pid()]
    }

    fn down(&mut self) -> Option<String> {
        self.process.ended()
    }

    fn log_tail(&self, lines: usize) -> Vec<String> {
        last_lines(&log_path(&self.folder.path), lines)
    }

    fn data_bytes(&self) -> Option<u64> {
        bytes_on_disk(&data_path(&self.folder.path)).ok()
    }

    fn data_files(&self) -> Option<DataFiles> {
        Some(DataFiles { root: data_path(&self.folder.path), kind: files::file_kind })
    }

    fn thread_groups(&self) -> Option<ThreadGroups> {
        Some(files::thread_group)
    }

    fn probes(&self, threads: Option<&ThreadListing>) -> Vec<Box<dyn Probe>> {
        super::probe::probes(&self.connector(), threads)
    }

    fn debt_meter(&self) -> Result<Box<dyn DebtMeter>, String> {
        Ok(super::debt::meter(self.connector()))
    }

    fn stop(self: Box<Self>) -> Result<(), DeployError> {
        let PrivateServer { mut folder, mut process, clock, .. } = *self;
        process.stop("TERM", clock.as_ref(), STOP_LIMIT);
        folder.remove()
    }

    fn can_hand_over(&self) -> bool {
        true
    }

    fn hand_over(self: Box<Self>, to: &Path) -> Result<(), DeployError> {
        let PrivateServer { mut folder, mut process, clock, .. } = *self;
        process.stop("TERM", clock.as_ref(), HAND_OVER_LIMIT);
        if !process.has_succeeded() {
            let how = process.ended().unwrap_or_default();
            return Err(DeployError {
                message: format!("the server was to stop with its data complete, and it {how}"),
                log: last_lines(&log_path(&folder.path), LOG_LINES),
            });
        }
        let data = data_path(&folder.path);
        // The list of pages to read at the next start would warm that server in its own time.
        match fs::remove_file(data.join(BUFFER_POOL_FILE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(DeployError::new(format!(
                    "{BUFFER_POOL_FILE} in {} cannot be removed: {error}",
                    data.display()
                )));
            }
            _ => {}
        }
        move_data(&data, to)?;
        folder.remove()
    }
}

/// The last lines of a log; none where it cannot be read.
fn last_lines(log: &Path, n_lines: usize) -> Vec<String> {
    use io::{Read, Seek, SeekFrom};
    let read = || -> io::Result<Vec<u8>> {
        let mut file = fs::File::open(log)?;
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(LOG_TAIL)))?;
        let mut bytes = Vec::new();
        file.take(LOG_TAIL).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let text = read().unwrap_or_default();
    let lines: Vec<String> = String::from_utf8_lossy(&text).lines().map(str::to_owned).collect();
    lines[lines.len().saturating_sub(n_lines)..].to_vec()
}

/// Bytes that a folder's files occupy on disk: holes and compressed blocks take less than their
/// length. Files that vanish meanwhile do not count.
fn bytes_on_disk(folder: &Path) -> io::Result<u64> {
    let mut total = 0;
    for entry in fs::read_dir(folder)? {
        let Ok(entry) = entry else { continue };
        let Ok(metadata) = entry.metadata() else { continue };
        total += metadata.blocks() * 512;
        if metadata.is_dir() {
            total += bytes_on_disk(&entry.path()).unwrap_or(0);
        }
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(version: Option<&str>) -> ServerSpec {
        ServerSpec {
            product: "mariadb".to_owned(),
            version: version.map(str::to_owned),
            engine: None,
            programs: None,
            settings: Default::default(),
            cpus: Vec::new(),
        }
    }

    #[track_caller]
    fn check(wanted: &str, version: &str, is_accepted: bool) {
        let spec = spec(Some(wanted));
        assert_eq!(check_version(&spec, version).is_ok(), is_accepted, "{wanted} of {version}");
    }

    #[test]
    fn versions_are_prefixes_up_to_a_number_end() {
        check("10.11", "10.11.19-MariaDB", true);
        check("10.11.19", "10.11.19-MariaDB", true);
        check("10.1", "10.11.19-MariaDB", false);
        check("11", "10.11.19-MariaDB", false);
    }

    #[test]
    fn folders_are_found_by_what_is_in_them() {
        let base = tempfile::tempdir().unwrap();
        let make = |name: &str| fs::create_dir_all(base.path().join(name)).unwrap();
        make("share/english");
        make("lib/plugin");
        fs::write(base.path().join("share/english/errmsg.sys"), "").unwrap();
        let install = install_at(base.path().join("bin/mariadbd"));
        assert_eq!(install.base, base.path());
        assert_eq!(install.share, Some(base.path().join("share")));
        assert_eq!(install.plugins, Some(base.path().join("lib/plugin")));
    }

    #[test]
    fn a_folder_that_was_named_is_the_only_one() {
        let root = tempfile::tempdir().unwrap();
        let keeper = Keeper::new(&root.path().join("servers")).unwrap();
        let spec = ServerSpec { programs: Some(root.path().join("no/such")), ..spec(None) };
        let error = find_install(&spec, &keeper).unwrap_err().message;
        assert!(error.contains("no/such") && error.contains("mariadb-server"), "{error}");
        fs::create_dir(root.path().join("bin")).unwrap();
        fs::write(root.path().join("bin/mysqld"), "").unwrap();
        let spec = ServerSpec { programs: Some(root.path().to_owned()), ..spec };
        let install = find_install(&spec, &keeper).unwrap();
        assert_eq!(install.server, root.path().join("bin/mysqld"));
        assert!(!install.is_mariadb());
    }

    #[test]
    fn last_lines_of_a_log() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        assert_eq!(last_lines(&log, 2), Vec::<String>::new());
        fs::write(&log, "a\nb\nc\n").unwrap();
        assert_eq!(last_lines(&log, 2), ["b", "c"]);
    }
}
