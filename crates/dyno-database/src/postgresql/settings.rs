//! Settings in PostgreSQL's spelling.

use std::fmt::Write;
use std::net::SocketAddrV4;
use std::path::Path;

use dyno_units::SettingValue;

use crate::error::{Result, fail};
use crate::settings::{GivenSettings, Words};

/// Settings by which Dyno reaches the server it started.
const OURS: Words = Words(
    "config_file data_directory external_pid_file include include_dir include_if_exists \
     log_destination logging_collector unix_socket_directories",
);

/// Settings by which other users could reach it.
const NETWORK: Words = Words(
    "bonjour bonjour_name hba_file ident_file listen_addresses port unix_socket_group \
     unix_socket_permissions",
);

/// The number in the name of the socket, which is not a network port.
pub(crate) const PORT: &str = "5432";

pub(crate) const SOCKET: &str = ".s.PGSQL.5432";

/// The port of a server that is open to clients on other machines, or the number of one that is not.
fn port(open: Option<SocketAddrV4>) -> String {
    open.map_or_else(|| PORT.to_owned(), |open| open.port().to_string())
}

pub(super) fn socket(open: Option<SocketAddrV4>) -> String {
    format!(".s.PGSQL.{}", port(open))
}

pub(super) const CONFIGURATION_FILE: &str = "postgresql.conf";

pub(super) const ACCESS_FILE: &str = "pg_hba.conf";

/// Who may log in: any user who reaches the socket, whose folder is private to the server's user.
pub(super) const ACCESS: &str = "local all all trust\nhost all all all reject\n";

/// Why a private server must not have this setting; none if it may.
pub(crate) fn refused_setting(name: &str) -> Option<String> {
    let name = name.to_ascii_lowercase();
    if NETWORK.has(&name) {
        return Some(format!(
            "the setting `{name}` would make a private server reachable by others: it has a socket \
             that only Dyno can reach, and no port. Leave the setting out, or start such a server \
             yourself and give its URL"
        ));
    }
    OURS.has(&name).then(|| {
        format!("the setting `{name}` of a private PostgreSQL is set by Dyno; leave it out")
    })
}

/// Arguments override all files, including `postgresql.auto.conf` (which the server writes), so
/// they hold what must not change.
pub(super) fn arguments(
    folder: &Path,
    data: &Path,
    sockets: &Path,
    open: Option<SocketAddrV4>,
) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    let mut sockets = sockets.display().to_string();
    if sockets.contains([',', '"']) {
        // A list of folders: the quotes keep it one.
        sockets = format!("\"{}\"", sockets.replace('"', "\"\""));
    }
    let settings = [
        ("config_file", file(CONFIGURATION_FILE)),
        ("hba_file", file(ACCESS_FILE)),
        ("listen_addresses", open.map(|open| open.ip().to_string()).unwrap_or_default()),
        ("unix_socket_directories", sockets),
        ("unix_socket_permissions", "0700".to_owned()),
        ("port", port(open)),
        ("logging_collector", "off".to_owned()),
        ("log_destination", "stderr".to_owned()),
    ];
    let mut arguments = vec!["-D".to_owned(), data.display().to_string()];
    for (name, value) in settings {
        arguments.extend(["-c".to_owned(), format!("{name}={value}")]);
    }
    arguments
}

/// What `initdb` wrote, what the server's part needs, then the study's settings, which win.
pub(super) fn configuration(
    settings: &GivenSettings,
    data: &Path,
    of_part: &str,
) -> Result<String> {
    let base = quoted(&data.join("postgresql.conf").to_string_lossy());
    let mut out = format!("include {base}\n{of_part}");
    let mut line = |name: &str, value: &str| {
        writeln!(out, "{name} = {value}").expect("a string takes all text");
    };
    for (name, value) in settings {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        if name.is_empty() || !name.chars().all(plain) {
            return fail(format!("`{name}` is not the name of a PostgreSQL setting"));
        }
        if let Some(why) = refused_setting(name) {
            return fail(why);
        }
        line(name, &spelled(name, value)?);
    }
    Ok(out)
}

pub(super) fn spelled(name: &str, value: &SettingValue) -> Result<String> {
    Ok(match value {
        SettingValue::Text(text) if text.contains(['\n', '\r', '\0']) => {
            return fail(format!(
                "the value of the PostgreSQL setting `{name}` does not fit on one line"
            ));
        }
        SettingValue::Text(text) => quoted(text),
        // PostgreSQL knows `B` since 11; whole kilobytes are understood everywhere.
        SettingValue::Bytes(bytes) if bytes.0 % 1024 == 0 => {
            quoted(&format!("{}kB", bytes.0 / 1024))
        }
        SettingValue::Bytes(bytes) => quoted(&format!("{}B", bytes.0)),
        SettingValue::PercentOfMemory(percent) => {
            return fail(format!(
                "the PostgreSQL setting `{name}` is still {percent}% of an unknown amount of memory"
            ));
        }
        SettingValue::Integer(_) | SettingValue::Real(_) | SettingValue::Switch(_) => {
            value.to_string()
        }
    })
}

/// A text as `postgresql.conf` reads it: quotes are doubled, backslashes escape.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use dyno_units::ByteCount;

    use super::*;

    #[track_caller]
    fn check(value: SettingValue, expected: &str) {
        assert_eq!(spelled("x", &value).unwrap(), expected);
    }

    #[track_caller]
    fn check_refused(name: &str, value: SettingValue, part: &str) {
        let settings = GivenSettings::from([(name.to_owned(), value)]);
        let error = configuration(&settings, Path::new("/s"), "").unwrap_err();
        assert!(error.message.contains(part), "{error}");
    }

    #[test]
    fn values_are_spelled_for_the_server() {
        check(SettingValue::Bytes(ByteCount(8 << 20)), "'8192kB'");
        check(SettingValue::Bytes(ByteCount(1000)), "'1000B'");
        check(SettingValue::Text("64MB".to_owned()), "'64MB'");
        check(SettingValue::Switch(true), "on");
        check(SettingValue::Switch(false), "off");
        check(SettingValue::Integer(-1), "-1");
        check(SettingValue::Real(0.9), "0.9");
        check(SettingValue::Text(r"it's a\b".to_owned()), r"'it''s a\\b'");
    }

    #[test]
    fn the_configuration_is_that_of_initdb_and_then_the_studys() {
        let settings = GivenSettings::from([("jit".to_owned(), SettingValue::Switch(false))]);
        let text = configuration(&settings, Path::new("/a 'b'/data"), "").unwrap();
        assert_eq!(text, "include '/a ''b''/data/postgresql.conf'\njit = off\n");
    }

    #[test]
    fn what_must_not_be_changed_is_on_the_command_line() {
        let arguments =
            arguments(Path::new("/f"), Path::new("/f/data"), Path::new("/f/run"), None).join(" ");
        assert_eq!(
            arguments,
            "-D /f/data -c config_file=/f/postgresql.conf -c hba_file=/f/pg_hba.conf \
             -c listen_addresses= -c unix_socket_directories=/f/run \
             -c unix_socket_permissions=0700 -c port=5432 -c logging_collector=off \
             -c log_destination=stderr"
        );
    }

    #[test]
    fn nothing_opens_a_private_server() {
        let check = |name: &str, part: Option<&str>| {
            let why = refused_setting(name);
            assert_eq!(why.is_some(), part.is_some(), "{name}: {why:?}");
            assert!(why.unwrap_or_default().contains(part.unwrap_or_default()), "{name}");
        };
        for name in ["listen_addresses", "Port", "HBA_FILE", "unix_socket_permissions"] {
            check(name, Some("make a private server reachable by others"));
        }
        for name in ["unix_socket_directories", "include_dir", "data_directory"] {
            check(name, Some("set by Dyno"));
        }
        for name in ["shared_buffers", "ssl", "archive_command", "port_of_call.x"] {
            check(name, None);
        }
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        check_refused(
            "port",
            SettingValue::Integer(1),
            "make a private server reachable by others",
        );
        check_refused("include", SettingValue::Integer(1), "set by Dyno");
        check_refused("work mem", SettingValue::Integer(1), "not the name");
        check_refused("a", SettingValue::Text("1\nport = 2".to_owned()), "one line");
        check_refused("a", SettingValue::PercentOfMemory(10.0), "unknown amount of memory");
    }
}
