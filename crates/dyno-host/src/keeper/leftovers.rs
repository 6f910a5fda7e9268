//! Ends what a killed run left over: servers that still run, folders that still fill the disk.
//!
//! Everything rests on proof. A folder counts only with its owner file; the owner counts as dead
//! only if its process id is free or was given to a process with another start time; a process is
//! ended only if its start time is the noted one and its folder or command line says that it
//! belongs to the folder, or if its environment carries the mark of the folder.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use dyno_units::{Clock, Nanoseconds};
use rustix::fs::FlockOperation;
use rustix::process::Signal;

use super::kept::{POLL, freeze_descendants, kill_identity, signal_identity};
use super::owner::{OWNER_SUFFIX, Owner, Standing};
use super::{FOLDER_MARK, Keeper, KeeperError};
use crate::process_table::{ProcessIdentity, ProcessStat, descendants, list_processes};

/// First the polite way, then the quick one of database servers, then the kernel's.
const SIGNALS: [(Signal, Nanoseconds); 2] =
    [(Signal::TERM, Nanoseconds::from_secs(5)), (Signal::QUIT, Nanoseconds::from_secs(2))];
/// How often a folder is searched for processes that are left over.
const ROUNDS_MAX: usize = 5;
/// How long a killed process may take to vanish.
const KILLED_LIMIT: Nanoseconds = Nanoseconds::from_secs(10);

/// Ends the leftovers of all dead Dyno runs under the keeper's root.
pub(super) fn end_all(keeper: &Keeper, clock: &dyn Clock) -> Vec<String> {
    // Two runs that begin together need not both do it; the lock ends with this process at last.
    let Ok(lock) = fs::File::open(&keeper.root) else { return Vec::new() };
    if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Vec::new();
    }
    owned_folders(&keeper.root).iter().flat_map(|folder| end_one(keeper, folder, clock)).collect()
}

/// The folders under the root that have an owner file.
fn owned_folders(root: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(root) else { return Vec::new() };
    let mut folders: Vec<PathBuf> = entries
        .filter_map(|entry| {
            let name = entry.ok()?.file_name();
            Some(root.join(name.to_str()?.strip_suffix(OWNER_SUFFIX)?))
        })
        .collect();
    folders.sort();
    folders
}

fn end_one(keeper: &Keeper, folder: &Path, clock: &dyn Clock) -> Vec<String> {
    let Ok(owner) = Owner::read(folder) else { return Vec::new() };
    let mut told = Vec::new();
    match owner.standing(&keeper.me, &keeper.proc_root) {
        Standing::Ours | Standing::MayLive => return told,
        Standing::Dead => {
            // One that was started while others were ended shows up in the next round.
            for _ in 0..ROUNDS_MAX {
                let left = leftover_processes(&keeper.proc_root, &owner);
                if left.is_empty() {
                    break;
                }
                for (process, name) in left {
                    end_process(&keeper.proc_root, process, clock);
                    told.push(format!(
                        "ended {name} (process {}), left over by an earlier run in {}",
                        process.pid,
                        folder.display()
                    ));
                }
            }
        }
        Standing::EarlierBoot => {}
    }
    match remove(folder) {
        Ok(()) => told.push(format!("removed {}, left over by an earlier run", folder.display())),
        Err(error) => told.push(error.to_string()),
    }
    told
}

/// The processes that are proved to be left over in this owner's folder.
fn leftover_processes(proc_root: &Path, owner: &Owner) -> Vec<(ProcessIdentity, String)> {
    let is_leftover = |stat: &ProcessStat| {
        let is_noted = owner.processes.contains(&stat.identity());
        let is_in_group = owner
            .processes
            .iter()
            .any(|noted| noted.pid == stat.group && noted.start_ticks <= stat.start_ticks);
        if is_noted || is_in_group {
            return mentions_folder(proc_root, stat.pid, &owner.folder);
        }
        // Dyno may have been killed between starting a process and taking note of it.
        carries_mark(proc_root, stat.pid, &owner.folder)
    };
    list_processes(proc_root)
        .iter()
        .filter(|stat| stat.is_alive() && is_leftover(stat))
        .map(|stat| (stat.identity(), stat.name.clone()))
        .collect()
}

/// Whether the process stands in the folder or names it on its command line.
fn mentions_folder(proc_root: &Path, pid: i32, folder: &Path) -> bool {
    let process = proc_root.join(pid.to_string());
    let stands_in = fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
    let names = || fs::read(process.join("cmdline")).is_ok_and(|line| names_path(&line, folder));
    stands_in || names() || carries_mark(proc_root, pid, folder)
}

/// Whether a command line holds this path, whole: `/a/b` is not in `/a/bc`.
pub(super) fn names_path(command_line: &[u8], path: &Path) -> bool {
    let path = path.as_os_str().as_bytes();
    let is_end = |byte: Option<&u8>| {
        byte.is_none_or(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')))
    };
    command_line
        .windows(path.len().max(1))
        .enumerate()
        .any(|(at, found)| found == path && is_end(command_line.get(at + path.len())))
}

/// Whether Dyno started the process, or an ancestor of it, in this folder.
fn carries_mark(proc_root: &Path, pid: i32, folder: &Path) -> bool {
    let mark = [FOLDER_MARK.as_bytes(), b"=", folder.as_os_str().as_bytes()].concat();
    fs::read(proc_root.join(pid.to_string()).join("environ"))
        .is_ok_and(|all| all.split(|byte| *byte == 0).any(|entry| entry == mark))
}

/// Ends a process and its descendants: politely, quickly, by force.
fn end_process(proc_root: &Path, process: ProcessIdentity, clock: &dyn Clock) {
    if !process.is_alive(proc_root) {
        return;
    }
    let mut family: BTreeSet<ProcessIdentity> =
        descendants(proc_root, process.pid).iter().map(ProcessStat::identity).collect();
    let has_ended = SIGNALS.into_iter().any(|(signal, limit)| {
        signal_identity(proc_root, process, signal);
        waited_for_end(proc_root, process, clock, limit)
    });
    if !has_ended {
        family.extend(freeze_descendants(proc_root, process.pid));
    }
    for member in std::iter::once(process).chain(family) {
        kill_identity(proc_root, member);
        waited_for_end(proc_root, member, clock, KILLED_LIMIT);
    }
}

fn waited_for_end(
    proc_root: &Path,
    process: ProcessIdentity,
    clock: &dyn Clock,
    limit: Nanoseconds,
) -> bool {
    let until = clock.now() + limit;
    while process.is_alive(proc_root) {
        if clock.now() >= until {
            return false;
        }
        clock.sleep_until(clock.now() + POLL);
    }
    true
}

/// Removes a folder and then its owner file, never through a symbolic link or into a mount.
pub(super) fn remove(folder: &Path) -> Result<(), KeeperError> {
    let refuse =
        |why: String| KeeperError(format!("{} cannot be removed: {why}", folder.display()));
    match fs::symlink_metadata(folder) {
        Ok(facts) if !facts.is_dir() => {
            return Err(refuse(
                "it is no longer a folder; look at it, then remove it by hand".into(),
            ));
        }
        Ok(_) => {
            let mounts = fs::read_to_string("/proc/self/mountinfo")
                .map_err(|e| refuse(format!("/proc/self/mountinfo cannot be read: {e}")))?;
            if let Some(mount) = mount_inside(&mounts, folder) {
                return Err(refuse(format!("{mount} is mounted in it; unmount that first")));
            }
            // The standard library opens each level without following links.
            match fs::remove_dir_all(folder) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(refuse(e.to_string()));
                }
                _ => {}
            }
        }
        // Dyno was killed before it made the folder, or while it removed it.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        Err(e) => return Err(refuse(e.to_string())),
    }
    match fs::remove_file(Owner::path_of(folder)) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(refuse(format!("its owner file stays: {e}")))
        }
        _ => Ok(()),
    }
}

/// The first mount point at or under the folder, from the text of `/proc/self/mountinfo`.
pub(super) fn mount_inside(mountinfo: &str, folder: &Path) -> Option<String> {
    mountinfo.lines().find_map(|line| {
        // The kernel writes a blank in a path as `\040`; folders of a keeper have none.
        let point = line.split_ascii_whitespace().nth(4)?;
        Path::new(point).starts_with(folder).then(|| point.to_owned())
    })
}
