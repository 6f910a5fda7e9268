//! What is watched: a server by its URL, a process, or this host.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use dyno_database::{Address, Endpoint, Protocol, endpoint_probes};
use dyno_host::HostSpec;
use dyno_lab::observe::Watched;
use dyno_units::Clock;

use super::WatchOptions;
use crate::secrets;

/// What is watched.
pub(super) struct Target {
    /// For people; holds no password.
    pub(super) name: String,
    /// `mariadb`, `postgresql`, `process`, `host`.
    pub(super) product: &'static str,
    endpoint: Option<Endpoint>,
    /// The process, if there is one on this host that is known.
    pid: Option<i32>,
}

impl Target {
    /// Finds what the user named; a server has to answer.
    pub(super) fn find(options: &WatchOptions) -> anyhow::Result<Target> {
        if let Some(pid) = options.pid
            && !is_there(pid)
        {
            bail!("--pid {pid}: there is no such process");
        }
        let Some(url) = &options.url else {
            let (name, product) = match options.pid {
                Some(pid) => (process_name(pid), "process"),
                None => ("this host".to_owned(), "host"),
            };
            return Ok(Target { name, product, endpoint: None, pid: options.pid });
        };
        let endpoint = Endpoint::from_url(&secrets::expand(url)?)
            .with_context(|| format!("{} cannot be watched", dyno_study::redact_urls(url)))?;
        try_connect(&endpoint)?;
        let product = match endpoint.protocol {
            Protocol::MySql => "mysql",
            Protocol::PostgreSql => "postgresql",
        };
        let pid = options.pid.or_else(|| peer(&endpoint));
        let name = match pid {
            Some(pid) => format!("{} ({})", dyno_study::redact_urls(url), process_name(pid)),
            None => dyno_study::redact_urls(url),
        };
        Ok(Target { name, product, endpoint: Some(endpoint), pid })
    }

    /// The probes.
    pub(super) fn watched(&self, clock: &Arc<dyn Clock>) -> Watched {
        let spec = HostSpec {
            server_pids: self.pid.into_iter().collect(),
            data: None,
            threads: Some(dyno_database::thread_group),
        };
        let probes = self.endpoint.as_ref().map(endpoint_probes).unwrap_or_default();
        probes.into_iter().fold(Watched::host(&spec, clock), Watched::with)
    }

    /// Whether it was a process that is there no more.
    pub(super) fn has_ended(&self) -> bool {
        self.pid.is_some_and(|pid| !is_there(pid))
    }
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

fn try_connect(endpoint: &Endpoint) -> anyhow::Result<()> {
    let connector = match endpoint.protocol {
        Protocol::MySql => dyno_database::mysql::connector(endpoint.clone()),
        Protocol::PostgreSql => dyno_database::postgresql::connector(endpoint.clone()),
    };
    connector().map(|_| ()).with_context(|| format!("{endpoint} cannot be watched"))
}

/// The process at the other end of a Unix socket.
fn peer(endpoint: &Endpoint) -> Option<i32> {
    let Address::Unix(path) = &endpoint.address else { return None };
    let stream = UnixStream::connect(path).ok()?;
    let peer = rustix::net::sockopt::socket_peercred(&stream).ok()?;
    Some(peer.pid.as_raw_nonzero().get())
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
