//! `cargo xtask perf`: Dyno beside sysbench and pgbench on the same server, and fio on the same disk.
//!
//! Peers alternate with Dyno (A B B A …), so that both meet changes of the machine's speed and what runs leave behind.
//! Rows about the generator come twice: with the server in its own scheduling group, and in the generator's. Ratios of
//! pairs (median, minimum, maximum) say more than absolute figures of a shared machine.

mod agents;
mod dbstress;
mod declared;
mod files;
mod insert_benchmark;
mod instructions;
mod mariadb;
mod null;
mod peer;
mod postgresql;
mod server;
mod table;
mod tpcc;
mod vectors;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail};

pub(crate) use table::{Pair, Row};

#[derive(Clone, Copy)]
pub(crate) struct Effort {
    pub(crate) pairs: usize,
    pub(crate) seconds: u32,
}

/// Words of `arguments` select rows by parts of their names. `--quick` runs two short pairs, which only shows
/// that everything works. `--seconds=N` sets the length of runs: start-up weighs less in a longer one.
/// `--program=PATH` measures that program instead of building one.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let is_quick = arguments.iter().any(|argument| argument == "--quick");
    let mut effort =
        if is_quick { Effort { pairs: 2, seconds: 2 } } else { Effort { pairs: 5, seconds: 3 } };
    if let Some(seconds) = arguments.iter().find_map(|word| word.strip_prefix("--seconds=")) {
        effort.seconds = seconds.parse().context("`--seconds` takes a whole number of seconds")?;
        anyhow::ensure!(effort.seconds > 0, "a run takes a second at least");
    }
    let program = arguments.iter().find_map(|argument| argument.strip_prefix("--program="));
    if let Some(unknown) = arguments.iter().find(|word| {
        word.starts_with("--")
            && *word != "--quick"
            && !["--seconds=", "--program="].iter().any(|option| word.starts_with(option))
    }) {
        bail!(
            "unknown option `{unknown}`: usage: perf [--quick] [--seconds=N] [--program=PATH] [WORD…]"
        );
    }
    let wanted: Vec<&str> =
        arguments.iter().map(String::as_str).filter(|word| !word.starts_with("--")).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| name.contains(word));
    let dyno = program.map_or_else(build, |program| Ok(PathBuf::from(program)))?;
    let mut rows = Vec::new();
    rows.extend(mariadb::measure(&dyno, effort, &is_wanted)?);
    rows.extend(postgresql::measure(&dyno, effort, &is_wanted)?);
    rows.extend(null::measure(&dyno, effort, &is_wanted)?);
    rows.extend(agents::measure(&dyno, effort, &is_wanted)?);
    rows.extend(dbstress::measure(&dyno, effort, &is_wanted)?);
    rows.extend(declared::measure(&dyno, effort, &is_wanted)?);
    rows.extend(insert_benchmark::measure(&dyno, effort, &is_wanted)?);
    rows.extend(tpcc::measure(&dyno, effort, &is_wanted)?);
    rows.extend(files::measure(&dyno, effort, &is_wanted)?);
    rows.extend(vectors::measure(effort, &is_wanted)?);
    rows.extend(instructions::measure(&dyno, &is_wanted)?);
    if rows.is_empty() {
        bail!("no row's name holds any of these words: {}", wanted.join(", "));
    }
    crate::print(&table::render(&rows, effort));
    Ok(())
}

/// As it is installed.
pub(crate) fn build() -> anyhow::Result<PathBuf> {
    let output = Command::new(env!("CARGO"))
        .args(["build", "--profile", "dist", "--locked", "--package", "dyno"])
        .arg("--message-format=json")
        .stderr(std::process::Stdio::inherit())
        .current_dir(crate::root())
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!("the build failed");
    }
    let messages = String::from_utf8_lossy(&output.stdout).into_owned();
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == "dyno")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .context("cargo reported no program")
}
