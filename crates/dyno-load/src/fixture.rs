//! A workload and specifications for tests.

use std::future::poll_fn;
use std::sync::{Arc, LazyLock};

use dyno_model::{Arrivals, Load, Name, Pacing, Role, name};
use dyno_units::{Nanoseconds, RandomStream, Seed};
use dyno_workload::{
    ClientContext, ClientFuture, Clients, Dialect, Ended, MadeWorkload, Outline, Row, Session,
    Statement, StatementClass, StatementError, Table, Transactions, Workload, drive,
};

use crate::StepSpec;

/// Kind 0 has one prepared read, kind 1 two, and so on.
#[derive(Clone, Copy, Default)]
pub(crate) struct Reads {
    pub(crate) n_kinds: usize,
    /// The kinds are the roles, one read each.
    pub(crate) by_role: bool,
    /// Constant pause before a transaction.
    pub(crate) keying: Nanoseconds,
    /// Exponential pause after one; the mean.
    pub(crate) thinking: Nanoseconds,
    /// Rolls back one of so many transactions; 0 for none.
    pub(crate) rolls_back_each: u64,
    /// Client 0 ends after so many transactions, client 1 after twice as many; 0 for never.
    pub(crate) ends_after: u64,
}

static KINDS: [Name; 3] = [name("one_read"), name("two_reads"), name("three_reads")];

static OUTLINE: LazyLock<Outline> =
    LazyLock::new(|| Outline { name: name("reads"), ..Outline::default() });

pub(crate) fn reads(n_kinds: usize) -> MadeWorkload {
    reading(Reads { n_kinds, ..Reads::default() })
}

pub(crate) fn reading(reads: Reads) -> MadeWorkload {
    MadeWorkload::new(Arc::new(reads))
}

pub(crate) fn by_role(n_roles: usize) -> MadeWorkload {
    reading(Reads { n_kinds: n_roles, by_role: true, ..Reads::default() })
}

pub(crate) fn role(
    role: &'static str,
    clients: usize,
    pacing: Pacing,
    quota: impl Into<Option<u64>>,
) -> Role {
    Role { name: name(role), clients, pacing, quota: quota.into(), kinds: Vec::new() }
}

pub(crate) fn roles(roles: Vec<Role>, seconds: u64) -> StepSpec {
    StepSpec { load: Load::Roles(roles), ..closed(1, seconds) }
}

impl Workload for Reads {
    fn outline(&self) -> &Outline {
        &OUTLINE
    }

    fn kinds(&self) -> &[Name] {
        &KINDS[..self.n_kinds]
    }

    fn tables(&self, _dialect: Dialect) -> Vec<Table> {
        Vec::new()
    }

    fn fill_row(&self, _table_idx: usize, _number: u64, _row: &mut Row) {}

    fn statements(&self, _dialect: Dialect) -> Vec<Statement> {
        vec![Statement::new("SELECT 1", StatementClass::Read)]
    }

    fn clients(self: Arc<Self>) -> Arc<dyn Clients> {
        self
    }
}

async fn some(n: u64, context: ClientContext) {
    let ClientContext { mut session, pace, .. } = context;
    for _ in 0..n {
        if !poll_fn(|_| pace.poll_due()).await {
            return;
        }
        pace.sent();
        let result = session.execute(0, &[]).await;
        pace.done(0, session.take_tally(), result.as_ref().map(|_| Ended::Committed));
    }
    // Saying so twice must not matter.
    pace.finished();
    pace.finished();
}

impl Clients for Reads {
    fn client(self: Arc<Self>, context: ClientContext) -> ClientFuture {
        if self.ends_after > 0 {
            return Box::pin(some(self.ends_after * (context.client_idx as u64 + 1), context));
        }
        Box::pin(drive(ReadsClient { reads: *self, role: context.role, n_done: 0 }, context))
    }
}

struct ReadsClient {
    reads: Reads,
    role: usize,
    n_done: u64,
}

impl Transactions for ReadsClient {
    fn draw(&mut self, random: &mut RandomStream) -> usize {
        if self.reads.by_role {
            self.role
        } else {
            random.below(self.reads.n_kinds as u64) as usize
        }
    }

    fn pause_before(&mut self, _kind: usize, _random: &mut RandomStream) -> Nanoseconds {
        self.reads.keying
    }

    fn pause_after(&mut self, _kind: usize, random: &mut RandomStream) -> Nanoseconds {
        match self.reads.thinking {
            Nanoseconds::ZERO => Nanoseconds::ZERO,
            mean => Nanoseconds(random.exponential(mean.0 as f64) as u64),
        }
    }

    async fn perform(
        &mut self,
        kind: usize,
        _random: &mut RandomStream,
        session: &mut Session,
    ) -> Result<(), StatementError> {
        let n_reads = if self.reads.by_role { 1 } else { kind + 1 };
        for _ in 0..n_reads {
            session.execute(0, &[]).await?;
        }
        self.n_done += 1;
        if self.reads.rolls_back_each > 0 && self.n_done.is_multiple_of(self.reads.rolls_back_each)
        {
            session.roll_back_as_designed().await?;
        }
        Ok(())
    }
}

pub(crate) fn closed(clients: usize, seconds: u64) -> StepSpec {
    StepSpec {
        load: Load::Closed { clients },
        step: 0,
        warm_up: Nanoseconds::ZERO,
        duration: Nanoseconds::from_secs(seconds),
        until_steady: None,
        gone_limit: Some(crate::GONE_LIMIT),
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
