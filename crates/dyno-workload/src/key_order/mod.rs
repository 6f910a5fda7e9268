//! The cost of a primary key's order: inserts into tables whose key is a sequential number or a
//! random string.
//!
//! Tables and statement are those of Percona's measurement on Aurora ("Making Aurora Write Latency
//! 15x Higher by Choosing a Bad Primary Key"): a key, a number, an index on the number; random keys
//! are 22 digits and a dash. Single rows use a prepared statement, where sysbench sent text. The
//! audit reports space by table.

#[cfg(test)]
mod tests;

use crate::ledger::{Ledger, Note, NotedRows};
use crate::options::{Options, count, word};
use crate::prelude::*;
use crate::row::{push_decimal, write_digits};

const NAME: &str = "key-order";

pub fn spec() -> WorkloadSpec {
    let summary = "inserts alone, into tables with a sequential or a random primary key";
    WorkloadSpec::new(NAME, summary, OPTIONS.to_vec(), plan)
}

fn plan(input: &PlanInput<'_>) -> Planned {
    let settings = Settings::read(input.options)?;
    let seeds = (0..settings.tables).map(|idx| input.seed.derive("key-order", idx)).collect();
    let outline = Outline { counts_commits: true, ..input.outline([name("insert")]) };
    Ok(Arc::new(KeyOrder { outline, settings, seeds, ledger: None }))
}

#[derive(Clone)]
struct KeyOrder {
    outline: Outline,
    settings: Settings,
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
        let table = |idx| table(key, dialect, idx, table_size);
        (0..self.settings.tables).map(table).collect()
    }

    fn fill_row(&self, table_idx: usize, number: u64, row: &mut Row) {
        let mut random = self.seeds[table_idx].derive("row", number).stream();
        if self.settings.key == Key::RandomString {
            row.push_text(&random_key(&mut random));
        }
        row.push_integer(random.below(self.settings.numbers) as i64 + 1);
    }

    fn statements(&self, dialect: Dialect) -> Vec<Statement> {
        if self.settings.rows_per_transaction > 1 {
            return Vec::new();
        }
        let key = self.settings.key;
        let marks = vec!["?"; key.columns().len()].join(", ");
        let insert = |idx| {
            let sql = format!("{}({marks})", insert_head(key, idx));
            Statement::new(dialect.placeholders(&sql), StatementClass::Write)
        };
        (0..self.settings.tables).map(insert).collect()
    }

    fn check_apart(&self) -> Result<(), String> {
        Ok(())
    }

    fn readings_query(&self, dialect: Dialect) -> Option<String> {
        readings_query(&self.settings, dialect)
    }

    fn audit_queries(&self, dialect: Dialect) -> Vec<String> {
        queries(&self.settings, dialect)
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
            tables: (0..tables).map(|idx| table_name(key, idx)).collect(),
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

impl Clients for KeyOrder {
    fn client(self: Arc<Self>, context: ClientContext) -> ClientFuture {
        Box::pin(drive(Client::new(&self.settings, self.ledger.as_ref()), context))
    }

    fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_deref()
    }

    fn audit(&self, totals: &AuditTotals, answers: &[TextRows]) -> Vec<AuditRow> {
        let settings = &self.settings;
        let (tables, per_transaction) = (settings.tables, settings.rows_per_transaction);
        let filled = tables * settings.table_size;
        let counted = answers.first().and_then(|answer| number_in(answer, 0, 0));
        let (name, filled) = ("rows in all tables, filled and inserted", (filled, per_transaction));
        let stored = AuditRow::inserted(name, filled, totals, counted);
        let mut rows = vec![AuditRow::statements(1, totals), stored];
        // The sizes are the last answers.
        let before = answers.len().saturating_sub(tables as usize).max(1);
        for idx in 0..tables {
            let name = table_name(settings.key, idx);
            rows.extend(sizes(&name, settings, answers.get(before + idx as usize)));
        }
        rows
    }
}

/// Into a drawn table: one row by a prepared statement, several by text.
struct Client {
    settings: Settings,
    table: usize,
    key: [u8; KEY_BYTES],
    number: i64,
    first_key: [u8; KEY_BYTES],
    note: Option<Note>,
    /// Of each table, up to the rows; none if one row is prepared.
    heads: Vec<String>,
    sql: Vec<u8>,
}

/// Room for one row as text: a key, a number and signs.
const ROW_BYTES: usize = KEY_BYTES + 20;

impl Client {
    fn new(settings: &Settings, ledger: Option<&Arc<Ledger>>) -> Client {
        let n_rows = settings.rows_per_transaction as usize;
        let heads: Vec<String> = if n_rows > 1 {
            (0..settings.tables).map(|idx| insert_head(settings.key, idx)).collect()
        } else {
            Vec::new()
        };
        let longest = heads.iter().map(String::len).max().unwrap_or(0);
        let sql = Vec::with_capacity(longest + n_rows * ROW_BYTES);
        let note = ledger.map(|ledger| Note::new(ledger, KEY_BYTES));
        let (settings, table, number, key) = (settings.clone(), 0, 0, [0; KEY_BYTES]);
        Client { settings, table, key, number, first_key: key, note, heads, sql }
    }

    fn draw_row(&mut self, random: &mut RandomStream) {
        self.number = random.below(self.settings.numbers) as i64 + 1;
        if self.settings.key == Key::RandomString {
            self.key = random_key(random);
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    /// A number that the server gives, each larger than the one before.
    Sequential,
    RandomString,
}

impl Key {
    fn columns(self) -> &'static [&'static str] {
        match self {
            Key::Sequential => &["number"],
            Key::RandomString => &["id", "number"],
        }
    }
}

const OPTIONS: &[OptionSpec] = &[
    word("key", &["sequential", "random-string"])
        .help("the primary key: a number that the server assigns, or 22 random digits"),
    count("tables", "1", 1, 1000).help("number of tables"),
    count("table_size", "0", 0, ROWS_MAX).help("rows in each table before the first insert"),
    count("rows_per_transaction", "1", 1, 10_000).help("rows per INSERT, and thus per commit"),
    count("numbers", "10000", 1, ROWS_MAX)
        .help("number of distinct values of the indexed column number"),
];

#[derive(Clone, Debug)]
struct Settings {
    key: Key,
    tables: u64,
    table_size: u64,
    rows_per_transaction: u64,
    numbers: u64,
}

/// What a key of type INT leaves room for.
const ROWS_MAX: u64 = 2_000_000_000;

impl Settings {
    fn read(options: &Options) -> Result<Settings, OptionError> {
        Ok(Settings {
            key: options.meaning("key", [Key::Sequential, Key::RandomString]),
            tables: options.in_range("tables")?,
            table_size: options.in_range("table_size")?,
            rows_per_transaction: options.in_range("rows_per_transaction")?,
            numbers: options.in_range("numbers")?,
        })
    }
}

/// Bytes of a random key: eleven digits, a dash, eleven digits.
const KEY_BYTES: usize = 23;

const HALF: usize = 11;

fn random_key(random: &mut RandomStream) -> [u8; KEY_BYTES] {
    let mut key = [b'-'; KEY_BYTES];
    for start in [0, HALF + 1] {
        write_digits(&mut key[start..start + HALF], random.below(10_u64.pow(HALF as u32)));
    }
    key
}

fn name_prefix(key: Key) -> &'static str {
    match key {
        Key::Sequential => "test_sequential_pk",
        Key::RandomString => "test_random_pk",
    }
}

fn table_name(key: Key, idx: u64) -> String {
    format!("{}{}", name_prefix(key), idx + 1)
}

fn table(key: Key, dialect: Dialect, idx: u64, rows: u64) -> Table {
    let name = table_name(key, idx);
    let id = match (key, dialect) {
        (Key::Sequential, Dialect::MySql) => "int not null auto_increment",
        (Key::Sequential, Dialect::PostgreSql) => "serial",
        (Key::Sequential, Dialect::Sqlite | Dialect::ClickHouse) => "integer not null",
        (Key::RandomString, _) => "varchar(26) not null",
    };
    let mut after = vec![dialect.analyze(&name)];
    let index = match dialect {
        Dialect::MySql => format!(", KEY {name}_number (number)"),
        Dialect::PostgreSql | Dialect::Sqlite | Dialect::ClickHouse => {
            after.insert(0, format!("CREATE INDEX {name}_number ON {name} (number)"));
            String::new()
        }
    };
    let create =
        format!("CREATE TABLE {name} (id {id}, number int not null, PRIMARY KEY (id){index})");
    Table { create, columns: names(key.columns()), rows, after, name }
}

fn insert_head(key: Key, idx: u64) -> String {
    format!("INSERT INTO {} ({}) VALUES ", table_name(key, idx), key.columns().join(", "))
}

/// Rows of all tables; then by table rows, bytes of data and of indexes. MariaDB's and MySQL's
/// sizes may be old by a tenth of the rows, so statistics are refreshed in between.
fn queries(settings: &Settings, dialect: Dialect) -> Vec<String> {
    let names: Vec<String> =
        (0..settings.tables).map(|idx| table_name(settings.key, idx)).collect();
    let counts: Vec<String> =
        names.iter().map(|name| format!("(SELECT COUNT(*) FROM {name})")).collect();
    let mut queries = vec![format!("SELECT {}", counts.join(" + "))];
    if dialect == Dialect::MySql {
        queries.push(format!("ANALYZE TABLE {}", names.join(", ")));
    }
    queries.extend(names.iter().map(|name| size_query(name, dialect)));
    queries
}

/// Rows, bytes and bytes per row of all tables, as the server knows them. InnoDB's are statistics
/// of one moment, collected after a tenth of the rows has changed, at most every ten seconds
/// (information_schema.tables has present rows and old bytes). None on SQLite, which would read the
/// whole database.
fn readings_query(settings: &Settings, dialect: Dialect) -> Option<String> {
    let (rows, data, indexes, tables) = match dialect {
        Dialect::MySql => (
            "SUM(n_rows)",
            "SUM(clustered_index_size) * @@innodb_page_size",
            "SUM(sum_of_other_index_sizes) * @@innodb_page_size",
            "mysql.innodb_table_stats WHERE database_name = database() AND table_name",
        ),
        Dialect::PostgreSql => (
            "SUM(n_live_tup)",
            "SUM(pg_relation_size(relid))",
            "SUM(pg_indexes_size(relid))",
            "pg_stat_user_tables WHERE relname",
        ),
        Dialect::Sqlite | Dialect::ClickHouse => return None,
    };
    let prefix = name_prefix(settings.key);
    Some(format!(
        "SELECT {rows} AS table_rows, {data} AS data_bytes, {indexes} AS index_bytes, \
         {data} / NULLIF({rows}, 0) AS data_bytes_per_row, \
         {indexes} / NULLIF({rows}, 0) AS index_bytes_per_row, \
         {indexes} / NULLIF({data}, 0) AS index_to_data FROM {tables} LIKE '{prefix}%'"
    ))
}

/// Rows, bytes of data, bytes of indexes, with a separate primary key among the indexes.
fn size_query(name: &str, dialect: Dialect) -> String {
    let count = format!("(SELECT COUNT(*) FROM {name})");
    match dialect {
        Dialect::MySql => format!(
            "SELECT {count}, data_length, index_length FROM information_schema.tables \
             WHERE table_schema = database() AND table_name = '{name}'"
        ),
        Dialect::PostgreSql => {
            format!("SELECT {count}, pg_relation_size('{name}'), pg_indexes_size('{name}')")
        }
        Dialect::Sqlite | Dialect::ClickHouse => format!(
            "SELECT {count}, (SELECT SUM(pgsize) FROM dbstat WHERE name = '{name}'), \
             (SELECT SUM(pgsize) FROM dbstat WHERE name IN \
             (SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = '{name}'))"
        ),
    }
}

fn sizes(name: &str, settings: &Settings, answer: Option<&TextRows>) -> [AuditRow; 2] {
    let number = |column| answer.and_then(|rows| number_in(rows, 0, column));
    let (rows, data, indexes) = (number(0), number(1), number(2));
    let row = |part: &str, bytes: Option<i128>, rest: String| {
        let measured = match (rows, bytes) {
            (Some(rows), Some(bytes)) if rows > 0 => {
                format!("{bytes} bytes, {:.1} per row of {rows}{rest}", bytes as f64 / rows as f64)
            }
            (_, Some(bytes)) => format!("{bytes} bytes"),
            (_, None) => "no number".to_owned(),
        };
        let is_there = bytes.is_some_and(|bytes| bytes > 0) || rows == Some(0);
        AuditRow::judged(format!("{part} of {name}"), "more than 0 bytes", measured, is_there)
    };
    let ratio = match (data, indexes) {
        (Some(data), Some(indexes)) if data > 0 => {
            format!(", {:.2} of the data", indexes as f64 / data as f64)
        }
        _ => String::new(),
    };
    // A lower bound of what a row takes uncompressed.
    let bytes = if settings.key == Key::Sequential { 8 } else { KEY_BYTES as u64 + 4 };
    let bare = format!("; the columns alone are {bytes}");
    [row("size of the data", data, bare), row("size of the indexes", indexes, ratio)]
}
