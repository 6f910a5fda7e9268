//! Makes programs of another release run where they were unpacked, with their own C library.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::tool::Tool;
use crate::KeeperError;

/// Libraries below the root; each may have a folder for the architecture.
const LIBRARY_FOLDERS: [&str; 2] = ["usr/lib", "lib"];
/// `PT_INTERP` of the ELF specification: names the program's interpreter.
const PT_INTERP: u32 = 3;

/// Sets interpreter and library folders of all programs below a root.
pub(super) fn relocate(patchelf: &Tool, root: &Path) -> Result<(), KeeperError> {
    let folders = library_folders(root);
    let Some(interpreter) = folders.iter().find_map(|folder| interpreter_in(folder, root)) else {
        // Programs without a C library of their own were built for the machine's.
        return Ok(());
    };
    let path: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    let path = path.join(":");
    for program in programs_below(root) {
        let words = ["--set-interpreter", &interpreter.display().to_string(), "--force-rpath"];
        let words = words.into_iter().chain(["--set-rpath", &path]).map(str::to_owned);
        patchelf.run(root, words.chain([program.display().to_string()]))?;
    }
    Ok(())
}

/// Those of the architecture first.
fn library_folders(root: &Path) -> Vec<PathBuf> {
    let general = LIBRARY_FOLDERS.map(|name| root.join(name));
    let of_architecture = general.iter().flat_map(fs::read_dir).flatten().flatten();
    let mut folders: Vec<PathBuf> = of_architecture
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().contains("-linux-gnu") && path.is_dir())
        .collect();
    folders.sort();
    folders.reverse();
    folders.extend(general.into_iter().filter(|folder| folder.is_dir()));
    folders
}

/// The dynamic loader, if it is inside the root: a link to the machine's own does not count.
fn interpreter_in(folder: &Path, root: &Path) -> Option<PathBuf> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries.into_iter().find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_inside = || fs::canonicalize(path).is_ok_and(|target| target.starts_with(root));
        name.starts_with("ld-linux") && name.contains(".so") && is_inside()
    })
}

/// Programs that need the dynamic loader; executable libraries (the C library) are left out.
fn programs_below(root: &Path) -> Vec<PathBuf> {
    let (mut open, mut found) = (vec![root.to_owned()], Vec::new());
    while let Some(path) = open.pop() {
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_library = || entry.file_name().to_string_lossy().contains(".so");
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(path),
                Ok(kind)
                    if kind.is_file()
                        && !is_library()
                        && has_interpreter(&path).unwrap_or(false) =>
                {
                    found.push(path);
                }
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// 64-bit, little-endian, with an interpreter.
fn has_interpreter(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let mut header = [0; 64];
    file.read_exact(&mut header)?;
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return Ok(false);
    }
    let begin = u64::from_le_bytes(header[32..40].try_into().unwrap_or_default());
    let size = u16::from_le_bytes([header[54], header[55]]);
    let n = u16::from_le_bytes([header[56], header[57]]);
    for idx in 0..u64::from(n) {
        let mut kind = [0; 4];
        file.seek(SeekFrom::Start(begin + idx * u64::from(size)))?;
        file.read_exact(&mut kind)?;
        if u32::from_le_bytes(kind) == PT_INTERP {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_told_from_libraries_and_texts() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = std::env::current_exe().expect("it runs");
        assert!(has_interpreter(&own).expect("read"));
        fs::create_dir(folder.path().join("bin")).expect("made");
        for name in ["bin/server", "bin/libserver.so.1"] {
            fs::copy(&own, folder.path().join(name)).expect("copied");
        }
        fs::write(folder.path().join("bin/script"), "#!/bin/sh\n".repeat(10)).expect("written");
        assert_eq!(programs_below(folder.path()), [folder.path().join("bin/server")]);
    }

    #[test]
    fn the_loader_is_one_of_the_same_root() {
        let root = tempfile::tempdir().expect("a folder");
        let root = fs::canonicalize(root.path()).expect("there");
        let lib = root.join("lib/x86_64-linux-gnu");
        fs::create_dir_all(&lib).expect("made");
        assert_eq!(library_folders(&root), [lib.clone(), root.join("lib")]);
        std::os::unix::fs::symlink("/etc/passwd", lib.join("ld-linux-a.so.2")).expect("linked");
        assert_eq!(interpreter_in(&lib, &root), None);
        fs::write(lib.join("ld-2.31.so"), "").expect("written");
        std::os::unix::fs::symlink("ld-2.31.so", lib.join("ld-linux-x86-64.so.2")).expect("linked");
        assert_eq!(interpreter_in(&lib, &root), Some(lib.join("ld-linux-x86-64.so.2")));
    }
}
