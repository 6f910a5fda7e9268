//! Data sets, populated once and kept, so that later trials start on a copy.
//!
//! They are under a keeper's root in `datasets/KEY/`: the folder `data`, as left by a server that
//! was stopped in order, and its description `dataset.json`. The key is a digest of all that
//! decides the files' contents; the description is compared as well. A complete data set is put in
//! place by one rename. Nobody works on it; copying holds a shared lock on `dataset.json`, removing
//! an exclusive one. [Initial data](crate::initial) are kept as data sets without tables.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use dyno_host::{CopyError, CopyLayout, Keeper, KeeperError, Place, RunAs};
use dyno_model::Name;
use dyno_units::{ByteCount, FNV_1A, Nanoseconds, fnv_1a};
use dyno_workload::{Dialect, Row, Workload};
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, futimens};
use serde::{Deserialize, Serialize};

use crate::error::{Result, fail};
use crate::{DataShape, DeployError};

/// Servers that made data of format 1 were open to other users' logins while they started.
const FORMAT: u32 = 2;

/// Per table, for the digest: options and seeds that change rows change nearly all of them.
const SAMPLE_ROWS: u64 = 64;

/// Free space as a multiple of a data set's size: the copy grows, and others need the disk.
const FREE_TIMES: u64 = 3;

/// All data sets together may take one part in this many of the disk, if that is less than the limit.
const SHARE_OF_DISK: u64 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of all data sets together.
    pub bytes: ByteCount,
    /// How long one is kept that no trial uses.
    pub unused: Nanoseconds,
}

impl Limits {
    pub const USUAL: Limits =
        Limits { bytes: ByteCount(20 << 30), unused: Nanoseconds::from_secs(30 * 24 * 3600) };
}

/// All that decides what is in a data set's files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// The version of Dyno, which fills tables in its own way.
    pub dyno: String,
    pub shape: DataShape,
    /// What shapes how files lie where they are: see [`dyno_host::Storage::kind`].
    #[serde(default = "folder", skip_serializing_if = "is_folder")]
    pub place: String,
    pub seed: u64,
    /// A digest of what decides the rows besides the seed, where the rest does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fills: Option<String>,
    /// Of initial data: what initialising reads besides the shape. None of them of a data set with tables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub initial: Vec<String>,
    /// The tables, in the order in which they are made.
    pub tables: Vec<TableContents>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableContents {
    pub create: String,
    pub columns: Vec<String>,
    pub rows: u64,
    /// A digest of some of them.
    pub sample: String,
    pub after: Vec<String>,
}

impl Contents {
    /// Whatever the load: workloads with the same tables and rows share a data set.
    pub fn new(
        shape: DataShape,
        place: String,
        (dialect, workload): (Dialect, &dyn Workload),
        seed: u64,
    ) -> Contents {
        let tables = workload.tables(dialect);
        let tables = tables.into_iter().enumerate().map(|(idx, table)| TableContents {
            sample: sample(workload, idx, table.rows),
            create: table.create,
            columns: table.columns.into_iter().map(Name::into_owned).collect(),
            rows: table.rows,
            after: table.after,
        });
        let dyno = env!("CARGO_PKG_VERSION").to_owned();
        let fills = workload.outline().fills.clone();
        Contents { dyno, shape, place, seed, fills, initial: Vec::new(), tables: tables.collect() }
    }

    /// What a server of this shape holds before its first start, whose initialising reads this besides.
    pub(crate) fn of_initial(shape: DataShape, place: String, reads: Vec<String>) -> Contents {
        let dyno = env!("CARGO_PKG_VERSION").to_owned();
        Contents { dyno, shape, place, seed: 0, fills: None, initial: reads, tables: Vec::new() }
    }

    pub fn is_initial(&self) -> bool {
        !self.initial.is_empty()
    }

    /// The name under which it is kept: 16 hexadecimal digits.
    pub fn key(&self) -> String {
        let text = serde_json::to_string(self).expect("texts and numbers are JSON");
        format!("{:016x}", fnv_1a(FNV_1A, text.as_bytes()))
    }
}

/// The kind of all places there were before a data set said which it is of.
fn folder() -> String {
    "folder".to_owned()
}

fn is_folder(kind: &str) -> bool {
    kind == "folder"
}

/// A digest of evenly spread rows of a table.
fn sample(workload: &dyn Workload, table_idx: usize, n_rows: u64) -> String {
    let n_sampled = n_rows.min(SAMPLE_ROWS);
    let (mut row, mut text) = (Row::new(), Vec::new());
    for nth in 0..n_sampled {
        row.clear();
        workload.fill_row(table_idx, nth * (n_rows / n_sampled), &mut row);
        row.write_tab_separated(&mut text);
        text.push(b'\n');
    }
    format!("{:016x}", fnv_1a(FNV_1A, &text))
}

/// What `dataset.json` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Description {
    format: u32,
    /// The workload that was the first to populate it.
    pub workload: String,
    pub rows: u64,
    pub bytes: u64,
    /// Seconds that populating took, indexes included.
    pub populate_s: f64,
    pub created_unix_ms: u64,
    pub contents: Contents,
}

impl Description {
    /// Of data with these contents; all that is measured of them is 0.
    pub fn new(contents: &Contents, workload: &str) -> Description {
        Description {
            format: FORMAT,
            workload: workload.to_owned(),
            rows: 0,
            bytes: 0,
            populate_s: 0.0,
            created_unix_ms: 0,
            contents: contents.clone(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    pub key: String,
    /// When a trial last began on a copy of it, in milliseconds since 1970 UTC.
    pub last_used_unix_ms: u64,
    pub bytes: u64,
    pub description: Result<Description, String>,
}

impl Listed {
    pub fn is_initial(&self) -> bool {
        self.description.as_ref().is_ok_and(|found| found.contents.is_initial())
    }
}

pub struct DataSets<'a> {
    keeper: &'a Arc<Keeper>,
    folder: PathBuf,
}

impl<'a> DataSets<'a> {
    /// Those under this keeper's root. Makes nothing yet.
    pub fn of(keeper: &'a Arc<Keeper>) -> DataSets<'a> {
        DataSets { keeper, folder: keeper.root().join("datasets") }
    }

    /// All of them, the last used first; damaged ones and those of another version as well.
    pub fn list(&self) -> Result<Vec<Listed>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries,
        };
        let cannot = cannot("read the folder", &self.folder);
        let mut listed = Vec::new();
        for entry in entries.map_err(&cannot)? {
            let path = entry.map_err(&cannot)?.path();
            let Some(key) = path.file_name().and_then(|name| name.to_str()) else { continue };
            let description = read(&path);
            let bytes = match &description {
                Ok(description) => description.bytes,
                Err(_) => dyno_host::folder_bytes(&path).unwrap_or(0),
            };
            listed.push(Listed {
                key: key.to_owned(),
                last_used_unix_ms: last_used(&path),
                bytes,
                description,
            });
        }
        listed.sort_by(|a, b| {
            b.last_used_unix_ms.cmp(&a.last_used_unix_ms).then_with(|| a.key.cmp(&b.key))
        });
        Ok(listed)
    }

    /// Removes those unused for longer than the limits allow, then the least recently used until the
    /// rest fit; spares those in use. Returns the number removed and their bytes. Fails if the folder
    /// cannot be read.
    pub fn clean(&self, limits: &Limits, now_unix_ms: u64) -> Result<(usize, u64)> {
        let most = limits.bytes.0.min(self.share_of_disk()?);
        self.clean_to(most, limits.unused, now_unix_ms)
    }

    fn clean_to(&self, most: u64, unused: Nanoseconds, now_unix_ms: u64) -> Result<(usize, u64)> {
        let listed = self.list()?;
        let mut total: u64 = listed.iter().map(|one| one.bytes).sum();
        let (mut n, mut bytes) = (0, 0);
        // The last used come first.
        for one in listed.iter().rev() {
            let unused_ms = now_unix_ms.saturating_sub(one.last_used_unix_ms);
            let is_old = unused_ms > unused.0 / 1_000_000;
            if (is_old || total > most) && self.remove(&one.key).is_ok() {
                (n, bytes) = (n + 1, bytes + one.bytes);
                total = total.saturating_sub(one.bytes);
            }
        }
        Ok((n, bytes))
    }

    fn share_of_disk(&self) -> Result<u64> {
        let root = self.keeper.root();
        let size = dyno_host::size_bytes(root).map_err(cannot("read the size of", root))?;
        Ok(size / SHARE_OF_DISK)
    }

    /// Removes one. Fails if there is none of this key, or if it is being copied just now.
    pub fn remove(&self, key: &str) -> Result<()> {
        let path = self.folder.join(key);
        let is_name = path.parent() == Some(&self.folder) && path.file_name().is_some();
        if !is_name || !path.is_dir() {
            return fail(format!("there is no data set `{key}` in {}", self.folder.display()));
        }
        // Without a description nobody can be copying it.
        let lock = File::open(description_of(&path)).ok();
        if lock.as_ref().is_some_and(|lock| !is_free(lock)) {
            return fail(format!(
                "the data set {key} is being copied for a server right now; try again later"
            ));
        }
        // Out of sight in one step; what a killed Dyno leaves there, the next run removes.
        let staging = Staging::make(self.keeper, "removed")?;
        fs::rename(&path, staging.path.join("dataset")).map_err(cannot("remove", &path))?;
        staging.remove()
    }

    pub fn find(&self, contents: &Contents) -> Option<Kept> {
        let folder = self.folder.join(contents.key());
        let lock = File::open(description_of(&folder)).ok()?;
        lock.lock_shared().ok()?;
        // It may have been removed, and even made anew, before the lock was there.
        let (now, then) = (fs::metadata(description_of(&folder)).ok()?, lock.metadata().ok()?);
        if (now.dev(), now.ino()) != (then.dev(), then.ino()) {
            return None;
        }
        let description = read(&folder).ok()?;
        (description.contents == *contents).then_some(Kept { folder, description, lock })
    }

    /// Keeps the staging folder's `data`, a server's complete data; removes the least recently used data
    /// sets if all would take too much. After an error the data are still in the staging folder.
    pub fn keep(
        &self,
        staging: &Staging,
        description: &Description,
        limits: &Limits,
    ) -> Result<Kept> {
        self.check_room(description, limits)?;
        let key = description.contents.key();
        let folder = self.folder.join(&key);
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
            .map_err(cannot("create", &self.folder))?;
        if folder.exists() {
            // Another Dyno was faster; or it is damaged, or the digest met a namesake.
            if let Some(kept) = self.find(&description.contents) {
                return Ok(kept);
            }
            self.remove(&key)?;
        }
        let lock = write(&staging.path, description)?;
        // No server runs in it: not even its user has to get through.
        fs::set_permissions(&staging.path, Permissions::from_mode(0o700))
            .map_err(cannot("close", &staging.path))?;
        // Both are under the keeper's root, so this is one step.
        fs::rename(&staging.path, &folder).map_err(cannot("create", &folder))?;
        Ok(Kept { folder, description: description.clone(), lock })
    }

    fn check_room(&self, description: &Description, limits: &Limits) -> Result<()> {
        let root = self.keeper.root();
        let (bytes, now_unix_ms) = (description.bytes, description.created_unix_ms);
        let most = limits.bytes.0.min(self.share_of_disk()?);
        let size = ByteCount(bytes);
        if bytes > most {
            return fail(format!(
                "its size is {size}, but all kept data sets together may take up only {}",
                ByteCount(most)
            ));
        }
        self.clean_to(most - bytes, limits.unused, now_unix_ms)?;
        let free = dyno_host::free_bytes(root)
            .map_err(cannot("read the free space on the disk of", root))?;
        if free < bytes.saturating_mul(FREE_TIMES) {
            return fail(format!(
                "its size is {size}, but only {} is free on the disk; {FREE_TIMES} times its size \
                 is required",
                ByteCount(free)
            ));
        }
        Ok(())
    }
}

/// A data set that stays as long as this is held.
#[derive(Debug)]
pub struct Kept {
    folder: PathBuf,
    pub description: Description,
    lock: File,
}

impl Kept {
    pub fn key(&self) -> String {
        self.description.contents.key()
    }

    /// That it could not be copied, and how to do without it: with a damaged one, each trial would fail.
    fn not_copied(&self, error: CopyError) -> CopyError {
        let CopyError::Failed(why) = error else { return error };
        let key = self.key();
        // It lies in the folder `datasets` of the root.
        let root = self.folder.ancestors().nth(2).unwrap_or(&self.folder).display();
        CopyError::Failed(format!(
            "the data set {key} could not be copied: {why}; if its files are damaged, remove it with \
             `dyno datasets --data-folder {root} --remove {key}`, and the next trial makes a new one"
        ))
    }

    /// Copies its data into the staging folder, as `data`, for a server that the keeper starts.
    pub fn copy(
        &self,
        staging: &Staging,
        layout: CopyLayout,
        now_unix_ms: u64,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), CopyError> {
        let (from, owner) = (self.folder.join("data"), staging.keeper.run_as());
        dyno_host::copy_folder(&from, &staging.data(), owner, layout, is_stopped)
            .map_err(|error| self.not_copied(error))?;
        // When it was last used only decides which one goes first.
        let _ = self.lock.set_modified(UNIX_EPOCH + Duration::from_millis(now_unix_ms));
        Ok(())
    }

    /// Copies its data, which are small, to `to` for a server that is started on them at once.
    pub(crate) fn copy_new(
        &self,
        to: &Path,
        owner: Option<RunAs>,
        layout: CopyLayout,
    ) -> Result<(), CopyError> {
        dyno_host::copy_new_folder(&self.folder.join("data"), to, owner, layout)
            .map_err(|error| self.not_copied(error))?;
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let _ = futimens(&self.lock, &Timestamps { last_access: now, last_modification: now });
        Ok(())
    }
}

/// A folder for data that are moved or copied; removed with this.
pub struct Staging {
    keeper: Arc<Keeper>,
    /// Where it lies if it is no folder of the keeper's.
    place: Option<Place>,
    path: PathBuf,
    is_removed: bool,
}

impl Staging {
    pub fn make(keeper: &Arc<Keeper>, name: &str) -> Result<Staging> {
        let path = keeper.make_folder(name)?;
        Ok(Staging { keeper: Arc::clone(keeper), place: None, path, is_removed: false })
    }

    /// On this place's filesystem, so that moving data needs no copy.
    pub fn beside(keeper: &Arc<Keeper>, place: &Place, name: &str) -> Result<Staging> {
        match place.make_beside(name)? {
            Some(path) => {
                let (keeper, place) = (Arc::clone(keeper), Some(place.clone()));
                Ok(Staging { keeper, place, path, is_removed: false })
            }
            None => Staging::make(keeper, name),
        }
    }

    pub fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    fn remove(mut self) -> Result<()> {
        self.is_removed = true;
        Ok(self.remove_folder()?)
    }

    fn remove_folder(&self) -> Result<(), KeeperError> {
        match &self.place {
            Some(place) => place.remove_data(&self.path),
            None => self.keeper.remove_folder(&self.path),
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.is_removed {
            // What stays behind is found and removed by the next run.
            let _ = self.remove_folder();
        }
    }
}

fn description_of(folder: &Path) -> PathBuf {
    folder.join("dataset.json")
}

/// Reads a description; the error is for people.
fn read(folder: &Path) -> Result<Description, String> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let text = fs::read(description_of(folder))
        .map_err(|error| format!("its dataset.json cannot be read: {error}"))?;
    let damaged = |error: serde_json::Error| format!("its dataset.json is damaged: {error}");
    let Format { format } = serde_json::from_slice(&text).map_err(damaged)?;
    if format != FORMAT {
        return Err(format!(
            "it has format {format}, and this version of Dyno reads format {FORMAT}"
        ));
    }
    serde_json::from_slice(&text).map_err(damaged)
}

/// Writes a description once the data beside it are on the disk; returns it locked.
fn write(folder: &Path, description: &Description) -> Result<File> {
    let path = description_of(folder);
    let write = || -> std::io::Result<File> {
        dyno_host::sync_folder(folder)?;
        let mut file = File::create_new(&path)?;
        file.write_all(&serde_json::to_vec_pretty(description)?)?;
        file.sync_all()?;
        file.lock_shared()?;
        Ok(file)
    };
    write().map_err(cannot("write", &path))
}

fn cannot(what: &str, path: &Path) -> impl Fn(std::io::Error) -> DeployError {
    let what = format!("cannot {what} {}", path.display());
    move |error| DeployError::new(format!("{what}: {error}"))
}

fn last_used(folder: &Path) -> u64 {
    let modified = fs::metadata(description_of(folder)).and_then(|facts| facts.modified()).ok();
    let since = modified.and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    since.as_millis() as u64
}

/// Tried again for a moment: a process being started holds open files until its program runs.
fn is_free(lock: &File) -> bool {
    const TRIES: u32 = 20;
    let (_open, never) = std::sync::mpsc::channel::<()>();
    (0..TRIES).any(|nth| {
        if nth > 0 {
            // Nothing is ever sent: this is a pause.
            let _ = never.recv_timeout(std::time::Duration::from_millis(10));
        }
        lock.try_lock().is_ok()
    })
}

#[cfg(test)]
mod tests;
