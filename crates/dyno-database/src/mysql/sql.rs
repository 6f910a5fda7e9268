//! The SQL of Dyno itself on MariaDB and MySQL.
//!
//! Dyno recognises its notes by their definer, which only a privileged user can forge.

use std::sync::Arc;

use dyno_units::Clock;
use dyno_workload::{Connection, Dialect};

use super::cost::MySqlCost;
use crate::sql::{CancelSql, CatalogSql, SqlSpec};
use crate::{Access, CostSource};

pub(super) const SQL: SqlSpec = SqlSpec {
    dialect: Dialect::MySql,
    catalog: CatalogSql {
        contents: Some(CONTENTS),
        schema: None,
        // There are no owners of tables; a user that cannot be distinguished from others cannot
        // drop them either.
        relations: |_| {
            "SELECT table_name, table_type, 'mine' FROM information_schema.tables \
             WHERE table_schema = DATABASE() ORDER BY 1"
                .to_owned()
        },
        notes: |_| {
            "SELECT view_definition, definer, CURRENT_USER() \
             FROM information_schema.views WHERE table_schema = DATABASE() \
             AND table_name = 'dyno_tables'"
                .to_owned()
        },
        before_notes: None,
        create_view: "CREATE OR REPLACE SQL SECURITY INVOKER VIEW",
        drop_view: "DROP VIEW",
        text_cast: "",
        guard: None,
        no_definition: Some(
            "that is not a view, or one that Dyno may not read (it needs the SHOW VIEW privilege)",
        ),
    },
    probe_session: &[
        // MariaDB's, in seconds, and MySQL's, in ms.
        "SET SESSION max_statement_time = 1",
        "SET SESSION max_execution_time = 1000",
        "SET SESSION lock_wait_timeout = 1",
        "SET SESSION autocommit = 1",
        "SET SESSION TRANSACTION READ ONLY",
    ],
    probe_guard: None,
    // Of a right of the whole server, of a table, of a catalog.
    no_right: &["1227", "1142", "1044"],
    cost_source,
    hidden_text,
    cancel: Some(CancelSql {
        session: "SELECT CONNECTION_ID()",
        cancel: |session| format!("KILL QUERY {session}"),
    }),
    // EXTENDED reads every row. The sum of InnoDB's rows does not depend on their order.
    digest: Some(|table| {
        vec![format!("SELECT COUNT(*) FROM {table}"), format!("CHECKSUM TABLE {table} EXTENDED")]
    }),
};

const CONTENTS: &str = "SELECT CONCAT('table ', table_name) FROM information_schema.tables \
     WHERE table_schema = DATABASE() \
     UNION ALL SELECT CONCAT('routine ', routine_name) FROM information_schema.routines \
     WHERE routine_schema = DATABASE() \
     AND NOT (routine_name LIKE 'dyno\\_%' AND definer = CURRENT_USER()) \
     UNION ALL SELECT CONCAT('event ', event_name) FROM information_schema.events \
     WHERE event_schema = DATABASE() \
     UNION ALL SELECT CONCAT('trigger ', trigger_name) FROM information_schema.triggers \
     WHERE trigger_schema = DATABASE()";

fn cost_source(
    connection: Box<dyn Connection>,
    access: Access,
    _clock: &Arc<dyn Clock>,
) -> Result<Box<dyn CostSource>, String> {
    Ok(Box::new(MySqlCost::new(connection, access)?))
}

/// Whether a server runs the text of such a comment depends on its version, and so does the first
/// word of the statement.
fn hidden_text(sql: &str) -> Option<&'static str> {
    (sql.contains("/*!") || sql.to_ascii_uppercase().contains("/*M!")).then_some(
        "there is a comment in it that MySQL and MariaDB may run (`/*!`): write the statement \
         without one",
    )
}
