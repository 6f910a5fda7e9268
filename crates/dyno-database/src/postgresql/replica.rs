//! Streaming replication of private servers, over the primary's socket, or over its address for clients on other
//! machines.
//!
//! The primary admits one more user there, only for replication, with a password (SCRAM from 10 on, MD5 before). The
//! replica reads it from a file that only the servers' user can read; it is in no command line, environment or log.
//! Data come by `pg_basebackup`, and a slot keeps the log that a replica still needs.

use std::path::Path;
use std::sync::Arc;

use dyno_host::ProcessSpec;
use dyno_units::{Clock, Nanoseconds};
use dyno_workload::{Connection, TextRows};

use super::{PgConnection, connect, connector, settings};
use crate::error::{Context, Result, fail};
use crate::part::{
    CLIENT_USER, Follow, Lag, LagMeter, Listening, PROMOTION_LIMIT, PROMOTION_POLL, Part,
    REPLICATION_USER, Replicating, Replication, not_promoted,
};
use crate::private::ServerFolder;
use crate::probe::{Asker, cell, number};
use crate::transport::CATALOG_LIMIT;
use crate::{Address, Endpoint, Installation, Secret, scram};

const COPY_LIMIT: Nanoseconds = Nanoseconds::from_secs(3600);

const NOT_SET_UP: &str = "PostgreSQL: cannot set up replication";

const PASSWORD_FILE: &str = "replication.pgpass";

pub(super) struct Streaming;

pub(super) fn access(part: &Part, is_open: bool, major: u32) -> String {
    let method = if major >= 10 { "scram-sha-256" } else { "md5" };
    let mut text = String::new();
    if let Part::Primary(_) = part {
        // `all` does not include replication.
        let from = if is_open { ["host", " all"] } else { ["local", ""] };
        let [how, address] = from;
        text += &format!(
            "{how} replication {REPLICATION_USER}{address} {method}\nlocal all {REPLICATION_USER} reject\n"
        );
    }
    if is_open {
        text += &format!("host all {CLIENT_USER} all {method}\n");
    }
    text + settings::ACCESS
}

/// Settings of a server with this part, which come before those of the study.
pub(super) fn settings_of(part: &Part) -> &'static str {
    match part {
        Part::Alone | Part::Node(_) | Part::Router => "",
        // The defaults since 10.
        Part::Primary(_) => {
            "wal_level = replica\nmax_wal_senders = 10\nmax_replication_slots = 10\n"
        }
        Part::Replica(_) => "wal_level = replica\nhot_standby = on\n",
    }
}

pub(super) fn copy_primary(
    folder: &ServerFolder,
    installation: &Installation,
    follow: &Follow,
    clock: &Arc<dyn Clock>,
) -> Result<()> {
    let slot = slot(follow);
    query(&follow.primary, &format!("SELECT pg_create_physical_replication_slot('{slot}', true)"))?;
    let line = format!("*:*:*:{REPLICATION_USER}:{}\n", follow.replication.password.reveal());
    let passwords = folder.keeper().write_secret(folder.path(), PASSWORD_FILE, &line)?;
    let process = ProcessSpec {
        program: installation.programs.join("pg_basebackup"),
        arguments: arguments(folder, installation.major(), follow, &passwords),
        log: folder.path().join("pg_basebackup.log"),
        needs_name: true,
        ..ProcessSpec::default()
    };
    if !process.program.is_file() {
        return fail(format!(
            "a replica needs the program `pg_basebackup`, which is not in {}; choose another build \
             (Debian's packages have it), or leave `replicas` out",
            installation.programs.display()
        ));
    }
    let copied = folder.keeper().run(folder.path(), &process, clock.as_ref(), COPY_LIMIT);
    copied.context("PostgreSQL")
}

fn arguments(folder: &ServerFolder, major: u32, follow: &Follow, passwords: &Path) -> Vec<String> {
    let mut all = vec![
        format!("--dbname={}", conninfo(&follow.primary.address, &follow.name(), passwords)),
        format!("--pgdata={}", folder.data().display()),
        "--write-recovery-conf".to_owned(),
        format!("--slot={}", slot(follow)),
        "-X".to_owned(),
        "stream".to_owned(),
        "--checkpoint=fast".to_owned(),
        "--no-password".to_owned(),
    ];
    // Data that are not there yet need no sync.
    all.extend((major >= 10).then(|| "--no-sync".to_owned()));
    let wal = if major >= 10 { "--waldir" } else { "--xlogdir" };
    all.extend(folder.logs().map(|logs| format!("{wal}={}", logs.display())));
    all
}

/// Where the primary is, in libpq's words; no password.
fn conninfo(primary: &Address, name: &str, passwords: &Path) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"));
    let (host, port) = match primary {
        Address::Unix(socket) => {
            let folder = socket.parent().unwrap_or(Path::new("/"));
            (folder.display().to_string(), settings::PORT.to_owned())
        }
        Address::Tcp { host, port } => (host.clone(), port.to_string()),
    };
    format!(
        "host={} port={port} user={REPLICATION_USER} application_name={name} passfile={}",
        quoted(&host),
        quoted(&passwords.display().to_string())
    )
}

fn slot(follow: &Follow) -> String {
    format!("{REPLICATION_USER}_{}", follow.number)
}

/// Sends a statement as the user that may do anything.
fn query(endpoint: &Endpoint, sql: &str) -> Result<TextRows> {
    let mut connection = connect(endpoint).context(NOT_SET_UP)?;
    connection.set_cold_limit(CATALOG_LIMIT.0);
    connection.query(sql).context(NOT_SET_UP)
}

impl Replicating for Streaming {
    fn lead(&self, primary: &Endpoint, replication: &Replication) -> Result<()> {
        let mut connection = connect(primary).context(NOT_SET_UP)?;
        let role = (REPLICATION_USER, "REPLICATION");
        make_role(&mut connection, role, &replication.password).context(NOT_SET_UP)
    }

    fn wait_for_replicas(&self, primary: &Endpoint) -> Result<()> {
        query(primary, "ALTER SYSTEM SET synchronous_standby_names = '*'")?;
        query(primary, "SELECT pg_reload_conf()")?;
        Ok(())
    }

    fn received(&self, replica: &Endpoint) -> Result<u64> {
        let mut connection = open(replica)?;
        let sql = match is_older(&mut connection, 100_000)? {
            true => "SELECT pg_xlog_location_diff(pg_last_xlog_receive_location(), '0/0')::bigint",
            false => "SELECT pg_wal_lsn_diff(pg_last_wal_receive_lsn(), '0/0')::bigint",
        };
        let rows = connection.query(sql).map_err(not_promoted)?;
        // Before anything came, there is no position.
        Ok(rows.first().and_then(|row| cell(row, 0)?.parse().ok()).unwrap_or_default())
    }

    fn promote(&self, replica: &Endpoint, clock: &dyn Clock) -> Result<()> {
        let mut connection = open(replica)?;
        if is_older(&mut connection, 120_000)? {
            return Err(not_promoted("PostgreSQL does that by SQL from version 12 on"));
        }
        // The function itself looks only ten times a second.
        connection.query("SELECT pg_promote(false)").map_err(not_promoted)?;
        let until = clock.now() + PROMOTION_LIMIT;
        loop {
            let rows = connection.query("SELECT pg_is_in_recovery()").map_err(not_promoted)?;
            if rows.first().and_then(|row| cell(row, 0)) == Some("f") {
                return Ok(());
            }
            if clock.now() >= until {
                let why = format!("it is still in recovery after {PROMOTION_LIMIT}");
                return Err(not_promoted(why));
            }
            clock.sleep_until(clock.now() + PROMOTION_POLL);
        }
    }

    fn copies_data(&self) -> bool {
        true
    }

    fn lag_meter(&self, follow: &Follow, _: &Endpoint) -> Box<dyn LagMeter> {
        let asker = Asker::new(connector(follow.primary.clone()));
        Box::new(WalLag { asker, name: follow.name(), version: super::probe::Version::default() })
    }

    fn tables(&self) -> &'static str {
        "SELECT quote_ident(tablename) FROM pg_catalog.pg_tables \
         WHERE schemaname = current_schema() ORDER BY 1"
    }
}

/// A connection to a replica that is to take the place of its primary.
fn open(replica: &Endpoint) -> Result<PgConnection> {
    let mut connection = connect(replica).map_err(not_promoted)?;
    connection.set_cold_limit(CATALOG_LIMIT.0);
    Ok(connection)
}

/// Whether a server is older than this version, in the form 120000.
fn is_older(connection: &mut PgConnection, version: u32) -> Result<bool> {
    let rows = connection.query("SHOW server_version_num").map_err(not_promoted)?;
    let found = rows.first().and_then(|row| number(cell(row, 0)?)).unwrap_or_default();
    Ok(found < f64::from(version))
}

/// Lets clients on other machines into a server that is up and listens for them. A replica has them from its primary.
pub(super) fn admit(
    connection: &mut PgConnection,
    (part, open): (&Part, Option<&Listening>),
) -> Result<()> {
    let Some(listening) = open.filter(|_| !matches!(part, Part::Replica(_))) else { return Ok(()) };
    let made = make_role(connection, (CLIENT_USER, "SUPERUSER"), &listening.password);
    made.context("PostgreSQL: cannot admit clients on other machines")
}

/// From 10 on, the server gets only what it stores of the password; before, the password is in no log and no error,
/// whatever the study's settings.
fn make_role(
    connection: &mut PgConnection,
    (name, rights): (&str, &str),
    password: &Secret,
) -> Result<(), String> {
    connection.set_cold_limit(CATALOG_LIMIT.0);
    let silence = ["log_statement = 'none'", "log_min_duration_statement = -1"];
    let quiet = ["log_min_error_statement = 'panic'", "log_duration = off"];
    for setting in silence.iter().chain(&quiet) {
        connection.query(&format!("SET {setting}")).map_err(|error| error.to_string())?;
    }
    let version = connection.query("SHOW server_version_num").map_err(|error| error.to_string())?;
    let version = version.first().and_then(|row| number(cell(row, 0)?)).unwrap_or_default();
    let known = format!("SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = '{name}'");
    let known = connection.query(&known).map_err(|error| error.to_string())?;
    // In data that a server with this role has left, it is there with another password, and owns tables.
    let verb = if known.is_empty() { "CREATE" } else { "ALTER" };
    let password = match version >= 100_000.0 {
        true => {
            let salt = dyno_host::random_token().map_err(|error| error.to_string())?;
            scram::verifier(password.reveal(), salt.as_bytes())?
        }
        false => password.reveal().to_owned(),
    };
    let sql = format!("{verb} ROLE {name} LOGIN {rights} PASSWORD '{password}'");
    connection.query(&sql).map_err(|error| error.code)?;
    Ok(())
}

struct WalLag {
    asker: Asker,
    name: String,
    version: super::probe::Version,
}

fn lag_sql(version: u32, name: &str) -> String {
    let (columns, diff) = match version {
        100_000.. => (
            "coalesce(extract(epoch from replay_lag), 0)",
            "pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)",
        ),
        _ => ("NULL", "pg_xlog_location_diff(pg_current_xlog_location(), replay_location)"),
    };
    format!(
        "SELECT state, {diff}, {columns} FROM pg_stat_replication WHERE application_name = '{name}'"
    )
}

fn lag_of(rows: &TextRows) -> Lag {
    let Some(row) = rows.first() else {
        return Lag { reason: "it is not connected".to_owned(), ..Lag::default() };
    };
    let state = cell(row, 0).unwrap_or_default();
    let is_streaming = state == "streaming";
    Lag {
        is_streaming,
        reason: if is_streaming { String::new() } else { format!("its state is `{state}`") },
        bytes: cell(row, 1).and_then(number).map(|bytes| bytes.max(0.0)),
        seconds: cell(row, 2).and_then(number),
    }
}

impl LagMeter for WalLag {
    fn read(&mut self, now: Nanoseconds) -> Result<Lag, String> {
        let version = self.version.get(&mut self.asker, now).unwrap_or_default();
        let answer = self.asker.answer(now, &lag_sql(version, &self.name))?;
        Ok(lag_of(&answer.rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReplicationMode, Secret, TlsMode};

    fn follow() -> Follow {
        let primary = Endpoint {
            protocol: &crate::postgresql::PROTOCOL,
            address: Address::Unix("/d/run/.s.PGSQL.5432".into()),
            user: "dyno".to_owned(),
            password: None,
            catalog: "dyno".to_owned(),
            tls: TlsMode::Off,
            server_public_key: None,
            session_options: None,
        };
        let replication = Replication {
            replicas: 1,
            mode: ReplicationMode::Asynchronous,
            address: "127.0.0.1:1".parse().expect("it is an address"),
            password: Secret::new("hidden"),
        };
        Follow { number: 1, primary, replication }
    }

    #[test]
    fn only_the_user_of_replication_is_admitted_to_it() {
        let primary = Part::Primary(follow().replication);
        assert_eq!(
            access(&primary, false, 15),
            "local replication dyno_replica scram-sha-256\nlocal all dyno_replica reject\n\
             local all all trust\nhost all all all reject\n"
        );
        assert!(access(&primary, false, 9).starts_with("local replication dyno_replica md5\n"));
        for part in [Part::Alone, Part::Replica(follow())] {
            assert_eq!(access(&part, false, 15), "local all all trust\nhost all all all reject\n");
        }
    }

    #[test]
    fn no_command_line_has_the_password() {
        let socket = Address::Unix("/it's/run/.s.PGSQL.5432".into());
        let text = conninfo(&socket, "replica-1", Path::new("/d/pass"));
        assert_eq!(
            text,
            "host='/it\\'s/run' port=5432 user=dyno_replica application_name=replica-1 \
             passfile='/d/pass'"
        );
        let far = Address::Tcp { host: "10.0.0.7".to_owned(), port: 7000 };
        let text = conninfo(&far, "replica-2", Path::new("/d/pass"));
        assert!(text.starts_with("host='10.0.0.7' port=7000 user=dyno_replica "), "{text}");
        assert!(!format!("{:?}", follow()).contains("hidden"));
    }

    #[test]
    fn the_lag_is_read_from_what_the_primary_says() {
        let check = |row: Option<[Option<&str>; 3]>, expected: Lag| {
            let rows = row.map(|row| row.map(|cell| cell.map(str::to_owned)).to_vec());
            assert_eq!(lag_of(&rows.into_iter().collect()), expected);
        };
        let lag = |is_streaming, reason: &str, bytes, seconds| Lag {
            is_streaming,
            reason: reason.to_owned(),
            bytes,
            seconds,
        };
        let streaming = Some([Some("streaming"), Some("2048"), Some("0.001234")]);
        check(streaming, lag(true, "", Some(2048.0), Some(0.001234)));
        let behind = Some([Some("catchup"), Some("-8"), None]);
        check(behind, lag(false, "its state is `catchup`", Some(0.0), None));
        check(None, lag(false, "it is not connected", None, None));
        assert!(lag_sql(150_018, "replica-1").contains("pg_wal_lsn_diff"));
        assert!(lag_sql(90_624, "replica-1").contains("pg_xlog_location_diff"));
    }
}
