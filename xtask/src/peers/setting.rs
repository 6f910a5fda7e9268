//! Where the tests of a peer run, and what they find.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

pub(super) struct Setting {
    pub(super) source: PathBuf,
    pub(super) dyno: PathBuf,
    pub(super) folder: PathBuf,
}

#[derive(Debug, PartialEq)]
pub(super) struct Outcome {
    pub(super) said: String,
    /// Unexpected differences.
    pub(super) wrong: Vec<String>,
}

pub(super) fn open(folder: &Path) -> anyhow::Result<()> {
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))
        .with_context(|| format!("cannot open {}", folder.display()))
}

/// A program with the peer's name that runs a command of Dyno.
pub(super) fn stand_in(setting: &Setting, command: &str) -> anyhow::Result<PathBuf> {
    let folder = setting.folder.join("bin");
    std::fs::create_dir(&folder).context("cannot make a folder")?;
    // Another user may not reach the build folder.
    let program = folder.join("dyno");
    std::fs::copy(&setting.dyno, &program).context("cannot copy the program")?;
    let script = folder.join(command);
    std::fs::write(&script, format!("#!/bin/sh\nexec '{}' {command} \"$@\"\n", program.display()))
        .context("cannot write a script")?;
    open(&script)?;
    Ok(folder)
}

/// Tests in a folder of the sources, in order.
pub(super) fn files(setting: &Setting, folder: &str, ending: &str) -> anyhow::Result<Vec<PathBuf>> {
    let folder = setting.source.join(folder);
    let entries =
        std::fs::read_dir(&folder).with_context(|| format!("there is no {}", folder.display()))?;
    let files = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        files.filter(|file| file.extension().is_some_and(|name| name == ending)).collect();
    files.sort();
    Ok(files)
}

/// PATH with these folders first.
pub(super) fn path(first: &[&Path]) -> anyhow::Result<std::ffi::OsString> {
    let rest = std::env::var_os("PATH").unwrap_or_default();
    let first = first.iter().map(|folder| folder.to_path_buf());
    Ok(std::env::join_paths(first.chain(std::env::split_paths(&rest)))?)
}
