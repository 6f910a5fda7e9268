//! Dyno's own SQL in each dialect, by folder, and what is done with it on any server.

use dyno_workload::{Connection, Dialect, ErrorClass, NamedRows, StatementError, TextRows};

use crate::error::StatementResult as Result;
use crate::sql::{Identity, SqlSpec, first_cell};

/// The dialect of what runs inside Dyno's own process; where there is no SQL, it means nothing.
pub(crate) const EMBEDDED: Dialect = Dialect::Sqlite;

pub(crate) const NO_EMBEDDED_COST: &str = "SQLite counts by statement, not by connection";

pub(crate) const ALL: &[&SqlSpec] = &[
    &crate::sqlite::sql::SQL,
    #[cfg(feature = "servers")]
    &crate::mysql::sql::SQL,
    #[cfg(feature = "servers")]
    &crate::postgresql::sql::SQL,
    #[cfg(feature = "servers")]
    &crate::clickhouse::sql::SQL,
];

pub(crate) fn sql_of(dialect: Dialect) -> &'static SqlSpec {
    ALL.iter().find(|sql| sql.dialect == dialect).expect("each dialect has a folder: a test")
}

/// Runs a statement with settings of Dyno's own. Where a pooler may stand before the server, they come and go with the
/// statement, in one message: the session is another client's next. Where a session stays Dyno's, settings are left to
/// whoever opened it.
pub(crate) fn within(
    connection: &mut dyn Connection,
    settings: &[&str],
    sql: &str,
) -> Result<NamedRows> {
    let Some(in_one_message) = sql_of(connection.dialect()).within else {
        return connection.query_named(sql);
    };
    let result = connection.query_named(&in_one_message(settings, sql));
    if let Err(error) = &result
        && !error.class.loses_connection()
    {
        // The first error is the one to report.
        let _ = connection.query("ROLLBACK");
    }
    result
}

/// Where no user can put functions or operators, so that only the server's own are found.
pub(crate) fn ask(connection: &mut dyn Connection, sql: &str) -> Result<TextRows> {
    ask_named(connection, sql).map(|answer| answer.rows)
}

pub(crate) fn ask_named(connection: &mut dyn Connection, sql: &str) -> Result<NamedRows> {
    let guard = sql_of(connection.dialect()).guard;
    within(connection, guard, sql)
}

/// What runs code of other users if it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OfOthers {
    /// The quoted name, with schema, of what would be read.
    pub(crate) first: String,
    /// What is read with it, or itself, and who can have put code into its definition.
    table: String,
    owner: String,
}

impl OfOthers {
    /// From an answer to [`SqlSpec::tables_of_others`].
    pub(crate) fn all(rows: TextRows) -> Vec<OfOthers> {
        let one = |row: Vec<Option<String>>| {
            let mut cells = row.into_iter().flatten();
            Some(OfOthers { first: cells.next()?, table: cells.next()?, owner: cells.next()? })
        };
        rows.into_iter().filter_map(one).collect()
    }

    /// Tables and their owners, for a message; none if there are none.
    fn named(all: &[OfOthers]) -> Option<String> {
        let mut texts: Vec<String> =
            all.iter().map(|one| format!("`{}` of `{}`", one.table, one.owner)).collect();
        texts.sort();
        texts.dedup();
        (!texts.is_empty()).then(|| crate::catalog::some_of(&texts))
    }

    /// Why these are not read, and what to do.
    pub(crate) fn refusal(all: &[OfOthers]) -> Option<String> {
        let named = OfOthers::named(all)?;
        Some(format!(
            "reading {named}, or changing rows there, could run functions of their owners with the privileges of \
             Dyno's user (expressions of indexes, constraints, policies, triggers); connect as the owner, make this \
             user or a superuser the owner (ALTER TABLE … OWNER TO), or drop the triggers"
        ))
    }
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
            Ok(rows) => first_cell(rows),
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
    let Some(statements) = sql_of(connection.dialect()).digest else { return Ok(None) };
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

    /// Where a statement brings its settings along, none of them is the session's.
    #[test]
    fn settings_do_not_outlive_their_statement() {
        for sql in ALL {
            let Some(within) = sql.within else {
                assert!(sql.guard.is_empty(), "{:?}", sql.dialect);
                continue;
            };
            let mut settings = [sql.guard, sql.probe_session].concat();
            #[cfg(feature = "servers")]
            settings.extend(
                sql.counted
                    .iter()
                    .filter_map(|one| one.guard.as_ref())
                    .flat_map(|one| one.settings),
            );
            assert!(settings.iter().all(|one| one.starts_with("SET LOCAL ")), "{settings:?}");
            let expected = "BEGIN; SET LOCAL a = 1; SET LOCAL b = 2; SELECT 1 -- all\n; COMMIT";
            let given = ["SET LOCAL a = 1", "SET LOCAL b = 2"];
            assert_eq!(within(&given, "SELECT 1 -- all"), expected);
        }
    }

    #[test]
    fn what_dyno_made_is_marked_alike_wherever_it_is_looked_for() {
        for sql in ALL {
            if sql.catalog.routines.is_some() {
                let contents = sql.catalog.contents.unwrap_or_default();
                assert!(contents.contains(dyno_workload::TABLE_MARK), "{:?}", sql.dialect);
            }
        }
    }

    #[test]
    fn tables_of_others_are_named_once_and_with_what_to_do() {
        let row = |first: &str| {
            [first, "public.orders", "app"].map(|cell| Some(cell.to_owned())).to_vec()
        };
        let found = OfOthers::all(vec![row("public.orders"), row("public.seen"), vec![None]]);
        assert_eq!(found.len(), 2);
        let why = OfOthers::refusal(&found).unwrap();
        assert!(
            why.starts_with("reading `public.orders` of `app`, or changing rows there, could run"),
            "{why}"
        );
        assert!(why.contains("connect as the owner"), "{why}");
        assert_eq!(OfOthers::refusal(&[]), None);
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
