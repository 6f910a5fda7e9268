//! ClickHouse as a product, and its interface by HTTP as a protocol.

use dyno_workload::Dialect;

use super::programs::{FINDER, PROGRAM};
use super::{attached, connection, facts, files, private, probe, settings};
use crate::data::RuntimeSettings;
use crate::product::{Family, texts};
use crate::protocol::NO_DEBT;
use crate::settings::Words;
use crate::{
    Address, Client, ClientSecret, ConnectionLimit, DiskUse, Product, ProductSpec, Protocol,
    SocketKey,
};

const MIB: u64 = 1 << 20;

pub(crate) const FAMILY: Family = Family {
    protocol: Some(&PROTOCOL),
    probes: &["clickhouse"],
    readings: &[|| probe::COUNTERS.readings()],
    ..Family::of(|| vec![clickhouse()])
};

/// Settings that leave no trace in the files of a server that was stopped in order.
const RUNTIME_SETTINGS: RuntimeSettings = RuntimeSettings {
    names: Words(
        "log_queries mark_cache_size max_block_size max_concurrent_queries max_connections \
         max_execution_time max_memory_usage max_memory_usage_for_all_queries \
         max_memory_usage_for_user max_threads uncompressed_cache_size use_uncompressed_cache",
    ),
    beginnings: Words(""),
};

fn clickhouse() -> Product {
    let words = ["click", "ch", "click_house"];
    let advice = "did you mean `clickhouse`?";
    let spec = ProductSpec {
        confused_names: words.map(|word| (word.to_owned(), advice.to_owned())).into(),
        connection_limit: Some(ConnectionLimit {
            setting: "max_connections".to_owned(),
            default_clients: 990,
            spare: 34,
        }),
        // Measured with 18.16: an empty server; parts that merges read and write at the same time.
        disk: Some(DiskUse { kept: MIB, grown: 0, running: 16 * MIB, log: None, spread: 1.5 }),
        disk_full: texts(["Cannot reserve", "No space left on device"]),
        refusals: texts([
            "Unknown setting",
            "ClickHouse has no setting",
            "ClickHouse does not accept",
        ]),
        ..ProductSpec::new(
            "clickhouse",
            "ClickHouse",
            "a private ClickHouse server, from the program on this machine",
            Some(Dialect::ClickHouse),
        )
    };
    Product {
        data_shape: Box::new(|spec, place| {
            private::check_spec(spec)?;
            let installation = FINDER.find(spec, place.keeper())?;
            let program = installation.programs.join(PROGRAM);
            RUNTIME_SETTINGS.shape(spec, (&program, &*installation.version), |name, value| {
                Ok((name.to_owned(), settings::spelled_one(name, value)?))
            })
        }),
        settings_refusal: Box::new(|given| settings::spelled(given).err().map(|e| e.message)),
        installations: Box::new(|keeper| FINDER.installations(keeper)),
        version_in: Box::new(|programs, keeper| FINDER.version_in(programs, keeper)),
        refused_setting: settings::refused_setting,
        ..Product::new(spec, private::start)
    }
}

pub(crate) static PROTOCOL: Protocol = Protocol {
    name: "clickhouse",
    schemes: &["clickhouse"],
    example: "clickhouse://user:password@host:8123/database",
    dialect: Some(Dialect::ClickHouse),
    default_port: 8123,
    socket: SocketKey::of_path("socket"),
    has_server_public_key: false,
    has_session_options: false,
    ping: "SELECT 1",
    blocks_worker: true,
    common_catalog: "default",
    programs: &["clickhouse-serv", "clickhouse"],
    data_folder: "SELECT replaceRegexpOne(data_path, 'data/default/$', '') FROM system.databases \
                  WHERE name = 'default'",
    file_kind: files::file_kind,
    thread_group: Some(files::thread_group),
    connector: |endpoint| connection::connector(endpoint, None),
    unnamed_connector: |endpoint| connection::connector(endpoint, None),
    attach: attached::attach,
    facts: |endpoint| facts::ask(endpoint, &mut attached::open(endpoint)?),
    probes: |connector, _, _| probe::probes(connector),
    cost_source: |_, _, _| {
        Err("Dyno does not read what ClickHouse counts for a statement".to_owned())
    },
    debt_meter: |_, _| Err(NO_DEBT.to_owned()),
    client: |endpoint, _| {
        let Address::Tcp { host, port } = &endpoint.address else { return None };
        let text = settings::of_client(endpoint)?;
        Some(Client {
            programs: &["clickhouse-client", "clickhouse client"],
            arguments: vec![
                format!("--host={host}"),
                format!("--port={port}"),
                format!("--user={}", endpoint.user),
                format!("--database={}", endpoint.catalog),
            ],
            secret: Some(ClientSecret::File { ending: ".xml", text, argument: "--config-file=" }),
        })
    },
    dumping: None,
};
