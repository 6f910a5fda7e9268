//! The kinds of tables that a study has several of, each with a name: `[database.NAME]`.
//!
//! One more kind is a file beside this one and a line in [`KINDS`]. Parser, schema, reference page, `vary`
//! and the plan's text read its fields from its keys.

use std::sync::LazyLock;

use super::table::Kind;
use super::{database, fault, host, job, probe, volume, workload};
use crate::keys::{BASELINE_ONLY, DESIGN_ONLY, Key, STUDY_ONLY, Shape, VARY_ONLY, key};

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

pub(crate) static STUDY: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let tables = |is_chosen: bool| -> Vec<Key> {
        let kinds = KINDS.iter().filter(|kind| kind.is_chosen == is_chosen);
        let table = |kind: &Kind| key(kind.name, Shape::Tables(kind.name)).help(kind.help);
        kinds.map(|kind| table(kind).example(kind.example)).collect()
    };
    let (title, others) = STUDY_ONLY.split_at(1);
    [title, &tables(true)[..], others, &tables(false)].concat()
});

pub(crate) static DESIGN: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let (first, others) = DESIGN_ONLY.split_at(1);
    [first, &for_each_kind(choice)[..], others].concat()
});

/// Keys of `vary`, besides paths such as `"database.engine"`.
pub(crate) static VARY: LazyLock<Vec<Key>> =
    LazyLock::new(|| [&for_each_kind(level_names)[..], VARY_ONLY].concat());

/// Keys of `baseline`, besides paths such as `"setting.NAME"`.
pub(crate) static BASELINE: LazyLock<Vec<Key>> =
    LazyLock::new(|| [&for_each_kind(baseline_name)[..], BASELINE_ONLY].concat());

/// A key for each kind of table of which every variant has one. The texts are made once.
fn for_each_kind(key: fn(&Kind) -> Key) -> Vec<Key> {
    KINDS.iter().filter(|kind| kind.is_chosen).map(|kind| key(kind)).collect()
}

fn choice(kind: &Kind) -> Key {
    let help = format!("The {}, if it is not varied and there are several.", kind.name);
    key(kind.name, Shape::Text).help(help.leak()).example(kind.names[0])
}

fn level_names(kind: &Kind) -> Key {
    let help = format!("Names of [{}.…] tables.", kind.name);
    let example = format!("[{}, {}]", kind.names[0], kind.names[1]);
    key(kind.name, Shape::Levels(&Shape::Text)).help(help.leak()).example(example.leak())
}

fn baseline_name(kind: &Kind) -> Key {
    let help = format!("The {} of the baseline{}.", kind.name, kind.baseline_note);
    key(kind.name, Shape::Text).help(help.leak()).example(kind.names[0])
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
