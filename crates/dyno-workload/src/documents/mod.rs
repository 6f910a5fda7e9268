//! Documents: inserted, found by key, updated by key, and found by a range of an indexed field.
//!
//! One collection holds documents with a key (a number), an indexed number, a version, and random letters. Documents
//! before the load have the keys 0, 1, 2 …, and the same numbers in another order, so a range has as many documents as
//! numbers; inserted ones follow. The collection is a [`Table`](crate::Table) and a document a row, so the fill phase
//! loads it. Clients send a [`DocumentCommand`] as text with values, which the product executes in its protocol. Each
//! operation is a transaction.

mod command;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};

use crate::options::{Options, any_count, count, real, refuse, size, within};
use crate::prelude::*;
use crate::skew::{CounterSet, Counters, DrawnByClient, DrawnKeys, distance_row};
use crate::sysbench::distribution::{self, Distribution, DistributionSpec};
use crate::workload::Target;

pub use command::{DocumentCommand, FIELDS, INDEXED};

const NAME: &str = "documents";

const COLLECTION: &str = "documents";

pub fn spec() -> WorkloadSpec {
    let summary = "documents: found by key, updated, inserted, and found by an indexed field";
    WorkloadSpec::new(NAME, summary, options(), plan).on(Target::Documents)
}

fn plan(input: &PlanInput<'_>) -> Planned {
    let settings = Settings::read(input.options)?;
    let kinds = settings.shares.iter().map(|(what, _)| match what {
        What::Find => name("find"),
        What::Update => name("update"),
        What::Insert => name("insert"),
        What::Range => name("range"),
    });
    let outline = input.outline(kinds.collect::<Vec<Name>>());
    let (numbers, seed) = (Numbers::of(settings.documents), input.seed.derive(NAME, 0));
    Ok(Arc::new(Documents { outline, numbers, seed, settings }))
}

struct Documents {
    outline: Outline,
    settings: Settings,
    numbers: Numbers,
    seed: Seed,
}

const FIND: usize = 0;
const UPDATE: usize = 1;
const INSERT: usize = 2;
const RANGE: usize = 3;

impl Workload for Documents {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    fn check(&self, _dialect: Dialect) -> Result<(), String> {
        Ok(())
    }

    fn tables(&self, _dialect: Dialect) -> Vec<Table> {
        vec![Table {
            name: COLLECTION.to_owned(),
            create: DocumentCommand::Make(COLLECTION.to_owned()).to_string(),
            columns: names(&FIELDS),
            rows: self.settings.documents,
            after: vec![DocumentCommand::Index(COLLECTION.to_owned()).to_string()],
        }]
    }

    fn fill_row(&self, _table_idx: usize, number: u64, row: &mut Row) {
        row.push_integer(number as i64);
        row.push_integer(self.numbers.of_key(number) as i64);
        row.push_integer(0);
        let mut random = self.seed.derive("document", number).stream();
        row.push_text_with(|bytes| {
            let start = bytes.len();
            bytes.resize(start + self.settings.content as usize, 0);
            write_content(&mut bytes[start..], &mut random);
        });
    }

    fn statements(&self, _dialect: Dialect) -> Vec<Statement> {
        let Settings { content, range_size, .. } = self.settings;
        let collection = || COLLECTION.to_owned();
        let statement =
            |command: DocumentCommand, class| Statement::new(command.to_string(), class);
        vec![
            statement(DocumentCommand::Find(collection()), StatementClass::Read),
            statement(DocumentCommand::Update(collection(), content), StatementClass::Write),
            statement(DocumentCommand::Insert(collection(), content), StatementClass::Write),
            statement(DocumentCommand::Range(collection(), range_size), StatementClass::Read),
        ]
    }

    fn audit_queries(&self, _dialect: Dialect) -> Vec<String> {
        vec![DocumentCommand::Sums(COLLECTION.to_owned()).to_string()]
    }

    fn clients(self: Arc<Self>) -> Arc<dyn Clients> {
        Arc::new(DocumentClients { counts: Counts::new(&self.settings), plan: self })
    }
}

struct DocumentClients {
    plan: Arc<Documents>,
    counts: Counts,
}

impl Clients for DocumentClients {
    fn client(self: Arc<Self>, context: ClientContext) -> ClientFuture {
        let content = vec![0; self.plan.settings.content as usize];
        let client = Client { drawing: self.counts.client(), key: 0, content, shared: self };
        Box::pin(drive(client, context))
    }

    fn audit(&self, totals: &AuditTotals, answers: &[TextRows]) -> Vec<AuditRow> {
        self.counts.audit(&self.plan.settings, totals, answers)
    }
}

struct Client {
    shared: Arc<DocumentClients>,
    drawing: Drawing,
    // Of the operation that was drawn.
    key: u64,
    content: Vec<u8>,
}

impl Client {
    /// The operation in whose share `place`, from 0 to 1, falls.
    fn operation_at(&self, mut place: f64) -> usize {
        let shares = &self.shared.plan.settings.shares;
        for (idx, (_, share)) in shares.iter().enumerate() {
            if place < *share {
                return idx;
            }
            place -= share;
        }
        // By rounding.
        shares.len() - 1
    }
}

impl Transactions for Client {
    /// Draws all, so that a retry does the same again.
    fn draw(&mut self, random: &mut RandomStream) -> usize {
        let idx = self.operation_at(random.unit());
        self.drawing.operations.add(idx, 1);
        let Settings { keys, shares, documents, .. } = &self.shared.plan.settings;
        let what = shares[idx].0;
        self.key = match what {
            What::Insert => documents + self.shared.counts.take_new(),
            What::Find | What::Update | What::Range => {
                let key = keys.draw(random);
                self.drawing.keys.note(key);
                key
            }
        };
        if matches!(what, What::Insert | What::Update) {
            write_content(&mut self.content, random);
        }
        idx
    }

    async fn perform(&mut self, kind: usize, _: &mut RandomStream, session: &mut Session) -> Done {
        let Settings { shares, documents, range_size, .. } = &self.shared.plan.settings;
        let (key, content) = (Value::Integer(self.key as i64), Value::Text(&self.content));
        let answer = match shares[kind].0 {
            What::Find => session.execute(FIND, &[key]),
            What::Update => session.execute(UPDATE, &[key, content]),
            What::Insert => session.execute(INSERT, &[key, key, content]),
            What::Range => {
                // The last ranges begin earlier, so that all are full.
                let first = self.key.min(documents - range_size) as i64;
                let end = first + *range_size as i64;
                session.execute(RANGE, &[Value::Integer(first), Value::Integer(end)])
            }
        };
        answer.await.map(|_| ())
    }
}

/// Longest content, in bytes: MongoDB takes documents of 16 MiB, fields and names included.
const CONTENT_MAX: u64 = 15 << 20;

/// Most documents: the sum of all numbers must fit in 64 bits.
const DOCUMENTS_MAX: u64 = 1_000_000_000;

/// Longest range, so that an answer is one batch of bounded size.
const RANGE_MAX: u64 = 10_000;

const ANSWER_MAX: u64 = 16 << 20;

fn options() -> Vec<OptionSpec> {
    let mut options = vec![
        count("documents", "100k", 1, DOCUMENTS_MAX)
            .help("documents in the collection before the load"),
        size("document_size", "1KiB").help("bytes of a document's content"),
        real("find_weight", "70").help("weight of operations that find a document by its key"),
        real("update_weight", "20").help("weight of operations that replace a document's content"),
        real("insert_weight", "5").help("weight of operations that insert a document"),
        real("range_weight", "5")
            .help("weight of operations that find documents by a range of an indexed field"),
        any_count("range_size", "10").help("documents in a range"),
    ];
    options.extend_from_slice(distribution::OPTIONS);
    options
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Find,
    Update,
    Insert,
    Range,
}

#[derive(Clone, Debug)]
struct Settings {
    documents: u64,
    content: u64,
    range_size: u64,
    /// The operations with a weight, and the share of each: they sum to 1.
    shares: Vec<(What, f64)>,
    keys: Distribution,
}

impl Settings {
    fn read(options: &Options) -> Result<Settings, OptionError> {
        let documents = options.in_range("documents")?;
        let content = within("document_size", options.size("document_size"), (1, CONTENT_MAX))?;
        let longest = (ANSWER_MAX / content).clamp(1, RANGE_MAX.min(documents));
        let range_size = options.count("range_size");
        let shares = shares(options)?;
        if shares.iter().any(|(what, _)| *what == What::Range)
            && !(1..=longest).contains(&range_size)
        {
            let why = format!(
                "`{range_size}` is not between 1 and {longest}, which is the most for this number of \
                 documents of this size"
            );
            return refuse("range_size", why);
        }
        let keys = DistributionSpec::from_options(options)?.over(documents);
        Ok(Settings { documents, content, range_size, shares, keys })
    }
}

fn shares(options: &Options) -> Result<Vec<(What, f64)>, OptionError> {
    let all = [
        (What::Find, "find_weight"),
        (What::Update, "update_weight"),
        (What::Insert, "insert_weight"),
        (What::Range, "range_weight"),
    ];
    let mut weights = Vec::new();
    for (what, name) in all {
        let weight = options.real(name);
        if !(0.0..=1e9).contains(&weight) {
            return refuse(name, format!("`{weight}` is not between 0 and 1000000000"));
        }
        if weight > 0.0 {
            weights.push((what, weight));
        }
    }
    let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
    if weights.is_empty() {
        return refuse("find_weight", "all weights are 0, so there is nothing to do");
    }
    Ok(weights.into_iter().map(|(what, weight)| (what, weight / total)).collect())
}

#[derive(Debug)]
struct Counts {
    keys: Arc<DrawnKeys>,
    operations: CounterSet,
    /// Keys of documents that were to be inserted, those before the load not included.
    n_new: AtomicU64,
}

#[derive(Debug)]
struct Drawing {
    keys: DrawnByClient,
    operations: Arc<Counters>,
}

impl Counts {
    fn new(settings: &Settings) -> Counts {
        let operations = CounterSet::new(settings.shares.len());
        Counts { keys: settings.keys.counted(), operations, n_new: AtomicU64::new(0) }
    }

    fn client(&self) -> Drawing {
        Drawing { keys: self.keys.client(), operations: self.operations.client() }
    }

    fn take_new(&self) -> u64 {
        self.n_new.fetch_add(1, Ordering::Relaxed)
    }

    fn audit(&self, plan: &Settings, totals: &AuditTotals, answers: &[TextRows]) -> Vec<AuditRow> {
        let mut rows = vec![AuditRow::statements(1, totals)];
        let shares: Vec<f64> = plan.shares.iter().map(|(_, share)| *share).collect();
        rows.push(distance_row("operations drawn", &self.operations.sums(), &shares));
        if plan.shares.iter().any(|(what, _)| *what != What::Insert) {
            rows.push(self.keys.audit_row("keys drawn"));
        }
        rows.push(received(plan, totals));
        rows.extend(stored(plan, totals, answers.first(), self.n_new.load(Ordering::Relaxed)));
        rows
    }
}

fn of(settings: &Settings, totals: &AuditTotals, wanted: What) -> KindTotals {
    let idx = settings.shares.iter().position(|(what, _)| *what == wanted);
    idx.and_then(|idx| totals.kinds.get(idx)).copied().unwrap_or_default()
}

/// Each key that is looked for is there, and each range is full.
fn received(settings: &Settings, totals: &AuditTotals) -> AuditRow {
    let (finds, ranges) = (of(settings, totals, What::Find), of(settings, totals, What::Range));
    let expected = i128::from(finds.committed)
        + i128::from(ranges.committed) * i128::from(settings.range_size);
    let name = format!("documents found: 1 per key, {} per range", settings.range_size);
    AuditRow::equal(name, expected, Some(totals.tally.rows_received.into()))
}

fn stored(
    settings: &Settings,
    totals: &AuditTotals,
    answer: Option<&TextRows>,
    n_new: u64,
) -> [AuditRow; 3] {
    let number = |column| answer.and_then(|rows| number_in(rows, 0, column));
    let (inserts, updates) =
        (of(settings, totals, What::Insert), of(settings, totals, What::Update));
    // Those of unknown outcome may be of any kind.
    let unknown = |kind: &KindTotals| i128::from(kind.lost) + i128::from(totals.in_flight);
    let filled = i128::from(settings.documents);
    let inserted = i128::from(inserts.committed);
    let most = inserted + unknown(&inserts);
    let updated = i128::from(updates.committed);
    // The least and the largest sum of so many of the keys that were given out.
    let given_out = i128::from(n_new);
    let sum_from = |first: i128, n: i128| n * (2 * first + n - 1) / 2;
    let least_sum = sum_from(filled, inserted);
    let most_n = most.min(given_out);
    let most_sum = sum_from(filled + given_out - most_n, most_n);
    let of_filled = sum_from(0, filled);
    let rows = [
        ("documents", (filled + inserted, filled + most)),
        ("updates, by the versions", (updated, updated + unknown(&updates))),
        ("sum of the indexed numbers", (of_filled + least_sum, of_filled + most_sum)),
    ];
    [0, 1, 2].map(|nth| AuditRow::between(rows[nth].0, rows[nth].1, number(nth)))
}

// A document's content, from its key and a seed.

/// Six bits as a letter: text that does not compress by more than a quarter.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn write_content(content: &mut [u8], random: &mut RandomStream) {
    crate::row::write_letters(content, LETTERS, random);
}

/// Before the load: each number below their count once, with neighbours far apart by key.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    n: u64,
    step: u64,
}

impl Numbers {
    fn of(n: u64) -> Numbers {
        // The golden section spreads multiples evenly; the next number without a common divisor meets each once.
        let mut step = ((n as f64 * 0.618_033_988_75) as u64).max(1);
        while divisor(step, n) != 1 {
            step += 1;
        }
        Numbers { n, step }
    }

    fn of_key(self, key: u64) -> u64 {
        (u128::from(key) * u128::from(self.step) % u128::from(self.n)) as u64
    }
}

fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod contents {
    use dyno_units::Seed;

    use super::*;

    #[test]
    fn each_number_belongs_to_one_key() {
        for n in [1, 2, 3, 4, 10, 97, 1000, 1024] {
            let numbers = Numbers::of(n);
            let mut all: Vec<u64> = (0..n).map(|key| numbers.of_key(key)).collect();
            all.sort_unstable();
            assert_eq!(all, (0..n).collect::<Vec<_>>());
        }
        let far = Numbers::of(1_000_000_000);
        assert!(far.of_key(1).abs_diff(far.of_key(2)) > 1_000_000);
    }

    #[test]
    fn content_is_random_letters() {
        let mut random = Seed(1).stream();
        let mut content = [0; 1003];
        write_content(&mut content, &mut random);
        assert!(content.iter().all(|letter| LETTERS.contains(letter)));
        let mut kinds = content.to_vec();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), 64);
    }
}
