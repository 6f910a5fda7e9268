//! Dyno's own SQL on ClickHouse. The server does not know who made a table, and a user who may make a view
//! in a database may drop its tables as well: Dyno's notes are as safe as the database itself.

use dyno_workload::{Dialect, TABLE_MARK};

use crate::sql::{CatalogSql, Identity, SqlSpec};

pub(crate) const SQL: SqlSpec = SqlSpec {
    dialect: Dialect::ClickHouse,
    catalog: CatalogSql {
        contents: Some(
            "SELECT concat(engine, ' ', name) FROM system.tables \
             WHERE database = currentDatabase() ORDER BY name",
        ),
        schema: None,
        relations: |_| {
            format!(
                "SELECT name, if(engine LIKE '%View', 'view', 'table'), if(name IN (SELECT table FROM \
                 system.columns WHERE database = currentDatabase() AND comment = '{TABLE_MARK}'), 'mine', \
                 'not marked') FROM system.tables WHERE database = currentDatabase() ORDER BY name"
            )
        },
        notes: |_| {
            "SELECT if(engine = 'View', create_table_query, ''), '', '' FROM system.tables \
             WHERE database = currentDatabase() AND name = 'dyno_tables'"
                .to_owned()
        },
        routines: None,
        before_notes: Some("DROP TABLE IF EXISTS dyno_tables"),
        create_view: "CREATE VIEW",
        drop_view: "DROP TABLE",
        text_cast: "",
        no_definition: None,
    },
    within: None,
    guard: &[],
    probe_session: &[],
    tables_of_others: None,
    check_read: None,
    check_routines: None,
    // A database, or anything else, that the user may not use.
    no_right: &["291", "497"],
    hidden_text: |_| None,
    cancel: None,
    identity: Some(Identity::Answer("SELECT serverUUID()")),
    digest: Some(|table| vec![format!("SELECT count(), sum(cityHash64(*)) FROM {table}")]),
    counted: None,
};
