//! Builds of server programs, fetched as packages and unpacked; nothing is installed. Each has a
//! folder in a [`BuildStore`] with its packages, the unpacked tree and, written last, `build.json`:
//! without it, the folder is left from a broken-off fetch.

mod fetch;
mod hash;
mod source;
mod tool;

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::error::{KeeperError, OrKeeper, Result, if_there};
use crate::keeper::make_root;
use crate::process_table::list_pids;

pub use fetch::{FetchOrder, PackageSpec};
pub use hash::of_file as file_digest;
pub use source::{SourceInfo, distribution, package_source_names, package_sources};
pub(crate) use tool::Tool;

const FORMAT: u32 = 1;
const BUILD_FILE: &str = "build.json";
const PACKAGES: &str = "packages";
const ROOT: &str = "root";
const LISTS: &str = ".lists";
const TOOLS: &str = ".tools";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// `machine` if installed, else the source of packages: `debian`.
    pub source: String,
    /// `Debian trixie`; empty if unknown.
    pub builder: String,
    /// The package with the server.
    pub package: Option<String>,
    pub package_version: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PackageFile {
    /// Its name in the folder `packages`.
    pub file: String,
    pub sha256: String,
    pub bytes: u64,
}

/// The contents of `build.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Description {
    format: u32,
    /// A copied or moved folder is not the described one.
    folder: PathBuf,
    product: String,
    version: String,
    origin: Origin,
    programs: PathBuf,
    bytes: u64,
    fetched_unix_ms: u64,
    packages: Vec<PackageFile>,
    /// Of all unpacked files, with their paths.
    unpacked_sha256: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    pub name: String,
    pub product: String,
    /// The version that its server reports.
    pub version: String,
    pub origin: Origin,
    pub programs: PathBuf,
    /// Bytes on disk, packages included.
    pub bytes: u64,
    pub fetched_unix_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedBuild {
    pub name: String,
    pub build: Result<Build, String>,
}

#[derive(Clone, Debug)]
pub struct BuildStore {
    folder: PathBuf,
}

impl BuildStore {
    /// The folder need not exist.
    pub fn at(folder: &Path) -> BuildStore {
        BuildStore { folder: folder.to_owned() }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// All folders, by name. Fails if other users could write in the store.
    pub fn list(&self) -> Result<Vec<ListedBuild>> {
        if fs::symlink_metadata(&self.folder).is_err_and(|e| e.kind() == ErrorKind::NotFound) {
            return Ok(Vec::new());
        }
        let folder = self.checked()?;
        let entries = fs::read_dir(&folder).or_path(&folder, "cannot be read")?;
        let entries = entries.flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let names = folders.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        let listed = names.into_iter().map(|name| {
            let build = read(&folder.join(&name)).map(|found| found.build(&folder.join(&name)));
            ListedBuild { name, build }
        });
        Ok(listed.collect())
    }

    /// The usable builds of a product.
    pub fn of(&self, product: &str) -> Vec<Build> {
        let listed = self.list().unwrap_or_default().into_iter();
        listed.filter_map(|one| one.build.ok()).filter(|build| build.product == product).collect()
    }

    /// Compares packages and unpacked files with their noted digests; fails with what changed.
    pub fn check(&self, name: &str) -> Result<()> {
        let folder = self.folder_of(name)?;
        let found = read(&folder).or_keeper(|| name)?;
        for package in &found.packages {
            let path = folder.join(PACKAGES).join(&package.file);
            if hash::of_file(&path)? != package.sha256 {
                return Err(KeeperError(format!(
                    "{} is not what was downloaded; remove the build and fetch it again",
                    path.display()
                )));
            }
        }
        if hash::of_tree(&folder.join(ROOT))? != found.unpacked_sha256 {
            return Err(KeeperError(format!(
                "files in {} have changed since they were unpacked; remove the build and fetch it \
                 again",
                folder.join(ROOT).display()
            )));
        }
        Ok(())
    }

    /// Removes a build or the rest of a fetch; returns its bytes. Fails if a process runs from it.
    pub fn remove(&self, name: &str) -> Result<u64> {
        let _lock = self.lock()?;
        let folder = self.folder_of(name)?;
        if let Some(pid) = process_from(&folder) {
            return Err(KeeperError(format!("{name} is in use by process {pid}; stop it first")));
        }
        let bytes = crate::folder_bytes(&folder).unwrap_or(0);
        remove_build(&folder)?;
        Ok(bytes)
    }

    /// Removes the package lists downloaded to find packages.
    pub fn remove_lists(&self) -> Result<()> {
        if !self.folder.exists() {
            return Ok(());
        }
        let _lock = self.lock()?;
        [LISTS, TOOLS].iter().try_for_each(|name| remove_all(&self.folder.join(name)))
    }

    /// Made if it is missing; others cannot write in it.
    fn checked(&self) -> Result<PathBuf> {
        make_root(&self.folder, rustix::process::geteuid().is_root())
    }

    /// Refuses names that lead elsewhere.
    fn folder_of(&self, name: &str) -> Result<PathBuf> {
        let is_plain = Path::new(name).components().eq([Component::Normal(name.as_ref())]);
        let folder = self.folder.join(name);
        if !is_plain || name.starts_with('.') || !folder.is_dir() {
            return Err(KeeperError(format!(
                "there is no build `{name}`; `dyno products` lists their names under FETCHED"
            )));
        }
        Ok(folder)
    }

    /// For changes of the store; freed when dropped.
    fn lock(&self) -> Result<File> {
        let folder = self.checked()?;
        let lock = File::open(&folder).or_path(&folder, "cannot be locked")?;
        let locked = rustix::fs::flock(&lock, FlockOperation::LockExclusive);
        locked.or_path(&folder, "cannot be locked").map(|()| lock)
    }
}

impl Description {
    fn build(self, folder: &Path) -> Build {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Description { product, version, origin, bytes, fetched_unix_ms, .. } = self;
        let programs = folder.join(self.programs);
        Build { name, product, version, origin, programs, bytes, fetched_unix_ms }
    }
}

fn read(folder: &Path) -> Result<Description, String> {
    let text = fs::read(folder.join(BUILD_FILE)).map_err(|error| match error.kind() {
        ErrorKind::NotFound => "it was not completed".to_owned(),
        _ => format!("{BUILD_FILE} cannot be read: {error}"),
    })?;
    let found: Description =
        serde_json::from_slice(&text).map_err(|error| format!("{BUILD_FILE}: {error}"))?;
    if found.format != FORMAT {
        return Err(format!(
            "it has format {}, and this version of Dyno reads format {FORMAT}",
            found.format
        ));
    }
    if found.folder != folder {
        return Err(format!("it was unpacked for {}", found.folder.display()));
    }
    Ok(found)
}

/// `build.json` goes first.
fn remove_build(folder: &Path) -> Result<()> {
    if_there(fs::remove_file(folder.join(BUILD_FILE))).or_path(folder, "cannot be removed")?;
    remove_all(folder)
}

fn remove_all(folder: &Path) -> Result<()> {
    if_there(fs::remove_dir_all(folder)).or_path(folder, "cannot be removed")
}

fn process_from(folder: &Path) -> Option<i32> {
    list_pids(Path::new("/proc")).into_iter().find(|pid| {
        fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|program| program.starts_with(folder))
    })
}

#[cfg(test)]
mod tests;
