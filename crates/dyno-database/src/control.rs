//! What may be done on purpose to the process of a server that Dyno started, while clients use it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dyno_host::{KeptProcess, Place, ProcessSpec};
use dyno_units::Clock;

use crate::DeployError;
use crate::private::{LOG_LINES, STOP_LIMIT, ServerKind, check_network, end};

/// The process of a private server: the only one that it acts on, and by the handle of whoever started it.
/// It does not keep the server alive.
pub struct ServerControl {
    pub(crate) process: Arc<Mutex<KeptProcess>>,
    pub(crate) folder: PathBuf,
    pub(crate) place: Place,
    pub(crate) spec: ProcessSpec,
    pub(crate) kind: ServerKind,
    pub(crate) clock: Arc<dyn Clock>,
    /// What has to be asked of the server besides an answer; none for nothing.
    pub(crate) is_back: Option<IsBack>,
    /// How it is cut off from the other members; none if it cannot be.
    pub(crate) isolation: Option<Isolation>,
}

/// Cuts a server off from the other members (true), or lets it reach them again; an error says why not.
pub(crate) type Isolation = Arc<dyn Fn(bool) -> Result<(), String> + Send + Sync>;

/// Asks a server whether it is back, once; an error says what it is doing.
pub(crate) type IsBack = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

impl ServerControl {
    /// Kills the server's process and all that it has started, at once: it can finish nothing.
    pub fn kill(&self) {
        self.process().kill_all();
    }

    /// Stops the server's process and all that it has started where they stand, until
    /// [`ServerControl::thaw`].
    pub fn freeze(&self) {
        self.process().freeze();
    }

    /// Lets go on what [`ServerControl::freeze`] has stopped.
    pub fn thaw(&self) {
        self.process().thaw();
    }

    /// Asks the server to end, and waits until it has.
    ///
    /// # Errors
    ///
    /// It had to be killed, or ended with an error.
    pub fn stop(&self) -> Result<(), DeployError> {
        end(&mut self.process(), self.kind, self.clock.as_ref(), STOP_LIMIT)
            .map_err(|message| self.failed(message))
    }

    /// Starts the server that has ended again: the same program on the same data. It does not wait until it
    /// answers.
    ///
    /// # Errors
    ///
    /// It still runs, or cannot be started.
    pub fn start(&self) -> Result<(), DeployError> {
        let mut process = self.process();
        if process.ended().is_none() {
            return Err(self.failed(format!("{} is still running", self.kind.product)));
        }
        *process = self.place.keeper().spawn(&self.folder, &self.spec)?;
        Ok(())
    }

    /// Cuts the server off from the other members of its cluster, or lets it reach them again.
    ///
    /// # Errors
    ///
    /// It has none, or refuses.
    pub fn isolate(&self, is_cut: bool) -> Result<(), DeployError> {
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

    /// Whether it does again what it did before, besides answering: a node has joined its cluster.
    ///
    /// # Errors
    ///
    /// Not yet: what it says.
    pub fn is_back(&self) -> Result<(), String> {
        self.is_back.as_ref().map_or(Ok(()), |is_back| is_back())
    }

    /// The id of its process.
    pub(crate) fn pid(&self) -> i32 {
        self.process().pid()
    }

    /// Why it is down; none while it runs.
    pub fn down(&self) -> Option<String> {
        self.process().ended().map(|how| format!("{} {how}", self.kind.product))
    }

    /// Refuses a server that others could reach.
    ///
    /// # Errors
    ///
    /// It listens on the network.
    pub fn check_network(&self) -> Result<(), DeployError> {
        let pid = self.process().pid();
        check_network(self.kind, pid).map_err(|message| self.failed(message))
    }

    fn failed(&self, message: String) -> DeployError {
        let log = dyno_host::last_lines(&self.spec.log, LOG_LINES);
        DeployError { message, log }
    }

    fn process(&self) -> MutexGuard<'_, KeptProcess> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
