//! The kernel's table of processes. An id with the start time names a single process of one boot.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

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
    /// Clock ticks since boot.
    pub(crate) start_ticks: u64,
    pub(crate) rss_pages: u64,
}

impl ProcessStat {
    /// From `/proc/PID/stat`.
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

    /// In clock ticks, from `/proc/PID/stat`.
    pub(crate) fn parse_user_and_system(line: &str) -> Option<(u64, u64)> {
        let mut fields = line.get(line.rfind(')')? + 1..)?.split_ascii_whitespace().skip(11);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
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
}
