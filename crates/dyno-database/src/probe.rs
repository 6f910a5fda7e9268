//! What the probes of all servers share: a connection of their own, counters turned into rates,
//! and what every reading means.
//!
//! A probe opens its connection when it is first read, and again after a pause if that failed
//! or it was lost. Every statement has a limit at the server and the socket one above it: what
//! hangs is a missing reading. So is a view that this version lacks.

mod asker;
mod counters;
mod debts;
mod sql;
mod table;

pub(crate) use asker::{Asker, cell, marked, named_numbers, number, numbers_by_name};
pub(crate) use counters::{Counters, CountersProbe};
pub(crate) use debts::{DEBT, DebtProbe};
pub use sql::sql_probe;
pub(crate) use table::{Item, Table, Values, all_of, gauge, rate};

use dyno_units::{Nanoseconds, Registry};

/// The readings of all server probes, in the order of relevance.
pub fn server_readings() -> Registry {
    let own = debts::READINGS.iter().chain(crate::part::READINGS);
    Registry::new(own.cloned().chain(crate::products::readings()))
}

/// A timer for queries that cost the server more than others.
pub(crate) struct Every {
    period: Nanoseconds,
    next: Nanoseconds,
}

impl Every {
    /// Due immediately, and then every `period`.
    pub(crate) const fn new(period: Nanoseconds) -> Every {
        Every { period, next: Nanoseconds::ZERO }
    }

    /// Whether it is due at `now`. A reading a little early counts as in time: reads come at
    /// whole seconds, give or take.
    pub(crate) fn is_due(&mut self, now: Nanoseconds) -> bool {
        let grain = Nanoseconds::from_millis(100);
        if now + grain < self.next {
            return false;
        }
        self.next = now + self.period;
        true
    }
}

#[cfg(test)]
mod tests;
