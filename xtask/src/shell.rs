//! Runs other programs, and prints.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in a folder").to_owned()
}

pub(crate) fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("{name} cannot be started"))?;
    if !status.success() {
        bail!("{name} ended with {status}");
    }
    Ok(())
}

pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("{name} cannot be started"))?;
    if !output.status.success() {
        // Nothing, if the command's errors were shown as they came.
        match String::from_utf8_lossy(&output.stderr).trim() {
            "" => bail!("{name} failed"),
            why => bail!("{name} failed: {why}"),
        }
    }
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
}

#[expect(clippy::print_stderr, reason = "a command prints")]
pub(crate) fn say(text: &str) {
    eprintln!("{text}");
}

#[expect(clippy::print_stdout, reason = "a command prints")]
pub(crate) fn print(text: &str) {
    println!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_command_says_what_there_is_to_say() {
        let check = |script: &str, expected: &str| {
            let error = output(Command::new("sh").args(["-c", script])).expect_err(expected);
            assert_eq!(error.to_string(), expected);
        };
        check("echo why >&2; exit 1", "sh failed: why");
        check("exit 1", "sh failed");
    }
}
