//! Query clients: ranges of a secondary index, or rows by id.

use std::sync::atomic::Ordering;

use dyno_units::RandomStream;

use crate::row::push_decimal;
use crate::{Dialect, Done, Session, Statement, StatementClass, Transactions, Value};

use super::Kind;
use super::clients::{ClientRole, EndQuery, as_text};
use super::counters::add;
use super::rows;
use super::schema::{self, Index};
use super::settings::{QueryForm, Schema, Values};

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
            Bound::Cents(rows::price_2023_07(values, customer, random))
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
                Bound::Cents(cents) => rows::push_cents(sql, cents),
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
