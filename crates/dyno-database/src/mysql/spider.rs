//! Shards behind a MariaDB server with the storage engine Spider, which sends a statement's work on a table
//! to its shard's socket.

use dyno_host::Probe;
use dyno_units::reading::prelude::*;
use dyno_workload::Connection;

use super::install::Install;
use super::replica::TABLES;
use super::{connect, connector};
use crate::error::{Result, fail};
use crate::probe::{Counters, Item, cell, numbers_by_name, rate};
use crate::sharding::{At, Sharding, SplitColumn, ask, shard_name, socket_of};
use crate::{DeployError, Endpoint};

const PLUGIN: &str = "ha_spider.so";

const PLUGIN_FOLDERS: [&str; 3] = ["lib/mysql/plugin", "lib64/mysql/plugin", "lib/plugin"];

/// Objects that are no tables, or tie tables together: kind, and a statement that lists their names.
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

pub(super) struct Spider;

/// Fails, with what to install, if the engine is missing.
pub(super) fn check(install: &Install) -> Result<()> {
    if !install.is_mariadb() {
        return fail("shards need MariaDB; leave `shards` out");
    }
    let own = PLUGIN_FOLDERS.iter().map(|folder| install.base.join(folder));
    let folders = install.plugins.iter().cloned().chain(own);
    if folders.into_iter().any(|folder| folder.join(PLUGIN).is_file()) {
        return Ok(());
    }
    fail(format!(
        "shards need the storage engine Spider ({PLUGIN}), which this MariaDB {} does not have; install it \
         (Debian, Ubuntu: package `mariadb-plugin-spider`), or leave `shards` out",
        install.version
    ))
}

fn server_statement(number: u32, shard: &Endpoint) -> Result<String> {
    let socket = socket_of(shard)?;
    Ok(format!(
        "CREATE SERVER `{}` FOREIGN DATA WRAPPER mysql OPTIONS (SOCKET '{}', DATABASE '{}', USER '{}')",
        shard_name(number),
        text(&socket.display().to_string()),
        text(&shard.catalog),
        text(&shard.user),
    ))
}

/// From a shard's `SHOW CREATE TABLE`: same columns and indexes. Names have backticks.
fn table_statement(table: &str, at: At<'_>, of_shard: &str) -> Result<String> {
    const END: &str = "\n) ENGINE=";
    let Some((columns, options)) = of_shard.rsplit_once(END) else {
        return fail(format!("the definition of the table {table} is not understood: {of_shard}"));
    };
    let first_line = options.lines().next().unwrap_or_default();
    let kept = ["CHARSET=", "COLLATE="];
    let kept = first_line.split(' ').filter(|word| kept.iter().any(|one| word.starts_with(one)));
    let kept: String = kept.map(|word| format!(" {word}")).collect();
    let name = plain(table);
    if name.contains(['"', '\'', '\\']) {
        return fail(format!(
            "the table {table} cannot be on a shard: its name contains a quotation mark or a backslash"
        ));
    }
    let begin = format!("{columns}\n) ENGINE=SPIDER{kept} COMMENT='wrapper \"mysql\", ");
    Ok(match at {
        At::Shard(number) => {
            format!("{begin}srv \"{}\", table \"{name}\"'", shard_name(number))
        }
        At::Key { column, shards } => {
            let part = |idx: u32| {
                format!(
                    "PARTITION `p{idx}` COMMENT = 'srv \"{}\"' ENGINE = SPIDER",
                    shard_name(idx + 1)
                )
            };
            let parts: Vec<String> = (0..shards).map(part).collect();
            format!(
                "{begin}table \"{name}\"' PARTITION BY HASH ({}) ({})",
                column.name,
                parts.join(", ")
            )
        }
    })
}

fn plain(quoted: &str) -> String {
    let inner = quoted.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
    inner.unwrap_or(quoted).replace("``", "`")
}

fn text(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\'', "''")
}

impl Sharding for Spider {
    fn introduce(&self, router: &Endpoint, shards: &[Endpoint]) -> Result<()> {
        let mut router = connect(router)?;
        for (number, shard) in (1..).zip(shards) {
            ask(&mut router, &server_statement(number, shard)?)?;
        }
        Ok(())
    }

    fn tables(&self) -> &'static str {
        TABLES
    }

    fn unsplittable(&self) -> &'static [(&'static str, &'static str)] {
        &UNSPLITTABLE
    }

    fn unique_keys(&self, table: &str) -> String {
        let quoted = |column: &str| format!("CONCAT('`', REPLACE({column}, '`', '``'), '`')");
        format!(
            "SELECT index_name = 'PRIMARY', {}, {} FROM information_schema.statistics \
             WHERE table_schema = DATABASE() AND table_name = '{}' AND non_unique = 0 \
             ORDER BY index_name <> 'PRIMARY', index_name, seq_in_index",
            quoted("index_name"),
            quoted("column_name"),
            text(&plain(table))
        )
    }

    fn type_of(&self, table: &str, column: &str) -> String {
        format!(
            "SELECT data_type FROM information_schema.columns WHERE table_schema = DATABASE() AND \
             table_name = '{}' AND column_name = '{}'",
            text(&plain(table)),
            text(&plain(column))
        )
    }

    /// As the server's `PARTITION BY HASH`: the absolute value of a signed number's remainder.
    fn is_own(
        &self,
        _connection: &mut dyn Connection,
        column: &SplitColumn,
        (idx, shards): (u32, u32),
    ) -> Result<String> {
        Ok(format!("ABS(MOD(CAST({} AS SIGNED), {shards})) = {idx}", column.name))
    }

    fn keep_rows(&self, table: &str, own: &str) -> Vec<String> {
        const PART: &str = "`dyno_shard_part`";
        vec![
            // InnoDB then fills an empty table in bulk.
            "SET SESSION unique_checks = 0, SESSION foreign_key_checks = 0".to_owned(),
            // A table that is written anew is as small as its rows; one from which rows were deleted is not.
            format!("CREATE TABLE {PART} LIKE {table}"),
            format!("INSERT INTO {PART} SELECT * FROM {table} WHERE {own}"),
            format!("DROP TABLE {table}"),
            format!("RENAME TABLE {PART} TO {table}"),
        ]
    }

    fn make_table(
        &self,
        router: &mut dyn Connection,
        shard: &mut dyn Connection,
        table: &str,
        at: At<'_>,
    ) -> Result<()> {
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

    fn probe(&self, name: &str, shard: &Endpoint) -> Box<dyn Probe> {
        COUNTERS.probe(name, connector(shard.clone()))
    }
}

pub(super) static COUNTERS: Counters = Counters {
    probe: "shards",
    statement: "SHOW GLOBAL STATUS WHERE Variable_name IN ('Questions', 'Innodb_buffer_pool_read_requests', \
                'Innodb_buffer_pool_reads', 'Innodb_data_read', 'Innodb_data_written')",
    values: |answer| numbers_by_name(&answer.rows),
    items: ITEMS,
};

#[rustfmt::skip]
const ITEMS: &[Item] = &[
    rate("questions", reading("shards.*.statements_per_s", PerSecond, "statements of the shard", "statements that the router sent to this shard").topic(Topic::Instance)),
    rate("innodb_buffer_pool_read_requests", reading("shards.*.page_requests_per_s", PerSecond, "page requests of the shard", "pages that this shard looked for in InnoDB's buffer pool").topic(Topic::Instance)),
    rate("innodb_buffer_pool_reads", reading("shards.*.page_reads_per_s", PerSecond, "page reads of the shard", "pages that this shard did not find in InnoDB's buffer pool and read from files").topic(Topic::Instance).worse()),
    rate("innodb_data_read", reading("shards.*.read_bytes_per_s", BytesPerSecond, "read by the shard", "bytes that InnoDB of this shard read from files").topic(Topic::Instance)),
    rate("innodb_data_written", reading("shards.*.written_bytes_per_s", BytesPerSecond, "written by the shard", "bytes that InnoDB of this shard wrote to files").topic(Topic::Instance)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_routers_table_has_the_columns_and_indexes_of_that_of_its_shard() {
        let of_shard = "CREATE TABLE `t``1` (\n  `id` int(11) NOT NULL AUTO_INCREMENT,\n  `c` char(9) \
                        DEFAULT '',\n  PRIMARY KEY (`id`)\n) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT \
                        CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci COMMENT='x'";
        assert_eq!(
            table_statement("`t``1`", At::Shard(2), of_shard).unwrap(),
            "CREATE TABLE `t``1` (\n  `id` int(11) NOT NULL AUTO_INCREMENT,\n  `c` char(9) DEFAULT '',\n  \
             PRIMARY KEY (`id`)\n) ENGINE=SPIDER CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci \
             COMMENT='wrapper \"mysql\", srv \"shard-2\", table \"t`1\"'"
        );
        assert!(
            table_statement("`t`", At::Shard(1), "CREATE VIEW")
                .unwrap_err()
                .message
                .contains("not understood")
        );
        assert!(
            table_statement("`t\"`", At::Shard(1), of_shard)
                .unwrap_err()
                .message
                .contains("contains a quotation mark")
        );
    }

    #[test]
    fn a_table_that_is_split_by_key_has_a_partition_for_each_shard() {
        let of_shard =
            "CREATE TABLE `t` (\n  `id` int(11) NOT NULL,\n  PRIMARY KEY (`id`)\n) ENGINE=InnoDB";
        let column = SplitColumn { name: "`id`".to_owned(), kind: "int".to_owned() };
        let at = At::Key { column: &column, shards: 2 };
        assert_eq!(
            table_statement("`t`", at, of_shard).unwrap(),
            "CREATE TABLE `t` (\n  `id` int(11) NOT NULL,\n  PRIMARY KEY (`id`)\n) ENGINE=SPIDER \
             COMMENT='wrapper \"mysql\", table \"t\"' PARTITION BY HASH (`id`) (PARTITION `p0` COMMENT = \
             'srv \"shard-1\"' ENGINE = SPIDER, PARTITION `p1` COMMENT = 'srv \"shard-2\"' ENGINE = SPIDER)"
        );
    }
}
