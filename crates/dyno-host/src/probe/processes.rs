//! Resource use of groups of processes: the server with its descendants, the generator.
//! Each read searches for new processes; of those outside the groups only the parent is read, once.

mod listing;
mod threads;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use dyno_units::Nanoseconds;
use dyno_units::reading::prelude::*;

use super::source::text_once;
use super::{Probe, Readings, insert, seconds_since};
use crate::kernel_text::{count, numbers};
use crate::process_table::{ProcessStat, list_pids, with_descendants};
pub use listing::{ListedThread, ThreadListing};
pub(super) use threads::ThreadKinds;
use threads::Threads;
pub use threads::{ThreadGroup, ThreadGroups};

#[rustfmt::skip]
pub(super) const READINGS: &[Reading] = &[
    reading("*.cpu_s_per_s", Cpus, "CPU", "user and kernel CPU time of these processes"),
    reading("*.cpu_user_s_per_s", Cpus, "user CPU", "user CPU time of these processes; without children that ended within the second"),
    reading("*.cpu_system_s_per_s", Cpus, "system CPU", "system CPU time of these processes; without children that ended within the second"),
    reading("*.rss_bytes", Bytes, "resident memory", "resident memory; shared pages count for each process"),
    reading("*.anon_bytes", Bytes, "private memory", "resident memory that belongs to no file and is not shared"),
    reading("*.shared_bytes", Bytes, "shared memory", "resident shared memory of the process that maps the most"),
    reading("*.processes", Unit::other("processes"), "processes", "number of these processes"),
    reading("*.stopped", Unit::other("processes"), "stopped processes", "number of these processes that a signal or a debugger has stopped: they do not run at all").worse(),
    reading("*.threads", Unit::other("threads"), "threads", "number of their threads"),
    reading("*.voluntary_switches_per_s", PerSecond, "voluntary context switches", "times that a thread gave up its CPU to wait; without threads that ended since"),
    reading("*.involuntary_switches_per_s", PerSecond, "involuntary context switches", "times that a thread was taken off its CPU; without threads that ended since"),
    reading("*.runqueue_wait_s_per_s", Unit::other("threads"), "waiting for a CPU", "time that threads were runnable but waiting for a CPU, summed over all threads").worse(),
    reading("*.busiest_thread_pct", Percent, "busiest thread", "share of time that the thread of these processes that ran most in this second was on a CPU"),
    reading("*.minor_faults_per_s", PerSecond, "minor page faults", "page faults served from memory"),
    reading("*.major_faults_per_s", PerSecond, "major page faults", "page faults that had to read from a disk").worse(),
    reading("*.disk_read_bytes_per_s", BytesPerSecond, "read from disks", "bytes read from disks for these processes"),
    reading("*.disk_write_bytes_per_s", BytesPerSecond, "written to disks", "bytes that these processes wrote to disks; writes to the page cache count when they are made"),
    reading("*.read_calls_per_s", PerSecond, "read calls", "read system calls (files, page cache, pipes), without recv on sockets"),
    reading("*.write_calls_per_s", PerSecond, "write calls", "write system calls (files, page cache, pipes), without send on sockets"),
    reading("*.read_call_bytes_per_s", BytesPerSecond, "read by system calls", "bytes read by read system calls"),
    reading("*.write_call_bytes_per_s", BytesPerSecond, "written by system calls", "bytes written by write system calls"),
    reading("*.foreground.cpu_s_per_s", Cpus, "CPU of foreground threads", "CPU time of threads that work for clients, as far as their names or the server identify them"),
    reading("*.background.cpu_s_per_s", Cpus, "CPU of background threads", "CPU time of threads that work for no client, as far as their names or the server identify them"),
    reading("*.unnamed.cpu_s_per_s", Cpus, "CPU of unknown threads", "CPU time of threads that neither their names nor the server identify"),
    reading("*.thread.probe.cpu_s_per_s", Cpus, "CPU used by Dyno's probes", "CPU time of threads that answer Dyno's own probes: what watching costs the server; neither foreground nor background"),
    reading("*.thread.*.cpu_s_per_s", Cpus, "CPU of these threads", "CPU time of the threads of this kind"),
    reading("server.cpu_s_per_s", Cpus, "server", "user and kernel CPU time of the server's processes").chart(Topic::CpuGroup, 1).moves(StallCause::NotRunning, Movement::DownTo(70)).row(210).instance_of("*.cpu_s_per_s"),
    reading("generator.cpu_s_per_s", Cpus, "load generator", "user and kernel CPU time of Dyno's process").chart(Topic::CpuGroup, 2).row(1040).instance_of("*.cpu_s_per_s"),
    reading("server.foreground.cpu_s_per_s", Cpus, "CPU of foreground threads", "CPU time of the server's threads that work for clients, as far as their names or the server identify them").moves(StallCause::NotRunning, Movement::DownTo(70)).row(220).instance_of("*.foreground.cpu_s_per_s"),
    reading("server.background.cpu_s_per_s", Cpus, "CPU of background threads", "CPU time of the server's threads that work for no client, as far as their names or the server identify them").row(230).instance_of("*.background.cpu_s_per_s"),
    reading("server.thread.probe.cpu_s_per_s", Cpus, "CPU used by Dyno's probes", "CPU time of the server's threads that answer Dyno's own probes: what watching costs it; neither foreground nor background").row(240).instance_of("*.thread.probe.cpu_s_per_s"),
    reading("server.stopped", Unit::other("processes"), "stopped processes of the server", "number of the server's processes that a signal or a debugger has stopped: they do not run at all").worse().up(StallCause::NotRunning).instance_of("*.stopped"),
    reading("server.rss_bytes", Bytes, "Resident memory of the server", "resident memory of the server; shared pages count for each of its processes").chart(Topic::Memory, 1).row(810).words("RSS").instance_of("*.rss_bytes"),
    reading("server.voluntary_switches_per_s", PerSecond, "voluntary context switches", "times that a thread of the server gave up its CPU to wait; without threads that ended since").row(820).instance_of("*.voluntary_switches_per_s"),
    reading("server.involuntary_switches_per_s", PerSecond, "involuntary context switches", "times that a thread of the server was taken off its CPU; without threads that ended since").row(830).instance_of("*.involuntary_switches_per_s"),
    reading("server.runqueue_wait_s_per_s", Unit::other("threads"), "threads of the server waiting for a CPU", "time that threads of the server were runnable but waiting for a CPU, summed over all threads").worse().up(StallCause::WaitingForCpu).row(840).instance_of("*.runqueue_wait_s_per_s"),
    reading("server.busiest_thread_pct", Percent, "busiest thread of the server", "share of time that the server's thread that ran most in this second was on a CPU").instance_of("*.busiest_thread_pct"),
    reading("server.disk_read_bytes_per_s", BytesPerSecond, "Bytes read for the server", "bytes read from disks for the server").chart_if_moving(Topic::Disk, 3).up(StallCause::Reading).row(850).instance_of("*.disk_read_bytes_per_s"),
    reading("server.disk_write_bytes_per_s", BytesPerSecond, "Bytes written by the server", "bytes that the server wrote to disks").chart_if_moving(Topic::Disk, 4).up(StallCause::Writing).row(860).instance_of("*.disk_write_bytes_per_s"),
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessGroup {
    /// First part of the readings' names: `server`, `generator`.
    pub name: String,
    /// Descendants are included.
    pub pids: Vec<i32>,
    pub has_descendants: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Member {
    stat: ProcessStat,
    status: Status,
    io: IoCounts,
}

/// By process id.
type Members = BTreeMap<i32, Member>;

/// The used part of `/proc/PID/status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Status {
    anon_bytes: Option<u64>,
    shared_bytes: Option<u64>,
    voluntary: Option<u64>,
    involuntary: Option<u64>,
}

/// Of `/proc/PID/io` (proc_pid_io(5)), with the kernel's names.
const IO: [(&str, &str); 6] = [
    ("read_bytes", "disk_read_bytes"),
    ("write_bytes", "disk_write_bytes"),
    ("syscr", "read_calls"),
    ("syscw", "write_calls"),
    ("rchar", "read_call_bytes"),
    ("wchar", "write_call_bytes"),
];

/// In the order of [`IO`]; `None` if unreadable.
type IoCounts = [Option<u64>; IO.len()];

fn parse_status(text: &str) -> Status {
    let mut found = Status::default();
    for line in text.lines() {
        // Called for each process and thread every second: skips most lines at once.
        if !line.starts_with(['R', 'v', 'n']) {
            continue;
        }
        let Some((key, rest)) = line.split_once(':') else { continue };
        let kib = || numbers(rest).next()?.checked_mul(1024);
        match key {
            "RssAnon" => found.anon_bytes = kib(),
            "RssShmem" => found.shared_bytes = kib(),
            "voluntary_ctxt_switches" => found.voluntary = numbers(rest).next(),
            "nonvoluntary_ctxt_switches" => found.involuntary = numbers(rest).next(),
            _ => {}
        }
    }
    found
}

fn parse_io(text: &str) -> IoCounts {
    IO.map(|(key, _)| count(text, key, ':'))
}

pub(super) struct ProcessesProbe {
    files: ProcessFiles,
    groups: Vec<GroupState>,
    /// Of all processes at the last read.
    parents: BTreeMap<i32, i32>,
    before: Option<Nanoseconds>,
}

/// With its members' counts at the last read.
struct GroupState {
    group: ProcessGroup,
    members: Members,
    threads: Threads,
    debts: Debts,
}

/// Counts of vanished children that will reappear in the parent that collects them.
#[derive(Clone, Copy, Debug, Default)]
struct Debts {
    cpu: Debt,
    io: [Debt; IO.len()],
}

impl ProcessesProbe {
    pub(super) fn new(
        proc_root: &Path,
        groups: Vec<ProcessGroup>,
        kinds: &ThreadKinds,
    ) -> ProcessesProbe {
        let state = |group: ProcessGroup| GroupState {
            threads: Threads::new((group.name == "server").then(|| kinds.clone())),
            group,
            members: BTreeMap::new(),
            debts: Debts::default(),
        };
        ProcessesProbe {
            files: ProcessFiles::new(proc_root),
            groups: groups.into_iter().map(state).collect(),
            parents: BTreeMap::new(),
            before: None,
        }
    }

    fn find_processes(&mut self) {
        let pids: BTreeSet<i32> = list_pids(&self.files.proc_root).into_iter().collect();
        self.parents.retain(|pid, _| pids.contains(pid));
        for pid in pids {
            if !self.parents.contains_key(&pid)
                && let Some(stat) = self.files.stat(pid)
            {
                self.parents.insert(pid, stat.parent);
            }
        }
    }
}

impl Probe for ProcessesProbe {
    fn registered(&self) -> Cow<'static, [Reading]> {
        READINGS.into()
    }

    fn read(&mut self, now: Nanoseconds, readings: &mut Readings) {
        if self.groups.iter().any(|state| state.group.has_descendants) {
            self.find_processes();
        }
        let seconds = seconds_since(self.before, now);
        for state in &mut self.groups {
            let members = state.read_members(&mut self.files, &self.parents);
            state.add_levels(&members, readings);
            if let Some(seconds) = seconds {
                state.add_rates(&members, seconds, readings);
            }
            let GroupState { group, threads, .. } = state;
            let mut add = |what: String, value: f64| {
                readings.insert(format!("{}.{what}", group.name), value);
            };
            threads.read(&members, &mut self.files, now, &mut add);
            state.members = members;
        }
        self.before = Some(now);
    }
}

impl GroupState {
    fn read_members(&self, files: &mut ProcessFiles, parents: &BTreeMap<i32, i32>) -> Members {
        let mut pids: BTreeSet<i32> = self.group.pids.iter().copied().collect();
        if self.group.has_descendants {
            // A member stays one if its parent ends.
            let known: Vec<i32> = pids.iter().chain(self.members.keys()).copied().collect();
            pids.extend(with_descendants(&known, parents));
        }
        pids.into_iter().filter_map(|pid| Some((pid, files.member(pid)?))).collect()
    }

    fn add_levels(&self, members: &Members, readings: &mut Readings) {
        if members.is_empty() {
            return;
        }
        let sum = |count: fn(&Member) -> u64| {
            members.values().map(count).fold(0_u64, u64::saturating_add) as f64
        };
        let mut add = |what: &str, value: f64| {
            readings.insert(format!("{}.{what}", self.group.name), value);
        };
        add("processes", members.len() as f64);
        add("stopped", sum(|member| u64::from(member.stat.is_stopped())));
        add("threads", sum(|member| member.stat.n_threads));
        add("rss_bytes", sum(|m| m.stat.rss_pages) * rustix::param::page_size() as f64);
        if members.values().all(|member| member.status.anon_bytes.is_some()) {
            add("anon_bytes", sum(|member| member.status.anon_bytes.unwrap_or(0)));
        }
        let shared = members.values().filter_map(|member| member.status.shared_bytes).max();
        if let Some(shared) = shared {
            add("shared_bytes", shared as f64);
        }
    }

    fn add_rates(&mut self, members: &Members, seconds: f64, readings: &mut Readings) {
        if self.members.is_empty() || members.is_empty() {
            return;
        }
        let change = Change { before: &self.members, now: members, roots: &self.group.pids };
        let name = &self.group.name;
        let mut add = |what: &str, count: Option<u64>| {
            let rate = count.map(|count| count as f64 / seconds);
            insert(readings, format!("{name}.{what}_per_s"), rate);
        };
        let debts = &mut self.debts;
        for (idx, (_, what)) in IO.into_iter().enumerate() {
            add(what, change.moved(|member| member.io[idx], &mut debts.io[idx]));
        }
        add("minor_faults", change.grown(|member| Some(member.stat.faults.0)));
        add("major_faults", change.grown(|member| Some(member.stat.faults.1)));
        let ticks = change.cpu_ticks(self.group.has_descendants, &mut debts.cpu);
        let ticks_per_s = rustix::param::clock_ticks_per_second() as f64;
        let mut add = |what: &str, ticks: u64| {
            readings.insert(format!("{name}.{what}"), ticks as f64 / ticks_per_s / seconds);
        };
        add("cpu_s_per_s", ticks);
        let own = change.grown(|member| Some(member.stat.own_ticks)).unwrap_or(0);
        let system = change.grown(|member| Some(member.stat.system_ticks)).unwrap_or(0);
        add("cpu_user_s_per_s", own.saturating_sub(system));
        add("cpu_system_s_per_s", system);
    }
}

/// Counts still to be subtracted, of this read and the last.
#[derive(Clone, Copy, Debug, Default)]
struct Debt(u64);

impl Debt {
    /// Subtracts what vanished processes had counted: the kernel adds it to the parent that
    /// collects them. This may happen between the two reads, so a debt is kept for one more read.
    fn settle(&mut self, vanished: u64, grown: u64) -> u64 {
        let owed = self.0.saturating_add(vanished);
        let repaid = owed.min(grown);
        self.0 = (owed - repaid).min(vanished);
        grown - repaid
    }
}

struct Change<'a> {
    before: &'a Members,
    now: &'a Members,
    roots: &'a [i32],
}

impl Change<'_> {
    /// `None` if it was another process.
    fn earlier(&self, member: &Member) -> Option<&Member> {
        let same = |earlier: &&Member| earlier.stat.start_ticks == member.stat.start_ticks;
        self.before.get(&member.stat.pid).filter(same)
    }

    /// Of all members; new descendants began at zero. `None` if no member reports it.
    fn grown(&self, count: impl Fn(&Member) -> Option<u64>) -> Option<u64> {
        let growths = self.now.values().filter_map(|member| {
            let now = count(member)?;
            match self.earlier(member) {
                Some(earlier) => Some(now.saturating_sub(count(earlier)?)),
                // A process added to the group may be old: its growth is unknown.
                None if self.roots.contains(&member.stat.pid) => Some(0),
                None => Some(now),
            }
        });
        growths.reduce(u64::saturating_add)
    }

    /// The last counts of vanished members.
    fn vanished(&self, count: impl Fn(&Member) -> Option<u64>) -> u64 {
        let is_gone = |earlier: &&Member| {
            let now = self.now.get(&earlier.stat.pid);
            now.is_none_or(|now| now.stat.start_ticks != earlier.stat.start_ticks)
        };
        self.before.values().filter(is_gone).filter_map(count).fold(0, u64::saturating_add)
    }

    /// For counts that the kernel adds to the collecting parent.
    fn moved(&self, count: impl Fn(&Member) -> Option<u64>, debt: &mut Debt) -> Option<u64> {
        let vanished = self.vanished(&count);
        self.grown(count).map(|grown| debt.settle(vanished, grown))
    }

    fn cpu_ticks(&self, has_descendants: bool, debt: &mut Debt) -> u64 {
        let own = self.grown(|member| Some(member.stat.own_ticks)).unwrap_or(0);
        if !has_descendants {
            return own;
        }
        let reaped = self.grown(|member| Some(member.stat.reaped_ticks)).unwrap_or(0);
        let both = |m: &Member| Some(m.stat.own_ticks.saturating_add(m.stat.reaped_ticks));
        own.saturating_add(debt.settle(self.vanished(both), reaped))
    }
}

/// With one buffer and one path for all.
struct ProcessFiles {
    proc_root: PathBuf,
    path: String,
    buffer: Vec<u8>,
}

impl ProcessFiles {
    fn new(proc_root: &Path) -> ProcessFiles {
        ProcessFiles { proc_root: proc_root.to_owned(), path: String::new(), buffer: Vec::new() }
    }

    fn text(&mut self, pid: i32, file: &str) -> Option<Cow<'_, str>> {
        self.path.clear();
        write!(self.path, "{}/{pid}/{file}", self.proc_root.display()).ok()?;
        text_once(Path::new(&self.path), &mut self.buffer)
    }

    fn stat(&mut self, pid: i32) -> Option<ProcessStat> {
        ProcessStat::parse(&self.text(pid, "stat")?)
    }

    fn member(&mut self, pid: i32) -> Option<Member> {
        let stat = self.stat(pid)?;
        let status = self.text(pid, "status").map(|text| parse_status(&text)).unwrap_or_default();
        let io = self.text(pid, "io").map(|text| parse_io(&text)).unwrap_or_default();
        Some(Member { stat, status, io })
    }
}

#[cfg(test)]
mod tests;
