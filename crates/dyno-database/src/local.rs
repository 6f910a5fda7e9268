//! A server that Dyno did not start and that runs on this host: its process and its data.
//!
//! Main type: [`LocalServer`]. Nothing is claimed and nothing changed; what is not certain is
//! left out.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use dyno_host::{DataFiles, is_loopback, listener_of_port, listener_of_socket};
use dyno_workload::Connection;

use crate::{Address, Endpoint, ProtocolSpec};

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
        let spec = endpoint.protocol.spec();
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

fn data(spec: &ProtocolSpec, pid: i32, connection: &mut dyn Connection) -> Option<DataFiles> {
    let answer = connection.query(spec.data_folder).ok()?;
    let root = PathBuf::from(answer.into_iter().flatten().next()??);
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
