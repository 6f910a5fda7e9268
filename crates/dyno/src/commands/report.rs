//! `dyno report`: an answer from one or several records.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;
use dyno_analysis::{Findings, Options, analyse};
use dyno_record::{LogEnd, Run, read_run, read_times};
use dyno_report::export;
use dyno_report::times::Times;

use crate::cli::{ReportFormat, ReportOptions};
use crate::clock::SystemClock;
use crate::{End, terminal};

/// Makes the report of runs again.
pub(crate) fn run(options: &ReportOptions) -> anyhow::Result<End> {
    use dyno_units::Clock;
    let now = SystemClock::start().unix_millis();
    let Some(format) = options.format else {
        let text = write_all(&options.runs, options.threshold, now)?;
        terminal::out(&text);
        return Ok(End::Good);
    };
    let runs = read(&options.runs)?;
    let findings = find(&runs, options.threshold);
    if let Some(rows) = format.rows() {
        let folder = options.out.clone().unwrap_or_else(|| runs[0].folder.join("tables"));
        terminal::out(&write_tables(&findings, &runs, rows, &folder)?);
        return Ok(End::Good);
    }
    let text = render(&findings, &runs, format, now)?;
    match &options.out {
        Some(path) => write(path, text.as_bytes())?,
        None => terminal::out(&text),
    }
    Ok(End::Good)
}

/// How rows of tables are written.
#[derive(Clone, Copy)]
pub(crate) enum Rows {
    Csv,
    JsonLines,
    Parquet,
}

impl ReportFormat {
    /// How rows are written, if it is a format of tables.
    pub(crate) fn rows(self) -> Option<Rows> {
        match self {
            ReportFormat::Csv => Some(Rows::Csv),
            ReportFormat::Jsonl => Some(Rows::JsonLines),
            ReportFormat::Parquet => Some(Rows::Parquet),
            ReportFormat::Html
            | ReportFormat::Markdown
            | ReportFormat::Json
            | ReportFormat::Terminal => None,
        }
    }
}

/// Renders findings as a text. Formats of tables are many files: see [`write_tables`].
pub(crate) fn render(
    findings: &Findings,
    runs: &[Run],
    format: ReportFormat,
    now_unix_ms: u64,
) -> anyhow::Result<String> {
    Ok(match format {
        ReportFormat::Html => html(findings, runs, now_unix_ms)?,
        ReportFormat::Markdown => dyno_report::markdown::render(findings),
        ReportFormat::Json => dyno_report::json::render(findings),
        ReportFormat::Terminal => summary(findings),
        ReportFormat::Csv | ReportFormat::Jsonl | ReportFormat::Parquet => {
            anyhow::bail!("tables are several files: give the folder for them with --out")
        }
    })
}

/// Writes all tables into a folder, and says which.
pub(crate) fn write_tables(
    findings: &Findings,
    runs: &[Run],
    rows: Rows,
    folder: &Path,
) -> anyhow::Result<String> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let mut told = String::new();
    for table in export::tables(findings, runs) {
        let (ending, bytes) = match rows {
            Rows::Csv => ("csv", export::csv(&table).into_bytes()),
            Rows::JsonLines => ("jsonl", export::jsonl(&table).into_bytes()),
            Rows::Parquet => ("parquet", export::parquet(&table)?),
        };
        let path = folder.join(format!("{}.{ending}", table.name));
        write(&path, &bytes)?;
        told += &format!("{}: {} rows\n", path.display(), table.len());
    }
    Ok(told)
}

/// The page, with the response times of all seconds.
pub(crate) fn html(findings: &Findings, runs: &[Run], now_unix_ms: u64) -> anyhow::Result<String> {
    let times = times(findings, runs)?;
    Ok(dyno_report::html::render(findings, runs, &times, &date(now_unix_ms)))
}

/// Most threads that read interval logs.
const READERS_MOST: usize = 8;

/// Reads the response times of all seconds, on as many threads as there are processors: a large
/// record has gigabytes of them.
fn times(findings: &Findings, runs: &[Run]) -> anyhow::Result<Times> {
    let trials: Vec<(usize, &Run, u32)> = runs
        .iter()
        .enumerate()
        .flat_map(|(i, run)| run.trials.iter().map(move |trial| (i, run, trial.number)))
        .collect();
    let mut times = Times::new(findings, runs);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let n = processors.min(READERS_MOST).min(trials.len()).max(1);
    let next = AtomicUsize::new(0);
    let read = |mut times: Times| -> anyhow::Result<Times> {
        while let Some((i, run, trial)) = trials.get(next.fetch_add(1, Ordering::Relaxed)) {
            let end = read_times(&run.folder, *trial, &mut |second| times.add(*i, *trial, second))?;
            if end != LogEnd::Whole {
                times.lacks(*i, *trial);
            }
        }
        Ok(times)
    };
    let parts: Vec<anyhow::Result<Times>> = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..n)
            .map(|_| {
                let (plan, read) = (times.clone(), &read);
                scope.spawn(move || read(plan))
            })
            .collect();
        readers.into_iter().map(|reader| reader.join().expect("reading does not panic")).collect()
    });
    for part in parts {
        times.absorb(&part?);
    }
    Ok(times)
}

/// Analyses runs, writes report.html, report.md and findings.json into the first one's folder, and
/// returns the summary for the terminal.
pub(crate) fn write_all(
    folders: &[PathBuf],
    threshold: Option<f64>,
    now_unix_ms: u64,
) -> anyhow::Result<String> {
    let runs = read(folders)?;
    let findings = find(&runs, threshold);
    let folder = &runs[0].folder;
    write(&folder.join("report.html"), html(&findings, &runs, now_unix_ms)?.as_bytes())?;
    write(&folder.join("report.md"), dyno_report::markdown::render(&findings).as_bytes())?;
    write(&folder.join("findings.json"), dyno_report::json::render(&findings).as_bytes())?;
    Ok(format!("{}\nreport: {}\n", summary(&findings), folder.join("report.html").display()))
}

/// Reads runs.
pub(crate) fn read(folders: &[PathBuf]) -> anyhow::Result<Vec<Run>> {
    folders.iter().map(|folder| read_run(folder).context("cannot use the record")).collect()
}

/// Analyses runs.
pub(crate) fn find(runs: &[Run], threshold: Option<f64>) -> Findings {
    analyse(runs, &Options { threshold, ..Options::default() })
}

fn summary(findings: &Findings) -> String {
    dyno_report::terminal::render(findings, terminal::width(), terminal::out_is_terminal())
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// Milliseconds since 1970 as `2026-11-20 09:30 UTC` (civil-from-days of Howard Hinnant, 2013).
pub(crate) fn date(unix_ms: u64) -> String {
    let minutes = unix_ms / 60_000;
    let (days, minute_of_day) = ((minutes / 1440) as i64, minutes % 1440);
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", minute_of_day / 60, minute_of_day % 60)
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates_are_civil() {
        let check = |unix_s: u64, expected: &str| assert_eq!(date(unix_s * 1000), expected);
        check(0, "1970-01-01 00:00 UTC");
        check(951_782_399, "2000-02-28 23:59 UTC");
        check(951_782_400, "2000-02-29 00:00 UTC");
        check(1_795_168_800, "2026-11-20 10:00 UTC");
    }
}
