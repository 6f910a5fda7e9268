//! Table, index and queries, in dialects with vectors.

use std::fmt::Write as _;

use crate::prelude::*;

use super::settings::{Distance, Index};

pub(super) const TABLE: &str = "vectors";

const INDEX: &str = "vectors_v";

/// The empty table. SQLite has no vectors, and its table only holds them.
pub(super) fn table(dialect: Dialect, rows: u64, dimensions: usize) -> Table {
    let create = match dialect {
        Dialect::MySql => format!(
            "CREATE TABLE {TABLE} (id INT NOT NULL PRIMARY KEY, v VECTOR({dimensions}) NOT NULL)"
        ),
        Dialect::PostgreSql => format!(
            "CREATE EXTENSION IF NOT EXISTS vector; \
             CREATE TABLE {TABLE} (id int NOT NULL PRIMARY KEY, v vector({dimensions}) NOT NULL)"
        ),
        Dialect::Sqlite | Dialect::ClickHouse => {
            format!("CREATE TABLE {TABLE} (id INTEGER NOT NULL PRIMARY KEY, v BLOB NOT NULL)")
        }
    };
    let (columns, after) = (names(&["id", "v"]), vec![dialect.analyze(TABLE)]);
    Table { name: TABLE.to_owned(), create, columns, rows, after }
}

/// `[1,2.5]` in PostgreSQL, elsewhere the numbers' bytes, the lowest first.
pub(super) fn push_vector(out: &mut Vec<u8>, dialect: Dialect, vector: &[f32]) {
    if dialect != Dialect::PostgreSql {
        vector.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
        return;
    }
    let mut text = String::with_capacity(vector.len() * 12);
    for (nth, number) in vector.iter().enumerate() {
        // The shortest text that is read as the same number. Writing into memory cannot fail.
        let _ = write!(text, "{}{number}", if nth == 0 { '[' } else { ',' });
    }
    text.push(']');
    out.extend_from_slice(text.as_bytes());
}

pub(super) fn push_row(row: &mut Row, dialect: Dialect, id: u64, vector: &[f32]) {
    row.push_integer(id as i64);
    row.push_text_with(|bytes| push_vector(bytes, dialect, vector));
}

pub(super) fn create_index(dialect: Dialect, index: Index, distance: Distance) -> Option<String> {
    let operators = match distance {
        Distance::L2 => "vector_l2_ops",
        Distance::Cosine => "vector_cosine_ops",
    };
    Some(match (index, dialect) {
        (Index::None, _) | (_, Dialect::Sqlite | Dialect::ClickHouse) => return None,
        (Index::Hnsw { m, .. }, Dialect::MySql) => {
            let distance = match distance {
                Distance::L2 => "euclidean",
                Distance::Cosine => "cosine",
            };
            format!("CREATE VECTOR INDEX {INDEX} ON {TABLE} (v) M={m} DISTANCE={distance}")
        }
        (Index::Hnsw { m, ef_construction }, Dialect::PostgreSql) => format!(
            "CREATE INDEX {INDEX} ON {TABLE} USING hnsw (v {operators}) \
             WITH (m = {m}, ef_construction = {ef_construction})"
        ),
        (Index::IvfFlat { .. }, Dialect::MySql) => return None,
        (Index::IvfFlat { lists }, Dialect::PostgreSql) => format!(
            "CREATE INDEX {INDEX} ON {TABLE} USING ivfflat (v {operators}) WITH (lists = {lists})"
        ),
    })
}

/// Asks for the bytes of the index on disk. InnoDB keeps the graph in a file of its own.
pub(super) fn index_size(dialect: Dialect) -> String {
    match dialect {
        Dialect::MySql => format!(
            "SELECT SUM(file_size) FROM information_schema.innodb_sys_tablespaces \
             WHERE name LIKE CONCAT(DATABASE(), '/{TABLE}#i#%')"
        ),
        Dialect::PostgreSql | Dialect::Sqlite | Dialect::ClickHouse => {
            format!("SELECT pg_relation_size('{INDEX}')")
        }
    }
}

/// With session settings; by the index with this search parameter, or by a scan.
pub(super) fn query(
    dialect: Dialect,
    (k, distance): (u64, Distance),
    search: Option<(Index, u64)>,
) -> Vec<Statement> {
    let sql = match dialect {
        Dialect::MySql => {
            let function = match distance {
                Distance::L2 => "VEC_DISTANCE_EUCLIDEAN",
                Distance::Cosine => "VEC_DISTANCE_COSINE",
            };
            let hint =
                if search.is_some() { format!("FORCE INDEX ({INDEX}) ") } else { String::new() };
            // Dyno sends a parameter as text, which MariaDB does not take for a vector.
            let query = format!("{function}(v, CAST(? AS BINARY))");
            format!("SELECT id FROM {TABLE} {hint}ORDER BY {query} LIMIT {k}")
        }
        Dialect::PostgreSql | Dialect::Sqlite | Dialect::ClickHouse => {
            let operator = match distance {
                Distance::L2 => "<->",
                Distance::Cosine => "<=>",
            };
            format!("SELECT id FROM {TABLE} ORDER BY v {operator} $1 LIMIT {k}")
        }
    };
    let mut all = vec![Statement::new(sql, StatementClass::Read).keeping_rows()];
    let set = |sql: String| Statement::set_up(sql);
    match (dialect, search) {
        (Dialect::MySql, Some((_, number))) => {
            all.push(set(format!("SET SESSION mhnsw_ef_search = {number}")));
        }
        (Dialect::PostgreSql, Some((index, number))) => {
            let name = match index {
                Index::IvfFlat { .. } => "ivfflat.probes",
                Index::Hnsw { .. } | Index::None => "hnsw.ef_search",
            };
            all.push(set(format!("SET {name} = {number}")));
            all.push(set("SET enable_seqscan = off".to_owned()));
        }
        _ => {}
    }
    all
}

/// Asks for the number of rows and a checksum of all vectors, with the name of the checksum.
pub(super) fn checksum(dialect: Dialect) -> String {
    match dialect {
        Dialect::MySql => {
            format!("SELECT COUNT(*), COALESCE(SUM(CRC32(v)), 0), 'crc32' FROM {TABLE}")
        }
        Dialect::PostgreSql => format!(
            "SELECT count(*), \
             COALESCE(SUM(('x' || substr(md5(vector_send(v)), 1, 8))::bit(32)::bigint), 0), 'md5' \
             FROM {TABLE}"
        ),
        Dialect::Sqlite | Dialect::ClickHouse => format!("SELECT COUNT(*), NULL, '' FROM {TABLE}"),
    }
}
