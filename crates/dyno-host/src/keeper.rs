//! Keeps the processes and folders that Dyno creates, and cleans up after killed runs.

mod account;
mod answer;
mod confine;
mod contained;
mod files;
mod group;
mod kept;
mod leftovers;
mod owner;
mod place;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use dyno_units::{Clock, FNV_1A, Nanoseconds, fnv_1a, locked};
use rustix::fs::FlockOperation;

use account::Account;
pub use account::RunAs;
pub use answer::Answer;
pub(crate) use answer::{answer_of, last_words, lines_with_words};
use confine::Rights;
use files::Access;
pub use files::last_lines;
pub(crate) use files::{make_root, open_own, take_lock};
pub(crate) use group::{GROUP_PREFIX, remove as remove_group};
pub use group::{ServerLimits, server_limit_problems, server_limits_in_force};
pub use kept::{HowStopped, KeptProcess};
pub(crate) use kept::{retry, signal_identity};
pub use owner::{AfterCrash, random_token};
use owner::{Owner, Standing, Whoami};
pub use place::{FolderElsewhere, Place, Storage};

use crate::builds::{Build, BuildStore};
use crate::container::{Engine, Image, Program};
use crate::kernel::KernelSettings;
use crate::{KeeperError, OrKeeper, ProcessStat, Result};

/// So that a Unix socket in a folder inside has a path under 108 bytes.
const PATH_BYTES_MAX: usize = 79;
/// Environment variable that marks a process with its folder.
pub(crate) const FOLDER_MARK: &str = "DYNO_FOLDER";
/// Quoted output of a failed program.
const OUTPUT_BYTES_MAX: u64 = 4096;
const ANSWER_LIMIT: Nanoseconds = Nanoseconds::from_secs(60);

/// Starts a program as another user, whose name only this process sees in `/etc/passwd`. Run by
/// root; arguments: the file with the name (`$0`), user id, group id, program and its arguments.
const WITH_A_NAME: &str = "mount --bind \"$0\" /etc/passwd && uid=$1 gid=$2 && shift 2 && \
    exec setpriv --reuid=\"$uid\" --regid=\"$gid\" --clear-groups --no-new-privs \
    --bounding-set=-all --inh-caps=-all -- \"$@\"";

/// Folders named by this process: two keepers may have one root.
static N_FOLDERS: AtomicU64 = AtomicU64::new(0);

/// Makes server folders under one root and starts processes in them. The owner file beside each
/// folder names Dyno's process and its processes, and is locked while the keeper lives.
#[derive(Debug)]
pub struct Keeper {
    root: PathBuf,
    proc_root: PathBuf,
    me: Whoami,
    account: Option<Account>,
    /// PATH of started processes.
    path: OsString,
    program_folders: Vec<PathBuf>,
    /// Fetched builds, if they may be used.
    builds: Option<BuildStore>,
    /// Root of the keeper of initial data.
    initial_data: Option<PathBuf>,
    /// By name or path; `None` for the first that answers.
    wanted_engine: Option<OsString>,
    /// Once asked for.
    engine: OnceLock<Result<Engine, String>>,
    /// Answers of images' programs, which never change.
    said: Mutex<BTreeMap<contained::Question, Answer>>,
    /// By folder, locked; held while one is changed.
    owner_files: Mutex<BTreeMap<PathBuf, File>>,
    kernel: KernelSettings,
    has_own_sessions: bool,
}

/// Runs as the unprivileged user if Dyno is root, else as Dyno's own, and can never gain rights.
#[derive(Clone, Debug, Default)]
pub struct ProcessSpec {
    pub program: PathBuf,
    /// Never a secret.
    pub arguments: Vec<String>,
    /// All variables but PATH, `LANG=C.UTF-8`, `TZ=UTC` and the mark of its folder.
    pub environment: Vec<(String, String)>,
    /// Directly in the folder; output and errors are appended.
    pub log: PathBuf,
    /// Empty for none.
    pub cpus: Vec<u32>,
    /// Include all that the process starts.
    pub limits: ServerLimits,
    /// Whether it refuses to run as a user without a name.
    pub needs_name: bool,
    /// Run before the folder is removed, if the server died.
    pub after_crash: Option<AfterCrash>,
    /// For a program in a container; `None` for one of this machine.
    pub image: Option<Image>,
    /// Other folders of Dyno's that it needs in a container.
    pub mounts: Vec<PathBuf>,
}

impl Keeper {
    /// Makes `root` if it is missing. Fails if others could write in it or replace it, or if Dyno
    /// is root and there is no user for servers.
    pub fn new(root: &Path) -> Result<Keeper> {
        let account = Account::find()?;
        let has_own_sessions = account.is_some();
        let root = make_root(root, account.is_some())?;
        let proc_root = PathBuf::from("/proc");
        let me = Whoami::find(&proc_root)?;
        let program_folders = confine::USUAL_FOLDERS.map(PathBuf::from).to_vec();
        Ok(Keeper {
            root,
            proc_root,
            me,
            account,
            path: joined(&program_folders),
            program_folders,
            builds: None,
            initial_data: None,
            wanted_engine: None,
            engine: OnceLock::new(),
            said: Mutex::new(BTreeMap::new()),
            owner_files: Mutex::new(BTreeMap::new()),
            kernel: KernelSettings::new(Path::new("/")),
            has_own_sessions,
        })
    }

    /// Whether each process has its own session, also a group of the scheduler (`sched_autogroup`),
    /// or Dyno's. Root's default is own ones: a process in root's session can type into a terminal.
    pub fn with_own_sessions(self, has_own_sessions: bool) -> Keeper {
        Keeper { has_own_sessions, ..self }
    }

    pub fn with_builds(mut self, store: BuildStore) -> Keeper {
        self.builds = Some(store);
        self
    }

    pub fn builds(&self, product: &str) -> Vec<Build> {
        self.builds.as_ref().map(|store| store.of(product)).unwrap_or_default()
    }

    pub fn kernel(&self) -> &KernelSettings {
        &self.kernel
    }

    /// Also finds programs in the absolute folders of this PATH value, before the usual places.
    /// Started processes get it, unless they run as another user.
    pub fn with_path(mut self, path_value: &OsStr) -> Keeper {
        let mut folders = confine::path_folders(path_value);
        for usual in std::mem::take(&mut self.program_folders) {
            if !folders.contains(&usual) {
                folders.push(usual);
            }
        }
        if self.account.is_none() {
            self.path = joined(&folders);
        }
        self.program_folders = folders;
        self
    }

    /// Without a symbolic link in its path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `None` unless Dyno is root.
    pub fn run_as(&self) -> Option<RunAs> {
        self.account.map(|account| account.user)
    }

    /// In `extra_folders`, PATH if it was given, and the usual places with the `sbin` folders.
    pub fn find_program(&self, name: &str, extra_folders: &[PathBuf]) -> Option<PathBuf> {
        let folders = extra_folders.iter().chain(&self.program_folders);
        confine::find_program(name, folders.map(PathBuf::as_path))
    }

    /// The error names the package that has it.
    pub(crate) fn needed_program(&self, name: &str, package: &str) -> Result<PathBuf> {
        self.find_program(name, &[]).or_keeper(|| {
            format!("the program `{name}` is missing; install the package `{package}`")
        })
    }

    /// A fresh folder of Dyno's user and its owner file; `name` is a hint. Servers write inside
    /// ([`Keeper::make_inner`]), where paths (< 80 bytes) have room for a Unix socket.
    pub fn make_folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.fresh_path(&files::tidy_name(name));
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
        // A folder without an owner file could never be removed by a later run.
        let owner = Owner::new(&folder, &self.me)?;
        locked(&self.owner_files).insert(folder.clone(), owner.write()?);
        let made = files::make_folder(&folder, None).and_then(|()| owner.sign());
        if made.is_err() {
            // The folder is empty or missing; the first error matters.
            let _ = leftovers::remove(&folder);
            locked(&self.owner_files).remove(&folder);
        }
        made.or_keeper(|| format!("the folder {} cannot be created", folder.display()))?;
        Ok(folder)
    }

    /// Private to the user of servers, in a folder of this keeper.
    pub fn make_inner(&self, folder: &Path, name: &str) -> Result<PathBuf> {
        let inner = self.inside(folder, name)?;
        files::make_folder(&inner, self.run_as()).or_path(&inner, "cannot be created")?;
        Ok(inner)
    }

    /// For servers to read. The file must not exist.
    pub fn write_file(&self, folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
        self.write(self.inside(folder, name)?, &mut text.as_bytes(), Access::Read)
    }

    /// For a password: readable by the servers' user only. The file must not exist.
    pub fn write_secret(&self, folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
        self.write(self.inside(folder, name)?, &mut text.as_bytes(), Access::Own)
    }

    /// For servers and commands to run. The file must not exist.
    pub fn write_program(&self, folder: &Path, name: &str, text: &mut dyn Read) -> Result<PathBuf> {
        self.write(self.inside(folder, name)?, text, Access::Run)
    }

    fn write(&self, path: PathBuf, text: &mut dyn Read, access: Access) -> Result<PathBuf> {
        files::make(&path, text, access, self.run_as()).or_path(&path, "cannot be written")?;
        Ok(path)
    }

    fn inside(&self, folder: &Path, name: &str) -> Result<PathBuf> {
        self.owned(folder)?;
        let path = folder.join(name);
        let is_inside = path.parent() == Some(folder) && path.file_name().is_some();
        let path = is_inside.then_some(path);
        path.or_keeper(|| format!("`{name}` is not the name of a file in {}", folder.display()))
    }

    /// Standard output of a successful program, such as with `--version`; see [`Keeper::output`].
    pub fn ask<'a>(&self, program: impl Into<Program<'a>>, arguments: &[&str]) -> Result<String> {
        let program = program.into();
        let answer = self.output(program, arguments)?;
        if !answer.status.success() {
            let how = kept::in_words(answer.status);
            let said = match program.image {
                // Has the engine's own errors.
                Some(_) => format!(": {}", last_words(&answer.errors)),
                None => String::new(),
            };
            let program = program.path.display();
            return Err(KeeperError(format!("{program} does not answer: it {how}{said}")));
        }
        Ok(answer.out.trim().to_owned())
    }

    /// The output, however the program ends. It runs as a server would, but in no folder.
    pub fn output<'a>(&self, program: impl Into<Program<'a>>, words: &[&str]) -> Result<Answer> {
        let program = program.into();
        match program.image {
            Some(image) => self.answer_in(image, program, words, None),
            None => self.output_within(ANSWER_LIMIT, program.path, words),
        }
    }

    fn output_within(&self, limit: Nanoseconds, program: &Path, words: &[&str]) -> Result<Answer> {
        let mut command = self.apart(program)?;
        command.args(words).current_dir("/").stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        self.clean(&mut command);
        // It has no folder, so its mark is a name that no folder has.
        let mark = self.fresh_path("answer");
        command.env(FOLDER_MARK, &mark);
        if let Some(user) = self.run_as() {
            command.uid(user.uid).gid(user.gid);
        }
        let child = confine::start(&mut command, &[], Rights::None)?;
        let answer = answer_of(program, child, limit);
        leftovers::end_detached(&self.proc_root, &mark, self.uid_of_processes());
        answer
    }

    /// As [`Keeper::output`], with a temporary file of this text; `arguments` gets its path.
    pub fn output_with_file<'a>(
        &self,
        program: impl Into<Program<'a>>,
        text: &str,
        arguments: impl Fn(&Path) -> Vec<String>,
    ) -> Result<Answer> {
        let program = program.into();
        let folder = self.make_folder("settings")?;
        let result = (|| {
            let file = self.write_file(&folder, "settings.conf", text)?;
            self.open_to_servers(&folder)?;
            let arguments = arguments(&file);
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            match program.image {
                Some(image) => self.answer_in(image, program, &arguments, Some(&folder)),
                None => self.output(program, &arguments),
            }
        })();
        let removed = self.remove_folder(&folder);
        let answer = result?;
        removed.map(|()| answer)
    }

    /// Runs a program to its end (initdb …); the error has its output.
    pub fn run(
        &self,
        folder: &Path,
        spec: &ProcessSpec,
        clock: &dyn Clock,
        limit: Nanoseconds,
    ) -> Result<()> {
        let log_begin = fs::symlink_metadata(&spec.log).map_or(0, |facts| facts.len());
        let mut process = match &spec.image {
            Some(image) => self.spawn_client(folder, spec, image)?.0,
            None => self.spawn(folder, spec)?,
        };
        retry(clock, (limit, kept::POLL), || process.ended(), Option::is_some);
        if process.status().is_some_and(|status| status.success()) {
            return Ok(());
        }
        let how = process.ended().unwrap_or_else(|| {
            let _ = process.stop("KILL", clock, Nanoseconds::SECOND);
            format!("did not finish within {limit} and was killed")
        });
        let output = output(&spec.log, log_begin);
        Err(KeeperError(format!("{} {how}{output}", spec.program.display())))
    }

    /// Notes the process in the owner file.
    pub fn spawn(&self, folder: &Path, spec: &ProcessSpec) -> Result<KeptProcess> {
        if let Some(image) = &spec.image {
            return self.spawn_contained(folder, spec, image);
        }
        self.open_to_servers(folder)?;
        let (mut command, rights) = self.command(folder, spec)?;
        let groups = self.make_groups(folder, &spec.limits)?;
        let child = confine::start(&mut command, &spec.cpus, rights)?;
        // From here on, dropping it kills it.
        let process = KeptProcess::new(child);
        group::add(&groups, process.pid())?;
        self.note(folder, process.pid(), spec.after_crash.as_ref())?;
        Ok(process)
    }

    /// The groups are noted before they are made.
    fn make_groups(&self, folder: &Path, limits: &ServerLimits) -> Result<Vec<PathBuf>> {
        let groups = group::planned(Path::new(group::ROOT), folder, limits)?;
        if groups.is_empty() {
            return Ok(groups);
        }
        let before =
            self.amend(folder, |owner| std::mem::replace(&mut owner.groups, groups.clone()))?;
        // A restarted server joins the groups of its first process.
        if before != groups {
            group::make(Path::new(group::ROOT), &groups, limits)?;
        }
        Ok(groups)
    }

    fn open_to_servers(&self, folder: &Path) -> Result<()> {
        self.owned(folder)?;
        self.run_as().map_or(Ok(()), |user| check_reachable(folder, user))?;
        self.let_through(folder)
    }

    fn let_through(&self, folder: &Path) -> Result<()> {
        let Some(user) = self.run_as() else { return Ok(()) };
        files::let_through(folder, user).or_path(folder, "cannot be opened to servers")
    }

    /// Lets the servers' user pass through the folder, and through `mounted` in it.
    pub(crate) fn let_servers_through(&self, folder: &Path, mounted: &Path) -> Result<()> {
        self.open_to_servers(folder)?;
        self.let_through(mounted)
    }

    /// Removes a folder of this Dyno, proved by its owner file; refused while a noted process runs.
    /// Detached processes are ended first.
    pub fn remove_folder(&self, folder: &Path) -> Result<()> {
        let owner = self.owned(folder)?;
        if let Some(process) = owner.processes.iter().find(|p| p.is_alive(&self.proc_root)) {
            let (folder, pid) = (folder.display(), process.pid);
            return Err(KeeperError(format!(
                "{folder} cannot be removed: process {pid} still runs in it; stop it first"
            )));
        }
        // They may use shared memory, which then cannot be removed.
        leftovers::end_detached(&self.proc_root, folder, self.uid_of_processes());
        self.clean_up_after_crash(&owner);
        owner.remove_containers()?;
        owner.remove_groups()?;
        leftovers::remove(folder)?;
        locked(&self.owner_files).remove(folder);
        Ok(())
    }

    /// Ends processes and removes folders of dead Dynos, and puts back their kernel settings;
    /// returns what it did. Touches nothing without proof.
    pub fn end_leftovers(&self, clock: &dyn Clock) -> Vec<String> {
        let mut done = leftovers::end_all(self, clock);
        done.extend(self.kernel.put_back_left_over(clock));
        done
    }

    /// Must be a folder of this Dyno under this root.
    fn owned(&self, folder: &Path) -> Result<Owner> {
        if folder.parent() != Some(&self.root) {
            let (folder, root) = (folder.display(), self.root.display());
            return Err(KeeperError(format!(
                "{folder} is not a folder of this keeper: it is not directly in {root}"
            )));
        }
        let (_, owner) = Owner::read(folder)?;
        if owner.standing(&self.me, &self.proc_root) != Standing::Ours {
            let (folder, pid) = (folder.display(), owner.dyno.pid);
            return Err(KeeperError(format!(
                "{folder} was created by another Dyno (process {pid}); it is left alone"
            )));
        }
        Ok(owner)
    }

    /// No other Dyno or keeper has used it.
    fn fresh_path(&self, name: &str) -> PathBuf {
        loop {
            let n = N_FOLDERS.fetch_add(1, Ordering::Relaxed);
            let me = &self.me.dyno;
            // FNV-1a of the numbers that make process and folder unique.
            let numbers = [u64::from(me.pid.unsigned_abs()), me.start_ticks, n];
            let hash = fnv_1a(FNV_1A, &numbers.map(u64::to_le_bytes).concat());
            let folder = self.root.join(format!("{name}-{:06x}", (hash >> 20) & 0x00ff_ffff));
            let is_free = |path: &Path| fs::symlink_metadata(path).is_err();
            if is_free(&folder) && is_free(&Owner::path_of(&folder)) {
                return folder;
            }
        }
    }

    fn command(&self, folder: &Path, spec: &ProcessSpec) -> Result<(Command, Rights)> {
        let log = open_log(folder, &spec.log)?;
        let (mut command, rights) = match self.account {
            None => (self.apart(&spec.program)?, Rights::None),
            Some(Account { user, has_name }) if has_name || !spec.needs_name => {
                let mut command = self.apart(&spec.program)?;
                // As root, this also drops all other groups.
                command.uid(user.uid).gid(user.gid);
                (command, Rights::None)
            }
            Some(account) => (self.named(folder, account, spec)?, Rights::UntilItDropsThem),
        };
        command.args(&spec.arguments).current_dir(folder);
        self.clean(&mut command);
        command
            .envs(spec.environment.iter().map(|(name, value)| (name, value)))
            .env(FOLDER_MARK, folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone().at(&spec.log)?)
            .stderr(log);
        Ok((command, rights))
    }

    /// In a mount namespace where the user has a name. The program's arguments follow.
    fn named(&self, folder: &Path, account: Account, spec: &ProcessSpec) -> Result<Command> {
        const HELPERS: [&str; 4] = ["unshare", "sh", "mount", "setpriv"];
        let usual = || confine::USUAL_FOLDERS.iter().map(Path::new);
        let unshare = confine::find_program("unshare", usual());
        let (Some(unshare), true) =
            (unshare, HELPERS.iter().all(|name| confine::find_program(name, usual()).is_some()))
        else {
            return Err(KeeperError(format!(
                "{} refuses to run as a user without a name, and the programs that could provide \
                 one ({}; package util-linux) are missing. Create a system account for it: \
                 `useradd --system --no-create-home --shell /usr/sbin/nologin dyno`",
                spec.program.display(),
                HELPERS.join(", ")
            )));
        };
        let names = self.passwd_file(folder, &account.passwd())?;
        let mut command = self.apart(&unshare)?;
        command.args(["--mount", "--propagation", "private", "--", "sh", "-c", WITH_A_NAME]);
        command.arg(names);
        command.args([account.user.uid.to_string(), account.user.gid.to_string()]);
        command.arg(&spec.program);
        Ok(command)
    }

    fn uid_of_processes(&self) -> u32 {
        self.run_as().map_or(rustix::process::geteuid().as_raw(), |user| user.uid)
    }

    fn clean(&self, command: &mut Command) {
        command.env_clear().env("PATH", &self.path).env("LANG", "C.UTF-8").env("TZ", "UTC");
    }

    /// Also removes processes that have ended.
    fn note(&self, folder: &Path, pid: i32, after_crash: Option<&AfterCrash>) -> Result<()> {
        self.amend(folder, |owner| {
            owner.processes.retain(|process| process.is_alive(&self.proc_root));
            // It may have ended already.
            let stat = ProcessStat::read(&self.proc_root, pid);
            owner.processes.extend(stat.map(|stat| stat.identity()));
            if let Some(after_crash) = after_crash {
                owner.after_crash = Some(after_crash.clone());
            }
        })
    }

    fn amend<T>(&self, folder: &Path, change: impl FnOnce(&mut Owner) -> T) -> Result<T> {
        let mut owner_files = locked(&self.owner_files);
        let (_, mut owner) = Owner::read(folder)?;
        let before = owner.clone();
        let result = change(&mut owner);
        if owner != before {
            owner_files.insert(folder.to_owned(), owner.write()?);
        }
        Ok(result)
    }
}

fn joined(folders: &[PathBuf]) -> OsString {
    std::env::join_paths(folders).expect("no folder holds a colon")
}

/// Otherwise servers fail in obscure ways.
fn check_reachable(folder: &Path, user: RunAs) -> Result<()> {
    for parent in folder.ancestors().skip(1) {
        let facts = fs::metadata(parent).or_path(parent, "cannot be read")?;
        let enter = match (facts.uid() == user.uid, facts.gid() == user.gid) {
            (true, _) => 0o100,
            (false, true) => 0o010,
            (false, false) => 0o001,
        };
        if facts.mode() & enter == 0 {
            return Err(KeeperError(format!(
                "{} does not admit the user that servers run as (uid {}); choose a root folder \
                 that this user can reach, such as one under /var/tmp",
                parent.display(),
                user.uid
            )));
        }
    }
    Ok(())
}

/// Each process with the log open shares a lock on it, which shows other Dynos that it is alive.
fn open_log(folder: &Path, log: &Path) -> Result<File> {
    let refuse =
        |why: String| KeeperError(format!("the log {} cannot be opened: {why}", log.display()));
    if log.parent() != Some(folder) {
        return Err(refuse(format!("it is not directly in {}", folder.display())));
    }
    let file = files::open_log(log).map_err(|e| refuse(e.to_string()))?;
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared)
        .map_err(|e| refuse(format!("it cannot be locked: {e}")))?;
    Ok(file)
}

fn output(log: &Path, begin: u64) -> String {
    match files::end_of(log, begin, OUTPUT_BYTES_MAX) {
        Ok(bytes) if bytes.is_empty() => "; it wrote nothing".into(),
        Ok(bytes) => format!("; it wrote:\n{}", String::from_utf8_lossy(&bytes).trim_end()),
        Err(error) => format!("; its log {} cannot be read: {error}", log.display()),
    }
}

#[cfg(test)]
pub(crate) mod tests;
