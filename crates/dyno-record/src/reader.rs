//! Reads a run directory.
use std::path::{Path, PathBuf};
use crate::{Manifest, TrialSummary};

/// A run as analysis sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Where it was read from.
    pub folder: PathBuf,
    /// What it set out to do.
    pub manifest: Manifest,
    /// The trials that have ended, by number.
    pub trials: Vec<TrialSummary>,
}

/// A record that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {reason}", path.display())]
pub struct ReadError {
    /// The file or folder.
    pub path: PathBuf,
    /// Why, and what to do.
    pub reason: String,
}

/// Reads a run: manifest and the summaries of ended trials.
pub fn read_run(_folder: &Path) -> Result<Run, ReadError> { unimplemented!() }
