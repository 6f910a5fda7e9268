//! The early end of a step: by the last client's quota, the end of all clients, or steadiness.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use dyno_units::Nanoseconds;

use crate::StepSpec;
use crate::load::n_with_quota;

#[derive(Debug)]
pub(crate) struct Finish {
    n_left: AtomicUsize,
    // When the latest quota so far was done.
    latest: AtomicU64,
    at: AtomicU64,
    is_planned: bool,
}

impl Finish {
    /// A step of fixed length ends earlier only if all clients do.
    pub(crate) fn of(spec: &StepSpec) -> Arc<Finish> {
        let n_with_quota = n_with_quota(&spec.load);
        let n_left = if n_with_quota > 0 { n_with_quota } else { spec.load.clients() };
        Arc::new(Finish {
            n_left: AtomicUsize::new(n_left),
            latest: AtomicU64::new(0),
            at: AtomicU64::new(u64::MAX),
            is_planned: n_with_quota > 0 || spec.until_steady.is_some(),
        })
    }

    pub(crate) fn is_planned(&self) -> bool {
        self.is_planned
    }

    pub(crate) fn end_at(&self, at: Nanoseconds) {
        self.at.fetch_min(at.0, Ordering::AcqRel);
    }

    /// The client's quota is done, or the client has ended. Called once for each client.
    pub(crate) fn client_done(&self, now: Nanoseconds) {
        self.latest.fetch_max(now.0, Ordering::AcqRel);
        // Clients may arrive here in another order than they finished.
        if self.n_left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.at.fetch_min(self.latest.load(Ordering::Acquire), Ordering::AcqRel);
        }
    }

    /// The end of the measurement phase; the end of time until it is known.
    #[inline]
    pub(crate) fn at(&self) -> Nanoseconds {
        Nanoseconds(self.at.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use dyno_model::Pacing;

    use super::*;
    use crate::fixture::{closed, role, roles};

    fn with_quota(clients: usize, quota: Option<u64>) -> StepSpec {
        roles(vec![role("r", clients, Pacing::Closed, quota)], 1)
    }

    #[test]
    fn the_finish_is_when_the_last_was_done_in_any_order() {
        let finish = Finish::of(&with_quota(3, Some(1)));
        assert!(finish.is_planned());
        for now in [5, 9, 7] {
            assert_eq!(finish.at(), Nanoseconds(u64::MAX));
            finish.client_done(Nanoseconds(now));
        }
        assert_eq!(finish.at(), Nanoseconds(9));
    }

    #[test]
    fn without_quotas_only_clients_that_all_end_are_a_finish() {
        for spec in [with_quota(2, None), closed(2, 1)] {
            let finish = Finish::of(&spec);
            assert!(!finish.is_planned());
            finish.client_done(Nanoseconds(5));
            assert_eq!(finish.at(), Nanoseconds(u64::MAX));
            finish.client_done(Nanoseconds(4));
            assert_eq!(finish.at(), Nanoseconds(5));
        }
        assert!(!Finish::of(&with_quota(0, Some(1))).is_planned());
    }

    #[test]
    fn what_is_to_become_steady_ends_when_it_is_said_to() {
        let steady = Some(Nanoseconds::from_secs(10));
        let spec = StepSpec { until_steady: steady, ..closed(1, 60) };
        let finish = Finish::of(&spec);
        assert_eq!(finish.at(), Nanoseconds(u64::MAX));
        finish.end_at(Nanoseconds(7));
        finish.end_at(Nanoseconds(9));
        assert_eq!(finish.at(), Nanoseconds(7));
    }
}
