//! Runs the user's package tools in Dyno's environment, so that they find the user's settings.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{KeeperError, OrKeeper, Result};
use crate::keeper::{Keeper, lines_with_words};

/// Tools such as pyenv look for settings in parent folders: here are none, unlike in /var/tmp.
pub(super) const ROOT_FOLDER: &str = "/";

#[derive(Clone, Debug)]
pub(crate) struct Tool(pub(crate) PathBuf);

impl Tool {
    /// The error says which package has it.
    pub(super) fn find(keeper: &Keeper, name: &str, package: &str) -> Result<Tool> {
        keeper.needed_program(name, package).map(Tool)
    }

    pub(crate) fn run<S: AsRef<std::ffi::OsStr>>(
        &self,
        folder: &Path,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<String> {
        let program = self.0.display();
        let output = Command::new(&self.0)
            .args(arguments)
            .env("LC_ALL", "C.UTF-8")
            .current_dir(folder)
            .stdin(Stdio::null())
            .output()
            .or_keeper(|| format!("{program} cannot be started"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, errors) = (text(&output.stdout), text(&output.stderr));
        if output.status.success() {
            return Ok(out);
        }
        let said = [lines_with_words(&out), lines_with_words(&errors)].concat();
        Err(KeeperError(format!("{program} failed ({}): {}", output.status, said.join("; "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_fails_is_quoted() {
        let shell = Tool("/bin/sh".into());
        let run = |script: &str| shell.run(Path::new("/"), ["-c", script]);
        assert_eq!(run("echo fine").expect("it ends well"), "fine\n");
        let error = run("echo some; echo bad >&2; exit 3").expect_err("it fails").0;
        assert!(error.contains("3") && error.contains("some; bad"), "{error}");
        let error = run("echo the key is token=hunter2; exit 1").expect_err("it fails").0;
        assert!(error.contains("token=***") && !error.contains("hunter2"), "{error}");
        let missing = Tool("/no/such".into()).run(Path::new("/"), ["x"]).expect_err("missing").0;
        assert!(missing.contains("/no/such cannot be started"), "{missing}");
    }
}
