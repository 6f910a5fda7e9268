//! Options of each script, and the derived settings.

use crate::options::{Options, Read, count, refuse, switch};
use crate::prelude::*;

use super::distribution::{self, Distribution, DistributionSpec};
use super::statements::{Mix, StatementKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sends {
    Mix,
    One(StatementKind),
    Insert,
    Bulk,
    RandomKeys,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Script {
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    sends: Sends,
    options: Groups,
}

type Groups = &'static [&'static [OptionSpec]];

const fn script(name: &'static str, sends: Sends, options: Groups) -> Script {
    Script { name, summary: "", sends, options }
}

pub(super) const SCRIPTS: &[Script] = &[
    script("oltp_read_only", Sends::Mix, &[BEGIN, POINTS, KEYS, RANGES])
        .about("10 point selects and 4 range scans of 100 rows per transaction"),
    script(
        "oltp_read_write",
        Sends::Mix,
        &[BEGIN, POINTS, KEYS, RANGES, INDEX_UPDATES, NON_INDEX_UPDATES, DELETE_INSERTS],
    )
    .about("oltp_read_only and oltp_write_only in one transaction"),
    script(
        "oltp_write_only",
        Sends::Mix,
        &[BEGIN, INDEX_UPDATES, NON_INDEX_UPDATES, DELETE_INSERTS],
    )
    .about("2 updates, 1 delete and 1 insert per transaction"),
    script("oltp_point_select", Sends::One(StatementKind::PointSelect), &[KEYS])
        .about("one row by its primary key, no transaction"),
    script("oltp_update_index", Sends::Mix, &[INDEX_UPDATES])
        .about("adds 1 to an indexed column of one row"),
    script("oltp_update_non_index", Sends::Mix, &[NON_INDEX_UPDATES])
        .about("overwrites an unindexed column of one row"),
    script("oltp_delete", Sends::One(StatementKind::Delete), &[])
        .about("deletes one row; soon most rows are already gone"),
    script("oltp_insert", Sends::Insert, &[]).about("inserts one row"),
    script("bulk_insert", Sends::Bulk, &[BULK])
        .about("inserts thousands of small rows per statement"),
    script("select_random_points", Sends::RandomKeys, &[RANDOM_POINTS])
        .about("10 values of an indexed column in one statement"),
    script("select_random_ranges", Sends::RandomKeys, &[RANDOM_RANGES])
        .about("counts rows in 10 ranges of an indexed column in one statement"),
];

impl Script {
    const fn about(self, summary: &'static str) -> Script {
        Script { summary, ..self }
    }

    pub(super) fn option_specs(&self) -> Vec<OptionSpec> {
        let of_rows: &[&[OptionSpec]] = match self.sends {
            Sends::Bulk => &[],
            _ => &[TABLES, distribution::OPTIONS],
        };
        [of_rows, self.options].concat().concat()
    }
}

const fn times(name: &'static str, default: &'static str, help: &'static str) -> OptionSpec {
    count(name, default, 0, 1_000_000).help(help)
}

const TABLES: &[OptionSpec] = &[
    count("tables", "1", 1, TABLES_MAX)
        .help("number of tables (select_random_points and _ranges query only the first)"),
    count("table_size", "10000", 1, ROWS_MAX).help("rows in each table"),
    switch("auto_inc", true).help("whether the server assigns the ids of inserted rows"),
    switch("secondary", false).help("a plain index on id in place of the primary key"),
    switch("create_secondary", true)
        .help("an index on column k, created after the rows are filled in"),
];
const BEGIN: &[OptionSpec] = &[switch("skip_trx", false).help("no BEGIN and COMMIT: autocommit")];
const POINTS: &[OptionSpec] = &[times("point_selects", "10", "point selects per transaction")];
const KEYS: &[OptionSpec] = &[count("point_select_keys", "1", 1, 10_000)
    .help("keys per point select; above 1 it uses `id IN (…)`")];
const RANGES: &[OptionSpec] = &[
    switch("range_selects", true).help("off leaves out all four kinds of range scans"),
    count("range_size", "100", 1, 100_000_000).help("rows per range scan"),
    times("simple_ranges", "1", "range scans that return all rows"),
    times("sum_ranges", "1", "range scans that return the sum of k"),
    times("order_ranges", "1", "range scans that sort their rows"),
    times("distinct_ranges", "1", "range scans that sort their rows and remove duplicates"),
    switch("row_filter", false)
        .help("range scans read `range_size` rows and return only one of them"),
];
const INDEX_UPDATES: &[OptionSpec] =
    &[times("index_updates", "1", "updates of the indexed column k per transaction")];
const NON_INDEX_UPDATES: &[OptionSpec] =
    &[times("non_index_updates", "1", "updates of the unindexed column c per transaction")];
const DELETE_INSERTS: &[OptionSpec] =
    &[times("delete_inserts", "1", "rows deleted and reinserted per transaction")];
const RANDOM_POINTS: &[OptionSpec] =
    &[count("random_points", "10", 1, 10_000).help("values per statement")];
const RANDOM_RANGES: &[OptionSpec] = &[
    count("number_of_ranges", "10", 1, 5000).help("ranges per statement"),
    count("delta", "5", 0, 100_000_000).help("length of a range: its last value minus its first"),
];
const BULK: &[OptionSpec] = &[
    count("tables", "1", 1, TABLES_MAX).help("number of tables; sysbench has one for each client"),
    count("statement_bytes", "524288", 200, 1 << 30).help("length at which a statement is sent"),
];

#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    Mix(Mix),
    Insert,
    BulkInsert {
        bytes_max: usize,
    },
    /// Statements with so many random keys, or, with a `delta` from first to last value, ranges.
    RandomKeys {
        n_keys: u64,
        delta: Option<i64>,
    },
}

/// The options of a script, checked. Those that a script does not have are 0 or off.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) n_tables: u64,
    pub(super) table_size: u64,
    /// Before the first step, in each table.
    pub(super) n_rows: u64,
    pub(super) is_auto_increment: bool,
    /// Whether `id` has a plain index in place of the primary key.
    pub(super) is_id_secondary: bool,
    pub(super) has_k_index: bool,
    pub(super) distribution: DistributionSpec,
    /// Of the values of `k`, less one.
    pub(super) k: Distribution,
    /// Of each table's rows.
    pub(super) seeds: Vec<Seed>,
    pub(super) shape: Shape,
}

const TABLES_MAX: u64 = 100_000;

/// What columns of type INTEGER leave room for, ranges past the end included.
const ROWS_MAX: u64 = 2_000_000_000;

impl Settings {
    pub(super) fn read(script: &Script, options: &Options, seed: Seed) -> Read<Settings> {
        let reader = Reader(options);
        let n_tables = reader.count("tables")?;
        let (mut table_size, mut distribution) = (1, DistributionSpec::Uniform);
        if script.sends != Sends::Bulk {
            table_size = reader.count("table_size")?;
            distribution = DistributionSpec::from_options(options)?;
        }
        let is_auto_increment = reader.switch("auto_inc");
        // As in sysbench: with scattered ids, oltp_insert begins with empty tables.
        let is_empty = script.sends == Sends::Insert && !is_auto_increment;
        Ok(Settings {
            n_tables,
            table_size,
            n_rows: if is_empty { 0 } else { table_size },
            is_auto_increment,
            is_id_secondary: reader.switch("secondary"),
            has_k_index: reader.switch("create_secondary"),
            distribution,
            k: distribution.over(table_size),
            seeds: (0..n_tables).map(|idx| seed.derive("sbtest", idx)).collect(),
            shape: reader.shape(script.sends)?,
        })
    }
}

struct Reader<'a>(&'a Options);

impl Reader<'_> {
    fn switch(&self, name: &str) -> bool {
        self.0.has(name) && self.0.switch(name)
    }

    fn count(&self, name: &str) -> Read<u64> {
        if self.0.has(name) { self.0.in_range(name) } else { Ok(0) }
    }

    fn shape(&self, sends: Sends) -> Read<Shape> {
        Ok(match sends {
            Sends::Mix => Shape::Mix(self.mix(None)?),
            Sends::One(kind) => Shape::Mix(self.mix(Some(kind))?),
            Sends::Insert => Shape::Insert,
            Sends::Bulk => Shape::BulkInsert { bytes_max: self.count("statement_bytes")? as usize },
            Sends::RandomKeys => Shape::RandomKeys {
                n_keys: self.count("random_points")? + self.count("number_of_ranges")?,
                delta: Some(self.count("delta")? as i64).filter(|_| self.0.has("delta")),
            },
        })
    }

    /// With one statement of the kind that every transaction has.
    fn mix(&self, always: Option<StatementKind>) -> Read<Mix> {
        let mut mix = Mix {
            has_begin: self.0.has("skip_trx") && !self.switch("skip_trx"),
            n_keys: self.count("point_select_keys")?,
            range_size: self.count("range_size")?,
            has_row_filter: self.switch("row_filter"),
            ..Mix::default()
        };
        let mut set = |kind, name| {
            mix.set(kind, self.count(name)?);
            Ok(())
        };
        set(StatementKind::PointSelect, "point_selects")?;
        if self.switch("range_selects") {
            set(StatementKind::SimpleRange, "simple_ranges")?;
            set(StatementKind::SumRange, "sum_ranges")?;
            set(StatementKind::OrderRange, "order_ranges")?;
            set(StatementKind::DistinctRange, "distinct_ranges")?;
        }
        set(StatementKind::IndexUpdate, "index_updates")?;
        set(StatementKind::NonIndexUpdate, "non_index_updates")?;
        set(StatementKind::Delete, "delete_inserts")?;
        set(StatementKind::Insert, "delete_inserts")?;
        if let Some(kind) = always {
            mix.set(kind, 1);
        }
        // Such a client would never wait for anything, and so would never end.
        if mix.is_empty() {
            let names = ["skip_trx", "index_updates", "non_index_updates"];
            let name = names.into_iter().find(|name| self.0.has(name)).unwrap_or("tables");
            return refuse(name, "a transaction must send at least one statement");
        }
        Ok(mix)
    }
}
