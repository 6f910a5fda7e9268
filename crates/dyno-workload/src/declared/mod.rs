//! A workload declared in a study: tables with generators for columns, and transactions of SQL
//! statements with drawn or read values.
//!
//! The study's tables `table` and `transaction` arrive as texts (see [`dyno_model::Tree`]);
//! `definition` finds all mistakes at once. [`Workload::check`] refuses what depends on the dialect.
//! Rows are functions of seed, table and number (`schema`); a client draws a statement's values into its
//! own memory before sending (`client`).

mod audit;
mod calendar;
pub mod capture;
mod client;
mod definition;
mod generator;
mod problems;
mod read_generator;
mod schema;
mod sql;
mod template;
mod transaction;
mod tried;
mod values;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use dyno_model::DefinitionProblem;
use md5::{Digest, Md5};

use crate::Tried;
use crate::options::{any_count, text};
use crate::prelude::*;
use crate::sysbench::sequence::Sequences;

use audit::Counts;
use client::{Client, class_of};
use definition::{Definition, Source};
use generator::{Constant, Numbers};
use transaction::{Action, Sql};

pub const NAME: &str = "declared";

/// The text of `table` where a study declares no tables.
const NO_TABLES: &str = "{}";

/// More take too much memory: each is a value of its own.
const LINES_MOST: usize = 4_000_000;

type Files = BTreeMap<String, Arc<ListFile>>;

/// A file whose lines are drawn. All generators that name it have the same values.
#[derive(Debug)]
struct ListFile {
    text: String,
    n_lines: usize,
    items: OnceLock<Weighted>,
}

/// Values, and the weights of each and of all before it.
type Weighted = (Arc<[Constant]>, Arc<[u64]>);

impl ListFile {
    fn new(text: String) -> ListFile {
        ListFile { n_lines: text.lines().count(), text, items: OnceLock::new() }
    }

    fn items(&self) -> Weighted {
        let read = || {
            let item = |line: &str| Constant::Text(line.as_bytes().to_vec());
            (self.text.lines().map(item).collect(), (1..=self.n_lines as u64).collect())
        };
        self.items.get_or_init(read).clone()
    }
}

/// The workload of studies whose generators name these files, by the names that they use.
pub fn spec(files: BTreeMap<String, String>) -> WorkloadSpec {
    let shared = |(name, text)| (name, Arc::new(ListFile::new(text)));
    let files: Files = files.into_iter().map(shared).collect();
    let options = vec![
        text("table", NO_TABLES).help("the tables, by their names"),
        text("transaction", "{}").help("the transactions, by their names"),
        any_count("scale", "1").help("factor by which the numbers of rows are multiplied"),
    ];
    let of_problems = files.clone();
    let summary = "tables and transactions that the study declares";
    WorkloadSpec::new(NAME, summary, options, move |input| plan(input, &files))
        .checked_by(move |given| problems(given, &of_problems))
}

fn problems(given: &BTreeMap<String, String>, files: &Files) -> Vec<DefinitionProblem> {
    let text = |name: &str| given.get(name).map_or("{}", String::as_str);
    let scale = given.get("scale").and_then(|scale| dyno_units::parse_count(scale).ok());
    let (tables, transactions) = (text("table"), text("transaction"));
    let source = Source { tables, transactions, scale: scale.unwrap_or(1), files };
    Definition::read(source).err().unwrap_or_default()
}

fn plan(input: &PlanInput<'_>, files: &Files) -> Planned {
    let options = input.options;
    let (tables, transactions) = (options.text("table"), options.text("transaction"));
    let scale = options.count("scale");
    let definition = Definition::read(Source { tables, transactions, scale, files });
    let definition = definition.map_err(|problems| {
        let first = &problems[0];
        let name = first.path.first().cloned().unwrap_or_default();
        let place = first.path.get(1..).unwrap_or_default().join(".");
        let reason = format!("{place}: {}", first.message);
        PlanError::Option(OptionError { name, reason })
    })?;
    let of_files: String =
        files.iter().map(|(name, file)| format!("\n{name} {}", digest(&file.text))).collect();
    let seeds = (0..definition.tables.len() as u64).map(|idx| input.seed.derive("declared", idx));
    let rows = |one: &definition::DeclaredTable| format!("{} {}", one.name, one.rows);
    let weight = |one: &transaction::Transaction| format!("{} {}", one.name, one.weight);
    let joined = |texts: Vec<String>| texts.join(", ");
    let kinds = definition.transactions.iter().map(|one| Name::from(one.name.clone()));
    let recorded = [
        ("scale", scale.to_string()),
        ("tables", joined(definition.tables.iter().map(rows).collect())),
        ("transactions", joined(definition.transactions.iter().map(weight).collect())),
        ("definition_md5", digest(&format!("{tables}\n{transactions}{of_files}"))),
    ];
    let reads = |(.., sql): (&str, usize, &Sql)| sql.rows.is_some() || !sql.read.is_empty();
    let needs_rows = statements_of(&definition).any(reads);
    Ok(Arc::new(Declared {
        outline: Outline {
            options: recorded.map(|(name, value)| (name.to_owned(), value)).to_vec(),
            needs_rows,
            makes_nothing: definition.tables.is_empty(),
            fills: Some(digest(&format!("{scale}\n{tables}{of_files}"))),
            ..input.outline(kinds.collect::<Vec<Name>>())
        },
        seeds: seeds.collect(),
        definition: Arc::new(definition),
    }))
}

/// The MD5 of a text, in hexadecimal digits.
fn digest(text: &str) -> String {
    Md5::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

struct Declared {
    outline: Outline,
    /// Of the rows of each table.
    seeds: Vec<Seed>,
    definition: Arc<Definition>,
}

/// With the name of the transaction and the index of the step.
fn statements_of(definition: &Definition) -> impl Iterator<Item = (&str, usize, &Sql)> {
    definition.transactions.iter().flat_map(|transaction| {
        transaction.steps.iter().enumerate().filter_map(|(nth, step)| match &step.action {
            Action::Sql(sql) => Some((transaction.name.as_str(), nth, sql)),
            Action::RollBack => None,
        })
    })
}

impl Workload for Declared {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    fn declared_at(&self, dialect: Dialect) -> Option<Vec<Vec<String>>> {
        let place = definition::place(dialect);
        let named = dyno_model::declared::DIALECTS[place];
        let known = statements_of(&self.definition).filter(|(.., sql)| sql.forms[place].is_ok());
        let places = known.map(|(name, nth, _)| {
            let keys = ["transaction", name, "steps", &nth.to_string(), "sql", named];
            keys.map(str::to_owned).to_vec()
        });
        Some(places.collect())
    }

    fn check(&self, dialect: Dialect) -> Result<(), String> {
        crate::workload::refuse_without_transactions(self.name(), dialect)?;
        schema::check(&self.definition, dialect)?;
        for (name, nth, sql) in statements_of(&self.definition) {
            if let Err(why) = &sql.forms[definition::place(dialect)] {
                return Err(format!("transaction `{name}`, step {}: {why}", nth + 1));
            }
        }
        Ok(())
    }

    fn check_apart(&self) -> Result<(), String> {
        let why = "a `sequence` in its transactions counts the rows of all clients, so they must run in one process";
        let counts = !self.definition.numbering.sequences.is_empty();
        if counts { Err(why.to_owned()) } else { Ok(()) }
    }

    fn tables(&self, dialect: Dialect) -> Vec<Table> {
        schema::tables(&self.definition, dialect)
    }

    fn fill_row(&self, table_idx: usize, number: u64, row: &mut Row) {
        schema::fill(&self.definition, (table_idx, self.seeds[table_idx]), number, row);
    }

    fn statements(&self, dialect: Dialect) -> Vec<Statement> {
        let statement = |sql: &Sql| {
            let form = sql.forms[definition::place(dialect)].as_ref().ok()?;
            let statement = Statement::new(form.prepared.clone(), class_of(form));
            Some(if sql.read.is_empty() { statement } else { statement.keeping_rows() })
        };
        statements_of(&self.definition).filter_map(|(.., sql)| statement(sql)).collect()
    }

    fn first_queries(&self) -> Vec<String> {
        let after = self.definition.numbering.sequences.iter().flatten();
        after.map(read_generator::After::query).collect()
    }

    fn audit_queries(&self, dialect: Dialect) -> Vec<String> {
        audit::queries(&self.definition, dialect)
    }

    fn clients(self: Arc<Self>) -> Arc<dyn Clients> {
        let counts = Counts::new(&self.definition);
        let all = &self.definition.numbering.sequences;
        let first = all.iter().map(|after| after.as_ref().map(|after| after.start)).collect();
        // Each with a count of its own, which a clone would share.
        let sequences = all.iter().map(|_| Sequences::default()).collect();
        Arc::new(DeclaredClients { workload: self, counts, sequences, first: Mutex::new(first) })
    }
}

struct DeclaredClients {
    workload: Arc<Declared>,
    counts: Counts,
    /// Of the generators in transactions.
    sequences: Vec<Sequences>,
    /// The first number of each that goes on after a column.
    first: Mutex<Vec<Option<i64>>>,
}

impl DeclaredClients {
    fn first(&self) -> MutexGuard<'_, Vec<Option<i64>>> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clients for DeclaredClients {
    fn client(self: Arc<Self>, mut context: ClientContext) -> ClientFuture {
        let place = (context.client_idx as u64, context.n_clients as u64);
        let first = self.first();
        let sequences = self.sequences.iter().zip(first.iter().copied());
        let sequences = sequences
            .map(|(one, first)| Numbers { first, sequence: one.member(place.0, place.1) })
            .collect();
        let seed = context.random.next_u64();
        let dialect = context.session.dialect();
        let own = (sequences, self.counts.client(), seed);
        Box::pin(drive(Client::new(&self.workload.definition, dialect, own), context))
    }

    fn begin(&self, answers: &[TextRows]) -> Result<(), String> {
        let sequences = self.workload.definition.numbering.sequences.iter();
        let mut first = self.first();
        let asked = sequences
            .zip(first.iter_mut())
            .filter_map(|(after, first)| Some((after.as_ref()?, first)));
        for ((after, first), answer) in asked.zip(answers) {
            *first = Some(after.first(answer)?);
        }
        Ok(())
    }

    fn try_kinds(&self, connection: Box<dyn Connection>) -> Result<Vec<Tried>, StatementError> {
        let first = self.first().clone();
        self.workload.try_kinds(connection, &first)
    }

    fn counts(&self) -> Vec<u64> {
        self.counts.all()
    }

    fn add_counts(&self, counts: &[u64]) {
        self.counts.add(counts);
    }

    fn audit(&self, totals: &AuditTotals, answers: &[TextRows]) -> Vec<AuditRow> {
        audit::judge(&self.workload.definition, &self.counts, totals, answers)
    }
}
