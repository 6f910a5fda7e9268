//! Reads the `[workload.NAME]` tables.

use std::collections::BTreeMap;
use std::ops::Range;

use dyno_model::{OptionKind, OptionSpec};
use toml::de::DeValue;

use super::database::check_name;
use super::like::{Inherit, resolve};
use super::problems::Problems;
use super::value::{self, Entry, Given, Section, entries, wrong_type, wrong_value};
use crate::keys::{WORKLOAD, names};
use crate::nearest::did_you_mean;
use crate::vocabulary::{Vocabulary, WorkloadWord};
use crate::{Diagnostic, WorkloadChoice};

/// A workload as far as it could be read.
#[derive(Clone, Debug)]
pub(super) struct NamedWorkload<'v> {
    /// Its name in the study.
    pub(super) name: String,
    /// What the vocabulary says about it, if it knows it.
    pub(super) word: Option<&'v WorkloadWord>,
    /// The choice, unless something about it was wrong.
    pub(super) choice: Option<WorkloadChoice>,
}

/// One table as it was written. Options are read when the workload is known.
#[derive(Clone, Debug)]
struct RawWorkload<'a> {
    name: String,
    like: Option<Given<String>>,
    workload: Option<Given<String>>,
    options: BTreeMap<String, Entry<'a>>,
}

impl Inherit for RawWorkload<'_> {
    const KIND: &'static str = "workload";

    fn name(&self) -> &str {
        &self.name
    }

    fn like(&self) -> Option<&Given<String>> {
        self.like.as_ref()
    }

    fn over(&self, parent: &Self) -> Self {
        let own = self.clone();
        let mut options = parent.options.clone();
        options.extend(own.options);
        let workload = own.workload.or_else(|| parent.workload.clone());
        RawWorkload { workload, options, ..own }
    }
}

/// Reads all workloads of the file.
pub(super) fn read<'v>(
    problems: &mut Problems,
    section: &Section<'_>,
    vocabulary: &'v Vocabulary,
) -> Vec<NamedWorkload<'v>> {
    let Some(entry) = section.entry("workload") else {
        let message = "the study names no workload";
        problems.add_missing(
            Diagnostic::new(0..0, message).with_help("add a table such as [workload.NAME]"),
        );
        return Vec::new();
    };
    let Some(table) = value::table(problems, &entry) else { return Vec::new() };
    if table.is_empty() {
        problems.add_missing(
            Diagnostic::new(entry.key_span.clone(), "the study names no workload")
                .with_label("it has no table"),
        );
    }
    let raws: Vec<RawWorkload<'_>> = entries(table)
        .into_iter()
        .filter_map(|entry| read_one(problems, entry, vocabulary))
        .collect();
    let resolved = resolve(&raws, problems);
    raws.iter()
        .zip(resolved)
        .map(|(raw, resolved)| match resolved {
            Some(resolved) => check(problems, resolved, vocabulary),
            None => NamedWorkload { name: raw.name.clone(), word: None, choice: None },
        })
        .collect()
}

fn read_one<'a>(
    problems: &mut Problems,
    entry: Entry<'a>,
    vocabulary: &Vocabulary,
) -> Option<RawWorkload<'a>> {
    check_name(problems, &entry);
    let table = value::table(problems, &entry)?;
    let section = Section::open(entry.key_span.clone(), table, WORKLOAD);
    let like = section.read("like", problems, value::text);
    let mut workload = section.read("workload", problems, value::text);
    // A name of the vocabulary says what the workload is, also where `like` says more.
    let is_word = find(vocabulary, entry.key).is_some();
    if workload.is_none() && (is_word || like.is_none()) {
        workload = Some(Given {
            value: Some(entry.key.to_owned()),
            span: entry.key_span.clone(),
            key_span: entry.key_span.clone(),
        });
    }
    let options = section.further_entries();
    Some(RawWorkload {
        name: entry.key.to_owned(),
        like,
        workload,
        options: options.into_iter().map(|option| (option.key.to_owned(), option)).collect(),
    })
}

fn find<'v>(vocabulary: &'v Vocabulary, name: &str) -> Option<&'v WorkloadWord> {
    vocabulary.workloads.iter().find(|word| word.name == name)
}

fn check<'v>(
    problems: &mut Problems,
    raw: RawWorkload<'_>,
    vocabulary: &'v Vocabulary,
) -> NamedWorkload<'v> {
    let wanted = raw.workload.as_ref().and_then(|given| given.value.as_ref());
    let word = wanted.and_then(|name| find(vocabulary, name));
    if let (Some(given), Some(name), None) = (&raw.workload, wanted, word) {
        report_unknown_workload(problems, given, name, vocabulary);
    }
    let choice = word.and_then(|word| {
        let options = read_options(problems, &raw, word)?;
        let workload = word.name.clone();
        Some(WorkloadChoice { name: raw.name.clone(), workload, options })
    });
    NamedWorkload { name: raw.name, word, choice }
}

fn report_unknown_workload(
    problems: &mut Problems,
    given: &Given<String>,
    name: &str,
    vocabulary: &Vocabulary,
) {
    let words = vocabulary.workloads.iter().map(|word| word.name.as_str());
    let mut help = did_you_mean(name, words);
    if given.span == given.key_span {
        let sign = if help.ends_with('?') { "" } else { "." };
        help.push_str(sign);
        help.push_str(
            " A table whose name is not a workload needs workload = \"…\" or like = \"…\".",
        );
    }
    problems.add(
        Diagnostic::new(given.span.clone(), format!("unknown workload `{name}`"))
            .with_label("Dyno does not know it")
            .with_help(help),
    );
}

fn read_options(
    problems: &mut Problems,
    raw: &RawWorkload<'_>,
    word: &WorkloadWord,
) -> Option<BTreeMap<String, String>> {
    let mut options = BTreeMap::new();
    for (name, entry) in &raw.options {
        match word.options.iter().find(|option| option.name == *name) {
            Some(option) => {
                options
                    .extend(option_text(problems, entry, option).map(|text| (name.clone(), text)));
            }
            None => report_unknown_option(problems, entry.key_span.clone(), name, word),
        }
    }
    // All problems are reported, not only the first one.
    (options.len() == raw.options.len()).then_some(options)
}

/// Reports an option that a workload does not have.
pub(super) fn report_unknown_option(
    problems: &mut Problems,
    span: Range<usize>,
    name: &str,
    word: &WorkloadWord,
) {
    let options = word.options.iter().map(|option| option.name.as_ref());
    problems.add(
        Diagnostic::new(span, format!("workload `{}` has no option `{name}`", word.name))
            .with_label("unknown option")
            .with_help(did_you_mean(name, names(WORKLOAD).chain(options))),
    );
}

/// The value of a workload option as text: counts as digits, switches as `on` and `off`, so that
/// equal values are equal texts.
pub(super) fn option_text(
    problems: &mut Problems,
    entry: &Entry<'_>,
    option: &OptionSpec,
) -> Option<String> {
    match &option.kind {
        OptionKind::Count => {
            // What fits into a TOML integer.
            let count = value::count(problems, entry, (0, i64::MAX as u64))?;
            Some(count.to_string())
        }
        OptionKind::Real => real_text(problems, entry),
        OptionKind::Switch => switch_text(problems, entry),
        OptionKind::Word(words) => {
            let meanings: Vec<(&str, &str)> = words.iter().map(|word| (word, word)).collect();
            value::word(problems, entry, &meanings).map(str::to_owned)
        }
    }
}

fn real_text(problems: &mut Problems, entry: &Entry<'_>) -> Option<String> {
    let text = match entry.value {
        DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
        DeValue::Float(number) => number.as_str(),
        DeValue::String(text) => text,
        _ => {
            wrong_type(problems, entry, "a number");
            return None;
        }
    };
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Some(number.to_string()),
        _ => {
            wrong_value(problems, entry, format!("`{text}` is not a number"));
            None
        }
    }
}

fn switch_text(problems: &mut Problems, entry: &Entry<'_>) -> Option<String> {
    let is_on = match entry.value {
        DeValue::Boolean(is_on) => *is_on,
        DeValue::String(text) if matches!(text.as_ref(), "on" | "true") => true,
        DeValue::String(text) if matches!(text.as_ref(), "off" | "false") => false,
        DeValue::String(text) => {
            wrong_value(problems, entry, format!("`{text}` is neither \"on\" nor \"off\""));
            return None;
        }
        _ => {
            wrong_type(problems, entry, "`true` or `false`");
            return None;
        }
    };
    Some(if is_on { "on" } else { "off" }.to_owned())
}

/// Reads one value of an option for every workload that is involved; the first one's text counts.
pub(super) fn option_text_for_all(
    problems: &mut Problems,
    entry: &Entry<'_>,
    options: &[&OptionSpec],
) -> Option<String> {
    let texts: Vec<Option<String>> =
        options.iter().map(|option| option_text(problems, entry, option)).collect();
    texts.into_iter().collect::<Option<Vec<String>>>()?.into_iter().next()
}
