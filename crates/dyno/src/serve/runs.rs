//! The runs of a folder.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use dyno_record::{Manifest, is_being_written, read_bounded, read_manifest, trial_folders};
use serde_json::Value;

/// The largest findings.json that is read, in bytes.
const FINDINGS_MOST: u64 = 64 << 20;

/// Folders within folders that are searched.
const DEPTH: usize = 4;

/// A run that was found.
pub(crate) struct RunEntry {
    /// Path of its folder below the served one: its name in requests.
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    /// Its manifest, or why that cannot be read.
    pub(crate) manifest: Result<Manifest, String>,
    /// Whether a Dyno is working on it: whether its lock is held.
    pub(crate) is_running: bool,
    /// When each of its trials that have ended did so, rising, milliseconds since 1970 UTC.
    pub(crate) ended_unix_ms: Vec<u64>,
    /// Trials that have ended.
    pub(crate) ended: usize,
    /// The folder of the trial that is running, or was when the run stopped.
    pub(crate) open_trial: Option<PathBuf>,
    /// When anything was last written to it, milliseconds since 1970 UTC.
    pub(crate) changed_unix_ms: u64,
    /// The answer in a sentence, if a report was made.
    pub(crate) headline: Option<String>,
    /// Trials of the plan that were not needed, according to a report.
    unneeded: usize,
}

impl RunEntry {
    /// Trials of the plan that are needed.
    pub(crate) fn planned(&self) -> usize {
        let all = self.manifest.as_ref().map_or(0, |manifest| manifest.trials.len());
        all.saturating_sub(self.unneeded)
    }
}

impl RunEntry {
    /// How long the trials that are missing will take, by those that have ended, in milliseconds;
    /// none if no process works on it, or too little is known.
    pub(crate) fn left_ms(&self, now_unix_ms: u64) -> Option<u64> {
        let left = self.planned().checked_sub(self.ended).filter(|left| *left > 0)? as u64;
        let last = *self.ended_unix_ms.last().filter(|_| self.is_running)?;
        let each = match self.ended_unix_ms.as_slice() {
            [only] => only.checked_sub(self.manifest.as_ref().ok()?.created_unix_ms)?,
            [first, .., last] => (last - first) / (self.ended_unix_ms.len() as u64 - 1),
            [] => return None,
        };
        Some((each * left).saturating_sub(now_unix_ms.saturating_sub(last)))
    }
}

/// The contents of a folder.
#[derive(Default)]
pub(crate) struct RunList {
    /// The runs, the youngest first.
    pub(crate) runs: Vec<RunEntry>,
    /// What was skipped: its path below the folder, and why.
    pub(crate) skipped: Vec<(String, &'static str)>,
}

/// Finds all runs below a folder. Links are not followed: what they point at may lie anywhere.
pub(crate) fn find_all(folder: &Path) -> RunList {
    let mut found = RunList::default();
    search(folder, folder, DEPTH, &mut found);
    found.runs.sort_by(|a, b| began(b).cmp(&began(a)).then(a.name.cmp(&b.name)));
    found
}

/// The run in this very folder, if it is one.
pub(crate) fn only(folder: &Path) -> Option<RunEntry> {
    is_file(&folder.join("manifest.json")).then(|| entry(name(folder, folder), folder))
}

fn began(run: &RunEntry) -> u64 {
    run.manifest.as_ref().map_or(0, |manifest| manifest.created_unix_ms)
}

/// The name of something below a folder: its path from there; for the folder itself, its own name.
/// (A browser would resolve `.`.)
fn name(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    if below.as_os_str().is_empty() {
        let own = path.file_name().unwrap_or(path.as_os_str());
        return own.to_string_lossy().into_owned();
    }
    below.to_string_lossy().into_owned()
}

fn search(root: &Path, folder: &Path, depth: usize, found: &mut RunList) {
    if std::fs::symlink_metadata(folder.join("manifest.json")).is_ok() {
        found.runs.push(entry(name(root, folder), folder));
        return;
    }
    let Ok(entries) = std::fs::read_dir(folder) else {
        found.skipped.push((name(root, folder), "it cannot be read"));
        return;
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(Result::ok).map(|e| e.path()).collect();
    paths.sort();
    for path in paths {
        let Ok(facts) = std::fs::symlink_metadata(&path) else { continue };
        match () {
            () if facts.is_symlink() && path.is_dir() => {
                found.skipped.push((
                    name(root, &path),
                    "it is a symbolic link: serve the folder it points to",
                ));
            }
            () if facts.is_dir() && depth > 0 => search(root, &path, depth - 1, found),
            () if facts.is_dir() => {
                found.skipped.push((
                    name(root, &path),
                    "it is nested too deeply: serve a folder closer to it",
                ));
            }
            () => {}
        }
    }
}

fn entry(name: String, folder: &Path) -> RunEntry {
    let trials: Vec<PathBuf> = trial_folders(folder).into_iter().map(|(_, path)| path).collect();
    let summary = |trial: &PathBuf| trial.join("summary.json");
    let has_ended = |trial: &&PathBuf| is_file(&summary(trial));
    let open_trial = trials.iter().rev().find(|trial| !has_ended(trial)).cloned();
    let files = ["manifest.json", "events.jsonl", "findings.json"].map(|file| folder.join(file));
    let of_trials = trials.iter().flat_map(|trial| {
        ["summary.json", "intervals.hlog", "events.jsonl"].map(|file| trial.join(file))
    });
    let mut ended_unix_ms: Vec<u64> =
        trials.iter().filter(has_ended).map(|trial| changed(&summary(trial))).collect();
    ended_unix_ms.sort_unstable();
    let (headline, unneeded) = findings(&folder.join("findings.json")).unwrap_or_default();
    RunEntry {
        name,
        manifest: read_manifest(folder).map_err(|error| error.to_string()),
        is_running: is_being_written(folder),
        ended: ended_unix_ms.len(),
        ended_unix_ms,
        open_trial,
        changed_unix_ms: files.into_iter().chain(of_trials).map(|f| changed(&f)).max().unwrap_or(0),
        headline,
        unneeded,
        folder: folder.to_owned(),
    }
}

fn is_file(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|facts| facts.is_file())
}

/// When a file was last written, milliseconds since 1970 UTC; 0 if it is not there.
fn changed(path: &Path) -> u64 {
    let time = std::fs::symlink_metadata(path).and_then(|meta| meta.modified());
    let since = time.ok().and_then(|t| t.duration_since(SystemTime::UNIX_EPOCH).ok());
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// The answer in a sentence, and how many trials were not needed.
fn findings(path: &Path) -> Option<(Option<String>, usize)> {
    let findings: Value = serde_json::from_slice(&read_bounded(path, FINDINGS_MOST).ok()?).ok()?;
    let is_unneeded = |trial: &&Value| trial["state"] == "not needed";
    let unneeded =
        findings["trials"].as_array().map_or(0, |trials| trials.iter().filter(is_unneeded).count());
    Some((findings["answer"]["headline"].as_str().map(str::to_owned), unneeded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_skipped_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("1/2/3/4/5");
        std::fs::create_dir_all(&deep).unwrap();
        let run = folder.path().join("1/run");
        std::fs::create_dir(&run).unwrap();
        std::fs::write(run.join("manifest.json"), "{}").unwrap();
        std::os::unix::fs::symlink(&run, folder.path().join("link")).unwrap();
        let found = find_all(folder.path());
        let names: Vec<&str> = found.runs.iter().map(|run| run.name.as_str()).collect();
        assert_eq!(names, ["1/run"]);
        let skipped: Vec<&str> = found.skipped.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(skipped, ["1/2/3/4/5", "link"]);
        // A run's own folder is called by its name.
        assert_eq!(find_all(&run).runs[0].name, "run");
        assert!(!found.runs[0].is_running && found.runs[0].manifest.is_err());
    }

    #[test]
    fn the_time_left_follows_from_the_trials_that_have_ended() {
        let check = |ended: &[u64], is_running: bool, now: u64, expected: Option<u64>| {
            let trial = |number: u32| serde_json::json!({"number": number, "variant": 0, "repetition": 1, "block": 1});
            let manifest = serde_json::json!({
                "format": 1, "dyno": "0.1.0", "title": "x", "fingerprint": "2-", "seed": 1,
                "created_unix_ms": 1000, "threshold": 0.03, "order": "interleaved",
                "variants": [], "steps": [], "trials": (1..=5).map(trial).collect::<Vec<_>>(),
                "study_source": "",
                "environment": {"machine": "m", "cpus": 1, "memory_bytes": 1, "facts": {}},
            });
            let run = RunEntry {
                name: String::new(),
                folder: PathBuf::new(),
                manifest: Ok(serde_json::from_value(manifest).unwrap()),
                is_running,
                ended: ended.len(),
                ended_unix_ms: ended.to_vec(),
                open_trial: None,
                changed_unix_ms: 0,
                headline: None,
                unneeded: 0,
            };
            assert_eq!(run.left_ms(now), expected, "{ended:?}");
        };
        check(&[2000], true, 2500, Some(3500));
        check(&[2000, 4000, 6000], true, 6500, Some(3500));
        check(&[2000, 4000, 6000], false, 6500, None);
        check(&[2000, 4000, 6000], true, 99_000, Some(0));
        check(&[], true, 2500, None);
        check(&[1, 2, 3, 4, 5], true, 9, None);
    }
}
