//! Logical dumps: the tables of a database as a folder of text files, written and restored by several
//! connections at once. Products say how many connections see one state, and how rows are read and
//! stored ([`Dumping`]); folder, threads and the order of work are common.

mod folder;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod restore;
mod text;
mod write;

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use dyno_units::clean_text;
use serde::{Deserialize, Serialize};

pub use folder::{Dump, DumpedTable};
pub use restore::restore;
pub(crate) use text::{read_line, write_cell};
pub use write::{DumpOptions, dump};

use crate::Endpoint;
use crate::error::Telling;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DumpError(pub String);

impl DumpError {
    pub(crate) fn new(message: impl Into<String>) -> DumpError {
        DumpError(clean_text(&message.into()))
    }

    pub(crate) fn at(self, place: &str) -> DumpError {
        DumpError(format!("{}: {}", clean_text(place), self.0))
    }
}

impl<E: Telling> From<E> for DumpError {
    fn from(error: E) -> DumpError {
        DumpError(error.to_string())
    }
}

/// What was moved so far; read while others count.
#[derive(Debug, Default)]
pub struct Moved {
    rows: AtomicU64,
    bytes: AtomicU64,
}

impl Moved {
    /// Rows of the files that are complete.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn add_rows(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }

    fn add_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// How the servers of a protocol are dumped and restored.
pub trait Dumping: Send + Sync {
    /// Readers that see the same state, and tables. Fails if the server refuses something.
    fn begin(&self, endpoint: &Endpoint, wanted: &Wanted<'_>) -> Result<Snapshot, DumpError>;

    /// Fails if a table's statements do anything but make that table, or refer to tables other than these.
    fn check(&self, table: &Table, tables: &BTreeSet<&str>) -> Result<(), DumpError>;

    /// Opens a connection to restore. Fails if the server refuses something.
    fn loader(&self, endpoint: &Endpoint) -> Result<Box<dyn Loader>, DumpError>;
}

pub struct Wanted<'a> {
    /// Names of tables; all of the database if there are none.
    pub tables: &'a [String],
    /// Connections that read at once, at least 1.
    pub n_readers: usize,
    /// Rows of a file, about.
    pub rows_per_file: u64,
}

/// One state of a database, and who reads it.
pub struct Snapshot {
    pub version: String,
    pub tables: Vec<TableSource>,
    /// At least one.
    pub readers: Vec<Box<dyn PieceReader>>,
    /// What the dump lacks, in sentences without a full stop.
    pub notes: Vec<String>,
}

pub struct TableSource {
    pub table: Table,
    /// Bytes of its rows, estimated.
    pub bytes: u64,
    /// Conditions that choose its rows, each row once; an empty one chooses all.
    pub pieces: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    pub name: String,
    /// Those whose values are in the files, in their order.
    pub columns: Vec<Column>,
    /// Makes the table, without what the statements below add.
    pub create: String,
    /// To run when its rows are there: indexes that are built faster from all rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// To run when the rows of all tables are there: foreign keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_last: Vec<String>,
}

/// A column whose values are in a dump: those that are computed are not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    pub name: String,
    /// The product's name of its type: `bigint`.
    pub data_type: String,
}

pub trait PieceReader: Send {
    /// Passes lines to `sink`; returns their number. Fails as the server or `sink` does.
    fn read(
        &mut self,
        table: &Table,
        condition: &str,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), DumpError>,
    ) -> Result<u64, DumpError>;
}

pub trait Loader: Send {
    /// The number of its session, by which it is cancelled.
    fn session(&mut self) -> Option<u64>;

    /// Tables and views in the database.
    fn tables(&mut self) -> Result<Vec<String>, DumpError>;

    /// One after the other; fails with the first error.
    fn run(&mut self, statements: &[String]) -> Result<(), DumpError>;

    /// All rows or none; returns their number. Fails also if a row would be stored changed.
    fn load(&mut self, table: &Table, lines: &mut dyn io::Read) -> Result<u64, DumpError>;
}
