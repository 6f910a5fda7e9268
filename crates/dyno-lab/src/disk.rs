//! Estimates the disk space of a plan's data sets.

use std::collections::HashMap;

use anyhow::Result;
use dyno_study::{Plan, Variant, WorkloadChoice};
use dyno_workload::Row;
use dyno_workload::catalog::Catalog;

use crate::manifest::plan_workload;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedData {
    pub rows: u64,
    /// Bytes: rows as text, and for each one [`ROW_OVERHEAD`] for headers and an index entry.
    pub bytes: u64,
    /// Whether tables are filled before the first step, rather than by the workload's own steps.
    pub is_populated: bool,
}

/// Bytes a row takes beside its own text: row and page headers, and one secondary index entry.
const ROW_OVERHEAD: u64 = 45;

/// Per row that a workload's own steps insert, with secondary indexes: the Insert Benchmark's.
const LOADED_ROW_BYTES: u64 = 200;

/// Rows looked at to tell a table's mean row.
const SAMPLE_ROWS: u64 = 50;

/// Rows looked at for all variants together, about: a plan may have very many of them.
const SAMPLE_ROWS_ALL: u64 = 200_000;

pub fn expected_disk(catalog: &Catalog, plan: &Plan) -> Result<Vec<ExpectedData>> {
    let n_variants = plan.variants.len().max(1) as u64;
    let samples = (SAMPLE_ROWS_ALL / n_variants).clamp(1, SAMPLE_ROWS);
    let mut known: HashMap<&WorkloadChoice, ExpectedData> = HashMap::new();
    let mut all = Vec::with_capacity(plan.variants.len());
    for variant in &plan.variants {
        let data = match known.get(variant.workload.as_ref()) {
            Some(data) => *data,
            None => {
                let data = expected(catalog, plan, variant, samples)?;
                known.insert(&variant.workload, data);
                data
            }
        };
        all.push(data);
    }
    Ok(all)
}

fn expected(catalog: &Catalog, plan: &Plan, variant: &Variant, most: u64) -> Result<ExpectedData> {
    let workload = plan_workload(catalog, plan, variant)?;
    let mut data = ExpectedData { rows: 0, bytes: 0, is_populated: false };
    let (mut row, mut text) = (Row::new(), Vec::new());
    // Tables of the same columns and size have similar rows.
    for shape in workload.table_shapes() {
        let sampled = shape.rows.min(most);
        text.clear();
        for nth in 0..sampled {
            row.clear();
            workload.fill_row(shape.first, nth * (shape.rows / sampled), &mut row);
            row.write_tab_separated(&mut text);
        }
        let mean = text.len() as u64 / sampled.max(1);
        let rows = shape.rows.saturating_mul(shape.n_tables);
        data.rows = data.rows.saturating_add(rows);
        data.bytes = data.bytes.saturating_add(rows.saturating_mul(mean + ROW_OVERHEAD));
    }
    if let Some(bytes) = workload.outline().bytes_on_disk {
        data.bytes = bytes;
    }
    data.is_populated = data.rows > 0;
    let loaded = workload.outline().rows_of_steps;
    data.rows += loaded;
    data.bytes += loaded * LOADED_ROW_BYTES;
    Ok(data)
}
