//! The Insert Benchmark: inserts at the head of tables with three secondary indexes and deletes at
//! the tail, while queries run.
//!
//! Its steps use the same tables: `l.i0` loads, `l.x` creates indexes, `l.i1` and `l.i2` insert and
//! delete as fast as possible, and read/write steps (`qr100`, `qp100`, … or `q100`, …) query while
//! rows come and go at a rate. Tables, values, statements and sizes of commits are those of Mark
//! Callaghan's iibench.py, except:
//!
//! - Times come from the server (`now()`), because a workload has no clock.
//! - An inserter and its deleter have one connection each. In steps without a rate they wait for
//!   each other if more than eight batches apart, like the original's queues.
//! - The deleter asks for the smallest id itself, before its first DELETE of a step.
//! - If clients share a table, one deleter works for all.
//! - `l.x` makes indexes and inserts nothing.
//! - Every client has its own random stream.

mod audit;
mod clients;
mod layout;
mod schema;
mod settings;

#[cfg(test)]
mod tests;

use crate::drive::{refused, with_statements};
use crate::prelude::*;
use crate::skew::{DrawnKeys, KeyBins};

use clients::{ClientRole, Deleter, Indexer, Inserter, PointClient, RangeClient, TrialCounters};
use layout::{Duty, Layout, Query};
use settings::Settings;

const NAME: &str = "insert-benchmark";

pub fn spec() -> WorkloadSpec {
    let summary =
        "the Insert Benchmark's steps l.i0 to qp1000: inserts, deletes at the tail and queries";
    WorkloadSpec::new(NAME, summary, settings::OPTIONS.to_vec(), |input| {
        Ok(Arc::new(planned(input)?) as Arc<dyn Workload>)
    })
}

/// The seed has no effect: tables begin empty, and rows come from clients.
fn planned(input: &PlanInput<'_>) -> Result<InsertBenchmark, PlanError> {
    let settings = Settings::read(input.options)?;
    let layout = Layout::new(&settings, &input.request).map_err(PlanError::Load)?;
    let rows_of_steps = settings.load.rows.saturating_mul(layout.n_tables as u64);
    let outline = Outline { steps: layout.steps(), rows_of_steps, ..input.outline(KINDS) };
    Ok(InsertBenchmark { outline, settings, layout })
}

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

#[rustfmt::skip]
const KINDS: &[Name] = &[
    name("insert"), name("delete"), name("get_min_start"), name("get_min"),
    name("create_indexes"), name("market"), name("register"), name("pdc"), name("point"),
    name("get_max"),
];

impl Kind {
    fn index(self) -> usize {
        self as usize
    }

    const RANGES: [Kind; 3] = [Kind::Market, Kind::Register, Kind::Pdc];
}

struct InsertBenchmark {
    outline: Outline,
    settings: Settings,
    layout: Layout,
}

struct Bench {
    settings: Settings,
    layout: Layout,
    counters: TrialCounters,
    products: Arc<DrawnKeys>,
}

impl Clients for Bench {
    fn client(self: Arc<Self>, context: ClientContext) -> ClientFuture {
        let place = self.layout.shapes.get(context.step).and_then(|shape| {
            let role = shape.own.roles.get(context.role)?;
            (role.clients == context.n_in_role).then_some((shape, shape.duties[context.role]))
        });
        let Some((shape, duty)) = place else {
            return refused(context, "the step has other roles than the Insert Benchmark planned");
        };
        let role = ClientRole {
            step: context.step,
            table: context.idx_in_role % self.layout.n_tables,
            per_commit: shape.per_commit,
            is_coupled: shape.is_coupled,
            has_deletes: shape.has_deletes(),
            bench: Arc::clone(&self),
        };
        client(role, (duty, shape.deletes), context)
    }

    fn audit(&self, totals: &AuditTotals, answers: &[TextRows]) -> Vec<AuditRow> {
        audit::judge(self, totals, answers)
    }
}

fn client(role: ClientRole, (duty, deletes): (Duty, u64), context: ClientContext) -> ClientFuture {
    let dialect = context.session.dialect();
    match duty {
        Duty::Insert => Box::pin(drive(Inserter::new(role, schema::now(dialect)), context)),
        Duty::Delete => {
            let (deleter, statements) = Deleter::new(role, dialect, deletes);
            with_statements(deleter, statements, context)
        }
        Duty::Index => {
            let (settings, table) = (&role.bench.settings, schema::table_name(role.table));
            let is_one_by_one = settings.is_one_by_one;
            let statements =
                schema::create_indexes(settings.schema, dialect, &table, is_one_by_one);
            Box::pin(drive(Indexer::new(statements), context))
        }
        Duty::Query(Query::Range) => {
            let (client, statements) = RangeClient::new(role, dialect);
            with_statements(client, statements, context)
        }
        Duty::Query(Query::Point) => {
            let (client, statements) = PointClient::new(role, dialect);
            with_statements(client, statements, context)
        }
    }
}

impl Workload for InsertBenchmark {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    /// No table has rows before the first step.
    fn tables(&self, dialect: Dialect) -> Vec<Table> {
        let schema = self.settings.schema;
        (0..self.layout.n_tables).map(|idx| schema::table(schema, dialect, idx)).collect()
    }

    fn audit_queries(&self, dialect: Dialect) -> Vec<String> {
        audit::queries(self.layout.n_tables, dialect)
    }

    fn clients(self: Arc<Self>) -> Arc<dyn Clients> {
        Arc::new(self.made())
    }
}

impl InsertBenchmark {
    fn made(&self) -> Bench {
        let (settings, layout) = (self.settings.clone(), self.layout.clone());
        let counters = TrialCounters::new(layout.n_tables, layout.shapes.len());
        let products = DrawnKeys::new(KeyBins::even(settings.values.products));
        Bench { settings, layout, counters, products }
    }
}
