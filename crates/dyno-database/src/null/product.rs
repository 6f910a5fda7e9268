//! Null servers as products: one for each protocol.

use std::sync::Arc;

use super::{Wire, server};
use crate::products::Family;
use crate::{DeployError, Launch, Product, ProductSpec, Server};

pub(crate) const FAMILY: Family = Family {
    products: || Wire::ALL.map(product).into(),
    routers: Vec::new,
    protocol: None,
    sql: None,
    probes: &[],
    readings: &[],
};

struct Null {
    wire: Wire,
    spec: ProductSpec,
}

fn product(wire: Wire) -> Arc<dyn Product> {
    let name = format!("null-{}", wire.name());
    let title = format!("Null ({} protocol)", wire.title());
    let summary = format!(
        "answers the {} protocol immediately, stores nothing: measures the load generator itself \
         (settings: delay, stall_at, stall)",
        wire.title()
    );
    let spec = ProductSpec::new(&name, &title, &summary, Some(wire.dialect()));
    Arc::new(Null {
        wire,
        spec: ProductSpec { is_embedded: true, has_socket: true, stores_data: false, ..spec },
    })
}

impl Product for Null {
    fn spec(&self) -> &ProductSpec {
        &self.spec
    }

    fn start(&self, launch: &Launch<'_>) -> Result<Box<dyn Server>, DeployError> {
        server::start(self.wire, &self.spec.title, launch)
    }
}
