//! `cargo xtask suite`: runs the tests several times to find unstable ones; a stopped command continues.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};

use crate::neighbour::Neighbour;
use crate::nextest::{self, Totals};
use crate::shell::{output, print, root, say};

const USAGE: &str = "usage: cargo xtask suite [--times N] [--neighbour]";

/// A stopped command loses at most one.
const PARTS: usize = 4;

#[derive(Clone, Debug, Default, PartialEq)]
struct Part {
    totals: Totals,
    seconds: u64,
}

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let (times, has_neighbour) = parsed(arguments)?;
    let folder = nextest::target().join("suite");
    std::fs::create_dir_all(&folder).context("cannot make a folder for what is done")?;
    let state = folder.join("done.tsv");
    let key = key(has_neighbour)?;
    let mut done = done(&state, &key)?;
    if !done.is_empty() {
        say(&format!("goes on after {} of {} parts", done.len(), times * PARTS));
    }
    // Builds would run beside the tests.
    crate::shell::succeed(
        Command::new("cargo")
            .args(["test", "--quiet", "--workspace", "--locked", "--no-run"])
            .current_dir(root()),
    )?;
    let _neighbour = has_neighbour.then(Neighbour::start).transpose()?;
    for nth in done.len()..times * PARTS {
        let began = Instant::now();
        let slice = format!("slice:{}/{PARTS}", nth % PARTS + 1);
        let totals =
            nextest::run(nextest::command()?.args(["--workspace", "--partition", &slice]))?;
        done.push(Part { totals, seconds: began.elapsed().as_secs() });
        std::fs::write(&state, format!("{key}\n{}", written(&done)))
            .with_context(|| format!("cannot write {}", state.display()))?;
        if done.len().is_multiple_of(PARTS) {
            say(&run_line(done.len() / PARTS, &done[done.len() - PARTS..]));
        }
    }
    std::fs::remove_file(&state).with_context(|| format!("cannot remove {}", state.display()))?;
    print(&report(&done));
    match done.iter().any(|part| !part.totals.failed.is_empty()) {
        true => bail!("tests failed"),
        false => Ok(()),
    }
}

fn parsed(arguments: &[String]) -> anyhow::Result<(usize, bool)> {
    let (mut times, mut has_neighbour) = (1, false);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--times" => {
                let value = words.next().with_context(|| USAGE.to_owned())?;
                times = value.parse().with_context(|| format!("--times is a number\n{USAGE}"))?;
            }
            "--neighbour" => has_neighbour = true,
            other => bail!("`{other}` is unknown\n{USAGE}"),
        }
    }
    if times == 0 {
        bail!("--times is at least 1\n{USAGE}");
    }
    Ok((times, has_neighbour))
}

/// Only parts with the same key are continued.
fn key(has_neighbour: bool) -> anyhow::Result<String> {
    let git = |arguments: &[&str]| output(Command::new("git").args(arguments).current_dir(root()));
    let changes = git(&["diff", "HEAD"])?;
    let mut hash = std::hash::DefaultHasher::new();
    std::hash::Hash::hash(&changes, &mut hash);
    let changes = std::hash::Hasher::finish(&hash);
    Ok(format!("{} {changes:x} {has_neighbour}", git(&["rev-parse", "HEAD"])?))
}

/// By an earlier command with the same key.
fn done(state: &Path, key: &str) -> anyhow::Result<Vec<Part>> {
    let text = match std::fs::read_to_string(state) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).context(format!("cannot read {}", state.display())),
    };
    match text.split_once('\n') {
        Some((of, parts)) if of == key => Ok(parts.lines().filter_map(part).collect()),
        _ => {
            say("begins anew: what was done is of another state of the sources");
            Ok(Vec::new())
        }
    }
}

/// Per part: seconds, passed, skipped something, failed tests.
fn written(done: &[Part]) -> String {
    let line = |part: &Part| {
        let Totals { passed, skipped, failed } = &part.totals;
        let mut line = format!("{}\t{passed}\t{skipped}", part.seconds);
        failed.iter().for_each(|name| line += &format!("\t{name}"));
        line + "\n"
    };
    done.iter().map(line).collect()
}

fn part(line: &str) -> Option<Part> {
    let mut cells = line.split('\t');
    let seconds = cells.next()?.parse().ok()?;
    let (passed, skipped) = (cells.next()?.parse().ok()?, cells.next()?.parse().ok()?);
    let totals = Totals { passed, skipped, failed: cells.map(str::to_owned).collect() };
    Some(Part { totals, seconds })
}

fn run_line(nth: usize, parts: &[Part]) -> String {
    let passed: usize = parts.iter().map(|part| part.totals.passed).sum();
    let failed: Vec<&String> = parts.iter().flat_map(|part| &part.totals.failed).collect();
    let skipped: usize = parts.iter().map(|part| part.totals.skipped).sum();
    let minutes = parts.iter().map(|part| part.seconds).sum::<u64>() as f64 / 60.0;
    let mut line = format!(
        "run {nth}: {passed} passed ({skipped} of them skipped something), {} failed, {minutes:.1} min",
        failed.len()
    );
    failed.iter().for_each(|name| line += &format!("\n    {name}"));
    line
}

/// A line for each run, and how often each test failed.
fn report(done: &[Part]) -> String {
    let runs: Vec<&[Part]> = done.chunks_exact(PARTS).collect();
    let mut lines: Vec<String> =
        runs.iter().enumerate().map(|(nth, parts)| run_line(nth + 1, parts)).collect();
    let mut by_name: BTreeMap<&String, usize> = BTreeMap::new();
    for name in done.iter().flat_map(|part| &part.totals.failed) {
        *by_name.entry(name).or_default() += 1;
    }
    let n_runs = runs.len();
    lines.extend(by_name.iter().map(|(name, n)| format!("{n} of {n_runs} runs: {name}")));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> Vec<Part> {
        let part = |passed, skipped, failed: &[&str]| Part {
            totals: Totals {
                passed,
                skipped,
                failed: failed.iter().map(|name| (*name).to_owned()).collect(),
            },
            seconds: 90,
        };
        vec![part(9, 1, &["FAIL a b::c"]), part(10, 0, &[]), part(10, 1, &[]), part(9, 0, &[])]
    }

    #[test]
    fn arguments_are_read() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(parsed(&words("--times 5 --neighbour")).unwrap(), (5, true));
        assert_eq!(parsed(&[]).unwrap(), (1, false));
        for wrong in ["--times", "--times x", "--times 0", "5"] {
            assert!(parsed(&words(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_run_is_the_sum_of_its_parts() {
        let line =
            "run 1: 38 passed (2 of them skipped something), 1 failed, 6.0 min\n    FAIL a b::c";
        assert_eq!(run_line(1, &parts()), line);
        let twice = [parts(), parts()].concat();
        assert!(report(&twice).ends_with("min\n    FAIL a b::c\n2 of 2 runs: FAIL a b::c"));
    }

    #[test]
    fn what_is_done_is_kept_for_the_same_sources_only() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("done.tsv");
        assert_eq!(done(&state, "k").unwrap(), []);
        std::fs::write(&state, format!("k\n{}", written(&parts()))).unwrap();
        assert_eq!(done(&state, "k").unwrap(), parts());
        assert_eq!(done(&state, "other").unwrap(), []);
    }
}
