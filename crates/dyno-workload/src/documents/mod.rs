//! Documents: inserted, found by key, updated by key, and found by a range of an indexed field.
//!
//! One collection holds documents with a key (a number), an indexed number, a version, and random letters. Documents
//! before the load have the keys 0, 1, 2 …, and the same numbers in another order, so a range has as many documents as
//! numbers; inserted ones follow. The collection is a [`Table`](crate::Table) and a document a row, so the fill phase
//! loads it. Clients send a [`DocumentCommand`] as text with values, which the product executes in its protocol. Each
//! operation is a transaction.

mod audit;
mod command;
mod content;
mod settings;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use dyno_model::{Name, name, names};
use dyno_units::{RandomStream, Seed};

use crate::catalog::{PlanError, PlanInput, WorkloadSpec};
use crate::workload::Target;
use crate::{
    AuditRow, AuditTotals, ClientContext, ClientFuture, Clients, Dialect, Done, Outline, Row,
    Session, Statement, StatementClass, Table, TextRows, Transactions, Value, Workload, drive,
};

use audit::{Counts, Drawing};
use content::{Numbers, write_content};
use settings::{Settings, What};

pub use command::{DocumentCommand, FIELDS, INDEXED};

const NAME: &str = "documents";

const COLLECTION: &str = "documents";

pub fn spec() -> WorkloadSpec {
    let summary = "documents: found by key, updated, inserted, and found by an indexed field";
    WorkloadSpec::new(NAME, summary, settings::options(), plan).on(Target::Documents)
}

/// The seed determines the content before the load.
fn plan(input: &PlanInput<'_>) -> Result<Arc<dyn Workload>, PlanError> {
    let settings = Settings::read(input.options)?;
    let kinds = settings.shares.iter().map(|(what, _)| match what {
        What::Find => name("find"),
        What::Update => name("update"),
        What::Insert => name("insert"),
        What::Range => name("range"),
    });
    Ok(Arc::new(Documents {
        outline: input.outline(kinds.collect::<Vec<Name>>()),
        numbers: Numbers::of(settings.documents),
        seed: input.seed.derive(NAME, 0),
        settings,
    }))
}

struct Documents {
    /// Its kinds are the operations that have a weight.
    outline: Outline,
    settings: Settings,
    numbers: Numbers,
    seed: Seed,
}

/// Statements, by their index.
const FIND: usize = 0;
const UPDATE: usize = 1;
const INSERT: usize = 2;
const RANGE: usize = 3;

impl Workload for Documents {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    /// It sends no SQL.
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
        let counts = Counts::new(&self.settings);
        Arc::new(DocumentClients { plan: self, counts: Arc::new(counts) })
    }
}

struct DocumentClients {
    plan: Arc<Documents>,
    counts: Arc<Counts>,
}

impl Clients for DocumentClients {
    fn client(&self, context: ClientContext) -> ClientFuture {
        let client = Client {
            plan: Arc::clone(&self.plan),
            drawing: self.counts.client(),
            counts: Arc::clone(&self.counts),
            key: 0,
            content: vec![0; self.plan.settings.content as usize],
        };
        Box::pin(drive(client, context))
    }

    fn audit(&self, totals: &AuditTotals, answers: &[TextRows]) -> Vec<AuditRow> {
        self.counts.audit(&self.plan.settings, totals, answers)
    }
}

struct Client {
    plan: Arc<Documents>,
    counts: Arc<Counts>,
    drawing: Drawing,
    // Of the operation that was drawn.
    key: u64,
    content: Vec<u8>,
}

impl Client {
    /// The operation in whose share `place`, from 0 to 1, falls.
    fn operation_at(&self, mut place: f64) -> usize {
        let shares = &self.plan.settings.shares;
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
        let Settings { keys, shares, documents, .. } = &self.plan.settings;
        let what = shares[idx].0;
        self.key = match what {
            What::Insert => documents + self.counts.take_new(),
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
        let Settings { shares, documents, range_size, .. } = &self.plan.settings;
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
