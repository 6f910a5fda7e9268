//! A transaction's inputs, drawn before it begins (clauses 2.4.1 to 2.8.1); a retry uses the same.

use crate::prelude::*;
use crate::skew::{CounterSet, Counters, DrawnByClient, DrawnKeys, DrawnKinds, KeyBins};

use super::random::{NuRand, push_last_name};
use super::rows::LINES;
use super::settings::{DISTRICTS, Fault, KINDS, Settings};

pub(super) const LINES_MOST: usize = LINES.1 as usize;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) item: i64,
    pub(super) supply_w: i64,
    pub(super) quantity: i64,
}

/// An order. `lines[..n_lines]` are its lines.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NewOrder {
    pub(super) w: i64,
    pub(super) d: i64,
    pub(super) c: i64,
    pub(super) lines: [Line; LINES_MOST],
    pub(super) n_lines: usize,
    /// The last line has an unused item number: the order will be rolled back.
    pub(super) rolls_back: bool,
}

impl NewOrder {
    pub(super) fn lines(&self) -> &[Line] {
        &self.lines[..self.n_lines]
    }

    pub(super) fn is_all_local(&self) -> bool {
        self.lines().iter().all(|line| line.supply_w == self.w)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Customer {
    pub(super) w: i64,
    pub(super) d: i64,
    /// 0 if the name is what is known.
    pub(super) id: i64,
    pub(super) name: Vec<u8>,
}

impl Customer {
    pub(super) fn is_by_name(&self) -> bool {
        self.id == 0
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Inputs {
    pub(super) w: i64,
    pub(super) d: i64,
    pub(super) order: NewOrder,
    pub(super) customer: Customer,
    pub(super) cents: i64,
    pub(super) carrier: i64,
    pub(super) threshold: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terminal {
    pub(super) set: u64,
    pub(super) w: u64,
    /// Its district, counted from 1: that of stock-level.
    pub(super) d: u64,
}

impl Terminal {
    /// Clients are spread over sets one by one. Paced, ten clients of a set share a warehouse, as
    /// specified; otherwise they are spread over warehouses one by one.
    pub(super) fn of(settings: &Settings, client_idx: usize) -> Terminal {
        let client = client_idx as u64;
        let (set, nth) = (client % settings.sets, client / settings.sets);
        let (w, d) = if settings.mode == super::settings::Mode::Paced {
            (nth / DISTRICTS % settings.warehouses, nth % DISTRICTS)
        } else {
            (nth % settings.warehouses, nth / settings.warehouses % DISTRICTS)
        };
        Terminal { set, w: w + 1, d: d + 1 }
    }
}

pub(super) struct Source {
    terminal: Terminal,
    pub(super) settings: Settings,
    skews: [NuRand; 3],
    pub(super) drawing: Drawing,
}

impl Source {
    pub(super) fn new(
        settings: Settings,
        terminal: Terminal,
        skews: [NuRand; 3],
        drawing: Drawing,
    ) -> Source {
        Source { terminal, settings, skews, drawing }
    }

    pub(super) fn nothing() -> Inputs {
        let customer = Customer { name: Vec::with_capacity(32), ..Customer::default() };
        Inputs { customer, ..Inputs::default() }
    }

    fn home(&self, random: &mut RandomStream) -> u64 {
        match self.settings.has_home {
            true => self.terminal.w,
            false => 1 + random.below(self.settings.warehouses),
        }
    }

    fn district(random: &mut RandomStream) -> i64 {
        1 + random.below(DISTRICTS) as i64
    }

    fn other(&self, w: u64, random: &mut RandomStream) -> u64 {
        let other = 1 + random.below(self.settings.warehouses - 1);
        if other < w { other } else { other + 1 }
    }

    fn may_go_remote(&self) -> bool {
        self.settings.warehouses > 1 && !self.settings.has_fault(Fault::NeverRemote)
    }

    fn draw_key(&self, key: Key, random: &mut RandomStream) -> u64 {
        let skew = &self.skews[key as usize];
        let value = skew.draw(random);
        self.drawing.keys[key as usize].note(value - skew.low);
        value
    }

    pub(super) fn new_order(&mut self, into: &mut NewOrder, random: &mut RandomStream) {
        let w = self.home(random);
        into.w = w as i64;
        into.d = Source::district(random);
        into.c = self.draw_key(Key::Customer, random) as i64;
        into.n_lines = (LINES.0 + random.below(LINES.1 - LINES.0 + 1)) as usize;
        let rolls_back = random.below(100) == 0;
        into.rolls_back = rolls_back && !self.settings.has_fault(Fault::NeverRollsBack);
        self.drawing.add(Count::OrdersDrawn, 1);
        self.drawing.add(Count::LinesDrawn, into.n_lines as u64);
        for nth in 0..into.n_lines {
            let is_unused = into.rolls_back && nth + 1 == into.n_lines;
            let is_remote = random.below(100) == 0 && self.may_go_remote();
            let supply_w = if is_remote { self.other(w, random) } else { w };
            self.drawing.add(Count::RemoteLinesDrawn, is_remote.into());
            let item = match is_unused {
                true => self.settings.sizes.items + 1,
                false => self.draw_key(Key::Item, random),
            };
            let (item, supply_w) = (item as i64, supply_w as i64);
            into.lines[nth] = Line { item, supply_w, quantity: 1 + random.below(10) as i64 };
        }
        if self.settings.sorts_lines {
            let n_used = into.n_lines - usize::from(into.rolls_back);
            into.lines[..n_used].sort_unstable_by_key(|line| (line.supply_w, line.item));
        }
    }

    pub(super) fn payment(&mut self, into: &mut Inputs, random: &mut RandomStream) {
        let w = self.home(random);
        into.w = w as i64;
        into.d = Source::district(random);
        let is_remote = random.below(100) < 15 && self.may_go_remote();
        self.drawing.add(Count::PaymentsDrawn, 1);
        self.drawing.add(Count::RemotePaymentsDrawn, is_remote.into());
        (into.customer.w, into.customer.d) = if is_remote {
            (self.other(w, random) as i64, Source::district(random))
        } else {
            (into.w, into.d)
        };
        self.pick_customer(&mut into.customer, random);
        into.cents = 100 + random.below(499_901) as i64;
    }

    pub(super) fn order_status(&mut self, into: &mut Inputs, random: &mut RandomStream) {
        into.w = self.home(random) as i64;
        into.d = Source::district(random);
        (into.customer.w, into.customer.d) = (into.w, into.d);
        self.pick_customer(&mut into.customer, random);
    }

    pub(super) fn delivery(&mut self, into: &mut Inputs, random: &mut RandomStream) {
        into.w = self.home(random) as i64;
        into.carrier = 1 + random.below(10) as i64;
    }

    pub(super) fn stock_level(&mut self, into: &mut Inputs, random: &mut RandomStream) {
        into.w = self.home(random) as i64;
        into.d =
            if self.settings.has_home { self.terminal.d as i64 } else { Source::district(random) };
        into.threshold = 10 + random.below(11) as i64;
    }

    /// By last name in 60 of 100 cases.
    fn pick_customer(&mut self, into: &mut Customer, random: &mut RandomStream) {
        let is_by_name = random.below(100) < 60 && !self.settings.has_fault(Fault::NeverByName);
        self.drawing.add(Count::CustomersPicked, 1);
        into.name.clear();
        if is_by_name {
            self.drawing.add(Count::PickedByName, 1);
            push_last_name(&mut into.name, self.draw_key(Key::LastName, random));
            into.id = 0;
        } else {
            into.id = self.draw_key(Key::Customer, random) as i64;
        }
    }
}

// Clients' own counters, for the audit.

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
