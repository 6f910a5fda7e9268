//! Finds FerretDB's program on this machine.

use std::path::Path;

use dyno_host::Keeper;

use crate::error::{Result, fail};
use crate::installation::Finder;

pub(super) const PROGRAM: &str = "ferretdb";

pub(super) static FINDER: Finder = Finder {
    title: "FerretDB",
    program: PROGRAM,
    places: &["/usr/bin", "/usr/local/bin"],
    advice: "docs/documents.md says how to build it from its Go module;",
    version: version_in,
    // Its version does not say who built it.
    builder: |_, _| String::new(),
};

/// FerretDB 2 has no SQLite in it: it needs PostgreSQL with an extension.
pub(super) fn check_version(version: &str) -> Result<()> {
    match version.starts_with("1.") {
        true => Ok(()),
        false => fail(format!(
            "FerretDB {version} stores its documents in a PostgreSQL with an extension, which Dyno \
             does not start; use version 1, or start it yourself and give its URL"
        )),
    }
}

fn version_in(folder: &Path, keeper: &Keeper) -> Option<String> {
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
