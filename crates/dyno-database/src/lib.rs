//! Database products, a folder each (or one for several that share code): description, server,
//! connection, codecs. Knows no load, record or study. To add a product, copy a folder and name it
//! in `products.rs`. Main types: [`Product`], [`Products`], [`Protocol`].

#![cfg_attr(
    test,
    allow(clippy::print_stderr, reason = "what a machine lacks is skipped, and says so")
)]
// Without servers, their shared code has no caller.
#![cfg_attr(not(feature = "servers"), allow(dead_code, unused_imports))]

#[cfg(feature = "servers")]
mod archive;
mod attached;
mod catalog;
mod cleaner;
#[cfg(feature = "servers")]
mod clickhouse;
mod cluster;
mod control;
#[cfg(feature = "servers")]
mod counted;
mod data;
pub mod datasets;
mod debt;
mod dialects;
#[cfg(feature = "servers")]
mod dump;
mod durability;
mod endpoint;
mod error;
mod explain_cost;
mod fetch;
mod files;
#[cfg(all(feature = "servers", any(test, fuzzing)))]
pub mod fuzz;
mod haproxy;
mod initial;
mod installation;
mod logs;
mod members;
#[cfg(feature = "servers")]
mod mongodb;
#[cfg(feature = "servers")]
pub mod mysql;
#[cfg(feature = "servers")]
pub mod null;
mod part;
#[cfg(feature = "servers")]
mod pgbouncer;
#[cfg(feature = "servers")]
pub mod postgresql;
mod private;
mod probe;
mod product;
mod products;
mod protocol;
#[cfg(feature = "servers")]
mod recipe;
mod router;
mod running;
#[cfg(feature = "servers")]
mod scram;
mod server;
mod server_spec;
mod settings;
mod sharding;
mod sql;
pub mod sqlite;
#[cfg(feature = "servers")]
mod transport;
mod url;
mod waiting;

/// What a build without the feature `servers` says where it is asked for a server.
pub const LEFT_OUT: Option<&str> = if cfg!(feature = "servers") {
    None
} else {
    Some(
        "this build of Dyno has only the products that run in its own process; build it without \
         `--no-default-features` for database servers",
    )
};

#[cfg(feature = "servers")]
pub use archive::{
    ArchiveError, ArchiveOptions, ArchiveSide, Archived, TableBytes, archive_between,
    archive_bytes, archive_sides,
};
pub use attached::observe;
pub use catalog::{
    CatalogError, claim_catalog, drop_claimed_tables, note_tables, replace_routines, replace_tables,
};
pub use cluster::{
    Cluster, Clustering, NODES_MAX, NODES_MIN, Node, NodePorts, NodeState, node_name, to_writer,
    wait_until_synced,
};
pub use control::{Act, Acted, Away, Control};
#[cfg(feature = "servers")]
pub use counted::{Counted, counted};
pub use data::DataShape;
pub use debt::{Debt, DebtMeter, DebtPart};
pub use dialects::{cancel, digest, is_same_server, session};
#[cfg(feature = "servers")]
pub use dump::{
    Column, Dump, DumpError, DumpOptions, DumpedTable, Dumping, Loader, Moved, PieceReader,
    Snapshot, Table, TableSource, Wanted, dump, restore,
};
pub use durability::{CommitSafety, Durability};
pub use dyno_host::Place;
pub use dyno_units::version_fits;
pub use endpoint::{Address, Endpoint, Secret, TlsMode, UrlError};
pub use error::DeployError;
pub use explain_cost::{
    Access, Cost, CostPlan, CostSource, CounterCost, Counters, Spread, check_statement,
    explain_cost,
};
pub use fetch::{FetchRequest, fetch, find_programs};
pub use installation::{Installation, MACHINE};
pub use members::{
    Following, clustering, finish, replicating, sharding, start_replica, tables_that_differ,
    wait_until_caught_up,
};
pub use part::{
    CLIENT_USER, Follow, Lag, LagMeter, Listening, Part, REPLICAS_MAX, REPLICATION_USER,
    Replicating, Replication, ReplicationMode, lag_probe, replica_name,
};
pub use probe::sql_probe;
pub use product::{
    ConnectionLimit, DiskUse, DumpCommands, DumpOrder, Launch, LogUse, MoveOrder, MoveStatements,
    Offer, Product, ProductSpec,
};
pub use products::{Products, probe_names, protocols, server_readings, thread_group};
pub use protocol::{Client, ClientSecret, Protocol, SocketKey};
#[cfg(feature = "servers")]
pub use recipe::{Recipe, RecipeError, is_recipe};
pub use router::{Router, RouterLaunch, RouterSpec};
pub use server::{AttachOptions, BuildFacts, LocalServer, Reach, Server, ServerFacts, attach};
pub use server_spec::ServerSpec;
pub use sharding::{
    At, SHARD_ROUTER, SHARDS_MAX, Sharding, Split, SplitBy, SplitColumn, shard_name, split,
    tables_that_differ_from_shards,
};
pub use url::with_password_of_file;
pub use waiting::{stop_waiting, wait_no_more};
