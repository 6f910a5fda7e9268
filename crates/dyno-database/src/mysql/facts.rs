//! What a MariaDB or MySQL server says of itself.

use std::collections::BTreeMap;

use dyno_units::redact_setting;
use dyno_workload::{Connection, StatementError};

use super::MySqlConnection;
use crate::cleaner::Cleaner;
use crate::{Address, Endpoint, ServerFacts};

/// Asks a server for its facts.
pub(super) fn ask(
    connection: &mut MySqlConnection,
    endpoint: &Endpoint,
) -> Result<ServerFacts, StatementError> {
    let cleaner = Cleaner::new(endpoint.password.as_ref());
    let version = connection
        .query("SELECT VERSION()")?
        .into_iter()
        .flatten()
        .next()
        .flatten()
        .unwrap_or_else(|| connection.version().to_owned());
    let version = cleaner.clean(&version);
    let mut settings = BTreeMap::new();
    for row in connection.query("SHOW GLOBAL VARIABLES")? {
        if let [Some(name), value] = row.as_slice() {
            let value = redact_setting(name, value.as_deref().unwrap_or_default());
            settings.insert(cleaner.clean(name), cleaner.clean(&value));
        }
    }
    Ok(ServerFacts {
        product: product_of(&version).to_owned(),
        transport: match endpoint.address {
            Address::Unix(_) => "unix",
            Address::Tcp { .. } => "tcp",
        },
        tls: connection.is_encrypted(),
        durability: durability(&settings).to_owned(),
        version,
        settings,
    })
}

fn product_of(version: &str) -> &'static str {
    if version.contains("MariaDB") { "MariaDB" } else { "MySQL" }
}

/// What a commit survives, by the settings of the engine that tables get by default.
fn durability(settings: &BTreeMap<String, String>) -> &'static str {
    let value = |name: &str| settings.get(name).map(String::as_str);
    let engine = value("default_storage_engine").unwrap_or("InnoDB").to_ascii_lowercase();
    let flush = match engine.as_str() {
        "innodb" if value("innodb_flush_method") == Some("nosync") => return "not synced",
        "innodb" => value("innodb_flush_log_at_trx_commit"),
        "rocksdb" => value("rocksdb_flush_log_at_trx_commit"),
        "myisam" | "memory" => return "not synced",
        _ => return "unknown",
    };
    match flush {
        // MariaDB's 3 syncs as its 1 does, and once more.
        Some("1" | "3") => "every commit is synced",
        Some("2") => "written at every commit, synced once a second",
        Some("0") => "written and synced once a second",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(settings: &[(&str, &str)], expected: &str) {
        let settings = settings.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        assert_eq!(durability(&settings.collect()), expected);
    }

    #[test]
    fn durability_follows_the_default_engine() {
        let innodb = "innodb_flush_log_at_trx_commit";
        check(&[(innodb, "1")], "every commit is synced");
        check(&[(innodb, "2")], "written at every commit, synced once a second");
        check(&[(innodb, "0")], "written and synced once a second");
        check(&[(innodb, "1"), ("innodb_flush_method", "nosync")], "not synced");
        let rocks = ("default_storage_engine", "ROCKSDB");
        check(&[(innodb, "1"), rocks, ("rocksdb_flush_log_at_trx_commit", "2")], {
            "written at every commit, synced once a second"
        });
        check(&[(innodb, "1"), ("default_storage_engine", "Aria")], "unknown");
        check(&[("default_storage_engine", "MyISAM")], "not synced");
    }
}
