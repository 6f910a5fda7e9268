//! A study as it was written, checked and with every `like` resolved.

use std::collections::BTreeMap;

use dyno_units::{Nanoseconds, Seed, SettingValue};

/// A question and the full design to answer it.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// The question.
    pub title: String,
    /// Databases by name, in file order.
    pub databases: Vec<Database>,
    /// Workloads by name, in file order.
    pub workloads: Vec<WorkloadChoice>,
    /// What is varied and how it is measured.
    pub design: Design,
}

/// One `[database.NAME]`, with what it inherits filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Database {
    /// The name in the study.
    pub name: String,
    /// What to run, or where it runs already.
    pub product: Product,
    /// A version that the server's own must begin with, if the study names one.
    pub version: Option<String>,
    /// The storage engine, where the product has several.
    pub engine: Option<String>,
    /// The folder with the server's programs, where PATH and the usual places will not do.
    pub programs: Option<String>,
    /// Settings, by name, in the product's own names.
    pub settings: BTreeMap<String, SettingValue>,
    /// Whether a catalog with tables that Dyno did not make may be used (servers by URL only).
    pub allow_foreign_tables: bool,
}

/// What kind of server a database is.
#[derive(Clone, Debug, PartialEq)]
pub enum Product {
    /// Dyno starts it: the product's name from the vocabulary.
    Private(String),
    /// It runs already: a URL, which may hold a password.
    Url(String),
}

/// One `[workload.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadChoice {
    /// The name in the study; the workload's own unless `workload = "…"` says otherwise.
    pub name: String,
    /// The workload's name from the vocabulary.
    pub workload: String,
    /// Options by name, as text.
    pub options: BTreeMap<String, String>,
}

/// The `[design]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct Design {
    /// Factors that make variants, in file order: databases, workloads, settings, options.
    pub factors: Vec<Factor>,
    /// Load levels, which are steps inside each trial, in file order.
    pub loads: Vec<LoadLevel>,
    /// Levels of the baseline by factor name; the first level of each factor where not given.
    pub baseline: BTreeMap<String, String>,
    /// Trials of each variant, at least 1.
    pub repetitions: u32,
    /// The order of trials.
    pub order: Order,
    /// The seed, if the study fixes one.
    pub seed: Option<Seed>,
    /// Warm-up before each step.
    pub warm_up: Nanoseconds,
    /// Measured time of each step.
    pub duration: Nanoseconds,
    /// Rest between steps, and between trials.
    pub rest: Nanoseconds,
    /// Effects smaller than this do not matter to the asker, as a fraction (0.03 for 3 %).
    pub threshold: f64,
    /// Time budget for the whole run; trials past it are not begun.
    pub budget: Option<Nanoseconds>,
    /// Time limit of one statement; zero for none.
    pub statement_timeout: Nanoseconds,
    /// Retries of a transaction that failed for a transient reason.
    pub retries: u32,
    /// Load generator threads; chosen by the product and the number of CPUs where not given.
    pub workers: Option<u32>,
    /// CPUs that generator threads are bound to (worker i to the i-th, round and round).
    pub generator_cpus: Vec<u32>,
    /// CPUs that private servers are bound to.
    pub server_cpus: Vec<u32>,
    /// Where private servers keep their data; Dyno's own folder where not given.
    pub data_folder: Option<String>,
}

/// Something varied on purpose that makes variants.
#[derive(Clone, Debug, PartialEq)]
pub enum Factor {
    /// Names of databases.
    Database(Vec<String>),
    /// Names of workloads.
    Workload(Vec<String>),
    /// Values of one setting.
    Setting {
        /// The setting's name.
        name: String,
        /// Its values.
        levels: Vec<SettingValue>,
    },
    /// Values of one workload option, as text.
    Option {
        /// The option's name.
        name: String,
        /// Its values.
        levels: Vec<String>,
    },
}

/// How hard the load is in one step.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadLevel {
    /// So many clients, each with one transaction at a time.
    Closed {
        /// Clients.
        clients: u64,
    },
    /// Arrivals by a schedule, whatever the server does.
    Open {
        /// Offered rate, transactions per second.
        rate: f64,
        /// How arrivals are spread.
        arrivals: Arrivals,
        /// Clients that serve the arrivals: the most transactions in flight.
        clients: u64,
    },
}

/// How the arrivals of an open load are spread in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Evenly.
    Constant,
    /// With exponential gaps, as independent users arrive.
    Poisson,
}

/// The order of trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One repetition of all variants is a block; random order within each block.
    Interleaved,
    /// All repetitions of a variant, then the next variant, as written.
    Sequential,
}
