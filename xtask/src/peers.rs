//! `cargo xtask peers`: runs sysbench's and pgbench's own tests on Dyno. Variables name the folders of
//! their sources.

mod cram;
mod setting;
mod tap;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail};

use setting::{Outcome, Setting, open};

use crate::shell::{output, root, say};

const USAGE: &str = "\
usage: cargo xtask peers [sysbench] [pgbench] [--dyno PROGRAM]
SYSBENCH_SOURCE names the folder of sysbench's sources, POSTGRESQL_SOURCE that of PostgreSQL's (apt-get source).";

/// Name, variable with the sources' folder, function.
type Suite = (&'static str, &'static str, fn(&Setting) -> anyhow::Result<Outcome>);
const SUITES: [Suite; 2] =
    [("sysbench", "SYSBENCH_SOURCE", cram::run), ("pgbench", "POSTGRESQL_SOURCE", tap::run)];

/// The named suites, or both.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let (names, dyno) = parsed(arguments)?;
    let is_wanted = |name: &str| names.is_empty() || names.iter().any(|one| one == name);
    let mut suites = Vec::new();
    for (name, variable, run) in SUITES {
        if is_wanted(name) {
            let source = std::env::var_os(variable).with_context(|| {
                format!("{variable} is not set: `{name}` cannot be tried\n{USAGE}")
            })?;
            let source = PathBuf::from(source)
                .canonicalize()
                .with_context(|| format!("there is no folder that {variable} names"))?;
            suites.push((name, source, run));
        }
    }
    let dyno = match dyno {
        Some(dyno) => {
            dyno.canonicalize().with_context(|| format!("{} is missing", dyno.display()))?
        }
        None => build()?,
    };
    let words = ["--directory", "--tmpdir", "peers-XXXXXX"];
    let folder = PathBuf::from(output(Command::new("mktemp").args(words))?);
    open(&folder)?;
    let mut wrong = String::new();
    for (name, source, run) in suites {
        let folder = folder.join(name);
        std::fs::create_dir(&folder).context("cannot make a folder")?;
        let outcome = run(&Setting { source, dyno: dyno.clone(), folder })?;
        say(&format!("{name}: {}", outcome.said));
        for one in outcome.wrong {
            let _ = write!(wrong, "\n{name}: {one}");
        }
    }
    if !wrong.is_empty() {
        bail!(
            "there are differences that are not known, with logs in {}:{wrong}",
            folder.display()
        );
    }
    std::fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))
}

fn parsed(arguments: &[String]) -> anyhow::Result<(Vec<String>, Option<PathBuf>)> {
    let (mut names, mut dyno) = (Vec::new(), None);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--dyno" => dyno = Some(PathBuf::from(words.next().context(USAGE)?)),
            name if SUITES.iter().any(|(suite, _, _)| *suite == name) => {
                names.push(name.to_owned())
            }
            other => bail!("`{other}` is unknown\n{USAGE}"),
        }
    }
    Ok((names, dyno))
}

fn build() -> anyhow::Result<PathBuf> {
    crate::shell::succeed(
        Command::new("cargo").args(["build", "--package", "dyno", "--locked"]).current_dir(root()),
    )?;
    Ok(crate::nextest::target().join("debug/dyno"))
}

#[cfg(test)]
mod tests {
    use super::parsed;

    #[test]
    fn arguments_are_read() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let (names, dyno) = parsed(&words("pgbench --dyno target/dyno")).unwrap();
        assert_eq!((names, dyno), (vec!["pgbench".to_owned()], Some("target/dyno".into())));
        assert!(parsed(&words("fio")).unwrap_err().to_string().contains("usage"));
        assert!(parsed(&words("--dyno")).is_err());
    }
}
