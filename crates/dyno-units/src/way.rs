//! The way to a file: its folders and links, and whether another user planted one of them.
//! In a folder open to everybody (`/tmp`), a name proves nothing: anybody may have made it first.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use crate::ByteCount;

/// Opens a file that somebody names; links are followed. Devices have no end, pipes wait for a writer, and files of the
/// kernel do either, or have effects when they are read. Whose file it is has to be known to whoever names it; a name that
/// a study or a script has is for [`open_unplanted`].
pub fn open_named(path: &Path) -> Result<File> {
    // Opening one of the kernel's may have effects, too. What was opened is looked at again: the name may lead elsewhere.
    refuse_kernel(&rustix::fs::statfs(path)?)?;
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    refuse_kernel(&rustix::fs::fstatfs(&file)?)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(Error::other("it is not a regular file")),
    }
}

/// File systems that show the kernel's own state, or pass on what programs answer, by the numbers of `linux/magic.h`.
const KERNEL: [u32; 23] = [
    0x0000_9fa0, // proc
    0x6265_6572, // sysfs
    0x7472_6163, // tracefs
    0x6462_6720, // debugfs
    0x7363_6673, // securityfs
    0x6265_6570, // configfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x0765_5821, // resctrl
    0xde5e_81e4, // efivarfs
    0x6165_676c, // pstore
    0xcafe_4a11, // bpf
    0xf97c_ff8c, // selinuxfs
    0x4341_5d53, // smackfs
    0x4249_4e4d, // binfmt_misc
    0x6e73_6673, // nsfs
    0x5049_4446, // pidfs
    0x1980_0202, // mqueue
    0x6759_6969, // rpc_pipefs
    0x6e66_7364, // nfsd
    0x6573_5543, // fusectl
    0xabba_1974, // xenfs
    0x0000_0187, // autofs
];

fn refuse_kernel(of: &rustix::fs::StatFs) -> Result<()> {
    match KERNEL.contains(&(of.f_type as u32)) {
        true => Err(Error::other("it is a file of the kernel, which may have no end")),
        false => Ok(()),
    }
}

/// As [`open_named`], a file that a study or a script names: none that another user has put where everybody may, because
/// what is in it runs, or decides a result.
pub fn open_unplanted(path: &Path) -> Result<File> {
    let file = open_named(path)?;
    let (way, opened) = (way_to(path)?, file.metadata()?);
    refuse(&way)?;
    // Nobody has put it there, and taken it away since.
    let is_there = |(_, facts): &(PathBuf, Metadata)| {
        (facts.dev(), facts.ino()) == (opened.dev(), opened.ino())
    };
    match way.last().is_some_and(is_there) {
        true => Ok(file),
        false => Err(Error::other("it was replaced while it was opened")),
    }
}

/// The whole of what [`open_named`] opens, of at most `most` bytes.
pub fn read_named(path: &Path, most: u64) -> Result<Vec<u8>> {
    whole(open_named(path)?, most)
}

/// The whole of what [`open_unplanted`] opens, of at most `most` bytes.
pub fn read_unplanted(path: &Path, most: u64) -> Result<Vec<u8>> {
    whole(open_unplanted(path)?, most)
}

fn whole(file: File, most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let n_read = file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match n_read as u64 > most {
        true => Err(Error::other(format!("it is larger than {}", ByteCount(most)))),
        false => Ok(bytes),
    }
}

/// As in the kernel.
const LINKS_MOST: usize = 40;

/// The folders and links passed on the way to `path`, in order, and what is there. Ends early where
/// the next name does not exist. Fails if links lead in circles.
pub fn way_to(path: &Path) -> Result<Vec<(PathBuf, Metadata)>> {
    let mut at = PathBuf::from("/");
    let mut way = vec![(at.clone(), fs::symlink_metadata(&at)?)];
    let mut n_links = 0;
    let mut left = parts_of(&std::path::absolute(path)?);
    while let Some(part) = left.pop() {
        if part == ".." {
            at.pop();
            continue;
        }
        let next = at.join(part);
        let facts = match fs::symlink_metadata(&next) {
            Err(error) if error.kind() == ErrorKind::NotFound => break,
            facts => facts?,
        };
        if facts.is_symlink() {
            n_links += 1;
            if n_links > LINKS_MOST {
                return Err(Error::other(format!("{} leads in circles", path.display())));
            }
            let target = fs::read_link(&next)?;
            left.extend(parts_of(&target));
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
        } else {
            at.clone_from(&next);
        }
        way.push((next, facts));
    }
    Ok(way)
}

/// The last one first.
fn parts_of(path: &Path) -> Vec<OsString> {
    let name = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(name).collect()
}

/// A file on the way in a folder open to everybody, and its owner if neither `user` nor root.
pub fn planted_on_way(path: &Path, user: u32) -> Result<Option<(PathBuf, u32)>> {
    Ok(planted(&way_to(path)?, user))
}

/// Fails if another user has put the program of a command where everybody may, or a regular file that it is given: a shell
/// runs that. The program is looked for as the system does. What a path does not lead to yet somebody could still put there.
pub fn refuse_planted(command: &[String]) -> Result<()> {
    let Some((program, arguments)) = command.split_first() else { return Ok(()) };
    if let Some(found) = program_of(program) {
        let way = way_to(&found)?;
        refuse(&way)?;
        if !way.last().is_some_and(|(_, facts)| facts.is_file()) {
            return Err(rustix::io::Errno::NOENT.into());
        }
    }
    for argument in arguments.iter().filter(|argument| argument.contains('/')) {
        // Text with a slash is rarely a path, and need not lead anywhere.
        let Ok(way) = way_to(Path::new(argument)) else { continue };
        if way.last().is_some_and(|(_, facts)| facts.is_file()) {
            refuse(&way)?;
        }
    }
    Ok(())
}

fn refuse(way: &[(PathBuf, Metadata)]) -> Result<()> {
    match planted(way, rustix::process::geteuid().as_raw()) {
        None => Ok(()),
        Some((found, user)) => Err(Error::other(format!(
            "{} belongs to user {user} and lies in a folder that everybody may write to, so that this user decides what \
             is in it; copy it to a folder of your own",
            found.display()
        ))),
    }
}

/// Where the system finds a program; none if nowhere.
#[expect(clippy::disallowed_methods, reason = "the system looks there, whoever asks it")]
fn program_of(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(program.into());
    }
    let is_program = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.mode() & 0o111 != 0)
    };
    // The default of the system's library.
    let folders = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    std::env::split_paths(&folders).map(|folder| folder.join(program)).find(is_program)
}

fn planted(way: &[(PathBuf, Metadata)], user: u32) -> Option<(PathBuf, u32)> {
    let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
    let mounts = users_of_fuse(&String::from_utf8_lossy(&mounts));
    let is_foreign = |owner: u32| owner != 0 && owner != user;
    let owner_of = |facts: &Metadata| {
        let mount = mounts.iter().find(|(device, by)| *device == facts.dev() && is_foreign(*by));
        mount.map_or(facts.uid(), |(_, by)| *by)
    };
    let owned = way.iter().map(|(passed, facts)| (passed, owner_of(facts)));
    let mut foreign = owned.filter(|(_, owner)| is_foreign(*owner));
    let found = foreign.find(|(passed, _)| passed.parent().is_some_and(is_open_to_all));
    found.map(|(passed, owner)| (passed.clone(), owner))
}

/// The devices of FUSE file systems, and who has mounted each: its program decides which owners files seem to have.
fn users_of_fuse(mounts: &str) -> Vec<(u64, u32)> {
    let of_line = |line: &str| {
        let (mount, file_system) = line.split_once(" - ")?;
        let (major, minor) = mount.split(' ').nth(2)?.split_once(':')?;
        let device = rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?);
        let mut words = file_system.split(' ');
        let is_fuse = words.next().is_some_and(|kind| kind.starts_with("fuse"));
        let options = words.last().filter(|_| is_fuse)?.split(',');
        let user = options.filter_map(|option| option.strip_prefix("user_id=")).next_back()?;
        Some((device, user.parse().ok()?))
    };
    mounts.lines().filter_map(of_line).collect()
}

fn is_open_to_all(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|facts| facts.mode() & 0o002 != 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    #[test]
    fn a_named_file_is_regular_and_has_an_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        fs::write(&path, "abc").expect("written");
        symlink("file", folder.path().join("link")).expect("made");
        assert_eq!(read_named(&folder.path().join("link"), 3).expect("it is read"), b"abc");
        let pipe = folder.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).expect("made");
        let check = |path: &Path, most: u64, expected: &str| {
            let refused = read_named(path, most).expect_err("it is refused").to_string();
            assert_eq!(refused, expected, "{}", path.display());
        };
        check(&pipe, 3, "it is not a regular file");
        check(Path::new("/dev/zero"), 3, "it is not a regular file");
        check(folder.path(), 3, "it is not a regular file");
        let of_kernel = "it is a file of the kernel, which may have no end";
        for name in ["/proc/self/environ", "/proc/self", "/proc/sys/kernel/ostype", "/sys"] {
            check(Path::new(name), 3, of_kernel);
        }
        symlink("/proc/version", folder.path().join("version")).expect("made");
        check(&folder.path().join("version"), 3, of_kernel);
        // A descriptor's name is there, too, and leads to what it is open for.
        let open = File::open(&path).expect("opened");
        let name = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&open));
        assert_eq!(read_named(Path::new(&name), 3).expect("it is read"), b"abc");
        check(&path, 2, "it is larger than 2 B");
        assert_eq!(read_named(&path, u64::MAX).expect("it is read"), b"abc");
    }

    #[test]
    fn the_way_passes_links_and_what_they_lead_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let bench = fs::canonicalize(&folder).expect("it is there");
        let path = |name: &str| bench.join(name);
        fs::create_dir_all(path("real/inner")).expect("made");
        symlink("real", path("link")).expect("made");
        symlink(path("link/inner"), path("real/other")).expect("made");
        symlink("round", path("round")).expect("made");
        let check = |name: &str, expected: &[&str]| {
            let way = way_to(&path(name)).expect("it can be examined");
            let passed: Vec<_> =
                way.iter().filter_map(|(at, _)| at.strip_prefix(&bench).ok()).collect();
            let expected: Vec<&Path> = expected.iter().map(Path::new).collect();
            assert_eq!(passed, expected, "{name}");
        };
        check("real/inner", &["", "real", "real/inner"]);
        check("link/inner/new/file", &["", "link", "real", "real/inner"]);
        check("real/../link/inner", &["", "real", "link", "real", "real/inner"]);
        let of_bench: Vec<&str> = vec!["", "real", "real/other"];
        check("real/other", &[of_bench, vec!["", "link", "real", "real/inner"]].concat());
        assert!(way_to(&path("round/x")).is_err());
    }

    #[test]
    fn a_fuse_file_system_belongs_to_whoever_mounted_it() {
        let mounts = "24 1 259:2 / / rw - ext4 /dev/root rw,user_id=7\n\
            98 24 0:51 / /tmp/mnt rw,nosuid shared:53 - fuse.x x:/ rw,user_id=1001,group_id=1,allow_other\n\
            99 24 0:53 / /srv rw - fuse zfs rw,user_id=0,group_id=0\nnonsense\n\
            97 24 0:52 / /sys/fs/fuse/connections rw - fusectl fusectl rw\n";
        let device = |minor| rustix::fs::makedev(0, minor);
        assert_eq!(users_of_fuse(mounts), [(device(51), 1001), (device(53), 0)]);
    }

    #[test]
    fn what_others_put_into_an_open_folder_is_not_run() {
        let bench = tempfile::tempdir().expect("a folder");
        let open = bench.path().join("open");
        fs::create_dir(&open).expect("made");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).expect("set");
        let script = open.join("probe.sh");
        fs::write(&script, "#!/bin/sh\n").expect("written");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("set");
        let script = script.display().to_string();
        let check = |words: &[&str], expected: Option<&str>| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let refused = refuse_planted(&words).err().map(|error| error.to_string());
            match (&refused, expected) {
                (Some(refused), Some(expected)) if refused.contains(expected) => {}
                (None, None) => {}
                _ => panic!("{words:?}: {refused:?}"),
            }
        };
        check(&[], None);
        check(&[&script], None);
        check(&["sh", &script], None);
        check(&["no-program-has-this-name"], None);
        check(&["/nowhere/at/all"], Some("No such file"));
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can give things away");
            return;
        }
        chown(&script, Some(54_321), None).expect("given away");
        check(&[&script], Some("probe.sh belongs to user 54321"));
        check(&["sh", &script], Some("probe.sh belongs to user 54321"));
        // A word of the shell, and a folder, run nothing.
        check(&["sh", "-c", &format!("cat {script}")], None);
        chown(&open, Some(54_321), None).expect("given away");
        check(&["ls", &open.display().to_string()], None);
    }

    #[test]
    fn what_others_put_into_an_open_folder_is_found() {
        let bench = tempfile::tempdir().expect("a folder");
        let path = |name: &str| bench.path().join(name);
        let me = fs::metadata(bench.path()).expect("there").uid();
        fs::create_dir_all(path("open/theirs/inner")).expect("made");
        fs::create_dir_all(path("closed/theirs")).expect("made");
        symlink(path("closed"), path("open/link")).expect("made");
        fs::set_permissions(path("open"), fs::Permissions::from_mode(0o1777)).expect("set");
        // All of this belongs to others than this user.
        let other = me + 1;
        let found = planted_on_way(&path("open/theirs/inner"), me).expect("examined");
        assert_eq!(found, None);
        if me != 0 {
            let found = planted_on_way(&path("open/theirs/inner"), other).expect("examined");
            assert!(found.is_some());
            eprintln!("skipped: only root can give things away");
            return;
        }
        for name in ["open/theirs", "closed/theirs"] {
            chown(path(name), Some(54_321), None).expect("given away");
        }
        std::os::unix::fs::lchown(path("open/link"), Some(54_321), None).expect("given away");
        let check = |name: &str, expected: Option<&str>| {
            let found = planted_on_way(&path(name), me).expect("examined");
            let expected = expected.map(|name| (path(name), 54_321));
            assert_eq!(found, expected, "{name}");
        };
        check("open/theirs/inner/new", Some("open/theirs"));
        check("open/new", None);
        check("open/link/x", Some("open/link"));
        check("closed/theirs", None);
        fs::write(path("open/theirs/inner/file"), "x").expect("written");
        fs::write(path("closed/theirs/file"), "x").expect("written");
        assert_eq!(read_unplanted(&path("closed/theirs/file"), 1).expect("it is read"), b"x");
        assert_eq!(read_named(&path("open/theirs/inner/file"), 1).expect("it is read"), b"x");
        let why =
            read_unplanted(&path("open/theirs/inner/file"), 1).expect_err("planted").to_string();
        assert!(why.contains("open/theirs belongs to user 54321 and lies in a folder"), "{why}");
        assert_eq!(planted_on_way(&path("open/theirs"), 54_321).expect("examined"), None);
    }
}
