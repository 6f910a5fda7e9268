//! The fuzz targets of this crate.

use std::path::{Path, PathBuf};

use dyno_workload::declared::capture::{Format, Request, capture as capture_log};

pub use crate::commands::convert::fuzz::autobench;
pub use crate::commands::import::fuzz::import;
pub use crate::commands::pgbench::fuzz::pgbench_options;
#[cfg(feature = "lua")]
pub use crate::commands::sysbench::fuzz::sysbench_options;
pub use crate::http::fuzz::http_request;

use crate::commands::report::{self, ReportFormat};

/// Reads a log in each format and counts its statements; the captured study must be valid.
pub fn capture(input: &[u8]) {
    let formats = Format::ALL.map(Some);
    for (nth, format) in [None].into_iter().chain(formats).enumerate() {
        let request = Request {
            format,
            prefix: None,
            schema: None,
            kinds: 100,
            has_texts: nth % 2 == 0,
            has_routines: false,
            url: None,
            source: "a \"log\"".to_owned(),
        };
        let Ok(captured) = capture_log(&mut &*input, &request) else { continue };
        let counts = captured.counts;
        let left_out: u64 = counts.left_out.values().sum();
        assert_eq!(counts.read, counts.replayed + counts.control + left_out);
        let catalog = crate::scripts::catalog(&captured.study, Path::new(""));
        let catalog = catalog.expect("it names no files");
        let words = crate::vocabulary::vocabulary_of(&dyno_lab::products(), &catalog);
        if let Err(problems) = dyno_study::parse(&captured.study, &words) {
            let text = dyno_study::diagnostic::render("captured", &captured.study, &problems);
            panic!("{format:?}\n{text}\n{}", captured.study);
        }
    }
}

/// Removed on drop.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The input is the files of a run, each after a line `=== NAME` (`manifest.json`,
/// `1-a/summary.json`).
pub fn record(input: &[u8]) {
    let folder = Folder(std::env::temp_dir().join(format!("dyno-record-{}", std::process::id())));
    for (name, bytes) in files(input) {
        let path = folder.0.join(name);
        std::fs::create_dir_all(path.parent().expect("it is in the folder")).expect("it is made");
        std::fs::write(path, bytes).expect("it is written");
    }
    let Ok(run) = dyno_record::read_run(&folder.0) else { return };
    for (_, trial) in dyno_record::trial_folders(&folder.0) {
        let _ = dyno_record::read_times(&trial, &mut |_| {});
    }
    let runs = [run];
    let findings = report::find(&runs, None);
    for format in
        [ReportFormat::Html, ReportFormat::Markdown, ReportFormat::Json, ReportFormat::Terminal]
    {
        let _ = report::render(&findings, &runs, format, 0);
    }
}

/// Only files of a record, whose names do not lead out of the folder.
fn files(input: &[u8]) -> Vec<(String, &[u8])> {
    const MARK: &[u8] = b"=== ";
    let starts = (0..input.len())
        .filter(|at| input[*at..].starts_with(MARK) && (*at == 0 || input[*at - 1] == b'\n'));
    let starts: Vec<usize> = starts.collect();
    let ends = starts.iter().skip(1).copied().chain([input.len()]);
    let parts = starts.iter().zip(ends).map(|(start, end)| &input[start + MARK.len()..end]);
    let named = parts.filter_map(|part| {
        let at = part.iter().position(|byte| *byte == b'\n')?;
        let name = std::str::from_utf8(&part[..at]).ok()?;
        let name = match name.split_once('/') {
            None if ["manifest.json", "voids.json"].contains(&name) => name.to_owned(),
            Some((trial @ ("0001-a" | "0002-b"), file)) if TRIAL.contains(&file) => {
                format!("trials/{trial}/{file}")
            }
            _ => return None,
        };
        Some((name, &part[at + 1..]))
    });
    named.collect()
}

const TRIAL: [&str; 4] = ["summary.json", "intervals.hlog", "readings.jsonl", "checksums.json"];

#[cfg(test)]
#[path = "../../../fuzz/mutations.rs"]
mod mutations;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_become_studies_or_are_refused() {
        mutations::run("capture", 500, capture);
    }

    #[test]
    fn records_are_reported_or_refused() {
        mutations::run("record", 500, record);
    }

    #[test]
    fn output_of_other_tools_is_imported_or_refused() {
        mutations::run("import", 1500, import);
    }

    #[test]
    fn configurations_of_autobench_become_studies_or_are_refused() {
        mutations::run("autobench", 1000, autobench);
    }

    #[test]
    fn command_lines_of_pgbench_are_read_or_refused() {
        mutations::run("pgbench_options", 5000, pgbench_options);
    }

    #[cfg(feature = "lua")]
    #[test]
    fn command_lines_of_sysbench_are_read_or_refused() {
        mutations::run("sysbench_options", 5000, sysbench_options);
    }

    #[test]
    fn requests_of_browsers_are_read_or_refused() {
        mutations::run("http_request", 5000, http_request);
    }
}
