//! What a client does: its statements, and a read or a write of them.

use std::io::Write;

use crate::prelude::*;
use crate::row::write_digits;

use super::audit::{ClientCounts, Line};
use super::own::Own;
use super::schema::{self, NOTE, STATES};
use super::{HISTORY, REPEATS_MAX, Settings, Spread};

/// Statements of one set of tables, in the order of [`Line`].
const LINES: [Line; 5] = [Line::Sel1, Line::Sel2, Line::Delete, Line::Insert, Line::Update];

const DATES: u64 = 100;

impl Line {
    fn class(self) -> StatementClass {
        match self {
            Line::Sel1 | Line::Sel2 => StatementClass::Read,
            Line::Delete | Line::Insert | Line::Update => StatementClass::Write,
        }
    }

    fn sql(self, set: u64) -> String {
        match self {
            Line::Sel1 => format!(
                "SELECT s.ref, s.name, z.ref, z.name, o.name, o.create_date, o.note \
                 FROM object{set} o, section{set} s, zone{set} z \
                 WHERE s.ref = o.ref_section AND z.ref = s.ref_zone AND o.ref = ?"
            ),
            Line::Sel2 => format!(
                "SELECT s.ref, s.name, h.horder, h.begin_date, h.end_date, h.note \
                 FROM history{set} h, stat{set} s \
                 WHERE s.ref = h.ref_stat AND h.ref_object = ? ORDER BY h.horder"
            ),
            Line::Delete => format!("DELETE FROM history{set} WHERE ref_object = ? AND horder = ?"),
            Line::Insert => format!(
                "INSERT INTO history{set} (ref_object, horder, ref_stat, begin_date, end_date, \
                 note) VALUES (?, ?, ?, ?, ?, ?)"
            ),
            Line::Update => format!(
                "UPDATE history{set} SET ref_stat = ?, begin_date = ?, end_date = ?, note = ? \
                 WHERE ref_object = ? AND horder = ?"
            ),
        }
    }
}

pub(super) fn statements(settings: &Settings, dialect: Dialect) -> Vec<Statement> {
    let statement = |set, line: Line| {
        let mut sql = line.sql(set);
        if settings.for_update && line.class() == StatementClass::Read {
            sql.push_str(" FOR UPDATE");
        }
        Statement::new(dialect.placeholders(&sql), line.class())
    };
    (1..=settings.sets).flat_map(|set| LINES.map(|line| statement(set, line))).collect()
}

#[derive(Clone, Copy, Debug, Default)]
struct Change {
    horder: u8,
    state: u16,
    date: u8,
}

struct Cells {
    state: [u8; 3],
    date: [u8; 10],
    note: [u8; NOTE],
}

impl Change {
    fn draw(random: &mut RandomStream) -> Change {
        Change {
            horder: random.below(HISTORY) as u8,
            state: random.below(STATES) as u16,
            date: random.below(DATES) as u8,
        }
    }

    fn cells(&self, reference: &[u8; 10]) -> Cells {
        let mut state = [0; 3];
        write_digits(&mut state, self.state.into());
        let date = schema::date(self.date.into());
        let mut note = [b'X'; NOTE];
        let mut rest = &mut note[..];
        for part in [&date[..], b" NOTE State ", &state, b" FOR REF#", reference] {
            // All of them together are shorter than the note.
            let _ = rest.write(part);
        }
        Cells { state, date, note }
    }
}

/// What is drawn for a read and the write that follows it. A retry sends it again.
#[derive(Debug)]
struct Drawn {
    set: usize,
    reference: [u8; 10],
    delete_inserts: [Change; REPEATS_MAX],
    updates: [Change; REPEATS_MAX],
}

pub(super) struct Client {
    settings: Settings,
    // Its number, and how many there are.
    place: (u64, u64),
    own: Own,
    counts: Arc<ClientCounts>,
    n_reads: u64,
    // A write is due for the object that was read.
    owes_write: bool,
    drawn: Drawn,
    // Replies that count once the transaction has committed.
    uncommitted: [(u64, u64); LINES.len()],
}

impl Client {
    pub(super) fn new(
        settings: &Settings,
        place: (u64, u64),
        own: Own,
        counts: Arc<ClientCounts>,
    ) -> Client {
        let changes = [Change::default(); REPEATS_MAX];
        let reference = *b"0000000000";
        let drawn = Drawn { set: 0, reference, delete_inserts: changes, updates: changes };
        let (settings, n_reads, owes_write, uncommitted) =
            (*settings, 0, false, Default::default());
        Client { settings, place, own, counts, n_reads, owes_write, drawn, uncommitted }
    }

    fn draw_object(&mut self, random: &mut RandomStream) {
        let Settings { sets, objects, sharing, .. } = self.settings;
        self.drawn.set = random.below(sets) as usize;
        let place = self.own.draw(random);
        let object = self.own.object(place);
        self.counts.drew(place, sharing.owns(objects, self.place, object));
        write_digits(&mut self.drawn.reference, object);
    }

    fn draw_changes(&mut self, random: &mut RandomStream) {
        let Settings { delete_inserts, updates, .. } = self.settings;
        let changes = self.drawn.delete_inserts[..delete_inserts]
            .iter_mut()
            .chain(&mut self.drawn.updates[..updates]);
        for change in changes {
            *change = Change::draw(random);
            self.counts.drew_horder(change.horder.into());
        }
    }

    /// Counts a reply: at once, or when it has committed.
    fn replied(&mut self, line: Line, reply: Reply) {
        let rows = if line.class() == StatementClass::Read { reply.rows } else { reply.affected };
        if self.settings.trx {
            let (n, reported) = &mut self.uncommitted[line as usize];
            *n += 1;
            *reported += rows;
        } else {
            self.counts.replied(line, 1, rows);
        }
    }

    async fn line(&mut self, line: Line, values: &[Value<'_>], session: &mut Session) -> Done {
        let statement = self.drawn.set * LINES.len() + line as usize;
        let reply = session.execute(statement, values).await?;
        self.replied(line, reply);
        Ok(())
    }

    async fn read(&mut self, session: &mut Session) -> Done {
        let reference = self.drawn.reference;
        let values = [Value::Text(&reference)];
        for _ in 0..self.settings.sel1 {
            self.line(Line::Sel1, &values, session).await?;
        }
        for _ in 0..self.settings.sel2 {
            self.line(Line::Sel2, &values, session).await?;
        }
        Ok(())
    }

    async fn write(&mut self, session: &mut Session) -> Done {
        let reference = self.drawn.reference;
        let object = Value::Text(&reference);
        for nth in 0..self.settings.delete_inserts {
            let change = self.drawn.delete_inserts[nth];
            let horder = Value::Integer(change.horder.into());
            self.line(Line::Delete, &[object, horder], session).await?;
            let cells = change.cells(&reference);
            let [state, date, note] = cells.values();
            let values = [object, horder, state, date, date, note];
            self.line(Line::Insert, &values, session).await?;
        }
        for nth in 0..self.settings.updates {
            let change = self.drawn.updates[nth];
            let cells = change.cells(&reference);
            let [state, date, note] = cells.values();
            let horder = Value::Integer(change.horder.into());
            self.line(Line::Update, &[state, date, date, note, object, horder], session).await?;
        }
        Ok(())
    }

    async fn attempt(&mut self, kind: usize, session: &mut Session) -> Done {
        // What an attempt that failed has done was rolled back.
        self.uncommitted = Default::default();
        if self.settings.trx {
            session.begin().await?;
        }
        if self.is_write(kind) {
            self.write(session).await?
        } else {
            self.read(session).await?
        }
        if self.settings.trx {
            session.commit().await?;
            for line in LINES {
                let (n, rows) = std::mem::take(&mut self.uncommitted[line as usize]);
                self.counts.replied(line, n, rows);
            }
        }
        Ok(())
    }

    fn is_write(&self, kind: usize) -> bool {
        kind == 1 || !self.settings.has_reads()
    }
}

impl Cells {
    fn values(&self) -> [Value<'_>; 3] {
        [Value::Text(&self.state), Value::Text(&self.date), Value::Text(&self.note)]
    }
}

impl Transactions for Client {
    /// A read; after every `rw_ratio` of them a write of the object that was read last.
    fn draw(&mut self, random: &mut RandomStream) -> usize {
        if std::mem::take(&mut self.owes_write) {
            self.draw_changes(random);
            return 1;
        }
        self.draw_object(random);
        if !self.settings.has_reads() {
            self.draw_changes(random);
            return 0;
        }
        self.n_reads += 1;
        let Settings { rw_ratio, .. } = self.settings;
        self.owes_write = rw_ratio > 0 && self.n_reads.is_multiple_of(rw_ratio);
        0
    }

    fn pause_after(&mut self, _kind: usize, random: &mut RandomStream) -> Nanoseconds {
        let mean = self.settings.think_ns;
        if mean == 0.0 || self.owes_write {
            return Nanoseconds::ZERO;
        }
        let length = match self.settings.spread {
            Spread::Constant => mean,
            Spread::Uniform => 2.0 * mean * random.unit(),
            Spread::Exponential => random.exponential(mean),
        };
        Nanoseconds(length as u64)
    }

    async fn perform(&mut self, kind: usize, _: &mut RandomStream, session: &mut Session) -> Done {
        if !self.is_write(kind) {
            return self.attempt(kind, session).await;
        }
        self.counts.write_began();
        let result = self.attempt(kind, session).await;
        self.counts.write_ended(&result);
        result
    }
}
