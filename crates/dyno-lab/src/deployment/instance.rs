//! What runs as a member: a server of real time, a replica, or a simulation.

use std::path::Path;
use std::sync::Arc;

use dyno_database::{DeployError, Following, Server};
use dyno_load::{AbortFlag, Job, LoadError, StepEvent, StepSpec, StepTotals, run_step};
use dyno_record::ServerFacts;
use dyno_workload::{Connector, MadeWorkload};

use super::recorded;
use crate::run::Lab;

/// What runs as a member.
pub(crate) trait Instance: Send {
    /// Its facts, as the record keeps them.
    ///
    /// # Errors
    ///
    /// It does not answer.
    fn facts(&self) -> Result<ServerFacts, DeployError>;

    /// The server that can be asked, watched and waited for; none where time is simulated.
    fn server(&self) -> Option<&dyn Server> {
        None
    }

    fn following(&self) -> Option<&Following> {
        None
    }

    /// Why it is down; none while it runs.
    fn down(&mut self) -> Option<String> {
        None
    }

    /// Puts a step of load on it; `observe` is called on this thread.
    ///
    /// # Errors
    ///
    /// The step could not be run: see [`run_step`].
    fn run_load(
        &self,
        spec: &StepSpec,
        load: &LoadOrder<'_>,
        observe: &mut dyn FnMut(StepEvent<'_>),
    ) -> Result<StepTotals, LoadError>;

    /// Stops it and moves its complete data to a folder: see [`Server::stop_and_keep_data`].
    ///
    /// # Errors
    ///
    /// It has no data that could be moved, or did not stop in order.
    fn stop_and_keep_data(self: Box<Self>, to: &Path) -> Result<(), DeployError> {
        let _ = to;
        Err(DeployError::new("it stores no data"))
    }

    /// Stops it and removes what was made for it.
    ///
    /// # Errors
    ///
    /// Something is left, or it ended badly.
    fn stop(self: Box<Self>) -> Result<(), DeployError> {
        Ok(())
    }
}

pub(crate) struct LoadOrder<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) workload: &'a MadeWorkload,
    pub(crate) abort: &'a AbortFlag,
    /// Opens connections to the member with the rows, if that is another one.
    pub(crate) rows: Option<Connector>,
    /// Opens connections to all members that take the load in turn, if they are several.
    pub(crate) spread: Option<Connector>,
}

fn run_here(
    server: &dyn Server,
    spec: &StepSpec,
    load: &LoadOrder<'_>,
    observe: &mut dyn FnMut(StepEvent<'_>),
) -> Result<StepTotals, LoadError> {
    let job = Job {
        workload: load.workload.clone(),
        connector: load.spread.clone().unwrap_or_else(|| server.connector()),
        clock: Arc::clone(&load.lab.clock),
        abort: load.abort.clone(),
    };
    run_step(spec, &job, observe)
}

impl Instance for Box<dyn Server> {
    fn facts(&self) -> Result<ServerFacts, DeployError> {
        Ok(recorded((**self).facts()?))
    }

    fn server(&self) -> Option<&dyn Server> {
        Some(&**self)
    }

    fn down(&mut self) -> Option<String> {
        (**self).down()
    }

    fn run_load(
        &self,
        spec: &StepSpec,
        load: &LoadOrder<'_>,
        observe: &mut dyn FnMut(StepEvent<'_>),
    ) -> Result<StepTotals, LoadError> {
        run_here(&**self, spec, load, observe)
    }

    fn stop_and_keep_data(self: Box<Self>, to: &Path) -> Result<(), DeployError> {
        Server::stop_and_keep_data(*self, to)
    }

    fn stop(self: Box<Self>) -> Result<(), DeployError> {
        Server::stop(*self)
    }
}

impl Instance for Following {
    fn facts(&self) -> Result<ServerFacts, DeployError> {
        Instance::facts(&self.server)
    }

    fn server(&self) -> Option<&dyn Server> {
        Some(&*self.server)
    }

    fn following(&self) -> Option<&Following> {
        Some(self)
    }

    fn down(&mut self) -> Option<String> {
        let down = self.server.down()?;
        Some(format!("{}: {down}", self.name))
    }

    fn run_load(
        &self,
        spec: &StepSpec,
        load: &LoadOrder<'_>,
        observe: &mut dyn FnMut(StepEvent<'_>),
    ) -> Result<StepTotals, LoadError> {
        Instance::run_load(&self.server, spec, load, observe)
    }

    fn stop(self: Box<Self>) -> Result<(), DeployError> {
        self.server.stop()
    }
}
