//! Volumes: filesystems for servers' data, made for a trial. Each is in a keeper's folder with an
//! owner file (image, loop device, mount), so that a later run can find, prove and remove it.

mod check;
mod dismantle;
mod filesystem;
mod limit;
mod loop_device;
#[cfg(test)]
mod tests;
mod tool;
mod usage;
mod zfs;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

pub use dyno_units::{Backing, Dips, IoLimit, VolumeSpec};
use dyno_units::{Clock, locked};

pub use check::volume_problems;
use dismantle::Notes;
pub(crate) use dismantle::dismantle;
use filesystem::{Filesystem, MadeBy};
pub(crate) use limit::{V1_FILES, V2_WORDS};
use loop_device::BlockDevice;
pub(crate) use tool::Tools;
pub use usage::VolumeUsage;
use zfs::{Pool, Zfs};

use crate::keeper::Storage;
use crate::storage::{cannot_be_written, chosen, write_setting};
use crate::{Groups, Keeper, KeeperError, OrKeeper, Result};

const IMAGE: &str = "image";
const CACHE: &str = "cache";
/// The mount point in the folder.
const FILES: &str = "files";
/// Changes outside of the folder.
const NOTES: &str = "volume.json";
/// Source of a mount in memory.
const MEMORY: &str = "dyno";
/// A device with this label may be formatted again.
const LABEL: &str = "dyno";

/// Names and descriptions.
pub fn filesystems() -> impl Iterator<Item = (&'static str, &'static str)> {
    filesystem::ALL.iter().map(|one| (one.name, one.sentence))
}

pub struct Volume {
    keeper: Arc<Keeper>,
    clock: Arc<dyn Clock>,
    folder: PathBuf,
    files: PathBuf,
    spec: VolumeSpec,
    /// A zfs-fuse started for it.
    daemon: Mutex<Option<Child>>,
    /// `None` for memory.
    device: OnceLock<BlockDevice>,
    notes: Mutex<Notes>,
}

impl Volume {
    /// Makes and mounts the filesystem, without binding its limit. A failure removes what was made.
    pub fn make(keeper: &Arc<Keeper>, spec: &VolumeSpec, clock: &Arc<dyn Clock>) -> Result<Volume> {
        if let Some(problem) = volume_problems(keeper, spec).into_iter().next() {
            return Err(KeeperError(format!("the volume `{}`: {problem}", spec.name)));
        }
        let filesystem = Filesystem::find(&spec.filesystem)
            .or_keeper(|| format!("there is no filesystem `{}`", spec.filesystem))?;
        let folder = keeper.make_folder("volume")?;
        let volume = Volume {
            keeper: Arc::clone(keeper),
            clock: Arc::clone(clock),
            files: folder.join(FILES),
            folder,
            spec: spec.clone(),
            daemon: Mutex::default(),
            device: OnceLock::new(),
            notes: Mutex::default(),
        };
        match volume.build(filesystem) {
            Ok(()) => Ok(volume),
            Err(error) => {
                // The next run removes what stays.
                let _ = volume.release();
                Err(KeeperError(format!("the volume `{}`: {}", spec.name, error.0)))
            }
        }
    }

    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// `loop0`; `None` for memory.
    pub fn disk_name(&self) -> Option<String> {
        let name = self.device.get()?.path.file_name()?;
        Some(name.to_string_lossy().into_owned())
    }

    pub fn limit(&self) -> &IoLimit {
        &self.spec.limit
    }

    pub fn dips(&self) -> Option<&Dips> {
        self.spec.dips.as_ref()
    }

    /// Writes back first, so that only later I/O is limited. With control groups of version 2 the
    /// limit is for these processes and their descendants.
    pub fn bind_limit(&self, processes: &[i32]) -> Result<()> {
        if !self.spec.is_limited() {
            return Ok(());
        }
        let Some(device) = self.device.get() else { return Ok(()) };
        let synced = fs::File::open(&self.files).and_then(|file| Ok(rustix::fs::syncfs(file)?));
        synced.at(&self.files)?;
        let groups = Groups::find()?;
        let mut notes = self.notes();
        let first = processes.first().copied().unwrap_or_default();
        let member_of = fs::read_to_string(format!("/proc/{first}/cgroup")).unwrap_or_default();
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy();
        let own = format!("{}{name}", crate::keeper::GROUP_PREFIX);
        notes.group = groups.group_for(&own, &member_of);
        let limit = self.limit();
        notes.limited = Some((device.number.clone(), *limit));
        notes.dipped = self.dips().map(|dips| limit.with(&dips.limit));
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
        groups.bind(notes.group.as_deref(), &device.number, limit)
    }

    pub fn dip(&self, is_lower: bool) -> Result<()> {
        let notes = self.notes();
        let (Some((number, limit)), Some(dipped)) = (&notes.limited, &notes.dipped) else {
            return Ok(());
        };
        let limit = if is_lower { dipped } else { limit };
        Groups::find()?.bind(notes.group.as_deref(), number, limit)
    }

    /// If it is bound.
    pub fn lift_limit(&self) -> Result<()> {
        let mut notes = self.notes();
        notes.lift_limit()?;
        notes.limited = None;
        notes.write(&self.folder)
    }

    /// Written back first; with ZFS also times of a snapshot and a clone.
    pub fn usage(&self) -> Result<VolumeUsage> {
        let pool = self.notes().pool.clone();
        usage::measure(self.tools(), &self.files, &self.spec.filesystem, pool.as_ref())
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        locked(&self.notes)
    }

    fn tools(&self) -> Tools<'_> {
        Tools { keeper: &self.keeper, clock: self.clock.as_ref() }
    }

    fn build(&self, filesystem: &Filesystem) -> Result<()> {
        let (spec, mut notes) = (&self.spec, self.notes());
        if let Backing::Device { path, .. } = &spec.backing {
            notes.device = Some(BlockDevice::at(path)?.path);
        }
        notes.write(&self.folder)?;
        fs::create_dir(&self.files).or_path(&self.files, "cannot be created")?;
        let device = self.device(filesystem)?;
        if let Some(device) = &device {
            // Made once.
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
                self.mount(Some(device))?;
            }
            (MadeBy::Pool, Some(device)) => self.make_pool(device, &mut notes)?,
            _ => self.mount(None)?,
        }
        if let Some(device) = &device {
            self.tune(device, &mut notes)?;
        }
        self.keeper.let_servers_through(&self.folder, &self.files)
    }

    /// Notes what is made outside of the folder first.
    fn make_pool(&self, device: &BlockDevice, notes: &mut Notes) -> Result<()> {
        let (spec, tools) = (&self.spec, self.tools());
        let pool = notes.pool.insert(Pool::new()?).clone();
        notes.write(&self.folder)?;
        let image = self.folder.join(CACHE);
        let cache = spec.cache.map(|size| loop_device::make(tools, &image, size)).transpose()?;
        match Zfs::find(&self.keeper)? {
            Zfs::Fuse => *self.daemon() = zfs::start_daemon(tools, &self.folder, spec.arc)?,
            Zfs::Kernel => {
                if let Some(arc) = spec.arc {
                    self.change(Path::new(zfs::KERNEL_ARC), &arc.0.to_string(), notes)?;
                }
            }
        }
        pool.make(tools, spec, (device, cache.as_ref()), &self.files)
    }

    fn daemon(&self) -> MutexGuard<'_, Option<Child>> {
        locked(&self.daemon)
    }

    fn device(&self, filesystem: &Filesystem) -> Result<Option<BlockDevice>> {
        match &self.spec.backing {
            _ if filesystem.is_memory() => Ok(None),
            Backing::Size(size) => {
                loop_device::make(self.tools(), &self.folder.join(IMAGE), *size).map(Some)
            }
            Backing::Device { path, .. } => BlockDevice::at(path).map(Some),
        }
    }

    fn mount(&self, device: Option<&BlockDevice>) -> Result<()> {
        let spec = &self.spec;
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
        // No rights come from what a server writes. The last option counts.
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

    /// Scheduler and read-ahead; notes the former values first.
    fn tune(&self, device: &BlockDevice, notes: &mut Notes) -> Result<()> {
        let spec = &self.spec;
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

    /// Notes the former value first.
    fn change(&self, path: &Path, value: &str, notes: &mut Notes) -> Result<()> {
        let before = fs::read_to_string(path).or_keeper(|| cannot_be_written(path, value))?;
        notes.before.push((path.to_owned(), chosen(&before).to_owned()));
        notes.write(&self.folder)?;
        write_setting(path, value)
    }
}

/// `text` is the file that lists the device's schedulers.
fn check_scheduler(text: &str, wanted: &str, device: &Path) -> Result<()> {
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
        self.spec.kind()
    }

    fn limit(&self) -> Option<IoLimit> {
        Some(self.spec.limit).filter(|limit| !limit.is_none())
    }

    #[expect(clippy::misnamed_getters, reason = "servers use a folder inside the volume's own")]
    fn folder(&self) -> &Path {
        &self.files
    }

    fn release(&self) -> Result<()> {
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
