//! The product `host`: this machine without a server, for studies that only observe.

use dyno_database::{DeployError, Product, ProductSpec, Products};
use dyno_study::{Product as Chosen, Variant};
use dyno_workload::Target;

use crate::simulated;

const NAME: &str = "host";

/// All products a study may name: those of the databases, the simulated one, and the machine without any.
pub fn products() -> Products {
    Products::built_in().with(simulated::product()).with(product())
}

fn product() -> Product {
    let summary = "this machine without a server, for the workload none";
    let spec = ProductSpec {
        is_embedded: true,
        stores_data: false,
        target: Target::Anything,
        ..ProductSpec::new(NAME, "this host", summary, None)
    };
    let why = "a machine without a server can only be observed, by a study";
    Product {
        refused_setting: |_| Some("there is no server to have settings".to_owned()),
        ..Product::new(spec, move |_| Err(DeployError::new(why)))
    }
}

pub(crate) fn is_chosen(products: &Products, variant: &Variant) -> bool {
    let Chosen::Private(name) = &variant.database.product else { return false };
    products.spec(name).is_some_and(|product| product.target == Target::Anything)
}
