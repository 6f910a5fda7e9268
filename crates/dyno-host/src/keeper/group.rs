//! The control group of a server: how much memory it may take.
//!
//! Versions 1 and 2 of control groups are used alike: a group of Dyno's right below the root of the
//! controller, named after the server's folder and noted in its owner file before it is made. Pages of
//! files that the server reads and writes count as its memory, too. Swap is not added to it.

use std::fs;
use std::path::{Path, PathBuf};

use dyno_units::ByteCount;

use super::KeeperError;

/// How the groups begin that Dyno makes.
pub(crate) const GROUP_PREFIX: &str = "dyno-";
/// Where control groups are.
const ROOT: &str = "/sys/fs/cgroup";

/// The version of the control groups that limit memory here, and their root.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Memory {
    V1(PathBuf),
    V2(PathBuf),
}

/// Why the memory of a server cannot be limited here; none where it can.
pub fn memory_limit_problem() -> Option<String> {
    let folder = match Memory::find_under(Path::new(ROOT)) {
        Ok(Memory::V1(root) | Memory::V2(root)) => root,
        Err(error) => return Some(error.0),
    };
    rustix::fs::access(&folder, rustix::fs::Access::WRITE_OK).err().map(|error| {
        format!(
            "to limit the memory of a server, Dyno needs the rights of root: {}: {error}",
            folder.display()
        )
    })
}

/// The group for the server of this folder, which is yet to be made.
pub(super) fn planned(folder: &Path) -> Result<PathBuf, KeeperError> {
    let (Memory::V1(root) | Memory::V2(root)) = Memory::find_under(Path::new(ROOT))?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    Ok(root.join(format!("{GROUP_PREFIX}{name}")))
}

/// Makes the group with its limit.
pub(super) fn make(group: &Path, memory: ByteCount) -> Result<(), KeeperError> {
    Memory::find_under(Path::new(ROOT))?.make(group, memory)
}

/// Moves a process into the group; what it starts later is in it as well.
pub(super) fn add(group: &Path, pid: i32) -> Result<(), KeeperError> {
    write(&group.join("cgroup.procs"), &pid.to_string())
}

/// Removes a group that Dyno has made, which holds no processes any more.
///
/// # Errors
///
/// It is not Dyno's, or not empty.
pub(crate) fn remove(group: &Path) -> Result<(), KeeperError> {
    let name = group.file_name().unwrap_or_default().to_string_lossy();
    if !(group.starts_with(ROOT) && name.starts_with(GROUP_PREFIX)) {
        return Err(KeeperError(format!("{} is no control group of Dyno's", group.display())));
    }
    match fs::remove_dir(group) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(KeeperError(format!("the control group {} stays: {error}", group.display())))
        }
        _ => Ok(()),
    }
}

impl Memory {
    fn find_under(root: &Path) -> Result<Memory, KeeperError> {
        let v1 = root.join("memory");
        if v1.join("memory.limit_in_bytes").exists() {
            return Ok(Memory::V1(v1));
        }
        let has_memory = |folder: &PathBuf| {
            fs::read_to_string(folder.join("cgroup.controllers"))
                .is_ok_and(|text| text.split_whitespace().any(|name| name == "memory"))
        };
        let mut v2 = [root.to_owned(), root.join("unified")].into_iter();
        v2.find(has_memory).map(Memory::V2).ok_or_else(|| {
            KeeperError(
                "to limit the memory of a server, Dyno needs the control group `memory`, which is \
                 not there"
                    .to_owned(),
            )
        })
    }

    fn make(&self, group: &Path, memory: ByteCount) -> Result<(), KeeperError> {
        if let Memory::V2(root) = self {
            write(&root.join("cgroup.subtree_control"), "+memory")?;
        }
        fs::create_dir(group).map_err(|error| {
            KeeperError(format!("the control group {} cannot be made: {error}", group.display()))
        })?;
        let bytes = memory.0.to_string();
        match self {
            Memory::V1(_) => {
                write(&group.join("memory.limit_in_bytes"), &bytes)?;
                // Kernels that do not account for swap have no such file.
                let with_swap = group.join("memory.memsw.limit_in_bytes");
                if with_swap.exists() { write(&with_swap, &bytes) } else { Ok(()) }
            }
            Memory::V2(_) => {
                write(&group.join("memory.max"), &bytes)?;
                let swap = group.join("memory.swap.max");
                if swap.exists() { write(&swap, "0") } else { Ok(()) }
            }
        }
    }
}

fn write(path: &Path, text: &str) -> Result<(), KeeperError> {
    fs::write(path, text).map_err(|error| {
        KeeperError(format!("`{text}` cannot be written to {}: {error}", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_has_its_own_files() {
        let root = tempfile::tempdir().expect("a folder");
        let path = |name: &str| root.path().join(name);
        let read = |name: &str| fs::read_to_string(path(name)).expect("written");
        assert!(Memory::find_under(root.path()).is_err());

        fs::write(path("cgroup.controllers"), "cpu memory io\n").expect("written");
        let found = Memory::find_under(root.path()).expect("version 2");
        assert_eq!(found, Memory::V2(root.path().to_owned()));
        found.make(&path("dyno-a"), ByteCount(64 << 20)).expect("made");
        assert_eq!(read("dyno-a/memory.max"), (64 << 20).to_string());
        assert_eq!(read("cgroup.subtree_control"), "+memory");

        fs::create_dir(path("memory")).expect("made");
        fs::write(path("memory/memory.limit_in_bytes"), "").expect("written");
        let found = Memory::find_under(root.path()).expect("version 1");
        assert_eq!(found, Memory::V1(path("memory")));
        found.make(&path("memory/dyno-a"), ByteCount(64 << 20)).expect("made");
        assert_eq!(read("memory/dyno-a/memory.limit_in_bytes"), (64 << 20).to_string());
    }

    #[test]
    fn only_groups_of_dynos_are_removed() {
        for group in ["/sys/fs/cgroup/user.slice", "/tmp/dyno-x"] {
            let error = remove(Path::new(group)).expect_err("refused").0;
            assert!(error.contains("no control group of Dyno's"), "{error}");
        }
        remove(Path::new("/sys/fs/cgroup/dyno-no-such-group")).expect("there is none to remove");
    }
}
