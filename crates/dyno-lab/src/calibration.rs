//! The measured capacity of a worker of the load generator on this machine: each step reports its
//! share.

use dyno_workload::Dialect;

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
