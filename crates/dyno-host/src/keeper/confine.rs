//! Starts processes with the least rights, and nothing inherited by accident. The confinement
//! belongs to a thread: each process has its own, which ends at once, so nothing has to be undone.

use std::process::{Child, Command};

use rustix::thread::{
    CapabilitySet, CpuSet, clear_ambient_capability_set, remove_capability_from_bounding_set,
    sched_getaffinity, sched_setaffinity, set_no_new_privs,
};

use super::KeeperError;

/// Rights that the process may regain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rights {
    /// Neither set-user-id programs nor capabilities.
    None,
    /// A helper of root drops them itself.
    UntilItDropsThem,
}

/// The command and its descendants can never gain rights, and run on `cpus` only (empty: on all).
pub(super) fn start(
    command: &mut Command,
    cpus: &[u32],
    rights: Rights,
) -> Result<Child, KeeperError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let start = || {
        confine(rights).map_err(|e| {
            KeeperError(format!("{program} cannot be started with reduced privileges: {e}"))
        })?;
        bind(cpus)?;
        command.spawn().map_err(|e| KeeperError(format!("{program} cannot be started: {e}")))
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("dyno-start".into());
        let thread = thread
            .spawn_scoped(scope, start)
            .map_err(|e| KeeperError(format!("cannot start a thread to start a program: {e}")))?;
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

fn bind(cpus: &[u32]) -> Result<(), KeeperError> {
    if cpus.is_empty() {
        return Ok(());
    }
    let refuse = |error: rustix::io::Errno| {
        KeeperError(format!("a process cannot be bound to the CPUs {cpus:?}: {error}"))
    };
    let allowed = sched_getaffinity(None).map_err(refuse)?;
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
    sched_setaffinity(None, &wanted).map_err(refuse)
}

/// `0, 1, 4`.
fn cpu_list(cpus: &CpuSet) -> String {
    let list: Vec<String> =
        (0..CpuSet::MAX_CPU).filter(|idx| cpus.is_set(*idx)).map(|idx| idx.to_string()).collect();
    list.join(", ")
}
