//! The debt meter as a probe: the parts, and one gauge across engines.

use std::collections::BTreeSet;

use dyno_host::{Probe, ReadingLegend, Readings};
use dyno_units::Nanoseconds;

use super::legend;
use crate::DebtMeter;

pub(super) const LEGEND: &[ReadingLegend] = &[
    legend(
        "debt.gauge",
        "",
        "work put off, as the worst of its parts over what counts as paid: at or below 1 all is \
         paid",
    ),
    legend("debt.history_list_length", "1", "InnoDB: undo logs not yet purged"),
    legend("debt.dirty_pages_percent", "%", "InnoDB: pages to flush, of those in the buffer pool"),
    legend("debt.checkpoint_age_percent", "%", "InnoDB: redo since the checkpoint, of its limit"),
    legend("debt.pending_compaction_bytes", "bytes", "RocksDB: bytes that wait for compaction"),
    legend("debt.memtable_bytes", "bytes", "RocksDB: bytes in memtables, not yet flushed"),
    legend("debt.l0_files", "1", "RocksDB: files of level 0, in the column family with most"),
    legend("debt.dead_tuples", "1", "PostgreSQL: dead row versions in the tables of this catalog"),
    legend(
        "debt.horizon_age",
        "transactions",
        "PostgreSQL: age of the oldest row version that must be kept for somebody",
    ),
    legend("debt.checkpoint_distance", "bytes", "PostgreSQL: WAL since the last checkpoint began"),
    legend("debt.wal_frames", "1", "SQLite: frames of the WAL that are not yet in the database"),
];

/// How long a meter that could not be read is left alone.
const PAUSE: Nanoseconds = Nanoseconds::from_secs(5);

/// Reads a debt meter.
pub(crate) struct DebtProbe {
    meter: Box<dyn DebtMeter>,
    not_before: Nanoseconds,
    told: BTreeSet<String>,
    notes: Vec<String>,
}

impl DebtProbe {
    pub(crate) fn new(meter: Box<dyn DebtMeter>) -> DebtProbe {
        DebtProbe { meter, not_before: Nanoseconds::ZERO, told: BTreeSet::new(), notes: Vec::new() }
    }
}

impl Probe for DebtProbe {
    fn legend(&self) -> &'static [ReadingLegend] {
        LEGEND
    }

    fn read(&mut self, now: Nanoseconds, readings: &mut Readings) {
        if now < self.not_before {
            return;
        }
        let debt = match self.meter.read() {
            Ok(debt) => debt,
            Err(why) => {
                self.not_before = now + PAUSE;
                if self.told.insert(why.clone()) {
                    self.notes.push(format!("the debt cannot be read: {why}"));
                }
                return;
            }
        };
        if let Some(gauge) = debt.gauge() {
            readings.insert("debt.gauge".to_owned(), gauge);
        }
        for part in debt.parts {
            readings.insert(part.reading.to_owned(), part.value);
        }
    }

    fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }
}
