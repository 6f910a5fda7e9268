//! Other users' functions and operators where names are looked up: they could replace the server's
//! own, with Dyno's rights.
//!
//! Statements name tables without schema, as the original programs do, so functions and operators
//! are looked up in the tables' schema as well. PostgreSQL takes the best fit of types in any
//! schema (documentation, 10.2 and 10.3): a user's `varchar = varchar` wins over `text = text`.

use dyno_workload::{Connection, StatementError};

use super::sql::literal;
use crate::catalog::{ask, some_of};
use crate::error::StatementResult as Result;

/// Refuses a catalog in whose schemas anyone but superusers and Dyno's user made operators, functions
/// named like the server's or like Dyno's procedures, or types named like the server's functions
/// and not like its types (`count(k)` is a cast to a type `count` where no function fits exactly); and one with casts of
/// theirs, which belong to no schema. As a database's owner may set session
/// defaults, it also refuses a search path without the server's schema, and another role for a
/// superuser, who could be led out of it again.
pub(super) fn check(connection: &mut dyn Connection) -> Result<(), String> {
    let failed = |error: StatementError| error.to_string();
    if let Some(role) = other_role(connection).map_err(failed)? {
        return Err(connection.shown(&format!(
            "the server makes Dyno's user, a superuser, act as `{role}` (setting `role` of the \
             database or the user); functions of that role would get a superuser's privileges. Reset \
             the setting, or use a user that is not a superuser"
        )));
    }
    let schemas = match schemas(connection).map_err(failed)? {
        Ok(schemas) => schemas,
        Err(first) => {
            return Err(connection.shown(&format!(
                "the server looks for functions, operators and types in the schema `{first}` before \
                 its own (setting `search_path` of the database or the user); they would run with \
                 the privileges of Dyno's user. Remove `pg_catalog` from the setting, or give Dyno its \
                 own database"
            )));
        }
    };
    let found = traps(connection, &schemas).map_err(failed)?;
    if found.is_empty() {
        return Ok(());
    }
    let named = some_of(&found);
    Err(connection.shown(&format!(
        "the database contains objects that would run with the privileges of Dyno's user instead \
         of the server's own functions and operators ({named}); drop them, or give Dyno its \
         own database"
    )))
}

/// The role that a superuser's statements run as, if it is another one.
fn other_role(connection: &mut dyn Connection) -> Result<Option<String>> {
    let sql = "SELECT current_user::text FROM pg_roles WHERE rolname = session_user AND rolsuper \
               AND current_user <> session_user";
    Ok(ask(connection, sql)?.into_iter().flatten().flatten().next())
}

/// The schemas that are searched after the server's own; as an error, the one that is searched before.
fn schemas(connection: &mut dyn Connection) -> Result<Result<Vec<String>, String>> {
    let path = "SELECT pg_catalog.unnest(pg_catalog.current_schemas(true))";
    let mut schemas: Vec<String> =
        connection.query(path)?.into_iter().flatten().flatten().collect();
    // A session's temporary tables are its own, and are never searched for functions.
    schemas.retain(|schema| !schema.starts_with("pg_temp_"));
    Ok(match schemas.split_first() {
        Some((first, others)) if first == "pg_catalog" => Ok(others.to_vec()),
        Some((first, _)) => Err(first.clone()),
        None => Ok(schemas),
    })
}

fn traps(connection: &mut dyn Connection, schemas: &[String]) -> Result<Vec<String>> {
    if schemas.is_empty() {
        return Ok(Vec::new());
    }
    Ok(ask(connection, &traps_in(schemas))?.into_iter().flatten().flatten().collect())
}

fn traps_in(schemas: &[String]) -> String {
    let schemas: Vec<String> = schemas.iter().map(|name| literal(name)).collect();
    let schemas = schemas.join(", ");
    format!(
        "WITH s AS (SELECT oid FROM pg_namespace WHERE nspname IN ({schemas})), \
         o AS (SELECT oid, rolname FROM pg_roles WHERE NOT rolsuper AND rolname <> current_user) \
         SELECT 'the function ' || proname || ' of ' || rolname FROM pg_proc p \
         JOIN o ON o.oid = proowner WHERE pronamespace IN (SELECT oid FROM s) \
         AND (proname LIKE 'dyno\\_%' OR proname IN (SELECT proname FROM pg_proc \
         WHERE pronamespace = 'pg_catalog'::regnamespace)) \
         UNION SELECT 'the operator ' || oprname || ' of ' || rolname FROM pg_operator \
         JOIN o ON o.oid = oprowner WHERE oprnamespace IN (SELECT oid FROM s) \
         UNION SELECT 'the type ' || typname || ' of ' || rolname FROM pg_type \
         JOIN o ON o.oid = typowner WHERE typnamespace IN (SELECT oid FROM s) AND typtype <> 'c' \
         AND typname IN (SELECT proname FROM pg_proc \
         WHERE pronamespace = 'pg_catalog'::regnamespace) \
         AND typname NOT IN (SELECT typname FROM pg_type \
         WHERE typnamespace = 'pg_catalog'::regnamespace) \
         UNION SELECT 'the cast by ' || proname || ' of ' || rolname FROM pg_cast \
         JOIN pg_proc p ON p.oid = castfunc JOIN o ON o.oid = proowner ORDER BY 1"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With `standard_conforming_strings` off, a backslash would take the meaning of the quote behind it.
    #[test]
    fn names_of_schemas_stay_literals_whatever_the_database_sets() {
        let check = |names: [&str; 2], expected: &str| {
            let sql = traps_in(&names.map(str::to_owned));
            assert!(sql.contains(&format!("nspname IN ({expected})), o AS")), "{sql}");
        };
        check(["public", "it's"], "'public', 'it''s'");
        check(["a\\", "))SELECT public.e()--"], " E'a\\\\', '))SELECT public.e()--'");
        check(["a\\'", "b"], " E'a\\\\''', 'b'");
    }
}
