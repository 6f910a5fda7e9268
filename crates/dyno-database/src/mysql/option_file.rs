//! The option file of a private server: all it reads, and nothing of the system's own.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use dyno_units::SettingValue;

use crate::DeployError;

/// Settings that say where a private server lives: Dyno's own.
const OWN_SETTINGS: [&str; 7] =
    ["basedir", "datadir", "log_error", "pid_file", "plugin_dir", "socket", "tmpdir"];

/// What a private server's option file is made of.
pub(super) struct OptionFile<'a> {
    /// The server's folder.
    pub(super) folder: &'a Path,
    /// Where its programs and their files are installed.
    pub(super) install: &'a Install,
    pub(super) port: u16,
    pub(super) engine: Option<&'a str>,
    pub(super) settings: &'a BTreeMap<String, SettingValue>,
}

/// Programs and the files that belong to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Install {
    pub(super) server: PathBuf,
    /// MariaDB's program that makes the system tables; MySQL's server does that by itself.
    pub(super) install_db: Option<PathBuf>,
    /// The folder that holds `bin`, `share` and `lib`.
    pub(super) base: PathBuf,
    /// The folder with messages and character sets, where it is found.
    pub(super) share: Option<PathBuf>,
    /// The folder with plug-ins, where it is found.
    pub(super) plugins: Option<PathBuf>,
}

impl Install {
    pub(super) fn is_mariadb(&self) -> bool {
        self.install_db.is_some()
    }
}

/// The server's socket.
pub(super) fn socket_path(folder: &Path) -> PathBuf {
    folder.join("server.sock")
}

/// The file with the server's messages.
pub(super) fn log_path(folder: &Path) -> PathBuf {
    folder.join("server.log")
}

/// The folder with its data.
pub(super) fn data_path(folder: &Path) -> PathBuf {
    folder.join("data")
}

impl OptionFile<'_> {
    /// The file's text.
    ///
    /// The server's own defaults stand unless a setting of the study changes them, but for these:
    /// the binary log is off and local files are on (MySQL's defaults are the other way round,
    /// MariaDB's are not), so that both products write the same logs and are populated the same
    /// way; and connections by TCP come from this machine only.
    pub(super) fn text(&self) -> Result<String, DeployError> {
        let mut out = String::from("[mysqld]\n");
        let mut line = |name: &str, value: &str| {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{name} = {}", quoted(value));
        };
        let folder = |name: &str| self.folder.join(name).to_string_lossy().into_owned();
        line("basedir", &self.install.base.to_string_lossy());
        line("datadir", &data_path(self.folder).to_string_lossy());
        line("socket", &socket_path(self.folder).to_string_lossy());
        line("log_error", &log_path(self.folder).to_string_lossy());
        line("pid_file", &folder("server.pid"));
        line("tmpdir", &folder("tmp"));
        if let Some(share) = &self.install.share {
            line("lc_messages_dir", &share.to_string_lossy());
            line("character_sets_dir", &share.join("charsets").to_string_lossy());
        }
        if let Some(plugins) = &self.install.plugins {
            line("plugin_dir", &plugins.to_string_lossy());
        }
        line("bind_address", "127.0.0.1");
        line("port", &self.port.to_string());
        let mut out = out + "skip_name_resolve\n" + self.product_lines();
        if let Some(engine) = self.engine {
            if engine.eq_ignore_ascii_case("rocksdb") {
                out.push_str("plugin_load_add = ha_rocksdb\n");
            }
            out.push_str(&format!("default_storage_engine = {}\n", quoted(engine)));
        }
        for (name, value) in self.settings {
            check_name(name)?;
            out.push_str(&format!("{name} = {}\n", quoted(&spelled(name, value)?)));
        }
        Ok(out)
    }

    fn product_lines(&self) -> &'static str {
        let has_tls = self.settings.keys().any(|name| normal(name).starts_with("ssl_"));
        match (self.install.is_mariadb(), has_tls) {
            // Later versions would spend seconds on a key that nobody uses.
            (true, false) => "skip_ssl\n",
            (true, true) => "",
            (false, _) => "disable_log_bin\nmysqlx = OFF\nlocal_infile = ON\n",
        }
    }
}

/// A setting's name in the spelling of the server's variables.
pub(super) fn normal(name: &str) -> String {
    name.replace('-', "_").to_ascii_lowercase()
}

fn check_name(name: &str) -> Result<(), DeployError> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(DeployError::new(format!("`{name}` is not the name of a server setting")));
    }
    if OWN_SETTINGS.contains(&normal(name).as_str()) {
        return Err(DeployError::new(format!(
            "the setting `{name}` says where a private server lives, which is Dyno's to choose; \
             leave it out"
        )));
    }
    Ok(())
}

/// A value in the server's spelling.
pub(super) fn spelled(name: &str, value: &SettingValue) -> Result<String, DeployError> {
    let text = match value {
        SettingValue::Text(text) => text.clone(),
        SettingValue::Integer(number) => number.to_string(),
        SettingValue::Real(number) => number.to_string(),
        SettingValue::Switch(true) => "ON".to_owned(),
        SettingValue::Switch(false) => "OFF".to_owned(),
        SettingValue::Bytes(bytes) => bytes.0.to_string(),
        SettingValue::PercentOfMemory(percent) => {
            return Err(DeployError::new(format!(
                "the setting `{name}` is still a share of memory ({percent} %); it has to be \
                 resolved to bytes first"
            )));
        }
    };
    if text.contains(['\n', '\r', '\0']) {
        return Err(DeployError::new(format!(
            "the value of the setting `{name}` has more than one line"
        )));
    }
    Ok(text)
}

/// A value as option files want it: in quotes where it would be read otherwise.
fn quoted(value: &str) -> String {
    let is_special = |c: char| matches!(c, '#' | '"' | '\'' | '\\');
    if value.contains(is_special) || value.trim() != value || value.is_empty() {
        format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        value.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use dyno_units::ByteCount;

    use super::*;

    fn install(is_mariadb: bool) -> Install {
        Install {
            server: "/usr/sbin/mariadbd".into(),
            install_db: is_mariadb.then(|| "/usr/bin/mariadb-install-db".into()),
            base: "/usr".into(),
            share: Some("/usr/share/mysql".into()),
            plugins: None,
        }
    }

    fn text(
        settings: &[(&str, SettingValue)],
        engine: Option<&str>,
        is_mariadb: bool,
    ) -> Result<String, String> {
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        OptionFile {
            folder: Path::new("/var/tmp/d"),
            install: &install(is_mariadb),
            port: 4000,
            engine,
            settings: &settings.collect(),
        }
        .text()
        .map_err(|error| error.message)
    }

    #[test]
    fn settings_are_spelled_as_the_server_reads_them() {
        let settings = [
            ("innodb_buffer_pool_size", SettingValue::Bytes(ByteCount(1 << 30))),
            ("innodb-flush-log-at-trx-commit", SettingValue::Integer(1)),
            ("performance_schema", SettingValue::Switch(true)),
            ("sql_mode", SettingValue::Text(String::new())),
            ("init_connect", SettingValue::Text("SET @a = '#'".to_owned())),
        ];
        let text = text(&settings, None, true).unwrap();
        let tail = "skip_name_resolve\nskip_ssl\n\
            init_connect = \"SET @a = '#'\"\n\
            innodb-flush-log-at-trx-commit = 1\n\
            innodb_buffer_pool_size = 1073741824\n\
            performance_schema = ON\n\
            sql_mode = \"\"\n";
        assert!(text.ends_with(tail), "{text}");
        assert!(text.starts_with("[mysqld]\nbasedir = /usr\ndatadir = /var/tmp/d/data\n"));
        assert!(!text.contains("!include"));
    }

    #[test]
    fn products_and_engines_differ() {
        let rocks = text(&[], Some("RocksDB"), true).unwrap();
        assert!(
            rocks.ends_with("plugin_load_add = ha_rocksdb\ndefault_storage_engine = RocksDB\n")
        );
        assert!(
            text(&[], None, false)
                .unwrap()
                .contains("disable_log_bin\nmysqlx = OFF\nlocal_infile = ON\n")
        );
        let certificate = [("ssl-cert", SettingValue::Text("/c.pem".to_owned()))];
        assert!(!text(&certificate, None, true).unwrap().contains("skip_ssl"));
    }

    #[track_caller]
    fn check_refused(name: &str, value: SettingValue, part: &str) {
        let error = text(&[(name, value)], None, true).unwrap_err();
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn settings_cannot_break_out_of_their_line() {
        check_refused("a\nb", SettingValue::Integer(1), "not the name");
        check_refused("a", SettingValue::Text("1\n!include /x".to_owned()), "more than one line");
        check_refused("DataDir", SettingValue::Integer(1), "Dyno's to choose");
        check_refused("a", SettingValue::PercentOfMemory(25.0), "share of memory");
    }
}
