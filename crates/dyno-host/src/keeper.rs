//! Keeps the processes and folders that Dyno makes, and ends those that a killed run left over.

use std::path::{Path, PathBuf};

use dyno_units::{Clock, Nanoseconds};

/// Makes server folders under one root and starts processes in them. Each folder holds an owner
/// file that names the Dyno process (id, start time, boot) and the processes started in it.
pub struct Keeper {}

/// A process to start.
#[derive(Clone, Debug, Default)]
pub struct ProcessSpec {
    /// The program.
    pub program: PathBuf,
    /// Its arguments; never a secret.
    pub arguments: Vec<String>,
    /// Environment variables to set; all others but PATH, LANG and TZ are removed.
    pub environment: Vec<(String, String)>,
    /// File to which its output and errors are appended.
    pub log: PathBuf,
    /// The user to run as, if not Dyno's own.
    pub run_as: Option<RunAs>,
    /// CPUs to bind it to; empty for none.
    pub cpus: Vec<u32>,
}

/// An unprivileged user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunAs {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

/// A process that Dyno started. Dropping it kills it.
pub struct KeptProcess {}

/// Something that could not be made, started or ended.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct KeeperError(pub String);

impl Keeper {
    /// A keeper for servers under `root`, which is made if it is missing.
    pub fn new(_root: &Path) -> Result<Keeper, KeeperError> { unimplemented!() }
    /// The user that servers run as: none when Dyno is not root, else `nobody`.
    pub fn run_as(&self) -> Option<RunAs> { unimplemented!() }
    /// Makes a fresh folder for a server, owned by `run_as`, with the owner file in it. `name` is a
    /// hint. The path is short enough (< 80 bytes) for a Unix socket inside it.
    pub fn make_folder(&self, _name: &str) -> Result<PathBuf, KeeperError> { unimplemented!() }
    /// Runs a program in a folder to its end (initdb …); its output when it fails is in the error.
    pub fn run(&self, _folder: &Path, _spec: &ProcessSpec, _clock: &dyn Clock, _limit: Nanoseconds) -> Result<(), KeeperError> { unimplemented!() }
    /// Starts a server process in a folder and notes it in the owner file.
    pub fn spawn(&self, _folder: &Path, _spec: &ProcessSpec) -> Result<KeptProcess, KeeperError> { unimplemented!() }
    /// Removes a folder that this keeper made (proved by its owner file).
    pub fn remove_folder(&self, _folder: &Path) -> Result<(), KeeperError> { unimplemented!() }
    /// Ends processes and removes folders of Dyno runs that are no longer alive. Returns what it
    /// ended, in words. Touches nothing that it cannot prove a dead Dyno made.
    pub fn end_leftovers(&self, _clock: &dyn Clock) -> Vec<String> { unimplemented!() }
}

impl KeptProcess {
    /// Its process id.
    pub fn pid(&self) -> i32 { unimplemented!() }
    /// How it ended, in words, or none while it runs.
    pub fn ended(&mut self) -> Option<String> { unimplemented!() }
    /// Asks it to end with this signal (a name such as `TERM`, `INT`), waits up to `limit`, then kills it.
    pub fn stop(&mut self, _signal: &str, _clock: &dyn Clock, _limit: Nanoseconds) { unimplemented!() }
}
