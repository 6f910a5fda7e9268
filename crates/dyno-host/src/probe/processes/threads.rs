//! Threads of a group of processes: run and wait times, context switches, and kinds by their names.
//! Groups with many threads are read less often, to bound the cost; rates are over the longer time.

use std::collections::BTreeMap;

use dyno_units::Nanoseconds;
use rustix::time::{ClockId, clock_gettime};

use super::listing::{PROBE, ThreadListing};
use super::{Member, Members, ProcessFiles, parse_status};
use crate::kernel_text::numbers;
use crate::process_table::list_pids;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadGroup {
    /// `checkpointer`, `purge`.
    pub name: &'static str,
    /// Works for waiting clients.
    pub is_foreground: bool,
}

/// By the process's title and the thread's name (which the kernel cuts to 15 bytes).
pub type ThreadGroups = fn(process: &str, thread: &str) -> Option<ThreadGroup>;

const THREADS_PER_S: usize = 128;

/// Reads of a new thread's name: it may begin with its parent's.
const LOOKS: u32 = 3;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    cpu_ns: u64,
    wait_ns: u64,
    voluntary: u64,
    involuntary: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    counts: Counts,
    named: Option<ThreadGroup>,
    group: Option<ThreadGroup>,
    n_looks: u32,
}

/// By process and thread id.
type KnownThreads = BTreeMap<(i32, i32), Known>;

#[derive(Clone, Debug, Default)]
pub(in crate::probe) struct ThreadKinds {
    pub(in crate::probe) names: Option<ThreadGroups>,
    pub(in crate::probe) listing: ThreadListing,
}

#[derive(Default)]
pub(super) struct Threads {
    /// `None` if threads are not distinguished.
    kinds: Option<ThreadKinds>,
    known: KnownThreads,
    /// When the processes of the last read began, by id, in clock ticks.
    began: BTreeMap<i32, u64>,
    /// When the last read began, in clock ticks.
    before_ticks: u64,
    before: Option<Nanoseconds>,
}

impl Threads {
    pub(super) fn new(kinds: Option<ThreadKinds>) -> Threads {
        Threads { kinds, ..Threads::default() }
    }

    /// If it is time to.
    pub(super) fn read(
        &mut self,
        members: &Members,
        files: &mut ProcessFiles,
        now: Nanoseconds,
        add: &mut dyn FnMut(String, f64),
    ) {
        let n_threads: u64 = members.values().map(|member| member.stat.n_threads).sum();
        let pause = (n_threads / THREADS_PER_S as u64).min(60);
        let passed = self.before.map(|before| now.saturating_sub(before));
        // With half a second of tolerance.
        if passed.is_some_and(|passed| {
            passed + Nanoseconds::from_millis(500) < Nanoseconds::from_secs(pause)
        }) {
            return;
        }
        let now_ticks = ticks_now();
        let found = self.look(members, files);
        if let Some(seconds) = passed.map(Nanoseconds::as_secs_f64).filter(|s| *s > 0.0)
            && !self.known.is_empty()
            && !found.is_empty()
        {
            // An older process that joins the group brings what it has used before.
            let is_measured = |pid: &i32| {
                let start = members.get(pid).map(|member| member.stat.start_ticks);
                start.is_some_and(|start| {
                    start >= self.before_ticks || self.began.get(pid) == Some(&start)
                })
            };
            let measured = found.iter().filter(|((pid, _), _)| is_measured(pid));
            let measured = measured.map(|(key, known)| (*key, *known)).collect();
            self.add_rates(&measured, seconds, add);
        }
        self.began = members.iter().map(|(pid, member)| (*pid, member.stat.start_ticks)).collect();
        self.before_ticks = now_ticks;
        self.known = found;
        self.before = Some(now);
    }

    fn look(&self, members: &Members, files: &mut ProcessFiles) -> KnownThreads {
        let mut found = BTreeMap::new();
        for (&pid, member) in members {
            // A process of one thread is that thread, with its status read already.
            let only = (member.stat.n_threads == 1).then_some(member);
            let tids = match only {
                Some(_) => vec![pid],
                None => list_pids(&files.proc_root.join(format!("{pid}/task"))),
            };
            for tid in tids {
                if let Some(counts) = files.thread_counts(pid, tid, only) {
                    let before = self.known.get(&(pid, tid)).copied();
                    let known = Known { counts, ..before.unwrap_or_default() };
                    let named = self.named(pid, tid, known, files);
                    found.insert((pid, tid), self.completed(tid, named, before.is_none()));
                }
            }
        }
        found
    }

    fn named(&self, pid: i32, tid: i32, known: Known, files: &mut ProcessFiles) -> Known {
        let names = self.kinds.as_ref().and_then(|kinds| kinds.names);
        let Some(groups) = names.filter(|_| known.n_looks < LOOKS) else { return known };
        let title = files.text(pid, "cmdline").map(|text| text.replace('\0', " "));
        let name = files.text(pid, &format!("task/{tid}/comm")).map(|text| text.into_owned());
        let (title, name) = (title.unwrap_or_default(), name.unwrap_or_default());
        Known { named: groups(title.trim(), name.trim()), n_looks: known.n_looks + 1, ..known }
    }

    /// Adds what the server reports.
    fn completed(&self, tid: i32, known: Known, is_new: bool) -> Known {
        let Some(kinds) = &self.kinds else { return known };
        // A probe's thread may have become another's: only name and list stay.
        let before = known.named.or(known.group.filter(|group| *group != PROBE));
        Known { group: kinds.listing.group(tid, before, is_new), ..known }
    }

    fn add_rates(&self, found: &KnownThreads, seconds: f64, add: &mut dyn FnMut(String, f64)) {
        // A new thread began at zero; the work of an ended one is lost.
        let grown = |key: &(i32, i32), now: &Known, count: fn(&Counts) -> u64| {
            let before = self.known.get(key).map_or(0, |known| count(&known.counts));
            count(&now.counts).saturating_sub(before) as f64
        };
        let sum = |count: fn(&Counts) -> u64| -> f64 {
            found.iter().map(|(key, now)| grown(key, now, count)).sum()
        };
        add("runqueue_wait_s_per_s".into(), sum(|c| c.wait_ns) / 1e9 / seconds);
        add("voluntary_switches_per_s".into(), sum(|c| c.voluntary) / seconds);
        add("involuntary_switches_per_s".into(), sum(|c| c.involuntary) / seconds);
        let of_one = |(key, now): (&(i32, i32), &Known)| grown(key, now, |counts| counts.cpu_ns);
        let working = found.iter().filter(|(_, known)| known.group != Some(PROBE));
        if let Some(most) = working.map(of_one).reduce(f64::max) {
            // The times are read a little later than the clock.
            add("busiest_thread_pct".into(), (most / 1e9 / seconds * 100.0).min(100.0));
        }
        if self.kinds.is_none() || found.values().all(|known| known.group.is_none()) {
            return;
        }
        let mut cpu_s =
            BTreeMap::from([("foreground".to_owned(), 0.0), ("background".to_owned(), 0.0)]);
        for (key, now) in found {
            let used = grown(key, now, |counts| counts.cpu_ns) / 1e9 / seconds;
            // Probes are neither clients nor the engine's own work.
            let side = match now.group {
                None => Some("unnamed"),
                Some(PROBE) => None,
                Some(group) if group.is_foreground => Some("foreground"),
                Some(_) => Some("background"),
            };
            if let Some(side) = side {
                *cpu_s.entry(side.to_owned()).or_default() += used;
            }
            if let Some(group) = now.group.filter(|group| !group.name.is_empty()) {
                *cpu_s.entry(format!("thread.{}", group.name)).or_default() += used;
            }
        }
        // With most threads unknown, as if only one engine names its own, the sides are unknown.
        let n_unnamed = found.values().filter(|known| known.group.is_none()).count();
        if n_unnamed * 2 > found.len() {
            cpu_s.retain(|side, _| side != "foreground" && side != "background");
        }
        for (name, value) in cpu_s {
            add(format!("{name}.cpu_s_per_s"), value);
        }
    }
}

/// Since the machine was started, as the starts of processes are counted.
fn ticks_now() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let (seconds, rest) = (now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs());
    let per_s = rustix::param::clock_ticks_per_second();
    seconds * per_s + rest * per_s / 1_000_000_000
}

impl ProcessFiles {
    /// `only` is its process if it has no other thread.
    fn thread_counts(&mut self, pid: i32, tid: i32, only: Option<&Member>) -> Option<Counts> {
        let (cpu_ns, wait_ns) = match only {
            Some(_) => parse_schedstat(&self.text(pid, "schedstat")?)?,
            None => parse_schedstat(&self.text(pid, &format!("task/{tid}/schedstat"))?)?,
        };
        let status = match only {
            Some(member) => member.status,
            None => parse_status(&self.text(pid, &format!("task/{tid}/status"))?),
        };
        let (voluntary, involuntary) =
            (status.voluntary.unwrap_or(0), status.involuntary.unwrap_or(0));
        Some(Counts { cpu_ns, wait_ns, voluntary, involuntary })
    }
}

/// Nanoseconds running, and ready without a CPU: first numbers of `schedstat` (sched-stats.rst).
pub(super) fn parse_schedstat(text: &str) -> Option<(u64, u64)> {
    let mut found = numbers(text);
    Some((found.next()?, found.next()?))
}
