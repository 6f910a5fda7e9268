//! Numbers of new rows: those that the server gives them, which the study reads, and those of one column, which
//! kinds of transactions share.

use std::collections::BTreeMap;

use crate::Dialect;
use crate::declared::sql::{Scanned, Token};

use super::steps::{Naming, is_mark};

/// The column of each value, in their order: of a row that an INSERT names, or that the value is compared with or
/// assigned to; none for others.
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
        let is_sign = |idx: usize, signs: &[char]| matches!(scanned.tokens.get(idx), Some(Token::Sign(sign)) if signs.contains(sign));
        let values = (0..scanned.tokens.len())
            .find(|&idx| matches!(scanned.word(idx), "values" | "value"))
            .unwrap_or(scanned.tokens.len());
        let (mut depth, mut nth) = (0, 0);
        for idx in values + 1..scanned.tokens.len() {
            if is_sign(idx, &['(']) {
                depth += 1;
            } else if is_sign(idx, &[')']) {
                depth -= 1;
                if depth == 0 {
                    nth = 0;
                }
            } else if is_sign(idx, &[',']) && depth == 1 {
                nth += 1;
            } else if depth == 0 && !is_sign(idx, &[',']) {
                break;
            } else if is_sign(idx - 1, &['(', ','])
                && is_sign(idx + 1, &[')', ','])
                && let Some(column) = columns.get(nth)
            {
                found.insert(scanned.spans[idx].start, column.clone());
            }
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

/// The numbers that the server gave to rows: the place of each, by the step that inserted the row. They are
/// recognised by what they look like later in the transaction: numbers of new rows that come from nowhere, and are
/// no key of another new row.
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

/// The sequences of numbers of new rows of one column, over all kinds of transactions.
#[derive(Debug, Default)]
pub(super) struct Sequences {
    /// By table and column.
    of: BTreeMap<(String, String), Numbers>,
}

/// The numbers of new rows in one column.
#[derive(Debug, Default)]
struct Numbers {
    highest: i64,
    /// Where they are drawn: kinds of transactions with the place in each.
    places: Vec<(usize, usize)>,
}

impl Sequences {
    pub(super) fn new(kinds: &[Naming<'_>]) -> Sequences {
        let mut sequences = Sequences::default();
        for (kind, naming) in kinds.iter().enumerate() {
            for (place, origin) in naming.origins.iter().enumerate() {
                let is_drawn =
                    origin.held.is_none() && !naming.given.values().any(|one| *one == place);
                let Some(column) = naming.new_column(place).filter(|_| is_drawn) else { continue };
                let (step_idx, idx) = naming.step_of(place);
                let highest = naming.shape.steps[step_idx].stats(idx).highest_whole();
                // In a run of a statement each execution draws its own.
                let is_steady = naming.shape.steps[step_idx].is_steady(idx);
                let highest = highest.filter(|_| is_steady && naming.is_numbering(place));
                if let Some(highest) = highest {
                    let numbers = sequences.of.entry(column).or_default();
                    numbers.highest = highest.max(numbers.highest);
                    numbers.places.push((kind, place));
                }
            }
        }
        sequences.of.retain(|_, numbers| numbers.places.len() > 1);
        sequences
    }

    /// The generator of the numbers of a place that shares its column with others: each takes every so many.
    pub(super) fn generator(
        &self,
        kind: usize,
        naming: &Naming<'_>,
        place: usize,
    ) -> Option<String> {
        let Numbers { highest, places } = self.of.get(&naming.new_column(place)?)?;
        let nth = places.iter().position(|one| *one == (kind, place))?;
        let start = highest.checked_add(1 + nth as i64).filter(|start| *start < i64::MAX / 2)?;
        Some(format!("{{ sequence = {start}, step = {} }}", places.len()))
    }
}
