//! Clients' own counters, for the audit.

use std::sync::Arc;

use crate::skew::{CounterSet, Counters, DrawnByClient, DrawnKeys, DrawnKinds, KeyBins};

use super::KINDS;
use super::random::NuRand;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    OrdersDrawn,
    LinesDrawn,
    RemoteLinesDrawn,
    PaymentsDrawn,
    RemotePaymentsDrawn,
    /// Customers that a payment or an order-status was to find.
    CustomersPicked,
    PickedByName,
    EmptyDistricts,
    /// The first of as many as there are kinds: transactions that succeeded.
    Done,
}

/// Counters per kind: done, statements, round trips, rows received.
const PER_KIND: usize = 4;

const N_COUNTS: usize = Count::Done as usize + PER_KIND * KINDS.len();

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Item,
    Customer,
    LastName,
}

#[derive(Debug)]
pub(super) struct Counts {
    counters: CounterSet,
    pub(super) keys: DrawnKinds<3>,
}

pub(super) struct Drawing {
    counters: Arc<Counters>,
    pub(super) keys: [DrawnByClient; 3],
}

impl Counts {
    pub(super) fn new([items, customers, names]: &[NuRand; 3]) -> Counts {
        let keys = |skew: &NuRand| DrawnKeys::new(KeyBins::hottest_first(&skew.shares()));
        let keys = DrawnKinds([
            ("skew of items", keys(items)),
            ("skew of customers by number", keys(customers)),
            ("skew of customers by last name", keys(names)),
        ]);
        Counts { counters: CounterSet::new(N_COUNTS), keys }
    }

    pub(super) fn client(&self) -> Drawing {
        Drawing { counters: self.counters.client(), keys: self.keys.client() }
    }

    pub(super) fn sums(&self) -> Sums {
        Sums(self.counters.sums())
    }
}

pub(super) struct Sums(Vec<u64>);

impl Sums {
    pub(super) fn of(&self, count: Count) -> u64 {
        self.0[count as usize]
    }

    /// Done, statements, round trips, rows received.
    pub(super) fn of_kind(&self, kind: usize) -> [u64; PER_KIND] {
        let first = Count::Done as usize + PER_KIND * kind;
        std::array::from_fn(|idx| self.0[first + idx])
    }
}

impl Drawing {
    #[inline]
    pub(super) fn add(&self, count: Count, by: u64) {
        self.counters.add(count as usize, by);
    }

    /// After success or a designed rollback; `counts`: statements, round trips, rows.
    #[inline]
    pub(super) fn done(&self, kind: usize, counts: [u64; PER_KIND - 1]) {
        let first = Count::Done as usize + PER_KIND * kind;
        self.counters.add(first, 1);
        for (idx, count) in (first + 1..).zip(counts) {
            self.counters.add(idx, count);
        }
    }
}
