//! Control groups of a server: limits of memory, swap and CPUs. A group is right below the root of
//! each controller, named after the server's folder, and noted in its owner file before it is made.
//! Cached file pages count as the server's memory; the default is no swap.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use dyno_units::ByteCount;

use crate::cgroup::{Groups, make_group};
use crate::error::{KeeperError, OrKeeper, Result, if_there};
use crate::storage::write_setting;

pub(crate) const GROUP_PREFIX: &str = "dyno-";
pub(super) const ROOT: &str = "/sys/fs/cgroup";
/// Version 1's usual share, 100 in version 2.
const SHARES_USUAL: u64 = 1024;
/// Version 1's minimum.
const SHARES_LEAST: u64 = 2;

/// Limits for a server and all that it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ServerLimits {
    /// With cached file pages; `None` for no limit.
    pub memory: Option<ByteCount>,
    /// In addition to limited memory; `None` for no swap.
    pub swap: Option<ByteCount>,
    /// From 1 to 10000; 100 is usual. `None` for no group.
    pub cpu_weight: Option<u32>,
}

impl ServerLimits {
    pub fn is_none(&self) -> bool {
        *self == ServerLimits::default()
    }

    fn controllers(&self) -> impl Iterator<Item = &'static Controller> {
        let memory = self.memory.or(self.swap).map(|_| &MEMORY);
        [memory, self.cpu_weight.map(|_| &CPU)].into_iter().flatten()
    }
}

struct Controller {
    name: &'static str,
    /// By which version 1 is recognised.
    v1_files: &'static [&'static str],
    purpose: &'static str,
}

const MEMORY: Controller = Controller {
    name: "memory",
    v1_files: &["memory/memory.limit_in_bytes"],
    purpose: "limit the memory of a server",
};

const CPU: Controller = Controller {
    name: "cpu",
    v1_files: &["cpu/cpu.shares", "cpu,cpuacct/cpu.shares"],
    purpose: "give a server a share of CPU time",
};

/// Empty if the limits can be set here.
pub fn server_limit_problems(limits: &ServerLimits) -> Vec<String> {
    problems_under(Path::new(ROOT), Path::new("/proc/meminfo"), limits)
}

fn problems_under(root: &Path, meminfo: &Path, limits: &ServerLimits) -> Vec<String> {
    let mut problems = Vec::new();
    for controller in limits.controllers() {
        let version = match controller.find_under(root) {
            Ok(version) => version,
            Err(error) => {
                problems.push(error.0);
                continue;
            }
        };
        let folder = version.root();
        if let Err(error) = rustix::fs::access(folder, rustix::fs::Access::WRITE_OK) {
            problems.push(format!(
                "to {}, Dyno needs root privileges: {}: {error}",
                controller.purpose,
                folder.display()
            ));
        }
        let has_no_account = matches!(&version, Groups::V1(_))
            && !folder.join("memory.memsw.limit_in_bytes").exists();
        if controller.name == MEMORY.name && limits.swap.is_some() && has_no_account {
            let why = "this kernel does not account for the swap of a group: boot it with \
                 swapaccount=1, or leave `swap` out";
            problems.push(why.to_owned());
        }
    }
    let swap = limits.swap.filter(|swap| swap.0 > 0);
    let text = fs::read_to_string(meminfo).unwrap_or_default();
    let total = crate::kernel_text::meminfo_bytes(&text, "SwapTotal").unwrap_or(0);
    problems.extend(swap.filter(|swap| swap.0 > total).map(|swap| {
        format!(
            "`swap` is {swap}, but this machine has {} of swap; add a swap file with mkswap and swapon",
            ByteCount(total)
        )
    }));
    problems
}

/// Not made yet; `root` is [`ROOT`].
pub(super) fn planned(root: &Path, folder: &Path, limits: &ServerLimits) -> Result<Vec<PathBuf>> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let mut groups = Vec::new();
    for controller in limits.controllers() {
        let group = controller.find_under(root)?.root().join(format!("{GROUP_PREFIX}{name}"));
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    Ok(groups)
}

pub(super) fn make(root: &Path, groups: &[PathBuf], limits: &ServerLimits) -> Result<()> {
    let found: Vec<(&Controller, Groups)> = limits
        .controllers()
        .map(|controller| Ok((controller, controller.find_under(root)?)))
        .collect::<Result<_>>()?;
    for (controller, version) in &found {
        if let Groups::V2(root) = version {
            write_setting(&root.join("cgroup.subtree_control"), &format!("+{}", controller.name))?;
        }
    }
    for group in groups {
        make_group(group)?;
        for (controller, version) in &found {
            if group.parent() == Some(version.root()) {
                set(controller, version, group, limits)?;
            }
        }
    }
    Ok(())
}

fn set(kind: &Controller, version: &Groups, group: &Path, limits: &ServerLimits) -> Result<()> {
    let is_v1 = matches!(version, Groups::V1(_));
    if let Some(weight) = limits.cpu_weight.filter(|_| kind.name == CPU.name) {
        let shares = (u64::from(weight) * SHARES_USUAL / 100).max(SHARES_LEAST);
        return match is_v1 {
            true => write_setting(&group.join("cpu.shares"), &shares.to_string()),
            false => write_setting(&group.join("cpu.weight"), &weight.to_string()),
        };
    }
    let Some(memory) = limits.memory.filter(|_| kind.name == MEMORY.name) else {
        return Ok(());
    };
    let swap = limits.swap.unwrap_or(ByteCount(0));
    let (of_memory, of_swap, swap_value) = match is_v1 {
        // Version 1 limits the sum.
        true => (
            "memory.limit_in_bytes",
            "memory.memsw.limit_in_bytes",
            memory.0.saturating_add(swap.0),
        ),
        false => ("memory.max", "memory.swap.max", swap.0),
    };
    write_setting(&group.join(of_memory), &memory.0.to_string())?;
    let of_swap = group.join(of_swap);
    if of_swap.exists() {
        return write_setting(&of_swap, &swap_value.to_string());
    }
    // Missing if the kernel does not account for swap.
    if swap.0 > 0 {
        return Err(KeeperError(format!(
            "the swap of a server cannot be limited: there is no {}",
            of_swap.display()
        )));
    }
    Ok(())
}

/// Adds a process and all that it starts later.
pub(super) fn add(groups: &[PathBuf], pid: i32) -> Result<()> {
    groups.iter().try_for_each(|group| write_setting(&group.join("cgroup.procs"), &pid.to_string()))
}

/// Limits in force by Dyno's groups: `cpu_weight`, `memory` and `swap`, as in studies.
pub fn server_limits_in_force(pid: i32) -> BTreeMap<String, String> {
    in_force_under(Path::new("/"), pid)
}

fn in_force_under(root: &Path, pid: i32) -> BTreeMap<String, String> {
    let is_dynos = |folder: &PathBuf| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(GROUP_PREFIX)
    };
    let mut found = BTreeMap::new();
    for group in
        crate::cgroup::group_folders(root, &pid.to_string()).iter().filter(|one| is_dynos(one))
    {
        let number = |file: &str| -> Option<u64> {
            fs::read_to_string(group.join(file)).ok()?.trim().parse().ok()
        };
        let memory = number("memory.max").or_else(|| number("memory.limit_in_bytes"));
        let of_both = || number("memory.memsw.limit_in_bytes")?.checked_sub(memory?);
        let shares = || Some(number("cpu.shares")?.saturating_mul(100).div_ceil(SHARES_USUAL));
        let weight = number("cpu.weight").or_else(shares).map(|weight| weight.to_string());
        let bytes = |bytes: Option<u64>| bytes.map(|bytes| ByteCount(bytes).to_string());
        let swap = number("memory.swap.max").or_else(of_both);
        let all = [("memory", bytes(memory)), ("swap", bytes(swap)), ("cpu_weight", weight)];
        found.extend(all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    }
    found
}

/// Fails if the group is not Dyno's, or not empty.
pub(crate) fn remove(group: &Path) -> Result<()> {
    let name = group.file_name().unwrap_or_default().to_string_lossy();
    if !(group.starts_with(ROOT) && name.starts_with(GROUP_PREFIX)) {
        let group = group.display();
        return Err(KeeperError(format!("{group} is not one of Dyno's control groups")));
    }
    if_there(fs::remove_dir(group))
        .or_keeper(|| format!("the control group {} cannot be removed", group.display()))
}

impl Controller {
    fn find_under(&self, root: &Path) -> Result<Groups> {
        Groups::of(root, self.name, self.v1_files).or_keeper(|| {
            format!(
                "to {}, Dyno needs the control group `{}`, which does not exist",
                self.purpose, self.name
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ServerLimits = ServerLimits {
        memory: Some(ByteCount(64 << 20)),
        swap: Some(ByteCount(16 << 20)),
        cpu_weight: Some(25),
    };

    /// Made-up files.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new(files: &[(&str, &str)]) -> Machine {
            let machine = Machine(tempfile::tempdir().expect("a folder"));
            files.iter().for_each(|(path, text)| machine.write(path, text));
            machine
        }

        fn path(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        fn write(&self, path: &str, text: &str) {
            fs::create_dir_all(self.path(path).parent().expect("a parent")).expect("made");
            fs::write(self.path(path), text).expect("written");
        }

        fn read(&self, path: &str) -> String {
            fs::read_to_string(self.path(path)).expect("written")
        }

        fn cgroups(&self) -> PathBuf {
            self.path("sys/fs/cgroup")
        }

        fn problems(&self, limits: &ServerLimits) -> Vec<String> {
            problems_under(&self.cgroups(), &self.path("proc/meminfo"), limits)
        }

        fn make(&self, limits: &ServerLimits) -> Result<Vec<PathBuf>> {
            let groups = planned(&self.cgroups(), Path::new("/d/a"), limits)?;
            make(&self.cgroups(), &groups, limits).map(|()| groups)
        }
    }

    #[test]
    fn version_1_has_a_group_for_each_controller() {
        let machine = Machine::new(&[
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", ""),
            ("sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", ""),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.shares", "1024"),
            ("proc/meminfo", "SwapTotal: 32768 kB\n"),
            ("proc/7/cgroup", "5:memory:/dyno-a\n4:cpu,cpuacct:/dyno-a\n"),
        ]);
        assert_eq!(machine.problems(&LIMITS), Vec::<String>::new());
        let groups = machine.make(&ServerLimits { swap: None, ..LIMITS }).expect("made");
        let folder = machine.cgroups();
        assert_eq!(groups, [folder.join("memory/dyno-a"), folder.join("cpu,cpuacct/dyno-a")]);
        let bytes = (64 << 20).to_string();
        assert_eq!(machine.read("sys/fs/cgroup/memory/dyno-a/memory.limit_in_bytes"), bytes);
        assert_eq!(machine.read("sys/fs/cgroup/cpu,cpuacct/dyno-a/cpu.shares"), "256");
        // With swap accounting the sum is limited.
        machine.write("sys/fs/cgroup/memory/dyno-a/memory.memsw.limit_in_bytes", "");
        let version = MEMORY.find_under(&folder).expect("version 1");
        set(&MEMORY, &version, &groups[0], &LIMITS).expect("set");
        let both = machine.read("sys/fs/cgroup/memory/dyno-a/memory.memsw.limit_in_bytes");
        assert_eq!(both, (80 << 20).to_string());
        let expected = [("cpu_weight", "25"), ("memory", "64MiB"), ("swap", "16MiB")];
        let in_force = in_force_under(machine.0.path(), 7);
        let texts: Vec<(&str, String)> =
            in_force.iter().map(|(name, value)| (name.as_str(), value.replace(' ', ""))).collect();
        assert_eq!(texts, expected.map(|(name, value)| (name, value.to_owned())));
    }

    #[test]
    fn version_2_has_one_group_for_all() {
        let machine = Machine::new(&[
            ("sys/fs/cgroup/cgroup.controllers", "cpu memory io\n"),
            ("proc/meminfo", "SwapTotal: 32768 kB\n"),
            ("proc/7/cgroup", "0::/dyno-a\n"),
        ]);
        assert_eq!(machine.problems(&LIMITS), Vec::<String>::new());
        let groups = machine.make(&ServerLimits { swap: None, ..LIMITS }).expect("made");
        assert_eq!(groups, [machine.cgroups().join("dyno-a")]);
        assert_eq!(machine.read("sys/fs/cgroup/dyno-a/memory.max"), (64 << 20).to_string());
        assert_eq!(machine.read("sys/fs/cgroup/dyno-a/cpu.weight"), "25");
        let version = MEMORY.find_under(&machine.cgroups()).expect("version 2");
        let error = set(&MEMORY, &version, &groups[0], &LIMITS).expect_err("no such file").0;
        assert!(error.contains("there is no"), "{error}");
        machine.write("sys/fs/cgroup/dyno-a/memory.swap.max", "max");
        set(&MEMORY, &version, &groups[0], &LIMITS).expect("set");
        assert_eq!(machine.read("sys/fs/cgroup/dyno-a/memory.swap.max"), (16 << 20).to_string());
        assert_eq!(in_force_under(machine.0.path(), 7)["cpu_weight"], "25");
        assert_eq!(in_force_under(machine.0.path(), 8), BTreeMap::new());
    }

    #[test]
    fn what_cannot_be_limited_is_said_with_its_reason() {
        let check = |files: &[(&str, &str)], limits: ServerLimits, expected: &str| {
            let problems = Machine::new(files).problems(&limits).join("; ");
            assert!(problems.contains(expected), "{problems}");
        };
        let memory = ServerLimits { memory: LIMITS.memory, ..ServerLimits::default() };
        let weight = ServerLimits { cpu_weight: Some(1), ..ServerLimits::default() };
        check(&[], memory, "needs the control group `memory`");
        check(&[], weight, "needs the control group `cpu`");
        let version_1 = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "");
        let with_swap = ServerLimits { swap: LIMITS.swap, ..memory };
        check(&[version_1], with_swap, "does not account for the swap");
        check(&[version_1], with_swap, "this machine has 0");
    }

    #[test]
    fn only_groups_of_dynos_are_removed() {
        for group in ["/sys/fs/cgroup/user.slice", "/tmp/dyno-x"] {
            let error = remove(Path::new(group)).expect_err("refused").0;
            assert!(error.contains("not one of Dyno's control groups"), "{error}");
        }
        remove(Path::new("/sys/fs/cgroup/dyno-no-such-group")).expect("there is none to remove");
    }
}
