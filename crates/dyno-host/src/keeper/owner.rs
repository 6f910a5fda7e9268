//! The owner file: names the Dyno that owns a server folder, and its processes. It lies beside the
//! folder and has a random token that is also in the folder, so a forged or copied file proves
//! nothing. Dyno locks it for life: a lock is seen where process ids are not (in containers).

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use serde::{Deserialize, Serialize};

use super::files::{Access, is_at, make, open_own, read_own};
use crate::container::ContainersNote;
use crate::{KeeperError, OrKeeper, ProcessIdentity, ProcessStat, Result};

pub(super) const OWNER_SUFFIX: &str = ".owner.json";
/// Of a file still being written.
pub(super) const FRESH_SUFFIX: &str = ".owner.json.new";
pub(super) const TOKEN_FILE: &str = ".dyno-owner";
const TOKEN_BYTES: usize = 16;
/// More than any owner file has.
const OWNER_BYTES_MAX: u64 = 64 * 1024;
/// If another process removes the new file.
const WRITE_TRIES: usize = 10;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owner {
    pub(super) folder: PathBuf,
    /// As in the folder's token file.
    pub(super) token: String,
    /// Empty if the machine has no id.
    pub(super) machine: String,
    /// In which the ids below are valid.
    pub(super) boot: String,
    /// Of process ids: containers share a boot, but not their ids.
    pub(super) namespace: String,
    pub(super) dyno: ProcessIdentity,
    pub(super) processes: Vec<ProcessIdentity>,
    /// To remove traces outside of the folder.
    pub(super) after_crash: Option<AfterCrash>,
    #[serde(default)]
    pub(super) groups: Vec<PathBuf>,
    #[serde(default)]
    pub(super) containers: Option<ContainersNote>,
}

/// A program that removes what a dead server left outside of its folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AfterCrash {
    /// Exists only if the server died without cleaning up. In the folder, or absolute.
    pub if_there: PathBuf,
    pub program: PathBuf,
    /// Without the program's name.
    pub arguments: Vec<String>,
    /// Receives the process id in that file: the dead process may still look alive.
    #[serde(default)]
    pub pid_variable: Option<String>,
}

/// What makes a process id unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Whoami {
    pub(super) machine: String,
    pub(super) boot: String,
    pub(super) boot_unix_s: i64,
    pub(super) namespace: String,
    pub(super) dyno: ProcessIdentity,
}

/// Of the Dyno that an owner file names, if its lock is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Ours,
    /// It may run, as far as can be known here.
    MayLive,
    /// Its processes may be ended.
    Dead,
    /// It ended with an earlier boot, if nothing has been written since this one.
    EarlierBoot,
}

impl Whoami {
    pub(super) fn find(proc_root: &Path) -> Result<Whoami> {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let stat = ProcessStat::read(proc_root, pid).or_keeper(|| {
            format!(
                "{} does not describe this process ({pid}); is /proc mounted?",
                proc_root.display()
            )
        })?;
        let read = |path: PathBuf| fs::read_to_string(&path).or_path(&path, "cannot be read");
        let boot = read(proc_root.join("sys/kernel/random/boot_id"))?;
        let namespace = fs::read_link(proc_root.join("self/ns/pid")).unwrap_or_default();
        let namespace = namespace.to_string_lossy().into_owned();
        // Containers often have none, and cloned machines share it: one proof of several.
        let machine = fs::read_to_string("/etc/machine-id").unwrap_or_default();
        Ok(Whoami {
            machine: machine.trim().to_owned(),
            boot: boot.trim().to_owned(),
            boot_unix_s: boot_time(&read(proc_root.join("stat"))?).unwrap_or(0),
            namespace,
            dyno: stat.identity(),
        })
    }
}

/// From `/proc/stat`.
fn boot_time(text: &str) -> Option<i64> {
    text.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok())
}

impl Owner {
    pub(super) fn new(folder: &Path, me: &Whoami) -> Result<Owner> {
        let token = random_token()
            .or_keeper(|| format!("cannot get random numbers for {}", folder.display()))?;
        Ok(Owner {
            folder: folder.to_owned(),
            token,
            machine: me.machine.clone(),
            boot: me.boot.clone(),
            namespace: me.namespace.clone(),
            dyno: me.dyno,
            processes: Vec::new(),
            after_crash: None,
            groups: Vec::new(),
            containers: None,
        })
    }

    /// Its processes must have ended.
    pub(super) fn remove_groups(&self) -> Result<()> {
        self.groups.iter().try_for_each(|group| super::group::remove(group))
    }

    /// Running or not; returns their number.
    pub(super) fn remove_containers(&self) -> Result<usize> {
        self.containers.as_ref().map_or(Ok(0), ContainersNote::remove_all)
    }

    pub(super) fn path_of(folder: &Path) -> PathBuf {
        let mut path = folder.as_os_str().to_owned();
        path.push(OWNER_SUFFIX);
        PathBuf::from(path)
    }

    /// Must be a plain file of Dyno's user that names this very folder. Returned open.
    pub(super) fn read(folder: &Path) -> Result<(File, Owner)> {
        let path = Owner::path_of(folder);
        let refused = || format!("the owner file {} is not valid", path.display());
        let (file, text) = read_own(&path, OWNER_BYTES_MAX).or_keeper(refused)?;
        let owner: Owner = serde_json::from_slice(&text).or_keeper(refused)?;
        if owner.folder != folder {
            return Err(KeeperError(format!("{}: it names {}", refused(), owner.folder.display())));
        }
        Ok((file, owner))
    }

    /// Readers see the old or the new file, complete. Returned locked, from before it has its name.
    pub(super) fn write(&self) -> Result<File> {
        let path = Owner::path_of(&self.folder);
        let fresh = path.with_extension("json.new");
        let write = || -> io::Result<File> {
            let text = serde_json::to_vec(self)?;
            let mut file = locked_fresh(&fresh)?;
            let written = file.write_all(&text).and_then(|()| fs::rename(&fresh, &path));
            if let Err(error) = written {
                // On a full disk the file would be in the way.
                let _ = fs::remove_file(&fresh);
                return Err(error);
            }
            Ok(file)
        };
        write().or_path(&path, "cannot be written")
    }

    pub(super) fn sign(&self) -> io::Result<()> {
        make(&self.folder.join(TOKEN_FILE), &mut self.token.as_bytes(), Access::Read, None)
    }

    pub(super) fn has_signed(&self) -> bool {
        let token = read_own(&self.folder.join(TOKEN_FILE), OWNER_BYTES_MAX);
        self.token.len() == 2 * TOKEN_BYTES
            && token.is_ok_and(|(_, token)| token == self.token.as_bytes())
    }

    /// Judged by ids.
    pub(super) fn standing(&self, me: &Whoami, proc_root: &Path) -> Standing {
        if self.machine != me.machine {
            return Standing::MayLive;
        }
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

/// New, empty and locked. Another Dyno may remove it before it is locked; then it is made again.
fn locked_fresh(path: &Path) -> io::Result<File> {
    for _ in 0..WRITE_TRIES {
        let flags = OFlags::RDWR | OFlags::CREATE;
        let file = open_own(path, flags, Mode::from_raw_mode(0o600))?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
        if is_at(&file, path) {
            file.set_len(0)?;
            return Ok(file);
        }
    }
    Err(io::Error::other("other processes keep removing it"))
}

/// Unpredictable hexadecimal digits.
pub fn random_token() -> io::Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boot_time_is_read() {
        assert_eq!(boot_time("cpu 1 2\nbtime 1763779000\nprocesses 5\n"), Some(1_763_779_000));
        assert_eq!(boot_time("btime x\n"), None);
        assert_eq!(boot_time(""), None);
    }

    #[test]
    fn tokens_differ() {
        let (one, other) = (random_token().expect("random"), random_token().expect("random"));
        assert!(one.len() == 32 && one != other, "{one} {other}");
    }
}
