//! Runs the commands of a job beside an agent's server: one at a time, on a thread of their own, so that the agent
//! keeps answering.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use dyno_database::{DeployError, Server};
use dyno_host::Keeper;
use dyno_load::AbortFlag;
use dyno_units::Clock;

use super::message::{Answer, CommandEndThere};
use super::serve::Outlet;
use crate::command::{CommandOrder, JobFolder};
use crate::error::Context;

/// The job of an agent, which ends with this: its command is stopped, and its folder removed.
#[derive(Default)]
pub(super) struct Job {
    folder: Option<Arc<JobFolder>>,
    running: Option<Running>,
}

struct Running {
    stop: AbortFlag,
    thread: JoinHandle<()>,
}

impl Drop for Job {
    fn drop(&mut self) {
        self.interrupt();
        self.join();
    }
}

impl Job {
    /// Tells the controller the outcome. Fails if another runs, or without folder or thread.
    pub(super) fn run(
        &mut self,
        (task, order): (u64, CommandOrder),
        (server, keeper, program): (&dyn Server, &Arc<Keeper>, Option<&Path>),
        (clock, out): (&Arc<dyn Clock>, &Outlet),
        ended: &AbortFlag,
    ) -> Result<(), DeployError> {
        if self.running.as_ref().is_some_and(|running| !running.thread.is_finished()) {
            return Err(DeployError::new("a command is running here already"));
        }
        self.join();
        let folder = match &self.folder {
            Some(folder) => Arc::clone(folder),
            None => Arc::clone(self.folder.insert(Arc::new(JobFolder::make(keeper)?))),
        };
        let environment = server.client_environment();
        let program: Option<PathBuf> = program.map(Path::to_owned);
        let (clock, out, stop) = (Arc::clone(clock), out.clone(), ended.child());
        let stopped = stop.clone();
        let work = move || {
            let servers = (&environment[..], program.as_deref());
            let end = folder.run(&order, servers, clock.as_ref(), &stopped);
            let end: CommandEndThere = end.map_err(|error| DeployError::from(error).message);
            // The folder can be removed by whoever hears of the end.
            drop(folder);
            // A controller that is gone is noticed by whoever reads.
            let _ = out.say(&Answer::CommandEnded { task, end });
        };
        let thread = thread::Builder::new().name("dyno-command".to_owned()).spawn(work);
        let thread = thread.context("no thread can be started for a command")?;
        self.running = Some(Running { stop, thread });
        Ok(())
    }

    pub(super) fn interrupt(&self) {
        self.running.iter().for_each(|running| running.stop.raise());
    }

    fn join(&mut self) {
        if let Some(running) = self.running.take() {
            // Its panic has been reported.
            let _ = running.thread.join();
        }
    }
}
