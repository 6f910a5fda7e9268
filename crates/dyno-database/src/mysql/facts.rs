//! Facts that a MariaDB or MySQL server reports.

use std::collections::BTreeMap;

use dyno_workload::{Connection, StatementError};

use super::MySqlConnection;
use crate::cleaner::Cleaner;
use crate::server::build_parts;
use crate::settings::Settings;
use crate::sql::first_cell;
use crate::{Durability, Endpoint, ServerFacts};

const DURABILITY_SETTINGS: [&str; 5] = [
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_doublewrite",
    "sync_binlog",
    "rocksdb_flush_log_at_trx_commit",
];

const MEMORY_SETTINGS: [&str; 2] = ["innodb_buffer_pool_size", "rocksdb_block_cache_size"];

pub(super) fn ask(
    connection: &mut MySqlConnection,
    endpoint: &Endpoint,
) -> Result<ServerFacts, StatementError> {
    let cleaner = Cleaner::new(endpoint.password.as_ref());
    let version = first_cell(connection.query("SELECT VERSION()")?)
        .unwrap_or_else(|| connection.version().to_owned());
    let version = cleaner.clean(&version);
    let mut settings = BTreeMap::new();
    for row in connection.query("SHOW GLOBAL VARIABLES")? {
        if let [Some(name), value] = row.as_slice() {
            let value = match name.as_str() {
                // Who knows it can join.
                "wsrep_cluster_name" => "***",
                _ => value.as_deref().unwrap_or_default(),
            };
            settings.extend([cleaner.clean_setting(name, value)]);
        }
    }
    Ok(ServerFacts {
        product: if version.contains("MariaDB") { "MariaDB" } else { "MySQL" }.to_owned(),
        durability: durability(&settings),
        durability_settings: &DURABILITY_SETTINGS,
        memory_bytes: memory_bytes(&settings),
        memory_settings: &MEMORY_SETTINGS,
        version,
        settings,
        ..ServerFacts::at(endpoint, connection.is_encrypted())
    })
}

pub(super) fn configured(settings: &Settings) -> Option<String> {
    let names = ["version_comment", "version_compile_os", "version_compile_machine"];
    build_parts(names.iter().filter_map(|name| Some(format!("{name}: {}", settings.get(*name)?))))
}

/// Durability by the settings of the default engine.
fn durability(settings: &Settings) -> Durability {
    let value = |name: &str| settings.get(name).map(String::as_str);
    let engine = value("default_storage_engine").unwrap_or("InnoDB").to_ascii_lowercase();
    let flush = match engine.as_str() {
        "innodb" if value("innodb_flush_method") == Some("nosync") => {
            return Durability::not_synced();
        }
        "innodb" => value("innodb_flush_log_at_trx_commit"),
        "rocksdb" => value("rocksdb_flush_log_at_trx_commit"),
        "myisam" | "memory" => return Durability::not_synced(),
        _ => return Durability::unknown(),
    };
    let durability = match flush {
        // MariaDB's 3 syncs as its 1 does, and once more.
        Some("1" | "3") => Durability::every_commit(),
        Some("2") => {
            Durability::last_commits_at_risk("written at every commit, synced once a second")
        }
        Some("0") => Durability::last_commits_at_risk("written and synced once a second"),
        _ => return Durability::unknown(),
    };
    // MySQL's DETECT_ONLY finds a torn page and cannot repair it.
    let doublewrite = value("innodb_doublewrite").map(str::to_ascii_lowercase);
    match doublewrite.as_deref() {
        Some("off" | "0" | "detect_only") if engine == "innodb" => durability.with_torn_pages(),
        _ => durability,
    }
}

/// Memory for data of the engine that tables get by default.
fn memory_bytes(settings: &Settings) -> Option<f64> {
    let engine = settings.get("default_storage_engine");
    let is_rocksdb = engine.is_some_and(|engine| engine.eq_ignore_ascii_case("rocksdb"));
    let name = MEMORY_SETTINGS[usize::from(is_rocksdb)];
    settings.get(name)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CommitSafety;

    #[track_caller]
    fn check(settings: &[(&str, &str)], expected: &str) {
        let settings = settings.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        assert_eq!(durability(&settings.collect()).words, expected);
    }

    #[test]
    fn durability_follows_the_default_engine() {
        let innodb = "innodb_flush_log_at_trx_commit";
        check(&[(innodb, "1")], "every commit is synced");
        check(&[(innodb, "2")], "written at every commit, synced once a second");
        check(&[(innodb, "0")], "written and synced once a second");
        check(&[(innodb, "1"), ("innodb_flush_method", "nosync")], "not synced");
        let torn = "every commit is synced, a crash may tear pages";
        check(&[(innodb, "1"), ("innodb_doublewrite", "OFF")], torn);
        check(&[(innodb, "1"), ("innodb_doublewrite", "DETECT_ONLY")], torn);
        check(&[(innodb, "1"), ("innodb_doublewrite", "fast")], "every commit is synced");
        let rocks = ("default_storage_engine", "ROCKSDB");
        check(&[(innodb, "1"), rocks, ("rocksdb_flush_log_at_trx_commit", "2")], {
            "written at every commit, synced once a second"
        });
        check(&[(innodb, "1"), ("default_storage_engine", "Aria")], "unknown");
        check(&[("default_storage_engine", "MyISAM")], "not synced");
    }

    #[test]
    fn memory_is_that_of_the_default_engine() {
        let check = |engine: &str, expected: Option<f64>| {
            let settings = [
                ("default_storage_engine", engine),
                ("innodb_buffer_pool_size", "1048576"),
                ("rocksdb_block_cache_size", "512"),
            ];
            let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(memory_bytes(&settings.into()), expected, "{engine}");
        };
        check("InnoDB", Some(1048576.0));
        check("ROCKSDB", Some(512.0));
        assert_eq!(memory_bytes(&BTreeMap::new()), None);
    }

    #[test]
    fn safety_goes_with_the_words() {
        let safety = |value: &str| {
            let name = "innodb_flush_log_at_trx_commit".to_owned();
            durability(&[(name, value.to_owned())].into()).safety
        };
        assert_eq!(safety("1"), Some(CommitSafety::EveryCommit));
        assert_eq!(safety("2"), Some(CommitSafety::LastCommitsAtRisk));
        assert_eq!(safety("x"), None);
        let torn = [("innodb_flush_log_at_trx_commit", "1"), ("innodb_doublewrite", "OFF")];
        let torn = torn.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(durability(&torn.into()).safety, Some(CommitSafety::DataAtRisk));
    }
}
