//! The lock on a run's folder: one `dyno run` at a time writes there.
//!
//! Exclusive `flock`s on the folder itself and on the file `lock` in it, held as long as the run is
//! written; the kernel gives them up with the process, however that ends. The folder's counts, for a file
//! can be removed or replaced; the file says which process it is, and is what there is where a
//! filesystem cannot lock folders.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::OFlags;

use crate::files::{append, open_regular, read_bounded};
use crate::{WriteError, WriteErrorKind};

pub(crate) const LOCK: &str = "lock";

/// How often, and after how many milliseconds, a lock is tried again: `dyno serve` holds it for a
/// moment when it looks whether somebody else does.
const TRIES: u32 = 20;
const PAUSE_MS: u64 = 10;

/// The locks, held until this is dropped.
#[derive(Debug)]
pub(crate) struct RunLock {
    _folder: Option<File>,
    _file: File,
}

impl RunLock {
    pub(crate) fn take(folder: &Path) -> Result<RunLock, WriteError> {
        let path = folder.join(LOCK);
        let itself = open_folder(folder).map_err(|error| WriteError::io(folder, &error))?;
        let itself = match taken_soon(&itself) {
            Ok(true) => Some(itself),
            Ok(false) => return Err(held(folder, &path)),
            // As on some network filesystems: then the file has to do.
            Err(_) => None,
        };
        let mut file = append(&path).map_err(|error| WriteError::io(&path, &error))?;
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
        // Only a hint for whoever has to wait: a disk that is full is reported elsewhere.
        let _ = file.set_len(0);
        let _ = writeln!(file, "{}", std::process::id());
        Ok(RunLock { _folder: itself, _file: file })
    }
}

/// Whether the lock of a file or folder could be taken, at once or within a moment.
fn taken_soon(file: &File) -> std::io::Result<bool> {
    let (_open, never) = mpsc::channel::<()>();
    for _ in 0..TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => {
                // Nothing is ever sent: this is a pause.
                let _ = never.recv_timeout(Duration::from_millis(PAUSE_MS));
            }
        }
    }
    Ok(false)
}

fn held(folder: &Path, lock: &Path) -> WriteError {
    let why = format!(
        "another Dyno{} is writing this run; wait until it has ended, or start a separate run with \
         `dyno run --new` or --out",
        holder(lock)
    );
    WriteError { kind: WriteErrorKind::Held, ..WriteError::new(folder, why) }
}

fn holder(lock: &Path) -> String {
    let text = read_bounded(lock, 32).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    match text.and_then(|text| text.trim().parse::<u32>().ok()) {
        Some(pid) => format!(" (process {pid})"),
        None => String::new(),
    }
}

/// Whether a Dyno is writing the run in this folder just now. Folders that were never locked, or
/// cannot be, are not being written.
pub fn is_being_written(folder: &Path) -> bool {
    let files = [open_folder(folder), open_regular(&folder.join(LOCK))];
    let is_locked = |file: &File| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    files.iter().flatten().any(is_locked)
}

/// Opens a folder; what has its name and is none, such as a FIFO, is refused without waiting.
fn open_folder(folder: &Path) -> std::io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NONBLOCK;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(folder)
}
