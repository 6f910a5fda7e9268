//! Where the server of a member runs.
//!
//! This is the one place that tells a server of this machine from one on a host. What a server is for
//! ([`dyno_database::Part`]), with what settings and in which order members come up is decided before, without knowing
//! it; what comes of it is a [`Server`] in both cases.

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
    /// Starts a server of a database and waits until it answers. Here it begins with `data`, or else empty; on a host, with
    /// the data that the agent there holds ([`ServerHosts::halt`], [`ServerHosts::copy`]), if it holds any.
    ///
    /// # Errors
    ///
    /// It did not start; the message names the host.
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

    /// Starts a router in front of a server, and of further ones that take the same load. Returns it with what is worth
    /// knowing about it.
    ///
    /// # Errors
    ///
    /// It did not start; the message names the host.
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
