//! PgBouncer's configuration, from the options of a study.

use std::path::Path;

use dyno_model::OptionSpec;
use dyno_model::option::{any_count, word};

use crate::error::{Result, fail};
use crate::part::{CLIENT_USER, Listening};
use crate::postgresql::settings::PORT;
use crate::{Address, Endpoint, RouterLaunch, RouterSpec};

pub(super) fn options() -> Vec<OptionSpec> {
    vec![
        word("pool_mode", &["session", "transaction", "statement"]).help(
            "When a client gives its server connection back: when it disconnects, after each \
             transaction, after each statement.",
        ),
        any_count("pool_size", "20").help("Maximum number of connections to the server."),
        any_count("min_pool_size", "0")
            .help("Minimum number of connections to the server that stay open."),
        any_count("reserve_pool_size", "0")
            .help("Further connections to the server for clients that have waited for 5 s."),
        any_count("max_clients", "0").help(
            "Maximum number of client connections; 0 for as many as the study has clients, plus \
             some.",
        ),
        any_count("query_wait_timeout", "120").help(
            "Seconds that a client waits for a connection before it is disconnected; 0 for no \
             limit.",
        ),
        any_count("server_idle_timeout", "600")
            .help("Seconds after which an idle connection to the server is closed."),
    ]
}

/// Whether a client's next transaction may be on another connection to the server.
pub(super) fn is_shared(spec: &RouterSpec, launch: &RouterLaunch<'_>) -> bool {
    launch.option(spec, "pool_mode") != "session"
}

/// Has the password of clients on other machines, who log in at the pooler; the pooler uses it at the server, too.
pub(super) const PASSWORD_FILE: &str = "userlist.txt";

pub(super) fn passwords(listening: &Listening) -> String {
    // It is hexadecimal.
    format!("\"{CLIENT_USER}\" \"{}\"\n", listening.password.reveal())
}

/// The configuration file. Listens on its socket in `run`, or on a port for clients on other machines.
pub(super) fn text(
    spec: &RouterSpec,
    launch: &RouterLaunch<'_>,
    (folder, run): (&Path, &Path),
) -> Result<String> {
    let (server, listens) = match (&launch.to.address, launch.open) {
        (Address::Unix(socket), None) => {
            let sockets = plain(socket.parent().unwrap_or(Path::new("/")))?;
            let listens = format!(
                "listen_addr =\n\
                 listen_port = {PORT}\n\
                 unix_socket_dir = {run}\n\
                 unix_socket_mode = 0700\n\
                 auth_type = any\n",
                run = plain(run)?,
            );
            (format!("host={sockets} port={PORT}"), listens)
        }
        (Address::Tcp { host, port }, Some(Listening { address, .. })) => {
            let listens = format!(
                "listen_addr = {ip}\n\
                 listen_port = {own}\n\
                 unix_socket_dir =\n\
                 auth_type = scram-sha-256\n\
                 auth_file = {file}\n\
                 stats_users = {CLIENT_USER}\n",
                ip = address.ip(),
                own = address.port(),
                file = plain(&folder.join(PASSWORD_FILE))?,
            );
            (format!("host={} port={port}", plain(Path::new(host))?), listens)
        }
        _ => return Err(launch.misplaced(spec)),
    };
    let option = |name: &str| launch.count(spec, name);
    let Endpoint { catalog, user, .. } = launch.to;
    let clients = launch.max_clients(spec)?;
    Ok(format!(
        "[databases]\n\
         {catalog} = {server} user={user} dbname={catalog}\n\
         [pgbouncer]\n\
         {listens}\
         pool_mode = {mode}\n\
         default_pool_size = {size}\n\
         min_pool_size = {least}\n\
         reserve_pool_size = {reserve}\n\
         max_client_conn = {clients}\n\
         query_wait_timeout = {wait}\n\
         server_idle_timeout = {idle}\n\
         server_round_robin = 0\n\
         log_connections = 0\n\
         log_disconnections = 0\n",
        mode = launch.option(spec, "pool_mode"),
        size = at_least_one("pool_size", option("pool_size")?)?,
        least = option("min_pool_size")?,
        reserve = option("reserve_pool_size")?,
        wait = option("query_wait_timeout")?,
        idle = option("server_idle_timeout")?,
    ))
}

pub(super) fn pool_size(spec: &RouterSpec, launch: &RouterLaunch<'_>) -> usize {
    let sizes = ["pool_size", "reserve_pool_size"].map(|name| launch.count(spec, name));
    sizes.into_iter().filter_map(Result::ok).sum::<u64>() as usize
}

fn at_least_one(name: &str, value: u64) -> Result<u64> {
    match value {
        0 => fail(format!("`{name}` must be at least 1")),
        value => Ok(value),
    }
}

/// A path in a file in which blanks separate words.
fn plain(path: &Path) -> Result<String> {
    let text = path.display().to_string();
    match text.contains(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | ',')) {
        true => fail(format!(
            "PgBouncer cannot use {text}, which has a blank or a quote in its path; choose another data \
             folder"
        )),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use dyno_units::{Clock, ManualClock};

    use super::super::PgBouncer;
    use super::*;
    use crate::{Place, Router, Secret, TlsMode};

    fn endpoint(socket: &str) -> Endpoint {
        Endpoint {
            protocol: &crate::postgresql::PROTOCOL,
            address: Address::Unix(socket.into()),
            user: "dyno".to_owned(),
            password: None,
            catalog: "dyno".to_owned(),
            tls: TlsMode::Off,
            server_public_key: None,
            session_options: None,
        }
    }

    fn text_of(options: &[(&str, &str)], socket: &str) -> Result<String, String> {
        text_for(options, endpoint(socket), None)
    }

    fn text_for(
        options: &[(&str, &str)],
        to: Endpoint,
        open: Option<&Listening>,
    ) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::under(&Arc::new(dyno_host::Keeper::new(folder.path()).unwrap()));
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new());
        let options: BTreeMap<String, String> =
            options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let launch = RouterLaunch {
            options: &options,
            to: &to,
            also: &[],
            open,
            clients: 20,
            cpus: &[],
            place: &place,
            clock: &clock,
        };
        let router = PgBouncer::new();
        text(router.spec(), &launch, (Path::new("/d/pool"), Path::new("/d/pool/run")))
            .map_err(|error| error.message)
    }

    #[test]
    fn it_listens_on_its_socket_alone() {
        let text = text_of(
            &[("pool_mode", "transaction"), ("pool_size", "4")],
            "/d/server/run/.s.PGSQL.5432",
        );
        let text = text.unwrap();
        for line in [
            "dyno = host=/d/server/run port=5432 user=dyno dbname=dyno",
            "listen_addr =",
            "unix_socket_dir = /d/pool/run",
            "unix_socket_mode = 0700",
            "pool_mode = transaction",
            "default_pool_size = 4",
            "max_client_conn = 50",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn across_machines_clients_log_in_with_a_password_of_another_file() {
        let listening =
            Listening { address: "10.0.0.9:7000".parse().unwrap(), password: Secret::new("hush") };
        let address = Address::Tcp { host: "10.0.0.1".to_owned(), port: 5433 };
        let to = Endpoint { address, user: CLIENT_USER.to_owned(), ..endpoint("/s") };
        let text = text_for(&[], to, Some(&listening)).unwrap();
        for line in [
            "dyno = host=10.0.0.1 port=5433 user=dyno_client dbname=dyno",
            "listen_addr = 10.0.0.9",
            "listen_port = 7000",
            "unix_socket_dir =",
            "auth_type = scram-sha-256",
            "auth_file = /d/pool/userlist.txt",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("hush"), "{text}");
        assert_eq!(passwords(&listening), "\"dyno_client\" \"hush\"\n");
        // A socket is of one machine.
        let error = text_for(&[], endpoint("/s"), Some(&listening)).unwrap_err();
        assert!(error.contains("by their addresses"), "{error}");
    }

    #[test]
    fn defaults_are_its_own_and_wrong_values_are_refused() {
        let socket = "/d/run/.s.PGSQL.5432";
        let text = text_of(&[("max_clients", "2k")], socket).unwrap();
        assert!(text.contains("pool_mode = session\ndefault_pool_size = 20\n"), "{text}");
        assert!(text.contains("max_client_conn = 2000\n"), "{text}");
        let check = |options: &[(&str, &str)], socket: &str, part: &str| {
            let error = text_of(options, socket).unwrap_err();
            assert!(error.contains(part), "{error}");
        };
        check(&[("pool_size", "0")], socket, "at least 1");
        check(&[("pool_size", "x")], socket, "x");
        check(&[], "/a b/run/.s.PGSQL.5432", "a blank or a quote");
    }
}
