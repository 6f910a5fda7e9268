//! Reads `vary`: the factors, which make variants, and the load levels, which make steps.

use std::collections::BTreeSet;
use std::ops::Range;

use dyno_model::OptionSpec;
use dyno_units::SettingValue;
use toml::de::DeValue;

use super::database::{NamedDatabase, check_setting_name};
use super::problems::Problems;
use super::value::{self, Entry, Given, Rate, Section, entries, given, list, values};
use super::workload::{NamedWorkload, option_text_for_all, report_unknown_option};
use crate::keys::{Shape, VARY};
use crate::nearest::did_you_mean;
use crate::study::setting_text;
use crate::{Diagnostic, Factor};

/// The databases and workloads that the design chooses from.
pub(super) struct Choices<'a, 'v> {
    /// Databases in file order.
    pub(super) databases: &'a [NamedDatabase],
    /// Workloads in file order.
    pub(super) workloads: &'a [NamedWorkload<'v>],
    /// Names of the probes that there are.
    pub(super) probes: &'a [String],
}

/// One thing that is varied, and where.
#[derive(Debug)]
pub(super) struct Varied<T> {
    /// Its levels; none when one of them was wrong.
    pub(super) levels: Option<Vec<T>>,
    /// Those of its levels that are right.
    right: Vec<T>,
    /// Those that are wrong, as text; none where all are right.
    wrong: Option<Vec<String>>,
    /// Where its key is.
    pub(super) key_span: Range<usize>,
}

/// A setting or an option that is varied.
#[derive(Debug)]
pub(super) struct NamedLevels<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// Its list of levels, not yet read.
    pub(super) entry: Entry<'a>,
}

/// `vary` as it was written. Options are read when the workloads are known.
#[derive(Debug, Default)]
pub(super) struct Vary<'a> {
    /// Names of databases.
    pub(super) database: Option<Varied<String>>,
    /// Names of workloads.
    pub(super) workload: Option<Varied<String>>,
    /// Numbers of clients.
    pub(super) clients: Option<Varied<u64>>,
    /// Offered rates.
    pub(super) rate: Option<Varied<Rate>>,
    /// Settings.
    pub(super) settings: Vec<NamedLevels<'a>>,
    /// Workload options.
    pub(super) options: Vec<NamedLevels<'a>>,
    /// Where the key `vary` is.
    pub(super) span: Range<usize>,
}

impl<'a> Vary<'a> {
    /// Reads `vary`.
    pub(super) fn read(
        problems: &mut Problems,
        entry: &Entry<'a>,
        choices: &Choices<'_, '_>,
    ) -> Vary<'a> {
        let span = entry.key_span.clone();
        let Some(table) = value::table(problems, entry) else {
            return Vary { span, ..Vary::default() };
        };
        let section = Section::closed(problems, ("`vary`", span.clone()), table, VARY);
        let databases = choices.databases.iter().map(|one| one.name.as_str());
        let databases = KnownNames::new(databases.collect());
        let workloads = choices.workloads.iter().map(|one| one.name.as_str());
        let workloads = KnownNames::new(workloads.collect());
        Vary {
            database: levels(problems, &section, "database", |problems, entry| {
                known_name(problems, entry, "database", &databases)
            }),
            workload: levels(problems, &section, "workload", |problems, entry| {
                known_name(problems, entry, "workload", &workloads)
            }),
            clients: levels(problems, &section, "clients", |problems, entry| {
                value::count(problems, entry, (1, crate::keys::CLIENTS_MAX))
            }),
            rate: levels(problems, &section, "rate", value::rate),
            settings: named_levels(problems, &section, "setting"),
            options: named_levels(problems, &section, "option"),
            span,
        }
    }

    /// The factors in the order of the file, wrong ones with what of them is right.
    pub(super) fn factors(
        &self,
        problems: &mut Problems,
        databases: &[&NamedDatabase],
        workloads: &[&NamedWorkload<'_>],
    ) -> Vec<ReadFactor> {
        let mut found: Vec<(usize, ReadFactor)> = Vec::new();
        if let Some(varied) = &self.database {
            let factor = Factor::Database(varied.right.clone());
            found.push((varied.key_span.start, ReadFactor::new(factor, &varied.wrong)));
        }
        if let Some(varied) = &self.workload {
            let factor = Factor::Workload(varied.right.clone());
            found.push((varied.key_span.start, ReadFactor::new(factor, &varied.wrong)));
        }
        for setting in &self.settings {
            let factor = setting_factor(problems, setting, databases);
            found.push((setting.entry.key_span.start, factor));
        }
        for option in &self.options {
            let factor = option_factor(problems, option, workloads);
            found.push((option.entry.key_span.start, factor));
        }
        found.sort_by_key(|(position, _)| *position);
        found.into_iter().map(|(_, factor)| factor).collect()
    }
}

/// A factor as far as it could be read.
#[derive(Clone, Debug)]
pub(super) struct ReadFactor {
    /// The factor, with its right levels only.
    pub(super) factor: Factor,
    /// Its levels that are wrong, as far as they are texts or numbers; and whether there are any,
    /// which has been reported then.
    wrong: Option<Vec<String>>,
}

impl ReadFactor {
    fn new(factor: Factor, wrong: &Option<Vec<String>>) -> ReadFactor {
        ReadFactor { factor, wrong: wrong.clone() }
    }

    /// The factor, if all of it is right.
    pub(super) fn whole(self) -> Option<Factor> {
        if self.wrong.is_none() { Some(self.factor) } else { None }
    }

    /// Whether nothing can be said of a level, because it is wrong in the factor itself.
    pub(super) fn is_reported(&self, level: &str) -> bool {
        self.wrong.as_ref().is_some_and(|wrong| {
            wrong.iter().any(|other| other == level)
                || self.factor.levels().is_empty() && wrong.is_empty()
        })
    }
}

fn levels<T: Clone + std::fmt::Display>(
    problems: &mut Problems,
    section: &Section<'_>,
    name: &str,
    reader: impl FnMut(&mut Problems, &Entry<'_>) -> Option<T>,
) -> Option<Varied<T>> {
    debug_assert!(
        VARY.iter().any(|key| key.name == name && matches!(key.shape, Shape::Levels(_))),
        "`{name}` is not a list of levels in the key table"
    );
    let entry = section.entry(name)?;
    let list = list(problems, &entry, reader, T::to_string);
    let levels = list.as_ref().and_then(|list| values(list));
    let right = rights(list.as_deref());
    Some(Varied { levels, right, wrong: wrongs(&entry, list.as_deref()), key_span: entry.key_span })
}

/// The levels that are right.
fn rights<T: Clone>(list: Option<&[Given<T>]>) -> Vec<T> {
    list.into_iter().flatten().filter_map(|one| one.value.clone()).collect()
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

/// Names that a study has, to be looked up many times.
pub(super) struct KnownNames<'a> {
    in_order: Vec<&'a str>,
    sorted: BTreeSet<&'a str>,
}

impl<'a> KnownNames<'a> {
    /// These names, in the order of the file.
    pub(super) fn new(in_order: Vec<&'a str>) -> KnownNames<'a> {
        let sorted = in_order.iter().copied().collect();
        KnownNames { in_order, sorted }
    }
}

/// A name that must be among `known`.
pub(super) fn known_name(
    problems: &mut Problems,
    entry: &Entry<'_>,
    kind: &str,
    known: &KnownNames<'_>,
) -> Option<String> {
    let name = value::text(problems, entry)?;
    if known.sorted.contains(name.as_str()) {
        return Some(name);
    }
    let known = &known.in_order;
    let diagnostic = Diagnostic::new(entry.span.clone(), format!("there is no {kind} `{name}`"))
        .with_label("not in this study");
    if known.is_empty() {
        problems.add_missing(diagnostic.with_help(format!("add a table [{kind}.{name}]")));
    } else {
        problems.add(diagnostic.with_help(did_you_mean(&name, known.iter().copied())));
    }
    None
}

fn named_levels<'a>(
    problems: &mut Problems,
    section: &Section<'a>,
    name: &str,
) -> Vec<NamedLevels<'a>> {
    let Some(entry) = section.entry(name) else { return Vec::new() };
    let Some(table) = value::table(problems, &entry) else { return Vec::new() };
    if table.is_empty() {
        problems.add(
            Diagnostic::new(entry.span, format!("`{name}` varies nothing"))
                .with_label("empty")
                .with_help(format!("write it like {name} = {{ NAME = [1, 2] }}")),
        );
    }
    entries(table).into_iter().map(|entry| NamedLevels { name: entry.key, entry }).collect()
}

fn setting_factor(
    problems: &mut Problems,
    setting: &NamedLevels<'_>,
    databases: &[&NamedDatabase],
) -> ReadFactor {
    let is_name = check_setting_name(problems, &setting.entry);
    for database in databases.iter().filter(|database| database.is_url()) {
        problems.add(
            Diagnostic::new(
                setting.entry.key_span.clone(),
                format!(
                    "setting `{}` cannot be varied on database `{}`",
                    setting.name, database.name
                ),
            )
            .with_label("given by `url`: Dyno does not change a server that it did not start")
            .with_help("use `product` instead of `url` in that database"),
        );
    }
    for database in databases {
        database.check_setting(problems, &setting.entry);
    }
    let list = list(problems, &setting.entry, value::setting, setting_text);
    let wrong = wrongs(&setting.entry, list.as_deref());
    let levels: Vec<SettingValue> = rights(list.as_deref());
    let factor = Factor::Setting { name: setting.name.to_owned(), levels };
    ReadFactor { factor, wrong: if is_name { wrong } else { Some(wrong.unwrap_or_default()) } }
}

fn option_factor(
    problems: &mut Problems,
    option: &NamedLevels<'_>,
    workloads: &[&NamedWorkload<'_>],
) -> ReadFactor {
    let name = option.name.to_owned();
    let span = option.entry.key_span.clone();
    let Some(words) = option_words(problems, option.name, span, workloads) else {
        // Without the option nothing can be said of its levels.
        let factor = Factor::Option { name, levels: Vec::new() };
        return ReadFactor { factor, wrong: Some(Vec::new()) };
    };
    let list = list(
        problems,
        &option.entry,
        |problems, entry| option_text_for_all(problems, entry, &words),
        String::clone,
    );
    let wrong = wrongs(&option.entry, list.as_deref());
    let factor = Factor::Option { name, levels: rights(list.as_deref()) };
    ReadFactor { factor, wrong }
}

/// The option of each workload that is involved; it must be an option of every one.
fn option_words<'v>(
    problems: &mut Problems,
    name: &str,
    span: Range<usize>,
    workloads: &[&NamedWorkload<'v>],
) -> Option<Vec<&'v OptionSpec>> {
    let mut words = Vec::new();
    let mut is_unknown = false;
    for workload in workloads {
        // A workload that is not known has been reported.
        let word = workload.word?;
        match word.options.iter().find(|option| option.name == name) {
            Some(option) => words.push(option),
            None => {
                report_unknown_option(problems, span.clone(), name, word);
                is_unknown = true;
            }
        }
    }
    (!is_unknown && !words.is_empty()).then_some(words)
}

/// The level of a setting that an entry names, as text.
pub(super) fn setting_level(problems: &mut Problems, entry: &Entry<'_>) -> Option<String> {
    given(problems, entry, value::setting).value.as_ref().map(setting_text)
}

/// The level of an option that an entry names, as text.
pub(super) fn option_level(
    problems: &mut Problems,
    entry: &Entry<'_>,
    name: &str,
    workloads: &[&NamedWorkload<'_>],
) -> Option<String> {
    let words = option_words(problems, name, entry.key_span.clone(), workloads)?;
    option_text_for_all(problems, entry, &words)
}
