//! Runs tests with nextest, as scripts/test does, and reads the results.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::shell::{root, say};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) passed: usize,
    /// Passed without trying what this machine lacks.
    pub(crate) skipped: usize,
    /// With how they failed: `FAIL dyno::it faults::a_disk_is_full`.
    pub(crate) failed: BTreeSet<String>,
}

pub(crate) fn target() -> PathBuf {
    // A relative path starts where the command was called.
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// With the programs that scripts/test installs.
pub(crate) fn command() -> anyhow::Result<Command> {
    let mut folders = vec![target().join("tools/bin"), root().join("target/programs")];
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    if !folders.iter().any(|folder| folder.join("cargo-nextest").exists()) {
        bail!(
            "there is no cargo-nextest: scripts/test installs it into target/tools, \
             `cargo install --locked cargo-nextest` builds it"
        );
    }
    let mut command = Command::new(root().join("scripts/in-memory"));
    command
        .args(["cargo", "nextest", "run", "--locked", "--no-fail-fast", "--color", "never"])
        .args(["--final-status-level", "fail", "--cargo-quiet"])
        .env("PATH", std::env::join_paths(folders)?)
        .current_dir(root());
    Ok(command)
}

/// Passes the output on; fails if it has no results.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<Totals> {
    let junit = target().join("nextest/default/junit.xml");
    // An earlier run's file must not be read.
    let _ = std::fs::remove_file(&junit);
    let mut child =
        command.stderr(Stdio::piped()).spawn().context("cargo nextest cannot be started")?;
    let printed = child.stderr.take().context("its output is piped")?;
    let mut text = String::new();
    for line in BufReader::new(printed).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        say(&line);
        text += &line;
        text.push('\n');
    }
    let status = child.wait()?;
    let mut totals = read(&text).with_context(|| format!("nextest ended with {status}"))?;
    let junit = std::fs::read_to_string(&junit)
        .with_context(|| format!("cannot read {}", junit.display()))?;
    totals.skipped = skipped(&junit);
    if !status.success() && totals.failed.is_empty() {
        bail!("nextest ended with {status}, and names no test that failed");
    }
    Ok(totals)
}

/// Tests that say that they skipped something.
fn skipped(junit: &str) -> usize {
    let tests = junit.split("<testcase ").skip(1);
    tests.filter(|test| test.to_lowercase().contains("skipped: ")).count()
}

/// From the last lines of the output, without skipped tests.
fn read(text: &str) -> Option<Totals> {
    let at = text.rfind(" Summary [")?;
    let mut lines = text[at..].lines();
    let mut totals = Totals::default();
    for part in lines.next()?.split(", ") {
        let words = part.rsplit(": ").next()?;
        let count = |what: &str| words.split_once(what)?.0.parse().ok();
        totals.passed += count(" passed").unwrap_or(0);
    }
    totals.failed = lines
        .filter_map(|line| {
            let (how, rest) = line.trim_start().split_once(" [")?;
            let (_, name) = rest.split_once("] ")?;
            let name = name.split_once(") ").map_or(name, |(_, name)| name);
            let is_status =
                how.chars().all(|c| c.is_ascii_uppercase() || "-+ 0123456789".contains(c));
            // Slow tests that passed are listed as well.
            let is_failure = is_status && !["PASS", "SLOW", "LEAK", "FLAKY"].contains(&how);
            is_failure.then(|| format!("{how} {name}"))
        })
        .collect();
    Some(totals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, passed: usize, failed: &[&str]) {
        let failed = failed.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(read(text), Some(Totals { passed, skipped: 0, failed }), "{text}");
    }

    #[test]
    fn totals_are_read() {
        check("     Summary [   0.024s] 1 test run: 1 passed, 6 skipped\n", 1, &[]);
        let text = "        FAIL [   0.564s] (2/6) nx a::bad\n  Summary [ no\n────────────
     Summary [   3.087s] 6 tests run: 2 passed (1 slow), 3 failed (1 due to being leaky), 1 timed out, 1 skipped
     SIGABRT [   0.066s] (1/6) nx a::abort
        SLOW [   2.066s] (1/6) nx a::slow
   LEAK-FAIL [   0.111s] (3/6) nx a::leak
     TIMEOUT [   3.018s] (6/6) nx::it a::hang
error: test run failed\n";
        check(text, 2, &["LEAK-FAIL nx a::leak", "SIGABRT nx a::abort", "TIMEOUT nx::it a::hang"]);
        assert_eq!(read("error: could not compile `nx`\n"), None);
    }

    #[test]
    fn tests_that_skip_say_so() {
        let text = "<testsuite><testcase name=\"a\"><system-err>Skipped: no zfs\nskipped: no xfs</system-err>\
                    </testcase><testcase name=\"b\"></testcase></testsuite>";
        assert_eq!(skipped(text), 1);
    }
}
