//! Finds programs on this host, and starts them apart from Dyno.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Keeper, KeeperError};

/// PATH often lacks the `sbin` folders, where servers are.
pub(super) const USUAL_FOLDERS: [&str; 7] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/libexec"];

/// Relative folders depend on Dyno's working directory.
pub(super) fn path_folders(path_value: &OsStr) -> Vec<PathBuf> {
    std::env::split_paths(path_value).filter(|folder| folder.is_absolute()).collect()
}

pub(super) fn find<'a>(name: &str, folders: impl Iterator<Item = &'a Path>) -> Option<PathBuf> {
    if name.is_empty() || name.contains('/') {
        return None;
    }
    folders.map(|folder| folder.join(name)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

impl Keeper {
    /// Leads its own process group: Dyno gets Ctrl-C, and stops it in order. Under another user it
    /// has its own session, without a terminal: a process that shares root's can type into it
    /// (`ioctl(TIOCSTI)`), and root's shell runs that.
    pub(super) fn apart(&self, program: &Path) -> Result<Command, KeeperError> {
        if !self.has_own_sessions {
            let mut command = Command::new(program);
            command.process_group(0);
            return Ok(command);
        }
        let setsid = find("setsid", USUAL_FOLDERS.iter().map(Path::new));
        let setsid = setsid.ok_or_else(|| {
            KeeperError(format!(
                "the program `setsid` (package util-linux) is missing; without it, {} would share \
                 root's terminal; install it, or run Dyno as a user other than root",
                program.display()
            ))
        })?;
        // setsid would report this only in the log.
        if let Err(e) = fs::metadata(program) {
            let program = program.display();
            return Err(KeeperError(format!("{program} cannot be started: {e}")));
        }
        // A new process leads no group, so it leads the session and keeps its id.
        let mut command = Command::new(setsid);
        command.arg(program);
        Ok(command)
    }
}
