//! Demands after the load: mix, rows of statements, keys drawn, and the number of rows in HISTORY.
//!
//! All are exact if clients have objects of their own and every write was done. An abandoned write
//! leaves a *hole*: a deleted row that was not inserted again. With true random, clients also
//! *collide*: one deletes a row between another's DELETE and INSERT of it, and finds nothing, or
//! (without a unique key) two. The chance is at most that of any client being there, clients · rows
//! of a write / rows of HISTORY, which gives bounds.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::skew::{Counters, distance_row, share_tolerance};
use crate::{AuditRow, AuditTotals, KindTotals, StatementError, TextRows, number_in};

use super::own::Own;
use super::schema::FIXED;
use super::{HISTORY, Settings};

/// Updates without change, not counted by MariaDB and MySQL: 1 of 1000 states, 1 of 100 dates.
const SAME_AGAIN: f64 = 1e-5;

const LENGTHS: &str = "GROUP BY ref_object HAVING COUNT(*) <> 20";

/// By set: rows of tables, objects with incomplete history. One statement, hence one moment.
pub(super) fn queries(settings: &Settings) -> Vec<String> {
    let count = |table: &str| format!("(SELECT COUNT(*) FROM {table})");
    (1..=settings.sets)
        .map(|set| {
            let mut counts: Vec<String> =
                FIXED.iter().map(|(table, _)| count(&format!("{table}{set}"))).collect();
            counts.push(count(&format!("object{set}")));
            counts.push(count(&format!("history{set}")));
            let lengths = format!("SELECT ref_object FROM history{set} {LENGTHS}");
            counts.push(count(&format!("({lengths}) AS lengths")));
            format!("SELECT {}", counts.join(", "))
        })
        .collect()
}

/// Columns of an answer: the fixed tables, then these.
const OBJECTS: usize = FIXED.len();
const HISTORIES: usize = OBJECTS + 1;
const NOT_WHOLE: usize = OBJECTS + 2;

pub(super) struct Audit<'a> {
    pub(super) settings: &'a Settings,
    pub(super) counts: &'a Counts,
    pub(super) totals: &'a AuditTotals,
    pub(super) answers: &'a [TextRows],
}

struct Facts {
    sums: Sums,
    reads: i128,
    writes: i128,
    /// Rows that may be missing because a write was given up.
    holes: i128,
    /// The chance that a statement of a write meets another client's write of the same row.
    collision: f64,
    /// Whether a row can be there twice: no unique key forbids it.
    can_double: bool,
}

impl Audit<'_> {
    pub(super) fn judge(&self) -> Vec<AuditRow> {
        let facts = self.facts();
        let mut rows = vec![self.statements(&facts)];
        rows.extend(self.mix(&facts));
        rows.extend(self.rows_of_statements(&facts));
        rows.push(self.fixed_tables());
        rows.extend(self.history(&facts));
        rows.extend(self.keys(&facts));
        rows
    }

    fn facts(&self) -> Facts {
        let Settings { delete_inserts, .. } = *self.settings;
        let sums = self.counts.sums();
        let kind = |idx: Option<usize>| -> KindTotals {
            idx.and_then(|idx| self.totals.kinds.get(idx)).copied().unwrap_or_default()
        };
        let kinds = self.settings.kinds();
        let of_name = |name| kind(kinds.iter().position(|kind| *kind == name));
        let holes = i128::from(sums.given_up()) * delete_inserts as i128;
        let slots = (self.settings.sets * self.settings.history_rows()) as f64;
        let open = (sums.clients_most * delete_inserts as u64) as f64;
        Facts {
            reads: of_name("read").committed.into(),
            writes: of_name("write").committed.into(),
            holes,
            collision: match self.settings.sharing.is_private() || !self.settings.has_writes() {
                true => 0.0,
                false => (open / slots).min(1.0),
            },
            can_double: !self.settings.hpk,
            sums,
        }
    }

    fn statements(&self, facts: &Facts) -> AuditRow {
        let (read, write) = self.settings.n_statements();
        let least = facts.reads * i128::from(read) + facts.writes * i128::from(write);
        let most = least + i128::from(self.totals.unfinished()) * i128::from(read.max(write) + 1);
        let name = match (self.settings.has_reads(), self.settings.has_writes()) {
            (true, true) => format!("statements sent, {read} per read and {write} per write"),
            (true, false) => format!("statements sent, {read} per read"),
            (false, _) => format!("statements sent, {write} per write"),
        };
        let sent = self.totals.tally.statements();
        AuditRow::between(name, (least, most), Some(sent.into())).of_clients()
    }

    fn mix(&self, facts: &Facts) -> Option<AuditRow> {
        let ratio = i128::from(self.settings.rw_ratio);
        if !self.settings.has_reads() {
            return None;
        }
        if ratio == 0 {
            let writes = self.totals.tally.writes.into();
            return Some(AuditRow::equal("statements that change rows (RW=0)", 0, Some(writes)));
        }
        // Each client may have ended before a write was due, or was done.
        let open = i128::from(self.totals.unfinished() + self.totals.in_flight);
        let share = facts.reads / ratio;
        let least = share - i128::from(facts.sums.lives) - open;
        let bounds = (least.max(0), share + open);
        let name = format!("writes, one for every {ratio} reads of a client (RW={ratio})");
        Some(AuditRow::between(name, bounds, Some(facts.writes)))
    }

    fn rows_of_statements(&self, facts: &Facts) -> Vec<AuditRow> {
        let Settings { sel1, sel2, delete_inserts, updates, .. } = *self.settings;
        let mut rows = Vec::new();
        let mut push = |what: &str, each: u64, line: Line, (fewer, more): (i128, i128)| {
            let (n, reported) = facts.sums.line(line);
            let whole = i128::from(n * each);
            let bounds = ((whole - fewer).max(0), whole + more);
            let name = format!("rows of {what}, {each} per statement");
            rows.push(AuditRow::between(name, bounds, Some(reported.into())));
        };
        if sel1 > 0 {
            push("SEL1 (object, section, zone)", 1, Line::Sel1, (0, 0));
        }
        if sel2 > 0 {
            push("SEL2 (history, states)", HISTORY, Line::Sel2, self.of_sel2(facts));
        }
        if self.settings.has_writes() && delete_inserts > 0 {
            let collisions = facts.collisions(Line::Delete);
            let doubles = facts.doubles(Line::Delete);
            push("DELETE", 1, Line::Delete, (2 * facts.holes + collisions, doubles));
            push("INSERT", 1, Line::Insert, (0, 0));
        }
        if self.settings.has_writes() && updates > 0 {
            let same = facts.rare(Line::Update, SAME_AGAIN);
            // A row that is missing is missed about as often as it is deleted.
            let missed = if facts.holes > 0 { 3 * facts.holes + same } else { same };
            let collisions = facts.collisions(Line::Update);
            let doubles = facts.doubles(Line::Update);
            push("UPDATE", 1, Line::Update, (missed + collisions, doubles));
        }
        rows
    }

    fn of_sel2(&self, facts: &Facts) -> (i128, i128) {
        let (n, _) = facts.sums.line(Line::Sel2);
        let slots = (self.settings.sets * self.settings.history_rows()) as f64;
        let seen = |rows: f64| match rows > 0.0 {
            true => {
                let share = (rows / slots).min(1.0);
                let mean = n as f64 * HISTORY as f64 * share;
                (2.0 * mean + share_tolerance(n * HISTORY, share)).ceil() as i128
            }
            false => 0,
        };
        let missing = facts.holes as f64 + facts.collision * slots;
        (seen(missing), seen(facts.doubles(Line::Insert) as f64))
    }

    fn fixed_tables(&self) -> AuditRow {
        let expected: Vec<u64> =
            FIXED.iter().map(|(_, rows)| *rows).chain([self.settings.objects]).collect();
        let shown = |rows: &[String]| rows.join(", ");
        let expected: Vec<String> = expected.iter().map(u64::to_string).collect();
        let of_set = |answer: &TextRows| -> Vec<String> {
            (0..=OBJECTS)
                .map(|column| number_in(answer, 0, column))
                .map(|rows| rows.map_or("no number".to_owned(), |rows| rows.to_string()))
                .collect()
        };
        let found: Vec<Vec<String>> = self.answers.iter().map(of_set).collect();
        let wrong = found.iter().position(|rows| *rows != expected);
        let is_whole = found.len() as u64 == self.settings.sets;
        let measured = match wrong {
            None if is_whole => shown(&expected),
            None => "no answer".to_owned(),
            Some(idx) => format!("{} in set {}", shown(&found[idx]), idx + 1),
        };
        let name = "rows in ZONE, SECTION, STAT and OBJECT of each set";
        AuditRow::judged(name, shown(&expected), measured, wrong.is_none() && is_whole)
    }

    fn history(&self, facts: &Facts) -> Vec<AuditRow> {
        let sum = |column| -> Option<i128> {
            if self.answers.len() as u64 != self.settings.sets {
                return None;
            }
            self.answers.iter().map(|answer| number_in(answer, 0, column)).sum()
        };
        let filled = i128::from(self.settings.sets * self.settings.history_rows());
        let found = sum(HISTORIES);
        let (_, deleted) = facts.sums.line(Line::Delete);
        let (inserted, _) = facts.sums.line(Line::Insert);
        let reported = filled + i128::from(inserted) - i128::from(deleted);
        // An attempt of unknown outcome reported nothing, and a DELETE may find a double.
        let unknown = i128::from(facts.sums.unknown()) * self.settings.delete_inserts as i128;
        let twice = if facts.collision > 0.0 && facts.can_double { 2 } else { 1 };
        let doubles = facts.doubles(Line::Insert);
        let drift = found.map(|found| found - filled);
        let all = "rows in HISTORY: those filled in, plus those inserted, minus those deleted";
        let bounds = (reported - twice * unknown, reported + unknown);
        let excess = "drift of HISTORY: rows in excess of those filled in";
        let objects = format!("objects without exactly {HISTORY} rows of HISTORY");
        vec![
            AuditRow::between(all, bounds, found),
            AuditRow::between(excess, (-facts.holes, doubles), drift),
            AuditRow::between(objects, (0, facts.holes + 2 * doubles), sum(NOT_WHOLE)),
        ]
    }

    fn keys(&self, facts: &Facts) -> Vec<AuditRow> {
        let sums = &facts.sums;
        let mut rows = vec![distance_row("objects drawn", sums.drawn(), &sums.expected)];
        if self.settings.has_writes() {
            let even = [1.0 / HISTORY as f64; HISTORY as usize];
            let drawn = &sums.counts[HORDERS..FOREIGN];
            rows.push(distance_row("rows of an object's history drawn", drawn, &even));
        }
        if self.settings.sharing.is_private() {
            let name = "objects of another client drawn";
            rows.push(AuditRow::equal(name, 0, Some(sums.foreign().into())));
        }
        rows
    }
}

impl Facts {
    /// The most of this line's statements that have this small chance.
    fn rare(&self, line: Line, chance: f64) -> i128 {
        let (n, _) = self.sums.line(line);
        (n as f64 * chance + share_tolerance(n, chance)).ceil() as i128
    }

    /// The most of this line's statements that met another client's write of the same row.
    fn collisions(&self, line: Line) -> i128 {
        if self.collision > 0.0 { self.rare(line, self.collision) } else { 0 }
    }

    /// The most of this line's statements that met, or made, a row that is there twice.
    fn doubles(&self, line: Line) -> i128 {
        if self.can_double { self.collisions(line) } else { 0 }
    }
}

// Each client's own counts, to compare in the audit. A client adds to them without waiting; the
// audit sums them after the load. The same client of a later step with as many clients continues
// them.

/// Bins that the objects of a client are cut into, by their place among them.
const BINS: usize = 128;

/// What is counted of each statement, as index: its replies, and the rows they reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Sel1,
    Sel2,
    Delete,
    Insert,
    Update,
}

const LINES: usize = 5;

/// The counters of a client, in their order: objects drawn, by bin; …
const HORDERS: usize = BINS;
/// … places in an object's history; objects that were not its own; …
const FOREIGN: usize = HORDERS + HISTORY as usize;
/// … replies and rows of each line; …
const REPLIES: usize = FOREIGN + 1;
/// … and attempts at a write. Those that neither committed nor failed were dropped by the load
/// generator when the step was long over.
const BEGUN: usize = REPLIES + 2 * LINES;
const DONE: usize = BEGUN + 1;
const FAILED: usize = BEGUN + 2;
/// Of those that failed, the ones whose connection was lost.
const LOST: usize = BEGUN + 3;
const N_COUNTERS: usize = BEGUN + 4;

#[derive(Debug)]
pub(super) struct ClientCounts {
    n_own: u64,
    counters: Counters,
}

impl ClientCounts {
    /// The client drew the object at this place among those it draws; `is_own`: one of its own.
    #[inline]
    pub(super) fn drew(&self, place: u64, is_own: bool) {
        let bin = u128::from(place) * BINS as u128 / u128::from(self.n_own);
        self.counters.add((bin as usize).min(BINS - 1), 1);
        if !is_own {
            self.counters.add(FOREIGN, 1);
        }
    }

    #[inline]
    pub(super) fn write_began(&self) {
        self.counters.add(BEGUN, 1);
    }

    #[inline]
    pub(super) fn write_ended(&self, result: &Result<(), StatementError>) {
        match result {
            Ok(()) => self.counters.add(DONE, 1),
            Err(error) => {
                self.counters.add(FAILED, 1);
                self.counters.add(LOST, u64::from(error.class.loses_connection()));
            }
        }
    }

    #[inline]
    pub(super) fn drew_horder(&self, horder: u64) {
        self.counters.add(HORDERS + horder as usize, 1);
    }

    #[inline]
    pub(super) fn replied(&self, line: Line, n: u64, rows: u64) {
        let replies = REPLIES + 2 * line as usize;
        self.counters.add(replies, n);
        self.counters.add(replies + 1, rows);
    }
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    // By the client's number and how many there were.
    clients: Mutex<BTreeMap<(u64, u64), Arc<ClientCounts>>>,
    lives: AtomicU64,
}

#[derive(Clone, Debug)]
pub(super) struct Sums {
    pub(super) lives: u64,
    /// The most that there were at a time.
    pub(super) clients_most: u64,
    /// By bin, drawn and expected from each client's own objects and number of draws.
    pub(super) expected: Vec<f64>,
    counts: [u64; N_COUNTERS],
}

impl Counts {
    /// The counters of client `place.0` of `place.1`. Locks and allocates: for its beginning.
    pub(super) fn client(&self, place: (u64, u64), own: Own) -> Arc<ClientCounts> {
        self.lives.fetch_add(1, Ordering::Relaxed);
        let mut clients = self.clients.lock().expect("no thread panics while it holds the lock");
        let new = || ClientCounts { n_own: own.n(), counters: Counters::new(N_COUNTERS) };
        Arc::clone(clients.entry(place).or_insert_with(|| Arc::new(new())))
    }

    pub(super) fn sums(&self) -> Sums {
        let lives = self.lives.load(Ordering::Relaxed);
        let (expected, counts) = (vec![0.0; BINS], [0; N_COUNTERS]);
        let mut sums = Sums { lives, clients_most: 0, expected, counts };
        for (place, client) in
            self.clients.lock().expect("no thread panics while it holds the lock").iter()
        {
            sums.clients_most = sums.clients_most.max(place.1);
            sums.add(client);
        }
        sums
    }
}

impl Sums {
    fn add(&mut self, client: &ClientCounts) {
        let mut own = [0; BINS];
        client.counters.add_to(&mut own);
        client.counters.add_to(&mut self.counts);
        let n: u64 = own.iter().sum();
        // Bin b begins with the first place whose product reaches b whole times the objects.
        let start =
            |bin: usize| (bin as u128 * u128::from(client.n_own)).div_ceil(BINS as u128) as u64;
        for (bin, expected) in self.expected.iter_mut().enumerate() {
            let within = start(bin + 1) - start(bin);
            *expected += n as f64 * within as f64 / client.n_own as f64;
        }
    }

    pub(super) fn drawn(&self) -> &[u64] {
        &self.counts[..BINS]
    }

    pub(super) fn foreign(&self) -> u64 {
        self.counts[FOREIGN]
    }

    /// Writes that may have stopped half-way.
    pub(super) fn given_up(&self) -> u64 {
        self.counts[BEGUN] - self.counts[DONE]
    }

    /// Writes of which a statement may have been executed without a confirmed reply.
    pub(super) fn unknown(&self) -> u64 {
        self.given_up() - self.counts[FAILED] + self.counts[LOST]
    }

    pub(super) fn line(&self, line: Line) -> (u64, u64) {
        let replies = REPLIES + 2 * line as usize;
        (self.counts[replies], self.counts[replies + 1])
    }
}
