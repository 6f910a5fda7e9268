//! The schema of workloads that a study declares: tables, columns, transactions, steps and generators, from
//! the keys that their parser reads by.

use dyno_model::declared::{
    COLUMN, DIALECTS, DeclaredGenerator, DeclaredKey, DeclaredValue, GENERATORS, NULL, STEP, THINK,
};
use serde_json::{Map, Value, json};

use super::{DURATION, PERCENTAGE, matching, number_or_text, setting, text};

pub(super) fn tables(keys: &[DeclaredKey]) -> Value {
    json!({ "type": "object", "minProperties": 1, "additionalProperties": table(keys) })
}

pub(super) fn definitions() -> impl Iterator<Item = (String, Value)> {
    let all = [("declared-column", table(COLUMN)), ("declared-step", table(STEP))];
    let all = all.into_iter().chain([("declared-generator", generator())]);
    all.map(|(name, value)| (name.to_owned(), value))
}

/// A table with exactly these keys.
fn table<'k>(keys: impl IntoIterator<Item = &'k DeclaredKey>) -> Value {
    let mut properties = Map::new();
    let mut needed = Vec::new();
    for key in keys {
        let mut one = value(key.value);
        one["description"] = json!(key.help);
        properties.insert(key.name.to_owned(), one);
        needed.extend(key.is_needed.then_some(key.name));
    }
    let mut table =
        json!({ "type": "object", "additionalProperties": false, "properties": properties });
    if !needed.is_empty() {
        table["required"] = json!(needed);
    }
    table
}

/// A generator: a constant, or a table that one key names.
fn generator() -> Value {
    let one = |one: &DeclaredGenerator| {
        let mut value = table([&one.key, &NULL].into_iter().chain(one.beside));
        value["description"] = json!(one.key.help);
        value
    };
    let mut all = vec![setting()];
    all.extend(GENERATORS.iter().map(one));
    json!({ "anyOf": all })
}

fn list(items: &Value) -> Value {
    json!({ "type": "array", "items": items, "minItems": 1 })
}

fn two(items: &Value) -> Value {
    json!({ "type": "array", "items": items, "minItems": 2, "maxItems": 2 })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/declared-{name}") })
}

fn by_name(inner: &Value) -> Value {
    json!({ "type": "object", "additionalProperties": inner })
}

fn value(value: DeclaredValue) -> Value {
    use DeclaredValue as V;
    let whole = json!({ "type": "integer" });
    let duration = matching(DURATION, &["5ms"]);
    match value {
        V::Count(least) => number_or_text("integer", least, i64::MAX as u64),
        V::Whole(least, most) => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        V::Number => json!({ "type": "number" }),
        V::Switch => json!({ "type": "boolean" }),
        V::True => json!({ "const": true }),
        V::Text => text(),
        V::PerDialect => {
            let texts: Map<String, Value> =
                DIALECTS.iter().map(|name| ((*name).to_owned(), text())).collect();
            let each = json!({
                "type": "object",
                "additionalProperties": false,
                "minProperties": 1,
                "properties": texts,
            });
            json!({ "anyOf": [text(), each] })
        }
        V::Constant => setting(),
        V::Constants => list(&setting()),
        V::Mapped => by_name(&setting()),
        V::Texts => list(&text()),
        V::TextLists => {
            json!({ "type": "array", "items": list(&text()) })
        }
        V::Wholes => list(&json!({ "type": "integer", "minimum": 0 })),
        V::TwoTexts => two(&text()),
        V::Length => json!({ "anyOf": [whole, two(&whole)] }),
        V::Bounds => {
            json!({ "anyOf": [text(), two(&json!({ "type": ["string", "number"] }))] })
        }
        V::First => json!({ "type": ["integer", "string"] }),
        V::Share => json!({ "anyOf": [
            matching(PERCENTAGE, &["10%"]),
            { "type": "number", "minimum": 0, "maximum": 1 },
        ] }),
        V::Rows => json!({ "anyOf": [
            { "type": "integer", "minimum": 0 },
            matching(r"^.*\.\..*$", &["0..1", "1.."]),
        ] }),
        V::Think => json!({ "anyOf": [duration, table(THINK)] }),
        V::Columns => {
            let mut columns = by_name(&reference("column"));
            columns["minProperties"] = json!(1);
            columns
        }
        V::Generator => reference("generator"),
        V::Generators => by_name(&reference("generator")),
        V::Steps => list(&reference("step")),
    }
}
