//! Findings and runs → tidy tables, one observation a row, as CSV, JSON lines or Parquet.
//!
//! `estimates` and `comparisons` hold what was found, `bound_by` what limited it; `trials` each trial, step and kind of
//! transaction on its own; `seconds` what clients and probes saw in each second, and `kind_seconds` each
//! kind of transaction in it, where a step has several. The Insert Benchmark has tables in the columns of
//! its author.

mod insert_benchmark;
#[cfg(feature = "parquet")]
mod parquet;
mod tables;
mod text;

use std::collections::BTreeSet;

use dyno_analysis::Findings;
use dyno_record::Run;

use crate::times::Times;
#[cfg(feature = "parquet")]
pub use parquet::{ExportError, parquet};
pub use text::{csv, jsonl};

/// A table: columns of the same length.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its name, as that of a file: `estimates`.
    pub name: &'static str,
    pub columns: Vec<Column>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name: lower case, words joined by underscores; a reading as the probe names it.
    pub name: String,
    /// Its unit: `µs`, `1/s`; empty where it has none.
    pub unit: String,
    pub values: Values,
}

/// Values of a column; none where there is no value.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    Text(Vec<Option<String>>),
    /// Numbers; what is no number (not finite) is none.
    Number(Vec<Option<f64>>),
    Whole(Vec<Option<i64>>),
}

impl Values {
    pub fn len(&self) -> usize {
        match self {
            Values::Text(values) => values.len(),
            Values::Number(values) => values.len(),
            Values::Whole(values) => values.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Table {
    /// Rows.
    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Cells of a table that may be there without a value: an hour of four products that have a thousand readings each.
const EMPTY_MOST: usize = 1 << 24;

/// Cells for each one with a value: more products than a report has, each with readings of its own.
const CELLS_OF_VALUE: usize = 8;

/// Looks whether the table of seconds would hardly have values: it has a column for each reading of any trial, and a row
/// for each second of all.
///
/// # Errors
///
/// It would.
pub fn check_size(runs: &[Run]) -> Result<(), String> {
    let steps = || runs.iter().flat_map(|run| &run.trials).flat_map(|trial| &trial.steps);
    let names: BTreeSet<&String> = steps().flat_map(|step| step.readings.keys()).collect();
    let rows: usize = steps().map(|step| step.intervals.start_s.len()).sum();
    let values: usize = steps().flat_map(|step| step.readings.values()).map(Vec::len).sum();
    let cells = names.len().saturating_mul(rows);
    if cells > values.saturating_mul(CELLS_OF_VALUE).saturating_add(EMPTY_MOST) {
        return Err(format!(
            "the table of seconds would have {rows} rows with {} columns of readings, and next to no values in them; \
             export these runs one by one",
            names.len()
        ));
    }
    Ok(())
}

/// Makes all tables. Those of limits, of kinds by the second and of the Insert Benchmark are there only if
/// they have rows.
pub fn tables(findings: &Findings, runs: &[Run], times: &Times) -> Vec<Table> {
    let mut all = vec![
        tables::estimates(findings),
        tables::comparisons(findings),
        tables::trials(findings, runs),
        tables::seconds(findings, runs),
    ];
    let more = [
        tables::bound_by(findings),
        tables::kind_seconds(findings, runs, times),
        insert_benchmark::columns(findings),
        insert_benchmark::buckets(findings),
    ];
    all.extend(more.into_iter().filter(|table| !table.is_empty()));
    all.push(columns(&all));
    all
}

/// The columns of these tables, with their units.
fn columns(tables: &[Table]) -> Table {
    let of = |value: fn(&Table, &Column) -> String| {
        let all = tables.iter().flat_map(|table| table.columns.iter().map(move |c| (table, c)));
        Values::Text(all.map(|(table, column)| Some(value(table, column))).collect())
    };
    let column = |name: &str, values| Column { name: name.to_owned(), unit: String::new(), values };
    Table {
        name: "columns",
        columns: vec![
            column("table", of(|table, _| table.name.to_owned())),
            column("column", of(|_, column| column.name.clone())),
            column("unit", of(|_, column| column.unit.clone())),
        ],
    }
}

#[cfg(test)]
mod tests;
