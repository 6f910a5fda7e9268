//! Deliberate acts on a server's process while clients use it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dyno_host::{HowStopped, KeptProcess, Place, ProcessSpec, listens_by_network};
use dyno_units::{Clock, Nanoseconds};

use crate::error::Result;
use crate::private::{DISCARD_LIMIT, LOG_LINES, STOP_LIMIT, ServerKind, strange};
use crate::{DeployError, server_log};

/// What is done on purpose to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Act {
    /// Kills the server's process and all that it has started, at once: it can finish nothing.
    Kill,
    /// Suspends the server's process and all that it has started, until [`Act::Thaw`].
    Freeze,
    Thaw,
    /// Asks the server to end, and waits until it has.
    Stop,
    /// Starts the server that has ended again: the same program on the same data. Does not wait until it answers.
    Start,
    /// Cuts the server off from the other members of its cluster.
    CutOff,
    Rejoin,
    CheckNetwork,
}

/// When something was done, by the clock of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Acted {
    pub began: Nanoseconds,
    pub ended: Nanoseconds,
}

/// Acts on a server on purpose, wherever it runs.
pub trait Control: Send {
    fn act(&self, act: Act) -> Result<Acted>;

    /// Whether it does more than answer: a node has joined its cluster. Fails with its state if not
    /// yet; with [`Away::Down`] if it has ended for good.
    fn is_back(&self) -> Result<(), Away>;

    /// Whether it is on another machine, which may be lost.
    fn is_elsewhere(&self) -> bool {
        false
    }

    /// Why its machine, or that of another member, is lost; none if none is.
    fn lost(&self) -> Option<String> {
        None
    }
}

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Away {
    NotYet(String),
    Down(String),
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
            Act::Kill => self.process().kill_all(),
            Act::Freeze => self.process().freeze(),
            Act::Thaw => self.process().thaw(),
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
        self.process().stop(self.kind.stop_signal, self.clock.as_ref(), DISCARD_LIMIT);
    }

    /// Asks it to end.
    /// Fails if it had to be killed, or ended with an error: its last writes cannot be trusted.
    pub(crate) fn end(&self, limit: Nanoseconds) -> Result<(), String> {
        let (mut process, product) = (self.process(), self.kind.product);
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
        self.process().ended().map(|how| format!("{} {how}", self.kind.product))
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
        let mut process = self.process();
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
        self.process().pid()
    }

    /// Fails if the process has ended, whose id may be another's by now, or they are unknown.
    pub(crate) fn listens(&self) -> Result<Vec<String>, String> {
        // As long as nobody collects it, which takes this lock, its id is its own.
        let mut process = self.process();
        match process.ended() {
            Some(how) => Err(format!("{} {how}", self.kind.product)),
            None => listens_by_network(process.pid()).map_err(|error| error.to_string()),
        }
    }

    fn failed(&self, message: String) -> DeployError {
        let log = server_log::last_words(&self.spec.log, LOG_LINES);
        DeployError { message, log }
    }

    pub(crate) fn process(&self) -> MutexGuard<'_, KeptProcess> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
