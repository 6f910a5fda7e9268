//! What data take on a volume: as files say, and on disk.

use std::path::Path;

use crate::KeeperError;
use crate::storage::{folder_bytes, folder_length, free_bytes};

use super::zfs::Pool;
use super::{Tools, sample};

/// What data take on a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VolumeUsage {
    /// The lengths of the files.
    pub apparent_bytes: u64,
    /// What they take, as the filesystem says it of each file; a compressing one says it before
    /// compression.
    pub allocated_bytes: u64,
    /// What they take on disk after compression; none where the filesystem does not compress, or nobody
    /// can say.
    pub compressed_bytes: Option<u64>,
    /// What the data would take uncompressed over what they take; none as for `compressed_bytes`.
    pub compression: Option<f64>,
    /// Of `compressed_bytes`, what is stored as it is: what does not compress, and what was written over
    /// space that had been preallocated. None where nobody can say.
    pub uncompressed_bytes: Option<u64>,
    /// What a sample of the data takes over what zlib makes of it, where the filesystem may have left it
    /// uncompressed; none where nobody can say.
    pub compressibility: Option<f64>,
    /// What could still be written.
    pub free_bytes: u64,
    /// Seconds that a snapshot took, where the filesystem is ZFS; what was in memory is written first.
    pub snapshot_s: Option<f64>,
    /// Seconds that a clone of it took.
    pub clone_s: Option<f64>,
}

/// Measures what lies in a folder of a volume, after all of it was written back. `pool` is what it lies in
/// with ZFS.
///
/// # Errors
///
/// The folder cannot be read, or ZFS does not answer.
pub(super) fn measure(
    tools: Tools<'_>,
    folder: &Path,
    filesystem: &str,
    pool: Option<&Pool>,
) -> Result<VolumeUsage, KeeperError> {
    let failed = |error: std::io::Error| KeeperError(format!("{}: {error}", folder.display()));
    // What is not written back yet has no place on the disk, and is not compressed.
    let synced = std::fs::File::open(folder).and_then(|file| Ok(rustix::fs::syncfs(file)?));
    synced.map_err(failed)?;
    // Its snapshot waits for what is written back, so it comes first.
    let zfs = pool.map(|pool| pool.measure(tools)).transpose()?;
    let mut usage = VolumeUsage {
        apparent_bytes: folder_length(folder).map_err(failed)?,
        allocated_bytes: folder_bytes(folder).map_err(failed)?,
        free_bytes: free_bytes(folder).map_err(failed)?,
        ..VolumeUsage::default()
    };
    if filesystem == "btrfs" {
        // What nobody can say is none: the program is a package of its own.
        let path = folder.to_string_lossy();
        let text = tools.run("compsize", "btrfs-compsize", &["-b", "-x", &path]);
        if let Some(said) = text.ok().as_deref().and_then(compsize) {
            usage.compressed_bytes = Some(said.disk);
            usage.compression =
                (said.disk > 0).then(|| usage.allocated_bytes as f64 / said.disk as f64);
            usage.uncompressed_bytes = said.uncompressed;
            usage.compressibility =
                sample::compressibility(folder, usage.apparent_bytes).map_err(failed)?;
        }
    }
    if let Some(zfs) = zfs {
        usage.compressed_bytes = Some(zfs.referenced_bytes);
        usage.compression = Some(zfs.compression);
        usage.snapshot_s = Some(zfs.snapshot_s);
        usage.clone_s = Some(zfs.clone_s);
    }
    Ok(usage)
}

/// What `compsize --bytes` says.
#[derive(Debug, PartialEq, Eq)]
struct Compsize {
    disk: u64,
    uncompressed: Option<u64>,
}

/// Reads the table of `compsize --bytes`: a line of kinds, `TOTAL`, `none`, `zstd`, `prealloc`, each with
/// its percentage, bytes on disk, bytes before compression, and bytes that files refer to.
fn compsize(text: &str) -> Option<Compsize> {
    let column = |kind: &str| {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(kind))?;
        line.split_whitespace().nth(2)?.parse::<u64>().ok()
    };
    Some(Compsize { disk: column("TOTAL")?, uncompressed: column("none") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_compsize_is_read() {
        let text = "Processed 11 files, 160 regular extents (160 refs), 1 inline.\n\
            Type       Perc     Disk Usage   Uncompressed Referenced  \n\
            TOTAL       35%     7344128      20971520     20971520    \n\
            none       100%     1048576      1048576      1048576     \n\
            zstd        31%     6295552      19922944     19922944    \n";
        assert_eq!(
            compsize(text),
            Some(Compsize { disk: 7_344_128, uncompressed: Some(1_048_576) })
        );
        let text = "TOTAL 30% 100 300 300\nzstd 30% 100 300 300\n";
        assert_eq!(compsize(text), Some(Compsize { disk: 100, uncompressed: None }));
        assert_eq!(compsize("No files.\n"), None);
    }
}
