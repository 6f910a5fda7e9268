//! Why a volume cannot be made here, before anything is made.

use std::fs::{self, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use dyno_units::{Backing, ByteCount, VolumeSpec};
use rustix::fs::OFlags;

use super::filesystem::{Filesystem, MadeBy};
use super::loop_device::BlockDevice;
use super::zfs::{self, Zfs};
use super::{LABEL, filesystem};
use crate::storage::free_bytes;
use crate::{Groups, Host, Keeper, Mount};

/// The bit for mounting (capabilities(7)).
const CAP_SYS_ADMIN: u32 = 21;
/// Of a device's beginning and end.
const LOOKED_AT: usize = 1 << 20;

/// Sentences without a full stop; empty if it can be made.
pub fn volume_problems(keeper: &Keeper, spec: &VolumeSpec) -> Vec<String> {
    let Some(filesystem) = Filesystem::find(&spec.filesystem) else {
        let names: Vec<&str> = filesystem::ALL.iter().map(|one| one.name).collect();
        return vec![format!(
            "there is no filesystem `{}`; choose one of {}",
            spec.filesystem,
            names.join(", ")
        )];
    };
    let mut problems = Vec::new();
    if !may_mount() {
        problems.push("to mount a filesystem, Dyno needs root privileges (CAP_SYS_ADMIN)".into());
    }
    if spec.is_limited() {
        problems.extend(Groups::find().err().map(|error| error.0));
    }
    problems.extend(refused_option(spec));
    match &filesystem.made_by {
        MadeBy::Pool => match Zfs::find(keeper) {
            Ok(zfs) => {
                problems.extend(zfs.problems(spec));
                problems.extend(zfs::used_by_another(keeper));
            }
            Err(error) => problems.push(error.0),
        },
        _ if !spec.properties.is_empty() => {
            problems.push(format!("{} has no properties to set", filesystem.name));
        }
        _ if spec.cache.is_some() || spec.arc.is_some() => {
            let name = filesystem.name;
            problems.push(format!("{name} has neither a cache device nor an ARC; only zfs does"));
        }
        MadeBy::Memory => problems.extend(in_memory(spec)),
        MadeBy::Program(maker) => {
            let found = keeper.needed_program(maker.program, maker.package);
            problems.extend(found.err().map(|error| error.0));
            problems.extend(unknown_to_the_kernel(filesystem.name));
        }
    }
    problems.extend(match &spec.backing {
        Backing::Size(size) => too_large_or_small(keeper, filesystem, *size, spec.cache),
        Backing::Device { path, may_format } => device_problem(path, *may_format),
    });
    problems
}

/// Mount options that lead elsewhere, or give rights.
const MOUNT_REFUSED: &str = "bind rbind move remount loop offset sizelimit helper uhelper \
    journal_dev device suid dev";

/// By which programs of root would touch or read something other than the volume.
fn refused_option(spec: &VolumeSpec) -> Option<String> {
    // A quote hides later options; `device=LABEL=…` names a device.
    const AWAY: [&str; 5] = ["/", "..", "\"", "\\", "device="];
    let leads_away = |word: &&String| {
        let word = word.to_ascii_lowercase();
        AWAY.iter().any(|away| word.contains(away))
    };
    let refused = |word: &&String| {
        let name = word.split('=').next().unwrap_or_default().to_ascii_lowercase();
        let is_refused = MOUNT_REFUSED.split(' ').any(|one| one == name);
        leads_away(word) || name.starts_with("x-") || is_refused
    };
    let make = spec.make_options.iter().find(leads_away).map(|word| ("make_options", word));
    let mount = spec.mount_options.iter().find(refused).map(|word| ("mount_options", word));
    make.or(mount).map(|(key, word)| {
        format!("`{word}` in `{key}` is refused: Dyno would use it as root, outside the volume")
    })
}

fn may_mount() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bits = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = bits.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    bits.is_some_and(|bits| bits & (1 << CAP_SYS_ADMIN) != 0)
}

/// What a filesystem in memory cannot have.
fn in_memory(spec: &VolumeSpec) -> Option<String> {
    let name = &spec.filesystem;
    let has_device = matches!(spec.backing, Backing::Device { .. });
    let is_tuned = spec.scheduler.is_some() || spec.read_ahead.is_some() || spec.is_limited();
    if has_device || is_tuned {
        return Some(format!("a {name} is in memory: it has no device to limit or to tune"));
    }
    (!spec.make_options.is_empty())
        .then(|| format!("a {name} is not created by a program: `make_options` has no effect"))
}

pub(super) fn unknown_to_the_kernel(name: &str) -> Option<String> {
    let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if known.lines().any(|line| line.trim() == name) {
        return None;
    }
    // The mount loads a module, if there is one.
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let modules = Path::new("/lib/modules").join(release.trim());
    let text = |file: &str| fs::read_to_string(modules.join(file)).unwrap_or_default();
    let list = ["modules.dep", "modules.builtin"].map(text).concat();
    let module = format!("/{name}.ko");
    (!list.contains(&module)).then(|| format!("this kernel has no {name}, and no module for it"))
}

fn too_large_or_small(
    keeper: &Keeper,
    filesystem: &Filesystem,
    size: ByteCount,
    cache: Option<ByteCount>,
) -> Option<String> {
    let (name, least) = (filesystem.name, filesystem.least_size);
    if size < least {
        return Some(format!("{name} needs at least {least}, but `size` is {size}"));
    }
    if filesystem.is_memory() {
        let memory = Host::new(Path::new("/")).memory_bytes().map(ByteCount);
        return memory.filter(|memory| size > *memory).map(|memory| {
            format!("{name} is in memory: its size is {size}, but this machine has {memory}")
        });
    }
    let size = ByteCount(size.0.saturating_add(cache.map_or(0, |cache| cache.0)));
    let (root, free) = (keeper.root(), free_bytes(keeper.root()).ok().map(ByteCount)?);
    (free < size).then(|| {
        let root = root.display();
        format!(
            "its size is {size}, but {root} has only {free} left; choose another disk with \
             `data_folder`"
        )
    })
}

/// Everything not proved to be free counts as used.
fn device_problem(path: &Path, may_format: bool) -> Option<String> {
    let device = match BlockDevice::at(path) {
        Err(error) => return Some(error.0),
        Ok(device) => device,
    };
    let path = path.display();
    let unnamed = || {
        format!(
            "{path} would be formatted, and everything on it lost: name it with \
             `--format-device {path}` if you want that"
        )
    };
    used(&device).or_else(|| (!may_format).then(unnamed))
}

fn used(device: &BlockDevice) -> Option<String> {
    let path = device.path.display();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mounted = Mount::all(&mounts).into_iter().find(|mount| {
        mount.device_number == device.number || Path::new(&mount.device) == device.path
    });
    if let Some(mount) = mounted {
        return Some(format!("{path} is mounted at {}", mount.point.display()));
    }
    let sys = device.sys();
    let parts = |folder: &str| {
        let entries = fs::read_dir(sys.join(folder)).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    if let Some(holder) = parts("holders").first() {
        return Some(format!("{path} is used by {holder}"));
    }
    if let Some(part) = parts(".").iter().find(|name| sys.join(name).join("partition").exists()) {
        return Some(format!("{path} has partitions ({part}); name an unused partition"));
    }
    let flags = OFlags::EXCL | OFlags::CLOEXEC;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    // Fails while the kernel uses the device, as for swap or a RAID.
    let mut file = match OpenOptions::new().read(true).custom_flags(flags).open(&device.path) {
        Ok(file) => file,
        Err(error) => return Some(format!("{path} is in use: {error}")),
    };
    match is_blank_or_marked(&mut file) {
        Ok(true) => None,
        Ok(false) => Some(format!(
            "{path} contains data that Dyno did not put there; erase it yourself (`wipefs --all \
             {path}` and `blkdiscard {path}`) if nobody needs it"
        )),
        Err(error) => Some(format!("{path} cannot be read: {error}")),
    }
}

/// Zeros at its beginning and end, or a filesystem with Dyno's label.
fn is_blank_or_marked(file: &mut (impl Read + Seek)) -> std::io::Result<bool> {
    let size = file.seek(SeekFrom::End(0))?;
    let length = LOOKED_AT.min(usize::try_from(size).unwrap_or(LOOKED_AT));
    let mut begin = vec![0; length];
    file.seek(SeekFrom::Start(0))?;
    file.read_exact(&mut begin)?;
    if has_label(&begin) {
        return Ok(true);
    }
    let mut end = vec![0; length];
    file.seek(SeekFrom::End(-i64::try_from(length).unwrap_or(0)))?;
    file.read_exact(&mut end)?;
    Ok(begin.iter().chain(&end).all(|byte| *byte == 0))
}

/// By the formats on disk: ext4's superblock at 1024 (magic at 56, label of 16 bytes at 120), XFS's
/// at 0 (`XFSB`, label of 12 bytes at 108), Btrfs's at 64 KiB (magic at 64, 256 bytes at 299).
fn has_label(begin: &[u8]) -> bool {
    let at = |offset: usize, length: usize| begin.get(offset..offset + length).unwrap_or_default();
    let is_label = |bytes: &[u8]| {
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        &bytes[..end] == LABEL.as_bytes()
    };
    const BTRFS: usize = 64 << 10;
    (at(1024 + 56, 2) == [0x53, 0xef] && is_label(at(1024 + 120, 16)))
        || (at(0, 4) == b"XFSB" && is_label(at(108, 12)))
        || (at(BTRFS + 64, 8) == b"_BHRfS_M" && is_label(at(BTRFS + 299, 256)))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn only_zeros_or_dynos_label_are_formatted() {
        let check = |change: &dyn Fn(&mut Vec<u8>), expected: bool| {
            let mut bytes = vec![0; 4 << 20];
            change(&mut bytes);
            assert_eq!(is_blank_or_marked(&mut Cursor::new(bytes)).expect("read"), expected);
        };
        let put = |bytes: &mut Vec<u8>, at: usize, what: &[u8]| {
            bytes[at..at + what.len()].copy_from_slice(what);
        };
        check(&|_| (), true);
        // Partition table, end of a RAID member, first page of a raw database.
        check(&|bytes| put(bytes, 510, &[0x55, 0xaa]), false);
        check(&|bytes| put(bytes, (4 << 20) - 65_536, b"\xfc\x4e\x2b\xa9"), false);
        check(&|bytes| put(bytes, 4096, b"rows"), false);
        let ext4 = |label: &'static [u8]| {
            move |bytes: &mut Vec<u8>| {
                put(bytes, 1024 + 56, &[0x53, 0xef]);
                put(bytes, 1024 + 120, label);
            }
        };
        check(&ext4(b"dyno"), true);
        check(&ext4(b"dynopia"), false);
        check(&ext4(b"home"), false);
        check(
            &|bytes| {
                [(0, &b"XFSB"[..]), (108, b"dyno")]
                    .map(|(at, what)| put(bytes, at, what))
                    .iter()
                    .for_each(drop)
            },
            true,
        );
        check(&|bytes| put(bytes, 108, b"dyno"), false);
    }

    #[test]
    fn a_small_device_is_read_whole() {
        assert!(is_blank_or_marked(&mut Cursor::new(vec![0; 512])).expect("read"));
        assert!(!is_blank_or_marked(&mut Cursor::new(vec![1; 512])).expect("read"));
        assert!(is_blank_or_marked(&mut Cursor::new(Vec::new())).expect("read"));
    }
}
