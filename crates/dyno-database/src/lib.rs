//! One folder a product (or products that share code): what it is, server, connection, wire codecs.
//!
//! Knows no load, no record and no study. To add a product, copy a folder and name it in
//! `products.rs`. Main types: [`Product`], [`Products`], [`Protocol`].

mod catalog;
mod cleaner;
mod data;
mod debt;
mod durability;
mod endpoint;
mod explain_cost;
mod local;
pub mod mysql;
pub mod null;
mod place;
pub mod postgresql;
mod private;
mod probe;
mod product;
mod products;
mod protocol;
mod server;
mod settings_check;
mod sql;
pub mod sqlite;
mod transport;
mod version;

pub use catalog::{CatalogError, claim_catalog, drop_claimed_tables, note_tables, replace_tables};
pub use data::DataShape;
pub use debt::{Debt, DebtMeter, DebtPart};
pub use durability::{CommitSafety, Durability};
pub use endpoint::{Address, Endpoint, Secret, TlsMode, UrlError};
pub use explain_cost::{
    Access, Cost, CostPlan, CostSource, CounterCost, Counters, Spread, check_statement,
    cost_source, explain_cost,
};
pub use local::LocalServer;
pub use place::Place;
pub use probe::{endpoint_debt_meter, endpoint_facts, endpoint_probes, server_readings, sql_probe};
pub use product::{ConnectionLimit, DiskUse, Launch, LogUse, Product, ProductSpec};
pub use products::{Products, probe_names, protocols, thread_group};
pub use protocol::{Protocol, ProtocolSpec, SocketKey};
pub use server::{AttachOptions, DeployError, Server, ServerFacts, ServerSpec, attach};
pub use transport::stop_waiting;
pub use version::version_fits;
