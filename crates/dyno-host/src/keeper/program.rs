//! Finds programs on this host.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where programs usually lie. Servers are in the `sbin` folders, which PATH often leaves out.
pub(super) const USUAL_FOLDERS: [&str; 7] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/libexec"];

/// The absolute folders of a PATH value. Relative ones are left out: what they name depends on
/// Dyno's working directory.
pub(super) fn path_folders(path_value: &OsStr) -> Vec<PathBuf> {
    std::env::split_paths(path_value).filter(|folder| folder.is_absolute()).collect()
}

/// The first of `folders` that holds a program called `name`.
pub(super) fn find<'a>(name: &str, folders: impl Iterator<Item = &'a Path>) -> Option<PathBuf> {
    if name.is_empty() || name.contains('/') {
        return None;
    }
    folders.map(|folder| folder.join(name)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}
