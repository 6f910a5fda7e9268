//! The kinds of tables that a study has several of, each with a name: `[database.NAME]`.
//!
//! One more kind is a file beside this one and a line in [`KINDS`]. Parser, schema, reference page, `vary`
//! and the plan's text read its fields from its keys.

use super::table::RawTable;
use super::{database, fault, host, job, probe, volume, workload};
use crate::Table;
use crate::keys::{Key, Shape};

/// All kinds, in the order of the reference page.
pub(crate) const KINDS: &[&Kind] = &[
    &database::KIND,
    &workload::KIND,
    &volume::KIND,
    &job::KIND,
    &fault::KIND,
    &host::KIND,
    &probe::KIND,
];

pub(crate) const WORKLOAD: &Kind = &workload::KIND;

/// Short ways to write a path: `setting.x` for `database.settings.x`, `option.x` for `workload.x`.
pub(crate) const SHORT: [Short; 2] = [
    Short { word: "setting", kind: &database::KIND, fields: "settings." },
    Short { word: "option", kind: &workload::KIND, fields: "" },
];

pub(crate) struct Short {
    /// What is written in place of table and beginning of the field.
    pub(crate) word: &'static str,
    pub(crate) kind: &'static Kind,
    /// How the fields begin; empty for fields that are no keys, but options.
    pub(crate) fields: &'static str,
}

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

/// What is varied: tables of a kind, or a field of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldPath {
    pub(crate) kind: &'static Kind,
    /// The field, with the name of the setting behind a dot; none for the tables themselves.
    pub(crate) field: Option<String>,
}

impl FieldPath {
    /// The path that a text stands for; none if it begins with the name of no kind. The field is not
    /// looked at.
    pub(crate) fn parse(text: &str) -> Option<FieldPath> {
        let (head, field) = match text.split_once('.') {
            Some((head, field)) => (head, Some(field)),
            None => (text, None),
        };
        if let Some(short) = SHORT.iter().find(|short| short.word == head) {
            let field = field.map(|field| format!("{}{field}", short.fields))?;
            return Some(FieldPath { kind: short.kind, field: Some(field) });
        }
        let kind = KINDS.iter().find(|kind| kind.name == head)?;
        let field = field.map(|field| match field.strip_prefix("options.") {
            Some(option) if kind.has_options => option.to_owned(),
            _ => field.to_owned(),
        });
        Some(FieldPath { kind, field })
    }

    /// The path in its shortest form, as plans, records and baselines have it.
    pub(crate) fn name(&self) -> String {
        let Some(field) = &self.field else { return self.kind.name.to_owned() };
        let is_key = self.kind.keys.iter().any(|key| key.name == field);
        let mut short = SHORT.iter().filter(|short| short.kind == self.kind && !is_key);
        match short.find_map(|short| Some((short.word, field.strip_prefix(short.fields)?))) {
            Some((word, rest)) => format!("{word}.{rest}"),
            None => format!("{}.{field}", self.kind.name),
        }
    }

    /// What stands before the level in the name of a variant: the setting, the option, the field.
    pub(crate) fn label(&self) -> Option<&str> {
        let field = self.field.as_deref()?;
        Some(field.strip_prefix("settings.").unwrap_or(field))
    }
}

pub(crate) fn variable_paths() -> Vec<String> {
    let kinds = || KINDS.iter().filter(|kind| kind.is_chosen);
    let tables = kinds().map(|kind| kind.name.to_owned());
    let short = SHORT.iter().map(|short| format!("{}.NAME", short.word));
    let loads = ["clients", "rate"].map(str::to_owned);
    let fields = kinds().flat_map(|kind| {
        let keys = kind.variable().filter(|key| key.shape != Shape::Settings);
        keys.map(|key| format!("{}.{}", kind.name, key.name))
    });
    tables.chain(loads).chain(short).chain(fields).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_one_shortest_form() {
        let check = |text: &str, name: &str, label: Option<&str>| {
            let path = FieldPath::parse(text).expect(text);
            assert_eq!((path.name().as_str(), path.label()), (name, label));
            assert_eq!(FieldPath::parse(name), Some(path));
        };
        check("database", "database", None);
        check("database.settings.io.x", "setting.io.x", Some("io.x"));
        check("setting.x", "setting.x", Some("x"));
        check("database.engine", "database.engine", Some("engine"));
        check("workload.options.rows", "option.rows", Some("rows"));
        check("workload.rows", "option.rows", Some("rows"));
        check("workload.workload", "workload.workload", Some("workload"));
        assert_eq!(FieldPath::parse("volumes.size"), None);
        assert_eq!(FieldPath::parse("setting"), None);
    }

    #[test]
    fn tables_that_every_variant_has_have_names_for_examples() {
        for kind in KINDS.iter().filter(|kind| kind.is_chosen) {
            assert!(kind.names.iter().all(|name| name.starts_with('"')), "{}", kind.name);
        }
    }
}
