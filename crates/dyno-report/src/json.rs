//! Findings → `findings.json`: every field, pretty, with a newline at the end.

use dyno_analysis::Findings;

/// Renders findings as JSON. `docs/findings.md` explains each field.
pub fn render(findings: &Findings) -> String {
    let mut text = serde_json::to_string_pretty(findings)
        .expect("findings hold only strings, numbers, lists and maps with text keys");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::fixture;

    const DOCUMENT: &str = include_str!("../../../docs/findings.md");

    /// Objects whose keys are data and not fields.
    const MAPS: [&str; 7] =
        ["environment", "options", "settings", "metrics", "absent", "outcomes", "kinds"];

    /// Collects the names of all fields.
    fn fields(value: &Value, is_map: bool, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(object) => {
                for (name, value) in object {
                    if !is_map {
                        found.insert(name.clone());
                    }
                    fields(value, !is_map && MAPS.contains(&name.as_str()), found);
                }
            }
            Value::Array(values) => values.iter().for_each(|v| fields(v, false, found)),
            _ => {}
        }
    }

    #[test]
    fn the_document_explains_every_field_and_word() {
        let findings = fixture::three_variants().0;
        let value: Value = serde_json::from_str(&render(&findings)).unwrap();
        let mut words = BTreeSet::new();
        fields(&value, false, &mut words);
        let names = findings.cells.iter().flat_map(|c| c.metrics.keys().chain(c.absent.keys()));
        let word = |json: Value| json.as_str().unwrap().to_owned();
        words.extend(names.map(|m| word(serde_json::to_value(m).unwrap())));
        words.extend(findings.caveats.iter().map(|c| word(serde_json::to_value(c.kind).unwrap())));
        assert!(words.len() > 60, "{}", words.len());
        for word in words {
            assert!(DOCUMENT.contains(&format!("`{word}`")), "{word} is not explained");
        }
    }

    /// The public fields of every struct of the analysis that is serialised, by the text of its source,
    /// and the words of every enum of caveats: also those that no fixture has.
    fn names_in(source: &str, found: &mut BTreeSet<String>) {
        let mut is_serialised = false;
        let mut lines = source.lines();
        while let Some(line) = lines.next() {
            if line.starts_with("#[derive(") {
                is_serialised = line.contains("Serialize");
            } else if is_serialised && line.starts_with("pub struct ") && line.ends_with('{') {
                let fields = lines.by_ref().take_while(|line| *line != "}");
                let field =
                    |line: &str| Some(line.strip_prefix("    pub ")?.split_once(':')?.0.to_owned());
                found.extend(fields.filter_map(field));
            }
        }
    }

    #[test]
    fn the_document_explains_what_no_fixture_has_and_everything_once() {
        let mut words = BTreeSet::new();
        let mut folders = vec![concat!(env!("CARGO_MANIFEST_DIR"), "/../dyno-analysis/src").into()];
        while let Some(folder) = folders.pop() {
            let folder: std::path::PathBuf = folder;
            for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                match entry.is_dir() {
                    true => folders.push(entry),
                    false => names_in(&std::fs::read_to_string(entry).unwrap(), &mut words),
                }
            }
        }
        assert!(words.len() > 200 && words.contains("chance"), "{}", words.len());
        // What is flattened into its holder, and what the gate's rule is given, are in no document.
        for hidden in ["comparison", "harm", "is_total_loss", "level"] {
            words.remove(hidden);
        }
        for word in words {
            assert!(DOCUMENT.contains(&format!("`{word}`")), "{word} is not explained");
        }
        for section in DOCUMENT.split("\n## ") {
            let rows = section.lines().filter(|line| line.starts_with("| `"));
            let mut names: Vec<&str> = rows.filter_map(|row| row.split(" | ").next()).collect();
            names.sort_unstable();
            let all = names.len();
            names.dedup();
            assert_eq!(
                names.len(),
                all,
                "a field is explained twice in {:?}",
                section.lines().next()
            );
        }
    }

    #[test]
    fn what_is_written_is_read_back_the_same() {
        for findings in [fixture::three_variants().0, fixture::single().0] {
            let text = render(&findings);
            assert!(text.ends_with("}\n"));
            assert_eq!(serde_json::from_str::<Findings>(&text).unwrap(), findings);
        }
    }
}
