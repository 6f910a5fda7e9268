//! Progress of long commands: from MariaDB's process list, or the stages that InnoDB reports to MySQL's
//! performance schema.

use dyno_host::Readings;
use dyno_units::Nanoseconds;
use dyno_units::reading::prelude::*;

use crate::probe::{Asker, cell, number};

#[rustfmt::skip]
pub(super) const READINGS: &[Reading] = &[
    reading("mysql.progress", Percent, "progress", "progress of long commands, averaged over all that are running: from MariaDB's list of processes, with all stages counted as equally long, or from the work that InnoDB estimates for ALTER TABLE in MySQL"),
];

/// MySQL's process list has no such column; a server without current stages has nothing to read.
const ASK_SOURCE: &str = "SELECT (SELECT COUNT(*) FROM information_schema.COLUMNS \
     WHERE TABLE_SCHEMA = 'information_schema' AND TABLE_NAME = 'PROCESSLIST' \
     AND COLUMN_NAME = 'MAX_STAGE'), \
     (SELECT COUNT(*) FROM information_schema.COLUMNS \
     WHERE TABLE_SCHEMA = 'performance_schema' AND TABLE_NAME = 'events_stages_current' \
     AND COLUMN_NAME = 'WORK_ESTIMATED')";

const ASK_PROCESSES: &str = "SELECT AVG(100 * (STAGE - 1 + PROGRESS / 100) / MAX_STAGE) \
     FROM information_schema.PROCESSLIST WHERE MAX_STAGE > 0";

/// InnoDB counts the work of all stages of a command together, and may find more of it than it estimated.
const ASK_STAGES: &str = "SELECT AVG(100 * LEAST(WORK_COMPLETED / WORK_ESTIMATED, 1)) \
     FROM performance_schema.events_stages_current WHERE WORK_ESTIMATED > 0";

#[derive(Clone, Copy)]
enum Source {
    Processes,
    Stages,
    Nowhere,
}

#[derive(Default)]
pub(super) struct Progress {
    /// None before the server was asked.
    source: Option<Source>,
}

impl Progress {
    pub(super) fn read(&mut self, asker: &mut Asker, now: Nanoseconds, readings: &mut Readings) {
        if self.source.is_none() {
            self.source = asker.rows(now, ASK_SOURCE).and_then(|rows| source(rows.first()?));
        }
        let ask = match self.source {
            Some(Source::Processes) => ASK_PROCESSES,
            Some(Source::Stages) => ASK_STAGES,
            Some(Source::Nowhere) | None => return,
        };
        let rows = asker.rows(now, ask).unwrap_or_default();
        if let Some(percent) = rows.first().and_then(|row| number(cell(row, 0)?)) {
            readings.insert("mysql.progress".to_owned(), percent);
        }
    }
}

fn source(row: &[Option<String>]) -> Option<Source> {
    let has = |column: usize| Some(number(cell(row, column)?)? > 0.0);
    Some(match (has(0)?, has(1)?) {
        (true, _) => Source::Processes,
        (false, true) => Source::Stages,
        (false, false) => Source::Nowhere,
    })
}
