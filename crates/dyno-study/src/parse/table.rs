//! Tables that a study has by name, as they are written: fields by path, with what is inherited.

use std::collections::BTreeMap;
use std::ops::Range;

use super::kind::Kind;
use super::like;
use super::money;
use super::problems::Problems;
use super::value::{self, Entry, Given, Section, entries, unknown_key};
use super::workload;
use crate::keys::{Shape, names};
use crate::{Diagnostic, FieldValue, Table, Vocabulary};

#[derive(Clone, Debug)]
pub(super) struct RawTable<'a> {
    pub(super) kind: &'static Kind,
    pub(super) name: &'a str,
    pub(super) name_span: Range<usize>,
    /// The table that it inherits from.
    pub(super) like: Option<Given<String>>,
    /// The fields by path: `engine`, `settings.NAME`, options by their names.
    entries: BTreeMap<String, Entry<'a>>,
    /// Tables in this table that are empty, of which there is no field.
    empty: Vec<Entry<'a>>,
}

impl<'a> RawTable<'a> {
    pub(super) fn entry(&self, field: &str) -> Option<&Entry<'a>> {
        self.entries.get(field)
    }

    pub(super) fn text(&self, field: &str) -> Option<&str> {
        let text = self.entry(field)?.value.as_str()?;
        let is_right = !text.trim().is_empty() && !text.contains(|c: char| c.is_control());
        is_right.then_some(text)
    }

    pub(super) fn empty_map(&self, map: &str) -> Option<&Entry<'a>> {
        self.empty.iter().find(|entry| entry.key == map)
    }

    pub(super) fn settings(&self) -> impl Iterator<Item = (&str, &Entry<'a>)> {
        self.named("settings")
    }

    pub(super) fn named<'r>(
        &'r self,
        map: &'r str,
    ) -> impl Iterator<Item = (&'r str, &'r Entry<'a>)> {
        let entries = self.entries.iter();
        entries.filter_map(move |(field, entry)| {
            Some((field.strip_prefix(map)?.strip_prefix('.')?, entry))
        })
    }

    pub(super) fn set(&mut self, field: &str, entry: Entry<'a>) {
        self.entries.insert(field.to_owned(), entry);
    }

    pub(super) fn set_default(&mut self, field: &str, entry: &Entry<'a>) {
        self.entries.entry(field.to_owned()).or_insert_with(|| entry.clone());
    }

    /// This table, with what it does not say itself taken from `parent`.
    pub(super) fn over(&self, parent: &RawTable<'a>) -> RawTable<'a> {
        let mut entries = parent.entries.clone();
        let alternatives = self.kind.alternatives;
        if alternatives.iter().any(|field| self.entries.contains_key(*field)) {
            for field in alternatives {
                entries.remove(*field);
            }
        }
        entries.extend(self.entries.clone());
        RawTable { entries, ..self.clone() }
    }

    pub(super) fn value(
        &self,
        problems: &mut Problems,
        (field, entry): (&str, &Entry<'_>),
        vocabulary: &Vocabulary,
    ) -> Option<FieldValue> {
        match self.kind.shape_of(field) {
            Some(shape) => value::field(problems, entry, shape),
            None if self.kind.has_options => {
                let word = workload::word(self, vocabulary)?;
                workload::option(problems, (field, entry), word).map(FieldValue::Text)
            }
            None => None,
        }
    }

    pub(super) fn read(&self, problems: &mut Problems, vocabulary: &Vocabulary) -> Option<Table> {
        let mut fields = BTreeMap::new();
        for (field, entry) in &self.entries {
            let value = self.value(problems, (field, entry), vocabulary);
            fields.extend(value.map(|value| (field.clone(), value)));
        }
        // All problems are reported, not only the first one.
        let is_right = fields.len() == self.entries.len();
        is_right.then(|| Table { kind: self.kind.name, name: self.name.to_owned(), fields })
    }
}

#[derive(Debug)]
pub(super) struct NamedTables<'a> {
    pub(super) kind: &'static Kind,
    /// In file order.
    pub(super) tables: Vec<NamedTable<'a>>,
}

#[derive(Debug)]
pub(super) struct NamedTable<'a> {
    pub(super) name: &'a str,
    /// As it is written, with what it inherits; none if that is not known.
    pub(super) raw: Option<RawTable<'a>>,
    /// Its values; none if something about it was wrong.
    pub(super) table: Option<Table>,
}

impl<'a> NamedTables<'a> {
    pub(super) fn names(&self) -> Vec<&'a str> {
        self.tables.iter().map(|table| table.name).collect()
    }
}

/// What tables have without saying it.
pub(super) struct Implied<'a> {
    /// The workloads of tables by their names, each at the key of its table.
    pub(super) workloads: Vec<Entry<'a>>,
    pub(super) price: Option<Entry<'a>>,
}

pub(super) fn read<'a>(
    problems: &mut Problems,
    study: &Section<'a>,
    kind: &'static Kind,
    implied: &Implied<'a>,
    vocabulary: &Vocabulary,
) -> NamedTables<'a> {
    let raws = read_raw(problems, study, kind, implied, vocabulary);
    let mut resolved = like::resolve(&raws, problems);
    money::check(problems, implied.price.as_ref(), &mut resolved);
    let tables = raws.iter().zip(resolved);
    let tables = tables.map(|(raw, resolved)| NamedTable {
        name: raw.name,
        table: resolved.as_ref().and_then(|raw| (kind.read)(problems, raw, vocabulary)),
        raw: resolved,
    });
    NamedTables { kind, tables: tables.collect() }
}

fn read_raw<'a>(
    problems: &mut Problems,
    study: &Section<'a>,
    kind: &'static Kind,
    implied: &Implied<'a>,
    vocabulary: &Vocabulary,
) -> Vec<RawTable<'a>> {
    let missing = |span| Diagnostic::new(span, format!("the study names no {}", kind.name));
    let Some(entry) = study.entry(kind.name) else {
        // A misspelt key has been reported, and is what is missing.
        if let Some(help) = kind.needed.filter(|_| !study.has_misspelt(kind.name)) {
            problems.add_missing(missing(0..0).with_help(help));
        }
        return Vec::new();
    };
    let Some(table) = value::table(problems, &entry) else { return Vec::new() };
    if table.is_empty() && kind.needed.is_some() {
        problems.add_missing(missing(entry.key_span).with_label("it has no table"));
    }
    let entries = entries(table);
    let raws = entries.iter().filter_map(|entry| {
        let mut workloads = implied.workloads.iter();
        let implied = workloads.find(|implied| implied.key_span == entry.key_span);
        read_one(problems, kind, (entry, implied), vocabulary)
    });
    raws.collect()
}

fn read_one<'a>(
    problems: &mut Problems,
    kind: &'static Kind,
    (entry, implied): (&Entry<'a>, Option<&Entry<'a>>),
    vocabulary: &Vocabulary,
) -> Option<RawTable<'a>> {
    check_name(problems, entry);
    let table = value::table(problems, entry)?;
    let section = Section::open(entry.key_span.clone(), table, kind.keys);
    let (name, name_span) = (entry.key, entry.key_span.clone());
    let inherits = kind.keys.iter().any(|key| key.name == "like");
    let like = inherits.then(|| section.read("like", problems, value::text)).flatten();
    let (entries_of, empty) = (BTreeMap::new(), Vec::new());
    let mut raw = RawTable { kind, name, name_span, like, entries: entries_of, empty };
    for entry in entries(table).into_iter().filter(|entry| !inherits || entry.key != "like") {
        match kind.shape_of(entry.key) {
            Some(Shape::Settings) => {
                let Some(settings) = value::table(problems, &entry) else { continue };
                if settings.is_empty() {
                    raw.empty.push(entry.clone());
                }
                for setting in entries(settings) {
                    if check_setting_name(problems, &setting, setting.key) {
                        raw.set(&format!("{}.{}", entry.key, setting.key), setting);
                    }
                }
            }
            None if !kind.has_options => {
                let title = format!("`[{}.{name}]`", kind.name);
                problems.add(unknown_key(&entry, &title, names(kind.keys)));
            }
            _ => raw.set(entry.key, entry),
        }
    }
    if let Some(implied) = implied {
        raw.set_default(implied.key, implied);
    }
    // What it inherits may not be known; its own fields are reported all the same.
    let own = raw.entries.iter().filter(|(field, _)| kind.shape_of(field).is_some());
    own.for_each(|own| drop(raw.value(problems, (own.0, own.1), vocabulary)));
    Some(raw)
}

/// Reports a name that could not stand in a report, a plan or a file name.
pub(super) fn check_name(problems: &mut Problems, entry: &Entry<'_>) {
    const CHARACTERS_MAX: usize = 60;
    let is_odd = |c: char| c.is_control() || matches!(c, '·' | '/' | '\\');
    let name = entry.key;
    if name.trim() != name || name.is_empty() || name.starts_with('.') || name.contains(is_odd) {
        problems.add(
            Diagnostic::new(entry.key_span.clone(), "this name cannot be used")
                .with_label("not a valid name")
                .with_help(
                    "use letters, digits, `_`, `-`, `.` and spaces, without a leading dot and \
                     without a space at either end",
                ),
        );
    } else if name.chars().count() > CHARACTERS_MAX {
        let message = format!("this name is longer than {CHARACTERS_MAX} characters");
        problems.add(Diagnostic::new(entry.key_span.clone(), message).with_label("too long"));
    }
}

/// Whether a setting's name is one; it is written into configuration files as it is.
pub(super) fn check_setting_name(problems: &mut Problems, entry: &Entry<'_>, name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_name = !name.is_empty() && name.chars().all(is_part);
    if !is_name {
        problems.add(
            Diagnostic::new(entry.key_span.clone(), "this cannot be the name of a setting")
                .with_label("a setting's name consists of letters, digits, `_`, `-` and `.`"),
        );
    }
    is_name
}
