//! Shards: servers with parts of the tables, behind a router that makes them look like one. Clients reach
//! the router by its socket, and the router its shards by theirs; no member listens on a port.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dyno_host::Probe;
use dyno_workload::{Connection, TextRows};

use crate::error::{Context, Result, fail};
use crate::probe::cell;
use crate::{Address, DeployError, Endpoint};

pub const SHARDS_MAX: u32 = 8;

pub const SHARD_ROUTER: &str = "router";

/// The name of a shard among the members: `shard-1`.
pub fn shard_name(number: u32) -> String {
    format!("shard-{number}")
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SplitBy {
    /// Whole tables, in turn.
    #[default]
    Table,
    /// Rows of each table, by the remainder of the first column of its primary key.
    Key,
}

impl SplitBy {
    /// The words of all, the default first.
    pub const WORDS: [&'static str; 2] = ["table", "key"];
}

impl std::fmt::Display for SplitBy {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(SplitBy::WORDS[usize::from(*self == SplitBy::Key)])
    }
}

/// What each shard has been given, in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    pub tables: usize,
    /// How many tables (by table) or rows (by key) each shard has.
    pub each: Vec<u64>,
}

/// Where a table of the router is.
#[derive(Clone, Copy, Debug)]
pub enum At<'a> {
    /// Whole, on the shard with this number.
    Shard(u32),
    /// Its rows on several shards.
    Key { column: &'a SplitColumn, shards: u32 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitColumn {
    /// As statements name it.
    pub name: String,
    /// Its type: `bigint`.
    pub kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct UniqueKey {
    is_primary: bool,
    /// As statements name it.
    name: String,
    /// Its columns in their order, as statements name them; an expression has no column, which is empty.
    columns: Vec<String>,
}

/// The product's own SQL for parts of tables behind a router. Names of tables are quoted.
pub trait Sharding: Sync {
    /// Tells a router where its shards are, which are in the order of their numbers. Tables are then made on it by
    /// hand, or by [`split`].
    /// Fails if the router refuses.
    fn introduce(&self, router: &Endpoint, shards: &[Endpoint]) -> Result<()>;

    /// The statement that lists the tables of a catalog, those of a router as well.
    fn tables(&self) -> &'static str;

    /// Objects that are no tables, or tie tables together: kind, and a statement that lists their names.
    fn unsplittable(&self) -> &'static [(&'static str, &'static str)];

    /// Unique indexes of a table. Fails if the server does not list them.
    fn unique_keys(&self, table: &str) -> String;

    /// As the product writes it. Fails if the server does not say.
    fn type_of(&self, table: &str, column: &str) -> String;

    /// The condition for rows of a shard (index from 0, number of shards). May make what it needs in the session;
    /// fails if the server refuses that.
    fn is_own(
        &self,
        connection: &mut dyn Connection,
        column: &SplitColumn,
        part: (u32, u32),
    ) -> Result<String>;

    /// And only the disk space that they need. Fails if the server refuses.
    fn keep_rows(&self, table: &str, own: &str) -> Vec<String>;

    /// Makes the router's table with the columns of `shard`'s, and has the router look at what is behind it. Fails
    /// if a server refuses.
    fn make_table(
        &self,
        router: &mut dyn Connection,
        shard: &mut dyn Connection,
        table: &str,
        at: At<'_>,
    ) -> Result<()>;

    fn probe(&self, name: &str, shard: &Endpoint) -> Box<dyn Probe>;
}

/// Types of columns by which rows are split, as products write them.
const INTEGERS: [&str; 6] = ["tinyint", "smallint", "mediumint", "int", "integer", "bigint"];

fn open(endpoint: &Endpoint) -> Result<Box<dyn Connection>> {
    let mut connection = endpoint.protocol.connector(endpoint)()?;
    // Dropping a table, or counting its rows, may take long.
    connection.set_cold_limit(0);
    Ok(connection)
}

pub(crate) fn ask(connection: &mut dyn Connection, sql: &str) -> Result<TextRows> {
    Ok(connection.query(sql)?)
}

fn listed(sharding: &dyn Sharding, connection: &mut dyn Connection) -> Result<Vec<String>> {
    Ok(crate::dialects::listed_tables(connection, sharding.tables())?)
}

pub(crate) fn names(rows: &TextRows) -> Vec<String> {
    rows.iter().filter_map(|row| cell(row, 0)).map(str::to_owned).collect()
}

/// The unique indexes in the answer to [`Sharding::unique_keys`].
fn keys_of(rows: &TextRows) -> Vec<UniqueKey> {
    let mut keys: Vec<UniqueKey> = Vec::new();
    for row in rows.iter() {
        let (Some(primary), Some(index), Some(column)) = (cell(row, 0), cell(row, 1), cell(row, 2))
        else {
            continue;
        };
        match keys.last_mut().filter(|last| last.name == index) {
            Some(last) => last.columns.push(column.to_owned()),
            None => keys.push(UniqueKey {
                is_primary: ["t", "1"].contains(&primary),
                name: index.to_owned(),
                columns: vec![column.to_owned()],
            }),
        }
    }
    keys
}

/// Where a router reaches a shard. Fails if the shard has no socket.
pub(crate) fn socket_of(shard: &Endpoint) -> Result<&Path> {
    match &shard.address {
        Address::Unix(socket) => Ok(socket),
        Address::Tcp { .. } => fail("a shard has no socket at which the router could reach it"),
    }
}

/// Splits tables among shards with equal tables. By table, each stays on one shard, in turn; by key, each shard keeps
/// its rows of every table. Then makes the router's tables. The router must know its shards, by number. Fails if a
/// server refuses, or before any change if something cannot be split.
pub fn split(
    sharding: &dyn Sharding,
    router: &Endpoint,
    shards: &[Endpoint],
    by: SplitBy,
) -> Result<Split> {
    let mut connections = shards.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let mut router = open(router)?;
    let Some(first) = connections.first_mut() else {
        return Ok(Split { tables: 0, each: Vec::new() });
    };
    check_catalog(sharding, first.as_mut())?;
    let tables = listed(sharding, first.as_mut())?;
    let each = match by {
        SplitBy::Table => split_by_table(sharding, router.as_mut(), &mut connections, &tables)?,
        SplitBy::Key => split_by_key(sharding, router.as_mut(), first.as_mut(), shards, &tables)?,
    };
    Ok(Split { tables: tables.len(), each })
}

/// The tables whose row counts on router and shards differ or, by key, with rows on a wrong shard; and
/// the number compared. Nothing may write meanwhile. Fails if a table cannot be read.
pub fn tables_that_differ_from_shards(
    sharding: &dyn Sharding,
    router: &Endpoint,
    shards: &[Endpoint],
    by: SplitBy,
) -> Result<(Vec<String>, usize)> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    let mut differing: BTreeSet<String> = BTreeSet::new();
    for (idx, shard) in (0..).zip(shards) {
        let mut shard = open(shard)?;
        for (table, rows) in counts(sharding, shard.as_mut())? {
            let sum = sums.entry(table).or_default();
            *sum = sum.saturating_add(rows);
        }
        if by == SplitBy::Key {
            differing.extend(misplaced(sharding, shard.as_mut(), (idx, shards.len() as u32))?);
        }
    }
    let seen = counts(sharding, open(router)?.as_mut())?;
    let all: BTreeSet<&String> = sums.keys().chain(seen.keys()).collect();
    let unequal = all.iter().filter(|table| sums.get(**table) != seen.get(**table));
    differing.extend(unequal.map(|table| (*table).clone()));
    Ok((differing.into_iter().collect(), all.len()))
}

/// Refuses a catalog with what a table cannot take with it to its shard.
fn check_catalog(sharding: &dyn Sharding, connection: &mut dyn Connection) -> Result<()> {
    for (kind, sql) in sharding.unsplittable() {
        let found = names(&ask(connection, sql)?);
        if !found.is_empty() {
            return fail(format!(
                "the tables cannot be split among shards, because they have {kind} ({}); choose another \
                 workload, or change its options, or leave `shards` out",
                dyno_units::clean_text(&found.join(", "))
            ));
        }
    }
    Ok(())
}

/// Leaves each table on one shard, in turn.
fn split_by_table(
    sharding: &dyn Sharding,
    router: &mut dyn Connection,
    shards: &mut [Box<dyn Connection>],
    tables: &[String],
) -> Result<Vec<u64>> {
    let mut placed = vec![0; shards.len()];
    for (position, table) in tables.iter().enumerate() {
        let owner = position % shards.len();
        placed[owner] += 1;
        for (_, other) in shards.iter_mut().enumerate().filter(|(idx, _)| *idx != owner) {
            ask(other.as_mut(), &format!("DROP TABLE {table}"))?;
        }
        let at = At::Shard(owner as u32 + 1);
        sharding.make_table(router, shards[owner].as_mut(), table, at)?;
    }
    Ok(placed)
}

/// Leaves on each shard its rows of every table; all shards at the same time.
fn split_by_key(
    sharding: &dyn Sharding,
    router: &mut dyn Connection,
    first: &mut dyn Connection,
    shards: &[Endpoint],
    tables: &[String],
) -> Result<Vec<u64>> {
    let columns = split_columns(sharding, first, tables)?;
    let all: Vec<(&String, &SplitColumn)> = tables.iter().zip(&columns).collect();
    let n = shards.len() as u32;
    let kept: Vec<Result<u64>> = std::thread::scope(|scope| {
        let (all, numbered) = (&all, (0..n).zip(shards));
        let threads: Vec<_> = numbered
            .map(|(idx, shard)| scope.spawn(move || keep_own_rows(sharding, shard, all, (idx, n))))
            .collect();
        let ended = |_| fail("the thread that splits a shard's tables panicked");
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(ended)).collect()
    });
    let kept: Vec<u64> = kept.into_iter().collect::<Result<_, _>>()?;
    for (table, column) in all {
        sharding.make_table(router, first, table, At::Key { column, shards: n })?;
    }
    Ok(kept)
}

/// Takes from a shard the rows of all tables that are not its own, and returns how many it keeps.
fn keep_own_rows(
    sharding: &dyn Sharding,
    shard: &Endpoint,
    tables: &[(&String, &SplitColumn)],
    part: (u32, u32),
) -> Result<u64> {
    let mut connection = open(shard)?;
    let mut n_rows = 0;
    for (table, column) in tables {
        let own = sharding.is_own(connection.as_mut(), column, part)?;
        for sql in sharding.keep_rows(table, &own) {
            ask(connection.as_mut(), &sql)?;
        }
        n_rows = count(connection.as_mut(), table)?.saturating_add(n_rows);
    }
    Ok(n_rows)
}

fn split_columns(
    sharding: &dyn Sharding,
    connection: &mut dyn Connection,
    tables: &[String],
) -> Result<Vec<SplitColumn>> {
    let mut columns = Vec::new();
    for table in tables {
        let keys = keys_of(&ask(connection, &sharding.unique_keys(table))?);
        let name = split_column(table, &keys)?;
        let kind = ask(connection, &sharding.type_of(table, &name))?;
        let kind = names(&kind).pop().unwrap_or_default();
        if !INTEGERS.contains(&kind.as_str()) {
            return fail(format!(
                "the table {table} cannot be split by key: {name}, the first column of its primary key, is of \
                 type {kind} and not an integer; write shard_by = \"table\""
            ));
        }
        columns.push(SplitColumn { name, kind });
    }
    Ok(columns)
}

/// Chosen from the unique keys. Fails, with the reason, if the table cannot be split by key.
fn split_column(table: &str, keys: &[UniqueKey]) -> Result<String> {
    let refused = |why: String| {
        fail(format!(
            "the table {table} cannot be split by key: {why}; write shard_by = \"table\", or choose another \
             workload, or change its options"
        ))
    };
    let primary = keys.iter().find(|key| key.is_primary);
    let Some(column) = primary.and_then(|key| key.columns.first()) else {
        return refused("it has no primary key".to_owned());
    };
    // Otherwise no server could tell whether a key is there already.
    match keys.iter().find(|key| !key.columns.contains(column)) {
        Some(key) => refused(format!(
            "its unique index {} does not include {column}, the first column of its primary key",
            key.name
        )),
        None => Ok(column.clone()),
    }
}

fn count(connection: &mut dyn Connection, table: &str) -> Result<u64> {
    let rows = ask(connection, &format!("SELECT COUNT(*) FROM {table}")).context(table)?;
    let count = rows.first().and_then(|row| cell(row, 0)?.parse().ok());
    count.ok_or_else(|| DeployError::new(format!("{table}: the number of rows is not a number")))
}

fn counts(
    sharding: &dyn Sharding,
    connection: &mut dyn Connection,
) -> Result<BTreeMap<String, u64>> {
    let tables = listed(sharding, connection)?;
    tables.into_iter().map(|table| Ok((table.clone(), count(connection, &table)?))).collect()
}

/// The tables of which a shard has rows that belong to another one.
fn misplaced(
    sharding: &dyn Sharding,
    connection: &mut dyn Connection,
    part: (u32, u32),
) -> Result<Vec<String>> {
    let tables = listed(sharding, connection)?;
    let columns = split_columns(sharding, connection, &tables)?;
    let mut found = Vec::new();
    for (table, column) in tables.into_iter().zip(columns) {
        let own = sharding.is_own(connection, &column, part)?;
        let sql = format!("SELECT 1 FROM {table} WHERE NOT ({own}) LIMIT 1");
        if !ask(connection, &sql)?.is_empty() {
            found.push(table);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use dyno_host::Readings;
    use dyno_units::Nanoseconds;
    use dyno_units::reading::prelude::*;
    use dyno_workload::NamedRows;

    use super::*;
    use crate::probe::{Counters, Table, named_numbers, rate};

    #[test]
    fn rows_are_split_by_the_first_column_of_the_primary_key_if_every_unique_index_has_it() {
        let rows = |all: &[[&str; 3]]| -> TextRows {
            all.iter().map(|row| row.map(|text| Some(text.to_owned())).to_vec()).collect()
        };
        let column = |all: &[[&str; 3]]| split_column("t", &keys_of(&rows(all)));
        let both = [["t", "p", "a"], ["t", "p", "c"], ["f", "u", "c"], ["f", "u", "a"]];
        assert_eq!(column(&both).unwrap(), "a");
        let error = |all: &[[&str; 3]]| column(all).unwrap_err().message;
        assert!(error(&[["0", "u", "a"]]).contains("it has no primary key; write shard_by"));
        for other in ["b", ""] {
            let odd = error(&[["1", "p", "a"], ["0", "`u`", other]]);
            assert!(odd.contains("unique index `u` does not include a"), "{odd}");
        }
    }

    #[rustfmt::skip]
    const COUNTERS: Counters = Counters {
        probe: "shards",
        statement: "",
        values: named_numbers,
        items: &[rate("reads", reading("shards.*.reads_per_s", PerSecond, "reads", "reads of the shard").topic(Topic::Instance))],
    };

    #[test]
    fn counters_are_read_as_rates_of_their_shard() {
        let mut table = Table::new(COUNTERS.items);
        let mut read = |second: u64, reads: &str| {
            let mut readings = Readings::new();
            let rows = vec![vec![Some(reads.to_owned())]];
            let answer = NamedRows { columns: vec!["reads".to_owned()], rows };
            let now = Nanoseconds::from_secs(second);
            COUNTERS.put(("shard-2", &mut table), now, &answer, &mut readings);
            assert!(readings.keys().all(|name| COUNTERS.readings()[0].is_for(name)));
            readings
        };
        assert_eq!(read(1, "10"), [].into());
        assert_eq!(read(3, "30"), [("shards.shard-2.reads_per_s".to_owned(), 10.0)].into());
        // It was started again.
        assert_eq!(read(4, "0"), [].into());
    }
}
