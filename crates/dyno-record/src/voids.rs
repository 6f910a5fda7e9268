//! Blocks that are void: set aside as they are, listed, and measured again.
//!
//! `voids.json` in the run's folder lists them in the order in which they became void. It is written
//! before the trials' folders are moved aside (`0003-a` to `0003-a.void-1`), and says which trials they
//! were, so that a run that was killed in between can be put right: [`set_aside`] moves what is left.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::TrialSummary;
use crate::files::{WHOLE_MOST, read_bounded};
use crate::reader::{ReadError, trial_folders};
use crate::writer::{WriteError, write_whole};

const FILE: &str = "voids.json";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoidBlock {
    pub block: u32,
    pub why: Vec<String>,
    pub trials: Vec<VoidTrial>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoidTrial {
    /// Its number, which the trial that takes its place has too.
    pub number: u32,
    /// When it began, in milliseconds since 1970 UTC: what tells it from its repeat.
    pub began_unix_ms: u64,
}

/// The void blocks of a run; none where none ever was.
pub(crate) fn read_voids(folder: &Path) -> Result<Vec<VoidBlock>, ReadError> {
    let path = folder.join(FILE);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = read_bounded(&path, WHOLE_MOST).map_err(|error| ReadError::new(&path, error))?;
    serde_json::from_slice(&text)
        .map_err(|error| ReadError::new(&path, format!("the file is damaged: {error}")))
}

/// Makes these blocks void, besides those that are, and moves the folders of all void trials aside
/// that are not there yet. Returns the numbers of the trials that were moved.
pub(crate) fn set_aside(folder: &Path, new: Vec<VoidBlock>) -> Result<Vec<u32>, WriteError> {
    let mut all = read_voids(folder).map_err(|error| WriteError::new(&error.path, error.reason))?;
    if !new.is_empty() {
        all.extend(new);
        write_whole(&folder.join(FILE), &all)?;
    }
    let void: Vec<&VoidTrial> = all.iter().flat_map(|block| &block.trials).collect();
    let mut moved = Vec::new();
    for (number, trial) in trial_folders(folder) {
        if !void.iter().any(|one| one.number == number) {
            continue;
        }
        let Some(began_unix_ms) = began(&trial) else { continue };
        if !void.contains(&&VoidTrial { number, began_unix_ms }) {
            continue;
        }
        let name = trial.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let aside = (1..)
            .map(|n| trial.with_file_name(format!("{name}.void-{n}")))
            .find(|path| !path.exists())
            .expect("there is a number that is not taken");
        fs::rename(&trial, &aside).map_err(|error| WriteError::io(&trial, &error))?;
        moved.push(number);
    }
    Ok(moved)
}

/// When the ended trial in this folder began; none where it has not ended.
fn began(trial: &Path) -> Option<u64> {
    let text = read_bounded(&trial.join("summary.json"), WHOLE_MOST).ok()?;
    Some(serde_json::from_slice::<TrialSummary>(&text).ok()?.began_unix_ms)
}
