//! sysbench's tables in each dialect, and their rows.
//!
//! - No `ENGINE` clause: the server's `default_storage_engine` decides, so that a workload runs unchanged
//!   on all engines.
//! - Rows get explicit ids 1 to `table_size`, so that any worker can make any of them; sysbench leaves ids
//!   to the server, which gives the same to a single client. PostgreSQL's sequence is then moved behind
//!   them (others do that alone).
//! - Filled tables are analysed (PostgreSQL: vacuumed, too), which sysbench does not do. Otherwise the
//!   server would during the measurement: PostgreSQL's autovacuum wakes about a minute after a large fill,
//!   and sets all rows' hint bits. ClickHouse merges the parts of the fill, for the same reason.
//!
//! ClickHouse's tables have the engine MergeTree, ordered by `id`: its only kind of primary key, neither
//! unique nor an index of single rows.

use crate::TABLE_MARK;
use crate::prelude::*;

use super::digits::{C_GROUPS, PAD_GROUPS, push_groups};
use super::settings::Settings;

impl Settings {
    pub(super) fn tables(&self, dialect: Dialect) -> Vec<Table> {
        (1..=self.n_tables)
            .map(|number| Table {
                name: format!("sbtest{number}"),
                create: self.create(dialect, number),
                columns: names(&["id", "k", "c", "pad"]),
                rows: self.n_rows,
                after: self.after(dialect, number),
            })
            .collect()
    }

    fn create(&self, dialect: Dialect, number: u64) -> String {
        if dialect == Dialect::ClickHouse {
            return format!(
                "CREATE TABLE sbtest{number} (id Int32 COMMENT '{TABLE_MARK}', k Int32, c String, pad String) \
                 ENGINE = MergeTree ORDER BY id"
            );
        }
        let id = match (dialect, self.is_auto_increment) {
            (Dialect::MySql, true) => "INTEGER NOT NULL AUTO_INCREMENT",
            (Dialect::PostgreSql, true) => "SERIAL",
            // A primary key of type INTEGER is SQLite's row id, and given by it where missing.
            (Dialect::Sqlite, _) if !self.is_id_secondary => "INTEGER",
            _ => "INTEGER NOT NULL",
        };
        // Inside CREATE TABLE because AUTO_INCREMENT wants a key from the start.
        let key = match (dialect, self.is_id_secondary) {
            (_, false) => ", PRIMARY KEY (id)",
            (Dialect::MySql, true) => ", KEY xid (id)",
            (_, true) => "",
        };
        format!(
            "CREATE TABLE sbtest{number} (id {id}, k INTEGER DEFAULT '0' NOT NULL, \
             c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL{key})"
        )
    }

    fn after(&self, dialect: Dialect, number: u64) -> Vec<String> {
        let mut after = Vec::new();
        if self.is_id_secondary && dialect != Dialect::MySql {
            after.push(format!("CREATE INDEX xid_{number} ON sbtest{number} (id)"));
        }
        if self.has_k_index {
            after.push(format!("CREATE INDEX k_{number} ON sbtest{number} (k)"));
        }
        if dialect == Dialect::PostgreSql && self.is_auto_increment && self.n_rows > 0 {
            let n_rows = self.n_rows;
            after.push(format!(
                "SELECT setval(pg_get_serial_sequence('sbtest{number}', 'id'), {n_rows})"
            ));
        }
        after.push(dialect.analyze(&format!("sbtest{number}")));
        after
    }

    pub(super) fn needs_ids(&self, dialect: Dialect) -> bool {
        // Without the primary key there is no row id that SQLite could give; ClickHouse gives none.
        let gives_none =
            dialect == Dialect::ClickHouse || (dialect == Dialect::Sqlite && self.is_id_secondary);
        !self.is_auto_increment || gives_none
    }

    pub(super) fn fill_row(&self, table_idx: usize, number: u64, row: &mut Row) {
        let mut random = self.seeds[table_idx].derive("", number).stream();
        row.push_integer(number as i64 + 1);
        row.push_integer(self.k.draw(&mut random) as i64 + 1);
        row.push_text_with(|bytes| push_groups(bytes, C_GROUPS, &mut random));
        row.push_text_with(|bytes| push_groups(bytes, PAD_GROUPS, &mut random));
    }
}

pub(super) fn bulk_tables(n_tables: u64) -> Vec<Table> {
    (1..=n_tables)
        .map(|number| Table {
            name: format!("sbtest{number}"),
            create: format!(
                "CREATE TABLE sbtest{number} (id INTEGER NOT NULL, k INTEGER DEFAULT '0' NOT NULL, \
                 PRIMARY KEY (id))"
            ),
            columns: names(&["id", "k"]),
            rows: 0,
            after: Vec::new(),
        })
        .collect()
}
