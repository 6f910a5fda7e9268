//! How far commands that take long have come, as MariaDB's list of processes has it.

use dyno_host::Readings;
use dyno_units::Nanoseconds;
use dyno_units::reading::prelude::*;

use crate::probe::{Asker, cell, number};

#[rustfmt::skip]
pub(super) const READINGS: &[Reading] = &[
    reading("mysql.progress", Percent, "progress", "how much of a long command is done, all its stages taken as equally long, the mean of all that run; MariaDB alone reports it"),
];

/// MySQL's table has no such column.
const ASK_COLUMN: &str = "SELECT COUNT(*) FROM information_schema.COLUMNS \
     WHERE TABLE_SCHEMA = 'information_schema' AND TABLE_NAME = 'PROCESSLIST' \
     AND COLUMN_NAME = 'MAX_STAGE'";

const ASK: &str = "SELECT AVG(100 * (STAGE - 1 + PROGRESS / 100) / MAX_STAGE) \
     FROM information_schema.PROCESSLIST WHERE MAX_STAGE > 0";

/// Reads the list of processes of a server that reports progress.
#[derive(Default)]
pub(super) struct Progress {
    /// Whether it does; none before it was asked.
    is_known: Option<bool>,
}

impl Progress {
    pub(super) fn read(&mut self, asker: &mut Asker, now: Nanoseconds, readings: &mut Readings) {
        if self.is_known.is_none() {
            let rows = asker.rows(now, ASK_COLUMN);
            let found = rows.as_ref().and_then(|rows| number(cell(rows.first()?, 0)?));
            self.is_known = found.map(|n| n > 0.0);
        }
        if self.is_known != Some(true) {
            return;
        }
        let rows = asker.rows(now, ASK).unwrap_or_default();
        if let Some(percent) = rows.first().and_then(|row| number(cell(row, 0)?)) {
            readings.insert("mysql.progress".to_owned(), percent);
        }
    }
}
