//! Vector search: nearest neighbours by an index, with recall.
//!
//! One table holds vectors, clusters from a seed or those of a file. Steps are exact scans (`exact`),
//! building the index (`index`), and searches for each value of the search parameter (`search 1`, `search 2`,
//! …): one index gives a curve of recall against queries per second, and variants with different indexes have
//! the same steps. Recall is the found share of the `k` nearest neighbours. Dyno computes them exactly before
//! the trial ([`exact`]), and clients compare each answer after its time was taken. The warm-up's queries
//! count as well, as recall does not depend on time.

pub mod data;
pub mod exact;
mod schema;
mod settings;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use md5::{Digest, Md5};

use dyno_model::{Name, StepRequest, WorkloadStep, name};
use dyno_units::Direction::{Higher, Lower, Neither};
use dyno_units::{Metric, MetricId, Nanoseconds, RandomStream, Unit, metric};

use crate::MeasuredStep;
use crate::drive::{refused as refused_client, with_statements};
use crate::options::refused;
use crate::prelude::*;
use crate::workload::{closed_role, own_step};

pub use settings::Distance;

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
            let dimensions = data.dimensions;
            let most = if settings.rows == 0 { u64::MAX } else { settings.rows };
            (Arc::new(data.limited(most)), Arc::new(queries.limited(settings.queries)), dimensions)
        }
        None => {
            let (rows, dimensions, clusters) = sizes;
            let rows = Mixture::new(seed, "vectors: rows", (rows, dimensions, clusters));
            let queries = rows.beside(seed, "vectors: queries", settings.queries);
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
    let needed = Outline { needs_rows: true, needs_vectors: true, ..input.outline(KINDS) };
    let outline = Outline { steps, metrics: FIGURES, ..needed };
    Ok(Vectors { outline, settings, source, queries, dimensions, shapes, key })
}

fn opened(data: &str, queries: &str) -> Result<(FvecsFile, FvecsFile), PlanError> {
    let open = |option, path| {
        FvecsFile::open(path).map_err(|error| PlanError::from(refused(option, error.to_string())))
    };
    let (vectors, queries) = (open("data", data)?, open("query_data", queries)?);
    if vectors.dimensions != queries.dimensions {
        let (of_data, own) = (vectors.dimensions, queries.dimensions);
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
        let role = closed_role(name("query"), request.clients, None, &KINDS[..1]);
        Shape { own: own_step(step.into(), vec![role], request.duration), work }
    };
    let mut shapes = Vec::new();
    if settings.has_exact {
        shapes.push(queries("exact".to_owned(), Work::Exact));
    }
    if settings.index != Index::None {
        let builder = closed_role(name("builder"), 1, Some(2), &KINDS[1..]);
        let own = own_step(name("index"), vec![builder], Nanoseconds::from_secs(settings.limit_s));
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

    fn clients(self: Arc<Self>) -> Arc<dyn Clients> {
        Arc::new(Bench::new((*self).clone()))
    }
}

impl Clients for Bench {
    fn client(self: Arc<Self>, context: ClientContext) -> ClientFuture {
        client(&self, context)
    }

    fn figures(&self, step: &MeasuredStep<'_>) -> Vec<(MetricId, f64)> {
        let [recall, search, size, memory] = [0, 1, 2, 3].map(|idx| FIGURES[idx].id);
        let Some(shape) = self.plan.shapes.get(step.step) else { return Vec::new() };
        let mut figures = Vec::new();
        match shape.work {
            Work::Build => {
                let bytes = self.index_bytes.load(Ordering::Relaxed);
                figures.extend((bytes > 0).then_some((size, bytes as f64)));
                figures.extend(step.server_memory.map(|bytes| (memory, bytes)));
                return figures;
            }
            Work::Exact => {}
            Work::Search(number) => figures.push((search, number as f64)),
        }
        let (queries, right) = self.found[step.step].read();
        let wanted = (queries * self.plan.settings.k) as f64;
        figures.extend((queries > 0).then(|| (recall, right as f64 / wanted)));
        figures
    }

    fn audit(&self, _totals: &AuditTotals, answers: &[TextRows]) -> Vec<AuditRow> {
        let Bench { plan, found, .. } = self;
        let mut rows = content(&*plan.source, plan.dimensions, answers.first());
        let exact = plan.shapes.iter().position(|shape| shape.work == Work::Exact);
        rows.extend(exact.map(|step| exact_row(found[step].read(), plan.settings.k)));
        rows
    }
}

// One client builds the index; the others search.

/// What was found in a step, by all of its clients, warm-up included.
#[derive(Debug, Default)]
struct Found {
    queries: AtomicU64,
    right: AtomicU64,
}

impl Found {
    fn read(&self) -> (u64, u64) {
        (self.queries.load(Ordering::Relaxed), self.right.load(Ordering::Relaxed))
    }
}

fn client(bench: &Arc<Bench>, context: ClientContext) -> ClientFuture {
    let dialect = context.session.dialect();
    let plan = &bench.plan;
    let Some(shape) = plan.shapes.get(context.step) else {
        return refused_client(context, "the step was not planned");
    };
    let settings = &plan.settings;
    let search = match shape.work {
        Work::Build => {
            let Some(create) = schema::create_index(dialect, settings.index, settings.distance)
            else {
                return refused_client(context, "the server has no such index");
            };
            let sizes = schema::index_size(dialect);
            let builder = Builder { bench: Arc::clone(bench), create, sizes, is_built: false };
            return Box::pin(drive(builder, context));
        }
        Work::Exact => None,
        Work::Search(number) => Some((settings.index, number)),
    };
    if let Err(error) = &bench.right {
        return refused_client(context, &error.to_string());
    }
    let queries = match bench.encoded(dialect) {
        Ok(queries) => queries,
        Err(error) => return refused_client(context, &error.to_string()),
    };
    let statements = schema::query(dialect, (settings.k, settings.distance), search);
    let (found, bench) = (Vec::with_capacity(settings.k as usize), Arc::clone(bench));
    let (step, query, is_answered) = (context.step, 0, false);
    let searcher = Searcher { step, queries, query, found, is_answered, bench };
    with_statements(searcher, statements, context)
}

type Encoded = Arc<[Box<[u8]>]>;

struct Searcher {
    bench: Arc<Bench>,
    step: usize,
    queries: Encoded,
    query: usize,
    found: Vec<i64>,
    is_answered: bool,
}

impl Transactions for Searcher {
    fn draw(&mut self, random: &mut RandomStream) -> usize {
        self.query = random.below(self.queries.len() as u64) as usize;
        Kind::Query as usize
    }

    /// Compares the answer with the exact neighbours: its time has been taken.
    fn pause_after(&mut self, _kind: usize, _random: &mut RandomStream) -> Nanoseconds {
        if std::mem::take(&mut self.is_answered)
            && let Ok(right) = &self.bench.right
        {
            let found = &self.bench.found[self.step];
            let n_right = right.n_right(self.query, &self.found) as u64;
            found.queries.fetch_add(1, Ordering::Relaxed);
            found.right.fetch_add(n_right, Ordering::Relaxed);
        }
        Nanoseconds::ZERO
    }

    async fn perform(&mut self, _: usize, _: &mut RandomStream, session: &mut Session) -> Done {
        session.execute(0, &[Value::Text(&self.queries[self.query])]).await?;
        let rows = session.kept_rows();
        self.found.clear();
        // No more than there is room for, whatever the server sends.
        let n_rows = rows.n_rows().min(self.found.capacity());
        self.found.extend((0..n_rows).filter_map(|row| rows.integer(row, 0)));
        self.is_answered = true;
        Ok(())
    }
}

struct Builder {
    bench: Arc<Bench>,
    create: String,
    sizes: String,
    is_built: bool,
}

impl Transactions for Builder {
    fn draw(&mut self, _random: &mut RandomStream) -> usize {
        if self.is_built { Kind::IndexSize as usize } else { Kind::CreateIndex as usize }
    }

    async fn perform(&mut self, kind: usize, _: &mut RandomStream, session: &mut Session) -> Done {
        if kind == Kind::CreateIndex as usize {
            session.text_without_limit(&self.create, StatementClass::Other).await?;
            self.is_built = true;
            return Ok(());
        }
        session.text_keeping(&self.sizes, 1, StatementClass::Read).await?;
        let bytes = session.kept_rows().integer(0, 0).unwrap_or(0);
        self.bench.index_bytes.store(bytes.max(0) as u64, Ordering::Relaxed);
        Ok(())
    }
}

// Checks the table's rows, a checksum of all vectors, and the recall of exact scans.

/// A checksum of vectors that a server can compute as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Checksum {
    /// CRC-32 of the numbers, the lowest byte first: MariaDB.
    Crc32,
    /// Of PostgreSQL's form (big-endian: 16 bits size, 16 zero, numbers), MD5's first 32 bits.
    Md5,
}

impl Checksum {
    fn of(self, vector: &[f32], bytes: &mut Vec<u8>) -> u32 {
        bytes.clear();
        match self {
            Checksum::Crc32 => {
                vector.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
                crc32fast::hash(bytes)
            }
            Checksum::Md5 => {
                bytes.extend_from_slice(&(vector.len() as u16).to_be_bytes());
                bytes.extend_from_slice(&[0, 0]);
                vector.iter().for_each(|number| bytes.extend_from_slice(&number.to_be_bytes()));
                let digest = Md5::digest(&bytes[..]);
                u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]])
            }
        }
    }

    fn sum(self, source: &dyn Source, dimensions: usize) -> Result<i128, DataError> {
        let (mut vector, mut bytes) = (vec![0.0; dimensions], Vec::new());
        let mut sum = 0;
        for row in 0..source.len() {
            source.read(row, &mut vector)?;
            sum += i128::from(self.of(&vector, &mut bytes));
        }
        Ok(sum)
    }
}

fn content(source: &dyn Source, dimensions: usize, answer: Option<&TextRows>) -> Vec<AuditRow> {
    let number = |column| answer.and_then(|rows| number_in(rows, 0, column));
    let mut rows = vec![AuditRow::equal("vectors in the table", source.len().into(), number(0))];
    let kind = answer.and_then(|rows| rows.first()?.get(2)?.as_deref());
    let checksum = match kind {
        Some("crc32") => Checksum::Crc32,
        Some("md5") => Checksum::Md5,
        _ => return rows,
    };
    let name = "checksum of all vectors";
    rows.push(match checksum.sum(source, dimensions) {
        Ok(expected) => AuditRow::equal(name, expected, number(1)),
        Err(error) => AuditRow::judged(name, "readable data", error, false),
    });
    rows
}

/// Exact scans find all neighbours. `counted` has their queries and the neighbours that were found.
fn exact_row((queries, right): (u64, u64), k: u64) -> AuditRow {
    let recall = right as f64 / (queries * k).max(1) as f64;
    let measured = format!("{} in {queries} queries", recall_text(recall));
    let row = AuditRow::judged("recall of exact scans", "1.000", measured, right == queries * k);
    row.undecided_if(queries == 0)
}

/// Three digits; never 1 if it is less.
fn recall_text(recall: f64) -> String {
    let shown = if recall < 1.0 { (recall * 1000.0).floor() / 1000.0 } else { recall };
    format!("{shown:.3}")
}

#[cfg(test)]
mod audits {
    use super::data::InMemory;
    use super::*;

    fn answer(rows: &str, sum: &str, kind: &str) -> TextRows {
        vec![[rows, sum, kind].map(|text| Some(text.to_owned())).to_vec()]
    }

    #[test]
    fn checksums_are_those_of_the_servers() {
        let source = InMemory { numbers: vec![1.0, 1.0, 2.0], dimensions: 3 };
        // What psql says of vector_send('[1,1,2]'), and MariaDB of CRC32(VEC_FromText('[1,1,2]')).
        let check = |kind: &str, sum: &str, expected: bool| {
            let rows = content(&source, 3, Some(&answer("1", sum, kind)));
            assert_eq!(rows[1].pass, expected, "{rows:?}");
        };
        check("md5", MD5, true);
        check("crc32", CRC32, true);
        check("md5", "1", false);
        check("crc32", "", false);
        assert!(!content(&source, 3, None)[0].pass);
        assert!(!content(&source, 3, Some(&answer("2", MD5, "md5")))[0].pass);
    }

    const MD5: &str = "354695723";
    const CRC32: &str = "658881138";

    #[test]
    fn an_exact_scan_that_misses_one_neighbour_fails() {
        let found =
            |right| (exact_row((10_000, right), 10).pass, exact_row((10_000, right), 10).measured);
        assert_eq!(found(100_000), (true, "1.000 in 10000 queries".to_owned()));
        assert_eq!(found(99_999), (false, "0.999 in 10000 queries".to_owned()));
        assert!(exact_row((0, 0), 10).is_undecided);
    }
}
