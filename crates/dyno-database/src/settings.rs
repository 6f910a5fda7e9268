//! Settings of servers, and lists of words such as their names.

use std::collections::BTreeMap;

use dyno_units::SettingValue;

/// As a study gives them.
pub(crate) type GivenSettings = BTreeMap<String, SettingValue>;

/// As the product spells them: what is given to its servers, or what they report.
pub(crate) type Settings = BTreeMap<String, String>;

/// Words with blanks between.
#[derive(Clone, Copy)]
pub(crate) struct Words(pub(crate) &'static str);

impl Words {
    pub(crate) fn iter(self) -> impl Iterator<Item = &'static str> {
        self.0.split_ascii_whitespace()
    }

    pub(crate) fn has(self, word: &str) -> bool {
        self.iter().any(|one| one == word)
    }

    /// As a message lists them.
    pub(crate) fn listed(self) -> String {
        self.iter().collect::<Vec<_>>().join(", ")
    }
}
