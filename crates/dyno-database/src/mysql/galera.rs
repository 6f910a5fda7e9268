//! Galera clusters of private servers, over ports of the loopback or of several machines' addresses.
//!
//! A joining node needs a copy of the data, made by a script; the server's own scripts open a port to which any local
//! user could write. Dyno's (`state_transfer.sh`) copies files between nodes on one machine. On several machines each
//! node starts on a copy of the data with a note of its position in the cluster; a restarted node finds that out
//! itself, and gets the changes that it missed from the others (`state_transfer_hosts.sh`).

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::fchown;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_host::{Probe, RunAs};
use dyno_units::Nanoseconds;
use dyno_units::reading::prelude::*;
use dyno_workload::{Connection, TextRows};

use super::install::Install;
use super::option_file::normal;
use super::{MySqlConnection, connect, connector, open};
use crate::cluster::{Clustering, Node, NodePorts, NodeState, node_name};
use crate::data::gone;
use crate::error::{Context, Result, fail};
use crate::private::{BeforeStart, ServerControl, ServerFolder};
use crate::probe::{Counters, Item, cell, gauge, numbers_by_name, rate};
use crate::settings::GivenSettings;
use crate::transport::CATALOG_LIMIT;
use crate::{DeployError, Endpoint};

const LIBRARY: &str = "libgalera_smm.so";

const LIBRARY_FOLDERS: [&str; 6] =
    ["lib/galera", "lib64/galera-4", "lib64/galera", "lib/galera-4", "lib", "lib64"];

const TRANSFER: &str = include_str!("state_transfer.sh");

/// The same where the nodes are on several machines: nothing is copied.
const NO_COPY: &str = include_str!("state_transfer_hosts.sh");

/// The file with what a server prints that finds out what it holds of the cluster.
const POSITION_LOG: &str = "position.log";

/// How long it may take to find that out: InnoDB recovers first.
const POSITION_LIMIT: Nanoseconds = Nanoseconds::from_secs(1800);

const POSITION_WORDS: &str = "WSREP: Recovered position: ";

/// The file in which a node finds what its data hold of the cluster.
const STATE_FILE: &str = "grastate.dat";

/// The name by which the server finds it: `wsrep_sst_` and the method.
const TRANSFER_FILE: &str = "wsrep_sst_dyno";

/// Beginnings of options of the library that say where it listens, or that Dyno sets.
const OWN_OPTIONS: [&str; 6] = ["gmcast.", "ist.", "base_", "socket.", "pc.", "evs.use_"];

pub(super) struct Galera;

/// Fails, with what to install, if it is missing.
pub(super) fn library(install: &Install) -> Result<PathBuf> {
    let bases = [install.base.as_path(), Path::new("/usr")].into_iter();
    let mut all = bases
        .flat_map(|base| LIBRARY_FOLDERS.map(|folder| base.join(folder).join(LIBRARY)))
        .filter(|library| library.is_file());
    all.next().ok_or_else(|| {
        DeployError::new(format!(
            "a Galera cluster needs the library {LIBRARY}, which is not on this machine; install it \
             (Debian, Ubuntu: package `galera-4`), or leave `cluster` out"
        ))
    })
}

/// Fails, with the reason, if these programs, engine and settings cannot be a node.
pub(super) fn check(
    install: &Install,
    engine: Option<&str>,
    settings: &GivenSettings,
) -> Result<PathBuf> {
    if !install.is_mariadb() {
        return fail("a Galera cluster needs MariaDB; leave `cluster` out");
    }
    if let Some(engine) = engine.filter(|engine| !engine.eq_ignore_ascii_case("innodb")) {
        return fail(format!(
            "Galera replicates only InnoDB, not {engine}; leave `engine` or `cluster` out"
        ));
    }
    own_options(settings)?;
    library(install)
}

fn own_options(settings: &GivenSettings) -> Result<String> {
    let mut given = settings.iter().filter(|(name, _)| normal(name) == PROVIDER_OPTIONS);
    let Some((_, value)) = given.next() else { return Ok(String::new()) };
    let text = value.to_string();
    for option in text.split(';').map(str::trim) {
        let is_own = OWN_OPTIONS.iter().any(|own| option.starts_with(own));
        if is_own || option.contains(['"', '\\', '\n', '\r']) {
            return fail(format!(
                "`{option}` in {PROVIDER_OPTIONS} is chosen by Dyno for a private cluster: it \
                 determines where the nodes listen and when they form a cluster; leave it out"
            ));
        }
    }
    Ok(text)
}

pub(super) const PROVIDER_OPTIONS: &str = "wsrep_provider_options";

/// Last in the option file, where nothing overrides them. Fails if settings do not fit.
pub(super) fn lines(
    node: &Node,
    (library, data): (&Path, &str),
    settings: &GivenSettings,
) -> Result<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if !data.chars().all(is_plain) {
        return fail(format!(
            "a Galera cluster cannot be in {data}: its path may consist of letters, digits, `/`, `.`, \
             `_` and `-` only; choose another data folder"
        ));
    }
    let ports = node.ports();
    let (number, own) = (node.number, own_options(settings)?);
    // Only those that run: at the port of one that does not, somebody else could ask for the name.
    let others = &node.cluster.ports[..number as usize - 1];
    let others: Vec<String> = others.iter().map(|one| one.of_group().to_string()).collect();
    let NodePorts { address, group, transfer } = ports;
    let separator = if own.is_empty() || own.trim_end().ends_with(';') { "" } else { ";" };
    Ok(format!(
        "binlog_format = ROW\ninnodb_autoinc_lock_mode = 2\nserver_id = {number}\n\
         wsrep_on = ON\nwsrep_provider = {}\nwsrep_cluster_name = {}\nwsrep_node_name = {}\n\
         wsrep_node_address = {address}\nwsrep_cluster_address = gcomm://{}\n\
         wsrep_sst_method = dyno\nwsrep_sst_receive_address = {data}/transfer\n\
         {PROVIDER_OPTIONS} = \"{own}{separator}gmcast.listen_addr=tcp://{address}:{group};base_host={address};\
         base_port={group};ist.recv_addr={address}:{transfer}\"\n",
        library.display(),
        node.cluster.name.reveal(),
        node.name(),
        others.join(","),
    ))
}

/// Writes the script that copies data or, on several machines, the one that does not; returns the environment
/// variable that leads to it. Fails if it cannot be written.
pub(super) fn put_transfer(folder: &ServerFolder, is_on_hosts: bool) -> Result<(String, String)> {
    folder.write_program(TRANSFER_FILE, if is_on_hosts { NO_COPY } else { TRANSFER })?;
    Ok(("PATH".to_owned(), format!("{}:/usr/bin:/bin", folder.path().display())))
}

/// Notes their position in a joining node's data, so that it asks no other node for them. Fails if the note exists
/// or cannot be written.
pub(super) fn put_position(folder: &ServerFolder, node: &Node) -> Result<()> {
    let write = |at: &String| write_position(&folder.data(), folder.keeper().run_as(), at);
    node.joins_at.as_ref().map_or(Ok(()), write)
}

fn write_position(data: &Path, owner: Option<RunAs>, position: &str) -> Result<()> {
    let (uuid, number) = position.rsplit_once(':').unwrap_or((position, "-1"));
    let text = format!(
        "# GALERA saved state\nversion: 2.1\nuuid:    {uuid}\nseqno:   {number}\nsafe_to_bootstrap: 0\n"
    );
    let path = data.join(STATE_FILE);
    let write = || -> io::Result<()> {
        gone(fs::remove_file(&path))?;
        // New, and therefore through no link.
        let mut file = File::create_new(&path)?;
        file.write_all(text.as_bytes())?;
        owner.map_or(Ok(()), |user| fchown(&file, Some(user.uid), Some(user.gid)))
    };
    write().context(format!("cannot write {}", path.display()))
}

/// Without waiting. Fails, with its state, unless the node has joined and sees earlier ones.
pub(super) fn has_joined(connection: &mut MySqlConnection, node: &Node) -> Result<(), String> {
    connection.set_cold_limit(CATALOG_LIMIT.0);
    let rows = connection.query(STATUS).map_err(|error| error.to_string())?;
    let state = state(&rows);
    match state.is_synced && state.size >= node.number {
        true => Ok(()),
        false => Err(format!("it is {}, and sees {} nodes", state.words, state.size)),
    }
}

/// A restarted node joins the others; it is back when it has caught up with them.
pub(super) fn control(
    control: ServerControl,
    (node, data): (&Node, PathBuf),
    endpoint: &Endpoint,
) -> ServerControl {
    let own = node.ports();
    let others = node.cluster.ports.iter().filter(|ports| **ports != own);
    let others: Vec<String> = others.map(|one| one.of_group().to_string()).collect();
    let mut spec = control.spec;
    spec.arguments.push(format!("--wsrep-cluster-address=gcomm://{}", others.join(",")));
    // It copies the data of the last node rather than of the first, which takes the load.
    let numbers = (1..=node.cluster.nodes).rev().filter(|one| *one != node.number);
    let donors: String = numbers.map(|number| format!("{},", node_name(number))).collect();
    spec.arguments.push(format!("--wsrep-sst-donor={donors}"));
    let to = endpoint.clone();
    let isolate = move |is_cut: bool| {
        let mut connection = connect(&to).map_err(|error| error.to_string())?;
        let sql =
            format!("SET GLOBAL wsrep_provider_options = 'gmcast.isolate={}'", u8::from(is_cut));
        connection.query(&sql).map(|_| ()).map_err(|error| error.to_string())
    };
    let endpoint = endpoint.clone();
    let is_back = move || {
        let state = Galera.state(&endpoint).map_err(|error| error.message)?;
        if state.is_synced { Ok(()) } else { Err(format!("it is {}", state.words)) }
    };
    let before_start: Option<BeforeStart> = control.kind.open.is_some().then(|| {
        Arc::new(move |control: &ServerControl| find_position(control, &data)) as BeforeStart
    });
    ServerControl {
        spec,
        before_start,
        is_back: Some(Arc::new(is_back)),
        isolation: Some(Arc::new(isolate)),
        ..control
    }
}

/// Finds the position of an ended server's data and notes it in them: after a crash, the server does not know it
/// when it asks others for what it missed.
fn find_position(control: &ServerControl, data: &Path) -> Result<()> {
    let mut process = control.spec.clone();
    process.arguments.push("--wsrep-recover".to_owned());
    process.log = control.folder.join(POSITION_LOG);
    let keeper = control.place.keeper();
    let failed = "MariaDB cannot find out what the node holds of its cluster (--wsrep-recover)";
    keeper
        .run(&control.folder, &process, control.clock.as_ref(), POSITION_LIMIT)
        .context(failed)?;
    let said = dyno_host::last_lines(&process.log, usize::MAX);
    let position = position_of(&said).ok_or("it does not say").context(failed)?;
    write_position(data, keeper.run_as(), &position)
}

fn position_of(said: &[String]) -> Option<String> {
    let told = said.iter().rev().find_map(|line| Some(line.split_once(POSITION_WORDS)?.1));
    // What follows the number is the domain of its transactions, in newer versions.
    let position = told?.split([',', ' ']).next()?;
    is_position(position).then(|| position.to_owned())
}

/// Whether a text is a position in the history of a cluster, and nothing more: it becomes a line of a file.
fn is_position(text: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_hexdigit() || c == '-';
    text.split_once(':').is_some_and(|(uuid, number)| {
        uuid.len() == 36 && uuid.chars().all(is_digit) && number.parse::<u64>().is_ok()
    })
}

const STATUS: &str = "SHOW GLOBAL STATUS LIKE 'wsrep%'";

fn status(node: &Endpoint) -> Result<TextRows> {
    Ok(open(node)?.query(STATUS)?)
}

fn value<'r>(rows: &'r TextRows, name: &str) -> &'r str {
    let row = rows.iter().find(|row| cell(row, 0) == Some(name));
    row.and_then(|row| cell(row, 1)).unwrap_or_default()
}

fn state(rows: &TextRows) -> NodeState {
    let value = |name: &str| value(rows, name);
    let words = value("wsrep_local_state_comment");
    NodeState {
        is_synced: words == "Synced"
            && value("wsrep_ready") == "ON"
            && value("wsrep_cluster_status") == "Primary",
        size: value("wsrep_cluster_size").parse().unwrap_or_default(),
        committed: value("wsrep_last_committed").parse().unwrap_or_default(),
        words: words.to_owned(),
    }
}

fn position_in(rows: &TextRows) -> Result<String> {
    let uuid = value(rows, "wsrep_cluster_state_uuid");
    let position = format!("{uuid}:{}", state(rows).committed);
    match is_position(&position) {
        true => Ok(position),
        false => fail("the node does not say what it holds of its cluster"),
    }
}

impl Clustering for Galera {
    fn kind(&self) -> &'static str {
        "galera"
    }

    fn position(&self, node: &Endpoint) -> Result<Option<String>> {
        let rows = status(node)?;
        position_in(&rows).map(Some)
    }

    fn state(&self, node: &Endpoint) -> Result<NodeState> {
        Ok(state(&status(node)?))
    }

    fn probe(&self, name: &str, node: &Endpoint) -> Box<dyn Probe> {
        COUNTERS.probe(name, connector(node.clone()))
    }

    fn tables(&self) -> &'static str {
        super::replica::TABLES
    }
}

pub(super) static COUNTERS: Counters = Counters {
    probe: "galera",
    statement: STATUS,
    values: |answer| numbers_by_name(&answer.rows),
    items: ITEMS,
};

#[rustfmt::skip]
const ITEMS: &[Item] = &[
    rate("wsrep_flow_control_paused_ns", reading("galera.*.paused_percent", Percent, "paused by flow control", "share of the time in which the cluster was paused because a node could not keep up").topic(Topic::Instance).worse()).times(1e-7),
    rate("wsrep_local_cert_failures", reading("galera.*.certification_failures_per_s", PerSecond, "certification failures", "transactions of this node that failed at commit because another node had changed the same rows").topic(Topic::Instance).worse()),
    rate("wsrep_local_bf_aborts", reading("galera.*.aborts_per_s", PerSecond, "transactions aborted by other nodes", "transactions of this node that were aborted before their commit because another node had changed the same rows").topic(Topic::Instance).worse()),
    rate("wsrep_replicated_bytes", reading("galera.*.replicated_bytes_per_s", BytesPerSecond, "replicated", "bytes of write sets that this node sent to the others").topic(Topic::Instance)),
    rate("wsrep_received_bytes", reading("galera.*.received_bytes_per_s", BytesPerSecond, "received from other nodes", "bytes of write sets that this node received").topic(Topic::Instance)),
    rate("wsrep_flow_control_sent", reading("galera.*.pauses_asked_per_s", PerSecond, "pauses requested", "times that this node asked the others to wait for it").topic(Topic::Instance).worse()),
    gauge("wsrep_local_recv_queue", reading("galera.*.receive_queue", Count, "receive queue", "write sets that this node has received but not applied").topic(Topic::Instance).worse()),
    gauge("wsrep_cluster_size", reading("galera.*.cluster_size", Count, "nodes seen", "nodes of the cluster that this node sees, itself included").topic(Topic::Instance)),
];

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use dyno_host::Readings;
    use dyno_units::SettingValue;
    use dyno_workload::NamedRows;

    use super::*;
    use crate::Secret;
    use crate::cluster::Cluster;
    use crate::probe::Table;

    fn rows(values: &[(&str, &str)]) -> TextRows {
        values.iter().map(|(a, b)| vec![Some((*a).to_owned()), Some((*b).to_owned())]).collect()
    }

    fn node(number: u32) -> Node {
        let ports = [(11, 12), (21, 22), (31, 32)];
        let address = Ipv4Addr::LOCALHOST;
        let ports = ports.map(|(group, transfer)| NodePorts { address, group, transfer }).into();
        let (name, password) = (Secret::new("hidden"), Secret::new("unused"));
        let cluster = Cluster { name, password, nodes: 3, ports, writes_on_all: true };
        Node { number, cluster, joins_at: None }
    }

    #[test]
    fn a_node_tells_others_a_position_and_nothing_more() {
        let uuid = "6d2a7bb5-c9c1-11f0-9d6a-0242ac110002";
        let told = |uuid: &str| {
            let rows = rows(&[("wsrep_cluster_state_uuid", uuid), ("wsrep_last_committed", "7")]);
            position_in(&rows).map_err(|error| error.message)
        };
        assert_eq!(told(uuid), Ok(format!("{uuid}:7")));
        let forged = "x\nsafe_to_bootstrap: 1\nuuid: 1234567890";
        for bad in ["", &forged[..36], &format!("{uuid}\n")] {
            assert!(told(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_a_server_holds_of_its_cluster_is_found_in_what_it_prints() {
        let check = |line: &str, expected: Option<&str>| {
            let said = ["2026-11-26  7:35:43 0 [Note] Plugin loaded".to_owned(), line.to_owned()];
            assert_eq!(position_of(&said).as_deref(), expected, "{line}");
        };
        let uuid = "f63cb95c-e96b-11f1-83f8-3e328387cc57";
        let line = |position: &str| {
            format!("2026-11-26  7:35:50 0 [Note] WSREP: Recovered position: {position}")
        };
        let position = format!("{uuid}:794");
        check(&line(&position), Some(&position));
        check(&line(&format!("{position},0-1-794")), Some(&position));
        check(&line("00000000-0000-0000-0000-000000000000:-1"), None);
        check("WSREP: nothing", None);
    }

    #[test]
    fn a_node_is_told_of_those_before_it_and_listens_at_the_loopback_only() {
        let text = |number| {
            lines(&node(number), (Path::new("/l.so"), "/d/data"), &GivenSettings::new()).unwrap()
        };
        assert!(text(1).contains("wsrep_cluster_address = gcomm://\n"), "{}", text(1));
        let third = text(3);
        assert!(third.contains("gcomm://127.0.0.1:11,127.0.0.1:21\n"), "{third}");
        assert!(
            third.contains(
                "\"gmcast.listen_addr=tcp://127.0.0.1:31;base_host=127.0.0.1;base_port=31;\
                 ist.recv_addr=127.0.0.1:32\"\n"
            ),
            "{third}"
        );
        assert!(third.contains("wsrep_sst_receive_address = /d/data/transfer\n"), "{third}");
        let odd = lines(&node(1), (Path::new("/l.so"), "/d/a b"), &GivenSettings::new());
        assert!(odd.unwrap_err().message.contains("choose another data folder"));
    }

    #[test]
    fn data_are_copied_only_to_a_node_that_waits_for_them() {
        let (folder, donor) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(folder.path().join("precious"), "x").unwrap();
        let script = donor.path().join("transfer.sh");
        std::fs::write(&script, TRANSFER).unwrap();
        let address = folder.path().display().to_string();
        for address in [format!("{address}/transfer"), address] {
            let mut command = std::process::Command::new("sh");
            command.arg(&script).args(["--role", "donor", "--address", &address, "--bypass"]);
            command.args(["--gtid", "a:1", "--datadir"]).arg(donor.path());
            let output = command.output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{output:?}");
            assert!(String::from_utf8_lossy(&output.stderr).contains("no node waits for data"));
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn options_of_the_library_open_nothing() {
        let text = |options: &str| {
            let value = SettingValue::Text(options.to_owned());
            let settings = [("wsrep-provider-options".to_owned(), value)].into();
            lines(&node(1), (Path::new("/l.so"), "/d/data"), &settings)
                .map_err(|error| error.message)
        };
        let kept = text("gcs.fc_limit=64").unwrap();
        assert!(kept.contains("\"gcs.fc_limit=64;gmcast.listen_addr="), "{kept}");
        for odd in ["gmcast.listen_addr=tcp://0.0.0.0:1", "a=1; ist.recv_bind=x", "x=\"\nport=1"] {
            let error = text(odd).unwrap_err();
            assert!(error.contains("chosen by Dyno"), "{error}");
        }
    }

    #[test]
    fn a_node_that_others_do_not_see_is_not_synced() {
        let check = |comment: &str, status: &str, expected: bool| {
            let found = state(&rows(&[
                ("wsrep_local_state_comment", comment),
                ("wsrep_ready", "ON"),
                ("wsrep_cluster_status", status),
                ("wsrep_cluster_size", "3"),
                ("wsrep_last_committed", "9"),
            ]));
            assert_eq!((found.is_synced, found.size, found.committed), (expected, 3, 9));
        };
        check("Synced", "Primary", true);
        check("Donor/Desynced", "Primary", false);
        check("Synced", "non-Primary", false);
        assert_eq!(state(&rows(&[])), NodeState::default());
    }

    #[test]
    fn counters_are_read_as_rates_of_their_node() {
        let mut table = Table::new(ITEMS);
        let mut read = |second: u64, paused: &str, queue: &str| {
            let mut readings = Readings::new();
            let all = rows(&[
                ("wsrep_flow_control_paused_ns", paused),
                ("wsrep_local_recv_queue", queue),
            ]);
            let answer = NamedRows { columns: Vec::new(), rows: all };
            let now = Nanoseconds::from_secs(second);
            COUNTERS.put(("node-2", &mut table), now, &answer, &mut readings);
            assert!(
                readings.keys().all(|name| COUNTERS.readings().iter().any(|one| one.is_for(name)))
            );
            readings
        };
        let queue = ("galera.node-2.receive_queue".to_owned(), 4.0);
        assert_eq!(read(1, "0", "4"), [queue.clone()].into());
        let paused = ("galera.node-2.paused_percent".to_owned(), 25.0);
        assert_eq!(read(3, "500000000", "4"), [queue.clone(), paused].into());
        // It was started again.
        assert_eq!(read(4, "0", "4"), [queue].into());
    }
}
