//! The steps for a number of clients: roles, work, tables.

use dyno_model::{Name, Pacing, Role, StepRequest, WorkloadStep, name, names};
use dyno_units::Nanoseconds;

use crate::workload::own_step;

use super::settings::{Deletes, Limiter, Reads, Settings};

/// Batches between inserter and deleter without a rate: the original's queues have so many.
pub(super) const DRIFT_MAX: u64 = 8;

/// Batches in a table, so that deletes find rows: twice their distance from inserts, and some.
const BATCHES_LEAST: u64 = 20;

/// Seconds of inserts in a table: a server may delete for so long while inserts stall.
const SECONDS_LEAST: u64 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Query {
    Range,
    Point,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duty {
    Insert,
    Delete,
    Index,
    Query(Query),
}

impl Duty {
    /// The deleter also asks for the smallest id, at the same rate.
    fn kinds(self) -> Vec<Name> {
        let kinds: &[&'static str] = match self {
            Duty::Insert => &["insert"],
            Duty::Delete => &["delete", "get_min_start", "get_min"],
            Duty::Index => &["create_indexes"],
            Duty::Query(_) => &["market", "register", "pdc", "point", "get_max"],
        };
        names(kinds)
    }

    fn name(self) -> &'static str {
        match self {
            Duty::Insert => "inserter",
            Duty::Delete => "deleter",
            Duty::Index => "indexer",
            Duty::Query(_) => "query",
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) own: WorkloadStep,
    pub(super) duties: Vec<Duty>,
    pub(super) per_commit: u64,
    /// Rows that a deleter has to delete, in batches.
    pub(super) deletes: u64,
    /// Inserters and deleters, who have no rate, wait for each other.
    pub(super) is_coupled: bool,
}

impl Shape {
    pub(super) fn has_deletes(&self) -> bool {
        self.duties.contains(&Duty::Delete)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) n_tables: usize,
    pub(super) shapes: Vec<Shape>,
}

impl Layout {
    /// The steps for this request, or why the rows are too few for it.
    pub(super) fn new(settings: &Settings, request: &StepRequest) -> Result<Layout, String> {
        if request.clients == 0 {
            return Err("the Insert Benchmark needs at least one client".to_owned());
        }
        let n_tables = if settings.is_one_table { 1 } else { request.clients };
        let plan = Plan { settings, clients: request.clients, n_tables };
        let mut shapes = vec![plan.load()?, plan.index()];
        for (idx, batches) in settings.churn.into_iter().enumerate() {
            if batches.rows > 0 {
                shapes.push(plan.churn(idx, batches.rows, batches.per_commit)?);
            }
        }
        let mut settle = plan.settle();
        for &rate in &settings.rates {
            for &query in plan.queries() {
                shapes.push(plan.read_write(rate, query, request.duration, settle)?);
                settle = Nanoseconds::ZERO;
            }
        }
        plan.check_deletes(&shapes)?;
        Ok(Layout { n_tables, shapes })
    }

    pub(super) fn steps(&self) -> Vec<WorkloadStep> {
        self.shapes.iter().map(|shape| shape.own.clone()).collect()
    }
}

struct Plan<'a> {
    settings: &'a Settings,
    clients: usize,
    n_tables: usize,
}

impl Plan<'_> {
    fn inserters_per_table(&self) -> u64 {
        (self.clients / self.n_tables) as u64
    }

    fn queries(&self) -> &'static [Query] {
        match self.settings.reads {
            Reads::Ranges => &[Query::Range],
            Reads::RangesAndPoints => &[Query::Range, Query::Point],
        }
    }

    fn inserts(&self, option: &str, rows: u64, per_commit: u64) -> Result<u64, String> {
        let inserters = self.inserters_per_table();
        let least = inserters * per_commit;
        if rows < least {
            return Err(format!(
                "option `{option}`: {rows} rows are too few for {inserters} clients that insert \
                 {per_commit} rows at a time into one table; give at least {least}, or fewer clients"
            ));
        }
        Ok(rows.div_ceil(least))
    }

    fn load(&self) -> Result<Shape, String> {
        let batches = self.settings.load;
        let quota = self.inserts("rows_i0", batches.rows, batches.per_commit)?;
        let roles = vec![(Duty::Insert, self.role(Duty::Insert, Pacing::Closed, Some(quota)))];
        Ok(self.shape("l.i0", batches.per_commit, roles))
    }

    fn index(&self) -> Shape {
        let indexer =
            Role { clients: self.n_tables, ..self.role(Duty::Index, Pacing::Closed, Some(1)) };
        self.shape("l.x", 0, vec![(Duty::Index, indexer)])
    }

    fn churn(&self, idx: usize, rows: u64, per_commit: u64) -> Result<Shape, String> {
        let (name, option) = [("l.i1", "rows_i1"), ("l.i2", "rows_i2")][idx];
        let inserts = self.inserts(option, rows, per_commit)?;
        let inserter = self.role(Duty::Insert, Pacing::Closed, Some(inserts));
        let mut roles = vec![(Duty::Insert, inserter)];
        let deletes = inserts * self.inserters_per_table();
        roles.extend(self.deleter(deletes, |_| Pacing::Closed));
        let shape = self.shape(name, per_commit, roles);
        Ok(Shape { deletes, is_coupled: shape.has_deletes(), ..shape })
    }

    fn read_write(
        &self,
        rate: u64,
        query: Query,
        duration: Nanoseconds,
        settle: Nanoseconds,
    ) -> Result<Shape, String> {
        // As in iibench.py: a commit holds no more rows than a second brings.
        let per_commit = self.settings.commit_q.min(rate);
        let inserts = (duration.as_secs_f64() * rate as f64 / per_commit as f64).ceil() as u64;
        let name = match (self.settings.reads, query) {
            (Reads::Ranges, _) => format!("q{rate}"),
            (Reads::RangesAndPoints, Query::Range) => format!("qr{rate}"),
            (Reads::RangesAndPoints, Query::Point) => format!("qp{rate}"),
        };
        if inserts == 0 {
            return Err(format!("step {name}: a step of zero duration inserts nothing"));
        }
        let inserters = self.inserters_per_table();
        // Of one client, in statements a second; `share` is statements for each INSERT.
        let pacing = |statements: u64, share: f64| match self.settings.limiter {
            Limiter::Schedule => {
                let rate = rate as f64 / per_commit as f64;
                Pacing::Constant { rate: rate * statements as f64 * share }
            }
            Limiter::Iibench => {
                Pacing::Bursts { per_burst: rate.div_ceil(per_commit) * statements }
            }
        };
        let inserter = self.role(Duty::Insert, pacing(1, 1.0), Some(inserts));
        let mut roles = vec![(Duty::Insert, inserter)];
        let deletes = inserts * inserters;
        roles.extend(self.deleter(deletes, |share| pacing(inserters, share)));
        let asking = Duty::Query(query);
        let clients = self.clients * self.settings.query_clients;
        roles.push((asking, Role { clients, ..self.role(asking, Pacing::Closed, None) }));
        let shape = self.shape(&name, per_commit, roles);
        // A server that cannot keep up takes longer; four times as long is evidence enough.
        let limit = Nanoseconds(duration.0.saturating_mul(4));
        Ok(Shape { deletes, own: WorkloadStep { limit, settle, ..shape.own }, ..shape })
    }

    /// One per table, which also asks for the smallest id; `pacing` takes transactions per DELETE.
    fn deleter(&self, deletes: u64, pacing: impl Fn(f64) -> Pacing) -> Option<(Duty, Role)> {
        if self.settings.deletes == Deletes::Off {
            return None;
        }
        // The smallest id is asked for before the first delete, and every `resync` deletes.
        let resync = self.settings.resync;
        let n_mins = if resync == 0 { 1 } else { deletes.div_ceil(resync).max(1) };
        let transactions = deletes + n_mins;
        let pacing = pacing(transactions as f64 / deletes as f64);
        let role = self.role(Duty::Delete, pacing, Some(transactions));
        Some((Duty::Delete, Role { clients: self.n_tables, ..role }))
    }

    fn role(&self, duty: Duty, pacing: Pacing, quota: Option<u64>) -> Role {
        Role { name: name(duty.name()), clients: self.clients, pacing, quota, kinds: duty.kinds() }
    }

    fn shape(&self, step: &str, per_commit: u64, roles: Vec<(Duty, Role)>) -> Shape {
        let (duties, roles) = roles.into_iter().unzip();
        let own = own_step(step.to_owned().into(), roles, self.settings.limit);
        Shape { own, duties, per_commit, deletes: 0, is_coupled: false }
    }

    /// The author waits a minute and a second per million rows, at most 20 minutes; this is a
    /// maximum, as the wait ends when the engine has caught up.
    fn settle(&self) -> Nanoseconds {
        let rows = self.settings.load.rows.saturating_mul(self.n_tables as u64);
        Nanoseconds::from_secs(60 + rows / 1_000_000).min(self.settings.settle)
    }

    fn check_deletes(&self, shapes: &[Shape]) -> Result<(), String> {
        let Some(batch) =
            shapes.iter().filter(|shape| shape.has_deletes()).map(|shape| shape.per_commit).max()
        else {
            return Ok(());
        };
        let inserters = self.inserters_per_table();
        let rate = self.settings.rates.iter().max().copied().unwrap_or(0);
        let least = inserters * (batch * BATCHES_LEAST).max(rate * SECONDS_LEAST);
        let rows = self.settings.load.rows;
        if rows >= least {
            return Ok(());
        }
        Err(format!(
            "option `rows_i0`: {rows} rows are too few for the deletes, which remove {batch} rows \
             at a time and up to {} rows per second from each table; give at least {least}, or a \
             lower `rate_3`",
            rate * inserters
        ))
    }
}
