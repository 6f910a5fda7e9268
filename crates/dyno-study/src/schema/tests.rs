//! The schema and the parser know the same keys, and right studies fit the schema.

use std::collections::BTreeSet;

use super::*;
use crate::fixture::{FULL_STUDY, study, vocabulary};
use crate::parse;

fn number(rule: &Value) -> u64 {
    rule.as_u64().expect("a whole number")
}

/// What of `value` does not fit `schema`: the keywords that the schema uses, by the rules of draft
/// 2020-12, except `pattern`, of which only the presence of digits is looked at.
fn misfit(root: &Value, schema: &Value, value: &Value, at: &str) -> Option<String> {
    let Some(keywords) = schema.as_object() else {
        return (schema == &json!(false)).then(|| format!("{at} is not allowed"));
    };
    let fail = |keyword: &str| Some(format!("{at} violates {keyword}: {value}"));
    let fits = |inner: &Value| misfit(root, inner, value, at).is_none();
    for (keyword, rule) in keywords {
        let is_right = match keyword.as_str() {
            "$ref" => {
                let pointer = rule.as_str().expect("a text").trim_start_matches('#');
                let inner = root.pointer(pointer).expect("the reference leads somewhere");
                if let Some(found) = misfit(root, inner, value, at) {
                    return Some(found);
                }
                true
            }
            "type" => match rule {
                Value::Array(types) => types.iter().any(|one| is_type(one, value)),
                one => is_type(one, value),
            },
            "enum" => rule.as_array().expect("a list").contains(value),
            "const" => rule == value,
            "anyOf" => rule.as_array().expect("a list").iter().any(fits),
            "allOf" => rule.as_array().expect("a list").iter().all(fits),
            "not" => !fits(rule),
            "if" => !fits(rule) || fits(&keywords["then"]),
            "minimum" => value.as_f64().is_none_or(|n| n >= rule.as_f64().expect("a number")),
            "exclusiveMinimum" => {
                value.as_f64().is_none_or(|n| n > rule.as_f64().expect("a number"))
            }
            "maximum" => value.as_f64().is_none_or(|n| n <= rule.as_f64().expect("a number")),
            "minLength" => value.as_str().is_none_or(|text| !text.is_empty()),
            "pattern" => {
                value.as_str().is_none_or(|text| text.contains(|c: char| c.is_ascii_digit()))
            }
            "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= number(rule)),
            "maxItems" => value.as_array().is_none_or(|items| items.len() as u64 <= number(rule)),
            "minProperties" => value.as_object().is_none_or(|keys| !keys.is_empty()),
            "required" => value.as_object().is_none_or(|keys| {
                let mut names = rule.as_array().expect("a list").iter();
                names.all(|name| keys.contains_key(name.as_str().expect("a text")))
            }),
            "items" => value.as_array().is_none_or(|items| {
                items.iter().all(|item| misfit(root, rule, item, at).is_none())
            }),
            "propertyNames" => value.as_object().is_none_or(|keys| {
                keys.keys().all(|key| misfit(root, rule, &json!(key), at).is_none())
            }),
            "properties" => {
                if let Some(found) = misfit_of_properties(root, keywords, value, at) {
                    return Some(found);
                }
                true
            }
            "additionalProperties" if !keywords.contains_key("properties") => {
                if let Some(found) = misfit_of_properties(root, keywords, value, at) {
                    return Some(found);
                }
                true
            }
            "additionalProperties" | "patternProperties" | "then" | "uniqueItems" => true,
            "description" | "default" | "examples" | "title" | "$schema" | "$defs" => true,
            other => panic!("the test does not know the keyword {other}"),
        };
        if !is_right {
            return fail(keyword);
        }
    }
    None
}

fn misfit_of_properties(
    root: &Value,
    keywords: &Map<String, Value>,
    value: &Value,
    at: &str,
) -> Option<String> {
    let object = value.as_object()?;
    object.iter().find_map(|(key, inner)| {
        let at = format!("{at}.{key}");
        let is_pattern = |pattern: &String| {
            let head = pattern.trim_start_matches('^').replace("\\.", ".");
            key.starts_with(head.trim_end_matches('.'))
        };
        let named = keywords.get("properties").and_then(|rules| rules.get(key));
        let by_pattern = keywords.get("patternProperties").and_then(Value::as_object);
        let by_pattern = by_pattern
            .and_then(|rules| rules.iter().find(|(pattern, _)| is_pattern(pattern)))
            .map(|(_, rule)| rule);
        let rule = named.or(by_pattern).or_else(|| keywords.get("additionalProperties"))?;
        misfit(root, rule, inner, &at)
    })
}

fn is_type(name: &Value, value: &Value) -> bool {
    match name.as_str().expect("a text") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("the test does not know the type {other}"),
    }
}

/// What of a study file does not fit the schema.
pub(crate) fn misfit_of_study(source: &str) -> Option<String> {
    let value: Value = toml::from_str(source).expect("valid TOML");
    let schema = schema(&vocabulary());
    misfit(&schema, &schema, &value, "study")
}

/// What of a value does not fit the key that it is given to.
pub(crate) fn misfit_of_key(key: &Key, value: &Value, vocabulary: &Vocabulary) -> Option<String> {
    let root = schema(vocabulary);
    misfit(&root, &property(key, vocabulary), value, key.name)
}

#[test]
fn full_study_fits() {
    study(FULL_STUDY);
    assert_eq!(misfit_of_study(FULL_STUDY), None);
}

#[test]
fn wrong_studies_do_not_fit() {
    let check = |right: &str, wrong: &str| {
        let source = FULL_STUDY.replacen(right, wrong, 1);
        assert_ne!(source, FULL_STUDY, "`{right}` is not in the study");
        assert!(misfit_of_study(&source).is_some(), "{wrong}");
        assert!(parse(&source, &vocabulary()).is_err(), "{wrong}");
    };
    check("title =", "titel =");
    check("product =", "prodct =");
    check("\"mariadb\"", "\"mariadbb\"");
    check("product = \"mariadb\"", "product = \"postgresql\"");
    check("product = \"mariadb\"", "product = \"mariadb\"\nurl = \"mysql://h\"");
    check("product = \"mariadb\"", "product = \"sqlite\"");
    check("tables = 4", "tabels = 4");
    check("tables = 4", "tables = true");
    check("\"zipfian\"", "\"zipf\"");
    check("range_size = 10\n", "size = 10\n");
    check("clients = [8", "clients = [0");
    check("rate = [100", "rate = [0");
    check("repetitions = 2", "repetitions = 0");
    check("\"10s\"", "10");
    check("\"sequential\"", "\"random\"");
    check("[design.vary]", "[design.varied]");
    check("\"0.192 USD\"", "\"USD\"");
    check("sql = ", "sqll = ");
    check("sql = ", "command = ['a']\nsql = ");
    check("run_off = \"30m\"", "run_off = 30");
}

/// The paths of all keys that a schema's tables have by name, with `*` for names of the user.
fn keys_of(root: &Value, schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let inner = root.pointer(reference.trim_start_matches('#')).expect("it leads somewhere");
        keys_of(root, inner, path, found);
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for (name, inner) in properties {
            let path = format!("{path}/{name}");
            keys_of(root, inner, &path, found);
            found.insert(path);
        }
    }
    if let Some(inner) = schema.get("additionalProperties").filter(|inner| inner.is_object()) {
        keys_of(root, inner, &format!("{path}/*"), found);
    }
}

fn schema_keys() -> BTreeSet<String> {
    let schema = schema(&vocabulary());
    let mut found = BTreeSet::new();
    keys_of(&schema, &schema, "", &mut found);
    found
}

#[test]
fn parser_reads_every_key_of_the_schema() {
    // A date is right nowhere, so a key that is read is one that complains about it.
    for path in schema_keys() {
        let path = path.trim_start_matches('/').replace('*', "mine");
        let dotted = path.replace('/', ".");
        let mut source = format!("{dotted} = 1979-05-27\n");
        if path.starts_with("workload/mine/") && !path.ends_with("/workload") {
            let workload = vocabulary().workloads.into_iter().find(|workload| {
                workload.options.iter().any(|option| path.ends_with(&format!("/{}", option.name)))
            });
            let name = workload.map_or("oltp_insert".to_owned(), |workload| workload.name);
            source += &format!("workload.mine.workload = '{name}'\n");
        }
        let option = path.rsplit('/').next().expect("a name");
        if path.starts_with("design/") {
            let vocabulary = vocabulary();
            let has_it = |word: &&WorkloadWord| word.options.iter().any(|one| one.name == option);
            let name = vocabulary.workloads.iter().find(has_it);
            let name = name.map_or("oltp_read_write", |workload| &workload.name);
            source += &format!("workload.{name} = {{}}\n");
        }
        if path.starts_with("design/baseline/") {
            let name = path.rsplit('/').next().expect("a name");
            source += "database.a.product = 'mariadb'\n";
            source += &match (path.split('/').nth(2), name) {
                (Some("option"), "option") => continue,
                (Some("setting"), _) => continue,
                (Some("option"), name) => {
                    let workloads = vocabulary().workloads;
                    let mut options = workloads.into_iter().flat_map(|word| word.options);
                    let option = options.find(|option| option.name == name).expect("it is there");
                    let level = match option.kind {
                        dyno_model::OptionKind::Word(words) => {
                            format!("'{}'", words.iter().next().expect("a word"))
                        }
                        dyno_model::OptionKind::Switch => "true".to_owned(),
                        dyno_model::OptionKind::Text => "'x'".to_owned(),
                        _ => "1".to_owned(),
                    };
                    format!("design.vary.option.{name} = [{level}]\n")
                }
                (_, "workload") => "design.vary.workload = ['oltp_read_write']\n".to_owned(),
                (_, "database") => "design.vary.database = ['a']\n".to_owned(),
                (_, kind) => format!("{kind}.a = {{}}\ndesign.vary.{kind} = ['a']\n"),
            };
        }
        let diagnostics = parse(&source, &vocabulary()).expect_err("a date is right nowhere");
        let at = source.find("1979").expect("the date is there");
        assert!(
            diagnostics
                .iter()
                .any(|one| one.message.ends_with("found datetime") && one.span.start == at),
            "`{dotted}` is in the schema and not read by the parser: {diagnostics:#?}"
        );
    }
}

/// The keys of a kind of table.
fn keys(kind: &str) -> &'static [Key] {
    KINDS.iter().find(|one| one.name == kind).expect("there is such a kind").keys
}

#[test]
fn schema_has_every_key_of_the_parser() {
    let found = schema_keys();
    let check = |path: &str, keys: &[Key]| {
        for key in keys {
            let path = format!("{path}/{}", key.name);
            assert!(found.contains(&path), "{path} is not in the schema");
        }
    };
    check("", &STUDY);
    check("/database/*", keys("database"));
    check("/machine", MACHINE);
    check("/probe/*", keys("probe"));
    check("/workload/*", keys("workload"));
    check("/design", &DESIGN);
    check("/design/vary", &VARY);
    check("/design/baseline", &BASELINE);
    for word in vocabulary().workloads {
        check(&format!("/workload/{}", word.name), keys("workload"));
        for option in word.options {
            let path = format!("/workload/{}/{}", word.name, option.name);
            assert!(found.contains(&path), "{path} is not in the schema");
            assert!(found.contains(&format!("/design/vary/option/{}", option.name)));
        }
    }
}

#[test]
fn defaults_of_the_schema_are_those_of_the_parser() {
    let source = "title = 'x'\n[database.a]\nproduct = 'mariadb'\n[workload.oltp_insert]\n\
        [design]\nrate = 1\n";
    let expected = study(source).design;
    for key in DESIGN.iter() {
        if let Some(default) = key.default {
            let source = format!("{source}{} = {default}\n", key.name);
            assert_eq!(study(&source).design, expected, "the default of `{}`", key.name);
        }
    }
}

#[test]
fn every_key_is_explained() {
    let kinds = KINDS.iter().flat_map(|kind| kind.keys);
    let tables = [&STUDY[..], &DESIGN, &VARY, &BASELINE, MACHINE];
    for key in tables.into_iter().flatten().chain(kinds) {
        assert!(key.help.len() > 10 && key.help.ends_with('.'), "{}: {}", key.name, key.help);
    }
}

/// A study that declares a workload.
const DECLARED: &str = "title = 'x'\n[database.a]\nproduct = 'sqlite'\n\
    [workload.shop.table.item]\nrows = '1k'\nunique = [['id']]\n\
    [workload.shop.table.item.columns]\n\
    id = { type = 'bigint', key = true, value = { sequence = 1 } }\n\
    price = { type = { mysql = 'double', postgresql = 'float8', sqlite = 'real' }, value = { uniform = [1, 9], decimals = 2 } }\n\
    [workload.shop.transaction.look]\nweight = 2\nthink = { exponential = '5ms' }\n\
    let = { i = { zipf = 'item' } }\n\
    steps = [{ sql = 'SELECT price FROM item WHERE id = :i', read = ['price'], rows = '0..1' }]\n\
    [design]\nclients = 1\n";

#[test]
fn what_a_study_declares_is_in_the_schema() {
    assert_eq!(misfit_of_study(DECLARED), None);
    let check = |right: &str, wrong: &str| {
        let source = DECLARED.replacen(right, wrong, 1);
        assert_ne!(source, DECLARED, "`{right}` is not in the study");
        assert!(misfit_of_study(&source).is_some(), "{wrong}");
    };
    check("rows = '1k'", "row = 1");
    check("rows = '1k'", "rows = true");
    check("unique = [['id']]", "unique = ['id']");
    check("type = 'bigint', key", "kind = 'bigint', key");
    check("type = 'bigint', key = true", "key = true");
    check("key = true", "key = 'yes'");
    check("postgresql =", "postgres =");
    check("sequence = 1", "sequense = 1");
    check("sequence = 1", "sequence = [1]");
    check("uniform = [1, 9]", "uniform = [1]");
    check("decimals = 2", "theta = 2");
    check("exponential =", "mean =");
    check("zipf = 'item'", "zipf = true");
    check("steps = [{ sql", "steps = [{ sqll");
    check("read = ['price']", "read = 'price'");
    check("rows = '0..1'", "rows = -1");
    check("weight = 2", "wait = 2");
}

#[test]
fn the_schema_has_every_key_of_declarations() {
    use dyno_model::declared::{COLUMN, GENERATORS, NULL, STEP, TABLE, TRANSACTION};
    let found = schema_keys();
    for (path, keys) in [
        ("/workload/*/table/*", TABLE),
        ("/workload/*/table/*/columns/*", COLUMN),
        ("/workload/*/transaction/*", TRANSACTION),
    ] {
        for key in keys {
            assert!(found.contains(&format!("{path}/{}", key.name)), "{path}/{}", key.name);
        }
    }
    let schema = schema(&vocabulary());
    let properties = |value: &Value| value["properties"].as_object().cloned().unwrap_or_default();
    let steps = properties(&schema["$defs"]["declared-step"]);
    assert!(STEP.iter().all(|key| steps.contains_key(key.name)), "{steps:?}");
    let generators = schema["$defs"]["declared-generator"]["anyOf"].as_array().expect("a list");
    for one in GENERATORS {
        let keys = [&one.key, &NULL].into_iter().chain(one.beside);
        let names: BTreeSet<&str> = keys.map(|key| key.name).collect();
        let is_it = |value: &Value| {
            let properties = properties(value);
            properties.keys().map(String::as_str).collect::<BTreeSet<_>>() == names
        };
        assert!(generators.iter().any(is_it), "{names:?}");
    }
}
