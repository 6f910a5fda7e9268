//! Volumes: a filesystem of its own under the data of a server, made for a trial and removed after it.
//!
//! A volume lies in a folder of the keeper, with its owner file: an image, the loop device that makes a
//! disk of it, and the mount. So what a killed Dyno leaves is found, proved and removed as folders are.

mod check;
mod dismantle;
mod filesystem;
mod limit;
mod loop_device;
mod sample;
mod spec;
#[cfg(test)]
mod tests;
mod tool;
mod usage;
mod zfs;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use dyno_units::Clock;

pub use check::volume_problems;
use dismantle::Notes;
pub(crate) use dismantle::dismantle;
use filesystem::{Filesystem, MadeBy};
use limit::Groups;
use loop_device::BlockDevice;
pub use spec::{Backing, Dips, IoLimit, VolumeSpec};
pub(crate) use tool::Tools;
pub use usage::VolumeUsage;
use zfs::{Pool, Zfs};

use crate::KeeperError;
use crate::keeper::{Keeper, Storage};

const IMAGE: &str = "image";
const CACHE: &str = "cache";
/// Where the volume is mounted, in its folder.
const FILES: &str = "files";
/// What it has changed outside of its folder.
const NOTES: &str = "volume.json";
/// What a mount of memory has as its source.
const MEMORY: &str = "dyno";
/// The label of Dyno's filesystems: a device with it may be formatted again.
const LABEL: &str = "dyno";

/// The filesystems that a volume may have, each with a sentence.
pub fn filesystems() -> impl Iterator<Item = (&'static str, &'static str)> {
    filesystem::ALL.iter().map(|one| (one.name, one.sentence))
}

pub struct Volume {
    keeper: Arc<Keeper>,
    clock: Arc<dyn Clock>,
    folder: PathBuf,
    files: PathBuf,
    name: String,
    filesystem: String,
    kind: String,
    /// The zfs-fuse that was started for it.
    daemon: Mutex<Option<Child>>,
    /// What it lies on; none for memory.
    device: OnceLock<BlockDevice>,
    limit: IoLimit,
    dips: Option<Dips>,
    notes: Mutex<Notes>,
}

impl Volume {
    /// Makes the filesystem and mounts it. Its limit is not bound yet.
    ///
    /// # Errors
    ///
    /// Any of it failed; what was made is removed again.
    pub fn make(
        keeper: &Arc<Keeper>,
        spec: &VolumeSpec,
        clock: &Arc<dyn Clock>,
    ) -> Result<Volume, KeeperError> {
        if let Some(problem) = volume_problems(keeper, spec).into_iter().next() {
            return Err(KeeperError(format!("the volume `{}`: {problem}", spec.name)));
        }
        let filesystem = Filesystem::find(&spec.filesystem)
            .ok_or_else(|| KeeperError(format!("there is no filesystem `{}`", spec.filesystem)))?;
        let folder = keeper.make_folder("volume")?;
        let volume = Volume {
            keeper: Arc::clone(keeper),
            clock: Arc::clone(clock),
            files: folder.join(FILES),
            folder,
            name: spec.name.clone(),
            filesystem: spec.filesystem.clone(),
            kind: spec.kind(),
            daemon: Mutex::default(),
            device: OnceLock::new(),
            limit: spec.limit,
            dips: spec.dips,
            notes: Mutex::default(),
        };
        match volume.build(filesystem, spec) {
            Ok(()) => Ok(volume),
            Err(error) => {
                // The error that matters is already there; what stays is removed by the next run.
                let _ = volume.release();
                Err(KeeperError(format!("the volume `{}`: {}", spec.name, error.0)))
            }
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of the device that it lies on (`7:0`); none for memory.
    pub fn device_number(&self) -> Option<&str> {
        self.device.get().map(|device| device.number.as_str())
    }

    /// The name of the disk that it lies on (`loop0`); none for memory.
    pub fn disk_name(&self) -> Option<String> {
        let name = self.device.get()?.path.file_name()?;
        Some(name.to_string_lossy().into_owned())
    }

    pub fn limit(&self) -> &IoLimit {
        &self.limit
    }

    /// Whether its device may do less than it can, at least at times.
    pub fn is_limited(&self) -> bool {
        !self.limit.is_none() || self.dips.is_some()
    }

    pub fn dips(&self) -> Option<&Dips> {
        self.dips.as_ref()
    }

    /// Binds the limit, if it has one. What has been written so far is on the device first, so that only
    /// what comes from now on is limited. With control groups of version 2 it binds these processes,
    /// their descendants, and what they start.
    ///
    /// # Errors
    ///
    /// The kernel does not take it.
    pub fn bind_limit(&self, processes: &[i32]) -> Result<(), KeeperError> {
        if !self.is_limited() {
            return Ok(());
        }
        let Some(device) = self.device.get() else { return Ok(()) };
        let synced = fs::File::open(&self.files).and_then(|file| Ok(rustix::fs::syncfs(file)?));
        synced.map_err(|error| KeeperError(format!("{}: {error}", self.files.display())))?;
        let groups = Groups::find()?;
        let mut notes = self.notes();
        let first = processes.first().copied().unwrap_or_default();
        let member_of = fs::read_to_string(format!("/proc/{first}/cgroup")).unwrap_or_default();
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy();
        let own = format!("{}{name}", crate::keeper::GROUP_PREFIX);
        notes.group = groups.group_for(&own, &member_of);
        notes.limited = Some((device.number.clone(), self.limit));
        notes.dipped = self.dips.map(|dips| self.limit.with(&dips.limit));
        notes.write(&self.folder)?;
        if let Some(group) = &notes.group {
            let proc_root = Path::new("/proc");
            let daemon = self.daemon().as_ref().and_then(|child| i32::try_from(child.id()).ok());
            let family = processes.iter().chain(&daemon).flat_map(|pid| {
                let below = crate::process_table::descendants(proc_root, *pid);
                std::iter::once(*pid).chain(below.into_iter().map(|process| process.pid))
            });
            groups.move_into(group, &family.collect::<Vec<i32>>())?;
        }
        groups.bind(notes.group.as_deref(), &device.number, &self.limit)
    }

    /// Lowers the limit to that of its dips, or raises it again; only after [`Volume::bind_limit`].
    ///
    /// # Errors
    ///
    /// The kernel does not take it.
    pub fn dip(&self, is_lower: bool) -> Result<(), KeeperError> {
        let notes = self.notes();
        let (Some((number, limit)), Some(dipped)) = (&notes.limited, &notes.dipped) else {
            return Ok(());
        };
        let limit = if is_lower { dipped } else { limit };
        Groups::find()?.bind(notes.group.as_deref(), number, limit)
    }

    /// Lifts the limit, if it is bound.
    ///
    /// # Errors
    ///
    /// The kernel does not let go of it.
    pub fn lift_limit(&self) -> Result<(), KeeperError> {
        let mut notes = self.notes();
        notes.lift_limit()?;
        notes.limited = None;
        notes.write(&self.folder)
    }

    /// What the data on it take, after all of them were written back; with ZFS also how long a snapshot
    /// and a clone take.
    ///
    /// # Errors
    ///
    /// It cannot be read, or ZFS does not answer.
    pub fn usage(&self) -> Result<VolumeUsage, KeeperError> {
        let pool = self.notes().pool.clone();
        usage::measure(self.tools(), &self.files, &self.filesystem, pool.as_ref())
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tools(&self) -> Tools<'_> {
        Tools { keeper: &self.keeper, clock: self.clock.as_ref() }
    }

    fn build(&self, filesystem: &Filesystem, spec: &VolumeSpec) -> Result<(), KeeperError> {
        let mut notes = self.notes();
        if let Backing::Device { path, .. } = &spec.backing {
            notes.device = Some(BlockDevice::at(path)?.path);
        }
        notes.write(&self.folder)?;
        fs::create_dir(&self.files).map_err(|error| {
            KeeperError(format!("{} cannot be created: {error}", self.files.display()))
        })?;
        let device = self.device(filesystem, spec)?;
        if let Some(device) = &device {
            // It is made once.
            let _ = self.device.set(device.clone());
        }
        match (&filesystem.made_by, &device) {
            (MadeBy::Program(maker), Some(device)) => {
                if matches!(spec.backing, Backing::Device { .. }) {
                    device.clear()?;
                }
                let path = device.path.to_string_lossy();
                let arguments = maker.arguments(&spec.make_options, LABEL, &path);
                self.tools().run_in(&self.folder, maker.program, maker.package, &arguments)?;
                self.mount(spec, Some(device))?;
            }
            (MadeBy::Pool, Some(device)) => self.make_pool(spec, device, &mut notes)?,
            _ => self.mount(spec, None)?,
        }
        if let Some(device) = &device {
            self.tune(spec, device, &mut notes)?;
        }
        self.keeper.let_servers_through(&self.folder, &self.files)
    }

    /// Makes the pool and what it needs; what is made outside of the folder is noted first.
    fn make_pool(
        &self,
        spec: &VolumeSpec,
        device: &BlockDevice,
        notes: &mut Notes,
    ) -> Result<(), KeeperError> {
        let tools = self.tools();
        let pool = notes.pool.insert(Pool::new()?).clone();
        notes.write(&self.folder)?;
        let cache = match spec.cache {
            Some(size) => {
                let image = self.folder.join(CACHE);
                loop_device::make_image(&image, size)?;
                Some(loop_device::attach(tools, &image)?)
            }
            None => None,
        };
        match Zfs::find(&self.keeper).map_err(KeeperError)? {
            Zfs::Fuse => *self.daemon() = zfs::start_daemon(tools, &self.folder, spec.arc)?,
            Zfs::Kernel => {
                if let Some(arc) = spec.arc {
                    let (path, value) = zfs::kernel_arc(arc);
                    self.change(&path, &value, notes)?;
                }
            }
        }
        pool.make(tools, spec, (device, cache.as_ref()), &self.files)
    }

    fn daemon(&self) -> MutexGuard<'_, Option<Child>> {
        self.daemon.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn device(
        &self,
        filesystem: &Filesystem,
        spec: &VolumeSpec,
    ) -> Result<Option<BlockDevice>, KeeperError> {
        match &spec.backing {
            _ if filesystem.is_memory() => Ok(None),
            Backing::Size(size) => {
                let image = self.folder.join(IMAGE);
                loop_device::make_image(&image, *size)?;
                loop_device::attach(self.tools(), &image).map(Some)
            }
            Backing::Device { path, .. } => BlockDevice::at(path).map(Some),
        }
    }

    fn mount(&self, spec: &VolumeSpec, device: Option<&BlockDevice>) -> Result<(), KeeperError> {
        let mut options = spec.mount_options.clone();
        let source = match device {
            Some(device) => device.path.to_string_lossy().into_owned(),
            None => {
                if let Backing::Size(size) = &spec.backing {
                    options.push(format!("size={}", size.0));
                }
                MEMORY.to_owned()
            }
        };
        // What a server writes gets no rights by being there. The last word counts.
        options.extend(["nosuid", "nodev"].map(str::to_owned));
        let (files, options) = (self.files.to_string_lossy(), options.join(","));
        let arguments = ["-t", &spec.filesystem, "-o", &options, &source, &files];
        self.tools().run("mount", "mount", &arguments).map(drop).map_err(|error| {
            match spec.mount_options.as_slice() {
                [] => error,
                given => KeeperError(format!(
                    "{}; its `mount_options` are {}: the kernel's log (dmesg) may say which of \
                     them it rejects",
                    error.0,
                    given.join(",")
                )),
            }
        })
    }

    /// Sets scheduler and read-ahead of the device; what is changed is noted first.
    fn tune(
        &self,
        spec: &VolumeSpec,
        device: &BlockDevice,
        notes: &mut Notes,
    ) -> Result<(), KeeperError> {
        let queue = device.sys().join("queue");
        if let Some(scheduler) = &spec.scheduler {
            let text = fs::read_to_string(queue.join("scheduler")).unwrap_or_default();
            check_scheduler(&text, scheduler, &device.path)?;
        }
        let read_ahead = spec.read_ahead.map(|bytes| (bytes.0 / 1024).to_string());
        for (file, value) in [("scheduler", &spec.scheduler), ("read_ahead_kb", &read_ahead)] {
            let Some(value) = value else { continue };
            self.change(&queue.join(file), value, notes)?;
        }
        Ok(())
    }
}

impl Volume {
    /// Changes a file of `/sys`; what it was before is noted first.
    fn change(&self, path: &Path, value: &str, notes: &mut Notes) -> Result<(), KeeperError> {
        let failed = |error: std::io::Error| {
            KeeperError(format!("`{value}` cannot be written to {}: {error}", path.display()))
        };
        let before = fs::read_to_string(path).map_err(failed)?;
        notes.before.push((path.to_owned(), crate::storage::chosen(&before).to_owned()));
        notes.write(&self.folder)?;
        fs::write(path, value).map_err(failed)
    }
}

/// Refuses a scheduler that a device does not have; `text` is the file with those that it has.
fn check_scheduler(text: &str, wanted: &str, device: &Path) -> Result<(), KeeperError> {
    let all: Vec<&str> =
        text.split_whitespace().map(|name| name.trim_matches(['[', ']'])).collect();
    if all.contains(&wanted) {
        return Ok(());
    }
    Err(KeeperError(format!(
        "{} has no I/O scheduler `{wanted}`; it has {}",
        device.display(),
        if all.is_empty() { "none to choose".to_owned() } else { all.join(", ") }
    )))
}

impl Storage for Volume {
    fn kind(&self) -> String {
        self.kind.clone()
    }

    #[expect(clippy::misnamed_getters, reason = "servers use a folder inside the volume's own")]
    fn folder(&self) -> &Path {
        &self.files
    }

    fn release(&self) -> Result<(), KeeperError> {
        dismantle(self.tools(), &self.folder)?;
        let mut daemon = self.daemon();
        if let Some(child) = daemon.as_mut() {
            zfs::end_daemon(self.tools(), child)?;
            *daemon = None;
        }
        drop(daemon);
        self.keeper.remove_folder(&self.folder)
    }
}
