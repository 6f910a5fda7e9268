//! Facts that a ClickHouse server reports.

use dyno_units::version_numbers;
use dyno_workload::Connection;

use super::connection::ClickHouseConnection;
use super::settings;
use crate::cleaner::Cleaner;
use crate::error::{Context, Result};
use crate::server::build_parts;
use crate::settings::Settings;
use crate::sql::first_cell;
use crate::{DeployError, Durability, Endpoint, ServerFacts};

const DURABILITY_SETTINGS: [&str; 2] =
    ["merge_tree.fsync_after_insert", "merge_tree.fsync_part_directory"];

pub(super) fn ask(
    endpoint: &Endpoint,
    connection: &mut ClickHouseConnection,
) -> Result<ServerFacts> {
    let cleaner = Cleaner::new(endpoint.password.as_ref());
    let version = cleaner.clean(&version(connection)?);
    let settings: Settings = settings::reported(connection)?
        .into_iter()
        .map(|(name, value)| cleaner.clean_setting(&name, &value))
        .collect();
    Ok(ServerFacts {
        product: "ClickHouse".to_owned(),
        durability: durability(&version, &settings),
        version,
        durability_settings: &DURABILITY_SETTINGS,
        settings,
        // Its caches are of marks, and of blocks if that is asked for: data are in the system's cache.
        ..ServerFacts::at(endpoint, connection.is_tls())
    })
}

pub(super) fn version(connection: &mut dyn Connection) -> Result<String> {
    let rows =
        connection.query("SELECT version()").context("ClickHouse: cannot read its version")?;
    first_cell(rows).ok_or_else(|| DeployError::new("ClickHouse does not report its version"))
}

pub(super) fn configured(connection: &mut dyn Connection) -> Option<String> {
    let asked = "SELECT concat(name, ': ', value) FROM system.build_options WHERE name IN \
                 ('VERSION_DESCRIBE', 'BUILD_TYPE', 'CXX_COMPILER_VERSION', 'CXX_FLAGS') ORDER BY name";
    build_parts(connection.query(asked).ok()?.into_iter().flatten().flatten())
}

/// Durability by the settings that determine it. Versions without them sync no data at all.
fn durability(version: &str, settings: &Settings) -> Durability {
    let is_on = |name: &str| settings.get(name).map(|value| value != "0");
    match DURABILITY_SETTINGS.map(is_on) {
        [Some(true), Some(true)] => Durability::every_commit(),
        [Some(_), _] => Durability::not_synced(),
        // The settings came with 20.10.
        [None, _] if version_numbers(version) < vec![20, 10] => Durability::not_synced(),
        [None, _] => Durability::unknown(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durability_follows_the_settings() {
        let check = |version: &str, values: [Option<&str>; 2], expected: &str| {
            let settings = DURABILITY_SETTINGS
                .iter()
                .zip(values)
                .filter_map(|(name, value)| Some(((*name).to_owned(), value?.to_owned())));
            assert_eq!(durability(version, &settings.collect()).words, expected);
        };
        check("18.16.1", [None, None], "not synced");
        check("23.8.1.1", [Some("0"), Some("0")], "not synced");
        check("23.8.1.1", [Some("1"), Some("0")], "not synced");
        check("23.8.1.1", [Some("1"), Some("1")], "every commit is synced");
        check("23.8.1.1", [None, None], "unknown");
    }
}
