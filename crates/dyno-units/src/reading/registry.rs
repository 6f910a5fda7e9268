//! All readings that a probe may emit, and how a name finds its entry.

use std::collections::BTreeMap;

use super::Reading;

/// In the order in which readers look for them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Registry {
    all: Vec<Reading>,
}

impl Registry {
    pub fn new(readings: impl IntoIterator<Item = Reading>) -> Registry {
        Registry { all: readings.into_iter().collect() }
    }

    /// Of two with the same id the first counts.
    pub fn extend<'r>(&mut self, readings: impl IntoIterator<Item = &'r Reading>) {
        for reading in readings {
            if self.all.iter().all(|known| known.id != reading.id) {
                self.all.push(reading.clone());
            }
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Reading> {
        self.all.iter()
    }

    /// The reading with this id, else the longest pattern: `disk.writes_per_s` is the total.
    pub fn find(&self, name: &str) -> Option<&Reading> {
        let said = |reading: &&Reading| (reading.id == name, reading.id.len());
        self.all.iter().filter(|reading| reading.is_for(name)).max_by_key(said)
    }

    /// For the record; names that are not registered are left out.
    pub fn meanings<'n>(&self, all: impl Iterator<Item = &'n String>) -> BTreeMap<String, Reading> {
        all.filter_map(|name| Some((name.clone(), self.find(name)?.clone()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unit;
    use crate::reading::reading;

    #[test]
    fn a_name_finds_the_id_that_says_most() {
        let ids = [
            "disk.writes_per_s",
            "disk.*.writes_per_s",
            "*.cpu_s_per_s",
            "rest.cpu_s_per_s",
            "*.thread.*.cpu_s_per_s",
            "probe.*",
        ];
        let registry = Registry::new(ids.map(|id| reading(id, Unit::Count, "x", "x")));
        let check = |name: &str, expected: Option<&str>| {
            assert_eq!(registry.find(name).map(|one| one.id.as_ref()), expected, "{name}");
        };
        check("disk.vda.writes_per_s", Some("disk.*.writes_per_s"));
        check("disk.writes_per_s", Some("disk.writes_per_s"));
        check("server.cpu_s_per_s", Some("*.cpu_s_per_s"));
        check("rest.cpu_s_per_s", Some("rest.cpu_s_per_s"));
        check("server.thread.purge.cpu_s_per_s", Some("*.thread.*.cpu_s_per_s"));
        check("probe.mine.queue", Some("probe.*"));
        check("unheard.of", None);
        check(".cpu_s_per_s", None);
    }

    #[test]
    fn a_reading_is_registered_once() {
        let mut registry = Registry::new([reading("a", Unit::Count, "first", "x")]);
        registry.extend(&[reading("a", Unit::Count, "second", "x")]);
        assert_eq!(registry.iter().map(|one| one.title.as_ref()).collect::<Vec<_>>(), ["first"]);
    }
}
