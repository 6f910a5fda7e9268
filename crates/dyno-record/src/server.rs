//! A trial's server, and what is known of its product.

use std::borrow::Cow;
use std::collections::BTreeMap;

use dyno_units::PlaceFacts;
use serde::{Deserialize, Serialize};

/// How the kernel scheduled a server beside a generator, in [`ServerFacts::machine`]: `the
/// generator's` group, `its own` or `one for each of its processes`, with both weights.
pub const SCHEDULING_GROUP: &str = "scheduling_group";

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerFacts {
    pub product: String,
    pub version: String,
    /// `unix`, `tcp`, `in process`, `simulated`.
    pub transport: String,
    pub tls: bool,
    /// In force, by name.
    pub settings: BTreeMap<String, String>,
    /// What was set on the machine, read back: kernel settings that some variant changes, control
    /// group limits (`control_group.memory`), and [`SCHEDULING_GROUP`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub machine: BTreeMap<String, String>,
    /// What a commit survives: `every commit is synced`, `synced once a second`, `not synced`,
    /// `nothing is stored`, `simulated`, `unknown`.
    pub durability: String,
    /// `None` in older records: use [`ServerFacts::product_facts`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_product: Option<ProductFacts>,
}

/// What follows from a server's product and its settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProductFacts {
    /// In the load generator's process.
    #[serde(default)]
    pub in_process: bool,
    #[serde(default)]
    pub simulated: bool,
    /// Whether it stored confirmed data.
    #[serde(default)]
    pub stores_data: bool,
    /// `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_safety: Option<CommitSafety>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub durability_settings: Vec<String>,
    /// For data; `None` if its settings do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory_settings: Vec<String>,
    /// `None` if Dyno did not start it, if they are Dyno's own, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<BuildFacts>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BuildFacts {
    /// `machine` if installed, else the source of packages.
    pub source: String,
    /// `Debian trixie`; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub builder: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package_version: Option<String>,
    /// The folder of the programs.
    pub programs: String,
    /// How it was configured and compiled, if the server says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configured: Option<String>,
}

impl BuildFacts {
    /// `Debian trixie, postgresql-17 17.11-0+deb13u1`, or the folder.
    pub fn words(&self) -> String {
        let package = self.package.as_ref().map(|package| {
            format!("{package} {}", self.package_version.as_deref().unwrap_or_default())
        });
        let known = (!self.builder.is_empty()).then(|| self.builder.clone());
        let parts: Vec<String> =
            known.into_iter().chain(package).map(|part| part.trim().to_owned()).collect();
        if parts.is_empty() { format!("programs in {}", self.programs) } else { parts.join(", ") }
    }
}

/// What a power failure or a crash of the system may do to confirmed commits; the safest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommitSafety {
    /// Nothing: it was on disk before.
    EveryCommit,
    /// The last commits may be lost; earlier ones are whole.
    LastCommitsAtRisk,
    /// Commits may be lost and the database damaged.
    DataAtRisk,
}

impl CommitSafety {
    pub fn words(self) -> &'static str {
        match self {
            CommitSafety::EveryCommit => "every commit synced",
            CommitSafety::LastCommitsAtRisk => {
                "a power failure or OS crash may lose the last commits"
            }
            CommitSafety::DataAtRisk => "a power failure or OS crash may corrupt the database",
        }
    }
}

impl ServerFacts {
    /// In older records derived from names, texts and settings as they were then.
    pub fn product_facts(&self) -> Cow<'_, ProductFacts> {
        match &self.of_product {
            Some(known) => Cow::Borrowed(known),
            None => Cow::Owned(earlier(self)),
        }
    }
}

/// Settings that decide what a commit survives, of all products: for studies whose servers have not run yet,
/// and for records that do not name them.
pub const DURABILITY_SETTINGS: [&str; 14] = [
    "merge_tree.fsync_after_insert",
    "merge_tree.fsync_part_directory",
    "synchronous",
    "journal_mode",
    "fullfsync",
    "synchronous_commit",
    "fsync",
    "wal_sync_method",
    "full_page_writes",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_doublewrite",
    "sync_binlog",
    "rocksdb_flush_log_at_trx_commit",
];

/// For older records.
const MEMORY_SETTINGS: [&str; 5] = [
    "innodb_buffer_pool_size",
    "rocksdb_block_cache_size",
    "shared_buffers",
    "cache_size",
    "mmap_size",
];

/// As the version of Dyno that wrote the record would have said.
fn earlier(server: &ServerFacts) -> ProductFacts {
    let simulated = server.transport == "simulated";
    let texts = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    ProductFacts {
        in_process: server.transport == "in process",
        simulated,
        stores_data: !simulated && !server.product.starts_with("Null ("),
        commit_safety: earlier_safety(&server.durability),
        durability_settings: texts(&DURABILITY_SETTINGS),
        memory_bytes: earlier_memory(&server.settings),
        memory_settings: texts(&MEMORY_SETTINGS),
        build: None,
    }
}

/// Older records have a closed list of words.
fn earlier_safety(durability: &str) -> Option<CommitSafety> {
    match durability {
        "every commit is synced" => Some(CommitSafety::EveryCommit),
        "synced once a second"
        | "written at every commit, synced once a second"
        | "written and synced once a second"
        | "synced at checkpoints" => Some(CommitSafety::LastCommitsAtRisk),
        "not synced" | "every commit is synced, a crash may corrupt" => {
            Some(CommitSafety::DataAtRisk)
        }
        // PostgreSQL: `synced within 3 × 200ms`.
        text if text.starts_with("synced within ") => Some(CommitSafety::LastCommitsAtRisk),
        _ => None,
    }
}

fn earlier_memory(settings: &BTreeMap<String, String>) -> Option<f64> {
    let is_rocksdb = settings.get("default_storage_engine").is_some_and(|e| e == "ROCKSDB");
    let names: &[&str] = match is_rocksdb {
        true => &["rocksdb_block_cache_size"],
        false => &["innodb_buffer_pool_size", "shared_buffers"],
    };
    let bytes = names.iter().find_map(|name| parse_bytes(settings.get(*name)?));
    // SQLite: pages; KiB if negative.
    bytes.or_else(|| {
        let size: f64 = settings.get("cache_size")?.parse().ok()?;
        let page: f64 = settings.get("page_size")?.parse().ok()?;
        Some(if size < 0.0 { -size * 1024.0 } else { size * page })
    })
}

/// `2410MB` (units of 1024), or bytes.
fn parse_bytes(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" | "B" => 1.0,
        "kB" => 1024.0,
        "MB" => 1024.0 * 1024.0,
        "GB" => 1024.0 * 1024.0 * 1024.0,
        "TB" => 1024.0_f64.powi(4),
        _ => return None,
    };
    digits.parse::<f64>().ok().map(|value| value * factor)
}

/// A server, a router, or a stand-in for one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemberFacts {
    /// Unique in the trial.
    pub name: String,
    pub role: MemberRole,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<Entry>,
    /// `None` without data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<PlaceFacts>,
    /// Where an agent started it; `None` for the machine that ran the study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<MemberHost>,
    /// Empty if it did not come up; in a summary also for the primary: see the trial's `server`.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub server: ServerFacts,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemberHost {
    /// Its name in the study; empty if it is the member's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The machine's own name.
    pub machine: String,
    /// Version of Dyno there.
    pub dyno: String,
    /// CPUs that the agent may use.
    pub cpus: u32,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
    /// To the machine that ran the study, before any load; `None` if not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkFacts>,
}

/// Between a machine and a server, before any load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkFacts {
    /// Median time to open a connection, which takes one round trip.
    pub round_trip_us: f64,
    pub round_trip_least_us: f64,
    /// Measured by a long answer of the server; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberRole {
    /// What is measured, or the first of several.
    #[default]
    Primary,
    Replica,
    /// Of a cluster, after the primary.
    Node,
    Router,
    Shard,
    Generator,
    /// Holds data for another member.
    Store,
    OtherDatabase,
    /// A role of a later version of Dyno.
    #[serde(other)]
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    Write,
    Read,
    /// To make, fill and audit tables.
    Admin,
    /// A use of a later version of Dyno.
    #[serde(other)]
    Other,
}

fn is_empty(facts: &ServerFacts) -> bool {
    *facts == ServerFacts::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(product: &str, transport: &str, settings: &[(&str, &str)]) -> ProductFacts {
        let settings = settings.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let server = ServerFacts {
            product: product.to_owned(),
            transport: transport.to_owned(),
            settings: settings.collect(),
            ..ServerFacts::default()
        };
        server.product_facts().into_owned()
    }

    #[test]
    fn what_a_record_says_of_its_product_counts() {
        let said = ProductFacts { in_process: true, ..ProductFacts::default() };
        let server = ServerFacts {
            product: "Null (MySQL protocol)".to_owned(),
            transport: "unix".to_owned(),
            of_product: Some(said.clone()),
            ..ServerFacts::default()
        };
        let json = serde_json::to_string(&server).expect("it is text");
        let read: ServerFacts = serde_json::from_str(&json).expect("it is read");
        assert_eq!(read.product_facts().as_ref(), &said);
    }

    #[test]
    fn earlier_records_are_understood_by_names_and_texts() {
        let old = r#"{"product":"SQLite","version":"3","transport":"in process","tls":false,
            "settings":{},"durability":"not synced"}"#;
        let old: ServerFacts = serde_json::from_str(old).expect("it is read");
        let known = old.product_facts();
        assert!(known.in_process && known.stores_data && !known.simulated);
        assert_eq!(known.commit_safety, Some(CommitSafety::DataAtRisk));
        assert!(known.durability_settings.iter().any(|name| name == "synchronous"));
        assert!(!facts("Null (MySQL protocol)", "unix", &[]).stores_data);
        assert!(facts("MySQL", "tcp", &[]).stores_data);
        let simulated = facts("Simulated", "simulated", &[]);
        assert!(simulated.simulated && !simulated.stores_data);
    }

    #[test]
    fn the_words_of_earlier_records_have_an_order() {
        let check = |words: &str, expected: Option<CommitSafety>| {
            assert_eq!(earlier_safety(words), expected, "{words}");
        };
        let last = Some(CommitSafety::LastCommitsAtRisk);
        check("every commit is synced", Some(CommitSafety::EveryCommit));
        check("synced once a second", last);
        check("written at every commit, synced once a second", last);
        check("written and synced once a second", last);
        check("synced at checkpoints", last);
        check("synced within 3 × 200ms", last);
        check("every commit is synced, a crash may corrupt", Some(CommitSafety::DataAtRisk));
        check("not synced", Some(CommitSafety::DataAtRisk));
        check("unknown", None);
        check("", None);
        assert!(CommitSafety::EveryCommit < CommitSafety::DataAtRisk);
    }

    #[test]
    fn memory_for_data_follows_from_settings_of_earlier_records() {
        let check = |settings: &[(&str, &str)], expected: Option<f64>| {
            assert_eq!(facts("x", "unix", settings).memory_bytes, expected, "{settings:?}");
        };
        check(&[], None);
        check(&[("innodb_buffer_pool_size", "1048576")], Some(1048576.0));
        check(&[("shared_buffers", "128MB")], Some(134217728.0));
        check(&[("cache_size", "-2000"), ("page_size", "4096")], Some(2048000.0));
        check(&[("cache_size", "10"), ("page_size", "4096")], Some(40960.0));
        let rocks = ("default_storage_engine", "ROCKSDB");
        let both = [rocks, ("innodb_buffer_pool_size", "1"), ("rocksdb_block_cache_size", "512")];
        check(&both, Some(512.0));
    }
}

#[cfg(test)]
mod tests_of_members {
    use super::*;

    #[test]
    fn members_are_read_that_a_later_version_wrote() {
        let check = |text: &str, role: MemberRole, entries: &[Entry]| {
            let read: MemberFacts = serde_json::from_str(text).expect("it is a member");
            assert_eq!((read.role, read.entries.as_slice()), (role, entries), "{text}");
        };
        check(r#"{"name":"a","role":"primary"}"#, MemberRole::Primary, &[]);
        let entries = [Entry::Read, Entry::Other];
        check(
            r#"{"name":"b","role":"arbiter","entries":["read","vote"],"more":1}"#,
            MemberRole::Other,
            &entries,
        );
    }

    #[test]
    fn a_member_is_written_without_what_it_does_not_have() {
        let member = MemberFacts { name: "server".to_owned(), ..MemberFacts::default() };
        let text = serde_json::to_string(&member).expect("it is text");
        assert_eq!(text, r#"{"name":"server","role":"primary"}"#);
    }
}
