//! Where a member's server runs. Only this file tells servers on this machine from those on hosts. Parts
//! ([`dyno_database::Part`]), settings and the order of members are decided before, independently; the result is a
//! [`Server`] either way.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_database::{Endpoint, Place, Server, ServerSpec};
use dyno_host::Keeper;
use dyno_load::AbortFlag;
use dyno_study::Database;
use dyno_units::Clock;

use crate::command::{CommandEnd, CommandOrder, JobFolder};
use crate::error::TrialError;
use crate::hosts::ServerHosts;
use crate::lab::Lab;
use crate::route::{Route, start_router};

pub(crate) enum Site {
    Here(Place),
    /// On the host with this index, as a child of the agent there.
    There(Arc<ServerHosts>, usize),
}

impl Site {
    /// Starts a server and waits until it answers. Here it starts on `data`, or empty; on a host, on the data that its
    /// agent holds ([`ServerHosts::halt`], [`ServerHosts::copy`]), if any. Fails, with the host's name, if it did not
    /// start.
    pub(crate) fn start(
        &self,
        (lab, database): (&Lab, &Database),
        spec: &ServerSpec,
        data: Option<&Path>,
    ) -> Result<Box<dyn Server>, TrialError> {
        match (self, data) {
            (Site::Here(place), Some(data)) => {
                Ok(lab.products.start_on(data, spec, place, &lab.clock)?)
            }
            (Site::Here(place), None) => Ok(lab.products.start(spec, place, &lab.clock)?),
            (Site::There(hosts, idx), _) => {
                let started = hosts.start_servers(lab, database, &[(*idx, spec)])?;
                let none = || TrialError::new("no server was started");
                started.into_iter().next().ok_or_else(none)
            }
        }
    }

    /// `also` are further servers of the load. Returns a note, too; fails with the host's name.
    pub(crate) fn start_router(
        &self,
        lab: &Lab,
        route: &Route,
        (to, also): (&Endpoint, &[Endpoint]),
    ) -> Result<(Box<dyn Server>, Vec<String>), TrialError> {
        match self {
            Site::Here(place) => {
                Ok(start_router(&lab.products, route, (to, also, None), (place, &lab.clock))?)
            }
            Site::There(hosts, idx) => hosts.start_router(*idx, (route, to, also)),
        }
    }
}

pub(crate) enum JobSite {
    /// On this machine.
    Here { folder: JobFolder, environment: Vec<(String, String)>, program: Option<PathBuf> },
    /// On the host with this index, beside its server. The agent there keeps the folder until this is dropped.
    There(Arc<ServerHosts>, usize),
}

impl JobSite {
    /// On this machine; its environment variables lead to both servers. Fails if no folder can be made.
    pub(crate) fn here(
        keeper: &Arc<Keeper>,
        program: Option<&Path>,
        (server, other): (Option<&dyn Server>, Option<&dyn Server>),
    ) -> Result<JobSite, TrialError> {
        let mut environment = server.map(Server::client_environment).unwrap_or_default();
        environment
            .extend(other.and_then(Server::endpoint).into_iter().flat_map(Endpoint::as_other));
        let folder = JobFolder::make(keeper)?;
        Ok(JobSite::Here { folder, environment, program: program.map(Path::to_owned) })
    }

    /// To its end or `stop`. Fails if it cannot start; a failed command returns its end.
    pub(crate) fn run(
        &self,
        order: &CommandOrder,
        clock: &dyn Clock,
        stop: &AbortFlag,
    ) -> Result<CommandEnd, TrialError> {
        match self {
            JobSite::Here { folder, environment, program } => {
                folder.run(order, (environment, program.as_deref()), clock, stop)
            }
            JobSite::There(hosts, idx) => {
                Ok(hosts.run_command(*idx, order, stop)?.into_kept(order))
            }
        }
    }

    pub(crate) fn in_words(&self) -> String {
        match self {
            JobSite::Here { .. } => String::new(),
            JobSite::There(hosts, idx) => format!("host {}: ", hosts.name(*idx)),
        }
    }
}

impl Drop for JobSite {
    fn drop(&mut self) {
        if let JobSite::There(hosts, idx) = self {
            hosts.end_job(*idx);
        }
    }
}
