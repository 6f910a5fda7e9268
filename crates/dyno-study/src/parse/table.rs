//! Tables that a study has by name, as they are written: fields by path, with what is inherited.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use dyno_units::Nanoseconds;

use super::parser::Parser;
use super::value::{self, Entry, Given, Section, at_key, at_value, entries, given, unknown_key};
use super::workload;
use crate::keys::{Key, Shape, names};
use crate::nearest::did_you_mean;
use crate::{Diagnostic, FieldValue, LoadLevel, Table, Variant};

/// Tables that a study has several of, each with a name: `[database.NAME]`.
pub(crate) struct Kind {
    /// Its name: the first part of the table's.
    pub(crate) name: &'static str,
    /// What the tables are, for editors.
    pub(crate) help: &'static str,
    /// What one of them is, for the reference page.
    pub(crate) lead: &'static str,
    /// Such tables as a value in TOML.
    pub(crate) example: &'static str,
    /// Names of two of them in TOML.
    pub(crate) names: [&'static str; 2],
    /// What else can stand as the baseline's.
    pub(crate) baseline_note: &'static str,
    pub(crate) keys: &'static [Key],
    /// Whether further keys are options of the workload that the table chooses.
    pub(crate) has_options: bool,
    /// Fields that answer the same question: one of them overrides all that are inherited.
    pub(crate) alternatives: &'static [&'static str],
    /// Whether each variant has one of them, so that they and their fields can be varied.
    pub(crate) is_chosen: bool,
    /// What to add if there is none; none where a study needs none.
    pub(crate) needed: Option<&'static str>,
    /// Reads a table, `like` resolved, and checks what it says as a whole.
    pub(super) read: Read,
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name)
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Kind) -> bool {
        self.name == other.name
    }
}

type Read = fn(&RawTable<'_>) -> Option<Table>;

impl Kind {
    /// Each variant has one of it, if there is any.
    pub(super) const fn new(name: &'static str, keys: &'static [Key], read: Read) -> Kind {
        Kind {
            name,
            help: "",
            lead: "",
            example: "",
            names: ["", ""],
            baseline_note: "",
            keys,
            has_options: false,
            alternatives: &[],
            is_chosen: true,
            needed: None,
            read,
        }
    }

    /// What the value of a field is; none for options, and for fields that there are not.
    pub(crate) fn shape_of(&self, field: &str) -> Option<Shape> {
        if let Some((map, _)) = field.split_once('.') {
            let has_map = |key: &Key| key.name == map && key.shape == Shape::Settings;
            return self.keys.iter().any(has_map).then_some(Shape::Setting);
        }
        self.keys.iter().find(|key| key.name == field).map(|key| key.shape)
    }

    pub(crate) fn variable(&self) -> impl Iterator<Item = &'static Key> {
        self.keys.iter().filter(|key| self.is_chosen && key.fixed.is_none())
    }
}

#[derive(Clone, Debug)]
pub(super) struct RawTable<'a> {
    pub(super) parser: &'a Parser<'a>,
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

/// Most bytes of tables that a study multiplies: by `like`, or by what varies.
pub(super) const TABLES_MOST: usize = 256 << 20;

impl<'a> RawTable<'a> {
    /// About how many bytes the table takes, with a copy of each text.
    pub(super) fn size(&self) -> usize {
        const FIELD: usize = 100;
        self.entries.iter().map(|(field, entry)| FIELD + field.len() + entry.span.len()).sum()
    }

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

    pub(super) fn named(&self, map: &str) -> impl Iterator<Item = (&str, &Entry<'a>)> {
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

    pub(super) fn value(&self, (field, entry): (&str, &Entry<'_>)) -> Option<FieldValue> {
        match self.kind.shape_of(field) {
            Some(shape) => value::field(entry, shape),
            None if self.kind.has_options => {
                let word = workload::word(self)?;
                workload::option((field, entry), word).map(FieldValue::Text)
            }
            None => None,
        }
    }

    pub(super) fn read(&self) -> Option<Table> {
        let mut fields = BTreeMap::new();
        for (field, entry) in &self.entries {
            let value = self.value((field, entry));
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

/// What is wrong with a table in a variant: its key, if it is one, a message, a label and a help.
pub(super) type Wrong = (&'static str, String, String, String);

pub(super) fn wrong(
    key: &'static str,
    message: String,
    label: impl Into<String>,
    help: impl Into<String>,
) -> Option<Wrong> {
    Some((key, message, label.into(), help.into()))
}

/// A design as far as it has been read, for checks of it as a whole.
pub(super) struct Draft<'a> {
    pub(super) section: &'a Section<'a>,
    pub(super) tables: &'a [NamedTables<'a>],
    pub(super) hosts: &'a NamedTables<'a>,
    /// None while one of them is unknown.
    pub(super) variants: Option<&'a [Variant]>,
    pub(super) loads: Option<&'a [LoadLevel]>,
    pub(super) duration: Nanoseconds,
}

impl<'a> Draft<'a> {
    pub(super) fn variants(&self) -> impl Iterator<Item = &'a Variant> {
        self.variants.into_iter().flatten()
    }

    /// Where a table of a kind has a key; its name if it has none, as when the value is varied.
    pub(super) fn place(&self, kind: &Kind, (name, key): (&str, &str)) -> Option<Range<usize>> {
        let of_kind = self.tables.iter().find(|tables| tables.kind == kind)?;
        let raw = of_kind.tables.iter().find(|table| table.name == name)?.raw.as_ref()?;
        Some(raw.entry(key).map_or(&raw.name_span, |entry| &entry.span).clone())
    }

    /// Reports what is wrong with tables of a kind. Variants that share a table share its mistakes.
    pub(super) fn report(&self, kind: &Kind, found: impl Iterator<Item = (String, Wrong)>) {
        let Section { parser, span: all, .. } = self.section;
        let mut told = BTreeSet::new();
        for (name, (key, message, label, help)) in found {
            let span = self.place(kind, (&name, key)).unwrap_or_else(|| all.clone());
            if told.insert((name, message.clone())) {
                Diagnostic::new(span, message).with_label(label).with_help(help).add_to(parser);
            }
        }
    }
}

/// The tables of a kind as they are written, with what they have without saying it.
pub(super) fn raws<'a>(
    study: &Section<'a>,
    kind: &'static Kind,
    workloads: &[Entry<'a>],
) -> Vec<RawTable<'a>> {
    let missing = |span| Diagnostic::new(span, format!("the study names no {}", kind.name));
    let Some(entry) = study.entry(kind.name) else {
        // A misspelt key has been reported, and is what is missing.
        if let Some(help) = kind.needed.filter(|_| !study.has_misspelt(kind.name)) {
            study.parser.add_missing(missing(0..0).with_help(help));
        }
        return Vec::new();
    };
    let Some(table) = value::table(&entry) else { return Vec::new() };
    if table.is_empty() && kind.needed.is_some() {
        study.parser.add_missing(missing(entry.key_span).with_label("it has no table"));
    }
    let entries = entries(study.parser, table);
    let raws = entries.iter().filter_map(|entry| {
        let implied = workloads.iter().find(|implied| implied.key_span == entry.key_span);
        read_one(kind, (entry, implied))
    });
    raws.collect()
}

fn read_one<'a>(
    kind: &'static Kind,
    (entry, implied): (&Entry<'a>, Option<&Entry<'a>>),
) -> Option<RawTable<'a>> {
    check_name(entry);
    let table = value::table(entry)?;
    let (parser, name, name_span) = (entry.parser, entry.key, entry.key_span.clone());
    let (fields, empty) = (BTreeMap::new(), Vec::new());
    let mut raw = RawTable { parser, kind, name, name_span, like: None, entries: fields, empty };
    for entry in entries(parser, table) {
        match kind.shape_of(entry.key) {
            Some(_) if entry.key == "like" => raw.like = Some(given(&entry, value::text)),
            Some(Shape::Settings) => {
                let Some(settings) = value::table(&entry) else { continue };
                if settings.is_empty() {
                    raw.empty.push(entry.clone());
                }
                for setting in entries(parser, settings) {
                    if check_setting_name(&setting, setting.key) {
                        raw.set(&format!("{}.{}", entry.key, setting.key), setting);
                    }
                }
            }
            None if !kind.has_options => {
                let title = format!("`[{}.{name}]`", kind.name);
                entry.parser.add(unknown_key(&entry, &title, names(kind.keys)));
            }
            _ => raw.set(entry.key, entry),
        }
    }
    if let Some(implied) = implied {
        raw.set_default(implied.key, implied);
    }
    // What it inherits may not be known; its own fields are reported all the same.
    let own = raw.entries.iter().filter(|(field, _)| kind.shape_of(field).is_some());
    own.for_each(|own| drop(raw.value((own.0, own.1))));
    Some(raw)
}

/// Reports a name that could not stand in a report, a plan or a file name.
pub(super) fn check_name(entry: &Entry<'_>) {
    const CHARACTERS_MAX: usize = 60;
    let is_odd = |c: char| c.is_control() || matches!(c, '·' | '/' | '\\');
    let name = entry.key;
    if name.trim() != name || name.is_empty() || name.starts_with('.') || name.contains(is_odd) {
        at_key(entry, "this name cannot be used")
            .with_label("not a valid name")
            .with_help(
                "use letters, digits, `_`, `-`, `.` and spaces, without a leading dot and \
                     without a space at either end",
            )
            .add_to(entry.parser);
    } else if name.chars().count() > CHARACTERS_MAX {
        let message = format!("this name is longer than {CHARACTERS_MAX} characters");
        at_key(entry, message).with_label("too long").add_to(entry.parser);
    }
}

/// Whether a setting's name is one; it is written into configuration files as it is.
pub(super) fn check_setting_name(entry: &Entry<'_>, name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_name = !name.is_empty() && name.chars().all(is_part);
    if !is_name {
        at_key(entry, "this cannot be the name of a setting")
            .with_label("a setting's name consists of letters, digits, `_`, `-` and `.`")
            .add_to(entry.parser);
    }
    is_name
}

/// Names that a study has, to be looked up many times.
pub(super) struct KnownNames<'a> {
    in_order: Vec<&'a str>,
    sorted: BTreeSet<&'a str>,
}

impl<'a> KnownNames<'a> {
    pub(super) fn new(in_order: Vec<&'a str>) -> KnownNames<'a> {
        let sorted = in_order.iter().copied().collect();
        KnownNames { in_order, sorted }
    }
}

pub(super) fn known_name(entry: &Entry<'_>, kind: &str, known: &KnownNames<'_>) -> Option<String> {
    let name = value::text(entry)?;
    if known.sorted.contains(name.as_str()) {
        return Some(name);
    }
    let known = &known.in_order;
    let diagnostic =
        at_value(entry, format!("there is no {kind} `{name}`")).with_label("not in this study");
    if known.is_empty() {
        entry.parser.add_missing(diagnostic.with_help(format!("add a table [{kind}.{name}]")));
    } else {
        entry.parser.add(diagnostic.with_help(did_you_mean(&name, known.iter().copied())));
    }
    None
}
