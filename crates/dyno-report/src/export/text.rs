//! A table as CSV or JSON lines. Units are in the table `columns`.

use serde_json::{Map, Value};

use super::{Table, Values};

/// As in RFC 4180: a missing value is an empty field.
pub fn csv(table: &Table) -> String {
    let mut out = String::new();
    let heads = table.columns.iter().map(|column| field(&column.name));
    out += &heads.collect::<Vec<_>>().join(",");
    out += "\r\n";
    for row in 0..table.len() {
        for (i, column) in table.columns.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            let text = match &column.values {
                Values::Text(values) => values[row].as_deref().map(field),
                Values::Number(values) => values[row].map(|value| value.to_string()),
                Values::Whole(values) => values[row].map(|value| value.to_string()),
            };
            out += &text.unwrap_or_default();
        }
        out += "\r\n";
    }
    out
}

/// What a spreadsheet takes for the beginning of a formula; some take the wide signs as well.
const FORMULA: [char; 10] = ['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠'];

/// A field, in quotes where it must be. What a spreadsheet would take for a formula gets an apostrophe before it, also
/// behind what ends a field in countries whose decimal sign is the comma: quotes within a field end nothing there.
fn field(text: &str) -> String {
    let mut guarded = String::with_capacity(text.len());
    let mut is_start = true;
    for c in text.chars() {
        if is_start && FORMULA.contains(&c) {
            guarded.push('\'');
        }
        guarded.push(c);
        is_start = matches!(c, ';' | '\t' | '\n' | '\r');
    }
    match guarded.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", guarded.replace('"', "\"\"")),
        false => guarded,
    }
}

/// An object for each row, missing values left out.
pub fn jsonl(table: &Table) -> String {
    let mut out = String::new();
    for row in 0..table.len() {
        let mut object = Map::new();
        for column in &table.columns {
            let value = match &column.values {
                Values::Text(values) => values[row].clone().map(Value::from),
                Values::Number(values) => values[row].map(Value::from),
                Values::Whole(values) => values[row].map(Value::from),
            };
            if let Some(value) = value {
                object.insert(column.name.clone(), value);
            }
        }
        out += &Value::Object(object).to_string();
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::field;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let check = |text: &str, expected: &str| assert_eq!(field(text), expected);
        check("MariaDB 12.3", "MariaDB 12.3");
        check("a, \"b\"", "\"a, \"\"b\"\"\"");
        check("two\nlines", "\"two\nlines\"");
        check("=cmd()", "'=cmd()");
        check("a;=cmd();-5", "a;'=cmd();'-5");
        check("a\n@x", "\"a\n'@x\"");
        check("＝cmd()", "'＝cmd()");
        check("a-b; c=d", "a-b; c=d");
        check("", "");
    }
}
