//! Deploys a variant's database: a private server, one that runs already, or a simulated one.

use std::collections::BTreeMap;
use std::path::PathBuf;

use dyno_database::{AttachOptions, DeployError, Endpoint, Products, Server, ServerSpec};
use dyno_record::{CommitSafety, ProductFacts, ServerFacts};
use dyno_study::{Design, LoadLevel, Product, Variant};
use dyno_units::SettingValue;

use crate::run::Lab;
use crate::simulated::{self, Simulated, SimulatedSite};
use crate::trial::TrialError;

/// Where a trial's load goes.
pub(crate) enum Site {
    /// A server that can be connected to.
    Real(Box<dyn Server>),
    /// A queue whose behaviour is known, in simulated time.
    Simulated(SimulatedSite),
}

impl Site {
    /// The server whose tables hold the rows; none where there are no rows.
    pub(crate) fn with_tables(&self) -> Option<&dyn Server> {
        match self {
            Site::Real(server) => Some(server.as_ref()),
            Site::Simulated(site) => site.store.as_deref(),
        }
    }

    /// Stops what was started for it.
    pub(crate) fn stop(self) -> Result<(), DeployError> {
        let server = match self {
            Site::Real(server) => Some(server),
            Site::Simulated(site) => site.store,
        };
        server.map_or(Ok(()), |server| server.stop())
    }
}

/// A variant's database before it is brought up.
pub(crate) enum Target {
    /// A server to start.
    Private(ServerSpec),
    /// A server that runs already.
    Attached(Box<dyn Server>),
    /// A simulated one.
    Simulated(Simulated),
}

/// All products a study may name: those of the databases, and the simulated one.
pub fn products() -> Products {
    Products::built_in().with(simulated::product())
}

/// The variant's database: what to start, or what runs already.
pub(crate) fn target(lab: &Lab, design: &Design, variant: &Variant) -> Result<Target, TrialError> {
    let database = &variant.database;
    let mut settings: BTreeMap<String, _> = database
        .settings
        .iter()
        .map(|(name, value)| (name.clone(), value.resolve(lab.memory())))
        .collect();
    let name = match &database.product {
        Product::Url(url) => {
            let endpoint = Endpoint::from_url(url).map_err(|error| TrialError::new(error.0))?;
            let options = AttachOptions {
                allow_existing_tables: database.allow_existing_tables,
                keep_tables: database.keep_tables,
            };
            let server = dyno_database::attach(&endpoint, options)?;
            check_version(server.as_ref(), database.version.as_deref())?;
            return Ok(Target::Attached(server));
        }
        Product::Private(name) => name,
    };
    let product = lab.products.get(name)?.spec();
    if product.is_simulated {
        return simulated::server(&settings).map(Target::Simulated);
    }
    // The study's own value stands.
    let most_clients = design.loads.iter().map(LoadLevel::clients).max().unwrap_or(1);
    if let Some(limit) = &product.connection_limit
        && most_clients > limit.default_clients
    {
        let connections = SettingValue::Integer((most_clients + limit.spare) as i64);
        settings.entry(limit.setting.clone()).or_insert(connections);
    }
    Ok(Target::Private(ServerSpec {
        product: name.clone(),
        version: database.version.clone(),
        engine: database.engine.clone(),
        programs: database.programs.as_ref().map(PathBuf::from),
        settings,
        cpus: design.server_cpus.clone(),
    }))
}

fn check_version(server: &dyn Server, wanted: Option<&str>) -> Result<(), TrialError> {
    let Some(wanted) = wanted else { return Ok(()) };
    let found = server.facts()?.version;
    if dyno_database::version_fits(&found, wanted) {
        return Ok(());
    }
    Err(TrialError::new(format!("the study requires version {wanted}, but the server is {found}")))
}

/// Asks the server for its facts, as the record keeps them.
pub(crate) fn facts(site: &Site) -> Result<ServerFacts, TrialError> {
    let Site::Real(server) = site else { return Ok(simulated::facts()) };
    Ok(recorded(server.facts()?))
}

/// A server's facts as the record keeps them.
pub fn recorded(facts: dyno_database::ServerFacts) -> ServerFacts {
    let texts = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let safety = facts.durability.safety.map(|safety| match safety {
        dyno_database::CommitSafety::EveryCommit => CommitSafety::EveryCommit,
        dyno_database::CommitSafety::LastCommitsAtRisk => CommitSafety::LastCommitsAtRisk,
        dyno_database::CommitSafety::DataAtRisk => CommitSafety::DataAtRisk,
    });
    ServerFacts {
        of_product: Some(ProductFacts {
            in_process: facts.in_process,
            simulated: false,
            stores_data: facts.stores_data,
            commit_safety: safety,
            durability_settings: texts(facts.durability_settings),
            memory_bytes: facts.memory_bytes,
            memory_settings: texts(facts.memory_settings),
        }),
        product: facts.product,
        version: facts.version,
        transport: facts.transport.to_owned(),
        tls: facts.tls,
        settings: facts.settings,
        durability: facts.durability.words,
    }
}
