//! The options of the key-order workload, parsed and checked.

use dyno_model::{OptionError, OptionSpec};

use crate::options::Options;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// A number that the server gives, each larger than the one before.
    Sequential,
    /// A string of random digits.
    RandomString,
}

impl Key {
    pub(super) fn columns(self) -> &'static [&'static str] {
        match self {
            Key::Sequential => &["number"],
            Key::RandomString => &["id", "number"],
        }
    }

    /// Bytes of the columns of a row: a lower bound of what it takes uncompressed.
    pub(super) fn row_bytes(self) -> u64 {
        match self {
            Key::Sequential => 8,
            Key::RandomString => super::schema::KEY_BYTES as u64 + 4,
        }
    }
}

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec::word(
        "key",
        &["sequential", "random-string"],
        "the primary key: a number that the server assigns, or 22 random digits",
    ),
    OptionSpec::count("tables", "1", "number of tables"),
    OptionSpec::count("table_size", "0", "rows in each table before the first insert"),
    OptionSpec::count("rows_per_transaction", "1", "rows per INSERT, and thus per commit"),
    OptionSpec::count("numbers", "10000", "number of distinct values of the indexed column number"),
];

#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) key: Key,
    pub(super) tables: u64,
    pub(super) table_size: u64,
    pub(super) rows_per_transaction: u64,
    pub(super) numbers: u64,
}

/// What a key of type INT leaves room for.
const ROWS_MAX: u64 = 2_000_000_000;

impl Settings {
    pub(super) fn read(options: &Options) -> Result<Settings, OptionError> {
        let count = |name: &str, min, max| {
            let value = options.count(name);
            if (min..=max).contains(&value) {
                return Ok(value);
            }
            let reason = format!("`{value}` is not between {min} and {max}");
            Err(OptionError { name: name.to_owned(), reason })
        };
        Ok(Settings {
            key: match options.text("key") {
                "random-string" => Key::RandomString,
                _ => Key::Sequential,
            },
            tables: count("tables", 1, 1000)?,
            table_size: count("table_size", 0, ROWS_MAX)?,
            rows_per_transaction: count("rows_per_transaction", 1, 10_000)?,
            numbers: count("numbers", 1, ROWS_MAX)?,
        })
    }
}
