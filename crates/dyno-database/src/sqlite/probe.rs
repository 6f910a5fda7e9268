//! A probe of an SQLite database: file sizes, pages, checkpointed part of the WAL.
//!
//! Each connection has its own page cache, whose counters only its thread could read
//! (`sqlite3_db_status`, which rusqlite lacks in safe code). A cache miss is a read of the client's
//! thread, which the kernel counts. Files are not opened here: closing any descriptor drops all of
//! this process's locks on the file, SQLite's included.

use std::collections::BTreeMap;
use std::path::PathBuf;

use dyno_host::{Probe, Readings, ThreadIo, own_thread_io};
use dyno_units::Nanoseconds;
use dyno_units::reading::prelude::*;
use dyno_workload::Connector;

use super::debt::wal_frames;
use crate::probe::{Asker, DebtProbe, asking, cell, number};

#[rustfmt::skip]
pub(crate) const READINGS: &[Reading] = &[
    reading("sqlite.database_bytes", Bytes, "database file", "size of the database file"),
    reading("sqlite.wal_bytes", Bytes, "WAL file", "size of the WAL, which is reused from its beginning and shrinks only if truncated"),
    reading("sqlite.wal_growth_bytes_per_s", BytesPerSecond, "WAL growth", "growth of the WAL's file"),
    reading("sqlite.wal_frames", Count, "WAL frames", "frames in the WAL").up(StallCause::Checkpoint),
    reading("sqlite.wal_frames_pending", Count, "WAL frames to checkpoint", "frames of the WAL that are not yet in the database").worse().up(StallCause::Checkpoint),
    reading("sqlite.pages", Count, "pages", "pages of the database"),
    reading("sqlite.free_pages", Count, "free pages", "free pages in the database file"),
    reading("sqlite.pages_read_per_s", PerSecond, "pages read", "misses in SQLite's own page cache: bytes read from files by their threads, divided by the page size (not where mmap_size is set)"),
    reading("sqlite.pages_written_per_s", PerSecond, "pages written", "pages that the clients wrote, to database, journal and WAL: bytes written by their threads, divided by the page size"),
    reading("sqlite.file_reads_per_s", PerSecond, "file reads", "system calls by which the clients' threads read files"),
    reading("sqlite.file_writes_per_s", PerSecond, "file writes", "system calls by which the clients' threads wrote files"),
];

/// Prefix of the names of threads that work for clients: in SQLite they do the database's work.
const WORKERS: &str = "dyno-load";

pub(super) fn probes(
    path: PathBuf,
    page_bytes: Option<f64>,
    (connector, has_wal): (&Connector, bool),
) -> Vec<Box<dyn Probe>> {
    vec![
        Box::new(FilesProbe { path, page_bytes, wal_before: None, workers: None }),
        pages(connector.clone()),
        Box::new(DebtProbe::new(super::debt::meter(connector.clone(), has_wal))),
    ]
}

/// What is seen from outside, also while the database is locked.
struct FilesProbe {
    path: PathBuf,
    page_bytes: Option<f64>,
    wal_before: Option<(Nanoseconds, f64)>,
    workers: Option<(Nanoseconds, BTreeMap<i32, ThreadIo>)>,
}

impl FilesProbe {
    fn bytes(&self, suffix: &str) -> Option<f64> {
        let mut path = self.path.clone().into_os_string();
        path.push(suffix);
        Some(std::fs::metadata(path).ok()?.len() as f64)
    }

    fn read_workers(&mut self, now: Nanoseconds, readings: &mut Readings) {
        let workers = own_thread_io(WORKERS);
        if let (Some((at, before)), Some(page_bytes)) = (&self.workers, self.page_bytes)
            && let Some(rates) = rates((*at, before), (now, &workers), page_bytes)
        {
            readings.extend(rates.map(|(name, rate)| (format!("sqlite.{name}_per_s"), rate)));
        }
        self.workers = Some((now, workers));
    }
}

/// Sum of all threads per second; none if no time has passed, or no thread exists at both moments.
fn rates(
    (then, before): (Nanoseconds, &BTreeMap<i32, ThreadIo>),
    (now, workers): (Nanoseconds, &BTreeMap<i32, ThreadIo>),
    page_bytes: f64,
) -> Option<[(&'static str, f64); 4]> {
    let seconds = now.saturating_sub(then).as_secs_f64();
    let grown: Vec<ThreadIo> =
        workers.iter().filter_map(|(tid, io)| Some(io.since(*before.get(tid)?))).collect();
    if seconds <= 0.0 || grown.is_empty() {
        return None;
    }
    let sum = |of: fn(&ThreadIo) -> u64| grown.iter().map(of).sum::<u64>() as f64 / seconds;
    Some([
        ("pages_read", sum(|io| io.read_bytes) / page_bytes),
        ("pages_written", sum(|io| io.written_bytes) / page_bytes),
        ("file_reads", sum(|io| io.read_calls)),
        ("file_writes", sum(|io| io.write_calls)),
    ])
}

fn put(readings: &mut Readings, name: &str, value: Option<f64>) {
    if let Some(value) = value {
        readings.insert(format!("sqlite.{name}"), value);
    }
}

impl Probe for FilesProbe {
    fn registered(&self) -> Cow<'static, [Reading]> {
        READINGS.into()
    }

    fn read(&mut self, now: Nanoseconds, readings: &mut Readings) {
        self.read_workers(now, readings);
        put(readings, "database_bytes", self.bytes(""));
        // Without a WAL there is none to measure.
        let wal = self.bytes("-wal");
        put(readings, "wal_bytes", wal);
        if let (Some((at, before)), Some(wal)) = (self.wal_before, wal) {
            let seconds = now.saturating_sub(at).as_secs_f64();
            let growth = (seconds > 0.0).then(|| (wal - before).max(0.0) / seconds);
            put(readings, "wal_growth_bytes_per_s", growth);
        }
        self.wal_before = wal.map(|wal| (now, wal));
    }
}

/// What is read from the database; there is no answer while it is locked.
fn pages(connector: Connector) -> Box<dyn Probe> {
    let registered = || READINGS.to_vec();
    asking("sqlite_pages", registered(), Asker::new(connector), |asker, now, readings| {
        for (sql, name) in [("PRAGMA page_count", "pages"), ("PRAGMA freelist_count", "free_pages")]
        {
            let rows = asker.rows(now, sql);
            put(readings, name, rows.and_then(|rows| cell(rows.first()?, 0).and_then(number)));
        }
        if let Some(frames) = wal_frames(&mut |sql| asker.rows(now, sql)) {
            put(readings, "wal_frames", Some(frames.all));
            put(readings, "wal_frames_pending", Some(frames.pending));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_bytes_of_threads_that_were_there_before() {
        let io = |calls: u64, bytes: u64| ThreadIo {
            read_calls: calls,
            read_bytes: bytes,
            write_calls: 0,
            written_bytes: 0,
        };
        let before = BTreeMap::from([(1, io(10, 1_000)), (2, io(0, 0))]);
        // The third began since: what it did before its first read does not belong to this second.
        let after =
            BTreeMap::from([(1, io(14, 1_000 + 8_192)), (2, io(2, 8_192)), (3, io(99, 99_999))]);
        let at = Nanoseconds::from_secs;
        let found = rates((at(1), &before), (at(3), &after), 4096.0);
        let expected = [
            ("pages_read", 2.0),
            ("pages_written", 0.0),
            ("file_reads", 3.0),
            ("file_writes", 0.0),
        ];
        assert_eq!(found, Some(expected));
        assert_eq!(rates((at(1), &before), (at(1), &after), 4096.0), None);
        assert_eq!(rates((at(1), &BTreeMap::new()), (at(2), &after), 4096.0), None);
    }
}
