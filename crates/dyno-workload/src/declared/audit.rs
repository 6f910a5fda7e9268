//! Counts while clients run, and their comparison with the tables. A table must hold its filled rows,
//! and the rows that confirmed transactions reported as inserted and not as deleted. A table that a
//! statement may change without reporting how much (REPLACE, ON DUPLICATE KEY UPDATE, TRUNCATE, CALL …)
//! is not audited, as its row says. Counts do not show whether an UPDATE changed the right rows; `rows`
//! of its step does.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::prelude::*;
use crate::skew::{CounterSet, Counters, DrawnByClient, DrawnKeys};

use super::definition::Definition;
use super::schema::quoted;
use super::sql::Effect;
use super::transaction::{Action, Form};

#[derive(Debug)]
pub(super) struct Counts {
    /// By table: rows inserted, rows deleted.
    rows: CounterSet,
    /// By table: the most rows that one transaction inserted or deleted.
    largest: Arc<[AtomicU64]>,
    drawn: Vec<(String, Arc<DrawnKeys>)>,
}

pub(super) struct Counting {
    rows: Arc<Counters>,
    largest: Arc<[AtomicU64]>,
    /// By table, in the transaction that runs: rows inserted, rows deleted.
    changes: Vec<[u64; 2]>,
    most: Vec<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Change {
    #[default]
    None,
    Insert(usize),
    Delete(usize),
}

impl Change {
    pub(super) fn of(effect: &Effect, definition: &Definition) -> Change {
        let changed = match effect {
            Effect::Insert(table) => definition.find_table(table).map(Change::Insert),
            Effect::Delete(table) => definition.find_table(table).map(Change::Delete),
            Effect::None | Effect::Unclear(_) | Effect::Unknown => None,
        };
        changed.unwrap_or_default()
    }
}

impl Counts {
    pub(super) fn new(definition: &Definition) -> Counts {
        let n_tables = definition.tables.len();
        let mut drawn = Vec::new();
        for transaction in &definition.transactions {
            let lets = transaction.lets.iter();
            for one in lets.chain(transaction.steps.iter().flat_map(|step| &step.lets)) {
                let Some(items) = one.generator.kind.counted() else { continue };
                let name = format!("`{}` of transaction `{}`", one.name, transaction.name);
                drawn.push((name, items.counted()));
            }
        }
        let largest = (0..n_tables).map(|_| AtomicU64::new(0)).collect();
        Counts { rows: CounterSet::new(2 * n_tables), largest, drawn }
    }

    /// For one further client. Locks and allocates: for a client's beginning.
    pub(super) fn client(&self) -> (Counting, Vec<DrawnByClient>) {
        let n_tables = self.largest.len();
        let (rows, largest) = (self.rows.client(), Arc::clone(&self.largest));
        let (changes, most) = (vec![[0; 2]; n_tables], vec![0; n_tables]);
        let counting = Counting { rows, largest, changes, most };
        (counting, self.drawn.iter().map(|(_, drawn)| drawn.client()).collect())
    }

    /// All counts, for another process.
    pub(super) fn all(&self) -> Vec<u64> {
        let mut all = self.rows.sums();
        all.extend(self.largest.iter().map(|most| most.load(Ordering::Relaxed)));
        all.extend(self.drawn.iter().flat_map(|(_, drawn)| drawn.sums()));
        all
    }

    /// Adds what [`Counts::all`] gave elsewhere.
    pub(super) fn add(&self, all: &[u64]) {
        let n_tables = self.largest.len();
        if all.len() != self.all().len() {
            return;
        }
        let (rows, rest) = all.split_at(2 * n_tables);
        let elsewhere = self.rows.client();
        rows.iter().enumerate().for_each(|(idx, n)| elsewhere.add(idx, *n));
        let (largest, mut rest) = rest.split_at(n_tables);
        for (mine, theirs) in self.largest.iter().zip(largest) {
            mine.fetch_max(*theirs, Ordering::Relaxed);
        }
        for (_, drawn) in &self.drawn {
            let (sums, others) = rest.split_at(drawn.sums().len());
            drawn.add(sums);
            rest = others;
        }
    }
}

impl Counting {
    #[inline]
    pub(super) fn begin(&mut self) {
        self.changes.fill([0; 2]);
    }

    #[inline]
    pub(super) fn note(&mut self, change: Change, n_rows: u64) {
        match change {
            Change::None => {}
            Change::Insert(table) => self.changes[table][0] += n_rows,
            Change::Delete(table) => self.changes[table][1] += n_rows,
        }
    }

    #[inline]
    pub(super) fn commit(&mut self) {
        for (table, changes) in self.changes.iter_mut().enumerate() {
            let [inserted, deleted] = std::mem::take(changes);
            if inserted + deleted > 0 {
                self.rows.add(2 * table, inserted);
                self.rows.add(2 * table + 1, deleted);
                self.most[table] = self.most[table].max(inserted).max(deleted);
            }
        }
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        for (all, mine) in self.largest.iter().zip(&self.most) {
            all.fetch_max(*mine, Ordering::Relaxed);
        }
    }
}

/// The queries to the server: the rows of all tables in one statement, so that they are of one moment.
pub(super) fn queries(definition: &Definition, dialect: Dialect) -> Vec<String> {
    let count = |name: &String| format!("(SELECT COUNT(*) FROM {})", quoted(dialect, name));
    let counts: Vec<String> = definition.tables.iter().map(|table| count(&table.name)).collect();
    let query = (!counts.is_empty()).then(|| format!("SELECT {}", counts.join(", ")));
    query.into_iter().collect()
}

pub(super) fn judge(
    definition: &Definition,
    counts: &Counts,
    totals: &AuditTotals,
    answers: &[TextRows],
) -> Vec<AuditRow> {
    let sums = counts.rows.sums();
    let mut rows = Vec::new();
    for (idx, table) in definition.tables.iter().enumerate() {
        let found = answers.first().and_then(|answer| number_in(answer, 0, idx));
        let name = format!("rows of table `{}`", table.name);
        if let Some(why) = unclear(definition, &table.name) {
            let found = found.map_or("no number".to_owned(), |found| found.to_string());
            rows.push(AuditRow::judged(name, why, found, true).undecided_if(true));
            continue;
        }
        let [inserted, deleted] = [sums[2 * idx], sums[2 * idx + 1]].map(i128::from);
        let expected = i128::from(table.rows) + inserted - deleted;
        let (inserts, deletes) = changes(definition, idx);
        // What may have been committed without the client knowing.
        let largest = i128::from(counts.largest[idx].load(Ordering::Relaxed)).max(1);
        let unknown = |may: bool| i128::from(may) * i128::from(totals.unknown()) * largest;
        let bounds = (expected - unknown(deletes), expected + unknown(inserts));
        let name = match (inserts, deletes) {
            (false, false) => format!("{name}, which no statement changes"),
            _ => format!("{name}: filled, plus inserted, minus deleted"),
        };
        rows.push(AuditRow::between(name, bounds, found));
    }
    rows.extend(counts.drawn.iter().map(|(name, drawn)| drawn.audit_row(name)));
    rows
}

fn all_forms(definition: &Definition) -> impl Iterator<Item = &Form> {
    let steps = definition.transactions.iter().flat_map(|transaction| &transaction.steps);
    let forms = steps.filter_map(|step| match &step.action {
        Action::Sql(sql) => Some(sql.forms.iter()),
        Action::RollBack => None,
    });
    forms.flatten().filter_map(|form| form.as_ref().ok())
}

/// Why the rows of a table are not audited; none if they are.
fn unclear(definition: &Definition, table: &str) -> Option<String> {
    all_forms(definition).find_map(|form| match &form.effect {
        Effect::Unknown => Some("not audited: a statement may change any table".to_owned()),
        Effect::Unclear(name) if name.eq_ignore_ascii_case(table) => {
            Some("not audited: a statement does not report what it inserts".to_owned())
        }
        _ => None,
    })
}

/// Whether any statement inserts into a table, and whether any deletes from it.
fn changes(definition: &Definition, table: usize) -> (bool, bool) {
    let is_any = |change: Change| {
        all_forms(definition).any(|form| Change::of(&form.effect, definition) == change)
    };
    (is_any(Change::Insert(table)), is_any(Change::Delete(table)))
}
