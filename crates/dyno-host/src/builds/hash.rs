//! SHA-256 of files and of trees of files.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::{OrKeeper, Result};

/// In hexadecimal digits.
pub fn of_file(path: &Path) -> Result<String> {
    let mut hasher = Sha256::new();
    add_file(&mut hasher, path).or_path(path, "cannot be read")?;
    Ok(digits(hasher))
}

/// Of all files and links below a folder, with their paths.
pub(super) fn of_tree(folder: &Path) -> Result<String> {
    let mut hasher = Sha256::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        add_entry(&mut hasher, folder, &path, &mut open).or_path(&path, "cannot be read")?;
    }
    Ok(digits(hasher))
}

fn add_entry(to: &mut Sha256, root: &Path, path: &Path, open: &mut Vec<PathBuf>) -> io::Result<()> {
    let facts = fs::symlink_metadata(path)?;
    let name = path.strip_prefix(root).unwrap_or(path);
    to.update(name.as_os_str().as_bytes());
    to.update([0]);
    if facts.is_dir() {
        let mut inner: Vec<PathBuf> =
            fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
        inner.sort();
        open.extend(inner);
    } else if facts.is_symlink() {
        to.update(fs::read_link(path)?.as_os_str().as_bytes());
    } else if facts.is_file() {
        to.update(facts.len().to_le_bytes());
        add_file(to, path)?;
    }
    Ok(())
}

fn add_file(hasher: &mut Sha256, path: &Path) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            n => hasher.update(&buffer[..n]),
        }
    }
}

fn digits(hasher: Sha256) -> String {
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_another_digest_when_anything_in_it_is_another() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("bin")).expect("made");
        fs::write(path("bin/server"), "abc").expect("written");
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(of_file(&path("bin/server")).expect("read"), expected);
        let mut seen = std::collections::BTreeSet::new();
        let mut is_new = || seen.insert(of_tree(folder.path()).expect("read"));
        assert!(is_new());
        assert!(!is_new());
        fs::write(path("bin/server"), "abd").expect("written");
        assert!(is_new());
        fs::rename(path("bin/server"), path("bin/other")).expect("renamed");
        assert!(is_new());
        std::os::unix::fs::symlink("other", path("bin/link")).expect("linked");
        assert!(is_new());
    }
}
