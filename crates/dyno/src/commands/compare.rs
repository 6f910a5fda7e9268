//! `dyno compare`: one run against another, for a person or as a gate.

use anyhow::Context;
use dyno_analysis::{Gate, Options, analyse_against};
use dyno_units::Clock;

use super::report;
use crate::cli::{CompareOptions, ReportFormat};
use crate::clock::SystemClock;
use crate::{End, terminal};

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
    let text = match (options.format, options.format.rows()) {
        (_, Some(rows)) => {
            let folder = options.out.as_ref().context(
                "tables are written as several files: name a folder for them with --out",
            )?;
            report::write_tables(&findings, &runs, rows, folder)?
        }
        (ReportFormat::Terminal, _) => {
            let is_coloured = options.out.is_none() && terminal::out_has_colours();
            dyno_report::terminal::render(&findings, terminal::width(), is_coloured)
        }
        (format, _) => {
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
    match options.out.as_ref().filter(|_| options.format.rows().is_none()) {
        Some(path) => report::write(path, text.as_bytes())?,
        None => terminal::out(&text),
    }
    terminal::check_output()?;
    Ok((gate, is_compared))
}
