//! Probes of PostgreSQL 12 to 18: catalog and server, sessions and waits, tables. What a version
//! lacks is a missing reading.

mod activity;
mod database;
pub(crate) mod pgbouncer;
mod progress;
mod tables;

use std::sync::Arc;

use dyno_host::{Probe, ThreadListing};
use dyno_units::{Nanoseconds, Reading};
use dyno_workload::Connector;

pub(in crate::postgresql) use activity::HORIZON;

use crate::probe::{Asker, DebtProbe, marked};

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

/// The server's version, asked once: 150018 is 15.18.
#[derive(Default)]
pub(super) struct Version(Option<u32>);

impl Version {
    pub(super) fn get(&mut self, asker: &mut Asker, now: Nanoseconds) -> Option<u32> {
        if self.0.is_none() {
            let rows = asker.rows(now, "SHOW server_version_num")?;
            self.0 = rows.into_iter().flatten().next().flatten()?.parse().ok();
        }
        self.0
    }
}
