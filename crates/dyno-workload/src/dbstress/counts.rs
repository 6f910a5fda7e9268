//! Each client's own counts, to compare in the audit. A client adds to them without waiting; the
//! audit sums them after the load. The same client of a later step with as many clients continues
//! them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::StatementError;
use crate::skew::Counters;

use super::HISTORY;
use super::own::Own;

/// Bins that the objects of a client are cut into, by their place among them.
const BINS: usize = 128;

/// What is counted of each statement, as index: its replies, and the rows they reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Sel1,
    Sel2,
    Delete,
    Insert,
    Update,
}

const LINES: usize = 5;

/// The counters of a client, in their order: objects drawn, by bin; …
const HORDERS: usize = BINS;
/// … places in an object's history; objects that were not its own; …
const FOREIGN: usize = HORDERS + HISTORY as usize;
/// … replies and rows of each line; …
const REPLIES: usize = FOREIGN + 1;
/// … and attempts at a write. Those that neither committed nor failed were dropped by the load
/// generator when the step was long over.
const BEGUN: usize = REPLIES + 2 * LINES;
const DONE: usize = BEGUN + 1;
const FAILED: usize = BEGUN + 2;
/// Of those that failed, the ones whose connection was lost.
const LOST: usize = BEGUN + 3;
const N_COUNTERS: usize = BEGUN + 4;

#[derive(Debug)]
pub(super) struct ClientCounts {
    n_own: u64,
    counters: Counters,
}

impl ClientCounts {
    /// The client drew the object at this place among those it draws; `is_own`: one of its own.
    #[inline]
    pub(super) fn drew(&self, place: u64, is_own: bool) {
        let bin = u128::from(place) * BINS as u128 / u128::from(self.n_own);
        self.counters.add((bin as usize).min(BINS - 1), 1);
        if !is_own {
            self.counters.add(FOREIGN, 1);
        }
    }

    #[inline]
    pub(super) fn write_began(&self) {
        self.counters.add(BEGUN, 1);
    }

    #[inline]
    pub(super) fn write_ended(&self, result: &Result<(), StatementError>) {
        match result {
            Ok(()) => self.counters.add(DONE, 1),
            Err(error) => {
                self.counters.add(FAILED, 1);
                self.counters.add(LOST, u64::from(error.class.loses_connection()));
            }
        }
    }

    #[inline]
    pub(super) fn drew_horder(&self, horder: u64) {
        self.counters.add(HORDERS + horder as usize, 1);
    }

    #[inline]
    pub(super) fn replied(&self, line: Line, n: u64, rows: u64) {
        let replies = REPLIES + 2 * line as usize;
        self.counters.add(replies, n);
        self.counters.add(replies + 1, rows);
    }
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    // By the client's number and how many there were.
    clients: Mutex<BTreeMap<(u64, u64), Arc<ClientCounts>>>,
    lives: AtomicU64,
}

#[derive(Clone, Debug)]
pub(super) struct Sums {
    pub(super) lives: u64,
    /// The most that there were at a time.
    pub(super) clients_most: u64,
    /// By bin, drawn and expected from each client's own objects and number of draws.
    pub(super) expected: Vec<f64>,
    counts: [u64; N_COUNTERS],
}

impl Counts {
    /// The counters of client `place.0` of `place.1`. Locks and allocates: for its beginning.
    pub(super) fn client(&self, place: (u64, u64), own: Own) -> Arc<ClientCounts> {
        self.lives.fetch_add(1, Ordering::Relaxed);
        let mut clients = self.clients.lock().expect("no thread panics while it holds the lock");
        let new = || ClientCounts { n_own: own.n(), counters: Counters::new(N_COUNTERS) };
        Arc::clone(clients.entry(place).or_insert_with(|| Arc::new(new())))
    }

    pub(super) fn sums(&self) -> Sums {
        let lives = self.lives.load(Ordering::Relaxed);
        let (expected, counts) = (vec![0.0; BINS], [0; N_COUNTERS]);
        let mut sums = Sums { lives, clients_most: 0, expected, counts };
        for (place, client) in
            self.clients.lock().expect("no thread panics while it holds the lock").iter()
        {
            sums.clients_most = sums.clients_most.max(place.1);
            sums.add(client);
        }
        sums
    }
}

impl Sums {
    fn add(&mut self, client: &ClientCounts) {
        let mut own = [0; BINS];
        client.counters.add_to(&mut own);
        client.counters.add_to(&mut self.counts);
        let n: u64 = own.iter().sum();
        // Bin b begins with the first place whose product reaches b whole times the objects.
        let start =
            |bin: usize| (bin as u128 * u128::from(client.n_own)).div_ceil(BINS as u128) as u64;
        for (bin, expected) in self.expected.iter_mut().enumerate() {
            let within = start(bin + 1) - start(bin);
            *expected += n as f64 * within as f64 / client.n_own as f64;
        }
    }

    pub(super) fn drawn(&self) -> &[u64] {
        &self.counts[..BINS]
    }

    pub(super) fn horders(&self) -> &[u64] {
        &self.counts[HORDERS..FOREIGN]
    }

    pub(super) fn foreign(&self) -> u64 {
        self.counts[FOREIGN]
    }

    /// Writes that may have stopped half-way.
    pub(super) fn given_up(&self) -> u64 {
        self.counts[BEGUN] - self.counts[DONE]
    }

    /// Writes of which a statement may have been executed without a confirmed reply.
    pub(super) fn unknown(&self) -> u64 {
        self.given_up() - self.counts[FAILED] + self.counts[LOST]
    }

    pub(super) fn line(&self, line: Line) -> (u64, u64) {
        let replies = REPLIES + 2 * line as usize;
        (self.counts[replies], self.counts[replies + 1])
    }
}
