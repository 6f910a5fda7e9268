//! Reads a run directory.

use std::fs;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::writer::READINGS;
use crate::{FORMAT, Manifest, TrialSummary, beside};

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

impl ReadError {
    pub(crate) fn new(path: &Path, reason: impl ToString) -> ReadError {
        ReadError { path: path.to_owned(), reason: reason.to_string() }
    }
}

/// Reads a run: manifest and the summaries of ended trials.
pub fn read_run(folder: &Path) -> Result<Run, ReadError> {
    let manifest = read_manifest(folder)?;
    let mut trials = Vec::new();
    for (_, trial) in trial_folders(folder) {
        let path = trial.join("summary.json");
        if path.exists() {
            let mut summary = read_json::<TrialSummary>(&path).map_err(advise)?;
            read_readings(&mut summary, &trial)?;
            trials.push(summary);
        }
    }
    trials.sort_by_key(|trial| trial.number);
    for trial in &trials {
        check_indexes(&manifest, trial, folder)?;
    }
    Ok(Run { folder: folder.to_owned(), manifest, trials })
}

/// What to do about a summary that cannot be read.
fn advise(error: ReadError) -> ReadError {
    let advice = "without this file the trial counts as missing: remove the file to read the others, \
                  and the same `dyno run` does the trial again";
    ReadError { reason: format!("{}; {advice}", error.reason), ..error }
}

/// Puts the readings that are in the log alone into the summary.
fn read_readings(summary: &mut TrialSummary, trial: &Path) -> Result<(), ReadError> {
    let mut spans = Vec::new();
    summary.each_load(&mut |load| spans.extend(load.spans.clone()));
    if spans.is_empty() {
        return Ok(());
    }
    let mut columns = beside::columns(&trial.join(READINGS), &spans)?.into_iter();
    summary.each_load(&mut |load| {
        if load.spans.is_some() {
            load.readings = columns.next().unwrap_or_default();
        }
    });
    Ok(())
}

/// Reads the manifest alone, after a look at its version.
pub fn read_manifest(folder: &Path) -> Result<Manifest, ReadError> {
    let path = folder.join("manifest.json");
    if !path.exists() {
        let reason = "there is no manifest.json: this is not the folder of a run";
        return Err(ReadError::new(folder, reason));
    }
    let value: serde_json::Value = read_json(&path)?;
    match value.get("format").and_then(serde_json::Value::as_u64) {
        Some(format) if format > u64::from(FORMAT) => Err(ReadError::new(
            &path,
            format!(
                "the record has format {format}, and this Dyno reads formats up to {FORMAT}; use \
                 the Dyno that wrote it ({}) or a newer one",
                value.get("dyno").and_then(serde_json::Value::as_str).unwrap_or("version unknown")
            ),
        )),
        Some(_) => serde_json::from_value(value).map_err(|error| ReadError::new(&path, error)),
        None => Err(ReadError::new(&path, "it has no `format`: this is not a record of Dyno")),
    }
}

/// The trials' folders by trial number, unfinished ones that were moved aside left out.
pub(crate) fn trial_folders(folder: &Path) -> Vec<(u32, PathBuf)> {
    let Ok(entries) = fs::read_dir(folder.join("trials")) else {
        return Vec::new();
    };
    let mut folders: Vec<(u32, PathBuf)> = entries
        .filter_map(Result::ok)
        .filter(|entry| !entry.file_name().to_string_lossy().contains(".unfinished-"))
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            Some((name.split('-').next()?.parse().ok()?, entry.path()))
        })
        .collect();
    folders.sort();
    folders
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, ReadError> {
    let text = fs::read(path).map_err(|error| ReadError::new(path, error))?;
    serde_json::from_slice(&text)
        .map_err(|error| ReadError::new(path, format!("the file is damaged: {error}")))
}

/// A record may have been edited by hand or cut short: indexes are checked once, here.
fn check_indexes(
    manifest: &Manifest,
    trial: &TrialSummary,
    folder: &Path,
) -> Result<(), ReadError> {
    let damaged = |what: &str| {
        ReadError::new(folder, format!("the summary of trial {} is damaged: {what}", trial.number))
    };
    if trial.variant >= manifest.variants.len() {
        return Err(damaged("its variant is not in the manifest"));
    }
    for step in &trial.steps {
        if step.step >= manifest.steps.len() {
            return Err(damaged("a step is not in the manifest"));
        }
        let n = step.intervals.start_s.len();
        if step.spans.as_ref().is_some_and(|spans| spans.len() != n) {
            return Err(damaged("its intervals are not those of its columns"));
        }
        let columns = &step.intervals;
        let all = [
            &columns.throughput,
            &columns.errors,
            &columns.missed,
            &columns.p50_us,
            &columns.p95_us,
            &columns.p99_us,
            &columns.max_us,
            &columns.lag_p99_us,
        ];
        if all.iter().any(|column| column.len() != n)
            || step.readings.values().any(|column| column.len() != n)
        {
            return Err(damaged("its columns differ in length"));
        }
        let histograms = step.kinds.iter().flat_map(|kind| [&kind.response, &kind.service]);
        if histograms.chain([&step.lag]).any(|histogram| histogram.decode().is_none()) {
            return Err(damaged("a histogram cannot be decoded"));
        }
    }
    Ok(())
}
