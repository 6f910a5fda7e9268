//! Makes sessions into transactions, and equal transactions into kinds with statistics of values.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use crate::Dialect;

use super::control::{Change, End, is_system, split};
use super::relations::{Compared, Relations};
use super::statement::{Bound, Form, Kind, Template, is_routine, read};
use super::values::{Budget, Seen, Stats};
use super::{Counts, Reason, Request};

const STATEMENTS_MOST: usize = 1000;
const SESSIONS_MOST: usize = 20_000;
/// Most different statements, and most different transactions.
const DIFFERENT_MOST: usize = 10_000;
const FORM_BYTES_MOST: usize = 64 << 20;
/// Limit of steps and places of values, which each have statistics. Tests use a smaller one.
const PLACES_MOST: usize = if cfg!(test) { 30_000 } else { 300_000 };
/// Most values in transactions that are not ended yet.
const PENDING_MOST: usize = 2_000_000;

/// What makes transactions equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    schema: Option<Rc<str>>,
    /// The templates; a run of equal ones once.
    steps: Vec<u32>,
    begins: bool,
    rolls_back: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Shape {
    pub(super) schema: Option<Rc<str>>,
    /// Whether it was begun, rather than each statement committed by itself.
    pub(super) begins: bool,
    pub(super) rolls_back: bool,
    /// How many there were, and their statements.
    pub(super) transactions: u64,
    pub(super) statements: u64,
    pub(super) steps: Vec<Step>,
    /// How the values of its steps are related, in their order; of a run, those of the first execution.
    pub(super) relations: Relations,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Step {
    pub(super) template: u32,
    /// Fewest and most executions in a row, and all of them.
    pub(super) least: u64,
    pub(super) most: u64,
    pub(super) executions: u64,
    /// Transactions that executed it.
    pub(super) runs: u64,
    pub(super) values: Vec<Value>,
    /// How the values of one execution are related.
    pub(super) relations: Relations,
    /// Transactions that executed it more than once.
    pub(super) long_runs: u64,
    /// Executions by the number of the table, if that is numbered.
    pub(super) tables: BTreeMap<u64, u64>,
}

/// What was seen at a place of a step.
#[derive(Clone, Debug, Default)]
pub(super) struct Value {
    all: Stats,
    /// Of the first executions in a row, once the step was executed more than once.
    firsts: Option<Box<Stats>>,
    pub(super) elements: u64,
    /// In how many transactions that executed it more than once it was the same throughout.
    steady: u64,
}

/// A statement of a transaction that is not ended.
struct Done {
    template: u32,
    table_number: Option<u64>,
    values: Vec<Vec<Seen>>,
}

#[derive(Default)]
struct Session {
    schema: Option<Rc<str>>,
    /// Whether statements commit by themselves; none if the log does not have its beginning.
    autocommit: Option<bool>,
    /// Whether the end of a transaction begins the next one, unless it says otherwise.
    chains: bool,
    is_begun: bool,
    /// Whether the statements that are read were sent as one, which makes them one transaction.
    is_joined: bool,
    /// Whether the server refuses all statements until the transaction ends.
    is_aborted: bool,
    has_locks: bool,
    done: Vec<Done>,
    /// The savepoints with how many statements were done before.
    savepoints: Vec<(String, usize)>,
    /// How the transaction ends, as soon as it is known that this did not fail.
    ending: Option<Ending>,
    /// What was sent last, if the log has it before it is executed.
    last: Option<u64>,
    /// How many statements were done before it.
    done_before: usize,
    /// Statements of a transaction that is given up.
    given_up: u64,
}

#[derive(Clone, Copy)]
struct Ending {
    rolls_back: bool,
    chains: bool,
}

impl Session {
    fn is_manual(&self) -> bool {
        self.autocommit == Some(false)
    }

    fn end(&mut self, rolls_back: bool, chains: bool) {
        self.ending = Some(Ending { rolls_back: rolls_back || self.is_aborted, chains });
    }

    /// Leaves out the statements after the first so many.
    fn forget(&mut self, kept: usize, reason: Reason, pending: &mut usize, counts: &mut Counts) {
        let gone = self.done.split_off(kept.min(self.done.len()));
        *pending -= gone.iter().map(room).sum::<usize>();
        counts.leave_out(reason, gone.len() as u64);
    }
}

const PRESUMED: &str = "- whether statements of sessions that are older than the log commit by themselves: where such a \
     session ended a transaction without having begun it, it is assumed that they do not";

pub(super) struct Sessions {
    dialect: Dialect,
    /// Whether the log has all statements, so that a COMMIT tells of statements before.
    is_complete: bool,
    has_routines: bool,
    open: HashMap<String, Session>,
    known: HashMap<String, u32>,
    form_bytes: usize,
    by_key: HashMap<Key, usize>,
    /// Places and steps of all shapes.
    places: usize,
    schemas: BTreeMap<String, Rc<str>>,
    pending: usize,
    budget: Budget,
    found: Found,
}

#[derive(Default)]
pub(super) struct Found {
    pub(super) has_texts: bool,
    pub(super) templates: Vec<Template>,
    pub(super) shapes: Vec<Shape>,
    /// Most sessions at once.
    pub(super) sessions: usize,
    pub(super) counts: Counts,
    /// What the log does not say of the sessions.
    pub(super) doubts: BTreeSet<&'static str>,
}

impl Sessions {
    pub(super) fn new(dialect: Dialect, is_complete: bool, request: &Request) -> Sessions {
        Sessions {
            dialect,
            is_complete,
            has_routines: request.has_routines,
            open: HashMap::new(),
            known: HashMap::new(),
            form_bytes: 0,
            by_key: HashMap::new(),
            places: 0,
            schemas: BTreeMap::new(),
            pending: 0,
            budget: Budget::default(),
            found: Found { has_texts: request.has_texts, ..Found::default() },
        }
    }

    /// A session began; one with its name has ended unseen.
    pub(super) fn connected(&mut self, session: &str, schema: Option<&str>) {
        self.settle(session);
        if let Some(one) = self.open.remove(session) {
            self.abandon(one);
        }
        if let Some(one) = self.session(session) {
            one.autocommit = Some(true);
        }
        schema.into_iter().for_each(|schema| self.uses(session, schema));
    }

    /// A session begins anew, in the same database.
    pub(super) fn reset(&mut self, session: &str) {
        let schema = self.open.get(session).and_then(|one| one.schema.clone());
        self.quit(session);
        if let Some(one) = self.session(session) {
            one.schema = schema;
            one.autocommit = Some(true);
        }
    }

    pub(super) fn doubt(&mut self, what: &'static str) {
        self.found.doubts.insert(what);
    }

    pub(super) fn uses(&mut self, session: &str, schema: &str) {
        if self.schemas.len() >= DIFFERENT_MOST && !self.schemas.contains_key(schema) {
            return;
        }
        let name = self.schemas.entry(schema.to_owned()).or_insert_with(|| schema.into());
        let name = Rc::clone(name);
        if let Some(one) = self.session(session) {
            one.schema = Some(name);
        }
    }

    /// A session ended: the server rolls back what it has not committed.
    pub(super) fn quit(&mut self, session: &str) {
        self.settle(session);
        self.finish(session, true);
        self.open.remove(session);
    }

    /// What follows is of other sessions.
    pub(super) fn restarted(&mut self) {
        let mut names: Vec<String> = self.open.keys().cloned().collect();
        names.sort_unstable();
        names.iter().for_each(|name| self.settle(name));
        for (_, one) in std::mem::take(&mut self.open) {
            self.abandon(one);
        }
    }

    fn abandon(&mut self, mut one: Session) {
        self.found.counts.leave_out(Reason::ManyStatements, one.given_up);
        one.forget(0, Reason::Unfinished, &mut self.pending, &mut self.found.counts);
    }

    fn session(&mut self, name: &str) -> Option<&mut Session> {
        if !self.open.contains_key(name) && self.open.len() < SESSIONS_MOST {
            self.open.insert(name.to_owned(), Session::default());
            self.found.sessions = self.found.sessions.max(self.open.len());
        }
        self.open.get_mut(name)
    }

    /// A session sent a statement; none if it was too long to be kept.
    pub(super) fn statement(&mut self, session: &str, text: Option<&str>) {
        match text {
            Some(text) => self.executed(session, text, &[], true),
            None => self.leave_out(Reason::Long),
        }
    }

    /// The log has a statement that is not replayed, whosever it is.
    pub(super) fn leave_out(&mut self, reason: Reason) {
        self.found.counts.read += 1;
        self.found.counts.leave_out(reason, 1);
    }

    /// A session executed a statement with these parameters, some of which may be NULL; unless it `is_over`, it was
    /// logged before it was executed.
    pub(super) fn executed(&mut self, session: &str, text: &str, bound: &Bound, is_over: bool) {
        self.settle(session);
        let parts = if bound.is_empty() { split(text, self.dialect) } else { vec![text] };
        let is_joined = parts.len() > 1 && self.dialect == Dialect::PostgreSql;
        if let Some(one) = self.session(session) {
            one.is_joined = is_joined;
            one.done_before = one.done.len();
            one.last = None;
        }
        for part in parts {
            self.part(session, part, bound);
        }
        self.change(session, |one| {
            if std::mem::take(&mut one.is_joined) && !one.is_begun && one.ending.is_none() {
                one.end(false, false);
            }
        });
        // The logs of MariaDB and MySQL do not have what failed.
        if self.dialect == Dialect::MySql {
            self.settle(session);
        }
        if !is_over {
            self.change(session, |one| one.last = Some(hash(text)));
        }
    }

    /// The server refused a statement of a session: this one, if the log says which.
    pub(super) fn failed(&mut self, session: &str, text: Option<&str>) {
        let Some(one) = self.open.get_mut(session) else { return };
        let last = one.last.take();
        if last.is_some() && text.is_none_or(|text| last == Some(hash(text))) {
            let (kept, counts) = (one.done_before, &mut self.found.counts);
            one.forget(kept, Reason::Failed, &mut self.pending, counts);
            match &mut one.ending {
                Some(ending) => ending.rolls_back = true,
                None => one.is_aborted = one.is_begun,
            }
        } else if one.ending.is_none() {
            one.is_aborted = one.is_begun;
        }
        self.settle(session);
    }

    fn part(&mut self, session: &str, text: &str, bound: &Bound) {
        self.found.counts.read += 1;
        let kind = read(text, bound, self.dialect, self.found.has_texts);
        if self.session(session).is_none() {
            return self.found.counts.leave_out(Reason::Limits, 1);
        }
        // What was sent in one text after the end of a transaction.
        self.settle(session);
        match kind {
            Kind::Control(change) => {
                self.found.counts.control += 1;
                if matches!(change, Change::End(_)) {
                    self.presume(session);
                }
                self.apply(session, change);
            }
            Kind::LeftOut(reason, change) => {
                self.found.counts.leave_out(reason, 1);
                self.apply(session, change);
            }
            Kind::Replayed(form) => {
                let schema = self.open.get(session).and_then(|one| one.schema.as_deref());
                if schema.is_some_and(|schema| is_system(schema, self.dialect)) {
                    self.found.counts.leave_out(Reason::Server, 1);
                } else if is_routine(&form.template.verb) && !self.has_routines {
                    self.found.counts.leave_out(Reason::Routine, 1);
                } else {
                    self.replayed(session, *form);
                }
            }
        }
    }

    fn apply(&mut self, session: &str, change: Change) {
        let is_mysql = self.dialect == Dialect::MySql;
        if let Change::Use(schema) = &change {
            self.uses(session, schema);
        }
        let Some(one) = self.open.get_mut(session) else { return };
        match change {
            Change::None | Change::Use(_) => {}
            // PostgreSQL warns that there is a transaction already.
            Change::Begin if !is_mysql => one.is_begun = true,
            Change::Begin => {
                self.finish(session, false);
                self.change(session, |one| {
                    one.is_begun = true;
                    one.has_locks = false;
                    // Programs that begin transactions do so because statements commit by themselves.
                    one.autocommit = one.autocommit.or(Some(true));
                });
            }
            Change::End(End { rolls_back, chains }) => {
                let chains = chains.unwrap_or(one.chains) && (is_mysql || one.is_begun);
                one.end(rolls_back, chains);
            }
            Change::Commit => one.end(false, false),
            Change::Detach => {
                one.forget(0, Reason::Savepoint, &mut self.pending, &mut self.found.counts);
                one.end(true, false);
            }
            Change::Savepoint(name) => {
                // MySQL forgets an earlier one of this name, PostgreSQL hides it.
                if is_mysql {
                    one.savepoints.retain(|(known, _)| *known != name);
                }
                let is_one = one.is_begun || one.is_joined || one.is_manual();
                if is_one && !one.is_aborted && one.savepoints.len() < STATEMENTS_MOST {
                    one.savepoints.push((name, one.done.len()));
                }
            }
            Change::Release(name) => {
                if let Some(at) = one.savepoints.iter().rposition(|(known, _)| *known == name) {
                    one.savepoints.truncate(at);
                }
            }
            Change::RollBackTo(name) => {
                one.is_aborted = false;
                if let Some(at) = one.savepoints.iter().rposition(|(known, _)| *known == name) {
                    let (kept, counts) = (one.savepoints[at].1, &mut self.found.counts);
                    one.savepoints.truncate(at + 1);
                    one.forget(kept, Reason::RolledBack, &mut self.pending, counts);
                }
            }
            Change::Lock(locks) => {
                if locks || one.has_locks {
                    one.end(false, false);
                }
                one.has_locks = locks;
            }
            Change::Settings { autocommit, chains } => {
                if autocommit == Some(true) && one.is_manual() {
                    one.end(false, false);
                    self.settle(session);
                }
                self.change(session, |one| {
                    one.autocommit = autocommit.or(one.autocommit);
                    one.chains = chains.unwrap_or(one.chains);
                });
            }
        }
    }

    fn change(&mut self, session: &str, change: impl FnOnce(&mut Session)) {
        if let Some(one) = self.open.get_mut(session) {
            change(one);
        }
    }

    /// Its start precedes the log: the session's statements do not commit by themselves.
    fn presume(&mut self, session: &str) {
        let Some(one) = self.open.get_mut(session) else { return };
        if self.is_complete && one.autocommit.is_none() && !one.is_begun {
            one.autocommit = Some(false);
            self.found.doubts.insert(PRESUMED);
        }
    }

    /// Ends the transaction of a session, if it is known how.
    fn settle(&mut self, session: &str) {
        let ending = self.open.get_mut(session).and_then(|one| one.ending.take());
        if let Some(Ending { rolls_back, chains }) = ending {
            self.finish(session, rolls_back);
            self.change(session, |one| one.is_begun = chains);
        }
    }

    fn replayed(&mut self, session: &str, form: Form) {
        let Form { template, values, table_number } = form;
        let template = match self.known.get(&template.text) {
            Some(&known) => known,
            None => {
                let bytes = self.form_bytes + template.text.len();
                if self.found.templates.len() >= DIFFERENT_MOST || bytes > FORM_BYTES_MOST {
                    return self.found.counts.leave_out(Reason::Limits, 1);
                }
                self.form_bytes = bytes;
                let number = self.found.templates.len() as u32;
                self.known.insert(template.text.clone(), number);
                self.found.templates.push(template);
                number
            }
        };
        let done = Done { template, table_number, values };
        let size = room(&done);
        let has_room = self.pending + size <= PENDING_MOST;
        let Some(one) = self.open.get_mut(session) else { return };
        if one.given_up > 0 || one.done.len() >= STATEMENTS_MOST || !has_room {
            one.given_up += 1 + one.done.len() as u64;
            self.pending -= one.done.iter().map(room).sum::<usize>();
            one.done.clear();
        } else {
            self.pending += size;
            one.done.push(done);
        }
        if !one.is_begun && !one.is_joined && !one.is_manual() {
            one.end(false, false);
        }
    }

    fn finish(&mut self, session: &str, rolls_back: bool) {
        let Some(one) = self.open.get_mut(session) else { return };
        let done = std::mem::take(&mut one.done);
        let is_begun = std::mem::take(&mut one.is_begun) || one.is_manual();
        let begins = is_begun || done.len() > 1;
        one.savepoints.clear();
        one.is_aborted = false;
        one.done_before = 0;
        let given_up = std::mem::take(&mut one.given_up);
        let schema = one.schema.clone();
        self.pending -= done.iter().map(room).sum::<usize>();
        self.found.counts.leave_out(Reason::ManyStatements, given_up);
        if done.is_empty() {
            return;
        }
        let mut steps: Vec<u32> = done.iter().map(|one| one.template).collect();
        steps.dedup();
        let key = Key { schema, steps, begins, rolls_back };
        let places = || {
            let runs = done.chunk_by(|one, next| one.template == next.template);
            runs.map(|run| 1 + run[0].values.len()).sum::<usize>()
        };
        let (known, n_shapes) = (self.by_key.get(&key).copied(), self.found.shapes.len());
        let idx = known.unwrap_or(n_shapes);
        if known.is_none() {
            let places = self.places + places();
            if n_shapes >= DIFFERENT_MOST || places > PLACES_MOST {
                return self.found.counts.leave_out(Reason::Limits, done.len() as u64);
            }
            self.places = places;
            self.found.shapes.push(Shape::new(&key));
            self.by_key.insert(key, idx);
        }
        self.found.counts.replayed += done.len() as u64;
        self.found.shapes[idx].add(&done, &mut self.budget);
    }

    pub(super) fn end(mut self) -> Found {
        self.restarted();
        self.found
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    crate::declared::sql::trimmed(text).hash(&mut hasher);
    hasher.finish()
}

/// What a statement takes of the memory for transactions that are not ended.
fn room(done: &Done) -> usize {
    1 + done.values.iter().map(Vec::len).sum::<usize>()
}

impl Shape {
    fn new(key: &Key) -> Shape {
        let step =
            |template: &u32| Step { template: *template, least: u64::MAX, ..Step::default() };
        Shape {
            schema: key.schema.clone(),
            begins: key.begins,
            rolls_back: key.rolls_back,
            steps: key.steps.iter().map(step).collect(),
            ..Shape::default()
        }
    }

    fn add(&mut self, done: &[Done], budget: &mut Budget) {
        self.transactions += 1;
        self.statements += done.len() as u64;
        let runs = done.chunk_by(|one, next| one.template == next.template);
        let mut firsts: Vec<Compared> = Vec::new();
        for (step, run) in self.steps.iter_mut().zip(runs) {
            step.add(run, &mut firsts, budget);
        }
        self.relations.observe(&firsts);
    }

    /// The first place of each step among all values.
    pub(super) fn offsets(&self) -> Vec<usize> {
        let lengths = self.steps.iter().map(|step| step.values.len());
        lengths.scan(0, |next, n| Some(std::mem::replace(next, *next + n))).collect()
    }
}

impl Step {
    /// Adds executions in a row, and the values of the first one to those of the transaction.
    fn add(&mut self, run: &[Done], firsts: &mut Vec<Compared>, budget: &mut Budget) {
        self.least = self.least.min(run.len() as u64);
        self.most = self.most.max(run.len() as u64);
        self.executions += run.len() as u64;
        self.runs += 1;
        let is_long = run.len() > 1;
        self.long_runs += u64::from(is_long);
        let mut first: Option<Vec<Compared>> = None;
        let mut is_steady = Vec::new();
        for one in run {
            let now: Vec<Compared> = one.values.iter().map(compared).collect();
            self.values.resize_with(now.len(), Value::default);
            is_steady.resize(now.len(), is_long);
            if let Some(number) = one.table_number {
                *self.tables.entry(number).or_default() += 1;
            }
            for (idx, (value, seen)) in self.values.iter_mut().zip(&one.values).enumerate() {
                value.elements += seen.len() as u64;
                seen.iter().for_each(|seen| value.all.add(seen, budget));
                let is_same = first.as_ref().is_none_or(|first| first[idx] == now[idx]);
                is_steady[idx] &= is_same && now[idx] != Compared::List;
            }
            self.relations.observe(&now);
            if first.is_none() {
                let values = self.values.iter_mut().filter(|_| self.most > 1);
                for (value, seen) in values.zip(&one.values) {
                    for seen in seen {
                        value.firsts.get_or_insert_default().add(seen, budget);
                    }
                }
                firsts.extend(&now);
                first = Some(now);
            }
        }
        for (value, is_steady) in self.values.iter_mut().zip(is_steady) {
            value.steady += u64::from(is_steady);
        }
    }

    /// What was seen of a value: where it is drawn once for the transaction, it counts once.
    pub(super) fn stats(&self, idx: usize) -> &Stats {
        let Value { all, firsts, .. } = &self.values[idx];
        firsts.as_deref().filter(|_| self.is_steady(idx)).unwrap_or(all)
    }

    /// Drawn once for the transaction: the step is executed once, or always with the same value.
    pub(super) fn is_steady(&self, idx: usize) -> bool {
        let value = self.values.get(idx);
        let n = value.map_or(0, |value| value.steady);
        let varies = |value: &Value| value.all.most_frequent() < 0.5;
        let is_nearly = n * 20 >= self.long_runs * 19 && value.is_some_and(varies);
        self.most == 1 || n == self.long_runs || is_nearly
    }
}

fn compared(seen: &Vec<Seen>) -> Compared {
    if let [one] = &seen[..] { one.compared() } else { Compared::List }
}
