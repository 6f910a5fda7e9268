//! Common to all private servers: folder, process, log, shutdown.
//!
//! The folder belongs to Dyno's user. It holds option files, which servers read, the log, which they get open, and the
//! servers' own folders: `data` (unless its place is elsewhere), `run` with the socket, and `tmp`. A private server
//! admits only the owner of `run`, its user, and root. It listens on no port unless told to ([`crate::Listening`]); if
//! a setting or plug-in opens one, it is stopped before it stores anything.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use dyno_host::{
    CopyLayout, HowStopped, Keeper, KeptProcess, Place, ProcessSpec, listens_by_network,
};
use dyno_units::{Clock, Nanoseconds, locked};

use crate::control::{Act, Acted, Away, Control};
use crate::data::move_data;
use crate::error::Result;
use crate::logs::LogFiles;
use crate::{DeployError, ServerSpec, logs};

pub(crate) const START_LIMIT: Nanoseconds = Nanoseconds::from_secs(60);

const START_PAUSE: Nanoseconds = Nanoseconds::from_millis(20);

/// How long stopping may take: all dirty pages are written.
const STOP_LIMIT: Nanoseconds = Nanoseconds::from_secs(120);

/// How long it may take after populating: all that is dirty has to be written.
const KEEP_DATA_LIMIT: Nanoseconds = Nanoseconds::from_secs(1800);

/// How long one may take that stores nothing.
const DISCARD_LIMIT: Nanoseconds = Nanoseconds::from_secs(5);

pub(crate) const LOG_LINES: usize = 30;

/// A server's folder; it is removed when this is dropped.
pub(crate) struct ServerFolder {
    place: Place,
    path: PathBuf,
    data: PathBuf,
    /// The folder with its logs, if they lie apart from its data.
    logs: Option<PathBuf>,
    is_removed: bool,
}

impl ServerFolder {
    /// Makes a folder with all folders that a server needs, `data` empty.
    pub(crate) fn make(place: &Place, name: &str) -> Result<ServerFolder> {
        let path = place.keeper().make_folder(name)?;
        let data = place.data_of(&path, path.join("data"));
        let logs = place.logs_of(&path);
        let folder = ServerFolder { place: place.clone(), path, data, logs, is_removed: false };
        if let Some(logs) = &folder.logs {
            place.make_data(logs)?;
        }
        for inner in ["run", "tmp"] {
            place.keeper().make_inner(&folder.path, inner)?;
        }
        Ok(folder)
    }

    /// Moves the kept data of an earlier server there, or makes an empty folder for new data.
    pub(crate) fn put_data(&self, handed_over: Option<&Path>, kind: ServerKind) -> Result<()> {
        match handed_over {
            Some(data) => {
                move_data(data, &self.data, (self.keeper(), self.place.copies()))?;
                let logs = self.logs.as_ref();
                logs.map_or(Ok(()), |logs| kind.log_files.part(&self.data, logs, &self.place))
            }
            None => Ok(self.place.make_data(&self.data)?),
        }
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn keeper(&self) -> &Arc<Keeper> {
        self.place.keeper()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.data.clone()
    }

    /// Its folders that are elsewhere.
    pub(crate) fn mounts(&self) -> Vec<PathBuf> {
        let apart = [Some(&self.data), self.logs.as_ref()].into_iter().flatten();
        apart.filter(|folder| !folder.starts_with(&self.path)).cloned().collect()
    }

    pub(crate) fn logs(&self) -> Option<&Path> {
        self.logs.as_deref()
    }

    /// The folder with its socket.
    pub(crate) fn run(&self) -> PathBuf {
        self.path.join("run")
    }

    pub(crate) fn tmp(&self) -> PathBuf {
        self.path.join("tmp")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("server.log")
    }

    /// A program that works in it, and writes into its log.
    pub(crate) fn process(&self, program: PathBuf, arguments: Vec<String>) -> ProcessSpec {
        ProcessSpec {
            program,
            arguments,
            environment: vec![("TMPDIR".to_owned(), self.tmp().display().to_string())],
            log: self.log(),
            mounts: self.mounts(),
            ..ProcessSpec::default()
        }
    }

    pub(crate) fn server(
        &self,
        spec: &ServerSpec,
        program: PathBuf,
        arguments: Vec<String>,
    ) -> ProcessSpec {
        let (cpus, limits) = (spec.cpus.clone(), spec.limits);
        ProcessSpec { cpus, limits, ..self.process(program, arguments) }
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        Ok(self.keeper().write_file(&self.path, name, text)?)
    }

    pub(crate) fn write_program(&self, name: &str, text: &str) -> Result<()> {
        self.keeper().write_program(&self.path, name, &mut text.as_bytes())?;
        Ok(())
    }

    pub(crate) fn log_tail(&self, n_lines: usize) -> Vec<String> {
        logs::last_words(&self.log(), n_lines)
    }

    fn remove(&mut self) -> Result<()> {
        self.is_removed = true;
        let folder = self.keeper().remove_folder(&self.path);
        let apart = [Some(&self.data), self.logs.as_ref()].into_iter().flatten();
        let removed = apart.map(|data| self.place.remove_data(data)).fold(Ok(()), Result::and);
        Ok(folder.and(removed)?)
    }
}

impl Drop for ServerFolder {
    fn drop(&mut self) {
        if !self.is_removed {
            // What remains is found and removed by the next run.
            let _ = self.remove();
        }
    }
}

pub(crate) const PORTS_MAX: usize = 8;

pub(crate) type Ports = [Option<SocketAddrV4>; PORTS_MAX];

pub(crate) const NO_PORTS: Ports = [None; PORTS_MAX];

/// These ports of the loopback, of which there are at most [`PORTS_MAX`].
pub(crate) fn ports(all: &[u16]) -> Ports {
    ports_of(Ipv4Addr::LOCALHOST, all)
}

pub(crate) fn ports_of(address: Ipv4Addr, all: &[u16]) -> Ports {
    std::array::from_fn(|idx| all.get(idx).map(|port| SocketAddrV4::new(address, *port)))
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerKind {
    /// The product's name in messages: `MariaDB`.
    pub(crate) product: &'static str,
    pub(crate) stop_signal: &'static str,
    pub(crate) log_files: LogFiles,
    /// Where other members reach it.
    pub(crate) ports: Ports,
    /// Where clients on other machines reach it.
    pub(crate) open: Option<SocketAddrV4>,
    pub(crate) start_limit: Nanoseconds,
}

impl ServerKind {
    /// Servers that end by SIGTERM, have no logs that could lie apart, and are reached by a socket alone.
    pub(crate) const fn new(product: &'static str) -> ServerKind {
        ServerKind {
            product,
            stop_signal: "TERM",
            log_files: LogFiles::Named(&[]),
            ports: [None; PORTS_MAX],
            open: None,
            start_limit: START_LIMIT,
        }
    }
}

/// The addresses at which a server must not listen: all but those that other members need, and the one for
/// clients on other machines.
fn strange(mut addresses: Vec<String>, ports: Ports, open: Option<SocketAddrV4>) -> Vec<String> {
    let allowed = ports.into_iter().flatten().chain(open);
    let allowed: Vec<String> = allowed.map(|address| address.to_string()).collect();
    addresses.retain(|address| !allowed.contains(address));
    addresses
}

/// The process of a private server, through the handle that started it. Does not keep the server alive.
#[derive(Clone)]
pub(crate) struct ServerControl {
    pub(crate) process: Arc<Mutex<KeptProcess>>,
    pub(crate) folder: PathBuf,
    pub(crate) place: Place,
    pub(crate) spec: ProcessSpec,
    pub(crate) kind: ServerKind,
    pub(crate) clock: Arc<dyn Clock>,
    /// Whether it does not matter how it ends: it stores nothing that could be lost.
    pub(crate) ends_anyhow: bool,
    /// What is done before it is started again; none for nothing.
    pub(crate) before_start: Option<BeforeStart>,
    /// What has to be asked of the server besides an answer; none for nothing.
    pub(crate) is_back: Option<IsBack>,
    /// How it is cut off from the other members; none if it cannot be.
    pub(crate) isolation: Option<Isolation>,
}

/// Does what a server needs before it is started again; it has ended.
pub(crate) type BeforeStart = Arc<dyn Fn(&ServerControl) -> Result<()> + Send + Sync>;

/// Cuts a server off from the other members (true), or lets it reach them again; an error says why not.
pub(crate) type Isolation = Arc<dyn Fn(bool) -> Result<(), String> + Send + Sync>;

/// Asks a server whether it is back, once; an error says what it is doing.
pub(crate) type IsBack = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

impl Control for ServerControl {
    fn act(&self, act: Act) -> Result<Acted> {
        let began = self.clock.now();
        match act {
            Act::Kill => locked(&self.process).kill_all(),
            Act::Freeze => locked(&self.process).freeze(),
            Act::Thaw => locked(&self.process).thaw(),
            Act::Stop => self.stop()?,
            Act::Start => self.start()?,
            Act::CutOff => self.isolate(true)?,
            Act::Rejoin => self.isolate(false)?,
            Act::CheckNetwork => self.check_network().map_err(|message| self.failed(message))?,
        }
        Ok(Acted { began, ended: self.clock.now() })
    }

    fn is_back(&self) -> Result<(), Away> {
        if let Some(why) = self.down() {
            return Err(Away::Down(why));
        }
        self.is_back.as_ref().map_or(Ok(()), |is_back| is_back()).map_err(Away::NotYet)
    }
}

impl ServerControl {
    fn stop(&self) -> Result<()> {
        if self.ends_anyhow {
            self.end_anyhow();
            return Ok(());
        }
        self.end(STOP_LIMIT).map_err(|message| self.failed(message))
    }

    /// Asks it to end; it does not matter how it does so.
    pub(crate) fn end_anyhow(&self) {
        locked(&self.process).stop(self.kind.stop_signal, self.clock.as_ref(), DISCARD_LIMIT);
    }

    /// Asks it to end.
    /// Fails if it had to be killed, or ended with an error: its last writes cannot be trusted.
    pub(crate) fn end(&self, limit: Nanoseconds) -> Result<(), String> {
        let (mut process, product) = (locked(&self.process), self.kind.product);
        match process.stop(self.kind.stop_signal, self.clock.as_ref(), limit) {
            HowStopped::Killed => Err(format!(
                "{product} did not stop within {limit} after it was asked to, and was killed"
            )),
            HowStopped::KilledFrozen => {
                Err(format!("{product} was suspended (by a signal or a debugger), and was killed"))
            }
            HowStopped::Ended if process.has_succeeded() => Ok(()),
            HowStopped::Ended => {
                let how = process.ended().unwrap_or_default();
                Err(format!("{product} did not shut down cleanly: it {how}"))
            }
        }
    }

    /// Why it is down, or none while it runs.
    pub(crate) fn down(&self) -> Option<String> {
        locked(&self.process).ended().map(|how| format!("{} {how}", self.kind.product))
    }

    pub(crate) fn check_network(&self) -> Result<(), String> {
        let product = self.kind.product;
        let addresses = listens_by_network(self.pid()).map_err(|error| {
            format!("it cannot be determined whether {product} listens on the network: {error}")
        })?;
        let addresses = strange(addresses, self.kind.ports, self.kind.open);
        if addresses.is_empty() {
            return Ok(());
        }
        Err(format!(
            "{product} listens on {}, which a private server must not do: other users of this machine \
             could log in. Remove the setting or the plug-in that opens it",
            addresses.join(", ")
        ))
    }

    fn start(&self) -> Result<()> {
        let mut process = locked(&self.process);
        if process.ended().is_none() {
            return Err(self.failed(format!("{} is still running", self.kind.product)));
        }
        self.before_start.as_ref().map_or(Ok(()), |before| before(self))?;
        *process = self.place.keeper().spawn(&self.folder, &self.spec)?;
        Ok(())
    }

    fn isolate(&self, is_cut: bool) -> Result<()> {
        let product = self.kind.product;
        let Some(isolation) = &self.isolation else {
            return Err(
                self.failed(format!("this {product} cannot be isolated: it is not in a cluster"))
            );
        };
        isolation(is_cut).map_err(|why| {
            self.failed(format!("{product} cannot be isolated from its cluster: {why}"))
        })
    }

    pub(crate) fn pid(&self) -> i32 {
        locked(&self.process).pid()
    }

    /// Fails if the process has ended, whose id may be another's by now, or they are unknown.
    pub(crate) fn listens(&self) -> Result<Vec<String>, String> {
        // As long as nobody collects it, which takes this lock, its id is its own.
        let mut process = locked(&self.process);
        match process.ended() {
            Some(how) => Err(format!("{} {how}", self.kind.product)),
            None => listens_by_network(process.pid()).map_err(|error| error.to_string()),
        }
    }

    fn failed(&self, message: String) -> DeployError {
        let log = logs::last_words(&self.spec.log, LOG_LINES);
        DeployError { message, log }
    }
}

/// A server that runs in its folder. Dropping it kills it and removes the folder.
pub(crate) struct OwnServer {
    // Whoever has a copy reaches the same process.
    pub(crate) control: ServerControl,
    pub(crate) folder: ServerFolder,
}

impl Drop for OwnServer {
    // It ends before its folder goes.
    fn drop(&mut self) {
        locked(&self.control.process).kill_all();
    }
}

impl OwnServer {
    /// Waits for `reach`, and returns its connection. No other user can reach the server.
    pub(crate) fn start<C>(
        folder: ServerFolder,
        spec: &ProcessSpec,
        kind: ServerKind,
        clock: &Arc<dyn Clock>,
        reach: impl FnMut() -> Result<C, String>,
    ) -> Result<(OwnServer, C)> {
        let process = folder.keeper().spawn(&folder.path, spec)?;
        let control = ServerControl {
            process: Arc::new(Mutex::new(process)),
            folder: folder.path.clone(),
            place: folder.place.clone(),
            spec: spec.clone(),
            kind,
            clock: Arc::clone(clock),
            ends_anyhow: false,
            before_start: None,
            is_back: None,
            isolation: None,
        };
        let server = OwnServer { control, folder };
        let reached = server.wait_until_up(reach);
        let outcome = reached.and_then(|reached| server.control.check_network().map(|()| reached));
        match outcome {
            Ok(reached) => Ok((server, reached)),
            Err(message) => {
                // An orderly stop, so that nothing is left; the error is already known.
                let _ = server.control.end(STOP_LIMIT);
                Err(DeployError { message, log: server.folder.log_tail(LOG_LINES) })
            }
        }
    }

    /// Goes on with a server that could be prepared; another one is stopped.
    pub(crate) fn prepared(self, outcome: Result<()>) -> Result<OwnServer> {
        if let Err(error) = outcome {
            // The first error is the one to report.
            let _ = self.stop();
            return Err(error);
        }
        Ok(self)
    }

    /// Tries to connect until the server answers, has ended, or is too late.
    fn wait_until_up<C>(&self, mut reach: impl FnMut() -> Result<C, String>) -> Result<C, String> {
        let ServerControl { kind: ServerKind { product, start_limit, .. }, clock, .. } =
            &self.control;
        let until = clock.now() + *start_limit;
        loop {
            let reason = match reach() {
                Ok(reached) => return Ok(reached),
                Err(reason) => reason,
            };
            if let Some(how) = locked(&self.control.process).ended() {
                return Err(format!("{product} did not start ({how})"));
            }
            if clock.now() >= until {
                return Err(format!(
                    "{product} still does not respond {start_limit} after it was started: {reason}"
                ));
            }
            clock.sleep_until(clock.now() + START_PAUSE);
        }
    }

    /// Ends it, however it does so, and removes its folder: it stores nothing that could be lost.
    /// Fails if its folder cannot be removed.
    pub(crate) fn discard(mut self) -> Result<()> {
        self.control.end_anyhow();
        self.folder.remove()
    }

    /// Removes the folder. Also fails after a disorderly stop, as last writes may be lost.
    pub(crate) fn stop(mut self) -> Result<()> {
        let ended = self.control.end(STOP_LIMIT);
        let log = self.folder.log_tail(LOG_LINES);
        let removed = self.folder.remove();
        ended.map_err(|message| DeployError { message, log })?;
        removed
    }

    /// `tidy` removes what is not kept of the data; everything else is removed.
    pub(crate) fn stop_and_keep_data(
        mut self,
        to: &Path,
        tidy: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<()> {
        self.control.end(KEEP_DATA_LIMIT).map_err(|message| DeployError {
            message: format!("{message}: its data may be incomplete"),
            log: self.folder.log_tail(LOG_LINES),
        })?;
        let data = self.folder.data();
        tidy(&data)?;
        let keeper = self.folder.keeper();
        match self.folder.logs() {
            Some(logs) => self.control.kind.log_files.unite((&data, logs), to, keeper)?,
            None => move_data(&data, to, (keeper, CopyLayout::AsOriginal))?,
        }
        self.folder.remove()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_listens_for_its_replicas_and_for_nobody_else() {
        let check = |addresses: &[&str], port: Option<u16>, expected: &[&str]| {
            let all = addresses.iter().map(|&address| address.to_owned()).collect();
            let allowed = port.map_or(NO_PORTS, |port| ports(&[port]));
            assert_eq!(strange(all, allowed, None), expected, "{addresses:?} {port:?}");
        };
        check(&[], None, &[]);
        check(&["127.0.0.1:7"], None, &["127.0.0.1:7"]);
        check(&["127.0.0.1:7"], Some(7), &[]);
        let others = ["0.0.0.0:7", "127.0.0.1:8", "[00000000000000000000000001000000]:7"];
        check(&[others[0], "127.0.0.1:7", others[1], others[2]], Some(7), &others);
        let open = Some(SocketAddrV4::new([10, 0, 0, 1].into(), 7));
        let all = ["10.0.0.1:7", "127.0.0.1:7", "0.0.0.0:7"].map(str::to_owned).to_vec();
        assert_eq!(strange(all, NO_PORTS, open), ["127.0.0.1:7", "0.0.0.0:7"]);
    }

    #[test]
    fn an_id_of_a_server_that_has_ended_says_nothing_of_where_it_listens() {
        use std::os::unix::fs::PermissionsExt;

        use dyno_units::ManualClock;

        let root = tempfile::tempdir().unwrap();
        // The servers' user goes through it.
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(root.path(), mode).unwrap();
        let keeper = Arc::new(Keeper::new(&root.path().join("keeper")).unwrap());
        let folder = ServerFolder::make(&Place::under(&keeper), "sleep").unwrap();
        let spec = ProcessSpec {
            program: "/bin/sleep".into(),
            arguments: vec!["1000".to_owned()],
            log: folder.log(),
            ..ProcessSpec::default()
        };
        let kind = ServerKind::new("Sleep");
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new());
        let (server, ()) = OwnServer::start(folder, &spec, kind, &clock, || Ok(())).unwrap();
        let control = server.control.clone();
        assert_eq!(control.listens().unwrap(), [""; 0]);
        control.act(Act::Kill).unwrap();
        assert!(control.listens().unwrap_err().contains("Sleep was ended by signal 9"));
    }
}
