//! Reads `vary`: the factors, which make variants, and the load levels, which make steps.

use std::ops::Range;

use dyno_units::SettingValue;

use super::database::{NamedDatabase, check_setting_name};
use super::problems::Problems;
use super::value::{self, Entry, Given, Section, entries, given, list, values};
use super::workload::{NamedWorkload, option_text_for_all, report_unknown_option};
use crate::keys::{Shape, VARY};
use crate::nearest::did_you_mean;
use crate::study::setting_text;
use crate::vocabulary::OptionWord;
use crate::{Diagnostic, Factor};

/// The databases and workloads that the design chooses from.
pub(super) struct Choices<'a, 'v> {
    /// Databases in file order.
    pub(super) databases: &'a [NamedDatabase],
    /// Workloads in file order.
    pub(super) workloads: &'a [NamedWorkload<'v>],
}

/// One thing that is varied, and where.
#[derive(Debug)]
pub(super) struct Varied<T> {
    /// Its levels; none when one of them was wrong.
    pub(super) levels: Option<Vec<T>>,
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
    pub(super) rate: Option<Varied<f64>>,
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
        let databases: Vec<&str> = choices.databases.iter().map(|one| one.name.as_str()).collect();
        let workloads: Vec<&str> = choices.workloads.iter().map(|one| one.name.as_str()).collect();
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

    /// The factors in the order of the file; none when one of them was wrong.
    pub(super) fn factors(
        &self,
        problems: &mut Problems,
        databases: &[&NamedDatabase],
        workloads: &[&NamedWorkload<'_>],
    ) -> Option<Vec<Factor>> {
        let mut found: Vec<(usize, Option<Factor>)> = Vec::new();
        if let Some(varied) = &self.database {
            found.push((varied.key_span.start, varied.levels.clone().map(Factor::Database)));
        }
        if let Some(varied) = &self.workload {
            found.push((varied.key_span.start, varied.levels.clone().map(Factor::Workload)));
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
    let levels = list.and_then(|list| values(&list));
    Some(Varied { levels, key_span: entry.key_span })
}

/// A name that must be among `known`.
pub(super) fn known_name(
    problems: &mut Problems,
    entry: &Entry<'_>,
    kind: &str,
    known: &[&str],
) -> Option<String> {
    let name = value::text(problems, entry)?;
    if known.contains(&name.as_str()) {
        return Some(name);
    }
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
) -> Option<Factor> {
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
            .with_label("given by `url`: Dyno changes no server that it does not own")
            .with_help("use `product` instead of `url` in that database"),
        );
    }
    let list: Vec<Given<SettingValue>> =
        list(problems, &setting.entry, value::setting, setting_text)?;
    let levels = values(&list)?;
    is_name.then(|| Factor::Setting { name: setting.name.to_owned(), levels })
}

fn option_factor(
    problems: &mut Problems,
    option: &NamedLevels<'_>,
    workloads: &[&NamedWorkload<'_>],
) -> Option<Factor> {
    let words = option_words(problems, option.name, option.entry.key_span.clone(), workloads)?;
    let list: Vec<Given<String>> = list(
        problems,
        &option.entry,
        |problems, entry| option_text_for_all(problems, entry, &words),
        String::clone,
    )?;
    Some(Factor::Option { name: option.name.to_owned(), levels: values(&list)? })
}

/// The option of each workload that is involved; it must be an option of every one.
fn option_words<'v>(
    problems: &mut Problems,
    name: &str,
    span: Range<usize>,
    workloads: &[&NamedWorkload<'v>],
) -> Option<Vec<&'v OptionWord>> {
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
