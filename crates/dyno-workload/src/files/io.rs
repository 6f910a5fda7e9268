//! `file-io`: reads and writes of one size, at random or sequential places of a few large files. An
//! operation is a transaction; a write with a sync is one operation of another kind. Sequential
//! clients each go through their own part of the files, again and again.

use std::sync::Arc;

use dyno_model::{Name, name};
use dyno_units::{Metric, MetricId, RandomStream};

use super::io_settings::{Access, Operation, Settings, options};
use super::{Checked, FIGURES, FileCommand, FileSet, figures, file_name};
use crate::catalog::{PlanError, PlanInput, WorkloadSpec};
use crate::skew::{CounterSet, Counters, DrawnByClient, DrawnKeys, share_row};
use crate::sysbench::distribution::Distribution;
use crate::workload::{MeasuredStep, Target};
use crate::{
    AuditRow, AuditTotals, ClientContext, ClientFuture, Clients, Dialect, Done, Outline, Row,
    Session, Statement, StatementClass, Table, TextRows, Transactions, Value, Workload, drive,
};

const NAME: &str = "file-io";

pub(super) fn spec() -> WorkloadSpec {
    let summary = "reads and writes files at random or sequential offsets, without a server";
    WorkloadSpec::new(NAME, summary, options(), plan).on(Target::Files)
}

fn plan(input: &PlanInput<'_>) -> Result<Arc<dyn Workload>, PlanError> {
    let seed = input.seed.derive(NAME, 0);
    let settings = Settings::read(input.options, seed.0)?;
    let kinds = What::all(&settings);
    let names: Vec<Name> = kinds.iter().map(|what| what.name()).collect();
    Ok(Arc::new(FileIo { outline: input.outline(names), settings, kinds }))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Read,
    Write,
    SyncedWrite,
}

impl What {
    /// The kinds of operations of a load.
    fn all(settings: &Settings) -> Vec<What> {
        let mut what = Vec::new();
        if matches!(settings.operation, Operation::Read | Operation::Mixed(_)) {
            what.push(What::Read);
        }
        if settings.operation != Operation::Read {
            let is_synced = settings.set.is_synced || settings.sync.command().is_some();
            if !is_synced || settings.sync_every > 1 {
                what.push(What::Write);
            }
            if is_synced {
                what.push(What::SyncedWrite);
            }
        }
        what
    }

    fn name(self) -> Name {
        match self {
            What::Read => name("read"),
            What::Write => name("write"),
            What::SyncedWrite => name("synced write"),
        }
    }
}

struct FileIo {
    outline: Outline,
    settings: Settings,
    kinds: Vec<What>,
}

impl FileIo {
    fn index(&self, what: What) -> usize {
        self.kinds.iter().position(|one| *one == what).unwrap_or(0)
    }
}

/// Statements, by their index.
const READ: usize = 0;
const WRITE: usize = 1;
const SYNC: usize = 2;

impl Workload for FileIo {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    fn tables(&self, _dialect: Dialect) -> Vec<Table> {
        let Settings { set, .. } = &self.settings;
        let table = |number| {
            // Those that are still to be made must fit together.
            let left = FileSet { first: number, files: set.files - number, ..*set };
            let one = FileSet { first: number, files: 1, ..*set };
            Table {
                name: file_name(number),
                create: FileCommand::Make(left).to_string(),
                columns: vec![name("block")],
                rows: if self.settings.is_filled() { self.settings.blocks() } else { 0 },
                after: vec![FileCommand::Settle(one).to_string()],
            }
        };
        (0..set.files).map(table).collect()
    }

    fn bytes_on_disk(&self) -> Option<u64> {
        Some(self.settings.set.files * self.settings.set.size)
    }

    /// A row is a block; the connection makes its content.
    fn fill_row(&self, _table_idx: usize, number: u64, row: &mut Row) {
        row.push_integer(number as i64);
    }

    fn statements(&self, _dialect: Dialect) -> Vec<Statement> {
        let Settings { set, sync, .. } = &self.settings;
        let statement = |command: FileCommand, class| Statement::new(command.to_string(), class);
        let sync = sync.command().unwrap_or(FileCommand::Fsync);
        vec![
            statement(FileCommand::Read, StatementClass::Read),
            statement(FileCommand::Write, StatementClass::Write),
            statement(sync, StatementClass::Other),
            Statement::set_up(FileCommand::Open(*set).to_string()),
        ]
    }

    fn audit_queries(&self, _dialect: Dialect) -> Vec<String> {
        vec![FileCommand::Check(self.settings.set).to_string()]
    }

    fn metrics(&self) -> &'static [Metric] {
        FIGURES
    }

    fn figures(&self, step: &MeasuredStep<'_>) -> Vec<(MetricId, f64)> {
        figures(step, self.settings.set.block)
    }

    fn clients(self: Arc<Self>) -> Arc<dyn Clients> {
        let Settings { set, distribution, access, .. } = &self.settings;
        let drawn = (*access == Access::Random)
            .then(|| distribution.over(set.files * self.settings.places()).counted());
        Arc::new(FileIoClients { plan: self, drawn, counts: CounterSet::new(N_COUNTERS) })
    }
}

/// What clients count besides what the generator does.
const N_DRAWN_READS: usize = 0;
const N_DRAWN: usize = 1;
/// Writes of `write` to places that had been written before.
const N_AGAIN: usize = 2;
const N_COUNTERS: usize = 3;

struct FileIoClients {
    plan: Arc<FileIo>,
    /// None for sequential access.
    drawn: Option<Arc<DrawnKeys>>,
    counts: CounterSet,
}

impl Clients for FileIoClients {
    fn client(&self, context: ClientContext) -> ClientFuture {
        let settings = &self.plan.settings;
        let places = match &self.drawn {
            Some(drawn) => Places::Random {
                all: settings.distribution.over(settings.set.files * settings.places()),
                drawn: drawn.client(),
            },
            None => {
                let blocks = settings.set.files * settings.blocks();
                Places::of_part(blocks, context.client_idx as u64, context.n_clients as u64)
            }
        };
        let client = Client {
            plan: Arc::clone(&self.plan),
            places,
            counters: self.counts.client(),
            n_writes: 0,
            file: 0,
            offset: 0,
        };
        Box::pin(drive(client, context))
    }

    fn audit(&self, totals: &AuditTotals, answers: &[TextRows]) -> Vec<AuditRow> {
        let FileIo { settings, kinds, .. } = &*self.plan;
        let counts = self.counts.sums();
        let mut rows = sent_rows(settings, kinds, totals);
        if let Operation::Mixed(share) = settings.operation {
            let drawn = (counts[N_DRAWN_READS], counts[N_DRAWN]);
            rows.push(share_row("share of reads", share, drawn, 0));
        }
        rows.extend(self.drawn.iter().map(|drawn| drawn.audit_row("offsets drawn")));
        let all = i128::from(settings.set.files * settings.set.size);
        let checked = Checked::read(answers);
        if settings.is_filled() {
            rows.push(checked.bytes((all, all)));
            rows.push(AuditRow::equal("sectors without content", 0, checked.empty));
        } else {
            rows.push(checked.bytes((0, all)));
            let again = counts[N_AGAIN];
            rows.push(AuditRow::judged(
                "writes to offsets that were written before",
                "0; else a larger total_size is needed",
                again,
                again == 0,
            ));
        }
        rows.push(checked.content());
        rows
    }
}

/// Operations of each class, against those of transactions that committed.
fn sent_rows(settings: &Settings, kinds: &[What], totals: &AuditTotals) -> Vec<AuditRow> {
    let of = |wanted: &dyn Fn(What) -> bool| -> (u64, u64) {
        let all = kinds.iter().zip(&totals.kinds).filter(|(what, _)| wanted(**what));
        all.fold((0, 0), |(done, not_done), (_, kind)| {
            (done + kind.committed, not_done + kind.undone + kind.lost + kind.rolled_back)
        })
    };
    let row = |name: &str, (done, not_done): (u64, u64), sent: u64| {
        AuditRow::between(name, (done.into(), (done + not_done).into()), Some(sent.into()))
    };
    let mut rows = Vec::new();
    if kinds.contains(&What::Read) {
        rows.push(row("reads", of(&|what| what == What::Read), totals.tally.reads));
    }
    if settings.operation != Operation::Read {
        rows.push(row("writes", of(&|what| what != What::Read), totals.tally.writes));
    }
    if settings.sync.command().is_some() {
        let (done, not_done) = of(&|what| what == What::SyncedWrite);
        // After an operation that failed, a client rolls back, which counts here as well.
        let more = totals.unfinished();
        rows.push(row("syncs", (done, not_done + more), totals.tally.others));
    }
    rows
}

enum Places {
    Random {
        all: Distribution,
        drawn: DrawnByClient,
    },
    /// The blocks from `first` to before `end`; `next` is the next one.
    Part {
        first: u64,
        end: u64,
        next: u64,
        is_again: bool,
    },
}

impl Places {
    /// The part of client `idx` of `n`. Where there are fewer blocks than clients, some share one.
    fn of_part(blocks: u64, idx: u64, n: u64) -> Places {
        let cut = |idx: u64| (u128::from(blocks) * u128::from(idx) / u128::from(n)) as u64;
        let (first, end) = (cut(idx), cut(idx + 1));
        let first = first.min(blocks - 1);
        Places::Part { first, end: end.max(first + 1), next: first, is_again: false }
    }
}

struct Client {
    plan: Arc<FileIo>,
    places: Places,
    counters: Arc<Counters>,
    n_writes: u64,
    // Of the operation that was drawn.
    file: u64,
    offset: u64,
}

impl Client {
    fn draw_place(&mut self, random: &mut RandomStream) {
        let Settings { set, .. } = &self.plan.settings;
        match &mut self.places {
            Places::Random { all, drawn } => {
                let place = all.draw(random);
                drawn.note(place);
                let places = self.plan.settings.places();
                self.file = place / places;
                self.offset = place % places * set.step;
            }
            Places::Part { first, end, next, is_again } => {
                let blocks = self.plan.settings.blocks();
                self.file = *next / blocks;
                self.offset = *next % blocks * set.block;
                if *is_again && self.plan.settings.operation == Operation::Write {
                    self.counters.add(N_AGAIN, 1);
                }
                *next += 1;
                if next == end {
                    (*next, *is_again) = (*first, true);
                }
            }
        }
    }
}

impl Transactions for Client {
    /// Draws all, so that a retry does the same again.
    fn draw(&mut self, random: &mut RandomStream) -> usize {
        self.draw_place(random);
        let Settings { operation, sync, sync_every, set, .. } = &self.plan.settings;
        let is_read = match *operation {
            Operation::Read => true,
            Operation::Rewrite | Operation::Write => false,
            Operation::Mixed(share) => {
                let is_read = random.unit() < share;
                self.counters.add(N_DRAWN, 1);
                self.counters.add(N_DRAWN_READS, is_read.into());
                is_read
            }
        };
        if is_read {
            return self.plan.index(What::Read);
        }
        self.n_writes += 1;
        let follows = sync.command().is_some() && self.n_writes.is_multiple_of(*sync_every);
        let is_synced = set.is_synced || follows;
        self.plan.index(if is_synced { What::SyncedWrite } else { What::Write })
    }

    async fn perform(&mut self, kind: usize, _: &mut RandomStream, session: &mut Session) -> Done {
        let place = [Value::Integer(self.file as i64), Value::Integer(self.offset as i64)];
        match self.plan.kinds[kind] {
            What::Read => session.execute(READ, &place).await?,
            What::Write => session.execute(WRITE, &place).await?,
            What::SyncedWrite => {
                let written = session.execute(WRITE, &place).await?;
                if self.plan.settings.sync.command().is_none() {
                    written
                } else {
                    session.execute(SYNC, &place[..1]).await?
                }
            }
        };
        Ok(())
    }
}
