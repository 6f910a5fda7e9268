//! Keeps the processes and folders that Dyno makes, and ends those that a killed run left over.
//!
//! Main type: `Keeper`. It knows folders, processes and users; nothing about databases.

mod kept;
mod leftovers;
mod owner;
mod program;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use dyno_units::{Clock, Nanoseconds};
use rustix::fs::{Gid, OFlags, Uid};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

pub use kept::KeptProcess;
use owner::{Owner, Standing, Whoami};

use crate::process_table::ProcessStat;

/// The longest path of a server folder, so that a Unix socket inside it stays under 108 bytes.
const PATH_BYTES_MAX: usize = 79;
/// What of a name hint gets into a folder's name.
const NAME_BYTES_MAX: usize = 16;
/// The environment variable that marks a process with the folder it was started in.
const FOLDER_MARK: &str = "DYNO_FOLDER";
/// How much of a failed program's output goes into the error.
const OUTPUT_BYTES_MAX: u64 = 4096;

/// Makes server folders under one root and starts processes in them. Beside each folder lies an
/// owner file that names the Dyno process (id, start time, boot) and the processes started in it.
#[derive(Debug)]
pub struct Keeper {
    root: PathBuf,
    proc_root: PathBuf,
    me: Whoami,
    run_as: Option<RunAs>,
    /// PATH of the processes it starts, and where programs are looked for.
    path: OsString,
    n_folders: AtomicU64,
    /// Held while an owner file is changed.
    noting: Mutex<()>,
}

/// A process to start.
#[derive(Clone, Debug, Default)]
pub struct ProcessSpec {
    /// The program.
    pub program: PathBuf,
    /// Its arguments; never a secret.
    pub arguments: Vec<String>,
    /// Environment variables to set. It gets no others but PATH, `LANG=C.UTF-8`, `TZ=UTC` and
    /// the mark of its folder, so that it does the same whoever starts Dyno.
    pub environment: Vec<(String, String)>,
    /// File to which its output and errors are appended.
    pub log: PathBuf,
    /// The user to run as, if not Dyno's own.
    pub run_as: Option<RunAs>,
    /// CPUs to bind it to; empty for none.
    pub cpus: Vec<u32>,
}

/// An unprivileged user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunAs {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

/// Something that could not be made, started or ended.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct KeeperError(pub String);

impl Keeper {
    /// A keeper for servers under `root`, which is made if it is missing. Fails if the root could
    /// be written by others, or if Dyno is root and there is no user `nobody` to run servers as.
    pub fn new(root: &Path) -> Result<Keeper, KeeperError> {
        let root = make_root(root)?;
        let proc_root = PathBuf::from("/proc");
        let me = Whoami::find(&proc_root)?;
        let path = std::env::join_paths(program::USUAL_FOLDERS).expect("no folder holds a colon");
        Ok(Keeper {
            root,
            proc_root,
            me,
            run_as: unprivileged_user()?,
            path,
            n_folders: AtomicU64::new(0),
            noting: Mutex::new(()),
        })
    }

    /// The same keeper, which also looks for programs in the absolute folders of this PATH value,
    /// before the usual places, and hands them to the processes it starts.
    pub fn with_path(mut self, path_value: &OsStr) -> Keeper {
        let mut folders = program::path_folders(path_value);
        for usual in std::env::split_paths(&self.path) {
            if !folders.contains(&usual) {
                folders.push(usual);
            }
        }
        // Folders that were split out of a PATH value hold no colon, so they always join.
        self.path = std::env::join_paths(folders).expect("no folder holds a colon");
        self
    }

    /// The folder under which all others are made, with no symbolic link in its path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The user that servers run as: none when Dyno is not root, else `nobody`.
    pub fn run_as(&self) -> Option<RunAs> {
        self.run_as
    }

    /// Looks for a program: in `extra_folders`, then in PATH if it was handed in, then in the
    /// usual places, the `sbin` folders included.
    pub fn find_program(&self, name: &str, extra_folders: &[PathBuf]) -> Option<PathBuf> {
        let path: Vec<PathBuf> = std::env::split_paths(&self.path).collect();
        program::find(name, extra_folders.iter().chain(&path).map(PathBuf::as_path))
    }

    /// Makes a fresh folder for a server, owned by `run_as`, with the owner file beside it. `name`
    /// is a hint. The path is short enough (< 80 bytes) for a Unix socket inside it.
    pub fn make_folder(&self, name: &str) -> Result<PathBuf, KeeperError> {
        let folder = self.fresh_path(&tidy_name(name));
        let n_bytes = folder.as_os_str().len();
        if n_bytes > PATH_BYTES_MAX {
            return Err(KeeperError(format!(
                "the folder {} has a path of {n_bytes} bytes, too long for the Unix socket of a \
                 server (at most {PATH_BYTES_MAX}); choose a root folder with a path shorter than \
                 {}",
                folder.display(),
                self.root.display()
            )));
        }
        // First the owner file: a folder without one could never be removed by a later run.
        Owner::new(&folder, &self.me).write()?;
        make_owned_folder(&folder, self.run_as).map_err(|error| {
            // The folder is empty or missing; the error that matters is already there.
            let _ = leftovers::remove(&folder);
            KeeperError(format!("the folder {} cannot be made: {error}", folder.display()))
        })?;
        Ok(folder)
    }

    /// Runs a program in a folder to its end (initdb …); its output when it fails is in the error.
    pub fn run(
        &self,
        folder: &Path,
        spec: &ProcessSpec,
        clock: &dyn Clock,
        limit: Nanoseconds,
    ) -> Result<(), KeeperError> {
        let log_begin = fs::metadata(&spec.log).map_or(0, |facts| facts.len());
        let mut process = self.spawn(folder, spec)?;
        let until = clock.now() + limit;
        let program = spec.program.display();
        loop {
            if let Some(how) = process.ended() {
                if process.status().is_some_and(|status| status.success()) {
                    return Ok(());
                }
                return Err(KeeperError(format!(
                    "{program} {how}{}",
                    output(&spec.log, log_begin)
                )));
            }
            if clock.now() >= until {
                process.stop("KILL", clock, Nanoseconds::SECOND);
                let output = output(&spec.log, log_begin);
                return Err(KeeperError(format!(
                    "{program} did not end within {limit} and was killed{output}"
                )));
            }
            clock.sleep_until(clock.now() + kept::POLL);
        }
    }

    /// Starts a server process in a folder and notes it in the owner file.
    pub fn spawn(&self, folder: &Path, spec: &ProcessSpec) -> Result<KeptProcess, KeeperError> {
        self.owned(folder)?;
        if let Some(user) = spec.run_as {
            check_reachable(folder, user)?;
        }
        let mut command = self.command(folder, spec)?;
        let child = with_cpus(&spec.cpus, || {
            command.spawn().map_err(|error| {
                KeeperError(format!("{} cannot be started: {error}", spec.program.display()))
            })
        })?;
        // From here on, dropping it on an error kills it.
        let process = KeptProcess::new(child);
        self.note(folder, process.pid())?;
        Ok(process)
    }

    /// Removes a folder that this Dyno made (proved by its owner file) and in which none of the
    /// noted processes runs any more.
    pub fn remove_folder(&self, folder: &Path) -> Result<(), KeeperError> {
        let owner = self.owned(folder)?;
        if let Some(process) = owner.processes.iter().find(|p| p.is_alive(&self.proc_root)) {
            return Err(KeeperError(format!(
                "{} cannot be removed: process {} still runs in it; stop it first",
                folder.display(),
                process.pid
            )));
        }
        leftovers::remove(folder)
    }

    /// Ends processes and removes folders of Dyno runs that are no longer alive. Returns what it
    /// ended, in words. Touches nothing that it cannot prove a dead Dyno made.
    pub fn end_leftovers(&self, clock: &dyn Clock) -> Vec<String> {
        leftovers::end_all(self, clock)
    }

    /// The owner file of a folder, which must be a folder of this Dyno under this root.
    fn owned(&self, folder: &Path) -> Result<Owner, KeeperError> {
        if folder.parent() != Some(&self.root) {
            return Err(KeeperError(format!(
                "{} is not a folder of this keeper: it is not right under {}",
                folder.display(),
                self.root.display()
            )));
        }
        let owner = Owner::read(folder)?;
        if owner.standing(&self.me, &self.proc_root) != Standing::Ours {
            return Err(KeeperError(format!(
                "{} was made by another Dyno (process {}); it is left alone",
                folder.display(),
                owner.dyno.pid
            )));
        }
        Ok(owner)
    }

    /// A path that no other Dyno and no other keeper of this one has made.
    fn fresh_path(&self, name: &str) -> PathBuf {
        loop {
            let n = self.n_folders.fetch_add(1, Ordering::Relaxed);
            let me = &self.me.dyno;
            // FNV-1a: spreads the few numbers that make this process and folder unique.
            let mut hash = 0xcbf2_9ce4_8422_2325_u64;
            for word in [u64::from(me.pid.unsigned_abs()), me.start_ticks, n] {
                for byte in word.to_le_bytes() {
                    hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
                }
            }
            let folder = self.root.join(format!("{name}-{:06x}", (hash >> 20) & 0x00ff_ffff));
            let is_free = |path: &Path| fs::symlink_metadata(path).is_err();
            if is_free(&folder) && is_free(&Owner::path_of(&folder)) {
                return folder;
            }
        }
    }

    fn command(&self, folder: &Path, spec: &ProcessSpec) -> Result<Command, KeeperError> {
        let log = open_log(&spec.log)?;
        let refuse = |e: std::io::Error| KeeperError(format!("{}: {e}", spec.log.display()));
        let mut command = Command::new(&spec.program);
        command
            .args(&spec.arguments)
            .current_dir(folder)
            .env_clear()
            .env("PATH", &self.path)
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC")
            .envs(spec.environment.iter().map(|(name, value)| (name, value)))
            .env(FOLDER_MARK, folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(refuse)?)
            .stderr(log)
            // Its own group: Ctrl-C in the terminal reaches Dyno, which then stops it in order.
            .process_group(0);
        if let Some(user) = spec.run_as {
            // As root, this also drops all other groups.
            command.uid(user.uid).gid(user.gid);
        }
        Ok(command)
    }

    /// Takes note of a process in the owner file, and forgets those that have ended.
    fn note(&self, folder: &Path, pid: i32) -> Result<(), KeeperError> {
        let _guard = self.noting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut owner = Owner::read(folder)?;
        owner.processes.retain(|process| process.is_alive(&self.proc_root));
        // It may have ended already; then there is nothing to note.
        if let Some(stat) = ProcessStat::read(&self.proc_root, pid) {
            owner.processes.push(stat.identity());
        }
        owner.write()
    }
}

/// Makes the root folder and makes sure that only Dyno's user can change what lies in it.
fn make_root(root: &Path) -> Result<PathBuf, KeeperError> {
    let refuse = |why: String| {
        KeeperError(format!("{} cannot be the root folder of servers: {why}", root.display()))
    };
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o755);
    builder.create(root).map_err(|e| refuse(e.to_string()))?;
    let facts = fs::symlink_metadata(root).map_err(|e| refuse(e.to_string()))?;
    if !facts.is_dir() {
        return Err(refuse("it is not a plain folder; choose another".into()));
    }
    if facts.uid() != rustix::process::geteuid().as_raw() {
        return Err(refuse(format!("it belongs to user {}; choose another", facts.uid())));
    }
    if facts.mode() & 0o022 != 0 {
        return Err(refuse("others may write in it; take that away with `chmod go-w`".into()));
    }
    // Paths in owner files and on command lines are compared, so they need one form.
    fs::canonicalize(root).map_err(|e| refuse(e.to_string()))
}

/// Servers refuse to run as root, and should not.
fn unprivileged_user() -> Result<Option<RunAs>, KeeperError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let passwd = fs::read_to_string("/etc/passwd")
        .map_err(|e| KeeperError(format!("/etc/passwd cannot be read: {e}")))?;
    program::find_user(&passwd, "nobody").map(Some).ok_or_else(|| {
        KeeperError(
            "there is no user `nobody` in /etc/passwd to run servers as; run Dyno as a user that \
             is not root"
                .into(),
        )
    })
}

/// What of a name is safe in a path and on a command line.
fn tidy_name(name: &str) -> String {
    let tidy: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .take(NAME_BYTES_MAX)
        .collect();
    match tidy.trim_matches('-') {
        "" => "server".into(),
        tidy => tidy.into(),
    }
}

fn make_owned_folder(folder: &Path, owner: Option<RunAs>) -> std::io::Result<()> {
    // Private to the server: PostgreSQL insists on it, and data is nobody else's business.
    fs::DirBuilder::new().mode(0o700).create(folder)?;
    if let Some(user) = owner {
        let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
        rustix::fs::chown(folder, Some(uid), Some(gid))?;
    }
    Ok(())
}

/// A server that cannot enter a parent of its folder fails in obscure ways: say it first.
fn check_reachable(folder: &Path, user: RunAs) -> Result<(), KeeperError> {
    for parent in folder.ancestors().skip(1) {
        let facts = fs::metadata(parent)
            .map_err(|e| KeeperError(format!("{} cannot be read: {e}", parent.display())))?;
        let enter = match (facts.uid() == user.uid, facts.gid() == user.gid) {
            (true, _) => 0o100,
            (false, true) => 0o010,
            (false, false) => 0o001,
        };
        if facts.mode() & enter == 0 {
            return Err(KeeperError(format!(
                "{} does not let in the user that servers run as (uid {}); choose a root folder \
                 that it can reach, such as one under /var/tmp",
                parent.display(),
                user.uid
            )));
        }
    }
    Ok(())
}

/// Opens a log to append to. Its folder may belong to the server, which must not be able to make
/// Dyno write elsewhere: so no link is followed.
fn open_log(path: &Path) -> Result<fs::File, KeeperError> {
    let flags =
        i32::try_from(OFlags::NOFOLLOW.bits()).expect("a flag of open(2) fits its argument");
    let mut options = fs::OpenOptions::new();
    options.append(true).create(true).mode(0o644).custom_flags(flags);
    options.open(path).map_err(|error| {
        KeeperError(format!("the log {} cannot be opened: {error}", path.display()))
    })
}

/// Starts a child that is bound to these CPUs from its first instruction: it inherits them from
/// this thread, which gets its own back. All threads that the child makes inherit them as well.
fn with_cpus(
    cpus: &[u32],
    start: impl FnOnce() -> Result<Child, KeeperError>,
) -> Result<Child, KeeperError> {
    if cpus.is_empty() {
        return start();
    }
    let refuse = |error: rustix::io::Errno| {
        KeeperError(format!("a process cannot be bound to the CPUs {cpus:?}: {error}"))
    };
    let before = sched_getaffinity(None).map_err(refuse)?;
    let mut wanted = CpuSet::new();
    for cpu in cpus {
        let idx = *cpu as usize;
        if idx >= CpuSet::MAX_CPU || !before.is_set(idx) {
            return Err(KeeperError(format!(
                "CPU {cpu} is not among those that Dyno may use ({}); choose other CPUs",
                cpu_list(&before)
            )));
        }
        wanted.set(idx);
    }
    sched_setaffinity(None, &wanted).map_err(refuse)?;
    let child = start();
    sched_setaffinity(None, &before).map_err(refuse)?;
    child
}

/// `0, 1, 4`.
fn cpu_list(cpus: &CpuSet) -> String {
    let list: Vec<String> =
        (0..CpuSet::MAX_CPU).filter(|idx| cpus.is_set(*idx)).map(|idx| idx.to_string()).collect();
    list.join(", ")
}

/// What a program wrote to its log, shortened to the end, ready to follow a message.
fn output(log: &Path, begin: u64) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = fs::File::open(log)?;
        let end = file.metadata()?.len();
        file.seek(SeekFrom::Start(begin.max(end.saturating_sub(OUTPUT_BYTES_MAX))))?;
        let mut bytes = Vec::new();
        file.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) if bytes.is_empty() => "; it wrote nothing".into(),
        Ok(bytes) => format!("; it wrote:\n{}", String::from_utf8_lossy(&bytes).trim_end()),
        Err(error) => format!("; its log {} cannot be read: {error}", log.display()),
    }
}

#[cfg(test)]
mod tests;
