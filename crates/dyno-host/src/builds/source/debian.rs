//! Debian packages of the machine's release or another, unpacked with their libraries, the C
//! library included. Nothing is installed and no script runs.

use std::path::Path;

use dyno_units::version_fits;

use super::super::relocate::relocate;
use super::super::tool::Tool;
use super::apt_root::{self, AptRoot, Release};
use super::{Downloaded, Job, Source, TOOLS, file_names};
use crate::KeeperError;
use crate::keeper::Keeper;

pub(super) struct Debian;

impl Source for Debian {
    fn name(&self) -> &'static str {
        "debian"
    }

    fn summary(&self) -> &'static str {
        "packages of Debian or Ubuntu, for this machine's release and others"
    }

    fn problem(&self, keeper: &Keeper) -> Option<String> {
        apt_root::problem(keeper)
    }

    fn download(&self, job: &Job<'_>, to: &Path) -> Result<Downloaded, KeeperError> {
        let spec = job.spec;
        let release = Release::of_machine()
            .ok_or_else(|| KeeperError("this machine is neither Debian nor Ubuntu".into()))?;
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
            (job.say)(&format!("downloading {package} {version} of {suite}"));
            download(&root, job, to)?;
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

    fn unpack(&self, job: &Job<'_>, packages: &Path, root: &Path) -> Result<(), KeeperError> {
        let unpacker = Tool::find(job.keeper, "dpkg-deb", "dpkg")?;
        for file in file_names(packages)? {
            let package = packages.join(file);
            unpacker.run(root, ["-x".as_ref(), package.as_os_str(), root.as_os_str()])?;
        }
        let patchelf = patchelf(job)?;
        relocate(&patchelf, root)
    }
}

/// With the libraries that they need.
fn download(root: &AptRoot, job: &Job<'_>, to: &Path) -> Result<(), KeeperError> {
    let mut named = job.spec.packages.clone();
    named.extend(job.spec.extras.iter().filter(|extra| root.version(extra).is_some()).cloned());
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
fn patchelf(job: &Job<'_>) -> Result<Tool, KeeperError> {
    if let Some(program) = job.keeper.find_program("patchelf", &[]) {
        return Ok(Tool(program));
    }
    let folder = job.store.join(TOOLS).join("patchelf");
    let program = folder.join("usr/bin/patchelf");
    if program.is_file() {
        return Ok(Tool(program));
    }
    let release = Release::of_machine()
        .ok_or_else(|| KeeperError("the program `patchelf` is missing; install it".into()))?;
    let root = AptRoot::open(job, &release.suite, &release.suite)?;
    let version = root.version("patchelf").ok_or_else(|| {
        KeeperError("the program `patchelf` is missing; install the package `patchelf`".into())
    })?;
    let made = std::fs::create_dir_all(&folder);
    made.map_err(|e| KeeperError(format!("{} cannot be created: {e}", folder.display())))?;
    root.download(&[("patchelf".to_owned(), version)], &folder)?;
    let unpacker = Tool::find(job.keeper, "dpkg-deb", "dpkg")?;
    for file in file_names(&folder)? {
        unpacker.run(&folder, ["-x", &file, "."])?;
    }
    Ok(Tool(program))
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
}
