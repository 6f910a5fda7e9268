//! HAProxy, a router that does not read what it passes on: for one server, or all nodes of a cluster.

mod probe;

use std::path::Path;
use std::sync::Arc;

use dyno_host::ProcessSpec;
use dyno_model::option::{any_count, word};
use dyno_units::Reading;

use crate::error::{Context, Result, fail};
use crate::private::{OwnServer, ServerFolder, ServerKind};
use crate::product::Family;
use crate::running::Running;
use crate::{Address, Router, RouterLaunch, RouterSpec, Server, ServerFacts};
use probe::{StatisticsProbe, ask, registered};

const CONFIGURATION_FILE: &str = "haproxy.cfg";

const STATISTICS: &str = "stats.sock";

pub(crate) const FAMILY: Family = Family {
    routers: || vec![Arc::new(HaProxy::new())],
    probes: &["haproxy"],
    readings: &[|| registered().to_vec()],
    ..Family::of(Vec::new)
};

struct HaProxy {
    spec: RouterSpec,
}

impl HaProxy {
    fn new() -> HaProxy {
        HaProxy {
            spec: RouterSpec {
                name: "haproxy",
                title: "HAProxy",
                member: "proxy",
                summary: "a proxy: it passes connections on to a server, or to all nodes of a cluster",
                fronts: &["mariadb", "mysql", "postgresql"],
                shares_load: true,
                options: vec![
                    word("balance", &["leastconn", "roundrobin", "first"])
                        .help("Which node of a cluster a connection goes to."),
                    any_count("max_clients", "0").help(
                        "Maximum number of client connections; 0 for as many as the study has \
                         clients, plus some.",
                    ),
                ],
                confused_names: &[],
            },
        }
    }
}

/// The text of its configuration file: it listens on sockets in `run` alone, or where clients on other machines reach it.
/// These log in at the servers, so that it needs no password. Bytes are counted while connections are open.
fn text(
    spec: &RouterSpec,
    launch: &RouterLaunch<'_>,
    (socket, statistics): (&Path, &Path),
) -> Result<String> {
    let clients = launch.max_clients(spec)?;
    let mut servers = String::new();
    let all = std::iter::once(launch.to).chain(launch.also);
    for (number, endpoint) in (1..).zip(all) {
        let server = match (&endpoint.address, launch.open) {
            (Address::Unix(server), None) => format!("unix@{}", plain(server)?),
            (Address::Tcp { host, port }, Some(_)) => {
                format!("ipv4@{}:{port}", plain(Path::new(host))?)
            }
            _ => return Err(launch.misplaced(spec)),
        };
        // One server has no other that could take its place, so that it is not looked after.
        let check = if launch.also.is_empty() { "" } else { " check" };
        servers += &format!("    server node-{number} {server}{check}\n");
    }
    let bind = match launch.open {
        Some(listening) => format!("ipv4@{}", listening.address),
        None => format!("unix@{} mode 600", plain(socket)?),
    };
    Ok(format!(
        "global\n    maxconn {clients}\n    stats socket unix@{} mode 600 level user\n\
         defaults\n    mode tcp\n    option contstats\n    maxconn {clients}\n    timeout connect 10s\n    timeout client 24h\n    \
         timeout server 24h\n\
         frontend clients\n    bind {bind}\n    default_backend servers\n\
         backend servers\n    balance {}\n{servers}",
        plain(statistics)?,
        launch.option(spec, "balance"),
    ))
}

/// A path in a file in which blanks separate words, and some characters have a meaning.
fn plain(path: &Path) -> Result<String> {
    let text = path.display().to_string();
    let is_odd = |c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '\\' | '#' | '$' | ',');
    match text.contains(is_odd) {
        true => fail(format!(
            "HAProxy cannot use {text}, which has a blank, a quote or one of \\ # $ , in its path; choose \
             another data folder"
        )),
        false => Ok(text),
    }
}

impl Router for HaProxy {
    fn spec(&self) -> &RouterSpec {
        &self.spec
    }

    fn readings(&self) -> &'static [Reading] {
        registered()
    }

    fn start(&self, launch: &RouterLaunch<'_>) -> Result<Box<dyn Server>> {
        let keeper = launch.place.keeper();
        let program = self.spec.program(keeper)?;
        let version = self.spec.version((&program, keeper), "-v", "HAProxy version ")?;
        let folder = ServerFolder::make(launch.place, self.spec.name)?;
        // The products' own clients derive a socket's name from a port: it is called as the server's is.
        let name = match &launch.to.address {
            Address::Unix(server) => server.file_name().unwrap_or_default(),
            Address::Tcp { .. } => "".as_ref(),
        };
        let socket = folder.run().join(name);
        let statistics = folder.run().join(STATISTICS);
        let text = text(&self.spec, launch, (&socket, &statistics))?;
        let file = folder.write(CONFIGURATION_FILE, &text)?;
        let process = ProcessSpec {
            program,
            arguments: vec!["-db".to_owned(), "-f".to_owned(), file.display().to_string()],
            log: folder.log(),
            cpus: launch.cpus.to_vec(),
            ..ProcessSpec::default()
        };
        let endpoint = launch.endpoint(socket);
        let connector = endpoint.protocol.connector(&endpoint);
        if endpoint.protocol.dialect.is_none() {
            return fail("Dyno places HAProxy only in front of servers that speak SQL");
        }
        let reach = || connector().map(drop).map_err(|error| error.reason);
        let open = launch.open.map(|listening| listening.address);
        let kind = ServerKind { open, ..ServerKind::new("HAProxy") };
        let (server, ()) = OwnServer::start(folder, &process, kind, launch.clock, reach)?;
        let options = self.spec.options.iter().map(|option| {
            let name = option.name.clone().into_owned();
            let value = launch.option(&self.spec, &name).to_owned();
            (name, value)
        });
        let facts = ServerFacts {
            product: "HAProxy".to_owned(),
            version,
            transport: launch.transport(),
            settings: options.collect(),
            ..ServerFacts::default()
        };
        let asked = statistics.clone();
        let check_alive = move |_: &Running| {
            ask(&asked).map(drop).context("HAProxy does not return its statistics")
        };
        Ok(Box::new(Running {
            facts: Box::new(move |_| Ok(facts.clone())),
            probes: Box::new(move |_| vec![Box::new(StatisticsProbe::new(statistics.clone()))]),
            check_alive: Box::new(check_alive),
            ..Running::router(server, endpoint)
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use dyno_host::Keeper;
    use dyno_units::{Clock, ManualClock};

    use super::*;
    use crate::part::Listening;
    use crate::{Endpoint, Place, Secret, TlsMode};

    fn text_of(options: &[(&str, &str)], sockets: &[&str]) -> Result<String, String> {
        let addresses = sockets.iter().map(|socket| Address::Unix(socket.into()));
        text_for(options, addresses, None)
    }

    fn text_for(
        options: &[(&str, &str)],
        addresses: impl Iterator<Item = Address>,
        open: Option<&Listening>,
    ) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::under(&Arc::new(Keeper::new(folder.path()).unwrap()));
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new());
        let options: BTreeMap<String, String> =
            options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let endpoints: Vec<Endpoint> = addresses
            .map(|address| Endpoint {
                protocol: &crate::mysql::PROTOCOL,
                address,
                user: "root".to_owned(),
                password: None,
                catalog: "dyno".to_owned(),
                tls: TlsMode::Off,
                server_public_key: None,
                session_options: None,
            })
            .collect();
        let launch = RouterLaunch {
            options: &options,
            to: &endpoints[0],
            also: &endpoints[1..],
            open,
            clients: 20,
            cpus: &[],
            place: &place,
            clock: &clock,
        };
        let router = HaProxy::new();
        text(router.spec(), &launch, (Path::new("/p/run/a"), Path::new("/p/run/b")))
            .map_err(|error| error.message)
    }

    #[test]
    fn it_listens_on_sockets_alone_and_passes_on_to_sockets() {
        let alone = text_of(&[], &["/d/run/server.sock"]).unwrap();
        assert!(alone.contains("bind unix@/p/run/a mode 600\n"), "{alone}");
        assert!(alone.contains("    server node-1 unix@/d/run/server.sock\n"), "{alone}");
        assert!(alone.contains("maxconn 50\n"), "{alone}");
        assert!(!alone.contains(':'), "{alone}");
        let two = text_of(&[("balance", "first"), ("max_clients", "2k")], &["/1", "/2"]).unwrap();
        assert!(two.contains("balance first\n    server node-1 unix@/1 check\n"), "{two}");
        assert!(two.contains("    server node-2 unix@/2 check\n"), "{two}");
        assert!(two.contains("maxconn 2000\n"), "{two}");
        let error = text_of(&[], &["/a b"]).unwrap_err();
        assert!(error.contains("choose another data folder"), "{error}");
    }

    #[test]
    fn across_machines_it_listens_and_passes_on_by_addresses_and_knows_no_password() {
        let listening =
            Listening { address: "10.0.0.9:7000".parse().unwrap(), password: Secret::new("hush") };
        let tcp = |host: &str| Address::Tcp { host: host.to_owned(), port: 3306 };
        let both = [tcp("10.0.0.1"), tcp("10.0.0.2")];
        let text = text_for(&[], both.into_iter(), Some(&listening)).unwrap();
        assert!(text.contains("bind ipv4@10.0.0.9:7000\n"), "{text}");
        assert!(text.contains("    server node-1 ipv4@10.0.0.1:3306 check\n"), "{text}");
        assert!(text.contains("    server node-2 ipv4@10.0.0.2:3306 check\n"), "{text}");
        assert!(text.contains("stats socket unix@/p/run/b mode 600"), "{text}");
        assert!(!text.contains("hush"), "{text}");
        // Nobody on another machine reaches a socket of this one.
        let mixed = [tcp("10.0.0.1"), Address::Unix("/d/s".into())];
        let error = text_for(&[], mixed.into_iter(), Some(&listening)).unwrap_err();
        assert!(error.contains("by their addresses"), "{error}");
    }
}
