//! Studies written from the options of a command line.
//!
//! The parser of study files reads and checks them, as options mean what keys mean; errors name
//! options.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::{Context, anyhow, bail};
use dyno_study::{Diagnostic, Study, Vocabulary};
use dyno_units::{ByteCount, SettingValue};
use toml::Value;

use crate::vocabulary;

/// With the options that its lines come from.
#[derive(Default)]
pub(crate) struct Written {
    text: String,
    lines: Vec<Line>,
}

struct Line {
    span: Range<usize>,
    key: String,
    option: String,
}

impl Written {
    pub(crate) fn new(title: &str) -> Written {
        let mut written = Written::default();
        written.push("", "title", &title.into());
        written
    }

    /// `["database", "a"]`.
    pub(crate) fn table(&mut self, path: &[&str]) {
        let path: Vec<String> = path.iter().map(|part| key(part)).collect();
        self.text += &format!("\n[{}]\n", path.join("."));
    }

    /// A line that no option stands for.
    pub(crate) fn fixed(&mut self, key: &str, value: impl Into<Value>) {
        self.push("", key, &value.into());
    }

    /// The option has the key's name: `--warm-up` for `warm_up`.
    pub(crate) fn line(&mut self, key: &str, value: impl Into<Value>) {
        self.push(&option_of(key), key, &value.into());
    }

    pub(crate) fn line_of(&mut self, option: &str, key: &str, value: impl Into<Value>) {
        self.push(option, key, &value.into());
    }

    /// From options `NAME=VALUE`; fails for other forms.
    pub(crate) fn pairs<'a>(
        &mut self,
        option: &str,
        pairs: impl IntoIterator<Item = &'a String>,
    ) -> anyhow::Result<()> {
        for pair in pairs {
            let (name, value) = self::pair(option, pair)?;
            // A name given twice, quoted or bare, would be invalid TOML.
            let last_table = self.text.rfind("\n[").unwrap_or_default();
            let mut of_table = self.lines.iter().filter(|line| line.span.start > last_table);
            if of_table.any(|line| line.key == name) {
                bail!("{option}: `{name}` is given twice");
            }
            self.push(option, name, &scalar(value));
        }
        Ok(())
    }

    fn push(&mut self, option: &str, name: &str, value: &Value) {
        let start = self.text.len();
        self.text += &format!("{} = {value}\n", key(name));
        let span = start..self.text.len();
        let (key, option) = (name.to_owned(), option.to_owned());
        self.lines.extend((!option.is_empty()).then_some(Line { span, key, option }));
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The error has a line for each wrong option.
    pub(crate) fn read(&self) -> anyhow::Result<Study> {
        self.read_with(&vocabulary::vocabulary())
    }

    pub(crate) fn read_with(&self, vocabulary: &Vocabulary) -> anyhow::Result<Study> {
        dyno_study::parse(&self.text, vocabulary).map_err(|diagnostics| {
            let lines: Vec<String> = diagnostics.iter().map(|one| self.message(one)).collect();
            anyhow!(lines.join("\n"))
        })
    }

    fn message(&self, diagnostic: &Diagnostic) -> String {
        let Diagnostic { span, message, label, help } = diagnostic;
        // Some labels only repeat the key.
        let is_name = ["not accepted for", "wrong type for"].iter().any(|it| label.starts_with(it));
        let label = Some(label).filter(|label| !label.is_empty() && !is_name);
        // The label says why; a message takes only one colon.
        let colon = if message.contains(": ") { "; " } else { ": " };
        let why = label.map_or(String::new(), |label| format!("{colon}{label}"));
        let what_to_do = help.as_ref().map_or(String::new(), |help| format!("; {help}"));
        let mut text = format!("{message}{why}{what_to_do}").replace("this key", "this option");
        let mut lines = self.lines.iter();
        let found = lines.find(|line| line.span.start <= span.start && span.end <= line.span.end);
        // Options stand in for keys.
        for line in &self.lines {
            let is_found = found.is_some_and(|found| found.key == line.key);
            if !is_found && line.option == option_of(&line.key) {
                text = text.replace(&format!("`{}`", line.key), &line.option);
            }
        }
        match found {
            // If the message begins with the key, the option replaces it.
            Some(line) => match text.strip_prefix(&format!("`{}` ", line.key)) {
                Some(rest) => format!("{} {rest}", line.option),
                None => format!("{}: {text}", line.option),
            },
            None => text,
        }
    }
}

pub(crate) fn pair<'a>(option: &str, text: &'a str) -> anyhow::Result<(&'a str, &'a str)> {
    text.split_once('=').with_context(|| format!("{option}: write NAME=VALUE, not `{text}`"))
}

/// Settings that an option gives in the form NAME=VALUE, shares of memory resolved.
pub(crate) fn settings(
    option: &str,
    pairs: &[String],
    memory: ByteCount,
) -> anyhow::Result<BTreeMap<String, SettingValue>> {
    let setting = |text: &String| {
        let (name, value) = pair(option, text)?;
        match dyno_study::parse_setting(&scalar(value).to_string()) {
            Ok(value) => Ok((name.to_owned(), value.resolve(memory))),
            Err(why) => bail!("{option} {name}: {why}"),
        }
    };
    pairs.iter().map(setting).collect()
}

fn option_of(key: &str) -> String {
    format!("--{}", key.replace('_', "-"))
}

/// Quoted if necessary.
fn key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match !name.is_empty() && name.chars().all(is_bare) {
        true => name.to_owned(),
        false => Value::from(name).to_string(),
    }
}

/// Booleans, numbers and quoted texts are taken as they are; everything else is a text.
pub(crate) fn scalar(text: &str) -> Value {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '-' | '.');
    let is_quoted = |quote: char| {
        text.len() >= 2 && text.starts_with(quote) && text.ends_with(quote) && !text.contains('\n')
    };
    if !text.chars().all(is_word) && !is_quoted('"') && !is_quoted('\'') {
        return text.into();
    }
    let table: Option<toml::Table> = format!("x = {text}").parse().ok();
    match table.and_then(|mut table| table.remove("x")) {
        Some(value @ (Value::Boolean(_) | Value::Integer(_) | Value::String(_))) => value,
        Some(Value::Float(number)) if number.is_finite() => number.into(),
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_the_command_line_is_a_value_as_a_file_has_it() {
        let check = |text: &str, expected: &str| assert_eq!(scalar(text).to_string(), expected);
        check("true", "true");
        check("42", "42");
        check("0.9", "0.9");
        check("25%", "\"25%\"");
        check("8GiB", "\"8GiB\"");
        check("\"true\"", "\"true\"");
        check("inf", "\"inf\"");
        check("1 # x", "\"1 # x\"");
        check("1\ny = 2", "\"\"\"\n1\ny = 2\"\"\"");
        check("2024-01-01", "\"2024-01-01\"");
        check("", "\"\"");
    }

    #[test]
    fn settings_are_read_as_in_a_study() {
        let read = |pair: &str| settings("--setting", &[pair.to_owned()], ByteCount(1 << 30));
        let found = read("shared_buffers=25%").unwrap();
        assert_eq!(found["shared_buffers"], SettingValue::Bytes(ByteCount(1 << 28)));
        assert_eq!(read("a=1").unwrap()["a"], SettingValue::Integer(1));
        assert!(read("a").unwrap_err().to_string().contains("NAME=VALUE"));
        assert!(read("a=200%").is_err());
    }

    #[test]
    fn what_is_wrong_is_said_of_the_option() {
        let mut written = Written::new("x");
        written.table(&["database", "a"]);
        written.fixed("product", "mariadb");
        written.line("engine", "InoDB");
        written.table(&["database", "a", "settings"]);
        written.pairs("--setting", &["x=200%".to_owned()]).expect("it is a pair");
        written.table(&["workload", "oltp_read_only"]);
        written.table(&["design"]);
        written.line("warm_up", "soon");
        let error = written.read().expect_err("it is refused").to_string();
        for part in ["--engine: ", "did you mean `InnoDB`?", "--setting: ", "--warm-up: "] {
            assert!(error.contains(part), "{error}");
        }
        let pair = Written::new("x").pairs("--setting", &["x".to_owned()]);
        assert!(pair.expect_err("it is none").to_string().contains("NAME=VALUE"));
    }
}
