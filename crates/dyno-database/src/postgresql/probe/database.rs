//! Activity of the catalog and the whole server: transactions, rows, blocks, WAL, checkpoints, I/O.

use std::collections::BTreeMap;

use dyno_host::{Probe, Readings};
use dyno_units::Nanoseconds;
use dyno_units::reading::prelude::*;
use dyno_workload::{Connector, NamedRows};

use crate::probe::{Asker, Item, Table, Values, all_of, asking, cell, gauge, number, rate};

/// pg_stat_database, of this catalog.
#[rustfmt::skip]
const DATABASE: &[Item] = &[
    rate("xact_commit", reading("pg.commits_per_s", PerSecond, "commits", "transactions committed, those of probes included").better().role(Role::Transactions).row(140).words("commits")),
    rate("xact_rollback", reading("pg.rollbacks_per_s", PerSecond, "rollbacks", "transactions rolled back").worse()),
    rate("blks_read", reading("pg.blocks_read_per_s", PerSecond, "blocks read", "blocks not found in shared buffers")),
    rate("blks_hit", reading("pg.blocks_hit_per_s", PerSecond, "blocks hit", "blocks found in shared buffers")),
    rate("tup_returned", reading("pg.rows_scanned_per_s", PerSecond, "rows scanned", "rows read by scans of tables, and index entries by scans of indexes")),
    rate("tup_fetched", reading("pg.rows_fetched_per_s", PerSecond, "rows fetched by index", "rows fetched by index scans")),
    rate("tup_inserted", reading("pg.rows_inserted_per_s", PerSecond, "rows inserted", "rows inserted")),
    rate("tup_updated", reading("pg.rows_updated_per_s", PerSecond, "rows updated", "rows updated")),
    rate("tup_deleted", reading("pg.rows_deleted_per_s", PerSecond, "rows deleted", "rows deleted")),
    rate("temp_files", reading("pg.temp_files_per_s", PerSecond, "temporary files", "temporary files created")),
    rate("temp_bytes", reading("pg.temp_bytes_per_s", BytesPerSecond, "temporary files written", "bytes written to temporary files")),
    rate("deadlocks", reading("pg.deadlocks_per_s", PerSecond, "deadlocks", "deadlocks").worse()),
    rate("conflicts", reading("pg.conflicts_per_s", PerSecond, "recovery conflicts", "statements cancelled by recovery (on a standby)").worse()),
    rate("blk_read_time", reading("pg.block_read_s_per_s", Waiters, "waiting for block reads", "time waited for reads (needs track_io_timing)")).times(1e-3),
    rate("blk_write_time", reading("pg.block_write_s_per_s", Waiters, "waiting for block writes", "time waited for writes (needs track_io_timing)")).times(1e-3),
    rate("active_time", reading("pg.active_s_per_s", AtATime, "sessions at work", "time that sessions were at work, all together (PostgreSQL 14 or later)")).times(1e-3),
    rate("idle_in_transaction_time", reading("pg.idle_in_transaction_s_per_s", AtATime, "idle in transaction", "time that sessions idled inside a transaction (PostgreSQL 14 or later)").worse()).times(1e-3),
    gauge("uptime_s", reading("pg.uptime_s", Seconds, "uptime", "time since the server was started").role(Role::Uptime)),
    gauge("numbackends", reading("pg.connections", Count, "connections", "connections to this database")),
    gauge("freeze_age", reading("pg.freeze_age", Unit::other("transactions"), "freeze age", "age of the oldest transaction id in this database that is not frozen")),
];

/// pg_stat_wal, from 14; what 18 moved to pg_stat_io is missing there.
#[rustfmt::skip]
const WAL: &[Item] = &[
    rate("wal_records", reading("pg.wal_records_per_s", PerSecond, "WAL records", "WAL records (PostgreSQL 14 or later)")),
    rate("wal_fpi", reading("pg.wal_page_images_per_s", PerSecond, "WAL page images", "whole pages in the WAL: first changes after a checkpoint (PostgreSQL 14 or later)")),
    rate("wal_bytes", reading("pg.wal_bytes_per_s", BytesPerSecond, "WAL written", "bytes of WAL (PostgreSQL 14 or later)").row(640)),
    rate("wal_buffers_full", reading("pg.wal_buffers_full_per_s", PerSecond, "WAL buffers full", "WAL written because its buffers were full (PostgreSQL 14 or later)").worse().up(StallCause::Flushing)),
    rate("wal_write", reading("pg.wal_writes_per_s", PerSecond, "WAL writes", "writes of WAL (PostgreSQL 14 to 17)")),
    rate("wal_sync", reading("pg.wal_syncs_per_s", PerSecond, "WAL syncs", "syncs of WAL (PostgreSQL 14 to 17)")),
    rate("wal_write_time", reading("pg.wal_write_s_per_s", Waiters, "time in WAL writes", "time in writes of WAL (needs track_wal_io_timing)")).times(1e-3),
    rate("wal_sync_time", reading("pg.wal_sync_s_per_s", Waiters, "time in WAL syncs", "time in syncs of WAL (needs track_wal_io_timing)").up(StallCause::Fsync)).times(1e-3),
];

/// From 17 on, columns of pg_stat_checkpointer are mapped back to these names.
#[rustfmt::skip]
const CHECKPOINTS: &[Item] = &[
    rate("checkpoints_timed", reading("pg.checkpoints_timed_per_s", PerSecond, "timed checkpoints", "checkpoints triggered by checkpoint_timeout").up(StallCause::Checkpoint)),
    rate("checkpoints_req", reading("pg.checkpoints_requested_per_s", PerSecond, "requested checkpoints", "checkpoints triggered by the WAL's size, or requested").up(StallCause::Checkpoint)),
    rate("checkpoint_write_time", reading("pg.checkpoint_write_s_per_s", AtATime, "checkpoint write time", "time that checkpoints spent writing, reported at their end").up(StallCause::Checkpoint)).times(1e-3),
    rate("checkpoint_sync_time", reading("pg.checkpoint_sync_s_per_s", AtATime, "checkpoint sync time", "time that checkpoints spent syncing, reported at their end").up(StallCause::Fsync)).times(1e-3),
    rate("buffers_checkpoint", reading("pg.checkpoint_buffers_per_s", PerSecond, "buffers written by checkpoints", "buffers that checkpoints wrote").up(StallCause::Checkpoint)),
    rate("buffers_clean", reading("pg.bgwriter_buffers_per_s", PerSecond, "buffers written by the background writer", "buffers that the background writer wrote").up(StallCause::Flushing)),
    rate("maxwritten_clean", reading("pg.bgwriter_stops_per_s", PerSecond, "background writer at its limit", "rounds of the background writer that stopped at bgwriter_lru_maxpages").worse()),
    rate("buffers_backend", reading("pg.backend_buffers_per_s", PerSecond, "buffers written by sessions", "buffers that sessions had to write themselves (PostgreSQL 16 or earlier)").worse().up(StallCause::Flushing)),
    rate("buffers_backend_fsync", reading("pg.backend_fsyncs_per_s", PerSecond, "syncs by sessions", "syncs that sessions had to do themselves (PostgreSQL 16 or earlier)").worse().up(StallCause::Fsync)),
    rate("buffers_alloc", reading("pg.buffers_allocated_per_s", PerSecond, "buffers allocated", "buffers allocated for other blocks")),
];

#[rustfmt::skip]
const POSITION: &[Item] = &[
    rate("insert_lsn", reading("pg.wal_inserted_bytes_per_s", BytesPerSecond, "WAL inserted", "bytes of WAL, from its position")),
    gauge("checkpoint_distance", reading("pg.checkpoint_distance_bytes", Bytes, "checkpoint distance", "WAL since the last checkpoint began").row(690)),
    gauge("checkpoint_distance_percent", reading("pg.checkpoint_distance_percent", Percent, "checkpoint distance", "WAL since the last checkpoint began, as a share of max_wal_size")),
    gauge("checkpoint_age_s", reading("pg.checkpoint_age_s", Seconds, "checkpoint age", "time since the last checkpoint began")),
];

#[rustfmt::skip]
const PATTERNS: &[Reading] = &[
    reading("pg.block_hit_percent", Percent, "shared buffer hit ratio", "share of requested blocks found in shared buffers; the operating system's page cache may have served the others").better().row(630),
    reading("pg.io.*.reads_per_s", PerSecond, "reads", "reads by processes of this kind (PostgreSQL 16 or later)"),
    reading("pg.io.*.writes_per_s", PerSecond, "writes", "writes by processes of this kind (PostgreSQL 16 or later)"),
    reading("pg.io.*.extends_per_s", PerSecond, "file extensions", "extensions of files by processes of this kind (PostgreSQL 16 or later)"),
    reading("pg.io.*.fsyncs_per_s", PerSecond, "fsyncs", "syncs by processes of this kind (PostgreSQL 16 or later)").up(StallCause::Fsync),
    reading("pg.io.*.evictions_per_s", PerSecond, "evictions", "blocks evicted by processes of this kind (PostgreSQL 16 or later)"),
    reading("pg.io.*.hits_per_s", PerSecond, "buffer hits", "blocks found in shared buffers by processes of this kind (PostgreSQL 16 or later)"),
];

pub(super) fn registered() -> Vec<Reading> {
    all_of(&[DATABASE, WAL, CHECKPOINTS, POSITION], PATTERNS)
}

const ASK_DATABASE: &str = "SELECT s.*, age(d.datfrozenxid) AS freeze_age, \
     extract(epoch FROM clock_timestamp() - pg_catalog.pg_postmaster_start_time()) AS uptime_s \
     FROM pg_catalog.pg_stat_database s \
     JOIN pg_catalog.pg_database d ON d.oid = s.datid WHERE s.datname = current_database()";
const ASK_WAL: &str = "SELECT * FROM pg_catalog.pg_stat_wal";
const ASK_BGWRITER: &str = "SELECT * FROM pg_catalog.pg_stat_bgwriter";
/// The names of 17, put back to those before it.
const ASK_CHECKPOINTER: &str = "SELECT b.*, c.num_timed AS checkpoints_timed, \
     c.num_requested AS checkpoints_req, c.write_time AS checkpoint_write_time, \
     c.sync_time AS checkpoint_sync_time, c.buffers_written AS buffers_checkpoint \
     FROM pg_catalog.pg_stat_bgwriter b, pg_catalog.pg_stat_checkpointer c";
const ASK_POSITION: &str = "SELECT pg_catalog.pg_wal_lsn_diff(l.lsn, '0/0') AS insert_lsn, \
     pg_catalog.pg_wal_lsn_diff(l.lsn, c.redo_lsn) AS checkpoint_distance, \
     100 * pg_catalog.pg_wal_lsn_diff(l.lsn, c.redo_lsn) / \
     pg_catalog.pg_size_bytes(pg_catalog.current_setting('max_wal_size')) \
     AS checkpoint_distance_percent, \
     extract(epoch FROM pg_catalog.now() - c.checkpoint_time) AS checkpoint_age_s \
     FROM pg_catalog.pg_control_checkpoint() c, pg_catalog.pg_current_wal_insert_lsn() AS l(lsn)";
const ASK_IO: &str = "SELECT backend_type, sum(reads) AS reads, sum(writes) AS writes, \
     sum(extends) AS extends, sum(fsyncs) AS fsyncs, sum(evictions) AS evictions, \
     sum(hits) AS hits FROM pg_catalog.pg_stat_io GROUP BY backend_type";

/// The server's version, asked once: 150018 is 15.18.
#[derive(Default)]
pub(in crate::postgresql) struct Version(Option<u32>);

impl Version {
    pub(in crate::postgresql) fn get(
        &mut self,
        asker: &mut Asker,
        now: Nanoseconds,
    ) -> Option<u32> {
        if self.0.is_none() {
            let rows = asker.rows(now, "SHOW server_version_num")?;
            self.0 = rows.into_iter().flatten().next().flatten()?.parse().ok();
        }
        self.0
    }
}

struct Database {
    version: Version,
    database: Table,
    wal: Table,
    checkpoints: Table,
    position: Table,
    io: Option<(Nanoseconds, BTreeMap<String, f64>)>,
}

impl Database {
    fn new() -> Database {
        Database {
            version: Version::default(),
            database: Table::new(DATABASE),
            wal: Table::new(WAL),
            checkpoints: Table::new(CHECKPOINTS),
            position: Table::new(POSITION),
            io: None,
        }
    }

    fn put_hits(&self, values: &Values, readings: &mut Readings) {
        let hit = self.database.growth(values, "blks_hit");
        let read = self.database.growth(values, "blks_read");
        if let (Some(hit), Some(read)) = (hit, read)
            && hit + read > 0.0
        {
            readings.insert("pg.block_hit_percent".to_owned(), 100.0 * hit / (hit + read));
        }
    }

    fn read_io(&mut self, asker: &mut Asker, now: Nanoseconds, readings: &mut Readings) {
        let Some(answer) = asker.named_rows(now, ASK_IO) else { return };
        let counters = io_counters(&answer);
        if let Some((at, before)) = &self.io {
            let seconds = now.saturating_sub(*at).as_secs_f64();
            for (name, value) in &counters {
                let growth = value - before.get(name).copied().unwrap_or(*value);
                if seconds > 0.0 && growth >= 0.0 {
                    readings.insert(format!("pg.io.{name}_per_s"), growth / seconds);
                }
            }
        }
        self.io = Some((now, counters));
    }

    fn read(&mut self, asker: &mut Asker, now: Nanoseconds, readings: &mut Readings) {
        let Some(version) = self.version.get(asker, now) else { return };
        let database = asker.row_numbers(now, ASK_DATABASE);
        let checkpoints = match version {
            170_000.. => asker.row_numbers(now, ASK_CHECKPOINTER),
            _ => asker.row_numbers(now, ASK_BGWRITER),
        };
        let wal = (version >= 140_000).then(|| asker.row_numbers(now, ASK_WAL)).flatten();
        // Not on a standby, which writes no WAL.
        let position = asker.row_numbers(now, ASK_POSITION);
        if let Some(values) = database {
            self.put_hits(&values, readings);
            self.database.put(now, values, readings);
        }
        for (table, values) in [
            (&mut self.checkpoints, checkpoints),
            (&mut self.wal, wal),
            (&mut self.position, position),
        ] {
            if let Some(values) = values {
                table.put(now, values, readings);
            }
        }
        if version >= 160_000 {
            self.read_io(asker, now, readings);
        }
    }
}

/// Counters by kind of process and operation: `client_backend.reads`.
fn io_counters(answer: &NamedRows) -> BTreeMap<String, f64> {
    let mut counters = BTreeMap::new();
    for row in &answer.rows {
        let Some(kind) = cell(row, 0) else { continue };
        let kind = kind.replace(' ', "_");
        for (column, name) in answer.columns.iter().enumerate().skip(1) {
            if let Some(value) = cell(row, column).and_then(number) {
                counters.insert(format!("{kind}.{name}"), value);
            }
        }
    }
    counters
}

pub(super) fn probe(connector: Connector) -> Box<dyn Probe> {
    let mut database = Database::new();
    asking("pg_database", registered(), Asker::new(connector), move |asker, now, readings| {
        database.read(asker, now, readings);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_is_by_kind_of_process() {
        let text = |text: &str| Some(text.to_owned());
        let answer = NamedRows {
            columns: ["backend_type", "reads", "writes"].map(str::to_owned).to_vec(),
            rows: vec![
                vec![text("client backend"), text("12"), None],
                vec![text("checkpointer"), None, text("7")],
            ],
        };
        let counters = io_counters(&answer);
        let expected = [("checkpointer.writes", 7.0), ("client_backend.reads", 12.0)];
        assert_eq!(counters, expected.map(|(name, value)| (name.to_owned(), value)).into());
    }
}
