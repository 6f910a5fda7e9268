//! The product `host`: this machine without a server, for studies that only observe.

use std::sync::Arc;

use dyno_database::{DeployError, Launch, Product, ProductSpec, Products, Server};
use dyno_study::{Product as Chosen, Variant};
use dyno_workload::Target;

use crate::simulated;

const NAME: &str = "host";

/// All products a study may name: those of the databases, the simulated one, and the machine without any.
pub fn products() -> Products {
    Products::built_in().with(simulated::product()).with(product())
}

fn product() -> Arc<dyn Product> {
    let summary = "this machine without a server, for the workload none";
    Arc::new(Machine(ProductSpec {
        is_embedded: true,
        stores_data: false,
        target: Target::Anything,
        ..ProductSpec::new(NAME, "this host", summary, None)
    }))
}

pub(crate) fn is_chosen(products: &Products, variant: &Variant) -> bool {
    let Chosen::Private(name) = &variant.database.product else { return false };
    products.spec(name).is_some_and(|product| product.target == Target::Anything)
}

struct Machine(ProductSpec);

impl Product for Machine {
    fn spec(&self) -> &ProductSpec {
        &self.0
    }

    fn start(&self, _launch: &Launch<'_>) -> Result<Box<dyn Server>, DeployError> {
        Err(DeployError::new("a machine without a server can only be observed, by a study"))
    }

    fn refused_setting(&self, _name: &str) -> Option<String> {
        Some("there is no server to have settings".to_owned())
    }
}
