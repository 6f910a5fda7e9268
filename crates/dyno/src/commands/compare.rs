//! `dyno compare`: one run against another, for a person or as a gate.

use std::path::Path;

use anyhow::Context;
use dyno_analysis::{Findings, Metric, Options, Verdict, analyse_against};
use dyno_record::{Run, read_run};
use dyno_units::Clock;

use super::report;
use crate::cli::{CompareOptions, ReportFormat};
use crate::clock::SystemClock;
use crate::{End, terminal};

/// The metrics that a gate judges.
const JUDGED: [Metric; 2] = [Metric::Throughput, Metric::ResponseP95];

/// What a gate says.
#[derive(Debug, PartialEq, Eq)]
enum Gate {
    /// Everything was compared, and nothing is worse.
    Pass,
    /// These are worse.
    Worse(Vec<String>),
    /// Nothing is worse as far as is known, and these are not known.
    CannotSay(Vec<String>),
}

impl std::fmt::Display for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Gate::Pass => write!(f, "no worse"),
            Gate::Worse(reasons) => write!(f, "worse: {}", first_of(reasons)),
            Gate::CannotSay(reasons) => write!(f, "cannot say: {}", first_of(reasons)),
        }
    }
}

/// Most reasons that are named.
const REASONS_NAMED: usize = 4;

/// The first few reasons, and how many more there are.
fn first_of(reasons: &[String]) -> String {
    let named = reasons.iter().take(REASONS_NAMED).map(String::as_str).collect::<Vec<_>>();
    match reasons.len().saturating_sub(REASONS_NAMED) {
        0 => named.join("; "),
        more => format!("{}; and {more} more", named.join("; ")),
    }
}

/// Compares two runs.
pub(crate) fn run(options: &CompareOptions) -> anyhow::Result<End> {
    let compared = compare(options);
    let (gate, text) = match compared {
        Ok(compared) => compared,
        // What cannot be read is no reason to call it worse.
        Err(error) if options.gate => {
            terminal::error(&error);
            return Ok(End::CannotSay);
        }
        Err(error) => return Err(error),
    };
    match options.out.as_ref().filter(|_| options.format.rows().is_none()) {
        Some(path) => std::fs::write(path, text)
            .with_context(|| format!("cannot write {}", path.display()))?,
        None => terminal::out(&text),
    }
    if !options.gate {
        return Ok(End::Good);
    }
    terminal::say(&format!("gate: {gate}"));
    Ok(match gate {
        Gate::Pass => End::Good,
        Gate::Worse(_) => End::Bad,
        Gate::CannotSay(_) => End::CannotSay,
    })
}

/// What the gate says, and the text to show.
fn compare(options: &CompareOptions) -> anyhow::Result<(Gate, String)> {
    let runs = [read(&options.baseline)?, read(&options.candidate)?];
    let analysis = Options { threshold: options.threshold, ..Options::default() };
    let findings = analyse_against(&runs[0], &runs[1], &analysis);
    let text = match (options.format, options.format.rows()) {
        (_, Some(rows)) => {
            let folder = options
                .out
                .as_ref()
                .context("tables are several files: give the folder for them with --out")?;
            report::write_tables(&findings, &runs, rows, folder)?
        }
        (ReportFormat::Terminal, _) => {
            let is_coloured = options.out.is_none() && terminal::out_is_terminal();
            dyno_report::terminal::render(&findings, terminal::width(), is_coloured)
        }
        (format, _) => {
            let now = SystemClock::start().unix_millis();
            report::render(&findings, &runs, format, now)?
        }
    };
    let gate = judge(&findings, runs[0].manifest.variants.len());
    let text = match options.format {
        ReportFormat::Markdown if options.gate => {
            let told = dyno_report::markdown::escaped(&gate.to_string());
            format!("**Gate: {told}**\n\n{text}")
        }
        _ => text,
    };
    Ok((gate, text))
}

fn read(folder: &Path) -> anyhow::Result<Run> {
    read_run(folder).context("cannot use the record")
}

/// Judges the variants of the second run, which are listed behind the `n_first` of the first. Each
/// must be compared in each judged metric at each step of either run.
fn judge(findings: &Findings, n_first: usize) -> Gate {
    let (mut worse, mut unknown) = (Vec::new(), Vec::new());
    let name = |variant: usize| &findings.variants[variant].name;
    let has_namesake =
        |first: usize| findings.variants[n_first..].iter().any(|v| v.baseline == Some(first));
    for first in (0..n_first).filter(|first| !has_namesake(*first)) {
        unknown.push(format!("{} is in the first run only", name(first)));
    }
    for variant in n_first..findings.variants.len() {
        if findings.variants[variant].baseline.is_none() {
            unknown.push(format!("{} is in the second run only", name(variant)));
            continue;
        }
        for (step, facts) in findings.steps.iter().enumerate() {
            for metric in JUDGED {
                let found = findings
                    .comparisons
                    .iter()
                    .find(|c| (c.variant, c.step, c.metric) == (variant, step, metric));
                let place = format!("{} of {} at {}", metric.name(), name(variant), facts.name);
                match found.map(|c| c.verdict) {
                    Some(Verdict::Better | Verdict::NoDifference) => {}
                    Some(Verdict::Worse) => worse.push(place),
                    Some(Verdict::Inconclusive) => unknown.push(format!("{place} is not decided")),
                    None => unknown.push(format!("{place} cannot be compared")),
                }
            }
        }
    }
    if n_first == findings.variants.len() {
        unknown.push("the second run has no variants".to_owned());
    }
    match (worse.is_empty(), unknown.is_empty()) {
        (false, _) => Gate::Worse(worse),
        (true, false) => Gate::CannotSay(unknown),
        (true, true) => Gate::Pass,
    }
}
