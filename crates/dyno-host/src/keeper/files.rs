//! Files in a server's folder, handled so that no other user can turn them against Dyno. The
//! folder, with options and logs, is Dyno's; servers write only in inner folders, in which Dyno
//! does not write. So no other user can swap a name that Dyno opens; it checks them nevertheless.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use dyno_units::way_to;
use rustix::fs::{CWD, FlockOperation, Gid, Mode, OFlags, Uid};

use super::account::RunAs;
use crate::error::{KeeperError, Result};

/// Read for the last lines of a log.
const TAIL_BYTES_MAX: u64 = 64 * 1024;

/// Opens a plain file of Dyno's user, not through a link; `flags` say what for.
pub(crate) fn open_own(path: &Path, flags: OFlags, mode: Mode) -> io::Result<File> {
    // If it is a pipe, do not wait for its other end.
    let safe = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(CWD, path, flags | safe, mode)?);
    let facts = file.metadata()?;
    if !facts.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if facts.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other(format!("it belongs to user {}", facts.uid())));
    }
    Ok(file)
}

/// A longer file is an error.
pub(super) fn read_own(path: &Path, bytes_max: u64) -> io::Result<(File, Vec<u8>)> {
    let file = open_own(path, OFlags::RDWR, Mode::empty())?;
    let mut bytes = Vec::new();
    (&file).take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::other(format!("it is longer than {bytes_max} bytes")));
    }
    Ok((file, bytes))
}

/// What another user may do with a new file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Its group reads it: an option file may hold secrets.
    Read,
    /// Its group runs it.
    Run,
    /// It alone reads it, as its owner.
    Own,
}

/// Makes a new file for Dyno's user and `other`.
pub(super) fn make(
    path: &Path,
    text: &mut dyn Read,
    access: Access,
    other: Option<RunAs>,
) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let mut file = open_own(path, flags, Mode::from_raw_mode(0o600))?;
    io::copy(text, &mut file)?;
    if let Some(RunAs { uid, gid }) = other {
        let owner = (access == Access::Own).then_some(Uid::from_raw(uid));
        rustix::fs::fchown(&file, owner, Some(Gid::from_raw(gid)))?;
    }
    let mode = match (access, other) {
        (Access::Read, Some(_)) => 0o640,
        (Access::Run, Some(_)) => 0o750,
        (Access::Run, None) => 0o700,
        _ => return Ok(()),
    };
    Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?)
}

/// New and private to `owner`, or else to Dyno's user.
pub(super) fn make_folder(path: &Path, owner: Option<RunAs>) -> io::Result<()> {
    rustix::fs::mkdirat(CWD, path, Mode::from_raw_mode(0o700))?;
    let Some(owner) = owner else { return Ok(()) };
    let folder = open_folder(path)?;
    Ok(rustix::fs::fchown(&folder, Some(Uid::from_raw(owner.uid)), Some(Gid::from_raw(owner.gid)))?)
}

/// Not through a link.
pub(super) fn open_folder(path: &Path) -> io::Result<File> {
    Ok(File::from(crate::storage::open_folder(CWD, path)?))
}

/// Lets the servers' user pass through to inner folders.
pub(super) fn let_through(path: &Path, user: RunAs) -> io::Result<()> {
    let folder = open_folder(path)?;
    rustix::fs::fchown(&folder, None, Some(Gid::from_raw(user.gid)))?;
    Ok(rustix::fs::fchmod(&folder, Mode::from_raw_mode(0o710))?)
}

pub(super) fn open_log(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE;
    open_own(path, flags, Mode::from_raw_mode(0o600))
}

/// If it is free, and the file still has this name.
pub(crate) fn take_lock(file: &File, path: &Path) -> bool {
    rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).is_ok() && is_at(file, path)
}

pub(super) fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(here), Ok(there)) => (here.dev(), here.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

/// Without the tokens that Dyno gave to servers; empty if unreadable.
pub fn last_lines(log: &Path, n_lines: usize) -> Vec<String> {
    let text = end_of(log, 0, TAIL_BYTES_MAX).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(n_lines)..];
    last.iter().map(|line| dyno_units::redact_tokens(line)).collect()
}

/// At most `bytes_max` from `begin` on.
pub(super) fn end_of(log: &Path, begin: u64, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut file = open_own(log, OFlags::RDONLY, Mode::empty())?;
    let end = file.metadata()?.len();
    file.seek(SeekFrom::Start(begin.max(end.saturating_sub(bytes_max))))?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

const NAME_BYTES_MAX: usize = 16;

/// Safe in a path and on a command line.
pub(super) fn tidy_name(name: &str) -> String {
    let tidy = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let tidy: String = name.chars().map(tidy).take(NAME_BYTES_MAX).collect();
    match tidy.trim_matches('-') {
        "" => "server".into(),
        tidy => tidy.into(),
    }
}

/// Makes the root; no other user may be able to change or replace it, only to pass through it.
pub(crate) fn make_root(root: &Path, is_passed_through: bool) -> Result<PathBuf> {
    let refuse =
        |why: String| KeeperError(format!("servers cannot be placed in {}: {why}", root.display()));
    // Owner files, servers and settings name it as text.
    let check_name = |path: &Path| match path.to_str() {
        Some(_) => Ok(()),
        None => Err(refuse("its path is not UTF-8; choose another".into())),
    };
    check_name(root)?;
    // Before anything is made: another user may control where it would be made.
    let me = rustix::process::geteuid().as_raw();
    let above = root.parent().unwrap_or(root);
    for (passed, facts) in way_to(above).map_err(|e| refuse(e.to_string()))? {
        // A link's mode says nothing; its owner can replace it.
        let mode = if facts.is_symlink() { 0o755 } else { facts.mode() };
        if let Some(why) = way_in(facts.uid(), mode, me) {
            let passed = passed.display();
            return Err(refuse(format!(
                "{passed} {why}, so they could put another folder in its place; choose another, \
                 such as one under /var/tmp"
            )));
        }
    }
    let mut builder = fs::DirBuilder::new();
    builder.mode(if is_passed_through { 0o711 } else { 0o700 });
    // Not its parents: a mistyped path must not fill another disk.
    match builder.create(root) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let above = root.parent().unwrap_or(root).display();
            return Err(refuse(format!("there is no folder {above}")));
        }
        made => made.map_err(|e| refuse(e.to_string()))?,
    }
    let facts = fs::symlink_metadata(root).map_err(|e| refuse(e.to_string()))?;
    if !facts.is_dir() {
        return Err(refuse("it is not an ordinary folder; choose another".into()));
    }
    if facts.uid() != me {
        return Err(refuse(format!("it belongs to user {}; choose another", facts.uid())));
    }
    if facts.mode() & 0o022 != 0 {
        let why = "other users can write to it; remove that permission with `chmod go-w`";
        return Err(refuse(why.into()));
    }
    // Paths in owner files and on command lines are compared.
    let root = fs::canonicalize(root).map_err(|e| refuse(e.to_string()))?;
    check_name(&root)?;
    Ok(root)
}

/// How users other than root and Dyno's could replace the contents of such a folder.
pub(super) fn way_in(owner: u32, mode: u32, me: u32) -> Option<String> {
    const STICKY: u32 = 0o1000;
    if owner != 0 && owner != me {
        return Some(format!("belongs to user {owner}"));
    }
    // In a sticky folder (/tmp) users cannot rename others' files.
    let is_open = mode & 0o022 != 0 && mode & STICKY == 0;
    is_open.then(|| format!("is writable by other users (its mode is {:o})", mode & 0o7777))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn last_lines_are_those_of_a_plain_file_of_ones_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        assert_eq!(last_lines(&path("log"), 2), Vec::<String>::new());
        fs::write(path("log"), "a\nb\nc\n").expect("written");
        assert_eq!(last_lines(&path("log"), 2), ["b", "c"]);
        let token = super::super::random_token().expect("there are random bytes");
        fs::write(path("log"), format!("connecting to group '{token}'\n")).expect("written");
        assert_eq!(last_lines(&path("log"), 2), ["connecting to group '***'"]);
        // Only the end of an endless line.
        let endless = "x".repeat(3 * TAIL_BYTES_MAX as usize);
        fs::write(path("log"), format!("a\n{endless}y")).expect("written");
        let found = last_lines(&path("log"), 2);
        assert_eq!(found.iter().map(String::len).collect::<Vec<_>>(), [TAIL_BYTES_MAX as usize]);
        assert!(found[0].ends_with("xy"));
        fs::write(path("log"), "a\nb\nc\n").expect("written");
        symlink(path("log"), path("link")).expect("a link");
        assert_eq!(last_lines(&path("link"), 2), Vec::<String>::new());
        let made = std::process::Command::new("mkfifo").arg(path("pipe")).status();
        assert!(made.expect("mkfifo runs").success());
        assert_eq!(last_lines(&path("pipe"), 2), Vec::<String>::new());
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(path("log"), Some(54_321), None).expect("given away");
            assert_eq!(last_lines(&path("log"), 2), Vec::<String>::new());
        }
    }

    #[test]
    fn nothing_is_written_through_a_link_or_over_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::write(path("precious"), "rows").expect("written");
        symlink(path("precious"), path("link")).expect("a link");
        symlink(path("missing"), path("dangling")).expect("a link");
        for name in ["precious", "link", "dangling"] {
            let made = make(&path(name), &mut &b"other"[..], Access::Read, None);
            assert!(made.is_err(), "{name}");
            assert!(make_folder(&path(name), None).is_err(), "{name}");
        }
        for name in ["link", "dangling"] {
            assert!(open_log(&path(name)).is_err(), "{name}");
            assert!(open_folder(&path(name)).is_err(), "{name}");
        }
        assert_eq!(fs::read(path("precious")).expect("readable"), b"rows");
        assert!(!path("missing").exists());
    }

    #[test]
    fn a_long_file_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        fs::write(&path, "12345").expect("written");
        assert_eq!(read_own(&path, 5).expect("read").1, b"12345");
        assert!(read_own(&path, 4).is_err());
    }
}
