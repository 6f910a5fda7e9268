//! A workload's options, complete and checked.

use std::collections::BTreeMap;

use dyno_model::{Name, OptionError, OptionKind, OptionSpec, parse_switch};
use dyno_units::ByteCount;

pub(crate) use dyno_model::option::{any_count, count, counts, real, size, switch, text, word};

/// What was read of options, unless one is wrong.
pub(crate) type Read<T> = Result<T, OptionError>;

/// Option values as text, by name, complete: defaults filled in, names and kinds checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    values: BTreeMap<Name, (OptionSpec, String)>,
}

impl Options {
    pub fn resolve(specs: &[OptionSpec], given: &BTreeMap<String, String>) -> Read<Options> {
        for name in given.keys() {
            if !specs.iter().any(|spec| spec.name == *name) {
                let known: Vec<&str> = specs.iter().map(|spec| spec.name.as_ref()).collect();
                let known = known.join(", ");
                return refuse(name, format!("this workload has no such option; it has {known}"));
            }
        }
        let mut values = BTreeMap::new();
        for spec in specs {
            let text = given.get(spec.name.as_ref()).map_or(spec.default.as_ref(), String::as_str);
            spec.check(text)?;
            values.insert(spec.name.clone(), (spec.clone(), text.to_owned()));
        }
        Ok(Options { values })
    }

    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// The text of an option.
    ///
    /// # Panics
    /// If the workload did not declare the option.
    pub fn text(&self, name: &str) -> &str {
        &self.values[name].1
    }

    pub fn count(&self, name: &str) -> u64 {
        dyno_units::parse_count(self.text(name)).expect("checked when the options were resolved")
    }

    /// The value of an option that was declared with a range.
    ///
    /// # Errors
    ///
    /// The value is out of the range.
    pub fn in_range(&self, name: &str) -> Result<u64, OptionError> {
        let count = self.count(name);
        self.values[name].0.range.map_or(Ok(count), |range| within(name, count, range))
    }

    /// What the word of an option means: `meanings` are those of its words, in their order.
    pub fn meaning<T, const N: usize>(&self, name: &str, meanings: [T; N]) -> T {
        let (spec, text) = &self.values[name];
        let OptionKind::Word(words) = &spec.kind else { unreachable!("`{name}` has no words") };
        let mut meant = words.iter().zip(meanings).filter(|(word, _)| word == text);
        meant.next().expect("checked when the options were resolved").1
    }

    pub fn counts(&self, name: &str) -> Vec<u64> {
        dyno_model::parse_counts(self.text(name)).expect("checked when the options were resolved")
    }

    pub fn size(&self, name: &str) -> u64 {
        let size: ByteCount =
            self.text(name).parse().expect("checked when the options were resolved");
        size.0
    }

    pub fn real(&self, name: &str) -> f64 {
        self.text(name).parse().expect("checked when the options were resolved")
    }

    pub fn switch(&self, name: &str) -> bool {
        parse_switch(self.text(name)).expect("checked when the options were resolved")
    }

    pub fn pairs(&self) -> Vec<(String, String)> {
        let pair =
            |(spec, text): &(OptionSpec, String)| (spec.name.clone().into_owned(), text.clone());
        self.values.values().map(pair).collect()
    }
}

/// A whole number from the first of two numbers to the second.
pub(crate) fn within(name: &str, value: u64, range: (u64, u64)) -> Result<u64, OptionError> {
    let (least, most) = range;
    match (least..=most).contains(&value) {
        true => Ok(value),
        false => refuse(name, format!("`{value}` is not between {least} and {most}")),
    }
}

pub(crate) fn refuse<T>(name: &str, reason: impl Into<String>) -> Result<T, OptionError> {
    Err(refused(name, reason))
}

pub(crate) fn refused(name: &str, reason: impl Into<String>) -> OptionError {
    OptionError { name: name.to_owned(), reason: reason.into() }
}
