//! Settings in ClickHouse's spelling: of a user's profile, the tables' engine, and the server.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use dyno_units::SettingValue;
use dyno_workload::Connection;

use crate::error::{Context, Result, fail};
use crate::settings::{GivenSettings, Settings, Words, unknown_name};
use crate::{Endpoint, Secret};

/// What the names of settings of the engine MergeTree begin with.
pub(super) const ENGINE: &str = "merge_tree.";

/// Settings of the server itself that a study may give: whole numbers, which the server does not report.
pub(super) const OF_SERVER: Words =
    Words("mark_cache_size max_concurrent_queries max_connections uncompressed_cache_size");

/// Settings of the server by which Dyno reaches it, or others could.
const OURS: Words = Words(
    "default_database default_profile dictionaries_config format_schema_path http_port https_port \
     interserver_http_host interserver_http_port interserver_https_port keep_alive_timeout \
     listen_host logger path remote_servers tcp_port tcp_port_secure tmp_path user_files_path \
     users_config zookeeper",
);

pub(super) const USER: &str = "dyno";

pub(super) const CONFIGURATION_FILE: &str = "config.xml";
pub(super) const USERS_FILE: &str = "users.xml";

/// How long the server keeps an idle connection, in seconds: longer than any pause of a study.
const KEEP_ALIVE_S: u32 = 7 * 24 * 60 * 60;

/// Why a private server must not have this setting; none if it may.
pub(super) fn refused_setting(name: &str) -> Option<String> {
    OURS.has(&name.to_ascii_lowercase()).then(|| {
        format!("the setting `{name}` of a private ClickHouse is set by Dyno; leave it out")
    })
}

pub(super) struct Places<'a> {
    pub(super) data: &'a Path,
    pub(super) tmp: &'a Path,
    pub(super) users: &'a Path,
}

/// The configuration of its own client, with the password alone; none if the server has none.
pub(super) fn of_client(endpoint: &Endpoint) -> Option<Secret> {
    let password = escaped(endpoint.password.as_ref()?.reveal());
    Some(Secret::new(format!("<config>\n<password>{password}</password>\n</config>\n")))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ports {
    /// For Dyno.
    pub(super) http: u16,
    /// For the product's own client, if that is to reach it.
    pub(super) native: Option<u16>,
}

/// The server's configuration: it listens on these ports of the loopback alone.
pub(super) fn configuration(
    settings: &Settings,
    ports: Ports,
    places: &Places<'_>,
) -> Result<String> {
    let mut out =
        "<yandex>\n<logger><level>warning</level><console>1</console></logger>\n".to_owned();
    let mut put = |name: &str, value: &str| {
        writeln!(out, "<{name}>{}</{name}>", escaped(value)).expect("a string takes all text");
    };
    let folder = |path: &Path| match path.to_str() {
        Some(text) => Ok(format!("{text}/")),
        None => fail(format!(
            "ClickHouse cannot use the folder {}, whose name is not UTF-8",
            path.display()
        )),
    };
    put("listen_host", "127.0.0.1");
    put("http_port", &ports.http.to_string());
    if let Some(port) = ports.native {
        put("tcp_port", &port.to_string());
    }
    put("keep_alive_timeout", &KEEP_ALIVE_S.to_string());
    put("path", &folder(places.data)?);
    put("tmp_path", &folder(places.tmp)?);
    put("users_config", folder(places.users)?.trim_end_matches('/'));
    put("default_profile", "default");
    put("default_database", "default");
    // The server refuses to begin without it; this is the value in its own file.
    if !settings.contains_key("mark_cache_size") {
        put("mark_cache_size", "5368709120");
    }
    for (name, value) in settings.iter().filter(|(name, _)| OF_SERVER.has(name)) {
        put(name, value);
    }
    out += "<merge_tree>\n";
    for (name, value) in settings {
        if let Some(name) = name.strip_prefix(ENGINE) {
            writeln!(out, "<{name}>{}</{name}>", escaped(value)).expect("a string takes all text");
        }
    }
    out += "</merge_tree>\n</yandex>\n";
    Ok(out)
}

/// The file of users: one, who logs in from this host with a password of this digest.
pub(super) fn users(settings: &Settings, digest: &str) -> String {
    let mut out = "<yandex>\n<profiles><default>\n".to_owned();
    for (name, value) in settings {
        if !OF_SERVER.has(name) && !name.starts_with(ENGINE) {
            writeln!(out, "<{name}>{}</{name}>", escaped(value)).expect("a string takes all text");
        }
    }
    out + &format!(
        "</default></profiles>\n<users><{USER}>\n<password_sha256_hex>{digest}</password_sha256_hex>\n\
         <networks><ip>127.0.0.1</ip></networks>\n<profile>default</profile>\n<quota>default</quota>\n\
         </{USER}></users>\n<quotas><default/></quotas>\n</yandex>\n"
    )
}

/// As in the server's files. Fails for what ClickHouse lacks, or the study may not set.
pub(super) fn spelled(settings: &GivenSettings) -> Result<Settings> {
    settings.iter().map(|(name, value)| Ok((name.clone(), spelled_one(name, value)?))).collect()
}

pub(super) fn spelled_one(name: &str, value: &SettingValue) -> Result<String> {
    let plain = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if !plain(name.strip_prefix(ENGINE).unwrap_or(name)) {
        return fail(format!("`{name}` is not the name of a ClickHouse setting"));
    }
    if let Some(why) = refused_setting(name) {
        return fail(why);
    }
    let text = match value {
        SettingValue::Text(text) if text.contains(char::is_control) => {
            return fail(format!(
                "the value of the ClickHouse setting `{name}` does not fit on one line"
            ));
        }
        SettingValue::Text(text) => text.clone(),
        SettingValue::Integer(_) | SettingValue::Real(_) => value.to_string(),
        SettingValue::Switch(on) => u8::from(*on).to_string(),
        SettingValue::Bytes(bytes) => bytes.0.to_string(),
        SettingValue::PercentOfMemory(percent) => {
            return fail(format!(
                "the ClickHouse setting `{name}` is still {percent}% of an unknown amount of memory"
            ));
        }
    };
    if OF_SERVER.has(name) && text.parse::<u64>().is_err() {
        return fail(format!(
            "the ClickHouse setting `{name}` takes a whole number, and `{text}` is not one"
        ));
    }
    Ok(text)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// All settings that a server reports: of the user's profile, and of the tables' engine.
pub(super) fn reported(connection: &mut dyn Connection) -> Result<Settings> {
    let mut all = BTreeMap::new();
    for (prefix, table) in [("", "settings"), (ENGINE, "merge_tree_settings")] {
        let rows = connection
            .query(&format!("SELECT name, value FROM system.{table}"))
            .context("ClickHouse: cannot read its settings")?;
        for row in rows {
            let mut cells = row.into_iter().map(Option::unwrap_or_default);
            if let (Some(name), Some(value)) = (cells.next(), cells.next()) {
                all.insert(format!("{prefix}{name}"), value);
            }
        }
    }
    Ok(all)
}

/// Checks the settings in force: the server ignores unknown names in some places, and reads words as the
/// number 0. Fails with the setting that it did not take, and the nearest known name.
pub(super) fn check_taken(given: &Settings, reported: &Settings) -> Result<(), String> {
    let given: BTreeMap<&String, &String> =
        given.iter().filter(|(name, _)| !OF_SERVER.has(name)).collect();
    let names: GivenSettings = given
        .iter()
        .map(|(name, value)| ((*name).clone(), SettingValue::Text((*value).clone())))
        .collect();
    let known: Vec<String> = reported.keys().cloned().collect();
    if let Some(why) = unknown_name(&names, &known, str::to_owned, "ClickHouse") {
        return Err(why);
    }
    for (name, value) in given {
        let taken = reported.get(name).map_or("", String::as_str);
        let is_same = match (value.parse::<f64>(), taken.parse::<f64>()) {
            (Ok(value), Ok(taken)) => value == taken,
            _ => value == taken,
        };
        if !is_same {
            return Err(format!(
                "ClickHouse does not accept the setting `{name}` = `{value}`: it read it as `{taken}`"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use dyno_units::ByteCount;

    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    #[test]
    fn settings_go_where_the_server_reads_them() {
        let all = map(&[("max_threads", "2"), ("merge_tree.a", "1<2"), ("mark_cache_size", "5")]);
        let places = Places {
            data: Path::new("/d/data"),
            tmp: Path::new("/d/tmp"),
            users: Path::new("/d/users.xml"),
        };
        let alone = Ports { http: 7, native: None };
        let with_client = configuration(&all, Ports { native: Some(8), ..alone }, &places).unwrap();
        assert!(with_client.contains("<tcp_port>8</tcp_port>"), "{with_client}");
        let configuration = configuration(&all, alone, &places).unwrap();
        assert!(configuration.contains("<http_port>7</http_port>"), "{configuration}");
        assert!(configuration.contains("<path>/d/data/</path>"), "{configuration}");
        assert!(configuration.contains("<users_config>/d/users.xml</users_config>"));
        assert!(configuration.contains("<merge_tree>\n<a>1&lt;2</a>\n</merge_tree>"));
        assert_eq!(configuration.matches("mark_cache_size").count(), 2, "{configuration}");
        assert!(!configuration.contains("max_threads") && !configuration.contains("tcp_port"));
        let users = users(&all, "ab");
        assert!(users.contains("<profiles><default>\n<max_threads>2</max_threads>\n</default>"));
        assert!(users.contains("<password_sha256_hex>ab</password_sha256_hex>"), "{users}");
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        let check = |name: &str, value: SettingValue, expected: Result<&str, &str>| {
            let found = spelled_one(name, &value);
            match expected {
                Ok(text) => assert_eq!(found.unwrap(), text),
                Err(part) => {
                    let error = found.unwrap_err();
                    assert!(error.message.contains(part), "{error}");
                }
            }
        };
        check("max_memory_usage", SettingValue::Bytes(ByteCount(1 << 20)), Ok("1048576"));
        check("use_uncompressed_cache", SettingValue::Switch(true), Ok("1"));
        check("merge_tree.x", SettingValue::Integer(3), Ok("3"));
        check("a<b", SettingValue::Integer(3), Err("not the name"));
        check("a.b", SettingValue::Integer(3), Err("not the name"));
        check("1a", SettingValue::Integer(3), Err("not the name"));
        check("tcp_port", SettingValue::Integer(9000), Err("set by Dyno"));
        check("Listen_Host", SettingValue::Text("::".to_owned()), Err("set by Dyno"));
        check("mark_cache_size", SettingValue::Text("5G".to_owned()), Err("whole number"));
        check("a", SettingValue::Text("1\n2".to_owned()), Err("one line"));
        check("a", SettingValue::PercentOfMemory(5.0), Err("unknown amount of memory"));
    }

    #[test]
    fn what_the_server_did_not_take_is_refused() {
        let reported = map(&[("max_threads", "2"), ("max_memory_usage", "0"), ("load", "random")]);
        let check = |given: &[(&str, &str)], part: Option<&str>| {
            let found = check_taken(&map(given), &reported).err();
            assert_eq!(found.is_some(), part.is_some(), "{found:?}");
            assert!(found.unwrap_or_default().contains(part.unwrap_or_default()));
        };
        check(&[("max_threads", "2.0"), ("load", "random"), ("mark_cache_size", "5")], None);
        check(&[("max_memory_usage", "lots")], Some("read it as `0`"));
        check(&[("max_threads", "3")], Some("read it as `2`"));
        check(&[("max_thread", "2")], Some("did you mean `max_threads`?"));
    }
}
