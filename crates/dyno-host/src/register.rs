//! The register of deployments that outlive their command. Each has a holder: a Dyno process that
//! stays, owns the servers, and locks `NAME.lock`; `NAME.json` describes them. A holder is ended
//! only if its process is noted and holds the lock; the next Dyno cleans up after a dead one.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use dyno_units::{Clock, Nanoseconds};
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::keeper::{make_root, open_own, retry, signal_identity, take_lock};
use crate::{KeeperError, OrKeeper, ProcessIdentity, ProcessStat, Result, if_there};

const LOCK: &str = ".lock";
const DESCRIPTION: &str = ".json";
const SECRETS: &str = ".secrets";
/// For the servers of a holder, which write all dirty pages.
const STOP_LIMIT: Nanoseconds = Nanoseconds::from_secs(150);
const KILL_LIMIT: Nanoseconds = Nanoseconds::from_secs(10);
const POLL: Nanoseconds = Nanoseconds::from_millis(20);
const NAME_BYTES_MAX: usize = 64;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registered {
    pub name: String,
    pub since_unix_ms: u64,
    /// Of the keeper that owns the servers.
    pub root: PathBuf,
    /// Empty while they start.
    pub members: Vec<RegisteredMember>,
    /// Why a server is down, or was not stopped in order.
    #[serde(default)]
    pub failure: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisteredMember {
    pub name: String,
    pub role: String,
    pub product: String,
    pub version: String,
    /// Without a password, but with the file that holds it.
    pub url: String,
    /// Loopback port for the product's client, if not the URL's.
    #[serde(default)]
    pub client_port: Option<u16>,
    /// With its descendants.
    pub pid: i32,
    pub data: PathBuf,
    pub log: PathBuf,
    pub programs: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedDeployment {
    pub registered: Registered,
    /// Otherwise the servers are left over, or gone.
    pub is_held: bool,
}

/// The contents of `NAME.json`.
#[derive(Clone, Serialize, Deserialize)]
struct Description {
    holder: ProcessIdentity,
    #[serde(flatten)]
    registered: Registered,
}

/// Of one user.
#[derive(Clone, Debug)]
pub struct Register {
    folder: PathBuf,
}

/// A name that this Dyno holds; freed when dropped.
#[derive(Debug)]
pub struct Hold {
    register: Register,
    name: String,
    holder: ProcessIdentity,
    /// Keeps the last description, for the process that ends this holder.
    leaves_failure: bool,
    _lock: File,
}

impl Register {
    /// Made if missing. Fails if others could write in it.
    pub fn open(folder: &Path) -> Result<Register> {
        Ok(Register { folder: make_root(folder, false)? })
    }

    pub fn list(&self) -> Result<Vec<ListedDeployment>> {
        let entries = fs::read_dir(&self.folder).or_path(&self.folder, "cannot be read")?;
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(LOCK).map(str::to_owned))
            .collect();
        names.sort();
        Ok(names.iter().filter_map(|name| self.find(name)).collect())
    }

    pub fn find(&self, name: &str) -> Option<ListedDeployment> {
        check_name(name).ok()?;
        let lock = self.path(name, LOCK);
        let is_held = match open_own(&lock, OFlags::RDWR, Mode::empty()) {
            // Closing the file frees the lock.
            Ok(file) => !take_lock(&file, &lock),
            Err(_) => return None,
        };
        let registered = self.read(name).map_or_else(
            || Registered { name: name.to_owned(), ..Registered::default() },
            |found| found.registered,
        );
        Some(ListedDeployment { registered, is_held })
    }

    /// Fails if the name is invalid or taken.
    pub fn hold(&self, name: &str) -> Result<Hold> {
        check_name(name)?;
        let path = self.path(name, LOCK);
        let flags = OFlags::RDWR | OFlags::CREATE;
        let lock = open_own(&path, flags, Mode::from_raw_mode(0o600))
            .or_path(&path, "cannot be created")?;
        if !take_lock(&lock, &path) || self.path(name, DESCRIPTION).exists() {
            return Err(KeeperError(format!(
                "there is already a deployment `{name}`; choose another name with --name, or end the \
                 existing one with `dyno down {name}`"
            )));
        }
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let stat = ProcessStat::read(Path::new("/proc"), own)
            .or_keeper(|| "/proc does not describe this process")?;
        let hold = Hold {
            register: self.clone(),
            name: name.to_owned(),
            holder: stat.identity(),
            leaves_failure: false,
            _lock: lock,
        };
        hold.publish(&Registered { name: name.to_owned(), ..Registered::default() })?;
        Ok(hold)
    }

    /// Tells a holder to end, and kills it after the limit. False if there was none: then, and
    /// after a kill, the caller cleans up. Fails if another process than noted holds the lock.
    pub fn end_holder(&self, name: &str, clock: &dyn Clock) -> Result<bool> {
        check_name(name)?;
        if !self.find(name).is_some_and(|found| found.is_held) {
            return Ok(false);
        }
        let proc_root = Path::new("/proc");
        let holder = self.read(name).map(|found| found.holder);
        let Some(holder) = holder.filter(|holder| holder.is_alive(proc_root)) else {
            // A killed process holds its lock until its last thread is gone.
            if self.is_free_within(name, KILL_LIMIT, clock) {
                return Ok(false);
            }
            return Err(KeeperError(format!(
                "the deployment `{name}` is owned by a process that cannot be seen from here (in a \
                 container?); stop it there"
            )));
        };
        for (signal, limit) in [(Signal::TERM, STOP_LIMIT), (Signal::KILL, KILL_LIMIT)] {
            signal_identity(proc_root, holder, signal);
            // In case it is suspended.
            signal_identity(proc_root, holder, Signal::CONT);
            if self.is_free_within(name, limit, clock) {
                return Ok(true);
            }
        }
        Err(KeeperError(format!("process {}, which owns `{name}`, does not exit", holder.pid)))
    }

    fn is_free_within(&self, name: &str, limit: Nanoseconds, clock: &dyn Clock) -> bool {
        let is_free = || !self.find(name).is_some_and(|found| found.is_held);
        retry(clock, (limit, POLL), is_free, |is_free| *is_free)
    }

    /// Readable by the user only; removed with the deployment.
    pub fn keep_secret(&self, name: &str, file: &str, text: &str) -> Result<PathBuf> {
        check_name(name)?;
        check_name(file)?;
        let folder = make_root(&self.path(name, SECRETS), false)?;
        let (path, fresh) = (folder.join(file), folder.join(format!("{file}.new")));
        replace(&path, &fresh, text.as_bytes())?;
        Ok(path)
    }

    /// Removes a deployment; returns its holder's last failure. Fails if it is still held.
    pub fn forget(&self, name: &str) -> Result<Option<String>> {
        check_name(name)?;
        if self.find(name).is_some_and(|found| found.is_held) {
            return Err(KeeperError(format!("the deployment `{name}` is held by another process")));
        }
        let failure = self.read(name).and_then(|found| found.registered.failure);
        self.remove(name)?;
        Ok(failure)
    }

    /// What cannot be removed stays listed: the lock goes last.
    fn remove(&self, name: &str) -> Result<()> {
        let secrets = self.path(name, SECRETS);
        if_there(fs::remove_dir_all(&secrets)).or_path(&secrets, "cannot be removed")?;
        [DESCRIPTION, LOCK].iter().try_for_each(|end| {
            let path = self.path(name, end);
            if_there(fs::remove_file(&path)).or_path(&path, "cannot be removed")
        })
    }

    fn read(&self, name: &str) -> Option<Description> {
        let path = self.path(name, DESCRIPTION);
        // Must be a file of its own user.
        let file = open_own(&path, OFlags::RDONLY, Mode::empty()).ok()?;
        serde_json::from_reader(file).ok()
    }

    fn path(&self, name: &str, end: &str) -> PathBuf {
        self.folder.join(format!("{name}{end}"))
    }
}

impl Hold {
    /// Whole or not at all.
    pub fn publish(&self, registered: &Registered) -> Result<()> {
        let path = self.register.path(&self.name, DESCRIPTION);
        let description = Description { holder: self.holder, registered: registered.clone() };
        let text = serde_json::to_vec(&description).or_path(&path, "cannot be written")?;
        replace(&path, &self.register.path(&self.name, ".new"), &text)
    }

    /// Frees the name, but keeps the last description for the process that ends this holder.
    pub fn leave(mut self) {
        self.leaves_failure = true;
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if !self.leaves_failure {
            // What remains is listed as left over.
            let _ = self.register.remove(&self.name);
        }
    }
}

/// Whole or not at all; readable by the user only.
fn replace(path: &Path, fresh: &Path, text: &[u8]) -> Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
    let written = open_own(fresh, flags, Mode::from_raw_mode(0o600))
        .and_then(|mut file| file.write_all(text))
        .and_then(|()| fs::rename(fresh, path));
    written.or_path(path, "cannot be written")
}

fn check_name(name: &str) -> Result<()> {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins_well && name.len() <= NAME_BYTES_MAX && name.chars().all(is_safe) {
        return Ok(());
    }
    Err(KeeperError(format!(
        "`{name}` cannot be the name of a deployment: use letters, digits, `-`, `_` and `.`, at most \
         {NAME_BYTES_MAX} characters"
    )))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    use dyno_units::ManualClock;

    use super::*;

    fn register() -> (tempfile::TempDir, Register) {
        let folder = tempfile::tempdir().expect("a folder");
        let register = Register::open(&folder.path().join("up")).expect("made");
        (folder, register)
    }

    /// A child that another test starts shares the lock until it runs its program.
    fn wait_until_free(register: &Register, name: &str) {
        while register.find(name).is_some_and(|found| found.is_held) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_name_is_held_by_one_and_free_afterwards() {
        let (_folder, register) = register();
        assert_eq!(register.list().expect("read"), []);
        let hold = register.hold("a-1").expect("it is free");
        let error = register.hold("a-1").expect_err("it is taken").0;
        assert!(error.contains("there is already a deployment `a-1`"), "{error}");
        let registered =
            Registered { name: "a-1".to_owned(), since_unix_ms: 7, ..Registered::default() };
        hold.publish(&registered).expect("written");
        let listed = register.list().expect("read");
        assert_eq!(listed, [ListedDeployment { registered, is_held: true }]);
        assert!(register.forget("a-1").is_err(), "it is held");
        drop(hold);
        assert_eq!(register.list().expect("read"), []);
        register.hold("a-1").expect("it is free again");
    }

    #[test]
    fn what_a_holder_said_at_last_is_there_for_who_ended_it() {
        let (_folder, register) = register();
        let hold = register.hold("a").expect("it is free");
        let failure = Some("it was killed".to_owned());
        hold.publish(&Registered { failure: failure.clone(), ..Registered::default() })
            .expect("written");
        hold.leave();
        wait_until_free(&register, "a");
        assert!(register.hold("a").is_err(), "its name is not free yet");
        assert!(!register.end_holder("a", &ManualClock::new()).expect("nobody holds it"));
        assert_eq!(register.forget("a").expect("removed"), failure);
        assert!(register.find("a").is_none());
    }

    #[test]
    fn secrets_are_their_user_s_alone_and_go_with_the_deployment() {
        use std::os::unix::fs::PermissionsExt;
        let (_folder, register) = register();
        let keep = |text: &str| register.keep_secret("a", "server.password", text);
        let hold = register.hold("a").expect("it is free");
        keep("old").expect("written");
        let path = keep("s3cret").expect("written again");
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "s3cret");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        let folder = path.parent().expect("it has one");
        assert_eq!((mode(&path), mode(folder)), (0o600, 0o700));
        assert!(register.keep_secret("a", "../b", "").is_err());
        assert_eq!(register.list().expect("read").len(), 1, "it is no deployment");
        drop(hold);
        assert!(!folder.exists());
        let hold = register.hold("a").expect("it is free");
        keep("s3cret").expect("written");
        hold.leave();
        wait_until_free(&register, "a");
        register.forget("a").expect("removed");
        assert!(!folder.exists());
    }

    #[test]
    fn only_the_noted_process_is_ended() {
        let (_folder, register) = register();
        let hold = register.hold("a").expect("it is free");
        let mut child =
            Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().expect("it runs");
        let pid = i32::try_from(child.id()).expect("it fits");
        // With a reused id.
        let holder = ProcessIdentity { pid, start_ticks: 1 };
        let description = Description { holder, registered: Registered::default() };
        let text = serde_json::to_vec(&description).expect("it is JSON");
        fs::write(register.path("a", DESCRIPTION), text).expect("written");
        let error = register.end_holder("a", &ManualClock::new()).expect_err("it is refused").0;
        assert!(error.contains("cannot be seen from here"), "{error}");
        assert!(child.try_wait().expect("it is ours").is_none(), "it still runs");
        child.kill().expect("it is ours");
        assert_eq!(child.wait().expect("it ends").signal(), Some(9));
        drop(hold);
    }

    /// On the first sleep calls `look`, then frees the lock.
    struct Freeing<'a> {
        clock: ManualClock,
        look: &'a (dyn Fn() + Sync),
        register: &'a Register,
        hold: std::sync::Mutex<Option<Hold>>,
    }

    impl Clock for Freeing<'_> {
        fn now(&self) -> Nanoseconds {
            self.clock.now()
        }

        fn unix_millis(&self) -> u64 {
            self.clock.unix_millis()
        }

        fn sleep_until(&self, until: Nanoseconds) {
            (self.look)();
            if let Some(hold) = self.hold.lock().expect("nobody panicked").take() {
                hold.leave();
                wait_until_free(self.register, "a");
            }
            self.clock.sleep_until(until);
        }
    }

    #[test]
    fn a_holder_that_is_just_dying_is_waited_for() {
        let (_folder, register) = register();
        let hold = register.hold("a").expect("it is free");
        let own = ProcessStat::read(Path::new("/proc"), hold.holder.pid).expect("it is this one");
        // The noted process is gone, its lock not yet free.
        let holder = ProcessIdentity { start_ticks: own.start_ticks + 1, pid: own.pid };
        let description = Description { holder, registered: Registered::default() };
        let text = serde_json::to_vec(&description).expect("it is JSON");
        fs::write(register.path("a", DESCRIPTION), text).expect("written");
        let hold = std::sync::Mutex::new(Some(hold));
        let clock = Freeing { clock: ManualClock::new(), look: &|| {}, register: &register, hold };
        assert!(!register.end_holder("a", &clock).expect("it is free by now"));
        assert_eq!(clock.now(), POLL);
        register.forget("a").expect("removed");
    }

    /// `S`, `T` …
    fn state_of(pid: i32) -> Option<char> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    }

    #[test]
    fn a_holder_that_is_suspended_goes_on_to_end() {
        let (_folder, register) = register();
        let hold = register.hold("a").expect("it is free");
        let mut child =
            Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().expect("it runs");
        let pid = i32::try_from(child.id()).expect("it fits");
        let holder = ProcessStat::read(Path::new("/proc"), pid).expect("it runs").identity();
        signal_identity(Path::new("/proc"), holder, Signal::STOP);
        while state_of(pid) != Some('T') {
            std::thread::yield_now();
        }
        let description = Description { holder, registered: Registered::default() };
        let text = serde_json::to_vec(&description).expect("it is JSON");
        fs::write(register.path("a", DESCRIPTION), text).expect("written");
        let seen = std::sync::Mutex::new(Vec::new());
        let look = || seen.lock().expect("nobody panicked").push(state_of(pid));
        let hold = std::sync::Mutex::new(Some(hold));
        let clock = Freeing { clock: ManualClock::new(), look: &look, register: &register, hold };
        assert!(register.end_holder("a", &clock).expect("it has let go"));
        let first = seen.lock().expect("nobody panicked").first().copied();
        assert!(first.is_some_and(|state| state != Some('T')), "{first:?}");
        assert_eq!(child.wait().expect("it ends").signal(), Some(15));
        register.forget("a").expect("removed");
    }

    #[test]
    fn names_lead_nowhere_else() {
        let (_folder, register) = register();
        for name in ["../a", "", ".a", "a/b", "a b", &"x".repeat(65)] {
            assert!(register.hold(name).is_err(), "{name}");
            assert!(register.find(name).is_none(), "{name}");
            assert!(register.forget(name).is_err(), "{name}");
        }
    }
}
