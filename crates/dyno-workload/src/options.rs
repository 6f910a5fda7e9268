//! A workload's options: declared once, read by the study file, the command line and the schema.

use std::collections::BTreeMap;

/// An option of a workload, as documented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionSpec {
    /// Its name, with underscores.
    pub name: &'static str,
    /// What its value is.
    pub kind: OptionKind,
    /// The value it has when it is not given.
    pub default: &'static str,
    /// One sentence for help texts and the schema.
    pub help: &'static str,
}

/// What an option's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// A whole number, `k` and `M` allowed.
    Count,
    /// A number.
    Real,
    /// `on` or `off`.
    Switch,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// An option that was given a wrong name or value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("option `{name}`: {reason}")]
pub struct OptionError {
    /// The option.
    pub name: String,
    /// What is wrong, and what is accepted.
    pub reason: String,
}

/// Option values as text, by name, complete: defaults filled in, names and kinds checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    values: BTreeMap<&'static str, String>,
}

impl Options {
    /// Checks `given` against `specs` and fills in the defaults.
    pub fn resolve(
        specs: &[OptionSpec],
        given: &BTreeMap<String, String>,
    ) -> Result<Options, OptionError> {
        for name in given.keys() {
            if !specs.iter().any(|spec| spec.name == name) {
                return Err(OptionError {
                    name: name.clone(),
                    reason: format!(
                        "this workload has no such option; it has {}",
                        specs.iter().map(|spec| spec.name).collect::<Vec<_>>().join(", ")
                    ),
                });
            }
        }
        let mut values = BTreeMap::new();
        for spec in specs {
            let text = given.get(spec.name).map_or(spec.default, String::as_str);
            check_kind(spec, text)?;
            values.insert(spec.name, text.to_owned());
        }
        Ok(Options { values })
    }

    /// The text of an option.
    ///
    /// # Panics
    /// When the workload asks for an option that it did not declare.
    pub fn text(&self, name: &str) -> &str {
        &self.values[name]
    }

    /// A whole number.
    pub fn count(&self, name: &str) -> u64 {
        dyno_units::parse_count(self.text(name)).expect("checked when the options were resolved")
    }

    /// A number.
    pub fn real(&self, name: &str) -> f64 {
        self.text(name).parse().expect("checked when the options were resolved")
    }

    /// On or off.
    pub fn switch(&self, name: &str) -> bool {
        parse_switch(self.text(name)).expect("checked when the options were resolved")
    }

    /// All options as name and value, by name.
    pub fn pairs(&self) -> Vec<(String, String)> {
        self.values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }
}

/// Checks one value against its kind.
pub fn check_kind(spec: &OptionSpec, text: &str) -> Result<(), OptionError> {
    let accepted = match spec.kind {
        OptionKind::Count => dyno_units::parse_count(text).is_ok(),
        OptionKind::Real => text.parse::<f64>().is_ok_and(f64::is_finite),
        OptionKind::Switch => parse_switch(text).is_some(),
        OptionKind::Word(words) => words.contains(&text),
    };
    if accepted {
        return Ok(());
    }
    let wanted = match spec.kind {
        OptionKind::Count => "a whole number such as 100 or \"20k\"".to_owned(),
        OptionKind::Real => "a number".to_owned(),
        OptionKind::Switch => "on or off".to_owned(),
        OptionKind::Word(words) => format!("one of {}", words.join(", ")),
    };
    let name = spec.name.to_owned();
    Err(OptionError { name, reason: format!("`{text}` is not {wanted}") })
}

fn parse_switch(text: &str) -> Option<bool> {
    match text {
        "on" | "true" | "yes" | "1" => Some(true),
        "off" | "false" | "no" | "0" => Some(false),
        _ => None,
    }
}
