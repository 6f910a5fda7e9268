//! The runs of a folder; unchanged runs are not read again.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use dyno_record::{
    Event, EventKind, Manifest, TrialPlan, is_being_written, read_bounded, read_manifest,
    trial_folders,
};
use dyno_units::locked;

/// In bytes.
const EVENTS_MOST: u64 = 64 << 20;

/// Levels of folders searched.
const DEPTH: usize = 4;

pub(crate) struct RunEntry {
    /// Path below the served folder: the name in requests.
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) about: Result<About, String>,
    /// A Dyno process holds its lock.
    pub(crate) is_running: bool,
    /// When its trials ended, ascending, in milliseconds since 1970 UTC.
    pub(crate) ended_unix_ms: Vec<u64>,
    /// The trial that is running, or was when the run stopped.
    pub(crate) open_trial: Option<PathBuf>,
    /// The answer in a sentence, from when this process has made a report of the record. A stored report may say
    /// anything.
    pub(crate) headline: OnceLock<String>,
    /// Planned trials that were not needed.
    unneeded: usize,
}

/// The parts of a manifest that pages show; the whole may be a thousand times as large.
#[derive(Default)]
pub(crate) struct About {
    pub(crate) title: String,
    pub(crate) created_unix_ms: u64,
    pub(crate) machine: String,
    pub(crate) variants: Vec<String>,
    pub(crate) trials: Vec<TrialPlan>,
}

impl From<Manifest> for About {
    fn from(manifest: Manifest) -> About {
        About {
            title: manifest.title,
            created_unix_ms: manifest.created_unix_ms,
            machine: manifest.environment.machine,
            variants: manifest.variants.into_iter().map(|variant| variant.name).collect(),
            trials: manifest.trials,
        }
    }
}

impl RunEntry {
    pub(crate) fn ended(&self) -> usize {
        self.ended_unix_ms.len()
    }

    /// Without trials that are not needed.
    pub(crate) fn planned(&self) -> usize {
        let all = self.about.as_ref().map_or(0, |about| about.trials.len());
        all.saturating_sub(self.unneeded)
    }

    /// Time for the missing trials, estimated from those that ended, in milliseconds; none if no
    /// process runs them, or too little is known.
    pub(crate) fn left_ms(&self, now_unix_ms: u64) -> Option<u64> {
        let left = self.planned().checked_sub(self.ended()).filter(|left| *left > 0)? as u64;
        let last = *self.ended_unix_ms.last().filter(|_| self.is_running)?;
        let each = match self.ended_unix_ms.as_slice() {
            [only] => only.checked_sub(self.about.as_ref().ok()?.created_unix_ms)?,
            [first, .., last] => (last - first) / (self.ended_unix_ms.len() as u64 - 1),
            [] => return None,
        };
        Some(each.saturating_mul(left).saturating_sub(now_unix_ms.saturating_sub(last)))
    }
}

#[derive(Default)]
pub(crate) struct RunList {
    /// The youngest first.
    pub(crate) runs: Vec<Arc<RunEntry>>,
    /// Path below the folder, and the reason.
    pub(crate) skipped: Vec<(String, &'static str)>,
}

/// Links are not followed: their targets may lie anywhere.
pub(crate) struct Runs {
    root: PathBuf,
    known: Mutex<HashMap<PathBuf, Known>>,
    #[cfg(test)]
    n_read: std::sync::atomic::AtomicUsize,
}

/// With the state of its files just before.
#[derive(Clone)]
struct Known {
    of_run: [Facts; 4],
    trials: Arc<[PathBuf]>,
    of_trials: Vec<Facts>,
    entry: Arc<RunEntry>,
}

/// Modification time (seconds and nanoseconds), size, inode; none if the file does not exist.
type Facts = Option<(i64, i64, u64, u64)>;

impl Runs {
    pub(crate) fn new(root: PathBuf) -> Runs {
        Runs {
            root,
            known: Mutex::default(),
            #[cfg(test)]
            n_read: Default::default(),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn all(&self) -> RunList {
        let mut found = RunList::default();
        self.search(&self.root, DEPTH, &mut found);
        let there: HashSet<&Path> = found.runs.iter().map(|run| run.folder.as_path()).collect();
        locked(&self.known).retain(|folder, _| there.contains(folder.as_path()));
        found.runs.sort_by(|a, b| began(b).cmp(&began(a)).then(a.name.cmp(&b.name)));
        found
    }

    /// Looks only at the place that the name stands for.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<RunEntry>> {
        self.only(&place(&self.root, name)?)
    }

    /// Only this folder itself.
    pub(crate) fn only(&self, folder: &Path) -> Option<Arc<RunEntry>> {
        let known = locked(&self.known).get(folder).cloned();
        if let Some(known) = known.filter(|known| known.is_current(folder)) {
            return Some(known.entry);
        }
        if !is_run(folder) {
            locked(&self.known).remove(folder);
            return None;
        }
        #[cfg(test)]
        self.n_read.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let read = Known::read(&self.root, folder);
        let mut all = locked(&self.known);
        // Another thread has read the same: a report made from that entry is as good.
        if let Some(other) = all.get(folder).filter(|other| other.is_like(&read)) {
            return Some(Arc::clone(&other.entry));
        }
        let entry = Arc::clone(&read.entry);
        all.insert(folder.to_owned(), read);
        Some(entry)
    }

    fn search(&self, folder: &Path, depth: usize, found: &mut RunList) {
        if let Some(run) = self.only(folder) {
            found.runs.push(run);
            return;
        }
        let Ok(entries) = std::fs::read_dir(folder) else {
            found.skipped.push((name(&self.root, folder), "it cannot be read"));
            return;
        };
        let mut entries: Vec<_> = entries.filter_map(Result::ok).collect();
        entries.sort_by_cached_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let (Ok(kind), path) = (entry.file_type(), entry.path()) else { continue };
            let why = match () {
                () if kind.is_symlink() && path.is_dir() => {
                    "it is a symbolic link: serve the folder it points to"
                }
                () if kind.is_dir() && depth == 0 => {
                    "it is nested too deeply: serve a folder closer to it"
                }
                () if kind.is_dir() => {
                    self.search(&path, depth - 1, found);
                    continue;
                }
                () => continue,
            };
            found.skipped.push((name(&self.root, &path), why));
        }
    }
}

impl Known {
    /// The files' state is taken first, so that a change meanwhile is seen the next time.
    fn read(root: &Path, folder: &Path) -> Known {
        let of_run = of_run(folder);
        let trials: Arc<[PathBuf]> =
            trial_folders(folder).into_iter().map(|(_, path)| path).collect();
        let of_trials = of_trials(&trials);
        let entry = Arc::new(entry(name(root, folder), folder, &trials));
        Known { of_run, trials, of_trials, entry }
    }

    /// A Dyno that begins writes its lock; that it has ended shows only in the free lock.
    fn is_current(&self, folder: &Path) -> bool {
        self.of_run == of_run(folder)
            && self.of_trials == of_trials(&self.trials)
            && (!self.entry.is_running || is_being_written(folder))
    }

    fn is_like(&self, other: &Known) -> bool {
        (self.of_run, &self.of_trials, self.entry.is_running)
            == (other.of_run, &other.of_trials, other.entry.is_running)
    }
}

/// The files that change with a run.
fn of_run(folder: &Path) -> [Facts; 4] {
    ["manifest.json", "events.jsonl", "lock", "trials"].map(|file| facts(&folder.join(file)))
}

/// Of an ended trial, its summary; else the files that grow.
fn of_trials(trials: &[PathBuf]) -> Vec<Facts> {
    let mut all = Vec::with_capacity(trials.len());
    for trial in trials {
        let summary = facts(&trial.join("summary.json"));
        all.push(summary);
        if summary.is_none() {
            all.extend(["intervals.hlog", "events.jsonl"].map(|file| facts(&trial.join(file))));
        }
    }
    all
}

fn facts(path: &Path) -> Facts {
    let facts = std::fs::symlink_metadata(path).ok()?;
    Some((facts.mtime(), facts.mtime_nsec(), facts.size(), facts.ino()))
}

/// None unless the list would find it: below the served folder, not in another run, behind no link.
fn place(root: &Path, name: &str) -> Option<PathBuf> {
    if is_run(root) {
        return (name == self::name(root, root)).then(|| root.to_owned());
    }
    let is_plain = |part: &str| {
        matches!(Path::new(part).components().collect::<Vec<_>>()[..], [Component::Normal(_)])
    };
    let mut folder = root.to_owned();
    for (depth, part) in name.split('/').enumerate() {
        if depth == DEPTH || !is_plain(part) || depth > 0 && is_run(&folder) {
            return None;
        }
        folder = child(&folder, part)?;
        // A missing folder is no run anyway.
        if std::fs::symlink_metadata(&folder).is_ok_and(|facts| !facts.is_dir()) {
            return None;
        }
    }
    Some(folder)
}

/// Names that are not UTF-8 are shown with replacement characters, so they are searched for.
fn child(folder: &Path, name: &str) -> Option<PathBuf> {
    if !name.contains(char::REPLACEMENT_CHARACTER) {
        return Some(folder.join(name));
    }
    let mut entries = std::fs::read_dir(folder).ok()?.filter_map(Result::ok);
    Some(entries.find(|entry| entry.file_name().to_string_lossy() == name)?.path())
}

fn is_run(folder: &Path) -> bool {
    std::fs::symlink_metadata(folder.join("manifest.json")).is_ok()
}

fn began(run: &RunEntry) -> u64 {
    run.about.as_ref().map_or(0, |about| about.created_unix_ms)
}

/// The path below `root`; for `root` itself its own name, as a browser would resolve `.`.
fn name(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    if below.as_os_str().is_empty() {
        let own = path.file_name().unwrap_or(path.as_os_str());
        return own.to_string_lossy().into_owned();
    }
    below.to_string_lossy().into_owned()
}

fn entry(name: String, folder: &Path, trials: &[PathBuf]) -> RunEntry {
    let ended_at = |trial: &PathBuf| {
        let facts = std::fs::symlink_metadata(trial.join("summary.json")).ok();
        facts.filter(std::fs::Metadata::is_file).map(|facts| unix_millis(&facts))
    };
    let at: Vec<Option<u64>> = trials.iter().map(ended_at).collect();
    let both = || trials.iter().zip(&at);
    let open_trial = both().rev().find(|(_, at)| at.is_none()).map(|(trial, _)| trial.clone());
    let ended: HashSet<u32> =
        both().filter(|(_, at)| at.is_some()).filter_map(|(trial, _)| number_of(trial)).collect();
    let mut ended_unix_ms: Vec<u64> = at.iter().flatten().copied().collect();
    ended_unix_ms.sort_unstable();
    let events = read_bounded(&folder.join("events.jsonl"), EVENTS_MOST).unwrap_or_default();
    let about = read_manifest(folder).map(About::from).map_err(|error| error.to_string());
    let plan = about.as_ref().map_or(&[][..], |about| about.trials.as_slice());
    RunEntry {
        unneeded: unneeded(plan, &String::from_utf8_lossy(&events), &ended),
        name,
        about,
        is_running: is_being_written(folder),
        ended_unix_ms,
        open_trial,
        headline: OnceLock::new(),
        folder: folder.to_owned(),
    }
}

/// Of the modification, in milliseconds since 1970 UTC.
fn unix_millis(facts: &std::fs::Metadata) -> u64 {
    let ms = i128::from(facts.mtime()) * 1000 + i128::from(facts.mtime_nsec() / 1_000_000);
    u64::try_from(ms).unwrap_or(0)
}

fn number_of(trial: &Path) -> Option<u32> {
    trial.file_name()?.to_str()?.split('-').next()?.parse().ok()
}

/// Planned trials that the run said it skips, as their variants were settled, and that have not ended since.
fn unneeded(plan: &[TrialPlan], events: &str, ended: &HashSet<u32>) -> usize {
    let skipped = |line: &str| match serde_json::from_str::<Event>(line).ok()?.kind {
        EventKind::TrialSkipped { trial, .. } => Some(trial),
        _ => None,
    };
    let named = events.lines().filter(|line| line.contains("trial_skipped"));
    let skipped: HashSet<u32> = named.filter_map(skipped).collect();
    let numbers = plan.iter().map(|trial| trial.number);
    numbers.filter(|number| skipped.contains(number) && !ended.contains(number)).count()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    /// A run with only a manifest.
    fn make(folder: &Path, title: &str) {
        std::fs::create_dir_all(folder).unwrap();
        let manifest = serde_json::json!({
            "format": 1, "dyno": "0.1.0", "title": title, "fingerprint": "2-", "seed": 1,
            "created_unix_ms": 1000, "threshold": 0.03, "order": "interleaved",
            "variants": [], "steps": [], "trials": [], "study_source": "",
            "environment": {"machine": "m", "cpus": 1, "memory_bytes": 1, "facts": {}},
        });
        std::fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
    }

    fn title(run: &RunEntry) -> &str {
        run.about.as_ref().map_or("", |about| about.title.as_str())
    }

    #[test]
    fn what_is_skipped_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("1/2/3/4/5");
        std::fs::create_dir_all(&deep).unwrap();
        let run = folder.path().join("1/run");
        std::fs::create_dir(&run).unwrap();
        std::fs::write(run.join("manifest.json"), "{}").unwrap();
        std::os::unix::fs::symlink(&run, folder.path().join("link")).unwrap();
        let found = Runs::new(folder.path().to_owned()).all();
        let names: Vec<&str> = found.runs.iter().map(|run| run.name.as_str()).collect();
        assert_eq!(names, ["1/run"]);
        let skipped: Vec<&str> = found.skipped.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(skipped, ["1/2/3/4/5", "link"]);
        // A run's own folder has its own name.
        let own = Runs::new(run);
        assert_eq!(own.all().runs[0].name, "run");
        assert!(own.find("run").is_some() && own.find("").is_none());
        assert!(!found.runs[0].is_running && found.runs[0].about.is_err());
    }

    #[test]
    fn a_name_leads_to_what_the_list_has_and_not_out_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        make(&path("outside"), "outside");
        for run in ["served/a", "served/1/2/3/b c", "served/a/inner", "served/1/2/3/4/deep"] {
            make(&path(run), run);
        }
        let odd = std::ffi::OsStr::from_bytes(b"odd \xff");
        make(&path("served").join(odd), "odd");
        std::os::unix::fs::symlink(path("outside"), path("served/link")).unwrap();
        std::os::unix::fs::symlink(path("served/1"), path("served/linked")).unwrap();
        let runs = Runs::new(path("served"));
        let all = runs.all().runs;
        assert_eq!(all.len(), 3);
        for run in &all {
            let found = runs.find(&run.name).expect(&run.name);
            assert!(Arc::ptr_eq(run, &found), "{}", run.name);
            // Also before anything was listed.
            let found = Runs::new(path("served")).find(&run.name).expect(&run.name);
            assert_eq!(found.folder, run.folder);
        }
        let absolute = path("outside").to_string_lossy().into_owned();
        let others = [
            "",
            ".",
            "..",
            "../outside",
            "a/../../outside",
            "a/..",
            "./a",
            "a/",
            "/a",
            "a//inner",
            "a/inner",
            "1",
            "1/2/3/4/deep",
            "link",
            "linked/2/3/b c",
            "a\0",
            "none",
            "odd \u{fffd}\u{fffd}",
            &absolute,
        ];
        for name in others {
            assert!(runs.find(name).is_none(), "{name:?}");
        }
    }

    #[test]
    fn a_run_is_read_again_if_it_has_changed_and_only_then() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        make(&run, "first");
        let runs = Runs::new(folder.path().to_owned());
        let mut last = runs.find("run").unwrap();
        assert_eq!(title(&last), "first");
        assert!(Arc::ptr_eq(&last, &runs.find("run").unwrap()));
        assert!(Arc::ptr_eq(&last, &runs.all().runs[0]));
        let n_read = || runs.n_read.load(std::sync::atomic::Ordering::SeqCst);
        assert_eq!(n_read(), 1);
        // Each change is seen at once, by the list and by name, and then cached.
        let mut check = |what: &str, change: &dyn Fn(), is_seen: &dyn Fn(&RunEntry) -> bool| {
            change();
            let before = n_read();
            let found = runs.find("run").expect(what);
            assert!(is_seen(&found) && !Arc::ptr_eq(&last, &found), "{what}");
            assert!(Arc::ptr_eq(&found, &runs.all().runs[0]), "{what}");
            assert_eq!(n_read(), before + 1, "{what}");
            last = found;
        };
        let write = |file: &str, text: &str| std::fs::write(run.join(file), text).unwrap();
        check("manifest", &|| make(&run, "the second"), &|run| title(run) == "the second");
        check("events", &|| write("events.jsonl", "{}\n"), &|run| run.unneeded == 0);
        let begin = || std::fs::create_dir_all(run.join("trials/0001-a")).unwrap();
        check("a trial begins", &begin, &|run| run.open_trial.is_some());
        let log = || write("trials/0001-a/events.jsonl", "{}\n");
        check("it goes on", &log, &|run| run.open_trial.is_some());
        check("it ends", &|| write("trials/0001-a/summary.json", "{}"), &|run| run.ended() == 1);
        let forget = || std::fs::remove_file(run.join("trials/0001-a/summary.json")).unwrap();
        check("its summary is removed", &forget, &|run| run.ended() == 0);
        // Giving up a lock does not write it.
        let lock = std::cell::RefCell::new(None);
        let take = || {
            write("lock", "1");
            let file = std::fs::File::open(run.join("lock")).unwrap();
            file.try_lock().unwrap();
            *lock.borrow_mut() = Some(file);
        };
        check("a Dyno takes the lock", &take, &|run| run.is_running);
        check("it ends", &|| drop(lock.take()), &|run| !run.is_running);
        std::fs::remove_dir_all(&run).unwrap();
        assert!(runs.find("run").is_none() && locked(&runs.known).is_empty());
        // A removed run leaves the cache as well.
        make(&run, "third");
        assert_eq!(runs.all().runs.len(), 1);
        std::fs::remove_dir_all(&run).unwrap();
        assert!(runs.all().runs.is_empty() && locked(&runs.known).is_empty());
    }

    #[test]
    fn what_a_run_skips_is_not_needed() {
        let check = |lines: &[&str], ended: &[u32], expected: usize| {
            let trial = |number: u32| TrialPlan { number, variant: 0, repetition: 1, block: 1 };
            let plan: Vec<TrialPlan> = (1..=3).map(trial).collect();
            let found = unneeded(&plan, &lines.join("\n"), &ended.iter().copied().collect());
            assert_eq!(found, expected, "{lines:?}");
        };
        let skipped = |number: u32| {
            format!(
                r#"{{"at_ns":1,"unix_ms":1,"event":"trial_skipped","trial":{number},"variant":"a","repetition":1,"why":"w"}}"#
            )
        };
        let [second, third, unknown] = [2, 3, 9].map(skipped);
        check(&[], &[1], 0);
        check(&[&second, "{}", "trial_skipped", &third], &[1], 2);
        // A run that was continued says it again.
        check(&[&second, &second, &unknown], &[1], 1);
        // Or needs it after all.
        check(&[&second, &third], &[1, 2], 1);
    }

    #[test]
    fn a_stored_report_says_nothing_about_a_run() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        make(&run, "a run");
        let findings = r#"{"answer":{"headline":"a wins"},"trials":[{"state":"not needed"}]}"#;
        std::fs::write(run.join("findings.json"), findings).unwrap();
        let found = Runs::new(folder.path().to_owned()).find("run").unwrap();
        assert!(found.headline.get().is_none() && found.unneeded == 0);
    }

    #[test]
    fn the_time_left_follows_from_the_trials_that_have_ended() {
        let check = |ended: &[u64], is_running: bool, now: u64, expected: Option<u64>| {
            let trial = |number: u32| TrialPlan { number, variant: 0, repetition: 1, block: 1 };
            let trials = (1..=5).map(trial).collect();
            let run = RunEntry {
                name: String::new(),
                folder: PathBuf::new(),
                about: Ok(About { created_unix_ms: 1000, trials, ..About::default() }),
                is_running,
                ended_unix_ms: ended.to_vec(),
                open_trial: None,
                headline: OnceLock::new(),
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
        // Files may have any time.
        check(&[u64::MAX], true, u64::MAX, Some(u64::MAX));
        check(&[0, u64::MAX], true, 9, Some(u64::MAX));
    }
}
