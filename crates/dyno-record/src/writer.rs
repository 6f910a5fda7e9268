//! Writes a run directory, so that a kill loses at most the running trial. Each trial has a folder
//! `trials/0001-NAME` with `events.jsonl`, `intervals.hlog` (both packed to `.gz` at the end),
//! `readings.jsonl.gz`, `checksums.json`, and last `summary.json`, which marks the trial as ended.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::consistency::check_trial;
use crate::error::{WriteError, WriteResult};
use crate::files::{
    Digest, MODE_PROBE, append, check_closed, check_way, open_regular, part_of, with_suffix,
    write_replacing,
};
use crate::growth::grown;
use crate::lock::{LOCK, RunLock};
use crate::reader::{check_indexes, read_manifest, read_outcome, trial_folders};
use crate::readings::ReadingsLog;
use crate::voids::{VoidBlock, set_aside};
use crate::{EncodedHistogram, Event, Manifest, TrialOutcome, TrialPlan, TrialSummary};

const BEGIN_ANOTHER: &str =
    "begin another run with `dyno run --new`, or choose another folder with --out";

pub(crate) const CHECKSUMS: &str = "checksums.json";
pub(crate) const SUMMARY: &str = "summary.json";
pub(crate) const MANIFEST: &str = "manifest.json";

pub struct RunWriter {
    folder: PathBuf,
    manifest: Arc<Manifest>,
    events: Lines,
    /// By trial number. Nobody else makes any under the lock, and there may be very many.
    trials: BTreeMap<u32, Vec<PathBuf>>,
    _lock: RunLock,
}

pub struct TrialWriter {
    pub(crate) folder: PathBuf,
    manifest: Arc<Manifest>,
    events: Lines,
    readings: ReadingsLog,
    intervals: Lines,
    text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedTrial {
    pub number: u32,
    pub variant: usize,
    pub message: String,
    pub server_log: Vec<String>,
    pub was_deployed: bool,
}

/// In the interval logs.
pub struct IntervalRecord<'a> {
    pub step: usize,
    /// `warm-up` or `measure`.
    pub phase: &'a str,
    /// Nanoseconds since the run's clock began.
    pub start_ns: u64,
    pub length_ns: u64,
    pub kinds: Vec<KindInterval<'a>>,
}

pub struct KindInterval<'a> {
    pub kind: &'a str,
    pub response: &'a Histogram<u64>,
    pub service: &'a Histogram<u64>,
}

fn ended_in(folder: &Path) -> impl Iterator<Item = (u32, PathBuf)> + use<> {
    trial_folders(folder).into_iter().filter(|(_, folder)| folder.join(SUMMARY).is_file())
}

fn by_number(folder: &Path) -> BTreeMap<u32, Vec<PathBuf>> {
    let mut all = BTreeMap::<u32, Vec<PathBuf>>::new();
    for (number, path) in trial_folders(folder) {
        all.entry(number).or_default().push(path);
    }
    all
}

impl RunWriter {
    /// Makes the folder, for its owner alone, and writes the manifest. Refuses a folder with
    /// anything in it but leftovers of a Dyno that was stopped doing this.
    pub fn create(folder: &Path, manifest: &Manifest) -> WriteResult<RunWriter> {
        make_run_folder(folder)?;
        check_empty(folder)?;
        let lock = RunLock::take(folder)?;
        // Another Dyno may have been there until now.
        check_empty(folder)?;
        write_whole(&folder.join(MANIFEST), manifest)?;
        RunWriter::open(folder, lock, manifest.clone())
    }

    /// Continues a run. The manifest may grow (see `growth.rs`); any other difference is refused by
    /// name. Data must be on the same storage.
    pub fn resume(folder: &Path, manifest: &Manifest) -> WriteResult<RunWriter> {
        check_way(folder)?;
        check_closed(folder)?;
        let lock = RunLock::take(folder)?;
        let there =
            read_manifest(folder).map_err(|error| WriteError::new(&error.path, error.reason))?;
        let n_ended = ended_in(folder).count() as u32;
        let now = grown(&there, manifest, n_ended).map_err(|why| {
            WriteError::usage(
                folder,
                format!("{why}; {BEGIN_ANOTHER}. Existing results are kept as they are"),
            )
        })?;
        if let Some((was, is)) = there.environment.storage_difference(&manifest.environment) {
            return Err(WriteError::usage(
                folder,
                format!(
                    "servers of this run kept their data on {was}, and would now use {is}: trials \
                     on different disks are not repetitions of each other. Give the same \
                     --data-folder as before; or {BEGIN_ANOTHER}"
                ),
            ));
        }
        if let Some(manifest) = &now {
            write_whole(&folder.join(MANIFEST), manifest)?;
        }
        RunWriter::open(folder, lock, now.unwrap_or(there))
    }

    fn open(folder: &Path, lock: RunLock, manifest: Manifest) -> WriteResult<RunWriter> {
        let trials = folder.join("trials");
        match make_closed(&trials) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(WriteError::io(&trials, &error));
            }
            _ => {}
        }
        if !fs::symlink_metadata(&trials).is_ok_and(|facts| facts.is_dir()) {
            return Err(WriteError::new(&trials, "it is not a folder of this run"));
        }
        check_closed(&trials)?;
        Ok(RunWriter {
            folder: folder.to_owned(),
            manifest: Arc::new(manifest),
            events: Lines::open(folder.join(EVENTS))?,
            trials: by_number(folder),
            _lock: lock,
        })
    }

    /// Well or not.
    pub fn ended_trials(&self) -> Vec<u32> {
        self.ended().map(|(number, _)| number).collect()
    }

    /// Ended and failed; unreadable summaries do not count.
    pub fn failed_trials(&self) -> Vec<FailedTrial> {
        let failed = |(number, folder): (u32, PathBuf)| {
            let summary = read_outcome(&folder.join(SUMMARY)).ok()?;
            match summary.outcome {
                TrialOutcome::Finished => None,
                TrialOutcome::Failed { message, server_log } => Some(FailedTrial {
                    number,
                    variant: summary.variant,
                    message,
                    server_log,
                    was_deployed: !summary.server.version.is_empty(),
                }),
            }
        };
        self.ended().filter_map(failed).collect()
    }

    fn ended(&self) -> impl Iterator<Item = (u32, PathBuf)> {
        ended_in(&self.folder)
    }

    /// Makes blocks void and sets their trials aside, with those of blocks voided before a kill.
    /// Returns the numbers of the trials.
    pub fn void(&mut self, blocks: Vec<VoidBlock>) -> WriteResult<Vec<u32>> {
        let numbers = set_aside(&self.folder, blocks)?;
        self.trials = by_number(&self.folder);
        Ok(numbers)
    }

    pub fn event(&mut self, event: &Event) -> WriteResult {
        self.events.json(event)
    }

    /// Moves an earlier try aside: `.unfinished-1`, or `.failed-1` if it had ended.
    pub fn begin_trial(&mut self, trial: &TrialPlan, variant: &str) -> WriteResult<TrialWriter> {
        let name = format!("{:04}-{}", trial.number, file_name(variant));
        for folder in self.trials.remove(&trial.number).unwrap_or_default() {
            let what = if folder.join(SUMMARY).is_file() { "failed" } else { "unfinished" };
            let aside = (1..)
                .map(|n| with_suffix(&folder, &format!(".{what}-{n}")))
                .find(|path| fs::symlink_metadata(path).is_err())
                .expect("there is a number that is not taken");
            fs::rename(&folder, &aside).map_err(|e| WriteError::io(&folder, &e))?;
        }
        let folder = self.folder.join("trials").join(name);
        make_closed(&folder).map_err(|e| WriteError::io(&folder, &e))?;
        self.trials.insert(trial.number, vec![folder.clone()]);
        let mut intervals = Lines::open(folder.join(INTERVALS))?;
        intervals.line(
            "#[Histogram log format version 1.3]\n\
             #[Times are in seconds since the run's clock began; values are nanoseconds, the maximum \
             is in milliseconds]\n\
             \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\
             \"Interval_Compressed_Histogram\"",
        )?;
        let readings = folder.join(READINGS);
        Ok(TrialWriter {
            events: Lines::open(folder.join(EVENTS))?,
            readings: ReadingsLog::create(readings.clone())
                .map_err(|e| WriteError::io(&readings, &e))?,
            intervals,
            folder,
            manifest: Arc::clone(&self.manifest),
            text: String::new(),
        })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl TrialWriter {
    pub fn event(&mut self, event: &Event) -> WriteResult {
        self.events.json(event)
    }

    pub fn readings(&mut self, at_ns: u64, values: &BTreeMap<String, f64>) -> WriteResult {
        let pushed = self.readings.push(at_ns, values);
        pushed.map_err(|e| WriteError::io(&self.readings.path, &e))
    }

    /// Response and service of each kind that did anything.
    pub fn interval(&mut self, interval: &IntervalRecord<'_>) -> WriteResult {
        use std::fmt::Write as _;
        for kind in &interval.kinds {
            let response = EncodedHistogram::encode_unless_empty(kind.response);
            // As under closed load.
            let service = match kind.response == kind.service {
                true => response.clone(),
                false => EncodedHistogram::encode_unless_empty(kind.service),
            };
            for (what, histogram, encoded) in
                [("response", kind.response, response), ("service", kind.service, service)]
            {
                let Some(EncodedHistogram(encoded)) = encoded else { continue };
                self.text.clear();
                // Tags may not hold commas or blanks.
                write!(
                    self.text,
                    "Tag={what}/{}/step{}/{},{:.3},{:.3},{:.3},{encoded}",
                    kind.kind,
                    interval.step,
                    interval.phase,
                    interval.start_ns as f64 / 1e9,
                    interval.length_ns as f64 / 1e9,
                    histogram.max() as f64 / 1e6
                )
                .expect("writing to memory does not fail");
                self.intervals.line(&self.text)?;
            }
        }
        self.intervals.flush()
    }

    /// Whether a run with this trial could be read; the error says why not.
    pub fn check(&self, summary: &TrialSummary) -> Result<(), String> {
        let indexes = check_indexes(&self.manifest, summary, &self.folder);
        indexes.map_err(|error| error.reason)?;
        check_trial(&self.manifest, summary).map_err(|why| {
            format!("the record of trial {} contradicts itself: {why}", summary.number)
        })
    }

    /// Compresses the files, notes digests, and writes the summary last; without the readings of
    /// steps that have `spans`, if there are too many to keep twice.
    pub fn finish(self, mut summary: TrialSummary) -> WriteResult {
        let TrialWriter { folder, events, readings, intervals, .. } = self;
        events.compress()?;
        let intervals = intervals.compress()?;
        let path = readings.path.clone();
        let is_large = readings.finish().map_err(|e| WriteError::io(&path, &e))?;
        summary.each_load(&mut |load| {
            if !is_large {
                load.spans = None;
            } else if load.spans.is_some() {
                load.readings.clear();
            }
        });
        write_summary(&folder, &summary, [&intervals, &path])
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Notes digests, and writes the summary last.
pub(crate) fn write_summary(to: &Path, summary: &TrialSummary, logs: [&Path; 2]) -> WriteResult {
    let target = to.join(SUMMARY);
    let text = to_json(&target, summary)?;
    let mut checksums = BTreeMap::from([(SUMMARY.to_owned(), Digest::of(&text))]);
    for log in logs {
        let name = log.file_name().unwrap_or_default().to_string_lossy().into_owned();
        checksums.insert(name, digest_of(log).map_err(|e| WriteError::io(log, &e))?);
    }
    write_whole(&to.join(CHECKSUMS), &checksums)?;
    write_replacing(&target, &text).map_err(|e| WriteError::io(&target, &e))
}

/// Packed when the trial has ended.
pub(crate) const EVENTS: &str = "events.jsonl";
pub(crate) const INTERVALS: &str = "intervals.hlog";

pub(crate) const READINGS: &str = "readings.jsonl.gz";

struct Lines {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Lines {
    fn open(path: PathBuf) -> WriteResult<Lines> {
        let file = append(&path).map_err(|e| WriteError::io(&path, &e))?;
        Ok(Lines { path, file: BufWriter::new(file) })
    }

    fn line(&mut self, text: &str) -> WriteResult {
        writeln!(self.file, "{text}").map_err(|e| WriteError::io(&self.path, &e))
    }

    fn json<T: Serialize>(&mut self, value: &T) -> WriteResult {
        let text =
            serde_json::to_string(value).map_err(|error| WriteError::new(&self.path, error))?;
        self.line(&text)?;
        self.flush()
    }

    fn flush(&mut self) -> WriteResult {
        self.file.flush().map_err(|e| WriteError::io(&self.path, &e))
    }

    fn compress(mut self) -> WriteResult<PathBuf> {
        self.flush()?;
        let target = with_suffix(&self.path, ".gz");
        let copy = || -> std::io::Result<()> {
            let mut encoder = GzEncoder::new(File::create_new(&target)?, Compression::default());
            std::io::copy(&mut File::open(&self.path)?, &mut encoder)?;
            encoder.finish()?.sync_all()?;
            fs::remove_file(&self.path)
        };
        copy().map_err(|e| WriteError::io(&target, &e))?;
        Ok(target)
    }
}

fn digest_of(path: &Path) -> std::io::Result<String> {
    let mut file = open_regular(path)?;
    let (mut digest, mut block) = (Digest::default(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut block)? {
            0 => return Ok(digest.text()),
            n => digest.add(&block[..n]),
        }
    }
}

/// The file is there whole or not at all.
pub(crate) fn write_whole<T: Serialize>(path: &Path, value: &T) -> WriteResult {
    let text = to_json(path, value)?;
    write_replacing(path, &text).map_err(|e| WriteError::io(path, &e))
}

fn to_json<T: Serialize>(path: &Path, value: &T) -> WriteResult<Vec<u8>> {
    let mut text =
        serde_json::to_vec_pretty(value).map_err(|error| WriteError::new(path, error))?;
    text.push(b'\n');
    Ok(text)
}

/// As [`make_folder`]; fails if another user has put something on the way, or may put files into the folder.
pub fn make_run_folder(folder: &Path) -> WriteResult {
    check_way(folder)?;
    make_folder(folder).map_err(|error| not_made(folder, &error))?;
    check_closed(folder)?;
    // Another user may have made part of the way until now; from now on none can.
    check_way(folder)
}

/// For its owner alone; parents as usual. An existing folder stays as it is.
fn make_folder(folder: &Path) -> std::io::Result<()> {
    if let Some(above) = folder.parent() {
        fs::create_dir_all(above)?;
    }
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(_) if folder.is_dir() => Ok(()),
        made => made,
    }
}

/// A part of a run: not open to everybody where the umask is 0.
fn make_closed(folder: &Path) -> std::io::Result<()> {
    fs::DirBuilder::new().mode(0o775).create(folder)
}

fn not_made(folder: &Path, error: &std::io::Error) -> WriteError {
    if error.kind() == std::io::ErrorKind::StorageFull {
        return WriteError::io(folder, error);
    }
    let is_file = |path: &&Path| path.exists() && !path.is_dir();
    let why = match folder.ancestors().find(is_file) {
        Some(file) => format!("{} is not a folder", file.display()),
        None => error.to_string(),
    };
    WriteError::new(
        folder,
        format!("the folder cannot be created: {why}; choose another folder with --out"),
    )
}

/// Refuses a folder with more than the lock, the part of a manifest and the probe of modes that a stopped Dyno left.
pub fn check_empty(folder: &Path) -> WriteResult {
    let part = part_of(Path::new(MANIFEST));
    let leftovers = [OsStr::new(LOCK), part.as_os_str()];
    if fs::symlink_metadata(folder.join(MANIFEST)).is_ok() {
        return Err(WriteError::usage(folder, "it already holds a run"));
    }
    let entries = fs::read_dir(folder).map_err(|e| WriteError::io(folder, &e))?;
    for entry in entries {
        let name = entry.map_err(|e| WriteError::io(folder, &e))?.file_name();
        let is_probe = name.to_str().is_some_and(|name| name.starts_with(MODE_PROBE));
        if !is_probe && !leftovers.contains(&name.as_os_str()) {
            return Err(WriteError::usage(
                folder,
                "it is not empty and holds no Dyno run; choose another folder with --out",
            ));
        }
    }
    Ok(())
}

fn file_name(variant: &str) -> String {
    let mut name = String::new();
    for c in variant.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '=' => name.push(c),
            _ if name.ends_with('-') => {}
            _ => name.push('-'),
        }
    }
    name.truncate(60);
    name
}

#[cfg(test)]
pub(crate) mod tests;
