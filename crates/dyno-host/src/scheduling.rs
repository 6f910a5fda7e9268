//! Groups of the kernel's scheduler, each with its share of the CPUs whatever its threads: control
//! groups of the CPU controller, or in the topmost one, with `sched_autogroup_enabled` = 1,
//! sessions (`sched(7)`). A server in the generator's group runs differently.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::cgroup::group_folders;
use crate::process_table::descendants;

/// Prefix of sessions' groups.
const AUTOGROUP: &str = "/autogroup-";

/// Below the topmost.
#[derive(Clone, Debug, PartialEq)]
struct Group {
    name: String,
    /// Beside its siblings; 1 is usual.
    weight: f64,
}

/// Whether these processes and descendants share this process's group, in words; `None` if unknown.
pub fn scheduling_group(pids: &[i32]) -> Option<String> {
    let servers = pids.iter().flat_map(|&pid| {
        let below = descendants(Path::new("/proc"), pid).into_iter().map(|stat| stat.pid);
        std::iter::once(pid).chain(below)
    });
    let servers: Vec<String> = servers.map(|pid| pid.to_string()).collect();
    in_words(Path::new("/"), &servers, "self")
}

/// `that of its session`, `that of system.slice/dyno.service`; `None` for the topmost.
pub(crate) fn own_group(root: &Path) -> Option<String> {
    let name = groups(root, "self")?.pop()?.name;
    Some(match name.starts_with(AUTOGROUP) {
        true => "that of its session".to_owned(),
        false => format!("that of {}", dyno_units::clean_text(&name)),
    })
}

/// `root` holds `proc` and `sys`; processes are folders in `proc`.
fn in_words(root: &Path, servers: &[String], generator: &str) -> Option<String> {
    let generator = groups(root, generator)?;
    // Ended processes are ignored.
    let found: Vec<Vec<Group>> = servers.iter().filter_map(|pid| groups(root, pid)).collect();
    let other = found.iter().find(|groups| **groups != generator);
    let Some(other) = other else {
        return (!found.is_empty()).then(|| "the generator's".to_owned());
    };
    let path = |groups: &[Group]| groups.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
    let n_paths = found.iter().map(|groups| path(groups)).collect::<BTreeSet<_>>().len();
    let whose = if n_paths == 1 { "its own" } else { "one for each of its processes" };
    let [ours, theirs] = weights(other, &generator);
    Some(format!("{whose}, CPU weights {ours} : {theirs}"))
}

/// Of the first groups that differ; `–` for processes that compete one by one in a parent group.
fn weights(ours: &[Group], theirs: &[Group]) -> [String; 2] {
    let is_common = |(a, b): &(&Group, &Group)| a.name == b.name;
    let n_common = ours.iter().zip(theirs).take_while(is_common).count();
    [ours, theirs].map(|groups| match groups.get(n_common) {
        Some(group) => ((group.weight * 100.0).round() / 100.0).to_string(),
        None => "–".to_owned(),
    })
}

/// Parents first, without the topmost. `None` without such a process.
fn groups(root: &Path, process: &str) -> Option<Vec<Group>> {
    let folder = root.join("proc").join(process);
    fs::metadata(&folder).ok()?;
    let mounts = root.join("sys/fs/cgroup");
    let folders = group_folders(root, process);
    let mut found: Vec<Group> =
        folders.iter().rev().filter_map(|folder| group(&mounts, folder)).collect();
    let enabled = fs::read_to_string(root.join("proc/sys/kernel/sched_autogroup_enabled"));
    if found.is_empty() && enabled.is_ok_and(|text| text.trim() == "1") {
        found.extend(parse_autogroup(&fs::read_to_string(folder.join("autogroup")).ok()?));
    }
    Some(found)
}

/// If the scheduler divides CPUs by it.
fn group(mounts: &Path, folder: &Path) -> Option<Group> {
    let number = |file: &str| -> Option<f64> {
        fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok()
    };
    // Topmost groups have a weight in version 1, and in containers also in version 2.
    let is_topmost = folder.parent() == Some(mounts);
    let shares = || number("cpu.shares").filter(|_| !is_topmost).map(|shares| shares / 1024.0);
    let weight = number("cpu.weight").map(|weight| weight / 100.0).or_else(shares)?;
    let name = folder.strip_prefix(mounts).unwrap_or(folder).display().to_string();
    Some(Group { name, weight })
}

/// `/autogroup-17 nice 0`. A nice step is a factor of 1.25 (the kernel's `sched_prio_to_weight`).
fn parse_autogroup(text: &str) -> Option<Group> {
    let (name, nice) = text.trim().split_once(" nice ")?;
    let nice: i32 = nice.parse().ok().filter(|_| name.starts_with(AUTOGROUP))?;
    Some(Group { name: name.to_owned(), weight: 1.25_f64.powi(-nice) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For servers 7, 8 … and the process `self`.
    #[track_caller]
    fn check(files: &[(&str, &str)], servers: &[&str], expected: Option<&str>) {
        let root = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, text).expect("written");
        }
        let servers: Vec<String> = servers.iter().map(|&pid| pid.to_owned()).collect();
        assert_eq!(in_words(root.path(), &servers, "self").as_deref(), expected, "{files:?}");
    }

    const AUTOGROUPS: (&str, &str) = ("proc/sys/kernel/sched_autogroup_enabled", "1\n");

    #[test]
    fn sessions_are_groups_where_no_control_group_is() {
        let files = |enabled: &'static str, paths: [&'static str; 3]| {
            let [own, one, other] = paths;
            [
                ("proc/sys/kernel/sched_autogroup_enabled", enabled),
                ("proc/self/cgroup", "1:cpu:/\n0::/\n"),
                ("proc/7/cgroup", "1:cpu:/\n0::/\n"),
                ("proc/8/cgroup", "1:cpu:/\n0::/\n"),
                ("proc/self/autogroup", own),
                ("proc/7/autogroup", one),
                ("proc/8/autogroup", other),
            ]
        };
        let [a, b, c] = ["/autogroup-1 nice 0\n", "/autogroup-2 nice 0\n", "/autogroup-3 nice 5\n"];
        check(&files("1", [a, a, a]), &["7", "8"], Some("the generator's"));
        check(&files("1", [a, b, b]), &["7", "8"], Some("its own, CPU weights 1 : 1"));
        check(&files("1", [a, c, c]), &["7", "8"], Some("its own, CPU weights 0.33 : 1"));
        let several = "one for each of its processes, CPU weights 1 : 1";
        check(&files("1", [a, a, b]), &["7", "8"], Some(several));
        check(&files("0", [a, b, c]), &["7", "8"], Some("the generator's"));
        // An ended process, or a kernel without groups, says nothing.
        check(&files("1", [a, a, a]), &["7", "9"], Some("the generator's"));
        check(&files("1", [a, a, a]), &["9"], None);
        check(&[AUTOGROUPS], &["7"], None);
    }

    #[test]
    fn control_groups_of_both_versions_take_precedence_over_sessions() {
        let sessions = [
            AUTOGROUPS,
            ("proc/self/autogroup", "/autogroup-1 nice 0\n"),
            ("proc/7/autogroup", "/autogroup-1 nice 0\n"),
        ];
        let check = |files: &[(&str, &str)], expected: &str| {
            check(&[&sessions, files].concat(), &["7"], Some(expected));
        };
        let v2 = [
            ("proc/self/cgroup", "0::/user.slice/user-0.slice\n"),
            ("proc/7/cgroup", "0::/system.slice/mariadb.service\n"),
            ("sys/fs/cgroup/user.slice/cpu.weight", "100\n"),
            ("sys/fs/cgroup/user.slice/user-0.slice/cpu.weight", "7\n"),
            ("sys/fs/cgroup/system.slice/cpu.weight", "50\n"),
        ];
        check(&v2, "its own, CPU weights 0.5 : 1");
        // Without the CPU controller groups do not count.
        check(&v2[..2], "the generator's");
        // In a container with its own topmost group.
        let container = [
            ("proc/self/cgroup", "0::/\n"),
            ("proc/7/cgroup", "0::/db\n"),
            ("sys/fs/cgroup/cpu.weight", "100\n"),
            ("sys/fs/cgroup/db/cpu.weight", "200\n"),
        ];
        check(&container, "its own, CPU weights 2 : –");
        let v1 = [
            ("proc/self/cgroup", "4:cpu,cpuacct:/\n"),
            ("proc/7/cgroup", "4:cpu,cpuacct:/dyno-a\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.shares", "1024\n"),
            ("sys/fs/cgroup/cpu,cpuacct/dyno-a/cpu.shares", "512\n"),
        ];
        check(&v1, "its own, CPU weights 0.5 : 1");
    }

    #[test]
    fn a_process_is_in_its_own_group() {
        let own = fs::read_to_string("/proc/self/autogroup").unwrap_or_default();
        let enabled = fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled");
        if own.is_empty() || enabled.is_ok_and(|text| text.trim() != "1") {
            eprintln!("skipped: this kernel has no scheduling groups of sessions");
            return;
        }
        let found = scheduling_group(&[i32::try_from(std::process::id()).expect("fits")]);
        assert_eq!(found.as_deref(), Some("the generator's"));
        assert!(own_group(Path::new("/")).is_some());
    }
}
