//! The error of this crate, below everything else.

use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::path::Path;

pub(crate) type Result<T, E = KeeperError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct KeeperError(pub String);

pub(crate) trait OrKeeper<T>: Sized {
    /// The error becomes `WHAT: ERROR`; a missing value just `WHAT`.
    fn or_keeper<W: Display>(self, what: impl FnOnce() -> W) -> Result<T>;

    /// `PATH: ERROR`.
    fn at(self, path: &Path) -> Result<T> {
        self.or_keeper(|| path.display())
    }

    /// `PATH cannot be read: ERROR`.
    fn or_path(self, path: &Path, what: &str) -> Result<T> {
        self.or_keeper(|| format!("{} {what}", path.display()))
    }
}

impl<T, E: Display> OrKeeper<T> for Result<T, E> {
    fn or_keeper<W: Display>(self, what: impl FnOnce() -> W) -> Result<T> {
        self.map_err(|error| KeeperError(format!("{}: {error}", what())))
    }
}

impl<T> OrKeeper<T> for Option<T> {
    fn or_keeper<W: Display>(self, what: impl FnOnce() -> W) -> Result<T> {
        self.ok_or_else(|| KeeperError(what().to_string()))
    }
}

/// A removal of what is not there is done.
pub(crate) fn if_there(removed: io::Result<()>) -> io::Result<()> {
    removed.or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })
}
