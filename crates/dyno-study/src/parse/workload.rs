//! Reads the `[workload.NAME]` tables.

use std::ops::Range;

use dyno_model::{OptionKind, OptionSpec};
use dyno_units::ByteCount;
use toml::de::DeValue;

use super::declaration;
use super::kind::Kind;
use super::problems::Problems;
use super::table::RawTable;
use super::value::{self, Entry, entries, wrong_type, wrong_value};
use crate::keys::{INHERITED, Key, Shape, key, names};
use crate::nearest::did_you_mean;
use crate::vocabulary::{Vocabulary, WorkloadWord};
use crate::{Diagnostic, Table, WorkloadChoice};

/// Workloads. What of their tables is no key is an option of the workload.
pub(crate) const KIND: Kind = Kind {
    name: "workload",
    help: "What the clients do, one table each: [workload.NAME].",
    lead: "One table for each workload. In addition to these keys, it takes the options of its \
         workload.",
    example: "{ oltp_update_index = { table_size = \"100k\" } }",
    names: ["\"small\"", "\"large\""],
    baseline_note: "",
    keys: KEYS,
    has_options: true,
    alternatives: &[],
    is_chosen: true,
    needed: Some("add a table such as [workload.NAME]"),
    read,
};

const KEYS: &[Key] = &[
    key("workload", Shape::Workload, "The workload; if not given, NAME is the workload.")
        .fixed("give each workload a table and vary `workload`"),
    key("like", Shape::Text, "Another workload, whose keys this one inherits and may override.")
        .example("\"small\"")
        .fixed(INHERITED),
    key(
        TABLE,
        Shape::Declaration(dyno_model::declared::TABLE),
        "Tables of a workload that is declared here, by name; see docs/declared-workloads.md.",
    )
    .example("{ item = { rows = 1000, columns = { id = { type = \"int\", value = { sequence = 1 } } } } }")
    .fixed(DECLARED_FIXED),
    key(
        TRANSACTION,
        Shape::Declaration(dyno_model::declared::TRANSACTION),
        "Transactions of a workload that is declared here, by name; with them, `workload` is \
         `declared`.",
    )
    .example("{ look = { steps = [{ sql = \"SELECT COUNT(*) FROM item\", rows = 1 }] } }")
    .fixed(DECLARED_FIXED),
];

const DECLARED: &str = "declared";

/// The keys that declare a workload; they reach it as options.
const TABLE: &str = "table";
const TRANSACTION: &str = "transaction";

const DECLARED_FIXED: &str =
    "declare several workloads and vary `workload`, or vary `option.scale`";

/// Values for [`implied`]: the names of the tables, or what a table with transactions is.
pub(super) fn name_values<'a>(study: &value::Section<'a>) -> Vec<(Entry<'a>, DeValue<'a>)> {
    let Some(DeValue::Table(tables)) = study.entry("workload").map(|entry| entry.value) else {
        return Vec::new();
    };
    let named = entries(tables).into_iter();
    let named = named.map(|entry| {
        let word = if declares(&entry) { DECLARED } else { entry.key };
        (entry.clone(), DeValue::String(word.into()))
    });
    named.collect()
}

fn declares(table: &Entry<'_>) -> bool {
    matches!(table.value, DeValue::Table(keys) if keys.contains_key(TRANSACTION))
}

/// What tables say by their names: a name of the vocabulary says what the workload is, also if `like`
/// says more.
pub(super) fn implied<'a>(
    names: &'a [(Entry<'a>, DeValue<'a>)],
    vocabulary: &Vocabulary,
) -> Vec<Entry<'a>> {
    let is_implied = |table: &Entry<'_>| {
        let has_like = matches!(table.value, DeValue::Table(keys) if keys.contains_key("like"));
        !has_like || declares(table) || find(vocabulary, table.key).is_some()
    };
    let implied = names.iter().filter(|(table, _)| is_implied(table));
    implied
        .map(|(table, value)| {
            let span = table.key_span.clone();
            Entry { key: "workload", key_span: span.clone(), value, span }
        })
        .collect()
}

fn find<'v>(vocabulary: &'v Vocabulary, name: &str) -> Option<&'v WorkloadWord> {
    vocabulary.workloads.iter().find(|word| word.name == name)
}

pub(super) fn word<'v>(raw: &RawTable<'_>, vocabulary: &'v Vocabulary) -> Option<&'v WorkloadWord> {
    find(vocabulary, raw.text("workload")?)
}

fn read(problems: &mut Problems, raw: &RawTable<'_>, vocabulary: &Vocabulary) -> Option<Table> {
    let table = raw.read(problems, vocabulary);
    if let Some((given, name)) = raw.entry("workload").zip(raw.text("workload"))
        && find(vocabulary, name).is_none()
    {
        report_unknown_workload(problems, given, name, vocabulary);
        return None;
    }
    let (mut table, word) = (table?, word(raw, vocabulary)?);
    // It makes no difference whether a default is written.
    for option in &word.options {
        if table.text(&option.name).is_some_and(|text| text == default_text(option)) {
            table.fields.remove(&*option.name);
        }
    }
    check_declaration(problems, raw, (&table, word)).then_some(table)
}

/// Reports what is wrong with a declaration; of a workload that is built in, that there is one.
fn check_declaration(
    problems: &mut Problems,
    raw: &RawTable<'_>,
    (table, word): (&Table, &WorkloadWord),
) -> bool {
    if word.name != DECLARED {
        let declared = [TABLE, TRANSACTION].into_iter().filter_map(|key| raw.entry(key));
        let before = problems.count();
        declared.for_each(|entry| {
            report_unknown_option(problems, entry.key_span.clone(), entry.key, word);
        });
        return problems.count() == before;
    }
    if raw.entry(TRANSACTION).is_none() {
        problems.add(
            Diagnostic::new(raw.name_span.clone(), format!("workload `{}` does nothing", raw.name))
                .with_label("it declares no transaction")
                .with_help(format!("add [workload.{}.transaction.NAME] with `steps`", raw.name)),
        );
        return false;
    }
    let Some((rules, choice)) = word.rules.as_ref().zip(WorkloadChoice::of(table)) else {
        return true;
    };
    let found = rules.problems(&choice.options);
    for problem in &found {
        let first = problem.path.first().and_then(|key| raw.entry(key));
        let rest = problem.path.get(1..).unwrap_or_default();
        let span = first.map_or(raw.name_span.clone(), |entry| declaration::place(entry, rest));
        let message = format!("workload `{}`: invalid declaration", raw.name);
        let diagnostic = Diagnostic::new(span, message).with_label(problem.message.clone());
        problems.add(match &problem.help {
            Some(help) => diagnostic.with_help(help.clone()),
            None => diagnostic,
        });
    }
    found.is_empty()
}

fn default_text(option: &OptionSpec) -> String {
    let value = DeValue::String(option.default.as_ref().into());
    let entry = Entry { key: &option.name, key_span: 0..0, value: &value, span: 0..0 };
    option_text(&mut Problems::default(), &entry, option).unwrap_or_default()
}

impl WorkloadChoice {
    pub(super) fn of(table: &Table) -> Option<WorkloadChoice> {
        let is_option = |field: &str| {
            KEYS.iter().all(|key| key.name != field || matches!(key.shape, Shape::Declaration(_)))
        };
        let options = table.fields.iter().filter(|(field, _)| is_option(field));
        Some(WorkloadChoice {
            name: table.name.clone(),
            workload: table.text("workload")?.to_owned(),
            options: options.map(|(name, value)| (name.clone(), value.to_string())).collect(),
        })
    }
}

fn report_unknown_workload(
    problems: &mut Problems,
    given: &Entry<'_>,
    name: &str,
    vocabulary: &Vocabulary,
) {
    let words = vocabulary.workloads.iter().map(|word| word.name.as_str());
    let mut help = did_you_mean(name, words);
    if !help.ends_with('?') {
        help.push_str(
            "; a script is run by the workload `sysbench` or `pgbench`, with `script = \"FILE\"`",
        );
    }
    if given.span == given.key_span {
        let sign = if help.ends_with('?') { "" } else { "." };
        help.push_str(sign);
        help.push_str(
            " A [workload.NAME] whose NAME is not a workload needs workload = \"…\" or like = \"…\".",
        );
    }
    problems.add(
        Diagnostic::new(given.span.clone(), format!("unknown workload `{name}`"))
            .with_label("not known to Dyno")
            .with_help(help),
    );
}

pub(super) fn option(
    problems: &mut Problems,
    (name, entry): (&str, &Entry<'_>),
    word: &WorkloadWord,
) -> Option<String> {
    match word.options.iter().find(|option| option.name == name) {
        Some(option) => option_text(problems, entry, option),
        None => {
            report_unknown_option(problems, entry.key_span.clone(), name, word);
            None
        }
    }
}

fn report_unknown_option(
    problems: &mut Problems,
    span: Range<usize>,
    name: &str,
    word: &WorkloadWord,
) {
    let options = word.options.iter().map(|option| option.name.as_ref());
    problems.add(
        Diagnostic::new(span, format!("workload `{}` has no option `{name}`", word.name))
            .with_label("unknown option")
            .with_help(did_you_mean(name, names(KEYS).chain(options))),
    );
}

/// The value of a workload option as text: counts as digits, sizes as `16KiB`, switches as `on` and `off`, so that
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
        OptionKind::Size => size_text(problems, entry),
        OptionKind::Real => real_text(problems, entry),
        OptionKind::Switch => switch_text(problems, entry),
        OptionKind::Word(words) => {
            let meanings: Vec<(&str, &str)> = words.iter().map(|word| (word, word)).collect();
            value::word(problems, entry, &meanings).map(str::to_owned)
        }
        OptionKind::Counts => counts_text(problems, entry),
        OptionKind::Text => value::text(problems, entry),
    }
}

/// A list of whole numbers, as TOML has it or as a text with commas.
fn counts_text(problems: &mut Problems, entry: &Entry<'_>) -> Option<String> {
    let numbers = match entry.value {
        DeValue::Array(_) => {
            let bounds = (0, i64::MAX as u64);
            let read =
                |problems: &mut Problems, item: &Entry<'_>| value::count(problems, item, bounds);
            value::values(&value::list(problems, entry, read, u64::to_string)?)?
        }
        DeValue::String(text) => match dyno_model::parse_counts(text) {
            Some(numbers) => numbers,
            None => {
                let message =
                    format!("`{text}` is not a list of whole numbers such as [10, 20, 40]");
                wrong_value(problems, entry, message);
                return None;
            }
        },
        DeValue::Integer(_) => vec![value::count(problems, entry, (0, i64::MAX as u64))?],
        _ => {
            wrong_type(problems, entry, "a list of whole numbers such as [10, 20, 40]");
            return None;
        }
    };
    let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
    Some(texts.join(","))
}

/// A number of bytes, or a text with a unit.
fn size_text(problems: &mut Problems, entry: &Entry<'_>) -> Option<String> {
    let text = match entry.value {
        DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
        DeValue::String(text) => text,
        _ => {
            wrong_type(problems, entry, "a size such as \"16KiB\"");
            return None;
        }
    };
    match text.parse::<ByteCount>() {
        Ok(bytes) => Some(bytes.exact_text()),
        Err(error) => {
            wrong_value(problems, entry, error.to_string());
            None
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
