//! Deploys a variant's database: a private server, one that runs already, or a simulated one.

use std::collections::BTreeMap;
use std::path::PathBuf;

use dyno_database::{Endpoint, ProductSpec, Server, ServerSpec};
use dyno_load::simulation::SimulatedServer;
use dyno_record::ServerFacts;
use dyno_study::{Design, Product, Variant};

use crate::run::Lab;
use crate::simulated;
use crate::trial::TrialError;

/// Where a trial's load goes.
pub(crate) enum Site {
    /// A server that can be connected to.
    Real(Box<dyn Server>),
    /// A queue whose behaviour is known, in simulated time.
    Simulated(SimulatedServer),
}

/// All products a study may name: those of the databases, and the simulated one.
pub fn products() -> Vec<ProductSpec> {
    let mut products = dyno_database::products();
    products.push(simulated::PRODUCT);
    products
}

/// Brings up the variant's database.
pub(crate) fn deploy(lab: &Lab, design: &Design, variant: &Variant) -> Result<Site, TrialError> {
    let database = &variant.database;
    let settings: BTreeMap<String, _> = database
        .settings
        .iter()
        .map(|(name, value)| (name.clone(), value.resolve(lab.memory())))
        .collect();
    let name = match &database.product {
        Product::Url(url) => {
            let endpoint = Endpoint::from_url(url).map_err(|error| TrialError::new(error.0))?;
            let server = dyno_database::attach(&endpoint, database.allow_foreign_tables)?;
            check_version(server.as_ref(), database.version.as_deref())?;
            return Ok(Site::Real(server));
        }
        Product::Private(name) => name,
    };
    if name == simulated::PRODUCT.name {
        return simulated::server(&settings).map(Site::Simulated);
    }
    let spec = ServerSpec {
        product: name.clone(),
        version: database.version.clone(),
        engine: database.engine.clone(),
        programs: database.programs.as_ref().map(PathBuf::from),
        settings,
        cpus: design.server_cpus.clone(),
    };
    Ok(Site::Real(dyno_database::start(&spec, &lab.keeper, &lab.clock)?))
}

fn check_version(server: &dyn Server, wanted: Option<&str>) -> Result<(), TrialError> {
    let Some(wanted) = wanted else { return Ok(()) };
    let found = server.facts()?.version;
    if found.starts_with(wanted) {
        return Ok(());
    }
    Err(TrialError::new(format!(
        "the study wants version {wanted}, and the server says it is {found}"
    )))
}

/// Asks the server for its facts, as the record keeps them.
pub(crate) fn facts(site: &Site) -> Result<ServerFacts, TrialError> {
    let Site::Real(server) = site else { return Ok(simulated::facts()) };
    let facts = server.facts()?;
    Ok(ServerFacts {
        product: facts.product,
        version: facts.version,
        transport: facts.transport.to_owned(),
        tls: facts.tls,
        settings: facts.settings,
        durability: facts.durability,
    })
}
