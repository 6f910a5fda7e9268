//! pgbouncer's console: SHOW POOLS and SHOW STATS.

use dyno_host::{Probe, Readings};
use dyno_units::Nanoseconds;
use dyno_units::reading::prelude::*;
use dyno_workload::{Connector, NamedRows};

use crate::probe::{Asker, Values, asking, cell, number};

#[rustfmt::skip]
pub(crate) const READINGS: &[Reading] = &[
    reading("pgbouncer.clients_active", Count, "active clients", "clients that are linked to a server connection, or idle"),
    reading("pgbouncer.clients_waiting", Count, "waiting clients", "clients that wait for a server connection").worse().up(StallCause::Pooler).row(170).words("waiting in the connection pooler"),
    reading("pgbouncer.servers_active", Count, "server connections in use", "server connections that a client uses"),
    reading("pgbouncer.servers_idle", Count, "idle server connections", "server connections that are free"),
    reading("pgbouncer.servers_used", Count, "server connections to be checked", "server connections idle for so long that they are checked before use"),
    reading("pgbouncer.servers_login", Count, "server connections logging in", "server connections that are logging in"),
    reading("pgbouncer.wait_longest_s", Seconds, "longest wait for a connection", "how long the first client in the queue has waited").worse().row(180),
    reading("pgbouncer.pools", Count, "pools", "pools, not counting PgBouncer's own"),
    reading("pgbouncer.pool.*.clients_active", Count, "active clients", "clients of this pool (database and user) that are linked to a server connection"),
    reading("pgbouncer.pool.*.clients_waiting", Count, "waiting clients", "clients of this pool that wait for a server connection").worse(),
    reading("pgbouncer.pool.*.servers_active", Count, "server connections in use", "server connections of this pool that a client uses"),
    reading("pgbouncer.pool.*.servers_idle", Count, "idle server connections", "server connections of this pool that are free"),
    reading("pgbouncer.pool.*.wait_longest_s", Seconds, "longest wait for a connection", "how long the first client in this pool's queue has waited").worse(),
    reading("pgbouncer.transactions_per_s", PerSecond, "transactions", "transactions").better().role(Role::Transactions).row(160).words("transactions"),
    reading("pgbouncer.statements_per_s", PerSecond, "statements", "statements").better(),
    reading("pgbouncer.received_bytes_per_s", BytesPerSecond, "received from clients", "bytes from clients"),
    reading("pgbouncer.sent_bytes_per_s", BytesPerSecond, "sent to clients", "bytes to clients"),
    reading("pgbouncer.wait_s_per_s", Waiters, "waiting for a server", "time that clients waited for a server, all clients together").worse(),
];

/// One pool: a catalog and a user.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pool {
    /// Catalog and user: `dyno.postgres`.
    pub name: String,
    /// Clients that have a server, or need none now.
    pub clients_active: f64,
    pub clients_waiting: f64,
    pub servers_active: f64,
    pub servers_idle: f64,
    /// Servers idle for so long that they are checked first.
    pub servers_used: f64,
    pub servers_login: f64,
    pub wait_longest_s: f64,
}

/// Without pgbouncer's own pools. Columns go by name, unchanged since 1.0; new ones are ignored.
pub fn parse_pools(answer: &NamedRows) -> Vec<Pool> {
    let column = |name: &str| answer.columns.iter().position(|column| column == name);
    let text = |row: &[Option<String>], name: &str| {
        column(name).and_then(|at| cell(row, at)).map(str::to_owned)
    };
    let value = |row: &[Option<String>], name: &str| {
        column(name).and_then(|at| cell(row, at)).and_then(number).unwrap_or(0.0)
    };
    let pool = |row: &Vec<Option<String>>| {
        let database = text(row, "database").filter(|database| database != "pgbouncer")?;
        Some(Pool {
            name: format!("{database}.{}", text(row, "user").unwrap_or_default()),
            clients_active: value(row, "cl_active"),
            clients_waiting: value(row, "cl_waiting"),
            servers_active: value(row, "sv_active"),
            servers_idle: value(row, "sv_idle"),
            servers_used: value(row, "sv_used"),
            servers_login: value(row, "sv_login"),
            // Whole seconds, and what is above them.
            wait_longest_s: value(row, "maxwait") + value(row, "maxwait_us") / 1e6,
        })
    };
    answer.rows.iter().filter_map(pool).collect()
}

/// What SHOW STATS counts, `total_` left out (from 1.8), and the readings it becomes.
const TOTALS: [(&str, &str, f64); 5] = [
    ("xact_count", "pgbouncer.transactions_per_s", 1.0),
    ("query_count", "pgbouncer.statements_per_s", 1.0),
    ("received", "pgbouncer.received_bytes_per_s", 1.0),
    ("sent", "pgbouncer.sent_bytes_per_s", 1.0),
    ("wait_time", "pgbouncer.wait_s_per_s", 1e-6),
];

pub(crate) fn probe(connector: Connector) -> Box<dyn Probe> {
    let mut before = None;
    asking(
        "pgbouncer",
        READINGS.to_vec(),
        Asker::without_session(connector),
        move |asker, now, readings| {
            if let Some(answer) = asker.named_rows(now, "SHOW POOLS") {
                put(&parse_pools(&answer), readings);
            }
            read_totals(&mut before, asker, now, readings);
        },
    )
}

fn read_totals(
    before: &mut Option<(Nanoseconds, Values)>,
    asker: &mut Asker,
    now: Nanoseconds,
    readings: &mut Readings,
) {
    // One row a catalog; the counters are called `total_xact_count`.
    let Some(answer) = asker.named_rows(now, "SHOW STATS") else { return };
    let values = totals(&answer);
    if let Some((at, before)) = before {
        let seconds = now.saturating_sub(*at).as_secs_f64();
        for (source, reading, factor) in TOTALS {
            let (Some(value), Some(before)) = (values.get(source), before.get(source)) else {
                continue;
            };
            if seconds > 0.0 && value >= before {
                readings.insert(reading.to_owned(), (value - before) / seconds * factor);
            }
        }
    }
    *before = Some((now, values));
}

/// The counters of all catalogs together, pgbouncer's own left out.
fn totals(answer: &NamedRows) -> Values {
    let mut sums = Values::new();
    for row in answer.rows.iter().filter(|row| cell(row, 0) != Some("pgbouncer")) {
        for (source, ..) in TOTALS {
            let at = answer.columns.iter().position(|column| *column == format!("total_{source}"));
            if let Some(value) = at.and_then(|at| cell(row, at)).and_then(number) {
                *sums.entry(source.to_owned()).or_insert(0.0) += value;
            }
        }
    }
    sums
}

fn put(pools: &[Pool], readings: &mut Readings) {
    let sum = |of: fn(&Pool) -> f64| pools.iter().map(of).sum::<f64>();
    let totals = [
        ("clients_active", sum(|pool| pool.clients_active)),
        ("clients_waiting", sum(|pool| pool.clients_waiting)),
        ("servers_active", sum(|pool| pool.servers_active)),
        ("servers_idle", sum(|pool| pool.servers_idle)),
        ("servers_used", sum(|pool| pool.servers_used)),
        ("servers_login", sum(|pool| pool.servers_login)),
        ("wait_longest_s", pools.iter().map(|pool| pool.wait_longest_s).fold(0.0, f64::max)),
        ("pools", pools.len() as f64),
    ];
    for (name, value) in totals {
        readings.insert(format!("pgbouncer.{name}"), value);
    }
    for pool in pools {
        for (name, value) in [
            ("clients_active", pool.clients_active),
            ("clients_waiting", pool.clients_waiting),
            ("servers_active", pool.servers_active),
            ("servers_idle", pool.servers_idle),
            ("wait_longest_s", pool.wait_longest_s),
        ] {
            readings.insert(format!("pgbouncer.pool.{}.{name}", pool.name), value);
        }
    }
}

#[cfg(test)]
mod tests;
