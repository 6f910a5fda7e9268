//! Cleans up after killed runs: running servers, folders on disk. Everything rests on proof:
//!
//! - A folder counts only with its owner file, which holds the token in the folder.
//! - Its owner is dead only if nobody holds the owner file's lock, and its process id is free or
//!   has another start time, or the machine has been booted since.
//! - A process is ended only if its start time is the noted one and its folder or command line
//!   names the folder, or if its environment has the mark of the folder.
//! - No folder is removed that is a process's working directory, or in which a process has a file
//!   open or keeps a log.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use dyno_units::{Clock, Nanoseconds};
use rustix::fs::{CWD, FlockOperation, Mode, OFlags};
use rustix::process::Signal;

use super::files::{open_own, take_lock};
use super::kept::{KILLED_LIMIT, POLL, freeze_descendants, kill_and_wait, retry, signal_identity};
use super::owner::{FRESH_SUFFIX, OWNER_SUFFIX, Owner, Standing, TOKEN_FILE};
use super::{FOLDER_MARK, Keeper, ProcessSpec, confine};
use crate::process_table::{descendants, is_only_of, list_pids, list_processes};
use crate::storage::{open_file, unescaped};
use crate::{KeeperError, OrKeeper, ProcessIdentity, ProcessStat, Result, if_there};

/// A normal shutdown, a fast one; then a kill.
const SIGNALS: [(Signal, Nanoseconds); 2] =
    [(Signal::TERM, Nanoseconds::from_secs(5)), (Signal::QUIT, Nanoseconds::from_secs(2))];
const ROUNDS_MAX: usize = 5;
/// Tries for a lock, which a starting process may share with its parent for up to a second.
const LOCK_TRIES: u32 = 400;
const LOCK_PAUSE: Nanoseconds = Nanoseconds::from_millis(5);
/// For processes that lost their main process to leave a folder.
const ORPHANS_LIMIT: Nanoseconds = Nanoseconds::from_secs(5);
const ORPHANS_PAUSE: Nanoseconds = Nanoseconds::from_millis(20);
/// In bytes.
const PID_LINE_MAX: u64 = 32;

impl Keeper {
    /// The Dyno that made a folder, under any root, has provably ended without removing it.
    pub(crate) fn is_abandoned(&self, folder: &Path) -> bool {
        let Ok((file, owner)) = Owner::read(folder) else { return false };
        let standing = owner.standing(&self.me, &self.proc_root);
        matches!(standing, Standing::Dead | Standing::EarlierBoot)
            && take_lock(&file, &Owner::path_of(folder))
    }

    /// Removes what a dead server left outside its folder; failures are ignored.
    pub(super) fn clean_up_after_crash(&self, owner: &Owner) {
        let Some(after) = &owner.after_crash else { return };
        let trace = owner.folder.join(&after.if_there);
        if fs::symlink_metadata(&trace).is_err() {
            return;
        }
        let told = after.pid_variable.clone().zip(noted_pid(&trace));
        let spec = ProcessSpec {
            program: after.program.clone(),
            arguments: after.arguments.clone(),
            environment: told.into_iter().collect(),
            log: owner.folder.join("after-crash.log"),
            ..ProcessSpec::default()
        };
        let started = self
            .command(&owner.folder, &spec)
            .and_then(|(mut command, rights)| confine::start(&mut command, &[], rights));
        if let Ok(mut child) = started {
            let _ = child.wait();
        }
    }
}

/// The process id in the first line, without the sign that PostgreSQL adds when it runs alone. The
/// server's user may have written anything: only a number is accepted.
fn noted_pid(path: &Path) -> Option<String> {
    let file = open_file(CWD, path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(PID_LINE_MAX).read_to_end(&mut bytes).ok()?;
    let line = bytes.split(|byte| *byte == b'\n').next()?;
    let pid: i32 = std::str::from_utf8(line).ok()?.trim().parse().ok()?;
    Some(pid.unsigned_abs().to_string())
}

pub(super) fn end_all(keeper: &Keeper, clock: &dyn Clock) -> Vec<String> {
    // Runs that begin together do this one after the other. But whoever may read the folder can lock it: whether it is
    // free decides only how long this waits. What is removed is locked by what only Dyno's user can open.
    let Ok(lock) = File::open(&keeper.root) else { return Vec::new() };
    is_free_soon(clock, || lock_now(&lock));
    remove_unfinished(&keeper.root);
    let folders = named(&keeper.root, OWNER_SUFFIX);
    folders.iter().flat_map(|folder| end_one(keeper, folder, clock)).collect()
}

/// Now or within a moment: see [`LOCK_TRIES`].
pub(super) fn is_free_soon(clock: &dyn Clock, take: impl Fn() -> bool) -> bool {
    (0..LOCK_TRIES).any(|attempt| {
        if attempt > 0 {
            clock.sleep_until(clock.now() + LOCK_PAUSE);
        }
        take()
    })
}

fn lock_now(file: &File) -> bool {
    rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Paths under the root with this ending, which is removed.
fn named(root: &Path, suffix: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(root) else { return Vec::new() };
    let paths = entries.filter_map(|entry| {
        let name = entry.ok()?.file_name();
        Some(root.join(name.to_str()?.strip_suffix(suffix)?))
    });
    let mut paths: Vec<PathBuf> = paths.collect();
    paths.sort();
    paths
}

/// Of killed Dynos: files still being written are locked.
fn remove_unfinished(root: &Path) {
    for folder in named(root, FRESH_SUFFIX) {
        let path = Owner::path_of(&folder).with_extension("json.new");
        let Ok(file) = open_own(&path, OFlags::RDWR, Mode::empty()) else { continue };
        if take_lock(&file, &path) {
            // A leftover does no harm.
            let _ = fs::remove_file(&path);
        }
    }
}

fn end_one(keeper: &Keeper, folder: &Path, clock: &dyn Clock) -> Vec<String> {
    let Ok((file, owner)) = Owner::read(folder) else { return Vec::new() };
    // Before the lock, so that nobody waits for a living Dyno's.
    let standing = owner.standing(&keeper.me, &keeper.proc_root);
    if matches!(standing, Standing::Ours | Standing::MayLive) {
        return Vec::new();
    }
    // Held to the end: no other Dyno removes the folder.
    if !is_free_soon(clock, || take_lock(&file, &Owner::path_of(folder))) {
        return Vec::new();
    }
    let mut messages = match standing {
        Standing::Dead => end_processes(keeper, &owner, clock),
        // A machine that shares this disk has another boot too, and may be writing.
        Standing::EarlierBoot if is_newer(folder, &file, keeper.me.boot_unix_s) => {
            return Vec::new();
        }
        Standing::EarlierBoot => Vec::new(),
        Standing::Ours | Standing::MayLive => return Vec::new(),
    };
    messages.push(match remove_leftover(keeper, &owner, clock) {
        Ok(()) => format!("removed {}, left over by an earlier run", folder.display()),
        Err(error) => error.0,
    });
    messages
}

/// Ends what runs detached after a folder's noted processes: processes of user `uid` with its mark.
pub(super) fn end_detached(proc_root: &Path, folder: &Path, uid: u32) {
    let own = i32::try_from(std::process::id()).ok();
    let is_detached = |stat: &ProcessStat| {
        stat.is_alive()
            && Some(stat.pid) != own
            && is_only_of(proc_root, stat.pid, &[uid])
            && carries_mark(proc_root, stat.pid, folder)
    };
    // A process started meanwhile is found in the next round.
    for _ in 0..ROUNDS_MAX {
        let all = list_processes(proc_root);
        let left = all.iter().filter(|stat| is_detached(stat));
        let left: Vec<ProcessIdentity> = left.map(ProcessStat::identity).collect();
        if left.is_empty() {
            return;
        }
        // None can start another one while they are killed.
        for process in &left {
            signal_identity(proc_root, *process, Signal::STOP);
        }
        for process in left {
            kill_and_wait(proc_root, process, KILLED_LIMIT);
        }
    }
}

fn end_processes(keeper: &Keeper, owner: &Owner, clock: &dyn Clock) -> Vec<String> {
    let mut messages = Vec::new();
    // A process started meanwhile is found in the next round.
    for _ in 0..ROUNDS_MAX {
        let left = leftover_processes(keeper, owner);
        if left.is_empty() {
            break;
        }
        for (process, name) in left {
            end_process(&keeper.proc_root, process, clock);
            messages.push(format!(
                "ended {name} (process {}), left over by an earlier run in {}",
                process.pid,
                owner.folder.display()
            ));
        }
    }
    messages
}

/// Unless a process still works in it.
fn remove_leftover(keeper: &Keeper, owner: &Owner, clock: &dyn Clock) -> Result<()> {
    let folder = &owner.folder;
    let alone = |why: String| {
        Err(KeeperError(format!(
            "{} seems to be left over from an earlier run, but is left alone: {why}",
            folder.display()
        )))
    };
    if fs::symlink_metadata(folder).is_ok_and(|facts| facts.is_dir()) {
        if !owner.has_signed() && !is_bare(folder) {
            return alone(format!("it does not hold the token of {}", folder.display()));
        }
        // Found by their label; signals may not reach what runs in them.
        owner.remove_containers()?;
        if let Some((pid, name)) = process_staying_in(keeper, folder, clock) {
            return alone(format!("process {pid} ({name}) works in it"));
        }
        if let Some(log) = held_log(folder, clock) {
            return alone(format!("a process still writes to {}", log.display()));
        }
        keeper.clean_up_after_crash(owner);
        if owner.boot == keeper.me.boot {
            owner.remove_groups()?;
        }
        crate::volume::dismantle(crate::volume::Tools { keeper, clock }, folder)?;
    }
    remove(folder)
}

/// Empty but for the token file: a Dyno was killed just after making it.
fn is_bare(folder: &Path) -> bool {
    fs::read_dir(folder)
        .is_ok_and(|mut all| all.all(|entry| entry.is_ok_and(|e| e.file_name() == TOKEN_FILE)))
}

/// Whether it or its owner file was written after this second since 1970, or is unreadable.
fn is_newer(folder: &Path, owner_file: &File, unix_s: i64) -> bool {
    if owner_file.metadata().map_or(true, |facts| facts.mtime() >= unix_s) {
        return true;
    }
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        match fs::symlink_metadata(&path) {
            Ok(facts) if facts.mtime() >= unix_s => return true,
            Ok(facts) if facts.is_dir() => {
                let Ok(entries) = fs::read_dir(&path) else { return true };
                open.extend(entries.flatten().map(|entry| entry.path()));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => return true,
        }
    }
    false
}

/// After a moment: orphans of a killed main process end by themselves, but not at once.
fn process_staying_in(keeper: &Keeper, folder: &Path, clock: &dyn Clock) -> Option<(i32, String)> {
    let wait = (ORPHANS_LIMIT, ORPHANS_PAUSE);
    retry(clock, wait, || process_in(keeper, folder), Option::is_none)
}

/// A living process with its working directory or an open file in the folder, one that still has its name.
fn process_in(keeper: &Keeper, folder: &Path) -> Option<(i32, String)> {
    let own = i32::try_from(std::process::id()).ok();
    let proc_root = &keeper.proc_root;
    let is_in = |link: &Path| {
        let target = fs::read_link(link).ok().filter(|target| target.starts_with(folder));
        target.is_some_and(|target| is_same(link, &target))
    };
    let others = list_pids(proc_root).into_iter().filter(|pid| Some(*pid) != own);
    others.filter(|pid| may_be_in_folders(keeper, *pid)).find_map(|pid| {
        let process = proc_root.join(pid.to_string());
        let files = || fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        let is_inside = is_in(&process.join("cwd")) || files().any(|file| is_in(&file.path()));
        let stat = is_inside.then(|| ProcessStat::read(proc_root, pid)).flatten()?;
        stat.is_alive().then_some((pid, stat.name))
    })
}

/// The name is that of the process's own mounts, which any user can make for itself, and hand a file in them to a
/// program that becomes another user.
pub(super) fn is_same(open: &Path, named: &Path) -> bool {
    match (fs::metadata(open), fs::symlink_metadata(named)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

/// Only Dyno's user and that of servers can be in the folders. Another user can fake this (by a
/// mount namespace or its environment), with memory that cannot be read to its end, and start a program with a
/// set-user-id bit like that.
fn may_be_in_folders(keeper: &Keeper, pid: i32) -> bool {
    let users = [rustix::process::geteuid().as_raw(), keeper.uid_of_processes()];
    is_only_of(&keeper.proc_root, pid, &users)
}

/// A process that has the log open, wherever it runs, holds a lock on it.
fn held_log(folder: &Path, clock: &dyn Clock) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?;
    entries.flatten().map(|entry| entry.path()).find(|path| {
        open_own(path, OFlags::RDWR, Mode::empty())
            .is_ok_and(|file| !is_free_soon(clock, || lock_now(&file)))
    })
}

/// Proved to be left over.
fn leftover_processes(keeper: &Keeper, owner: &Owner) -> Vec<(ProcessIdentity, String)> {
    let proc_root = &keeper.proc_root;
    let is_leftover = |stat: &ProcessStat| {
        let is_noted = owner.processes.contains(&stat.identity());
        let mut noted = owner.processes.iter();
        let is_in_group =
            noted.any(|one| one.pid == stat.group && one.start_ticks <= stat.start_ticks);
        if is_noted || is_in_group {
            return mentions_folder(proc_root, stat.pid, &owner.folder);
        }
        // Dyno may have been killed before noting a process.
        carries_mark(proc_root, stat.pid, &owner.folder)
    };
    list_processes(proc_root)
        .iter()
        .filter(|stat| stat.is_alive() && may_be_in_folders(keeper, stat.pid) && is_leftover(stat))
        .map(|stat| (stat.identity(), stat.name.clone()))
        .collect()
}

/// As working directory, on the command line, or by its mark.
fn mentions_folder(proc_root: &Path, pid: i32, folder: &Path) -> bool {
    let process = proc_root.join(pid.to_string());
    let stands_in = fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
    let names = || fs::read(process.join("cmdline")).is_ok_and(|line| names_path(&line, folder));
    stands_in || names() || carries_mark(proc_root, pid, folder)
}

/// As a whole: `/a/b` is not in `/a/bc`.
pub(super) fn names_path(command_line: &[u8], path: &Path) -> bool {
    let path = path.as_os_str().as_bytes();
    let is_end = |byte: Option<&u8>| {
        byte.is_none_or(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')))
    };
    let mut parts = command_line.windows(path.len().max(1)).enumerate();
    parts.any(|(at, found)| found == path && is_end(command_line.get(at + path.len())))
}

/// Dyno started it, or an ancestor, in this folder.
pub(super) fn carries_mark(proc_root: &Path, pid: i32, folder: &Path) -> bool {
    let mark = [FOLDER_MARK.as_bytes(), b"=", folder.as_os_str().as_bytes()].concat();
    fs::read(proc_root.join(pid.to_string()).join("environ"))
        .is_ok_and(|all| all.split(|byte| *byte == 0).any(|entry| entry == mark))
}

/// With its descendants, signal by signal.
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
        signal_identity(proc_root, member, Signal::KILL);
        waited_for_end(proc_root, member, clock, KILLED_LIMIT);
    }
}

fn waited_for_end(
    proc_root: &Path,
    process: ProcessIdentity,
    clock: &dyn Clock,
    limit: Nanoseconds,
) -> bool {
    retry(clock, (limit, POLL), || !process.is_alive(proc_root), |has_ended| *has_ended)
}

/// Then its owner file; never through a link or into a mount.
pub(super) fn remove(folder: &Path) -> Result<()> {
    let removed = remove_folder(folder).and_then(|()| {
        let of_owner = if_there(fs::remove_file(Owner::path_of(folder)));
        of_owner.or_keeper(|| "its owner file cannot be removed")
    });
    removed.or_path(folder, "cannot be removed")
}

/// The error says only why.
fn remove_folder(folder: &Path) -> Result<()> {
    match fs::symlink_metadata(folder) {
        Ok(facts) if !facts.is_dir() => {
            let why = "it is no longer a folder; examine it, then remove it manually";
            return Err(KeeperError(why.into()));
        }
        Ok(_) => {}
        // Dyno was killed before making the folder, or while removing it.
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(KeeperError(e.to_string())),
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo");
    let mounts = mounts.or_keeper(|| "/proc/self/mountinfo cannot be read")?;
    if let Some(mount) = mount_inside(&mounts, folder) {
        return Err(KeeperError(format!("{mount} is mounted in it; unmount that first")));
    }
    if_there(remove_contents(folder)).map_err(|e| KeeperError(e.to_string()))
}

/// The token goes last, so that the next Dyno can complete an interrupted removal.
fn remove_contents(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() == TOKEN_FILE {
            continue;
        }
        // The standard library opens each level without following links.
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_dir_all(folder)
}

/// At or under the folder, from `/proc/self/mountinfo`.
pub(super) fn mount_inside(mountinfo: &str, folder: &Path) -> Option<String> {
    mountinfo.lines().find_map(|line| {
        let point = unescaped(line.split_ascii_whitespace().nth(4)?);
        Path::new(&point).starts_with(folder).then_some(point)
    })
}
