//! One SQLite file of a run, for queries.
use std::path::{Path, PathBuf};
/// A query that failed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct QueryError(pub String);
/// Column names and rows as text.
pub struct QueryRows { /// Column names.
 pub columns: Vec<String>, /// Rows.
 pub rows: Vec<Vec<Option<String>>> }
/// Builds `record.sqlite` in the run's folder from its files, replacing an older one; returns its path.
pub fn build_database(_folder: &Path) -> Result<PathBuf, QueryError> { unimplemented!() }
/// Runs one query, read-only, on the run's SQLite file (built if missing or older than the run).
pub fn query(_folder: &Path, _sql: &str) -> Result<QueryRows, QueryError> { unimplemented!() }
