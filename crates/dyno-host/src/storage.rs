//! The storage of a folder: its filesystem, its disk, the bytes it takes and the bytes left.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// Bytes that a folder takes on disk, everything in it included: allocated blocks, so that holes
/// in sparse files do not count. A file with several names counts once; symbolic links are not
/// followed, even if one replaces a folder meanwhile; what vanishes meanwhile
/// does not count. A plain file is measured as well.
pub fn folder_bytes(path: &Path) -> io::Result<u64> {
    // An inode with several names is encountered several times.
    let mut met = BTreeSet::new();
    let mut n_bytes = 0;
    visit(path, &mut |facts, _| n_bytes += disk_bytes(facts, &mut met))?;
    Ok(n_bytes)
}

/// The lengths of all regular files in a folder, holes included. Links and what vanishes are treated as
/// by [`folder_bytes`].
pub(crate) fn folder_length(path: &Path) -> io::Result<u64> {
    let mut n_bytes = 0;
    visit(path, &mut |facts, _| {
        if FileType::from_raw_mode(facts.st_mode) == FileType::RegularFile {
            n_bytes += u64::try_from(facts.st_size).unwrap_or(0);
        }
    })?;
    Ok(n_bytes)
}

/// Shows the regular files in a folder, opened for reading, with their lengths. What cannot be opened is
/// left out, like links and what vanishes.
pub(crate) fn visit_files(path: &Path, see: &mut dyn FnMut(&File, u64)) -> io::Result<()> {
    visit(path, &mut |facts, at| {
        let Some((folder, name)) = at else { return };
        if FileType::from_raw_mode(facts.st_mode) != FileType::RegularFile {
            return;
        }
        // If it has become a pipe by now, opening it does not wait for its other end.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        if let Ok(file) = rustix::fs::openat(folder, name, flags, Mode::empty()) {
            see(&File::from(file), u64::try_from(facts.st_size).unwrap_or(0));
        }
    })
}

/// What an entry is, and its name in an open folder; the topmost one has none.
type See<'a> = dyn FnMut(&Stat, Option<(BorrowedFd<'_>, &CStr)>) + 'a;

/// Shows the facts of a folder and of everything in it, by descriptors.
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

/// Opens a folder by its name in another one, not through a symbolic link.
pub(crate) fn open_folder(
    parent: impl AsFd,
    name: impl rustix::path::Arg,
) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

/// Bytes that Dyno could still write on the filesystem of this path, which must exist.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let facts = rustix::fs::statvfs(path)?;
    Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
}

/// Bytes that the filesystem of this path, which must exist, could hold in all.
pub fn size_bytes(path: &Path) -> io::Result<u64> {
    let facts = rustix::fs::statvfs(path)?;
    Ok(facts.f_blocks.saturating_mul(facts.f_frsize))
}

fn disk_bytes(facts: &Stat, met: &mut BTreeSet<(u64, u64)>) -> u64 {
    let is_folder = FileType::from_raw_mode(facts.st_mode) == FileType::Directory;
    let is_first = is_folder || facts.st_nlink < 2 || met.insert((facts.st_dev, facts.st_ino));
    // `stat` counts in blocks of 512 bytes, whatever the filesystem's own.
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

/// The path itself, or the nearest of its parents that exists, without symbolic links.
pub(crate) fn nearest_existing(path: &Path) -> Option<PathBuf> {
    path.ancestors().find_map(|parent| fs::canonicalize(parent).ok())
}

/// A mounted filesystem, as listed in `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// Major and minor number: `8:1`.
    pub(crate) device_number: String,
    pub(crate) point: PathBuf,
    /// Options of the mount and of the filesystem.
    pub(crate) options: String,
    /// Type of the filesystem: `ext4`.
    pub(crate) filesystem: String,
    /// Mount source: `/dev/sda1`.
    pub(crate) device: String,
}

impl Mount {
    fn parse(line: &str) -> Option<Mount> {
        // Between the two halves is a number of optional fields that ends with a dash.
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

    /// All mounts, in the order in which they were made.
    pub(crate) fn all(mountinfo: &str) -> Vec<Mount> {
        mountinfo.lines().filter_map(Mount::parse).collect()
    }

    /// Those at this very path; each hides the ones before it.
    pub(crate) fn at(mountinfo: &str, path: &Path) -> Vec<Mount> {
        Mount::all(mountinfo).into_iter().filter(|mount| mount.point == path).collect()
    }

    /// The mount that holds this absolute path.
    pub(crate) fn of(mountinfo: &str, path: &Path) -> Option<Mount> {
        mountinfo
            .lines()
            .filter_map(Mount::parse)
            .filter(|mount| path.starts_with(&mount.point))
            // Of two on the same point the later one hides the other, and `max` takes the last.
            .max_by_key(|mount| mount.point.components().count())
    }
}

/// The kernel writes a blank as `\040`, and likewise tabs, ends of line and backslashes.
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
    /// Kernel name of the disk: `sda`, `nvme0n1`.
    pub(crate) name: Option<String>,
    pub(crate) model: Option<String>,
    /// The one in force: `mq-deadline`.
    pub(crate) scheduler: Option<String>,
    pub(crate) is_rotational: Option<bool>,
    /// `write back` if a sync must flush the disk's own cache, else `write through`.
    pub(crate) write_cache: Option<String>,
    /// Of a loop device, the file that it shows as a disk.
    pub(crate) loop_file: Option<String>,
    /// Of a loop device, whether it goes past the page cache of that file.
    pub(crate) is_loop_direct: Option<bool>,
}

impl Disk {
    /// Finds the disk of a mount under `/sys`; all unknown for filesystems without one.
    pub(crate) fn of(sys_root: &Path, mount: &Mount) -> Disk {
        let by_number = sys_root.join("dev/block").join(&mount.device_number);
        let by_name = mount.device.strip_prefix("/dev/").map(|name| {
            // Filesystems such as btrfs have a number of their own, but name a device.
            sys_root.join("class/block").join(name)
        });
        let Some(folder) = std::iter::once(by_number)
            .chain(by_name)
            .find_map(|folder| fs::canonicalize(folder).ok())
        else {
            return Disk::default();
        };
        // A partition lies in the folder of its disk, which has the queue.
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

/// The word in square brackets, by which the kernel marks the choice in force; else all of it.
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
        // Each name has the length of its file; links and folders have none.
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
