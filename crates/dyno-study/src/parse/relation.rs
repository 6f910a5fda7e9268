//! What keys of a table have to do with each other and with its product, as data; and the one
//! function that checks it.

use std::ops::Range;

use toml::de::DeValue;

use super::table::RawTable;
use super::value::Entry;
use crate::Diagnostic;
use crate::vocabulary::ProductWord;

type Keys = &'static [&'static str];

/// Values of keys that ask for nothing, in TOML.
const NOTHING: Keys = &["0", "false"];

/// What is wrong if some of `keys` are given, and all of these conditions hold.
#[derive(Clone, Copy)]
pub(super) struct Relation {
    at: At,
    /// A key that has a table stands for what is in it.
    keys: Keys,
    /// Values in TOML with which these keys count as not given.
    idle: Keys,
    /// At least one of these is given: `KEY`, or `KEY=VALUE`.
    with: Keys,
    /// This one is given, too.
    also: Option<&'static str>,
    /// None of these is given.
    without: Keys,
    product: Option<fn(&ProductWord) -> bool>,
    /// Has the names of `{key}`, `{other}` (the first of `with`), `{product}` and `{table}`.
    message: &'static str,
    label: &'static str,
    /// What to do; empty if the label says enough.
    help: &'static str,
}

/// Where it is said.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// At each of the keys.
    Each,
    /// At the first of them that is given.
    First,
    /// At the one that comes later in the file, if two are given.
    Later,
    /// At the table, because something is missing.
    Table,
}

/// Of each of these keys.
pub(super) const fn each(keys: Keys, message: &'static str, label: &'static str) -> Relation {
    let (idle, with, also, without, product, help) = (NOTHING, &[], None, &[], None, "");
    Relation { at: At::Each, keys, idle, with, also, without, product, message, label, help }
}

/// Of the first of these keys that is given.
pub(super) const fn first(keys: Keys, message: &'static str, label: &'static str) -> Relation {
    Relation { at: At::First, ..each(keys, message, label) }
}

/// Of something that the table lacks.
pub(super) const fn missing(message: &'static str, label: &'static str) -> Relation {
    Relation { at: At::Table, ..each(&[], message, label) }
}

/// Of two keys that answer the same question.
pub(super) const fn either(keys: Keys, message: &'static str) -> Relation {
    Relation { at: At::Later, ..each(keys, message, "these two are mutually exclusive") }
}

/// Of keys that cannot be combined with others.
pub(super) const fn apart(keys: Keys, with: Keys, label: &'static str) -> Relation {
    let relation = each(keys, "`{key}` and `{other}` cannot be combined", label);
    relation.with(with).help("leave one of the two out")
}

impl Relation {
    pub(super) const fn with(self, with: Keys) -> Relation {
        Relation { with, ..self }
    }

    pub(super) const fn also(self, key: &'static str) -> Relation {
        Relation { also: Some(key), ..self }
    }

    pub(super) const fn without(self, without: Keys) -> Relation {
        Relation { without, ..self }
    }

    pub(super) const fn of(self, product: fn(&ProductWord) -> bool) -> Relation {
        Relation { product: Some(product), ..self }
    }

    pub(super) const fn idle(self, idle: Keys) -> Relation {
        Relation { idle, ..self }
    }

    pub(super) const fn help(self, help: &'static str) -> Relation {
        Relation { help, ..self }
    }

    fn check(&self, raw: &RawTable<'_>, word: Option<&ProductWord>) {
        let is_given = |key: &&&str| given(raw, key, NOTHING).is_some();
        let other = self.with.iter().find(is_given);
        let is_broken = (self.with.is_empty() || other.is_some())
            && self.also.iter().all(|key| is_given(&key))
            // Also what says nothing, such as `at = 0`, is no missing key.
            && !self.without.iter().any(|key| given(raw, key, &[]).is_some())
            && self.product.is_none_or(|holds| word.is_some_and(holds));
        if !is_broken {
            return;
        }
        let wrong = |span: &Range<usize>, key: &str| {
            let text = self.message.replace("{key}", key).replace("{other}", other.unwrap_or(&""));
            let text = text.replace("{product}", word.map_or("", |word| &word.name));
            let text = text.replace("{table}", &format!("`[{}.{}]`", raw.kind.name, raw.name));
            let wrong = Diagnostic::new(span.clone(), text).with_label(self.label);
            if self.help.is_empty() { wrong } else { wrong.with_help(self.help) }
        };
        let keys = self.keys.iter();
        let mut keys: Vec<_> =
            keys.filter_map(|key| Some((*key, &given(raw, key, self.idle)?.key_span))).collect();
        match self.at {
            At::Table => raw.parser.add_missing(wrong(&raw.name_span, "")),
            At::Each => {}
            At::First => keys.truncate(1),
            At::Later => {
                keys.sort_by_key(|(_, span)| span.start);
                keys.drain(..keys.len().min(1));
            }
        }
        keys.into_iter().for_each(|(key, span)| raw.parser.add(wrong(span, key)));
    }
}

/// Reports all relations that a table breaks. `word` is its product, if it has one.
pub(super) fn check(raw: &RawTable<'_>, relations: &[Relation], word: Option<&ProductWord>) {
    relations.iter().for_each(|relation| relation.check(raw, word));
}

/// The entry of `KEY`, unless its value is `idle`, or of `KEY=VALUE`; of a map its first one.
fn given<'r, 't>(raw: &'r RawTable<'t>, key: &'r str, idle: &[&str]) -> Option<&'r Entry<'t>> {
    let (key, text) = key.split_once('=').map_or((key, None), |(key, text)| (key, Some(text)));
    let Some(entry) = raw.entry(key) else {
        return raw.named(key).map(|(_, entry)| entry).next();
    };
    let is_meant = match entry.value {
        DeValue::Integer(number) => text.is_none() && !idle.contains(&number.as_str()),
        DeValue::Boolean(is_on) => text.is_none() && (*is_on || !idle.contains(&"false")),
        DeValue::String(given) => {
            text.is_none_or(|text| text == given) && !idle.contains(&&*format!("\"{given}\""))
        }
        _ => text.is_none(),
    };
    is_meant.then_some(entry)
}
