//! How much disk a plan's data sets will take, before anything is made.

use dyno_study::Plan;
use dyno_workload::{Dialect, Row};

use crate::manifest::{make_workload, own_steps};

/// The data set of one variant, as far as it can be told beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedData {
    /// Rows.
    pub rows: u64,
    /// Bytes: rows as text, and for each one [`ROW_OVERHEAD`] for headers and an index entry.
    pub bytes: u64,
}

/// Bytes a row takes beside its own text: row and page headers, and one secondary index entry.
const ROW_OVERHEAD: u64 = 45;

/// Rows looked at to tell a table's mean row.
const SAMPLE_ROWS: u64 = 50;

/// The data set of each variant of the plan.
pub fn expected_disk(plan: &Plan) -> anyhow::Result<Vec<ExpectedData>> {
    plan.variants
        .iter()
        .map(|variant| {
            let workload = make_workload(variant, plan.seed)?;
            own_steps(plan, workload.as_ref()).map_err(anyhow::Error::msg)?;
            let mut data = ExpectedData { rows: 0, bytes: 0 };
            let (mut row, mut text) = (Row::new(), Vec::new());
            // Rows do not depend on the dialect; only the statements that make the tables do.
            for (idx, table) in workload.tables(Dialect::MySql).iter().enumerate() {
                let sampled = table.rows.min(SAMPLE_ROWS);
                text.clear();
                for nth in 0..sampled {
                    row.clear();
                    workload.fill_row(idx, nth * (table.rows / sampled), &mut row);
                    row.write_tab_separated(&mut text);
                }
                let mean = text.len() as u64 / sampled.max(1);
                data.rows += table.rows;
                data.bytes += table.rows * (mean + ROW_OVERHEAD);
            }
            Ok(data)
        })
        .collect()
}
