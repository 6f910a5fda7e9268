//! Checked options of the key-order workload.

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
    OptionSpec::count("tables", "1", "number of tables").within(1, 1000),
    OptionSpec::count("table_size", "0", "rows in each table before the first insert")
        .within(0, ROWS_MAX),
    OptionSpec::count("rows_per_transaction", "1", "rows per INSERT, and thus per commit")
        .within(1, 10_000),
    OptionSpec::count("numbers", "10000", "number of distinct values of the indexed column number")
        .within(1, ROWS_MAX),
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
        Ok(Settings {
            key: options.meaning("key", [Key::Sequential, Key::RandomString]),
            tables: options.in_range("tables")?,
            table_size: options.in_range("table_size")?,
            rows_per_transaction: options.in_range("rows_per_transaction")?,
            numbers: options.in_range("numbers")?,
        })
    }
}
