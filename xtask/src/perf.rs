//! `cargo xtask perf`: Dyno beside sysbench and pgbench on the same server, and fio on the same disk.
//!
//! Peers alternate with Dyno (A B B A …), so that both meet changes of the machine's speed and what runs leave behind.
//! Rows about the generator come twice: with the server in its own scheduling group, and in the generator's. Ratios of
//! pairs (median, minimum, maximum) say more than absolute figures of a shared machine.

mod declared;
mod files;
mod insert_benchmark;
mod mariadb;
mod peer;
mod postgresql;
mod server;
mod table;
mod targets;
mod tpcc;
mod vectors;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail};

use peer::Perf;
use table::{Effort, Row};

use crate::shell::{output, print, root};

/// Words of `arguments` select rows by parts of their names. `--quick` runs two short pairs, which only shows
/// that everything works. `--seconds=N` sets the length of runs: start-up weighs less in a longer one.
/// `--program=PATH` measures that program instead of building one.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let mut effort = Effort { pairs: 5, seconds: 3 };
    let (mut program, mut wanted) = (None, Vec::new());
    if arguments.iter().any(|argument| argument == "--quick") {
        effort = Effort { pairs: 2, seconds: 2 };
    }
    for word in arguments.iter().filter(|word| *word != "--quick") {
        if let Some(seconds) = word.strip_prefix("--seconds=") {
            effort.seconds =
                seconds.parse().context("`--seconds` takes a whole number of seconds")?;
            anyhow::ensure!(effort.seconds > 0, "a run takes a second at least");
        } else if let Some(path) = word.strip_prefix("--program=") {
            program.get_or_insert(PathBuf::from(path));
        } else if word.starts_with("--") {
            bail!(
                "unknown option `{word}`: usage: perf [--quick] [--seconds=N] [--program=PATH] [WORD…]"
            );
        } else {
            wanted.push(word.clone());
        }
    }
    let dyno = program.map_or_else(build, Ok)?.display().to_string();
    let perf = Perf { dyno, effort, wanted };
    let mut rows = Vec::new();
    for measure in [
        mariadb::measure,
        postgresql::measure,
        targets::measure,
        declared::measure,
        insert_benchmark::measure,
        tpcc::measure,
        files::measure,
        vectors::measure,
        mariadb::instructions,
    ] as [fn(&Perf) -> anyhow::Result<Vec<Row>>; 9]
    {
        rows.extend(measure(&perf)?);
    }
    if rows.is_empty() {
        bail!("no row's name holds any of these words: {}", perf.wanted.join(", "));
    }
    print(&table::render(&rows, effort));
    Ok(())
}

/// As it is installed.
pub(crate) fn build() -> anyhow::Result<PathBuf> {
    let messages = output(
        Command::new(env!("CARGO"))
            .args(["build", "--profile", "dist", "--locked", "--package", "dyno"])
            .arg("--message-format=json")
            .stderr(std::process::Stdio::inherit())
            .current_dir(root()),
    )?;
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == "dyno")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .context("cargo reported no program")
}
