//! Sends a folder of database files to another machine, as a tar archive that ends with a mark.

use std::ffi::{CStr, CString, OsStr};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, fchown};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType};
use tar::{Archive, Builder, EntryType, Header};

use crate::copy::sync_folder;
use crate::storage::{open_file, open_folder};
use crate::{KeeperError, OrKeeper, Result, RunAs};

/// After the archive.
const END: &[u8; 8] = b"dyno-end";

/// After the last entry: zeros, and the mark.
const REST_MOST: u64 = 1 << 16;

/// With its folders.
const NAME_MOST: u64 = 4096;

/// Entry with the reason why there are no more.
const FAILED: u8 = b'F';

const REASON_MOST: u64 = 1000;

fn failed(path: &Path, why: &str) -> KeeperError {
    KeeperError(format!("{}: {why}", path.display()))
}

/// Refuses all but plain files and folders of the folder's user. Nothing may write there meanwhile.
pub fn send_folder(from: &Path, out: &mut dyn Write) -> Result<()> {
    let name = CString::new(from.as_os_str().as_bytes()).at(from)?;
    let of_user = fs::symlink_metadata(from).at(from)?.uid();
    let folder = open_folder(CWD, &name).at(from)?;
    let mut sending = Sending { archive: Builder::new(out), of_user };
    if let Err(error) = sending.folder(&folder, Path::new("")) {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::new(FAILED));
        header.set_mode(0o600);
        header.set_size(error.0.len() as u64);
        // The other end reports it, unless it is gone, or has half a file.
        let _ = sending.archive.append_data(&mut header, "failed", error.0.as_bytes());
        return Err(error);
    }
    let sent = sending.archive.into_inner().and_then(|out| {
        out.write_all(END)?;
        out.flush()
    });
    sent.at(from)
}

struct Sending<'a> {
    archive: Builder<&'a mut dyn Write>,
    of_user: u32,
}

/// Enters folders by name and descriptor and follows no link, so renames by others do no harm.
impl Sending<'_> {
    fn folder(&mut self, folder: &OwnedFd, path: &Path) -> Result<()> {
        for entry in Dir::read_from(folder).at(path)? {
            let entry = entry.at(path)?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let path = path.join(OsStr::from_bytes(name.to_bytes()));
            self.entry((folder.as_fd(), name), &path)?;
        }
        Ok(())
    }

    fn entry(&mut self, (folder, name): (BorrowedFd<'_>, &CStr), path: &Path) -> Result<()> {
        let facts = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).at(path)?;
        let mut header = Header::new_gnu();
        header.set_mode(facts.st_mode & 0o777);
        match FileType::from_raw_mode(facts.st_mode) {
            FileType::Directory => {
                header.set_entry_type(EntryType::Directory);
                header.set_size(0);
                self.archive.append_data(&mut header, path, io::empty()).at(path)?;
                let inner = open_folder(folder, name).at(path)?;
                self.folder(&inner, path)
            }
            FileType::RegularFile => {
                let file = open_file(folder, name).at(path)?;
                let facts = file.metadata().at(path)?;
                if !facts.is_file() || facts.uid() != self.of_user {
                    return Err(failed(path, "it is not a file of the folder's user"));
                }
                header.set_entry_type(EntryType::Regular);
                header.set_size(facts.len());
                self.archive.append_data(&mut header, path, file.take(facts.len())).at(path)
            }
            _ => Err(failed(path, "it is neither a regular file nor a folder")),
        }
    }
}

/// `to` must not exist. Waits until the folder is on the disk; it then belongs to `owner`, or else
/// to Dyno's user. Fails if it was cut off, or holds what no server's folder does.
pub fn receive_folder(from: &mut dyn Read, to: &Path, owner: Option<RunAs>) -> Result<()> {
    let make = |path: &Path| {
        let made = fs::DirBuilder::new().mode(0o700).create(path);
        made.at(path)
    };
    make(to)?;
    let mut folders: Vec<(PathBuf, u32)> = vec![(to.to_owned(), 0o700)];
    let mut archive = Archive::new(from);
    // Raw, as long names are bounded here.
    let entries = archive.entries().at(to)?.raw(true);
    let mut long_name = None;
    for entry in entries {
        let mut entry = entry.at(to)?;
        if entry.header().entry_type() == EntryType::GNULongName {
            long_name = Some(read_name(&mut entry).at(to)?);
            continue;
        }
        let inner = match long_name.take() {
            Some(name) => name,
            None => entry.path().at(to)?.into_owned(),
        };
        let is_inside = inner.components().all(|one| matches!(one, Component::Normal(_)));
        if !is_inside || inner.as_os_str().is_empty() {
            return Err(failed(&inner, "it lies outside the folder that was sent"));
        }
        let path = to.join(&inner);
        let mode = entry.header().mode().at(&path)? & 0o777;
        match entry.header().entry_type() {
            EntryType::Directory => {
                make(&path)?;
                folders.push((path, mode));
            }
            EntryType::Regular => {
                let size = entry.size();
                let mut write = || -> io::Result<u64> {
                    let mut file = File::create_new(&path)?;
                    let n = io::copy(&mut entry, &mut file)?;
                    give(&file, mode, owner)?;
                    Ok(n)
                };
                let n = write().at(&path)?;
                if n != size {
                    return Err(failed(&path, "it was cut off"));
                }
            }
            kind if kind.as_byte() == FAILED => {
                let mut reason = String::new();
                // Ignore a reason that is no text.
                let _ = entry.take(REASON_MOST).read_to_string(&mut reason);
                return Err(KeeperError(format!("the other end: {reason}")));
            }
            _ => return Err(failed(&path, "it is neither a regular file nor a folder")),
        }
    }
    let mut rest = Vec::new();
    let read = archive.into_inner().take(REST_MOST).read_to_end(&mut rest);
    if read.is_err() || !rest.ends_with(END) {
        return Err(failed(to, "the folder was cut off on its way"));
    }
    // The outermost is last: until then nobody else gets in.
    for (path, mode) in folders.iter().rev() {
        let given = File::open(path).and_then(|folder| give(&folder, *mode, owner));
        given.at(path)?;
    }
    sync_folder(to).at(to)
}

/// Too long for a header.
fn read_name(from: &mut dyn Read) -> io::Result<PathBuf> {
    let mut name = Vec::new();
    from.take(NAME_MOST + 1).read_to_end(&mut name)?;
    if name.len() as u64 > NAME_MOST {
        return Err(io::Error::other(format!("a name in it is longer than {NAME_MOST} bytes")));
    }
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    Ok(PathBuf::from(OsStr::from_bytes(&name[..end])))
}

fn give(file: &File, mode: u32, owner: Option<RunAs>) -> io::Result<()> {
    if let Some(RunAs { uid, gid }) = owner {
        fchown(file, Some(uid), Some(gid))?;
    }
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn sent(from: &Path) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        send_folder(from, &mut bytes).map(|()| bytes)
    }

    #[test]
    fn a_long_name_arrives_and_one_without_end_is_refused() {
        let folder = tempfile::tempdir().expect("there is a folder");
        let (from, long) = (folder.path().join("from"), ["x".repeat(120), "y".repeat(120)]);
        let inner = long.iter().collect::<PathBuf>();
        fs::create_dir_all(from.join(&inner)).expect("it is made");
        fs::write(from.join(&inner).join("t.ibd"), b"rows").expect("it is written");
        let bytes = sent(&from).expect("it is sent");
        let to = folder.path().join("to");
        receive_folder(&mut &bytes[..], &to, None).expect("it arrives");
        assert_eq!(fs::read(to.join(&inner).join("t.ibd")).expect("it is there"), b"rows");
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::GNULongName);
        header.set_size(1 << 30);
        header.set_cksum();
        let mut endless = (&header.as_bytes()[..]).chain(io::repeat(b'x'));
        let error = receive_folder(&mut endless, &folder.path().join("no"), None);
        let error = error.expect_err("it is too long").to_string();
        assert!(error.contains("longer than 4096 bytes"), "{error}");
    }

    #[test]
    fn a_folder_arrives_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        let long = "x".repeat(150);
        fs::create_dir_all(from.join("inner/empty")).unwrap();
        fs::write(from.join("inner").join(&long), vec![7; 1 << 20]).unwrap();
        fs::write(from.join("none"), "").unwrap();
        fs::set_permissions(from.join("none"), fs::Permissions::from_mode(0o640)).unwrap();
        let bytes = sent(&from).unwrap();
        receive_folder(&mut &bytes[..], &to, None).unwrap();
        assert_eq!(fs::read(to.join("inner").join(&long)).unwrap(), vec![7; 1 << 20]);
        assert!(to.join("inner/empty").is_dir());
        let facts = fs::metadata(to.join("none")).unwrap();
        assert_eq!((facts.len(), facts.mode() & 0o777), (0, 0o640));
        // Never into an existing folder.
        assert!(receive_folder(&mut &bytes[..], &to, None).is_err());
    }

    #[test]
    fn a_folder_that_is_cut_off_anywhere_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("from");
        fs::create_dir(&from).unwrap();
        fs::write(from.join("a"), vec![1; 700]).unwrap();
        let bytes = sent(&from).unwrap();
        for n in (0..bytes.len()).step_by(100).chain([bytes.len() - 1]) {
            let to = folder.path().join(format!("to-{n}"));
            assert!(receive_folder(&mut &bytes[..n], &to, None).is_err(), "{n} bytes");
        }
    }

    #[test]
    fn links_are_neither_sent_nor_received() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("from");
        fs::create_dir(&from).unwrap();
        symlink("/etc/passwd", from.join("link")).unwrap();
        let mut bytes = Vec::new();
        let error = send_folder(&from, &mut bytes).unwrap_err().to_string();
        assert_eq!(error, "link: it is neither a regular file nor a folder");
        let to = folder.path().join("to");
        let told = receive_folder(&mut &bytes[..], &to, None).unwrap_err().to_string();
        assert_eq!(told, format!("the other end: {error}"));
        fs::remove_dir_all(&to).unwrap();
        let check = |kind: EntryType, path: &str| {
            let mut archive = Builder::new(Vec::new());
            let mut header = Header::new_gnu();
            header.set_entry_type(kind);
            header.set_mode(0o600);
            header.set_size(0);
            // As an attacker would.
            header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_cksum();
            archive.append(&header, io::empty()).unwrap();
            let bytes = archive.into_inner().unwrap();
            let to = folder.path().join("to");
            let refused = receive_folder(&mut &bytes[..], &to, None).unwrap_err().to_string();
            fs::remove_dir_all(&to).unwrap();
            refused
        };
        assert!(check(EntryType::Regular, "../up").contains("outside"));
        assert!(check(EntryType::Regular, "/abs").contains("outside"));
        assert!(check(EntryType::Symlink, "link").contains("neither"));
    }
}
