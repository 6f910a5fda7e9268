//! Files as a product.

use std::sync::Arc;

use dyno_workload::Target;

use super::server;
use crate::product::texts;
use crate::products::Family;
use crate::{DeployError, DiskUse, Launch, Product, ProductSpec, Server};

pub(crate) const FAMILY: Family = Family {
    products: || vec![Arc::new(Files { spec: files() })],
    routers: Vec::new,
    protocol: None,
    sql: None,
    probes: &[],
    readings: &[],
};

/// Begins all messages about what cannot be done in a folder whatever happens.
pub(super) const REFUSED: &str = "these files cannot be created: ";

struct Files {
    spec: ProductSpec,
}

fn files() -> ProductSpec {
    ProductSpec {
        is_embedded: true,
        target: Target::Files,
        disk: Some(DiskUse { kept: 0, grown: 0, running: 0, log: None, spread: 1.0 }),
        disk_full: texts(["No space left on device"]),
        refusals: texts([REFUSED]),
        ..ProductSpec::new(
            "files",
            "files",
            "files on a volume or in a folder, for the workloads file-io and fsync",
            None,
        )
    }
}

impl Product for Files {
    fn spec(&self) -> &ProductSpec {
        &self.spec
    }

    fn start(&self, launch: &Launch<'_>) -> Result<Box<dyn Server>, DeployError> {
        server::start(launch)
    }

    fn refused_setting(&self, _name: &str) -> Option<String> {
        Some(
            "files have no settings; [volume.NAME] and the workload's options determine where \
              they are and how they are used"
                .to_owned(),
        )
    }
}
