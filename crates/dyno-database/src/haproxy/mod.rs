//! HAProxy, a router that passes connections on without reading them: in front of one server, or of all nodes
//! of a cluster.

mod probe;
mod server;

use std::sync::Arc;

use crate::Router;
use crate::products::Family;

pub(crate) const FAMILY: Family = Family {
    products: Vec::new,
    routers: || vec![Arc::new(server::HaProxy::new()) as Arc<dyn Router>],
    protocol: None,
    sql: None,
    probes: &["haproxy"],
    readings: &[|| probe::READINGS],
};
