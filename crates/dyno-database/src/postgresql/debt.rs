//! PostgreSQL's debt, and how to settle it.

use dyno_workload::Connector;

use crate::debt::part;
use crate::probe::{Asker, named_numbers};
use crate::{Debt, DebtMeter};

/// A snapshot this old at rest keeps next to nothing.
const HORIZON_PAID: f64 = 1_000.0;
/// One segment of WAL, which recovery replays in a moment.
const CHECKPOINT_PAID: f64 = 16_777_216.0;

/// SQLSTATE `insufficient_privilege`.
const NO_RIGHT: &str = "42501";

/// Dead row versions, and the number below which the server's settings never vacuum them.
const ASK_TUPLES: &str = "SELECT COALESCE(sum(n_dead_tup), 0) AS dead, \
     COALESCE(sum(pg_catalog.current_setting('autovacuum_vacuum_threshold')::float8 \
     + pg_catalog.current_setting('autovacuum_vacuum_scale_factor')::float8 * n_live_tup), 0) \
     AS left_alone FROM pg_catalog.pg_stat_user_tables";
/// Ages of what keeps old row versions, by holder; 0 if there is none. In a list of columns.
pub(super) const HORIZON: &str = "\
     (SELECT COALESCE(max(age(backend_xmin)), 0) FROM pg_catalog.pg_stat_activity \
     WHERE pid <> pg_catalog.pg_backend_pid() AND backend_type <> 'walsender') AS backend, \
     (SELECT COALESCE(max(age(backend_xmin)), 0) FROM pg_catalog.pg_stat_replication) AS replica, \
     (SELECT COALESCE(max(GREATEST(age(xmin), age(catalog_xmin))), 0) \
     FROM pg_catalog.pg_replication_slots) AS slot, \
     (SELECT COALESCE(max(age(transaction)), 0) FROM pg_catalog.pg_prepared_xacts) AS prepared";

const ASK_DISTANCE: &str = "SELECT pg_catalog.pg_wal_lsn_diff(\
     pg_catalog.pg_current_wal_insert_lsn(), redo_lsn) AS distance \
     FROM pg_catalog.pg_control_checkpoint()";

pub(crate) fn meter(connector: Connector) -> Box<dyn DebtMeter> {
    let asker = Asker::new(connector.clone());
    Box::new(PgDebt { asker, connector, ask_horizon: format!("SELECT {HORIZON}") })
}

struct PgDebt {
    asker: Asker,
    connector: Connector,
    ask_horizon: String,
}

impl DebtMeter for PgDebt {
    fn read(&mut self) -> Result<Debt, String> {
        let mut parts = Vec::new();
        let tuples = named_numbers(&self.asker.ask(ASK_TUPLES)?);
        if let (Some(dead), Some(left_alone)) = (tuples.get("dead"), tuples.get("left_alone")) {
            // A catalog without rows: some dead versions are no debt either.
            parts.push(part("debt.dead_tuples", *dead, left_alone.max(1.0)));
        }
        let ages = named_numbers(&self.asker.ask(&self.ask_horizon)?);
        let horizon = ages.values().copied().fold(0.0, f64::max);
        parts.push(part("debt.horizon_age", horizon, HORIZON_PAID));
        // A standby writes no WAL, and a server that Dyno did not start may refuse to show its
        // control data.
        if let Ok(answer) = self.asker.ask(ASK_DISTANCE)
            && let Some(distance) = named_numbers(&answer).get("distance")
        {
            parts.push(part("debt.checkpoint_distance", *distance, CHECKPOINT_PAID));
        }
        Ok(Debt { parts })
    }

    fn begin_settling(&mut self, tables: &[String]) -> Result<Vec<String>, String> {
        let mut connection = (self.connector)().map_err(|error| error.to_string())?;
        let mut done = Vec::new();
        let vacuums =
            tables.iter().map(|table| format!("VACUUM (ANALYZE, INDEX_CLEANUP ON) {table}"));
        for sql in vacuums.chain(["CHECKPOINT".to_owned()]) {
            connection.query(&sql).map_err(|error| {
                let advice = if error.code == NO_RIGHT {
                    "; grant the user this privilege (`pg_checkpoint` from 15, else superuser), or \
                     run without waiting for this server to catch up"
                } else {
                    ""
                };
                format!("`{sql}` failed: {error}{advice}")
            })?;
            done.push(sql);
        }
        Ok(done)
    }
}
