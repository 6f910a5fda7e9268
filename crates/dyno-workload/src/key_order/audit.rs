//! Checks of the tables, and their sizes.

use crate::{AuditRow, AuditTotals, Dialect, TextRows, number_in};

use super::schema;
use super::settings::Settings;

/// Rows of all tables; then by table rows, bytes of data and of indexes. MariaDB's and MySQL's
/// sizes may be old by a tenth of the rows, so statistics are refreshed in between.
pub(super) fn queries(settings: &Settings, dialect: Dialect) -> Vec<String> {
    let names: Vec<String> =
        (0..settings.tables).map(|idx| schema::table_name(settings.key, idx)).collect();
    let counts: Vec<String> =
        names.iter().map(|name| format!("(SELECT COUNT(*) FROM {name})")).collect();
    let mut queries = vec![format!("SELECT {}", counts.join(" + "))];
    if dialect == Dialect::MySql {
        queries.push(format!("ANALYZE TABLE {}", names.join(", ")));
    }
    queries.extend(names.iter().map(|name| size_query(name, dialect)));
    queries
}

/// Rows, bytes and bytes per row of all tables, as the server knows them. InnoDB's are statistics
/// of one moment, collected after a tenth of the rows has changed, at most every ten seconds
/// (information_schema.tables has present rows and old bytes). None on SQLite, which would read the
/// whole database.
pub(super) fn readings_query(settings: &Settings, dialect: Dialect) -> Option<String> {
    let (rows, data, indexes, tables) = match dialect {
        Dialect::MySql => (
            "SUM(n_rows)",
            "SUM(clustered_index_size) * @@innodb_page_size",
            "SUM(sum_of_other_index_sizes) * @@innodb_page_size",
            "mysql.innodb_table_stats WHERE database_name = database() AND table_name",
        ),
        Dialect::PostgreSql => (
            "SUM(n_live_tup)",
            "SUM(pg_relation_size(relid))",
            "SUM(pg_indexes_size(relid))",
            "pg_stat_user_tables WHERE relname",
        ),
        Dialect::Sqlite | Dialect::ClickHouse => return None,
    };
    let prefix = schema::name_prefix(settings.key);
    Some(format!(
        "SELECT {rows} AS table_rows, {data} AS data_bytes, {indexes} AS index_bytes, \
         {data} / NULLIF({rows}, 0) AS data_bytes_per_row, \
         {indexes} / NULLIF({rows}, 0) AS index_bytes_per_row, \
         {indexes} / NULLIF({data}, 0) AS index_to_data FROM {tables} LIKE '{prefix}%'"
    ))
}

/// Rows, bytes of data, bytes of indexes, with a separate primary key among the indexes.
fn size_query(name: &str, dialect: Dialect) -> String {
    let count = format!("(SELECT COUNT(*) FROM {name})");
    match dialect {
        Dialect::MySql => format!(
            "SELECT {count}, data_length, index_length FROM information_schema.tables \
             WHERE table_schema = database() AND table_name = '{name}'"
        ),
        Dialect::PostgreSql => {
            format!("SELECT {count}, pg_relation_size('{name}'), pg_indexes_size('{name}')")
        }
        Dialect::Sqlite | Dialect::ClickHouse => format!(
            "SELECT {count}, (SELECT SUM(pgsize) FROM dbstat WHERE name = '{name}'), \
             (SELECT SUM(pgsize) FROM dbstat WHERE name IN \
             (SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = '{name}'))"
        ),
    }
}

pub(super) fn judge(
    settings: &Settings,
    totals: &AuditTotals,
    answers: &[TextRows],
) -> Vec<AuditRow> {
    let (tables, per_transaction) = (settings.tables, settings.rows_per_transaction);
    let filled = tables * settings.table_size;
    let counted = answers.first().and_then(|answer| number_in(answer, 0, 0));
    let mut rows = vec![
        AuditRow::statements(1, totals),
        AuditRow::inserted(
            "rows in all tables, filled and inserted",
            (filled, per_transaction),
            totals,
            counted,
        ),
    ];
    // The sizes are the last answers.
    let before = answers.len().saturating_sub(tables as usize).max(1);
    for idx in 0..tables {
        let name = schema::table_name(settings.key, idx);
        rows.extend(sizes(&name, settings, answers.get(before + idx as usize)));
    }
    rows
}

/// Data and indexes of one table are there, and their bytes per row are reported.
fn sizes(name: &str, settings: &Settings, answer: Option<&TextRows>) -> [AuditRow; 2] {
    let number = |column| answer.and_then(|rows| number_in(rows, 0, column));
    let (rows, data, indexes) = (number(0), number(1), number(2));
    let row = |part: &str, bytes: Option<i128>, rest: String| {
        let measured = match (rows, bytes) {
            (Some(rows), Some(bytes)) if rows > 0 => {
                format!("{bytes} bytes, {:.1} per row of {rows}{rest}", bytes as f64 / rows as f64)
            }
            (_, Some(bytes)) => format!("{bytes} bytes"),
            (_, None) => "no number".to_owned(),
        };
        let is_there = bytes.is_some_and(|bytes| bytes > 0) || rows == Some(0);
        AuditRow::judged(format!("{part} of {name}"), "more than 0 bytes", measured, is_there)
    };
    let ratio = match (data, indexes) {
        (Some(data), Some(indexes)) if data > 0 => {
            format!(", {:.2} of the data", indexes as f64 / data as f64)
        }
        _ => String::new(),
    };
    let bare = format!("; the columns alone are {}", settings.key.row_bytes());
    [row("size of the data", data, bare), row("size of the indexes", indexes, ratio)]
}
