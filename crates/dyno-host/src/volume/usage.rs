//! The size of data on a volume: by file lengths, and on disk.

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::{Deserialize, Serialize};

use crate::error::{OrKeeper, Result};
use crate::storage::{folder_bytes, folder_length, free_bytes, visit_files};

use super::Tools;
use super::zfs::Pool;

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VolumeUsage {
    /// Lengths of the files.
    pub apparent_bytes: u64,
    /// As the filesystem reports for each file: before compression.
    pub allocated_bytes: u64,
    /// On disk after compression; `None` without compression, or if unknown.
    pub compressed_bytes: Option<u64>,
    /// Uncompressed over compressed size; `None` as for `compressed_bytes`.
    pub compression: Option<f64>,
    /// Stored uncompressed: incompressible, or written over preallocated space. `None` if unknown.
    pub uncompressed_bytes: Option<u64>,
    /// Size of a sample over its size by zlib, if the filesystem may have left it uncompressed.
    pub compressibility: Option<f64>,
    pub free_bytes: u64,
    /// Files with contents, and their extents, if the filesystem says where files lie.
    pub extents: Option<(u64, u64)>,
    /// ZFS only; includes writing back what was in memory.
    pub snapshot_s: Option<f64>,
    pub clone_s: Option<f64>,
}

/// Writes back first. `pool` is for ZFS.
pub(super) fn measure(
    tools: Tools<'_>,
    folder: &Path,
    filesystem: &str,
    pool: Option<&Pool>,
) -> Result<VolumeUsage> {
    // Until written back, data have no place on disk and are not compressed.
    let synced = fs::File::open(folder).and_then(|file| Ok(rustix::fs::syncfs(file)?));
    synced.at(folder)?;
    // Its snapshot waits for the writeback.
    let zfs = pool.map(|pool| pool.measure(tools)).transpose()?;
    let mut usage = VolumeUsage {
        apparent_bytes: folder_length(folder).at(folder)?,
        allocated_bytes: folder_bytes(folder).at(folder)?,
        free_bytes: free_bytes(folder).at(folder)?,
        extents: extents(tools, folder).at(folder)?,
        ..VolumeUsage::default()
    };
    if filesystem == "btrfs" {
        // Without the program, which has its own package, these are `None`.
        let path = folder.to_string_lossy();
        let text = tools.run("compsize", "btrfs-compsize", &["-b", "-x", &path]);
        if let Some(said) = text.ok().as_deref().and_then(compsize) {
            usage.compressed_bytes = Some(said.disk);
            usage.compression =
                (said.disk > 0).then(|| usage.allocated_bytes as f64 / said.disk as f64);
            usage.uncompressed_bytes = said.uncompressed;
            usage.compressibility = compressibility(folder, usage.apparent_bytes).at(folder)?;
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

/// On one command line.
const FILES_AT_ONCE: usize = 200;

/// Files with contents and their extents, by `filefrag`; `None` without it, or if it cannot tell.
fn extents(tools: Tools<'_>, folder: &Path) -> std::io::Result<Option<(u64, u64)>> {
    if tools.keeper.find_program("filefrag", &[]).is_none() {
        return Ok(None);
    }
    let mut files = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            // Links are not followed.
            let kind = entry.file_type()?;
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path().to_string_lossy().into_owned());
            }
        }
    }
    let mut found = (0, 0);
    for files in files.chunks(FILES_AT_ONCE) {
        let arguments: Vec<&str> = files.iter().map(String::as_str).collect();
        let Ok(text) = tools.run("filefrag", "e2fsprogs", &arguments) else { return Ok(None) };
        let (n_files, n_extents) = filefrag(&text);
        found = (found.0 + n_files, found.1 + n_extents);
    }
    Ok((found.1 > 0).then_some(found))
}

/// A line per file ends with `: 3 extents found`; files without contents do not count.
fn filefrag(text: &str) -> (u64, u64) {
    let of_line = |line: &str| -> Option<u64> {
        let (number, rest) = line.rsplit_once(": ")?.1.split_once(' ')?;
        rest.starts_with("extent").then(|| number.parse().ok()).flatten()
    };
    let found = text.lines().filter_map(of_line).filter(|extents| *extents > 0);
    found.fold((0, 0), |(files, extents), more| (files + 1, extents + more))
}

#[derive(Debug, PartialEq, Eq)]
struct Compsize {
    disk: u64,
    uncompressed: Option<u64>,
}

/// Lines of `compsize --bytes`: kind (`TOTAL`, `none`, `zstd`, `prealloc`), percentage, bytes on
/// disk, bytes before compression, bytes referenced.
fn compsize(text: &str) -> Option<Compsize> {
    let column = |kind: &str| {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(kind))?;
        line.split_whitespace().nth(2)?.parse::<u64>().ok()
    };
    Some(Compsize { disk: column("TOTAL")?, uncompressed: column("none") })
}

/// Compressed at a time, as by btrfs.
const BLOCK: u64 = 128 << 10;

const BLOCKS_MOST: u64 = 128;

/// Size of a sample of the files over its size by the fastest zlib; `None` for zeros alone. Blocks
/// of zeros are left out; the others are evenly spaced in all files, of `length` together.
fn compressibility(folder: &Path, length: u64) -> std::io::Result<Option<f64>> {
    let distance = (length / BLOCKS_MOST).max(BLOCK);
    let (mut begin, mut next) = (0, 0);
    let (mut n_bytes, mut n_compressed) = (0, 0);
    let mut block = Vec::with_capacity(BLOCK as usize);
    visit_files(folder, &mut |file: &fs::File, len: u64| {
        while next < begin + len {
            block.resize(BLOCK as usize, 0);
            let at = (next - begin) / BLOCK * BLOCK;
            // A file may have become shorter.
            let n = file.read_at(&mut block, at).unwrap_or(0);
            block.truncate(n);
            if block.iter().any(|byte| *byte != 0) {
                n_bytes += n as u64;
                n_compressed += compressed(&block);
            }
            next += distance;
        }
        begin += len;
    })?;
    Ok((n_compressed > 0).then(|| n_bytes as f64 / n_compressed as f64))
}

/// Never more than uncompressed, as in filesystems.
fn compressed(block: &[u8]) -> u64 {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    let packed = encoder.write_all(block).and_then(|()| encoder.finish());
    packed.map_or(block.len(), |packed| packed.len().min(block.len())) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_filefrag_are_read() {
        let text = "/v/multi-master.info: 0 extents found\n/v/a: 12 extents: 7 extents found\n\
                    /v/item.frm: 1 extent found\n/v/b: FIBMAP unsupported\n";
        assert_eq!(filefrag(text), (2, 8));
        assert_eq!(filefrag(""), (0, 0));
    }

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

    fn noise(n: usize) -> Vec<u8> {
        // xorshift64 (Marsaglia 2003).
        let mut state = 88_172_645_463_325_252_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        (0..n).map(|_| next()).collect()
    }

    #[track_caller]
    fn check(files: &[Vec<u8>], expected: std::ops::Range<f64>) {
        let folder = tempfile::tempdir().unwrap();
        let mut length = 0;
        for (n, bytes) in files.iter().enumerate() {
            let inner = folder.path().join(n.to_string());
            fs::create_dir(&inner).unwrap();
            fs::write(inner.join("data"), bytes).unwrap();
            length += bytes.len() as u64;
        }
        let found = compressibility(folder.path(), length).unwrap().unwrap_or(0.0);
        assert!(expected.contains(&found), "{found}");
    }

    #[test]
    fn a_sample_stands_for_all() {
        let text = || b"the same words again and again ".repeat(100_000);
        check(&[], 0.0..0.1);
        check(&[vec![0; 1 << 20]], 0.0..0.1);
        check(&[noise(3 << 20)], 1.0..1.01);
        check(&[text()], 20.0..1000.0);
        // Half noise; zeros do not count.
        check(&[text(), vec![0; 3 << 20], noise(text().len())], 1.8..2.1);
        check(&[noise(20 << 20), noise(1)], 1.0..1.01);
    }
}
