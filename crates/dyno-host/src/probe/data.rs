//! The size of a server's data on disk, by kind of file. The folder is walked rarely, on its own
//! thread: pauses bound the cost, and a folder with too many files is not measured.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use dyno_units::reading::prelude::*;
use dyno_units::{Clock, Nanoseconds};

use super::{Probe, Readings};
use crate::process_table::thread_cpu;

#[rustfmt::skip]
pub(super) const READINGS: &[Reading] = &[
    reading("data.bytes", Bytes, "data on disk", "disk space that the data take, logs included").row(960),
    reading("data.apparent_bytes", Bytes, "length of the files", "length of the same files; less is on disk if they have holes or are compressed"),
    reading("data.files", Unit::other("files"), "files", "files in the data folder"),
    reading("data.tables_bytes", Bytes, "Tables", "on disk: files that hold rows only").chart(Topic::Files, 1),
    reading("data.indexes_bytes", Bytes, "Indexes", "on disk: files that hold indexes only").chart(Topic::Files, 2),
    reading("data.tables_and_indexes_bytes", Bytes, "Tables and indexes", "on disk: files of tables and their indexes").chart(Topic::Files, 3),
    reading("data.undo_bytes", Bytes, "Undo logs", "on disk: files with old row versions (and ibdata)").chart(Topic::Files, 4),
    reading("data.logs_bytes", Bytes, "Logs", "on disk: redo, write-ahead and binary logs").chart(Topic::Files, 5),
    reading("data.temporary_bytes", Bytes, "temporary files", "on disk: temporary files"),
    reading("data.other_bytes", Bytes, "other files", "on disk: all other files"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    /// Rows without indexes.
    Tables,
    /// Indexes without rows.
    Indexes,
    /// The name does not distinguish them, or both are in one file.
    TablesAndIndexes,
    /// Old row versions and undo logs.
    Undo,
    /// Write-ahead or replication log.
    Logs,
    /// Removed at a restart.
    Temporary,
    Other,
}

impl FileKind {
    fn reading(self) -> &'static str {
        match self {
            FileKind::Tables => "data.tables_bytes",
            FileKind::Indexes => "data.indexes_bytes",
            FileKind::TablesAndIndexes => "data.tables_and_indexes_bytes",
            FileKind::Undo => "data.undo_bytes",
            FileKind::Logs => "data.logs_bytes",
            FileKind::Temporary => "data.temporary_bytes",
            FileKind::Other => "data.other_bytes",
        }
    }
}

#[derive(Clone, Debug)]
pub struct DataFiles {
    /// Measured with all below it.
    pub root: PathBuf,
    /// By the path under the folder.
    pub kind: fn(&Path) -> FileKind,
}

impl DataFiles {
    /// Logs, which are not part of the stored data; `None` if unreadable, or with too many files.
    pub fn log_bytes(&self) -> Option<u64> {
        let sizes = measure(self, FILES_MAX).ok()??;
        Some(sizes.by_kind.get(&FileKind::Logs).copied().unwrap_or(0))
    }
}

/// Pause over CPU time of the walk before it, at least …
const PAUSE_PER_CPU: u64 = 100;

/// … and over its wall time, as it may have waited for a disk.
const PAUSE_PER_WALL: u64 = 10;

/// A walk of so many takes about a second.
const FILES_MAX: usize = 300_000;

pub(super) struct DataProbe {
    files: DataFiles,
    clock: Arc<dyn Clock>,
    rests_until: Nanoseconds,
    has_reported: bool,
    notes: Vec<String>,
}

impl DataProbe {
    pub(super) fn new(files: DataFiles, clock: Arc<dyn Clock>) -> DataProbe {
        let rests_until = Nanoseconds::ZERO;
        DataProbe { files, clock, rests_until, has_reported: false, notes: Vec::new() }
    }

    fn note(&mut self, note: String) {
        if !std::mem::replace(&mut self.has_reported, true) {
            self.notes.push(note);
        }
    }
}

impl Probe for DataProbe {
    fn registered(&self) -> Cow<'static, [Reading]> {
        READINGS.into()
    }

    fn read(&mut self, now: Nanoseconds, readings: &mut Readings) {
        if now < self.rests_until {
            return;
        }
        let cpu = thread_cpu();
        let root = self.files.root.display();
        match measure(&self.files, FILES_MAX) {
            Ok(Some(sizes)) => sizes.add_to(readings),
            Ok(None) => self.note(format!(
                "{root} contains more than {FILES_MAX} files: its size by kind of file is not read"
            )),
            Err(error) => self.note(format!("{root} cannot be measured: {error}")),
        }
        let wall = self.clock.now().saturating_sub(now).0.saturating_mul(PAUSE_PER_WALL);
        let cpu = thread_cpu().saturating_sub(cpu).0.saturating_mul(PAUSE_PER_CPU);
        self.rests_until = now + Nanoseconds(wall.max(cpu));
    }

    fn every(&self) -> Nanoseconds {
        Nanoseconds::from_secs(5)
    }

    fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Sizes {
    n_files: u64,
    apparent_bytes: u64,
    /// Blocks on disk, in bytes.
    by_kind: BTreeMap<FileKind, u64>,
}

impl Sizes {
    fn add_to(&self, readings: &mut Readings) {
        let mut add = |name: &str, value: u64| readings.insert(name.to_owned(), value as f64);
        add("data.files", self.n_files);
        add("data.apparent_bytes", self.apparent_bytes);
        add("data.bytes", self.by_kind.values().sum());
        for (kind, bytes) in &self.by_kind {
            add(kind.reading(), *bytes);
        }
    }
}

/// Walks a folder, or a file and those whose names begin like its own; `None` above `files_max`.
fn measure(files: &DataFiles, files_max: usize) -> io::Result<Option<Sizes>> {
    let mut sizes = Sizes::default();
    // A file with several names counts once.
    let mut met = BTreeSet::new();
    let mut open = vec![files.root.clone()];
    let mut n_met = 0;
    while let Some(folder) = open.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            // Servers remove folders meanwhile; the root must exist.
            Err(_) if folder != files.root => continue,
            Err(error) => return Err(error),
        };
        for entry in entries.flatten() {
            n_met += 1;
            if n_met > files_max {
                return Ok(None);
            }
            let Ok(facts) = entry.metadata() else { continue };
            if facts.is_dir() {
                open.push(entry.path());
            } else if facts.nlink() < 2 || met.insert((facts.dev(), facts.ino())) {
                let path = entry.path();
                let kind = (files.kind)(path.strip_prefix(&files.root).unwrap_or(&path));
                sizes.n_files += 1;
                sizes.apparent_bytes += facts.len();
                // `stat` counts blocks of 512 bytes.
                *sizes.by_kind.entry(kind).or_default() += facts.blocks() * 512;
            }
        }
    }
    Ok(Some(sizes))
}

#[cfg(test)]
mod tests {
    use dyno_units::ManualClock;

    use super::*;

    fn kind(path: &Path) -> FileKind {
        match path.to_str() {
            Some("log/1") => FileKind::Logs,
            Some("t") => FileKind::Tables,
            _ => FileKind::Other,
        }
    }

    fn folder() -> (tempfile::TempDir, DataFiles) {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().to_owned();
        fs::create_dir(root.join("log")).expect("made");
        fs::write(root.join("log/1"), vec![1; 100_000]).expect("written");
        fs::write(root.join("t"), vec![1; 10_000]).expect("written");
        fs::hard_link(root.join("t"), root.join("log/t-again")).expect("linked");
        fs::File::create(root.join("sparse")).expect("made").set_len(1 << 30).expect("grown");
        (folder, DataFiles { root, kind })
    }

    #[test]
    fn sizes_are_by_kind_and_on_disk() {
        let (_folder, files) = folder();
        let sizes = measure(&files, 100).expect("walked").expect("few files");
        assert_eq!((sizes.n_files, sizes.apparent_bytes), (3, 110_000 + (1 << 30)));
        assert!(sizes.by_kind[&FileKind::Logs] >= 100_000);
        assert!(sizes.by_kind.values().sum::<u64>() < 1 << 20, "{sizes:?}");
        assert_eq!(measure(&files, 3).expect("walked"), None);
    }

    #[test]
    fn what_cannot_be_walked_is_reported_once() {
        let (folder, files) = folder();
        let mut probe = DataProbe::new(files, Arc::new(ManualClock::new()));
        let mut readings = Readings::new();
        probe.read(Nanoseconds::from_secs(1), &mut readings);
        assert_eq!(readings["data.files"], 3.0);
        assert!(readings.keys().all(|name| READINGS.iter().any(|one| one.is_for(name))));
        drop(folder);
        for second in 2..4 {
            probe.read(Nanoseconds::from_secs(second), &mut readings);
        }
        let notes = probe.take_notes();
        assert!(notes.len() == 1 && notes[0].contains("cannot be measured"), "{notes:?}");
    }
}
