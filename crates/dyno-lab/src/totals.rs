//! What clients did, as an audit compares it with the tables.

use std::collections::BTreeMap;

use dyno_load::{GeneratorUse, Interval, KindInterval, OUTCOMES};
use dyno_record::GeneratorSummary;
use dyno_units::Nanoseconds;
use dyno_workload::{AuditTotals, ErrorClass, KindTotals};

/// What the clients of one of several independent servers did.
#[derive(Default)]
pub(crate) struct DoneThere {
    /// By their attempts.
    pub(crate) did: AuditTotals,
    /// What they have counted themselves.
    pub(crate) counts: Vec<u64>,
}

impl DoneThere {
    pub(crate) fn add(&mut self, other: &DoneThere) {
        self.did.add(&other.did);
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, n)| *sum += n);
    }
}

const COMMITTED: &str = "committed";

const ROLLED_BACK: &str = "rolled_back";

pub(crate) fn totals<T>(interval: &Interval<KindInterval<T>, T>) -> AuditTotals {
    AuditTotals {
        kinds: interval.kinds.iter().map(|kind| kind_totals(&kind.outcomes.0)).collect(),
        tally: interval.tally,
        in_flight: 0,
    }
}

pub(crate) fn generator(used: &GeneratorUse) -> GeneratorSummary {
    GeneratorSummary {
        workers: used.workers as u32,
        cpu_user_s: used.cpu_user.as_secs_f64(),
        cpu_system_s: used.cpu_system.as_secs_f64(),
        run_queue_s: used.run_queue.map(Nanoseconds::as_secs_f64),
        busiest_worker: used.busiest_worker,
        ..GeneratorSummary::default()
    }
}

/// The counts that are not zero, as the record has them.
pub(crate) fn outcomes(counts: [u64; OUTCOMES.len()]) -> BTreeMap<String, u64> {
    let counted = OUTCOMES.iter().zip(counts).filter(|(_, count)| *count > 0);
    counted.map(|(name, count)| ((*name).to_owned(), count)).collect()
}

fn kind_totals(outcomes: &[u64; OUTCOMES.len()]) -> KindTotals {
    let is_lost = |name: &str| {
        ErrorClass::ALL.iter().any(|class| class.loses_connection() && class.name() == name)
    };
    let count = |is_wanted: &dyn Fn(&str) -> bool| -> u64 {
        let outcomes = OUTCOMES.iter().zip(outcomes);
        outcomes.filter(|(name, _)| is_wanted(name)).map(|(_, count)| count).sum()
    };
    let committed = count(&|name| name == COMMITTED);
    let rolled_back = count(&|name| name == ROLLED_BACK);
    let lost = count(&is_lost);
    let undone = count(&|_| true) - committed - rolled_back - lost;
    KindTotals { committed, rolled_back, undone, lost }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_parted_by_what_is_known_of_them() {
        let outcomes = OUTCOMES.map(|name| match name {
            "committed" => 1000,
            "rolled_back" => 400,
            "disconnected" => 200,
            "timed_out" => 30,
            _ => 1,
        });
        let expected = KindTotals { committed: 1000, rolled_back: 400, undone: 5, lost: 230 };
        assert_eq!(kind_totals(&outcomes), expected);
    }
}
