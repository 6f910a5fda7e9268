//! A private PostgreSQL server: made, started, stopped and removed by Dyno.

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_host::{DataFiles, Keeper, KeptProcess, Probe, ProcessSpec, ThreadGroups, ThreadListing};
use dyno_units::{Clock, Nanoseconds};
use dyno_workload::{Connection, Connector, Dialect};
use rustix::fs::OFlags;

use super::programs::{self, Programs};
use super::{connect, connector, facts, files, settings, statement_failed};
use crate::data::move_data;
use crate::transport::CATALOG_LIMIT;
use crate::{
    Address, DebtMeter, DeployError, Endpoint, Protocol, Server, ServerFacts, ServerSpec, TlsMode,
};

/// The superuser that `initdb` makes.
const USER: &str = "dyno";
/// The catalog that Dyno works in.
const CATALOG: &str = "dyno";
/// How long making the data folder may take.
const MAKE_LIMIT: Nanoseconds = Nanoseconds::from_secs(120);
/// How long the server may take until it answers.
const START_LIMIT: Nanoseconds = Nanoseconds::from_secs(60);
/// How often it is tried.
const START_POLL: Nanoseconds = Nanoseconds::from_millis(20);
/// How long a fast shutdown may take; it writes all dirty pages.
const STOP_LIMIT: Nanoseconds = Nanoseconds::from_secs(120);
/// How long a shutdown after populating may take.
const HAND_OVER_LIMIT: Nanoseconds = Nanoseconds::from_secs(1800);
/// How many ports are tried: another process can take one before the server does.
const PORT_TRIES: usize = 3;
/// Lines of the log in an error.
const LOG_LINES: usize = 30;
/// How much of the end of a log is read for its last lines, in bytes.
const LOG_TAIL_BYTES: u64 = 64 * 1024;

/// A private server that is up.
struct PrivateServer {
    keeper: Arc<Keeper>,
    clock: Arc<dyn Clock>,
    folder: PathBuf,
    process: KeptProcess,
    endpoint: Endpoint,
    connector: Connector,
}

/// Starts a private server, on data that another one handed over if there are any, and waits until
/// it answers.
pub(crate) fn start(
    spec: &ServerSpec,
    data: Option<&Path>,
    keeper: &Arc<Keeper>,
    clock: &Arc<dyn Clock>,
) -> Result<Box<dyn Server>, DeployError> {
    if let Some(engine) = &spec.engine {
        return Err(DeployError::new(format!(
            "PostgreSQL has no storage engine `{engine}` to choose; leave `engine` out"
        )));
    }
    let programs = programs::find(spec, keeper)?;
    let folder = keeper.make_folder("postgresql").map_err(from_keeper)?;
    let birth = Birth { spec, data, keeper, clock, programs: &programs, folder: &folder };
    birth.start().map_err(|mut error| {
        // What the log says is kept; the folder would only be in the way.
        if let Err(leftover) = keeper.remove_folder(&folder) {
            error.message = format!("{}; and {leftover}", error.message);
        }
        error
    })
}

fn from_keeper(error: dyno_host::KeeperError) -> DeployError {
    DeployError::new(format!("PostgreSQL: {error}"))
}

/// What it takes to make a server.
struct Birth<'a> {
    spec: &'a ServerSpec,
    /// Data to start on; it makes its own without.
    data: Option<&'a Path>,
    keeper: &'a Arc<Keeper>,
    clock: &'a Arc<dyn Clock>,
    programs: &'a Programs,
    folder: &'a Path,
}

impl Birth<'_> {
    fn start(&self) -> Result<Box<dyn Server>, DeployError> {
        let configuration = settings::configuration(&self.spec.settings, self.folder)?;
        match self.data {
            Some(data) => move_data(data, &data_of(self.folder))?,
            None => self.make_data()?,
        }
        let path = data_of(self.folder).join("postgresql.conf");
        add_settings(&path, &configuration).map_err(|error| {
            DeployError::new(format!("cannot write {}: {error}", path.display()))
        })?;
        let mut n_tries = 0;
        let (mut process, port) = loop {
            n_tries += 1;
            let (mut process, port) = self.spawn()?;
            match self.wait(&mut process, port) {
                Ok(()) => break (process, port),
                Err(error) if n_tries < PORT_TRIES && lost_port(&error) => {}
                Err(error) => {
                    // In order, so that no process of it outlives its folder.
                    process.stop("INT", self.clock.as_ref(), STOP_LIMIT);
                    return Err(error);
                }
            }
        };
        match self.finish(port) {
            Ok(endpoint) => Ok(Box::new(PrivateServer {
                keeper: Arc::clone(self.keeper),
                clock: Arc::clone(self.clock),
                folder: self.folder.to_owned(),
                process,
                connector: connector(endpoint.clone()),
                endpoint,
            })),
            Err(error) => {
                process.stop("INT", self.clock.as_ref(), STOP_LIMIT);
                Err(error)
            }
        }
    }

    /// Makes the data folder. Where the system lacks the locale C.UTF-8, C does.
    fn make_data(&self) -> Result<(), DeployError> {
        let data = data_of(self.folder);
        let make = |locale: &str| {
            let process = ProcessSpec {
                program: self.programs.folder.join("initdb"),
                arguments: vec![
                    "-D".to_owned(),
                    data.display().to_string(),
                    format!("--username={USER}"),
                    "--auth=trust".to_owned(),
                    "--encoding=UTF8".to_owned(),
                    format!("--locale={locale}"),
                    // Data that are not there yet need no sync; the server keeps its own.
                    "--no-sync".to_owned(),
                ],
                log: self.folder.join("initdb.log"),
                run_as: self.keeper.run_as(),
                ..ProcessSpec::default()
            };
            self.keeper.run(self.folder, &process, self.clock.as_ref(), MAKE_LIMIT)
        };
        match make("C.UTF-8") {
            Err(error) if error.0.contains("invalid locale name") => make("C"),
            other => other,
        }
        .map_err(from_keeper)
    }

    fn spawn(&self) -> Result<(KeptProcess, u16), DeployError> {
        let port = free_port()?;
        let process = ProcessSpec {
            program: self.programs.folder.join("postgres"),
            arguments: vec![
                "-D".to_owned(),
                data_of(self.folder).display().to_string(),
                "-p".to_owned(),
                port.to_string(),
            ],
            log: log_of(self.folder),
            run_as: self.keeper.run_as(),
            cpus: self.spec.cpus.clone(),
            ..ProcessSpec::default()
        };
        let process = self.keeper.spawn(self.folder, &process).map_err(from_keeper)?;
        Ok((process, port))
    }

    /// Waits until the server answers.
    fn wait(&self, process: &mut KeptProcess, port: u16) -> Result<(), DeployError> {
        let until = self.clock.now() + START_LIMIT;
        let endpoint = self.endpoint(port, "postgres");
        loop {
            let reason = match connect(&endpoint) {
                Ok(_) => return Ok(()),
                Err(error) => error.reason,
            };
            if let Some(how) = process.ended() {
                let log = tail(&log_of(self.folder), LOG_LINES);
                let said = log[log.len().saturating_sub(3)..].join("; ");
                return Err(DeployError {
                    message: format!("PostgreSQL did not start, it {how}: {said}"),
                    log,
                });
            }
            if self.clock.now() >= until {
                return Err(DeployError {
                    message: format!("PostgreSQL did not answer within {START_LIMIT}: {reason}"),
                    log: tail(&log_of(self.folder), LOG_LINES),
                });
            }
            self.clock.sleep_until(self.clock.now() + START_POLL);
        }
    }

    /// Checks the version and makes the catalog.
    fn finish(&self, port: u16) -> Result<Endpoint, DeployError> {
        let mut connection = connect(&self.endpoint(port, "postgres"))
            .map_err(|error| DeployError::new(error.to_string()))?;
        let version = facts::version(&mut connection)?;
        if let Some(wanted) = &self.spec.version
            && !programs::begins(&version, wanted)
        {
            return Err(DeployError::new(format!(
                "PostgreSQL in {} is {version}, not {wanted}",
                self.programs.folder.display()
            )));
        }
        if self.data.is_none() {
            connection.set_cold_limit(CATALOG_LIMIT.0);
            connection
                .query(&format!("CREATE DATABASE {CATALOG}"))
                .map_err(|error| statement_failed("make its catalog", error))?;
        }
        Ok(self.endpoint(port, CATALOG))
    }

    fn endpoint(&self, port: u16, catalog: &str) -> Endpoint {
        Endpoint {
            protocol: Protocol::PostgreSql,
            address: Address::Unix(self.folder.join(format!(".s.PGSQL.{port}"))),
            user: USER.to_owned(),
            password: None,
            catalog: catalog.to_owned(),
            tls: TlsMode::Off,
        }
    }
}

/// Replaces what an earlier server added to its configuration.
fn add_settings(path: &Path, configuration: &str) -> std::io::Result<()> {
    let text = fs::read_to_string(path)?;
    // Into the same file, which keeps its owner; and into no other, whatever the server put there.
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).expect("a flag fits its argument");
    let mut file = fs::OpenOptions::new().write(true).custom_flags(flags).open(path)?;
    let text = settings::without_added(&text).to_owned() + configuration;
    file.set_len(0)?;
    file.write_all(text.as_bytes())
}

fn data_of(folder: &Path) -> PathBuf {
    folder.join("data")
}

fn log_of(folder: &Path) -> PathBuf {
    folder.join("postgresql.log")
}

/// A port that nobody listens on just now.
fn free_port() -> Result<u16, DeployError> {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| DeployError::new(format!("there is no free port on 127.0.0.1: {error}")))
}

/// Whether the server gave up because somebody else took its port.
fn lost_port(error: &DeployError) -> bool {
    error.log.iter().any(|line| line.contains("could not create any TCP/IP sockets"))
}

/// The last lines of a file; none where it cannot be read.
fn tail(path: &Path, n_lines: usize) -> Vec<String> {
    let read = || {
        let mut file = fs::File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map(|_| bytes)
    };
    let bytes: Vec<u8> = read().unwrap_or_else(|_: std::io::Error| Vec::new());
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(n_lines)..].iter().map(|&line| line.to_owned()).collect()
}

/// Bytes on disk of a folder and all in it. Files that vanish meanwhile are left out.
fn bytes_on_disk(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(facts) if facts.is_dir() => facts.blocks() * 512 + bytes_on_disk(&entry.path()),
            // A block is 512 bytes here, whatever the filesystem's own are.
            Ok(facts) => facts.blocks() * 512,
            Err(_) => 0,
        })
        .sum()
}

impl Server for PrivateServer {
    fn dialect(&self) -> Dialect {
        Dialect::PostgreSql
    }

    fn connector(&self) -> Connector {
        Arc::clone(&self.connector)
    }

    fn facts(&self) -> Result<ServerFacts, DeployError> {
        facts::ask(&self.endpoint)
    }

    fn processes(&self) -> Vec<i32> {
        vec![self.process.pid()]
    }

    fn down(&mut self) -> Option<String> {
        self.process.ended().map(|how| format!("PostgreSQL {how}"))
    }

    fn log_tail(&self, lines: usize) -> Vec<String> {
        tail(&log_of(&self.folder), lines)
    }

    /// Bytes of the data folder on disk, its write-ahead log included.
    fn data_bytes(&self) -> Option<u64> {
        Some(bytes_on_disk(&data_of(&self.folder)))
    }

    fn data_files(&self) -> Option<DataFiles> {
        Some(DataFiles { root: data_of(&self.folder), kind: files::file_kind })
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

    /// Shuts down fast: connections are ended, pages are written.
    fn stop(mut self: Box<Self>) -> Result<(), DeployError> {
        self.process.stop("INT", self.clock.as_ref(), STOP_LIMIT);
        self.keeper.remove_folder(&self.folder).map_err(from_keeper)
    }

    fn can_hand_over(&self) -> bool {
        true
    }

    fn hand_over(mut self: Box<Self>, to: &Path) -> Result<(), DeployError> {
        self.process.stop("INT", self.clock.as_ref(), HAND_OVER_LIMIT);
        let result = if self.process.has_succeeded() {
            move_data(&data_of(&self.folder), to)
        } else {
            let how = self.process.ended().unwrap_or_default();
            Err(DeployError {
                message: format!("PostgreSQL was to stop with its data complete, and it {how}"),
                log: tail(&log_of(&self.folder), LOG_LINES),
            })
        };
        let removed = self.keeper.remove_folder(&self.folder).map_err(from_keeper);
        result.and(removed)
    }
}
