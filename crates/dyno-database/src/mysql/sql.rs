//! Dyno's own SQL on MariaDB and MySQL. Its notes are known by their definer, which only a
//! privileged user can forge.

use dyno_workload::{Dialect, TABLE_MARK};

use crate::sql::{CancelSql, CatalogSql, CountedSql, Identity, SqlSpec};

pub(crate) const SQL: SqlSpec = SqlSpec {
    dialect: Dialect::MySql,
    catalog: CatalogSql {
        contents: Some(CONTENTS),
        schema: None,
        // Tables have no owners; a user that looks like others cannot drop them either.
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
        routines: Some(|_, names| {
            format!(
                "SELECT CONCAT(routine_type, ' `', REPLACE(routine_name, '`', '``'), '`'), definer, \
                 CAST(definer AS BINARY) = CAST(CURRENT_USER() AS BINARY) AND routine_comment = '{TABLE_MARK}' FROM information_schema.routines \
                 WHERE routine_schema = DATABASE() AND routine_name IN ({names})"
            )
        }),
        before_notes: None,
        create_view: "CREATE OR REPLACE SQL SECURITY INVOKER VIEW",
        drop_view: "DROP VIEW",
        text_cast: "",
        no_definition: Some(
            "that is not a view, or is a view that Dyno is not allowed to read (this needs the \
             SHOW VIEW privilege)",
        ),
    },
    within: None,
    guard: &[],
    probe_session: &[
        // MariaDB's, in seconds, and MySQL's, in ms.
        "SET SESSION max_statement_time = 1",
        "SET SESSION max_execution_time = 1000",
        "SET SESSION lock_wait_timeout = 1",
        "SET SESSION autocommit = 1",
        "SET SESSION TRANSACTION READ ONLY",
    ],
    tables_of_others: None,
    check_read: Some(super::reach::check_views),
    check_routines: None,
    // Of a right of the whole server, of a table, of a catalog.
    no_right: &["1227", "1142", "1044"],
    hidden_text,
    cancel: Some(CancelSql {
        session: "SELECT CONNECTION_ID()",
        cancel: |session| format!("KILL QUERY {session}"),
    }),
    // MariaDB has no setting that is sure to differ between servers.
    identity: Some(Identity::Lock {
        take: |name| format!("SELECT GET_LOCK('{name}', 0)"),
        is_taken: |name| format!("SELECT IS_USED_LOCK('{name}') IS NOT NULL"),
    }),
    // EXTENDED reads every row. The sum of InnoDB's rows does not depend on their order.
    digest: Some(|table| {
        vec![format!("SELECT COUNT(*) FROM {table}"), format!("CHECKSUM TABLE {table} EXTENDED")]
    }),
    counted: Some(CountedSql {
        // Only views could call what others have made, and they are left out.
        guard: None,
        statements: &["SELECT DIGEST_TEXT, COUNT_STAR, SUM_ROWS_SENT + SUM_ROWS_AFFECTED \
             FROM performance_schema.events_statements_summary_by_digest \
             WHERE SCHEMA_NAME = DATABASE() AND DIGEST_TEXT IS NOT NULL \
             ORDER BY COUNT_STAR DESC LIMIT 5000"],
        // MariaDB makes a digest of what it parses, which is not done again for each execution.
        without_text: Some(
            "SELECT COALESCE(SUM(COUNT_STAR), 0) \
             FROM performance_schema.events_statements_summary_global_by_event_name \
             WHERE EVENT_NAME = 'statement/com/Execute' AND VERSION() LIKE '%MariaDB%'",
        ),
        missing: "the performance schema has counted no statements of this database: start the \
                  server with performance_schema = ON, and use a user who is allowed to read that \
                  schema",
        columns: "SELECT c.TABLE_NAME, c.COLUMN_NAME, \
             c.DATA_TYPE IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'decimal', 'float', 'double'), \
             EXISTS (SELECT 1 FROM information_schema.STATISTICS s WHERE s.TABLE_SCHEMA = c.TABLE_SCHEMA \
             AND s.TABLE_NAME = c.TABLE_NAME AND s.COLUMN_NAME = c.COLUMN_NAME AND s.SEQ_IN_INDEX = 1), \
             EXISTS (SELECT 1 FROM information_schema.STATISTICS s WHERE s.TABLE_SCHEMA = c.TABLE_SCHEMA \
             AND s.TABLE_NAME = c.TABLE_NAME AND s.COLUMN_NAME = c.COLUMN_NAME AND s.NON_UNIQUE = 0 \
             AND NOT EXISTS (SELECT 1 FROM information_schema.STATISTICS l \
             WHERE l.TABLE_SCHEMA = s.TABLE_SCHEMA AND l.TABLE_NAME = s.TABLE_NAME \
             AND l.INDEX_NAME = s.INDEX_NAME AND l.SEQ_IN_INDEX > s.SEQ_IN_INDEX)) \
             FROM information_schema.COLUMNS c JOIN information_schema.TABLES b \
             ON b.TABLE_SCHEMA = c.TABLE_SCHEMA AND b.TABLE_NAME = c.TABLE_NAME AND b.TABLE_TYPE = 'BASE TABLE' \
             WHERE c.TABLE_SCHEMA = DATABASE() \
             ORDER BY c.TABLE_NAME, c.ORDINAL_POSITION",
        of_others: None,
        sampled: None,
        values: |table, column| {
            [
                format!(
                    "SELECT SUBSTRING(CAST({column} AS CHAR), 1, 1000) FROM {table} LIMIT 5000"
                ),
                format!(
                    "SELECT SUBSTRING(CAST(MIN({column}) AS CHAR), 1, 1000), \
                     SUBSTRING(CAST(MAX({column}) AS CHAR), 1, 1000) FROM {table}"
                ),
            ]
        },
        quote: '`',
    }),
};

const CONTENTS: &str = "SELECT CONCAT('table ', table_name) FROM information_schema.tables \
     WHERE table_schema = DATABASE() \
     UNION ALL SELECT CONCAT('routine ', routine_name) FROM information_schema.routines \
     WHERE routine_schema = DATABASE() \
     AND NOT (routine_name LIKE 'dyno\\_%' AND CAST(definer AS BINARY) = CAST(CURRENT_USER() AS BINARY) \
     AND routine_comment = 'made by Dyno') \
     UNION ALL SELECT CONCAT('event ', event_name) FROM information_schema.events \
     WHERE event_schema = DATABASE() \
     UNION ALL SELECT CONCAT('trigger ', trigger_name) FROM information_schema.triggers \
     WHERE trigger_schema = DATABASE()";

/// Whether a comment's text runs, and which word is first, depends on the version.
fn hidden_text(sql: &str) -> Option<&'static str> {
    (sql.contains("/*!") || sql.to_ascii_uppercase().contains("/*M!")).then_some(
        "there is a comment in it that MySQL and MariaDB may run (`/*!`): write the statement \
         without one",
    )
}

pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
