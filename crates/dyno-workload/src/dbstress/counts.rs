//! What each client did, as it counted itself: one side of the audit's comparison.
//!
//! A client adds to its own counters, without waiting; the audit sums them when the
//! load has ended. The same client of a later step with as many clients goes on with the same
//! counters.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::StatementError;

use super::own::Own;
use super::settings::HISTORY;

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

/// Replies and rows of each line.
pub(super) type Lines = [(u64, u64); LINES];

/// Attempts at a write. Those that neither committed nor failed were dropped by the load generator
/// when the step was long over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Writes {
    pub(super) begun: u64,
    pub(super) done: u64,
    pub(super) failed: u64,
    /// Of those that failed, the ones whose connection was lost.
    pub(super) lost: u64,
}

impl Writes {
    /// Those that may have stopped half-way.
    pub(super) fn given_up(&self) -> u64 {
        self.begun - self.done
    }

    /// Those of which a statement may have been executed without a confirmed reply.
    pub(super) fn unknown(&self) -> u64 {
        self.begun - self.done - self.failed + self.lost
    }
}

#[derive(Debug)]
pub(super) struct ClientCounts {
    n_own: u64,
    drawn: [AtomicU64; BINS],
    horders: [AtomicU64; HISTORY as usize],
    foreign: AtomicU64,
    lines: [[AtomicU64; 2]; LINES],
    // Begun, done, failed, lost.
    writes: [AtomicU64; 4],
}

/// Adds where only one thread writes.
#[inline]
fn add(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed) + by, Ordering::Relaxed);
}

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl ClientCounts {
    fn new(own: Own) -> ClientCounts {
        ClientCounts {
            n_own: own.n(),
            drawn: std::array::from_fn(|_| AtomicU64::new(0)),
            horders: Default::default(),
            foreign: AtomicU64::new(0),
            lines: Default::default(),
            writes: Default::default(),
        }
    }

    /// The client drew the object at this place among those it draws; `is_own`: one of its own.
    #[inline]
    pub(super) fn drew(&self, place: u64, is_own: bool) {
        let bin = u128::from(place) * BINS as u128 / u128::from(self.n_own);
        add(&self.drawn[(bin as usize).min(BINS - 1)], 1);
        if !is_own {
            add(&self.foreign, 1);
        }
    }

    #[inline]
    pub(super) fn write_began(&self) {
        add(&self.writes[0], 1);
    }

    #[inline]
    pub(super) fn write_ended(&self, result: &Result<(), StatementError>) {
        match result {
            Ok(()) => add(&self.writes[1], 1),
            Err(error) => {
                add(&self.writes[2], 1);
                add(&self.writes[3], u64::from(error.class.loses_connection()));
            }
        }
    }

    #[inline]
    pub(super) fn drew_horder(&self, horder: u64) {
        add(&self.horders[horder as usize], 1);
    }

    #[inline]
    pub(super) fn replied(&self, line: Line, n: u64, rows: u64) {
        let [replies, reported] = &self.lines[line as usize];
        add(replies, n);
        add(reported, rows);
    }
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    // By the client's number and how many there were.
    clients: Mutex<BTreeMap<(u64, u64), Arc<ClientCounts>>>,
    lives: AtomicU64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    /// Clients that began, of all steps.
    pub(super) lives: u64,
    /// The most that there were at a time.
    pub(super) clients_most: u64,
    /// Objects drawn, by bin, and how many were expected to fall into it: the places that it has
    /// among each client's own, weighted by how much that client drew.
    pub(super) drawn: Vec<u64>,
    pub(super) expected: Vec<f64>,
    /// Places in an object's history.
    pub(super) horders: Vec<u64>,
    /// Objects drawn that were not the client's own.
    pub(super) foreign: u64,
    pub(super) writes: Writes,
    pub(super) lines: Lines,
}

impl Counts {
    /// The counters of client `place.0` of `place.1`. Locks and allocates: for its beginning.
    pub(super) fn client(&self, place: (u64, u64), own: Own) -> Arc<ClientCounts> {
        self.lives.fetch_add(1, Ordering::Relaxed);
        let mut clients = self.clients.lock().expect("no thread panics while it holds the lock");
        let counts = clients.entry(place).or_insert_with(|| Arc::new(ClientCounts::new(own)));
        Arc::clone(counts)
    }

    pub(super) fn sums(&self) -> Sums {
        let mut sums = Sums {
            lives: get(&self.lives),
            drawn: vec![0; BINS],
            expected: vec![0.0; BINS],
            horders: vec![0; HISTORY as usize],
            ..Sums::default()
        };
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
        let n: u64 = client.drawn.iter().map(get).sum();
        // Bin b begins with the first place whose product reaches b whole times the objects.
        let start =
            |bin: usize| (bin as u128 * u128::from(client.n_own)).div_ceil(BINS as u128) as u64;
        for (bin, counter) in client.drawn.iter().enumerate() {
            self.drawn[bin] += get(counter);
            let within = start(bin + 1) - start(bin);
            self.expected[bin] += n as f64 * within as f64 / client.n_own as f64;
        }
        for (sum, counter) in self.horders.iter_mut().zip(&client.horders) {
            *sum += get(counter);
        }
        self.foreign += get(&client.foreign);
        let [begun, done, failed, lost] = client.writes.each_ref().map(get);
        self.writes.begun += begun;
        self.writes.done += done;
        self.writes.failed += failed;
        self.writes.lost += lost;
        for (sum, [replies, rows]) in self.lines.iter_mut().zip(&client.lines) {
            sum.0 += get(replies);
            sum.1 += get(rows);
        }
    }

    /// Replies to this line's statement, and the rows they reported.
    pub(super) fn line(&self, line: Line) -> (u64, u64) {
        self.lines[line as usize]
    }
}
