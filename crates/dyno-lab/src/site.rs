//! Where a member's server runs. Only this file tells servers on this machine from those on hosts. Parts
//! ([`dyno_database::Part`]), settings and the order of members are decided before, independently; the result is a
//! [`Server`] either way.

use std::path::Path;
use std::sync::Arc;

use dyno_database::{
    DeployError, Endpoint, Listening, Place, Products, RouterLaunch, Server, ServerSpec,
};
use dyno_study::Database;
use dyno_units::Clock;

use crate::deployment::Route;
use crate::hosts::ServerHosts;
use crate::run::Lab;
use crate::trial::TrialError;

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

/// Starts a router on this machine, for clients of other machines if it is open to them: see [`Site::start_router`].
///
/// # Errors
///
/// It did not start.
pub(crate) fn start_router(
    products: &Products,
    route: &Route,
    (to, also, open): (&Endpoint, &[Endpoint], Option<&Listening>),
    (place, clock): (&Place, &Arc<dyn Clock>),
) -> Result<(Box<dyn Server>, Vec<String>), DeployError> {
    let router = products.router(&route.product)?;
    let (options, clients, cpus) = (&route.options, route.clients, &route.cpus);
    let launch = RouterLaunch { options, to, also, open, clients, cpus, place, clock };
    Ok((router.start(&launch)?, router.notes(&launch)))
}
