//! The sources of packages: each is one of the user's package tools.

mod apt_root;
mod debian;
mod maven;
mod python;

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{FetchOrder, LISTS, TOOLS};
use crate::{Keeper, OrKeeper, Result};

/// In the order in which they are asked.
const SOURCES: &[Source] = &[debian::DEBIAN, maven::MAVEN, python::PYTHON];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceInfo {
    /// In `from` and `--from`: `debian`.
    pub name: &'static str,
    pub summary: &'static str,
    /// Why it cannot be used here.
    pub problem: Option<String>,
}

pub fn package_sources(keeper: &Keeper) -> Vec<SourceInfo> {
    let info = |source: &Source| SourceInfo {
        name: source.name,
        summary: source.summary,
        problem: (source.problem)(keeper),
    };
    SOURCES.iter().map(info).collect()
}

pub fn package_source_names() -> impl Iterator<Item = &'static str> {
    SOURCES.iter().map(|source| source.name)
}

pub(super) fn named(name: &str) -> Result<&'static Source> {
    let found = SOURCES.iter().find(|source| source.name == name);
    found.or_keeper(|| format!("there is no source of packages called `{name}`"))
}

/// As builders are called: `Debian bookworm`.
pub fn distribution() -> Option<String> {
    let release = apt_root::Release::of_machine()?;
    Some(format!("{} {}", release.title, release.suite))
}

pub(super) struct Job<'a> {
    pub(super) keeper: &'a Keeper,
    pub(super) store: &'a Path,
    pub(super) order: &'a FetchOrder<'a>,
}

pub(super) struct Downloaded {
    pub(super) builder: String,
    pub(super) package: String,
    pub(super) version: String,
    /// In the given folder.
    pub(super) files: Vec<String>,
}

/// A package tool of the user; verifies downloads as configured.
pub(super) struct Source {
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    /// Why it cannot be used here.
    pub(super) problem: fn(&Keeper) -> Option<String>,
    /// Into this folder. Fails if the source lacks the packages, or its tool fails.
    pub(super) download: fn(&Job<'_>, &Path) -> Result<Downloaded>,
    /// From a folder into another, where programs can then be run. Fails if a tool fails.
    pub(super) unpack: fn(&Job<'_>, &Path, &Path) -> Result<()>,
}

fn file_names(folder: &Path) -> Result<Vec<String>> {
    let read = || -> std::io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        names.sort();
        Ok(names)
    };
    read().or_path(folder, "cannot be read")
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

/// Unpacks one archive into a folder of its own, and moves what it holds to `root`: through a link that another
/// archive brought, it would be written elsewhere. The folder is beside `root`, where nobody else may be.
fn unpack_apart(root: &Path, unpack: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let part = root.with_file_name(".part");
    fs::create_dir(&part).or_path(&part, "cannot be created")?;
    unpack(&part)?;
    merge(&part, root).or_path(root, "cannot be written")?;
    fs::remove_dir_all(&part).or_path(&part, "cannot be removed")
}

/// Follows no link.
fn merge(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (inner, place) = (entry.path(), to.join(entry.file_name()));
        let is_folder = entry.file_type()?.is_dir();
        if is_folder {
            // Only who may write to a folder may move it.
            fs::set_permissions(&inner, Permissions::from_mode(0o700))?;
        }
        match fs::symlink_metadata(&place) {
            Ok(there) if is_folder && there.is_dir() => merge(&inner, &place)?,
            Ok(there) if is_folder || there.is_dir() => {
                let name = place.display();
                return Err(io::Error::other(format!(
                    "one archive has a folder {name}, another no folder"
                )));
            }
            _ => fs::rename(&inner, &place)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::PackageSpec;
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
    fn a_link_of_one_archive_leads_no_other_one_elsewhere() {
        let folder = tempfile::tempdir().expect("a folder");
        let (root, outside) = (folder.path().join("root"), folder.path().join("outside"));
        for folder in [&root, &outside] {
            fs::create_dir(folder).expect("made");
        }
        fs::write(outside.join("secret"), "secret").expect("written");
        // Links are as tar makes them; the others are files with their own names as text.
        let archive = |links: &[(&str, &str)], files: &[&str]| {
            let unpacked = unpack_apart(&root, |part| {
                for (name, target) in links {
                    symlink(outside.join(target), part.join(name)).expect("linked");
                }
                for name in files {
                    let path = part.join(name);
                    fs::create_dir_all(path.parent().expect("it has one")).expect("made");
                    fs::write(&path, name).expect("written");
                }
                Ok(())
            });
            let text = fs::read_to_string(outside.join("secret")).expect("there");
            assert_eq!((text.as_str(), files_below(&outside, |_| true).len()), ("secret", 1));
            unpacked
        };
        archive(&[("a", ""), ("b", "secret"), ("c", "new")], &["lib/x", "lib/y/z"]).expect("done");
        archive(&[], &["b", "c", "lib/y/w", "lib/x"]).expect("done");
        let error = archive(&[], &["a/evil"]).expect_err("refused").0;
        assert!(error.contains("one archive has a folder"), "{error}");
        fs::remove_dir_all(root.with_file_name(".part")).expect("removed");
        assert!(archive(&[("lib", "")], &[]).is_err());
        let expected = ["b", "c", "lib/x", "lib/y/w", "lib/y/z"].map(|name| root.join(name));
        assert_eq!(files_below(&root, |_| true), expected);
    }

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
        let (accept, say) = (&|_: &Path| Ok(String::new()), &|_: &str| {});
        let order = FetchOrder { product: "any", spec, accept, now_unix_ms: 0, say };
        let job = Job { keeper, store, order: &order };
        let check = |source: &Source, expected: &Path| {
            assert!((source.download)(&job, &to).is_err());
            let found = fs::read_to_string(tools.join("found")).expect("it has run");
            assert_eq!(Path::new(found.trim_end()), expected, "{}", source.name);
        };
        check(&maven::MAVEN, &to);
        check(&python::PYTHON, Path::new("/"));
        let left: Vec<_> = fs::read_dir(&to).expect("read").collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
