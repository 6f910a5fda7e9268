//! Reads serialised types from the sources, which also show what may be absent. Knows only what rustfmt leaves of
//! such types: a field per line, after its attributes. Anything else is an error, so that nothing is missed.

use std::collections::BTreeMap;

/// Crates with types of records and findings.
const CRATES: [&str; 3] = ["dyno-record", "dyno-analysis", "dyno-units"];

/// Types with their own `Serialize`, and what they write.
const BY_HAND: [(&str, Shape); 1] = [("MetricId", Shape::Scalar("string"))];

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    Scalar(&'static str),
    OrNull(Box<Shape>),
    List(Box<Shape>),
    Map(Box<Shape>),
    Tuple(Vec<Shape>),
    Named(String),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) shape: Shape,
    /// Left out when empty.
    pub(super) is_optional: bool,
    /// The value's keys are the object's own.
    pub(super) is_flat: bool,
    /// The module that writes the value, if not its type.
    pub(super) by: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Body {
    Object(Vec<Key>),
    Same(Shape),
    /// A word, or an object with the word as its only key.
    Words(Vec<(String, Content)>),
    /// The word is under the first key, the content, if there is a second key, under that.
    Tagged(String, Option<String>, Vec<(String, Content)>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    Nothing,
    Value(Shape),
    Keys(Vec<Key>),
}

/// By name, each with its crate.
pub(super) struct Types(BTreeMap<String, Vec<(String, Body)>>);

impl Types {
    pub(super) fn read(sources: &[(String, String)]) -> Types {
        let mut types = Types(BTreeMap::new());
        for (path, text) in sources {
            let Some(of) = CRATES.iter().find(|name| path.contains(&format!("/{name}/src/")))
            else {
                continue;
            };
            let production = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or(text);
            for (name, body) in items(production) {
                types.0.entry(name).or_default().push(((*of).to_owned(), body));
            }
        }
        for (name, shape) in BY_HAND {
            types.0.entry(name.to_owned()).or_default().push((String::new(), Body::Same(shape)));
        }
        types
    }

    /// Returns the crate, too. `within` is the crate that uses the name.
    pub(super) fn get(&self, name: &str, within: &str) -> (&str, &Body) {
        let all = self.0.get(name).unwrap_or_else(|| panic!("the type `{name}` was not found"));
        let found = match all.as_slice() {
            [only] => only,
            _ => {
                let mut here = all.iter().filter(|(of, _)| of == within);
                match (here.next(), here.next()) {
                    (Some(one), None) => one,
                    _ => panic!("there are several types `{name}`: give them different names"),
                }
            }
        };
        (&found.0, &found.1)
    }
}

fn items(text: &str) -> Vec<(String, Body)> {
    let mut found = Vec::new();
    let mut attributes: Vec<String> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("#[") {
            attributes.push(whole(line, &mut lines));
            continue;
        }
        if line.starts_with("//") {
            continue;
        }
        let attributes = std::mem::take(&mut attributes);
        let is_serialised =
            attributes.iter().any(|a| a.starts_with("#[derive(") && a.contains("Serialize"));
        let line = line.strip_prefix("pub").map_or(line, |rest| {
            rest.strip_prefix('(')
                .and_then(|rest| rest.split_once(')'))
                .map_or(rest, |(_, rest)| rest)
        });
        let mut words = line.split_whitespace();
        let (Some(kind @ ("struct" | "enum")), Some(name), true) =
            (words.next(), words.next(), is_serialised)
        else {
            continue;
        };
        let serde = Serde::of(&attributes);
        let name: String = name.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
        if let Some(into) = &serde.into {
            found.push((name, Body::Same(shape(into))));
            continue;
        }
        let body = match (kind, line.split_once('(')) {
            ("struct", Some((_, inner))) => {
                let inner = inner.trim_end().trim_end_matches(';').trim_end_matches(')');
                Body::Same(shape(inner.trim_start_matches("pub ")))
            }
            ("struct", None) => Body::Object(keys(&mut lines, "}")),
            _ => variants(&mut lines, &serde),
        };
        found.push((name, body));
    }
    found
}

fn keys<'a>(lines: &mut impl Iterator<Item = &'a str>, end: &str) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut attributes = Vec::new();
    while let Some(line) = lines.next().filter(|line| line.trim_end() != end) {
        let line = line.trim();
        if line.starts_with("#[") {
            attributes.push(whole(line, lines));
        } else if !line.is_empty() && !line.starts_with("//") {
            let serde = Serde::of(&std::mem::take(&mut attributes));
            let field = until(line, lines, |text| text.ends_with(',') && nesting(text) == 0);
            let field = field.trim_end_matches(',');
            let (name, of) = field.split_once(": ").unwrap_or_else(|| panic!("no field: {field}"));
            let name = name.rsplit(' ').next().unwrap_or(name).trim_start_matches("r#");
            if !serde.is_skipped {
                keys.push(Key {
                    name: serde.rename.unwrap_or_else(|| name.to_owned()),
                    shape: shape(of),
                    is_optional: serde.is_optional,
                    is_flat: serde.is_flat,
                    by: serde.with,
                });
            }
        }
    }
    keys
}

/// In one line, with commas between.
fn fields(line: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for part in line.split_inclusive(", ").map(|part| part.trim_end_matches(", ")) {
        match all.last_mut().filter(|last| nesting(last) != 0) {
            Some(last) => *last += &format!(", {part}"),
            None => all.push(part.to_owned()),
        }
    }
    all.iter().map(|field| format!("{field},")).collect()
}

fn variants<'a>(lines: &mut impl Iterator<Item = &'a str>, serde: &Serde) -> Body {
    let mut all = Vec::new();
    let mut attributes = Vec::new();
    while let Some(line) = lines.next().filter(|line| *line != "}") {
        let line = line.trim();
        if line.starts_with("#[") {
            attributes.push(whole(line, lines));
        } else if !line.is_empty() && !line.starts_with("//") {
            let own = Serde::of(&std::mem::take(&mut attributes));
            let name: String = line.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
            let content = match &line[name.len()..] {
                "," => Content::Nothing,
                " {" => Content::Keys(keys(lines, "    },")),
                rest => {
                    let within = |open, close| rest.strip_prefix(open)?.strip_suffix(close);
                    match (within("(", "),"), within(" { ", " },")) {
                        (Some(inner), _) => Content::Value(shape(inner)),
                        (_, Some(inner)) => {
                            let fields = fields(inner);
                            Content::Keys(keys(&mut fields.iter().map(String::as_str), "}"))
                        }
                        _ => panic!("not a variant: {line}"),
                    }
                }
            };
            let word = own.rename.unwrap_or(match serde.is_snake {
                true => snake(&name),
                false => name,
            });
            all.push((word, content));
        }
    }
    match &serde.tag {
        Some(tag) => Body::Tagged(tag.clone(), serde.content.clone(), all),
        None => Body::Words(all),
    }
}

/// Attributes for writing; those for reading (`default`, `alias`, `from`) do not matter here.
#[derive(Default)]
struct Serde {
    rename: Option<String>,
    tag: Option<String>,
    content: Option<String>,
    with: Option<String>,
    into: Option<String>,
    is_optional: bool,
    is_flat: bool,
    is_skipped: bool,
    is_snake: bool,
}

impl Serde {
    fn of(attributes: &[String]) -> Serde {
        let mut serde = Serde::default();
        let inner =
            |text: &String| Some(text.strip_prefix("#[serde(")?.strip_suffix(")]")?.to_owned());
        for part in attributes.iter().filter_map(inner).flat_map(|text| parts(&text)) {
            let (name, value) = part.split_once(" = ").unwrap_or((&part, ""));
            let value = value.trim_matches('"').to_owned();
            match name {
                "default" | "alias" | "deserialize_with" | "from" | "transparent" | "other" => {}
                "into" => serde.into = Some(value),
                "skip_serializing_if" => serde.is_optional = true,
                "flatten" => serde.is_flat = true,
                "skip" => serde.is_skipped = true,
                "rename" => serde.rename = Some(value),
                "with" | "serialize_with" => serde.with = Some(value),
                "tag" => serde.tag = Some(value),
                "content" => serde.content = Some(value),
                "rename_all" if value == "snake_case" => serde.is_snake = true,
                _ => panic!("what does `{part}` do to what is written? say it here"),
            }
        }
        serde
    }
}

fn shape(of: &str) -> Shape {
    let of = of.trim();
    if let Some(inner) = of.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        return Shape::Tuple(parts(inner).iter().map(|part| shape(part)).collect());
    }
    if let Some(inner) = of.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
        let (each, _) = inner.rsplit_once(';').unwrap_or((inner, ""));
        return Shape::List(Box::new(shape(each)));
    }
    if let Some((outer, inner)) = of.strip_suffix('>').and_then(|of| of.split_once('<')) {
        let inner = parts(inner);
        let last = || Box::new(shape(inner.last().map_or("", String::as_str)));
        return match outer.rsplit("::").next().unwrap_or(outer) {
            "Option" => Shape::OrNull(last()),
            "Vec" | "BTreeSet" => Shape::List(last()),
            "BTreeMap" => Shape::Map(last()),
            "Box" | "Arc" | "Cow" => *last(),
            _ => panic!("what is `{of}` in JSON? say it here"),
        };
    }
    match of {
        "String" | "PathBuf" | "&'static str" | "str" => Shape::Scalar("string"),
        "bool" => Shape::Scalar("boolean"),
        "f64" => Shape::Scalar("number"),
        "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" => Shape::Scalar("integer"),
        _ => Shape::Named(of.rsplit("::").next().unwrap_or(of).to_owned()),
    }
}

/// Split at commas outside of brackets.
fn parts(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut depth = 0;
    for c in text.chars() {
        depth += step(c);
        match c {
            ',' if depth == 0 => all.push(String::new()),
            _ => all.last_mut().expect("there is one").push(c),
        }
    }
    all.iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

fn step(c: char) -> i32 {
    match c {
        '(' | '[' | '<' => 1,
        ')' | ']' | '>' => -1,
        _ => 0,
    }
}

fn nesting(text: &str) -> i32 {
    text.chars().map(step).sum()
}

/// An attribute may span several lines.
fn whole<'a>(line: &str, lines: &mut impl Iterator<Item = &'a str>) -> String {
    until(line, lines, |text| nesting(text) == 0)
}

fn until<'a>(
    line: &str,
    lines: &mut impl Iterator<Item = &'a str>,
    is_whole: impl Fn(&str) -> bool,
) -> String {
    let mut text = line.to_owned();
    while !is_whole(&text) {
        let next = lines.next().unwrap_or_else(|| panic!("it does not end: {text}"));
        text = format!("{text} {}", next.trim());
    }
    text
}

fn snake(name: &str) -> String {
    let mut word = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !word.is_empty() {
            word.push('_');
        }
        word.push(c.to_ascii_lowercase());
    }
    word
}

#[test]
fn types_are_read_as_they_are_written() {
    let text = "\
/// A thing.
#[derive(Clone, Serialize, Deserialize)]
pub struct Thing {
    /// Its name.
    pub name: String,
    #[serde(default, skip_serializing_if = \"Option::is_none\")]
    pub(crate) note: Option<BTreeMap<String, Vec<(u32, f64)>>>,
    #[serde(
        default,
        alias = \"was\"
    )]
    pub kind: crate::Kind,
    #[serde(skip)]
    pub family: Option<&'static str>,
    #[serde(flatten)]
    pub rest: Rest,
}

#[derive(Serialize)]
#[serde(tag = \"is\", rename_all = \"snake_case\")]
enum Kind {
    NotThere,
    At {
        from: u64,
    },
    On { from: u64, map: BTreeMap<String, f64> },
}

#[derive(Serialize)]
#[serde(transparent)]
pub struct Rest(Vec<bool>);

#[derive(Clone)]
struct Other {
    secret: u8,
}
";
    let key = |name: &str, shape: Shape| Key {
        name: name.to_owned(),
        shape,
        is_optional: name == "note",
        is_flat: name == "rest",
        by: None,
    };
    let (text_, named) = (Shape::Scalar("string"), |name: &str| Shape::Named(name.to_owned()));
    let pair = Shape::Tuple(vec![Shape::Scalar("integer"), Shape::Scalar("number")]);
    let map = Shape::Map(Box::new(Shape::List(Box::new(pair))));
    let from = vec![key("from", Shape::Scalar("integer"))];
    let numbers = Shape::Map(Box::new(Shape::Scalar("number")));
    let on = vec![key("from", Shape::Scalar("integer")), key("map", numbers)];
    let kinds = vec![
        ("not_there".to_owned(), Content::Nothing),
        ("at".to_owned(), Content::Keys(from)),
        ("on".to_owned(), Content::Keys(on)),
    ];
    let expected = [
        (
            "Thing",
            Body::Object(vec![
                key("name", text_),
                key("note", Shape::OrNull(Box::new(map))),
                key("kind", named("Kind")),
                key("rest", named("Rest")),
            ]),
        ),
        ("Kind", Body::Tagged("is".to_owned(), None, kinds)),
        ("Rest", Body::Same(Shape::List(Box::new(Shape::Scalar("boolean"))))),
    ];
    let expected = expected.map(|(name, body)| (name.to_owned(), body));
    assert_eq!(items(text), expected);
}
