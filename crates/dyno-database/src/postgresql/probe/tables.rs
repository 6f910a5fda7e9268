//! Tables: dead row versions, vacuum, scans; totals each time, the worst tables less often.

use dyno_host::{Probe, reading_name};
use dyno_units::Nanoseconds;
use dyno_units::reading::prelude::*;
use dyno_workload::Connector;

use super::database::Version;
use crate::probe::{Asker, Every, Item, Table, all_of, asking, cell, gauge, number, rate};

#[rustfmt::skip]
const TOTALS: &[Item] = &[
    gauge("live", reading("pg.live_tuples", Count, "live rows", "live row versions, as the server estimates them")),
    gauge("dead", reading("pg.dead_tuples", Count, "dead rows", "dead row versions that are not yet removed").worse().row(660)),
    gauge("modified", reading("pg.modified_since_analyze", Count, "rows changed since ANALYZE", "rows changed since the tables were analysed")),
    gauge("inserted", reading("pg.inserted_since_vacuum", Count, "rows inserted since VACUUM", "rows inserted since the tables were vacuumed (PostgreSQL 13 or later)")),
    rate("seq_scan", reading("pg.table_scans_per_s", PerSecond, "table scans", "scans of whole tables")),
    rate("seq_tup_read", reading("pg.table_scan_rows_per_s", PerSecond, "rows read by table scans", "rows read by scans of whole tables")),
    rate("idx_scan", reading("pg.index_scans_per_s", PerSecond, "index scans", "scans of indexes")),
    rate("idx_tup_fetch", reading("pg.index_scan_rows_per_s", PerSecond, "rows fetched by index scans", "rows fetched by scans of indexes")),
    rate("upd", reading("pg.table_updates_per_s", PerSecond, "row updates", "rows updated")),
    rate("hot_upd", reading("pg.hot_updates_per_s", PerSecond, "HOT updates", "rows updated within their page, indexes untouched").better()),
    rate("vacuums", reading("pg.vacuums_per_s", PerSecond, "vacuums", "tables vacuumed by a VACUUM command").up(StallCause::Vacuum)),
    rate("autovacuums", reading("pg.autovacuums_per_s", PerSecond, "autovacuums", "tables vacuumed by autovacuum").up(StallCause::Vacuum)),
    rate("analyzes", reading("pg.analyzes_per_s", PerSecond, "analyzes", "tables analysed by an ANALYZE command")),
    rate("autoanalyzes", reading("pg.autoanalyzes_per_s", PerSecond, "autoanalyzes", "tables analysed by autovacuum").up(StallCause::Vacuum)),
];

#[rustfmt::skip]
const PROGRESS: &[Item] = &[
    gauge("running", reading("pg.vacuum.running", Count, "vacuums under way", "vacuums under way, in all databases").up(StallCause::Vacuum).row(670)),
    gauge("total", reading("pg.vacuum.heap_blocks", Unit::other("blocks"), "blocks to vacuum", "blocks of the tables that are being vacuumed").up(StallCause::Vacuum)),
    gauge("scanned", reading("pg.vacuum.heap_blocks_scanned", Unit::other("blocks"), "blocks scanned by vacuum", "blocks of these tables scanned so far").up(StallCause::Vacuum)),
    gauge("vacuumed", reading("pg.vacuum.heap_blocks_vacuumed", Unit::other("blocks"), "blocks vacuumed", "blocks of these tables vacuumed so far").up(StallCause::Vacuum)),
    gauge("index_rounds", reading("pg.vacuum.index_rounds", Count, "vacuum's index rounds", "passes through the indexes so far: more than one means too little memory").up(StallCause::Vacuum)),
];

#[rustfmt::skip]
const PATTERNS: &[Reading] = &[
    reading("pg.table.*.dead_tuples", Count, "dead rows of the table", "dead row versions of this table, one of those with the most").worse(),
    reading("pg.table.*.bytes", Bytes, "size of the table", "size of this table with its indexes"),
];

pub(super) fn registered() -> Vec<Reading> {
    all_of(&[TOTALS, PROGRESS], PATTERNS)
}

// Without any table all sums are 0.
const ASK_TOTALS: &str = "SELECT COALESCE(sum(n_live_tup), 0) AS live, \
     COALESCE(sum(n_dead_tup), 0) AS dead, COALESCE(sum(n_mod_since_analyze), 0) AS modified, \
     COALESCE(sum(seq_scan), 0) AS seq_scan, COALESCE(sum(seq_tup_read), 0) AS seq_tup_read, \
     COALESCE(sum(idx_scan), 0) AS idx_scan, COALESCE(sum(idx_tup_fetch), 0) AS idx_tup_fetch, \
     COALESCE(sum(n_tup_upd), 0) AS upd, COALESCE(sum(n_tup_hot_upd), 0) AS hot_upd, \
     COALESCE(sum(vacuum_count), 0) AS vacuums, \
     COALESCE(sum(autovacuum_count), 0) AS autovacuums, \
     COALESCE(sum(analyze_count), 0) AS analyzes, \
     COALESCE(sum(autoanalyze_count), 0) AS autoanalyzes \
     FROM pg_catalog.pg_stat_user_tables";
/// For PostgreSQL 13 and later.
const ASK_INSERTED: &str = "SELECT COALESCE(sum(n_ins_since_vacuum), 0) AS inserted \
     FROM pg_catalog.pg_stat_user_tables";
const ASK_PROGRESS: &str = "SELECT count(*) AS running, \
     COALESCE(sum(heap_blks_total), 0) AS total, \
     COALESCE(sum(heap_blks_scanned), 0) AS scanned, \
     COALESCE(sum(heap_blks_vacuumed), 0) AS vacuumed, \
     COALESCE(max(index_vacuum_count), 0) AS index_rounds \
     FROM pg_catalog.pg_stat_progress_vacuum";
const ASK_WORST: &str = "SELECT CASE schemaname WHEN 'public' THEN relname::text \
     ELSE schemaname || '.' || relname END, n_dead_tup, \
     pg_catalog.pg_total_relation_size(relid) \
     FROM pg_catalog.pg_stat_user_tables ORDER BY n_dead_tup DESC, relname LIMIT 8";

pub(super) fn probe(connector: Connector) -> Box<dyn Probe> {
    let mut version = Version::default();
    let (mut totals, mut progress) = (Table::new(TOTALS), Table::new(PROGRESS));
    // It asks the file system for every file of those tables.
    let mut worst_due = Every::new(Nanoseconds::from_secs(5));
    asking("pg_tables", registered(), Asker::new(connector), move |asker, now, readings| {
        let Some(version) = version.get(asker, now) else { return };
        if let Some(mut values) = asker.row_numbers(now, ASK_TOTALS) {
            if version >= 130_000 {
                values.extend(asker.row_numbers(now, ASK_INSERTED).unwrap_or_default());
            }
            totals.put(now, values, readings);
        }
        if let Some(values) = asker.row_numbers(now, ASK_PROGRESS) {
            progress.put(now, values, readings);
        }
        if worst_due.is_due(now) {
            for row in asker.rows(now, ASK_WORST).unwrap_or_default() {
                let Some(table) = cell(&row, 0) else { continue };
                let table = reading_name("pg.table", table);
                for (column, what) in [(1, "dead_tuples"), (2, "bytes")] {
                    if let Some(value) = cell(&row, column).and_then(number) {
                        readings.insert(format!("{table}.{what}"), value);
                    }
                }
            }
        }
    })
}
