//! Clients' own counters, for the audit.

use std::sync::Arc;

use crate::skew::{CounterSet, Counters, DrawnByClient, DrawnKeys, KeyBins};

use super::KINDS;
use super::random::NuRand;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    OrdersDrawn,
    LinesDrawn,
    /// Those of them that another warehouse was to supply.
    RemoteLinesDrawn,
    PaymentsDrawn,
    /// Those of them by a customer of another warehouse.
    RemotePaymentsDrawn,
    /// Customers that a payment or an order-status was to find.
    CustomersPicked,
    PickedByName,
    /// Districts that a delivery found without a new order.
    EmptyDistricts,
    /// The first of as many as there are kinds: transactions that succeeded.
    Done,
}

/// Counters per kind: done, statements, round trips, rows received.
const PER_KIND: usize = 4;

const N_COUNTS: usize = Count::Done as usize + PER_KIND * KINDS.len();

#[derive(Debug)]
pub(super) struct Counts {
    pub(super) counters: CounterSet,
    pub(super) items: Arc<DrawnKeys>,
    pub(super) customers: Arc<DrawnKeys>,
    pub(super) names: Arc<DrawnKeys>,
}

pub(super) struct Drawing {
    counters: Arc<Counters>,
    pub(super) items: DrawnByClient,
    pub(super) customers: DrawnByClient,
    pub(super) names: DrawnByClient,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OfKind {
    pub(super) done: u64,
    pub(super) statements: u64,
    pub(super) round_trips: u64,
    pub(super) rows: u64,
}

impl Counts {
    /// For keys with these distributions; `names` has a key for each last name.
    pub(super) fn new([item, customer, name]: &[NuRand; 3]) -> Counts {
        let keys = |nurand: &NuRand| DrawnKeys::new(KeyBins::hottest_first(&nurand.shares()));
        Counts {
            counters: CounterSet::new(N_COUNTS),
            items: keys(item),
            customers: keys(customer),
            names: keys(name),
        }
    }

    pub(super) fn client(&self) -> Drawing {
        Drawing {
            counters: self.counters.client(),
            items: self.items.client(),
            customers: self.customers.client(),
            names: self.names.client(),
        }
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

    pub(super) fn of_kind(&self, kind: usize) -> OfKind {
        let first = Count::Done as usize + PER_KIND * kind;
        let [done, statements, round_trips, rows] = [0, 1, 2, 3].map(|idx| self.0[first + idx]);
        OfKind { done, statements, round_trips, rows }
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
