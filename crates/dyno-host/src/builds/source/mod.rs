//! The sources of packages: each is one of the user's package tools.

mod apt_root;
mod debian;
mod maven;
mod python;

use std::path::{Path, PathBuf};

use super::PackageSpec;
use crate::KeeperError;
use crate::keeper::Keeper;

/// In the order in which they are asked.
const SOURCES: &[&dyn Source] = &[&debian::Debian, &maven::Maven, &python::Python];

pub(super) const LISTS: &str = ".lists";
pub(super) const TOOLS: &str = ".tools";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceInfo {
    /// In `from` and `--from`: `debian`.
    pub name: &'static str,
    pub summary: &'static str,
    /// Why it cannot be used here.
    pub problem: Option<String>,
}

pub fn package_sources(keeper: &Keeper) -> Vec<SourceInfo> {
    let info = |source: &&dyn Source| SourceInfo {
        name: source.name(),
        summary: source.summary(),
        problem: source.problem(keeper),
    };
    SOURCES.iter().map(info).collect()
}

pub fn package_source_names() -> impl Iterator<Item = &'static str> {
    SOURCES.iter().map(|source| source.name())
}

pub(super) fn named(name: &str) -> Result<&'static dyn Source, KeeperError> {
    let found = SOURCES.iter().copied().find(|source| source.name() == name);
    found.ok_or_else(|| KeeperError(format!("there is no source of packages called `{name}`")))
}

/// As builders are called: `Debian bookworm`.
pub fn distribution() -> Option<String> {
    let release = apt_root::Release::of_machine()?;
    Some(format!("{} {}", release.title, release.suite))
}

pub(super) struct Job<'a> {
    pub(super) keeper: &'a Keeper,
    pub(super) store: &'a Path,
    pub(super) spec: &'a PackageSpec,
    pub(super) say: &'a dyn Fn(&str),
    pub(super) now_unix_ms: u64,
}

pub(super) struct Downloaded {
    /// `Debian trixie`.
    pub(super) builder: String,
    pub(super) package: String,
    pub(super) version: String,
    /// In the given folder.
    pub(super) files: Vec<String>,
}

/// A package tool of the user; verifies downloads as configured.
pub(super) trait Source: Sync {
    fn name(&self) -> &'static str;

    fn summary(&self) -> &'static str;

    /// Why it cannot be used here.
    fn problem(&self, keeper: &Keeper) -> Option<String>;

    /// Fails if the source lacks the packages, or its tool fails.
    fn download(&self, job: &Job<'_>, to: &Path) -> Result<Downloaded, KeeperError>;

    /// Programs can then be run in place. Fails if a tool fails.
    fn unpack(&self, job: &Job<'_>, packages: &Path, root: &Path) -> Result<(), KeeperError>;
}

/// Sorted.
fn file_names(folder: &Path) -> Result<Vec<String>, KeeperError> {
    let unreadable =
        |e: std::io::Error| KeeperError(format!("{} cannot be read: {e}", folder.display()));
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if entry.file_type().map_err(unreadable)?.is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn files_below(folder: &Path, is_picked: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let (mut open, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(path) = open.pop() {
        for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                Ok(kind) if kind.is_file() && is_picked(&entry.path()) => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Notes in which folder settings are found when looking like Maven and pyenv.
    const LOOK: &str = "#!/bin/sh
at=$(pwd -P)
while [ \"$at\" != / ] && [ ! -e \"$at/.mvn\" ] && [ ! -e \"$at/.python-version\" ]; do
    at=$(dirname \"$at\")
done
echo \"$at\" > \"$(dirname \"$0\")/found\"
";

    #[test]
    fn settings_above_the_store_do_not_count() {
        let folder = tempfile::tempdir().expect("a folder");
        let bench = fs::canonicalize(folder.path()).expect("it is there");
        let (tools, store) = (bench.join("tools"), bench.join("store"));
        let to = store.join(".new");
        for folder in [&tools, &store, &to, &bench.join(".mvn")] {
            fs::create_dir_all(folder).expect("made");
        }
        fs::write(bench.join(".python-version"), "../../evil").expect("written");
        for name in ["mvn", "pip3", "xz", "unzip"] {
            fs::write(tools.join(name), LOOK).expect("written");
            fs::set_permissions(tools.join(name), Permissions::from_mode(0o755)).expect("set");
        }
        let keeper = Keeper::new(&bench.join("keeper")).expect("made");
        let keeper = keeper.with_path(tools.as_os_str());
        let spec = PackageSpec {
            source: "any",
            packages: vec!["group:artifact".to_owned()],
            extras: Vec::new(),
            version: String::new(),
            programs: String::new(),
        };
        let (keeper, store, spec) = (&keeper, store.as_path(), &spec);
        let job = Job { keeper, store, spec, say: &|_| {}, now_unix_ms: 0 };
        let check = |source: &dyn Source, expected: &Path| {
            assert!(source.download(&job, &to).is_err());
            let found = fs::read_to_string(tools.join("found")).expect("it has run");
            assert_eq!(Path::new(found.trim_end()), expected, "{}", source.name());
        };
        check(&maven::Maven, &to);
        check(&python::Python, Path::new("/"));
        let left: Vec<_> = fs::read_dir(&to).expect("read").collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
