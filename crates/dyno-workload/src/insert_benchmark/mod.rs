//! The Insert Benchmark: rows go in at the head of tables with three secondary indexes, out at the
//! tail, and queries go on meanwhile.
//!
//! It is a sequence of steps on the same tables: `l.i0` loads, `l.x` makes the indexes, `l.i1` and
//! `l.i2` insert and delete as fast as they go, and read/write steps (`qr100`, `qp100`, … or `q100`,
//! …) query while rows come and go at a rate. Tables, values, statements and sizes of commits are
//! those of Mark Callaghan's iibench.py. Where this departs from it:
//!
//! - Time values come from the server (`now()`), because a workload has no clock.
//! - An inserter and its deleter have a connection each and no third one between them. In steps
//!   without a rate they wait for each other when they are more than eight batches apart, which is
//!   what the original's queues come to.
//! - The deleter itself asks for the smallest id, before its first DELETE of each step.
//! - Several clients may share a table and delete there: one deleter does it for all of them.
//! - `l.x` makes the indexes and inserts nothing.
//! - Every client has a random stream of its own.

mod audit;
mod clients;
mod layout;
mod ledger;
mod queries;
mod rows;
mod schema;
mod settings;

#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use dyno_units::Seed;

use crate::options::{OptionError, OptionSpec, Options};
use crate::skew::{DrawnKeys, KeyBins};
use crate::{
    AuditRow, AuditTotals, ClientFuture, Dialect, OwnStep, Row, Seat, Statement, StatementError,
    StepFrame, Table, TextRows, Workload, drive,
};

use clients::{Deleter, Indexer, Inserter, Post, Refused};
use layout::{Duty, Layout, Query, Work};
use ledger::Ledger;
use queries::{PointClient, RangeClient};
use settings::Settings;

/// The workload's name.
pub const NAME: &str = "insert-benchmark";

/// One sentence.
pub const SUMMARY: &str =
    "the Insert Benchmark's steps l.i0 to qp1000: inserts, deletes at the tail and queries";

/// Its options.
pub fn option_specs() -> Vec<OptionSpec> {
    settings::OPTIONS.to_vec()
}

/// Makes the workload. `seed` decides nothing: tables begin empty, and rows come from clients.
pub fn create(
    name: &'static str,
    options: Options,
    _seed: Seed,
) -> Result<Arc<dyn Workload>, OptionError> {
    let settings = Settings::read(&options)?;
    Ok(Arc::new(InsertBenchmark {
        name,
        options: options.pairs(),
        settings,
        bench: OnceLock::new(),
    }))
}

/// A kind of transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Insert,
    Delete,
    /// The smallest id, when a step begins.
    GetMinStart,
    /// The same again while it runs.
    GetMin,
    CreateIndexes,
    // The range queries, in the order of `schema::Index`.
    Market,
    Register,
    Pdc,
    Point,
    GetMax,
}

/// The names of all kinds, in the order of [`Kind`].
const KINDS: &[&str] = &[
    "insert",
    "delete",
    "get_min_start",
    "get_min",
    "create_indexes",
    "market",
    "register",
    "pdc",
    "point",
    "get_max",
];

impl Kind {
    fn index(self) -> usize {
        self as usize
    }

    /// Those of `market`, `register` and `pdc`.
    const RANGES: [Kind; 3] = [Kind::Market, Kind::Register, Kind::Pdc];
}

struct InsertBenchmark {
    name: &'static str,
    options: Vec<(String, String)>,
    settings: Settings,
    // Known once it has been asked for its steps.
    bench: OnceLock<Arc<Bench>>,
}

/// What all clients share.
struct Bench {
    settings: Settings,
    layout: Layout,
    ledger: Ledger,
    /// Those of inserted rows.
    products: Arc<DrawnKeys>,
}

impl InsertBenchmark {
    /// The tables there are; before the steps were asked for, those of one client.
    fn n_tables(&self) -> usize {
        self.bench.get().map_or(1, |bench| bench.layout.n_tables)
    }

    /// The client of this seat.
    fn seated(&self, seat: Seat) -> ClientFuture {
        let Some(bench) = self.bench.get().map(Arc::clone) else {
            return refuse(seat, "the Insert Benchmark has not been asked for its steps");
        };
        let place = bench.layout.shapes.get(seat.step).and_then(|shape| {
            let role = shape.own.roles.get(seat.role)?;
            (role.clients == seat.n_in_role).then_some((shape, shape.duties[seat.role]))
        });
        let Some((shape, duty)) = place else {
            return refuse(seat, "the step has other roles than the Insert Benchmark said");
        };
        let post = Post {
            step: seat.step,
            table: seat.idx_in_role % bench.layout.n_tables,
            per_commit: shape.per_commit,
            is_coupled: shape.work == Work::Churn && shape.has_deletes(),
            has_deletes: shape.has_deletes(),
            bench: Arc::clone(&bench),
        };
        let (dialect, settings) = (seat.session.dialect(), &bench.settings);
        let table = schema::table_name(post.table);
        match duty {
            Duty::Insert => Box::pin(drive(Inserter::new(post, schema::now(dialect)), seat)),
            Duty::Delete => {
                let (deleter, statements) = Deleter::new(post, dialect, shape.deletes);
                with_statements(deleter, statements, seat)
            }
            Duty::Index => {
                let is_one_by_one = settings.is_one_by_one;
                let statements =
                    schema::create_indexes(settings.schema, dialect, &table, is_one_by_one);
                Box::pin(drive(Indexer::new(statements), seat))
            }
            Duty::Query(Query::Range) => {
                let (client, statements) = RangeClient::new(post, dialect);
                with_statements(client, statements, seat)
            }
            Duty::Query(Query::Point) => {
                let (client, statements) = PointClient::new(post, dialect);
                with_statements(client, statements, seat)
            }
        }
    }
}

/// Prepares a client's own statements and lets it begin.
fn with_statements(
    client: impl crate::Transactions + 'static,
    statements: Vec<Statement>,
    mut seat: Seat,
) -> ClientFuture {
    if let Err(error) = seat.session.prepare(&statements) {
        let StatementError { class, code, message } = error;
        let message = format!("a statement could not be prepared: {message}");
        let error = StatementError::new(class, code, message);
        return Box::pin(drive(Refused { error }, seat));
    }
    seat.statements = statements.into();
    Box::pin(drive(client, seat))
}

fn refuse(seat: Seat, reason: &str) -> ClientFuture {
    Box::pin(drive(Refused::because(reason), seat))
}

impl Workload for InsertBenchmark {
    fn name(&self) -> &'static str {
        self.name
    }

    fn kinds(&self) -> &[&'static str] {
        KINDS
    }

    fn options(&self) -> Vec<(String, String)> {
        self.options.clone()
    }

    /// Remembers the frame: how many tables there are, and what the audit demands, follows from it.
    fn steps(&self, frame: &StepFrame) -> Result<Vec<OwnStep>, String> {
        let layout = Layout::new(&self.settings, frame)?;
        let steps = layout.steps();
        let bench = self.bench.get_or_init(|| {
            let ledger = Ledger::new(layout.n_tables, layout.shapes.len());
            let products = DrawnKeys::new(KeyBins::even(self.settings.values.products));
            Arc::new(Bench { settings: self.settings.clone(), layout, ledger, products })
        });
        if bench.layout.steps() == steps {
            return Ok(steps);
        }
        Err("the Insert Benchmark was asked for the steps of two different loads".to_owned())
    }

    fn rows_of_steps(&self) -> u64 {
        self.settings.load.rows.saturating_mul(self.n_tables() as u64)
    }

    /// The deleter asks for the smallest id as well, at the same rate.
    fn kinds_of_role(&self, role: &str) -> &'static [&'static str] {
        match role {
            "inserter" => &["insert"],
            "deleter" => &["delete", "get_min_start", "get_min"],
            "indexer" => &["create_indexes"],
            "query" => &["market", "register", "pdc", "point", "get_max"],
            _ => &[],
        }
    }

    fn tables(&self, dialect: Dialect) -> Vec<Table> {
        let schema = self.settings.schema;
        (0..self.n_tables()).map(|idx| schema::table(schema, dialect, idx)).collect()
    }

    fn fill_row(&self, _table_idx: usize, _number: u64, _row: &mut Row) {
        // No table has rows before the first step.
    }

    /// None: each client prepares those of its own table.
    fn statements(&self, _dialect: Dialect) -> Vec<Statement> {
        Vec::new()
    }

    fn client(&self, seat: Seat) -> ClientFuture {
        self.seated(seat)
    }

    fn audit_queries(&self, dialect: Dialect) -> Vec<String> {
        audit::queries(self.n_tables(), dialect)
    }

    fn audit(&self, totals: &AuditTotals, answers: &[TextRows]) -> Vec<AuditRow> {
        match self.bench.get() {
            Some(bench) => audit::judge(bench, totals, answers),
            None => Vec::new(),
        }
    }
}
