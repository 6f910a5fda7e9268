//! A probe that asks one statement, whose answer has the counters of a server.

use std::borrow::Cow;

use dyno_host::{Probe, Readings};
use dyno_units::{Nanoseconds, Reading};
use dyno_workload::{Connector, NamedRows};

use super::{Asker, Item, Table, Values, all_of};

pub(crate) struct Counters {
    /// The name of the probe.
    pub(crate) probe: &'static str,
    pub(crate) statement: &'static str,
    /// The counters in the answer, by their names in `items`.
    pub(crate) values: fn(&NamedRows) -> Values,
    /// What they become; a member takes the place of `*` in a reading's name.
    pub(crate) items: &'static [Item],
}

impl Counters {
    pub(crate) fn readings(&self) -> Vec<Reading> {
        all_of(&[self.items], &[])
    }
}

pub(crate) struct CountersProbe {
    member: String,
    asker: Asker,
    counters: &'static Counters,
    table: Table,
}

impl CountersProbe {
    /// Of a member of a deployment, or of a server alone, which has no name.
    pub(crate) fn new(
        member: &str,
        connector: Connector,
        counters: &'static Counters,
    ) -> CountersProbe {
        let (asker, table) = (Asker::new(connector), Table::new(counters.items));
        CountersProbe { member: member.to_owned(), asker, counters, table }
    }

    pub(crate) fn put(&mut self, now: Nanoseconds, answer: &NamedRows, readings: &mut Readings) {
        let mut of_any = Readings::new();
        self.table.put(now, (self.counters.values)(answer), &mut of_any);
        let named = of_any.into_iter().map(|(id, value)| (id.replace('*', &self.member), value));
        readings.extend(named);
    }
}

impl Probe for CountersProbe {
    fn registered(&self) -> Cow<'static, [Reading]> {
        self.counters.readings().into()
    }

    fn name(&self) -> &str {
        self.counters.probe
    }

    fn read(&mut self, now: Nanoseconds, readings: &mut Readings) {
        if let Some(answer) = self.asker.named_rows(now, self.counters.statement) {
            self.put(now, &answer, readings);
        }
    }

    fn take_notes(&mut self) -> Vec<String> {
        self.asker.take_notes()
    }
}
