//! Writes a run directory, so that a kill at any moment loses at most the trial that was running.
//!
//! Layout: `manifest.json`, `events.jsonl`, and for each trial a folder `trials/0001-NAME` with
//! `events.jsonl`, `intervals.hlog` (compressed to `.gz` when the trial ends), `readings.jsonl.gz` and
//! last of all `summary.json`. A trial without a summary has not ended.
//!
//! Readings are in their log, and once more in the summary, unless they are very many.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::reader::{read_manifest, trial_folders};
use crate::readings::ReadingsLog;
use crate::{EncodedHistogram, Event, Manifest, TrialPlan, TrialSummary};

/// A record that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {reason}", path.display())]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// Why, and what to do.
    pub reason: String,
}

impl WriteError {
    fn new(path: &Path, reason: impl ToString) -> WriteError {
        WriteError { path: path.to_owned(), reason: reason.to_string() }
    }

    /// Names what a person can do about the usual causes.
    fn io(path: &Path, error: &std::io::Error) -> WriteError {
        let advice = match error.kind() {
            std::io::ErrorKind::StorageFull => {
                "; free some space, then run the same command again: ended trials are kept"
            }
            std::io::ErrorKind::PermissionDenied => "; choose another folder with --out",
            _ => "",
        };
        WriteError::new(path, format!("{error}{advice}"))
    }
}

/// What to do where a run cannot be gone on with.
const BEGIN_ANOTHER: &str =
    "begin another run with `dyno run --new`, or choose another folder with --out";

/// Writes one run.
pub struct RunWriter {
    folder: PathBuf,
    events: Lines,
}

/// Writes one trial.
pub struct TrialWriter {
    folder: PathBuf,
    events: Lines,
    readings: ReadingsLog,
    intervals: Lines,
    text: String,
}

/// One second of load, as the interval logs keep it.
pub struct IntervalRecord<'a> {
    /// The step's index.
    pub step: usize,
    /// `warm-up` or `measure`.
    pub phase: &'a str,
    /// Start, nanoseconds since the run's clock began.
    pub start_ns: u64,
    /// Length in nanoseconds.
    pub length_ns: u64,
    /// By kind.
    pub kinds: Vec<KindInterval<'a>>,
}

/// One kind in one second.
pub struct KindInterval<'a> {
    /// The kind.
    pub kind: &'a str,
    /// Response times.
    pub response: &'a Histogram<u64>,
    /// Service times.
    pub service: &'a Histogram<u64>,
}

impl RunWriter {
    /// Makes the folder and writes the manifest. Refuses a folder that is not empty.
    pub fn create(folder: &Path, manifest: &Manifest) -> Result<RunWriter, WriteError> {
        fs::create_dir_all(folder).map_err(|e| WriteError::io(folder, &e))?;
        let mut entries = fs::read_dir(folder).map_err(|e| WriteError::io(folder, &e))?;
        if entries.next().is_some() {
            return Err(WriteError::new(
                folder,
                "the folder is not empty and holds no run of Dyno; choose another with --out",
            ));
        }
        write_whole(&folder.join("manifest.json"), manifest)?;
        RunWriter::open(folder)
    }

    /// Goes on with a run: the folder's manifest must have the same fingerprint, and servers must
    /// keep their data on the same storage.
    pub fn resume(folder: &Path, manifest: &Manifest) -> Result<RunWriter, WriteError> {
        let there =
            read_manifest(folder).map_err(|error| WriteError::new(&error.path, error.reason))?;
        if there.fingerprint != manifest.fingerprint {
            return Err(WriteError::new(
                folder,
                format!(
                    "the folder holds a run of another study or another version of it (`{}`); \
                     {BEGIN_ANOTHER}, or delete this one",
                    there.title
                ),
            ));
        }
        if let Some((was, is)) = there.environment.storage_unlike(&manifest.environment) {
            return Err(WriteError::new(
                folder,
                format!(
                    "servers of this run kept their data on {was}, and now would on {is}: trials \
                     on both are no repetitions of each other. Give the same --data-folder as \
                     before; or {BEGIN_ANOTHER}"
                ),
            ));
        }
        RunWriter::open(folder)
    }

    fn open(folder: &Path) -> Result<RunWriter, WriteError> {
        let trials = folder.join("trials");
        fs::create_dir_all(&trials).map_err(|e| WriteError::io(&trials, &e))?;
        Ok(RunWriter {
            folder: folder.to_owned(),
            events: Lines::open(folder.join("events.jsonl"))?,
        })
    }

    /// Numbers of the trials that have ended.
    pub fn ended_trials(&self) -> Vec<u32> {
        trial_folders(&self.folder)
            .into_iter()
            .filter(|(_, folder)| folder.join("summary.json").exists())
            .map(|(number, _)| number)
            .collect()
    }

    /// Appends to the run's own events (outside of trials).
    pub fn event(&mut self, event: &Event) -> Result<(), WriteError> {
        self.events.json(event)
    }

    /// Begins a trial: what an earlier, unfinished try left is moved aside.
    pub fn begin_trial(
        &mut self,
        trial: &TrialPlan,
        variant: &str,
    ) -> Result<TrialWriter, WriteError> {
        let folder =
            self.folder.join("trials").join(format!("{:04}-{}", trial.number, file_name(variant)));
        if folder.exists() {
            let aside = (1..)
                .map(|n| folder.with_extension(format!("unfinished-{n}")))
                .find(|path| !path.exists())
                .expect("there is a number that is not taken");
            fs::rename(&folder, &aside).map_err(|e| WriteError::io(&folder, &e))?;
        }
        fs::create_dir_all(&folder).map_err(|e| WriteError::io(&folder, &e))?;
        let mut intervals = Lines::open(folder.join("intervals.hlog"))?;
        intervals.line(
            "#[Histogram log format version 1.3]\n\
             #[Times are in seconds since the run's clock began; values are nanoseconds, the maximum \
             is in milliseconds]\n\
             \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\
             \"Interval_Compressed_Histogram\"",
        )?;
        Ok(TrialWriter {
            events: Lines::open(folder.join("events.jsonl"))?,
            readings: readings_log(&folder)?,
            intervals,
            folder,
            text: String::new(),
        })
    }

    /// The run's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl TrialWriter {
    /// Appends an event.
    pub fn event(&mut self, event: &Event) -> Result<(), WriteError> {
        self.events.json(event)
    }

    /// Appends a second's readings.
    pub fn readings(
        &mut self,
        at_ns: u64,
        values: &BTreeMap<String, f64>,
    ) -> Result<(), WriteError> {
        let pushed = self.readings.push(at_ns, values);
        pushed.map_err(|e| WriteError::io(&self.readings.path, &e))
    }

    /// Appends a second of load: a line for each kind that did anything, response and service.
    pub fn interval(&mut self, interval: &IntervalRecord<'_>) -> Result<(), WriteError> {
        use std::fmt::Write as _;
        for kind in &interval.kinds {
            let response = EncodedHistogram::encode_unless_empty(kind.response);
            // Under closed load they are the same.
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

    /// Compresses the trial's files and writes its summary, last. Where there are too many readings
    /// for two copies, the summary is written without those of steps whose `spans` it has.
    pub fn finish(self, mut summary: TrialSummary) -> Result<(), WriteError> {
        let TrialWriter { folder, events, readings, intervals, .. } = self;
        for lines in [events, intervals] {
            lines.compress()?;
        }
        let path = readings.path.clone();
        let is_large = readings.finish().map_err(|e| WriteError::io(&path, &e))?;
        summary.each_load(&mut |load| {
            if !is_large {
                load.spans = None;
            } else if load.spans.is_some() {
                load.readings.clear();
            }
        });
        write_whole(&folder.join("summary.json"), &summary)
    }

    /// The trial's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// The file of a trial's readings.
pub(crate) const READINGS: &str = "readings.jsonl.gz";

fn readings_log(folder: &Path) -> Result<ReadingsLog, WriteError> {
    let path = folder.join(READINGS);
    ReadingsLog::create(path.clone()).map_err(|e| WriteError::io(&path, &e))
}

/// A file of lines that is appended to.
struct Lines {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Lines {
    fn open(path: PathBuf) -> Result<Lines, WriteError> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(|e| WriteError::io(&path, &e))?;
        Ok(Lines { path, file: BufWriter::new(file) })
    }

    fn line(&mut self, text: &str) -> Result<(), WriteError> {
        writeln!(self.file, "{text}").map_err(|e| WriteError::io(&self.path, &e))
    }

    fn json<T: Serialize>(&mut self, value: &T) -> Result<(), WriteError> {
        let text =
            serde_json::to_string(value).map_err(|error| WriteError::new(&self.path, error))?;
        self.line(&text)?;
        self.flush()
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        self.file.flush().map_err(|e| WriteError::io(&self.path, &e))
    }

    fn compress(mut self) -> Result<(), WriteError> {
        self.flush()?;
        let target = PathBuf::from(format!("{}.gz", self.path.display()));
        let copy = || -> std::io::Result<()> {
            let mut encoder = GzEncoder::new(File::create(&target)?, Compression::default());
            std::io::copy(&mut File::open(&self.path)?, &mut encoder)?;
            encoder.finish()?.sync_all()?;
            fs::remove_file(&self.path)
        };
        copy().map_err(|e| WriteError::io(&target, &e))
    }
}

/// Writes a JSON file so that it is there whole or not at all.
fn write_whole<T: Serialize>(path: &Path, value: &T) -> Result<(), WriteError> {
    let temporary = path.with_extension("json.part");
    let write = || -> std::io::Result<()> {
        let mut file = BufWriter::new(File::create(&temporary)?);
        serde_json::to_writer_pretty(&mut file, value)?;
        file.write_all(b"\n")?;
        file.into_inner().map_err(|error| error.into_error())?.sync_all()?;
        fs::rename(&temporary, path)?;
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    };
    write().map_err(|e| WriteError::io(path, &e))
}

/// A variant's name as part of a file name.
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
mod tests;
