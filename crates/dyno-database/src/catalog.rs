//! Ownership of the tables in a catalog: Dyno drops only what it can prove it created.
//!
//! Before it makes tables, Dyno notes them in a view of its own: `dyno_tables`, which selects one
//! text with their names. Only its definition counts, which only its owner can change, and the
//! server reports the owner (see each folder's `sql`). So a user who may create things in the
//! catalog can neither forge a note nor have anything run with Dyno's rights. Another user's
//! `dyno_tables` is refused.
//!
//! Making that view claims a catalog without tables. A catalog with the view is Dyno's: noted
//! tables may be dropped if they are ordinary tables of Dyno's user. Others are refused. A note is
//! written before its table is made and removed after it is dropped: a killed run may leave a note
//! without a table, never a table without a note.

use std::collections::BTreeSet;

use dyno_workload::{Connection, StatementError};

use crate::dialects::{ask, sql_of};
use crate::error::Telling;
use crate::sql::{CatalogSql, first_cell};

#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// It holds tables that Dyno did not make.
    #[error("{0}")]
    Foreign(String),
    /// Not letters, digits and `_`, at most 63 of them: not written the same way in every dialect.
    #[error("{0}")]
    Name(String),
    #[error(transparent)]
    Statement(#[from] StatementError),
}

impl Telling for CatalogError {}

/// The view in which Dyno notes what it made.
const NOTES: &str = "dyno_tables";

/// The prefix of the names in it, so that an empty list is not the name of a table either.
const TITLE: &str = "tables of Dyno";

/// Longest name of a table that no server truncates.
const NAME_LEN_MAX: usize = 63;

/// Longest list of tables that is read, in bytes: far more than any workload makes.
const NOTED_MAX: usize = 1 << 20;

const NAMED_MAX: usize = 5;

/// With `allow_existing_tables`, tables that Dyno did not make stay untouched.
pub fn claim_catalog(
    connection: &mut dyn Connection,
    allow_existing_tables: bool,
) -> Result<(), CatalogError> {
    let catalog = Catalog::look(connection)?;
    // A server may list hundreds of thousands, and note as many.
    let known = keys(catalog.noted.iter());
    let foreign: Vec<&str> = catalog.tables().filter(|name| !known.contains(&key(name))).collect();
    if !foreign.is_empty() && !allow_existing_tables {
        return Err(CatalogError::Foreign(connection.shown(&foreign_message(&foreign))));
    }
    // Notes without a table are of a run that was killed: another user may make one of that name.
    let noted: Vec<String> =
        catalog.noted.iter().filter(|name| catalog.has(name)).cloned().collect();
    catalog.write_notes(connection, &noted)
}

/// Notes tables that are about to be made; refuses names that exist and are not noted as Dyno's.
pub fn note_tables(connection: &mut dyn Connection, tables: &[String]) -> Result<(), CatalogError> {
    for table in tables {
        check_name(table)?;
    }
    let catalog = Catalog::look(connection)?;
    let mut noted = catalog.noted.clone();
    for table in tables {
        if is_same(table, NOTES) || (catalog.has(table) && !contains(&catalog.noted, table)) {
            let message = format!(
                "the database contains {} `{table}` that Dyno did not create and will not replace; \
                 give Dyno its own database, or rename it",
                catalog.kind_of(table)
            );
            return Err(CatalogError::Foreign(connection.shown(&message)));
        }
        if !contains(&noted, table) {
            noted.push(table.clone());
        }
    }
    catalog.write_notes(connection, &noted)
}

/// Notes the tables to be made, and drops those of the same names from an earlier run of Dyno (kept
/// by `keep_tables`, or killed), the last one first.
pub fn replace_tables(
    connection: &mut dyn Connection,
    tables: &[String],
) -> Result<(), CatalogError> {
    if !connection.speaks_sql() {
        return Ok(());
    }
    note_tables(connection, tables)?;
    let catalog = Catalog::look(connection)?;
    for table in tables.iter().rev() {
        if catalog.is_ours(table) {
            connection.query(&format!("DROP TABLE {}", catalog.qualified(table)))?;
        }
    }
    Ok(())
}

/// Drops the routines that these statements make, if an earlier run of Dyno left them: they are this user's, and bear the
/// mark of one that Dyno makes. Others of these names are refused.
pub fn replace_routines<'s>(
    connection: &mut dyn Connection,
    statements: impl Iterator<Item = &'s String>,
) -> Result<(), CatalogError> {
    let names: Vec<String> = statements.filter_map(|sql| routine_of(sql)).collect();
    let sql = catalog_sql(connection);
    let (Some(routines), false) = (sql.routines, names.is_empty()) else { return Ok(()) };
    names.iter().try_for_each(|name| check_name(name))?;
    let schema = match sql.schema {
        Some(ask) => first_cell(connection.query(ask)?),
        None => None,
    };
    let names: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    let found = ask(connection, &routines(&schema.unwrap_or_default(), &names.join(", ")))?;
    let found: Vec<Vec<String>> = (found.into_iter())
        .map(|row| row.into_iter().map(Option::unwrap_or_default).collect())
        .collect();
    for row in &found {
        let [what, maker, is_ours] = &row[..] else { continue };
        if is_ours != "1" {
            return Err(CatalogError::Foreign(connection.shown(&format!(
                "the database contains {what} of the user `{maker}`, which Dyno did not create in this form and \
                 will not replace; find out what it is and drop it, or give Dyno its own database"
            ))));
        }
    }
    found.iter().filter_map(|row| row.first()).try_for_each(|what| {
        connection.query(&format!("DROP {what}"))?;
        Ok(())
    })
}

/// The name of the routine that a statement of Dyno's makes.
fn routine_of(sql: &str) -> Option<String> {
    let rest =
        ["CREATE PROCEDURE ", "CREATE FUNCTION "].iter().find_map(|verb| sql.strip_prefix(verb))?;
    rest.split_once('(').map(|(name, _)| name.to_owned())
}

/// Drops noted tables and the notes. The last created goes first, as it may refer to earlier ones.
/// Never cascades: a table that other objects depend on stays, as does anything with a noted name
/// that is not an ordinary table of Dyno's user.
pub fn drop_claimed_tables(connection: &mut dyn Connection) -> Result<(), CatalogError> {
    let catalog = Catalog::look(connection)?;
    if !catalog.has_notes {
        return Ok(());
    }
    let mut left = catalog.noted.clone();
    while let Some(table) = left.last() {
        let sql = format!("DROP TABLE IF EXISTS {}", catalog.qualified(table));
        if catalog.is_ours(table)
            && let Err(error) = connection.query(&sql)
        {
            // What was dropped is no longer Dyno's, and the first error is the one to report.
            if !error.class.loses_connection() {
                let _ = catalog.write_notes(connection, &left);
            }
            return Err(error.into());
        }
        left.pop();
    }
    let drop = catalog.sql.drop_view;
    connection.query(&format!("{drop} {}", catalog.qualified(NOTES)))?;
    Ok(())
}

/// A stable text for each object, without the system's and Dyno's own routines (`dyno_…`).
pub(crate) fn contents(connection: &mut dyn Connection) -> Result<Vec<String>, StatementError> {
    // If there is none, the catalog is Dyno's own.
    let Some(sql) = catalog_sql(connection).contents else { return Ok(Vec::new()) };
    Ok(ask(connection, sql)?.into_iter().flatten().flatten().collect())
}

fn catalog_sql(connection: &dyn Connection) -> &'static CatalogSql {
    &sql_of(connection.dialect()).catalog
}

struct Relation {
    /// Outside the schema that unqualified names mean with its schema: `other.table`.
    name: String,
    /// In words: `table`, `view`, `sequence`.
    kind: String,
    /// Whether it is an ordinary table of the user whose connection it is.
    is_ours: bool,
    /// Whether it counts as an object of others in the catalog: an index does not.
    is_content: bool,
}

struct Catalog {
    sql: &'static CatalogSql,
    // The schema that unqualified names mean, quoted, with its dot; empty if there are no schemas.
    schema: String,
    relations: Vec<Relation>,
    // The keys of the names of all, and of those that are not Dyno's user's own tables.
    names: BTreeSet<String>,
    not_ours: BTreeSet<String>,
    // Tables noted as Dyno's, the first made first.
    noted: Vec<String>,
    has_notes: bool,
}

impl Catalog {
    fn of(sql: &'static CatalogSql, schema: String, relations: Vec<Relation>) -> Catalog {
        let names = keys(relations.iter().map(|one| &one.name));
        let not_ours = relations.iter().filter(|one| !one.is_ours);
        let not_ours = keys(not_ours.map(|one| &one.name));
        Catalog { sql, schema, relations, names, not_ours, noted: Vec::new(), has_notes: false }
    }

    /// Reads the catalog without executing anything in it.
    fn look(connection: &mut dyn Connection) -> Result<Catalog, CatalogError> {
        let sql = catalog_sql(connection);
        let name = match sql.schema {
            Some(ask) => first_cell(connection.query(ask)?),
            None => None,
        };
        let quoted = |name: &String| format!("\"{}\".", name.replace('"', "\"\""));
        let schema = name.as_ref().map_or(String::new(), quoted);
        let mut relations: Vec<Relation> = Vec::new();
        for row in ask(connection, &(sql.relations)(&name.unwrap_or_default()))? {
            let mut cells = row.into_iter().map(Option::unwrap_or_default);
            // A server that answers nothing of the kind (the null ones) has no tables.
            let (Some(name), Some(kind), Some(owner)) = (cells.next(), cells.next(), cells.next())
            else {
                continue;
            };
            let is_table = matches!(kind.as_str(), "table" | "BASE TABLE");
            let is_ours = is_table && owner == "mine";
            let is_content = !matches!(kind.as_str(), "index" | "type" | "sequence" | "trigger");
            let kind = if kind == "BASE TABLE" { "table".to_owned() } else { kind.to_lowercase() };
            relations.push(Relation { name, kind, is_ours, is_content });
        }
        let mut catalog = Catalog::of(sql, schema, relations);
        if catalog.has(NOTES) {
            catalog.noted = read_notes(connection, &catalog)?;
            catalog.has_notes = true;
        }
        Ok(catalog)
    }

    /// Names of tables, views and the like, without the notes.
    fn tables(&self) -> impl Iterator<Item = &str> {
        let all = self.relations.iter().filter(|one| one.is_content);
        all.map(|one| one.name.as_str()).filter(|name| !is_same(name, NOTES))
    }

    fn has(&self, name: &str) -> bool {
        self.names.contains(&key(name))
    }

    /// Whether there is an ordinary table of this name of Dyno's own user, and nothing else that the name may mean.
    fn is_ours(&self, name: &str) -> bool {
        self.has(name) && !self.not_ours.contains(&key(name))
    }

    /// The kind of the object of this name, with its article.
    fn kind_of(&self, name: &str) -> String {
        let found = self.relations.iter().find(|one| is_same(&one.name, name));
        let kind = found.map_or("table", |one| one.kind.as_str());
        let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
        format!("{article} {kind}")
    }

    /// A plain name for a statement, independent of the search path.
    fn qualified(&self, name: &str) -> String {
        format!("{}{name}", self.schema)
    }

    fn write_notes(
        &self,
        connection: &mut dyn Connection,
        names: &[String],
    ) -> Result<(), CatalogError> {
        if self.has_notes && *names == self.noted {
            return Ok(());
        }
        // The names are plain ones: they need no quoting.
        let text = format!("{TITLE}: {}", names.join(" "));
        let notes = self.qualified(NOTES);
        let CatalogSql { before_notes, create_view, text_cast, .. } = self.sql;
        if let Some(before) = before_notes {
            connection.query(before)?;
        }
        let create = format!("{create_view} {notes} AS SELECT '{text}'{text_cast} AS noted");
        connection.query(&create).map_err(|error| {
            let message = format!(
                "{} (Dyno notes the tables that it creates in the view `{NOTES}`, and needs the \
                 privilege to create it)",
                error.message
            );
            StatementError { message, ..error }
        })?;
        Ok(())
    }
}

/// The tables noted as Dyno's, the first made first; refuses notes that another user made.
fn read_notes(
    connection: &mut dyn Connection,
    catalog: &Catalog,
) -> Result<Vec<String>, CatalogError> {
    let rows = ask(connection, &(catalog.sql.notes)(&catalog.qualified(NOTES)))?;
    let foreign = |why: String| {
        CatalogError::Foreign(connection.shown(&format!(
            "the database contains {} `{NOTES}` {why}, so Dyno cannot know what it may drop; find \
             out what it is and drop it, or give Dyno its own database",
            catalog.kind_of(NOTES)
        )))
    };
    let mut cells = rows.into_iter().next().unwrap_or_default().into_iter();
    let definition = cells.next().flatten().unwrap_or_default();
    let (maker, user) = (cells.next().flatten(), cells.next().flatten());
    if maker != user {
        let (maker, user) = (maker.unwrap_or_default(), user.unwrap_or_default());
        return Err(foreign(format!("of the user `{maker}`, and Dyno is connected as `{user}`")));
    }
    let text = definition.find('\'').zip(definition.rfind('\''));
    let text = text.and_then(|(start, end)| definition.get(start + 1..end));
    let text = text.filter(|text| text.len() <= NOTED_MAX);
    let names = text.and_then(|text| text.strip_prefix(TITLE)?.strip_prefix(':'));
    let reason = catalog
        .sql
        .no_definition
        .filter(|_| definition.is_empty())
        .unwrap_or("that Dyno did not create in this form");
    let names = names.ok_or_else(|| foreign(reason.to_owned()))?;
    let names: Vec<String> = names.split_whitespace().map(str::to_owned).collect();
    match names.iter().try_for_each(|name| check_name(name)) {
        Ok(()) => Ok(names),
        Err(_) => Err(foreign(reason.to_owned())),
    }
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
        "`{name}` cannot be the name of one of Dyno's tables: such a name has at most \
         {NAME_LEN_MAX} letters, digits and `_`, and begins with a letter"
    )))
}

/// Whether two names may mean the same table: servers differ in whether case counts.
fn is_same(left: &str, right: &str) -> bool {
    left.eq_ignore_ascii_case(right)
}

/// What names have in common that may mean the same table.
fn key(name: &str) -> String {
    name.to_ascii_lowercase()
}

fn keys<'n>(names: impl Iterator<Item = &'n String>) -> BTreeSet<String> {
    names.map(|name| key(name)).collect()
}

fn contains(names: &[String], name: &str) -> bool {
    names.iter().any(|other| is_same(other, name))
}

fn foreign_message(foreign: &[&str]) -> String {
    let named = some_of(foreign);
    format!(
        "the database contains tables that Dyno did not create ({named}); give Dyno its own \
         database, or allow them with `--allow-existing-tables` (in a study: \
         `allow_existing_tables = true`), and Dyno leaves them alone"
    )
}

/// The first of some names, and how many more there are.
pub(crate) fn some_of<T: AsRef<str>>(all: &[T]) -> String {
    let (named, more) = all.split_at(all.len().min(NAMED_MAX));
    let named = named.iter().map(T::as_ref).collect::<Vec<&str>>().join(", ");
    match more.len() {
        0 => named,
        n => format!("{named} and {n} more"),
    }
}

#[cfg(test)]
mod tests;
