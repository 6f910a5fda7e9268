//! The owner file: whose a server folder is, and which processes were started in it.
//!
//! It lies beside the folder, not in it: a server may write in its own folder and could otherwise
//! name processes that are not its own.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::KeeperError;
use crate::process_table::{ProcessIdentity, ProcessStat};

/// How the name of an owner file ends.
pub(super) const OWNER_SUFFIX: &str = ".owner.json";

/// Who made a folder, and what runs in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owner {
    /// The folder, in full.
    pub(super) folder: PathBuf,
    /// The boot in which the ids below mean something.
    pub(super) boot: String,
    /// The process id namespace in which they do: containers share a boot, but not their ids.
    pub(super) namespace: String,
    /// The Dyno process.
    pub(super) dyno: ProcessIdentity,
    /// The processes started in the folder.
    pub(super) processes: Vec<ProcessIdentity>,
}

/// Where and when this Dyno lives: what makes a process id unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Whoami {
    pub(super) boot: String,
    pub(super) namespace: String,
    pub(super) dyno: ProcessIdentity,
}

/// What is known about the Dyno that an owner file names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is this very process.
    Ours,
    /// It runs, or nobody can prove from here that it does not.
    MayLive,
    /// It has ended, and so may be what it started.
    Dead,
    /// It ended with an earlier boot, and so did all its processes.
    EarlierBoot,
}

impl Whoami {
    /// Looks this process up.
    pub(super) fn find(proc_root: &Path) -> Result<Whoami, KeeperError> {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let stat = ProcessStat::read(proc_root, pid).ok_or_else(|| {
            KeeperError(format!(
                "{} does not tell about this process ({pid}); is /proc mounted?",
                proc_root.display()
            ))
        })?;
        let boot_path = proc_root.join("sys/kernel/random/boot_id");
        let boot = fs::read_to_string(&boot_path)
            .map_err(|e| KeeperError(format!("{} cannot be read: {e}", boot_path.display())))?;
        let namespace = fs::read_link(proc_root.join("self/ns/pid"))
            .map(|link| link.to_string_lossy().into_owned())
            .unwrap_or_default();
        Ok(Whoami { boot: boot.trim().to_owned(), namespace, dyno: stat.identity() })
    }
}

impl Owner {
    /// The owner file of a fresh folder of this Dyno.
    pub(super) fn new(folder: &Path, me: &Whoami) -> Owner {
        Owner {
            folder: folder.to_owned(),
            boot: me.boot.clone(),
            namespace: me.namespace.clone(),
            dyno: me.dyno,
            processes: Vec::new(),
        }
    }

    /// Where the owner file of a folder lies.
    pub(super) fn path_of(folder: &Path) -> PathBuf {
        let mut path = folder.as_os_str().to_owned();
        path.push(OWNER_SUFFIX);
        PathBuf::from(path)
    }

    /// Reads the owner file of a folder. It counts only if it is a plain file of Dyno's own user
    /// that names this very folder.
    pub(super) fn read(folder: &Path) -> Result<Owner, KeeperError> {
        let path = Owner::path_of(folder);
        let refuse = |why: String| {
            KeeperError(format!("the owner file {} does not count: {why}", path.display()))
        };
        let facts = fs::symlink_metadata(&path).map_err(|e| refuse(e.to_string()))?;
        if !facts.is_file() {
            return Err(refuse("it is not a plain file".into()));
        }
        if facts.uid() != rustix::process::geteuid().as_raw() {
            return Err(refuse("it belongs to another user".into()));
        }
        let text = fs::read(&path).map_err(|e| refuse(e.to_string()))?;
        let owner: Owner = serde_json::from_slice(&text).map_err(|e| refuse(e.to_string()))?;
        if owner.folder != folder {
            return Err(refuse(format!("it names {}", owner.folder.display())));
        }
        Ok(owner)
    }

    /// Writes the owner file; whoever reads it meanwhile sees the old or the new one, whole.
    pub(super) fn write(&self) -> Result<(), KeeperError> {
        let path = Owner::path_of(&self.folder);
        let fresh = path.with_extension("json.new");
        let write = || -> std::io::Result<()> {
            let text = serde_json::to_vec(self)?;
            let mut options = fs::OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o644);
            let mut file = options.open(&fresh)?;
            file.write_all(&text)?;
            fs::rename(&fresh, &path)
        };
        write().map_err(|e| KeeperError(format!("{} cannot be written: {e}", path.display())))
    }

    /// Whether the Dyno that made the folder may still want it.
    pub(super) fn standing(&self, me: &Whoami, proc_root: &Path) -> Standing {
        if self.boot != me.boot {
            return Standing::EarlierBoot;
        }
        if self.namespace != me.namespace {
            return Standing::MayLive;
        }
        if self.dyno == me.dyno {
            return Standing::Ours;
        }
        if self.dyno.is_alive(proc_root) { Standing::MayLive } else { Standing::Dead }
    }
}
