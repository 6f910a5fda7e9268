//! SQLite's settings: PRAGMAs that must be known, accepted and in force. SQLite silently ignores
//! misspelt PRAGMAs and most senseless values; here each name is looked up in `PRAGMA pragma_list`,
//! and each value read back.

use std::collections::BTreeMap;

use dyno_units::SettingValue;
use rusqlite::types::ValueRef;

use crate::settings::{GivenSettings, Settings, Words};
use crate::{CommitSafety, Durability};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pragma {
    pub(super) name: String,
    pub(super) value: String,
}

impl Pragma {
    pub(super) fn new(name: &str, value: &str) -> Pragma {
        Pragma { name: name.to_owned(), value: value.to_owned() }
    }
}

/// How long a connection waits for a lock, unless the study says otherwise.
const BUSY_TIMEOUT_MS: &str = "5000";

/// In this order: waits for locks, file format, how the journal is opened, journal.
const FIRST: [&str; 6] =
    ["busy_timeout", "page_size", "encoding", "auto_vacuum", "locking_mode", "journal_mode"];

const IN_BYTES: [&str; 5] =
    ["page_size", "mmap_size", "journal_size_limit", "soft_heap_limit", "hard_heap_limit"];

/// Words of those that are reported as numbers; the position is the number.
const WORDS: [(&str, &[&str]); 4] = [
    ("synchronous", &["off", "normal", "full", "extra"]),
    ("temp_store", &["default", "file", "memory"]),
    ("auto_vacuum", &["none", "full", "incremental"]),
    ("secure_delete", &["off", "on", "fast"]),
];

const FACTS: Words = Words(
    "analysis_limit auto_vacuum automatic_index busy_timeout cache_size cache_spill \
     cell_size_check checkpoint_fullfsync encoding foreign_keys fullfsync hard_heap_limit \
     journal_mode journal_size_limit locking_mode max_page_count mmap_size page_size query_only \
     read_uncommitted secure_delete soft_heap_limit synchronous temp_store threads trusted_schema \
     wal_autocheckpoint",
);

/// In the order of application. The error is a message for the user.
pub(super) fn from_settings(settings: &GivenSettings) -> Result<Vec<Pragma>, String> {
    let mut pragmas = settings
        .iter()
        .map(|(name, value)| {
            let name = name.to_ascii_lowercase();
            Ok(Pragma { value: spelling(&name, value)?, name })
        })
        .collect::<Result<Vec<_>, String>>()?;
    if !pragmas.iter().any(|pragma| pragma.name == "busy_timeout") {
        let (name, value) = ("busy_timeout".to_owned(), BUSY_TIMEOUT_MS.to_owned());
        pragmas.push(Pragma { name, value });
    }
    let rank = |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
    pragmas.sort_by_key(|pragma| rank(&pragma.name));
    Ok(pragmas)
}

fn spelling(name: &str, value: &SettingValue) -> Result<String, String> {
    match value.with_decimal_sizes() {
        // Negative: kibibytes. Positive would be pages.
        SettingValue::Bytes(bytes) if name == "cache_size" => Ok(format!("-{}", bytes.0 >> 10)),
        SettingValue::Bytes(bytes) if IN_BYTES.contains(&name) => Ok(bytes.0.to_string()),
        SettingValue::Bytes(_) => Err(format!(
            "SQLite's PRAGMA {name} does not take a size in bytes; give a plain number"
        )),
        SettingValue::PercentOfMemory(_) => {
            Err(format!("the share of memory for PRAGMA {name} was not resolved to bytes"))
        }
        plain => Ok(plain.to_string()),
    }
}

/// Refuses PRAGMAs that this SQLite does not know.
pub(super) fn check_names(
    database: &rusqlite::Connection,
    pragmas: &[Pragma],
) -> Result<(), String> {
    let known = names(database).map_err(|error| format!("SQLite: {error}"))?;
    for Pragma { name, .. } in pragmas {
        if !known.contains(name) {
            return Err(format!(
                "SQLite {} has no setting `{name}`; its settings are PRAGMAs: {}",
                rusqlite::version(),
                FACTS.listed()
            ));
        }
    }
    Ok(())
}

/// The first unknown setting, with the nearest name, or the first refused value.
pub(super) fn refusal(settings: &GivenSettings) -> Option<String> {
    let pragmas = match from_settings(settings) {
        Ok(pragmas) => pragmas,
        Err(why) => return Some(why),
    };
    let opened = rusqlite::Connection::open_in_memory()
        .and_then(|database| Ok((names(&database)?, database)));
    let (known, database) = match opened {
        Ok(opened) => opened,
        Err(error) => return Some(format!("SQLite: {error}")),
    };
    let normal = |name: &str| name.to_ascii_lowercase();
    let unknown = crate::settings::unknown_name(settings, &known, normal, "SQLite");
    let journal = || pragmas.iter().find_map(unknown_journal_mode);
    let in_memory = pragmas.iter().filter(|pragma| !ONLY_IN_FILES.contains(&pragma.name.as_str()));
    let in_memory: Vec<Pragma> = in_memory.cloned().collect();
    unknown.or_else(journal).or_else(|| apply(&database, &in_memory).err())
}

/// Not held in memory, or of the whole process: only a file shows accepted values.
const ONLY_IN_FILES: [&str; 5] =
    ["journal_mode", "locking_mode", "mmap_size", "soft_heap_limit", "hard_heap_limit"];

/// From SQLite's documentation, "PRAGMA journal_mode".
const JOURNAL_MODES: [&str; 6] = ["delete", "truncate", "persist", "memory", "wal", "off"];

fn unknown_journal_mode(pragma: &Pragma) -> Option<String> {
    let Pragma { name, value } = pragma;
    let is_unknown =
        name == "journal_mode" && !JOURNAL_MODES.contains(&value.to_ascii_lowercase().as_str());
    is_unknown.then(|| {
        let modes = JOURNAL_MODES.join(", ");
        format!("SQLite does not accept the setting journal_mode = {value}; choose one of {modes}")
    })
}

fn names(database: &rusqlite::Connection) -> rusqlite::Result<Vec<String>> {
    database.prepare("PRAGMA pragma_list")?.query_map([], |row| row.get(0))?.collect()
}

/// Applies them in order, and proves that each is in force. Names must have passed [`check_names`].
pub(super) fn apply(database: &rusqlite::Connection, pragmas: &[Pragma]) -> Result<(), String> {
    for Pragma { name, value } in pragmas {
        let refused = |error: rusqlite::Error| {
            format!("SQLite refuses the setting {name} = {value}: {error}")
        };
        // As text, which SQLite reads as a number if it wants one.
        let quoted = value.replace('\'', "''");
        run(database, &format!("PRAGMA {name} = '{quoted}'")).map_err(refused)?;
        match read(database, name).map_err(refused)? {
            None => {
                return Err(format!(
                    "SQLite's PRAGMA {name} cannot be read back, so it cannot be used as a setting"
                ));
            }
            Some(found) if !is_same(name, value, &found) => {
                return Err(format!(
                    "SQLite ignores the setting {name} = {value}: the value remains {found}"
                ));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn run(database: &rusqlite::Connection, sql: &str) -> rusqlite::Result<()> {
    let mut statement = database.prepare(sql)?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

/// The value of a PRAGMA as text; `None` if it does not return exactly one value.
pub(super) fn read(
    database: &rusqlite::Connection,
    name: &str,
) -> rusqlite::Result<Option<String>> {
    let mut statement = database.prepare(&format!("PRAGMA {name}"))?;
    if statement.column_count() != 1 {
        return Ok(None);
    }
    let mut rows = statement.query([])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(value_text(row.get_ref(0)?))
}

pub(super) fn value_text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(value) => Some(value.to_string()),
        ValueRef::Real(value) => Some(value.to_string()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
    }
}

fn is_same(name: &str, left: &str, right: &str) -> bool {
    canonical(name, left) == canonical(name, right)
}

fn canonical(name: &str, value: &str) -> String {
    let value = value.trim().to_ascii_lowercase();
    let words = WORDS.iter().find(|(word_name, _)| *word_name == name).map(|(_, words)| words);
    if let Some(idx) = words.and_then(|words| words.iter().position(|word| *word == value)) {
        return idx.to_string();
    }
    match value.as_str() {
        "on" | "yes" | "true" => "1".to_owned(),
        "off" | "no" | "false" if name != "journal_mode" => "0".to_owned(),
        _ => value,
    }
}

/// The settings in force, words for those that SQLite reports as numbers.
pub(super) fn facts(database: &rusqlite::Connection) -> rusqlite::Result<Settings> {
    let mut facts = BTreeMap::new();
    for name in FACTS.iter() {
        if let Some(value) = read(database, name)? {
            facts.insert(name.to_owned(), word(name, value));
        }
    }
    let options: Vec<String> = database
        .prepare("PRAGMA compile_options")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    facts.insert("compile_options".to_owned(), options.join(" "));
    Ok(facts)
}

fn word(name: &str, value: String) -> String {
    let words = WORDS.iter().find(|(word_name, _)| *word_name == name);
    let idx = value.parse::<usize>().ok();
    let word = words.zip(idx).and_then(|((_, words), idx)| words.get(idx));
    word.map_or(value, |word| (*word).to_owned())
}

pub(super) fn durability(facts: &Settings) -> Durability {
    let fact = |name: &str| facts.get(name).map_or("", String::as_str);
    let is_synced = matches!(fact("synchronous"), "normal" | "full" | "extra");
    match (fact("journal_mode"), fact("synchronous")) {
        (_, "off") => Durability::not_synced(),
        ("wal", "normal") => Durability::last_commits_at_risk("synced at checkpoints"),
        ("memory" | "off", _) if is_synced => Durability::of(
            "every commit is synced, a crash may corrupt the database",
            CommitSafety::DataAtRisk,
        ),
        _ if is_synced => Durability::every_commit(),
        _ => Durability::unknown(),
    }
}

pub(super) const DURABILITY_SETTINGS: [&str; 3] = ["synchronous", "journal_mode", "fullfsync"];

pub(super) const MEMORY_SETTINGS: [&str; 2] = ["cache_size", "mmap_size"];

/// Bytes of a connection's page cache: pages, or KiB if it is negative.
pub(super) fn memory_bytes(facts: &Settings) -> Option<f64> {
    let size: f64 = facts.get("cache_size")?.parse().ok()?;
    let page: f64 = facts.get("page_size")?.parse().ok()?;
    Some(if size < 0.0 { -size * 1024.0 } else { size * page })
}

#[cfg(test)]
mod tests {
    use dyno_units::ByteCount;

    use super::*;

    fn open() -> rusqlite::Connection {
        rusqlite::Connection::open_in_memory().unwrap()
    }

    fn outcome(name: &str, value: SettingValue) -> Result<String, String> {
        let database = open();
        let pragmas = from_settings(&[(name.to_owned(), value)].into())?;
        check_names(&database, &pragmas)?;
        apply(&database, &pragmas)?;
        Ok(facts(&database).unwrap().remove(&name.to_ascii_lowercase()).unwrap())
    }

    #[test]
    fn accepted_settings_are_in_force() {
        let check = |name: &str, value: SettingValue, expected: &str| {
            assert_eq!(outcome(name, value).as_deref(), Ok(expected), "{name}");
        };
        check("synchronous", SettingValue::Text("FULL".to_owned()), "full");
        check("synchronous", SettingValue::Text("NORMAL".to_owned()), "normal");
        check("synchronous", SettingValue::Integer(3), "extra");
        check("synchronous", SettingValue::Switch(false), "off");
        check("Temp_Store", SettingValue::Text("memory".to_owned()), "memory");
        check("cache_size", SettingValue::Bytes(ByteCount(64 << 20)), "-65536");
        check("cache_size", SettingValue::Integer(500), "500");
        check("page_size", SettingValue::Bytes(ByteCount(16 << 10)), "16384");
        check("foreign_keys", SettingValue::Switch(true), "1");
        check("busy_timeout", SettingValue::Integer(70), "70");
        check("journal_mode", SettingValue::Text("off".to_owned()), "off");
    }

    #[test]
    fn nothing_is_ignored_in_silence() {
        let check = |name: &str, value: SettingValue, expected: &str| {
            let message = outcome(name, value).unwrap_err();
            assert!(message.contains(expected), "{message}");
        };
        let text = |text: &str| SettingValue::Text(text.to_owned());
        check("innodb_buffer_pool_size", SettingValue::Integer(1), "has no setting");
        check("page_size", SettingValue::Integer(5000), "the value remains 4096");
        check("journal_mode", text("wall"), "ignores the setting");
        check("synchronous", text("sometimes"), "ignores the setting");
        check("encoding", text("latin-1"), "encoding");
        check("integrity_check", SettingValue::Integer(1), "integrity_check = 1");
        check("wal_checkpoint", text("FULL"), "cannot be read back");
        check("wal_autocheckpoint", SettingValue::Bytes(ByteCount(1 << 20)), "plain number");
        check("cache_size", SettingValue::PercentOfMemory(3.0), "not resolved");
        check("page_size", text("4096'; DROP TABLE x; --"), "ignores the setting");
    }

    #[test]
    fn pragmas_that_decide_others_come_first() {
        let names = ["journal_mode", "cache_size", "page_size", "locking_mode"];
        let settings =
            names.iter().map(|name| ((*name).to_owned(), SettingValue::Integer(1))).collect();
        let order: Vec<String> =
            from_settings(&settings).unwrap().into_iter().map(|pragma| pragma.name).collect();
        let expected = ["busy_timeout", "page_size", "locking_mode", "journal_mode", "cache_size"];
        assert_eq!(order, expected);
    }

    #[test]
    fn durability_in_words() {
        let check = |journal_mode: &str, synchronous: &str, expected: &str| {
            let facts = [("journal_mode", journal_mode), ("synchronous", synchronous)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into();
            assert_eq!(durability(&facts).words, expected, "{journal_mode} {synchronous}");
        };
        check("delete", "full", "every commit is synced");
        check("wal", "extra", "every commit is synced");
        check("wal", "full", "every commit is synced");
        check("wal", "normal", "synced at checkpoints");
        check("wal", "off", "not synced");
        check("memory", "full", "every commit is synced, a crash may corrupt the database");
        check("delete", "", "unknown");
    }
}
