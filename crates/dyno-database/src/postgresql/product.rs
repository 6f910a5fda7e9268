//! PostgreSQL as a product, and the protocol, also for pgbouncer.

use std::path::Path;
use std::sync::Arc;

use dyno_host::{Probe, ThreadListing};
use dyno_workload::{Connector, Dialect};

use super::cost::PgCost;
use super::{
    attached, check, facts, files, packages, private, probe, programs, replica, settings, shards,
};
use crate::data::RuntimeSettings;
use crate::error::Result;
use crate::product::{DumpCommands, DumpOrder, Family, MoveOrder, MoveStatements, texts};
use crate::settings::Words;
use crate::{
    Client, ClientSecret, ConnectionLimit, DebtMeter, DeployError, DiskUse, Endpoint, LogUse,
    Product, ProductSpec, Protocol, ServerFacts, SocketKey,
};

const MIB: u64 = 1 << 20;

pub(crate) const FAMILY: Family = Family {
    protocol: Some(&PROTOCOL),
    probes: &["pg_database", "pg_activity", "pg_tables"],
    readings: &[
        probe::registered,
        || probe::pgbouncer::READINGS.to_vec(),
        || shards::COUNTERS.readings(),
    ],
    ..Family::of(|| vec![postgresql()])
};

/// How the name of a socket begins; the port follows.
const SOCKET: &str = ".s.PGSQL.";

/// Not those for WAL that is kept to recycle, nor autovacuum's.
const RUNTIME_SETTINGS: RuntimeSettings = RuntimeSettings {
    names: Words(
        "autovacuum_work_mem backend_flush_after checkpoint_completion_target \
         checkpoint_flush_after checkpoint_warning commit_delay commit_siblings \
         constraint_exclusion cpu_index_tuple_cost cpu_operator_cost cpu_tuple_cost \
         deadlock_timeout default_transaction_isolation effective_cache_size \
         effective_io_concurrency from_collapse_limit fsync full_page_writes hash_mem_multiplier \
         join_collapse_limit lock_timeout logical_decoding_work_mem maintenance_io_concurrency \
         maintenance_work_mem max_connections max_files_per_process max_locks_per_transaction \
         max_parallel_maintenance_workers max_parallel_workers max_parallel_workers_per_gather \
         max_stack_depth max_worker_processes min_parallel_index_scan_size \
         min_parallel_table_scan_size parallel_leader_participation parallel_setup_cost \
         parallel_tuple_cost plan_cache_mode random_page_cost seq_page_cost shared_buffers \
         shared_memory_type statement_timeout superuser_reserved_connections synchronous_commit \
         temp_buffers track_activities track_activity_query_size track_functions track_io_timing \
         track_wal_io_timing wal_buffers wal_sync_method work_mem",
    ),
    beginnings: Words(
        "bgwriter_ enable_ geqo huge_page idle_ io_ jit log_ tcp_ vacuum_cost_ wal_writer_",
    ),
};

fn postgresql() -> Product {
    let words = ["pg", "psql", "pgsql"];
    let advice = "did you mean `postgresql`?";
    let spec = ProductSpec {
        confused_names: words.map(|word| (word.to_owned(), advice.to_owned())).into(),
        has_log_folder: true,
        can_be_open: true,
        image_names: &["postgres", "postgresql", "pgvector", "postgis", "timescaledb"],
        offers: packages::OFFERS,
        connection_limit: Some(ConnectionLimit {
            setting: "max_connections".to_owned(),
            default_clients: 60,
            spare: 30,
        }),
        // Measured with 15: catalogs of three databases, recycled WAL of the fill.
        disk: Some(DiskUse {
            kept: 24 * MIB,
            grown: 0,
            running: 16 * MIB,
            log: Some(LogUse {
                setting: "max_wal_size".to_owned(),
                unit: MIB,
                default: 1024 * MIB,
                growth: Some((16 * MIB, 1.25)),
            }),
            spread: 1.2,
        }),
        refusals: texts([
            "unrecognized configuration parameter",
            "invalid value for parameter",
            "is outside the valid range for parameter",
        ]),
        ..ProductSpec::new(
            "postgresql",
            "PostgreSQL",
            "a private PostgreSQL server, from the programs on this machine",
            Some(Dialect::PostgreSql),
        )
    };
    Product {
        data_shape: Box::new(|spec, place| {
            let installation = programs::find(spec, place.keeper())?;
            let server = installation.programs.join("postgres");
            let server = (installation.program(&server), &*installation.version);
            RUNTIME_SETTINGS.shape(spec, server, |name, value| {
                Ok((name.to_ascii_lowercase(), settings::spelled(name, value)?))
            })
        }),
        dump_commands,
        move_statements,
        check_settings: Some(|spec, place| check::check_settings(spec, place.keeper())),
        check_vectors: |spec, place| check::check_vectors(spec, place.keeper()),
        installations: Box::new(programs::installations),
        version_in: Box::new(|programs, keeper| {
            programs::version_in(programs, keeper).ok_or_else(|| {
                DeployError::new(format!(
                    "there are no programs `postgres` and `initdb` in {} that run on this machine",
                    programs.display()
                ))
            })
        }),
        packages: packages::packages,
        replicating: Some(&replica::Streaming),
        sharding: Some(&shards::ByForeignTables),
        refused_setting: settings::refused_setting,
        ..Product::new(spec, private::start)
    }
}

fn dump_commands(order: &DumpOrder<'_>) -> Option<DumpCommands> {
    let DumpOrder { prefix, threads } = order;
    Some(DumpCommands {
        dump: format!(
            "pg_dump --format=directory --jobs={threads} --file=$DYNO_SCRATCH/dump \
             --table='{prefix}*'"
        ),
        restore: format!(
            "pg_restore --exit-on-error --jobs={threads} --dbname=$DYNO_DATABASE \
             $DYNO_SCRATCH/dump"
        ),
    })
}

/// The old table and a new one are children of a parent with the table's name.
fn move_statements(order: &MoveOrder<'_>) -> Option<MoveStatements> {
    let MoveOrder { table, key, batch, waits } = order;
    let locked = if *waits { "FOR UPDATE" } else { "FOR UPDATE SKIP LOCKED" };
    Some(MoveStatements {
        before: vec![
            format!("CREATE TABLE parent (LIKE {table} INCLUDING ALL)"),
            format!("CREATE TABLE child (LIKE {table} INCLUDING ALL) INHERITS (parent)"),
            format!("ALTER TABLE {table} INHERIT parent"),
            format!("ALTER TABLE {table} RENAME TO {table}_old"),
            format!("ALTER TABLE parent RENAME TO {table}"),
        ],
        batch: format!(
            "WITH picked AS (SELECT {key} FROM {table}_old ORDER BY {key} LIMIT {batch} {locked}), \
             taken AS (DELETE FROM {table}_old o USING picked p WHERE o.{key} = p.{key} RETURNING o.*), \
             moved AS (INSERT INTO child SELECT * FROM taken RETURNING 1) SELECT count(*) FROM moved"
        ),
    })
}

pub static PROTOCOL: Protocol = Protocol {
    name: "postgresql",
    schemes: &["postgresql", "postgres"],
    example: "postgresql://user:password@host:5432/database",
    dialect: Some(Dialect::PostgreSql),
    default_port: 5432,
    socket: SocketKey {
        name: "host",
        join: |folder, port| folder.join(format!("{SOCKET}{port}")),
        split: split_socket,
    },
    has_server_public_key: false,
    has_session_options: true,
    ping: "SELECT 1",
    blocks_worker: false,
    common_catalog: "postgres",
    programs: &["postgres", "postmaster", "pgbouncer", "edb-postgres"],
    data_folder: "SHOW data_directory",
    file_kind: files::file_kind,
    thread_group: Some(files::thread_group),
    connector: super::connector,
    unnamed_connector: super::pooled_connector,
    attach: attached::attach,
    facts,
    probes,
    cost_source: |connection, access, clock| {
        Ok(Box::new(PgCost::new(connection, access, Arc::clone(clock))?))
    },
    debt_meter,
    client: |endpoint, _| {
        // It reads the same URLs, without Dyno's own keys.
        let arguments = vec![endpoint.to_string()];
        let secret =
            endpoint.password.clone().map(|word| ClientSecret::Variable("PGPASSWORD", word));
        Some(Client { programs: &["psql"], arguments, secret })
    },
    dumping: None,
};

/// The folder of a socket, and the port in its name.
pub(super) fn split_socket(socket: &Path) -> Option<(&Path, &str)> {
    let port = socket.file_name()?.to_str()?.strip_prefix(SOCKET)?;
    port.parse::<u16>().ok()?;
    Some((socket.parent()?, port))
}

/// Whether this is pgbouncer's console, which is a catalog of this name that no server has.
fn is_pgbouncer(endpoint: &Endpoint) -> bool {
    endpoint.catalog == "pgbouncer"
}

fn facts(endpoint: &Endpoint) -> Result<ServerFacts> {
    match is_pgbouncer(endpoint) {
        true => Ok(ServerFacts { product: "pgbouncer".to_owned(), ..ServerFacts::default() }),
        false => facts::ask(endpoint),
    }
}

fn probes(
    connector: Connector,
    endpoint: &Endpoint,
    threads: Option<&ThreadListing>,
) -> Vec<Box<dyn Probe>> {
    match is_pgbouncer(endpoint) {
        true => vec![probe::pgbouncer::probe(connector)],
        false => probe::probes(&connector, threads),
    }
}

fn debt_meter(connector: Connector, endpoint: &Endpoint) -> Result<Box<dyn DebtMeter>, String> {
    match is_pgbouncer(endpoint) {
        true => Err("pgbouncer stores nothing, so it defers no work".to_owned()),
        false => Ok(super::debt::meter(connector)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, is_shaping: bool) {
        let shaping = RUNTIME_SETTINGS.shaping([(name.to_owned(), "1".to_owned())]).unwrap();
        assert_eq!(!shaping.is_empty(), is_shaping, "{name}");
    }

    #[test]
    fn what_shapes_the_files_counts() {
        check("max_wal_size", true);
        check("default_toast_compression", true);
        check("autovacuum", true);
        check("wal_level", true);
        check("a_setting_of_the_next_version", true);
        check("shared_buffers", false);
        check("synchronous_commit", false);
        check("enable_seqscan", false);
        check("jit", false);
    }
}
