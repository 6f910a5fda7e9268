//! Probes that ask one statement, whose answer has the counters of a server.

use dyno_host::{Probe, Readings};
use dyno_units::{Nanoseconds, Reading};
use dyno_workload::{Connector, NamedRows};

use super::{Asker, Item, Table, Values, all_of, asking};

pub(crate) struct Counters {
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

    /// Of a member of a deployment, or of a server alone, which has no name.
    pub(crate) fn probe(&'static self, member: &str, connector: Connector) -> Box<dyn Probe> {
        let (member, mut table) = (member.to_owned(), Table::new(self.items));
        let asker = Asker::new(connector);
        asking(self.probe, self.readings(), asker, move |asker, now, readings| {
            if let Some(answer) = asker.named_rows(now, self.statement) {
                self.put((&member, &mut table), now, &answer, readings);
            }
        })
    }

    pub(crate) fn put(
        &self,
        (member, table): (&str, &mut Table),
        now: Nanoseconds,
        answer: &NamedRows,
        readings: &mut Readings,
    ) {
        let mut of_any = Readings::new();
        table.put(now, (self.values)(answer), &mut of_any);
        let named = of_any.into_iter().map(|(id, value)| (id.replace('*', member), value));
        readings.extend(named);
    }
}
