//! The project's own commands (`cargo xtask` lists them) and, as tests, the house rules.

#![allow(clippy::disallowed_methods, reason = "it is a program of its own, with an environment")]

#[cfg(feature = "measure")]
mod aa;
#[cfg(test)]
mod borders;
mod dependencies;
#[cfg(test)]
mod formats;
#[cfg(feature = "measure")]
mod kills;
#[cfg(feature = "measure")]
mod kubernetes;
mod mass;
mod matrix;
mod neighbour;
mod nextest;
mod package;
mod peers;
#[cfg(feature = "measure")]
mod perf;
#[cfg(test)]
mod products;
mod quick;
mod shell;
mod suite;
#[cfg(test)]
mod tidy;

use std::process::ExitCode;

use shell::say;

type Run = fn(&[String]) -> anyhow::Result<()>;

/// Name, description, function.
const COMMANDS: [(&str, &str, Run); 12] = [
    ("aa", "counts false alarms of studies without a difference", |a| measured("aa", a)),
    ("kills", "kills commands at random moments, and looks for what is lost or left", |a| {
        measured("kills", a)
    }),
    ("kubernetes", "tries hosts that are pods, on a cluster of its own", |a| {
        measured("kubernetes", a)
    }),
    ("mass", "counts lines, functions, types and import circles by crate", mass::run),
    ("matrix", "runs what is too slow for the suite, and says when it last ran", matrix::run),
    ("neighbour", "disturbs the machine in bursts until its input ends", |_| neighbour::disturb()),
    ("notices", "writes THIRD_PARTY.md", |_| dependencies::write_notices()),
    ("package", "makes a Debian package", |_| package::run()),
    ("peers", "runs the tests of sysbench and pgbench with Dyno in their place", peers::run),
    ("perf", "measures Dyno beside sysbench and pgbench", |a| measured("perf", a)),
    ("quick", "runs the pure tests of what changed since main", quick::run),
    ("suite", "runs all tests several times, beside a neighbour", suite::run),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map(String::as_str).unwrap_or_default();
    let Some((_, _, run)) = COMMANDS.iter().find(|command| command.0 == name) else {
        say("usage: cargo xtask COMMAND\n");
        for (name, does, _) in COMMANDS {
            say(&format!("  {name:<11}{does}"));
        }
        return ExitCode::from(2);
    };
    match run(&arguments[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

#[cfg(feature = "measure")]
fn measured(name: &str, arguments: &[String]) -> anyhow::Result<()> {
    match name {
        "aa" => aa::run(arguments),
        "kills" => kills::run(arguments),
        "kubernetes" => kubernetes::run(arguments),
        _ => perf::run(arguments),
    }
}

/// Builds this program optimised, with what it measures, and hands it the command.
#[cfg(not(feature = "measure"))]
fn measured(name: &str, arguments: &[String]) -> anyhow::Result<()> {
    shell::succeed(
        std::process::Command::new("cargo")
            .args(["run", "--package", "xtask", "--release", "--", name])
            .args(arguments),
    )
}
