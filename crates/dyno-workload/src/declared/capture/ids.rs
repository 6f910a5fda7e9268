//! Numbers of new rows: those that the server gives, which the study reads, and those of one column, which
//! kinds of transactions share.

use std::collections::BTreeMap;

use crate::Dialect;
use crate::declared::read_generator::is_column;
use crate::declared::schema::quoted as in_quotes;
use crate::declared::sql::{Scanned, Token};

use super::sessions::Step;
use super::statement::{SAME_TABLE, TABLE, is_mark};
use super::steps::Naming;
use super::write::quoted;

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
pub(super) fn given(naming: &Naming<'_>) -> BTreeMap<usize, usize> {
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
