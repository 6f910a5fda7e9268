//! Writes a run directory.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use hdrhistogram::Histogram;
use crate::{Event, Manifest, TrialPlan, TrialSummary};

/// A record that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {reason}", path.display())]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// Why, and what to do.
    pub reason: String,
}

/// Writes one run.
pub struct RunWriter {}
/// Writes one trial.
pub struct TrialWriter {}

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
    pub fn create(_folder: &Path, _manifest: &Manifest) -> Result<RunWriter, WriteError> { unimplemented!() }
    /// Goes on with a run: the folder's manifest must have the same fingerprint.
    pub fn resume(_folder: &Path, _manifest: &Manifest) -> Result<RunWriter, WriteError> { unimplemented!() }
    /// Numbers of the trials that have ended.
    pub fn ended_trials(&self) -> Vec<u32> { unimplemented!() }
    /// Appends to the run's own events (outside of trials).
    pub fn event(&mut self, _event: &Event) -> Result<(), WriteError> { unimplemented!() }
    /// Begins a trial: what an earlier, unfinished try left is moved aside.
    pub fn begin_trial(&mut self, _trial: &TrialPlan, _variant: &str) -> Result<TrialWriter, WriteError> { unimplemented!() }
    /// The run's folder.
    pub fn folder(&self) -> &Path { unimplemented!() }
}

impl TrialWriter {
    /// Appends an event.
    pub fn event(&mut self, _event: &Event) -> Result<(), WriteError> { unimplemented!() }
    /// Appends a second's readings.
    pub fn readings(&mut self, _at_ns: u64, _values: &BTreeMap<String, f64>) -> Result<(), WriteError> { unimplemented!() }
    /// Appends a second of load.
    pub fn interval(&mut self, _interval: &IntervalRecord<'_>) -> Result<(), WriteError> { unimplemented!() }
    /// Compresses the trial's files and writes its summary, last.
    pub fn finish(self, _summary: &TrialSummary) -> Result<(), WriteError> { unimplemented!() }
    /// The trial's folder.
    pub fn folder(&self) -> &Path { unimplemented!() }
}
