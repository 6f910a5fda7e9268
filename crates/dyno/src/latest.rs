//! The latest value of each reading, unless it is overdue by several times its period.

use std::collections::BTreeMap;

/// Periods that a reading may be late: probes take turns, and may be delayed by a second.
const PATIENCE: u64 = 3;

/// For a reading's first value: two minutes, as the size of a large data folder is read seldom.
const FIRST_NS: u64 = 120_000_000_000;

/// Limits how much one pause changes the estimated period, so that an outage does not.
const STRETCH: u64 = 4;

#[derive(Clone, Debug, Default)]
pub(crate) struct Latest {
    now_ns: u64,
    readings: BTreeMap<String, Reading>,
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    value: f64,
    at_ns: u64,
    /// Between two readings; none after the first.
    pace_ns: Option<u64>,
}

impl Reading {
    fn is_current(&self, now_ns: u64) -> bool {
        let most = self.pace_ns.map_or(FIRST_NS, |pace| pace.saturating_mul(PATIENCE));
        now_ns.saturating_sub(self.at_ns) <= most
    }
}

impl Latest {
    /// In nanoseconds of any one clock.
    pub(crate) fn take(&mut self, at_ns: u64, values: &BTreeMap<String, f64>) {
        self.now_ns = self.now_ns.max(at_ns);
        for (name, value) in values {
            let before = self.readings.get(name).copied();
            let pace_ns = before.map(|before| {
                let gap = at_ns.saturating_sub(before.at_ns);
                before.pace_ns.map_or(gap, |pace| gap.min(pace.saturating_mul(STRETCH)))
            });
            self.readings.insert(name.clone(), Reading { value: *value, at_ns, pace_ns });
        }
    }

    pub(crate) fn clear(&mut self) {
        self.readings.clear();
    }

    /// None if overdue.
    pub(crate) fn get(&self, name: &str) -> Option<f64> {
        self.readings.get(name).filter(|reading| reading.is_current(self.now_ns)).map(|r| r.value)
    }

    pub(crate) fn current(&self) -> BTreeMap<String, f64> {
        let current = self.readings.iter().filter(|(_, r)| r.is_current(self.now_ns));
        current.map(|(name, reading)| (name.clone(), reading.value)).collect()
    }

    /// For how long, in nanoseconds, these readings have been missing; none unless all are overdue.
    pub(crate) fn silent_ns(&self, is_it: impl Fn(&str) -> bool) -> Option<u64> {
        let mut of_it = self.readings.iter().filter(|(name, _)| is_it(name));
        let last = of_it.clone().map(|(_, reading)| reading.at_ns).max()?;
        let is_silent = of_it.all(|(_, reading)| !reading.is_current(self.now_ns));
        is_silent.then(|| self.now_ns.saturating_sub(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn take(latest: &mut Latest, second: u64, names: &[&str]) {
        let values = names.iter().map(|name| ((*name).to_owned(), second as f64)).collect();
        latest.take(second * S, &values);
    }

    #[test]
    fn what_does_not_come_again_is_gone() {
        let is_mysql = |name: &str| name == "mysql.a";
        let mut latest = Latest::default();
        for second in 1..=3 {
            take(&mut latest, second, &["host", "mysql.a"]);
        }
        for second in 4..=6 {
            take(&mut latest, second, &["host"]);
            assert_eq!(latest.get("mysql.a"), Some(3.0), "{second}");
            assert_eq!(latest.silent_ns(is_mysql), None);
        }
        take(&mut latest, 7, &["host"]);
        assert_eq!(latest.get("mysql.a"), None);
        assert_eq!(latest.current(), BTreeMap::from([("host".to_owned(), 7.0)]));
        assert_eq!(latest.silent_ns(is_mysql), Some(4 * S));
        assert_eq!(latest.silent_ns(|name| name == "pg.b"), None);
        // After its return, one long pause is not taken for its period.
        take(&mut latest, 40, &["host", "mysql.a"]);
        take(&mut latest, 41, &["host", "mysql.a"]);
        take(&mut latest, 45, &["host"]);
        assert_eq!((latest.get("host"), latest.get("mysql.a")), (Some(45.0), None));
    }

    #[test]
    fn what_comes_seldom_stays_as_long_as_it_takes() {
        let mut latest = Latest::default();
        take(&mut latest, 1, &["size"]);
        take(&mut latest, 90, &["host"]);
        assert_eq!(latest.get("size"), Some(1.0));
        take(&mut latest, 101, &["size"]);
        take(&mut latest, 400, &["host"]);
        assert_eq!(latest.get("size"), Some(101.0));
        take(&mut latest, 402, &["host"]);
        assert_eq!(latest.get("size"), None);
    }
}
