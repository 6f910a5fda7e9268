//! PgBouncer, a pooler in front of PostgreSQL: it gives the connections of many clients to few servers.

mod configuration;
mod server;

use std::sync::Arc;

use crate::Router;
use crate::products::Family;

/// The folder for the registry. Its probe, and the words of its console, are those of the protocol that it
/// speaks.
pub(crate) const FAMILY: Family = Family {
    products: Vec::new,
    routers: || vec![Arc::new(server::PgBouncer::new()) as Arc<dyn Router>],
    protocol: None,
    sql: None,
    probes: &["pgbouncer"],
    readings: &[],
};
