//! Finds FerretDB's program on this machine.

use std::path::{Path, PathBuf};

use dyno_host::{Keeper, Origin};

use crate::installation::choose;
use crate::{DeployError, Installation, ServerSpec};

/// The name of the program.
pub(super) const PROGRAM: &str = "ferretdb";

/// The program of one installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Programs {
    /// The folder with the program.
    pub(super) folder: PathBuf,
    /// Its version: `1.24.0`.
    pub(super) version: String,
    /// Where it comes from.
    pub(super) origin: Origin,
}

/// The program to start a server with: the one in the folder of the spec, else the best that fits.
pub(super) fn find(spec: &ServerSpec, keeper: &Keeper) -> Result<Programs, DeployError> {
    let folders = match &spec.programs {
        Some(folder) => vec![folder.clone(), folder.join("bin")],
        None => usual_folders(keeper),
    };
    let found = on_machine(&folders, keeper);
    if let Some(chosen) = choose(&found, spec) {
        check_version(&chosen.version)?;
        return Ok(Programs {
            folder: chosen.programs.clone(),
            version: chosen.version.clone(),
            origin: chosen.origin.clone(),
        });
    }
    if found.is_empty() {
        let folders: Vec<String> =
            folders.iter().map(|folder| folder.display().to_string()).collect();
        return Err(DeployError::new(format!(
            "FerretDB's program `{PROGRAM}` is not in {}; docs/documents.md says how to build it \
             from its Go module; name its folder with `programs`",
            folders.join(", ")
        )));
    }
    let here: Vec<&str> = found.iter().map(|one| one.version.as_str()).collect();
    Err(DeployError::new(format!(
        "the requested FerretDB is not installed on this machine, which has {}; Dyno cannot fetch \
         it: name the folder of another one with `programs`, or request another version",
        here.join(", ")
    )))
}

/// FerretDB 2 has no SQLite in it: it needs PostgreSQL with an extension.
fn check_version(version: &str) -> Result<(), DeployError> {
    match version.starts_with("1.") {
        true => Ok(()),
        false => Err(DeployError::new(format!(
            "FerretDB {version} stores its documents in a PostgreSQL with an extension, which Dyno \
             does not start; use version 1, or start it yourself and give its URL"
        ))),
    }
}

/// All that are here.
pub(super) fn installations(keeper: &Keeper) -> Vec<Installation> {
    on_machine(&usual_folders(keeper), keeper)
}

fn on_machine(folders: &[PathBuf], keeper: &Keeper) -> Vec<Installation> {
    let mut all: Vec<Installation> = Vec::new();
    for folder in folders {
        let program = |folder: &Path| std::fs::canonicalize(folder.join(PROGRAM)).ok();
        if all.iter().any(|one| program(&one.programs) == program(folder)) {
            continue;
        }
        if let Some(version) = version_in(folder, keeper) {
            // Its version does not say who built it.
            all.push(Installation::on_machine(folder.clone(), version, String::new()));
        }
    }
    all
}

fn usual_folders(keeper: &Keeper) -> Vec<PathBuf> {
    let in_path = keeper.find_program(PROGRAM, &[]);
    let mut folders: Vec<PathBuf> =
        in_path.as_deref().and_then(Path::parent).map(Path::to_owned).into_iter().collect();
    folders.extend(["/usr/bin", "/usr/local/bin"].map(PathBuf::from));
    folders
}

/// The version of the program in a folder, if it is there and tells.
pub(super) fn version_in(folder: &Path, keeper: &Keeper) -> Option<String> {
    let program = folder.join(PROGRAM);
    std::fs::metadata(&program).ok().filter(|facts| facts.is_file())?;
    version_said(&keeper.ask(&program, &["--version"]).ok()?)
}

/// `version: v1.24.0` among other lines.
fn version_said(text: &str) -> Option<String> {
    let version = text.lines().find_map(|line| line.strip_prefix("version: "))?.trim();
    let version = version.strip_prefix('v').unwrap_or(version);
    version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_what_the_program_says() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(version_said(text).as_deref(), expected, "{text}");
        };
        check("version: v1.24.0\ncommit: unknown\nbranch: unknown\n", Some("1.24.0"));
        check("version: unknown\n", None);
        check("commit: v1\n", None);
        assert!(check_version("1.24.0").is_ok());
        assert!(check_version("2.0.0").unwrap_err().message.contains("use version 1"));
    }
}
