//! The tables in three dialects.

use dyno_model::names;
use dyno_units::RandomStream;

use crate::{Dialect, Table};

use super::settings::Key;

/// Bytes of a random key: eleven digits, a dash, eleven digits.
pub(super) const KEY_BYTES: usize = 23;

/// Digits before and after the dash.
const HALF: usize = 11;

pub(super) fn random_key(random: &mut RandomStream) -> [u8; KEY_BYTES] {
    let mut key = [b'-'; KEY_BYTES];
    for start in [0, HALF + 1] {
        let mut rest = random.below(10_u64.pow(HALF as u32));
        for digit in key[start..start + HALF].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
    }
    key
}

pub(super) fn name_prefix(key: Key) -> &'static str {
    match key {
        Key::Sequential => "test_sequential_pk",
        Key::RandomString => "test_random_pk",
    }
}

/// The name of table `idx`, counted from 0.
pub(super) fn table_name(key: Key, idx: u64) -> String {
    format!("{}{}", name_prefix(key), idx + 1)
}

pub(super) fn table(key: Key, dialect: Dialect, idx: u64, rows: u64) -> Table {
    let name = table_name(key, idx);
    let id = match (key, dialect) {
        (Key::Sequential, Dialect::MySql) => "int not null auto_increment",
        (Key::Sequential, Dialect::PostgreSql) => "serial",
        (Key::Sequential, Dialect::Sqlite | Dialect::ClickHouse) => "integer not null",
        (Key::RandomString, _) => "varchar(26) not null",
    };
    let mut after = vec![dialect.analyze(&name)];
    let index = match dialect {
        Dialect::MySql => format!(", KEY {name}_number (number)"),
        Dialect::PostgreSql | Dialect::Sqlite | Dialect::ClickHouse => {
            after.insert(0, format!("CREATE INDEX {name}_number ON {name} (number)"));
            String::new()
        }
    };
    Table {
        create: format!(
            "CREATE TABLE {name} (id {id}, number int not null, PRIMARY KEY (id){index})"
        ),
        columns: names(key.columns()),
        rows,
        after,
        name,
    }
}

/// The INSERT into table `idx` up to its rows.
pub(super) fn insert_head(key: Key, idx: u64) -> String {
    format!("INSERT INTO {} ({}) VALUES ", table_name(key, idx), key.columns().join(", "))
}
