//! Settings of a private FerretDB: pragmas of its SQLite databases.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use dyno_units::{PercentEncoded, SettingValue};

use crate::error::{Result, fail};
use crate::settings::{GivenSettings, Settings, Words};
use crate::{DeployError, Durability};

pub(super) const DURABILITY: [&str; 2] = ["journal_mode", "synchronous"];

/// The pragmas that may be set: those of a connection. FerretDB hands them to SQLite for each one that it opens.
const PRAGMAS: Words = Words(
    "busy_timeout cache_size journal_mode journal_size_limit mmap_size synchronous temp_store \
     wal_autocheckpoint",
);

/// What is in force unless a study says otherwise: FerretDB's own and, of `synchronous`, SQLite's.
const DEFAULTS: [(&str, &str); 3] =
    [("busy_timeout", "10000"), ("journal_mode", "wal"), ("synchronous", "full")];

/// The words for numbers of `synchronous`.
const SYNCHRONOUS: [&str; 4] = ["off", "normal", "full", "extra"];

const JOURNAL_MODES: [&str; 6] = ["delete", "truncate", "persist", "memory", "wal", "off"];

pub(super) fn refused_setting(name: &str) -> Option<String> {
    (!PRAGMAS.has(name)).then(|| {
        format!(
            "settings of a private FerretDB are pragmas of its SQLite databases: {}; the rest is set by Dyno",
            PRAGMAS.listed()
        )
    })
}

/// In SQLite's words. Fails for unknown names and values, which SQLite would ignore.
pub(super) fn spelled(given: &GivenSettings) -> Result<Settings> {
    let defaults = DEFAULTS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let mut settings: Settings = defaults.collect();
    for (name, value) in given {
        if let Some(why) = refused_setting(name) {
            return fail(format!("FerretDB has no setting `{name}`: {why}"));
        }
        let text = text_of(value);
        let refuse = |accepted: &str| {
            DeployError::new(format!(
                "FerretDB does not accept `{name} = {text}`; write {accepted}"
            ))
        };
        let text = match name.as_str() {
            "synchronous" => {
                let by_number = text.parse::<usize>().ok().and_then(|idx| SYNCHRONOUS.get(idx));
                let word = by_number.or_else(|| SYNCHRONOUS.iter().find(|word| **word == text));
                (*word.ok_or_else(|| refuse(&SYNCHRONOUS.join(", ")))?).to_owned()
            }
            "journal_mode" => match JOURNAL_MODES.contains(&text.as_str()) {
                true => text,
                false => return Err(refuse(&JOURNAL_MODES.join(", "))),
            },
            _ => match text.parse::<i64>() {
                Ok(number) => number.to_string(),
                Err(_) => return Err(refuse("a whole number")),
            },
        };
        settings.insert(name.clone(), text);
    }
    Ok(settings)
}

/// A value as SQLite has it: sizes in bytes.
fn text_of(value: &SettingValue) -> String {
    match value {
        SettingValue::Text(text) => text.to_lowercase(),
        SettingValue::Bytes(bytes) => bytes.0.to_string(),
        SettingValue::Integer(_)
        | SettingValue::Real(_)
        | SettingValue::Switch(_)
        | SettingValue::PercentOfMemory(_) => value.to_string(),
    }
}

pub(super) fn uri(settings: &Settings, folder: &Path) -> String {
    // Before the journal's mode, which may have to wait for a lock.
    let (first, rest): (Vec<_>, Vec<_>) =
        settings.iter().partition(|(name, _)| *name == "busy_timeout");
    let pragmas = first.into_iter().chain(rest);
    let pragmas: Vec<String> =
        pragmas.map(|(name, value)| format!("_pragma={name}({value})")).collect();
    let folder = PercentEncoded { bytes: folder.as_os_str().as_bytes(), keep: b"/" };
    format!("file:{folder}/?{}", pragmas.join("&"))
}

pub(super) fn durability(settings: &Settings) -> Durability {
    let [journal, synchronous] =
        DURABILITY.map(|name| settings.get(name).map_or("", String::as_str));
    match (journal, synchronous) {
        ("off" | "memory", _) | (_, "off") => Durability::not_synced(),
        (_, "full" | "extra") => Durability::every_commit(),
        ("wal", "normal") => Durability::last_commits_at_risk("synced at checkpoints"),
        (_, "normal") => Durability::last_commits_at_risk("synced at the most critical moments"),
        _ => Durability::unknown(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(name: &str, value: &str) -> GivenSettings {
        GivenSettings::from([(name.to_owned(), SettingValue::Text(value.to_owned()))])
    }

    #[test]
    fn settings_become_pragmas() {
        let settings = spelled(&given("synchronous", "1")).unwrap();
        assert_eq!(
            uri(&settings, Path::new("/a b/data")),
            "file:/a%20b/data/?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)\
             &_pragma=synchronous(normal)"
        );
    }

    #[test]
    fn what_sqlite_would_ignore_is_refused() {
        let check = |name: &str, value: &str, part: &str| {
            let error = spelled(&given(name, value)).expect_err("it is refused");
            assert!(error.message.contains(part), "{}", error.message);
        };
        check("synchronous", "4", "write off, normal, full, extra");
        check("synchronous", "full)&x=(", "does not accept");
        check("journal_mode", "waal", "write delete");
        check("cache_size", "1MB", "a whole number");
        check("foreign_keys", "1", "pragmas of its SQLite databases");
    }

    #[test]
    fn durability_follows_the_settings() {
        let check = |journal: &str, synchronous: &str, expected: &str| {
            let settings = Settings::from([
                ("journal_mode".to_owned(), journal.to_owned()),
                ("synchronous".to_owned(), synchronous.to_owned()),
            ]);
            assert_eq!(durability(&settings).words, expected, "{journal} {synchronous}");
        };
        check("wal", "full", "every commit is synced");
        check("delete", "extra", "every commit is synced");
        check("wal", "normal", "synced at checkpoints");
        check("wal", "off", "not synced");
        check("memory", "full", "not synced");
        assert_eq!(
            durability(&spelled(&GivenSettings::new()).unwrap()),
            Durability::every_commit()
        );
    }
}
