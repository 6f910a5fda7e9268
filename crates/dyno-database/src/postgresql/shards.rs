//! Shards behind a PostgreSQL server with foreign tables (postgres_fdw), which sends a statement's work on a table
//! to its shard's socket. Split by key, the router's table is partitioned by hash, and each partition is a foreign
//! table on one shard; `satisfies_hash_partition` tells a row's shard.

use std::path::Path;

use dyno_host::Probe;
use dyno_units::reading::prelude::*;
use dyno_workload::Connection;

use super::sql::{literal as text, quote_name};
use super::{check, connect, connector, settings};
use crate::error::{Result, fail};
use crate::probe::{Counters, Item, cell, named_numbers, rate};
use crate::sharding::{At, Sharding, SplitColumn, ask, names, shard_name, socket_of};
use crate::{DeployError, Endpoint, Installation};

/// The oldest version whose partitions can be foreign tables that take rows.
const OLDEST: u32 = 11;

/// Tables of a catalog as a statement names them, those that are foreign among them and partitions not.
const TABLES: &str = "SELECT quote_ident(c.relname) FROM pg_catalog.pg_class c \
     WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p', 'f') \
     AND NOT c.relispartition ORDER BY 1";

/// Objects that are no tables, or tie tables together: kind, and a statement that lists their names.
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

pub(super) struct ByForeignTables;

/// Fails, with what to install, if these programs cannot be a router.
pub(super) fn check(installation: &Installation) -> Result<()> {
    let version = installation.version.split_whitespace().next().unwrap_or_default();
    if installation.major() < OLDEST {
        return fail(format!("shards need PostgreSQL {OLDEST} or later, and this is {version}"));
    }
    if check::has_extension(&installation.programs, "postgres_fdw") {
        return Ok(());
    }
    fail(format!(
        "shards need the extension postgres_fdw, which PostgreSQL {version} in {} does not have; install it \
         (Debian, Ubuntu: it is in the server's package), or leave `shards` out",
        installation.programs.display()
    ))
}

fn plain(quoted: &str) -> String {
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.map_or_else(|| quoted.to_owned(), |inner| inner.replace("\"\"", "\""))
}

fn server_statements((number, version): (u32, u32), shard: &Endpoint) -> Result<[String; 2]> {
    let folder = socket_of(shard)?.parent().unwrap_or(Path::new("/")).display().to_string();
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

fn version(connection: &mut dyn Connection) -> Result<u32> {
    let rows = ask(connection, "SHOW server_version_num")?;
    let version = rows.first().and_then(|row| cell(row, 0)?.parse().ok());
    version.ok_or_else(|| DeployError::new("the router does not tell its version"))
}

/// Continue the shard's: the router numbers the rows of all shards.
fn sequence_statements(shard: &mut dyn Connection, table: &str) -> Result<Vec<String>> {
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
fn columns(connection: &mut dyn Connection, table: &str) -> Result<String> {
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

/// The router's table, from a shard's columns. Names are quoted.
fn table_statements(table: &str, columns: &str, at: At<'_>, schema: &str) -> Vec<String> {
    let remote =
        format!("OPTIONS (schema_name {}, table_name {})", text(schema), text(&plain(table)));
    let server = |number: u32| quote_name(&shard_name(number));
    match at {
        At::Shard(number) => {
            vec![format!(
                "CREATE FOREIGN TABLE {table} ({columns}) SERVER {} {remote}",
                server(number)
            )]
        }
        At::Key { column, shards } => {
            let parent =
                format!("CREATE TABLE {table} ({columns}) PARTITION BY HASH ({})", column.name);
            let part = |idx: u32| {
                let name = quote_name(&format!("{}_on_{}", plain(table), shard_name(idx + 1)));
                format!(
                    "CREATE FOREIGN TABLE {name} PARTITION OF {table} FOR VALUES WITH (MODULUS {shards}, \
                     REMAINDER {idx}) SERVER {} {remote}",
                    server(idx + 1)
                )
            };
            [parent].into_iter().chain((0..shards).map(part)).collect()
        }
    }
}

impl Sharding for ByForeignTables {
    fn introduce(&self, router: &Endpoint, shards: &[Endpoint]) -> Result<()> {
        let mut router = connect(router)?;
        let version = version(&mut router)?;
        ask(&mut router, "CREATE EXTENSION IF NOT EXISTS postgres_fdw")?;
        for (number, shard) in (1..).zip(shards) {
            for statement in server_statements((number, version), shard)? {
                ask(&mut router, &statement)?;
            }
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
        format!(
            "SELECT i.indisprimary, quote_ident(c.relname), coalesce(quote_ident(a.attname), '') \
             FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid \
             CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, place) \
             LEFT JOIN pg_catalog.pg_attribute a \
             ON a.attrelid = i.indrelid AND a.attnum = k.attnum AND a.attnum > 0 \
             WHERE i.indrelid = {}::regclass AND i.indisunique ORDER BY 1 DESC, 2, k.place",
            text(table)
        )
    }

    fn type_of(&self, table: &str, column: &str) -> String {
        format!(
            "SELECT format_type(atttypid, NULL) FROM pg_catalog.pg_attribute WHERE attrelid = {}::regclass \
             AND quote_ident(attname) = {}",
            text(table),
            text(column)
        )
    }

    /// The session has a table that is partitioned as the router's, whose partitions the server asks.
    fn is_own(
        &self,
        connection: &mut dyn Connection,
        column: &SplitColumn,
        (idx, shards): (u32, u32),
    ) -> Result<String> {
        let model = format!("dyno_split_by_{}", column.kind);
        let sql = format!(
            "CREATE TEMPORARY TABLE IF NOT EXISTS {model} (k {}) PARTITION BY HASH (k)",
            column.kind
        );
        ask(connection, &sql)?;
        Ok(format!(
            "satisfies_hash_partition('pg_temp.{model}'::regclass, {shards}, {idx}, {})",
            column.name
        ))
    }

    fn keep_rows(&self, table: &str, own: &str) -> Vec<String> {
        vec![
            format!("DELETE FROM {table} WHERE NOT {own}"),
            // A table that is written anew is as small as its rows; one from which rows were deleted is not.
            format!("VACUUM (FULL, ANALYZE) {table}"),
        ]
    }

    /// The router also learns how large the table is.
    fn make_table(
        &self,
        router: &mut dyn Connection,
        shard: &mut dyn Connection,
        table: &str,
        at: At<'_>,
    ) -> Result<()> {
        let columns = columns(shard, table)?;
        let schema = names(&ask(shard, "SELECT current_schema()")?).pop().unwrap_or_default();
        let refused = |error: DeployError| DeployError {
            message: format!("the router cannot create the table {table}: {}", error.message),
            ..error
        };
        let mut all = sequence_statements(shard, table)?;
        all.extend(table_statements(table, &columns, at, &schema));
        all.push(format!("ANALYZE {table}"));
        all.iter().try_for_each(|sql| ask(router, sql).map(drop).map_err(refused))
    }

    fn probe(&self, name: &str, shard: &Endpoint) -> Box<dyn Probe> {
        COUNTERS.probe(name, connector(shard.clone()))
    }
}

pub(super) static COUNTERS: Counters = Counters {
    probe: "shards",
    statement: "SELECT xact_commit + xact_rollback AS transactions, blks_hit + blks_read AS requests, \
                blks_read AS reads, tup_returned AS returned, \
                tup_inserted + tup_updated + tup_deleted AS written \
                FROM pg_catalog.pg_stat_database WHERE datname = current_database()",
    values: named_numbers,
    items: ITEMS,
};

#[rustfmt::skip]
const ITEMS: &[Item] = &[
    rate("transactions", reading("shards.*.transactions_per_s", PerSecond, "transactions of the shard", "transactions that the router ran on this shard").topic(Topic::Instance)),
    rate("requests", reading("shards.*.block_requests_per_s", PerSecond, "block requests of the shard", "blocks that this shard looked for in shared buffers").topic(Topic::Instance)),
    rate("reads", reading("shards.*.block_reads_per_s", PerSecond, "block reads of the shard", "blocks that this shard did not find in shared buffers and asked the system for").topic(Topic::Instance).worse()),
    rate("returned", reading("shards.*.rows_read_per_s", PerSecond, "rows read by the shard", "rows that scans of this shard returned").topic(Topic::Instance)),
    rate("written", reading("shards.*.rows_written_per_s", PerSecond, "rows written by the shard", "rows that this shard inserted, updated or deleted").topic(Topic::Instance)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_on_one_shard_is_a_foreign_table_with_its_columns() {
        let made = table_statements("\"T\"\"1\"", "id integer NOT NULL", At::Shard(2), "public");
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
        let column = SplitColumn { name: "id".to_owned(), kind: "integer".to_owned() };
        let at = At::Key { column: &column, shards: 2 };
        let made = table_statements("t", "id integer", at, "public");
        assert_eq!(made[0], "CREATE TABLE t (id integer) PARTITION BY HASH (id)");
        assert_eq!(
            made[2],
            "CREATE FOREIGN TABLE \"t_on_shard-2\" PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 1) \
             SERVER \"shard-2\" OPTIONS (schema_name 'public', table_name 't')"
        );
        assert_eq!(made.len(), 3);
    }

    #[test]
    fn texts_are_quoted() {
        assert_eq!(text("it's"), "'it''s'");
        assert_eq!(text("a\\b'"), " E'a\\\\b'''");
        assert_eq!(plain("\"a\"\"b\""), "a\"b");
        assert_eq!(plain("ab"), "ab");
    }
}
