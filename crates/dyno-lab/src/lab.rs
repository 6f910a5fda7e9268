//! What trials are run with, and what is to be run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use dyno_database::{Place, Products};
use dyno_host::Keeper;
use dyno_load::AbortFlag;
use dyno_record::{Environment, Manifest, Run};
use dyno_study::{Design, Plan, UserProbe};
use dyno_units::{ByteCount, Clock, Nanoseconds};
use dyno_workload::Dialect;
use dyno_workload::catalog::Catalog;

use crate::datasets::Limits;
use crate::hosts::HeldHosts;
use crate::stopping::Decide;

pub struct Lab {
    pub clock: Arc<dyn Clock>,
    pub keeper: Arc<Keeper>,
    pub products: Products,
    pub abort: AbortFlag,
    pub environment: Environment,
    pub calibration: Option<Calibration>,
    pub data_sets: Limits,
    pub catalog: Catalog,
    /// Dyno's own file, which is started as an agent on this machine; none where that is not known.
    pub program: Option<PathBuf>,
    /// Measure the host's speed before and after each trial; of no use if the record is not kept.
    pub checks_host: bool,
    /// Devices that the user has named as ones that may be formatted.
    pub format_devices: Vec<PathBuf>,
    pub hosts: HeldHosts,
}

impl Lab {
    /// The host's memory that may be used, of which settings may ask a share.
    pub(crate) fn memory(&self) -> ByteCount {
        ByteCount(self.environment.usable_memory_bytes())
    }

    pub(crate) fn basis<'a>(&'a self, design: &'a Design) -> Basis<'a> {
        Basis { products: &self.products, design, memory: self.memory() }
    }

    /// Where the files of its servers live without a volume.
    pub(crate) fn place(&self) -> Place {
        Place::under(&self.keeper)
    }

    /// Sleeps unless the user wants to stop.
    pub(crate) fn sleep(&self, length: Nanoseconds) {
        let until = self.clock.now() + length;
        while self.clock.now() < until && !self.abort.is_raised() {
            let slice = self.clock.now() + Nanoseconds::from_millis(100);
            self.clock.sleep_until(slice.min(until));
        }
    }
}

/// What the members of a trial are planned with. Nothing is started for it.
#[derive(Clone, Copy)]
pub(crate) struct Basis<'a> {
    pub(crate) products: &'a Products,
    pub(crate) design: &'a Design,
    pub(crate) memory: ByteCount,
}

/// Void blocks of the run so far, with reasons. The lab does not know the rule.
pub type Void<'a> = &'a dyn Fn(&Run) -> Vec<(u32, Vec<String>)>;

pub struct RunOrder<'a> {
    pub plan: &'a Plan,
    pub design: &'a Design,
    pub manifest: &'a Manifest,
    pub probes: &'a [UserProbe],
    /// Who says which variants need no more repetitions, where the plan wants that.
    pub decide: Option<Decide<'a>>,
    pub text: Option<&'a StudyText>,
    /// Whether trials that have failed are done again; what they left is kept.
    pub retry_failed: bool,
    /// Who says which blocks are void, where the plan wants that.
    pub void: Option<Void<'a>>,
    /// Who watches, where somebody looks on while nothing is sent.
    pub watching: Option<Watching>,
    /// The run directory; holds an earlier part of the same run, or nothing yet.
    pub folder: PathBuf,
}

/// A study as it goes to hosts, which read it again.
#[derive(Clone, Debug, Default)]
pub struct StudyText {
    pub source: String,
    /// The texts of the files that it names, by their names there.
    pub files: BTreeMap<String, String>,
    pub fetch: bool,
}

#[derive(Clone, Debug)]
pub struct Watching {
    /// Raised when the observation is to end, in order: as if its time were over.
    pub end: AbortFlag,
    /// Whether the readings are kept in the record, and not only told.
    pub keeps_readings: bool,
}

/// What one worker can do on this machine, against a server that answers at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calibration {
    /// One for each protocol and number of clients.
    pub rates: Vec<CalibratedRate>,
    /// Others took the worker's CPU meanwhile: its capacity is higher, and shares are lower.
    pub is_disturbed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CalibratedRate {
    pub dialect: Dialect,
    pub clients: u32,
    pub statements_per_s: f64,
}

impl Calibration {
    /// Share of its capacity used by a worker with `clients` clients at `statements_per_s`, by the
    /// calibrated number of clients nearest in ratio; none without a calibration for this dialect.
    pub fn share(&self, dialect: Dialect, clients: f64, statements_per_s: f64) -> Option<f64> {
        let distance = |rate: &&CalibratedRate| (f64::from(rate.clients) / clients).ln().abs();
        let known = |rate: &&CalibratedRate| rate.dialect == dialect && rate.statements_per_s > 0.0;
        let known = self.rates.iter().filter(known);
        let nearest = known.min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
        Some(statements_per_s / nearest.statements_per_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_number_of_clients_counts() {
        let rate = |clients, statements_per_s| CalibratedRate {
            dialect: Dialect::MySql,
            clients,
            statements_per_s,
        };
        let rates = vec![rate(1, 100.0), rate(16, 1000.0), rate(64, 2000.0)];
        let calibration = Calibration { rates, is_disturbed: false };
        let check = |clients: f64, expected: f64| {
            assert_eq!(calibration.share(Dialect::MySql, clients, 50.0), Some(expected));
        };
        check(1.0, 0.5);
        check(3.0, 0.5);
        check(5.0, 0.05);
        check(31.0, 0.05);
        check(33.0, 0.025);
        check(4000.0, 0.025);
        assert_eq!(calibration.share(Dialect::PostgreSql, 1.0, 50.0), None);
        assert_eq!(Calibration::default().share(Dialect::MySql, 1.0, 50.0), None);
    }
}
