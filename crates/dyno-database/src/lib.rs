//! One folder a product: server, connection, and the wire codecs.
//!
//! Knows no load, no record and no study. To add a product, copy a folder and name it in
//! [`products`].

mod catalog;
mod cleaner;
mod data;
mod debt;
mod endpoint;
mod explain_cost;
mod local;
pub mod mysql;
pub mod null;
pub mod postgresql;
mod private;
mod probe;
mod server;
mod settings_check;
pub mod sqlite;
mod transport;
mod version;

pub use catalog::{CatalogError, claim_catalog, drop_claimed_tables, note_tables, replace_tables};
pub use data::{DataShape, data_shape};
pub use debt::{Debt, DebtMeter, DebtPart};
pub use endpoint::{Address, Endpoint, Protocol, Secret, TlsMode, UrlError};
pub use explain_cost::{
    Access, Cost, CostPlan, CostSource, CounterCost, Counters, Spread, check_statement,
    cost_source, explain_cost,
};
pub use local::LocalServer;
pub use probe::{
    endpoint_debt_meter, endpoint_facts, endpoint_probes, server_reading_legend,
    server_readings_legend, sql_probe,
};
pub use server::{
    AttachOptions, DeployError, ProductSpec, Server, ServerFacts, ServerSpec, attach, products,
    refused_setting, start, start_on, thread_group,
};
pub use settings_check::check_settings;
pub use transport::stop_waiting;
pub use version::version_fits;
