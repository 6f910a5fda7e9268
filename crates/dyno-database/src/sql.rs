//! Dyno's own SQL in a dialect: ownership of tables, sessions of probes, costs of statements. Each
//! dialect's folder has one value.

use dyno_workload::{Connection, Dialect, ErrorClass, StatementError};

use crate::dialects::sql_of;
use crate::error::StatementResult as Result;

/// The SQL of Dyno itself in one dialect.
pub(crate) struct SqlSpec {
    pub(crate) dialect: Dialect,
    pub(crate) catalog: CatalogSql,
    /// Settings of a probe's session; those that a version does not know are skipped.
    pub(crate) probe_session: &'static [&'static str],
    /// For sessions whose queries name no tables: finds only the server's own functions and
    /// operators. In a schema where other users may create some, one of theirs could fit better,
    /// and run with Dyno's rights.
    pub(crate) probe_guard: Option<&'static str>,
    /// Codes of errors for a right that the user lacks.
    pub(crate) no_right: &'static [&'static str],
    /// Why a statement must not run, as this server reads it differently from others.
    pub(crate) hidden_text: fn(&str) -> Option<&'static str>,
    /// How a statement of another session is cancelled; none if it cannot be.
    pub(crate) cancel: Option<CancelSql>,
    /// How a server is recognised under another address; none if it cannot be.
    pub(crate) identity: Option<Identity>,
    /// Statements whose answers depend on a table's rows alone, not on their order on disk.
    pub(crate) digest: Option<fn(table: &str) -> Vec<String>>,
    /// How the statements are read that the server has counted; none if it counts none.
    #[cfg(feature = "servers")]
    pub(crate) counted: Option<crate::counted::CountedSql>,
}

pub(crate) struct CancelSql {
    /// Asks for a number that names the session it is sent in.
    pub(crate) session: &'static str,
    pub(crate) cancel: fn(session: u64) -> String,
}

pub(crate) enum Identity {
    /// Asks for what no two servers have in common.
    Answer(&'static str),
    /// Takes a named lock without waiting, and asks in another session whether it is taken: for servers without a
    /// distinguishing setting. Such locks belong to one server, even in a cluster.
    Lock { take: fn(name: &str) -> String, is_taken: fn(name: &str) -> String },
}

/// None if it cannot be determined. `token` is a random text of letters and digits, for products that
/// need a lock. Fails if a connection is lost.
pub fn is_same_server(
    one: &mut dyn Connection,
    other: &mut dyn Connection,
    token: &str,
) -> Result<Option<bool>> {
    let ask = |connection: &mut dyn Connection, statement: &str| {
        let cell = match connection.query(statement) {
            Ok(rows) => crate::catalog::first_cell(rows),
            Err(error) if error.class.loses_connection() => return Err(error),
            Err(_) => None,
        };
        Ok(cell)
    };
    match &sql_of(one.dialect()).identity {
        None => Ok(None),
        Some(Identity::Answer(question)) => {
            let (first, second) = (ask(one, question)?, ask(other, question)?);
            Ok(first.zip(second).map(|(first, second)| first == second))
        }
        Some(Identity::Lock { take, is_taken }) => {
            let name = format!("dyno-{token}");
            if ask(one, &take(&name))?.as_deref() != Some("1") {
                return Ok(None);
            }
            Ok(ask(other, &is_taken(&name))?.map(|found| found == "1"))
        }
    }
}

/// Number and sum of checksums of a table's rows, whatever their order on disk; none if the product has
/// no statement for it. Fails if the table cannot be read.
pub fn digest(connection: &mut dyn Connection, table: &str) -> Result<Option<String>> {
    let Some(statements) = sql_of(connection.dialect()).digest else {
        return Ok(None);
    };
    let mut cells = Vec::new();
    for statement in statements(table) {
        for row in connection.query(&statement)? {
            cells.extend(row.into_iter().map(|cell| cell.unwrap_or_default()));
        }
    }
    Ok(Some(cells.join(" ")))
}

/// Quoted names from `list`, safe in statements, also for another server. Fails if the server does not answer, or lists
/// more than a name: a host could otherwise run any statement on another host's server.
pub(crate) fn listed_tables(connection: &mut dyn Connection, list: &str) -> Result<Vec<String>> {
    let tables: Vec<String> = connection.query(list)?.into_iter().flatten().flatten().collect();
    let quote = connection.dialect().name_quote();
    match tables.iter().find(|table| !is_one_name(table, quote)) {
        None => Ok(tables),
        Some(table) => {
            let message = connection.shown(&format!("the server lists a table `{table}`"));
            let message = format!("{message}, which is no name");
            Err(StatementError::new(ErrorClass::Refused, "name", message))
        }
    }
}

/// Whether a text is one name: between quotes, in which a quote is doubled, or of such letters that it needs none.
fn is_one_name(text: &str, quote: char) -> bool {
    let Some(inner) = text.strip_prefix(quote) else {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        return text.starts_with(|c: char| !c.is_ascii_digit()) && text.chars().all(is_plain);
    };
    let Some(inner) = inner.strip_suffix(quote) else { return false };
    let doubled = String::from_iter([quote, quote]);
    !inner.is_empty() && !inner.replace(&doubled, "").contains([quote, '\0'])
}

/// Names this connection's session for [`cancel`]; none if the product cannot.
pub fn session(connection: &mut dyn Connection) -> Option<u64> {
    let sql = sql_of(connection.dialect()).cancel.as_ref()?;
    let rows = connection.query(sql.session).ok()?;
    rows.first()?.first()?.as_ref()?.parse().ok()
}

/// Of the same user's session. Fails if it cannot be cancelled, or has ended.
pub fn cancel(connection: &mut dyn Connection, session: u64) -> Result<()> {
    match &sql_of(connection.dialect()).cancel {
        Some(sql) => connection.query(&(sql.cancel)(session)).map(drop),
        None => Ok(()),
    }
}

pub(crate) struct CatalogSql {
    /// A stable text for each object that is not the system's; `None` if no other user can add any.
    pub(crate) contents: Option<&'static str>,
    /// Asks for the schema that unqualified names mean; none if there are no schemas.
    pub(crate) schema: Option<&'static str>,
    /// By schema: name, kind, and `mine` if the connection's user owns it.
    pub(crate) relations: fn(schema: &str) -> String,
    /// By the notes' qualified name: their definition, who made them, and the connection's user.
    pub(crate) notes: fn(name: &str) -> String,
    /// The statement before the notes are rewritten; `None` if a view can be replaced.
    pub(crate) before_notes: Option<&'static str>,
    pub(crate) create_view: &'static str,
    pub(crate) drop_view: &'static str,
    pub(crate) text_cast: &'static str,
    /// Put before and after a query so that no user's functions or operators run in it.
    pub(crate) guard: Option<(&'static str, &'static str)>,
    /// The meaning of notes without a definition; `None` if it has none.
    pub(crate) no_definition: Option<&'static str>,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn only_one_name_stands_in_a_statement() {
        let check = |text: &str, quote: char, expected: bool| {
            assert_eq!(is_one_name(text, quote), expected, "{text}");
        };
        for good in ["sbtest1", "_a", "\"A b\"", "\"a\"\"b\"", "\"; DROP TABLE x\"", "\"\"\"\""] {
            check(good, '"', true);
        }
        for good in ["`a`", "`a``b`", "`; --`"] {
            check(good, '`', true);
        }
        let bad =
            ["", "1a", "A", "a b", "a;b", "\"", "\"\"", "\"a", "\"a\"b\"", "\"a\"; \"", "\"\"\""];
        bad.iter().for_each(|bad| check(bad, '"', false));
        for bad in ["``", "`a`;DROP TABLE `b`", "\"a\"", "`a``", "`a\0`"] {
            check(bad, '`', false);
        }
    }

    #[test]
    fn what_a_server_lists_is_no_statement_for_another_one() {
        let honest: dyno_workload::Connector = Arc::new(|| {
            let mut connection = crate::sqlite::connection_in_memory().expect("it is made");
            connection.query("CREATE TABLE a (id INTEGER)").expect("it is made");
            Ok(connection)
        });
        let compare = |list: &str| crate::tables_that_differ(list, &honest, &honest);
        assert_eq!(compare("SELECT 'a'"), Ok((Vec::new(), 1)));
        let forged = "a; COPY a TO PROGRAM 'x\u{1b}'";
        let error = compare(&format!("SELECT '{}'", forged.replace('\'', "''"))).unwrap_err();
        assert!(error.contains("which is no name") && error.contains("TO PROGRAM"), "{error}");
        assert!(!error.contains('\u{1b}'), "{error:?}");
    }
}
