//! Reads `vary`: the factors, which make variants, and the load levels, which make steps.
//!
//! A factor is a path: tables of a kind (`database`), or a field of them (`database.engine`, shortly
//! `setting.x`). Its levels are read as the same value in the table itself is.

use std::ops::Range;

use toml::de::DeValue;

use super::choice::Involved;
use super::kind::{DESIGN, FieldPath, KINDS, SHORT, variable_paths};
use super::table::{Kind, KnownNames, NamedTable, NamedTables, check_setting_name, known_name};
use super::value::{
    self, Entry, Given, Rate, at_value, entries, item_entry, list, unknown_key, values, wrong_type,
};
use super::workload;
use crate::keys::{CLIENTS_MAX, Key, Shape, names};
use crate::nearest::did_you_mean;
use crate::{Diagnostic, Factor};

#[derive(Debug)]
pub(super) struct Varied<T> {
    /// Its levels; none when one of them was wrong.
    pub(super) levels: Option<Vec<T>>,
    pub(super) key_span: Range<usize>,
}

/// `vary` as it was written. Levels of fields are read when the tables are known that they go into.
#[derive(Debug, Default)]
pub(super) struct Vary<'a> {
    pub(super) clients: Option<Varied<u64>>,
    pub(super) rate: Option<Varied<Rate>>,
    /// What makes variants, in file order.
    varying: Vec<Varying<'a>>,
    pub(super) span: Range<usize>,
}

#[derive(Debug)]
struct Varying<'a> {
    path: FieldPath,
    written: String,
    entry: Entry<'a>,
    /// Of names of tables, which are read first.
    names: Option<ReadFactor<'a>>,
}

pub(super) struct Leaf<'a> {
    /// The keys that lead to it, with dots between them.
    pub(super) path: String,
    /// The value; its key is the last part of the path.
    pub(super) entry: Entry<'a>,
}

/// All values of a table and of the tables in it, in file order: `{ setting = { x = 1 } }` and
/// `{ "setting.x" = 1 }` are the same. An empty table counts as a value.
pub(super) fn leaves<'a>(table: &Entry<'a>) -> Vec<Leaf<'a>> {
    fn add<'a>(above: &str, table: &Entry<'a>, found: &mut Vec<Leaf<'a>>) {
        let DeValue::Table(inner) = table.value else { return };
        for entry in entries(table.parser, inner) {
            let path = format!("{above}{}", entry.key);
            match entry.value {
                DeValue::Table(inner) if !inner.is_empty() => {
                    add(&format!("{path}."), &entry, found);
                }
                _ => found.push(Leaf { path, entry: Entry { key: last(entry.key), ..entry } }),
            }
        }
    }
    let mut found = Vec::new();
    add("", table, &mut found);
    found.sort_by_key(|leaf| leaf.entry.key_span.start);
    found
}

/// What is left of a path when the words that lead to a setting, an option or a field are taken away.
fn last(path: &str) -> &str {
    let heads = KINDS.iter().map(|kind| kind.name).chain(SHORT.iter().map(|short| short.word));
    let heads = heads.chain(["settings", "options"]);
    heads.fold(path, |rest, head| {
        rest.strip_prefix(head).and_then(|rest| rest.strip_prefix('.')).unwrap_or(rest)
    })
}

impl<'a> Vary<'a> {
    /// Nothing is varied. Messages about the design as a whole point at `span`.
    pub(super) fn none(span: Range<usize>) -> Vary<'a> {
        Vary { span, ..Vary::default() }
    }

    /// Reads `vary`. `tables` are those of all kinds of which each variant has one.
    pub(super) fn read(entry: &Entry<'a>, tables: &[NamedTables<'_>]) -> Vary<'a> {
        let mut vary = Vary::none(entry.key_span.clone());
        if value::table(entry).is_none() {
            return vary;
        }
        for Leaf { path, entry } in leaves(entry) {
            match path.as_str() {
                "clients" => {
                    let count = |entry: &Entry<'_>| value::count(entry, (1, CLIENTS_MAX));
                    vary.clients = Some(load_levels(&entry, count));
                }
                "rate" => vary.rate = Some(load_levels(&entry, value::rate)),
                _ => vary.add(&path, entry, tables),
            }
        }
        vary
    }

    fn add(&mut self, text: &str, entry: Entry<'a>, tables: &[NamedTables<'_>]) {
        let Some(path) = path(text, &entry) else { return };
        if self.varying.iter().any(|other| other.path == path) {
            let message = format!("`{text}` is varied twice");
            Diagnostic::new(entry.key_span, message)
                .with_label("one of the two occurrences")
                .add_to(entry.parser);
            return;
        }
        let names = tables.iter().find(|tables| tables.kind == path.kind && path.field.is_none());
        let names = names.map(|tables| {
            let known = KnownNames::new(tables.names());
            let kind = path.kind.name;
            let read = |entry: &Entry<'_>| known_name(entry, kind, &known);
            ReadFactor::new((&path, text), &entry, read)
        });
        self.varying.push(Varying { path, written: text.to_owned(), entry, names });
    }

    pub(super) fn names(&self, kind: &Kind) -> Option<&ReadFactor<'a>> {
        let mut names = self.varying.iter().filter_map(|varying| varying.names.as_ref());
        names.find(|names| names.path.kind == kind)
    }

    /// The factors in the order of the file, wrong ones with what of them is right. `involved` has the
    /// tables of a kind that some variant chooses.
    pub(super) fn factors(self, involved: &Involved<'_>) -> Vec<ReadFactor<'a>> {
        let factors = self.varying.into_iter().map(|Varying { path, written, entry, names }| {
            names.unwrap_or_else(|| {
                let tables = involved.of(path.kind);
                ReadFactor::new((&path, &written), &entry, |entry| level(&path, entry, tables))
            })
        });
        factors.collect()
    }
}

fn path(text: &str, entry: &Entry<'_>) -> Option<FieldPath> {
    let span = || entry.key_span.clone();
    let cannot = |label: &str| {
        Diagnostic::new(span(), format!("`{text}` cannot be varied")).with_label(label)
    };
    if matches!(entry.value, DeValue::Table(_)) {
        at_value(entry, format!("`{text}` varies nothing"))
            .with_label("empty")
            .with_help(format!("write it like {text} = {{ NAME = [1, 2] }}"))
            .add_to(entry.parser);
        return None;
    }
    let Some(path) = FieldPath::parse(text) else {
        let head = text.split('.').next().unwrap_or_default();
        if SHORT.iter().any(|short| short.word == text) {
            return wrong_type(entry, "a table");
        } else if head == "design" || head == "machine" {
            let keys = names(&DESIGN).filter(|key| matches!(*key, "clients" | "rate"));
            let load = keys.filter(|key| text == format!("design.{key}")).last();
            let help = load
                .map_or("vary fields of tables, `clients` or `rate`".to_owned(), |key| {
                    format!("write it without the table: {key} = [1, 2]")
                });
            entry.parser.add(cannot("the same for all variants").with_help(help));
        } else {
            let words = variable_paths();
            let entry = Entry { key: text, ..entry.clone() };
            entry.parser.add(unknown_key(&entry, "`vary`", words.iter().map(String::as_str)));
        }
        return None;
    };
    if !path.kind.is_chosen {
        entry.parser.add(cannot(&format!("a {} is the same for all variants", path.kind.name)));
        return None;
    }
    let Some(field) = &path.field else { return Some(path) };
    let key: Option<&Key> = path.kind.keys.iter().find(|key| key.name == field);
    if let Some(why) = key.and_then(|key| key.fixed) {
        entry.parser.add(cannot(why));
        return None;
    }
    match path.kind.shape_of(field) {
        Some(Shape::Settings) => return wrong_type(entry, "a table"),
        Some(Shape::Setting) => {
            let (_, name) = field.split_once('.')?;
            if check_setting_name(entry, name) {
                return Some(path);
            }
        }
        None if !path.kind.has_options => {
            let message = format!("`[{}.NAME]` has no field `{field}`", path.kind.name);
            let words = path.kind.variable().map(|key| key.name);
            Diagnostic::new(span(), message)
                .with_label("unknown field")
                .with_help(did_you_mean(field, words))
                .add_to(entry.parser);
        }
        _ => return Some(path),
    }
    None
}

/// The level of a field that an entry names, as text: read as the tables that it goes into have it.
pub(super) fn level(
    path: &FieldPath,
    entry: &Entry<'_>,
    tables: &[&NamedTable<'_>],
) -> Option<String> {
    let Some(field) = path.field.as_deref() else { return value::text(entry) };
    if let Some(shape) = path.kind.shape_of(field) {
        return value::field(entry, shape).map(|value| value.to_string());
    }
    // An option, which all workloads must have.
    let mut texts = Vec::new();
    for table in tables {
        // A workload that is not known has been reported.
        let word = workload::word(table.raw.as_ref()?)?;
        texts.push(workload::option((field, entry), word));
    }
    texts.into_iter().collect::<Option<Vec<String>>>()?.into_iter().next()
}

#[derive(Clone, Debug)]
pub(super) struct ReadFactor<'a> {
    /// The factor, with its right levels only.
    pub(super) factor: Factor,
    pub(super) path: FieldPath,
    pub(super) written: String,
    /// Its right levels as they are written.
    pub(super) entries: Vec<Entry<'a>>,
    /// Its levels that are wrong, as far as they are texts or numbers; and whether there are any,
    /// which has been reported then.
    wrong: Option<Vec<String>>,
    pub(super) key_span: Range<usize>,
}

impl<'a> ReadFactor<'a> {
    fn new(
        (path, written): (&FieldPath, &str),
        entry: &Entry<'a>,
        read: impl FnMut(&Entry<'_>) -> Option<String>,
    ) -> ReadFactor<'a> {
        let list = list(entry, read, String::clone);
        let given = list.as_deref().unwrap_or_default();
        let items = entry.value.as_array().into_iter().flat_map(|items| items.iter());
        let right = items.zip(given).filter(|(_, one)| one.value.is_some());
        let factor = Factor {
            name: path.name(),
            label: path.label().map(str::to_owned),
            levels: given.iter().filter_map(|one| one.value.clone()).collect(),
        };
        ReadFactor {
            factor,
            path: path.clone(),
            written: written.to_owned(),
            entries: right.map(|(item, _)| item_entry(entry, item)).collect(),
            wrong: wrongs(entry, list.as_deref()),
            key_span: entry.key_span.clone(),
        }
    }

    pub(super) fn whole(&self) -> Option<Factor> {
        self.wrong.is_none().then(|| self.factor.clone())
    }

    /// Whether nothing can be said of a level, because it is wrong in the factor itself.
    pub(super) fn is_reported(&self, level: &str) -> bool {
        self.wrong.as_ref().is_some_and(|wrong| {
            wrong.iter().any(|other| other == level)
                || self.factor.levels.is_empty() && wrong.is_empty()
        })
    }
}

fn load_levels<T: Clone + std::fmt::Display>(
    entry: &Entry<'_>,
    reader: impl FnMut(&Entry<'_>) -> Option<T>,
) -> Varied<T> {
    let list = list(entry, reader, T::to_string);
    let levels = list.as_ref().and_then(|list| values(list));
    Varied { levels, key_span: entry.key_span.clone() }
}

/// The levels that are wrong, as text; none where all are right.
fn wrongs<T>(entry: &Entry<'_>, list: Option<&[Given<T>]>) -> Option<Vec<String>> {
    let Some(list) = list else { return Some(Vec::new()) };
    if list.iter().all(|one| one.value.is_some()) {
        return None;
    }
    let DeValue::Array(items) = entry.value else { return Some(Vec::new()) };
    let wrong = items.iter().zip(list).filter(|(_, one)| one.value.is_none());
    let text = |item: &DeValue<'_>| match item {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        other => other.type_str().to_owned(),
    };
    Some(wrong.map(|(item, _)| text(item.get_ref())).collect())
}
