//! `readings.jsonl.gz`: what the probes read, in the order of time, packed while it is written.
//!
//! A line has the time, new names (numbered on from 0), and runs of values, each under the number
//! of its first name; so a name is written once.
//!
//! ```text
//! {"at_ns":1000,"names":["cpu.busy_pct","load.avg1"],"values":{"0":[12.5,0.3]}}
//! {"at_ns":2000,"values":{"0":[13,null]}}
//! ```
//!
//! A kill cuts off the last seconds only. If readings are not too many, a trial's summary has them
//! again, beside the intervals of its steps.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Deserialize;

use crate::error::{ReadError, ReadResult};
use crate::files::Log;
use crate::reader::READING_NAME_MOST;

/// Written data are sent to the disk at least this often.
const FLUSH_NS: u64 = 10_000_000_000;

/// So many missing values are written before a new run begins.
const GAP: usize = 4;

/// More readings are only in the log: an hour of thousands takes tens of megabytes.
pub(crate) const KEPT_TWICE: u64 = 1_000_000;

/// Many times what all probes of a large deployment read.
const NAMES_MOST: usize = 1 << 20;

pub(crate) struct ReadingsLog {
    pub(crate) path: PathBuf,
    file: GzEncoder<File>,
    numbers: HashMap<String, usize>,
    line: String,
    flushed_ns: u64,
    n_values: u64,
}

impl ReadingsLog {
    pub(crate) fn create(path: PathBuf) -> io::Result<ReadingsLog> {
        let file = GzEncoder::new(File::create_new(&path)?, Compression::default());
        let (numbers, line) = (HashMap::new(), String::new());
        Ok(ReadingsLog { path, file, numbers, line, flushed_ns: 0, n_values: 0 })
    }

    pub(crate) fn push(&mut self, at_ns: u64, values: &BTreeMap<String, f64>) -> io::Result<()> {
        let mut new = Vec::new();
        let mut numbered: Vec<(usize, f64)> = Vec::with_capacity(values.len());
        for (name, value) in values {
            let number = match self.numbers.get(name) {
                Some(number) => *number,
                None => {
                    let number = self.numbers.len();
                    self.numbers.insert(name.clone(), number);
                    new.push(name);
                    number
                }
            };
            numbered.push((number, *value));
        }
        numbered.sort_unstable_by_key(|(number, _)| *number);
        self.line.clear();
        write!(self.line, "{{\"at_ns\":{at_ns}").map_err(io::Error::other)?;
        if !new.is_empty() {
            let names = serde_json::to_string(&new)?;
            write!(self.line, ",\"names\":{names}").map_err(io::Error::other)?;
        }
        self.line.push_str(",\"values\":{");
        write_runs(&numbered, &mut self.line).map_err(io::Error::other)?;
        self.line.push_str("}}\n");
        self.file.write_all(self.line.as_bytes())?;
        self.n_values += values.len() as u64;
        if at_ns >= self.flushed_ns.saturating_add(FLUSH_NS) {
            self.flushed_ns = at_ns;
            self.file.flush()?;
        }
        Ok(())
    }

    /// Returns whether there are too many values to keep twice.
    pub(crate) fn finish(self) -> io::Result<bool> {
        self.file.finish()?.sync_all()?;
        Ok(self.n_values > KEPT_TWICE)
    }
}

fn write_runs(numbered: &[(usize, f64)], out: &mut String) -> std::fmt::Result {
    let mut next = None;
    for (number, value) in numbered {
        match next {
            Some(expected) if *number >= expected && *number <= expected + GAP => {
                (expected..*number).for_each(|_| out.push_str(",null"));
                out.push(',');
            }
            before => {
                let end = if before.is_some() { "]," } else { "" };
                write!(out, "{end}\"{number}\":[")?;
            }
        }
        if value.is_finite() {
            write!(out, "{value}")?
        } else {
            out.push_str("null")
        }
        next = Some(number + 1);
    }
    if next.is_some() {
        out.push(']');
    }
    Ok(())
}

#[derive(Debug, Deserialize)]
pub(crate) struct LogLine {
    /// On the run's clock.
    pub(crate) at_ns: u64,
    #[serde(default)]
    names: Vec<String>,
    values: BTreeMap<usize, Vec<Option<f64>>>,
}

impl LogLine {
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (usize, f64)> {
        self.values.iter().flat_map(|(first, run)| {
            let numbered = run.iter().enumerate();
            numbered.filter_map(move |(nth, value)| Some((first + nth, (*value)?)))
        })
    }

    /// One past its highest number.
    fn n_named(&self) -> usize {
        self.values.iter().map(|(first, run)| first.saturating_add(run.len())).max().unwrap_or(0)
    }
}

pub(crate) struct LogLines {
    path: PathBuf,
    lines: Log,
    text: Vec<u8>,
    names: Vec<String>,
}

impl LogLines {
    pub(crate) fn open(path: &Path) -> ReadResult<LogLines> {
        Ok(LogLines {
            path: path.to_owned(),
            lines: Log::open(path).map_err(|error| ReadError::new(path, error))?,
            text: Vec::new(),
            names: Vec::new(),
        })
    }

    /// `None` at the end. Fails if the log is damaged or cut.
    pub(crate) fn next(&mut self) -> ReadResult<Option<LogLine>> {
        let damaged = |path: &Path, why: &dyn std::fmt::Display| {
            ReadError::new(path, format!("the file is damaged: {why}"))
        };
        self.text.clear();
        let read = self.lines.read_line(&mut self.text);
        if read.map_err(|error| damaged(&self.path, &error))? == 0 {
            return Ok(None);
        }
        let mut line: LogLine =
            serde_json::from_slice(&self.text).map_err(|error| damaged(&self.path, &error))?;
        if line.names.iter().any(|name| name.len() > READING_NAME_MOST) {
            return Err(damaged(&self.path, &"a reading has a name that is too long"));
        }
        self.names.append(&mut line.names);
        if self.names.len() > NAMES_MOST {
            return Err(damaged(&self.path, &"it names more readings than any run of Dyno's"));
        }
        if line.n_named() > self.names.len() {
            return Err(damaged(&self.path, &"a reading has no name"));
        }
        Ok(Some(line))
    }

    /// So far, by number.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// All names, and the digest of the whole file.
    pub(crate) fn finish(self) -> ReadResult<(Vec<String>, String)> {
        let digest = self.lines.digest().map_err(|error| ReadError::new(&self.path, error))?;
        Ok((self.names, digest))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    fn text(path: &std::path::Path) -> String {
        let mut text = String::new();
        // A cut file is readable up to there.
        let _ = GzDecoder::new(File::open(path).expect("it is there")).read_to_string(&mut text);
        text
    }

    fn log() -> (tempfile::TempDir, ReadingsLog) {
        let folder = tempfile::tempdir().expect("a folder");
        let log = ReadingsLog::create(folder.path().join("readings.jsonl.gz")).expect("made");
        (folder, log)
    }

    fn values(values: &[(&str, f64)]) -> BTreeMap<String, f64> {
        values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn a_name_is_written_once() {
        let (_folder, mut log) = log();
        let path = log.path.clone();
        log.push(1, &values(&[("a", 1.0), ("b", 0.5)])).expect("written");
        log.push(2, &values(&[("x\"", 7.0)])).expect("written");
        log.push(3, &values(&[("a", 2.0), ("x\"", f64::NAN)])).expect("written");
        log.push(4, &BTreeMap::new()).expect("written");
        assert!(!log.finish().expect("ended"));
        let expected = "{\"at_ns\":1,\"names\":[\"a\",\"b\"],\"values\":{\"0\":[1,0.5]}}\n\
            {\"at_ns\":2,\"names\":[\"x\\\"\"],\"values\":{\"2\":[7]}}\n\
            {\"at_ns\":3,\"values\":{\"0\":[2,null,null]}}\n{\"at_ns\":4,\"values\":{}}\n";
        assert_eq!(text(&path), expected);
        for line in expected.lines() {
            serde_json::from_str::<serde_json::Value>(line).expect("each line is JSON");
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let (_folder, mut log) = log();
        let path = log.path.clone();
        let all = [
            values(&[("a", 1.0), ("b", 0.5), ("c", -2e-7)]),
            values(&[("far", 3.25), ("x\"", f64::INFINITY)]),
            BTreeMap::new(),
            values(&[("a", 7.0), ("far", 8.0)]),
        ];
        for (second, values) in (1..).zip(&all) {
            log.push(second, values).expect("written");
        }
        log.finish().expect("ended");
        let mut lines = LogLines::open(&path).expect("opened");
        for (second, values) in (1..).zip(&all) {
            let line = lines.next().expect("read").expect("it is there");
            let names = lines.names();
            let found: BTreeMap<String, f64> =
                line.numbered().map(|(number, value)| (names[number].clone(), value)).collect();
            let finite = values.iter().filter(|(_, value)| value.is_finite());
            let finite: BTreeMap<String, f64> = finite.map(|(n, v)| (n.clone(), *v)).collect();
            assert_eq!((line.at_ns, found), (second, finite));
        }
        assert!(lines.next().expect("read").is_none());
    }

    #[test]
    fn damage_is_told() {
        let check = |text: &str, expected: &str| {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("readings.jsonl.gz");
            let mut file = GzEncoder::new(File::create(&path).expect("made"), Compression::fast());
            file.write_all(text.as_bytes()).expect("written");
            file.finish().expect("ended");
            let mut lines = LogLines::open(&path).expect("opened");
            let error = lines.next().expect_err(text).to_string();
            assert!(error.contains("damaged") && error.contains(expected), "{error}");
        };
        check("{\"at_ns\":1,\"values\":{\"0\":[1]}}\n", "no name");
        check("{\"at_ns\":1,\"valu", "");
        check("{\"at_ns\":1,\"names\":[\"a\"],\"values\":{\"18446744073709551615\":[1]}}\n", "");
        let long = "a".repeat(READING_NAME_MOST + 1);
        check(&format!("{{\"at_ns\":1,\"names\":[\"{long}\"],\"values\":{{}}}}\n"), "too long");
        let many = "\"\",".repeat(NAMES_MOST) + "\"\"";
        check(&format!("{{\"at_ns\":1,\"names\":[{many}],\"values\":{{}}}}\n"), "more readings");
    }

    #[test]
    fn far_values_are_runs_of_their_own() {
        let mut out = String::new();
        write_runs(&[(0, 1.0), (9, 2.0), (10, 3.0)], &mut out).expect("written");
        assert_eq!(out, "\"0\":[1],\"9\":[2,3]");
    }

    #[test]
    fn a_killed_run_leaves_what_was_flushed() {
        let (_folder, mut log) = log();
        let path = log.path.clone();
        log.push(FLUSH_NS, &values(&[("a", 1.0)])).expect("written");
        log.push(FLUSH_NS + 1, &values(&[("a", 2.0)])).expect("written");
        std::mem::forget(log);
        assert_eq!(text(&path).lines().count(), 1);
    }

    /// As on a busy server: of ten readings, four never change, two are mostly zero, two are small
    /// counts over not quite a second, two are noise.
    pub(crate) fn busy(number: usize, second: u64, random: &mut u64) -> f64 {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        let share = (*random >> 11) as f64 / (1_u64 << 53) as f64;
        let length = 1.0 + (*random % 1000) as f64 * 3e-7;
        let value = match number % 10 {
            0..4 => (number % 7) as f64 * 4096.0,
            4..6 => (*random % 10 == second % 10) as u8 as f64 / length,
            6..8 => (*random % 60) as f64 / length,
            _ => (number as f64 * 1000.0 + 1e5) * (0.9 + 0.2 * share),
        };
        format!("{value:.5e}").parse().expect("it was a number")
    }

    #[test]
    fn an_hour_of_10000_readings_a_second_stays_under_100_mb() {
        const N: usize = 10_000;
        const SECONDS: u64 = 12;
        let (_folder, mut log) = log();
        let path = log.path.clone();
        let names: Vec<String> = (0..N).map(|n| format!("group.{n:05}.something_per_s")).collect();
        let mut random = 1_u64;
        let mut sizes = Vec::new();
        for second in 0..SECONDS {
            let all = names.iter().enumerate();
            let all = all.map(|(n, name)| (name.clone(), busy(n, second, &mut random))).collect();
            log.push((second + 1) * FLUSH_NS, &all).expect("written");
            sizes.push(std::fs::metadata(&path).expect("it is there").len());
        }
        let per_second = (sizes[SECONDS as usize - 1] - sizes[0]) / (SECONDS - 1);
        let hour = sizes[0] + per_second * 3599;
        assert!(hour < 100_000_000, "{hour} bytes");
        assert!(hour > 10_000_000, "{hour} bytes are too few to be true");
    }
}
