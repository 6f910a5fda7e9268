//! Settings in PostgreSQL's spelling.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use dyno_units::SettingValue;

use crate::DeployError;

/// Settings by which Dyno reaches the server it started.
const OURS: [&str; 10] = [
    "port",
    "listen_addresses",
    "unix_socket_directories",
    "unix_socket_permissions",
    "unix_socket_group",
    "data_directory",
    "hba_file",
    "logging_collector",
    "log_destination",
    "external_pid_file",
];

/// The line after which the settings of a private server follow.
const HEADING: &str = "\n# Added by Dyno.\n";

/// The text of a `postgresql.conf` without what an earlier server of Dyno's has added.
pub(super) fn without_added(text: &str) -> &str {
    text.split_once(HEADING).map_or(text, |(before, _)| before)
}

/// The lines to append to `postgresql.conf`; there, later lines win.
pub(super) fn configuration(
    settings: &BTreeMap<String, SettingValue>,
    sockets: &Path,
) -> Result<String, DeployError> {
    let mut out = String::from(HEADING);
    let mut line = |name: &str, value: &str| {
        writeln!(out, "{name} = {value}").expect("a string takes all text");
    };
    line("listen_addresses", "'127.0.0.1'");
    line("unix_socket_directories", &quoted(&sockets.to_string_lossy()));
    line("logging_collector", "off");
    line("log_destination", "'stderr'");
    for (name, value) in settings {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        if name.is_empty() || !name.chars().all(plain) {
            return Err(DeployError::new(format!(
                "`{name}` is not the name of a PostgreSQL setting"
            )));
        }
        if OURS.contains(&name.to_ascii_lowercase().as_str()) {
            return Err(DeployError::new(format!(
                "the setting `{name}` of a private PostgreSQL is made by Dyno; leave it out"
            )));
        }
        line(name, &spelled(name, value)?);
    }
    Ok(out)
}

pub(super) fn spelled(name: &str, value: &SettingValue) -> Result<String, DeployError> {
    Ok(match value {
        SettingValue::Text(text) if text.contains(['\n', '\r', '\0']) => {
            return Err(DeployError::new(format!(
                "the value of the PostgreSQL setting `{name}` does not fit one line"
            )));
        }
        SettingValue::Text(text) => quoted(text),
        SettingValue::Integer(number) => number.to_string(),
        SettingValue::Real(number) => number.to_string(),
        SettingValue::Switch(true) => "on".to_owned(),
        SettingValue::Switch(false) => "off".to_owned(),
        // PostgreSQL knows `B` since 11; whole kilobytes are understood everywhere.
        SettingValue::Bytes(bytes) if bytes.0 % 1024 == 0 => {
            quoted(&format!("{}kB", bytes.0 / 1024))
        }
        SettingValue::Bytes(bytes) => quoted(&format!("{}B", bytes.0)),
        SettingValue::PercentOfMemory(percent) => {
            return Err(DeployError::new(format!(
                "the PostgreSQL setting `{name}` is still {percent}% of an unknown memory"
            )));
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
        let settings = BTreeMap::from([(name.to_owned(), value)]);
        let error = configuration(&settings, Path::new("/s")).unwrap_err();
        assert!(error.message.contains(part), "{error}");
    }

    #[test]
    fn values_are_spelled_for_the_server() {
        check(SettingValue::Bytes(ByteCount(8 << 20)), "'8192kB'");
        check(SettingValue::Bytes(ByteCount(1000)), "'1000B'");
        check(SettingValue::Switch(true), "on");
        check(SettingValue::Switch(false), "off");
        check(SettingValue::Integer(-1), "-1");
        check(SettingValue::Real(0.9), "0.9");
        check(SettingValue::Text(r"it's a\b".to_owned()), r"'it''s a\\b'");
    }

    #[test]
    fn what_an_earlier_server_added_is_taken_out() {
        let fresh = "# as initdb made it\n";
        let settings = BTreeMap::from([("jit".to_owned(), SettingValue::Switch(false))]);
        let added = configuration(&settings, Path::new("/s")).unwrap();
        assert_eq!(without_added(&format!("{fresh}{added}")), fresh);
        assert_eq!(without_added(fresh), fresh);
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        check_refused("port", SettingValue::Integer(1), "made by Dyno");
        check_refused("work mem", SettingValue::Integer(1), "not the name");
        check_refused("a", SettingValue::Text("1\nport = 2".to_owned()), "one line");
        check_refused("a", SettingValue::PercentOfMemory(10.0), "unknown memory");
    }
}
