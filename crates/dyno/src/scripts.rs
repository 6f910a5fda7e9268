//! Script files that a study names: read before the study is, so that all that follows works on texts.

use std::collections::BTreeMap;
use std::path::Path;

use dyno_workload::catalog::Catalog;
use dyno_workload::pgbench::{self, ScriptText};
use sha2::{Digest, Sha256};
use toml::Value;

/// The catalogue for a study: the built-in workloads, and scripts if it names any. A file's name is
/// relative to the folder of the study.
///
/// What is wrong with the study itself, its parser says; so nothing is reported of it here.
///
/// # Errors
///
/// A script file that cannot be read.
pub(crate) fn catalog(study: &str, folder: &Path) -> anyhow::Result<Catalog> {
    let mut catalog = Catalog::built_in();
    let Ok(study) = study.parse::<toml::Table>() else { return Ok(catalog) };
    let Some(files) = named(&study) else { return Ok(catalog) };
    let mut texts = BTreeMap::new();
    for file in files {
        if dyno_pgbench::BUILT_IN.iter().any(|script| script.name == file) {
            continue;
        }
        let path = folder.join(&file);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            crate::usage_error(anyhow::anyhow!(
                "cannot read the script {}: {error}",
                path.display()
            ))
        })?;
        let digest = Sha256::digest(&text);
        let digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        texts.insert(file, ScriptText { text, digest });
    }
    catalog.add(pgbench::spec(texts));
    Ok(catalog)
}

/// The scripts that tables of the workload name, and those that are levels of a factor; none if no table
/// is of that workload.
fn named(study: &toml::Table) -> Option<Vec<String>> {
    let tables = study.get("workload")?.as_table()?;
    let is_ours = |(name, table): (&String, &Value)| {
        let word = table.get("workload").and_then(Value::as_str).unwrap_or(name);
        word == pgbench::NAME
    };
    if !tables.iter().any(is_ours) {
        return None;
    }
    let of_tables = tables.values().filter_map(|table| table.get("script"));
    let vary = study.get("design").and_then(|design| design.get("vary"));
    let levels = ["workload.script", "option.script"].into_iter();
    let of_levels = levels.filter_map(|key| vary?.get(key)?.as_array()).flatten();
    let texts = of_tables.chain(of_levels).filter_map(Value::as_str);
    Some(texts.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(study: &str, expected: Option<&[&str]>) {
        let found = named(&study.parse().expect("it is TOML"));
        let found: Option<Vec<&str>> =
            found.as_ref().map(|names| names.iter().map(String::as_str).collect());
        assert_eq!(found.as_deref(), expected, "{study}");
    }

    #[test]
    fn scripts_are_found_in_tables_and_levels() {
        check("[workload.tpcb]\nscript = 'select-only'\n", None);
        check("[workload.pgbench]\nscript = 'a.sql'\n", Some(&["a.sql"]));
        let varied = "[workload.x]\nworkload = 'pgbench'\n\
            [design]\nvary = { \"workload.script\" = ['a.sql', 'b.sql'] }\n";
        check(varied, Some(&["a.sql", "b.sql"]));
        check("title = 'x'\n", None);
    }
}
