//! `file-io`: reads and writes of one size, at random or sequential places of a few large files. An
//! operation is a transaction; a write with a sync is one operation of another kind. Sequential
//! clients each go through their own part of the files, again and again.

use dyno_units::{ByteCount, MetricId};

use crate::prelude::*;

use super::{Checked, FIGURES, FileCommand, FileSet, SECTOR, figures, file_name};
use crate::options::{Options, Read, any_count, real, refuse, size, switch, word};
use crate::skew::{CounterSet, Counters, DrawnByClient, DrawnKeys, share_row};
use crate::sysbench::distribution::{self, Distribution, DistributionSpec};
use crate::workload::{MeasuredStep, Target};

const NAME: &str = "file-io";

pub(super) fn spec() -> WorkloadSpec {
    let summary = "reads and writes files at random or sequential offsets, without a server";
    WorkloadSpec::new(NAME, summary, options(), plan).on(Target::Files)
}

fn plan(input: &PlanInput<'_>) -> Planned {
    let seed = input.seed.derive(NAME, 0);
    let settings = Settings::read(input.options, seed.0)?;
    let kinds = What::all(&settings);
    let names: Vec<Name> = kinds.iter().map(|what| what.name()).collect();
    let bytes_on_disk = Some(settings.set.files * settings.set.size);
    let outline = Outline { bytes_on_disk, metrics: FIGURES, ..input.outline(names) };
    Ok(Arc::new(FileIo { outline, settings, kinds }))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Read,
    Write,
    SyncedWrite,
}

impl What {
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
    drawn: Option<Arc<DrawnKeys>>,
    counts: CounterSet,
}

impl Clients for FileIoClients {
    fn client(self: Arc<Self>, context: ClientContext) -> ClientFuture {
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
        let (plan, counters) = (Arc::clone(&self.plan), self.counts.client());
        let client = Client { plan, places, counters, n_writes: 0, file: 0, offset: 0 };
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
            rows.push(checked.filled());
        } else {
            rows.push(checked.bytes((0, all)));
            let again = counts[N_AGAIN];
            let name = "writes to offsets that were written before";
            let expected = "0; else a larger total_size is needed";
            rows.push(AuditRow::judged(name, expected, again, again == 0));
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Random,
    Sequential,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operation {
    Read,
    /// Writes over what was put there when the files were made.
    Rewrite,
    Write,
    Mixed(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sync {
    No,
    Fsync,
    Fdatasync,
    Dsync,
}

impl Sync {
    pub(super) fn command(self) -> Option<FileCommand> {
        match self {
            Sync::Fsync => Some(FileCommand::Fsync),
            Sync::Fdatasync => Some(FileCommand::Fdatasync),
            Sync::No | Sync::Dsync => None,
        }
    }
}

/// `file-io`'s own options; those of the distribution follow.
const OWN: &[OptionSpec] = &[
    word("access", &["random", "sequential"])
        .help("where operations go: to random offsets, or sequentially"),
    word("operation", &["read", "rewrite", "write", "mixed"]).help(
        "what they do: `rewrite` overwrites existing data, `write` writes where there is none \
         yet, `mixed` reads and rewrites",
    ),
    real("read_share", "70").help("share of reads in `mixed`, in percent"),
    size("block_size", "16KiB").help("bytes per operation"),
    size("total_size", "1GiB").help("bytes of all files together"),
    any_count("files", "1").help("number of files of equal size"),
    switch("direct", true).help("whether operations bypass the page cache (O_DIRECT)"),
    word("sync", &["none", "fsync", "fdatasync", "dsync"]).help(
        "how writes get to the disk: when the kernel writes them back, by fsync or fdatasync \
         after writes, or each by itself (O_DSYNC)",
    ),
    any_count("sync_every", "1")
        .help("with fsync and fdatasync: after how many of its writes a client syncs"),
    size("alignment", "0").help("random offsets are multiples of this; 0 for the block size"),
    real("compress_ratio", "1")
        .help("data compress to 1/N of their size; 1 for incompressible data"),
];

fn options() -> Vec<OptionSpec> {
    [OWN, distribution::OPTIONS].concat()
}

#[derive(Clone, Debug, PartialEq)]
struct Settings {
    access: Access,
    operation: Operation,
    sync: Sync,
    sync_every: u64,
    distribution: DistributionSpec,
    set: FileSet,
}

const FILES_MAX: u64 = 10_000;
const BLOCK_MAX: u64 = 64 << 20;
/// As many bits as a place has in a stamp.
const FILE_MAX: u64 = 1 << 52;
const RATIO_MAX: f64 = 32.0;

pub(super) fn size_within(options: &Options, name: &str, min: u64, max: u64) -> Read<u64> {
    let value = options.size(name);
    if (min..=max).contains(&value) {
        return Ok(value);
    }
    let [given, min, max] = [value, min, max].map(|size| ByteCount(size).exact_text());
    refuse(name, format!("{given} is not between {min} and {max}"))
}

/// Direct operations are a matter of whole sectors on every disk there is.
pub(super) fn check_direct(name: &str, bytes: u64) -> Read<()> {
    if bytes.is_multiple_of(SECTOR as u64) {
        return Ok(());
    }
    let given = ByteCount(bytes).exact_text();
    let why = format!(
        "{given} is not a multiple of 512, which direct I/O requires; set direct = false, or \
         choose another size"
    );
    refuse(name, why)
}

impl Settings {
    fn read(options: &Options, seed: u64) -> Read<Settings> {
        let block = size_within(options, "block_size", 1, BLOCK_MAX)?;
        let is_direct = options.switch("direct");
        let (access, operation) = what(options)?;
        let sync = options.meaning("sync", [Sync::No, Sync::Fsync, Sync::Fdatasync, Sync::Dsync]);
        let sync_every = options.count("sync_every");
        if sync_every == 0 || (sync_every > 1 && sync.command().is_none()) {
            return refuse(
                "sync_every",
                "it must be a number of writes from 1, with sync = \"fsync\" or \"fdatasync\"",
            );
        }
        let step = match size_within(options, "alignment", 0, BLOCK_MAX)? {
            0 => block,
            _ if access == Access::Sequential => {
                return refuse("alignment", "sequential operations follow one another");
            }
            step => step,
        };
        if is_direct {
            check_direct("block_size", block)?;
            check_direct("alignment", step)?;
        }
        let distribution = DistributionSpec::from_options(options)?;
        let ratio = options.real("compress_ratio");
        if !(1.0..=RATIO_MAX).contains(&ratio) {
            return refuse("compress_ratio", format!("it must be a number from 1 to {RATIO_MAX}"));
        }
        let random = (SECTOR as f64 / ratio).round() as u64;
        let (files, size) = files(options, block)?;
        let (first, is_synced) = (0, sync == Sync::Dsync);
        let set = FileSet { first, files, size, block, step, is_direct, is_synced, random, seed };
        Ok(Settings { access, operation, sync, sync_every, distribution, set })
    }

    fn is_filled(&self) -> bool {
        self.operation != Operation::Write
    }

    fn blocks(&self) -> u64 {
        self.set.size / self.set.block
    }

    /// Places in one file at which a random operation may begin.
    fn places(&self) -> u64 {
        (self.set.size - self.set.block) / self.set.step + 1
    }
}

fn what(options: &Options) -> Read<(Access, Operation)> {
    let access = options.meaning("access", [Access::Random, Access::Sequential]);
    let operation = match options.text("operation") {
        "rewrite" => Operation::Rewrite,
        "write" if access == Access::Random => {
            return refuse(
                "operation",
                "random offsets would soon be written a second time; choose \"rewrite\", or \
                 access = \"sequential\"",
            );
        }
        "write" => Operation::Write,
        "mixed" => Operation::Mixed(options.real("read_share") / 100.0),
        _ => Operation::Read,
    };
    if !(0.0..=100.0).contains(&options.real("read_share")) {
        return refuse("read_share", "it must be a percentage from 0 to 100");
    }
    Ok((access, operation))
}

fn files(options: &Options, block: u64) -> Read<(u64, u64)> {
    let files = options.count("files");
    if !(1..=FILES_MAX).contains(&files) {
        return refuse("files", format!("it must be a number from 1 to {FILES_MAX}"));
    }
    let size = options.size("total_size") / files / block * block;
    if size == 0 || size > FILE_MAX {
        let [least, most] = [block, FILE_MAX].map(|bytes| ByteCount(bytes).exact_text());
        let files = format!("each of {files} files");
        let why = format!("{files} has at least one block of {least} and at most {most}");
        return refuse("total_size", why);
    }
    Ok((files, size))
}
