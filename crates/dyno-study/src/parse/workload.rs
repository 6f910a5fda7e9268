//! Reads the `[workload.NAME]` tables.

use dyno_model::{OptionKind, OptionSpec};
use dyno_units::ByteCount;
use toml::de::DeValue;

use super::declaration;
use super::parser::Parser;
use super::table::{Kind, RawTable};
use super::value::{self, Entry, at_key, at_value, entries, parsed, wrong_value};
use crate::keys::{INHERITED, Key, Shape, key, names};
use crate::nearest::did_you_mean;
use crate::vocabulary::{Vocabulary, WorkloadWord};
use crate::{Diagnostic, Table, WorkloadChoice};

/// Workloads. What of their tables is no key is an option of the workload.
pub(crate) const KIND: Kind = Kind {
    help: "What the clients do, one table each: [workload.NAME].",
    lead: "One table for each workload. In addition to these keys, it takes the options of its \
         workload.",
    example: "{ oltp_update_index = { table_size = \"100k\" } }",
    names: ["\"small\"", "\"large\""],
    has_options: true,
    needed: Some("add a table such as [workload.NAME]"),
    ..Kind::new("workload", KEYS, read)
};

const KEYS: &[Key] = &[
    key("workload", Shape::Workload)
        .help("The workload; if not given, NAME is the workload.")
        .fixed("give each workload a table and vary `workload`"),
    key("like", Shape::Text)
        .help("Another workload, whose keys this one inherits and may override.")
        .example("\"small\"")
        .fixed(INHERITED),
    key(TABLE, Shape::Declaration(dyno_model::declared::TABLE))
        .help(
            "Tables of a workload that is declared here, by name; see docs/declared-workloads.md.",
        )
        .example(
            "{ item = { rows = 1000, columns = { id = { type = \"int\", \
             value = { sequence = 1 } } } } }",
        )
        .fixed(DECLARED_FIXED),
    key(TRANSACTION, Shape::Declaration(dyno_model::declared::TRANSACTION))
        .help(
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
    let named = entries(study.parser, tables).into_iter();
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
pub(super) fn implied<'a>(names: &'a [(Entry<'a>, DeValue<'a>)]) -> Vec<Entry<'a>> {
    let is_implied = |table: &Entry<'_>| {
        let has_like = matches!(table.value, DeValue::Table(keys) if keys.contains_key("like"));
        !has_like || declares(table) || table.parser.vocabulary.workload(table.key).is_some()
    };
    let entry = |(table, value): &'a (Entry<'a>, DeValue<'a>)| {
        let (parser, span) = (table.parser, table.key_span.clone());
        Entry { parser, key: "workload", key_span: span.clone(), value, span }
    };
    names.iter().filter(|(table, _)| is_implied(table)).map(entry).collect()
}

pub(super) fn word<'v>(raw: &RawTable<'v>) -> Option<&'v WorkloadWord> {
    raw.parser.vocabulary.workload(raw.text("workload")?)
}

fn read(raw: &RawTable<'_>) -> Option<Table> {
    let table = raw.read();
    if let Some((given, name)) = raw.entry("workload").zip(raw.text("workload"))
        && word(raw).is_none()
    {
        report_unknown_workload(given, name);
        return None;
    }
    let (mut table, word) = (table?, word(raw)?);
    // It makes no difference whether a default is written.
    for option in &word.options {
        if table
            .text(&option.name)
            .is_some_and(|text| text == default_text(raw.parser.vocabulary, option))
        {
            table.fields.remove(&*option.name);
        }
    }
    check_declaration(raw, (&table, word)).then_some(table)
}

/// Reports what is wrong with a declaration; of a workload that is built in, that there is one.
fn check_declaration(raw: &RawTable<'_>, (table, word): (&Table, &WorkloadWord)) -> bool {
    if word.name != DECLARED {
        let declared = [TABLE, TRANSACTION].into_iter().filter_map(|key| raw.entry(key));
        let before = raw.parser.count();
        declared.for_each(|entry| {
            report_unknown_option(entry, entry.key, word);
        });
        return raw.parser.count() == before;
    }
    if raw.entry(TRANSACTION).is_none() {
        Diagnostic::new(raw.name_span.clone(), format!("workload `{}` does nothing", raw.name))
            .with_label("it declares no transaction")
            .with_help(format!("add [workload.{}.transaction.NAME] with `steps`", raw.name))
            .add_to(raw.parser);
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
        raw.parser.add(match &problem.help {
            Some(help) => diagnostic.with_help(help.clone()),
            None => diagnostic,
        });
    }
    found.is_empty()
}

fn default_text(vocabulary: &Vocabulary, option: &OptionSpec) -> String {
    // A default may be one that nobody could write.
    let parser = &Parser::new(vocabulary);
    let (value, key) = (DeValue::String(option.default.as_ref().into()), &*option.name);
    let entry = Entry { parser, key, key_span: 0..0, value: &value, span: 0..0 };
    option_text(&entry, option).unwrap_or_default()
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

fn report_unknown_workload(given: &Entry<'_>, name: &str) {
    let words = given.parser.vocabulary.workloads.iter().map(|word| word.name.as_str());
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
    at_value(given, format!("unknown workload `{name}`"))
        .with_label("not known to Dyno")
        .with_help(help)
        .add_to(given.parser);
}

pub(super) fn option((name, entry): (&str, &Entry<'_>), word: &WorkloadWord) -> Option<String> {
    match word.options.iter().find(|option| option.name == name) {
        Some(option) => option_text(entry, option),
        None => {
            report_unknown_option(entry, name, word);
            None
        }
    }
}

fn report_unknown_option(entry: &Entry<'_>, name: &str, word: &WorkloadWord) {
    let options = word.options.iter().map(|option| option.name.as_ref());
    at_key(entry, format!("workload `{}` has no option `{name}`", word.name))
        .with_label("unknown option")
        .with_help(did_you_mean(name, names(KEYS).chain(options)))
        .add_to(entry.parser);
}

/// The value of a workload option as text: counts as digits, sizes as `16KiB`, switches as `on` and `off`, so that
/// equal values are equal texts.
pub(super) fn option_text(entry: &Entry<'_>, option: &OptionSpec) -> Option<String> {
    // What fits into a TOML integer.
    let bounds = (0, i64::MAX as u64);
    match &option.kind {
        OptionKind::Count => value::count(entry, bounds).map(|count| count.to_string()),
        OptionKind::Size => {
            let text = match entry.value {
                DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
                _ => value::string(entry, "a size such as \"16KiB\"")?,
            };
            parsed(entry, text.parse::<ByteCount>()).map(ByteCount::exact_text)
        }
        OptionKind::Real => real_text(entry),
        OptionKind::Switch => switch_text(entry),
        OptionKind::Word(words) => {
            let meanings: Vec<(&str, &str)> = words.iter().map(|word| (word, word)).collect();
            value::word(entry, &meanings).map(str::to_owned)
        }
        OptionKind::Counts => counts_text(entry, bounds),
        OptionKind::Text => value::text(entry),
    }
}

/// A list of whole numbers, as TOML has it or as a text with commas.
fn counts_text(entry: &Entry<'_>, bounds: (u64, u64)) -> Option<String> {
    const EXPECTED: &str = "a list of whole numbers such as [10, 20, 40]";
    let read = |item: &Entry<'_>| value::count(item, bounds);
    let numbers = match entry.value {
        DeValue::Array(_) => value::values(&value::list(entry, read, u64::to_string)?)?,
        DeValue::Integer(_) => vec![read(entry)?],
        _ => {
            let text = value::string(entry, EXPECTED)?;
            let numbers = dyno_model::parse_counts(text);
            parsed(entry, numbers.ok_or_else(|| format!("`{text}` is not {EXPECTED}")))?
        }
    };
    let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
    Some(texts.join(","))
}

fn real_text(entry: &Entry<'_>) -> Option<String> {
    let text = match entry.value {
        DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
        DeValue::Float(number) => number.as_str(),
        _ => value::string(entry, "a number")?,
    };
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Some(number.to_string()),
        _ => wrong_value(entry, format!("`{text}` is not a number")),
    }
}

fn switch_text(entry: &Entry<'_>) -> Option<String> {
    let is_on = match entry.value {
        DeValue::Boolean(is_on) => *is_on,
        _ => match value::string(entry, "`true` or `false`")? {
            "on" | "true" => true,
            "off" | "false" => false,
            text => {
                let message = format!("`{text}` is neither \"on\" nor \"off\"");
                return wrong_value(entry, message);
            }
        },
    };
    Some(if is_on { "on" } else { "off" }.to_owned())
}
