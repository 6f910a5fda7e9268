//! What is watched: a server by its URL, a process, or this host.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use dyno_database::{Endpoint, LocalServer, endpoint_probes};
use dyno_host::{DataFiles, HostSpec, ThreadListing};
use dyno_lab::observe::Watched;
use dyno_record::ServerFacts;
use dyno_units::Clock;

use super::WatchOptions;
use crate::secrets;

/// What is watched.
pub(super) struct Target {
    /// For people; holds no password.
    pub(super) name: String,
    /// The protocol's name, `process`, or `host`.
    pub(super) product: &'static str,
    endpoint: Option<Endpoint>,
    /// The process, if there is one on this host that is known.
    pid: Option<i32>,
    /// Whether the user named the process; else it was found by the server's address.
    is_pid_named: bool,
    /// Its data, where they can be seen.
    data: Option<DataFiles>,
}

impl Target {
    /// Finds what the user named; a server has to answer.
    pub(super) fn find(options: &WatchOptions) -> anyhow::Result<Target> {
        if let Some(pid) = options.pid
            && !is_there(pid)
        {
            return Err(crate::usage_error(anyhow::anyhow!(
                "--pid {pid}: there is no such process"
            )));
        }
        let Some(url) = &options.url else {
            let (name, product) = match options.pid {
                Some(pid) => (process_name(pid), "process"),
                None => ("this host".to_owned(), "host"),
            };
            let (pid, is_pid_named) = (options.pid, options.pid.is_some());
            return Ok(Target { name, product, endpoint: None, pid, is_pid_named, data: None });
        };
        let endpoint = read_url(url).map_err(crate::usage_error)?;
        let local = look(&endpoint)?;
        let product = endpoint.protocol.name();
        let (found, data) = local.map(|local| (local.pid, local.data)).unzip();
        let pid = options.pid.or(found);
        let name = match pid {
            Some(pid) => format!("{} ({})", dyno_units::redact_url(url), process_name(pid)),
            None => dyno_units::redact_url(url),
        };
        Ok(Target {
            name,
            product,
            endpoint: Some(endpoint),
            pid,
            is_pid_named: options.pid.is_some(),
            data: data.flatten(),
        })
    }

    /// Whether it is a server, and not only a process or this host.
    pub(super) fn is_server(&self) -> bool {
        self.endpoint.is_some()
    }

    /// What the server says of itself; nothing where there is none.
    pub(super) fn facts(&self) -> anyhow::Result<ServerFacts> {
        let Some(endpoint) = &self.endpoint else {
            return Ok(ServerFacts { product: self.product.to_owned(), ..ServerFacts::default() });
        };
        Ok(dyno_lab::recorded(dyno_database::endpoint_facts(endpoint)?))
    }

    /// The probes.
    pub(super) fn watched(&self, clock: &Arc<dyn Clock>) -> Watched {
        let listing = ThreadListing::default();
        let spec = HostSpec {
            server_pids: self.pid.into_iter().collect(),
            data: self.data.clone(),
            data_disk: None,
            threads: Some(dyno_database::thread_group),
            listing: listing.clone(),
            members: Vec::new(),
        };
        let wanted = self.pid.is_some().then_some(&listing);
        let probes = self.endpoint.as_ref().map(|endpoint| endpoint_probes(endpoint, wanted));
        let probes = probes.unwrap_or_default();
        probes.into_iter().fold(Watched::host(&spec, clock), Watched::with)
    }

    /// Whether the process that the user named is there no more.
    pub(super) fn has_ended(&self) -> bool {
        self.is_pid_named && self.pid.is_some_and(|pid| !is_there(pid))
    }

    /// What to say where the process that was found at the server's address is there no more: the
    /// server may come back there, as another process.
    pub(super) fn lost_process(&self) -> Option<String> {
        let pid = self.pid.filter(|pid| !self.is_pid_named && !is_there(*pid))?;
        Some(format!(
            "process {pid} has ended: the server at this address is still queried, but its process \
             is no longer read; start `dyno watch` again for that"
        ))
    }
}

fn read_url(url: &str) -> anyhow::Result<Endpoint> {
    let endpoint = Endpoint::from_url_of_server(&secrets::expand(url)?)
        .with_context(|| format!("{} cannot be watched", dyno_units::redact_url(url)))?;
    crate::terminal::warn_of_login(&endpoint);
    Ok(endpoint)
}

/// Whether a process runs; one that only waits to be collected does not.
fn is_there(pid: i32) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    let state = stat.ok().and_then(|text| text.rsplit_once(") ")?.1.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

fn process_name(pid: i32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    format!("process {pid} {}", name.trim()).trim_end().to_owned()
}

/// Connects, and finds what of the server is on this host.
fn look(endpoint: &Endpoint) -> anyhow::Result<Option<LocalServer>> {
    let connector = endpoint.protocol.connector(endpoint);
    let mut connection = connector().with_context(|| format!("{endpoint} cannot be watched"))?;
    Ok(LocalServer::find(endpoint, connection.as_mut()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_there_while_it_runs() {
        let own = i32::try_from(std::process::id()).expect("fits");
        assert!(is_there(own) && process_name(own).starts_with("process "));
        assert!(!is_there(i32::MAX));
    }
}
