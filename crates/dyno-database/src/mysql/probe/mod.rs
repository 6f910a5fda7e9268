//! Probes of MariaDB and MySQL: global status, InnoDB, RocksDB; each has its own connection.

pub(in crate::mysql) mod innodb;
mod innodb_text;
mod pattern;
mod progress;
pub(in crate::mysql) mod rocksdb;
mod rocksdb_text;
mod status;
mod threads;

use std::sync::Arc;

use dyno_host::{Probe, ThreadListing};
use dyno_units::Reading;
use dyno_workload::Connector;

pub use innodb_text::parse_innodb_status;
pub(in crate::mysql) use rocksdb_text::pending_compaction_bytes;
pub use rocksdb_text::{Level, RocksDbStatus, parse_rocksdb_status};

use crate::probe::{DebtProbe, marked};

pub(crate) fn probes(
    connector: &Connector,
    listing: Option<&ThreadListing>,
) -> Vec<Box<dyn Probe>> {
    let connector = marked(connector, "SELECT CONNECTION_ID()", listing);
    let mut probes: Vec<Box<dyn Probe>> = vec![
        status::probe(Arc::clone(&connector)),
        innodb::probe(Arc::clone(&connector)),
        rocksdb::probe(Arc::clone(&connector)),
        Box::new(DebtProbe::new(super::debt::meter(Arc::clone(&connector)))),
    ];
    probes.extend(listing.map(|listing| threads::probe(&connector, listing)));
    probes
}

pub(crate) fn registered() -> Vec<Reading> {
    [status::registered(), innodb::registered(), rocksdb::registered(), threads::READINGS.to_vec()]
        .concat()
}
