//! Rows of tables, each a function of seed, table and number.

use dyno_units::Seed;

use crate::Row;

use super::definition::Definition;
use super::generator::Drawing;
use super::values::{Scratch, Slot, Values, push_fixed, push_real};

/// Makes the values of a row. What an expression cannot give is NULL; `failed` is told of it.
fn make(
    definition: &Definition,
    (table_idx, seed): (usize, Seed),
    number: u64,
    mut failed: impl FnMut(usize, String),
) -> Values {
    let table = &definition.tables[table_idx];
    let seed = seed.derive("", number);
    let mut random = seed.stream();
    let mut values = Values::new(table.columns.len(), 256);
    let mut scratch = Scratch::new(&definition.names, seed.derive("expressions", 0).0);
    let mut drawing = Drawing {
        random: &mut random,
        row: number,
        names: &definition.names,
        scratch: &mut scratch,
        sequences: &mut [],
        drawn: &[],
    };
    for (at, column) in table.columns.iter().enumerate() {
        let Some(generator) = &column.generator else { continue };
        if let Err(error) = generator.draw(at, &mut values, &mut drawing) {
            values.set(at, Slot::Null);
            failed(at, error.message().to_owned());
        }
    }
    values
}

pub(super) fn fill(definition: &Definition, table: (usize, Seed), number: u64, row: &mut Row) {
    let values = make(definition, table, number, |_, _| {});
    for (at, column) in definition.tables[table.0].columns.iter().enumerate() {
        if column.generator.is_none() {
            continue;
        }
        match values.slot(at) {
            Slot::Null => row.push_null(),
            Slot::Integer(number) => row.push_integer(number),
            Slot::Decimal { units, decimals } => {
                row.push_text_with(|out| push_fixed(out, units, decimals));
            }
            Slot::Real(number) => row.push_text_with(|out| push_real(out, number)),
            Slot::Text { .. } => row.push_text(values.text(at).unwrap_or_default()),
        }
    }
}

/// The first column of a row whose expression has no value, and why.
pub(super) fn first_failure(
    definition: &Definition,
    table_idx: usize,
    number: u64,
) -> Option<(String, String)> {
    let mut first = None;
    make(definition, (table_idx, Seed(0)), number, |at, why| {
        let column = &definition.tables[table_idx].columns[at];
        first.get_or_insert((column.name.clone(), why));
    });
    first
}
