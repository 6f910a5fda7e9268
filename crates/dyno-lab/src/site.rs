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

use crate::command::JobFolder;
use crate::route::start_router;
use crate::{CommandEnd, CommandOrder, Context, Lab, Result, Route, There};

pub(crate) enum Site {
    Here(Place),
    /// On a host, as a child of the agent there.
    There(There),
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
    ) -> Result<Box<dyn Server>> {
        match (self, data) {
            (Site::Here(place), Some(data)) => {
                Ok(lab.products.start_on(data, spec, place, &lab.clock)?)
            }
            (Site::Here(place), None) => Ok(lab.products.start(spec, place, &lab.clock)?),
            (Site::There(There { hosts, idx }), _) => {
                let started = hosts.start_servers(lab, database, &[(*idx, spec)])?;
                started.into_iter().next().context("no server was started")
            }
        }
    }

    /// `also` are further servers of the load. Returns a note, too; fails with the host's name.
    pub(crate) fn start_router(
        &self,
        lab: &Lab,
        route: &Route,
        (to, also): (&Endpoint, &[Endpoint]),
    ) -> Result<(Box<dyn Server>, Vec<String>)> {
        match self {
            Site::Here(place) => {
                Ok(start_router(&lab.products, route, (to, also, None), (place, &lab.clock))?)
            }
            Site::There(there) => there.hosts.start_router(there.idx, (route, to, also)),
        }
    }
}

pub(crate) enum JobSite {
    /// On this machine.
    Here { folder: JobFolder, environment: Vec<(String, String)>, program: Option<PathBuf> },
    /// On a host, beside its server. The agent there keeps the folder until this is dropped.
    There(There),
}

impl JobSite {
    /// On this machine; its environment variables lead to both servers. Fails if no folder can be made.
    pub(crate) fn here(
        keeper: &Arc<Keeper>,
        program: Option<&Path>,
        (server, other): (Option<&dyn Server>, Option<&dyn Server>),
    ) -> Result<JobSite> {
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
    ) -> Result<CommandEnd> {
        match self {
            JobSite::Here { folder, environment, program } => {
                folder.run(order, (environment, program.as_deref()), clock, stop)
            }
            JobSite::There(there) => Ok(there.run_command(order, stop)?.into_kept(order)),
        }
    }

    pub(crate) fn in_words(&self) -> String {
        match self {
            JobSite::Here { .. } => String::new(),
            JobSite::There(there) => format!("host {}: ", there.name()),
        }
    }
}

impl Drop for JobSite {
    fn drop(&mut self) {
        if let JobSite::There(there) = self {
            there.end_job();
        }
    }
}
