//! `dyno sql`: queries on a run's record.

use std::path::Path;

use anyhow::Context;
use dyno_record::QueryRows;

use crate::commands::counted;
use crate::{End, terminal};

/// Runs a query and prints its rows.
pub(crate) fn run(folder: &Path, query: &str, is_tsv: bool) -> anyhow::Result<End> {
    let answer = dyno_record::query(folder, query).context("cannot query the record")?;
    terminal::out(&if is_tsv { tsv(&answer) } else { table(&answer) });
    Ok(End::Good)
}

fn tsv(answer: &QueryRows) -> String {
    let mut out = answer.columns.join("\t") + "\n";
    for row in &answer.rows {
        let cells: Vec<String> = row
            .iter()
            .map(|cell| cell.as_deref().unwrap_or("").replace(['\t', '\n'], " "))
            .collect();
        out += &(cells.join("\t") + "\n");
    }
    out
}

fn table(answer: &QueryRows) -> String {
    let cell = |cell: &Option<String>| cell.clone().unwrap_or_else(|| "NULL".to_owned());
    let mut rows: Vec<Vec<String>> = vec![answer.columns.clone()];
    rows.extend(answer.rows.iter().map(|row| row.iter().map(cell).collect()));
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).min(60)
    };
    let widths: Vec<usize> = (0..answer.columns.len()).map(width).collect();
    let mut out = String::new();
    for (idx, row) in rows.iter().enumerate() {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}")).collect();
        out += cells.join("  ").trim_end();
        out.push('\n');
        if idx == 0 {
            let rules: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
            out += &(rules.join("  ") + "\n");
        }
    }
    out + &format!("({})\n", counted(answer.rows.len(), "row"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_aligned_under_their_columns() {
        let answer = QueryRows {
            columns: vec!["a".into(), "name".into()],
            rows: vec![vec![Some("10".into()), None]],
        };
        assert_eq!(table(&answer), "a   name\n--  ----\n10  NULL\n(1 row)\n");
        assert_eq!(tsv(&answer), "a\tname\n10\t\n");
    }
}
