//! `cargo xtask quick`: for two minutes, the house rules and the pure tests of what changed since main, then of crates
//! that depend on it. Tests that start servers are in `tests` of their crates and left to the suite.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::Value;

use crate::nextest;
use crate::shell::{output, root, say};

/// Building included.
const LIMIT: Duration = Duration::from_secs(120);

const POLL: Duration = Duration::from_millis(50);

/// Unit tests that start servers, mount volumes, wait for processes, or drop the page cache.
const IMPURE: &str = "test(/^(commands::run::job_tests|keeper|page_cache|volume)::/)";

/// Its tests are the house rules, which always run.
const OWN: &str = "xtask";

#[derive(Debug, Default)]
struct Crate {
    /// Relative to the project.
    folder: String,
    uses: BTreeSet<String>,
    has_library: bool,
}

type Crates = BTreeMap<String, Crate>;

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    if !arguments.is_empty() {
        bail!("usage: cargo xtask quick");
    }
    let began = Instant::now();
    let crates = crates()?;
    let changed = changed(&files()?, &crates);
    let further = depend_on(&changed, &crates);
    let mut rules = nextest::command()?;
    rules.args(["--package", OWN, "--no-default-features"]);
    let mut outcomes = vec![within("the house rules", rules, began)?];
    for (what, set) in [("what changed", &changed), ("what depends on that", &further)] {
        if !set.is_empty() {
            let names: Vec<&str> = set.iter().map(String::as_str).collect();
            say(&format!("{what}: {}", names.join(", ")));
            outcomes.push(within(what, unit_tests(set, &crates)?, began)?);
        }
    }
    // Tests of crates that only depend on the change may be left to the suite.
    let is_tested = outcomes.iter().take(2).all(|outcome| *outcome != Outcome::Unfinished);
    if outcomes.contains(&Outcome::Failed) {
        bail!("tests failed");
    }
    match is_tested {
        true => Ok(()),
        false => bail!("what changed could not be tested in {} s", LIMIT.as_secs()),
    }
}

fn unit_tests(set: &BTreeSet<String>, crates: &Crates) -> anyhow::Result<Command> {
    let mut command = nextest::command()?;
    for name in set {
        command.args(["--package", name]);
    }
    // Cargo refuses `--lib` if no package has a library.
    if set.iter().any(|name| crates[name].has_library) {
        command.arg("--lib");
    }
    command.args(["--bins", "--no-tests", "pass"]);
    command.args(["--filterset", &format!("not ({IMPURE})")]);
    Ok(command)
}

#[derive(PartialEq)]
enum Outcome {
    Passed,
    Failed,
    Unfinished,
}

fn within(what: &str, mut command: Command, began: Instant) -> anyhow::Result<Outcome> {
    if began.elapsed() > LIMIT {
        say(&format!("the time is over: {what} was not tested"));
        return Ok(Outcome::Unfinished);
    }
    // So that all its processes end.
    let mut child = command.process_group(0).spawn().context("cargo cannot be started")?;
    let group = rustix::process::Pid::from_child(&child);
    let mut is_ended = false;
    loop {
        match child.try_wait()? {
            Some(_) if is_ended => return Ok(Outcome::Unfinished),
            Some(status) if status.success() => return Ok(Outcome::Passed),
            Some(_) => return Ok(Outcome::Failed),
            None if began.elapsed() > LIMIT && !is_ended => {
                is_ended = true;
                say(&format!("the time is over: the rest of {what} was not tested"));
                rustix::process::kill_process_group(group, rustix::process::Signal::TERM)?;
            }
            None => std::thread::sleep(POLL),
        }
    }
}

fn crates() -> anyhow::Result<Crates> {
    let metadata = output(
        Command::new("cargo")
            .args(["metadata", "--format-version=1", "--no-deps", "--offline", "--locked"])
            .current_dir(root()),
    )?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let root = root();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let read = |package: &Value| {
        let manifest = text(&package["manifest_path"]);
        let folder = std::path::Path::new(&manifest).parent()?.strip_prefix(&root).ok()?;
        let is_library = |target: &Value| list(&target["kind"]).contains(&"lib".into());
        let read = Crate {
            folder: folder.to_string_lossy().into_owned(),
            uses: list(&package["dependencies"]).iter().map(|used| text(&used["name"])).collect(),
            has_library: list(&package["targets"]).iter().any(is_library),
        };
        Some((text(&package["name"]), read))
    };
    Ok(list(&metadata["packages"]).iter().filter_map(read).collect())
}

/// Changed, added or removed since main, committed or not.
fn files() -> anyhow::Result<Vec<String>> {
    let git = |arguments: &[&str]| output(Command::new("git").args(arguments).current_dir(root()));
    let base = ["origin/main", "main"]
        .iter()
        .find_map(|main| git(&["merge-base", main, "HEAD"]).ok())
        .context("there is neither origin/main nor main: `git fetch origin main` brings one")?;
    let changed = git(&["diff", "--name-only", "--no-renames", &base])?;
    let added = git(&["ls-files", "--others", "--exclude-standard"])?;
    Ok(changed.lines().chain(added.lines()).map(str::to_owned).collect())
}

/// All crates, if a file that all builds use has changed.
fn changed(files: &[String], crates: &Crates) -> BTreeSet<String> {
    let others = || crates.iter().filter(|(name, _)| *name != OWN);
    if files.iter().any(|file| ["Cargo.toml", "Cargo.lock"].contains(&file.as_str())) {
        return others().map(|(name, _)| name.clone()).collect();
    }
    let has_changed = |folder: &str| {
        let is_in =
            |file: &String| file.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        files.iter().any(is_in)
    };
    others().filter(|(_, of)| has_changed(&of.folder)).map(|(name, _)| name.clone()).collect()
}

/// Without `some`.
fn depend_on(some: &BTreeSet<String>, crates: &Crates) -> BTreeSet<String> {
    let mut all = some.clone();
    loop {
        let uses_one = |(name, of): &(&String, &Crate)| {
            *name != OWN && !all.contains(*name) && !of.uses.is_disjoint(&all)
        };
        let further: Vec<String> =
            crates.iter().filter(uses_one).map(|(name, _)| name.clone()).collect();
        if further.is_empty() {
            return &all - some;
        }
        all.extend(further);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Crates {
        let of = |folder: &str, uses: &[&str]| Crate {
            folder: folder.to_owned(),
            uses: uses.iter().map(|name| (*name).to_owned()).collect(),
            has_library: true,
        };
        Crates::from([
            ("units".to_owned(), of("crates/units", &["serde"])),
            ("load".to_owned(), of("crates/load", &["units"])),
            ("lab".to_owned(), of("crates/lab", &["load"])),
            (OWN.to_owned(), of(OWN, &["units"])),
        ])
    }

    #[test]
    fn what_changed_comes_before_what_depends_on_it() {
        let check = |files: &[&str], first: &[&str], further: &[&str]| {
            let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
            let changed = changed(&files, &three());
            assert_eq!(changed.iter().collect::<Vec<_>>(), first, "{files:?}");
            let found = depend_on(&changed, &three());
            assert_eq!(found.iter().collect::<Vec<_>>(), further, "{files:?}");
        };
        check(&["crates/units/src/lib.rs"], &["units"], &["lab", "load"]);
        check(&["crates/load/Cargo.toml", "README.md"], &["load"], &["lab"]);
        check(&["crates/lab-old/src/lib.rs", "xtask/src/main.rs"], &[], &[]);
        check(&["Cargo.lock"], &["lab", "load", "units"], &[]);
    }

    #[test]
    fn the_crates_are_those_of_the_workspace() {
        let crates = crates().unwrap();
        assert_eq!(crates["dyno-units"].folder, "crates/dyno-units");
        assert!(crates["dyno"].uses.contains("dyno-units") && crates["dyno"].has_library);
        assert!(crates["dyno-lab"].has_library);
    }
}
