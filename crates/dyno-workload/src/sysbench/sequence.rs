//! Ids for inserted rows: no two clients use the same one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Gives each client an arithmetic sequence: `start + offset`, then every `stride`-th number.
///
/// Clients of a step interleave and share nothing. A client that ends notes its last number, and
/// clients of a later step begin above all: ids depend on clients' indexes and numbers of inserts,
/// never on timing within a step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sequences {
    // All numbers below this one may be taken.
    n_taken: Arc<AtomicU64>,
}

impl Sequences {
    /// The sequence of member `offset` of `stride` members. `offset` must be below `stride`.
    pub(crate) fn member(&self, offset: u64, stride: u64) -> Sequence {
        assert!(offset < stride, "member {offset} of {stride}");
        // Keeps residues apart even if a member starts after another has ended.
        let start = self.n_taken.load(Ordering::Relaxed).next_multiple_of(stride);
        Sequence { next: start + offset, stride, n_taken: Arc::clone(&self.n_taken) }
    }
}

#[derive(Debug)]
pub(crate) struct Sequence {
    next: u64,
    stride: u64,
    n_taken: Arc<AtomicU64>,
}

impl Sequence {
    pub(crate) fn take(&mut self) -> u64 {
        let number = self.next;
        self.next += self.stride;
        number
    }
}

impl Drop for Sequence {
    fn drop(&mut self) {
        self.n_taken.fetch_max(self.next, Ordering::Relaxed);
    }
}

/// Scatters numbers over all 32-bit ids without a repeat, as sysbench's `unique` (there: quadratic
/// residues; here: MurmurHash3's finalizer, a bijection). Repeats above 2³².
pub(crate) fn scattered_id(number: u64) -> i64 {
    let mut id = number as u32;
    id = (id ^ (id >> 16)).wrapping_mul(0x85eb_ca6b);
    id = (id ^ (id >> 13)).wrapping_mul(0xc2b2_ae35);
    i64::from((id ^ (id >> 16)) as i32)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn members_interleave_and_later_steps_begin_above() {
        let sequences = Sequences::default();
        let mut members: Vec<Sequence> = (0..3).map(|idx| sequences.member(idx, 3)).collect();
        let taken: Vec<u64> = (0..2).flat_map(|_| [0, 1, 2]).map(|m| members[m].take()).collect();
        assert_eq!(taken, [0, 1, 2, 3, 4, 5]);
        drop(members);
        assert_eq!(sequences.member(0, 1).take(), 8);
        let mut late = sequences.member(1, 4);
        assert_eq!((late.take(), late.take()), (13, 17));
    }

    #[test]
    fn a_member_that_starts_late_keeps_its_residue() {
        let sequences = Sequences::default();
        let mut first = sequences.member(0, 3);
        let mut slow = sequences.member(1, 3);
        let mut seen: HashSet<u64> = (0..50).map(|_| first.take()).collect();
        drop(first);
        let mut late = sequences.member(2, 3);
        for _ in 0..100 {
            assert!(seen.insert(slow.take()));
            assert!(seen.insert(late.take()));
        }
    }

    #[test]
    fn scattered_ids_do_not_repeat() {
        let ids: HashSet<i64> = (0..200_000).map(scattered_id).collect();
        assert_eq!(ids.len(), 200_000);
        let n_negative = ids.iter().filter(|id| **id < 0).count();
        assert!((95_000..105_000).contains(&n_negative), "{n_negative}");
    }
}
