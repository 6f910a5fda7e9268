//! The debt meter as a probe: the parts, and one gauge for all engines.

use std::collections::BTreeSet;

use dyno_host::{Probe, Readings};
use dyno_units::Nanoseconds;
use dyno_units::reading::prelude::*;

use crate::DebtMeter;

#[rustfmt::skip]
pub(crate) const READINGS: &[Reading] = &[
    reading("debt.gauge", Number, "deferred work", "deferred work: the largest part relative to its caught-up level; 1 or less means caught up").topic(Topic::Debt).worse().role(Role::DebtGauge).row(510),
    reading("debt.history_list_length", Count, "history list length", "InnoDB: undo logs not yet purged").topic(Topic::Debt).worse().up(StallCause::Purge),
    reading("debt.dirty_pages_percent", Percent, "dirty pages", "InnoDB: pages to flush, as a share of those in the buffer pool").topic(Topic::Debt).worse(),
    reading("debt.checkpoint_age_percent", Percent, "checkpoint age", "InnoDB: redo since the checkpoint, as a share of its limit").topic(Topic::Debt).worse().moves(StallCause::CheckpointLimit, Movement::From(85)),
    reading("debt.pending_compaction_bytes", Bytes, "pending compaction", "RocksDB: bytes that wait for compaction").topic(Topic::Debt).worse().up(StallCause::Compaction),
    reading("debt.memtable_bytes", Bytes, "memtable", "RocksDB: bytes in memtables, not yet flushed").topic(Topic::Debt).worse(),
    reading("debt.l0_files", Count, "level 0 files", "RocksDB: files of level 0, in the column family with most").topic(Topic::Debt).worse().up(StallCause::Compaction),
    reading("debt.dead_tuples", Count, "dead rows", "PostgreSQL: dead row versions in the tables of this database").topic(Topic::Debt).worse(),
    reading("debt.horizon_age", Unit::other("transactions"), "horizon age", "PostgreSQL: age of the oldest row version that is still needed").topic(Topic::Debt).worse(),
    reading("debt.checkpoint_distance", Bytes, "checkpoint distance", "PostgreSQL: WAL since the last checkpoint began").topic(Topic::Debt).worse(),
    reading("debt.wal_frames", Count, "WAL frames", "SQLite: frames of the WAL that are not yet in the database").topic(Topic::Debt).worse(),
];

pub(crate) const DEBT: &str = "debt";

/// Pause before a meter that could not be read is read again.
const PAUSE: Nanoseconds = Nanoseconds::from_secs(5);

pub(crate) struct DebtProbe {
    meter: Box<dyn DebtMeter>,
    not_before: Nanoseconds,
    reported: BTreeSet<String>,
    notes: Vec<String>,
}

impl DebtProbe {
    pub(crate) fn new(meter: Box<dyn DebtMeter>) -> DebtProbe {
        DebtProbe {
            meter,
            not_before: Nanoseconds::ZERO,
            reported: BTreeSet::new(),
            notes: Vec::new(),
        }
    }
}

impl Probe for DebtProbe {
    fn registered(&self) -> Cow<'static, [Reading]> {
        READINGS.into()
    }

    fn read(&mut self, now: Nanoseconds, readings: &mut Readings) {
        if now < self.not_before {
            return;
        }
        let debt = match self.meter.read() {
            Ok(debt) => debt,
            Err(why) => {
                self.not_before = now + PAUSE;
                if self.reported.insert(why.clone()) {
                    self.notes.push(format!("the backlog cannot be read: {why}"));
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
