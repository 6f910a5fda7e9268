//! `dyno report`: an answer from one or several records.

use std::path::{Path, PathBuf};

use anyhow::Context;
use dyno_analysis::{Findings, Options, analyse};
use dyno_record::{Run, read_run};

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
    let text = match format {
        ReportFormat::Html => dyno_report::html::render(&findings, &runs, &date(now)),
        ReportFormat::Markdown => dyno_report::markdown::render(&findings),
        ReportFormat::Json => dyno_report::json::render(&findings),
        ReportFormat::Terminal => summary(&findings),
    };
    match &options.out {
        Some(path) => write(path, &text)?,
        None => terminal::out(&text),
    }
    Ok(End::Good)
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
    write(
        &folder.join("report.html"),
        &dyno_report::html::render(&findings, &runs, &date(now_unix_ms)),
    )?;
    write(&folder.join("report.md"), &dyno_report::markdown::render(&findings))?;
    write(&folder.join("findings.json"), &dyno_report::json::render(&findings))?;
    Ok(format!("{}\nreport: {}\n", summary(&findings), folder.join("report.html").display()))
}

fn read(folders: &[PathBuf]) -> anyhow::Result<Vec<Run>> {
    folders.iter().map(|folder| read_run(folder).context("cannot use the record")).collect()
}

fn find(runs: &[Run], threshold: Option<f64>) -> Findings {
    analyse(runs, &Options { threshold, ..Options::default() })
}

fn summary(findings: &Findings) -> String {
    dyno_report::terminal::render(findings, terminal::width(), terminal::out_is_terminal())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
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
