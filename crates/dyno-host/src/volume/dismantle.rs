//! Takes a volume apart (limits, mount, loop device), for the Dyno that made it or a later run. All
//! of it is proved to be Dyno's: the folder by its owner file (checked by the caller), the loop
//! device by its image in the folder, the mount by its place `files` and its source (that loop
//! device, the noted device, the noted pool's dataset, or memory), the pool by the noted token.

use std::fs;
use std::path::{Path, PathBuf};

use dyno_units::Nanoseconds;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::limit::Groups;
use super::loop_device::{attached_to, detach};
use super::spec::IoLimit;
use super::zfs::Pool;
use super::{CACHE, FILES, IMAGE, MEMORY, NOTES, tool::Tools};
use crate::KeeperError;
use crate::storage::Mount;

/// After its users have ended.
pub(super) const BUSY_LIMIT: Nanoseconds = Nanoseconds::from_secs(10);
pub(super) const BUSY_POLL: Nanoseconds = Nanoseconds::from_millis(20);

/// Changes outside of the folder, written before they are made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Notes {
    /// `None` for an image or memory.
    #[serde(default)]
    pub(crate) device: Option<PathBuf>,
    /// Number of the limited device, and the limit.
    #[serde(default)]
    pub(crate) limited: Option<(String, IoLimit)>,
    /// The lower limit of its dips.
    #[serde(default)]
    pub(crate) dipped: Option<IoLimit>,
    /// Made for the limit, with version 2.
    #[serde(default)]
    pub(crate) group: Option<PathBuf>,
    #[serde(default)]
    pub(crate) pool: Option<Pool>,
    /// Files of `/sys` that were changed, with former values.
    #[serde(default)]
    pub(crate) before: Vec<(PathBuf, String)>,
}

impl Notes {
    pub(crate) fn write(&self, folder: &Path) -> Result<(), KeeperError> {
        let path = folder.join(NOTES);
        let failed = |error: std::io::Error| {
            KeeperError(format!("{} cannot be written: {error}", path.display()))
        };
        let fresh = folder.join(format!("{NOTES}.new"));
        fs::write(&fresh, serde_json::to_vec(self).map_err(|e| failed(e.into()))?)
            .map_err(failed)?;
        fs::rename(&fresh, &path).map_err(failed)
    }

    pub(crate) fn lift_limit(&self) -> Result<(), KeeperError> {
        let Some((number, limit)) = &self.limited else { return Ok(()) };
        let limits: Vec<IoLimit> = [Some(*limit), self.dipped].into_iter().flatten().collect();
        Groups::find()?.lift(self.group.as_deref(), number, &limits)
    }

    /// `None` if it is not a volume's folder.
    pub(crate) fn read(folder: &Path) -> Option<Notes> {
        serde_json::from_slice(&fs::read(folder.join(NOTES)).ok()?).ok()
    }
}

/// The folder must be proved to be Dyno's.
pub(crate) fn dismantle(tools: Tools<'_>, folder: &Path) -> Result<(), KeeperError> {
    let Some(notes) = Notes::read(folder) else { return Ok(()) };
    let files = folder.join(FILES);
    let loops = [IMAGE, CACHE].map(|image| attached_to(&folder.join(image))).concat();
    notes.lift_limit()?;
    for (path, value) in &notes.before {
        // The device may have been removed.
        if path.exists() {
            fs::write(path, value).map_err(|error| {
                KeeperError(format!("{} cannot be restored to {value}: {error}", path.display()))
            })?;
        }
    }
    let mut sources: Vec<PathBuf> = loops.iter().map(|device| device.path.clone()).collect();
    sources.extend(notes.device.clone());
    if let Some(pool) = &notes.pool {
        pool.destroy(tools)?;
        // Mounts of a killed zfs-fuse stay.
        sources.push(PathBuf::from(pool.dataset()));
    }
    unmount(tools, &files, &sources)?;
    if let (Some(pool), Some(device)) = (&notes.pool, &notes.device) {
        pool.erase_labels(device)?;
    }
    loops.iter().try_for_each(|device| detach(tools, device))?;
    notes.group.as_deref().map_or(Ok(()), crate::keeper::remove_group)
}

/// If the source is one of these, or memory.
fn unmount(tools: Tools<'_>, files: &Path, sources: &[PathBuf]) -> Result<(), KeeperError> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")
        .map_err(|error| KeeperError(format!("/proc/self/mountinfo cannot be read: {error}")))?;
    // The last one hides the others.
    for mount in Mount::at(&mounts, files).iter().rev() {
        let is_ours = sources.iter().any(|source| Path::new(&mount.device) == source)
            || (mount.filesystem == "tmpfs" && mount.device == MEMORY);
        if !is_ours {
            return Err(KeeperError(format!(
                "{} is mounted at {}, but not by Dyno: unmount it, then run the command again",
                mount.device,
                files.display()
            )));
        }
        unmount_once(tools, files)?;
    }
    Ok(())
}

/// Waits for users that end or read.
fn unmount_once(tools: Tools<'_>, files: &Path) -> Result<(), KeeperError> {
    let until = tools.clock.now() + BUSY_LIMIT;
    loop {
        match rustix::mount::unmount(files, rustix::mount::UnmountFlags::NOFOLLOW) {
            Ok(()) => return Ok(()),
            Err(Errno::BUSY) if tools.clock.now() < until => {
                tools.clock.sleep_until(tools.clock.now() + BUSY_POLL);
            }
            Err(error) => {
                let files = files.display();
                return Err(KeeperError(format!("{files} cannot be unmounted: {error}")));
            }
        }
    }
}
