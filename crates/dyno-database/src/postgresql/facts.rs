//! Facts that a PostgreSQL server reports.

use dyno_workload::{Connection, StatementError};

use super::connect;
use crate::cleaner::Cleaner;
use crate::error::{Context, Result};
use crate::server::build_parts;
use crate::settings::Settings;
use crate::sql::first_cell;
use crate::{DeployError, Durability, Endpoint, ServerFacts};

const DURABILITY_SETTINGS: [&str; 4] =
    ["synchronous_commit", "fsync", "wal_sync_method", "full_page_writes"];

const MEMORY_SETTINGS: [&str; 1] = ["shared_buffers"];

pub(super) fn ask(endpoint: &Endpoint) -> Result<ServerFacts> {
    let mut connection = connect(endpoint)?;
    let cleaner = Cleaner::new(endpoint.password.as_ref());
    let version = cleaner.clean(&version(&mut connection)?);
    let settings = settings(&mut connection)
        .context("PostgreSQL: cannot read its settings")?
        .into_iter()
        .map(|(name, value)| cleaner.clean_setting(&name, &value))
        .collect();
    Ok(ServerFacts {
        product: "PostgreSQL".to_owned(),
        version,
        durability: durability(&settings),
        durability_settings: &DURABILITY_SETTINGS,
        memory_bytes: settings.get(MEMORY_SETTINGS[0]).and_then(|text| parse_bytes(text)),
        memory_settings: &MEMORY_SETTINGS,
        settings,
        ..ServerFacts::at(endpoint, connection.is_tls())
    })
}

pub(super) fn configured(endpoint: &Endpoint) -> Option<String> {
    let mut connection = connect(endpoint).ok()?;
    let asked = "SELECT name || ': ' || setting FROM pg_config WHERE name IN ('CONFIGURE', 'CC', \
                 'CFLAGS') ORDER BY name";
    build_parts(connection.query(asked).ok()?.into_iter().flatten().flatten())
}

/// The full version text without the product's name: `15.14 (Debian …) on x86_64-pc-linux-gnu …`.
pub(super) fn version(connection: &mut dyn Connection) -> Result<String> {
    let rows = connection
        .query("SELECT pg_catalog.version()")
        .context("PostgreSQL: cannot read its version")?;
    let text = first_cell(rows)
        .ok_or_else(|| DeployError::new("PostgreSQL does not report its version"))?;
    Ok(text.strip_prefix("PostgreSQL ").map_or(text.clone(), str::to_owned))
}

fn settings(connection: &mut dyn Connection) -> Result<Settings, StatementError> {
    let rows = connection.query("SHOW ALL")?;
    Ok(rows
        .into_iter()
        .filter_map(|row| {
            let mut columns = row.into_iter().flatten();
            Some((columns.next()?, columns.next().unwrap_or_default()))
        })
        .collect())
}

fn durability(settings: &Settings) -> Durability {
    let setting = |name: &str| settings.get(name).map(String::as_str);
    let durability = match (setting("fsync"), setting("synchronous_commit")) {
        (Some("off"), _) => Durability::not_synced(),
        (Some("on"), Some("off")) => {
            // PostgreSQL documentation, "Asynchronous Commit".
            let delay = setting("wal_writer_delay").unwrap_or("wal_writer_delay");
            Durability::last_commits_at_risk(&format!("synced within 3 × {delay}"))
        }
        (Some("on"), Some("on" | "local" | "remote_write" | "remote_apply")) => {
            Durability::every_commit()
        }
        _ => return Durability::unknown(),
    };
    let is_torn = setting("full_page_writes") == Some("off") && setting("fsync") == Some("on");
    if is_torn { durability.with_torn_pages() } else { durability }
}

/// `2410MB` (units of 1024), or bytes.
fn parse_bytes(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let power = match &text[digits.len()..] {
        "" | "B" => 0,
        "kB" => 1,
        "MB" => 2,
        "GB" => 3,
        "TB" => 4,
        _ => return None,
    };
    digits.parse::<f64>().ok().map(|value| value * 1024.0_f64.powi(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(settings: &[(&str, &str)], expected: &str) {
        let settings =
            settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        assert_eq!(durability(&settings).words, expected);
    }

    #[test]
    fn sizes_are_in_units_of_1024() {
        let check = |text: &str, expected: Option<f64>| assert_eq!(parse_bytes(text), expected);
        check("128MB", Some(134_217_728.0));
        check("8kB", Some(8192.0));
        check("512", Some(512.0));
        check("1 apple", None);
        check("", None);
    }

    #[test]
    fn durability_follows_the_settings() {
        check(&[("fsync", "on"), ("synchronous_commit", "on")], "every commit is synced");
        check(&[("fsync", "on"), ("synchronous_commit", "remote_write")], "every commit is synced");
        check(&[("fsync", "off"), ("synchronous_commit", "on")], "not synced");
        check(
            &[("fsync", "on"), ("synchronous_commit", "on"), ("full_page_writes", "off")],
            "every commit is synced, a crash may tear pages",
        );
        check(
            &[("fsync", "on"), ("synchronous_commit", "off"), ("wal_writer_delay", "200ms")],
            "synced within 3 × 200ms",
        );
        check(&[("synchronous_commit", "on")], "unknown");
    }
}
