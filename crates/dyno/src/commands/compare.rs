//! `dyno compare`: one run against another, for a person or as a gate.

use std::path::PathBuf;

use anyhow::Context;
use dyno_analysis::{Gate, Options, analyse_against};
use dyno_units::Clock;

use super::report::{self, ReportFormat};
use crate::clock::SystemClock;
use crate::{End, terminal, values};

/// Options of `dyno compare`.
#[derive(clap::Args)]
pub(crate) struct CompareOptions {
    /// The folder of the run to compare with
    #[arg(value_name = "BASELINE")]
    baseline: PathBuf,
    /// The folder of the run to judge; variants with the same name are compared
    #[arg(value_name = "CANDIDATE")]
    candidate: PathBuf,
    /// Smallest effect that matters, instead of the baseline's own, such as 3%
    #[arg(long, value_name = "PERCENTAGE", value_parser = values::threshold)]
    threshold: Option<f64>,
    /// Set the exit code: 0 if a regression as large as the threshold is ruled out in the main metric at
    /// every load level; 1 if throughput or p95 response time is worse anywhere; 2 if the result is
    /// undecided, or the runs cannot be compared
    #[arg(long)]
    gate: bool,
    /// What to print
    #[arg(long, value_enum, default_value = "terminal")]
    format: ReportFormat,
    /// The file to write instead of printing; for tables, the folder
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(options: &CompareOptions) -> anyhow::Result<End> {
    let (gate, is_compared) = match compare(options) {
        Ok(found) => found,
        // An error is not a verdict.
        Err(error) if options.gate => {
            terminal::error(&error);
            return Ok(End::Inconclusive);
        }
        Err(error) => return Err(error),
    };
    if !options.gate {
        return Ok(if is_compared { End::Good } else { End::Bad });
    }
    terminal::say(&format!("gate: {}", gate.in_lines()));
    Ok(match gate {
        Gate::NoWorse => End::Good,
        Gate::Worse(_) => End::Bad,
        Gate::Inconclusive(_) => End::Inconclusive,
    })
}

/// Shows the comparison; returns the gate's verdict and whether the runs have anything in common.
fn compare(options: &CompareOptions) -> anyhow::Result<(Gate, bool)> {
    let runs = report::read_two(&options.baseline, &options.candidate)?;
    let analysis = Options { threshold: options.threshold, ..Options::default() };
    let findings = analyse_against(&runs[0], &runs[1], &analysis);
    let text = match options.format {
        format if format.is_of_tables() => {
            let folder = options.out.as_ref().context(
                "tables are written as several files: name a folder for them with --out",
            )?;
            report::write_tables(&findings, &runs, format, folder)?
        }
        ReportFormat::Terminal => {
            let is_coloured = options.out.is_none() && terminal::out_has_colours();
            dyno_report::terminal::render(&findings, terminal::width(), is_coloured)
        }
        format => {
            let now = SystemClock::start().unix_millis();
            report::render(&findings, &runs, format, now)?
        }
    };
    let is_compared = !findings.comparisons.is_empty() || dyno_analysis::is_watched(&findings);
    let gate = findings.gate.context("there is nothing to judge")?;
    let text = match options.format {
        ReportFormat::Markdown if options.gate => {
            let verdict = dyno_report::markdown::escaped(&gate.to_string());
            format!("**Gate: {verdict}**\n\n{text}")
        }
        _ => text,
    };
    match options.out.as_ref().filter(|_| !options.format.is_of_tables()) {
        Some(path) => report::write(path, text.as_bytes())?,
        None => terminal::out(&text),
    }
    terminal::check_output()?;
    Ok((gate, is_compared))
}
