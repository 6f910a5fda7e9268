//! Shards behind a MariaDB server whose tables have the storage engine Spider: it sends to a shard, over its
//! socket, what a statement needs of a table there.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dyno_host::{Probe, Readings};
use dyno_units::Nanoseconds;
use dyno_units::reading::prelude::*;
use dyno_workload::{Connection, Connector, TextRows};

use super::install::Install;
use super::replica::TABLES;
use super::{MySqlConnection, connect, connector};
use crate::probe::{Asker, cell, number};
use crate::sharding::{Sharding, Split, SplitBy, shard_name};
use crate::{Address, DeployError, Endpoint};

/// The plug-in with the engine.
const PLUGIN: &str = "ha_spider.so";

/// Folders of plug-ins below that of the server.
const PLUGIN_FOLDERS: [&str; 3] = ["lib/mysql/plugin", "lib64/mysql/plugin", "lib/plugin"];

/// What a catalog may have that is no table, or ties tables to each other: a kind, and a statement with the
/// names of those that are there.
const UNSPLITTABLE: [(&str, &str); 3] = [
    (
        "foreign keys",
        "SELECT constraint_name FROM information_schema.referential_constraints \
         WHERE constraint_schema = DATABASE() ORDER BY 1",
    ),
    (
        "triggers",
        "SELECT trigger_name FROM information_schema.triggers \
         WHERE trigger_schema = DATABASE() ORDER BY 1",
    ),
    (
        "views",
        // Dyno's own says only which tables are its own.
        "SELECT table_name FROM information_schema.views \
         WHERE table_schema = DATABASE() AND table_name <> 'dyno_tables' ORDER BY 1",
    ),
];

/// How MariaDB's servers are shards.
pub(super) struct Spider;

/// Whether the engine is installed.
///
/// # Errors
///
/// It is not: what to install.
pub(super) fn check(install: &Install) -> Result<(), DeployError> {
    if !install.is_mariadb() {
        return Err(DeployError::new("shards need MariaDB; leave `shards` out"));
    }
    let own = PLUGIN_FOLDERS.iter().map(|folder| install.base.join(folder));
    let folders = install.plugins.iter().cloned().chain(own);
    if folders.into_iter().any(|folder| has_plugin(&folder)) {
        return Ok(());
    }
    Err(DeployError::new(format!(
        "shards need the storage engine Spider ({PLUGIN}), which this MariaDB {} does not have; install it \
         (Debian, Ubuntu: package `mariadb-plugin-spider`), or leave `shards` out",
        install.version
    )))
}

fn has_plugin(folder: &Path) -> bool {
    folder.join(PLUGIN).is_file()
}

fn open(endpoint: &Endpoint) -> Result<MySqlConnection, DeployError> {
    let mut connection = connect(endpoint).map_err(|error| DeployError::new(error.to_string()))?;
    // Dropping a table, or counting its rows, may take long.
    connection.set_cold_limit(0);
    Ok(connection)
}

fn ask(connection: &mut MySqlConnection, sql: &str) -> Result<TextRows, DeployError> {
    connection.query(sql).map_err(|error| DeployError::new(error.to_string()))
}

/// The names in the first column.
fn names(rows: &TextRows) -> Vec<String> {
    rows.iter().filter_map(|row| cell(row, 0)).map(str::to_owned).collect()
}

/// Refuses a catalog with what a table cannot take with it to its shard.
fn check_catalog(connection: &mut MySqlConnection) -> Result<(), DeployError> {
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

/// The statement that makes a shard known to the router.
fn server_statement(number: u32, shard: &Endpoint) -> Result<String, DeployError> {
    let Address::Unix(socket) = &shard.address else {
        return Err(DeployError::new("a shard has no socket at which the router could reach it"));
    };
    let text = |text: &str| text.replace('\\', "\\\\").replace('\'', "''");
    Ok(format!(
        "CREATE SERVER `{}` FOREIGN DATA WRAPPER mysql OPTIONS (SOCKET '{}', DATABASE '{}', USER '{}')",
        shard_name(number),
        text(&socket.display().to_string()),
        text(&shard.catalog),
        text(&shard.user),
    ))
}

/// The statement that makes the router's table, from that of a shard (`SHOW CREATE TABLE`): the same columns
/// and indexes. Names are as statements have them, with backticks.
fn table_statement(table: &str, at: &At<'_>, of_shard: &str) -> Result<String, DeployError> {
    const END: &str = "\n) ENGINE=";
    let Some((columns, options)) = of_shard.rsplit_once(END) else {
        return Err(DeployError::new(format!(
            "the definition of the table {table} is not understood: {of_shard}"
        )));
    };
    let first_line = options.lines().next().unwrap_or_default();
    let kept = ["CHARSET=", "COLLATE="];
    let kept = first_line.split(' ').filter(|word| kept.iter().any(|one| word.starts_with(one)));
    let kept: String = kept.map(|word| format!(" {word}")).collect();
    let name = plain(table);
    if name.contains(['"', '\'', '\\']) {
        return Err(DeployError::new(format!(
            "the table {table} cannot be on a shard: its name contains a quotation mark or a backslash"
        )));
    }
    let begin = format!("{columns}\n) ENGINE=SPIDER{kept} COMMENT='wrapper \"mysql\", ");
    Ok(match at {
        At::Shard(number) => {
            format!("{begin}srv \"{}\", table \"{name}\"'", shard_name(*number))
        }
        At::Key { column, shards } => {
            let part = |idx: u32| {
                format!(
                    "PARTITION `p{idx}` COMMENT = 'srv \"{}\"' ENGINE = SPIDER",
                    shard_name(idx + 1)
                )
            };
            let parts: Vec<String> = (0..*shards).map(part).collect();
            format!("{begin}table \"{name}\"' PARTITION BY HASH ({column}) ({})", parts.join(", "))
        }
    })
}

/// Where a table of the router is.
enum At<'a> {
    /// Whole, on the shard with this number.
    Shard(u32),
    /// Its rows on so many shards, by the remainder of this column (with backticks).
    Key { column: &'a str, shards: u32 },
}

/// A name without its backticks.
fn plain(quoted: &str) -> String {
    let inner = quoted.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
    inner.unwrap_or(quoted).replace("``", "`")
}

/// The number of the shard, from 0, that has a row: as the server's `PARTITION BY HASH` computes it, which takes
/// the remainder of a signed number and then its absolute value.
fn shard_of(column: &str, shards: u32) -> String {
    format!("ABS(MOD(CAST({column} AS SIGNED), {shards}))")
}

/// The indexes of a table without equal keys, as columns in their order, the primary key first.
fn unique_keys(
    connection: &mut MySqlConnection,
    table: &str,
) -> Result<Vec<(String, Vec<String>)>, DeployError> {
    let name = plain(table).replace('\\', "\\\\").replace('\'', "''");
    let rows = ask(
        connection,
        &format!(
            "SELECT index_name, column_name FROM information_schema.statistics WHERE table_schema = \
             DATABASE() AND table_name = '{name}' AND non_unique = 0 \
             ORDER BY index_name <> 'PRIMARY', index_name, seq_in_index"
        ),
    )?;
    let mut keys: Vec<(String, Vec<String>)> = Vec::new();
    for row in rows.iter() {
        let (Some(index), Some(column)) = (cell(row, 0), cell(row, 1)) else { continue };
        match keys.last_mut().filter(|(last, _)| last == index) {
            Some((_, columns)) => columns.push(column.to_owned()),
            None => keys.push((index.to_owned(), vec![column.to_owned()])),
        }
    }
    Ok(keys)
}

/// The column by which rows of a table are split, from its unique keys; in backticks.
///
/// # Errors
///
/// The table cannot be split by key: why.
fn split_column(table: &str, keys: &[(String, Vec<String>)]) -> Result<String, DeployError> {
    let refused = |why: String| {
        Err(DeployError::new(format!(
            "the table {table} cannot be split by key: {why}; write shard_by = \"table\", or choose another \
             workload, or change its options"
        )))
    };
    let Some((_, primary)) = keys.iter().find(|(index, _)| index == "PRIMARY") else {
        return refused("it has no primary key".to_owned());
    };
    let Some(column) = primary.first() else {
        return refused("its primary key has no columns".to_owned());
    };
    // Otherwise no server could tell whether a key is there already.
    match keys.iter().find(|(_, columns)| !columns.contains(column)) {
        Some((index, _)) => refused(format!(
            "its unique index `{index}` does not include `{column}`, the first column of its primary key"
        )),
        None => Ok(format!("`{}`", column.replace('`', "``"))),
    }
}

/// The column by which each table is split.
fn split_columns(
    connection: &mut MySqlConnection,
    tables: &[String],
) -> Result<Vec<String>, DeployError> {
    let column = |table: &String| {
        let column = split_column(table, &unique_keys(connection, table)?)?;
        let name = |text: &str| plain(text).replace('\\', "\\\\").replace('\'', "''");
        let sql = format!(
            "SELECT data_type FROM information_schema.columns WHERE table_schema = DATABASE() AND \
             table_name = '{}' AND column_name = '{}'",
            name(table),
            name(&column)
        );
        let rows = ask(connection, &sql)?;
        let kind = rows.first().and_then(|row| cell(row, 0)).unwrap_or_default().to_owned();
        if kind.ends_with("int") {
            return Ok(column);
        }
        Err(DeployError::new(format!(
            "the table {table} cannot be split by key: {column}, the first column of its primary key, is of \
             type {kind} and not an integer; write shard_by = \"table\""
        )))
    };
    tables.iter().map(column).collect()
}

/// Takes from a shard the rows of all tables that are not its own, and returns how many it keeps.
fn keep_own_rows(
    shard: &Endpoint,
    tables: &[(&String, &String)],
    (idx, shards): (u32, u32),
) -> Result<u64, DeployError> {
    /// The table that takes a table's place.
    const PART: &str = "`dyno_shard_part`";
    let mut connection = open(shard)?;
    // InnoDB then fills an empty table in bulk.
    ask(&mut connection, "SET SESSION unique_checks = 0, SESSION foreign_key_checks = 0")?;
    let mut n_rows = 0;
    for (table, column) in tables {
        let own = format!("{} = {idx}", shard_of(column, shards));
        // A table that is written anew is as small as its rows; one from which rows were deleted is not.
        ask(&mut connection, &format!("CREATE TABLE {PART} LIKE {table}"))?;
        ask(&mut connection, &format!("INSERT INTO {PART} SELECT * FROM {table} WHERE {own}"))?;
        ask(&mut connection, &format!("DROP TABLE {table}"))?;
        ask(&mut connection, &format!("RENAME TABLE {PART} TO {table}"))?;
        let rows = ask(&mut connection, &format!("SELECT COUNT(*) FROM {table}"))?;
        n_rows += rows.first().and_then(|row| cell(row, 0)?.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(n_rows)
}

/// Makes a table of the router, and looks for what it stands for.
fn make_table(
    router: &mut MySqlConnection,
    shard: &mut MySqlConnection,
    table: &str,
    at: &At<'_>,
) -> Result<(), DeployError> {
    let shown = ask(shard, &format!("SHOW CREATE TABLE {table}"))?;
    let shown = shown.first().and_then(|row| cell(row, 1)).unwrap_or_default();
    let refused = |error: DeployError| DeployError {
        message: format!("the router cannot create the table {table}: {}", error.message),
        ..error
    };
    let statement = table_statement(table, at, shown)?;
    ask(router, &statement).map_err(refused)?;
    // The engine does not look for its shard before it is asked.
    ask(router, &format!("SELECT 1 FROM {table} LIMIT 1")).map_err(refused)?;
    Ok(())
}

/// Leaves each table on one shard, in turn.
fn split_by_table(
    router: &mut MySqlConnection,
    shards: &mut [MySqlConnection],
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
    router: &mut MySqlConnection,
    first: &mut MySqlConnection,
    shards: &[Endpoint],
    tables: &[String],
) -> Result<Vec<u64>, DeployError> {
    let columns = split_columns(first, tables)?;
    let all: Vec<(&String, &String)> = tables.iter().zip(&columns).collect();
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
        make_table(router, first, table, &At::Key { column, shards: n })?;
    }
    Ok(kept)
}

/// The rows of each table of a connection's catalog.
fn counts(connection: &mut MySqlConnection) -> Result<BTreeMap<String, u64>, String> {
    let told = |error: DeployError| error.message;
    let tables = names(&ask(connection, TABLES).map_err(told)?);
    let count = |table: String| {
        let rows = ask(connection, &format!("SELECT COUNT(*) FROM {table}"));
        let rows = rows.map_err(|error| format!("{table}: {}", error.message))?;
        let count = rows.first().and_then(|row| cell(row, 0)?.parse().ok());
        Ok((table, count.ok_or("the number of rows is not a number")?))
    };
    tables.into_iter().map(count).collect()
}

/// The tables of which a shard has rows that belong to another one.
fn misplaced(
    connection: &mut MySqlConnection,
    (idx, shards): (u32, u32),
) -> Result<Vec<String>, DeployError> {
    let tables = names(&ask(connection, TABLES)?);
    let columns = split_columns(connection, &tables)?;
    let mut found = Vec::new();
    for (table, column) in tables.into_iter().zip(columns) {
        let other = format!("{} <> {idx}", shard_of(&column, shards));
        if !ask(connection, &format!("SELECT 1 FROM {table} WHERE {other} LIMIT 1"))?.is_empty() {
            found.push(table);
        }
    }
    Ok(found)
}

impl Sharding for Spider {
    fn introduce(&self, router: &Endpoint, shards: &[Endpoint]) -> Result<(), DeployError> {
        let mut router = open(router)?;
        for (number, shard) in (1..).zip(shards) {
            ask(&mut router, &server_statement(number, shard)?)?;
        }
        Ok(())
    }

    fn split(
        &self,
        router: &Endpoint,
        shards: &[Endpoint],
        by: SplitBy,
    ) -> Result<Split, DeployError> {
        let mut connections: Vec<MySqlConnection> =
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
            for (table, rows) in counts(&mut shard)? {
                *sums.entry(table).or_default() += rows;
            }
            if by == SplitBy::Key {
                differing.extend(misplaced(&mut shard, (idx, shards.len() as u32)).map_err(told)?);
            }
        }
        let seen = counts(&mut open(router).map_err(told)?)?;
        let all: BTreeSet<&String> = sums.keys().chain(seen.keys()).collect();
        let unequal = all.iter().filter(|table| sums.get(**table) != seen.get(**table));
        differing.extend(unequal.map(|table| (*table).clone()));
        Ok((differing.into_iter().collect(), all.len()))
    }

    fn probe(&self, name: &str, shard: &Endpoint) -> Box<dyn Probe> {
        Box::new(ShardProbe::new(name, connector(shard.clone())))
    }
}

const STATUS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Questions', \
     'Innodb_buffer_pool_read_requests', 'Innodb_buffer_pool_reads', 'Innodb_data_read', 'Innodb_data_written')";

/// Counters of which a reading is the growth per second.
const RATES: [(&str, &str); 5] = [
    ("Questions", "statements_per_s"),
    ("Innodb_buffer_pool_read_requests", "page_requests_per_s"),
    ("Innodb_buffer_pool_reads", "page_reads_per_s"),
    ("Innodb_data_read", "read_bytes_per_s"),
    ("Innodb_data_written", "written_bytes_per_s"),
];

#[rustfmt::skip]
pub(super) const READINGS: &[Reading] = &[
    reading("shards.*.statements_per_s", PerSecond, "statements of the shard", "statements that the router sent to this shard").topic(Topic::Instance),
    reading("shards.*.page_requests_per_s", PerSecond, "page requests of the shard", "pages that this shard looked for in InnoDB's buffer pool").topic(Topic::Instance),
    reading("shards.*.page_reads_per_s", PerSecond, "page reads of the shard", "pages that this shard did not find in InnoDB's buffer pool and read from files").topic(Topic::Instance).worse(),
    reading("shards.*.read_bytes_per_s", BytesPerSecond, "read by the shard", "bytes that InnoDB of this shard read from files").topic(Topic::Instance),
    reading("shards.*.written_bytes_per_s", BytesPerSecond, "written by the shard", "bytes that InnoDB of this shard wrote to files").topic(Topic::Instance),
];

/// Reads the status of a shard.
struct ShardProbe {
    name: String,
    asker: Asker,
    /// When the counters were read last, and what they were.
    before: Option<(Nanoseconds, BTreeMap<&'static str, f64>)>,
}

impl ShardProbe {
    fn new(name: &str, connector: Connector) -> ShardProbe {
        ShardProbe { name: name.to_owned(), asker: Asker::new(connector), before: None }
    }

    fn put(&mut self, now: Nanoseconds, rows: &TextRows, readings: &mut Readings) {
        let value = |name: &str| {
            let row = rows.iter().find(|row| cell(row, 0) == Some(name))?;
            number(cell(row, 1)?)
        };
        let counters: BTreeMap<&'static str, f64> =
            RATES.iter().filter_map(|(source, _)| Some((*source, value(source)?))).collect();
        if let Some((at, before)) = &self.before {
            let seconds = now.saturating_sub(*at).as_secs_f64();
            for (source, what) in RATES {
                let growth = counters.get(source).zip(before.get(source)).map(|(a, b)| a - b);
                // A server that was started again counts from the beginning.
                let growth = growth.filter(|growth| *growth >= 0.0 && seconds > 0.0);
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
        if let Some(rows) = self.asker.rows(now, STATUS) {
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
    fn the_routers_table_has_the_columns_and_indexes_of_that_of_its_shard() {
        let of_shard = "CREATE TABLE `t``1` (\n  `id` int(11) NOT NULL AUTO_INCREMENT,\n  `c` char(9) \
                        DEFAULT '',\n  PRIMARY KEY (`id`)\n) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT \
                        CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci COMMENT='x'";
        assert_eq!(
            table_statement("`t``1`", &At::Shard(2), of_shard).unwrap(),
            "CREATE TABLE `t``1` (\n  `id` int(11) NOT NULL AUTO_INCREMENT,\n  `c` char(9) DEFAULT '',\n  \
             PRIMARY KEY (`id`)\n) ENGINE=SPIDER CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci \
             COMMENT='wrapper \"mysql\", srv \"shard-2\", table \"t`1\"'"
        );
        assert!(
            table_statement("`t`", &At::Shard(1), "CREATE VIEW")
                .unwrap_err()
                .message
                .contains("not understood")
        );
        assert!(
            table_statement("`t\"`", &At::Shard(1), of_shard)
                .unwrap_err()
                .message
                .contains("contains a quotation mark")
        );
    }

    #[test]
    fn a_table_that_is_split_by_key_has_a_partition_for_each_shard() {
        let of_shard =
            "CREATE TABLE `t` (\n  `id` int(11) NOT NULL,\n  PRIMARY KEY (`id`)\n) ENGINE=InnoDB";
        let at = At::Key { column: "`id`", shards: 2 };
        assert_eq!(
            table_statement("`t`", &at, of_shard).unwrap(),
            "CREATE TABLE `t` (\n  `id` int(11) NOT NULL,\n  PRIMARY KEY (`id`)\n) ENGINE=SPIDER \
             COMMENT='wrapper \"mysql\", table \"t\"' PARTITION BY HASH (`id`) (PARTITION `p0` COMMENT = \
             'srv \"shard-1\"' ENGINE = SPIDER, PARTITION `p1` COMMENT = 'srv \"shard-2\"' ENGINE = SPIDER)"
        );
    }

    #[test]
    fn rows_are_split_by_the_first_column_of_the_primary_key_if_every_unique_index_has_it() {
        let keys = |all: &[(&str, &[&str])]| -> Vec<(String, Vec<String>)> {
            let own = |columns: &[&str]| columns.iter().map(|one| (*one).to_owned()).collect();
            all.iter().map(|(index, columns)| ((*index).to_owned(), own(columns))).collect()
        };
        let column = |all: &[(&str, &[&str])]| split_column("`t`", &keys(all));
        assert_eq!(column(&[("PRIMARY", &["a`b", "c"]), ("u", &["c", "a`b"])]).unwrap(), "`a``b`");
        let error = |all: &[(&str, &[&str])]| column(all).unwrap_err().message;
        assert!(error(&[("u", &["a"])]).contains("it has no primary key; write shard_by"));
        let odd = error(&[("PRIMARY", &["a"]), ("u", &["b"])]);
        assert!(odd.contains("unique index `u` does not include `a`"), "{odd}");
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
            let row = ["Innodb_buffer_pool_reads", reads];
            let rows = vec![row.map(|text| Some(text.to_owned())).to_vec()];
            probe.put(Nanoseconds::from_secs(second), &rows, &mut readings);
            assert!(readings.keys().all(|name| READINGS.iter().any(|one| one.is_for(name))));
            readings
        };
        assert_eq!(read(1, "10"), [].into());
        assert_eq!(read(3, "30"), [("shards.shard-2.page_reads_per_s".to_owned(), 10.0)].into());
        // It was started again.
        assert_eq!(read(4, "0"), [].into());
    }
}
