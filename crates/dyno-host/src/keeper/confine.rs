//! Finds programs on this host, and starts them apart from Dyno, with the least rights and nothing
//! inherited by accident. The confinement belongs to a thread: each process has its own, which ends
//! at once, so nothing has to be undone.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use rustix::thread::{
    CapabilitySet, CpuSet, clear_ambient_capability_set, remove_capability_from_bounding_set,
    sched_getaffinity, sched_setaffinity, set_no_new_privs,
};

use super::Keeper;
use crate::error::{KeeperError, OrKeeper, Result};

/// PATH often lacks the `sbin` folders, where servers are.
pub(super) const USUAL_FOLDERS: [&str; 7] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/libexec"];

/// Relative folders depend on Dyno's working directory.
pub(super) fn path_folders(path_value: &OsStr) -> Vec<PathBuf> {
    std::env::split_paths(path_value).filter(|folder| folder.is_absolute()).collect()
}

pub(super) fn find_program<'a>(
    name: &str,
    folders: impl Iterator<Item = &'a Path>,
) -> Option<PathBuf> {
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
    pub(super) fn apart(&self, program: &Path) -> Result<Command> {
        if !self.has_own_sessions {
            let mut command = Command::new(program);
            command.process_group(0);
            return Ok(command);
        }
        let setsid = find_program("setsid", USUAL_FOLDERS.iter().map(Path::new));
        let setsid = setsid.or_keeper(|| {
            format!(
                "the program `setsid` (package util-linux) is missing; without it, {} would share \
                 root's terminal; install it, or run Dyno as a user other than root",
                program.display()
            )
        })?;
        // setsid would report this only in the log.
        fs::metadata(program).or_path(program, "cannot be started")?;
        // A new process leads no group, so it leads the session and keeps its id.
        let mut command = Command::new(setsid);
        command.arg(program);
        Ok(command)
    }
}

/// Rights that the process may regain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rights {
    /// Neither set-user-id programs nor capabilities.
    None,
    /// A helper of root drops them itself.
    UntilItDropsThem,
}

/// The command and its descendants can never gain rights, and run on `cpus` only (empty: on all).
pub(super) fn start(command: &mut Command, cpus: &[u32], rights: Rights) -> Result<Child> {
    let program = command.get_program().to_string_lossy().into_owned();
    let start = || {
        confine(rights)
            .or_keeper(|| format!("{program} cannot be started with reduced privileges"))?;
        bind(cpus)?;
        command.spawn().or_keeper(|| format!("{program} cannot be started"))
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("dyno-start".into());
        let thread = thread.spawn_scoped(scope, start);
        let thread = thread.or_keeper(|| "cannot start a thread to start a program")?;
        // It calls nothing that panics.
        thread.join().unwrap_or_else(|_| Err(KeeperError("a program was not started".into())))
    })
}

fn confine(rights: Rights) -> rustix::io::Result<()> {
    set_no_new_privs(true)?;
    if rights == Rights::UntilItDropsThem || !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    // Kernels before 4.3 have no ambient set.
    let _ = clear_ambient_capability_set();
    for bit in 0..u64::BITS {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << bit)) {
            Ok(()) => {}
            // The kernel has no further ones.
            Err(rustix::io::Errno::INVAL) => break,
            // As in some containers, where root has little to lose.
            Err(rustix::io::Errno::PERM) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn bind(cpus: &[u32]) -> Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let refused = || format!("a process cannot be bound to the CPUs {cpus:?}");
    let allowed = sched_getaffinity(None).or_keeper(refused)?;
    let mut wanted = CpuSet::new();
    for cpu in cpus {
        let idx = *cpu as usize;
        if idx >= CpuSet::MAX_CPU || !allowed.is_set(idx) {
            return Err(KeeperError(format!(
                "CPU {cpu} is not among those that Dyno may use ({}); choose other CPUs",
                cpu_list(&allowed)
            )));
        }
        wanted.set(idx);
    }
    sched_setaffinity(None, &wanted).or_keeper(refused)
}

/// `0, 1, 4`.
fn cpu_list(cpus: &CpuSet) -> String {
    let list: Vec<String> =
        (0..CpuSet::MAX_CPU).filter(|idx| cpus.is_set(*idx)).map(|idx| idx.to_string()).collect();
    list.join(", ")
}
