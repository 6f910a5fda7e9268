//! Routers of deployments.

use std::collections::BTreeMap;
use std::sync::Arc;

use dyno_database::{DeployError, Endpoint, Listening, Place, Products, RouterLaunch, Server};
use dyno_units::Clock;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Route {
    pub(crate) product: String,
    pub(crate) options: BTreeMap<String, String>,
    /// Whether it shares the load among all nodes of a cluster.
    pub(crate) to_all: bool,
    pub(crate) clients: usize,
    pub(crate) cpus: Vec<u32>,
}

/// Starts a router on this machine, for clients of other machines if it is open to them. Returns notes, too.
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
