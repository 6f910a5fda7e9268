//! Takes a volume apart (limits, mount, loop device), for the Dyno that made it or a later run. All
//! of it is proved to be Dyno's: the folder by its owner file (checked by the caller), the loop
//! device by its image in the folder, the mount by its place `files` and its source (that loop
//! device, the noted device, the noted pool's dataset, or memory), the pool by the noted token.

use std::fs;
use std::path::{Path, PathBuf};

use dyno_units::{IoLimit, Nanoseconds};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::loop_device::{attached_to, detach};
use super::zfs::Pool;
use super::{CACHE, FILES, IMAGE, MEMORY, NOTES, tool::Tools};
use crate::keeper::retry;
use crate::{Groups, KeeperError, Mount, OrKeeper, Result};

/// Limit and pause, after its users have ended.
pub(super) const BUSY: (Nanoseconds, Nanoseconds) =
    (Nanoseconds::from_secs(10), Nanoseconds::from_millis(20));

/// Changes outside of the folder, written before they are made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Notes {
    /// `None` for an image or memory.
    pub(crate) device: Option<PathBuf>,
    /// Number of the limited device, and the limit.
    pub(crate) limited: Option<(String, IoLimit)>,
    /// The lower limit of its dips.
    pub(crate) dipped: Option<IoLimit>,
    /// Made for the limit, with version 2.
    pub(crate) group: Option<PathBuf>,
    pub(crate) pool: Option<Pool>,
    /// Files of `/sys` that were changed, with former values.
    pub(crate) before: Vec<(PathBuf, String)>,
}

impl Notes {
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join(NOTES);
        let fresh = folder.join(format!("{NOTES}.new"));
        let text = serde_json::to_vec(self).or_path(&path, "cannot be written")?;
        let written = fs::write(&fresh, text).and_then(|()| fs::rename(&fresh, &path));
        written.or_path(&path, "cannot be written")
    }

    pub(crate) fn lift_limit(&self) -> Result<()> {
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
pub(crate) fn dismantle(tools: Tools<'_>, folder: &Path) -> Result<()> {
    let Some(notes) = Notes::read(folder) else { return Ok(()) };
    let files = folder.join(FILES);
    let loops = [IMAGE, CACHE].map(|image| attached_to(&folder.join(image))).concat();
    notes.lift_limit()?;
    for (path, value) in &notes.before {
        // The device may have been removed.
        if path.exists() {
            fs::write(path, value)
                .or_keeper(|| format!("{} cannot be restored to {value}", path.display()))?;
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
fn unmount(tools: Tools<'_>, files: &Path, sources: &[PathBuf]) -> Result<()> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")
        .or_keeper(|| "/proc/self/mountinfo cannot be read")?;
    // The last one hides the others.
    for mount in Mount::at(&mounts, files).iter().rev() {
        let is_ours = sources.iter().any(|source| Path::new(&mount.device) == source)
            || (mount.filesystem == "tmpfs" && mount.device == MEMORY);
        if !is_ours {
            let (device, files) = (&mount.device, files.display());
            return Err(KeeperError(format!(
                "{device} is mounted at {files}, but not by Dyno: unmount it, then run the command \
                 again"
            )));
        }
        unmount_once(tools, files)?;
    }
    Ok(())
}

/// Waits for users that end or read.
fn unmount_once(tools: Tools<'_>, files: &Path) -> Result<()> {
    let unmount = || rustix::mount::unmount(files, rustix::mount::UnmountFlags::NOFOLLOW);
    let unmounted = retry(tools.clock, BUSY, unmount, |result| *result != Err(Errno::BUSY));
    unmounted.or_path(files, "cannot be unmounted")
}
