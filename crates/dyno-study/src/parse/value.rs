//! Readers of single values: from the spanned TOML tree to typed values, or a diagnostic.

use std::ops::Range;

use dyno_units::{
    ByteCount, Nanoseconds, ParseQuantityError, SettingValue, SteppedRate, parse_count,
    parse_duration, parse_percentage,
};
use toml::Spanned;
use toml::de::{DeFloat, DeInteger, DeTable, DeValue};

use super::by_url;
use super::declaration;
use super::money;
use super::problems::Problems;
use crate::keys::{Key, Shape, names};
use crate::nearest::{did_you_mean, nearest_words};
use crate::{Diagnostic, FieldValue};

#[derive(Clone, Debug)]
pub(super) struct Entry<'a> {
    /// The key, or that of the list which the value stands in.
    pub(super) key: &'a str,
    pub(super) key_span: Range<usize>,
    pub(super) value: &'a DeValue<'a>,
    pub(super) span: Range<usize>,
}

/// Something that was given: what was read, and where. The value is missing when it was wrong,
/// which has been reported then.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Given<T> {
    pub(super) value: Option<T>,
    pub(super) span: Range<usize>,
    pub(super) key_span: Range<usize>,
}

pub(super) struct Section<'a> {
    table: &'a DeTable<'a>,
    pub(super) span: Range<usize>,
    keys: &'static [Key],
}

pub(super) fn entries<'a>(table: &'a DeTable<'a>) -> Vec<Entry<'a>> {
    let mut all: Vec<Entry<'a>> = table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref(),
            key_span: key.span(),
            value: value.get_ref(),
            span: value.span(),
        })
        .collect();
    all.sort_by_key(|entry| entry.key_span.start);
    all
}

impl<'a> Section<'a> {
    /// A table whose unknown keys have been reported. Messages call it `title`.
    pub(super) fn closed(
        problems: &mut Problems,
        (title, span): (&str, Range<usize>),
        table: &'a DeTable<'a>,
        keys: &'static [Key],
    ) -> Section<'a> {
        for entry in entries(table) {
            if !names(keys).any(|name| name == entry.key) {
                problems.add(unknown_key(&entry, title, names(keys)));
            }
        }
        Section { table, span, keys }
    }

    /// A table that may have further keys, which the caller looks at.
    pub(super) fn open(
        span: Range<usize>,
        table: &'a DeTable<'a>,
        keys: &'static [Key],
    ) -> Section<'a> {
        Section { table, span, keys }
    }

    /// Whether an unknown key of this table was probably meant to be `name`.
    pub(super) fn has_misspelt(&self, name: &str) -> bool {
        let words: Vec<&str> = names(self.keys).collect();
        let keys = entries(self.table).into_iter().map(|entry| entry.key);
        let mut unknown = keys.filter(|key| !words.contains(key));
        unknown.any(|key| nearest_words(key, &words).first() == Some(&name))
    }

    pub(super) fn entry(&self, name: &str) -> Option<Entry<'a>> {
        debug_assert!(names(self.keys).any(|key| key == name), "`{name}` is not in the key table");
        let (key, value) = self.table.get_key_value(name)?;
        let (key_span, span) = (key.span(), value.span());
        Some(Entry { key: key.get_ref(), key_span, value: value.get_ref(), span })
    }

    pub(super) fn read<T>(
        &self,
        name: &str,
        problems: &mut Problems,
        reader: impl FnOnce(&mut Problems, &Entry<'_>) -> Option<T>,
    ) -> Option<Given<T>> {
        self.entry(name).map(|entry| given(problems, &entry, reader))
    }

    /// Reads a key; its default when it is not there or was wrong.
    pub(super) fn read_or<T>(
        &self,
        name: &str,
        problems: &mut Problems,
        default: T,
        reader: impl FnOnce(&mut Problems, &Entry<'_>) -> Option<T>,
    ) -> T {
        self.read(name, problems, reader).and_then(|given| given.value).unwrap_or(default)
    }

    /// Reads a number within the bounds that the key table gives.
    pub(super) fn number(&self, name: &str, problems: &mut Problems) -> Option<Given<u64>> {
        let key = self.keys.iter().find(|key| key.name == name)?;
        self.read(name, problems, |problems, entry| match key.shape {
            Shape::Count(least, most) => count(problems, entry, (least, most)),
            Shape::Integer(least, most) => integer(problems, entry, (least, most)),
            _ => unreachable!("`{name}` is not a number in the key table"),
        })
    }
}

pub(super) fn given<T>(
    problems: &mut Problems,
    entry: &Entry<'_>,
    reader: impl FnOnce(&mut Problems, &Entry<'_>) -> Option<T>,
) -> Given<T> {
    let value = reader(problems, entry);
    Given { value, span: entry.span.clone(), key_span: entry.key_span.clone() }
}

pub(super) fn unknown_key<'w>(
    entry: &Entry<'_>,
    title: &str,
    words: impl Iterator<Item = &'w str>,
) -> Diagnostic {
    let words: Vec<&str> = words.collect();
    let of_others = OTHERS_WORDS.iter().find(|(theirs, _)| *theirs == entry.key);
    let help = match of_others.filter(|(_, ours)| words.contains(ours)) {
        Some((_, ours)) => format!("in a study it is called `{ours}`"),
        None => did_you_mean(entry.key, words),
    };
    Diagnostic::new(entry.key_span.clone(), format!("unknown key `{}` in {title}", entry.key))
        .with_label("unknown key")
        .with_help(help)
}

/// Words of sysbench, pgbench, HammerDB, fio and k6, and the keys that mean the same.
const OTHERS_WORDS: &[(&str, &str)] = &[
    ("threads", "clients"),
    ("num_threads", "clients"),
    ("users", "clients"),
    ("vus", "clients"),
    ("connections", "clients"),
    ("concurrency", "clients"),
    ("numjobs", "clients"),
    ("time", "duration"),
    ("runtime", "duration"),
    ("max_time", "duration"),
    ("seconds", "duration"),
    ("warmup", "warm_up"),
    ("warmup_time", "warm_up"),
    ("ramp_time", "warm_up"),
    ("rampup", "warm_up"),
    ("ramp_up", "warm_up"),
    ("runs", "repetitions"),
    ("repeat", "repetitions"),
    ("iterations", "repetitions"),
    ("tps", "rate"),
    ("qps", "rate"),
    ("pause", "rest"),
    ("config", "settings"),
    ("options", "settings"),
    ("variables", "settings"),
    ("bin", "programs"),
    ("binaries", "programs"),
    ("basedir", "programs"),
    ("dsn", "url"),
    ("type", "product"),
    ("db", "product"),
    ("fstype", "filesystem"),
    ("fs", "filesystem"),
];

fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
        DeValue::Float(_) => "a number with a decimal point",
        DeValue::Integer(_) => "a whole number",
        DeValue::String(_) => "a string",
        DeValue::Boolean(_) => "a boolean",
        other => other.type_str(),
    }
}

pub(super) fn wrong_type(problems: &mut Problems, entry: &Entry<'_>, expected: &str) {
    let found = kind_of(entry.value);
    let mut wrong =
        Diagnostic::new(entry.span.clone(), format!("expected {expected}, found {found}"))
            .with_label(format!("wrong type for `{}`", entry.key));
    if found == "a list" && !expected.contains("list") && !expected.contains("table") {
        wrong = wrong.with_help(match entry.key {
            "clients" | "rate" => {
                format!("to measure at several values, write `vary = {{ {} = [...] }}`", entry.key)
            }
            _ => "one value is expected; several are compared with `vary` in [design]".to_owned(),
        });
    }
    problems.add(wrong);
}

/// Reports a value of the right type that cannot be.
pub(super) fn wrong_value(problems: &mut Problems, entry: &Entry<'_>, message: String) {
    let label = format!("not accepted for `{}`", entry.key);
    problems.add(Diagnostic::new(entry.span.clone(), message).with_label(label));
}

/// Text that is not empty.
pub(super) fn text(problems: &mut Problems, entry: &Entry<'_>) -> Option<String> {
    let DeValue::String(text) = entry.value else {
        wrong_type(problems, entry, "a string");
        return None;
    };
    if text.trim().is_empty() {
        wrong_value(problems, entry, format!("`{}` is empty", entry.key));
        return None;
    }
    if text.contains(|c: char| c.is_control()) {
        let message = format!("`{}` contains a line break or a control character", entry.key);
        wrong_value(problems, entry, message);
        return None;
    }
    Some(text.to_string())
}

pub(super) fn switch(problems: &mut Problems, entry: &Entry<'_>) -> Option<bool> {
    let DeValue::Boolean(is_on) = entry.value else {
        wrong_type(problems, entry, "`true` or `false`");
        return None;
    };
    Some(*is_on)
}

pub(super) fn word<T: Copy>(
    problems: &mut Problems,
    entry: &Entry<'_>,
    meanings: &[(&str, T)],
) -> Option<T> {
    let words = || meanings.iter().map(|(word, _)| *word);
    let DeValue::String(given) = entry.value else {
        let options: Vec<String> = words().map(|word| format!("\"{word}\"")).collect();
        wrong_type(problems, entry, &options.join(" or "));
        return None;
    };
    if let Some((_, meaning)) = meanings.iter().find(|(word, _)| word == given) {
        return Some(*meaning);
    }
    problems.add(
        Diagnostic::new(entry.span.clone(), format!("unknown value `{given}`"))
            .with_label(format!("not accepted for `{}`", entry.key))
            .with_help(did_you_mean(given, words())),
    );
    None
}

fn to_i64(integer: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// A TOML float as a number, if it is finite.
fn to_f64(float: &DeFloat<'_>) -> Option<f64> {
    float.as_str().parse().ok().filter(|number: &f64| number.is_finite())
}

/// A whole number within bounds, both included.
pub(super) fn integer(
    problems: &mut Problems,
    entry: &Entry<'_>,
    (least, most): (u64, u64),
) -> Option<u64> {
    let DeValue::Integer(number) = entry.value else {
        wrong_type(problems, entry, "a whole number");
        return None;
    };
    if number.as_str().starts_with('-') {
        wrong_value(problems, entry, format!("`{}` must be at least {least}", entry.key));
        return None;
    }
    let number = to_i64(number).and_then(|number| u64::try_from(number).ok());
    within(problems, entry, (least, most), number)
}

/// A whole number within bounds, also as text such as `"250k"`.
pub(super) fn count(problems: &mut Problems, entry: &Entry<'_>, bounds: (u64, u64)) -> Option<u64> {
    match entry.value {
        DeValue::Integer(_) => integer(problems, entry, bounds),
        DeValue::String(text) => match parse_count(text) {
            Ok(number) => within(problems, entry, bounds, Some(number)),
            Err(error) => {
                wrong_value(problems, entry, error.to_string());
                None
            }
        },
        _ => {
            wrong_type(problems, entry, "a whole number such as 100 or \"250k\"");
            None
        }
    }
}

fn within(
    problems: &mut Problems,
    entry: &Entry<'_>,
    (least, most): (u64, u64),
    number: Option<u64>,
) -> Option<u64> {
    let fitting = number.filter(|number| (least..=most).contains(number));
    if fitting.is_none() {
        let message = match number {
            Some(0) => format!("`{}` must be at least {least}", entry.key),
            _ if most >= i64::MAX as u64 => format!("`{}` is too large", entry.key),
            _ => format!("`{}` must be between {least} and {most}", entry.key),
        };
        wrong_value(problems, entry, message);
    }
    fitting
}

/// An offered rate, in transactions per second.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Rate {
    /// Above zero.
    Steady(f64),
    Stepped(SteppedRate),
}

impl std::fmt::Display for Rate {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Rate::Steady(rate) => rate.fmt(out),
            Rate::Stepped(rate) => rate.fmt(out),
        }
    }
}

/// An offered rate above zero, also as text such as `"2k"`; or one that changes, as text such as
/// `"500 for 10s, 2k for 5s"`.
pub(super) fn rate(problems: &mut Problems, entry: &Entry<'_>) -> Option<Rate> {
    if let DeValue::String(text) = entry.value
        && text.contains("for")
    {
        let stepped = text.parse().map_err(|error: ParseQuantityError| error.to_string());
        return match stepped {
            Ok(rate) => Some(Rate::Stepped(rate)),
            Err(why) => {
                wrong_value(problems, entry, why);
                None
            }
        };
    }
    steady_rate(problems, entry).map(Rate::Steady)
}

fn steady_rate(problems: &mut Problems, entry: &Entry<'_>) -> Option<f64> {
    const RATE_MAX: f64 = SteppedRate::RATE_MOST;
    let number = match entry.value {
        DeValue::Integer(number) => to_i64(number).map(|number| number as f64),
        DeValue::Float(number) => to_f64(number),
        DeValue::String(text) => match parse_count(text) {
            Ok(number) => Some(number as f64),
            Err(_) => {
                let message = format!(
                    "`{text}` is not a rate; write transactions per second, such as 500 or \"2k\""
                );
                wrong_value(problems, entry, message);
                return None;
            }
        },
        _ => {
            let expected = "a rate in transactions per second such as 500 or \"2k\"";
            wrong_type(problems, entry, expected);
            return None;
        }
    };
    let number = number.filter(|number| *number > 0.0 && *number <= RATE_MAX);
    if number.is_none() {
        let message = "a rate must be above 0 and at most 1000000000 per second".to_owned();
        wrong_value(problems, entry, message);
    }
    number
}

/// A duration such as `"30s"`, zero included.
pub(super) fn duration(problems: &mut Problems, entry: &Entry<'_>) -> Option<Nanoseconds> {
    // A century: longer ones would not fit into the sums of a plan.
    const DURATION_MAX: Nanoseconds = Nanoseconds::from_secs(100 * 365 * 86_400);
    let DeValue::String(text) = entry.value else {
        let found = kind_of(entry.value);
        let message = format!("expected a duration such as \"30s\", found {found}");
        let label = format!("wrong type for `{}`", entry.key);
        let mut wrong = Diagnostic::new(entry.span.clone(), message).with_label(label);
        if let DeValue::Integer(number) = entry.value {
            wrong = wrong.with_help(format!("write it with its unit: \"{}s\"", number.as_str()));
        }
        problems.add(wrong);
        return None;
    };
    match parse_duration(text) {
        Ok(duration) if duration <= DURATION_MAX => Some(duration),
        Ok(_) => {
            wrong_value(problems, entry, format!("`{text}` is longer than a century"));
            None
        }
        Err(error) => {
            wrong_value(problems, entry, error.to_string());
            None
        }
    }
}

pub(super) fn positive_duration(problems: &mut Problems, entry: &Entry<'_>) -> Option<Nanoseconds> {
    let duration = duration(problems, entry)?;
    if duration == Nanoseconds::ZERO {
        wrong_value(problems, entry, format!("`{}` must be longer than zero", entry.key));
        return None;
    }
    Some(duration)
}

/// A percentage below 100 such as `"3%"`, as a fraction.
pub(super) fn fraction(problems: &mut Problems, entry: &Entry<'_>) -> Option<f64> {
    let DeValue::String(text) = entry.value else {
        let found = kind_of(entry.value);
        let message = format!("expected a percentage such as \"3%\", found {found}");
        let label = format!("wrong type for `{}`", entry.key);
        let mut wrong = Diagnostic::new(entry.span.clone(), message).with_label(label);
        if let DeValue::Integer(number) = entry.value {
            wrong = wrong.with_help(format!("write it with its unit: \"{}%\"", number.as_str()));
        }
        problems.add(wrong);
        return None;
    };
    match parse_percentage(text) {
        Ok(percent) if percent < 100.0 => Some(percent / 100.0),
        Ok(_) => {
            let message = format!("`{}` must be below 100%", entry.key);
            wrong_value(problems, entry, message);
            None
        }
        Err(error) => {
            wrong_value(problems, entry, error.to_string());
            None
        }
    }
}

/// The value of a field of a table, by its shape: the one reader of `[database.a] engine = …` and of the
/// levels of `"database.engine"`.
pub(super) fn field(
    problems: &mut Problems,
    entry: &Entry<'_>,
    shape: Shape,
) -> Option<FieldValue> {
    use FieldValue as Value;
    match shape {
        Shape::Url => by_url::url(problems, entry).map(Value::Text),
        Shape::Words(words) => {
            let words: Vec<(&str, &str)> = words.iter().map(|word| (*word, *word)).collect();
            word(problems, entry, &words).map(|word| Value::Text(word.to_owned()))
        }
        Shape::Switch => switch(problems, entry).map(Value::Switch),
        Shape::Count(least, most) => count(problems, entry, (least, most)).map(Value::Number),
        Shape::Integer(least, most) => integer(problems, entry, (least, most)).map(Value::Number),
        Shape::Duration => duration(problems, entry).map(Value::Duration),
        Shape::PositiveDuration => positive_duration(problems, entry).map(Value::Duration),
        Shape::Percentage => fraction(problems, entry).map(Value::Fraction),
        Shape::Size => size(problems, entry, 1).map(Value::Size),
        Shape::SizeOrZero => size(problems, entry, 0).map(Value::Size),
        Shape::Price => money::price(problems, entry).map(Value::Price),
        Shape::Setting => setting(problems, entry).map(Value::Setting),
        Shape::Urls => by_url::urls(problems, entry).map(Value::Texts),
        Shape::Command => command(problems, entry).map(Value::Texts),
        Shape::Texts => texts(problems, entry).map(Value::Texts),
        Shape::Declaration(_) => declaration::read(problems, entry).map(Value::Text),
        // Names of products, engines and workloads are checked with the whole table.
        _ => text(problems, entry).map(Value::Text),
    }
}

/// A program and its arguments; the same argument may be there twice.
pub(super) fn command(problems: &mut Problems, entry: &Entry<'_>) -> Option<Vec<String>> {
    let DeValue::Array(items) = entry.value else {
        wrong_type(problems, entry, "a list of strings such as [\"cat\", \"/proc/loadavg\"]");
        return None;
    };
    let texts: Option<Vec<String>> = items
        .iter()
        .map(|item| match item.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            _ => None,
        })
        .collect();
    match texts {
        Some(texts) if texts.first().is_some_and(|program| !program.trim().is_empty()) => {
            Some(texts)
        }
        Some(_) => {
            wrong_value(problems, entry, "the command names no program".to_owned());
            None
        }
        None => {
            wrong_type(problems, entry, "a list of strings such as [\"cat\", \"/proc/loadavg\"]");
            None
        }
    }
}

/// A text, or a list of texts; the same one may be there twice.
pub(super) fn texts(problems: &mut Problems, entry: &Entry<'_>) -> Option<Vec<String>> {
    let items = match entry.value {
        DeValue::Array(items) => items.iter().map(|item| item.get_ref()).collect(),
        value => vec![value],
    };
    let texts: Option<Vec<String>> =
        items.into_iter().map(|item| item.as_str().map(str::to_owned)).collect();
    match texts {
        Some(texts) if texts.iter().all(|text| !text.trim().is_empty()) => Some(texts),
        Some(_) => {
            wrong_value(problems, entry, format!("`{}` contains an empty string", entry.key));
            None
        }
        None => {
            wrong_type(problems, entry, "a string, or a list of strings");
            None
        }
    }
}

/// Bytes, such as `"8GiB"`, of which there are at least so many: 0 or 1.
fn size(problems: &mut Problems, entry: &Entry<'_>, least: u64) -> Option<ByteCount> {
    let DeValue::String(text) = entry.value else {
        wrong_type(problems, entry, "a size such as \"8GiB\"");
        return None;
    };
    match text.parse::<ByteCount>() {
        Ok(bytes) if bytes.0 >= least => Some(bytes),
        Ok(_) => {
            wrong_value(problems, entry, format!("`{}` must be above zero", entry.key));
            None
        }
        Err(error) => {
            wrong_value(problems, entry, error.to_string());
            None
        }
    }
}

pub(super) fn setting(problems: &mut Problems, entry: &Entry<'_>) -> Option<SettingValue> {
    let value = match entry.value {
        DeValue::Boolean(is_on) => Some(SettingValue::Switch(*is_on)),
        DeValue::Integer(number) => to_i64(number).map(SettingValue::Integer),
        DeValue::Float(number) => to_f64(number).map(SettingValue::Real),
        DeValue::String(text) => return setting_text(problems, entry, text),
        _ => {
            wrong_type(problems, entry, "a string, a number or a boolean");
            return None;
        }
    };
    if value.is_none() {
        wrong_value(problems, entry, format!("the number of `{}` is out of range", entry.key));
    }
    value
}

fn setting_text(problems: &mut Problems, entry: &Entry<'_>, text: &str) -> Option<SettingValue> {
    match setting_of_text(text) {
        Ok(value) => Some(value),
        Err(why) => {
            wrong_value(problems, entry, format!("`{}`: {why}", entry.key));
            None
        }
    }
}

/// The value of a setting that is a text in a study file.
///
/// Dyno reads only what no product has a meaning of its own for: shares of memory (`25%`) and sizes
/// in powers of 1024 with their full unit (`8GiB`). All else (`128M`, `64MB`) is the product's.
fn setting_of_text(text: &str) -> Result<SettingValue, &'static str> {
    if text.contains(|c: char| c.is_control()) {
        return Err("the value contains a line break or a control character");
    }
    let percent = text.trim().strip_suffix('%').and_then(|number| number.trim().parse().ok());
    if let Some(percent) = percent {
        let percent: f64 = percent;
        if percent > 0.0 && percent <= 100.0 {
            return Ok(SettingValue::PercentOfMemory(percent));
        }
        return Err("a share of memory must be above 0% and at most 100%");
    }
    let is_binary = ["KiB", "MiB", "GiB", "TiB"].iter().any(|unit| text.trim().ends_with(unit));
    match text.parse::<ByteCount>() {
        Ok(bytes) if is_binary => Ok(SettingValue::Bytes(bytes)),
        _ => Ok(SettingValue::Text(text.to_owned())),
    }
}

/// Reads the value of a setting as it stands in a study file: `true`, `42`, `"25%"`.
///
/// # Errors
///
/// Why it can be no value of a setting.
pub fn parse_setting(toml: &str) -> Result<SettingValue, String> {
    let source = format!("value = {toml}");
    let tree = DeTable::parse(&source).map_err(|error| error.message().to_owned())?;
    let mut problems = Problems::default();
    let found = entries(tree.get_ref()).first().and_then(|entry| setting(&mut problems, entry));
    let problem = problems.into_diagnostics(&source).into_iter().next();
    found.ok_or_else(|| problem.map_or_else(String::new, |problem| problem.message))
}

/// A list that is not empty and names nothing twice. `name` writes a value as it is compared.
pub(super) fn list<T>(
    problems: &mut Problems,
    entry: &Entry<'_>,
    mut reader: impl FnMut(&mut Problems, &Entry<'_>) -> Option<T>,
    name: impl Fn(&T) -> String,
) -> Option<Vec<Given<T>>> {
    let DeValue::Array(items) = entry.value else {
        wrong_type(problems, entry, "a list such as [1, 2]");
        return None;
    };
    if items.is_empty() {
        problems.add(
            Diagnostic::new(entry.span.clone(), format!("the list of `{}` is empty", entry.key))
                .with_label("nothing to choose from")
                .with_help("name at least one value, or leave the key out"),
        );
        return None;
    }
    let mut seen = std::collections::BTreeSet::new();
    let mut all = Vec::new();
    for item in items.iter() {
        let item = item_entry(entry, item);
        let one = given(problems, &item, &mut reader);
        if let Some(text) = one.value.as_ref().map(&name)
            && !seen.insert(text.clone())
        {
            problems.add(
                Diagnostic::new(item.span, format!("`{text}` appears twice in `{}`", entry.key))
                    .with_label("given before"),
            );
        }
        all.push(one);
    }
    Some(all)
}

pub(super) fn item_entry<'a>(list: &Entry<'a>, item: &'a Spanned<DeValue<'a>>) -> Entry<'a> {
    let key_span = list.key_span.clone();
    Entry { key: list.key, key_span, value: item.get_ref(), span: item.span() }
}

/// The values of a list of which each was right; none if one was wrong.
pub(super) fn values<T: Clone>(list: &[Given<T>]) -> Option<Vec<T>> {
    list.iter().map(|one| one.value.clone()).collect()
}

pub(super) fn table<'a>(problems: &mut Problems, entry: &Entry<'a>) -> Option<&'a DeTable<'a>> {
    let DeValue::Table(table) = entry.value else {
        wrong_type(problems, entry, "a table");
        return None;
    };
    Some(table)
}
