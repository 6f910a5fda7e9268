//! A workload and specifications for tests.

use std::sync::Arc;

use dyno_units::{Nanoseconds, RandomStream, Seed};
use dyno_workload::{
    ClientFuture, Dialect, Row, Seat, Session, Statement, StatementClass, StatementError, Table,
    Transactions, Workload, drive,
};

use crate::{Arrivals, Load, StepSpec};

/// Transactions of one kind for each number of prepared reads: kind 0 has one, kind 1 has two …
pub(crate) struct Reads {
    pub(crate) n_kinds: usize,
}

const KINDS: [&str; 3] = ["one_read", "two_reads", "three_reads"];

pub(crate) fn reads(n_kinds: usize) -> Arc<dyn Workload> {
    Arc::new(Reads { n_kinds })
}

impl Workload for Reads {
    fn name(&self) -> &'static str {
        "reads"
    }

    fn kinds(&self) -> &[&'static str] {
        &KINDS[..self.n_kinds]
    }

    fn options(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn tables(&self, _dialect: Dialect) -> Vec<Table> {
        Vec::new()
    }

    fn fill_row(&self, _table_idx: usize, _number: u64, _row: &mut Row) {}

    fn statements(&self, _dialect: Dialect) -> Vec<Statement> {
        vec![Statement {
            sql: "SELECT 1".to_owned(),
            class: StatementClass::Read,
            keeps_rows: false,
        }]
    }

    fn client(&self, seat: Seat) -> ClientFuture {
        Box::pin(drive(ReadsClient { n_kinds: self.n_kinds as u64 }, seat))
    }
}

struct ReadsClient {
    n_kinds: u64,
}

impl Transactions for ReadsClient {
    fn draw(&mut self, random: &mut RandomStream) -> usize {
        random.below(self.n_kinds) as usize
    }

    async fn perform(
        &mut self,
        kind: usize,
        _random: &mut RandomStream,
        session: &mut Session,
    ) -> Result<(), StatementError> {
        for _ in 0..=kind {
            session.execute(0, &[]).await?;
        }
        Ok(())
    }
}

pub(crate) fn closed(clients: usize, seconds: u64) -> StepSpec {
    StepSpec {
        load: Load::Closed { clients },
        warm_up: Nanoseconds::ZERO,
        duration: Nanoseconds::from_secs(seconds),
        statement_timeout: Nanoseconds::ZERO,
        retries: 0,
        workers: 1,
        cpus: Vec::new(),
        seed: Seed(42),
    }
}

pub(crate) fn open(rate: f64, arrivals: Arrivals, clients: usize, seconds: u64) -> StepSpec {
    StepSpec { load: Load::Open { rate, arrivals, clients }, ..closed(clients, seconds) }
}
