//! Tables of a server's names for numbers, and the readings that they become. Counters become
//! rates.

use std::collections::BTreeMap;

use dyno_host::Readings;
use dyno_units::{Nanoseconds, Reading};

/// Numbers by the server's own names for them.
pub(crate) type Values = BTreeMap<String, f64>;

pub(crate) struct Item {
    /// The server's own name for the number, in lower case.
    pub(crate) source: &'static str,
    how: How,
    factor: f64,
    reading: Reading,
}

#[derive(Clone, Copy, PartialEq)]
enum How {
    Gauge,
    Rate,
}

pub(crate) const fn gauge(source: &'static str, reading: Reading) -> Item {
    Item { source, how: How::Gauge, factor: 1.0, reading }
}

pub(crate) const fn rate(source: &'static str, reading: Reading) -> Item {
    Item { source, how: How::Rate, factor: 1.0, reading }
}

impl Item {
    /// The same, times a factor: the server's unit is another one.
    pub(crate) const fn times(mut self, factor: f64) -> Item {
        self.factor = factor;
        self
    }
}

pub(crate) fn all_of(items: &[&[Item]], more: &[Reading]) -> Vec<Reading> {
    let of_items = items.iter().flat_map(|items| items.iter()).map(|item| &item.reading);
    of_items.chain(more).cloned().collect()
}

/// Turns a server's numbers into readings; remembers them for the next rates.
pub(crate) struct Table {
    items: &'static [Item],
    before: Option<(Nanoseconds, Values)>,
}

impl Table {
    pub(crate) const fn new(items: &'static [Item]) -> Table {
        Table { items, before: None }
    }

    /// `values` are as of `now`. After a restart of a counter its rate is missing once.
    pub(crate) fn put(&mut self, now: Nanoseconds, values: Values, readings: &mut Readings) {
        let since = self.before.as_ref().and_then(|(at, before)| {
            let seconds = now.saturating_sub(*at).as_secs_f64();
            (seconds > 0.0).then_some((seconds, before))
        });
        for item in self.items {
            let Some(value) = values.get(item.source) else { continue };
            let reading = match item.how {
                How::Gauge => Some(*value),
                How::Rate => since.and_then(|(seconds, before)| {
                    let growth = value - before.get(item.source)?;
                    (growth >= 0.0).then_some(growth / seconds)
                }),
            };
            if let Some(reading) = reading {
                readings.insert(item.reading.id.to_string(), reading * item.factor);
            }
        }
        self.before = Some((now, values));
    }

    /// Of one counter since the values before, for a quotient of two. Call before [`Table::put`].
    pub(crate) fn growth(&self, values: &Values, source: &str) -> Option<f64> {
        let (_, before) = self.before.as_ref()?;
        let growth = values.get(source)? - before.get(source)?;
        (growth >= 0.0).then_some(growth)
    }
}
