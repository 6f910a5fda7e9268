//! MariaDB and MySQL as products, and their protocol.

use dyno_workload::Dialect;

use super::cost::MySqlCost;
use super::install::{self, Brand, MARIADB, MYSQL};
use super::{
    attached, check, files, galera, group, option_file, packages, private, probe, replica, spider,
};
use crate::product::{DumpCommands, DumpOrder, Family, texts};
use crate::{
    Address, Client, ClientSecret, ConnectionLimit, DiskUse, Endpoint, LogUse, Product,
    ProductSpec, Protocol, SocketKey,
};

const MIB: u64 = 1 << 20;

pub(crate) const FAMILY: Family = Family {
    protocol: Some(&PROTOCOL),
    probes: &["mysql", "innodb", "rocksdb", "threads", "galera", "group"],
    readings: &[
        probe::registered,
        || galera::COUNTERS.readings(),
        || group::COUNTERS.readings(),
        || spider::COUNTERS.readings(),
    ],
    ..Family::of(|| vec![mariadb(), mysql()])
};

fn mariadb() -> Product {
    Product {
        packages: packages::mariadb,
        client: |endpoint, version| client(&MARIADB, endpoint, version),
        clustering: Some(&galera::Galera),
        sharding: Some(&spider::Spider),
        ..product(&MARIADB, mariadb_spec())
    }
}

fn mysql() -> Product {
    Product {
        packages: packages::mysql,
        client: |endpoint, version| client(&MYSQL, endpoint, version),
        clustering: Some(&group::Group),
        ..product(&MYSQL, mysql_spec())
    }
}

fn mariadb_spec() -> ProductSpec {
    ProductSpec {
        engines: texts(["InnoDB", "RocksDB", "Aria", "MyISAM"]),
        has_log_folder: true,
        can_be_open: true,
        image_names: &["mariadb"],
        offers: packages::MARIADB_OFFERS,
        connection_limit: Some(ConnectionLimit {
            setting: "max_connections".to_owned(),
            default_clients: 60,
            spare: 30,
        }),
        // Measured with 10.11: system tablespace with undo logs, tables of `mysql` and `sys`;
        // temporary tablespace; redo log.
        disk: Some(DiskUse {
            kept: 18 * MIB,
            grown: 64 * MIB,
            running: 12 * MIB,
            log: Some(LogUse {
                setting: "innodb_log_file_size".to_owned(),
                unit: 1,
                default: 96 * MIB,
                growth: None,
            }),
            spread: 1.3,
        }),
        disk_full: texts(["is full (1114)", "failed with error 28"]),
        refusals: texts([
            "unknown variable",
            "unknown option",
            "ambiguous option",
            "Unknown storage engine",
            "was requested, but the programs on this machine are",
        ]),
        ..ProductSpec::new(
            "mariadb",
            "MariaDB",
            "a private MariaDB server, from the programs on this machine",
            Some(Dialect::MySql),
        )
    }
}

/// As one empty data set of 9.7 looked, where it differs from MariaDB: estimates.
fn mysql_spec() -> ProductSpec {
    let elsewhere = "it is reached by its URL, mysql://user@host:3306/database; `mysql` and `mariadb` \
                     are started by Dyno";
    let words = ["percona", "mysqld"];
    ProductSpec {
        confused_names: words.map(|word| (word.to_owned(), elsewhere.to_owned())).into(),
        engines: texts(["InnoDB", "MyISAM"]),
        image_names: &["mysql", "mysql-server", "community-server", "percona-server", "percona"],
        offers: packages::MYSQL_OFFERS,
        disk: Some(DiskUse {
            kept: 90 * MIB,
            grown: 64 * MIB,
            running: 12 * MIB,
            log: Some(LogUse {
                setting: "innodb_redo_log_capacity".to_owned(),
                unit: 1,
                default: 100 * MIB,
                growth: None,
            }),
            spread: 1.3,
        }),
        name: MYSQL.name.to_owned(),
        title: MYSQL.title.to_owned(),
        summary: "a private MySQL server, from the programs on this machine".to_owned(),
        ..mariadb_spec()
    }
}

fn product(brand: &'static Brand, spec: ProductSpec) -> Product {
    Product {
        data_shape: Box::new(|spec, place| {
            option_file::shape(&install::find_install(spec, place.keeper())?, spec)
        }),
        dump_commands,
        check_settings: Some(|spec, place| check::check_settings(spec, place.keeper())),
        check_vectors: |spec, place| check::check_vectors(spec, place.keeper()),
        installations: Box::new(move |keeper| install::installations(brand, keeper)),
        version_in: Box::new(move |programs, keeper| install::version_in(brand, programs, keeper)),
        replicating: Some(&replica::ByGtid),
        refused_setting: option_file::refused_setting,
        ..Product::new(spec, private::start)
    }
}

fn dump_commands(order: &DumpOrder<'_>) -> Option<DumpCommands> {
    let threads = order.threads;
    // Dyno's own dump has all tables but the list of those that it made.
    Some(DumpCommands {
        dump: format!("$DYNO_PROGRAM dump $DYNO_URL $DYNO_SCRATCH/dump --threads {threads}"),
        restore: format!("$DYNO_PROGRAM restore $DYNO_SCRATCH/dump $DYNO_URL --threads {threads}"),
    })
}

/// Reads no option files of the user, which may name another server.
fn client(brand: &Brand, endpoint: &Endpoint, version: &str) -> Option<Client> {
    let mut arguments = vec!["--no-defaults".to_owned()];
    match &endpoint.address {
        Address::Unix(socket) => arguments.push(format!("--socket={}", socket.display())),
        Address::Tcp { host, port } => {
            arguments.extend(["--protocol=TCP".to_owned(), format!("--host={host}")]);
            arguments.push(format!("--port={port}"));
        }
    }
    arguments.push(format!("--user={}", endpoint.user));
    // Later clients of MariaDB insist on TLS, which the server was started without.
    let has_default_tls = *brand == MARIADB && dyno_units::version_numbers(version) >= vec![11, 4];
    arguments.extend(has_default_tls.then(|| "--skip-ssl".to_owned()));
    arguments.push(endpoint.catalog.clone());
    let programs: &[&str] = if *brand == MARIADB { &["mariadb", "mysql"] } else { &["mysql"] };
    let secret = endpoint.password.clone().map(|word| ClientSecret::Variable("MYSQL_PWD", word));
    Some(Client { programs, arguments, secret })
}

pub static PROTOCOL: Protocol = Protocol {
    name: "mysql",
    schemes: &["mysql", "mariadb"],
    example: "mysql://user:password@host:3306/database",
    dialect: Some(Dialect::MySql),
    default_port: 3306,
    socket: SocketKey::of_path("socket"),
    has_server_public_key: true,
    has_session_options: false,
    ping: "SELECT 1",
    blocks_worker: false,
    common_catalog: "information_schema",
    programs: &["mysqld", "mariadbd"],
    data_folder: "SELECT @@datadir",
    file_kind: files::file_kind,
    thread_group: Some(files::thread_group),
    connector: super::connector,
    unnamed_connector: super::connector,
    attach: attached::attach,
    facts: super::endpoint_facts,
    probes: |connector, _, threads| probe::probes(&connector, threads),
    cost_source: |connection, access, _| Ok(Box::new(MySqlCost::new(connection, access)?)),
    debt_meter: |connector, _| Ok(super::debt::meter(connector)),
    client: |endpoint, version| client(&MARIADB, endpoint, version),
    dumping: Some(&super::dump::BySql),
};
