//! Server probes and debt meters against real servers: MariaDB with InnoDB and RocksDB,
//! PostgreSQL, SQLite.
//!
//! Time is the tests' own: what is read a second later is read at once, and rates are of that
//! second.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod debt;
mod explain;
mod mysql;
mod postgresql;
mod server;
mod sqlite;

use dyno_database::server_readings;
use dyno_host::{Probe, Readings};
use dyno_units::Nanoseconds;

/// Reads all probes once for each of these seconds; returns the readings of each.
fn read(probes: &mut [Box<dyn Probe>], seconds: impl IntoIterator<Item = u64>) -> Vec<Readings> {
    let read_at = |second: u64| {
        let mut readings = Readings::new();
        for probe in probes.iter_mut() {
            let before = readings.len();
            let mut own = Readings::new();
            probe.read(Nanoseconds::from_secs(second), &mut own);
            let n_own = own.len();
            check_reported(probe.as_ref(), &own);
            readings.append(&mut own);
            assert_eq!(readings.len(), before + n_own, "two probes give the same reading");
        }
        readings
    };
    seconds.into_iter().map(read_at).collect()
}

/// Every reading is a number and registered, by its own probe.
fn check_reported(probe: &dyn Probe, readings: &Readings) {
    let mut registry = server_readings();
    registry.extend(dyno_host::USER_READINGS);
    for (name, value) in readings {
        assert!(value.is_finite(), "{name} is {value}");
        assert!(registry.find(name).is_some(), "{name} is not registered");
        assert!(probe.registered().iter().any(|one| one.is_for(name)), "{name}: not its probe's");
    }
}

/// All of these are among the readings.
#[track_caller]
fn check_there(readings: &Readings, names: &[&str]) {
    let missing: Vec<_> = names.iter().filter(|name| !readings.contains_key(**name)).collect();
    assert!(missing.is_empty(), "missing: {missing:?}\nthere: {:?}", readings.keys());
}
