//! FerretDB as a product, and MongoDB's protocol.

use dyno_workload::Target;

use super::private::FINDER;
use super::{attached, facts, private, settings};
use crate::error::fail;
use crate::product::{Family, texts};
use crate::protocol::{NO_DEBT, NO_STATEMENTS};
use crate::{Client, DiskUse, Product, ProductSpec, Protocol, SocketKey};

const MIB: u64 = 1 << 20;

pub(crate) const FAMILY: Family =
    Family { protocol: Some(&PROTOCOL), ..Family::of(|| vec![ferretdb()]) };

fn ferretdb() -> Product {
    let words = ["mongodb", "mongo", "mongod", "ferret"];
    let advice = "Dyno starts `ferretdb`, and uses a running MongoDB by its URL: \
                  mongodb://user:password@host:27017/database";
    let spec = ProductSpec {
        target: Target::Documents,
        confused_names: words.map(|word| (word.to_owned(), advice.to_owned())).into(),
        // Documents of 1000 bytes took 1.4 kB each in SQLite (1.24, both indexes included); the rest is an estimate.
        disk: Some(DiskUse { kept: MIB, grown: 0, running: 16 * MIB, log: None, spread: 1.5 }),
        disk_full: texts(["database or disk is full"]),
        refusals: texts(["FerretDB has no setting", "FerretDB does not accept"]),
        ..ProductSpec::new(
            "ferretdb",
            "FerretDB",
            "a private FerretDB, a document store, from the program on this machine",
            None,
        )
    };
    Product {
        data_shape: Box::new(|spec, _| {
            private::check_spec(spec)?;
            fail("data sets of FerretDB are not kept")
        }),
        settings_refusal: Box::new(|given| settings::spelled(given).err().map(|e| e.message)),
        installations: Box::new(|keeper| FINDER.installations(keeper)),
        version_in: Box::new(|programs, keeper| FINDER.version_in(programs, keeper)),
        refused_setting: settings::refused_setting,
        ..Product::new(spec, private::start)
    }
}

pub(crate) static PROTOCOL: Protocol = Protocol {
    name: "mongodb",
    schemes: &["mongodb"],
    example: "mongodb://user:password@host:27017/database",
    dialect: None,
    default_port: 27017,
    socket: SocketKey::of_path("socket"),
    has_server_public_key: false,
    // `authSource=DATABASE`.
    has_session_options: true,
    ping: super::connection::PING,
    blocks_worker: false,
    common_catalog: "admin",
    programs: &["mongod", "mongos", "ferretdb"],
    // Where it lies is not asked: most users may not know it.
    data_folder: super::connection::PING,
    file_kind: private::file_kind,
    thread_group: None,
    connector: super::connector,
    unnamed_connector: super::connector,
    attach: attached::attach,
    facts: |endpoint| facts::ask(endpoint, &mut super::open(endpoint)?),
    probes: |_, _, _| Vec::new(),
    cost_source: |_, _, _| Err(NO_STATEMENTS.to_owned()),
    debt_meter: |_, _| Err(NO_DEBT.to_owned()),
    client: |endpoint, _| {
        let crate::Address::Unix(socket) = &endpoint.address else { return None };
        let socket = socket.to_str()?;
        let encoded = dyno_units::PercentEncoded { bytes: socket.as_bytes(), keep: b"" };
        Some(Client {
            programs: &["mongosh"],
            arguments: vec![format!("mongodb://{encoded}/{}", endpoint.catalog)],
            secret: None,
        })
    },
    dumping: None,
};
