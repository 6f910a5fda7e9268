//! Checked options of the Insert Benchmark.

use crate::options::{Options, any_count, count, refuse, within, word};
use crate::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Schema {
    /// Since December 2023: `price` is a whole number.
    December2023,
    /// From 2009 to November 2023, so also in July 2023: `price` has a fraction.
    July2023,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    Ranges,
    RangesAndPoints,
}

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
    Text,
    /// As the text `execute NAME (values)`, of a statement that SQL's PREPARE has prepared.
    Execute,
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
    word("schema", &["2023-12", "2023-07"]).help(
        "columns, indexes and queries since December 2023, or those before it (July 2023 and back \
         to 2009); figures of the two cannot be compared",
    ),
    word("tables", &["per-client", "one"]).help("a table for each client, or one for all"),
    word("reads", &["qr-qp", "q"]).help(
        "alternating range and point queries (qr100, qp100, qr500 …), or only range queries (q100 \
         …)",
    ),
    word("limiter", &["schedule", "iibench"]).help(
        "how the read/write steps keep their rate: evenly spread arrivals whatever the server \
         does, or bursts at the start of each second, as in iibench.py",
    ),
    word("deletes", &["limit", "range", "off"]).help(
        "delete the first rows starting at an id (since April 2024), or a range of ids (before \
         that)",
    ),
    word("create_indexes", &["together", "one-by-one"]).help(
        "MariaDB and MySQL: one ALTER TABLE for all three indexes, or one for each (as the author \
         does for MyRocks); elsewhere always one statement per index",
    ),
    word("query_protocol", &["as-run", "text", "prepared"]).help(
        "queries as text or prepared by the protocol; as the author runs it: text on MariaDB and \
         MySQL, text `execute …` of what SQL's PREPARE prepared on PostgreSQL (SQLite: prepared)",
    ),
    count("rows_i0", "100k", 1, ROWS_MAX).help("rows of l.i0 in each table"),
    count("rows_i1", "40k", 0, ROWS_MAX)
        .help("rows of l.i1 in each table; as many are deleted; 0 leaves it out"),
    count("rows_i2", "10k", 0, ROWS_MAX)
        .help("rows of l.i2 in each table; as many are deleted; 0 leaves it out"),
    count("commit_i0", "100", 1, COMMIT_MAX).help("rows per INSERT, and thus per commit, in l.i0"),
    count("commit_i1", "50", 1, COMMIT_MAX).help("rows per INSERT and per DELETE in l.i1"),
    count("commit_i2", "5", 1, COMMIT_MAX).help("rows per INSERT and per DELETE in l.i2"),
    count("commit_q", "50", 1, COMMIT_MAX)
        .help("rows per INSERT and per DELETE in the read/write steps"),
    count("rate_1", "100", 1, RATE_MAX)
        .help("rows per second that each client inserts in the first read/write steps"),
    count("rate_2", "500", 0, RATE_MAX)
        .help("rows per second in the second read/write steps; 0 leaves them out"),
    count("rate_3", "1000", 0, RATE_MAX)
        .help("rows per second in the third read/write steps; 0 leaves them out"),
    count("query_clients", "1", 1, 1000)
        .help("querying connections per client in a read/write step"),
    count("rows_per_query", "10", 1, 1000).help("maximum number of rows that a query returns"),
    count("resync_get_min", "1000", 0, ROWS_MAX)
        .help("deletes after which the smallest id is queried again; 0 queries it once per step"),
    count("settle_s", "1200", 0, 1_000_000).help(
        "longest wait before the first read/write step, in seconds, for the engine to catch up; \
         the author's formula (60 s plus 1 s per million rows) may give less",
    ),
    count("limit_s", "14400", 1, 100_000_000)
        .help("time limit of a step that ends by rows, in seconds"),
    any_count("data_length_min", "10").help("minimum length of column data"),
    count("data_length_max", "20", 1, DATA_LENGTH_MAX)
        .help("maximum length of column data, at most 4000"),
    count("data_random_pct", "50", 0, 100).help("percentage of column data that is incompressible"),
    count("cashregisters", "1000", 1, INT_MAX)
        .help("number of distinct values of column cashregisterid"),
    count("products", "10000", 1, INT_MAX).help("number of distinct values of column productid"),
    count("customers", "100000", 1, INT_MAX).help("number of distinct values of column customerid"),
    count("max_price", "500", 1, INT_MAX)
        .help("column price stays below this (until 2023: below this plus 1000)"),
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
    pub(super) commit_q: u64,
    pub(super) rates: Vec<u64>,
    pub(super) query_clients: usize,
    /// 0 for once a step.
    pub(super) resync: u64,
    pub(super) settle: Nanoseconds,
    pub(super) limit: Nanoseconds,
    pub(super) values: Values,
}

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
        let data_length_max = options.in_range("data_length_max")?;
        let data_length_min = options.count("data_length_min");
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
            values: Values {
                data_length_min: within("data_length_min", data_length_min, (0, data_length_max))?,
                data_length_max,
                data_random_pct: options.in_range("data_random_pct")?,
                cashregisters: options.in_range("cashregisters")?,
                products: options.in_range("products")?,
                customers: options.in_range("customers")?,
                max_price: options.in_range("max_price")?,
                rows_per_query: options.in_range("rows_per_query")?,
            },
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
