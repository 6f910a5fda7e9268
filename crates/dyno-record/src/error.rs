//! Errors of reading and writing a run.

use std::path::{Path, PathBuf};

use dyno_units::clean_text;

pub(crate) type ReadResult<T = ()> = Result<T, ReadError>;
pub(crate) type WriteResult<T = ()> = Result<T, WriteError>;

/// One line: paths and reasons quote the record.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {reason}", clean_text(&path.to_string_lossy()))]
pub struct ReadError {
    pub path: PathBuf,
    pub reason: String,
}

impl ReadError {
    pub(crate) fn new(path: &Path, reason: impl ToString) -> ReadError {
        ReadError { path: path.to_owned(), reason: clean_text(&reason.to_string()) }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", kind.lead(path))]
pub struct WriteError {
    pub path: PathBuf,
    pub reason: String,
    pub kind: WriteErrorKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteErrorKind {
    Failed,
    /// The folder is not one for this run; nothing was done.
    Usage,
    /// Another Dyno is writing it; nothing was done.
    Held,
}

impl WriteErrorKind {
    fn lead(self, path: &Path) -> String {
        // A run's folder may have any name.
        let path = clean_text(&path.to_string_lossy());
        match self {
            WriteErrorKind::Usage => format!("cannot use the folder {path}"),
            WriteErrorKind::Failed | WriteErrorKind::Held => format!("cannot write {path}"),
        }
    }
}

impl WriteError {
    pub(crate) fn new(path: &Path, reason: impl ToString) -> WriteError {
        WriteError {
            path: path.to_owned(),
            reason: reason.to_string(),
            kind: WriteErrorKind::Failed,
        }
    }

    pub(crate) fn usage(path: &Path, reason: impl ToString) -> WriteError {
        WriteError { kind: WriteErrorKind::Usage, ..WriteError::new(path, reason) }
    }

    /// Adds advice for the usual causes.
    pub(crate) fn io(path: &Path, error: &std::io::Error) -> WriteError {
        let advice = match error.kind() {
            std::io::ErrorKind::StorageFull => {
                "; free some space, then run the same command again: trials that have ended are kept"
            }
            std::io::ErrorKind::PermissionDenied => "; choose another folder with --out",
            std::io::ErrorKind::FileTooLarge => {
                "; the limit for the size of a file (`ulimit -f`) is too low: raise it, then run the \
                 same command again"
            }
            _ => "",
        };
        WriteError::new(path, format!("{error}{advice}"))
    }
}
