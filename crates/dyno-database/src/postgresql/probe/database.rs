//! What the catalog and the whole server did: transactions, rows, blocks, WAL, checkpoints, I/O.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use dyno_host::{Probe, ReadingLegend, Readings};
use dyno_units::Nanoseconds;
use dyno_workload::{Connector, NamedRows};

use super::Version;
use crate::probe::{Asker, Item, Table, Values, cell, gauge, legend as one, legends, number, rate};

/// pg_stat_database, of this catalog.
const DATABASE: &[Item] = &[
    rate(
        "xact_commit",
        "pg.commits_per_s",
        "1/s",
        "transactions committed, those of probes included",
    ),
    rate("xact_rollback", "pg.rollbacks_per_s", "1/s", "transactions rolled back"),
    rate("blks_read", "pg.blocks_read_per_s", "1/s", "blocks that shared buffers did not have"),
    rate("blks_hit", "pg.blocks_hit_per_s", "1/s", "blocks found in shared buffers"),
    rate(
        "tup_returned",
        "pg.rows_scanned_per_s",
        "1/s",
        "rows read by scans of tables, and index entries by scans of indexes",
    ),
    rate("tup_fetched", "pg.rows_fetched_per_s", "1/s", "rows fetched by an index"),
    rate("tup_inserted", "pg.rows_inserted_per_s", "1/s", "rows inserted"),
    rate("tup_updated", "pg.rows_updated_per_s", "1/s", "rows updated"),
    rate("tup_deleted", "pg.rows_deleted_per_s", "1/s", "rows deleted"),
    rate("temp_files", "pg.temp_files_per_s", "1/s", "temporary files made"),
    rate("temp_bytes", "pg.temp_bytes_per_s", "bytes/s", "bytes written to temporary files"),
    rate("deadlocks", "pg.deadlocks_per_s", "1/s", "deadlocks"),
    rate(
        "conflicts",
        "pg.conflicts_per_s",
        "1/s",
        "statements cancelled by recovery (on a standby)",
    ),
    rate(
        "blk_read_time",
        "pg.block_read_s_per_s",
        "s/s",
        "time waited for reads (needs track_io_timing)",
    )
    .times(1e-3),
    rate(
        "blk_write_time",
        "pg.block_write_s_per_s",
        "s/s",
        "time waited for writes (needs track_io_timing)",
    )
    .times(1e-3),
    rate(
        "active_time",
        "pg.active_s_per_s",
        "s/s",
        "time that sessions were at work, all together (from 14)",
    )
    .times(1e-3),
    rate(
        "idle_in_transaction_time",
        "pg.idle_in_transaction_s_per_s",
        "s/s",
        "time that sessions idled inside a transaction (from 14)",
    )
    .times(1e-3),
    gauge("uptime_s", "pg.uptime_s", "s", "time since the server was started"),
    gauge("numbackends", "pg.connections", "1", "connections to this catalog"),
    gauge(
        "freeze_age",
        "pg.freeze_age",
        "transactions",
        "age of the oldest transaction id in this catalog that is not frozen",
    ),
];

/// pg_stat_wal, from 14; what 18 moved to pg_stat_io is missing there.
const WAL: &[Item] = &[
    rate("wal_records", "pg.wal_records_per_s", "1/s", "WAL records (from 14)"),
    rate(
        "wal_fpi",
        "pg.wal_page_images_per_s",
        "1/s",
        "whole pages in the WAL: first changes after a checkpoint (from 14)",
    ),
    rate("wal_bytes", "pg.wal_bytes_per_s", "bytes/s", "bytes of WAL (from 14)"),
    rate(
        "wal_buffers_full",
        "pg.wal_buffers_full_per_s",
        "1/s",
        "WAL written because its buffers were full (from 14)",
    ),
    rate("wal_write", "pg.wal_writes_per_s", "1/s", "writes of WAL (14 to 17)"),
    rate("wal_sync", "pg.wal_syncs_per_s", "1/s", "syncs of WAL (14 to 17)"),
    rate(
        "wal_write_time",
        "pg.wal_write_s_per_s",
        "s/s",
        "time in writes of WAL (needs track_wal_io_timing)",
    )
    .times(1e-3),
    rate(
        "wal_sync_time",
        "pg.wal_sync_s_per_s",
        "s/s",
        "time in syncs of WAL (needs track_wal_io_timing)",
    )
    .times(1e-3),
];

/// pg_stat_bgwriter up to 16; from 17 what concerns checkpoints is in pg_stat_checkpointer, under
/// other names, which are put back to these.
const CHECKPOINTS: &[Item] = &[
    rate(
        "checkpoints_timed",
        "pg.checkpoints_timed_per_s",
        "1/s",
        "checkpoints because of the time",
    ),
    rate(
        "checkpoints_req",
        "pg.checkpoints_requested_per_s",
        "1/s",
        "checkpoints because of the WAL's size, or asked for",
    ),
    rate(
        "checkpoint_write_time",
        "pg.checkpoint_write_s_per_s",
        "s/s",
        "time in which checkpoints wrote, told when they are done",
    )
    .times(1e-3),
    rate(
        "checkpoint_sync_time",
        "pg.checkpoint_sync_s_per_s",
        "s/s",
        "time in which checkpoints synced, told when they are done",
    )
    .times(1e-3),
    rate(
        "buffers_checkpoint",
        "pg.checkpoint_buffers_per_s",
        "1/s",
        "buffers that checkpoints wrote",
    ),
    rate(
        "buffers_clean",
        "pg.bgwriter_buffers_per_s",
        "1/s",
        "buffers that the background writer wrote",
    ),
    rate(
        "maxwritten_clean",
        "pg.bgwriter_stops_per_s",
        "1/s",
        "rounds of the background writer that ended at its limit",
    ),
    rate(
        "buffers_backend",
        "pg.backend_buffers_per_s",
        "1/s",
        "buffers that sessions had to write themselves (up to 16)",
    ),
    rate(
        "buffers_backend_fsync",
        "pg.backend_fsyncs_per_s",
        "1/s",
        "syncs that sessions had to do themselves (up to 16)",
    ),
    rate(
        "buffers_alloc",
        "pg.buffers_allocated_per_s",
        "1/s",
        "buffers given out for other blocks",
    ),
];

/// Position in the WAL.
const POSITION: &[Item] = &[
    rate("insert_lsn", "pg.wal_inserted_bytes_per_s", "bytes/s", "bytes of WAL, from its position"),
    gauge(
        "checkpoint_distance",
        "pg.checkpoint_distance_bytes",
        "bytes",
        "WAL since the last checkpoint began",
    ),
    gauge(
        "checkpoint_distance_percent",
        "pg.checkpoint_distance_percent",
        "%",
        "the same, of max_wal_size",
    ),
    gauge("checkpoint_age_s", "pg.checkpoint_age_s", "s", "time since the last checkpoint began"),
];

const PATTERNS: &[ReadingLegend] = &[
    one(
        "pg.block_hit_percent",
        "%",
        "blocks asked for that shared buffers had; the system's cache may have had the others",
    ),
    one("pg.io.*.reads_per_s", "1/s", "reads by processes of this kind (from 16)"),
    one("pg.io.*.writes_per_s", "1/s", "writes by processes of this kind (from 16)"),
    one("pg.io.*.extends_per_s", "1/s", "extensions of files by processes of this kind (from 16)"),
    one("pg.io.*.fsyncs_per_s", "1/s", "syncs by processes of this kind (from 16)"),
    one("pg.io.*.evictions_per_s", "1/s", "blocks evicted by processes of this kind (from 16)"),
    one(
        "pg.io.*.hits_per_s",
        "1/s",
        "blocks found in shared buffers by processes of this kind (from 16)",
    ),
];

/// What its readings mean.
pub(super) fn legend() -> &'static [ReadingLegend] {
    static ALL: LazyLock<Vec<ReadingLegend>> =
        LazyLock::new(|| legends(&[DATABASE, WAL, CHECKPOINTS, POSITION], &[PATTERNS]));
    &ALL
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

/// Reads the statistics of the catalog and of the whole server.
pub(super) struct DatabaseProbe {
    asker: Asker,
    version: Version,
    database: Table,
    wal: Table,
    checkpoints: Table,
    position: Table,
    io: Option<(Nanoseconds, BTreeMap<String, f64>)>,
}

impl DatabaseProbe {
    pub(super) fn new(connector: Connector) -> DatabaseProbe {
        DatabaseProbe {
            asker: Asker::new(connector),
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

    fn read_io(&mut self, now: Nanoseconds, readings: &mut Readings) {
        let Some(answer) = self.asker.named_rows(now, ASK_IO) else { return };
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

impl Probe for DatabaseProbe {
    fn legend(&self) -> &'static [ReadingLegend] {
        legend()
    }

    fn read(&mut self, now: Nanoseconds, readings: &mut Readings) {
        let Some(version) = self.version.get(&mut self.asker, now) else { return };
        let asker = &mut self.asker;
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
            self.read_io(now, readings);
        }
    }

    fn name(&self) -> &str {
        "pg_database"
    }

    fn take_notes(&mut self) -> Vec<String> {
        self.asker.take_notes()
    }
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
