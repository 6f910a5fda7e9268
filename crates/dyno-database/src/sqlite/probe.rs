//! A probe of a SQLite database: the sizes of its files, its pages, and how far its WAL is
//! checkpointed.
//!
//! The page cache belongs to each connection, and only that connection's own thread could read its
//! counters (`sqlite3_db_status`, which rusqlite does not offer): they are not read. Nor are the
//! files opened here: closing any descriptor of a file drops all locks that this process has on it,
//! SQLite's among them.

use std::path::PathBuf;

use dyno_host::{Probe, ReadingLegend, Readings};
use dyno_units::Nanoseconds;
use dyno_workload::Connector;

use super::debt::wal_frames;
use crate::probe::{Asker, DebtProbe, cell, legend, number};

pub(crate) const LEGEND: &[ReadingLegend] = &[
    legend("sqlite.database_bytes", "bytes", "size of the database file"),
    legend(
        "sqlite.wal_bytes",
        "bytes",
        "size of the WAL, which is used anew from its beginning and shrinks only if truncated",
    ),
    legend("sqlite.wal_growth_bytes_per_s", "bytes/s", "growth of the WAL's file"),
    legend("sqlite.wal_frames", "1", "frames in the WAL"),
    legend("sqlite.wal_frames_pending", "1", "frames of the WAL that are not yet in the database"),
    legend("sqlite.pages", "1", "pages of the database"),
    legend("sqlite.free_pages", "1", "free pages in the database file"),
];

/// The probes of a database file that this connector opens.
pub(super) fn probes(path: PathBuf, connector: &Connector) -> Vec<Box<dyn Probe>> {
    let probe = SqliteProbe { path, asker: Asker::new(connector.clone()), wal_before: None };
    vec![Box::new(probe), Box::new(DebtProbe::new(super::debt::meter(connector.clone())))]
}

struct SqliteProbe {
    path: PathBuf,
    asker: Asker,
    wal_before: Option<(Nanoseconds, f64)>,
}

impl SqliteProbe {
    fn bytes(&self, suffix: &str) -> Option<f64> {
        let mut path = self.path.clone().into_os_string();
        path.push(suffix);
        Some(std::fs::metadata(path).ok()?.len() as f64)
    }
}

impl Probe for SqliteProbe {
    fn legend(&self) -> &'static [ReadingLegend] {
        LEGEND
    }

    fn read(&mut self, now: Nanoseconds, readings: &mut Readings) {
        let mut put = |name: &str, value: Option<f64>| {
            if let Some(value) = value {
                readings.insert(format!("sqlite.{name}"), value);
            }
        };
        put("database_bytes", self.bytes(""));
        // Without a WAL there is none to measure.
        let wal = self.bytes("-wal");
        put("wal_bytes", wal);
        if let (Some((at, before)), Some(wal)) = (self.wal_before, wal) {
            let seconds = now.saturating_sub(at).as_secs_f64();
            put(
                "wal_growth_bytes_per_s",
                (seconds > 0.0).then(|| (wal - before).max(0.0) / seconds),
            );
        }
        self.wal_before = wal.map(|wal| (now, wal));
        for (sql, name) in [("PRAGMA page_count", "pages"), ("PRAGMA freelist_count", "free_pages")]
        {
            let rows = self.asker.rows(now, sql);
            put(name, rows.and_then(|rows| cell(rows.first()?, 0).and_then(number)));
        }
        if let Some(frames) = wal_frames(&mut |sql| self.asker.rows(now, sql)) {
            put("wal_frames", Some(frames.all));
            put("wal_frames_pending", Some(frames.pending));
        }
    }
}
