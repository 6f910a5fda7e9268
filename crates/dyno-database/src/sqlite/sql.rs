//! Dyno's own SQL on SQLite. Its notes belong to the file's owner.

use dyno_workload::Dialect;

use crate::sql::{CatalogSql, SqlSpec};

pub(crate) const SQL: SqlSpec = SqlSpec {
    dialect: Dialect::Sqlite,
    catalog: CatalogSql {
        // A database of its own is a file of Dyno's own.
        contents: None,
        schema: None,
        relations: |_| {
            "SELECT name, type, 'mine' FROM sqlite_master \
             WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY 1"
                .to_owned()
        },
        notes: |_| {
            "SELECT CASE type WHEN 'view' THEN sql END, '', '' FROM sqlite_master \
             WHERE name = 'dyno_tables'"
                .to_owned()
        },
        routines: None,
        before_notes: Some("DROP VIEW IF EXISTS dyno_tables"),
        create_view: "CREATE VIEW",
        drop_view: "DROP VIEW",
        text_cast: "",
        no_definition: None,
    },
    within: None,
    guard: &[],
    probe_session: &["PRAGMA busy_timeout = 100"],
    tables_of_others: None,
    check_read: None,
    check_routines: None,
    no_right: &[],
    hidden_text: |_| None,
    cancel: None,
    identity: None,
    digest: None,
    #[cfg(feature = "servers")]
    counted: None,
};
