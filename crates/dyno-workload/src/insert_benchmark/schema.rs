//! Tables, indexes and statements in three dialects. MariaDB's and MySQL's engine is the server's
//! default, set by a study. SQLite is not among the author's products: its id is the row's own
//! number.

use crate::{Dialect, Table};

use super::settings::{Deletes, Schema};

pub(super) fn table_name(idx: usize) -> String {
    format!("pi{}", idx + 1)
}

pub(super) fn table(schema: Schema, dialect: Dialect, idx: usize) -> Table {
    let name = table_name(idx);
    let (key, time) = match dialect {
        Dialect::MySql => ("bigint not null auto_increment primary key", "datetime"),
        Dialect::PostgreSql => ("bigserial primary key", "timestamp without time zone"),
        Dialect::Sqlite | Dialect::ClickHouse => ("integer primary key not null", "datetime"),
    };
    let price = match (schema, dialect) {
        (Schema::December2023, _) => "int",
        (Schema::July2023, Dialect::MySql) => "float",
        (Schema::July2023, Dialect::PostgreSql | Dialect::Sqlite | Dialect::ClickHouse) => "real",
    };
    // A range of ids for each connection, so that none waits for another one's.
    let cache = format!("ALTER SEQUENCE {name}_transactionid_seq CACHE 1000");
    Table {
        create: format!(
            "CREATE TABLE {name} (transactionid {key}, dateandtime {time}, \
             cashregisterid int not null, customerid int not null, productid int not null, \
             price {price} not null, data varchar(4000))"
        ),
        columns: Vec::new(),
        rows: 0,
        after: if dialect == Dialect::PostgreSql { vec![cache] } else { Vec::new() },
        name,
    }
}

/// A secondary index, and the range query that it answers alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Index {
    Market,
    Register,
    Pdc,
}

impl Index {
    pub(super) const ALL: [Index; 3] = [Index::Market, Index::Register, Index::Pdc];

    fn suffix(self) -> &'static str {
        match self {
            Index::Market => "marketsegment",
            Index::Register => "registersegment",
            Index::Pdc => "pdc",
        }
    }

    fn columns(self, schema: Schema) -> &'static str {
        match (self, schema) {
            (Index::Market, Schema::December2023) => "productid, customerid, price",
            (Index::Market, Schema::July2023) => "price, customerid",
            (Index::Register, Schema::December2023) => "cashregisterid, customerid, price",
            (Index::Register, Schema::July2023) => "cashregisterid, price, customerid",
            (Index::Pdc, _) => "price, dateandtime, customerid",
        }
    }

    fn condition(self, schema: Schema) -> &'static str {
        match (self, schema) {
            (Index::Market, Schema::December2023) => "productid >= ",
            (Index::Market, Schema::July2023) | (Index::Pdc, _) => "price >= ",
            // The author's own: with the largest value it returns nothing.
            (Index::Register, _) => "cashregisterid > ",
        }
    }
}

/// The statements that make all indexes of `table`, in the author's order.
pub(super) fn create_indexes(
    schema: Schema,
    dialect: Dialect,
    table: &str,
    is_one_by_one: bool,
) -> Vec<String> {
    let add =
        |index: &Index| format!("ADD INDEX {table}_{} ({})", index.suffix(), index.columns(schema));
    let create = |index: &Index| {
        let (suffix, columns) = (index.suffix(), index.columns(schema));
        format!("CREATE INDEX {table}_{suffix} ON {table} ({columns})")
    };
    let all = Index::ALL.iter();
    match dialect {
        Dialect::MySql if is_one_by_one => {
            all.map(|index| format!("ALTER TABLE {table} {}", add(index))).collect()
        }
        Dialect::MySql => {
            let added: Vec<String> = all.map(add).collect();
            vec![format!("ALTER TABLE {table} {}", added.join(", "))]
        }
        Dialect::PostgreSql | Dialect::Sqlite | Dialect::ClickHouse => all.map(create).collect(),
    }
}

/// A range query in two parts, between which its one value goes.
pub(super) fn range_query(
    schema: Schema,
    dialect: Dialect,
    table: &str,
    index: Index,
    limit: u64,
) -> (String, String) {
    let columns = index.columns(schema);
    let force = match dialect {
        Dialect::MySql => format!(" FORCE INDEX ({table}_{})", index.suffix()),
        Dialect::PostgreSql | Dialect::Sqlite | Dialect::ClickHouse => String::new(),
    };
    (
        format!("SELECT {columns} FROM {table}{force} WHERE {}", index.condition(schema)),
        format!(" ORDER BY {columns} LIMIT {limit}"),
    )
}

/// With SQL's PREPARE: the preparing statement, and two parts of the executing one.
pub(super) fn prepared_range_query(
    schema: Schema,
    table: &str,
    index: Index,
    limit: u64,
) -> (String, (String, String)) {
    let (before, after) = range_query(schema, Dialect::PostgreSql, table, index, limit);
    let name = ["market", "register", "pdc"][index as usize];
    let is_price = schema == Schema::July2023 && index != Index::Register;
    let number = if is_price { "real" } else { "int" };
    let prepare = format!("prepare {name}_query_ps({number}) as {before}$1{after}");
    (prepare, (format!("execute {name}_query_ps ("), ")".to_owned()))
}

/// The PREPARE, and the execution up to its ids, declared as `int` as in the original.
pub(super) fn prepared_point_query(table: &str, n_ids: usize) -> (String, String) {
    let marks: Vec<String> = (1..=n_ids).map(|number| format!("${number}")).collect();
    let types = vec!["int"; n_ids].join(", ");
    let query = format!("{}{})", point_query(table), marks.join(", "));
    (format!("prepare pk_query_ps({types}) as {query}"), "execute pk_query_ps (".to_owned())
}

/// A point query up to its ids; it ends with `)`.
pub(super) fn point_query(table: &str) -> String {
    format!("SELECT transactionid, productid, data FROM {table} WHERE transactionid IN (")
}

/// In whole seconds, the same for all rows of a statement. The original writes the client's time,
/// but a workload has no clock.
pub(super) fn now(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::MySql => "now()",
        Dialect::PostgreSql => "localtimestamp(0)",
        Dialect::Sqlite | Dialect::ClickHouse => "datetime('now')",
    }
}

/// The first id goes between the first two parts, and what `end` says after the second.
#[derive(Clone, Debug)]
pub(super) struct DeleteText {
    pub(super) before_id: String,
    pub(super) after_id: &'static str,
    pub(super) end: DeleteEnd,
    pub(super) after: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeleteEnd {
    Rows,
    /// The first id that stays.
    Id,
}

pub(super) fn delete(deletes: Deletes, dialect: Dialect, table: &str) -> DeleteText {
    let (before_id, after) = match (deletes, dialect) {
        (Deletes::Range, _) => (format!("delete from {table} where (transactionid>="), ")"),
        (Deletes::Limit | Deletes::Off, Dialect::MySql) => {
            (format!("delete from {table} where transactionid >= "), "")
        }
        (_, Dialect::PostgreSql | Dialect::Sqlite | Dialect::ClickHouse) => {
            let first = format!("select transactionid from {table} where transactionid >= ");
            (format!("delete from {table} where transactionid in ({first}"), ")")
        }
    };
    let (after_id, end) = match deletes {
        Deletes::Range => (" and transactionid<", DeleteEnd::Id),
        Deletes::Limit | Deletes::Off => (" order by transactionid asc limit ", DeleteEnd::Rows),
    };
    DeleteText { before_id, after_id, end, after }
}
