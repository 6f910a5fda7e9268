//! One client builds the index; the others search.

use std::sync::atomic::{AtomicU64, Ordering};

use dyno_units::{Nanoseconds, RandomStream};

use crate::drive::{refused, with_statements};
use crate::prelude::*;

use super::{Bench, Kind, Work, schema};

/// What was found in a step, by all of its clients, warm-up included.
#[derive(Debug, Default)]
pub(super) struct Found {
    queries: AtomicU64,
    right: AtomicU64,
}

impl Found {
    pub(super) fn read(&self) -> (u64, u64) {
        (self.queries.load(Ordering::Relaxed), self.right.load(Ordering::Relaxed))
    }
}

pub(super) fn client(bench: &Arc<Bench>, context: ClientContext) -> ClientFuture {
    let dialect = context.session.dialect();
    let plan = &bench.plan;
    let Some(shape) = plan.shapes.get(context.step) else {
        return refused(context, "the step was not planned");
    };
    let settings = &plan.settings;
    let search = match shape.work {
        Work::Build => {
            let Some(create) = schema::create_index(dialect, settings.index, settings.distance)
            else {
                return refused(context, "the server has no such index");
            };
            let sizes = schema::index_size(dialect);
            let builder = Builder { bench: Arc::clone(bench), create, sizes, is_built: false };
            return Box::pin(drive(builder, context));
        }
        Work::Exact => None,
        Work::Search(number) => Some((settings.index, number)),
    };
    if let Err(error) = &bench.right {
        return refused(context, &error.to_string());
    }
    let queries = match bench.encoded(dialect) {
        Ok(queries) => queries,
        Err(error) => return refused(context, &error.to_string()),
    };
    let statements = schema::query(dialect, (settings.k, settings.distance), search);
    let searcher = Searcher {
        step: context.step,
        queries,
        query: 0,
        found: Vec::with_capacity(settings.k as usize),
        is_answered: false,
        bench: Arc::clone(bench),
    };
    with_statements(searcher, statements, context)
}

pub(super) type Encoded = Arc<[Box<[u8]>]>;

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
