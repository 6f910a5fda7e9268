//! pgbench's tests: Perl programs that print a line for each check (TAP) and start their own server.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use super::setting::{Outcome, Setting, files, path, stand_in};

/// Checks known to fail: prefix and reason.
const KNOWN: [(&str, &str); 1] = [(
    "pgbench script error: sql syntax error stderr /(?^:prepared statement",
    "where a statement cannot be prepared, pgbench goes on and executes it; Dyno ends with the error that says why",
)];

/// Marks a check that may fail; in two pieces, so that this file has no such mark.
const MAY_FAIL: &str = concat!(" # TO", "DO");

pub(super) fn run(setting: &Setting) -> anyhow::Result<Outcome> {
    let files = files(setting, "src/bin/pgbench/t", "pl")?;
    let bin = stand_in(setting, "pgbench")?;
    let programs = programs(&setting.source)?;
    let work = setting.folder.join("work");
    std::fs::create_dir(&work).context("cannot make a folder")?;
    let is_root = rustix::process::getuid().is_root();
    if is_root {
        // PostgreSQL does not start as root.
        crate::shell::succeed(Command::new("chown").arg("postgres").arg(&work))?;
    }
    let (mut n_all, mut failed, mut wrong) = (0, Vec::new(), Vec::new());
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut command = Command::new(if is_root { "runuser" } else { "perl" });
        if is_root {
            command.args(["-u", "postgres", "--", "perl"]);
        }
        command.arg("-I").arg(setting.source.join("src/test/perl")).arg(&file);
        command.current_dir(&work).stderr(Stdio::inherit()).stdin(Stdio::null());
        command.env("TESTDIR", &work).env("HOME", &work);
        // The regression tests' program would set passwords, which only Windows needs.
        command.env("PG_REGRESS", "true").env("PGPORT", "65432");
        command.env("PATH", path(&[&bin, Path::new(&programs)])?);
        let output = command.output().context("perl cannot be started")?;
        let checks = read(&String::from_utf8_lossy(&output.stdout));
        if !checks.are_all() || (!output.status.success() && checks.failed.is_empty()) {
            let n = checks.all;
            wrong.push(format!("{name} ended early ({}), after {n} checks", output.status));
        }
        n_all += checks.all;
        failed.extend(checks.failed);
    }
    let said = format!("{} of {n_all} checks passed", n_all - failed.len());
    wrong.extend(differences(failed));
    Ok(Outcome { said, wrong })
}

/// Unknown failures, and known failures that no longer fail.
fn differences(failed: Vec<String>) -> Vec<String> {
    let is_of = |check: &str, (known, _): &(&str, &str)| check.starts_with(known);
    let gone = KNOWN.iter().filter(|known| !failed.iter().any(|check| is_of(check, known)));
    let mut wrong: Vec<String> =
        gone.map(|(known, _)| format!("passes, and is not known to: {known}")).collect();
    wrong.extend(failed.into_iter().filter(|check| !KNOWN.iter().any(|known| is_of(check, known))));
    wrong
}

fn programs(source: &Path) -> anyhow::Result<String> {
    let file = source.join("configure");
    let text = std::fs::read_to_string(&file)
        .with_context(|| format!("there is no {}", file.display()))?;
    let Some(version) = version(&text) else {
        bail!("{} names no version of PostgreSQL", file.display());
    };
    let folder = format!("/usr/lib/postgresql/{version}/bin");
    match Path::new(&folder).join("initdb").exists() {
        true => Ok(folder),
        false => bail!("PostgreSQL {version} is not installed: there is no {folder}/initdb"),
    }
}

fn version(text: &str) -> Option<&str> {
    let value = text.lines().find_map(|line| line.strip_prefix("PACKAGE_VERSION='"))?;
    let end = value.find(|c: char| !c.is_ascii_digit())?;
    (end > 0).then(|| &value[..end])
}

#[derive(Debug, Default, PartialEq)]
struct Checks {
    all: usize,
    /// As the test says at its end.
    planned: Option<usize>,
    /// Without those that may fail.
    failed: Vec<String>,
}

impl Checks {
    /// The test came to its end.
    fn are_all(&self) -> bool {
        self.planned == Some(self.all)
    }
}

fn read(text: &str) -> Checks {
    let mut checks = Checks::default();
    for line in text.lines() {
        if let Some(planned) = line.strip_prefix("1..") {
            checks.planned = planned.parse().ok();
        } else if line.starts_with("ok ") {
            checks.all += 1;
        } else if let Some(rest) = line.strip_prefix("not ok ") {
            checks.all += 1;
            if !rest.contains(MAY_FAIL) {
                let (_, name) = rest.split_once(" - ").unwrap_or(("", rest));
                checks.failed.push(name.to_owned());
            }
        }
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_counted_and_those_that_fail_named() {
        let text = format!(
            "# a remark\nok 1 - starts\nnot ok 2 - says so{MAY_FAIL} broken\nnot ok 3 - sql: a - b\nok 4\n1..4\n"
        );
        let expected = Checks { all: 4, planned: Some(4), failed: vec!["sql: a - b".to_owned()] };
        assert_eq!(read(&text), expected);
        assert!(read(&text).are_all());
        // An early end: no number of checks, or a larger one.
        assert!(!read("ok 1 - starts\n").are_all());
        assert!(!read("1..2\nok 1 - starts\n").are_all());
    }

    #[test]
    fn known_differences_are_no_others() {
        let (known, _) = KNOWN[0];
        let check = |failed: &[&str], expected: &[&str]| {
            let failed = failed.iter().map(ToString::to_string).collect();
            assert_eq!(differences(failed), expected);
        };
        check(&[&format!("{known} .* /)")], &[]);
        check(&[known, "sql: a"], &["sql: a"]);
        check(&[], &[&format!("passes, and is not known to: {known}")]);
    }

    #[test]
    fn the_version_of_sources_is_read() {
        assert_eq!(version("a\nPACKAGE_VERSION='15.18'\n"), Some("15"));
        assert_eq!(version("PACKAGE_VERSION='19devel'\n"), Some("19"));
        assert_eq!(version("PACKAGE_VERSION=''\n"), None);
        assert_eq!(version("PACKAGE_NAME='x'\n"), None);
    }
}
