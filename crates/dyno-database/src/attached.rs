//! A running server that Dyno did not start, of any protocol: it is used, or only observed.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dyno_host::{DataFiles, is_loopback, listener_of_port, listener_of_socket};
use dyno_workload::{Connection, Connector};

use crate::catalog::first_cell;
use crate::error::Result;
use crate::{Address, AttachOptions, Endpoint, Protocol, Server, ServerFacts};

/// What a protocol holds of a server that Dyno did not start.
pub(crate) trait Hold: Send {
    /// Why it is down, or none while it runs or that cannot be seen.
    fn down(&mut self, _endpoint: &Endpoint) -> Option<String> {
        None
    }

    /// Bytes of the catalog, as the server reports them.
    fn data_bytes(&mut self, _endpoint: &Endpoint) -> Option<u64> {
        None
    }

    /// Drops what Dyno made in it.
    fn remove(self: Box<Self>, endpoint: &Endpoint) -> Result<()>;
}

/// Replaces a lost connection; returns why the server is down if none can be opened.
pub(crate) fn replaced<C>(
    guard: &mut C,
    reason: impl fmt::Display,
    opened: Result<C, impl fmt::Display>,
) -> Option<String> {
    match opened {
        Ok(connection) => {
            *guard = connection;
            None
        }
        Err(error) => Some(format!("{reason}; {error}")),
    }
}

impl Hold for () {
    fn remove(self: Box<Self>, _: &Endpoint) -> Result<()> {
        Ok(())
    }
}

pub(crate) struct Attached {
    pub(crate) endpoint: Endpoint,
    pub(crate) connector: Connector,
    /// The parts of it on this host, to be observed.
    pub(crate) local: Option<LocalServer>,
    pub(crate) keeps_tables: bool,
    pub(crate) hold: Mutex<Box<dyn Hold>>,
}

impl Attached {
    pub(crate) fn new(
        endpoint: &Endpoint,
        options: AttachOptions,
        local: Option<LocalServer>,
        hold: impl Hold + 'static,
    ) -> Attached {
        Attached {
            endpoint: endpoint.clone(),
            connector: endpoint.protocol.connector(endpoint),
            local,
            keeps_tables: options.keep_tables || options.makes_nothing,
            hold: Mutex::new(Box::new(hold)),
        }
    }

    fn hold(&self) -> MutexGuard<'_, Box<dyn Hold>> {
        self.hold.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running server, for observation alone: it is neither claimed nor changed, and may come and go.
/// Fails if it cannot be reached.
pub fn observe(endpoint: &Endpoint) -> Result<Box<dyn Server>> {
    let mut connection = endpoint.protocol.connector(endpoint)()?;
    let local = LocalServer::find(endpoint, connection.as_mut());
    Ok(Box::new(Attached::new(endpoint, AttachOptions::default(), local, ())))
}

impl Server for Attached {
    fn connector(&self) -> Connector {
        Arc::clone(&self.connector)
    }

    fn endpoint(&self) -> Option<&Endpoint> {
        Some(&self.endpoint)
    }

    fn local(&self) -> Option<&LocalServer> {
        self.local.as_ref()
    }

    fn facts(&self) -> Result<ServerFacts> {
        self.endpoint.protocol.facts(&self.endpoint)
    }

    fn down(&mut self) -> Option<String> {
        self.hold().down(&self.endpoint)
    }

    fn data_bytes(&self) -> Option<u64> {
        self.hold().data_bytes(&self.endpoint)
    }

    fn stop(self: Box<Self>) -> Result<()> {
        let Attached { endpoint, hold, keeps_tables, .. } = *self;
        match keeps_tables {
            true => Ok(()),
            false => hold.into_inner().unwrap_or_else(PoisonError::into_inner).remove(&endpoint),
        }
    }
}

/// The parts on this host of a server that Dyno did not start. Nothing is claimed and nothing changed; what is not
/// certain is left out.
#[derive(Clone, Debug)]
pub struct LocalServer {
    /// Its process, whose descendants belong to it.
    pub pid: i32,
    /// Its data, if it reports the folder and this user may see it.
    pub data: Option<DataFiles>,
}

impl LocalServer {
    /// The server at the other end, if it is on this host: the process that listens on the Unix
    /// socket, or on the port of a loopback address. `connection` is one to it.
    pub fn find(endpoint: &Endpoint, connection: &mut dyn Connection) -> Option<LocalServer> {
        let spec = endpoint.protocol;
        let pid = match &endpoint.address {
            Address::Unix(path) => listener_of_socket(path),
            Address::Tcp { host, port } if is_loopback(host) => {
                listener_of_port(host, *port, spec.programs)
            }
            Address::Tcp { .. } => None,
        }?;
        Some(LocalServer { pid, data: data(spec, pid, connection) })
    }
}

fn data(spec: &Protocol, pid: i32, connection: &mut dyn Connection) -> Option<DataFiles> {
    let root = PathBuf::from(first_cell(connection.query(spec.data_folder).ok()?)?);
    is_seen_alike(pid, &root).then_some(DataFiles { root, kind: spec.file_kind })
}

/// Whether a folder is the same for a process and for this one: in a container it may be another
/// one of the same name.
fn is_seen_alike(pid: i32, folder: &Path) -> bool {
    let Ok(relative) = folder.strip_prefix("/") else { return false };
    let theirs = fs::metadata(Path::new("/proc").join(pid.to_string()).join("root").join(relative));
    let (Ok(ours), Ok(theirs)) = (fs::metadata(folder), theirs) else { return false };
    let is_same = (ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino());
    is_same && ours.is_dir() && fs::read_dir(folder).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_the_same_for_oneself() {
        let own = i32::try_from(std::process::id()).expect("fits");
        let folder = tempfile::tempdir().expect("a folder");
        assert!(is_seen_alike(own, folder.path()));
        assert!(!is_seen_alike(own, &folder.path().join("missing")));
        assert!(!is_seen_alike(own, Path::new("relative")));
        assert!(!is_seen_alike(i32::MAX, folder.path()));
        let file = folder.path().join("file");
        fs::write(&file, "").expect("written");
        assert!(!is_seen_alike(own, &file));
    }
}
