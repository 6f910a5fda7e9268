//! Options of workloads: declared once, for the study file, the command line and the schema.

use crate::{Name, name};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionSpec {
    /// With underscores.
    pub name: Name,
    pub kind: OptionKind,
    /// `on` or `off` for a switch.
    pub default: Name,
    /// One sentence for help texts and the schema.
    pub help: Name,
    /// The least and the largest whole number that it takes; none if it takes any.
    pub range: Option<(u64, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// As text also `20k` and `20M`.
    Count,
    /// As text also `16KiB` and `8GB`.
    Size,
    Real,
    /// `on` or `off`; as text also `true`, `false`, `yes`, `no`, `1` and `0`.
    Switch,
    Word(Words),
    /// A list of whole numbers; as text `10,20,1k`.
    Counts,
    Text,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Words {
    Constant(&'static [&'static str]),
    Owned(Vec<String>),
}

impl Words {
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let (constant, owned): (&[&str], &[String]) = match self {
            Words::Constant(words) => (words, &[]),
            Words::Owned(words) => (&[], words),
        };
        constant.iter().copied().chain(owned.iter().map(String::as_str))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("option `{name}`: {reason}")]
pub struct OptionError {
    pub name: String,
    /// What is wrong, and what is accepted.
    pub reason: String,
}

impl OptionSpec {
    const fn new(text: &'static str, kind: OptionKind, default: &'static str) -> OptionSpec {
        OptionSpec { name: name(text), kind, default: name(default), help: name(""), range: None }
    }

    /// The same option with this help.
    #[must_use]
    pub const fn help(mut self, help: &'static str) -> OptionSpec {
        std::mem::forget(std::mem::replace(&mut self.help, name(help)));
        self
    }

    /// The same option with the least and the largest whole number that it takes.
    #[must_use]
    pub const fn within(mut self, least: u64, most: u64) -> OptionSpec {
        self.range = Some((least, most));
        self
    }

    /// Fails, with what is wrong and what is accepted, if the option cannot have this value.
    pub fn check(&self, text: &str) -> Result<(), OptionError> {
        let is_accepted = match &self.kind {
            OptionKind::Count => dyno_units::parse_count(text).is_ok(),
            OptionKind::Size => text.parse::<dyno_units::ByteCount>().is_ok(),
            OptionKind::Real => text.parse::<f64>().is_ok_and(f64::is_finite),
            OptionKind::Switch => parse_switch(text).is_some(),
            OptionKind::Word(words) => words.iter().any(|word| word == text),
            OptionKind::Counts => parse_counts(text).is_some(),
            OptionKind::Text => !text.trim().is_empty(),
        };
        if is_accepted {
            return Ok(());
        }
        let wanted = match &self.kind {
            OptionKind::Count => "a whole number such as 100 or \"20k\"".to_owned(),
            OptionKind::Size => "a size such as 512 or \"16KiB\"".to_owned(),
            OptionKind::Real => "a number".to_owned(),
            OptionKind::Switch => "on or off".to_owned(),
            OptionKind::Word(words) => {
                format!("one of {}", words.iter().collect::<Vec<_>>().join(", "))
            }
            OptionKind::Counts => "a list of whole numbers such as 10,20,40".to_owned(),
            OptionKind::Text => "a text".to_owned(),
        };
        let name = self.name.clone().into_owned();
        Err(OptionError { name, reason: format!("`{text}` is not {wanted}") })
    }
}

/// A number from `least` to `most`; the help of this option and of those below follows.
pub const fn count(name: &'static str, default: &'static str, least: u64, most: u64) -> OptionSpec {
    any_count(name, default).within(least, most)
}

pub const fn any_count(name: &'static str, default: &'static str) -> OptionSpec {
    OptionSpec::new(name, OptionKind::Count, default)
}

pub const fn counts(name: &'static str, default: &'static str) -> OptionSpec {
    OptionSpec::new(name, OptionKind::Counts, default)
}

pub const fn real(name: &'static str, default: &'static str) -> OptionSpec {
    OptionSpec::new(name, OptionKind::Real, default)
}

pub const fn size(name: &'static str, default: &'static str) -> OptionSpec {
    OptionSpec::new(name, OptionKind::Size, default)
}

pub const fn switch(name: &'static str, is_on: bool) -> OptionSpec {
    OptionSpec::new(name, OptionKind::Switch, if is_on { "on" } else { "off" })
}

/// Any text that is not empty.
pub const fn text(name: &'static str, default: &'static str) -> OptionSpec {
    OptionSpec::new(name, OptionKind::Text, default)
}

/// The first word is the default.
pub const fn word(name: &'static str, words: &'static [&'static str]) -> OptionSpec {
    OptionSpec::new(name, OptionKind::Word(Words::Constant(words)), words[0])
}

/// `10,20,1k`; `None` for other texts.
pub fn parse_counts(text: &str) -> Option<Vec<u64>> {
    text.split(',').map(|one| dyno_units::parse_count(one.trim()).ok()).collect()
}

pub fn parse_switch(text: &str) -> Option<bool> {
    match text {
        "on" | "true" | "yes" | "1" => Some(true),
        "off" | "false" | "no" | "0" => Some(false),
        _ => None,
    }
}
