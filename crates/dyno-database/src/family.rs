//! What a product folder gives to the registry.

use std::sync::Arc;

use dyno_units::Reading;

use crate::{Product, Protocol, Router};

/// The contents of a product folder: products that share code.
pub(crate) struct Family {
    pub(crate) products: fn() -> Vec<Arc<dyn Product>>,
    pub(crate) routers: fn() -> Vec<Arc<dyn Router>>,
    pub(crate) protocol: Option<&'static Protocol>,
    /// Names of its probes, except the one of debt, which all have.
    pub(crate) probes: &'static [&'static str],
    pub(crate) readings: &'static [fn() -> Vec<Reading>],
}

impl Family {
    /// A folder that has these products and nothing else.
    pub(crate) const fn of(products: fn() -> Vec<Arc<dyn Product>>) -> Family {
        let routers = Vec::new;
        Family { products, routers, protocol: None, probes: &[], readings: &[] }
    }
}
