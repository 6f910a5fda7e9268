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

/// What shards are given of the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SplitBy {
    /// Whole tables, in turn.
    #[default]
    Table,
    /// Rows of each table, by the remainder of the first column of its primary key.
    Key,
}

impl SplitBy {
    /// The words of all, the default first.
    pub const WORDS: [&'static str; 2] = ["table", "key"];
}

impl std::fmt::Display for SplitBy {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(SplitBy::WORDS[usize::from(*self == SplitBy::Key)])
    }
}

/// What each shard has been given, in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// How many tables were split.
    pub tables: usize,
    /// How many tables (by table) or rows (by key) each shard has.
    pub each: Vec<u64>,
}

/// How servers of a product hold parts of the tables behind a router. All endpoints of shards are in the order
/// of their numbers.
pub trait Sharding: Sync {
    /// Tells a router where its shards are. Tables are then made on it by hand, or by [`Sharding::split`].
    ///
    /// # Errors
    ///
    /// The router refuses.
    fn introduce(&self, router: &Endpoint, shards: &[Endpoint]) -> Result<(), DeployError>;

    /// Splits tables among shards that have the same ones. By table, each is left on one shard, in turn, and
    /// dropped on the others; by key, each shard keeps its rows of every table. Then makes the tables of the
    /// router that stand for them. The router has been introduced to its shards.
    ///
    /// # Errors
    ///
    /// A server refuses, or there is what cannot be split: nothing has been dropped then.
    fn split(
        &self,
        router: &Endpoint,
        shards: &[Endpoint],
        by: SplitBy,
    ) -> Result<Split, DeployError>;

    /// The tables of which the router does not count as many rows as the shards in sum or, by key, of which a
    /// shard has rows of another one; and how many were compared. Nothing writes meanwhile.
    ///
    /// # Errors
    ///
    /// A table cannot be read.
    fn tables_that_differ(
        &self,
        router: &Endpoint,
        shards: &[Endpoint],
        by: SplitBy,
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
