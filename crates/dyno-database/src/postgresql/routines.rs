//! Functions and operators that other users have created where names are looked up: they would be
//! used instead of the server's own, and would run with Dyno's rights.
//!
//! Statements name tables without a schema, as the original programs do, so the schema of the
//! tables is searched for functions and operators as well. PostgreSQL takes the one whose types fit
//! best, whatever the schema (documentation, 10.2 and 10.3): a user's own `varchar = varchar` wins
//! over `text = text`.

use dyno_workload::{Connection, StatementError};

use super::connection::PgConnection;
use crate::catalog::ask;

/// How many of them a message names.
const NAMED_MAX: usize = 5;

/// Refuses a catalog in whose schemas others than superusers and Dyno's own user have made
/// operators, or functions that are called like the server's own or like Dyno's procedures.
pub(super) fn check(connection: &mut PgConnection) -> Result<(), String> {
    let found = traps(connection).map_err(|error| error.to_string())?;
    if found.is_empty() {
        return Ok(());
    }
    let more = match found.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let named = found[..found.len().min(NAMED_MAX)].join(", ");
    Err(connection.shown(&format!(
        "the database holds what would run with the rights of Dyno's user in place of the server's \
         own functions and operators ({named}{more}); drop that, or give Dyno a database of its own"
    )))
}

fn traps(connection: &mut PgConnection) -> Result<Vec<String>, StatementError> {
    let path = "SELECT pg_catalog.unnest(pg_catalog.current_schemas(false))";
    let literal = |name: String| format!("'{}'", name.replace('\'', "''"));
    let schemas: Vec<String> =
        connection.query(path)?.into_iter().flatten().flatten().map(literal).collect();
    if schemas.is_empty() {
        return Ok(Vec::new());
    }
    let schemas = schemas.join(", ");
    let sql = format!(
        "WITH s AS (SELECT oid FROM pg_namespace WHERE nspname IN ({schemas})), \
         o AS (SELECT oid, rolname FROM pg_roles WHERE NOT rolsuper AND rolname <> current_user) \
         SELECT 'the function ' || proname || ' of ' || rolname FROM pg_proc p \
         JOIN o ON o.oid = proowner WHERE pronamespace IN (SELECT oid FROM s) \
         AND (proname LIKE 'dyno\\_%' OR proname IN (SELECT proname FROM pg_proc \
         WHERE pronamespace = 'pg_catalog'::regnamespace)) \
         UNION SELECT 'the operator ' || oprname || ' of ' || rolname FROM pg_operator \
         JOIN o ON o.oid = oprowner WHERE oprnamespace IN (SELECT oid FROM s) ORDER BY 1"
    );
    Ok(ask(connection, &sql)?.into_iter().flatten().flatten().collect())
}
