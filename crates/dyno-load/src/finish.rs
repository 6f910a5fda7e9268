//! The end of a step that ends when something is done: how many clients are still at it, and when
//! the last of them was through.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use dyno_units::Nanoseconds;

use crate::Load;

/// When the last quota of a step was done; shared by its workers.
#[derive(Debug)]
pub(crate) struct Finish {
    n_left: AtomicUsize,
    // When the latest of the quotas that are done was.
    latest: AtomicU64,
    // Never, as long as some are not.
    at: AtomicU64,
}

impl Finish {
    /// The finish of a step with this load; none where nobody has a quota.
    pub(crate) fn of(load: &Load) -> Option<Arc<Finish>> {
        let n_left = load.n_with_quota();
        let finish = Finish {
            n_left: AtomicUsize::new(n_left),
            latest: AtomicU64::new(0),
            at: AtomicU64::new(u64::MAX),
        };
        (n_left > 0).then(|| Arc::new(finish))
    }

    /// One client's quota is done, since `now`. To be called once for each.
    pub(crate) fn client_done(&self, now: Nanoseconds) {
        self.latest.fetch_max(now.0, Ordering::AcqRel);
        // Clients may come here in another order than they were done in.
        if self.n_left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.at.store(self.latest.load(Ordering::Acquire), Ordering::Release);
        }
    }

    /// When all quotas were done: the end of the measure phase. The end of time until then.
    #[inline]
    pub(crate) fn at(&self) -> Nanoseconds {
        Nanoseconds(self.at.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use dyno_workload::{Pacing, Role};

    use super::*;

    fn load(clients: usize, quota: Option<u64>) -> Load {
        Load::Roles(vec![Role { name: "r", clients, pacing: Pacing::Closed, quota }])
    }

    #[test]
    fn the_finish_is_when_the_last_was_done_in_whatever_order_they_tell() {
        let finish = Finish::of(&load(3, Some(1))).expect("there are quotas");
        for now in [5, 9, 7] {
            assert_eq!(finish.at(), Nanoseconds(u64::MAX));
            finish.client_done(Nanoseconds(now));
        }
        assert_eq!(finish.at(), Nanoseconds(9));
    }

    #[test]
    fn without_quotas_there_is_none() {
        assert!(Finish::of(&load(3, None)).is_none());
        assert!(Finish::of(&load(0, Some(1))).is_none());
        assert!(Finish::of(&Load::Closed { clients: 1 }).is_none());
    }
}
