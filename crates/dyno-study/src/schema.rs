//! The JSON Schema of study files, with which editors complete and check them.
//!
//! Made from the same key table that the parser reads by. It is kinder than the parser: what only
//! several keys together make wrong is left to `dyno check`.

mod declared;

use dyno_model::{OptionKind, OptionSpec};
use serde_json::{Map, Value, json};

use crate::Vocabulary;
use crate::keys::{Key, MACHINE, Shape};
use crate::parse::kind::{BASELINE, DESIGN, KINDS, SHORT, STUDY, VARY};
use crate::parse::table::Kind;
use crate::vocabulary::{ProductWord, WorkloadWord};

const DURATION: &str = r"^\s*(0|([0-9._]+\s*(ns|us|µs|ms|s|sec|m|min|h|d)\s*)+)\s*$";
const COUNT: &str = r"^\s*[0-9._]+\s*[kKmMBG]?\s*$";
const SIZE: &str = r"^\s*[0-9._]+\s*([kKmMgGtT](i?B)?|B)?\s*$";
const STEPPED: &str = r"^\s*[0-9][^,]*for[^,]*(,\s*[0-9][^,]*for[^,]*)*$";
const PERCENTAGE: &str = r"^\s*[0-9._]+\s*%\s*$";

const LIMIT: &str = r"^\s*(mean|p50|p90|p95|p99|p99\.9|p999|max)\s*(<=|≤|<)\s*[0-9].*$";
const REQUIREMENT: &str =
    r"^\s*((mean|p50|p95|p99|p99\.9|p999|max)\s*(<=|≤|<)|throughput\s*(>=|≥|>))\s*[0-9].*$";

const PRICE: &str = r"^\s*[0-9._]+\s*[A-Z]{3}\s*$";

/// The schema (JSON Schema draft 2020-12) as a JSON value.
pub fn schema(vocabulary: &Vocabulary) -> Value {
    let mut root = table(&STUDY, vocabulary);
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("Dyno study");
    root["description"] =
        json!("A question about database performance, and the complete design to answer it.");
    let needed = KINDS.iter().filter(|kind| kind.needed.is_some()).map(|kind| kind.name);
    root["required"] = ["title"].into_iter().chain(needed).collect();
    let mut definitions = Map::new();
    for kind in KINDS {
        definitions.insert(kind.name.to_owned(), one_table(kind, vocabulary));
    }
    for word in &vocabulary.workloads {
        definitions.insert(format!("workload-{}", word.name), workload(word, vocabulary));
    }
    definitions.extend(declared::definitions());
    root["$defs"] = Value::Object(definitions);
    root
}

/// A table with exactly these keys.
fn table(keys: &[Key], vocabulary: &Vocabulary) -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": properties(keys, vocabulary),
    })
}

fn properties(keys: &[Key], vocabulary: &Vocabulary) -> Map<String, Value> {
    keys.iter().map(|key| (key.name.to_owned(), property(key, vocabulary))).collect()
}

fn property(key: &Key, vocabulary: &Vocabulary) -> Value {
    let mut value = shape(&key.shape, vocabulary);
    value["description"] = json!(key.help);
    if let Some(default) = key.default {
        // TOML's texts, numbers and booleans are written as in JSON.
        value["default"] = serde_json::from_str(default).unwrap_or_else(|_| json!(default));
    }
    value
}

fn shape(shape: &Shape, vocabulary: &Vocabulary) -> Value {
    match shape {
        Shape::Text | Shape::Url => text(),
        Shape::Setting => setting(),
        Shape::Words(words) => json!({ "enum": words.iter().collect::<Vec<_>>() }),
        Shape::Probe => json!({ "enum": vocabulary.probes }),
        Shape::Product => {
            json!({ "enum": vocabulary.products.iter().map(|word| &word.name).collect::<Vec<_>>() })
        }
        Shape::Workload => json!({
            "enum": vocabulary.workloads.iter().map(|word| &word.name).collect::<Vec<_>>()
        }),
        // The engines of one product are chosen by a condition on the whole table.
        Shape::Engine => json!({ "type": "string", "examples": engines(vocabulary) }),
        Shape::Filesystem => json!({ "enum": vocabulary.filesystems }),
        Shape::Source => json!({ "enum": vocabulary.sources }),
        Shape::Size | Shape::SizeOrZero => matching(SIZE, &["8GiB"]),
        Shape::Switch => json!({ "type": "boolean" }),
        Shape::Count(least, most) => number_or_text("integer", *least, *most),
        Shape::Integer(least, most) => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Shape::Rate => json!({ "anyOf": [
            { "type": "number", "exclusiveMinimum": 0 },
            { "type": "string", "pattern": COUNT },
            { "type": "string", "pattern": STEPPED, "examples": ["500 for 10s, 2k for 5s"] },
        ] }),
        Shape::Duration | Shape::PositiveDuration => matching(DURATION, &["30s", "5min", "2h"]),
        Shape::Limit => matching(LIMIT, &["p99 <= 20ms"]),
        Shape::Requirements => {
            one_or_more(&matching(REQUIREMENT, &["p99 <= 20ms", "throughput >= 1000"]))
        }
        Shape::Price => matching(PRICE, &["0.192 USD"]),
        Shape::Command => json!({ "type": "array", "items": text(), "minItems": 1 }),
        Shape::Names | Shape::Urls => levels(&text()),
        Shape::Texts => json!({ "anyOf": [text(), { "type": "array", "items": text() }] }),
        Shape::Percentage => json!({ "type": "string", "pattern": PERCENTAGE }),
        Shape::Cpus => levels(&json!({ "type": "integer", "minimum": 0 })),
        Shape::Levels(inner) => levels(&self::shape(inner, vocabulary)),
        Shape::OneOrMore(inner) => one_or_more(&self::shape(inner, vocabulary)),
        _ => table_shape(shape, vocabulary),
    }
}

fn table_shape(shape: &Shape, vocabulary: &Vocabulary) -> Value {
    let by_name = |inner: Value| json!({ "type": "object", "additionalProperties": inner });
    match shape {
        Shape::Settings | Shape::SettingValues => by_name(setting()),
        Shape::SettingLevels => by_name(levels(&setting())),
        Shape::OptionValues => option_table(vocabulary, |option| option),
        Shape::OptionLevels => option_table(vocabulary, |option| levels(&option)),
        Shape::Vary => vary(vocabulary),
        Shape::Baseline => baseline(vocabulary),
        Shape::Design => table(&DESIGN, vocabulary),
        Shape::Machine => table(MACHINE, vocabulary),
        Shape::Declaration(keys) => declared::tables(keys),
        Shape::Recipes => json!({
            "type": "object",
            "additionalProperties": { "type": "object" },
        }),
        Shape::Tables("workload") => workloads(vocabulary),
        Shape::Tables(kind) => json!({
            "type": "object",
            "minProperties": 1,
            "additionalProperties": { "$ref": format!("#/$defs/{kind}") },
        }),
        _ => json!({}),
    }
}

fn one_or_more(one: &Value) -> Value {
    json!({ "anyOf": [one, levels(one)] })
}

fn matching(pattern: &str, examples: &[&str]) -> Value {
    json!({ "type": "string", "pattern": pattern, "examples": examples })
}

fn text() -> Value {
    json!({ "type": "string", "minLength": 1 })
}

/// A table of a kind. What only holds for some kinds is added here.
fn one_table(kind: &Kind, vocabulary: &Vocabulary) -> Value {
    match kind.name {
        "database" => database(kind, vocabulary),
        "workload" => any_workload(kind, vocabulary),
        "probe" => probe(kind, vocabulary),
        _ => table(kind.keys, vocabulary),
    }
}

fn vary(vocabulary: &Vocabulary) -> Value {
    let mut value = table(&VARY, vocabulary);
    let mut patterns = Map::new();
    for (path, one) in paths(vocabulary) {
        match path.strip_suffix("NAME") {
            Some(head) => {
                let pattern = format!("^{}", head.replace('.', "\\."));
                patterns.insert(pattern, levels(&one));
            }
            None => value["properties"][path] = levels(&one),
        }
    }
    value["patternProperties"] = Value::Object(patterns);
    value
}

/// The paths of all fields that can be varied, each with its value. Behind some, a name follows in place
/// of `NAME`.
fn paths(vocabulary: &Vocabulary) -> Vec<(String, Value)> {
    let short = SHORT.iter().map(|short| (format!("{}.NAME", short.word), setting()));
    let fields = KINDS.iter().flat_map(|kind| {
        let of_key = move |key: &'static Key| match key.shape {
            Shape::Settings => (format!("{}.{}.NAME", kind.name, key.name), setting()),
            _ => (format!("{}.{}", kind.name, key.name), property(key, vocabulary)),
        };
        let options = if kind.has_options { all_options(vocabulary) } else { Default::default() };
        let options =
            options.into_iter().map(|one| (format!("{}.{}", kind.name, one.name), option(one)));
        kind.variable().map(of_key).chain(options)
    });
    short.chain(fields).collect()
}

fn probe(kind: &Kind, vocabulary: &Vocabulary) -> Value {
    let mut value = table(kind.keys, vocabulary);
    value["anyOf"] = json!([{ "required": ["command"] }, { "required": ["sql"] }]);
    value["not"] = json!({ "required": ["command", "sql"] });
    value
}

fn number_or_text(kind: &str, least: u64, most: u64) -> Value {
    json!({ "anyOf": [
        { "type": kind, "minimum": least, "maximum": most },
        { "type": "string", "pattern": COUNT },
    ] })
}

fn levels(inner: &Value) -> Value {
    json!({ "type": "array", "items": inner, "minItems": 1, "uniqueItems": true })
}

fn setting() -> Value {
    json!({ "type": ["string", "number", "boolean"] })
}

fn engines(vocabulary: &Vocabulary) -> Vec<&String> {
    vocabulary.products.iter().flat_map(|word| &word.engines).collect()
}

fn baseline(vocabulary: &Vocabulary) -> Value {
    let mut value = table(&BASELINE, vocabulary);
    value["minProperties"] = json!(1);
    let heads = SHORT.iter().map(|short| short.word);
    let kinds = KINDS.iter().filter(|kind| kind.is_chosen).map(|kind| kind.name);
    let patterns = heads.chain(kinds).map(|head| (format!("^{head}\\."), setting()));
    value["patternProperties"] = Value::Object(patterns.collect());
    value
}

fn database(kind: &Kind, vocabulary: &Vocabulary) -> Value {
    let mut value = table(kind.keys, vocabulary);
    value["description"] =
        json!("A database: a product that Dyno starts, or the URL of a running server.");
    value["not"] = json!({ "required": ["product", "url"] });
    value["allOf"] = vocabulary.products.iter().map(of_product).collect();
    value
}

fn of_product(word: &ProductWord) -> Value {
    let is_product = json!({ "properties": { "product": { "const": word.name } } });
    let engine = if word.engines.is_empty() {
        json!(false)
    } else {
        // The parser does not distinguish case, so other spellings are not refused here.
        json!({ "anyOf": [{ "enum": word.engines }, { "type": "string" }] })
    };
    let mut then = json!({ "properties": { "engine": engine } });
    if word.is_embedded {
        then["properties"]["version"] = json!(false);
        then["properties"]["programs"] = json!(false);
        then["properties"]["from"] = json!(false);
    }
    json!({
        "if": { "allOf": [is_product, { "required": ["product"] }] },
        "then": then,
        "description": word.summary,
    })
}

fn workloads(vocabulary: &Vocabulary) -> Value {
    let named = |word: &WorkloadWord| {
        let reference = format!("#/$defs/workload-{}", word.name);
        (word.name.clone(), json!({ "$ref": reference, "description": word.summary }))
    };
    let named: Map<String, Value> = vocabulary.workloads.iter().map(named).collect();
    json!({
        "type": "object",
        "minProperties": 1,
        "properties": named,
        "additionalProperties": { "$ref": "#/$defs/workload" },
    })
}

/// A table named after its workload. Keys of other workloads are not refused, because `workload`
/// in the table may name another one.
fn workload(word: &WorkloadWord, vocabulary: &Vocabulary) -> Value {
    let keys = crate::parse::kind::WORKLOAD.keys;
    let mut properties = properties(keys, vocabulary);
    for option in &word.options {
        properties.insert(option.name.clone().into_owned(), self::option(option));
    }
    let mut names: Vec<&str> = keys.iter().map(|key| key.name).collect();
    names.extend(all_options(vocabulary).iter().map(|option| option.name.as_ref()));
    json!({
        "type": "object",
        "description": word.summary,
        "properties": properties,
        "propertyNames": { "enum": names },
    })
}

fn any_workload(kind: &Kind, vocabulary: &Vocabulary) -> Value {
    let mut value = table(kind.keys, vocabulary);
    for option in all_options(vocabulary) {
        value["properties"][option.name.as_ref()] = self::option(option);
    }
    value["anyOf"] = json!([
        { "required": ["workload"] },
        { "required": ["like"] },
        { "required": ["transaction"] },
    ]);
    value
}

fn all_options(vocabulary: &Vocabulary) -> Vec<&OptionSpec> {
    let mut seen = std::collections::BTreeSet::new();
    let all = vocabulary.workloads.iter().flat_map(|word| &word.options);
    all.filter(|option| seen.insert(&option.name)).collect()
}

fn option_table(vocabulary: &Vocabulary, wrap: impl Fn(Value) -> Value) -> Value {
    let one = |option: &OptionSpec| (option.name.clone().into_owned(), wrap(self::option(option)));
    let properties: Map<String, Value> = all_options(vocabulary).into_iter().map(one).collect();
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

fn option(option: &OptionSpec) -> Value {
    let mut value = match &option.kind {
        OptionKind::Count => number_or_text("integer", 0, i64::MAX as u64),
        OptionKind::Size => json!({ "type": ["integer", "string"], "minimum": 0 }),
        OptionKind::Real => json!({ "type": ["number", "string"] }),
        OptionKind::Switch => json!({ "enum": [true, false, "on", "off", "true", "false"] }),
        OptionKind::Word(words) => json!({ "enum": words.iter().collect::<Vec<&str>>() }),
        OptionKind::Counts => {
            let item = number_or_text("integer", 0, i64::MAX as u64);
            json!({ "type": ["array", "string", "integer"], "items": item, "minItems": 1, "minimum": 0 })
        }
        OptionKind::Text => json!({ "type": "string", "minLength": 1 }),
    };
    value["description"] = json!(option.help);
    value["default"] = default(option);
    value
}

fn default(option: &OptionSpec) -> Value {
    let text = &option.default;
    let number = match option.kind {
        OptionKind::Count => text.parse::<u64>().ok().map(Value::from),
        OptionKind::Real => text.parse::<f64>().ok().map(Value::from),
        _ => None,
    };
    number.unwrap_or_else(|| json!(text))
}

#[cfg(test)]
pub(crate) mod tests;
