//! How well the data on a volume compress, by a sample.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use crate::storage::visit_files;

/// Compressed at a time, as by btrfs.
const BLOCK: u64 = 128 << 10;

const BLOCKS_MOST: u64 = 128;

/// Size of a sample of the files over its size by the fastest zlib; `None` for zeros alone. Blocks
/// of zeros are left out; the others are evenly spaced in all files, of `length` together.
pub(super) fn compressibility(folder: &Path, length: u64) -> io::Result<Option<f64>> {
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
