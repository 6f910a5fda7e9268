//! The lock on a run's folder: one `dyno run` at a time writes there.
//!
//! An exclusive `flock` on the file `lock`, held as long as the run is written; the kernel gives it up
//! with the process, however that ends. The file says which process it is.

use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use crate::files::{append, open_regular, read_bounded};
use crate::{WriteError, WriteErrorKind};

/// The file in a run's folder that is locked.
pub(crate) const LOCK: &str = "lock";

/// How often, and after how many milliseconds, a lock is tried again: `dyno serve` holds it for a
/// moment when it looks whether somebody else does.
const TRIES: u32 = 20;
const PAUSE_MS: u64 = 10;

/// The lock, held until this is dropped.
#[derive(Debug)]
pub(crate) struct RunLock {
    _file: File,
}

impl RunLock {
    /// Takes the lock of a folder that is there.
    pub(crate) fn take(folder: &Path) -> Result<RunLock, WriteError> {
        let path = folder.join(LOCK);
        let mut file = append(&path).map_err(|error| WriteError::io(&path, &error))?;
        let (_open, never) = mpsc::channel::<()>();
        for _ in 0..TRIES {
            match file.try_lock() {
                Ok(()) => {
                    // Only for whoever is told to wait: a disk that is full is told of elsewhere.
                    let _ = file.set_len(0);
                    let _ = writeln!(file, "{}", std::process::id());
                    return Ok(RunLock { _file: file });
                }
                Err(TryLockError::Error(error)) => {
                    return Err(WriteError::new(
                        &path,
                        format!(
                            "it cannot be locked ({error}); choose a folder on a local disk with --out"
                        ),
                    ));
                }
                Err(TryLockError::WouldBlock) => {
                    // Nothing is ever sent: this is a pause.
                    let _ = never.recv_timeout(Duration::from_millis(PAUSE_MS));
                }
            }
        }
        let why = format!(
            "another Dyno{} is writing this run; wait until it has ended, or choose another folder \
             with --out (`dyno run --new` for a run of its own)",
            holder(&path)
        );
        Err(WriteError { kind: WriteErrorKind::Held, ..WriteError::new(folder, why) })
    }
}

/// Which process holds the lock, as far as its file says.
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
    let Ok(file) = open_regular(&folder.join(LOCK)) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}
