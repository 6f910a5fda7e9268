//! Whose tables are in a catalog: Dyno drops only what it made.
//!
//! Dyno notes the tables it makes in a table of its own, `dyno_tables`, before it makes them. A
//! catalog without tables is claimed by making that table; one with the table is Dyno's, and the
//! tables noted there may be dropped; any other is refused.
//!
//! A note is written before its table is made and removed after its table is dropped, so a run
//! that is killed in between leaves a note without a table, and never a table without a note.

use dyno_workload::{Connection, Dialect, StatementError};

/// A catalog that may not be used.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// It holds tables that Dyno did not make.
    #[error("{0}")]
    Foreign(String),
    /// A table's name is not a plain one (letters, digits and `_`, at most 63 of them), so that it
    /// cannot be written the same way in every dialect.
    #[error("{0}")]
    Name(String),
    /// The server refused a statement.
    #[error(transparent)]
    Statement(#[from] StatementError),
}

/// The table in which Dyno notes what it made.
const NOTES: &str = "dyno_tables";

/// Longest name of a table: PostgreSQL cuts longer ones.
const NAME_LEN_MAX: usize = 63;

/// Tables named in a refusal, at most.
const NAMED_MAX: usize = 5;

/// Claims the connection's catalog. With `allow_foreign_tables`, tables that Dyno did not make stay
/// and are not touched.
pub fn claim_catalog(
    connection: &mut dyn Connection,
    allow_foreign_tables: bool,
) -> Result<(), CatalogError> {
    let tables = existing_tables(connection)?;
    let notes = notes(connection, &tables)?;
    let foreign: Vec<&String> =
        tables.iter().filter(|table| !is_same(table, NOTES) && !contains(&notes, table)).collect();
    if !foreign.is_empty() && !allow_foreign_tables {
        return Err(CatalogError::Foreign(foreign_message(&foreign)));
    }
    make_notes(connection, &tables)
}

/// Notes tables that are about to be made; refuses names that exist and are not noted as Dyno's.
pub fn note_tables(connection: &mut dyn Connection, tables: &[String]) -> Result<(), CatalogError> {
    for table in tables {
        check_name(table)?;
    }
    let existing = existing_tables(connection)?;
    let noted = notes(connection, &existing)?;
    for table in tables {
        if is_same(table, NOTES) || (contains(&existing, table) && !contains(&noted, table)) {
            return Err(CatalogError::Foreign(format!(
                "the catalog holds a table `{table}` that Dyno did not make and will not replace; \
                 give Dyno a catalog of its own, or rename that table"
            )));
        }
    }
    make_notes(connection, &existing)?;
    let mut made_order = last_order(connection)?;
    let mut new: Vec<&String> = Vec::new();
    for table in tables {
        if contains(&noted, table) || new.iter().any(|other| is_same(other, table)) {
            continue;
        }
        made_order += 1;
        connection.query(&format!(
            "INSERT INTO {NOTES} (made_order, table_name) VALUES ({made_order}, '{table}')"
        ))?;
        new.push(table);
    }
    Ok(())
}

/// Drops the tables that are noted as Dyno's, and the notes.
///
/// The last made is dropped first, because it may refer to those made before it. Never cascades:
/// what others have built upon a table of Dyno's makes the server refuse, and stays.
pub fn drop_claimed_tables(connection: &mut dyn Connection) -> Result<(), CatalogError> {
    let existing = existing_tables(connection)?;
    if !contains(&existing, NOTES) {
        return Ok(());
    }
    for table in notes(connection, &existing)?.iter().rev() {
        // The notes are in a table that anybody may have written to.
        check_name(table)?;
        connection.query(&format!("DROP TABLE IF EXISTS {table}"))?;
        connection.query(&format!("DELETE FROM {NOTES} WHERE table_name = '{table}'"))?;
    }
    connection.query(&format!("DROP TABLE {NOTES}"))?;
    Ok(())
}

/// The tables and views of the catalog, without the product's own. Those outside the schema that
/// unqualified names mean (PostgreSQL only) come with their schema: `other.table`.
fn existing_tables(connection: &mut dyn Connection) -> Result<Vec<String>, StatementError> {
    let sql = match connection.dialect() {
        Dialect::MySql => {
            "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() \
             ORDER BY 1"
        }
        // Not information_schema, which hides what the user has no right to.
        Dialect::PostgreSql => {
            "SELECT CASE WHEN n.nspname = current_schema() THEN c.relname::text \
             ELSE n.nspname || '.' || c.relname END FROM pg_catalog.pg_class c \
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname <> 'information_schema' \
             AND n.nspname NOT LIKE 'pg\\_%' ORDER BY 1"
        }
        Dialect::Sqlite => {
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') \
             AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY 1"
        }
    };
    Ok(first_column(connection.query(sql)?))
}

/// The tables noted as Dyno's, the first made first.
fn notes(
    connection: &mut dyn Connection,
    existing: &[String],
) -> Result<Vec<String>, StatementError> {
    if !contains(existing, NOTES) {
        return Ok(Vec::new());
    }
    let sql = format!("SELECT table_name FROM {NOTES} ORDER BY made_order");
    Ok(first_column(connection.query(&sql)?))
}

fn make_notes(connection: &mut dyn Connection, existing: &[String]) -> Result<(), CatalogError> {
    if !contains(existing, NOTES) {
        // The key is the number: not every storage engine takes text with every collation as a key.
        connection.query(&format!(
            "CREATE TABLE {NOTES} (made_order INTEGER NOT NULL PRIMARY KEY, \
             table_name VARCHAR({NAME_LEN_MAX}) NOT NULL)"
        ))?;
    }
    Ok(())
}

fn last_order(connection: &mut dyn Connection) -> Result<u64, CatalogError> {
    let rows = connection.query(&format!("SELECT COALESCE(MAX(made_order), 0) FROM {NOTES}"))?;
    let text = first_column(rows).pop().unwrap_or_default();
    text.parse().map_err(|_| {
        CatalogError::Foreign(format!(
            "the table `{NOTES}` of this catalog is not as Dyno makes it (its last `made_order` is \
             `{text}`); give Dyno a catalog of its own"
        ))
    })
}

fn first_column(rows: dyno_workload::TextRows) -> Vec<String> {
    rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect()
}

/// Refuses names that would have to be quoted.
fn check_name(name: &str) -> Result<(), CatalogError> {
    let is_plain = name.len() <= NAME_LEN_MAX
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_plain {
        return Ok(());
    }
    Err(CatalogError::Name(format!(
        "`{name}` cannot be a table of Dyno's: a name has at most {NAME_LEN_MAX} letters, digits \
         and `_`, and begins with a letter"
    )))
}

/// Whether two names may mean the same table: servers differ in whether case counts.
fn is_same(left: &str, right: &str) -> bool {
    left.eq_ignore_ascii_case(right)
}

fn contains(names: &[String], name: &str) -> bool {
    names.iter().any(|other| is_same(other, name))
}

fn foreign_message(foreign: &[&String]) -> String {
    let named: Vec<&str> = foreign.iter().take(NAMED_MAX).map(|name| name.as_str()).collect();
    let more = match foreign.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    format!(
        "the catalog holds tables that Dyno did not make ({}{more}); give Dyno a catalog of its \
         own, or allow foreign tables, which Dyno then leaves alone",
        named.join(", ")
    )
}

#[cfg(test)]
mod tests;
