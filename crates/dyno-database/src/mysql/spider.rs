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
use crate::sharding::{Sharding, shard_name};
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
                 workload or other options of it, or leave `shards` out",
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
fn table_statement(table: &str, number: u32, of_shard: &str) -> Result<String, DeployError> {
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
    let name = table.trim_matches('`').replace("``", "`");
    if name.contains(['"', '\'', '\\']) {
        return Err(DeployError::new(format!(
            "the table {table} cannot be on a shard: its name has a quote or a backslash"
        )));
    }
    Ok(format!(
        "{columns}\n) ENGINE=SPIDER{kept} COMMENT='wrapper \"mysql\", srv \"{}\", table \"{name}\"'",
        shard_name(number)
    ))
}

impl Sharding for Spider {
    fn split(&self, router: &Endpoint, shards: &[Endpoint]) -> Result<Vec<usize>, DeployError> {
        let mut connections: Vec<MySqlConnection> =
            shards.iter().map(open).collect::<Result<_, _>>()?;
        let mut router = open(router)?;
        let Some(first) = connections.first_mut() else { return Ok(Vec::new()) };
        check_catalog(first)?;
        let tables = names(&ask(first, TABLES)?);
        for (number, shard) in (1..).zip(shards) {
            ask(&mut router, &server_statement(number, shard)?)?;
        }
        let mut placed = vec![0; shards.len()];
        for (position, table) in tables.iter().enumerate() {
            let owner = position % shards.len();
            placed[owner] += 1;
            for (_, other) in connections.iter_mut().enumerate().filter(|(idx, _)| *idx != owner) {
                ask(other, &format!("DROP TABLE {table}"))?;
            }
            let shown = ask(&mut connections[owner], &format!("SHOW CREATE TABLE {table}"))?;
            let shown = shown.first().and_then(|row| cell(row, 1)).unwrap_or_default();
            let refused = |error: DeployError| DeployError {
                message: format!("the router cannot have the table {table}: {}", error.message),
                ..error
            };
            let statement = table_statement(table, owner as u32 + 1, shown)?;
            ask(&mut router, &statement).map_err(refused)?;
            // The engine does not look for its shard before it is asked.
            ask(&mut router, &format!("SELECT 1 FROM {table} LIMIT 1")).map_err(refused)?;
        }
        Ok(placed)
    }

    fn tables_that_differ(
        &self,
        router: &Endpoint,
        shards: &[Endpoint],
    ) -> Result<(Vec<String>, usize), String> {
        let told = |error: DeployError| error.message;
        let count = |connection: &mut MySqlConnection| -> Result<BTreeMap<String, u64>, String> {
            let tables = names(&ask(connection, TABLES).map_err(told)?);
            let count = |table: String| {
                let rows = ask(connection, &format!("SELECT COUNT(*) FROM {table}"));
                let rows = rows.map_err(|error| format!("{table}: {}", error.message))?;
                let count = rows.first().and_then(|row| cell(row, 0)?.parse().ok());
                Ok((table, count.ok_or("the number of rows is not a number")?))
            };
            tables.into_iter().map(count).collect()
        };
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for shard in shards {
            for (table, rows) in count(&mut open(shard).map_err(told)?)? {
                *sums.entry(table).or_default() += rows;
            }
        }
        let seen = count(&mut open(router).map_err(told)?)?;
        let all: BTreeSet<&String> = sums.keys().chain(seen.keys()).collect();
        let differing = all.iter().filter(|table| sums.get(**table) != seen.get(**table));
        Ok((differing.map(|table| (*table).clone()).collect(), all.len()))
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
            table_statement("`t``1`", 2, of_shard).unwrap(),
            "CREATE TABLE `t``1` (\n  `id` int(11) NOT NULL AUTO_INCREMENT,\n  `c` char(9) DEFAULT '',\n  \
             PRIMARY KEY (`id`)\n) ENGINE=SPIDER CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci \
             COMMENT='wrapper \"mysql\", srv \"shard-2\", table \"t`1\"'"
        );
        assert!(
            table_statement("`t`", 1, "CREATE VIEW")
                .unwrap_err()
                .message
                .contains("not understood")
        );
        assert!(table_statement("`t\"`", 1, of_shard).unwrap_err().message.contains("has a quote"));
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
