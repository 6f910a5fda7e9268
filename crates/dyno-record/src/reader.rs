//! Reads a run directory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use dyno_units::Registry;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::columns::{VALUES_MOST, take, values_most, within};
use crate::consistency::check_trial;
use crate::error::{ReadError, ReadResult};
use crate::files::{Digest, WHOLE_MOST, read_bounded};
use crate::voids::{VoidBlock, read_voids};
use crate::writer::{CHECKSUMS, EVENTS, MANIFEST, READINGS, SUMMARY};
use crate::{FORMAT, Manifest, TrialOutcome, TrialSummary, beside};

#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub folder: PathBuf,
    pub manifest: Manifest,
    /// Trials that have ended, by number.
    pub trials: Vec<TrialSummary>,
    /// In the order of becoming void; `trials` has their replacements instead.
    pub voids: Vec<VoidBlock>,
}

impl Run {
    /// Fails if a trial contradicts the manifest or itself.
    pub fn check(&self) -> ReadResult {
        let plan = &self.manifest.trials;
        if plan.iter().any(|trial| trial.block.max(trial.repetition) > PLACE_MOST) {
            let why = format!("the manifest has a block or a repetition above {PLACE_MOST}");
            return Err(ReadError::new(&self.folder, why));
        }
        for trial in &self.trials {
            check_indexes(&self.manifest, trial, &self.folder)?;
            check_trial(&self.manifest, trial).map_err(|why| {
                let number = trial.number;
                let what = format!("the record of trial {number} contradicts itself: {why}");
                advise(ReadError::new(&self.folder, what))
            })?;
        }
        Ok(())
    }

    /// Completes the meanings of readings in older records.
    pub fn explain_readings(&mut self, registry: &Registry) {
        for trial in &mut self.trials {
            let of_steps = trial.steps.iter().flat_map(|step| step.readings.keys());
            let of_run_off = trial.run_off.iter().flat_map(|run_off| run_off.readings.keys());
            let is_whole = |name: &String| {
                trial.meanings.get(name).is_some_and(|reading| !reading.id.is_empty())
            };
            let names: BTreeSet<&String> =
                of_steps.chain(of_run_off).filter(|name| !is_whole(name)).collect();
            let found = registry.meanings(names.into_iter());
            trial.meanings.extend(found);
        }
    }
}

/// Manifest and summaries of ended trials. Fails if a file cannot be read, does not have the
/// checksum noted when its trial ended, or contradicts another.
pub fn read_run(folder: &Path) -> ReadResult<Run> {
    let manifest = read_manifest(folder)?;
    let folders = trial_folders(folder);
    let trials = within(values_most(n_bytes(&folders)), || {
        let trials = read_trials(folders)?;
        take_tables(&manifest, &trials).map_err(|why| ReadError::new(folder, why))?;
        Ok(trials)
    })?;
    let run = Run { folder: folder.to_owned(), manifest, trials, voids: Vec::new() };
    run.check()?;
    Ok(Run { voids: read_voids(folder)?, ..run })
}

/// The room of a second of a kind, in values: tables have rows of it.
const VALUES_OF_KIND: usize = 8;

/// Bytes of a name that take the room of one value.
pub(crate) const NAME_BYTES_OF_VALUE: usize = 16;

/// Limits what tables repeat in each row: a few kilobytes of long names, or of kinds beside many
/// seconds, could become gigabytes.
fn take_tables(manifest: &Manifest, trials: &[TrialSummary]) -> Result<(), &'static str> {
    for (trial, step) in trials.iter().flat_map(|one| one.steps.iter().map(move |step| (one, step)))
    {
        let variant = manifest.variants.get(trial.variant).map_or(0, |variant| variant.name.len());
        let names = variant + manifest.steps.get(step.step).map_or(0, |step| step.name.len());
        let of_kind = |kind: &crate::KindSummary| {
            VALUES_OF_KIND + (names + kind.name.len()) / NAME_BYTES_OF_VALUE
        };
        let of_second = names / NAME_BYTES_OF_VALUE + step.kinds.iter().map(of_kind).sum::<usize>();
        if !take(of_second.saturating_mul(step.intervals.start_s.len())) {
            return Err(
                "it has more seconds of more kinds of transactions, or longer names, than any run of Dyno's",
            );
        }
    }
    Ok(())
}

/// Of what a query or a report unpacks.
pub(crate) fn n_bytes(folders: &[(u32, PathBuf)]) -> u64 {
    let names =
        [SUMMARY.to_owned(), READINGS.to_owned(), EVENTS.to_owned(), format!("{EVENTS}.gz")];
    let files = folders.iter().flat_map(|(_, trial)| names.iter().map(|name| trial.join(name)));
    let files = files.filter_map(|path| fs::symlink_metadata(path).ok());
    files.map(|facts| facts.len().min(facts.blocks().saturating_mul(512))).sum()
}

/// Takes folders and returns trials in the order of their numbers.
fn read_trials(folders: Vec<(u32, PathBuf)>) -> ReadResult<Vec<TrialSummary>> {
    let mut trials: Vec<TrialSummary> = Vec::new();
    for (number, trial) in folders {
        let path = trial.join(SUMMARY);
        // A link or a FIFO of this name is an error, not an unended trial.
        if fs::symlink_metadata(&path).is_err() {
            continue;
        }
        let bytes =
            read_bounded(&path, WHOLE_MOST).map_err(|e| advise(ReadError::new(&path, e)))?;
        let checksums = Checksums::read(&trial)?;
        checksums.check(&path, &Digest::of(&bytes)).map_err(advise)?;
        let mut summary = parse::<TrialSummary>(&path, &bytes).map_err(advise)?;
        let is_doubled = trials.last().is_some_and(|other| other.number == number);
        if summary.number != number || is_doubled {
            let why = format!("it is the summary of trial {}", summary.number);
            return Err(advise(ReadError::new(&path, why)));
        }
        read_readings(&mut summary, &trial)?;
        trials.push(summary);
    }
    trials.sort_by_key(|trial| trial.number);
    Ok(trials)
}

/// By file name; `None` for older records.
pub(crate) struct Checksums(BTreeMap<String, String>);

impl Checksums {
    pub(crate) fn read(trial: &Path) -> ReadResult<Checksums> {
        let path = trial.join(CHECKSUMS);
        match fs::symlink_metadata(&path) {
            Err(_) => Ok(Checksums(BTreeMap::new())),
            Ok(_) => read_json(&path).map(Checksums),
        }
    }

    pub(crate) fn check(&self, file: &Path, digest: &str) -> ReadResult {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        match self.0.get(name.as_ref()) {
            Some(noted) if noted != digest => Err(ReadError::new(
                file,
                format!(
                    "it was changed or damaged after its trial had ended: its checksum is {digest}, \
                     but {CHECKSUMS} has {noted}"
                ),
            )),
            _ => Ok(()),
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct Outcome {
    pub(crate) variant: usize,
    pub(crate) outcome: TrialOutcome,
    pub(crate) server: crate::ServerFacts,
}

pub(crate) fn read_outcome(summary: &Path) -> ReadResult<Outcome> {
    read_json(summary)
}

fn advise(error: ReadError) -> ReadError {
    let advice = "without its summary.json a trial counts as missing: restore the file, or remove \
                  it, and the same `dyno run` repeats the trial";
    ReadError { reason: format!("{}; {advice}", error.reason), ..error }
}

/// Adds readings that only the log has.
fn read_readings(summary: &mut TrialSummary, trial: &Path) -> ReadResult {
    let mut spans = Vec::new();
    summary.each_load(&mut |load| spans.extend(load.spans.clone()));
    if spans.is_empty() {
        return Ok(());
    }
    let checksums = Checksums::read(trial)?;
    let mut columns = beside::columns(&trial.join(READINGS), &spans, &checksums)?.into_iter();
    summary.each_load(&mut |load| {
        if load.spans.is_some() {
            load.readings = columns.next().unwrap_or_default();
        }
    });
    Ok(())
}

/// Checks the version first.
pub fn read_manifest(folder: &Path) -> ReadResult<Manifest> {
    let path = folder.join(MANIFEST);
    if fs::symlink_metadata(&path).is_err() {
        let reason =
            "it is not a run folder (it has no manifest.json); name one such as runs/quickstart";
        return Err(ReadError::new(folder, reason));
    }
    let bytes = read_bounded(&path, MANIFEST_MOST).map_err(|error| ReadError::new(&path, error))?;
    // Not as a tree: a list of small objects takes a hundred times its bytes.
    let version: Version = parse(&path, &bytes)?;
    match version.format {
        Some(format) if format > u64::from(FORMAT) => Err(ReadError::new(
            &path,
            format!(
                "the record has format {format}, but this version of Dyno reads formats up to \
                 {FORMAT}; use the version that wrote it ({}) or a newer one",
                version.dyno.as_deref().unwrap_or("version unknown")
            ),
        )),
        Some(_) => parse(&path, &bytes),
        None => Err(ReadError::new(&path, "it has no `format`: this is not a record of Dyno")),
    }
}

/// Largest block or repetition: runs are numbered on, and an overflow would make two blocks one.
const PLACE_MOST: u32 = 1 << 20;

/// Bytes for half a million trials.
const MANIFEST_MOST: u64 = 64 << 20;

#[derive(Deserialize)]
struct Version {
    format: Option<u64>,
    dyno: Option<String>,
}

/// By trial number, without earlier tries (moved aside) and links, which may lead anywhere.
pub fn trial_folders(folder: &Path) -> Vec<(u32, PathBuf)> {
    let trials = folder.join("trials");
    let is_folder = fs::symlink_metadata(&trials).is_ok_and(|facts| facts.is_dir());
    let Some(entries) = is_folder.then(|| fs::read_dir(&trials).ok()).flatten() else {
        return Vec::new();
    };
    let entries = entries.filter_map(Result::ok);
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let folders = folders.filter_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_aside =
            [".unfinished-", ".failed-", ".void-"].iter().any(|aside| name.contains(aside));
        (!is_aside).then_some(())?;
        Some((name.split('-').next()?.parse().ok()?, entry.path()))
    });
    let mut folders: Vec<(u32, PathBuf)> = folders.collect();
    folders.sort();
    folders
}

pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> ReadResult<T> {
    let bytes = read_bounded(path, WHOLE_MOST).map_err(|error| ReadError::new(path, error))?;
    within(VALUES_MOST, || parse(path, &bytes))
}

fn parse<T: DeserializeOwned>(path: &Path, text: &[u8]) -> ReadResult<T> {
    serde_json::from_slice(text)
        .map_err(|error| ReadError::new(path, format!("the file is damaged: {error}")))
}

/// In bytes; several times what probes may choose.
pub(crate) const READING_NAME_MOST: usize = 1_024;

/// Checked once, here: a record may have been edited or cut.
pub(crate) fn check_indexes(
    manifest: &Manifest,
    trial: &TrialSummary,
    folder: &Path,
) -> ReadResult {
    let damaged = |what: &str| {
        ReadError::new(folder, format!("the summary of trial {} is damaged: {what}", trial.number))
    };
    if trial.variant >= manifest.variants.len() {
        return Err(damaged("its variant is not in the manifest"));
    }
    for step in trial.loads() {
        if step.step >= manifest.steps.len() {
            return Err(damaged("a step is not in the manifest"));
        }
        if step.readings.keys().any(|name| name.len() > READING_NAME_MOST) {
            return Err(damaged("a reading has a name that is too long"));
        }
        let n = step.intervals.start_s.len();
        if step.spans.as_ref().is_some_and(|spans| spans.len() != n) {
            return Err(damaged("its intervals do not match its columns"));
        }
        let all = step.intervals.values();
        // A step without load has readings only.
        let is_without_load = step.kinds.is_empty() && all.iter().all(|column| column.is_empty());
        if (!is_without_load && all.iter().any(|column| column.len() != n))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunWriter;
    use crate::writer::tests::{manifest, summary, trial};

    fn run_of(trials: Vec<TrialSummary>) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let mut run = RunWriter::create(&folder.path().join("run"), &manifest("2-a")).unwrap();
        for one in trials {
            run.begin_trial(&trial(one.number), "base").unwrap().finish(one).unwrap();
        }
        folder
    }

    #[test]
    fn what_a_record_puts_into_an_error_is_one_short_line() {
        let folder = run_of(vec![summary(1)]);
        let run = folder.path().join("run");
        let (_, trial) = trial_folders(&run).remove(0);
        let named = run.join("trials/0001-a\n::error::x\u{1b}[8m");
        fs::rename(trial, &named).unwrap();
        fs::remove_file(named.join(CHECKSUMS)).unwrap();
        let path = named.join(SUMMARY);
        let text = fs::read_to_string(&path).unwrap();
        let check = |state: &str| {
            let changed = text.replace("\"finished\"", &serde_json::to_string(state).unwrap());
            assert_ne!(changed, text);
            fs::write(&path, changed).unwrap();
            let error = read_run(&run).unwrap_err().to_string();
            assert!(error.contains("0001-a ::error"), "{error}");
            assert!(error.contains("damaged") && error.len() < 10_000, "{error}");
            assert!(!error.contains(dyno_units::is_unsafe_char), "{error:?}");
        };
        check("gone\n\u{1b}[2J::stop-commands::x");
        check(&"x".repeat(100_000));
    }

    #[test]
    fn loads_of_a_search_are_checked_like_steps() {
        let check = |change: fn(&mut crate::StepSummary), expected: &str| {
            let mut one = summary(1);
            let mut load = one.steps[0].clone();
            change(&mut load);
            let probes = vec![crate::LoadProbe { load: Some(load), ..Default::default() }];
            let found = None;
            one.steps[0].search =
                Some(crate::SearchSummary { found, lowest_broken: None, settled: true, probes });
            let checked = check_indexes(&manifest("2-a"), &one, Path::new("run"));
            let error = checked.err().map_or(String::new(), |error| error.to_string());
            assert!(error.contains(expected) && error.is_empty() == expected.is_empty(), "{error}");
        };
        check(|_| {}, "");
        check(|load| load.step = 9, "not in the manifest");
        check(|load| load.spans = Some(vec![(0, 1); 9]), "do not match its columns");
        let long = |load: &mut crate::StepSummary| {
            load.readings.insert("n".repeat(READING_NAME_MOST + 1), Vec::new());
        };
        check(long, "too long");
    }

    #[test]
    fn columns_of_all_trials_share_one_room() {
        let with_column = |number: u32| {
            let mut one = summary(number);
            let start_s: Vec<f64> = (0..2_000).map(f64::from).collect();
            one.steps[0].readings = [("x".to_owned(), vec![None; start_s.len()])].into();
            one.steps[0].intervals.start_s = start_s;
            one
        };
        let folder = run_of(vec![with_column(1), with_column(2)]);
        let folders = trial_folders(&folder.path().join("run"));
        let read = |n: usize| within(n, || read_trials(folders.clone()));
        assert_eq!(read(4_000).unwrap().len(), 2);
        let error = read(3_999).unwrap_err().to_string();
        assert!(error.contains("more values"), "{error}");
        // Small files have the room of one trial, large ones by their size.
        assert_eq!([0, 1 << 20, 1 << 30].map(values_most), [VALUES_MOST, VALUES_MOST, 16 << 30]);
    }

    #[test]
    fn what_tables_repeat_shares_the_room_of_columns() {
        let with = |n_seconds: usize, n_kinds: usize, name: usize| {
            let mut one = summary(1);
            let step = &mut one.steps[0];
            step.intervals.start_s = vec![0.0; n_seconds];
            let kind = crate::KindSummary { name: "k".repeat(name), ..step.kinds[0].clone() };
            step.kinds = vec![kind; n_kinds];
            one
        };
        let mut planned = manifest("2-a");
        let check = |planned: &Manifest, one: TrialSummary, room: usize| {
            let trials = [one];
            let taken = |n: usize| within(n, || take_tables(planned, &trials).is_ok());
            assert_eq!([taken(room - 1), taken(room)], [false, true]);
        };
        check(&planned, with(1_000, 500, 3), 1_000 * (500 * 9 + 1));
        check(&planned, with(1_000, 1, 160_000), 1_000 * (8 + 10_001 + 1));
        planned.variants[0].name = "v".repeat(40_000);
        check(&planned, with(40_000, 0, 0), 40_000 * 2_500);
    }

    #[test]
    fn numbers_of_blocks_and_repetitions_are_bounded() {
        let folder = run_of(Vec::new());
        let mut run = read_run(&folder.path().join("run")).unwrap();
        let last = |run: &mut Run, block: u32, repetition: u32| {
            let plan = run.manifest.trials.last_mut().unwrap();
            (plan.block, plan.repetition) = (block, repetition);
            run.check().is_ok()
        };
        assert!(last(&mut run, PLACE_MOST, PLACE_MOST));
        assert!(!last(&mut run, PLACE_MOST + 1, 1));
        assert!(!last(&mut run, 1, u32::MAX));
    }

    #[test]
    fn a_manifest_is_read_as_one_and_not_as_a_tree_of_anything() {
        let folder = run_of(Vec::new());
        let run = folder.path().join("run");
        let path = run.join(MANIFEST);
        let text = fs::read_to_string(&path).unwrap();
        let more = format!(",\"more\":{}1{}}}", "[".repeat(1_000), "]".repeat(1_000));
        fs::write(&path, text.trim_end().strip_suffix('}').unwrap().to_owned() + &more).unwrap();
        assert_eq!(read_manifest(&run).unwrap(), manifest("2-a"));
        fs::File::create(&path).unwrap().set_len(MANIFEST_MOST + 1).unwrap();
        let error = read_manifest(&run).unwrap_err().to_string();
        assert!(error.contains("larger than 64 MiB"), "{error}");
    }
}
