//! Whose tables are in a catalog: Dyno drops only what it made.
//!
//! Dyno notes the tables it makes in a table of its own, `dyno_tables`, before it makes them. A
//! catalog without tables is claimed by making that table; one with the table is Dyno's, and the
//! tables noted there may be dropped; any other is refused.

use dyno_workload::{Connection, StatementError};

/// A catalog that may not be used.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// It holds tables that Dyno did not make.
    #[error("{0}")]
    Foreign(String),
    /// The server refused a statement.
    #[error(transparent)]
    Statement(#[from] StatementError),
}

/// Claims the connection's catalog. With `allow_foreign_tables`, tables that Dyno did not make stay
/// and are not touched.
pub fn claim_catalog(
    _connection: &mut dyn Connection,
    _allow_foreign_tables: bool,
) -> Result<(), CatalogError> {
    unimplemented!()
}

/// Notes tables that are about to be made; refuses names that exist and are not noted as Dyno's.
pub fn note_tables(
    _connection: &mut dyn Connection,
    _tables: &[String],
) -> Result<(), CatalogError> {
    unimplemented!()
}

/// Drops the tables that are noted as Dyno's, and the notes.
pub fn drop_claimed_tables(_connection: &mut dyn Connection) -> Result<(), CatalogError> {
    unimplemented!()
}
