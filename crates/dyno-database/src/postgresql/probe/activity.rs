//! Sessions: their states and waits, and who keeps old row versions from being removed.

use std::collections::BTreeSet;

use dyno_host::{Probe, Readings};
use dyno_units::Nanoseconds;
use dyno_units::reading::prelude::*;
use dyno_workload::Connector;

use super::progress::{self, Progress};
use crate::postgresql::debt::HORIZON;
use crate::probe::{Asker, Every, Item, Table, all_of, asking, cell, gauge, number};

#[rustfmt::skip]
const SESSIONS: &[Item] = &[
    gauge("active", reading("pg.sessions_active", Count, "active sessions", "sessions that execute a statement, not counting this probe").row(150).words("active")),
    gauge("idle_in_transaction", reading("pg.sessions_idle_in_transaction", Count, "sessions idle in transaction", "sessions that idle inside a transaction").worse()),
    gauge("waiting_for_locks", reading("pg.lock_waits", Count, "sessions waiting for a lock", "sessions that wait for a lock").worse().up(StallCause::Locks).row(650)),
    gauge("longest_transaction_s", reading("pg.transaction_longest_s", Seconds, "oldest transaction", "age of the oldest open transaction").worse()),
    gauge("longest_statement_s", reading("pg.statement_longest_s", Seconds, "oldest statement", "age of the oldest statement that is being executed").worse()),
    gauge("backend", reading("pg.horizon_age.backend", Unit::other("transactions"), "kept for sessions", "age of the oldest snapshot of a session: vacuum removes nothing younger").worse()),
    gauge("replica", reading("pg.horizon_age.replica", Unit::other("transactions"), "kept for standbys", "age of the oldest snapshot that a standby has asked to keep").worse()),
    gauge("slot", reading("pg.horizon_age.slot", Unit::other("transactions"), "kept for replication slots", "age of what a replication slot keeps").worse()),
    gauge("prepared", reading("pg.horizon_age.prepared", Unit::other("transactions"), "kept for prepared transactions", "age of the oldest prepared transaction").worse()),
    gauge("horizon", reading("pg.horizon_age", Unit::other("transactions"), "age of the oldest kept row version", "the highest of these: row versions younger than this cannot be removed, whatever holds them").worse().row(680)),
    gauge("prepared_transactions", reading("pg.prepared_transactions", Count, "prepared transactions", "prepared transactions")),
];

#[rustfmt::skip]
const PATTERNS: &[Reading] = &[
    reading("pg.waiting.*", Count, "sessions waiting", "sessions at work that wait for this (LWLock, IO, Lock, Client …) at the moment of reading").worse().up(StallCause::Locks),
    reading("server.thread.autovacuum.cpu_s_per_s", Cpus, "CPU of autovacuum", "CPU time of the server's processes that run autovacuum").up(StallCause::Vacuum).instance_of("*.thread.*.cpu_s_per_s"),
    reading("server.thread.checkpointer.cpu_s_per_s", Cpus, "CPU of the checkpointer", "CPU time of the server's processes that write checkpoints").up(StallCause::Checkpoint).instance_of("*.thread.*.cpu_s_per_s"),
    reading("server.thread.background_writer.cpu_s_per_s", Cpus, "CPU of the background writer", "CPU time of the server's processes that write buffers in the background").up(StallCause::Flushing).instance_of("*.thread.*.cpu_s_per_s"),
];

pub(super) fn registered() -> Vec<Reading> {
    [all_of(&[SESSIONS], PATTERNS), progress::READINGS.to_vec()].concat()
}

const ASK_SESSIONS: &str = "SELECT \
     count(*) FILTER (WHERE state = 'active') AS active, \
     count(*) FILTER (WHERE state LIKE 'idle in transaction%') AS idle_in_transaction, \
     count(*) FILTER (WHERE wait_event_type = 'Lock') AS waiting_for_locks, \
     COALESCE(max(extract(epoch FROM clock_timestamp() - xact_start)), 0) \
     AS longest_transaction_s, \
     COALESCE(max(extract(epoch FROM clock_timestamp() - query_start)) \
     FILTER (WHERE state = 'active'), 0) AS longest_statement_s, \
     (SELECT count(*) FROM pg_catalog.pg_prepared_xacts) AS prepared_transactions \
     FROM pg_catalog.pg_stat_activity \
     WHERE backend_type = 'client backend' AND pid <> pg_catalog.pg_backend_pid()";

const ASK_WAITS: &str = "SELECT wait_event_type, count(*) FROM pg_catalog.pg_stat_activity \
     WHERE wait_event_type IS NOT NULL AND state = 'active' \
     AND pid <> pg_catalog.pg_backend_pid() GROUP BY wait_event_type";

/// The holder of the oldest row versions: a name, noted once; its present state; the age.
const ASK_HOLDER: &str = "SELECT who, what, age FROM ( \
     SELECT 'session ' || pid, concat_ws(', ', usename, NULLIF(application_name, ''), datname, \
     state, 'transaction open for ' || \
     round(extract(epoch FROM clock_timestamp() - xact_start)) || ' s'), age(backend_xmin) \
     FROM pg_catalog.pg_stat_activity WHERE backend_xmin IS NOT NULL \
     AND pid <> pg_catalog.pg_backend_pid() AND backend_type <> 'walsender' \
     UNION ALL SELECT 'standby ' || application_name, client_addr::text, age(backend_xmin) \
     FROM pg_catalog.pg_stat_replication \
     UNION ALL SELECT 'replication slot ' || slot_name, \
     CASE WHEN active THEN 'active' ELSE 'not active' END, \
     GREATEST(age(xmin), age(catalog_xmin)) FROM pg_catalog.pg_replication_slots \
     UNION ALL SELECT 'prepared transaction ' || gid, owner::text, age(transaction) \
     FROM pg_catalog.pg_prepared_xacts) AS holders(who, what, age) \
     WHERE age IS NOT NULL ORDER BY age DESC LIMIT 1";

/// Whether others' sessions are visible: without this role their snapshots look like none.
const ASK_ROLE: &str = "SELECT pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE') \
     OR (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user)";

/// From this age on; a busy server assigns so many ids in a second, so a snapshot is held.
const HELD_LONG: f64 = 100_000.0;

struct Activity {
    sessions: Table,
    progress: Progress,
    ask_horizon: String,
    has_asked_role: bool,
    holder_due: Every,
    holders_reported: BTreeSet<String>,
}

impl Activity {
    fn new() -> Activity {
        Activity {
            sessions: Table::new(SESSIONS),
            progress: Progress::default(),
            ask_horizon: format!("SELECT {HORIZON}"),
            has_asked_role: false,
            holder_due: Every::new(Nanoseconds::from_secs(5)),
            holders_reported: BTreeSet::new(),
        }
    }

    /// Notes who keeps old row versions, each holder once.
    fn look_for_holder(&mut self, asker: &mut Asker, now: Nanoseconds) {
        if !self.holder_due.is_due(now) {
            return;
        }
        let rows = asker.rows(now, ASK_HOLDER).unwrap_or_default();
        let Some(row) = rows.first() else { return };
        let (Some(who), Some(age)) = (cell(row, 0), cell(row, 2)) else { return };
        if self.holders_reported.insert(who.to_owned()) {
            let what = cell(row, 1).unwrap_or_default();
            asker.note(format!(
                "vacuum cannot remove row versions younger than {age} transactions: they are kept \
                 for {who} ({what})"
            ));
        }
    }

    /// Notes once that the user may not see the sessions of others.
    fn look_for_role(&mut self, asker: &mut Asker, now: Nanoseconds) {
        if self.has_asked_role {
            return;
        }
        let Some(rows) = asker.rows(now, ASK_ROLE) else { return };
        self.has_asked_role = true;
        if rows.first().and_then(|row| cell(row, 0)) == Some("f") {
            asker.note(
                "the user is not a member of pg_monitor: what other users' sessions do, wait for \
                 and hold back from vacuum is not recorded"
                    .to_owned(),
            );
        }
    }

    fn read(&mut self, asker: &mut Asker, now: Nanoseconds, readings: &mut Readings) {
        let mut values = asker.row_numbers(now, ASK_SESSIONS).unwrap_or_default();
        self.look_for_role(asker, now);
        if let Some(ages) = asker.row_numbers(now, &self.ask_horizon) {
            let horizon = ages.values().copied().fold(0.0, f64::max);
            if horizon >= HELD_LONG {
                self.look_for_holder(asker, now);
            }
            values.extend(ages);
            values.insert("horizon".to_owned(), horizon);
        }
        self.sessions.put(now, values, readings);
        self.progress.read(asker, now, readings);
        for row in asker.rows(now, ASK_WAITS).unwrap_or_default() {
            if let (Some(kind), Some(n)) = (cell(&row, 0), cell(&row, 1).and_then(number)) {
                readings.insert(format!("pg.waiting.{kind}"), n);
            }
        }
    }
}

pub(super) fn probe(connector: Connector) -> Box<dyn Probe> {
    let mut activity = Activity::new();
    asking("pg_activity", registered(), Asker::new(connector), move |asker, now, readings| {
        activity.read(asker, now, readings);
    })
}
