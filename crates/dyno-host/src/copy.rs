//! Copies a folder of database files with its layout on disk, which affects a server: holes stay
//! holes, and allocated space (a redo log not written yet) is allocated. Blocks are never shared
//! with the original (`cp --reflink`): the first write to a shared block costs more.

use std::ffi::{CStr, CString, OsStr};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::{fs, io};

use rustix::fs::{
    Advice, AtFlags, CWD, Dir, FallocateFlags, FileType, Gid, Mode, OFlags, SeekFrom, Stat, Uid,
};
use rustix::io::Errno;

use crate::RunAs;
use crate::storage::{open_file, open_folder};

type Result<T = (), E = CopyError> = std::result::Result<T, E>;

type OpenFolder<'a> = (&'a OwnedFd, &'a Path);

/// Between two checks of whether to go on.
const PIECE: usize = 1 << 20;

/// For reserved space of the original.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyLayout {
    #[default]
    AsOriginal,
    /// Only writes, as `tar` and `cp` do: some filesystems do not compress reserved space (btrfs).
    Written,
}

/// What there is of the copy stays.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error("copying was stopped")]
    Stopped,
    #[error("{0}")]
    Failed(String),
}

/// Whether to wait for the disk, and to keep the original in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CopyUse {
    /// Without waiting; the original stays in memory.
    AtOnce,
    /// Memory is for the copy: the original is not read again soon.
    Lasting,
}

/// Copies a folder to `to`, which must not exist, and waits for the disk. The complete copy is
/// given to `owner`, or else stays Dyno's user's; permissions are kept. Refuses all but plain files
/// and folders of the folder's own user. Ends once `is_stopped`, asked repeatedly, is true.
pub fn copy_folder(
    from: &Path,
    to: &Path,
    owner: Option<RunAs>,
    layout: CopyLayout,
    is_stopped: &dyn Fn() -> bool,
) -> Result {
    copy(from, to, CopyUse::Lasting, (owner, layout, is_stopped))?;
    sync_folder(to).map_err(|error| failed(to, error))
}

/// As [`copy_folder`], but without waiting for the disk, and the original stays in memory.
pub fn copy_new_folder(from: &Path, to: &Path, owner: Option<RunAs>, layout: CopyLayout) -> Result {
    copy(from, to, CopyUse::AtOnce, (owner, layout, &|| false))
}

fn copy(
    from: &Path,
    to: &Path,
    copy_use: CopyUse,
    (owner, layout, is_stopped): (Option<RunAs>, CopyLayout, &dyn Fn() -> bool),
) -> Result {
    let (from_name, to_name) = (c_path(from)?, c_path(to)?);
    let of_user = fs::symlink_metadata(from).map_err(|error| failed(from, error))?.uid();
    let copying = Copying { of_user, owner, layout, copy_use, is_stopped };
    copying.entry((CWD, &from_name, from), (CWD, &to_name, to))
}

fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|error| failed(path, error))
}

pub fn sync_folder(folder: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(fs::File::open(folder)?)?)
}

fn failed(path: &Path, error: impl std::fmt::Display) -> CopyError {
    CopyError::Failed(format!("{} cannot be copied: {error}", path.display()))
}

struct Copying<'a> {
    of_user: u32,
    owner: Option<RunAs>,
    layout: CopyLayout,
    copy_use: CopyUse,
    is_stopped: &'a dyn Fn() -> bool,
}

/// Enters folders by name and descriptor and follows no link, so renames by others do no harm.
impl Copying<'_> {
    /// Paths are for messages.
    fn entry(
        &self,
        (from, from_name, from_path): (BorrowedFd<'_>, &CStr, &Path),
        (to, to_name, to_path): (BorrowedFd<'_>, &CStr, &Path),
    ) -> Result {
        let facts = rustix::fs::statat(from, from_name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| failed(from_path, error))?;
        match FileType::from_raw_mode(facts.st_mode) {
            FileType::Directory => {
                let source = open_folder(from, from_name).map_err(|e| failed(from_path, e))?;
                rustix::fs::mkdirat(to, to_name, Mode::from_raw_mode(0o700))
                    .map_err(|error| failed(to_path, error))?;
                let copy = open_folder(to, to_name).map_err(|error| failed(to_path, error))?;
                self.folder((&source, from_path), (&copy, to_path))?;
                self.give(copy.as_fd(), &facts).map_err(|error| failed(to_path, error))
            }
            FileType::RegularFile => {
                let source = open_file(from, from_name).map_err(|e| failed(from_path, e))?;
                let flags = OFlags::WRONLY
                    | OFlags::CREATE
                    | OFlags::EXCL
                    | OFlags::NOFOLLOW
                    | OFlags::CLOEXEC;
                let copy = rustix::fs::openat(to, to_name, flags, Mode::from_raw_mode(0o600))
                    .map_err(|error| failed(to_path, error))?;
                let copy = fs::File::from(copy);
                self.file((&source, from_path), (&copy, to_path))?;
                self.give(copy.as_fd(), &facts).map_err(|error| failed(to_path, error))
            }
            _ => Err(failed(from_path, "it is neither a regular file nor a folder")),
        }
    }

    /// The contents of a folder before the folder.
    fn give(&self, copy: BorrowedFd<'_>, facts: &Stat) -> rustix::io::Result<()> {
        if let Some(RunAs { uid, gid }) = self.owner {
            rustix::fs::fchown(copy, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
        }
        rustix::fs::fchmod(copy, Mode::from_raw_mode(facts.st_mode & 0o777))
    }

    fn folder(&self, (from, from_path): OpenFolder<'_>, (to, to_path): OpenFolder<'_>) -> Result {
        for entry in Dir::read_from(from).map_err(|error| failed(from_path, error))? {
            let entry = entry.map_err(|error| failed(from_path, error))?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let as_path = Path::new(OsStr::from_bytes(name.to_bytes()));
            self.entry(
                (from.as_fd(), name, &from_path.join(as_path)),
                (to.as_fd(), name, &to_path.join(as_path)),
            )?;
        }
        Ok(())
    }

    fn file(&self, (source, from): (&fs::File, &Path), (copy, to): (&fs::File, &Path)) -> Result {
        let facts = source.metadata().map_err(|error| failed(from, error))?;
        if !facts.is_file() {
            return Err(failed(from, "it is neither a regular file nor a folder"));
        }
        if facts.uid() != self.of_user {
            // A hard link, which a server made to what only root may read.
            let why = format!(
                "it belongs to user {}, but the folder to user {}",
                facts.uid(),
                self.of_user
            );
            return Err(failed(from, why));
        }
        let len = facts.len();
        copy.set_len(len).map_err(|error| failed(to, error))?;
        let is_allocated = len > 0 && facts.blocks().saturating_mul(512) >= len;
        if is_allocated && self.layout == CopyLayout::AsOriginal {
            // If this fails, the original's space was not preallocated either.
            let _ = rustix::fs::fallocate(copy, FallocateFlags::empty(), 0, len);
        }
        let mut at = 0;
        while let Some((begin, end)) = next_data(source, at, len).map_err(|e| failed(from, e))? {
            if !self.range(source, copy, begin..end).map_err(|error| failed(from, error))? {
                return Err(CopyError::Stopped);
            }
            at = end;
        }
        if self.copy_use == CopyUse::Lasting {
            let _ = rustix::fs::fadvise(source, 0, None, Advice::DontNeed);
        }
        Ok(())
    }

    /// False if stopped.
    fn range(&self, source: &fs::File, copy: &fs::File, range: Range<u64>) -> io::Result<bool> {
        let Range { start: begin, end } = range;
        let mut piece = vec![0; PIECE.min((end - begin) as usize)];
        let mut at = begin;
        while at < end {
            if (self.is_stopped)() {
                return Ok(false);
            }
            let n = piece.len().min((end - at) as usize);
            source.read_exact_at(&mut piece[..n], at)?;
            copy.write_all_at(&piece[..n], at)?;
            at += n as u64;
        }
        Ok(true)
    }
}

/// Next range that is not a hole, from `at` on.
fn next_data(file: &fs::File, at: u64, len: u64) -> io::Result<Option<(u64, u64)>> {
    if at >= len {
        return Ok(None);
    }
    let begin = match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(begin) => begin,
        Err(Errno::NXIO) => return Ok(None),
        // A filesystem without support for holes has none.
        Err(Errno::INVAL) => return Ok(Some((at, len))),
        Err(error) => return Err(error.into()),
    };
    let end = rustix::fs::seek(file, SeekFrom::Hole(begin))?.min(len);
    Ok((begin < end).then_some((begin, end)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn copied(from: &Path, to: &Path) -> Result {
        copy_folder(from, to, None, CopyLayout::AsOriginal, &|| false)
    }

    #[test]
    fn the_copy_has_the_same_bytes_permissions_and_space() {
        let bench = tempfile::tempdir().unwrap();
        let (from, to) = (bench.path().join("from"), bench.path().join("to"));
        fs::create_dir_all(from.join("inner/empty")).unwrap();
        let rows: Vec<u8> = (0..3 * PIECE + 17).map(|n| (n % 251) as u8).collect();
        fs::write(from.join("inner/rows"), &rows).unwrap();
        fs::write(from.join("nothing"), "").unwrap();
        fs::set_permissions(from.join("inner"), fs::Permissions::from_mode(0o750)).unwrap();
        let sparse = fs::File::create(from.join("sparse")).unwrap();
        sparse.set_len(64 << 20).unwrap();
        sparse.write_all_at(b"in the middle", 32 << 20).unwrap();
        let ahead = fs::File::create(from.join("ahead")).unwrap();
        let is_allocated =
            rustix::fs::fallocate(&ahead, FallocateFlags::empty(), 0, 8 << 20).is_ok();
        sync_folder(&from).unwrap();

        copied(&from, &to).unwrap();
        assert_eq!(fs::read(to.join("inner/rows")).unwrap(), rows);
        assert!(to.join("inner/empty").is_dir());
        let facts = |name: &str| fs::metadata(to.join(name)).unwrap();
        assert_eq!(facts("nothing").len(), 0);
        assert_eq!(facts("inner").mode() & 0o777, 0o750);
        assert_eq!(facts("sparse").len(), 64 << 20);
        assert!(facts("sparse").blocks() * 512 < 1 << 20, "holes were filled");
        let mut text = [0; 13];
        fs::File::open(to.join("sparse")).unwrap().read_exact_at(&mut text, 32 << 20).unwrap();
        assert_eq!(&text, b"in the middle");
        assert_eq!(facts("ahead").len(), if is_allocated { 8 << 20 } else { 0 });
        assert!(facts("ahead").blocks() * 512 >= facts("ahead").len(), "space was given up");

        let written = bench.path().join("written");
        copy_folder(&from, &written, None, CopyLayout::Written, &|| false).unwrap();
        assert_eq!(fs::read(written.join("inner/rows")).unwrap(), rows);
        let ahead = fs::metadata(written.join("ahead")).unwrap();
        assert_eq!(ahead.len(), facts("ahead").len());
        assert!(ahead.blocks() * 512 < 1 << 20, "space was reserved");
    }

    #[test]
    fn what_is_no_plain_file_or_folder_is_refused() {
        let bench = tempfile::tempdir().unwrap();
        let (from, to) = (bench.path().join("from"), bench.path().join("to"));
        fs::create_dir(&from).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", from.join("link")).unwrap();
        let error = copied(&from, &to).unwrap_err().to_string();
        assert!(error.contains("link") && error.contains("neither"), "{error}");
        let error = copied(&bench.path().join("missing"), &bench.path().join("x")).unwrap_err();
        assert!(error.to_string().contains("missing"), "{error}");
    }

    #[test]
    fn a_hard_link_to_a_file_of_another_user_is_refused() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can give files away");
            return;
        }
        let bench = tempfile::tempdir().unwrap();
        let (from, to) = (bench.path().join("from"), bench.path().join("to"));
        fs::create_dir(&from).unwrap();
        fs::write(from.join("rows"), "rows").unwrap();
        fs::write(bench.path().join("secret"), "secret").unwrap();
        fs::hard_link(bench.path().join("secret"), from.join("link")).unwrap();
        for path in [&from, &from.join("rows")] {
            std::os::unix::fs::chown(path, Some(54_321), None).unwrap();
        }
        let error = copied(&from, &to).unwrap_err().to_string();
        assert!(error.contains("link") && error.contains("belongs to user 0"), "{error}");
    }

    #[test]
    fn nothing_is_written_over_and_a_stop_is_noticed() {
        let bench = tempfile::tempdir().unwrap();
        let (from, to) = (bench.path().join("from"), bench.path().join("to"));
        fs::create_dir(&from).unwrap();
        fs::create_dir(&to).unwrap();
        fs::write(from.join("rows"), "rows").unwrap();
        assert!(matches!(copied(&from, &to), Err(CopyError::Failed(_))));
        let result =
            copy_folder(&from, &bench.path().join("new"), None, CopyLayout::AsOriginal, &|| true);
        assert!(matches!(result, Err(CopyError::Stopped)));
    }
}
