//! A client's transaction in each script. Values are drawn between statements into memory made with
//! the client. A retry draws again: as in sysbench, it is a new transaction of the same kind.
//! Duplicate keys and deadlocks are returned, not handled.

use std::fmt::Write;

use crate::ledger::Note;
use crate::prelude::*;
use crate::skew::DrawnByClient;

use super::digits::{C_GROUPS, PAD_GROUPS, push_groups, text_len};
use super::distribution::Distribution;
use super::sequence::{Sequence, scattered_id};
use super::statements::{Mix, StatementKind, StatementPlaces};

pub(super) struct Rows {
    pub(super) distribution: Distribution,
    pub(super) drawn: Option<DrawnByClient>,
}

impl Rows {
    #[inline]
    fn draw(&self, random: &mut RandomStream) -> i64 {
        let row = self.distribution.draw(random);
        if let Some(drawn) = &self.drawn {
            drawn.note(row);
        }
        row as i64 + 1
    }
}

pub(super) struct MixClient {
    mix: Mix,
    has_ranges: bool,
    has_writes: bool,
    places: StatementPlaces,
    n_tables: u64,
    ids: Rows,
    keys: Vec<Value<'static>>,
    text: RowText,
}

impl MixClient {
    pub(super) fn new(mix: Mix, n_tables: u64, ids: Rows) -> MixClient {
        let writes =
            [StatementKind::IndexUpdate, StatementKind::NonIndexUpdate, StatementKind::Delete];
        MixClient {
            mix,
            has_ranges: StatementKind::RANGES.iter().any(|&kind| mix.count(kind) > 0),
            has_writes: writes.iter().any(|&kind| mix.count(kind) > 0),
            places: mix.places(n_tables),
            n_tables,
            ids,
            keys: Vec::with_capacity(mix.n_keys as usize),
            text: RowText::new(),
        }
    }

    /// A table, drawn once for all statements of a kind in a transaction, as sysbench does.
    #[inline]
    fn draw_table(&self, random: &mut RandomStream) -> u64 {
        random.below(self.n_tables)
    }

    #[inline]
    fn draw_id(&self, random: &mut RandomStream) -> i64 {
        self.ids.draw(random)
    }

    async fn ranges(
        &mut self,
        kind: StatementKind,
        random: &mut RandomStream,
        session: &mut Session,
    ) -> Done {
        let count = self.mix.count(kind);
        if count == 0 {
            return Ok(());
        }
        let statement = self.places.index(kind, self.draw_table(random));
        for _ in 0..count {
            let first = self.draw_id(random);
            let last = first + self.mix.range_size as i64 - 1;
            session.execute(statement, &[Value::Integer(first), Value::Integer(last)]).await?;
        }
        Ok(())
    }

    async fn updates(&mut self, random: &mut RandomStream, session: &mut Session) -> Done {
        for kind in [StatementKind::IndexUpdate, StatementKind::NonIndexUpdate] {
            let count = self.mix.count(kind);
            if count == 0 {
                continue;
            }
            let statement = self.places.index(kind, self.draw_table(random));
            for _ in 0..count {
                let id = Value::Integer(self.draw_id(random));
                if kind == StatementKind::IndexUpdate {
                    session.execute(statement, &[id]).await?;
                } else {
                    let c = Value::Text(self.text.draw_c(random));
                    session.execute(statement, &[c, id]).await?;
                }
            }
        }
        Ok(())
    }

    /// Deletes rows and inserts them again with new values; `oltp_delete` only deletes.
    async fn delete_inserts(&mut self, random: &mut RandomStream, session: &mut Session) -> Done {
        let count = self.mix.count(StatementKind::Delete);
        if count == 0 {
            return Ok(());
        }
        let table_idx = self.draw_table(random);
        let delete = self.places.index(StatementKind::Delete, table_idx);
        let has_insert = self.mix.count(StatementKind::Insert) > 0;
        for _ in 0..count {
            let id = self.draw_id(random);
            session.execute(delete, &[Value::Integer(id)]).await?;
            if has_insert {
                let insert = self.places.index(StatementKind::Insert, table_idx);
                let k = self.draw_id(random);
                let (c, pad) = self.text.draw(random);
                let values =
                    [Value::Integer(id), Value::Integer(k), Value::Text(c), Value::Text(pad)];
                session.execute(insert, &values).await?;
            }
        }
        Ok(())
    }
}

impl Transactions for MixClient {
    async fn perform(&mut self, _: usize, random: &mut RandomStream, server: &mut Session) -> Done {
        if self.mix.has_begin {
            server.begin().await?;
        }
        // Unused parts cost no future, and point selects have none of their own: one alone would
        // spend a third of its instructions on futures.
        let count = self.mix.count(StatementKind::PointSelect);
        if count > 0 {
            let statement = self.places.index(StatementKind::PointSelect, self.draw_table(random));
            for _ in 0..count {
                self.keys.clear();
                for _ in 0..self.mix.n_keys {
                    let id = self.draw_id(random);
                    self.keys.push(Value::Integer(id));
                }
                server.execute(statement, &self.keys).await?;
            }
        }
        if self.has_ranges {
            for kind in StatementKind::RANGES {
                self.ranges(kind, random, server).await?;
            }
        }
        if self.has_writes {
            self.updates(random, server).await?;
            self.delete_inserts(random, server).await?;
        }
        if self.mix.has_begin {
            server.commit().await?;
        }
        Ok(())
    }
}

pub(super) struct InsertClient {
    pub(super) n_tables: u64,
    pub(super) k: Rows,
    pub(super) ids: InsertIds,
    pub(super) text: RowText,
    pub(super) note: Option<Note>,
}

pub(super) enum InsertIds {
    Server,
    After(u64, Sequence),
    Scattered(Sequence),
}

impl InsertIds {
    fn take(&mut self) -> Option<i64> {
        match self {
            InsertIds::Server => None,
            InsertIds::After(n_rows, sequence) => Some((*n_rows + 1 + sequence.take()) as i64),
            InsertIds::Scattered(sequence) => Some(scattered_id(sequence.take())),
        }
    }
}

impl Transactions for InsertClient {
    async fn perform(&mut self, _: usize, random: &mut RandomStream, server: &mut Session) -> Done {
        let statement = random.below(self.n_tables) as usize;
        let k = self.k.draw(random);
        let id = self.ids.take();
        let (c, pad) = self.text.draw(random);
        let first = id.map_or(Value::Null, Value::Integer);
        let values = [first, Value::Integer(k), Value::Text(c), Value::Text(pad)];
        let n_left_out = usize::from(id.is_none());
        if let Some(note) = &mut self.note {
            note.sends(statement, std::str::from_utf8(c).expect("it is made of digits and dashes"));
        }
        server.execute(statement, &values[n_left_out..]).await?;
        if let Some(note) = &mut self.note {
            note.confirmed();
        }
        Ok(())
    }
}

/// A client of `bulk_insert`: a transaction adds a row to a statement.
///
/// The transaction that makes it long enough sends it, so most take no time and a few all of it,
/// which is sysbench's way of counting. Rows of an unfinished statement at the end are not sent.
pub(super) struct BulkClient {
    prefix: String,
    sql: String,
    bytes_max: usize,
    ids: Sequence,
}

/// Longest text of one row: `,(` two numbers of at most 20 characters, `,` and `)`.
const BULK_ROW_BYTES_MAX: usize = 44;

impl BulkClient {
    pub(super) fn new(table_idx: u64, bytes_max: usize, ids: Sequence) -> BulkClient {
        let prefix = format!("INSERT INTO sbtest{} VALUES ", table_idx + 1);
        let mut sql = String::with_capacity(prefix.len() + bytes_max + BULK_ROW_BYTES_MAX);
        sql.push_str(&prefix);
        BulkClient { prefix, sql, bytes_max, ids }
    }

    fn is_full(&self) -> bool {
        self.sql.len() + BULK_ROW_BYTES_MAX > self.bytes_max
    }

    fn add_row(&mut self) {
        if self.sql.len() > self.prefix.len() {
            self.sql.push(',');
        }
        // sysbench numbers from 1.
        let number = self.ids.take() as i64 + 1;
        write!(self.sql, "({number},{number})").expect("writing to a String cannot fail");
    }
}

impl Transactions for BulkClient {
    async fn perform(&mut self, _: usize, _: &mut RandomStream, session: &mut Session) -> Done {
        // Full already: this is the retry of a transaction whose statement failed, and its row is
        // in the statement.
        if !self.is_full() || self.sql.len() == self.prefix.len() {
            self.add_row();
        }
        if !self.is_full() {
            return Ok(());
        }
        let result = session.text(&self.sql, StatementClass::Write).await;
        if !result.as_ref().is_err_and(|error| error.class.is_transient()) {
            self.sql.truncate(self.prefix.len());
        }
        result.map(|_| ())
    }
}

/// A client of `select_random_points` and `select_random_ranges`. As in sysbench, each draws from
/// its own part of [0, rows], so that no two ask for the same rows.
pub(super) struct RandomKeysClient {
    first: i64,
    keys: Distribution,
    values: Vec<Value<'static>>,
    n_keys: u64,
    delta: Option<i64>,
}

impl RandomKeysClient {
    /// Sends `n_keys` keys, or as many ranges of `delta` + 1 keys, drawn from `first` upwards.
    pub(super) fn new(first: i64, keys: Distribution, n_keys: u64, delta: Option<i64>) -> Self {
        let n_values = n_keys as usize * if delta.is_some() { 2 } else { 1 };
        let values = Vec::with_capacity(n_values);
        RandomKeysClient { first, keys, values, n_keys, delta }
    }
}

impl Transactions for RandomKeysClient {
    async fn perform(&mut self, _: usize, random: &mut RandomStream, server: &mut Session) -> Done {
        self.values.clear();
        for _ in 0..self.n_keys {
            let key = self.first + self.keys.draw(random) as i64;
            self.values.push(Value::Integer(key));
            if let Some(delta) = self.delta {
                self.values.push(Value::Integer(key + delta));
            }
        }
        server.execute(0, &self.values).await?;
        Ok(())
    }
}

pub(super) struct RowText {
    c: Vec<u8>,
    pad: Vec<u8>,
}

impl RowText {
    pub(super) fn new() -> RowText {
        RowText {
            c: Vec::with_capacity(text_len(C_GROUPS)),
            pad: Vec::with_capacity(text_len(PAD_GROUPS)),
        }
    }

    fn draw_c(&mut self, random: &mut RandomStream) -> &[u8] {
        self.c.clear();
        push_groups(&mut self.c, C_GROUPS, random);
        &self.c
    }

    fn draw(&mut self, random: &mut RandomStream) -> (&[u8], &[u8]) {
        self.draw_c(random);
        self.pad.clear();
        push_groups(&mut self.pad, PAD_GROUPS, random);
        (&self.c, &self.pad)
    }
}
