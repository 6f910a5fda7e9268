//! `dyno convert`: the configuration of another benchmark as a study.

mod autobench;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod reasons;
mod shell;

use std::path::PathBuf;

use anyhow::{Context, anyhow};

use autobench::Converted;

use crate::{End, terminal, usage_error};

const BYTES_MOST: u64 = 1 << 20;

/// Options of `dyno convert`.
#[derive(clap::Args)]
pub(crate) struct ConvertOptions {
    /// The autobench.conf with which RonDB's scripts (bench_run.sh) run sysbench
    file: PathBuf,
}

pub(crate) fn run(options: &ConvertOptions) -> anyhow::Result<End> {
    let name = options.file.display();
    let converted = read(options)
        .and_then(|text| autobench::convert(&text).map_err(|why| anyhow!(why)))
        .with_context(|| format!("cannot convert {name}"))
        .map_err(usage_error)?;
    // A study that the parser refuses, for example for too large a number, is not printed.
    if super::parse_study(&format!("the study made of {name}"), &converted.study).is_none() {
        return Ok(End::Misused);
    }
    terminal::out(&converted.study);
    let Converted { n_translated, n_left, .. } = converted;
    let lines = super::counted(n_translated, "line");
    terminal::say(&match n_left {
        0 => format!("{lines} translated"),
        n => format!("{lines} translated; {n} not, with the reasons at the end of the study"),
    });
    Ok(End::Good)
}

fn read(options: &ConvertOptions) -> anyhow::Result<String> {
    super::text_of(dyno_units::read_named(&options.file, BYTES_MOST)?)
}
