//! Other users' functions and operators where names are looked up: they could replace the server's
//! own, with Dyno's rights.
//!
//! Statements name tables without schema, as the original programs do, so functions and operators
//! are looked up in the tables' schema as well. PostgreSQL takes the best fit of types in any
//! schema (documentation, 10.2 and 10.3): a user's `varchar = varchar` wins over `text = text`.

use dyno_workload::{Connection, StatementError, TABLE_MARK};

use super::sql::{literal, quote_name};
use crate::catalog::some_of;
use crate::dialects::ask;
use crate::error::StatementResult as Result;

/// Refuses a catalog in whose schemas anyone but superusers and Dyno's user made operators, functions
/// named like the server's or like Dyno's procedures, or types named like the server's functions
/// and not like its types (`count(k)` is a cast to a type `count` where no function fits exactly); and one with casts of
/// theirs, which belong to no schema, for a type in somebody else's table, or with a domain or range type of theirs there
/// that calls functions (checks, differences of bounds). As a database's owner may set session
/// defaults, it also refuses a search path without the server's schema, and a session that acts as another
/// role than its user, unless that is its user's own choice.
///
/// Returns the settings with which a transaction looks names up as checked, as the role that was checked: a pooler may
/// have another session serve the next one.
pub(super) fn check(connection: &mut dyn Connection) -> Result<Vec<String>, String> {
    let failed = |error: StatementError| error.to_string();
    check_role(connection)?;
    let (role, schemas) = match schemas(connection).map_err(failed)? {
        Ok(found) => found,
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
        return Ok(pinned(&schemas, &role));
    }
    let named = some_of(&found);
    Err(connection.shown(&format!(
        "the database contains objects that would run with the privileges of Dyno's user, instead of \
         the server's own functions and operators or beside them ({named}); drop them, or give Dyno its \
         own database"
    )))
}

/// Refuses a session whose statements run as another role than its user, and could leave it again.
pub(super) fn check_role(connection: &mut dyn Connection) -> Result<(), String> {
    let found = other_role(connection).map_err(|error| error.to_string())?;
    found.map_or(Ok(()), |(role, user)| {
        let other = match user == SUPERUSER {
            true => "use a user that is not a superuser, and ",
            false => "",
        };
        Err(connection.shown(&format!(
            "the server makes Dyno's user act as `{role}` (setting `role` or `session_authorization` of the \
             database or the user); functions of that role would get the privileges of {user}. Reset the \
             setting, or {other}set the role for this user alone (ALTER ROLE)"
        )))
    })
}

/// In an answer: the connection's user is one.
const SUPERUSER: &str = "a superuser";

/// What the owner of this database has set for all sessions in it.
const IMPOSED: &str = "SELECT one, d.datdba FROM pg_db_role_setting s \
     JOIN pg_database d ON d.oid = s.setdatabase CROSS JOIN LATERAL unnest(s.setconfig) x(one) \
     WHERE d.datname = current_database() AND s.setrole = 0";

/// What is set for this user alone, which comes first. Who may set that could also log in as the user.
const CHOSEN: &str = "SELECT one FROM pg_db_role_setting s JOIN pg_roles u ON u.oid = s.setrole \
     LEFT JOIN pg_database d ON d.oid = s.setdatabase CROSS JOIN LATERAL unnest(s.setconfig) x(one) \
     WHERE u.rolname = session_user AND (s.setdatabase = 0 OR d.datname = current_database())";

/// The role that this session's statements run as, if it is another one that can be left again: a superuser's, or one
/// that was imposed; and whose privileges that would give.
fn other_role(connection: &mut dyn Connection) -> Result<Option<(String, String)>> {
    let sql = format!(
        "SELECT current_user::text, CASE WHEN rolsuper THEN '{SUPERUSER}' ELSE 'the user' END FROM pg_roles \
         WHERE rolname = session_user AND ((rolsuper AND current_user <> session_user) \
         OR EXISTS (SELECT 1 FROM ({IMPOSED}) i WHERE one LIKE 'session\\_authorization=%' \
         OR (one = 'role=' || current_user AND current_user <> session_user \
         AND NOT EXISTS (SELECT 1 FROM ({CHOSEN}) c WHERE c.one LIKE 'role=%') AND NOT EXISTS (SELECT 1 \
         FROM pg_roles o WHERE o.oid = i.datdba AND (o.rolsuper OR o.rolname = session_user)))))"
    );
    let row = ask(connection, &sql)?.into_iter().next().unwrap_or_default();
    let mut cells = row.into_iter().flatten();
    Ok(cells.next().zip(cells.next()))
}

/// The role that the session has chosen, and the schemas that are searched after the server's own; as an error, the one
/// that is searched before.
fn schemas(connection: &mut dyn Connection) -> Result<Result<(String, Vec<String>), String>> {
    // The server's own schema is always one.
    let path = "SELECT pg_catalog.unnest(pg_catalog.current_schemas(true)), pg_catalog.current_setting('role')";
    let (mut role, mut schemas) = (NO_ROLE.to_owned(), Vec::new());
    for row in connection.query(path)? {
        let mut cells = row.into_iter().flatten();
        schemas.extend(cells.next());
        role = cells.next().unwrap_or(role);
    }
    // A session's temporary tables are its own, and are never searched for functions.
    schemas.retain(|schema| !schema.starts_with("pg_temp_"));
    Ok(match schemas.split_first() {
        Some((first, others)) if first == "pg_catalog" => Ok((role, others.to_vec())),
        Some((first, _)) => Err(first.clone()),
        None => Ok((role, schemas)),
    })
}

/// Of a session that acts as its user.
const NO_ROLE: &str = "none";

fn pinned(schemas: &[String], role: &str) -> Vec<String> {
    let path: Vec<String> = schemas.iter().map(|name| quote_name(name)).collect();
    let path = if path.is_empty() { "''".to_owned() } else { path.join(", ") };
    let role = if role == NO_ROLE { "NONE".to_owned() } else { quote_name(role) };
    vec![format!("SET LOCAL search_path = {path}"), format!("SET LOCAL ROLE {role}")]
}

fn traps(connection: &mut dyn Connection, schemas: &[String]) -> Result<Vec<String>> {
    Ok(ask(connection, &traps_in(schemas))?.into_iter().flatten().flatten().collect())
}

fn traps_in(schemas: &[String]) -> String {
    let schemas: Vec<String> = schemas.iter().map(|name| literal(name)).collect();
    // Casts and types belong to no schema that is searched.
    let schemas = if schemas.is_empty() { "NULL".to_owned() } else { schemas.join(", ") };
    // Types in casts of theirs, types whose own functions the planner, ANALYZE and indexes call with the rights of the
    // reader, and all types that are made of these.
    let of_types = "t(what, owner, oid) AS (SELECT 'cast by ' || p.proname, o.oid, x.oid FROM pg_cast c JOIN pg_proc p \
         ON p.oid = c.castfunc JOIN o ON o.oid = p.proowner CROSS JOIN LATERAL unnest(ARRAY[castsource, casttarget]) \
         x(oid) WHERE x.oid >= 16384 \
         UNION SELECT 'type ' || y.typname, o.oid, y.oid FROM pg_type y JOIN o ON o.oid = y.typowner WHERE y.typtype = 'm' \
         OR EXISTS (SELECT 1 FROM pg_constraint k WHERE k.contypid = y.oid) \
         OR EXISTS (SELECT 1 FROM pg_range g WHERE g.rngtypid = y.oid AND (g.rngsubdiff <> 0 OR g.rngcanonical <> 0)) \
         UNION SELECT t.what, t.owner, y.oid FROM t JOIN pg_type y ON t.oid IN (y.typelem, y.typbasetype) \
         OR EXISTS (SELECT 1 FROM pg_range g WHERE g.rngtypid = y.oid AND g.rngsubtype = t.oid) \
         OR EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = y.typrelid AND a.atttypid = t.oid))";
    format!(
        "WITH RECURSIVE s AS (SELECT oid FROM pg_namespace WHERE nspname IN ({schemas})), \
         o AS (SELECT oid, rolname FROM pg_roles WHERE NOT rolsuper AND rolname <> session_user), {of_types} \
         SELECT 'the function ' || proname || ' of ' || rolname FROM pg_proc p \
         JOIN o ON o.oid = proowner WHERE pronamespace IN (SELECT oid FROM s) \
         AND (proname LIKE 'dyno\\_%' OR proname IN (SELECT proname FROM pg_proc \
         WHERE pronamespace = 'pg_catalog'::regnamespace)) \
         AND NOT (proname LIKE 'dyno\\_%' AND rolname = current_user AND prosrc LIKE ' -- {TABLE_MARK}%') \
         UNION SELECT 'the operator ' || oprname || ' of ' || rolname FROM pg_operator \
         JOIN o ON o.oid = oprowner WHERE oprnamespace IN (SELECT oid FROM s) \
         UNION SELECT 'the type ' || typname || ' of ' || rolname FROM pg_type \
         JOIN o ON o.oid = typowner WHERE typnamespace IN (SELECT oid FROM s) AND typtype <> 'c' \
         AND typname IN (SELECT proname FROM pg_proc \
         WHERE pronamespace = 'pg_catalog'::regnamespace) \
         AND typname NOT IN (SELECT typname FROM pg_type \
         WHERE typnamespace = 'pg_catalog'::regnamespace) \
         UNION SELECT 'the ' || t.what || ' of ' || rolname FROM t JOIN o ON o.oid = t.owner WHERE EXISTS (SELECT 1 FROM pg_attribute a \
         JOIN pg_class r ON r.oid = a.attrelid WHERE a.atttypid = t.oid AND a.attnum > 0 AND NOT a.attisdropped \
         AND r.relkind IN ('r', 'p', 'v', 'm', 'f') AND r.relowner <> t.owner) ORDER BY 1"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_look_names_up_as_they_were_checked() {
        let check = |schemas: &[&str], role: &str, expected: [&str; 2]| {
            let schemas: Vec<String> = schemas.iter().map(|&name| name.to_owned()).collect();
            assert_eq!(pinned(&schemas, role), expected);
        };
        check(&[], "none", ["SET LOCAL search_path = ''", "SET LOCAL ROLE NONE"]);
        let path = "SET LOCAL search_path = \"public\", \"a\"\"; b\"";
        check(&["public", "a\"; b"], "Team", [path, "SET LOCAL ROLE \"Team\""]);
    }

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
