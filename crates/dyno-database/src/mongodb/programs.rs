//! Finds FerretDB's program on this machine.

use std::path::{Path, PathBuf};

use dyno_host::Keeper;

use crate::installation::{choose_here, on_machine, usual_folders};
use crate::{DeployError, Installation, ServerSpec};

pub(super) const PROGRAM: &str = "ferretdb";

/// Where it is besides PATH.
const PLACES: [&str; 2] = ["/usr/bin", "/usr/local/bin"];

/// The program to start a server with: the one in the folder of the spec, else the best that fits.
pub(super) fn find(spec: &ServerSpec, keeper: &Keeper) -> Result<Installation, DeployError> {
    let folders = match &spec.programs {
        Some(folder) => vec![folder.clone(), folder.join("bin")],
        None => usual_folders(PROGRAM, &PLACES, keeper),
    };
    let advice = "docs/documents.md says how to build it from its Go module;";
    let found = in_folders(&folders, keeper);
    let chosen = choose_here(("FerretDB", PROGRAM, advice), (&folders, &found), spec)?;
    check_version(&chosen.version)?;
    Ok(chosen)
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

pub(super) fn installations(keeper: &Keeper) -> Vec<Installation> {
    in_folders(&usual_folders(PROGRAM, &PLACES, keeper), keeper)
}

fn in_folders(folders: &[PathBuf], keeper: &Keeper) -> Vec<Installation> {
    // Its version does not say who built it.
    on_machine(folders, PROGRAM, |folder| version_in(folder, keeper), |_, _| String::new())
}

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
