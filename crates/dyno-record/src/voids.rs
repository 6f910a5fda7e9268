//! Blocks that are void: kept, listed in `voids.json`, and measured again. The list is written
//! before trial folders are moved aside (`0003-a` to `0003-a.void-1`) and identifies the trials, so
//! that [`set_aside`] can complete a run killed in between.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::TrialSummary;
use crate::error::{ReadResult, WriteError, WriteResult};
use crate::reader::{read_json, trial_folders};
use crate::writer::{SUMMARY, write_whole};

const FILE: &str = "voids.json";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoidBlock {
    pub block: u32,
    pub why: Vec<String>,
    pub trials: Vec<VoidTrial>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoidTrial {
    /// The number, which its replacement has too.
    pub number: u32,
    /// Milliseconds since 1970 UTC: distinguishes it from its replacement.
    pub began_unix_ms: u64,
}

pub(crate) fn read_voids(folder: &Path) -> ReadResult<Vec<VoidBlock>> {
    let path = folder.join(FILE);
    // A link of this name is an error, wherever it leads.
    if fs::symlink_metadata(&path).is_ok() { read_json(&path) } else { Ok(Vec::new()) }
}

/// Adds `new` to the list and moves aside the void trials not moved yet; returns their numbers.
pub(crate) fn set_aside(folder: &Path, new: Vec<VoidBlock>) -> WriteResult<Vec<u32>> {
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
            .find(|path| fs::symlink_metadata(path).is_err())
            .expect("there is a number that is not taken");
        fs::rename(&trial, &aside).map_err(|error| WriteError::io(&trial, &error))?;
        moved.push(number);
    }
    Ok(moved)
}

/// `None` if the trial has not ended.
fn began(trial: &Path) -> Option<u64> {
    Some(read_json::<TrialSummary>(&trial.join(SUMMARY)).ok()?.began_unix_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_behind_a_link_is_an_error_and_not_an_empty_list() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read_voids(folder.path()).unwrap().is_empty());
        for target in ["nowhere", "."] {
            std::os::unix::fs::symlink(target, folder.path().join(FILE)).unwrap();
            let why = read_voids(folder.path()).unwrap_err().to_string();
            assert!(why.contains("symbolic link"), "{target}: {why}");
            fs::remove_file(folder.path().join(FILE)).unwrap();
        }
    }
}
