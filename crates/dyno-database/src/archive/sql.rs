//! Statements of an archiving, by dialect.

use dyno_workload::Dialect;

use super::value::{Column, Kind, clickhouse_type, expression};
use crate::dialects::sql_of;

pub(super) fn quoted(dialect: Dialect, name: &str) -> String {
    match dialect {
        Dialect::MySql => format!("`{}`", name.replace('`', "``")),
        Dialect::ClickHouse => format!("`{}`", name.replace('\\', "\\\\").replace('`', "\\`")),
        Dialect::PostgreSql | Dialect::Sqlite => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

pub(super) fn text(dialect: Dialect, text: &str) -> String {
    match dialect {
        Dialect::PostgreSql | Dialect::Sqlite => format!("'{}'", text.replace('\'', "''")),
        Dialect::MySql | Dialect::ClickHouse => {
            format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
        }
    }
}

/// The table as statements about its rows name it; tables that inherit from it are others.
pub(super) fn rows_of(dialect: Dialect, table: &str) -> String {
    match dialect {
        Dialect::PostgreSql => format!("ONLY {}", quoted(dialect, table)),
        _ => quoted(dialect, table),
    }
}

/// What a session needs so that values have one text, and so that nothing is bent when it is stored.
pub(super) fn session(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::MySql => &[
            "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE'",
            "SET SESSION time_zone = '+00:00'",
            "SET NAMES utf8mb4",
            // Locks the rows of the batch, and no gaps between them, where others insert.
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        ],
        Dialect::PostgreSql | Dialect::ClickHouse | Dialect::Sqlite => &[],
    }
}

/// The same where settings are a transaction's.
const OF_TRANSACTION: [&str; 6] = [
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET LOCAL standard_conforming_strings = on",
    "SET LOCAL TimeZone = 'UTC'",
    "SET LOCAL DateStyle = 'ISO'",
    "SET LOCAL lock_timeout = '10s'",
    // What has been committed at the destination is deleted from the source. Stricter settings stay.
    "SELECT pg_catalog.set_config('synchronous_commit', 'on', true) \
     WHERE pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.=) 'off'",
];

pub(super) fn begin(dialect: Dialect) -> String {
    match needs_transaction(dialect) {
        true => format!("BEGIN; {}", OF_TRANSACTION.join("; ")),
        false => "BEGIN".to_owned(),
    }
}

pub(super) fn needs_transaction(dialect: Dialect) -> bool {
    sql_of(dialect).within.is_some()
}

/// Asks whether the table, or a trigger there, runs code of others when its rows are read, inserted or deleted. None
/// if nothing runs there with the rights of whoever does that.
pub(super) fn of_others(dialect: Dialect, table: &str) -> Option<String> {
    let of_condition = sql_of(dialect).tables_of_others?;
    let class = text(dialect, &quoted(dialect, table));
    Some(of_condition(&format!("c.oid = pg_catalog.to_regclass({class})::oid")))
}

/// Takes the table's lock for the session; returns 1. Waits for a killed run's session to end.
pub(super) fn lock(dialect: Dialect, table: &str) -> Option<String> {
    let name = text(dialect, &format!("dyno archive {table}"));
    match dialect {
        Dialect::MySql => {
            Some(format!("SELECT GET_LOCK(MD5(CONCAT(DATABASE(), ' ', {name})), 10)"))
        }
        Dialect::PostgreSql => {
            let digits = format!("pg_catalog.substr(pg_catalog.md5({name}), 1, 15)");
            let key = format!("('x' || {digits})::bit(60)::bigint");
            Some(format!("SELECT 1 FROM pg_catalog.pg_advisory_lock({key})"))
        }
        Dialect::ClickHouse | Dialect::Sqlite => None,
    }
}

/// The rows of a batch, locked; after the columns, a 1.
pub(super) fn batch(
    dialect: Dialect,
    table: &str,
    columns: &[Column],
    (key, condition, n_rows): (&str, &str, u64),
) -> String {
    let read = reading(dialect, columns, |idx| columns[idx].kind);
    let (rows, key) = (rows_of(dialect, table), quoted(dialect, key));
    // The condition may end in a comment.
    format!(
        "SELECT {read} FROM {rows} WHERE ({condition}\n) ORDER BY {key} LIMIT {n_rows} FOR UPDATE"
    )
}

/// The expressions that read columns as values of their kinds (without one, as they are), and a 1: a row is never an empty line.
pub(super) fn reading(
    dialect: Dialect,
    columns: &[Column],
    kind: impl Fn(usize) -> Option<Kind>,
) -> String {
    let mut out = String::new();
    for (idx, column) in columns.iter().enumerate() {
        match kind(idx) {
            Some(kind) => out.push_str(&expression(dialect, &column.name, kind)),
            None => out.push_str(&quoted(dialect, &column.name)),
        }
        out.push_str(", ");
    }
    out.push('1');
    out
}

/// The statement that removes rows from the destination by their key; ClickHouse does so in the background.
pub(super) fn remove(dialect: Dialect, table: &str, key: &str, keys: &str) -> String {
    let (rows, key) = (rows_of(dialect, table), quoted(dialect, key));
    match dialect {
        Dialect::ClickHouse => format!("ALTER TABLE {rows} DELETE WHERE {key} IN ({keys})"),
        _ => format!("DELETE FROM {rows} WHERE {key} IN ({keys})"),
    }
}

/// Statements that delete rows by their key, the last of which returns how many it has deleted.
pub(super) fn delete(dialect: Dialect, table: &str, key: &str, keys: &str) -> Vec<String> {
    let delete = format!(
        "DELETE FROM {} WHERE {} IN ({keys})",
        rows_of(dialect, table),
        quoted(dialect, key)
    );
    match dialect {
        Dialect::PostgreSql => {
            vec![format!("WITH gone AS ({delete} RETURNING 1) SELECT count(*) FROM gone")]
        }
        _ => vec![delete, "SELECT ROW_COUNT()".to_owned()],
    }
}

/// How an INSERT begins.
pub(super) fn insert(dialect: Dialect, table: &str, columns: &[Column]) -> String {
    let stored = columns.iter().filter(|column| !column.is_generated);
    let names: Vec<String> = stored.map(|one| quoted(dialect, &one.name)).collect();
    let words = match dialect {
        // A column that numbers rows by itself takes the value that is given.
        Dialect::PostgreSql => "OVERRIDING SYSTEM VALUE VALUES",
        _ => "VALUES",
    };
    format!("INSERT INTO {} ({}) {words} ", quoted(dialect, table), names.join(", "))
}

pub(super) fn create(table: &str, columns: &[Column], key: &str) -> String {
    let dialect = Dialect::ClickHouse;
    let definitions: Vec<String> = columns
        .iter()
        .filter_map(|column| {
            let of_values = clickhouse_type(column.kind?);
            let of_column = match column.is_nullable {
                true => format!("Nullable({of_values})"),
                false => of_values,
            };
            Some(format!("{} {of_column}", quoted(dialect, &column.name)))
        })
        .collect();
    format!(
        "CREATE TABLE {} ({}) ENGINE = MergeTree ORDER BY {}",
        quoted(dialect, table),
        definitions.join(", "),
        quoted(dialect, key)
    )
}

/// Bytes of the table's files with indexes; a server may not know, or refuse, some of these.
pub(super) fn file_bytes(dialect: Dialect, table: &str) -> Vec<String> {
    let name = text(dialect, table);
    match dialect {
        // MariaDB's view, and MySQL's.
        Dialect::MySql => ["INNODB_SYS_TABLESPACES", "INNODB_TABLESPACES"]
            .map(|view| {
                format!(
                    "SELECT FILE_SIZE FROM information_schema.{view} \
                     WHERE NAME = CONCAT(DATABASE(), '/', {name})"
                )
            })
            .into(),
        _ => Vec::new(),
    }
}

/// The last one returns the server's estimate, with indexes. InnoDB's may be hours old.
pub(super) fn bytes(dialect: Dialect, table: &str) -> Vec<String> {
    let name = text(dialect, table);
    match dialect {
        Dialect::MySql => vec![format!(
            "SELECT DATA_LENGTH + INDEX_LENGTH + DATA_FREE FROM information_schema.TABLES \
             WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = {name}"
        )],
        Dialect::PostgreSql => {
            let class = text(dialect, &quoted(dialect, table));
            let class = format!("pg_catalog.to_regclass({class})");
            vec![format!("SELECT pg_catalog.pg_total_relation_size({class})")]
        }
        Dialect::ClickHouse => vec![format!(
            "SELECT toString(sum(bytes_on_disk)) FROM system.parts \
             WHERE active AND database = currentDatabase() AND table = {name}"
        )],
        Dialect::Sqlite => Vec::new(),
    }
}
