//! Fetches a build: download, unpack, ask its version; only then it is complete.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};

use super::source::{self, Downloaded, Job, Source};
use super::{
    BUILD_FILE, Build, BuildStore, Description, FORMAT, Origin, PACKAGES, PackageFile, ROOT, hash,
    read, remove_all, remove_build,
};
use crate::{Keeper, OrKeeper, Result};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageSpec {
    pub source: &'static str,
    /// The first one has the server.
    pub packages: Vec<String>,
    /// Optional packages, fetched if the source has them.
    pub extras: Vec<String>,
    /// Prefix of the first package's version; empty for the newest.
    pub version: String,
    /// Folder of the programs in the packages; a star stands for any name.
    pub programs: String,
}

pub struct FetchOrder<'a> {
    pub product: &'a str,
    pub spec: &'a PackageSpec,
    /// Asks a folder's programs for the server's version; the error says why they are not wanted.
    pub accept: &'a dyn Fn(&Path) -> Result<String, String>,
    pub now_unix_ms: u64,
    pub say: &'a dyn Fn(&str),
}

impl BuildStore {
    /// Fetches a build with the user's package tools, unless it is there. Fails and leaves nothing
    /// if the source lacks it, or it cannot be unpacked here, or is not what was wanted.
    pub fn fetch(&self, keeper: &Keeper, order: &FetchOrder<'_>) -> Result<Build> {
        let source = source::named(order.spec.source)?;
        let _lock = self.lock()?;
        let store = self.checked()?;
        let staging = store.join(".new");
        remove_all(&staging)?;
        make(&staging, 0o755)?;
        let job = Job { keeper, store: &store, order };
        let result = (source.download)(&job, &staging).and_then(|downloaded| {
            let folder = store.join(folder_name(order, &downloaded));
            if let Ok(found) = read(&folder) {
                return Ok(found.build(&folder));
            }
            remove_build(&folder)?;
            let made = complete(source, &job, (&staging, &folder), downloaded);
            if made.is_err() {
                // The first error is the one to report.
                let _ = remove_build(&folder);
            }
            made
        });
        remove_all(&staging)?;
        result
    }
}

/// `postgresql-debian-17.11-0+deb13u1`.
fn folder_name(order: &FetchOrder<'_>, downloaded: &Downloaded) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '~');
    // Without the epoch of Debian's versions.
    let version = downloaded.version.rsplit(':').next().unwrap_or_default();
    let version: String = version.chars().map(|c| if is_safe(c) { c } else { '_' }).collect();
    format!("{}-{}-{version}", order.product, order.spec.source)
}

/// Unpacks packages in their final folder, adapts programs to it, and asks the version.
fn complete(
    source: &Source,
    job: &Job<'_>,
    (staging, folder): (&Path, &Path),
    downloaded: Downloaded,
) -> Result<Build> {
    let order = job.order;
    // Unpacked files have the packages' owners and modes: until these change, nobody gets there.
    make(folder, 0o700)?;
    let packages = folder.join(PACKAGES);
    fs::rename(staging, &packages).or_path(&packages, "cannot be written")?;
    let files = package_files(&packages, &downloaded.files)?;
    let root = folder.join(ROOT);
    make(&root, 0o755)?;
    (order.say)(&format!("unpacking {}", downloaded.package));
    (source.unpack)(job, &packages, &root)?;
    let programs = resolved(&root, &order.spec.programs).or_keeper(|| {
        format!(
            "{} {} has no folder {}",
            downloaded.package, downloaded.version, order.spec.programs
        )
    })?;
    open_to_all(&root, &programs).or_path(&root, "cannot be written")?;
    let opened = fs::set_permissions(folder, Permissions::from_mode(0o755));
    opened.or_path(folder, "cannot be written")?;
    let version = (order.accept)(&programs)
        .or_keeper(|| format!("{} {}", downloaded.package, downloaded.version))?;
    let description = Description {
        format: FORMAT,
        folder: folder.to_owned(),
        product: order.product.to_owned(),
        version,
        origin: Origin {
            source: order.spec.source.to_owned(),
            builder: downloaded.builder,
            package: Some(downloaded.package),
            package_version: Some(downloaded.version),
        },
        programs: programs.strip_prefix(folder).unwrap_or(&programs).to_owned(),
        bytes: crate::folder_bytes(folder).unwrap_or(0),
        fetched_unix_ms: order.now_unix_ms,
        packages: files,
        unpacked_sha256: hash::of_tree(&root)?,
    };
    write(folder, &description).or_path(folder, "cannot be written")?;
    Ok(description.build(folder))
}

/// Marks a build as complete; whole or not at all.
fn write(folder: &Path, description: &Description) -> std::io::Result<()> {
    let fresh = folder.join(".build.json.new");
    let mut file = fs::File::create(&fresh)?;
    file.write_all(&serde_json::to_vec_pretty(description)?)?;
    file.sync_all()?;
    fs::rename(&fresh, folder.join(BUILD_FILE))
}

fn make(folder: &Path, mode: u32) -> Result<()> {
    let made = fs::DirBuilder::new().mode(mode).create(folder);
    // The umask may have taken bits away.
    let made = made.and_then(|()| fs::set_permissions(folder, Permissions::from_mode(mode)));
    made.or_path(folder, "cannot be created")
}

fn package_files(folder: &Path, names: &[String]) -> Result<Vec<PackageFile>> {
    let file = |name: &String| {
        let path = folder.join(name);
        let bytes = fs::metadata(&path).map_or(0, |facts| facts.len());
        Ok(PackageFile { file: name.clone(), sha256: hash::of_file(&path)?, bytes })
    };
    names.iter().map(file).collect()
}

/// A star stands for any name.
fn resolved(root: &Path, pattern: &str) -> Option<PathBuf> {
    let mut found = vec![root.to_owned()];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        found = match part {
            "*" => {
                let inner = found.iter().flat_map(fs::read_dir).flatten().flatten();
                let mut folders: Vec<PathBuf> = inner.map(|entry| entry.path()).collect();
                folders.sort();
                folders
            }
            name => found.into_iter().map(|folder| folder.join(name)).collect(),
        };
        found.retain(|folder| folder.is_dir());
    }
    found.into_iter().next()
}

/// Lets all users read the files and run the programs, as servers of root run as another user.
/// Removes set-user-id bits and the package's owners, who are other users here.
fn open_to_all(root: &Path, programs: &Path) -> std::io::Result<()> {
    let me = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let mut open = vec![root.to_owned()];
    while let Some(path) = open.pop() {
        let facts = fs::symlink_metadata(&path)?;
        if facts.uid() != me.0 || facts.gid() != me.1 {
            lchown(&path, Some(me.0), Some(me.1))?;
        }
        if facts.is_symlink() {
            continue;
        }
        let mut mode = facts.permissions().mode() & 0o755 | 0o644;
        if facts.is_dir() {
            mode |= 0o111;
            for entry in fs::read_dir(&path)? {
                open.push(entry?.path());
            }
        } else if mode & 0o100 != 0 || (path.starts_with(programs) && is_program(&path)) {
            mode |= 0o111;
        }
        fs::set_permissions(&path, Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Archives without modes unpack programs as plain files.
fn is_program(path: &Path) -> bool {
    use std::io::Read;
    let mut begin = [0; 4];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut begin));
    read.is_ok() && (begin == *b"\x7fELF" || begin.starts_with(b"#!"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_folder() {
        let root = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(root.path().join("a/mariadb-11.4.5/linux64/bin")).expect("made");
        fs::create_dir_all(root.path().join("a/other")).expect("made");
        let check = |pattern: &str, expected: Option<&str>| {
            let expected = expected.map(|path| root.path().join(path));
            assert_eq!(resolved(root.path(), pattern), expected, "{pattern}");
        };
        check("a/*/linux64", Some("a/mariadb-11.4.5/linux64"));
        check("*/*/*/bin", Some("a/mariadb-11.4.5/linux64/bin"));
        check("a/*/linux32", None);
        check("", Some(""));
    }

    /// Their files belong to another user until they are unpacked.
    const GIVEN: Source = Source {
        name: "given",
        summary: "a test",
        problem: |_| None,
        download: |_, _| unreachable!("it is there"),
        unpack: |_, _, root| {
            assert_eq!(mode_of(root.parent().expect("it has one")), 0o700);
            // As dpkg-deb does, from the package's own root.
            fs::set_permissions(root, Permissions::from_mode(0o755)).expect("set");
            fs::create_dir(root.join("bin")).expect("made");
            fs::write(root.join("bin/db"), "#!/bin/sh").expect("written");
            Ok(())
        },
    };

    fn mode_of(path: &Path) -> u32 {
        fs::metadata(path).expect("it is there").permissions().mode() & 0o7777
    }

    #[test]
    fn nobody_else_gets_at_files_that_still_have_the_owners_of_their_package() {
        let bench = tempfile::tempdir().expect("a folder");
        let store = bench.path().join("store");
        let (staging, folder) = (store.join(".new"), store.join("db-given-1"));
        fs::create_dir_all(&staging).expect("made");
        let keeper = Keeper::new(&bench.path().join("keeper")).expect("made");
        let spec = PackageSpec {
            source: "given",
            packages: vec!["db".to_owned()],
            extras: Vec::new(),
            version: String::new(),
            programs: "bin".to_owned(),
        };
        let accept = |programs: &Path| {
            // As the servers' user will see them.
            assert_eq!((mode_of(&folder), mode_of(&programs.join("db"))), (0o755, 0o755));
            Ok("1".to_owned())
        };
        let order = FetchOrder {
            product: "db",
            spec: &spec,
            accept: &accept,
            now_unix_ms: 0,
            say: &|_| {},
        };
        let job = Job { keeper: &keeper, store: &store, order: &order };
        let downloaded = Downloaded {
            builder: String::new(),
            package: "db".to_owned(),
            version: "1".to_owned(),
            files: Vec::new(),
        };
        complete(&GIVEN, &job, (&staging, &folder), downloaded).expect("it is complete");
    }

    #[test]
    fn programs_can_be_run_by_all_and_with_nobodys_rights() {
        let root = tempfile::tempdir().expect("a folder");
        let make = |name: &str, text: &str, mode: u32| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("it has one")).expect("made");
            fs::write(&path, text).expect("written");
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("set");
        };
        make("bin/server", "\x7fELF and more", 0o600);
        make("bin/script", "#!/bin/sh", 0o600);
        make("bin/notes", "text", 0o600);
        make("lib/helper", "\x7fELF", 0o4750);
        if rustix::process::geteuid().is_root() {
            // A user of the machine where the package was built.
            lchown(root.path().join("bin/server"), Some(54_321), Some(54_321)).expect("given away");
        }
        open_to_all(root.path(), &root.path().join("bin")).expect("done");
        let me = rustix::process::geteuid().as_raw();
        assert_eq!(fs::metadata(root.path().join("bin/server")).expect("there").uid(), me);
        let check = |name: &str, expected: u32| {
            let mode = fs::metadata(root.path().join(name)).expect("there").permissions().mode();
            assert_eq!(mode & 0o7777, expected, "{name}");
        };
        check("bin/server", 0o755);
        check("bin/script", 0o755);
        check("bin/notes", 0o644);
        check("lib/helper", 0o755);
    }
}
