//! Progress of long commands: indexes, copies, vacuum, rewrites, base backups.

use dyno_host::Readings;
use dyno_units::Nanoseconds;
use dyno_units::reading::prelude::*;

use super::database::Version;
use crate::probe::{Asker, cell, number};

#[rustfmt::skip]
pub(super) const READINGS: &[Reading] = &[
    reading("pg.progress.*", Percent, "progress", "progress of this command in its current phase, averaged over all that are running, from pg_stat_progress_*; a command has several phases").topic(Topic::Instance),
    reading("pg.copied_rows", Count, "rows copied", "rows that the running COPY commands have processed"),
];

/// The version from which on all of these views are there.
const SINCE: u32 = 140_000;

/// Command, share of its phase that is done, and rows of COPY. A phase without a known end has no share.
const ASK: &str = "\
     WITH p(what, done, total, tuples) AS ( \
     SELECT 'create_index', CASE WHEN tuples_total > 0 THEN tuples_done ELSE blocks_done END, \
     CASE WHEN tuples_total > 0 THEN tuples_total ELSE blocks_total END, NULL::bigint \
     FROM pg_catalog.pg_stat_progress_create_index \
     UNION ALL SELECT 'copy', bytes_processed, bytes_total, tuples_processed \
     FROM pg_catalog.pg_stat_progress_copy \
     UNION ALL SELECT 'vacuum', heap_blks_scanned, heap_blks_total, NULL \
     FROM pg_catalog.pg_stat_progress_vacuum \
     UNION ALL SELECT 'analyze', sample_blks_scanned, sample_blks_total, NULL \
     FROM pg_catalog.pg_stat_progress_analyze \
     UNION ALL SELECT 'rewrite', heap_blks_scanned, heap_blks_total, NULL \
     FROM pg_catalog.pg_stat_progress_cluster \
     UNION ALL SELECT 'base_backup', backup_streamed, backup_total, NULL \
     FROM pg_catalog.pg_stat_progress_basebackup) \
     SELECT what, avg(LEAST(100.0 * done / total, 100)) FILTER (WHERE total > 0), sum(tuples) \
     FROM p GROUP BY what";

#[derive(Default)]
pub(super) struct Progress {
    version: Version,
}

impl Progress {
    pub(super) fn read(&mut self, asker: &mut Asker, now: Nanoseconds, readings: &mut Readings) {
        if self.version.get(asker, now).is_none_or(|version| version < SINCE) {
            return;
        }
        for row in asker.rows(now, ASK).unwrap_or_default() {
            let Some(what) = cell(&row, 0) else { continue };
            if let Some(percent) = cell(&row, 1).and_then(number) {
                readings.insert(format!("pg.progress.{what}"), percent);
            }
            if let Some(rows) = cell(&row, 2).and_then(number) {
                readings.insert("pg.copied_rows".to_owned(), rows);
            }
        }
    }
}
