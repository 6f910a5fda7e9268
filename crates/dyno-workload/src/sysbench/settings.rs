//! Options of each script, and the derived settings.

use dyno_units::Seed;

use dyno_model::{OptionError, OptionSpec};

use crate::options::{Options, refuse};

use super::distribution::{self, DistributionSpec};
use super::schema::Schema;
use super::statements::{Mix, StatementKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScriptId {
    ReadOnly,
    ReadWrite,
    WriteOnly,
    PointSelect,
    UpdateIndex,
    UpdateNonIndex,
    Delete,
    Insert,
    BulkInsert,
    RandomPoints,
    RandomRanges,
}

impl ScriptId {
    pub(super) const ALL: [ScriptId; 11] = [
        ScriptId::ReadOnly,
        ScriptId::ReadWrite,
        ScriptId::WriteOnly,
        ScriptId::PointSelect,
        ScriptId::UpdateIndex,
        ScriptId::UpdateNonIndex,
        ScriptId::Delete,
        ScriptId::Insert,
        ScriptId::BulkInsert,
        ScriptId::RandomPoints,
        ScriptId::RandomRanges,
    ];

    fn sends_mix(self) -> bool {
        !matches!(
            self,
            ScriptId::Insert
                | ScriptId::BulkInsert
                | ScriptId::RandomPoints
                | ScriptId::RandomRanges
        )
    }

    fn groups(self) -> &'static [&'static [OptionSpec]] {
        match self {
            ScriptId::ReadOnly => &[TABLES, distribution::OPTIONS, BEGIN, POINTS, KEYS, RANGES],
            ScriptId::ReadWrite => &[
                TABLES,
                distribution::OPTIONS,
                BEGIN,
                POINTS,
                KEYS,
                RANGES,
                INDEX_UPDATES,
                NON_INDEX_UPDATES,
                DELETE_INSERTS,
            ],
            ScriptId::WriteOnly => &[
                TABLES,
                distribution::OPTIONS,
                BEGIN,
                INDEX_UPDATES,
                NON_INDEX_UPDATES,
                DELETE_INSERTS,
            ],
            ScriptId::PointSelect => &[TABLES, distribution::OPTIONS, KEYS],
            ScriptId::UpdateIndex => &[TABLES, distribution::OPTIONS, INDEX_UPDATES],
            ScriptId::UpdateNonIndex => &[TABLES, distribution::OPTIONS, NON_INDEX_UPDATES],
            ScriptId::Delete | ScriptId::Insert => &[TABLES, distribution::OPTIONS],
            ScriptId::BulkInsert => &[BULK],
            ScriptId::RandomPoints => &[TABLES, distribution::OPTIONS, RANDOM_POINTS],
            ScriptId::RandomRanges => &[TABLES, distribution::OPTIONS, RANDOM_RANGES],
        }
    }
}

/// How often a transaction does something.
const fn times(name: &'static str, default: &'static str, help: &'static str) -> OptionSpec {
    OptionSpec::count(name, default, help).within(0, 1_000_000)
}

const TABLES: &[OptionSpec] = &[
    OptionSpec::count(
        "tables",
        "1",
        "number of tables (select_random_points and _ranges query only the first)",
    )
    .within(1, TABLES_MAX),
    OptionSpec::count("table_size", "10000", "rows in each table").within(1, ROWS_MAX),
    OptionSpec::switch("auto_inc", true, "whether the server assigns the ids of inserted rows"),
    OptionSpec::switch("secondary", false, "a plain index on id in place of the primary key"),
    OptionSpec::switch(
        "create_secondary",
        true,
        "an index on column k, created after the rows are filled in",
    ),
];
const BEGIN: &[OptionSpec] =
    &[OptionSpec::switch("skip_trx", false, "no BEGIN and COMMIT: autocommit")];
const POINTS: &[OptionSpec] = &[times("point_selects", "10", "point selects per transaction")];
const KEYS: &[OptionSpec] = &[OptionSpec::count(
    "point_select_keys",
    "1",
    "keys per point select; above 1 it uses `id IN (…)`",
)
.within(1, 10_000)];
const RANGES: &[OptionSpec] = &[
    OptionSpec::switch("range_selects", true, "off leaves out all four kinds of range scans"),
    OptionSpec::count("range_size", "100", "rows per range scan").within(1, 100_000_000),
    times("simple_ranges", "1", "range scans that return all rows"),
    times("sum_ranges", "1", "range scans that return the sum of k"),
    times("order_ranges", "1", "range scans that sort their rows"),
    times("distinct_ranges", "1", "range scans that sort their rows and remove duplicates"),
    OptionSpec::switch(
        "row_filter",
        false,
        "range scans read `range_size` rows and return only one of them",
    ),
];
const INDEX_UPDATES: &[OptionSpec] =
    &[times("index_updates", "1", "updates of the indexed column k per transaction")];
const NON_INDEX_UPDATES: &[OptionSpec] =
    &[times("non_index_updates", "1", "updates of the unindexed column c per transaction")];
const DELETE_INSERTS: &[OptionSpec] =
    &[times("delete_inserts", "1", "rows deleted and reinserted per transaction")];
const RANDOM_POINTS: &[OptionSpec] =
    &[OptionSpec::count("random_points", "10", "values per statement").within(1, 10_000)];
const RANDOM_RANGES: &[OptionSpec] = &[
    OptionSpec::count("number_of_ranges", "10", "ranges per statement").within(1, 5000),
    OptionSpec::count("delta", "5", "length of a range: its last value minus its first")
        .within(0, 100_000_000),
];
const BULK: &[OptionSpec] = &[
    OptionSpec::count("tables", "1", "number of tables; sysbench has one for each client")
        .within(1, TABLES_MAX),
    OptionSpec::count("statement_bytes", "524288", "length at which a statement is sent")
        .within(200, 1 << 30),
];

pub(super) fn option_specs(script: ScriptId) -> Vec<OptionSpec> {
    script.groups().concat()
}

/// All options of a script as numbers, checked. Those that a script does not have are 0 or off.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    script: ScriptId,
    n_tables: u64,
    pub(super) table_size: u64,
    is_auto_increment: bool,
    is_id_secondary: bool,
    has_k_index: bool,
    pub(super) distribution: DistributionSpec,
    pub(super) mix: Mix,
    pub(super) statement_bytes: usize,
    /// Random keys, or ranges of them, per statement.
    pub(super) n_keys: u64,
    /// Last value of a range minus its first; none for keys.
    pub(super) delta: Option<i64>,
}

const TABLES_MAX: u64 = 100_000;

/// What columns of type INTEGER leave room for, ranges past the end included.
const ROWS_MAX: u64 = 2_000_000_000;

impl Settings {
    pub(super) fn read(script: ScriptId, options: &Options) -> Result<Settings, OptionError> {
        let reader = Reader(options);
        let has_rows = script != ScriptId::BulkInsert;
        Ok(Settings {
            script,
            n_tables: reader.count("tables")?,
            table_size: if has_rows { reader.count("table_size")? } else { 1 },
            is_auto_increment: reader.switch("auto_inc"),
            is_id_secondary: reader.switch("secondary"),
            has_k_index: reader.switch("create_secondary"),
            distribution: match has_rows {
                true => DistributionSpec::from_options(options)?,
                false => DistributionSpec::Uniform,
            },
            mix: reader.mix(script)?,
            statement_bytes: reader.count("statement_bytes")? as usize,
            n_keys: reader.count("random_points")? + reader.count("number_of_ranges")?,
            delta: Some(reader.count("delta")? as i64).filter(|_| reader.0.has("delta")),
        })
    }

    pub(super) fn schema(&self, seed: Seed) -> Schema {
        // As in sysbench: with scattered ids, oltp_insert begins with empty tables.
        let is_empty = self.script == ScriptId::Insert && !self.is_auto_increment;
        Schema {
            n_tables: self.n_tables,
            n_rows: if is_empty { 0 } else { self.table_size },
            is_auto_increment: self.is_auto_increment,
            is_id_secondary: self.is_id_secondary,
            has_k_index: self.has_k_index,
            k: self.distribution.over(self.table_size),
            seeds: (0..self.n_tables).map(|idx| seed.derive("sbtest", idx)).collect(),
        }
    }
}

/// Reads options that a script may or may not have.
struct Reader<'a>(&'a Options);

impl Reader<'_> {
    fn switch(&self, name: &str) -> bool {
        self.0.has(name) && self.0.switch(name)
    }

    /// 0 if the script has no such option.
    fn count(&self, name: &str) -> Result<u64, OptionError> {
        if self.0.has(name) { self.0.in_range(name) } else { Ok(0) }
    }

    fn mix(&self, script: ScriptId) -> Result<Mix, OptionError> {
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
        match script {
            ScriptId::PointSelect => mix.set(StatementKind::PointSelect, 1),
            ScriptId::Delete => mix.set(StatementKind::Delete, 1),
            _ => {}
        }
        // Such a client would never wait for anything, and so would never end.
        if script.sends_mix() && mix.is_empty() {
            let names = ["skip_trx", "index_updates", "non_index_updates"];
            let name = names.into_iter().find(|name| self.0.has(name)).unwrap_or("tables");
            return refuse(name, "a transaction must send at least one statement");
        }
        Ok(mix)
    }
}
