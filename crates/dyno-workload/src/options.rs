//! The options that a workload was given, complete and checked.

use std::collections::BTreeMap;

use dyno_model::{Name, OptionError, OptionSpec, parse_switch};
use dyno_units::ByteCount;

/// Option values as text, by name, complete: defaults filled in, names and kinds checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    values: BTreeMap<Name, String>,
}

impl Options {
    /// Checks `given` against `specs` and fills in the defaults.
    pub fn resolve(
        specs: &[OptionSpec],
        given: &BTreeMap<String, String>,
    ) -> Result<Options, OptionError> {
        for name in given.keys() {
            if !specs.iter().any(|spec| spec.name == *name) {
                return Err(OptionError {
                    name: name.clone(),
                    reason: format!(
                        "this workload has no such option; it has {}",
                        specs.iter().map(|spec| spec.name.as_ref()).collect::<Vec<_>>().join(", ")
                    ),
                });
            }
        }
        let mut values = BTreeMap::new();
        for spec in specs {
            let text = given.get(spec.name.as_ref()).map_or(spec.default.as_ref(), String::as_str);
            spec.check(text)?;
            values.insert(spec.name.clone(), text.to_owned());
        }
        Ok(Options { values })
    }

    /// The text of an option.
    ///
    /// # Panics
    /// If the workload did not declare the option.
    pub fn text(&self, name: &str) -> &str {
        &self.values[name]
    }

    pub fn count(&self, name: &str) -> u64 {
        dyno_units::parse_count(self.text(name)).expect("checked when the options were resolved")
    }

    pub fn counts(&self, name: &str) -> Vec<u64> {
        dyno_model::parse_counts(self.text(name)).expect("checked when the options were resolved")
    }

    /// The value of an option that is a number of bytes.
    pub fn size(&self, name: &str) -> u64 {
        let size: ByteCount =
            self.text(name).parse().expect("checked when the options were resolved");
        size.0
    }

    pub fn real(&self, name: &str) -> f64 {
        self.text(name).parse().expect("checked when the options were resolved")
    }

    /// The value of an option that is `on` or `off`.
    pub fn switch(&self, name: &str) -> bool {
        parse_switch(self.text(name)).expect("checked when the options were resolved")
    }

    /// All options as name and value, by name.
    pub fn pairs(&self) -> Vec<(String, String)> {
        self.values.iter().map(|(name, value)| (name.clone().into_owned(), value.clone())).collect()
    }
}
