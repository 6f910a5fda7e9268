//! Probes of PostgreSQL 12 to 18: catalog and server, sessions and waits, tables. What a version
//! lacks is a missing reading.

mod activity;
mod database;
pub(crate) mod pgbouncer;
mod progress;
mod tables;

use std::sync::Arc;

use dyno_host::{Probe, ThreadListing};
use dyno_units::Reading;
use dyno_workload::Connector;

pub(in crate::postgresql) use database::Version;

use crate::probe::{DebtProbe, marked};

/// Each connection has a process, whose title tells its purpose: only the probes' are noted.
pub(crate) fn probes(
    connector: &Connector,
    listing: Option<&ThreadListing>,
) -> Vec<Box<dyn Probe>> {
    let connector = marked(connector, "SELECT pg_catalog.pg_backend_pid()", listing);
    vec![
        database::probe(Arc::clone(&connector)),
        activity::probe(Arc::clone(&connector)),
        tables::probe(Arc::clone(&connector)),
        Box::new(DebtProbe::new(super::debt::meter(connector))),
    ]
}

pub(crate) fn registered() -> Vec<Reading> {
    [database::registered(), activity::registered(), tables::registered()].concat()
}
