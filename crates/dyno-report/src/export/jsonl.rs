//! A table as JSON lines: an object for each row, missing values left out.

use serde_json::{Map, Value};

use super::{Table, Values};

/// Renders a table as JSON lines. Units are those of the CSV header; `docs/findings.md` lists them.
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
