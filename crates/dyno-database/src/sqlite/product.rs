//! SQLite as a product.

use std::sync::Arc;

use dyno_workload::{Connection, Dialect};

use super::{data, pragma, probe, server};
use crate::error::Result;
use crate::family::Family;
use crate::product::texts;
use crate::settings::GivenSettings;
use crate::{DataShape, DiskUse, Launch, Place, Product, ProductSpec, Server, ServerSpec};

pub(crate) const FAMILY: Family = Family {
    products: || vec![Arc::new(Sqlite { spec: sqlite() })],
    routers: Vec::new,
    protocol: None,
    probes: &["sqlite", "sqlite_pages"],
    readings: &[|| probe::READINGS.to_vec()],
};

struct Sqlite {
    spec: ProductSpec,
}

fn sqlite() -> ProductSpec {
    ProductSpec {
        is_embedded: true,
        disk: Some(DiskUse { kept: 0, grown: 0, running: 4 << 20, log: None, spread: 1.1 }),
        disk_full: texts(["disk is full"]),
        refusals: texts(["there is no pragma"]),
        ..ProductSpec::new(
            "sqlite",
            "SQLite",
            "SQLite, inside Dyno's own process: nothing to install",
            Some(Dialect::Sqlite),
        )
    }
}

impl Product for Sqlite {
    fn spec(&self) -> &ProductSpec {
        &self.spec
    }

    fn start(&self, launch: &Launch<'_>) -> Result<Box<dyn Server>> {
        server::start(launch)
    }

    fn data_shape(&self, spec: &ServerSpec, _place: &Place) -> Result<DataShape> {
        data::data_shape(spec)
    }

    fn in_memory(&self) -> Option<Box<dyn Connection>> {
        super::connection_in_memory().ok()
    }

    fn settings_refusal(&self, settings: &GivenSettings) -> Option<String> {
        pragma::refusal(settings)
    }
}
