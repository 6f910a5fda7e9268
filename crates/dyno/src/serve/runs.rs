//! The runs of a folder.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use dyno_record::{Manifest, read_manifest};
use serde_json::Value;

/// Folders within folders that are searched.
const DEPTH: usize = 4;

/// A run that was found.
pub(crate) struct RunEntry {
    /// Its folder's path below the served one: what it is asked for by.
    pub(crate) name: String,
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// What it set out to do; or why that cannot be read.
    pub(crate) manifest: Result<Manifest, String>,
    /// Trials that have ended.
    pub(crate) ended: usize,
    /// The folder of the trial that is being done, or was when the run stopped.
    pub(crate) open_trial: Option<PathBuf>,
    /// When anything was last written to it, milliseconds since 1970 UTC.
    pub(crate) changed_unix_ms: u64,
    /// The answer in a sentence, where a report was made.
    pub(crate) headline: Option<String>,
    /// Trials of the plan that were not needed, as far as a report tells.
    unneeded: usize,
}

impl RunEntry {
    /// Trials of the plan that are needed.
    pub(crate) fn planned(&self) -> usize {
        let all = self.manifest.as_ref().map_or(0, |manifest| manifest.trials.len());
        all.saturating_sub(self.unneeded)
    }
}

/// Finds all runs below a folder, the youngest first. Links are not followed: what they point at may
/// lie anywhere.
pub(crate) fn find_all(folder: &Path) -> Vec<RunEntry> {
    let mut found = Vec::new();
    search(folder, folder, DEPTH, &mut found);
    found.sort_by(|a, b| began(b).cmp(&began(a)).then(a.name.cmp(&b.name)));
    found
}

fn began(run: &RunEntry) -> u64 {
    run.manifest.as_ref().map_or(0, |manifest| manifest.created_unix_ms)
}

fn search(root: &Path, folder: &Path, depth: usize, found: &mut Vec<RunEntry>) {
    if folder.join("manifest.json").is_file() {
        let name = match folder.strip_prefix(root).ok().and_then(Path::to_str) {
            Some("") | None => ".".to_owned(),
            Some(name) => name.to_owned(),
        };
        found.push(entry(name, folder));
        return;
    }
    if depth > 0 {
        subfolders(folder).iter().for_each(|sub| search(root, sub, depth - 1, found));
    }
}

/// Folders in a folder, by name, links left out.
fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut folders: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect();
    folders.sort();
    folders
}

fn entry(name: String, folder: &Path) -> RunEntry {
    let trials: Vec<PathBuf> = subfolders(&folder.join("trials"))
        .into_iter()
        .filter(|path| !path.to_string_lossy().contains(".unfinished-"))
        .collect();
    let has_ended = |trial: &&PathBuf| trial.join("summary.json").is_file();
    let open_trial = trials.iter().rev().find(|trial| !has_ended(trial)).cloned();
    let files = ["manifest.json", "events.jsonl", "findings.json"].map(|file| folder.join(file));
    let of_trials = trials.iter().flat_map(|trial| {
        ["summary.json", "intervals.hlog", "events.jsonl"].map(|file| trial.join(file))
    });
    let (headline, unneeded) = findings(&folder.join("findings.json")).unwrap_or_default();
    RunEntry {
        name,
        manifest: read_manifest(folder).map_err(|error| error.to_string()),
        ended: trials.iter().filter(has_ended).count(),
        open_trial,
        changed_unix_ms: files.into_iter().chain(of_trials).map(|f| changed(&f)).max().unwrap_or(0),
        headline,
        unneeded,
        folder: folder.to_owned(),
    }
}

/// When a file was last written, milliseconds since 1970 UTC; 0 where it is not there.
fn changed(path: &Path) -> u64 {
    let time = std::fs::metadata(path).and_then(|meta| meta.modified());
    let since = time.ok().and_then(|t| t.duration_since(SystemTime::UNIX_EPOCH).ok());
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// The answer in a sentence, and how many trials were not needed.
fn findings(path: &Path) -> Option<(Option<String>, usize)> {
    let findings: Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    let is_unneeded = |trial: &&Value| trial["state"] == "not needed";
    let unneeded =
        findings["trials"].as_array().map_or(0, |trials| trials.iter().filter(is_unneeded).count());
    Some((findings["answer"]["headline"].as_str().map(str::to_owned), unneeded))
}

/// Whether a report is there that is younger than the last trial that ended.
pub(crate) fn is_current(report: &Path, run: &RunEntry) -> bool {
    let made = changed(report);
    let summaries = subfolders(&run.folder.join("trials"));
    made > 0 && summaries.iter().all(|trial| changed(&trial.join("summary.json")) <= made)
}
