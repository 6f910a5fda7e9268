//! Checked options of the Insert Benchmark.

use dyno_units::Nanoseconds;

use crate::Dialect;
use dyno_model::{OptionError, OptionSpec};

use crate::options::{Options, refuse, within};

/// The column types, indexes and queries of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Schema {
    /// Since December 2023: `price` is a whole number.
    December2023,
    /// From 2009 to November 2023, so also in July 2023: `price` has a fraction.
    July2023,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    /// A step of range queries for each rate.
    Ranges,
    /// A step of range queries and one of point queries for each rate.
    RangesAndPoints,
}

/// When the transactions of the read/write steps begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limiter {
    /// Evenly spread, whatever the server does.
    Schedule,
    /// In bursts at the start of each second, as iibench.py does it.
    Iibench,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deletes {
    /// The first rows from an id on, since April 2024.
    Limit,
    /// All rows of a range of ids, before: misses rows where ids have gaps.
    Range,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueryForm {
    /// As a text with its values in it.
    Text,
    /// As the text `execute NAME (values)`, of a statement that SQL's PREPARE has prepared.
    Execute,
    /// As a statement that was prepared by the protocol.
    Prepared,
}

impl QueryProtocol {
    pub(super) fn form(self, dialect: Dialect) -> QueryForm {
        match (self, dialect) {
            (QueryProtocol::AsRun, Dialect::PostgreSql) => QueryForm::Execute,
            (QueryProtocol::Text, _) | (QueryProtocol::AsRun, Dialect::MySql) => QueryForm::Text,
            (QueryProtocol::Prepared, _)
            | (QueryProtocol::AsRun, Dialect::Sqlite | Dialect::ClickHouse) => QueryForm::Prepared,
        }
    }

    /// As queries do, except on SQLite, which has no protocol.
    pub(super) fn asks_ids_as_text(self, dialect: Dialect) -> bool {
        dialect != Dialect::Sqlite && self.form(dialect) != QueryForm::Prepared
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueryProtocol {
    /// The author's: text on MariaDB and MySQL, SQL PREPARE on PostgreSQL; prepared on SQLite.
    AsRun,
    Text,
    Prepared,
}

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec::word(
        "schema",
        &["2023-12", "2023-07"],
        "columns, indexes and queries since December 2023, or those before it (July 2023 and back \
         to 2009); figures of the two cannot be compared",
    ),
    OptionSpec::word("tables", &["per-client", "one"], "a table for each client, or one for all"),
    OptionSpec::word(
        "reads",
        &["qr-qp", "q"],
        "alternating range and point queries (qr100, qp100, qr500 …), or only range queries (q100 …)",
    ),
    OptionSpec::word(
        "limiter",
        &["schedule", "iibench"],
        "how the read/write steps keep their rate: evenly spread arrivals whatever the server \
         does, or bursts at the start of each second, as in iibench.py",
    ),
    OptionSpec::word(
        "deletes",
        &["limit", "range", "off"],
        "delete the first rows starting at an id (since April 2024), or a range of ids (before that)",
    ),
    OptionSpec::word(
        "create_indexes",
        &["together", "one-by-one"],
        "MariaDB and MySQL: one ALTER TABLE for all three indexes, or one for each (as the author \
         does for MyRocks); elsewhere always one statement per index",
    ),
    OptionSpec::word(
        "query_protocol",
        &["as-run", "text", "prepared"],
        "queries as text or prepared by the protocol; as the author runs it: text on MariaDB and \
         MySQL, text `execute …` of what SQL's PREPARE prepared on PostgreSQL (SQLite: prepared)",
    ),
    OptionSpec::count("rows_i0", "100k", "rows of l.i0 in each table").within(1, ROWS_MAX),
    OptionSpec::count(
        "rows_i1",
        "40k",
        "rows of l.i1 in each table; as many are deleted; 0 leaves it out",
    )
    .within(0, ROWS_MAX),
    OptionSpec::count(
        "rows_i2",
        "10k",
        "rows of l.i2 in each table; as many are deleted; 0 leaves it out",
    )
    .within(0, ROWS_MAX),
    OptionSpec::count("commit_i0", "100", "rows per INSERT, and thus per commit, in l.i0")
        .within(1, COMMIT_MAX),
    OptionSpec::count("commit_i1", "50", "rows per INSERT and per DELETE in l.i1")
        .within(1, COMMIT_MAX),
    OptionSpec::count("commit_i2", "5", "rows per INSERT and per DELETE in l.i2")
        .within(1, COMMIT_MAX),
    OptionSpec::count("commit_q", "50", "rows per INSERT and per DELETE in the read/write steps")
        .within(1, COMMIT_MAX),
    OptionSpec::count(
        "rate_1",
        "100",
        "rows per second that each client inserts in the first read/write steps",
    )
    .within(1, RATE_MAX),
    OptionSpec::count(
        "rate_2",
        "500",
        "rows per second in the second read/write steps; 0 leaves them out",
    )
    .within(0, RATE_MAX),
    OptionSpec::count(
        "rate_3",
        "1000",
        "rows per second in the third read/write steps; 0 leaves them out",
    )
    .within(0, RATE_MAX),
    OptionSpec::count("query_clients", "1", "querying connections per client in a read/write step")
        .within(1, 1000),
    OptionSpec::count("rows_per_query", "10", "maximum number of rows that a query returns")
        .within(1, 1000),
    OptionSpec::count(
        "resync_get_min",
        "1000",
        "deletes after which the smallest id is queried again; 0 queries it once per step",
    )
    .within(0, ROWS_MAX),
    OptionSpec::count(
        "settle_s",
        "1200",
        "longest wait before the first read/write step, in seconds, for the engine to catch up; \
         the author's formula (60 s plus 1 s per million rows) may give less",
    )
    .within(0, 1_000_000),
    OptionSpec::count("limit_s", "14400", "time limit of a step that ends by rows, in seconds")
        .within(1, 100_000_000),
    OptionSpec::count("data_length_min", "10", "minimum length of column data"),
    OptionSpec::count("data_length_max", "20", "maximum length of column data, at most 4000")
        .within(1, DATA_LENGTH_MAX),
    OptionSpec::count("data_random_pct", "50", "percentage of column data that is incompressible")
        .within(0, 100),
    OptionSpec::count(
        "cashregisters",
        "1000",
        "number of distinct values of column cashregisterid",
    )
    .within(1, INT_MAX),
    OptionSpec::count("products", "10000", "number of distinct values of column productid")
        .within(1, INT_MAX),
    OptionSpec::count("customers", "100000", "number of distinct values of column customerid")
        .within(1, INT_MAX),
    OptionSpec::count(
        "max_price",
        "500",
        "column price stays below this (until 2023: below this plus 1000)",
    )
    .within(1, INT_MAX),
];

#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) schema: Schema,
    pub(super) is_one_table: bool,
    pub(super) reads: Reads,
    pub(super) limiter: Limiter,
    pub(super) deletes: Deletes,
    pub(super) is_one_by_one: bool,
    pub(super) query_protocol: QueryProtocol,
    pub(super) load: Batches,
    pub(super) churn: [Batches; 2],
    /// Rows of a commit in the read/write steps.
    pub(super) commit_q: u64,
    /// Rows per second and client of the read/write steps.
    pub(super) rates: Vec<u64>,
    pub(super) query_clients: usize,
    /// 0 for once a step.
    pub(super) resync: u64,
    pub(super) settle: Nanoseconds,
    pub(super) limit: Nanoseconds,
    pub(super) values: Values,
}

/// Rows for each table, and how many of them make a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Batches {
    pub(super) rows: u64,
    pub(super) per_commit: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Values {
    pub(super) data_length_min: u64,
    pub(super) data_length_max: u64,
    pub(super) data_random_pct: u64,
    pub(super) cashregisters: u64,
    pub(super) products: u64,
    pub(super) customers: u64,
    pub(super) max_price: u64,
    pub(super) rows_per_query: u64,
}

/// What columns of type INT leave room for.
const INT_MAX: u64 = 2_000_000_000;

/// Most rows of one table: far below what ids of 64 bits have room for.
const ROWS_MAX: u64 = 1_000_000_000_000;

const RATE_MAX: u64 = 1_000_000_000;

const DATA_LENGTH_MAX: u64 = 4000;

/// Most rows of one commit: a statement of about 80 bytes a row stays below a megabyte.
const COMMIT_MAX: u64 = 10_000;

impl Settings {
    pub(super) fn read(options: &Options) -> Result<Settings, OptionError> {
        let batches = |rows, per_commit| {
            let (rows, per_commit) = (options.in_range(rows)?, options.in_range(per_commit)?);
            Ok::<Batches, OptionError>(Batches { rows, per_commit })
        };
        let seconds = |name| options.in_range(name).map(Nanoseconds::from_secs);
        Ok(Settings {
            schema: options.meaning("schema", [Schema::December2023, Schema::July2023]),
            is_one_table: options.text("tables") == "one",
            reads: options.meaning("reads", [Reads::RangesAndPoints, Reads::Ranges]),
            limiter: options.meaning("limiter", [Limiter::Schedule, Limiter::Iibench]),
            deletes: options.meaning("deletes", [Deletes::Limit, Deletes::Range, Deletes::Off]),
            is_one_by_one: options.text("create_indexes") == "one-by-one",
            query_protocol: options.meaning(
                "query_protocol",
                [QueryProtocol::AsRun, QueryProtocol::Text, QueryProtocol::Prepared],
            ),
            load: batches("rows_i0", "commit_i0")?,
            churn: [batches("rows_i1", "commit_i1")?, batches("rows_i2", "commit_i2")?],
            commit_q: options.in_range("commit_q")?,
            rates: rates(options)?,
            query_clients: options.in_range("query_clients")? as usize,
            resync: options.in_range("resync_get_min")?,
            settle: seconds("settle_s")?,
            limit: seconds("limit_s")?,
            values: Values::read(options)?,
        })
    }
}

/// Rising rates, so that no two steps have the same name.
fn rates(options: &Options) -> Result<Vec<u64>, OptionError> {
    let mut rates: Vec<u64> = Vec::new();
    for name in ["rate_1", "rate_2", "rate_3"] {
        let rate = options.in_range(name)?;
        if rate == 0 {
            continue;
        }
        if rates.last().is_some_and(|last| *last >= rate) {
            let reason = format!("{rate} rows per second is not above the rate before it");
            return refuse(name, reason);
        }
        rates.push(rate);
    }
    Ok(rates)
}

impl Values {
    fn read(options: &Options) -> Result<Values, OptionError> {
        let data_length_max = options.in_range("data_length_max")?;
        let data_length_min = options.count("data_length_min");
        Ok(Values {
            data_length_min: within("data_length_min", data_length_min, (0, data_length_max))?,
            data_length_max,
            data_random_pct: options.in_range("data_random_pct")?,
            cashregisters: options.in_range("cashregisters")?,
            products: options.in_range("products")?,
            customers: options.in_range("customers")?,
            max_price: options.in_range("max_price")?,
            rows_per_query: options.in_range("rows_per_query")?,
        })
    }
}
