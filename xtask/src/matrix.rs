//! `cargo xtask matrix`: what is too slow for the suite, and when it last ran. A matrix is a command of this
//! program, or tests of `it` with the attribute `ignore = "matrix NAME: reason"`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};

use crate::nextest::{self, Totals};
use crate::shell::{output, print, root, say};

const USAGE: &str = "\
usage: cargo xtask matrix          lists the matrices
       cargo xtask matrix NAME     runs one, and writes down what came of it
       cargo xtask matrix --old    lists those that last ran more than a week ago, or never";

/// Name, what it tries, arguments.
const COMMANDS: [(&str, &str, &[&str]); 5] = [
    ("aa", "studies without a difference, beside a noisy neighbour: false alarms", &["--noisy"]),
    (
        "kills",
        "commands of every kind, killed at random moments: what is lost, doubled or left",
        &["--until", "500"],
    ),
    ("kubernetes", "pods of a cluster on this machine: copies, refusals, losses, kills", &[]),
    ("peers", "the tests of sysbench and pgbench, whose sources two variables name", &[]),
    ("perf", "Dyno beside sysbench and pgbench: ratios", &[]),
];

const TESTS: &str = "crates/dyno/tests/it";

const LAST_RUNS: &str = "xtask/matrix.tsv";
const HEADER: &str = "matrix\tcommit\tdate\tminutes\tresult";

/// The attribute's start, in two pieces, so that this file has none.
const MARK: &str = concat!("#[", "ignore = \"matrix ");

const PASSED: &str = "passed";

/// By matrix, with nextest's names.
pub(crate) type Tests = BTreeMap<String, Vec<String>>;

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let tests = tests()?;
    let path = root().join(LAST_RUNS);
    let mut last = last_runs(&std::fs::read_to_string(&path).context("cannot read the runs")?);
    match arguments {
        [] => print(&listed(&tests, &last)),
        [option] if option == "--old" => {
            let week_ago = output(Command::new("date").args(["-u", "-d", "7 days ago", "+%F"]))?;
            print(&old(&tests, &last, &week_ago));
        }
        [name] => {
            let began = Instant::now();
            let result = match COMMANDS.iter().find(|(command, _, _)| command == name) {
                Some((_, _, options)) => run_command(name, options),
                None => run_tests(tests.get(name).with_context(|| {
                    format!("there is no matrix `{name}`; `cargo xtask matrix` lists them")
                })?)?,
            };
            let minutes = began.elapsed().as_secs_f64() / 60.0;
            let run = format!("{}\t{minutes:.1}\t{result}", commit_and_date()?);
            last.insert(name.clone(), run);
            std::fs::write(&path, written(&last)).context("cannot write the runs")?;
            say(&format!("after {minutes:.1} min, in {LAST_RUNS}, which is to be committed"));
            if !result.starts_with(PASSED) {
                bail!("{name}: {result}");
            }
            say(&format!("{name}: {result}"));
        }
        _ => bail!("{USAGE}"),
    }
    Ok(())
}

fn run_command(name: &str, options: &[&str]) -> String {
    let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
    let command = crate::COMMANDS.iter().find(|(command, _, _)| *command == name);
    let (_, _, run) = command.expect("it is a command of this program");
    match run(&options) {
        Ok(()) => PASSED.to_owned(),
        Err(error) => format!("failed: {error:#}").replace(['\t', '\n'], " "),
    }
}

/// Fails if a test is not found.
fn run_tests(names: &[String]) -> anyhow::Result<String> {
    let filter: Vec<String> = names.iter().map(|name| format!("test(={name})")).collect();
    let Totals { passed, skipped, failed } = nextest::run(
        nextest::command()?
            .args(["--package", "dyno", "--test", "it", "--run-ignored", "only"])
            .args(["--filterset", &filter.join(" + ")]),
    )?;
    if passed + failed.len() != names.len() {
        bail!("{} of {} tests ran: the others are not in `it`", passed + failed.len(), names.len());
    }
    if !failed.is_empty() {
        let listed: Vec<&str> = failed.iter().map(String::as_str).collect();
        return Ok(format!("{} of {} failed: {}", failed.len(), names.len(), listed.join(", ")));
    }
    match skipped {
        0 => Ok(PASSED.to_owned()),
        n => Ok(format!("{PASSED}, but {n} of {} skipped what the machine lacks", names.len())),
    }
}

/// The commit is marked if the sources differ from it.
fn commit_and_date() -> anyhow::Result<String> {
    let git = |arguments: &[&str]| output(Command::new("git").args(arguments).current_dir(root()));
    let mut commit = git(&["rev-parse", "--short=8", "HEAD"])?;
    let others = format!(":!{LAST_RUNS}");
    if !git(&["status", "--porcelain", "--untracked-files=no", "--", ".", &others])?.is_empty() {
        commit.push('+');
    }
    Ok(format!("{commit}\t{}", output(Command::new("date").args(["-u", "+%F"]))?))
}

pub(crate) fn tests() -> anyhow::Result<Tests> {
    let mut tests = Tests::new();
    let files = output(
        Command::new("git")
            .args(["ls-files", "--cached", "--others", "--exclude-standard", TESTS])
            .current_dir(root()),
    )?;
    let is_there = |file: &&str| file.ends_with(".rs") && root().join(file).exists();
    for file in files.lines().filter(is_there) {
        let text = std::fs::read_to_string(root().join(file))
            .with_context(|| format!("cannot read {file}"))?;
        let below = Path::new(file).strip_prefix(TESTS).context("it is below")?.with_extension("");
        let module = below.to_string_lossy().replace('/', "::");
        for (matrix, test) in marked(&text) {
            let name = format!("{}::{test}", module.trim_end_matches("::mod"));
            tests.entry(matrix.to_owned()).or_default().push(name);
        }
    }
    Ok(tests)
}

/// Matrix and name of each marked test.
pub(crate) fn marked(text: &str) -> Vec<(&str, &str)> {
    let attributes = text.match_indices(MARK).map(|(at, mark)| &text[at + mark.len()..]);
    attributes
        .filter_map(|rest| {
            let (name, rest) = rest.split_once(": ")?;
            let (reason, rest) = rest.split_once("\"]")?;
            let (test, _) = rest.split_once("fn ")?.1.split_once('(')?;
            let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            (is_name && !name.is_empty() && reason.len() > 10).then_some((name, test))
        })
        .collect()
}

/// The rest of each line, by name.
fn last_runs(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().skip(1).filter_map(|line| line.split_once('\t'));
    lines.map(|(name, run)| (name.to_owned(), run.to_owned())).collect()
}

fn written(last: &BTreeMap<String, String>) -> String {
    let lines = last.iter().map(|(name, run)| format!("{name}\t{run}\n"));
    format!("{HEADER}\n{}", lines.collect::<String>())
}

pub(crate) fn names(tests: &Tests) -> BTreeMap<&str, String> {
    let commands = COMMANDS.iter().map(|(name, what, _)| (*name, (*what).to_owned()));
    let of_tests = tests.iter().map(|(name, all)| {
        let many = format!("{} tests of `it`", all.len());
        (name.as_str(), many)
    });
    commands.chain(of_tests).collect()
}

fn listed(tests: &Tests, last: &BTreeMap<String, String>) -> String {
    let line = |(name, what): (&&str, &String)| {
        let run = last.get(*name).map_or("never run".to_owned(), |run| run.replace('\t', "  "));
        format!("{name:<12}{what}\n            {run}")
    };
    names(tests).iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Not run since a date; dates compare as text.
fn old(tests: &Tests, last: &BTreeMap<String, String>, date: &str) -> String {
    let is_old = |run: &String| run.split('\t').nth(1).is_none_or(|of| of < date);
    let lines = names(tests).into_keys().filter_map(|name| match last.get(name) {
        None => Some(format!("matrix {name} was never run")),
        Some(run) if is_old(run) => Some(format!("matrix {name}  {}", run.replace('\t', "  "))),
        Some(_) => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod checks {
    use super::*;

    fn attribute(rest: &str) -> String {
        format!("#[test]\n#[{rest}]\nfn a_host_is_lost() {{}}\n")
    }

    #[test]
    fn attributes_give_tests_to_matrices() {
        let check = |rest: &str, expected: &[(&str, &str)]| {
            assert_eq!(marked(&attribute(rest)), expected, "{rest}");
        };
        let right = "ignore = \"matrix hosts: each product on a host, 9 min\"";
        check(right, &[("hosts", "a_host_is_lost")]);
        check(&format!("{right}]\n#[cfg(unix)"), &[("hosts", "a_host_is_lost")]);
        for wrong in ["ignore", "ignore = \"slow\"", "ignore = \"matrix hosts: \""] {
            check(wrong, &[]);
        }
    }

    #[test]
    fn what_ran_before_a_date_or_never_is_old() {
        let text = format!(
            "{HEADER}\naa\tc0ffee\t2026-11-01\t31.0\tpassed\nkills\tc0ffee\t2026-11-20\t5.5\tpassed\n"
        );
        let last = last_runs(&text);
        assert_eq!(written(&last), text);
        let tests = Tests::from([("hosts".to_owned(), vec!["reach::a".to_owned()])]);
        let expected = "matrix aa  c0ffee  2026-11-01  31.0  passed\nmatrix hosts was never run\n\
                        matrix kubernetes was never run\nmatrix peers was never run\nmatrix perf was never run";
        assert_eq!(old(&tests, &last, "2026-11-20"), expected);
        assert!(
            listed(&tests, &last).contains("hosts       1 tests of `it`\n            never run")
        );
    }

    /// Whoever changes what a matrix tries must know of the matrix.
    #[test]
    fn contributing_lists_the_matrices() {
        let text = std::fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
        let start = text.find("<!-- matrices -->").expect("the table has its first marker");
        let end = text.find("<!-- /matrices -->").expect("the table has its last marker");
        let rows = text[start..end].lines().filter_map(|line| line.strip_prefix("| `"));
        let listed: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
        let tests = super::tests().unwrap();
        let is_free = |name: &String| COMMANDS.iter().all(|(command, _, _)| command != name);
        assert!(tests.keys().all(is_free), "tests are given to a matrix that is a command");
        let all: Vec<&str> = names(&tests).into_keys().collect();
        assert_eq!(listed, all, "CONTRIBUTING.md lists other matrices than there are");
    }
}
