//! A study as it was written, checked and with every `like` resolved.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use dyno_model::{Load, StepRequest, WorkloadStep};
use dyno_units::{ByteCount, Nanoseconds, Question, Seed, SettingValue, redact_secrets};
pub use dyno_units::{LevelRecord as Level, Price};

use crate::{HostPool, Requirement, Search, Sought};

/// A question and the full design to answer it.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    pub title: String,
    pub databases: Vec<Database>,
    pub workloads: Vec<WorkloadChoice>,
    pub design: Design,
    pub probes: Vec<UserProbe>,
    /// Every combination of the factors' levels; the first factor changes last.
    pub variants: Vec<Variant>,
}

impl Study {
    /// Replaces the URLs of all databases: `map` gets the name of the database and the URL.
    ///
    /// # Errors
    ///
    /// The first one of `map`.
    pub fn map_urls<E>(&mut self, map: impl Fn(&str, &str) -> Result<String, E>) -> Result<(), E> {
        let changed = |database: &mut Database| {
            let servers = [&mut database.product].into_iter().chain(&mut database.more_urls);
            let mut urls = servers.filter_map(|server| match server {
                Product::Url(url) => Some(url),
                Product::Private(_) => None,
            });
            urls.try_for_each(|url| map(&database.name, url).map(|new| *url = new))
        };
        self.databases.iter_mut().try_for_each(changed)?;
        // Variants share their databases, and go on to do so.
        let mut seen: BTreeMap<*const Database, Arc<Database>> = BTreeMap::new();
        for variant in &mut self.variants {
            let old = Arc::as_ptr(&variant.database);
            if let std::collections::btree_map::Entry::Vacant(e) = seen.entry(old) {
                let mut database = Database::clone(&variant.database);
                changed(&mut database)?;
                e.insert(Arc::new(database));
            }
            variant.database = Arc::clone(&seen[&old]);
        }
        Ok(())
    }
}

/// One combination of levels.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Its name, made of its levels; unique in the study.
    pub name: String,
    /// Its level of each factor, in factor order.
    pub levels: Vec<Level>,
    /// The variant it is compared with, as an index; none for a baseline.
    pub baseline: Option<usize>,
    /// The database with all levels of this variant.
    pub database: Arc<Database>,
    /// The database that its job works with beside the one that is measured, which Dyno starts; none if its
    /// job names none.
    pub other_database: Option<Arc<Database>>,
    /// The workload with all levels of this variant.
    pub workload: Arc<WorkloadChoice>,
    /// The tables that it chooses, of each kind at most one, with all levels of this variant.
    pub tables: Vec<Arc<Table>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What kind of table: `database`, `workload`.
    pub kind: &'static str,
    pub name: String,
    /// The fields that are given, by path: `engine`, `settings.NAME`, options by their names.
    pub fields: BTreeMap<String, FieldValue>,
}

impl Table {
    pub fn text(&self, field: &str) -> Option<&str> {
        let Some(FieldValue::Text(text)) = self.fields.get(field) else { return None };
        Some(text)
    }

    pub(crate) fn owned(&self, field: &str) -> Option<String> {
        self.text(field).map(str::to_owned)
    }

    pub(crate) fn texts(&self, field: &str) -> &[String] {
        if let Some(FieldValue::Texts(texts)) = self.fields.get(field) { texts } else { &[] }
    }

    pub(crate) fn number(&self, field: &str) -> Option<u32> {
        let Some(FieldValue::Number(number)) = self.fields.get(field) else { return None };
        u32::try_from(*number).ok()
    }

    pub(crate) fn time(&self, field: &str) -> Option<Nanoseconds> {
        let Some(FieldValue::Duration(time)) = self.fields.get(field) else { return None };
        Some(*time)
    }

    pub(crate) fn size(&self, field: &str) -> Option<ByteCount> {
        let Some(FieldValue::Size(bytes)) = self.fields.get(field) else { return None };
        Some(*bytes)
    }

    pub fn is_on(&self, field: &str) -> bool {
        self.fields.get(field) == Some(&FieldValue::Switch(true))
    }

    /// The fields of a map by their names in it.
    pub(crate) fn named(&self, map: &str) -> impl Iterator<Item = (&str, &FieldValue)> {
        let fields = self.fields.iter();
        fields.filter_map(move |(field, value)| {
            Some((field.strip_prefix(map)?.strip_prefix('.')?, value))
        })
    }

    pub(crate) fn settings_in(&self, map: &str) -> BTreeMap<String, SettingValue> {
        let settings = self.named(map).filter_map(|(name, value)| match value {
            FieldValue::Setting(value) => Some((name.to_owned(), value.clone())),
            _ => None,
        });
        settings.collect()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum FieldValue {
    Text(String),
    Switch(bool),
    Number(u64),
    Duration(Nanoseconds),
    Size(ByteCount),
    /// A percentage, as a fraction.
    Fraction(f64),
    Price(Price),
    Setting(SettingValue),
    Texts(Vec<String>),
}

impl fmt::Display for FieldValue {
    /// Writes the value as the text of a level; equal texts are equal values.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldValue::Text(text) => out.write_str(text),
            FieldValue::Switch(is_on) => is_on.fmt(out),
            FieldValue::Number(number) => number.fmt(out),
            FieldValue::Duration(duration) => write!(out, "{}s", duration.as_secs_f64()),
            FieldValue::Size(bytes) => out.write_str(&exact_size(*bytes)),
            FieldValue::Fraction(fraction) => write!(out, "{}%", fraction * 100.0),
            FieldValue::Price(price) => write!(out, "{} {}", price.amount, price.currency),
            // Sizes exactly, in the unit with the shortest number.
            FieldValue::Setting(SettingValue::Bytes(bytes)) => out.write_str(&exact_size(*bytes)),
            FieldValue::Setting(value) => out.write_str(&value.to_string()),
            FieldValue::Texts(texts) => out.write_str(&texts.join("; ")),
        }
    }
}

/// One `[probe.NAME]`: readings that the study declares itself.
#[derive(Clone, Debug, PartialEq)]
pub struct UserProbe {
    /// Environment variables that its command does not inherit: those from which the study took
    /// parts of URLs. None until somebody has read them.
    pub hidden_variables: Vec<String>,
    /// Its name in the study; its readings are called after it.
    pub name: String,
    pub source: ProbeSource,
    /// How long from one reading to the next.
    pub every: Nanoseconds,
    /// Names of the databases whose trials it is read in; empty for all.
    pub databases: Vec<String>,
}

impl UserProbe {
    pub fn is_read_in(&self, database: &str) -> bool {
        self.databases.is_empty() || self.databases.iter().any(|name| name == database)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeSource {
    /// A program with its arguments, whose output has lines of name and value.
    Command(Vec<String>),
    /// A statement for the server, whose rows are name and value.
    Sql(String),
}

/// One `[database.NAME]`, with what it inherits filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Database {
    pub name: String,
    pub product: Product,
    /// Further servers over the same data, each a URL.
    pub more_urls: Vec<Product>,
    /// How many of the servers get load, if not all of them.
    pub sql_servers: Option<u32>,
    /// The hosts that its servers are started on, by the name of their table; none for the machine that
    /// runs the study.
    pub on: Option<String>,
    /// How many independent servers there are, one on each of the first of these hosts; none for one on
    /// each.
    pub servers: Option<u32>,
    /// The hosts on which whole trials of it run, by the name of their table; none for the machine that runs the
    /// study.
    pub trials_on: Option<String>,
    /// A version that the server's own must begin with, if the study names one.
    pub version: Option<String>,
    pub engine: Option<String>,
    /// The folder with the server's programs, where PATH and the usual places will not do.
    pub programs: Option<String>,
    /// Where the server's programs must come from, if the study says so.
    pub from: Option<String>,
    /// The image of a container engine that has the server's programs.
    pub image: Option<String>,
    /// Whether programs that are not here may be fetched.
    pub fetch: bool,
    /// How much memory the server may take, if that is limited.
    pub memory: Option<ByteCount>,
    /// How much swap it may take beyond that memory; none for no swap where its memory is limited.
    pub swap: Option<ByteCount>,
    /// Its share of CPU time when others want it, too; 100 is the usual one.
    pub cpu_weight: Option<u32>,
    /// Settings of the machine's kernel for its trials, by name.
    pub kernel: BTreeMap<String, String>,
    /// The volume of its logs, if they lie apart from its data.
    pub log_volume: Option<String>,
    pub data: DataOrigin,
    /// Settings, by name, in the product's own names.
    pub settings: BTreeMap<String, SettingValue>,
    pub replicas: u32,
    /// What a commit waits for: `asynchronous` or `synchronous`.
    pub replication: String,
    /// Where clients that only read connect to: `primary`, `replicas` or `all`.
    pub reads_on: String,
    /// Settings of the replicas that are not, or differ from, those of the server.
    pub replica_settings: BTreeMap<String, SettingValue>,
    /// The cluster that it is the first node of; none if it is in none.
    pub cluster: Option<Cluster>,
    /// Among how many shards its tables are split, behind a router; 0 if it is one server.
    pub shards: u32,
    /// What each shard is given: whole tables (`table`), or its rows of each one (`key`).
    pub shard_by: String,
    pub router_settings: BTreeMap<String, SettingValue>,
    /// What stands in front of it; none if clients connect to it.
    pub behind: Option<Behind>,
    pub member_cpus: BTreeMap<String, Vec<u32>>,
    /// The memory limits of individual members, by their names: sizes, or shares of the host's memory.
    pub member_memory: BTreeMap<String, SettingValue>,
    /// Whether a catalog with tables that Dyno did not make may be used (servers by URL only).
    pub allow_existing_tables: bool,
    /// Whether Dyno's tables stay when it leaves (servers by URL only).
    pub keep_tables: bool,
    /// What an hour on it costs, or on the machine where only that is known.
    pub price_per_hour: Option<Price>,
}

impl Database {
    /// The URLs of its servers, also of those that get no load; none of one that Dyno starts.
    pub fn urls(&self) -> impl Iterator<Item = &str> {
        [&self.product].into_iter().chain(&self.more_urls).filter_map(|server| match server {
            Product::Url(url) => Some(url.as_str()),
            Product::Private(_) => None,
        })
    }

    /// The URLs of the servers over the same data that get load besides the first one.
    pub fn further_servers(&self) -> impl Iterator<Item = &str> {
        let all = self.sql_servers.map_or(usize::MAX, |all| all as usize);
        self.urls().take(all).skip(1)
    }

    /// Whether its servers, if they are several, are members of one deployment; otherwise each has data of its own.
    pub fn is_one_deployment(&self) -> bool {
        self.replicas > 0 || self.cluster.is_some() || self.shards > 0 || self.behind.is_some()
    }

    /// How many hosts its servers need, one each; none if it is for the hosts to say.
    pub fn hosts_needed(&self) -> Option<usize> {
        match &self.cluster {
            Some(cluster) => Some(cluster.nodes as usize),
            None if self.is_one_deployment() => Some(1 + self.replicas as usize),
            None => self.servers.map(|servers| servers as usize),
        }
    }

    pub fn servers_on(&self, hosts: &HostPool) -> usize {
        let all = hosts.names.len();
        self.hosts_needed().map_or(all, |needed| all.min(needed))
    }

    pub fn loaded_servers(&self, on: Option<&HostPool>) -> usize {
        let replicas = self.replicas as usize;
        match (&self.cluster, on) {
            (Some(cluster), _) if cluster.load_on_all && self.behind.is_none() => {
                cluster.nodes as usize
            }
            (None, _) if self.reads_elsewhere() => match self.reads_on.as_str() {
                "replicas" => replicas,
                _ => 1 + replicas,
            },
            (None, Some(hosts)) if !self.is_one_deployment() => self.servers_on(hosts),
            _ => 1 + self.further_servers().count(),
        }
    }

    pub fn reads_elsewhere(&self) -> bool {
        self.replicas > 0 && self.reads_on != "primary"
    }
}

/// A cluster of servers that all take writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// What kind: `galera`.
    pub kind: String,
    pub nodes: u32,
    /// Whether clients connect to all nodes in turn, and not to the first one alone.
    pub load_on_all: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Behind {
    /// The router's name from the vocabulary.
    pub product: String,
    /// Its options by name, as text; those that are not given have their defaults.
    pub options: BTreeMap<String, String>,
}

/// How the data of a server that Dyno starts come to be where they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DataOrigin {
    /// Copied from the data set that is kept, in the layout that they had where they were populated.
    #[default]
    Copied,
    /// Populated there by the trial itself.
    Populated,
    /// Copied, and written as `tar` and `cp` write files: nothing is preallocated.
    Restored,
}

impl DataOrigin {
    pub const ALL: [DataOrigin; 3] =
        [DataOrigin::Copied, DataOrigin::Populated, DataOrigin::Restored];
    pub const WORDS: [&str; 3] = ["copied", "populated", "restored"];

    pub fn word(self) -> &'static str {
        DataOrigin::WORDS[self as usize]
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Product {
    /// Dyno starts it: the product's name from the vocabulary.
    Private(String),
    /// It runs already: a URL, which may hold a password.
    Url(String),
}

impl fmt::Debug for Product {
    /// Writes a URL without its password.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Product::Private(name) => out.debug_tuple("Private").field(name).finish(),
            Product::Url(url) => out.debug_tuple("Url").field(&redact_secrets(url)).finish(),
        }
    }
}

/// One `[workload.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WorkloadChoice {
    /// The name in the study; the workload's own unless `workload = "…"` says otherwise.
    pub name: String,
    /// The workload's name from the vocabulary.
    pub workload: String,
    pub options: BTreeMap<String, String>,
}

/// The `[design]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct Design {
    /// Most important first; empty where the study does not say so.
    pub questions: Vec<Question>,
    /// Factors that make variants, in file order.
    pub factors: Vec<Factor>,
    /// Load levels, which are steps inside each trial, in file order.
    pub loads: Vec<LoadLevel>,
    /// Levels of the baseline by factor name; factors not named keep their level. When empty, the
    /// variant with the first level of every factor is the one baseline.
    pub baseline: BTreeMap<String, String>,
    /// Trials of each variant, at least 1; the most of them where there is `repetitions_min`.
    pub repetitions: u32,
    /// Trials of each variant before a variant whose verdicts are settled gets no more of them; none
    /// where all get all.
    pub repetitions_min: Option<u32>,
    /// Most blocks that are measured again because the host was disturbed; zero where all blocks
    /// count.
    pub void_repeats: u32,
    pub requirements: Vec<Requirement>,
    pub order: Order,
    pub seed: Option<Seed>,
    pub warm_up: Nanoseconds,
    /// Measured time of each step; with `until_steady` how long its throughput has to be steady.
    pub duration: Nanoseconds,
    /// Longest measured time of steps that go on until they are steady; none where steps end by
    /// time.
    pub until_steady: Option<Nanoseconds>,
    /// Rest between steps, and between trials.
    pub rest: Nanoseconds,
    /// Longest time that a trial watches, after its last step and without load, how the engine pays
    /// its debt; none where it does not.
    pub run_off: Option<Nanoseconds>,
    /// Whether the page cache is emptied before each step.
    pub drop_caches: bool,
    /// Names of probes that are not read.
    pub probes_off: Vec<String>,
    /// Effects smaller than this do not matter to the asker, as a fraction (0.03 for 3 %).
    pub threshold: f64,
    /// Time budget for the whole run; trials past it are not begun.
    pub budget: Option<Nanoseconds>,
    /// Time limit of one statement; zero for none.
    pub statement_timeout: Nanoseconds,
    /// Retries of a transaction that failed for a transient reason.
    pub retries: u32,
    /// The hosts on which the load is generated; none for the machine that runs the study.
    pub generators: Option<HostPool>,
    pub server_hosts: Vec<HostPool>,
    /// The hosts on which whole trials run; none if they run on the machine that runs the study.
    pub trial_hosts: Vec<HostPool>,
    /// Load generator threads, of each generator; chosen by the product and the number of CPUs where not given.
    pub workers: Option<u32>,
    /// CPUs that generator threads are bound to (worker i to the i-th, round and round).
    pub generator_cpus: Vec<u32>,
    pub server_cpus: Vec<u32>,
    /// Whether trials on private servers may begin on a copy of a data set that was populated
    /// earlier, and keep theirs for later ones.
    pub reuse: bool,
    /// Where private servers keep their data; Dyno's own folder where not given.
    pub data_folder: Option<String>,
}

/// Something varied on purpose that makes variants: tables of a kind, or a field of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factor {
    /// Its name in plans, records and baselines, which is the shortest way to write its path:
    /// `database`, `setting.NAME`, `option.NAME`, `database.engine`.
    pub name: String,
    /// What stands before a level in the name of a variant; none if the level says enough.
    pub label: Option<String>,
    pub levels: Vec<String>,
}

fn exact_size(bytes: ByteCount) -> String {
    const UNITS: [(&str, u64); 8] = [
        ("TiB", 1 << 40),
        ("TB", 1_000_000_000_000),
        ("GiB", 1 << 30),
        ("GB", 1_000_000_000),
        ("MiB", 1 << 20),
        ("MB", 1_000_000),
        ("KiB", 1 << 10),
        ("kB", 1_000),
    ];
    let fitting = UNITS.iter().filter(|(_, size)| bytes.0 > 0 && bytes.0.is_multiple_of(*size));
    match fitting.min_by_key(|(_, size)| bytes.0 / size) {
        Some((unit, size)) => format!("{}{unit}", bytes.0 / size),
        None => format!("{}B", bytes.0),
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum LoadLevel {
    Given(Load),
    /// The highest load under a limit, which the step itself finds; the only load of its study.
    Search(Search),
    /// A step that the workload defines; all loads of its study are such.
    Own(OwnLoad),
}

#[derive(Clone, Debug, PartialEq)]
pub struct OwnLoad {
    pub request: StepRequest,
    /// What the workload of the first variant says of it. The others name it alike; what its roles
    /// do may differ by the variants' options.
    pub step: WorkloadStep,
    /// Connections of the variant that has the most.
    pub connections: usize,
}

impl LoadLevel {
    /// Clients: the most transactions in flight.
    pub fn clients(&self) -> usize {
        match self {
            LoadLevel::Given(load) => load.clients(),
            LoadLevel::Search(search) => match search.sought {
                Sought::Rate { clients, .. } => clients,
                Sought::Clients { most } => most,
            },
            LoadLevel::Own(own) => own.connections,
        }
    }

    /// Clients that there are for certain: one if their number is searched for.
    pub fn clients_least(&self) -> usize {
        match self {
            LoadLevel::Search(Search { sought: Sought::Clients { .. }, .. }) => 1,
            other => other.clients(),
        }
    }

    /// Whether an offered rate decides when transactions begin.
    pub fn is_open(&self) -> bool {
        match self {
            LoadLevel::Given(load) => load.is_open(),
            LoadLevel::Search(search) => matches!(search.sought, Sought::Rate { .. }),
            LoadLevel::Own(_) => false,
        }
    }
}

impl OwnLoad {
    pub fn new(request: StepRequest, step: WorkloadStep) -> OwnLoad {
        let connections = step.connections();
        OwnLoad { request, step, connections }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One repetition of all variants is a block; random order within each block, and every second
    /// one the reverse of the one before.
    Interleaved,
    /// All repetitions of a variant, then the next variant, as written.
    Sequential,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_exactly() {
        let check = |bytes: u64, expected: &str| assert_eq!(exact_size(ByteCount(bytes)), expected);
        check(8 << 30, "8GiB");
        check(500_000_000, "500MB");
        check(1_500_000_000, "1500MB");
        check(1536 << 20, "1536MiB");
        check(1234, "1234B");
        check(0, "0B");
    }

    #[test]
    fn debug_output_hides_the_password() {
        let product = Product::Url("mysql://me:pw@host".to_owned());
        assert_eq!(format!("{product:?}"), "Url(\"mysql://me:***@host\")");
    }
}
