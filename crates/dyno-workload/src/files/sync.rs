//! `fsync`: a small write and its sync, repeatedly: the minimum cost of a database's log. Each
//! client has a file, in which it overwrites the same place, or appends; a file at its limit is
//! first truncated, in the same operation.

use dyno_units::MetricId;

use crate::prelude::*;

use super::io::{Sync, check_direct, size_within};
use super::{Checked, FIGURES, FileCommand, FileSet, figures};
use crate::drive::Refused;
use crate::options::{any_count, refused, size, switch, word};
use crate::workload::{MeasuredStep, Target, closed_role, own_step};

const NAME: &str = "fsync";

const OPTIONS: &[OptionSpec] = &[
    size("bytes", "512").help("bytes per write"),
    word("sync", &["fsync", "fdatasync", "dsync", "none"]).help(
        "what puts the write on disk: fsync, fdatasync, the write itself (O_DSYNC), or nothing",
    ),
    word("position", &["overwrite", "append"])
        .help("whether the same offset is written again, or the file grows"),
    switch("direct", false).help("whether writes bypass the page cache (O_DIRECT)"),
    any_count("operations", "0").help(
        "number of writes per client after which the step ends; 0 to continue for the measured \
         time",
    ),
    size("append_limit", "64MiB").help("size at which a growing file is truncated to zero"),
];

/// The least and the longest time that `operations` may take, in seconds; in between one for each.
const LIMIT_S: (u64, u64) = (60, 24 * 3600);

pub(super) fn spec() -> WorkloadSpec {
    let summary = "small writes to a file, each followed by a sync, without a server";
    WorkloadSpec::new(NAME, summary, OPTIONS.to_vec(), plan).on(Target::Files)
}

fn plan(input: &PlanInput<'_>) -> Planned {
    let options = input.options;
    let bytes = size_within(options, "bytes", 1, 64 << 20)?;
    let limit = size_within(options, "append_limit", bytes, 1 << 52)?;
    let sync = options.meaning("sync", [Sync::Fsync, Sync::Fdatasync, Sync::Dsync, Sync::No]);
    let is_direct = options.switch("direct");
    if is_direct {
        check_direct("bytes", bytes)?;
    }
    let appends = options.text("position") == "append";
    let operations = options.count("operations");
    if operations > 1 << 40 {
        return Err(refused("operations", "it is too large").into());
    }
    let role = closed_role(name("writer"), input.request.clients, Some(operations), &[name(NAME)]);
    let limit_s = operations.clamp(LIMIT_S.0, LIMIT_S.1);
    let step_name = format!("{operations} operations");
    let step = own_step(step_name.into(), vec![role], Nanoseconds::from_secs(limit_s));
    let set = FileSet {
        first: 0,
        files: input.request.clients as u64,
        size: if appends { limit / bytes * bytes } else { bytes },
        block: bytes,
        step: bytes,
        is_direct,
        is_synced: sync == Sync::Dsync,
        random: super::SECTOR as u64,
        seed: input.seed.derive(NAME, 0).0,
    };
    let steps = if operations > 0 { vec![step] } else { Vec::new() };
    let outline = Outline {
        steps,
        bytes_on_disk: Some(set.files.saturating_mul(set.size)),
        metrics: FIGURES,
        ..input.outline([name(NAME)])
    };
    Ok(Arc::new(Fsync { outline, set, sync, appends }))
}

struct Fsync {
    outline: Outline,
    set: FileSet,
    sync: Sync,
    appends: bool,
}

const WRITE: usize = 0;
const TRUNCATE: usize = 1;
const SYNC: usize = 2;

impl Fsync {
    fn statements_of(&self, client: u64) -> Vec<Statement> {
        let own = FileSet { first: client, files: 1, ..self.set };
        let statement = |command: FileCommand, class| Statement::new(command.to_string(), class);
        let sync = self.sync.command().unwrap_or(FileCommand::Fsync);
        vec![
            statement(FileCommand::Write, StatementClass::Write),
            statement(FileCommand::Truncate, StatementClass::Other),
            statement(sync, StatementClass::Other),
            Statement::set_up(FileCommand::Begin(own).to_string()),
        ]
    }
}

impl Workload for Fsync {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    /// One, so that what cannot be done is refused before the load; clients make their own.
    fn tables(&self, _dialect: Dialect) -> Vec<Table> {
        let columns = vec![name("block")];
        let (name, create) = (super::file_name(0), FileCommand::Make(self.set).to_string());
        vec![Table { name, create, columns, rows: 0, after: Vec::new() }]
    }

    fn fill_row(&self, _table_idx: usize, number: u64, row: &mut Row) {
        row.push_integer(number as i64);
    }

    fn audit_queries(&self, _dialect: Dialect) -> Vec<String> {
        vec![FileCommand::Check(self.set).to_string()]
    }

    fn figures(&self, step: &MeasuredStep<'_>) -> Vec<(MetricId, f64)> {
        figures(step, self.set.block)
    }

    fn clients(self: Arc<Self>) -> Arc<dyn Clients> {
        self
    }
}

impl Clients for Fsync {
    fn client(self: Arc<Self>, context: ClientContext) -> ClientFuture {
        let statements = self.statements_of(context.client_idx as u64);
        let client = Client {
            file: Value::Integer(context.client_idx as i64),
            // The first block is there.
            end: self.set.block,
            plan: self,
            offset: 0,
            is_cut: false,
        };
        Box::pin(begin(client, statements, context))
    }

    fn audit(&self, totals: &AuditTotals, answers: &[TextRows]) -> Vec<AuditRow> {
        let Fsync { set, sync, appends, .. } = self;
        let checked = Checked::read(answers);
        let (least, most) = (totals.committed(), totals.committed() + totals.unfinished());
        let row = |name: &str, more: u64, sent: u64| {
            AuditRow::between(name, (least.into(), (most + more).into()), Some(sent.into()))
        };
        let mut rows = vec![row("writes", 0, totals.tally.writes)];
        if sync.command().is_some() {
            // Files that were cut, and what follows a failure, count here as well.
            let cuts = if *appends { least / (set.size / set.block).max(1) + 1 } else { 0 };
            rows.push(row("syncs", cuts + totals.unfinished(), totals.tally.others));
        }
        let all = i128::from(set.files.saturating_mul(set.size));
        rows.push(checked.bytes((i128::from(set.block), all)));
        rows.push(checked.filled());
        rows.push(checked.content());
        rows
    }
}

/// Makes the client's file first; without the file, all operations fail with the reason.
async fn begin(client: Client, statements: Vec<Statement>, mut context: ClientContext) {
    let made = context.session.prepare(&statements);
    context.statements = statements.into();
    match made {
        Ok(()) => drive(client, context).await,
        Err(error) => drive(Refused(error), context).await,
    }
}

struct Client {
    plan: Arc<Fsync>,
    file: Value<'static>,
    /// Bytes of the file when what was drawn before is done.
    end: u64,
    // Of the operation that was drawn.
    offset: u64,
    is_cut: bool,
}

impl Transactions for Client {
    fn draw(&mut self, _random: &mut RandomStream) -> usize {
        let Client { plan, end, offset, is_cut, .. } = self;
        if plan.appends {
            *is_cut = *end + plan.set.block > plan.set.size;
            *offset = if *is_cut { 0 } else { *end };
            *end = *offset + plan.set.block;
        }
        0
    }

    async fn perform(&mut self, _: usize, _: &mut RandomStream, session: &mut Session) -> Done {
        let Client { plan, file, offset, is_cut, .. } = self;
        if *is_cut {
            session.execute(TRUNCATE, &[*file]).await?;
        }
        session.execute(WRITE, &[*file, Value::Integer(*offset as i64)]).await?;
        if plan.sync.command().is_some() {
            session.execute(SYNC, &[*file]).await?;
        }
        Ok(())
    }
}
