//! What groups of processes take: the server with all its descendants, the generator.
//!
//! The table of processes is searched for new ones at every read; of those that are no members,
//! nothing but the parent is ever read, and that once.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use dyno_units::Nanoseconds;

use super::source::text_once;
use super::{Probe, ReadingLegend, Readings, legend, numbers, seconds_since};
use crate::process_table::{ProcessStat, list_pids, list_processes, with_descendants};

pub(super) const LEGEND: &[ReadingLegend] = &[
    legend("*.cpu_s_per_s", "CPU s/s", "CPU time of these processes, in programs and the kernel"),
    legend("*.rss_bytes", "bytes", "resident memory; pages that processes share count in each"),
    legend("*.anon_bytes", "bytes", "resident memory that belongs to no file and is not shared"),
    legend("*.shared_bytes", "bytes", "resident shared memory of the process that maps the most"),
    legend("*.processes", "processes", "number of these processes"),
    legend("*.threads", "threads", "number of their threads"),
    legend(
        "*.voluntary_switches_per_s",
        "1/s",
        "times that the first thread of each process gave up its CPU to wait",
    ),
    legend(
        "*.involuntary_switches_per_s",
        "1/s",
        "times that the first thread of each process was taken off its CPU",
    ),
    legend(
        "*.runqueue_wait_s_per_s",
        "s/s",
        "time that threads were ready but waited for a CPU, of all threads; for up to 128 threads",
    ),
    legend("*.disk_read_bytes_per_s", "bytes/s", "bytes that disks read for these processes"),
    legend("*.disk_write_bytes_per_s", "bytes/s", "bytes that these processes gave to disks"),
];

/// Processes that are watched together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessGroup {
    /// The first part of the names of its readings: `server`, `generator`.
    pub name: String,
    /// Its processes.
    pub pids: Vec<i32>,
    /// Whether all descendants of these belong to it, too.
    pub has_descendants: bool,
}

/// CPU time, in seconds, that these processes and their descendants have taken so far; none if
/// none of them runs. The difference of two moments is what was taken between them: children that
/// ended are in it, as long as a parent among these processes waited for them.
pub fn server_cpu_total(pids: &[i32]) -> Option<f64> {
    cpu_total(Path::new("/proc"), pids)
}

fn cpu_total(proc_root: &Path, pids: &[i32]) -> Option<f64> {
    let all = list_processes(proc_root);
    let parents = all.iter().map(|stat| (stat.pid, stat.parent)).collect();
    let family = with_descendants(pids, &parents);
    let ticks = all
        .iter()
        .filter(|stat| family.contains(&stat.pid))
        .map(|stat| stat.own_ticks.saturating_add(stat.reaped_ticks))
        .reduce(u64::saturating_add)?;
    Some(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// What is known of one process at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Member {
    stat: ProcessStat,
    status: Status,
    io: Option<DiskBytes>,
}

/// The part of `/proc/PID/status` that is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Status {
    anon_bytes: Option<u64>,
    shared_bytes: Option<u64>,
    voluntary: Option<u64>,
    involuntary: Option<u64>,
}

/// The part of `/proc/PID/io` that is about disks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct DiskBytes {
    read: u64,
    written: u64,
}

fn parse_status(text: &str) -> Status {
    let mut found = Status::default();
    for line in text.lines() {
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

fn parse_io(text: &str) -> Option<DiskBytes> {
    let count = |key: &str| {
        numbers(text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?).next()
    };
    Some(DiskBytes { read: count("read_bytes")?, written: count("write_bytes")? })
}

/// A group with more threads is too dear to be read thread by thread.
const THREADS_MAX: u64 = 128;

/// Time that a thread was ready but waited for a CPU, in nanoseconds: the second number of
/// `/proc/PID/task/TID/schedstat` (sched-stats.rst of the kernel).
fn parse_wait(text: &str) -> Option<u64> {
    numbers(text).nth(1)
}

/// Growth of the waits of threads between two moments. A thread that is new began at zero; what
/// one waited that has ended since is lost.
fn grown_waits(before: &BTreeMap<i32, u64>, now: &BTreeMap<i32, u64>) -> u64 {
    let grown = |(tid, wait): (&i32, &u64)| wait.saturating_sub(*before.get(tid).unwrap_or(&0));
    now.iter().map(grown).fold(0, u64::saturating_add)
}

/// Reads the processes of all groups.
pub(super) struct ProcessesProbe {
    files: ProcessFiles,
    groups: Vec<GroupState>,
    /// Parent of every process that was there at the read before.
    parents: BTreeMap<i32, i32>,
    before: Option<Nanoseconds>,
}

/// A group and what its members had counted at the read before.
struct GroupState {
    group: ProcessGroup,
    members: BTreeMap<i32, Member>,
    /// Wait of every thread, in nanoseconds; none where that is not told.
    waits_ns: Option<BTreeMap<i32, u64>>,
    debts: Debts,
}

/// Counts of vanished children that will show up again in the parent that collects them.
#[derive(Clone, Copy, Debug, Default)]
struct Debts {
    cpu: Debt,
    read: Debt,
    written: Debt,
}

impl ProcessesProbe {
    pub(super) fn new(proc_root: &Path, groups: Vec<ProcessGroup>) -> ProcessesProbe {
        let state = |group| GroupState {
            group,
            members: BTreeMap::new(),
            waits_ns: None,
            debts: Debts::default(),
        };
        ProcessesProbe {
            files: ProcessFiles::new(proc_root),
            groups: groups.into_iter().map(state).collect(),
            parents: BTreeMap::new(),
            before: None,
        }
    }

    /// Brings the table of parents up to date.
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
    fn legend(&self) -> &'static [ReadingLegend] {
        LEGEND
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
            state.read_waits(&members, &mut self.files, seconds, readings);
            state.members = members;
        }
        self.before = Some(now);
    }
}

impl GroupState {
    fn read_members(
        &self,
        files: &mut ProcessFiles,
        parents: &BTreeMap<i32, i32>,
    ) -> BTreeMap<i32, Member> {
        let mut pids: BTreeSet<i32> = self.group.pids.iter().copied().collect();
        if self.group.has_descendants {
            // Who once belonged stays, also when its parent has ended and it has another.
            let known: Vec<i32> = pids.iter().chain(self.members.keys()).copied().collect();
            pids.extend(with_descendants(&known, parents));
        }
        pids.into_iter().filter_map(|pid| Some((pid, files.member(pid)?))).collect()
    }

    fn read_waits(
        &mut self,
        members: &BTreeMap<i32, Member>,
        files: &mut ProcessFiles,
        seconds: Option<f64>,
        readings: &mut Readings,
    ) {
        let n_threads = members.values().map(|m| m.stat.n_threads).fold(0_u64, u64::saturating_add);
        let mut now = None;
        if n_threads <= THREADS_MAX {
            now = members.keys().try_fold(BTreeMap::new(), |mut all, pid| {
                all.extend(files.waits_ns(*pid)?);
                Some(all)
            });
        }
        if let (Some(before), Some(now), Some(seconds)) = (&self.waits_ns, &now, seconds)
            && !before.is_empty()
            && !now.is_empty()
        {
            let name = format!("{}.runqueue_wait_s_per_s", self.group.name);
            readings.insert(name, grown_waits(before, now) as f64 / 1e9 / seconds);
        }
        self.waits_ns = now;
    }

    fn add_levels(&self, members: &BTreeMap<i32, Member>, readings: &mut Readings) {
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

    fn add_rates(
        &mut self,
        members: &BTreeMap<i32, Member>,
        seconds: f64,
        readings: &mut Readings,
    ) {
        if self.members.is_empty() || members.is_empty() {
            return;
        }
        let change = Change { before: &self.members, now: members, roots: &self.group.pids };
        let name = &self.group.name;
        let mut add = |what: &str, count: Option<u64>| {
            if let Some(count) = count {
                readings.insert(format!("{name}.{what}_per_s"), count as f64 / seconds);
            }
        };
        let debts = &mut self.debts;
        add("disk_read_bytes", change.moved(|m| Some(m.io?.read), &mut debts.read));
        add("disk_write_bytes", change.moved(|m| Some(m.io?.written), &mut debts.written));
        add("voluntary_switches", change.grown(|m| m.status.voluntary));
        add("involuntary_switches", change.grown(|m| m.status.involuntary));
        let ticks = change.cpu_ticks(self.group.has_descendants, &mut debts.cpu);
        let ticks_per_s = rustix::param::clock_ticks_per_second() as f64;
        readings.insert(format!("{name}.cpu_s_per_s"), ticks as f64 / ticks_per_s / seconds);
    }
}

/// Counts owed, of this read and the one before.
#[derive(Clone, Copy, Debug, Default)]
struct Debt(u64);

impl Debt {
    /// Takes from `grown` what vanished processes had counted before: the kernel adds it, whole,
    /// to the parent that collects them. That may happen between reading the one and the other,
    /// so a debt is kept for one more read.
    fn settle(&mut self, vanished: u64, grown: u64) -> u64 {
        let owed = self.0.saturating_add(vanished);
        let paid = owed.min(grown);
        self.0 = (owed - paid).min(vanished);
        grown - paid
    }
}

/// Two moments of one group.
struct Change<'a> {
    before: &'a BTreeMap<i32, Member>,
    now: &'a BTreeMap<i32, Member>,
    roots: &'a [i32],
}

impl Change<'_> {
    /// The process at the moment before, if it is the same one.
    fn earlier(&self, member: &Member) -> Option<&Member> {
        let same = |earlier: &&Member| earlier.stat.start_ticks == member.stat.start_ticks;
        self.before.get(&member.stat.pid).filter(same)
    }

    /// Growth of a count of all members; a descendant that is new began at zero. None if no member
    /// tells it.
    fn grown(&self, count: impl Fn(&Member) -> Option<u64>) -> Option<u64> {
        let growths = self.now.values().filter_map(|member| {
            let now = count(member)?;
            match self.earlier(member) {
                Some(earlier) => Some(now.saturating_sub(count(earlier)?)),
                // A process that the group was told of may be old: its growth is unknown.
                None if self.roots.contains(&member.stat.pid) => Some(0),
                None => Some(now),
            }
        });
        growths.reduce(u64::saturating_add)
    }

    /// What vanished members had counted.
    fn vanished(&self, count: impl Fn(&Member) -> Option<u64>) -> u64 {
        let is_gone = |earlier: &&Member| {
            let now = self.now.get(&earlier.stat.pid);
            now.is_none_or(|now| now.stat.start_ticks != earlier.stat.start_ticks)
        };
        self.before.values().filter(is_gone).filter_map(count).fold(0, u64::saturating_add)
    }

    /// Growth of a count into which the kernel adds those of collected children.
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

/// Reads the files of single processes, with one buffer and one path for all.
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

    /// Waits of all threads of a process; none where the kernel does not tell.
    fn waits_ns(&mut self, pid: i32) -> Option<BTreeMap<i32, u64>> {
        let tids = list_pids(&self.proc_root.join(format!("{pid}/task")));
        let waits: BTreeMap<i32, u64> = tids
            .into_iter()
            .filter_map(|tid| {
                let text = self.text(pid, &format!("task/{tid}/schedstat"))?;
                Some((tid, parse_wait(&text)?))
            })
            .collect();
        (!waits.is_empty()).then_some(waits)
    }

    fn member(&mut self, pid: i32) -> Option<Member> {
        let stat = self.stat(pid)?;
        let status = self.text(pid, "status").map(|text| parse_status(&text)).unwrap_or_default();
        let io = self.text(pid, "io").and_then(|text| parse_io(&text));
        Some(Member { stat, status, io })
    }
}

#[cfg(test)]
mod tests;
