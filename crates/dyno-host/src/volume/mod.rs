//! Volumes: a filesystem of its own under the data of a server, made for a trial and removed after it.
//!
//! A volume lies in a folder of the keeper, with its owner file: an image, the loop device that makes a
//! disk of it, and the mount. So what a killed Dyno leaves is found, proved and removed as folders are.

mod check;
mod dismantle;
mod filesystem;
mod limit;
mod loop_device;
mod spec;
#[cfg(test)]
mod tests;
mod tool;
mod usage;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_units::Clock;

pub use check::volume_problems;
use dismantle::Notes;
pub(crate) use dismantle::dismantle;
use filesystem::Filesystem;
use loop_device::BlockDevice;
pub use spec::{Backing, IoLimit, VolumeSpec};
pub(crate) use tool::Tools;
pub use usage::{VolumeUsage, volume_usage};

use crate::KeeperError;
use crate::keeper::{Keeper, Storage};

/// The image in a volume's folder.
const IMAGE: &str = "image";
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

/// A volume that is mounted.
pub struct Volume {
    keeper: Arc<Keeper>,
    clock: Arc<dyn Clock>,
    folder: PathBuf,
    files: PathBuf,
    kind: String,
    caveat: Option<&'static str>,
}

impl Volume {
    /// Makes the filesystem, mounts it and binds its limits.
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
            kind: spec.kind(),
            caveat: filesystem.caveat,
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

    /// What a reader of a result must know of this filesystem.
    pub fn caveat(&self) -> Option<&'static str> {
        self.caveat
    }

    fn tools(&self) -> Tools<'_> {
        Tools { keeper: &self.keeper, clock: self.clock.as_ref() }
    }

    fn build(&self, filesystem: &Filesystem, spec: &VolumeSpec) -> Result<(), KeeperError> {
        let mut notes = Notes::default();
        if let Backing::Device { path, .. } = &spec.backing {
            notes.device = Some(BlockDevice::at(path)?.path);
        }
        notes.write(&self.folder)?;
        fs::create_dir(&self.files).map_err(|error| {
            KeeperError(format!("{} cannot be created: {error}", self.files.display()))
        })?;
        let device = self.device(filesystem, spec)?;
        if let (Some(device), Some(maker)) = (&device, &filesystem.maker) {
            if matches!(spec.backing, Backing::Device { .. }) {
                device.clear()?;
            }
            let path = device.path.to_string_lossy();
            let arguments = maker.arguments(&spec.make_options, LABEL, &path);
            self.tools().run_in(&self.folder, maker.program, maker.package, &arguments)?;
        }
        self.mount(spec, device.as_ref())?;
        if let Some(device) = &device {
            self.tune(spec, device, &mut notes)?;
        }
        self.keeper.let_servers_through(&self.folder, &self.files)
    }

    /// The device that it lies on; none for memory.
    fn device(
        &self,
        filesystem: &Filesystem,
        spec: &VolumeSpec,
    ) -> Result<Option<BlockDevice>, KeeperError> {
        match &spec.backing {
            _ if filesystem.maker.is_none() => Ok(None),
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
        self.tools().run("mount", "mount", &arguments).map(drop)
    }

    /// Sets scheduler, read-ahead and limits of the device; what is changed is noted first.
    fn tune(
        &self,
        spec: &VolumeSpec,
        device: &BlockDevice,
        notes: &mut Notes,
    ) -> Result<(), KeeperError> {
        let queue = device.sys().join("queue");
        let read_ahead = spec.read_ahead.map(|bytes| (bytes.0 / 1024).to_string());
        for (file, value) in [("scheduler", &spec.scheduler), ("read_ahead_kb", &read_ahead)] {
            let Some(value) = value else { continue };
            let path = queue.join(file);
            let failed = |error: std::io::Error| {
                KeeperError(format!("`{value}` cannot be written to {}: {error}", path.display()))
            };
            let before = fs::read_to_string(&path).map_err(failed)?;
            notes.before.push((path.clone(), crate::storage::chosen(&before).to_owned()));
            notes.write(&self.folder)?;
            fs::write(&path, value).map_err(failed)?;
        }
        if spec.limit.is_none() {
            return Ok(());
        }
        notes.limited = Some((device.number.clone(), spec.limit));
        notes.write(&self.folder)?;
        limit::bind(&device.number, &spec.limit)
    }
}

impl Storage for Volume {
    fn kind(&self) -> String {
        self.kind.clone()
    }

    fn folder(&self) -> &Path {
        &self.files
    }

    fn release(&self) -> Result<(), KeeperError> {
        dismantle(self.tools(), &self.folder)?;
        self.keeper.remove_folder(&self.folder)
    }
}
