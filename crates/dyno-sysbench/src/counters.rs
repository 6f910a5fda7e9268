//! What a client counts, and its script may count too.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A counter, by sysbench's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Statements that neither returned nor changed rows.
    Other = 0,
    Read = 1,
    Write = 2,
    Event = 3,
    Error = 4,
    Reconnect = 5,
}

/// The counters of a client. Each has one writer, and may be read at any time.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Counters([AtomicU64; 8]);

impl Counters {
    #[inline]
    pub fn add(&self, counter: Counter, n: u64) {
        self.add_at(counter as usize, n);
    }

    /// Adds to the counter of this number, if there is one.
    pub(crate) fn add_at(&self, counter: usize, n: u64) {
        if let Some(cell) = self.0.get(counter) {
            cell.store(cell.load(Relaxed).wrapping_add(n), Relaxed);
        }
    }

    pub fn get(&self, counter: Counter) -> u64 {
        self.get_at(counter as usize)
    }

    pub(crate) fn get_at(&self, counter: usize) -> u64 {
        self.0.get(counter).map_or(0, |cell| cell.load(Relaxed))
    }
}
