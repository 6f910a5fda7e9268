//! A process that Dyno started, to the end of its last child.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, ExitStatus};

use dyno_units::{Clock, Nanoseconds};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open};

use crate::process_table::{ProcessIdentity, ProcessStat, descendants, memory_of, seconds};

pub(super) const POLL: Nanoseconds = Nanoseconds::from_millis(10);

/// After so many rounds with new descendants, one cannot be stopped.
const FREEZE_ROUNDS_MAX: usize = 300;

/// For an engine to notice that its program is over.
const ENGINE_LIMIT: Nanoseconds = Nanoseconds::from_secs(30);

pub(super) const KILLED_LIMIT: Nanoseconds = Nanoseconds::from_secs(10);

/// A process stopped by a signal or a debugger is not awaited longer.
const FROZEN_LIMIT: Nanoseconds = Nanoseconds::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HowStopped {
    /// It had ended before, or did on the signal.
    Ended,
    /// After the limit.
    Killed,
    /// A signal or a debugger had stopped it.
    KilledFrozen,
}

/// Dropping it kills it with all that it started.
#[derive(Debug)]
pub struct KeptProcess {
    child: Child,
    pid: Pid,
    /// How it ended, once waited for; then its id may be reused.
    ended: Option<String>,
    /// Known once it has ended.
    cpu_ticks: Option<u64>,
    /// Stopped descendants that are to go on.
    frozen: BTreeSet<ProcessIdentity>,
    /// The container's first process, for which the child only waits.
    inner: Option<ProcessIdentity>,
}

impl KeptProcess {
    pub(super) fn new(child: Child) -> KeptProcess {
        let pid = Pid::from_child(&child);
        let (ended, cpu_ticks, frozen, inner) = (None, None, BTreeSet::new(), None);
        KeptProcess { child, pid, ended, cpu_ticks, frozen, inner }
    }

    /// For a program that a container engine started.
    pub(super) fn with_inner(mut self, inner: ProcessIdentity) -> KeptProcess {
        self.inner = Some(inner);
        self
    }

    /// May be reused once the process has been waited for.
    pub fn pid(&self) -> i32 {
        self.inner.map_or(self.child_pid(), |inner| inner.pid)
    }

    pub(super) fn child_pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    pub(super) fn ends_within(&mut self, limit: Nanoseconds) -> bool {
        wait_for_end(&self.child, limit) == Some(true) && self.ended().is_some()
    }

    fn signal(&self, signal: Signal) {
        match self.inner {
            Some(inner) => signal_identity(Path::new("/proc"), inner, signal),
            // It may have ended by itself.
            None => drop(rustix::process::kill_process(self.pid, signal)),
        }
    }

    /// `None` while it runs.
    pub fn ended(&mut self) -> Option<String> {
        if self.ended.is_none() && self.is_over() {
            self.collect();
        }
        self.ended.clone()
    }

    /// Sends `TERM`, `INT`, `QUIT`, `HUP` or else `KILL`, waits up to `limit`, then kills.
    pub fn stop(&mut self, signal: &str, clock: &dyn Clock, limit: Nanoseconds) -> HowStopped {
        if self.ended().is_some() {
            return HowStopped::Ended;
        }
        let signal = signal_named(signal).unwrap_or(Signal::KILL);
        self.signal(signal);
        let until = clock.now() + limit;
        let mut ran_last = clock.now();
        while clock.now() < until {
            if self.ended().is_some() {
                return HowStopped::Ended;
            }
            if !self.is_frozen() {
                ran_last = clock.now();
            } else if clock.now() >= ran_last + FROZEN_LIMIT {
                self.kill();
                return HowStopped::KilledFrozen;
            }
            clock.sleep_until(clock.now() + POLL);
        }
        self.kill();
        HowStopped::Killed
    }

    /// With all descendants, which cannot act in between; waits for it.
    pub fn kill_all(&mut self) {
        if self.ended().is_none() {
            self.kill();
        }
    }

    /// Stops it and all descendants until [`KeptProcess::thaw`].
    pub fn freeze(&mut self) {
        if self.ended().is_none() {
            self.frozen.append(&mut freeze_descendants(Path::new("/proc"), self.pid()));
        }
    }

    pub fn thaw(&mut self) {
        for member in std::mem::take(&mut self.frozen) {
            signal_identity(Path::new("/proc"), member, Signal::CONT);
        }
        if self.ended().is_none() {
            self.signal(Signal::CONT);
        }
    }

    /// A signal or a debugger keeps it from running.
    fn is_frozen(&self) -> bool {
        let stat = ProcessStat::read(Path::new("/proc"), self.pid());
        stat.is_some_and(|stat| stat.is_stopped())
    }

    /// With processes it waited for; `None` while it runs or if unknown. Grain: usually 10 ms.
    pub fn cpu_s(&self) -> Option<f64> {
        self.cpu_ticks.map(seconds)
    }

    /// With descendants; shared pages count in each. Zero when it has ended.
    pub fn rss_bytes(&self) -> u64 {
        if self.ended.is_some() { 0 } else { memory_of(self.pid()) }
    }

    /// Exit code 0, on its own or on the signal.
    pub fn has_succeeded(&mut self) -> bool {
        self.status().is_some_and(|status| status.success())
    }

    /// `None` while it runs, or if not waited for here.
    pub(super) fn status(&mut self) -> Option<ExitStatus> {
        self.ended()?;
        self.child.try_wait().ok()?
    }

    /// Without collecting it: until then its id stays its own.
    fn is_over(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // An error means that it was collected.
        !matches!(rustix::process::waitid(WaitId::Pid(self.pid), options), Ok(None))
    }

    /// Waits, and ends what is left of its process group.
    fn collect(&mut self) {
        if let Some(inner) = self.inner {
            // The child hears from the engine, which may be stuck.
            if wait_for_end(&self.child, ENGINE_LIMIT) == Some(false) {
                let _ = rustix::process::kill_process(self.pid, Signal::KILL);
            }
            // The child alone may have been ended.
            kill_and_wait(Path::new("/proc"), inner, ENGINE_LIMIT);
        }
        // The uncollected leader guarantees that the group is its own.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let _ = rustix::process::waitid(WaitId::Pid(self.pid), options);
        let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
        let stat = ProcessStat::read(Path::new("/proc"), self.pid());
        let is_own = self.inner.is_none();
        self.cpu_ticks = stat.filter(|_| is_own).map(|stat| stat.own_ticks + stat.reaped_ticks);
        self.ended = Some(match self.child.wait() {
            Ok(status) if is_own => in_words(status),
            Ok(status) => contained_in_words(status),
            Err(error) => format!("ended, for an unknown reason: {error}"),
        });
    }

    /// Kills it and all descendants and waits: a new server on the same data must be alone.
    fn kill(&mut self) {
        let proc_root = Path::new("/proc");
        let family = freeze_descendants(proc_root, self.pid());
        self.signal(Signal::KILL);
        self.collect();
        for member in family {
            kill_and_wait(proc_root, member, KILLED_LIMIT);
        }
    }
}

impl Drop for KeptProcess {
    fn drop(&mut self) {
        if self.ended().is_none() {
            self.kill();
        }
    }
}

/// Once more after each pause, until it is done or the limit is over; returns the last result.
pub(crate) fn retry<T>(
    clock: &dyn Clock,
    (limit, pause): (Nanoseconds, Nanoseconds),
    mut attempt: impl FnMut() -> T,
    is_done: impl Fn(&T) -> bool,
) -> T {
    let until = clock.now() + limit;
    loop {
        let result = attempt();
        if is_done(&result) || clock.now() >= until {
            return result;
        }
        clock.sleep_until(clock.now() + pause);
    }
}

/// Does not collect it. False after the limit; `None` if the kernel cannot wait with one.
fn wait_for_end(child: &Child, limit: Nanoseconds) -> Option<bool> {
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).ok()?;
    let mut waited = [PollFd::new(&process, PollFlags::IN)];
    let limit = Timespec::try_from(limit.to_duration()).ok();
    Some(rustix::io::retry_on_intr(|| poll(&mut waited, limit.as_ref())).is_ok_and(|n| n > 0))
}

/// Waits for a group leader to end, then ends the rest of its group, which may hold its output
/// open. Kills it after the limit, and returns false.
pub(super) fn end_within(child: &Child, limit: Nanoseconds) -> bool {
    let pid = Pid::from_child(child);
    let is_over = match wait_for_end(child, limit) {
        Some(is_over) => is_over,
        // Kernels before 5.3 cannot wait with a limit.
        None => {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            rustix::process::waitid(WaitId::Pid(pid), options).is_ok()
        }
    };
    if !is_over {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
    // Not collected yet, so the group is its own.
    let _ = rustix::process::kill_process_group(pid, Signal::KILL);
    is_over
}

/// Stops a process and all descendants, which are returned: none can start others unseen.
pub(super) fn freeze_descendants(proc_root: &Path, pid: i32) -> BTreeSet<ProcessIdentity> {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = rustix::process::kill_process(pid, Signal::STOP);
    }
    let mut frozen = BTreeSet::new();
    let mut n_quiet = 0;
    // A stopped process has no fork under way, so the next search finds its children.
    for _ in 0..FREEZE_ROUNDS_MAX {
        let is_still = |stat: &ProcessStat| stat.is_stopped() || !stat.is_alive();
        let were_still = ProcessStat::read(proc_root, pid).as_ref().is_none_or(is_still);
        let family = descendants(proc_root, pid);
        let fresh = family.iter().map(ProcessStat::identity);
        let fresh: Vec<ProcessIdentity> = fresh.filter(|one| !frozen.contains(one)).collect();
        let is_quiet = fresh.is_empty() && were_still && family.iter().all(is_still);
        n_quiet = if is_quiet { n_quiet + 1 } else { 0 };
        if n_quiet == 2 {
            break;
        }
        for process in fresh {
            signal_identity(proc_root, process, Signal::STOP);
            frozen.insert(process);
        }
    }
    frozen
}

/// If this very process still runs; waits up to `limit`.
pub(super) fn kill_and_wait(proc_root: &Path, process: ProcessIdentity, limit: Nanoseconds) {
    let Some(pid) = Pid::from_raw(process.pid) else { return };
    // Opened before the check, so that the right process is awaited; needs Linux 5.3.
    let descriptor = pidfd_open(pid, PidfdFlags::empty());
    if !process.is_alive(proc_root) {
        return;
    }
    signal_identity(proc_root, process, Signal::KILL);
    if let (Ok(descriptor), Ok(limit)) = (descriptor, Timespec::try_from(limit.to_duration())) {
        let mut waited = [PollFd::new(&descriptor, PollFlags::IN)];
        let _ = rustix::io::retry_on_intr(|| poll(&mut waited, Some(&limit)));
    }
}

/// If this very process still runs.
pub(crate) fn signal_identity(proc_root: &Path, process: ProcessIdentity, signal: Signal) {
    if process.is_alive(proc_root)
        && let Some(pid) = Pid::from_raw(process.pid)
    {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

fn signal_named(name: &str) -> Option<Signal> {
    match name.strip_prefix("SIG").unwrap_or(name) {
        "TERM" => Some(Signal::TERM),
        "INT" => Some(Signal::INT),
        "QUIT" => Some(Signal::QUIT),
        "HUP" => Some(Signal::HUP),
        "KILL" => Some(Signal::KILL),
        _ => None,
    }
}

/// `ended with exit code 1`, `was killed by signal 9`.
pub(super) fn in_words(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}{}", signal_hint(signal)),
        (None, None) => format!("ended: {status}"),
    }
}

/// An engine's client ends with 128 and the number of the signal.
fn contained_in_words(status: ExitStatus) -> String {
    match status.code() {
        Some(code @ 129..=159) => {
            let signal = code - 128;
            format!("was ended by signal {signal}{}", signal_hint(signal))
        }
        _ => in_words(status),
    }
}

fn signal_hint(signal: i32) -> &'static str {
    match signal {
        6 => " (SIGABRT: it aborted; see its log)",
        9 => " (SIGKILL: perhaps the kernel ran out of memory; see `dmesg`)",
        11 => " (SIGSEGV: it crashed; see its log)",
        15 => " (SIGTERM)",
        _ => "",
    }
}
