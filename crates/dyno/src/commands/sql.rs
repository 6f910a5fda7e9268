//! `dyno sql`: queries on a run's record.

use std::path::Path;

use anyhow::Context;
use dyno_record::QueryRows;

use crate::commands::{check_run_folder, counted};
use crate::{End, terminal};

pub(crate) fn run(folder: &Path, query: &str, is_tsv: bool) -> anyhow::Result<End> {
    check_run_folder(folder)?;
    let answer = dyno_record::query(folder, as_statement(query)).with_context(|| failed(query))?;
    let is_schema = is_schema(query);
    terminal::out(&match is_tsv {
        true => tsv(&answer),
        false if is_schema => statements(&answer),
        false => table(&answer),
    });
    Ok(End::Good)
}

fn failed(query: &str) -> &'static str {
    match is_schema(query) {
        true => "cannot query the record",
        false => "cannot query the record (`.schema` lists its tables and columns)",
    }
}

fn is_schema(query: &str) -> bool {
    query.trim().trim_end_matches(';') == ".schema"
}

fn statements(answer: &QueryRows) -> String {
    answer.rows.iter().flatten().flatten().map(|sql| format!("{sql};\n")).collect()
}

/// Understands two commands of SQLite's shell.
fn as_statement(query: &str) -> &str {
    match query.trim().trim_end_matches(';') {
        ".schema" => "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name",
        ".tables" => "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name",
        _ => query,
    }
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
    fn two_commands_of_sqlites_shell_are_understood() {
        let check = |query: &str, expected: &str| {
            assert!(as_statement(query).starts_with(expected), "{query}: {}", as_statement(query));
        };
        check(".schema", "SELECT sql FROM");
        check(" .tables; ", "SELECT name FROM");
        check("SELECT 1", "SELECT 1");
        let sql = Some("CREATE TABLE t (a)".to_owned());
        let answer = QueryRows { columns: vec!["sql".into()], rows: vec![vec![sql]] };
        assert_eq!(statements(&answer), "CREATE TABLE t (a);\n");
    }

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
