//! Vector search: nearest neighbours by an index, with recall.
//!
//! One table holds vectors, clusters from a seed or those of a file. Steps are exact scans (`exact`),
//! building the index (`index`), and searches for each value of the search parameter (`search 1`, `search 2`,
//! …): one index gives a curve of recall against queries per second, and variants with different indexes have
//! the same steps. Recall is the found share of the `k` nearest neighbours. Dyno computes them exactly before
//! the trial ([`exact`]), and clients compare each answer after its time was taken. The warm-up's queries
//! count as well, as recall does not depend on time.

mod audit;
mod clients;
pub mod data;
pub mod exact;
mod schema;
mod settings;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use dyno_model::{Name, StepRequest, WorkloadStep, name};
use dyno_units::Direction::{Higher, Lower, Neither};
use dyno_units::{Metric, MetricId, Nanoseconds, Unit, metric};

use crate::MeasuredStep;
use crate::options::refused;
use crate::prelude::*;
use crate::workload::{closed_role, own_step};

pub use settings::Distance;

use clients::{Encoded, Found};
use data::{DataError, FvecsFile, Mixture, Source};
use exact::{Neighbours, Request};
use settings::{Index, Settings};

const NAME: &str = "vectors";

/// The most dimensions that an index of pgvector takes.
const PGVECTOR_INDEX_DIMENSIONS: usize = 2000;

#[rustfmt::skip]
const FIGURES: &[Metric] = &[
    metric("vectors.recall", Unit::Number, Higher, "recall", "share of the nearest neighbours that queries found, the mean over all queries of the step").secondary().at_most(1.0),
    metric("vectors.search", Unit::Number, Neither, "search parameter", "hnsw.ef_search, mhnsw_ef_search or ivfflat.probes"),
    metric("vectors.index_size", Unit::Bytes, Lower, "index size", "bytes of the index on disk after it was built").secondary(),
    metric("vectors.index_memory", Unit::Bytes, Lower, "server memory", "highest resident memory of the server's processes in any second while the index was built").secondary(),
];

pub fn spec() -> WorkloadSpec {
    let summary = "nearest neighbours of vectors: builds an index, and measures recall and queries per second";
    WorkloadSpec::new(NAME, summary, settings::OPTIONS.to_vec(), |input| {
        Ok(Arc::new(planned(input)?) as Arc<dyn Workload>)
    })
}

/// A kind of transaction; its number is that in [`KINDS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Query,
    CreateIndex,
    IndexSize,
}

const KINDS: &[Name] = &[name("query"), name("create_index"), name("index_size")];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Exact,
    Build,
    Search(u64),
}

#[derive(Clone, Debug)]
struct Shape {
    own: WorkloadStep,
    work: Work,
}

#[derive(Clone)]
struct Vectors {
    outline: Outline,
    settings: Settings,
    source: Arc<dyn Source>,
    queries: Arc<dyn Source>,
    dimensions: usize,
    shapes: Vec<Shape>,
    /// All that the exact neighbours depend on.
    key: String,
}

fn planned(input: &PlanInput<'_>) -> Result<Vectors, PlanError> {
    let mut settings = Settings::read(input.options)?;
    let seed = input.seed;
    let files = settings.files.as_ref();
    let files = files.map(|(data, queries)| opened(data, queries)).transpose()?;
    let sizes = (settings.rows, settings.dimensions as usize, settings.clusters);
    let (source, queries, dimensions): (Arc<dyn Source>, Arc<dyn Source>, usize) = match files {
        Some((data, queries)) => {
            let dimensions = data.dimensions();
            let most = if settings.rows == 0 { u64::MAX } else { settings.rows };
            (Arc::new(data.limited(most)), Arc::new(queries.limited(settings.queries)), dimensions)
        }
        None => {
            let (rows, dimensions, clusters) = sizes;
            let queries = (settings.queries, dimensions, clusters);
            let rows = Mixture::new(seed, "vectors: rows", (rows, dimensions, clusters));
            let queries = Mixture::new(seed, "vectors: queries", queries);
            (Arc::new(rows), Arc::new(queries), dimensions)
        }
    };
    if source.len() <= settings.k {
        let why = format!("{} vectors are too few to search for {}", source.len(), settings.k);
        return Err(refused("data", why).into());
    }
    settings.rows = source.len();
    settings.index = settings.index.with_rows(input.options, settings.rows);
    let key = format!(
        "{:?} {sizes:?} {} {} {} {:?} {}",
        settings.files, settings.rows, settings.queries, settings.k, settings.distance, seed.0
    );
    let shapes = shapes(&settings, &input.request)?;
    let steps = shapes.iter().map(|shape| shape.own.clone()).collect();
    let outline = Outline { steps, ..input.outline(KINDS) };
    Ok(Vectors { outline, settings, source, queries, dimensions, shapes, key })
}

fn opened(data: &str, queries: &str) -> Result<(FvecsFile, FvecsFile), PlanError> {
    let open = |option, path| {
        FvecsFile::open(path).map_err(|error| PlanError::from(refused(option, error.to_string())))
    };
    let (vectors, queries) = (open("data", data)?, open("query_data", queries)?);
    if vectors.dimensions() != queries.dimensions() {
        let (of_data, own) = (vectors.dimensions(), queries.dimensions());
        let why = format!("its vectors have {own} dimensions, and those of `data` {of_data}");
        return Err(refused("query_data", why).into());
    }
    Ok((vectors, queries))
}

fn shapes(settings: &Settings, request: &StepRequest) -> Result<Vec<Shape>, PlanError> {
    if request.clients == 0 {
        return Err(PlanError::Load("`vectors` needs at least one client".to_owned()));
    }
    let queries = |step: String, work| {
        let role = closed_role("query", request.clients, None, &KINDS[..1]);
        Shape { own: own_step(step, vec![role], request.duration), work }
    };
    let mut shapes = Vec::new();
    if settings.has_exact {
        shapes.push(queries("exact".to_owned(), Work::Exact));
    }
    if settings.index != Index::None {
        let builder = closed_role("builder", 1, Some(2), &KINDS[1..]);
        let own = own_step("index", vec![builder], Nanoseconds::from_secs(settings.limit_s));
        shapes.push(Shape { own, work: Work::Build });
    }
    for (number, nth) in settings.searches.iter().zip(1..) {
        shapes.push(queries(format!("search {nth}"), Work::Search(*number)));
    }
    Ok(shapes)
}

struct Bench {
    plan: Vectors,
    right: Result<Arc<Neighbours>, DataError>,
    encoded: OnceLock<Result<Encoded, DataError>>,
    found: Vec<Found>,
    /// Bytes of the index; 0 if they are not known.
    index_bytes: AtomicU64,
}

impl Bench {
    fn new(plan: Vectors) -> Bench {
        let right = plan.neighbours();
        let found = plan.shapes.iter().map(|_| Found::default()).collect();
        Bench { plan, right, encoded: OnceLock::new(), found, index_bytes: AtomicU64::new(0) }
    }

    fn encoded(&self, dialect: Dialect) -> Result<Encoded, DataError> {
        let make = || {
            let Vectors { queries, dimensions, .. } = &self.plan;
            let mut vector = vec![0.0; *dimensions];
            let all: Result<Vec<Box<[u8]>>, DataError> = (0..queries.len())
                .map(|row| {
                    queries.read(row, &mut vector)?;
                    let mut bytes = Vec::new();
                    schema::push_vector(&mut bytes, dialect, &vector);
                    Ok(bytes.into_boxed_slice())
                })
                .collect();
            all.map(Encoded::from)
        };
        self.encoded.get_or_init(make).clone()
    }
}

/// Right answers that were computed before, by all that they depend on: trials of a run have the same.
static KNOWN: Mutex<Vec<(String, Arc<Neighbours>)>> = Mutex::new(Vec::new());

const KNOWN_MOST: usize = 4;

impl Vectors {
    fn neighbours(&self) -> Result<Arc<Neighbours>, DataError> {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, right)) = known.iter().find(|(key, _)| *key == self.key) {
            return Ok(Arc::clone(right));
        }
        let queries = data::first(&*self.queries, self.queries.len(), self.dimensions)?;
        let request = Request {
            queries: &queries,
            dimensions: self.dimensions,
            k: self.settings.k as usize,
            distance: self.settings.distance,
            threads: thread::available_parallelism().map_or(1, usize::from),
        };
        let right = Arc::new(exact::neighbours(&*self.source, &request)?);
        known.truncate(KNOWN_MOST - 1);
        known.insert(0, (self.key.clone(), Arc::clone(&right)));
        Ok(right)
    }
}

impl Workload for Vectors {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    fn check(&self, dialect: Dialect) -> Result<(), String> {
        crate::workload::refuse_without_transactions(self.name(), dialect)?;
        let what = match (dialect, self.settings.index) {
            (Dialect::Sqlite, _) => {
                "SQLite has no vectors; use PostgreSQL with pgvector, or MariaDB from 11.8 on"
            }
            (Dialect::MySql, Index::IvfFlat { .. }) => {
                "IVFFlat is an index of pgvector; MariaDB has HNSW: write `index = \"hnsw\"`"
            }
            (Dialect::MySql, Index::Hnsw { m: 2, .. }) => "MariaDB's HNSW has an `m` of 3 or more",
            (Dialect::PostgreSql, index)
                if index != Index::None && self.dimensions > PGVECTOR_INDEX_DIMENSIONS =>
            {
                "pgvector has indexes for at most 2000 dimensions; write `index = \"none\"`"
            }
            _ => return Ok(()),
        };
        Err(what.to_owned())
    }

    fn needs_rows(&self) -> bool {
        true
    }

    fn needs_vectors(&self) -> bool {
        true
    }

    fn tables(&self, dialect: Dialect) -> Vec<Table> {
        vec![schema::table(dialect, self.settings.rows, self.dimensions)]
    }

    fn fill_row(&self, table_idx: usize, number: u64, row: &mut Row) {
        self.fill_row_in(Dialect::MySql, table_idx, number, row);
    }

    /// A vector that cannot be read is left out, which the audit finds.
    fn fill_row_in(&self, dialect: Dialect, _table_idx: usize, number: u64, row: &mut Row) {
        let mut vector = vec![0.0; self.dimensions];
        match self.source.read(number, &mut vector) {
            Ok(()) => schema::push_row(row, dialect, number, &vector),
            Err(_) => schema::push_row(row, dialect, number, &[]),
        }
    }

    fn audit_queries(&self, dialect: Dialect) -> Vec<String> {
        vec![schema::checksum(dialect)]
    }

    fn metrics(&self) -> &'static [Metric] {
        FIGURES
    }

    fn clients(self: Arc<Self>) -> Arc<dyn Clients> {
        Arc::new(BenchClients { bench: Arc::new(Bench::new((*self).clone())) })
    }
}

struct BenchClients {
    bench: Arc<Bench>,
}

impl Clients for BenchClients {
    fn client(&self, context: ClientContext) -> ClientFuture {
        clients::client(&self.bench, context)
    }

    fn figures(&self, step: &MeasuredStep<'_>) -> Vec<(MetricId, f64)> {
        let [recall, search, size, memory] = [0, 1, 2, 3].map(|idx| FIGURES[idx].id);
        let Some(shape) = self.bench.plan.shapes.get(step.step) else { return Vec::new() };
        let mut figures = Vec::new();
        match shape.work {
            Work::Build => {
                let bytes = self.bench.index_bytes.load(Ordering::Relaxed);
                figures.extend((bytes > 0).then_some((size, bytes as f64)));
                figures.extend(step.server_memory.map(|bytes| (memory, bytes)));
                return figures;
            }
            Work::Exact => {}
            Work::Search(number) => figures.push((search, number as f64)),
        }
        let (queries, right) = self.bench.found[step.step].read();
        let wanted = (queries * self.bench.plan.settings.k) as f64;
        figures.extend((queries > 0).then(|| (recall, right as f64 / wanted)));
        figures
    }

    fn audit(&self, _totals: &AuditTotals, answers: &[TextRows]) -> Vec<AuditRow> {
        let Bench { plan, found, .. } = &*self.bench;
        let mut rows = audit::content(&*plan.source, plan.dimensions, answers.first());
        let exact = plan.shapes.iter().position(|shape| shape.work == Work::Exact);
        rows.extend(exact.map(|step| audit::exact(found[step].read(), plan.settings.k)));
        rows
    }
}
