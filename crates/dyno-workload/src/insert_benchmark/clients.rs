//! Clients by role.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use dyno_units::{Nanoseconds, RandomStream};

use crate::row::push_decimal;
use crate::skew::DrawnByClient;
use crate::{Dialect, Done, Session, Statement, StatementClass, Transactions};

use super::counters::{Drift, TableCounters, add, read};
use super::layout::DRIFT_MAX;
use super::schema::{self, DeleteEnd, DeleteText};
use super::{Bench, Kind, rows};

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
        let mut sql =
            Vec::with_capacity(head.len() + rows::statement_room(values, role.per_commit));
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

    async fn perform(
        &mut self,
        _: usize,
        random: &mut RandomStream,
        session: &mut Session,
    ) -> Done {
        let Inserter { role, now, products, sql, head, is_again, .. } = self;
        if !std::mem::replace(is_again, true) {
            let settings = &role.bench.settings;
            sql.truncate(*head);
            for row in 0..role.per_commit {
                if row > 0 {
                    sql.push(b',');
                }
                let values = (settings.schema, &settings.values, *now);
                products.note(rows::push_row(sql, values, random));
            }
        }
        let counters = role.counters();
        let pending = counters.inserts.begin(role.per_commit);
        let result = session.text(as_text(sql), StatementClass::Write).await;
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
