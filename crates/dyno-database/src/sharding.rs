//! Shards: servers that each hold a part of the tables, behind a router through which they look like one.
//!
//! Clients reach the router by its socket, and it reaches the shards by theirs: no member listens on a port.

use dyno_host::Probe;

use crate::{DeployError, Endpoint, Product};

/// The most shards of a deployment.
pub const SHARDS_MAX: u32 = 8;

/// The name of the router in front of shards among the members.
pub const SHARD_ROUTER: &str = "router";

/// The name of a shard among the members: `shard-1`.
pub fn shard_name(number: u32) -> String {
    format!("shard-{number}")
}

/// How servers of a product hold parts of the tables behind a router. All endpoints of shards are in the order
/// of their numbers.
pub trait Sharding: Sync {
    /// Splits tables among shards that have the same ones, in turn: each is left on one shard, and dropped on
    /// the others. Then makes the tables of the router that stand for them. Returns how many each shard has.
    ///
    /// # Errors
    ///
    /// A server refuses, or there is what cannot be split: nothing has been dropped then.
    fn split(&self, router: &Endpoint, shards: &[Endpoint]) -> Result<Vec<usize>, DeployError>;

    /// The tables of which the router does not count as many rows as the shards in sum, and how many were
    /// compared. Nothing writes meanwhile.
    ///
    /// # Errors
    ///
    /// A table cannot be read.
    fn tables_that_differ(
        &self,
        router: &Endpoint,
        shards: &[Endpoint],
    ) -> Result<(Vec<String>, usize), String>;

    /// A probe of the shard with this name.
    fn probe(&self, name: &str, shard: &Endpoint) -> Box<dyn Probe>;
}

/// The part of a product that lets servers be shards.
///
/// # Errors
///
/// The product has none.
pub fn sharding(product: &dyn Product) -> Result<&dyn Sharding, DeployError> {
    product.sharding().ok_or_else(|| {
        let title = &product.spec().title;
        DeployError::new(format!("{title} has no shards; leave `shards` out"))
    })
}
