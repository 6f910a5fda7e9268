//! The options of each script, and the settings derived from them.

use dyno_units::Seed;

use dyno_model::{OptionError, OptionSpec};

use crate::options::Options;

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

const TABLES: &[OptionSpec] = &[
    OptionSpec::count(
        "tables",
        "1",
        "number of tables (select_random_points and _ranges query only the first)",
    ),
    OptionSpec::count("table_size", "10000", "rows in each table"),
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
const POINTS: &[OptionSpec] =
    &[OptionSpec::count("point_selects", "10", "point selects per transaction")];
const KEYS: &[OptionSpec] = &[OptionSpec::count(
    "point_select_keys",
    "1",
    "keys per point select; above 1 it uses `id IN (…)`",
)];
const RANGES: &[OptionSpec] = &[
    OptionSpec::switch("range_selects", true, "off leaves out all four kinds of range scans"),
    OptionSpec::count("range_size", "100", "rows per range scan"),
    OptionSpec::count("simple_ranges", "1", "range scans that return all rows"),
    OptionSpec::count("sum_ranges", "1", "range scans that return the sum of k"),
    OptionSpec::count("order_ranges", "1", "range scans that sort their rows"),
    OptionSpec::count(
        "distinct_ranges",
        "1",
        "range scans that sort their rows and remove duplicates",
    ),
    OptionSpec::switch(
        "row_filter",
        false,
        "range scans read `range_size` rows and return only one of them",
    ),
];
const INDEX_UPDATES: &[OptionSpec] =
    &[OptionSpec::count("index_updates", "1", "updates of the indexed column k per transaction")];
const NON_INDEX_UPDATES: &[OptionSpec] = &[OptionSpec::count(
    "non_index_updates",
    "1",
    "updates of the unindexed column c per transaction",
)];
const DELETE_INSERTS: &[OptionSpec] =
    &[OptionSpec::count("delete_inserts", "1", "rows deleted and reinserted per transaction")];
const RANDOM_POINTS: &[OptionSpec] =
    &[OptionSpec::count("random_points", "10", "values per statement")];
const RANDOM_RANGES: &[OptionSpec] = &[
    OptionSpec::count("number_of_ranges", "10", "ranges per statement"),
    OptionSpec::count("delta", "5", "length of a range: its last value minus its first"),
];
const BULK: &[OptionSpec] = &[
    OptionSpec::count("tables", "1", "number of tables; sysbench has one for each client"),
    OptionSpec::count("statement_bytes", "524288", "length at which a statement is sent"),
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
    pub(super) random_points: u64,
    pub(super) number_of_ranges: u64,
    pub(super) delta: u64,
}

/// What columns of type INTEGER leave room for, ranges past the end included.
const ROWS_MAX: u64 = 2_000_000_000;

impl Settings {
    pub(super) fn read(script: ScriptId, options: &Options) -> Result<Settings, OptionError> {
        let reader = Reader { script, options };
        let has_rows = script != ScriptId::BulkInsert;
        Ok(Settings {
            script,
            n_tables: reader.count("tables", 1, 100_000)?,
            table_size: if has_rows { reader.count("table_size", 1, ROWS_MAX)? } else { 1 },
            is_auto_increment: reader.switch("auto_inc"),
            is_id_secondary: reader.switch("secondary"),
            has_k_index: reader.switch("create_secondary"),
            distribution: match has_rows {
                true => DistributionSpec::from_options(options)?,
                false => DistributionSpec::Uniform,
            },
            mix: reader.mix()?,
            statement_bytes: reader.count("statement_bytes", 200, 1 << 30)? as usize,
            random_points: reader.count("random_points", 1, 10_000)?,
            number_of_ranges: reader.count("number_of_ranges", 1, 5000)?,
            delta: reader.count("delta", 0, 100_000_000)?,
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
struct Reader<'a> {
    script: ScriptId,
    options: &'a Options,
}

impl Reader<'_> {
    fn has(&self, name: &str) -> bool {
        self.script.groups().iter().any(|group| group.iter().any(|spec| spec.name == name))
    }

    fn switch(&self, name: &str) -> bool {
        self.has(name) && self.options.switch(name)
    }

    /// 0 if the script has no such option.
    fn count(&self, name: &str, min: u64, max: u64) -> Result<u64, OptionError> {
        if !self.has(name) {
            return Ok(0);
        }
        let value = self.options.count(name);
        if (min..=max).contains(&value) {
            return Ok(value);
        }
        let reason = format!("`{value}` is not between {min} and {max}");
        Err(OptionError { name: name.to_owned(), reason })
    }

    fn mix(&self) -> Result<Mix, OptionError> {
        let mut mix = Mix {
            has_begin: self.has("skip_trx") && !self.switch("skip_trx"),
            n_keys: self.count("point_select_keys", 1, 10_000)?,
            range_size: self.count("range_size", 1, 100_000_000)?,
            has_row_filter: self.switch("row_filter"),
            ..Mix::default()
        };
        let mut set = |kind, name| {
            mix.set(kind, self.count(name, 0, 1_000_000)?);
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
        match self.script {
            ScriptId::PointSelect => mix.set(StatementKind::PointSelect, 1),
            ScriptId::Delete => mix.set(StatementKind::Delete, 1),
            _ => {}
        }
        // Such a client would never wait for anything, and so would never end.
        if self.script.sends_mix() && mix.is_empty() {
            let names = ["skip_trx", "index_updates", "non_index_updates"];
            let name = names.into_iter().find(|name| self.has(name)).unwrap_or("tables");
            let reason = "a transaction must send at least one statement".to_owned();
            return Err(OptionError { name: name.to_owned(), reason });
        }
        Ok(mix)
    }
}
