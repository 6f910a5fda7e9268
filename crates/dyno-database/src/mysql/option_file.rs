//! The only option file that a private server reads.

use std::fmt::Write;
use std::path::PathBuf;

use dyno_units::SettingValue;

use super::install::Install;
use super::{galera, group, replica};
use crate::data::RuntimeSettings;
use crate::error::{Result, fail};
use crate::private::ServerFolder;
use crate::settings::{GivenSettings, Settings, Words};
use crate::{DataShape, Listening, Part, ServerSpec};

pub(super) const SOCKET: &str = "server.sock";

/// Settings of a private server's files and addresses, which only Dyno sets.
const OWN_SETTINGS: Words = Words(
    "basedir chroot datadir log_error pid_file plugin_dir socket tmpdir user init_file \
     group_replication_group_name group_replication_bootstrap_group \
     group_replication_start_on_boot group_replication_single_primary_mode \
     group_replication_enforce_update_everywhere_checks",
);

/// Could open a private server to others, some without login. Cluster replication is one: it
/// listens on all addresses unless Dyno configures it.
const NETWORK_SETTINGS: Words = Words(
    "admin_address admin_port bind_address extra_port \
     group_replication_advertise_recovery_endpoints group_replication_communication_stack \
     group_replication_group_seeds group_replication_ip_allowlist group_replication_local_address \
     report_host report_port mysqlx mysqlx_bind_address mysqlx_port mysqlx_socket networking \
     grant_tables port wsrep_cluster_address wsrep_cluster_name wsrep_node_address \
     wsrep_notify_cmd wsrep_on wsrep_provider wsrep_sst_method wsrep_sst_receive_address",
);

/// Leave no trace in the files of a server stopped in order. Not the redo log's, whose files keep
/// their size, nor most of RocksDB's, whose files depend on when data were flushed and compacted.
const RUNTIME_SETTINGS: RuntimeSettings = RuntimeSettings {
    names: Words(
        "back_log connect_timeout eq_range_index_dive_limit extra_max_connections general_log \
         host_cache_size innodb_buffer_pool_chunk_size innodb_buffer_pool_dump_at_shutdown \
         innodb_buffer_pool_dump_pct innodb_buffer_pool_instances \
         innodb_buffer_pool_load_at_startup innodb_buffer_pool_size innodb_commit_concurrency \
         innodb_concurrency_tickets innodb_deadlock_detect innodb_deadlock_report \
         innodb_log_buffer_size innodb_log_spin_cpu_abs_lwm innodb_log_spin_cpu_pct_hwm \
         innodb_log_writer_threads innodb_lock_wait_timeout innodb_lru_flush_size \
         innodb_lru_scan_depth innodb_max_dirty_pages_pct innodb_max_dirty_pages_pct_lwm \
         innodb_numa_interleave innodb_old_blocks_pct innodb_old_blocks_time innodb_page_cleaners \
         innodb_print_all_deadlocks innodb_random_read_ahead innodb_read_ahead_threshold \
         innodb_read_io_threads innodb_rollback_on_timeout innodb_sync_spin_loops \
         innodb_use_native_aio innodb_write_io_threads interactive_timeout join_buffer_size \
         key_buffer_size large_pages local_infile lock_wait_timeout log_error_verbosity \
         log_warnings long_query_time max_allowed_packet max_connect_errors max_connections \
         max_heap_table_size max_prepared_stmt_count open_files_limit read_buffer_size \
         read_rnd_buffer_size rocksdb_block_cache_size rocksdb_flush_log_at_trx_commit \
         rocksdb_lock_wait_timeout rocksdb_max_open_files slow_query_log sort_buffer_size \
         sync_binlog table_definition_cache table_open_cache table_open_cache_instances \
         tmp_table_size transaction_isolation tx_isolation wait_timeout",
    ),
    beginnings: Words(
        "aria_pagecache_ binlog_group_commit_ innodb_adaptive_flushing innodb_adaptive_hash_index \
         innodb_flush_ innodb_flushing_ innodb_io_capacity innodb_monitor_ innodb_purge_ \
         innodb_spin_wait_ innodb_status_output innodb_thread_ net_ optimizer_ performance_schema \
         query_cache_ thread_",
    ),
};

/// Prefixes of option names, which change how an option is applied.
const PREFIXES: [&str; 6] = ["loose_", "skip_", "disable_", "enable_", "maximum_", "mysqld_"];

pub(super) struct OptionFile<'a> {
    pub(super) folder: &'a ServerFolder,
    pub(super) install: &'a Install,
    pub(super) engine: Option<&'a str>,
    pub(super) settings: &'a GivenSettings,
    pub(super) part: &'a Part,
    /// Where clients on other machines connect to it.
    pub(super) open: Option<&'a Listening>,
}

impl<'a> OptionFile<'a> {
    pub(super) fn of(
        spec: &'a ServerSpec,
        folder: &'a ServerFolder,
        install: &'a Install,
    ) -> OptionFile<'a> {
        OptionFile {
            folder,
            install,
            engine: spec.engine.as_deref(),
            settings: &spec.settings,
            part: &spec.part,
            open: spec.open.as_ref(),
        }
    }

    /// The server's defaults apply unless the study changes them, with exceptions. Statements read or write no file of
    /// the host (MySQL's packages name a folder that need not exist). The binary log is off and local files are on (as
    /// in MariaDB, unlike MySQL), so that both products write the same logs and are populated alike. Each thread's
    /// current stage is kept (MySQL by default keeps only the progress of InnoDB's ALTER TABLE). It listens on no port,
    /// from its first start, and logs to standard output. Options that nothing may override come last.
    pub(super) fn text(&self) -> Result<String> {
        let folder = |path: PathBuf| path.to_string_lossy().into_owned();
        self.text_with(
            &folder(self.folder.data()),
            &folder(self.folder.run()),
            &folder(self.folder.tmp()),
            self.folder.logs().map(|logs| logs.to_string_lossy()).as_deref(),
        )
    }

    /// For initialising, without folders and addresses: only these settings leave traces in data.
    pub(super) fn initial_text(&self, shaping: &Settings) -> Result<String> {
        let settings = self.settings.iter().filter(|(name, _)| shaping.contains_key(&normal(name)));
        let settings = settings.map(|(name, value)| (name.clone(), value.clone())).collect();
        OptionFile { settings: &settings, part: &Part::Alone, open: None, ..*self }
            .text_with("data", "run", "tmp", None)
    }

    fn text_with(&self, data: &str, run: &str, tmp: &str, logs: Option<&str>) -> Result<String> {
        let mut out = String::from("[mysqld]\n");
        let mut line = |name: &str, value: &str| {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{name} = {}", quoted(value));
        };
        if let Some(share) = &self.install.share {
            line("lc_messages_dir", &share.to_string_lossy());
            line("character_sets_dir", &share.join("charsets").to_string_lossy());
        }
        self.check_binary_log()?;
        let mut out = out + "skip_name_resolve\n" + self.product_lines();
        out += replica::lines_before(self.part, self.install.is_mariadb());
        if let Some(engine) = self.engine {
            if engine.eq_ignore_ascii_case("rocksdb") {
                out.push_str("plugin_load_add = ha_rocksdb\n");
            }
            out.push_str(&format!("default_storage_engine = {}\n", quoted(engine)));
        }
        for (name, value) in self.settings {
            check_name(name)?;
            // They are in the last lines.
            if normal(name) == galera::PROVIDER_OPTIONS && matches!(self.part, Part::Node(_)) {
                continue;
            }
            // A server that is filled before it joins a group has not loaded the plug-in.
            let loose = !self.install.is_mariadb()
                && group::is_own_setting(name)
                && !normal(name).starts_with("loose_");
            let prefix = if loose { "loose_" } else { "" };
            out.push_str(&format!("{prefix}{name} = {}\n", quoted(&spelled(name, value)?)));
        }
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(out, "{name} = {}", quoted(value));
        };
        line("basedir", &self.install.base.to_string_lossy());
        if let Some(plugins) = &self.install.plugins {
            line("plugin_dir", &plugins.to_string_lossy());
        }
        line("datadir", data);
        if let Some(logs) = logs {
            line("innodb_log_group_home_dir", logs);
            if self.has_binary_log().unwrap_or(self.needs_binary_log()) {
                line("log_bin", &format!("{logs}/binlog"));
            }
        }
        line("tmpdir", tmp);
        line("socket", &format!("{run}/{SOCKET}"));
        line("pid_file", &format!("{run}/server.pid"));
        match self.part {
            Part::Node(node) if !self.install.is_mariadb() => {
                group::check(self.install, self.engine)?;
                Ok(out + &group::lines(node))
            }
            Part::Node(node) => {
                let library = galera::check(self.install, self.engine, self.settings)?;
                Ok(out
                    + &galera::lines(node, (&library, data), self.settings)?
                    + &replica::network_lines(self.part, self.open))
            }
            part => Ok(out + &replica::lines_after(part, self.open)),
        }
    }

    /// Whether the study turns the binary log on or off; none if it does neither.
    fn has_binary_log(&self) -> Option<bool> {
        let off = ["0", "off", "false"];
        let mut settings = self.settings.iter();
        let (_, value) = settings.find(|(name, _)| normal(name) == "log_bin")?;
        Some(!off.contains(&value.to_string().to_ascii_lowercase().as_str()))
    }

    fn needs_binary_log(&self) -> bool {
        match self.part {
            Part::Primary(_) => true,
            Part::Node(_) => !self.install.is_mariadb(),
            Part::Alone | Part::Replica(_) | Part::Router => false,
        }
    }

    fn check_binary_log(&self) -> Result<()> {
        let is_off = self.has_binary_log() == Some(false)
            || self.settings.keys().any(|name| normal(name) == "skip_log_bin");
        if is_off && self.needs_binary_log() {
            return fail(
                "replicas and group replication need the binary log; leave the setting `log_bin` out",
            );
        }
        Ok(())
    }

    fn product_lines(&self) -> &'static str {
        let has_tls = self.settings.keys().any(|name| normal(name).starts_with("ssl_"));
        match (self.install.is_mariadb(), has_tls) {
            // Later versions would spend seconds on a key that is not used.
            (true, false) => "skip_ssl\n",
            (true, true) => "",
            (false, _) => {
                "mysqlx = OFF\nlocal_infile = ON\nsecure_file_priv = NULL\n\
                 loose_performance_schema_consumer_events_stages_current = ON\n"
            }
        }
    }
}

pub(super) fn normal(name: &str) -> String {
    name.replace('-', "_").to_ascii_lowercase()
}

fn check_name(name: &str) -> Result<()> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || !name.chars().all(is_name) {
        return fail(format!("`{name}` is not the name of a server setting"));
    }
    refused_setting(name).map_or(Ok(()), |why| fail(why))
}

/// Why a private server must not have this setting; none if it may.
pub(crate) fn refused_setting(name: &str) -> Option<String> {
    let normal = normal(name);
    let mut bare = normal.as_str();
    while let Some(rest) = PREFIXES.iter().find_map(|prefix| bare.strip_prefix(prefix)) {
        bare = rest;
    }
    // Option files take the beginning of a name for the name.
    let is_of = |names: Words| !bare.is_empty() && names.iter().any(|own| own.starts_with(bare));
    if is_of(NETWORK_SETTINGS) {
        return Some(format!(
            "the setting `{name}` would make a private server reachable by others: it has a socket \
             that only Dyno can reach, and no port. Leave the setting out, or start such a server \
             yourself and give its URL"
        ));
    }
    is_of(OWN_SETTINGS).then(|| {
        format!("the setting `{name}` is chosen by Dyno for a private server; leave it out")
    })
}

pub(super) fn spelled(name: &str, value: &SettingValue) -> Result<String> {
    // The server has no units for powers of 1000, and would stop.
    let text = match value.with_decimal_sizes() {
        SettingValue::Text(text) => text,
        SettingValue::Switch(on) => if on { "ON" } else { "OFF" }.to_owned(),
        SettingValue::Bytes(bytes) => bytes.0.to_string(),
        SettingValue::PercentOfMemory(percent) => {
            return fail(format!(
                "the setting `{name}` is still a share of memory ({percent} %); it has to be \
                 converted to bytes first"
            ));
        }
        number @ (SettingValue::Integer(_) | SettingValue::Real(_)) => number.to_string(),
    };
    if text.contains(['\n', '\r', '\0']) {
        return fail(format!("the value of the setting `{name}` has more than one line"));
    }
    Ok(text)
}

pub(super) fn quoted(value: &str) -> String {
    let is_special = |c: char| matches!(c, '#' | '"' | '\'' | '\\');
    if value.contains(is_special) || value.trim() != value || value.is_empty() {
        format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        value.to_owned()
    }
}

pub(super) fn shape(install: &Install, spec: &ServerSpec) -> Result<DataShape> {
    let server = (install.program(&install.server), &*install.version);
    RUNTIME_SETTINGS.shape(spec, server, |name, value| Ok((normal(name), spelled(name, value)?)))
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
            version: String::new(),
            origin: Default::default(),
            image: None,
        }
    }

    fn text(
        settings: &[(&str, SettingValue)],
        engine: Option<&str>,
        is_mariadb: bool,
    ) -> Result<String, String> {
        text_with_logs(settings, engine, is_mariadb, None)
    }

    fn text_with_logs(
        settings: &[(&str, SettingValue)],
        engine: Option<&str>,
        is_mariadb: bool,
        logs: Option<&str>,
    ) -> Result<String, String> {
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let folder = tempfile::tempdir().unwrap();
        let keeper = std::sync::Arc::new(dyno_host::Keeper::new(folder.path()).unwrap());
        let option_file = OptionFile {
            folder: &ServerFolder::make(&crate::Place::under(&keeper), "d").unwrap(),
            install: &install(is_mariadb),
            engine,
            settings: &settings.collect(),
            part: &Part::Alone,
            open: None,
        };
        option_file.text_with("/d/data", "/d/run", "/d/tmp", logs).map_err(|error| error.message)
    }

    #[test]
    fn logs_lie_where_they_are_sent() {
        let check = |value: Option<SettingValue>, expected: &[&str]| {
            let setting = value.map(|value| ("log-bin", value));
            let settings: Vec<_> = setting.into_iter().collect();
            let text = text_with_logs(&settings, None, true, Some("/v/logs")).unwrap();
            let own = text.lines().filter(|line| line.contains("/v/logs"));
            assert_eq!(own.collect::<Vec<_>>(), expected);
        };
        let redo = "innodb_log_group_home_dir = /v/logs";
        let binary = "log_bin = /v/logs/binlog";
        check(None, &[redo]);
        check(Some(SettingValue::Switch(false)), &[redo]);
        check(Some(SettingValue::Text("OFF".to_owned())), &[redo]);
        check(Some(SettingValue::Switch(true)), &[redo, binary]);
        assert!(!text(&[], None, true).unwrap().contains("log_group_home"));
    }

    #[test]
    fn settings_are_spelled_as_the_server_reads_them() {
        let settings = [
            ("innodb_buffer_pool_size", SettingValue::Bytes(ByteCount(1 << 30))),
            ("innodb-flush-log-at-trx-commit", SettingValue::Integer(1)),
            ("max_binlog_size", SettingValue::Text("500MB".to_owned())),
            ("performance_schema", SettingValue::Switch(true)),
            ("sql_mode", SettingValue::Text(String::new())),
            ("init_connect", SettingValue::Text("SET @a = '#'".to_owned())),
        ];
        let text = text(&settings, None, true).unwrap();
        let own = "skip_name_resolve\nskip_ssl\n\
            init_connect = \"SET @a = '#'\"\n\
            innodb-flush-log-at-trx-commit = 1\n\
            innodb_buffer_pool_size = 1073741824\n\
            max_binlog_size = 500000000\n\
            performance_schema = ON\n\
            sql_mode = \"\"\n\
            basedir = /usr\ndatadir = /d/data\ntmpdir = /d/tmp\nsocket = /d/run/server.sock\n\
            pid_file = /d/run/server.pid\nskip_networking = ON\n";
        assert!(text.ends_with(own), "{text}");
        assert!(text.starts_with("[mysqld]\nlc_messages_dir = /usr/share/mysql\n"));
        assert!(!text.contains("!include"));
    }

    #[test]
    fn products_and_engines_differ() {
        let rocks = text(&[], Some("RocksDB"), true).unwrap();
        assert!(rocks.contains("plugin_load_add = ha_rocksdb\ndefault_storage_engine = RocksDB\n"));
        assert!(text(&[], None, false).unwrap().contains(
            "mysqlx = OFF\nlocal_infile = ON\nsecure_file_priv = NULL\n\
             loose_performance_schema_consumer_events_stages_current = ON\ndisable_log_bin\n"
        ));
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
        check_refused("aaa", SettingValue::Text("1\n!include /x".to_owned()), "more than one line");
        check_refused("DataDir", SettingValue::Integer(1), "chosen by Dyno");
        check_refused("aaa", SettingValue::PercentOfMemory(25.0), "share of memory");
    }

    #[test]
    fn nothing_opens_a_private_server() {
        let check = |name: &str, part: Option<&str>| {
            let why = refused_setting(name);
            assert_eq!(why.is_some(), part.is_some(), "{name}: {why:?}");
            assert!(why.unwrap_or_default().contains(part.unwrap_or_default()), "{name}");
        };
        let opens = Some("make a private server reachable by others");
        for name in ["bind_address", "Bind-Address", "loose_bind_address", "bind", "port", "por"] {
            check(name, opens);
        }
        for name in ["skip_networking", "skip-net", "disable_skip_networking", "networking"] {
            check(name, opens);
        }
        for name in ["skip_grant_tables", "loose-skip-grant", "mysqlx", "wsrep_on", "extra_port"] {
            check(name, opens);
        }
        for name in ["datadir", "init_file", "init-fil", "log_err", "user", "socket"] {
            check(name, Some("chosen by Dyno"));
        }
        for name in [
            "innodb_buffer_pool_size",
            "log_bin",
            "tmp_table_size",
            "init_connect",
            "skip_name_resolve",
            "plugin_load_add",
            "wsrep_sst_auth",
            "port_open_timeout",
            "ssl_cert",
            "max_user_connections",
        ] {
            check(name, None);
        }
        // This overrides any setting of a study.
        let spelled = [("loose_anything", SettingValue::Switch(false))];
        assert!(text(&spelled, None, true).unwrap().ends_with("skip_networking = ON\n"));
    }

    #[track_caller]
    fn check_shaping(name: &str, is_shaping: bool) {
        let shaping = RUNTIME_SETTINGS.shaping([(normal(name), "1".to_owned())]).unwrap();
        assert_eq!(!shaping.is_empty(), is_shaping, "{name}");
    }

    #[test]
    fn what_shapes_the_files_counts() {
        check_shaping("innodb_page_size", true);
        check_shaping("innodb-log-file-size", true);
        check_shaping("innodb_file_per_table", true);
        check_shaping("innodb_default_row_format", true);
        check_shaping("innodb_buffer_pool_filename", true);
        check_shaping("rocksdb_write_buffer_size", true);
        check_shaping("lower_case_table_names", true);
        check_shaping("a_setting_of_the_next_version", true);
        check_shaping("innodb_buffer_pool_size", false);
        check_shaping("INNODB-FLUSH-LOG-AT-TRX-COMMIT", false);
        check_shaping("innodb_io_capacity_max", false);
        check_shaping("thread_handling", false);
    }

    #[test]
    fn places_outside_are_refused() {
        let undo = ("innodb_undo_directory".to_owned(), "/elsewhere".to_owned());
        let error = RUNTIME_SETTINGS.shaping([undo]).unwrap_err().message;
        assert!(error.contains("innodb_undo_directory"), "{error}");
    }
}
