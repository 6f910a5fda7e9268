//! Shards behind a PostgreSQL server whose tables are foreign (postgres_fdw): it sends to a shard, over its socket,
//! what a statement needs of a table there.
//!
//! By key, a table of the router is partitioned by hash, and each partition is a foreign table on one shard. A row
//! is on the shard whose partition would take it, which the server itself says (`satisfies_hash_partition`).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dyno_host::{Probe, Readings};
use dyno_units::Nanoseconds;
use dyno_units::reading::prelude::*;
use dyno_workload::{Connection, Connector, TextRows};

use super::programs::Programs;
use super::{PgConnection, check, connect, connector, quote_name, settings};
use crate::probe::{Asker, cell, number};
use crate::sharding::{Sharding, Split, SplitBy, shard_name};
use crate::{Address, DeployError, Endpoint};

/// The oldest version whose partitions can be foreign tables that take rows.
const OLDEST: u32 = 11;

/// Tables of a catalog as a statement names them, those that are foreign among them and partitions not.
const TABLES: &str = "SELECT quote_ident(c.relname) FROM pg_catalog.pg_class c \
     WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p', 'f') \
     AND NOT c.relispartition ORDER BY 1";

/// What a catalog may have that is no table, or ties tables to each other: a kind, and a statement with the
/// names of those that are there.
const UNSPLITTABLE: [(&str, &str); 4] = [
    (
        "foreign keys",
        "SELECT conname FROM pg_catalog.pg_constraint WHERE contype = 'f' \
         AND connamespace = current_schema()::regnamespace ORDER BY 1",
    ),
    (
        "triggers",
        "SELECT t.tgname FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid \
         WHERE NOT t.tgisinternal AND c.relnamespace = current_schema()::regnamespace ORDER BY 1",
    ),
    (
        "views",
        // Dyno's own says only which tables are its own.
        "SELECT viewname FROM pg_catalog.pg_views WHERE schemaname = current_schema() \
         AND viewname <> 'dyno_tables' ORDER BY 1",
    ),
    (
        "columns with a sequence that is not their own",
        "SELECT table_name || '.' || column_name FROM information_schema.columns \
         WHERE table_schema = current_schema() AND column_default LIKE 'nextval(%' \
         AND pg_get_serial_sequence(quote_ident(table_name), column_name) IS NULL ORDER BY 1",
    ),
];

/// How PostgreSQL's servers are shards.
pub(super) struct ByForeignTables;

/// Whether a server with these programs can be a router.
///
/// # Errors
///
/// It cannot: what to install.
pub(super) fn check(programs: &Programs) -> Result<(), DeployError> {
    let version = programs.version.split_whitespace().next().unwrap_or_default();
    if programs.major() < OLDEST {
        return Err(DeployError::new(format!(
            "shards need PostgreSQL {OLDEST} or later, and this is {version}"
        )));
    }
    if check::has_extension(&programs.folder, "postgres_fdw") {
        return Ok(());
    }
    Err(DeployError::new(format!(
        "shards need the extension postgres_fdw, which PostgreSQL {version} in {} does not have; install it \
         (Debian, Ubuntu: it is in the server's package), or leave `shards` out",
        programs.folder.display()
    )))
}

fn open(endpoint: &Endpoint) -> Result<PgConnection, DeployError> {
    let mut connection = connect(endpoint).map_err(|error| DeployError::new(error.to_string()))?;
    // Deleting rows, or counting them, may take long.
    connection.set_cold_limit(0);
    Ok(connection)
}

fn ask(connection: &mut PgConnection, sql: &str) -> Result<TextRows, DeployError> {
    connection.query(sql).map_err(|error| DeployError::new(error.to_string()))
}

/// The names in the first column.
fn names(rows: &TextRows) -> Vec<String> {
    rows.iter().filter_map(|row| cell(row, 0)).map(str::to_owned).collect()
}

/// A text in a statement.
fn text(value: &str) -> String {
    let quoted = value.replace('\'', "''");
    if value.contains('\\') {
        format!(" E'{}'", quoted.replace('\\', "\\\\"))
    } else {
        format!("'{quoted}'")
    }
}

/// A name without its quotes.
fn plain(quoted: &str) -> String {
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.map_or_else(|| quoted.to_owned(), |inner| inner.replace("\"\"", "\""))
}

/// Refuses a catalog with what a table cannot take with it to its shard.
fn check_catalog(connection: &mut PgConnection) -> Result<(), DeployError> {
    for (kind, sql) in UNSPLITTABLE {
        let found = names(&ask(connection, sql)?);
        if !found.is_empty() {
            return Err(DeployError::new(format!(
                "the tables cannot be split among shards, because they have {kind} ({}); choose another \
                 workload, or change its options, or leave `shards` out",
                found.join(", ")
            )));
        }
    }
    Ok(())
}

/// The statements that make a shard known to a router of this version.
fn server_statements(
    (number, version): (u32, u32),
    shard: &Endpoint,
) -> Result<[String; 2], DeployError> {
    let Address::Unix(socket) = &shard.address else {
        return Err(DeployError::new("a shard has no socket at which the router could reach it"));
    };
    let folder = socket.parent().unwrap_or(Path::new("/")).display().to_string();
    let mut options = vec![
        format!("host {}", text(&folder)),
        format!("port '{}'", settings::PORT),
        format!("dbname {}", text(&shard.catalog)),
        // Scans of several shards run at the same time, and so do commits.
        "fetch_size '1000'".to_owned(),
    ];
    options.extend((version >= 140_000).then(|| "async_capable 'true'".to_owned()));
    options.extend((version >= 150_000).then(|| "parallel_commit 'true'".to_owned()));
    let name = quote_name(&shard_name(number));
    Ok([
        format!(
            "CREATE SERVER {name} FOREIGN DATA WRAPPER postgres_fdw OPTIONS ({})",
            options.join(", ")
        ),
        format!(
            "CREATE USER MAPPING FOR CURRENT_USER SERVER {name} OPTIONS (user {})",
            text(&shard.user)
        ),
    ])
}

fn version(connection: &mut PgConnection) -> Result<u32, DeployError> {
    let rows = ask(connection, "SHOW server_version_num")?;
    let version = rows.first().and_then(|row| cell(row, 0)?.parse().ok());
    version.ok_or_else(|| DeployError::new("the router does not tell its version"))
}

/// The statements that make the router's sequences for columns of a table that are numbered, each going on where
/// that of the shard is. The rows of all shards together are numbered by the router.
fn sequence_statements(shard: &mut PgConnection, table: &str) -> Result<Vec<String>, DeployError> {
    let table = text(table);
    let sql = format!(
        "SELECT a.attname, pg_get_serial_sequence({table}, a.attname) FROM pg_catalog.pg_attribute a \
         WHERE a.attrelid = {table}::regclass AND a.attnum > 0 AND NOT a.attisdropped \
         AND pg_get_serial_sequence({table}, a.attname) IS NOT NULL"
    );
    let mut all = Vec::new();
    for row in ask(shard, &sql)?.iter() {
        let (Some(column), Some(sequence)) = (cell(row, 0), cell(row, 1)) else { continue };
        let next = format!("SELECT last_value + is_called::int FROM {sequence}");
        let next = names(&ask(shard, &next)?).pop().unwrap_or_else(|| "1".to_owned());
        let name = quote_name(&sequence_name(&table, column));
        all.push(format!("CREATE SEQUENCE {name} START {next}"));
    }
    Ok(all)
}

/// The name of the router's sequence for a column; the table is a text of a statement.
fn sequence_name(table: &str, column: &str) -> String {
    let is_word = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
    let word = |name: &str| -> String { name.chars().filter(is_word).collect() };
    format!("{}_{}_seq", word(table), word(column))
}

/// The columns of a table as a definition has them, defaults included.
fn columns(connection: &mut PgConnection, table: &str) -> Result<String, DeployError> {
    let sql = format!(
        "SELECT quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod) \
         || coalesce(' COLLATE ' || (SELECT quote_ident(n.nspname) || '.' || quote_ident(l.collname) \
         FROM pg_catalog.pg_collation l JOIN pg_catalog.pg_namespace n ON n.oid = l.collnamespace \
         WHERE l.oid = a.attcollation AND a.attcollation <> t.typcollation), '') \
         || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END \
         || CASE WHEN pg_get_serial_sequence({0}, a.attname) IS NULL \
         THEN coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '') \
         ELSE ' DEFAULT nextval(' || quote_literal(quote_ident(regexp_replace({0}, '[^A-Za-z0-9_]', '', 'g') \
         || '_' || regexp_replace(a.attname, '[^A-Za-z0-9_]', '', 'g') || '_seq')) || ')' END \
         FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
         LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
         WHERE a.attrelid = {0}::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
        text(table)
    );
    Ok(names(&ask(connection, &sql)?).join(", "))
}

/// Where a table of the router is.
enum At<'a> {
    /// Whole, on the shard with this number.
    Shard(u32),
    /// Its rows on so many shards, by the hash of this column.
    Key { column: &'a str, shards: u32 },
}

/// The statements that make the router's table, from the columns of that of a shard. Names are as statements have
/// them.
fn table_statements(table: &str, columns: &str, at: &At<'_>, schema: &str) -> Vec<String> {
    let remote =
        format!("OPTIONS (schema_name {}, table_name {})", text(schema), text(&plain(table)));
    let server = |number: u32| quote_name(&shard_name(number));
    match at {
        At::Shard(number) => {
            vec![format!(
                "CREATE FOREIGN TABLE {table} ({columns}) SERVER {} {remote}",
                server(*number)
            )]
        }
        At::Key { column, shards } => {
            let parent = format!("CREATE TABLE {table} ({columns}) PARTITION BY HASH ({column})");
            let part = |idx: u32| {
                let name = quote_name(&format!("{}_on_{}", plain(table), shard_name(idx + 1)));
                format!(
                    "CREATE FOREIGN TABLE {name} PARTITION OF {table} FOR VALUES WITH (MODULUS {shards}, \
                     REMAINDER {idx}) SERVER {} {remote}",
                    server(idx + 1)
                )
            };
            [parent].into_iter().chain((0..*shards).map(part)).collect()
        }
    }
}

/// The column by which rows of a table are split, and its type.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SplitColumn {
    /// As statements name it.
    name: String,
    /// `integer`.
    kind: String,
}

/// The unique indexes of a table: whether it is the primary key, its name, and its columns as statements name them,
/// in their order; an expression has no column.
type UniqueKeys = Vec<(bool, String, Vec<String>)>;

fn unique_keys(connection: &mut PgConnection, table: &str) -> Result<UniqueKeys, DeployError> {
    let sql = format!(
        "SELECT i.indisprimary, quote_ident(c.relname), coalesce(quote_ident(a.attname), '') \
         FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid \
         CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, place) \
         LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum AND a.attnum > 0 \
         WHERE i.indrelid = {}::regclass AND i.indisunique ORDER BY 1 DESC, 2, k.place",
        text(table)
    );
    let rows = ask(connection, &sql)?;
    let mut keys: UniqueKeys = Vec::new();
    for row in rows.iter() {
        let (Some(primary), Some(index), Some(column)) = (cell(row, 0), cell(row, 1), cell(row, 2))
        else {
            continue;
        };
        match keys.last_mut().filter(|(_, last, _)| last == index) {
            Some((_, _, columns)) => columns.push(column.to_owned()),
            None => keys.push((primary == "t", index.to_owned(), vec![column.to_owned()])),
        }
    }
    Ok(keys)
}

/// The column by which rows of a table are split, from its unique keys.
///
/// # Errors
///
/// The table cannot be split by key: why.
fn split_column(table: &str, keys: &UniqueKeys) -> Result<String, DeployError> {
    let refused = |why: String| {
        Err(DeployError::new(format!(
            "the table {table} cannot be split by key: {why}; write shard_by = \"table\", or choose another \
             workload, or change its options"
        )))
    };
    let primary = keys.iter().find(|(is_primary, _, _)| *is_primary);
    let Some(column) = primary.and_then(|(_, _, columns)| columns.first()) else {
        return refused("it has no primary key".to_owned());
    };
    // Otherwise no server could tell whether a key is there already.
    match keys.iter().find(|(_, _, columns)| !columns.contains(column)) {
        Some((_, index, _)) => refused(format!(
            "its unique index {index} does not include {column}, the first column of its primary key"
        )),
        None => Ok(column.clone()),
    }
}

/// The column by which each table is split.
fn split_columns(
    connection: &mut PgConnection,
    tables: &[String],
) -> Result<Vec<SplitColumn>, DeployError> {
    let column = |table: &String| {
        let name = split_column(table, &unique_keys(connection, table)?)?;
        let sql = format!(
            "SELECT format_type(atttypid, NULL) FROM pg_catalog.pg_attribute WHERE attrelid = {}::regclass \
             AND quote_ident(attname) = {}",
            text(table),
            text(&name)
        );
        let rows = ask(connection, &sql)?;
        let kind = rows.first().and_then(|row| cell(row, 0)).unwrap_or_default().to_owned();
        if ["smallint", "integer", "bigint"].contains(&kind.as_str()) {
            return Ok(SplitColumn { name, kind });
        }
        Err(DeployError::new(format!(
            "the table {table} cannot be split by key: {name}, the first column of its primary key, is of \
             type {kind} and not an integer; write shard_by = \"table\""
        )))
    };
    tables.iter().map(column).collect()
}

/// Whether a row is on the shard with this number, from 0. The session has a table that is partitioned as the
/// router's, whose partitions the server asks.
fn is_own(
    connection: &mut PgConnection,
    column: &SplitColumn,
    (idx, shards): (u32, u32),
) -> Result<String, DeployError> {
    let model = format!("dyno_split_by_{}", column.kind);
    ask(
        connection,
        &format!(
            "CREATE TEMPORARY TABLE IF NOT EXISTS {model} (k {}) PARTITION BY HASH (k)",
            column.kind
        ),
    )?;
    Ok(format!(
        "satisfies_hash_partition('pg_temp.{model}'::regclass, {shards}, {idx}, {})",
        column.name
    ))
}

/// Takes from a shard the rows of all tables that are not its own, and returns how many it keeps.
fn keep_own_rows(
    shard: &Endpoint,
    tables: &[(&String, &SplitColumn)],
    part: (u32, u32),
) -> Result<u64, DeployError> {
    let mut connection = open(shard)?;
    let mut n_rows = 0;
    for (table, column) in tables {
        let own = is_own(&mut connection, column, part)?;
        ask(&mut connection, &format!("DELETE FROM {table} WHERE NOT {own}"))?;
        // A table that is written anew is as small as its rows; one from which rows were deleted is not.
        ask(&mut connection, &format!("VACUUM (FULL, ANALYZE) {table}"))?;
        n_rows += count(&mut connection, table)?;
    }
    Ok(n_rows)
}

fn count(connection: &mut PgConnection, table: &str) -> Result<u64, DeployError> {
    let rows = ask(connection, &format!("SELECT count(*) FROM {table}"))?;
    let count = rows.first().and_then(|row| cell(row, 0)?.parse().ok());
    count.ok_or_else(|| DeployError::new(format!("{table}: the number of rows is not a number")))
}

/// Makes a table of the router, looks for what it stands for, and learns how large it is.
fn make_table(
    router: &mut PgConnection,
    shard: &mut PgConnection,
    table: &str,
    at: &At<'_>,
) -> Result<(), DeployError> {
    let columns = columns(shard, table)?;
    let schema = names(&ask(shard, "SELECT current_schema()")?).pop().unwrap_or_default();
    let refused = |error: DeployError| DeployError {
        message: format!("the router cannot have the table {table}: {}", error.message),
        ..error
    };
    let mut all = sequence_statements(shard, table)?;
    all.extend(table_statements(table, &columns, at, &schema));
    all.push(format!("ANALYZE {table}"));
    all.iter().try_for_each(|sql| ask(router, sql).map(|_| ()).map_err(refused))
}

/// Leaves each table on one shard, in turn.
fn split_by_table(
    router: &mut PgConnection,
    shards: &mut [PgConnection],
    tables: &[String],
) -> Result<Vec<u64>, DeployError> {
    let mut placed = vec![0; shards.len()];
    for (position, table) in tables.iter().enumerate() {
        let owner = position % shards.len();
        placed[owner] += 1;
        for (_, other) in shards.iter_mut().enumerate().filter(|(idx, _)| *idx != owner) {
            ask(other, &format!("DROP TABLE {table}"))?;
        }
        make_table(router, &mut shards[owner], table, &At::Shard(owner as u32 + 1))?;
    }
    Ok(placed)
}

/// Leaves on each shard its rows of every table; all shards at the same time.
fn split_by_key(
    router: &mut PgConnection,
    first: &mut PgConnection,
    shards: &[Endpoint],
    tables: &[String],
) -> Result<Vec<u64>, DeployError> {
    let columns = split_columns(first, tables)?;
    let all: Vec<(&String, &SplitColumn)> = tables.iter().zip(&columns).collect();
    let n = shards.len() as u32;
    let kept: Vec<Result<u64, DeployError>> = std::thread::scope(|scope| {
        let (all, numbered) = (&all, (0..n).zip(shards));
        let threads: Vec<_> = numbered
            .map(|(idx, shard)| scope.spawn(move || keep_own_rows(shard, all, (idx, n))))
            .collect();
        let ended = |_| Err(DeployError::new("the thread that splits a shard's tables panicked"));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(ended)).collect()
    });
    let kept: Vec<u64> = kept.into_iter().collect::<Result<_, _>>()?;
    for (table, column) in &all {
        make_table(router, first, table, &At::Key { column: &column.name, shards: n })?;
    }
    Ok(kept)
}

/// The rows of each table of a connection's catalog.
fn counts(connection: &mut PgConnection) -> Result<BTreeMap<String, u64>, DeployError> {
    let tables = names(&ask(connection, TABLES)?);
    tables.into_iter().map(|table| Ok((table.clone(), count(connection, &table)?))).collect()
}

/// The tables of which a shard has rows that belong to another one.
fn misplaced(connection: &mut PgConnection, part: (u32, u32)) -> Result<Vec<String>, DeployError> {
    let tables = names(&ask(connection, TABLES)?);
    let columns = split_columns(connection, &tables)?;
    let mut found = Vec::new();
    for (table, column) in tables.into_iter().zip(columns) {
        let own = is_own(connection, &column, part)?;
        let sql = format!("SELECT 1 FROM {table} WHERE NOT {own} LIMIT 1");
        if !ask(connection, &sql)?.is_empty() {
            found.push(table);
        }
    }
    Ok(found)
}

impl Sharding for ByForeignTables {
    fn introduce(&self, router: &Endpoint, shards: &[Endpoint]) -> Result<(), DeployError> {
        let mut router = open(router)?;
        let version = version(&mut router)?;
        ask(&mut router, "CREATE EXTENSION IF NOT EXISTS postgres_fdw")?;
        for (number, shard) in (1..).zip(shards) {
            for statement in server_statements((number, version), shard)? {
                ask(&mut router, &statement)?;
            }
        }
        Ok(())
    }

    fn split(
        &self,
        router: &Endpoint,
        shards: &[Endpoint],
        by: SplitBy,
    ) -> Result<Split, DeployError> {
        let mut connections: Vec<PgConnection> =
            shards.iter().map(open).collect::<Result<_, _>>()?;
        let mut router = open(router)?;
        let Some(first) = connections.first_mut() else {
            return Ok(Split { tables: 0, each: Vec::new() });
        };
        check_catalog(first)?;
        let tables = names(&ask(first, TABLES)?);
        let each = match by {
            SplitBy::Table => split_by_table(&mut router, &mut connections, &tables)?,
            SplitBy::Key => split_by_key(&mut router, first, shards, &tables)?,
        };
        Ok(Split { tables: tables.len(), each })
    }

    fn tables_that_differ(
        &self,
        router: &Endpoint,
        shards: &[Endpoint],
        by: SplitBy,
    ) -> Result<(Vec<String>, usize), String> {
        let told = |error: DeployError| error.message;
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        let mut differing: BTreeSet<String> = BTreeSet::new();
        for (idx, shard) in (0..).zip(shards) {
            let mut shard = open(shard).map_err(told)?;
            for (table, rows) in counts(&mut shard).map_err(told)? {
                *sums.entry(table).or_default() += rows;
            }
            if by == SplitBy::Key {
                differing.extend(misplaced(&mut shard, (idx, shards.len() as u32)).map_err(told)?);
            }
        }
        let seen = counts(&mut open(router).map_err(told)?).map_err(told)?;
        let all: BTreeSet<&String> = sums.keys().chain(seen.keys()).collect();
        let unequal = all.iter().filter(|table| sums.get(**table) != seen.get(**table));
        differing.extend(unequal.map(|table| (*table).clone()));
        Ok((differing.into_iter().collect(), all.len()))
    }

    fn probe(&self, name: &str, shard: &Endpoint) -> Box<dyn Probe> {
        Box::new(ShardProbe::new(name, connector(shard.clone())))
    }
}

/// What [`STATISTICS`] returns, each a counter of which a reading is the growth per second.
const RATES: [&str; 5] = [
    "transactions_per_s",
    "block_requests_per_s",
    "block_reads_per_s",
    "rows_read_per_s",
    "rows_written_per_s",
];

const STATISTICS: &str = "SELECT xact_commit + xact_rollback, blks_hit + blks_read, blks_read, tup_returned, \
     tup_inserted + tup_updated + tup_deleted FROM pg_catalog.pg_stat_database WHERE datname = current_database()";

#[rustfmt::skip]
pub(super) const READINGS: &[Reading] = &[
    reading("shards.*.transactions_per_s", PerSecond, "transactions of the shard", "transactions that the router ran on this shard").topic(Topic::Instance),
    reading("shards.*.block_requests_per_s", PerSecond, "block requests of the shard", "blocks that this shard looked for in shared buffers").topic(Topic::Instance),
    reading("shards.*.block_reads_per_s", PerSecond, "block reads of the shard", "blocks that this shard did not find in shared buffers and asked the system for").topic(Topic::Instance).worse(),
    reading("shards.*.rows_read_per_s", PerSecond, "rows read by the shard", "rows that scans of this shard returned").topic(Topic::Instance),
    reading("shards.*.rows_written_per_s", PerSecond, "rows written by the shard", "rows that this shard inserted, updated or deleted").topic(Topic::Instance),
];

/// Reads the statistics of a shard.
struct ShardProbe {
    name: String,
    asker: Asker,
    /// When the counters were read last, and what they were.
    before: Option<(Nanoseconds, Vec<f64>)>,
}

impl ShardProbe {
    fn new(name: &str, connector: Connector) -> ShardProbe {
        ShardProbe { name: name.to_owned(), asker: Asker::new(connector), before: None }
    }

    fn put(&mut self, now: Nanoseconds, rows: &TextRows, readings: &mut Readings) {
        let Some(row) = rows.first() else { return };
        let value = |idx: usize| cell(row, idx).and_then(number);
        let Some(counters) = (0..RATES.len()).map(value).collect::<Option<Vec<f64>>>() else {
            return;
        };
        if let Some((at, before)) = &self.before {
            let seconds = now.saturating_sub(*at).as_secs_f64();
            for (what, (now, before)) in RATES.iter().zip(counters.iter().zip(before)) {
                // A server that was started again counts from the beginning.
                let growth = Some(now - before).filter(|growth| *growth >= 0.0 && seconds > 0.0);
                let name = format!("shards.{}.{what}", self.name);
                readings.extend(growth.map(|growth| (name, growth / seconds)));
            }
        }
        self.before = Some((now, counters));
    }
}

impl Probe for ShardProbe {
    fn registered(&self) -> Cow<'static, [Reading]> {
        READINGS.into()
    }

    fn name(&self) -> &str {
        "shards"
    }

    fn read(&mut self, now: Nanoseconds, readings: &mut Readings) {
        if let Some(rows) = self.asker.rows(now, STATISTICS) {
            self.put(now, &rows, readings);
        }
    }

    fn take_notes(&mut self) -> Vec<String> {
        self.asker.take_notes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_on_one_shard_is_a_foreign_table_with_its_columns() {
        let made = table_statements("\"T\"\"1\"", "id integer NOT NULL", &At::Shard(2), "public");
        assert_eq!(
            made,
            [
                "CREATE FOREIGN TABLE \"T\"\"1\" (id integer NOT NULL) SERVER \"shard-2\" OPTIONS (schema_name \
              'public', table_name 'T\"1')"
            ]
        );
    }

    #[test]
    fn a_table_that_is_split_by_key_has_a_partition_for_each_shard() {
        let made =
            table_statements("t", "id integer", &At::Key { column: "id", shards: 2 }, "public");
        assert_eq!(made[0], "CREATE TABLE t (id integer) PARTITION BY HASH (id)");
        assert_eq!(
            made[2],
            "CREATE FOREIGN TABLE \"t_on_shard-2\" PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 1) \
             SERVER \"shard-2\" OPTIONS (schema_name 'public', table_name 't')"
        );
        assert_eq!(made.len(), 3);
    }

    #[test]
    fn rows_are_split_by_the_first_column_of_the_primary_key_if_every_unique_index_has_it() {
        let keys = |all: &[(bool, &str, &[&str])]| -> UniqueKeys {
            let own = |columns: &[&str]| columns.iter().map(|one| (*one).to_owned()).collect();
            all.iter()
                .map(|(primary, index, columns)| (*primary, (*index).to_owned(), own(columns)))
                .collect()
        };
        let column = |all: &[(bool, &str, &[&str])]| split_column("t", &keys(all));
        assert_eq!(column(&[(true, "p", &["a", "c"]), (false, "u", &["c", "a"])]).unwrap(), "a");
        let error = |all: &[(bool, &str, &[&str])]| column(all).unwrap_err().message;
        assert!(error(&[(false, "u", &["a"])]).contains("it has no primary key; write shard_by"));
        let odd = error(&[(true, "p", &["a"]), (false, "u", &[""])]);
        assert!(odd.contains("unique index u does not include a"), "{odd}");
    }

    #[test]
    fn texts_are_quoted() {
        assert_eq!(text("it's"), "'it''s'");
        assert_eq!(text("a\\b'"), " E'a\\\\b'''");
        assert_eq!(plain("\"a\"\"b\""), "a\"b");
        assert_eq!(plain("ab"), "ab");
    }

    #[test]
    fn counters_are_read_as_rates_of_their_shard() {
        let nowhere: Connector = std::sync::Arc::new(|| {
            let (address, reason) = (String::new(), String::new());
            Err(dyno_workload::ConnectError { address, reason, details: None })
        });
        let mut probe = ShardProbe::new("shard-2", nowhere);
        let mut read = |second: u64, reads: &str| {
            let mut readings = Readings::new();
            let row = ["0", "0", reads, "0", "0"].map(|cell| Some(cell.to_owned())).to_vec();
            probe.put(Nanoseconds::from_secs(second), &vec![row], &mut readings);
            assert!(readings.keys().all(|name| READINGS.iter().any(|one| one.is_for(name))));
            readings.get("shards.shard-2.block_reads_per_s").copied()
        };
        assert_eq!(read(1, "10"), None);
        assert_eq!(read(3, "30"), Some(10.0));
        // It was started again.
        assert_eq!(read(4, "0"), None);
    }
}
