//! Clients by role.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use crate::prelude::*;
use crate::row::{push_decimal, write_letters};
use crate::skew::DrawnByClient;

use super::layout::DRIFT_MAX;
use super::schema::{self, DeleteEnd, DeleteText, Index};
use super::settings::{QueryForm, Schema, Values};
use super::{Bench, Kind};

/// Between checks while ahead: each costs CPU, and a late one may cost time.
const AHEAD_PAUSE: (Nanoseconds, Nanoseconds) =
    (Nanoseconds::from_micros(250), Nanoseconds::from_millis(20));

#[derive(Clone)]
pub(super) struct ClientRole {
    pub(super) bench: Arc<Bench>,
    pub(super) step: usize,
    pub(super) table: usize,
    pub(super) per_commit: u64,
    pub(super) is_coupled: bool,
    pub(super) has_deletes: bool,
}

impl ClientRole {
    fn counters(&self) -> &TableCounters {
        self.bench.counters.table(self.table)
    }

    fn drift(&self) -> &Drift {
        self.bench.counters.drift(self.step, self.table)
    }

    fn is_over(&self) {
        self.drift().is_over.store(true, Ordering::Relaxed);
    }
}

/// A client too far ahead waits until the lead has halved, so that it can do several batches before
/// the next check. The wait is estimated from the one before.
#[derive(Default)]
struct Lead {
    /// Time waited, and the other's batches at its start; none while not waiting.
    wait: Option<(Nanoseconds, u64)>,
    /// How long the other one took for a batch when that was last seen; zero before.
    per_batch: Nanoseconds,
}

impl Lead {
    fn wait(&mut self, role: &ClientRole, mine: u64, others: u64) -> Nanoseconds {
        let (waited, before) = self.wait.unwrap_or((Nanoseconds::ZERO, others));
        if let Some(per_batch) = waited.0.checked_div(others - before) {
            self.per_batch = Nanoseconds(per_batch);
        }
        let most = if self.wait.is_some() { DRIFT_MAX / 2 } else { DRIFT_MAX };
        let is_ahead = role.is_coupled && mine > others + most;
        if !is_ahead || role.drift().is_over.load(Ordering::Relaxed) {
            self.wait = None;
            return Nanoseconds::ZERO;
        }
        let n_left = mine - others - DRIFT_MAX / 2;
        let pause = match self.per_batch {
            // Twice as long in all.
            Nanoseconds::ZERO => waited,
            per_batch => Nanoseconds(per_batch.0.saturating_mul(n_left)),
        };
        let pause = pause.clamp(AHEAD_PAUSE.0, AHEAD_PAUSE.1);
        self.wait = Some((waited + pause, before));
        pause
    }
}

/// How to ask for the smallest or the largest id: as text, or by the first prepared statement.
pub(super) struct EndQuery(Option<String>);

impl EndQuery {
    /// The query by this function, and the statement that it prepares, if any.
    pub(super) fn new(by: &str, role: &ClientRole, dialect: Dialect) -> (Self, Vec<Statement>) {
        let sql = format!("select {by}(transactionid) from {}", schema::table_name(role.table));
        match role.bench.settings.query_protocol.asks_ids_as_text(dialect) {
            true => (EndQuery(Some(sql)), Vec::new()),
            false => {
                let statement = Statement::new(sql, StatementClass::Read).keeping_rows();
                (EndQuery(None), vec![statement])
            }
        }
    }

    pub(super) async fn ask(&self, session: &mut Session) -> Done<i64> {
        match &self.0 {
            Some(sql) => session.text_keeping(sql, 1, StatementClass::Read).await?,
            None => session.execute(0, &[]).await?,
        };
        Ok(session.kept_rows().integer(0, 0).unwrap_or(0))
    }
}

pub(super) fn as_text(sql: &[u8]) -> &str {
    std::str::from_utf8(sql).expect("it is made of ASCII text alone")
}

pub(super) struct Inserter {
    role: ClientRole,
    lead: Lead,
    now: &'static str,
    products: DrawnByClient,
    // The statement; its first part stays.
    sql: Vec<u8>,
    head: usize,
    // The batch was refused and is sent again.
    is_again: bool,
}

impl Inserter {
    pub(super) fn new(role: ClientRole, now: &'static str) -> Inserter {
        let head = format!(
            "insert into {} (dateandtime,cashregisterid,customerid,productid,price,data) values ",
            schema::table_name(role.table)
        );
        let values = &role.bench.settings.values;
        let room = role.per_commit as usize * (ROW_BYTES + values.data_length_max as usize);
        let mut sql = Vec::with_capacity(head.len() + room + 2 * ROW_BYTES);
        sql.extend_from_slice(head.as_bytes());
        let (lead, products) = (Lead::default(), role.bench.products.client());
        Inserter { role, lead, now, products, sql, head: head.len(), is_again: false }
    }
}

impl Transactions for Inserter {
    fn draw(&mut self, _random: &mut RandomStream) -> usize {
        self.is_again = false;
        Kind::Insert.index()
    }

    fn delay_before(&mut self, _kind: usize) -> Nanoseconds {
        let Inserter { role, lead, .. } = self;
        let drift = role.drift();
        lead.wait(role, read(&drift.inserts), read(&drift.deletes))
    }

    async fn perform(&mut self, _: usize, random: &mut RandomStream, server: &mut Session) -> Done {
        let Inserter { role, now, products, sql, head, is_again, .. } = self;
        if !std::mem::replace(is_again, true) {
            let settings = &role.bench.settings;
            sql.truncate(*head);
            for row in 0..role.per_commit {
                if row > 0 {
                    sql.push(b',');
                }
                let values = (settings.schema, &settings.values, *now);
                products.note(push_row(sql, values, random));
            }
        }
        let counters = role.counters();
        let pending = counters.inserts.begin(role.per_commit);
        let result = server.text(as_text(sql), StatementClass::Write).await;
        pending.end(&result);
        if result.is_ok() {
            add(&role.drift().inserts, 1);
            if role.has_deletes {
                add(&counters.inserts_with_deletes, role.per_commit);
            }
        }
        result.map(|_| ())
    }
}

impl Drop for Inserter {
    fn drop(&mut self) {
        self.role.is_over();
    }
}

/// Deletes batches at the tail; asks for the smallest id at first and periodically.
pub(super) struct Deleter {
    role: ClientRole,
    lead: Lead,
    text: DeleteText,
    smallest: EndQuery,
    sql: Vec<u8>,
    quota: u64,
    n_deletes: u64,
    n_mins: u64,
}

impl Deleter {
    pub(super) fn new(role: ClientRole, dialect: Dialect, quota: u64) -> (Deleter, Vec<Statement>) {
        let table = schema::table_name(role.table);
        let text = schema::delete(role.bench.settings.deletes, dialect, &table);
        let sql = Vec::with_capacity(text.before_id.len() + text.after_id.len() + 64);
        let (smallest, statements) = EndQuery::new("min", &role, dialect);
        let (lead, n_deletes, n_mins) = (Lead::default(), 0, 0);
        (Deleter { role, lead, text, smallest, sql, quota, n_deletes, n_mins }, statements)
    }

    fn is_min_due(&self) -> bool {
        let resync = self.role.bench.settings.resync;
        let is_again = resync > 0 && self.n_mins * resync <= self.n_deletes;
        is_again && self.n_deletes < self.quota
    }

    /// Asks for the smallest id, where the next DELETE begins.
    async fn find_tail(&mut self, session: &mut Session) -> Done {
        let tail = self.smallest.ask(session).await?;
        self.role.counters().tail.store(tail, Ordering::Relaxed);
        self.n_mins += 1;
        Ok(())
    }

    async fn delete(&mut self, session: &mut Session) -> Done {
        let Deleter { role, text, sql, .. } = self;
        let (counters, n_rows) = (role.counters(), role.per_commit);
        let tail = counters.tail.load(Ordering::Relaxed);
        let next = tail + n_rows as i64;
        sql.clear();
        sql.extend_from_slice(text.before_id.as_bytes());
        push_decimal(sql, tail);
        sql.extend_from_slice(text.after_id.as_bytes());
        push_decimal(sql, if text.end == DeleteEnd::Id { next } else { n_rows as i64 });
        sql.extend_from_slice(text.after.as_bytes());
        counters.batch_max.fetch_max(n_rows, Ordering::Relaxed);
        let pending = counters.deletes.begin(n_rows);
        let result = session.text(as_text(sql), StatementClass::Write).await;
        pending.end(&result);
        result?;
        // As the original does: by as many as were requested, however many ids there were.
        counters.tail.store(next, Ordering::Relaxed);
        add(&role.drift().deletes, 1);
        self.n_deletes += 1;
        Ok(())
    }
}

impl Transactions for Deleter {
    fn draw(&mut self, _random: &mut RandomStream) -> usize {
        let kind = match self.n_mins {
            0 => Kind::GetMinStart,
            _ if self.is_min_due() => Kind::GetMin,
            _ => Kind::Delete,
        };
        kind.index()
    }

    fn delay_before(&mut self, kind: usize) -> Nanoseconds {
        if kind != Kind::Delete.index() {
            return Nanoseconds::ZERO;
        }
        let Deleter { role, lead, .. } = self;
        let drift = role.drift();
        lead.wait(role, read(&drift.deletes), read(&drift.inserts))
    }

    async fn perform(&mut self, kind: usize, _: &mut RandomStream, session: &mut Session) -> Done {
        if kind == Kind::Delete.index() {
            self.delete(session).await
        } else {
            self.find_tail(session).await
        }
    }
}

impl Drop for Deleter {
    fn drop(&mut self) {
        self.role.is_over();
    }
}

pub(super) struct Indexer {
    statements: Vec<String>,
    n_made: usize,
}

impl Indexer {
    pub(super) fn new(statements: Vec<String>) -> Indexer {
        Indexer { statements, n_made: 0 }
    }
}

impl Transactions for Indexer {
    fn draw(&mut self, _random: &mut RandomStream) -> usize {
        Kind::CreateIndexes.index()
    }

    async fn perform(&mut self, _: usize, _: &mut RandomStream, session: &mut Session) -> Done {
        while let Some(statement) = self.statements.get(self.n_made) {
            session.text_without_limit(statement, StatementClass::Other).await?;
            // Each commits by itself: after a failure the ones that were made are there.
            self.n_made += 1;
        }
        Ok(())
    }
}

// Query clients: ranges of a secondary index, or rows by id.

const POINTS_PER_MAX: u64 = 100;

pub(super) struct RangeClient {
    role: ClientRole,
    is_prepared: bool,
    queries: [(String, String); 3],
    sql: Vec<u8>,
}

impl RangeClient {
    pub(super) fn new(role: ClientRole, dialect: Dialect) -> (RangeClient, Vec<Statement>) {
        let settings = &role.bench.settings;
        let (table, limit) = (schema::table_name(role.table), settings.values.rows_per_query);
        let form = settings.query_protocol.form(dialect);
        let mut statements = Vec::new();
        let queries = Index::ALL.map(|index| {
            let query = schema::range_query(settings.schema, dialect, &table, index, limit);
            match form {
                QueryForm::Text => query,
                QueryForm::Prepared => {
                    let sql = dialect.placeholders(&format!("{}?{}", query.0, query.1));
                    statements.push(Statement::new(sql, StatementClass::Read));
                    query
                }
                QueryForm::Execute => {
                    let (prepare, execute) =
                        schema::prepared_range_query(settings.schema, &table, index, limit);
                    statements.push(Statement::set_up(prepare));
                    execute
                }
            }
        });
        let is_prepared = form == QueryForm::Prepared;
        let room = queries.iter().map(|(before, after)| before.len() + after.len()).max();
        let sql = Vec::with_capacity(room.unwrap_or(0) + 32);
        (RangeClient { role, is_prepared, queries, sql }, statements)
    }
}

/// The value of a range query, in hundredths if it is a price of 2023-07.
#[derive(Clone, Copy)]
enum Bound {
    Whole(i64),
    Cents(i64),
}

fn draw_bound(schema: Schema, values: &Values, query: usize, random: &mut RandomStream) -> Bound {
    match (Index::ALL[query], schema) {
        (Index::Register, _) => Bound::Whole(random.below(values.cashregisters) as i64),
        (Index::Market, Schema::December2023) => Bound::Whole(random.below(values.products) as i64),
        (Index::Pdc, Schema::December2023) => Bound::Whole(random.below(values.max_price) as i64),
        (Index::Market | Index::Pdc, Schema::July2023) => {
            let customer = random.below(values.customers) as i64;
            Bound::Cents(price_2023_07(values, customer, random))
        }
    }
}

impl Transactions for RangeClient {
    fn draw(&mut self, random: &mut RandomStream) -> usize {
        Kind::Market.index() + random.below(Index::ALL.len() as u64) as usize
    }

    async fn perform(
        &mut self,
        kind: usize,
        random: &mut RandomStream,
        session: &mut Session,
    ) -> Done {
        let RangeClient { role, is_prepared, queries, sql } = self;
        let settings = &role.bench.settings;
        let query = kind - Kind::Market.index();
        let bound = draw_bound(settings.schema, &settings.values, query, random);
        let reply = if *is_prepared {
            let value = match bound {
                Bound::Whole(value) => Value::Integer(value),
                Bound::Cents(cents) => Value::Real(cents as f64 / 100.0),
            };
            session.execute(query, &[value]).await?
        } else {
            let (before, after) = &queries[query];
            sql.clear();
            sql.extend_from_slice(before.as_bytes());
            match bound {
                Bound::Whole(value) => push_decimal(sql, value),
                Bound::Cents(cents) => push_cents(sql, cents),
            }
            sql.extend_from_slice(after.as_bytes());
            session.text(as_text(sql), StatementClass::Read).await?
        };
        let counters = &role.bench.counters.range;
        add(&counters.queries, 1);
        add(&counters.rows, reply.rows);
        Ok(())
    }
}

/// Asks for rows by ids drawn between the tail and the head of the table.
pub(super) struct PointClient {
    role: ClientRole,
    is_prepared: bool,
    largest_query: EndQuery,
    head: String,
    sql: Vec<u8>,
    ids: Vec<Value<'static>>,
    largest: i64,
    /// Queries since the largest id was asked for; none before the first time.
    since_max: Option<u64>,
}

impl PointClient {
    /// The client, and the statements it prepares: first the one for the largest id, if it is one.
    pub(super) fn new(role: ClientRole, dialect: Dialect) -> (PointClient, Vec<Statement>) {
        let table = schema::table_name(role.table);
        let settings = &role.bench.settings;
        let n_ids = settings.values.rows_per_query as usize;
        let mut head = schema::point_query(&table);
        let form = settings.query_protocol.form(dialect);
        let is_prepared = form == QueryForm::Prepared;
        let (largest_query, mut statements) = EndQuery::new("max", &role, dialect);
        match form {
            QueryForm::Text => {}
            QueryForm::Prepared => {
                let marks = vec!["?"; n_ids].join(", ");
                let sql = dialect.placeholders(&format!("{head}{marks})"));
                statements.push(Statement::new(sql, StatementClass::Read));
            }
            QueryForm::Execute => {
                let (prepare, execute) = schema::prepared_point_query(&table, n_ids);
                statements.push(Statement::set_up(prepare));
                head = execute;
            }
        }
        let sql = Vec::with_capacity(head.len() + 24 * n_ids);
        let ids = Vec::with_capacity(n_ids);
        let (largest, since_max) = (0, None);
        let client =
            PointClient { role, is_prepared, largest_query, head, sql, ids, largest, since_max };
        (client, statements)
    }

    async fn find_head(&mut self, session: &mut Session) -> Done {
        self.largest = self.largest_query.ask(session).await?;
        self.since_max = Some(0);
        Ok(())
    }

    fn draw_ids(&mut self, random: &mut RandomStream) {
        let smallest = self.role.bench.counters.table(self.role.table).tail.load(Ordering::Relaxed);
        let span = (self.largest - smallest).max(1) as u64;
        self.ids.clear();
        for _ in 0..self.role.bench.settings.values.rows_per_query {
            self.ids.push(Value::Integer(smallest + random.below(span) as i64));
        }
    }

    fn write_text(&mut self) {
        let PointClient { sql, head, ids, .. } = self;
        sql.clear();
        sql.extend_from_slice(head.as_bytes());
        for (idx, id) in ids.iter().enumerate() {
            if idx > 0 {
                sql.extend_from_slice(b", ");
            }
            if let Value::Integer(id) = id {
                push_decimal(sql, *id);
            }
        }
        sql.push(b')');
    }
}

impl Transactions for PointClient {
    fn draw(&mut self, _random: &mut RandomStream) -> usize {
        match self.since_max {
            Some(n) if n < POINTS_PER_MAX => Kind::Point.index(),
            _ => Kind::GetMax.index(),
        }
    }

    async fn perform(
        &mut self,
        kind: usize,
        random: &mut RandomStream,
        session: &mut Session,
    ) -> Done {
        if kind == Kind::GetMax.index() {
            return self.find_head(session).await;
        }
        self.draw_ids(random);
        let reply = if self.is_prepared {
            session.execute(1, &self.ids).await?
        } else {
            self.write_text();
            session.text(as_text(&self.sql), StatementClass::Read).await?
        };
        self.since_max = self.since_max.map(|n| n + 1);
        let counters = &self.role.bench.counters.point;
        add(&counters.queries, 1);
        add(&counters.rows, reply.rows);
        Ok(())
    }
}

// Values of rows and queries, and their text. All are uniform and follow from the client's random
// stream. Random letters of `data` are drawn from base64's alphabet, while the original takes them
// from 4 MiB of random base64: both have six random bits a letter.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Longest text of a row without its data: five numbers of at most ten digits, the time and signs.
const ROW_BYTES: usize = 96;

/// Appends a row to a multi-row INSERT: `(now(),1,2,3,4.00,'aaaaab')`. Returns its product.
pub(super) fn push_row(
    out: &mut Vec<u8>,
    (schema, values, now): (Schema, &Values, &str),
    random: &mut RandomStream,
) -> u64 {
    let cashregister = random.below(values.cashregisters) as i64;
    let customer = random.below(values.customers) as i64;
    let product = random.below(values.products) as i64;
    out.push(b'(');
    out.extend_from_slice(now.as_bytes());
    for value in [cashregister, customer, product] {
        out.push(b',');
        push_decimal(out, value);
    }
    out.push(b',');
    let cents = match schema {
        Schema::December2023 => 100 * random.below(values.max_price) as i64,
        Schema::July2023 => price_2023_07(values, customer, random),
    };
    push_cents(out, cents);
    out.extend_from_slice(b",'");
    // Column `data` has uniform length, and ends in random letters: three quarters of the random
    // percentage, as base64 has six bits a letter; the rest is `a`.
    let spread = values.data_length_max - values.data_length_min;
    let length = values.data_length_min + random.below(spread + 1);
    let n_random = length * 3 * values.data_random_pct / 400;
    out.resize(out.len() + length as usize, b'a');
    let first_random = out.len() - n_random as usize;
    write_letters(&mut out[first_random..], LETTERS, random);
    out.extend_from_slice(b"')");
    product as u64
}

/// (u × max_price + customer) / 100 in hundredths, u uniform in [0, 1).
pub(super) fn price_2023_07(values: &Values, customer: i64, random: &mut RandomStream) -> i64 {
    (random.unit() * values.max_price as f64 + customer as f64).round() as i64
}

/// Appends hundredths as a decimal: 1205 as `12.05`.
pub(super) fn push_cents(out: &mut Vec<u8>, cents: i64) {
    push_decimal(out, cents / 100);
    let rest = (cents % 100) as u8;
    out.extend_from_slice(&[b'.', b'0' + rest / 10, b'0' + rest % 10]);
}

// Rows by table that clients of all steps inserted and deleted, for the audit. The load generator
// counts only kinds of transactions, whatever their tables and sizes. Clients count after complete
// replies, without waiting.

#[derive(Debug)]
pub(super) struct TrialCounters {
    pub(super) tables: Vec<TableCounters>,
    drifts: Vec<Drift>,
    pub(super) range: QueryCounters,
    pub(super) point: QueryCounters,
}

impl TrialCounters {
    pub(super) fn new(n_tables: usize, n_steps: usize) -> TrialCounters {
        let drifts = (0..n_tables * n_steps).map(|_| Drift::default()).collect();
        let tables = (0..n_tables).map(|_| TableCounters::default()).collect();
        let (range, point) = (QueryCounters::default(), QueryCounters::default());
        TrialCounters { tables, drifts, range, point }
    }

    pub(super) fn table(&self, table: usize) -> &TableCounters {
        &self.tables[table]
    }

    pub(super) fn drift(&self, step: usize, table: usize) -> &Drift {
        &self.drifts[step * self.tables.len() + table]
    }
}

#[derive(Debug, Default)]
pub(super) struct TableCounters {
    pub(super) inserts: RowCounters,
    pub(super) deletes: RowCounters,
    /// Of the inserts, those of steps that delete as well.
    pub(super) inserts_with_deletes: AtomicU64,
    /// Rows of the largest commit that was deleted.
    pub(super) batch_max: AtomicU64,
    pub(super) tail: AtomicI64,
}

#[derive(Debug, Default)]
pub(super) struct RowCounters {
    pub(super) statements: AtomicU64,
    pub(super) expected: AtomicU64,
    pub(super) changed: AtomicU64,
    pub(super) unknown: AtomicU64,
    pub(super) unknown_statements: AtomicU64,
}

impl RowCounters {
    pub(super) fn begin(&self, rows: u64) -> Pending<'_> {
        Pending { counters: self, rows, is_known: false }
    }
}

/// A statement in flight. If it is dropped with its client, its outcome is unknown.
pub(super) struct Pending<'a> {
    counters: &'a RowCounters,
    rows: u64,
    is_known: bool,
}

impl Pending<'_> {
    pub(super) fn end(mut self, result: &Result<Reply, StatementError>) {
        if let Ok(reply) = result {
            add(&self.counters.statements, 1);
            add(&self.counters.expected, self.rows);
            add(&self.counters.changed, reply.affected);
        }
        self.is_known = !matches!(result, Err(error) if error.class.loses_connection());
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if !self.is_known {
            add(&self.counters.unknown, self.rows);
            add(&self.counters.unknown_statements, 1);
        }
    }
}

/// How far the inserts and the deletes of one table came in one step, in batches.
#[derive(Debug, Default)]
pub(super) struct Drift {
    pub(super) inserts: AtomicU64,
    pub(super) deletes: AtomicU64,
    /// One of the clients has ended, so the other one no longer waits.
    pub(super) is_over: AtomicBool,
}

#[derive(Debug, Default)]
pub(super) struct QueryCounters {
    pub(super) queries: AtomicU64,
    pub(super) rows: AtomicU64,
}

/// Reads a counter; all clients have ended by then, or a rough figure will do.
pub(super) fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

pub(super) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::super::tests::asked;
    use super::*;

    #[test]
    fn who_is_ahead_waits_until_the_lead_has_halved() {
        let workload = asked(&[], 1);
        let bench = Arc::clone(&workload.bench);
        let role = |is_coupled| ClientRole {
            bench: Arc::clone(&bench),
            step: 2,
            table: 0,
            per_commit: 50,
            is_coupled,
            has_deletes: true,
        };
        let (coupled, mut lead) = (role(true), Lead::default());
        let mut micros = |mine, others| lead.wait(&coupled, mine, others).0 / 1000;
        // Nothing is known at first: each check doubles the wait.
        assert_eq!([micros(8, 0), micros(9, 0), micros(9, 0), micros(9, 0)], [0, 250, 250, 500]);
        // A millisecond for the first batch, and four to go until the lead has halved.
        assert_eq!([micros(9, 1), micros(9, 5), micros(13, 5)], [4000, 0, 0]);
        // The five batches took a millisecond each.
        assert_eq!([micros(14, 5), micros(14, 9), micros(14, 10)], [5000, 1250, 0]);
        // However long a batch took, it checks again after a while, as often as needed.
        assert_eq!([micros(20, 10), micros(20, 10), micros(20, 11)], [7500, 7500, 20_000]);
        assert_eq!(Lead::default().wait(&role(false), 1000, 0), Nanoseconds::ZERO);
        coupled.is_over();
        assert_eq!(lead.wait(&coupled, 1000, 11), Nanoseconds::ZERO);
    }
}
