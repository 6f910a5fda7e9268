//! The server that the options name.

use std::path::{Path, PathBuf};

use dyno_database::{Address, Endpoint, Secret, TlsMode};
use dyno_workload::Dialect;

use super::options::Options;

/// Where servers of distributions have their sockets; client libraries use them for `localhost`.
const SOCKETS: [&str; 4] = [
    "/run/mysqld/mysqld.sock",
    "/var/run/mysqld/mysqld.sock",
    "/var/lib/mysql/mysql.sock",
    "/tmp/mysql.sock",
];

pub(super) fn dialect(options: &Options) -> Dialect {
    if options.text("db_driver") == "pgsql" { Dialect::PostgreSql } else { Dialect::MySql }
}

pub(super) fn resolve(
    options: &Options,
    variable: &dyn Fn(&str) -> Option<String>,
    exists: &dyn Fn(&Path) -> bool,
) -> Result<Endpoint, String> {
    match options.text("db_driver") {
        "pgsql" => pgsql(options, variable),
        "mysql" => mysql(options, variable, exists),
        other => Err(format!("invalid database driver name: '{other}'")),
    }
}

fn only(options: &Options, name: &str) -> Result<Option<String>, String> {
    match options.list(name) {
        [] => Ok(None),
        [one] => Ok(Some(one.clone())),
        _ => {
            let shown = name.replace('_', "-");
            Err(format!("--{shown}: dyno connects to one server; name only one"))
        }
    }
}

fn password(text: &str, variable: Option<String>) -> Result<Option<Secret>, String> {
    let given = crate::secrets::expand(text).map_err(|error| format!("{error:#}"))?;
    let given = Some(given).filter(|text| !text.is_empty()).or(variable);
    Ok(given.filter(|text| !text.is_empty()).map(Secret::new))
}

fn mysql(
    options: &Options,
    variable: &dyn Fn(&str) -> Option<String>,
    exists: &dyn Fn(&Path) -> bool,
) -> Result<Endpoint, String> {
    if options.is_on("mysql_compression") {
        return Err("--mysql-compression: dyno does not compress; leave it out".to_owned());
    }
    let mut endpoint = Endpoint::from_url("mysql://x@localhost/x").map_err(|error| error.0)?;
    let host = only(options, "mysql_host")?.unwrap_or_else(|| "localhost".to_owned());
    let port = only(options, "mysql_port")?.unwrap_or_else(|| "3306".to_owned());
    let port = port.parse().map_err(|_| format!("--mysql-port: {port} is not a port number"))?;
    let socket = only(options, "mysql_socket")?.map(PathBuf::from);
    let usual = || {
        let is_there = |path: &&&str| host == "localhost" && exists(Path::new(**path));
        SOCKETS.iter().find(&is_there).map(PathBuf::from)
    };
    endpoint.address = match socket.or_else(usual) {
        Some(path) => Address::Unix(path),
        None => Address::Tcp { host, port },
    };
    endpoint.tls = if options.is_on("mysql_ssl") { TlsMode::Encrypt } else { TlsMode::Off };
    endpoint.user = options.text("mysql_user").to_owned();
    endpoint.catalog = options.text("mysql_db").to_owned();
    endpoint.password = password(options.text("mysql_password"), variable("MYSQL_PWD"))?;
    Ok(endpoint)
}

fn pgsql(options: &Options, variable: &dyn Fn(&str) -> Option<String>) -> Result<Endpoint, String> {
    let mut endpoint = Endpoint::from_url("postgresql://x@localhost/x").map_err(|error| error.0)?;
    let (host, port) = (options.text("pgsql_host").to_owned(), options.number("pgsql_port"));
    endpoint.address = match host.starts_with('/') {
        true => Address::Unix(Path::new(&host).join(format!(".s.PGSQL.{port}"))),
        false => Address::Tcp { host, port: port as u16 },
    };
    endpoint.tls = match options.text("pgsql_sslmode") {
        "require" => TlsMode::Encrypt,
        "verify-ca" | "verify-full" => TlsMode::Verify { roots: None },
        _ => TlsMode::Off,
    };
    endpoint.user = options.text("pgsql_user").to_owned();
    endpoint.catalog = options.text("pgsql_db").to_owned();
    endpoint.password = password(options.text("pgsql_password"), variable("PGPASSWORD"))?;
    Ok(endpoint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let options = Options::read(&words, &|_| Ok(String::new())).unwrap();
        let exists = |path: &Path| path == Path::new("/tmp/mysql.sock");
        let variable = |name: &str| (name == "MYSQL_PWD").then(|| "secret".to_owned());
        let found = resolve(&options, &variable, &exists);
        let shown = found.map(|endpoint| {
            format!("{endpoint} {}", endpoint.password.as_ref().map_or("", Secret::reveal))
        });
        assert_eq!(shown.unwrap_or_else(|error| error), expected, "{line}");
    }

    #[test]
    fn servers_are_found_as_by_sysbench() {
        check("", "mysql://sbtest@localhost/sbtest?socket=/tmp/mysql.sock secret");
        check("--mysql-host=h --mysql-port=4 --mysql-user=u", "mysql://u@h:4/sbtest secret");
        check("--mysql-socket=/s --mysql-db=d", "mysql://sbtest@localhost/d?socket=/s secret");
        check("--mysql-host=a,b", "--mysql-host: dyno connects to one server; name only one");
        check("--db-driver=oracle", "invalid database driver name: 'oracle'");
        let pgsql = "--db-driver=pgsql --pgsql-password=p";
        check(pgsql, "postgresql://sbtest@localhost:5432/sbtest p");
        check(
            &format!("{pgsql} --pgsql-host=/s --pgsql-port=6"),
            "postgresql://sbtest@localhost:6/sbtest?host=/s p",
        );
    }
}
