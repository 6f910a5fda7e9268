//! Readers of single values: from the spanned TOML tree to typed values, or a diagnostic.

use std::ops::Range;

use dyno_units::{
    ByteCount, Nanoseconds, SettingValue, SteppedRate, parse_count, parse_duration,
    parse_percentage,
};
use toml::Spanned;
use toml::de::{DeFloat, DeInteger, DeTable, DeValue};

use super::parser::Parser;
use super::{by_url, declaration};
use crate::keys::{Key, Shape, names};
use crate::nearest::{did_you_mean, nearest_words};
use crate::{Diagnostic, FieldValue, Price, Vocabulary};

/// A key with its value, which knows where to report what is wrong with it.
#[derive(Clone, Debug)]
pub(super) struct Entry<'a> {
    pub(super) parser: &'a Parser<'a>,
    /// The key, or that of the list which the value stands in.
    pub(super) key: &'a str,
    pub(super) key_span: Range<usize>,
    pub(super) value: &'a DeValue<'a>,
    pub(super) span: Range<usize>,
}

/// What is wrong with a key.
pub(super) fn at_key(entry: &Entry<'_>, message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(entry.key_span.clone(), message)
}

/// What is wrong with the value of a key.
pub(super) fn at_value(entry: &Entry<'_>, message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(entry.span.clone(), message)
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
    pub(super) parser: &'a Parser<'a>,
    table: &'a DeTable<'a>,
    pub(super) span: Range<usize>,
    keys: &'static [Key],
}

pub(super) fn entries<'a>(parser: &'a Parser<'a>, table: &'a DeTable<'a>) -> Vec<Entry<'a>> {
    let mut all: Vec<Entry<'a>> = table
        .iter()
        .map(|(key, value)| {
            let (key_span, span) = (key.span(), value.span());
            Entry { parser, key: key.get_ref(), key_span, value: value.get_ref(), span }
        })
        .collect();
    all.sort_by_key(|entry| entry.key_span.start);
    all
}

impl<'a> Section<'a> {
    /// A table whose unknown keys have been reported. Messages call it `title`.
    pub(super) fn closed(
        parser: &'a Parser<'a>,
        (title, span): (&str, Range<usize>),
        table: &'a DeTable<'a>,
        keys: &'static [Key],
    ) -> Section<'a> {
        for entry in entries(parser, table) {
            if !names(keys).any(|name| name == entry.key) {
                parser.add(unknown_key(&entry, title, names(keys)));
            }
        }
        Section { parser, table, span, keys }
    }

    /// Whether an unknown key of this table was probably meant to be `name`.
    pub(super) fn has_misspelt(&self, name: &str) -> bool {
        let words: Vec<&str> = names(self.keys).collect();
        let keys = entries(self.parser, self.table).into_iter().map(|entry| entry.key);
        let mut unknown = keys.filter(|key| !words.contains(key));
        unknown.any(|key| nearest_words(key, &words).first() == Some(&name))
    }

    pub(super) fn entry(&self, name: &str) -> Option<Entry<'a>> {
        debug_assert!(names(self.keys).any(|key| key == name), "`{name}` is not in the key table");
        let (key, value) = self.table.get_key_value(name)?;
        let (key_span, span) = (key.span(), value.span());
        let (parser, key, value) = (self.parser, key.get_ref(), value.get_ref());
        Some(Entry { parser, key, key_span, value, span })
    }

    pub(super) fn read<T>(
        &self,
        name: &str,
        reader: impl FnOnce(&Entry<'_>) -> Option<T>,
    ) -> Option<Given<T>> {
        self.entry(name).map(|entry| given(&entry, reader))
    }

    /// Reads a key; none when it is not there or was wrong.
    pub(super) fn value<T>(
        &self,
        name: &str,
        reader: impl FnOnce(&Entry<'_>) -> Option<T>,
    ) -> Option<T> {
        reader(&self.entry(name)?)
    }

    /// Reads a number within the bounds that the key table gives.
    pub(super) fn number(&self, name: &str) -> Option<Given<u64>> {
        let key = self.keys.iter().find(|key| key.name == name)?;
        self.read(name, |entry| match key.shape {
            Shape::Count(least, most) => count(entry, (least, most)),
            Shape::Integer(least, most) => integer(entry, (least, most)),
            _ => unreachable!("`{name}` is not a number in the key table"),
        })
    }
}

pub(super) fn given<T>(entry: &Entry<'_>, read: impl FnOnce(&Entry<'_>) -> Option<T>) -> Given<T> {
    let value = read(entry);
    Given { value, span: entry.span.clone(), key_span: entry.key_span.clone() }
}

pub(super) fn unknown_key<'w>(
    entry: &Entry<'_>,
    title: &str,
    words: impl Iterator<Item = &'w str>,
) -> Diagnostic {
    let words: Vec<&str> = words.collect();
    let of_others =
        OTHERS_WORDS.iter().find(|(_, theirs)| theirs.split(' ').any(|word| word == entry.key));
    let help = match of_others.filter(|(ours, _)| words.contains(ours)) {
        Some((ours, _)) => format!("in a study it is called `{ours}`"),
        None => did_you_mean(entry.key, words),
    };
    at_key(entry, format!("unknown key `{}` in {title}", entry.key))
        .with_label("unknown key")
        .with_help(help)
}

/// Keys, and words of sysbench, pgbench, HammerDB, fio and k6 that mean the same.
const OTHERS_WORDS: [(&str, &str); 11] = [
    ("clients", "threads num_threads users vus connections concurrency numjobs"),
    ("duration", "time runtime max_time seconds"),
    ("warm_up", "warmup warmup_time ramp_time rampup ramp_up"),
    ("repetitions", "runs repeat iterations"),
    ("rate", "tps qps"),
    ("rest", "pause"),
    ("settings", "config options variables"),
    ("programs", "bin binaries basedir"),
    ("url", "dsn"),
    ("product", "type db"),
    ("filesystem", "fstype fs"),
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

/// Reports a value of another type than what is `expected`.
pub(super) fn wrong_type<T>(entry: &Entry<'_>, expected: &str) -> Option<T> {
    let found = kind_of(entry.value);
    let mut wrong = at_value(entry, format!("expected {expected}, found {found}"))
        .with_label(format!("wrong type for `{}`", entry.key));
    if found == "a list" && !expected.contains("list") && !expected.contains("table") {
        wrong = wrong.with_help(match entry.key {
            "clients" | "rate" => {
                format!("to measure at several values, write `vary = {{ {} = [...] }}`", entry.key)
            }
            _ => "one value is expected; several are compared with `vary` in [design]".to_owned(),
        });
    }
    entry.parser.add(wrong);
    None
}

/// Reports a value of the right type that cannot be.
pub(super) fn wrong_value<T>(entry: &Entry<'_>, message: impl ToString) -> Option<T> {
    let label = format!("not accepted for `{}`", entry.key);
    at_value(entry, message.to_string()).with_label(label).add_to(entry.parser);
    None
}

/// A value that was read from a text, or what is wrong with the text.
pub(super) fn parsed<T>(entry: &Entry<'_>, value: Result<T, impl ToString>) -> Option<T> {
    value.map_or_else(|why| wrong_value(entry, why), Some)
}

/// A text, of which `expected` says what it is for.
pub(super) fn string<'a>(entry: &Entry<'a>, expected: &str) -> Option<&'a str> {
    entry.value.as_str().or_else(|| wrong_type(entry, expected))
}

/// Text that is not empty.
pub(super) fn text(entry: &Entry<'_>) -> Option<String> {
    let text = string(entry, "a string")?;
    if text.trim().is_empty() {
        return wrong_value(entry, format!("`{}` is empty", entry.key));
    }
    if text.contains(|c: char| c.is_control()) {
        let message = format!("`{}` contains a line break or a control character", entry.key);
        return wrong_value(entry, message);
    }
    Some(text.to_owned())
}

pub(super) fn switch(entry: &Entry<'_>) -> Option<bool> {
    entry.value.as_bool().or_else(|| wrong_type(entry, "`true` or `false`"))
}

pub(super) fn word<T: Copy>(entry: &Entry<'_>, meanings: &[(&str, T)]) -> Option<T> {
    let words = || meanings.iter().map(|(word, _)| *word);
    let options: Vec<String> = words().map(|word| format!("\"{word}\"")).collect();
    let given = string(entry, &options.join(" or "))?;
    if let Some((_, meaning)) = meanings.iter().find(|(word, _)| *word == given) {
        return Some(*meaning);
    }
    at_value(entry, format!("unknown value `{given}`"))
        .with_label(format!("not accepted for `{}`", entry.key))
        .with_help(did_you_mean(given, words()))
        .add_to(entry.parser);
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
pub(super) fn integer(entry: &Entry<'_>, (least, most): (u64, u64)) -> Option<u64> {
    let DeValue::Integer(number) = entry.value else {
        return wrong_type(entry, "a whole number");
    };
    if number.as_str().starts_with('-') {
        return wrong_value(entry, format!("`{}` must be at least {least}", entry.key));
    }
    let number = to_i64(number).and_then(|number| u64::try_from(number).ok());
    within(entry, (least, most), number)
}

/// A whole number within bounds, also as text such as `"250k"`.
pub(super) fn count(entry: &Entry<'_>, bounds: (u64, u64)) -> Option<u64> {
    if let DeValue::Integer(_) = entry.value {
        return integer(entry, bounds);
    }
    let text = string(entry, "a whole number such as 100 or \"250k\"")?;
    let number = parsed(entry, parse_count(text))?;
    within(entry, bounds, Some(number))
}

fn within(entry: &Entry<'_>, (least, most): (u64, u64), number: Option<u64>) -> Option<u64> {
    let message = match number {
        Some(number) if (least..=most).contains(&number) => return Some(number),
        Some(0) => format!("`{}` must be at least {least}", entry.key),
        _ if most >= i64::MAX as u64 => format!("`{}` is too large", entry.key),
        _ => format!("`{}` must be between {least} and {most}", entry.key),
    };
    wrong_value(entry, message)
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
pub(super) fn rate(entry: &Entry<'_>) -> Option<Rate> {
    if let DeValue::String(text) = entry.value
        && text.contains("for")
    {
        return parsed(entry, text.parse()).map(Rate::Stepped);
    }
    steady_rate(entry).map(Rate::Steady)
}

fn steady_rate(entry: &Entry<'_>) -> Option<f64> {
    const RATE_MAX: f64 = SteppedRate::RATE_MOST;
    let number = match entry.value {
        DeValue::Integer(number) => to_i64(number).map(|number| number as f64),
        DeValue::Float(number) => to_f64(number),
        _ => {
            let expected = "a rate in transactions per second such as 500 or \"2k\"";
            let text = string(entry, expected)?;
            let why = |_| {
                format!(
                    "`{text}` is not a rate; write transactions per second, such as 500 or \"2k\""
                )
            };
            Some(parsed(entry, parse_count(text).map_err(why))? as f64)
        }
    };
    match number {
        Some(number) if number > 0.0 && number <= RATE_MAX => Some(number),
        _ => {
            let message = "a rate must be above 0 and at most 1000000000 per second";
            wrong_value(entry, message)
        }
    }
}

/// A duration such as `"30s"`, zero included.
pub(super) fn duration(entry: &Entry<'_>) -> Option<Nanoseconds> {
    // A century: longer ones would not fit into the sums of a plan.
    const DURATION_MAX: Nanoseconds = Nanoseconds::from_secs(100 * 365 * 86_400);
    let text = with_unit(entry, ("a duration such as \"30s\"", "s"))?;
    match parsed(entry, parse_duration(text))? {
        duration if duration <= DURATION_MAX => Some(duration),
        _ => wrong_value(entry, format!("`{text}` is longer than a century")),
    }
}

/// A text of a number with its unit, which may be forgotten.
fn with_unit<'a>(entry: &Entry<'a>, (expected, unit): (&str, &str)) -> Option<&'a str> {
    if let DeValue::String(text) = entry.value {
        return Some(text);
    }
    let message = format!("expected {expected}, found {}", kind_of(entry.value));
    let label = format!("wrong type for `{}`", entry.key);
    let wrong = at_value(entry, message).with_label(label);
    entry.parser.add(match entry.value {
        DeValue::Integer(number) => {
            wrong.with_help(format!("write it with its unit: \"{}{unit}\"", number.as_str()))
        }
        _ => wrong,
    });
    None
}

pub(super) fn positive_duration(entry: &Entry<'_>) -> Option<Nanoseconds> {
    match duration(entry)? {
        Nanoseconds::ZERO => {
            wrong_value(entry, format!("`{}` must be longer than zero", entry.key))
        }
        duration => Some(duration),
    }
}

/// A percentage below 100 such as `"3%"`, as a fraction.
pub(super) fn fraction(entry: &Entry<'_>) -> Option<f64> {
    let text = with_unit(entry, ("a percentage such as \"3%\"", "%"))?;
    match parsed(entry, parse_percentage(text))? {
        percent if percent < 100.0 => Some(percent / 100.0),
        _ => wrong_value(entry, format!("`{}` must be below 100%", entry.key)),
    }
}

/// The value of a field of a table, by its shape: the one reader of `[database.a] engine = …` and of the
/// levels of `"database.engine"`.
pub(super) fn field(entry: &Entry<'_>, shape: Shape) -> Option<FieldValue> {
    use FieldValue as Value;
    match shape {
        Shape::Url => by_url::url(entry).map(Value::Text),
        Shape::Words(words) => {
            let words: Vec<(&str, &str)> = words.iter().map(|word| (*word, *word)).collect();
            word(entry, &words).map(|word| Value::Text(word.to_owned()))
        }
        Shape::Switch => switch(entry).map(Value::Switch),
        Shape::Count(least, most) => count(entry, (least, most)).map(Value::Number),
        Shape::Integer(least, most) => integer(entry, (least, most)).map(Value::Number),
        Shape::Duration => duration(entry).map(Value::Duration),
        Shape::PositiveDuration => positive_duration(entry).map(Value::Duration),
        Shape::Percentage => fraction(entry).map(Value::Fraction),
        Shape::Size => size(entry, 1).map(Value::Size),
        Shape::SizeOrZero => size(entry, 0).map(Value::Size),
        Shape::Price => price(entry).map(Value::Price),
        Shape::Setting => setting(entry).map(Value::Setting),
        Shape::Urls => by_url::urls(entry).map(Value::Texts),
        Shape::Command => command(entry).map(Value::Texts),
        Shape::Texts => texts(entry).map(Value::Texts),
        Shape::Names => listed(entry, text, String::clone).map(Value::Texts),
        Shape::Declaration(_) => declaration::read(entry).map(Value::Text),
        // Names of products, engines and workloads are checked with the whole table.
        _ => text(entry).map(Value::Text),
    }
}

/// Far above the price of any machine in any currency.
const PRICE_MOST: f64 = 1e12;

/// An amount with its currency, such as `"0.192 USD"`.
pub(super) fn price(entry: &Entry<'_>) -> Option<Price> {
    const EXAMPLE: &str = "an amount with its currency, such as \"0.192 USD\"";
    let text = string(entry, EXAMPLE)?;
    let split = text.trim().split_once(char::is_whitespace);
    let amount = split.and_then(|(amount, _)| amount.parse::<f64>().ok());
    let currency = split.map(|(_, currency)| currency.trim()).filter(|currency| {
        currency.len() == 3 && currency.bytes().all(|byte| byte.is_ascii_uppercase())
    });
    match (amount.filter(|amount| amount.is_finite() && *amount >= 0.0), currency) {
        (Some(amount), Some(_)) if amount > PRICE_MOST => {
            wrong_value(entry, format!("`{text}` is more than {PRICE_MOST}"))
        }
        (Some(amount), Some(currency)) => Some(Price { amount, currency: currency.to_owned() }),
        _ => wrong_value(entry, format!("`{text}` is not {EXAMPLE}")),
    }
}

/// A program and its arguments; the same argument may be there twice.
pub(super) fn command(entry: &Entry<'_>) -> Option<Vec<String>> {
    const EXPECTED: &str = "a list of strings such as [\"cat\", \"/proc/loadavg\"]";
    let items = entry.value.as_array().into_iter().flat_map(|items| items.iter());
    let texts: Option<Vec<String>> =
        items.map(|item| item.get_ref().as_str().map(str::to_owned)).collect();
    match texts.filter(|_| entry.value.is_array()) {
        None => wrong_type(entry, EXPECTED),
        Some(texts) if texts.first().is_none_or(|program| program.trim().is_empty()) => {
            wrong_value(entry, "the command names no program")
        }
        texts => texts,
    }
}

/// A text, or a list of texts; the same one may be there twice.
pub(super) fn texts(entry: &Entry<'_>) -> Option<Vec<String>> {
    let items = match entry.value {
        DeValue::Array(items) => items.iter().map(|item| item.get_ref()).collect(),
        value => vec![value],
    };
    let texts: Option<Vec<String>> =
        items.into_iter().map(|item| item.as_str().map(str::to_owned)).collect();
    match texts {
        None => wrong_type(entry, "a string, or a list of strings"),
        Some(texts) if texts.iter().any(|text| text.trim().is_empty()) => {
            wrong_value(entry, format!("`{}` contains an empty string", entry.key))
        }
        texts => texts,
    }
}

/// Bytes, such as `"8GiB"`, of which there are at least so many: 0 or 1.
fn size(entry: &Entry<'_>, least: u64) -> Option<ByteCount> {
    let text = string(entry, "a size such as \"8GiB\"")?;
    match parsed(entry, text.parse::<ByteCount>())? {
        bytes if bytes.0 >= least => Some(bytes),
        _ => wrong_value(entry, format!("`{}` must be above zero", entry.key)),
    }
}

pub(super) fn setting(entry: &Entry<'_>) -> Option<SettingValue> {
    let value = match entry.value {
        DeValue::Boolean(is_on) => Some(SettingValue::Switch(*is_on)),
        DeValue::Integer(number) => to_i64(number).map(SettingValue::Integer),
        DeValue::Float(number) => to_f64(number).map(SettingValue::Real),
        _ => {
            let text = string(entry, "a string, a number or a boolean")?;
            let value = setting_of_text(text).map_err(|why| format!("`{}`: {why}", entry.key));
            return parsed(entry, value);
        }
    };
    let why = format!("the number of `{}` is out of range", entry.key);
    parsed(entry, value.ok_or(why))
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
    let vocabulary = Vocabulary::default();
    let parser = Parser::new(&vocabulary);
    let found = entries(&parser, tree.get_ref()).first().and_then(setting);
    let problem = parser.into_diagnostics(&source).into_iter().next();
    found.ok_or_else(|| problem.map_or_else(String::new, |problem| problem.message))
}

/// A list that is not empty and names nothing twice. `name` writes a value as it is compared.
pub(super) fn list<T>(
    entry: &Entry<'_>,
    mut reader: impl FnMut(&Entry<'_>) -> Option<T>,
    name: impl Fn(&T) -> String,
) -> Option<Vec<Given<T>>> {
    let DeValue::Array(items) = entry.value else {
        return wrong_type(entry, "a list such as [1, 2]");
    };
    if items.is_empty() {
        at_value(entry, format!("the list of `{}` is empty", entry.key))
            .with_label("nothing to choose from")
            .with_help("name at least one value, or leave the key out")
            .add_to(entry.parser);
        return None;
    }
    let mut seen = std::collections::BTreeSet::new();
    let mut all = Vec::new();
    for item in items.iter() {
        let item = item_entry(entry, item);
        let one = given(&item, &mut reader);
        if let Some(text) = one.value.as_ref().map(&name)
            && !seen.insert(text.clone())
        {
            Diagnostic::new(item.span, format!("`{text}` appears twice in `{}`", entry.key))
                .with_label("given before")
                .add_to(entry.parser);
        }
        all.push(one);
    }
    Some(all)
}

pub(super) fn item_entry<'a>(list: &Entry<'a>, item: &'a Spanned<DeValue<'a>>) -> Entry<'a> {
    let key_span = list.key_span.clone();
    let (parser, key) = (list.parser, list.key);
    Entry { parser, key, key_span, value: item.get_ref(), span: item.span() }
}

/// The values of a list of which each was right; none if one was wrong.
pub(super) fn listed<T: Clone>(
    entry: &Entry<'_>,
    reader: impl FnMut(&Entry<'_>) -> Option<T>,
    name: impl Fn(&T) -> String,
) -> Option<Vec<T>> {
    values(&list(entry, reader, name)?)
}

pub(super) fn values<T: Clone>(list: &[Given<T>]) -> Option<Vec<T>> {
    list.iter().map(|one| one.value.clone()).collect()
}

pub(super) fn table<'a>(entry: &Entry<'a>) -> Option<&'a DeTable<'a>> {
    entry.value.as_table().or_else(|| wrong_type(entry, "a table"))
}
