//! The cost of a primary key's order: inserts into tables whose key is a sequential number or a
//! random string.
//!
//! Tables and statement are those of Percona's measurement on Aurora ("Making Aurora Write Latency
//! 15x Higher by Choosing a Bad Primary Key"): a key, a number, an index on the number; random keys
//! are 22 digits and a dash. Single rows use a prepared statement, where sysbench sent text. The
//! audit reports space by table.

mod audit;
mod schema;
mod settings;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use dyno_model::name;
use dyno_units::{RandomStream, Seed};

use crate::catalog::{PlanError, PlanInput, WorkloadSpec};
use crate::ledger::{Ledger, Note, NotedRows};
use crate::row::push_decimal;
use crate::{
    AuditRow, AuditTotals, ClientContext, ClientFuture, Clients, Dialect, Done, Outline, Row,
    Session, Statement, StatementClass, Table, TextRows, Transactions, Value, Workload, drive,
};

use settings::{Key, Settings};

const NAME: &str = "key-order";

pub fn spec() -> WorkloadSpec {
    let summary = "inserts alone, into tables with a sequential or a random primary key";
    WorkloadSpec::new(NAME, summary, settings::OPTIONS.to_vec(), plan)
}

/// The seed determines the initial rows.
fn plan(input: &PlanInput<'_>) -> Result<Arc<dyn Workload>, PlanError> {
    let settings = Settings::read(input.options)?;
    let seeds = (0..settings.tables).map(|idx| input.seed.derive("key-order", idx)).collect();
    let outline = input.outline([name("insert")]);
    Ok(Arc::new(KeyOrder { outline, settings, seeds, ledger: None }))
}

#[derive(Clone)]
struct KeyOrder {
    outline: Outline,
    settings: Settings,
    /// Of each table's rows.
    seeds: Vec<Seed>,
    /// None if clients do not note what is confirmed.
    ledger: Option<Arc<Ledger>>,
}

impl Workload for KeyOrder {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    fn tables(&self, dialect: Dialect) -> Vec<Table> {
        let Settings { key, table_size, .. } = self.settings;
        let table = |idx| schema::table(key, dialect, idx, table_size);
        (0..self.settings.tables).map(table).collect()
    }

    fn fill_row(&self, table_idx: usize, number: u64, row: &mut Row) {
        let mut random = self.seeds[table_idx].derive("row", number).stream();
        if self.settings.key == Key::RandomString {
            row.push_text(&schema::random_key(&mut random));
        }
        row.push_integer(random.below(self.settings.numbers) as i64 + 1);
    }

    /// One for each table; none if several rows go as text.
    fn statements(&self, dialect: Dialect) -> Vec<Statement> {
        if self.settings.rows_per_transaction > 1 {
            return Vec::new();
        }
        let key = self.settings.key;
        let marks = vec!["?"; key.columns().len()].join(", ");
        let insert = |idx| {
            let sql = format!("{}({marks})", schema::insert_head(key, idx));
            Statement::new(dialect.placeholders(&sql), StatementClass::Write)
        };
        (0..self.settings.tables).map(insert).collect()
    }

    fn check_apart(&self) -> Result<(), String> {
        Ok(())
    }

    /// What the tables take on disk, second by second.
    fn readings_query(&self, dialect: Dialect) -> Option<String> {
        audit::readings_query(&self.settings, dialect)
    }

    fn audit_queries(&self, dialect: Dialect) -> Vec<String> {
        audit::queries(&self.settings, dialect)
    }

    fn counts_commits(&self) -> bool {
        true
    }

    /// By the first key of each transaction.
    fn noting_commits(self: Arc<Self>) -> Result<Arc<dyn Workload>, &'static str> {
        let Settings { key, tables, table_size, rows_per_transaction, .. } = self.settings;
        if key == Key::Sequential {
            return Err(
                "the server assigns its keys, and its numbers repeat (`key = \"random-string\"` has \
                        neither)",
            );
        }
        let ledger = Ledger::new(NotedRows {
            tables: (0..tables).map(|idx| schema::table_name(key, idx)).collect(),
            column: "id",
            filled: tables * table_size,
            per_transaction: rows_per_transaction,
        });
        Ok(Arc::new(KeyOrder { ledger: Some(ledger), ..KeyOrder::clone(&self) }))
    }

    fn clients(self: Arc<Self>) -> Arc<dyn Clients> {
        self
    }
}

/// Clients share nothing but what they note.
impl Clients for KeyOrder {
    fn client(&self, context: ClientContext) -> ClientFuture {
        Box::pin(drive(Client::new(&self.settings, self.ledger.as_ref()), context))
    }

    fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_deref()
    }

    fn audit(&self, totals: &AuditTotals, answers: &[TextRows]) -> Vec<AuditRow> {
        audit::judge(&self.settings, totals, answers)
    }
}

/// Into a drawn table: one row by a prepared statement, several by text.
struct Client {
    settings: Settings,
    table: usize,
    key: [u8; schema::KEY_BYTES],
    number: i64,
    /// Of the first row.
    first_key: [u8; schema::KEY_BYTES],
    note: Option<Note>,
    /// Of each table, up to the rows; none if one row is prepared.
    heads: Vec<String>,
    sql: Vec<u8>,
}

/// Room for one row as text: a key, a number and signs.
const ROW_BYTES: usize = schema::KEY_BYTES + 20;

impl Client {
    fn new(settings: &Settings, ledger: Option<&Arc<Ledger>>) -> Client {
        let n_rows = settings.rows_per_transaction as usize;
        let heads: Vec<String> = if n_rows > 1 {
            (0..settings.tables).map(|idx| schema::insert_head(settings.key, idx)).collect()
        } else {
            Vec::new()
        };
        let longest = heads.iter().map(String::len).max().unwrap_or(0);
        Client {
            settings: settings.clone(),
            table: 0,
            key: [0; schema::KEY_BYTES],
            number: 0,
            first_key: [0; schema::KEY_BYTES],
            note: ledger.map(|ledger| Note::new(ledger, schema::KEY_BYTES)),
            sql: Vec::with_capacity(longest + n_rows * ROW_BYTES),
            heads,
        }
    }

    fn draw_row(&mut self, random: &mut RandomStream) {
        self.number = random.below(self.settings.numbers) as i64 + 1;
        if self.settings.key == Key::RandomString {
            self.key = schema::random_key(random);
        }
    }

    fn write_rows(&mut self, random: &mut RandomStream) {
        self.sql.clear();
        self.sql.extend_from_slice(self.heads[self.table].as_bytes());
        for row in 0..self.settings.rows_per_transaction {
            self.draw_row(random);
            if row == 0 {
                self.first_key = self.key;
            }
            self.sql.extend_from_slice(if row > 0 { b", (" } else { b"(" });
            if self.settings.key == Key::RandomString {
                self.sql.push(b'\'');
                self.sql.extend_from_slice(&self.key);
                self.sql.extend_from_slice(b"', ");
            }
            push_decimal(&mut self.sql, self.number);
            self.sql.push(b')');
        }
    }
}

impl Transactions for Client {
    /// Draws all values, so that a retry sends the same ones.
    fn draw(&mut self, random: &mut RandomStream) -> usize {
        self.table = random.below(self.settings.tables) as usize;
        if self.heads.is_empty() {
            self.draw_row(random);
            self.first_key = self.key;
        } else {
            self.write_rows(random);
        }
        0
    }

    async fn perform(&mut self, _: usize, _: &mut RandomStream, session: &mut Session) -> Done {
        let number = Value::Integer(self.number);
        if let Some(note) = &mut self.note {
            let key =
                std::str::from_utf8(&self.first_key).expect("it is made of digits and a dash");
            note.sends(self.table, key);
        }
        let result = if !self.heads.is_empty() {
            let sql = std::str::from_utf8(&self.sql).expect("it is made of ASCII text alone");
            session.text(sql, StatementClass::Write).await
        } else if self.settings.key == Key::RandomString {
            session.execute(self.table, &[Value::Text(&self.key), number]).await
        } else {
            session.execute(self.table, &[number]).await
        };
        if let (Some(note), Ok(_)) = (&mut self.note, &result) {
            note.confirmed();
        }
        result.map(|_| ())
    }
}
