//! Image files, and loop devices on them.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use dyno_units::ByteCount;

use super::tool::Tools;
use crate::error::{KeeperError, OrKeeper, Result};
use crate::storage::unescaped;

/// Bytes at the beginning that are cleared before formatting.
const CLEARED: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockDevice {
    /// `/dev/loop0`.
    pub(crate) path: PathBuf,
    /// `7:0`.
    pub(crate) number: String,
}

impl BlockDevice {
    pub(crate) fn at(path: &Path) -> Result<BlockDevice> {
        let asked = path.display();
        let path = fs::canonicalize(path).or_keeper(|| &asked)?;
        let facts = fs::metadata(&path).or_keeper(|| &asked)?;
        let is_block = std::os::unix::fs::FileTypeExt::is_block_device(&facts.file_type());
        is_block.then_some(()).or_keeper(|| format!("{asked}: it is not a block device"))?;
        let number = facts.rdev();
        let number = format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
        Ok(BlockDevice { path, number })
    }

    /// Overwrites the marks of filesystems: an old one must not be mounted if no new one is made.
    pub(crate) fn clear(&self) -> Result<()> {
        let cleared = fs::OpenOptions::new().write(true).open(&self.path).and_then(|mut file| {
            let size = file.seek(SeekFrom::End(0))?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&vec![0; CLEARED.min(usize::try_from(size).unwrap_or(CLEARED))])?;
            file.sync_all()
        });
        cleared.or_path(&self.path, "cannot be overwritten")
    }

    /// By its number.
    pub(crate) fn sys(&self) -> PathBuf {
        Path::new("/sys/dev/block").join(&self.number)
    }
}

/// With a new image file.
pub(crate) fn make(tools: Tools<'_>, image: &Path, size: ByteCount) -> Result<BlockDevice> {
    make_image(image, size)?;
    attach(tools, image)
}

/// Sparse, readable by Dyno's user alone.
fn make_image(path: &Path, size: ByteCount) -> Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let made = file.and_then(|file| file.set_len(size.0));
    made.or_keeper(|| format!("the image {}", path.display()))
}

/// Bypasses the page cache of the filesystem below if possible, as pages would be in memory twice.
fn attach(tools: Tools<'_>, image: &Path) -> Result<BlockDevice> {
    let image = image.to_string_lossy();
    let attach = |direct: &str| {
        tools.run("losetup", "mount", &["--find", "--show", direct, "--nooverlap", &image])
    };
    let printed = attach("--direct-io=on").or_else(|_| attach("--direct-io=off"));
    let printed = printed.map_err(|error| match error.0.contains("unused loop device") {
        true => KeeperError(format!(
            "{}: all are in use (`losetup --list` shows by what), or this kernel or container has none",
            error.0
        )),
        false => error,
    })?;
    BlockDevice::at(Path::new(printed.trim()))
}

pub(crate) fn attached_to(image: &Path) -> Vec<BlockDevice> {
    let Ok(entries) = fs::read_dir("/sys/block") else { return Vec::new() };
    let mut found: Vec<BlockDevice> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("loop"))
        .filter(|entry| {
            fs::read_to_string(entry.path().join("loop/backing_file"))
                .is_ok_and(|file| Path::new(&unescaped(file.trim_end_matches('\n'))) == image)
        })
        .filter_map(|entry| BlockDevice::at(&Path::new("/dev").join(entry.file_name())).ok())
        .collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

pub(crate) fn detach(tools: Tools<'_>, device: &BlockDevice) -> Result<()> {
    let path = device.path.to_string_lossy();
    tools.run("losetup", "mount", &["--detach", &path]).map(drop)
}
