//! A running member: a server in real time, a replica, or a simulation.

use std::path::Path;
use std::sync::Arc;

use dyno_database::{DeployError, Following, Server};
use dyno_load::simulation::SimulatedServer;
use dyno_load::{AbortFlag, Job, LoadError, StepEvent, StepSpec, StepTotals, run_step};
use dyno_record::ServerFacts;
use dyno_workload::{Connector, MadeWorkload};

use super::recorded;
use crate::{Lab, simulated};

pub(crate) enum Instance {
    Server(Box<dyn Server>),
    Replica(Box<Following>),
    Simulated(Box<SimulatedServer>),
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

impl Instance {
    pub(crate) fn facts(&self) -> Result<ServerFacts, DeployError> {
        match self.server() {
            Some(server) => Ok(recorded(server.facts()?)),
            None => Ok(simulated::facts()),
        }
    }

    /// The server that can be asked, watched and waited for; none where time is simulated.
    pub(crate) fn server(&self) -> Option<&dyn Server> {
        match self {
            Instance::Server(server) => Some(&**server),
            Instance::Replica(following) => Some(&*following.server),
            Instance::Simulated(_) => None,
        }
    }

    pub(crate) fn following(&self) -> Option<&Following> {
        if let Instance::Replica(following) = self { Some(following) } else { None }
    }

    pub(crate) fn down(&mut self) -> Option<String> {
        match self {
            Instance::Server(server) => server.down(),
            Instance::Replica(following) => {
                let down = following.server.down()?;
                Some(format!("{}: {down}", following.name))
            }
            Instance::Simulated(_) => None,
        }
    }

    /// Puts a step of load on it; `observe` is called on this thread.
    pub(crate) fn run_load(
        &self,
        spec: &StepSpec,
        load: &LoadOrder<'_>,
        observe: &mut dyn FnMut(StepEvent<'_>),
    ) -> Result<StepTotals, LoadError> {
        let server = match self {
            Instance::Simulated(server) => {
                let of = (load.workload, load.rows.as_ref());
                return simulated::run_load(server, spec, of, observe);
            }
            Instance::Server(server) => server,
            Instance::Replica(following) => &following.server,
        };
        let job = Job {
            workload: load.workload.clone(),
            connector: load.spread.clone().unwrap_or_else(|| server.connector()),
            clock: Arc::clone(&load.lab.clock),
            abort: load.abort.clone(),
        };
        run_step(spec, &job, observe)
    }

    /// Stops it and moves its complete data to a folder: see [`Server::stop_and_keep_data`].
    pub(crate) fn stop_and_keep_data(self, to: &Path) -> Result<(), DeployError> {
        match self {
            Instance::Server(server) => server.stop_and_keep_data(to),
            _ => Err(DeployError::new("it stores no data")),
        }
    }

    /// Stops it and removes what was made for it.
    pub(crate) fn stop(self) -> Result<(), DeployError> {
        match self {
            Instance::Server(server) => server.stop(),
            Instance::Replica(following) => following.server.stop(),
            Instance::Simulated(_) => Ok(()),
        }
    }
}
