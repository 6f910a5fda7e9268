//! What the probes of all servers share: a connection of their own, counters turned into rates,
//! and what every reading means.
//!
//! A probe opens its connection when it is first read, and again after a pause where that failed
//! or it was lost. Every statement has a limit at the server and the socket one above it: whatever
//! hangs is a missing reading. So is a view that this version does not have.

mod asker;
mod debts;
mod marked;
mod sql;
mod table;

pub(crate) use asker::{Asker, cell, named_numbers, number, numbers_by_name};
pub(crate) use debts::DebtProbe;
pub(crate) use marked::marked;
pub use sql::sql_probe;
pub(crate) use table::{Item, Table, Values, gauge, legends, rate};

use dyno_host::{Probe, ReadingLegend, ThreadListing, USER_LEGEND, find_legend};
use dyno_units::Nanoseconds;

use crate::{DebtMeter, DeployError, Endpoint, Protocol, ServerFacts};

/// A shorthand that keeps legends readable as tables.
pub(crate) const fn legend(
    pattern: &'static str,
    unit: &'static str,
    meaning: &'static str,
) -> ReadingLegend {
    ReadingLegend { pattern, unit, meaning }
}

/// What the readings of all server probes mean, in the order in which people look for them.
pub fn server_readings_legend() -> Vec<ReadingLegend> {
    [
        debts::LEGEND,
        crate::mysql::probe::legend(),
        crate::postgresql::probe::legend(),
        crate::sqlite::probe::LEGEND,
        crate::postgresql::probe::pgbouncer::LEGEND,
        USER_LEGEND,
    ]
    .concat()
}

/// What a reading of this name means, if a server probe gives it: by its exact name, or else by the
/// pattern that says most.
pub fn server_reading_legend(name: &str) -> Option<ReadingLegend> {
    find_legend(&server_readings_legend(), name)
}

/// The probes of a server that is reached by its URL, which is neither claimed nor changed. A
/// PostgreSQL URL whose catalog is `pgbouncer` is that program's console. What the server says of
/// its threads they put into `threads`, if somebody wants to know.
pub fn endpoint_probes(
    endpoint: &Endpoint,
    threads: Option<&ThreadListing>,
) -> Vec<Box<dyn Probe>> {
    match endpoint.protocol {
        Protocol::MySql => {
            let connector = crate::mysql::connector(endpoint.clone());
            crate::mysql::probe::probes(&connector, threads)
        }
        Protocol::PostgreSql if is_pgbouncer(endpoint) => {
            let connector = crate::postgresql::connector(endpoint.clone());
            vec![crate::postgresql::probe::pgbouncer::probe(connector)]
        }
        Protocol::PostgreSql => {
            let connector = crate::postgresql::connector(endpoint.clone());
            crate::postgresql::probe::probes(&connector, threads)
        }
    }
}

/// What a server that is reached by its URL says of itself; it is neither claimed nor changed.
///
/// # Errors
///
/// It cannot be reached, or does not tell.
pub fn endpoint_facts(endpoint: &Endpoint) -> Result<ServerFacts, DeployError> {
    match endpoint.protocol {
        Protocol::MySql => crate::mysql::endpoint_facts(endpoint),
        Protocol::PostgreSql if is_pgbouncer(endpoint) => {
            Ok(ServerFacts { product: "pgbouncer".to_owned(), ..ServerFacts::default() })
        }
        Protocol::PostgreSql => crate::postgresql::endpoint_facts(endpoint),
    }
}

/// The debt meter of a server that is reached by its URL.
///
/// # Errors
///
/// Why nothing is put off there that could be read.
pub fn endpoint_debt_meter(endpoint: &Endpoint) -> Result<Box<dyn DebtMeter>, String> {
    match endpoint.protocol {
        Protocol::MySql => Ok(crate::mysql::debt::meter(crate::mysql::connector(endpoint.clone()))),
        Protocol::PostgreSql if is_pgbouncer(endpoint) => {
            Err("pgbouncer stores nothing, so it puts nothing off".to_owned())
        }
        Protocol::PostgreSql => {
            Ok(crate::postgresql::debt::meter(crate::postgresql::connector(endpoint.clone())))
        }
    }
}

/// Whether this is pgbouncer's console, which is a catalog of this name that no server has.
fn is_pgbouncer(endpoint: &Endpoint) -> bool {
    endpoint.protocol == Protocol::PostgreSql && endpoint.catalog == "pgbouncer"
}

/// Says every so often that something is due: for what costs the server more than the rest.
pub(crate) struct Every {
    period: Nanoseconds,
    next: Nanoseconds,
}

impl Every {
    /// Due at once, and then every `period`.
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
