//! Common to all servers' probes: own connections, rates of counters, meanings of readings. A probe
//! connects when first read, and after a pause if that failed or the connection was lost.
//! Statements have a limit at the server, and a longer one at the socket: what hangs, or does not
//! exist in this version, is a missing reading.

mod asker;
mod asking;
mod counters;
mod debts;
mod sql;
mod table;

pub(crate) use asker::{Asker, cell, marked, named_numbers, number, numbers_by_name};
pub(crate) use asking::asking;
pub(crate) use counters::Counters;
pub(crate) use debts::{DEBT, DebtProbe, READINGS as DEBT_READINGS};
pub use sql::sql_probe;
pub(crate) use table::{Item, Table, Values, all_of, gauge, rate};

use dyno_units::Nanoseconds;

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

    /// Reads come at about whole seconds: slightly early counts as in time.
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
