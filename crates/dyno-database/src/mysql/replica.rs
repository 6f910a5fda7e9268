//! Replication of private servers by global transaction ids, over a loopback port: MariaDB and MySQL do not replicate
//! over sockets.
//!
//! On that port the primary admits one user, from 127.0.0.1 and only for replication, with a password that passes only
//! through the sockets of primary and replica. On several machines it is the address and port for clients, and the user
//! may come from anywhere. All others log in from `localhost`, which means the socket as long as names are not
//! resolved.

use std::fs;
use std::net::Ipv4Addr;
use std::sync::Arc;

use dyno_units::{Clock, Nanoseconds, version_numbers};
use dyno_workload::{Connection, StatementError, TextRows};

use super::account::{Account, caches_passwords};
use super::{MySqlConnection, connector, open};
use crate::data::gone;
use crate::error::{Context, Result, fail};
use crate::part::{
    CLIENT_USER, Follow, Lag, LagMeter, Listening, PROMOTION_LIMIT, Part, REPLICATION_USER,
    Replicating, Replication, not_promoted,
};
use crate::private::{self, NO_PORTS, Ports, ServerControl, ServerFolder};
use crate::probe::{Asker, cell, number};
use crate::transport::CATALOG_LIMIT;
use crate::{DeployError, Endpoint, NodePorts, ReplicationMode, Secret};

/// In ms, the maximum of all versions: then commits stop waiting, and are counted.
const WAIT_LIMIT_MS: u32 = 3_600_000;

/// The oldest MySQL whose statements these are.
const MYSQL_OLDEST: [u32; 3] = [8, 0, 26];

/// The oldest MariaDB that waits for replicas without a plug-in.
const MARIADB_WAITS: [u32; 2] = [10, 3];

/// The file with the id that MySQL gives a server.
const IDENTITY_FILE: &str = "auto.cnf";

/// Whether initial data's file must be a server's own: its id, or MySQL's keys and certificates, which it makes again
/// at the start.
pub(super) fn is_own(name: &str) -> bool {
    name == IDENTITY_FILE || name.ends_with(".pem")
}

/// Dyno's settings for a part differ only in names, numbers and addresses.
pub(super) fn part_word(part: &Part) -> &'static str {
    match part {
        Part::Alone => "alone",
        Part::Primary(_) => "primary",
        Part::Replica(_) => "replica",
        Part::Node(_) => "node",
        Part::Router => "router",
    }
}

pub(super) const TABLES: &str = "SELECT CONCAT('`', REPLACE(table_name, '`', '``'), '`') FROM information_schema.tables \
     WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' ORDER BY table_name";

pub(super) struct ByGtid;

pub(super) struct Words {
    is_mariadb: bool,
    version: Vec<u32>,
}

impl Words {
    pub(super) fn of(connection: &MySqlConnection) -> Result<Words> {
        let text = connection.version();
        let words = Words { is_mariadb: text.contains("MariaDB"), version: version_numbers(text) };
        if !words.is_mariadb && words.version < MYSQL_OLDEST.to_vec() {
            return fail(format!(
                "replicas of MySQL need version 8.0.26 or later, but this is {text}"
            ));
        }
        Ok(words)
    }

    /// Empties the binary log, and forgets all transactions.
    pub(super) fn reset(&self) -> &'static str {
        if self.is_mariadb || self.version < vec![8, 4] {
            "RESET MASTER"
        } else {
            "RESET BINARY LOGS AND GTIDS"
        }
    }

    fn follow(&self, replication: &Replication) -> Vec<String> {
        let (host, port) = (replication.address.ip(), replication.address.port());
        let password = replication.password.reveal();
        let is_waited_for = replication.mode == ReplicationMode::Synchronous;
        let mut all = Vec::new();
        if self.is_mariadb {
            let options = format!(
                "MASTER_HOST = '{host}', MASTER_PORT = {port}, MASTER_USER = '{REPLICATION_USER}', \
                 MASTER_PASSWORD = '{password}', MASTER_USE_GTID = slave_pos, MASTER_SSL = 0, \
                 MASTER_CONNECT_RETRY = 1"
            );
            all.extend(["SET GLOBAL gtid_slave_pos = ''".to_owned()]);
            all.extend(
                is_waited_for.then(|| "SET GLOBAL rpl_semi_sync_slave_enabled = ON".to_owned()),
            );
            all.extend([format!("CHANGE MASTER TO {options}"), "START SLAVE".to_owned()]);
            return all;
        }
        all.push(self.reset().to_owned());
        if is_waited_for {
            all.push(plugin("replica"));
            all.push("SET GLOBAL rpl_semi_sync_replica_enabled = ON".to_owned());
        }
        all.push(format!(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{host}', SOURCE_PORT = {port}, SOURCE_USER = \
             '{REPLICATION_USER}', SOURCE_PASSWORD = '{password}', SOURCE_AUTO_POSITION = 1, \
             GET_SOURCE_PUBLIC_KEY = 1, SOURCE_CONNECT_RETRY = 1"
        ));
        all.push("START REPLICA".to_owned());
        all
    }

    fn wait(&self) -> Vec<String> {
        let word = self.primary_word();
        vec![
            format!("SET GLOBAL rpl_semi_sync_{word}_timeout = {WAIT_LIMIT_MS}"),
            format!("SET GLOBAL rpl_semi_sync_{word}_enabled = ON"),
        ]
    }

    fn stop_receiving(&self) -> &'static str {
        if self.is_mariadb { "STOP SLAVE IO_THREAD" } else { "STOP REPLICA IO_THREAD" }
    }

    /// The statement that answers 0 as soon as a replica has applied these transactions.
    fn wait_until_applied(&self, gtids: &str) -> String {
        let limit = PROMOTION_LIMIT.as_secs_f64();
        match self.is_mariadb {
            true => format!("SELECT MASTER_GTID_WAIT('{gtids}', {limit})"),
            false => format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{gtids}', {limit})"),
        }
    }

    fn lead(&self) -> Vec<String> {
        let statements = match self.is_mariadb {
            true => ["STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only = OFF"],
            false => ["STOP REPLICA", "RESET REPLICA ALL", "SET GLOBAL read_only = OFF"],
        };
        statements.map(str::to_owned).into()
    }

    fn primary_word(&self) -> &'static str {
        if self.is_mariadb { "master" } else { "source" }
    }
}

fn plugin(side: &str) -> String {
    format!("INSTALL PLUGIN rpl_semi_sync_{side} SONAME 'semisync_{side}.so'")
}

/// Lines of the option file of a server with this part, which come before the study's.
pub(super) fn lines_before(part: &Part, is_mariadb: bool) -> &'static str {
    match (part, is_mariadb) {
        (Part::Alone | Part::Node(_), true) => "",
        (Part::Router, true) => "plugin_load_add = ha_spider\n",
        (Part::Alone | Part::Router, false) => "disable_log_bin\n",
        (Part::Node(_), false) => {
            "log_bin = binlog\ngtid_mode = ON\nenforce_gtid_consistency = ON\nrelay_log = relay-bin\n"
        }
        (Part::Primary(_), true) => "log_bin = binlog\nbinlog_format = ROW\n",
        (Part::Primary(_), false) => {
            "log_bin = binlog\ngtid_mode = ON\nenforce_gtid_consistency = ON\n"
        }
        (Part::Replica(_), true) => "skip_slave_start\nread_only = ON\nrelay_log = relay-bin\n",
        (Part::Replica(_), false) => {
            "disable_log_bin\ngtid_mode = ON\nenforce_gtid_consistency = ON\nskip_replica_start\n\
             read_only = ON\nrelay_log = relay-bin\n"
        }
    }
}

/// Its last lines, which nothing overrides: where it listens, and its number.
pub(super) fn lines_after(part: &Part, open: Option<&Listening>) -> String {
    let number = match part {
        Part::Primary(_) => "server_id = 1\n".to_owned(),
        Part::Replica(Follow { number, .. }) => format!("server_id = {}\n", number + 1),
        Part::Alone | Part::Node(_) | Part::Router => String::new(),
    };
    number + &network_lines(part, open)
}

/// Where it listens: for clients on other machines, or for its replicas, or nowhere.
pub(super) fn network_lines(part: &Part, open: Option<&Listening>) -> String {
    let address = match (open, part) {
        (Some(open), _) => open.address,
        (None, Part::Primary(replication)) => replication.address,
        (None, _) => return "skip_networking = ON\n".to_owned(),
    };
    // Names that are resolved would make 127.0.0.1 the `localhost` of the user without a password.
    format!(
        "skip_networking = OFF\nbind_address = {}\nport = {}\nskip_name_resolve = ON\n",
        address.ip(),
        address.port()
    )
}

pub(super) fn ports(part: &Part) -> Ports {
    match part {
        Part::Primary(Replication { address, .. }) => {
            private::ports_of(*address.ip(), &[address.port()])
        }
        Part::Node(node) => {
            let NodePorts { address, group, transfer } = node.ports();
            private::ports_of(address, &[group, transfer])
        }
        Part::Alone | Part::Replica(_) | Part::Router => NO_PORTS,
    }
}

/// Forgets in copied data who their server was: MySQL refuses a replica with the id of its primary.
pub(super) fn forget_identity(folder: &ServerFolder, part: &Part) -> Result<()> {
    if !matches!(part, Part::Replica(_) | Part::Node(_)) {
        return Ok(());
    }
    let path = folder.data().join(IDENTITY_FILE);
    gone(fs::remove_file(&path)).context(format!("{} cannot be removed", path.display()))
}

/// Lets a server that is up follow its primary, if that is its part.
pub(super) fn follow(connection: &mut MySqlConnection, part: &Part) -> Result<()> {
    let Part::Replica(follow) = part else { return Ok(()) };
    let words = Words::of(connection)?;
    send(connection, &words.follow(&follow.replication)).map_err(of_replication)
}

/// Admits clients on other machines. A server that starts on another member's data has the account from there.
pub(super) fn admit(
    connection: &mut MySqlConnection,
    socket: &Endpoint,
    (part, open): (&Part, Option<&Listening>),
) -> Result<()> {
    let Some(listening) = open else { return Ok(()) };
    let account = Account { name: CLIENT_USER, host: "%", password: &listening.password };
    let has_account = match part {
        Part::Replica(_) => true,
        Part::Node(node) => node.number > 1,
        _ => false,
    };
    let made = match has_account {
        true => Ok(()),
        // Of a server that was open before, the account is there with another password.
        false => account.make(connection, "ALL ON *.*"),
    };
    let known = made.and_then(|()| match is_told(connection) {
        true => account.remember(socket),
        false => Ok(()),
    });
    known.context("clients on other machines cannot be admitted")
}

/// Whether a server has to be told of the password of clients on other machines each time it is started.
pub(super) fn is_told(connection: &MySqlConnection) -> bool {
    caches_passwords(connection.version())
}

/// For servers that clients on other machines log in to: a restarted one gets their password before it counts as back.
pub(super) fn told(control: ServerControl, socket: &Endpoint, password: &Secret) -> ServerControl {
    let (before, socket, password) = (control.is_back.clone(), socket.clone(), password.clone());
    let is_back = move || {
        let account = Account { name: CLIENT_USER, host: "%", password: &password };
        account.remember(&socket).map_err(|error| error.message)?;
        before.as_ref().map_or(Ok(()), |before| before())
    };
    ServerControl { is_back: Some(Arc::new(is_back)), ..control }
}

/// Sends statements of which an error quotes no text: it may hold the password.
pub(super) fn send(connection: &mut MySqlConnection, statements: &[String]) -> Result<()> {
    connection.set_cold_limit(CATALOG_LIMIT.0);
    for statement in statements {
        connection.query(statement).map_err(|error| failed(statement, &error))?;
    }
    Ok(())
}

/// The error of a statement, of which only the first two words are quoted.
pub(super) fn failed(statement: &str, error: &StatementError) -> DeployError {
    let words: Vec<&str> = statement.split_whitespace().take(2).collect();
    let what = words.join(" ");
    DeployError::new(format!("{what} …: error {}", error.code))
}

/// From where members that are reached at this address log in to each other.
pub(super) fn host_of_members(address: Ipv4Addr) -> &'static str {
    if address.is_loopback() { "127.0.0.1" } else { "%" }
}

fn of_replication(error: DeployError) -> DeployError {
    DeployError::new(format!("replication cannot be set up: {error}"))
}

impl Replicating for ByGtid {
    fn lead(&self, primary: &Endpoint, replication: &Replication) -> Result<()> {
        let mut connection = open(primary)?;
        let words = Words::of(&connection)?;
        if replication.mode == ReplicationMode::Synchronous
            && words.is_mariadb
            && words.version < MARIADB_WAITS.to_vec()
        {
            return fail(
                "replication = \"synchronous\" needs MariaDB 10.3 or later; choose \"asynchronous\"",
            );
        }
        let account = Account {
            name: REPLICATION_USER,
            host: host_of_members(*replication.address.ip()),
            password: &replication.password,
        };
        // The user is not replicated: it is of this server alone.
        let before = [words.reset().to_owned(), "SET SESSION sql_log_bin = 0".to_owned()];
        // A replica asks when it connects whether its primary could wait for it.
        let needs_plugin = replication.mode == ReplicationMode::Synchronous && !words.is_mariadb;
        let plugin: Vec<String> = needs_plugin.then(|| plugin("source")).into_iter().collect();
        send(&mut connection, &before)
            .and_then(|()| account.make(&mut connection, "REPLICATION SLAVE ON *.*"))
            .and_then(|()| send(&mut connection, &plugin))
            .map_err(of_replication)
    }

    fn wait_for_replicas(&self, primary: &Endpoint) -> Result<()> {
        let mut connection = open(primary)?;
        let statements = Words::of(&connection)?.wait();
        send(&mut connection, &statements).map_err(of_replication)
    }

    fn unacknowledged(&self, primary: &Endpoint) -> Result<Option<u64>> {
        let mut connection = open(primary)?;
        let word = Words::of(&connection)?.primary_word();
        let name = format!("Rpl_semi_sync_{word}_no_tx");
        let sql = format!("SHOW GLOBAL STATUS LIKE '{name}'");
        let rows = connection.query(&sql).map_err(|error| of_replication(failed(&sql, &error)))?;
        let count = rows.first().and_then(|row| cell(row, 1)?.parse().ok());
        let missing = || DeployError::new(format!("the primary does not report {name}"));
        count.map(Some).ok_or_else(missing)
    }

    fn received(&self, replica: &Endpoint) -> Result<u64> {
        let mut connection = open(replica)?;
        let words = Words::of(&connection)?;
        Ok(last_number(&received(&mut connection, &words)?))
    }

    fn promote(&self, replica: &Endpoint, _: &dyn Clock) -> Result<()> {
        let mut connection = open(replica)?;
        let words = Words::of(&connection)?;
        // The thread that applies goes on: what was received is applied first.
        send(&mut connection, &[words.stop_receiving().to_owned()]).map_err(not_promoted)?;
        let gtids = received(&mut connection, &words)?;
        if !gtids.is_empty() {
            let wait = words.wait_until_applied(&gtids);
            connection.set_cold_limit((PROMOTION_LIMIT + CATALOG_LIMIT).0);
            let rows =
                connection.query(&wait).map_err(|error| not_promoted(failed(&wait, &error)))?;
            if rows.first().and_then(|row| cell(row, 0)) != Some("0") {
                let why = format!("it has not applied {gtids} after {PROMOTION_LIMIT}");
                return Err(not_promoted(why));
            }
        }
        send(&mut connection, &words.lead()).map_err(not_promoted)
    }

    fn lag_meter(&self, follow: &Follow, replica: &Endpoint) -> Box<dyn LagMeter> {
        Box::new(LogLag {
            primary: Asker::new(connector(follow.primary.clone())),
            replica: Asker::new(connector(replica.clone())),
            status: None,
        })
    }

    fn tables(&self) -> &'static str {
        TABLES
    }
}

/// The transactions that a replica has received whole, as global transaction ids; empty if there are none.
fn received(connection: &mut MySqlConnection, words: &Words) -> Result<String> {
    let told = |sql: &str, error: &StatementError| not_promoted(failed(sql, error));
    if words.is_mariadb {
        let sql = STATUS[1];
        let found = connection.query_named(sql).map_err(|error| told(sql, &error))?;
        let place = found.columns.iter().position(|name| name == "Gtid_IO_Pos");
        let value = place.and_then(|place| cell(found.rows.first()?, place));
        return Ok(value.unwrap_or_default().to_owned());
    }
    let sql = "SELECT received_transaction_set FROM performance_schema.replication_connection_status \
               WHERE channel_name = ''";
    let rows = connection.query(sql).map_err(|error| told(sql, &error))?;
    let value = rows.first().and_then(|row| cell(row, 0)).unwrap_or_default();
    Ok(value.split_whitespace().collect())
}

/// The number of the last transaction: of `0-1-17`, and of `…:1-17`.
fn last_number(gtids: &str) -> u64 {
    let digits = gtids.rsplit(|c: char| !c.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or_default()
}

/// What a replica says of itself, measured against the primary's binary log.
struct LogLag {
    primary: Asker,
    replica: Asker,
    status: Option<&'static str>,
}

/// The statements that ask a replica, the newer one first.
const STATUS: [&str; 2] = ["SHOW REPLICA STATUS", "SHOW SLAVE STATUS"];

impl LagMeter for LogLag {
    fn read(&mut self, now: Nanoseconds) -> Result<Lag, String> {
        let answer = match self.status {
            Some(sql) => self.replica.answer(now, sql)?,
            None => {
                let newer = self.replica.answer(now, STATUS[0]);
                let is_newer = newer.is_ok();
                let answer = newer.or_else(|_| self.replica.answer(now, STATUS[1]))?;
                self.status = Some(STATUS[usize::from(!is_newer)]);
                answer
            }
        };
        let Some(row) = answer.rows.first() else {
            return Ok(Lag { reason: "it does not follow a primary".to_owned(), ..Lag::default() });
        };
        let values: Vec<(&str, &str)> = (answer.columns.iter().map(String::as_str))
            .zip(row.iter().map(|cell| cell.as_deref().unwrap_or_default()))
            .collect();
        // After the replica, so that what it has applied is never more than there is.
        let logs = self.primary.rows(now, "SHOW BINARY LOGS").unwrap_or_default();
        Ok(lag_of(&values, &logs))
    }
}

fn lag_of(status: &[(&str, &str)], logs: &TextRows) -> Lag {
    let value = |names: [&str; 2]| {
        let found = status.iter().find(|(name, _)| names.contains(name));
        found.map_or("", |(_, value)| *value)
    };
    let receives = value(["Slave_IO_Running", "Replica_IO_Running"]);
    let applies = value(["Slave_SQL_Running", "Replica_SQL_Running"]);
    let is_streaming = receives == "Yes" && applies == "Yes";
    let errors = [value(["Last_IO_Error", ""]), value(["Last_SQL_Error", ""])];
    let errors: Vec<&str> = errors.into_iter().filter(|error| !error.is_empty()).collect();
    let reason = match (is_streaming, errors.is_empty()) {
        (true, _) => String::new(),
        (false, false) => errors.join("; "),
        (false, true) => format!("receiving: {receives}, applying: {applies}"),
    };
    let file = value(["Relay_Master_Log_File", "Relay_Source_Log_File"]);
    let position = number(value(["Exec_Master_Log_Pos", "Exec_Source_Log_Pos"]));
    Lag {
        is_streaming,
        reason,
        bytes: position.and_then(|position| bytes_behind(logs, file, position)),
        seconds: number(value(["Seconds_Behind_Master", "Seconds_Behind_Source"])),
    }
}

/// Bytes of the primary's logs after a position in one of them; none if that one is not there.
fn bytes_behind(logs: &TextRows, file: &str, position: f64) -> Option<f64> {
    // Before anything came, a replica names no file: it begins with the first.
    let first = match file {
        "" => 0,
        file => logs.iter().position(|row| cell(row, 0) == Some(file))?,
    };
    let sizes = logs[first..].iter().map(|row| number(cell(row, 1)?));
    let total: f64 = sizes.sum::<Option<f64>>()?;
    (!logs.is_empty()).then(|| (total - position).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Address, Secret, TlsMode};

    fn replication(mode: ReplicationMode) -> Replication {
        let address = "127.0.0.1:4711".parse().expect("it is an address");
        Replication { replicas: 2, mode, address, password: Secret::new("hidden") }
    }

    fn replica(number: u32) -> Part {
        let primary = Endpoint {
            protocol: &crate::mysql::PROTOCOL,
            address: Address::Unix("/d/run/server.sock".into()),
            user: "root".to_owned(),
            password: None,
            catalog: "dyno".to_owned(),
            tls: TlsMode::Off,
            server_public_key: None,
            session_options: None,
        };
        let replication = replication(ReplicationMode::Asynchronous);
        Part::Replica(Follow { number, primary, replication })
    }

    #[test]
    fn only_a_primary_listens_and_only_at_the_loopback() {
        let primary = Part::Primary(replication(ReplicationMode::Asynchronous));
        assert_eq!(
            lines_after(&primary, None),
            "server_id = 1\nskip_networking = OFF\nbind_address = 127.0.0.1\nport = 4711\n\
             skip_name_resolve = ON\n"
        );
        assert_eq!(lines_after(&replica(2), None), "server_id = 3\nskip_networking = ON\n");
        assert_eq!(lines_after(&Part::Alone, None), "skip_networking = ON\n");
        let ports = [&primary, &replica(1), &Part::Alone].map(ports);
        assert_eq!(ports, [private::ports(&[4711]), NO_PORTS, NO_PORTS]);
        for part in [primary, replica(1), Part::Alone] {
            let text = lines_before(&part, true).to_owned() + &lines_after(&part, None);
            assert!(!text.contains("hidden"), "{text}");
        }
    }

    #[test]
    fn each_version_is_spoken_to_in_its_own_words() {
        let words = |is_mariadb, version: &[u32]| Words { is_mariadb, version: version.to_vec() };
        let text = |words: Words, mode| words.follow(&replication(mode)).join("\n");
        let mariadb = text(words(true, &[10, 11, 6]), ReplicationMode::Asynchronous);
        assert!(mariadb.contains("MASTER_USE_GTID = slave_pos"), "{mariadb}");
        assert!(!mariadb.contains("semi_sync"), "{mariadb}");
        let mysql = text(words(false, &[9, 7]), ReplicationMode::Synchronous);
        assert!(mysql.starts_with("RESET BINARY LOGS AND GTIDS\nINSTALL PLUGIN"), "{mysql}");
        assert!(mysql.contains("SOURCE_AUTO_POSITION = 1"), "{mysql}");
        assert_eq!(words(false, &[8, 0, 36]).reset(), "RESET MASTER");
        assert_eq!(
            words(true, &[10, 11]).wait_until_applied("0-1-7"),
            "SELECT MASTER_GTID_WAIT('0-1-7', 600)"
        );
        assert_eq!(words(false, &[9, 7]).lead()[1], "RESET REPLICA ALL");
        assert_eq!(words(true, &[11, 8]).wait().len(), 2);
    }

    #[test]
    fn the_last_transaction_has_a_number() {
        let check =
            |gtids: &str, expected: u64| assert_eq!(last_number(gtids), expected, "{gtids}");
        check("0-1-17", 17);
        check("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-23", 23);
        check("3e11fa47-71ca-11e1-9e33-c80aa9429562:5", 5);
        check("", 0);
    }

    #[test]
    fn an_error_quotes_no_password() {
        let error =
            StatementError::new(dyno_workload::ErrorClass::Refused, "1064", "near 'hidden'");
        let statement = "CREATE USER 'x' IDENTIFIED BY 'hidden'";
        let text = of_replication(failed(statement, &error)).message;
        assert_eq!(text, "replication cannot be set up: CREATE USER …: error 1064");
    }

    #[test]
    fn the_lag_is_read_from_both_sides() {
        let logs = |pairs: &[(&str, &str)]| -> TextRows {
            let row = |(name, size): &(&str, &str)| {
                vec![Some((*name).to_owned()), Some((*size).to_owned())]
            };
            pairs.iter().map(row).collect()
        };
        let two = logs(&[("binlog.000001", "1000"), ("binlog.000002", "300")]);
        let check = |file: &str, position: f64, expected: Option<f64>| {
            assert_eq!(bytes_behind(&two, file, position), expected, "{file} {position}");
        };
        check("binlog.000001", 900.0, Some(400.0));
        check("binlog.000002", 300.0, Some(0.0));
        check("binlog.000003", 4.0, None);
        check("", 0.0, Some(1300.0));
        assert_eq!(bytes_behind(&Vec::new(), "", 0.0), None);

        let status = [
            ("Slave_IO_Running", "Yes"),
            ("Slave_SQL_Running", "Yes"),
            ("Relay_Master_Log_File", "binlog.000002"),
            ("Exec_Master_Log_Pos", "300"),
            ("Seconds_Behind_Master", "0"),
        ];
        let caught_up = lag_of(&status, &two);
        assert!(caught_up.is_caught_up(), "{caught_up:?}");
        assert_eq!(caught_up.seconds, Some(0.0));
        let broken = [
            ("Replica_IO_Running", "Connecting"),
            ("Replica_SQL_Running", "Yes"),
            ("Last_IO_Error", "no route"),
        ];
        let lag = lag_of(&broken, &two);
        assert_eq!((lag.is_streaming, lag.reason.as_str()), (false, "no route"));
    }
}
