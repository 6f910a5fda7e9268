//! The clients' draws, and the check of the collection after the load.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::skew::{CounterSet, Counters, DrawnByClient, DrawnKeys, distance_row};
use crate::{AuditRow, AuditTotals, KindTotals, TextRows, number_in};

use super::settings::{Settings, What};

#[derive(Debug)]
pub(super) struct Counts {
    keys: Arc<DrawnKeys>,
    operations: CounterSet,
    /// Keys of documents that were to be inserted, those before the load not included.
    n_new: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Drawing {
    pub(super) keys: DrawnByClient,
    /// By the index of the operation.
    pub(super) operations: Arc<Counters>,
}

impl Counts {
    pub(super) fn new(settings: &Settings) -> Counts {
        Counts {
            keys: settings.keys.counted(),
            operations: CounterSet::new(settings.shares.len()),
            n_new: AtomicU64::new(0),
        }
    }

    pub(super) fn client(&self) -> Drawing {
        Drawing { keys: self.keys.client(), operations: self.operations.client() }
    }

    /// Takes the next key for an insert, counted from 0.
    pub(super) fn take_new(&self) -> u64 {
        self.n_new.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn audit(
        &self,
        settings: &Settings,
        totals: &AuditTotals,
        answers: &[TextRows],
    ) -> Vec<AuditRow> {
        let mut rows = vec![AuditRow::statements(1, totals)];
        let shares: Vec<f64> = settings.shares.iter().map(|(_, share)| *share).collect();
        rows.push(distance_row("operations drawn", &self.operations.sums(), &shares));
        if settings.shares.iter().any(|(what, _)| *what != What::Insert) {
            rows.push(self.keys.audit_row("keys drawn"));
        }
        rows.push(received(settings, totals));
        rows.extend(stored(settings, totals, answers.first(), self.n_new.load(Ordering::Relaxed)));
        rows
    }
}

/// The totals of an operation; all zero if it has no weight.
fn of(settings: &Settings, totals: &AuditTotals, wanted: What) -> KindTotals {
    let idx = settings.shares.iter().position(|(what, _)| *what == wanted);
    idx.and_then(|idx| totals.kinds.get(idx)).copied().unwrap_or_default()
}

/// Each key that is looked for is there, and each range is full.
fn received(settings: &Settings, totals: &AuditTotals) -> AuditRow {
    let (finds, ranges) = (of(settings, totals, What::Find), of(settings, totals, What::Range));
    let expected = i128::from(finds.committed)
        + i128::from(ranges.committed) * i128::from(settings.range_size);
    let name = format!("documents found: 1 per key, {} per range", settings.range_size);
    AuditRow::equal(name, expected, Some(totals.tally.rows_received.into()))
}

/// What was acknowledged is there.
fn stored(
    settings: &Settings,
    totals: &AuditTotals,
    answer: Option<&TextRows>,
    n_new: u64,
) -> [AuditRow; 3] {
    let number = |column| answer.and_then(|rows| number_in(rows, 0, column));
    let (inserts, updates) =
        (of(settings, totals, What::Insert), of(settings, totals, What::Update));
    // Those of unknown outcome may be of any kind.
    let unknown = |kind: &KindTotals| i128::from(kind.lost) + i128::from(totals.in_flight);
    let filled = i128::from(settings.documents);
    let inserted = i128::from(inserts.committed);
    let most = inserted + unknown(&inserts);
    let updated = i128::from(updates.committed);
    // The least and the largest sum of so many of the keys that were given out.
    let given_out = i128::from(n_new);
    let sum_from = |first: i128, n: i128| n * (2 * first + n - 1) / 2;
    let least_sum = sum_from(filled, inserted);
    let most_n = most.min(given_out);
    let most_sum = sum_from(filled + given_out - most_n, most_n);
    let of_filled = sum_from(0, filled);
    [
        AuditRow::between("documents", (filled + inserted, filled + most), number(0)),
        AuditRow::between(
            "updates, by the versions",
            (updated, updated + unknown(&updates)),
            number(1),
        ),
        AuditRow::between(
            "sum of the indexed numbers",
            (of_filled + least_sum, of_filled + most_sum),
            number(2),
        ),
    ]
}
