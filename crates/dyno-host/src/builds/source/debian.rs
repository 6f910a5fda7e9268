//! Debian packages of the machine's release or another, unpacked with their libraries, the C
//! library included. Nothing is installed and no script runs.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use dyno_units::version_fits;

use super::super::tool::Tool;
use super::apt_root::{self, AptRoot, Release};
use super::{Downloaded, Job, Source, TOOLS, file_names, files_below, unpack_apart};
use crate::error::{KeeperError, OrKeeper, Result};

pub(super) const DEBIAN: Source = Source {
    name: "debian",
    summary: "packages of Debian or Ubuntu, for this machine's release and others",
    problem: apt_root::problem,
    download,
    unpack,
};

fn download(job: &Job<'_>, to: &Path) -> Result<Downloaded> {
    let spec = job.order.spec;
    let release =
        Release::of_machine().or_keeper(|| "this machine is neither Debian nor Ubuntu")?;
    let package = spec.packages.first().cloned().unwrap_or_default();
    let (mut seen, mut failed) = (Vec::new(), None);
    for suite in release.suites() {
        // The mirror lacks the suite, or the machine does not trust its key.
        let root = match AptRoot::open(job, &release.suite, suite) {
            Ok(root) => root,
            Err(error) => {
                failed.get_or_insert(error);
                continue;
            }
        };
        let Some(version) = root.version(&package) else { continue };
        if !version_fits(upstream(&version), &spec.version) {
            seen.push(format!("{version} in {suite}"));
            continue;
        }
        (job.order.say)(&format!("downloading {package} {version} of {suite}"));
        download_all(&root, job, to)?;
        return Ok(Downloaded {
            builder: format!("{} {suite}", release.title),
            package,
            version,
            files: file_names(to)?,
        });
    }
    let found = match seen.as_slice() {
        [] => String::new(),
        seen => format!("; there is {}", seen.join(", ")),
    };
    let failed = failed.map(|error| format!(" ({error})")).unwrap_or_default();
    Err(KeeperError(format!(
        "no suite of {} has the package {package} in {}{found}{failed}",
        release.title,
        match spec.version.as_str() {
            "" => "any version".to_owned(),
            version => format!("version {version}"),
        }
    )))
}

fn unpack(job: &Job<'_>, packages: &Path, root: &Path) -> Result<()> {
    let unpacker = Tool::find(job.keeper, "dpkg-deb", "dpkg")?;
    for file in file_names(packages)? {
        let package = packages.join(file);
        unpack_apart(root, |part| {
            let words = ["-x".as_ref(), package.as_os_str(), part.as_os_str()];
            unpacker.run(part, words).map(drop)
        })?;
    }
    let patchelf = patchelf(job)?;
    relocate(&patchelf, root)
}

/// With the libraries that they need.
fn download_all(root: &AptRoot, job: &Job<'_>, to: &Path) -> Result<()> {
    let mut named = job.order.spec.packages.clone();
    named.extend(
        job.order.spec.extras.iter().filter(|extra| root.version(extra).is_some()).cloned(),
    );
    let mut wanted = root.closure(&named)?;
    wanted.retain(|(name, _)| named.contains(name) || is_library(name));
    root.download(&wanted, to)
}

/// Other dependencies are for installing.
fn is_library(name: &str) -> bool {
    let is_perl = name.starts_with("libperl") || name.ends_with("-perl");
    (name.starts_with("lib") && !is_perl) || name == "zlib1g"
}

/// Without its epoch.
fn upstream(version: &str) -> &str {
    match version.split_once(':') {
        Some((epoch, rest)) if epoch.bytes().all(|byte| byte.is_ascii_digit()) => rest,
        _ => version,
    }
}

/// Changes where programs look for libraries. The machine's, or fetched.
fn patchelf(job: &Job<'_>) -> Result<Tool> {
    if let Some(program) = job.keeper.find_program("patchelf", &[]) {
        return Ok(Tool(program));
    }
    let folder = job.store.join(TOOLS).join("patchelf");
    let program = folder.join("usr/bin/patchelf");
    if program.is_file() {
        return Ok(Tool(program));
    }
    let release =
        Release::of_machine().or_keeper(|| "the program `patchelf` is missing; install it")?;
    let root = AptRoot::open(job, &release.suite, &release.suite)?;
    let missing = || "the program `patchelf` is missing; install the package `patchelf`";
    let version = root.version("patchelf").or_keeper(missing)?;
    fs::create_dir_all(&folder).or_path(&folder, "cannot be created")?;
    root.download(&[("patchelf".to_owned(), version)], &folder)?;
    let unpacker = Tool::find(job.keeper, "dpkg-deb", "dpkg")?;
    for file in file_names(&folder)? {
        unpacker.run(&folder, ["-x", &file, "."])?;
    }
    Ok(Tool(program))
}

/// Libraries below the root; each may have a folder for the architecture.
const LIBRARY_FOLDERS: [&str; 2] = ["usr/lib", "lib"];
/// `PT_INTERP` of the ELF specification: names the program's interpreter.
const PT_INTERP: u32 = 3;

/// Makes programs of another release run where they were unpacked, with their own C library: sets
/// interpreter and library folders of all programs below a root.
fn relocate(patchelf: &Tool, root: &Path) -> Result<()> {
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
    let is_its = |path: &PathBuf| path.to_string_lossy().contains("-linux-gnu") && path.is_dir();
    let mut folders: Vec<PathBuf> =
        of_architecture.map(|entry| entry.path()).filter(is_its).collect();
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
    files_below(root, |path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        !name.contains(".so") && has_interpreter(path).unwrap_or(false)
    })
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
    fn only_libraries_are_taken_of_what_packages_need() {
        let check = |name: &str, expected: bool| assert_eq!(is_library(name), expected, "{name}");
        check("libc6", true);
        check("libllvm19", true);
        check("zlib1g", true);
        check("libperl5.40", false);
        check("libjson-perl", false);
        check("passwd", false);
        check("postgresql-common", false);
    }

    #[test]
    fn an_epoch_is_no_part_of_the_version() {
        let check = |version: &str, expected: &str| assert_eq!(upstream(version), expected);
        check("1:10.11.6-0+deb12u1", "10.11.6-0+deb12u1");
        check("17.11-0+deb13u1", "17.11-0+deb13u1");
    }

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
