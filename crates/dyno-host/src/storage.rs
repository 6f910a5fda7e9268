//! The storage of a folder: filesystem, disk, bytes used and left.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::error::{OrKeeper, Result};

/// Allocated bytes of a folder or file, without holes; a file with several names counts once. Links
/// are not followed, even if one replaces a folder meanwhile; vanished files do not count.
pub fn folder_bytes(path: &Path) -> io::Result<u64> {
    // For inodes with several names.
    let mut met = BTreeSet::new();
    let mut n_bytes = 0;
    visit(path, &mut |facts, _| n_bytes += disk_bytes(facts, &mut met))?;
    Ok(n_bytes)
}

/// Lengths of all regular files, holes included; links and vanished files as for [`folder_bytes`].
pub(crate) fn folder_length(path: &Path) -> io::Result<u64> {
    let mut n_bytes = 0;
    visit(path, &mut |facts, _| {
        if FileType::from_raw_mode(facts.st_mode) == FileType::RegularFile {
            n_bytes += u64::try_from(facts.st_size).unwrap_or(0);
        }
    })?;
    Ok(n_bytes)
}

/// Regular files, opened for reading, with their lengths. Files that cannot be opened are left out.
pub(crate) fn visit_files(path: &Path, see: &mut dyn FnMut(&File, u64)) -> io::Result<()> {
    visit(path, &mut |facts, at| {
        let Some((folder, name)) = at else { return };
        if FileType::from_raw_mode(facts.st_mode) != FileType::RegularFile {
            return;
        }
        if let Ok(file) = open_file(folder, name) {
            see(&file, u64::try_from(facts.st_size).unwrap_or(0));
        }
    })
}

/// Facts, and the name in an open folder; `None` for the topmost.
type See<'a> = dyn FnMut(&Stat, Option<(BorrowedFd<'_>, &CStr)>) + 'a;

/// The folder and everything in it, by descriptors.
fn visit(path: &Path, see: &mut See<'_>) -> io::Result<()> {
    let facts = rustix::fs::lstat(path)?;
    see(&facts, None);
    let mut open = Vec::new();
    if FileType::from_raw_mode(facts.st_mode) == FileType::Directory {
        open.push(open_folder(CWD, path)?);
    }
    while let Some(folder) = open.pop() {
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let facts = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW);
            let Some(facts) = unless_gone(facts)? else { continue };
            see(&facts, Some((folder.as_fd(), name)));
            if FileType::from_raw_mode(facts.st_mode) == FileType::Directory {
                open.extend(unless_gone(open_folder(&folder, name))?);
            }
        }
    }
    Ok(())
}

/// Not through a symbolic link.
pub(crate) fn open_folder(parent: impl AsFd, name: impl Arg) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

/// Not through a symbolic link. It may have become a pipe by now: does not wait.
pub(crate) fn open_file(parent: impl AsFd, name: impl Arg) -> rustix::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty()).map(File::from)
}

/// For Dyno, on the filesystem of an existing path.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let facts = rustix::fs::statvfs(path)?;
    Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
}

/// Of the filesystem of an existing path.
pub fn size_bytes(path: &Path) -> io::Result<u64> {
    let facts = rustix::fs::statvfs(path)?;
    Ok(facts.f_blocks.saturating_mul(facts.f_frsize))
}

fn disk_bytes(facts: &Stat, met: &mut BTreeSet<(u64, u64)>) -> u64 {
    let is_folder = FileType::from_raw_mode(facts.st_mode) == FileType::Directory;
    let is_first = is_folder || facts.st_nlink < 2 || met.insert((facts.st_dev, facts.st_ino));
    // `stat` counts blocks of 512 bytes.
    if is_first { facts.st_blocks.unsigned_abs() * 512 } else { 0 }
}

/// `None` if it no longer exists, or is no longer a folder.
fn unless_gone<T>(result: rustix::io::Result<T>) -> rustix::io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The path or its nearest parent, without symbolic links.
pub(crate) fn nearest_existing(path: &Path) -> Option<PathBuf> {
    path.ancestors().find_map(|parent| fs::canonicalize(parent).ok())
}

/// From `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// `8:1`.
    pub(crate) device_number: String,
    pub(crate) point: PathBuf,
    /// Of the mount and of the filesystem.
    pub(crate) options: String,
    pub(crate) filesystem: String,
    pub(crate) device: String,
}

impl Mount {
    fn parse(line: &str) -> Option<Mount> {
        // A number of optional fields ends with a dash.
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ');
        let device_number = left.nth(2)?.to_owned();
        let point = PathBuf::from(unescaped(left.nth(1)?));
        let mount_options = left.next()?;
        let mut right = right.split(' ');
        let (filesystem, device) = (right.next()?.to_owned(), unescaped(right.next()?));
        let mut options: Vec<&str> = mount_options.split(',').collect();
        for option in right.next().unwrap_or_default().split(',') {
            if !option.is_empty() && !options.contains(&option) {
                options.push(option);
            }
        }
        Some(Mount { device_number, point, options: options.join(","), filesystem, device })
    }

    /// In the order in which they were made.
    pub(crate) fn all(mountinfo: &str) -> Vec<Mount> {
        mountinfo.lines().filter_map(Mount::parse).collect()
    }

    /// Each hides the ones before it.
    pub(crate) fn at(mountinfo: &str, path: &Path) -> Vec<Mount> {
        Mount::all(mountinfo).into_iter().filter(|mount| mount.point == path).collect()
    }

    /// That holds this absolute path.
    pub(crate) fn of(mountinfo: &str, path: &Path) -> Option<Mount> {
        let mounts = Mount::all(mountinfo).into_iter();
        let mounts = mounts.filter(|mount| path.starts_with(&mount.point));
        // `max` takes the last, which hides others on the same point.
        mounts.max_by_key(|mount| mount.point.components().count())
    }
}

/// Blanks are written as `\040`; likewise tabs, line ends and backslashes.
pub(crate) fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => {
                plain.push(char::from(code));
                plain.push_str(&part[3..]);
            }
            None => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Disk {
    pub(crate) name: Option<String>,
    pub(crate) model: Option<String>,
    /// `mq-deadline`.
    pub(crate) scheduler: Option<String>,
    pub(crate) is_rotational: Option<bool>,
    /// `write back` if a sync has to flush the disk's cache, else `write through`.
    pub(crate) write_cache: Option<String>,
    /// The file behind a loop device.
    pub(crate) loop_file: Option<String>,
    /// Whether a loop device bypasses that file's page cache.
    pub(crate) is_loop_direct: Option<bool>,
}

impl Disk {
    /// All unknown for filesystems without a disk.
    pub(crate) fn of(sys_root: &Path, mount: &Mount) -> Disk {
        let by_number = sys_root.join("dev/block").join(&mount.device_number);
        let by_name = mount.device.strip_prefix("/dev/").map(|name| {
            // Filesystems such as btrfs have their own number, but name a device.
            sys_root.join("class/block").join(name)
        });
        let Some(folder) = std::iter::once(by_number)
            .chain(by_name)
            .find_map(|folder| fs::canonicalize(folder).ok())
        else {
            return Disk::default();
        };
        // A partition is in its disk's folder, which has the queue.
        let disk = folder.ancestors().take(2).find(|disk| disk.join("queue").is_dir());
        let Some(disk) = disk else { return Disk::default() };
        let read = |path: &str| {
            let text = fs::read_to_string(disk.join(path)).ok()?;
            Some(text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        Disk {
            name: disk.file_name().map(|name| name.to_string_lossy().into_owned()),
            model: read("device/model"),
            scheduler: read("queue/scheduler").map(|text| chosen(&text).to_owned()),
            is_rotational: read("queue/rotational").map(|text| text == "1"),
            write_cache: read("queue/write_cache"),
            loop_file: read("loop/backing_file"),
            is_loop_direct: read("loop/dio").map(|text| text == "1"),
        }
    }
}

/// Of the kernel: in `/proc/sys`, `/sys` or a control group.
pub(crate) fn write_setting(path: &Path, value: &str) -> Result<()> {
    fs::write(path, value).or_keeper(|| cannot_be_written(path, value))
}

pub(crate) fn cannot_be_written(path: &Path, value: &str) -> String {
    format!("`{value}` cannot be written to {}", path.display())
}

/// The word in square brackets (the choice in force), else all.
pub(crate) fn chosen(text: &str) -> &str {
    let bracketed = || text.split_once('[')?.1.split_once(']').map(|(word, _)| word);
    bracketed().unwrap_or(text.trim())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_folder_is_measured_in_blocks_and_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let before = folder_bytes(folder.path()).expect("measured");
        fs::create_dir(path("sub")).expect("made");
        fs::write(path("sub/rows"), vec![7_u8; 1 << 20]).expect("written");
        let with_rows = folder_bytes(folder.path()).expect("measured");
        assert!(with_rows >= before + (1 << 20), "{before} then {with_rows}");

        fs::hard_link(path("sub/rows"), path("again")).expect("a link");
        symlink("/usr", path("link")).expect("a link");
        fs::File::create(path("sparse")).expect("made").set_len(1 << 30).expect("grown");
        let with_links = folder_bytes(folder.path()).expect("measured");
        assert!(with_links < with_rows + (64 << 10), "{with_rows} then {with_links}");
        assert!(folder_bytes(&path("sub/rows")).expect("measured") >= 1 << 20);
        assert!(folder_bytes(&path("missing")).is_err());
        // By name; links and folders have none.
        assert_eq!(folder_length(folder.path()).expect("measured"), (2 << 20) + (1 << 30));
    }

    #[test]
    fn free_bytes_are_of_the_filesystem() {
        let free = free_bytes(Path::new("/")).expect("it can be read");
        assert!(size_bytes(Path::new("/")).expect("it can be read") >= free);
        assert!(free_bytes(Path::new("/no/such")).is_err());
    }

    const MOUNTS: &str = "\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
28 27 0:25 / /data rw,nosuid shared:7 master:1 - tmpfs none rw,size=4k
40 27 8:17 / /data\\040two rw,noatime - xfs /dev/sdb1 rw,attr2
41 27 8:33 / /data rw - btrfs /dev/sdc1 rw
broken line
";

    #[test]
    fn the_mount_of_a_path_is_the_longest_and_last() {
        let check = |path: &str, expected: (&str, &str, &str)| {
            let mount = Mount::of(MOUNTS, Path::new(path)).expect("a mount");
            let found = (mount.filesystem.as_str(), mount.device.as_str(), mount.options.as_str());
            assert_eq!(found, expected, "{path}");
        };
        check("/var/tmp", ("ext4", "/dev/vda", "rw,relatime,discard"));
        check("/data/x", ("btrfs", "/dev/sdc1", "rw"));
        check("/data two/x", ("xfs", "/dev/sdb1", "rw,noatime,attr2"));
        check("/database", ("ext4", "/dev/vda", "rw,relatime,discard"));
        assert_eq!(Mount::of("", Path::new("/")), None);
    }

    fn write_at(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("made");
        fs::write(path, text).expect("written");
    }

    #[test]
    fn a_disk_is_found_for_its_partition() {
        let sys = tempfile::tempdir().expect("a folder");
        let make = |path: &str| fs::create_dir_all(sys.path().join(path)).expect("made");
        make("devices/sdb/sdb1");
        make("devices/sdb/queue");
        make("devices/sdb/device");
        make("dev/block");
        make("class/block");
        let write = |path: &str, text: &str| {
            fs::write(sys.path().join("devices/sdb").join(path), text).expect("written");
        };
        write("queue/scheduler", "none [mq-deadline] kyber\n");
        write("queue/rotational", "0\n");
        write("device/model", "Fast Disk   \n");
        symlink("../../devices/sdb/sdb1", sys.path().join("dev/block/8:17")).expect("a link");
        symlink("../../devices/sdb/sdb1", sys.path().join("class/block/sdb1")).expect("a link");
        write_at(sys.path(), "devices/loop0/queue/rotational", "0\n");
        write_at(sys.path(), "devices/loop0/loop/backing_file", "/data/x.img\n");
        write_at(sys.path(), "devices/loop0/loop/dio", "1\n");
        symlink("../../devices/loop0", sys.path().join("dev/block/7:0")).expect("a link");
        let mount = |number: &str, device: &str| Mount {
            device_number: number.into(),
            point: "/".into(),
            options: "rw".into(),
            filesystem: "xfs".into(),
            device: device.into(),
        };
        let expected = Disk {
            name: Some("sdb".into()),
            model: Some("Fast Disk".into()),
            scheduler: Some("mq-deadline".into()),
            is_rotational: Some(false),
            write_cache: None,
            loop_file: None,
            is_loop_direct: None,
        };
        assert_eq!(Disk::of(sys.path(), &mount("8:17", "/dev/sdb1")), expected);
        assert_eq!(Disk::of(sys.path(), &mount("0:40", "/dev/sdb1")), expected);
        assert_eq!(Disk::of(sys.path(), &mount("0:41", "tmpfs")), Disk::default());
        let image = Disk::of(sys.path(), &mount("7:0", "/dev/loop0"));
        assert_eq!(
            (image.loop_file.as_deref(), image.is_loop_direct),
            (Some("/data/x.img"), Some(true))
        );
    }

    #[test]
    fn the_choice_stands_in_brackets() {
        let check = |text: &str, expected: &str| assert_eq!(chosen(text), expected, "{text}");
        check("always [madvise] never\n", "madvise");
        check("none\n", "none");
        check("[", "[");
        check("", "");
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_parsers_panic(text in "[ a-é0-9/\\\\:\\[\\]-]{0,60}") {
            let _ = Mount::parse(&text);
            let _ = unescaped(&text);
            let _ = chosen(&text);
        }
    }
}
