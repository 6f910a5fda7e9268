//! What to watch: a server by its URL, a process, or this host.

use anyhow::Context;
use dyno_database::{Endpoint, LocalServer};
use dyno_host::RunningProcess;

use super::study::WatchOptions;
use crate::secrets;

pub(super) struct Target {
    /// Without a password.
    pub(super) name: String,
    /// False for a process or this host.
    pub(super) is_server: bool,
    /// Named by the user.
    named: Option<RunningProcess>,
    /// Found at the server's address.
    found: Option<RunningProcess>,
}

impl Target {
    /// A server must answer.
    pub(super) fn find(options: &WatchOptions) -> anyhow::Result<Target> {
        let find = |pid| {
            let missing = || anyhow::anyhow!("--pid {pid}: there is no such process");
            RunningProcess::find(pid).ok_or_else(missing).map_err(crate::usage_error)
        };
        let named = options.pid.map(find).transpose()?;
        let found = match &options.url {
            Some(url) if named.is_none() => process_of(url)?,
            Some(url) => process_of(url).map(|_| None)?,
            None => None,
        };
        let process = named.or(found).map(process_name);
        let name = match (&options.url, process) {
            (Some(url), Some(process)) => format!("{} ({process})", dyno_units::redact_url(url)),
            (Some(url), None) => dyno_units::redact_url(url),
            (None, Some(process)) => process,
            (None, None) => "this host".to_owned(),
        };
        Ok(Target { name, is_server: options.url.is_some(), named, found })
    }

    pub(super) fn has_ended(&self) -> bool {
        self.named.is_some_and(|process| !process.is_alive())
    }

    /// The process at the server's address has ended; the server may come back as another.
    pub(super) fn lost_process(&self) -> Option<String> {
        let process = self.found.filter(|process| !process.is_alive())?;
        Some(format!(
            "process {} has ended: the server at this address is still queried, but no longer its \
             process; restart `dyno watch` to watch the process as well",
            process.pid()
        ))
    }
}

/// Connects to the server; returns its process if it is on this host.
fn process_of(url: &str) -> anyhow::Result<Option<RunningProcess>> {
    let cannot = || format!("{} cannot be watched", dyno_units::redact_url(url));
    let endpoint = secrets::expand(url)
        .and_then(|url| Ok(Endpoint::from_url_of_server(&url)?))
        .with_context(cannot)
        .map_err(crate::usage_error)?;
    let mut connection = endpoint.protocol.connector(&endpoint)().with_context(cannot)?;
    let local = LocalServer::find(&endpoint, connection.as_mut());
    Ok(local.and_then(|local| RunningProcess::find(local.pid)))
}

fn process_name(process: RunningProcess) -> String {
    let pid = process.pid();
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    format!("process {pid} {}", name.trim()).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_there_while_it_runs() {
        let own = i32::try_from(std::process::id()).expect("fits");
        let process = RunningProcess::find(own).expect("it runs");
        assert!(process.is_alive() && process_name(process).starts_with("process "));
        assert_eq!(RunningProcess::find(i32::MAX), None);
    }
}
