//! The lock on a run's folder, for one `dyno run` at a time: `flock`s on the folder and the file
//! `lock` in it, which the kernel releases with the process. The folder's decides, as a file can be
//! replaced; the file names the process, and serves if folders cannot be locked.

use std::fs::{File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::OFlags;

use crate::error::{WriteError, WriteErrorKind, WriteResult};
use crate::files::{append_with, open_regular, read_bounded};

pub(crate) const LOCK: &str = "lock";

/// Tries to take a lock: `dyno serve` holds it for a moment to look at it.
const TRIES: u32 = 20;
const PAUSE_MS: u64 = 10;

/// Released when dropped.
#[derive(Debug)]
pub(crate) struct RunLock {
    _folder: Option<File>,
    _file: File,
}

impl RunLock {
    pub(crate) fn take(folder: &Path) -> WriteResult<RunLock> {
        let path = folder.join(LOCK);
        let itself = open_folder(folder).map_err(|error| WriteError::io(folder, &error))?;
        let itself = match taken_soon(&itself) {
            Ok(true) => Some(itself),
            Ok(false) => return Err(held(folder, &path)),
            // As on some network filesystems: then the file has to do.
            Err(_) => None,
        };
        let mut file = append_with(&path, 0o600).map_err(|error| WriteError::io(&path, &error))?;
        // Whoever may read a file can lock it, as one of an earlier Dyno. If it is another user's, the folder has to do.
        let _ = file.set_permissions(Permissions::from_mode(0o600));
        match taken_soon(&file) {
            Ok(true) => {}
            Ok(false) => return Err(held(folder, &path)),
            Err(error) => {
                return Err(WriteError::new(
                    &path,
                    format!(
                        "it cannot be locked ({error}); choose a folder on a local disk with --out"
                    ),
                ));
            }
        }
        // Only a hint for waiting users; a full disk is reported elsewhere.
        let _ = file.set_len(0);
        let _ = writeln!(file, "{}", std::process::id());
        Ok(RunLock { _folder: itself, _file: file })
    }
}

fn taken_soon(file: &File) -> std::io::Result<bool> {
    let (_open, never) = mpsc::channel::<()>();
    for _ in 0..TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => {
                // Nothing is ever sent: a pause.
                let _ = never.recv_timeout(Duration::from_millis(PAUSE_MS));
            }
        }
    }
    Ok(false)
}

fn held(folder: &Path, lock: &Path) -> WriteError {
    let who = match is_held_by_dyno(folder, lock) {
        true => format!("another Dyno{} is writing this run", holder(lock)),
        false => "another process holds a lock on this folder: a Dyno that is writing this run, or a process of any \
                  user who may read the folder (`chmod 700` keeps other users out)"
            .to_owned(),
    };
    let why = format!(
        "{who}; wait until it has ended, or start a separate run with `dyno run --new` or --out"
    );
    WriteError { kind: WriteErrorKind::Held, ..WriteError::new(folder, why) }
}

/// The file is locked as well, which no other user can do.
fn is_held_by_dyno(folder: &Path, lock: &Path) -> bool {
    let Ok(file) = open_regular(lock) else { return false };
    let is_private = |facts: std::io::Result<Metadata>| {
        facts.is_ok_and(|facts| facts.permissions().mode() & 0o077 == 0)
    };
    is_locked(&file) && (is_private(file.metadata()) || is_private(std::fs::metadata(folder)))
}

fn is_locked(file: &File) -> bool {
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

fn holder(lock: &Path) -> String {
    let text = read_bounded(lock, 32).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    match text.and_then(|text| text.trim().parse::<u32>().ok()) {
        Some(pid) => format!(" (process {pid})"),
        None => String::new(),
    }
}

/// False for folders that were never locked, or cannot be.
pub fn is_being_written(folder: &Path) -> bool {
    let files = [open_folder(folder), open_regular(&folder.join(LOCK))];
    files.iter().flatten().any(is_locked)
}

/// Refuses a FIFO of this name without waiting.
fn open_folder(folder: &Path) -> std::io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NONBLOCK;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(folder)
}
