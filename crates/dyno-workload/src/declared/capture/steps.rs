//! A captured transaction in the study: statements, with generators for values.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::Dialect;
use crate::declared::read_generator::is_column;
use crate::declared::schema::quoted as in_quotes;
use crate::declared::sql::{Scanned, Token, continues_name};

use super::sessions::{Shape, Step};
use super::statement::{
    NUMBER, NUMBERS, SAME_TABLE, TABLE, TEXT, TEXTS, Template, VALUES_MOST, is_mark,
};
use super::values::{Stats, one_of, quoted, shift};
use super::write::{begin, comment, lets};

/// Most tables that differ by a number, of which a step draws one.
pub(super) const TABLES_MOST: usize = 64;
/// Most statements that stand for one step, for each of its tables and each time that it is executed.
const ALTERNATIVES_MOST: u64 = 512;
/// Most executions of a step that a study takes.
const TIMES_MOST: u64 = 1_000_000;

pub(super) fn transaction(
    out: &mut String,
    (name, kind, all): (&str, usize, u64),
    namings: &[Naming<'_>],
    sequences: &Sequences,
) {
    let naming = &namings[kind];
    let shape = naming.shape;
    let path = format!("workload.captured.transaction.{name}");
    begin(out, &path, ("transactions", ""), (shape.transactions, all));
    let (lets, steps) = (String::new(), String::new());
    let mut writer = Writer { naming, kind, sequences, path, lets, steps };
    let mut n_statements = 0;
    for idx in 0..shape.steps.len() {
        n_statements += writer.step(idx);
    }
    let Writer { path, lets, mut steps, .. } = writer;
    if shape.begins != (n_statements > 1 || shape.rolls_back) {
        let _ = writeln!(out, "begin = {}", shape.begins);
    }
    if shape.rolls_back {
        let _ = writeln!(steps, "\n[[{path}.steps]]\nroll_back = true");
    }
    if !lets.is_empty() {
        let _ = write!(out, "\n[{path}.let]\n{lets}");
    }
    out.push_str(&steps);
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Origin {
    /// The place of the value that is drawn for it; its own, if it is drawn itself.
    pub(super) place: usize,
    pub(super) above: i64,
    /// In how many of all observations that was so; none if it is drawn itself.
    pub(super) held: Option<(u64, u64)>,
}

impl Origin {
    fn own(place: usize) -> Origin {
        Origin { place, above: 0, held: None }
    }
}

pub(super) struct Naming<'a> {
    pub(super) shape: &'a Shape,
    templates: &'a [Template],
    pub(super) dialect: Dialect,
    /// The place of the first value of each step.
    offsets: Vec<usize>,
    /// For each place.
    pub(super) origins: Vec<Origin>,
    /// The columns of the values of each step.
    pub(super) columns: Vec<Vec<Option<String>>>,
    /// The places of numbers that the server gave to rows, by the step that inserted the row.
    pub(super) given: BTreeMap<usize, usize>,
    /// The places whose values are given to new rows anywhere.
    new: BTreeSet<usize>,
}

struct Place<'a> {
    mark: char,
    step: &'a Step,
    idx: usize,
    stats: &'a Stats,
}

impl<'a> Place<'a> {
    fn new(step: &'a Step, idx: usize, mark: char) -> Place<'a> {
        Place { mark, step, idx, stats: step.stats(idx) }
    }

    /// Whether it stands in the statement, since it was always the same.
    fn is_fixed(&self) -> bool {
        match self.mark {
            TABLE => self.step.tables.len() < 2,
            _ => self.stats.constant().is_some(),
        }
    }

    /// Whether it may be equal to another one.
    fn is_single(&self) -> bool {
        [NUMBER, TEXT, TABLE].contains(&self.mark) && !self.is_fixed()
    }
}

impl<'a> Naming<'a> {
    pub(super) fn new(shape: &'a Shape, templates: &'a [Template], dialect: Dialect) -> Naming<'a> {
        let offsets = shape.offsets();
        let mut places: Vec<Place<'a>> = Vec::new();
        for step in &shape.steps {
            let values = (0..step.values.len()).zip(templates[step.template as usize].marks());
            places.extend(values.map(|(idx, mark)| Place::new(step, idx, mark)));
        }
        let mut origins: Vec<Origin> = Vec::new();
        for (at, place) in places.iter().enumerate() {
            let is_steady = place.step.is_steady(place.idx);
            let fits = |to: &Place<'_>, above: i64| {
                let is_same = to.mark == place.mark && (above == 0 || place.mark == NUMBER);
                is_same && to.is_single() && place.is_single()
            };
            let most_frequent = place.stats.most_frequent();
            let found = match is_steady {
                true => shape.relations.of(at, most_frequent, |one| {
                    let to = &places[one.to];
                    fits(to, one.above) && to.step.is_steady(to.idx)
                }),
                // Within one execution of a step that is executed several times.
                false => {
                    let offset = at - place.idx;
                    let found = place.step.relations.of(place.idx, most_frequent, |one| {
                        fits(&places[offset + one.to], one.above) && !place.step.is_steady(one.to)
                    });
                    found.map(|mut one| {
                        one.to += offset;
                        one
                    })
                }
            };
            let n = if is_steady { shape.relations.n } else { place.step.relations.n };
            let related = found.and_then(|one| {
                let to: Origin = origins[one.to];
                let above = to.above.checked_add(one.above)?;
                Some(Origin { place: to.place, above, held: Some((one.held, n)) })
            });
            origins.push(related.unwrap_or(Origin::own(at)));
        }
        let of_step = |step: &Step| columns(&templates[step.template as usize].text, dialect);
        let columns = shape.steps.iter().map(of_step).collect();
        let given = BTreeMap::new();
        let new = BTreeSet::new();
        let mut naming =
            Naming { shape, templates, dialect, offsets, origins, columns, given, new };
        naming.given = given_by_server(&naming);
        naming.new = naming.given_to_new_rows();
        naming
    }

    /// The step of a place, and the index there.
    pub(super) fn step_of(&self, place: usize) -> (usize, usize) {
        // A step without values begins where the next one does, which is the one that is meant.
        let step_idx = self.offsets.partition_point(|offset| *offset <= place) - 1;
        (step_idx, place - self.offsets[step_idx])
    }

    /// Whether a place has numbers of new rows.
    pub(super) fn is_numbering(&self, place: usize) -> bool {
        let (step_idx, idx) = self.step_of(place);
        let mark = self.template(step_idx).marks().nth(idx);
        mark == Some(NUMBER) && self.stats(place).is_numbering()
    }

    /// The column to which a place gives values of new rows.
    pub(super) fn new_column(&self, place: usize) -> Option<&str> {
        let (step_idx, idx) = self.step_of(place);
        let column = self.columns[step_idx].get(idx)?.as_deref();
        column.filter(|_| self.template(step_idx).is_insert)
    }

    pub(super) fn template(&self, step_idx: usize) -> &'a Template {
        &self.templates[self.shape.steps[step_idx].template as usize]
    }

    /// The places whose values are given to new rows anywhere.
    fn given_to_new_rows(&self) -> BTreeSet<usize> {
        let steps = self.shape.steps.iter().zip(&self.offsets).enumerate();
        let inserts = steps.filter(|(step_idx, _)| self.template(*step_idx).is_insert);
        let origins = inserts.flat_map(|(_, (step, offset))| {
            let places = *offset..offset + step.values.len();
            self.origins[places].iter().filter(|origin| origin.above == 0)
        });
        origins.map(|origin| origin.place).collect()
    }

    /// The place of the number of the table of a step, if it is drawn.
    fn table(&self, step_idx: usize) -> Option<usize> {
        let step = &self.shape.steps[step_idx];
        let idx = self.template(step_idx).marks().position(|c| c == TABLE)?;
        (step.tables.len() > 1).then(|| self.offsets[step_idx] + idx)
    }

    fn stats(&self, place: usize) -> &'a Stats {
        let (step_idx, idx) = self.step_of(place);
        self.shape.steps[step_idx].stats(idx)
    }

    /// The numbers that are drawn at a place, with how often they occurred.
    fn tables(&self, place: usize) -> &'a BTreeMap<u64, u64> {
        &self.shape.steps[self.step_of(place).0].tables
    }
}

fn one_of_tables(step: &Step) -> String {
    one_of(step.tables.keys().map(u64::to_string), step.tables.values())
}

/// How often a step is executed in a row: the mean.
fn times(step: &Step) -> u64 {
    let runs = step.runs.max(1);
    ((step.executions + runs / 2) / runs).clamp(1, TIMES_MOST)
}

struct Writer<'a> {
    naming: &'a Naming<'a>,
    kind: usize,
    sequences: &'a Sequences,
    path: String,
    lets: String,
    steps: String,
}

/// One of the statements that stand for a step.
#[derive(Clone, Copy, Debug, Default)]
struct Alternative {
    /// The table, if it is one of several, and the name of the value that says so.
    table: Option<u64>,
    /// Which of several executions, if they are written one by one.
    nth: Option<u64>,
}

impl Alternative {
    /// The name of a value that belongs to this statement alone.
    fn name(self, name: &str) -> String {
        let mut name = name.to_owned();
        for (letter, number) in [('e', self.nth), ('t', self.table)] {
            if let Some(number) = number {
                let _ = write!(name, "_{letter}{number}");
            }
        }
        name
    }
}

impl Writer<'_> {
    /// Writes a step, and returns how often it is executed.
    fn step(&mut self, step_idx: usize) -> u64 {
        let step = &self.naming.shape.steps[step_idx];
        let times = times(step);
        self.transaction_lets(step_idx);
        let Some(place) = self.naming.table(step_idx) else {
            self.statement(step_idx, (Alternative::default(), None), times);
            return times;
        };
        let idx = place - self.naming.offsets[step_idx];
        if step.is_steady(idx) {
            let origin = self.naming.origins[place].place;
            let name = format!("table{}", origin + 1);
            for number in self.naming.tables(origin).keys() {
                let alternative = Alternative { table: Some(*number), nth: None };
                self.statement(step_idx, (alternative, Some(&name)), times);
            }
            return times;
        }
        // A table is drawn each time.
        let tables = &step.tables;
        let copies = times.min((ALTERNATIVES_MOST / tables.len() as u64).max(1));
        for nth in 1..=copies {
            let times = times / copies + u64::from(nth <= times % copies);
            let name = format!("table{}_e{nth}", place + 1);
            if copies < times {
                comment(&mut self.lets, "drawn once for several executions, otherwise each time");
            }
            let _ = writeln!(self.lets, "{name} = {}", one_of_tables(step));
            for number in tables.keys() {
                let alternative = Alternative { table: Some(*number), nth: Some(nth) };
                self.statement(step_idx, (alternative, Some(&name)), times);
            }
        }
        times
    }

    fn transaction_lets(&mut self, step_idx: usize) {
        let naming = self.naming;
        let (step, offset) = (&naming.shape.steps[step_idx], naming.offsets[step_idx]);
        for (idx, mark) in naming.template(step_idx).marks().enumerate() {
            let place = Place::new(step, idx, mark);
            if !place.is_single() || !step.is_steady(idx) {
                continue;
            }
            let at = offset + idx;
            match mark {
                TABLE if naming.origins[at].held.is_none() => {
                    let _ = writeln!(self.lets, "table{} = {}", at + 1, one_of_tables(step));
                }
                TABLE => {}
                _ if naming.given.values().any(|given| *given == at) => {}
                _ => {
                    let (name, origin) = (value_name(at), value_name(naming.origins[at].place));
                    let numbers = self.sequences.generator(self.kind, at);
                    draw(&mut self.lets, (naming, numbers), &place, (at, &name, &origin));
                }
            }
        }
    }

    fn statement(&mut self, step_idx: usize, of: (Alternative, Option<&str>), times: u64) {
        let (alternative, table) = of;
        let step = &self.naming.shape.steps[step_idx];
        let (sql, own) = self.sql(step_idx, alternative);
        let _ = writeln!(self.steps, "\n[[{}.steps]]", self.path);
        if step.least != step.most {
            let mean = self::times(step);
            let words = format!("{} to {} times, {mean} on average", step.least, step.most);
            comment(&mut self.steps, &words);
        }
        if times > 1 {
            let _ = writeln!(self.steps, "times = {times}");
        }
        if let (Some(name), Some(number)) = (table, alternative.table) {
            let _ = writeln!(self.steps, "if = \":{name} = {number}\"");
        }
        let _ = writeln!(self.steps, "sql = {}", quoted(&sql));
        let given = self.naming.given.get(&step_idx).map(|place| value_name(*place));
        let read = given.map(|name| {
            format!("# taken for the number that the server gives the row\nread = [\"{name}\"]\n")
        });
        let read = read.unwrap_or_default();
        let is_returned = returns_number(&sql);
        if is_returned {
            self.steps.push_str(&read);
        }
        if !own.is_empty() {
            let _ = write!(self.steps, "[{}.steps.let]\n{own}", self.path);
        }
        if !is_returned && !read.is_empty() {
            let path = &self.path;
            let sql = "SELECT LAST_INSERT_ID()";
            let _ = write!(self.steps, "\n[[{path}.steps]]\nsql = \"{sql}\"\n{read}");
        }
    }

    /// A statement with names, and the generators of those that are drawn each time.
    fn sql(&self, step_idx: usize, alternative: Alternative) -> (String, String) {
        let naming = self.naming;
        let (step, offset) = (&naming.shape.steps[step_idx], naming.offsets[step_idx]);
        let text = &naming.template(step_idx).text;
        let n_marks = naming.template(step_idx).marks().count();
        let number = alternative.table.or(step.tables.keys().next().copied()).unwrap_or(0);
        let (mut sql, mut own) = (String::new(), String::new());
        let (mut idx, mut is_after_value) = (0, false);
        for mark in text.chars() {
            // The name of a value ends where something else begins: a log may hold `5SET`.
            if std::mem::take(&mut is_after_value) && (is_mark(mark) || continues_name(mark)) {
                sql.push(' ');
            }
            if mark == SAME_TABLE {
                let _ = write!(sql, "{number}");
            }
            if !is_mark(mark) {
                sql.extend((mark != SAME_TABLE).then_some(mark));
                continue;
            }
            let place = Place::new(step, idx, mark);
            let at = offset + idx;
            idx += 1;
            let is_text = [TEXT, TEXTS].contains(&mark);
            if mark == TABLE {
                let _ = write!(sql, "{number}");
            } else if [NUMBERS, TEXTS].contains(&mark) {
                let name = alternative.name(&value_name(at));
                list(&mut own, &mut sql, &place, (&name, n_marks));
                is_after_value = true;
            } else if let Some(constant) = place.stats.constant() {
                // It has no quotes and no backslashes.
                sql.push_str(&if is_text { format!("'{constant}'") } else { constant.to_owned() });
            } else {
                let named = |at: usize| match step.is_steady(place.idx) {
                    true => value_name(at),
                    false => alternative.name(&value_name(at)),
                };
                let origin = naming.origins[at];
                let is_same = origin.held.is_some() && origin.above == 0;
                let source = if is_same { origin.place } else { at };
                sql.push_str(&term(&named(source), naming.stats(source)));
                is_after_value = !sql.ends_with(')');
                if !step.is_steady(place.idx) {
                    let numbers = self.sequences.generator(self.kind, at);
                    let names = (at, &*named(at), &*named(origin.place));
                    draw(&mut own, (naming, numbers), &place, names);
                }
            }
        }
        (sql, own)
    }
}

fn value_name(at: usize) -> String {
    format!("v{}", at + 1)
}

/// The value's own generators, that of its column's numbers if there is one, or one from its origin.
fn draw(
    out: &mut String,
    (naming, numbers): (&Naming<'_>, Option<String>),
    place: &Place<'_>,
    (at, name, origin_name): (usize, &str, &str),
) {
    let origin = naming.origins[at];
    let Some((held, n)) = origin.held else {
        if let Some(numbers) = numbers {
            comment(out, "numbers of new rows");
            let _ = writeln!(out, "{name} = {numbers}");
            return;
        }
        let is_new = naming.new.contains(&at);
        let (generators, words) = place.stats.generators(name, is_new, place.mark == TEXT);
        lets(out, &generators, &words);
        return;
    };
    if held < n {
        let also = match (origin.above, origin.above.unsigned_abs()) {
            (0, _) => format!("{origin_name} is also used for another value, which was equal"),
            (..0, less) => format!("{less} less than {origin_name}"),
            (_, more) => format!("{more} more than {origin_name}"),
        };
        comment(out, &format!("{also} in {held} of {n}"));
    }
    if origin.above != 0 {
        let sum = format!(":{origin_name} {}", shift(origin.above));
        let _ = writeln!(out, "{name} = {{ expression = \"{sum}\" }}");
    }
}

/// Writes a list of as many values as there were on average.
fn list(own: &mut String, sql: &mut String, place: &Place<'_>, (name, n_marks): (&str, usize)) {
    let (step, stats) = (place.step, place.stats);
    let mean = (step.values[place.idx].elements + step.executions / 2) / step.executions.max(1);
    let room = (VALUES_MOST.saturating_sub(n_marks - 1) / n_marks.max(1)).max(1);
    for nth in 1..=mean.clamp(1, room as u64) {
        let name = format!("{name}_{nth}");
        let (generators, words) = stats.generators(&name, false, place.mark == TEXTS);
        lets(own, &generators, &words);
        let comma = if nth > 1 { ", " } else { "" };
        *sql += &format!("{comma}{}", term(&name, stats));
    }
}

/// A value in a statement. The server adds what generators cannot draw: of 64 bits without a sign.
fn term(name: &str, stats: &Stats) -> String {
    let plain = format!(":{name}");
    stats.offset().map_or(plain, |offset| format!("(:{name} + {offset})"))
}

// Numbers of new rows: those that the server gives, which the study reads, and those of one column, which
// kinds of transactions share.

/// The column of each value, in order: inserted, compared or assigned; none for others.
pub(super) fn columns(form: &str, dialect: Dialect) -> Vec<Option<String>> {
    // As many bytes as before, so that tokens are at the same places.
    let plain: String = form.chars().map(|c| if is_mark(c) { '0' } else { c }).collect();
    let mut found: BTreeMap<usize, String> = BTreeMap::new();
    if let Ok(scanned) = Scanned::of_server(&plain, dialect) {
        let columns = scanned.inserted_columns().map_or(Vec::new(), |(_, columns)| columns);
        for (idx, window) in scanned.tokens.windows(3).enumerate() {
            if let [Token::Word(name) | Token::Quoted(name), Token::Sign('='), _] = window {
                found.insert(scanned.spans[idx + 2].start, name.to_lowercase());
            }
        }
        let values = scanned.find_word(&["values", "value"]).unwrap_or(scanned.tokens.len());
        for (_, nth, idx) in scanned.inserted_values(values) {
            found.extend(columns.get(nth).map(|one| (scanned.spans[idx].start, one.clone())));
        }
    }
    let marks = form.char_indices().filter(|(_, c)| is_mark(*c));
    marks.map(|(at, _)| found.remove(&at)).collect()
}

/// Whether a column is the key of its table by its name: `id`, `order_id` of `orders`.
fn is_own_key(column: &str, table: &str) -> bool {
    let stem = column.strip_suffix("id").unwrap_or(column).trim_end_matches('_');
    stem.is_empty() || table == stem || table == format!("{stem}s") || table == format!("{stem}es")
}

/// Whether an INSERT returns the number of its row: `RETURNING id`.
pub(super) fn returns_number(sql: &str) -> bool {
    let sql = sql.to_lowercase();
    let Some((_, returned)) = sql.rsplit_once("returning ") else { return false };
    let first = returned.split(',').next().unwrap_or_default();
    let name = first.rsplit('.').next().unwrap_or_default().trim().trim_matches(['"', '`']);
    name == "*" || name.ends_with("id")
}

/// Numbers that the server gave to rows: their places, by the step that inserted. Later in the transaction they
/// look like new rows' numbers from nowhere, and are no key of another new row.
fn given_by_server(naming: &Naming<'_>) -> BTreeMap<usize, usize> {
    let mut given = BTreeMap::new();
    for (place, origin) in naming.origins.iter().enumerate() {
        let (step_idx, idx) = naming.step_of(place);
        let step = &naming.shape.steps[step_idx];
        if origin.held.is_some() || !step.is_steady(idx) || !naming.is_numbering(place) {
            continue;
        }
        let template = naming.template(step_idx);
        let column = naming.columns[step_idx].get(idx).and_then(Option::as_deref);
        let table = template.table.as_deref().unwrap_or_default();
        let is_own = template.is_insert && column.is_some_and(|column| is_own_key(column, table));
        if is_own || !column.is_some_and(|column| column.ends_with("id")) {
            continue;
        }
        let inserts = |earlier: &usize| {
            let step = &naming.shape.steps[*earlier];
            let template = naming.template(*earlier);
            let is_known = naming.dialect == Dialect::MySql || returns_number(&template.text);
            // Into one table, once.
            let is_single = step.most == 1 && step.tables.len() < 2;
            template.is_insert && is_single && is_known && !given.contains_key(earlier)
        };
        if let Some(earlier) = (0..step_idx).rev().find(inserts) {
            given.insert(earlier, place);
        }
    }
    given
}

/// The column into which a statement inserts a value, with its table, as SQL has them: `orders.id`.
fn inserted_column(step: &Step, form: &str, column: &str, dialect: Dialect) -> Option<String> {
    let number = step.tables.keys().next().filter(|_| step.tables.len() < 2);
    if form.contains(TABLE) && number.is_none() {
        return None;
    }
    // The same text with each value as one digit, and the number of the table.
    let number = number.map(u64::to_string).unwrap_or_default();
    let text = |c: char| match c {
        TABLE | SAME_TABLE => number.clone(),
        c if is_mark(c) => "0".to_owned(),
        c => c.to_string(),
    };
    let text: String = form.chars().map(text).collect();
    let scanned = Scanned::of_server(&text, dialect).ok()?;
    let (table, column) = scanned.inserted_column(column)?;
    let found = format!("{table}.{column}");
    is_column(&found).then_some(found)
}

/// The end of a sequence that goes on after a column of this name; nothing if `after` cannot have the name.
pub(super) fn after(dialect: Dialect, table: &str, column: &str) -> String {
    let column = [table, column].map(|name| in_quotes(dialect, name)).join(".");
    if is_column(&column) { format!(", after = {}", quoted(&column)) } else { String::new() }
}

/// The sequences of numbers of new rows of one column, over all kinds of transactions.
#[derive(Debug, Default)]
pub(super) struct Sequences {
    /// By table and column, in lower case and without quotes: both as SQL has them, and the highest number.
    of: BTreeMap<String, (String, i64)>,
    /// By kind and place of the value.
    places: BTreeMap<(usize, usize), String>,
}

impl Sequences {
    pub(super) fn new(kinds: &[Naming<'_>]) -> Sequences {
        let mut sequences = Sequences::default();
        for (kind, naming) in kinds.iter().enumerate() {
            for (place, origin) in naming.origins.iter().enumerate() {
                // Where it is drawn, if it was in an earlier statement: whether there is such a row.
                let drawn = origin.place;
                let is_given = naming.given.values().any(|one| *one == drawn);
                if origin.above != 0 || is_given || !naming.is_numbering(drawn) {
                    continue;
                }
                let (step_idx, idx) = naming.step_of(place);
                let step = &naming.shape.steps[step_idx];
                let highest = step.stats(idx).highest_whole().filter(|one| *one < i64::MAX / 2);
                let column = naming.new_column(place).and_then(|column| {
                    inserted_column(step, &naming.template(step_idx).text, column, naming.dialect)
                });
                if let (Some(column), Some(highest)) = (column, highest) {
                    let key = column.replace(['"', '`'], "").to_lowercase();
                    sequences.places.entry((kind, drawn)).or_insert_with(|| key.clone());
                    let (_, most) = sequences.of.entry(key).or_insert((column, highest));
                    *most = highest.max(*most);
                }
            }
        }
        sequences
    }

    pub(super) fn generator(&self, kind: usize, place: usize) -> Option<String> {
        let (column, highest) = self.of.get(self.places.get(&(kind, place))?)?;
        Some(format!("{{ sequence = {}, after = {} }}", highest + 1, quoted(column)))
    }
}
