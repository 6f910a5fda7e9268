//! Finds PostgreSQL's programs on this machine.

use std::path::{Path, PathBuf};

use dyno_host::Keeper;

use crate::{DeployError, ServerSpec, version_fits};

/// Where Debian and its derivatives keep one folder for each version.
const DEBIAN_ROOT: &str = "/usr/lib/postgresql";

/// The programs of one installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Programs {
    /// Where `postgres` and `initdb` are.
    pub(super) folder: PathBuf,
    /// What `postgres --version` says: `15.14 (Debian …)`.
    pub(super) version: String,
}

/// The programs to start a server with: those in the folder of the spec, else the newest ones of
/// the version that the spec asks for.
pub(super) fn find(spec: &ServerSpec, keeper: &Keeper) -> Result<Programs, DeployError> {
    let folders = match &spec.programs {
        Some(folder) => vec![folder.clone(), folder.join("bin")],
        None => usual_folders(keeper),
    };
    let found: Vec<Programs> =
        folders.iter().filter_map(|folder| look_in(folder, keeper)).collect();
    choose(&found, spec.version.as_deref()).cloned().ok_or_else(|| missing(&folders, &found, spec))
}

fn usual_folders(keeper: &Keeper) -> Vec<PathBuf> {
    let versioned = std::fs::read_dir(DEBIAN_ROOT).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versioned.map(|entry| entry.path().join("bin")).collect();
    // So that messages and choices do not depend on the order of a directory.
    folders.sort();
    let in_path = keeper.find_program("postgres", &[]);
    folders.extend(in_path.as_deref().and_then(Path::parent).map(Path::to_owned));
    folders.extend(["/usr/local/pgsql/bin", "/usr/local/bin", "/usr/bin"].map(PathBuf::from));
    folders
}

/// The programs in a folder, if both are there and report their version.
fn look_in(folder: &Path, keeper: &Keeper) -> Option<Programs> {
    if !folder.join("initdb").is_file() {
        return None;
    }
    let text = keeper.ask(&folder.join("postgres"), &["--version"]).ok()?;
    let version = text.strip_prefix("postgres (PostgreSQL) ")?;
    Some(Programs { folder: folder.to_owned(), version: version.to_owned() })
}

/// The newest one whose version begins with what is wanted; among equals the first.
fn choose<'a>(found: &'a [Programs], wanted: Option<&str>) -> Option<&'a Programs> {
    let fits =
        |programs: &&Programs| wanted.is_none_or(|wanted| version_fits(&programs.version, wanted));
    found.iter().rev().filter(fits).max_by_key(|programs| numbers(&programs.version))
}

impl Programs {
    /// The first number of their version.
    pub(super) fn major(&self) -> u32 {
        numbers(&self.version).first().copied().unwrap_or_default()
    }
}

/// `16beta2 (…)` as 16, `15.14 (Debian …)` as 15, 14.
fn numbers(version: &str) -> Vec<u32> {
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
    version[..end].split('.').map_while(|part| part.parse().ok()).collect()
}

fn missing(folders: &[PathBuf], found: &[Programs], spec: &ServerSpec) -> DeployError {
    let list = |items: Vec<String>| items.join(", ");
    let folders = list(folders.iter().map(|folder| folder.display().to_string()).collect());
    let wanted = spec.version.as_deref().unwrap_or_default();
    DeployError::new(if found.is_empty() {
        format!(
            "PostgreSQL's programs `postgres` and `initdb` are not in {folders}; install them \
             (Debian: package `postgresql`), or name their folder with `programs`"
        )
    } else {
        let versions = list(found.iter().map(|programs| programs.version.clone()).collect());
        format!(
            "there is no PostgreSQL {wanted} here, only {versions}; install it (Debian: package \
             `postgresql-{wanted}`), name its folder with `programs`, or change `version`"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(versions: &[&str], wanted: Option<&str>, expected: Option<&str>) {
        let found: Vec<Programs> = versions
            .iter()
            .map(|&version| Programs { folder: version.into(), version: version.to_owned() })
            .collect();
        assert_eq!(choose(&found, wanted).map(|programs| programs.version.as_str()), expected);
    }

    #[test]
    fn newest_fitting_version_is_chosen() {
        let versions = ["9.6.24", "15.14 (Debian 15.14-0)", "16.2", "16.10", "17beta1"];
        check(&versions, None, Some("17beta1"));
        check(&versions, Some("16"), Some("16.10"));
        check(&versions, Some("15.1"), None);
        check(&versions, Some("15.14"), Some("15.14 (Debian 15.14-0)"));
        check(&versions, Some("1"), None);
        check(&[], None, None);
    }
}
