//! The two tables, and whether one can store the other's rows.

use dyno_workload::{Dialect, TextRows};

use super::sql::{self, create, insert, quoted, text};
use super::value::{Column, Held, Kind, held, kind};
use super::{ArchiveError, ArchiveOptions, ArchiveSide, Result, refuse};
use crate::dialects::OfOthers;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) columns: Vec<Column>,
    /// Columns of the primary key (in ClickHouse, of the sorting key, which need not be unique).
    pub(super) key: Vec<String>,
}

/// Columns are in the source's order, generated if the destination computes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) columns: Vec<Column>,
    pub(super) held: Vec<Held>,
    pub(super) key: usize,
}

/// Statements that describe a table: what it is, its columns, its key, tables that lose rows with it.
fn descriptions(dialect: Dialect, table: &str) -> [String; 4] {
    let name = text(dialect, table);
    match dialect {
        Dialect::MySql => {
            let here = format!("TABLE_SCHEMA = DATABASE() AND TABLE_NAME = {name}");
            [
                format!(
                    "SELECT CONCAT(TABLE_TYPE, ' ', ENGINE) FROM information_schema.TABLES WHERE {here}"
                ),
                format!(
                    "SELECT COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE = 'YES', 0, \
                     COALESCE(GENERATION_EXPRESSION, '') <> '' \
                     FROM information_schema.COLUMNS WHERE {here} ORDER BY ORDINAL_POSITION"
                ),
                format!(
                    "SELECT COLUMN_NAME FROM information_schema.STATISTICS WHERE {here} \
                     AND INDEX_NAME = 'PRIMARY' AND SUB_PART IS NULL ORDER BY SEQ_IN_INDEX"
                ),
                format!(
                    "SELECT TABLE_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE \
                     UNIQUE_CONSTRAINT_SCHEMA = DATABASE() AND REFERENCED_TABLE_NAME = {name} \
                     AND DELETE_RULE NOT IN ('RESTRICT', 'NO ACTION')"
                ),
            ]
        }
        Dialect::PostgreSql => {
            let class = text(dialect, &quoted(dialect, table));
            let class = format!("pg_catalog.to_regclass({class})::oid");
            [
                format!("SELECT relkind::text FROM pg_class WHERE oid = {class}"),
                format!(
                    "SELECT attname, pg_catalog.format_type(atttypid, atttypmod), (NOT attnotnull)::int, \
                     (typtype = 'e')::int, \
                     (COALESCE(pg_catalog.to_jsonb(pg_attribute) ->> 'attgenerated', '') <> '')::int \
                     FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid \
                     WHERE attrelid = {class} AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
                ),
                format!(
                    "SELECT attname FROM pg_index JOIN pg_attribute ON attrelid = indrelid \
                     AND attnum = ANY (indkey) WHERE indrelid = {class} AND indisprimary"
                ),
                format!(
                    "SELECT conrelid::regclass::text FROM pg_constraint WHERE confrelid = {class} \
                     AND contype = 'f' AND confdeltype IN ('c', 'n', 'd')"
                ),
            ]
        }
        Dialect::ClickHouse | Dialect::Sqlite => {
            let here = format!("database = currentDatabase() AND table = {name}");
            let named = format!("database = currentDatabase() AND name = {name}");
            [
                format!("SELECT engine FROM system.tables WHERE {named}"),
                format!(
                    "SELECT name, type, '0', concat(default_kind, ' ') FROM system.columns WHERE {here}"
                ),
                format!("SELECT sorting_key FROM system.tables WHERE {named}"),
                "SELECT 1 WHERE 0".to_owned(),
            ]
        }
    }
}

fn is_plain(dialect: Dialect, what: &str) -> bool {
    match dialect {
        Dialect::MySql => ["BASE TABLE InnoDB", "BASE TABLE ROCKSDB"].contains(&what),
        Dialect::PostgreSql => what == "r",
        Dialect::ClickHouse => ["MergeTree", "ReplicatedMergeTree"].contains(&what),
        Dialect::Sqlite => false,
    }
}

fn plain_tables(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::MySql => "base tables of the engines InnoDB and MyRocks",
        Dialect::PostgreSql => "plain tables, not views, partitioned or foreign ones",
        _ => "tables of the engine MergeTree: others merge, forward or discard rows",
    }
}

/// Reads what a table is; none if it is not there. `deletes` if rows are deleted from it.
pub(super) fn read(side: &mut ArchiveSide, table: &str, deletes: bool) -> Result<Option<Table>> {
    let dialect = side.dialect;
    let [what, columns, key, losers] = descriptions(dialect, table);
    let Some(what) = side.cell("look for the table", &what)? else { return Ok(None) };
    if !is_plain(dialect, &what) {
        let plain = plain_tables(dialect);
        return refuse(format!("`{table}` is `{what}`; rows are moved from and to {plain}"));
    }
    if deletes && let Some(loser) = side.cell("read foreign keys", &losers)? {
        return refuse(format!(
            "a foreign key would delete or change rows of `{loser}` together with those of \
             `{table}`; archive `{loser}` first, and change the key to ON DELETE RESTRICT"
        ));
    }
    if let Some(asked) = sql::of_others(dialect, table) {
        let found =
            OfOthers::all(side.rows("read the owners of the table and its triggers", &asked)?);
        if let Some(why) = OfOthers::refusal(&found) {
            return refuse(why);
        }
    }
    let columns = columns_of(dialect, side.rows("read the columns", &columns)?);
    let key = side.rows("read the primary key", &key)?;
    let key = key.into_iter().flatten().flatten().collect();
    Ok(Some(Table { columns, key }))
}

fn columns_of(dialect: Dialect, rows: TextRows) -> Vec<Column> {
    let column = |row: Vec<Option<String>>| {
        let mut cells = row.into_iter().map(Option::unwrap_or_default);
        let mut next = || cells.next().unwrap_or_default();
        let (name, declared, is_nullable, is_enumeration) = (next(), next(), next(), next());
        let is_generated = next() == "1";
        let is_nullable = match dialect {
            Dialect::ClickHouse => declared.starts_with("Nullable("),
            _ => is_nullable == "1",
        };
        let kind = kind(dialect, &declared, is_enumeration == "1");
        Column { name, declared, kind, is_nullable, is_generated }
    };
    rows.into_iter().map(column).collect()
}

pub(super) fn of_source(
    side: &mut ArchiveSide,
    options: &ArchiveOptions,
) -> Result<(Table, usize)> {
    let name = &options.table;
    let Some(table) = read(side, name, true)? else {
        return refuse(format!("the source has no table `{name}`"));
    };
    check_source(name, &table).map(|key| (table, key)).map_err(ArchiveError::new)
}

/// The index of the key's column.
pub(super) fn check_source(name: &str, table: &Table) -> Result<usize, String> {
    let [key] = &table.key[..] else {
        return Err(format!(
            "`{name}` has {}; Dyno identifies rows by a primary key of one column",
            match table.key.len() {
                0 => "no primary key (or one on prefixes of strings)".to_owned(),
                n => format!("a primary key of {n} columns"),
            }
        ));
    };
    if let Some(column) = table.columns.iter().find(|column| column.kind.is_none()) {
        return Err(format!(
            "the column `{}` of `{name}` is {}, whose values Dyno cannot carry over exactly",
            column.name, column.declared
        ));
    }
    let is_key = |column: &Column| column.name == *key;
    let found = table.columns.iter().position(is_key).ok_or("the primary key has no column")?;
    match table.columns[found].kind {
        Some(Kind::Integer { .. } | Kind::Text | Kind::Bytes) => Ok(found),
        _ => Err(format!(
            "the primary key of `{name}` is {}; Dyno identifies rows by a whole number, a string \
             or bytes",
            table.columns[found].declared
        )),
    }
}

/// The route to the destination's table, which is made if that is asked for.
pub(super) fn route(
    to: &mut ArchiveSide,
    options: &ArchiveOptions,
    (source, key): (Table, usize),
) -> Result<Route> {
    let name = &options.table;
    let mut found = read(to, name, false)?;
    if found.is_none() {
        if !options.creates {
            return refuse(format!(
                "the destination has no table `{name}`; create it there, or give --create"
            ));
        }
        if to.dialect != Dialect::ClickHouse {
            return refuse(format!(
                "Dyno creates tables in ClickHouse only; create `{name}` at the destination, with \
                 the definition it has in the source"
            ));
        }
        let statement = create(name, &source.columns, &source.columns[key].name);
        to.rows("create the table", &statement)?;
        found = read(to, name, false)?;
    }
    let Some(found) = found else {
        return refuse(format!(
            "`{name}` was created at the destination, but is not visible there"
        ));
    };
    match_tables(to.dialect, &source, &found, key)
        .map_err(|why| ArchiveError::new(format!("the destination's table `{name}`: {why}")))
}

pub(super) fn match_tables(
    dialect: Dialect,
    source: &Table,
    to: &Table,
    key: usize,
) -> Result<Route, String> {
    let is_other = |one: &&Column| !source.columns.iter().any(|column| column.name == one.name);
    if let Some(other) = to.columns.iter().find(is_other) {
        return Err(format!("the source has no column `{}`", other.name));
    }
    if dialect != Dialect::ClickHouse && to.key != source.key {
        return Err("its primary key is a different one".to_owned());
    }
    let (mut columns, mut ways) = (Vec::new(), Vec::new());
    for column in &source.columns {
        let Some(there) = to.columns.iter().find(|one| one.name == column.name) else {
            return Err(format!("it has no column `{}`", column.name));
        };
        if there.is_generated && !column.is_generated {
            return Err(format!("its column `{}` is generated, unlike the source's", column.name));
        }
        if column.is_nullable && !there.is_nullable && !there.is_generated {
            return Err(format!("its column `{}` is NOT NULL, unlike the source's", column.name));
        }
        let way = match (dialect, column.kind) {
            (Dialect::ClickHouse, Some(kind)) => held(kind, &there.declared),
            (_, Some(kind)) => {
                there.kind.is_some_and(|other| is_alike(kind, other)).then_some(Held::Own)
            }
            (_, None) => None,
        };
        let Some(way) = way else {
            return Err(format!(
                "its column `{}` is {}, which is not the same as {}",
                column.name, there.declared, column.declared
            ));
        };
        ways.push(way);
        columns.push(Column { is_generated: there.is_generated, ..column.clone() });
    }
    Ok(Route { columns, held: ways, key })
}

/// Whether a column of `other` may hold values of `kind`; those that do not fit are refused by the server.
fn is_alike(kind: Kind, other: Kind) -> bool {
    match (kind, other) {
        (Kind::Integer { .. }, Kind::Integer { .. }) => true,
        (Kind::Decimal { scale, .. }, Kind::Decimal { scale: there, .. }) => scale <= there,
        (
            Kind::DateTime { digits, is_moment },
            Kind::DateTime { digits: there, is_moment: moment_there },
        ) => digits <= there && is_moment == moment_there,
        _ => kind == other,
    }
}

/// Refuses to begin while the server still works on what a run that was killed has sent.
pub(super) fn check_idle(to: &mut ArchiveSide, table: &str, columns: &[Column]) -> Result<()> {
    if to.dialect != Dialect::ClickHouse {
        return Ok(());
    }
    let begins = insert(to.dialect, table, columns);
    let statement = format!(
        "SELECT toString(count()) FROM system.processes WHERE startsWith(query, {})",
        text(to.dialect, begins.trim_end())
    );
    match to.cell("read what the server is doing", &statement)?.as_deref() {
        Some("0") => Ok(()),
        _ => refuse(
            "an INSERT of another run is still in progress at the destination; wait until it has ended",
        ),
    }
}
