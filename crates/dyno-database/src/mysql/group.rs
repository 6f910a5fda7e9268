//! Group replication of private MySQL servers, over ports of the loopback or of their machines' addresses.
//!
//! Members connect to each other's statement port (communication stack `MYSQL`, from 8.0.27 on) and log in as one user:
//! from 127.0.0.1 (on several machines from anywhere), for replication only, with a password made for each group. All
//! members start on the same data.

use std::path::PathBuf;
use std::sync::Arc;

use dyno_host::Probe;
use dyno_units::reading::prelude::*;
use dyno_units::{Clock, Nanoseconds, version_numbers};
use dyno_workload::{Connection, TextRows};

use super::account::Account;
use super::install::Install;
use super::option_file::normal;
use super::replica::{self, Words, failed, send};
use super::{MySqlConnection, connector, open};
use crate::Endpoint;
use crate::cluster::{Clustering, Node, NodeState};
use crate::error::{Result, fail};
use crate::part::REPLICATION_USER;
use crate::private::ServerControl;
use crate::probe::{Counters, Item, cell, gauge, named_numbers, rate};
use crate::settings::GivenSettings;

const PLUGIN: &str = "group_replication.so";

const PREFIX: &str = "group_replication_";

/// The first version whose members log in to each other.
const OLDEST: [u32; 3] = [8, 0, 27];

const ONLINE_LIMIT: Nanoseconds = Nanoseconds::from_secs(120);

const POLL: Nanoseconds = Nanoseconds::from_millis(20);

const START_LIMIT: Nanoseconds = Nanoseconds::from_secs(120);

/// The state of a member that has not joined, and of one that the others have expelled: before its role.
const OFFLINE: &str = "OFFLINE";
const EXPELLED: &str = "ERROR";

pub(super) struct Group;

/// Fails, with the reason, if these programs and engine cannot be a member.
pub(super) fn check(install: &Install, engine: Option<&str>) -> Result<()> {
    let version = &install.version;
    if version_numbers(version)[..] < OLDEST[..] {
        return fail(format!(
            "group replication needs MySQL 8.0.27 or later, and this is {version}"
        ));
    }
    if let Some(engine) = engine.filter(|engine| !engine.eq_ignore_ascii_case("innodb")) {
        return fail(format!(
            "group replication takes InnoDB alone, and not {engine}; leave `engine` or `cluster` out"
        ));
    }
    let usual = || install.base.join("lib/mysql/plugin");
    let folder: PathBuf = install.plugins.clone().unwrap_or_else(usual);
    if folder.join(PLUGIN).is_file() {
        return Ok(());
    }
    fail(format!(
        "group replication needs the plug-in {PLUGIN}, which is not in {}; choose another build of MySQL, or \
         leave `cluster` out",
        folder.display()
    ))
}

/// The last lines of a member's option file, which nothing overrides.
pub(super) fn lines(node: &Node) -> String {
    let (own, number) = (node.ports().of_group(), node.number);
    let (ip, port) = (own.ip(), own.port());
    let seeds = seeds(node);
    let (single, checks) = if node.cluster.writes_on_all { ("OFF", "ON") } else { ("ON", "OFF") };
    // The server initialises its data without plug-ins, and would refuse their variables then.
    format!(
        "server_id = {number}\nskip_networking = OFF\nbind_address = {ip}\nport = {port}\n\
         skip_name_resolve = ON\nreport_host = {ip}\nreport_port = {port}\n\
         plugin_load_add = {PLUGIN}\n\
         loose_group_replication_group_name = {}\nloose_group_replication_start_on_boot = OFF\n\
         loose_group_replication_bootstrap_group = OFF\n\
         loose_group_replication_communication_stack = MYSQL\n\
         loose_group_replication_local_address = {own}\n\
         loose_group_replication_group_seeds = {}\n\
         loose_group_replication_recovery_get_public_key = ON\n\
         loose_group_replication_single_primary_mode = {single}\n\
         loose_group_replication_enforce_update_everywhere_checks = {checks}\n",
        uuid(node.cluster.name.reveal()),
        seeds,
    )
}

fn seeds(node: &Node) -> String {
    let all = node.cluster.ports.iter().map(|one| one.of_group().to_string());
    all.collect::<Vec<String>>().join(",")
}

/// The random name of a cluster, 32 digits, as the server wants it.
fn uuid(name: &str) -> String {
    let part = |from: usize, to: usize| name.get(from..to).unwrap_or_default();
    let parts = [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)];
    parts.map(|(from, to)| part(from, to)).join("-")
}

/// Whether a setting is one of the plug-in, which a server without it does not know.
pub(super) fn is_own_setting(name: &str) -> bool {
    normal(name).trim_start_matches("loose_").starts_with(PREFIX)
}

/// Refuses settings of the plug-in that it does not know: option files mention them for whoever does.
fn check_settings(connection: &mut MySqlConnection, settings: &GivenSettings) -> Result<()> {
    for name in settings.keys().filter(|name| is_own_setting(name)) {
        let bare = normal(name);
        let bare = bare.trim_start_matches("loose_");
        let sql = format!("SHOW GLOBAL VARIABLES WHERE variable_name = '{bare}'");
        let rows = connection.query(&sql)?;
        if rows.is_empty() {
            let version = connection.version();
            return fail(format!("MySQL {version} has no setting `{name}`"));
        }
    }
    Ok(())
}

/// Makes or joins the group, and waits until the server has caught up. Fails if it refuses, a table
/// has no primary key, or it does not catch up.
pub(super) fn join(
    connection: &mut MySqlConnection,
    (node, catalog): (&Node, &str),
    settings: &GivenSettings,
    clock: &dyn Clock,
) -> Result<()> {
    check_settings(connection, settings)?;
    check_keys(connection, catalog)?;
    let words = Words::of(connection)?;
    let password = node.cluster.password.reveal();
    let account = Account {
        name: REPLICATION_USER,
        host: replica::host_of_members(node.ports().address),
        password: &node.cluster.password,
    };
    let rights =
        "REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM ON *.*";
    // The members have the same data, and no transactions of their own yet.
    let before = [words.reset().to_owned(), "SET SESSION sql_log_bin = 0".to_owned()];
    send(connection, &before)?;
    account.make(connection, rights)?;
    let source = format!(
        "CHANGE REPLICATION SOURCE TO SOURCE_USER = '{REPLICATION_USER}', SOURCE_PASSWORD = '{password}' \
         FOR CHANNEL 'group_replication_recovery'"
    );
    send(connection, &[source])?;
    let is_first = node.number == 1;
    if is_first {
        send(connection, &[bootstrap("ON")])?;
    }
    connection.set_cold_limit(START_LIMIT.0);
    connection.query(START).map_err(|error| failed(START, &error))?;
    if is_first {
        send(connection, &[bootstrap("OFF")])?;
    }
    let until = clock.now() + ONLINE_LIMIT;
    loop {
        let state = asked(connection)?;
        if state.is_synced && state.size >= node.number {
            return Ok(());
        }
        if clock.now() >= until {
            return fail(format!(
                "{} does not join its group within {ONLINE_LIMIT}: it is {}, and sees {} members",
                node.name(),
                state.words,
                state.size
            ));
        }
        clock.sleep_until(clock.now() + POLL);
    }
}

const START: &str = "START GROUP_REPLICATION";

const STOP: &str = "STOP GROUP_REPLICATION";

/// An expelled member tries by itself, but only every five minutes; until then it counts as running.
fn ask_to_join(connection: &mut MySqlConnection, state: &NodeState) {
    let is_expelled = state.words.starts_with(EXPELLED);
    connection.set_cold_limit(START_LIMIT.0);
    if is_expelled {
        let _ = connection.query(STOP);
    }
    if is_expelled || state.words.starts_with(OFFLINE) {
        let _ = connection.query(START);
    }
}

fn bootstrap(word: &str) -> String {
    format!("SET GLOBAL group_replication_bootstrap_group = {word}")
}

/// Refuses tables without a primary key, in which the server refuses every change later.
fn check_keys(connection: &mut MySqlConnection, catalog: &str) -> Result<()> {
    let sql = format!(
        "SELECT t.table_name FROM information_schema.tables t LEFT JOIN information_schema.table_constraints c \
         ON c.table_schema = t.table_schema AND c.table_name = t.table_name AND c.constraint_type = 'PRIMARY KEY' \
         WHERE t.table_schema = '{catalog}' AND t.table_type = 'BASE TABLE' AND c.table_name IS NULL ORDER BY 1"
    );
    let rows = connection.query(&sql)?;
    let names: Vec<&str> = rows.iter().filter_map(|row| cell(row, 0)).collect();
    if names.is_empty() {
        return Ok(());
    }
    fail(format!(
        "group replication needs a primary key in each table, and {} has none; choose another workload, or \
         change its options, or leave `cluster` out",
        names.join(", ")
    ))
}

/// A restarted member joins the others; it is back when it has caught up with them.
pub(super) fn control(control: ServerControl, node: &Node, endpoint: &Endpoint) -> ServerControl {
    let mut spec = control.spec;
    spec.arguments.push("--loose-group-replication-start-on-boot=ON".to_owned());
    // On several machines, those that joined after it were not there when it was started.
    spec.arguments.push(format!("--loose-group-replication-group-seeds={}", seeds(node)));
    let endpoint = endpoint.clone();
    let is_back = move || {
        let mut connection = open(&endpoint).map_err(|error| error.message)?;
        let state = asked(&mut connection).map_err(|error| error.message)?;
        if state.is_synced {
            return Ok(());
        }
        // The others refuse a member until they have noticed that it was away.
        ask_to_join(&mut connection, &state);
        Err(format!("it is {}", state.words))
    };
    ServerControl { spec, is_back: Some(Arc::new(is_back)), ..control }
}

const STATE: &str = "SELECT member_state, member_role, (SELECT COUNT(*) FROM \
     performance_schema.replication_group_members WHERE member_state = 'ONLINE'), @@GLOBAL.gtid_executed FROM \
     performance_schema.replication_group_members WHERE member_id IN (@@server_uuid, '')";

fn asked(connection: &mut MySqlConnection) -> Result<NodeState> {
    Ok(state(&connection.query(STATE)?))
}

fn state(rows: &TextRows) -> NodeState {
    let value = |idx: usize| rows.first().and_then(|row| cell(row, idx)).unwrap_or_default();
    let (word, role) = (value(0), value(1));
    NodeState {
        is_synced: word == "ONLINE",
        size: value(2).parse().unwrap_or_default(),
        committed: transactions(value(3)),
        words: format!("{word} {role}").trim().to_owned(),
    }
}

/// How many transactions a set of identifiers has: `a1b2:1-5:7,c3d4:tag:1-2` has eight.
fn transactions(set: &str) -> u64 {
    let interval = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (first.trim().parse::<u64>(), last.trim().parse::<u64>());
        // A tag is no interval.
        first
            .ok()
            .zip(last.ok())
            .map_or(0, |(first, last)| last.saturating_add(1).saturating_sub(first))
    };
    let intervals = set.split(',').flat_map(|one| one.split(':').skip(1)).map(interval);
    intervals.fold(0, u64::saturating_add)
}

impl Clustering for Group {
    fn kind(&self) -> &'static str {
        "group-replication"
    }

    fn starts_on_copies(&self) -> bool {
        true
    }

    fn shares_port(&self) -> bool {
        true
    }

    fn takes_writes(&self) -> Option<&'static str> {
        Some("SELECT @@GLOBAL.super_read_only = 0")
    }

    fn state(&self, node: &Endpoint) -> Result<NodeState> {
        asked(&mut open(node)?)
    }

    fn ask_to_join(&self, node: &Endpoint) {
        // Whoever waits looks again, and says what it was in the end.
        let Ok(mut connection) = open(node) else { return };
        if let Ok(state) = asked(&mut connection) {
            ask_to_join(&mut connection, &state);
        }
    }

    fn probe(&self, name: &str, node: &Endpoint) -> Box<dyn Probe> {
        COUNTERS.probe(name, connector(node.clone()))
    }

    fn tables(&self) -> &'static str {
        replica::TABLES
    }
}

pub(super) static COUNTERS: Counters = Counters {
    probe: "group",
    statement: "SELECT s.count_transactions_in_queue AS check_queue, \
                s.count_transactions_remote_in_applier_queue AS apply_queue, \
                (SELECT COUNT(*) FROM performance_schema.replication_group_members \
                WHERE member_state = 'ONLINE') AS members, m.member_role = 'PRIMARY' AS is_primary, \
                s.count_transactions_local_proposed AS proposed, s.count_transactions_checked AS checked, \
                s.count_conflicts_detected AS conflicts, s.count_transactions_remote_applied AS applied, \
                s.count_transactions_local_rollback AS rolled_back, \
                (SELECT MAX(IF(applying_transaction = '', 0, TIMESTAMPDIFF(MICROSECOND, \
                applying_transaction_original_commit_timestamp, NOW(6)) / 1e6)) \
                FROM performance_schema.replication_applier_status_by_worker \
                WHERE channel_name = 'group_replication_applier') AS lag_s \
                FROM performance_schema.replication_group_member_stats s \
                JOIN performance_schema.replication_group_members m ON m.member_id = s.member_id \
                WHERE s.member_id = @@server_uuid",
    values: named_numbers,
    items: ITEMS,
};

#[rustfmt::skip]
const ITEMS: &[Item] = &[
    gauge("check_queue", reading("group.*.check_queue", Count, "queue of conflict checks", "transactions that wait until this member has checked them for conflicts").topic(Topic::Instance).worse()),
    gauge("apply_queue", reading("group.*.apply_queue", Count, "queue of the applier", "transactions of other members that this member has received and not applied").topic(Topic::Instance).worse()),
    gauge("lag_s", reading("group.*.lag_s", Seconds, "member behind, in time", "how long ago the oldest transaction that this member is applying was committed where it came from; 0 if it applies none").topic(Topic::Instance).worse()),
    gauge("members", reading("group.*.members", Count, "members online", "members of the group that this member sees online, itself included").topic(Topic::Instance)),
    gauge("is_primary", reading("group.*.is_primary", Count, "member is primary", "1 while this member takes writes, else 0").topic(Topic::Instance)),
    rate("proposed", reading("group.*.proposed_per_s", PerSecond, "transactions proposed", "transactions of this member that it sent to the group").topic(Topic::Instance)),
    rate("checked", reading("group.*.checked_per_s", PerSecond, "transactions checked", "transactions of all members that this member checked for conflicts").topic(Topic::Instance)),
    rate("conflicts", reading("group.*.conflicts_per_s", PerSecond, "conflicts", "transactions that this member found in conflict with others").topic(Topic::Instance).worse()),
    rate("applied", reading("group.*.applied_per_s", PerSecond, "transactions applied", "transactions of other members that this member applied").topic(Topic::Instance)),
    rate("rolled_back", reading("group.*.rolled_back_per_s", PerSecond, "transactions rolled back by the group", "transactions of this member that were rolled back after they had been sent to the group").topic(Topic::Instance).worse()),
];

#[cfg(test)]
mod tests {
    use dyno_host::Readings;
    use dyno_workload::NamedRows;

    use super::*;
    use crate::Secret;
    use crate::cluster::{Cluster, NodePorts};
    use crate::probe::Table;

    fn node(number: u32, writes_on_all: bool) -> Node {
        let ports = [(11, 12), (21, 22), (31, 32)];
        let address = std::net::Ipv4Addr::LOCALHOST;
        let ports = ports.map(|(group, transfer)| NodePorts { address, group, transfer }).into();
        let name = Secret::new("0123456789abcdef0123456789abcdef");
        let password = Secret::new("hidden");
        let cluster = Cluster { name, password, nodes: 3, ports, writes_on_all };
        Node { number, cluster, joins_at: None }
    }

    #[test]
    fn a_member_listens_at_the_loopback_only_and_joins_when_it_is_told_to() {
        let text = lines(&node(2, false));
        for line in [
            "bind_address = 127.0.0.1\nport = 21\n",
            "loose_group_replication_group_name = 01234567-89ab-cdef-0123-456789abcdef\n",
            "group_replication_local_address = 127.0.0.1:21\n",
            "group_replication_group_seeds = 127.0.0.1:11,127.0.0.1:21,127.0.0.1:31\n",
            "group_replication_communication_stack = MYSQL\n",
            "group_replication_start_on_boot = OFF\n",
            "group_replication_single_primary_mode = ON\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains("hidden"));
        let all = lines(&node(1, true));
        assert!(all.contains("single_primary_mode = OFF\n"), "{all}");
        assert!(all.contains("enforce_update_everywhere_checks = ON\n"), "{all}");
    }

    #[test]
    fn settings_of_the_plug_in_are_known_by_their_names() {
        let check =
            |name: &str, expected: bool| assert_eq!(is_own_setting(name), expected, "{name}");
        check("group_replication_consistency", true);
        check("loose-group-replication-consistency", true);
        check("group_concat_max_len", false);
    }

    #[test]
    fn transactions_are_counted_from_their_identifiers() {
        let check = |set: &str, expected: u64| assert_eq!(transactions(set), expected, "{set}");
        check("u:0-18446744073709551615,v:1-2", u64::MAX);
        check("", 0);
        check("a1:7", 1);
        check("a1:1-5:7,\nc3:tag:1-2", 8);
        check("a1:1-3:1000001-1000004", 7);
    }

    #[test]
    fn a_member_is_synced_once_it_is_online() {
        let row = |cells: [&str; 4]| vec![cells.map(|cell| Some(cell.to_owned())).to_vec()];
        let found = state(&row(["ONLINE", "SECONDARY", "3", "a1:1-4"]));
        assert_eq!((found.is_synced, found.size, found.committed), (true, 3, 4));
        assert_eq!(found.words, "ONLINE SECONDARY");
        let found = state(&row(["OFFLINE", "", "0", ""]));
        assert!(!found.is_synced && found.words == "OFFLINE");
        assert_eq!(state(&TextRows::new()), NodeState::default());
    }

    #[test]
    fn counters_are_read_as_rates_of_their_member() {
        let mut table = Table::new(ITEMS);
        let mut read = |second: u64, applied: &str| {
            let mut readings = Readings::new();
            let columns = ["apply_queue", "applied", "lag_s"].map(str::to_owned).to_vec();
            let row = ["4", applied, "0.25"];
            let rows = vec![row.map(|cell| Some(cell.to_owned())).to_vec()];
            let answer = NamedRows { columns, rows };
            let now = Nanoseconds::from_secs(second);
            COUNTERS.put(("node-2", &mut table), now, &answer, &mut readings);
            assert!(
                readings.keys().all(|name| COUNTERS.readings().iter().any(|one| one.is_for(name)))
            );
            readings
        };
        let first = read(1, "10");
        assert_eq!((first["group.node-2.apply_queue"], first["group.node-2.lag_s"]), (4.0, 0.25));
        assert!(!first.contains_key("group.node-2.applied_per_s"));
        assert_eq!(read(3, "30")["group.node-2.applied_per_s"], 10.0);
        // It was started again.
        assert!(!read(4, "0").contains_key("group.node-2.applied_per_s"));
    }
}
