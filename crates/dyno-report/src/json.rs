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

    #[test]
    fn what_is_written_is_read_back_the_same() {
        for findings in [fixture::three_variants().0, fixture::single().0] {
            let text = render(&findings);
            assert!(text.ends_with("}\n"));
            assert_eq!(serde_json::from_str::<Findings>(&text).unwrap(), findings);
        }
    }
}
