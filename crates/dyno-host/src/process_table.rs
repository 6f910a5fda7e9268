//! The kernel's table of processes, and what Dyno's own one uses. An id with the start time names a
//! single process of one boot.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use dyno_units::Nanoseconds;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::kernel_text::count;

/// Unique within a boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ProcessIdentity {
    pub(crate) pid: i32,
    /// Clock ticks since boot.
    pub(crate) start_ticks: u64,
}

/// The needed part of `/proc/PID/stat` (proc_pid_stat(5)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    pub(crate) pid: i32,
    /// Cut by the kernel to 15 bytes.
    pub(crate) name: String,
    /// `R`, `S`, `D`, `T`, `Z` …
    pub(crate) state: char,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    /// CPU time of the process itself.
    pub(crate) own_ticks: u64,
    /// Of these, in the kernel.
    pub(crate) system_ticks: u64,
    /// Of the process itself: from memory, and from disk.
    pub(crate) faults: (u64, u64),
    /// CPU time of ended children that were waited for.
    pub(crate) reaped_ticks: u64,
    pub(crate) n_threads: u64,
    pub(crate) start_ticks: u64,
    pub(crate) rss_pages: u64,
}

impl ProcessStat {
    pub(crate) fn parse(line: &str) -> Option<ProcessStat> {
        // The name may contain parentheses and blanks: it ends at the last parenthesis.
        let (open, close) = (line.find('(')?, line.rfind(')')?);
        let name = line.get(open + 1..close)?;
        let mut fields = line.get(close + 1..)?.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let (parent, group) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        // Field 10 of the manual page is the fifth after the group, field 5.
        let mut ticks =
            || fields.next()?.parse::<i64>().ok().map(|n| u64::try_from(n).unwrap_or(0));
        let mut skip = |count: usize| (0..count).try_for_each(|_| ticks().map(|_| ()));
        skip(4)?;
        let minor_faults = ticks()?;
        ticks()?;
        let faults = (minor_faults, ticks()?);
        ticks()?;
        let (user_ticks, system_ticks) = (ticks()?, ticks()?);
        let own_ticks = user_ticks.saturating_add(system_ticks);
        let reaped_ticks = ticks()?.saturating_add(ticks()?);
        let mut skip = |count: usize| (0..count).try_for_each(|_| ticks().map(|_| ()));
        skip(2)?;
        let n_threads = ticks()?;
        ticks()?;
        let start_ticks = ticks()?;
        ticks()?;
        let rss_pages = ticks()?;
        Some(ProcessStat {
            pid: line.get(..open)?.trim().parse().ok()?,
            name: name.to_owned(),
            state,
            parent,
            group,
            own_ticks,
            system_ticks,
            faults,
            reaped_ticks,
            n_threads,
            start_ticks,
            rss_pages,
        })
    }

    pub(crate) fn read(proc_root: &Path, pid: i32) -> Option<ProcessStat> {
        let bytes = fs::read(proc_root.join(pid.to_string()).join("stat")).ok()?;
        ProcessStat::parse(&String::from_utf8_lossy(&bytes))
    }

    /// A zombie has ended.
    pub(crate) fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X' | 'x')
    }

    /// By a signal (`T`) or a debugger (`t`).
    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }

    pub(crate) fn identity(&self) -> ProcessIdentity {
        ProcessIdentity { pid: self.pid, start_ticks: self.start_ticks }
    }
}

/// Whether it is only one of these users: as real, effective, saved and filesystem user. A program with a set-user-id
/// bit also has the user who started it, and the owner of `/proc/PID` alone says neither.
pub(crate) fn is_only_of(proc_root: &Path, pid: i32, users: &[u32]) -> bool {
    let status = fs::read(proc_root.join(format!("{pid}/status"))).unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let Some(line) = status.lines().find_map(|line| line.strip_prefix("Uid:")) else {
        return false;
    };
    let mut all = line.split_ascii_whitespace().map(str::parse::<u32>).peekable();
    all.peek().is_some() && all.all(|user| user.is_ok_and(|user| users.contains(&user)))
}

impl ProcessIdentity {
    pub(crate) fn is_alive(self, proc_root: &Path) -> bool {
        ProcessStat::read(proc_root, self.pid)
            .is_some_and(|stat| stat.start_ticks == self.start_ticks && stat.is_alive())
    }
}

/// A later process with its id is not the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunningProcess(ProcessIdentity);

impl RunningProcess {
    /// `None` if there is none, or only a zombie.
    pub fn find(pid: i32) -> Option<RunningProcess> {
        let stat = ProcessStat::read(Path::new("/proc"), pid).filter(ProcessStat::is_alive)?;
        Some(RunningProcess(stat.identity()))
    }

    pub fn pid(self) -> i32 {
        self.0.pid
    }

    pub fn is_alive(self) -> bool {
        self.0.is_alive(Path::new("/proc"))
    }
}

/// Empty if the folder cannot be read.
pub(crate) fn list_pids(proc_root: &Path) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(proc_root) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

pub(crate) fn list_processes(proc_root: &Path) -> Vec<ProcessStat> {
    list_pids(proc_root).into_iter().filter_map(|pid| ProcessStat::read(proc_root, pid)).collect()
}

/// `roots` and their living descendants; `parents` is child → parent.
pub(crate) fn with_descendants(roots: &[i32], parents: &BTreeMap<i32, i32>) -> BTreeSet<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for (child, parent) in parents {
        children.entry(*parent).or_default().push(*child);
    }
    let mut found = BTreeSet::new();
    let mut open: Vec<i32> =
        roots.iter().copied().filter(|pid| parents.contains_key(pid)).collect();
    while let Some(pid) = open.pop() {
        if found.insert(pid) {
            open.extend(children.get(&pid).into_iter().flatten());
        }
    }
    found
}

/// Living, without the process itself.
pub(crate) fn descendants(proc_root: &Path, pid: i32) -> Vec<ProcessStat> {
    let all = list_processes(proc_root);
    let parents = all.iter().map(|stat| (stat.pid, stat.parent)).collect();
    let mut family = with_descendants(&[pid], &parents);
    family.remove(&pid);
    all.into_iter().filter(|stat| family.contains(&stat.pid)).collect()
}

/// In bytes, with descendants; shared pages count in each.
pub fn memory_of(pid: i32) -> u64 {
    let proc_root = Path::new("/proc");
    let own = ProcessStat::read(proc_root, pid).filter(ProcessStat::is_alive);
    let all = own.into_iter().chain(descendants(proc_root, pid));
    all.map(|stat| stat.rss_pages).sum::<u64>() * rustix::param::page_size() as u64
}

fn own_stat() -> Option<ProcessStat> {
    ProcessStat::parse(&fs::read_to_string("/proc/self/stat").ok()?)
}

pub(crate) fn seconds(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// Seconds in programs and in the kernel, all threads. Resolution: one clock tick, usually 10 ms.
pub fn own_cpu() -> Option<(f64, f64)> {
    let stat = own_stat()?;
    Some((seconds(stat.own_ticks.saturating_sub(stat.system_ticks)), seconds(stat.system_ticks)))
}

pub fn own_rss_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

pub fn thread_cpu() -> Nanoseconds {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Nanoseconds(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}

/// Seconds of children that ended and were collected, in whole clock ticks.
pub fn children_cpu() -> Option<f64> {
    Some(seconds(own_stat()?.reaped_ticks))
}

/// So far (proc_pid_io(5)): files and caches, not sockets by `send` and `recv`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadIo {
    pub read_calls: u64,
    pub read_bytes: u64,
    pub write_calls: u64,
    pub written_bytes: u64,
}

impl ThreadIo {
    fn parse(text: &str) -> Option<ThreadIo> {
        let count = |key: &str| count(text, key, ':');
        Some(ThreadIo {
            read_calls: count("syscr")?,
            read_bytes: count("rchar")?,
            write_calls: count("syscw")?,
            written_bytes: count("wchar")?,
        })
    }

    #[must_use]
    pub fn plus(self, more: ThreadIo) -> ThreadIo {
        self.each(more, u64::saturating_add)
    }

    #[must_use]
    pub fn since(self, before: ThreadIo) -> ThreadIo {
        self.each(before, u64::saturating_sub)
    }

    fn each(self, other: ThreadIo, of: fn(u64, u64) -> u64) -> ThreadIo {
        ThreadIo {
            read_calls: of(self.read_calls, other.read_calls),
            read_bytes: of(self.read_bytes, other.read_bytes),
            write_calls: of(self.write_calls, other.write_calls),
            written_bytes: of(self.written_bytes, other.written_bytes),
        }
    }
}

/// Of the calling thread.
pub fn thread_io() -> Option<ThreadIo> {
    ThreadIo::parse(&fs::read_to_string("/proc/thread-self/io").ok()?)
}

/// By thread id, for names that begin so; empty if the kernel does not report it.
pub fn own_thread_io(name: &str) -> BTreeMap<i32, ThreadIo> {
    let tasks = Path::new("/proc/self/task");
    let io = |tid: i32| {
        let folder = tasks.join(tid.to_string());
        let comm = fs::read_to_string(folder.join("comm")).ok()?;
        let text = comm.starts_with(name).then(|| fs::read_to_string(folder.join("io")))?.ok()?;
        Some((tid, ThreadIo::parse(&text)?))
    };
    list_pids(tasks).into_iter().filter_map(io).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of Linux 6.1.
    const POSTGRES: &str = "4242 (postgres) S 1 4242 4242 0 -1 4194560 5231 17 2 0 31 12 7 5 20 0 \
        3 0 123456 227155968 6912 18446744073709551615 1 1 0 0 0 0 4194304 19935232 84487 0 0 0 17 \
        1 0 0 0 0 0 0 0 0 0 0 0 0 0";

    #[test]
    fn a_process_line_is_read() {
        let expected = ProcessStat {
            pid: 4242,
            name: "postgres".into(),
            state: 'S',
            parent: 1,
            group: 4242,
            own_ticks: 43,
            system_ticks: 12,
            faults: (5231, 2),
            reaped_ticks: 12,
            n_threads: 3,
            start_ticks: 123_456,
            rss_pages: 6912,
        };
        assert_eq!(ProcessStat::parse(POSTGRES), Some(expected));
    }

    #[test]
    fn a_name_may_hold_brackets_and_blanks() {
        let stat = ProcessStat::parse(&POSTGRES.replace("postgres", "a) R (b c")).expect("a line");
        assert_eq!((stat.name.as_str(), stat.state, stat.parent), ("a) R (b c", 'S', 1));
    }

    #[test]
    fn a_process_with_a_set_user_id_is_not_only_of_its_new_user() {
        let proc_root = tempfile::tempdir().expect("a folder");
        fs::create_dir(proc_root.path().join("7")).expect("made");
        let check = |status: &str, users: &[u32], expected: bool| {
            fs::write(proc_root.path().join("7/status"), status).expect("written");
            assert_eq!(is_only_of(proc_root.path(), 7, users), expected, "{status}");
        };
        check("Name:\tx\nUid:\t0\t0\t0\t0\nGid:\t5\t5\t5\t5\n", &[0], true);
        check("Uid:\t0\t5\t5\t5\n", &[0, 5], true);
        check("Uid:\t1\t0\t0\t0\n", &[0, 5], false);
        check("Uid:\t0\t0\t1\t0\n", &[0, 5], false);
        check("Uid:\t5\t5\t5\t5\n", &[0], false);
        check("Uid:\n", &[0], false);
        check("Uid:\tx\n", &[0], false);
        check("", &[0], false);
        assert!(!is_only_of(proc_root.path(), 8, &[0]));
    }

    #[test]
    fn a_cut_line_is_no_process() {
        let check = |text: &str| assert_eq!(ProcessStat::parse(text), None, "{text}");
        check("");
        check("12");
        check(")(");
        check("12 (x) S 1");
        check(&POSTGRES[..60]);
    }

    #[test]
    fn our_own_process_is_read() {
        let pid = i32::try_from(std::process::id()).expect("fits");
        let stat = ProcessStat::read(Path::new("/proc"), pid).expect("we run");
        assert!(stat.is_alive() && stat.start_ticks > 0 && stat.rss_pages > 0);
        assert!(stat.identity().is_alive(Path::new("/proc")));
        let reused = ProcessIdentity { pid, start_ticks: stat.start_ticks + 1 };
        assert!(!reused.is_alive(Path::new("/proc")));
    }

    #[test]
    fn descendants_are_found_through_their_parents() {
        let parents = BTreeMap::from([(1, 0), (10, 1), (11, 10), (12, 11), (20, 1), (21, 20)]);
        let check = |roots: &[i32], expected: &[i32]| {
            let found: Vec<i32> = with_descendants(roots, &parents).into_iter().collect();
            assert_eq!(found, expected, "{roots:?}");
        };
        check(&[10], &[10, 11, 12]);
        check(&[10, 20], &[10, 11, 12, 20, 21]);
        check(&[99], &[]);
        check(&[], &[]);
        // A cycle cannot occur, but must not hang.
        assert_eq!(with_descendants(&[1], &BTreeMap::from([(1, 2), (2, 1)])).len(), 2);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "[0-9() RSZa-é-]{0,80}") {
            let _ = ProcessStat::parse(&text);
        }
    }

    #[test]
    fn memory_is_that_of_a_process_that_runs() {
        let own = i32::try_from(std::process::id()).expect("it fits");
        assert!(memory_of(own) > 1 << 20);
        assert_eq!(memory_of(i32::MAX), 0);
    }

    #[test]
    fn counters_are_read() {
        let text = "rchar: 7\nwchar: 8\nsyscr: 9\nsyscw: 10\nread_bytes: 11\nwrite_bytes: 12\n";
        let expected = ThreadIo { read_calls: 9, read_bytes: 7, write_calls: 10, written_bytes: 8 };
        assert_eq!(ThreadIo::parse(text), Some(expected));
        assert_eq!(ThreadIo::parse("rchar: x"), None);
        let later = ThreadIo { read_bytes: 107, ..expected };
        assert_eq!(later.since(expected), ThreadIo { read_bytes: 100, ..ThreadIo::default() });
        assert_eq!(expected.since(later), ThreadIo::default());
    }

    #[test]
    fn a_thread_of_this_process_is_found_by_its_name() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), [1; 5000]).expect("written");
        let path = file.path().to_owned();
        let (read, go_on) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            let work = || {
                fs::read(path).expect("it is there");
                read.wait();
                go_on.wait();
            };
            let builder = std::thread::Builder::new().name("io-of-a-test".to_owned());
            builder.spawn_scoped(scope, work).expect("a thread");
            read.wait();
            let found = own_thread_io("io-of-a-test");
            go_on.wait();
            assert_eq!(found.len(), 1);
            assert!(found.values().all(|io| io.read_bytes >= 5000), "{found:?}");
        });
        let before = thread_io().expect("Linux reports it");
        fs::read(file.path()).expect("it is there");
        assert!(thread_io().expect("Linux reports it").since(before).read_bytes >= 5000);
        assert!(own_thread_io("no-such-thread").is_empty());
    }
}
