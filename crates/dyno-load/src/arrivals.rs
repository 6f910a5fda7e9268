//! Arrivals that are due now or later: those of a worker, and those of one client.

use dyno_model::Load;
use dyno_units::Nanoseconds;

use crate::StepSpec;
use crate::load::{ArrivalSource, ClientPlan};
use crate::schedule::{Course, Schedule, Slice};

/// An arrival this late is missed: no user waits longer, and a recovering server is not flooded.
pub(crate) const BACKLOG_LIMIT: Nanoseconds = Nanoseconds::from_secs(60);

pub(crate) struct ArrivalQueue {
    /// The next arrival to be sent. Those from it to now wait; nothing is stored for them.
    pub(crate) to_send: Schedule,
    pub(crate) to_count: Schedule,
}

impl ArrivalQueue {
    fn new(schedule: Schedule) -> ArrivalQueue {
        ArrivalQueue { to_count: schedule.clone(), to_send: schedule }
    }

    pub(crate) fn shared(spec: &StepSpec, began: Nanoseconds, slice: Slice) -> Option<Self> {
        let seed = spec.seed.derive("schedule", 0);
        let schedule = match &spec.load {
            Load::Open { rate, arrivals, .. } => {
                Schedule::new(*arrivals, *rate, began, seed, slice)
            }
            Load::Stepped { rate, arrivals, .. } => {
                let course = Course { rate: rate.clone(), before: spec.warm_up };
                Schedule::stepped(*arrivals, course, began, seed, slice)
            }
            Load::Closed { .. } | Load::Roles(_) => return None,
        };
        Some(ArrivalQueue::new(schedule))
    }
}

/// The arrivals of a client with its own schedule. With a quota, there is one for each transaction
/// of the quota, and one more for each that was missed or abandoned.
pub(crate) struct OwnArrivals {
    queue: ArrivalQueue,
    // Due, and neither sent nor missed.
    n_waiting: u64,
    // How many more may become due.
    n_wanted: u64,
}

impl OwnArrivals {
    /// `None` if the client has no schedule of its own. Constant schedules of a role interleave.
    pub(crate) fn of(spec: &StepSpec, plan: &ClientPlan, began: Nanoseconds) -> Option<Self> {
        let ArrivalSource::Own { rate, arrivals } = plan.source else { return None };
        let seed = spec.seed.derive("schedule of step", spec.step as u64);
        let seed = seed.derive("role", plan.role as u64);
        let slice = Slice { index: plan.idx_in_role, count: plan.n_in_role };
        let whole_rate = rate * plan.n_in_role as f64;
        let schedule = Schedule::new(arrivals, whole_rate, began, seed, slice);
        let n_wanted = plan.quota.unwrap_or(u64::MAX);
        Some(OwnArrivals { queue: ArrivalQueue::new(schedule), n_waiting: 0, n_wanted })
    }

    pub(crate) fn count(&mut self, end: Nanoseconds) -> u64 {
        let mut n = 0;
        while self.queue.to_count.peek() < end && self.n_wanted > 0 {
            self.count_next();
            n += 1;
        }
        n
    }

    fn count_next(&mut self) {
        self.queue.to_count.take();
        self.n_waiting += 1;
        self.n_wanted -= 1;
    }

    /// Gives up arrivals due before `end`; returns how many were due at `counted_from` or later.
    pub(crate) fn give_up(&mut self, end: Nanoseconds, counted_from: Nanoseconds) -> u64 {
        let mut n_counted = 0;
        while self.queue.to_send.peek() < end && self.n_waiting > 0 {
            let due = self.queue.to_send.take();
            self.n_waiting -= 1;
            self.want_another();
            n_counted += u64::from(due >= counted_from);
        }
        n_counted
    }

    pub(crate) fn peek(&self) -> Nanoseconds {
        self.queue.to_send.peek()
    }

    /// The due time of the next arrival if it is due, and how many arrivals that counted.
    pub(crate) fn take(&mut self, now: Nanoseconds) -> Option<(Nanoseconds, u64)> {
        if self.peek() > now {
            return None;
        }
        // An arrival due at this moment was not counted before.
        let is_new = self.n_waiting == 0;
        if is_new {
            self.count_next();
        }
        self.n_waiting -= 1;
        Some((self.queue.to_send.take(), u64::from(is_new)))
    }

    pub(crate) fn want_another(&mut self) {
        self.n_wanted = self.n_wanted.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use dyno_model::{Pacing, Role};

    use super::*;
    use crate::fixture::closed;
    use crate::load::client_plan;

    const MS: fn(u64) -> Nanoseconds = Nanoseconds::from_millis;

    fn arrivals(clients: usize, client: usize, quota: Option<u64>) -> OwnArrivals {
        let pacing = Pacing::Constant { rate: 10.0 };
        let load =
            Load::Roles(vec![Role { name: "r".into(), clients, pacing, quota, kinds: Vec::new() }]);
        let spec = StepSpec { load, ..closed(1, 1) };
        let plan = client_plan(&spec.load, client);
        OwnArrivals::of(&spec, &plan, MS(1000)).expect("it has a schedule")
    }

    #[test]
    fn the_constant_schedules_of_a_role_interleave() {
        let first: Vec<u64> = (0..4).map(|idx| arrivals(4, idx, None).peek().0).collect();
        assert_eq!(first, [1_000_000_000, 1_025_000_000, 1_050_000_000, 1_075_000_000]);
        let mut mine = arrivals(4, 1, None);
        let due: Vec<_> = (0..3).filter_map(|_| mine.take(MS(9999))).map(|(due, _)| due).collect();
        assert_eq!(due, [MS(1025), MS(1125), MS(1225)]);
    }

    #[test]
    fn what_is_taken_is_counted_once() {
        let mut mine = arrivals(1, 0, None);
        assert_eq!(mine.take(MS(999)), None);
        assert_eq!(mine.take(MS(1000)), Some((MS(1000), 1)));
        assert_eq!(mine.count(MS(1350)), 3);
        assert_eq!(mine.take(MS(1350)), Some((MS(1100), 0)));
        assert_eq!(mine.count(MS(1400)), 0);
        assert_eq!(mine.count(MS(1401)), 1);
    }

    #[test]
    fn no_more_become_due_than_the_quota_takes() {
        let mut mine = arrivals(1, 0, Some(3));
        assert_eq!(mine.count(MS(5000)), 3);
        assert_eq!(mine.take(MS(5000)), Some((MS(1000), 0)));
        mine.want_another();
        assert_eq!(mine.count(MS(5000)), 1);
        // The two oldest are missed, one of them reported elsewhere.
        assert_eq!(mine.give_up(MS(1201), MS(1150)), 1);
        assert_eq!(mine.count(MS(5000)), 2);
        assert_eq!(mine.count(MS(5000)), 0);
    }
}
