//! All keys of a record and its findings, made from their types, so that `formats.txt` shows
//! changes.

mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;
use source::{Body, Content, Key, Shape, Types};

use crate::shell::root;

/// Name, type, and the source with the format's number.
const FILES: [(&str, &str, &str); 3] = [
    ("manifest.json", "Manifest", "crates/dyno-record/src/lib.rs"),
    ("summary.json", "TrialSummary", "crates/dyno-record/src/lib.rs"),
    ("findings.json", "Findings", "crates/dyno-analysis/src/analyse.rs"),
];

const GOLDEN: &str = "xtask/src/formats.txt";

fn types() -> Types {
    let sources = crate::tidy::sources();
    let text = |(path, text): (std::path::PathBuf, String)| (path.to_string_lossy().into(), text);
    Types::read(&sources.into_iter().map(text).collect::<Vec<_>>())
}

/// A type that several files have is listed with the first.
fn all(types: &Types) -> String {
    let mut out = String::new();
    let mut seen = BTreeSet::new();
    for (file, root_type, place) in FILES {
        let source = std::fs::read_to_string(root().join(place)).expect("the source is there");
        let number =
            source.split_once("const FORMAT: u32 = ").and_then(|(_, rest)| rest.split(';').next());
        let number = number.expect("the format has a number");
        writeln!(out, "{file} = {root_type}, format {number}").expect("memory");
        let mut open = vec![(root_type.to_owned(), String::new())];
        while let Some((name, within)) = open.pop() {
            let (of, body) = types.get(&name, &within);
            if seen.insert((of.to_owned(), name.clone())) {
                write!(out, "\n{name}{}", lines(body)).expect("memory");
                let mut named: Vec<String> = Vec::new();
                each_shape(body, &mut |shape| named_in(shape, &mut named));
                open.extend(named.into_iter().rev().map(|name| (name, of.to_owned())));
            }
        }
        out.push('\n');
    }
    out
}

fn each_shape(body: &Body, see: &mut dyn FnMut(&Shape)) {
    let of_keys = |keys: &[Key], see: &mut dyn FnMut(&Shape)| {
        keys.iter().for_each(|key| see(&key.shape));
    };
    match body {
        Body::Object(keys) => of_keys(keys, see),
        Body::Same(shape) => see(shape),
        Body::Words(all) | Body::Tagged(_, _, all) => {
            for (_, content) in all {
                match content {
                    Content::Nothing => {}
                    Content::Value(shape) => see(shape),
                    Content::Keys(keys) => of_keys(keys, see),
                }
            }
        }
    }
}

fn named_in(shape: &Shape, found: &mut Vec<String>) {
    match shape {
        Shape::Scalar(_) => {}
        Shape::Named(name) => found.push(name.clone()),
        Shape::OrNull(inner) | Shape::List(inner) | Shape::Map(inner) => named_in(inner, found),
        Shape::Tuple(all) => all.iter().for_each(|inner| named_in(inner, found)),
    }
}

fn lines(body: &Body) -> String {
    match body {
        Body::Same(shape) => format!(" = {}\n", words(shape)),
        Body::Object(keys) => {
            keys.iter().fold("\n".to_owned(), |all, key| all + "  " + &line(key) + "\n")
        }
        Body::Words(all) => all.iter().fold("\n".to_owned(), |text, (word, content)| {
            text + &match content {
                Content::Nothing => format!("  | \"{word}\"\n"),
                content => format!("  | {{ {word}: {} }}\n", content_words(content)),
            }
        }),
        Body::Tagged(tag, under, all) => {
            all.iter().fold("\n".to_owned(), |text, (word, content)| {
                let rest = match (content, under) {
                    (Content::Nothing, _) => String::new(),
                    (content, Some(under)) => format!(", {under}: {}", content_words(content)),
                    (content, None) => format!(", {}", content_words(content)),
                };
                text + &format!("  | {{ {tag}: \"{word}\"{rest} }}\n")
            })
        }
    }
}

fn content_words(content: &Content) -> String {
    match content {
        Content::Nothing => String::new(),
        Content::Value(shape) => words(shape),
        Content::Keys(keys) => keys.iter().map(line).collect::<Vec<_>>().join(", "),
    }
}

fn line(key: &Key) -> String {
    let Key { name, shape, is_optional, is_flat, by } = key;
    if *is_flat {
        return format!("…{}", words(shape));
    }
    // An optional key is left out instead of null.
    let shape = match shape {
        Shape::OrNull(inner) if *is_optional => inner,
        shape => shape,
    };
    let by = by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    format!("{name}{}: {}{by}", if *is_optional { "?" } else { "" }, words(shape))
}

fn words(shape: &Shape) -> String {
    match shape {
        Shape::Scalar(name) => (*name).to_owned(),
        Shape::Named(name) => name.clone(),
        Shape::OrNull(inner) => format!("{} | null", words(inner)),
        Shape::List(inner) => match **inner {
            Shape::OrNull(_) => format!("({})[]", words(inner)),
            _ => format!("{}[]", words(inner)),
        },
        Shape::Map(inner) => format!("{{ *: {} }}", words(inner)),
        Shape::Tuple(all) => format!("[{}]", all.iter().map(words).collect::<Vec<_>>().join(", ")),
    }
}

/// Keys that vanished from files whose format number stayed the same.
fn removed(before: &str, now: &str) -> Vec<String> {
    // Files with their numbers, and the keys below each.
    let files = |text: &str| {
        let (mut file, mut of) = (String::new(), String::new());
        let mut all = BTreeMap::<String, BTreeSet<String>>::new();
        for line in text.lines() {
            match line.strip_prefix("  ") {
                Some(key) => {
                    all.entry(file.clone()).or_default().insert(format!("{of}: {key}"));
                }
                None if line.contains(", format ") => line.clone_into(&mut file),
                None => line.clone_into(&mut of),
            }
        }
        all
    };
    let now = files(now);
    let gone = files(before).into_iter().filter_map(|(file, keys)| {
        Some(keys.difference(now.get(&file)?).cloned().collect::<Vec<String>>())
    });
    gone.flatten().collect()
}

#[test]
fn whoever_changes_a_format_sees_it() {
    let now = all(&types());
    let path = root().join(GOLDEN);
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let gone = removed(&before, &now);
    assert!(
        gone.is_empty(),
        "programs that read these keys fail without them, or misread them: {gone:#?}\nRaise the number of the \
         format (CONTRIBUTING.md, \"Formats\"), or keep them. A type that has only another name gets it in \
         {GOLDEN} as well"
    );
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &now).expect("it can be written");
        return;
    }
    assert!(
        before == now,
        "{GOLDEN} is out of date: `UPDATE_EXPECT=1 cargo test -p xtask formats` rewrites it, for review"
    );
}

#[test]
fn a_key_is_not_removed_without_another_number() {
    let check = |before: &str, now: &str, expected: &[&str]| {
        assert_eq!(removed(before, now), expected, "{now}");
    };
    let before = "a.json = A, format 1\n\nA\n  x: string\n  y?: B\n\nB\n  x: number\n";
    check(before, before, &[]);
    check(before, &before.replace("  x: number", "  x: number\n  z: number"), &[]);
    check(before, &before.replace("  x: string\n", ""), &["A: x: string"]);
    check(before, &before.replace("x: number", "x: integer"), &["B: x: number"]);
    check(before, &before.replace("y?: B", "y: B").replace("format 1", "format 2"), &[]);
    // The number of another file does not count.
    let two = format!("{before}\nb.json = C, format 1\n\nC\n  w: string\n");
    let without = two.replace("  w: string", "  v: string");
    check(&two, &without.replace("A, format 1", "A, format 2"), &["C: w: string"]);
    check(&two, &without.replace("C, format 1", "C, format 2"), &[]);
}

fn unknown(types: &Types, (within, shape): (&str, &Shape), value: &Value, at: &str) -> Vec<String> {
    let each = |inner: &Shape, all: &mut dyn Iterator<Item = (String, &Value)>| -> Vec<String> {
        all.flat_map(|(name, value)| {
            unknown(types, (within, inner), value, &format!("{at}.{name}"))
        })
        .collect()
    };
    match (shape, value) {
        (Shape::OrNull(_), Value::Null) => Vec::new(),
        (Shape::OrNull(inner), value) => unknown(types, (within, inner), value, at),
        (Shape::List(inner), Value::Array(all)) => {
            each(inner, &mut all.iter().map(|value| ("*".to_owned(), value)))
        }
        (Shape::Map(inner), Value::Object(all)) => {
            each(inner, &mut all.iter().map(|(name, value)| (name.clone(), value)))
        }
        (Shape::Tuple(shapes), Value::Array(all)) if shapes.len() == all.len() => shapes
            .iter()
            .zip(all)
            .flat_map(|(shape, value)| unknown(types, (within, shape), value, at))
            .collect(),
        (Shape::Scalar("string"), Value::String(_))
        | (Shape::Scalar("boolean"), Value::Bool(_))
        | (Shape::Scalar("number"), Value::Number(_)) => Vec::new(),
        (Shape::Scalar("integer"), Value::Number(number)) if !number.is_f64() => Vec::new(),
        (Shape::Named(name), value) => {
            let (of, body) = types.get(name, within);
            match (body, value) {
                (Body::Same(shape), value) => unknown(types, (of, shape), value, at),
                (Body::Object(keys), Value::Object(all)) => all
                    .iter()
                    .flat_map(|(name, value)| {
                        let at = format!("{at}.{name}");
                        match keys.iter().find(|key| key.name == *name) {
                            // A module of its own may write other keys.
                            Some(key) if key.by.is_some() => Vec::new(),
                            Some(key) => unknown(types, (of, &key.shape), value, &at),
                            None => vec![at],
                        }
                    })
                    .collect(),
                (Body::Words(all), Value::String(word)) => {
                    let is_known = all.iter().any(|(known, _)| known == word);
                    if is_known { Vec::new() } else { vec![format!("{at} = {word}")] }
                }
                (Body::Words(_) | Body::Tagged(..), Value::Object(_)) => Vec::new(),
                _ => vec![format!("{at} is no {name}")],
            }
        }
        _ => vec![format!("{at} is no {}", words(shape))],
    }
}

/// A real record checks what was read from the sources.
#[test]
fn a_record_has_no_other_keys() {
    let types = types();
    let record = root().join("crates/dyno/tests/it/format_1");
    for (file, name) in
        [("manifest.json", "Manifest"), ("trials/0001-wal/summary.json", "TrialSummary")]
    {
        let text = std::fs::read_to_string(record.join(file)).expect("the record is there");
        let value: Value = serde_json::from_str(&text).expect("it is JSON");
        let shape = Shape::Named(name.to_owned());
        let found = unknown(&types, ("dyno-record", &shape), &value, name);
        assert!(found.is_empty(), "{file}: {found:#?}");
        let mut more = value;
        more["no_such_key"] = Value::from(1);
        let found = unknown(&types, ("dyno-record", &shape), &more, name);
        assert_eq!(found, [format!("{name}.no_such_key")]);
    }
}
