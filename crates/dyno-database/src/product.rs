//! A product: all that Dyno knows about a database that a study can name. What is specific to a
//! product is here or in its folder, nowhere else. Products are values: [`crate::Products`] has the
//! built-in ones, and more can be added at run time.

use std::path::Path;
use std::sync::Arc;

use dyno_host::{Keeper, PackageSpec};
use dyno_units::{Clock, Reading};
use dyno_workload::{Connection, Dialect, Target};

use crate::error::{Result, fail};
use crate::settings::GivenSettings;
use crate::{
    Client, Clustering, DataShape, Endpoint, Installation, Place, Protocol, Replicating, Router,
    Server, ServerSpec, Sharding,
};

type Start = dyn Fn(&Launch<'_>) -> Result<Box<dyn Server>> + Send + Sync;

/// A product that can be named in a study.
pub struct Product {
    pub spec: ProductSpec,
    /// Waits until the server answers. Fails if it does not start, or is not what was asked for.
    pub start: Box<Start>,
    /// Fails, with the reason, if such data cannot be reused, or there is no such server.
    pub data_shape: Box<dyn Fn(&ServerSpec, &Place) -> Result<DataShape> + Send + Sync>,
    /// The commands of a job that dump tables and restore them; none where Dyno knows of none.
    pub dump_commands: fn(&DumpOrder<'_>) -> Option<DumpCommands>,
    /// For a job that moves rows to another table in batches; none where tables cannot inherit.
    pub move_statements: fn(&MoveOrder<'_>) -> Option<MoveStatements>,
    /// Asks programs. Fails with the server's message and the nearest known name; none if
    /// `settings_refusal` is all there is to check.
    pub check_settings: Option<fn(&ServerSpec, &Place) -> Result<()>>,
    /// Fails, with advice, if its programs, if any, have no vectors with indexes.
    pub check_vectors: fn(&ServerSpec, &Place) -> Result<()>,
    /// An empty database in memory, to test statements; none if the product needs a server.
    pub in_memory: fn() -> Option<Box<dyn Connection>>,
    /// As far as known without programs; shares of memory are resolved.
    pub settings_refusal: Box<dyn Fn(&GivenSettings) -> Option<String> + Send + Sync>,
    /// The programs of it that are here: installed, or in Dyno's own store of builds.
    pub installations: Box<dyn Fn(&Keeper) -> Vec<Installation> + Send + Sync>,
    /// Of the server in a folder of programs. Fails if there is none, or it does not run here.
    pub version_in: Box<dyn Fn(&Path, &Keeper) -> Result<String> + Send + Sync>,
    /// The packages that may hold a version (the newest, if none is given), the best first.
    pub packages: fn(Option<&str>) -> Vec<PackageSpec>,
    /// Its own client for people, for a server of this version; none if it has none.
    pub client: fn(&Endpoint, &str) -> Option<Client>,
    /// How its servers follow each other; none if they cannot.
    pub replicating: Option<&'static dyn Replicating>,
    /// How its servers form a cluster; none if they cannot.
    pub clustering: Option<&'static dyn Clustering>,
    /// How its servers hold parts of the tables behind a router; none if they cannot.
    pub sharding: Option<&'static dyn Sharding>,
    /// Why a private server must not have this setting; none if it may.
    pub refused_setting: fn(&str) -> Option<String>,
}

impl Product {
    pub fn new(
        spec: ProductSpec,
        start: impl Fn(&Launch<'_>) -> Result<Box<dyn Server>> + Send + Sync + 'static,
    ) -> Product {
        let [no_data, no_programs] =
            ["stores no data", "has no programs"].map(|why| format!("{} {why}", spec.title));
        Product {
            spec,
            start: Box::new(start),
            data_shape: Box::new(move |_, _| fail(&no_data)),
            dump_commands: |_| None,
            move_statements: |_| None,
            check_settings: None,
            check_vectors: |_, _| Ok(()),
            in_memory: || None,
            settings_refusal: Box::new(|_| None),
            installations: Box::new(|_| Vec::new()),
            version_in: Box::new(move |_, _| fail(&no_programs)),
            packages: |_| Vec::new(),
            client: |endpoint, version| (endpoint.protocol.client)(endpoint, version),
            replicating: None,
            clustering: None,
            sharding: None,
            refused_setting: |_| None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    pub source: &'static str,
    pub what: &'static str,
}

#[derive(Clone, Copy)]
pub struct Launch<'a> {
    pub spec: &'a ServerSpec,
    /// From a server of the same shape ([`Product::data_shape`]); none for an empty server. They
    /// are moved away, and must belong to the keeper's user of servers.
    pub data: Option<&'a Path>,
    pub place: &'a Place,
    pub clock: &'a Arc<dyn Clock>,
}

#[derive(Clone, Copy, Debug)]
pub struct DumpOrder<'a> {
    /// The beginning of the tables' names: letters.
    pub prefix: &'a str,
    pub threads: u32,
}

/// Lines for a shell with the environment of a job: DYNO_URL, DYNO_SCRATCH and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpCommands {
    /// Makes the dump in DYNO_SCRATCH.
    pub dump: String,
    /// Restores it where the tables are missing.
    pub restore: String,
}

/// Rows that a job is to move into another table.
#[derive(Clone, Copy, Debug)]
pub struct MoveOrder<'a> {
    /// The table; statements of clients go on to name it.
    pub table: &'a str,
    /// Its primary key, of one column.
    pub key: &'a str,
    pub batch: u64,
    /// Whether a batch waits for rows that are locked; otherwise it leaves them to a later one.
    pub waits: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveStatements {
    /// Sent before it begins: a new table takes the old one's name.
    pub before: Vec<String>,
    /// A batch, which returns the number of rows that it moved.
    pub batch: String,
}

/// What is known about a product without a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProductSpec {
    /// The name in studies and on the command line: `mariadb`.
    pub name: String,
    /// The name in sentences: `MariaDB`.
    pub title: String,
    /// One sentence for help texts.
    pub summary: String,
    /// Names that users confuse with it, in lower case, each with a hint.
    pub confused_names: Vec<(String, String)>,
    /// The SQL it speaks; none if it speaks none.
    pub dialect: Option<Dialect>,
    pub target: Target,
    /// Storage engines to choose from; empty if there is just one.
    pub engines: Vec<String>,
    /// In Dyno's own process: nothing to install, no version to choose.
    pub is_embedded: bool,
    /// Whether other processes can connect to it although it runs inside Dyno's own.
    pub has_socket: bool,
    /// Whether it stores what it confirms: else there is nothing to audit.
    pub stores_data: bool,
    /// Whether its time is simulated: nothing is measured.
    pub is_simulated: bool,
    /// Whether the logs of its private servers can live apart from their data ([`Place::logs_of`]).
    pub has_log_folder: bool,
    /// Whether clients on other machines can connect to its private servers ([`crate::Listening`]).
    pub can_be_open: bool,
    /// Names of images that hold it, without registry and tag; none if its servers cannot run in containers.
    pub image_names: &'static [&'static str],
    pub offers: &'static [Offer],
    /// The setting that limits connections; `None` if there is no limit.
    pub connection_limit: Option<ConnectionLimit>,
    /// What its files take on disk; `None` if it is negligible.
    pub disk: Option<DiskUse>,
    /// Parts of messages that report a full disk.
    pub disk_full: Vec<String>,
    /// Parts of messages of refusals that will happen again.
    pub refusals: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLimit {
    pub setting: String,
    /// Clients up to which the setting's default is enough.
    pub default_clients: usize,
    /// In addition to clients': the lab's, loaders', and those that the product reserves.
    pub spare: usize,
}

/// Disk space of a product's files besides the rows of the tables.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskUse {
    /// Bytes of them in a data set that is kept, such as system tables; logs come on top.
    pub kept: u64,
    /// One-time growth of system files, in bytes: when large tables are filled, or else under load.
    pub grown: u64,
    /// More bytes while the server runs under load.
    pub running: u64,
    /// The log, which is kept as a stopped server leaves it.
    pub log: Option<LogUse>,
    /// Bytes on disk for a byte of rows, pages that are half full and indexes included.
    pub spread: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LogUse {
    pub setting: String,
    /// Bytes that a number without a unit counts in this setting.
    pub unit: u64,
    /// The setting's default in bytes.
    pub default: u64,
    /// Bytes when empty, and per byte of rows; none if it has its full size from the start.
    pub growth: Option<(u64, f64)>,
}

impl ProductSpec {
    /// A product that stores data in a process of its own and speaks SQL; all else is empty.
    pub fn new(name: &str, title: &str, summary: &str, dialect: Option<Dialect>) -> ProductSpec {
        ProductSpec {
            name: name.to_owned(),
            title: title.to_owned(),
            summary: summary.to_owned(),
            dialect,
            stores_data: true,
            ..ProductSpec::default()
        }
    }
}

/// The contents of a product folder: products that share code.
pub(crate) struct Family {
    pub(crate) products: fn() -> Vec<Product>,
    pub(crate) routers: fn() -> Vec<Arc<dyn Router>>,
    pub(crate) protocol: Option<&'static Protocol>,
    /// Names of its probes, except the one of debt, which all have.
    pub(crate) probes: &'static [&'static str],
    pub(crate) readings: &'static [fn() -> Vec<Reading>],
}

impl Family {
    /// A folder that has these products and nothing else.
    pub(crate) const fn of(products: fn() -> Vec<Product>) -> Family {
        let routers = Vec::new;
        Family { products, routers, protocol: None, probes: &[], readings: &[] }
    }
}

pub(crate) fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).into()
}
